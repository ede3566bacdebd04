test_that("edges are the neighbours, in order of point, then rank", {
  x <- random_matrix(30, 6)
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(x, metric)
    edges <- knn_graph(x, 4, metric, sign, backend = backend)
    found <- knn_search(x, 4, metric, sign, backend = backend)
    expect_identical(edges$from, rep(1:30, each = 4))
    expect_identical(edges$to, as.vector(t(found$index)))
    expect_identical(edges$rank, rep(1:4, times = 30))
    expect_identical(edges$distance, as.vector(t(found$distance)))
  })
})

test_that("correlations carry the signed r, overlaps a similarity", {
  x <- random_matrix(30, 6)
  for_all_metrics(function(metric, sign, backend) {
    edges <- knn_graph(
      values_for(x, metric), 4, metric, sign, backend = backend
    )
    columns <- c("from", "to", "rank", "distance")
    if (!is_correlation(metric)) {
      own <- metric %in% c("proportional", "sorensen", "jaccard", "ccc", "duo")
      alleles <- metric %in% c("ccc", "duo")
      expect_named(
        edges, c(columns, if (own) "similarity", if (alleles) "alleles")
      )
      return()
    }
    expect_named(edges, c(columns, "correlation"))
    r <- (1 - naive_distance(x, metric = metric))[cbind(edges$from, edges$to)]
    expect_equal(edges$correlation, r, tolerance = 1e-12)
    of_r <- switch(
      sign,
      signed = 1 - edges$correlation,
      absolute = 1 - abs(edges$correlation),
      negative = 1 + edges$correlation
    )
    expect_identical(edges$distance, of_r)
  })
})

test_that("row names name the points", {
  x <- random_matrix(12, 5)
  plain <- knn_graph(x, 2)
  rownames(x) <- paste0("gene", 1:12)
  named <- knn_graph(x, 2)
  expect_identical(named$from, paste0("gene", plain$from))
  expect_identical(named$to, paste0("gene", plain$to))
  expect_identical(attr(named, "vertices"), data.frame(name = rownames(x)))
  expect_identical(attr(plain, "vertices"), data.frame(name = 1:12))
  expect_identical(knn_graph(as.data.frame(x), 2), named)
})

test_that("isolated points have no edges and stay in the vertices", {
  x <- random_matrix(12, 5)
  x[c(1, 7), ] <- 3
  rownames(x) <- letters[1:12]
  edges <- knn_graph(x, 2, constant = "isolate")
  expect_identical(nrow(edges), 20L)
  expect_false(any(c("a", "g") %in% c(edges$from, edges$to)))
  expect_identical(attr(edges, "vertices")$name, letters[1:12])
  expect_false(anyNA(edges))
})

test_that("nothing in the result depends on how it was computed", {
  x <- random_matrix(60, 6)
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(x, metric)
    expect_identical(
      knn_graph(x, 4, metric, sign, backend = backend, chunk_size = 16),
      knn_graph(x, 4, metric, sign, backend = "cpu", num_threads = 1)
    )
  })
})

test_that("igraph takes the edges as they are", {
  x <- random_matrix(12, 5)
  rownames(x) <- letters[1:12]
  edges <- knn_graph(x, 2)
  graph <- igraph::graph_from_data_frame(
    edges, vertices = attr(edges, "vertices")
  )
  expect_identical(igraph::V(graph)$name, letters[1:12])
  expect_equal(igraph::ecount(graph), 24)
  expect_setequal(
    igraph::edge_attr_names(graph), c("rank", "distance", "correlation")
  )
})

test_that("names that can't name points are an error", {
  x <- random_matrix(8, 5)
  rownames(x) <- c("a", "b", "a", "c", "b", "d", "d", "e")
  few <- few_missing <- x
  rownames(few) <- c("a", "a", letters[3:8])
  rownames(few_missing) <- c("a", NA, "", letters[4:8])
  many <- x[rep(1:8, 2), ]
  expect_messages({
    knn_graph(x, 2)
    knn_graph(few, 2)
    knn_graph(few_missing, 2)
    knn_graph(many, 2)
  })
})

test_that("more edges than a data frame can hold are an error", {
  x <- matrix(as.double(1:50000))
  expect_messages(knn_graph(x, 49999, "euclidean"))
})
