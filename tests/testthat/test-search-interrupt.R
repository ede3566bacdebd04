# Calls that are interrupted by the signal of Ctrl-C. They must end within a
# second of two threads.

test_that("Ctrl-C stops a search within a second, with a bar shown", {
  expect_interrupted(
    "x <- matrix(rnorm(120000 * 100), ncol = 100)",
    "knn_search(x, k = 200, num_threads = 2, progress = TRUE, backend = 'cpu')",
    delay = 1.5
  )
})

test_that("Ctrl-C stops a search under each metric", {
  table <- fsknn:::metric_table()
  # Sums of differences, and bits; the long suite has all metrics.
  metrics <- if (is_long()) table$name else c("manhattan", "jaccard")
  for (metric in metrics) {
    values <- if (table$levels[table$name == metric]) {
      "x <- matrix(stats::rbinom(100000 * 300, 1, 0.4), ncol = 300)"
    } else {
      "x <- abs(matrix(rnorm(100000 * 100), ncol = 100))"
    }
    expect_interrupted(
      values,
      sprintf("knn_search(x, 100, '%s', backend = 'cpu')", metric)
    )
  }
})

test_that("Ctrl-C stops what is done to one row of millions of features", {
  setup <- "x <- matrix(rnorm(3 * 8e6), 3)"
  # The signal comes while rows are ranked, each for seconds.
  expect_interrupted(
    setup, "knn_search(x, 1, 'spearman', num_threads = 1, backend = 'cpu')",
    delay = 2
  )
  # The signal comes while pairs are filtered and computed, which takes long.
  expect_interrupted(
    "x <- matrix(rnorm(48 * 4e5), 48)",
    "knn_search(x, 40, num_threads = 1, backend = 'cpu')"
  )
})

test_that("Ctrl-C stops queries, few and many", {
  expect_interrupted(
    "x <- matrix(rnorm(150000 * 100), ncol = 100)",
    "knn_query(x, x[1:60000, ], k = 100, backend = 'cpu')"
  )
  # There are correlations with very many neighbours of one point.
  expect_interrupted(
    "x <- matrix(rnorm(4e5 * 50), ncol = 50)",
    "fsknn::nearest_to(x, 1, k = 399999, backend = 'cpu')"
  )
})

test_that("Ctrl-C stops a search for all pairs within a distance", {
  setup <- c(
    "x <- matrix(rnorm(60000 * 100), ncol = 100)",
    "x[sample(length(x), 6e5)] <- NA"
  )
  expect_interrupted(
    setup, "within_search(x, 0.1, na = 'pairwise', backend = 'cpu')"
  )
  # The signal comes while a sample estimates that there are too many.
  expect_interrupted(
    "x <- matrix(rnorm(1100 * 12000), 1100)",
    paste(
      "try(within_search(x, 1, max_memory = 9999, backend = 'cpu'),",
      "silent = TRUE)"
    )
  )
})

test_that("Ctrl-C stops metafeatures", {
  expect_interrupted(
    "m <- metafeatures(matrix(rnorm(300 * 60), 300))",
    "knn_search(m, k = 20, backend = 'cpu')", delay = 1.5
  )
})

test_that("Ctrl-C stops clusters and filters", {
  expect_interrupted(
    "x <- matrix(rnorm(60000 * 60), ncol = 60)",
    "mst_knn(x, backend = 'cpu')", delay = 4
  )
  expect_interrupted(
    c("x <- matrix(rnorm(20000 * 300), ncol = 300)",
      "class <- rep(c('a', 'b'), 150)"),
    "mdl_filter(x, class)"
  )
  # test-study-alpha_beta_k.R has its search and its solver.
})

test_that("Ctrl-C stops files of many edges while they are written", {
  setup <- c(
    "x <- matrix(rnorm(2e4 * 3), ncol = 3)",
    "edges <- knn_graph(x, k = 200, backend = 'cpu')"
  )
  expect_interrupted(setup, "write_knn(edges, file.path(tempdir(), 'a.knn'))")
})

test_that("Ctrl-C stops splits, and workers with them", {
  setup <- "x <- matrix(rnorm(100000 * 50), ncol = 50)"
  expect_interrupted(
    setup,
    paste(
      "knn_search(x, 100, backend = 'cpu',",
      "checkpoint = file.path(tempdir(), 'c'))"
    )
  )
  skip_if_not_installed("BiocParallel")
  expect_interrupted(
    setup,
    "knn_search(x, 100, BPPARAM = BiocParallel::MulticoreParam(2))", delay = 2
  )
})
