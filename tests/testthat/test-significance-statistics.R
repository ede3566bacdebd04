# Permuted statistics that are no distance: Welch's t and F, slopes with a
# robust standard error, and the correlation ratio.

group_data <- function() {
  x <- random_matrix(40, 21, seed = 31)
  rownames(x) <- paste0("g", 1:40)
  group <- factor(rep(c("b", "a", "c"), c(8, 6, 7)), c("b", "a", "c"))
  x[1:4, ] <- x[1:4, ] + outer(4:1, as.integer(group)) / 3
  two <- factor(ifelse(group == "b", "ill", "well"), c("well", "ill"))
  list(x = x, three = group, two = two, y = random_matrix(1, 21, 32)[1, ])
}

# The step-down maxT over all points, of statistics that are larger for the
# nearer: `null` has a column for each permutation.
naive_step_down <- function(observed, null) {
  order <- order(-observed)
  steps <- vapply(seq_along(order), function(at) {
    left <- null[order[at:length(order)], , drop = FALSE]
    permutation_p(
      sum(apply(left, 2, max) >= observed[order[[at]]] - 1e-9), ncol(null)
    )
  }, 0)
  cummax(steps)[order(order)]
}

# The normal score of Welch's t with its degrees of freedom (Wallace 1959).
naive_score <- function(x, y) {
  test <- stats::t.test(x, y)
  t <- test$statistic[[1]]
  freedom <- test$parameter[[1]]
  sign(t) * (8 * freedom + 1) / (8 * freedom + 3) *
    sqrt(freedom * log(1 + t^2 / freedom))
}

ask_data <- function(data, ...) {
  set.seed(4)
  nearest_to(data$x, permutations = 60, backend = "cpu", ...)
}

# The slope of each row in its regression on y and `design`, divided by its
# standard error HC2, from the definitions.
naive_robust_t <- function(x, y, design = NULL, weights = rep(1, length(y))) {
  apply(x, 1, function(row) {
    root <- sqrt(weights)
    model <- cbind(y, 1, design) * root
    inverse <- solve(crossprod(model))
    residuals <- row * root - model %*% inverse %*% crossprod(model, row * root)
    leverage <- rowSums((model %*% inverse) * model)
    meat <- crossprod(model * as.vector(residuals / sqrt(1 - leverage)))
    slope <- (inverse %*% crossprod(model, row * root))[[1]]
    slope / sqrt((inverse %*% meat %*% inverse)[1, 1])
  })
}

test_that("two levels have Welch's t, its p-value and step-down", {
  data <- group_data()
  x <- data$x
  test <- function(group) {
    apply(x, 1, function(row) {
      unlist(stats::t.test(
        row[group == "ill"], row[group == "well"]
      )[c("statistic", "p.value")])
    })
  }
  expected <- test(data$two)
  score <- function(group) {
    apply(x, 1, function(row) {
      naive_score(row[group == "ill"], row[group == "well"])
    })
  }
  own <- score(data$two)
  null <- apply(drawn_by(4, 21, 60), 2, function(by) score(data$two[by]))
  for (sign in c("signed", "absolute", "negative")) {
    nearer <- function(t) {
      switch(sign, signed = t, absolute = abs(t), negative = -t)
    }
    for (k in c(3, 40)) {
      found <- ask_data(data, outcome = data$two, k = k, sign = sign)
      expect_equal(found$statistic, unname(expected[1, found$index]))
      adjusted <- naive_step_down(nearer(own), nearer(null))
      expect_equal(found$p_adjusted, adjusted[found$index])
      expect_equal(
        unname(drop(attr(found, "null"))), apply(nearer(null), 2, max)
      )
    }
    sides <- c(absolute = "two.sided", signed = "greater", negative = "less")
    p <- apply(x, 1, function(row) {
      stats::t.test(
        row[data$two == "ill"], row[data$two == "well"],
        alternative = sides[[sign]]
      )$p.value
    })
    expect_equal(found$p_value, unname(p[found$index]))
    expect_equal(found$fdr, unname(stats::p.adjust(p, "BH")[found$index]))
  }
  # The neighbours and their order are those of r.
  by_r <- ask_data(data, outcome = data$two, k = 9, statistic = "correlation")
  expect_identical(
    as.data.frame(by_r)[1:5],
    as.data.frame(ask_data(data, outcome = data$two, k = 9))[1:5]
  )
  expect_null(by_r$statistic)
  numbers <- ask_data(data, outcome = (data$two == "ill") + 0, k = 9)
  expect_identical(by_r, numbers)
  logical <- ask_data(data, outcome = data$two == "ill", k = 9)
  expect_identical(logical, ask_data(data, outcome = data$two, k = 9))
})

test_that("three levels have Welch's F and the correlation ratio", {
  data <- group_data()
  x <- data$x
  group <- data$three
  test <- function(group) {
    apply(x, 1, function(row) {
      unlist(stats::oneway.test(row ~ group)[c("statistic", "p.value")])
    })
  }
  expected <- test(group)
  ratio <- apply(x, 1, function(row) {
    sqrt(summary(stats::lm(row ~ group))$r.squared)
  })
  drawn <- drawn_by(4, 21, 60)
  null <- apply(drawn, 2, function(by) test(group[by])[1, ])
  for (k in c(4, 40)) {
    found <- ask_data(data, outcome = group, k = k, sign = "absolute")
    expect_identical(found$index, order(-ratio)[seq_len(k)])
    expect_equal(found$correlation, unname(ratio[found$index]))
    expect_equal(found$distance, 1 - found$correlation)
    expect_equal(found$statistic, unname(expected[1, found$index]))
    expect_equal(found$p_value, unname(expected[2, found$index]))
    adjusted <- naive_step_down(expected[1, ], null)
    expect_equal(found$p_adjusted, adjusted[found$index])
  }
  # The correlation ratio, with covariates and weights, too.
  age <- data$y
  weights <- rep(1:3, 7)
  designs <- list(
    list(), list(adjust = age), list(adjust = age, strata = rep(1:3, 7)),
    list(weights = list(sampling = weights), adjust = age)
  )
  for (design in designs) {
    frame <- data.frame(one = rep(1, 21))
    if (!is.null(design$adjust)) frame$age <- age
    if (!is.null(design$strata)) frame$strata <- factor(design$strata)
    weighting <- if (is.null(design$weights)) rep(1, 21) else weights
    model <- function(row) {
      both <- cbind(frame, row = row, group = group)
      less <- stats::lm(row ~ . - group - 1, both, weights = weighting)
      more <- stats::lm(row ~ . - 1, both, weights = weighting)
      c(1 - stats::deviance(more) / stats::deviance(less),
        stats::anova(less, more)$`Pr(>F)`[[2]])
    }
    wanted <- apply(x, 1, model)
    found <- do.call(ask_data, c(list(
      data, outcome = group, k = 6, sign = "absolute",
      statistic = "correlation"
    ), design))
    expect_equal(found$correlation, unname(sqrt(wanted[1, found$index])))
    expect_identical(found$index, order(-wanted[1, ])[1:6])
    if (is.null(design$weights)) {
      expect_equal(found$p_value, unname(wanted[2, found$index]))
    }
    expect_null(found$statistic)
    if (length(design) == 0) {
      null <- apply(drawn, 2, function(by) {
        apply(x, 1, function(row) {
          summary(stats::lm(row ~ group[by]))$r.squared
        })
      })
      adjusted <- naive_step_down(ratio^2, null)
      expect_equal(found$p_adjusted, adjusted[found$index])
    }
  }
  one <- nearest_to(
    x[1, , drop = FALSE], outcome = group, k = 1, sign = "absolute",
    permutations = 19, statistic = "correlation"
  )
  expect_identical(dim(one), c(1L, 8L))
  # Without permutations there are only neighbours, or p-values of one pair.
  plain <- nearest_to(x, outcome = group, k = 3, sign = "absolute")
  expect_identical(
    names(plain), c("rank", "name", "index", "distance", "correlation")
  )
})

test_that("slopes have a robust standard error in every design", {
  data <- group_data()
  x <- data$x
  strata <- rep(1:3, 7)
  indicators <- outer(strata, 2:3, `==`) + 0
  age <- random_matrix(1, 21, seed = 33)[1, ]
  weights <- rep(c(1, 2, 5), each = 7)
  drawn <- drawn_by(4, 21, 60)
  drawn_in_strata <- drawn_by(4, 21, 60, strata = strata)
  cases <- list(
    list(arguments = list(), drawn = drawn),
    list(
      arguments = list(strata = strata), design = indicators,
      drawn = drawn_in_strata
    ),
    list(arguments = list(adjust = age), design = age, drawn = drawn),
    list(
      arguments = list(adjust = age, strata = strata),
      design = cbind(age, indicators), drawn = drawn_in_strata
    ),
    list(
      arguments = list(weights = list(sampling = weights)), weights = weights,
      drawn = drawn
    ),
    list(
      arguments = list(weights = list(precision = weights), adjust = age),
      weights = weights, design = age, drawn = drawn, root = sqrt(weights)
    )
  )
  for (case in cases) {
    weights <- if (is.null(case$weights)) rep(1, 21) else case$weights
    root <- if (is.null(case$root)) rep(1, 21) else case$root
    for (y in list(data$y, (data$two == "ill") + 0)) {
      t_of <- function(y) naive_robust_t(x, y, case$design, weights)
      observed <- t_of(y)
      residuals <- if (is.null(case$arguments$adjust)) {
        y
      } else {
        stats::lm.wfit(cbind(1, case$design), y, weights)$residuals
      }
      null <- apply(case$drawn, 2, function(by) {
        t_of((residuals * root)[by] / root)
      })
      found <- do.call(ask_data, c(list(
        data, outcome = y, k = 7, sign = "absolute", statistic = "studentized"
      ), case$arguments))
      expect_equal(found$statistic, unname(observed[found$index]))
      adjusted <- naive_step_down(abs(observed), abs(null))
      expect_equal(found$p_adjusted, adjusted[found$index])
    }
  }
  # Names put weights in the order of the samples.
  colnames(x) <- paste0("s", 1:21)
  weights <- stats::setNames(as.double(1:21), colnames(x))
  ask <- function(weights) {
    set.seed(4)
    nearest_to(
      x, outcome = data$y, k = 3, weights = list(precision = weights),
      permutations = 60
    )
  }
  expect_identical(ask(weights), ask(rev(weights)))
})

test_that("units have Welch's test of their means", {
  data <- group_data()
  unit <- rep(1:9, c(1, 2, 3, 4, 2, 3, 2, 2, 2))
  means <- t(rowsum(t(data$x), unit) / as.vector(table(unit)))
  of_unit <- factor(rep(c("ill", "well"), c(4, 5)))
  found <- ask_data(data, outcome = of_unit[unit], unit = unit, k = 5)
  welch <- function(group) {
    apply(means, 1, function(row) {
      naive_score(row[group == "well"], row[group == "ill"])
    })
  }
  observed <- welch(of_unit)
  expect_equal(found$statistic, apply(means[found$index, ], 1, function(row) {
    stats::t.test(
      row[of_unit == "well"], row[of_unit == "ill"]
    )$statistic[[1]]
  }), ignore_attr = TRUE)
  expect_null(found$p_value)
  null <- apply(drawn_by(4, 9, 60), 2, function(by) welch(of_unit[by]))
  expect_equal(found$p_adjusted, naive_step_down(observed, null)[found$index])
  # Three levels, and all relabellings of few units.
  levels <- factor(rep(c("a", "b", "c"), each = 2))[c(1:6, 6, 6, 6)]
  few <- replace(unit, unit > 6, 6)
  found <- nearest_to(
    data$x, outcome = levels[unit], unit = few, k = 5, sign = "absolute",
    permutations = 100
  )
  expect_equal(attr(found, "smallest_p"), 6 / 90)
  means <- t(rowsum(t(data$x), few) / as.vector(table(few)))
  of <- levels[1:6]
  f <- apply(means, 1, function(row) stats::oneway.test(row ~ of)$statistic)
  expect_equal(found$statistic, unname(f[found$index]))
})

test_that("one family has the largest statistic of all outcomes", {
  data <- group_data()
  outcomes <- list(a = data$two, b = data$three == "c", c = data$y > 0)
  found <- ask_data(
    data, outcome = outcomes, k = 4, family = "call", sign = "absolute"
  )
  score <- function(outcome) {
    group <- as.integer(factor(outcome))
    abs(apply(data$x, 1, function(row) {
      naive_score(row[group == 2], row[group == 1])
    }))
  }
  largest <- apply(drawn_by(4, 21, 60), 2, function(by) {
    max(vapply(outcomes, function(outcome) max(score(outcome[by])), 0))
  })
  own <- unlist(lapply(outcomes, score))
  at <- found$index + 40 * (match(found$point, names(outcomes)) - 1)
  expect_equal(found$p_adjusted, vapply(own[at], function(score) {
    permutation_p(sum(largest >= score - 1e-9), 60)
  }, 0), ignore_attr = TRUE)
  # Numbers beside groups: r of all.
  mixed <- ask_data(
    data, outcome = c(outcomes, list(d = data$y)), k = 4, family = "call"
  )
  expect_null(mixed$statistic)
})

test_that("points are no matter: blocks, metafeatures, a file, a point itself", {
  parts <- random_matrix(9, 12, seed = 12)
  rownames(parts) <- letters[1:9]
  made <- metafeatures(parts)
  plain <- as.matrix(made)
  two <- rep(c("a", "b"), 6)
  three <- rep(c("a", "b", "c"), 4)
  for (outcome in list(two, three)) {
    ask <- function(x, ...) {
      set.seed(10)
      nearest_to(
        x, k = 6, outcome = outcome, permutations = 50, sign = "absolute",
        backend = "cpu", ...
      )
    }
    expected <- ask(plain)
    expect_equal(ask(made), expected)
    expect_equal(ask(t(plain), points = "columns"), expected)
    expect_equal(ask(knn_index(plain, sign = "absolute")), expected)
    expect_identical(ask(plain, num_threads = 2), expected)
    if (requireNamespace("DelayedArray", quietly = TRUE)) {
      lazy <- DelayedArray::DelayedArray(plain)
      expect_equal(ask(lazy), expected)
      expect_equal(ask(lazy, max_memory = 3000), expected)
    }
  }
  # Several parts of the permutations and of the points.
  x <- random_matrix(300, 12, seed = 13)
  options <- fsknn:::check_options(
    list(num_threads = 1, sign = "absolute", max_memory = 2^17)
  )
  search <- fsknn:::new_search(
    x, options, k = 4, outcome = rep(0:1, 6), correlation = TRUE
  )
  search[c("kind", "is_factor", "is_welch")] <- list("robust", TRUE, TRUE)
  judged <- lapply(c(2^28, 5000), function(bytes) {
    fsknn:::judge_nearest(search, drawn_by(11, 12, 70), bytes)
  })
  expect_identical(judged[[1]], judged[[2]])
  # A point is not compared with itself.
  of_point <- nearest_to(
    x, 3, k = 5, permutations = 30, statistic = "studentized"
  )
  expect_false(3L %in% of_point$index)
  expect_true(all(is.finite(of_point$statistic)))
  # Constant points have no statistic.
  flat <- rbind(1, x)
  found <- nearest_to(
    flat, outcome = two, k = 300, constant = "isolate", permutations = 20
  )
  expect_false(anyNA(found$statistic))
})

test_that("samples that lack an outcome are left out for it", {
  data <- group_data()
  outcomes <- list(
    y = replace(data$y, 3, NA), two = replace(data$two, c(1, 9), NA),
    three = replace(data$three, c(1, 9), NA), all = data$y
  )
  ask <- function(outcome, kept = 1:21, ...) {
    set.seed(3)
    suppressMessages(nearest_to(
      data$x[, kept], outcome = outcome, k = 3, sign = "absolute",
      permutations = 30, ...
    ))
  }
  for (name in names(outcomes)) {
    own <- outcomes[[name]]
    kept <- which(!is.na(own))
    expect_equal(ask(own), ask(own[kept], kept))
    age <- data$y^2
    expect_equal(ask(own, adjust = age), ask(own[kept], kept, adjust = age[kept]))
  }
  expect_message(
    found <- nearest_to(
      data$x, outcome = outcomes, k = 3, sign = "absolute", permutations = 30
    ),
    class = "fsknn_samples_left_out"
  )
  expect_identical(found$point, rep(names(outcomes), each = 3))
  expect_identical(colnames(attr(found, "null")), names(outcomes))
  expect_identical(dim(attr(found, "null")), c(30L, 4L))
  expect_length(attr(found, "smallest_p"), 4)
  for (name in names(outcomes)) {
    alone <- ask(outcomes[[name]])
    columns <- c("rank", "name", "distance", "correlation", "p_value", "fdr")
    expect_equal(
      as.data.frame(found[found$point == name, ])[columns],
      as.data.frame(alone)[columns], ignore_attr = "row.names"
    )
  }
  # Weights of 0, and outcomes whose values have names.
  weights <- rep(1:3, 7)
  weights[5] <- 0
  weighted <- list(sampling = weights)
  expect_equal(
    ask(outcomes$y, weights = weighted),
    ask(outcomes$y[-3], -3, weights = list(sampling = weights[-3]))
  )
  # Modules, too.
  clusters <- rep(1:4, each = 10)
  modules <- function(...) {
    set.seed(3)
    suppressMessages(module_summary(clusters, data$x, ..., permutations = 30))
  }
  both <- modules(outcomes)
  expect_identical(both$outcomes$outcome, rep(names(outcomes), each = 4))
  set.seed(3)
  expected <- nearest_to(
    both$eigengenes[, -3], outcome = data$y[-3], k = 4, sign = "absolute",
    permutations = 30
  )
  found <- both$outcomes[1:4, ]
  expect_equal(
    found$correlation, expected$correlation
  )
  expect_equal(found$p_adjusted, expected$p_adjusted)
  three <- modules(outcomes["three"])$outcomes
  f <- apply(both$eigengenes[, -c(1, 9)], 1, function(row) {
    stats::oneway.test(row ~ data$three[-c(1, 9)])$p.value
  })
  expect_equal(three$p_value, unname(f[three$module]))
})

test_that("messages, prints and errors say what is permuted", {
  data <- group_data()
  x <- data$x
  withr::local_options(fsknn.show_time = FALSE)
  header <- function(...) {
    lines <- utils::capture.output(print(nearest_to(
      x, k = 2, permutations = 9, backend = "cpu", ...
    )))
    writeLines(lines[seq_len(grep("rank", lines)[[1]] - 1)])
  }
  one <- factor(rep(c("a", "b"), c(1, 20)))
  unit <- rep(1:7, each = 3)
  expect_messages({
    header(outcome = data$two)
    header(outcome = data$three, sign = "absolute")
    header(outcome = data$three, sign = "absolute", adjust = data$y)
    header(outcome = data$y, statistic = "studentized")
    header(
      outcome = list(a = data$two, b = replace(data$y, 2, NA)), strata = unit
    )
    header(outcome = one)
  })
  ask <- function(...) nearest_to(x, k = 2, permutations = 9, ...)
  studentized <- function(...) ask(..., statistic = "studentized")
  expect_messages({
    nearest_to(x, outcome = data$two, k = 2, statistic = "studentized")
    ask(outcome = data$two, statistic = "t")
    studentized(outcome = data$two, metric = "spearman")
    studentized(outcome = replace(data$y, 2, NA), na = "pairwise")
    studentized(outcome = data$y, unit = unit)
    studentized(outcome = one)
    studentized(outcome = data$three, sign = "absolute", adjust = data$y)
    studentized(
      outcome = unit > 3, unit = unit,
      weights = list(sampling = rep(1:3, 7))
    )
    ask(outcome = data$three)
    ask(outcome = data$three, sign = "absolute", metric = "spearman")
    ask(outcome = data$three, sign = "absolute", na = "pairwise")
    nearest_to(
      x, outcome = data$three, k = 2, sign = "absolute", block = rep(1:2, 20)
    )
    ask(
      outcome = list(a = data$two, b = data$three), sign = "absolute",
      family = "call"
    )
    ask(
      outcome = list(a = data$two, b = replace(data$two, 2, NA)),
      family = "call"
    )
    ask(
      outcome = list(a = data$two, b = data$y), family = "call",
      statistic = "studentized"
    )
    knn_search(x, 2, statistic = "studentized")
    test_options(statistic = "t")
  })
  expect_identical(
    withr::with_seed(1, ask(
      outcome = data$two, options = test_options(statistic = "correlation")
    )),
    withr::with_seed(1, ask(outcome = data$two, statistic = "correlation"))
  )
})

test_that("the header of several outcomes counts the samples of all", {
  data <- group_data()
  found <- suppressMessages(nearest_to(
    data$x, k = 2, outcome = list(a = replace(data$y, 2:3, NA), b = data$y)
  ))
  expect_match(
    utils::capture.output(print(found))[[1]], "of 19 to 21 features"
  )
})

test_that("levels without variance give no p-value of Welch's test", {
  noise <- matrix(stats::qnorm(((1:27 * 5) %% 28) / 28), 3)
  x <- rbind(rep(c(0, 0, 0, 0, 1, 1, 1, 1, 1)), rep(0:2, c(3, 3, 3)), noise)
  ask <- function(outcome, x) {
    found <- nearest_to(
      x, outcome = outcome, k = nrow(x), sign = "absolute", permutations = 0
    )
    found$p_value[order(found$index)]
  }
  expect_equal(is.na(ask(gl(3, 3), x)), c(TRUE, TRUE, FALSE, FALSE, FALSE))
  expect_equal(
    ask(gl(2, 4), rbind(c(0, 0, 0, 0, 1, 1, 1, 1), noise[, -9])),
    c(NA, apply(noise[, -9], 1, function(row) {
      stats::t.test(row[1:4], row[5:8])$p.value
    }))
  )
})

test_that("an outcome has the same tests alone and beside others", {
  x <- group_data()$x
  two <- rep(c(FALSE, TRUE), c(10, 11))
  single <- rep(c(TRUE, FALSE), c(1, 20))
  ask <- function(outcome) {
    set.seed(1)
    suppressMessages(as.data.frame(nearest_to(
      x, outcome = outcome, k = 3, sign = "absolute", permutations = 20
    )))
  }
  both <- ask(list(two = two, single = single))
  columns <- c("index", "correlation", "p_value", "p_adjusted", "fdr")
  of_two <- both[both$point == "two", ]
  alone <- ask(two)
  expect_equal(
    of_two[c(columns, "statistic")], alone[c(columns, "statistic")],
    ignore_attr = TRUE
  )
  of_single <- both[both$point == "single", ]
  expect_equal(of_single$p_value, ask(single)$p_value)
})

test_that("skewed values of a factor's groups are told", {
  set.seed(1)
  x <- exp(1.5 * matrix(stats::rnorm(8000), 200))
  group <- factor(rep(1:2, c(6, 34)))
  expect_message(
    nearest_to(x, outcome = group, k = 2, permutations = 0),
    class = "fsknn_tails"
  )
  expect_error(
    nearest_to(x, outcome = rep(NA, 40), k = 2), "`outcome` must vary",
    class = "fsknn_argument_error"
  )
})
