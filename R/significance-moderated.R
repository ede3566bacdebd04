# Moderated variances of studentized statistics. A variance of few residuals is
# variable, and the smallest of thousands of points would rule the maximum. So
# each part of a variance is a weighted mean of its own estimate and of a prior,
# which is common to all points (Smyth 2004). Variances are relative to that of
# all residuals of the point, so that no scale of points matters. The parts are
# one for each level of a factor, or HC2 of numbers.

# With fewer points, the variances of samples are not estimated.
least_points <- 10
# Of more points, some that are spread evenly give the variances of samples and
# the priors. These are few numbers, so that some points suffice.
prior_points <- 2048

# Returns the design with samples weighted by the inverse of their variance over
# points. Without it, permuted groups would mix samples of several variances,
# and the tails of their statistics would differ from those of the data.
# Permutation does not change these weights. The variances are moderated, too.
weigh_samples <- function(design, search, call) {
  if (design$kind == "ratio" || !is.null(design$root)) {
    return(design)
  }
  every <- every_point(search)
  values <- over_all_points(search, design, call, function(values, rows) {
    values[rows %% every == 0 & !is.na(values[, 1]), , drop = FALSE]
  })
  has_residuals <- rowSums(design$basis^2) < 1 - 1e-8
  if (nrow(values) < least_points || sum(has_residuals) < 2) {
    return(design)
  }
  basis <- design$basis
  spread <- rep(1, length(has_residuals))
  # Residuals mix the variances of samples, and those of points have the length
  # 1. Both matter less with weights.
  for (step in seq_len(5)) {
    root <- 1 / sqrt(spread)
    design$basis <- qr.Q(qr(basis * root))
    design$spread <- root
    squares <- colMeans(weighed_rows(values, design)^2) /
      (1 - rowSums(design$basis^2))
    spread <- spread * replace(squares, !has_residuals, mean(squares))
    spread <- pmax(spread / mean(spread[has_residuals]), 0.01)
  }
  prior <- variance_prior(moments_of(spread[has_residuals]), nrow(values), Inf)
  of_prior <- 1 / (1 + nrow(values) / prior$freedom[[1]])
  spread <- of_prior * prior$scale[[1]] + (1 - of_prior) * spread
  design$root <- design$spread <- 1 / sqrt(spread)
  design$basis <- qr.Q(qr(basis * design$root))
  if (!is.null(design$prepared)) {
    design$prepared <- weighed_rows(design$prepared, design)
  }
  design
}

every_point <- function(search) {
  ceiling(nrow(search$points$values) / prior_points)
}

weighed_rows <- function(values, design) {
  if (is.null(design$spread)) {
    return(values)
  }
  values <- off_basis(
    values * rep(design$spread, each = nrow(values)), design$basis
  )
  values / sqrt(rowSums(values^2))
}

# Returns the outcomes (see outcomes_for()) with the parts of their variances,
# with a row for each part and a column for each outcome:
#   freedom   degrees of freedom, if all samples have the same variance
#   expected  the expected sum of squares
#   of_prior, of_sum, of_freedom  for VarianceParts in C++
# and the degrees of freedom of all residuals, `total`. All points give the
# prior, but for the one that the outcome is.
with_parts <- function(outcomes, design, search, call, outcome = NULL) {
  if (design$kind == "ratio") {
    return(outcomes)
  }
  outcomes$parts <- parts <- new_parts(outcomes, design)
  self <- if (!is.null(outcome)) search$request$query_self[[outcome]]
  every <- every_point(search)
  moments <- 0
  # nolint start: undesirable_operator_linter
  for_row_blocks(search, design, call, function(values, rows) {
    place <- ifelse(
      is.na(values[, 1]) | rows %in% self | rows %% every != 0, -1L, 0L
    )
    moments <<- moments + in_core(
      cpp_permuted_statistics(
        values, outcomes, parts, "signed", place, 0, "score",
        search$options$num_threads
      ),
      call
    )$moments
  })
  # nolint end
  outcomes$parts <- with_prior(parts, moments)
  outcomes
}

new_parts <- function(outcomes, design) {
  num_free <- nrow(design$basis) - ncol(design$basis)
  if (design$kind == "welch") {
    counts <- tabulate(design$levels)
    freedom <- matrix(counts - 1, length(counts), ncol(outcomes$levels))
    return(list(
      freedom = freedom, expected = freedom, share = 1,
      total = num_free - length(counts) + 1
    ))
  }
  weight <- outcomes$weight
  left <- outcomes$left
  first <- colSums(weight * left)
  if (design$has_groups) {
    freedom <- rbind(first, colSums(left) - first)
    parts <- list(
      freedom = freedom, expected = pmax(freedom, 1e-8),
      share = rbind(outcomes$last, 1 - outcomes$last)
    )
  } else {
    # Bell and McCaffrey (2002).
    basis <- design$basis
    products <- lapply(seq_len(ncol(basis)), function(at) {
      colSums(crossprod(basis * basis[, at], weight)^2)
    })
    squares <- colSums(weight^2 * (2 * left - 1)) + Reduce(`+`, products) +
      2 * colSums(crossprod(basis, outcomes$weighted)^2) + outcomes$last^2
    parts <- list(
      freedom = t(first^2 / squares), expected = t(pmax(first, 1e-8)), share = 1
    )
  }
  c(parts, list(total = num_free - 1))
}

with_prior <- function(parts, moments) {
  prior <- variance_prior(moments, parts$freedom, parts$total)
  # Such a part has no variance of its own.
  unknown <- which(!(parts$freedom >= 0.5))
  prior$freedom[unknown] <- Inf
  prior$scale[unknown] <- 1
  of_prior <- 1 / (1 + parts$freedom / prior$freedom)
  c(parts, list(
    of_prior = parts$share * of_prior * prior$scale / parts$total,
    of_sum = parts$share * (1 - of_prior) / parts$expected,
    of_freedom = parts$freedom + prior$freedom
  ))
}

# Returns the number of variances, and the sums of them, of their logarithms,
# and of the squares of these.
moments_of <- function(variances) {
  logs <- log(pmax(variances, 1e-5))
  array(
    c(length(variances), sum(variances), sum(logs), sum(logs^2)), c(4, 1, 1)
  )
}

# Returns the degrees of freedom and the scale of the prior of variances, by the
# method of moments of their logarithms, as limma's fitFDist() does. `moments`
# is [4 x parts x outcomes], and `freedom` are the degrees of freedom of the
# variances. Those relative to the mean of `total` residuals vary less: if all
# have the same variance, the share of a sum of squares has a beta distribution.
variance_prior <- function(moments, freedom, total) {
  size <- dim(moments)[-1]
  sums <- array(moments, c(4, prod(size)))
  count <- sums[1, ]
  mean <- sums[3, ] / count
  variance <- (sums[4, ] - count * mean^2) / (count - 1)
  excess <- variance - trigamma(freedom / 2) +
    if (is.finite(total)) trigamma(total / 2) else 0
  mean <- mean - log_bias(freedom) + log_bias(total)
  found <- list(freedom = rep(Inf, ncol(sums)), scale = sums[2, ] / count)
  varies <- which(excess > 0)
  freedom <- 2 * trigamma_inverse(excess[varies])
  found$freedom[varies] <- freedom
  found$scale[varies] <- exp(mean[varies] + log_bias(freedom))
  found$freedom[count == 1] <- 0
  found$scale[count == 0] <- 1
  lapply(found, array, size)
}

# Returns the expected logarithm of a variance, relative to its own.
log_bias <- function(freedom) {
  bias <- digamma(freedom / 2) - log(freedom / 2)
  replace(bias, is.infinite(freedom), 0)
}

# Newton's method for 1 / trigamma(), which is convex (limma).
trigamma_inverse <- function(x) {
  y <- 0.5 + 1 / x
  for (step in seq_len(12)) {
    value <- trigamma(y)
    y <- y + value * (1 - value / x) / psigamma(y, 2)
  }
  y[x > 1e7] <- 1 / sqrt(x[x > 1e7])
  y[x < 1e-6] <- 1 / x[x < 1e-6]
  y
}
