# Are Spearman's p-values right in the far tail, where edges among thousands of
# points are? They are exact for up to 21 samples, and beyond come from a beta
# distribution.
#
#   Rscript inst/bench/calibration_spearman.R [DATA SETS] [FOLDER]
#
# prints two tables, and stores them in FOLDER as calibration-spearman.csv and
# calibration-spearman-edges.csv. Some minutes for 100 data sets on one core.
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

num_sets <- word(1, 100)
folder <- check_folder(word(2))

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

share_of <- function(called) round(mean(called), 3)
num_points <- 2000
num_pairs <- num_points * (num_points - 1) / 2
edges <- do.call(rbind, lapply(c(10, 14, 18, 24, 40), function(num) {
  set.seed(13)
  called <- vapply(seq_len(num_sets), function(set) {
    x <- matrix(rnorm(num_points * num), num_points)
    graph <- knn_graph(x, 1, "spearman", backend = "cpu")
    found <- edge_significance(
      graph, x, p_adjust = "bonferroni", backend = "cpu"
    )
    r <- max(found$correlation)
    c(min(found$p_adjusted), num_pairs * by_t(min(r, 1 - 1e-15), num),
      num_pairs * by_as89(r, num)) <= 0.05
  }, NA[1:3])
  data.frame(
    samples = num, points = num_points, package = share_of(called[1, ]),
    t = share_of(called[2, ]), as89 = share_of(called[3, ]),
    data_sets = num_sets,
    machine = paste(parallel::detectCores(), "cores, CPU"),
    date = format(Sys.Date())
  )
}))
print(edges, row.names = FALSE)
store_table(folder, "calibration-spearman.csv", ratios)
store_table(folder, "calibration-spearman-edges.csv", edges)
