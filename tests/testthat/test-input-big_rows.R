test_that("a big.matrix is turned, and its features chosen, when it is read", {
  skip_if_not_installed("bigmemory")
  x <- random_matrix(9, 5)
  dimnames(x) <- list(paste0("s", 1:9), letters[1:5])
  rows <- fsknn:::big_rows(bigmemory::as.big.matrix(x))
  expect_same <- function(view, plain) {
    expect_equal(dim(view), dim(plain))
    expect_identical(dimnames(view), dimnames(plain))
    expect_identical(view[2:1, ], plain[2:1, ])
    expect_identical(view[3, 2, drop = FALSE], plain[3, 2, drop = FALSE])
  }
  expect_same(rows, x)
  expect_same(rows[, c(4, 1, 2)], x[, c(4, 1, 2)])
  expect_same(rows[, c(4, 1, 2)][, 2:3], x[, 1:2])
  expect_same(t(rows), t(x))
  expect_same(t(rows)[, c(9, 1, 2)], t(x)[, c(9, 1, 2)])
  plain <- fsknn:::big_rows(bigmemory::as.big.matrix(unname(x)))
  expect_null(rownames(t(plain)[, 1:2]))
  expect_null(colnames(t(plain)[, 1:2]))
})

test_that("columns of a big.matrix can be the points", {
  skip_if_not_installed("bigmemory")
  x <- random_matrix(9, 140)
  rownames(x) <- paste0("s", 1:9)
  colnames(x) <- paste0("g", 1:140)
  expected <- knn_graph(x, 3, points = "columns")
  query <- random_matrix(9, 30, seed = 2)
  found <- knn_query(x, query, 3, points = "columns")
  big <- bigmemory::as.big.matrix(x)
  big_query <- bigmemory::as.big.matrix(query)
  weights <- c(0, 1, 2, 3, 0, 1, 1, 1, 2)
  for (max_memory in c(1e9, 1e3)) {
    expect_identical(
      knn_graph(big, 3, points = "columns", max_memory = max_memory), expected
    )
    expect_identical(
      knn_query(big, big_query, 3, points = "columns", max_memory = max_memory),
      found
    )
    expect_identical(
      nearest_to(
        big, "g7", 3, points = "columns", weights = weights,
        max_memory = max_memory
      ),
      nearest_to(x, "g7", 3, points = "columns", weights = weights)
    )
  }
  expect_identical(
    format(knn_plan(big, 3, points = "columns")),
    format(knn_plan(x, 3, points = "columns"))
  )
})

test_that("a big.matrix whose data are gone is an error, not the end of R", {
  skip_if_not_installed("bigmemory")
  big <- bigmemory::as.big.matrix(random_matrix(9, 5))
  gone <- unserialize(serialize(big, NULL))
  # R itself would crash, so this needs another process.
  child <- start_child(c(
    sprintf("gone <- unserialize(as.raw(c(%s)))",
            paste(as.integer(serialize(big, NULL)), collapse = ", ")),
    "tried <- list(",
    "  quote(knn_search(gone, 2)), quote(knn_plan(gone, 2)),",
    "  quote(knn_graph(gone, 2, points = 'columns')),",
    "  quote(knn_query(matrix(sin(1:45), 9), gone, 2)),",
    "  quote(mdl_filter(gone, c(1, 2))), quote(mst_knn(gone))",
    ")",
    "say(vapply(tried, function(call) {",
    "  tryCatch(eval(call), error = function(err) class(err)[[1]])",
    "}, ''))"
  ))
  expect_identical(said_by(child), rep("fsknn_argument_error", 6))
  expect_messages(knn_search(gone, 2))
})
