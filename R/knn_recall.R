#' How many of the nearest neighbours an approximate search found
#'
#' Compares the neighbours that an approximate index gave (Annoy, HNSW, nearest
#' neighbour descent) with the exact ones, for each point and overall.
#'
#' A point's recall is the share of its k nearest neighbours that were found, k
#' being the number that `approx` has. Where several points tie for the k-th
#' place, each of them is right: with more than k columns in `exact`, all that
#' are as near as the k-th count. Ties that go on past the last column of
#' `exact` can't be told from it. So there is a range: `recall` counts what is
#' known to be right, and `at_most` takes what `exact` does not have as right
#' for the points whose ties may go on. Give `exact` a few more neighbours to
#' close it.
#'
#' @param approx,exact Neighbours, in any shape that [as_knn()] takes; the same
#'   points in the same order. `exact` needs distances, and at least as many
#'   neighbours as `approx`.
#' @param ... Must be empty.
#'
#' @returns A list of class `knn_recall` with a print method:
#'   * `recall`, `at_most`: overall, from 0 to 1, the mean over all neighbours;
#'   * `per_point`: a data frame with `recall` and `at_most` of each point, `NA`
#'     for points without neighbours in `exact`;
#'   * `k`, `num_points`: what was compared; `perfect`: the share of points all
#'     of whose neighbours are right.
#' @section Errors:
#' Of class `fsknn_argument_error`: neighbours in no shape that is known, of
#' different numbers of points, or with fewer exact ones.
#' @seealso [convert_knn()] for the shapes.
#' @export
#' @examples
#' x <- matrix(rnorm(200 * 6), nrow = 200)
#' exact <- find_knn(x, k = 6, metric = "euclidean")
#' approx <- list(index = exact$index[, 1:5], distance = exact$distance[, 1:5])
#' # as an approximate search might
#' approx$index[1:20, 5] <- exact$index[1:20, 6]
#' knn_recall(approx, exact)
#'
#' # RcppAnnoy's or RcppHNSW's: knn_recall(RcppHNSW::hnsw_knn(x, k = 6), exact)
knn_recall <- function(approx, exact, ...) {
  rlang::check_dots_empty()
  rlang::check_required(approx)
  rlang::check_required(exact)
  found <- as_rows(read_knn_shape(approx, arg = "approx"), "approx")
  truth <- as_rows(read_knn_shape(exact, arg = "exact"), "exact")
  check_recall(found, truth)
  k <- ncol(found$index)
  n <- nrow(found$index)
  rows <- rep(seq_len(n), k)
  # Exact in double for up to 9e7 points.
  largest <- max(n, found$index, truth$index, na.rm = TRUE)
  key <- function(rows, index) (rows - 1) * largest + index
  farthest <- truth$distance[, k]
  right <- truth$distance <= farthest & !is.na(truth$distance)
  known <- key(row(truth$index), truth$index)
  given <- as.vector(found$index)
  at <- key(rows, given)
  there <- !is.na(given) & !duplicated(at)
  hit <- there & at %in% known[right]
  ties_go_on <- truth$distance[, ncol(truth$distance)] == farthest &
    ncol(truth$index) < n - 1
  unknown <- there & !at %in% known & ties_go_on[rows]
  share <- function(which) {
    counts <- rowSums(matrix(which, n, k)) / k
    counts[is.na(farthest)] <- NA
    counts
  }
  per_point <- data.frame(
    recall = share(hit), at_most = pmin(share(hit | unknown), 1)
  )
  structure(
    list(
      recall = mean(per_point$recall, na.rm = TRUE),
      at_most = mean(per_point$at_most, na.rm = TRUE),
      perfect = mean(per_point$recall == 1, na.rm = TRUE),
      k = k, num_points = sum(!is.na(farthest)), per_point = per_point
    ),
    class = "knn_recall"
  )
}

as_rows <- function(nn, arg, call = caller_env()) {
  if (is.list(nn$index)) {
    abort_argument(
      "{.arg {arg}} must have as many neighbours for every point.", call
    )
  }
  nn
}

check_recall <- function(found, truth, call = caller_env()) {
  if (is.null(truth$distance)) {
    abort_argument("{.arg exact} must have distances.", call)
  }
  if (nrow(found$index) != nrow(truth$index)) {
    abort_argument(
      c(
        "{.arg approx} and {.arg exact} must be of the same points.",
        x = "They have {format_count(nrow(found$index))} and
             {format_count(nrow(truth$index))}."
      ),
      call
    )
  }
  if (ncol(found$index) < 1 || ncol(found$index) > ncol(truth$index)) {
    abort_argument(
      c(
        "{.arg exact} must have at least as many neighbours as {.arg approx},
         and {.arg approx} one or more.",
        x = "They have {ncol(truth$index)} and {ncol(found$index)} (points
             themselves not counted)."
      ),
      call
    )
  }
}

#' @method format knn_recall
#' @export
format.knn_recall <- function(x, ...) {
  percent <- function(share) paste0(format(100 * share, digits = 4), "%")
  upper <- if (x$at_most > x$recall) {
    paste0(" to ", percent(x$at_most), ", as ties are")
  }
  c(
    paste0(
      "Recall of ", tally(x$k, "neighbour"), " of ",
      tally(x$num_points, "point"), ": ", percent(x$recall), upper
    ),
    paste0("Points with all neighbours right: ", percent(x$perfect))
  )
}

#' @export
print.knn_recall <- function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}
