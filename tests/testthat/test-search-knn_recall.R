first_columns <- function(nn, k) {
  lapply(nn, function(part) part[, seq_len(k), drop = FALSE])
}

# Returns the maximum number of `given` in any choice of the k nearest. Ties are
# chosen freely among the known points and, for `at_most`, the other points of
# `given`.
naive_hits <- function(given, known, distance, k, at_most) {
  last <- sort(distance)[k]
  nearer <- known[distance < last]
  tied <- known[distance == last]
  if (at_most && max(distance) == last) {
    tied <- c(tied, setdiff(given, known))
  }
  fill <- utils::combn(length(tied), k - length(nearer), simplify = FALSE)
  max(vapply(fill, function(at) {
    length(intersect(given, c(nearer, tied[at])))
  }, 1L))
}

test_that("the exact answer has all neighbours right", {
  nn <- knn_search(random_matrix(50, 5), 6)
  same <- knn_recall(nn, nn)
  expect_identical(same$recall, 1)
  expect_identical(same$at_most, 1)
  expect_identical(same$perfect, 1)
  expect_identical(same$per_point$recall, rep(1, 50))
})

test_that("recall is the share of right neighbours, point by point", {
  nn <- knn_search(random_matrix(50, 5), 8)
  approx <- first_columns(nn, 4)
  approx$index[1:10, 4] <- nn$index[1:10, 5]
  approx$index[1, 3] <- nn$index[1, 8]
  found <- knn_recall(approx, nn)
  expect_identical(found$per_point$recall, c(0.5, rep(0.75, 9), rep(1, 40)))
  expect_identical(found$recall, (200 - 11) / 200)
  expect_identical(found$at_most, found$recall)
  expect_identical(found$perfect, 0.8)
  expect_identical(found$k, 4L)
  # The order does not matter, and a repeated neighbour counts once.
  turned <- list(index = approx$index[, 4:1])
  expect_identical(knn_recall(turned, nn)$recall, found$recall)
  approx$index[50, ] <- approx$index[50, 1]
  expect_identical(knn_recall(approx, nn)$per_point$recall[[50]], 0.25)
})

test_that("points that tie for the last place are all right", {
  # Points are on a line, so neighbours come in pairs with ties.
  x <- matrix(as.double(1:30))
  nn <- knn_search(x, 6, metric = "euclidean")
  approx <- first_columns(nn, 3)
  approx$index[10:20, 3] <- 10:20 + 2L # as near as 2 below
  all <- knn_recall(approx, nn)
  expect_identical(all$recall, 1)
  # Without further neighbours, it is unknown.
  range <- knn_recall(approx, first_columns(nn, 3))
  expect_identical(range$recall, 79 / 90)
  expect_identical(range$at_most, 1)
  expect_identical(range$per_point$recall[[10]], 2 / 3)
  expect_snapshot(range)
  expect_snapshot(all)
})

test_that("ties fill no more places than nearer points leave", {
  exact <- list(
    index = rbind(2:5, c(1L, 3:5), c(1:2, 4:5), c(1:3, 5L), 1:4),
    distance = rbind(c(1, 2, 2, 2), 1:4, 1:4, 1:4, 1:4)
  )
  approx <- first_columns(exact, 2)
  approx$index[1, ] <- 3:4 # both as near as the second, none the first
  found <- knn_recall(approx, exact)$per_point
  expect_identical(found$recall, c(0.5, 1, 1, 1, 1))
  expect_identical(found$at_most, found$recall)
  # Unknown ties do not count, either.
  found <- knn_recall(approx, first_columns(exact, 2))$per_point
  expect_identical(found$recall, c(0.5, 1, 1, 1, 1))
  expect_identical(found$at_most, found$recall)
})

test_that("recall is that of the best choice among many ties", {
  withr::local_seed(1)
  for (columns in c(4, 6, 8)) {
    x <- matrix(sample(0:2, 40 * 2, replace = TRUE), 40)
    exact <- knn_search(x, columns, metric = "manhattan")
    k <- sample(1:4, 40, replace = TRUE)
    # Most are near: any of the twelve nearest.
    near <- knn_search(x, 12, metric = "manhattan")$index
    index <- lapply(1:40, function(i) sample(near[i, ], k[i]))
    naive <- function(at_most) {
      vapply(1:40, function(i) {
        naive_hits(
          index[[i]], exact$index[i, ], exact$distance[i, ], k[i], at_most
        )
      }, 1L)
    }
    found <- knn_recall(list(index = index), exact)
    expect_identical(found$per_point$recall, naive(FALSE) / k)
    expect_identical(found$per_point$at_most, naive(TRUE) / k)
    expect_identical(found$recall, sum(naive(FALSE)) / sum(k))
    expect_identical(found$k, k)
    # Points with the same k form matrices.
    for (same in 1:4) {
      rows <- which(k == same)
      some <- lapply(exact, function(part) part[rows, , drop = FALSE])
      given <- list(index = do.call(rbind, index[rows]))
      expect_identical(
        knn_recall(given, some, queries = TRUE)$per_point$at_most,
        found$per_point$at_most[rows]
      )
    }
  }
})

test_that("points may each have their own k", {
  x <- random_matrix(50, 5)
  k <- rep(c(2, 4), 25)
  lists <- knn_search(x, k)
  exact <- knn_search(x, 6)
  found <- knn_recall(lists, lists)
  expect_identical(found$per_point$recall, rep(1, 50))
  expect_identical(found$k, as.integer(k))
  lists$index[[2]][3:4] <- exact$index[2, 5:6]
  lists$index[[3]] <- exact$index[3, 5:6]
  found <- knn_recall(lists, exact)
  expect_identical(found$per_point$recall, c(1, 0.5, 0, rep(1, 47)))
  expect_identical(found$recall, (150 - 4) / 150)
  expect_snapshot(found)
  # Neighbours within a distance are in any order, and some points have none.
  within <- within_search(x, 0.5)
  turned <- lapply(within, function(part) lapply(part, rev))
  found <- knn_recall(within, turned)
  expect_identical(found$recall, 1)
  expect_identical(found$num_points, sum(lengths(within$index) > 0))
  none <- list(index = rep(list(integer()), 50))
  expect_messages({
    knn_recall(exact, knn_search(x, k))
    knn_recall(none, exact)
    knn_recall(exact, list(index = none$index, distance = none$index))
  })
})

test_that("a point's missing neighbours are none to be found", {
  exact <- list(
    index = rbind(2:4, c(1L, 3L, NA), c(1L, NA, NA), c(NA, NA, NA)),
    distance = rbind(c(1, 1, 1), c(1, 1, NA), c(1, NA, NA), NA)
  )
  approx <- list(index = rbind(2:3, c(3L, 4L), c(1L, NA), c(NA, NA)))
  found <- knn_recall(approx, exact)
  expect_identical(found$per_point$recall, c(1, 0.5, 1, NA))
  expect_identical(found$per_point$at_most, found$per_point$recall)
  expect_identical(found$recall, 4 / 5)
  expect_identical(found$num_points, 3L)
})

test_that("the metric of the exact search is told", {
  x <- random_matrix(30, 6)
  exact <- knn_search(x, 4, "spearman", "negative")
  found <- knn_recall(knn_search(x, 4, "euclidean"), exact)
  expect_identical(found$metric, "spearman (negative)")
  expect_identical(
    format(found)[[3]], "Exact neighbours: spearman (negative)"
  )
  other <- knn_recall(exact, as_knn(exact))
  expect_null(other$metric)
  expect_length(format(other), 2)
})

test_that("queries and some of the points are compared as they are", {
  x <- random_matrix(100, 6)
  some <- knn_search(x, 3, metric = "euclidean", subset = 60:63)
  expect_identical(knn_recall(some, some)$recall, 1)
  some$index[2, 3] <- 2L # no neighbour of point 61
  whole <- knn_search(x, 4, metric = "euclidean", subset = 60:63)
  expect_identical(knn_recall(some, whole)$per_point$recall[[2]], 2 / 3)
  # The indices of `exact` show that row 1 is not point 1.
  wrong <- list(index = matrix(1:4, 4, 2))
  expect_identical(
    knn_recall(wrong, whole)$recall, mean(rowSums(whole$index == 1:4) > 0) / 2
  )
  queries <- knn_query(x, x[1:5, ], 3, metric = "euclidean")
  expect_identical(queries$index[, 1], 1:5)
  expect_identical(knn_recall(queries, queries)$recall, 1)
  # Without an index beyond the rows, the argument is needed.
  all <- knn_query(x, x, 3, metric = "euclidean")
  expect_identical(knn_recall(all, all, queries = TRUE)$recall, 1)
  expect_error(knn_recall(all, all), "queries = TRUE")
  # It is also needed for a shape that may contain the points themselves.
  there <- list(idx = queries$index, dist = queries$distance)
  expect_identical(knn_recall(there, queries, queries = TRUE)$recall, 1)
  expect_error(knn_recall(there, queries), "queries = TRUE")
  expect_messages({
    knn_recall(all, all)
    knn_recall(there, queries)
    knn_recall(knn_graph(x, 3), all, queries = TRUE)
    knn_recall(all, all, queries = 1)
  })
})

test_that("any shape can be compared", {
  x <- random_matrix(60, 5)
  nn <- knn_search(x, 5, metric = "euclidean")
  for (shape in c("FNN", "uwot", "RANN", "dbscan", "edges")) {
    expect_identical(knn_recall(as_knn(nn, shape), nn)$recall, 1)
  }
  expect_identical(knn_recall(knn_graph(x, 3), knn_search(x, 5))$recall, 1)
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
  recall <- knn_recall(approx, knn_search(x, 12, metric = "euclidean"))
  expect_gt(recall$recall, 0.2)
  expect_lt(recall$recall, 1)
  truth <- knn_search(x, 10, metric = "euclidean")$index
  expect_equal(
    recall$per_point$recall,
    vapply(1:400, function(i) mean(approx$index[i, ] %in% truth[i, ]), 0)
  )
})

test_that("isolated points are left out of it", {
  x <- random_matrix(30, 5)
  x[3, ] <- 1
  nn <- knn_search(x, 4, constant = "isolate")
  found <- knn_recall(nn, nn)
  expect_identical(found$num_points, 29L)
  expect_identical(found$recall, 1)
  expect_identical(found$per_point$recall[[3]], NA_real_)
})

test_that("what can't be compared is an error", {
  nn <- knn_search(random_matrix(20, 4), 4)
  expect_messages({
    knn_recall(nn, first_columns(nn, 3))
    knn_recall(nn, knn_search(random_matrix(19, 4), 4))
    knn_recall(nn, list(index = nn$index))
    knn_recall(within_search(random_matrix(20, 4), 0.5), nn)
    knn_recall(1, nn)
  })
})

test_that("what is no neighbour or no distance is an error", {
  nn <- knn_search(random_matrix(20, 4), 4)
  with <- function(part, value) {
    storage.mode(nn[[part]]) <- "double"
    nn[[part]][2, 3] <- value
    nn
  }
  expect_messages({
    knn_recall(with("index", NaN), nn)
    knn_recall(nn, with("index", NaN))
    knn_recall(with("index", -1), nn)
    knn_recall(with("index", 21), nn)
    knn_recall(nn, with("distance", NaN))
    knn_recall(nn, with("distance", NA))
    knn_recall(nn, with("distance", -0.5))
  })
  # A missing neighbour has no distance. An index beyond the points may be a
  # neighbour of queries.
  expect_identical(knn_recall(with("index", NA), nn)$per_point$recall[[2]], 0.75)
  found <- knn_recall(with("index", 21), nn, queries = TRUE)
  expect_identical(found$per_point$recall[[2]], 0.75)
})
