#' Neighbours in the shapes of other packages
#'
#' Packages that find or take nearest neighbours hold them in different shapes,
#' and some count each point as its own first neighbour. `as_knn()` brings any of
#' these shapes to that of [find_knn()]; `convert_knn()` brings them to any other.
#' Nothing is computed anew, and no order is changed.
#'
#' | `to` | what it is | point itself |
#' | --- | --- | --- |
#' | `"fsknn"`, `"BiocNeighbors"` | list of matrices `index`, `distance` (or of two lists, as `findNeighbors()` gives) | left out |
#' | `"FNN"` | list of matrices `nn.index`, `nn.dist` | left out |
#' | `"dbscan"` | class `kNN`: matrices `id`, `dist`, number `k` | left out |
#' | `"uwot"`, `"rnndescent"` | list of matrices `idx`, `dist` (also that of RcppHNSW) | first |
#' | `"RANN"` | list of matrices `nn.idx`, `nn.dists` | first |
#' | `"Seurat"` | class `Neighbor`: slots `nn.idx`, `nn.dist`, `cell.names` | first |
#' | `"edges"` | data frame `from`, `to`, `rank`, `distance`, as [knn_graph()] gives | left out |
#'
#' Where a shape has each point first, k neighbours take k + 1 columns: that is
#' what `n_neighbors` of uwot and `k.param` of Seurat count. Coming from such a
#' shape, a point's own number is taken out wherever it stands in its row, since
#' a duplicate of the point can stand before it. An approximate search can miss
#' it altogether: then the last neighbour is taken out instead, so that all have
#' equally many, and a warning counts these points.
#'
#' Distances are handed on as they are, and are lengths everywhere: less is
#' nearer. Of correlations they are 1 - r (see `sign` of [find_knn()]). No shape
#' here has weights; see [snn_graph()] and [as_igraph()] for these.
#'
#' @param x Neighbours: what [find_knn()] gives, or an edge data frame from
#'   [knn_graph()]; what `BiocNeighbors::findKNN()`, `FNN::get.knn()`,
#'   `dbscan::kNN()`, `RANN::nn2()`, rnndescent and RcppHNSW give; uwot's
#'   `nn_method`; a `Neighbor` object of Seurat; or an integer matrix of indices.
#'   Each row is a point, and indices are numbers of rows.
#' @param to The shape to bring them to: see Details.
#' @param ... Must be empty.
#' @param self Does `x` hold the points themselves? `NULL` (default) goes by the
#'   shape, as in the table; of an integer matrix, no.
#' @param names Names of the points, for `"edges"`, `"Seurat"` and `"dbscan"`.
#'   `NULL` (default): those that `x` has, else row numbers.
#'
#' @returns `as_knn()`: a list of two matrices with one row for each point,
#'   `index` (integer, from 1, the point itself left out) and `distance` (double;
#'   `NULL` where `x` has none), or of two lists where the points have different
#'   numbers of neighbours. `convert_knn()`: what `to` says.
#' @section Errors:
#' Of class `fsknn_argument_error`: a shape that is not known, a row with its own
#' number where none should be, missing distances or unequal rows where `to`
#' needs them. A package that `to` needs and is not there: `fsknn_error`.
#' @seealso [knn_recall()] for how good approximate neighbours are.
#' @export
#' @examples
#' x <- matrix(rnorm(100 * 6), nrow = 100)
#' nn <- find_knn(x, k = 4, metric = "euclidean")
#' str(convert_knn(nn, to = "uwot"))
#' identical(as_knn(convert_knn(nn, to = "uwot")), nn)
#'
#' # uwot::umap(X = NULL, nn_method = convert_knn(nn, to = "uwot"))
convert_knn <- function(x, to = knn_shapes, ..., self = NULL, names = NULL) {
  rlang::check_dots_empty()
  rlang::check_required(x)
  to <- check_choice(to, knn_shapes, "to")
  nn <- read_knn_shape(x, self)
  names <- check_neighbour_names(names %||% nn$names, num_rows_of(nn))
  nn <- nn[c("index", "distance")]
  switch(
    to,
    fsknn = , BiocNeighbors = nn,
    FNN = named_matrices(nn, c("nn.index", "nn.dist"), to),
    RANN = named_matrices(add_self(nn, to), c("nn.idx", "nn.dists"), to),
    uwot = , rnndescent = named_matrices(add_self(nn, to), c("idx", "dist"), to),
    dbscan = to_dbscan(nn, names),
    Seurat = to_seurat(add_self(nn, to), names),
    edges = to_edges(nn, names)
  )
}

knn_shapes <- c(
  "fsknn", "BiocNeighbors", "FNN", "dbscan", "uwot", "rnndescent", "RANN",
  "Seurat", "edges"
)

#' @rdname convert_knn
#' @export
as_knn <- function(x, ..., self = NULL) {
  rlang::check_dots_empty()
  rlang::check_required(x)
  read_knn_shape(x, self)[c("index", "distance")]
}

# --- in ------------------------------------------------------------------------

# index and distance (matrices or lists; distance may be NULL), names or NULL.
read_knn_shape <- function(x, self = NULL, arg = "x", call = caller_env()) {
  nn <- take_apart(x)
  if (is.null(nn)) {
    given <- describe_type(x)
    abort_argument(
      c(
        "{.arg {arg}} must be nearest neighbours in a shape that is known, not
         {given}.",
        i = "See {.fn convert_knn} for the shapes."
      ),
      call
    )
  }
  if (!is.null(self)) {
    nn$self <- check_flag(self, "self", call = call)
  }
  nn <- check_neighbours(nn, arg, call)
  if (nn$self) drop_self(nn, call) else check_no_self(nn, arg, call)
}

# What each shape holds: index, distance, self (are points themselves there?).
take_apart <- function(x) {
  parts <- function(index, distance, self, names = NULL) {
    list(index = index, distance = distance, self = self, names = names)
  }
  has <- function(...) {
    is.list(x) && all(c(...) %in% names(x))
  }
  if (isS4(x)) {
    if (!inherits(x, "Neighbor")) {
      return(NULL)
    }
    slots <- lapply(
      c(index = "nn.idx", distance = "nn.dist", names = "cell.names"),
      function(name) methods::slot(x, name)
    )
    # Cells must have names there: numbers are none.
    numbers <- as.character(seq_along(slots$names))
    names <- if (!identical(slots$names, numbers)) slots$names
    parts(slots$index, slots$distance, TRUE, names)
  } else if (is.data.frame(x)) {
    if (has("from", "to")) from_edges(x)
  } else if (has("index")) {
    parts(x$index, x$distance, FALSE)
  } else if (has("nn.index")) {
    parts(x$nn.index, x$nn.dist, FALSE)
  } else if (has("id", "dist")) {
    names <- if (is.matrix(x$id)) rownames(x$id) else names(x$id)
    parts(unnamed(x$id), unnamed(x$dist), FALSE, names)
  } else if (has("nn.idx")) {
    parts(x$nn.idx, x$nn.dists, TRUE)
  } else if (has("idx")) {
    parts(x$idx, x$dist, TRUE)
  } else if (is.matrix(x) && is.numeric(x)) {
    parts(x, NULL, FALSE, rownames(x))
  }
}

unnamed <- function(values) {
  if (is.list(values)) lapply(unname(values), as.vector) else unname(values)
}

num_rows_of <- function(nn) {
  if (is.list(nn$index)) length(nn$index) else nrow(nn$index)
}

check_neighbours <- function(nn, arg, call) {
  shapes <- vapply(nn[c("index", "distance")], function(part) {
    if (is.matrix(part) && is.numeric(part)) {
      "matrix"
    } else if (is.list(part) && all(vapply(part, is.numeric, NA))) {
      "list"
    } else if (is.null(part)) {
      "none"
    } else {
      "other"
    }
  }, "")
  alike <- shapes[["distance"]] == "none" || (
    shapes[["index"]] == shapes[["distance"]] &&
      identical(dim(nn$index), dim(nn$distance)) &&
      identical(lengths(nn$index), lengths(nn$distance))
  )
  if (!shapes[["index"]] %in% c("matrix", "list") || !alike) {
    abort_argument(
      "The indices and distances of {.arg {arg}} must be two numeric matrices (or
       lists of vectors) of one shape.",
      call
    )
  }
  index <- unlist(nn$index, use.names = FALSE)
  bad <- !is.na(index) & (index < 1 | index != trunc(index) | index > max_edges)
  if (any(bad)) {
    where <- first_few(vapply(utils::head(index[bad], 3), format_bound, ""),
                       sum(bad))
    abort_argument(
      c(
        "The indices of {.arg {arg}} must be whole numbers from 1.",
        x = "Not so: {where}.",
        i = if (is.null(nn$distance)) {
          "For the neighbours of a matrix's rows use {.fn find_knn} first."
        }
      ),
      call
    )
  }
  if (shapes[["index"]] == "matrix") {
    nn$index <- plain_matrix(nn$index, "integer")
    if (!is.null(nn$distance)) {
      nn$distance <- plain_matrix(nn$distance, "double")
    }
  } else {
    nn$index <- lapply(unname(nn$index), as.integer)
    if (!is.null(nn$distance)) {
      nn$distance <- lapply(unname(nn$distance), as.double)
    }
  }
  nn
}

# Without names or other attributes, and not copied where it is so already.
plain_matrix <- function(values, mode) {
  if (typeof(values) == mode && identical(names(attributes(values)), "dim")) {
    return(values)
  }
  array(as.vector(values, mode), dim(values))
}

has_self <- function(nn) {
  if (is.list(nn$index)) {
    mapply(function(row, i) i %in% row, nn$index, seq_along(nn$index))
  } else {
    rowSums(nn$index == row(nn$index), na.rm = TRUE) > 0
  }
}

check_no_self <- function(nn, arg, call) {
  rows <- which(has_self(nn))
  if (length(rows) > 0) {
    count <- length(rows)
    where <- first_few(utils::head(rows, 3), count)
    abort_argument(
      c(
        "A point must not be its own neighbour in {.arg {arg}}.",
        x = "{format_count(count)} {cli::qty(count)}{?is/are}: point {where}.",
        i = "If points are among their own neighbours, say {.code self = TRUE}."
      ),
      call
    )
  }
  nn
}

drop_self <- function(nn, call) {
  found <- as.logical(has_self(nn))
  if (is.list(nn$index)) {
    # A point that is not there has nothing to be taken out: rows differ anyway.
    keep <- Map(function(row, i) is.na(row) | row != i, nn$index,
                seq_along(nn$index))
    nn$index <- Map(`[`, nn$index, keep)
    if (!is.null(nn$distance)) {
      nn$distance <- Map(`[`, nn$distance, keep)
    }
    return(nn)
  }
  columns <- ncol(nn$index)
  if (columns == 0) {
    return(nn)
  }
  own <- nn$index == row(nn$index) & !is.na(nn$index)
  at <- ifelse(found, max.col(own, ties.method = "first"), columns)
  missed <- sum(!found & !is.na(nn$index[, 1]))
  if (missed > 0) {
    cli::cli_warn(
      c(
        "{format_count(missed)} of {format_count(length(found))} points
         {cli::qty(missed)}{?is/are} not among {?its/their} own neighbours.",
        i = "The last neighbour of {cli::qty(missed)}{?this point/these points} is
             left out instead: see {.fn convert_knn}."
      ),
      class = "fsknn_self_warning", call = call
    )
  }
  without <- function(values) {
    left <- values[, -columns, drop = FALSE]
    after <- col(left) >= at
    left[after] <- values[, -1, drop = FALSE][after]
    left
  }
  nn$index <- without(nn$index)
  if (!is.null(nn$distance)) {
    nn$distance <- without(nn$distance)
  }
  nn
}

# Edges: matrices where all points have as many, or none (isolated: missing).
from_edges <- function(edges, call = caller_env(2)) {
  facts <- edges_facts(edges, "x", call)
  from <- facts$from
  to <- facts$to
  distance <- facts$distance
  rank <- facts$rank
  if (is_undirected(edges)) {
    ends <- list(c(from, to), c(to, from))
    from <- ends[[1]]
    to <- ends[[2]]
    distance <- if (!is.null(distance)) c(distance, distance)
    rank <- NULL
  }
  keys <- c(list(from), if (is.null(rank)) list(distance), list(rank), list(to))
  order <- do.call(order, c(keys[lengths(keys) > 0], method = "radix"))
  counts <- tabulate(from, facts$num_points)
  k <- max(counts, 0L)
  if (all(counts %in% c(0L, k))) {
    as_rows <- function(values, missing) {
      rows <- matrix(missing, k, facts$num_points)
      rows[, counts > 0] <- values[order]
      t(rows)
    }
    index <- as_rows(to, NA_integer_)
    distances <- if (!is.null(distance)) as_rows(distance, NA_real_)
  } else {
    group <- factor(from[order], levels = seq_len(facts$num_points))
    index <- unname(split(to[order], group))
    distances <- if (!is.null(distance)) unname(split(distance[order], group))
  }
  names <- facts$vertices$name
  list(
    index = index, distance = distances, self = FALSE,
    names = if (is.character(names)) names
  )
}

# --- out -----------------------------------------------------------------------

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
  check_row_names(names, "x", call = call)
  names
}

# Shapes that need two matrices.
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

# Each point as its own first neighbour, at distance 0.
add_self <- function(nn, to) {
  nn <- check_matrices(nn, to)
  list(
    index = cbind(seq_len(nrow(nn$index)), nn$index),
    distance = cbind(rep(0, nrow(nn$index)), nn$distance)
  )
}

named_matrices <- function(nn, names, to) {
  nn <- check_matrices(nn, to)
  stats::setNames(list(nn$index, nn$distance), names)
}

to_dbscan <- function(nn, names) {
  nn <- check_matrices(nn, "dbscan")
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

to_seurat <- function(nn, names, call = caller_env()) {
  check_package("SeuratObject", "Seurat's shape", call)
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

to_edges <- function(nn, names) {
  num_points <- num_rows_of(nn)
  is_matrix <- is.matrix(nn$index)
  counts <- if (is_matrix) {
    rep(ncol(nn$index), num_points)
  } else {
    lengths(nn$index)
  }
  in_order <- function(values) {
    if (is.matrix(values)) as.vector(t(values)) else unlist(values)
  }
  columns <- list(
    from = rep(seq_len(num_points), counts),
    to = in_order(nn$index) %||% integer(), rank = sequence(counts)
  )
  if (!is.null(nn$distance)) {
    columns$distance <- in_order(nn$distance) %||% double()
  }
  there <- !is.na(columns$to)
  if (!all(there)) {
    columns <- lapply(columns, `[`, there)
  }
  check_graph_indices(columns$to, num_points)
  if (!is.null(names)) {
    columns$from <- names[columns$from]
    columns$to <- names[columns$to]
  }
  new_knn_edges(
    columns, data.frame(name = names %||% seq_len(num_points)),
    k = if (is_matrix) ncol(nn$index)
  )
}

# Neighbours of a graph are rows; those of a query may be others.
check_graph_indices <- function(index, num_points, call = caller_env(2)) {
  if (length(index) > 0 && max(index) > num_points) {
    abort_argument(
      c(
        "Neighbours must be of the points themselves.",
        x = "There {cli::qty(num_points)}{?is/are} {tally(num_points, \"point\")},
             and {max(index)} is an index."
      ),
      call
    )
  }
}
