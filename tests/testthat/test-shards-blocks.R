# Verbs that take answers also take shards.

test_that("graphs of shards are those of the answer", {
  x <- random_matrix(120, 7)
  x[11, ] <- 3
  search <- function(...) knn_search(x, 5, constant = "isolate", ...)
  plain <- search()
  edges <- as_knn(plain, "edges")
  for (format in c("hdf5", "bin")) {
    skip_if_not_installed(if (format == "bin") "DelayedArray" else "HDF5Array")
    shards <- search(output = knn_output(
      tempfile(), format, shard_rows = 50, precision = "double"
    ))
    skip_if_not_installed("Matrix")
    for (value in list(NULL, "distance", "one", "rank")) {
      expect_identical(as_sparse(shards, value), as_sparse(plain, value))
    }
    for (mode in c("union", "mutual")) {
      for (value in list(NULL, "one")) {
        expect_identical(
          as_sparse(shards, value, mode = mode),
          as_sparse(edges, value, mode = mode)
        )
      }
    }
    for (type in c("rank", "number", "jaccard")) {
      expect_identical(snn_graph(shards, type), snn_graph(plain, type))
    }
    expect_identical(
      undirected_edges(shards, "mutual"), undirected_edges(plain, "mutual")
    )
    tree <- spanning_forest(shards)
    expect_identical(
      as.data.frame(unclass(tree)), as.data.frame(unclass(spanning_forest(edges)))
    )
    expect_identical(attr(tree, "kind"), "Minimum spanning forest")
    expect_identical(attr(tree, "vertices"), attr(edges, "vertices"))
  }
})

test_that("a diffusion map of shards is that of the answer, by their metric", {
  skip_if_not_installed("DelayedArray")
  x <- random_matrix(120, 7)
  x[11, ] <- 3
  for (metric in c("pearson", "euclidean")) {
    search <- function(...) {
      knn_search(x, 8, metric, constant = "isolate", ...)
    }
    shards <- search(output = knn_output(
      tempfile(), "bin", shard_rows = 50, precision = "double"
    ))
    expect_identical(
      diffusion_map(shards, 3, local = 2),
      diffusion_map(search(), 3, local = 2, metric = metric)
    )
    expect_identical(
      diffusion_map(shards, 3, mode = "mutual"),
      diffusion_map(search(), 3, mode = "mutual", metric = metric)
    )
  }
  expect_wrong(diffusion_map(shards, metric = "pearson"), "euclidean")
})

test_that("shards that were changed are told of where they are taken", {
  skip_if_not_installed("DelayedArray")
  skip_if_not_installed("Matrix")
  changed <- function(index, distance) {
    shards <- knn_search(
      random_matrix(60, 5), 3, "euclidean",
      output = knn_output(tempfile(), "bin", precision = "double")
    )
    if (!is.null(index)) shards$index[c(2, 40), 2] <- index
    if (!is.null(distance)) shards$distance[4, 1] <- distance
    shards
  }
  right <- changed(NULL, NULL)
  of_itself <- as_knn(right)$index[c(2, 40), 1]
  expect_error(diffusion_map(changed(NULL, -1)), class = "fsknn_shards_error")
  expect_error(
    as_sparse(changed(NULL, Inf), mode = "union"),
    class = "fsknn_shards_error"
  )
  for (take in list(snn_graph, as_sparse)) {
    expect_wrong(
      take(changed(of_itself, NULL)), "2 points have one twice: 2, 40"
    )
  }
  expect_wrong(diffusion_map(changed(of_itself, NULL)), "point 2")
})

# Small whole numbers have many ties.
test_that("blocks of any size give the same", {
  skip_if_not_installed("DelayedArray")
  skip_if_not_installed("Matrix")
  x <- matrix(as.double((seq_len(48) * 7) %% 5), 24)
  shards <- knn_search(
    x, 6, "manhattan",
    output = knn_output(tempfile(), "bin", shard_rows = 9, precision = "double")
  )
  plain <- knn_search(x, 6, "manhattan")
  forest <- spanning_forest(as_knn(plain, "edges"))
  for (at_once in c(1, 50, 1e6)) {
    expect_identical(
      fsknn:::sparse_of_shards(shards, NULL, NULL, at_once), as_sparse(plain)
    )
    expect_identical(
      as.data.frame(unclass(fsknn:::forest_of_shards(shards, NULL, at_once))),
      as.data.frame(unclass(forest))
    )
    expect_identical(
      fsknn:::symmetric_of_shards(shards, NULL, "union", NULL, at_once),
      as_sparse(plain, mode = "union")
    )
    held <- fsknn:::shards_in_memory(shards, "x", NULL, at_once)
    expect_identical(held$index, plain$index)
    expect_identical(held$distance, plain$distance)
    shared <- fsknn:::cpp_shared_neighbours(
      fsknn:::sets_of_shards(shards, "x", NULL, at_once), "rank", 0, 1e6, 1L,
      FALSE
    )
    expect_identical(shared$similarity, snn_graph(plain)$similarity)
    expect_identical(
      fsknn:::hits_by_blocks(plain, shards, FALSE, at_once = at_once),
      fsknn:::hits_by_blocks(plain, shards, FALSE)
    )
  }
})

test_that("recall is that of the answers, whichever of them are shards", {
  skip_if_not_installed("DelayedArray")
  x <- random_matrix(90, 5)
  exact <- knn_search(x, 8, "euclidean")
  approx <- list(index = exact$index[, 1:5], distance = exact$distance[, 1:5])
  approx$index[1:30, 5] <- exact$index[1:30, 6]
  expected <- knn_recall(approx, exact)
  expect_lt(expected$recall, 1)
  in_folder <- function(k, ...) {
    knn_search(x, k, "euclidean", output = knn_output(
      tempfile(), "bin", shard_rows = 20, precision = "double"
    ), ...)
  }
  shards <- in_folder(8)
  expect_identical(knn_recall(approx, shards), expected)
  uwot <- as_knn(approx, "uwot")
  expect_identical(knn_recall(uwot, shards), expected)
  expect_identical(knn_recall(in_folder(5), shards)$recall, 1)
  expect_identical(knn_recall(in_folder(5), exact)$recall, 1)
  lists <- knn_search(x, rep(c(2, 5), 45), "euclidean")
  expect_identical(knn_recall(lists, shards), knn_recall(lists, exact))
  expect_wrong(knn_recall(exact, in_folder(5)), "at least as many")
  query <- x[1:12, ] + 0.01
  of_queries <- knn_query(x, query, 4, "euclidean", output = knn_output(
    tempfile(), "bin", precision = "double"
  ))
  plain <- knn_query(x, query, 4, "euclidean")
  expect_identical(knn_recall(plain, of_queries)$recall, 1)
})

test_that("recall of shards counts ties as that of answers does", {
  skip_if_not_installed("DelayedArray")
  x <- matrix(as.double((seq_len(160) * 7) %% 5), 80)
  exact <- knn_search(x, 6, "manhattan")
  approx <- knn_search(x[80:1, ], 4, "manhattan")
  approx$index <- 81L - approx$index[80:1, ]
  shards <- knn_search(
    x, 6, "manhattan",
    output = knn_output(tempfile(), "bin", shard_rows = 30, precision = "double")
  )
  expect_identical(knn_recall(approx, shards), knn_recall(approx, exact))
})

test_that("what needs all points, or all in memory, says so", {
  skip_if_not_installed("DelayedArray")
  skip_if_not_installed("Matrix")
  x <- random_matrix(60, 5)
  some <- knn_search(x, 3, subset = 1:9, output = knn_output(tempfile(), "bin"))
  all <- knn_search(x, 3, output = knn_output(tempfile(), "bin"))
  queries <- knn_query(x, x[1:3, ], 3, output = knn_output(tempfile(), "bin"))
  withr::local_options(fsknn.max_memory = 1000)
  expect_messages({
    as_sparse(some)
    snn_graph(queries)
    spanning_forest(some)
    as_knn(all)
    undirected_edges(all)
    as_sparse(all, mode = "mutual")
    diffusion_map(all)
    diffusion_map(queries)
  })
  # By blocks it does not matter.
  expect_s4_class(as_sparse(all), "dgCMatrix")
  expect_s3_class(snn_graph(all), "fsknn_edges")
})
