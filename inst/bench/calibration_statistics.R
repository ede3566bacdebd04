# Do permuted statistics hold their level where points and outcome depend on
# each other, but not in the mean? Groups of unequal variance, numbers on which
# the variance of points depends, and skewed values. What does the studentized
# statistic cost where variances are equal?
#
#   Rscript inst/bench/calibration_statistics.R [DATA SETS] [CORES] [FOLDER]
#     [--only=TEXT]
#
# prints a table, and stores it in FOLDER as calibration-statistics.csv
# (calibrate() in harness.R).
#
# In the table, of each design, shares of data sets at a level of 0.05:
#   one_r, one_t        in which a point chosen in advance, tested alone, has
#                       p_adjusted <= 0.05, with the statistic "correlation"
#                       and with "studentized"
#   family_r, family_t  in which any of the points with equal means has
#                       p_adjusted <= 0.05 (the family-wise error rate)
#   any_fdr_r, any_fdr_t  in which any such point has fdr <= 0.05
#   found_r, found_t    of the points whose means differ, the share with
#                       p_adjusted <= 0.05 (power)

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

num_points <- 2000
permutations <- 99

# Groups, whose samples have the given standard deviations. The first 20 points
# are shifted in the first group. `vary` has the degrees of freedom of scaled
# inverse chi-squared distributions, from which variances come: of each point,
# and of each point and group.
groups <- function(sizes, spreads, shift = 0, draw = rnorm, vary = NULL) {
  group <- rep(seq_along(sizes), sizes)
  x <- matrix(draw(num_points * length(group)), num_points) *
    rep(spreads[group], each = num_points)
  if (!is.null(vary)) {
    scale <- scales(vary[[1]], 1)[, rep(1, length(sizes))] *
      scales(vary[[2]], length(sizes))
    x <- x * scale[, group]
  }
  x[1:20, group == 1] <- x[1:20, group == 1] + shift
  list(
    x = x, outcome = factor(letters[group]),
    true = if (shift != 0) 1:20
  )
}

# Standard deviations of points (rows) around 1.
scales <- function(freedom, num) {
  if (freedom == Inf) {
    return(matrix(1, num_points, num))
  }
  sqrt(freedom / matrix(rchisq(num_points * num, freedom), num_points)) /
    exp((log(freedom / 2) - digamma(freedom / 2)) / 2)
}

# Three factors explain half of the variance of all points.
with_factors <- function(data) {
  num <- ncol(data$x)
  factors <- matrix(rnorm(3 * num), 3)
  loadings <- matrix(rnorm(3 * num_points), num_points) / sqrt(3)
  spread <- c(a = 3, b = 1)[as.character(data$outcome)]
  data$x <- data$x + loadings %*% factors * rep(spread, each = num_points)
  data
}

# Skewed values with mean 0.
lognormal <- function(num) exp(rnorm(num)) - exp(0.5)

# Points whose standard deviation depends on the outcome, or that follow it.
numbers <- function(num_samples, spread, slope = 0) {
  y <- rnorm(num_samples)
  x <- matrix(rnorm(num_points * num_samples), num_points) *
    rep(spread(y), each = num_points)
  x[1:20, ] <- x[1:20, ] + slope * rep(y, each = 20)
  list(x = x, outcome = y, true = if (slope != 0) 1:20)
}

# Two batches that shift all points, with other proportions of the groups.
batches <- function(spreads) {
  batch <- rep(1:2, each = 30)
  data <- groups(c(20, 40), spreads)
  order <- c(1:5, 21:45, 6:20, 46:60)
  data$x <- data$x[, order] +
    2 * matrix(rnorm(2 * num_points), num_points)[, batch]
  data$outcome <- data$outcome[order]
  c(data, list(strata = batch))
}

# Cells of 10 donors in each of two groups.
donors <- function(spreads, cells) {
  data <- groups(c(10, 10), spreads)
  unit <- rep(1:20, rep_len(cells, 20))
  list(
    x = data$x[, unit] +
      matrix(rnorm(num_points * length(unit)), num_points),
    outcome = data$outcome[unit], unit = unit
  )
}

with_age <- function(data) {
  age <- rnorm(ncol(data$x)) + (data$outcome == "a")
  data$x <- data$x + outer(rnorm(num_points), age)
  c(data, list(adjust = age))
}

# Each gives x, outcome, further arguments, and `true`, the points whose means
# differ.
designs <- list(
  "8 and 32, standard deviations 3 and 1" = function() {
    groups(c(8, 32), c(3, 1))
  },
  "8 and 32, standard deviations 1 and 3" = function() {
    groups(c(8, 32), c(1, 3))
  },
  "8 and 32, equal" = function() groups(c(8, 32), c(1, 1)),
  "20 and 20, standard deviations 3 and 1" = function() {
    groups(c(20, 20), c(3, 1))
  },
  "10 and 10, standard deviations 3 and 1" = function() {
    groups(c(10, 10), c(3, 1))
  },
  "10 and 10, equal" = function() groups(c(10, 10), c(1, 1)),
  "20 and 20, equal" = function() groups(c(20, 20), c(1, 1)),
  "8 and 32, standard deviations 3 and 1, points differ" = function() {
    groups(c(8, 32), c(3, 1), vary = c(4, Inf))
  },
  "8 and 32, standard deviations 3 and 1, points differ by group" =
    function() groups(c(8, 32), c(3, 1), vary = c(4, 10)),
  "20 and 20, standard deviations 3 and 1, points differ by group" =
    function() groups(c(20, 20), c(3, 1), vary = c(4, 10)),
  "8 and 32, equal, points differ by group" = function() {
    groups(c(8, 32), c(1, 1), vary = c(4, 10))
  },
  "8 and 32, equal, points differ only by group" = function() {
    groups(c(8, 32), c(1, 1), vary = c(Inf, 4))
  },
  "8 and 32, standard deviations 3 and 1, three factors" = function() {
    with_factors(groups(c(8, 32), c(3, 1)))
  },
  "40 and 160, standard deviations 3 and 1" = function() {
    groups(c(40, 160), c(3, 1))
  },
  "5 and 60, standard deviations 3 and 1" = function() {
    groups(c(5, 60), c(3, 1))
  },
  "5 and 60, equal" = function() groups(c(5, 60), c(1, 1)),
  "5 and 60, lognormal, equal" = function() {
    groups(c(5, 60), c(1, 1), draw = lognormal)
  },
  "8 and 32, lognormal, standard deviations 3 and 1" = function() {
    groups(c(8, 32), c(3, 1), draw = lognormal)
  },
  "20 and 20, lognormal, standard deviations 3 and 1" = function() {
    groups(c(20, 20), c(3, 1), draw = lognormal)
  },
  "levels of 6, 12 and 24, standard deviations 3, 2 and 1" = function() {
    groups(c(6, 12, 24), c(3, 2, 1))
  },
  "levels of 6, 12 and 24, equal" = function() {
    groups(c(6, 12, 24), c(1, 1, 1))
  },
  "20 and 40 in two batches, standard deviations 3 and 1, strata" = function() {
    batches(c(3, 1))
  },
  "20 and 40 in two batches, equal, strata" = function() batches(c(1, 1)),
  "10 and 10 donors of 5 cells, standard deviations 3 and 1, unit" =
    function() donors(c(3, 1), 5),
  "10 and 10 donors of 2 to 9 cells, equal, unit" = function() {
    donors(c(1, 1), 2:9)
  },
  "8 and 32, standard deviations 3 and 1, a covariate" = function() {
    with_age(groups(c(8, 32), c(3, 1)))
  },
  "8 and 32, equal, a covariate" = function() {
    with_age(groups(c(8, 32), c(1, 1)))
  },
  "numbers, 40 samples, the spread grows with |y|" = function() {
    numbers(40, function(y) 0.5 + abs(y))
  },
  "numbers, 200 samples, the spread grows with |y|" = function() {
    numbers(200, function(y) 0.5 + abs(y))
  },
  "numbers, 40 samples, equal" = function() numbers(40, function(y) 1 + 0 * y),
  "power: 8 and 32, equal, shift 1.8" = function() {
    groups(c(8, 32), c(1, 1), 1.8)
  },
  "power: 8 and 32, equal, points differ, shift 1.8" = function() {
    groups(c(8, 32), c(1, 1), 1.8, vary = c(4, Inf))
  },
  "power: 8 and 32, equal, points differ by group, shift 1.8" = function() {
    groups(c(8, 32), c(1, 1), 1.8, vary = c(4, 10))
  },
  "power: 8 and 32, standard deviations 3 and 1, shift 5" = function() {
    groups(c(8, 32), c(3, 1), 5)
  },
  "power: 10 and 10, equal, shift 2.2" = function() {
    groups(c(10, 10), c(1, 1), 2.2)
  },
  "power: 20 and 20, equal, shift 1.4" = function() {
    groups(c(20, 20), c(1, 1), 1.4)
  },
  "power: 5 and 60, equal, shift 2.2" = function() {
    groups(c(5, 60), c(1, 1), 2.2)
  },
  "power: levels of 6, 12 and 24, equal, shift 2.2" = function() {
    groups(c(6, 12, 24), c(1, 1, 1), 2.2)
  },
  "power: numbers, 40 samples, equal, slope 0.8" = function() {
    numbers(40, function(y) 1 + 0 * y, 0.8)
  }
)

ask <- function(data, statistic, k = 1) {
  suppressMessages(do.call(nearest_to, c(data, list(
    k = k, permutations = permutations, sign = "absolute",
    statistic = statistic, backend = "cpu", num_threads = 1
  ))))
}

# Whether points are called, of one data set and statistic.
called <- function(data, true, statistic) {
  # The largest r has the smallest p-values, but perhaps not the largest t.
  is_enough <- is.null(true) && statistic == "correlation"
  found <- ask(data, statistic, if (is_enough) 1 else num_points)
  null <- !found$index %in% true
  # The last point is never shifted.
  data$x <- data$x[nrow(data$x), , drop = FALSE]
  c(
    one = ask(data, statistic)$p_adjusted <= 0.05,
    family = any(found$p_adjusted[null] <= 0.05),
    any_fdr = if (is.null(found$fdr)) NA else any(found$fdr[null] <= 0.05),
    found = if (is.null(true)) NA else mean(found$p_adjusted[!null] <= 0.05)
  )
}

one_set <- function(design) {
  data <- design()
  true <- data$true
  data$true <- NULL
  both <- lapply(c(r = "correlation", t = "studentized"), function(statistic) {
    called(data, true, statistic)
  })
  unlist(both)
}

columns <- paste0(
  rep(c("one", "family", "any_fdr", "found"), each = 2), c("_r", "_t")
)
row_of <- function(sets, ...) {
  means <- row_of_means(sets)
  names(means) <- sub("^(.)[.](.*)$", "\\2_\\1", names(means))
  data.frame(means[columns], points = num_points, permutations = permutations)
}

calibrate("calibration-statistics.csv", designs, one_set, row_of)
