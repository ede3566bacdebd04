# Methods for a contrast: print, summary, data frames and plot.

#' @method format fsknn_contrast
#' @export
format.fsknn_contrast <- function(x, ...) {
  groups <- paste0(
    "\"", names(x$groups), "\" (", format_count(x$groups), " samples)"
  )
  facts <- c(
    paste0("k = ", x$k), describe_metric(x$metric, x$sign, x$weighted),
    if (x$permutations > 0) describe_relabelling(x$relabelled)
  )
  c(
    paste0(
      "Neighbours of ", tally(nrow(x$points), "point"), " in two groups: ",
      paste(groups, collapse = ", ")
    ),
    paste(facts, collapse = ", "),
    format_searched(x),
    paste0(
      "Columns ending in _1: \"", names(x$groups)[[1]], "\"; in _2: \"",
      names(x$groups)[[2]], "\""
    ),
    describe_shares(x), describe_smallest_p(x$relabelled)
  )
}

describe_shares <- function(x) {
  points <- x$points[!is.na(x$points$shared), ]
  if (nrow(points) == 0) {
    return("No point has neighbours in both groups.")
  }
  overlap <- format(round(stats::median(points$rbo), 2), nsmall = 2)
  expected <- if (x$permutations > 0) {
    paste0(
      "; by chance ",
      format(round(stats::median(points$rbo_expected), 2), nsmall = 2)
    )
  }
  c(
    paste0(
      "Shared neighbours: ", format_count(stats::median(points$shared)),
      " of ", x$k, " (median); overlap (rbo) ", overlap, expected
    ),
    if (nrow(points) < nrow(x$points)) {
      paste(
        "Points without neighbours:",
        format_count(nrow(x$points) - nrow(points))
      )
    }
  )
}

#' @export
print.fsknn_contrast <- function(x, ...) {
  cat(format(x), sep = "\n")
  if (x$permutations > 0) {
    counts <- counts_below(x, 0.05)
    at_most <- format(1 / (x$permutations + 1), digits = 1)
    cat("p_adjusted below 0.05:\n")
    cat(paste0("  ", counts$words), sep = "\n")
    if (x$permutations < 20 && is.null(describe_smallest_p(x$relabelled))) {
      cat("With so few permutations no p-value is below ", at_most, ".\n",
          sep = "")
    }
  }
  cat("$points, $edges: data frames\n")
  invisible(x)
}

# Counts the points and edges below a level, unadjusted and adjusted.
counts_below <- function(x, level) {
  columns <- list(
    points = x$points[c("p_value", "p_adjusted")],
    edges = x$edges[c("p_value", "p_adjusted")]
  )
  tested <- vapply(columns, function(p) sum(!is.na(p[[1]])), 1L)
  below <- function(at) {
    vapply(columns, function(p) sum(p[[at]] < level, na.rm = TRUE), 1L)
  }
  counts <- data.frame(
    what = names(columns), tested = tested, p_value = below(1),
    p_adjusted = below(2), row.names = NULL, stringsAsFactors = FALSE
  )
  words <- paste0(
    format_count(counts$p_adjusted), " of ", format_count(counts$tested), " ",
    counts$what
  )
  list(counts = counts, words = words)
}

#' @param object,level For `summary()`: an `fsknn_contrast`, and the level below
#'   which p-values are counted.
#' @rdname compare_neighbours
#' @export
summary.fsknn_contrast <- function(object, ..., level = 0.05) {
  check_no_more(...)
  quantiles <- vapply(
    object$points[c("shared", "jaccard", "rbo", "lost", "gained")],
    stats::quantile, double(5), na.rm = TRUE
  )
  structure(
    list(
      lines = format(object), quantiles = t(quantiles), level = level,
      counts = if (object$permutations > 0) counts_below(object, level)$counts
    ),
    class = "summary.fsknn_contrast"
  )
}

#' @export
print.summary.fsknn_contrast <- function(x, ...) {
  cat(x$lines, sep = "\n")
  cat("\nQuantiles over points:\n")
  print(round(x$quantiles, 3))
  if (!is.null(x$counts)) {
    cat("\nHow many are below ", format(x$level), ":\n", sep = "")
    print(x$counts, row.names = FALSE)
  }
  invisible(x)
}

#' @param what For `as.data.frame()`: `"points"` (default) or `"edges"`.
#' @param row.names,optional Not used: arguments of the generic.
#' @method as.data.frame fsknn_contrast
#' @rdname compare_neighbours
#' @export
as.data.frame.fsknn_contrast <- function(x, row.names = NULL, optional = FALSE,
                                         ..., what = c("points", "edges")) {
  check_no_more(...)
  check_unused(row.names, optional, c("points", "edges"))
  x[[check_choice(what, c("points", "edges"), "what")]]
}

#' @param n For `plot()`: the number of points to draw.
#' @rdname compare_neighbours
#' @export
plot.fsknn_contrast <- function(x, ..., n = 20) {
  check_no_more(...)
  rlang::check_installed("ggplot2", "to draw what changed.")
  n <- check_whole_number(n, "n", 1, 1000)
  draw_contrast(most_changed(x, n), x)
}

most_changed <- function(x, n) {
  points <- x$points[!is.na(x$points$rbo), ]
  beyond <- if (x$permutations > 0) {
    pmax(points$lost - points$lost_expected,
         points$gained - points$gained_expected)
  } else {
    pmax(points$lost, points$gained)
  }
  p <- points[c("p_adjusted", "p_value")[x$permutations > 0]]
  utils::head(points[do.call(order, c(unname(as.list(p)), list(-beyond))), ], n)
}

# Each point is a line from its mean correlation in one group to that in the
# other.
draw_contrast <- function(points, x) {
  names <- as.character(points$point)
  label <- paste0("overlap ", format(round(points$rbo, 2), nsmall = 2))
  if (x$permutations > 0) {
    label <- paste0(label, ", p ", format(points$p_adjusted, digits = 2))
  }
  rows <- factor(names, levels = rev(names))
  groups <- paste0(names(x$groups), " (n = ", x$groups, ")")
  ends <- data.frame(
    point = rep(rows, 2),
    value = c(points$correlation_1, points$correlation_2),
    group = factor(rep(groups, each = nrow(points)), levels = groups)
  )
  lines <- data.frame(
    point = rows, from = points$correlation_1, to = points$correlation_2,
    label = label,
    right = pmax(points$correlation_1, points$correlation_2)
  )
  of_what <- switch(
    x$sign, signed = "correlation", absolute = "|correlation|",
    negative = "correlation, sign turned,"
  )
  .data <- rlang::.data
  ggplot2::ggplot(ends, ggplot2::aes(.data$value, .data$point)) +
    ggplot2::geom_segment(
      ggplot2::aes(
        x = .data$from, xend = .data$to, y = .data$point, yend = .data$point
      ),
      data = lines, colour = "grey60"
    ) +
    ggplot2::geom_point(
      ggplot2::aes(colour = .data$group, shape = .data$group), size = 2.4
    ) +
    ggplot2::geom_text(
      ggplot2::aes(x = .data$right, label = .data$label),
      data = lines, hjust = -0.1, size = 2.7, colour = "grey30"
    ) +
    ggplot2::scale_x_continuous(
      expand = ggplot2::expansion(c(0.05, 0.38))
    ) +
    ggplot2::scale_colour_manual(values = c("#1F5582", "#D0743C")) +
    ggplot2::labs(
      x = paste("Mean", of_what, "to the neighbours of either group"),
      y = NULL, colour = NULL, shape = NULL,
      subtitle = paste0(
        "k = ", x$k,
        if (x$permutations > 0) {
          paste0("; p family-wise, ", tally(x$permutations, "permutation"))
        }
      )
    ) +
    plain_theme()
}
