# Data of 0 and 1 are searched in bits on the CPU. Other data with identical
# distances serve as the reference: twice the matrix under proportional, plus 1
# under manhattan.

binary_matrix <- function(n, d, seed) {
  x <- withr::with_seed(seed, matrix(as.double(stats::runif(n * d) < 0.15), n))
  x[rowSums(x) == 0, d] <- 1
  x[seq(1, n, 9), ] <- x[rep(2, length(seq(1, n, 9))), ]
  x
}

# Compares verb(bits) with verb(the others) for each such metric.
expect_as_numbers <- function(verb) {
  for (metric in c("sorensen", "proportional")) {
    expect_identical(
      verb(function(x) x, metric), verb(function(x) 2 * x, "proportional")
    )
  }
  expect_identical(
    verb(function(x) x, "manhattan"), verb(function(x) x + 1, "manhattan")
  )
}

values_of <- function(found) {
  lapply(unclass(found)[c("index", "distance")], unname)
}

test_that("bits give the neighbours of numbers, by whatever way they come", {
  x <- binary_matrix(230, 70, seed = 1)
  query <- binary_matrix(40, 70, seed = 2)
  block <- rep(1:3, length.out = 230)
  expect_as_numbers(function(of, metric) {
    search <- function(x, ..., verb = knn_search) {
      values_of(verb(x, ..., metric = metric, backend = "cpu"))
    }
    list(
      search(of(x), 7),
      search(of(x), 229),
      search(t(of(x)), 7, points = "columns"),
      search(of(x), of(query), 7, verb = knn_query),
      search(of(x), 3, block = block),
      search(of(x), 3, block = block, between = TRUE),
      search(of(x), 7, subset = c(5, 99, 230))
    )
  })
})

test_that("bits are found in any storage, and in blocks of a file", {
  skip_if_not_installed("DelayedArray")
  x <- binary_matrix(1700, 203, seed = 3)
  for (metric in c("jaccard", "manhattan")) {
    search <- function(x, ...) {
      values_of(knn_search(x, 5, metric, backend = "cpu", ...))
    }
    whole <- search(x)
    logical <- x == 1
    integer <- x
    storage.mode(integer) <- "integer"
    expect_identical(search(logical), whole)
    expect_identical(search(integer), whole)
    expect_identical(
      search(DelayedArray::DelayedArray(x), max_memory = 1.2e6), whole
    )
    expect_true(knn_stats()$streamed)
  }
})

test_that("bits give the trees, ranges and histograms of numbers", {
  x <- binary_matrix(150, 65, seed = 4)
  expect_as_numbers(function(of, metric) {
    near <- values_of(knn_search(of(x), 9, metric, backend = "cpu"))
    limit <- near$distance[[75, 4]] # the exact distance of some pairs
    tree <- mst_knn(of(x), k = 4, metric = metric, backend = "cpu")
    counts <- pair_histogram(
      of(x), c(0, limit, max(near$distance)), metric, value = "distance"
    )
    within <- within_search(of(x), limit, metric, backend = "cpu")
    list(
      tree$membership,
      lapply(tree[c("edges", "tree")], function(edges) {
        as.list(edges)[c("from", "to", "distance")]
      }),
      counts[c("counts", "above", "pairs")],
      lapply(unclass(within)[c("index", "distance")], unlist)
    )
  })
})

test_that("pairs of rows of 0 and 1 are counted without their doubles", {
  x <- binary_matrix(120, 65, seed = 5)
  ask <- function(x, ...) pair_histogram(x, c(0, 0.5, 1), ..., backend = "cpu")
  expect_identical(ask(x, "jaccard", value = "distance")$exact, 0)
  expect_gt(ask(2 * x, "proportional", value = "distance")$exact, 0)
})

test_that("bits leave the neighbours that 16 bits leave, by length 1", {
  x <- binary_matrix(300, 90, seed = 6)
  x <- x[rowSums(x) < 90, ]
  query <- binary_matrix(40, 90, seed = 7)
  other <- replace(query, 5, 0.5)
  found <- function(ask, bits, metric, sign) {
    withr::local_options(fsknn.instruction_set = ask)
    graph <- knn_graph(x, 7, metric, sign = sign, backend = "cpu")
    expect_identical(knn_stats()$filter_bits, bits)
    limit <- graph$distance[[2000]]
    list(
      graph,
      knn_query(x, query, 7, metric, sign = sign, backend = "cpu"),
      knn_query(x, other, 7, metric, sign = sign, backend = "cpu"),
      within_search(x, limit, metric, sign = sign, backend = "cpu"),
      as.list(mst_knn(
        x, k = 3, metric = metric, sign = sign, backend = "cpu"
      )$tree)[c("from", "to", "distance")],
      knn_search(
        x, 3, metric, sign = sign, block = rep(1:3, length.out = nrow(x)),
        backend = "cpu"
      )
    )
  }
  for (metric in c("pearson", "spearman", "cosine")) {
    signs <- if (metric == "cosine") "signed" else c("signed", "absolute")
    for (sign in signs) {
      expect_identical(
        found("auto", 1L, metric, sign), found("auto/16", 16L, metric, sign),
        label = paste(metric, sign)
      )
    }
  }
})
