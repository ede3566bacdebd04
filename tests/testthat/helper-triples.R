# The naive reference for triples, in plain R, one triple at a time. It uses the
# formula of CoMet's authors (numerators of pairs and of triples), where the
# package uses maxima.
naive_triples <- function(x, rows = seq_len(nrow(x))) {
  x <- x + 0
  rows <- rows[rowSums(x[rows, , drop = FALSE]) > 0]
  all <- utils::combn(rows, 3)
  low <- function(...) sum(pmin(...))
  values <- apply(all, 2, function(at) {
    a <- x[at[[1]], ]
    b <- x[at[[2]], ]
    c <- x[at[[3]], ]
    n <- c(low(a, b), low(a, c), low(b, c))
    sums <- c(sum(a), sum(b), sum(c))
    of_three <- 3 * (sum(n) - low(a, b, c)) / (2 * sum(sums))
    pairs <- 2 * n / (sums[c(1, 1, 2)] + sums[c(2, 3, 3)])
    maxima <- sums[c(1, 1, 2)] + sums[c(2, 3, 3)] - n
    # For the pairs 12, 13, 23, these are the two that contain a point.
    most <- min(
      maxima[[1]] + maxima[[2]] - sums[[1]],
      maxima[[1]] + maxima[[3]] - sums[[2]],
      maxima[[2]] + maxima[[3]] - sums[[3]]
    )
    bound <- function(maximum) 1.5 * (1 - maximum / sum(sums))
    c(of_three, pairs, bound(most), bound(max(maxima)))
  })
  found <- data.frame(t(all), t(values))
  names(found) <- fsknn:::triple_columns
  found
}

# Makes small whole numbers, so that all sums are exact. They have many ties and
# zeros, and some rows are repeated.
counts_matrix <- function(num_points, num_features, most = 3, seed = 1) {
  x <- matrix(
    whole_numbers(num_points * num_features, seed) %% (most + 1),
    num_points, num_features
  )
  x[, 1] <- x[, 1] + 1
  twice <- seq_len(num_points %/% 4)
  x[num_points + 1 - twice, ] <- x[twice, ]
  x
}

# Numbers are compared with a tolerance, because the two formulas round
# differently.
expect_same_triples <- function(found, expected) {
  expect_identical(nrow(found), nrow(expected))
  expect_identical(found$from, expected$from)
  expect_identical(found$to, expected$to)
  expect_identical(found$third, expected$third)
  for (column in fsknn:::triple_columns[-(1:3)]) {
    expect_equal(found[[column]], expected[[column]], tolerance = 1e-12,
                 label = column)
  }
}
