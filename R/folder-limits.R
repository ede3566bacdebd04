# Limits of a task for the k nearest: for each point, the distance of its k-th
# neighbour in the results of finished tasks. A pair that is strictly farther is
# not among the k nearest, whatever else is found. A pair at the same distance
# may be, by its number, and is never dropped. Limits come only from results
# whose digest is correct.

# At most this many results are read for each block: the first ones lower the
# limits most.
most_read <- 12L

# Returns one limit for each point of the task's blocks, or NULL. If this
# process collects the answer, everything that it has collected counts.
limits_of_task <- function(job, task, state, call) {
  work <- job$work
  if (work$plan$kind != "pairs" || is_within(work$request)) {
    return(NULL)
  }
  whole <- job$answer$whole %||% lists_for_limits(job)
  if (is.null(whole)) {
    return(NULL)
  }
  if (is.null(job$answer)) {
    learn_blocks(job, task, state, call)
  }
  bounds <- bounds_of_pair(work, task)
  limits_of(whole, bounds$a, bounds$b)
}

# Returns NULL if there is not enough memory. Without limits, tasks report more
# pairs, but the answer is the same. Only the pages of blocks that were worked
# on are ever touched.
lists_for_limits <- function(job) {
  if (is.null(job$lists)) {
    lists <- tryCatch(
      new_merged(nrow(job$work$values), job$work$request),
      fsknn_memory_error = function(err) NULL
    )
    if (is.null(lists)) {
      return(NULL)
    }
    job$lists <- lists
    job$merged <- logical(num_tasks(job$work))
  }
  job$lists
}

learn_blocks <- function(job, task, state, call) {
  cut <- cut_of_work(job$work)
  for (block in unique(unlist(blocks_of_tasks(cut, task)))) {
    others <- setdiff(tasks_of_block(cut, block), task)
    others <- utils::head(others[state$done[others]], most_read)
    for (other in others[!job$merged[others]]) {
      file <- read_task(job, other, call)
      if (file$state == "whole") {
        learn_task(job, other, file$found, call)
      }
    }
  }
}

# Merges the result of a task into the lists that limits come from.
learn_task <- function(job, task, found, call) {
  if (is.null(job$lists) || job$merged[[task]]) {
    return(invisible())
  }
  merge_task(job$lists, job$work, task, found, call)
  job$merged[[task]] <- TRUE
}
