exact <- function(k = 4, n = 40) {
  find_knn(random_matrix(n, 5), k, metric = "euclidean")
}

test_that("every shape comes back as it was", {
  nn <- exact()
  shapes <- setdiff(fsknn:::knn_shapes, "Seurat")
  if (requireNamespace("SeuratObject", quietly = TRUE)) {
    shapes <- fsknn:::knn_shapes
  }
  for (to in shapes) {
    expect_identical(as_knn(convert_knn(nn, to)), nn, label = to)
    # And from each shape to each.
    for (other in shapes) {
      expect_equal(
        convert_knn(convert_knn(nn, to, names = NULL), other),
        convert_knn(nn, other), label = paste(to, other)
      )
    }
  }
})

test_that("shapes with the point itself have it first, at distance 0", {
  nn <- exact()
  for (shape in list(c("uwot", "idx", "dist"), c("rnndescent", "idx", "dist"),
                     c("RANN", "nn.idx", "nn.dists"))) {
    there <- convert_knn(nn, shape[[1]])
    expect_identical(names(there), shape[2:3])
    expect_identical(there[[1]], cbind(1:40, nn$index))
    expect_identical(there[[2]], cbind(0, nn$distance))
  }
})

test_that("a point's own number is taken out wherever it stands", {
  there <- list(
    idx = rbind(c(2L, 1L, 3L), c(1L, 2L, 4L), c(3L, 4L, 1L), c(4L, 3L, 2L)),
    dist = rbind(c(0, 0, 1), c(0, 0, 2), c(0, 3, 4), c(0, 5, 6))
  )
  nn <- as_knn(there)
  expect_identical(nn$index, rbind(2:3, c(1L, 4L), c(4L, 1L), c(3L, 2L)))
  expect_identical(nn$distance, rbind(c(0, 1), c(0, 2), c(3, 4), c(5, 6)))
})

test_that("a point that was missed costs the last neighbour, and is told of", {
  there <- list(idx = rbind(c(1L, 2L), c(1L, 3L), c(3L, 2L)),
                dist = rbind(c(0, 1), c(1, 2), c(0, 2)))
  expect_warning(nn <- as_knn(there), class = "fsknn_self_warning")
  expect_identical(nn$index, matrix(c(2L, 1L, 2L)))
  expect_identical(nn$distance, matrix(c(1, 1, 2)))
  expect_snapshot(invisible(as_knn(there)))
})

test_that("`self` says otherwise than the shape", {
  nn <- exact()
  own <- list(index = cbind(1:40, nn$index), distance = cbind(0, nn$distance))
  expect_identical(as_knn(own, self = TRUE), nn)
  without <- list(idx = nn$index, dist = nn$distance)
  expect_identical(as_knn(without, self = FALSE), nn)
  expect_snapshot(error = TRUE, as_knn(own))
})

test_that("edges give matrices, or lists where points differ", {
  x <- random_matrix(30, 5)
  rownames(x) <- paste0("gene", 1:30)
  edges <- knn_graph(x, 3)
  expect_identical(as_knn(edges), find_knn(x, 3))
  expect_identical(
    as_knn(edges[sample(nrow(edges)), ]), find_knn(x, 3)
  )
  k <- ifelse(seq_len(30) %% 2 == 0, 3, 1)
  number <- match(edges$from, rownames(x))
  expect_identical(
    as_knn(edges[edges$rank <= k[number], ]), find_knn(x, k)
  )
  back <- convert_knn(find_knn(x, k), "edges", names = rownames(x))
  expect_identical(back$to, edges$to[edges$rank <= k[number]])
  x[7, ] <- 0
  expect_identical(
    as_knn(knn_graph(x, 3, constant = "isolate")),
    find_knn(x, 3, constant = "isolate")
  )
})

test_that("undirected edges are neighbours both ways", {
  x <- random_matrix(30, 5)
  expect_identical(
    as_knn(similarity_graph(x, 0.5)), find_within(x, 0.5)
  )
})

test_that("real BiocNeighbors, FNN, RANN and dbscan give what we do", {
  x <- random_matrix(60, 5)
  nn <- find_knn(x, 6, metric = "euclidean")
  same <- function(other) {
    expect_identical(other$index, nn$index)
    expect_equal(other$distance, nn$distance)
  }
  skip_if_not_installed("FNN")
  skip_if_not_installed("RANN")
  skip_if_not_installed("dbscan")
  same(as_knn(FNN::get.knn(x, 6)))
  same(as_knn(RANN::nn2(x, k = 7)))
  same(as_knn(dbscan::kNN(x, 6)))
  near <- as_knn(dbscan::frNN(x, eps = 1.5, sort = TRUE))
  expect_identical(near$index, find_within(x, 1.5, "euclidean")$index)
  skip_if_not_installed("BiocNeighbors")
  same(as_knn(BiocNeighbors::findKNN(x, 6)))
})

test_that("dbscan takes our neighbours", {
  skip_if_not_installed("dbscan")
  x <- random_matrix(60, 5)
  nn <- find_knn(x, 6, metric = "euclidean")
  ours <- convert_knn(nn, "dbscan")
  theirs <- dbscan::kNN(x, 6)
  expect_equal(ours$id, theirs$id, ignore_attr = TRUE)
  expect_equal(
    dbscan::sNN(ours, k = 5)$shared, dbscan::sNN(theirs, k = 5)$shared
  )
  expect_identical(
    dbscan::jpclust(ours, k = 5, kt = 3)$cluster,
    dbscan::jpclust(theirs, k = 5, kt = 3)$cluster
  )
})

test_that("uwot takes our neighbours", {
  skip_if_not_installed("uwot")
  x <- random_matrix(80, 5)
  nn <- find_knn(x, 9, metric = "euclidean")
  withr::with_preserve_seed({
    set.seed(1)
    ours <- uwot::umap(
      x, nn_method = convert_knn(nn, "uwot"), init = "pca", n_epochs = 5,
      n_threads = 1, n_sgd_threads = 1
    )
    set.seed(1)
    theirs <- uwot::umap(
      x, n_neighbors = 10, nn_method = "fnn", init = "pca", n_epochs = 5,
      n_threads = 1, n_sgd_threads = 1
    )
  })
  expect_equal(ours, theirs)
})

test_that("Seurat takes our neighbours", {
  skip_if_not_installed("Seurat")
  x <- random_matrix(50, 4)
  rownames(x) <- paste0("cell", 1:50)
  ours <- convert_knn(
    find_knn(x, 7, metric = "euclidean"), "Seurat", names = rownames(x)
  )
  theirs <- Seurat::FindNeighbors(
    x, k.param = 8, return.neighbor = TRUE, nn.method = "rann", verbose = FALSE
  )
  expect_s4_class(ours, "Neighbor")
  expect_identical(ours@nn.idx, theirs@nn.idx)
  expect_equal(ours@nn.dist, theirs@nn.dist)
  expect_identical(SeuratObject::Cells(ours), rownames(x))
  expect_identical(
    SeuratObject::Indices(ours), SeuratObject::Indices(theirs)
  )
  expect_identical(as_knn(theirs)$index, find_knn(x, 7, "euclidean")$index)
})

test_that("what is no neighbours, or not for a shape, is an error", {
  nn <- exact()
  expect_snapshot(error = TRUE, {
    as_knn(1:10)
    as_knn(list(neighbours = nn$index))
    as_knn(list(index = nn$index, distance = nn$distance[, 1:3]))
    as_knn(list(index = nn$index - 1, distance = nn$distance))
    convert_knn(nn, to = "annoy")
    convert_knn(list(index = nn$index), to = "uwot")
    convert_knn(find_knn(random_matrix(4, 4), c(1, 2, 3, 3)), to = "FNN")
    convert_knn(nn, to = "edges", names = letters)
    convert_knn(list(index = matrix(c(7, 9, 2, 4), 2)), "edges")
  })
})
