#' Topological overlap on a kNN graph
#'
#' Computes the topological overlap of WGCNA (Zhang and Horvath 2005) for the
#' points of a graph, as a sparse matrix. The overlap of two points measures how
#' strongly they are connected with each other and with the same other points.
#'
#' @details Let a be the adjacency of an edge, as for [soft_threshold()]. It is
#' 0 for no edge. Let k be the sum of a over the edges of a point. The overlap
#' of points i and j is
#'
#' \deqn{\frac{\sum_u a_{iu} a_{uj} + a_{ij}}{\min(k_i, k_j) + 1 - a_{ij}}}{
#' (sum_u a_iu a_uj + a_ij) / (min(k_i, k_j) + 1 - a_ij)}
#'
#' and 1 for a point with itself. This equals `WGCNA::TOMsimilarity()` with
#' `TOMType = "unsigned"` of the graph's adjacency, and zeros are not stored. It
#' is not the overlap over all pairs: pairs without an edge in the graph count
#' as 0.
#'
#' Two points have an overlap if they share an edge or a neighbour. This gives
#' up to about k^2 entries for each point, 12 bytes each. For clusters, use
#' `igraph::graph_from_adjacency_matrix(tom, "undirected", weighted = TRUE, diag
#' = FALSE)`.
#'
#' @inheritParams soft_threshold
#' @param edges An edge data frame with the column `correlation`, as from
#'   [knn_graph()] or [threshold_graph()].
#' @param power The power, a number of 1 or more. The default, 6, is that of
#'   WGCNA for unsigned networks. For signed networks, WGCNA uses 12.
#'
#' @returns A symmetric sparse matrix (`dsCMatrix` of package Matrix) with a row
#'   and a column for each point, named where the points are.
#' @inheritSection spanning_forest Errors
#' @inherit soft_threshold references
#' @seealso [snn_graph()] for shared neighbours without weights.
#' @export
#' @examples
#' x <- matrix(rnorm(2 * 30), 2)[rep(1:2, each = 40), ] +
#'   matrix(rnorm(80 * 30), 80)
#' edges <- knn_graph(x, k = 10, backend = "cpu")
#' tom <- sparse_tom(edges, power = 2)
#' tom[1:3, c(1:3, 41:43)]
sparse_tom <- function(edges, power = 6,
                       type = c("unsigned", "signed", "signed hybrid"), ...) {
  check_no_more(...)
  check_supplied(edges)
  power <- check_powers(power, "power", one = TRUE)
  type <- check_network_type(type)
  check_package("Matrix", "A sparse matrix")
  pairs <- similar_pairs(edges, type)
  n <- pairs$num_points
  pairs$edges$adjacency <- pairs$similarity^power
  k <- connectivity_of(pairs, pairs$edges$adjacency)
  one <- as_sparse(pairs$edges, "adjacency", mode = "union")
  shared <- Matrix::forceSymmetric(Matrix::crossprod(one), "U")
  all <- sparse_entries(shared)
  own <- sparse_entries(one)
  # Pairs with an edge and pairs with common neighbours are merged in one order.
  key <- sort(unique(c(all$key, own$key)))
  at <- list(i = (key - 1) %% n + 1, j = (key - 1) %/% n + 1)
  values <- function(entries) {
    x <- double(length(key))
    x[findInterval(entries$key, key)] <- entries$x
    x
  }
  a <- values(own)
  x <- (values(all) + a) / (pmin(k[at$i], k[at$j]) + 1 - a)
  off <- at$i != at$j
  Matrix::sparseMatrix(
    i = c(at$i[off], seq_len(n)), j = c(at$j[off], seq_len(n)),
    x = c(x[off], rep(1, n)), dims = c(n, n), dimnames = dimnames(one),
    symmetric = TRUE
  )
}

# Takes the upper triangle. Returns x and `key`, the position of each value,
# which is exact in double for up to 9e7 rows.
sparse_entries <- function(matrix) {
  size <- methods::slot(matrix, "Dim")[[1]]
  column <- rep(seq_len(size), diff(methods::slot(matrix, "p")))
  list(
    key = (column - 1) * size + methods::slot(matrix, "i") + 1,
    x = methods::slot(matrix, "x")
  )
}
