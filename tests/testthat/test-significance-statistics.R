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

# The prior of variances by the moments of their logarithms. `total` is that of
# the mean that they are relative to.
naive_prior <- function(variances, freedom, total = Inf) {
  bias <- function(d) if (d == Inf) 0 else digamma(d / 2) - log(d / 2)
  spread <- function(d) if (d == Inf) 0 else trigamma(d / 2)
  logs <- log(pmax(variances, 1e-5))
  excess <- stats::var(logs) - spread(freedom) + spread(total)
  if (excess <= 0) {
    return(list(freedom = Inf, scale = mean(variances)))
  }
  half <- exp(stats::uniroot(
    function(y) log(trigamma(exp(y)) / excess), log(c(1e-4, 1e9)), tol = 1e-14
  )$root)
  list(freedom = 2 * half, scale = exp(
    mean(logs) - bias(freedom) + bias(total) + bias(2 * half)
  ))
}

naive_moderated <- function(variances, freedom, prior) {
  if (prior$freedom == Inf) {
    return(prior$scale + 0 * variances)
  }
  (prior$freedom * prior$scale + freedom * variances) /
    (prior$freedom + freedom)
}

# 1 / standard deviation of each sample over all rows: residuals of weighted
# regressions, whose variance is that of their row.
naive_root <- function(x, model) {
  spread <- rep(1, ncol(x))
  for (step in 1:5) {
    fits <- apply(x, 1, function(row) {
      fit <- stats::lm.wfit(as.matrix(model), row, 1 / spread)
      left <- fit$residuals / sqrt(spread)
      left^2 / sum(left^2)
    })
    leverage <- stats::hat(as.matrix(model) / sqrt(spread), FALSE)
    spread <- spread * rowMeans(fits) / (1 - leverage)
    spread <- spread / mean(spread)
  }
  prior <- naive_prior(spread, nrow(x))
  1 / sqrt(naive_moderated(spread, nrow(x), prior))
}

# The moderated t of each row in its regression on y and `design`, and its
# degrees of freedom. It has a variance for each of `levels`, or HC2.
naive_t <- function(x, y, levels = NULL, design = NULL, root = NULL) {
  reduced <- cbind(rep(1, length(y)), design)
  root <- if (is.null(root)) naive_root(x, reduced) else root
  model <- cbind(reduced, y) * root
  x <- x * rep(root, each = nrow(x))
  slopes <- solve(crossprod(model), t(model))[ncol(model), ]
  off <- diag(length(y)) - model %*% solve(crossprod(model), t(model))
  residuals <- x %*% off
  total <- length(y) - ncol(model)
  all <- rowSums(residuals^2) / total
  parts <- if (is.null(levels)) {
    weight <- slopes^2 / diag(off)
    square <- off %*% (weight * off)
    list(list(
      sum = drop(residuals^2 %*% weight), scale = sum(weight * diag(off)),
      freedom = sum(diag(square))^2 / sum(square^2)
    ))
  } else {
    lapply(unique(levels), function(level) {
      here <- levels == level
      freedom <- sum(diag(off)[here])
      scale <- sum(slopes[here]^2)
      list(
        sum = rowSums(residuals[, here]^2) / freedom * scale, scale = scale,
        freedom = freedom
      )
    })
  }
  variances <- lapply(parts, function(part) {
    ratios <- part$sum / part$scale / all
    prior <- naive_prior(ratios, part$freedom, total)
    moderated <- naive_moderated(ratios, part$freedom, prior)
    list(
      variance = part$scale * all * moderated,
      freedom = part$freedom + prior$freedom
    )
  })
  variance <- Reduce(`+`, lapply(variances, `[[`, "variance"))
  shares <- lapply(variances, function(part) part$variance^2 / part$freedom)
  list(
    t = drop(x %*% slopes) / sqrt(variance),
    freedom = pmin(total, variance^2 / Reduce(`+`, shares))
  )
}

# Its normal score (Wallace 1959).
naive_score <- function(...) {
  of <- naive_t(...)
  sign(of$t) * (8 * of$freedom + 1) / (8 * of$freedom + 3) *
    sqrt(of$freedom * log(1 + of$t^2 / of$freedom))
}

# Welch's F with moderated variances, and its score.
naive_f <- function(x, levels, root = naive_root(x, rep(1, ncol(x)))) {
  levels <- as.integer(levels)
  num <- max(levels)
  counts <- tabulate(levels)
  inside <- outer(levels, seq_len(num), `==`) * root^2
  weights <- colSums(inside)
  means <- (x %*% inside) / rep(weights, each = nrow(x))
  sums <- (x - means[, levels])^2 %*% inside
  total <- length(levels) - num
  all <- rowSums(sums) / total
  of_prior <- double(num)
  for (level in seq_len(num)) {
    ratios <- sums[, level] / (counts[[level]] - 1) / all
    prior <- naive_prior(ratios, counts[[level]] - 1, total)
    of_prior[[level]] <- prior$freedom
    sums[, level] <- all * naive_moderated(ratios, counts[[level]] - 1, prior)
  }
  w <- rep(weights, each = nrow(x)) / sums
  centre <- rowSums(w * means) / rowSums(w)
  apart <- rowSums(
    (1 - w / rowSums(w))^2 / rep(counts - 1 + of_prior, each = nrow(x))
  )
  f <- rowSums(w * (means - centre)^2) / (num - 1) /
    (1 + 2 * (num - 2) / (num^2 - 1) * apart)
  freedom <- pmin(total, (num^2 - 1) / 3 / apart)
  list(
    f = f, p = stats::pf(f, num - 1, freedom, lower.tail = FALSE),
    score = (freedom + (num - 1) / 2 - 1) * log(1 + (num - 1) * f / freedom)
  )
}

ask_data <- function(data, ...) {
  set.seed(4)
  nearest_to(data$x, permutations = 60, backend = "cpu", ...)
}

test_that("two levels have a moderated t, its p-value and step-down", {
  data <- group_data()
  x <- data$x
  of <- function(by, f) f(x, (data$two == "ill")[by] + 0, data$two[by])
  expected <- of(1:21, naive_t)
  own <- of(1:21, naive_score)
  null <- apply(drawn_by(4, 21, 60), 2, of, naive_score)
  for (sign in c("signed", "absolute", "negative")) {
    nearer <- function(t) {
      switch(sign, signed = t, absolute = abs(t), negative = -t)
    }
    for (k in c(3, 40)) {
      found <- ask_data(data, outcome = data$two, k = k, sign = sign)
      expect_equal(found$statistic, unname(expected$t[found$index]))
      adjusted <- naive_step_down(nearer(own), nearer(null))
      expect_equal(found$p_adjusted, adjusted[found$index])
      expect_equal(
        unname(drop(attr(found, "null"))), apply(nearer(null), 2, max)
      )
    }
    p <- stats::pt(-nearer(expected$t), expected$freedom) *
      if (sign == "absolute") 2 else 1
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

test_that("three levels have a moderated F and the correlation ratio", {
  data <- group_data()
  x <- data$x
  group <- data$three
  expected <- naive_f(x, group)
  ratio <- apply(x, 1, function(row) {
    sqrt(summary(stats::lm(row ~ group))$r.squared)
  })
  drawn <- drawn_by(4, 21, 60)
  null <- apply(drawn, 2, function(by) naive_f(x, group[by])$score)
  for (k in c(4, 40)) {
    found <- ask_data(data, outcome = group, k = k, sign = "absolute")
    expect_identical(found$index, order(-ratio)[seq_len(k)])
    expect_equal(found$correlation, unname(ratio[found$index]))
    expect_equal(found$distance, 1 - found$correlation)
    expect_equal(found$statistic, unname(expected$f[found$index]))
    expect_equal(found$p_value, unname(expected$p[found$index]))
    adjusted <- naive_step_down(expected$score, null)
    expect_equal(found$p_adjusted, adjusted[found$index])
    expect_equal(unname(drop(attr(found, "null"))), apply(null, 2, max))
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
    given <- if (!is.null(case$weights)) sqrt(weights)
    root <- if (is.null(case$root)) rep(1, 21) else case$root
    for (y in list(data$y, data$two)) {
      num <- if (is.factor(y)) (y == "ill") + 0 else y
      # With weights, groups have HC2, too.
      levels_by <- function(by) {
        if (is.factor(y) && is.null(case$weights)) num[by]
      }
      observed <- naive_score(x, num, levels_by(1:21), case$design, given)
      residuals <- if (is.null(case$arguments$adjust)) {
        num
      } else {
        stats::lm.wfit(cbind(1, case$design), num, weights)$residuals
      }
      null <- apply(case$drawn, 2, function(by) {
        naive_score(
          x, (residuals * root)[by] / root, levels_by(by), case$design, given
        )
      })
      found <- do.call(ask_data, c(list(
        data, outcome = y, k = 7, sign = "absolute", statistic = "studentized"
      ), case$arguments))
      own <- naive_t(x, num, levels_by(1:21), case$design, given)
      expect_equal(found$statistic, unname(own$t[found$index]))
      if (is.null(given)) {
        p <- 2 * stats::pt(-abs(own$t), own$freedom)
        expect_equal(found$p_value, unname(p[found$index]))
      }
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

test_that("units have the moderated t of their means", {
  data <- group_data()
  unit <- rep(1:9, c(1, 2, 3, 4, 2, 3, 2, 2, 2))
  means <- t(rowsum(t(data$x), unit) / as.vector(table(unit)))
  of_unit <- factor(rep(c("ill", "well"), c(4, 5)))
  found <- ask_data(data, outcome = of_unit[unit], unit = unit, k = 5)
  of <- function(by, f) f(means, (of_unit == "well")[by] + 0, of_unit[by])
  observed <- of(1:9, naive_score)
  expect_equal(found$statistic, unname(of(1:9, naive_t)$t[found$index]))
  expect_null(found$p_value)
  null <- apply(drawn_by(4, 9, 60), 2, of, naive_score)
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
  f <- naive_f(means, of)$f
  expect_equal(found$statistic, unname(f[found$index]))
})

test_that("one family has the largest statistic of all outcomes", {
  data <- group_data()
  outcomes <- list(a = data$two, b = data$three == "c", c = data$y > 0)
  found <- ask_data(
    data, outcome = outcomes, k = 4, family = "call", sign = "absolute"
  )
  score <- function(outcome) {
    group <- as.integer(factor(outcome)) - 1
    abs(naive_score(data$x, group, group))
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
  search[c("kind", "is_factor", "has_p")] <- list("robust", TRUE, TRUE)
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
  expect_warning(found <- nearest_to(
    flat, outcome = two, k = 300, constant = "isolate", permutations = 20
  ), NA)
  expect_false(anyNA(found$statistic))
})

test_that("the prior is limma's", {
  set.seed(1)
  for (freedom in c(3, 7.5, 40)) {
    for (of_prior in c(0.5, 4, 30, Inf)) {
      scale <- if (of_prior == Inf) 1 else of_prior / rchisq(300, of_prior)
      variances <- scale * rchisq(300, freedom) / freedom
      moments <- fsknn:::moments_of(variances)
      own <- lapply(fsknn:::variance_prior(moments, freedom, Inf), drop)
      expect_equal(own, naive_prior(variances, freedom), tolerance = 1e-8)
      skip_if_not_installed("limma")
      expect_equal(
        own, stats::setNames(
          rev(limma::fitFDist(variances, freedom)), c("freedom", "scale")
        ),
        tolerance = 1e-8
      )
    }
  }
})

test_that("some of many points give priors and weights", {
  x <- random_matrix(2100, 10, seed = 3)
  ask <- function(x) {
    found <- nearest_to(
      x, outcome = rep(1:2, c(4, 6)) == 1, k = nrow(x), sign = "absolute",
      permutations = 0
    )
    found$statistic[order(found$index)]
  }
  even <- seq(2, 2100, 2)
  expect_equal(ask(x)[even], ask(x[even, ]))
})

test_that("one point has Welch's t, as it has no prior", {
  data <- group_data()
  row <- data$x[3, , drop = FALSE]
  found <- nearest_to(row, outcome = data$two, k = 1, permutations = 5)
  expect_equal(found$statistic, stats::t.test(
    row[data$two == "ill"], row[data$two == "well"]
  )$statistic[[1]])
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

test_that("a level without variance has that of the prior", {
  data <- group_data()
  data$x[1, data$two == "ill"] <- 2
  own <- naive_t(data$x, (data$two == "ill") + 0, data$two)$t
  found <- ask_data(data, outcome = data$two, k = 40, sign = "absolute")
  expect_equal(found$statistic, unname(own[found$index]))
  expect_lt(abs(own[[1]]), 10)
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
  p <- naive_f(both$eigengenes[, -c(1, 9)], data$three[-c(1, 9)], rep(1, 19))$p
  expect_equal(three$p_value, unname(p[three$module]))
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

test_that("a point without variance in any level has no p-value", {
  noise <- matrix(stats::qnorm(((1:27 * 5) %% 28) / 28), 3)
  x <- rbind(rep(c(0, 0, 0, 0, 1, 1, 1, 1, 1)), rep(0:2, c(3, 3, 3)), noise)
  ask <- function(x) {
    found <- nearest_to(
      x, outcome = gl(3, 3), k = nrow(x), sign = "absolute", permutations = 0
    )
    found$p_value[order(found$index)]
  }
  expect_identical(ask(x[2, , drop = FALSE]), NA_real_)
  expect_equal(ask(x[-2, ]), naive_f(x[-2, ], gl(3, 3), rep(1, 9))$p)
  # A prior is relative to the variance of the point, which is 0.
  expect_identical(is.na(ask(x)), c(FALSE, TRUE, FALSE, FALSE, FALSE))
  two <- c(0, 0, 0, 0, 1, 1, 1, 1)
  of_two <- function(row) {
    nearest_to(rbind(row), outcome = two == 1, k = 1, permutations = 0)$p_value
  }
  expect_identical(of_two(two), NA_real_)
  expect_equal(of_two(noise[1, -9]), stats::t.test(
    noise[1, 5:8], noise[1, 1:4], alternative = "greater"
  )$p.value)
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
