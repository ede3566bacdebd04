# Are p-values at their level if samples come in whole units? Cells of donors,
# of which half are ill, without any effect of the disease: each gene differs
# between donors.
#
#   Rscript inst/bench/calibration_units.R [DATA SETS] [FOLDER] [--only=WORDS]
#
# prints a table, and stores it in FOLDER as calibration-units.csv. Some 15
# minutes for 400 data sets, on one core. --only runs the designs whose name has
# the words, and replaces their rows in the file.
#
# In the table, of each design:
#   donors    in each of two groups, with 20 cells each or with 5 to 40
#   without   the share of the first 100 data sets with a family-wise p-value of
#             at most 0.05 where all cells are permuted
#   with      the share of all data sets with unit = donor
#   smallest  the smallest p-value that is possible with units
#   fdr       the mean number of points with fdr <= 0.05, without units
# For knn_predict(), `without` and `with` are mean errors, which are 0.5 where
# nothing can be predicted, or above with few donors.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

num_sets <- word(1, 400)
folder <- check_folder(word(2))
only <- option("only", "")
permutations <- 199

# `between` and `within` are standard deviations between and within donors.
draw <- function(donors, num_points = 500, cells = 20, between = 1,
                 within = 1) {
  unit <- rep(seq_len(2 * donors), rep_len(cells, 2 * donors))
  x <- between * matrix(rnorm(num_points * 2 * donors), num_points)[, unit] +
    within * matrix(rnorm(num_points * length(unit)), num_points)
  list(x = x, unit = unit, ill = unit > donors)
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
near <- function(data, unit = NULL, ...) {
  found <- nearest_to(
    data$x, outcome = data$ill, k = nrow(data$x), sign = "absolute",
    permutations = permutations, unit = unit, statistic = "correlation",
    backend = "cpu", num_threads = 1, ...
  )
  list(
    p = found$p_adjusted[[1]], smallest = attr(found, "smallest_p"),
    fdr = if (is.null(unit)) sum(found$fdr <= 0.05) else NA
  )
}

modules <- function(data, unit = NULL) {
  found <- module_summary(
    rep(1:20, each = nrow(data$x) / 20), data$x, data$ill,
    permutations = permutations, unit = unit, statistic = "correlation",
    backend = "cpu", num_threads = 1
  )
  list(
    p = min(found$outcomes$p_adjusted), smallest = found$relabelled$smallest_p,
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
      points = min(found$points$p_adjusted),
      edges = min(found$edges$p_adjusted)
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
    p = attr(found, "chance")$p[[1]],
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
    p = min(found$p_permutation), smallest = 1 / 40,
    fdr = if (is.null(unit)) sum(found$p_adjusted <= 0.05) else NA
  )
}

# The error is in the place of the p-value.
predicted <- function(data, unit = NULL) {
  found <- knn_predict(
    t(data$x), data$ill, k = 5, metric = "euclidean", unit = unit,
    backend = "cpu", num_threads = 1
  )
  list(p = found$error$error[[5]], smallest = NA_real_, fdr = NA)
}

# `sets` is the share of the data sets that are drawn.
designs <- list(
  list(what = "nearest_to(), 500 genes, 20 cells", ask = near),
  list(
    what = "nearest_to(), 500 genes, 5 to 40 cells", ask = near,
    cells = c(5, 40, 10, 25)
  ),
  list(
    what = "nearest_to(), 50 genes on 5 days, outcome varies", ask = near,
    draw = draw_days
  ),
  list(
    what = "module_summary(), 20 modules of 25 genes", ask = modules, sets = 0.5
  ),
  list(
    what = "neighbour_mixing(), 20 components", ask = mixing, num_points = 20
  ),
  list(
    what = "edge_significance(), 60 genes", ask = edges, num_points = 60,
    sets = 0.25
  ),
  list(
    what = "compare_neighbours(), 60 genes", ask = contrast, num_points = 60,
    sets = 0.5
  ),
  list(
    what = "knn_predict(), mean error", ask = predicted, num_points = 20,
    sets = 0.25
  )
)

run <- function(one, donors) {
  set.seed(17)
  num <- round(num_sets * (if (is.null(one$sets)) 1 else one$sets))
  found <- lapply(seq_len(num), function(set) {
    from <- if (is.null(one$draw)) draw else one$draw
    data <- do.call(from, c(
      list(donors), one[names(one) %in% names(formals(from))]
    ))
    list(one$ask(data, data$unit), if (set <= 100) one$ask(data))
  })
  is_error <- grepl("error", one$what)
  mean_of <- function(at) {
    of_sets <- lapply(found, function(set) {
      p <- set[[at]]$p
      if (is_error) p else p <= 0.05
    })
    colMeans(do.call(rbind, of_sets))
  }
  of <- names(found[[1]][[1]]$p)
  data.frame(
    design = paste0(one$what, if (!is.null(of)) paste0(", ", of)),
    donors = paste(donors, "+", donors),
    without = mean_of(2), with = mean_of(1),
    smallest = max(vapply(found, function(set) set[[1]]$smallest, 0)),
    fdr = mean(unlist(lapply(found, function(set) set[[2]]$fdr))),
    to = if (is_error) NA else stats::qbinom(0.975, num, 0.05) / num,
    data_sets = num, machine = paste(parallel::detectCores(), "cores, CPU"),
    date = format(Sys.Date())
  )
}

designs <- Filter(function(one) grepl(only, one$what, fixed = TRUE), designs)
RNGkind("L'Ecuyer-CMRG")
rows <- lapply(designs, function(one) {
  do.call(rbind, lapply(c(4, 10, 20), function(donors) {
    row <- run(one, donors)
    say(paste0(
      row$design, ", ", row$donors, ": ", signif(row$without, 3), ", ",
      signif(row$with, 3), collapse = "\n  "
    ))
    row
  }))
})
table <- do.call(rbind, rows)
numbers <- vapply(table, is.double, NA)
table[numbers] <- lapply(table[numbers], signif, 3)
table$fdr[is.nan(table$fdr)] <- NA

print(table[1:8], right = FALSE, row.names = FALSE)
stored <- file.path(c(folder, "."), "calibration-units.csv")[[1]]
if (nzchar(only) && !is.null(folder) && file.exists(stored)) {
  before <- utils::read.csv(stored)
  table <- rbind(before[!before$design %in% table$design, ], table)
}
store_table(folder, "calibration-units.csv", table)
