small <- function(num_rows = 7, num_columns = 9) {
  x <- random_matrix(num_rows, num_columns, seed = 31)
  dimnames(x) <- list(
    paste0("g", seq_len(num_rows)), paste0("s", seq_len(num_columns))
  )
  x
}

test_that("names of unnamed rows are their numbers", {
  x <- unname(small(3))
  expect_identical(
    rownames(metafeatures(x, "-")),
    c("1", "2", "3", "1 - 2", "1 - 3", "2 - 3")
  )
  expect_null(colnames(metafeatures(x)))
})

test_that("every row is found by its name, many or few at a time", {
  m <- metafeatures(small())
  names <- rownames(m)
  expect_identical(fsknn:::find_metafeatures(m, names), seq_along(names))
  many <- rep(rev(names), 20)
  expect_identical(fsknn:::find_metafeatures(m, many), rep(91:1, 20))
})

test_that("names that hold an operator are understood", {
  x <- small(3)
  rownames(x) <- c("a", "a - b", "b")
  m <- metafeatures(x, "-")
  expect_identical(m["a - b", ], x["a - b", ])
  expect_identical(m["a - a - b", ], x[1, ] - x[2, ])
  expect_identical(m["a - b - b", ], x[2, ] - x[3, ])
})
