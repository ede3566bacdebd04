#' @rdname predict.fsknn_diffusion_map
#' @method plot fsknn_diffusion_map
#' @export
plot.fsknn_diffusion_map <- function(x, ...,
                                     which = c("coordinates", "eigenvalues",
                                               "epsilon"),
                                     coordinates = c(1, 2), colour = NULL,
                                     component = 1, title = NULL) {
  check_no_more(...)
  which <- check_choice(
    which, c("coordinates", "eigenvalues", "epsilon"), "which"
  )
  rlang::check_installed("ggplot2", "to draw a diffusion map.")
  switch(
    which,
    coordinates = draw_map(x, coordinates, colour, component, title),
    eigenvalues = draw_eigenvalues(x),
    epsilon = draw_slope(x)
  )
}

draw_map <- function(map, coordinates, colour, component, title,
                     most = 50000, call = caller_env()) {
  mapped <- nrow(map$eigenvalues)
  count <- ncol(map$coordinates)
  if (mapped == 0) {
    abort_argument("There is nothing to draw: no component has a map.", call)
  }
  component <- check_whole_number(
    component, "component", 1, mapped, call = call
  )
  good <- is.numeric(coordinates) && length(coordinates) == 2 &&
    all(coordinates %in% seq_len(count))
  if (!good) {
    given <- describe_value(coordinates)
    abort_argument(
      "{.arg coordinates} must be two numbers from 1 to {count}, not {given}.",
      call
    )
  }
  num_points <- nrow(map$coordinates)
  if (!is.null(colour) && length(colour) != num_points) {
    abort_argument(
      "{.arg colour} must have a value for each of the
       {tally(num_points, \"point\")}, not {length(colour)}.",
      call
    )
  }
  own <- which(map$component == component)
  shown <- own[unique(round(seq(1, length(own), length.out = min(
    length(own), most
  ))))]
  columns <- colnames(map$coordinates)[coordinates]
  points <- data.frame(
    x = map$coordinates[shown, coordinates[[1]]],
    y = map$coordinates[shown, coordinates[[2]]]
  )
  points$colour <- if (is.null(colour)) {
    NULL
  } else if (is.numeric(colour)) {
    colour[shown]
  } else {
    factor(colour)[shown]
  }
  size <- c(1.6, 0.9, 0.3)[[1 + sum(length(shown) > c(500, 5000))]]
  look <- if (is.null(colour)) {
    list(ggplot2::geom_point(size = size, colour = "#0B3C5D", stroke = 0))
  } else {
    list(
      ggplot2::geom_point(
        ggplot2::aes(colour = .data$colour), size = size, stroke = 0
      ),
      colour_scale(points$colour)
    )
  }
  ggplot2::ggplot(points, ggplot2::aes(x = .data$x, y = .data$y)) +
    look +
    ggplot2::labs(
      title = paste0(
        "Diffusion map of ", tally(length(own), "point"),
        if (mapped > 1) paste0(" (component ", component, ")")
      ),
      x = axis_title(map, component, coordinates[[1]], columns[[1]]),
      y = axis_title(map, component, coordinates[[2]], columns[[2]]),
      colour = title,
      caption = if (length(shown) < length(own)) {
        paste("Drawn:", tally(length(shown), "point"))
      }
    ) +
    theme_summary() +
    ggplot2::theme(
      legend.position = if (is.numeric(points$colour)) "right" else "bottom",
      legend.title = if (!is.null(title)) ggplot2::element_text(size = 9)
    )
}

colour_scale <- function(values) {
  if (is.numeric(values)) {
    return(ggplot2::scale_colour_viridis_c())
  }
  list(
    if (nlevels(values) <= length(cluster_colours)) {
      ggplot2::scale_colour_manual(values = cluster_colours)
    } else {
      ggplot2::scale_colour_viridis_d()
    },
    ggplot2::guides(
      colour = ggplot2::guide_legend(override.aes = list(size = 2.5))
    )
  )
}

axis_title <- function(map, component, at, column) {
  paste0(
    column, " (eigenvalue ", format_number(map$eigenvalues[component, at], 4),
    ")"
  )
}

draw_eigenvalues <- function(map) {
  table <- as.data.frame(summary(map))
  table$at <- rep(seq_len(ncol(map$eigenvalues)), nrow(map$eigenvalues))
  table$component <- factor(table$component)
  ggplot2::ggplot(
    table, ggplot2::aes(
      x = .data$at, y = .data$eigenvalue, group = .data$component,
      colour = .data$component
    )
  ) +
    ggplot2::geom_line(linewidth = 0.4, na.rm = TRUE) +
    ggplot2::geom_point(size = 2, na.rm = TRUE) +
    (if (nlevels(table$component) <= length(cluster_colours)) {
      ggplot2::scale_colour_manual(values = cluster_colours)
    } else {
      ggplot2::scale_colour_viridis_d()
    }) +
    ggplot2::scale_x_continuous(breaks = whole_breaks) +
    ggplot2::labs(
      title = "Eigenvalues of the walk", x = "Coordinate", y = "Eigenvalue"
    ) +
    theme_summary() +
    ggplot2::theme(
      legend.position = if (nlevels(table$component) > 1) "bottom" else "none"
    )
}

draw_slope <- function(map) {
  if (nrow(map$curve) == 0) {
    abort_argument(
      "There is no slope to draw: no two points differ.", caller_env()
    )
  }
  words <- c("with the diagonal", "without")
  lines <- data.frame(
    epsilon = rep(map$curve$epsilon, 2),
    slope = c(map$curve$slope, map$curve$slope_without),
    what = factor(rep(words, each = nrow(map$curve)), words)
  )
  ggplot2::ggplot(
    lines, ggplot2::aes(
      x = .data$epsilon, y = .data$slope, linetype = .data$what
    )
  ) +
    ggplot2::annotate(
      "rect", xmin = map$range[[1]], xmax = map$range[[2]], ymin = -Inf,
      ymax = Inf, fill = "#BBD3E6", alpha = 0.5
    ) +
    ggplot2::geom_vline(xintercept = map$epsilon, colour = "#D55E00") +
    ggplot2::geom_line(colour = "#0B3C5D") +
    ggplot2::scale_x_log10() +
    ggplot2::coord_cartesian(
      ylim = c(0, 1.6 * max(map$curve$slope, map$slope))
    ) +
    ggplot2::labs(
      title = paste0(
        "Slope ", format_number(map$slope), " at epsilon = ",
        format_number(map$epsilon), ": dimension about ",
        format_number(map$dimension[["with_diagonal"]], 2), " to ",
        format_number(map$dimension[["without"]], 2)
      ),
      x = paste0(
        "Epsilon",
        if (unit_of_map(map) != 1) {
          paste0(" of distances / ", format_number(map$unit))
        },
        " (shaded: the valid range)"
      ),
      y = "Slope of log(sum W)"
    ) +
    theme_summary()
}
