# The answer, assembled from the parts of tasks in any order. The k nearest have
# a known size: the answer is filled in place, or by lists of all points. Parts
# of searches within a distance are kept and joined at the end.
#
# new_answer() creates it, put_task() adds the part of a task once, and
# whole_answer() returns what the core returns for the whole search.

new_answer <- function(work) {
  answer <- new.env(parent = emptyenv())
  answer$stats <- NULL
  answer$taken <- logical(num_tasks(work))
  switch(
    answer_kind(work),
    counts = begin_counts(answer, work),
    triples = begin_triples(answer, work),
    merged = begin_merged(answer, work),
    parts = begin_parts(answer, work),
    columns = begin_columns(answer, work)
  )
  answer
}

answer_kind <- function(work) {
  if (is_resampled(work$request)) {
    "counts"
  } else if (work$plan$kind == "stages") {
    "triples"
  } else if (work$plan$kind == "pairs") {
    "merged"
  } else if (is_within(work$request)) {
    "parts"
  } else {
    "columns"
  }
}

# A task that has already been added counts once.
put_task <- function(answer, work, task, found, call) {
  if (answer$taken[[task]]) {
    return(invisible())
  }
  switch(
    answer_kind(work),
    counts = put_counts(answer, work, task, found),
    triples = put_triples(answer, work, task, found, call),
    merged = put_merged(answer, work, task, found, call),
    parts = put_part(answer, work, task, found, call),
    columns = put_rows(answer, task, found)
  )
  answer$taken[[task]] <- TRUE
  answer$stats <- add_stats(answer$stats, found$stats)
  answer$checksum <- c(answer$checksum, found$checksum)
}

whole_answer <- function(answer, work, call = caller_env()) {
  found <- switch(
    answer_kind(work),
    counts = answer$counts,
    triples = join_stages(answer, work),
    merged = join_merged(answer, work, call),
    parts = join_parts(answer),
    columns = answer$columns
  )
  found["stats"] <- list(answer$stats)
  if (!is.null(answer$checksum)) {
    found$checksum <- add_checksums(answer$checksum)
  }
  found
}

# --- block pairs (see R/search-ask_between.R) --------------------------------

# Parts of searches within a distance are kept. They are counted first, and
# merged when the memory for all is allocated.
begin_merged <- function(answer, work) {
  answer$whole <- new_merged(nrow(work$values), work$request)
  answer$entries <- 0
  answer$parts <- list()
}

put_merged <- function(answer, work, task, found, call) {
  if (is_within(work$request)) {
    ends <- if (work$request$as_edges) 1 else 2
    answer$entries <- answer$entries + ends * length(found$index)
    if (answer$entries > work$request$within$most) {
      raise_failure(too_many_of_all(work), call)
    }
    answer$parts[[as.character(task)]] <- found
  }
  merge_task(answer$whole, work, task, found, call)
}

merge_task <- function(whole, work, task, found, call) {
  bounds <- bounds_of_pair(work, task)
  merge_part(whole, bounds$a, bounds$b, found, call)
}

join_merged <- function(answer, work, call) {
  each_part <- function(take) {
    for (task in names(answer$parts)) {
      bounds <- bounds_of_pair(work, as.integer(task))
      take(bounds$a, bounds$b, answer$parts[[task]])
    }
  }
  merged_answer(answer$whole, each_part, call)
}

# --- ranges of rows ----------------------------------------------------------

put_rows <- function(answer, task, found) {
  for (column in names(answer$columns)) {
    cpp_put_part(
      answer$columns[[column]], found[[column]], answer$first[[task]]
    )
  }
}

# Creates the columns for the k nearest and the offset of each range in them.
begin_columns <- function(answer, work) {
  request <- work$request
  first <- first_entries(work)
  length <- first[[length(first)]]
  new_column <- function(type) {
    if (request$as_edges) {
      vector(type, length)
    } else {
      matrix(vector(type, 1L), work$num_rows, row_width(request))
    }
  }
  columns <- if (asks_triples(request)) {
    lapply(triple_types(request), function(type) new_column(typeof(type)))
  } else if (request$as_edges) {
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

# --- all within a distance ---------------------------------------------------

# For edges, `asked` says for each point whether its neighbours are requested.
begin_parts <- function(answer, work) {
  answer$entries <- 0
  answer$parts <- vector("list", num_tasks(work))
  if (work$request$as_edges) {
    answer$asked <- are_asked(work$request$subset, nrow(work$values))
  }
}

put_part <- function(answer, work, task, found, call) {
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
  answer$parts[[task]] <- part
}

# Columns are joined one by one, so that at most one is in memory twice.
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

# Returns for each point whether its neighbours are requested.
are_asked <- function(subset, num_points) {
  asked <- rep(is.null(subset), num_points)
  asked[subset] <- TRUE
  asked
}

# Edges lead from each point to all its neighbours. Each pair is kept once, the
# lower number first, since it is found from both ends if both are requested.
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

# Combines the facts of several searches: pairs and seconds add up.
add_stats <- function(whole, part) {
  if (is.null(whole) || is.null(part)) {
    return(whole %||% part)
  }
  largest <- c(
    "bytes_device", "num_devices", "filter_form", "filter_bits", "sampled",
    "sample_pairs"
  )
  both <- Map(function(name, a, b) {
    if (is.logical(a)) a || b else if (name %in% largest) max(a, b) else a + b
  }, names(whole), whole, part[names(whole)])
  stats::setNames(both, names(whole))
}
