# Detects values for which Student's t gives too small p-values. Over all orders
# of the samples, the third and fourth moments of a correlation follow from
# those of its two rows (Pitman 1937). A sample of the rows suffices.

# Student's t is not used for ranks without ties, and the biweight correlation
# damps the tails. `outcomes` has a row for each outcome. Without it, rows of
# the points are correlated with each other. Returns list(skew, kurtosis) of r,
# beyond those of normal values, or NULL if both are too small to matter.
tails_of <- function(search, outcomes = NULL) {
  values <- search$points$values
  metric <- search$request$metric
  if (!is.matrix(values) || !metric %in% c("pearson", "spearman")) {
    return(NULL)
  }
  rows <- unique(round(seq(
    1, nrow(values), length.out = min(nrow(values), rows_for_tails)
  )))
  rows <- setdiff(rows, search$request$skip)
  of_points <- moments_of_rows(values[rows, , drop = FALSE], search)
  of_outcomes <- if (is.null(outcomes)) {
    lapply(of_points, mean)
  } else {
    moments_of_rows(outcomes, search)
  }
  num <- ncol(values)
  skew <- mean(of_points$skew) * of_outcomes$skew *
    (num - 2) / (num * sqrt(num - 1))
  kurtosis <- mean(of_points$kurtosis) * of_outcomes$kurtosis *
    (num - 2) * (num - 3) / (3 * num * (num - 1)^2)
  # The other tail is too light.
  skew <- switch(
    search$request$sign, signed = skew, absolute = abs(skew), negative = -skew
  )
  tails <- list(skew = max(0, skew), kurtosis = max(0, kurtosis))
  num_tests <- if (is.null(outcomes)) {
    count_all_pairs(search)
  } else {
    nrow(values) - length(search$request$skip)
  }
  heavy <- excess_in_tail(tails, num_tests) > most_excess
  if (num > 3 && length(rows) > 0 && heavy) tails
}

rows_for_tails <- 1000

# Returns the relative excess of the density of r, by the first terms of
# Edgeworth's expansion (Kolassa 2006), where p-values are as small as
# Bonferroni's limit at 0.05, and 1e-4 at most. The smaller they are, the more
# skewness and kurtosis matter.
excess_in_tail <- function(tails, num_tests) {
  level <- min(largest_in_tail, 0.05 / max(1, num_tests))
  z <- stats::qnorm(level, lower.tail = FALSE)
  # `kurtosis` is a third of the excess kurtosis.
  tails$skew * (z^3 - 3 * z) / 6 + tails$kurtosis * (z^4 - 6 * z^2 + 3) / 8
}

largest_in_tail <- 1e-4

# Beyond this, inst/bench/calibration_tails.R finds a false edge by Bonferroni
# in some 10% of data sets of 1,000 points or more, and not in 5%.
most_excess <- 1

# Returns the skewness and the excess kurtosis of each row, by Fisher's
# k-statistics. With covariates they are of residuals. Ranks without ties have
# p-values of their own, and 0 here.
moments_of_rows <- function(values, search) {
  ranked <- search$request$metric == "spearman"
  skew <- kurtosis <- double(nrow(values))
  counted <- if (ranked) rows_with_ties(values) else rep(TRUE, nrow(values))
  if (!any(counted)) {
    return(list(skew = skew, kurtosis = kurtosis))
  }
  values <- values[counted, , drop = FALSE]
  storage.mode(values) <- "double"
  if (ranked) {
    values[] <- t(apply(values, 1, rank, na.last = "keep"))
  }
  values <- with_equal_variance(values / unit_of_rows(values), search)
  mean <- rowMeans(values, na.rm = TRUE)
  missing <- is.na(values)
  values[missing] <- mean[row(values)[missing]]
  design <- cbind(rep(1, ncol(values)), search$request$adjust)
  away <- t(as.matrix(stats::lm.fit(design, t(values))$residuals))
  away[missing] <- NA
  moments <- moments_of_residuals(away)
  skew[counted] <- moments$skew
  kurtosis[counted] <- moments$kurtosis
  list(skew = skew, kurtosis = kurtosis)
}

# Returns those of each row of residuals, 0 for three values or fewer.
moments_of_residuals <- function(away) {
  num <- rowSums(!is.na(away))
  variance <- rowMeans(away^2, na.rm = TRUE)
  known <- num > 3 & !is.na(variance) & variance > 0
  third <- rowMeans(away^3, na.rm = TRUE) / variance^1.5
  fourth <- rowMeans(away^4, na.rm = TRUE) / variance^2
  list(
    skew = ifelse(known, third * sqrt(num * (num - 1)) / (num - 2), 0),
    kurtosis = ifelse(
      known,
      ((num + 1) * fourth - 3 * (num - 1)) * (num - 1) /
        ((num - 2) * (num - 3)),
      0
    )
  )
}

# For compare_neighbours(). In permuted groups, values are divided by the spread
# of their own group. So a group with outliers differs less from the other than
# in the data. The mean excess kurtosis is 0 for normal values, and varies more
# in few samples. With 20 in a group, it is some 0.5 for t-distributed values of
# 10 degrees of freedom, and 1.1 with 5 degrees. `designs` has the covariates of
# each group, or is NULL.
tell_tails_of_groups <- function(values, labels, metric, designs = NULL) {
  lost <- max(1, 1 + vapply(designs, NCOL, 1L))
  freedom <- min(tabulate(labels, 2)) - lost
  # The kurtosis of fewer residuals says little.
  if (metric != "pearson" || freedom < 8) {
    return(invisible())
  }
  rows <- unique(round(seq(
    1, nrow(values), length.out = min(nrow(values), rows_for_tails)
  )))
  values <- values[rows, , drop = FALSE]
  values <- values / unit_of_rows(values)
  kurtosis <- vapply(1:2, function(group) {
    at <- which(labels == group)
    design <- cbind(rep(1, length(at)), designs[[group]][at, ])
    away <- stats::lm.fit(design, t(values[, at, drop = FALSE]))$residuals
    mean(moments_of_residuals(t(as.matrix(away)))$kurtosis)
  }, 0)
  if (mean(kurtosis) <= 0.5 + 3 / freedom) {
    return(invisible())
  }
  cli::cli_inform(
    c(
      "P-values may be too small, because values have heavy tails.",
      i = "Spearman's correlation suits such values:
           {.code metric = \"spearman\"}."
    ),
    class = "fsknn_tails"
  )
}

# `cure` says what the caller offers, or does.
tell_tails <- function(tails, metric, cure) {
  if (is.null(tails)) {
    return(invisible())
  }
  cli::cli_inform(
    c(
      "P-values of t tests may be far too small, because values are skewed, or
       have outliers or many ties.",
      i = cure,
      i = if (metric == "pearson") {
        "Or transform the values (such as the logarithm, or a
         variance-stabilising transformation of counts), or use
         {.code metric = \"spearman\"} if few values are equal."
      }
    ),
    class = "fsknn_tails"
  )
}
