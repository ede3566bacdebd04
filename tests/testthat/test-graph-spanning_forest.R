# Returns all pairs of points as edges in both directions.
complete_graph <- function(x, metric = "manhattan") {
  knn_graph(x, k = nrow(x) - 1, metric = metric)
}

tree_ends <- function(tree, names = NULL) {
  from <- if (is.null(names)) tree$from else match(tree$from, names)
  to <- if (is.null(names)) tree$to else match(tree$to, names)
  ends <- cbind(pmin(from, to), pmax(from, to))
  ends[order(ends[, 1], ends[, 2]), , drop = FALSE]
}

in_order <- function(ends) {
  unname(ends[order(ends[, 1], ends[, 2]), , drop = FALSE])
}

test_that("the tree of the complete graph is Kruskal's, ties and all", {
  for (seed in 1:5) {
    x <- small_integers(24, 3, seed = seed)
    distance <- naive_distance(x, metric = "manhattan")
    expect_identical(
      tree_ends(spanning_forest(complete_graph(x))),
      in_order(naive_tree(distance))
    )
  }
})

test_that("it does not depend on the order of the edges or their direction", {
  edges <- complete_graph(small_integers(24, 3, seed = 7))
  tree <- tree_ends(spanning_forest(edges))
  mixed <- edges[order(uniform_numbers(nrow(edges), 3)), ]
  turned <- mixed
  turned$from <- mixed$to
  turned$to <- mixed$from
  expect_identical(tree_ends(spanning_forest(mixed)), tree)
  expect_identical(tree_ends(spanning_forest(turned)), tree)
  expect_identical(
    tree_ends(spanning_forest(edges[edges$from < edges$to, ])), tree
  )
})

test_that("it is rows of the edges, with all points kept", {
  x <- random_matrix(40, 6)
  rownames(x) <- paste0("g", 1:40)
  edges <- knn_graph(x, k = 2)
  tree <- spanning_forest(edges)
  expect_s3_class(tree, "fsknn_edges")
  expect_identical(names(tree), names(edges))
  expect_identical(attr(tree, "vertices"), attr(edges, "vertices"))
  rows <- match(paste(tree$from, tree$to), paste(edges$from, edges$to))
  expect_false(is.unsorted(rows))
  expect_identical(tree$correlation, edges$correlation[rows])
  graph <- as_igraph(edges, mode = "union")
  expect_identical(nrow(tree), 40L - as.integer(igraph::components(graph)$no))
})

test_that("a forest has a tree for each component, and isolated points stay", {
  x <- rbind(random_matrix(12, 5), random_matrix(12, 5) + 100, 7)
  edges <- knn_graph(x, k = 3, constant = "isolate", sign = "absolute")
  near <- knn_graph(x[1:24, ], k = 3, metric = "euclidean")
  expect_identical(nrow(spanning_forest(near)), 22L)
  expect_identical(nrow(attr(spanning_forest(edges), "vertices")), 25L)
  expect_snapshot(print(spanning_forest(near), n = 0))
  expect_snapshot(print(spanning_forest(complete_graph(x[1:12, ])), n = 0))
})

test_that("an igraph graph gives the same tree, with all attributes", {
  x <- random_matrix(30, 6)
  rownames(x) <- paste0("g", 1:30)
  edges <- knn_graph(x, k = 4)
  expected <- tree_ends(spanning_forest(edges), rownames(x))
  for (mode in c("directed", "union")) {
    graph <- as_igraph(edges, mode = mode, weight = "distance")
    graph <- igraph::set_graph_attr(graph, "title", "a graph")
    tree <- spanning_forest(graph)
    expect_false(igraph::is_directed(tree))
    ends <- igraph::as_edgelist(tree, names = FALSE)
    expect_equal(
      in_order(cbind(pmin(ends[, 1], ends[, 2]), pmax(ends[, 1], ends[, 2]))),
      expected
    )
    expect_identical(igraph::V(tree)$name, rownames(x))
    expect_identical(igraph::graph_attr(tree, "title"), "a graph")
    expect_setequal(
      names(igraph::edge_attr(tree)),
      c("rank", "distance", "correlation", "weight")
    )
  }
})

test_that("edges that are no such graph are an error", {
  edges <- knn_graph(random_matrix(9, 4), k = 2)
  lost <- as.data.frame(as.list(edges))
  bad <- edges
  bad$distance[2:3] <- NA
  none <- edges
  none$distance <- NULL
  expect_messages({
    spanning_forest(1:3)
    spanning_forest(lost)
    spanning_forest(bad)
    spanning_forest(none)
    spanning_forest(igraph::make_ring(4))
    spanning_forest(edges, k = 2)
  })
})

test_that("distances below 0 make no tree and no clusters", {
  edges <- knn_graph(random_matrix(9, 4), k = 2)
  edges$distance[c(2, 5)] <- c(-0.25, -1e-9)
  expect_messages({
    spanning_forest(edges)
    spanning_forest(as_igraph(edges))
    mst_knn(edges)
  })
})

test_that("no edges give no tree, and a loop is none", {
  edges <- knn_graph(random_matrix(9, 4), k = 2)
  expect_identical(nrow(spanning_forest(edges[0, ])), 0L)
  loops <- edges[1:3, ]
  loops$to <- loops$from
  expect_identical(nrow(spanning_forest(loops)), 0L)
})
