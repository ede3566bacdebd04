# Are the p-values of module_preservation() at their level? Are modules of noise
# no more stable than those of permuted data in module_stability()?
#
#   Rscript inst/bench/calibration_modules.R [DATA SETS] [CORES] [FOLDER]
#     [--only=TEXT]
#
# prints two tables, and stores them in FOLDER as calibration-preservation.csv
# and calibration-stability.csv (calibrate() in harness.R).
#
# Preservation: 200 points in 30 samples of x, with four modules of 10 points
# and one of 40 (r = 0.5), and 20 samples of x_test. In the table:
#   level      share of all modules with a p_value of at most 0.05
#   family     share of data sets with any p_adjusted of at most 0.05
#   z          mean Zsummary, of modules of 10 and of 40 points
#   above_2    share of modules with a Zsummary above 2
#   above_10   share of modules with a Zsummary above 10
#
# Stability: 60 points in 24 samples (or in cells of 8 donors), k = 4, Louvain,
# modules of 5 points or more. In the table, over data sets:
#   modules    mean number of modules
#   stability  their mean stability
#   chance     mean stability of the modules of permuted data
#   above      share of the modules that are more stable than all of chance
#   any        share of data sets that have such a module
#   true       share of the true modules (10 points) whose best match among the
#              modules is such a module, with a Jaccard coefficient above 0.5

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)


noise <- function(num_points, num_samples) {
  matrix(rnorm(num_points * num_samples), num_points)
}

# The first points are in modules of these sizes.
correlated <- function(num_points, num_samples, sizes, r) {
  module <- rep(seq_along(sizes), sizes)
  x <- noise(num_points, num_samples)
  at <- seq_along(module)
  x[at, ] <- sqrt(1 - r) * x[at, ] +
    sqrt(r) * noise(length(sizes), num_samples)[module, ]
  x
}

# --- preservation -------------------------------------------------------------

sizes <- c(10, 10, 10, 10, 40)
modules_of <- function(r) correlated(200, 20, sizes, r)

# Each makes x_test. With `same`, x_test is x, which has no modules, and the
# modules are its clusters.
preserved <- list(
  "x_test is noise" = list(test = function() noise(200, 20)),
  "x_test has one factor of all points" = list(
    test = function() correlated(200, 20, 200, 0.3)
  ),
  "x_test has other modules" = list(
    test = function() modules_of(0.5)[sample(200), ]
  ),
  "x_test is noise, a batch shifts half of its points" = list(
    test = function() {
      noise(200, 20) + outer(sample(0:1, 200, TRUE), rep(0:2, c(10, 5, 5)))
    }
  ),
  "signed, x_test has other modules" = list(
    test = function() modules_of(0.5)[sample(200), ], type = "signed"
  ),
  "x_test is the noise in which clusters were found" = list(same = TRUE),
  "preserved with r = 0.1" = list(test = function() modules_of(0.1)),
  "preserved with r = 0.2" = list(test = function() modules_of(0.2)),
  "preserved with r = 0.5" = list(test = function() modules_of(0.5))
)

preserve <- function(design) {
  if (isTRUE(design$same)) {
    x <- x_test <- noise(200, 20)
    near <- stats::hclust(stats::as.dist(1 - stats::cor(t(x))), "average")
    of <- stats::cutree(near, 20)
    of[tabulate(of)[of] < 5] <- NA
  } else {
    x <- correlated(200, 30, sizes, 0.5)
    x_test <- design$test()
    of <- c(rep(seq_along(sizes), sizes), rep(NA, 200 - sum(sizes)))
  }
  found <- as.data.frame(module_preservation(
    of, x, x_test, permutations = 499,
    type = if (is.null(design$type)) "unsigned" else design$type,
    num_threads = 1
  ))
  found$is_10 <- if (isTRUE(design$same)) NA else found$size == 10
  found$any <- any(found$p_adjusted <= 0.05)
  found$set <- c(TRUE, rep(FALSE, nrow(found) - 1))
  found
}

preservation_row <- function(sets, ...) {
  sets <- do.call(rbind, sets)
  data.frame(
    level = mean(sets$p_value <= 0.05),
    family = mean(sets$any[sets$set]),
    z_10 = mean(sets$z_summary[sets$is_10 %in% TRUE]),
    z_40 = mean(sets$z_summary[sets$is_10 %in% FALSE]),
    above_2 = mean(sets$z_summary > 2), above_10 = mean(sets$z_summary > 10)
  )
}

# --- stability ----------------------------------------------------------------

# Values of cells differ between 8 donors.
of_donors <- function() {
  noise(60, 8)[, rep(1:8, each = 5)] + 0.5 * noise(60, 40)
}
donor <- rep(1:8, each = 5)
batch_of_all <- function() {
  noise(60, 24) + outer(rep_len(c(-1, 1), 60), rep(c(-1, 1), 12))
}

stable <- list(
  "noise" = list(draw = function() noise(60, 24)),
  "noise, bootstrap" =
    list(draw = function() noise(60, 24), method = "bootstrap"),
  "cells of donors, without unit" = list(draw = of_donors),
  "cells of donors, unit = donor" = list(draw = of_donors, unit = donor),
  "a batch shifts all points" = list(draw = batch_of_all),
  "2 modules of 10, r = 0.3" = list(
    draw = function() correlated(60, 24, c(10, 10), 0.3), true = TRUE
  ),
  "2 modules of 10, r = 0.5" = list(
    draw = function() correlated(60, 24, c(10, 10), 0.5), true = TRUE
  ),
  "2 modules of 10, r = 0.7" = list(
    draw = function() correlated(60, 24, c(10, 10), 0.7), true = TRUE
  )
)

louvain <- function(edges) {
  igraph::cluster_louvain(as_igraph(edges, mode = "union"))
}

stabilise <- function(design) {
  found <- module_stability(
    design$draw(), louvain, k = 4, resamples = 20, min_size = 5,
    method = if (is.null(design$method)) "subsample" else design$method,
    unit = design$unit, backend = "cpu", num_threads = 1
  )
  above <- found$modules$stability > max(found$chance$stability, 0)
  hit <- vapply(list(1:10, 11:20), function(true) {
    near <- vapply(found$modules$module, function(one) {
      own <- found$points$point[found$points$module == one]
      length(intersect(own, true)) / length(union(own, true))
    }, 0)
    any(above & near > 0.5 & near == max(near))
  }, NA)
  data.frame(
    modules = nrow(found$modules), stability = mean(found$modules$stability),
    chance = mean(found$chance$stability), above = sum(above),
    true = if (isTRUE(design$true)) mean(hit) else NA
  )
}

stability_row <- function(sets, ...) {
  sets <- do.call(rbind, sets)
  data.frame(
    modules = mean(sets$modules),
    stability = mean(sets$stability), chance = mean(sets$chance, na.rm = TRUE),
    above = sum(sets$above) / sum(sets$modules), any = mean(sets$above > 0),
    true = mean(sets$true)
  )
}

calibrate(
  "calibration-preservation.csv", preserved, preserve, preservation_row
)
calibrate("calibration-stability.csv", stable, stabilise, stability_row)
