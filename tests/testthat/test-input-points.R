test_that("what is no numeric matrix is an error that says what it is", {
  expect_messages({
    knn_search(list(1, 2))
    knn_search(NULL)
    knn_search(factor(c("a", "b")))
    knn_search(1:10)
    knn_search("a")
    knn_search(matrix("a", 2, 2))
    knn_search(matrix(1i, 2, 2))
    knn_search(matrix(raw(4), 2, 2))
    knn_search(matrix(list(1, 2), 2, 1))
    knn_search(array(0, c(2, 2, 2)))
    knn_search(mean)
    knn_search(quote(x))
    knn_search(Sys.Date())
  })
})

test_that("columns that are not numeric are an error that names them", {
  frame <- data.frame(a = c(1, 2, 3), b = c("x", "y", "z"), c = factor(1:3))
  many <- as.data.frame(matrix("a", 3, 6))
  nested <- data.frame(a = 1:3)
  nested$m <- matrix(1:6, 3)
  expect_messages({
    knn_search(frame)
    knn_search(many)
    knn_search(nested)
    knn_search(data.frame(a = 1:3, when = Sys.Date() + 1:3))
    knn_search(cbind(nested, when = Sys.Date() + 1:3))
  })
  # The code of the hint works.
  nested$m[1, 2] <- 9L
  expect_identical(
    knn_search(as.matrix(nested), 1),
    knn_search(cbind(1:3, c(1, 2, 3), c(9, 5, 6)), 1)
  )
})

test_that("an S4 matrix is an error with a way out", {
  here <- environment()
  new_matrix <- methods::setClass(
    "TestMatrix", slots = c(size = "integer"), where = here
  )
  methods::setMethod("dim", "TestMatrix", function(x) x@size, where = here)
  x <- new_matrix(size = c(3L, 2L))
  expect_messages(knn_search(x))
  methods::removeMethod("dim", "TestMatrix", where = here)
  methods::removeClass("TestMatrix", where = here)
})

test_that("a matrix is handed on as it is", {
  x <- matrix(1:6, 3, dimnames = list(c("a", "b", "c"), NULL))
  points <- fsknn:::as_points(x)
  expect_identical(points$values, x)
  expect_identical(points$names, c("a", "b", "c"))
  expect_null(fsknn:::as_points(unname(x))$names)
})

test_that("a matrix with a class of its own is a matrix", {
  x <- table(c(1, 1, 2, 3), c(1, 2, 2, 2))
  expect_identical(
    knn_search(x, 1, "euclidean"), knn_search(unclass(x), 1, "euclidean")
  )
})

test_that("a data frame becomes a matrix of the narrowest type", {
  points <- fsknn:::as_points(data.frame(a = 1:3, b = c(TRUE, FALSE, TRUE)))
  expect_type(points$values, "integer")
  expect_identical(unname(points$values), cbind(1:3, c(1L, 0L, 1L)))
  expect_identical(colnames(points$values), c("a", "b"))
  points <- fsknn:::as_points(data.frame(a = 1:3, b = c(0.5, 1, 2)))
  expect_type(points$values, "double")
})

test_that("automatic row names are no names", {
  frame <- data.frame(a = 1:3, b = 3:1)
  expect_null(fsknn:::as_points(frame)$names)
  row.names(frame) <- c("x", "y", "z")
  expect_identical(fsknn:::as_points(frame)$names, c("x", "y", "z"))
})

test_that("64-bit integers, whose bits are no doubles, are refused", {
  x <- structure(matrix(0, 2, 2), class = "integer64")
  expect_wrong(knn_search(x, 1))
})

test_that("Bioconductor's containers are their expression values", {
  x <- random_matrix(12, 5)
  dimnames(x) <- list(paste0("g", 1:12), paste0("s", 1:5))
  expected <- knn_graph(x, 2)
  if (requireNamespace("Biobase", quietly = TRUE)) {
    expect_identical(knn_graph(Biobase::ExpressionSet(x), 2), expected)
  }
  skip_if_not_installed("SummarizedExperiment")
  set <- SummarizedExperiment::SummarizedExperiment(list(x))
  expect_identical(knn_graph(set, 2), expected)
  expect_identical(plan_of(set, 2), plan_of(x, 2))
  expect_wrong(knn_search(SummarizedExperiment::SummarizedExperiment(), 2))
})

test_that("columns of a matrix or a data frame can be the points", {
  x <- random_matrix(7, 12)
  dimnames(x) <- list(paste0("s", 1:7), paste0("g", 1:12))
  turned <- knn_search(t(x), 3)
  expect_identical(knn_search(x, 3, points = "columns"), turned)
  expect_identical(knn_search(as.data.frame(x), 3, points = "columns"), turned)
  expect_identical(
    knn_graph(as.data.frame(x), 3, points = "columns"), knn_graph(t(x), 3)
  )
  whole <- small_integers(7, 12)
  storage.mode(whole) <- "integer"
  expect_type(
    fsknn:::take_points(whole, fsknn:::check_input("columns"))$values, "integer"
  )
  expect_identical(
    knn_search(whole, 3, points = "columns"), knn_search(t(whole), 3)
  )
  counts <- table(c(1, 1, 2, 3), c(1, 2, 2, 2))
  expect_identical(
    without_names(knn_search(counts, 1, "euclidean", points = "columns")),
    knn_search(matrix(c(1, 0, 0, 1, 1, 1), 2, byrow = TRUE), 1, "euclidean")
  )
})

test_that("where columns are the points, messages speak of columns", {
  x <- random_matrix(5, 6)
  dimnames(x) <- list(NULL, paste0("g", 1:6))
  flat <- x
  flat[, 2] <- 1
  broken <- x
  broken[3, 4] <- NaN
  named <- x
  rownames(named) <- paste0("s", 1:5)
  expect_messages({
    knn_query(named, named[4:1, ], 2, points = "columns")
    knn_search(flat, 2, points = "columns")
    knn_search(broken, 2, points = "columns")
    knn_search(x[, 1, drop = FALSE], 1, points = "columns")
    knn_search(x[1, , drop = FALSE], 1, points = "columns")
    knn_search(x[0, , drop = FALSE], 1, points = "columns")
    nearest_to(x, "g9", 1, points = "columns")
    nearest_to(flat, "g2", 1, points = "columns", constant = "isolate")
    knn_query(x, x[1:4, ], 2, points = "columns")
    knn_search(x, 2, points = "cells")
    knn_search(list(1, 2), 1, points = "columns")
    knn_search(data.frame(a = 1:3, b = letters[1:3]), 1, points = "columns")
    knn_search(metafeatures(abs(x)), 2, points = "columns")
  })
})

test_that("matrices of package Matrix are as the plain ones", {
  skip_if_not_installed("Matrix")
  x <- small_integers(15, 8, largest = 1)
  dimnames(x) <- list(paste0("g", 1:15), paste0("s", 1:8))
  expected <- knn_graph(x, 3, "manhattan")
  turned <- knn_graph(x, 3, "manhattan", points = "columns")
  kinds <- list(
    methods::as(x, "CsparseMatrix"), methods::as(x, "RsparseMatrix"),
    methods::as(x, "TsparseMatrix"), Matrix::Matrix(x, sparse = FALSE),
    methods::as(methods::as(x == 1, "CsparseMatrix"), "nMatrix"),
    methods::as(x == 1, "CsparseMatrix")
  )
  for (kind in kinds) {
    expect_identical(knn_graph(kind, 3, "manhattan"), expected)
    expect_identical(
      knn_graph(kind, 3, "manhattan", points = "columns"), turned
    )
    expect_identical(plan_of(kind, 3), plan_of(x, 3))
  }
  symmetric <- Matrix::forceSymmetric(Matrix::Matrix(random_matrix(9, 9)))
  expect_identical(
    knn_search(symmetric, 2), knn_search(as.matrix(symmetric), 2)
  )
})

test_that("a plan reads no value of a sparse matrix", {
  skip_if_not_installed("Matrix")
  wide <- Matrix::sparseMatrix(1, 1, x = 1, dims = c(2e6, 4e5))
  plan <- knn_plan(wide, 3, backend = "cpu")
  expect_identical(plan$num_points, knn_plan(c(2e6, 4e5), 3)$num_points)
  plan <- knn_plan(wide, 3, points = "columns", backend = "cpu")
  expect_identical(plan$num_points, knn_plan(c(4e5, 2e6), 3)$num_points)
  # The matrix would take 6 TB as doubles.
  expect_error(knn_search(wide, 3), class = "fsknn_error")
})

test_that("a sparse matrix that is not valid is an error", {
  skip_if_not_installed("Matrix")
  x <- methods::as(random_matrix(12, 5), "CsparseMatrix")
  short <- x
  short@x <- short@x[1:20]
  expect_error(knn_search(short, 2), "valid <dgCMatrix>")
  expect_error(knn_graph(short, 2, points = "columns"), "valid <dgCMatrix>")
  expect_wrong(knn_query(x, short, 2))
  expect_wrong(knn_plan(short, 2))
  skip_if_not_installed("DelayedArray")
  delayed <- DelayedArray::DelayedArray(x)
  delayed@seed <- short
  expect_wrong(knn_search(delayed, 2))
})
