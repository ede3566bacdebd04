test_that("dplyr's verbs keep what edges have beside them", {
  skip_if_not_installed("dplyr")
  x <- random_matrix(30, 6)
  rownames(x) <- paste0("g", 1:30)
  edges <- knn_graph(x, k = 3)
  genes <- data.frame(to = rownames(x), symbol = paste0("S", 1:30))
  kept <- attributes(edges)[c("vertices", "metric", "sign", "k", "num_features")]
  parts <- list(
    dplyr::filter(edges, .data$distance < 0.4),
    dplyr::mutate(edges, near = .data$rank == 1),
    dplyr::arrange(edges, dplyr::desc(.data$distance)),
    dplyr::left_join(edges, genes, by = "to"),
    dplyr::inner_join(edges, genes, by = "to"),
    dplyr::select(edges, "from", "to", "distance"),
    dplyr::slice_min(edges, .data$distance, n = 5),
    dplyr::distinct(edges),
    dplyr::semi_join(edges, genes[1:9, ], by = "to"),
    dplyr::rename(edges, r = "correlation")
  )
  for (part in parts) {
    expect_s3_class(part, "fsknn_edges")
    expect_identical(attributes(part)[names(kept)], kept)
    expect_equal(igraph::vcount(as_igraph(part)), 30)
  }
  expect_identical(parts[[4]]$symbol, sub("g", "S", edges$to))
})

test_that("what has no ends any more is a plain data frame", {
  skip_if_not_installed("dplyr")
  edges <- knn_graph(random_matrix(30, 6), k = 3)
  for (part in list(
    dplyr::select(edges, "rank", "distance"),
    dplyr::transmute(edges, close = 1 - .data$distance)
  )) {
    expect_s3_class(part, "data.frame", exact = TRUE)
    expect_null(attr(part, "vertices"))
  }
  by_point <- dplyr::summarise(
    dplyr::group_by(edges, .data$from), mean = mean(.data$distance)
  )
  expect_identical(nrow(by_point), 30L)
  expect_false(inherits(by_point, "fsknn_edges"))
})

test_that("tidygraph has all points, and what is known of them", {
  skip_if_not_installed("tidygraph")
  edges <- knn_graph(random_matrix(30, 6), k = 3)
  near <- edges[edges$from <= 2, ]
  graph <- tidygraph::as_tbl_graph(near)
  expect_equal(igraph::vcount(graph), 30)
  expect_equal(igraph::ecount(graph), 6)
  expect_identical(igraph::E(graph)$distance, near$distance)
  clusters <- mst_knn(random_matrix(30, 6), k = 1)
  graph <- tidygraph::as_tbl_graph(clusters)
  expect_false(igraph::is_directed(graph))
  expect_identical(igraph::V(graph)$cluster, unname(clusters$membership))
})

test_that("dplyr's verbs keep what triples have beside them, and no more", {
  skip_if_not_installed("dplyr")
  x <- counts_matrix(12, 5)
  triples <- threshold_triples(x, 0.6, stage = c(1, 2))
  rest <- threshold_triples(x, 0.6, stage = c(2, 2))
  for (part in list(
    dplyr::filter(triples, .data$similarity > 0.7),
    dplyr::slice(triples, 1:3),
    dplyr::arrange(triples, dplyr::desc(.data$similarity)),
    dplyr::mutate(triples, similarity = 0)
  )) {
    expect_s3_class(part, "fsknn_triples")
    expect_identical(attr(part, "vertices"), attr(triples, "vertices"))
    expect_null(attr(part, "checksum"))
    expect_wrong(rbind(part, rest))
    expect_s3_class(rbind(part), "data.frame", exact = TRUE)
  }
  expect_identical(
    attr(dplyr::mutate(triples, place = 1), "checksum"),
    attr(triples, "checksum")
  )
  expect_s3_class(
    dplyr::select(triples, "from", "to"), "data.frame", exact = TRUE
  )
  counts <- triple_histogram(x, 5, stage = c(1, 2))
  some <- dplyr::filter(counts, .data$triples > 0)
  expect_s3_class(some, "data.frame", exact = TRUE)
  expect_null(attr(some, "stage"))
  expect_identical(dplyr::filter(counts, .data$triples >= 0), counts)
})
