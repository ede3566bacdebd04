some_weights <- function(num_features, seed = 1) {
  exp(3 * uniform_numbers(num_features, seed)) - 1
}

weighted_r <- function(x, weights, rank = FALSE) {
  if (rank) {
    x <- t(apply(x, 1, rank))
  }
  stats::cov.wt(t(x), weights / sum(weights), cor = TRUE)$cor
}

test_that("weighted correlations are those of cov.wt()", {
  x <- random_matrix(40, 23)
  x[1:10, ] <- small_integers(10, 23)
  x[11:14, ] <- x[11:14, ] + 1e6
  weights <- some_weights(23)
  for (metric in c("pearson", "spearman")) {
    r <- weighted_r(x, weights, metric == "spearman")
    for (sign in fsknn:::metric_signs) {
      for (backend in backends_here()) {
        edges <- knn_graph(
          x, 39, metric, sign, weights = weights, backend = backend
        )
        expect_equal(
          edges$correlation, r[cbind(edges$from, edges$to)], tolerance = 1e-9
        )
        of_r <- switch(
          sign, signed = 1 - r, absolute = 1 - abs(r), negative = 1 + r
        )
        expect_same_neighbours(
          knn_search(x, 5, metric, sign, weights = weights, backend = backend),
          without_self(of_r), metric, tolerance = 1e-9
        )
      }
    }
  }
})

test_that("whole weights repeat samples", {
  x <- random_matrix(30, 6)
  weights <- c(2, 1, 3, 1, 4, 2)
  edges <- knn_graph(x, 29, weights = weights)
  r <- stats::cor(t(x[, rep(1:6, weights)]))
  expect_equal(
    edges$correlation, r[cbind(edges$from, edges$to)], tolerance = 1e-13
  )
})

test_that("a weighted correlation by hand", {
  # The means are 0.5 and 1.25 under weights 2, 1, 1.
  x <- rbind(c(0, 1, 1), c(1, 0, 3))
  a <- x[1, ] - 0.5
  b <- x[2, ] - 1.25
  w <- c(2, 1, 1)
  r <- sum(w * a * b) / sqrt(sum(w * a^2) * sum(w * b^2))
  edges <- knn_graph(x, 1, weights = w)
  expect_equal(edges$correlation, c(r, r), tolerance = 1e-15)
})

test_that("weighted answers are exactly the brute-force ones", {
  matrices <- hard_matrices()
  for (name in names(matrices)) {
    x <- matrices[[name]]
    weights <- some_weights(ncol(x), seed = 7)
    for (metric in c("pearson", "spearman")) {
      skip <- which(apply(x, 1, function(row) max(row) == min(row)))
      expected <- brute_force(
        x, k = 7, metric = metric, skip = skip, weights = weights
      )
      found <- function(...) {
        knn_search(x, 7, metric, weights = weights, constant = "isolate", ...)
      }
      expect_everywhere(found, expected, paste(name, metric))
    }
  }
})

test_that("only the proportions of weights matter", {
  x <- random_matrix(50, 9)
  weights <- some_weights(9)
  expected <- knn_search(x, 5, weights = weights)
  expect_identical(knn_search(x, 5, weights = weights * 2^-900), expected)
  expect_identical(knn_search(x, 5, weights = weights * 2^1000), expected)
  expect_equal(knn_search(x, 5, weights = weights * 3), expected)
})

test_that("weights that are all alike change nothing", {
  x <- random_matrix(50, 9)
  for (metric in c("pearson", "spearman")) {
    plain <- knn_graph(x, 5, metric)
    expect_identical(knn_graph(x, 5, metric, weights = rep(0.7, 9)), plain)
    expect_identical(knn_graph(x, 5, metric, weights = rep(3L, 9)), plain)
  }
})

test_that("a sample of weight 0 is left out, whatever it holds", {
  x <- random_matrix(50, 9)
  x[, 2] <- rep_len(c(NA, Inf, -Inf, NaN, 1), 50)
  x[, 7] <- 1e308
  rownames(x) <- paste0("g", 1:50)
  weights <- some_weights(9)
  weights[c(2, 7)] <- 0
  kept <- weights > 0
  for (backend in backends_here()) {
    for (metric in c("pearson", "spearman")) {
      expect_identical(
        knn_graph(x, 4, metric, weights = weights, backend = backend),
        knn_graph(
          x[, kept], 4, metric, weights = weights[kept], backend = backend
        )
      )
      # The other weights are all equal.
      expect_identical(
        knn_search(x, 4, metric, weights = kept + 0, backend = backend),
        knn_search(x[, kept], 4, metric, backend = backend)
      )
    }
  }
})

test_that("samples of weight 0 are left out of what does not fit in memory", {
  x <- random_matrix(150, 9)
  dimnames(x) <- list(paste0("g", 1:150), letters[1:9])
  x[, 2] <- rep_len(c(NA, Inf, -Inf, NaN, 1), 150)
  weights <- some_weights(9)
  weights[c(2, 7)] <- 0
  blocks <- block_matrices(x)
  if (!is.null(blocks[["big.matrix"]])) {
    blocks[["columns"]] <- bigmemory::as.big.matrix(t(x))
  }
  for (kind in names(blocks)) {
    points <- if (kind == "columns") "columns" else "rows"
    for (metric in c("pearson", if (kind == "in memory") "spearman")) {
      expect_identical(
        without_names(knn_search(
          blocks[[kind]], 4, metric, weights = weights, points = points,
          max_memory = 1e3
        )),
        without_names(knn_search(x, 4, metric, weights = weights)),
        label = kind
      )
    }
    if (!kind %in% c("square chunks", "big.matrix", "columns") && !is_long()) {
      next
    }
    # Five of the nine columns count, and they fit in memory.
    five <- c(1, 0, 1, 0, 1, 0, 1, 0, 1)
    fits <- 8 * 150 * 5
    find <- function(max_memory) {
      # Writing a file would be an error.
      withr::local_options(fsknn.temporary_folder = "nowhere")
      knn_search(
        blocks[[kind]], 4, weights = five, points = points,
        max_memory = max_memory
      )
    }
    expect_identical(
      without_names(find(fits)),
      without_names(knn_search(x, 4, weights = five))
    )
    expect_error(find(fits - 1), "temporary_folder")
    plan <- function(max_memory) {
      knn_plan(
        blocks[[kind]], 4, weights = five, points = points, backend = "cpu",
        max_memory = max_memory
      )$bytes_file
    }
    expect_identical(plan(fits), 0)
    expect_identical(plan(fits - 1), fits)
  }
  broken <- x
  broken[3, 4] <- NA
  message_of <- function(x) {
    conditionMessage(expect_error(
      knn_search(x, 3, weights = weights, max_memory = 1e3)
    ))
  }
  for (blocks in block_matrices(broken)[c("in memory", "big.matrix")]) {
    skip_if(is.null(blocks))
    expect_identical(message_of(blocks), message_of(broken))
  }
})

test_that("a row is constant if it is on the samples that count", {
  x <- random_matrix(20, 5)
  x[4, ] <- c(1, 1, 7, 1, 1)
  x[9, ] <- c(2, 2, 2, 2, 3)
  weights <- c(1, 2, 0, 1, 1e-3)
  rownames(x) <- paste0("g", 1:20)
  expect_messages(knn_search(x, 3, weights = weights))
  found <- knn_search(x, 18, weights = weights, constant = "isolate")
  expect_identical(which(is.na(found$index[, 1])), c(g4 = 4L))
})

test_that("messages name the columns as they were given", {
  x <- random_matrix(20, 5)
  x[3, 4] <- NA
  expect_messages(knn_search(x, 3, weights = c(0, 1, 0, 2, 1)))
})

test_that("every verb takes weights", {
  x <- random_matrix(60, 8)
  rownames(x) <- paste0("g", 1:60)
  query <- random_matrix(25, 8, seed = 2)
  weights <- c(0, some_weights(7))
  kept <- weights[-1]
  for (backend in backends_here()) {
    expect_same_bits(
      knn_query(x, query, 5, weights = weights, backend = backend),
      brute_force(
        x[, -1], query[, -1], k = 5, metric = "pearson", weights = kept
      )
    )
    few <- query[1:3, ]
    expect_same_bits(
      knn_query(x, few, 5, "spearman", weights = weights, backend = backend),
      brute_force(
        x[, -1], few[, -1], k = 5, metric = "spearman", weights = kept
      )
    )
    edges <- knn_graph(x, 6, weights = weights, backend = backend)
    near <- nearest_to(x, "g9", 6, weights = weights, backend = backend)
    own <- edges[edges$from == "g9", ]
    expect_identical(near$name, own$to)
    expect_identical(near$distance, own$distance)
    expect_identical(near$correlation, own$correlation)
  }
  clusters <- mst_knn(x, weights = weights)
  r <- weighted_r(x[, -1], kept)
  expect_equal(
    clusters$tree$correlation, r[cbind(clusters$tree$from, clusters$tree$to)]
  )
  # The whole tree is computed by igraph.
  graph <- igraph::graph_from_adjacency_matrix(
    1 - r, "undirected", weighted = TRUE, diag = FALSE
  )
  expect_equal(
    sum(clusters$tree$distance), sum(igraph::E(igraph::mst(graph))$weight)
  )
})

test_that("metafeatures take weights", {
  x <- random_matrix(9, 11)
  m <- metafeatures(x, c("-", "*"))
  weights <- c(0, some_weights(10))
  for (backend in backends_here()) {
    for (metric in c("pearson", "spearman")) {
      expect_same_bits(
        knn_search(m, 4, metric, weights = weights, backend = backend),
        brute_force(
          as.matrix(m)[, -1], k = 4, metric = metric, weights = weights[-1]
        )
      )
    }
  }
})

test_that("prints and plans say that samples are weighted", {
  x <- random_matrix(20, 5)
  weights <- c(0, 1:4)
  edges <- knn_graph(x, 3, weights = weights, backend = "cpu")
  expect_match(
    capture.output(edges)[[1]], "pearson (signed), weighted", fixed = TRUE
  )
  expect_true(attr(edges[edges$rank == 1, ], "weighted"))
  expect_match(capture.output(mst_knn(x, weights = weights))[[1]], "weighted")
  expect_match(capture.output(mst_knn(edges))[[1]], "weighted")
  expect_true(any(grepl("weighted", format(knn_stats()))))
  plan <- knn_plan(x, 3, weights = weights, backend = "cpu")
  expect_equal(plan$num_features, 4)
  expect_true(any(grepl("weighted", format(plan))))
  expect_equal(
    knn_plan(c(100, 5), 3, weights = weights, backend = "cpu")$num_features, 4
  )
  plain <- knn_graph(x, 3)
  expect_null(attr(plain, "weighted"))
  expect_no_match(capture.output(plain)[[1]], "weighted")
})

test_that("wrong weights are errors", {
  x <- random_matrix(20, 4)
  colnames(x) <- letters[1:4]
  expect_messages({
    knn_search(x, 3, "bicor", weights = 1:4)
    knn_search(x, 3, "euclidean", weights = 1:4)
    knn_search(x, 3, weights = 1:3)
    knn_query(x, x, 3, weights = 1:5)
    knn_graph(x, 3, weights = c(1, NA, 2, NaN))
    nearest_to(x, 1, 3, weights = c(1, Inf, 2, 3))
    mst_knn(x, weights = c(1, -1, 2, 3))
    knn_search(x, 3, weights = numeric(4))
    knn_search(x, 3, weights = c(0, 0, 2, 0))
    knn_search(x, 3, weights = "a")
    knn_search(x, 3, weights = matrix(1:4))
    knn_search(x, 3, weights = c(TRUE, FALSE, TRUE, TRUE))
    knn_search(x, 3, weights = c(1, 2, 3, 1e-16))
    knn_plan(c(20, 4), 3, weights = 1:3)
    knn_search(x, 3, weights = c(-1, -2, -3, -4))
  })
})
