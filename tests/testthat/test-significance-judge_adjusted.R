# Significance of nearest points after adjustment for covariates.

# Follows Freedman and Lane (1983): residuals are permuted and adjusted again.
naive_adjusted_for <- function(x, outcome, covariates, k, drawn,
                               ranked = FALSE) {
  residuals_of <- function(values) {
    stats::residuals(stats::lm(values ~ covariates))
  }
  if (ranked) {
    x <- t(apply(x, 1, rank))
    outcome <- rank(outcome)
  }
  rows <- apply(x, 1, residuals_of)
  distance_of <- function(values) 1 - drop(stats::cor(rows, values))
  own <- residuals_of(outcome)
  observed <- distance_of(own)
  order <- order(observed)
  null <- apply(drawn, 2, function(by) {
    values <- own[by]
    if (ranked) {
      values <- rank(round(values + outcome - own, 9))
    }
    distance_of(residuals_of(values))
  })
  p <- vapply(seq_len(k), function(rank) {
    rest <- setdiff(seq_along(order), utils::head(order, rank - 1))
    best <- apply(null[rest, , drop = FALSE], 2, min)
    (sum(best <= observed[order[[rank]]]) + 1) / (ncol(drawn) + 1)
  }, 0)
  list(index = order[seq_len(k)], p = cummax(p), null = apply(null, 2, min))
}

test_that("with covariates residuals are permuted, and adjusted again", {
  data <- followed(num_samples = 18)
  set.seed(13)
  covariates <- data.frame(
    age = stats::rnorm(18), batch = factor(sample(rep(1:3, 6)))
  )
  x <- data$x + outer(stats::rnorm(60), 2 * covariates$age)
  outcome <- data$outcome + covariates$age
  for (backend in backends_here()) {
    for (metric in c("pearson", "spearman")) {
      ranked <- metric == "spearman"
      set.seed(14)
      found <- nearest_to(
        x, k = 6, metric = metric, outcome = outcome, permutations = 60,
        adjust = covariates, backend = backend
      )
      age <- if (ranked) rank(covariates$age) else covariates$age
      design <- stats::model.matrix(~ age + covariates$batch)[, -1]
      known <- naive_adjusted_for(
        x, outcome, design, 6, drawn_by(14, 18, 60), ranked
      )
      expect_identical(found$index, known$index)
      expect_equal(found$p_adjusted, known$p)
      expect_equal(drop(attr(found, "null")), known$null, tolerance = 1e-10)
      if (!ranked) {
        slopes <- vapply(found$index, function(at) {
          fit <- stats::lm(outcome ~ x[at, ] + design)
          stats::pt(summary(fit)$coefficients[2, 3], 18 - 5, lower.tail = FALSE)
        }, 0)
        expect_equal(found$p_value, slopes, tolerance = 1e-10)
      }
    }
  }
})

test_that("strata are among the covariates", {
  data <- followed(num_samples = 18)
  strata <- rep(c("u", "v", "w"), c(7, 6, 5))
  age <- drop(random_matrix(1, 18, seed = 19)) + (strata == "v")
  x <- data$x + outer(sin(1:60), 2 * (strata == "w"))
  outcome <- data$outcome + 2 * (strata == "u") + age
  design <- cbind(age, strata == "v", strata == "w")
  for (backend in backends_here()) {
    set.seed(14)
    found <- nearest_to(
      x, k = 6, outcome = outcome, permutations = 60, adjust = age,
      strata = strata, backend = backend
    )
    known <- naive_adjusted_for(
      x, outcome, design, 6, drawn_by(14, 18, 60, strata)
    )
    expect_identical(found$index, known$index)
    expect_equal(found$p_adjusted, known$p)
    expect_equal(drop(attr(found, "null")), known$null, tolerance = 1e-10)
    expect_identical(attr(found, "num_covariates"), 3L)
    slopes <- vapply(found$index, function(at) {
      fit <- stats::lm(outcome ~ x[at, ] + design)
      stats::pt(summary(fit)$coefficients[2, 3], 18 - 5, lower.tail = FALSE)
    }, 0)
    expect_equal(found$p_value, slopes, tolerance = 1e-10)
  }
  ask <- function(x, ...) {
    withr::with_seed(14, as.data.frame(nearest_to(
      x, k = 6, outcome = outcome, permutations = 60, strata = strata,
      backend = "cpu", ...
    )))
  }
  expected <- ask(x, adjust = age)
  # Strata that are covariates already count once.
  both <- data.frame(age, batch = strata)
  expect_equal(ask(x, adjust = both), expected)
  expect_equal(ask(knn_index(x, adjust = both, backend = "cpu")), expected)
  # Samples of weight 0 have no strata.
  more <- cbind(x, x[, 1:2])
  outcome <- c(outcome, 5, 6)
  strata <- c(strata, "u", "z")
  expect_equal(
    ask(more, adjust = c(age, 7, 9), weights = rep(1:0, c(18, 2))), expected
  )
})

test_that("strata that residuals can't be permuted in are errors", {
  x <- followed(num_samples = 12)$x
  strata <- rep(1:4, each = 3)
  plate <- rep(c(0, 1, 0, 1), each = 3)
  age <- cos(1:12)
  ask <- function(x, outcome, ...) {
    nearest_to(x, outcome = outcome, k = 3, permutations = 9, ...)
  }
  index <- knn_index(x, adjust = age, backend = "cpu")
  expect_messages({
    ask(x, plate, adjust = age, strata = strata)
    ask(x, list(years = sin(1:12), plate = plate), adjust = age,
        strata = strata)
    ask(x, sin(1:12), adjust = random_matrix(12, 6), strata = gl(6, 2))
    ask(index, sin(1:12), strata = strata)
    ask(knn_index(x, adjust = ~ 1, backend = "cpu"), sin(1:12), strata = strata)
  })
})

test_that("permuted residuals that covariates explain count as extreme", {
  # Each batch has two samples with opposite residuals. A permutation may put
  # equal ones in a batch, which leaves no residual.
  x <- random_matrix(20, 6, seed = 15)
  batch <- factor(rep(1:3, each = 2))
  for (backend in backends_here()) {
    options <- fsknn:::check_options(list(
      num_threads = 1, adjust = data.frame(batch), backend = backend
    ))
    search <- fsknn:::new_search(
      x, options, k = 3, outcome = c(1, -1, 1, -1, 0, 0), correlation = TRUE
    )
    drawn <- cbind(1:6, c(1, 3, 2, 4, 5, 6))
    judged <- fsknn:::judge_nearest(search, drawn)
    expect_equal(judged$null[1, ], judged$found$distance[, 1])
    expect_identical(judged$null[2, ], -Inf)
    expect_identical(judged$columns$p_adjusted, matrix(1, 1, 3))
  }
})

test_that("survival with covariates is Cox's model of these", {
  skip_if_not_installed("survival")
  set.seed(16)
  x <- random_matrix(20, 200, seed = 17)
  age <- stats::rnorm(200)
  time <- stats::rexp(200, exp(x[1, ] / 3 + age))
  end <- stats::rexp(200, 0.4)
  outcome <- survival::Surv(pmin(time, end), time <= end)
  found <- nearest_to(
    x, k = 20, outcome = outcome, adjust = ~ age, permutations = 0,
    sign = "absolute"
  )
  score <- vapply(found$index, function(at) {
    null <- survival::coxph(outcome ~ age)
    fit <- survival::coxph(
      outcome ~ age + x[at, ], init = c(stats::coef(null), 0),
      control = survival::coxph.control(iter.max = 0)
    )
    fit$score
  }, 0)
  expect_equal(
    log(found$p_value),
    stats::pchisq(score, 1, lower.tail = FALSE, log.p = TRUE),
    tolerance = 0.1
  )
})
