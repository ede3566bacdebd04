# A running call, stopped by the signal that Ctrl-C sends.

start_long_call <- function(seconds_file, threads) {
  script <- tempfile(fileext = ".R")
  lib <- .libPaths()
  writeLines(c(
    sprintf(".libPaths(%s)", paste(deparse(lib), collapse = "")),
    "library(fsknn)",
    "x <- matrix(rnorm(120000 * 100), ncol = 100)",
    sprintf("out <- %s", deparse(seconds_file)),
    "cat(Sys.getpid(), '\\n', file = paste0(out, '.pid'))",
    "said <- tryCatch({",
    sprintf("  find_knn(x, k = 200, num_threads = %d, progress = TRUE, backend = 'cpu')", threads),
    "  'finished'",
    "}, interrupt = function(e) 'interrupted')",
    "stopped <- as.double(Sys.time())",
    "again <- find_knn(x[1:500, ], k = 3, num_threads = 1)",
    "cat(said, format(stopped, digits = 15), dim(again$index), file = out)"
  ), script)
  rscript <- file.path(R.home("bin"), "Rscript")
  system2(
    rscript, c("--vanilla", shQuote(script)), wait = FALSE, stdout = FALSE,
    stderr = FALSE
  )
}

wait_for <- function(condition, seconds) {
  until <- Sys.time() + seconds
  while (!condition() && Sys.time() < until) Sys.sleep(0.02)
  condition()
}

test_that("Ctrl-C stops a call within a second, and the next call works", {
  skip_on_os("windows")
  out <- tempfile()
  pid_file <- paste0(out, ".pid")
  start_long_call(out, threads = 2)
  started <- wait_for(function() {
    file.exists(pid_file) && length(readLines(pid_file, warn = FALSE)) > 0
  }, 60)
  expect_true(started)
  pid <- scan(pid_file, integer(), quiet = TRUE)
  Sys.sleep(1.5)
  sent <- as.double(Sys.time())
  tools::pskill(pid, tools::SIGINT)
  expect_true(wait_for(function() file.exists(out) && file.size(out) > 0, 60))
  Sys.sleep(0.1)
  answer <- strsplit(readLines(out, warn = FALSE), " ")[[1]]
  expect_identical(answer[[1]], "interrupted")
  expect_lt(as.double(answer[[2]]) - sent, 1)
  expect_identical(answer[3:4], c("500", "3"))
})
