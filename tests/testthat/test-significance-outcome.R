outcome_data <- function(num_samples = 40) {
  x <- random_matrix(25, num_samples, seed = 81)
  rownames(x) <- paste0("g", 1:25)
  colnames(x) <- paste0("s", seq_len(num_samples))
  x
}

censored <- function(hazard, seed = 82) {
  set.seed(seed)
  num <- length(hazard)
  time <- stats::rexp(num, exp(hazard))
  end <- stats::rexp(num, 0.5)
  survival::Surv(pmin(time, end), time <= end)
}

test_that("an outcome may be numbers, logical values or two levels", {
  x <- outcome_data()
  numbers <- drop(random_matrix(1, 40, seed = 83))
  high <- numbers > 0
  ask <- function(outcome) nearest_to(x, k = 5, outcome = outcome)
  as_row <- nearest_to(rbind(x, y = numbers), "y", 5)
  expect_identical(ask(numbers), as_row)
  expect_identical(ask(stats::setNames(numbers, colnames(x))), as_row)
  wanted <- ask(high + 0)
  expect_identical(ask(high), wanted)
  expect_identical(ask(factor(high)), wanted)
  expect_identical(
    ask(factor(ifelse(high, "yes", "no"), c("none", "no", "yes"))), wanted
  )
})

test_that("several outcomes are a list or a data frame, named", {
  x <- outcome_data()
  outcomes <- list(
    age = drop(random_matrix(1, 40, seed = 84)), sex = rep(c(TRUE, FALSE), 20)
  )
  ask <- function(outcome) {
    set.seed(1)
    nearest_to(x, k = 4, outcome = outcome, permutations = 19)
  }
  found <- ask(outcomes)
  expect_identical(found$point, rep(c("age", "sex"), each = 4))
  for (name in names(outcomes)) {
    own <- found[found$point == name, -1]
    rownames(own) <- NULL
    # Permutations of the second are drawn later.
    alone <- ask(outcomes[[name]])
    columns <- setdiff(names(alone), if (name == "sex") "p_adjusted")
    expect_identical(
      as.data.frame(own)[columns], as.data.frame(alone)[columns],
      ignore_attr = TRUE
    )
  }
  expect_identical(ask(as.data.frame(outcomes)), found)
  expect_identical(ask(outcomes["age"])$point, rep("age", 4))
  skip_if_not_installed("SummarizedExperiment")
  set <- SummarizedExperiment::SummarizedExperiment(
    x, colData = S4Vectors::DataFrame(outcomes, row.names = colnames(x))
  )
  set.seed(1)
  expect_identical(
    nearest_to(set, k = 4, outcome = c("age", "sex"), permutations = 19), found
  )
  expect_identical(ask(SummarizedExperiment::colData(set)), found)
})

test_that("outcomes and several points go with blocks, but are not judged", {
  x <- outcome_data()
  block <- rep(c("u", "v", "w", "u", "v"), 5)
  outcome <- drop(random_matrix(1, 40, seed = 85))
  found <- nearest_to(x, k = 3, outcome = outcome, block = block)
  for (name in c("u", "v", "w")) {
    own <- nearest_to(x[block == name, ], k = 3, outcome = outcome)
    expect_identical(found$name[found$block == name], own$name)
    expect_identical(found$distance[found$block == name], own$distance)
  }
  several <- nearest_to(x, c(4, 5), 2, block = block, between = TRUE)
  expect_identical(
    as.character(several$block), rep(c("v", "w", "u", "w"), each = 2)
  )
  expect_identical(several$rank, rep(1:2, 4))
  for (name in c("g4", "g5")) {
    own <- several[several$point == name, -1]
    rownames(own) <- NULL
    expect_identical(own, nearest_to(x, name, 2, block = block, between = TRUE))
  }
  expect_wrong(nearest_to(x, 1, 2, block = block, permutations = 10))
})

test_that("survival's correlation is nearly Cox's score test", {
  skip_if_not_installed("survival")
  x <- outcome_data(300)
  times <- censored(x[1, ] / 2)
  found <- nearest_to(
    x, k = 25, outcome = times, sign = "absolute", permutations = 0
  )
  score <- vapply(found$index, function(at) {
    fit <- survival::coxph(times ~ x[at, ])
    c(summary(fit)$sctest[["pvalue"]], stats::coef(fit)[[1]])
  }, c(0, 0))
  expect_identical(found$name[[1]], "g1")
  # Higher values go with more events.
  expect_identical(sign(found$correlation), sign(score[2, ]))
  expect_equal(log(found$p_value), log(score[1, ]), tolerance = 0.1)
  expect_lt(max(abs(found$p_value - score[1, ])), 0.05)
  # Entry times are also used.
  begun <- survival::Surv(
    times[, "time"] / 3, times[, "time"], times[, "status"]
  )
  residuals <- stats::residuals(survival::coxph(begun ~ 1))
  expect_identical(
    nearest_to(x, k = 3, outcome = begun),
    nearest_to(x, k = 3, outcome = as.double(residuals))
  )
})

test_that("survival's null model takes the samples that count", {
  skip_if_not_installed("survival")
  x <- outcome_data()
  times <- censored(x[1, ])
  kept <- rep(c(TRUE, TRUE, FALSE, TRUE), 10)
  weights <- kept * rep(c(1, 2), each = 20)
  expect_identical(
    nearest_to(x, k = 3, outcome = times, weights = weights),
    nearest_to(x[, kept], k = 3, outcome = times[kept], weights = weights[kept])
  )
  gap <- times
  gap[4, 1] <- NA
  known <- as.double(stats::residuals(
    survival::coxph(times[-4] ~ 1), type = "martingale"
  ))
  expect_identical(
    nearest_to(x, k = 3, outcome = gap, na = "mean"),
    nearest_to(x, k = 3, outcome = append(known, NA, after = 3), na = "mean")
  )
})

test_that("wrong outcomes are errors that say what can be done", {
  x <- outcome_data(6)
  y <- c(3, 1, 2, 5, 4, 9)
  expect_messages({
    nearest_to(x, k = 3, outcome = "grade")
    nearest_to(x, k = 3, outcome = y[-1])
    nearest_to(x, k = 3, outcome = replace(y, 2:6, NA))
    nearest_to(knn_index(x), k = 3, outcome = replace(y, 2:3, NA))
    nearest_to(x, k = 3, outcome = replace(y, 2, Inf))
    nearest_to(x, k = 3, outcome = rep(1, 6))
    nearest_to(x, k = 3, outcome = y > 100)
    nearest_to(x, k = 3, outcome = letters[1:6])
    nearest_to(x, k = 3, outcome = factor(letters[1:6]))
    nearest_to(x, k = 3, outcome = ordered(c(1, 2, 3, 1, 2, 3)))
    nearest_to(x, k = 3, outcome = factor(rep("a", 6)))
    nearest_to(x, k = 3, outcome = as.difftime(y, units = "days"))
    nearest_to(x, k = 3, outcome = cbind(y, y))
    nearest_to(x, k = 3, outcome = list(y, y))
    nearest_to(x, k = 3, outcome = list(years = y, grade = y[1:2]))
    nearest_to(t(x), k = 3, points = "columns", outcome = y[1:2])
    nearest_to(x, k = 26, outcome = y)
    nearest_to(x, k = 3, outcome = y * 0, metric = "cosine")
    nearest_to(
      x, k = 3, outcome = list(age = y, none = y * 0), metric = "cosine",
      constant = "isolate"
    )
    nearest_to(x, k = 3, outcome = y, adjust = y)
    nearest_to(x, k = 3, outcome = y, adjust = y, constant = "isolate")
    nearest_to(x, factor(y > 3), 3)
    nearest_to(x, y > 3, 3)
    nearest_to(x, list(a = y), 3)
    nearest_to(x, c(3, 99), 3)
    nearest_to(x, c("g1", "gg2"), 3)
  })
  skip_if_not_installed("survival")
  expect_messages({
    nearest_to(x, k = 3, outcome = survival::Surv(y, y < 0))
    nearest_to(x, k = 3, outcome = survival::Surv(y, y + 1, type = "interval2"))
    nearest_to(x, survival::Surv(y, y > 0), 3)
  })
})

test_that("a time that is missing is left out of the null model, too", {
  skip_if_not_installed("survival")
  x <- random_matrix(25, 30)
  age <- random_matrix(1, 30, seed = 8)[1, ]
  times <- exp(random_matrix(1, 30, seed = 9)[1, ])
  event <- rep_len(c(1, 1, 0), 30)
  gaps <- c(4, 11)
  outcome <- survival::Surv(replace(times, gaps, NA), event)
  ask <- function(outcome) {
    nearest_to(
      x, outcome = outcome, k = 6, na = "mean", adjust = ~ age,
      data = data.frame(age = age), backend = "cpu"
    )
  }
  # The null model is fitted to the other samples, with their covariates.
  fit <- survival::coxph(outcome[-gaps] ~ age[-gaps])
  row <- rep(NA_real_, 30)
  row[-gaps] <- residuals(fit, type = "martingale")
  expect_equal(ask(outcome), ask(row))
  without <- survival::coxph(outcome[-gaps] ~ 1)
  other <- replace(row, -gaps, residuals(without, type = "martingale"))
  expect_false(isTRUE(all.equal(ask(outcome)$distance, ask(other)$distance)))
})

test_that("permutations of rows with filled values are those of the filled rows", {
  x <- random_matrix(40, 12)
  rownames(x) <- paste0("g", 1:40)
  gaps <- x
  gaps[cbind(c(3, 9, 9), c(2, 1, 5))] <- NA
  filled <- t(apply(gaps, 1, function(row) {
    replace(row, is.na(row), mean(row, na.rm = TRUE))
  }))
  outcome <- sin(1:12)
  for (metric in c("pearson", "spearman")) {
    found <- lapply(list(gaps, filled), function(values) {
      withr::with_seed(5, nearest_to(
        values, outcome = outcome, k = 5, metric = metric, na = "mean",
        permutations = 99
      ))
    })
    expect_equal(as.data.frame(found[[1]]), as.data.frame(found[[2]]))
  }
})

test_that("text is an outcome as its factor is, in any locale", {
  x <- outcome_data(12)
  kind <- rep_len(c("b", "A", "A"), 12)
  expected <- nearest_to(x, outcome = factor(kind, c("A", "b")), k = 3)
  expect_identical(nearest_to(x, outcome = kind, k = 3), expected)
  expect_identical(
    nearest_to(x, outcome = as.double(kind == "b"), k = 3), expected
  )
  expect_identical(
    add_phenotype(x, kind, "kind"), add_phenotype(x, factor(kind), "kind")
  )
  expect_identical(
    compare_neighbours(x, kind, 3, permutations = NULL),
    compare_neighbours(x, factor(kind, c("A", "b")), 3, permutations = NULL)
  )
  expect_messages({
    nearest_to(x, outcome = rep_len(c("1.5", "2", "0.1"), 12), k = 3)
    nearest_to(x, outcome = factor(rep(1:3, 4)), k = 3)
    nearest_to(x, outcome = rep_len(letters, 12), k = 3)
  })
})

test_that("a Cox model that does not converge is told of by its outcome", {
  skip_if_not_installed("survival")
  x <- outcome_data(12)
  # Only one half has events, so the coefficient is infinite.
  time <- survival::Surv(1:12, rep(1:0, c(6, 6)))
  apart <- rep(c(1, 0), c(6, 6))
  expect_messages({
    . <- nearest_to(x, outcome = list(relapse = time), k = 3, adjust = apart)
    . <- module_summary(
      rep_len(1:2, nrow(x)), x, list(relapse = time), adjust = apart
    )
  })
  expect_warning(
    nearest_to(x, outcome = time, k = 3, adjust = apart), "`outcome`",
    class = "fsknn_cox_warning"
  )
})

test_that("survival times are read in a session without the package", {
  skip_if_not_installed("survival")
  set.seed(3)
  x <- matrix(
    rnorm(420), 30, dimnames = list(paste0("g", 1:30), paste0("S", 1:14))
  )
  time <- survival::Surv(abs(rnorm(14)), rep(1:0, 7))
  right <- as.data.frame(nearest_to(x, outcome = time, k = 3))
  plain <- time
  names(time) <- colnames(x)
  order <- sample(14)
  table <- data.frame(id = 1:14)
  table$time <- time[order]
  rownames(table) <- colnames(x)[order]
  told <- list(named = time[order], plain = plain, table = table["time"])
  file <- tempfile(fileext = ".rds")
  saveRDS(list(x = x, told = told), file)
  child <- start_child(c(
    sprintf("given <- readRDS(%s)", deparse(file)),
    "loaded <- isNamespaceLoaded('survival')",
    "before <- lapply(given$told, function(outcome) {",
    "  if (isNamespaceLoaded('survival')) unloadNamespace('survival')",
    "  found <- try(nearest_to(given$x, outcome = outcome, k = 3))",
    "  try(as.data.frame(found))",
    "})",
    sprintf("saveRDS(before, %s)", deparse(file)),
    "say(loaded)"
  ))
  expect_true(wait_for(function() file.exists(child$out), patience))
  expect_identical(scan(child$out, "", quiet = TRUE), "FALSE")
  found <- readRDS(file)
  expect_equal(found$named, right)
  expect_equal(found$plain, right)
  expect_equal(found$table[names(right)], right)
  # Survival times may lack column names, too.
  expect_equal(
    as.data.frame(nearest_to(x, outcome = unname(time), k = 3)), right
  )
  begun <- survival::Surv(rep(0, 14), 2:15, rep(1:0, 7))
  expect_equal(
    as.data.frame(nearest_to(x, outcome = unname(begun), k = 3)),
    as.data.frame(nearest_to(x, outcome = begun, k = 3))
  )
  ids <- rep(1:3, 10)
  expect_equal(
    as.data.frame(module_summary(ids, x, outcome = unname(time))),
    as.data.frame(module_summary(ids, x, outcome = plain))
  )
  expect_equal(
    add_phenotype(x, unname(time), "time"), add_phenotype(x, plain, "time")
  )
})
