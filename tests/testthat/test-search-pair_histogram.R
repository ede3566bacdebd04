# Returns all pairs, each once, as vectors.
pair_values <- function(x, metric, sign = "signed", value = "similarity") {
  distance <- naive_distance(x, metric = metric, sign = sign)
  distance <- distance[upper.tri(distance)]
  if (value == "distance") distance else 1 - distance
}

# Counts the values in each bin, one bin after another.
naive_bins <- function(values, breaks) {
  bins <- length(breaks) - 1
  vapply(seq_len(bins), function(b) {
    upper <- if (b == bins) values <= breaks[[b + 1]] else
      values < breaks[[b + 1]]
    sum(values >= breaks[[b]] & upper)
  }, 1) + 0
}

test_that("counts are those of dist() on whole numbers, ties on breaks", {
  x <- matrix(withr::with_seed(1, sample(0:4, 90 * 6, TRUE)), 90)
  breaks <- c(2, 3, 5, 8, 9, 14)
  for (metric in c("manhattan", "chebyshev", "euclidean")) {
    of <- switch(metric, chebyshev = "maximum", metric)
    d <- as.vector(stats::dist(x, of))
    at <- if (metric == "euclidean") sqrt(breaks * 4) else breaks
    expect_gt(sum(d %in% at), 0)
    found <- pair_histogram(x, at, metric)
    expect_identical(found$counts, naive_bins(d, at))
    expect_identical(found$below, sum(d < at[[1]]) + 0)
    expect_identical(found$above, sum(d > at[[6]]) + 0)
    expect_identical(found$pairs, 90 * 89 / 2)
    expect_identical(found$value, "distance")
    expect_identical(pair_histogram(x, at, metric, num_threads = 1), found)
  }
  # These are products of whole numbers.
  dot <- -tcrossprod(x)
  dot <- dot[upper.tri(dot)]
  at <- c(-Inf, -40, -20, -10, Inf)
  expect_identical(
    pair_histogram(x, at, "inner_product")$counts, naive_bins(dot, at)
  )
})

test_that("similarities of binary data tie on breaks", {
  x <- matrix(withr::with_seed(2, stats::rbinom(80 * 8, 1, 0.5)), 80)
  x <- x[rowSums(x) > 0, ]
  at <- c(0, 0.25, 0.5, 0.75, 1)
  for (metric in c("jaccard", "sorensen", "proportional")) {
    values <- pair_values(x, metric)
    # A tie may be off by the rounding error of the reference.
    values <- round(values, 12)
    expect_gt(sum(values %in% at[2:4]), 0)
    expect_identical(
      pair_histogram(x, at, metric)$counts, naive_bins(values, at)
    )
  }
})

test_that("correlations are counted for every sign, weighted or adjusted", {
  x <- random_matrix(150, 12, seed = 3)
  for (metric in c("pearson", "spearman", "bicor", "cosine")) {
    signs <- if (metric == "cosine") "signed" else
      c("signed", "absolute", "negative")
    for (sign in signs) {
      for (value in c("similarity", "distance")) {
        # No rank correlation of 12 samples equals a break of 17 bins.
        found <- pair_histogram(x, 17, metric, sign, value = value)
        expect_identical(
          found$counts,
          naive_bins(pair_values(x, metric, sign, value), found$breaks)
        )
        expect_identical(found$below + found$above, 0)
        on_cpu <- pair_histogram(
          x, 17, metric, sign, value = value, backend = "cpu"
        )
        expect_lt(on_cpu$exact, found$pairs / 2)
      }
    }
  }
  weights <- rep(1:3, 4)
  w <- stats::cov.wt(t(x), weights, cor = TRUE)$cor
  found <- pair_histogram(x, 10, weights = weights)
  expect_identical(found$counts, naive_bins(w[upper.tri(w)], found$breaks))
  expect_true(found$weighted)
  z <- seq_len(12)
  left <- t(stats::residuals(stats::lm(t(x) ~ z)))
  r <- stats::cor(t(left))
  found <- pair_histogram(x, 10, adjust = ~ z, data = data.frame(z = z))
  expect_identical(found$counts, naive_bins(r[upper.tri(r)], found$breaks))
})

test_that("a break has as many pairs above it as the graph has edges", {
  x <- random_matrix(120, 9, seed = 4)
  edges <- threshold_graph(x, 0.2, backend = "cpu")
  # Breaks equal observed values, to the last bit.
  at <- sort(unique(c(edges$correlation[c(1, 50, 400)], 0.2, 1)))
  pairs <- summary(pair_histogram(x, at))$table$pairs
  for (b in 1:4) {
    expect_identical(
      pairs[[b]], nrow(threshold_graph(x, at[[b]], backend = "cpu")) + 0
    )
  }
  # There is no double between two of the breaks.
  r <- edges$correlation[[7]]
  near <- r * (1 + c(-1e-15, 0, 1e-15))
  all <- edges$correlation
  expect_identical(pair_histogram(x, near)$counts, naive_bins(all, near))
})

test_that("missing values, isolated points and no pairs are told of", {
  x <- random_matrix(60, 8, seed = 5)
  x[withr::with_seed(5, sample(480, 120))] <- NA
  r <- suppressWarnings(stats::cor(t(x), use = "pairwise.complete.obs"))
  common <- tcrossprod(!is.na(x))
  r[common < 4] <- NA
  values <- r[upper.tri(r)]
  found <- pair_histogram(x, 7, na = "pairwise", min_pairs = 4)
  expect_identical(
    found$counts, naive_bins(values[!is.na(values)], found$breaks)
  )
  expect_identical(found$no_value, sum(is.na(values)) + 0)
  expect_gt(found$no_value, 0)

  x <- random_matrix(40, 6, seed = 6)
  x[c(3, 9), ] <- 1
  found <- pair_histogram(x, 4, constant = "isolate")
  expect_identical(found$num_isolated, 2L)
  expect_identical(found$pairs, 38 * 37 / 2)
  expect_identical(found$counts, pair_histogram(x[-c(3, 9), ], 4)$counts)
  same <- pair_histogram(matrix(1:3, 5, 3, TRUE), 4, "manhattan")
  expect_identical(same$breaks, c(0, 0))
  expect_identical(same$counts, 10)
})

test_that("a number of bins spans the values that there are", {
  x <- random_matrix(50, 5, seed = 7)
  for (metric in c("euclidean", "manhattan", "canberra", "inner_product")) {
    found <- pair_histogram(x, 6, metric)
    d <- pair_values(x, metric, value = "distance")
    expect_length(found$counts, 6)
    expect_equal(found$breaks[c(1, 7)], range(d))
    expect_identical(sum(found$counts), 50 * 49 / 2)
    expect_gt(found$counts[[1]] * found$counts[[6]], 0)
  }
  # No bin width overflows.
  big <- x * 1e307 / max(abs(x))
  found <- pair_histogram(big, 3, "chebyshev")
  expect_identical(sum(found$counts), 50 * 49 / 2)
})

test_that("containers and columns are taken", {
  x <- random_matrix(30, 8, seed = 8)
  found <- pair_histogram(x, 5)
  expect_identical(pair_histogram(t(x), 5, points = "columns"), found)
  skip_if_not_installed("SummarizedExperiment")
  held <- SummarizedExperiment::SummarizedExperiment(list(a = x))
  expect_identical(pair_histogram(held, 5), found)
})

test_that("histograms print, sum up and are data frames", {
  x <- matrix(c(0, 1, 3, 7, 12, 20), 6)
  found <- pair_histogram(x, c(2, 4, 8, 13), "manhattan")
  expect_snapshot({
    found
    summary(found)
    as.data.frame(found)
  })
  table <- summary(found)$table
  d <- as.vector(stats::dist(x))
  expect_identical(table$pairs, c(sum(d < 2), sum(d < 4), sum(d < 8)) + 0)
})

test_that("histograms are drawn", {
  skip_if_not_installed("ggplot2")
  x <- random_matrix(60, 8, seed = 9)
  found <- pair_histogram(x, c(-Inf, seq(-1, 1, 0.1), Inf))
  for (log in c(FALSE, TRUE)) {
    drawn <- plot(found, log = log)
    expect_s3_class(drawn, "ggplot")
    expect_no_error(ggplot2::ggplotGrob(drawn))
  }
  expect_identical(nrow(plot(found)$data), 20L)
})

test_that("wrong input is told of", {
  x <- random_matrix(10, 4, seed = 10)
  expect_messages({
    pair_histogram(x)
    pair_histogram(x, "a")
    pair_histogram(x, 2.5)
    pair_histogram(x, 0)
    pair_histogram(x, c(0, NA))
    pair_histogram(x, c(0, 0.5, 0.5))
    pair_histogram(x, c(1, 0))
    pair_histogram(x, 5, value = "weight")
    pair_histogram(x, 5, "euclidean", value = "similarity")
    pair_histogram(x, 5, subset = 1)
    pair_histogram(rbind(x, 1), 5)
    pair_histogram(1e308 * rbind(c(1, 1), -1), c(0, 1), "manhattan")
    plot(pair_histogram(x, 5), log = NA)
  })
})

test_that("breaks that pairs have leave as many as threshold_graph() gives", {
  # For close rows, 1 - r and r differ in their last bits.
  x <- rep(exp(random_matrix(1, 11)), each = 12) *
    (1 + 1e-3 * random_matrix(12, 11, seed = 2))
  gaps <- x
  gaps[cbind(1:12, 1:12 %% 11 + 1)] <- NA
  for (metric in c("pearson", "spearman", "cosine", "proportional")) {
    for (na in c("error", if (metric == "pearson") "pairwise")) {
      data <- if (na == "error") x else gaps
      edges <- threshold_graph(data, 0, metric, na = na)
      attained <- edges$correlation %||% edges$similarity %||%
        (1 - edges$distance)
      at <- sort(unique(attained))
      found <- pair_histogram(data, c(at, 2), metric, na = na)
      expect_identical(
        rev(cumsum(rev(found$counts))),
        vapply(at, function(least) {
          nrow(threshold_graph(data, least, metric, na = na)) + 0
        }, 0)
      )
    }
  }
})

test_that("of 0 and 1 common bits tell all pairs, however narrow the bins", {
  x <- (random_matrix(60, 30) > 0) + 0
  for (metric in c(
    "jaccard", "sorensen", "proportional", "manhattan", "euclidean"
  )) {
    values <- pair_values(x, metric, value = "distance")
    breaks <- sort(unique(round(c(values - 1e-9, values + 1e-9, -1, 40), 12)))
    found <- pair_histogram(
      x, breaks, metric, value = "distance", constant = "isolate",
      backend = "cpu"
    )
    expect_identical(found$exact, 0, info = metric)
    expect_equal(found$counts, naive_bins(values, breaks), info = metric)
  }
})
