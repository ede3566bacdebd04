# The p-value of a correlation, shared by all statistics that have one.

# Arguments of correlation_p_value():
#   r             correlations, of metric "pearson", "spearman" or "bicor"
#   num_features  number of samples of r: one number, or one for each
#   num_covariates  number for which both points were adjusted, without the
#                 intercept
#   alternative   "greater" (r above 0), "less" or "two.sided"
#   ties          for Spearman: does either point have equal values (see
#                 rows_with_ties())? One for each, or NULL: r decides
# The p-value is NA without degrees of freedom. With weights of samples (w) it
# is that of the slope in lm(weights = w), over samples with a weight above 0.
# Spearman's is never below 1 / n!, the probability of one order of n samples.
correlation_p_value <- function(r, num_features, num_covariates = 0,
                                metric = "pearson", alternative, ties = NULL) {
  freedom <- num_features - 2 - num_covariates
  p <- r_to_p(r, rep_len(freedom, length(r)), alternative)
  if (metric != "spearman" || num_covariates > 0) {
    return(p)
  }
  num <- rep_len(num_features, length(r))
  untied <- !is.na(r) & num > 1 & !rep_len(ties %||% FALSE, length(r))
  if (is.null(ties)) {
    untied <- untied & is_without_ties(r, num)
  }
  for (size in unique(num[untied])) {
    at <- which(untied & num == size)
    p[at] <- spearman_p(r[at], size, alternative)
  }
  pmax(p, least_spearman_p(num))
}

# The nearest points have large r, large |r| or low r.
alternative_of_sign <- function(sign) {
  switch(
    sign, signed = "greater", absolute = "two.sided", negative = "less"
  )
}

# The test is Student's t, as for the slope of a regression line.
r_to_p <- function(r, freedom, alternative) {
  freedom[freedom < 1] <- NA
  t <- r * sqrt(freedom / ((1 - r) * (1 + r)))
  switch(
    alternative,
    greater = stats::pt(t, freedom, lower.tail = FALSE),
    less = stats::pt(t, freedom),
    two.sided = 2 * stats::pt(abs(t), freedom, lower.tail = FALSE)
  )
}

# Computes S, the sum of squared differences of ranks.
spearman_sum <- function(r, num) {
  (num^3 - num) * (1 - r) / 6
}

# Without ties, S is an even whole number. If one point has ties, they reduce
# the sum of squares of its ranks, and r is divided by the square root of it. S
# is then whole only at r = 0 (where both p-values nearly agree) or by rare
# chance. If both points have ties, as for counts, S may well be whole. Then
# `ties` should be given.
is_without_ties <- function(r, num) {
  sum <- spearman_sum(r, num)
  rounding <- pmax(1e-9, (num^3 - num) * num * .Machine$double.eps)
  abs(sum - 2 * round(sum / 2)) <= rounding
}

# Returns whether each row of a matrix has equal values, not counting missing
# ones.
rows_with_ties <- function(values) {
  vapply(seq_len(nrow(values)), function(row) {
    anyDuplicated(values[row, ], incomparables = c(NA, NaN)) > 0
  }, NA)
}

# The probability of one of all orders.
least_spearman_p <- function(num) {
  exp(-lgamma(num + 1))
}

# Returns the p-value of correlations over `num` samples each, without ties. The
# distribution of r is symmetric. Under na = "pairwise", a row is ranked over
# all its values, so the ranks of a pair have gaps, and S need not be even. It
# is then rounded up, which makes the p-value larger.
spearman_p <- function(r, num, alternative) {
  r <- switch(alternative, greater = r, less = -r, two.sided = abs(r))
  p <- if (num <= largest_spearman_table) {
    below <- cumsum(spearman_counts(num)) / factorial(num)
    below[ceiling(spearman_sum(r, num) / 2 - 1e-6) + 1]
  } else {
    spearman_beta(r, num)
  }
  if (alternative == "two.sided") pmin(2 * p, 1) else p
}

# More counts would need too much memory to be made. Those above 18 are rounded
# to double.
largest_spearman_table <- 21

# Returns the number of permutations of 1 to num with S = 0, 2, 4, ... The table
# in R/sysdata.rda is made by tools/spearman-counts.R. It has the lower half of
# each symmetric distribution.
spearman_counts <- function(num) {
  half <- spearman_half_counts[[num - 1]]
  c(half, rev(half[seq_len((num^3 - num) / 6 + 1 - length(half))]))
}

# Returns P(R >= r), or somewhat more. The distribution is a beta distribution
# on (-reach, reach) that has the variance and the kurtosis of R (David, Kendall
# and Stuart 1951). S has steps of 2. A whole step is added, where a continuity
# correction has half of one, so that p-values up to 0.5 are not too small.
# Student's t and the series of cor.test() are too small in the far tail: the
# script inst/bench/calibration_spearman.R shows by how much.
spearman_beta <- function(r, num) {
  # The kurtosis is 3 (1 - less).
  less <- (38 * num^2 + 10 * num - 72) / (25 * num * (num^2 - 1))
  shape <- 1 / less - 1.5
  reach <- sqrt((2 / less - 2) / (num - 1))
  step <- 12 / (num^3 - num)
  p <- stats::pbeta((1 - (r - step) / reach) / 2, shape, shape)
  pmax(p, least_spearman_p(num))
}
