# Nearly empty rows beside rows far from 0. A proportion of their sums is then
# beyond the floats of the GPUs' filter, which knows nothing of the pair.

# The last `tiny` rows have one value of `entry`, each in its own column while
# there are enough. The others differ by 1, or by a little relative to `level`.
near_empty <- function(num_points, num_features, level, tiny, entry = 1e-40) {
  noise <- abs(sin(seq_len(num_points * num_features)^1.5))
  x <- matrix(level + max(1, 1e-10 * level) * noise, num_points)
  rows <- num_points - tiny + seq_len(tiny)
  x[rows, ] <- 0
  x[cbind(rows, rep_len(seq_len(num_features), tiny))] <- entry
  x
}

# There is no filter for sums of larger values (?metrics).
expect_same_neighbours <- function(x, k, metric = "proportional",
                                   filtered = max(x) < 2e295) {
  found <- knn_search(x, k, metric, backend = "cuda")
  stats <- knn_stats()
  expect_identical(stats$filtered, filtered)
  expect_identical(found, knn_search(x, k, metric, backend = "cpu"))
  invisible(stats)
}

expect_same_queries <- function(x, query, k) {
  expect_identical(
    knn_query(x, query, k, "proportional", backend = "cuda"),
    knn_query(x, query, k, "proportional", backend = "cpu")
  )
}

test_that("near-empty rows have the neighbours that they have by definition", {
  x <- near_empty(400, 30, 1e10, 40)
  expected <- brute_force(x, k = 5, metric = "proportional")
  # Rows that share a column are near each other; all others are equally far.
  expect_identical(expected$index[400, 1:2], c(370L, 1L))
  for (backend in backends_here()) {
    expect_identical(
      knn_search(x, 5, "proportional", backend = backend), expected
    )
    expect_identical(
      knn_query(x, x[341:400, ], 5, "proportional", backend = backend),
      brute_force(x, x[341:400, ], 5, "proportional")
    )
  }
})

test_that("near-empty rows overflow no list of the filter", {
  skip_if_no_cuda()
  x <- near_empty(4200, 1000, 1e10, 100)
  expect_same_neighbours(x, 5)
  found <- knn_search(x, 5, "proportional", backend = "cuda")
  expect_identical(found$index[4200, ], 1:5)
  expect_identical(found$distance[4101:4200, ], matrix(1, 100, 5))
  for (level in c(1e6, 1e10, 1e40, 1e150, 1e290, 1e300)) {
    for (tiny in c(1, 40, 400)) {
      expect_same_neighbours(near_empty(4200, 64, level, tiny), 5)
    }
    x <- near_empty(4200, 64, level, 300, entry = 1e-300)
    for (metric in c("proportional", "manhattan", "chebyshev")) {
      expect_same_neighbours(x, 9, metric)
    }
    expect_same_neighbours(near_empty(4200, 64, level, 300, entry = 1e-20), 9)
  }
  for (num_features in c(1, 2, 9, 3000)) {
    expect_same_neighbours(near_empty(4200, num_features, 1e10, 300), 3)
  }
  for (k in c(1, 40, 300, 1100)) {
    expect_same_neighbours(near_empty(4200, 64, 1e10, 300), k)
  }
  # For equal rows, the spread is 0 and can't be a unit.
  x <- near_empty(4200, 24, 1e10, 300)
  x[1:3900, ] <- 1e10
  expect_same_neighbours(x, 5)
})

test_that("near-empty rows with as many features as the filter takes", {
  skip_if_no_cuda()
  x <- near_empty(4100, 32768, 1e10, 30)
  found <- knn_search(x, 3, "proportional", backend = "cuda")
  expect_true(knn_stats()$filtered)
  expect_identical(found$index[4100, ], 1:3)
  expect_identical(found$distance[4071:4100, ], matrix(1, 30, 3))
  some <- c(1:20, 4071:4072)
  expected <- knn_search(x, 3, "proportional", subset = some, backend = "cpu")
  expect_identical(found$index[some, ], expected$index)
  expect_identical(found$distance[some, ], expected$distance)
})

test_that("near-empty queries and points, and lists that are filtered again", {
  skip_if_no_cuda()
  # If lists overflow, rows are recomputed against all columns. If these
  # overflow, too, they are recomputed in double.
  for (case in list(c(4600, 1e6), c(9000, 1e10), c(4600, 1e290))) {
    n <- case[[1]]
    level <- case[[2]]
    x <- near_empty(n, 40, level, 400)
    query <- rbind(
      x[c(1:50, n - 399:0), ], near_empty(300, 40, level, 150, 1e-50)
    )
    for (k in c(3, 100)) expect_same_queries(x, query, k)
    # No point is nearly empty.
    expect_same_queries(x[seq_len(n - 400), ], query, 4)
    expect_same_neighbours(near_empty(n, 40, level, n - 1000), 4)
    stats <- expect_same_neighbours(x, 4)
    if (level > 1e6) expect_gt(stats$rows_recomputed, 0)
  }
})

test_that("near-empty rows where points do not fit the device", {
  skip_if_no_cuda()
  x <- near_empty(9000, 40, 1e10, 400)
  expected <- knn_search(x, 5, "proportional", backend = "cpu")
  plan <- knn_plan(x, 5, "proportional", backend = "cuda", devices = 1)
  for (part in c(2, 3, 5)) {
    expect_identical(
      knn_search(
        x, 5, "proportional", backend = "cuda", devices = 1,
        max_device_memory = plan$bytes_peak / part
      ),
      expected
    )
  }
  few <- c(9000, 17, 8601:8900)
  expect_identical(
    knn_search(x, 5, "proportional", subset = few, backend = "cuda"),
    knn_search(x, 5, "proportional", subset = few, backend = "cpu")
  )
})

test_that("near-empty rows with missing values have their neighbours", {
  # Squares of their differences are not normal floats in the others' unit.
  others <- 1 + abs(random_matrix(300, 20, seed = 8)) / 9
  sizes <- c(0, 1 + seq_len(299) / 600)
  for (exponent in c(-75, -70, -65, -40)) {
    nothing <- matrix(rev(sizes) * 2^exponent, 300, 20)
    x <- rbind(others, nothing, -others)
    x[1, 1] <- NA
    for (metric in c("euclidean", "manhattan")) {
      for (backend in backends_here()) {
        nn <- knn_search(x, 3, metric, na = "pairwise", backend = backend)
        # These are the neighbours of the row of zeros and of the one before it.
        expect_identical(nn$index[600, ], 599:597)
        expect_identical(nn$index[599, ], c(598L, 597L, 596L))
      }
    }
  }
})
