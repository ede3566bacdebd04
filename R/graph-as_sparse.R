#' Edges as a sparse matrix
#'
#' `as_sparse()` gives the adjacency matrix of a graph as a `dgCMatrix` of the
#' Matrix package, which Seurat and many other packages use.
#'
#' The entry in row i and column j is the edge from i to its neighbour j. Graphs
#' that contain each pair once, such as those of [snn_graph()], give both (i, j)
#' and (j, i). A distance of 0 is stored as an explicit zero, because a missing
#' entry means no edge. Functions such as [Matrix::drop0()] remove it.
#'
#' The matrix of a kNN graph is not symmetric, because a point need not be a
#' neighbour of its own neighbours. `mode` makes it symmetric.
#' `destiny::DiffusionMap(distance = )` needs a symmetric matrix, and a number
#' as its `sigma` (its other options need the data).
#'
#' @param edges An edge data frame, neighbours in any shape that [as_knn()]
#'   takes, or shards of them. [read_knn()] describes when shards are read by
#'   blocks.
#' @param value The entries of the matrix. `"distance"` is smaller for nearer
#'   points, and `"similarity"` larger (as for `weight` in [as_igraph()]).
#'   `"one"` gives 1 for each edge. The name of another numeric column of the
#'   edges gives its values. `NULL` (default): distance if there is one,
#'   otherwise similarity.
#' @param ... Must be empty.
#' @param mode `"directed"` (default): the edges as they are. `"union"`: the
#'   pairs in which either point is a neighbour of the other. `"mutual"`: the
#'   pairs in which both are. If the two directions have different values, the
#'   choice is that of [undirected_edges()].
#'
#' @returns A `dgCMatrix` with one row and column for each point, in order,
#'   named if the points have names. With `mode = "union"` or `"mutual"`, a
#'   `dsCMatrix`, which stores each pair once.
#' @section Errors: Neighbours in an unknown shape, a `value` that is not a
#' column, and a repeated edge or neighbour are errors of class
#' `fsknn_argument_error`. More entries than the 2^31 - 1 that a `dgCMatrix` can
#' hold are a `fsknn_size_error`. A missing Matrix package is a
#' `fsknn_package_error`.
#' @seealso [as_igraph()], [as_knn()] for a `SelfHits` of the edges
#' @export
#' @examples
#' x <- matrix(rnorm(50 * 6), nrow = 50)
#' edges <- knn_graph(x, k = 3)
#' if (requireNamespace("Matrix", quietly = TRUE)) {
#'   m <- as_sparse(edges)
#'   dim(m)
#'   sum(m != 0)
#'   m <- as_sparse(edges, mode = "union")
#'   # destiny::DiffusionMap(distance = m, sigma = 2)
#' }
as_sparse <- function(edges, value = NULL, ...,
                      mode = c("directed", "union", "mutual")) {
  check_no_more(...)
  check_supplied(edges)
  mode <- check_choice(mode, c("directed", "union", "mutual"), "mode")
  check_package("Matrix", "A sparse matrix")
  if (is_knn_shards(edges)) {
    check_shards_are_graph(edges, "edges", current_env())
    by_blocks <- is.null(value) || identical(value, "distance") ||
      identical(value, "one")
    if (by_blocks && mode == "directed") {
      return(sparse_of_shards(edges, value, current_env()))
    } else if (by_blocks) {
      return(symmetric_of_shards(edges, value, mode, current_env()))
    }
  }
  own <- is.data.frame(edges)
  edges <- if (is_knn_shards(edges)) {
    edges_of_shards(edges, current_env())
  } else {
    edges_of(edges)
  }
  if (mode != "directed") {
    edges <- undirected_edges(edges, mode)
  }
  entries <- edge_values(edges, value, own)
  facts <- edges_facts(edges, "edges", current_env())
  from <- facts$from
  to <- facts$to
  if (mode != "directed") {
    # Only the upper triangle is stored.
    ends <- list(pmin(from, to), pmax(from, to))
    from <- ends[[1]]
    to <- ends[[2]]
  } else if (is_undirected(edges)) {
    check_num_entries(2 * length(from))
    ends <- list(c(from, to), c(to, from))
    from <- ends[[1]]
    to <- ends[[2]]
    entries <- c(entries, entries)
  }
  names <- facts$vertices$name
  names <- if (is.character(names)) list(names, names)
  n <- facts$num_points
  # Entries are sorted by column here, because Matrix::sparseMatrix() would add
  # duplicates up and check again.
  order <- order(to, from, method = "radix")
  check_distinct(from, to, facts$vertices$name, current_env(), order)
  class <- if (mode == "directed") "dgCMatrix" else "dsCMatrix"
  methods::new(
    methods::getClass(class, where = asNamespace("Matrix")),
    i = from[order] - 1L,
    p = c(0L, cumsum(tabulate(to, n))),
    x = as.double(entries[order]),
    Dim = c(n, n), Dimnames = names %||% list(NULL, NULL)
  )
}

# Returns edges with the similarity that follows from the distances of shards.
# For correlations these are 1 - r, 1 - |r| or 1 + r, by the sign. 1 - distance
# is the similarity that `sign` means, while r itself is lost under "absolute".
edges_of_shards <- function(shards, call) {
  edges <- edges_of(shards, call = call)
  metric <- metric_of_neighbours(shards)
  sign <- shards$facts$sign
  attr(edges, "metric") <- metric
  attr(edges, "sign") <- sign
  facts <- metric_facts(metric %||% NA)
  if (!is.null(facts) && has_correlation(facts)) {
    edges$similarity <- 1 - edges$distance
    edges$correlation <- switch(
      sign, signed = edges$similarity, negative = -edges$similarity
    )
  }
  edges
}

check_num_entries <- function(count, call = caller_env()) {
  if (count > max_edges) {
    cli_abort(
      "A {.cls dgCMatrix} can't hold {format_count(count)} entries; its limit is
       {format_count(max_edges)}.",
      class = c("fsknn_size_error", "fsknn_error"), call = call
    )
  }
}

edge_values <- function(edges, value, own, call = caller_env()) {
  if (is.null(value)) {
    value <- if (is.numeric(edges[["distance"]])) {
      "distance"
    } else if (is.numeric(edges[["similarity"]])) {
      "similarity"
    } else {
      "one"
    }
  }
  numeric <- names(edges)[vapply(edges, is.numeric, NA)]
  choices <- unique(
    c("distance", "similarity", "one", setdiff(numeric, c("from", "to")))
  )
  value <- check_choice(value, choices, "value", call = call)
  switch(
    value,
    one = rep(1, nrow(edges)),
    similarity = edge_weights(edges, "similarity", call, "value", own),
    edge_column(edges, value, value, call, "value")
  )
}
