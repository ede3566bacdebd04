# Covariates of samples, with lm() as the reference.

normal_numbers <- function(count, seed) {
  stats::qnorm(uniform_numbers(count, seed))
}

some_samples <- function(num_features, seed = 41) {
  data.frame(
    age = 50 + 10 * normal_numbers(num_features, seed),
    dose = 2^normal_numbers(num_features, seed + 1),
    batch = rep_len(c("b", "a", "c", "a"), num_features),
    treated = rep_len(c(TRUE, FALSE, FALSE), num_features)
  )
}

# Returns the correlations of lm()'s residuals. `formula` has `y` on its left.
residual_r <- function(x, formula, data, weights = NULL, ranked = FALSE) {
  if (ranked) {
    x <- t(apply(x, 1, rank))
    numbers <- vapply(data, is.numeric, NA)
    data[numbers] <- lapply(data[numbers], rank)
  }
  data$y <- t(x)
  data$w <- weights %||% rep(1, ncol(x))
  environment(formula) <- environment()
  left <- stats::residuals(stats::lm(formula, data, weights = w))
  stats::cov.wt(left, data$w / sum(data$w), cor = TRUE)$cor
}

# Returns the covariates that the core receives for a formula.
design_for <- function(formula, data, ranked = FALSE, samples = NULL) {
  told <- list(adjust = formula, data = data)
  points <- list(values = matrix(0, 1, nrow(data)))
  covariates <- fsknn:::read_covariates(
    told, NULL, points, list(points = "rows"), NULL
  )
  fsknn:::kept_covariates(covariates, ranked, samples %||% seq_len(nrow(data)))
}
