# Are Spearman's p-values right in the far tail, where edges among thousands of
# points are? They are exact for up to 21 samples, and beyond come from a beta
# distribution.
#
#   Rscript inst/bench/calibration_spearman.R [DATA SETS] [CORES] [FOLDER]
#     [--only=TEXT]
#
# prints two tables, and stores them in FOLDER as calibration-spearman.csv (which
# needs no data sets, and is left out with --only) and
# calibration-spearman-edges.csv (calibrate() in harness.R).
#
# The first has, for some numbers of samples and exact p-values (one-sided), the
# p-value of the package, of Student's t and of cor.test() (algorithm AS 89),
# each divided by the exact one. The exact one is counted for up to 21 samples,
# where `beta` is what the package would give without counts. Beyond, it is
# estimated by importance sampling: permutations that prefer a large r, and
# their weights. `error` is its relative standard error.
#
# The second has shares of data sets of 2,000 independent points in which some
# edge has a p_adjusted of at most 0.05 by Bonferroni, and so the same by
# Student's t and by cor.test().

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

by_t <- function(r, num) {
  pt(r * sqrt((num - 2) / ((1 - r) * (1 + r))), num - 2, lower.tail = FALSE)
}

# The p-value of cor.test(), of any points with this r and without ties.
by_as89 <- function(r, num) {
  x <- (6 * ((num^3 - num) * (1 - r) / 6 + 1) / (num^3 - num) - 1) *
    sqrt(num - 1)
  b <- 1 / num
  y <- x^2
  terms <- x * b * (0.2274 + b * (0.2531 + 0.1745 * b) + y * (
    -0.0758 + b * (0.1033 + 0.3932 * b) -
      y * b * (0.0879 + 0.0151 * b - y * (
        0.0072 - 0.0831 * b + y * b * (0.0131 - 4.6e-4 * y)
      ))
  )) / exp(y / 2)
  pmin(pmax(pnorm(x) - terms, 0), 1)
}

# Returns P(R >= r) and its standard error. `tilt` is the strength of the
# preference for a large R.
by_sampling <- function(r, num, tilt, times) {
  score <- seq_len(num) - (num + 1) / 2
  score <- score / sqrt(sum(score^2))
  free <- matrix(1, times, num)
  weight <- rep(1, times)
  found <- double(times)
  for (place in order(-abs(score))) {
    chance <- exp(tilt * num * score[[place]] * score)
    below <- (free * rep(chance, each = times)) %*% upper.tri(diag(num), TRUE)
    drawn <- runif(times) * below[, num]
    taken <- pmin(rowSums(below < drawn) + 1, num)
    weight <- weight * below[, num] / chance[taken] / rowSums(free)
    found <- found + score[[place]] * score[taken]
    free[cbind(seq_len(times), taken)] <- 0
  }
  values <- weight * (found >= r - 1e-9)
  list(p = mean(values), error = sd(values) / sqrt(times),
       mean_r = mean(found))
}

# The tilt under which the mean of R is r.
tilt_for <- function(r, num) {
  uniroot(function(tilt) {
    set.seed(5)
    by_sampling(r, num, tilt, 200)$mean_r - r
  }, c(0, 20), tol = 0.02)$root
}

of_package <- get("correlation_p_value", asNamespace("fsknn"))
beta <- get("spearman_beta", asNamespace("fsknn"))
step_of <- function(r, num) {
  1 - 12 * round((num^3 - num) * (1 - r) / 12) / (num^3 - num)
}

ratios <- function() {
  tails <- 10^-(1:6)
  rows <- lapply(c(10, 12, 14, 16, 18, 21, 22, 24, 30, 50, 100), function(num) {
    set.seed(13)
    do.call(rbind, lapply(tails, function(tail) {
      error <- 0
      if (num <= 21) {
        # The largest exact p-value of at most `tail`.
        all <- 1 - 12 * seq(0, (num^3 - num) / 12) / (num^3 - num)
        p <- of_package(all, num, 0, "spearman", "greater", FALSE)
        r <- all[[which.max(p * (p <= tail))]]
        exact <- max(p[p <= tail])
      } else {
        root <- uniroot(function(r) log(beta(r, num) / tail), c(0, 1))$root
        r <- step_of(root, num)
        sampled <- by_sampling(
          r, num, tilt_for(r, num), max(2000, floor(8e6 / num^2))
        )
        exact <- sampled$p
        error <- sampled$error / exact
      }
      data.frame(
        samples = num, r = r, exact = exact, error = error,
        package = of_package(r, num, 0, "spearman", "greater", FALSE) / exact,
        beta = beta(r, num) / exact, t = by_t(r, num) / exact,
        as89 = by_as89(r, num) / exact
      )
    }))
  })
  ratios <- do.call(rbind, rows)
  ratios[] <- lapply(ratios, signif, 3)
  print(ratios, row.names = FALSE)
  ratios
}

# The share of sets of 2,000 points with an edge, by the package, Student's t
# and AS 89.
one_set <- function(num_samples) {
  x <- matrix(rnorm(2000 * num_samples), 2000)
  graph <- knn_graph(x, 1, "spearman", backend = "cpu", num_threads = 1)
  found <- edge_significance(
    graph, x, p_adjust = "bonferroni", backend = "cpu", num_threads = 1
  )
  r <- min(max(found$correlation), 1 - 1e-15)
  num_pairs <- 2000 * 1999 / 2
  c(
    package = min(found$p_adjusted), t = num_pairs * by_t(r, num_samples),
    as89 = num_pairs * by_as89(r, num_samples)
  ) <= 0.05
}

designs <- list(10, 14, 18, 24, 40)
names(designs) <- paste(designs, "samples")
calibrate("calibration-spearman-edges.csv", designs, one_set, row_of_means)
if (is.null(option("only"))) {
  table <- ratios()
  print(table, row.names = FALSE)
  store_table(check_folder(word(3)), "calibration-spearman.csv", table)
}
