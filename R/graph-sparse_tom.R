#' Topological overlap on a kNN graph
#'
#' The topological overlap of WGCNA (Zhang and Horvath 2005) of the graph's
#' points, as a sparse matrix: how far two points are connected with the same
#' others, and with each other.
#'
#' @details
#' With a the adjacency of an edge (as for [soft_threshold()]; 0 where there is
#' none) and k the sum of a point's, the overlap of points i and j is
#'
#' \deqn{\frac{\sum_u a_{iu} a_{uj} + a_{ij}}{\min(k_i, k_j) + 1 - a_{ij}}}{
#' (sum_u a_iu a_uj + a_ij) / (min(k_i, k_j) + 1 - a_ij)}
#'
#' and 1 of a point with itself: `WGCNA::TOMsimilarity()` with
#' `TOMType = "unsigned"` of the graph's adjacency, whose zeros are not stored.
#' It is not that of all pairs: pairs that are no edges of the graph count as 0.
#'
#' Two points have an overlap if an edge joins them or they have a neighbour in
#' common: up to some k^2 for each point, 12 bytes each. Clusters come of it by
#' `igraph::graph_from_adjacency_matrix(tom, "undirected", weighted = TRUE,
#' diag = FALSE)`.
#'
#' @inheritParams soft_threshold
#' @param edges An edge data frame of a correlation, as [knn_graph()] or
#'   [threshold_graph()] gives it, with the column `correlation`.
#' @param power The power, a number of 1 or more: 6 by default, WGCNA's for
#'   unsigned networks (it has 12 for signed ones).
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
