# Writes graphs as GraphML and GML. igraph's writers are not used: they do not
# report a full disk, and write 15 digits.
#   points, links  attributes of vertices and edges: lists of columns
#   ends           a matrix: the numbers of both ends of each edge
#   looks          from graph_looks(), or NULL

write_graphml <- function(put, points, links, ends, directed, digits,
                          looks = NULL) {
  schema <- if (is.null(looks)) {
    "http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd"
  } else {
    "http://www.yworks.com/xml/schema/graphml/1.1/ygraphml.xsd"
  }
  points <- graphml_columns(points, "v")
  links <- graphml_columns(links, "e")
  put(c(
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
    "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\"",
    "         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"",
    if (!is.null(looks)) {
      "         xmlns:y=\"http://www.yworks.com/xml/graphml\""
    },
    "         xsi:schemaLocation=\"http://graphml.graphdrawing.org/xmlns",
    paste0("         ", schema, "\">"),
    graphml_keys(points, "node"), graphml_keys(links, "edge"),
    yed_keys(looks),
    paste0(
      "  <graph id=\"G\" edgedefault=\"",
      if (directed) "directed" else "undirected", "\">"
    )
  ))
  number <- function(at) sprintf("%d", as.integer(at) - 1L)
  for (rows in row_ranges(length(points[[1]]$values), 5e3)) {
    put(paste0(
      "    <node id=\"n", number(rows), "\">\n",
      graphml_data(points, rows, digits), yed_nodes(looks, rows),
      "    </node>"
    ))
  }
  for (rows in row_ranges(nrow(ends), 5e3)) {
    put(paste0(
      "    <edge source=\"n", number(ends[rows, 1]), "\" target=\"n",
      number(ends[rows, 2]), "\">\n",
      graphml_data(links, rows, digits), yed_edges(looks, rows),
      "    </edge>"
    ))
  }
  put(c("  </graph>", "</graphml>"))
}

# Returns each column with its name, its type and the id of its key in GraphML.
# The schema requires NMTOKENs as ids.
graphml_columns <- function(columns, letter) {
  ids <- gsub("[^A-Za-z0-9._-]", "_", names(columns), perl = TRUE)
  # With no names, as.character() must return no id.
  ids <- make.unique(paste0(letter, "_", ids, recycle0 = TRUE), sep = "_")
  Map(function(values, name, id) {
    list(
      values = values, name = xml_text(name, in_attribute = TRUE), id = id,
      type = graphml_type(values, name)
    )
  }, columns, names(columns), ids)
}

# Distances and the like are doubles, even if all happen to be whole.
graphml_type <- function(values, name) {
  if (!is.double(values)) {
    return(switch(
      typeof(values), logical = "boolean", integer = "int", "string"
    ))
  }
  there <- values[!is.na(values)]
  whole <- length(there) > 0 && all(there == trunc(there)) &&
    all(abs(there) <= 2^53) &&
    !name %in% c("distance", "correlation", "similarity", "weight")
  if (!whole) {
    "double"
  } else if (all(abs(there) <= .Machine$integer.max)) {
    "int"
  } else {
    "long"
  }
}

graphml_keys <- function(columns, what) {
  part <- function(name) vapply(columns, `[[`, "", name)
  sprintf(
    "  <key id=\"%s\" for=\"%s\" attr.name=\"%s\" attr.type=\"%s\"/>",
    part("id"), what, part("name"), part("type")
  )
}

# Missing values are left out.
graphml_data <- function(columns, rows, digits) {
  lines <- lapply(columns, function(column) {
    values <- column$values[rows]
    text <- switch(
      column$type, string = xml_text(values), boolean = tolower(values),
      double = graphml_number(values, digits), sprintf("%.0f", values)
    )
    key <- paste0("      <data key=\"", column$id, "\">")
    ifelse(is.na(values), "", paste0(key, text, "</data>\n"))
  })
  do.call(paste0, c(list(character(length(rows))), unname(lines)))
}

# GraphML's types are those of Java, whose Double.parseDouble() accepts neither
# "Inf" nor the "INF" of XML schemas. igraph and Python read this word, too.
graphml_number <- function(values, digits) {
  sub("Inf", "Infinity", number_text(values, digits), fixed = TRUE)
}

# Readers convert a carriage return to a line end, and in an attribute, line
# ends and tabs to spaces.
xml_text <- function(text, in_attribute = FALSE) {
  signs <- c(
    "&" = "&amp;", "<" = "&lt;", ">" = "&gt;", "\"" = "&quot;", "'" = "&apos;",
    "\r" = "&#13;", if (in_attribute) c("\n" = "&#10;", "\t" = "&#9;")
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
  for (rows in row_ranges(length(points$name), 5e3)) {
    put(paste0(
      "  node\n  [\n    id ", number(rows), "\n",
      gml_data(points, rows, digits), gml_node_graphics(looks, rows), "  ]"
    ))
  }
  for (rows in row_ranges(nrow(ends), 5e3)) {
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
      gml_number(values, digits)
    }
    paste0("    ", name, " ", text, "\n")
  })
  do.call(paste0, c(list(character(length(rows))), lines))
}

# GML's integers have 32 bits, and its reals have a decimal point, which
# NetworkX requires.
gml_number <- function(values, digits) {
  text <- sub("^(-?[0-9]+)e", "\\1.0e", number_text(values, digits))
  large <- abs(values) > .Machine$integer.max & grepl("^-?[0-9]+$", text)
  ifelse(large, paste0(text, ".0"), text)
}

# GML is ASCII, so all other characters are written as entities. Line ends are,
# too, because NetworkX 2.8 would stop there.
gml_entities <- function(text) {
  foreign <- grepl("[^\t -~]", text, perl = TRUE)
  words <- unique(text[foreign])
  coded <- vapply(words, function(word) {
    codes <- utf8ToInt(word)
    letters <- intToUtf8(codes, multiple = TRUE)
    other <- codes > 126 | codes %in% c(10, 13)
    letters[other] <- sprintf("&#%d;", codes[other])
    paste(letters, collapse = "")
  }, "")
  text[foreign] <- coded[match(text[foreign], words)]
  text
}
