threads_with <- function(..., usable = 8L) {
  variables <- c(
    OMP_THREAD_LIMIT = "", OMP_NUM_THREADS = "", "_R_CHECK_LIMIT_CORES_" = ""
  )
  given <- c(...)
  variables[names(given)] <- given
  for (name in names(variables)) {
    local_variable(name, variables[[name]])
  }
  rlang::local_options(fsknn.num_threads = NULL)
  fsknn:::default_num_threads(usable = usable)
}

test_that("the default is what the process may use", {
  expect_identical(threads_with(), 8L)
  expect_identical(threads_with(usable = 1L), 1L)
})

test_that("OpenMP's variables limit the default", {
  expect_identical(threads_with(OMP_NUM_THREADS = "3"), 3L)
  expect_identical(threads_with(OMP_THREAD_LIMIT = "2"), 2L)
  expect_identical(
    threads_with(OMP_NUM_THREADS = "3", OMP_THREAD_LIMIT = "5"), 3L
  )
  expect_identical(threads_with(OMP_NUM_THREADS = "100"), 8L)
  # There is one number for each level of nesting.
  expect_identical(threads_with(OMP_NUM_THREADS = "4,2"), 4L)
})

test_that("what can't be read is no limit", {
  for (text in c("many", "-1", "0", "1.5", " ")) {
    expect_identical(threads_with(OMP_NUM_THREADS = text), 8L)
  }
})

test_that("R CMD check gets two", {
  expect_identical(threads_with("_R_CHECK_LIMIT_CORES_" = "TRUE"), 2L)
  expect_identical(threads_with("_R_CHECK_LIMIT_CORES_" = "warn"), 2L)
  expect_identical(threads_with("_R_CHECK_LIMIT_CORES_" = "false"), 8L)
  expect_identical(
    threads_with("_R_CHECK_LIMIT_CORES_" = "TRUE", usable = 1L), 1L
  )
})

test_that("the option limits the default and must be a whole number", {
  local_variable("_R_CHECK_LIMIT_CORES_", "")
  local_variable("OMP_THREAD_LIMIT", "")
  local_variable("OMP_NUM_THREADS", "")
  rlang::local_options(fsknn.num_threads = 3)
  expect_identical(fsknn:::default_num_threads(usable = 8L), 3L)
  rlang::local_options(fsknn.num_threads = "all")
  expect_messages(knn_search(matrix(1:6, 3), 1))
})

test_that("num_threads is taken as given", {
  local_variable("OMP_NUM_THREADS", "1")
  expect_identical(fsknn:::check_num_threads(5), 5L)
})

test_that("a search has as many threads as it is told", {
  skip_if_not(dir.exists("/proc/self/task"), "the system lists no threads")
  local_variable("OMP_THREAD_LIMIT", "")
  threads_of <- function(pid) {
    length(list.files(file.path("/proc", pid, "task")))
  }
  for (num_threads in c(1, 3)) {
    child <- start_child(c(
      "x <- matrix(sin(seq_len(5e5)), 5000)",
      "before <- length(list.files('/proc/self/task'))",
      "until <- Sys.time() + 2",
      "while (Sys.time() < until) {",
      sprintf("knn_search(x, 5, num_threads = %d, backend = 'cpu')", num_threads),
      "}",
      "say(before)"
    ))
    most <- 0
    wait_for(function() {
      most <<- max(most, threads_of(child$pid))
      file.exists(child$out)
    }, patience)
    expect_identical(most - as.double(said_by(child)), num_threads - 1)
  }
})

test_that("a forked child works after its parent has used threads", {
  skip_on_os("windows")
  x <- random_matrix(2000, 40)
  whole <- knn_search(x, k = 5, num_threads = 2, backend = "cpu")
  child <- parallel::mcparallel(
    knn_search(x, k = 5, num_threads = 2, backend = "cpu")
  )
  # The answer is NULL if the child hangs.
  answer <- parallel::mccollect(child, wait = FALSE, timeout = patience)
  if (is.null(answer)) tools::pskill(child$pid, tools::SIGKILL)
  expect_identical(unname(answer)[[1]], whole)
})

test_that("no random seed is made or changed", {
  code <- paste(
    "library(fsknn); x <- matrix(sin(1:300), 60);",
    "invisible(knn_search(x, k = 3)); cat(exists('.Random.seed'))"
  )
  libs <- paste(.libPaths(), collapse = .Platform$path.sep)
  out <- system2(
    file.path(R.home("bin"), "Rscript"), c("-e", shQuote(code)),
    stdout = TRUE, env = paste0("R_LIBS=", libs)
  )
  expect_identical(utils::tail(out, 1), "FALSE")
})
