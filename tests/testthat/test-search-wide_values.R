# Entries, rows and pairs of very different magnitudes: distances have a
# relative error of at most 1e-12. The references share no code with the
# package. They scale each pair, or the rows without the huge one, to magnitudes
# near 1.

# Computes sqrt(sum((a - b)^2)) or the like for each row of x and each of y.
pairs_of <- function(x, y, of) {
  t(apply(x, 1, function(a) apply(y, 1, function(b) of(a, b))))
}

# Uses the samples that both have, scaled to all, as na = "pairwise" does.
euclidean_of <- function(a, b) {
  t <- abs(a - b)
  t <- t[!is.na(t)]
  largest <- max(t)
  if (largest == 0 || largest == Inf) {
    return(largest)
  }
  # Scaling by 2^600 first avoids quotients of subnormal numbers.
  up <- if (largest < 1) 2^600 else 1
  largest * sqrt(sum(((t * up) / (largest * up))^2) * length(a) / length(t))
}

# Scales by the larger of two factors first, so that no product overflows before
# its sum does.
product_of <- function(a, b) {
  p <- max(abs(a))
  q <- max(abs(b))
  s <- sum((a / p) * (b / q))
  -((s * min(p, q)) * max(p, q))
}

expect_near <- function(found, expected, label, error = 1e-12) {
  same <- found == expected
  off <- ifelse(same, 0, abs(found - expected) / abs(expected))
  expect_true(all(off <= error), label = paste(label, signif(max(off), 3)))
}

# Makes points of size `small`, and one with the entry `huge`.
with_huge <- function(huge, small = 1, n = 40, d = 6) {
  x <- random_matrix(n, d, seed = 7) * small
  x[3, 4] <- huge
  x
}

# Does the same with one sign, so that no digits cancel, and no product with the
# huge entry overflows.
for_products <- function(huge, small) {
  x <- abs(with_huge(huge, small))
  x[-3, 4] <- x[-3, 4] / 16
  x[3, -4] <- 0
  x
}

# Returns the similarity of two rows after scaling to magnitudes near 1.
overlap_of <- function(a, b) {
  largest <- max(a, b)
  a <- a / largest
  b <- b / largest
  2 * sum(pmin(a, b)) / (sum(a) + sum(b))
}

# Makes rows of 1e-307 beside rows of 1e150 and 1e308, whose sums overflow.
far_apart <- function(n = 36, d = 9) {
  x <- withr::with_seed(3, matrix(stats::runif(n * d, 0.1, 1), n))
  x[1:2, ] <- x[1:2, ] / 1e3 # some of them subnormal
  x * rep(c(1e-307, 1e150, 1.7e308), each = n / 3)
}

# Returns the distance of each neighbour from a matrix of all.
at_neighbours <- function(all, index) {
  matrix(all[cbind(c(row(index)), c(index))], nrow(index))
}

# Lists largest entries, and the sizes of the others.
ratios <- data.frame(
  huge = c(
    1e140, 1e154, 1e156, 1e160, 1e162, 1e200, 1e300, .Machine$double.xmax,
    .Machine$double.xmax, .Machine$double.xmax, 1e300, 1, 1e40, 1e120, 1e5
  ),
  small = c(1, 1, 1, 1, 1, 1, 1, 1, 1e-5, 1e-300, 1e-8, 1e-200, 1e-260, 1e-180,
            1e-300)
)

test_that("one huge value leaves all other Euclidean distances as they are", {
  for (i in seq_len(nrow(ratios))) {
    small <- ratios$small[[i]]
    x <- with_huge(ratios$huge[[i]], small)
    all <- pairs_of(x, x, euclidean_of)
    diag(all) <- Inf
    # The other rows' distances are those without the huge row, times `small`.
    alone <- unname(as.matrix(dist(with_huge(0)[-3, ]))) * small
    expect_near(all[-3, -3][upper.tri(alone)], alone[upper.tri(alone)], "dist")
    for (backend in backends_here()) {
      what <- paste(ratios$huge[[i]], small, backend)
      found <- knn_search(x, 5, "euclidean", backend = backend)
      expect_near(found$distance, at_neighbours(all, found$index), what)
      expect_identical(found$index[-3, ], t(apply(all[-3, ], 1, order))[, 1:5])
      query <- x[c(1, 3, 5), ]
      found <- knn_query(x, query, 4, "euclidean", backend = backend)
      expect_identical(found$distance[, 1], numeric(3))
      expect_near(
        found$distance[, -1],
        at_neighbours(all[c(1, 3, 5), ], found$index[, -1]), what
      )
      radius <- stats::median(alone[upper.tri(alone)]) / 2
      found <- within_search(x, radius, "euclidean", backend = backend)
      expect_identical(lengths(found$index), as.integer(rowSums(all <= radius)))
      for (row in which(lengths(found$index) > 0)) {
        expect_near(found$distance[[row]], all[row, found$index[[row]]], what)
      }
    }
  }
})

test_that("a huge query leaves distances as they are, held points or not", {
  x <- with_huge(0)
  query <- x[1:4, ] + 0.01
  query[2, 1] <- 1e300
  all <- pairs_of(query, x, euclidean_of)
  for (backend in backends_here()) {
    expect_near(
      knn_query(x, query, 40, "euclidean", backend = backend)$distance,
      t(apply(all, 1, sort)), backend
    )
  }
})

test_that("so does na = \"pairwise\", and imputation", {
  for (huge in c(1e140, 1e160, 1e300, .Machine$double.xmax)) {
    for (small in c(1, 1e-9)) {
      x <- with_huge(huge, small)
      x[cbind(c(1, 5, 5, 9), c(2, 1, 4, 6))] <- NA
      all <- pairs_of(x, x, euclidean_of)
      diag(all) <- Inf
      for (backend in backends_here()) {
        found <- knn_search(
          x, 5, "euclidean", na = "pairwise", backend = backend
        )
        expect_near(
          found$distance, at_neighbours(all, found$index), paste(huge, backend)
        )
        expect_identical(
          found$index[-3, ], t(apply(all[-3, ], 1, order))[, 1:5]
        )
      }
      expected <- as.vector(knn_impute(x[-3, ], k = 4))
      expect_identical(as.vector(knn_impute(x, k = 4)[-3, ]), expected)
    }
  }
})

test_that("rows that are equal, or nearly, have the distance that they have", {
  x <- rbind(c(1, 2, 3), c(1, 2, 3), c(1, 2, 3 + 2^-51), c(2^1000, 0, 0))
  tiny <- .Machine$double.xmin
  y <- rbind(c(0, 0, tiny), c(0, 3 * tiny, 5 * tiny), c(1e300, 0, 0), 0)
  for (backend in backends_here()) {
    found <- knn_search(x, 3, "euclidean", backend = backend)
    expect_identical(found$distance[1:2, 1:2], rbind(c(0, 2^-51), c(0, 2^-51)))
    found <- knn_search(y, 3, "euclidean", backend = backend)
    expect_identical(found$distance[2, 1], 5 * tiny)
    expect_identical(found$distance[1, 1:3], c(tiny, 5 * tiny, 1e300))
  }
})

test_that("inner products hold from the smallest to the largest entries", {
  for (i in seq_len(nrow(ratios))) {
    x <- for_products(ratios$huge[[i]], max(ratios$small[[i]], 1e-150))
    all <- pairs_of(x, x, product_of)
    diag(all) <- Inf
    for (backend in backends_here()) {
      found <- knn_search(x[-3, ], 5, "inner_product", backend = backend)
      without <- all[-3, -3]
      expect_near(found$distance, at_neighbours(without, found$index), backend)
      found <- knn_search(x, 5, "inner_product", backend = backend)
      what <- paste(ratios$huge[[i]], ratios$small[[i]], backend)
      expect_near(found$distance, at_neighbours(all, found$index), what)
    }
  }
  # Some terms cancel beyond the range of a double, and some do not.
  x <- rbind(c(1e200, 1e200, 1), c(1e200, -1e200, 2), c(1, 1, 0))
  for (backend in backends_here()) {
    found <- knn_search(x, 2, "inner_product", backend = backend)
    expect_identical(found$index, rbind(3:2, c(1L, 3L), 1:2))
    expect_identical(found$distance[1, ], c(-2e200, found$distance[2, 1]))
  }
})

test_that("sums and largest differences hold beside a huge value", {
  taken <- list(
    manhattan = function(a, b) sum(abs(a - b)),
    chebyshev = function(a, b) max(abs(a - b)),
    canberra = function(a, b) {
      up <- max(abs(a), abs(b)) > 1e300
      sum(abs(a / 2^up - b / 2^up) / (abs(a / 2^up) + abs(b / 2^up)))
    }
  )
  for (huge in c(1e140, 1e300, .Machine$double.xmax)) {
    for (small in c(1, 1e-300)) {
      x <- with_huge(huge, small)
      for (metric in names(taken)) {
        all <- pairs_of(x, x, taken[[metric]])
        diag(all) <- Inf
        for (backend in backends_here()) {
          found <- knn_search(x, 5, metric, backend = backend)
          expect_near(
            found$distance, at_neighbours(all, found$index),
            paste(metric, huge, small, backend)
          )
        }
      }
    }
  }
})

test_that("cosine and correlations hold for rows of any magnitude", {
  base <- random_matrix(30, 6, seed = 8)
  scale <- 10^seq(-300, 300, length.out = 30)
  for (metric in c("cosine", "pearson")) {
    expected <- knn_search(base, 4, metric, backend = "cpu")
    for (backend in backends_here()) {
      found <- knn_search(base * scale, 4, metric, backend = backend)
      expect_identical(found$index, expected$index)
      expect_equal(found$distance, expected$distance, tolerance = 1e-14)
    }
  }
  # Only correlations take weights.
  weights <- c(1, 2, 3, 1e15, 0.5e15, 0.7e15) * 1e-200
  plain <- weights * 1e200
  for (backend in backends_here()) {
    found <- knn_search(
      base, 4, "pearson", weights = weights, backend = backend
    )
    expect_equal(
      found$distance,
      knn_search(base, 4, "pearson", weights = plain, backend = "cpu")$distance,
      tolerance = 1e-12
    )
  }
})

test_that("every instruction set has the same bits of such data", {
  for (i in c(4, 8, 9, 12)) {
    for (metric in c("euclidean", "inner_product", "proportional")) {
      x <- switch(
        metric,
        euclidean = with_huge(ratios$huge[[i]], ratios$small[[i]]),
        inner_product = for_products(ratios$huge[[i]], ratios$small[[i]]),
        proportional = far_apart(12 + 3 * i)
      )
      expected <- brute_force(x, k = 5, metric = metric)
      for (set in fsknn:::cpp_cpu()$instruction_sets) {
        withr::local_options(fsknn.instruction_set = set)
        found <- knn_search(x, 5, metric, backend = "cpu")
        expect_same_bits(found, expected, label = paste(set, metric, i))
      }
      withr::local_options(fsknn.instruction_set = "auto")
      if (cuda_is_usable()) {
        found <- knn_search(x, 5, metric, backend = "cuda")
        expect_same_bits(found, expected, label = paste("cuda", metric, i))
      }
    }
  }
})

test_that("trees and held points have the same distances beside a huge row", {
  x <- with_huge(.Machine$double.xmax, 1e-5)
  x[3, -4] <- 0
  alone <- x[-3, ]
  expected <- knn_search(alone, 5, "euclidean", backend = "cpu")
  found <- knn_search(x, 5, "euclidean", backend = "cpu")
  expect_identical(found$distance[-3, ], expected$distance)
  expect_identical(found$index[-3, ], expected$index + (expected$index > 2))
  # These are the distances of the tree, the shortest first.
  tree <- function(x) mst_knn(x, "euclidean", backend = "cpu")$tree$distance
  of_alone <- tree(alone)
  expect_identical(utils::head(tree(x), length(of_alone)), of_alone)
})

test_that("proportional similarities hold from the smallest to the largest", {
  x <- far_apart()
  all <- pairs_of(x, x, overlap_of)
  diag(all) <- 0
  once <- all[upper.tri(all)]
  query <- x[c(1, 14, 30), ] * 0.7
  to_query <- pairs_of(query, x, overlap_of)
  for (backend in backends_here()) {
    found <- knn_search(x, 5, "proportional", backend = backend)
    expect_identical(found$index, t(apply(-all, 1, order))[, 1:5])
    expect_near(1 - found$distance, at_neighbours(all, found$index), backend)
    found <- knn_query(x, query, 4, "proportional", backend = backend)
    expect_near(
      1 - found$distance, at_neighbours(to_query, found$index), backend
    )
    for (least in c(0.3, 0.8)) {
      edges <- threshold_graph(x, least, "proportional", backend = backend)
      expect_identical(nrow(edges), sum(once >= least))
      expect_near(edges$similarity, all[cbind(edges$from, edges$to)], backend)
    }
    found <- within_search(x, 0.3, "proportional", backend = backend)
    expect_identical(lengths(found$index), as.integer(rowSums(all >= 0.7)))
    breaks <- c(0, 0.25, 0.5, 0.75, 1)
    found <- pair_histogram(x, breaks, "proportional", backend = backend)
    expect_identical(found$counts, tabulate(findInterval(once, breaks), 4) + 0)
    tree <- mst_knn(x, "proportional", backend = backend)$tree
    expect_near(1 - tree$distance, all[cbind(tree$from, tree$to)], backend)
  }
  file <- withr::local_tempfile()
  threshold_graph(x, 0, "proportional", file = file, format = "comet_bytes")
  expect_identical(
    as.integer(readBin(file, "raw", 1e4)), as.integer(floor(255 * once))
  )
})

test_that("so do those of three rows, to 1e-14", {
  x <- far_apart(24, 9)
  all <- utils::combn(24, 3)
  of_three <- apply(all, 2, function(at) {
    y <- x[at, ] / max(x[at, ])
    1.5 * (sum(y) - sum(apply(y, 2, max))) / sum(y)
  })
  pair <- pairs_of(x, x, overlap_of)
  for (backend in backends_here()) {
    for (path in c("auto", "pairs", "all")) {
      for (least in c(0, 0.4, 0.8)) {
        found <- threshold_triples(x, least, path = path, backend = backend)
        expected <- all[, of_three >= least]
        expect_identical(rbind(found$from, found$to, found$third), expected)
        expect_equal(found$similarity, of_three[of_three >= least],
                     tolerance = 1e-14)
        expect_equal(found$pair_from_to, pair[t(expected[1:2, ])],
                     tolerance = 1e-12)
        expect_true(all(found$at_least <= found$similarity))
        expect_true(all(found$at_most >= found$similarity))
      }
      found <- nearest_triples(x, 3, path = path, backend = backend)
      best <- vapply(seq_len(24), function(i) {
        sort(of_three[colSums(all == i) > 0], decreasing = TRUE)[1:3]
      }, numeric(3))
      expect_equal(unname(found$similarity), t(best), tolerance = 1e-14)
    }
    breaks <- c(0, 0.2, 0.4, 0.6, 0.8, 1)
    found <- triple_histogram(x, breaks, backend = backend)
    expect_equal(found$triples, tabulate(findInterval(of_three, breaks), 5))
  }
  file <- withr::local_tempfile()
  threshold_triples(x, 0, file = file, format = "comet_bytes")
  bytes <- as.integer(readBin(file, "raw", 1e5))
  expect_identical(sort(bytes), sort(as.integer(floor(255 * of_three))))
})

# Returns r over the samples that both rows have. Each row is first scaled by
# its own magnitude on these.
common_r <- function(a, b) {
  both <- !is.na(a) & !is.na(b)
  to_one <- function(x) {
    largest <- max(abs(x))
    # Scaling by 2^600 first avoids quotients of subnormal numbers.
    up <- if (largest < 1) 2^600 else 1
    (x * up) / (largest * up)
  }
  stats::cor(to_one(a[both]), to_one(b[both]))
}

test_that("a value that the other row lacks takes no digits from r", {
  for (huge in c(1e100, 1e200, 1e298, 1e300, 1e305, .Machine$double.xmax)) {
    for (small in c(1, 1e-10, 1e-290, 1e-300)) {
      x <- random_matrix(40, 12, seed = 9) * small
      # Two rows have two such values, and two lack one or both.
      x[3:4, 4] <- huge
      x[4:5, 7] <- -huge
      x[c(1, 2, 6:20), 4] <- NA
      x[c(1, 2, 21:30), 7] <- NA
      distance <- 1 - pairs_of(x, x, common_r)
      diag(distance) <- Inf
      for (backend in backends_here()) {
        found <- knn_search(
          x, 39, "pearson", na = "pairwise", backend = backend
        )
        off <- abs(found$distance - at_neighbours(distance, found$index))
        expect_lt(max(off), 1e-13, label = paste(huge, small, backend))
        found <- knn_search(x, 5, "pearson", na = "pairwise", backend = backend)
        nearest <- t(apply(distance, 1, sort))[, 1:5]
        expect_lt(max(abs(found$distance - nearest)), 1e-13)
      }
      found <- within_search(
        x, 0.5, "pearson", na = "pairwise", backend = "cpu"
      )
      expect_identical(
        lengths(found$index), as.integer(rowSums(distance <= 0.5))
      )
    }
  }
})

test_that("nor from differences over the samples that both have", {
  differences <- list(
    euclidean = euclidean_of,
    manhattan = function(a, b) {
      t <- abs(a - b)
      sum(t, na.rm = TRUE) * length(a) / sum(!is.na(t))
    }
  )
  for (huge in c(1e100, 1e200, 1e300)) {
    for (small in c(1e-10, 1e-300)) {
      x <- random_matrix(20, 9, seed = 10) * small
      x[3, 4] <- huge
      x[-(3:5), 4] <- NA
      for (metric in names(differences)) {
        all <- pairs_of(x, x, differences[[metric]])
        diag(all) <- Inf
        for (backend in backends_here()) {
          found <- knn_search(x, 5, metric, na = "pairwise", backend = backend)
          expect_near(
            found$distance, at_neighbours(all, found$index),
            paste(metric, huge, small, backend)
          )
        }
      }
    }
  }
})

test_that("three rows of subnormal values have their similarity", {
  rows <- rbind(c(1, 0), c(1, 0), c(0, 1))
  for (backend in backends_here()) for (exponent in c(-1074, -1060, -1000, 0)) {
    found <- threshold_triples(rows * 2^exponent, 0, backend = backend)
    expect_identical(found$similarity, 0.5)
  }
})
