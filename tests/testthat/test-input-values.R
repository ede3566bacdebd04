test_that("the scan finds what checks ask for", {
  x <- rbind(c(1, 2, -3), c(0, 0, 0), c(5, 5, 5), c(NA, -Inf, 1))
  scan <- fsknn:::cpp_scan(x, 1L)
  expect_equal(scan$non_finite, 2)
  expect_equal(scan$non_finite_at, rbind(c(4, 1), c(4, 2)))
  expect_identical(scan$zero, 2L)
  expect_identical(scan$constant, 2:3)
  expect_equal(scan$negative_at[1, ], c(1, 3))
})

test_that("the error of missing values says what helps in this verb", {
  x <- random_matrix(10, 6)
  x[3, 4] <- NA
  words <- function(call) words_of(call, "fsknn_finite_error")
  filled <- "fill missing values in with `knn_impute(x)`"
  for (call in list(
    quote(knn_search(x, 2)), quote(knn_graph(x, 2, na = "error")),
    quote(within_search(x, 1)), quote(knn_query(x, x[1:2, ], 2))
  )) {
    told <- words(eval(call))
    expect_match(told, "Use `na = \"pairwise\"`", fixed = TRUE)
    expect_match(told, filled, fixed = TRUE)
  }
  for (call in list(
    quote(knn_search(x, 2, "cosine")), quote(mst_knn(x)),
    quote(module_summary(rep(1:2, 5), x)),
    quote(compare_neighbours(x, rep(1:2, 3), k = 2))
  )) {
    told <- words(eval(call))
    expect_match(told, "Use `na = \"mean\"`", fixed = TRUE)
    expect_match(told, filled, fixed = TRUE)
  }
  for (call in list(
    quote(metafeatures(x)), quote(mdl_filter(x, rep(1:2, 3)))
  )) {
    told <- words(eval(call))
    expect_match(told, "Fill missing values in with `knn_impute(x)`",
                 fixed = TRUE)
    expect_no_match(told, "na =", fixed = TRUE)
  }
  expect_match(
    words(knn_query(random_matrix(10, 6), x, 2)), "`knn_impute(query)`",
    fixed = TRUE
  )
  expect_no_match(words(knn_search(x > 0, 2, "jaccard")), "knn_impute")
  x[3, 4] <- Inf
  expect_no_match(words(knn_search(x, 2)), "knn_impute")
})

test_that("values are plain if no check reports or leaves out any", {
  x <- random_matrix(40, 9, seed = 4)
  cases <- list(
    x, abs(x), replace(x, 7, NA), replace(x, 7, -Inf), x > 0, 1L * (x > 0),
    replace(x > 0, 5, NA), replace(x, row(x) == 3, 2),
    replace(abs(x), row(x) == 3, 0), replace(x > 0, row(x) == 3, TRUE)
  )
  for_all_metrics(function(metric, sign, backend) {
    facts <- fsknn:::metric_facts(metric)
    for (values in cases) {
      points <- list(values = values)
      checked <- try(fsknn:::check_values(
        points, list(
          na = "error", metric = facts, num_threads = 1L, constant = "isolate"
        ), "x"
      ), silent = TRUE)
      plain <- is.list(checked) && length(checked$skip) == 0
      expect_identical(
        fsknn:::cpp_scan_plain(values, 1L, facts)$largest,
        if (plain) checked$largest else NA_real_
      )
    }
  })
})
