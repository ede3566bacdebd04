tom_graph <- function(sign = "absolute") {
  base <- random_matrix(5, 20, seed = 4)
  x <- base[rep(1:5, c(30, 20, 10, 10, 10)), ] *
    rep_len(c(1, 1, -1), 80) + random_matrix(80, 20, seed = 5)
  rownames(x) <- paste0("g", 1:80)
  knn_graph(x, 6, sign = sign, backend = "cpu")
}

# Makes a dense matrix from the edges one by one.
dense_adjacency <- function(edges, power, type) {
  names <- attr(edges, "vertices")$name
  a <- matrix(0, length(names), length(names), dimnames = list(names, names))
  r <- edges$correlation
  s <- switch(
    type, unsigned = abs(r), signed = (1 + r) / 2,
    "signed hybrid" = ifelse(r > 0, r, 0)
  )
  a[cbind(edges$from, edges$to)] <- s^power
  a <- pmax(a, t(a))
  diag(a) <- 1
  a
}

types <- c("unsigned", "signed", "signed hybrid")

test_that("connectivities are sums of the adjacencies of WGCNA", {
  edges <- tom_graph()
  for (type in types) {
    table <- soft_threshold(edges, c(1, 2.5, 6), type)
    for (row in 1:3) {
      k <- rowSums(dense_adjacency(edges, table$power[[row]], type)) - 1
      expect_equal(
        unlist(table[row, c("mean_k", "median_k", "max_k")]),
        c(mean_k = mean(k), median_k = stats::median(k), max_k = max(k)),
        tolerance = 1e-12
      )
    }
  }
  # Each pair counts once in any direction of the graph.
  expect_equal(
    soft_threshold(undirected_edges(edges, "union")), soft_threshold(edges),
    tolerance = 1e-12
  )
})

test_that("the fit is that of WGCNA, and so is the table", {
  skip_if_not_installed("WGCNA")
  edges <- tom_graph()
  for (power in c(1, 4, 12)) {
    k <- rowSums(dense_adjacency(edges, power, "unsigned")) - 1
    theirs <- WGCNA::scaleFreeFitIndex(k)
    ours <- scale_free_fit(k, 10)
    expect_equal(unname(unlist(ours)), unname(unlist(theirs)), tolerance = 1e-9)
    expect_equal(
      unname(unlist(scale_free_fit(k, 7))),
      unname(unlist(WGCNA::scaleFreeFitIndex(k, 7))), tolerance = 1e-9
    )
  }
  similarity <- dense_adjacency(edges, 1, "unsigned")
  # WGCNA warns that it uses no workers.
  suppressWarnings(utils::capture.output(
    theirs <- WGCNA::pickSoftThreshold.fromSimilarity(
      similarity, powerVector = c(1, 4, 12)
    )$fitIndices
  ))
  ours <- soft_threshold(edges, c(1, 4, 12))
  expect_equal(
    unname(as.matrix(as.data.frame(ours))), unname(as.matrix(theirs)),
    tolerance = 1e-6
  )
})

test_that("the topological overlap is that of WGCNA, and by definition", {
  skip_if_not_installed("Matrix")
  edges <- tom_graph()
  # One point is isolated, and one has a single edge.
  edges <- edges[!(edges$from %in% c("g1", "g2") | edges$to == "g1"), ]
  for (type in types) {
    for (power in c(1, 6)) {
      a <- dense_adjacency(edges, power, type)
      tom <- sparse_tom(edges, power, type)
      expect_s4_class(tom, "dsCMatrix")
      expect_true(methods::validObject(tom))
      diag(a) <- 0
      k <- rowSums(a)
      expected <- (a %*% a + a) / (outer(k, k, pmin) + 1 - a)
      diag(expected) <- 1
      expect_equal(as.matrix(tom), expected, tolerance = 1e-12)
      # WGCNA is slow, and knows powers and types no more.
      if (power == 1 && requireNamespace("WGCNA", quietly = TRUE)) {
        diag(a) <- 1
        theirs <- WGCNA::TOMsimilarity(a, verbose = 0)
        expect_equal(unname(as.matrix(tom)), unname(theirs), tolerance = 1e-12)
      }
    }
  }
  plain <- knn_graph(random_matrix(30, 6), 3)
  expect_null(dimnames(sparse_tom(plain))[[1]])
})

test_that("what has no fit or no correlation says so", {
  edges <- tom_graph()
  ring <- edges[c(1, 7), ]
  ring$from <- c("g1", "g2")
  ring$to <- c("g2", "g1")
  ring$correlation <- 0.5
  attr(ring, "vertices") <- data.frame(name = c("g1", "g2"))
  expect_true(is.na(soft_threshold(ring)$r_squared[[1]]))
  euclidean <- knn_graph(random_matrix(30, 6), 3, metric = "euclidean")
  expect_messages({
    soft_threshold(euclidean)
    sparse_tom(euclidean)
    soft_threshold(edges, 0.5)
    soft_threshold(edges, type = "hybrid")
    soft_threshold(edges[0, ])
    sparse_tom(edges, power = 1:2)
    sparse_tom(edges, power = NA)
    soft_threshold("a")
  })
})

test_that("powers are drawn", {
  skip_if_not_installed("ggplot2")
  table <- soft_threshold(tom_graph())
  drawn <- plot(table)
  expect_s3_class(drawn, "ggplot")
  expect_identical(nrow(drawn$data), 2L * nrow(table))
  expect_no_error(ggplot2::ggplotGrob(drawn))
})

test_that("of a matrix of values the hint makes correlations", {
  edges <- random_matrix(20, 8)
  words <- words_of(soft_threshold(edges))
  expect_match(words, "`pair_connectivity\\(edges\\)`")
  expect_match(words, "`knn_graph\\(edges\\)`")
  words <- words_of(sparse_tom(edges))
  expect_match(words, "`knn_graph\\(edges\\)`")
  expect_no_match(words, "pair_connectivity|knn_search")
  expect_no_error(sparse_tom(knn_graph(edges, k = 3)))
})
