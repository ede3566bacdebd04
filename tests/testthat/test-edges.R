small_edges <- function() {
  index <- rbind(c(2L, 3L), c(1L, 4L), c(NA, NA), c(2L, 1L))
  distance <- rbind(c(0.5, 1), c(0.5, 0.75), c(NA, NA), c(0.75, 2))
  neighbours_to_edges <- fsknn:::neighbours_to_edges
  neighbours_to_edges(
    index, distance, names = c("a", "b", "c", "d"), metric = "euclidean",
    sign = "signed"
  )
}

test_that("matrices become edges, without those of isolated points", {
  edges <- small_edges()
  expect_s3_class(edges, c("knn_edges", "data.frame"), exact = TRUE)
  expect_identical(edges$from, c("a", "a", "b", "b", "d", "d"))
  expect_identical(edges$to, c("b", "c", "a", "d", "b", "a"))
  expect_identical(edges$rank, c(1L, 2L, 1L, 2L, 1L, 2L))
  expect_identical(edges$distance, c(0.5, 1, 0.5, 0.75, 0.75, 2))
  expect_identical(attr(edges, "k"), 2L)
})

test_that("no edges at all are still an edge data frame", {
  edges <- fsknn:::neighbours_to_edges(
    matrix(NA_integer_, 3, 2), matrix(NA_real_, 3, 2), metric = "pearson",
    sign = "signed"
  )
  expect_identical(nrow(edges), 0L)
  expect_identical(nrow(attr(edges, "vertices")), 3L)
  expect_snapshot(edges)
})

test_that("taking rows keeps what the edges know", {
  edges <- small_edges()
  kept <- attributes(edges)[c("vertices", "metric", "sign", "k")]
  for (part in list(edges[edges$rank == 1, ], head(edges, 2),
                    subset(edges, distance < 1), edges[order(edges$to), ],
                    edges[c("from", "to", "distance")],
                    edges[, c("from", "to")])) {
    expect_s3_class(part, "knn_edges")
    expect_identical(attributes(part)[names(kept)], kept)
  }
})

test_that("a part without both ends is a plain data frame or vector", {
  edges <- small_edges()
  part <- edges["distance"]
  expect_s3_class(part, "data.frame", exact = TRUE)
  expect_null(attr(part, "vertices"))
  expect_identical(edges[, "to"], edges$to)
  expect_identical(edges[["rank"]], edges$rank)
  expect_identical(edges[2, "to"], "c")
})

test_that("it behaves as the data frame that it is", {
  edges <- small_edges()
  edges$twice <- 2 * edges$distance
  expect_identical(edges$twice[[1]], 1)
  expect_s3_class(edges, "knn_edges")
  plain <- as.data.frame(edges)
  expect_identical(nrow(plain), 6L)
  expect_identical(nrow(merge(edges, data.frame(to = "a"))), 2L)
})

test_that("printing gives a line of facts and the first edges", {
  edges <- small_edges()
  expect_snapshot({
    edges
    print(edges, n = 2)
    print(edges[0, ])
    print(edges["distance"])
    print(edges[1, ])
  })
})

test_that("printing tells the sign of a correlation", {
  x <- rbind(a = c(1, 2, 3), b = c(3, 2, 1), c = c(1, 3, 2))
  edges <- knn_graph(x, 1, sign = "absolute")
  expect_identical(
    fsknn:::format_edges_header(edges),
    "kNN graph: 3 points, 3 edges, k = 1, pearson (absolute)"
  )
})

test_that("edges of unknown origin print as well", {
  edges <- fsknn:::new_knn_edges(
    list(from = 1L, to = 2L, rank = 1L, distance = 0.5),
    vertices = data.frame(name = 1:2)
  )
  expect_snapshot(edges)
})
