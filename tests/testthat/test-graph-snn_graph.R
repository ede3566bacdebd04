# Computes every pair of points by the definition, with the point itself at rank
# 0.
naive_shared <- function(index, type) {
  n <- nrow(index)
  sets <- lapply(seq_len(n), function(i) c(i, index[i, ]))
  result <- matrix(NA_real_, n, n)
  for (i in seq_len(n)) {
    for (j in setdiff(i:n, i)) {
      shared <- intersect(sets[[i]], sets[[j]])
      if (length(shared) == 0) {
        next
      }
      ranks <- match(shared, sets[[i]]) + match(shared, sets[[j]]) - 2
      result[i, j] <- switch(
        type,
        rank = max(ncol(index) - min(ranks) / 2, 1e-6),
        number = length(shared),
        jaccard = length(shared) / length(union(sets[[i]], sets[[j]]))
      )
    }
  }
  result
}

test_that("shared neighbours are those of the definition", {
  for (n in c(30, 150)) {
    nn <- knn_search(random_matrix(n, 5), 4)
    for (type in c("rank", "number", "jaccard")) {
      naive <- naive_shared(nn$index, type)
      for (threads in 1:2) {
        edges <- snn_graph(nn, type, num_threads = threads)
        expect_identical(nrow(edges), sum(!is.na(naive)))
        expect_identical(edges$similarity, naive[cbind(edges$from, edges$to)])
        expect_identical(order(edges$from, edges$to), seq_len(nrow(edges)))
      }
    }
  }
})

test_that("bluster makes the same graph", {
  skip_if_not_installed("bluster")
  x <- random_matrix(150, 6)
  nn <- knn_search(x, 10, metric = "euclidean")
  for (type in c("rank", "number", "jaccard")) {
    theirs <- bluster::neighborsToSNNGraph(nn$index, type = type)
    ends <- igraph::as_edgelist(theirs)
    ends <- cbind(pmin(ends[, 1], ends[, 2]), pmax(ends[, 1], ends[, 2]))
    order <- order(ends[, 1], ends[, 2])
    ours <- snn_graph(nn, type)
    expect_equal(cbind(ours$from, ours$to), ends[order, ])
    expect_identical(ours$similarity, igraph::E(theirs)$weight[order])
  }
  theirs <- bluster::makeSNNGraph(x, k = 10, type = "jaccard")
  ours <- as_igraph(snn_graph(nn, "jaccard"), weight = "similarity")
  expect_identical(
    igraph::membership(igraph::cluster_walktrap(ours)),
    stats::setNames(
      igraph::membership(igraph::cluster_walktrap(theirs)), 1:150
    ),
    ignore_attr = TRUE
  )
})

test_that("Seurat's shared neighbours are our Jaccard index", {
  skip_if_not_installed("Seurat")
  x <- random_matrix(60, 5)
  rownames(x) <- paste0("cell", 1:60)
  theirs <- suppressWarnings(Seurat::FindNeighbors(
    x, k.param = 8, prune.SNN = 1 / 15, nn.method = "rann", verbose = FALSE
  ))$snn
  nn <- knn_search(x, 7, metric = "euclidean")
  ours <- as_sparse(snn_graph(
    nn, "jaccard", min_similarity = 1 / 15, names = rownames(x)
  ))
  theirs <- as.matrix(theirs)
  diag(theirs) <- 0
  expect_equal(as.matrix(ours), theirs)
})

test_that("names, isolated points and other shapes are kept", {
  x <- random_matrix(30, 5)
  rownames(x) <- paste0("gene", 1:30)
  x[4, ] <- 1
  edges <- knn_graph(x, 3, constant = "isolate")
  shared <- snn_graph(edges)
  nn <- knn_search(x, 3, constant = "isolate")
  expect_identical(snn_graph(nn), shared)
  plain <- snn_graph(without_names(nn))
  expect_identical(shared$from, rownames(x)[plain$from])
  expect_identical(attr(shared, "vertices")$name, rownames(x))
  expect_false("gene4" %in% c(shared$from, shared$to))
  graph <- as_igraph(shared, weight = "similarity")
  expect_identical(igraph::E(graph)$weight, plain$similarity)
  expect_equal(igraph::vcount(graph), 30)
  expect_output(
    print(shared), "Shared-nearest-neighbour graph (rank): 30 points",
    fixed = TRUE
  )
})

test_that("points with different numbers of neighbours share some", {
  x <- random_matrix(40, 5)
  lists <- knn_search(x, rep(c(2, 4), 20))
  number <- snn_graph(lists, "number")
  jaccard <- snn_graph(lists, "jaccard")
  sets <- Map(c, 1:40, lists$index)
  expect_identical(
    jaccard$similarity,
    mapply(function(i, j) {
      length(intersect(sets[[i]], sets[[j]])) /
        length(union(sets[[i]], sets[[j]]))
    }, jaccard$from, jaccard$to)
  )
  expect_identical(number$to, jaccard$to)
  expect_identical(
    snn_graph(lists, "jaccard", min_similarity = 0.3)$similarity,
    jaccard$similarity[jaccard$similarity >= 0.3]
  )
})

test_that("what has no shared neighbours is an error", {
  x <- random_matrix(20, 4)
  expect_messages({
    snn_graph(x)
    snn_graph(knn_search(x, 3), "weighted")
    snn_graph(knn_search(x, 3), min_similarity = "some")
    snn_graph(list(index = matrix(c(7, 9, 2, 4), 2)))
    snn_graph(cbind(1:20, knn_search(x, 3)$index))
    snn_graph(knn_search(x, 3)$index[, c(1, 2, 1)])
  })
})
