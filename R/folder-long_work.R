# Long work in a folder (see folder-protocol.R): a search by tasks, each of
# which is stored when it is done. Tasks are done by this process, by
# BiocParallel workers, or by other processes that run knn_worker(). The answer
# is identical, to the last bit, to that of one search.

# Checks the arguments for long work as far as that is possible without the
# search. Returns NULL for a plain search.
check_long_work <- function(BPPARAM, checkpoint, options,
                            num_threads = NULL, call = caller_env()) {
  workers <- check_workers(BPPARAM, options, num_threads, call = call)
  folder <- check_checkpoint(checkpoint, call = call)
  if (is.null(workers) && is.null(folder)) {
    return(NULL)
  }
  check_shared_folder(workers, folder, call)
  list(
    workers = workers, folder = folder, size = check_split_size(call = call)
  )
}

# options(fsknn.split_size = ) is the number of rows, or of points of a block,
# in a task. NULL is automatic.
check_split_size <- function(call = caller_env()) {
  size <- getOption("fsknn.split_size")
  if (!is.null(size)) {
    check_whole_number(
      size, "options(fsknn.split_size = )", 1, .Machine$integer.max,
      call = call
    )
  }
}

# Returns what ask_core() returns, found by tasks. If the answer is not
# assembled, `take` is called with the part of each task, in order.
find_in_folder <- function(search, take = NULL, call = caller_env()) {
  started <- Sys.time()
  work <- new_work(search)
  on.exit(end_work(work))
  if (is_within(work$request)) {
    check_room(work, call)
  }
  long <- search$options$long
  folder <- long$folder
  if (is.null(folder)) {
    folder <- tempfile("fsknn-work-", temporary_folder(call))
    on.exit(unlink(folder, recursive = TRUE, expand = FALSE), add = TRUE)
  }
  job <- open_folder(folder, work, call)
  work$plan <- job$plan
  job$work <- work
  job$request <- work$request
  job$request$progress <- FALSE
  forget_failures(job)
  write_work(
    job, search, work, !is.null(long$folder) || !have_all(long$workers), call
  )

  answer <- new_answer(work)
  job$answer <- answer
  bar <- new_split_bar(
    search$request$progress, num_tasks(work),
    if (asks_triples(work$request)) "Triples" else "Nearest neighbours"
  )
  on.exit(end_bar(bar), add = TRUE)
  take_kept(job, answer, bar, call)
  if (!is.null(long$workers) && !all(answer$taken)) {
    work_by_workers(job, long$workers, call)
  }
  worked <- work_in_folder(
    job, answer, bar, alone = !is.null(long$workers), call = call
  )
  if (!is.null(worked$failure)) {
    raise_job_failure(job, worked$failure, call)
  }
  clean_folder(job)
  if (!is.null(take)) {
    take_kept_parts(job, take, call)
  }
  found <- whole_answer(answer, work, call)
  seconds <- as.double(Sys.time() - started, units = "secs")
  if (!asks_triples(work$request)) {
    remember_search(
      work$values, work$queries, search$request, answer$stats, seconds
    )
  }
  found
}

# All tasks are done, and their files were undamaged when they were checked.
take_kept_parts <- function(job, take, call) {
  for (task in seq_len(num_tasks(job$work))) {
    file <- read_task(job, task, call)
    if (file$state != "whole") {
      abort_unreadable(
        job,
        paste("Task", task, "was changed while the answer was written."),
        call, mended_by_search
      )
    }
    take(file$found)
  }
}

# Workers need these parts, but not the names of points.
new_work <- function(search) {
  work <- list(
    values = search$points$values,
    queries = search$queries$values,
    request = search$request,
    num_rows = search$num_rows
  )
  work$plan <- new_task_plan(work, search$options)
  work$held <- new.env(parent = emptyenv())
  work
}

# Adds the results that exist already to the answer.
take_kept <- function(job, answer, bar, call) {
  state <- look_at_folder(job, call)
  bad <- collect_tasks(job, answer, state, bar, call)
  tell_resumed(
    job, sum(answer$taken), length(answer$taken), bad, sum(state$done)
  )
}

# After collection, deletes failures and the files of dead processes. A file of
# a living process stays: without its lease it could make no claim.
clean_folder <- function(job) {
  listed <- function(pattern) {
    list.files(job$folder, pattern, full.names = TRUE)
  }
  parts <- listed(paste0("^fsknn-.*", unfinished_file, "$"))
  aside <- listed("^fsknn-aside-[0-9a-f]+$")
  # Claims are listed after the unfinished files: a worker that writes a task, a
  # receipt or a failure holds its lease until the file is complete.
  claims <- listed("^fsknn-(claim|lease)-[0-9a-f-]+$")
  lapsed <- have_lapsed(job, c(parts, aside, claims))
  dead <- are_processes_gone(vapply(claims, function(path) {
    claim_text(path) %||% ""
  }, "")) | claims %in% lapsed
  unlink(
    c(
      listed("^fsknn-failure-[0-9-]+$"), claims[dead],
      if (all(dead)) parts else intersect(parts, lapsed),
      intersect(aside, lapsed)
    ),
    expand = FALSE
  )
}

# Returns the files that have not been written for lease_seconds, by the clock
# of the file system.
have_lapsed <- function(job, files) {
  if (length(files) == 0) {
    return(character())
  }
  silent <- as.double(time_of_folder(job) - file.mtime(files), units = "secs")
  files[!is.na(silent) & silent > job$lease_seconds]
}
