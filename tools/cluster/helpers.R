# What the cases of run.R are made of: processes, jobs, waiting, and kills.

work <- Sys.getenv("FSKNN_CLUSTER_WORK")

say <- function(...) {
  cat(format(Sys.time(), "%H:%M:%S "), sprintf(...), "\n", sep = "")
}

# Waits by looking, for minutes: the machine may have much else to do.
wait_for <- function(what, condition, minutes = 10) {
  # Of the machine's steady clock; what R's own clock says may jump.
  end <- proc.time()[["elapsed"]] + 60 * minutes
  while (proc.time()[["elapsed"]] < end) {
    look()
    if (isTRUE(condition())) {
      return(invisible(TRUE))
    }
    Sys.sleep(0.1)
  }
  stop("waited for ", minutes, " minutes: ", what)
}

new_place <- function(name) {
  place <- tempfile(paste0(name, "-"), work)
  dir.create(place)
  place
}

# --- processes ---------------------------------------------------------------

# R code in a process of its own; what it gives is in `file`, what it says in
# `log`. `before` is put before the program: variables, a library.
start_r <- function(code, place, name = "call", before = character()) {
  paths <- file.path(place, paste0(name, c(".R", ".rds", ".log", ".end")))
  writeLines(
    c(
      "answer <- tryCatch({", code,
      "}, error = function(e) structure(",
      "  list(conditionMessage(e)), class = \"failed\"",
      "))",
      sprintf("saveRDS(answer, %s)", deparse(paths[[2]]))
    ),
    paths[[1]]
  )
  # In the background, with its end in a file, and its number known.
  words <- sprintf(
    "( %s Rscript %s > %s 2>&1 < /dev/null; echo $? > %s ) > /dev/null 2>&1 & echo $!",
    paste(before, collapse = " "), paths[[1]], paths[[3]], paths[[4]]
  )
  shell <- system2("sh", c("-c", shQuote(words)), stdout = TRUE)
  list(script = paths[[1]], file = paths[[2]], log = paths[[3]],
       end = paths[[4]], shell = as.integer(shell))
}

ended <- function(process) file.exists(process$end)

# The answer of start_r(); an error of its own is one here.
result_of <- function(process, minutes = 10) {
  wait_for("the end of a call", function() ended(process), minutes)
  if (!file.exists(process$file)) {
    stop("the call ended without an answer: ",
         paste(utils::tail(readLines(process$log), 20), collapse = "\n"))
  }
  answer <- readRDS(process$file)
  if (inherits(answer, "failed")) {
    stop("the call failed: ", answer[[1]])
  }
  answer
}

# The message of a call that must fail, on one line.
failure_of <- function(process) {
  wait_for("the end of a call", function() ended(process))
  if (!file.exists(process$file)) {
    stop("the call ended without a word: ",
         paste(utils::tail(readLines(process$log), 20), collapse = "\n"))
  }
  answer <- readRDS(process$file)
  stopifnot("a call that must fail did not" = inherits(answer, "failed"))
  on_one_line(answer[[1]])
}

on_one_line <- function(words) {
  gsub("[[:space:]]+", " ", paste(words, collapse = " "))
}

# All that run, with their words and variables: process numbers, words, node.
processes <- function() {
  found <- lapply(list.files("/proc", "^[0-9]+$"), function(pid) {
    read <- function(name) {
      path <- file.path("/proc", pid, name)
      bytes <- tryCatch(
        suppressWarnings(readBin(path, "raw", 100000)), error = function(e) raw()
      )
      bytes[bytes == 0] <- as.raw(10)
      strsplit(rawToChar(bytes), "\n", fixed = TRUE)[[1]]
    }
    words <- read("cmdline")
    if (length(words) == 0 || !grepl("exec/R$", words[[1]])) {
      return(NULL)
    }
    variables <- read("environ")
    of <- function(name) {
      line <- grep(paste0("^", name, "="), variables, value = TRUE)
      if (length(line)) sub("^[^=]*=", "", line[[1]]) else ""
    }
    data.frame(
      pid = as.integer(pid), words = paste(words, collapse = " "),
      node = of("SLURMD_NODENAME"), part = of("FSKNN_PART")
    )
  })
  found <- do.call(rbind, found)
  if (is.null(found)) {
    found <- data.frame(pid = integer(), words = "", node = "", part = "")[0, ]
  }
  found
}

# Workers that Slurm started.
worker_processes <- function() {
  all <- processes()
  all[nzchar(all$node), ]
}

call_processes <- function(process) {
  all <- processes()
  all[grepl(process$script, all$words, fixed = TRUE), ]
}

kill_process <- function(pid, signal = 9) {
  for (one in pid) {
    tools::pskill(one, signal)
  }
}

# --- Slurm -------------------------------------------------------------------

tool <- function(...) {
  status <- system2("sh", c(Sys.getenv("FSKNN_CLUSTER_TOOL"), ...))
  if (status != 0) stop("slurm.sh ", paste(...), " failed")
}

slurm <- function(program, ...) {
  # A slurmctld with much to do may refuse once.
  for (attempt in 1:30) {
    out <- suppressWarnings(
      system2(program, c(...), stdout = TRUE, stderr = TRUE)
    )
    if (is.null(attr(out, "status"))) {
      return(out)
    }
    Sys.sleep(2)
  }
  stop(program, ": ", paste(out, collapse = "\n"))
}

# Workers by hand, as a user starts them; gives the job's number.
start_workers <- function(folder, place, count = 3, before = "", code = NULL) {
  script <- tempfile("worker-", place, ".sh")
  r_script <- sub("sh$", "R", script)
  writeLines(
    c(code, sprintf("fsknn::knn_worker(%s)", deparse(folder))), r_script
  )
  writeLines(
    c("#!/bin/sh", sprintf("exec %s Rscript %s", before, r_script)), script
  )
  out <- slurm(
    "sbatch", "--parsable", paste0("--array=1-", count),
    paste0("--output=", file.path(place, "worker-%A-%a.log")), script
  )
  sub(";.*", "", utils::tail(out, 1))
}

jobs_left <- function() {
  out <- slurm("squeue", "-h", "-r", "-o", "%i")
  out[nzchar(out)]
}

cancel_all <- function() {
  left <- jobs_left()
  if (length(left) > 0) {
    suppressWarnings(slurm("scancel", "--signal=KILL", "--full", "-u", "root"))
    suppressWarnings(slurm("scancel", "-u", "root"))
  }
  kill_process(worker_processes()$pid)
  wait_for("the end of all jobs", function() {
    kill_process(worker_processes()$pid)
    length(jobs_left()) == 0
  })
}

# But those that Slurm holds back for two minutes, their node having died.
jobs_to_run <- function() {
  out <- slurm("squeue", "-h", "-r", "-o", shQuote("%i %r"))
  out[nzchar(out) & !grepl("BeginTime", out)]
}

nodes_up <- function() {
  out <- slurm("sinfo", "-h", "-N", "-t", "idle,mixed,allocated", "-o", "%N")
  length(unique(out))
}
