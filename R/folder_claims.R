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
look_at_folder <- function(job) {
  count <- num_tasks(job$work)
  files <- list.files(job$folder, "^fsknn-(task|claim|failure)-[0-9-]+$")
  part <- strsplit(files, "-", fixed = TRUE)
  kind <- vapply(part, `[[`, "", 2L)
  task <- suppressWarnings(as.integer(vapply(part, `[`, "", 3L)))
  number <- suppressWarnings(as.integer(vapply(part, `[`, "", 4L)))
  known <- !is.na(task) & task >= 1 & task <= count
  of_kind <- function(name) which(known & kind == name)
  state <- list(
    done = logical(count), generation = integer(count),
    failures = integer(count), final = logical(count)
  )
  state$done[task[of_kind("task")]] <- TRUE
  claims <- of_kind("claim")
  claims <- claims[order(number[claims], na.last = NA)]
  state$generation[task[claims]] <- number[claims]
  failures <- of_kind("failure")
  state$failures <- tabulate(task[failures], count)
  state$final[task[failures[number[failures] %in% 0L]]] <- TRUE
  state
}

claim_file <- function(job, task, generation) {
  job_file(job, sprintf("claim-%06d-%03d", task, generation))
}

# Whether somebody works on a task; NA where nothing can be said yet.
is_worked_on <- function(job, task, generation) {
  path <- claim_file(job, task, generation)
  text <- claim_text(path)
  if (is.null(text)) {
    return(FALSE)
  }
  if (is_process_gone(text)) {
    return(FALSE)
  }
  name <- basename(path)
  now <- cpp_steady_seconds()
  seen <- get0(name, envir = job$seen, inherits = FALSE)
  if (!identical(seen$text, text)) {
    assign(name, list(text = text, since = now), envir = job$seen)
    return(TRUE)
  }
  now - seen$since <= job$lease_seconds
}

# NULL where there is none any more. A claim that can't be read counts as one
# whose count stands still.
claim_text <- function(path) {
  found <- cpp_read_text(path)
  if (!is.null(found$failure)) {
    return("")
  }
  if (!is.null(found$bytes)) {
    bytes <- found$bytes
    rawToChar(bytes[bytes != 0])
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
  at_work[claimed] <- mapply(
    is_worked_on, task = claimed, generation = state$generation[claimed],
    MoreArgs = list(job = job)
  ) |> as.logical()
  if (alone && any(at_work)) {
    return(NULL)
  }
  for (task in open[!at_work[open]]) {
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

# Where it is sure: a process of this machine that is not there any more.
is_process_gone <- function(text) {
  facts <- claim_facts(text)
  if (!nzchar(facts$place) || !grepl("^[0-9]+$", facts$process) ||
        !nzchar(facts$start) || facts$place != this_process()$place) {
    return(FALSE)
  }
  start <- process_start(facts$process)
  is.null(start) || start != facts$start
}
