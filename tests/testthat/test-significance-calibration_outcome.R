# The short form of inst/bench/calibration_outcome.R. The bounds hold except in
# about one run of 10,000, and the seed is fixed.

num_sets <- if (is_long()) 120 else 60

modules <- function(num_samples, num_points = 40) {
  common <- matrix(stats::rnorm(4 * num_samples), 4)
  sqrt(0.8) * common[rep(1:4, each = num_points / 4), ] +
    sqrt(0.2) * matrix(stats::rnorm(num_points * num_samples), num_points)
}

# Returns the p_value of the last point, the smallest p_adjusted, and whether
# any point is significant.
calibrate <- function(design, seed, num_sets, permutations = 59) {
  set.seed(seed)
  sets <- vapply(seq_len(num_sets), function(set) {
    data <- design()
    found <- do.call(nearest_to, c(data, list(
      k = nrow(data$x), permutations = permutations, backend = "cpu"
    )))
    c(
      p_value = found$p_value[found$index == nrow(data$x)],
      first = found$p_adjusted[[1]] - stats::runif(1) / (permutations + 1),
      family = found$p_adjusted[[1]] <= 0.05
    )
  }, c(0, 0, 0))
  uniform <- function(p) stats::ks.test(p, "punif")$p.value
  list(
    p_value = uniform(sets["p_value", ]), first = uniform(sets["first", ]),
    family = sum(sets["family", ])
  )
}

expect_calibrated <- function(design, seed) {
  found <- calibrate(design, seed, num_sets)
  expect_gt(found$p_value, 1e-4)
  expect_gt(found$first, 1e-4)
  expect_lte(found$family, stats::qbinom(1 - 1e-4, num_sets, 0.05))
}

test_that("p-values are uniform where nothing has to do with the outcome", {
  expect_calibrated(function() {
    list(x = modules(15), outcome = stats::rnorm(15))
  }, 1)
  expect_calibrated(function() {
    list(
      x = matrix(stats::rnorm(600), 40), outcome = rep(0:1, c(7, 8)),
      sign = "absolute"
    )
  }, 2)
})

test_that("strata keep batches from counting as outcome", {
  batches <- function(strata) {
    batch <- rep(1:3, c(5, 6, 7))
    data <- list(
      x = modules(18) + 2 * matrix(stats::rnorm(120), 40)[, batch],
      outcome = stats::rnorm(18) + 3 * batch
    )
    c(data, if (strata) list(strata = batch))
  }
  found <- calibrate(function() batches(TRUE), 3, num_sets)
  expect_gt(found$first, 1e-4)
  expect_lte(found$family, stats::qbinom(1 - 1e-4, num_sets, 0.05))
  # Without strata, most data sets have a significant point.
  expect_gt(calibrate(function() batches(FALSE), 4, 30)$family, 15)
})

test_that("strata that shift all, beside a covariate, are adjusted for", {
  expect_calibrated(function() {
    batch <- rep(1:3, c(7, 8, 9))
    list(
      x = modules(24) + 2 * matrix(stats::rnorm(120), 40)[, batch],
      outcome = stats::rnorm(24) + 2 * batch,
      adjust = stats::rnorm(24) + batch, strata = batch
    )
  }, 6)
})

test_that("survival with censoring is calibrated", {
  skip_if_not_installed("survival")
  expect_calibrated(function() {
    event <- stats::rexp(40)
    end <- stats::rexp(40, 0.7)
    list(
      x = modules(40), outcome = survival::Surv(pmin(event, end), event <= end),
      sign = "absolute"
    )
  }, 5)
})
