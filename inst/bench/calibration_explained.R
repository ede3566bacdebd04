# Which edges does a common neighbour explain? A chain and a hub, in which it is
# known which edges are direct.
#
#   Rscript inst/bench/calibration_explained.R [DATA SETS] [CORES] [FOLDER]
#     [--only=TEXT]
#
# prints a table, and stores it in FOLDER as calibration-explained.csv
# (calibrate() in harness.R).
#
# The chain has 10 points, each 0.8 times the one before and noise. The hub has
# nine targets, each 0.8 times the hub and noise. In "hidden hub", the hub is not
# among the points, and no edge is direct. All edges are compared (r above 0.3).
#
# In the table, for direct and for other edges: the mean correlation, the mean
# absolute partial correlation (with no common neighbour, the correlation), and
# the share of edges that are kept where at least 0.3 is asked of it.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

noise <- function(rows, num_samples) {
  matrix(rnorm(rows * num_samples), rows)
}

networks <- list(
  chain = function(num_samples) {
    x <- noise(10, num_samples)
    for (row in 2:10) x[row, ] <- 0.8 * x[row - 1, ] + 0.6 * x[row, ]
    list(x = x, direct = function(from, to) abs(from - to) == 1)
  },
  hub = function(num_samples) {
    x <- noise(10, num_samples)
    x[-1, ] <- 0.8 * x[rep(1, 9), ] + 0.6 * x[-1, ]
    list(x = x, direct = function(from, to) from == 1 | to == 1)
  },
  "hidden hub" = function(num_samples) {
    x <- 0.8 * noise(1, num_samples)[rep(1, 9), ] + 0.6 * noise(9, num_samples)
    list(x = x, direct = function(from, to) rep(FALSE, length(from)))
  }
)

designs <- expand.grid(
  samples = c(40, 100), network = names(networks), stringsAsFactors = FALSE
)
designs$name <- paste0(designs$network, ", ", designs$samples, " samples")

one_set <- function(design) {
  made <- networks[[design$network]](design$samples)
  edges <- threshold_graph(made$x, min_similarity = 0.3, backend = "cpu",
                           num_threads = 1)
  found <- edge_significance(edges, made$x, explain = TRUE, backend = "cpu",
                             num_threads = 1)
  partial <- abs(ifelse(
    is.na(found$explained_by), found$correlation, found$partial_correlation
  ))
  data.frame(
    direct = made$direct(found$from, found$to), correlation = found$correlation,
    partial = partial
  )
}

row_of <- function(sets, ...) {
  edges <- do.call(rbind, sets)
  kinds <- lapply(intersect(c(TRUE, FALSE), edges$direct), function(direct) {
    some <- edges[edges$direct == direct, ]
    data.frame(
      edges = if (direct) "direct" else "other",
      correlation = mean(some$correlation), partial = mean(some$partial),
      kept = mean(some$partial >= 0.3)
    )
  })
  do.call(rbind, kinds)
}

calibrate("calibration-explained.csv", rows_by_name(designs), one_set, row_of)
