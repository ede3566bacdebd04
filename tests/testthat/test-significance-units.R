# Most tests repeat each sample within its unit. Correlations and their weights
# by unit are then those of single samples, and so must p-values be.

test_that("values that are constant are exchanged among units of any size", {
  unit <- c(4, 9, 9, 4, 2, 2, 2, 7)
  values <- t(c(1, 3, 3, 1, 1, 1, 1, 5))
  exchange <- exchange_of(values, NULL, match(unit, unique(unit)))
  expect_identical(exchange$kind, "units")
  # Of 1, 3, 1, 5 there are 12 arrangements.
  all <- relabellings(exchange, 11, values)
  expect_true(all$facts$all)
  labels <- apply(all$drawn, 2, function(from) {
    of <- values[from]
    expect_true(all(tapply(of, unit, function(one) length(unique(one))) == 1))
    of[match(unique(unit), unit)]
  })
  expect_identical(apply(labels, 2, sort), matrix(c(1, 1, 3, 5), 4, 11))
  expect_identical(ncol(unique(labels, MARGIN = 2)), 11L)
  expect_false(any(colSums(labels != c(1, 3, 1, 5)) == 0))
  # One permutation fewer than needed: they are drawn.
  set.seed(1)
  drawn <- relabellings(exchange, 10, values)
  expect_false(drawn$facts$all)
  set.seed(1)
  units <- draw_permutations(4, 10)
  first <- match(unique(unit), unit)
  expect_identical(
    drawn$drawn, array(first[units[match(unit, unique(unit)), ]], c(8L, 10L))
  )
})

test_that("strata are groups of units", {
  unit <- rep(1:6, c(2, 3, 1, 2, 2, 2))
  strata <- c(1L, 1L, 1L, 2L, 2L, 2L)[unit]
  values <- t(c(1, 2, 3, 1, 2, 3)[unit])
  relabelled <- relabellings(exchange_of(values, strata, unit), 35, values)
  expect_true(relabelled$facts$all)
  expect_identical(ncol(relabelled$drawn), 35L)
  expect_true(all(strata[relabelled$drawn] == strata))
  expect_identical(ncol(unique(relabelled$drawn, MARGIN = 2)), 35L)
})

test_that("values that vary within units move as blocks", {
  unit <- c(1, 2, 1, 2, 3, 3, 4, 4, 4)
  values <- t(c(5, 1, 6, 2, 3, 4, 7, 8, 9))
  # Units 1, 2 and 3 have two samples each, and the fourth stays.
  blocks <- relabellings(exchange_of(values, NULL, unit), 100, values)
  expect_identical(blocks$facts$kind, "blocks")
  expect_identical(ncol(blocks$drawn), 5L)
  places <- list(c(1, 3), c(2, 4), c(5, 6))
  for (at in 1:5) {
    from <- blocks$drawn[, at]
    expect_identical(from[7:9], 7:9)
    moved <- lapply(places, function(place) from[place])
    expect_true(all(vapply(moved, function(one) {
      any(vapply(places, function(place) all(place == one), NA))
    }, NA)))
    expect_identical(sort(unlist(moved)), 1:6)
  }
})

test_that("all arrangements are those of brute force", {
  brute <- function(type) {
    if (length(type) < 2) {
      return(matrix(type))
    }
    do.call(cbind, lapply(seq_along(type), function(first) {
      rbind(type[first], brute(type[-first]))
    }))
  }
  for (type in list(1:5, c(1, 1, 2, 2, 3), c(1, 2, 2, 2, 2), c(2, 1))) {
    expected <- unique(brute(type), MARGIN = 2)
    orders <- all_arrangements(rep(1L, length(type)), type, 200)
    found <- cbind(type, matrix(type[orders], length(type)))
    expect_identical(ncol(found), ncol(expected))
    key <- function(of) sort(apply(of, 2, paste, collapse = " "))
    expect_identical(key(unname(found)), key(expected))
    expect_identical(apply(orders, 2, sort), matrix(seq_along(type),
                     length(type), ncol(orders)))
    expect_null(all_arrangements(
      rep(1L, length(type)), type, ncol(expected) - 2
    ))
  }
})

test_that("with few samples the p-value is that of all arrangements", {
  x <- random_matrix(30, 8, seed = 3)
  ill <- rep(c(TRUE, FALSE), 4)
  for (sign in c("signed", "absolute")) {
    found <- nearest_to(
      x, outcome = ill, k = 1, sign = sign, permutations = 100,
      statistic = "correlation", backend = "cpu"
    )
    of <- function(ill) {
      r <- stats::cor(t(x), ill)
      max(if (sign == "absolute") abs(r) else r)
    }
    best <- utils::combn(8, 4, function(at) of(1:8 %in% at))
    expect_identical(length(best), 70L)
    expect_equal(found$p_adjusted, mean(best >= of(ill) - 1e-9))
    expect_equal(
      attr(found, "smallest_p"), if (sign == "absolute") 2 / 70 else 1 / 70
    )
    expect_identical(nrow(attr(found, "null")), 69L)
  }
  expect_output(print(found), "all 70 relabellings", fixed = TRUE)
  expect_output(print(found), "Smallest possible p-value: 0.0286", fixed = TRUE)
})

# Repeats each sample in its unit.
repeated <- function(x, times) {
  x[, rep(seq_len(ncol(x)), rep_len(times, ncol(x))), drop = FALSE]
}

test_that("nearest_to() permutes units as it does single samples", {
  data <- followed()
  ask <- function(x, outcome, ...) {
    set.seed(4)
    nearest_to(
      x, outcome = outcome, k = 8, sign = "absolute", permutations = 60,
      backend = "cpu", ...
    )
  }
  alone <- ask(data$x, data$outcome)
  unit <- rep(1:11, each = 5)
  # In any order of the samples.
  mixed <- c(order(unit %% 2 == 0, seq_along(unit)))
  units <- ask(
    repeated(data$x, 5)[, mixed], data$outcome[unit][mixed],
    unit = letters[unit][mixed]
  )
  expect_false(any(c("p_value", "fdr") %in% names(units)))
  expect_identical(units$name, alone$name)
  units <- ask(repeated(data$x, 5), data$outcome[unit], unit = letters[unit])
  expect_equal(units$p_adjusted, alone$p_adjusted)
  expect_equal(attr(units, "null"), attr(alone, "null"), tolerance = 1e-9)
  # Units of unequal size are weights.
  times <- rep_len(c(1, 4, 2), 11)
  weighted <- ask(data$x, data$outcome, weights = list(sampling = times))
  unit <- rep(1:11, times)
  units <- ask(repeated(data$x, times), data$outcome[unit], unit = unit)
  expect_equal(units$p_adjusted, weighted$p_adjusted)
  # Notes of p_value and fdr, which units do not have.
  expect_output(print(weighted), "weights are sampling")
  noted <- ask(
    repeated(data$x, 2), data$outcome[rep(1:11, each = 2)],
    unit = rep(1:11, each = 2), weights = list(sampling = rep(times, each = 2))
  )
  expect_false(any(grepl("weights are", capture.output(print(noted)))))
  # One family over all outcomes.
  outcomes <- list(own = data$outcome, other = sin(1:11))
  alone <- ask(data$x, outcomes, family = "call")
  unit <- rep(1:11, each = 5)
  units <- ask(
    repeated(data$x, 5), lapply(outcomes, `[`, unit), unit = unit,
    family = "call"
  )
  expect_equal(units$p_adjusted, alone$p_adjusted)
  # Covariates of units; strata of units.
  age <- drop(random_matrix(1, 11, seed = 9))
  strata <- rep(1:2, c(5, 6))
  with_age <- ask(data$x, data$outcome, adjust = age, strata = strata)
  unit <- rep(1:11, each = 3)
  units <- ask(
    repeated(data$x, 3), data$outcome[unit], adjust = age[unit],
    strata = strata[unit], unit = unit
  )
  expect_equal(units$p_adjusted, with_age$p_adjusted)
})

test_that("samples of weight 0 and missing values leave units alone", {
  data <- followed()
  unit <- rep(1:11, each = 2)
  x <- cbind(repeated(data$x, 2), 7)
  ask <- function(x, outcome, ...) {
    set.seed(4)
    nearest_to(
      x, outcome = outcome, k = 5, permutations = 40, backend = "cpu", ...
    )
  }
  expect_equal(
    ask(
      x, c(data$outcome[unit], 99), unit = c(unit, 3),
      weights = c(rep(1, 22), 0)
    )$p_adjusted,
    ask(data$x, data$outcome)$p_adjusted
  )
  outcome <- replace(data$outcome, 4, NA)
  units <- ask(
    repeated(data$x, 2), outcome[unit], unit = unit, na = "pairwise",
    min_pairs = 4
  )
  expect_false(anyNA(units$p_adjusted))
})

test_that("the p-value of blocks is that of all their arrangements", {
  data <- followed(num_samples = 12)
  unit <- rep(1:4, 3)
  ask <- function(...) {
    set.seed(5)
    nearest_to(
      data$x, outcome = data$outcome, k = 6, permutations = 30,
      backend = "cpu", ...
    )
  }
  blocks <- ask(unit = unit)
  expect_false("p_value" %in% names(blocks))
  expect_output(print(blocks), "all 24 relabellings of 4 units as blocks")
  of <- function(order) {
    place <- order[unit] + 4 * ((seq_len(12) - 1) %/% 4)
    max(stats::cor(t(data$x), data$outcome[place]))
  }
  orders <- as.matrix(expand.grid(1:4, 1:4, 1:4, 1:4))
  orders <- orders[apply(orders, 1, anyDuplicated) == 0, ]
  best <- apply(orders, 1, of)
  expect_equal(blocks$p_adjusted[[1]], mean(best >= of(1:4) - 1e-9))
})

test_that("other verbs permute units as they do single samples", {
  x <- random_matrix(24, 16, seed = 8)
  groups <- rep(c("a", "b"), c(7, 9))
  unit <- rep(1:16, each = 3)
  compare <- function(x, groups, ...) {
    set.seed(6)
    compare_neighbours(
      x, groups, k = 3, permutations = 20, backend = "cpu", ...
    )
  }
  units <- compare(repeated(x, 3), groups[unit], unit = unit)
  alone <- compare(x, groups)
  expect_equal(units$points, alone$points)
  expect_equal(units$edges, alone$edges)
  expect_output(print(units), "20 permutations of 16 units", fixed = TRUE)
  age <- drop(random_matrix(1, 16, seed = 9))
  with_age <- compare(
    repeated(x, 3), groups[unit], unit = unit, adjust = age[unit]
  )
  alone <- compare(x, groups, adjust = age)
  facts <- c("from", "to", "change")
  expect_equal(with_age$edges[facts], alone$edges[facts])
  expect_false(anyNA(with_age$points$p_value))
  # Units with both groups are blocks. Seven of the eight have the same labels.
  expect_identical(compare(x, groups, unit = rep(1:8, 2))$permutations, 7L)

  modules <- function(x, outcome, ...) {
    set.seed(7)
    module_summary(
      rep(1:4, 6), x, outcome, permutations = 40, backend = "cpu", ...
    )
  }
  outcome <- drop(random_matrix(1, 16, seed = 10))
  units <- modules(repeated(x, 3), outcome[unit], unit = unit)
  expect_equal(
    units$outcomes[c("module", "p_adjusted")],
    modules(x, outcome)$outcomes[c("module", "p_adjusted")]
  )
  expect_false(any(c("p_value", "fdr") %in% names(units$outcomes)))
  expect_output(print(units), "40 permutations of 16 units", fixed = TRUE)

  for (metric in c("pearson", "euclidean")) {
    edges <- function(x, ...) {
      set.seed(8)
      edge_significance(
        knn_graph(x, 2, metric, backend = "cpu"), x, permutations = 20,
        backend = "cpu", ...
      )
    }
    columns <- c("p_from", "p_to", "p_permutation")
    units <- edges(repeated(x, 3), unit = unit)
    expect_equal(
      as.data.frame(units)[columns], as.data.frame(edges(x))[columns]
    )
    expect_null(units$p_value)
    expect_output(print(units), "20 permutations of 16 units", fixed = TRUE)
  }

  stability <- function(x, ...) {
    set.seed(9)
    edge_stability(x, 3, resamples = 20, backend = "cpu", ...)
  }
  for (method in c("subsample", "bootstrap")) {
    units <- stability(repeated(x, 3), method = method, unit = unit)
    alone <- stability(x, method = method)
    expect_equal(units$stability, alone$stability)
    expect_equal(
      attr(units, "stability")$chance, attr(alone, "stability")$chance
    )
  }
  expect_output(print(units), "of 16 of 16 units", fixed = TRUE)
  uneven <- rep(1:16, rep(1:2, 8))
  found <- stability(repeated(x, rep(1:2, 8)), unit = uneven)
  expect_null(attr(found, "stability")$chance)
})

test_that("labels of whole units are permuted over a graph", {
  x <- random_matrix(60, 4, seed = 2)
  unit <- rep(1:6, c(5, 15, 10, 10, 12, 8))
  labels <- c("u", "v", "u", "v", "u", "v")[unit]
  edges <- knn_graph(x, 5, metric = "euclidean", backend = "cpu")
  found <- neighbour_mixing(edges, labels, unit = unit)
  purity <- utils::combn(6, 3, function(at) {
    mean(neighbour_mixing(edges, unit %in% at, permutations = NULL)$purity)
  })
  chance <- attr(found, "chance")
  expect_equal(chance$p[[1]], mean(purity >= chance$observed[[1]] - 1e-12))
  expect_equal(chance$chance[[1]], mean(purity))
  # Two labels that change their names are the same labels.
  expect_equal(attr(found, "relabelled")$smallest_p, 2 / 20)
  expect_output(print(found), "all 20 relabellings of 6 units", fixed = TRUE)
  expect_output(print(found), "Smallest possible p-value: 0.1", fixed = TRUE)
  data <- data.frame(who = labels, donor = unit)
  expect_identical(
    attr(neighbour_mixing(edges, "who", unit = "donor", data = data), "chance"),
    chance
  )
  # Labels that vary within units of equal size.
  labels <- rep(rep(1:2, 5), c(6, 4, 1, 9, 3, 7, 5, 5, 2, 18))
  found <- neighbour_mixing(edges, labels, unit = rep(1:6, each = 10))
  expect_output(print(found), "of 6 units as blocks", fixed = TRUE)
})

test_that("folds never split a unit", {
  x <- random_matrix(40, 5, seed = 3)
  unit <- rep_len(c("p", "q", "r", "s", "t", "u", "q", "q"), 40)
  labels <- factor(ifelse(unit %in% c("p", "q", "r"), "ill", "well"))
  ask <- function(...) {
    set.seed(2)
    knn_predict(x, labels, metric = "euclidean", backend = "cpu", ...)
  }
  left_out <- ask(unit = unit)
  expect_identical(left_out$folds, factor(unit))
  expect_identical(left_out$by_k, ask(folds = unit)$by_k)
  for (found in list(
    ask(unit = unit, folds = 3), ask(unit = unit, folds = 3, strata = labels)
  )) {
    each <- tapply(found$folds, unit, function(fold) length(unique(fold)))
    expect_true(all(each == 1))
    expect_identical(nlevels(found$folds), 3L)
  }
  # Three ill and three well units, one of each in a fold.
  expect_true(all(table(unique(data.frame(unit, found$folds, labels))[-1]) == 1))
  fold <- ifelse(unit == "p", 1, 2)
  expect_identical(ask(unit = unit, folds = fold)$by_k, ask(folds = fold)$by_k)
  expect_messages({
    ask(unit = unit, folds = rep_len(1:2, 40))
    ask(unit = unit, folds = 7)
    ask(unit = unit, folds = 2, strata = rep_len(1:3, 40))
    ask(unit = rep(1, 40))
    ask(unit = unit, query = x)
  })
})

test_that("what can't be permuted by units is an error that says why", {
  x <- random_matrix(20, 12, seed = 4)
  unit <- rep(1:4, each = 3)
  ill <- unit < 3
  ask <- function(outcome = ill, ..., permutations = 20) {
    nearest_to(
      x, outcome = outcome, k = 2, permutations = permutations,
      backend = "cpu", ...
    )
  }
  varying <- x[1, ]
  age <- drop(random_matrix(1, 12, seed = 5))
  edges <- knn_graph(x, 2, backend = "cpu")
  uneven <- rep(1:4, c(2, 3, 3, 4))
  expect_messages({
    ask(unit = unit, permutations = NULL)
    ask(unit = unit, permutations = 0)
    ask(unit = 1:3)
    ask(unit = replace(unit, 2, NA))
    ask(strata = unit)
    ask(unit = unit, strata = rep(1:2, 6))
    ask(unit = unit, strata = unit)
    ask(unit = unit, adjust = age)
    ask(varying, unit = rep(1:3, c(3, 4, 5)))
    ask(rep(1:3, 4), unit = unit)
    ask(rep(1:2, 6), unit = rep(1:6, each = 2), strata = rep(1:2, 6))
    compare_neighbours(x, unit < 3, k = 2, unit = unit, backend = "cpu")
    edge_significance(edges, x, unit = unit)
    edge_significance(edges, x, unit = uneven, permutations = 9)
    edge_significance(edges, x, unit = rep(1, 12), permutations = 9)
    edge_stability(x, 2, unit = rep(1:2, 6), backend = "cpu")
  })
})

test_that("means of units vary after a permutation as they did before", {
  # The mean over all ways to assign six units is exact.
  unit <- rep(1:6, each = 2)
  groups <- list(1:6, 7:12)
  x <- random_matrix(8, 12, seed = 6)
  means <- function(values) weighted_by(unit, rep(1, 12), values)
  age <- c(1, 1, 5, 5, 4, 4)
  designs <- list(cbind(c(age, rep(0, 6))), cbind(c(rep(0, 6), age)))
  for (designs in list(NULL, designs)) {
    residuals <- function(values) {
      for (at in groups) {
        design <- cbind(rep(1, 6), if (!is.null(designs)) age)
        values[, at] <- t(stats::lm.fit(design, t(values[, at]))$residuals)
      }
      values
    }
    left <- residuals(x)
    restored <- restore_units(left, unit, NULL, NULL, designs)
    # Deviations within units stay.
    expect_equal(restored - means(restored), left - means(left))
    permuted <- apply(distinct_orders(1:6), 2, function(order) {
      from <- 2 * order[unit] - c(1, 0)
      rowSums(means(residuals(restored[, from]))^2)
    })
    expect_equal(rowMeans(permuted), rowSums(means(left)^2))
  }
})

# The short form of inst/bench/calibration_units.R.
test_that("donors without any effect are called at the level", {
  num_sets <- if (is_long()) 120 else 40
  set.seed(12)
  called <- vapply(seq_len(num_sets), function(set) {
    unit <- rep(1:10, rep_len(c(4, 8, 12), 10))
    x <- matrix(stats::rnorm(400), 40)[, unit] +
      matrix(stats::rnorm(40 * length(unit)), 40)
    ask <- function(...) {
      nearest_to(
        x, outcome = unit > 5, k = 1, sign = "absolute", permutations = 59,
        backend = "cpu", ...
      )$p_adjusted <= 0.05
    }
    c(without = ask(), with = ask(unit = unit))
  }, c(NA, NA))
  expect_lte(
    sum(called["with", ]), stats::qbinom(1 - 1e-4, num_sets, 0.05)
  )
  expect_gt(sum(called["without", ]), 0.9 * num_sets)
})

test_that("a covariate's effect doesn't change what units exchange", {
  unit <- rep(1:6, each = 3)
  x <- random_matrix(20, 18, seed = 12)
  varies <- drop(random_matrix(1, 18, seed = 13))
  for (covariate in list(varies, varies[unit])) {
    ask <- function(effect) {
      data <- x + outer(seq(-effect, effect, length.out = 20), covariate)
      options <- list(adjust = covariate, backend = "cpu")
      edges <- do.call(knn_graph, c(list(data, k = 3), options))
      set.seed(3)
      tested <- do.call(edge_significance, c(
        list(edges, data, unit = unit, permutations = 19), options
      ))
      set.seed(3)
      stable <- do.call(edge_stability, c(
        list(data, k = 3, unit = unit, resamples = 9), options
      ))
      list(tested$p_permutation, attr(stable, "stability")$chance)
    }
    expect_equal(ask(1000), ask(0))
  }
})
