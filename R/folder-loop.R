# The loop of every process that works in a folder: workers started by hand or
# by BiocParallel, and the call that made the folder. It claims a task, does it
# and stores the result, until all are done. The call also collects: it reads
# and checks every result, whoever computed it, and adds it to the answer.

# `job` is a folder with work (as from new_work()) and request (the worker's
# own: backend, devices, threads). Further arguments:
#   answer    the answer to collect into (see folder-collect.R), or NULL
#   bar       from new_split_bar(), or NULL
#   alone     work only if nobody else does
#   wait      stay while others work, to do what they leave undone
#   most      maximum number of tasks
# Returns the number of tasks done here, or the failure that ended the work.
work_in_folder <- function(job, answer = NULL, bar = NULL, alone = FALSE,
                           wait = TRUE, most = Inf, call = caller_env()) {
  done <- 0L
  pause <- 0.02
  repeat {
    if (is_called_off(job)) {
      return(list(done = done, failure = list(failure = "interrupt")))
    }
    began <- cpp_steady_seconds()
    state <- look_at_folder(job, call)
    if (!is.null(answer)) {
      bad <- collect_tasks(job, answer, state, bar, call)
      if (all(answer$taken)) {
        return(list(done = done))
      }
      state$done[c(bad$damaged, bad$other)] <- FALSE
    } else if (all(state$done)) {
      return(list(done = done))
    }
    failure <- ending_failure(job, state, call)
    if (!is.null(failure)) {
      return(list(done = done, failure = failure))
    }
    if (done >= most) {
      return(list(done = done))
    }
    claim <- claim_some_task(job, state, alone, call)
    if (is.null(claim)) {
      if (!wait) {
        return(list(done = done))
      }
      # A pause lasts at most 20 times as long as listing the folder takes.
      longest <- max(2, 20 * (cpp_steady_seconds() - began))
      cpp_wait(pause)
      pause <- min(pause * 1.5, longest, job$lease_seconds / 4)
      next
    }
    pause <- 0.02
    done <- done + do_task(job, claim, state, answer, bar, call)
  }
}

# Returns TRUE if the call that started this worker has ended.
is_called_off <- function(job) {
  !is.null(job$request$watch) && !file.exists(job$request$watch)
}

# Returns TRUE if the task was done.
do_task <- function(job, claim, state, answer, bar, call) {
  on.exit(cpp_release(claim$lease))
  task <- claim$task
  started <- cpp_steady_seconds()
  request <- job$request
  if (!is.null(bar)) {
    request$bar <- bar$drawn
    request$share <- split_share(bar, 1)
  }
  found <- tryCatch(
    {
      limits <- limits_of_task(job, task, state, call)
      search_task(job$work, task, request, limits)
    },
    fsknn_checkpoint_error = function(err) rlang::cnd_signal(err),
    error = failure_of_error
  )
  if (!is.null(found$failure)) {
    if (found$failure == "interrupt") {
      if (is_called_off(job)) {
        return(FALSE)
      }
      raise_failure(found, call)
    }
    if (found$failure == "file") {
      in_files(found, job, call)
    }
    keep_failure(job, task, found, call)
    return(FALSE)
  }
  first <- write_task(job, task, found, call)
  if (first) {
    write_receipt(job, task, cpp_steady_seconds() - started)
    learn_task(job, task, found, call)
    if (!is.null(answer)) {
      put_task(answer, job$work, task, found, call)
      step_bar(bar, 1)
    }
  }
  TRUE
}

# Adds finished tasks to the answer. A damaged result is removed to allow
# another trial. Returns list(damaged, other), the tasks with such files.
collect_tasks <- function(job, answer, state, bar, call) {
  bad <- list(damaged = integer(), other = integer())
  for (task in which(state$done & !answer$taken)) {
    file <- read_task(job, task, call)
    if (file$state == "whole") {
      put_task(answer, job$work, task, file$found, call)
      step_bar(bar, 1)
    } else if (file$state != "missing") {
      why <- if (file$state == "other") "other" else "damaged"
      bad[[why]] <- c(bad[[why]], task)
      take_task_away(job, task, call)
    }
  }
  bad
}

# Records who did a task, and its time in seconds. Only knn_status() reads it,
# so a failure to write it is ignored.
write_receipt <- function(job, task, seconds) {
  path <- job_file(job, sprintf("receipt-%06d", task))
  me <- this_process()
  cpp_write_sealed(
    path, "receipt", task, job$print,
    list(
      seconds = seconds, ended = as.double(Sys.time()),
      process = as.integer(me$process), host = charToRaw(enc2utf8(me$host))
    ),
    once = FALSE
  )
}

# --- messages ----------------------------------------------------------------

tell_resumed <- function(job, num_done, num_tasks, bad, seen) {
  if (seen == 0) {
    return(invisible())
  }
  damaged <- first_few(bad$damaged)
  other <- first_few(bad$other)
  # A value in braces sets the quantity for plurals, too, so qty() comes after
  # it.
  cli::cli_inform(
    c(
      i = "{num_done} of {num_tasks} task{?s} {cli::qty(num_done)}{?is/are}
           taken from the folder {.file {job$given}}.",
      "!" = if (length(bad$damaged) > 0) {
        "{cli::qty(length(bad$damaged))}Task{?s} {damaged}
         {cli::qty(length(bad$damaged))}{?was/were} damaged, and {?is/are} done
         again."
      },
      "!" = if (length(bad$other) > 0) {
        "{cli::qty(length(bad$other))}Task{?s} {other}
         {cli::qty(length(bad$other))}{?was/were} of another search or of other
         rows, and {?is/are} done again."
      }
    ),
    class = "fsknn_resumed"
  )
}

# --- progress ----------------------------------------------------------------

# All tasks share one bar, and the core draws into it, too.
new_split_bar <- function(shown, count, what = "Nearest neighbours") {
  bar <- new.env(parent = emptyenv())
  bar$drawn <- if (shown) cpp_new_bar(what)
  bar$num_rows <- max(1, count)
  bar$done <- 0
  bar
}

# Returns the part of the bar that the next `count` tasks cover.
split_share <- function(bar, count) {
  c(bar$done, bar$done + count) / bar$num_rows
}

step_bar <- function(bar, count) {
  if (is.null(bar)) {
    return(invisible())
  }
  bar$done <- bar$done + count
  if (!is.null(bar$drawn)) {
    cpp_set_bar(bar$drawn, bar$done / bar$num_rows)
  }
}

end_bar <- function(bar) {
  if (!is.null(bar$drawn)) {
    cpp_end_bar(bar$drawn)
  }
}
