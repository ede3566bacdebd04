lazy_matrix <- function(n = 130, d = 7) {
  skip_if_not_installed("DelayedArray")
  DelayedArray::DelayedArray(random_matrix(n, d))
}

test_that("a temporary file has no name, and is gone after the call", {
  x <- lazy_matrix()
  folder <- withr::local_tempdir()
  withr::local_options(fsknn.temporary_folder = folder)
  knn_search(x, 3, backend = "cpu", max_memory = 1e3)
  expect_identical(list.files(folder, all.files = TRUE, no.. = TRUE), character())
  expect_identical(open_row_files(), character())
  # k is checked again when the isolated points are known.
  flat <- random_matrix(130, 7)
  flat[1:100, ] <- 1
  expect_wrong(
    knn_search(
      DelayedArray::DelayedArray(flat), 60, backend = "cpu", max_memory = 1e3,
      constant = "isolate"
    )
  )
  expect_identical(open_row_files(), character())
})

test_that("a temporary file is gone after an interrupt while rows are read", {
  skip_if_not_installed("DelayedArray")
  seen <- 0L
  here <- environment()
  methods::setClass("StoppingSeed", slots = c(x = "matrix"), where = here)
  withr::defer(methods::removeClass("StoppingSeed", where = here))
  methods::setMethod("dim", "StoppingSeed", function(x) dim(x@x), where = here)
  withr::defer(methods::removeMethod("dim", "StoppingSeed", where = here))
  generic <- DelayedArray::extract_array
  methods::setMethod(generic, "StoppingSeed", function(x, index) {
    # Only the type is requested, not values.
    if (identical(lengths(index), c(0L, 0L)) && !is.null(index[[1]])) {
      return(matrix(0, 0, 0))
    }
    seen <<- length(open_row_files())
    rlang::interrupt()
  }, where = here)
  withr::defer(methods::removeMethod(generic, "StoppingSeed", where = here))
  x <- DelayedArray::DelayedArray(
    methods::new("StoppingSeed", x = random_matrix(130, 7))
  )
  stopped <- tryCatch(
    knn_search(x, 3, backend = "cpu", max_memory = 1e3),
    interrupt = function(cnd) "stopped"
  )
  expect_identical(stopped, "stopped")
  expect_identical(seen, 1L)
  expect_identical(open_row_files(), character())
})

test_that("too little room is said before anything is read", {
  x <- lazy_matrix()
  skip_on_os(c("mac", "windows", "solaris"))
  withr::local_options(fsknn.temporary_folder = "/proc") # cannot hold files
  expect_messages(knn_search(x, 3, max_memory = 1e3))
  err <- rlang::catch_cnd(knn_search(x, 3, max_memory = 1e3))
  expect_s3_class(err, "fsknn_disk_error")
  expect_identical(err$bytes_asked, 130 * 7 * 8)
  withr::local_options(fsknn.temporary_folder = "nowhere")
  expect_messages(knn_search(x, 3, max_memory = 1e3))
})

test_that("columns come in strips where chunks are tall", {
  x <- random_matrix(1500, 12, seed = 3)
  x[7, ] <- 0
  options <- list(
    metric = fsknn:::metric_facts("spearman"), sign = "signed",
    num_threads = 2L, chunk_size = 0L,
    backend = list(name = "cpu", devices = integer())
  )
  request <- fsknn:::new_request(1L, options)
  file <- fsknn:::cpp_row_file(tempdir(), 1500, 12, 5, request, FALSE)
  for (strip in 1:3) {
    columns <- (strip - 1) * 5 + seq_len(c(5, 5, 2)[[strip]])
    for (first in c(1, 701)) {
      rows <- seq(first, min(first + 699, 1500))
      expect_null(fsknn:::cpp_row_file_add(file, strip, first, x[rows, columns]))
      if (first == 701) {
        fsknn:::cpp_row_file_add(file, strip, 1401, x[1401:1500, columns])
      }
    }
  }
  expect_identical(fsknn:::cpp_row_file_finish(file), fsknn:::cpp_scan(x, 1L))
  request$skip <- 7L
  found <- fsknn:::cpp_knn_search(
    structure(list(file = file, size = c(1500L, 12L)), class = "row_file"), NULL,
    utils::modifyList(request, list(k = 4L, max_memory = 2e5))
  )
  fsknn:::cpp_row_file_close(file)
  expect_same_bits(
    as_neighbours(found[c("index", "distance")]),
    brute_force(x, k = 4, metric = "spearman", skip = 7L)
  )
})

test_that("a plan tells of the file and the blocks", {
  x <- lazy_matrix(2000, 60)
  plan <- knn_plan(x, 5, backend = "cpu", num_threads = 2, max_memory = "500 KB")
  expect_identical(plan$bytes_file, 8 * 2000 * 60)
  expect_lte(plan$bytes_prepared + plan$bytes_filter, 5e5)
  lines <- format(plan)
  expect_match(lines, "Temporary file: .*938 KiB in ", all = FALSE)
  expect_match(lines, "Blocks of points: .*two in memory", all = FALSE)
  fits <- knn_plan(x, 5, backend = "cpu", max_memory = "2 MB")
  expect_identical(fits$bytes_file, 0)
  expect_no_match(format(fits), "Temporary file|Blocks of points")
})

test_that("an open file in a folder of such a name is no temporary file", {
  # The folder is named like a clone and contains the tests' own output.
  folder <- withr::local_tempdir(pattern = "fsknn-clone-")
  log <- file(file.path(folder, "log"), "w")
  withr::defer(close(log))
  expect_identical(open_row_files(), character())
})
