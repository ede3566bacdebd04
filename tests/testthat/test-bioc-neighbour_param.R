test_that("FsknnParam() says what it is", {
  skip_if_not_installed("BiocNeighbors")
  param <- FsknnParam("pearson", sign = "absolute", devices = 1:2)
  expect_s4_class(param, "FsknnParam")
  expect_true(methods::is(param, "BiocNeighborParam"))
  expect_identical(BiocNeighbors::bndistance(param), "pearson")
  expect_identical(
    methods::slot(param, "options"), list(sign = "absolute", devices = 1:2)
  )
  expect_identical(BiocNeighbors::bndistance(FsknnParam()), "Euclidean")
  expect_snapshot({
    param
    FsknnParam()
  })
})

test_that("a metric goes by its own name, in any case, or BiocNeighbors'", {
  metric_of <- fsknn:::metric_of_distance
  expect_identical(
    metric_of("Euclidean"), list(metric = "euclidean", unit = FALSE)
  )
  expect_identical(metric_of("Manhattan")$metric, "manhattan")
  expect_identical(metric_of("Spearman")$metric, "spearman")
  # BiocNeighbors' cosine distance is a chord.
  expect_identical(metric_of("Cosine"), list(metric = "euclidean", unit = TRUE))
  expect_identical(metric_of("cosine"), metric_of("Cosine"))
  expect_identical(metric_of("COSINE"), metric_of("Cosine"))
  for (name in setdiff(fsknn:::metric_table()$name, "cosine")) {
    expect_identical(metric_of(name)$metric, name)
  }
})

test_that("what FsknnParam() can't take is an error", {
  skip_if_not_installed("BiocNeighbors")
  expect_messages({
    FsknnParam("euclid")
    FsknnParam(NA)
    FsknnParam(c("pearson", "cosine"))
    FsknnParam("pearson", "absolute")
    FsknnParam("pearson", sgin = "absolute")
    FsknnParam("pearson", sign = "abs")
    FsknnParam("Cosine", sign = "absolute")
    FsknnParam("pearson", constant = "isolate")
    FsknnParam("pearson", k = 5)
    FsknnParam(metric = "pearson")
    FsknnParam(metric = 1)
    FsknnParam(neighbors = 5)
    FsknnParam(threads = 4)
    FsknnParam("pearson", backend = "gpu")
    FsknnParam("pearson", num_threads = "two")
    FsknnParam("pearson", na = "skip")
    FsknnParam("cosine", weights = 1:4)
    FsknnParam("pearson", subset = 1:4)
    FsknnParam("inner_product")
  }, transform = without_metrics)
})

test_that("a parameter from another process finds its class", {
  skip_if_not_installed("BiocNeighbors")
  param <- FsknnParam("Manhattan", backend = "cpu")
  x <- small_integers(20, 4)
  file <- withr::local_tempfile(fileext = ".rds")
  out <- withr::local_tempfile(fileext = ".rds")
  saveRDS(list(x = x, param = param), file)
  code <- bquote({
    given <- readRDS(.(file))
    nn <- BiocNeighbors::findKNN(
      given$x, k = 3, BNPARAM = given$param, warn.ties = FALSE
    )
    saveRDS(nn, .(out))
  })
  script <- withr::local_tempfile(fileext = ".R")
  writeLines(deparse(code), script)
  said <- system2(
    file.path(R.home("bin"), "Rscript"), shQuote(script), stdout = TRUE,
    stderr = TRUE,
    env = paste0("R_LIBS=", paste(.libPaths(), collapse = ":"))
  )
  expect_true(file.exists(out), info = paste(said, collapse = "\n"))
  expect_identical(readRDS(out), bare(knn_search(x, 3, "manhattan")))
})
