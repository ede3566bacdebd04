# Makes two groups with modules, some of which differ.
contrast_data <- function(num_points = 40, sizes = c(14, 17), seed = 1) {
  d <- sum(sizes)
  base <- random_matrix(4, d, seed)[rep_len(1:4, num_points), ]
  x <- base + 0.8 * random_matrix(num_points, d, seed + 1)
  changed <- seq_len(num_points / 4)
  second <- sizes[[1]] + seq_len(sizes[[2]])
  x[changed, second] <- random_matrix(length(changed), sizes[[2]], seed + 2)
  list(x = x, groups = rep(c("a", "b"), sizes))
}

# Follows the definition: agreement at each depth, weighted; that at k counts
# for all beyond.
naive_rbo <- function(a, b, p) {
  k <- length(a)
  agreement <- vapply(seq_len(k), function(d) {
    length(intersect(a[seq_len(d)], b[seq_len(d)])) / d
  }, 0)
  sum((1 - p) * p^(seq_len(k) - 1) * agreement) + p^k * agreement[[k]]
}

# Makes lists by cor() of each group. Ranks have ties, so their lists come from
# a search.
naive_lists <- function(x, k, method = "pearson", sign = "signed") {
  r <- stats::cor(t(x), method = method)
  near <- switch(sign, signed = r, absolute = abs(r), negative = -r)
  diag(near) <- -Inf
  index <- t(apply(near, 1, order, decreasing = TRUE))[, seq_len(k)]
  if (method == "spearman") {
    index <- knn_search(x, k, method, sign)$index
  }
  list(r = r, near = near, index = index)
}

naive_contrast <- function(x, groups, k, p = 0.9, method = "pearson",
                           sign = "signed") {
  of <- lapply(split(seq_len(ncol(x)), groups), function(at) {
    naive_lists(x[, at], k, method, sign)
  })
  rows <- lapply(seq_len(nrow(x)), function(i) {
    a <- of[[1]]$index[i, ]
    b <- of[[2]]$index[i, ]
    either <- union(a, b)
    z <- atanh(of[[2]]$r[i, either]) - atanh(of[[1]]$r[i, either])
    data.frame(
      shared = length(intersect(a, b)),
      jaccard = length(intersect(a, b)) / length(either),
      rbo = naive_rbo(a, b, p),
      correlation_1 = mean(of[[1]]$near[i, either]),
      correlation_2 = mean(of[[2]]$near[i, either]),
      largest = max(abs(z))
    )
  })
  points <- do.call(rbind, rows)
  points$lost <- naive_fall(of[[1]], of[[2]], sign)
  points$gained <- naive_fall(of[[2]], of[[1]], sign)
  points
}

# lost, gained and the largest change of an edge in standard errors. These are
# means over points, or over the edges of both graphs.
naive_studentized <- function(x, groups, points, k) {
  parts <- lapply(split(seq_len(ncol(x)), groups), function(at) x[, at])
  of <- lapply(parts, naive_lists, k)
  fall <- function(one, two) {
    function(r) {
      both <- Map(function(group, r) {
        group$r <- r
        group
      }, of, r)
      naive_fall(both[[one]], both[[two]], "signed")
    }
  }
  error <- function(statistic) mean(sqrt(naive_variance(statistic, parts)))
  points$lost <- points$lost / error(fall(1, 2))
  points$gained <- points$gained / error(fall(2, 1))
  points$largest <- points$largest / error(function(r) {
    unlist(lapply(of, function(group) {
      pairs <- cbind(c(row(group$index)), c(group$index))
      atanh(r[[2]][pairs]) - atanh(r[[1]][pairs])
    }))
  })
  points
}

# Follows the infinitesimal jackknife: the sum over samples of the squares of
# what a small change of a sample's weight does to a statistic of the matrices
# of correlations.
naive_variance <- function(statistic, parts) {
  step <- 1e-4
  r <- lapply(parts, function(x) stats::cor(t(x)))
  of_group <- lapply(seq_along(parts), function(group) {
    x <- parts[[group]]
    slopes <- vapply(seq_len(ncol(x)), function(sample) {
      moved <- lapply(c(-step, step), function(by) {
        weights <- replace(rep(1, ncol(x)), sample, 1 + by)
        r[[group]] <- stats::cov.wt(t(x), weights / sum(weights), TRUE)$cor
        statistic(r)
      })
      (moved[[2]] - moved[[1]]) / (2 * step)
    }, statistic(r))
    rowSums(slopes^2)
  })
  of_group[[1]] + of_group[[2]]
}

# Follows the definition: how much nearer the listed neighbours are in their own
# group, over the lists of the point and of its neighbours.
naive_fall <- function(own, other, sign) {
  fall <- vapply(seq_len(nrow(own$index)), function(i) {
    mean(vapply(own$index[i, ], function(j) {
      change <- atanh(own$r[i, j]) - atanh(other$r[i, j])
      if (sign == "signed" || sign == "absolute" && own$r[i, j] > 0) {
        change
      } else {
        -change
      }
    }, 0))
  }, 0)
  vapply(seq_along(fall), function(i) {
    fall[[i]] / 3 + 2 / 3 * mean(fall[own$index[i, ]])
  }, 0)
}

test_that("points are compared as by definition", {
  data <- contrast_data()
  for (metric in c("pearson", "spearman")) {
    for (sign in metric_signs) {
      found <- compare_neighbours(
        data$x, data$groups, k = 6, metric = metric, sign = sign,
        permutations = NULL, persistence = 0.8, backend = "cpu"
      )$points
      expected <- naive_contrast(
        data$x, data$groups, 6, 0.8, metric, sign
      )
      columns <- setdiff(names(expected), "largest")
      expect_equal(
        found[columns], expected[columns], tolerance = 1e-12,
        info = paste(metric, sign)
      )
    }
  }
  expect_false(any(grepl("^p_", names(found))))
})

test_that("rank-biased overlap is 1 for equal lists and 0 for disjoint ones", {
  x <- random_matrix(12, 10)
  same <- compare_neighbours(list(x, x), k = 4, permutations = NULL)$points
  expect_equal(same$rbo, rep(1, 12), tolerance = 1e-15)
  expect_true(all(same$rbo <= 1))
  expect_identical(same$shared, rep(4L, 12))
  expect_identical(same$jaccard, rep(1, 12))
  expect_identical(same$lost, double(12))
  expect_identical(same$gained, double(12))
  lists <- function(index) {
    r <- matrix(0, nrow(index), ncol(index))
    list(index = index, own = r, other = r)
  }
  apart <- cpp_contrast_points(
    lists(rbind(2:3, c(1L, 3L), 1:2, 1:2, 1:2)),
    lists(rbind(4:5, 4:5, 4:5, c(3L, 5L), 3:4)), "signed", 0.9, 1L
  )
  expect_identical(apart$rbo, double(5))
  expect_identical(apart$shared, integer(5))
})

test_that("edges are those of both graphs, with r in both groups", {
  data <- contrast_data()
  rownames(data$x) <- paste0("g", seq_len(nrow(data$x)))
  for (metric in c("pearson", "bicor")) {
    found <- compare_neighbours(
      data$x, data$groups, k = 5, metric = metric, permutations = NULL
    )
    graphs <- lapply(c("a", "b"), function(group) {
      knn_graph(data$x[, data$groups == group], k = 5, metric = metric)
    })
    for (at in 1:2) {
      rank <- found$edges[[paste0("rank_", at)]]
      own <- found$edges[!is.na(rank), ]
      own <- own[order(match(own$from, rownames(data$x)), rank[!is.na(rank)]), ]
      expect_identical(own$from, graphs[[at]]$from)
      expect_identical(own$to, graphs[[at]]$to)
      expect_identical(
        own[[paste0("correlation_", at)]], graphs[[at]]$correlation
      )
    }
    expect_false(any(is.na(found$edges$rank_1) & is.na(found$edges$rank_2)))
    expect_identical(anyDuplicated(found$edges[c("from", "to")]), 0L)
  }
  r <- lapply(split(seq_len(ncol(data$x)), data$groups), function(at) {
    stats::cor(t(data$x[, at]))
  })
  edges <- compare_neighbours(
    data$x, data$groups, k = 5, permutations = NULL
  )$edges
  ends <- as.matrix(edges[c("from", "to")])
  expect_equal(edges$correlation_1, r$a[ends], tolerance = 1e-12)
  expect_equal(edges$correlation_2, r$b[ends], tolerance = 1e-12)
  expect_equal(
    edges$change, atanh(r$b[ends]) - atanh(r$a[ends]), tolerance = 1e-10
  )
})

# Replaces values by their residuals on the covariates of each group.
naive_residuals <- function(x, groups, covariates) {
  for (group in unique(groups)) {
    at <- groups == group
    x[, at] <- t(stats::lm.fit(
      cbind(1, covariates[at, , drop = FALSE]), t(x[, at])
    )$residuals)
  }
  x
}

# Uncorrelated residuals of each group (`second` is 0 or 1): the projections of
# some samples (`like`), by the inverse root of their covariance.
naive_free <- function(x, second, design, weights = rep(1, ncol(x))) {
  parts <- lapply(0:1, function(group) {
    at <- which(second == group)
    root <- sqrt(weights[at])
    hat <- qr(root * cbind(1, design[at, ]))
    project <- diag(length(at)) - tcrossprod(qr.Q(hat)[, seq_len(hat$rank)])
    like <- integer()
    for (time in seq_len(length(at) - hat$rank)) {
      left <- diag(project)
      if (time > 1) {
        known <- project[, like, drop = FALSE]
        left <- left - rowSums((known %*% solve(project[like, like])) * known)
      }
      like <- c(like, which(left >= max(left) - 1e-9)[[1]])
    }
    like <- sort(like)
    half <- eigen(project[like, like], symmetric = TRUE)
    half <- half$vectors %*% (t(half$vectors) / sqrt(half$values))
    rooted <- x[, at] * rep(root, each = nrow(x))
    list(values = rooted %*% project[, like] %*% half, like = at[like])
  })
  list(
    values = cbind(parts[[1]]$values, parts[[2]]$values),
    like = c(parts[[1]]$like, parts[[2]]$like)
  )
}

# Statistics of permuted residuals, with a spread for each group. Their negatives
# make the means 0.
naive_free_contrasts <- function(free, spread, second, num, strata = NULL) {
  labels <- second[free$like]
  values <- free$values / spread[, labels + 1]
  drawn <- draw_permutations(length(labels), num, strata[free$like])
  lapply(seq_len(num), function(at) {
    naive_contrast(
      cbind(values, -values), rep(c("a", "b")[labels[drawn[, at]] + 1], 2), 4
    )
  })
}

# Uses lm() and a root instead of sums within strata. With strata, a sample that
# moves to another group takes its spread.
naive_standard <- function(x, groups, strata) {
  second <- as.double(groups == groups[[length(groups)]])
  in_stratum <- outer(strata, unique(strata), `==`) + 0
  free <- naive_free(x, second, in_stratum)
  spread <- naive_spreads(free$values, second[free$like], strata[free$like])
  count <- colSums(in_stratum[free$like, ])
  parts <- list(level = x, left = x, spread = spread)
  for (row in seq_len(nrow(x))) {
    scaled <- free$values[row, ] / spread[row, second[free$like] + 1]
    sums <- colSums(scaled^2 * in_stratum[free$like, ])
    precision <- (count + 4) / (sums + 4 * sum(sums) / sum(count))
    fit <- stats::lm.wfit(
      cbind(second, in_stratum), x[row, ], drop(in_stratum %*% precision)
    )
    shifted <- x[row, ] - fit$coefficients[[1]] * second
    certain <- 1 / spread[row, second + 1]^2
    level <- stats::ave(shifted * certain, strata) / stats::ave(certain, strata)
    parts$level[row, ] <- level
    parts$left[row, ] <- (shifted - level) / spread[row, second + 1]
  }
  function(labels) {
    parts$level + parts$left * parts$spread[, 1 + (labels == groups[ncol(x)])]
  }
}

# Returns spreads of the groups, 1 for the first. The second has the maximum
# likelihood of normal residuals, with a spread of its own in each stratum, and
# one more sample of the common variance in each group.
naive_spreads <- function(left, second, strata) {
  apart <- stats::ave(second, strata) %in% c(0, 1)
  cbind(1, exp(vapply(seq_len(nrow(left)), function(row) {
    change <- function(log_ratio) {
      scaled <- left[row, ]^2 / exp(2 * log_ratio * second)
      terms <- (left[row, ]^2 / stats::ave(scaled, strata))[!apart]
      of <- function(at) (sum(terms[at]) + mean(terms)) / (sum(at) + 1)
      log(of(second[!apart] == 1) / of(second[!apart] == 0)) - 2 * log_ratio
    }
    stats::uniroot(change, c(-5, 5), tol = 1e-12)$root
  }, 0)))
}

test_that("permutations search again, and p-values are by definition", {
  data <- contrast_data(24, c(9, 12))
  # The groups have other shares of the strata, whose spreads differ.
  strata <- rep(c("x", "y", "z", "x", "y", "z"), c(5, 2, 2, 2, 3, 7))
  data$x <- data$x * rep(ifelse(strata == "z", 4, 1), each = 24)
  for (groups_in in list(NULL, strata)) {
    set.seed(5)
    found <- compare_neighbours(
      data$x, data$groups, k = 4, permutations = 30, strata = groups_in
    )
    set.seed(5)
    drawn <- draw_permutations(21, 30, groups_in)
    value_with <- if (is.null(groups_in)) {
      function(labels) {
        naive_residuals(data$x, data$groups, matrix(0, 21, 0)) / vapply(
          data$groups, function(group) apply(
            data$x[, data$groups == group], 1, stats::sd
          ) * sqrt(1 - 1 / sum(data$groups == group)), double(24)
        )
      }
    } else {
      naive_standard(data$x, data$groups, groups_in)
    }
    permuted <- lapply(1:30, function(at) {
      labels <- data$groups[drawn[, at]]
      naive_contrast(value_with(labels), labels, 4)
    })
    observed <- found$points
    for (column in c("rbo", "lost", "gained")) {
      expect_equal(
        observed[[paste0(column, "_expected")]],
        rowMeans(vapply(permuted, `[[`, double(24), column)),
        tolerance = 1e-9
      )
    }
    observed$largest <- naive_contrast(data$x, data$groups, 4)$largest
    in_errors <- c(
      list(naive_studentized(data$x, data$groups, observed, 4)),
      lapply(1:30, function(at) {
        labels <- data$groups[drawn[, at]]
        naive_studentized(value_with(labels), labels, permuted[[at]], 4)
      })
    )
    # Each side in units of its standard deviation; the larger one counts.
    sides <- lapply(c("lost", "gained"), function(side) {
      values <- vapply(in_errors, `[[`, double(24), side)
      away <- values - rowMeans(values)
      away / sqrt(rowMeans(away^2))
    })
    extreme <- pmax(sides[[1]], sides[[2]])
    expect_equal(
      observed$p_value, rowMeans(extreme >= extreme[, 1] - 1e-9),
      tolerance = 1e-12
    )
    # The most extreme point of all gives the family-wise p-value.
    adjusted <- function(p) (30 * p + 1) / 31
    most <- apply(extreme, 2, max)[-1]
    expect_equal(
      observed$p_adjusted,
      adjusted(vapply(extreme[, 1], function(one) mean(most >= one - 1e-9), 0)),
      tolerance = 1e-12
    )
    largest <- vapply(in_errors[-1], `[[`, double(24), "largest")
    edges <- found$edges
    change <- abs(edges$change) *
      (in_errors[[1]]$largest / observed$largest)[[1]]
    expect_equal(
      edges$p_value,
      adjusted(rowMeans(largest[edges$from, ] >= change - 1e-9)),
      tolerance = 1e-12
    )
    expect_equal(
      edges$p_adjusted,
      adjusted(vapply(change, function(one) {
        mean(apply(largest, 2, max) >= one - 1e-9)
      }, 0)),
      tolerance = 1e-12
    )
  }
})

test_that("p-values of |r| don't see signs, and those of ranks no curve", {
  data <- contrast_data()
  ask <- function(x, ...) {
    set.seed(6)
    compare_neighbours(x, data$groups, k = 5, permutations = 19, ...)$points
  }
  signs <- rep(c(1, -1, -1), length.out = 40)
  for (metric in c("pearson", "spearman")) {
    expect_equal(
      ask(signs * data$x, metric = metric, sign = "absolute"),
      ask(data$x, metric = metric, sign = "absolute"), tolerance = 1e-9
    )
  }
  # Ranks are of one group's samples in the data, and of centred values in
  # permutations. So only the statistics of the data are the same.
  seen <- c("lost", "gained", "rbo")
  expect_identical(
    ask(exp(data$x), metric = "spearman")[seen],
    ask(data$x, metric = "spearman")[seen]
  )
  # Points with opposite signs are as near by -r as others by r.
  pairs <- rbind(data$x[1:20, ], -data$x[1:20, ])
  p <- ask(pairs, sign = "negative")
  expect_equal(p$p_value[21:40], p$p_value[1:20])
})

test_that("a seed repeats the answer on any backend and number of threads", {
  data <- contrast_data()
  ask <- function(...) {
    set.seed(3)
    compare_neighbours(data$x, data$groups, k = 5, permutations = 7, ...)
  }
  expected <- ask(backend = "cpu", num_threads = 1)
  for (backend in backends_here()) {
    expect_identical(ask(backend = backend), expected)
  }
  expect_identical(ask(backend = "cpu", chunk_size = 16), expected)
  set.seed(4)
  other <- compare_neighbours(data$x, data$groups, k = 5, permutations = 7)
  expect_identical(other$points$rbo, expected$points$rbo)
  expect_false(identical(other$points$rbo_expected,
                         expected$points$rbo_expected))
})

test_that("neither a group's means nor its spreads change a p-value", {
  data <- contrast_data()
  ask <- function(x) {
    set.seed(3)
    compare_neighbours(x, data$groups, k = 5, permutations = 9)
  }
  second <- data$groups == "b"
  moved <- data$x
  moved[, second] <- moved[, second] * seq(0.1, 4, length.out = 40) + 1:40
  expect_equal(ask(moved), ask(data$x), tolerance = 1e-9)
  expected <- ask(data$x)
  for (power in c(-990, -600, 600, 1000)) {
    expect_identical(ask(data$x * 2^power), expected)
  }
})

test_that("groups come as two matrices, a column's name, or with some left out", {
  data <- contrast_data()
  rownames(data$x) <- paste0("g", 1:40)
  ask <- function(x, groups = NULL, ...) {
    set.seed(3)
    compare_neighbours(x, groups, k = 5, permutations = 5, ...)
  }
  expected <- ask(data$x, data$groups)
  expect_identical(expected$groups, c(a = 14L, b = 17L))
  expect_identical(ask(list(a = data$x[, 1:14], b = data$x[, 15:31])), expected)
  expect_identical(
    ask(list(a = t(data$x[, 1:14]), b = t(data$x[, 15:31])),
        points = "columns"),
    expected
  )
  more <- cbind(data$x[, 1:4], 1e6, data$x[, 5:31])
  expect_identical(ask(more, append(data$groups, NA, 4)), expected)
  expect_identical(ask(as.data.frame(data$x), factor(data$groups)), expected)
  turned <- ask(data$x, factor(data$groups, c("b", "a")))
  expect_identical(turned$points$rbo, expected$points$rbo)
  expect_identical(turned$points$lost, expected$points$gained)
  skip_if_not_installed("Biobase")
  set <- Biobase::ExpressionSet(data$x)
  set$arm <- data$groups
  expect_identical(ask(set, "arm"), expected)
})

test_that("weights, missing values and constant points are as in each group", {
  data <- contrast_data()
  x <- data$x
  weights <- c(0, rep_len(c(1, 2, 5), 30))
  found <- compare_neighbours(
    x, data$groups, k = 5, weights = weights, permutations = NULL
  )
  expect_identical(found$groups, c(a = 13L, b = 17L))
  own <- function(found, at) {
    edges <- found$edges[!is.na(found$edges[[paste0("rank_", at)]]), ]
    edges[order(edges$from, edges[[paste0("rank_", at)]]), ]
  }
  for (at in 1:2) {
    columns <- which(data$groups == c("a", "b")[[at]])
    graph <- knn_graph(x[, columns], 5, weights = weights[columns])
    expect_identical(own(found, at)$to, graph$to)
    expect_identical(
      own(found, at)[[paste0("correlation_", at)]], graph$correlation
    )
  }
  x[cbind(1:30, 1:30)] <- NA
  filled <- compare_neighbours(
    x, data$groups, k = 5, na = "mean", permutations = 3
  )
  for (at in 1:2) {
    columns <- which(data$groups == c("a", "b")[[at]])
    graph <- knn_graph(x[, columns], 5, na = "mean")
    expect_identical(own(filled, at)$to, graph$to)
    expect_identical(
      own(filled, at)[[paste0("correlation_", at)]], graph$correlation
    )
  }
  flat <- data$x
  flat[7, data$groups == "a"] <- 2
  expect_messages(compare_neighbours(flat, data$groups, k = 5))
  found <- compare_neighbours(
    flat, data$groups, k = 5, constant = "isolate", permutations = 3
  )
  expect_true(all(is.na(found$points[7, -1])))
  expect_false(7 %in% c(found$edges$from, found$edges$to))
  expect_false(anyNA(found$points[-7, ]))
  expect_false(anyNA(found$edges$p_value))
})

test_that("a point that a permutation makes constant is no error", {
  data <- contrast_data(sizes = c(8, 12))
  x <- data$x
  # Group b has nine equal values, more than group a has samples.
  x[1, ] <- c(1, rep(0, 16), 1, 1, 1)
  set.seed(1)
  found <- compare_neighbours(x, data$groups, k = 5, permutations = 40)
  expect_false(anyNA(found$points))
  values <- standardise_groups(x, as.integer(factor(data$groups)))
  expect_identical(rows_at_risk(values, 8L), 1L)
  columns <- list(9:16, c(1:8, 17:20))
  expect_identical(constant_in_either(values, columns, 1L), 1L)
  columns <- list(1:8, 9:20)
  expect_identical(constant_in_either(values, columns, 1L), integer())
})

test_that("covariates are those of each group, and residuals are permuted", {
  data <- contrast_data(24, c(12, 15))
  covariates <- cbind(random_matrix(1, 27, 7)[1, ], (1:27) %% 5)
  x <- data$x + outer(1:24 / 8, covariates[, 1])
  for (backend in backends_here()) {
    set.seed(5)
    found <- compare_neighbours(
      x, data$groups, k = 4, permutations = 20, adjust = covariates,
      backend = backend
    )
    residuals <- naive_residuals(x, data$groups, covariates)
    columns <- c("shared", "jaccard", "rbo", "correlation_1", "correlation_2")
    expect_equal(
      found$points[columns],
      naive_contrast(residuals, data$groups, 4)[columns],
      tolerance = 1e-10
    )
    for (at in 1:2) {
      own <- data$groups == c("a", "b")[[at]]
      graph <- knn_graph(x[, own], 4, adjust = covariates[own, ])
      rank <- found$edges[[paste0("rank_", at)]]
      edges <- found$edges[!is.na(rank), ]
      edges <- edges[order(edges$from, rank[!is.na(rank)]), ]
      expect_identical(edges$to, graph$to)
      expect_identical(
        edges[[paste0("correlation_", at)]], graph$correlation
      )
    }
    second <- as.double(data$groups == "b")
    free <- naive_free(data$x, second, covariates)
    # They have the correlations of the residuals.
    own <- free$values[, second[free$like] == 1]
    expect_equal(
      stats::cor(t(cbind(own, -own))), stats::cor(t(residuals[, second == 1])),
      tolerance = 1e-10
    )
    spread <- vapply(0:1, function(group) {
      sqrt(rowMeans(free$values[, second[free$like] == group]^2))
    }, double(24))
    set.seed(5)
    permuted <- naive_free_contrasts(free, spread, second, 20)
    for (column in c("rbo", "lost", "gained")) {
      expect_equal(
        found$points[[paste0(column, "_expected")]],
        rowMeans(vapply(permuted, `[[`, double(24), column)), tolerance = 1e-9
      )
    }
  }
})

test_that("with covariates, a point's scale doesn't count", {
  data <- contrast_data()
  age <- random_matrix(1, 31, 7)[1, ]
  ask <- function(x) {
    set.seed(3)
    compare_neighbours(
      x, data$groups, k = 5, permutations = 9, adjust = age, backend = "cpu",
      constant = "isolate"
    )
  }
  expected <- ask(data$x)
  expect_false(anyNA(expected$points$p_value))
  scaled <- data$x
  scaled[2:3, ] <- scaled[2:3, ] * 2^c(660, -990)
  expect_equal(ask(scaled), expected, tolerance = 1e-9)
  # Points that the covariate explains in one group have no neighbours.
  scaled[7, 1:14] <- 3 * age[1:14]
  points <- ask(scaled)$points
  columns <- c("rbo", "lost", "lost_expected", "p_value", "p_adjusted")
  expect_true(all(is.na(points[7, columns])))
  expect_false(anyNA(points[-7, columns]))
})

test_that("strata are among the covariates, and their spreads may differ", {
  data <- contrast_data(24, c(12, 15))
  second <- data$groups == "b"
  strata <- rep(c("x", "y", "x", "y"), c(8, 4, 4, 11))
  age <- random_matrix(1, 27, 7)[1, ]
  x <- data$x * rep(ifelse(strata == "y", 3, 1), each = 24) +
    outer(1:24 / 8, age) + outer(24:1, strata == "y")
  set.seed(5)
  found <- compare_neighbours(
    x, data$groups, k = 4, permutations = 20, adjust = age, strata = strata,
    backend = "cpu"
  )
  covariates <- cbind(age, strata == "y")
  residuals <- naive_residuals(x, data$groups, covariates)
  columns <- c("shared", "jaccard", "rbo", "correlation_1", "correlation_2")
  expect_equal(
    found$points[columns],
    naive_contrast(residuals, data$groups, 4)[columns],
    tolerance = 1e-10
  )
  free <- naive_free(x, second, covariates)
  spread <- naive_spreads(free$values, second[free$like], strata[free$like])
  set.seed(5)
  permuted <- naive_free_contrasts(free, spread, second, 20, strata)
  rbo <- vapply(permuted, `[[`, double(24), "rbo")
  expect_equal(found$points$rbo_expected, rowMeans(rbo), tolerance = 1e-9)
  # Samples of no group are in no stratum.
  some <- replace(data$groups, c(2, 20), NA)
  ask <- function(at, groups) {
    withr::with_seed(3, compare_neighbours(
      x[, at], groups, k = 4, permutations = 9, adjust = age[at],
      strata = strata[at], backend = "cpu"
    ))
  }
  expect_identical(
    ask(1:27, some), ask(setdiff(1:27, c(2, 20)), data$groups[-c(2, 20)])
  )
})

test_that("a stratum of one sample changes no ratio of spreads", {
  left <- random_matrix(5, 12, seed = 3)
  labels <- rep(1:2, 6)
  strata <- rep(1:2, c(5, 7))
  ratio <- function(...) {
    spreads <- group_spreads(...)$groups
    spreads[, 2] / spreads[, 1]
  }
  expected <- ratio(left, labels, strata, rep(1, 12))
  more <- c(strata, 3, 4)
  for (last in list(c(0, 0), c(9, 0.1))) {
    both <- cbind(left, last[[1]], last[[2]])
    expect_equal(ratio(both, c(labels, 1, 2), more, rep(1, 14)), expected)
  }
  expect_identical(
    group_spreads(0 * left, labels, strata, rep(1, 12))$groups,
    matrix(1, 5, 2)
  )
})

test_that("a point that is constant in one group has a bounded ratio", {
  # Only the first stratum has both groups, of 4 and 8 samples.
  labels <- rep(1:2, c(10, 8))
  strata <- rep(c(1, 2, 1), c(4, 6, 8))
  left <- random_matrix(1, 18, seed = 4)
  left[1:4] <- 0
  spreads <- group_spreads(left, labels, strata, rep(1, 18))$groups
  # The variances are (4 * 0 + mean) / 5 and (12 + mean) / 9, and mean is 1.
  expect_equal((spreads[2] / spreads[1])^2, (13 / 9) / (1 / 5))
  # An edge beside such points is found.
  set.seed(8)
  x <- random_matrix(40, 60, seed = 5)
  x[1, 31:60] <- x[2, 31:60] + 0.2 * x[1, 31:60]
  x[31:40, 1:10] <- 0
  found <- compare_neighbours(
    x, rep(1:2, each = 30), k = 3, permutations = 39,
    strata = rep(c(1, 2, 1), c(10, 20, 30)), backend = "cpu"
  )
  own <- found$edges$from == 1 & found$edges$to == 2
  expect_identical(found$edges$p_adjusted[own], 1 / 40)
})

test_that("heavy tails are a message", {
  x <- random_matrix(60, 40, seed = 6)
  groups <- rep(1:2, 20)
  ask <- function(x, ...) {
    invisible(compare_neighbours(x, groups, k = 3, ..., permutations = 3))
  }
  expect_message(ask(x), NA)
  # Each sample has its own variance.
  variance <- withr::with_seed(4, stats::rchisq(40, 3) / 3)
  heavy <- x / rep(sqrt(variance), each = 60)
  expect_message(ask(heavy), "heavy tails", class = "fsknn_tails")
  expect_message(ask(heavy, metric = "spearman"), NA)
  expect_message(compare_neighbours(heavy, groups, 3, permutations = NULL), NA)
  # Groups of unequal spread have no heavy tails, nor do covariates make some.
  expect_message(ask(x * rep(c(1, 9)[groups], each = 60)), NA)
  outlier <- replace(double(40), 7, 30)
  moved <- x + rep(outlier, each = 60)
  expect_message(ask(moved), class = "fsknn_tails")
  expect_message(ask(moved, adjust = outlier + groups * sin(1:40)), NA)
})

test_that("few samples of both groups in a stratum are a message", {
  x <- random_matrix(20, 12, seed = 6)
  groups <- rep(1:2, each = 6)
  ask <- function(strata, ...) {
    invisible(compare_neighbours(
      x, groups, k = 3, strata = strata, backend = "cpu", ...
    ))
  }
  few <- rep(c("u", "v", "u", "v"), c(5, 1, 1, 5))
  expect_messages({
    ask(few, permutations = 3)
    ask(few, permutations = 3, adjust = ~ 1)
    ask(rep(c("u", "v"), 6), permutations = 3)
  })
})

test_that("only proportions of weights matter to p-values", {
  data <- contrast_data()
  ask <- function(...) {
    withr::with_seed(3, compare_neighbours(
      data$x, data$groups, k = 5, permutations = 9, weights = list(...),
      strata = rep_len(1:3, 31), backend = "cpu"
    ))
  }
  weights <- rep_len(c(1, 2, 5), 31)
  expect_equal(
    ask(sampling = weights), ask(sampling = 1000 * weights), tolerance = 1e-9
  )
  expect_equal(
    ask(precision = weights), ask(precision = 1000 * weights), tolerance = 1e-9
  )
})

test_that("a kind of weights says how the groups' spreads are equalised", {
  data <- contrast_data(24, c(9, 12))
  weights <- rep(c(1, 4, 2, 0.5), c(6, 5, 4, 6))
  near <- function(kind, adjust) {
    withr::local_seed(5)
    found <- compare_neighbours(
      data$x, data$groups, k = 4, permutations = 20, backend = "cpu",
      weights = stats::setNames(list(weights), kind), adjust = adjust
    )
    found$points$lost_expected
  }
  drawn <- withr::with_seed(5, draw_permutations(21, 20, NULL))
  # Samples move with their weights.
  naive <- function(kind, adjust) {
    if (!is.null(adjust)) {
      second <- as.double(data$groups == "b")
      free <- naive_free(data$x, second, cbind(adjust), weights)
      spread <- vapply(0:1, function(group) {
        sqrt(rowMeans(free$values[, second[free$like] == group]^2))
      }, double(24))
      withr::local_seed(5)
      permuted <- naive_free_contrasts(free, spread, second, 20)
      return(rowMeans(vapply(permuted, `[[`, double(24), "lost")))
    }
    values <- data$x
    for (group in c("a", "b")) {
      at <- data$groups == group
      fit <- stats::lm.wfit(
        cbind(rep(1, sum(at))), t(values[, at]), weights[at]
      )
      left <- t(fit$residuals)
      squares <- left^2 %*% weights[at]
      size <- if (kind == "precision") sum(at) else sum(weights[at])
      values[, at] <- left / as.vector(sqrt(squares / size))
    }
    rowMeans(vapply(1:20, function(by) {
      of <- lapply(c("a", "b"), function(group) {
        at <- which(data$groups[drawn[, by]] == group)
        part <- values[, at]
        r <- stats::cov.wt(t(part), weights[at], cor = TRUE)$cor
        diag(r) <- -2
        index <- t(apply(r, 1, order, decreasing = TRUE))[, 1:4]
        list(r = r, index = index)
      })
      naive_fall(of[[1]], of[[2]], "signed")
    }, double(24)))
  }
  age <- random_matrix(1, 21, 7)[1, ]
  for (kind in c("sampling", "precision")) {
    for (adjust in list(NULL, age)) {
      expect_equal(near(kind, adjust), naive(kind, adjust), tolerance = 1e-9)
    }
  }
  expect_false(isTRUE(all.equal(near("sampling", NULL),
                                near("precision", NULL))))
  ask <- function(weights) {
    compare_neighbours(data$x, data$groups, k = 4, weights = weights,
                       permutations = 3, backend = "cpu")
  }
  expect_messages({
    ask(weights)
    ask(list(frequency = 2 * weights))
  })
})

test_that("effects of covariates change no p-value, whatever the group", {
  data <- contrast_data()
  age <- random_matrix(1, 31, 8)[1, ]
  table <- data.frame(age = age, sex = gl(2, 1, 31))
  second <- data$groups == "b"
  ask <- function(x, ..., groups = data$groups) {
    set.seed(3)
    compare_neighbours(
      x, groups, k = 5, permutations = 9, adjust = ~ age * sex,
      data = table, ...
    )
  }
  expected <- ask(data$x)
  moved <- data$x + outer(1:40, age) + outer(40:1, age * second)
  moved[, second] <- 3 * moved[, second] + outer(1:40, table$sex[second] == 2)
  expect_equal(ask(moved), expected, tolerance = 1e-9)
  # Samples of no group, and of weight 0, do not count.
  some <- replace(data$groups, c(2, 20), NA)
  weights <- replace(double(31) + 1, c(2, 20), 0)
  without <- ask(data$x, groups = some)
  expect_equal(
    without$edges$correlation_1,
    ask(data$x, weights = weights)$edges$correlation_1
  )
  table <- table[-c(2, 20), ]
  set.seed(3)
  expect_identical(
    compare_neighbours(
      data$x[, -c(2, 20)], data$groups[-c(2, 20)], k = 5, permutations = 9,
      adjust = ~ age * sex, data = table
    ),
    without
  )
})

test_that("a point that covariates explain in a permutation is no error", {
  data <- contrast_data(24, c(12, 15))
  # Residuals of the point are 0 but where the group has one sample of a level.
  level <- factor(c(rep(1:2, 6), rep(1:2, 7), 3))
  x <- rbind(data$x, replace(double(27), c(1, 13), 1))
  set.seed(5)
  found <- compare_neighbours(
    x, data$groups, k = 4, permutations = 40, adjust = level
  )
  expect_false(anyNA(found$points))
  age <- random_matrix(1, 27, 7)[1, ]
  moved <- rbind(x[1:2, ], 3 * age - 1)
  expect_identical(
    unique(explained_in_either(
      moved, list(1:12, 13:27), list(cbind(age[1:12]), cbind(age[13:27]))
    )),
    3L
  )
})

test_that("covariates that can't be used here are errors", {
  x <- contrast_data()$x
  groups <- contrast_data()$groups
  age <- (1:31)^2
  expect_messages({
    compare_neighbours(list(x[, 1:14], x[, 15:31]), k = 5, adjust = age)
    compare_neighbours(x, groups, 5, "spearman", adjust = age)
    compare_neighbours(x, groups, 5, "bicor", adjust = age)
    compare_neighbours(x, groups, 5, adjust = random_matrix(31, 13))
    compare_neighbours(rbind(x, t(age)), groups, 5, adjust = age)
  })
})

test_that("what is no contrast is an error that says so", {
  x <- contrast_data()$x
  groups <- contrast_data()$groups
  made <- metafeatures(x[1:10, ])
  expect_messages({
    compare_neighbours(x)
    compare_neighbours(x, groups[-1])
    compare_neighbours(x, rep_len(1:3, 31))
    compare_neighbours(x, rep(1, 31))
    compare_neighbours(x, rep(1:2, c(2, 29)))
    compare_neighbours(x, groups, metric = "euclidean")
    compare_neighbours(x, groups, na = "pairwise")
    compare_neighbours(x, groups, persistence = 1)
    compare_neighbours(x, groups, permutations = 0)
    compare_neighbours(x, groups, strata = groups)
    compare_neighbours(list(x, x), permutations = NULL, strata = groups)
    compare_neighbours(x, groups, k = 40)
    compare_neighbours(list(x, x[1:3, ]))
    compare_neighbours(list(x, x), groups)
    compare_neighbours(made, groups)
  })
})

test_that("strata without a sample that weighs are nothing to permute in", {
  x <- matrix(uniform_numbers(20 * 24, 3), 20)
  expect_wrong(
    compare_neighbours(
      x, rep(1:2, 12), k = 3, permutations = 5, backend = "cpu",
      weights = rep(c(1, 0, 0, 1), 6), strata = rep(1:12, each = 2)
    ),
    "must have samples of both groups"
  )
})

test_that("p-values are uniform or above, and the family is at its level", {
  num_sets <- if (is_long()) 120 else 60
  p <- vapply(seq_len(num_sets), function(seed) {
    withr::local_seed(seed)
    factors <- matrix(stats::rnorm(2 * 24), 2)[rep(1:2, each = 10), ]
    x <- factors + matrix(stats::rnorm(20 * 24), 20)
    groups <- rep(1:2, each = 12)
    x[, groups == 2] <- 2 * x[, groups == 2] + stats::rnorm(20)
    found <- compare_neighbours(
      x, groups, k = 4, permutations = 19, backend = "cpu", num_threads = 1
    )
    at <- found$edges$from == 1
    c(
      found$points$p_value[[1]], min(found$edges$p_value[at]),
      min(found$points$p_adjusted), min(found$edges$p_adjusted)
    )
  }, double(4))
  # A correct share exceeds this bound once in 100,000.
  for (alpha in c(0.05, 0.2, 0.5)) {
    most <- stats::qbinom(1 - 1e-5, num_sets, alpha)
    expect_true(all(rowSums(p <= alpha + 1e-12) <= most), info = alpha)
  }
  # P-values of a point and an edge are not too high, either.
  fewest <- stats::qbinom(1e-5, num_sets, 0.5)
  expect_true(all(rowSums(p[1:2, ] <= 0.5 + 1e-12) >= fewest))
})

test_that("a module that falls apart is found, and printed, drawn and counted", {
  data <- contrast_data(40, c(40, 40))
  set.seed(1)
  found <- compare_neighbours(data$x, data$groups, k = 5, permutations = 39)
  expect_gt(sum(found$points$p_adjusted[1:10] < 0.05), 5)
  expect_gt(min(found$edges$p_adjusted[found$edges$from %in% c(15, 26)]), 0.02)
  expect_identical(as.data.frame(found), found$points)
  expect_identical(as.data.frame(found, what = "edges"), found$edges)
  few <- compare_neighbours(data$x, data$groups, k = 5, permutations = NULL)
  expect_snapshot({
    few
    summary(few)
  })
  counts <- summary(found)$counts
  expect_identical(
    counts$p_adjusted[[1]], sum(found$points$p_adjusted < 0.05)
  )
  expect_output(print(summary(found)), "How many are below 0.05")
  expect_output(print(found), "39 permutations")
  skip_if_not_installed("ggplot2")
  drawn <- plot(found, n = 7)
  expect_s3_class(drawn, "ggplot")
  expect_identical(nrow(drawn$data), 14L)
  expect_no_error(ggplot2::ggplotGrob(drawn))
  expect_s3_class(plot(few), "ggplot")
})

test_that("weights stay with their samples where some are in no group", {
  x <- random_matrix(30, 26)
  groups <- rep_len(c("a", NA, "b", "a", "b"), 26)
  weights <- rep_len(c(1, 9, 2, 5, 3, 0.5, 4), 26)
  strata <- rep_len(1:3, 26)
  in_one <- !is.na(groups)
  ask <- function(x, groups, weights, strata) {
    withr::with_seed(4, compare_neighbours(
      x, groups, k = 4, weights = list(sampling = weights), strata = strata,
      permutations = 9, backend = "cpu"
    ))
  }
  expect_identical(
    ask(x, groups, weights, strata),
    ask(x[, in_one], groups[in_one], weights[in_one], strata[in_one])
  )
})
