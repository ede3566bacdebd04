#' Mutual neighbours, unions and intersections of graphs
#'
#' In a kNN graph, j can be a neighbour of i although i is not a neighbour of j.
#' `undirected_edges()` gives the edges that exist in either direction
#' (`"union"`) or in both (`"mutual"`), each pair of points once.
#'
#' `combine_graphs()` gives the edges that any of several graphs of the same
#' points has (`"union"`), or that all have (`"intersection"`). For example, it
#' finds the neighbours under two metrics. With `min_stability`, it gives a
#' consensus graph of stable edges.
#'
#' @param edges An edge data frame of any kind, or neighbours in any shape that
#'   [as_knn()] takes.
#' @param mode `"union"` (default); or `"mutual"` for `undirected_edges()` and
#'   `"intersection"` for `combine_graphs()`.
#' @param ... For `undirected_edges()`, must be empty. For `combine_graphs()`,
#'   two or more graphs: edge data frames with the same points in `vertices`,
#'   matched by name (without names, equally many). All must be directed (as
#'   from [knn_graph()]) or all undirected.
#' @param min_stability For graphs from [edge_stability()]: edges whose
#'   `stability` is below this share are dropped before the graphs are combined.
#'   One such graph is then enough. `NULL` (default): all edges count.
#'
#' @returns An edge data frame of class `fsknn_edges`.
#'
#'   `undirected_edges()`: each pair once, in order of its two points. `from` is
#'   the earlier point. `rank` is the smaller of the two, and the other columns
#'   are from that direction. `block` is that of the neighbour in that
#'   direction, which is `to` or `from`.
#'
#'   `combine_graphs()`: each edge once, in the order of the first graph that
#'   has it. The columns are those that all graphs have, with the values of the
#'   first graph with the edge. `graphs` is the number of graphs that have the
#'   edge.
#' @section Errors: The following are errors of class `fsknn_argument_error`:
#' neighbours in an unknown shape, graphs with different points, and a mix of
#' directed and undirected graphs. So is `min_stability` for graphs without a
#' column `stability`.
#' @seealso [as_igraph()], whose `mode` does the same on the way to igraph.
#' @export
#' @examples
#' x <- matrix(rnorm(100 * 6), nrow = 100)
#' edges <- knn_graph(x, k = 5)
#' undirected_edges(edges, "mutual")
#'
#' # neighbours by both correlations
#' combine_graphs(edges, knn_graph(x, k = 5, metric = "spearman"),
#'                mode = "intersection")
undirected_edges <- function(edges, mode = c("union", "mutual"), ...) {
  check_no_more(...)
  check_supplied(edges)
  mode <- check_choice(
    mode, c("union", "mutual"), "mode",
    synonyms = c(intersection = "mutual", both = "mutual", either = "union")
  )
  edges <- edges_of(edges)
  if (is_undirected(edges)) {
    return(edges)
  }
  facts <- edges_facts(edges, "edges", current_env())
  columns <- as.list(edges)
  columns$from <- facts$from
  columns$to <- facts$to
  columns <- merge_directions(columns, mode, facts$num_points)
  vertices <- attr(edges, "vertices")
  columns$from <- vertices$name[columns$from]
  columns$to <- vertices$name[columns$to]
  merged <- new_knn_edges(
    columns, vertices, attr(edges, "metric"), attr(edges, "sign"),
    attr(edges, "k", exact = TRUE), attr(edges, "weighted"),
    attr(edges, "num_features"), attr(edges, "num_covariates")
  )
  attr(merged, "left_out") <- attr(edges, "left_out")
  attr(merged, "between") <- attr(edges, "between")
  attr(merged, "taken_from") <- attr(edges, "taken_from")
  attr(merged, "searched") <- attr(edges, "searched")
  kind <- if (mode == "mutual") "Mutual kNN graph" else "Symmetric kNN graph"
  as_undirected(merged, kind)
}

#' @rdname undirected_edges
#' @export
combine_graphs <- function(..., mode = c("union", "intersection"),
                           min_stability = NULL) {
  graphs <- list(...)
  mode <- check_choice(
    mode, c("union", "intersection"), "mode",
    synonyms = c(mutual = "intersection")
  )
  check_num_graphs(length(graphs), min_stability)
  graphs <- unname(Map(
    edges_of, graphs, names_of_dots(graphs),
    MoreArgs = list(call = current_env())
  ))
  if (!is.null(min_stability)) {
    graphs <- keep_stable(graphs, min_stability)
  }
  graphs <- name_by_place(graphs)
  first <- graphs[[1]]
  for (at in seq_along(graphs)) {
    check_same_points(first, graphs[[at]], at, names_of_dots(list(...)))
  }
  columns <- Reduce(intersect, lapply(graphs, names))
  all <- do.call(rbind, lapply(graphs, function(graph) {
    as.data.frame(unclass(graph)[columns], stringsAsFactors = FALSE)
  }))
  facts <- edges_facts(
    new_knn_edges(all, attr(first, "vertices")), "...", current_env()
  )
  ends <- cbind(facts$from, facts$to)
  if (is_undirected(first)) {
    ends <- cbind(pmin(ends[, 1], ends[, 2]), pmax(ends[, 1], ends[, 2]))
  }
  # The key is exact in double for up to 9e7 points.
  pair <- (ends[, 1] - 1) * facts$num_points + ends[, 2]
  graph <- rep(seq_along(graphs), vapply(graphs, nrow, 1L))
  once <- !duplicated(data.frame(pair, graph))
  group <- match(pair, unique(pair))
  count <- tabulate(group[once], max(group, 0L))
  kept <- !duplicated(group)
  if (mode == "intersection") {
    kept <- kept & count[group] == length(graphs)
  }
  columns <- lapply(all, `[`, kept)
  columns$graphs <- count[group[kept]]
  same <- function(name) {
    values <- unique(lapply(graphs, attr, name, exact = TRUE))
    if (length(values) == 1) values[[1]]
  }
  combined <- new_knn_edges(
    columns, attr(first, "vertices"), same("metric"), same("sign"),
    weighted = same("weighted"), num_features = same("num_features"),
    num_covariates = same("num_covariates")
  )
  attr(combined, "directed") <- attr(first, "directed")
  attr(combined, "kind") <- if (length(graphs) == 1) {
    "Consensus graph"
  } else {
    paste0(
      if (mode == "union") "Union" else "Intersection", " of ", length(graphs),
      " graphs"
    )
  }
  combined
}

# A single graph has nothing to combine, but its edges can be filtered.
check_num_graphs <- function(count, min_stability, call = caller_env()) {
  if (count == 0 || count == 1 && is.null(min_stability)) {
    abort_argument(
      c(
        "Two graphs or more must be given.",
        i = if (count == 1) {
          "One is enough with {.arg min_stability}, of {.fn edge_stability}."
        }
      ),
      call
    )
  }
}

# Keeps the edges of graphs with a stability that reach the minimum.
keep_stable <- function(graphs, min_stability, call = caller_env()) {
  min_stability <- check_positive_share(min_stability, "min_stability", call)
  has <- vapply(graphs, function(graph) !is.null(graph$stability), NA)
  if (!any(has)) {
    abort_argument(
      c(
        "{.arg min_stability} is for edges that have a stability.",
        x = "No graph has such a column.",
        i = "See {.fn edge_stability}."
      ),
      call
    )
  }
  lapply(graphs, function(graph) {
    if (is.null(graph$stability)) {
      return(graph)
    }
    graph[graph$stability >= min_stability * (1 - 1e-12), ]
  })
}

# Returns the names of the graphs in messages: ..1, ..2 if they have none.
names_of_dots <- function(dots) {
  names <- rlang::names2(dots)
  ifelse(names == "", paste0("..", seq_along(dots)), names)
}

# Returns an edge data frame unchanged, and other neighbours as edges.
edges_of <- function(edges, arg = "edges", call = caller_env()) {
  if (is.data.frame(edges)) {
    check_edges(edges, call)
    check_vertices(attr(edges, "vertices"), call)
    attr(edges, "vertices") <- vertex_table(attr(edges, "vertices"))
    return(edges)
  }
  nn <- read_knn_shape(edges, arg = arg, call = call)
  to_edges(nn[c("index", "distance")], nn$names, call)
}

# Ids that are factors or numbers become text, because those of other graphs may
# be text. Graphs without names of points get those of the first that has them,
# by position, if it has equally many.
name_by_place <- function(graphs) {
  graphs <- lapply(graphs, with_text_ids)
  names <- lapply(graphs, function(graph) attr(graph, "vertices")$name)
  known <- Find(is.character, names)
  lapply(graphs, function(graph) {
    own <- attr(graph, "vertices")$name
    if (is.numeric(own) && length(own) == length(known) &&
          all(own == seq_along(known))) {
      graph$from <- known[graph$from]
      graph$to <- known[graph$to]
      attr(graph, "vertices")$name <- known
    }
    graph
  })
}

with_text_ids <- function(graph) {
  own <- attr(graph, "vertices")$name
  numbered <- is.numeric(own) && all(own == seq_along(own))
  attr(graph, "vertices")$name <- if (numbered) own else id_text(own)
  for (end in c("from", "to")) {
    ends <- graph[[end]]
    if (!numbered) {
      graph[[end]] <- id_text(ends)
    } else if (!is.numeric(ends)) {
      graph[[end]] <- own[match(id_text(ends), id_text(own))]
    }
  }
  graph
}

# Points with names may be in any order; without names, they must be equally
# many. `args` are the names of the graphs in messages.
check_same_points <- function(first, graph, at, args, call = caller_env()) {
  names <- lapply(list(first, graph), function(edges) {
    attr(edges, "vertices")$name
  })
  if (all(vapply(names, is.character, NA))) {
    match_order(
      names[[2]], names[[1]], words_of_graphs(args[[1]], args[[at]]), call
    )
  } else if (!identical(id_text(names[[1]]), id_text(names[[2]]))) {
    abort_argument(
      c(
        "The graphs must have the same points.",
        x = "Graph {at} has others than the first."
      ),
      call
    )
  }
  if (is_undirected(first) != is_undirected(graph)) {
    abort_argument(
      c(
        "The graphs must all be directed, or all undirected.",
        x = "Graph {at} is not as the first.",
        i = "See {.fn undirected_edges}."
      ),
      call
    )
  }
}
