# For which values are p-values by Student's t too small? Independent points of
# some distributions, and what fsknn's message about tails knows of them.
#
#   Rscript inst/bench/calibration_tails.R [DATA SETS] [CORES] [FOLDER]
#     [--only=TEXT]
#
# prints a table, and stores it in FOLDER as calibration-tails.csv (calibrate()
# in harness.R). A data set has 1,000 points.
#
# In the table, for each distribution and number of samples:
#   skew, kurtosis   means of the two moments of r beyond those of normal values
#   at_1e-3 to 1e-5  the number of p-values (r above 0) up to this, divided by
#                    the expected number
#   Bonferroni       the number of pairs with an adjusted p-value up to 0.05
#   any              the share of data sets with such a pair, 0.05 if right
#   message          the share of data sets with a message

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

num_points <- 1000

distributions <- list(
  normal = stats::rnorm, uniform = stats::runif,
  "t, 10 degrees of freedom" = function(n) stats::rt(n, 10),
  "t, 5 degrees of freedom" = function(n) stats::rt(n, 5),
  "t, 3 degrees of freedom" = function(n) stats::rt(n, 3),
  Laplace = function(n) stats::rexp(n) * sample(c(-1, 1), n, TRUE),
  "lognormal, sd 0.25" = function(n) exp(0.25 * stats::rnorm(n)),
  "lognormal, sd 0.5" = function(n) exp(0.5 * stats::rnorm(n)),
  "lognormal, sd 1" = function(n) exp(stats::rnorm(n)),
  "Poisson, mean 0.2" = function(n) stats::rpois(n, 0.2),
  "Poisson, mean 1" = function(n) stats::rpois(n, 1),
  "Poisson, mean 5" = function(n) stats::rpois(n, 5),
  "negative binomial, mean 5, size 1" = function(n) {
    stats::rnbinom(n, mu = 5, size = 1)
  },
  "two equal values" = function(n) stats::rbinom(n, 1, 0.5)
)
designs <- expand.grid(
  num_samples = c(10, 20, 60, 200), of = names(distributions),
  stringsAsFactors = FALSE
)
designs$name <- paste0(designs$of, ", ", designs$num_samples, " samples")

# The rule of the message, without its thresholds.
tails <- function(x) {
  n <- ncol(x)
  away <- x - rowMeans(x)
  variance <- rowMeans(away^2)
  third <- rowMeans(away^3) / variance^1.5 * sqrt(n * (n - 1)) / (n - 2)
  fourth <- ((n + 1) * rowMeans(away^4) / variance^2 - 3 * (n - 1)) * (n - 1) /
    ((n - 2) * (n - 3))
  c(
    skew = mean(third)^2 * (n - 2) / (n * sqrt(n - 1)),
    kurtosis = mean(fourth)^2 * (n - 2) * (n - 3) / (3 * n * (n - 1)^2)
  )
}

one_set <- function(design) {
  n <- design$num_samples
  x <- matrix(distributions[[design$of]](num_points * n), num_points)
  x <- x[apply(x, 1, var) > 0, ]
  r <- tcrossprod(unit_rows(x))
  diag(r) <- -1
  num_pairs <- nrow(x) * (nrow(x) - 1) / 2
  # The number of pairs with a p-value (r above 0) up to `level`.
  pairs_up_to <- function(level) {
    t <- stats::qt(level, n - 2, lower.tail = FALSE)
    sum(r >= t / sqrt(n - 2 + t^2)) / 2
  }
  said <- FALSE
  withCallingHandlers(
    edge_significance(
      knn_graph(x, 1, backend = "cpu", num_threads = 1), x, backend = "cpu",
      num_threads = 1
    ),
    fsknn_tails = function(message) said <<- TRUE,
    message = function(message) invokeRestart("muffleMessage")
  )
  at <- c("at_1e-3" = 1e-3, "at_1e-4" = 1e-4, "at_1e-5" = 1e-5)
  at <- vapply(at, pairs_up_to, 0) / num_pairs / at
  adjusted <- pairs_up_to(0.05 / num_pairs)
  c(
    tails(x), at, Bonferroni = adjusted, any = adjusted > 0, message = said
  )
}

calibrate(
  "calibration-tails.csv", rows_by_name(designs), one_set, row_of_means
)
