#' All triples above a similarity
#'
#' Finds all triples of points whose similarity of three is at least
#' `min_similarity`. This is Proportional Similarity (Joubert et al. 2018), or
#' the largest entry of the table of three loci's alleles. It also gives the
#' similarities of the three pairs. So one sees whether the three points have
#' more in common than their pairs show.
#'
#' @details
#' The Proportional Similarity of three rows a, b and c with non-negative values
#' is
#'
#' `3 (n_ab + n_ac + n_bc - n_abc) / (2 S)`,
#'
#' where `n_ab` is the sum over the features of `min(a, b)`, and `n_abc` that of
#' `min(a, b, c)`. `S` is the sum of all values of the three rows.
#'
#' The similarity is 1
#' for three equal rows. It is large if two of the three are large in the same
#' features, and larger if all three are. `"sorensen"` is the same for 0/1 data.
#'
#' It is computed in the equal form `1.5 (S - sum(max(a, b, c))) / S`, in
#' double, in one order of operations. The bits are the same for any order of
#' the three points, and for any `path`, stages, threads or GPUs. The error is
#' absolute, because small values are differences of large ones. It is about
#' 1e-16 times the square root of the number of features, and at most 1e-16
#' times that number.
#'
#' **Alleles.** `"ccc"` and `"duo"` compare genotypes, by the table of three
#' loci's alleles: see [metrics]. Two loci may be independent of each other and
#' of a third one, and all three together may not. A triple is at most as
#' similar as each of its pairs, but for rounding. So blocks of points are
#' skipped if none of their pairs with a point is similar enough, and all other
#' triples are compared. `path` is `"all"`.
#'
#' **Bounds from the pairs**, of Proportional Similarity. Let s be the sum of a
#' row, and M the sum of the maxima of a pair. The sum of the maxima of all
#' three rows is at least the largest M, which gives `at_most`. The sum is at
#' most M_pq + M_pr - s_p for each of the three points p. The smallest of these
#' gives `at_least`. A triple's position between them shows what its pairs do
#' not. If pairs have little in common, a triple cannot reach `at_most`, because
#' it is never above `1.5 (n_ab + n_ac + n_bc) / S`.
#'
#' **Path.** In a triple of similarity t or more, each pair has a similarity of
#' at least 4 - 3 / t. So above 0.75 each triple is a triangle of a threshold
#' graph, and few triples need to be compared. This is `path = "pairs"`. `"all"`
#' compares all triples: n (n - 1) (n - 2) / 6 times the number of features.
#' `"auto"` chooses by a sample of the points, which
#' [`plan = TRUE`][triple_plans] and `verbose = TRUE` report.
#'
#' **GPUs.** Each GPU holds all points, at about ten bytes a value. With
#' `"pairs"`, a GPU excludes, for each point, the other points whose pair with
#' it is too dissimilar for any triple. It then compares all pairs of the
#' remaining points, which is faster on a GPU than lists of triangles. With
#' `"all"`, tensor cores add up half-precision values as a filter. The triples
#' that the filter cannot rule out are computed again in double, on the GPU.
#'
#' For `"ccc"` and `"duo"`, tensor cores compute the sum of products of each
#' triple, which is a whole number and exact. This needs another 4 bytes for
#' each (ordered) pair of points, and GPUs of compute capability 8.0 or more.
#' Older GPUs are an error with `backend = "cuda"`, and `"auto"` takes the CPU.
#'
#' @param x The points, as for [knn_search()], in memory. Names of the points
#'   are the row names, or the column names with `points = "columns"` or
#'   `dimred`. If there are names, they must be unique.
#' @param min_similarity The smallest similarity to report, one number between 0
#'   and 1, or a larger one with an `allele_table` (see [point_options()]).
#' @param metric `"proportional"` (default), for non-negative values, or
#'   `"sorensen"`, for 0 and 1 (`FALSE` and `TRUE`). For genotypes: `"ccc"` (0,
#'   1 or 2 copies of an allele) or `"duo"` (0 and 1).
#' @param subset Points, as for [knn_search()]: only triples that contain at
#'   least one of them are found. `NULL` (default): all triples.
#' @param stages A whole number: the search is divided into this number of
#'   tasks. They run one after the other, or on the workers of `BPPARAM`. `NULL`
#'   (default) is one task, or with `BPPARAM` or `checkpoint` as many as are
#'   useful. The answer is the same.
#' @param stage Two whole numbers, `c(i, of)`: only stage i of `of` stages. The
#'   stages together give each triple of the whole search once, and
#'   [rbind()][rbind.fsknn_triples] combines them.
#' @param path `"auto"` (default), `"pairs"` or `"all"`: see the Details of
#'   [threshold_triples()]. The answer is the same. `"pairs"` is an error for
#'   `"ccc"` and `"duo"`.
#' @param ... [Point options][point_options()] and [run options][run_options()],
#'   by name, or collected as `options = `. With `constant = "isolate"`, points
#'   that are all zeros are in no triple, because they have no similarity.
#'   Points must fit in `max_device_memory`. `max_memory` is a limit for the
#'   answer, which may use all free memory by default.
#' @param file Path of a file to which the triples are written during the
#'   search, so that they need not fit in memory. `NULL` (default): no file.
#' @param format Format of `file`, by default its ending, such as `.csv` or
#'   `.csv.gz`. `"csv"` has the columns of the data frame with all digits, and
#'   `"comet"` has CoMet's records. `"comet_bytes"` has one byte for each
#'   triple, computed by the CPU (see [write_edges()]). It needs `min_similarity
#'   = 0`, and does not allow `subset`, `stages`, `stage`, `BPPARAM` or
#'   `checkpoint`.
#' @param plan `TRUE` returns a plan of the search instead of triples: see
#'   [triple_plans]. `FALSE` by default.
#'
#' @returns A data frame of class `fsknn_triples` with each triple once, in the
#'   order of its points in `x`:
#'   * `from`, `to`, `third`: the points, as row names of `x` if it has any
#'     (character), otherwise as row numbers (integer); in the order of `x`;
#'   * `similarity`: the similarity of the three, double;
#'   * `alleles`: for `"ccc"` and `"duo"` only, the entry of the table of
#'     alleles (a factor). `"110"` is the counted alleles of `from` and `to`
#'     with the other allele of `third`;
#'   * `pair_from_to`, `pair_from_third`, `pair_to_third`: the similarities of
#'     the pairs, 1 less their distance in [threshold_graph()];
#'   * `at_least`, `at_most`: the bounds that the pairs imply. `"ccc"` and
#'     `"duo"` have none.
#'
#'   The attribute `vertices` holds all points. The attribute `checksum` is a
#'   hexadecimal number of 64 bits over all triples and the bits of their
#'   similarities. It does not depend on the order of the triples. The checksums
#'   of all stages add up to that of the whole search (modulo 2^64).
#'
#'   With `file`, the result is a list of class `fsknn_found_file` with a print
#'   method. Its elements are `file`, `format`, `what` (`"triple"`), `count`,
#'   `metric`, `min_similarity`, `num_points`, `checksum` and `stage`. With
#'   `subset`, `num_subset` is added.
#'
#'   The order in the file is that of the data frame for any number of stages or
#'   workers. With `subset`, triples are ordered by the first point of the
#'   subset that they contain, in the order of `x`. The file has another name
#'   until it is complete. With `BPPARAM` or `checkpoint`, the triples of a task
#'   must fit in memory: more `stages` make tasks smaller.
#' @section CoMet: Values are those of CoMet in double precision, for all four
#' metrics. Records for CoMet's programs are written with `format = "comet"`
#' (see [write_edges()]). `vignette("triples")` translates its options. CoMet
#' also has the following, which are not available here:
#' * triples of loci with missing genotypes (`--sparse`). Pairs can have them;
#' * all entries of a table above a threshold, and thresholds that depend on the
#'   alleles. Here, a triple has its largest entry;
#' * single precision, and its checksum. The attribute `checksum` is another sum
#'   for the same purpose.
#' @section Errors: As for [knn_search()]. The triples are counted before memory
#' is allocated for them. An answer that does not fit in memory, or in the
#' 2^31 - 1 rows of a data frame, is a `fsknn_size_error`. Its fields are
#' `triples`, `most` (the number that fits) and `fits`, a threshold with which
#' the answer would fit. `fits` is `NaN` if a search by tasks cannot compute it.
#'
#' If a sample shows ten times too many triples, they are not counted. The
#' triples above the suggested threshold are counted if that takes about a
#' minute or less. Otherwise, the message says that the answer *may* fit.
#' @references
#' Joubert W, Nance J, Weighill D, Jacobson D (2018). Parallel accelerated
#' vector similarity calculations for genomics applications. *Parallel
#' Computing* 75: 130-145. \doi{10.1016/j.parco.2018.03.009}
#' @seealso [triple_plans] for `plan = TRUE`, [nearest_triples()],
#'   [triple_histogram()] to choose a threshold, [as_igraph()] and
#'   [write_edges()] for graphs of triples, `vignette("triples")`.
#' @export
#' @examples
#' x <- matrix(rexp(60 * 12), nrow = 60)
#' rownames(x) <- paste0("gene", 1:60)
#' triples <- threshold_triples(x, min_similarity = 0.7)
#' triples
#' summary(triples)
#'
#' # triples of loci, by the alleles that go together
#' loci <- matrix(rbinom(30 * 50, 2, 0.3), nrow = 30)
#' threshold_triples(loci, 0.3, metric = "ccc")
#'
#' # those with one gene
#' threshold_triples(x, 0.7, subset = "gene7")
#'
#' # into a file, as they are found
#' file <- tempfile(fileext = ".csv")
#' threshold_triples(x, 0.5, file = file)
#' nrow(read.csv(file))
#' unlink(file)
threshold_triples <- function(x, min_similarity,
                              metric = c(
                                "proportional", "sorensen", "ccc", "duo"
                              ),
                              ...,
                              subset = NULL, stages = NULL, stage = NULL,
                              path = c("auto", "pairs", "all"), file = NULL,
                              format = NULL, plan = FALSE) {
  check_supplied(x)
  check_supplied(min_similarity)
  metric <- check_triple_metric(metric)
  options <- triple_options("threshold_triples", ...)
  path <- check_triple_path(path, metric)
  least <- check_similarity(min_similarity, options$metric)
  stages <- check_stages(stages, stage)
  if (check_flag(plan, "plan")) {
    check_plan_alone(
      file = file, format = format, stages = stages$tasks,
      BPPARAM = options$long$workers, checkpoint = options$long$folder
    )
  }
  sink <- check_found_file(file, format)
  options <- options_for_bytes(
    options, sink, least,
    c(
      subset = !is.null(subset), stages = !is.null(stages$tasks),
      stage = stages$stage[[2]] > 1
    ),
    current_env()
  )
  search <- new_triple_search(x, options, subset, named = TRUE)
  if (identical(sink$format, "comet_bytes")) {
    return(write_bytes_found(search, sink, "triple", 3, current_env()))
  }
  if (plan) {
    search <- ask_triples(
      search, "threshold", stages, least = least, path = path
    )
    return(plan_triples(search, least, current_env()))
  }
  search <- ask_triples(
    search, "threshold", stages, least = least, path = path,
    to_file = !is.null(sink), most = most_triples(search, !is.null(sink))
  )
  if (is.null(sink)) {
    finish_triples(run_triples(search), search)
  } else {
    write_triples(search, sink)
  }
}

# A plan searches for nothing, so that these have no use.
check_plan_alone <- function(..., call = caller_env()) {
  given <- names(Filter(Negate(is.null), list(...)))
  if (length(given) > 0) {
    abort_argument(
      "{.arg {given[[1]]}} can't be used with {.code plan = TRUE}.", call
    )
  }
}
