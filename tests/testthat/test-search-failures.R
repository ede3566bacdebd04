fail <- function(...) {
  fsknn:::raise_failure(list(...), call = quote(knn_search()))
}

test_that("a failure of the core is an error in words", {
  expect_messages({
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
    fail(
      failure = "cuda", device = 1L, cuda_id = 0L, bytes_asked = 2^30,
      bytes_free = 2^29, cuda_words = "", where = "", sticky = FALSE,
      held = "two_chunks"
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
    fail(failure = "backend", why = "no_such_device", device = 3L),
    "There is no CUDA device 3.", class = "fsknn_backend_error"
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

test_that("a distance beyond a double names the largest entries", {
  x <- random_matrix(30, 4)
  rownames(x) <- paste0("g", 1:30)
  x[7, 3] <- -1.6e308
  x[4, 3] <- 1.5e308
  at <- "largest magnitude is -1.6e+308 at row 7 (\"g7\"), column 3."
  expect_named <- function(code, words = at) {
    error <- expect_error(code, class = "fsknn_range_error")
    message <- gsub("\\s+", " ", conditionMessage(error))
    for (part in words) {
      expect_match(message, part, fixed = TRUE)
    }
  }
  for (backend in backends_here()) {
    for (metric in c("euclidean", "manhattan", "chebyshev")) {
      expect_named(knn_search(x, 29, metric, backend = backend))
    }
    expect_named(knn_graph(x, 29, "euclidean", backend = backend))
    expect_named(within_search(x, Inf, "euclidean", backend = backend))
    query <- unname(x[c(1, 4), ])
    expect_named(knn_query(x, query, 30, "euclidean", backend = backend), c(
      at, "`query` with the largest magnitude is 1.5e+308 at row 2, column 3.",
      "Scale `x` and `query` alike"
    ))
    y <- x
    y[1, 1] <- NA
    for (na in c("mean", "pairwise")) {
      expect_named(knn_search(y, 29, "euclidean", na = na, backend = backend))
    }
    expect_named(
      pair_histogram(x, c(0, 1), metric = "manhattan", backend = backend)
    )
  }
  expect_named(
    knn_search(t(x), 29, "euclidean", points = "columns"),
    "largest magnitude is -1.6e+308 at column 7 (\"g7\"), row 3."
  )
  expect_named(mst_knn(x[c(4, 7), ], "manhattan"),
               "largest magnitude is -1.6e+308 at row 2 (\"g7\"), column 3.")
  folder <- withr::local_tempdir()
  expect_named(knn_search(x, 29, "euclidean", checkpoint = folder))
  skip_if_not_installed("DelayedArray")
  expect_named(knn_search(DelayedArray::DelayedArray(x), 29, "euclidean"))
  expect_named(
    knn_search(
      DelayedArray::DelayedArray(x), 29, "euclidean", max_memory = 2^20
    )
  )
})
