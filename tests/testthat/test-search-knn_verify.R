# Answers are right, so these tests make them wrong and see that it is told.

agrees <- function(result, x, ..., n = 1e6) {
  verified <- knn_verify(result, x, n, ...)
  expect_identical(verified$agree, rep(TRUE, length(verified$rows)))
  expect_identical(nrow(verified$differences), 0L)
  expect_lt(verified$largest, 1e-9)
  invisible(verified)
}

problems <- function(result, x, ...) {
  knn_verify(result, x, 1e6, ...)$differences[c("row", "neighbour", "problem")]
}

expect_problems <- function(found, row, neighbour, problem) {
  expect_identical(
    found, data.frame(row = row, neighbour = neighbour, problem = problem),
    ignore_attr = TRUE
  )
}

# Edges of a search that found fewer of them.
found_fewer <- function(edges, rows) {
  facts <- searched_of(edges)
  facts$num_rows <- NULL
  edges <- edges[rows, ]
  attr(edges, "searched") <- new_searched(facts)
  edges
}

test_that("each verb's answer agrees, under every metric and sign", {
  raw <- random_matrix(60, 9)
  block <- rep(c("b", "c", "a"), 20)
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(raw, metric)
    find <- function(verb, ...) {
      verb(..., metric = metric, sign = sign, backend = backend)
    }
    agrees(find(knn_search, x, 5), x)
    agrees(find(knn_search, x, rep(0:3, 15)), x)
    agrees(find(knn_graph, x, 5, subset = c(9, 3)), x)
    agrees(find(knn_query, x[-(1:4), ], x[1:4, ], 5), x[-(1:4), ],
           query = x[1:4, ])
    agrees(find(nearest_to, x, 7, 5), x)
    agrees(find(nearest_to, x, c(7, 2), 5), x)
    some <- stats::median(find(knn_search, x, 5)$distance)
    agrees(find(within_search, x, some), x)
    agrees(find(within_search, x, rep(some, 2), subset = 3:4), x)
    for (between in list(FALSE, TRUE, "together")) {
      agrees(find(knn_search, x, 2, block = block, between = between), x)
      agrees(find(knn_graph, x, 2, block = block, between = between), x)
    }
  })
})

test_that("threshold graphs agree, and so do some of their points", {
  for (metric in c("pearson", "cosine", "proportional", "jaccard")) {
    x <- values_for(random_matrix(60, 9), metric)
    whole <- agrees(threshold_graph(x, 0.5, metric), x)
    expect_length(whole$rows, 60)
    agrees(threshold_graph(x, 0.5, metric, subset = c(3, 9)), x)
  }
})

test_that("hard points agree", {
  for (x in hard_matrices()) {
    for (metric in c("pearson", "bicor", "euclidean", "canberra")) {
      agrees(knn_search(x, 5, metric, constant = "isolate"), x)
    }
  }
})

test_that("isolated points are no neighbours, and cause no warning", {
  x <- random_matrix(40, 6)
  dimnames(x) <- list(paste0("g", 1:40), NULL)
  x[3, ] <- 1
  for (metric in c("pearson", "spearman")) {
    expect_silent({
      agrees(knn_search(x, 4, metric, constant = "isolate"), x)
      agrees(knn_graph(x, 4, metric, constant = "isolate"), x)
    })
  }
})

test_that("weights, covariates and missing values are those of the search", {
  x <- random_matrix(50, 12)
  samples <- some_samples(12)
  weights <- c(0, 1:11)
  for (metric in c("pearson", "spearman")) {
    agrees(knn_search(x, 4, metric, weights = weights), x)
    agrees(knn_search(x, 4, metric, adjust = ~ age + batch, data = samples), x)
    agrees(
      knn_query(
        x, x[1:3, ], 4, metric, weights = weights, adjust = ~ age,
        data = samples
      ),
      x, query = x[1:3, ]
    )
  }
  x[seq(1, 600, by = 7)] <- NA
  for (metric in c("pearson", "spearman", "euclidean", "manhattan")) {
    agrees(knn_graph(x, 4, metric, na = "mean"), x)
    short <- suppressMessages(
      knn_search(x, 45, metric, na = "pairwise", min_pairs = 9)
    )
    agrees(short, x)
    agrees(within_search(x, 0.5, metric, na = "pairwise"), x)
  }
})

test_that("containers, columns, names and files are read as the search did", {
  x <- random_matrix(40, 6)
  agrees(knn_graph(t(x), 3, points = "columns"), t(x))
  dimnames(x) <- list(paste0("g", 1:40), letters[1:6])
  agrees(knn_graph(x, 3), x)
  agrees(nearest_to(x, c("g3", "g1"), 3), x)
  agrees(threshold_graph(as.data.frame(x), 0.5), as.data.frame(x))
  agrees(knn_query(x, x[1:3, 6:1], 3), x, query = x[1:3, 6:1])
  agrees(knn_search(metafeatures(x[1:5, ]), 3), metafeatures(x[1:5, ]))
  skip_if_not_installed("SummarizedExperiment")
  set <- SummarizedExperiment::SummarizedExperiment(list(a = x, b = x^3))
  agrees(knn_graph(set, 3, assay = "b"), set)
  agrees(knn_graph(set, 3, assay = "b", points = "columns"), set)
})

test_that("answers from a folder and from shards agree", {
  x <- random_matrix(40, 6)
  folder <- withr::local_tempfile()
  agrees(knn_graph(x, 3, weights = c(0, 1:5), checkpoint = folder), x)
  agrees(knn_collect(folder), x)
  skip_if_not_installed("DelayedArray")
  for (precision in c("double", "single")) {
    output <- knn_output(
      withr::local_tempfile(), format = "bin", precision = precision
    )
    shards <- knn_search(x, 3, output = output)
    expect_true(all(knn_verify(shards, x)$agree))
  }
})

test_that("a neighbour that is swapped for a farther one is told", {
  x <- random_matrix(40, 6)
  found <- knn_search(x, 4)
  right <- found$index[7, 4]
  other <- knn_search(x, 30)$index[7, 30]
  found$index[7, 4] <- other
  expect_problems(
    problems(found, x), 7L, c(other, right), c("other distance", "missing")
  )
  found$distance[7, 4] <- knn_search(x, 30)$distance[7, 30]
  expect_problems(problems(found, x), 7L, right, "missing")
})

test_that("a distance, an order, a repetition and the point itself are told", {
  x <- random_matrix(40, 6)
  good <- knn_search(x, 4, "euclidean")
  index <- good$index[7, ]
  bad <- good
  bad$distance[7, 2] <- bad$distance[7, 2] * (1 + 1e-8)
  expect_problems(problems(bad, x), 7L, index[[2]], "other distance")
  expect_identical(nrow(problems(bad, x, tolerance = 1e-7)), 0L)
  bad$distance[7, 2] <- NA
  expect_problems(problems(bad, x), 7L, index[[2]], "other distance")
  bad <- good
  bad$index[7, 1:2] <- bad$index[7, 2:1]
  bad$distance[7, 1:2] <- bad$distance[7, 2:1]
  expect_problems(problems(bad, x), 7L, index[[1]], "out of order")
  bad <- good
  bad$index[7, 4] <- index[[3]]
  bad$distance[7, 4] <- bad$distance[7, 3]
  expect_true("twice" %in% problems(bad, x)$problem)
  bad <- good
  bad$index[7, 1] <- 7L
  expect_true("no candidate" %in% problems(bad, x)$problem)
  bad$index[7, 1] <- 41L
  expect_true("no candidate" %in% problems(bad, x)$problem)
})

test_that("of ties the lower index comes first", {
  x <- random_matrix(5, 6)[rep(1:5, 4), ]
  found <- knn_search(x, 3, "euclidean")
  agrees(found, x)
  found$index[2, ] <- rev(found$index[2, ])
  expect_identical(problems(found, x)$problem, rep("out of order", 2))
})

test_that("an edge that is dropped is told, at both ends if undirected", {
  x <- random_matrix(40, 6)
  dimnames(x) <- list(paste0("g", 1:40), NULL)
  edges <- knn_graph(x, 4)
  to <- match(edges$to, rownames(x))
  expect_problems(
    problems(found_fewer(edges, -6), x), 2L, to[[6]], "missing"
  )
  graph <- threshold_graph(x, 0.6)
  ends <- match(c(graph$from[[5]], graph$to[[5]]), rownames(x))
  expect_problems(
    problems(found_fewer(graph, -5), x), ends, rev(ends), "missing"
  )
  within <- within_search(x, 0.4)
  row <- which(lengths(within$index) > 1)[[1]]
  out <- within$index[[row]][[2]]
  within$index[[row]] <- within$index[[row]][-2]
  within$distance[[row]] <- within$distance[[row]][-2]
  expect_problems(problems(within, x), row, out, "missing")
})

test_that("one beyond the distance, one too many and another block are told", {
  x <- random_matrix(40, 6)
  within <- within_search(x, 0.4)
  row <- which(lengths(within$index) == 1)[[1]]
  next_one <- knn_search(x, 2)
  within$index[[row]][[2]] <- next_one$index[row, 2]
  within$distance[[row]][[2]] <- next_one$distance[row, 2]
  expect_problems(problems(within, x), row, next_one$index[row, 2], "too far")
  few <- knn_search(x, rep(3:4, 20))
  more <- knn_search(x, 4)
  few$index[[1]] <- more$index[1, ]
  few$distance[[1]] <- more$distance[1, ]
  expect_problems(problems(few, x), 1L, more$index[1, 4], "one too many")
  none <- knn_search(x, rep(0:1, 20))
  none$index[[1]] <- more$index[1, 1]
  none$distance[[1]] <- more$distance[1, 1]
  expect_problems(problems(none, x), 1L, more$index[1, 1], "one too many")
  blocks <- knn_search(x, 2, block = rep(1:2, 20), between = TRUE)
  blocks$index[1, 1] <- 3L
  expect_true("no candidate" %in% problems(blocks, x)$problem)
})

test_that("rows are spread over all, and the generator is left alone", {
  x <- random_matrix(200, 4)
  found <- knn_search(x, 3)
  withr::local_seed(1)
  before <- get(".Random.seed", globalenv())
  verified <- knn_verify(found, x, 20)
  expect_identical(get(".Random.seed", globalenv()), before)
  expect_length(unique(verified$rows), 20)
  expect_identical((verified$rows - 1) %/% 10, 0:19 + 0)
  expect_identical(knn_verify(found, x, 200)$rows, 1:200)
})

test_that("neighbours of other packages need a metric", {
  x <- random_matrix(40, 6)
  other <- as_knn(as_knn(knn_search(x, 4, "manhattan"), "FNN"))
  agrees(other, x, metric = "manhattan")
  expect_gt(nrow(problems(other, x, metric = "euclidean")), 40)
})

test_that("a saved result is checked", {
  x <- random_matrix(40, 6)
  file <- withr::local_tempfile()
  saveRDS(knn_search(x, 4, "spearman", "negative"), file)
  agrees(readRDS(file), x)
})

test_that("verdicts print", {
  x <- small_integers(30, 5)
  found <- knn_search(x, 4, "manhattan")
  other <- as_knn(as_knn(found, "FNN"))
  expect_snapshot({
    knn_verify(found, x)
    found$index[7, 4] <- 7L
    found$distance[3, 1] <- 9
    knn_verify(found, x)
    print(knn_verify(other, x, metric = "chebyshev"), n = 2)
  })
  # The sampled row depends on the clock, so that all must be right.
  one <- format(knn_verify(knn_search(x, 4, "manhattan"), x, 1))
  expect_match(one[[1]], "^1 of 1 row agrees with the .* \\(a sample of 30\\)$")
})

test_that("what can't be computed again is refused in words", {
  x <- random_matrix(30, 6)
  found <- knn_search(x, 4)
  graph <- knn_graph(x, 4)
  expect_messages({
    knn_verify(mst_knn(x), x)
    knn_verify(undirected_edges(graph), x)
    knn_verify(mutual_pairs(x, rep(1:2, 15), 3), x)
    knn_verify(nearest_to(x, outcome = 1:6, k = 2), x)
    knn_verify(as_knn(found), x)
    knn_verify(as_knn(graph), x, metric = "l1")
    knn_verify(found, x, metric = "pearson")
    knn_verify(found, x[-1, ])
    knn_verify(found, x, query = x)
    knn_verify(knn_query(x, x[1:2, ], 3), x)
    knn_verify(found, x, n = 0)
    knn_verify(found, x, tolerance = -1)
    knn_verify(as_knn(list(index = matrix(2:1, 2))), x, metric = "pearson")
  })
  attr(graph, "searched") <- NULL
  expect_messages(knn_verify(graph, x))
  dimnames(x) <- list(paste0("g", 1:30), NULL)
  named <- knn_graph(x, 4)
  expect_messages(knn_verify(named, unname(x)))
})

test_that("a part of a result, or another order of it, is refused", {
  x <- random_matrix(300, 6)
  edges <- knn_graph(x, 4)
  graph <- threshold_graph(x[1:30, ], 0.6)
  expect_messages({
    knn_verify(edges[edges$rank < 3, ], x)
    knn_verify(edges[1, ], x)
    knn_verify(edges[nrow(edges):1, ], x)
    knn_verify(edges[order(edges$from, -edges$rank), ], x)
    knn_verify(nearest_to(x, 1:2, 3)[-1, ], x)
    knn_verify(nearest_to(x, 1:2, 3)[6:1, ], x)
  })
  expect_error(
    knn_verify(graph[-1, ], x[1:30, ]), class = "fsknn_argument_error"
  )
  agrees(graph[rev(seq_len(nrow(graph))), ], x[1:30, ])
  agrees(knn_graph(x, 2, subset = c(9, 3)), x)
})

test_that("points and queries in another order are matched by name", {
  x <- random_matrix(40, 6)
  rownames(x) <- paste0("g", 1:40)
  back <- x[40:1, ]
  agrees(knn_search(x, 4), back)
  agrees(knn_search(x, rep(2:3, 20)), back)
  agrees(within_search(x, 0.4), back)
  agrees(knn_graph(x, 4), back)
  agrees(threshold_graph(x, 0.6), back)
  agrees(knn_search(x, 2, block = rep(1:2, each = 20)), back)
  agrees(knn_search(t(x), 4, points = "columns"), t(back))
  agrees(knn_query(x, x[1:9, ], 4), x, query = x[9:1, ])
  agrees(knn_search(x, 4), unname(x))
  expect_messages({
    knn_verify(knn_search(x, 4, subset = 1:3), back)
    knn_verify(nearest_to(x, "g3", 4), back)
    knn_verify(knn_search(x, 4), `rownames<-`(x, paste0("g", 2:41)))
  })
})

test_that("distances in single precision are shown, with their tolerance", {
  x <- matrix(c(0, 1, 3, 7, 12), 5)
  found <- knn_search(x, 1, "euclidean")
  found$distance[] <- found$distance * c(1 + 2^-24, 1, 1, 1, 1)
  expect_snapshot(knn_verify(found, x))
  found$distance[1, 1] <- 1 + 3e-6
  expect_match(
    utils::capture.output(print(knn_verify(found, x))), "tolerance = 1e-5",
    all = FALSE
  )
  found$distance[] <- found$distance * c(1.5, 1, 1, 1, 1)
  expect_false(any(grepl(
    "single", utils::capture.output(print(knn_verify(found, x)))
  )))
})

test_that("a container's matrix is not taken for the container", {
  skip_if_not_installed("SummarizedExperiment")
  x <- random_matrix(30, 6)
  set <- SummarizedExperiment::SummarizedExperiment(list(a = x, b = x^3))
  found <- knn_search(set, 3, assay = "b")
  expect_messages(
    knn_verify(found, SummarizedExperiment::assay(set, "b"))
  )
})

test_that("the shapes of other packages are led to as_knn()", {
  x <- random_matrix(30, 6)
  other <- as_knn(knn_search(x, 3), "FNN")
  expect_messages(knn_verify(unclass(other), x))
  agrees(as_knn(unclass(other)), x, metric = "pearson")
})

test_that("queries are not compared with points in another order", {
  x <- random_matrix(250, 6)
  rownames(x) <- paste0("g", seq_len(250))
  found <- list(
    knn_query(x, x[1:3, ] + 0.1, 4), within_query(x, x[1:3, ] + 0.1, 0.3)
  )
  for (one in found) {
    expect_true(all(knn_verify(one, x, query = x[1:3, ] + 0.1)$agree))
    expect_error(
      knn_verify(one, x[250:1, ], query = x[1:3, ] + 0.1),
      "must have its points in the order of the search",
      class = "fsknn_argument_error"
    )
    # Without names the order is not known.
    unnamed <- knn_verify(one, unname(x[250:1, ]), query = x[1:3, ] + 0.1)
    expect_false(all(unnamed$agree))
  }
})
