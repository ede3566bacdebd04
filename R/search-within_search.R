#' All neighbours within a distance
#'
#' `within_search()` finds, for each row of a matrix, all other rows whose
#' distance is at most `distance`; `within_query()` finds them for the rows of
#' `query`. Distances are those of [knn_search()], to the last bit, and so is
#' the test: a pair whose distance equals the limit counts.
#'
#' The pairs are counted first, and only then is memory for them asked for.
#' Where they would not fit, the call stops with an error that says how many
#' there are and what distance would fit.
#'
#' With `BPPARAM` or `checkpoint` pairs are searched for and counted task by
#' task: a sample of all pairs is looked at first, so that far too many are
#' refused at once, and somewhat too many when the tasks have filled the room.
#' The distance that would fit is then a careful estimate.
#'
#' @inheritParams knn_search
#' @param distance The largest distance that counts: one number, or one for each
#'   point whose neighbours are asked for (of `x`, `subset` or `query`), in
#'   their order or with their names. Not below 0, but under `"inner_product"`.
#'
#' @param constant What to do with points for which the metric has no value (see
#'   [knn_search()]): `"error"` (default), or `"isolate"`, which keeps them as
#'   isolated points. An isolated point has no neighbours (in lists: empty
#'   vectors), and is nobody's neighbour.
#' @param max_memory The most memory to use for each of two: the answer, and an
#'   `x` (and `query`) that is read by blocks: bytes, or a string such as
#'   `"4 GiB"`. `NULL` (default) takes `getOption("fsknn.max_memory")` where
#'   that is set, else all that is free for the answer, and a third of it for
#'   what is read.
#' @param verbose Tell the size of the search, start, end and seconds? `FALSE`
#'   by default.
#'
#' @returns A list of class `knn_neighbours`, whose print is a summary, of two
#'   lists with one entry for each point, in the order of `x` (of `subset`, of
#'   `query`), each in order of (distance, index):
#'   * `index`: integer vectors, the neighbours' row numbers in `x` (from 1);
#'   * `distance`: double vectors, their distances.
#'
#'   A point is not its own neighbour, but a point of `query` that is also in
#'   `x` is found. Isolated points (see `constant`) have none: empty vectors.
#'   That is the form of BiocNeighbors' `findNeighbors()`, which does count a
#'   point itself.
#' @section Errors:
#' As for [knn_search()]. Too many pairs for the memory that is free are a
#' `fsknn_size_error` with the fields `pairs`, `most` (what there is room for)
#' and `fits` (a distance within which there would be room for all).
#' @section Missing values:
#' `na` and `min_pairs` mean what they mean in [knn_search()], whose help has
#' the section "Missing values": the distances are the same, to the last bit.
#' Under `na = "pairwise"` a pair with fewer than `min_pairs` samples in common,
#' or with a row that does not vary on them, is within no distance. Where values
#' are missing, such pairs are found on the CPU only: `backend = "auto"` takes
#' it, and says so once a session, `"cuda"` is an error.
#' @inheritSection knn_search Covariates
#' @inheritSection knn_search Workers
#' @inheritSection knn_search Checkpoints
#' @inherit knn_search references
#' @seealso [search_options] for which verb has which options,
#'   [threshold_graph()] for an edge data frame of all pairs above a
#'   correlation, [knn_search()] for a number of neighbours.
#' @export
#' @examples
#' x <- matrix(rnorm(200 * 12), nrow = 200)
#' near <- within_search(x, distance = 0.4) # correlations of at least 0.6
#' near
#' lengths(near$index)[1:10]
#' near$index[[1]]
#'
#' within_query(x, x[1:2, ], distance = 3, metric = "euclidean")$index
#'
#' # missing values: each pair over the samples that both have
#' x[sample(length(x), 100)] <- NA
#' within_search(x, 0.2, na = "pairwise", min_pairs = 8)$index[1:3]
within_search <- function(x, distance, metric = NULL, sign = "signed", ...,
                          constant = c("error", "isolate"),
                          backend = c("auto", "cuda", "cpu"), devices = NULL,
                          num_threads = NULL, chunk_size = NULL,
                          max_device_memory = NULL, progress = NULL,
                          verbose = FALSE, points = c("rows", "columns"),
                          assay = NULL, dimred = NULL, subset = NULL,
                          BPPARAM = NULL, checkpoint = NULL, weights = NULL,
                          max_memory = NULL,
                          na = c("error", "pairwise", "mean"),
                          min_pairs = NULL, adjust = NULL, data = NULL) {
  check_no_more(...)
  check_supplied(x)
  check_supplied(distance)
  search <- new_search(x, verb_options(), subset = subset)
  search <- ask_within(search, check_distance(distance, search))
  index_and_distance(run_search(search), search)
}

#' @rdname within_search
#' @inheritParams knn_query
#' @export
within_query <- function(x, query, distance, metric = NULL,
                         sign = "signed", ...,
                         constant = c("error", "isolate"),
                         backend = c("auto", "cuda", "cpu"), devices = NULL,
                         num_threads = NULL, chunk_size = NULL,
                         max_device_memory = NULL, progress = NULL,
                         verbose = FALSE, points = c("rows", "columns"),
                         assay = NULL, dimred = NULL, BPPARAM = NULL,
                         checkpoint = NULL, weights = NULL, max_memory = NULL,
                         na = c("error", "pairwise", "mean"),
                         min_pairs = NULL, adjust = NULL, data = NULL) {
  check_no_more(...)
  check_supplied(x)
  check_query(query)
  check_supplied(distance)
  search <- new_search(x, verb_options(), query)
  search <- ask_within(search, check_distance(distance, search))
  index_and_distance(run_search(search), search)
}

check_distance <- function(distance, search, call = caller_env()) {
  num_rows <- search$num_rows
  distance <- match_names(
    distance, names_asked(search, subset = search$request$subset), "distance",
    "points", call
  )
  plain <- is.numeric(distance) && !is.object(distance) &&
    is.null(dim(distance))
  if (!plain || !length(distance) %in% c(1L, num_rows)) {
    given <- describe_value(distance)
    abort_argument(
      c(
        "{.arg distance} must be one number, or one for each point, not
         {given}.",
        i = if (plain) {
          "Neighbours are asked for of {tally(num_rows, \"point\")}."
        }
      ),
      call
    )
  }
  below_zero <- search$options$metric$below_zero
  bad <- is.na(distance) | (distance < 0 & !below_zero)
  if (any(bad)) {
    where <- first_few(
      vapply(utils::head(distance[bad], 3), format_bound, ""), sum(bad)
    )
    abort_argument(
      c(
        "{.arg distance} must not be
         {if (!below_zero) \"negative or \"}missing.",
        x = "It is {where}."
      ),
      call
    )
  }
  as.double(distance)
}
