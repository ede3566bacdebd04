# run.R short | all | kills N [SEED] | CASE...: what `make cluster` runs beside a
# real Slurm (see ../slurm.sh), with the fsknn of R's libraries. Each answer must be
# identical() to that of one process.
#   short   workers that Slurm starts, and one kill of each kind: a few minutes
#   all     each case once
#   kills   N kills at random moments, of each kind in turn
# Its last line counts.

folder <- dirname(sub("^--file=", "", grep(
  "^--file=", commandArgs(), value = TRUE
)[[1]]))
source(file.path(folder, "helpers.R"))
source(file.path(folder, "cases.R"))

# Cases of a call that needs what is not everywhere.
needs <- list(
  batchtools = "batchtools", batchtools_kill = "batchtools", mpi = "Rmpi"
)

try_case <- function(name, run) {
  for (package in c(needs[[name]], if (name %in% names(needs)) "BiocParallel")) {
    # Rmpi, loaded, would make this process one of MPI's.
    if (!nzchar(system.file(package = package))) {
      say("skipped  %s: there is no %s", name, package)
      return("skipped")
    }
  }
  begun <- proc.time()[["elapsed"]]
  told <- tryCatch(
    run(),
    error = function(err) structure(conditionMessage(err), class = "failed")
  )
  took <- proc.time()[["elapsed"]] - begun
  outcome <- if (inherits(told, "failed")) {
    "FAILED"
  } else if (is.character(told) && startsWith(told[[1]], "skipped")) {
    "skipped"
  } else {
    "passed"
  }
  words <- if (is.character(told)) paste0(": ", told) else ""
  say("%s  %s (%.0f s)%s", outcome, name, took, words)
  if (outcome == "FAILED") tell_of_failure()
  cancel_all()
  wait_for("all nodes", function() nodes_up() == 3)
  assign("folder", NULL, watched)
  outcome
}

# What an odd failure needs: who runs, what is queued, the last that was logged.
tell_of_failure <- function() {
  print(processes())
  writeLines(slurm("squeue"))
  logs <- file.info(list.files(
    work, "[.]log$", full.names = TRUE, recursive = TRUE
  ))
  for (log in utils::head(rownames(logs)[order(-as.double(logs$mtime))], 6)) {
    cat("--- ", log, "\n", sep = "")
    writeLines(utils::tail(readLines(log, warn = FALSE), 15))
  }
}

arguments <- commandArgs(TRUE)
everything <- c(
  "array", "batchtools", "batchtools_kill", "mpi", "each_kill", "slow",
  "two_calls", "clocks", "full_disk", "read_only", "version", "other_data"
)
first <- if (length(arguments)) arguments[[1]] else "all"
say("fsknn %s of %s", utils::packageVersion("fsknn"), find.package("fsknn"))
begun <- proc.time()[["elapsed"]]
prepare()
seconds_alone <- proc.time()[["elapsed"]] - begun
say("one process alone takes %.0f s", seconds_alone)

outcomes <- if (first == "kills") {
  count <- as.integer(arguments[[2]])
  seed <- if (length(arguments) > 2) {
    as.integer(arguments[[3]])
  } else {
    as.integer(Sys.time()) %% 100000L
  }
  say("%d kills, seed %d", count, seed)
  set.seed(seed)
  vapply(seq_len(count), function(number) {
    kind <- kinds[[(number - 1) %% length(kinds) + 1]]
    try_case(paste(number, kind), function() killed_work(kind))
  }, "")
} else {
  cases <- switch(
    first, short = c("array", "each_kill"), all = everything, arguments
  )
  vapply(cases, function(name) {
    try_case(name, get(paste0("case_", name)))
  }, "")
}
say(
  "%d passed, %d failed, %d skipped, in %.0f s", sum(outcomes == "passed"),
  sum(outcomes == "FAILED"), sum(outcomes == "skipped"),
  proc.time()[["elapsed"]] - begun
)
quit(status = as.integer(any(outcomes == "FAILED")))
