# How the pictures look: colours, shapes, labels.

# Okabe and Ito's palette, without black.
cluster_colours <- c(
  "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442",
  "#999933"
)
sign_colours <- c(
  "positive" = "#0072B2", "negative" = "#D55E00", "joined" = "#0072B2",
  "not joined" = "#9E9E9E"
)
cluster_shapes <- c(21, 24, 22, 23, 25, 21, 24, 22)

draw_picture <- function(picture, colour, label_size, caption) {
  points <- picture$points
  picture$edges <- edge_looks(
    picture$edges, by_sign = colour == "sign" && picture$has_sign
  )
  graph <- igraph::graph_from_data_frame(
    picture$edges, vertices = cbind(number = seq_len(nrow(points)), points[-1])
  )
  plot <- ggraph::ggraph(graph, layout = "manual", x = points$x, y = points$y)
  plot <- draw_edges(plot, picture, colour)
  plot <- draw_points(plot, points, colour, picture$title)
  plot <- draw_labels(plot, label_size)
  plot +
    ggplot2::labs(caption = caption) +
    ggplot2::expand_limits(y = room_for_labels(points)) +
    ggplot2::coord_equal(clip = "off") +
    # Room for the labels at the sides.
    ggplot2::scale_x_continuous(expand = ggplot2::expansion(0.12)) +
    ggplot2::scale_y_continuous(expand = ggplot2::expansion(0.1)) +
    ggplot2::theme_void(base_size = 11) +
    ggplot2::theme(
      legend.position = "bottom",
      legend.title = ggplot2::element_text(size = 10),
      legend.text = ggplot2::element_text(size = 9),
      plot.background = ggplot2::element_rect(fill = "white", colour = NA),
      plot.caption = ggplot2::element_text(colour = "grey30"),
      plot.margin = ggplot2::margin(10, 14, 10, 14)
    )
}

# A chain of points has no height, but its labels have.
room_for_labels <- function(points, least = 0.4) {
  middle <- mean(range(points$y))
  middle + c(-0.5, 0.5) * max(least * diff(range(points$x)), 1)
}

draw_edges <- function(plot, picture, colour) {
  many <- nrow(picture$edges) > 150 # each of them drawn finer
  if (nrow(picture$edges) > 0) {
    plot <- plot + ggraph::geom_edge_link0(
      ggplot2::aes(
        edge_colour = .data$colour, edge_width = .data$strength,
        edge_linetype = .data$line
      ),
      edge_alpha = if (many) 0.5 else 0.75
    )
  }
  finest <- if (many) 0.25 else 0.4
  plot +
    ggraph::scale_edge_colour_identity() +
    ggraph::scale_edge_linetype_identity() +
    ggraph::scale_edge_width_continuous(
      range = c(finest, 4 * finest), limits = c(0, 1), guide = "none"
    )
}

edge_looks <- function(edges, by_sign) {
  edges$colour <- rep("grey55", nrow(edges))
  if (by_sign) {
    edges$colour <- unname(sign_colours[edges$sign])
    edges$line <- ifelse(edges$sign == "negative", "dashed", "solid")
  } else {
    edges$line <- ifelse(edges$kept, "solid", "dotted")
  }
  edges
}

draw_points <- function(plot, points, colour, title) {
  plot <- plot + ggraph::geom_node_point(
    ggplot2::aes(fill = .data$group, shape = .data$group),
    data = function(nodes) nodes[!nodes$focus, ],
    size = 3.2, stroke = 0.4, colour = "white", show.legend = TRUE
  )
  look <- list(colours = "#F0E442", shapes = 21)
  if (colour == "cluster") {
    scale <- cluster_scale(points)
    plot <- plot +
      named_scale(scale$groups, scale$colours, scale$shapes, title)
    own <- as.character(points$group[points$focus])
    look <- list(colours = scale$colours[[own]], shapes = scale$shapes[[own]])
  } else {
    values <- intersect(sign_levels, points$group)
    plot <- plot + named_scale(
      values, sign_colours[values],
      c(
        "positive" = 21, "negative" = 23, "joined" = 21, "not joined" = 21
      )[values],
      title
    )
  }
  plot + ggraph::geom_node_point(
    data = function(nodes) nodes[nodes$focus, ],
    size = 6, shape = look$shapes, fill = look$colours, colour = "black",
    stroke = 1.6, show.legend = FALSE
  )
}

# The picture's clusters in the order of their numbers.
cluster_scale <- function(points) {
  groups <- unique(as.character(points$group))
  own <- setdiff(groups, "others")
  own <- own[order(nchar(own), own)]
  at <- seq_along(own)
  list(
    groups = c(own, if ("others" %in% groups) "others"),
    colours = c(
      stats::setNames(cluster_colours[at], own), c(others = "#BDBDBD")
    ),
    shapes = c(stats::setNames(cluster_shapes[at], own), c(others = 21))
  )
}

named_scale <- function(groups, colours, shapes, name) {
  list(
    ggplot2::scale_fill_manual(
      values = colours, breaks = groups, limits = groups, name = name,
      guide = ggplot2::guide_legend(
        nrow = 1, override.aes = list(size = 4)
      )
    ),
    ggplot2::scale_shape_manual(
      values = shapes, breaks = groups, limits = groups, name = name
    )
  )
}

# Labels that keep clear of each other, of the points, and of each other's
# lines; none is dropped. By iterations, never by time, so that they always
# stand in the same places.
draw_labels <- function(plot, label_size) {
  # One layer: two would not see each other.
  plot + ggraph::geom_node_text(
    ggplot2::aes(
      label = .data$label,
      point.size = ifelse(.data$focus, 8, 4),
      fontface = ifelse(.data$focus, "bold", "plain"),
      size = ifelse(.data$focus, label_size * 1.3, label_size) / ggplot2::.pt
    ),
    repel = TRUE, seed = 1, bg.color = "white", bg.r = 0.15, max.overlaps = Inf,
    max.time = 60, max.iter = 20000, force = 0.5, force_pull = 0.05,
    box.padding = 0.3, point.padding = 0.1,
    min.segment.length = 0.35, segment.size = 0.25, segment.colour = "grey40",
    colour = "grey10"
  ) + ggplot2::scale_size_identity()
}
