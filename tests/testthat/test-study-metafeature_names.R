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
  rownames(x) <- c("a", "a - c", "b")
  m <- metafeatures(x, "-")
  expect_identical(m["a - c", ], x["a - c", ])
  expect_identical(m["a - a - c", ], x[1, ] - x[2, ])
  expect_identical(m["a - c - b", ], x[2, ] - x[3, ])
})

test_that("a name that several have is an error, and others are found", {
  x <- small(5)
  rownames(x) <- c("ARF1", "BCAR1", "ARF1", "ESR1", "ARF1 - ESR1")
  m <- metafeatures(x, "-")
  expect_identical(m["BCAR1 - ARF1", ], x[2, ] - x[3, ])
  expect_identical(m["ARF1 - ARF1", ], x[1, ] - x[3, ])
  # One of the two pairs with this name is kept.
  expect_identical(m[c(2, 8), ]["ARF1 - ESR1", ], x[1, ] - x[4, ])
  many <- rep(rownames(m)[c(2, 4)], 600)
  expect_identical(fsknn:::find_metafeatures(m, many), rep(c(2L, 4L), 600))
  expect_messages({
    m["ARF1 - BCAR1", ][[1]] + m["ARF1", ]
    m["ARF1 - ESR1", ]
    m[c(many, "ARF1"), ]
    nearest_to(m, "ARF1", k = 1)
    add_phenotype(m, 1:9, "BCAR1 - ARF1")
  })
})
