first_columns <- function(nn, k) {
  lapply(nn, function(part) part[, seq_len(k), drop = FALSE])
}

test_that("the exact answer has all neighbours right", {
  nn <- find_knn(random_matrix(50, 5), 6)
  same <- knn_recall(nn, nn)
  expect_identical(same$recall, 1)
  expect_identical(same$at_most, 1)
  expect_identical(same$perfect, 1)
  expect_identical(same$per_point$recall, rep(1, 50))
})

test_that("recall is the share of right neighbours, point by point", {
  nn <- find_knn(random_matrix(50, 5), 8)
  approx <- first_columns(nn, 4)
  approx$index[1:10, 4] <- nn$index[1:10, 5]
  approx$index[1, 3] <- nn$index[1, 8]
  found <- knn_recall(approx, nn)
  expect_identical(found$per_point$recall, c(0.5, rep(0.75, 9), rep(1, 40)))
  expect_identical(found$recall, (200 - 11) / 200)
  expect_identical(found$at_most, found$recall)
  expect_identical(found$perfect, 0.8)
  expect_identical(found$k, 4L)
  # The order does not count, a repeated neighbour does not count twice.
  turned <- list(index = approx$index[, 4:1])
  expect_identical(knn_recall(turned, nn)$recall, found$recall)
  approx$index[50, ] <- approx$index[50, 1]
  expect_identical(knn_recall(approx, nn)$per_point$recall[[50]], 0.25)
})

test_that("points that tie for the last place are all right", {
  # Points on a line: every point has neighbours in twos.
  x <- matrix(as.double(1:30))
  nn <- find_knn(x, 6, metric = "euclidean")
  approx <- first_columns(nn, 3)
  approx$index[10:20, 3] <- 10:20 + 2L # not 2 below, but as near
  all <- knn_recall(approx, nn)
  expect_identical(all$recall, 1)
  # With no more neighbours it can't be known.
  range <- knn_recall(approx, first_columns(nn, 3))
  expect_identical(range$recall, 1 - 11 / 90)
  expect_identical(range$at_most, 1)
  expect_identical(range$per_point$recall[[10]], 2 / 3)
  expect_snapshot(range)
  expect_snapshot(all)
})

test_that("any shape can be compared", {
  x <- random_matrix(60, 5)
  nn <- find_knn(x, 5, metric = "euclidean")
  for (shape in c("FNN", "uwot", "RANN", "dbscan", "edges")) {
    expect_identical(knn_recall(convert_knn(nn, shape), nn)$recall, 1)
  }
  expect_identical(knn_recall(knn_graph(x, 3), find_knn(x, 5))$recall, 1)
})

test_that("a real approximate search is less than perfect", {
  skip_if_not_installed("RcppAnnoy")
  x <- random_matrix(400, 10)
  annoy <- methods::new(RcppAnnoy::AnnoyEuclidean, 10)
  annoy$setSeed(1)
  for (i in 1:400) annoy$addItem(i - 1, x[i, ])
  annoy$build(2)
  found <- vapply(
    1:400, function(i) annoy$getNNsByItem(i - 1, 11) + 1, double(11)
  )
  approx <- suppressWarnings(as_knn(t(found), self = TRUE))
  recall <- knn_recall(approx, find_knn(x, 12, metric = "euclidean"))
  expect_gt(recall$recall, 0.2)
  expect_lt(recall$recall, 1)
  truth <- find_knn(x, 10, metric = "euclidean")$index
  expect_equal(
    recall$per_point$recall,
    vapply(1:400, function(i) mean(approx$index[i, ] %in% truth[i, ]), 0)
  )
})

test_that("isolated points are left out of it", {
  x <- random_matrix(30, 5)
  x[3, ] <- 1
  nn <- find_knn(x, 4, constant = "isolate")
  found <- knn_recall(nn, nn)
  expect_identical(found$num_points, 29L)
  expect_identical(found$recall, 1)
  expect_identical(found$per_point$recall[[3]], NA_real_)
})

test_that("what can't be compared is an error", {
  nn <- find_knn(random_matrix(20, 4), 4)
  expect_snapshot(error = TRUE, {
    knn_recall(nn, first_columns(nn, 3))
    knn_recall(nn, find_knn(random_matrix(19, 4), 4))
    knn_recall(nn, list(index = nn$index))
    knn_recall(find_within(random_matrix(20, 4), 0.5), nn)
    knn_recall(1, nn)
  })
})
