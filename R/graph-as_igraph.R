#' Convert edges to an igraph graph
#'
#' Makes an igraph graph from an edge data frame, such as that of [knn_graph()].
#' The graph keeps all points in their order, including isolated points.
#'
#' In a kNN graph, j can be a neighbour of i although i is not a neighbour of j.
#' `mode = "directed"` keeps both directions as separate edges. `"union"` gives
#' an undirected graph in which i and j share an edge if either is a neighbour
#' of the other. `"mutual"` requires that both are.
#'
#' If an edge exists in both directions, an undirected graph has it once.
#' Distance and correlation are the same both ways, and `rank` is the smaller of
#' the two. Other columns are from the direction with that rank.
#'
#' The edges of [threshold_graph()] and [snn_graph()] contain each pair of
#' points once. They give an undirected graph, whatever `mode` is.
#'
#' The edge attribute `weight` exists only if you ask for it, because igraph
#' functions read it in two ways. Clustering reads it as similarity (`weight =
#' "similarity"`). Spanning trees and shortest paths read it as length (`weight
#' = "distance"`).
#'
#' Triples of [threshold_triples()] give one of two undirected graphs:
#' * `form = "bipartite"`: the vertices are the points, followed by a vertex for
#'   each triple (`triple1`, ...) with edges to its three points. The attribute
#'   `type` is `FALSE` for points and `TRUE` for triples, as igraph requires.
#'   The columns of a triple are attributes of its vertex.
#' * `form = "clique"`: the vertices are the points, with an edge for each pair
#'   that is part of a triple. Its attributes are the pair's own `similarity`,
#'   the number of `triples` with the pair, and `best_triple`, the largest
#'   similarity among these. The triples cannot be recovered: three edges can
#'   exist without a triple.
#'
#' @param edges An edge data frame from [knn_graph()] or [read_knn()], or rows
#'   of it. Or triples from [threshold_triples()]. Or, with `vertices`, any data
#'   frame with the columns `from` and `to`.
#' @param ... Must be empty.
#' @param weight Edge attribute `weight`: `"none"` (default), `"similarity"` or
#'   `"distance"`. Similarity is defined as:
#'   * r for correlations (|r| under `sign = "absolute"`, -r under
#'     `sign = "negative"`);
#'   * the column `similarity` if `edges` has one, as under `"proportional"`,
#'     `"sorensen"`, `"jaccard"`, `"ccc"` and `"duo"`;
#'   * 1 - distance for `"cosine"`, and for these metrics if `edges` has lost
#'     that column;
#'   * 1 / (1 + distance) for other metrics. `"inner_product"` has none.
#' @param mode `"directed"` (default), `"union"` or `"mutual"`: see Details.
#' @param negative What to do with edges whose weight is not positive: `"error"`
#'   (default), or `"drop"`, which removes these edges and keeps their points.
#' @param vertices All points in order: a vector of names, or a data frame with
#'   a column `name`, whose other columns become vertex attributes. `NULL`
#'   (default) takes the attribute `vertices` of `edges`. It is required if
#'   `edges` has lost this attribute, as after [merge()].
#' @param form For triples only: `"bipartite"` (default) or `"clique"`: see
#'   Details.
#'
#' @returns An igraph graph. The vertex attribute `name` is character, in the
#'   order of the points. The columns of `edges` except `from` and `to` are edge
#'   attributes, such as `rank`, `distance`, `correlation` or `similarity`.
#'   `weight` is there if you ask for it. Directed edges are in the order of
#'   `edges`, undirected ones in the order of their two ends.
#'
#' @section Errors:
#' The following are errors of class `fsknn_argument_error`:
#' * an edge data frame without `vertices`, or with a point that is not among
#'   them;
#' * a weight that needs a column or the metric, if `edges` has lost it;
#' * weights that are not positive;
#' * columns that have no name, or share one.
#' @inherit knn_search references
#' @seealso [knn_graph()], [write_edges()].
#'   `igraph::graph_from_data_frame(edges)` works as well, but leaves out
#'   isolated points.
#' @export
#' @examples
#' x <- matrix(rnorm(100 * 12), nrow = 100)
#' rownames(x) <- paste0("gene", 1:100)
#' edges <- knn_graph(x, k = 3)
#' g <- as_igraph(edges, weight = "similarity", mode = "union")
#' igraph::vcount(g)
#' igraph::sizes(igraph::cluster_louvain(g))
as_igraph <- function(edges, ..., weight = c("none", "similarity", "distance"),
                      mode = c("directed", "union", "mutual"),
                      negative = c("error", "drop"), vertices = NULL,
                      form = c("bipartite", "clique")) {
  check_no_more(...)
  check_supplied(edges)
  if (is_triples(edges)) {
    edges <- edges_of_triples(edges, form, vertices)
    vertices <- NULL
  } else {
    check_no_form(form)
  }
  weight <- check_choice(weight, c("none", "similarity", "distance"), "weight")
  mode <- check_choice(mode, c("directed", "union", "mutual"), "mode")
  negative <- check_choice(negative, c("error", "drop"), "negative")
  check_edges(edges)
  check_column_names(edges, "edges")
  check_column_names(vertices %||% attr(edges, "vertices"), "vertices")
  vertices <- check_vertices(vertices %||% attr(edges, "vertices"))

  columns <- as.list(edges)
  columns$from <- vertex_numbers(edges$from, vertices$name)
  columns$to <- vertex_numbers(edges$to, vertices$name)
  if (weight != "none") {
    columns$weight <- edge_weights(edges, weight)
    columns <- check_weights(columns, negative)
  }
  directed <- mode == "directed" && !is_undirected(edges)
  if (mode != "directed" && !is_undirected(edges)) {
    columns <- merge_directions(columns, mode, nrow(vertices))
  }

  graph <- igraph::make_empty_graph(
    n = nrow(vertices), directed = directed
  )
  for (name in names(vertices)) {
    graph <- igraph::set_vertex_attr(
      graph, name, value = plain_attribute(vertices[[name]])
    )
  }
  is_attribute <- !names(columns) %in% c("from", "to")
  columns[is_attribute] <- lapply(columns[is_attribute], plain_attribute)
  igraph::add_edges(
    graph, rbind(columns$from, columns$to), attr = columns[is_attribute]
  )
}

# igraph would store the codes of a factor or a date instead of its text.
plain_attribute <- function(values) {
  if (is.object(values)) as.character(values) else values
}

check_edges <- function(edges, call = caller_env()) {
  if (!is.data.frame(edges)) {
    given <- describe_type(edges)
    writing <- exists("file", envir = call, inherits = FALSE)
    abort_argument(
      c(
        "{.arg edges} must be a data frame from {.fn knn_graph}, not {given}.",
        i = if (writing && inherits(edges, "igraph")) {
          "An igraph graph is written by {.fn igraph::write_graph}."
        }
      ),
      call
    )
  }
  missing <- setdiff(c("from", "to"), names(edges))
  if (length(missing) > 0) {
    abort_argument(
      c(
        "{.arg edges} must have the columns {.code from} and {.code to}.",
        x = "There is no {.code {missing[[1]]}}."
      ),
      call
    )
  }
  check_edge_columns(edges, "edges", call)
}

# Columns that the verbs read hold a plain value for each edge. Other columns
# may be lists, but not matrices.
check_edge_columns <- function(edges, arg, call = caller_env()) {
  read <- c("from", "to", "rank", "distance", "correlation", "similarity",
            "weight", "stability", "block")
  wrong <- vapply(names(edges), function(name) {
    values <- edges[[name]]
    !is.null(dim(values)) || name %in% read && !is.atomic(values)
  }, NA)
  if (any(wrong)) {
    name <- names(edges)[wrong][[1]]
    given <- describe_type(edges[[name]])
    abort_argument(
      "The columns of {.arg {arg}} must be vectors with one value for each edge,
       but {.code {name}} is {given}.",
      call
    )
  }
}

# Returns a data frame with a unique character column `name` first.
check_vertices <- function(vertices, call = caller_env()) {
  if (is.null(vertices)) {
    # Not every verb has the argument.
    code <- if (has_argument(call, "vertices")) {
      "vertices = attr(old, \"vertices\")"
    } else {
      "attr(edges, \"vertices\") <- attr(old, \"vertices\")"
    }
    abort_argument(
      c(
        "{.arg edges} has lost its vertices, so that isolated points and the
         order of the points are not known.",
        i = "Use {.code {code}}, where {.code old} is the edges as
             {.fn knn_graph} made them."
      ),
      call
    )
  }
  given <- vertices
  vertices <- vertex_table(vertices)
  if (!is.data.frame(vertices) || !"name" %in% names(vertices)) {
    abort_argument(
      "{.arg vertices} must be a data frame with a column {.code name}, or a
       vector of names.",
      call
    )
  }
  vertices <- vertices[c("name", setdiff(names(vertices), "name"))]
  vertices$name <- id_text(vertices$name)
  check_text(
    vertices$name, "The names in `vertices`", "row", "vertices$name", call
  )
  if (anyNA(vertices$name) || anyDuplicated(vertices$name) > 0) {
    abort_argument(
      c(
        "The names in {.arg vertices} must be unique, and none of them
         missing.",
        i = hint_of_vertices(given)
      ),
      call
    )
  }
  vertices
}

# A vector that repeats values may be a clustering of the points.
hint_of_vertices <- function(vertices) {
  if (is.data.frame(vertices)) {
    return(NULL)
  }
  names <- if (is.null(names(vertices))) {
    "rownames(x)"
  } else {
    "names(vertices)"
  }
  cluster <- if (is.object(vertices)) "as.vector(vertices)" else "vertices"
  paste0(
    "To add a value for each point, such as its cluster, use ",
    "{.code data.frame(name = ", names, ", cluster = ", cluster, ")}."
  )
}

# Has the verb in this frame an argument of this name?
has_argument <- function(call, arg) {
  is.environment(call) && exists(arg, call, inherits = FALSE)
}

# A vector of names is one column of the table of points. as.vector() alone
# would take the words of a factor and the bits of an integer64.
vertex_table <- function(vertices) {
  if (is.data.frame(vertices) || !is.atomic(vertices) || is.null(vertices)) {
    return(vertices)
  }
  names <- if (is.object(vertices)) id_text(vertices) else as.vector(vertices)
  data.frame(name = names)
}

# arg: the argument that the ends are of.
vertex_numbers <- function(ends, names, call = caller_env(), arg = "edges") {
  # Row numbers of points without names need no look-up by text.
  numbered <- is.numeric(ends) && length(names) > 0 &&
    identical(names, as.character(seq_along(names)))
  numbers <- if (numbered) {
    match(ends, seq_along(names))
  } else {
    match(id_text(ends), names)
  }
  if (anyNA(numbers)) {
    check_text(
      ends, paste0("The points of `", arg, "`"), "edge", paste0(arg, "$from"),
      call
    )
    unknown <- unique(id_text(ends[is.na(numbers)]))
    count <- length(unknown)
    where <- first_few(paste0("\"", utils::head(unknown, 3), "\""), count)
    abort_argument(
      c(
        if (has_argument(call, "vertices")) {
          "{.arg vertices} must name every point of {.arg {arg}}."
        } else {
          "The attribute {.val vertices} of {.arg {arg}} must name every point
           of its edges."
        },
        x = "{format_count(count)} {cli::qty(count)}point{?s} {?is/are} not
             there: {where}."
      ),
      call
    )
  }
  numbers
}

# arg: the argument that says which; own: are the edges the user's own?
edge_weights <- function(edges, weight, call = caller_env(), arg = "weight",
                         own = TRUE) {
  if (weight == "distance") {
    return(edge_column(edges, "distance", weight, call, arg))
  }
  if (is.numeric(edges[["similarity"]])) {
    return(edges[["similarity"]])
  }
  metric <- metric_facts(attr(edges, "metric") %||% NA)
  if (is.null(metric)) {
    abort_argument(
      c(
        "{.code {arg} = \"similarity\"} needs edges that know their metric.",
        i = if (own) {
          "Give it back with {.code attr(edges, \"metric\") <-} (and
           {.val sign}), or use {.code {arg} = \"distance\"}."
        } else {
          "Use the edges of {.fn knn_graph}, or {.code {arg} = \"distance\"}."
        }
      ),
      call
    )
  }
  switch(
    metric$similarity,
    none = abort_argument(
      c(
        "Metric {.val {metric$name}} has no similarity.",
        x = "1 / (1 + distance) is none where distances may be below 0."
      ),
      call
    ),
    correlation = {
      r <- edge_column(edges, "correlation", weight, call, arg)
      sign <- check_choice(
        attr(edges, "sign"), metric_signs, "attr(edges, \"sign\")", call = call
      )
      switch(sign, signed = r, absolute = abs(r), negative = -r)
    },
    complement = 1 - edge_column(edges, "distance", weight, call, arg),
    reciprocal = 1 / (1 + edge_column(edges, "distance", weight, call, arg))
  )
}

edge_column <- function(edges, column, weight, call, arg = "weight") {
  values <- edges[[column]]
  if (!is.numeric(values)) {
    abort_argument(
      "{.code {arg} = \"{weight}\"} needs a numeric column {.code {column}} in
       {.arg edges}.",
      call
    )
  }
  values
}

# igraph's algorithms need positive weights.
check_weights <- function(columns, negative, call = caller_env()) {
  positive <- !is.na(columns$weight) & columns$weight > 0
  bad <- sum(!positive)
  if (bad == 0) {
    return(columns)
  }
  if (negative == "error") {
    abort_argument(
      c(
        "Weights must be positive.",
        x = "{format_count(bad)} of {format_count(length(positive))}
             {cli::qty(bad)}{?is/are} not.",
        i = "Leave out these edges with {.code negative = \"drop\"}."
      ),
      call
    )
  }
  lapply(columns, function(column) column[positive])
}

# Makes one undirected edge for each pair of points that is joined in either
# direction (union) or in both (mutual).
merge_directions <- function(columns, mode, num_vertices) {
  low <- pmin(columns$from, columns$to)
  high <- pmax(columns$from, columns$to)
  # The key is exact in double for up to 9e7 points.
  pair <- (low - 1) * num_vertices + high
  rank <- columns$rank %||% rep.int(1L, length(pair))
  order <- order(pair, rank, method = "radix")
  pair <- pair[order]
  first <- !duplicated_sorted(pair)
  if (mode == "mutual") {
    group <- cumsum(first)
    upward <- (columns$from < columns$to)[order]
    num_groups <- sum(first)
    both <- tabulate(group[upward], num_groups) > 0 &
      tabulate(group[!upward], num_groups) > 0
    first[first] <- both
  }
  kept <- order[first]
  merged <- lapply(columns, function(column) column[kept])
  transposed <- merged$from > merged$to
  if (is.factor(merged$alleles)) {
    merged$alleles[transposed] <- swapped_alleles(merged$alleles[transposed])
  }
  merged$from <- low[kept]
  merged$to <- high[kept]
  merged
}

duplicated_sorted <- function(values) {
  count <- length(values)
  c(logical(min(count, 1L)), values[-1] == values[-count])
}
