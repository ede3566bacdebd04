expression <- function() {
  x <- random_matrix(6, 5, seed = 61)
  dimnames(x) <- list(paste0("g", 1:6), paste0("s", 1:5))
  x
}
years <- c(2, 7.5, 1, 12, 3)

test_that("the outcome is the last row of a matrix", {
  x <- expression()
  found <- add_phenotype(x, years, "relapse")
  expect_identical(found[1:6, ], x)
  expect_identical(unname(found["relapse", ]), years)
  expect_identical(colnames(found), colnames(x))
  expect_identical(
    rownames(add_phenotype(unname(x), years, "relapse")),
    c(1:6, "relapse")
  )
  # The new point is like any other.
  nn <- knn_search(found, 3)
  expect_identical(nearest_to(found, "relapse", 3)$index, nn$index[7, ])
})

test_that("whole numbers and conditions are outcomes", {
  x <- expression()
  storage.mode(x) <- "integer"
  found <- add_phenotype(x, c(TRUE, FALSE, TRUE, TRUE, FALSE), "relapse")
  expect_type(found, "integer")
  expect_identical(unname(found[7, ]), c(1L, 0L, 1L, 1L, 0L))
})

test_that("a second outcome goes after the first", {
  x <- add_phenotype(expression(), years, "relapse")
  x <- add_phenotype(x, rev(years), "death")
  expect_identical(rownames(x)[7:8], c("relapse", "death"))
})

test_that("a data frame stays one", {
  x <- as.data.frame(expression())
  found <- add_phenotype(x, years, "relapse")
  expect_s3_class(found, "data.frame")
  expect_identical(found[1:6, ], x)
  expect_identical(unlist(found["relapse", ], use.names = FALSE), years)
  row.names(x) <- NULL
  names(x)[[1]] <- "a b"
  found <- add_phenotype(x, years, "relapse")
  expect_identical(row.names(found), c(1:6, "relapse"))
  expect_identical(names(found), names(x))
})

test_that("of metafeatures the outcome is the last row and in no pair", {
  x <- expression()
  m <- metafeatures(x, c("-", "/"))
  found <- add_phenotype(m, years, "relapse")
  expect_identical(dim(found), c(37L, 5L))
  expect_identical(as.matrix(found)[1:36, ], as.matrix(m))
  expect_identical(unname(found["relapse", ]), years)
  expect_identical(rownames(found)[[37]], "relapse")
  twice <- add_phenotype(found, rev(years), "death")
  expect_identical(unname(twice["relapse", ]), years)
  expect_identical(unname(twice[38, ]), rev(years))
  # These are some of the metafeatures.
  some <- add_phenotype(m[c(36, 2), ], years, "relapse")
  expect_identical(rownames(some), c("g5 / g6", "g2", "relapse"))
  expect_identical(unname(some["relapse", ]), years)
})

test_that("missing values are an error, or their samples are dropped", {
  x <- expression()
  absent <- replace(years, c(2, 5), NA)
  expect_messages({
    found <- add_phenotype(x, absent, "relapse", na = "drop")
    unnamed <- add_phenotype(unname(x), absent, "relapse", na = "drop")
  })
  rest <- x[, -c(2, 5)]
  expect_identical(found, add_phenotype(rest, years[-c(2, 5)], "relapse"))
  suppressMessages(
    m <- add_phenotype(metafeatures(x), absent, "relapse", na = "drop")
  )
  expect_identical(
    as.matrix(m),
    as.matrix(add_phenotype(metafeatures(rest), years[-c(2, 5)], "relapse"))
  )
})

test_that("an ExpressionSet gets a row, and NA for what is not known of it", {
  skip_if_not_installed("Biobase")
  x <- expression()
  set <- Biobase::ExpressionSet(
    Biobase::assayDataNew(exprs = x, error = x + 1),
    Biobase::AnnotatedDataFrame(
      data.frame(
        years = years, death = replace(years, 3, NA), row.names = colnames(x)
      )
    ),
    Biobase::AnnotatedDataFrame(
      data.frame(symbol = letters[1:6], row.names = rownames(x))
    )
  )
  found <- add_phenotype(set, "years")
  expect_true(methods::validObject(found))
  expect_identical(Biobase::exprs(found), add_phenotype(x, years, "years"))
  expect_identical(Biobase::assayDataElement(found, "error")[1:6, ], x + 1)
  expect_true(all(is.na(Biobase::assayDataElement(found, "error")[7, ])))
  expect_identical(Biobase::fData(found)$symbol, c(letters[1:6], NA))
  expect_identical(Biobase::pData(found), Biobase::pData(set))
  # The phenotype is given by value under another name, and the original is
  # unchanged.
  expect_identical(
    Biobase::exprs(add_phenotype(set, rev(years), "other"))["other", ],
    stats::setNames(rev(years), colnames(x))
  )
  expect_identical(dim(Biobase::exprs(set)), c(6L, 5L))
  suppressMessages(dropped <- add_phenotype(set, "death", na = "drop"))
  expect_identical(unname(dim(dropped)), c(7L, 4L))
  # There is no feature data.
  bare <- add_phenotype(Biobase::ExpressionSet(x), years, "years")
  expect_true(methods::validObject(bare))
  expect_identical(Biobase::featureNames(bare), c(rownames(x), "years"))
  expect_identical(knn_graph(found, 2), knn_graph(Biobase::exprs(found), 2))
})

test_that("a SummarizedExperiment gets a row likewise", {
  skip_if_not_installed("SummarizedExperiment")
  x <- expression()
  set <- SummarizedExperiment::SummarizedExperiment(
    list(ratio = x, error = x + 1),
    rowData = data.frame(symbol = letters[1:6]),
    colData = data.frame(years = years),
    metadata = list(study = "a")
  )
  found <- add_phenotype(set, "years", "relapse")
  expect_true(methods::validObject(found))
  expect_identical(
    SummarizedExperiment::assay(found), add_phenotype(x, years, "relapse")
  )
  expect_identical(SummarizedExperiment::assayNames(found), c("ratio", "error"))
  expect_true(all(is.na(SummarizedExperiment::assay(found, 2)["relapse", ])))
  expect_identical(
    SummarizedExperiment::rowData(found)$symbol, c(letters[1:6], NA)
  )
  expect_identical(
    SummarizedExperiment::colData(found), SummarizedExperiment::colData(set)
  )
  expect_identical(methods::slot(found, "metadata"), list(study = "a"))
  expect_identical(
    nearest_to(found, "relapse", 2, assay = "ratio"),
    nearest_to(SummarizedExperiment::assay(found), "relapse", 2)
  )
  # The phenotype is in the assay that searches use.
  SummarizedExperiment::assayNames(set)[[2]] <- "logcounts"
  logs <- add_phenotype(set, "years", "relapse")
  expect_identical(
    nearest_to(logs, "relapse", 2),
    nearest_to(add_phenotype(x + 1, years, "relapse"), "relapse", 2)
  )
  SummarizedExperiment::assayNames(set)[[2]] <- "error"
  ranged <- methods::as(set, "RangedSummarizedExperiment")
  expect_identical(
    SummarizedExperiment::assay(add_phenotype(ranged, "years")),
    add_phenotype(x, years, "years")
  )
})

test_that("children of a SummarizedExperiment keep names and row data", {
  skip_if_not_installed("SingleCellExperiment")
  x <- expression()
  ids <- IRanges::IntegerList(as.list(1:6))
  where <- GenomicRanges::GRanges("1", IRanges::IRanges(1:6, 7:12))
  features <- S4Vectors::DataFrame(
    symbol = letters[1:6], ids = ids, run = S4Vectors::Rle(1:6), where = where,
    pair = I(matrix(1:12, 6))
  )
  set <- SingleCellExperiment::SingleCellExperiment(
    list(counts = x), rowData = features,
    colData = S4Vectors::DataFrame(years = years, row.names = colnames(x))
  )
  expect_message(found <- add_phenotype(set, "years"), "\"where\"")
  expect_identical(rownames(found), c(rownames(x), "years"))
  data <- SummarizedExperiment::rowData(found)
  expect_identical(names(data), c("symbol", "ids", "run", "pair"))
  expect_identical(data$symbol, c(letters[1:6], NA))
  expect_identical(lengths(data$ids), c(rep(1L, 6), 0L))
  expect_identical(as.vector(data$run), c(1:6, NA))
  expect_identical(unname(data$pair[7, ]), c(NA_integer_, NA_integer_))
  expect_identical(unname(SummarizedExperiment::assay(found)[7, ]), years)
})

test_that("lazy and sparse matrices and children of data frames get a row", {
  x <- expression()
  wanted <- add_phenotype(x, years, "years")
  if (requireNamespace("Matrix", quietly = TRUE)) {
    sparse <- Matrix::Matrix(x, sparse = TRUE)
    expect_identical(add_phenotype(sparse, years, "years"), wanted)
  }
  if (requireNamespace("DelayedArray", quietly = TRUE)) {
    lazy <- DelayedArray::DelayedArray(x)
    expect_identical(add_phenotype(lazy, years, "years"), wanted)
  }
  if (requireNamespace("bigmemory", quietly = TRUE)) {
    options(bigmemory.allow.dimnames = TRUE)
    big <- bigmemory::as.big.matrix(x)
    expect_identical(add_phenotype(big, years, "years"), wanted)
  }
  child <- structure(as.data.frame(x), class = c("child", "data.frame"))
  expect_identical(
    add_phenotype(child, years, "years"),
    add_phenotype(as.data.frame(x), years, "years")
  )
})

test_that("two kinds are 0 and 1, and survival is martingale residuals", {
  x <- expression()
  wanted <- add_phenotype(x, c(0, 1, 1, 0, 1), "relapse")
  kinds <- c("no", "yes", "yes", "no", "yes")
  for (values in list(
    kinds == "yes", factor(kinds), factor(kinds, c("other", "no", "yes"))
  )) {
    expect_identical(add_phenotype(x, values, "relapse"), wanted)
  }
  flipped <- add_phenotype(x, factor(kinds, c("yes", "no")), "relapse")
  expect_identical(unname(flipped["relapse", ]), c(1, 0, 0, 1, 0))
  skip_if_not_installed("survival")
  times <- survival::Surv(years, c(1, 0, 1, 1, 0))
  found <- add_phenotype(x, times, "relapse")["relapse", ]
  # These are the events minus the expected ones, by Nelson and Aalen's
  # cumulative hazard.
  at_risk <- vapply(years, function(time) sum(years >= time), 0)
  status <- c(1, 0, 1, 1, 0)
  hazard <- vapply(years, function(time) {
    sum((status / at_risk)[years <= time])
  }, 0)
  expect_equal(unname(found), status - hazard)
  gap <- survival::Surv(replace(years, 2, NA), status)
  suppressMessages(found <- add_phenotype(x, gap, "relapse", na = "drop"))
  expect_identical(ncol(found), 4L)
})

test_that("wrong arguments are errors that say what can be done", {
  x <- expression()
  named <- stats::setNames(years, colnames(x))
  expect_messages({
    add_phenotype(x)
    add_phenotype(x, years)
    add_phenotype(x, years, 3)
    add_phenotype(x, years, "")
    add_phenotype(x, years, "g3")
    add_phenotype(unname(x), years, "3")
    add_phenotype(metafeatures(x), years, "g3 / g4")
    add_phenotype(x, years[-1], "relapse")
    add_phenotype(x, "years", "relapse")
    add_phenotype(x, factor(years), "relapse")
    add_phenotype(x, factor(c("a", "b", "c", "c", "a"), ordered = TRUE), "r")
    add_phenotype(x, factor(rep("a", 5)), "relapse")
    add_phenotype(x, letters[1:5], "relapse")
    add_phenotype(x, as.difftime(years, units = "days"), "relapse")
    add_phenotype(x, replace(years, 2, Inf), "relapse")
    add_phenotype(x, replace(years, 2, NA), "relapse")
    add_phenotype(x, rep(1, 5), "relapse")
    add_phenotype(x, c(1, 1, NA, NA, NA), "relapse", na = "drop")
    add_phenotype(x, rep(NA_real_, 5), "relapse", na = "drop")
    add_phenotype(x, stats::setNames(years, letters[1:5]), "relapse")
    add_phenotype(x, years, "relapse", na = "ignore")
    add_phenotype("a", years, "relapse")
  })
})
