# The appearance of a graph in other programs: positions, colours, symbols and
# widths. They are written in yEd's extension of GraphML and in GML's blocks
# `graphics`, which yEd and Cytoscape read.

# Converts a plot to edges, with positions and appearance of points and edges.
edges_of_picture <- function(picture) {
  points <- picture$points
  links <- picture$edges
  vertices <- data.frame(
    name = make.unique(as.character(points$label)), label = points$label
  )
  vertices$group <- points$group
  vertices$value <- points$value
  vertices$x <- points$x
  vertices$y <- points$y
  vertices$color <- points$fill
  vertices$symbol <- symbol_names(points$shape)
  vertices$size <- ifelse(points$focus, 2, 1)
  columns <- list(
    from = vertices$name[links$from], to = vertices$name[links$to],
    distance = links$distance
  )
  columns$correlation <- links$correlation
  columns$color <- unname(line_colours[links$line])
  columns$width <- edge_widths(links$strength, picture$strength)
  columns$lty <- unname(line_types[links$line])
  as_undirected(new_knn_edges(columns, vertices), "Picture")
}

# Maps R's plotting symbols to names.
symbol_names <- function(shapes) {
  symbols <- c("circle", "square", "diamond", "triangle", "triangle down")
  symbols[shapes - 20]
}

# Returns widths from 1 to 5, as in the plot.
edge_widths <- function(strength, what) {
  if (length(strength) == 0) {
    return(double())
  }
  share <- (strength - min(strength)) / max(diff(range(strength)), 1e-300)
  round(1 + 4 * (if (what == "Distance") 1 - share else share), 2)
}

# Returns the appearance of each point and edge, or NULL without positions.
# Units are pixels, y is downwards, and there are about 100 pixels for each
# point.
graph_looks <- function(points, links, num_links, directed,
                        call = caller_env()) {
  x <- plain_numbers(points$x)
  y <- plain_numbers(points$y)
  placed <- is.finite(x) & is.finite(y)
  if (!any(placed)) {
    return(NULL)
  }
  span <- max(diff(range(x[placed])), diff(range(y[placed])), 1e-300)
  scale <- 100 * sqrt(sum(placed)) / span
  if (sum(placed) == 1) scale <- 1
  num_points <- length(x)
  numbers_or_1 <- function(values, count) {
    values <- plain_numbers(values) %||% rep(1, count)
    values[!is.finite(values)] <- 1
    values
  }
  list(
    placed = placed,
    x = round(scale * x, 1), y = round(-scale * y, 1),
    size = round(16 * numbers_or_1(points$size, num_points), 1),
    label = points$label,
    fill = hex_colours(points$color %||% points$colour, num_points, call),
    symbol = as.character(points$symbol %||% rep("circle", num_points)),
    line = hex_colours(links$color %||% links$colour, num_links, call),
    width = numbers_or_1(links$width, num_links),
    lty = as.character(links$lty %||% rep("solid", num_links)),
    directed = directed
  )
}

# In GML, columns with missing numbers are text.
plain_numbers <- function(values) {
  if (is.character(values)) {
    known <- grepl("^-?[0-9.]+(e[-+]?[0-9]+)?$", values)
    values[!known] <- NA
  }
  if (is.numeric(values) || is.character(values)) as.double(values)
}

hex_colours <- function(colours, count, call) {
  if (is.null(colours) || count == 0) {
    return(rep("#7F7F7F", count))
  }
  colours <- as.character(colours)
  colours[colours %in% c("", NA)] <- "#7F7F7F"
  rgb <- tryCatch(
    grDevices::col2rgb(colours), error = function(err) NULL
  )
  if (is.null(rgb)) {
    abort_argument(
      "The columns {.code color} of points and edges must hold colours that R
       knows.",
      call
    )
  }
  grDevices::rgb(t(rgb), maxColorValue = 255)
}

# These are yEd's names, which GML also uses.
shape_types <- c(
  circle = "ellipse", square = "rectangle", diamond = "diamond",
  triangle = "triangle", "triangle down" = "triangle2"
)

shape_type <- function(symbol) {
  type <- unname(shape_types[symbol])
  ifelse(is.na(type), "ellipse", type)
}

# --- GraphML -----------------------------------------------------------------

# The keys also have a type of plain GraphML, because igraph warns if it is
# missing.
yed_keys <- function(looks) {
  if (!is.null(looks)) {
    sprintf(
      "  <key id=\"%sgraphics\" for=\"%s\" attr.type=\"string\" %s/>",
      c("node", "edge"), c("node", "edge"),
      c("yfiles.type=\"nodegraphics\"", "yfiles.type=\"edgegraphics\"")
    )
  }
}

# x and y are those of the upper left corner.
yed_nodes <- function(looks, rows) {
  if (is.null(looks)) {
    return("")
  }
  size <- looks$size[rows]
  text <- paste0(
    "      <data key=\"nodegraphics\"><y:ShapeNode>",
    "<y:Geometry height=\"", size, "\" width=\"", size, "\" x=\"",
    number_text(looks$x[rows] - size / 2, 6), "\" y=\"",
    number_text(looks$y[rows] - size / 2, 6), "\"/>",
    "<y:Fill color=\"", looks$fill[rows], "\" transparent=\"false\"/>",
    "<y:BorderStyle color=\"#404040\" type=\"line\" width=\"1.0\"/>",
    "<y:NodeLabel fontSize=\"10\" modelName=\"sides\" modelPosition=\"s\">",
    xml_text(looks$label[rows]), "</y:NodeLabel>",
    "<y:Shape type=\"", shape_type(looks$symbol[rows]), "\"/>",
    "</y:ShapeNode></data>\n"
  )
  ifelse(looks$placed[rows], text, "")
}

yed_edges <- function(looks, rows) {
  if (is.null(looks)) {
    return("")
  }
  type <- ifelse(looks$lty[rows] %in% c("dashed", "dotted"), looks$lty[rows],
                 "line")
  paste0(
    "      <data key=\"edgegraphics\"><y:PolyLineEdge>",
    "<y:LineStyle color=\"", looks$line[rows], "\" type=\"", type,
    "\" width=\"", looks$width[rows], "\"/>",
    "<y:Arrows source=\"none\" target=\"",
    if (looks$directed) "standard" else "none", "\"/>",
    "</y:PolyLineEdge></data>\n"
  )
}

# --- GML ---------------------------------------------------------------------

# x and y are those of the centre.
gml_node_graphics <- function(looks, rows) {
  if (is.null(looks)) {
    return("")
  }
  size <- gml_number(looks$size[rows], 6)
  text <- paste0(
    "    graphics\n    [\n      x ", gml_number(looks$x[rows], 6),
    "\n      y ", gml_number(looks$y[rows], 6), "\n      w ", size,
    "\n      h ", size, "\n      type \"",
    shape_type(looks$symbol[rows]), "\"\n      fill \"", looks$fill[rows],
    "\"\n      outline \"#404040\"\n    ]\n",
    "    LabelGraphics\n    [\n      text \"", looks$label[rows],
    "\"\n      fontSize 10\n      anchor \"s\"\n    ]\n"
  )
  ifelse(looks$placed[rows], text, "")
}

gml_edge_graphics <- function(looks, rows) {
  if (is.null(looks)) {
    return("")
  }
  dashed <- looks$lty[rows] %in% c("dashed", "dotted")
  paste0(
    "    graphics\n    [\n      width ",
    gml_number(looks$width[rows], 15),
    ifelse(dashed, paste0("\n      style \"", looks$lty[rows], "\""), ""),
    "\n      fill \"", looks$line[rows], "\"",
    if (looks$directed) "\n      targetArrow \"standard\"", "\n    ]\n"
  )
}
