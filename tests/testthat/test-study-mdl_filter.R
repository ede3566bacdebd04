# The naive reference is Fayyad and Irani's recursion on one row, in plain R.
entropy <- function(class) {
  p <- table(class) / length(class)
  p <- p[p > 0]
  -sum(p * log2(p))
}

num_classes <- function(class) length(unique(class))

# Tries every midpoint, boundary point or not: by the theorem, only boundary
# points can be best.
naive_cuts <- function(values, class) {
  n <- length(values)
  distinct <- sort(unique(values))
  if (length(distinct) < 2) {
    return(numeric())
  }
  below <- utils::head(distinct, -1)
  above <- utils::tail(distinct, -1)
  mean_entropy <- function(at) {
    lower <- values <= at
    mean(lower) * entropy(class[lower]) + mean(!lower) * entropy(class[!lower])
  }
  entropies <- vapply(below, mean_entropy, 0)
  best <- which(entropies <= min(entropies) + 1e-9)[[1]]
  lower <- values <= below[[best]]
  gain <- entropy(class) - entropies[[best]]
  k <- c(num_classes(class), num_classes(class[lower]), num_classes(class[!lower]))
  e <- c(entropy(class), entropy(class[lower]), entropy(class[!lower]))
  delta <- log2(3^k[[1]] - 2) - (k[[1]] * e[[1]] - k[[2]] * e[[2]] - k[[3]] * e[[3]])
  if (gain <= (log2(n - 1) + delta) / n) {
    return(numeric())
  }
  c(
    naive_cuts(values[lower], class[lower]),
    (below[[best]] + above[[best]]) / 2,
    naive_cuts(values[!lower], class[!lower])
  )
}

naive_gain <- function(values, class, cuts) {
  interval <- findInterval(values, cuts, left.open = TRUE)
  parts <- split(class, interval)
  entropy(class) -
    sum(vapply(parts, function(part) length(part) * entropy(part), 0)) /
    length(class)
}

expect_naive <- function(x, class, ...) {
  found <- mdl_filter(x, class, ...)
  for (row in seq_len(nrow(x))) {
    cuts <- naive_cuts(x[row, ], class)
    expect_equal(found$cuts[[row]], cuts, tolerance = 1e-14)
    expect_equal(
      found$gain[[row]], naive_gain(x[row, ], class, cuts) * (length(cuts) > 0),
      tolerance = 1e-12
    )
  }
  expect_identical(unname(found$keep), lengths(found$cuts) > 0)
  invisible(found)
}

# Makes rows that are more and more informative about the class.
shifted <- function(num_rows, class, seed = 1) {
  x <- random_matrix(num_rows, length(class), seed = seed)
  x + outer(seq_len(num_rows) / num_rows * 2, as.integer(factor(class)))
}

iris_rows <- function() t(as.matrix(datasets::iris[, 1:4]))

test_that("iris has the known cuts", {
  f <- mdl_filter(iris_rows(), datasets::iris$Species)
  expect_equal(
    f$cuts,
    list(
      Sepal.Length = c(5.55, 6.15), Sepal.Width = c(2.95, 3.35),
      Petal.Length = c(2.45, 4.75), Petal.Width = c(0.8, 1.75)
    )
  )
  expect_identical(f$keep, c(
    Sepal.Length = TRUE, Sepal.Width = TRUE, Petal.Length = TRUE,
    Petal.Width = TRUE
  ))
  expect_identical(levels(f$class), levels(datasets::iris$Species))
})

test_that("cuts and gain are those of the naive reference", {
  for (num_classes in 2:4) {
    class <- rep_len(seq_len(num_classes), 61)
    f <- expect_naive(shifted(20, class, seed = num_classes), class)
    expect_true(any(f$keep) && !all(f$keep))
    ties <- small_integers(20, 61, seed = num_classes) +
      outer(seq_len(20) / 20 > 0.5, class)
    f <- expect_naive(ties, class)
    expect_true(any(f$keep) && !all(f$keep))
  }
})

test_that("classes of very different sizes do no harm", {
  class <- c(rep("a", 55), rep("b", 5), "c")
  expect_naive(shifted(30, class, seed = 9), class)
})

test_that("a class told exactly is one cut, and its gain the entropy", {
  f <- mdl_filter(rbind(c(1:5, 11:17)), rep(1:2, c(5, 7)))
  expect_identical(f$cuts, list(8))
  expect_equal(f$gain, entropy(rep(1:2, c(5, 7))))
})

test_that("equal values of different classes are never parted", {
  x <- rbind(rep(c(1, 2, 3), c(20, 10, 20)))
  class <- c(rep("a", 20), rep(c("a", "b"), 5), rep("b", 20))
  f <- expect_naive(x, class)
  expect_identical(f$cuts, list(c(1.5, 2.5)))
})

test_that("a constant row, and one in which no cut pays, have no cuts", {
  x <- rbind(rep(3, 20), rep(1:2, 10))
  f <- mdl_filter(x, rep(1:2, each = 10))
  expect_identical(f$cuts, list(numeric(), numeric()))
  expect_identical(f$gain, c(0, 0))
  expect_identical(f$keep, c(FALSE, FALSE))
  expect_identical(dim(f$levels), c(0L, 20L))
})

test_that("a value equal to a cut lies below it, and neighbours in double stay parted", {
  x <- rbind(rep(c(1, 1 + 2^-52), each = 10))
  f <- mdl_filter(x, rep(1:2, each = 10))
  expect_identical(f$levels, rbind(rep(1:2, each = 10)))
  huge <- mdl_filter(x * (.Machine$double.xmax / 2), rep(1:2, each = 10))
  expect_identical(huge$levels, f$levels)
  expect_true(is.finite(huge$cuts[[1]]))
})

test_that("the answer is the same for any number of threads and order of samples", {
  class <- rep_len(1:3, 50)
  x <- shifted(300, class)
  one <- mdl_filter(x, class, num_threads = 1)
  expect_identical(mdl_filter(x, class, num_threads = 3), one)
  back <- mdl_filter(x[, 50:1], rev(class))
  expect_identical(back[c("cuts", "keep")], one[c("cuts", "keep")])
  expect_equal(back$gain, one$gain, tolerance = 1e-12)
})

test_that("all kinds of class and of matrix give the same", {
  class <- rep(c(FALSE, TRUE), each = 20)
  x <- shifted(9, class)
  cuts <- mdl_filter(x, class)$cuts
  for (same in list(
    as.integer(class), as.double(class), as.character(class), factor(class),
    factor(class, levels = c("TRUE", "none", "FALSE"))
  )) {
    expect_identical(mdl_filter(x, same)$cuts, cuts)
  }
  expect_identical(mdl_filter(as.data.frame(x), class)$cuts, cuts)
  whole <- round(10 * x)
  mode(whole) <- "integer"
  expect_identical(
    mdl_filter(whole, class)$cuts, mdl_filter(whole + 0, class)$cuts
  )
  expect_identical(
    mdl_filter(x > 1, class)$cuts, mdl_filter((x > 1) + 0, class)$cuts
  )
})

test_that("levels are those of findInterval(), on all rows and on those kept", {
  class <- rep_len(1:2, 40)
  x <- shifted(30, class)
  rownames(x) <- paste0("g", 1:30)
  colnames(x) <- paste0("s", 1:40)
  f <- mdl_filter(x, class)
  expected <- t(vapply(names(which(f$keep)), function(row) {
    findInterval(x[row, ], f$cuts[[row]], left.open = TRUE) + 1L
  }, integer(40)))
  colnames(expected) <- colnames(x)
  expect_identical(f$levels, expected)
  expect_identical(predict(f, x), expected)
  expect_identical(predict(f, x[f$keep, ]), expected)
  expect_identical(predict(f, x[f$keep, 3:7], num_threads = 2), expected[, 3:7])
  x["g30", 4] <- NA
  expect_identical(predict(f, x), replace(expected, cbind(sum(f$keep), 4), NA))
})

test_that("an ExpressionSet and a SummarizedExperiment are filtered", {
  class <- rep(c("ill", "well"), each = 15)
  x <- shifted(12, class)
  dimnames(x) <- list(paste0("g", 1:12), paste0("s", 1:30))
  samples <- data.frame(state = class, row.names = colnames(x))
  expected <- mdl_filter(x, class)
  expect_true(any(expected$keep) && !all(expected$keep))

  skip_if_not_installed("Biobase")
  set <- Biobase::ExpressionSet(
    x, phenoData = Biobase::AnnotatedDataFrame(samples)
  )
  expect_identical(mdl_filter(set, "state"), expected)
  expect_identical(mdl_filter(set, class), expected)
  expect_identical(Biobase::exprs(set[expected$keep, ]), x[expected$keep, ])

  skip_if_not_installed("SummarizedExperiment")
  experiment <- SummarizedExperiment::SummarizedExperiment(
    list(expr = x), colData = samples
  )
  expect_identical(mdl_filter(experiment, "state"), expected)
  expect_identical(predict(expected, experiment), predict(expected, x))
  kept <- experiment[expected$keep, ]
  expect_identical(rownames(kept), names(which(expected$keep)))
  expect_messages({
    mdl_filter(experiment, "stat")
    mdl_filter(set, "month of birth")
  })
})

test_that("an experiment without an assay is an error", {
  skip_if_not_installed("SummarizedExperiment")
  empty <- SummarizedExperiment::SummarizedExperiment()
  expect_messages(mdl_filter(empty, "state"))
})

test_that("a bad class is an error that says what is wrong", {
  x <- random_matrix(3, 6)
  expect_messages({
    mdl_filter(x)
    mdl_filter(x, NULL)
    mdl_filter(x, 1:5)
    mdl_filter(x, "state")
    mdl_filter(x, rep("a", 6))
    mdl_filter(x, c(NA, 1, 1, 0, 0, NA))
    mdl_filter(x, c("a", "b", "a", NA, "b", "a"))
    mdl_filter(x, seq(0.5, 3, by = 0.5))
    mdl_filter(x, as.list(1:6))
    mdl_filter(x, matrix(0:1, 2, 3))
    mdl_filter(x, Sys.Date() + 0:5)
    mdl_filter(x, 0:1, 2)
  })
})

test_that("bad values are an error that says where", {
  class <- rep(0:1, 3)
  missing <- replace(random_matrix(4, 6), c(3, 9), c(NA, Inf))
  rownames(missing) <- letters[1:4]
  expect_messages({
    mdl_filter(missing, class)
    mdl_filter(letters, class)
    mdl_filter(matrix(0, 0, 6), class)
    mdl_filter(missing[1:2, ], class, num_threads = 0)
  })
})

test_that("cuts can only be applied to the rows that they were made from", {
  class <- rep(0:1, each = 10)
  x <- rbind(a = class, b = rep(0:1, 10), c = class + 1)
  f <- mdl_filter(x, class)
  expect_identical(predict(f, x[3:1, ]), predict(f, x))
  expect_identical(predict(f, x[c("c", "a"), ]), predict(f, x))
  expect_messages({
    predict(f, x[1, , drop = FALSE])
    predict(f, x[1:2, ])
    predict(f, x, 2)
  })
})

test_that("the print says what was kept", {
  x <- rbind(
    told = rep(0:1, each = 20), half = c(rep(0:1, each = 18), 0, 1, 0, 1),
    not = rep(0:1, 20)
  )
  class <- rep(c("good", "poor"), each = 20)
  expect_snapshot({
    mdl_filter(x, class)
    print(mdl_filter(unname(x), class), n = 1)
    mdl_filter(x[3, , drop = FALSE], class)
  })
})

test_that("the shares of noise rows that are kept are those of the help", {
  kept <- function(samples) {
    noise <- withr::with_seed(1, matrix(stats::rnorm(2e4 * samples), 2e4))
    mean(mdl_filter(noise, rep(1:2, each = samples / 2))$keep)
  }
  expect_equal(kept(6), 0.10, tolerance = 0.1)
  expect_equal(kept(20), 0.025, tolerance = 0.1)
  expect_equal(kept(296), 0.003, tolerance = 0.2)
})

test_that("permuted classes give p-values by the naive reference", {
  class <- rep(c("a", "b"), c(8, 14))
  x <- shifted(12, class, seed = 4)
  rownames(x) <- paste0("g", 1:12)
  f <- withr::with_seed(3, mdl_filter(x, class, permutations = 15))
  drawn <- withr::with_seed(3, draw_permutations(22, 15))
  gains <- apply(cbind(1:22, drawn), 2, function(at) {
    apply(x, 1, function(row) {
      cuts <- naive_cuts(row, class[at])
      naive_gain(row, class[at], cuts) * (length(cuts) > 0)
    })
  })
  expect_equal(f$chance, colSums(gains > 0)[-1])
  p <- vapply(f$gain, function(gain) mean(gains >= gain - 1e-9), 0)
  expect_equal(f$p_value, p)
  expect_equal(f$fdr, stats::p.adjust(p, "BH"))
  expect_true(any(f$keep) && !all(f$keep))
  expect_identical(unname(f$p_value[!f$keep]), rep(1, sum(!f$keep)))
  plain <- mdl_filter(x, class)
  expect_identical(unclass(f)[names(plain)], unclass(plain))
  expect_identical(
    as.data.frame(f)[c("p_value", "fdr")],
    data.frame(p_value = unname(f$p_value), fdr = unname(f$fdr))
  )
  # All 20 ways to choose three of six samples, of which two are as good
  few <- mdl_filter(rbind(1:6, c(1, 3, 2, 6, 4, 5)), rep(1:2, each = 3),
                    permutations = 19)
  expect_equal(few$p_value, c(0.1, 0.1))
  expect_length(few$chance, 19)
  expect_snapshot(few)
  expect_messages({
    mdl_filter(x, class, permutations = 0)
    mdl_filter(x, class, permutations = "many")
  })
})

test_that("of rows of noise and others, few of noise have a small fdr", {
  class <- rep(1:2, each = 20)
  x <- withr::with_seed(1, matrix(stats::rnorm(1000 * 40), 1000))
  x[1:100, 21:40] <- x[1:100, 21:40] + 2
  f <- withr::with_seed(1, mdl_filter(x, class, permutations = 39))
  found <- f$fdr <= 0.05
  expect_gt(mean(found[1:100]), 0.8)
  expect_lt(sum(found[-(1:100)]), 12)
  noise <- withr::with_seed(2, mdl_filter(x[101:1000, ], class,
                                          permutations = 39))
  expect_equal(mean(noise$chance), sum(noise$keep), tolerance = 0.5)
})

test_that("probes of 78 patients are filtered as by the naive reference", {
  data <- read_nki295("vantveer78_876.rds")
  x <- data$expr / data$scale
  class <- data$clinical$metastasis
  f <- mdl_filter(x, class, num_threads = 2)
  some <- seq(1, 876, by = 17)
  expect_equal(
    unname(f$cuts[some]),
    lapply(some, function(row) naive_cuts(x[row, ], class))
  )
})
