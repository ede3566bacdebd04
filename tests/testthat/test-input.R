test_that("what is no numeric matrix is an error that says what it is", {
  expect_snapshot(error = TRUE, {
    find_knn(list(1, 2))
    find_knn(NULL)
    find_knn(factor(c("a", "b")))
    find_knn(1:10)
    find_knn("a")
    find_knn(matrix("a", 2, 2))
    find_knn(matrix(1i, 2, 2))
    find_knn(matrix(raw(4), 2, 2))
    find_knn(matrix(list(1, 2), 2, 1))
    find_knn(array(0, c(2, 2, 2)))
    find_knn(mean)
    find_knn(quote(x))
    find_knn(Sys.Date())
  })
})

test_that("columns that are not numeric are an error that names them", {
  frame <- data.frame(a = c(1, 2, 3), b = c("x", "y", "z"), c = factor(1:3))
  many <- as.data.frame(matrix("a", 3, 6))
  nested <- data.frame(a = 1:3)
  nested$m <- matrix(1:6, 3)
  expect_snapshot(error = TRUE, {
    find_knn(frame)
    find_knn(many)
    find_knn(nested)
    find_knn(data.frame(a = 1:3, when = Sys.Date() + 1:3))
  })
})

test_that("an S4 matrix is an error with a way out", {
  here <- environment()
  new_matrix <- methods::setClass(
    "TestMatrix", slots = c(size = "integer"), where = here
  )
  methods::setMethod("dim", "TestMatrix", function(x) x@size, where = here)
  x <- new_matrix(size = c(3L, 2L))
  expect_snapshot(find_knn(x), error = TRUE)
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
    find_knn(x, 1, "euclidean"), find_knn(unclass(x), 1, "euclidean")
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
  expect_error(find_knn(x, 1), class = "fsknn_argument_error")
})

test_that("Bioconductor's containers are their expression values", {
  x <- random_matrix(12, 5)
  dimnames(x) <- list(paste0("g", 1:12), paste0("s", 1:5))
  expected <- knn_graph(x, 2)
  if (requireNamespace("Biobase", quietly = TRUE)) {
    expect_identical(knn_graph(Biobase::ExpressionSet(x), 2), expected)
  }
  skip_if_not_installed("SummarizedExperiment")
  set <- SummarizedExperiment::SummarizedExperiment(list(x, x + 1))
  expect_identical(knn_graph(set, 2), expected)
  expect_identical(knn_plan(set, 2), knn_plan(x, 2))
  expect_error(
    find_knn(SummarizedExperiment::SummarizedExperiment(), 2),
    class = "fsknn_argument_error"
  )
})
