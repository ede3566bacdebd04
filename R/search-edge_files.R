# Edges of a threshold graph that are written to a file during the search, or
# searched in stages.

check_edge_file <- function(file, format, least, subset, options,
                            call = caller_env()) {
  sink <- check_found_file(file, format, call = call)
  if (is.null(sink)) {
    return(NULL)
  }
  check_one_process("file", subset, options, call)
  if (sink$format == "comet" && least < 0) {
    abort_argument(
      "{.arg min_similarity} must be at least 0 with
       {.code format = \"comet\"}.",
      call
    )
  }
  sink
}

# Returns c(i, of), or NULL for all pairs.
check_pair_stage <- function(stage, subset, options, sink,
                             call = caller_env()) {
  if (is.null(stage)) {
    return(NULL)
  }
  stage <- check_stages(NULL, stage, call)$stage
  check_one_process("stage", subset, options, call)
  if (identical(sink$format, "comet_bytes")) {
    abort_argument(
      "{.arg stage} can't be used with {.code format = \"comet_bytes\"}.", call
    )
  }
  if (stage[[2]] > 1) as.integer(stage)
}

# Blocks of points are searched one after the other in this process.
check_one_process <- function(argument, subset, options, call) {
  beside <- c(
    subset = !is.null(subset), BPPARAM = !is.null(options$long$workers),
    checkpoint = !is.null(options$long$folder),
    "na = \"pairwise\"" = identical(options$na, "pairwise")
  )
  if (any(beside)) {
    other <- names(beside)[beside][[1]]
    abort_argument(
      "{.arg {argument}} can't be used with {.code {other}}.", call
    )
  }
}

# Returns c(first, last): the pairs of these points with later ones are a stage.
# It may be empty (last < first).
points_of_stage <- function(num_points, stage) {
  n <- as.double(num_points)
  # Points 1 to r are in this number of pairs with later ones.
  pairs_to <- function(r) r * (2 * n - r - 1) / 2
  last_of <- function(i) {
    wanted <- pairs_to(n) / stage[[2]] * i
    low <- 0
    high <- n
    while (low < high) {
      middle <- floor((low + high) / 2)
      if (pairs_to(middle) >= wanted) high <- middle else low <- middle + 1
    }
    high
  }
  last <- if (stage[[1]] == stage[[2]]) n else last_of(stage[[1]])
  c(last_of(stage[[1]] - 1) + 1, last)
}

# Returns the edges of search$stage, which must fit in memory.
find_stage_edges <- function(search, call = caller_env()) {
  if (search$options$verbose) {
    tell_lines(describe_search(search, call))
  }
  request <- search$request
  values <- search$points$values
  rows <- points_of_stage(nrow(values), search$stage)
  num_rows <- rows[[2]] - rows[[1]] + 1
  if (num_rows < 1) {
    return(list(
      from = integer(), to = integer(), distance = double(),
      correlation = double()
    ))
  }
  bar <- new_split_bar(request$progress, num_rows, "Pairs")
  on.exit(end_bar(bar))
  found <- edges_of_block(
    values, rows[[1]], rows[[2]], request$within$most,
    request_with_bar(request, bar, num_rows)
  )
  naming_largest(search, in_core(found, call), call)
}

write_found_edges <- function(search, sink, call = caller_env()) {
  request <- search$request
  is_r <- has_correlation(search$options$metric)
  columns <- c(
    "from", "to", "distance", if (is_r) "correlation",
    if (keeps_similarity(request$metric)) "similarity",
    if (is_allele_table(request$metric)) "alleles"
  )
  found <- write_found(
    sink, columns, c("from", "to"), search$points$names,
    function(take) {
      take_similar <- function(part) {
        part <- with_similarity(part, search, call)
        part$similarity <- part$similarity %||%
          similarity_of_edges(part, request)
        take(part)
      }
      naming_largest(
        search, find_edges_for_file(search, take_similar, call), call
      )
    }, call
  )
  new_found_file(
    sink, search, "edge", found, request$within$similarity,
    stage = search$stage
  )
}

# A record of CoMet holds this similarity.
similarity_of_edges <- function(part, request) {
  if (is.null(part$correlation)) {
    return(1 - part$distance)
  }
  switch(
    request$sign, signed = part$correlation, absolute = abs(part$correlation),
    negative = -part$correlation
  )
}

# Runs one search if the edges of all pairs fit in memory. Returns the number of
# edges.
find_edges_for_file <- function(search, take, call) {
  if (search$options$verbose) {
    tell_lines(describe_search(search, call))
  }
  values <- search$points$values
  request <- search$request
  room <- max(min(request$within$most, 2^24), nrow(values))
  request$within$most <- room
  if (!is.null(search$stage)) {
    return(find_edges_by_blocks(search, take, room, call))
  }
  found <- ask_core(search$held %||% values, NULL, request)
  if (identical(found$failure, "too_many_pairs")) {
    return(find_edges_by_blocks(search, take, room, call))
  }
  found <- keep_similar(in_core(found, call), search, call)
  take(found)
  as.double(length(found$from))
}

# Searches blocks of points with themselves and all points after them. A block
# has as many points as memory for their edges allows.
find_edges_by_blocks <- function(search, take, room, call) {
  values <- search$points$values
  rows <- points_of_stage(nrow(values), search$stage %||% c(1, 1))
  request <- search$request
  bar <- new_split_bar(
    request$progress, rows[[2]] - rows[[1]] + 1, "Pairs"
  )
  on.exit(end_bar(bar))
  # A block is prepared together with all points after it.
  size <- if (request$backend == "cuda") 2^17 else 2^12
  first <- rows[[1]]
  count <- 0
  while (first <= rows[[2]]) {
    last <- min(rows[[2]], first + size - 1)
    part <- edges_of_block(
      values, first, last, room,
      request_with_bar(request, bar, last - first + 1)
    )
    if (identical(part$failure, "too_many_pairs")) {
      size <- max(1, floor((last - first + 1) / 2))
      next
    }
    part <- keep_similar(in_core(part, call), search, call)
    take(part)
    found <- length(part$from)
    count <- count + found
    if (found < room / 4) {
      size <- 2 * size
    }
    step_bar(bar, last - first + 1)
    first <- last + 1
  }
  count
}

# Returns the edges whose lower point is in a block, in the order of the graph,
# or the core's failure.
edges_of_block <- function(values, first, last, room, request) {
  block <- c(first, last)
  rest <- if (last < nrow(values)) c(last + 1, nrow(values))
  own <- edges_between(values, block, NULL, room, request)
  room <- room - length(own$from)
  other <- if (!is.null(rest) && is.null(own$failure)) {
    edges_between(values, block, rest, room, request)
  }
  failed <- if (is.null(own$failure)) other else own
  if (!is.null(failed$failure)) {
    return(failed)
  }
  columns <- lapply(stats::setNames(nm = names(own)), function(column) {
    c(own[[column]], other[[column]])
  })
  in_order <- order(
    columns$from, columns$distance, columns$to, method = "radix"
  )
  lapply(columns, `[`, in_order)
}

edges_between <- function(values, block, rest, room, request) {
  request$within$most <- room
  found <- ask_between(values, block, rest, request)
  if (!is.null(found$failure)) {
    return(found)
  }
  rows <- seq.int(block[[1]], block[[2]])
  c(
    list(
      from = rep(as.integer(rows), found$count[seq_along(rows)]),
      to = found$index, distance = found$distance
    ),
    if (has_correlation(metric_facts(request$metric))) found["correlation"]
  )
}
