alternatives <- c("greater", "less", "two.sided")

# Returns the largest difference from cor.test() over all alternatives.
from_cor_test <- function(x, y, method, ties = NULL) {
  max(vapply(alternatives, function(alternative) {
    known <- suppressWarnings(stats::cor.test(
      x, y, alternative = alternative, method = method
    ))
    found <- correlation_p_value(
      known$estimate[[1]], length(x), 0, method, alternative, ties
    )
    abs(found - known$p.value)
  }, 0))
}

test_that("Pearson's is cor.test()'s, also far out in the tail", {
  set.seed(1)
  for (num in c(3, 4, 10, 100, 2000)) {
    x <- rnorm(num)
    expect_lt(from_cor_test(x, rnorm(num), "pearson"), 1e-12)
    expect_lt(from_cor_test(x, -x + rnorm(num) / 2, "pearson"), 1e-12)
  }
  x <- rnorm(300)
  known <- stats::cor.test(x, x + rnorm(300) / 3)
  found <- correlation_p_value(
    known$estimate[[1]], 300, 0, "pearson", "two.sided"
  )
  expect_lt(known$p.value, 1e-100)
  expect_equal(found, known$p.value, tolerance = 1e-9)
})

test_that("Spearman's is cor.test()'s where that is exact", {
  set.seed(2)
  for (num in 2:9) {
    worst <- vapply(1:3, function(times) {
      x <- sample(num)
      max(
        from_cor_test(x, sample(num), "spearman"),
        from_cor_test(x, x + rnorm(num, sd = num / 8), "spearman")
      )
    }, 0)
    expect_lt(max(worst), 1e-12)
    x <- seq_len(num)
    expect_lt(from_cor_test(x, x, "spearman"), 1e-12)
    expect_lt(from_cor_test(x, rev(x), "spearman"), 1e-12)
  }
})

test_that("Spearman's is exact for up to 21 samples, in the far tail, too", {
  for (num in c(10, 11)) {
    r <- 1 - 6 * seq(0, (num^3 - num) / 3, by = 2) / (num^3 - num)
    for (alternative in alternatives) {
      expect_equal(
        correlation_p_value(r, num, 0, "spearman", alternative),
        naive_spearman_p(r, num, alternative), tolerance = 1e-12
      )
    }
  }
  for (num in 10:21) {
    counts <- spearman_counts(num)
    r <- 1 - 12 * (seq_along(counts) - 1) / (num^3 - num)
    # Counts above 18 samples are rounded.
    expect_equal(
      sum(counts), factorial(num), tolerance = if (num > 18) 1e-14 else 0
    )
    moment <- function(power) sum(r^power * counts) / factorial(num)
    expect_equal(moment(2), 1 / (num - 1))
    # David, Kendall and Stuart (1951) give the fourth moment.
    expect_equal(
      moment(4), 3 * (25 * num^3 - 38 * num^2 - 35 * num + 72) /
        (25 * num * (num + 1) * (num - 1)^3)
    )
    expect_equal(
      correlation_p_value(1, num, 0, "spearman", "greater"), 1 / factorial(num)
    )
  }
})

# Estimates P(R >= r) by permutations that prefer large R, and their weights.
# `tilt` is the strength of this preference.
tail_by_sampling <- function(r, num, tilt, times) {
  score <- seq_len(num) - (num + 1) / 2
  score <- score / sqrt(sum(score^2))
  free <- matrix(1, times, num)
  weight <- rep(1, times)
  found <- double(times)
  for (place in order(-abs(score))) {
    chance <- exp(tilt * num * score[[place]] * score)
    below <- t(apply(free * rep(chance, each = times), 1, cumsum))
    drawn <- stats::runif(times) * below[, num]
    taken <- pmin(rowSums(below < drawn) + 1, num)
    weight <- weight * below[, num] / chance[taken] / rowSums(free)
    found <- found + score[[place]] * score[taken]
    free[cbind(seq_len(times), taken)] <- 0
  }
  values <- weight * (found >= r - 1e-9)
  c(mean(values), stats::sd(values) / sqrt(times))
}

test_that("beyond, Spearman's is between the exact one and not much more", {
  for (num in 14:21) {
    counts <- spearman_counts(num)
    r <- 1 - 12 * (seq_along(counts) - 1) / (num^3 - num)
    exact <- cumsum(counts) / factorial(num)
    ratio <- spearman_beta(r, num) / exact
    expect_gte(min(ratio[exact <= 0.5]), 1)
    expect_gte(min(ratio), 1 - 1e-4)
    expect_lte(max(ratio[exact >= 1e-4]), 2)
    expect_lte(max(ratio[exact >= 1e-6]), 20)
  }
  withr::local_seed(7)
  for (tail in list(c(0.6, 0.9, 1.2), c(0.75, 1.5, 2), c(0.85, 2.1, 20))) {
    r <- 1 - 12 * round((25^3 - 25) * (1 - tail[[1]]) / 12) / (25^3 - 25)
    sampled <- tail_by_sampling(r, 25, tail[[2]], 4000)
    expect_lt(sampled[[2]] / sampled[[1]], 0.1)
    p <- correlation_p_value(r, 25, 0, "spearman", "greater")
    expect_gte(p, sampled[[1]] - 4 * sampled[[2]])
    expect_lte(p, tail[[3]] * (sampled[[1]] + 4 * sampled[[2]]))
  }
  for (num in c(22, 100, 200)) {
    expect_gte(
      correlation_p_value(1, num, 0, "spearman", "greater"),
      exp(-lgamma(num + 1))
    )
  }
  # Student's t is its limit.
  r <- (0:6) / sqrt(5000 - 1)
  p <- correlation_p_value(r, 5000, 0, "spearman", "greater")
  expect_equal(p / r_to_p(r, 5000 - 2, "greater"), rep(1, 7), tolerance = 0.02)
  expect_equal(correlation_p_value(-r, 5000, 0, "spearman", "less"), p)
})

test_that("Spearman's with ties is cor.test()'s, told of them or not", {
  set.seed(3)
  for (num in c(6, 9, 12, 40)) {
    worst <- vapply(1:10, function(times) {
      x <- sample(c(1, 1, 2, 5), num, replace = TRUE)
      y <- if (times %% 2) rnorm(num) else round(rnorm(num))
      if (length(unique(x)) == 1 || length(unique(y)) == 1) {
        return(0)
      }
      # At 0, r shows no ties.
      told <- times %% 2 == 0 || abs(stats::cor(rank(x), rank(y))) < 1e-12
      max(
        from_cor_test(x, y, "spearman", ties = TRUE),
        if (!told) from_cor_test(x, y, "spearman")
      )
    }, 0)
    expect_lt(max(worst), 1e-12)
  }
  expect_identical(
    rows_with_ties(rbind(c(1, 2, 1), c(3, 1, 2), 7)), c(TRUE, FALSE, TRUE)
  )
})

test_that("what permutations are counted are all of them", {
  for (num in 2:7) {
    all <- permutations_of(num)
    sums <- colSums((all - seq_len(num))^2)
    most <- (num^3 - num) / 3
    expect_identical(
      as.integer(spearman_counts(num)),
      tabulate(sums / 2 + 1, nbins = most / 2 + 1)
    )
  }
  expect_identical(sum(spearman_counts(9)), factorial(9))
})

test_that("no order of ranks is rarer than one of n!", {
  for (ties in list(NULL, TRUE, FALSE)) {
    p <- correlation_p_value(c(1, -1), 7, 0, "spearman", "two.sided", ties)
    expect_gte(min(p), 1 / factorial(7) * (1 - 1e-12))
  }
  expect_identical(correlation_p_value(1, 7, 0, "pearson", "greater"), 0)
})

test_that("p-values of ranks with gaps are not too small", {
  # All gaps of one side, and all orders: 6 of 7 or 8 samples are common.
  orders <- permutations_of(6)
  for (num in 7:8) {
    p <- unlist(apply(utils::combn(num, 6), 2, function(ranks) {
      r <- stats::cor(matrix(ranks[orders], 6), 1:6)
      correlation_p_value(drop(r), 6, 0, "spearman", "greater", FALSE)
    }))
    share <- vapply(sort(unique(p)), function(level) {
      mean(p <= level) / level
    }, 0)
    expect_lte(max(share), 1)
    # Some orders of ranks with gaps have the smallest possible p-value.
    expect_lt(min(p), 10 / factorial(6))
  }
})

test_that("each correlation may have a number of samples of its own", {
  r <- c(0.5, -0.2, NA, 0.5)
  num <- c(12, 30, 5, 9)
  for (metric in c("pearson", "spearman", "bicor")) {
    for (alternative in alternatives) {
      expect_identical(
        correlation_p_value(r, num, 0, metric, alternative),
        vapply(1:4, function(at) {
          correlation_p_value(r[[at]], num[[at]], 0, metric, alternative)
        }, 0)
      )
    }
  }
})

test_that("covariates take degrees of freedom, as in lm()", {
  set.seed(4)
  covariates <- matrix(rnorm(3 * 20), 20)
  x <- rnorm(20)
  y <- x + rnorm(20)
  fit <- summary(stats::lm(y ~ x + covariates))$coefficients
  residual <- function(values) stats::residuals(stats::lm(values ~ covariates))
  r <- stats::cor(residual(x), residual(y))
  expect_equal(
    correlation_p_value(r, 20, 3, "pearson", "two.sided"),
    fit["x", "Pr(>|t|)"], tolerance = 1e-12
  )
  # After adjustment, ranks are no longer ranks.
  expect_identical(
    correlation_p_value(r, 20, 3, "spearman", "less"),
    correlation_p_value(r, 20, 3, "pearson", "less")
  )
})

test_that("with weights it is lm()'s of these weights", {
  set.seed(5)
  x <- rnorm(15)
  y <- rnorm(15) + x / 3
  weights <- rexp(15)
  r <- stats::cov.wt(cbind(x, y), weights, cor = TRUE)$cor[1, 2]
  fit <- summary(stats::lm(y ~ x, weights = weights))$coefficients
  expect_equal(
    correlation_p_value(r, 15, 0, "pearson", "two.sided"),
    fit["x", "Pr(>|t|)"], tolerance = 1e-12
  )
})

test_that("bicor's is WGCNA's", {
  skip_if_not_installed("WGCNA")
  set.seed(6)
  x <- matrix(rnorm(25 * 6), 25)
  for (alternative in alternatives) {
    known <- WGCNA::bicorAndPvalue(x[, 1], x[, 2:6], alternative = alternative)
    expect_equal(
      correlation_p_value(drop(known$bicor), 25, 0, "bicor", alternative),
      drop(known$p), tolerance = 1e-12, ignore_attr = TRUE
    )
  }
})

test_that("without degrees of freedom there is no p-value", {
  expect_identical(
    correlation_p_value(c(1, -1), 2, 0, "pearson", "two.sided"),
    c(NA_real_, NA_real_)
  )
  expect_identical(
    correlation_p_value(0.3, 10, 8, "pearson", "greater"), NA_real_
  )
  expect_identical(
    correlation_p_value(c(1, -1), 9, 0, "pearson", "greater"), c(0, 1)
  )
})

test_that("the sign of a search says what is tested", {
  expect_identical(alternative_of_sign("signed"), "greater")
  expect_identical(alternative_of_sign("absolute"), "two.sided")
  expect_identical(alternative_of_sign("negative"), "less")
})
