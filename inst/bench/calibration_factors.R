# What do hidden factors do to edges and to an outcome?
#
#   Rscript inst/bench/calibration_factors.R [DATA SETS] [CORES] [FOLDER]
#     [--only=TEXT]
#
# prints a table, and stores it in FOLDER as calibration-factors.csv
# (calibrate() in harness.R).
#
# 120 points in 40 samples: modules of points (r = 0.5), and independent others.
# A batch that nobody recorded shifts all points or some. An outcome is followed
# by no point, by 5 or by 80. See the designs.
#
# In the table, for points as they are, adjusted by the dominant factors (the
# default), by factors of parallel analysis, by one factor, by dominant factors
# and by five that keep the outcome, and by the true batch:
#   factors    mean number of factors
#   precision  of as many nearest pairs as there are pairs within modules, the
#              share that is within a module
#   found      share of the points that follow the outcome with p_adjusted at
#              most 0.05
#   family     share of data sets with a false call among the other points
# P-values with factors that keep the outcome are refused by the package. They
# are computed here from a plain matrix, to show why.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

num_points <- 120
num_samples <- 40

four <- rep(10, 4)

# `sizes` are those of the modules. A batch of `levels` shifts `batch` points,
# those of two levels by `effect` up or down, those of more by random amounts.
draw <- function(sizes = four, batch = 60, effect = 1.5, levels = 2,
                 follow = 0) {
  x <- matrix(rnorm(num_points * num_samples), num_points)
  module <- rep(seq_along(sizes), sizes)
  base <- matrix(
    rnorm(length(sizes) * num_samples), length(sizes), num_samples
  )
  at <- seq_along(module)
  x[at, ] <- sqrt(0.5) * x[at, ] + sqrt(0.5) * base[module, ]
  module <- c(module, max(0, module) + seq_len(num_points - length(module)))
  level <- sample(rep(seq_len(levels), length.out = num_samples))
  at <- sample(num_points, batch)
  shifts <- if (levels == 2) {
    c(rep(0, batch), sample(c(-1, 1), batch, TRUE))
  } else {
    rnorm(batch * levels)
  }
  shifts <- matrix(shifts, batch, levels)
  x[at, ] <- x[at, ] + effect * shifts[, level]
  outcome <- rnorm(num_samples)
  true <- if (follow > 0) 40 + seq_len(follow)
  x[true, ] <- x[true, ] + 0.8 * rep(outcome, each = follow)
  list(
    x = x, outcome = outcome, true = true, module = module,
    batch = stats::model.matrix(~ factor(level))[, -1, drop = FALSE]
  )
}

designs <- list(
  "batch of half of the points, 4 modules of 10" = function() draw(),
  "weaker batch (0.8), 4 modules of 10" = function() draw(effect = 0.8),
  "batch of a quarter, 4 modules of 10" = function() draw(batch = 30),
  "batch of all points, 4 modules of 10" = function() draw(batch = 120),
  "batch of 4 levels, all points, 4 modules of 10" =
    function() draw(batch = 120, effect = 1, levels = 4),
  "batch of half, modules of 40, 20 and 10" =
    function() draw(sizes = c(40, 20, 10)),
  "batch of half, 12 modules of 10" = function() draw(sizes = rep(10, 12)),
  "4 modules of 10 alone" = function() draw(batch = 0),
  "12 modules of 10 alone" = function() draw(sizes = rep(10, 12), batch = 0),
  "modules of 40, 20 and 10 alone" =
    function() draw(sizes = c(40, 20, 10), batch = 0),
  "one module of 30 alone" = function() draw(sizes = 30, batch = 0),
  "one module of 60 alone" = function() draw(sizes = 60, batch = 0),
  "batch of half, 5 points follow the outcome" = function() draw(follow = 5),
  "batch of half, 80 points follow the outcome" =
    function() draw(follow = 80),
  "noise" = function() draw(sizes = integer(), batch = 0),
  "noise, one sample of standard deviation 2" = function() {
    data <- draw(sizes = integer(), batch = 0)
    data$x[, 1] <- 2 * data$x[, 1]
    data
  }
)

plain <- function(factors) {
  if (ncol(factors) > 0) vapply(factors, as.double, double(num_samples))
}

one_set <- function(design) {
  data <- design()
  of <- function(...) {
    plain(suppressMessages(hidden_factors(data$x, permutations = 19, ...)))
  }
  ways <- list(
    "as they are" = NULL, "dominant factors" = of(),
    "factors by permutation" = of(num = "permutation"),
    "one factor" = of(num = 1),
    "dominant factors, outcome kept" = of(keep = data$outcome),
    "five factors, outcome kept" = of(keep = data$outcome, num = 5),
    "true batch" = data$batch
  )
  within <- sum(outer(data$module, data$module, `==`)) / 2 - num_points / 2
  do.call(rbind, lapply(names(ways), function(way) {
    adjust <- ways[[way]]
    nearest <- if (within > 0) {
      graph <- threshold_graph(
        data$x, min_similarity = 0, adjust = adjust, backend = "cpu",
        num_threads = 1
      )
      utils::head(graph[order(graph$distance), ], within)
    }
    found <- nearest_to(
      data$x, outcome = data$outcome, k = num_points, sign = "absolute",
      adjust = adjust, permutations = 99, backend = "cpu", num_threads = 1
    )
    called <- found$p_adjusted <= 0.05
    true <- found$index %in% data$true
    data.frame(
      way = way, factors = if (is.null(adjust)) 0 else ncol(adjust),
      precision = if (within > 0) {
        mean(data$module[nearest$from] == data$module[nearest$to])
      } else {
        NA
      },
      found = mean(called[true]), family = any(called & !true)
    )
  }))
}

row_of <- function(sets, ...) {
  sets <- do.call(rbind, sets)
  ways <- unique(sets$way)
  means <- lapply(sets[-1], function(values) {
    as.vector(tapply(values, factor(sets$way, ways), mean))
  })
  data.frame(way = ways, means)
}

calibrate("calibration-factors.csv", designs, one_set, row_of)
