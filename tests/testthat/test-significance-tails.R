# Tails of correlations, compared with all orders of the samples.

# Returns the moments of r over all orders of the second row, beyond those of
# normal values: the skewness, and the share by which the fourth moment is too
# large.
naive_tails <- function(x, y) {
  n <- length(x)
  orders <- as.matrix(expand.grid(rep(list(seq_len(n)), n)))
  orders <- orders[apply(orders, 1, anyDuplicated) == 0, ]
  r <- apply(orders, 1, function(at) stats::cor(x, y[at]))
  c(
    skew = mean(r^3) * (n - 1)^1.5,
    kurtosis = mean(r^4) * (n^2 - 1) / 3 - 1
  )
}

tails_between <- function(x, outcome, ...) {
  search <- new_search(x, check_options(list(...), "nearest_to"), k = 1)
  unlist(tails_of(search, outcome))
}

test_that("moments are those over all orders of the samples", {
  x <- c(0.1, 0.3, 0.2, 9, 0.5, 0.4)
  y <- c(20, 1, 3, 2, 4, 1.5)
  expect_equal(tails_between(rbind(x, x), t(y)), naive_tails(x, y))
  # Means over the rows of the points
  other <- c(1, 7, 2, 0, 1, 3)
  expect_equal(
    tails_between(rbind(x, other), t(y)),
    (naive_tails(x, y) + naive_tails(other, y)) / 2
  )
  # The smallest values are the outliers, so the other tail is heavy.
  turned <- tails_between(rbind(-x, -x), t(y))
  expect_identical(turned[["skew"]], 0)
  # Ranks with ties
  tied <- c(0, 0, 0, 0, 2, 1)
  expect_equal(
    tails_between(rbind(tied, tied), t(tied), metric = "spearman")[["skew"]],
    naive_tails(rank(tied), rank(tied))[["skew"]]
  )
})

test_that("normal values, ranks and even outcomes have no heavy tails", {
  x <- random_matrix(300, 30)
  skewed <- exp(x)
  outcome <- t(rep(1:2, c(3, 27)))
  expect_null(tails_between(x, outcome))
  expect_null(tails_between(skewed, x[1, , drop = FALSE]))
  expect_null(tails_between(skewed, skewed[1, , drop = FALSE],
                            metric = "spearman"))
  expect_named(tails_between(skewed, outcome), c("skew", "kurtosis"))
  # The outcome is skewed by its covariate alone.
  age <- exp(2 * random_matrix(1, 30, 5)[1, ])
  by_age <- t(age + 0.1 * x[1, ])
  expect_named(tails_between(skewed, by_age), c("skew", "kurtosis"))
  expect_null(tails_between(skewed, by_age, adjust = age))
})

test_that("moments matter more if smaller p-values are needed", {
  # Hermite's polynomials by derivatives of the normal density
  times_normal <- function(z, order) {
    derivative <- quote(exp(-z^2 / 2))
    for (at in seq_len(order)) derivative <- stats::D(derivative, "z")
    eval(derivative) / exp(-z^2 / 2) * (-1)^order
  }
  for (num_tests in c(1, 1e6)) {
    z <- stats::qnorm(1 - if (num_tests == 1) 1e-4 else 5e-8)
    expect_equal(
      excess_in_tail(list(skew = 0.12, kurtosis = 0.02), num_tests),
      0.12 * times_normal(z, 3) / 6 + 3 * 0.02 * times_normal(z, 4) / 24
    )
  }
  # Counts, which have false edges by Bonferroni if there are many pairs
  counts <- withr::with_seed(1, matrix(stats::rpois(1000 * 20, 1), 1000))
  r <- stats::cor(t(counts))
  r <- r[upper.tri(r)]
  p <- stats::pt(r * sqrt(18 / (1 - r^2)), 18, lower.tail = FALSE)
  expect_lt(length(p) * min(p), 0.05)
  expect_named(tails_between(counts, NULL), c("skew", "kurtosis"))
  expect_null(tails_between(counts[1:30, ], NULL))
  # One p-value for each point, where larger ones are significant
  expect_null(tails_between(counts, t(as.double(1:20))))
})

test_that("p-values of skewed values come from all permuted pairs", {
  x <- exp(random_matrix(40, 15))
  x[2, ] <- x[1, ] + 0.1 * x[2, ]
  x[40, ] <- 1
  for (sign in metric_signs) {
    edges <- knn_graph(x, 3, sign = sign, constant = "isolate")
    for (backend in backends_here()) {
      found <- suppressMessages(withr::with_seed(5, edge_significance(
        edges, x, permutations = 8, constant = "isolate", p_adjust = "BY",
        backend = backend
      )))
      null <- withr::with_seed(5, unlist(lapply(1:8, function(at) {
        permuted <- t(apply(x, 1, function(row) row[sample.int(15)]))
        r <- stats::cor(t(permuted[-40, ]))
        r <- r[upper.tri(r)]
        1 - switch(sign, signed = r, absolute = abs(r), negative = -r)
      })))
      expect_length(null, 8 * 741)
      expect_equal(found$p_value, vapply(found$distance, function(own) {
        (sum(null <= own + 1e-12) + 1) / (8 * 741 + 1)
      }, 0))
      expect_equal(
        found$p_adjusted, stats::p.adjust(found$p_value, "BY", n = 741)
      )
    }
  }
  # Of many edges, some take the next larger distance.
  pairs <- list(distance = seq(0, 1, length.out = 5000))
  limits <- limits_of_pairs(pairs)
  expect_lte(length(limits), 1000)
  expect_identical(range(limits), range(pairs$distance) + 1e-12)
})

test_that("heavy tails are one message, and normal values none", {
  normal <- random_matrix(60, 20)
  x <- exp(normal)
  x[1:2, ] <- x[1, ]
  x[2, 1] <- 0
  edges <- knn_graph(x, 2)
  of_two <- rep(1:2, c(4, 16))
  ask <- function(...) {
    invisible(edge_significance(edges, x, ..., backend = "cpu"))
  }
  near <- function(x, ...) {
    invisible(nearest_to(x, outcome = of_two, k = 2, ..., backend = "cpu"))
  }
  expect_messages({
    ask()
    ask(permutations = 2)
    ask(permutations = 2, unit = rep(1:10, 2))
    near(x, sign = "absolute", permutations = 0)
    near(
      cbind(normal[, -1] > 0.8, TRUE), metric = "spearman", sign = "absolute",
      permutations = 0
    )
    near(normal, permutations = 0)
  })
  expect_message(
    print(suppressMessages(ask(permutations = 2))), NA
  )
  expect_output(
    print(suppressMessages(ask(permutations = 2))), "pairs, by permutation"
  )
})
