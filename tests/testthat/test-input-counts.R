# Makes genes with samples of the given depths.
gene_counts <- function(depth = c(0.5, 1, 2, 0.7, 1.5, 3), num_genes = 120) {
  withr::local_seed(4)
  expected <- outer(rexp(num_genes, 1 / 40) + 5, depth)
  matrix(
    rpois(length(expected), expected), num_genes,
    dimnames = list(
      paste0("g", seq_len(num_genes)), paste0("s", seq_along(depth))
    )
  )
}

# Returns the code in the message of a search for `x`.
told_cure <- function(x, ...) {
  words <- NULL
  withCallingHandlers(
    knn_search(x, 2, ..., constant = "isolate"),
    fsknn_counts_message = function(message) {
      words <<- gsub("\\s+", " ", conditionMessage(message))
      rlang::cnd_muffle(message)
    }
  )
  if (!is.null(words)) sub(".*: `([^`]+)`.*", "\\1", words)
}

run_cure <- function(x, ...) {
  eval(parse(text = told_cure(x, ...)))
}

test_that("a matrix of counts under a correlation is told of once", {
  skip_if_not_installed("edgeR")
  x <- gene_counts()
  logs <- edgeR::cpm(x, log = TRUE)
  for (metric in c("pearson", "spearman", "bicor")) {
    expect_identical(run_cure(x, metric = metric), logs)
  }
  expect_identical(run_cure(x, points = "columns"), logs)
  expect_identical(unname(run_cure(as.data.frame(x))), unname(logs))
  expect_messages(invisible(knn_search(x, 2)))
  told <- 0
  withCallingHandlers(
    knn_predict(
      x, rep(1:2, 60), k = 2, folds = rep(1:3, 40),
      select = function(x, labels) 1:5, constant = "isolate"
    ),
    fsknn_counts_message = function(message) {
      told <<- told + 1
      rlang::cnd_muffle(message)
    }
  )
  expect_identical(told, 1)
  expect_message(
    module_summary(rep(1:2, 60), x), class = "fsknn_counts_message"
  )
})

test_that("sparse and delayed counts are told of as well", {
  skip_if_not_installed("Matrix")
  skip_if_not_installed("DelayedArray")
  skip_if_not_installed("edgeR")
  x <- gene_counts()
  logs <- edgeR::cpm(x, log = TRUE)
  expect_equal(run_cure(methods::as(x, "CsparseMatrix")), logs)
  expect_match(told_cure(DelayedArray::DelayedArray(x)), "cpm")
})

test_that("whole numbers that are no counts of samples are not told of", {
  genotypes <- small_integers(200, 12, largest = 2)
  quiet <- list(
    small_integers(60, 8, largest = 50), small_integers(20, 4, largest = 9),
    genotypes, genotypes > 0, gene_counts(rep(1, 6)), -gene_counts(),
    gene_counts() + 0.5, t(apply(random_matrix(40, 9), 1, rank))
  )
  for (x in quiet) {
    expect_null(told_cure(x))
  }
  expect_identical(told_cure(gene_counts() * 2^600), told_cure(gene_counts()))
  expect_null(told_cure(gene_counts(), metric = "euclidean"))
  expect_null(told_cure(gene_counts(), metric = "proportional"))
})

test_that("counts of containers are told of by the assay's name", {
  skip_if_not_installed("scuttle")
  skip_if_not_installed("edgeR")
  x <- gene_counts()
  logs <- edgeR::cpm(x, log = TRUE)
  set <- SummarizedExperiment::SummarizedExperiment(list(counts = x))
  expect_identical(run_cure(set), logs)
  expect_identical(run_cure(set, metric = "euclidean"), logs)
  expect_null(told_cure(set, metric = "proportional"))
  raw <- SummarizedExperiment::SummarizedExperiment(list(raw_counts = x))
  expect_identical(run_cure(raw), logs)
  unnamed <- SummarizedExperiment::SummarizedExperiment(list(x))
  expect_identical(run_cure(unnamed), logs)
  cells <- methods::as(set, "SingleCellExperiment")
  normed <- run_cure(cells)
  expect_identical(
    SummarizedExperiment::assayNames(normed), c("counts", "logcounts")
  )
  expect_null(told_cure(normed))
  expect_identical(told_cure(normed, assay = "counts"), "assay = \"logcounts\"")
  expect_identical(run_cure(Biobase::ExpressionSet(x)), logs)
})

test_that("a DGEList is its counts, and told of", {
  skip_if_not_installed("edgeR")
  x <- gene_counts()
  counts <- edgeR::DGEList(x, group = rep(c("a", "b"), 3))
  expect_identical(run_cure(counts), edgeR::cpm(counts, log = TRUE))
  suppressMessages({
    expect_same_values(knn_graph(counts, 2), knn_graph(x, 2))
    expect_same_values(
      knn_graph(counts, 2, points = "columns"), knn_graph(t(x), 2)
    )
    expect_same_values(knn_query(x, counts, 2), knn_query(x, x, 2))
    expect_identical(
      mdl_filter(counts, "group"), mdl_filter(x, rep(c("a", "b"), 3))
    )
    expect_same_values(
      knn_graph(counts, 2, adjust = ~ group),
      knn_graph(x, 2, adjust = ~ group, data = counts$samples)
    )
  })
  expect_identical(plan_of(counts, 2), plan_of(x, 2))
  expect_identical(metafeatures(counts[1:5, ]), metafeatures(x[1:5, ]))
})

test_that("a DESeqDataSet's counts are to be made of constant variance", {
  here <- environment()
  skip_if_not_installed("SummarizedExperiment")
  methods::setClass(
    "DESeqDataSet", contains = "SummarizedExperiment", where = here
  )
  x <- gene_counts()
  set <- methods::new(
    "DESeqDataSet",
    SummarizedExperiment::SummarizedExperiment(list(counts = x))
  )
  expect_identical(
    told_cure(set), "DESeq2::varianceStabilizingTransformation(x)"
  )
  expect_identical(told_cure(set[rep(1:120, 9), ]), "DESeq2::vst(x)")
  SummarizedExperiment::assay(set, "mu") <- x + 0.5
  expect_error(knn_graph(set, 2), "\"counts\", \"mu\"")
  methods::removeClass("DESeqDataSet", where = here)
})

test_that("counts of a query are told of as those of points", {
  counts <- gene_counts()
  expect_message(
    knn_query(log(counts + 1), counts, 2), "`query` looks like counts",
    class = "fsknn_counts_message"
  )
})
