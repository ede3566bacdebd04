same_as_matrix <- function(x, blocks, k, metric, sign, max_memory, label) {
  for (backend in backends_here()) {
    expect_same_bits(
      knn_search(
        blocks, k, metric, sign, backend = backend, max_memory = max_memory
      ),
      knn_search(x, k, metric, sign, backend = "cpu"),
      paste(label, metric, sign, backend)
    )
  }
}

test_that("every kind of matrix gives the answer of a plain one, fitting or not", {
  x <- metric_values("pearson", 210, 23)
  x[cbind(1:210, rep_len(1:23, 210))] <- 0
  blocks <- block_matrices(x)
  for (kind in names(blocks)) {
    for (max_memory in c(1e9, 1e4)) {
      same_as_matrix(
        x, blocks[[kind]], 6, "pearson", "signed", max_memory, kind
      )
    }
  }
})

test_that("block against block is exact under every metric", {
  skip_if_not_installed("DelayedArray")
  metrics <- all_metrics()
  for (at in seq_len(nrow(metrics))) {
    metric <- metrics$metric[[at]]
    x <- metric_values(metric, 199, 11)
    same_as_matrix(
      x, DelayedArray::DelayedArray(x), 7, metric, metrics$sign[[at]], 1e4,
      "blocks"
    )
  }
})

test_that("hard matrices come through blocks as they are", {
  skip_if_not_installed("DelayedArray")
  hard <- hard_matrices()
  for (name in names(hard)) {
    x <- hard[[name]]
    for (metric in c("pearson", "euclidean", "manhattan")) {
      expect_same_bits(
        knn_search(
          DelayedArray::DelayedArray(x), 5, metric, backend = "cpu",
          max_memory = 1, constant = "isolate"
        ),
        knn_search(x, 5, metric, backend = "cpu", constant = "isolate"),
        paste(name, metric)
      )
    }
  }
})

test_that("sorted rows, whose neighbours are all in one block, are no harder", {
  skip_if_not_installed("DelayedArray")
  x <- random_matrix(300, 9, seed = 5)
  x <- x[order(x[, 1]), ]
  x[, 1] <- x[, 1] * 50
  expect_same_bits(
    knn_search(
      DelayedArray::DelayedArray(x), 9, "euclidean", backend = "cpu",
      max_memory = 1e4
    ),
    knn_search(x, 9, "euclidean", backend = "cpu")
  )
})

test_that("queries by blocks, against points by blocks or in memory", {
  skip_if_not_installed("DelayedArray")
  x <- metric_values("pearson", 230, 12)
  query <- metric_values("pearson", 120, 12, seed = 2)
  lazy <- DelayedArray::DelayedArray
  for (metric in c("pearson", "euclidean", "chebyshev")) {
    expected <- knn_query(x, query, 5, metric, backend = "cpu")
    ask <- function(x, query, max_memory, rows = TRUE) {
      knn_query(x, query, 5, metric, backend = "cpu", max_memory = max_memory)
    }
    expect_identical(ask(lazy(x), lazy(query), 1e3), expected)
    expect_identical(ask(lazy(x), query, 1e3), expected)
    expect_identical(ask(x, lazy(query), 1e3), expected)
    # Only the query fits in memory.
    expect_identical(ask(lazy(x), lazy(query), 15000), expected)
    few <- knn_query(x, query[1:3, ], 5, metric, backend = "cpu")
    expect_identical(ask(lazy(x), query[1:3, ], 1e3), few)
  }
})

test_that("edges, correlations, names and isolated points are those of a matrix", {
  skip_if_not_installed("DelayedArray")
  x <- random_matrix(230, 12)
  x[c(1, 50, 51, 229), ] <- 3
  rownames(x) <- paste0("gene", 1:230)
  lazy <- DelayedArray::DelayedArray(x)
  for (sign in c("signed", "absolute")) {
    expect_identical(
      knn_graph(
        lazy, 4, "spearman", sign, constant = "isolate", max_memory = 1e3,
        backend = "cpu"
      ),
      knn_graph(x, 4, "spearman", sign, constant = "isolate", backend = "cpu")
    )
  }
  expect_identical(
    fsknn::nearest_to(
      lazy, "gene7", 6, constant = "isolate", max_memory = 1e3, backend = "cpu"
    ),
    fsknn::nearest_to(x, "gene7", 6, constant = "isolate", backend = "cpu")
  )
})

test_that("some points, and pairs within a distance, are those of a matrix", {
  skip_if_not_installed("DelayedArray")
  withr::local_options(fsknn.max_memory = 1e4)
  x <- random_matrix(220, 9)
  lazy <- DelayedArray::DelayedArray(x)
  rows <- c(200L, 3L, 4L, 5L, 77L, 100:130)
  expect_identical(
    knn_search(lazy, 5, backend = "cpu", subset = rows),
    knn_search(x, 5, backend = "cpu", subset = rows)
  )
  # The pairs fit in memory, but the matrix does not.
  withr::local_options(fsknn.max_memory = 15000)
  expected <- within_search(x, 0.2, backend = "cpu")
  expect_gt(sum(lengths(expected$index)), 0)
  expect_identical(within_search(lazy, 0.2, backend = "cpu"), expected)
})

test_that("columns as points, integers and logicals are read by blocks", {
  skip_if_not_installed("DelayedArray")
  x <- small_integers(150, 8)
  storage.mode(x) <- "integer"
  expected <- knn_search(x, 4, "manhattan", backend = "cpu")
  turned <- DelayedArray::DelayedArray(t(x))
  expect_identical(
    knn_search(
      turned, 4, "manhattan", backend = "cpu", points = "columns",
      max_memory = 1e3
    ),
    expected
  )
  flags <- x > 1
  flags[rowSums(flags) == 0, 1] <- TRUE
  expect_identical(
    knn_search(
      DelayedArray::DelayedArray(flags), 4, "jaccard", backend = "cpu",
      max_memory = 1e3
    ),
    knn_search(flags, 4, "jaccard", backend = "cpu")
  )
})

test_that("what is wrong with values is found while they are read", {
  skip_if_not_installed("DelayedArray")
  x <- random_matrix(130, 7)
  rownames(x) <- paste0("g", 1:130)
  message_of <- function(x, metric = "pearson") {
    conditionMessage(tryCatch(
      knn_search(x, 3, metric, backend = "cpu", max_memory = 1e3),
      error = identity
    ))
  }
  lazy <- DelayedArray::DelayedArray
  broken <- x
  broken[c(2, 120), 3] <- c(NA, Inf)
  expect_match(message_of(broken), "Use `na = \"pairwise\"`, or fill")
  expect_identical(message_of(lazy(broken)), message_of(broken))
  flat <- x
  flat[77, ] <- 1
  expect_identical(message_of(lazy(flat)), message_of(flat))
  expect_identical(
    message_of(lazy(x), "proportional"), message_of(x, "proportional")
  )
  expect_identical(open_row_files(), character())
  text <- lazy(matrix("a", 5, 5))
  expect_messages(knn_search(text, 2))
})

test_that("what needs a matrix in memory says so", {
  skip_if_not_installed("DelayedArray")
  withr::local_options(fsknn.max_memory = 1e3)
  x <- DelayedArray::DelayedArray(random_matrix(130, 7))
  expect_messages(mst_knn(x))
  expect_wrong(metafeatures(x))
  withr::local_options(fsknn.max_memory = NULL)
  expect_identical(
    mst_knn(x, backend = "cpu"),
    mst_knn(random_matrix(130, 7), backend = "cpu")
  )
})

test_that("each chunk is read once, of some rows or columns about once", {
  skip_if_not_installed("DelayedArray")
  x <- random_matrix(1200, 60)
  here <- environment()
  counted <- new_counted_seed(x, c(40L, 20L), here)
  whole <- DelayedArray::DelayedArray(counted$seed)
  kept <- seq(2, 1200, by = 3)
  # Each chunk of the whole is read, or those that hold the requested values.
  cases <- list(
    list(whole, x, 90),
    list(whole[kept, ], x[kept, ], 2 * 90),
    list(whole[101:200, ] * 2, x[101:200, ] * 2, 2 * 12),
    list(t(t(whole)[, kept]), x[kept, ], 2 * 90),
    list(t(whole[, 7:50]), t(x[, 7:50]), 2 * 90)
  )
  for (case in cases) {
    expected <- knn_search(case[[2]], 3, backend = "cpu")
    for (max_memory in c(1e9, 1e4)) {
      counted$reads$chunks <- 0
      expect_identical(
        knn_search(case[[1]], 3, backend = "cpu", max_memory = max_memory),
        expected
      )
      expect_gt(counted$reads$chunks, 0)
      expect_lte(counted$reads$chunks, case[[3]])
    }
  }
  chunks <- fsknn:::chunks_of
  expect_identical(chunks(whole), c(40L, 20L))
  expect_identical(chunks(t(whole)[, kept]), c(20L, 40L))
  expect_null(chunks(rbind(whole, whole)))
  skip_if_not_installed("Matrix")
  sparse <- DelayedArray::DelayedArray(methods::as(x, "CsparseMatrix"))
  expect_identical(chunks(sparse[kept, ] + 1), c(1200, 1))
})

test_that("tiles are whole chunks, each in one tile", {
  shape <- fsknn:::tile_shape
  # Rows are read as they are stored.
  expect_identical(shape(c(1000, 50), c(100, 50), 1e5), c(200, 50))
  # Without chunks, whole rows are read.
  expect_identical(shape(c(1000, 50), NULL, 1e5), c(250, 50))
  # A row of chunks is too large, so some adjacent chunks are read.
  expect_identical(shape(c(1000, 500), c(100, 20), 1e5), c(100, 120))
  # Whole columns are read.
  expect_identical(shape(c(1000, 500), c(1000, 1), 1e5), c(1000, 12))
  # At least one chunk and one row are read.
  expect_identical(shape(c(1000, 500), c(1000, 1), 10), c(1000, 1))
  expect_identical(shape(c(1000, 500), NULL, 10), c(1, 500))
})

test_that("a matrix that fits in memory is read tile by tile all the same", {
  skip_if_not_installed("HDF5Array")
  skip_if_not_installed("Matrix")
  x <- small_integers(300, 60, largest = 20)
  dimnames(x) <- list(paste0("g", 1:300), paste0("s", 1:60))
  whole <- DelayedArray::DelayedArray(x)
  lazy <- list(
    rows = whole, sparse = methods::as(x + 0, "dgCMatrix"),
    square = HDF5Array::writeHDF5Array(
      x, chunkdim = c(50L, 7L), with.dimnames = TRUE
    ),
    tall = HDF5Array::writeHDF5Array(
      x, chunkdim = c(300L, 2L), with.dimnames = TRUE
    )
  )
  limit <- 2e5
  options <- list(max_memory = limit)
  for (kind in names(lazy)) {
    # There are several tiles and no file.
    shape <- fsknn:::tile_shape(
      dim(x), fsknn:::chunks_of(lazy[[kind]]), fsknn:::tile_bytes(limit)
    )
    expect_true(any(shape < dim(x)), label = kind)
    expect_false(any(fsknn:::storage_of(lazy[[kind]], NULL, options)$in_file))
    expect_identical(
      knn_graph(lazy[[kind]], 4, max_memory = limit, backend = "cpu"),
      knn_graph(x, 4, backend = "cpu"), label = kind
    )
    turned <- t(lazy[[kind]])
    expect_identical(
      knn_search(turned, 4, max_memory = limit, backend = "cpu"),
      knn_search(t(x), 4, backend = "cpu"), label = kind
    )
  }
})
