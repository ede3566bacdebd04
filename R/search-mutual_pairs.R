#' Mutual nearest neighbours between blocks
#'
#' Finds the pairs of points of two different blocks that are among each other's
#' k nearest in the other's block (Haghverdi et al. 2018,
#' \doi{10.1038/nbt.4091}). Other packages use these as anchors for batch
#' correction. They are exact, and one search finds them for all pairs of
#' blocks. Nothing is corrected here.
#'
#' @inheritParams knn_graph
#' @param block The block of each point (a batch, a donor), as for
#'   [knn_search()]. It is a factor, a vector that can become one, or the name
#'   of a column. There must be at least two blocks, each with at least k
#'   points.
#' @param k Number of neighbours of each point in each other block.
#'
#' @returns An undirected edge data frame of class `fsknn_edges`. It has each
#'   pair once, in order of `from` and `to`, as names or numbers of points
#'   (`from` is the earlier one in `x`). Its columns are
#'   * `rank_from`: the rank of `from` among the neighbours of `to` in the block
#'     of `from`;
#'   * `rank_to`: the rank of `to` among the neighbours of `from` in the block
#'     of `to`;
#'   * `distance`; `correlation`, for correlations; `similarity`, for
#'     `"proportional"`, `"sorensen"`, `"jaccard"`, `"ccc"` and `"duo"`;
#'   * `block_from`, `block_to`: the points' blocks.
#'
#'   For two blocks, these are the pairs of
#'   `BiocNeighbors::findMutualNN(x1, x2, k1 = k)` (`metric = "euclidean"`).
#' @inheritSection knn_search Errors
#' @seealso [knn_graph()], whose `block` has all neighbours in each block;
#'   [neighbour_mixing()] for how well blocks mix.
#' @references
#' Haghverdi L, Lun ATL, Morgan MD, Marioni JC (2018). Batch effects in
#' single-cell RNA-sequencing data are corrected by matching mutual nearest
#' neighbors. *Nature Biotechnology* 36: 421-427. \doi{10.1038/nbt.4091}
#' @export
#' @examples
#' x <- matrix(rnorm(60 * 5), 60)
#' batch <- rep(c("first", "second"), 30)
#' x[batch == "second", ] <- x[batch == "second", ] + 0.5
#' mutual_pairs(x, batch, k = 3, metric = "euclidean")
mutual_pairs <- function(x, block, k = 20, metric = NULL, sign = "signed",
                         ...) {
  check_supplied(x)
  check_supplied(block)
  if (is.null(block)) {
    abort_argument(
      "{.arg block} must be a factor, or a vector, with one value for each
       point, not NULL.",
      current_env()
    )
  }
  options <- verb_options("mutual_pairs", ...)
  search <- new_search(
    x, options, k = k, as_edges = TRUE, block = block, between = TRUE
  )
  found <- both_ways(run_search(search), nrow(search$points$values))
  blocks <- search$request$blocks
  search$request["blocks"] <- list(NULL)
  edges <- edges_of_search(found, search)
  columns <- c(
    as.list(edges)[c("from", "to")], found[c("rank_from", "rank_to")],
    found["distance"]
  )
  columns$correlation <- found$correlation
  columns$similarity <- edges$similarity
  columns$block_from <- block_of_points(blocks, found$from)
  columns$block_to <- block_of_points(blocks, found$to)
  pairs <- new_knn_edges(
    columns, attr(edges, "vertices"), attr(edges, "metric"),
    attr(edges, "sign"), NULL, attr(edges, "weighted"),
    attr(edges, "num_features")
  )
  attr(pairs, "left_out") <- attr(edges, "left_out")
  attr(pairs, "taken_from") <- attr(edges, "taken_from")
  attr(pairs, "searched") <- attr(edges, "searched")
  as_undirected(
    pairs,
    paste0(
      "Mutual neighbours of ", blocks$count, " blocks (k = ",
      search$request$k, ")"
    )
  )
}

# Returns once each pair of points that has directed edges in both directions.
both_ways <- function(found, num_points) {
  # The key is exact in double for up to 9e7 points.
  low <- pmin(found$from, found$to)
  pair <- (low - 1) * num_points + pmax(found$from, found$to)
  up <- which(found$from < found$to)
  down <- which(found$from > found$to)
  back <- down[match(pair[up], pair[down])]
  up <- up[!is.na(back)]
  back <- back[!is.na(back)]
  order <- order(pair[up], method = "radix")
  up <- up[order]
  back <- back[order]
  list(
    from = found$from[up], to = found$to[up], rank = found$rank[up],
    distance = found$distance[up], correlation = found$correlation[up],
    rank_from = found$rank[back], rank_to = found$rank[up]
  )
}
