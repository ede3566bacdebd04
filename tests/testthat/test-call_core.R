fail <- function(...) {
  fsknn:::raise_failure(list(...), call = quote(knn_search()))
}

test_that("a failure of the core is an error in words", {
  expect_snapshot(error = TRUE, {
    fail(failure = "range", message = "")
    fail(failure = "memory", message = "", bytes_asked = 2^35)
    fail(failure = "memory", message = "", bytes_asked = NA_real_)
    fail(
      failure = "cuda", device = 2L, cuda_id = 3L, bytes_asked = 3 * 2^30,
      bytes_free = 2^29, cuda_words = "out of memory", where = "cudaMalloc",
      sticky = FALSE
    )
    fail(
      failure = "cuda", device = 1L, cuda_id = 0L, bytes_asked = NA_real_,
      bytes_free = NA_real_, cuda_words = "invalid argument",
      where = "cudaMemcpyAsync(to, from), cuda/copy.cu:1", sticky = FALSE
    )
    fail(
      failure = "cuda", device = NA_integer_, cuda_id = 4L,
      bytes_asked = NA_real_, bytes_free = NA_real_,
      cuda_words = "unspecified launch failure",
      where = "cudaStreamSynchronize(stream_), cuda/stream.cu:2", sticky = TRUE
    )
    fail(failure = "internal", message = "a {brace} and what went wrong")
  })
})

test_that("each kind has its class, and CUDA's has its facts", {
  expect_error(fail(failure = "range"), class = "fsknn_range_error")
  expect_error(
    fail(failure = "memory", bytes_asked = 1), class = "fsknn_memory_error"
  )
  expect_error(
    fail(failure = "backend", reason = "gone"), class = "fsknn_backend_error"
  )
  error <- expect_error(
    fail(
      failure = "cuda", device = 2L, cuda_id = 5L, bytes_asked = 100,
      bytes_free = 50, cuda_words = "out of memory", where = "cudaMalloc",
      sticky = FALSE
    ),
    class = "fsknn_cuda_error"
  )
  expect_s3_class(error, "fsknn_error")
  expect_identical(error$device, 2L)
  expect_identical(error$cuda_id, 5L)
  expect_identical(error$bytes_asked, 100)
  expect_identical(error$bytes_free, 50)
  expect_identical(error$cuda_words, "out of memory")
  expect_identical(error$where, "cudaMalloc")
  expect_false(error$sticky)
})

test_that("an interrupt is an interrupt, not an error", {
  seen <- tryCatch(
    fail(failure = "interrupt"),
    error = function(cnd) "error",
    interrupt = function(cnd) "interrupt"
  )
  expect_identical(seen, "interrupt")
})

test_that("bytes are told in binary units", {
  expect_identical(
    fsknn:::format_bytes(c(0, 512, 2^10, 1.5 * 2^20, 200 * 2^30, 2^41)),
    c("0 B", "512 B", "1.0 KiB", "1.5 MiB", "200 GiB", "2.0 TiB")
  )
})

test_that("the request has exactly the fields that the core reads", {
  options <- fsknn:::check_options(
    "spearman", "absolute", "error", "cpu", NULL, 2, 48, FALSE, FALSE
  )
  request <- fsknn:::new_request(3L, options, skip = 4L)
  expect_identical(request, list(
    k = 3L, metric = "spearman", sign = "absolute", skip = 4L,
    query_skip = integer(), backend = "cpu", devices = integer(),
    num_threads = 2L, chunk_size = 48L, max_device_memory = 0,
    max_memory = 0, bytes_file = 0, weights = NULL, rows_made = FALSE,
    correlation = FALSE, as_edges = FALSE, largest = -1, na = "error",
    min_pairs = 3L, subset = NULL, progress = FALSE, instruction_set = "auto"
  ))
})

test_that("a progress bar is drawn only where someone watches", {
  rlang::local_interactive(FALSE)
  expect_false(fsknn:::check_progress(NULL))
  rlang::local_interactive(TRUE)
  expect_true(fsknn:::check_progress(NULL))
  expect_false(fsknn:::check_progress(FALSE))
})

test_that("the scan finds what checks ask for", {
  x <- rbind(c(1, 2, -3), c(0, 0, 0), c(5, 5, 5), c(NA, -Inf, 1))
  scan <- fsknn:::cpp_scan(x, 1L)
  expect_equal(scan$non_finite, 2)
  expect_equal(scan$non_finite_at, rbind(c(4, 1), c(4, 2)))
  expect_identical(scan$zero, 2L)
  expect_identical(scan$constant, 2:3)
  expect_equal(scan$negative_at[1, ], c(1, 3))
})
