# Makes five points, one of them isolated. a and b are each other's neighbours;
# c and d lead to a and b, which do not lead back.
hand_made <- function(metric = "euclidean", sign = "signed", ...) {
  fsknn:::new_knn_edges(
    list(
      from = c("a", "a", "b", "b", "c", "d"),
      to = c("b", "d", "a", "c", "a", "b"),
      rank = c(1L, 2L, 2L, 1L, 1L, 1L),
      distance = c(0.5, 1, 0.5, 0.25, 2, 3), ...
    ),
    vertices = data.frame(name = c("a", "b", "alone", "c", "d")),
    metric = metric, sign = sign, k = 2L
  )
}

edge_table <- function(graph) {
  igraph::as_data_frame(graph, what = "edges")
}

test_that("all points are vertices, in order, isolated ones too", {
  graph <- as_igraph(hand_made())
  expect_true(igraph::is_directed(graph))
  expect_identical(igraph::V(graph)$name, c("a", "b", "alone", "c", "d"))
  expect_equal(igraph::degree(graph)[["alone"]], 0)
})

test_that("directed edges are the rows, with their columns", {
  edges <- hand_made()
  edges$mark <- letters[1:6]
  table <- edge_table(as_igraph(edges))
  expect_named(table, c("from", "to", "rank", "distance", "mark"))
  for (column in names(table)) {
    expect_identical(table[[column]], edges[[column]])
  }
})

test_that("points without names are named by their numbers", {
  x <- random_matrix(12, 5)
  graph <- as_igraph(knn_graph(x, 2))
  expect_identical(igraph::V(graph)$name, as.character(1:12))
  expect_equal(
    igraph::as_edgelist(graph, names = FALSE)[, 2], knn_graph(x, 2)$to
  )
})

test_that("union joins either direction, with the smaller rank", {
  table <- edge_table(as_igraph(hand_made(), mode = "union"))
  expect_identical(paste0(table$from, table$to), c("ab", "ac", "ad", "bc", "bd"))
  expect_identical(table$rank, c(1L, 1L, 2L, 1L, 1L))
  expect_identical(table$distance, c(0.5, 2, 1, 0.25, 3))
})

test_that("mutual joins what goes both ways", {
  graph <- as_igraph(hand_made(), mode = "mutual")
  expect_false(igraph::is_directed(graph))
  expect_equal(igraph::vcount(graph), 5)
  table <- edge_table(graph)
  expect_identical(paste0(table$from, table$to), "ab")
  expect_identical(table$rank, 1L)
})

test_that("the same edge twice is not mutual", {
  edges <- hand_made()[c(2, 2), ]
  expect_equal(igraph::ecount(as_igraph(edges, mode = "mutual")), 0)
  expect_equal(igraph::ecount(as_igraph(edges, mode = "union")), 1)
})

test_that("union and mutual agree with igraph's own on a real graph", {
  edges <- knn_graph(random_matrix(60, 8), 5)
  directed <- as_igraph(edges)
  name <- if (utils::packageVersion("igraph") < "2.1") {
    "as.undirected"
  } else {
    "as_undirected"
  }
  igraphs_own <- getExportedValue("igraph", name)
  for (mode in c(union = "collapse", mutual = "mutual")) {
    ours <- as_igraph(edges, mode = if (mode == "mutual") "mutual" else "union")
    theirs <- igraphs_own(directed, mode = mode, edge.attr.comb = "first")
    expect_equal(igraph::ecount(ours), igraph::ecount(theirs))
    expect_equal(igraph::ecount(igraph::difference(ours, theirs)), 0)
    expect_equal(igraph::ecount(igraph::difference(theirs, ours)), 0)
  }
})

test_that("distance and correlation are the same both ways", {
  edges <- knn_graph(random_matrix(60, 8), 59, "spearman")
  table <- edge_table(as_igraph(edges, mode = "mutual"))
  expect_identical(nrow(table), 1770L)
  first <- match(paste(table$from, table$to), paste(edges$from, edges$to))
  second <- match(paste(table$to, table$from), paste(edges$from, edges$to))
  expect_identical(edges$distance[first], edges$distance[second])
  expect_identical(edges$correlation[first], edges$correlation[second])
  expect_identical(
    as.integer(table$rank), pmin(edges$rank[first], edges$rank[second])
  )
})

test_that("there is no weight unless it is asked for", {
  expect_false("weight" %in% igraph::edge_attr_names(as_igraph(hand_made())))
})

test_that("similarity is what the metric says", {
  weight_of <- function(edges, ...) {
    igraph::E(as_igraph(edges, weight = "similarity", ...))$weight
  }
  r <- c(0.5, 0.25, 0.5, 0.75, 0.125, 1)
  distance <- hand_made()$distance
  expect_equal(weight_of(hand_made("pearson", correlation = r)), r)
  expect_equal(
    weight_of(hand_made("spearman", "absolute", correlation = -r)), r
  )
  expect_equal(weight_of(hand_made("pearson", "negative", correlation = -r)), r)
  expect_equal(weight_of(hand_made("euclidean")), 1 / (1 + distance))
  expect_equal(weight_of(hand_made("manhattan")), 1 / (1 + distance))
  expect_equal(weight_of(hand_made("chebyshev")), 1 / (1 + distance))
  near <- hand_made("cosine")[c(1, 4), ]
  expect_equal(weight_of(near), c(0.5, 0.75))
  near <- hand_made("proportional")[c(1, 4), ]
  expect_equal(weight_of(near), c(0.5, 0.75))
})

test_that("distance is the other weight", {
  graph <- as_igraph(hand_made(), weight = "distance")
  expect_identical(igraph::E(graph)$weight, hand_made()$distance)
})

test_that("edges whose weight is not positive are dropped on demand", {
  edges <- hand_made("pearson", correlation = c(0.5, 0, 0.5, -0.75, 0.1, 1))
  graph <- as_igraph(edges, weight = "similarity", negative = "drop")
  expect_equal(igraph::vcount(graph), 5)
  expect_identical(igraph::E(graph)$weight, c(0.5, 0.5, 0.1, 1))
})

test_that("vertices can be given, with attributes of their own", {
  edges <- hand_made()
  plain <- as.data.frame(unclass(edges)) # no attributes left
  vertices <- data.frame(
    gene = c("D", "C", "B", "A"), name = c("d", "c", "b", "a")
  )
  graph <- as_igraph(plain, vertices = vertices)
  expect_identical(igraph::V(graph)$name, c("d", "c", "b", "a"))
  expect_identical(igraph::V(graph)$gene, c("D", "C", "B", "A"))
  expect_identical(
    igraph::V(as_igraph(edges, vertices = letters))$name, letters
  )
})

test_that("a graph of no edges has its points", {
  graph <- as_igraph(hand_made()[0, ], mode = "union", weight = "distance")
  expect_equal(igraph::vcount(graph), 5)
  expect_equal(igraph::ecount(graph), 0)
})

test_that("wrong edges, weights and vertices are errors", {
  edges <- hand_made("pearson", correlation = c(0.5, 0, 0.5, -0.75, 0.1, 1))
  merged <- merge(edges, data.frame(from = c("a", "b"), note = "n"))
  unknown <- edges
  attr(unknown, "metric") <- NULL
  expect_messages({
    as_igraph(1:3)
    as_igraph(list(from = 1, to = 2))
    as_igraph(data.frame(from = 1))
    as_igraph(merged)
    as_igraph(merged, vertices = c("a", "b"))
    as_igraph(edges, vertices = c("a", "a"))
    as_igraph(edges, vertices = c(d = 1, c = 2, b = 1, a = 2))
    as_igraph(edges, vertices = data.frame(gene = "a"))
    as_igraph(edges, vertices = list("a"))
    as_igraph(edges, weight = "similarity")
    as_igraph(edges[1:2, ], weight = "similarity")
    as_igraph(unknown, weight = "similarity")
    as_igraph(hand_made("pearson"), weight = "similarity")
    as_igraph(edges[c("from", "to")], weight = "distance")
    as_igraph(edges, weight = "weight")
    as_igraph(edges, mode = "undirected")
    as_igraph(edges, negative = "keep")
  })
})

test_that("a vector of ids of any class names the points", {
  ids <- c(1e5, 2e5, 1e15, 123456, 1e6, 7:11)
  x <- random_matrix(10, 6)
  rownames(x) <- sprintf("%.0f", ids)
  edges <- knn_graph(x, 3)
  right <- as_igraph(edges)
  kinds <- list(ids, factor(ids))
  if (requireNamespace("bit64", quietly = TRUE)) {
    kinds <- c(kinds, list(bit64::as.integer64(ids)))
  }
  bare <- structure(edges, vertices = NULL)
  file <- withr::local_tempfile(fileext = ".graphml")
  write_edges(edges, file)
  for (vertices in kinds) {
    expect_identical(
      igraph::as_data_frame(as_igraph(bare, vertices = vertices), "both"),
      igraph::as_data_frame(right, "both")
    )
    other <- withr::local_tempfile(fileext = ".graphml")
    for (given in list(bare, edges)) {
      write_edges(given, other, vertices = vertices)
      expect_identical(readLines(other), readLines(file))
    }
    write_edges(structure(edges, vertices = vertices), other)
    expect_identical(readLines(other), readLines(file))
  }
})
