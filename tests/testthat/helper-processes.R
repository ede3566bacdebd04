# R processes of their own, that a test ends by a signal.

# Seconds after which a process hangs: beside much else, R alone takes 10 to start.
patience <- 300

# Starts `lines` (code of R, with fsknn attached) and gives the process's
# number and the files it writes to: `out` says what it wants said.
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
  # A child of Rscript can be told to stop, even where R itself was started so
  # that it can't (in the background of a shell).
  system2(
    file.path(R.home("bin"), "Rscript"), c("--vanilla", shQuote(script)),
    wait = FALSE, stdout = FALSE, stderr = FALSE
  )
  pid_file <- paste0(out, ".pid")
  if (!wait_for(function() file.exists(pid_file), patience)) {
    stop("The child process did not start.")
  }
  list(pid = scan(pid_file, integer(), quiet = TRUE), out = out)
}

wait_for <- function(condition, seconds) {
  until <- Sys.time() + seconds
  while (!condition() && Sys.time() < until) Sys.sleep(0.02)
  condition()
}

# What the child said, as words; it is ended where it says nothing.
said_by <- function(child, seconds = patience) {
  if (!wait_for(function() file.exists(child$out), seconds)) {
    tools::pskill(child$pid, tools::SIGKILL)
    return("nothing")
  }
  strsplit(trimws(readLines(child$out, warn = FALSE)), " +")[[1]]
}

# Seconds of all cores that a process has had so far, as Linux tells; NA
# elsewhere, and of a process that is gone. Beside other work they are what they
# are on a free machine, and elapsed seconds are not.
cpu_seconds_of <- function(pid) {
  told <- suppressWarnings(try(
    readLines(file.path("/proc", pid, "stat")), silent = TRUE
  ))
  if (inherits(told, "try-error")) {
    return(NA_real_)
  }
  # The name of the program, in brackets, may have blanks in it.
  fields <- strsplit(sub("^.*[)] ", "", told), " ")[[1]]
  ticks <- as.double(system2("getconf", "CLK_TCK", stdout = TRUE))
  sum(as.double(fields[12:13])) / ticks
}

# The same of what is done here.
cpu_seconds <- function(code) {
  time <- system.time(code)
  sum(time[c("user.self", "sys.self")])
}

# Sends SIGINT to a child that runs `call` (after `setup`) again and again, so
# that no machine is too fast for it, once it has run for `delay` seconds. Gives
# what came of it, the seconds of its threads until then (of the clock where the
# system does not tell), whether the next call works, and what was left in the
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

# A second of two threads.
expect_interrupted <- function(setup, call, delay = 1, within = 2) {
  testthat::skip_on_os("windows")
  got <- interrupt_call(setup, call, delay)
  testthat::expect_identical(got$end, "interrupted", label = call)
  testthat::expect_lt(got$seconds, within, label = paste("Seconds of", call))
  testthat::expect_identical(got$again, c("60", "3"))
  testthat::expect_identical(got$left, "0")
}

# Other functions in place of some of the package's, until the test ends.
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
