# Readers for the shapes in which packages store neighbours.

# Returns index and distance (matrices or lists; distance may be NULL), and
# names or NULL. `queries` says that row i need not be point i, so its own
# number is a neighbour like any other. With NULL, only a graph of the points is
# accepted.
read_knn_shape <- function(x, self = NULL, queries = NULL, arg = "x",
                           call = caller_env()) {
  nn <- take_neighbours(x, arg, call)
  if (!is.null(self)) {
    nn$self <- check_flag(self, "self", call = call)
    if (nn$self && isTRUE(queries)) {
      abort_argument(
        "{.arg self} and {.arg queries} must not both be TRUE: queries are none
         of the points.",
        call
      )
    }
  }
  leave_out_self(nn, queries, arg, call)
}

take_neighbours <- function(x, arg, call) {
  if (is_knn_shards(x)) {
    return(shards_in_memory(x, arg, call))
  }
  if (inherits(x, "Surv")) {
    abort_argument(
      c(
        "{.arg {arg}} must be nearest neighbours in a shape that is known, not
         survival times: an object of class <Surv>.",
        i = "They are an {.arg outcome} of the samples, for {.fn nearest_to}
             and {.fn module_summary}."
      ),
      call
    )
  }
  nn <- take_apart(x, arg, call)
  if (is.null(nn)) {
    nn <- take_apart(take_only_set(x, arg, call), arg, call)
  }
  if (is.null(nn)) {
    given <- describe_type(x)
    abort_argument(
      c(
        "{.arg {arg}} must be nearest neighbours in a shape that is known, not
         {given}.",
        i = "See {.fn as_knn} for the shapes."
      ),
      call
    )
  }
  check_neighbours(nn, arg, call)
}

# Some packages store neighbours in a list by metric or name. uwot has them in
# the element `nn` with `ret_nn = TRUE`, and Seurat in a slot of an object.
take_only_set <- function(x, arg, call) {
  if (is.list(x) && !is.data.frame(x) && is.list(x[["nn"]])) {
    x <- x[["nn"]]
    if (!is.null(take_apart(x, arg, call))) {
      return(x)
    }
  }
  are_sets <- is.list(x) && length(x) > 0 && all(vapply(x, function(part) {
    (isS4(part) || is.list(part)) && !is.data.frame(part) &&
      !is.null(take_apart(part, arg, call))
  }, NA))
  if (!are_sets) {
    return(NULL)
  }
  if (length(x) > 1) {
    which <- if (is.null(names(x))) seq_along(x) else names(x)
    abort_argument(
      c(
        "{.arg {arg}} must be one set of neighbours.",
        x = "It is a list of {length(x)}: {.val {which}}.",
        i = "Give one of them."
      ),
      call
    )
  }
  x[[1]]
}

# Returns the contents of each shape: index, distance, and self (whether points
# are in their own lists).
take_apart <- function(x, arg, call) {
  parts <- function(index, distance, self, names = names_of_rows(index)) {
    list(index = index, distance = distance, self = self, names = names)
  }
  has <- function(...) {
    is.list(x) && all(c(...) %in% names(x))
  }
  beside <- function(index, own) {
    find_distances(x, own, x[[index]], arg, call)
  }
  if (igraph::is_igraph(x)) {
    from_edges(x, arg, call)
  } else if (inherits(x, "SelfHits")) {
    from_edges(edges_of_hits(x, call), arg, call)
  } else if (isS4(x)) {
    if (!inherits(x, "Neighbor")) {
      return(NULL)
    }
    slots <- lapply(
      c(index = "nn.idx", distance = "nn.dist", names = "cell.names"),
      function(name) methods::slot(x, name)
    )
    # Cells must have names there, so numbers mean none.
    numbers <- as.character(seq_along(slots$names))
    names <- if (!identical(slots$names, numbers)) slots$names
    parts(slots$index, slots$distance, TRUE, names)
  } else if (is.data.frame(x)) {
    if (has("from", "to")) from_edges(x, arg, call)
  } else if (has("index")) {
    parts(x$index, beside("index", "distance"), FALSE)
  } else if (has("nn.index")) {
    parts(x$nn.index, beside("nn.index", "nn.dist"), FALSE)
  } else if (has("id", "dist")) {
    parts(x$id, x$dist, FALSE)
  } else if (has("nn.idx")) {
    c(
      parts(x$nn.idx, beside("nn.idx", "nn.dists"), TRUE),
      list(zero_is_none = TRUE)
    )
  } else if (has("idx")) {
    parts(x$idx, beside("idx", "dist"), TRUE)
  } else if (is.matrix(x) && is.numeric(x) && !inherits(x, "Surv")) {
    parts(x, NULL, FALSE)
  }
}

edges_of_hits <- function(hits, call) {
  check_package("S4Vectors", "A SelfHits", call)
  edges <- data.frame(from = S4Vectors::from(hits), to = S4Vectors::to(hits))
  columns <- S4Vectors::mcols(hits)
  for (column in intersect(c("rank", "distance"), names(columns))) {
    edges[[column]] <- columns[[column]]
  }
  vertices <- data.frame(name = seq_len(S4Vectors::nnode(hits)))
  structure(edges, vertices = vertices)
}

names_of_rows <- function(index) {
  if (is.matrix(index)) rownames(index) else names(index)
}

# Returns the distances beside indices in a list, under the name of this shape
# or of another. Elements that look like distances under other names cause a
# warning.
find_distances <- function(x, own, index, arg, call) {
  known <- intersect(
    c(own, "distance", "dist", "nn.dist", "nn.dists", "distances", "dists"),
    names(x)
  )
  if (length(known) > 0) {
    return(x[[known[[1]]]])
  }
  like <- vapply(x, function(part) {
    if (is.matrix(index)) {
      is.double(part) && identical(dim(part), dim(index))
    } else {
      is.list(part) && all(vapply(part, is.double, NA)) &&
        identical(lengths(part), lengths(index))
    }
  }, NA)
  others <- setdiff(names(x)[like], names(x)[vapply(x, identical, NA, index)])
  if (length(others) > 0) {
    cli::cli_warn(
      c(
        "{.arg {arg}} has no distances by the name of {.code {own}}.",
        x = "{cli::qty(length(others))}Left out {?is/are} {.code {others}}.",
        i = "If these are the distances, rename them."
      ),
      class = "fsknn_no_distance_warning", call = call
    )
  }
  NULL
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
      identical(
        lengths(nn$index, use.names = FALSE),
        lengths(nn$distance, use.names = FALSE)
      )
  )
  if (!shapes[["index"]] %in% c("matrix", "list") || !alike) {
    abort_argument(
      "The indices and distances of {.arg {arg}} must be two numeric matrices
       (or lists of vectors) of one shape.",
      call
    )
  }
  index <- unlist(nn$index, use.names = FALSE)
  # NA means no neighbour, but NaN is an error.
  bad <- is.nan(index) | !is.na(index) &
    (index < 1 | index != trunc(index) | index > max_edges)
  if (any(bad)) {
    shown <- utils::head(index[bad], 3)
    where <- first_few(
      ifelse(is.nan(shown), "NaN", vapply(shown, format_bound, "")), sum(bad)
    )
    abort_argument(
      c(
        "The indices of {.arg {arg}} must be whole numbers from 1.",
        x = "Not so: {where}.",
        i = if (is.null(nn$distance)) {
          "For the neighbours of a matrix's rows use {.fn knn_search} first."
        } else if (isTRUE(nn$zero_is_none) && all(index[bad] %in% 0)) {
          "RANN's radius search writes 0 where a point has fewer neighbours in
           the radius. Make these missing first:
           {.code {arg}$nn.idx[{arg}$nn.idx == 0] <- NA}."
        }
      ),
      call
    )
  }
  if (shapes[["index"]] == "matrix") {
    nn$index <- plain_matrix(nn$index, "integer")
    if (!is.null(nn$distance)) {
      nn$distance <- plain_matrix(nn$distance, "double")
      if (anyNA(nn$index)) {
        # Some packages write a number there.
        nn$distance[is.na(nn$index)] <- NA
      }
    }
  } else {
    nn$index <- lapply(unname(nn$index), as.integer)
    if (!is.null(nn$distance)) {
      nn$distance <- lapply(unname(nn$distance), as.double)
    }
  }
  nn
}

# Removes names and other attributes. A plain matrix is not copied.
plain_matrix <- function(values, mode) {
  if (typeof(values) == mode && identical(names(attributes(values)), "dim")) {
    return(values)
  }
  array(as.vector(values, mode), dim(values))
}

# Returns the number of entries in each row.
row_sizes <- function(nn) {
  if (is.list(nn$index)) {
    lengths(nn$index)
  } else {
    rep(ncol(nn$index), nrow(nn$index))
  }
}

# Returns one element for each entry, including missing neighbours: row, index,
# distance (or NULL). `size` is as from row_sizes().
in_places <- function(nn) {
  size <- row_sizes(nn)
  by_row <- function(values) {
    if (is.matrix(values)) as.vector(t(values)) else unlist(values)
  }
  list(
    row = rep(seq_along(size), size),
    index = by_row(nn$index) %||% integer(),
    distance = if (!is.null(nn$distance)) by_row(nn$distance) %||% double(),
    size = size
  )
}

# Converts edges to matrices if each point has equally many or none (isolated:
# missing), otherwise to lists.
from_edges <- function(edges, arg, call) {
  is_graph <- igraph::is_igraph(edges)
  facts <- if (is_graph) {
    igraph_facts(edges, arg, call)
  } else {
    edges_facts(edges, arg, call)
  }
  from <- facts$from
  to <- facts$to
  distance <- facts$distance
  rank <- facts$rank
  if (if (is_graph) !igraph::is_directed(edges) else is_undirected(edges)) {
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
  if (is_graph && identical(names, as.character(seq_along(names)))) {
    # igraph numbers points that have no names.
    names <- NULL
  }
  list(
    index = index, distance = distances, self = FALSE, are_edges = TRUE,
    names = if (is.character(names)) names
  )
}
