# The division of a search into tasks, each of which any worker can do.
#
# Tasks of kind "pairs" are for all points among themselves. A task is two
# blocks of the points, or one with itself: block I with block I + delta, delta
# up to half of the blocks, whose number is odd. So each pair of points occurs
# in exactly one task.
#
# Tasks of kind "rows" are ranges of the requested rows (some points, or
# queries), searched among all points. If the points are searched by many sets
# of samples (see significance-resamples.R), a task is some of those. Points of
# two ranges meet twice, once from each side.

# Tasks of kind "stages" are equal ranges of the triples of points, in order.

task_kinds <- c("rows", "pairs", "stages")

# Returns list(kind, size). The size is the points in a block, rows in a range,
# resamples in a task, or the number of stages.
new_task_plan <- function(work, options) {
  if (asks_triples(work$request)) {
    return(cut_triples(work, options))
  }
  kind <- if (is_met_by_blocks(work)) "pairs" else "rows"
  num_workers <- options$long$workers$count %||% 1L
  size <- options$long$size %||% if (is_resampled(work$request)) {
    automatic_resamples(work$num_rows, num_workers)
  } else {
    automatic_size(kind, work, num_workers)
  }
  list(kind = kind, size = as.integer(size))
}

# The kind depends only on what determines the answer, so that every process
# that makes the folder chooses the same.
is_met_by_blocks <- function(work) {
  request <- work$request
  is.null(work$queries) && is.null(request$subset) &&
    is.null(request$blocks) && !is_resampled(request) &&
    !identical(request$na, "pairwise") && is.null(request$permuted)
}

text_of_plan <- function(plan) {
  c(tasks = plan$kind, task_size = number_text(plan$size))
}

# Divides the pairs as in R/search-block_pairs.R.
cut_of_work <- function(work) {
  block_cut(nrow(work$values), size = work$plan$size)
}

# There is at least one task, which is empty if nothing is requested.
num_tasks <- function(work) {
  if (work$plan$kind == "pairs") {
    return(as.integer(cut_of_work(work)$num_tasks))
  }
  if (work$plan$kind == "stages") {
    return(work$plan$size)
  }
  max(1L, as.integer(ceiling(work$num_rows / work$plan$size)))
}

# Returns all tasks in which a block takes part, in order.
tasks_of_block <- function(cut, block) {
  blocks <- cut$num_blocks
  apart <- seq_len((blocks + 1) / 2) - 1
  up <- apart * blocks + block
  down <- apart * blocks + (block - 1 - apart) %% blocks + 1
  sort(unique(c(up, down)))
}

# Returns list(a, b) of c(first, last). `b` is NULL if a is searched with
# itself.
bounds_of_pair <- function(work, task) {
  cut <- cut_of_work(work)
  blocks <- blocks_of_tasks(cut, task)
  list(
    a = cut_bounds(cut, blocks$a),
    b = if (blocks$b > blocks$a) cut_bounds(cut, blocks$b)
  )
}

# Returns c(first, last) of a range among the rows of the answer.
task_bounds <- function(work, task) {
  size <- work$plan$size
  c((task - 1) * size + 1, min(task * size, work$num_rows))
}

# Returns the number of rows in a task's part of the answer.
rows_of_task <- function(work, task) {
  if (work$plan$kind == "rows") {
    return(diff(task_bounds(work, task)) + 1)
  }
  bounds <- bounds_of_pair(work, task)
  sum(rows_of_block(bounds$a), rows_of_block(bounds$b))
}

# Returns the length of a range c(first, last), or 0 for NULL.
rows_of_block <- function(bounds) {
  if (is.null(bounds)) 0 else bounds[[2]] - bounds[[1]] + 1
}

# --- size of a task ----------------------------------------------------------

# A task takes about half a minute, but has enough rows that preparing the
# points again is a small part of it. With workers, tasks are smaller, so that
# each worker has its share.
automatic_size <- function(kind, work, num_workers) {
  request <- work$request
  automatic <- if (kind == "pairs") automatic_block else automatic_split
  automatic(
    nrow(work$values), ncol(work$values), work$num_rows, request, num_workers
  )
}

products_a_second <- function(request) {
  if (request$backend == "cuda") {
    1e14 * max(1, length(request$devices))
  } else {
    1e11 * max(1, request$num_threads, na.rm = TRUE)
  }
}

automatic_split <- function(num_points, num_features, num_rows, request,
                            num_workers) {
  on_gpu <- request$backend == "cuda"
  slow_to_prepare <- request$metric %in% c("spearman", "bicor")
  least <- if (on_gpu) 800000 else if (slow_to_prepare) 98304 else 32768
  rows <- 30 * products_a_second(request) / num_points / num_features
  if (num_workers > 1) {
    rows <- min(rows, num_rows / (3 * num_workers))
  }
  rows <- min(max(rows, least), most_result_rows(result_width(request)))
  if (num_workers > 1) {
    rows <- min(rows, num_rows / num_workers)
  }
  as.integer(max(1, min(ceiling(rows), num_rows)))
}

# The size is that of a plan for many hosts: see search-block_pairs.R.
automatic_block <- function(num_points, num_features, num_rows, request,
                            num_workers) {
  as.integer(block_size(
    num_points, num_features, result_width(request), num_workers,
    on_gpu = request$backend == "cuda", num_threads = request$num_threads,
    slow_to_prepare = request$metric %in% c("spearman", "bicor"),
    memory = memory_for_pair(request)
  ))
}

# Returns the bytes of a GPU that two blocks may take: half of its memory, less
# what CUDA itself takes. If two blocks did not fit, their points would meet
# twice.
memory_for_pair <- function(request, devices = cuda_devices()) {
  if (request$backend != "cuda") {
    return(Inf)
  }
  used <- if (length(request$devices) > 0) {
    devices$memory_total[request$devices]
  } else {
    devices$memory_total
  }
  limit <- request$max_device_memory
  most <- min(used, if (limit > 0) limit, Inf, na.rm = TRUE)
  max(0.5 * most - 0.5e9, 0.25 * most)
}

# Returns the maximum number of neighbours of a row, or 0 if it is unknown.
result_width <- function(request) {
  if (is_within(request)) 0 else row_width(request)
}

# --- one task ----------------------------------------------------------------

# Does a task in this process and returns its answer as ask_core() does. For
# `limits`, see folder-limits.R.
search_task <- function(work, task, request, limits = NULL) {
  if (asks_triples(request)) {
    return(search_triples(work, task, request))
  }
  found <- if (work$plan$kind == "pairs") {
    bounds <- bounds_of_pair(work, task)
    ask_between(work$values, bounds$a, bounds$b, request, limits)
  } else {
    search_rows(work, task, request)
  }
  if (identical(found$failure, "too_many_pairs")) {
    work$request$num_threads <- request$num_threads
    return(too_many_of_all(work))
  }
  found
}

search_rows <- function(work, task, request) {
  bounds <- task_bounds(work, task)
  rows <- bounds[[1]] - 1 + seq_len(rows_of_task(work, task))
  if (is_resampled(request)) {
    return(ask_core(work$values, NULL, some_resamples(request, rows)))
  }
  if (length(request$within$limits) > 1) {
    request$within$limits <- request$within$limits[rows]
  }
  request["blocks"] <- list(blocks_of_rows(request$blocks, rows))
  queries <- work$queries
  if (is.null(queries)) {
    subset <- request$subset
    request$subset <- if (is.null(subset)) as.integer(rows) else subset[rows]
  } else {
    skip <- request$query_skip
    skip <- skip[skip >= bounds[[1]] & skip <= bounds[[2]]]
    request$query_skip <- as.integer(skip - bounds[[1]] + 1)
    request$query_self <- request$query_self[rows]
    if (length(rows) < nrow(queries)) {
      queries <- queries[rows, , drop = FALSE]
    }
  }
  ask_core(work$values, queries, request)
}
