structured <- function(n = 200, d = 15, seed = 1) {
  withr::with_seed(seed, {
    matrix(rnorm(n * 3), n) %*% matrix(rnorm(3 * d), 3) +
      0.5 * matrix(rnorm(n * d), n)
  })
}

test_that("the error is that of knn_impute() on the hidden entries", {
  x <- structured()
  x[5, 1:3] <- NA
  x[6, ] <- NA
  how <- list(row_max = 0.5, col_max = 0.8)
  for (hide in c("random", "low")) {
    hidden <- withr::with_seed(4, fsknn:::draw_hidden(x, 0.1, hide, how))
    holes <- replace(x, hidden, NA)
    for (donors in c("nearest", "available")) {
      found <- withr::with_seed(4, knn_impute_error(
        x, 0.1, c(8, 1, 3), c("euclidean", "pearson", "manhattan"),
        hide = hide, donors = donors
      ))
      expect_identical(found$k, rep(c(1L, 3L, 8L), 3))
      for (row in seq_len(nrow(found))) {
        filled <- suppressMessages(
          knn_impute(holes, found$k[row], found$metric[row], donors = donors),
          classes = "fsknn_column_means"
        )
        off <- filled[hidden] - x[hidden]
        expect_equal(found$rmse[row], sqrt(mean(off^2)), tolerance = 1e-12)
        expect_equal(found$bias[row], mean(off), tolerance = 1e-12)
      }
      by_row <- rowMeans(holes, na.rm = TRUE)[row(x)[hidden]]
      expect_equal(attr(found, "row_means"), sqrt(mean((by_row - x[hidden])^2)))
    }
  }
})

test_that("low values are hidden first, and are filled in too high", {
  x <- structured()
  found <- lapply(c("random", "low"), function(hide) {
    withr::with_seed(1, knn_impute_error(x, 0.1, 5, "euclidean", hide = hide))
  })
  expect_gt(found[[2]]$bias, 3 * abs(found[[1]]$bias))
  expect_gt(found[[2]]$rmse, found[[1]]$rmse)
  hidden <- withr::with_seed(1, fsknn:::draw_hidden(
    x, 0.1, "low", list(row_max = 0.5, col_max = 0.8)
  ))
  expect_lt(mean(x[hidden]), mean(x) - sd(as.vector(x)))
})

test_that("no row and no column is hidden above its share", {
  x <- structured(60, 10)
  x[1:5, 1:4] <- NA
  how <- list(row_max = 0.5, col_max = 0.6)
  hidden <- withr::with_seed(2, fsknn:::draw_hidden(x, 0.45, "low", how))
  expect_length(hidden, round(0.45 * sum(!is.na(x))))
  holes <- replace(x, hidden, NA)
  expect_lte(max(rowSums(is.na(holes))), 5)
  expect_lte(max(colSums(is.na(holes))), 36)
  expect_false(any(is.na(x[hidden])))
})

test_that("errors of imputing print and are drawn", {
  skip_if_not_installed("ggplot2")
  found <- withr::with_seed(1, knn_impute_error(structured(), 0.05, c(1, 5)))
  expect_match(format(found)[[1]], "150 hidden values \\(at random\\)")
  expect_output(print(found), "Least: ")
  expect_output(print(found[, c("k", "rmse")]), "rmse")
  expect_s3_class(plot(found), "ggplot")
  expect_s3_class(ggplot2::ggplot_build(plot(found)), "ggplot_built")
  expect_identical(class(as.data.frame(found)), "data.frame")
})

test_that("what can't be hidden or tried is an error that says so", {
  x <- structured(30, 8)
  expect_messages({
    knn_impute_error(x, 0)
    knn_impute_error(x, 0.9)
    knn_impute_error(x, 0.1, 0)
    knn_impute_error(x, 0.1, 30)
    knn_impute_error(x, 0.1, 3, "cosine")
    knn_impute_error(x, 0.1, 3, hide = "high")
  })
})

test_that("a summary is the print", {
  x <- random_matrix(30, 8)
  error <- withr::with_seed(1, knn_impute_error(x, k = 1:2, backend = "cpu"))
  expect_identical(summary(error), error)
})

test_that("errors are right for values of any magnitude", {
  x <- structured(80, 8)
  x[5, 1:3] <- NA
  ask <- function(factor, hide = "random") {
    withr::with_seed(4, knn_impute_error(
      x * factor, 0.1, c(1, 3), c("euclidean", "pearson"), hide = hide
    ))
  }
  for (hide in c("random", "low")) {
    expected <- ask(1, hide)
    for (power in c(-980, -600, 600, 1000)) {
      found <- ask(2^power, hide)
      expect_equal(found$rmse / 2^power, expected$rmse, tolerance = 1e-12)
      expect_equal(found$bias / 2^power, expected$bias, tolerance = 1e-12)
      for (name in c("row_means", "column_means", "spread")) {
        expect_equal(
          attr(found, name) / 2^power, attr(expected, name), tolerance = 1e-12
        )
      }
    }
  }
})

test_that("errors near a double's limit are values, or a range error", {
  most <- .Machine$double.xmax
  set.seed(1)
  x <- matrix(rnorm(60), 12)
  x[, 5] <- rep(c(most, -most), 6) * runif(12, 0.5, 1)
  judge <- function(x, metric, fraction) {
    set.seed(2)
    suppressMessages(knn_impute_error(x, fraction, c(1, 3), metric))
  }
  got <- judge(x, "euclidean", 0.2)
  want <- judge(x * 2^-20, "euclidean", 0.2)
  expect_true(all(is.finite(got$bias)))
  expect_equal(got$rmse, want$rmse * 2^20, tolerance = 1e-13)
  expect_equal(got$bias, want$bias * 2^20, tolerance = 1e-13)
  x[, 4] <- rep(c(most, -most), each = 6) * 0.7
  expect_error(
    judge(x, c("euclidean", "pearson"), 0.3), class = "fsknn_range_error"
  )
})
