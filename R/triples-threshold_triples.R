#' All triples above a similarity
#'
#' Finds all triples of points whose Proportional Similarity of three (Joubert
#' et al. 2018) is at least `min_similarity`, and says of each what its pairs
#' alone tell: whether the three go together more than any two of them show.
#'
#' @details
#' The similarity of three rows a, b and c with values that are not negative is
#'
#' `3 (n_ab + n_ac + n_bc - n_abc) / (2 S)`,
#'
#' where `n_ab` is the sum over the features of `min(a, b)`, `n_abc` that of
#' `min(a, b, c)`, and `S` the sum of all values of the three. It is 1 for three
#' equal rows, large where two of the three are large in the same places, and
#' larger still where all three are. Here it is computed in its equal form
#' `1.5 (S - sum(max(a, b, c))) / S`, in double, in one order of operations:
#' the same bits for any order of the three points, any `path`, any stages and
#' any number of threads or GPUs. Its error is absolute, as small values are
#' differences of large ones: some 1e-16 times the square root of the number of
#' features, at worst times that number. `"sorensen"` is the same of 0/1 data.
#'
#' The three pairs alone say a good deal of a triple. With M of a pair the sum
#' of its maxima, the sum of the maxima of all three is at least the largest M,
#' and at most the least, over the three points p, of M_pq + M_pr - s_p (s: a
#' row's sum). `at_most` and `at_least` are the similarities that this leaves
#' possible: where between the two a triple lies is what pairs do not show.
#' (Where pairs share little it does not come up to `at_most`, since it is never
#' above `1.5 (n_ab + n_ac + n_bc) / S`.)
#'
#' A triple of at least t has pairs of at least 4 - 3 / t each. So above 0.75
#' it is a triangle of a threshold graph, and few triples need be looked at:
#' that is `path = "pairs"`. `"all"` looks at all of them, n (n - 1) (n - 2) / 6
#' times the number of features. `"auto"` chooses by a sample of the points:
#' [triple_plan()] and `verbose = TRUE` say what it showed.
#'
#' On GPUs all points stand on each of them: ten bytes a value. There `"pairs"`
#' leaves out, for each point, the others whose pair with it has no room for a
#' third, and looks at all pairs of those that are left: a GPU is faster at that
#' than at lists of triangles. All triples are looked at in halves, added up by
#' tensor cores; what that does not rule out is done again in double, there.
#'
#' @param x The points, as for [knn_search()], in memory. Row names (column
#'   names where `points = "columns"` or a `dimred` is taken), if there are any,
#'   name the points and must be unique.
#' @param min_similarity The least similarity that counts, one number between 0
#'   and 1.
#' @param metric `"proportional"` (default), for values that are not negative,
#'   or `"sorensen"`, for 0 and 1 (`FALSE` and `TRUE`).
#' @param query Names or numbers of points: only triples that have at least one
#'   of them are searched for and given. `NULL` (default): all triples.
#' @param stages A whole number: the search is cut into so many tasks, done one
#'   after the other, or by the workers of `BPPARAM`. `NULL` (default) is one,
#'   or with `BPPARAM` or `checkpoint` as many as are useful. The answer is the
#'   same.
#' @param stage Two whole numbers, `c(i, of)`: only stage i of so many. The
#'   triples of all stages are those of the whole search, each once:
#'   [rbind()][rbind.fsknn_triples] combines them.
#' @param path `"auto"` (default), `"pairs"` or `"all"`: see the Details of
#'   [threshold_triples()]. The answer is the same.
#' @param ... [Point options][point_options()] and [run
#'   options][run_options()], by name, or collected as `options = `. `constant
#'   = "isolate"` leaves points that are all zeros, which have no similarity,
#'   in no triple. Points must fit in `max_device_memory`. `max_memory` is a
#'   limit for the answer, for which all free memory may be used by default.
#' @param file,format Path of a file to which the triples are written during the
#'   search, so that they need not fit in memory, and its format: `"csv"`, the
#'   columns of the data frame with all digits; `"comet"`, CoMet's records; or
#'   `"comet_bytes"`, one byte for each of all triples, with
#'   `min_similarity = 0` and without `query`, `stages`, `stage`, `BPPARAM` and
#'   `checkpoint`, which the CPU computes (see [write_edges()]). The default is
#'   the ending of `file`, such as `.csv` or `.csv.gz`. `NULL` (default): no
#'   file.
#'
#' @returns A data frame of class `fsknn_triples` with each triple once, in the
#'   order of its points in `x`:
#'   * `from`, `to`, `third`: the points, as row names of `x` where it has any
#'     (character), else as row numbers (integer); in the order of `x`;
#'   * `similarity`: of the three, double;
#'   * `pair_from_to`, `pair_from_third`, `pair_to_third`: the similarities of
#'     the pairs, 1 less their distance in [threshold_graph()];
#'   * `at_least`, `at_most`: the bounds that the pairs give.
#'
#'   Its attribute `vertices` holds all points, and `checksum` a hexadecimal
#'   number of 64 bits over all triples and the bits of their similarities. It
#'   does not depend on their order; those of the stages of a search add up to
#'   that of the whole (modulo 2^64).
#'
#'   With `file` a list of class `fsknn_found_file` instead, with a print
#'   method: `file`, `format`, `what` (`"triple"`), `count` (how many),
#'   `metric`, `min_similarity`, `num_points`, `checksum`, `stage` and, with
#'   `query`, `num_queries`. The file has the order of the data frame, whatever
#'   the stages or workers; with `query` triples stand by the first of those
#'   points that they have, in the order of `x`. It is named when it is whole.
#'   With `BPPARAM` or `checkpoint` a task's triples must fit in memory: more
#'   `stages` make tasks smaller.
#' @section Errors:
#' As for [knn_search()]. The triples are counted before memory for them is
#' asked for: more than fit it, or than the 2^31 - 1 rows of a data frame, are a
#' `fsknn_size_error` with the fields `triples`, `most` (what there is room for)
#' and `fits` (a threshold with which there would be room; `NaN` where a search
#' by tasks can't say). Where a sample shows ten times too many they are not
#' counted. Those above the threshold that it names are, if that takes about a
#' minute or less; else the message says that it *may* fit.
#' @references
#' Joubert W, Nance J, Weighill D, Jacobson D (2018). Parallel accelerated
#' vector similarity calculations for genomics applications. *Parallel
#' Computing* 75: 130-145. \doi{10.1016/j.parco.2018.03.009}
#' @seealso [triple_plan()] for what a search will be like, [nearest_triples()]
#'   for the best triples of each point, [triple_histogram()] to choose a
#'   threshold, [as_igraph()] and [write_edges()] for graphs of triples,
#'   `vignette("triples")`.
#' @export
#' @examples
#' x <- matrix(rexp(60 * 12), nrow = 60)
#' rownames(x) <- paste0("gene", 1:60)
#' triples <- threshold_triples(x, min_similarity = 0.7)
#' triples
#' summary(triples)
#'
#' # those with one gene
#' threshold_triples(x, 0.7, query = "gene7")
#'
#' # into a file, as they are found
#' file <- tempfile(fileext = ".csv")
#' threshold_triples(x, 0.5, file = file)
#' nrow(read.csv(file))
#' unlink(file)
threshold_triples <- function(x, min_similarity,
                              metric = c("proportional", "sorensen"), ...,
                              query = NULL, stages = NULL, stage = NULL,
                              path = c("auto", "pairs", "all"), file = NULL,
                              format = NULL) {
  check_supplied(x)
  check_supplied(min_similarity)
  metric <- check_triple_metric(metric)
  options <- triple_options("threshold_triples", ...)
  path <- check_choice(path, triple_paths, "path")
  least <- check_similarity(min_similarity, options$metric)
  stages <- check_stages(stages, stage)
  sink <- check_found_file(file, format)
  options <- options_for_bytes(
    options, sink, least,
    c(
      query = !is.null(query), stages = !is.null(stages$tasks),
      stage = stages$stage[[2]] > 1
    ),
    current_env()
  )
  search <- new_triple_search(x, options, query, named = TRUE)
  if (identical(sink$format, "comet_bytes")) {
    return(write_bytes_found(search, sink, "triple", 3, current_env()))
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
