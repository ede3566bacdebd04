# Who works on what. A worker makes a file of its own and links it to the name
# of the task's next claim: fsknn-claim-000005-001, then -002, and so on. No
# claim is ever taken away by others, who might take away the next one: one that
# is dead is followed by one of a higher number, which one worker alone can
# make. While it works it counts up in its file. A claim is dead when its count
# stood still for lease_seconds by the steady clock of who looks: clocks of two
# machines are never compared. (A network's file system may show a file as it
# was some seconds ago: 60 are more than twice what is usual.) On the same
# machine the process itself is looked for, too.
#
# A worker that was only slow may outlive its claim. Then a task is done twice,
# and the first result that is linked to the task's name is the one that counts.

# What stands of the folder, from one look at it: done, generation (of the last
# claim; 0: none), failures (how many), final (a failure that no other trial
# would mend), one value for each task.
look_at_folder <- function(job, call) {
  in_files(
    cpp_look_at_folder(job$folder, num_tasks(job$work)), job, call
  )$state
}

claim_file <- function(job, task, generation) {
  job_file(job, sprintf("claim-%06d-%03d", task, generation))
}

# How many claims one look reads, at most. So a look's cost does not grow with
# the number of workers; those that it leaves out are read by the next looks.
most_claims_read <- 32L

# Whether somebody works on these tasks, whose last claims these are. A claim
# that is not yet known to be dead counts as worked on. job$seen keeps for each
# claim its text, since when that has not changed, and when it was last read.
are_worked_on <- function(job, tasks, generations) {
  paths <- claim_file(job, tasks, generations)
  now <- cpp_steady_seconds()
  seen <- lapply(basename(paths), function(name) job$seen[[name]])
  names(seen) <- basename(paths)
  read <- vapply(seen, function(claim) claim$read %||% -Inf, 0)
  due <- which(now - read >= job$lease_seconds / 4)
  # Each worker begins elsewhere, so that all together see all of them soon.
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

# NULL where there is none any more. A claim that can't be read, or that holds
# what is no text, counts as one whose count stands still.
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

# NULL, or an external pointer that holds the claim.
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

# list(task, lease), or NULL where there is none to be had now. alone: only
# where nobody else works.
claim_some_task <- function(job, state, alone, call) {
  open <- which(!state$done & !state$final & state$failures < most_trials)
  # One that failed here is for others, if there are any.
  open <- c(setdiff(open, job$failed_here), intersect(open, job$failed_here))
  at_work <- logical(length(state$done))
  claimed <- open[state$generation[open] > 0]
  at_work[claimed] <- are_worked_on(job, claimed, state$generation[claimed])
  if (alone && any(at_work)) {
    return(NULL)
  }
  for (task in open[!at_work[open]]) {
    # Others begin here, too: a look is cheaper than a lease of one's own.
    if (file.exists(claim_file(job, task, state$generation[[task]] + 1L))) {
      next
    }
    lease <- claim_task(job, task, state$generation[[task]] + 1L, call)
    if (is.null(lease)) {
      next
    }
    # It may have been done between the look and the claim.
    if (file.exists(task_file(job, task))) {
      cpp_release(lease)
      next
    }
    return(list(task = task, lease = lease))
  }
  NULL
}

# --- whose a claim is --------------------------------------------------------

words_of_claim <- function() {
  me <- this_process()
  paste0(
    "host: ", me$host, "\nprocess: ", me$process, "\nstart: ", me$start,
    "\nplace: ", me$place, "\n"
  )
}

# place: see process_place().
this_process <- function() {
  process <- Sys.getpid()
  list(
    host = Sys.info()[["nodename"]], process = process,
    start = process_start(process) %||% "", place = process_place()
  )
}

# The machine since it was started, the process numbers that are seen here, and
# the user: the same number there is the same process. The user, since where
# /proc is mounted with hidepid=2, as on many clusters, others' processes are
# not in it though they live: nothing is ever concluded of those, and their
# claims are dead when their count stands still, as on another machine. By
# number: a container may have no name for it. Empty where any of it is not
# known.
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

# When it started, in the system's ticks; NULL where there is none, or one that
# has ended and that nobody asked how, as where a container's first process
# never does.
process_start <- function(process) {
  line <- tryCatch(
    suppressWarnings(readLines(file.path("/proc", process, "stat"), n = 1)),
    error = function(err) NULL
  )
  if (is.null(line) || length(line) == 0) {
    return(NULL)
  }
  # The name, in brackets, may hold anything.
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

# Of each of these texts, where it is sure: a process of this machine that is
# not there any more.
are_processes_gone <- function(texts) {
  here <- process_place()
  # Most claims are of other machines, and nothing is known of those.
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
