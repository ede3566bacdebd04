# The arguments `na` and `min_pairs`. The reference is cor(), which has its own
# code and uses the complete samples of each pair.

# Returns 1 - r of every pair, NA with too few samples or no variation.
pairwise_distance <- function(x, y = x, metric = "pearson", sign = "signed",
                              min_pairs = 3) {
  if (metric == "spearman") {
    x <- t(apply(x, 1, rank, na.last = "keep"))
    y <- t(apply(y, 1, rank, na.last = "keep"))
  }
  r <- suppressWarnings(stats::cor(t(x), t(y), use = "pairwise.complete.obs"))
  common <- (!is.na(x)) %*% t(!is.na(y))
  r[common < min_pairs] <- NA
  switch(sign, signed = 1 - r, absolute = 1 - abs(r), negative = 1 + r)
}

# Rows may be short of k: what is there is the smallest, and the rest is NA.
# One expectation for all rows: each takes longer than a search.
expect_nearest_pairs <- function(nn, distance, tolerance = 1e-12) {
  k <- ncol(nn$index)
  same <- function(found, expected) {
    isTRUE(all.equal(found, expected, tolerance = tolerance))
  }
  is_right <- vapply(seq_len(nrow(distance)), function(row) {
    expected <- unname(sort(distance[row, ]))
    there <- seq_len(k) <= length(expected)
    index <- nn$index[row, there]
    found <- nn$distance[row, there]
    identical(!is.na(nn$index[row, ]), there) &&
      identical(!is.na(nn$distance[row, ]), there) &&
      same(found, expected[seq_len(sum(there))]) &&
      same(found, unname(distance[row, index]))
  }, NA)
  expect_identical(which(!is_right), integer())
  invisible(nn)
}

quiet <- function(code) {
  suppressMessages(code, classes = "fsknn_short_rows")
}

test_that("pairs over their common samples are those of cor()", {
  x <- with_holes(random_matrix(60, 17, seed = 2), 0.15)
  for (backend in backends_here()) {
    for (metric in c("pearson", "spearman")) {
      for (sign in fsknn:::metric_signs) {
        distance <- pairwise_distance(x, metric = metric, sign = sign)
        diag(distance) <- NA
        nn <- quiet(
          knn_search(x, 9, metric, sign, na = "pairwise", backend = backend)
        )
        expect_nearest_pairs(nn, distance)
        expect_type(nn$index, "integer")
      }
    }
  }
})

test_that("Spearman ranks each row once, where cor() ranks each pair anew", {
  x <- with_holes(random_matrix(30, 12, seed = 3), 0.3)
  nn <- quiet(knn_search(x, 5, "spearman", na = "pairwise", backend = "cpu"))
  anew <- 1 - stats::cor(
    t(x), use = "pairwise.complete.obs", method = "spearman"
  )
  own <- anew[cbind(rep(seq_len(30), 5), as.vector(nn$index))]
  expect_gt(max(abs(own - as.vector(nn$distance))), 0.01)
})

test_that("blocks, few common samples, constants and offsets are those of cor()", {
  x <- random_matrix(40, 16, seed = 4)
  x[1:10, 1:8] <- NA
  x[11:20, 9:16] <- NA # no sample in common with the first ten
  x[21, 3:16] <- NA    # two values
  x[22, 2:16] <- c(NA, 5)[c(rep(1, 12), 2, 2, 2)] # few
  x[22, 1] <- 1
  x[23, 1:8] <- 7 # constant on the samples of rows 11 to 20
  x[24:30, ] <- x[24:30, ] + 1e7 # near-cancellation
  x[31, ] <- x[32, ] + 1e-6 * x[33, ]
  for (min_pairs in c(2, 3, 8)) {
    distance <- pairwise_distance(x, min_pairs = min_pairs)
    diag(distance) <- NA
    for (backend in backends_here()) {
      nn <- quiet(knn_search(
        x, 30, na = "pairwise", min_pairs = min_pairs, backend = backend
      ))
      expect_nearest_pairs(nn, distance, tolerance = 1e-8)
    }
  }
})

# Returns the mean over the common features, scaled to all.
difference_over_common <- function(x, y, metric, min_pairs = 3) {
  squared <- metric == "euclidean"
  total <- common <- matrix(0, nrow(x), nrow(y))
  for (f in seq_len(ncol(x))) {
    d <- abs(outer(x[, f], y[, f], "-"))
    there <- !is.na(d)
    total[there] <- total[there] + if (squared) d[there]^2 else d[there]
    common <- common + there
  }
  mean <- ncol(x) * total / common
  distance <- if (squared) sqrt(mean) else mean
  distance[common < min_pairs] <- NA
  distance
}

test_that("differences over common features are their mean, scaled to all", {
  x <- with_holes(random_matrix(60, 17, seed = 2), 0.15)
  x[1:10, 1:8] <- NA
  x[11:20, 9:17] <- NA
  x[21, ] <- NA
  x[21, 3] <- 0.5
  query <- with_holes(random_matrix(23, 17, seed = 6), 0.1, seed = 7)
  for (metric in c("euclidean", "manhattan")) {
    for (min_pairs in c(1, 3, 9)) {
      distance <- difference_over_common(x, x, metric, min_pairs)
      diag(distance) <- NA
      of_queries <- difference_over_common(query, x, metric, min_pairs)
      for (backend in backends_here()) {
        nn <- quiet(knn_search(
          x, 58, metric, na = "pairwise", min_pairs = min_pairs,
          backend = backend
        ))
        expect_nearest_pairs(nn, distance)
        for (rows in list(1:3, 1:23)) {
          nn <- quiet(knn_query(
            x, query[rows, ], 40, metric, na = "pairwise",
            min_pairs = min_pairs, backend = backend
          ))
          expect_nearest_pairs(nn, of_queries[rows, , drop = FALSE])
        }
      }
    }
  }
  # Nothing is missing, or some pairs have no missing values.
  whole <- random_matrix(40, 9, seed = 9)
  gap <- replace(whole, 5, NA)
  for (metric in c("euclidean", "manhattan")) {
    expect_identical(
      knn_search(whole, 4, metric, na = "pairwise"),
      knn_search(whole, 4, metric)
    )
    within <- knn_search(gap[-5, ], 4, metric)
    nn <- knn_query(gap[-5, ], gap[-5, ], 5, metric)
    expect_identical(nn$distance[, -1], within$distance)
    some <- knn_query(gap, gap[-5, ], 40, metric, na = "pairwise")
    expect_identical(
      knn_query(gap[-5, ], gap[-5, ], 39, metric)$distance,
      t(vapply(1:39, function(i) {
        some$distance[i, some$index[i, ] != 5]
      }, numeric(39)))
    )
  }
})

test_that("differences have brute force's bits, far off and among wild rows", {
  x <- with_holes(random_matrix(400, 40, seed = 8), 0.1)
  x[351:400, ] <- x[1:50, ]
  wild <- x
  wild[7, 3] <- 1e200
  wild[9, ] <- wild[9, ] * 1e-200
  for (values in list(x, x + 1e9, x * 1e-250, wild)) {
    for (metric in c("euclidean", "manhattan")) {
      expected <- brute_force(
        values, k = 7, metric = metric, na = "pairwise", min_pairs = 30L
      )
      for (backend in backends_here()) {
        expect_same_bits(
          quiet(knn_search(
            values, 7, metric, na = "pairwise", min_pairs = 30,
            backend = backend
          )),
          expected
        )
        expect_same_bits(
          quiet(knn_search(
            values, 7, metric, na = "pairwise", min_pairs = 30,
            backend = backend, subset = c(400, 3, 7:90)
          )),
          as_neighbours(lapply(expected, function(m) m[c(400, 3, 7:90), ]))
        )
      }
    }
  }
})

test_that("rows that a filter hardly tells apart have brute force's bits", {
  # On GPUs: several rounds of columns, in which products of halves keep few
  # pairs, or so many that sums in float32 take their place.
  n <- if (cuda_is_usable()) 1300 else 500
  base <- random_matrix(n, 20, seed = 10)
  near <- function(gap) base[rep(1:5, n / 5), ] + gap * random_matrix(n, 20, 11)
  huge <- base
  huge[7, 3] <- 1e200
  small <- base
  small[seq(1, n, 3), ] <- small[seq(1, n, 3), ] * 2^-70
  cases <- list(
    plain = base, "1e-3 apart" = near(1e-3), "1e-7 apart" = near(1e-7),
    "1e-15 apart" = near(1e-15), counts = floor(exp(3 * base)),
    "one huge entry" = huge, "next to nothing" = small
  )
  for (name in names(cases)) {
    x <- with_holes(cases[[name]], 0.1)
    for (metric in c("euclidean", "pearson")) {
      expected <- brute_force(
        x, k = 9, metric = metric, na = "pairwise", min_pairs = 3L
      )
      for (backend in backends_here()) {
        expect_same_bits(
          quiet(knn_search(
            x, 9, metric, na = "pairwise", min_pairs = 3, backend = backend,
            constant = "isolate"
          )),
          expected
        )
      }
    }
  }
})

test_that("one value in common is enough for a difference, if it is asked for", {
  x <- rbind(c(1, NA, NA), c(3, 5, NA), c(NA, 4, 2))
  nn <- quiet(knn_search(x, 2, "manhattan", na = "pairwise", min_pairs = 1))
  expect_identical(nn$distance, rbind(c(6, NA), c(3, 6), c(3, NA)))
  expect_messages({
    none <- knn_search(x, 1, "manhattan", na = "pairwise")
    knn_search(x, 1, "manhattan", na = "pairwise", min_pairs = 0)
  })
  expect_identical(none$index, matrix(NA_integer_, 3, 1))
})

test_that("far apart over common features is an error", {
  x <- cbind(c(1.7e308, -1.7e308, 1), c(0, 0, 1), c(NA, 0, 1))
  for (backend in backends_here()) {
    for (metric in c("euclidean", "manhattan")) {
      expect_error(
        knn_search(x, 2, metric, na = "pairwise", min_pairs = 1,
                   backend = backend),
        class = "fsknn_range_error"
      )
    }
  }
})

test_that("queries with missing values are met by the same rule", {
  x <- with_holes(random_matrix(50, 14, seed = 5), 0.2)
  query <- with_holes(random_matrix(23, 14, seed = 6), 0.1, seed = 7)
  for (backend in backends_here()) {
    for (rows in list(1:3, 1:23)) {
      part <- query[rows, ]
      nn <- quiet(knn_query(x, part, 6, na = "pairwise", backend = backend))
      expect_nearest_pairs(nn, pairwise_distance(part, x))
    }
  }
})

test_that("every backend, chunk size and thread count gives brute force's bits", {
  x <- with_holes(random_matrix(500, 40, seed = 8), 0.1)
  x[401:450, ] <- x[1:50, ]
  expected <- brute_force(
    x, k = 7, metric = "pearson", na = "pairwise", min_pairs = 30L
  )
  for (backend in backends_here()) {
    for (chunk_size in list(NULL, 1, 100)) {
      for (num_threads in 1:2) {
        found <- quiet(knn_search(
          x, 7, na = "pairwise", min_pairs = 30, backend = backend,
          chunk_size = chunk_size, num_threads = num_threads
        ))
        expect_same_bits(found, expected)
      }
    }
    expect_identical(
      quiet(knn_search(x, 7, na = "pairwise", min_pairs = 30, backend = backend,
                     subset = c(450, 3, 77))),
      as_neighbours(lapply(expected, function(m) m[c(450, 3, 77), ]))
    )
  }
})

test_that("with nothing missing the answer is that without `na`", {
  x <- random_matrix(80, 11, seed = 9)
  plain <- knn_search(x, 4, "spearman", "absolute")
  for (na in c("pairwise", "mean")) {
    expect_identical(knn_search(x, 4, "spearman", "absolute", na = na), plain)
  }
  expect_identical(knn_graph(x, 4, na = "pairwise"), knn_graph(x, 4))
})

test_that("integer and logical NA, and NaN, are missing values", {
  x <- matrix(withr::with_seed(1, sample(9L, 200, TRUE)), 20)
  x[cbind(1:20, rep(1:10, 2))] <- NA
  nan <- x + 0
  nan[is.na(nan)] <- NaN
  for (backend in backends_here()) {
    found <- knn_search(x, 5, na = "pairwise", backend = backend)
    expect_identical(
      knn_search(nan, 5, na = "pairwise", backend = backend), found
    )
    expect_nearest_pairs(found, `diag<-`(pairwise_distance(x), NA))
    expect_identical(
      knn_search(x > 4L, 5, "euclidean", na = "pairwise", backend = backend),
      knn_search((x > 4L) + 0, 5, "euclidean", na = "pairwise",
                 backend = backend)
    )
  }
})

test_that("rows short of k are NA, and are counted", {
  x <- random_matrix(12, 10, seed = 10)
  x[1:4, 1:5] <- NA
  x[5:12, 6:10] <- NA
  for (backend in backends_here()) {
    expect_message(
      nn <- knn_search(x, 5, na = "pairwise", backend = backend),
      class = "fsknn_short_rows"
    )
    expect_identical(knn_stats()$rows_short, 4)
    expect_identical(is.na(nn$index[, 4:5]), matrix(1:12 < 5, 12, 2))
    expect_identical(nn$distance[1:4, 4:5], matrix(NA_real_, 4, 2))
    expect_identical(nn$index[1:4, 4:5], matrix(NA_integer_, 4, 2))
    expect_message(knn_search(x, 3, na = "pairwise", backend = backend), NA)
  }
})

test_that("a graph leaves out the edges that are not there", {
  x <- random_matrix(12, 10, seed = 11)
  rownames(x) <- letters[1:12]
  x[1:4, 1:5] <- NA
  x[5:12, 6:10] <- NA
  for (backend in backends_here()) {
    nn <- quiet(knn_search(x, 5, na = "pairwise", backend = backend))
    expect_message(
      edges <- knn_graph(x, 5, na = "pairwise", backend = backend),
      class = "fsknn_short_rows"
    )
    expect_s3_class(edges, "fsknn_edges")
    expect_identical(nrow(edges), sum(!is.na(nn$index)))
    expect_identical(edges$from, rep(letters[1:12], c(rep(3, 4), rep(5, 8))))
    expect_identical(edges$rank, c(rep(1:3, 4), rep(1:5, 8)))
    expect_identical(edges$distance, as.vector(t(nn$distance))[!is.na(t(nn$index))])
    r <- suppressWarnings(stats::cor(t(x), use = "pairwise.complete.obs"))
    expect_equal(edges$correlation, r[cbind(edges$from, edges$to)])
    expect_identical(attr(edges, "vertices")$name, letters[1:12])
  }
})

test_that("nearest_to() has as many rows as there are neighbours", {
  x <- random_matrix(12, 10, seed = 12)
  x[1:4, 1:5] <- NA
  x[5:12, 6:10] <- NA
  found <- quiet(nearest_to(x, 2, 5, na = "pairwise"))
  nn <- quiet(knn_search(x, 5, na = "pairwise"))
  expect_identical(found$index, nn$index[2, 1:3])
  expect_identical(found$distance, nn$distance[2, 1:3])
})

test_that("`na = \"mean\"` takes the row's mean, for every metric", {
  x <- with_holes(abs(random_matrix(40, 9, seed = 13)), 0.2)
  filled <- t(cpp_filled(x)$rows)
  by_hand <- x
  by_hand[is.na(x)] <- rowMeans(x, na.rm = TRUE)[row(x)[is.na(x)]]
  expect_equal(filled, by_hand, tolerance = 1e-14)
  for_all_metrics(function(metric, sign, backend) {
    x <- if (isTRUE(fsknn:::metric_facts(metric)$levels > 0)) NULL else x
    if (is.null(x)) {
      return()
    }
    expect_identical(
      knn_search(x, 4, metric, sign, na = "mean", backend = backend),
      knn_search(filled, 4, metric, sign, backend = backend)
    )
  })
  query <- with_holes(abs(random_matrix(20, 9, seed = 14)), 0.2)
  expect_identical(
    knn_query(x, query, 4, "euclidean", na = "mean"),
    knn_query(filled, t(cpp_filled(query)$rows), 4, "euclidean")
  )
  expect_identical(nearest_to(x, 7, 4, na = "mean"), nearest_to(filled, 7, 4))
})

test_that("`na = \"mean\"` is the same for data that do not fit in memory", {
  x <- with_holes(abs(random_matrix(140, 9, seed = 13)), 0.2)
  x[9, ] <- c(2, 2, rep(NA, 7))
  x[11, ] <- NA
  x[12, ] <- 0
  blocks <- block_matrices(x)
  blocks <- blocks[intersect(
    c("in memory", "tall chunks", "big.matrix"), names(blocks)
  )]
  query <- with_holes(abs(random_matrix(60, 9, seed = 14)), 0.2)
  ask <- function(x, ...) {
    knn_search(x, 4, ..., na = "mean", constant = "isolate", max_memory = 1e3)
  }
  # Which metric is asked for does not matter to the reading of blocks, but for
  # the preparation of rows.
  metrics <- all_metrics()
  prepared <- c("spearman", "bicor", "cosine", "manhattan", "proportional")
  if (!is_long()) {
    metrics <- metrics[
      metrics$metric %in% prepared & metrics$sign == "signed",
    ]
  }
  for_all_metrics(function(metric, sign, backend) {
    if (fsknn:::metric_facts(metric)$levels > 0) {
      return()
    }
    for (lazy in if (metric == "spearman") blocks else blocks[1]) {
      expect_identical(
        ask(lazy, metric, sign, backend = backend),
        ask(x, metric, sign, backend = backend)
      )
    }
  }, metrics)
  weights <- c(0, 1, 2, 3, 0, 1, 1, 1, 0.5)
  for (lazy in blocks) {
    for (metric in c("pearson", "spearman")) {
      expect_identical(
        ask(lazy, metric, weights = weights), ask(x, metric, weights = weights)
      )
    }
    across <- function(x, query) {
      knn_query(
        x, query, 4, "euclidean", na = "mean", constant = "isolate",
        max_memory = 1e3
      )
    }
    expected <- across(x, query)
    expect_identical(across(lazy, query), expected)
    expect_identical(across(lazy, DelayedArray::DelayedArray(query)), expected)
    expect_identical(across(x, DelayedArray::DelayedArray(query)), expected)
    expect_identical(
      nearest_to(
        lazy, 7, 4, na = "mean", constant = "isolate", max_memory = 1e3
      ),
      nearest_to(x, 7, 4, na = "mean", constant = "isolate")
    )
    expect_identical(
      expect_error(knn_search(lazy, 4, na = "mean", max_memory = 1e3))$message,
      expect_error(knn_search(x, 4, na = "mean"))$message
    )
  }
})

test_that("pairwise samples need values in memory only where some are missing", {
  skip_if_not_installed("DelayedArray")
  x <- random_matrix(140, 9, seed = 13)
  holes <- with_holes(random_matrix(130, 9, seed = 14), 0.1)
  lazy <- DelayedArray::DelayedArray(x)
  lazy_holes <- DelayedArray::DelayedArray(holes)
  few <- 1e3
  expect_identical(
    knn_search(lazy, 4, na = "pairwise", max_memory = few),
    knn_search(x, 4, na = "pairwise")
  )
  expect_messages({
    knn_search(lazy_holes, 4, na = "pairwise", max_memory = few)
    knn_query(x, lazy_holes, 4, na = "pairwise", max_memory = few)
    knn_query(lazy, holes, 4, na = "pairwise", max_memory = few)
    nearest_to(lazy_holes, 4, 4, na = "pairwise", max_memory = few)
  })
})

test_that("a row that is constant or empty is told or isolated", {
  x <- random_matrix(9, 8, seed = 15)
  x[2, ] <- NA
  x[4, ] <- c(0.1, 0.1, 0.1, rep(NA, 5)) # their mean is not 0.1
  for (na in c("pairwise", "mean")) {
    nn <- knn_search(x, 3, na = na, constant = "isolate")
    expect_identical(which(is.na(nn$index[, 1])), c(2L, 4L))
    expect_false(any(nn$index %in% c(2L, 4L)))
    expect_wrong(knn_search(x, 3, na = na))
  }
  expect_messages({
    knn_search(x, 3, na = "pairwise")
    knn_search(x[-2, ], 3, na = "mean")
  })
})

test_that("what can't be met is an error that says so", {
  x <- with_holes(random_matrix(9, 8, seed = 16), 0.1)
  inf <- x
  inf[3, 2] <- Inf
  inf[5, 2] <- -Inf
  small <- metafeatures(random_matrix(3, 8, seed = 17))
  expect_messages({
    knn_search(x, 3)
    knn_search(inf, 3, na = "pairwise")
    knn_search(inf, 3, na = "mean")
    knn_search(x, 3, na = "omit")
    knn_search(x, 3, "chebyshev", na = "pairwise")
    knn_search(x, 3, na = "mean", min_pairs = 5)
    knn_search(x, 3, na = "pairwise", min_pairs = 1)
    knn_search(x, 3, na = "pairwise", min_pairs = 9)
    knn_search(small, 3, na = "pairwise")
  })
})

test_that("the message of rows short of k says how many and why", {
  x <- random_matrix(12, 10, seed = 18)
  x[1, 1:5] <- NA
  x[2:12, 6:10] <- NA
  expect_messages({
    nn <- knn_search(x, 5, na = "pairwise")
    edges <- knn_graph(x, 5, na = "pairwise")
  })
})

test_that("two columns are enough, unless more samples are asked for", {
  x <- random_matrix(9, 2, seed = 19)
  expect_identical(knn_search(x, 3, na = "pairwise"), knn_search(x, 3))
  x <- cbind(x, x[, 1] * 2)
  expect_identical(
    knn_search(x[, 1:2], 3, na = "pairwise"),
    knn_search(x[, 1:2], 3, na = "pairwise", min_pairs = 2)
  )
  two <- x[, 1:2]
  two[2, 1] <- NA
  two <- rbind(two, c(NA, 1))
  # A row of one value does not vary.
  found <- knn_search(two, 3, na = "pairwise", constant = "isolate")
  expect_identical(which(is.na(found$index[, 1])), c(2L, 10L))
  x[2, 1] <- NA
  # A pair must have all three columns.
  found <- quiet(knn_search(x, 3, na = "pairwise"))
  expect_true(all(is.na(found$index[2, ])))
  expect_false(anyNA(found$index[-2, ]))
  expect_identical(
    nearest_to(x[, 2:3], 1, 3, na = "pairwise"), nearest_to(x[, 2:3], 1, 3)
  )
  expect_messages({
    knn_search(x[, 2:3], 3, na = "pairwise", min_pairs = 3)
    knn_search(x[, 2:3], 3, na = "mean", min_pairs = 3)
  })
})

test_that("binary metrics are not sent to `na`, which can't help them", {
  x <- random_matrix(9, 8, seed = 20) > 0
  x[3, 2] <- NA
  expect_messages({
    knn_search(x, 1, "jaccard")
    knn_search(x, 1, "jaccard", na = "pairwise")
    knn_search(x, 1, "sorensen", na = "mean")
  })
})

test_that("points that are columns are called so", {
  x <- random_matrix(9, 8, seed = 21)
  x[, 2] <- NA
  colnames(x) <- letters[1:8]
  expect_messages({
    knn_search(x, 3, na = "pairwise", points = "columns")
    knn_search(x, 3, na = "pairwise", min_pairs = 10, points = "columns")
  })
})

test_that("nearest_to() says that there are fewer rows", {
  x <- random_matrix(12, 10, seed = 22)
  x[1:4, 1:5] <- NA
  x[5:12, 6:10] <- NA
  expect_messages(near <- nearest_to(x, 2, 5, na = "pairwise"))
  expect_identical(nrow(near), 3L)
})

# Counts a pair's table allele by allele, over the samples that both rows have.
# Frequencies are those of each row's own samples.
common_table <- function(a, b, copies, multiplier) {
  entries <- outer(0:1, 0:1, Vectorize(function(i, j) {
    both <- !is.na(a) & !is.na(b)
    number <- function(x, allele) if (allele == 1) x else copies - x
    frequency <- function(x, allele) {
      mean(number(x, allele), na.rm = TRUE) / copies
    }
    share <- mean(number(a[both], i) * number(b[both], j)) / copies^2
    multiplier * share * (1 - 2 / 3 * frequency(a, i)) *
      (1 - 2 / 3 * frequency(b, j))
  }))
  c("00" = entries[1, 1], "01" = entries[1, 2], "10" = entries[2, 1],
    "11" = entries[2, 2])
}

test_that("tables of alleles count the samples that both loci have", {
  x <- withr::with_seed(5, matrix(
    stats::rbinom(50 * 24, 2, stats::runif(50, 0.1, 0.9)), 50
  ))
  x <- with_holes(x, 0.2)
  rownames(x) <- paste0("rs", 1:50)
  # The only samples in common with the first row have the rare allele.
  x[2, ] <- c(2, 2, 2, NA, NA, rep(0, 19))
  x[1, ] <- c(2, 2, 2, 0, 0, rep(NA, 19))
  x[3, ] <- c(2, 2, 2, 0, 0, rep(c(NA, 0), c(1, 18)))
  for (metric in c("ccc", "duo")) {
    values <- if (metric == "duo") pmin(x, 1) else x
    copies <- if (metric == "duo") 1 else 2
    distance <- matrix(NA, 50, 50)
    alleles <- matrix("", 50, 50)
    for (i in 1:50) for (j in 1:50) {
      table <- common_table(
        values[i, ], values[j, ], copies, if (metric == "duo") 4 else 4.5
      )
      common <- sum(!is.na(values[i, ]) & !is.na(values[j, ]))
      distance[i, j] <- if (common >= 4) 1 - max(table) else NA
      alleles[i, j] <- names(which.max(table))
    }
    expect_lt(min(distance, na.rm = TRUE), 0)
    expect_true(anyNA(distance))
    alone <- distance
    diag(alone) <- NA
    found <- quiet(knn_search(
      values, 9, metric, na = "pairwise", min_pairs = 4, backend = "cpu"
    ))
    expect_nearest_pairs(found, alone)
    expect_true(all(knn_verify(found, values)$agree))
    asked <- quiet(knn_query(
      values, values[1:20, ], 9, metric, na = "pairwise", min_pairs = 4,
      backend = "cpu"
    ))
    expect_nearest_pairs(asked, distance[1:20, ])
    edges <- threshold_graph(
      values, 0.617, metric, na = "pairwise", min_pairs = 4, backend = "cpu"
    )
    near <- which(alone < 0.383 & upper.tri(alone), arr.ind = TRUE)
    expect_setequal(
      paste(edges$from, edges$to),
      paste(rownames(x)[near[, 1]], rownames(x)[near[, 2]])
    )
    at <- cbind(match(edges$from, rownames(x)), match(edges$to, rownames(x)))
    expect_equal(edges$similarity, 1 - distance[at], tolerance = 1e-12)
    tied <- abs(1 - distance[at] - edges$similarity) > 0
    expect_identical(as.character(edges$alleles)[!tied], alleles[at][!tied])
    counted <- pair_histogram(
      values, metric, breaks = c(0, 0.417, 1, 4.5), na = "pairwise",
      min_pairs = 4, backend = "cpu"
    )
    expect_equal(
      counted$count,
      as.vector(table(cut(
        (1 - alone)[upper.tri(alone)], c(0, 0.417, 1, 4.5), right = FALSE
      )))
    )
  }
})

test_that("genotypes without missing values have the same bits with any na", {
  x <- withr::with_seed(6, matrix(stats::rbinom(40 * 30, 2, 0.4), 40))
  whole <- knn_graph(x, 4, "ccc", backend = "cpu")
  attr(whole, "stats") <- NULL
  # A locus of few samples does not reach the others' tables.
  holed <- rbind(x, c(1, 2, 0, rep(NA, 27)))
  pairwise <- quiet(knn_graph(
    holed, 5, "ccc", na = "pairwise", min_pairs = 30, backend = "cpu"
  ))
  pairwise <- pairwise[pairwise$rank <= 4, ]
  expect_identical(pairwise$to, whole$to)
  expect_identical(pairwise$distance, whole$distance)
  expect_identical(pairwise$similarity, whole$similarity)
  expect_identical(pairwise$alleles, whole$alleles)
})

test_that("missing genotypes are known from wrong ones", {
  x <- matrix(c(0, 1, 2, NA, 1, 2, 0, 0, 2, 1, 1, 0), 3)
  expect_error(knn_search(x, 1, "ccc"), "na = \"pairwise\"")
  x[2, 3] <- 1.5
  expect_error(
    knn_search(x, 1, "ccc", na = "pairwise"), "1.5 at row 2, column 3"
  )
  expect_error(
    knn_search(x, 1, "duo", na = "pairwise"), "must hold only 0 and 1"
  )
})
