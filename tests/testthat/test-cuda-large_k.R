# Lists of many neighbours. A block of threads cuts their candidates, and a pair
# that is in two lists is computed once for both. Results are sorted by buckets,
# or fully if too many are near-duplicates.

num_points <- 4600

expect_same_lists <- function(x, k, metric, ..., label = NULL) {
  # The GPU runs last, because knn_stats() describes the last search.
  on_cpu <- knn_search(x, k, metric, backend = "cpu", ...)
  on_gpu <- knn_search(x, k, metric, backend = "cuda", ...)
  label <- paste(c(label, metric, "k =", k), collapse = " ")
  expect_identical(on_gpu, on_cpu, label = label)
  expect_true(knn_stats()$filtered, label = label)
}

test_that("long lists are the CPU's at every length where ways part", {
  skip_if_no_cuda()
  x <- random_matrix(num_points, 40, seed = 81)
  x[4001:4200, ] <- x[1:200, ]
  lengths <- c(32, 33, 63, 64, 65, 128, 256, 257, 512, 513, 1000, 1024, 1025)
  for (bits in c("auto/8", "auto/16")) {
    withr::local_options(fsknn.instruction_set = bits)
    for (k in lengths) {
      expect_same_lists(x, k, "pearson", label = bits)
    }
  }
  withr::local_options(fsknn.instruction_set = "auto/16")
  for (metric in c("euclidean", "manhattan", "inner_product", "chebyshev")) {
    for (k in c(33, 128, 300, 1024)) {
      expect_same_lists(x, k, metric)
    }
  }
  for (metric in c("proportional", "jaccard")) {
    expect_same_lists(values_for(x, metric), 400, metric)
  }
  expect_same_lists(x, 2048, "pearson")
})

test_that("long lists of ties, copies and far points are the CPU's", {
  skip_if_no_cuda()
  withr::local_options(fsknn.instruction_set = "auto/16")
  whole <- small_integers(num_points, 12, largest = 2, seed = 82)
  x <- random_matrix(num_points, 30, seed = 83)
  copies <- x[rep(1:46, 100), ]
  shifted <- x
  shifted[1:2000, ] <- shifted[1:2000, ] + 1e6
  huge <- replace(x, cbind(1:300, rep(1:30, length.out = 300)), 1e40)
  # One point is near all others and in every list; most are in few.
  hub <- x + rep(abs(random_matrix(1, num_points, seed = 84))^3, 30)
  hub[1:40, ] <- 0.01 * x[1:40, ]
  sets <- list(
    "whole numbers" = whole, "copies" = copies, "shifted" = shifted,
    "huge entries" = huge, "hubs" = hub
  )
  for (set in names(sets)) {
    for (k in c(40, 128, 300, 1024)) {
      expect_same_lists(sets[[set]], k, "euclidean", label = set)
    }
    expect_same_lists(sets[[set]], 1000, "manhattan", label = set)
  }
})

test_that("long lists of queries, subsets and blocks are the CPU's", {
  skip_if_no_cuda()
  withr::local_options(fsknn.instruction_set = "auto/16")
  x <- random_matrix(num_points, 30, seed = 85)
  query <- random_matrix(700, 30, seed = 86)
  for (k in c(100, 300, 1024)) {
    expect_identical(
      knn_query(x, query, k, "pearson", backend = "cuda"),
      knn_query(x, query, k, "pearson", backend = "cpu"),
      label = paste("queries, k =", k)
    )
  }
  block <- rep(c("a", "b"), length.out = num_points)
  for (k in c(40, 300)) {
    expect_same_lists(x, k, "pearson", block = block, label = "blocks")
  }
})
