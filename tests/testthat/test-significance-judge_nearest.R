# Significance of nearest points compared with loops over points and
# permutations.

# Computes p_adjusted by its definition. For each rank, it takes the best of all
# points not listed before, in each permutation, and then the cumulative
# maximum.
naive_adjusted <- function(x, outcome, k, drawn, metric = "pearson",
                           sign = "signed", left_out = integer()) {
  distance_of <- function(values) {
    found <- drop(naive_distance(
      matrix(values, 1), x, metric = metric, sign = sign
    ))
    replace(found, left_out, Inf)
  }
  observed <- distance_of(outcome)
  order <- order(observed)
  counts <- numeric(k)
  for (b in seq_len(ncol(drawn))) {
    permuted <- distance_of(outcome[drawn[, b]])
    for (rank in seq_len(k)) {
      rest <- setdiff(seq_len(nrow(x)), utils::head(order, rank - 1))
      limit <- observed[order[[rank]]]
      counts[[rank]] <- counts[[rank]] +
        (min(permuted[rest]) <= limit + 1e-12 * max(1, limit))
    }
  }
  p <- (counts + 1) / (ncol(drawn) + 1)
  for (rank in seq_len(k)[-1]) {
    p[[rank]] <- max(p[[rank]], p[[rank - 1]])
  }
  list(index = order[seq_len(k)], p = p)
}

test_that("p_adjusted is Westfall and Young's, by two loops", {
  data <- followed()
  drawn <- drawn_by(1, 11, 59)
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(data$x, metric)
    outcome <- values_for(matrix(data$outcome, 1), metric)[1, ]
    set.seed(1)
    found <- nearest_to(
      x, k = 8, metric = metric, sign = sign, outcome = outcome,
      permutations = 59, backend = backend
    )
    known <- naive_adjusted(x, outcome, 8, drawn, metric, sign)
    label <- paste(metric, sign, backend)
    expect_equal(found$p_adjusted, known$p, label = label)
    plain <- nearest_to(
      x, k = 8, metric = metric, sign = sign, outcome = outcome,
      backend = backend
    )
    expect_identical(found[names(plain)], plain, ignore_attr = "null")
    expect_length(attr(found, "null"), 59)
  })
})

test_that("of a row of x the others count, and it need not be given", {
  data <- followed()
  x <- rbind(data$x, outcome = data$outcome)
  for (backend in backends_here()) {
    set.seed(2)
    found <- nearest_to(x, "outcome", 60, permutations = 30, backend = backend)
    set.seed(2)
    apart <- nearest_to(
      data$x, k = 60, outcome = data$outcome, permutations = 30,
      backend = backend
    )
    expect_identical(found, apart)
    expect_identical(max(found$rank), 60L)
  }
})

test_that("several points are each as if they were alone", {
  data <- followed()
  x <- data$x
  for (backend in backends_here()) {
    for (permutations in list(NULL, 0, 25)) {
      ask <- function(point) {
        set.seed(3)
        nearest_to(
          x, point, 7, sign = "absolute", permutations = permutations,
          backend = backend
        )
      }
      several <- ask(c("g4", "g30", "g2"))
      expect_identical(unique(several$point), c("g4", "g30", "g2"))
      for (name in unique(several$point)) {
        own <- several[several$point == name, -1]
        rownames(own) <- NULL
        expect_identical(
          own, ask(name), ignore_attr = c("null", "smallest_p")
        )
      }
      expect_identical(ask(c(4, 30, 2)), several)
    }
  }
  unnamed <- nearest_to(unname(x), c(4, 30), 2)
  expect_identical(unnamed$point, c("4", "4", "30", "30"))
  expect_identical(
    dimnames(attr(nearest_to(x, 1:3, 2, permutations = 5), "null")),
    list(NULL, c("g1", "g2", "g3"))
  )
})

test_that("fdr is qvalue's where no point is taken for a true one", {
  skip_if_not_installed("qvalue")
  data <- followed()
  found <- nearest_to(
    data$x, k = nrow(data$x), outcome = data$outcome, permutations = 0,
    backend = "cpu"
  )
  expect_equal(
    found$fdr, qvalue::qvalue(found$p_value, pi0 = 1)$qvalues,
    tolerance = 1e-12
  )
})

test_that("p_value is cor.test()'s or exact, fdr that of all points", {
  data <- followed()
  num <- nrow(data$x)
  for (backend in backends_here()) {
    for (method in c("pearson", "spearman")) {
      for (sign in c("signed", "absolute", "negative")) {
        found <- nearest_to(
          data$x, k = num, metric = method, sign = sign,
          outcome = data$outcome, permutations = 0, backend = backend
        )
        alternative <- alternative_of_sign(sign)
        known <- apply(data$x, 1, function(row) {
          if (method == "spearman") {
            r <- stats::cor(row, data$outcome, method = method)
            return(naive_spearman_p(r, 11, alternative))
          }
          stats::cor.test(
            row, data$outcome, alternative = alternative
          )$p.value
        })
        expect_equal(
          found$p_value, unname(known[found$index]), tolerance = 1e-12
        )
        expect_equal(
          found$fdr, unname(stats::p.adjust(known, "BH")[found$index]),
          tolerance = 1e-12
        )
        few <- nearest_to(
          data$x, k = 4, metric = method, sign = sign,
          outcome = data$outcome, permutations = 0, backend = backend
        )
        expect_identical(few, found[1:4, ])
        expect_false("p_adjusted" %in% names(found))
      }
    }
  }
})

test_that("Spearman's p-value knows ties of either", {
  x <- round(followed()$x * 2)
  outcome <- rep(c(0, 1, 2), c(4, 4, 3))
  for (values in list(outcome, followed()$outcome)) {
    found <- nearest_to(
      x, k = 20, metric = "spearman", outcome = values, permutations = 0
    )
    known <- vapply(found$index, function(at) {
      suppressWarnings(stats::cor.test(
        x[at, ], values, method = "spearman", alternative = "greater"
      ))$p.value
    }, 0)
    expect_equal(found$p_value, known, tolerance = 1e-12)
  }
})

test_that("bicor's p-value is WGCNA's", {
  skip_if_not_installed("WGCNA")
  data <- followed()
  found <- nearest_to(
    data$x, k = 10, metric = "bicor", sign = "absolute",
    outcome = data$outcome, permutations = 0
  )
  known <- WGCNA::bicorAndPvalue(data$outcome, t(data$x))$p[1, ]
  expect_equal(found$p_value, unname(known[found$index]), tolerance = 1e-10)
})

test_that("all arrangements of two groups give multtest's maxT", {
  skip_if_not_installed("multtest")
  data <- followed(num_samples = 8)
  groups <- rep(0:1, each = 4)
  subsets <- utils::combn(8, 4)
  # The observed arrangement is counted by (b + 1) / (B + 1).
  drawn <- apply(subsets[, -1], 2, function(first) {
    order <- integer(8)
    order[c(first, setdiff(1:8, first))] <- 1:8
    order
  })
  expect_identical(groups[drawn[, 69]], rep(1:0, each = 4))
  for (sign in c("signed", "absolute", "negative")) {
    side <- c(signed = "upper", absolute = "abs", negative = "lower")[[sign]]
    known <- utils::capture.output(table <- multtest::mt.maxT(
      data$x, groups, test = "t.equalvar", side = side, B = 0
    ))
    options <- fsknn:::check_options(list(sign = sign, num_threads = 1))
    search <- fsknn:::new_search(
      data$x, options, k = 60, outcome = groups, correlation = TRUE
    )
    judged <- fsknn:::judge_nearest(search, drawn)
    expect_identical(drop(judged$found$index), as.integer(table$index))
    expect_equal(drop(judged$columns$p_adjusted), table$adjp)
  }
})

test_that("few arrangements tie with the one observed, which counts as such", {
  # Two groups have ten arrangements up to the sign, so p can't be below 0.1.
  x <- random_matrix(30, 5, seed = 8) * 1e3
  x[1, ] <- c(5, 5.1, 5.2, 1, 1.3) / 3
  outcome <- c(1, 1, 1, 0, 0) / 3
  set.seed(4)
  found <- nearest_to(
    x, k = 3, sign = "signed", outcome = outcome, permutations = 2000
  )
  expect_gt(found$p_adjusted[[1]], 0.07)
  # Sums in another order are equal in theory, but not in double.
  x <- rbind(x[1, ], x[1, c(2, 1, 3, 5, 4)], x[1, c(3, 2, 1, 4, 5)])
  set.seed(4)
  found <- nearest_to(x, k = 3, outcome = outcome * 7, permutations = 2000)
  expect_lt(diff(range(found$p_adjusted)), 1e-12)
  expect_gt(found$p_adjusted[[1]], 0.07)
})

test_that("samples without weight leave something to be permuted", {
  x <- matrix(uniform_numbers(200, 3), 20)
  weights <- rep(0:1, 5)
  expect_wrong(
    nearest_to(
      x, outcome = 1:10, k = 3, permutations = 9, weights = weights,
      strata = rep(1:5, each = 2), backend = "cpu"
    ),
    "Two samples with a weight above 0"
  )
  found <- nearest_to(
    x, outcome = 1:10, k = 3, permutations = 9, weights = weights,
    strata = rep(c(1, 1, 2, 2, 1), 2), backend = "cpu"
  )
  expect_identical(nrow(found), 3L)
})

test_that("strata are kept, and may be a column of sample data", {
  data <- followed()
  strata <- c("a", "b", "b", "a", "a", "b", "c", "b", "a", "b", "a")
  set.seed(5)
  found <- nearest_to(
    data$x, k = 5, outcome = data$outcome, permutations = 40, strata = strata
  )
  known <- naive_adjusted(data$x, data$outcome, 5, drawn_by(5, 11, 40, strata))
  expect_equal(found$p_adjusted, known$p)
  skip_if_not_installed("SummarizedExperiment")
  set <- SummarizedExperiment::SummarizedExperiment(
    data$x, colData = data.frame(batch = strata, years = data$outcome)
  )
  set.seed(5)
  expect_identical(
    nearest_to(
      set, k = 5, outcome = "years", permutations = 40, strata = "batch"
    ),
    found
  )
})

test_that("samples of weight 0 are neither permuted nor judged by", {
  data <- followed()
  weights <- c(2, 1, 0, 3, 1, 1, 0, 2, 1, 1, 1)
  strata <- rep(1:2, c(5, 6))
  kept <- weights > 0
  for (permutations in c(0, 30)) {
    ask <- function(x, outcome, weights, strata) {
      set.seed(6)
      nearest_to(
        x, k = 5, outcome = outcome, permutations = permutations,
        strata = if (permutations > 0) strata,
        weights = list(precision = weights)
      )
    }
    expect_identical(
      ask(data$x, data$outcome, weights, strata),
      ask(data$x[, kept], data$outcome[kept], weights[kept], strata[kept])
    )
  }
  found <- nearest_to(
    data$x, k = 3, outcome = data$outcome, permutations = 0,
    weights = list(precision = weights), sign = "absolute"
  )
  known <- vapply(found$index, function(at) {
    fit <- stats::lm(data$outcome ~ data$x[at, ], weights = weights)
    summary(fit)$coefficients[2, 4]
  }, 0)
  expect_equal(found$p_value, known, tolerance = 1e-10)
})

test_that("with missing values each pair has its own degrees of freedom", {
  data <- followed(num_samples = 14)
  holes <- data$x
  set.seed(7)
  holes[sample(length(holes), 150)] <- NA
  outcome <- replace(data$outcome, 3, NA)
  found <- nearest_to(
    holes, k = 10, outcome = outcome, permutations = 0, na = "pairwise",
    sign = "absolute"
  )
  known <- apply(holes, 1, function(row) stats::cor.test(row, outcome)$p.value)
  expect_equal(found$p_value, unname(known[found$index]), tolerance = 1e-10)
  expect_equal(
    found$fdr, unname(stats::p.adjust(known, "BH")[found$index]),
    tolerance = 1e-10
  )
  set.seed(8)
  found <- nearest_to(
    holes, k = 10, outcome = outcome, permutations = 20, na = "pairwise"
  )
  drawn <- drawn_by(8, 14, 20)
  best <- apply(drawn, 2, function(by) {
    1 - max(stats::cor(t(holes), outcome[by], use = "pairwise"))
  })
  expect_equal(drop(attr(found, "null")), best, tolerance = 1e-10)
  # With "mean", the sample is left out before means are computed.
  filled <- t(apply(holes[, -3], 1, function(row) {
    replace(row, is.na(row), mean(row, na.rm = TRUE))
  }))
  by_mean <- function(x, outcome, na) {
    set.seed(9)
    suppressMessages(
      nearest_to(x, k = 5, outcome = outcome, permutations = 20, na = na)
    )
  }
  expect_equal(
    by_mean(holes, outcome, "mean"), by_mean(filled, outcome[-3], "error")
  )
})

# Returns the p-value of each row with y over the samples that both have.
pairwise_p <- function(x, y, alternative) {
  apply(x, 1, function(row) {
    stats::cor.test(row, y, alternative = alternative)$p.value
  })
}

test_that("with missing values p_adjusted is the step-down of p-values", {
  data <- followed(num_samples = 16)
  x <- data$x
  withr::with_seed(7, {
    x[sample(length(x), 200)] <- NA
    x[31:60, ][sample(480, 200)] <- NA
  })
  outcome <- replace(data$outcome, 3, NA)
  drawn <- drawn_by(8, 16, 40)
  for (backend in backends_here()) {
    for (sign in c("signed", "absolute", "negative")) {
      alternative <- alternative_of_sign(sign)
      set.seed(8)
      found <- nearest_to(
        x, k = 12, outcome = outcome, permutations = 40, na = "pairwise",
        min_pairs = 4, sign = sign, backend = backend
      )
      p <- pairwise_p(x, outcome, alternative)
      null <- apply(drawn, 2, function(by) {
        pairs <- colSums(!is.na(t(x)) & !is.na(outcome[by]))
        replace(pairwise_p(x, outcome[by], alternative), pairs < 4, 1)
      })
      order <- order(p)
      steps <- vapply(seq_along(order), function(at) {
        rest <- null[order[at:60], , drop = FALSE]
        permutation_p(sum(apply(rest, 2, min) <= p[order[[at]]] + 1e-12), 40)
      }, 0)
      expect_equal(
        found$p_adjusted, cummax(steps)[match(found$index, order)]
      )
    }
  }
})

test_that("with missing values Spearman's p-values are those of ranks", {
  withr::local_seed(3)
  x <- matrix(stats::rnorm(40 * 10), 40)
  outcome <- stats::rnorm(10)
  x[1, ] <- outcome
  x[2, ] <- round(x[2, ])
  # One missing value takes the p-values of no other point.
  x[3, ] <- replace(outcome, 4, NA)
  ask <- function(...) {
    nearest_to(
      x, outcome = outcome, k = 40, metric = "spearman", na = "pairwise",
      backend = "cpu", ...
    )
  }
  found <- ask(permutations = 19)
  p <- found$p_value[match(1:40, found$index)]
  r <- found$correlation[match(1:40, found$index)]
  expect_equal(p[[1]], 1 / factorial(10))
  expect_equal(p[c(1, 4:40)], naive_spearman_p(r[c(1, 4:40)], 10, "greater"))
  expect_identical(p[[2]], r_to_p(r[[2]], 8, "greater"))
  # The ranks of the outcome have a gap, so r is somewhat below 1.
  expect_lt(r[[3]], 1)
  expect_equal(p[[3]], 9 / factorial(9))
  expect_lte(max(found$p_adjusted[found$index %in% c(1, 3)]), 0.05)
  # Equal outcomes are ties of all pairs.
  outcome[[1]] <- outcome[[2]]
  found <- ask(permutations = 0)
  expect_identical(
    found$p_value[found$index > 3],
    r_to_p(found$correlation, 8, "greater")[found$index > 3]
  )
})

test_that("points with few samples don't hide one with many", {
  withr::local_seed(9)
  x <- matrix(stats::rnorm(200 * 40), 200)
  outcome <- stats::rnorm(40)
  x[1, ] <- outcome + 0.5 * x[1, ]
  for (row in 2:200) {
    x[row, ] <- replace(NA * x[row, ], sample(40, 5), stats::rnorm(5))
  }
  ask <- function(...) {
    nearest_to(x, permutations = 99, na = "pairwise", backend = "cpu", ...)
  }
  found <- ask(outcome = outcome, k = 199)
  expect_lte(found$p_adjusted[found$index == 1], 0.02)
  # A point is not compared with itself.
  of_point <- ask(point = 1, k = 5)
  expect_false(1L %in% of_point$index)
  expect_false(anyNA(of_point$p_adjusted))
})

test_that("where points are is no matter: metafeatures, a file, a container", {
  parts <- random_matrix(9, 10, seed = 12)
  rownames(parts) <- letters[1:9]
  outcome <- parts[2, ] - parts[5, ] + drop(random_matrix(1, 10, 13)) / 4
  made <- metafeatures(parts)
  plain <- as.matrix(made)
  for (backend in backends_here()) {
    ask <- function(x, ...) {
      set.seed(10)
      nearest_to(
        x, k = 6, outcome = outcome, permutations = 50, backend = backend, ...
      )
    }
    expected <- ask(plain)
    expect_identical(expected$name[[1]], "b - e")
    expect_identical(ask(made), expected)
    expect_identical(ask(t(plain), points = "columns"), expected)
    if (requireNamespace("DelayedArray", quietly = TRUE)) {
      lazy <- DelayedArray::DelayedArray(plain)
      expect_identical(ask(lazy), expected)
      expect_identical(ask(lazy, max_memory = 3000), expected)
    }
  }
})

test_that("threads and parts of the work change nothing", {
  data <- followed(400)
  ask <- function(...) {
    set.seed(11)
    nearest_to(data$x, c(1, 9), 4, permutations = 70, ...)
  }
  expected <- ask()
  expect_identical(ask(num_threads = 2), expected)
  options <- fsknn:::check_options(list(num_threads = 1))
  search <- fsknn:::new_search(
    data$x, options, k = 4, point = c(1, 9), correlation = TRUE
  )
  judged <- lapply(c(2^28, 2000), function(bytes) {
    fsknn:::judge_nearest(search, drawn_by(11, 11, 70), bytes)
  })
  expect_identical(judged[[1]], judged[[2]])
  expect_identical(
    as.vector(t(judged[[2]]$columns$p_adjusted)), expected$p_adjusted
  )
})

test_that("set.seed() repeats, and more neighbours change no p-value", {
  data <- followed()
  ask <- function(k) {
    set.seed(12)
    nearest_to(data$x, k = k, outcome = data$outcome, permutations = 30)
  }
  expect_identical(ask(4), ask(4))
  expect_equal(ask(20)[1:4, ], ask(4), ignore_attr = "null")
  expect_identical(attr(ask(20), "null"), attr(ask(4), "null"))
})

test_that("wrong permutations are errors that say what can be done", {
  x <- followed()$x
  outcome <- followed()$outcome
  expect_messages({
    nearest_to(x, 1, 3, permutations = -1)
    nearest_to(x, 1, 3, permutations = 0, metric = "euclidean")
    nearest_to(x, 1, 3, strata = rep(1:2, 6))
    nearest_to(x, 1, 3, permutations = 0, strata = rep(1:2, 6))
    nearest_to(x, 1, 3, permutations = 10, strata = rep(1:2, 6))
    nearest_to(x, 3, outcome = outcome)
    nearest_to(x, "g1", outcome = outcome)
  })
})

test_that("strata that hold one value each are an error", {
  x <- random_matrix(20, 12)
  strata <- rep(1:4, each = 3)
  ask <- function(outcome) {
    nearest_to(x, outcome = outcome, k = 3, permutations = 9, strata = strata)
  }
  nested <- rep(c(0, 1, 0, 1), each = 3)
  expect_messages({
    ask(nested)
    ask(data.frame(years = sin(1:12), plate = nested))
    nearest_to(rbind(nested, x), 1, k = 3, permutations = 9, strata = strata)
  })
  # Rounding and missing values are no variation.
  rounded <- nested / 3 * (1 + rep(c(0, 1, -1), 4) * 2^-52)
  expect_wrong(ask(rounded), "must vary within")
  holes <- replace(x, 5, NA)
  for (na in c("mean", "pairwise")) {
    expect_wrong(
      nearest_to(
        holes, outcome = replace(nested, c(2, 7:9), NA), k = 3, na = na,
        permutations = 9, strata = strata
      ),
      "must vary within"
    )
  }
  # An outcome that varies within one stratum can change.
  expect_identical(nrow(ask(replace(nested, 1, 1))), 3L)
})
