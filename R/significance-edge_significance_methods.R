# Methods for the significance of edges.

#' @method print fsknn_significance
#' @export
print.fsknn_significance <- function(x, ..., n = 10) {
  cat(format_edges_header(x), "\n", sep = "")
  cat_searched(x, points = FALSE)
  cat(paste0(format_significance(x), "\n"), sep = "")
  # The most significant edges are printed first. Columns may have been removed.
  by <- intersect(c("p_value", "p_permutation"), names(x))
  shown <- if (length(by) > 0) x[order(x[[by[[1]]]]), ] else x
  print_first_edges(shown, n, ...)
  invisible(x)
}

format_significance <- function(x) {
  tested <- attr(x, "significance")
  below <- function(column) {
    tally(sum(x[[column]] <= 0.05, na.rm = TRUE), "edge")
  }
  c(
    if (!is.null(x$p_adjusted)) {
      paste0(
        below("p_adjusted"), " with p_adjusted (", tested$p_adjust, " over ",
        tally(tested$num_pairs, "pair"), by_permutation(tested),
        ") of 0.05 or less"
      )
    },
    if (!is.null(x$p_permutation)) {
      paste0(
        below("p_permutation"), " with p_permutation (",
        tally(tested$permutations, "permutation"), of_num_units(tested),
        ") of 0.05 or less"
      )
    }
  )
}

by_permutation <- function(tested) {
  if (isTRUE(tested$by_permutation)) ", by permutation"
}

of_num_units <- function(tested) {
  if (!is.null(tested$num_units)) {
    paste0(
      " of ", tally(tested$num_units, "unit"), ", smallest possible p-value ",
      format(permutation_p(0, tested$permutations), digits = 3)
    )
  }
}

#' @method summary fsknn_significance
#' @export
summary.fsknn_significance <- function(object, ...) {
  columns <- intersect(
    c("p_value", "p_adjusted", "p_from", "p_to", "p_permutation"),
    names(object)
  )
  levels <- c(0.001, 0.01, 0.05, 0.1)
  counts <- vapply(columns, function(column) {
    vapply(levels, function(level) {
      sum(object[[column]] <= level, na.rm = TRUE)
    }, 0)
  }, levels)
  structure(
    list(
      header = format_edges_header(object),
      significance = attr(object, "significance"),
      counts = t(matrix(
        counts, length(levels),
        dimnames = list(paste("<=", levels), columns)
      ))
    ),
    class = "summary.fsknn_significance"
  )
}

#' @method print summary.fsknn_significance
#' @export
print.summary.fsknn_significance <- function(x, ...) {
  tested <- x$significance
  cat(x$header, "\n", sep = "")
  if (!is.null(tested$num_pairs)) {
    cat("p_adjusted: ", tested$p_adjust, " over ",
        tally(tested$num_pairs, "pair"), by_permutation(tested),
        "; it is of the rejected edges, not of the list\n", sep = "")
  }
  if (!is.null(tested$permutations)) {
    cat("p_from, p_to, p_permutation: ",
        tally(tested$permutations, "permutation"), of_num_units(tested), "\n",
        sep = "")
  }
  cat("Edges by p:\n")
  print(x$counts, ...)
  invisible(x)
}

# Plots distances by rank, for the data and for independent points.
#' @method plot fsknn_significance
#' @export
plot.fsknn_significance <- function(x, ...) {
  rlang::check_installed("ggplot2", "to draw distances.")
  by_rank <- attr(x, "significance")$by_rank
  if (is.null(by_rank)) {
    abort_argument(
      c(
        "There is nothing of chance to draw.",
        i = "Give {.fn edge_significance} a number of {.arg permutations}."
      ),
      current_env()
    )
  }
  by_rank$what <- factor(by_rank$what, levels = c("observed", "chance"))
  metric <- attr(x, "metric")
  distance <- paste0(
    "distance",
    if (!is.null(metric)) paste0(", ", describe_metric(metric, attr(x, "sign")))
  )
  ggplot2::ggplot(
    by_rank,
    ggplot2::aes(
      x = .data$rank, y = .data$middle, colour = .data$what,
      fill = .data$what
    )
  ) +
    ggplot2::geom_ribbon(
      ggplot2::aes(ymin = .data$low, ymax = .data$high),
      alpha = 0.25, colour = NA
    ) +
    ggplot2::geom_line(linewidth = 0.7) +
    ggplot2::geom_point(size = 1.6) +
    ggplot2::scale_colour_manual(
      values = c(observed = "#0072B2", chance = "#777777"),
      aesthetics = c("colour", "fill"), name = NULL
    ) +
    ggplot2::scale_x_continuous(breaks = function(range) {
      unique(round(pretty(range)))
    }) +
    ggplot2::labs(
      x = "rank of the neighbour", y = distance,
      caption = paste0(
        "Median and 90% of ", tally_points(nrow(attr(x, "vertices")), x), "; ",
        tally(attr(x, "significance")$permutations, "permutation")
      )
    ) +
    theme_summary()
}
