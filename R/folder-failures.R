# Failures of tasks: each trial writes a file, fsknn-failure-000005-1 to -3.
# After three failures the work ends with an error. A failure that every other
# trial would meet, too, has the number 0 and ends the work at once.

most_trials <- 3L

# These failures depend on the resources of a machine or a moment.
passing_failures <- c("memory", "disk", "backend", "cuda", "error", "internal")

failure_file <- function(job, task, number) {
  job_file(job, sprintf("failure-%06d-%d", task, number))
}

keep_failure <- function(job, task, failure, call) {
  job$failed_here <- union(job$failed_here, task)
  numbers <- if (failure$failure %in% passing_failures) {
    seq_len(most_trials)
  } else {
    0L
  }
  columns <- list(failure = serialize(failure, NULL))
  for (number in numbers) {
    name <- basename(failure_file(job, task, number))
    first <- write_once(
      job, sub("^fsknn-", "", name), "failure", task, job$print, columns, call
    )
    if (first) {
      break
    }
  }
}

# Returns the failure that ends the work, or NULL.
ending_failure <- function(job, state, call) {
  ended <- which(!state$done & (state$final | state$failures >= most_trials))
  if (length(ended) == 0) {
    return(NULL)
  }
  task <- ended[[1]]
  number <- if (state$final[[task]]) 0L else most_trials
  file <- in_files(
    cpp_read_sealed(
      failure_file(job, task, number), "failure", task, job$print,
      list(failure = raw()), NA_real_
    ),
    job, call
  )
  # Another call has started and allows new trials of the task.
  if (file$state == "missing") {
    return(NULL)
  }
  if (file$state == "whole") {
    unserialize(file$columns$failure)
  } else {
    list(failure = "error", message = paste("Task", task, "failed."))
  }
}

# A new call starts a new series of trials.
forget_failures <- function(job) {
  unlink(
    list.files(job$folder, "^fsknn-failure-[0-9-]+$", full.names = TRUE),
    expand = FALSE
  )
}

# The error is worded as in a search without tasks.
raise_job_failure <- function(job, failure, call) {
  if (failure$failure == "error") {
    raise_worker_error(failure, call)
  }
  in_files(failure, job, call)
}

raise_worker_error <- function(failure, call) {
  words <- failure$message
  who <- failure$who
  cli_abort(
    c(
      "A worker failed{if (!is.null(who)) paste0(\" (\", who, \")\")}.",
      x = "{words}",
      i = "It needs this version of fsknn, and memory for what it reads of
           {.arg x}."
    ),
    class = c("fsknn_worker_error", "fsknn_error"),
    call = call
  )
}

# Converts an error of R to a failure that can be stored.
failure_of_error <- function(err) {
  list(
    failure = "error", message = conditionMessage(err), who = who_am_i()
  )
}

who_am_i <- function() {
  paste0("process ", Sys.getpid(), " on ", Sys.info()[["nodename"]])
}
