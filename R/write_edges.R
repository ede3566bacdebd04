#' Write a kNN graph for other programs
#'
#' Writes the edges of a kNN graph as CSV, or the graph as GraphML or GML, with
#' what is known of its points. The graph is directed; the trees of
#' [spanning_forest()] and the edges that [mst_knn()] keeps are written as
#' undirected graphs.
#'
#' * **CSV**: one line for each edge with the columns of `edges`, and, where the
#'   points have more than a name, these columns for both ends (`from_symbol`,
#'   `to_symbol`, ...). Points without edges do not appear.
#' * **GraphML** (Cytoscape, Gephi, yEd, igraph): all points, with the columns
#'   of their table as attributes, and all edges with `rank`, `distance`,
#'   `correlation` and any other columns.
#' * **GML** (yEd, Gephi, igraph; the format of the paper's figures): the same.
#'   Names
#'   of GML attributes hold letters and digits only: other characters are left
#'   out, and a number is added where two would be alike.
#'
#' In both a point has a `label`, which yEd (of a GML file) and Gephi show;
#' Cytoscape shows `name`. It is added where there is none: the name of the
#' point. No edge has a `weight`, which Gephi takes as similarity, unless
#' `edges` has such a column: `edges$weight <- edges$correlation` makes one.
#'
#' Numbers are written with 15 significant digits. Factors and dates become
#' text. In GraphML and GML a missing text becomes an empty one, and logical
#' columns with missing values become text; in GML so do numeric columns with
#' missing or infinite values, which GML has no sign for, and logical ones
#' become 0 and 1.
#'
#' @param edges Edge data frame from [knn_graph()], [read_knn()] or
#'   [spanning_forest()], or rows of it; or clusters from [mst_knn()], whose
#'   kept edges are written, with the cluster of each point.
#' @param file Path of the file. A CSV file is compressed with gzip where the
#'   path ends in `.gz`.
#' @param format `"csv"`, `"graphml"` or `"gml"`. `NULL` (default): by the
#'   extension of `file`.
#' @param ... Must be empty.
#' @param vertices More about the points, such as gene symbols: a data frame
#'   with a column `name`, which must hold the name of each point (in any order;
#'   other rows do no harm), and further columns, which go into the file. Where
#'   `edges` has lost its vertices: all points in order, as in [as_igraph()].
#'
#' @returns `file`, invisibly.
#'
#' @section Errors:
#' A format that is not known, a folder that is not there, points that
#' `vertices` has no row for, columns that are not plain vectors.
#'
#' @inherit knn_search references
#' @seealso [as_igraph()] for the graph itself, [write_knn()] for the format of
#'   GPU-FS-kNN.
#' @export
#' @examples
#' x <- matrix(rnorm(100 * 12), nrow = 100)
#' rownames(x) <- paste0("probe", 1:100)
#' edges <- knn_graph(x, k = 3, backend = "cpu")
#' genes <- data.frame(name = rownames(x), symbol = rep(c("CD3D", "RPL3"), 50))
#'
#' file <- tempfile(fileext = ".csv")
#' write_edges(edges, file, vertices = genes)
#' head(read.csv(file), 3)
#'
#' file <- tempfile(fileext = ".graphml")
#' write_edges(edges, file, vertices = genes)
#' igraph::read_graph(file, format = "graphml")
write_edges <- function(edges, file, format = NULL, ..., vertices = NULL) {
  check_no_more(...)
  if (inherits(edges, "mst_knn")) {
    edges <- edges$edges
  }
  check_edges(edges)
  path <- check_path_out(file)
  format <- edge_format(file, format)
  vertices <- add_vertex_columns(attr(edges, "vertices"), vertices)
  if (format == "csv") {
    write_edges_csv(edges, path, vertices)
  } else {
    write_edges_graph(edges, path, format, check_vertices(vertices))
  }
  invisible(file)
}

edge_formats <- c("csv", "graphml", "gml")

edge_format <- function(file, format, call = caller_env()) {
  format <- if (is.null(format)) {
    extension_format(file, call)
  } else {
    check_choice(format, edge_formats, "format", call = call)
  }
  if (is_gzip_path(file) && format != "csv") {
    abort_argument(
      c(
        "{.arg file} can't end in {.val .gz} where the format is
         {.val {format}}.",
        i = "Only CSV files are compressed."
      ),
      call
    )
  }
  format
}

extension_format <- function(file, call) {
  name <- sub("\\.gz$", "", basename(file))
  extension <- tolower(sub("^.*\\.", "", name))
  if (!grepl(".", name, fixed = TRUE) || !extension %in% edge_formats) {
    abort_argument(
      c(
        "{.arg file} must end in {.val .csv}, {.val .graphml} or {.val .gml},
         unless {.arg format} is given.",
        x = "It is {.file {file}}."
      ),
      call
    )
  }
  extension
}

# The table of the points with the columns of another; NULL where neither is
# there.
add_vertex_columns <- function(vertices, more, call = caller_env()) {
  if (is.null(more) || is.null(vertices)) {
    return(more %||% vertices)
  }
  if (!is.data.frame(more) || !"name" %in% names(more)) {
    abort_argument(
      "{.arg vertices} must be a data frame with a column {.code name}.", call
    )
  }
  name <- as.character(more$name)
  twice <- name[duplicated(name) & name %in% vertices$name]
  if (length(twice) > 0) {
    abort_argument(
      c(
        "{.arg vertices} must have one row for each point.",
        x = "There is more than one for {.val {twice[[1]]}}."
      ),
      call
    )
  }
  row <- match(as.character(vertices$name), name)
  lacking <- which(is.na(row))
  if (length(lacking) > 0) {
    count <- length(lacking)
    names <- paste0("\"", utils::head(vertices$name[lacking], 3), "\"")
    where <- first_few(names, count)
    abort_argument(
      c(
        "{.arg vertices} must have a row for each point of {.arg edges}.",
        x = "{format_count(count)} {cli::qty(count)}point{?s} {?has/have} none:
             {where}."
      ),
      call
    )
  }
  for (column in setdiff(names(more), "name")) {
    vertices[[column]] <- more[[column]][row]
  }
  vertices
}

# --- CSV ---------------------------------------------------------------------

write_edges_csv <- function(edges, path, vertices, call = caller_env()) {
  columns <- as.list(edges)
  extra <- setdiff(names(vertices), "name")
  if (length(extra) > 0) {
    vertices <- check_vertices(vertices, call)
    from <- vertex_numbers(edges$from, vertices$name, call)
    to <- vertex_numbers(edges$to, vertices$name, call)
    for (column in extra) {
      columns[[paste0("from_", column)]] <- vertices[[column]][from]
      columns[[paste0("to_", column)]] <- vertices[[column]][to]
    }
  }
  for (column in names(columns)) {
    check_plain_column(columns[[column]], column, call)
  }
  connection <- open_for_writing(path)
  on.exit(close(connection))
  utils::write.csv(
    as.data.frame(columns, optional = TRUE), connection,
    row.names = FALSE
  )
}

check_plain_column <- function(column, name, call) {
  if (!is.atomic(column) || !is.null(dim(column)) || is.complex(column)) {
    given <- describe_type(column)
    abort_argument(
      "A column that goes into a file must be a plain vector: {.code {name}} is
       {given}.",
      call
    )
  }
}

# --- GraphML, GML ------------------------------------------------------------

write_edges_graph <- function(edges, path, format, vertices,
                              call = caller_env()) {
  is_gml <- format == "gml"
  edges <- file_columns(edges, c("from", "to"), is_gml, call)
  vertices <- file_columns(vertices, "name", is_gml, call)
  # Trees have a kind, and no direction.
  mode <- if (is.null(attr(edges, "kind"))) "directed" else "union"
  graph <- as_igraph(edges, vertices = vertices, mode = mode)
  points <- igraph::vertex_attr(graph)
  points$name <- file_text(points$name, is_gml)
  points$label <- points$label %||% points$name
  blank <- points$label %in% c(NA, "")
  points$label[blank] <- points$name[blank]
  if (is_gml) {
    names(points) <- gml_names(names(points), "id")
    links <- igraph::edge_attr(graph)
    names(links) <- gml_names(names(links), c("source", "target", "label"))
    igraph::edge_attr(graph) <- links
  }
  igraph::vertex_attr(graph) <- points
  if (is_gml) {
    igraph::write_graph(graph, path, "gml", creator = "fsknn")
  } else {
    igraph::write_graph(graph, path, "graphml")
  }
}

# Columns as igraph writes them rightly. It writes an integer NA as
# -2147483648, a missing text as "NA", a missing logical as true, and warns of
# logicals in GML.
file_columns <- function(data, except, is_gml, call) {
  for (name in setdiff(names(data), except)) {
    check_plain_column(data[[name]], name, call)
    data[[name]] <- file_column(data[[name]], is_gml)
  }
  data
}

file_column <- function(column, is_gml) {
  if (is.object(column)) {
    column <- as.character(column)
  }
  if (is.logical(column) && anyNA(column)) {
    column <- tolower(as.character(column))
  }
  if (is.integer(column) || (is_gml && is.logical(column))) {
    column <- as.double(column)
  }
  if (is_gml && is.double(column) && !all(is.finite(column))) {
    column <- ifelse(is.na(column), NA, sprintf("%.15g", column))
  }
  if (is.character(column)) file_text(column, is_gml) else column
}

# Without the control characters that neither format may hold.
file_text <- function(text, is_gml) {
  text <- enc2utf8(text)
  text[is.na(text)] <- ""
  text <- gsub("[\001-\010\013\014\016-\037]", " ", text, perl = TRUE)
  if (is_gml && !igraph_escapes_gml()) {
    text <- gsub("&", "&amp;", text, fixed = TRUE)
    text <- gsub("\"", "&quot;", text, fixed = TRUE)
  }
  text
}

# Older igraphs write a quotation mark in GML as it is, and it ends the text.
igraph_escapes_gml <- function() {
  graph <- igraph::make_empty_graph(1)
  graph <- igraph::set_vertex_attr(graph, "name", value = "\"")
  file <- tempfile(fileext = ".gml")
  on.exit(unlink(file))
  igraph::write_graph(graph, file, "gml", creator = "fsknn")
  any(grepl("&quot;", readLines(file), fixed = TRUE))
}

# Letters and digits, a letter first, all unlike the words that GML itself uses.
gml_names <- function(names, reserved) {
  plain <- iconv(names, to = "ASCII//TRANSLIT", sub = "")
  plain <- gsub("[^A-Za-z0-9]", "", plain)
  plain <- ifelse(grepl("^[A-Za-z]", plain), plain, paste0("x", plain))
  utils::tail(make.unique(c(reserved, plain), sep = ""), length(names))
}
