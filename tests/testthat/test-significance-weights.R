# Meanings of weights compared with lm(), repeated samples and loops.

weighted_data <- function() {
  data <- followed(num_samples = 14)
  c(data, list(weights = rep_len(c(1, 2, 5), 14)))
}

# Returns the weighted correlation of each row with y.
weighted_r <- function(x, y, weights) {
  apply(x, 1, function(row) {
    stats::cov.wt(cbind(row, y), weights, cor = TRUE)$cor[1, 2]
  })
}

of_kind <- function(weights, kind) {
  stats::setNames(list(weights), kind)
}

ask_weighted <- function(data, kind = NULL, ...) {
  set.seed(4)
  weights <- data$weights
  nearest_to(
    data$x, outcome = data$outcome, k = 6, backend = "cpu",
    weights = if (is.null(kind)) weights else of_kind(weights, kind), ...
  )
}

test_that("precisions are lm()'s weights", {
  data <- weighted_data()
  found <- ask_weighted(data, "precision", permutations = 0)
  known <- vapply(found$index, function(at) {
    fit <- stats::lm(data$outcome ~ data$x[at, ], weights = data$weights)
    stats::pt(summary(fit)$coefficients[2, 3], 12, lower.tail = FALSE)
  }, 0)
  expect_equal(found$p_value, known, tolerance = 1e-10)
})

test_that("frequencies are repeated samples", {
  data <- weighted_data()
  found <- ask_weighted(data, "frequency", permutations = 0)
  repeated <- rep(1:14, data$weights)
  known <- nearest_to(
    data$x[, repeated], outcome = data$outcome[repeated], k = 6,
    permutations = 0, backend = "cpu"
  )
  columns <- c("index", "correlation", "p_value", "fdr")
  expect_equal(
    as.data.frame(found)[columns], as.data.frame(known)[columns],
    tolerance = 1e-10
  )
  # Factors have the correlation as their statistic, and its p-value.
  data$outcome <- factor(rep_len(c("a", "b"), 14))
  of_factor <- ask_weighted(data, "frequency", permutations = 0)
  known <- nearest_to(
    data$x[, repeated], outcome = data$outcome[repeated], k = 6,
    permutations = 0, statistic = "correlation", backend = "cpu"
  )
  expect_identical(names(of_factor), names(known))
  expect_equal(of_factor$p_value, known$p_value, tolerance = 1e-10)
  expect_error(
    ask_weighted(data, "frequency", permutations = 0,
                 statistic = "studentized"),
    class = "fsknn_argument_error"
  )
  data <- weighted_data()
  # Equal frequencies count, too.
  data$weights[] <- 3
  found <- ask_weighted(data, "frequency", permutations = 0)
  expect_equal(found$p_value, r_to_p(found$correlation, 40, "greater"))
})

test_that("sampling weights have Kish's number of samples", {
  data <- weighted_data()
  effective <- sum(data$weights)^2 / sum(data$weights^2)
  for (metric in c("pearson", "spearman")) {
    found <- ask_weighted(
      data, "sampling", metric = metric, permutations = 0
    )
    expect_equal(
      found$p_value, r_to_p(found$correlation, effective - 2, "greater")
    )
  }
  # Only proportions matter.
  data$weights <- data$weights / 7
  again <- ask_weighted(
    data, "sampling", metric = metric, permutations = 0
  )
  expect_equal(again$p_value, found$p_value)
})

test_that("precisions are permuted with equal variance, others as they are", {
  data <- weighted_data()
  weights <- data$weights
  age <- drop(random_matrix(1, 14, 5))
  drawn <- drawn_by(4, 14, 40)
  residuals_of <- function(values, design) {
    stats::lm.wfit(design, values, weights)$residuals
  }
  for (adjust in list(NULL, age)) {
    design <- cbind(rep(1, 14), adjust)
    rows <- t(apply(data$x, 1, residuals_of, design))
    own <- residuals_of(data$outcome, design)
    for (kind in c("precision", "sampling")) {
      found <- ask_weighted(data, kind, permutations = 40, adjust = adjust)
      null <- apply(drawn, 2, function(by) {
        moved <- if (kind == "precision") {
          (own * sqrt(weights))[by] / sqrt(weights)
        } else {
          own[by]
        }
        1 - max(weighted_r(rows, residuals_of(moved, design), weights))
      })
      expect_equal(drop(attr(found, "null")), null, tolerance = 1e-10)
    }
  }
})

test_that("edges have the degrees of freedom and permutations of their kind", {
  data <- weighted_data()
  weights <- data$weights
  edges <- knn_graph(data$x, 2, weights = weights, backend = "cpu")
  freedom <- c(
    precision = 12, frequency = sum(weights) - 2,
    sampling = sum(weights)^2 / sum(weights^2) - 2
  )
  for (kind in names(freedom)) {
    set.seed(6)
    found <- edge_significance(
      edges, data$x, weights = of_kind(weights, kind), backend = "cpu",
      permutations = if (kind != "frequency") 9
    )
    expect_equal(
      found$p_value, r_to_p(found$correlation, freedom[[kind]], "greater")
    )
    if (kind == "frequency") {
      next
    }
    scale <- rep(if (kind == "precision") sqrt(weights) else 1, each = 60)
    centre <- drop(data$x %*% weights) / sum(weights)
    set.seed(6)
    smallest <- vapply(1:9, function(at) {
      permuted <- permute_within_points((data$x - centre) * scale) / scale
      min(knn_search(permuted, 1, weights = weights, backend = "cpu")$distance)
    }, 0)
    expect_equal(found$p_permutation, vapply(found$distance, function(own) {
      permutation_p(sum(smallest <= own + 1e-12), 9)
    }, 0))
  }
})

test_that("an index has the weights that it was made with", {
  data <- weighted_data()
  for (kind in weight_kinds) {
    index <- knn_index(
      data$x, weights = of_kind(data$weights, kind), backend = "cpu"
    )
    expect_identical(
      nearest_to(
        index, outcome = data$outcome, k = 6, permutations = 0
      )$p_value,
      ask_weighted(data, kind, permutations = 0)$p_value
    )
  }
})

test_that("p-values need the meaning of weights, and other kinds are errors", {
  data <- weighted_data()
  edges <- knn_graph(data$x, 2, weights = data$weights, backend = "cpu")
  weights <- data$weights
  ask <- function(weights, permutations = 0, ...) {
    nearest_to(
      data$x, outcome = data$outcome, k = 3, weights = weights,
      permutations = permutations, ...
    )
  }
  expect_messages({
    ask(weights)
    edge_significance(edges, data$x, weights = weights)
    ask(list(kish = weights))
    ask(list(precision = weights), metric = "spearman")
    ask(list(frequency = weights / 2))
    ask(list(frequency = weights), permutations = 9)
    ask(list(frequency = -weights))
  })
  # Without p-values, or with equal weights, there is nothing to say.
  expect_identical(
    ask_weighted(data, "sampling"), ask_weighted(data)
  )
  expect_identical(nrow(ask_weighted(data)), 6L)
  data$weights <- rep(0:1, 7)
  expect_identical(nrow(ask_weighted(data, permutations = 9)), 6L)
})
