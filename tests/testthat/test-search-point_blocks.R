# The argument `block` compared with a loop over blocks in plain R, and with the
# rest of the package.

# Returns the lists of the points by block, from the order of all others.
lists_by_block <- function(x, k, block, between = FALSE, ...) {
  whole <- knn_search(x, nrow(x) - 1, ...)
  block <- factor(block)
  rows <- lapply(seq_len(nrow(x)), function(i) {
    of <- as.character(block[whole$index[i, ]])
    own <- as.character(block[i])
    wanted <- if (identical(between, "together")) {
      list(utils::head(which(of != own), k))
    } else {
      lapply(
        if (between) setdiff(levels(block), own) else levels(block),
        function(level) utils::head(which(of == level), k)
      )
    }
    unlist(wanted)
  })
  pick <- function(part) {
    t(vapply(seq_along(rows), function(i) {
      whole[[part]][i, rows[[i]]]
    }, whole[[part]][1, rows[[1]]]))
  }
  as_neighbours(list(index = pick("index"), distance = pick("distance")))
}

all_betweens <- list(FALSE, TRUE, "together")

blocked_points <- function() {
  list(
    random = list(x = random_matrix(150, 9), block = rep_len(c("b", "a", "b"), 150)),
    ties = list(
      x = small_integers(90, 5, largest = 2), block = rep(1:3, c(50, 30, 10))
    ),
    copies = list(
      x = random_matrix(7, 6)[rep_len(1:7, 84), ],
      block = gl(4, 21, labels = c("z", "y", "x", "w"))
    )
  )
}

test_that("lists by block are those of a loop, under all metrics", {
  for (case in blocked_points()) {
    for_all_metrics(function(metric, sign, backend) {
      x <- values_for(case$x, metric)
      for (between in all_betweens) {
        found <- knn_search(
          x, 4, metric, sign, block = case$block, between = between,
          backend = backend, chunk_size = 48
        )
        expect_identical(
          found,
          lists_by_block(x, 4, case$block, between, metric = metric, sign = sign),
          label = paste(metric, sign, backend, between)
        )
      }
    }, few_signs())
  }
})

test_that("blocks do not depend on threads, chunks or where the points are", {
  x <- random_matrix(300, 20)
  block <- rep_len(letters[1:5], 300)
  for (between in all_betweens) {
    one <- knn_search(x, 3, block = block, between = between, num_threads = 1)
    for (chunk_size in c(48, 96)) {
      expect_identical(
        knn_search(
          x, 3, block = block, between = between, num_threads = 3,
          chunk_size = chunk_size
        ),
        one
      )
    }
    some <- c(9L, 300L, 9L)
    expect_identical(
      knn_search(x, 3, block = block, between = between, subset = some),
      as_neighbours(list(
        index = one$index[some, ], distance = one$distance[some, ]
      ))
    )
    skip_if_not_installed("DelayedArray")
    expect_identical(
      knn_search(
        DelayedArray::DelayedArray(x), 3, block = block, between = between,
        max_memory = 20000
      ),
      one
    )
  }
})

test_that("a graph's edges by block are those of the search", {
  x <- random_matrix(60, 8)
  rownames(x) <- paste0("cell", 1:60)
  block <- rep_len(c("two", "one", "three"), 60)
  for (between in all_betweens) {
    nn <- knn_search(x, 2, block = block, between = between)
    edges <- knn_graph(x, 2, block = block, between = between)
    expect_identical(edges$to, rownames(x)[t(nn$index)])
    expect_identical(edges$distance, as.vector(t(nn$distance)))
    expect_identical(unique(edges$rank), 1:2)
    expect_identical(
      edges$block,
      factor(block[match(edges$to, rownames(x))], sort(unique(block)))
    )
    from <- match(edges$from, rownames(x))
    r <- stats::cor(t(x))[cbind(from, match(edges$to, rownames(x)))]
    expect_equal(edges$correlation, r, tolerance = 1e-12)
  }
  expect_identical(attr(edges, "between"), "together")
  expect_snapshot({
    for (between in all_betweens) {
      print(knn_graph(x, 2, block = block, between = between), n = 1)
    }
  })
})

test_that("nearest_to() and knn_query() find by block", {
  x <- random_matrix(80, 7)
  block <- rep_len(1:3, 80)
  for (between in all_betweens) {
    whole <- knn_search(x, 4, block = block, between = between)
    nearest <- nearest_to(x, 5, 4, block = block, between = between)
    expect_identical(nearest$index, whole$index[5, ])
    expect_identical(nearest$distance, whole$distance[5, ])
    lists <- switch(paste(between), "FALSE" = 3, "TRUE" = 2, together = 1)
    expect_identical(nearest$rank, rep(1:4, lists))
    expect_identical(as.integer(nearest$block), block[nearest$index])
  }
  query <- random_matrix(20, 7, seed = 5)
  by_block <- lapply(1:3, function(b) {
    of <- which(block == b)
    found <- knn_query(x[of, ], query, 3)
    list(index = matrix(of[found$index], nrow = 20), distance = found$distance)
  })
  expect_identical(
    knn_query(x, query, 3, block = block),
    as_neighbours(list(
      index = do.call(cbind, lapply(by_block, `[[`, "index")),
      distance = do.call(cbind, lapply(by_block, `[[`, "distance"))
    ))
  )
  # Another search serves few queries.
  expect_identical(
    knn_query(x, query[3:4, ], 3, block = block)$index,
    knn_query(x, query, 3, block = block)$index[3:4, ]
  )
})

test_that("blocks of one point, one block, and unused levels are what they are", {
  x <- random_matrix(30, 6)
  each <- knn_search(x, 1, block = seq_len(30), between = TRUE)
  expect_identical(each$index[3, ], setdiff(1:30, 3))
  expect_identical(knn_search(x, 4, block = rep("all", 30)), knn_search(x, 4))
  block <- factor(rep_len(c("a", "b"), 30), levels = c("c", "b", "unused", "a"))
  expect_identical(
    knn_search(x, 2, block = block),
    knn_search(x, 2, block = factor(block, levels = c("b", "a")))
  )
})

test_that("isolated points, weights and missing values count by block, too", {
  x <- random_matrix(60, 8)
  block <- rep_len(1:2, 60)
  flat <- x
  flat[c(4, 11), ] <- 1
  expect_identical(
    knn_search(flat, 3, block = block, constant = "isolate")$index[-c(4, 11), ],
    lists_by_block(x[-c(4, 11), ], 3, block[-c(4, 11)])$index |>
      (\(index) matrix((1:60)[-c(4, 11)][index], ncol = 6))()
  )
  expect_true(all(is.na(
    knn_search(flat, 3, block = block, constant = "isolate")$index[c(4, 11), ]
  )))
  weights <- rep_len(c(1, 3), 8)
  expect_identical(
    knn_search(x, 3, block = block, weights = weights),
    lists_by_block(x, 3, block, weights = weights)
  )
  gaps <- with_gaps(x, seed = 8)
  found <- suppressMessages(
    knn_search(gaps, 3, na = "pairwise", block = block, between = TRUE)
  )
  for (b in 1:2) {
    own <- which(block == b)
    other <- which(block != b)
    by_hand <- suppressMessages(
      knn_query(gaps[other, ], gaps[own, ], 3, na = "pairwise")
    )
    expect_identical(found$index[own, ], matrix(other[by_hand$index], ncol = 3))
  }
  edges <- suppressMessages(knn_graph(gaps, 3, na = "pairwise", block = block))
  expect_true(all(edges$rank %in% 1:3))
  expect_identical(as.integer(edges$block), block[edges$to])
})

test_that("splits, workers and checkpoints give the same by block", {
  x <- random_matrix(120, 6)
  block <- rep_len(1:3, 120)
  withr::local_options(fsknn.split_size = 50)
  for (between in all_betweens) {
    folder <- withr::local_tempdir()
    whole <- knn_graph(x, 2, block = block, between = between)
    for (pass in 1:2) {
      expect_identical(
        knn_graph(x, 2, block = block, between = between, checkpoint = folder),
        whole
      )
    }
    expect_error(
      knn_graph(
        x, 2, block = rev(block), between = between, checkpoint = folder
      ),
      class = "fsknn_checkpoint_error"
    )
    expect_identical(
      knn_search(
        x, 2, block = block, between = between, subset = 100:20,
        checkpoint = withr::local_tempdir()
      ),
      knn_search(x, 2, block = block, between = between, subset = 100:20)
    )
  }
  query <- random_matrix(70, 6, seed = 4)
  expect_identical(
    knn_query(x, query, 2, block = block, checkpoint = withr::local_tempdir()),
    knn_query(x, query, 2, block = block)
  )
})

test_that("what takes edges takes those by block", {
  x <- random_matrix(50, 8)
  block <- rep_len(c("a", "b"), 50)
  edges <- knn_graph(x, 3, block = block)
  graph <- as_igraph(edges, weight = "distance")
  expect_identical(igraph::ecount(graph), 300)
  expect_identical(igraph::edge_attr(graph, "rank"), rep(rep(1:3, 2), 50))
  expect_identical(
    igraph::edge_attr(graph, "block"), rep(rep(c("a", "b"), each = 3), 50)
  )
  merged <- undirected_edges(edges)
  expect_identical(anyDuplicated(merged[c("from", "to")]), 0L)
  # Neighbours are in order of distance in all blocks.
  nn <- as_knn(edges)
  expect_true(all(diff(t(nn$distance)) >= 0))
  # The k nearest of all are among the k nearest of each block.
  exact <- mst_knn(x)$membership
  expect_identical(mst_knn(edges)$membership, mst_knn(knn_graph(x, 6))$membership)
  expect_wrong(mst_knn(knn_graph(x, 3, block = block, between = TRUE)))
  # If both directions are merged, the nearest of all are unknown, too.
  for (between in list(TRUE, "together")) {
    apart <- knn_graph(x, 8, block = block, between = between)
    merged <- undirected_edges(apart)
    expect_identical(attr(merged, "between"), between)
    for (graph in list(merged, as_igraph(apart), as_igraph(merged))) {
      expect_wrong(mst_knn(graph))
    }
  }
  for (format in c("csv", "graphml", "gml")) {
    file <- withr::local_tempfile(fileext = paste0(".", format))
    write_edges(edges, file)
    expect_gt(file.size(file), 1000)
  }
})

test_that("wrong blocks are errors that say what is wrong", {
  x <- random_matrix(20, 5)
  block <- rep_len(1:2, 20)
  expect_messages({
    knn_search(x, 2, block = 1:3)
    knn_search(x, 2, block = list(1))
    knn_search(x, 2, block = "batch")
    knn_search(x, 2, block = replace(block, c(3, 7), NA))
    knn_search(x, 2, block = addNA(factor(replace(block, c(3, 7), NA))))
    knn_search(x, 2, between = TRUE)
    knn_search(x, 2, block = block, between = "both")
    knn_search(x, 2, block = rep("one", 20), between = TRUE)
    knn_search(x, 10, block = block)
    knn_search(x, 3, block = rep(1:2, c(17, 3)))
    knn_search(x, 4, block = rep(1:2, c(17, 3)), between = TRUE)
    knn_search(x, 4, block = rep(1:2, c(17, 3)), between = "together")
    knn_graph(x, 2, block = Sys.Date() + 1:20)
  })
})

test_that("raw and complex values are no labels", {
  x <- random_matrix(20, 10)
  edges <- knn_graph(x, 3, backend = "cpu")
  for (wrong in list(as.raw(rep(1:2, 10)), complex(20, rep(1:2, 10)))) {
    of_samples <- wrong[1:10]
    calls <- list(
      block = function() knn_search(x, 2, block = wrong),
      block = function() mutual_pairs(x, k = 2, block = wrong),
      labels = function() neighbour_mixing(edges, wrong),
      clusters = function() module_summary(wrong, x),
      strata = function() {
        nearest_to(x, 1, 2, permutations = 9, strata = of_samples)
      },
      groups = function() compare_neighbours(x, of_samples, k = 2)
    )
    for (at in seq_along(calls)) {
      expect_wrong(calls[[at]](), names(calls)[[at]])
    }
  }
})
