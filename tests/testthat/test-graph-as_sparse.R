test_that("a sparse matrix has each edge in its row and column", {
  skip_if_not_installed("Matrix")
  x <- random_matrix(40, 5)
  edges <- knn_graph(x, 4)
  for (value in c("distance", "rank", "correlation", "one", "similarity")) {
    m <- as_sparse(edges, value)
    expect_s4_class(m, "dgCMatrix")
    expect_true(methods::validObject(m))
    dense <- matrix(0, 40, 40)
    dense[cbind(edges$from, edges$to)] <- switch(
      value, one = 1, similarity = edges$correlation, edges[[value]]
    )
    expect_equal(as.matrix(m), dense, ignore_attr = TRUE)
  }
  expect_identical(as_sparse(edges), as_sparse(edges, "distance"))
  expect_identical(as_sparse(knn_search(x, 4)), as_sparse(edges))
})

test_that("undirected edges are there both ways, and zeros stay", {
  skip_if_not_installed("Matrix")
  x <- random_matrix(30, 5)[rep(1:15, 2), ]
  rownames(x) <- paste0("gene", 1:30)
  edges <- threshold_graph(x, 0.5)
  m <- as_sparse(edges)
  expect_equal(length(m@x), 2 * nrow(edges))
  expect_gt(sum(m@x == 0), 0)
  expect_identical(dimnames(m), list(rownames(x), rownames(x)))
  expect_true(Matrix::isSymmetric(m))
  snn <- as_sparse(snn_graph(knn_search(x, 3), "number"))
  expect_equal(max(snn), max(snn_graph(knn_search(x, 3), "number")$similarity))
})

test_that("a symmetric matrix has the pairs of either direction, or of both", {
  skip_if_not_installed("Matrix")
  x <- random_matrix(40, 5)
  rownames(x) <- paste0("gene", 1:40)
  edges <- knn_graph(x, 4, "euclidean")
  plain <- as.matrix(as_sparse(edges))
  there <- plain > 0
  expected <- list(
    union = pmax(plain, t(plain)), mutual = plain * (there & t(there))
  )
  for (mode in names(expected)) {
    m <- as_sparse(edges, mode = mode)
    expect_s4_class(m, "dsCMatrix")
    expect_true(methods::validObject(m))
    expect_identical(as.matrix(m), expected[[mode]])
    expect_identical(as_sparse(knn_search(x, 4, "euclidean"),
                               mode = mode)@x, m@x)
  }
  expect_identical(as_sparse(edges, mode = "directed"), as_sparse(edges))
  ones <- as_sparse(edges, "one", mode = "union")
  expect_identical(as.matrix(ones) == 1, expected$union > 0)
  # These edges are already undirected.
  pairs <- threshold_graph(x, 0.3)
  expect_identical(
    as.matrix(as_sparse(pairs, mode = "union")),
    as.matrix(as_sparse(pairs))
  )
  expect_messages(as_sparse(edges, mode = TRUE))
})

test_that("destiny makes a diffusion map of it", {
  skip_if_not_installed("destiny")
  skip_if_not_installed("Matrix")
  x <- random_matrix(120, 6)
  m <- as_sparse(knn_graph(x, 10, "euclidean"), mode = "union")
  map <- function(...) {
    suppressWarnings(destiny::DiffusionMap(..., n_eigs = 3, sigma = 2))
  }
  expect_equal(
    destiny::eigenvalues(map(distance = m)),
    destiny::eigenvalues(map(x, k = 10))
  )
})

test_that("shards have the similarities of the edges of their search", {
  skip_if_not_installed("Matrix")
  skip_if_not_installed("DelayedArray")
  x <- random_matrix(40, 5)
  of_shards <- function(metric, sign, ...) {
    as_sparse(
      knn_search(x, 4, metric, sign, output = knn_output(
        tempfile(), "bin", shard_rows = 15, precision = "double"
      )), ...
    )
  }
  for (sign in c("signed", "absolute", "negative")) {
    edges <- knn_graph(x, 4, "pearson", sign)
    for (mode in c("directed", "union")) {
      expect_equal(
        of_shards("pearson", sign, "similarity", mode = mode),
        as_sparse(edges, "similarity", mode = mode),
        tolerance = 1e-14
      )
    }
    if (sign != "absolute") {
      expect_equal(
        of_shards("pearson", sign, "correlation"),
        as_sparse(edges, "correlation"), tolerance = 1e-14
      )
    }
  }
  for (metric in c("euclidean", "cosine")) {
    expect_identical(
      of_shards(metric, "signed", "similarity"),
      as_sparse(knn_graph(x, 4, metric), "similarity")
    )
  }
  # r itself can't be computed from 1 - |r|, and an inner product is not a
  # length.
  expect_wrong(of_shards("pearson", "absolute", "correlation"), "correlation")
  expect_wrong(
    of_shards("inner_product", "signed", "similarity"), "no similarity"
  )
})

test_that("an edge that is there twice is an error", {
  skip_if_not_installed("Matrix")
  x <- random_matrix(20, 4)
  rownames(x) <- paste0("gene", 1:20)
  edges <- knn_graph(x, 3)
  pairs <- threshold_graph(x, 0.2)
  turned <- pairs[5, ]
  turned[c("from", "to")] <- turned[c("to", "from")]
  nn <- knn_search(x, 3)
  nn$index[c(4, 9), 2] <- nn$index[c(4, 9), 1]
  expect_messages({
    as_sparse(rbind(edges, edges[1, ]))
    as_sparse(rbind(pairs, turned))
    as_sparse(nn)
  })
})

test_that("neighbours with the points themselves are told the way out", {
  skip_if_not_installed("Matrix")
  nn <- knn_search(random_matrix(20, 4), 3)
  own <- cbind(1:20, nn$index)
  expect_messages(as_sparse(own))
  expect_identical(as_sparse(as_knn(own, self = TRUE)), as_sparse(nn["index"]))
})

test_that("a value that is no column is an error", {
  skip_if_not_installed("Matrix")
  edges <- knn_graph(random_matrix(10, 4), 2)
  expect_messages({
    as_sparse(edges, "weight")
    as_sparse(data.frame(a = 1))
    as_sparse(data.frame(from = 1, to = 2))
  })
})

test_that("a similarity of neighbours without a metric is refused in words", {
  skip_if_not_installed("Matrix")
  error <- expect_wrong(
    as_sparse(knn_search(random_matrix(12, 5), 3), "similarity")
  )
  expect_match(conditionMessage(error), "`value = \"similarity\"` needs")
  expect_match(conditionMessage(error), "the edges of `knn_graph()`",
               fixed = TRUE)
  edges <- knn_graph(random_matrix(12, 5), 3)
  attr(edges, "metric") <- NULL
  error <- expect_error(as_sparse(edges, "similarity"))
  expect_match(conditionMessage(error), "attr(edges, \"metric\") <-",
               fixed = TRUE)
  attr(edges, "metric") <- "pearson"
  edges$correlation <- NULL
  expect_error(
    as_sparse(edges, "similarity"),
    "`value = \"similarity\"` needs a numeric column `correlation`"
  )
})
