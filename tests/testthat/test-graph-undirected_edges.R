directed_edges <- function(n = 40, k = 4) {
  knn_graph(random_matrix(n, 5), k)
}

test_that("union and mutual edges are those of the adjacency matrix", {
  edges <- directed_edges()
  adjacent <- matrix(FALSE, 40, 40)
  adjacent[cbind(edges$from, edges$to)] <- TRUE
  for (mode in c("union", "mutual")) {
    either <- if (mode == "union") {
      adjacent | t(adjacent)
    } else {
      adjacent & t(adjacent)
    }
    expected <- which(either & upper.tri(either), arr.ind = TRUE)
    found <- undirected_edges(edges, mode)
    expect_identical(order(found$from, found$to), seq_len(nrow(found)))
    expect_setequal(
      paste(found$from, found$to), paste(expected[, 1], expected[, 2])
    )
    rank <- matrix(Inf, 40, 40)
    rank[cbind(edges$from, edges$to)] <- edges$rank
    at <- cbind(found$from, found$to)
    expect_equal(found$rank, pmin(rank, t(rank))[at])
    graph <- as_igraph(found)
    expect_true(igraph::identical_graphs(
      graph, as_igraph(edges, mode = mode), attrs = FALSE
    ))
    expect_identical(undirected_edges(found), found)
  }
  expect_identical(
    undirected_edges(knn_search(random_matrix(40, 5), 4), "mutual")$to,
    undirected_edges(edges, "mutual")$to
  )
})

test_that("igraph, attached later, hides none of our verbs", {
  expect_identical(
    intersect(getNamespaceExports("fsknn"), getNamespaceExports("igraph")),
    character()
  )
})

test_that("graphs of the same points are united and intersected", {
  x <- random_matrix(50, 6)
  rownames(x) <- paste0("gene", 1:50)
  a <- knn_graph(x, 5)
  b <- knn_graph(x, 5, metric = "spearman")
  c <- knn_graph(x, 3, metric = "spearman")
  pairs <- function(edges) paste(edges$from, edges$to)
  both <- combine_graphs(a, b, mode = "intersection")
  expect_identical(pairs(both), intersect(pairs(a), pairs(b)))
  expect_identical(both$distance, a$distance[pairs(a) %in% pairs(b)])
  any <- combine_graphs(a, b, c)
  expect_identical(pairs(any), union(pairs(a), pairs(b)))
  in_how_many <- (pairs(any) %in% pairs(a)) + (pairs(any) %in% pairs(b)) +
    (pairs(any) %in% pairs(c))
  expect_equal(any$graphs, in_how_many)
  expect_null(attr(any, "metric"))
  expect_identical(attr(combine_graphs(b, c), "metric"), "spearman")
  mutual <- lapply(list(a, b), undirected_edges, mode = "mutual")
  merged <- combine_graphs(mutual[[1]], mutual[[2]])
  expect_identical(attr(merged, "directed"), FALSE)
  expect_setequal(pairs(merged), union(pairs(mutual[[1]]), pairs(mutual[[2]])))
  expect_output(print(any), "Union of 3 graphs: 50 points")
})

test_that("graphs that don't go together are errors", {
  edges <- directed_edges()
  expect_messages({
    undirected_edges(edges, "any")
    undirected_edges(as.matrix(edges))
    undirected_edges(1:3)
    undirected_edges(cbind(1:3, c(2L, 3L, 1L)))
    undirected_edges(list(index = matrix(c(1L, 9L), 2)))
    combine_graphs(edges)
    combine_graphs(edges, directed_edges(30))
    combine_graphs(edges, undirected_edges(edges))
    combine_graphs(edges, edges, moed = "union")
    combine_graphs(edges, 1:3)
  })
})

test_that("the hint on lost vertices works in every verb", {
  x <- random_matrix(30, 12)
  rownames(x) <- paste0("g", 1:30)
  old <- knn_graph(x, 3)
  lost <- merge(
    as.data.frame(old), data.frame(from = rownames(x), score = 1:30)
  )
  attr(lost, "vertices") <- NULL
  verbs <- list(
    undirected_edges, as_sparse, soft_threshold, sparse_tom, as_igraph,
    function(edges) edge_significance(edges, x, metric = "pearson"),
    function(edges) combine_graphs(edges, old)
  )
  for (verb in verbs) {
    edges <- lost
    code <- sub(".*Use `([^`]+)`.*", "\\1", words_of(verb(edges)))
    if (startsWith(code, "vertices =")) {
      expect_no_error(eval(parse(text = paste0("verb(edges, ", code, ")"))))
    } else {
      eval(parse(text = code))
      expect_no_error(verb(edges))
    }
  }
})

test_that("graphs without names are combined by position", {
  x <- random_matrix(30, 12)
  rownames(x) <- paste0("g", 1:30)
  named <- knn_graph(x, 3)
  plain <- knn_graph(unname(x), 3)
  right <- combine_graphs(named, named)
  expect_identical(combine_graphs(named, plain), right)
  expect_identical(combine_graphs(plain, named), right)
  expect_wrong(
    combine_graphs(named, knn_graph(unname(x)[-1, ], 3)), "same points"
  )
})

test_that("a tibble of edges is read without a warning", {
  skip_if_not_installed("tibble")
  x <- random_matrix(30, 12)
  edges <- knn_graph(x, 3, metric = "euclidean")
  table <- tibble::as_tibble(edges)
  attr(table, "vertices") <- attr(edges, "vertices")
  expect_no_warning({
    expect_identical(as_knn(table), as_knn(edges))
    expect_identical(snn_graph(table), snn_graph(edges))
    expect_identical(as_sparse(table, "distance"), as_sparse(edges, "distance"))
    undirected_edges(table)
    try(soft_threshold(table), silent = TRUE)
  })
})

test_that("ends that are numbers meet names that are text", {
  ids <- c(1e5, 2e5, 1e15, 123456, 1e6, 7:11)
  x <- random_matrix(10, 6)
  rownames(x) <- sprintf("%.0f", ids)
  edges <- knn_graph(x, 3)
  right <- combine_graphs(edges, edges)
  ends <- c("from", "to")
  for (convert in list(as.numeric, function(id) factor(as.numeric(id)))) {
    other <- edges
    other[ends] <- lapply(edges[ends], convert)
    expect_no_warning({
      expect_identical(combine_graphs(edges, other), right)
      expect_identical(combine_graphs(other, edges), right)
      expect_identical(undirected_edges(other), undirected_edges(edges))
    })
  }
})

test_that("factors of row numbers are the points of these numbers", {
  edges <- knn_graph(random_matrix(30, 12), 3)
  other <- edges
  other$from <- factor(edges$from)
  other$to <- as.character(edges$to)
  right <- combine_graphs(edges, edges)
  expect_identical(combine_graphs(other, edges), right)
  expect_identical(combine_graphs(edges, other), right)
})

test_that("an unknown point is told by what the verb has", {
  edges <- knn_graph(random_matrix(30, 12), 3)
  other <- edges
  other$from[[1]] <- 99L
  for (code in list(
    quote(combine_graphs(edges, other)), quote(undirected_edges(other))
  )) {
    error <- expect_wrong(eval(code), "attribute \"vertices\"")
    expect_match(conditionMessage(error), "\"99\"", fixed = TRUE)
  }
  expect_error(as_igraph(other), "`vertices` must name every point")
})

test_that("vertices may be a vector wherever edges are taken", {
  ids <- c(1e5, 2e5, 1e15, 123456, 1e6, 7:11)
  x <- random_matrix(10, 6)
  rownames(x) <- sprintf("%.0f", ids)
  edges <- knn_graph(x, 3)
  for (vertices in list(ids, factor(ids), rownames(x))) {
    given <- structure(edges, vertices = vertices)
    expect_identical(undirected_edges(given)$rank, undirected_edges(edges)$rank)
    expect_identical(combine_graphs(given, edges), combine_graphs(edges, edges))
    expect_identical(
      unname(as.matrix(as_sparse(given))), unname(as.matrix(as_sparse(edges)))
    )
    expect_identical(
      spanning_forest(given)$distance, spanning_forest(edges)$distance
    )
    expect_output(print(given), "10 points of 6 features, 30 edges")
  }
})
