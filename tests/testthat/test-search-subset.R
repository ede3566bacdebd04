rows_of <- function(found, rows) {
  as_neighbours(list(
    index = found$index[rows, , drop = FALSE],
    distance = found$distance[rows, , drop = FALSE]
  ))
}

test_that("a subset's neighbours are the rows of the whole answer", {
  # The first matrix is searched in small chunks, so that a filter and its seeds
  # are used.
  whole <- list(random_matrix(260, 9), small_integers(260, 5, largest = 2))
  rows <- c(260L, 1L, 7L, 8L, 9L, 9L, 100:199)
  for (matrix in whole) {
    for_all_metrics(function(metric, sign, backend) {
      x <- values_for(matrix, metric)
      all <- knn_search(x, 5, metric, sign, backend = backend)
      for (subset in list(rows, rows[1:4])) {
        found <- knn_search(
          x, 5, metric, sign, backend = backend, subset = subset,
          chunk_size = 48
        )
        expect_identical(
          found, rows_of(all, subset), label = paste(metric, sign, backend)
        )
      }
    })
  }
})

test_that("a subset's neighbours are those of the definition", {
  x <- random_matrix(90, 6)
  rows <- 31:75
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(x, metric)
    found <- knn_search(x, 89, metric, sign, backend = backend, subset = rows)
    defined <- brute_force(x, k = 89, metric = metric, sign = sign)
    expect_same_bits(found, rows_of(defined, rows))
  })
})

test_that("a subset is row numbers, names or a logical vector", {
  x <- random_matrix(40, 5)
  rownames(x) <- paste0("gene", 1:40)
  all <- knn_search(x, 3)
  rows <- c(12, 3)
  expect_identical(knn_search(x, 3, subset = rows), rows_of(all, rows))
  expect_identical(
    knn_search(x, 3, subset = c("gene12", "gene3")), rows_of(all, rows)
  )
  picked <- seq_len(40) %in% rows
  expect_identical(
    knn_search(x, 3, subset = picked), rows_of(all, which(picked))
  )
  expect_identical(
    knn_search(x, 3, subset = integer()),
    without_names(rows_of(all, integer()))
  )
  expect_identical(knn_search(x, 3, subset = 40:1), rows_of(all, 40:1))
})

test_that("edges of a subset are those of its points in the whole graph", {
  x <- random_matrix(70, 6)
  rownames(x) <- paste0("gene", 1:70)
  rows <- c(5, 17, 18, 70)
  for (backend in backends_here()) {
    all <- knn_graph(x, 4, backend = backend)
    found <- knn_graph(x, 4, backend = backend, subset = rows)
    expected <- all[all$from %in% rownames(x)[rows], ]
    rownames(expected) <- NULL
    expect_identical(found, expected)
  }
  expect_identical(
    knn_graph(unname(x), 4, subset = c(70, 5))$from, rep(c(70L, 5L), each = 4)
  )
})

test_that("isolated points of a subset have no neighbours", {
  x <- random_matrix(50, 6)
  x[c(3, 20), ] <- 1
  rows <- c(20, 4, 3, 50)
  for (backend in backends_here()) {
    all <- knn_search(x, 4, constant = "isolate", backend = backend)
    expect_identical(
      knn_search(x, 4, constant = "isolate", backend = backend, subset = rows),
      rows_of(all, rows)
    )
    edges <- knn_graph(
      x, 4, constant = "isolate", backend = backend, subset = rows
    )
    expect_identical(edges$from, rep(c(4L, 50L), each = 4))
    expect_identical(nrow(attr(edges, "vertices")), 50L)
  }
})

test_that("metafeatures have subsets, by name too", {
  x <- random_matrix(8, 6)
  rownames(x) <- letters[1:8]
  all <- knn_search(metafeatures(x), 3)
  for (backend in backends_here()) {
    found <- knn_search(
      metafeatures(x), 3, subset = c("a - c", "g / h", "a"), backend = backend
    )
    rows <- match(c("a - c", "g / h", "a"), rownames(metafeatures(x)))
    expect_identical(found, rows_of(all, rows))
  }
})

test_that("a subset that names no points is an error", {
  x <- random_matrix(20, 4)
  expect_messages({
    knn_search(x, 3, subset = c(1, 21, 2.5, NA, -1))
    knn_search(x, 3, subset = c(TRUE, FALSE))
    knn_search(x, 3, subset = rep(c(TRUE, NA), 10))
    knn_search(x, 3, subset = "gene1")
    knn_search(x, 3, subset = list(1))
    knn_search(x, 3, subset = factor(1))
    knn_graph(x, 3, subset = c(4, 4, 5))
  })
  rownames(x) <- c(paste0("gene", 1:18), "twice", "twice")
  expect_messages({
    knn_search(x, 3, subset = c("gene1", "gene30", "twice"))
  })
})

test_that("a subset of columns is told of as such", {
  x <- random_matrix(6, 20)
  expect_messages({
    knn_search(x, 3, subset = 21, points = "columns")
    knn_search(x, 3, subset = "gene1", points = "columns")
    knn_search(x, 3, subset = list(1), points = "columns")
    knn_graph(x, 3, subset = c(4, 4, 5), points = "columns")
  })
  colnames(x) <- c("twice", "twice", paste0("cell", 3:20))
  expect_messages({
    knn_search(x, 3, subset = c("cell1", "twice"), points = "columns")
  })
})
