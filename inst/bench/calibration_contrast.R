# Are the p-values of compare_neighbours() what they say? Data sets in which the
# null holds, and some in which it does not: see simulations().
#
#   Rscript inst/bench/calibration_contrast.R [DATA SETS] [CORES] [FOLDER]
#     [--only=TEXT]
#
# prints a table, and stores it in FOLDER as calibration-contrast.csv
# (calibrate() in harness.R): shares of data sets whose p-value is at most so
# much, of point 1, of its edges, and of any point or edge. There are 60 points,
# k = 5, and 99 permutations.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

num_points <- 60
k <- 5
permutations <- 99

# Modules of 20 points with r = 0.6 within each, or independent points.
draw <- function(num_samples, module_size = 20) {
  draw_points(num_points, num_samples, module_size, 0.6)
}

two_groups <- function(n_1, n_2) rep(1:2, c(n_1, n_2))

# A stratum of twice the standard deviation of noise above the other. Noise in
# the second group has `spread`.
shifted_alike <- function(spread) {
  groups <- two_groups(20, 20)
  strata <- c(rep(1:2, c(14, 6)), rep(1:2, c(6, 14)))
  noise <- draw(40) * rep(c(1, spread)[groups], each = num_points)
  list(
    x = noise + rep(2 * (strata == 2), each = num_points), groups = groups,
    strata = strata
  )
}

# Strata of so many samples of each group, whose noise has `spread` in the
# second group.
small_strata <- function(num_strata, size, spread = 1, ..., module_size = 20) {
  groups <- rep(rep(1:2, each = size), num_strata)
  noise <- draw(length(groups), module_size)
  list(
    x = noise * rep(c(1, spread)[groups], each = num_points),
    groups = groups, strata = rep(seq_len(num_strata), each = 2 * size), ...
  )
}

# Means of 1 to 9 measurements, more of them in the second group.
means_of_measurements <- function(...) {
  sizes <- c(rep(1:4, 5), rep(c(2, 5, 7, 9), 5))
  list(
    x = draw(40) / rep(sqrt(sizes), each = num_points),
    groups = two_groups(20, 20), weights = list(precision = sizes), ...
  )
}

# Each gives x, groups, and perhaps strata, covariates, weights and a metric.
simulations <- list(
  "independent points" = function() {
    list(x = draw(40, 1), groups = two_groups(20, 20))
  },
  "modules" = function() {
    list(x = draw(40), groups = two_groups(20, 20))
  },
  "modules, other means" = function() {
    groups <- two_groups(20, 20)
    shift <- rnorm(num_points, sd = 3)
    list(x = draw(40) + outer(shift, groups == 2), groups = groups)
  },
  "modules, other means and spreads, 14 and 28 samples" = function() {
    groups <- two_groups(14, 28)
    scale <- exp(rnorm(num_points))
    x <- draw(42)
    x[, groups == 2] <- x[, groups == 2] * scale + 3 * scale
    list(x = x, groups = groups)
  },
  "modules, heavy tails (t, 3 degrees of freedom)" = function() {
    x <- draw(40) / rep(sqrt(rchisq(40, 3) / 3), each = num_points)
    list(x = x, groups = two_groups(20, 20))
  },
  "the same, Spearman" = function() {
    x <- draw(40) / rep(sqrt(rchisq(40, 3) / 3), each = num_points)
    list(x = x, groups = two_groups(20, 20), metric = "spearman")
  },
  "modules, 6 and 6 samples" = function() {
    list(x = draw(12), groups = two_groups(6, 6))
  },
  "modules, strata that shift, unevenly mixed" = function() {
    groups <- two_groups(20, 20)
    strata <- c(rep(1:2, c(14, 6)), rep(1:2, c(6, 14)))
    shift <- rnorm(num_points)
    x <- draw(40) + outer(shift, strata == 2) +
      outer(rnorm(num_points), groups == 2)
    list(x = x, groups = groups, strata = strata)
  },
  "modules, strata that shift all points alike, unevenly mixed" = function() {
    shifted_alike(1)
  },
  "modules, strata that shift all points alike, groups of spread 1 and 3" =
    function() shifted_alike(3),
  "modules, strata of standard deviations 1 and 4, 5 and 1 in 6 and 6 samples" =
    function() {
      strata <- rep(c(1, 2, 1, 2), c(5, 1, 1, 5))
      list(
        x = draw(12) * rep(c(1, 4)[strata], each = num_points),
        groups = two_groups(6, 6), strata = strata
      )
    },
  "independent points, 15 pairs as strata, groups of spread 1 and 3" =
    function() small_strata(15, 1, 3, module_size = 1),
  "independent points, 8 strata of 2 and 2, groups of spread 1 and 3" =
    function() small_strata(8, 2, 3, module_size = 1),
  "independent points, 2 strata of 10 and 10, groups of spread 1 and 3" =
    function() small_strata(2, 10, 3, module_size = 1),
  "modules, 15 pairs as strata" = function() small_strata(15, 1),
  "modules, 15 pairs as strata, groups of spread 1 and 3" =
    function() small_strata(15, 1, 3),
  "modules, 8 strata of 2 and 2, groups of spread 1 and 3" =
    function() small_strata(8, 2, 3),
  "modules, 4 strata of 4 and 4, groups of spread 1 and 3" =
    function() small_strata(4, 4, 3),
  "modules, 2 strata of 10 and 10, groups of spread 1 and 3" =
    function() small_strata(2, 10, 3),
  "modules, 8 strata of 2 and 2, adjusted for strata" =
    function() small_strata(8, 2, adjust = ~ 1),
  "modules, 8 strata of 2 and 2, spread 1 and 3, adjusted for strata" =
    function() small_strata(8, 2, 3, adjust = ~ 1),
  "modules, strata that shift alike, spread 1 and 3, adjusted for strata" =
    function() c(shifted_alike(3), list(adjust = ~ 1)),
  "modules, six covariates, 16 and 16" = function() {
    list(
      x = draw(32), groups = two_groups(16, 16),
      adjust = matrix(rnorm(6 * 32), 32)
    )
  },
  "modules, strata of standard deviations 1 and 4, unevenly mixed" =
    function() {
      strata <- c(rep(1:2, c(14, 6)), rep(1:2, c(6, 14)))
      list(
        x = draw(40) * rep(c(1, 4)[strata], each = num_points),
        groups = two_groups(20, 20), strata = strata
      )
    },
  "the same, with shifts and a covariate" = function() {
    strata <- c(rep(1:2, c(14, 6)), rep(1:2, c(6, 14)))
    age <- rnorm(40) + strata
    x <- draw(40) * rep(c(1, 4)[strata], each = num_points) +
      outer(rnorm(num_points), strata == 2) + outer(rnorm(num_points), age)
    list(x = x, groups = two_groups(20, 20), strata = strata,
         adjust = cbind(age))
  },
  "modules, two covariates with other effects in each group, 10 and 12" =
    function() {
      groups <- two_groups(10, 12)
      covariates <- matrix(rnorm(2 * 22), 22)
      x <- draw(22)
      for (group in 1:2) {
        at <- groups == group
        effects <- matrix(rnorm(2 * num_points), num_points)
        x[, at] <- x[, at] + effects %*% t(covariates[at, ])
      }
      list(x = x, groups = groups, adjust = covariates)
    },
  "modules, precisions" = function() means_of_measurements(),
  "modules, precisions and a covariate" = function() {
    means_of_measurements(adjust = cbind(rnorm(40)))
  },
  "modules, sampling weights 1, 1, 20" = function() {
    list(
      x = draw(40), groups = two_groups(20, 20),
      weights = list(sampling = rep_len(c(1, 1, 20), 40))
    )
  },
  "modules, lognormal values" = function() {
    list(x = exp(draw(40)), groups = two_groups(20, 20))
  },
  "planted: one edge, beside points that are constant in a group of a stratum" =
    function() {
      # Only the first stratum has both groups.
      strata <- rep(c(1, 2, 1), c(10, 20, 30))
      groups <- two_groups(30, 30)
      x <- draw(60, 1)
      x[1, 31:60] <- x[2, 31:60] + 0.2 * x[1, 31:60]
      x[51:60, 1:10] <- 0
      list(x = x, groups = groups, strata = strata)
    },
  "planted: the first module is gone in group 2" = function() {
    x <- draw(80)
    x[1:20, 41:80] <- rnorm(20 * 40)
    list(x = x, groups = two_groups(40, 40))
  },
  "planted: ten of it join the second module" = function() {
    x <- draw(80)
    x[1:10, 41:80] <- sqrt(0.6) * rep(colMeans(x[21:40, 41:80]), each = 10) +
      sqrt(0.4) * rnorm(10 * 40)
    list(x = x, groups = two_groups(40, 40))
  }
)

# One data set: p-values of point 1 and of its edge that changes most, and the
# smallest family-wise ones.
one_set <- function(simulate) {
  data <- simulate()
  # Some designs have a message for each data set.
  found <- suppressMessages(compare_neighbours(
    data$x, data$groups, k = k, permutations = permutations,
    strata = data$strata, metric = c(data$metric, "pearson")[[1]],
    adjust = data$adjust, weights = data$weights, backend = "cpu",
    num_threads = 1
  ))
  points <- found$points
  edges <- found$edges
  c(
    point = points$p_value[[1]],
    edge = min(edges$p_value[edges$from == 1]),
    any_point = min(points$p_adjusted), any_edge = min(edges$p_adjusted)
  )
}

what <- c(
  point = "point: p_value", edge = "point: smallest p_value of its edges",
  any_point = "any point: p_adjusted", any_edge = "any edge: p_adjusted"
)
levels <- c(0.01, 0.05, 0.2, 0.5)

row_of <- function(sets, ...) {
  p <- do.call(rbind, sets)
  shares <- vapply(levels, function(level) colMeans(p <= level), double(4))
  # Family-wise p-values are not uniform but where all points are one.
  shares[startsWith(rownames(shares), "any"), levels != 0.05] <- NA
  colnames(shares) <- paste0("at_", levels)
  data.frame(what = what[rownames(shares)], shares, check.names = FALSE)
}

calibrate("calibration-contrast.csv", simulations, one_set, row_of)
