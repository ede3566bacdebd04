test_that("neighbours and distances are those of the naive reference", {
  x <- random_matrix(53, 9, seed = 21)
  query <- rbind(random_matrix(17, 9, seed = 22), x[5:7, ])
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(x, metric)
    query <- values_for(query, metric)
    for (k in c(1, 6, 53)) {
      found <- knn_query(x, query, k, metric, sign, backend = backend)
      expect_identical(dim(found$index), c(20L, as.integer(k)))
      expect_same_neighbours(
        found, naive_distance(query, x, metric, sign), metric
      )
      expect_same_bits(
        found, brute_force(x, query, k = k, metric = metric, sign = sign),
        label = paste(metric, sign, backend, k)
      )
    }
  })
})

test_that("the answer is the same for every chunk size and number of threads", {
  x <- small_integers(130, 6)
  query <- small_integers(75, 6, seed = 2)
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(x, metric)
    query <- values_for(query, metric)
    first <- knn_query(x, query, 9, metric, sign, backend = backend)
    for (chunk_size in c(16, 48, 1000)) {
      for (num_threads in 1:2) {
        again <- knn_query(
          x, query, 9, metric, sign, backend = backend,
          chunk_size = chunk_size, num_threads = num_threads
        )
        expect_same_bits(again, first)
      }
    }
  })
})

test_that("a point of x finds itself, and otherwise its neighbours in x", {
  x <- random_matrix(40, 21)
  for_all_metrics(function(metric, sign, backend) {
    if (sign != "signed") {
      return()
    }
    x <- values_for(x, metric)
    found <- knn_query(x, x, 5, metric, backend = backend)
    own <- knn_search(x, 4, metric, backend = backend)
    expect_identical(found$index[, 1], 1:40)
    expect_identical(found$index[, -1], own$index)
    expect_identical(found$distance[, -1], own$distance)
  })
})

test_that("x may have one row", {
  x <- random_matrix(1, 5)
  query <- random_matrix(7, 5, seed = 2)
  for_all_metrics(function(metric, sign, backend) {
    found <- knn_query(
      values_for(x, metric), values_for(query, metric), 1, metric, sign,
      backend = backend
    )
    expect_identical(found$index, matrix(1L, 7, 1))
  })
})

test_that("an isolated query has no neighbours, an isolated point is none", {
  x <- random_matrix(30, 5)
  query <- random_matrix(8, 5, seed = 2)
  for_all_metrics(function(metric, sign, backend) {
    if (fsknn:::metric_facts(metric)$undefined_rows == "none") {
      return()
    }
    x <- values_for(x, metric)
    query <- values_for(query, metric)
    x[c(2, 9), ] <- 0
    query[4, ] <- 0
    found <- knn_query(
      x, query, 28, metric, sign, constant = "isolate", backend = backend
    )
    expect_true(all(is.na(found$index[4, ])))
    expect_true(all(is.na(found$distance[4, ])))
    for (i in seq_len(8)[-4]) {
      expect_setequal(found$index[i, ], seq_len(30)[-c(2, 9)])
    }
    expect_same_bits(
      found,
      brute_force(
        x, query, k = 28, metric = metric, sign = sign, skip = c(2L, 9L),
        query_skip = 4L
      )
    )
  })
})

test_that("x and query may be stored differently", {
  x <- small_integers(30, 5)
  query <- small_integers(6, 5, seed = 2)
  expected <- knn_query(x, query, 4)
  storage.mode(x) <- "integer"
  expect_identical(knn_query(x, query, 4), expected)
  expect_identical(knn_query(x, as.data.frame(query), 4), expected)
})

test_that("a wrong query is an error that names it", {
  x <- random_matrix(20, 4)
  colnames(x) <- c("a", "b", "c", "d")
  expect_messages({
    knn_query(x, x[, 1:3])
    knn_query(unname(x), x[, 1:3])
    knn_query(x, x[0, ])
    knn_query(x, NULL)
    knn_query(x, "a")
    knn_query(x, x, k = 21)
    knn_query(x, x, k = 0)
    knn_query(x[0, ], x)
    knn_query(x)
    knn_query(x, replace(x, 3, NaN), k = 2)
    knn_query(x, rbind(x, 1), k = 2)
    knn_query(abs(x), replace(abs(x), 5, -2), k = 2, metric = "proportional")
    knn_query(x, x, k = 2, kk = 2)
  })
})

test_that("a row's distance from itself is 0, but for rounding where it is 1 - r", {
  x <- random_matrix(300, 19, seed = 9)
  for_all_metrics(function(metric, sign, backend) {
    if (sign == "negative" || fsknn:::is_allele_table(metric)) {
      return()
    }
    x <- values_for(x, metric)
    found <- knn_query(x, x, 1, metric, sign, backend = backend)
    one_less_r <- metric %in% c("pearson", "spearman", "bicor", "cosine")
    expect_lte(max(found$distance), if (one_less_r) 1e-15 else 0)
  })
})

test_that("the order of the rows changes no distance", {
  x <- random_matrix(300, 19, seed = 9)
  turned <- rev(seq_len(300))
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(x, metric)
    expect_identical(
      knn_search(x[turned, ], 5, metric, sign, backend = backend)$distance,
      knn_search(x, 5, metric, sign, backend = "cpu")$distance[turned, ]
    )
  })
})
