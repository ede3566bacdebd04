# Rows of 0 and 1 on GPUs. Tensor cores count common ones, and the answer is
# that of the CPU, bit for bit.

random_bits <- function(n, d, part = 0.1, seed = 1) {
  withr::with_seed(seed, {
    x <- matrix(as.double(stats::runif(n * d) < part), n)
    x[cbind(seq_len(n), sample(d, n, replace = TRUE))] <- 1
    x
  })
}

expect_same_bits_graph <- function(x, k, metric, ...) {
  cpu <- knn_search(x, k, metric, backend = "cpu")
  expect_identical(
    knn_search(x, k, metric, backend = "cuda", ...), cpu,
    label = paste(metric, "d =", ncol(x), "k =", k)
  )
}

skip_if_no_bits <- function() {
  skip_if_no_cuda()
  usable <- knn_plan(
    c(4500, 30), k = 3, metric = "jaccard", backend = "cuda"
  )$filter
  skip_if(!grepl("bits", usable, fixed = TRUE), "No GPU here counts bits.")
}

test_that("graphs of rows of bits are the CPU's, for every width and k", {
  skip_if_no_bits()
  for (d in c(1, 5, 78, 256, 1024, 1025, 3100, 20000)) {
    x <- random_bits(4500, d, if (d > 3000) 0.02 else 0.2, seed = d)
    for (metric in c("sorensen", "jaccard")) {
      expect_same_bits_graph(x, 20, metric)
      expect_gt(knn_stats()$pairs_exact, 0)
    }
  }
  x <- random_bits(4700, 130, 0.3, seed = 2)
  for (k in c(1, 33, 300, 1100)) expect_same_bits_graph(x, k, "sorensen")
  for (chunk_size in c(1, 300, 4096)) {
    expect_same_bits_graph(x, 7, "jaccard", chunk_size = chunk_size)
  }
})

test_that("ties, copies, full rows and nearly empty ones drop no neighbour", {
  skip_if_no_bits()
  x <- random_bits(4500, 1100, 0.1, seed = 3)
  x[1001:1300, ] <- x[rep(1, 300), ]
  x[1301:1400, ] <- 1
  x[1401:1500, ] <- 0
  x[cbind(1401:1500, 1:100)] <- 1
  # These rows equal x[1, ] except in one feature each.
  x[1501:2000, ] <- x[rep(1, 500), ]
  at <- cbind(1501:2000, 1:500)
  x[at] <- 1 - x[at]
  for (metric in c("sorensen", "jaccard")) {
    for (k in c(1, 20, 400)) expect_same_bits_graph(x, k, metric)
    # All rows are equal except one.
    expect_same_bits_graph(x[c(1, rep(2, 4400)), ], 5, metric)
    expect_same_bits_graph(x[, 1:3][rowSums(x[, 1:3]) > 0, ], 3, metric)
  }
})

test_that("queries, blocks and pairs within a distance are counted by bits", {
  skip_if_no_bits()
  x <- random_bits(5000, 300, 0.15, seed = 4)
  x[4001:4200, ] <- x[1:200, ]
  queries <- rbind(random_bits(2500, 300, 0.1, seed = 5), x[1:50, ])
  block <- rep_len(1:3, nrow(x))
  found <- function(backend, metric) {
    list(
      knn_query(x, queries, 6, metric, backend = backend),
      knn_search(
        x, 6, metric, block = block, between = TRUE, backend = backend
      ),
      threshold_graph(x, 0.45, metric, backend = backend),
      threshold_graph(x, 1, metric, backend = backend),
      threshold_graph(
        x[1:4200, ], if (metric == "jaccard") 1 / 3 else 0.5, metric,
        backend = backend
      )
    )
  }
  for (metric in c("sorensen", "jaccard")) {
    expect_identical(
      found("cuda", metric), found("cpu", metric), label = metric
    )
  }
})

test_that("bits that do not fit a GPU's memory are counted as they come", {
  skip_if_no_bits()
  x <- random_bits(9000, 900, 0.1, seed = 6)
  limit <- knn_plan(
    x, 7, "sorensen", backend = "cuda", devices = 1
  )$bytes_peak / 3
  expect_same_bits_graph(
    x, 7, "sorensen", devices = 1, max_device_memory = limit
  )
})

# Makes small whole numbers with some equal rows.
small_numbers <- function(n, d, largest, seed = 1) {
  withr::with_seed(seed, {
    x <- matrix(as.double(stats::rbinom(n * d, largest, 0.2)), n)
    x[cbind(seq_len(n), sample(d, n, replace = TRUE))] <- 1
    x[2, 1] <- largest
    x[seq_len(n %/% 10) + n %/% 2, ] <- x[seq_len(n %/% 10), ]
    x
  })
}

test_that("graphs of small whole numbers are the CPU's, by bits", {
  skip_if_no_bits()
  for (case in list(c(1, 30), c(3, 6), c(33, 16), c(300, 2), c(1000, 9))) {
    x <- small_numbers(4500, case[[1]], case[[2]], seed = case[[1]])
    for (metric in c("proportional", "manhattan")) {
      expect_same_bits_graph(x, 20, metric)
      expect_identical(knn_stats()$filter_bits, 1L)
    }
  }
  x <- small_numbers(4700, 130, 2)
  for (metric in c("proportional", "manhattan")) {
    for (k in c(1, 33, 300, 1100)) expect_same_bits_graph(x, k, metric)
    expect_same_bits_graph(x[c(1, rep(3, 4400)), ], 5, metric)
    # One value is not whole, or its code would be too long.
    for (other in list(0.5, 100)) {
      expect_same_bits_graph(replace(x, 4699, other), 7, metric)
      expect_identical(knn_stats()$filter_bits, 32L)
    }
  }
  x[c(17, 400, 4600), ] <- 0
  expect_same_bits_graph(x, 9, "manhattan")
  expect_same_bits_graph(replace(x, 77, -1), 9, "manhattan")
})

test_that("queries of any numbers meet small whole numbers as on the CPU", {
  skip_if_no_bits()
  x <- small_numbers(4500, 300, 2)
  near <- small_numbers(700, 300, 2, seed = 5)
  wild <- near
  wild[3, 5] <- 0.5
  wild[7, 1] <- 1e7
  wild[8, ] <- wild[8, ] * 1e5
  wild[9, 1] <- 17
  beyond <- replace(wild, cbind(c(4, 10), c(2, 3)), c(-1, -1e300))
  queries <- list(
    proportional = list(near, wild), manhattan = list(near, wild, beyond)
  )
  for (metric in names(queries)) {
    for (query in queries[[metric]]) {
      expect_identical(
        knn_query(x, query, 6, metric, backend = "cuda"),
        knn_query(x, query, 6, metric, backend = "cpu"), label = metric
      )
    }
  }
})

test_that("pairs of small whole numbers within a distance are the CPU's", {
  skip_if_no_bits()
  x <- small_numbers(5000, 200, 2)
  distances <- function(metric) {
    knn_search(x, 20, metric, backend = "cpu")$distance
  }
  for (metric in c("manhattan", "proportional")) {
    apart <- sort(distances(metric))
    for (at in c(0, 0.2, 1)) {
      # Some pairs have exactly this distance.
      limit <- apart[[1 + at * 1e4]]
      found <- function(backend) {
        within_search(x, limit, metric, backend = backend)
      }
      expect_identical(
        found("cuda"), found("cpu"), label = paste(metric, limit)
      )
    }
  }
  expect_identical(
    threshold_graph(x, 0.4, "proportional", backend = "cuda"),
    threshold_graph(x, 0.4, "proportional", backend = "cpu")
  )
})

# Makes rows of 0 and 1, none constant: copies, nearly empty and nearly full
# rows.
hard_bits <- function(n, d, part, seed = 1) {
  x <- random_bits(n, d, part, seed)
  x[n %/% 2 + seq_len(n %/% 10), ] <- x[seq_len(n %/% 10), ]
  alike <- seq_len(300) + n %/% 4
  x[alike, ] <- x[rep(1, 300), ]
  at <- cbind(alike[1:200], 1 + 1:200 %% d)
  x[at] <- 1 - x[at]
  x[n - 0:9, ] <- 0
  x[n - 10:19, ] <- 1
  x[cbind(n - 0:9, 1 + 0:9 %% d)] <- 1
  x[cbind(n - 10:19, 1 + 0:9 %% d)] <- 0
  lone <- which(rowSums(x) == 0)
  x[lone, 1] <- 1
  lone <- which(rowSums(x) == d)
  x[lone, 2] <- 0
  x
}

test_that("graphs of 0 and 1 by other metrics are the CPU's, by bits", {
  skip_if_no_bits()
  metrics <- c(
    "euclidean", "manhattan", "proportional", "cosine", "pearson", "spearman"
  )
  cases <- list(c(70, 0.3), c(1024, 0.1), c(300, 0.9), c(1300, 0.5), c(33, 0.1))
  for (case in cases) {
    x <- hard_bits(4500, case[[1]], case[[2]], seed = case[[1]])
    for (metric in metrics) {
      expect_same_bits_graph(x, 20, metric)
      expect_identical(knn_stats()$filter_bits, 1L, label = metric)
    }
  }
  x <- hard_bits(4700, 130, 0.3, seed = 2)
  for (metric in c("euclidean", "cosine", "pearson")) {
    for (k in c(1, 33, 300, 1100)) expect_same_bits_graph(x, k, metric)
    expect_same_bits_graph(x[c(1, rep(3, 4400)), ], 5, metric)
    # There are three values, and most rows have two of them.
    expect_same_bits_graph(replace(x, 4699, 2), 7, metric)
    expect_identical(knn_stats()$filter_bits, 16L, label = metric)
  }
  # For correlations, two values in each row suffice.
  expect_same_bits_graph(x * (1 + seq_len(4700) %% 7) - 3, 9, "pearson")
  expect_identical(knn_stats()$filter_bits, 1L)
})

test_that("signs of correlations of 0 and 1 are heeded by bits", {
  skip_if_no_bits()
  x <- hard_bits(4500, 200, 0.3, seed = 8)
  x[2001:2100, ] <- 1 - x[1:100, ]
  for (metric in c("pearson", "spearman", "bicor")) {
    for (sign in c("signed", "absolute", "negative")) {
      found <- function(backend) {
        knn_graph(x, 12, metric, sign = sign, backend = backend)
      }
      expect_identical(
        found("cuda"), found("cpu"), label = paste(metric, sign)
      )
    }
  }
})

test_that("queries and pairs of 0 and 1 within a distance are the CPU's", {
  skip_if_no_bits()
  x <- hard_bits(5000, 300, 0.15, seed = 9)
  wild <- rbind(random_bits(700, 300, 0.1, seed = 5), x[1:50, ])
  wild[3, 5] <- 0.5
  wild[7, 1] <- 1e3
  wild[8, ] <- wild[8, ] * 3
  wild[9, 1] <- -1
  for (metric in c("euclidean", "cosine", "pearson")) {
    found <- function(backend) {
      list(
        knn_query(x, wild, 6, metric, backend = backend),
        knn_query(x, wild[10:750, ], 6, metric, backend = backend)
      )
    }
    expect_identical(found("cuda"), found("cpu"), label = metric)
    apart <- sort(
      knn_search(x, 20, metric, backend = "cpu")$distance
    )
    for (at in c(0, 0.2, 1)) {
      limit <- apart[[1 + at * (length(apart) - 1)]]
      within <- function(backend) {
        within_search(x, limit, metric, backend = backend)
      }
      expect_identical(
        within("cuda"), within("cpu"), label = paste(metric, limit)
      )
    }
  }
  expect_identical(
    threshold_graph(x, 0.3, "pearson", backend = "cuda"),
    threshold_graph(x, 0.3, "pearson", backend = "cpu")
  )
})

# Searches in panels of both kinds, and by group. `bits` is that of the filter.
# Returns the numbers of bits used.
expect_parts_as_cpu <- function(x, k, metric, bits = NULL, label = "") {
  seen <- integer()
  see <- function(how) {
    stats <- knn_stats()
    expect_true(stats$filtered)
    if (!is.null(bits)) {
      expect_identical(
        stats$filter_bits, bits, label = paste(metric, label, how)
      )
    }
    stats
  }
  expected <- knn_search(x, k, metric, backend = "cpu")
  limits <- limits_for_panels(x, k, metric)
  expect_true("stretches" %in% names(limits))
  for (way in names(limits)) {
    for (devices in gpus_to_try()) {
      expect_identical(
        knn_search(
          x, k, metric, backend = "cuda", devices = devices,
          max_device_memory = limits[[way]]
        ),
        expected, label = paste(metric, label, way)
      )
      stats <- see(way)
      seen <- c(seen, stats$filter_bits)
      expect_true(stats$streamed)
      expect_lte(stats$bytes_device, limits[[way]])
    }
  }
  # Points of a block are consecutive, as a user's points may be.
  block <- rep(1:3, c(nrow(x) - 2000, 1500, 500))
  for (between in list(FALSE, TRUE, "together")) {
    found <- function(backend, devices = NULL) {
      knn_search(
        x, k, metric, block = block, between = between, backend = backend,
        devices = devices
      )
    }
    expected <- found("cpu")
    expect_identical(
      found("cuda"), expected, label = paste(metric, label, between)
    )
    # GPUs can't share one list for all groups. Several GPUs therefore search
    # the groups as queries, for which rows of length 1 are not stored in bits.
    if (between == "together") {
      expect_identical(found("cuda", devices = 1), expected)
    }
    seen <- c(seen, see(between)$filter_bits)
  }
  seen
}

test_that("small whole numbers are bits in panels and by group", {
  skip_if_no_bits()
  x <- small_numbers(9000, 150, 2)
  x[c(17, 400, 8600), ] <- 0
  x[8900:8990, ] <- 2
  for (metric in c("manhattan", "proportional")) {
    points <- if (metric == "manhattan") x else x[rowSums(x) > 0, ]
    for (k in c(1, 9, 70)) {
      expect_parts_as_cpu(points, k, metric, 1L)
    }
    # One value is not whole or too large, so wider numbers are used.
    for (other in c(0.5, 100)) {
      expect_parts_as_cpu(
        replace(points, cbind(8800, 3), other), 9, metric, 32L, other
      )
    }
    # One value is larger than any in the sample, which may not include its row.
    seen <- unlist(lapply(c(100, 5000, 8800), function(row) {
      expect_parts_as_cpu(
        replace(points, cbind(row, 3), 4), 9, metric, label = row
      )
    }))
    expect_true(32L %in% seen)
  }
})

test_that("rows of 0 and 1 are bits in panels and by group", {
  skip_if_no_bits()
  x <- hard_bits(9000, 300, 0.2, seed = 12)
  metrics <- c(
    "euclidean", "manhattan", "proportional", "cosine", "pearson", "spearman",
    "sorensen", "jaccard"
  )
  for (metric in metrics) {
    expect_parts_as_cpu(x, 8, metric, 1L)
  }
  # One row has three values, and the sample is unlikely to include it.
  for (metric in c("euclidean", "pearson")) {
    expect_parts_as_cpu(
      replace(x, cbind(8800, 3), 2), 8, metric, 16L, "other"
    )
  }
})
