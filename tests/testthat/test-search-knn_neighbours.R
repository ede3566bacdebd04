# Whole numbers make prints independent of rounding.
grid_points <- function() {
  x <- as.matrix(expand.grid(0:3, 0:2))
  dimnames(x) <- NULL
  x
}

test_that("searches print what they found, and not the matrices", {
  x <- grid_points()
  expect_snapshot({
    knn_search(x, 3, "manhattan")
    knn_query(x, x[1:2, ] + 1, 1, "manhattan")
    knn_search(x, rep(0:2, 4), "manhattan")
    within_search(x, rep(c(0, 1), 6), "manhattan")
    within_query(x, x[1, , drop = FALSE], 2, "manhattan")
    within_search(x, 0, "manhattan")
    knn_search(x, 2, "manhattan", subset = integer())
  })
})

test_that("points without a value, and indices alone, print", {
  x <- rbind(c(1, 2, 3), c(0, 0, 0), c(1, 2, 4), c(2, 4, 6))
  found <- knn_search(x, 1, "cosine", constant = "isolate")
  expect_snapshot({
    print(as_knn(list(index = found$index)))
    print(as_knn(list(index = list(2L, integer(), c(1L, NA)))))
  })
})

test_that("a print gives back what it prints", {
  found <- knn_search(grid_points(), 2, "manhattan")
  expect_output(back <- withVisible(print(found)), "12 points")
  expect_identical(back, list(value = found, visible = FALSE))
})

test_that("index and distance have only a class and a record beside them", {
  x <- random_matrix(30, 5)
  answers <- list(
    knn_search(x, 4), knn_query(x, x[1:3, ], 4), knn_search(x, rep(1:2, 15)),
    within_search(x, 0.5), within_query(x, x[1:3, ], 0.5),
    as_knn(knn_graph(x, 4)), as_knn(knn_search(x, 4), "fsknn")
  )
  for (found in answers) {
    expect_s3_class(found, "fsknn_neighbours", exact = TRUE)
    expect_identical(
      found[c("index", "distance")],
      list(index = found$index, distance = found$distance)
    )
    expect_identical(found[["index"]], found$index)
    expect_named(attributes(found), c("names", "class", "searched"))
  }
  nn <- knn_search(x, 4)
  expect_identical(as_knn(as_knn(nn, "uwot")), nn)
  expect_identical(
    as_knn(nn, "BiocNeighbors"), nn[c("index", "distance")]
  )
})
