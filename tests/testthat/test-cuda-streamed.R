# Rows that are recomputed by a wider filter, and searches with little GPU
# memory. The limits are such that the filter's rows still fit.

on_one_gpu <- function(f, ...) f(..., backend = "cuda", devices = 1)

# Makes near-duplicates that only double precision can distinguish: clusters of
# 300, which overflow a list, of 1,500, which overflow a longer one, and none.
families <- function(d, seed) {
  x <- random_matrix(30000, d, seed = seed)
  x[1:12000, ] <- x[rep_len(1:40, 12000), ]
  x[12001:15000, ] <- x[rep_len(12001:12002, 3000), ]
  x[1:15000, ] <- x[1:15000, ] *
    (1 + 1e-12 * random_matrix(15000, d, seed = seed + 1))
  x
}

test_that("rows that overflow while points come in panels are filtered again", {
  skip_if_no_cuda()
  x <- families(64, seed = 61)
  for (metric in c("pearson", "euclidean", "manhattan")) {
    expected <- on_one_gpu(knn_search, x, 10, metric)
    expect_true(knn_stats()$filtered)
    expect_false(knn_stats()$streamed)
    limit <- 110e6
    expect_identical(
      on_one_gpu(knn_search, x, 10, metric, max_device_memory = limit),
      expected,
      label = metric
    )
    stats <- knn_stats()
    expect_true(stats$streamed, label = metric)
    expect_true(stats$filtered, label = metric)
    expect_gte(stats$rows_widened, 12000)
    expect_gte(stats$rows_recomputed - stats$rows_widened, 3000)
    expect_lte(stats$bytes_device, limit)
  }
  expect_identical(
    on_one_gpu(knn_search, x, 10, "pearson"), knn_search(x, 10, backend = "cpu")
  )
  # There is too little memory for all candidates of a row, so more rows are
  # computed in double.
  expect_identical(
    on_one_gpu(knn_search, x, 10, max_device_memory = 60e6),
    on_one_gpu(knn_search, x, 10)
  )
  on_one_gpu(knn_search, x, 10, max_device_memory = 60e6)
  stats <- knn_stats()
  expect_true(stats$streamed && stats$filtered)
  expect_lt(stats$rows_widened, 12000)
  expect_lte(stats$bytes_device, 60e6)
  x[c(7, 14000, 29999), ] <- 1
  graph <- function(...) {
    on_one_gpu(knn_graph, x, 10, constant = "isolate", ...)
  }
  expect_identical(graph(max_device_memory = 110e6), graph())
})

# Returns the largest memory limit for which the filter's rows are in host
# memory.
stretches_limit <- function(x, k, metric, ...) {
  for (bytes in 60e6 * 0.9^(0:30)) {
    plan <- on_one_gpu(knn_plan, x, k, metric, max_device_memory = bytes, ...)
    if (plan$bytes_host > 0) {
      return(bytes)
    }
  }
  stop("no limit makes it so")
}

test_that("the filter's rows come from the host where they don't fit a GPU", {
  skip_if_no_cuda()
  x <- families(30, seed = 69)
  x[c(7, 14000, 29999), ] <- 1
  for (metric in c("pearson", "spearman", "euclidean", "manhattan")) {
    search <- function(...) {
      knn_search(
        x, 10, metric, constant = "isolate", backend = "cuda", ...
      )
    }
    expected <- search(devices = 1)
    expect_false(knn_stats()$streamed)
    most <- stretches_limit(x, 10, metric)
    for (devices in list(1, NULL)) {
      for (limit in most * c(1, 0.7)) {
        expect_identical(
          search(devices = devices, max_device_memory = limit), expected,
          label = paste(metric, length(devices), "GPUs, limit", limit)
        )
        stats <- knn_stats()
        expect_true(stats$streamed && stats$filtered)
        expect_gte(stats$rows_widened, 12000)
        expect_gte(stats$rows_recomputed - stats$rows_widened, 3000)
        expect_lte(stats$bytes_device, limit)
      }
    }
  }
})

test_that("so do candidates, of long lists and with correlations, too", {
  skip_if_no_cuda()
  x <- random_matrix(9000, 40, seed = 70)
  # These consecutive rows are near-duplicates, and lists of many neighbours
  # keep all the others of them.
  x[1001:2500, ] <- x[rep_len(1000, 1500), ] *
    (1 + 1e-12 * random_matrix(1500, 40, seed = 71))
  for (k in c(1, 64, 400, 1500)) {
    limit <- stretches_limit(x, k, "pearson")
    graph <- function(...) {
      knn_graph(x, k, sign = "absolute", backend = "cuda", devices = 1, ...)
    }
    expect_identical(graph(max_device_memory = limit), graph(), label = k)
    stats <- knn_stats()
    expect_false(stats$streamed)
    graph(max_device_memory = limit)
    stats <- knn_stats()
    expect_true(stats$streamed && stats$filtered, label = k)
    expect_lte(stats$bytes_device, limit)
  }
  binary <- (x > 0.5) + 0
  binary[cbind(seq_len(9000), 1:40)] <- 1
  expect_identical(
    on_one_gpu(
      knn_search, binary, 10, "sorensen",
      max_device_memory = stretches_limit(binary, 10, "sorensen")
    ),
    on_one_gpu(knn_search, binary, 10, "sorensen")
  )
  made <- metafeatures(random_matrix(150, 30, seed = 72), ops = "-")
  limit <- stretches_limit(made, 10, "pearson")
  expect_identical(
    on_one_gpu(knn_search, made, 10, max_device_memory = limit),
    on_one_gpu(knn_search, made, 10)
  )
})

test_that("a search keeps to its plan, also where rows are done again", {
  skip_if_no_cuda()
  x <- families(300, seed = 63)[1:20000, ]
  for (chunk_size in list(NULL, 64)) {
    for (metric in c("pearson", "manhattan")) {
      planned <- on_one_gpu(
        knn_plan, x, 10, metric, chunk_size = chunk_size
      )$bytes_peak
      expected <- on_one_gpu(knn_search, x, 10, metric)
      found <- on_one_gpu(
        knn_search, x, 10, metric, chunk_size = chunk_size,
        max_device_memory = planned
      )
      stats <- knn_stats()
      expect_identical(found, expected, label = metric)
      expect_false(stats$streamed)
      expect_gt(stats$rows_recomputed, 0)
      expect_lte(stats$bytes_device, planned)
    }
  }
})

test_that("queries that overflow are done again by a wider filter", {
  skip_if_no_cuda()
  x <- families(30, seed = 65)
  some <- c(1:400, 12001:12050, 20000:20100)
  query <- x[some, ] * (1 + 1e-12 * random_matrix(length(some), 30, seed = 67))
  for (metric in c("pearson", "euclidean", "chebyshev")) {
    for (k in c(1, 20, 100)) {
      answer <- function(backend) {
        knn_query(x, query, k, metric, backend = backend)
      }
      expected <- answer("cpu")
      expect_identical(answer("cuda"), expected, label = paste(metric, k))
      stats <- knn_stats()
      expect_true(stats$filtered)
      if (k == 20) expect_gte(stats$rows_widened, 400)
    }
  }
})

test_that("metafeatures that do not fit a GPU are made there, piece by piece", {
  skip_if_no_cuda()
  made <- metafeatures(random_matrix(200, 1000, seed = 71), ops = "-")
  doubles <- 8 * nrow(made) * 1000
  limit <- 120e6
  expect_lt(limit, doubles)
  plan <- knn_plan(
    made, 10, backend = "cuda", devices = 1, max_device_memory = limit
  )
  expect_true(plan$streamed && nzchar(plan$filter))
  expect_match(
    paste(format(plan), collapse = "\n"), "points made there, piece by piece"
  )
  for (metric in c("pearson", "spearman")) {
    expected <- knn_search(made, 10, metric, backend = "cpu")
    for (devices in list(1, NULL)) {
      expect_identical(
        knn_search(
          made, 10, metric, backend = "cuda", devices = devices,
          max_device_memory = limit
        ),
        expected,
        label = paste(metric, "on", if (is.null(devices)) "all GPUs" else "one")
      )
      stats <- knn_stats()
      expect_true(stats$streamed && stats$filtered)
      expect_lte(stats$bytes_device, limit)
    }
  }
})

test_that("some metafeatures among all are made on the GPU, too", {
  skip_if_no_cuda()
  made <- metafeatures(random_matrix(100, 40, seed = 73), ops = c("-", "*"))
  some <- c(9000, 17, 3000 + seq_len(400), 17)
  for (k in c(1, 30)) {
    expect_identical(
      on_one_gpu(knn_search, made, k, subset = some),
      knn_search(made, k, subset = some, backend = "cpu")
    )
  }
})
