#' Read and write edges for other programs
#'
#' `write_edges()` writes the edges of a graph as CSV, or the graph as GraphML
#' or GML with all columns of its table of points. The graph is directed, but
#' the trees of [spanning_forest()] and the edges that [mst_knn()] keeps are
#' written as undirected graphs. It also writes pairs and triples in the two
#' formats of CoMet, which `read_edges()` reads. ([read_knn()] reads the edges
#' of GPU-FS-kNN, and igraph reads GraphML and GML.)
#'
#' @section CSV: The file has one line for each edge, with the columns of
#' `edges`. If the points have more columns than a name, these are written for
#' both ends (`from_symbol`, `to_symbol`, ...). Points without edges are not
#' written. For triples with `form = "bipartite"`, each triple has a line with
#' its three points.
#'
#' @section GraphML and GML: Both formats have all points, with the columns of
#' their table as attributes. They have all edges with `rank`, `distance`,
#' `correlation`, `similarity` and any other columns.
#' * **GraphML** is for Cytoscape, Gephi, yEd and igraph. Columns of whole
#'   numbers have the type `int` (`long` beyond 2^31), all other numbers
#'   `double`, with `Infinity` and `-Infinity` as in Java. `distance`,
#'   `correlation`, `similarity` and `weight` are always doubles.
#' * **GML** is for yEd, Gephi, igraph and NetworkX, and is the format of the
#'   paper's figures. The file is ASCII: all other characters are written as
#'   entities (`&#223;`), which igraph does not decode. Names of GML attributes
#'   contain only letters and digits: other characters are removed, and a number
#'   makes equal names unique. For whole numbers beyond 2^31, igraph reads
#'   -2147483648; other readers keep them.
#'
#' A point has a `label`, which Gephi and (from a GML file) yEd show; Cytoscape
#' shows `name`. A missing `label` is filled with the name of the point. Edges
#' have a `weight`, which Gephi reads as similarity, only if `edges` has such a
#' column: `edges$weight <- edges$correlation` makes one.
#'
#' In GraphML and GML, a missing text becomes an empty one, and logical columns
#' with missing values become text. GML cannot express missing or infinite
#' numbers: numeric columns with such values become text, and logical columns
#' become 0 and 1.
#'
#' @section Positions and styles: GraphML and GML contain positions and styles
#' from these columns, if they exist:
#' * of the points: numeric `x` and `y` (y upwards, as in a plot), `color` (any
#'   R colour), `size` (1 is usual) and `symbol`. A symbol is `"circle"`,
#'   `"square"`, `"diamond"`, `"triangle"` or `"triangle down"`;
#' * of the edges: `color`, `width` and `lty` (`"solid"`, `"dashed"` or
#'   `"dotted"`).
#'
#' The result of [plot_neighbourhood()] has all of these. GraphML uses yEd's own
#' elements. GML uses blocks called `graphics`, which yEd and Cytoscape read.
#' Cytoscape reads no positions from GraphML, so use GML there. The plots of
#' igraph use the columns `x`, `y`, `color`, `width` and `lty`, too. The package
#' also reads yEd's attributes (`graphics`, `nodegraphics` and others), as empty
#' ones.
#'
#' @section Files of CoMet: CoMet (Joubert et al. 2018) compares all pairs and
#' all triples of vectors on many GPUs. Its files do not describe their
#' contents: they have no counts, types or names.
#' * `"comet"`, records: each record has the numbers of two (or three) vectors
#'   and the similarity, 12 (or 16) bytes in total. Numbers are unsigned
#'   integers of 4 bytes and count from 0; the similarity is a float of 4 bytes.
#'   A file can have any pairs in any order. CoMet writes those *above* a
#'   threshold. Under `"ccc"` and `"duo"`, the numbers are those of alleles. The
#'   counted allele of vector v is 2 v + 1, and the other one 2 v. CoMet writes
#'   each entry of a table above the threshold, and `write_edges()` the largest.
#' * `"comet_bytes"`: the similarity c of every pair (or triple) is one unsigned
#'   byte, floor(255 c), without numbers of vectors. The order is that of one
#'   CoMet process. Pairs (i, j) with i < j are ordered by j, then i. Triples
#'   (i, j, k) with i < j < k are ordered by j, then k, then i. Several
#'   processes write several files, by blocks of vectors; such files cannot be
#'   read here.
#'
#' [threshold_graph()] and [threshold_triples()] write such files without
#' holding the pairs or triples in memory.
#'
#' @section Numbers and text: Numbers are written with `digits` significant
#' digits, and text in UTF-8, whatever the locale is. Factors, dates and raw
#' bytes become text. The file is written under another name and renamed when it
#' is complete. So an error, Ctrl-C or a full disk leaves an older file
#' unchanged.
#'
#' @param edges One of these:
#'   * an edge data frame from [knn_graph()], [read_knn()] or
#'     [spanning_forest()], or rows of it;
#'   * clusters from [mst_knn()]: their edges are written, with the cluster of
#'     each point;
#'   * a plot of [plot_neighbourhood()], with its positions and colours;
#'   * triples of [threshold_triples()], as one of the two graphs that
#'     [as_igraph()] makes of them.
#' @param file Path of the file. A CSV file is compressed with gzip if the path
#'   ends in `.gz`.
#' @param format `"csv"`, `"graphml"`, `"gml"`, `"comet"` or `"comet_bytes"`;
#'   `read_edges()` has the last two. `NULL` (default) takes it from the ending
#'   of `file`, which is the name of the format.
#' @param ... Must be empty.
#' @param vertices A data frame with more columns about the points, such as gene
#'   symbols. A CSV file and `as.data.frame()` get each column for both ends,
#'   such as `from_symbol` and `to_symbol`. Its column `name` must hold the
#'   name of each point, in any order; other rows are ignored. If `edges` has
#'   lost its vertices, give all points in order, as in [as_igraph()]. A vector
#'   of names is then enough.
#' @param digits Number of significant digits of numbers: 15 (default) for
#'   people, 17 to read back the same doubles, or fewer. Whole numbers below
#'   2^64 are written in full, because they may be identifiers.
#' @param byte_order Format `"comet"`: `"little"` for the lowest byte first
#'   (`NULL`, the default), as on the machines that CoMet was written for, or
#'   `"big"`.
#' @param num_way 2 (default) for pairs, 3 for triples.
#' @param alleles Format `"comet"`: `TRUE` for records of `"ccc"` or `"duo"`.
#'   `FALSE` by default.
#' @param num_points Number of vectors (CoMet's `--num_vector`). It is required
#'   for `"comet_bytes"`. For `"comet"`, a larger number of a vector is an
#'   error. `NULL` (default) sets no limit.
#' @param form For triples only: `"bipartite"` (default) or `"clique"`, as for
#'   [as_igraph()].
#'
#' @returns `as.data.frame()`: the edges as a plain data frame, with the columns
#'   of `vertices`. `write_edges()`: `file`, invisibly. `read_edges()`: a data
#'   frame with the columns `from`, `to`, for triples `third` (integer, from 1),
#'   and `similarity` (double), in the order of the file. With `alleles`, there
#'   is a row for each entry of a table. The column `alleles` (a factor) has its
#'   alleles: see [metrics]. From `"comet_bytes"`,
#'   `similarity` is byte / 255, up to 1 / 255 below the exact one.
#'
#' @section Errors:
#' The following are errors:
#' * an unknown format, or a folder that does not exist;
#' * points without a row in `vertices`;
#' * columns that are not plain vectors, have no name, or share one;
#' * for CoMet's formats: a pair that occurs twice, a missing pair for
#'   `"comet_bytes"`, or a similarity outside 0 to 1.
#'
#' A file that can't be written is a `fsknn_file_error` with the message of the
#' system. In a file to read, such errors are a wrong size for the shape, a
#' value out of range, and a repeated pair or triple.
#'
#' @references
#' Arefin AS, Riveros C, Berretta R, Moscato P (2012). GPU-FS-kNN: A Software
#' Tool for Fast and Scalable kNN Computation Using GPUs. *PLoS ONE* 7(8):
#' e44000. \doi{10.1371/journal.pone.0044000}
#'
#' Joubert W, Nance J, Weighill D, Jacobson D (2018). Parallel accelerated
#' vector similarity calculations for genomics applications. *Parallel
#' Computing* 75: 130-145. \doi{10.1016/j.parco.2018.03.009}
#' @seealso [as_igraph()] for the graph itself, [write_knn()] for the format of
#'   GPU-FS-kNN.
#' @export
#' @examples
#' x <- matrix(rnorm(100 * 12), nrow = 100)
#' rownames(x) <- paste0("probe", 1:100)
#' edges <- knn_graph(x, k = 3, backend = "cpu")
#' genes <- data.frame(name = rownames(x), symbol = rep(c("CD3D", "RPL3"), 50))
#'
#' head(as.data.frame(edges, vertices = genes), 3)
#'
#' file <- tempfile(fileext = ".csv")
#' write_edges(edges, file, vertices = genes)
#' head(read.csv(file), 3)
#'
#' file <- tempfile(fileext = ".graphml")
#' write_edges(edges, file, vertices = genes)
#' igraph::read_graph(file, format = "graphml")
#'
#' file <- tempfile(fileext = ".comet")
#' write_edges(threshold_graph(exp(x), 0.8, "proportional"), file)
#' head(read_edges(file), 3)
write_edges <- function(edges, file, format = NULL, ..., vertices = NULL,
                        digits = 15, form = c("bipartite", "clique"),
                        byte_order = NULL) {
  check_no_more(...)
  check_supplied(edges)
  path <- check_path_out(file)
  format <- file_format(file, format, edge_formats, packed = "csv")
  check_for_formats(format, "comet", list(byte_order = byte_order))
  if (inherits(edges, "fsknn_mst_knn")) {
    edges <- edges$edges
  } else if (is_picture(edges)) {
    edges <- edges_of_picture(attr(edges$data, "picture"))
  }
  if (format %in% comet_formats) {
    for_text <- c(
      vertices = !is.null(vertices), digits = !missing(digits),
      form = !missing(form)
    )
    if (any(for_text)) {
      arg <- names(for_text)[for_text][[1]]
      abort_for_formats(arg, setdiff(edge_formats, comet_formats), format)
    }
    write_comet_metrics(edges, file, path, format, byte_order, current_env())
    return(invisible(file))
  }
  digits <- check_whole_number(digits, "digits", 1, 17)
  check_edges(edges)
  check_column_names(edges, "edges", twice = format == "csv")
  check_column_names(attr(edges, "vertices"), "vertices")
  check_column_names(vertices, "vertices")
  vertices <- add_vertex_columns(attr(edges, "vertices"), vertices)
  if (!is_triples(edges)) {
    check_no_form(form)
  } else if (format != "csv" || !has_triple_form(form, "bipartite")) {
    edges <- edges_of_triples(edges, form, vertices)
    vertices <- attr(edges, "vertices")
  }
  if (format == "csv") {
    write_edges_csv(edges, file, path, vertices, digits)
  } else {
    write_edges_graph(
      edges, file, path, format, check_vertices(vertices), digits
    )
  }
  invisible(file)
}

#' @rdname write_edges
#' @export
read_edges <- function(file, format = NULL, ..., num_way = 2, num_points = NULL,
                       byte_order = NULL, alleles = FALSE) {
  check_no_more(...)
  path <- check_path_in(file)
  format <- file_format(file, format, comet_formats)
  alleles <- check_flag(alleles, "alleles")
  check_for_formats(format, "comet", list(
    byte_order = byte_order, alleles = if (alleles) alleles
  ))
  read_comet_metrics(
    file, path, format, num_way, num_points, byte_order, alleles, current_env()
  )
}

# Columns are written to a file or graph by name. One without a name, or the
# second with the same name, would be lost. `twice` allows repeated names.
check_column_names <- function(data, arg, twice = FALSE, call = caller_env()) {
  if (!is.data.frame(data)) {
    return(invisible())
  }
  names <- names(data)
  check_names_text(names, arg, "column", call)
  without <- which(is.na(names) | names == "")
  if (length(without) > 0) {
    abort_argument(
      c(
        "All columns of {.arg {arg}} must have names.",
        x = "Column {without[[1]]} has none."
      ),
      call
    )
  }
  again <- names[duplicated(names)]
  if (!twice && length(again) > 0) {
    abort_argument(
      c(
        "The columns of {.arg {arg}} must have different names.",
        x = "More than one is called {.val {again[[1]]}}."
      ),
      call
    )
  }
}

is_picture <- function(x) {
  inherits(x, "ggplot") && !is.null(attr(x$data, "picture"))
}

comet_formats <- c("comet", "comet_bytes")

edge_formats <- c("csv", "graphml", "gml", comet_formats)

# Joins the table of the points and the columns of another. Returns NULL if both
# are missing.
add_vertex_columns <- function(vertices, more, call = caller_env()) {
  vertices <- vertex_table(vertices)
  more <- vertex_table(more)
  if (is.null(more) || is.null(vertices)) {
    return(more %||% vertices)
  }
  if (!is.data.frame(more) || !"name" %in% names(more)) {
    abort_argument(
      "{.arg vertices} must be a data frame with a column {.code name}.", call
    )
  }
  name <- id_text(more$name)
  check_text(name, "The names in `vertices`", "row", "vertices$name", call)
  twice <- name[duplicated(name) & name %in% id_text(vertices$name)]
  if (length(twice) > 0) {
    abort_argument(
      c(
        "{.arg vertices} must have one row for each point.",
        x = "There is more than one for {.val {twice[[1]]}}."
      ),
      call
    )
  }
  known <- id_text(vertices$name)
  row <- match(known, name)
  lacking <- which(is.na(row))
  if (length(lacking) > 0) {
    count <- length(lacking)
    names <- paste0("\"", utils::head(known[lacking], 3), "\"")
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

write_edges_csv <- function(edges, file, path, vertices, digits,
                            call = caller_env()) {
  columns <- columns_with_vertices(edges, vertices, call)
  # As in write.csv(), text is quoted and dates are not.
  quoted <- vapply(columns, function(x) {
    is.character(x) || is.factor(x) || is.raw(x)
  }, NA)
  columns <- lapply(columns, plain_attribute)
  columns[quoted] <- lapply(columns[quoted], csv_quoted)
  write_whole_file(file, path, call = call, write = function(put) {
    put(paste(csv_quoted(names(columns)), collapse = ","))
    put_csv_rows(put, columns, digits)
  })
}

# Returns the columns of edges or triples, and those of `vertices` for each end.
columns_with_vertices <- function(edges, vertices, call) {
  columns <- as.list(edges)
  check_plain_columns(edges, "edges", character(), call)
  ends <- c("from", "to", if (is_triples(edges)) "third")
  is_level <- vapply(edges[ends], is.factor, NA)
  columns[ends[is_level]] <- lapply(columns[ends[is_level]], id_text)
  extra <- setdiff(names(vertices), "name")
  if (length(extra) > 0) {
    vertices <- check_vertices(vertices, call)
    numbers <- lapply(edges[ends], vertex_numbers, vertices$name, call)
    check_plain_columns(vertices, "vertices", "name", call)
    taken <- intersect(
      names(edges), paste0(rep(ends, each = length(extra)), "_", extra)
    )
    if (length(taken) > 0) {
      abort_argument(
        c(
          "The columns of {.arg edges} must have other names than those that
           {.arg vertices} adds for both ends.",
          x = "{.code {taken[[1]]}} would be there twice."
        ),
        call
      )
    }
    for (column in extra) {
      for (end in ends) {
        columns[[paste0(end, "_", column)]] <-
          vertices[[column]][numbers[[end]]]
      }
    }
  }
  columns
}

#' @param x For `as.data.frame()`: edges or triples.
#' @param row.names,optional Not used: arguments of the generic.
#' @method as.data.frame fsknn_edges
#' @rdname write_edges
#' @export
as.data.frame.fsknn_edges <- function(x, row.names = NULL, optional = FALSE,
                                      ..., vertices = NULL) {
  check_unused(row.names, optional)
  if (is.null(vertices)) {
    return(NextMethod())
  }
  frame_with_vertices(x, vertices, current_env())
}

frame_with_vertices <- function(x, vertices, call) {
  check_column_names(vertices, "vertices", call = call)
  vertices <- add_vertex_columns(attr(x, "vertices"), vertices, call)
  structure(
    columns_with_vertices(x, vertices, call), class = "data.frame",
    row.names = .set_row_names(nrow(x))
  )
}

# Text in `columns` is written unchanged, and NA as NA.
put_csv_rows <- function(put, columns, digits = 17L) {
  plain <- vapply(columns, function(x) is.numeric(x) || is.character(x), NA)
  columns[!plain] <- lapply(columns[!plain], as.character)
  large <- vapply(columns, function(x) {
    is.double(x) && any(abs(x) > 2^53, na.rm = TRUE)
  }, NA)
  columns[large] <- lapply(columns[large], function(x) {
    text <- number_text(x, digits)
    text[is.na(x)] <- NA
    text
  })
  for (rows in row_ranges(length(columns[[1]]), 1e4)) {
    put(cpp_csv_lines(lapply(columns, `[`, rows), digits))
  }
}

# NA remains NA.
csv_quoted <- function(text) {
  quoted <- paste0(
    "\"", gsub("\"", "\"\"", text, fixed = TRUE), "\"", recycle0 = TRUE
  )
  quoted[is.na(text)] <- NA
  quoted
}

# `arg` is the argument with these columns.
check_plain_columns <- function(data, arg, except, call) {
  for (name in setdiff(names(data), except)) {
    check_plain_column(data[[name]], name, call)
  }
  check_columns_text(data[setdiff(names(data), except)], arg, call)
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

write_edges_graph <- function(edges, file, path, format, vertices, digits,
                              call = caller_env()) {
  is_gml <- format == "gml"
  check_plain_columns(edges, "edges", c("from", "to"), call)
  check_plain_columns(vertices, "vertices", "name", call)
  edges <- file_columns(edges, c("from", "to"), is_gml, digits)
  vertices <- file_columns(vertices, "name", is_gml, digits)
  # Trees have a kind and are undirected.
  mode <- if (is.null(attr(edges, "kind"))) "directed" else "union"
  graph <- as_igraph(edges, vertices = vertices, mode = mode)
  points <- igraph::vertex_attr(graph)
  links <- igraph::edge_attr(graph)
  points$name <- file_text(points$name, is_gml)
  points$label <- points$label %||% points$name
  blank <- points$label %in% c(NA, "")
  points$label[blank] <- points$name[blank]
  directed <- igraph::is_directed(graph)
  looks <- graph_looks(points, links, igraph::ecount(graph), directed, call)
  if (is_gml) {
    names(points) <- gml_names(
      names(points), c("id", "graphics", "LabelGraphics")
    )
    names(links) <- gml_names(
      names(links), c("source", "target", "label", "graphics")
    )
  } else {
    names(points) <- graphml_names(names(points))
    names(links) <- graphml_names(names(links))
  }
  ends <- igraph::as_edgelist(graph, names = FALSE)
  write_graph <- if (is_gml) write_gml else write_graphml
  write_whole_file(file, path, call = call, write = function(put) {
    write_graph(put, points, links, ends, directed, digits, looks)
  })
}

# Converts columns for the readers of these files. Neither format can represent
# a missing logical value. GML also has no missing numbers and no logical
# values.
file_columns <- function(data, except, is_gml, digits) {
  for (name in setdiff(names(data), except)) {
    data[[name]] <- file_column(data[[name]], is_gml, digits)
  }
  data
}

file_column <- function(column, is_gml, digits) {
  if (is.object(column) || is.raw(column)) {
    column <- as.character(column)
  }
  if (is.logical(column) && anyNA(column)) {
    column <- tolower(as.character(column))
  }
  if (is_gml && (is.integer(column) || is.logical(column))) {
    column <- as.double(column)
  }
  if (is_gml && is.double(column) && !all(is.finite(column))) {
    text <- number_text(column, digits)
    text[is.na(column)] <- NA # ifelse() fails if all are missing
    column <- text
  }
  if (is.character(column)) file_text(column, is_gml) else column
}

# Replaces characters that the formats do not allow: control characters and the
# two noncharacters that XML 1.0 excludes.
file_text <- function(text, is_gml) {
  text <- enc2utf8(text)
  text[is.na(text)] <- ""
  text <- gsub(
    "[\u0001-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]", " ", text,
    perl = TRUE
  )
  if (is_gml) {
    text <- gsub("&", "&amp;", text, fixed = TRUE)
    text <- gsub("\"", "&quot;", text, fixed = TRUE)
    text <- gml_entities(text)
  }
  text
}

# Removes what XML cannot contain, and keeps the names unique.
graphml_names <- function(names) {
  make.unique(file_text(as.character(names), is_gml = FALSE), sep = "")
}

# Makes unique names of letters and digits, with a letter first, that differ
# from GML's keywords.
gml_names <- function(names, reserved) {
  plain <- iconv(names, to = "ASCII//TRANSLIT", sub = "")
  plain <- gsub("[^A-Za-z0-9]", "", plain)
  plain <- ifelse(grepl("^[A-Za-z]", plain), plain, paste0("x", plain))
  utils::tail(make.unique(c(reserved, plain), sep = ""), length(names))
}
