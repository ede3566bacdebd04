#' What is nearest to one point
#'
#' The k nearest neighbours of one row, such as a clinical outcome added by
#' [add_phenotype()], without the graph of all rows. They are those that
#' [knn_search()] gives for that row, to the last bit.
#'
#' Rows are read, prepared, compared with the one, and dropped, so that little
#' memory is needed: of [metafeatures()] no more than a block of rows is there
#' at any time. It is one pass over them, of which there is nothing to be dealt
#' out (`BPPARAM`) or to be kept (`checkpoint`).
#'
#' @inheritParams knn_search
#' @param x The points, as for [knn_search()].
#' @param point The point: the name of a row of `x`, or its number.
#' @param k Number of neighbours, a whole number from 1 to the number of other
#'   points.
#' @param constant What to do with other points for which the metric has no
#'   value: see [knn_search()]. The point itself must have one.
#'
#' @returns A data frame with k rows (fewer where `na = "pairwise"` leaves fewer
#'   neighbours), the nearest first, and the columns
#'   * `rank`: 1 to k;
#'   * `name`: of the row, its number where `x` has no row names;
#'   * `index`: the row's number in `x`;
#'   * `distance`: double;
#'   * `correlation`: for correlations only, the signed r, whatever `sign` is;
#'   * `block`: with `block` only, that of the neighbour. There are k rows for
#'     each block then.
#'
#'   Of [metafeatures()] that are left out, the attribute `left_out` tells.
#' @inheritSection knn_search Errors
#' @inheritSection knn_search Missing values
#' @inherit knn_search references
#' @seealso [knn_query()] for points that are not in `x`, [knn_graph()] for all.
#' @export
#' @examples
#' x <- matrix(rnorm(200 * 12), nrow = 200)
#' rownames(x) <- paste0("gene", 1:200)
#' x <- add_phenotype(x, rexp(12), "years to relapse")
#' nearest_to(x, "years to relapse", k = 5)
#' # by |r|
#' nearest_to(x, "years to relapse", k = 5, sign = "absolute")
nearest_to <- function(x, point, k = 20, metric = "pearson", sign = "signed",
                       ..., constant = c("error", "isolate"),
                       backend = c("auto", "cuda", "cpu"), devices = NULL,
                       num_threads = NULL, max_device_memory = NULL,
                       progress = NULL, verbose = FALSE,
                       points = c("rows", "columns"), assay = NULL,
                       dimred = NULL, weights = NULL, max_memory = NULL,
                       na = c("error", "pairwise", "mean"), min_pairs = NULL,
                       block = NULL, between = FALSE) {
  check_no_more(...)
  rlang::check_required(x)
  rlang::check_required(point)
  search <- new_search(
    x, verb_options(), k = k, point = point, correlation = TRUE,
    block = block, between = between
  )
  found <- run_search(search)
  there <- !is.na(found$index[1, ])
  index <- found$index[1, there]
  columns <- list(
    rank = rep_len(seq_len(search$request$k), ncol(found$index))[there],
    name = point_names(search$points, index) %||% as.character(index),
    index = index,
    distance = found$distance[1, there]
  )
  if (!is.null(found$correlation)) {
    columns$correlation <- found$correlation[1, there]
  }
  if (!is.null(search$request$blocks)) {
    columns$block <- block_of_points(search$request$blocks, index)
  }
  add_left_out(
    as.data.frame(columns, stringsAsFactors = FALSE), search
  )
}

# The number of the one row that is meant.
find_point <- function(points, point, arg = "point", call = caller_env()) {
  num_points <- nrow(points$values)
  if (!rlang::is_string(point)) {
    return(check_whole_number(point, arg, 1, num_points, call = call))
  }
  if (is_metafeatures(points$values)) {
    return(find_metafeatures(points$values, point, call = call))
  }
  side <- point_side(points)
  at <- which(points$names == point)
  if (length(at) == 1) {
    return(at)
  }
  if (length(at) > 1) {
    where <- first_few(at)
    abort_argument(
      c(
        "{.arg {arg}} must name one {side} of {.arg x}.",
        x = "{tools::toTitleCase(side)}s {where} are called {.val {point}}.",
        i = "Give the {side}'s number."
      ),
      call
    )
  }
  nearest <- if (length(points$names) > 0) nearest_spelling(point, points$names)
  abort_argument(
    c(
      "{.arg {arg}} must be the name of a {side} of {.arg x}, or its number.",
      x = if (is.null(points$names)) {
        "{.arg x} has no {side} names."
      } else {
        "There is no {side} {.val {point}}."
      },
      i = if (!is.null(nearest)) "Did you mean {.val {nearest}}?"
    ),
    call
  )
}
