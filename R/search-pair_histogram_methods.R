# Methods for a histogram of pairs: print, summary, data frame and plot.

#' @method format fsknn_pair_histogram
#' @export
format.fsknn_pair_histogram <- function(x, ...) {
  bins <- length(x$counts)
  outside <- c(below = x$below, above = x$above)
  outside <- outside[outside > 0]
  c(
    paste0(
      "Histogram of ", tally(x$pairs, "pair"), " of ",
      tally(x$num_points, "point"),
      if (x$num_isolated > 0) {
        paste0(" (", format_count(x$num_isolated), " isolated)")
      }
    ),
    paste0(
      tools::toTitleCase(x$value), ", ",
      describe_metric(x$metric, x$sign, x$weighted, x$num_covariates), ": ",
      tally(bins, "bin"), " from ", format(x$breaks[[1]], digits = 6), " to ",
      format(x$breaks[[bins + 1]], digits = 6)
    ),
    format_searched(x),
    if (length(outside) > 0) {
      paste0(
        "Outside: ",
        paste(format_count(outside), names(outside), collapse = ", ")
      )
    },
    if (x$no_value > 0) {
      paste("Pairs without a value:", format_count(x$no_value))
    }
  )
}

#' @export
print.fsknn_pair_histogram <- function(x, ...) {
  cat(format(x), sep = "\n")
  n <- 10
  table <- as.data.frame(x)
  print(
    data.frame(
      lower = format(table$lower, digits = 6),
      upper = format(table$upper, digits = 6),
      count = format_count(table$count), share = round(table$share, 6)
    )[seq_len(min(n, nrow(table))), ],
    row.names = FALSE
  )
  if (nrow(table) > n) {
    cat("... and ", tally(nrow(table) - n, "more bin"), "\n", sep = "")
  }
  invisible(x)
}

#' @param row.names,optional Not used; they are those of the generic.
#' @method as.data.frame fsknn_pair_histogram
#' @rdname pair_histogram
#' @export
as.data.frame.fsknn_pair_histogram <- function(x, row.names = NULL,
                                               optional = FALSE, ...) {
  check_no_more(...)
  check_unused(row.names, optional)
  bins <- length(x$counts)
  data.frame(
    lower = x$breaks[-(bins + 1)], upper = x$breaks[-1], count = x$counts,
    share = share_of(x$counts, x$pairs)
  )
}

share_of <- function(counts, pairs) {
  if (pairs > 0) counts / pairs else counts * 0
}

#' @param object For `summary()`: a result of `pair_histogram()`.
#' @rdname pair_histogram
#' @export
summary.fsknn_pair_histogram <- function(object, ...) {
  check_no_more(...)
  all <- c(object$below, object$counts, object$above)
  bins <- length(object$counts)
  is_similarity <- object$value == "similarity"
  pairs <- if (is_similarity) {
    rev(cumsum(rev(all)))[seq_len(bins) + 1]
  } else {
    cumsum(all)[seq_len(bins)]
  }
  active <- object$num_points - object$num_isolated
  structure(
    list(
      lines = format(object), value = object$value,
      table = data.frame(
        break_at = object$breaks[seq_len(bins)], pairs = pairs,
        share = share_of(pairs, object$pairs), mean_degree = 2 * pairs / active
      )
    ),
    class = "summary.fsknn_pair_histogram"
  )
}

#' @export
print.summary.fsknn_pair_histogram <- function(x, ...) {
  cat(x$lines, sep = "\n")
  table <- x$table
  shown <- data.frame(
    format(table$break_at, digits = 6), format_count(table$pairs),
    signif(table$share, 4), signif(table$mean_degree, 4)
  )
  names(shown) <- c(
    if (x$value == "similarity") "at least" else "below", "pairs", "share",
    "pairs a point"
  )
  print(shown, row.names = FALSE)
  invisible(x)
}

#' @param log For `plot()`: are counts drawn on a log scale, without empty bins?
#'   `FALSE` by default. Bins without an end are not drawn.
#' @rdname pair_histogram
#' @export
plot.fsknn_pair_histogram <- function(x, ..., log = FALSE) {
  check_no_more(...)
  log <- check_flag(log, "log")
  rlang::check_installed("ggplot2", "to draw a histogram.")
  table <- as.data.frame(x)
  drawn <- is.finite(table$lower) & is.finite(table$upper)
  left_out <- x$pairs - sum(table$count[drawn])
  table <- table[drawn & (!log | table$count > 0), ]
  scale <- if (log) {
    ggplot2::scale_y_log10(labels = format_count)
  } else {
    ggplot2::scale_y_continuous(labels = format_count)
  }
  .data <- rlang::.data
  ggplot2::ggplot(table) +
    ggplot2::geom_rect(
      ggplot2::aes(
        xmin = .data$lower, xmax = .data$upper, ymin = if (log) 0.5 else 0,
        ymax = .data$count
      ),
      fill = "#1F5582", colour = "white", linewidth = 0.2
    ) +
    scale +
    ggplot2::labs(
      x = paste0(
        tools::toTitleCase(x$value), ", ",
        describe_metric(x$metric, x$sign, x$weighted, x$num_covariates)
      ),
      y = "Pairs",
      subtitle = paste0(
        tally(x$pairs, "pair"), " of ", tally(x$num_points, "point"),
        if (left_out > 0) {
          paste0("; ", format_count(left_out), " of them not drawn")
        }
      )
    ) +
    plain_theme()
}
