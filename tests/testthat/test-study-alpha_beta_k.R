# The naive reference tries all sets of rows and all pairs of samples.
pair_facts <- function(x, class) {
  pairs <- utils::combn(ncol(x), 2)
  differ <- x[, pairs[1, ], drop = FALSE] != x[, pairs[2, ], drop = FALSE]
  list(differ = differ, other = class[pairs[1, ]] != class[pairs[2, ]])
}

# Returns the least number of rows that differ (other class) and agree (same
# class).
set_facts <- function(facts, rows) {
  differ <- colSums(facts$differ[rows, , drop = FALSE])
  c(
    alpha = min(differ[facts$other]),
    beta = min(length(rows) - differ[!facts$other])
  )
}

all_sets <- function(x, class) {
  facts <- pair_facts(x, class)
  n <- nrow(x)
  members <- as.matrix(expand.grid(rep(list(0:1), n)))
  differ <- members %*% facts$differ
  list(
    k = rowSums(members),
    alpha = apply(differ[, facts$other, drop = FALSE], 1, min),
    beta = rowSums(members) - apply(differ[, !facts$other, drop = FALSE], 1, max)
  )
}

expect_fulfils <- function(found, x, class) {
  facts <- set_facts(pair_facts(x, class), found$index)
  expect_gte(facts[["alpha"]], found$alpha)
  expect_gte(facts[["beta"]], found$beta)
  expect_identical(found$k, length(found$index))
  expect_lte(found$lower_bound, found$k)
  expect_identical(found$gap, (found$k - found$lower_bound) / found$k)
  expect_identical(found$features, rownames(x)[found$index])
}

levels_of_classes <- function(num_rows, class, num_levels = 2, seed = 1) {
  count <- num_rows * length(class)
  noise <- floor(num_levels * uniform_numbers(count, seed))
  told <- uniform_numbers(count, seed + 1) <
    rep(seq_len(num_rows) / num_rows * 0.6, length(class))
  x <- ifelse(told, rep(as.integer(factor(class)), each = num_rows), noise)
  matrix(as.integer(x) %% num_levels, num_rows)
}

test_that("sizes and bounds hold against all sets of 12 rows", {
  for (seed in if (is_long()) 1:12 else 1:6) {
    num_classes <- 2 + seed %% 2
    class <- rep_len(seq_len(num_classes), 9 + seed %% 4)
    x <- levels_of_classes(12, class, num_levels = 2 + seed %% 3, seed = seed)
    sets <- all_sets(x, class)
    most <- max(sets$alpha)
    if (most < 1) next
    for (alpha in unique(c(1, most))) {
      for (solver in c("none", "glpk")) {
        if (solver == "glpk") skip_if_not_installed("Rglpk")
        for (beta in c(0, 1, 2)) {
          does <- sets$alpha >= alpha & sets$beta >= beta
          if (!any(does)) next
          found <- alpha_beta_k(x, class, alpha, beta, solver = solver)
          expect_fulfils(found, x, class)
          smallest <- as.integer(min(sets$k[does]))
          expect_lte(found$lower_bound, smallest)
          expect_gte(found$k, smallest)
          if (found$optimal) expect_identical(found$k, smallest)
          if (solver == "glpk") expect_true(found$optimal)
        }
        found <- alpha_beta_k(x, class, alpha, "max", solver = solver)
        expect_fulfils(found, x, class)
        smallest <- as.integer(min(sets$k[sets$alpha >= alpha]))
        largest <- max(sets$beta[sets$alpha >= alpha & sets$k == found$k])
        expect_lte(found$beta, largest)
        expect_gte(found$beta_bound, largest)
        if (solver == "glpk") {
          expect_true(found$optimal)
          expect_identical(found$k, smallest)
          expect_equal(found$beta, largest)
        }
      }
    }
    expect_equal(alpha_beta_k(x, class, solver = "none")$alpha, most)
  }
})

test_that("one row that tells all is enough", {
  class <- rep(c("a", "b"), c(3, 5))
  x <- rbind(same = 1, told = as.integer(class == "b"), half = c(0, 0, 1, 1, 1, 1, 1, 1))
  found <- alpha_beta_k(x, class, alpha = 1)
  expect_identical(found$index, 2L)
  expect_identical(found$features, "told")
  expect_identical(
    found[c("k", "alpha", "beta", "lower_bound", "gap", "optimal")],
    list(k = 1L, alpha = 1L, beta = 1L, lower_bound = 1L, gap = 0, optimal = TRUE)
  )
})

test_that("rows that a pair can't do without are all taken", {
  # Samples 1 and 4 differ only in rows 1 to 4.
  x <- cbind(0, c(0, 0, 0, 1, 1, 1), c(0, 0, 1, 0, 1, 0), c(1, 1, 1, 1, 0, 0))
  found <- alpha_beta_k(x, c(1, 2, 2, 2), alpha = "max", beta = 0)
  facts <- pair_facts(x, c(1, 2, 2, 2))
  expect_identical(found$alpha, as.integer(min(colSums(facts$differ)[facts$other])))
  expect_fulfils(found, x, c(1, 2, 2, 2))
})

test_that("without two samples of one class any beta is had", {
  x <- cbind(c(0, 0, 1), c(1, 0, 0), c(0, 1, 0))
  found <- alpha_beta_k(x, 1:3, alpha = 1)
  expect_identical(found$k, 2L)
  expect_identical(found$beta, 2L)
  expect_true(found$optimal)
})

test_that("levels of any kind of matrix are labels", {
  class <- rep(1:2, each = 6)
  x <- levels_of_classes(20, class, num_levels = 3, seed = 4)
  same <- c("index", "k", "alpha", "beta", "lower_bound")
  expected <- alpha_beta_k(x, class, solver = "none")[same]
  found <- function(x) alpha_beta_k(x, class, solver = "none")[same]
  expect_identical(found(x + 0), expected)
  expect_identical(found(1e12 * (3 - x)), expected)
  expect_identical(found(as.data.frame(x)), expected)
  expect_identical(found(x > 0), found((x > 0) + 0))
})

test_that("a filter is taken as it is, with the numbers of the rows it was made from", {
  class <- rep(c("ill", "well"), each = 12)
  x <- random_matrix(40, 24) +
    outer(seq_len(40) / 40 * 3, rep(0:1, each = 12))
  rownames(x) <- paste0("g", 1:40)
  f <- mdl_filter(x, class)
  expect_true(any(!f$keep))
  found <- alpha_beta_k(f)
  direct <- alpha_beta_k(f$levels, class)
  expect_identical(found$features, direct$features)
  expect_identical(rownames(x)[found$index], found$features)
  expect_true(all(f$keep[found$index]))
})

test_that("an ExpressionSet and a SummarizedExperiment are taken", {
  skip_if_not_installed("SummarizedExperiment")
  class <- rep(c("ill", "well"), each = 6)
  x <- levels_of_classes(20, class, num_levels = 3, seed = 4)
  dimnames(x) <- list(paste0("g", 1:20), paste0("s", 1:12))
  experiment <- SummarizedExperiment::SummarizedExperiment(
    list(level = x), colData = data.frame(state = class)
  )
  expect_identical(
    alpha_beta_k(experiment, "state")[1:8], alpha_beta_k(x, class)[1:8]
  )
})

test_that("the answer is the same for any number of threads, and again", {
  class <- rep(1:2, c(25, 15))
  x <- levels_of_classes(150, class, num_levels = 3, seed = 2)
  search <- function(threads) {
    found <- alpha_beta_k(
      x, class, alpha = 5, beta = 3, solver = "none", num_threads = threads
    )
    found[setdiff(names(found), "seconds")]
  }
  one <- search(1)
  expect_identical(search(3), one)
  expect_identical(search(1), one)
  facts <- set_facts(pair_facts(x, class), one$index)
  expect_gte(facts[["alpha"]], 5)
  expect_gte(facts[["beta"]], 3)
})

test_that("random numbers are left as they are", {
  class <- rep(1:2, each = 8)
  x <- levels_of_classes(40, class, seed = 3)
  withr::local_seed(1)
  before <- .Random.seed
  alpha_beta_k(x, class)
  expect_identical(.Random.seed, before)
})

test_that("the time limit is kept, and the answer does all the same", {
  class <- rep(1:2, c(60, 40))
  x <- levels_of_classes(300, class, num_levels = 3, seed = 5)
  for (solver in c("none", "auto")) {
    seconds <- cpu_seconds(
      found <- alpha_beta_k(
        x, class, alpha = 20, time_limit = 0.2, solver = solver
      )
    )
    expect_lt(seconds, 10)
    expect_fulfils(found, x, class)
  }
})

test_that("demands that can't be met are errors that say what can", {
  class <- rep(c("ill", "well"), each = 4)
  x <- levels_of_classes(8, class, num_levels = 3, seed = 6)
  colnames(x) <- paste0("s", 1:8)
  expect_messages({
    alpha_beta_k(x, class, alpha = 9)
    alpha_beta_k(x, class, alpha = 1, beta = 8)
    alpha_beta_k(cbind(x[, 1:7], s8 = x[, 1]), class)
    alpha_beta_k(cbind(x[, 1:7], s8 = x[, 1]), class, alpha = 1)
    alpha_beta_k(x[, c(1, 5)], class[c(1, 5)], alpha = 0, beta = 9)
  })
})

test_that("a wrong argument is an error", {
  class <- rep(c("ill", "well"), each = 4)
  x <- levels_of_classes(8, class, num_levels = 3, seed = 6)
  f <- mdl_filter(rbind(rep(1:2, 4)), class)
  expect_messages({
    alpha_beta_k()
    alpha_beta_k(x)
    alpha_beta_k(x, class[1:3])
    alpha_beta_k(f)
    alpha_beta_k(x[0, ], class)
    alpha_beta_k(x + 0.5, class)
    alpha_beta_k(replace(x, 3, NA), class)
    alpha_beta_k(letters, class)
    alpha_beta_k(x, class, alpha = "most")
    alpha_beta_k(x, class, alpha = 1.5)
    alpha_beta_k(x, class, alpha = -1)
    alpha_beta_k(x, class, alpha = NA)
    alpha_beta_k(x, class, beta = c(1, 2))
    alpha_beta_k(x, class, 1, 1, 10)
    alpha_beta_k(x, class, time_limit = 0)
    alpha_beta_k(x, class, time_limit = "1 minute")
    alpha_beta_k(x, class, solver = "rglpk")
    alpha_beta_k(x, class, num_threads = 0)
  })
})

test_that("the print says what is proven and what is not", {
  found <- structure(
    list(
      index = c(2L, 5L, 9L), features = NULL, k = 3L, alpha = 2L, beta = 1L,
      lower_bound = 3L, gap = 0, beta_bound = 1L, optimal = TRUE,
      solver = "none", seconds = 0.1
    ),
    class = "fsknn_alpha_beta_k"
  )
  expect_snapshot({
    found
    open <- replace(found, c("lower_bound", "gap", "beta_bound"), list(2L, 1 / 3, 2L))
    print(open, n = 2)
  })
})

test_that("the study's 78 patients: k is proven, with alpha and beta the largest", {
  skip_if_not_installed("Rglpk")
  data <- read_nki295("vantveer78_full.rds")
  x <- data$expr / data$scale
  x <- x[rowSums(is.na(x)) == 0, ]
  f <- mdl_filter(x, data$clinical$metastasis, num_threads = 2)
  expect_identical(sum(f$keep), 425L)
  found <- alpha_beta_k(f, num_threads = 2)
  expect_true(found$optimal)
  expect_identical(
    unlist(found[c("k", "alpha", "beta")]),
    c(k = 283L, alpha = 85L, beta = 140L)
  )
  kept <- match(found$index, which(f$keep))
  facts <- set_facts(pair_facts(f$levels, f$class), kept)
  expect_identical(facts, c(alpha = 85, beta = 140))
})

test_that("Ctrl-C stops the search and the solver within a second", {
  skip_if_not_installed("Rglpk")
  for (stage in c("search", "solver")) {
    out <- tempfile()
    script <- tempfile(fileext = ".R")
    writeLines(c(
      sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")),
      "library(fsknn)",
      "set.seed(1)",
      "x <- matrix(rbinom(500 * 80, 1, 0.4), 500)",
      "class <- rep(1:2, 40)",
      "cover <- fsknn:::new_cover(x, factor(class), 1L, 'glpk')",
      "active <- t(combn(80, 2))[1:120, ]",
      "found <- list(in_all = integer(), in_smaller = integer(),",
      "  out_of_smaller = integer(), active = active)",
      "answer <- list(chosen = 1:500, lower_bound = 1L, solver = 'none')",
      sprintf("cat(Sys.getpid(), '\n', file = '%s.pid')", out),
      "said <- tryCatch({",
      if (stage == "search") {
        "alpha_beta_k(
           matrix(rbinom(2000 * 290, 1, 0.4), 2000), rep(1:2, 145), 30, 30,
           time_limit = 60, solver = 'none'
         )"
      } else {
        "fsknn:::solve_exactly(cover, 30L, 30L, 0L, answer, found,
           function() 60)"
      },
      "'finished'",
      "}, interrupt = function(e) 'interrupted')",
      "worked <- sum(proc.time()[1:2])",
      sprintf("cat(said, format(worked, digits = 15), file = '%s')", out)
    ), script)
    start_script(script)
    wait_until <- function(file) {
      expect_true(wait_for(function() {
        file.exists(file) && file.size(file) > 0
      }, patience))
    }
    wait_until(paste0(out, ".pid"))
    Sys.sleep(1.5)
    pid <- scan(paste0(out, ".pid"), integer(), quiet = TRUE)
    worked <- cpu_seconds_of(pid)
    tools::pskill(pid, tools::SIGINT)
    wait_until(out)
    Sys.sleep(0.1)
    said <- strsplit(readLines(out, warn = FALSE), " ")[[1]]
    expect_identical(said[[1]], "interrupted", label = stage)
    if (!is.na(worked)) {
      expect_lt(as.double(said[[2]]) - worked, 2)
    }
  }
})
