# The answer that splits are put together to. Of the k nearest its size is
# known, and it is filled in place; of all within a distance the parts are kept,
# and joined when all are there.

new_answer <- function(work) {
  answer <- new.env(parent = emptyenv())
  answer$stats <- NULL
  if (is_resampled(work$request)) {
    begin_counts(answer, work)
  } else if (is_within(work$request)) {
    begin_parts(answer, work)
  } else {
    begin_columns(answer, work)
  }
  answer
}

put_split <- function(answer, work, split, found, call) {
  if (is_resampled(work$request)) {
    put_counts(answer, work, split, found)
  } else if (is_within(work$request)) {
    put_part(answer, work, split, found, call)
  } else {
    for (column in names(answer$columns)) {
      cpp_put_part(
        answer$columns[[column]], found[[column]], answer$first[[split]]
      )
    }
  }
  answer$stats <- add_stats(answer$stats, found$stats)
}

whole_answer <- function(answer, work) {
  if (is_resampled(work$request)) {
    answer$counts
  } else if (is_within(work$request)) {
    join_parts(answer)
  } else {
    answer$columns
  }
}

# Of the k nearest: the columns, and where in them each split begins (rows, or
# edges), and the last one ends.
begin_columns <- function(answer, work) {
  request <- work$request
  first <- c(
    (seq_len(num_splits(work)) - 1) * as.double(work$size), work$num_rows
  )
  if (request$as_edges) {
    asked <- request$subset %||% seq_len(work$num_rows)
    before <- c(0, cumsum(!(asked %in% request$skip)))
    first <- before[first + 1] * row_width(request)
  }
  length <- first[[length(first)]]
  new_column <- function(type) {
    if (request$as_edges) {
      vector(type, length)
    } else {
      matrix(vector(type, 1L), work$num_rows, row_width(request))
    }
  }
  columns <- if (request$as_edges) {
    list(from = new_column("integer"), to = new_column("integer"),
         rank = new_column("integer"), distance = new_column("double"))
  } else {
    list(index = new_column("integer"), distance = new_column("double"))
  }
  if (request$correlation) {
    columns$correlation <- new_column("double")
  }
  answer$columns <- columns
  answer$first <- first
}

# In each column.
entries_of_split <- function(answer, work, split) {
  count <- answer$first[[split + 1]] - answer$first[[split]]
  if (work$request$as_edges) count else count * row_width(work$request)
}

# --- all within a distance ---------------------------------------------------

# asked: of edges, for each point whether its neighbours are asked for.
begin_parts <- function(answer, work) {
  answer$entries <- 0
  answer$parts <- vector("list", num_splits(work))
  if (work$request$as_edges) {
    answer$asked <- are_asked(work$request$subset, nrow(work$values))
  }
}

put_part <- function(answer, work, split, found, call) {
  if (work$request$as_edges) {
    part <- each_pair_once(found, answer$asked)
    entries <- length(part$to)
  } else {
    part <- found[c("index", "distance")]
    entries <- sum(lengths(part$index))
  }
  answer$entries <- answer$entries + entries
  if (answer$entries > work$request$within$most) {
    raise_failure(too_many_of_all(work), call)
  }
  answer$parts[[split]] <- part
}

# Column by column, so that no more than one is there twice.
join_parts <- function(answer) {
  columns <- list()
  for (name in names(answer$parts[[1]])) {
    columns[name] <- list(do.call(c, lapply(answer$parts, `[[`, name)))
    answer$parts <- lapply(answer$parts, function(part) {
      part[setdiff(names(part), name)]
    })
  }
  columns
}

# For each point whether its neighbours are asked for.
are_asked <- function(subset, num_points) {
  asked <- rep(is.null(subset), num_points)
  asked[subset] <- TRUE
  asked
}

# Of edges from each point to all its neighbours, each pair once, the lower
# number first: where both ends are asked for it was found from both.
each_pair_once <- function(edges, asked) {
  from <- edges$from
  to <- edges$to
  kept <- which(to > from | !asked[to])
  low <- pmin(from, to)[kept]
  high <- pmax(from, to)[kept]
  list(
    from = low, to = high, distance = edges$distance[kept],
    correlation = edges$correlation[kept]
  )
}

# --- facts -------------------------------------------------------------------

# Facts of several searches as those of one: pairs and seconds add up.
add_stats <- function(whole, part) {
  if (is.null(whole) || is.null(part)) {
    return(whole %||% part)
  }
  largest <- c("bytes_device", "num_devices", "filtered", "streamed")
  both <- Map(function(name, a, b) {
    if (is.logical(a)) a || b else if (name %in% largest) max(a, b) else a + b
  }, names(whole), whole, part[names(whole)])
  stats::setNames(both, names(whole))
}
