#' Recall of approximate neighbours
#'
#' Recall is the share of the true nearest neighbours that a search found.
#' `knn_recall()` compares approximate neighbours (of Annoy, HNSW, nearest
#' neighbour descent) with exact ones, for each point and overall.
#'
#' The recall of a point is the number of its k nearest neighbours that `approx`
#' contains, divided by k. Here k is the number of neighbours that `approx` has
#' for this point. The order of neighbours and the distances in `approx` do not
#' matter.
#'
#' @section Ties:
#' Several points may tie for the k-th place, at the same distance. Then each of
#' them is a right answer. To recognise them, `exact` needs more than k columns:
#' its further neighbours at the distance of the k-th are counted as right, too.
#' (No more are counted than there are places for them.)
#'
#' If the last column of `exact` ties with the k-th, points outside `exact` may
#' tie as well. Then the recall lies in a range. `recall` is its lower end: it
#' counts only neighbours that are in `exact`. `at_most` is its upper end: it
#' counts every neighbour that could be tied. A few more columns in `exact`
#' usually make both equal.
#'
#' @section Points, queries and subsets:
#' Points are matched by name if both sides have names, and the result is in the
#' order of `exact`. Otherwise both must have the same points in the same order.
#' Rows can also be queries, or a `subset` of the points. Then an index is not
#' the number of a row. Say so with `queries = TRUE`, which is only needed if no
#' index in `exact` is above the number of rows.
#'
#' @param approx Neighbours of an approximate search, in any shape that
#'   [as_knn()] takes, or shards ([read_knn()]), which are compared by
#'   blocks of rows.
#' @param exact Exact neighbours of the same points, in the same shapes, for
#'   example from [knn_search()]. They need distances, and at least as many
#'   neighbours of each point as `approx`. If a row ends with missing
#'   neighbours, the point has no others.
#' @param ... Must be empty.
#' @param queries Are the rows queries, or only some of the points (default:
#'   `FALSE`)?
#'
#' @returns A list of class `fsknn_recall`, which prints as a summary:
#'   * `recall`, `at_most`: the share over all neighbours, from 0 to 1. The two
#'     differ only if ties are unknown: see "Ties";
#'   * `per_point`: a data frame with `recall` and `at_most` of each point. They
#'     are `NA` for points without neighbours in `exact`;
#'   * `perfect`: the share of points with a recall of 1;
#'   * `k`: the number of neighbours, or one number for each point if they
#'     differ;
#'   * `num_points`: the number of points compared;
#'   * `metric`: the metric of `exact`, or `NULL` if `exact` does not remember
#'     its search.
#' @section Errors:
#' An error of class `fsknn_argument_error` means that
#' * neighbours have an unknown shape, or are for different numbers of points;
#' * a point has fewer neighbours in `exact` than in `approx`;
#' * a point is its own neighbour, although rows are points;
#' * an index is not the number of a point;
#' * distances in `exact` are missing or below 0.
#' @seealso [knn_verify()] to check exact neighbours, [as_knn()] for the
#'   shapes.
#' @export
#' @examples
#' x <- matrix(rnorm(200 * 6), nrow = 200)
#' exact <- knn_search(x, k = 6, metric = "euclidean")
#'
#' # 5 neighbours of each point, the last of them wrong for 20 points
#' approx <- list(index = exact$index[, 1:5], distance = exact$distance[, 1:5])
#' approx$index[1:20, 5] <- exact$index[1:20, 6]
#' found <- knn_recall(approx, exact)
#' found
#' table(found$per_point$recall)
#'
#' # RcppAnnoy's or RcppHNSW's: knn_recall(RcppHNSW::hnsw_knn(x, k = 6), exact)
knn_recall <- function(approx, exact, ..., queries = FALSE) {
  check_no_more(...)
  check_supplied(approx)
  check_supplied(exact)
  queries <- check_flag(queries, "queries")
  hits <- if (is_knn_shards(approx) || is_knn_shards(exact)) {
    hits_by_blocks(approx, exact, queries)
  } else {
    given <- read_two_shapes(approx, exact, queries)
    check_recall(given$approx, given$exact)
    count_hits(given$approx, given$exact)
  }
  share <- function(count) ifelse(hits$k > 0, count / hits$k, NA)
  per_point <- data.frame(
    recall = share(hits$right), at_most = share(hits$most)
  )
  sizes <- unique(hits$size)
  structure(
    list(
      recall = sum(hits$right) / sum(hits$k),
      at_most = sum(hits$most) / sum(hits$k),
      perfect = mean(per_point$recall == 1, na.rm = TRUE),
      k = if (length(sizes) == 1) sizes else hits$size,
      num_points = sum(hits$k > 0), per_point = per_point,
      metric = metric_of_search(exact)
    ),
    class = "fsknn_recall"
  )
}

# Returns "pearson (signed)", or NULL for neighbours without a record.
metric_of_search <- function(nn) {
  facts <- searched_of(nn)
  if (!is.null(facts$metric)) {
    describe_metric(
      facts$metric, facts$sign, facts$weighted, facts$num_covariates
    )
  }
}

# Returns for each row the number of its true neighbours to find (k), and of the
# given ones (size). `right` and `most` are the minimum and maximum number of
# correct ones.
count_hits <- function(approx, exact) {
  found <- in_places(approx)
  truth <- in_places(exact)
  nearest <- count_nearest(truth, found$size)
  n <- length(found$size)
  # The key is exact in double for up to 9e7 points.
  largest <- max(0L, found$index, truth$index, na.rm = TRUE)
  key <- function(places) (places$row - 1) * largest + places$index
  at <- key(found)
  there <- !is.na(found$index) & !duplicated(at)
  place <- match(at, key(truth))
  distance <- truth$distance[place]
  farthest <- nearest$farthest[found$row]
  in_row <- function(which) tabulate(found$row[which(there & which)], n)
  nearer <- in_row(distance < farthest)
  tied <- in_row(distance == farthest)
  unknown <- in_row(is.na(place) & nearest$ties_go_on[found$row])
  # Only this many of the tied points can be among the nearest at once.
  room <- nearest$k - nearest$num_nearer
  data.frame(
    k = nearest$k, size = found$size, right = nearer + pmin(tied, room),
    most = nearer + pmin(tied + unknown, room)
  )
}

read_two_shapes <- function(approx, exact, queries, call = caller_env()) {
  given <- list(
    approx = take_neighbours(approx, "approx", call),
    exact = take_neighbours(exact, "exact", call)
  )
  check_approx_indices(given$approx, given$exact, queries, call)
  largest <- max(largest_index(given$approx), largest_index(given$exact))
  given <- Map(
    function(nn, arg) leave_out_self(nn, queries, arg, call, largest),
    given, names(given)
  )
  are_queries <- queries || largest > num_rows_of(given$exact)
  given$approx <- same_order(given$approx, given$exact, are_queries, call)
  given
}

# Returns `approx` with its rows in the order of `exact`, if both have names. If
# the rows are the points themselves, the neighbours are renumbered as in
# `exact`.
same_order <- function(approx, exact, are_queries, call) {
  at <- match_order(
    approx$names, exact$names, words_of_graphs("exact", "approx"), call
  )
  if (is.null(at)) {
    return(approx)
  }
  renumber <- function(index) if (are_queries) index else match(index, at)
  if (is.list(approx$index)) {
    approx$index <- lapply(approx$index[at], renumber)
    approx$distance <- approx$distance[at]
  } else {
    approx$index <- approx$index[at, , drop = FALSE]
    approx$index[] <- renumber(approx$index)
    if (!is.null(approx$distance)) {
      approx$distance <- approx$distance[at, , drop = FALSE]
    }
  }
  approx$names <- exact$names
  approx
}

# Examines the first k true neighbours of each row, or all if there are fewer.
# Returns their number, the distance of the last, the number of nearer ones, and
# whether unknown points may be equally near.
count_nearest <- function(truth, k) {
  n <- length(k)
  there <- which(!is.na(truth$index) & !is.na(truth$distance))
  row <- truth$row[there]
  distance <- truth$distance[there]
  # Neighbours within a distance may be in any order.
  in_order <- distance[order(row, distance)]
  count <- tabulate(row, n)
  k <- pmin(k, count)
  before <- cumsum(count) - count
  at <- function(rank) in_order[ifelse(rank > 0, before + rank, NA)]
  farthest <- at(k)
  list(
    k = k, farthest = farthest,
    num_nearer = tabulate(row[which(distance < farthest[row])], n),
    # Empty places show that there are no other neighbours.
    ties_go_on = at(count) == farthest & count == truth$size
  )
}

check_recall <- function(found, truth, call = caller_env()) {
  if (is.null(truth$distance)) {
    abort_argument("{.arg exact} must have distances.", call)
  }
  check_true_distances(in_places(truth), call)
  check_recall_sizes(row_sizes(found), row_sizes(truth), call)
}

# `k` and `exact_k` are the numbers of neighbours of each point.
check_recall_sizes <- function(k, exact_k, call) {
  num_found <- length(k)
  num_true <- length(exact_k)
  if (num_found != num_true) {
    abort_argument(
      c(
        "{.arg approx} and {.arg exact} must be of the same points.",
        x = "They have {format_count(num_found)} and {format_count(num_true)}."
      ),
      call
    )
  }
  if (all(exact_k == 0)) {
    abort_argument("{.arg exact} must have neighbours.", call)
  }
  short <- which(exact_k < k)
  if (length(short) > 0) {
    count <- length(short)
    first <- short[[1]]
    abort_argument(
      c(
        "{.arg exact} must have at least as many neighbours as {.arg approx}.",
        x = "{format_count(count)} of {tally(num_true, \"point\")}
             {cli::qty(count)}{?has/have} fewer: point {first} has
             {exact_k[[first]]}, not {k[[first]]} (points themselves not
             counted)."
      ),
      call
    )
  }
  if (all(k == 0)) {
    abort_argument("{.arg approx} must have neighbours.", call)
  }
}

# Distances of neighbours must be known and not below 0. `before` is the number
# of rows before these.
check_true_distances <- function(places, call, before = 0) {
  bad <- which(
    !is.na(places$index) & (is.na(places$distance) | places$distance < 0)
  )
  count <- length(bad)
  if (count == 0) {
    return(invisible())
  }
  shown <- utils::head(bad, 3)
  where <- first_few(
    paste(places$distance[shown], "of point", places$row[shown] + before),
    count
  )
  abort_argument(
    c(
      "The distances of {.arg exact} must be numbers not below 0.",
      x = "{format_count(count)} {cli::qty(count)}{?is/are} not: {where}."
    ),
    call
  )
}

# The exact answer has indices beyond its rows if these are queries or some of
# the points. If only `approx` has such indices, it is a mistake.
check_approx_indices <- function(found, truth, queries, call) {
  num_points <- num_rows_of(truth)
  largest <- largest_index(found)
  are_queries <- queries || largest_index(truth) > num_points
  if (are_queries || largest <= num_points ||
        num_rows_of(found) != num_points) {
    return(invisible())
  }
  abort_argument(
    c(
      "The indices of {.arg approx} must be numbers of the points.",
      x = "There {cli::qty(num_points)}{?is/are}
           {tally(num_points, \"point\")}, and {format_count(largest)} is an
           index.",
      i = "If rows are queries, or only some of the points,
           {.code queries = TRUE} takes their neighbours as they are."
    ),
    call
  )
}

#' @method format fsknn_recall
#' @export
format.fsknn_recall <- function(x, ...) {
  percent <- function(share) paste0(format(100 * share, digits = 4), "%")
  k <- if (length(x$k) == 1) {
    format_count(x$k)
  } else {
    paste(range(x$k), collapse = " to ")
  }
  is_range <- isTRUE(x$at_most > x$recall)
  c(
    paste0(
      "Recall: ", percent(x$recall),
      if (is_range) paste0(" to ", percent(x$at_most)), " (", k, " nearest ",
      if (identical(k, "1")) "neighbour" else "neighbours", " of ",
      tally(x$num_points, "point"), if (is_range) "; some ties are unknown", ")"
    ),
    paste0(
      "Points with all neighbours found: ", if (is_range) "at least ",
      percent(x$perfect)
    ),
    if (!is.null(x$metric)) paste("Exact neighbours:", x$metric)
  )
}

#' @export
print.fsknn_recall <- function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}

#' @rdname results
#' @method as.data.frame fsknn_recall
#' @export
as.data.frame.fsknn_recall <- function(x, row.names = NULL, optional = FALSE,
                                       ...) {
  check_no_more(...)
  check_unused(row.names, optional)
  cbind(point = seq_len(nrow(x$per_point)), x$per_point)
}

#' @rdname results
#' @method summary fsknn_recall
#' @export
summary.fsknn_recall <- function(object, ...) {
  check_no_more(...)
  recall <- object$per_point$recall
  structure(
    list(
      lines = format(object),
      quantiles = stats::quantile(
        recall, c(0, shown_quantiles, 1), na.rm = TRUE
      )
    ),
    class = "summary.fsknn_recall"
  )
}

#' @export
print.summary.fsknn_recall <- function(x, ...) {
  cat(x$lines, sep = "\n")
  shown <- paste0(names(x$quantiles), " ", sprintf("%.3f", x$quantiles))
  cat(fill_line("Recall of points, quantiles: ", shown), sep = "\n")
  invisible(x)
}

#' @rdname results
#' @method plot fsknn_recall
#' @export
plot.fsknn_recall <- function(x, ...) {
  check_no_more(...)
  rlang::check_installed("ggplot2", "to draw recall.")
  recall <- x$per_point$recall
  width <- 1 / min(20, max(x$k))
  # Each bar is centred on a possible value.
  at <- tabulate(round(recall[!is.na(recall)] / width) + 1L)
  shown <- data.frame(recall = (seq_along(at) - 1) * width, points = at)
  ggplot2::ggplot(shown, ggplot2::aes(x = .data$recall, y = .data$points)) +
    ggplot2::geom_col(width = 0.9 * width, fill = "#6FA3C7") +
    ggplot2::geom_vline(
      ggplot2::aes(xintercept = .data$mean, linetype = "overall"),
      data = data.frame(mean = x$recall), colour = "#0B3C5D"
    ) +
    ggplot2::scale_linetype_manual(values = c(overall = "dashed")) +
    ggplot2::scale_y_continuous(
      labels = format_counts, expand = ggplot2::expansion(c(0, 0.05))
    ) +
    ggplot2::labs(
      title = format(x)[[1]], x = "Recall: share of its neighbours found",
      y = "Points"
    ) +
    theme_summary()
}
