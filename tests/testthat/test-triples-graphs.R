# Triples as graphs, in memory and in files.

some_triples <- function() {
  x <- counts_matrix(14, 6)
  x[14, ] <- c(0, 0, 0, 0, 0, 99)
  rownames(x) <- paste0("g", 1:14)
  threshold_triples(x, 0.75)
}

test_that("bipartite: each triple is a vertex beside its three points", {
  triples <- some_triples()
  count <- nrow(triples)
  expect_gt(count, 3)
  g <- as_igraph(triples)
  expect_false(igraph::is_directed(g))
  expect_true(igraph::is_bipartite(g))
  expect_equal(igraph::vcount(g), 14 + count)
  expect_equal(igraph::ecount(g), 3 * count)
  expect_identical(
    igraph::V(g)$name, c(paste0("g", 1:14), paste0("triple", seq_len(count)))
  )
  expect_identical(igraph::V(g)$type, rep(c(FALSE, TRUE), c(14, count)))
  expect_identical(igraph::V(g)$similarity[-(1:14)], triples$similarity)
  expect_identical(igraph::V(g)$at_most[-(1:14)], triples$at_most)
  for (row in seq_len(count)) {
    expect_setequal(
      igraph::neighbors(g, paste0("triple", row))$name,
      unlist(as.data.frame(triples)[row, 1:3])
    )
  }
  weighted <- as_igraph(triples, weight = "similarity")
  expect_identical(igraph::E(weighted)$weight, rep(triples$similarity, each = 3))
})

test_that("clique: each pair that a triple has is an edge", {
  triples <- some_triples()
  g <- as_igraph(triples, form = "clique")
  expect_equal(igraph::vcount(g), 14)
  ends <- igraph::as_edgelist(g)
  pairs <- as.data.frame(triples)
  for (edge in seq_len(igraph::ecount(g))) {
    has <- rowSums(
      pairs[1:3] == ends[edge, 1] | pairs[1:3] == ends[edge, 2]
    ) == 2
    expect_identical(igraph::E(g)$triples[[edge]], sum(has))
    expect_identical(igraph::E(g)$best_triple[[edge]],
                     max(pairs$similarity[has]))
    first <- pairs[which(has)[[1]], ]
    column <- if (first$third != ends[edge, 2]) {
      "pair_from_to"
    } else if (first$from == ends[edge, 1]) {
      "pair_from_third"
    } else {
      "pair_to_third"
    }
    expect_identical(igraph::E(g)$similarity[[edge]], first[[column]])
  }
  all <- rbind(
    pairs[, c("from", "to")],
    stats::setNames(pairs[, c("from", "third")], c("from", "to")),
    stats::setNames(pairs[, c("to", "third")], c("from", "to"))
  )
  expect_identical(nrow(unique(all)), nrow(ends))
})

test_that("no triples are graphs of points alone", {
  none <- some_triples()[0, ]
  expect_equal(igraph::vcount(as_igraph(none)), 14)
  expect_equal(igraph::ecount(as_igraph(none, form = "clique")), 0)
})

test_that("a point that is called as a triple keeps its name", {
  x <- counts_matrix(6, 4)
  rownames(x) <- c("triple1", paste0("g", 2:6))
  g <- as_igraph(threshold_triples(x, 0.5))
  expect_identical(igraph::V(g)$name[[1]], "triple1")
  expect_identical(anyDuplicated(igraph::V(g)$name), 0L)
})

test_that("files hold both graphs, with what is known of the points", {
  local_folder()
  triples <- some_triples()
  genes <- data.frame(name = paste0("g", 14:1), symbol = letters[1:14])
  for (form in c("bipartite", "clique")) {
    expected <- as_igraph(triples, form = form)
    for (file in c("graph.graphml", "graph.gml")) {
      write_edges(triples, file, vertices = genes, form = form)
      back <- igraph::read_graph(file, sub("graph.", "", file, fixed = TRUE))
      expect_identical(igraph::V(back)$name, igraph::V(expected)$name)
      expect_identical(igraph::as_edgelist(back), igraph::as_edgelist(expected))
      expect_equal(igraph::E(back)$similarity, igraph::E(expected)$similarity)
      expect_identical(igraph::V(back)$symbol[1:14], letters[14:1])
    }
  }
  write_edges(triples, "triples.csv", vertices = genes, digits = 17)
  back <- utils::read.csv("triples.csv")
  expect_identical(back[fsknn:::triple_columns], as.data.frame(triples))
  expect_identical(back$third_symbol, letters[15 - match(
    triples$third, paste0("g", 1:14)
  )])
  write_edges(triples, "pairs.csv", form = "clique")
  back <- utils::read.csv("pairs.csv")
  expect_identical(
    names(back), c("from", "to", "similarity", "triples", "best_triple")
  )
})

test_that("CoMet's files of triples are read as they were", {
  local_folder()
  x <- exp(random_matrix(11, 5))
  all <- threshold_triples(x, 0)
  write_edges(all, "bytes", "comet_bytes")
  back <- read_edges("bytes", "comet_bytes", num_way = 3, num_points = 11)
  at <- order(back$from, back$to, back$third)
  expect_identical(back$third[at], all$third)
  expect_identical(back$similarity[at], floor(255 * all$similarity) / 255)
  # Bytes are in order of the middle point, then the last, then the first.
  expect_identical(order(back$to, back$third, back$from), seq_len(165))
  some <- threshold_triples(x, 0.6)
  write_edges(some, "records", "comet")
  expect_identical(file.size("records"), 16 * nrow(some) + 0)
  back <- read_edges("records", "comet", num_way = 3)
  expect_identical(as.list(back[1:3]), as.list(as.data.frame(some)[1:3]))
  expect_equal(back$similarity, some$similarity, tolerance = 1e-7)
  expect_messages(write_edges(some, "bytes", "comet_bytes"))
})

test_that("wrong forms and lost points are errors", {
  triples <- some_triples()
  edges <- threshold_graph(counts_matrix(9, 5), 0.8, "proportional")
  lost <- triples
  attr(lost, "vertices") <- NULL
  expect_messages({
    as_igraph(triples, form = "star")
    as_igraph(edges, form = "clique")
    as_igraph(triples, weight = "distance")
    as_igraph(lost)
    as_igraph(triples[, 1:4], form = "clique")
    write_edges(edges, "graph.gml", form = "bipartite")
    as_igraph(triples, vertices = data.frame(name = paste0("g", 1:14), type = 1))
  })
})

test_that("stages that have lost columns are not put together", {
  x <- counts_matrix(12, 5)
  parts <- lapply(1:2, function(i) {
    threshold_triples(x, 0.6, stage = c(i, 2))[, 1:4]
  })
  expect_wrong(do.call(rbind, parts))
})
