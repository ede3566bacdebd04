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
correlation_p_value <- function(r, num_features, num_covariates = 0,
                                metric = "pearson", alternative, ties = NULL) {
  freedom <- num_features - 2 - num_covariates
  p <- r_to_p(r, rep_len(freedom, length(r)), alternative)
  if (metric != "spearman" || num_covariates > 0) {
    return(p)
  }
  num <- rep_len(num_features, length(r))
  exact <- !is.na(r) & num > 1 & num <= largest_exact_spearman &
    !rep_len(ties %||% FALSE, length(r))
  if (is.null(ties)) {
    exact <- exact & is_without_ties(r, num)
  }
  for (size in unique(num[exact])) {
    at <- which(exact & num == size)
    p[at] <- spearman_p(r[at], size, alternative)
  }
  p
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

# This limit is that of cor.test(): for more samples, and with ties, it uses
# Student's t.
largest_exact_spearman <- 1290

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

# Returns whether each row of a matrix has equal values.
rows_with_ties <- function(values) {
  vapply(seq_len(nrow(values)), function(row) {
    anyDuplicated(values[row, ]) > 0
  }, NA)
}

# This is the p-value of cor.test() for correlations over `num` samples each.
spearman_p <- function(r, num, alternative) {
  sum <- spearman_sum(r, num)
  upper <- switch(
    alternative, greater = FALSE, less = TRUE,
    two.sided = sum > (num^3 - num) / 6
  )
  # P(S <= sum) is 1 - P(S >= sum + 2).
  p <- spearman_tail(round(sum) + ifelse(upper, 0, 2), num, upper)
  if (alternative == "two.sided") pmin(2 * p, 1) else p
}

# Returns P(S >= sum), or 1 minus that, for independent points without ties. Up
# to nine samples it counts permutations. Beyond, it uses the Edgeworth series
# of Best and Roberts (1975), algorithm AS 89.
spearman_tail <- function(sum, num, upper) {
  upper <- rep_len(upper, length(sum))
  if (num <= 9) {
    counts <- spearman_counts(num)
    above <- rev(cumsum(rev(counts))) / sum(counts)
    at <- pmin(pmax(sum / 2, 0), length(counts)) + 1
    return(ifelse(upper, c(above, 0)[at], 1 - c(above, 0)[at]))
  }
  x <- (6 * (sum - 1) / (num * (num^2 - 1)) - 1) * sqrt(num - 1)
  p <- stats::pnorm(ifelse(upper, -x, x)) +
    ifelse(upper, 1, -1) * edgeworth_terms(x, num)
  p <- pmin(pmax(p, 0), 1)
  # All of S is at or above its minimum, and none is beyond its maximum.
  p[sum <= 0] <- as.double(upper[sum <= 0])
  beyond <- sum > (num^3 - num) / 3
  p[beyond] <- as.double(!upper[beyond])
  p
}

# AS 89 adds these terms to the normal distribution.
edgeworth_terms <- function(x, num) {
  b <- 1 / num
  y <- x^2
  by_y3 <- 0.0131 - 4.6e-4 * y
  by_y2 <- 0.0072 - 0.0831 * b + y * b * by_y3
  by_y <- -0.0758 + b * (0.1033 + 0.3932 * b) -
    y * b * (0.0879 + 0.0151 * b - y * by_y2)
  x * b * (0.2274 + b * (0.2531 + 0.1745 * b) + y * by_y) / exp(y / 2)
}

# Counts the permutations of 1 to num with S = 0, 2, 4, ... The recursion is
# over the set of numbers already placed, whose size is the next place.
spearman_counts <- function(num) {
  largest <- (num^3 - num) / 3
  counts <- matrix(0, largest + 1, 2^num)
  counts[1, 1] <- 1
  for (set in seq_len(2^num - 1) - 1) {
    taken <- bitwAnd(set, bitwShiftL(1L, seq_len(num) - 1L)) > 0
    place <- sum(taken) + 1
    for (number in which(!taken)) {
      by <- (number - place)^2
      to <- seq_len(largest + 1 - by) + by
      with <- set + 2^(number - 1) + 1
      counts[to, with] <- counts[to, with] + counts[to - by, set + 1]
    }
  }
  counts[seq(1, largest + 1, by = 2), 2^num]
}
