#' Convert neighbours to and from other packages
#'
#' Packages that find or use nearest neighbours store them in different shapes,
#' and some count each point as its own first neighbour. `as_knn()` converts any
#' of these shapes to that of [knn_search()], or to any other by `to`. No
#' distance is computed, and no order is changed.
#'
#' | `to` | contents | point itself |
#' | --- | --- | --- |
#' | `"fsknn"` | class `fsknn_neighbours`: `index`, `distance` | left out |
#' | `"BiocNeighbors"` | list of `index`, `distance` | left out |
#' | `"FNN"` | list of `nn.index`, `nn.dist` | left out |
#' | `"dbscan"` | class `kNN`: `id`, `dist`, `k`; or class `frNN` | left out |
#' | `"uwot"`, `"rnndescent"` | list of `idx`, `dist` | first |
#' | `"RANN"` | list of `nn.idx`, `nn.dists` | first |
#' | `"Seurat"` | class `Neighbor`: `nn.idx`, `nn.dist`, `cell.names` | first |
#' | `"edges"` | data frame of [knn_graph()] | left out |
#' | `"SelfHits"` | of S4Vectors, for `colPair()` of cells | left out |
#'
#' **Shapes.** Indices and distances are matrices with a row for each point.
#' `"fsknn"`, `"BiocNeighbors"` and `"dbscan"` may also be two lists of vectors,
#' as from [within_search()], `findNeighbors()` and `frNN()`. The `eps` of a new
#' `frNN` is its largest distance. RcppHNSW has the shape of uwot. The result of
#' destiny's `find_knn()`, which calls the distances `dist`, is accepted too.
#'
#' The names of the points become row names, or names of the lists. A `SelfHits`
#' has no names. Its metadata columns are `rank`, `distance` and any other
#' columns of an edge data frame.
#'
#' **The point itself.** In a shape with each point first, k neighbours need
#' k + 1 columns. `n_neighbors` of uwot and `k.param` of Seurat count the point,
#' too. Conversion from such a shape removes a point's own number at any
#' position of its row, because a duplicate of the point can precede it. An
#' approximate search may not find the point itself. Then the last neighbour is
#' removed instead, so that all points have equally many, and a warning counts
#' these points.
#'
#' If rows are equal, `FNN::get.knn()` can leave out a duplicate instead of the
#' point itself. Such a neighbour is lost. `FNN::get.knnx(x, x, k + 1)` with
#' `self = TRUE` keeps it.
#'
#' **Queries.** Set `queries = TRUE` if row i is not point i, as from
#' [knn_query()], `FNN::get.knnx()`, `RANN::nn2(x, query)` or a `subset`. Then
#' no shape removes or adds a neighbour.
#'
#' **Distances.** Distances are not changed. In every shape a smaller distance
#' is nearer. They are found by the name that the shape gives them, or that
#' another shape gives them. An element that could hold distances and has none
#' of these names is ignored, with a warning of class
#' `fsknn_no_distance_warning`. For correlations, distances are 1 - r (see
#' `sign` of [knn_search()]). No shape here has weights; see [snn_graph()] and
#' [as_igraph()] for these.
#'
#' @param x Neighbours in one of these forms:
#'   * the result of [knn_search()], or an edge data frame from [knn_graph()];
#'   * the result of `BiocNeighbors::findKNN()`, `FNN::get.knn()`,
#'     `dbscan::kNN()`, `RANN::nn2()`, rnndescent, RcppHNSW or destiny;
#'   * uwot's `nn_method`, or its result with `ret_nn = TRUE`;
#'   * a `Neighbor` object of Seurat, a `SelfHits` or an igraph graph;
#'   * an integer matrix of indices.
#'
#'   Each row is a point, and indices are row numbers, unless `queries` is
#'   `TRUE`.
#' @param to The shape of the result, `"fsknn"` by default: see Details.
#' @param ... Must be empty.
#' @param self Does `x` contain the points themselves? `NULL` (default) depends
#'   on the shape, as in the table. For an integer matrix it means no.
#' @param names Names of the points. `NULL` (default): the names in `x`. Without
#'   these, `"edges"` and `"Seurat"` use row numbers.
#' @param queries Are the rows of `x` a subset of the points that the indices
#'   refer to, or other points? `FALSE` by default. Not for edges.
#'
#' @returns Neighbours in the shape that `to` names. By default, a list of class
#'   `fsknn_neighbours` as from [knn_search()]. It has two matrices with one row
#'   for each point. `index` is integer, from 1, without the point itself.
#'   `distance` is double, or `NULL` if `x` has none. If the points have
#'   different numbers of neighbours, these are two lists.
#' @section Errors:
#' The following are errors of class `fsknn_argument_error`:
#' * an unknown shape, or several sets of neighbours in a list;
#' * a row with its own number where none should be;
#' * indices of points that are no rows of `x`, where `to` needs a graph of the
#'   points;
#' * a neighbour that occurs twice (for `"edges"`);
#' * missing distances, or rows of different lengths, where `to` does not allow
#'   them.
#'
#' A package that `to` needs and that is not installed is a `fsknn_error`.
#' @seealso [knn_recall()] for the quality of approximate neighbours.
#' @export
#' @examples
#' x <- matrix(rnorm(100 * 6), nrow = 100)
#' nn <- knn_search(x, k = 4, metric = "euclidean")
#' str(as_knn(nn, to = "uwot"))
#' identical(as_knn(as_knn(nn, to = "uwot")), nn)
#'
#' # uwot::umap(X = NULL, nn_method = as_knn(nn, to = "uwot"))
as_knn <- function(x, to = knn_shapes, ..., self = NULL, names = NULL,
                   queries = FALSE) {
  check_no_more(...)
  check_supplied(x)
  to <- check_choice(to, knn_shapes, "to")
  queries <- check_flag(queries, "queries")
  if (to == "SelfHits") {
    return(to_self_hits(x, self, names, queries))
  }
  nn <- read_knn_shape(x, self, queries)
  names <- if (!is.null(names)) {
    check_neighbour_names(names, num_rows_of(nn))
  } else {
    own_names(nn$names, to)
  }
  nn <- nn[c("index", "distance")]
  if (to %in% shapes_with_self && !queries) {
    nn <- add_self(nn, to)
  }
  switch(
    to,
    fsknn = new_neighbours(nn, names),
    BiocNeighbors = name_rows(nn, names),
    FNN = named_matrices(nn, c("nn.index", "nn.dist"), names, to),
    RANN = named_matrices(nn, c("nn.idx", "nn.dists"), names, to),
    uwot = , rnndescent = named_matrices(nn, c("idx", "dist"), names, to),
    dbscan = to_dbscan(nn, names),
    Seurat = to_seurat(nn, names),
    edges = {
      check_not_queries(queries)
      to_edges(nn, names)
    }
  )
}

knn_shapes <- c(
  "fsknn", "BiocNeighbors", "FNN", "dbscan", "uwot", "rnndescent", "RANN",
  "Seurat", "edges", "SelfHits"
)
shapes_with_self <- c("uwot", "rnndescent", "RANN", "Seurat")

check_not_queries <- function(queries, call = caller_env()) {
  if (queries) {
    abort_argument(
      "Edges are between the points themselves: {.code queries = TRUE} has
       none.",
      call
    )
  }
}

check_neighbour_names <- function(names, num_points, call = caller_env()) {
  if (is.null(names)) {
    return(NULL)
  }
  if (!is.character(names) || length(names) != num_points) {
    abort_argument(
      "{.arg names} must be a character vector with the names of the
       {tally(num_points, \"point\")}.",
      call
    )
  }
  check_text(names, "The `names`", "point", "names", call)
  repeated <- which(duplicated(names))
  empty <- which(is.na(names) | names == "")
  if (length(c(repeated, empty)) > 0) {
    abort_argument(
      c(
        "The {.arg names} must be all different, and none missing or empty.",
        x = if (length(empty) > 0) "There is none at {first_few(empty)}.",
        x = if (length(repeated) > 0) {
          "Those at {first_few(repeated)} were there before."
        }
      ),
      call
    )
  }
  names
}

# Returns the names of the neighbours' points. Some shapes do not allow repeated
# names.
own_names <- function(names, to, call = caller_env()) {
  wrong <- anyDuplicated(names) > 0 || anyNA(names) || any(names == "")
  if (wrong && to %in% c("dbscan", "Seurat", "edges")) {
    abort_argument(
      c(
        "The points of {.arg x} must have a name each, all different.",
        i = "Give others in {.arg names}."
      ),
      call
    )
  }
  names
}

# Checks shapes that need two matrices.
check_matrices <- function(nn, to, call = caller_env(2)) {
  if (is.list(nn$index)) {
    abort_argument(
      c(
        "Shape {.val {to}} needs as many neighbours for every point.",
        x = "They have from {min(lengths(nn$index))} to
             {max(lengths(nn$index))}."
      ),
      call
    )
  }
  if (is.null(nn$distance)) {
    abort_argument(
      "Shape {.val {to}} needs distances, and {.arg x} has none.", call
    )
  }
  nn
}

# Adds each point as its own first neighbour, at distance 0.
add_self <- function(nn, to, call = caller_env()) {
  nn <- check_matrices(nn, to, call)
  if (any(nn$distance < 0, na.rm = TRUE)) {
    abort_argument(
      c(
        "Shape {.val {to}} can't have distances below 0.",
        x = "Each point is its own first neighbour in it, at distance 0.",
        i = "Shapes without the points themselves are
             {.val {setdiff(knn_shapes, shapes_with_self)}}."
      ),
      call
    )
  }
  check_graph_indices(largest_index(nn), nrow(nn$index), FALSE, call)
  list(
    index = cbind(seq_len(nrow(nn$index)), nn$index),
    distance = cbind(rep(0, nrow(nn$index)), nn$distance)
  )
}

named_matrices <- function(nn, elements, names, to) {
  nn <- name_rows(check_matrices(nn, to), names)
  stats::setNames(list(nn$index, nn$distance), elements)
}

to_dbscan <- function(nn, names, call = caller_env()) {
  if (is.list(nn$index)) {
    return(to_frnn(nn, names, call))
  }
  nn <- check_matrices(nn, "dbscan", call)
  k <- ncol(nn$index)
  dimnames <- list(names, seq_len(k))
  structure(
    list(
      dist = structure(nn$distance, dimnames = dimnames),
      id = structure(nn$index, dimnames = dimnames),
      k = k, sort = TRUE
    ),
    class = c("kNN", "NN")
  )
}

# The original radius is unknown, but the largest distance selects the same
# points.
to_frnn <- function(nn, names, call) {
  if (is.null(nn$distance)) {
    abort_argument(
      "Shape {.val dbscan} needs distances, and {.arg x} has none.", call
    )
  }
  nn <- name_rows(nn, names)
  structure(
    list(
      dist = nn$distance, id = nn$index,
      eps = max(0, unlist(nn$distance, use.names = FALSE)), sort = TRUE
    ),
    class = c("frNN", "NN")
  )
}

to_seurat <- function(nn, names, call = caller_env()) {
  check_package("SeuratObject", "Seurat's shape", call)
  nn <- check_matrices(nn, "Seurat", call)
  methods::new(
    methods::getClass("Neighbor", where = asNamespace("SeuratObject")),
    nn.idx = nn$index, nn.dist = nn$distance, alg.info = list(),
    cell.names = names %||% as.character(seq_len(nrow(nn$index)))
  )
}

check_package <- function(package, what, call = caller_env()) {
  if (!requireNamespace(package, quietly = TRUE)) {
    cli_abort(
      "{what} needs the package {.pkg {package}}, which is not installed.",
      class = c("fsknn_package_error", "fsknn_error"), call = call
    )
  }
}

to_edges <- function(nn, names, call = caller_env()) {
  num_points <- num_rows_of(nn)
  places <- in_places(nn)
  columns <- list(
    from = places$row, to = places$index, rank = sequence(places$size)
  )
  columns$distance <- places$distance
  there <- !is.na(columns$to)
  if (!all(there)) {
    columns <- lapply(columns, `[`, there)
  }
  check_graph_indices(largest_index(nn), num_points, NULL, call)
  check_distinct(columns$from, columns$to, names, call)
  if (!is.null(names)) {
    columns$from <- names[columns$from]
    columns$to <- names[columns$to]
  }
  new_knn_edges(
    columns, data.frame(name = names %||% seq_len(num_points)),
    k = if (is.matrix(nn$index)) ncol(nn$index)
  )
}

# The edges of a data frame keep all their columns.
to_self_hits <- function(x, self, names, queries, call = caller_env()) {
  check_package("S4Vectors", "A SelfHits", call)
  check_not_queries(queries, call)
  if (!is.null(names)) {
    abort_argument("A SelfHits has no {.arg names}.", call)
  }
  if (is.null(self)) {
    edges <- edges_of(x, "x", call)
  } else {
    nn <- read_knn_shape(x, self, call = call)
    edges <- to_edges(nn[c("index", "distance")], nn$names, call)
  }
  facts <- edges_facts(edges, "x", call)
  others <- setdiff(names(edges), c("from", "to"))
  do.call(
    S4Vectors::SelfHits,
    c(
      list(from = facts$from, to = facts$to, nnode = facts$num_points),
      unclass(edges)[others]
    )
  )
}
