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

# Counts the permutations of 1 to num with S = 0, 2, 4, ... The recursion is
# over the set of numbers already placed, whose size is the next place. The
# seconds that it takes for 11 are spent once.
naive_spearman_counts <- function(num) {
  known <- spearman_counts_found[[as.character(num)]]
  if (!is.null(known)) {
    return(known)
  }
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
  found <- counts[seq(1, largest + 1, by = 2), 2^num]
  assign(as.character(num), found, spearman_counts_found)
  found
}
spearman_counts_found <- new.env()

# Returns the exact p-value of Spearman's r, without ties. cor.test() has it for
# up to nine samples.
naive_spearman_p <- function(r, num, alternative) {
  counts <- naive_spearman_counts(num)
  values <- 1 - 12 * (seq_along(counts) - 1) / (num^3 - num)
  vapply(r, function(one) {
    tails <- c(
      greater = sum(counts[values >= one - 1e-9]),
      less = sum(counts[values <= one + 1e-9])
    ) / sum(counts)
    if (alternative == "two.sided") {
      min(2 * tails, 1)
    } else {
      tails[[alternative]]
    }
  }, 0)
}
