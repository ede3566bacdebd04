# p-values of edges compared with all pairs, cor.test() and a loop over graphs.

paired_rows <- function(n = 40, d = 20, seed = 2) {
  withr::local_seed(seed)
  x <- matrix(stats::rnorm(n * d), n)
  x[2, ] <- x[1, ] + 0.3 * x[2, ]
  x[4, ] <- 0.5 * x[4, ] - x[3, ]
  rownames(x) <- paste0("g", seq_len(n))
  x
}

# Returns p of every pair by cor.test(), from < to. Its p-values of Spearman's
# correlation are not exact for more than nine samples: see
# test-significance-correlation_p.R.
all_pairs_p <- function(x, method, alternative) {
  pairs <- utils::combn(nrow(x), 2)
  p <- apply(pairs, 2, function(at) {
    if (method == "spearman") {
      r <- stats::cor(x[at[1], ], x[at[2], ], method = method)
      return(correlation_p_value(r, ncol(x), 0, method, alternative, FALSE))
    }
    suppressWarnings(stats::cor.test(
      x[at[1], ], x[at[2], ], method = method, alternative = alternative
    ))$p.value
  })
  names <- rownames(x)
  stats::setNames(p, paste(names[pairs[1, ]], names[pairs[2, ]]))
}

test_that("p-values are those of cor.test(), each pair once", {
  x <- paired_rows()
  alternatives <- c(
    signed = "greater", absolute = "two.sided", negative = "less"
  )
  for (metric in c("pearson", "spearman")) {
    for (sign in names(alternatives)) {
      edges <- knn_graph(x, 4, metric, sign, backend = "cpu")
      found <- edge_significance(edges, x, backend = "cpu")
      p <- all_pairs_p(x, metric, alternatives[[sign]])
      expect_equal(
        found$p_value, unname(p[paste(found$from, found$to)]),
        tolerance = 1e-10
      )
      expect_identical(nrow(found), nrow(undirected_edges(edges, "union")))
      # Values are at least those over all pairs.
      for (method in c("BH", "BY", "bonferroni")) {
        ours <- edge_significance(edges, x, p_adjust = method, backend = "cpu")
        of_all <- stats::p.adjust(p, method)[paste(found$from, found$to)]
        expect_gte(min(ours$p_adjusted - of_all), -1e-12)
        expect_equal(
          ours$p_adjusted,
          stats::p.adjust(ours$p_value, method, n = 780), tolerance = 1e-10
        )
      }
    }
  }
})

test_that("counts have ties, as cor.test() sees them", {
  withr::local_seed(5)
  x <- matrix(stats::rpois(60 * 8, 2), 60)
  for (sign in c("absolute", "negative")) {
    edges <- knn_graph(
      x, 8, "spearman", sign, constant = "isolate", backend = "cpu"
    )
    found <- edge_significance(edges, x, constant = "isolate", backend = "cpu")
    by_test <- mapply(function(from, to) {
      suppressWarnings(stats::cor.test(
        x[from, ], x[to, ], method = "spearman",
        alternative = if (sign == "negative") "less" else "two.sided"
      ))$p.value
    }, as.integer(found$from), as.integer(found$to))
    expect_equal(found$p_value, by_test, tolerance = 1e-10)
  }
})

test_that("of the nearest of all pairs the adjusted p-values are the same", {
  x <- paired_rows()
  p <- all_pairs_p(x, "pearson", "greater")
  edges <- threshold_graph(x, min_similarity = 0.3, backend = "cpu")
  found <- edge_significance(edges, x, backend = "cpu")
  at <- paste(found$from, found$to)
  of_all <- stats::p.adjust(p, "BH")[at]
  # The last ones are excluded, because later p-values might lower them.
  first <- found$p_adjusted < max(found$p_adjusted)
  expect_gt(sum(first), 0)
  expect_equal(found$p_adjusted[first], unname(of_all[first]))
})

test_that("the sum of 1 / i is that, however far", {
  for (n in c(1, 2, 10, 1000)) {
    expect_equal(fsknn:::harmonic_number(n), sum(1 / seq_len(n)))
  }
  expect_equal(
    fsknn:::harmonic_number(1e12), log(1e12) + 0.5772156649, tolerance = 1e-9
  )
})

test_that("covariates and missing values cost degrees of freedom", {
  x <- paired_rows()
  covariates <- data.frame(
    age = uniform_numbers(20, 3), batch = factor(rep_len(1:3, 20))
  )
  edges <- knn_graph(
    x, 4, backend = "cpu", adjust = ~ age + batch, data = covariates
  )
  found <- withr::with_seed(3, edge_significance(
    edges, x, backend = "cpu", adjust = ~ age + batch, data = covariates,
    permutations = 9
  ))
  # The p-value is that of the slope of one row on the other and the covariates.
  by_fit <- mapply(function(from, to) {
    t <- summary(stats::lm(
      x[from, ] ~ x[to, ] + age + batch, covariates
    ))$coefficients[2, "t value"]
    stats::pt(t, 20 - 2 - 3, lower.tail = FALSE)
  }, found$from, found$to)
  expect_equal(found$p_value, unname(by_fit), tolerance = 1e-9)
  permuted <- withr::with_seed(3, vapply(1:9, function(at) {
    min(knn_search(
      fsknn:::permute_within_points(x), 1, backend = "cpu",
      adjust = ~ age + batch, data = covariates
    )$distance)
  }, 0))
  expect_equal(found$p_permutation, vapply(found$distance, function(d) {
    (sum(permuted <= d) + 1) / 10
  }, 0))
  expect_wrong(edge_significance(edges, x), "`adjust` must be given")
  x[cbind(1:40, rep_len(1:20, 40))] <- NA
  x[1, 3:7] <- NA
  edges <- suppressMessages(knn_graph(x, 4, na = "pairwise", backend = "cpu"))
  found <- edge_significance(edges, x, na = "pairwise", backend = "cpu")
  by_test <- mapply(function(from, to) {
    stats::cor.test(x[from, ], x[to, ], alternative = "greater")$p.value
  }, found$from, found$to)
  expect_equal(found$p_value, unname(by_test), tolerance = 1e-10)
  edges <- knn_graph(x, 4, na = "mean", backend = "cpu")
  found <- edge_significance(edges, x, na = "mean", backend = "cpu")
  filled <- t(apply(x, 1, function(row) {
    replace(row, is.na(row), mean(row, na.rm = TRUE))
  }))
  by_test <- mapply(function(from, to) {
    stats::cor.test(
      filled[from, ], filled[to, ], alternative = "greater"
    )$p.value
  }, found$from, found$to)
  expect_equal(found$p_value, unname(by_test), tolerance = 1e-10)
})

test_that("p-values keep their level where means stand for missing values", {
  p <- withr::with_seed(3, unlist(lapply(1:20, function(at) {
    x <- matrix(stats::rnorm(40 * 20), 40)
    x[sample(800, 240)] <- NA
    all <- threshold_graph(x, min_similarity = -1, na = "mean", backend = "cpu")
    edge_significance(all, x, na = "mean", backend = "cpu")$p_value
  })))
  # There are 15,600 pairs, and those of one data set are dependent.
  expect_lt(abs(mean(p <= 0.05) - 0.05), 0.008)
  expect_lt(abs(mean(p <= 0.01) - 0.01), 0.004)
})

test_that("rows are permuted as sample.int() does, one after another", {
  x <- paired_rows(7, 13)
  for (values in list(x, round(x), x > 0)) {
    storage.mode(values) <- if (is.logical(values)) "logical" else "double"
    ours <- withr::with_seed(6, fsknn:::permute_within_points(values))
    expected <- unname(withr::with_seed(6, {
      t(apply(values, 1, function(row) row[sample.int(length(row))]))
    }))
    expect_identical(ours, expected)
  }
  integers <- matrix(1:60, 5)
  expect_identical(
    withr::with_seed(6, fsknn:::permute_within_points(integers)),
    withr::with_seed(6, t(apply(integers, 1, function(row) {
      row[sample.int(12)]
    })))
  )
})

# Returns the smallest distances of each point, with a permutation in each
# column.
naive_null <- function(x, permutations, seed, ...) {
  withr::local_seed(seed)
  vapply(seq_len(permutations), function(at) {
    permuted <- t(apply(x, 1, function(row) row[sample.int(length(row))]))
    knn_search(permuted, 1, ..., backend = "cpu")$distance[, 1]
  }, numeric(nrow(x)))
}

test_that("permutations run the search again on independent points", {
  x <- paired_rows()
  for (sign in c("signed", "absolute")) {
    edges <- knn_graph(x, 3, sign = sign, backend = "cpu")
    for (backend in backends_here()) {
      found <- withr::with_seed(5, edge_significance(
        edges, x, permutations = 19, backend = backend
      ))
      null <- naive_null(x, 19, 5, sign = sign)
      of_all <- apply(null, 2, min)
      expect_equal(
        found$p_permutation,
        vapply(found$distance, function(distance) {
          (sum(of_all <= distance) + 1) / 20
        }, 0)
      )
      from <- match(found$from, rownames(x))
      expect_equal(found$p_from, vapply(seq_along(from), function(at) {
        (sum(null[from[at], ] <= found$distance[at]) + 1) / 20
      }, 0))
      expect_true(all(c("p_value", "p_adjusted") %in% names(found)))
    }
  }
  expect_identical(
    found$p_permutation[found$from == "g1" & found$to == "g2"], 0.05
  )
})

test_that("without a common scale points are held against their own null", {
  x <- paired_rows()
  # These rows have low variance and are near to each other only because of
  # that.
  x[21:40, ] <- 0.05 * x[21:40, ]
  edges <- knn_graph(x, 3, "euclidean", backend = "cpu")
  found <- withr::with_seed(5, edge_significance(
    edges, x, permutations = 19, backend = "cpu"
  ))
  null <- naive_null(x, 19, 5, metric = "euclidean")
  observed <- knn_search(x, 1, "euclidean", backend = "cpu")$distance[, 1]
  all <- cbind(observed, null)
  score <- (all - rowMeans(all)) / apply(all, 1, function(row) {
    sqrt(mean((row - mean(row))^2))
  })
  of_all <- apply(score[, -1], 2, min)
  ends <- lapply(found[c("from", "to")], match, rownames(x))
  expected <- vapply(seq_len(nrow(found)), function(at) {
    both <- vapply(ends, `[`, 1L, at)
    mine <- min((found$distance[at] - rowMeans(all)[both]) /
                  apply(all[both, ], 1, function(row) {
                    sqrt(mean((row - mean(row))^2))
                  }))
    (sum(of_all <= mine + 1e-9) + 1) / 20
  }, 0)
  expect_equal(found$p_permutation, expected)
  expect_null(found$p_value)
  # The related pair is most significant, not the points of low variance.
  expect_identical(
    unname(unlist(found[which.min(found$p_permutation), c("from", "to")])),
    c("g1", "g2")
  )
  expect_gt(min(found$p_permutation[ends$from > 20 & ends$to > 20]), 0.05)
})

test_that("a seed repeats the answer for threads, workers and checkpoints", {
  # Skewed values, whose permuted pairs are counted
  x <- exp(paired_rows(60, 16))
  edges <- knn_graph(x, 3, backend = "cpu")
  ask <- function(seed = 9, ...) {
    withr::with_seed(seed, suppressMessages(edge_significance(
      edges, x, permutations = 5, backend = "cpu", ...
    )))
  }
  expected <- ask()
  expect_true(attr(expected, "significance")$by_permutation)
  expect_identical(ask(num_threads = 3), expected)
  folder <- withr::local_tempdir()
  for (time in 1:2) {
    expect_identical(ask(checkpoint = folder), expected)
  }
  files <- task_files(folder)
  expect_length(files, 5)
  unlink(files[2])
  writeBin(as.raw(1:10), files[4])
  expect_identical(ask(checkpoint = folder), expected)
  expect_message(
    withr::with_seed(9, edge_significance(
      edges, x, permutations = 5, backend = "cpu", checkpoint = folder
    )),
    class = "fsknn_resumed"
  )
  expect_error(
    ask(seed = 10, checkpoint = folder), "permuted",
    class = "fsknn_checkpoint_error"
  )
  skip_if_not_installed("BiocParallel")
  expect_identical(ask(BPPARAM = BiocParallel::MulticoreParam(2)), expected)
})

test_that("p-values of chance are those that are expected", {
  # This is the short form of inst/bench/calibration_edges.R.
  p <- withr::with_seed(1, vapply(1:40, function(at) {
    x <- matrix(stats::rnorm(30 * 12), 30)
    x <- x * rep(c(0.1, 1), 15)
    of_pairs <- edge_significance(
      knn_graph(x, 3, backend = "cpu"), x, permutations = 19, backend = "cpu"
    )
    of_points <- edge_significance(
      knn_graph(x, 3, "euclidean", backend = "cpu"), x, permutations = 19,
      backend = "cpu"
    )
    all <- edge_significance(
      threshold_graph(x, min_similarity = -1, backend = "cpu"), x,
      backend = "cpu"
    )
    c(
      pearson = min(of_pairs$p_permutation), from = of_pairs$p_from[1],
      euclidean = min(of_points$p_permutation),
      pair = mean(all$p_value <= 0.1)
    )
  }, numeric(4)))
  # The bounds hold for 99.9% of binomial counts of 40.
  for (of in c("pearson", "euclidean")) {
    expect_lte(sum(p[of, ] <= 0.2), stats::qbinom(0.999, 40, 0.2))
    expect_gte(sum(p[of, ] <= 0.5), stats::qbinom(0.001, 40, 0.5))
  }
  expect_lt(abs(mean(p["pair", ]) - 0.1), 0.02)
})

test_that("prints, summaries and pictures say what was tested", {
  x <- paired_rows()
  edges <- knn_graph(x, 3, backend = "cpu")
  found <- withr::with_seed(5, edge_significance(
    edges, x, permutations = 19, backend = "cpu"
  ))
  expect_output(print(found, n = 1), "BH over 780 pairs")
  expect_output(print(found, n = 1), "19 permutations")
  expect_output(print(found, n = 1), "g1 g2")
  expect_output(print(found[c("from", "to", "distance")], n = 1), "g1")
  told <- summary(found)
  expect_identical(
    unname(told$counts["p_value", "<= 0.05"]), sum(found$p_value <= 0.05) + 0
  )
  expect_output(print(told), "of the rejected edges, not of the list")
  expect_identical(attr(found[1:3, ], "significance"),
                   attr(found, "significance"))
  expect_false(igraph::is_directed(as_igraph(found)))
  skip_if_not_installed("ggplot2")
  expect_s3_class(plot(found), "ggplot")
  expect_wrong(plot(edge_significance(edges, x, backend = "cpu")))
})

test_that("edges of other points or settings are an error that says so", {
  x <- paired_rows()
  edges <- knn_graph(x, 3, backend = "cpu")
  other <- x
  other[5, 1] <- 9
  expect_messages({
    edge_significance(edges, other)
    edge_significance(edges, x[-40, ])
    edge_significance(knn_graph(x[-40, ], 3), x)
    edge_significance(edges, x, metric = "spearman")
    edge_significance(edges, x, weights = list(precision = rep_len(1:2, 20)))
    edge_significance(knn_graph(x, 3, weights = rep_len(1:2, 20)), x)
    edge_significance(knn_graph(x, 3, "manhattan"), x)
    edge_significance(edges, x, permutations = 0)
  })
  expect_no_error(edge_significance(
    knn_graph(x, 3, weights = rep_len(1:2, 20)), x,
    weights = list(precision = rep_len(1:2, 20))
  ))
  # Edges from a file have no metric, but to six decimals they belong to x.
  file <- withr::local_tempfile(fileext = ".knn")
  write_knn(edges, file)
  again <- read_knn(file, names = rownames(x))
  attr(again, "metric") <- NULL
  expect_error(edge_significance(again, x), "metric")
  expect_equal(
    edge_significance(again, x, metric = "pearson")$p_value,
    edge_significance(edges, x)$p_value
  )
})

test_that("points are matched by position where one side has no names", {
  x <- random_matrix(30, 12)
  rownames(x) <- paste0("g", 1:30)
  x[5, ] <- 1
  named <- knn_graph(x, 3, constant = "isolate")
  plain <- knn_graph(unname(x), 3, constant = "isolate")
  right <- edge_significance(named, x, constant = "isolate")
  found <- edge_significance(plain, x, constant = "isolate")
  expect_identical(found$p_value, right$p_value)
  found <- edge_significance(named, unname(x), constant = "isolate")
  expect_identical(found$p_value, right$p_value)
  expect_wrong(
    edge_significance(named, unname(x)[-30, ], constant = "isolate"),
    "not in `x`"
  )
})

test_that("a point's own null is as good for distances of any magnitude", {
  x <- paired_rows()
  x[21:40, ] <- 0.05 * x[21:40, ]
  ask <- function(factor) {
    x <- x * factor
    edges <- knn_graph(x, 3, "euclidean", backend = "cpu")
    withr::with_seed(5, edge_significance(
      edges, x, permutations = 19, backend = "cpu"
    ))$p_permutation
  }
  expected <- ask(1)
  for (power in c(-1000, -600, 600, 1000)) {
    expect_identical(ask(2^power), expected)
  }
})

test_that("with missing values the smallest p-value of each point counts", {
  withr::local_seed(11)
  x <- matrix(stats::rnorm(30 * 24), 30)
  x[2, ] <- x[1, ] + 0.6 * x[2, ]
  # Half of the points have few samples.
  for (row in 16:30) {
    x[row, sample(24, 16)] <- NA
  }
  x[5, 3] <- NA
  # One point has ties.
  x[6, ] <- round(x[6, ])
  ties <- outer(1:30 == 6, 1:30 == 6, `|`)
  settings <- list(
    c("pearson", "signed"), c("pearson", "absolute"), c("pearson", "negative"),
    c("spearman", "signed"), c("spearman", "absolute")
  )
  for (setting in settings) {
    metric <- setting[[1]]
    sign <- setting[[2]]
    p_of <- function(x) {
      if (metric == "spearman") {
        x <- t(apply(x, 1, rank, na.last = "keep"))
      }
      r <- stats::cor(t(x), use = "pairwise")
      common <- tcrossprod(!is.na(x))
      p <- correlation_p_value(
        r, common, 0, metric, alternative_of_sign(sign), ties
      )
      replace(p, common < 4 | row(p) == col(p), 1)
    }
    edges <- knn_graph(
      x, 2, metric, sign = sign, na = "pairwise", min_pairs = 4, backend = "cpu"
    )
    set.seed(3)
    found <- edge_significance(
      edges, x, permutations = 9, na = "pairwise", min_pairs = 4,
      backend = "cpu"
    )
    set.seed(3)
    nearest <- vapply(1:9, function(at) {
      apply(p_of(permute_within_points(x)), 1, min)
    }, double(30))
    own <- p_of(x)[cbind(as.integer(found$from), as.integer(found$to))]
    count <- function(null) permutation_p(sum(null), 9)
    for (at in seq_along(own)) {
      below <- nearest <= own[[at]] * (1 + 1e-9) + 1e-11
      expect_identical(found$p_permutation[[at]], count(colSums(below) > 0))
      expect_identical(
        found$p_from[[at]], count(below[as.integer(found$from[[at]]), ])
      )
    }
  }
})

test_that("edges are explained by common neighbours, as by definition", {
  x <- random_matrix(40, 25, 12)
  x[2:6, ] <- x[2:6, ] + rep(x[1, ], each = 5)
  rownames(x) <- paste0("g", 1:40)
  batch <- rep_len(c(0, 1, 3), 25)
  settings <- list(
    list(metric = "pearson"), list(metric = "pearson", sign = "absolute"),
    list(metric = "spearman", sign = "negative"), list(metric = "bicor"),
    list(metric = "pearson", adjust = batch)
  )
  for (one in settings) {
    edges <- do.call(knn_graph, c(list(x, 5), one))
    found <- do.call(edge_significance, c(
      list(edges, x, explain = TRUE), one[names(one) == "adjust"]
    ))
    r <- matrix(NA_real_, 40, 40)
    at <- cbind(match(found$from, rownames(x)), match(found$to, rownames(x)))
    r[at] <- r[at[, 2:1]] <- found$correlation
    for (edge in seq_len(nrow(found))) {
      ends <- at[edge, ]
      common <- which(!is.na(r[ends[[1]], ]) & !is.na(r[ends[[2]], ]))
      partial <- vapply(common, function(point) {
        all <- c(ends, point)
        some <- r[all, all]
        diag(some) <- 1
        # From the inverse of the matrix of correlations.
        inverse <- solve(some)
        -inverse[1, 2] / sqrt(inverse[1, 1] * inverse[2, 2])
      }, 0)
      least <- which.min(abs(partial))
      expect_equal(
        found$partial_correlation[[edge]],
        if (length(least) > 0) partial[[least]] else NA_real_
      )
      expect_identical(
        found$explained_by[[edge]],
        if (length(least) > 0) rownames(x)[common[[least]]] else NA_character_
      )
    }
    expect_gt(sum(!is.na(found$explained_by)), 20)
  }
  # Few at once give the same, and points without names are numbers.
  edges <- knn_graph(unname(x), 5)
  all <- edge_significance(edges, unname(x), explain = TRUE)
  expect_type(all$explained_by, "integer")
  parts <- fsknn:::explain_pairs(
    all[c("from", "to", "correlation")], list(points = list(values = x)), 7
  )
  expect_identical(parts, as.list(all[c("partial_correlation", "explained_by")]))
})

test_that("a copy of an end explains nothing", {
  x <- random_matrix(12, 10, 5)
  x[2, ] <- 2 * x[1, ]
  x[3, ] <- x[1, ] + 0.1 * x[3, ]
  found <- edge_significance(knn_graph(x, 4), x, explain = TRUE)
  expect_false(any(found$explained_by[found$from == 1 & found$to == 3] == 2))
  expect_true(all(abs(found$partial_correlation) <= 1, na.rm = TRUE))
  none <- edge_significance(
    threshold_graph(x, min_similarity = 0.99), x, explain = TRUE
  )
  expect_identical(none$explained_by[none$from == 1 & none$to == 2], 3L)
  expect_wrong(
    edge_significance(
      knn_graph(x, 2, metric = "euclidean"), x, permutations = 3,
      explain = TRUE
    ),
    "partial correlations"
  )
  expect_wrong(edge_significance(knn_graph(x, 2), x, explain = NA), "explain")
})
