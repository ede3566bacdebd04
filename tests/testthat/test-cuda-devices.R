# The answer is the same, bit for bit, for any division of the work among GPUs
# and in their memory.

# Returns sets of 1, 2 and 4 GPUs, as far as they exist.
device_sets <- function() {
  lapply(
    Filter(function(count) count <= nrow(gpus_here()), c(1, 2, 4)), seq_len
  )
}

for_decompositions <- function(x, k, metric, sign = "signed", limits, work) {
  for (devices in device_sets()) {
    for (chunk_size in list(NULL, 64, 1000, 4096)) {
      for (limit in limits) {
        work(devices, chunk_size, limit, label = paste(
          metric, sign, "k =", k, "devices", length(devices), "chunk",
          chunk_size %||% "automatic", "limit", limit
        ))
      }
    }
  }
}

test_that("chunks, GPUs and their memory do not change a graph", {
  skip_if_no_cuda()
  x <- random_matrix(6000, 30, seed = 41)
  x[5001:5100, ] <- x[1:100, ]
  for (metric in c("pearson", "euclidean", "manhattan", "proportional")) {
    x <- values_for(x, metric)
    expected <- knn_search(x, 10, metric, backend = "cpu")
    # The last limit is for the float64 pass by panels.
    for_decompositions(
      x, 10, metric, limits = list(NULL, 60e6, 32e6),
      work = function(devices, chunk_size, limit, label) {
        found <- knn_search(
          x, 10, metric, backend = "cuda", devices = devices,
          chunk_size = chunk_size, max_device_memory = limit
        )
        expect_identical(found, expected, label = label)
        expect_lte(knn_stats()$num_devices, length(devices))
        expect_lte(knn_stats()$bytes_device, limit %||% Inf)
      }
    )
  }
})

test_that("points left out, correlations and queries are the same from panels", {
  skip_if_no_cuda()
  x <- random_matrix(5000, 12, seed = 42)
  x[c(1, 77, 300, 5000), ] <- 3
  query <- rbind(random_matrix(1500, 12, seed = 43), x[1:10, ])
  for (devices in device_sets()) {
    for (limit in list(NULL, 70e6)) {
      graph <- function(backend, ...) {
        knn_graph(x, 7, constant = "isolate", backend = backend, ...)
      }
      expect_identical(
        graph("cuda", devices = devices, max_device_memory = limit),
        graph("cpu")
      )
      answer <- function(backend, ...) {
        knn_query(
          x, query, 7, "spearman", "absolute", constant = "isolate",
          backend = backend, ...
        )
      }
      expect_identical(
        answer("cuda", devices = devices, max_device_memory = limit),
        answer("cpu")
      )
    }
  }
})

test_that("rows that overflow are settled by longer lists, the rest in doubles", {
  skip_if_no_cuda()
  # 700 near-duplicates are too many for a list, but not for a longer one.
  x <- random_matrix(9000, 20, seed = 44)
  noise <- random_matrix(700, 20, seed = 45)
  x[round(seq(1, 9000, length.out = 700)), ] <-
    x[rep(5, 700), ] * (1 + 1e-7 * noise)
  expected <- knn_search(x, 10, backend = "cpu")
  for (devices in device_sets()) {
    expect_identical(
      knn_search(x, 10, backend = "cuda", devices = devices, chunk_size = 1000),
      expected
    )
    stats <- knn_stats()
    skip_if(!stats$filtered, "No GPU here has the filter.")
    expect_gte(stats$rows_recomputed, 700)
    expect_identical(stats$rows_widened, stats$rows_recomputed)
  }
  # 6,000 are too many for longer lists, too.
  x[seq_len(6000), ] <- x[rep(5, 6000), ] *
    (1 + 1e-7 * random_matrix(6000, 20, seed = 46))
  expected <- knn_search(x, 10, backend = "cpu")
  for (devices in device_sets()) {
    expect_identical(
      knn_search(x, 10, backend = "cuda", devices = devices, chunk_size = 1000),
      expected
    )
    expect_lt(knn_stats()$rows_widened, knn_stats()$rows_recomputed)
  }
})

test_that("a filtered graph whose doubles do not fit is the same", {
  skip_if_no_cuda()
  x <- random_matrix(30000, 200, seed = 48)
  # Some rows overflow lists, and others are left out.
  x[101:400, ] <- x[rep(5, 300), ] * (1 + 1e-7 * x[101:400, ])
  x[c(1, 20000), ] <- 2
  graph <- function(backend, metric, ...) {
    knn_graph(x, 15, metric, constant = "isolate", backend = backend, ...)
  }
  for (metric in c("pearson", "euclidean")) {
    expected <- graph("cpu", metric)
    for (devices in device_sets()) {
      for (limit in c(60e6, 80e6)) {
        expect_identical(
          graph(
            "cuda", metric, devices = devices, max_device_memory = limit,
            chunk_size = 4096
          ),
          expected,
          label = paste(metric, length(devices), "devices, limit", limit)
        )
        stats <- knn_stats()
        expect_lte(stats$bytes_device, limit)
        expect_true(stats$streamed)
        expect_identical(stats$num_devices, length(devices))
      }
    }
  }
  skip_if(!stats$filtered, "No GPU here has the filter.")
  expect_gte(stats$rows_recomputed, 300)
})

test_that("GPUs that can't read each other's memory copy it", {
  skip_if_no_cuda()
  skip_if(nrow(gpus_here()) < 2, "There is one GPU.")
  x <- random_matrix(9000, 30, seed = 49)
  expected <- knn_search(x, 10, backend = "cpu")
  for (nth in 1:2) {
    found <- with_fault(
      knn_search(x, 10, backend = "cuda", devices = 1:2, chunk_size = 1000),
      "invalid_value", "cudaDeviceEnablePeerAccess", nth
    )
    expect_identical(found$value, expected)
    expect_true(found$fired)
  }
})

test_that("a limit that two chunks do not fit is an error with its facts", {
  skip_if_no_cuda()
  x <- random_matrix(3000, 30, seed = 47)
  error <- expect_error(
    knn_search(x, 5, backend = "cuda", max_device_memory = 1e5),
    class = "fsknn_cuda_error"
  )
  expect_gt(error$bytes_asked, 1e5)
  expect_identical(error$bytes_free, 1e5)
  expect_identical(
    knn_search(x, 5, backend = "cuda"), knn_search(x, 5, backend = "cpu")
  )
})
