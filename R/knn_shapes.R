# The shapes in which packages hold neighbours, read.

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
      "The indices and distances of {.arg {arg}} must be two numeric matrices
       (or lists of vectors) of one shape.",
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
        i = "The last neighbour of {cli::qty(missed)}{?this point/these points}
             is left out instead: see {.fn convert_knn}."
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
