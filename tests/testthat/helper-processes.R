# Separate R processes, which a test ends by a signal.

# After this many seconds a process has hung. On a busy machine, R alone takes
# 10 s to start.
patience <- 300

# Starts `lines` (R code, with fsknn attached). Returns the process number and
# the files that it writes: `out` is for its messages.
start_child <- function(lines) {
  out <- tempfile("child-")
  script <- tempfile(fileext = ".R")
  writeLines(c(
    sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")),
    "suppressMessages(library(fsknn))",
    sprintf("out <- %s", deparse(out)),
    "say <- function(...) {",
    "  part <- paste0(out, '.part')",
    "  cat(..., '\\n', sep = ' ', file = part)",
    "  invisible(file.rename(part, out))",
    "}",
    "cat(Sys.getpid(), '\\n', file = paste0(out, '.pid.part'))",
    "invisible(file.rename(paste0(out, '.pid.part'), paste0(out, '.pid')))",
    lines
  ), script)
  start_script(script)
  pid_file <- paste0(out, ".pid")
  if (!wait_for(function() file.exists(pid_file), patience)) {
    stop("The child process did not start.")
  }
  list(pid = scan(pid_file, integer(), quiet = TRUE), out = out)
}

# Runs a file of R code in the background. A shell starts such a process so that
# it can't be interrupted, and since R 4.5 R leaves it so. GNU's env, where it is,
# makes it one that can.
start_script <- function(script) {
  reset <- "--default-signal=INT"
  has_reset <- suppressWarnings(
    system2("env", c(reset, "true"), stdout = FALSE, stderr = FALSE)
  ) == 0
  system2(
    "env", c(
      if (has_reset) reset, shQuote(file.path(R.home("bin"), "Rscript")),
      "--vanilla", shQuote(script)
    ),
    wait = FALSE, stdout = FALSE, stderr = FALSE
  )
}

wait_for <- function(condition, seconds) {
  until <- Sys.time() + seconds
  while (!condition() && Sys.time() < until) Sys.sleep(0.02)
  condition()
}

# Returns the words of the child. It is killed if it writes nothing.
said_by <- function(child, seconds = patience) {
  if (!wait_for(function() file.exists(child$out), seconds)) {
    tools::pskill(child$pid, tools::SIGKILL)
    return("nothing")
  }
  strsplit(trimws(readLines(child$out, warn = FALSE)), " +")[[1]]
}

# Returns the CPU seconds of a process on all cores by Linux's count. They are
# NA elsewhere, and for a process that has ended. Unlike elapsed seconds, they
# hardly depend on other work of the machine.
cpu_seconds_of <- function(pid) {
  told <- suppressWarnings(try(
    readLines(file.path("/proc", pid, "stat")), silent = TRUE
  ))
  if (inherits(told, "try-error")) {
    return(NA_real_)
  }
  # The name of the program, in brackets, may contain blanks.
  fields <- strsplit(sub("^.*[)] ", "", told), " ")[[1]]
  ticks <- as.double(system2("getconf", "CLK_TCK", stdout = TRUE))
  sum(as.double(fields[12:13])) / ticks
}

# Returns the CPU seconds of this code.
cpu_seconds <- function(code) {
  time <- system.time(code)
  sum(time[c("user.self", "sys.self")])
}

# Sends SIGINT to a child after `delay` seconds. The child runs `call` (after
# `setup`) repeatedly, so that no machine is too fast. Returns how it ended, and
# the seconds of its threads until then (elapsed seconds if the system has no
# count). It also returns whether the next call works, and what was left in the
# temporary folder.
interrupt_call <- function(setup, call, delay) {
  child <- start_child(c(
    "options(fsknn.num_threads = 2)",
    setup,
    "file.create(paste0(out, '.ready'))",
    "end <- tryCatch({",
    paste0("  repeat ", call),
    "}, interrupt = function(e) 'interrupted', error = conditionMessage)",
    "stopped <- as.double(Sys.time())",
    "worked <- sum(proc.time()[1:2])",
    "again <- knn_search(matrix(sin(1:600), 60), k = 3, num_threads = 1,",
    "                  backend = 'cpu')",
    "left <- length(list.files(tempdir(), '^fsknn-'))",
    "say(gsub(' ', '-', end), format(stopped, digits = 15),",
    "    format(worked, digits = 15), dim(again$index), left)"
  ))
  ready <- paste0(child$out, ".ready")
  wait_for(function() file.exists(ready), patience)
  Sys.sleep(delay)
  worked <- cpu_seconds_of(child$pid)
  sent <- as.double(Sys.time())
  tools::pskill(child$pid, tools::SIGINT)
  answer <- said_by(child)
  list(
    end = answer[[1]],
    seconds = if (is.na(worked)) {
      as.double(answer[2]) - sent
    } else {
      as.double(answer[3]) - worked
    },
    again = answer[4:5],
    left = answer[6]
  )
}

# The limit is a second of two threads.
expect_interrupted <- function(setup, call, delay = 1, within = 2) {
  testthat::skip_on_os("windows")
  got <- interrupt_call(setup, call, delay)
  testthat::expect_identical(got$end, "interrupted", label = call)
  testthat::expect_lt(got$seconds, within, label = paste("Seconds of", call))
  testthat::expect_identical(got$again, c("60", "3"))
  testthat::expect_identical(got$left, "0")
}

# Replaces some of the package's functions until the test ends.
local_functions <- function(..., env = parent.frame()) {
  namespace <- asNamespace("fsknn")
  put <- function(functions) {
    for (name in names(functions)) {
      unlockBinding(name, namespace)
      assign(name, functions[[name]], envir = namespace)
      lockBinding(name, namespace)
    }
  }
  functions <- list(...)
  before <- mget(names(functions), envir = namespace)
  put(functions)
  withr::defer(put(before), envir = env)
}
