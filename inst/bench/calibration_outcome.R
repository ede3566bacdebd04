# Are the p-values of nearest_to() what they say? Data sets in which no point
# has to do with the outcome, and some in which few have: see designs.
#
#   Rscript inst/bench/calibration_outcome.R [DATA SETS] [CORES] [FOLDER]
#     [--only=TEXT]
#
# prints a table, and stores it in FOLDER as calibration-outcome.csv
# (calibrate() in harness.R).
#
# Ranks are not linear in ranks of what the values are linear in: so where
# covariates are much of points and outcome, something of them stays, and
# Spearman's correlation finds it.
#
# In the table, of each design:
#   p_value   the p-value of Kolmogorov and Smirnov's test that those of one
#             point, chosen in advance, are uniform
#   first     the same of the smallest p_adjusted of each data set, which is
#             uniform where no point has to do with the outcome; as it goes by
#             steps of 1 / (B + 1), a share of one step, drawn, is taken off
#   family    the share of data sets in which a point that has nothing to do
#             with the outcome has p_adjusted <= 0.05
#   any_fdr   the share in which any such point has fdr <= 0.05: with strata,
#             which it knows nothing of, that is most; and where others are
#             called, a false one among twenty of them is as it should be
#   found     of the points that have to do with it, the share with p_adjusted
#             <= 0.05

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

num_points <- 100
permutations <- 199

# Modules of some points with r = 0.8 within each, or independent points.
draw <- function(num_samples, module_size = 20) {
  draw_points(num_points, num_samples, module_size, 0.8)
}

censored <- function(num_samples, hazard = 0) {
  event <- rexp(num_samples, exp(hazard))
  end <- rexp(num_samples, 0.7)
  survival::Surv(pmin(event, end), event <= end)
}

# A batch and eight numbers that go into points and outcome.
draw_covariates <- function(num_samples) {
  data.frame(
    batch = factor(sample(rep(1:2, length.out = num_samples))),
    matrix(rnorm(8 * num_samples), num_samples)
  )
}

confounded <- function(num_samples, ...) {
  covariates <- draw_covariates(num_samples)
  design <- model.matrix(~ ., covariates)[, -1]
  x <- draw(num_samples, ...) +
    matrix(rnorm(num_points * 9), num_points) %*% t(design)
  list(
    x = x, outcome = drop(design %*% rnorm(9)) + rnorm(num_samples),
    adjust = covariates
  )
}

# Batches (pairs of samples, or three of some size) that shift all points, the
# outcome and a covariate.
shifted <- function(batch) {
  shift <- rnorm(max(batch), sd = 2)
  points <- matrix(rnorm(max(batch) * num_points), num_points)
  list(
    x = draw(length(batch)) + 2 * points[, batch],
    outcome = rnorm(length(batch)) + shift[batch],
    adjust = rnorm(length(batch)) + rnorm(max(batch))[batch], strata = batch
  )
}

few_samples <- function() {
  outcome <- rnorm(40)
  x <- draw(40, 1)
  x[1, ] <- x[1, ] + 2 * outcome
  for (row in 2:num_points) {
    x[row, sample(40, 35)] <- NA
  }
  list(x = x, outcome = outcome, na = "pairwise", min_pairs = 5, true = 1)
}

ten_outcomes <- function(family) {
  list(
    x = draw(20), outcome = as.data.frame(matrix(rnorm(200), 20)),
    family = family
  )
}

# Modules are judged in place of points.
of_modules <- function(data) c(data, list(clusters = rep(1:5, each = 20)))

# Samples of standard deviation 1 / root.
weighted <- function(kind, root = rep(1, 30)) {
  list(
    x = draw(30, 1) / rep(root, each = num_points), outcome = rnorm(30) / root,
    weights = stats::setNames(list(rep(c(1, 1, 20), 10)), kind)
  )
}

# Each gives x, outcome, further arguments, and `true`, the points that have to
# do with the outcome. With `clusters`, module_summary() is asked.
designs <- list(
  "independent points, 20 samples" = function() {
    list(x = draw(20, 1), outcome = rnorm(20))
  },
  "modules, 20 samples" = function() {
    list(x = draw(20), outcome = rnorm(20))
  },
  "modules, |r|" = function() {
    list(x = draw(20), outcome = rnorm(20), sign = "absolute")
  },
  "modules, -r, two groups of 6 and 8" = function() {
    list(
      x = draw(14), outcome = rep(c(TRUE, FALSE), c(6, 8)),
      sign = "negative", statistic = "correlation"
    )
  },
  "modules, Spearman, heavy tails" = function() {
    x <- draw(20) / rep(sqrt(rchisq(20, 2) / 2), each = num_points)
    list(x = x, outcome = rcauchy(20), metric = "spearman")
  },
  "modules, bicor" = function() {
    list(x = draw(40), outcome = rnorm(40), metric = "bicor")
  },
  "modules, Euclidean" = function() {
    list(x = draw(20), outcome = rnorm(20), metric = "euclidean")
  },
  "modules, weights of 1 to 5" = function() {
    list(
      x = draw(30), outcome = rnorm(30),
      weights = list(sampling = 1 + 4 * runif(30))
    )
  },
  "weights 1, 1, 20 of samples of equal variance, as sampling" = function() {
    weighted("sampling")
  },
  "weights 1, 1, 20 of samples of equal variance, as precision" = function() {
    weighted("precision")
  },
  "weights 1, 1, 20, precisions, as precision" = function() {
    weighted("precision", root = sqrt(rep(c(1, 1, 20), 10)))
  },
  "weights 1, 1, 20, precisions, as sampling" = function() {
    weighted("sampling", root = sqrt(rep(c(1, 1, 20), 10)))
  },
  "modules, a tenth of the values missing" = function() {
    x <- draw(30)
    x[sample(length(x), length(x) / 10)] <- NA
    list(x = x, outcome = rnorm(30), na = "pairwise", min_pairs = 10)
  },
  "modules, a tenth of the values missing, Spearman" = function() {
    x <- draw(16)
    x[sample(length(x), length(x) / 10)] <- NA
    list(
      x = x, outcome = rnorm(16), na = "pairwise", min_pairs = 5,
      metric = "spearman"
    )
  },
  "points with 5 of 40 samples, Spearman, and one with all that follows" =
    function() c(few_samples(), metric = "spearman"),
  "points with 5 of 40 samples, and one with all that follows" = function() {
    few_samples()
  },
  "modules, three batches that shift all, strata" = function() {
    batch <- rep(1:3, c(8, 10, 12))
    x <- draw(30) + matrix(rnorm(3 * num_points), num_points)[, batch]
    list(x = x, outcome = rnorm(30) + 2 * batch, strata = batch)
  },
  "the same without strata" = function() {
    batch <- rep(1:3, c(8, 10, 12))
    x <- draw(30) + matrix(rnorm(3 * num_points), num_points)[, batch]
    list(x = x, outcome = rnorm(30) + 2 * batch)
  },
  "modules, three batches that shift all and a covariate, strata" = function() {
    shifted(rep(1:3, c(8, 10, 12)))
  },
  "modules, 15 pairs that differ in all and a covariate, strata" = function() {
    shifted(rep(1:15, 2))
  },
  "modules, batches of standard deviations 1, 1, 5, strata and a covariate" =
    function() {
      batch <- rep(1:3, each = 10)
      spread <- c(1, 1, 5)[batch]
      list(
        x = draw(30) * rep(spread, each = num_points),
        outcome = rnorm(30) * spread, adjust = rnorm(30), strata = batch
      )
    },
  "module_summary(), three batches that shift all and a covariate, strata" =
    function() of_modules(shifted(rep(1:3, c(8, 10, 12)))),
  "module_summary(), three levels, a tenth of the outcome missing" =
    function() {
      outcome <- factor(sample(rep(letters[1:3], c(6, 9, 15))))
      outcome[sample(30, 3)] <- NA
      of_modules(list(x = draw(30), outcome = outcome))
    },
  "modules, ten outcomes" = function() ten_outcomes("outcome"),
  "modules, ten outcomes, one family" = function() ten_outcomes("call"),
  "modules, survival, 60 samples, 2 of 5 censored" = function() {
    list(x = draw(60), outcome = censored(60), sign = "absolute")
  },
  "modules, 30 samples, 9 covariates adjusted for" = function() {
    confounded(30)
  },
  "independent points, 30 samples, 9 covariates adjusted for" = function() {
    confounded(30, 1)
  },
  "modules, 60 samples, Spearman, 9 covariates adjusted for" = function() {
    data <- c(confounded(60), metric = "spearman")
    data$outcome <- rcauchy(60)
    data
  },
  "the same, covariates in the outcome, too" = function() {
    c(confounded(60), metric = "spearman")
  },
  "modules, 60 samples, survival, 9 covariates adjusted for" = function() {
    data <- confounded(60)
    design <- model.matrix(~ ., data$adjust)[, -1]
    data$outcome <- censored(60, drop(design %*% rnorm(9)) / 4)
    data
  },
  "modules, of which one follows the outcome" = function() {
    outcome <- rnorm(40)
    x <- draw(40)
    x[1:20, ] <- x[1:20, ] + rep(outcome / 2, each = 20)
    list(x = x, outcome = outcome, true = 1:20)
  }
)

judge <- function(arguments) {
  if (is.null(arguments$clusters)) {
    return(do.call(nearest_to, c(arguments, k = num_points)))
  }
  found <- do.call(module_summary, arguments)$outcomes
  found$index <- found$module
  found
}

# One data set: p_value of the last point, the smallest p_adjusted, whether a
# point without anything is called, and the share of others that are.
one_set <- function(design) {
  data <- design()
  true <- data$true
  data$true <- NULL
  found <- suppressMessages(judge(c(data, list(
    permutations = permutations, backend = "cpu", num_threads = 1
  ))))
  null <- !found$index %in% true
  called <- found$p_adjusted <= 0.05
  has_p <- !is.null(found$p_value)
  last <- which(found$index == max(found$index))[[1]]
  c(
    p_value = if (has_p) found$p_value[[last]] else NA,
    first = min(found$p_adjusted) - runif(1) / (permutations + 1),
    family = any(called & null),
    any_fdr = if (has_p) any(found$fdr <= 0.05 & null) else NA,
    found = mean(called[!null])
  )
}

uniform <- function(p) {
  if (anyNA(p)) NA else suppressWarnings(stats::ks.test(p, "punif"))$p.value
}

row_of <- function(sets, ...) {
  sets <- do.call(rbind, sets)
  share <- function(of) mean(sets[, of])
  data.frame(
    p_value = uniform(sets[, "p_value"]),
    first = if (is.nan(share("found"))) uniform(sets[, "first"]) else NA,
    family = share("family"), any_fdr = share("any_fdr"),
    found = share("found"), points = num_points, permutations = permutations
  )
}

calibrate("calibration-outcome.csv", designs, one_set, row_of)
