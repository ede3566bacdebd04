#' @rdname summary.fsknn_edges
#' @method plot fsknn_edges
#' @export
plot.fsknn_edges <- function(x, ..., which = NULL) {
  check_no_more(...)
  facts <- summary(x, hubs = 1)
  value <- value_title(facts$value, attr(x, "metric"))
  title <- facts$header
  draw_panels(which, title, list(
    rank = function() {
      if (anyNA(facts$quantiles$rank)) {
        draw_distribution(shown_value(x, x)$values, value, "Edges")
      } else {
        draw_by_rank(facts$quantiles, value)
      }
    },
    degree = function() draw_degrees(facts)
  ))
}

value_title <- function(value, metric) {
  title <- c(
    "correlation" = "Correlation r", "|correlation|" = "|r|",
    "distance" = "Distance"
  )[[value]]
  paste0(title, if (!is.null(metric)) paste0(" (", metric, ")"))
}

# Draws one of several panels, or all side by side. Each is made only when
# needed.
draw_panels <- function(which, title, panels, call = caller_env()) {
  why <- "to draw a summary."
  rlang::check_installed("ggplot2", why)
  if (!is.null(which)) {
    which <- check_choice(which, names(panels), "which", call = call)
    return(panels[[which]]() + ggplot2::labs(title = title))
  }
  rlang::check_installed("patchwork", why)
  patchwork::wrap_plots(lapply(unname(panels), function(draw) draw())) +
    patchwork::plot_annotation(
      title = title, theme = ggplot2::theme(plot.title = title_text())
    )
}

title_text <- function() ggplot2::element_text(size = 10.5)

theme_summary <- function() {
  ggplot2::theme_bw(base_size = 11) +
    ggplot2::theme(
      panel.grid.minor = ggplot2::element_blank(),
      plot.title = title_text(),
      legend.position = "bottom",
      legend.title = ggplot2::element_blank(),
      legend.text = ggplot2::element_text(size = 9),
      legend.key.size = ggplot2::unit(13, "pt"),
      legend.margin = ggplot2::margin(0, 0, 0, 0),
      plot.margin = ggplot2::margin(6, 12, 6, 6)
    )
}

# Draws the median, and bands with half and nine tenths of the points.
draw_by_rank <- function(quantiles, value) {
  bands <- c("5-95%" = "#BBD3E6", "25-75%" = "#6FA3C7")
  ribbon <- function(low, high, band) {
    ggplot2::geom_ribbon(
      ggplot2::aes(ymin = .data[[low]], ymax = .data[[high]], fill = band)
    )
  }
  plot <- ggplot2::ggplot(quantiles, ggplot2::aes(x = .data$rank)) +
    ribbon("q05", "q95", names(bands)[[1]]) +
    ribbon("q25", "q75", names(bands)[[2]]) +
    ggplot2::geom_line(
      ggplot2::aes(y = .data$median, linetype = "median"), linewidth = 0.8,
      colour = "#0B3C5D"
    )
  if (nrow(quantiles) == 1) {
    plot <- plot + ggplot2::geom_pointrange(
      ggplot2::aes(y = .data$median, ymin = .data$q05, ymax = .data$q95),
      colour = "#0B3C5D"
    )
  }
  plot +
    ggplot2::scale_fill_manual(values = bands, limits = names(bands)) +
    ggplot2::scale_x_continuous(breaks = whole_breaks) +
    ggplot2::labs(x = "Rank of the neighbour", y = value) +
    theme_summary()
}

# Ticks are only at whole numbers.
whole_breaks <- function(limits) {
  breaks <- pretty(limits, n = 5)
  breaks[breaks == round(breaks)]
}

draw_distribution <- function(values, title, what) {
  ggplot2::ggplot(data.frame(value = values), ggplot2::aes(x = .data$value)) +
    ggplot2::geom_histogram(bins = 40, fill = "#6FA3C7", na.rm = TRUE) +
    ggplot2::scale_y_continuous(
      labels = format_counts, expand = ggplot2::expansion(c(0, 0.05))
    ) +
    ggplot2::labs(x = title, y = what) +
    theme_summary()
}

format_counts <- function(counts) {
  ifelse(is.na(counts), "", vapply(counts, format_count, ""))
}

# Each bar covers one whole number, or equally many.
draw_whole_numbers <- function(values, title) {
  width <- max(1, ceiling((max(values, 0) + 1) / 50))
  bars <- tabulate(values %/% width + 1L)
  bars <- data.frame(
    value = (seq_along(bars) - 0.5) * width - 0.5, points = bars
  )
  average <- data.frame(value = mean(values))
  ggplot2::ggplot(bars, ggplot2::aes(x = .data$value, y = .data$points)) +
    ggplot2::geom_col(width = 0.92 * width, fill = "#6FA3C7") +
    ggplot2::geom_vline(
      ggplot2::aes(xintercept = .data$value, linetype = "mean"),
      data = average, colour = "#0B3C5D"
    ) +
    ggplot2::scale_linetype_manual(values = c(mean = "dashed")) +
    ggplot2::scale_y_continuous(
      labels = format_counts, expand = ggplot2::expansion(c(0, 0.05))
    ) +
    ggplot2::scale_x_continuous(breaks = whole_breaks) +
    ggplot2::labs(x = title, y = "Points") +
    theme_summary()
}

draw_degrees <- function(facts) {
  plot <- draw_whole_numbers(
    facts$in_degree, if (facts$directed) "In-degree of a point" else "Degree"
  )
  most <- facts$hubs
  if (nrow(most) == 0) {
    return(plot)
  }
  highest <- max(plot$data$points)
  plot +
    ggplot2::annotate(
      "text", x = most$in_degree, y = highest / 9, label = id_text(most$name),
      hjust = 1, size = 3, colour = "grey20"
    ) +
    ggplot2::annotate(
      "segment", x = most$in_degree, xend = most$in_degree,
      y = highest / 13, yend = highest / 60, colour = "grey40",
      linewidth = 0.3, arrow = ggplot2::arrow(length = ggplot2::unit(4, "pt"))
    )
}
