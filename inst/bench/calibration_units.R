# Are p-values at their level if samples come in whole units? Cells of donors,
# of which half are ill, without any effect of the disease: each gene differs
# between donors.
#
#   Rscript inst/bench/calibration_units.R [DATA SETS] [CORES] [FOLDER]
#     [--only=TEXT]
#
# prints a table, and stores it in FOLDER as calibration-units.csv (calibrate()
# in harness.R). A design has two groups of so many donors, with 20 cells each
# or with 5 to 40.
#
# In the table, of each design:
#   what      the smallest family-wise p-value, of a gene for instance
#   without   the share of data sets in which it is at most 0.05 where all cells
#             are permuted
#   with      the same with unit = donor
#   smallest  the smallest p-value that is possible with units
#   fdr       the mean number of points with fdr <= 0.05, without units
# For knn_predict(), `without` and `with` are mean errors, which are 0.5 where
# nothing can be predicted, or above with few donors.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

permutations <- 199

# `between` and `within` are standard deviations between and within donors.
draw <- function(donors, num_points = 500, cells = 20, between = 1,
                 within = 1) {
  unit <- rep(seq_len(2 * donors), rep_len(cells, 2 * donors))
  x <- between * matrix(rnorm(num_points * 2 * donors), num_points)[, unit] +
    within * matrix(rnorm(num_points * length(unit)), num_points)
  list(x = x, unit = unit, ill = unit > donors)
}

# Two batches of donors shift all points. Of the first group, a quarter is in
# the second batch, and of the second group in the first one.
draw_batches <- function(donors, num_points = 60, cells = c(3, 12, 6)) {
  data <- draw(donors, num_points, cells)
  few <- donors %/% 4
  batch <- rep(c(1, 2, 1, 2), c(donors - few, few, few, donors - few))
  data$strata <- batch[data$unit]
  shift <- 2 * matrix(rnorm(2 * num_points), num_points)
  data$x <- data$x + shift[, data$strata]
  data
}

# Each patient is measured on five days. The outcome and all points drift with
# the days, and neighbouring days are alike (autoregression, 0.8). The outcome
# varies within patients, who are exchanged as blocks.
draw_days <- function(donors, num_points = 50) {
  series <- function(num) {
    values <- matrix(rnorm(5 * num), 5)
    for (day in 2:5) {
      values[day, ] <- 0.8 * values[day - 1, ] + 0.6 * values[day, ]
    }
    values + 1:5 / 2
  }
  unit <- rep(seq_len(2 * donors), each = 5)
  x <- t(array(series(2 * donors * num_points), c(length(unit), num_points)))
  list(
    x = x + matrix(rnorm(2 * donors * num_points), num_points)[, unit],
    unit = unit, ill = as.vector(series(2 * donors))
  )
}

# The smallest family-wise p-value, the smallest possible, and counts by fdr.
near <- function(data, unit = NULL) {
  found <- nearest_to(
    data$x, outcome = data$ill, k = nrow(data$x), sign = "absolute",
    permutations = permutations, unit = unit, strata = data$strata,
    backend = "cpu", num_threads = 1
  )
  list(
    p = c("any gene" = min(found$p_adjusted)), smallest = attr(found, "smallest_p"),
    fdr = if (is.null(unit)) sum(found$fdr <= 0.05) else NA
  )
}

modules <- function(data, unit = NULL) {
  found <- module_summary(
    rep(1:20, each = nrow(data$x) / 20), data$x, data$ill,
    permutations = permutations, unit = unit, backend = "cpu", num_threads = 1
  )
  list(
    p = c("any module" = min(found$outcomes$p_adjusted)),
    smallest = found$relabelled$smallest_p,
    fdr = if (is.null(unit)) sum(found$outcomes$fdr <= 0.05) else NA
  )
}

contrast <- function(data, unit = NULL) {
  found <- compare_neighbours(
    data$x, data$ill, k = 5, permutations = 99, unit = unit, backend = "cpu",
    num_threads = 1
  )
  list(
    p = c(
      "any point" = min(found$points$p_adjusted),
      "any edge" = min(found$edges$p_adjusted)
    ),
    smallest = found$relabelled$smallest_p, fdr = NA
  )
}

mixing <- function(data, unit = NULL) {
  edges <- knn_graph(
    t(data$x), k = 10, metric = "euclidean", backend = "cpu", num_threads = 1
  )
  found <- neighbour_mixing(
    edges, data$ill, permutations = permutations, unit = unit
  )
  list(
    p = c(mixing = attr(found, "chance")$p[[1]]),
    smallest = attr(found, "relabelled")$smallest_p, fdr = NA
  )
}

# Edges of independent points; donors do not matter.
edges <- function(data, unit = NULL) {
  graph <- knn_graph(data$x, k = 3, backend = "cpu", num_threads = 1)
  found <- edge_significance(
    graph, data$x, permutations = 39, unit = unit, backend = "cpu",
    num_threads = 1
  )
  list(
    p = c("any edge" = min(found$p_permutation)), smallest = 1 / 40,
    fdr = if (is.null(unit)) sum(found$p_adjusted <= 0.05) else NA
  )
}

# The error is in the place of the p-value.
predicted <- function(data, unit = NULL) {
  found <- knn_predict(
    t(data$x), data$ill, k = 5, metric = "euclidean", unit = unit,
    backend = "cpu", num_threads = 1
  )
  list(
    p = c("mean error" = found$error$error[[5]]), smallest = NA_real_, fdr = NA
  )
}

# Each is asked of 4, 10 and 20 donors in each group.
questions <- list(
  "nearest_to(), 500 genes, 20 cells" = list(ask = near),
  "nearest_to(), 500 genes, 5 to 40 cells" =
    list(ask = near, cells = c(5, 40, 10, 25)),
  "nearest_to(), 50 genes on 5 days, outcome varies" =
    list(ask = near, draw = draw_days),
  "nearest_to(), 60 genes, two batches of donors, strata" =
    list(ask = near, draw = draw_batches),
  "module_summary(), 20 modules of 25 genes" = list(ask = modules),
  "neighbour_mixing(), 20 components" = list(ask = mixing, num_points = 20),
  "edge_significance(), 60 genes" = list(ask = edges, num_points = 60),
  "compare_neighbours(), 60 genes" = list(ask = contrast, num_points = 60),
  "knn_predict(), 20 components" = list(ask = predicted, num_points = 20)
)
sizes <- expand.grid(
  donors = c(4, 10, 20), what = names(questions), stringsAsFactors = FALSE
)
designs <- Map(function(donors, what) {
  c(list(donors = donors), questions[[what]])
}, sizes$donors, sizes$what)
names(designs) <- paste0(
  sizes$what, "; ", sizes$donors, " + ", sizes$donors, " donors"
)

one_set <- function(design) {
  from <- if (is.null(design$draw)) draw else design$draw
  data <- do.call(from, design[names(design) %in% names(formals(from))])
  list(with = design$ask(data, data$unit), without = design$ask(data))
}

row_of <- function(sets, ...) {
  mean_of <- function(way) {
    p <- do.call(rbind, lapply(sets, function(set) set[[way]]$p))
    is_error <- colnames(p) == "mean error"
    ifelse(is_error, colMeans(p), colMeans(p <= 0.05))
  }
  with <- mean_of("with")
  data.frame(
    what = names(sets[[1]]$with$p), without = mean_of("without"), with = with,
    smallest = max(vapply(sets, function(set) set$with$smallest, 0)),
    fdr = mean(vapply(sets, function(set) as.double(set$without$fdr), 0))
  )
}

calibrate("calibration-units.csv", designs, one_set, row_of)
