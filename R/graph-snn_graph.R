#' Shared-nearest-neighbour graph
#'
#' Connects each two points that share at least one neighbour, and computes the
#' similarity of their neighbour lists. Each point counts as its own neighbour.
#' Use the graph for clustering, for example by [igraph::cluster_louvain()].
#'
#' `similarity` is `type` of bluster's `makeSNNGraph()`, with the same numbers:
#' * `"rank"` (Xu and Su 2015): k - r / 2. r is the smallest sum of the ranks of
#'   a shared neighbour in the two lists. A point has rank 0 in its own list;
#' * `"number"`: the number of shared neighbours;
#' * `"jaccard"`: the number of shared neighbours, divided by the number of
#'   points in either list. Seurat uses it, but counts a point among its k.
#'
#' A similarity that would be 0 is set to 1e-6, so that igraph keeps the edge.
#'
#' @param x Neighbours, in any shape that [as_knn()] takes: a result of
#'   [knn_search()], an edge data frame from [knn_graph()], and others. The
#'   indices of shards ([read_knn()]) are read in blocks, and take 4 bytes each
#'   in memory.
#' @param similarity The kind of similarity: see Details.
#' @param ... Must be empty.
#' @param min_similarity Edges with a smaller similarity are dropped. 0
#'   (default) keeps all. Seurat keeps Jaccard indices of at least 1 / 15.
#' @param names Names of the points. `NULL` (default): the names in `x`,
#'   otherwise row numbers.
#' @inheritParams run_options
#' @inheritParams knn_search
#'
#' @returns A data frame of class `fsknn_edges` with each pair of points once,
#'   in order of `from` and `to`. The column `similarity` (double) is larger for
#'   closer points. [as_igraph()] with `weight = "similarity"` uses it as
#'   weight.
#' @section Errors:
#' The following are errors of class `fsknn_argument_error`: neighbours in an
#' unknown shape, neighbours of queries, and a neighbour that a point has twice.
#' More edges than the 2^31 - 1 rows of a data frame are a `fsknn_size_error`.
#' @references Xu C, Su Z (2015). Identification of cell types from single-cell
#' transcriptomes using a novel clustering method. *Bioinformatics* 31(12):
#' 1974-1980. \doi{10.1093/bioinformatics/btv088}
#' @seealso [undirected_edges()] for mutual neighbours.
#' @export
#' @examples
#' x <- rbind(matrix(rnorm(300), 50), matrix(rnorm(300, mean = 3), 50))
#' nn <- knn_search(x, k = 8, metric = "euclidean")
#' edges <- snn_graph(nn, similarity = "jaccard")
#' edges
#' g <- as_igraph(edges, weight = "similarity")
#' igraph::sizes(igraph::cluster_louvain(g))
snn_graph <- function(x, similarity = c("rank", "number", "jaccard"), ...,
                      min_similarity = 0, names = NULL, num_threads = NULL,
                      progress = NULL) {
  check_no_more(...)
  check_supplied(x)
  similarity <- check_choice(
    similarity, c("rank", "number", "jaccard"), "similarity"
  )
  num_threads <- check_num_threads(num_threads)
  progress <- check_progress(progress)
  if (!is.numeric(min_similarity) || length(min_similarity) != 1 ||
        is.na(min_similarity)) {
    given <- describe_value(min_similarity)
    abort_argument(
      "{.arg min_similarity} must be a number, not {given}.", current_env()
    )
  }
  if (is_knn_shards(x)) {
    check_shards_are_graph(x, "x", current_env())
    num_points <- nrow(x)
    names <- check_neighbour_names(names, num_points)
    index <- sets_of_shards(x, "x", current_env())
  } else {
    nn <- read_knn_shape(x)
    num_points <- num_rows_of(nn)
    if (is.null(names)) check_row_names(nn$names, "x")
    names <- check_neighbour_names(names, num_points) %||% nn$names
    check_distinct_neighbours(nn, names, current_env())
    index <- nn$index
  }
  found <- cpp_shared_neighbours(
    index, similarity, as.double(min_similarity), max_edges, num_threads,
    progress
  )
  if (identical(found$failure, "too_many_pairs")) {
    cli_abort(
      c(
        "Too many points share neighbours: a data frame has room for
         {format_count(max_edges)} edges.",
        i = "Use fewer neighbours, or a greater {.arg min_similarity}."
      ),
      class = c("fsknn_size_error", "fsknn_error")
    )
  }
  in_core(found, current_env())
  if (!is.null(names)) {
    found$from <- cpp_names_at(names, found$from)
    found$to <- cpp_names_at(names, found$to)
  }
  edges <- new_knn_edges(
    found, data.frame(name = names %||% seq_len(num_points))
  )
  as_undirected(
    edges, paste0("Shared-nearest-neighbour graph (", similarity, ")")
  )
}
