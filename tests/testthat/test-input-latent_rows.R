# Rows of latent factors, which are not stored. They are computed independently
# here, from the text of R/input-latent_rows.R and src/core/rows/latent.hpp.
# Numbers of 64 bits are in four parts of 16 bits, lowest first.

limbs <- function(...) {
  do.call(cbind, lapply(list(...), as.double))
}

carry <- function(x) {
  for (l in 1:4) {
    if (l < 4) x[, l + 1] <- x[, l + 1] + x[, l] %/% 65536
    x[, l] <- x[, l] %% 65536
  }
  x
}

add_64 <- function(a, b) {
  carry(sweep_rows(a, b, `+`))
}

sweep_rows <- function(a, b, f) {
  rows <- max(nrow(a), nrow(b))
  f(a[rep_len(seq_len(nrow(a)), rows), , drop = FALSE],
    b[rep_len(seq_len(nrow(b)), rows), , drop = FALSE])
}

times_64 <- function(a, b) {
  rows <- max(nrow(a), nrow(b))
  out <- matrix(0, rows, 4)
  for (i in 1:4) {
    for (j in seq_len(5 - i)) {
      part <- matrix(0, rows, 4)
      part[, i + j - 1] <- a[, i] * b[, j]
      out <- carry(out + part)
    }
  }
  out
}

xor_64 <- function(a, b) {
  matrix(as.double(bitwXor(as.integer(a), as.integer(b))), ncol = 4)
}

# The shift must be 16 < bits < 32.
right_64 <- function(x, bits) {
  high <- cbind(x[, -1, drop = FALSE], 0)
  higher <- cbind(high[, -1, drop = FALSE], 0)
  more <- bits - 16
  high %/% 2^more + (higher %% 2^more) * 2^(16 - more)
}

golden <- limbs(0x7c15, 0x7f4a, 0x79b9, 0x9e37)

mixed_number <- function(seed, counter) {
  counter <- counter + 1
  counter <- limbs(
    counter %% 65536, counter %/% 65536 %% 65536, counter %/% 2^32, 0
  )
  z <- add_64(seed, times_64(counter, golden))
  z <- times_64(
    xor_64(z, right_64(z, 30)), limbs(0xe5b9, 0x1ce4, 0x476d, 0xbf58)
  )
  z <- times_64(
    xor_64(z, right_64(z, 27)), limbs(0x11eb, 0x1331, 0x49bb, 0x94d0)
  )
  xor_64(z, right_64(z, 31))
}

test_that("the numbers are those of SplitMix64", {
  # These are the first numbers of seed 1234567, as its author prints them:
  # 6457827717110365317, 3203168211198807973.
  hex <- function(x) {
    paste(sprintf("%04x", as.integer(rev(x))), collapse = "")
  }
  found <- mixed_number(limbs(1234567 %% 65536, 1234567 %/% 65536, 0, 0), 0:1)
  expect_identical(hex(found[1, ]), "599ed017fb08fc85")
  expect_identical(hex(found[2, ]), "2c73f08458540fa5")
})

# Computes the rows as described, by sums of whole numbers that are exact in
# double.
written_out <- function(n, d, factors, noise, seed) {
  key <- function(which) mixed_number(limbs(seed, 0, 0, 0), which)
  near_normal <- function(which, counter) {
    rowSums(mixed_number(key(which), counter)) - 131070
  }
  scores <- matrix(near_normal(0, seq_len(n * factors) - 1), n, byrow = TRUE)
  loadings <- matrix(
    near_normal(1, seq_len(factors * d) - 1), factors,
    byrow = TRUE
  )
  own <- matrix(near_normal(2, seq_len(n * d) - 1), n, byrow = TRUE)
  multiplier <- round(noise * sqrt(factors) * sqrt((2^32 - 1) / 3))
  sums <- matrix(0, n, d)
  for (j in seq_len(factors)) {
    sums <- sums + outer(scores[, j], loadings[j, ])
  }
  (sums + multiplier * own) / 2^32
}

test_that("rows have the bits of the rows written out in R", {
  for (shape in list(c(1, 1, 1), c(7, 13, 3), c(9, 2100, 17), c(3, 9, 256))) {
    for (noise in c(0, 0.5, 20)) {
      x <- latent_rows(shape[[1]], shape[[2]], shape[[3]], noise, seed = 5)
      expect_identical(
        as.matrix(x),
        written_out(shape[[1]], shape[[2]], shape[[3]], noise, 5)
      )
    }
  }
  x <- latent_rows(30, 20, seed = 2)
  expect_identical(dim(x), c(30L, 20L))
  all <- as.matrix(x)
  expect_identical(x[c(29, 3, 3), ], all[c(29, 3, 3), ])
  expect_identical(x[-(1:5), 2:4], all[-(1:5), 2:4])
  at <- cbind(c(9, 9, 30), c(1, 2, 20))
  expect_identical(x[at], all[at])
  expect_false(identical(as.matrix(latent_rows(30, 20, seed = 3)), all))
  # Rows do not depend on the other requested rows.
  expect_identical(latent_rows(2e9, 20, seed = 2)[1:30, ], all)
  expect_length(latent_rows(2e9, 20, seed = 2)[2e9, ], 20)
})

test_that("few factors explain what noise leaves of them", {
  x <- as.matrix(latent_rows(400, 300, factors = 5, noise = 0.5))
  variance <- svd(x)$d^2
  # The ratio is 1 to 0.25, plus the noise in those directions.
  expect_gt(sum(variance[1:5]) / sum(variance), 0.75)
  expect_lt(sum(variance[1:5]) / sum(variance), 0.9)
  expect_lt(variance[[6]] / variance[[5]], 0.1)
})

test_that("searches find the neighbours of the same rows held", {
  x <- latent_rows(600, 23, factors = 4, seed = 8)
  held <- as.matrix(x)
  for_all_metrics(function(metric, sign, backend) {
    facts <- fsknn:::metric_facts(metric)
    if (facts$levels > 0 || facts$non_negative) {
      return()
    }
    expect_identical(
      knn_search(x, 5, metric, sign, backend = backend),
      knn_search(held, 5, metric, sign, backend = backend),
      label = paste(metric, sign, backend)
    )
    expect_same_bits(
      knn_search(x, 2, metric, sign, backend = backend),
      brute_force(held, k = 2, metric = metric, sign = sign)
    )
    some <- c(101, 3, 600)
    expect_identical(
      knn_query(x, x[some, ], 4, metric, sign, backend = backend),
      knn_query(held, held[some, ], 4, metric, sign, backend = backend)
    )
    expect_identical(
      knn_search(x, 3, metric, sign, subset = some, backend = backend),
      knn_search(held, 3, metric, sign, subset = some, backend = backend)
    )
  })
  expect_identical(
    knn_graph(x, 3, weights = rep(c(1, 2), length.out = 23)),
    knn_graph(held, 3, weights = rep(c(1, 2), length.out = 23))
  )
  expect_identical(
    within_search(x, 0.3, backend = "cpu"),
    within_search(held, 0.3, backend = "cpu")
  )
})

test_that("devices prepare the rows that the CPU prepares", {
  skip_if_no_cuda()
  x <- latent_rows(700, 301, factors = 7, noise = 0.3, seed = 4)
  for (metric in c("pearson", "spearman", "euclidean", "manhattan")) {
    prepared <- function(backend, ids) {
      options <- list(
        metric = list(name = metric), sign = "signed", num_threads = 2L,
        chunk_size = 0L, backend = list(name = backend, devices = integer())
      )
      fsknn:::cpp_prepared(x, ids, fsknn:::new_request(1L, options))
    }
    for (ids in list(NULL, c(5L, 700L, 1L, 1L))) {
      expect_identical(
        prepared("cuda", ids), prepared("cpu", ids), label = metric
      )
    }
  }
})

test_that("GPUs make large rows again for the exact step", {
  skip_if_no_cuda()
  x <- latent_rows(20000, 200, factors = 6, noise = 0.5, seed = 6)
  expected <- knn_search(x, 12, backend = "cpu")
  expect_identical(knn_search(x, 12, backend = "cuda"), expected)
  # The rows in double do not fit in memory, but those of the filter do.
  expect_identical(
    knn_search(x, 12, backend = "cuda", devices = 1, max_device_memory = 60e6),
    expected
  )
  stats <- knn_stats()
  expect_true(stats$streamed && stats$filtered)
  expect_lte(stats$bytes_device, 60e6)
})

test_that("what are no latent rows is told", {
  expect_messages({
    latent_rows(0.5, 3)
    latent_rows(10, 0)
    latent_rows(10, 3, factors = 257)
    latent_rows(10, 3, noise = -1)
    latent_rows(10, 3, seed = -1)
  })
})
