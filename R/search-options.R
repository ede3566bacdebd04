#' Options of the searches
#'
#' All searches share the same options, with the same names and meanings,
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
#' 1. `query` has the rows whose neighbours are returned: give only some of
#'    them.
#' 2. `point` (or `outcome`) says whose neighbours are returned. That takes one
#'    or two passes over the points, with nothing to distribute or store.
#' 3. The tree is that of all points of `x`. For some points, use
#'    `mst_knn(x[some, ])`.
#' 4. The tree is that of all pairs, and those with too few samples in common
#'    have no distance. `mst_knn(knn_graph(x, na = "pairwise"))` uses the
#'    others.
#' 5. A plan is for one search in this process or, with `hosts`, for many
#'    processes in one folder. For some points among all, use `query =` with
#'    their number.
#' 6. BiocNeighbors' functions have their own `subset` and `BPPARAM`, which are
#'    used, but they could not use a folder again. Their features are mostly
#'    components, which have no covariates. Points without neighbours, which
#'    `na = "pairwise"` may leave, are an error there.
#' 7. These take a graph as it is. The options were given when it was made.
#' 8. Pairs within a distance do not depend on blocks: select those with ends in
#'    the blocks of interest.
#' 9. A task is some of the resamples, or permutations, rather than points.
#' 10. `edges` are those that are tested: give only some of them.
#' 11. The graphs of resamples, and those of chance, have one list for each
#'     point.
#' 12. All points contribute to the answer. `folds` says what is left out at a
#'    time, or it is in another block. With `select`, each fold is a separate
#'    search, without `BPPARAM` and `checkpoint`.
#' 13. Points are samples or cells there, whose features have no covariates.
#' 14. The page of this verb says why, and what to do.
#' 15. Rows with missing values are searched for, over the columns that both
#'     rows have.
#' 16. Triples are of all points or, with `query`, those with some of them.
#'     `stage` divides a search. For weighted samples, scale the columns of `x`.
#'
#' [knn_search()] and [knn_query()] also have `output`, which writes the answer
#' to a folder. [knn_output()] says why others have not.
#'
#' `block` can be combined with all other options, except with a `k` for each
#' point. `weights` and `adjust` are for `"pearson"` and `"spearman"`.
#' `na = "pairwise"` is for these, too, but without `weights` and `adjust`, and
#' also for `"euclidean"` and `"manhattan"`. `na = "mean"` is for every metric
#' except those of binary data. [metafeatures()], which have no missing values,
#' take no `na`.
#'
#' The answer is the same, to the last bit, with and without `BPPARAM` and
#' `checkpoint`. With a `subset`, it is the rows (or the edges) of the whole
#' answer for these points.
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
#' The features of a `query` are matched by name, too. If it has more features
#' than `x`, the others are ignored.
#' @seealso [knn_search()] for the meaning of each option.
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
