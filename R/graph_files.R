# Graphs as GraphML and GML. In text that is ours: igraph's writers tell nobody
# that a disk is full, and have 15 digits.
#   points, links  attributes of vertices and edges: lists of columns
#   ends           a matrix: the numbers of both ends of each edge
#   looks          of graph_looks(), or NULL

write_graphml <- function(put, points, links, ends, directed, digits,
                          looks = NULL) {
  put(c(
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
    "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\"",
    "         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"",
    if (!is.null(looks)) {
      "         xmlns:y=\"http://www.yworks.com/xml/graphml\""
    },
    "         xsi:schemaLocation=\"http://graphml.graphdrawing.org/xmlns",
    "         http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd\">",
    graphml_keys(points, "v", "node"), graphml_keys(links, "e", "edge"),
    yed_keys(looks),
    paste0(
      "  <graph id=\"G\" edgedefault=\"",
      if (directed) "directed" else "undirected", "\">"
    )
  ))
  number <- function(at) sprintf("%d", as.integer(at) - 1L)
  for (rows in row_stretches(length(points$name), 5e3)) {
    put(paste0(
      "    <node id=\"n", number(rows), "\">\n",
      graphml_data(points, rows, "v", digits), yed_nodes(looks, rows),
      "    </node>"
    ))
  }
  for (rows in row_stretches(nrow(ends), 5e3)) {
    put(paste0(
      "    <edge source=\"n", number(ends[rows, 1]), "\" target=\"n",
      number(ends[rows, 2]), "\">\n",
      graphml_data(links, rows, "e", digits), yed_edges(looks, rows),
      "    </edge>"
    ))
  }
  put(c("  </graph>", "</graphml>"))
}

graphml_keys <- function(columns, letter, what) {
  types <- vapply(columns, function(column) {
    switch(
      typeof(column), logical = "boolean", character = "string", "double"
    )
  }, "")
  names <- xml_text(names(columns))
  sprintf(
    "  <key id=\"%s_%s\" for=\"%s\" attr.name=\"%s\" attr.type=\"%s\"/>",
    letter, names, what, names, types
  )
}

# What is missing is left out.
graphml_data <- function(columns, rows, letter, digits) {
  lines <- lapply(names(columns), function(name) {
    values <- columns[[name]][rows]
    text <- if (is.character(values)) {
      xml_text(values)
    } else if (is.logical(values)) {
      tolower(values)
    } else {
      number_text(values, digits)
    }
    key <- paste0("      <data key=\"", letter, "_", xml_text(name), "\">")
    ifelse(is.na(values), "", paste0(key, text, "</data>\n"))
  })
  do.call(paste0, c(list(character(length(rows))), lines))
}

xml_text <- function(text) {
  signs <- c(
    "&" = "&amp;", "<" = "&lt;", ">" = "&gt;", "\"" = "&quot;", "'" = "&apos;"
  )
  for (sign in names(signs)) {
    text <- gsub(sign, signs[[sign]], text, fixed = TRUE)
  }
  text
}

write_gml <- function(put, points, links, ends, directed, digits,
                      looks = NULL) {
  put(c(
    "Creator \"fsknn\"", "Version 1", "graph", "[",
    paste("  directed", as.integer(directed))
  ))
  number <- function(at) sprintf("%d", as.integer(at) - 1L)
  for (rows in row_stretches(length(points$name), 5e3)) {
    put(paste0(
      "  node\n  [\n    id ", number(rows), "\n",
      gml_data(points, rows, digits), gml_node_graphics(looks, rows), "  ]"
    ))
  }
  for (rows in row_stretches(nrow(ends), 5e3)) {
    put(paste0(
      "  edge\n  [\n    source ", number(ends[rows, 1]), "\n    target ",
      number(ends[rows, 2]), "\n", gml_data(links, rows, digits),
      gml_edge_graphics(looks, rows), "  ]"
    ))
  }
  put("]")
}

gml_data <- function(columns, rows, digits) {
  lines <- lapply(names(columns), function(name) {
    values <- columns[[name]][rows]
    text <- if (is.character(values)) {
      paste0("\"", values, "\"")
    } else {
      number_text(values, digits)
    }
    paste0("    ", name, " ", text, "\n")
  })
  do.call(paste0, c(list(character(length(rows))), lines))
}
