test_that("the scan finds what checks ask for", {
  x <- rbind(c(1, 2, -3), c(0, 0, 0), c(5, 5, 5), c(NA, -Inf, 1))
  scan <- fsknn:::cpp_scan(x, 1L)
  expect_equal(scan$non_finite, 2)
  expect_equal(scan$non_finite_at, rbind(c(4, 1), c(4, 2)))
  expect_identical(scan$zero, 2L)
  expect_identical(scan$constant, 2:3)
  expect_equal(scan$negative_at[1, ], c(1, 3))
})
