# Graphs and queries on a GPU without a filter. Each pair of points in a band is
# computed once, by tensor cores if the GPU has them for double.

expect_same_pairs <- function(search, label) {
  expected <- search(backend = "cpu")
  found <- rlang::with_options(
    fsknn.instruction_set = "auto/all", search(backend = "cuda")
  )
  expect_identical(found, expected, label = label)
}
on_tensor_cores <- function(x, k, ...) {
  plan <- rlang::with_options(
    fsknn.instruction_set = "auto/all",
    knn_plan(x, k, backend = "cuda", ...)
  )
  grepl("tensor cores", plan$filter)
}
# Has near, equal and opposite rows, one huge entry, and nearly empty rows.
hard_rows <- function(n, d, seed) {
  x <- random_matrix(n, d, seed = seed)
  noise <- random_matrix(100, d, seed = seed + 1)
  x[101:150, ] <- x[1:50, ] * (1 + 1e-7 * noise[1:50, ])
  x[151:200, ] <- x[1:50, ] * (1 + 1e-15 * noise[51:100, ])
  x[201:250, ] <- x[1:50, ]
  x[251:300, ] <- -x[1:50, ]
  x[301:320, ] <- 0
  x[cbind(301:320, 1:20)] <- 1e-160
  x[321, 3] <- 1e200
  x[322:330, ] <- matrix(rep_len(c(0, 1, 1, 2), 9 * d), 9, byrow = TRUE)
  x
}

test_that("products on tensor cores are the CPU's, for every k and sign", {
  skip_if_no_cuda()
  n <- 1300
  for (d in c(256, 263, 301, 520, 1100)) {
    x <- hard_rows(n, d, seed = 40)
    for (k in c(1, 20, 300, n - 1)) {
      expect_same_pairs(
        function(...) knn_search(x, k, ...), paste("d =", d, "k =", k)
      )
    }
  }
  for (sign in c("absolute", "negative")) {
    expect_same_pairs(
      function(...) knn_search(x, 100, sign = sign, ...), sign
    )
  }
  for (metric in c("spearman", "cosine", "bicor")) {
    expect_same_pairs(
      function(...) knn_search(x[-(301:320), ], 100, metric, ...), metric
    )
  }
  ties <- matrix(floor(3 * sin(seq_len(n * 300)^1.3)), n)
  expect_same_pairs(function(...) knn_search(ties, 200, "cosine", ...), "ties")
  expect_same_pairs(
    function(...) knn_graph(x, 200, ...), "edges, with correlations"
  )
})

test_that("chunks, bands, GPUs and queries change nothing", {
  skip_if_no_cuda()
  x <- hard_rows(1300, 300, seed = 44)
  query <- x[1:1100, ] + rep(sin(1:300), each = 1100)
  for (chunk_size in list(NULL, 64, 192, 500, 1300)) {
    for (metric in c("pearson", "euclidean", "manhattan", "canberra")) {
      expect_same_pairs(
        function(...) {
          knn_search(x, 130, metric, chunk_size = chunk_size, ...)
        },
        paste(metric, chunk_size %||% "automatic")
      )
    }
    expect_same_pairs(
      function(...) knn_query(x, query, 70, chunk_size = chunk_size, ...),
      paste("queries", chunk_size %||% "automatic")
    )
  }
  expect_same_pairs(
    function(...) knn_search(x, 130, subset = c(1200, 3, 40:60), ...), "subset"
  )
  x[7, ] <- 5
  expect_same_pairs(
    function(...) knn_search(x, 130, constant = "isolate", ...), "isolated"
  )
  # With less memory there are fewer splits at a time, then panels.
  peak <- rlang::with_options(
    fsknn.instruction_set = "auto/all",
    knn_plan(x[-7, ], 600, backend = "cuda", devices = 1, chunk_size = 128)
  )$bytes_peak
  # Without tensor cores for double, the minimum is higher.
  fits <- function(part) {
    plan <- try(silent = TRUE, rlang::with_options(
      fsknn.instruction_set = "auto/all",
      knn_plan(
        x[-7, ], 600, backend = "cuda", devices = 1, chunk_size = 128,
        max_device_memory = part * peak
      )
    ))
    !inherits(plan, "try-error")
  }
  parts <- Filter(fits, c(0.97, 0.9, 0.8, 0.6, 0.4))
  expect_gte(length(parts), 4)
  for (part in parts) {
    expect_same_pairs(
      function(backend) {
        knn_search(
          x[-7, ], 600, chunk_size = 128, backend = backend,
          devices = if (backend == "cuda") 1,
          max_device_memory = if (backend == "cuda") part * peak
        )
      },
      paste("memory", part)
    )
  }
})

test_that("many neighbours of long rows are found without a filter", {
  skip_if_no_cuda()
  x <- hard_rows(4300, 800, seed = 47)
  skip_if_not(on_tensor_cores(x, 5), "No GPU here has such products.")
  ask <- function(k) {
    found <- knn_search(x, k, backend = "cuda", devices = 1)
    list(found = found, filtered = knn_stats()$filtered)
  }
  expect_true(ask(10)$filtered)
  many <- ask(900)
  expect_false(many$filtered)
  expect_identical(many$found, knn_search(x, 900, backend = "cpu"))
  plan <- knn_plan(x, 900, backend = "cuda", devices = 1)
  expect_match(plan$filter, "all pairs in double")
  # A filter is still available.
  withr::local_options(fsknn.instruction_set = "auto/16")
  expect_identical(ask(900), list(found = many$found, filtered = TRUE))
})

test_that("rows that can't be compared are refused as ever", {
  skip_if_no_cuda()
  withr::local_options(fsknn.instruction_set = "auto/all")
  x <- random_matrix(1100, 260, seed = 49)
  constant <- replace(x, cbind(9, seq_len(260)), 4)
  expect_error(
    knn_search(constant, 500, backend = "cuda"), class = "fsknn_argument_error"
  )
  expect_error(knn_search(replace(x, 5, NaN), 500, backend = "cuda"))
})
