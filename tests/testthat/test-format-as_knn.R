exact <- function(k = 4, n = 40) {
  knn_search(random_matrix(n, 5), k, metric = "euclidean")
}

test_that("every shape comes back as it was", {
  nn <- exact()
  shapes <- fsknn:::knn_shapes
  packages <- c(Seurat = "SeuratObject", SelfHits = "S4Vectors")
  there <- vapply(packages, requireNamespace, NA, quietly = TRUE)
  shapes <- setdiff(fsknn:::knn_shapes, names(packages)[!there])
  for (to in shapes) {
    expect_identical(as_knn(as_knn(nn, to)), nn, label = to)
    # Each shape is converted to each other.
    for (other in shapes) {
      expect_equal(
        as_knn(as_knn(nn, to, names = NULL), other),
        as_knn(nn, other), label = paste(to, other)
      )
    }
  }
})

test_that("shapes with the point itself have it first, at distance 0", {
  nn <- exact()
  for (shape in list(c("uwot", "idx", "dist"), c("rnndescent", "idx", "dist"),
                     c("RANN", "nn.idx", "nn.dists"))) {
    there <- as_knn(nn, shape[[1]])
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
  expect_messages(invisible(as_knn(there)))
})

test_that("`self` says otherwise than the shape", {
  nn <- exact()
  own <- list(index = cbind(1:40, nn$index), distance = cbind(0, nn$distance))
  expect_identical(as_knn(own, self = TRUE), nn)
  without <- list(idx = nn$index, dist = nn$distance)
  expect_identical(as_knn(without, self = FALSE), nn)
  expect_messages(as_knn(own))
})

test_that("rows that are queries keep all their neighbours", {
  x <- random_matrix(60, 5)
  first <- knn_query(x, x[1:4, ], 3, metric = "euclidean")
  last <- knn_query(x, x[57:60, ], 3, metric = "euclidean")
  expect_identical(first$index[, 1], 1:4)
  for (nn in list(first, last)) {
    expect_identical(as_knn(nn, queries = TRUE), nn)
    for (to in c("BiocNeighbors", "FNN", "dbscan", "uwot", "RANN")) {
      there <- as_knn(nn, to, queries = TRUE)
      expect_identical(as_knn(there, queries = TRUE), nn, label = to)
    }
    there <- as_knn(nn, "uwot", queries = TRUE)
    expect_identical(there, list(idx = nn$index, dist = nn$distance))
  }
  # All indices may be row numbers by chance.
  all <- knn_query(x, x, 3, metric = "euclidean")
  expect_identical(as_knn(all, queries = TRUE), all)
  expect_messages({
    as_knn(all)
    as_knn(all, queries = NA)
    as_knn(all, self = TRUE, queries = TRUE)
    as_knn(knn_graph(x, 2), queries = TRUE)
    as_knn(first, "edges", queries = TRUE)
  })
})

test_that("queries are not taken for the points themselves", {
  x <- random_matrix(60, 5)
  nn <- knn_query(x, x[57:60, ], 1, metric = "euclidean")
  for (to in c("uwot", "rnndescent", "RANN", "edges")) {
    expect_wrong(as_knn(nn, to), "of the points themselves")
  }
  there <- list(nn.idx = nn$index, nn.dists = nn$distance)
  expect_messages({
    as_knn(nn, "uwot")
    as_knn(there)
    as_knn(nn, "edges")
  })
  skip_if_not_installed("SeuratObject")
  expect_error(as_knn(nn, "Seurat"), "of the points themselves")
  cells <- as_knn(nn, "Seurat", names = letters[1:4], queries = TRUE)
  expect_identical(cells@nn.idx, nn$index)
  expect_identical(unname(as_knn(cells, queries = TRUE)$index), nn$index)
  expect_identical(rownames(as_knn(cells, queries = TRUE)$index), letters[1:4])
})

test_that("FNN's and RANN's queries are what ours are", {
  skip_if_not_installed("FNN")
  skip_if_not_installed("RANN")
  x <- random_matrix(60, 5)
  nn <- knn_query(x, x[1:4, ], 3, metric = "euclidean")
  same <- function(other) {
    expect_identical(other$index, nn$index)
    expect_equal(other$distance, nn$distance)
  }
  same(as_knn(FNN::get.knnx(x, x[1:4, ], 3)))
  same(as_knn(FNN::get.knnx(x, x[1:4, ], 3), queries = TRUE))
  same(as_knn(RANN::nn2(x, x[1:4, ], 3), queries = TRUE))
})

test_that("points that FNN has as their own neighbours are told of", {
  skip_if_not_installed("FNN")
  x <- random_matrix(25, 5)[rep(1:25, 4), ]
  nn <- knn_search(x, 4, metric = "euclidean")
  theirs <- FNN::get.knn(x, 4)
  own <- sum(theirs$nn.index == row(theirs$nn.index))
  expect_gt(own, 0)
  expect_lt(own, 100)
  expect_error(as_knn(theirs), "get.knnx(x, x, k + 1)", fixed = TRUE)
  expect_warning(
    rest <- as_knn(theirs, self = TRUE), class = "fsknn_self_warning"
  )
  expect_false(any(rest$index == row(rest$index)))
  # The call that the message suggests has the neighbours that were lost.
  expect_false(isTRUE(all.equal(rest$distance, nn$distance[, 1:3])))
  expect_no_warning(all <- as_knn(FNN::get.knnx(x, x, 5), self = TRUE))
  expect_false(any(all$index == row(all$index)))
  expect_equal(all$distance, nn$distance)
  one <- cbind(c(2, 1, 1, 2), c(3, 2, 4, 1))
  expect_messages(as_knn(one))
})

test_that("a list that holds one set of neighbours is that set", {
  nn <- exact()
  there <- as_knn(nn, "uwot")
  expect_identical(as_knn(list(euclidean = there)), nn)
  expect_identical(as_knn(list(there)), nn)
  expect_identical(as_knn(list(a = nn)), nn)
  expect_messages({
    as_knn(list(euclidean = there, cosine = there))
    as_knn(list(there, there))
    as_knn(list(euclidean = there, other = 1))
    as_knn(list())
  })
})

test_that("a neighbour that is there twice makes no edges", {
  nn <- exact()
  nn$index[3, 2] <- nn$index[3, 1]
  named <- paste0("gene", 1:40)
  expect_identical(as_knn(nn), nn)
  expect_messages({
    as_knn(nn, "edges")
    as_knn(nn, "edges", names = named)
    as_knn(lapply(nn, asplit, 1), "edges")
  })
})

test_that("edges give matrices, or lists where points differ", {
  x <- random_matrix(30, 5)
  rownames(x) <- paste0("gene", 1:30)
  edges <- knn_graph(x, 3)
  expect_identical(as_knn(edges), knn_search(x, 3))
  expect_identical(as_knn(edges[sample(nrow(edges)), ]), knn_search(x, 3))
  k <- ifelse(seq_len(30) %% 2 == 0, 3, 1)
  number <- match(edges$from, rownames(x))
  expect_identical(as_knn(edges[edges$rank <= k[number], ]), knn_search(x, k))
  back <- as_knn(knn_search(x, k), "edges", names = rownames(x))
  expect_identical(back$to, edges$to[edges$rank <= k[number]])
  x[7, ] <- 0
  expect_identical(
    as_knn(knn_graph(x, 3, constant = "isolate")),
    knn_search(x, 3, constant = "isolate")
  )
})

test_that("undirected edges are neighbours both ways", {
  x <- random_matrix(30, 5)
  expect_identical(as_knn(threshold_graph(x, 0.5)), within_search(x, 0.5))
})

test_that("real BiocNeighbors, FNN, RANN and dbscan give what we do", {
  x <- random_matrix(60, 5)
  nn <- knn_search(x, 6, metric = "euclidean")
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
  expect_identical(near$index, within_search(x, 1.5, "euclidean")$index)
  skip_if_not_installed("BiocNeighbors")
  same(as_knn(BiocNeighbors::findKNN(x, 6)))
})

test_that("distances are found by any name that packages have for them", {
  nn <- exact()
  for (name in c("dist", "dists", "distances", "nn.dist", "nn.dists")) {
    found <- stats::setNames(bare(nn), c("index", name))
    expect_identical(as_knn(found), nn, label = name)
  }
  # destiny also returns the whole matrix.
  found <- list(index = nn$index, dist = nn$distance, dist_mat = diag(40))
  expect_identical(as_knn(found), nn)
  own <- list(idx = cbind(1:40, nn$index), distance = cbind(0, nn$distance))
  expect_identical(as_knn(own), nn)
  skip_if_not_installed("destiny")
  x <- random_matrix(40, 5)
  expect_equal(as_knn(destiny::find_knn(x, 4)), exact())
})

test_that("what looks like distances is not passed over in silence", {
  nn <- exact()
  found <- list(index = nn$index, far = nn$distance)
  expect_warning(plain <- as_knn(found), class = "fsknn_no_distance_warning")
  expect_null(plain$distance)
  expect_messages(invisible(as_knn(found)))
  lists <- lapply(found, asplit, 1)
  expect_warning(as_knn(lists), class = "fsknn_no_distance_warning")
  expect_warning(as_knn(list(index = nn$index, rank = col(nn$index))), NA)
})

test_that("dbscan takes our neighbours", {
  skip_if_not_installed("dbscan")
  x <- random_matrix(60, 5)
  nn <- knn_search(x, 6, metric = "euclidean")
  ours <- as_knn(nn, "dbscan")
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
  nn <- knn_search(x, 9, metric = "euclidean")
  withr::with_preserve_seed({
    set.seed(1)
    ours <- uwot::umap(
      x, nn_method = as_knn(nn, "uwot"), init = "pca", n_epochs = 5,
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
  ours <- as_knn(
    knn_search(x, 7, metric = "euclidean"), "Seurat", names = rownames(x)
  )
  theirs <- Seurat::FindNeighbors(
    x, k.param = 8, return.neighbor = TRUE, nn.method = "rann", verbose = FALSE
  )
  expect_s4_class(ours, "Neighbor")
  expect_identical(ours@nn.idx, theirs@nn.idx)
  expect_equal(ours@nn.dist, theirs@nn.dist)
  expect_identical(SeuratObject::Cells(ours), rownames(x))
  expect_identical(SeuratObject::Indices(ours), SeuratObject::Indices(theirs))
  expect_identical(as_knn(theirs)$index, knn_search(x, 7, "euclidean")$index)
  # The neighbours bring their names.
  expect_identical(
    as_knn(knn_search(x, 7, metric = "euclidean"), "Seurat"), ours
  )
})

test_that("names are kept from shape to shape", {
  x <- random_matrix(30, 4)
  rownames(x) <- paste0("g", 1:30)
  nn <- knn_search(x, 3, "euclidean")
  for (to in setdiff(knn_shapes, c("Seurat", "edges", "SelfHits"))) {
    expect_identical(as_knn(as_knn(nn, to)), nn, info = to)
  }
  expect_identical(as_knn(nn, "edges")$from, rep(rownames(x), each = 3))
  rownames(x)[2] <- "g1"
  twice <- knn_search(x, 3, "euclidean")
  expect_identical(as_knn(as_knn(twice, "FNN")), twice)
  expect_messages(as_knn(twice, "edges"))
  expect_identical(
    as_knn(twice, "edges", names = paste0("g", 1:30)),
    as_knn(nn, "edges")
  )
})

test_that("dbscan's frNN comes and goes", {
  skip_if_not_installed("dbscan")
  x <- random_matrix(40, 4)
  rownames(x) <- paste0("g", 1:40)
  within <- within_search(x, 1.2, "euclidean")
  theirs <- dbscan::frNN(x, 1.2)
  expect_identical(as_knn(theirs)$index, within$index)
  expect_equal(as_knn(theirs), within)
  ours <- as_knn(within, "dbscan")
  expect_s3_class(ours, c("frNN", "NN"), exact = TRUE)
  expect_identical(ours$id, theirs$id)
  expect_equal(ours$dist, theirs$dist)
  expect_lte(ours$eps, 1.2)
  expect_identical(
    dbscan::dbscan(ours, minPts = 4)$cluster,
    dbscan::dbscan(x, eps = 1.2, minPts = 4)$cluster
  )
  none <- as_knn(within_search(x, 0, "euclidean"), "dbscan")
  expect_identical(none$eps, 0)
  expect_error(as_knn(list(index = within$index), "dbscan"), "needs distances")
})

test_that("what uwot returns as a whole has neighbours", {
  nn <- exact()
  there <- as_knn(nn, "uwot")
  whole <- list(embedding = matrix(0, 4, 2), nn = list(euclidean = there))
  expect_identical(as_knn(whole), nn)
  expect_identical(as_knn(list(nn = there)), nn)
  expect_error(
    as_knn(list(nn = list(a = there, b = there))), "one set of neighbours"
  )
  skip_if_not_installed("uwot")
  x <- random_matrix(30, 5)
  whole <- suppressMessages(uwot::umap(
    x, n_neighbors = 5, nn_method = "fnn", ret_nn = TRUE, n_epochs = 2,
    n_threads = 1, n_sgd_threads = 1
  ))
  index <- knn_search(x, 4, "euclidean")$index
  expect_identical(as_knn(whole)$index, index)
  expect_identical(as_knn(whole$nn)$index, index)
})

test_that("of RANN's radius search it is said what is missing", {
  skip_if_not_installed("RANN")
  x <- random_matrix(30, 4)
  radius <- RANN::nn2(x, x, k = 6, searchtype = "radius", radius = 0.9)
  expect_true(any(radius$nn.idx == 0))
  expect_messages(as_knn(radius))
  radius$nn.idx[radius$nn.idx == 0] <- NA # as the hint says
  nn <- as_knn(radius)
  within <- within_search(x, 0.9, "euclidean")
  expect_identical(
    lapply(1:30, function(i) nn$index[i, !is.na(nn$index[i, ])]),
    lapply(within$index, utils::head, 5)
  )
  expect_identical(is.na(nn$distance), is.na(nn$index))
})

test_that("an igraph graph has neighbours", {
  ring <- as_knn(igraph::make_ring(5))
  expect_identical(ring$index[1:2, ], rbind(c(2L, 5L), c(1L, 3L)))
  expect_null(ring$distance)
  nn <- exact()
  edges <- as_knn(nn, "edges")
  expect_identical(as_knn(as_igraph(edges)), as_knn(edges))
  expect_identical(
    as_knn(as_igraph(undirected_edges(edges))), as_knn(undirected_edges(edges))
  )
})

test_that("what is no neighbours, or not for a shape, is an error", {
  nn <- exact()
  expect_messages({
    as_knn(1:10)
    as_knn(list(neighbours = nn$index))
    as_knn(list(index = nn$index, distance = nn$distance[, 1:3]))
    as_knn(list(index = nn$index - 1, distance = nn$distance))
    as_knn(nn, to = "annoy")
    as_knn(list(index = nn$index), to = "uwot")
    as_knn(knn_search(random_matrix(4, 4), c(1, 2, 3, 3)), to = "FNN")
    as_knn(nn, to = "edges", names = letters)
    as_knn(list(index = matrix(c(7, 9, 2, 4), 2)), "edges")
  })
})

test_that("lists that have the points themselves lose them alone", {
  x <- random_matrix(40, 5)
  found <- within_search(x, 0.7, backend = "cpu")
  expect_true(any(lengths(found$index) > 1))
  own <- found
  # The point is first, last, or absent in its own list.
  own$index <- Map(function(row, i) {
    switch(i %% 3 + 1, c(i, row), c(row, i), row)
  }, found$index, seq_len(40))
  own$distance <- Map(function(row, i) {
    switch(i %% 3 + 1, c(0, row), c(row, 0), row)
  }, found$distance, seq_len(40))
  plain <- function(nn) list(lapply(nn$index, as.integer), nn$distance)
  expect_identical(
    plain(as_knn(unclass(own), self = TRUE)), plain(as_knn(found))
  )
})

test_that("names that repeat are those of the argument", {
  x <- knn_search(random_matrix(30, 12), 2)
  for (verb in list(
    function(names) as_knn(x, "edges", names = names),
    function(names) snn_graph(x, names = names)
  )) {
    expect_wrong(verb(rep("a", 30)), "`names` must be all different")
    expect_wrong(verb(c("", 1:29)), "none at 1")
  }
})

test_that("hits hold the edges and their columns", {
  skip_if_not_installed("S4Vectors")
  edges <- knn_graph(random_matrix(30, 5), 3)
  hits <- as_knn(edges, to = "SelfHits")
  expect_s4_class(hits, "SelfHits")
  expect_identical(S4Vectors::nnode(hits), 30L)
  expect_identical(S4Vectors::from(hits), edges$from)
  expect_identical(S4Vectors::to(hits), edges$to)
  expect_identical(S4Vectors::mcols(hits)$distance, edges$distance)
  expect_identical(S4Vectors::mcols(hits)$rank, edges$rank)
})

test_that("hits are of the points themselves, and have no names", {
  skip_if_not_installed("S4Vectors")
  nn <- knn_search(random_matrix(30, 5), 3)
  with_self <- cbind(1:30, nn$index)
  hits <- as_knn(with_self, to = "SelfHits", self = TRUE)
  expect_identical(as_knn(hits)$index, nn$index)
  for (more in list(list(queries = TRUE), list(names = letters))) {
    expect_wrong(do.call(as_knn, c(list(nn, to = "SelfHits"), more)))
  }
})

test_that("hits are pairs of a SingleCellExperiment's cells", {
  skip_if_not_installed("SingleCellExperiment")
  x <- random_matrix(20, 5)
  cells <- SingleCellExperiment::SingleCellExperiment(list(counts = t(x)))
  hits <- as_knn(knn_search(x, 3), to = "SelfHits")
  SingleCellExperiment::colPair(cells, "knn") <- hits
  # It sorts them by point and neighbour.
  pairs <- SingleCellExperiment::colPair(cells, "knn")
  in_order <- order(S4Vectors::from(hits), S4Vectors::to(hits))
  expect_identical(S4Vectors::to(pairs), S4Vectors::to(hits)[in_order])
  expect_identical(
    S4Vectors::mcols(pairs)$distance, S4Vectors::mcols(hits)$distance[in_order]
  )
})
