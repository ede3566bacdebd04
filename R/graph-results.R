#' Summaries, tables and plots of results
#'
#' Results of the package print as a short summary. `summary()` gives more
#' detail, `as.data.frame()` a plain data frame for other programs, and `plot()`
#' a plot. For edges see [summary.fsknn_edges].
#'
#' A result of a search also prints what was searched: the numbers of points and
#' features, and the metric. It prints the seconds of the whole call, and the
#' backend with its GPUs or threads. "Tasks" means the work of a `BPPARAM`
#' or a `checkpoint`. [saveRDS()] and rows of edges keep this record.
#' [identical()] ignores it, so that answers of two backends can be compared.
#'
#' | result of | `summary()` | `as.data.frame()` | `plot()` |
#' | --- | --- | --- | --- |
#' | [knn_graph()] and other edges | degrees, components, quantiles by rank | the edges | quantiles by rank; degrees |
#' | [knn_search()], [knn_query()], [within_search()] | quantiles by rank | a row for each neighbour | quantiles by rank; numbers of neighbours |
#' | [mst_knn()] | a row for each cluster | a row for each point | sizes; edges kept and cut |
#' | [mdl_filter()] | summary of the rows kept | a row for each row | information by rank |
#' | [alpha_beta_k()] | its print | a row for each row chosen | |
#' | [knn_predict()] | classes, error by k | a row for each point | error by k; confusion matrix |
#' | [neighbour_mixing()] | means by label | a row for each point | purity by label; Simpson's number |
#' | [knn_impute_error()] | its print | the table | error by k and metric |
#' | [edge_stability()] | quantiles, values by chance, means by rank | the edges | shares beside those by chance |
#' | [edge_significance()] | edges by level of p | the edges | distances by rank, beside those by chance |
#' | [compare_neighbours()] | points and edges below a level | a row for each point, or edge | the points that changed most |
#' | [module_summary()] | its print | a row for each module, outcome, or point | correlations of modules with outcomes |
#' | [soft_threshold()] | | the table | fit and connectivity by power |
#' | [knn_recall()] | quantiles over points | a row for each point | points by recall |
#' | [threshold_triples()] | bounds, places, points in most triples | the triples | |
#' | [nearest_triples()] | quantiles by rank | a row for each triple | |
#' | [triple_histogram()] | thresholds by number | the table | counts by similarity |
#' | [diffusion_map()] | a row for each eigenvalue | a row for each point | coordinates; eigenvalues; slope by epsilon |
#' | [knn_plan()] | whether it fits | one row | chunks, splits, segments |
#' | [knn_plan()] of many hosts | | one row | |
#' | [knn_stats()] | its print | one row | |
#' | [metafeatures()] | its print | the matrix | |
#'
#' The plot of a plan shows the assignment of the chunks of the distance matrix.
#' Each unordered pair of points is computed once. So a graph needs about half
#' of the chunks. With more than 40 splits, a cell represents several chunks.
#'
#' @param object,x A result of the verb that the table names.
#' @param row.names,optional Not used: from the generic.
#' @param ... Must be empty.
#' @param which Which of two plots (see the table): `"rank"` or `"number"` for
#'   neighbours, `"size"` or `"tree"` for clusters. `NULL` (default): both, side
#'   by side, by the package patchwork.
#' @param n Number of rows, or clusters, to print.
#'
#' @returns `summary()`: a list or data frame with a print method. Its class is
#'   `summary.` followed by the class of the result. `as.data.frame()`: a data
#'   frame. `plot()`: a ggplot object, or with two plots a patchwork object.
#' @seealso [summary.fsknn_edges], [plot_neighbourhood()], [plot_profiles()]
#' @name results
#' @examples
#' x <- rbind(matrix(rnorm(240), 20), matrix(rnorm(240) + 1:12, 20))
#' clusters <- mst_knn(x, backend = "cpu")
#' summary(clusters)
#' head(as.data.frame(clusters))
#' head(as.data.frame(knn_search(x, k = 3, backend = "cpu")))
#' if (requireNamespace("ggplot2", quietly = TRUE)) {
#'   plot(knn_plan(c(24158, 295), backend = "cpu", num_threads = 4))
#' }
NULL

# --- neighbours --------------------------------------------------------------

#' @rdname results
#' @method as.data.frame fsknn_neighbours
#' @export
as.data.frame.fsknn_neighbours <- function(x, row.names = NULL,
                                           optional = FALSE, ...) {
  check_no_more(...)
  check_unused(row.names, optional)
  if (is.list(x$index)) {
    sizes <- lengths(x$index)
    to <- unlist(x$index, use.names = FALSE)
    rank <- sequence(sizes)
    distance <- unlist(x$distance, use.names = FALSE)
  } else {
    sizes <- rep(ncol(x$index), nrow(x$index))
    to <- as.vector(t(x$index))
    rank <- sequence(sizes)
    distance <- if (!is.null(x$distance)) as.vector(t(x$distance))
  }
  columns <- list(
    from = rep(seq_along(sizes), sizes), to = as.integer(to), rank = rank
  )
  columns$distance <- as.double(distance)
  frame <- as.data.frame(columns[lengths(columns) == sum(sizes)])
  frame <- frame[!is.na(frame$to), , drop = FALSE]
  attr(frame, "row.names") <- .set_row_names(nrow(frame))
  frame
}

#' @rdname results
#' @method summary fsknn_neighbours
#' @export
summary.fsknn_neighbours <- function(object, ...) {
  check_no_more(...)
  rows <- as.data.frame(object)
  num_points <- NROW(object$index)
  if (is.list(object$index)) {
    num_points <- length(object$index)
  }
  structure(
    list(
      header = format(object)[[1]],
      num_points = num_points,
      sizes = tabulate(rows$from, num_points),
      quantiles = quantiles_by_rank(rows$rank, rows$distance %||% NA_real_)
    ),
    class = "summary.fsknn_neighbours"
  )
}

#' @export
print.summary.fsknn_neighbours <- function(x, ...) {
  cat(x$header, "\n", sep = "")
  if (nrow(x$quantiles) > 0) {
    cat(format_quantiles(x$quantiles, "distance"), sep = "\n")
  }
  invisible(x)
}

#' @rdname results
#' @method plot fsknn_neighbours
#' @export
plot.fsknn_neighbours <- function(x, ..., which = NULL) {
  check_no_more(...)
  facts <- summary(x)
  # If all points have equally many neighbours, there is only one panel.
  if (is.null(which) && length(unique(facts$sizes)) == 1) {
    which <- "rank"
  }
  draw_panels(which, facts$header, list(
    rank = function() draw_by_rank(facts$quantiles, "Distance"),
    number = function() {
      draw_whole_numbers(facts$sizes, "Neighbours of a point")
    }
  ))
}

# --- clusters ----------------------------------------------------------------

#' @rdname results
#' @method as.data.frame fsknn_mst_knn
#' @export
as.data.frame.fsknn_mst_knn <- function(x, row.names = NULL, optional = FALSE,
                                        ...) {
  check_no_more(...)
  check_unused(row.names, optional)
  cluster <- unname(x$membership)
  data.frame(
    name = attr(x$tree, "vertices")$name, cluster = cluster,
    size = x$sizes[cluster]
  )
}

#' @rdname results
#' @method summary fsknn_mst_knn
#' @export
summary.fsknn_mst_knn <- function(object, ...) {
  check_no_more(...)
  vertices <- attr(object$edges, "vertices")
  cluster <- unname(object$membership)
  from <- match(object$edges$from, vertices$name)
  to <- match(object$edges$to, vertices$name)
  degree <- tabulate(c(from, to), nrow(vertices))
  # The centre of a cluster is the point where most edges of the tree meet.
  best <- order(cluster, -degree, method = "radix")
  centre <- best[!duplicated(cluster[best])]
  kept <- quantiles_by_rank(cluster[from], object$edges$distance)
  kept <- kept[match(seq_along(object$sizes), kept$rank), ]
  clusters <- data.frame(
    cluster = seq_along(object$sizes), size = object$sizes,
    centre = vertices$name[centre], edges_at_centre = degree[centre],
    median_distance = kept$median
  )
  tree <- object$tree
  ends <- cbind(
    cluster[match(tree$from, vertices$name)],
    cluster[match(tree$to, vertices$name)]
  )
  clusters$distance_to_others <- nearest_cut(
    ends, tree$distance, length(object$sizes)
  )
  structure(
    clusters, header = utils::capture.output(print(object)),
    class = c("summary.fsknn_mst_knn", "data.frame")
  )
}

# Returns, for each cluster, the shortest edge of the tree that leads out of it.
nearest_cut <- function(ends, distance, num_clusters) {
  cut <- which(ends[, 1] != ends[, 2])
  nearest <- rep(NA_real_, num_clusters)
  shortest_last <- cut[order(-distance[cut])]
  for (side in 1:2) {
    at <- ends[shortest_last, side]
    found <- rep(NA_real_, num_clusters)
    found[at] <- distance[shortest_last]
    nearest <- pmin(nearest, found, na.rm = TRUE)
  }
  nearest
}

#' @rdname results
#' @export
print.summary.fsknn_mst_knn <- function(x, ..., n = 10) {
  header <- attr(x, "header")
  if (!is.null(header)) {
    cat(header, sep = "\n")
  }
  several <- if ("size" %in% names(x)) x[x$size > 1, ] else x
  class(several) <- "data.frame"
  top <- with_id_text(utils::head(several, n), "centre")
  print(top, row.names = FALSE, digits = 3)
  more <- nrow(several) - n
  if (more > 0) {
    cat("... and ", tally(more, "more cluster"), "\n", sep = "")
  }
  invisible(x)
}

#' @rdname results
#' @method plot fsknn_mst_knn
#' @export
plot.fsknn_mst_knn <- function(x, ..., which = NULL) {
  check_no_more(...)
  title <- utils::capture.output(print(x))[[1]]
  draw_panels(which, title, list(
    size = function() draw_sizes(x$sizes),
    tree = function() draw_cuts(x)
  ))
}

draw_sizes <- function(sizes, most = 30) {
  several <- sizes[sizes > 1]
  shown <- data.frame(
    cluster = seq_len(min(length(several), most)),
    size = utils::head(several, most)
  )
  rest <- length(several) - nrow(shown)
  single <- sum(sizes == 1)
  words <- c(
    if (rest > 0) tally(rest, "smaller cluster"),
    if (single > 0) tally(single, "single point")
  )
  ggplot2::ggplot(shown, ggplot2::aes(x = .data$cluster, y = .data$size)) +
    ggplot2::geom_col(fill = "#6FA3C7", width = 0.85) +
    ggplot2::scale_x_continuous(
      breaks = function(limits) setdiff(whole_breaks(limits), 0)
    ) +
    ggplot2::scale_y_continuous(
      labels = format_counts, expand = ggplot2::expansion(c(0, 0.05))
    ) +
    ggplot2::labs(
      x = "Cluster, the largest first", y = "Points",
      caption = if (length(words) > 0) {
        paste("Not shown:", paste(words, collapse = ", "))
      }
    ) +
    theme_summary()
}

draw_cuts <- function(clusters) {
  tree <- clusters$tree
  member <- unname(clusters$membership)
  names <- attr(tree, "vertices")$name
  kept <- member[match(tree$from, names)] == member[match(tree$to, names)]
  words <- paste0(
    c("kept", "cut"), " (", format_counts(c(sum(kept), sum(!kept))), ")"
  )
  shown <- data.frame(
    distance = tree$distance,
    what = factor(ifelse(kept, words[[1]], words[[2]]), levels = words)
  )
  ggplot2::ggplot(
    shown, ggplot2::aes(x = .data$distance, fill = .data$what)
  ) +
    ggplot2::geom_histogram(bins = 40, position = "stack") +
    # The ticks show few values among many.
    ggplot2::geom_rug(
      ggplot2::aes(x = .data$distance), data = shown[!kept, ],
      inherit.aes = FALSE, colour = "#D55E00", sides = "t"
    ) +
    ggplot2::scale_fill_manual(
      values = stats::setNames(c("#6FA3C7", "#D55E00"), words), drop = FALSE
    ) +
    ggplot2::scale_y_continuous(
      labels = format_counts, expand = ggplot2::expansion(c(0, 0.05))
    ) +
    ggplot2::labs(
      x = value_title("distance", attr(tree, "metric")),
      y = "Edges of the tree"
    ) +
    theme_summary()
}

# --- objects that print as their own summary ---------------------------------

#' @rdname results
#' @method summary fsknn_alpha_beta_k
#' @export
summary.fsknn_alpha_beta_k <- function(object, ...) {
  check_no_more(...)
  object
}

#' @rdname results
#' @method as.data.frame fsknn_alpha_beta_k
#' @export
as.data.frame.fsknn_alpha_beta_k <- function(x, row.names = NULL,
                                             optional = FALSE, ...) {
  check_no_more(...)
  check_unused(row.names, optional)
  columns <- list(index = x$index)
  columns$name <- x$features
  as.data.frame(columns, stringsAsFactors = FALSE)
}

#' @rdname results
#' @method summary metafeatures
#' @export
summary.metafeatures <- function(object, ...) {
  check_no_more(...)
  object
}

#' @rdname results
#' @method summary fsknn_modules
#' @export
summary.fsknn_modules <- function(object, ...) {
  check_no_more(...)
  object
}

#' @rdname results
#' @method summary fsknn_stats
#' @export
summary.fsknn_stats <- function(object, ...) {
  check_no_more(...)
  object
}

#' @rdname results
#' @method as.data.frame fsknn_stats
#' @export
as.data.frame.fsknn_stats <- function(x, row.names = NULL, optional = FALSE,
                                      ...) {
  check_no_more(...)
  check_unused(row.names, optional)
  seconds <- as.list(x$seconds)
  names(seconds) <- paste0("seconds_", names(seconds))
  one_row(c(unclass(x), seconds))
}

# Returns the parts that are one number or string, as a row.
one_row <- function(parts) {
  single <- vapply(parts, function(part) {
    is.atomic(part) && length(part) == 1
  }, NA)
  as.data.frame(
    lapply(parts[single], unname), stringsAsFactors = FALSE
  )
}
