#' Minimum spanning tree of a kNN graph
#'
#' Selects the edges of the minimum spanning tree of a graph. If the graph has
#' several components, the result is the minimum spanning forest, with one tree
#' for each component. The length of an edge is its distance.
#'
#' @details Only the edges of the graph are used. So the tree approximates that
#' of the complete graph of all points (the AMST and MSF of Arefin et al.). An
#' edge of the true tree is missing if neither end is among the k nearest
#' neighbours of the other. A graph with a small k may give a forest.
#' [mst_knn()] computes the exact tree of the complete graph from a matrix, as
#' its element `tree`.
#'
#' Edges count in either direction. Among edges of equal length, the one with
#' the smaller row numbers comes first. So the tree is always the same.
#'
#' The verb that makes the graph has the options for points, missing values and
#' workers: see [point_options()] and [run_options()].
#'
#' @param edges An edge data frame from [knn_graph()] or [read_knn()], or rows
#'   of it. Or an igraph graph from [as_igraph()] with an edge attribute
#'   `distance`. Or shards of an answer ([read_knn()]), which are read by blocks
#'   of rows.
#' @param ... Must be empty.
#'
#' @returns For an edge data frame, its rows for the edges of the tree, in their
#'   order, with all points. For shards, the same rows of the edge data frame
#'   that they represent. For an igraph graph, an undirected igraph graph with
#'   the same attributes.
#'
#' @section Errors: The following are errors of class `fsknn_argument_error`: an
#' object that is not such a graph, and distances that are absent, missing or
#' negative.
#' @references
#' Arefin AS, Riveros C, Berretta R, Moscato P (2012). kNN-Boruvka-GPU: A Fast
#' and Scalable MST Construction from kNN Graphs on GPU. *ICCSA 2012*, Lecture
#' Notes in Computer Science 7333: 71-86. \doi{10.1007/978-3-642-31125-3_6}
#'
#' Arefin AS, Riveros C, Berretta R, Moscato P (2012). GPU-FS-kNN: A Software
#' Tool for Fast and Scalable kNN Computation Using GPUs. *PLoS ONE* 7(8):
#' e44000. \doi{10.1371/journal.pone.0044000}
#' @seealso [mst_knn()] for clusters, [as_igraph()], [write_edges()],
#'   [plot_neighbourhood()].
#' @export
#' @examples
#' x <- matrix(rnorm(100 * 12), nrow = 100)
#' edges <- knn_graph(x, k = 3, backend = "cpu")
#' tree <- spanning_forest(edges)
#' tree
#' sum(tree$distance)
#' igraph::count_components(as_igraph(tree))
spanning_forest <- function(edges, ...) {
  check_no_more(...)
  check_supplied(edges)
  if (is_knn_shards(edges)) {
    check_shards_are_graph(edges, "edges", current_env())
    return(forest_of_shards(edges, current_env()))
  }
  links <- graph_links(edges)
  check_lengths(links$distance, "edges")
  rows <- sort(links$id[in_forest(links)])
  if (igraph::is_igraph(edges)) {
    return(keep_links(edges, rows))
  }
  tree <- edges[rows, , drop = FALSE]
  attr(tree, "row.names") <- .set_row_names(length(rows))
  attr(tree, "kind") <- forest_name(links$num_points, length(rows))
  tree
}

forest_name <- function(num_points, num_edges) {
  paste(
    "Minimum spanning",
    if (num_points - num_edges > 1) "forest" else "tree"
  )
}

# Returns a graph's undirected links in their total order, (distance, lower
# number, higher number), each pair of points once. They are low, high,
# distance, and id, the row or edge of origin. Also returns num_points, names,
# and k, the number of neighbours with which the graph was made (Inf if
# unknown).
graph_links <- function(edges, arg = "edges", call = caller_env()) {
  facts <- if (igraph::is_igraph(edges)) {
    igraph_facts(edges, arg, call)
  } else {
    edges_facts(edges, arg, call)
  }
  check_distances(facts$distance, arg, call)
  low <- pmin(facts$from, facts$to)
  high <- pmax(facts$from, facts$to)
  rank <- facts$rank %||% integer(length(low))
  id <- order(facts$distance, low, high, rank, method = "radix")
  # The key is exact in double for up to 9e7 points.
  pair <- ((low - 1) * facts$num_points + high)[id]
  id <- id[!duplicated(pair) & (low < high)[id]]
  list(
    low = low[id], high = high[id], distance = facts$distance[id], id = id,
    num_points = facts$num_points, vertices = facts$vertices,
    metric = facts$metric, sign = facts$sign, weighted = facts$weighted,
    num_features = facts$num_features, num_covariates = facts$num_covariates,
    correlation = facts$correlation[id], similarity = facts$similarity[id],
    taken_from = facts$taken_from,
    rank = facts$rank[id], k = min(facts$k, highest_rank(facts$rank), Inf)
  )
}

highest_rank <- function(rank) {
  if (length(rank) > 0 && !anyNA(rank)) max(rank)
}

edges_facts <- function(edges, arg, call) {
  if (!is.data.frame(edges)) {
    given <- describe_type(edges)
    abort_argument(
      "{.arg {arg}} must be an edge data frame from {.fn knn_graph} or an
       igraph graph from {.fn as_igraph}, not {given}.",
      call
    )
  }
  vertices <- vertex_table(attr(edges, "vertices"))
  if (is.null(vertices) || !all(c("from", "to") %in% names(edges))) {
    abort_argument(
      c(
        "{.arg {arg}} has lost its points, or the columns {.code from} and
         {.code to}.",
        i = "Give the edges as {.fn knn_graph} made them, or rows of them taken
             with {.code [}; or the graph that {.fn as_igraph} makes of them
             with {.arg vertices}."
      ),
      call
    )
  }
  check_edge_columns(edges, arg, call)
  checked <- check_vertices(vertices, call)
  if (is.factor(vertices$name)) {
    vertices$name <- checked$name
  }
  list(
    from = vertex_numbers(edges$from, checked$name, call, arg),
    to = vertex_numbers(edges$to, checked$name, call, arg),
    distance = edges[["distance"]],
    # By blocks, each rank occurs once in each block, so it does not order a
    # point's edges.
    rank = if (is.null(edges[["block"]])) edges[["rank"]],
    correlation = edges[["correlation"]],
    similarity = edges[["similarity"]],
    # With `between`, the nearest of all points are unknown.
    k = if (is.null(attr(edges, "between"))) attr(edges, "k", exact = TRUE),
    num_points = nrow(vertices), vertices = vertices,
    metric = attr(edges, "metric"), sign = attr(edges, "sign"),
    weighted = attr(edges, "weighted"),
    num_features = attr(edges, "num_features"),
    taken_from = attr(edges, "taken_from"),
    num_covariates = attr(edges, "num_covariates")
  )
}

igraph_facts <- function(graph, arg, call) {
  ends <- igraph::as_edgelist(graph, names = FALSE)
  attributes <- igraph::edge_attr(graph)
  num_points <- igraph::vcount(graph)
  vertices <- as.data.frame(
    igraph::vertex_attr(graph), optional = TRUE, stringsAsFactors = FALSE
  )
  if (is.null(vertices$name)) {
    vertices <- data.frame(name = seq_len(num_points))
  }
  check_text(
    vertices$name, paste0("The vertex names of `", arg, "`"), "vertex",
    paste0("igraph::V(", arg, ")$name"), call
  )
  list(
    from = ends[, 1], to = ends[, 2], distance = attributes$distance,
    rank = if (is.null(attributes$block)) attributes$rank,
    correlation = attributes$correlation, similarity = attributes$similarity,
    k = NULL,
    num_points = num_points, vertices = vertices
  )
}

check_distances <- function(distance, arg, call) {
  if (!is.numeric(distance)) {
    abort_argument(
      c(
        "{.arg {arg}} must have numeric distances.",
        i = "They are the column {.code distance} of an edge data frame, or the
             edge attribute of an igraph graph."
      ),
      call
    )
  }
  missing <- sum(is.na(distance))
  if (missing > 0) {
    abort_argument(
      c(
        "{.arg {arg}} must have no missing distances.",
        x = "{format_count(missing)} of {format_count(length(distance))}
             {cli::qty(missing)}{?is/are} missing."
      ),
      call
    )
  }
}

# Lengths are added along a tree and must not be below 0.
check_lengths <- function(distance, arg, call = caller_env()) {
  negative <- distance[distance < 0]
  count <- length(negative)
  if (count == 0) {
    return(invisible())
  }
  where <- first_few(vapply(utils::head(negative, 3), format, ""), count)
  abort_argument(
    c(
      "{.arg {arg}} must have no distances below 0.",
      x = "{format_count(count)} of {format_count(length(distance))}
           {cli::qty(count)}{?is/are}: {where}.",
      i = "A similarity is no distance, nor is an inner product."
    ),
    call
  )
}

# Returns the links of the forest. Their positions in the total order are the
# weights. No two are equal, so there is one answer.
in_forest <- function(links) {
  # mst() of igraph 2.3 fails without edges.
  if (length(links$low) == 0) {
    return(logical())
  }
  graph <- igraph::make_empty_graph(links$num_points, directed = FALSE)
  places <- seq_along(links$low)
  graph <- igraph::add_edges(
    graph, rbind(links$low, links$high), attr = list(place = places)
  )
  tree <- igraph::mst(graph, weights = places)
  places %in% igraph::edge_attr(tree, "place")
}

# Returns an undirected graph with some of the edges and all attributes.
keep_links <- function(graph, rows) {
  ends <- igraph::as_edgelist(graph, names = FALSE)[rows, , drop = FALSE]
  kept <- igraph::make_empty_graph(igraph::vcount(graph), directed = FALSE)
  igraph::graph_attr(kept) <- igraph::graph_attr(graph)
  igraph::vertex_attr(kept) <- igraph::vertex_attr(graph)
  igraph::add_edges(
    kept, t(ends), attr = lapply(igraph::edge_attr(graph), `[`, rows)
  )
}
