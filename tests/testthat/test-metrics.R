test_that("each metric has one complete row", {
  table <- fsknn:::metric_table()
  expect_identical(anyDuplicated(table$name), 0L)
  expect_false(anyNA(table))
  expect_true(all(
    table$similarity %in% c("correlation", "complement", "reciprocal")
  ))
  expect_true(all(table$undefined_rows %in% c("constant", "zero", "none")))
  # What has a sign is a correlation, and the other way round.
  expect_identical(table$has_sign, table$similarity == "correlation")
})

test_that("the core knows every metric and sign of the table", {
  x <- random_matrix(6, 4)
  for_all_metrics(function(metric, sign, backend) {
    expect_no_error(
      find_knn(values_for(x, metric), 2, metric, sign, backend = backend)
    )
  })
})

test_that("the naive reference knows every metric", {
  for (metric in fsknn:::metric_table()$name) {
    expect_false(
      is.null(naive_distance(matrix(c(1, 2, 4, 3), 2), metric = metric)),
      label = metric
    )
  }
})

test_that("the help page names every metric", {
  expect_identical(
    eval(formals(find_knn)$metric), fsknn:::metric_table()$name[[1]]
  )
})
