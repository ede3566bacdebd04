#' Which search can be told what
#'
#' All searches have the same options, by the same names, with the same meaning,
#' wherever they make sense. [knn_search()] describes them.
#'
#' | | `subset` | `BPPARAM`, `checkpoint` | `weights` | `adjust`, `data` | `na` | `block` |
#' | --- | --- | --- | --- | --- | --- | --- |
#' | [knn_search()], [knn_graph()] | yes | yes | yes | yes | yes | yes |
#' | [knn_query()] | no (1) | yes | yes | yes | yes | yes, over `x` |
#' | [knn_predict()] | no (12) | yes (12) | yes | no (13) | yes | no (12) |
#' | [mutual_pairs()] | no (12) | yes | yes | no (13) | yes | yes |
#' | [within_search()], [threshold_graph()] | yes | yes | yes | yes | yes | no (8) |
#' | [within_query()] | no (1) | yes | yes | yes | yes | no (8) |
#' | [nearest_to()] | no (2) | no (2) | yes | yes | yes | yes |
#' | [mst_knn()] of a matrix | no (3) | yes | yes | yes | not `"pairwise"` (4) | no (3) |
#' | [edge_stability()] | yes | yes (9) | yes | yes | yes | no (11) |
#' | [edge_significance()] | no (10) | yes (9) | yes | yes | yes | no (11) |
#' | [compare_neighbours()] | no (14) | no (14) | yes | no (14) | not `"pairwise"` (14) | no (11) |
#' | [knn_impute()] | no (15) | yes | no (15) | no (15) | always `"pairwise"` | no (15) |
#' | [threshold_triples()], [nearest_triples()], [triple_histogram()] | no (16) | no (16) | no (16) | no (16) | not `"pairwise"` | no (16) |
#' | [knn_plan()] | no (5) | no (5) | yes | yes | yes | yes |
#' | [FsknnParam()] | no (6) | no (6) | yes | no (6) | yes | no (6) |
#' | [spanning_forest()], [mst_knn()] of a graph, [snn_graph()], [undirected_edges()] | no (7) | no (7) | no (7) | no (7) | no (7) | no (7) |
#'
#' 1. `query` has the rows whose neighbours to find: give some of them alone.
#' 2. `point` (or `outcome`) says whose neighbours are found. That takes one pass
#'    over the points, or two, of which nothing could be dealt out or kept.
#' 3. The tree is that of all points of `x`: that of some is `mst_knn(x[some, ])`.
#' 4. The tree is that of all pairs, and those with too few samples in common have
#'    no distance. `mst_knn(knn_graph(x, na = "pairwise"))` takes those that have.
#' 5. A plan is of one search in this process, or, with `hosts`, of many on one
#'    folder; of some points among all it is that with `query =` their number.
#' 6. BiocNeighbors' functions have a `subset` and a `BPPARAM` of their own, which
#'    are heard, and would not know a folder again. Their features are mostly
#'    components, which have no covariates. Points without neighbours, which
#'    `na = "pairwise"` may leave, are an error there.
#' 7. These take a graph as it is. What holds was said where it was made.
#' 8. Pairs within a distance are the same whatever the blocks: take those whose
#'    ends are of the blocks that are wanted.
#' 9. By resamples, or by permutations, in place of points.
#' 10. `edges` are those that are tested: give some of them.
#' 11. The graphs of resamples, and those of chance, have one list of each point.
#' 12. All points have their part in the answer; what is left out at a time is
#'    said by `folds`, or is in another block. With `select` each fold is a
#'    search of its own, for which there is no `BPPARAM` and no `checkpoint`.
#' 13. Points are samples or cells there, whose features have no covariates.
#' 14. Its own page says why, and what to do.
#' 15. Rows with missing values are those that are searched for, over the columns
#'     that both rows have.
#' 16. Triples are of all points, or with `query` of those that have some. A
#'     search is cut up by `stage`. Weighted samples are scaled columns of `x`.
#'
#' [knn_search()] and [knn_query()] have `output`, too, for answers that are to
#' go to a folder: [knn_output()] says why others have not.
#'
#' `block` goes with all other options, but for a `k` of each point's own.
#' `weights` and `adjust` are for `"pearson"` and `"spearman"`; so is
#' `na = "pairwise"`, with neither of them, which is for `"euclidean"` and
#' `"manhattan"` too. `na = "mean"` is for every metric but those of binary data.
#' [metafeatures()], which have no missing values, take no `na`.
#'
#' The answer is the same, to the last bit, with and without `BPPARAM` and
#' `checkpoint`; with a `subset` it is the rows (or the edges) that the whole
#' answer has for these points.
#' @section Names:
#' All verbs match the values for points or samples by one rule. It holds for
#' `weights`, `adjust`, `data`, `outcome`, `block`, `labels`, `groups`, `strata`
#' and so on. The values may be a vector, a matrix, a data frame or survival
#' times. If both the values and `x` have names, values are matched by name, in
#' any order. A name that only one side has is an error, which says so if the
#' names differ only by [make.names()]. If one side has no names, values are
#' matched by position, and their number must be right. Row names of a data frame
#' that are whole numbers do not count as names. A column of a container's own
#' table is in the order of its samples (or rows).
#'
#' The features of a `query` are matched by name, too. It may have more features
#' than `x`, which are left out then.
#' @seealso [knn_search()] for what each of them means.
#' @name search_options
#' @examples
#' x <- matrix(rnorm(200 * 12), nrow = 200)
#' rownames(x) <- paste0("gene", 1:200)
#' # some points among all, kept on the way
#' folder <- tempfile()
#' some <- c("gene7", "gene99")
#' edges <- threshold_graph(x, 0.7, subset = some, checkpoint = folder)
#' edges
#' unlink(folder, recursive = TRUE)
NULL

# Options of a search: the arguments of a verb besides its data. They are
# collected by name and checked in one order, as far as possible without the
# data.

# These values hold if a verb has no such argument.
unless_told <- list(
  metric = NULL, sign = "signed", na = "error", min_pairs = NULL,
  constant = "error", chunk_size = NULL, num_threads = NULL,
  max_device_memory = NULL, max_memory = NULL, progress = FALSE,
  verbose = FALSE, backend = "auto", devices = NULL, points = point_sides,
  assay = NULL, dimred = NULL, weights = NULL, BPPARAM = NULL,
  checkpoint = NULL, adjust = NULL, data = NULL
)

# The default metric. Reduced dimensions are made for Euclidean distances: a
# correlation would weight the first and the last dimension equally.
default_metric <- function(dimred) {
  if (is.null(dimred)) "pearson" else "euclidean"
}

# Returns the checked options of the verb that calls it.
verb_options <- function(verb = caller_env()) {
  known <- intersect(names(unless_told), ls(verb))
  check_options(mget(known, envir = verb), call = verb)
}

# `told` is a list of some of the arguments that unless_told names.
check_options <- function(told, call = caller_env()) {
  told <- c(told, unless_told[setdiff(names(unless_told), names(told))])
  metric <- check_metric(
    told$metric %||% default_metric(told$dimred), call = call
  )
  missing <- check_na(told$na, told$min_pairs, metric, call = call)
  options <- list(
    metric = metric,
    na = missing$na,
    min_pairs = missing$min_pairs,
    sign = check_sign(told$sign, metric, call = call),
    constant = check_choice(
      told$constant, c("error", "isolate"), "constant", call = call
    ),
    chunk_size = check_chunk_size(told$chunk_size, call = call),
    num_threads = check_num_threads(told$num_threads, call = call),
    max_device_memory = check_device_memory(
      told$max_device_memory, call = call
    ),
    max_memory = check_max_memory(told$max_memory, call = call),
    progress = check_progress(told$progress, call = call),
    verbose = check_flag(told$verbose, "verbose", call = call),
    instruction_set = check_instruction_set(call = call),
    backend = choose_backend(
      backend_for(told$BPPARAM, told$backend, told$devices, call = call),
      told$devices, call = call
    ),
    automatic = is_automatic(told$backend, told$devices),
    input = check_input(told$points, told$assay, told$dimred, call = call),
    weights = check_sample_weights(told$weights, metric, call = call)
  )
  check_na_and_weights(options, call = call)
  options["adjust"] <- list(
    check_adjust(told$adjust, told$data, options, call = call)
  )
  options$long <- check_long_work(
    told$BPPARAM, told$checkpoint, options, told$num_threads, call = call
  )
  options
}
