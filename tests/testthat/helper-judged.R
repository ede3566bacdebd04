# Data for the tests of the significance of nearest points.

# Makes an outcome that is correlated with some points.
followed <- function(num_points = 60, num_samples = 11, seed = 71) {
  x <- random_matrix(num_points, num_samples, seed = seed)
  outcome <- drop(random_matrix(1, num_samples, seed = seed + 1))
  for (row in 1:5) {
    x[row, ] <- x[row, ] / 2 + (-1)^row * (6 - row) / 2 * outcome
  }
  rownames(x) <- paste0("g", seq_len(num_points))
  list(x = x, outcome = outcome)
}

# Draws as draw_permutations() does in the call that is compared.
drawn_by <- function(seed, ...) {
  set.seed(seed)
  fsknn:::draw_permutations(...)
}
