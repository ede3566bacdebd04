# Claims say which worker does which task. A worker writes a lease file and
# links it to the name of the task's next claim: fsknn-claim-000005-001, then
# -002, and so on. No worker deletes the claim of another, because it might
# delete the next one instead. A dead claim is followed by one of a higher
# number, which only one worker can make. While it works, the owner increments a
# counter in its file. A claim is dead when its counter has not changed for
# lease_seconds by the steady clock of the reader. Clocks of two machines are
# never compared. (A network file system may show a file as it was some seconds
# ago. The default of 60 s is more than twice the usual delay.) On the same
# machine, the process itself is checked, too.
#
# A slow worker may outlive its claim. Then a task is done twice, and the result
# that is linked to the task's name first counts.

# Returns the state of the folder from one listing, one value for each task. The
# values are done, generation (of the last claim; 0: none), failures (their
# number) and final (another trial would fail as well).
look_at_folder <- function(job, call) {
  in_files(
    cpp_look_at_folder(job$folder, num_tasks(job$work)), job, call
  )$state
}

claim_file <- function(job, task, generation) {
  job_file(job, sprintf("claim-%06d-%03d", task, generation))
}

# A call reads at most this many claims, so that its cost does not grow with the
# number of workers. The next calls read the others.
most_claims_read <- 32L

# Returns TRUE for each task whose last claim may be alive. A claim that is not
# yet known to be dead counts as alive. For each claim, job$seen holds its text,
# the time of its last change, and the time when it was last read.
are_worked_on <- function(job, tasks, generations) {
  paths <- claim_file(job, tasks, generations)
  now <- cpp_steady_seconds()
  seen <- lapply(basename(paths), function(name) job$seen[[name]])
  names(seen) <- basename(paths)
  read <- vapply(seen, function(claim) claim$read %||% -Inf, 0)
  due <- which(now - read >= job$lease_seconds / 4)
  # Each worker starts at another claim, so that together they read all claims
  # soon.
  start <- strtoi(substr(job$word, 1, 7), 16L)
  due <- due[order(read[due], (due + start) %% length(paths))]
  for (at in utils::head(due, most_claims_read)) {
    text <- claim_text(paths[[at]])
    same <- identical(seen[[at]]$text %||% NA, text %||% "")
    seen[[at]] <- list(
      text = text %||% "", there = !is.null(text), read = now,
      since = if (same) seen[[at]]$since else now
    )
  }
  job$seen <- seen
  vapply(seen, function(claim) claim$there %||% TRUE, NA) &
    !are_processes_gone(vapply(seen, function(claim) claim$text %||% "", "")) &
    vapply(seen, function(claim) {
      (claim$read %||% 0) - (claim$since %||% 0) <= job$lease_seconds
    }, NA)
}

# Returns NULL if the claim no longer exists. A claim that cannot be read or is
# not text counts as one whose counter does not change.
claim_text <- function(path) {
  found <- cpp_read_text(path)
  if (!is.null(found$failure)) {
    return("")
  }
  if (!is.null(found$bytes)) {
    bytes <- found$bytes
    text <- rawToChar(bytes[bytes != 0])
    if (validUTF8(text)) text else ""
  }
}

# Returns NULL, or an external pointer that holds the claim.
claim_task <- function(job, task, generation, call) {
  in_files(
    cpp_claim(
      job_file(job, paste0("lease-", random_word())),
      claim_file(job, task, generation), words_of_claim(),
      min(10, job$lease_seconds / 6)
    ),
    job, call
  )$lease
}

# Returns list(task, lease), or NULL if no task is free. With `alone`, it claims
# a task only if nobody else works.
claim_some_task <- function(job, state, alone, call) {
  open <- which(!state$done & !state$final & state$failures < most_trials)
  # A task that failed here is left to other workers, if there are any.
  open <- c(setdiff(open, job$failed_here), intersect(open, job$failed_here))
  at_work <- logical(length(state$done))
  claimed <- open[state$generation[open] > 0]
  at_work[claimed] <- are_worked_on(job, claimed, state$generation[claimed])
  if (alone && any(at_work)) {
    return(NULL)
  }
  for (task in open[!at_work[open]]) {
    # Other workers start here, too, and checking for a file costs less than
    # making a lease.
    if (file.exists(claim_file(job, task, state$generation[[task]] + 1L))) {
      next
    }
    lease <- claim_task(job, task, state$generation[[task]] + 1L, call)
    if (is.null(lease)) {
      next
    }
    # Another worker may have done the task since the folder was listed.
    if (file.exists(task_file(job, task))) {
      cpp_release(lease)
      next
    }
    return(list(task = task, lease = lease))
  }
  NULL
}

# --- owners of claims --------------------------------------------------------

words_of_claim <- function() {
  me <- this_process()
  paste0(
    "host: ", me$host, "\nprocess: ", me$process, "\nstart: ", me$start,
    "\nplace: ", me$place, "\n"
  )
}

# For `place`, see process_place().
this_process <- function() {
  process <- Sys.getpid()
  list(
    host = Sys.info()[["nodename"]], process = process,
    start = process_start(process) %||% "", place = process_place()
  )
}

# Identifies the boot of the machine, the PID namespace and the user: within one
# place, the same number is the same process. The user belongs to it because of
# hidepid=2, with which many clusters mount /proc. There, a user does not see
# the processes of others. Nothing is concluded about those: their claims are
# dead when the counter does not change, as on another machine. The user is a
# number, because a container may have no name for it. The text is empty if any
# part is unknown.
process_place <- function() {
  parts <- tryCatch(
    suppressWarnings(c(
      readLines("/proc/sys/kernel/random/boot_id", n = 1),
      Sys.readlink(c("/proc/self/ns/pid", "/proc/self/ns/user")),
      file.info("/proc/self")$uid
    )),
    error = function(err) NULL
  )
  known <- length(parts) == 4 && !anyNA(parts) && all(nzchar(parts))
  if (known) paste(parts, collapse = " ") else ""
}

# Returns the start time of a process in clock ticks, or NULL if there is no
# such process. A zombie counts as none: the first process of a container may
# never reap it.
process_start <- function(process) {
  line <- tryCatch(
    suppressWarnings(readLines(file.path("/proc", process, "stat"), n = 1)),
    error = function(err) NULL
  )
  if (is.null(line) || length(line) == 0) {
    return(NULL)
  }
  # The name, in brackets, may contain any character.
  fields <- strsplit(sub(".*\\) ", "", line), " ", fixed = TRUE)[[1]]
  if (!fields[1] %in% c("Z", "X")) fields[20]
}

claim_facts <- function(text) {
  lines <- strsplit(text, "\n", fixed = TRUE)[[1]]
  value <- function(name) {
    line <- lines[startsWith(lines, paste0(name, ": "))]
    if (length(line) == 1) substring(line, nchar(name) + 3) else ""
  }
  list(
    host = value("host"), process = value("process"), start = value("start"),
    place = value("place")
  )
}

# Returns TRUE for each text whose process was on this machine and has certainly
# ended.
are_processes_gone <- function(texts) {
  here <- process_place()
  # Most claims are from other machines, about which nothing is known.
  of_here <- nzchar(here) & grepl(paste0("\nplace: ", here, "\n"), texts,
                                  fixed = TRUE)
  gone <- logical(length(texts))
  gone[of_here] <- vapply(texts[of_here], function(text) {
    facts <- claim_facts(text)
    known <- grepl("^[0-9]+$", facts$process) && nzchar(facts$start)
    start <- if (known) process_start(facts$process)
    known && (is.null(start) || start != facts$start)
  }, NA)
  gone
}
