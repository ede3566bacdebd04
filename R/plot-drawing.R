# Shared appearance of the plots: colours, shapes and labels.

# This is the palette of Okabe and Ito without black.
cluster_colours <- c(
  "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442",
  "#999933"
)
# Warm colours are positive and cold ones negative in all plots.
sign_colours <- c(
  "positive" = "#D55E00", "negative" = "#0072B2", "joined" = "#0072B2",
  "not joined" = "#9E9E9E"
)
diverging_colours <- c("#2166AC", "#F7F7F7", "#B2182B")
unknown_colour <- "#BDBDBD"
cluster_shapes <- c(21, 24, 22, 23, 25, 21, 24, 22)
sign_shapes <- c(
  "positive" = 21, "negative" = 23, "joined" = 21, "not joined" = 22,
  "not known" = 22
)

draw_picture <- function(picture, text_size, caption) {
  points <- picture$points
  graph <- igraph::graph_from_data_frame(
    picture$edges, vertices = cbind(number = seq_len(nrow(points)), points[-1])
  )
  plot <- ggraph::ggraph(graph, layout = "manual", x = points$x, y = points$y)
  plot <- draw_edges(plot, picture)
  plot <- draw_points(plot, picture)
  plot <- draw_labels(plot, picture, text_size)
  plot <- plot +
    ggplot2::labs(caption = caption) +
    ggplot2::expand_limits(y = room_for_labels(points)) +
    ggplot2::coord_equal(clip = "off") +
    # The labels at the sides need room.
    ggplot2::scale_x_continuous(expand = ggplot2::expansion(0.12)) +
    ggplot2::scale_y_continuous(expand = ggplot2::expansion(0.1)) +
    ggplot2::theme_void(base_size = 11) +
    ggplot2::theme(
      legend.position = "right",
      legend.title = ggplot2::element_text(size = 9),
      legend.text = ggplot2::element_text(size = 8.5),
      legend.key.height = ggplot2::unit(13, "pt"),
      legend.spacing.y = ggplot2::unit(3, "pt"),
      plot.background = ggplot2::element_rect(fill = "white", colour = NA),
      plot.caption = ggplot2::element_text(colour = "grey30"),
      plot.margin = ggplot2::margin(8, 8, 8, 8)
    )
  # write_edges() exports this attribute to other programs.
  attr(plot$data, "picture") <- picture
  plot
}

# A chain of points has no height, but its labels need some.
room_for_labels <- function(points, least = 0.4) {
  middle <- mean(range(points$y))
  middle + c(-0.5, 0.5) * max(least * diff(range(points$x)), 1)
}

# --- edges -------------------------------------------------------------------

draw_edges <- function(plot, picture) {
  edges <- picture$edges
  if (nrow(edges) == 0) {
    return(plot)
  }
  many <- nrow(edges) > 150 # many edges are drawn thinner
  finest <- if (many) 0.2 else 0.35
  width <- edge_width_scale(edges, picture$strength, finest * c(1, 4))
  lines <- unique(edges$line)
  plot +
    ggraph::geom_edge_link0(
      ggplot2::aes(
        edge_colour = .data$line, edge_width = .data$strength,
        edge_linetype = .data$line
      ),
      edge_alpha = if (many) 0.5 else 0.75,
      show.legend = c(
        edge_colour = TRUE, edge_width = TRUE, edge_linetype = TRUE
      )
    ) +
    width +
    ggraph::scale_edge_colour_manual(
      values = line_colours[lines], breaks = lines, name = "Edge",
      guide = legend_of(4, show = length(lines) > 1)
    ) +
    ggraph::scale_edge_linetype_manual(
      values = line_types[lines], breaks = lines, name = "Edge",
      guide = legend_of(4, show = length(lines) > 1)
    )
}

line_colours <- c(
  "r above 0" = "#7F7F7F", "r below 0" = "#2166AC", "an edge" = "#7F7F7F",
  "kept" = "#7F7F7F", "cut" = "#7F7F7F"
)
line_types <- c(
  "r above 0" = "solid", "r below 0" = "dashed", "an edge" = "solid",
  "kept" = "solid", "cut" = "dotted"
)

edge_lines <- function(edges, by_sign) {
  if (!all(edges$kept)) {
    ifelse(edges$kept, "kept", "cut")
  } else if (by_sign) {
    ifelse(edges$sign == "negative", "r below 0", "r above 0")
  } else {
    rep("an edge", nrow(edges))
  }
}

# The scale covers the observed range: from 0 to 1, values of r between 0.7 and
# 0.9 would all look alike. The smallest distances are drawn widest.
edge_width_scale <- function(edges, title, range) {
  ends <- range(edges$strength)
  if (diff(ends) == 0) {
    ends <- ends + c(-0.5, 0.5) * max(abs(ends[[1]]), 1) * 0.1
  }
  if (title == "Distance") {
    range <- rev(range)
  }
  breaks <- pretty(ends, 3)
  breaks <- breaks[breaks >= ends[[1]] & breaks <= ends[[2]]]
  if (length(breaks) == 0) {
    breaks <- signif(mean(ends), 2)
  }
  ggraph::scale_edge_width_continuous(
    range = range, limits = ends, breaks = breaks, name = title,
    guide = legend_of(3)
  )
}

legend_of <- function(order, show = TRUE, ...) {
  if (show) ggplot2::guide_legend(order = order, ...) else "none"
}

# --- points ------------------------------------------------------------------

draw_points <- function(plot, picture) {
  points <- picture$points
  by_value <- !is.null(points$value)
  fill <- if (by_value) "value" else "group"
  shape <- if (by_value) "sign" else "group"
  own <- which(points$focus)
  plot +
    ggraph::geom_node_point(
      ggplot2::aes(fill = .data[[fill]], shape = .data[[shape]]),
      data = function(nodes) nodes[!nodes$focus, ],
      size = 3.4, stroke = 0.4, colour = "grey25",
      show.legend = c(fill = TRUE, shape = TRUE)
    ) +
    point_scales(picture, by_value) +
    ggraph::geom_node_point(
      data = function(nodes) nodes[nodes$focus, ],
      size = 6, shape = points$shape[[own]], fill = points$fill[[own]],
      colour = "black", stroke = 1.6, show.legend = FALSE
    )
}

point_scales <- function(picture, by_value) {
  if (!by_value) {
    return(list(
      ggplot2::scale_fill_manual(
        values = picture$colours, breaks = picture$groups,
        limits = picture$groups, name = picture$title,
        guide = legend_of(1, override.aes = list(size = 4))
      ),
      ggplot2::scale_shape_manual(
        values = picture$shapes, breaks = picture$groups,
        limits = picture$groups, name = picture$title, guide = legend_of(1)
      )
    ))
  }
  others <- !picture$points$focus
  shown <- intersect(names(sign_words_of_value), picture$points$sign[others])
  grey <- ifelse(shown == "not known", unknown_colour, "white")
  list(
    ggplot2::scale_fill_gradient2(
      low = diverging_colours[[1]], mid = diverging_colours[[2]],
      high = diverging_colours[[3]], midpoint = 0,
      limits = c(-1, 1) * picture$limit, na.value = unknown_colour,
      name = picture$title,
      guide = ggplot2::guide_colourbar(
        order = 1, barheight = ggplot2::unit(72, "pt"),
        barwidth = ggplot2::unit(9, "pt"), frame.colour = "grey40",
        ticks.colour = "grey40"
      )
    ),
    ggplot2::scale_shape_manual(
      values = sign_shapes[shown], breaks = shown, limits = shown,
      labels = sign_words_of_value[shown], name = "Point",
      guide = legend_of(
        2, override.aes = list(size = 3.4, fill = grey)
      )
    )
  )
}

sign_words_of_value <- c(
  "positive" = "above 0", "negative" = "below 0", "not known" = "not known"
)

# Returns colours of values around 0, as in the plot's scale.
diverging <- function(values, limit) {
  ramp <- grDevices::colorRamp(diverging_colours, space = "Lab")
  share <- pmin(pmax((values / limit + 1) / 2, 0), 1)
  known <- !is.na(share)
  colours <- rep(unknown_colour, length(values))
  if (any(known)) {
    colours[known] <- grDevices::rgb(ramp(share[known]), maxColorValue = 255)
  }
  colours
}

# Returns the plot's clusters in order of their numbers.
cluster_scale <- function(points) {
  groups <- unique(as.character(points$group))
  own <- setdiff(groups, "others")
  own <- own[order(nchar(own), own)]
  at <- seq_along(own)
  list(
    groups = c(own, if ("others" %in% groups) "others"),
    colours = c(
      stats::setNames(cluster_colours[at], own), c(others = unknown_colour)
    ),
    shapes = c(stats::setNames(cluster_shapes[at], own), c(others = 21))
  )
}

# --- labels ------------------------------------------------------------------

# Places labels without overlap with each other, points or edges, and drops
# none. The layout ends after a number of iterations, never after a time, so
# that it is reproducible.
draw_labels <- function(plot, picture, text_size) {
  along <- places_on_edges(picture)
  # One layer is used, because labels in two layers would not avoid each other.
  # Empty labels mark the places that others avoid.
  with_edges <- function(nodes) {
    rows <- nodes[rep(1L, nrow(along)), ]
    rows$x <- along$x
    rows$y <- along$y
    rows$focus <- rep(FALSE, nrow(along))
    rows$label <- rep("", nrow(along))
    rbind(nodes, rows)
  }
  plot + ggraph::geom_node_text(
    ggplot2::aes(
      label = .data$label,
      point.size = c(4, 8, 1)[1 + .data$focus + 2 * (.data$label == "")],
      fontface = ifelse(.data$focus, "bold", "plain"),
      size = ifelse(.data$focus, text_size * 1.3, text_size) / ggplot2::.pt
    ),
    data = with_edges,
    repel = TRUE, seed = 1, bg.color = "white", bg.r = 0.15, max.overlaps = Inf,
    max.time = 60, max.iter = 15000, force = 4, force_pull = 0.1,
    box.padding = 0.25, point.padding = 0.1,
    min.segment.length = 0.35, segment.size = 0.25, segment.colour = "grey40",
    colour = "grey10"
  ) + ggplot2::scale_size_identity()
}

# Returns some hundred equidistant places along the edges. If there are many
# edges, it returns none: no place would avoid them, and labels avoid each other
# first.
places_on_edges <- function(picture, most = 250) {
  points <- picture$points
  edges <- picture$edges
  edges <- edges[rep(nrow(edges) <= 2 * nrow(points), nrow(edges)), ]
  x <- cbind(points$x[edges$from], points$x[edges$to])
  y <- cbind(points$y[edges$from], points$y[edges$to])
  length <- sqrt((x[, 1] - x[, 2])^2 + (y[, 1] - y[, 2])^2)
  apart <- max(sum(length) / most, 0.1)
  number <- pmax(floor(length / apart), 1)
  edge <- rep(seq_along(number), number)
  share <- sequence(number) / (number[edge] + 1)
  places <- data.frame(
    x = x[edge, 1] + share * (x[edge, 2] - x[edge, 1]),
    y = y[edge, 1] + share * (y[edge, 2] - y[edge, 1])
  )
  # Edges are everywhere around the focus, and its own label is there.
  own <- points[points$focus, ]
  near <- (places$x - own$x)^2 + (places$y - own$y)^2 < 0.4^2
  places[!near, ]
}
