# Points with a hidden batch that shifts most of them, and a module.
shifted_points <- function(n = 150, d = 24, seed = 7) {
  x <- random_matrix(n, d, seed)
  batch <- rep(c(0, 1, 1), length.out = d)
  x[1:100, ] <- x[1:100, ] + 2 * random_matrix(100, 1, seed + 1) %*% t(batch)
  x[101:115, ] <- x[101:115, ] +
    rep(1.5 * random_matrix(1, d, seed + 2), each = 15)
  dimnames(x) <- list(paste0("g", 1:n), paste0("s", 1:d))
  list(x = x, batch = batch)
}

# Returns the leading components of residuals that are scaled to length 1.
naive_factors <- function(x, num, formula = ~ 1, data = NULL) {
  design <- stats::model.matrix(formula, data %||% data.frame(1:ncol(x)))
  residuals <- stats::lm.fit(design, t(x))$residuals
  residuals <- t(residuals) / sqrt(colSums(residuals^2))
  parts <- svd(residuals)
  list(
    vectors = parts$v[, seq_len(num), drop = FALSE],
    share = (parts$d^2 / sum(parts$d^2))[seq_len(num)], rows = residuals
  )
}

expect_same_factors <- function(found, expected) {
  expect_equal(ncol(found), ncol(expected$vectors))
  expect_equal(
    abs(crossprod(as.matrix(found), expected$vectors)),
    diag(ncol(expected$vectors)), tolerance = 1e-8, ignore_attr = TRUE
  )
  expect_equal(attr(found, "share"), expected$share, tolerance = 1e-10)
}

test_that("factors are the components of scaled residuals", {
  data <- shifted_points()
  x <- data$x
  found <- hidden_factors(x, num = 3)
  expect_same_factors(found, naive_factors(x, 3))
  expect_identical(rownames(found), colnames(x))
  expect_identical(attr(found, "num_points"), 150)
  known <- data.frame(
    age = random_matrix(1, 24, 9)[1, ], site = gl(3, 8), y = 1:24,
    kind = rep(c("a", "b", "c", "d"), 6)
  )
  found <- hidden_factors(x, num = 2, adjust = ~ age + site, data = known)
  expect_same_factors(found, naive_factors(x, 2, ~ age + site, known))
  found <- hidden_factors(x, keep = known[c("y", "kind")], num = 2,
                          adjust = known$age)
  expect_same_factors(found, naive_factors(x, 2, ~ age + y + kind, known))
  expect_identical(attr(found, "keep"), c("y", "kind"))
  # They are orthogonal to what is kept.
  design <- stats::model.matrix(~ age + y + kind, known)
  expect_lt(max(abs(crossprod(as.matrix(found), design))), 1e-9)
  skip_if_not_installed("survival")
  time <- survival::Surv(1:24, rep(c(1, 1, 0), 8))
  found <- hidden_factors(x, keep = time, num = 2)
  known$residual <- stats::residuals(
    survival::coxph(time ~ 1), type = "martingale"
  )
  expect_same_factors(found, naive_factors(x, 2, ~ residual, known))
})

test_that("points may be of any kind, in blocks, and scaled by anything", {
  x <- shifted_points()$x
  expected <- hidden_factors(x, num = 2)
  expect_equal(hidden_factors(t(x), num = 2, points = "columns"), expected)
  expect_equal(
    hidden_factors(x * rep_len(c(1e-300, 1, 1e300), 150), num = 2), expected
  )
  flat <- rbind(x, flat = 3, s = 0)
  expect_equal(hidden_factors(flat, num = 2), expected)
  withr::with_options(list(fsknn.max_memory = 2^20), {
    many <- x[rep(1:150, 30), ]
    rownames(many) <- NULL
    expect_equal(
      attr(hidden_factors(many, num = 2), "share"), attr(expected, "share")
    )
  })
  pairs <- metafeatures(x[1:12, ], "-")
  expect_same_factors(
    hidden_factors(pairs, num = 2), naive_factors(as.matrix(pairs), 2)
  )
  holes <- x
  holes[cbind(1:150, rep_len(1:24, 150))] <- NA
  filled <- holes
  for (row in 1:150) {
    filled[row, is.na(filled[row, ])] <- mean(holes[row, ], na.rm = TRUE)
  }
  expect_equal(
    hidden_factors(holes, num = 2, na = "mean"), hidden_factors(filled, num = 2)
  )
  expect_wrong(hidden_factors(holes, num = 2), "na = \"mean\"")
  holes[5, 5] <- Inf
  expect_wrong(hidden_factors(holes, num = 2, na = "mean"), "row 5")
  skip_if_not_installed("Matrix")
  sparse <- methods::as(Matrix::Matrix(round(x), sparse = TRUE), "CsparseMatrix")
  expect_equal(
    hidden_factors(sparse, num = 2, constant = "isolate"),
    hidden_factors(round(x), num = 2)
  )
})

test_that("the number of factors is by parallel analysis", {
  data <- shifted_points()
  found <- withr::with_seed(
    3, hidden_factors(data$x, num = "permutation", permutations = 19)
  )
  expect_gte(ncol(found), 2)
  expect_gt(abs(stats::cor(found$factor1, data$batch)), 0.95)
  p <- attr(found, "tested")$p_value
  expect_length(p, ncol(found) + 1)
  # By definition, with the permutations of the same seed.
  basis <- matrix(1 / sqrt(24), 24, 1)
  rows <- naive_factors(data$x, 1)$rows
  off <- function(rows) rows - rows %*% basis %*% t(basis)
  share <- function(rows) {
    d <- svd(rows)$d
    d[[1]]^2 / sum(d^2)
  }
  withr::with_seed(3, {
    for (at in seq_along(p)) {
      left <- off(rows)
      larger <- sum(replicate(19, {
        share(off(fsknn:::permute_within_points(left))) >= share(left)
      }))
      expect_equal(p[[at]], (larger + 1) / 20)
      basis <- cbind(basis, svd(left)$v[, 1])
    }
  })
  # Noise has none in most data sets, and a known batch is none.
  none <- withr::with_seed(4, vapply(1:20, function(set) {
    ncol(hidden_factors(
      random_matrix(60, 14, set), num = "permutation", permutations = 19
    ))
  }, 1L))
  expect_lte(sum(none > 0), 4)
  known <- withr::with_seed(
    3, hidden_factors(data$x[1:100, ], adjust = data$batch, permutations = 19)
  )
  expect_identical(ncol(known), 0L)
  expect_identical(dim(known), c(24L, 0L))
  # No factor is no adjustment.
  expect_equal(
    knn_graph(data$x, 2, adjust = known)$to, knn_graph(data$x, 2)$to
  )
  expect_output(print(known), "0 hidden factors")
})

# The variance of two directions, of all rows and of most of them.
naive_dominance <- function(rows, first, second) {
  squares <- lapply(list(first, second), function(direction) {
    vapply(seq_len(nrow(rows)), function(row) {
      sum(rows[row, ] * direction)^2
    }, 0)
  })
  of_most <- lapply(squares, function(one) {
    one[rank(one, ties.method = "first") <= ceiling(0.75 * length(one))]
  })
  c(
    sum(squares[[1]]) / sum(squares[[2]]),
    sum(of_most[[1]]) / sum(of_most[[2]])
  )
}

test_that("dominant factors are those of most points", {
  data <- shifted_points()
  found <- withr::with_seed(3, hidden_factors(data$x))
  expect_identical(names(found), "factor1")
  expect_gt(abs(stats::cor(found$factor1, data$batch)), 0.95)
  all <- naive_factors(data$x, 3)
  tested <- attr(found, "tested")
  expect_equal(
    as.matrix(tested[c("times_all", "times_most")]), rbind(
      naive_dominance(all$rows, all$vectors[, 1], all$vectors[, 2]),
      naive_dominance(all$rows, all$vectors[, 2], all$vectors[, 3])
    ), ignore_attr = TRUE
  )
  expect_true(all(tested[1, -1] >= 2) && any(tested[2, -1] < 2))
  expect_output(print(found), "Tested: p = 0.02 \\([0-9.]+ times the next\\), p = ")
  # A module of a fifth of the points is more than chance, but not dominant.
  module <- data$x[c(101:110, 116:150), ]
  module[1:10, ] <- rep(data$x[101, ], each = 10) + 0.3 * module[36:45, ]
  expect_gt(ncol(withr::with_seed(
    3, hidden_factors(module, num = "permutation")
  )), 0)
  found <- withr::with_seed(3, hidden_factors(module))
  expect_identical(ncol(found), 0L)
  expect_gt(attr(found, "tested")$times_all, 2)
  # Several modules are not, even if all points are in one.
  withr::local_seed(5)
  base <- matrix(stats::rnorm(10 * 24), 10)[rep(1:10, each = 12), ]
  covered <- base + matrix(stats::rnorm(120 * 24), 120)
  expect_identical(ncol(hidden_factors(covered)), 0L)
  expect_gt(ncol(hidden_factors(covered, num = "permutation")), 3)
})

test_that("a factor that is one sample is a message", {
  x <- random_matrix(100, 24)
  colnames(x) <- letters[1:24]
  expect_message(hidden_factors(x, num = 1), NA)
  x[, 7] <- 4 * x[, 7]
  expect_message(
    found <- withr::with_seed(3, hidden_factors(x)),
    "factor1 \\(sample g\\)", class = "fsknn_factor_of_sample"
  )
  expect_gt(found["g", "factor1"]^2, 0.5)
})

test_that("modules that the factors explain are reported", {
  data <- shifted_points()
  of <- rep(c("batch", "module", "noise"), c(100, 15, 35))
  found <- hidden_factors(data$x, num = 2, clusters = of)
  expected <- naive_factors(data$x, 2)
  explained <- rowSums((expected$rows %*% expected$vectors)^2)
  modules <- attr(found, "modules")
  expect_equal(
    modules$explained, as.vector(tapply(explained, of, mean))
  )
  expect_identical(modules$lost, modules$explained >= 0.5)
  expect_identical(modules$size, c(100L, 15L, 35L))
  lost <- hidden_factors(
    data$x[101:150, ], num = 1, clusters = of[101:150]
  )
  expect_output(print(lost), "1 module lost: module")
})

test_that("p-values are refused where factors protect an outcome", {
  data <- shifted_points()
  x <- data$x
  y <- stats::setNames(random_matrix(1, 24, 4)[1, ], colnames(x))
  free <- hidden_factors(x, num = 2)
  kept <- hidden_factors(x, keep = y, num = 2)
  age <- data.frame(age = 1:24, row.names = colnames(x))
  expect_s3_class(nearest_to(
    x, outcome = y, k = 2, permutations = 9, adjust = free
  ), "fsknn_nearest")
  refused <- list(
    quote(nearest_to(x, outcome = y, k = 2, permutations = 9, adjust = kept)),
    quote(nearest_to(x, outcome = y, k = 2, permutations = 0, adjust = kept)),
    quote(nearest_to(
      x, outcome = y, k = 2, permutations = 9, adjust = cbind(age, kept)
    )),
    quote(nearest_to(
      x, outcome = y, k = 2, permutations = 9, adjust = kept$factor2
    )),
    quote(nearest_to(
      x, outcome = y, k = 2, permutations = 9, adjust = kept[24:1, ]
    )),
    quote(nearest_to(
      x, outcome = y, k = 2, permutations = 9, adjust = ~ factor1 + age,
      data = data.frame(kept, age)
    )),
    quote(nearest_to(
      knn_index(x, adjust = kept), outcome = y, k = 2, permutations = 9
    )),
    quote(module_summary(rep(1:3, 50), x, y, adjust = kept)),
    quote(compare_neighbours(
      x, rep(1:2, 12), 2, permutations = 3, adjust = kept
    ))
  )
  for (call in refused) {
    expect_wrong(eval(call), "protect an outcome")
  }
  # Without p-values, they are covariates like any other.
  plain <- as.matrix(as.data.frame(lapply(kept, as.double)))
  rownames(plain) <- rownames(kept)
  expect_identical(
    nearest_to(x, outcome = y, k = 3, adjust = kept),
    nearest_to(x, outcome = y, k = 3, adjust = plain)
  )
  expect_identical(
    knn_graph(x, 3, adjust = kept), knn_graph(x, 3, adjust = plain)
  )
  # Row names match the samples.
  expect_identical(
    knn_graph(x, 3, adjust = free[24:1, ]), knn_graph(x, 3, adjust = free)
  )
  expect_output(print(kept), "Kept: keep \\(no p-values\\)")
  expect_output(print(kept$factor1), "\\[1\\]")
})

test_that("wrong arguments are explained", {
  x <- shifted_points()$x
  expect_wrong(hidden_factors(x, num = "all"), "dominant.*permutation")
  expect_wrong(hidden_factors(x, num = 0), "num")
  expect_wrong(hidden_factors(x, num = 24), "between 1 and 23")
  expect_wrong(hidden_factors(x, keep = 1:5, num = 1), "keep")
  expect_wrong(
    hidden_factors(x, keep = c(NA, 1:23), num = 1), "missing or infinite"
  )
  expect_wrong(
    hidden_factors(x, keep = as.character(1:24), num = 1), "must leave"
  )
  expect_wrong(hidden_factors(x, permutations = 0), "permutations")
  expect_wrong(hidden_factors(x, weights = rep(1, 24)), "does not take")
  expect_wrong(hidden_factors(matrix(1, 5, 6), num = 1), "neither constant")
})
