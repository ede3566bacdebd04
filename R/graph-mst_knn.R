#' MST-kNN clusters
#'
#' Clusters points by cutting a minimum spanning tree. An edge of the tree stays
#' if either end is among the nearest neighbours of the other. The resulting
#' components are cut again in the same way, until nothing changes. The number
#' of clusters is not a parameter.
#'
#' @details **Rule.** In a component of n points, an edge stays if either end is
#' among the other's floor(ln n) nearest (at least 1) within the component. On
#' data without distinct groups, this often keeps the whole tree.
#'
#' **From a matrix**, the result is exact: the tree is that of the complete
#' graph of all points, under the distances of [knn_search()]. The list of all
#' pairs is never stored. The nearest neighbours of each point determine most of
#' the tree. If the nearest point outside a component is in no list, a further
#' search finds it (Boruvka's rounds).
#'
#' **From a graph**, only the graph's edges are used. The tree is the forest of
#' [spanning_forest()], and each of its trees is a component at the start. A
#' point's neighbours are those in the graph, in either direction. The result
#' depends on k, and approaches that for the matrix as k grows.
#'
#' **The published rule.** The default, floor(ln n) alone, is the rule of this
#' package, and the kNN graph need not be connected. The published rule finds
#' the smallest k for which the kNN graph is connected, with edges in either
#' direction. It uses this k if it is below floor(ln n) (Inostroza-Ponta 2008;
#' Arefin et al. 2011). `k = "connected"` uses that rule. A number as `k` is
#' your own limit.
#'
#' The published number is found once for all points, and is used in every
#' component. The R package mstknnclust instead finds it again within each
#' component, which can cut further (or stop). For the 13,547 complete probes
#' and the outcome of the 78 patients of van 't Veer et al. (2002), the number
#' is 4. It gives 21 clusters; the default gives 1.
#'
#' **Ties.** Neighbours are ordered by (distance, row number), edges by
#' (distance, lower row number, higher row number). So tree and clusters are the
#' same for any backend, chunk size and number of threads.
#'
#' @param x Points in rows, as for [knn_graph()]: a matrix or data frame. Or a
#'   graph: an edge data frame from [knn_graph()], or an igraph graph made of it
#'   by [as_igraph()]. The k of the graph must be at least floor(ln n).
#' @param ... For a matrix: [point options][point_options()] and [run
#'   options][run_options()], by name. `BPPARAM` and `checkpoint` apply to the
#'   search for the nearest neighbours, which takes most of the time. The tree
#'   is built in this process. For a graph: must be empty.
#' @param k The largest number of nearest neighbours that count. `NULL`
#'   (default): floor(ln n), which is also the upper limit. A smaller number
#'   gives more clusters. `"connected"`: the smallest for which the kNN graph is
#'   connected, as in the first papers.
#' @inheritParams knn_graph
#'
#' @returns An object of class `fsknn_mst_knn`, a list of
#'   * `membership`: the cluster of each point, integers in the order of the
#'     points, named if the points are. Cluster 1 is the largest. Among equally
#'     large clusters, the one with the first point comes first.
#'     [igraph::make_clusters()] takes this vector;
#'   * `sizes`: the number of points of each cluster;
#'   * `edges`: the edges kept, shortest first, as a data frame like that of
#'     [knn_graph()]. It has the columns `from`, `to`, `distance` and, if known,
#'     `correlation` or `similarity`. Its attribute `vertices` has the column
#'     `cluster`, which [as_igraph()], [write_edges()] and
#'     [plot_neighbourhood()] use;
#'   * `tree`: the whole tree (or forest), as `edges`;
#'   * `exact`: `TRUE` if made from a matrix;
#'   * `k`, with `k = "connected"` only: the number that was found.
#'
#'   An isolated point (`constant = "isolate"`) is a cluster of its own.
#' @inheritSection knn_search Errors
#' @references
#' Inostroza-Ponta M (2008). *An Integrated and Scalable Approach Based on
#' Combinatorial Optimization Techniques for the Analysis of Microarray Data*.
#' PhD thesis, University of Newcastle, Australia.
#'
#' Arefin AS, Inostroza-Ponta M, Mathieson L, Berretta R, Moscato P (2011).
#' Clustering Nodes in Large-Scale Biological Networks Using External Memory
#' Algorithms. *ICA3PP 2011*, Lecture Notes in Computer Science 7017: 375-386.
#' \doi{10.1007/978-3-642-24669-2_36}
#'
#' Boruvka's rounds: Nesetril J, Milkova E, Nesetrilova H (2001). Otakar Boruvka
#' on minimum spanning tree problem. *Discrete Mathematics* 233: 3-36.
#' \doi{10.1016/S0012-365X(00)00224-7}
#' @seealso [spanning_forest()], [plot_neighbourhood()]
#' @export
#' @examples
#' # Three groups of genes that vary together
#' group <- rep(1:3, each = 30)
#' x <- matrix(rnorm(3 * 12), nrow = 3)[group, ] + 0.3 * rnorm(90 * 12)
#' rownames(x) <- paste0("gene", 1:90)
#' clusters <- mst_knn(x, backend = "cpu")
#' clusters
#' table(clusters$membership, group)
#'
#' # From a graph: its edges alone
#' mst_knn(knn_graph(x, k = 5, backend = "cpu"))
mst_knn <- function(x, ...) {
  check_supplied(x)
  UseMethod("mst_knn")
}

#' @rdname mst_knn
#' @export
mst_knn.default <- function(x, metric = NULL, sign = "signed", ..., k = NULL) {
  refuse_lost_edges(x)
  most <- check_most(k)
  options <- verb_options("mst_knn", ...)
  refuse_below_zero(
    options$metric, "{.fn mst_knn}", "edges of a tree have lengths"
  )
  options$in_memory <- TRUE
  search <- new_search(x, options, k = 1L, named = TRUE)
  if (!is.matrix(search$points$values)) {
    abort_argument(
      c(
        "{.arg x} must be held in memory as a matrix.",
        i = "Use {.code as.matrix(x)} if that fits, or
             {.code mst_knn(knn_graph(x))}."
      ),
      current_env()
    )
  }
  num_points <- nrow(search$points$values)
  num_joined <- num_points - length(search$request$skip)
  search$request$k <- list_length(num_joined)
  found <- run_search(search)
  most <- connected_k(most, num_joined, function(k) {
    index <- found$index[, seq_len(min(k, ncol(found$index))), drop = FALSE]
    there <- which(!is.na(index))
    list(from = row(index)[there], to = index[there])
  })
  # Only the edges of the tree need correlations.
  search$request$correlation <- has_correlation(options$metric)
  joined <- cpp_mst_knn(
    search$points$values, found$index, found$distance, most, search$request
  )
  cut <- naming_largest(search, in_core(joined), current_env())
  columns <- cut[c("from", "to", "distance")]
  if (has_correlation(options$metric)) {
    columns$correlation <- cut$correlation
  }
  columns <- with_similarity(columns, search)
  names <- search$points$names
  clusters <- new_mst_knn(
    cut, columns,
    vertices = data.frame(name = names %||% seq_len(num_points)),
    metric = options$metric$name, sign = options$sign, exact = TRUE,
    weighted = !is.null(search$request$weights),
    num_features = as.integer(ncol(search$points$values)),
    num_covariates = num_covariates(search$request),
    k = if (identical(k, "connected")) most,
    taken_from = search$points$taken_from
  )
  with_searched(clusters, search)
}

# The cuts need floor(ln n) neighbours of each point. Twice as many determine
# nearly the whole tree.
list_length <- function(num_points) {
  wanted <- 2L * near_ranks(num_points)
  as.integer(min(num_points - 1L, max(wanted, 8L)))
}

near_ranks <- function(num_points) {
  as.integer(max(1, floor(log(num_points))))
}

# A result of merge() or the like on edges is not a matrix of points.
refuse_lost_edges <- function(x, call = caller_env()) {
  if (is.data.frame(x) && all(c("from", "to", "distance") %in% names(x))) {
    abort_argument(
      c(
        "{.arg x} looks like edges that have lost their class.",
        i = "Give the edges as {.fn knn_graph} made them, or the graph that
             {.fn as_igraph} makes of them with {.arg vertices}."
      ),
      call
    )
  }
}

#' @rdname mst_knn
#' @export
mst_knn.fsknn_edges <- function(x, ..., k = NULL) {
  check_no_more(...)
  cut_graph(x, check_most(k))
}

#' @rdname mst_knn
#' @export
mst_knn.igraph <- function(x, ..., k = NULL) {
  check_no_more(...)
  cut_graph(x, check_most(k))
}

# Returns the given k. The default exceeds any floor(ln n). For "connected", see
# connected_k().
check_most <- function(k, call = caller_env()) {
  if (is.null(k)) {
    return(.Machine$integer.max)
  }
  if (rlang::is_string(k)) {
    return(check_choice(k, "connected", "k", call = call))
  }
  check_whole_number(k, "k", min = 1, max = .Machine$integer.max, call = call)
}

# `most` is from check_most(). If it is "connected", returns the smallest k for
# which the edges to the k nearest, in either direction, connect all num_joined
# points. It is at most floor(ln n). `edges_to` returns these edges (from, to)
# for a k.
connected_k <- function(most, num_joined, edges_to) {
  if (!identical(most, "connected")) {
    return(most)
  }
  # Adding edges never disconnects points, so bisection works.
  low <- 1L
  high <- near_ranks(num_joined)
  while (low < high) {
    middle <- (low + high) %/% 2L
    if (are_joined(edges_to(middle), num_joined)) {
      high <- middle
    } else {
      low <- middle + 1L
    }
  }
  high
}

are_joined <- function(edges, num_joined) {
  points <- unique(c(edges$from, edges$to))
  ends <- rbind(match(edges$from, points), match(edges$to, points))
  graph <- igraph::make_graph(ends, n = length(points), directed = FALSE)
  length(points) == num_joined && igraph::count_components(graph) == 1
}

cut_graph <- function(graph, most, call = caller_env()) {
  links <- graph_links(graph, "x", call)
  check_lengths(links$distance, "x", call)
  num_joined <- length(unique(c(links$low, links$high)))
  connect <- identical(most, "connected")
  check_graph_k(links$k, num_joined, if (connect) Inf else most, call)
  if (connect && is.null(links$rank)) {
    abort_no_ranks(call)
  }
  most <- connected_k(most, num_joined, function(k) {
    near <- links$rank <= k
    list(from = links$low[near], to = links$high[near])
  })
  tree <- in_forest(links)
  cut <- in_core(
    cpp_cut_forest(
      links$num_points, links$low, links$high, as.double(links$distance),
      tree, most
    ),
    call
  )
  columns <- list(
    from = links$low[tree], to = links$high[tree],
    distance = links$distance[tree]
  )
  columns$correlation <- links$correlation[tree]
  columns$similarity <- links$similarity[tree]
  new_mst_knn(
    cut, columns, links$vertices, links$metric, links$sign, exact = FALSE,
    weighted = links$weighted, num_features = links$num_features,
    num_covariates = links$num_covariates, k = if (connect) most,
    taken_from = links$taken_from
  )
}

check_graph_k <- function(k, num_points, most, call) {
  needed <- min(near_ranks(num_points), most)
  if (num_points < 2 || (is.finite(k) && k >= needed)) {
    return(invisible())
  }
  why <- if (needed == most) {
    "the k that is asked for"
  } else {
    paste("floor(ln n) for n =", format_count(num_points))
  }
  if (!is.finite(k)) {
    abort_no_ranks(call)
  }
  abort_argument(
    c(
      "{.arg x} must have at least {needed} neighbours of each point
       ({why}), not {k}.",
      i = "Make the graph with {.code k = {needed}} or more, or give the matrix
           of the points, which has no such limit."
    ),
    call
  )
}

abort_no_ranks <- function(call) {
  abort_argument(
    c(
      "{.arg x} does not say how many neighbours each point has in it.",
      i = "It must have the ranks that {.fn knn_graph} gives its edges."
    ),
    call
  )
}

# `k` is the value found for `k = "connected"`, or NULL.
new_mst_knn <- function(cut, columns, vertices, metric, sign, exact,
                        weighted = FALSE, num_features = NULL,
                        num_covariates = NULL, k = NULL, taken_from = NULL) {
  names <- vertices$name
  if (!is.numeric(names)) {
    names <- id_text(names)
  }
  vertices$cluster <- cut$cluster
  columns[c("from", "to")] <- list(names[columns$from], names[columns$to])
  tree <- new_knn_edges(
    columns, vertices, metric, sign, weighted = weighted,
    num_features = num_features, num_covariates = num_covariates
  )
  attr(tree, "taken_from") <- taken_from
  attr(tree, "kind") <- forest_name(nrow(vertices), nrow(tree))
  edges <- tree[cut$kept, , drop = FALSE]
  attr(edges, "row.names") <- .set_row_names(nrow(edges))
  attr(edges, "kind") <- "MST-kNN clusters"
  membership <- cut$cluster
  if (is.character(names)) {
    names(membership) <- names
  }
  structure(
    c(
      list(
        membership = membership,
        sizes = tabulate(membership),
        edges = edges,
        tree = tree,
        exact = exact
      ),
      list(k = k)[!is.null(k)]
    ),
    class = "fsknn_mst_knn"
  )
}

#' @export
print.fsknn_mst_knn <- function(x, ...) {
  metric <- attr(x$edges, "metric")
  parts <- c(
    tally_points(length(x$membership), x$edges),
    describe_element(attr(x$edges, "taken_from")),
    tally(length(x$sizes), "cluster"),
    if (!is.null(metric)) {
      describe_metric(
        metric, attr(x$edges, "sign"), attr(x$edges, "weighted"),
        attr(x$edges, "num_covariates")
      )
    }
  )
  cat("MST-kNN: ", paste(parts, collapse = ", "), "\n", sep = "")
  shown <- utils::head(x$sizes[x$sizes > 1], 10)
  single <- sum(x$sizes == 1)
  more <- length(x$sizes) - single - length(shown)
  words <- c(
    format_count(shown),
    if (more > 0) paste(format_count(more), "more"),
    if (single > 0) tally(single, "single point")
  )
  cat("Sizes: ", paste(words, collapse = ", "), "\n", sep = "")
  cat(
    "Edges kept: ", format_count(nrow(x$edges)), " of ",
    format_count(nrow(x$tree)), " of the ",
    if (x$exact) {
      "complete graph's minimum spanning tree"
    } else {
      "given graph's minimum spanning forest"
    },
    "\n", sep = ""
  )
  if (!is.null(x$k)) {
    cat("k = ", x$k, " (\"connected\")\n", sep = "")
  }
  cat_searched(x, points = FALSE)
  invisible(x)
}
