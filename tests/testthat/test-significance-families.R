# P-values over all outcomes of a call, and notes of what p-values assume.

family_data <- function() {
  data <- followed(40, num_samples = 15)
  data$outcomes <- list(
    own = data$outcome, noise = sin(1:15), other = -data$outcome + cos(1:15)
  )
  data
}

test_that("one family has the smallest distances and p-values of all outcomes", {
  data <- family_data()
  ask <- function(...) {
    set.seed(3)
    nearest_to(
      data$x, outcome = data$outcomes, permutations = 60, backend = "cpu", ...
    )
  }
  for (k in c(1, 7)) {
    each <- ask(k = k)
    call <- ask(k = k, family = "call")
    columns <- c("point", "index", "distance", "p_value")
    expect_identical(as.data.frame(call)[columns], as.data.frame(each)[columns])
    null <- attr(each, "null")
    expect_identical(attr(call, "null"), null)
    smallest <- apply(null, 1, min)
    expect_equal(call$p_adjusted, vapply(call$distance, function(own) {
      permutation_p(sum(smallest <= own + 1e-12), 60)
    }, 0))
    expect_true(all(call$p_adjusted >= each$p_adjusted))
    p <- lapply(data$outcomes, function(outcome) {
      r_to_p(drop(stats::cor(t(data$x), outcome)), 13, "greater")
    })
    fdr <- matrix(stats::p.adjust(unlist(p), "BH"), 40)
    expect_equal(
      call$fdr,
      fdr[cbind(call$index, match(call$point, names(data$outcomes)))]
    )
  }
  # A single outcome has one family.
  one <- function(...) {
    set.seed(3)
    nearest_to(
      data$x, outcome = data$outcome, permutations = 60, k = 1,
      backend = "cpu", ...
    )
  }
  expect_identical(one(family = "call"), one())
  # Points, too.
  set.seed(3)
  points <- nearest_to(
    data$x, 1:3, k = 2, permutations = 60, family = "call", backend = "cpu"
  )
  smallest <- apply(attr(points, "null"), 1, min)
  expect_equal(points$p_adjusted, vapply(points$distance, function(own) {
    permutation_p(sum(smallest <= own + 1e-12), 60)
  }, 0))
})

test_that("with missing values one family has the smallest p-values", {
  data <- family_data()
  x <- data$x
  withr::with_seed(2, x[sample(length(x), 200)] <- NA)
  ask <- function(...) {
    set.seed(3)
    suppressMessages(nearest_to(
      x, outcome = data$outcomes, k = 4, permutations = 30, na = "pairwise",
      min_pairs = 5, backend = "cpu", ...
    ))
  }
  found <- ask(family = "call")
  drawn <- drawn_by(3, 15, 30)
  p_of <- function(outcome) {
    r <- stats::cor(t(x), outcome, use = "pairwise")
    common <- rowSums(!is.na(x))
    p <- r_to_p(drop(r), common - 2, "greater")
    replace(p, common < 5, 1)
  }
  smallest <- apply(drawn, 2, function(by) {
    min(vapply(data$outcomes, function(outcome) min(p_of(outcome[by])), 0))
  })
  expect_equal(found$p_adjusted, vapply(found$p_value, function(own) {
    permutation_p(sum(smallest <= own + 1e-11), 30)
  }, 0))
})

test_that("modules may be one family, too", {
  data <- family_data()
  clusters <- rep(1:4, each = 10)
  ask <- function(...) {
    set.seed(5)
    module_summary(
      clusters, data$x, outcome = data$outcomes, permutations = 40, ...
    )$outcomes
  }
  each <- ask()
  call <- ask(family = "call")
  expect_identical(call[1:4], each[1:4])
  expect_equal(call$fdr, stats::p.adjust(call$p_value, "BH"))
  expect_true(all(call$p_adjusted >= each$p_adjusted))
})

test_that("the header says what p-values are of", {
  data <- family_data()
  strata <- rep(1:3, 5)
  weights <- rep_len(1:2, 15)
  withr::local_options(fsknn.show_time = FALSE)
  header <- function(...) {
    lines <- utils::capture.output(print(nearest_to(
      data$x, k = 2, permutations = 9, backend = "cpu", ...
    )))
    writeLines(lines[seq_len(grep("rank", lines)[[1]] - 1)])
  }
  expect_messages({
    header(outcome = data$outcomes, strata = strata)
    header(1:3, family = "call")
    header(outcome = data$outcome, strata = strata, adjust = ~ 1)
    header(outcome = data$outcome, weights = list(sampling = weights))
    header(1:2, metric = "euclidean", strata = strata)
  })
})

test_that("unequal spreads in strata are a message", {
  data <- followed(num_samples = 24)
  strata <- rep(1:3, each = 8)
  outcome <- data$outcome * c(1, 9, 1)[strata]
  ask <- function(outcome, ...) {
    nearest_to(
      data$x, outcome = outcome, k = 2, permutations = 9, strata = strata,
      backend = "cpu", ...
    )
  }
  shown <- function(...) invisible(ask(...))
  expect_messages({
    shown(outcome, adjust = ~ 1)
    shown(list(years = data$outcome, dose = outcome), adjust = ~ 1)
    shown(outcome)
    shown(data$outcome, adjust = ~ 1)
    shown(outcome, adjust = ~ 1, metric = "spearman")
  })
  # Strata of one sample have no spread.
  expect_identical(ratio_of_spreads(c(1, 2, 5), 1:3), 1)
})

test_that("a family that can't be had is an error", {
  data <- family_data()
  expect_messages({
    nearest_to(data$x, 1:2, k = 2, family = "call")
    nearest_to(
      data$x, 1:2, k = 2, permutations = 9, family = "call",
      metric = "euclidean"
    )
    nearest_to(data$x, 1:2, k = 2, permutations = 9, family = "all")
    module_summary(rep(1:4, each = 10), data$x, family = "call")
  })
})
