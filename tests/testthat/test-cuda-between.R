# Pairs of two blocks on a GPU: the answer is that of the CPU, bit for bit, with
# the same limits.

search_on <- function(backend, x, k, ...) {
  options <- fsknn:::check_options(list(
    ...,
    backend = backend, devices = if (backend == "cuda") 1, num_threads = 2
  ))
  fsknn:::new_search(x, options, k = k)
}

between_on <- function(backend, x, k, a, b, limits = NULL, ...) {
  search <- search_on(backend, x, k, ...)
  found <- fsknn:::in_core(fsknn:::ask_between(
    search$points$values, a, b, search$request, limits
  ))
  found
}

expect_as_on_cpu <- function(x, k, a, b, limits = NULL, ..., label = NULL) {
  parts <- c("count", "index", "distance", "correlation")
  expected <- between_on("cpu", x, k, a, b, limits, ...)
  found <- between_on("cuda", x, k, a, b, limits, ...)
  expect_identical(found[parts], expected[parts], label = label)
  invisible(found)
}

a <- c(101, 700)
b <- c(701, 1500)

# Returns the limits of the points in both blocks, from a partial graph.
limits_for <- function(x, k, metric, sign = "signed") {
  all <- knn_search(x[1:900, ], k, metric, sign, backend = "cpu")
  limits <- rep(Inf, 1400)
  limits[1:800] <- all$distance[101:900, k]
  limits
}

test_that("GPUs find between two blocks what the CPU finds", {
  skip_if_no_cuda()
  for_all_metrics(function(metric, sign, backend) {
    if (backend != "cuda") {
      return()
    }
    x <- values_for(random_matrix(1500, 37, seed = 5), metric)
    label <- paste(metric, sign)
    found <- expect_as_on_cpu(
      x, 7, a, b,
      metric = metric, sign = sign, constant = "isolate", label = label
    )
    if (has_filter(metric)) {
      expect_true(found$stats$filtered, label = label)
      # Each pair is filtered once.
      expect_lte(found$stats$pairs_filtered, 600 * 800)
    }
    # With limits, some points get no pairs.
    limits <- limits_for(x, 7, metric, sign)
    expect_as_on_cpu(
      x, 7, a, b, limits,
      metric = metric, sign = sign, constant = "isolate", label = label
    )
    limits[5:20] <- -Inf
    expect_as_on_cpu(
      x, 7, a, b, limits,
      metric = metric, sign = sign, constant = "isolate", label = label
    )
    # A block is searched with itself, and the larger block comes first.
    expect_as_on_cpu(
      x, 7, b, NULL,
      metric = metric, sign = sign, constant = "isolate", label = label
    )
    expect_as_on_cpu(
      x, 7, c(1, 900), c(1201, 1500),
      metric = metric, sign = sign, constant = "isolate", label = label
    )
  })
})

test_that("lists of two blocks on GPUs are of any length", {
  skip_if_no_cuda()
  x <- random_matrix(1500, 21, seed = 6)
  for (metric in c("pearson", "euclidean", "manhattan")) {
    for (k in c(1, 40, 300, 790, 1499)) {
      expect_as_on_cpu(x, k, a, b, metric = metric, label = paste(metric, k))
    }
    # Few points, or one, are searched without a filter.
    expect_as_on_cpu(x, 9, c(1, 90), c(91, 1500), metric = metric)
    expect_as_on_cpu(x, 9, c(1, 1), c(1500, 1500), metric = metric)
    expect_as_on_cpu(x, 9, c(1, 1), NULL, metric = metric)
    expect_as_on_cpu(x, 9, c(1, 2), NULL, metric = metric)
  }
})

test_that("ties, equal rows and rows left out come out alike on GPUs", {
  skip_if_no_cuda()
  ties <- matrix(as.double(round(2 * random_matrix(1500, 6, seed = 7))), 1500)
  equal <- random_matrix(1500, 30, seed = 8)
  equal[200:1400, ] <- equal[rep_len(1:3, 1201), ]
  left_out <- random_matrix(1500, 30, seed = 9)
  left_out[c(101, 350:420, 701, 1500), ] <- 3
  huge <- replace(random_matrix(1500, 12, seed = 10), c(150, 3000), 1e200)
  for (x in list(ties, equal, left_out, huge)) {
    for (metric in c("pearson", "euclidean", "chebyshev", "inner_product")) {
      x <- values_for(x, metric)
      found <- expect_as_on_cpu(
        x, 10, a, b,
        metric = metric, constant = "isolate", label = metric
      )
      # With limits equal to the distances, no pair is lost.
      limits <- rep(Inf, 1400)
      first <- cumsum(found$count) - found$count
      full <- found$count == 10
      limits[full] <- found$distance[first[full] + 10]
      again <- expect_as_on_cpu(
        x, 10, a, b, limits,
        metric = metric, constant = "isolate", label = metric
      )
      expect_identical(again$distance, found$distance)
      expect_identical(again$index, found$index)
    }
  }
})

test_that("blocks of points that are far apart are filtered alike", {
  skip_if_no_cuda()
  x <- random_matrix(1500, 30, seed = 13)
  for (apart in c(3, 1e3)) {
    y <- x
    y[701:1500, ] <- apart * (y[701:1500, ] + 1)
    for (metric in c("euclidean", "manhattan", "inner_product")) {
      expect_as_on_cpu(y, 10, a, b, metric = metric, label = metric)
    }
  }
})

test_that("rows that a GPU makes meet in blocks", {
  skip_if_no_cuda()
  x <- latent_rows(1500, 50, factors = 5, noise = 0.4, seed = 3)
  for (metric in c("pearson", "spearman", "euclidean")) {
    expect_as_on_cpu(x, 8, a, b, metric = metric, label = metric)
  }
  expect_as_on_cpu(
    x, 8, a, b,
    weights = rep_len(1:3, 50), label = "weights"
  )
  expect_as_on_cpu(x, 8, a, b, adjust = cos(1:50), label = "adjust")
})

test_that("blocks that a GPU has no room for are searched piece by piece", {
  skip_if_no_cuda()
  x <- random_matrix(9000, 300, seed = 11)
  parts <- c("count", "index", "distance", "correlation")
  expected <- between_on("cpu", x, 5, c(1, 4500), c(4501, 9000))
  # The points of each side are queries for the other: without a filter, and
  # with one (test_cuda_blocks.cpp has these plans).
  for (limit in c(60e6, 100e6)) {
    found <- between_on(
      "cuda", x, 5, c(1, 4500), c(4501, 9000),
      max_device_memory = limit
    )
    expect_identical(found[parts], expected[parts])
    expect_identical(found$stats$filtered, limit > 80e6)
    expect_lte(found$stats$bytes_device, limit)
  }
})

test_that("a whole search by blocks on a GPU is the search", {
  skip_if_no_cuda()
  # Three blocks are searched in pairs; one block would hold all points.
  withr::local_options(fsknn.split_size = 600)
  x <- random_matrix(1700, 40, seed = 12)
  for (metric in c("pearson", "euclidean", "proportional")) {
    values <- values_for(x, metric)
    whole <- knn_search(values, 9, metric, backend = "cpu")
    folder <- tempfile()
    found <- knn_search(
      values, 9, metric,
      backend = "cuda", devices = 1, checkpoint = folder
    )
    unlink(folder, recursive = TRUE)
    expect_identical(found$index, whole$index, label = metric)
    expect_identical(found$distance, whole$distance, label = metric)
    # There is one limit for all, then one for each point.
    for (limit in list(whole$distance[[5, 4]], whole$distance[, 4])) {
      folder <- tempfile()
      expect_identical(
        within_search(
          values, limit, metric,
          backend = "cuda", devices = 1, checkpoint = folder
        ),
        within_search(values, limit, metric, backend = "cpu"),
        label = metric
      )
      unlink(folder, recursive = TRUE)
    }
  }
})
