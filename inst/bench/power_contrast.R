# Which changes does compare_neighbours() find? Data sets of 500 points in two
# groups of samples, in which some points change: see changes.
#
#   Rscript inst/bench/power_contrast.R [DATA SETS] [CORES] [FOLDER]
#     [--only=TEXT]
#
# prints a table, and stores it in FOLDER as power-contrast.csv (calibrate() in
# harness.R). There are 99 permutations.
#
# In the table, for each design:
#   found    the share of the points that change with p_adjusted up to 0.05
#   any      the share of data sets in which at least one of them is found
#   others   the number of other points with p_adjusted up to 0.05. The lists of
#            some do change, since points that changed are in them.
#   edges    the share of the points that change with an edge of p_adjusted up
#            to 0.05

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

num_points <- 500
k <- 10
permutations <- 99

# Points have a correlation of 0.6 within a module.
follow <- function(x, rows, columns, factor) {
  x[rows, columns] <- sqrt(0.4) * x[rows, columns] +
    sqrt(0.6) * rep(factor[columns], each = length(rows))
  x
}

# Five modules of 20 points, from the 101st on, are in both groups.
background <- function(num_samples) {
  x <- matrix(rnorm(num_points * 2 * num_samples), num_points)
  factors <- matrix(rnorm(5 * 2 * num_samples), 5)
  for (module in 1:5) {
    x <- follow(x, 80 + 20 * module + 1:20, seq_len(ncol(x)), factors[module, ])
  }
  list(x = x, factors = factors)
}

# The first points change, up to number `size`.
changes <- list(
  "a module dissolves" = function(size, num_samples) {
    made <- background(num_samples)
    follow(made$x, seq_len(size), seq_len(num_samples), rnorm(2 * num_samples))
  },
  "a module appears" = function(size, num_samples) {
    made <- background(num_samples)
    follow(
      made$x, seq_len(size), num_samples + seq_len(num_samples),
      rnorm(2 * num_samples)
    )
  },
  "points join another module" = function(size, num_samples) {
    made <- background(num_samples)
    first <- seq_len(num_samples)
    x <- follow(made$x, seq_len(size), first, rnorm(2 * num_samples))
    follow(x, seq_len(size), num_samples + first, made$factors[1, ])
  },
  "a hub is connected to another module" = function(size, num_samples) {
    made <- background(num_samples)
    x <- made$x
    first <- seq_len(num_samples)
    # Only the hubs change, a tenth of the module.
    hubs <- seq_len(size / 10)
    x <- follow(x, hubs, first, made$factors[1, ])
    follow(x, hubs, num_samples + first, made$factors[2, ])
  }
)

designs <- expand.grid(
  num_samples = c(10, 20, 40), size = c(10, 40), change = names(changes),
  stringsAsFactors = FALSE
)
designs$name <- paste0(
  designs$change, ", ", designs$size, " points, ", designs$num_samples, " and ",
  designs$num_samples, " samples"
)

one_set <- function(design) {
  x <- changes[[design$change]](design$size, design$num_samples)
  found <- compare_neighbours(
    x, rep(1:2, each = design$num_samples), k = k, permutations = permutations,
    backend = "cpu", num_threads = 1
  )
  hubs <- startsWith(design$change, "a hub")
  changed <- seq_len(if (hubs) design$size / 10 else design$size)
  called <- found$points$p_adjusted <= 0.05
  edges <- found$edges[found$edges$p_adjusted <= 0.05, ]
  c(
    found = mean(called[changed]), any = any(called[changed]),
    others = sum(called[-changed]),
    edges = mean(changed %in% c(edges$from, edges$to))
  )
}

calibrate(
  "power-contrast.csv", rows_by_name(designs), one_set, row_of_means,
  num_sets = 100
)
