# From what a task of the k nearest can start: how far the k-th neighbour of
# each of its points is, among those that finished tasks found. A pair that is
# strictly farther than that is none of the k nearest, whatever else is found;
# one that is as far may be, by its number, and is never dropped. Limits are
# made of results alone whose digest agrees.

# How many results of each block are read for it: the first ones cut most.
most_read <- 12L

# One for each point of the task's blocks, or NULL. Where all is collected here,
# all that was collected counts.
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

# NULL where there is no memory for them: without limits more is told of, and
# nothing else. Only what is of blocks that were worked on is ever touched.
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

# Takes what a task found into the lists that limits come from.
learn_task <- function(job, task, found, call) {
  if (is.null(job$lists) || job$merged[[task]]) {
    return(invisible())
  }
  merge_task(job$lists, job$work, task, found, call)
  job$merged[[task]] <- TRUE
}
