#' The k nearest neighbours of other points
#'
#' Finds, for each row of `query`, the k rows of `x` with the smallest distance,
#' by the same rules as [knn_search()]. A point of `query` that is also in `x`
#' is not excluded. To exclude it, use `subset` of [knn_search()].
#'
#' @inheritParams knn_search
#' @param x The points to search: as for [knn_search()]. One row is enough.
#' @param query The points whose neighbours are returned, with the features
#'   (columns) of `x`. It may be anything that `x` can be. If both have names,
#'   features are matched by name, in any order, and those that `x` does not
#'   have are ignored. Otherwise both must have the same features in the same
#'   order. `points`, `assay` and `dimred` apply to both, but only `points`
#'   applies to a plain matrix beside a container.
#' @param k Number of neighbours of each point of `query`, a whole number from 1
#'   to the number of points of `x`. It may also be one number for each point,
#'   from 0: then `index` and `distance` are lists.
#'
#' @param block `NULL` (default), or the block of each point of `x`, as for
#'   [knn_search()]. Each point of `query` then has its k nearest in each block.
#'
#' @returns With `output`, the value of [read_knn()]. Otherwise a list of
#'   class `fsknn_neighbours`, which prints as a summary. It holds two matrices
#'   with one row for each point of `query`, in its order, and k columns, the
#'   nearest first:
#'   * `index`: integer, the neighbours' row numbers in `x` (from 1);
#'   * `distance`: double, their distances.
#'
#'   With `block` they have k columns for each block, in the order of its
#'   levels. Rows have the names of `query`, if it has any. With
#'   `constant = "isolate"`, the rows of isolated points of `query` are `NA`,
#'   and isolated points of `x` are never found.
#' @inheritSection knn_search Rounding
#' @inheritSection knn_search Errors
#' @inherit knn_search references
#' @seealso [knn_index()] for a few queries at a time, [knn_search()] for the
#'   points among themselves, [nearest_to()] for one of them.
#' @export
#' @examples
#' x <- matrix(rnorm(200 * 12), nrow = 200)
#' outcome <- matrix(rnorm(12), nrow = 1) # one more row of 12 samples
#' knn_query(x, outcome, k = 5)$index
knn_query <- function(x, query, k = 20, metric = NULL, sign = "signed", ...,
                      block = NULL, output = NULL) {
  check_supplied(x)
  check_query(query)
  output <- check_output(output)
  options <- verb_options("knn_query", ...)
  answer <- query_as_before(x, query, options, k, block, output)
  if (is.null(answer)) {
    search <- new_search(x, options, query, k = k, block = block)
    answer <- answer_of(search, output)
    if (is.null(output)) {
      remember_query(x, query, options, k, block, search, answer)
    }
  }
  answer
}

# NULL is not a query, and does not mean all points either.
check_query <- function(query, call = caller_env()) {
  check_supplied(query, call = call)
  if (is.null(query)) {
    abort_input(query, "query", call)
  }
}
