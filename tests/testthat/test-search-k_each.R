cut_rows <- function(found, k) {
  rows <- seq_along(k)
  as_neighbours(list(
    index = lapply(rows, function(i) found$index[i, seq_len(k[[i]])]),
    distance = lapply(rows, function(i) found$distance[i, seq_len(k[[i]])])
  ))
}

test_that("a k for each point gives the first of each row, as lists", {
  x <- random_matrix(50, 6)
  k <- rep(c(3, 0, 7, 1, 49), 10)
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(x, metric)
    all <- knn_search(x, 49, metric, sign)
    expect_identical(
      knn_search(x, k, metric, sign, backend = backend), cut_rows(all, k)
    )
  })
  all <- knn_search(x, 7)
  few <- c(9, 2, 30)
  expect_identical(
    knn_search(x, c(2L, 0L, 7L), subset = few),
    cut_rows(lapply(all, function(m) m[few, ]), c(2, 0, 7))
  )
  expect_identical(knn_search(x, rep(0, 50))$index, rep(list(integer()), 50))
})

test_that("rows are cut where they are, or not at all", {
  cut <- function(k, distance = matrix(0, 2, 3)) {
    fsknn:::cpp_cut_rows(matrix(1:6, 2), distance, k)
  }
  expect_identical(cut(c(3, 0))$index, list(c(1L, 3L, 5L), integer()))
  for (k in list(c(4, 0), c(-1, 0), c(NA, 0), c(Inf, 0), c(NaN, 1), 1, 1:3)) {
    expect_error(cut(k), "not so long")
  }
  expect_error(cut(c(1, 1), matrix(0, 2, 2)), "not so long")
  expect_error(cut(c(1, 1), matrix(0, 1, 3)), "not so long")
})

test_that("I() of one number makes lists of one point's neighbours", {
  x <- random_matrix(20, 5)
  expect_type(knn_search(x, I(rep(2, 20)))$index, "list")
  expect_identical(
    knn_search(x, I(4), subset = 3)$index, list(knn_search(x, 4)$index[3, ])
  )
  expect_true(is.matrix(knn_search(x, 4, subset = 3)$index))
})

test_that("queries have a k each, too", {
  x <- random_matrix(30, 5)
  query <- random_matrix(4, 5, seed = 2)
  k <- c(30, 1, 0, 2)
  expect_identical(knn_query(x, query, k), cut_rows(knn_query(x, query, 30), k))
})

test_that("points with too few neighbours have vectors as short as these", {
  x <- random_matrix(20, 5)
  x[3, ] <- 0
  found <- knn_search(x, rep(2:3, 10), constant = "isolate")
  expect_identical(found$index[[3]], integer())
  expect_identical(found$distance[[3]], double())
  expect_identical(lengths(found$index[-3]), rep(2:3, 10)[-3])
  x[2, 1:4] <- NA # one column in common with any
  told <- rlang::catch_cnd(
    found <- knn_search(
      x, rep(2:3, 10), "euclidean", na = "pairwise", min_pairs = 2
    ),
    "fsknn_short_rows"
  )
  expect_match(rlang::cnd_message(told), "Its neighbours are shorter vectors")
  found <- suppressMessages(knn_search(
    x, rep(2:3, 10), "euclidean", na = "pairwise", min_pairs = 2
  ))
  expect_identical(found$index[[2]], integer())
  expect_false(anyNA(unlist(found)))
})

test_that("a k for each point that is none is an error", {
  x <- random_matrix(20, 5)
  expect_messages({
    knn_search(x, c(1, 2))
    knn_search(x, rep(c(2, -1), 10))
    knn_search(x, rep(c(2, 20), 10))
    knn_search(x, rep(c(2, 0.5, NA, 1), 5))
    knn_query(x, x[1:3, ], 1:2)
    knn_graph(x, rep(2, 20))
  })
})
