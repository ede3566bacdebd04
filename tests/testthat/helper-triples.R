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

# The naive reference for tables of alleles, of two or three rows. A sample adds
# to an entry for each choice of one allele of this kind at each locus.
naive_table <- function(rows, copies, multiplier, parameter = 2 / 3) {
  kinds <- rev(expand.grid(rep(list(0:1), nrow(rows))))
  values <- apply(kinds, 1, function(kind) {
    alleles <- lapply(seq_len(nrow(rows)), function(row) {
      if (kind[[row]] == 1) rows[row, ] else copies - rows[row, ]
    })
    weights <- vapply(alleles, function(of) 1 - parameter * mean(of) / copies, 0)
    multiplier * mean(Reduce(`*`, alleles)) / copies^nrow(rows) * prod(weights)
  })
  names(values) <- apply(kinds, 1, paste, collapse = "")
  # Mathematically equal entries may differ by rounding.
  largest <- names(values)[values > max(values) - 1e-12]
  list(similarity = max(values), alleles = paste(largest, collapse = " "))
}

naive_allele_triples <- function(x, metric = "ccc", multiplier = NULL,
                                 parameter = 2 / 3) {
  copies <- if (metric == "ccc") 2 else 1
  multiplier <- multiplier %||% if (metric == "ccc") 9 / 2 else 4
  table_of <- function(...) {
    naive_table(unname(x[c(...), , drop = FALSE] + 0), copies, multiplier, parameter)
  }
  all <- utils::combn(nrow(x), 3)
  rows <- apply(all, 2, function(at) {
    three <- table_of(at)
    pair <- function(a, b) table_of(at[[a]], at[[b]])$similarity
    data.frame(
      from = at[[1]], to = at[[2]], third = at[[3]],
      similarity = three$similarity,
      alleles = three$alleles,
      pair_from_to = pair(1, 2), pair_from_third = pair(1, 3),
      pair_to_third = pair(2, 3)
    )
  })
  do.call(rbind, rows)
}

# `expected` has all alleles that are equal but for rounding.
expect_one_of <- function(found, expected) {
  expect_true(all(mapply(grepl, as.character(found), expected, fixed = TRUE)))
}

# Makes genotypes with rare and common alleles, ties, and rows of one value.
genotype_matrix <- function(num_points, num_features, copies = 2, seed = 5) {
  x <- counts_matrix(num_points, num_features, most = 3 * copies, seed)
  x[] <- pmax(x - rep_len(c(0, copies, 2 * copies), num_points), 0)
  x[] <- pmin(x, copies)
  x[1, ] <- 0
  x[2, ] <- copies
  x
}
