#' The k-nearest-neighbour graph as an edge data frame
#'
#' Builds the directed graph that has an edge from each point to each of its k
#' nearest neighbours, by the rules of [knn_search()].
#'
#' @inheritParams knn_search
#' @param x The points, as for [knn_search()]. If there are row names (column
#'   names with `points = "columns"` or a `dimred`), they name the points and
#'   must be unique.
#' @param k Number of neighbours of each point, a whole number from 1 to the
#'   number of other points. It is never reduced to fit.
#' @param subset The points whose edges are returned, as for [knn_search()],
#'   without repeats. The other points remain vertices, and edges may lead to
#'   them.
#'
#' @returns A data frame of class `fsknn_edges` with one row for each edge. Rows
#'   are in the order of the points in `x` (or of `subset`), then of rank:
#'   * `from`, `to`: the point and its neighbour, as row names of `x` if it has
#'     any (character), otherwise as row numbers (integer);
#'   * `rank`: 1 for the nearest neighbour, to k;
#'   * `distance`: double;
#'   * `correlation`: for correlations only, the signed r,
#'     for every `sign`;
#'   * `similarity`: for `"proportional"`, `"sorensen"`, `"jaccard"`, `"ccc"`
#'     and `"duo"` only: see [metrics];
#'   * `alleles`: for `"ccc"` and `"duo"` only, the entry of the table of
#'     alleles: see [metrics];
#'   * `block`: the block of the neighbour, a factor; with `block` only.
#'
#'   The attribute `vertices` is a data frame whose column `name` holds all
#'   points in order, including isolated ones. Further attributes are `metric`,
#'   `sign`, `k` and `num_features`. There is also `weighted` (`TRUE`) if
#'   samples had weights, and `num_covariates` if rows were adjusted. Selecting
#'   rows with `[` keeps all attributes.
#'
#'   Check the first printed line, which has the numbers of points and features.
#'   They are exchanged if the points are in columns (see `points`). Nothing in
#'   the result depends on the backend.
#'
#'   With `block`, ranks are from 1 to k in each block, and the edges of a point
#'   are in order of the blocks. The attribute `between` has the value of the
#'   argument, unless edges lead to all blocks.
#'
#'   The column is called `distance` rather than `weight`, because igraph uses a
#'   column `weight` automatically. Some of its functions read it as a
#'   similarity and others as a length: see [as_igraph()].
#' @inheritSection knn_search Blocks
#' @inheritSection knn_search Errors
#' @inherit knn_search references
#' @seealso [as_igraph()] for a graph, [knn_search()] for plain matrices. Its
#'   argument `output` is for graphs with more than 2^31 - 1 edges, the maximum
#'   of a data frame (see [knn_output()]).
#' @export
#' @examples
#' x <- matrix(rnorm(100 * 12), nrow = 100)
#' rownames(x) <- paste0("gene", 1:100)
#' edges <- knn_graph(x, k = 3)
#' edges
#' edges[edges$rank == 1 & edges$correlation > 0.8, ]
#'
#' # all points, in order
#' head(attr(edges, "vertices"))
knn_graph <- function(x, k = 20, metric = NULL, sign = "signed", ...,
                      subset = NULL, block = NULL, between = FALSE) {
  check_supplied(x)
  search <- new_search(
    x, verb_options("knn_graph", ...), k = k, subset = subset, as_edges = TRUE,
    block = block, between = between
  )
  edges_of_search(run_search(search), search)
}
