#' All neighbours within a distance
#'
#' `within_search()` finds, for each row of a matrix, all other rows whose
#' distance is at most `distance`. `within_query()` finds them for the rows of
#' `query`. Distances are those of [knn_search()], to the last bit. A pair whose
#' distance equals the limit counts.
#'
#' The pairs are counted before memory for them is allocated. If they would not
#' fit, the call stops with an error that says how many there are and what
#' distance would fit.
#'
#' With `BPPARAM` or `checkpoint`, pairs are found and counted task by task. A
#' sample of all pairs is examined first, so that far too many pairs are an
#' error at once. Slightly too many are an error when the tasks have filled the
#' memory. The distance that would fit is then a conservative estimate.
#'
#' @inheritParams knn_search
#' @param distance The largest distance of a neighbour: one number, or one for
#'   each point (of `x`, `subset` or `query`), in their order or with their
#'   names. It must not be below 0, except under `"inner_product"`.
#'
#' @param ... [Point options][point_options()] and [run options][run_options()],
#'   by name, or collected as `options = `. With `constant = "isolate"`, points
#'   for which the metric has no value have empty vectors. `max_memory` is also
#'   a limit for the answer, for which all free memory may be used by default.
#'
#' @returns A list of class `fsknn_neighbours`, which prints as a summary. It
#'   holds two lists with one entry for each point, in the order of `x` (of
#'   `subset`, of `query`), each in order of (distance, index):
#'   * `index`: integer vectors, the neighbours' row numbers in `x` (from 1);
#'   * `distance`: double vectors, their distances.
#'
#'   A point is not its own neighbour, but a point of `query` that is also in
#'   `x` is found. Isolated points (see `constant`) have empty vectors. This is
#'   the form of BiocNeighbors' `findNeighbors()`, which however includes the
#'   point itself.
#' @section Errors:
#' Errors are those of [knn_search()]. Too many pairs for the free memory are a
#' `fsknn_size_error`. Its fields are `pairs`, `most` (the number that fits) and
#' `fits` (a distance within which all would fit).
#' @section Missing values:
#' For the options `na` and `min_pairs`, see "Missing values" in
#' [point_options()]. Distances are those of [knn_search()], to the last bit.
#' With `na = "pairwise"`, some pairs are never neighbours. They have fewer than
#' `min_pairs` samples in common, or, under a correlation, a row that does not
#' vary on these.
#'
#' If values are missing, only the CPU compares pairs over common samples.
#' `backend = "auto"` uses it and says so once in a session; `"cuda"` is an
#' error.
#' @inherit knn_search references
#' @seealso
#'   * [point_options()] and [run_options()] for the options of all functions;
#'   * [threshold_graph()] for an edge data frame of all pairs above a
#'     correlation;
#'   * [knn_search()] for a fixed number of neighbours.
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
                          subset = NULL) {
  check_supplied(x)
  check_supplied(distance)
  search <- new_search(x, verb_options("within_search", ...), subset = subset)
  search <- ask_within(search, check_distance(distance, search))
  index_and_distance(run_search(search), search)
}

#' @rdname within_search
#' @inheritParams knn_query
#' @export
within_query <- function(x, query, distance, metric = NULL, sign = "signed",
                         ...) {
  check_supplied(x)
  check_query(query)
  check_supplied(distance)
  search <- new_search(x, verb_options("within_query", ...), query)
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
