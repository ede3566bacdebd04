# Are the p-values of edge_significance() what they say? Data sets in which all
# points are independent, and some in which modules are not: see designs.
#
#   Rscript inst/bench/calibration_edges.R [DATA SETS] [CORES] [FOLDER]
#     [--only=TEXT]
#
# prints a table, and stores it in FOLDER as calibration-edges.csv (calibrate()
# in harness.R).
#
# In the table, of each design, shares of data sets:
#   at_0.05 to at_0.5   in which what the row names is at most 0.05, 0.2, 0.5:
#     pair        p_value of two points chosen in advance, which are independent
#     point       p_from of the nearest neighbour of a point chosen in advance
#     any edge    the smallest p_permutation of two points that are independent
#     Bonferroni  the smallest p_adjusted of such, by "bonferroni"
#     Bonferroni, permuted  the same with permutations, from which p_value comes
#                 if values are skewed
# and means over data sets:
#     rejected    by "BH", of the rejected edges the part that is of independent
#                 points (at 0.05, 0.2, 0.5): a false-discovery rate
#     rejected, permuted  the same with permutations
#     list        of the edges with p_value at most 0.05 (0.2, 0.5) that part:
#                 what no adjustment gives
# Only where modules are is a part of the edges real.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

num_points <- 40
num_samples <- 20
k <- 4
permutations <- 39
levels <- c(0.05, 0.2, 0.5)

noise <- function() matrix(rnorm(num_points * num_samples), num_points)

# Two modules of 10 points, r = 0.7 within each, among independent ones; the
# two have nothing to do with each other.
modules <- function(x) {
  factors <- matrix(rnorm(2 * num_samples), 2)
  x[1:20, ] <- sqrt(0.3) * x[1:20, ] +
    sqrt(0.7) * factors[rep(1:2, each = 10), ]
  x
}
module <- c(rep(1:2, each = 10), 2 + seq_len(20))

designs <- list(
  "independent, Pearson" = list(draw = noise, metric = "pearson"),
  "independent, Pearson, absolute" =
    list(draw = noise, metric = "pearson", sign = "absolute"),
  "independent, heavy tails (t, 3 degrees of freedom), Pearson" = list(
    draw = function() noise() / sqrt(rchisq(num_points * num_samples, 3) / 3),
    metric = "pearson"
  ),
  "the same, Spearman" = list(
    draw = function() noise() / sqrt(rchisq(num_points * num_samples, 3) / 3),
    metric = "spearman"
  ),
  "independent, standard deviations from 0.1 to 10, Euclidean" = list(
    draw = function() noise() * 10^runif(num_points, -1, 1),
    metric = "euclidean"
  ),
  "independent, lognormal, Pearson" =
    list(draw = function() exp(noise()), metric = "pearson"),
  "independent, Poisson (0.2), Pearson" = list(
    draw = function() {
      matrix(rpois(num_points * num_samples, 0.2), num_points)
    },
    metric = "pearson"
  ),
  "independent, half of the points with half of the samples, Pearson" = list(
    draw = function() {
      x <- noise()
      for (row in seq(1, num_points, 2)) {
        x[row, sample(num_samples, num_samples / 2)] <- NA
      }
      x
    },
    metric = "pearson", options = list(na = "pairwise", min_pairs = 4)
  ),
  "modules, lognormal, Pearson" = list(
    draw = function() exp(modules(noise())), metric = "pearson", module = module
  ),
  "modules, Pearson" = list(
    draw = function() modules(noise()), metric = "pearson", module = module
  ),
  "modules, Euclidean" = list(
    draw = function() modules(noise()), metric = "euclidean", module = module
  )
)

# Shares of levels, or the parts of rejected edges, of one data set.
one_set <- function(design) {
  x <- design$draw()
  sign <- c(design$sign, "signed")[[1]]
  group <- design$module
  if (is.null(group)) group <- seq_len(num_points)
  ask <- function(verb, ...) {
    suppressMessages(do.call(verb, c(
      list(...), design$options, backend = "cpu", num_threads = 1
    )))
  }
  graph <- ask(
    knn_graph, x, k, metric = design$metric, sign = sign, constant = "isolate"
  )
  judge <- function(...) {
    ask(edge_significance, graph, x, constant = "isolate", ...)
  }
  found <- judge(permutations = permutations)
  null <- group[found$from] != group[found$to]
  least <- function(p) if (any(null)) min(p[null]) else 1
  # Of the last point, which is in no module: its nearest is that of least p.
  of_last <- c(
    found$p_from[found$from == num_points],
    found$p_to[found$to == num_points], 1
  )
  shares <- list(point = min(of_last) <= levels,
                 "any edge" = least(found$p_permutation) <= levels)
  if (!is.null(found$p_value)) {
    # Of points that were chosen in advance: one of the first module, and one of
    # the second.
    pair <- x[c(1, 20), ]
    p_pair <- 1
    if (all(apply(pair, 1, var, na.rm = TRUE) > 0)) {
      r <- cor(pair[1, ], pair[2, ], use = "pairwise", method = design$metric)
      all <- ask(
        threshold_graph, pair, min_similarity = -1, metric = design$metric
      )
      stopifnot(abs(all$correlation - r) < 1e-9)
      attr(all, "sign") <- sign
      all$distance <- if (sign == "absolute") 1 - abs(r) else 1 - r
      p_pair <- ask(edge_significance, all, pair)$p_value
    }
    part <- function(p) {
      vapply(levels, function(level) {
        sum(null & p <= level) / max(1, sum(p <= level))
      }, 0)
    }
    bonferroni <- function(...) {
      least(judge(p_adjust = "bonferroni", ...)$p_adjusted) <= levels
    }
    by_t <- judge()
    shares <- c(
      list(pair = p_pair <= levels), shares,
      list(
        Bonferroni = bonferroni(),
        "Bonferroni, permuted" = bonferroni(permutations = permutations),
        rejected = part(by_t$p_adjusted),
        "rejected, permuted" = part(found$p_adjusted),
        list = part(by_t$p_value)
      )
    )
  }
  do.call(rbind, lapply(shares, as.double))
}

row_of <- function(sets, ...) {
  mean <- Reduce(`+`, sets) / length(sets)
  data.frame(
    what = rownames(mean), at_0.05 = mean[, 1], at_0.2 = mean[, 2],
    at_0.5 = mean[, 3]
  )
}

calibrate("calibration-edges.csv", designs, one_set, row_of)
