# Methods for a summary of modules: print, data frames and plot.

#' @method format fsknn_modules
#' @export
format.fsknn_modules <- function(x, ...) {
  explained <- range(round(x$modules$variance_explained, 2))
  c(
    paste0(
      tally(nrow(x$modules), "module"), " of ",
      tally(nrow(x$points), "point"), ", ", tally(x$num_samples, "sample")
    ),
    paste0(
      "Eigengenes explain ",
      paste(unique(format(explained, nsmall = 2)), collapse = " to ")
    ),
    if (!is.null(x$outcomes)) {
      outcomes <- unique(x$outcomes$outcome)
      paste0(
        tally(length(outcomes), "outcome"), ": ",
        first_few(outcomes, limit = 5L),
        if (x$permutations > 0) {
          paste0(" (", describe_relabelling(x$relabelled), ")")
        }
      )
    },
    describe_smallest_p(x$relabelled)
  )
}

#' @export
print.fsknn_modules <- function(x, ..., n = 10) {
  cat(format(x), sep = "\n")
  largest <- order(-x$modules$size)
  print_some(x$modules[utils::head(largest, n), ], nrow(x$modules), "module")
  if (!is.null(x$outcomes)) {
    cat("\n")
    p <- x$outcomes$p_adjusted %||% x$outcomes$p_value
    print_some(
      x$outcomes[utils::head(order(p), n), ], nrow(x$outcomes), "correlation"
    )
  }
  invisible(x)
}

print_some <- function(rows, all, what) {
  print(as.data.frame(rows), row.names = FALSE, digits = 3)
  if (nrow(rows) < all) {
    more <- tally(all - nrow(rows), paste("more", what))
    cat("... and ", more, "\n", sep = "")
  }
}

#' @param what For `as.data.frame()`: `"modules"` (default), `"outcomes"` or
#'   `"points"`.
#' @param row.names,optional Not used: arguments of the generic.
#' @method as.data.frame fsknn_modules
#' @rdname module_summary
#' @order 2
#' @export
as.data.frame.fsknn_modules <- function(x, row.names = NULL, optional = FALSE,
                                        ...,
                                        what = c("modules", "outcomes",
                                                 "points")) {
  check_no_more(...)
  check_unused(row.names, optional, c("modules", "outcomes", "points"))
  what <- check_choice(what, c("modules", "outcomes", "points"), "what")
  if (is.null(x[[what]])) {
    abort_argument(
      "There are no outcomes: {.fn module_summary} takes them as
       {.arg outcome}.",
      current_env()
    )
  }
  x[[what]]
}

#' @param n For `plot()`: the number of modules to draw, the largest first.
#' @rdname module_summary
#' @order 3
#' @export
plot.fsknn_modules <- function(x, ..., n = 20) {
  check_no_more(...)
  rlang::check_installed("ggplot2", "to draw modules.")
  n <- check_whole_number(n, "n", 1, 1000)
  shown <- utils::head(order(-x$modules$size), n)
  modules <- x$modules[shown, ]
  labels <- paste0(
    modules$module, " (", format_count(modules$size), ")"
  )
  if (is.null(x$outcomes)) {
    modules$label <- factor(labels, levels = rev(labels))
    draw_explained(modules)
  } else {
    at <- match(x$outcomes$module, modules$module)
    table <- x$outcomes[!is.na(at), ]
    table$label <- factor(labels[at[!is.na(at)]], levels = rev(labels))
    draw_module_outcomes(table, x)
  }
}

draw_explained <- function(modules) {
  .data <- rlang::.data
  ggplot2::ggplot(
    modules, ggplot2::aes(.data$variance_explained, .data$label)
  ) +
    ggplot2::geom_col(fill = "#1F5582", width = 0.7) +
    ggplot2::scale_x_continuous(
      limits = c(0, 1), expand = ggplot2::expansion(c(0, 0.02))
    ) +
    ggplot2::labs(
      x = "Share of the module's variance that its eigengene explains",
      y = "Module (points)"
    ) +
    plain_theme()
}

draw_module_outcomes <- function(table, x) {
  .data <- rlang::.data
  adjusted <- !is.null(table$p_adjusted)
  p <- if (adjusted) table$p_adjusted else table$fdr
  name <- if (adjusted) "family-wise p" else "fdr"
  levels <- paste(name, c("below 0.05", "0.05 or more"))
  table$found <- factor(levels[1 + (p >= 0.05)], levels = levels)
  ggplot2::ggplot(
    table, ggplot2::aes(.data$correlation, .data$label)
  ) +
    ggplot2::geom_vline(xintercept = 0, colour = "grey60") +
    ggplot2::geom_segment(
      ggplot2::aes(x = 0, xend = .data$correlation, yend = .data$label),
      colour = "grey70"
    ) +
    ggplot2::geom_point(
      ggplot2::aes(colour = .data$found, shape = .data$found), size = 2.4
    ) +
    ggplot2::facet_wrap("outcome") +
    ggplot2::scale_colour_manual(
      values = c("#D0743C", "#1F5582"), drop = FALSE
    ) +
    ggplot2::scale_shape_manual(values = c(17, 16), drop = FALSE) +
    ggplot2::labs(
      x = paste0(
        "Correlation of the eigengene with the outcome (n = ", x$num_samples,
        " samples)"
      ),
      y = "Module (points)", colour = NULL, shape = NULL
    ) +
    plain_theme()
}

plain_theme <- function() {
  ggplot2::theme_minimal(base_size = 11) +
    ggplot2::theme(
      legend.position = "top",
      plot.subtitle = ggplot2::element_text(size = 10, colour = "grey30"),
      panel.grid.minor = ggplot2::element_blank(),
      plot.background = ggplot2::element_rect(fill = "white", colour = NA)
    )
}
