# Makes a small experiment: 14 genes x 9 cells, two assays, two reduced
# dimensions.
small_experiment <- function() {
  counts <- small_integers(14, 9, largest = 6)
  dimnames(counts) <- list(paste0("g", 1:14), paste0("c", 1:9))
  SingleCellExperiment::SingleCellExperiment(
    list(counts = counts, logcounts = log2(counts + 1)),
    reducedDims = list(
      PCA = random_matrix(9, 4), UMAP = random_matrix(9, 2, seed = 2)
    )
  )
}

test_that("an assay is taken by its name or number, logcounts by default", {
  skip_if_not_installed("SingleCellExperiment")
  set <- small_experiment()
  logs <- SummarizedExperiment::assay(set, "logcounts")
  counts <- SummarizedExperiment::assay(set, "counts")
  expect_identical(values_of(knn_graph(set, 3)), knn_graph(logs, 3))
  for (assay in list("counts", 1)) {
    expect_message(
      taken <- knn_graph(set, 3, assay = assay), class = "fsknn_counts_message"
    )
    expect_identical(values_of(taken), knn_graph(counts, 3))
    expect_identical(attr(taken, "taken_from"), c(assay = "counts"))
  }
  expect_identical(knn_graph(set, 3, assay = "logcounts"), knn_graph(set, 3))
  expect_identical(
    values_of(knn_search(set, 3, assay = "logcounts")), knn_search(logs, 3)
  )
  # The only assay is used, whatever its name; of several others the user must
  # name one.
  SummarizedExperiment::assayNames(set)[[2]] <- "tpm"
  expect_identical(
    values_of(knn_graph(set[, ], 3, assay = "tpm")), knn_graph(logs, 3)
  )
  only <- SummarizedExperiment::SummarizedExperiment(list(tpm = logs))
  expect_identical(values_of(knn_graph(only, 3)), knn_graph(logs, 3))
  unnamed <- SummarizedExperiment::SummarizedExperiment(list(logs, counts))
  expect_messages({
    knn_graph(set, 3)
    knn_plan(set, 3)
    nearest_to(set, 1, 3)
    mdl_filter(set, rep(1:3, 3))
    metafeatures(set)
    knn_graph(unnamed, 3)
  })
})

test_that("answers print the name of the assay, and what is made of them", {
  skip_if_not_installed("SingleCellExperiment")
  set <- small_experiment()
  header <- function(x) utils::capture.output(print(x))[[1]]
  edges <- knn_graph(set, 3)
  made <- list(
    edges, edges[1:5, ], undirected_edges(edges), threshold_graph(set, 0.2),
    mst_knn(set), mst_knn(edges), spanning_forest(edges), knn_search(set, 3),
    within_search(set, 0.5), knn_query(set, set, 3),
    mutual_pairs(set, rep(1:2, 7), 3), edge_significance(edges, set)
  )
  for (one in made) {
    expect_match(header(one), "assay \"logcounts\"", fixed = TRUE)
  }
  expect_match(
    header(knn_graph(set, 3, dimred = "PCA")), "dimred \"PCA\"", fixed = TRUE
  )
  plain <- SummarizedExperiment::assay(set, "logcounts")
  expect_no_match(header(knn_graph(plain, 3)), "assay")
  # The answer may also come from a folder.
  folder <- withr::local_tempfile()
  kept <- knn_graph(set, 3, checkpoint = folder)
  expect_identical(kept, edges)
  expect_identical(knn_collect(folder), edges)
})

test_that("a filled assay is the one that was read", {
  skip_if_not_installed("SingleCellExperiment")
  set <- small_experiment()
  holes <- SummarizedExperiment::assay(set, "logcounts")
  holes[3, 4] <- NA
  SummarizedExperiment::assay(set, "logcounts") <- holes
  filled <- knn_impute(set, k = 3)
  expect_identical(
    SummarizedExperiment::assay(filled, "counts"),
    SummarizedExperiment::assay(set, "counts")
  )
  expect_false(anyNA(SummarizedExperiment::assay(filled, "logcounts")))
})

test_that("cells are the points where columns are", {
  skip_if_not_installed("SingleCellExperiment")
  set <- small_experiment()
  logs <- SummarizedExperiment::assay(set, "logcounts")
  cells <- knn_graph(set, 3, points = "columns")
  expect_same_values(cells, knn_graph(t(logs), 3))
  expect_same_values(attr(cells, "vertices")$name, colnames(set))
})

test_that("a reduced dimension is taken by its name or number", {
  skip_if_not_installed("SingleCellExperiment")
  set <- small_experiment()
  pca <- SingleCellExperiment::reducedDim(set, "PCA")
  umap <- SingleCellExperiment::reducedDim(set, "UMAP")
  rownames(pca) <- rownames(umap) <- colnames(set)
  expect_same_values(
    knn_graph(set, 3, "euclidean", dimred = "PCA"),
    knn_graph(pca, 3, "euclidean")
  )
  expect_same_values(
    knn_graph(set, 3, "euclidean", dimred = 2, points = "columns"),
    knn_graph(umap, 3, "euclidean")
  )
  # One element has attributes, and one has a class of its own.
  plain <- knn_search(pca, 3, "euclidean")
  attr(pca, "percentVar") <- c(60, 20, 15, 5)
  SingleCellExperiment::reducedDim(set, "PCA") <- pca
  expect_same_values(knn_search(set, 3, "euclidean", dimred = "PCA"), plain)
  factors <- SingleCellExperiment::LinearEmbeddingMatrix(
    unname(pca), matrix(0, 14, 4)
  )
  SingleCellExperiment::reducedDim(set, "LEM") <- factors
  expect_same_values(knn_search(set, 3, "euclidean", dimred = "LEM"), plain)
})

test_that("knn_query(), nearest_to() and knn_plan() read containers alike", {
  skip_if_not_installed("SingleCellExperiment")
  set <- small_experiment()
  cells <- t(SummarizedExperiment::assay(set, "logcounts"))
  expect_same_values(
    knn_query(set, set[, 3:5], 2, points = "columns", assay = "logcounts"),
    knn_query(cells, cells[3:5, ], 2)
  )
  expect_same_values(
    nearest_to(set, "c7", 4, points = "columns", assay = "logcounts"),
    nearest_to(cells, "c7", 4)
  )
  expect_same_values(
    plan_of(set, 3, points = "columns", query = set[, 1:2]),
    plan_of(cells, 3, query = cells[1:2, ])
  )
  expect_same_values(
    plan_of(set, 3, "euclidean", dimred = "PCA"),
    plan_of(c(9, 4), 3, "euclidean")
  )
  expect_same_values(
    within_search(set, 0.4, points = "columns", assay = "logcounts"),
    within_search(cells, 0.4)
  )
  expect_same_values(
    within_query(set, set[, 3:5], 0.4, points = "columns", assay = 2),
    within_query(cells, cells[3:5, ], 0.4)
  )
  expect_same_values(
    threshold_graph(set, 0.3, points = "columns", assay = 2),
    threshold_graph(cells, 0.3)
  )
  expect_same_values(
    mst_knn(set, points = "columns", assay = 2), mst_knn(cells)
  )
  # x comes from a reduced dimension, and queries are plain rows of it.
  pca <- SingleCellExperiment::reducedDim(set, "PCA")
  expect_same_values(
    knn_query(pca, set[, 4:6], 2, "euclidean", dimred = "PCA"),
    knn_query(pca, pca[4:6, ], 2, "euclidean")
  )
  expect_same_values(
    plan_of(pca, 2, "euclidean", query = set[, 4:6], dimred = "PCA"),
    plan_of(pca, 2, "euclidean", query = pca[4:6, ])
  )
  expect_same_values(
    knn_query(set, pca[4:6, ], 2, "euclidean", dimred = "PCA"),
    knn_query(pca, pca[4:6, ], 2, "euclidean")
  )
  expect_same_values(
    knn_query(set, t(cells), 2, assay = "logcounts", points = "columns"),
    knn_query(cells, cells, 2)
  )
  expect_same_values(
    knn_query(set, set[, 2:3], 2, "euclidean", dimred = "PCA"),
    knn_query(pca, pca[2:3, ], 2, "euclidean")
  )
})

test_that("an ExpressionSet's elements and samples are taken too", {
  skip_if_not_installed("Biobase")
  x <- random_matrix(12, 7)
  dimnames(x) <- list(paste0("g", 1:12), paste0("s", 1:7))
  set <- Biobase::ExpressionSet(
    Biobase::assayDataNew(exprs = x, se.exprs = x^2)
  )
  expect_same_values(knn_graph(set, 2), knn_graph(x, 2))
  expect_same_values(knn_graph(set, 2, assay = "se.exprs"), knn_graph(x^2, 2))
  expect_same_values(knn_graph(set, 2, points = "columns"), knn_graph(t(x), 2))
})

test_that("an assay of any matrix class goes the way of that class", {
  skip_if_not_installed("SingleCellExperiment")
  skip_if_not_installed("Matrix")
  set <- small_experiment()
  logs <- SummarizedExperiment::assay(set, "logcounts")
  sparse <- set
  SummarizedExperiment::assay(sparse, "logcounts") <- methods::as(
    logs, "CsparseMatrix"
  )
  expect_same_values(knn_graph(sparse, 3), knn_graph(set, 3))
  expect_same_values(
    knn_graph(sparse, 3, points = "columns"),
    knn_graph(set, 3, points = "columns")
  )
})

test_that("a delayed assay is read by blocks, whichever side the points are", {
  skip_if_not_installed("SingleCellExperiment")
  skip_if_not_installed("DelayedArray")
  set <- small_experiment()
  delayed <- set
  SummarizedExperiment::assay(delayed, "logcounts") <-
    DelayedArray::DelayedArray(SummarizedExperiment::assay(set, "logcounts"))
  for (points in c("rows", "columns")) {
    for (max_memory in c("1 kB", "1 GB")) {
      expect_same_values(
        knn_graph(delayed, 3, points = points, max_memory = max_memory),
        knn_graph(set, 3, points = points)
      )
    }
  }
})

test_that("what a container has not is an error that says what it has", {
  skip_if_not_installed("SingleCellExperiment")
  skip_if_not_installed("Biobase")
  set <- small_experiment()
  plain <- random_matrix(6, 4)
  samples <- Biobase::ExpressionSet(plain)
  experiment <- methods::as(set, "SummarizedExperiment")
  unnamed <- SummarizedExperiment::SummarizedExperiment(list(plain, plain))
  expect_messages({
    knn_search(set, 2, assay = "logcount")
    knn_search(set, 2, assay = 3)
    knn_search(set, 2, assay = 1.5)
    knn_search(set, 2, assay = c("counts", "logcounts"))
    knn_search(set, 2, dimred = "pca")
    knn_search(set, 2, dimred = "tSNE")
    knn_search(set, 2, dimred = 5)
    knn_search(set, 2, assay = "counts", dimred = "PCA")
    knn_search(set, 2, dimred = "PCA", points = "rows")
    knn_search(experiment, 2, dimred = "PCA")
    knn_search(unnamed, 2, assay = "counts")
    knn_search(samples, 2, dimred = "PCA")
    knn_search(samples, 2, assay = "counts")
    knn_search(plain, 2, assay = "counts")
    knn_graph(plain, 2, dimred = "PCA")
    knn_query(plain, plain, 2, assay = 1)
    knn_plan(plain, 2, assay = 1)
    nearest_to(plain, 1, 2, assay = 1)
    knn_search(set, 2, assays = "counts")
  })
})

test_that("names that repeat are an error in every kind of input", {
  skip_if_not_installed("SingleCellExperiment")
  skip_if_not_installed("Matrix")
  set <- small_experiment()
  colnames(set)[4] <- "c2"
  plain <- SummarizedExperiment::assay(set, "logcounts")
  sparse <- methods::as(plain, "CsparseMatrix")
  rows <- set
  rownames(rows)[c(3, 5)] <- c("g1", "g2")
  sparse_rows <- methods::as(
    SummarizedExperiment::assay(rows, "logcounts"), "CsparseMatrix"
  )
  frame <- as.data.frame(plain)
  names(frame)[4] <- "c2"
  expect_messages({
    knn_graph(set, 2, points = "columns")
    knn_graph(set, 2, "euclidean", dimred = "PCA")
    knn_graph(plain, 2, points = "columns")
    knn_graph(sparse, 2, points = "columns")
    knn_graph(frame, 2, points = "columns")
    knn_graph(rows, 2)
    knn_graph(sparse_rows, 2)
    nearest_to(set, "c2", 2, points = "columns")
  })
  # The option is not used and therefore allowed.
  expect_same_values(
    knn_search(set, 2, points = "columns"), knn_search(t(plain), 2)
  )
})

test_that("limma's list without a matrix says so", {
  skip_if_not_installed("limma")
  none <- methods::new(methods::getClass("EList", where = asNamespace("limma")))
  expect_wrong(knn_graph(none, 2), "Its matrices have no names")
})

test_that("limma's lists are their expression values", {
  skip_if_not_installed("limma")
  x <- random_matrix(12, 7)
  dimnames(x) <- list(paste0("g", 1:12), paste0("s", 1:7))
  samples <- data.frame(group = rep(c("a", "b"), c(3, 4)))
  for (class in c("EList", "EListRaw")) {
    set <- methods::new(
      methods::getClass(class, where = asNamespace("limma")),
      list(E = x, other = x^2, targets = samples)
    )
    expect_same_values(knn_graph(set, 2), knn_graph(x, 2))
    expect_same_values(
      knn_graph(set, 2, points = "columns"), knn_graph(t(x), 2)
    )
    expect_same_values(knn_graph(set, 2, assay = "other"), knn_graph(x^2, 2))
    expect_same_values(plan_of(set, 2), plan_of(x, 2))
    expect_same_values(knn_query(set, x[3:5, ], 2), knn_query(x, x[3:5, ], 2))
    expect_same_values(metafeatures(set[1:5, ]), metafeatures(x[1:5, ]))
    expect_same_values(mdl_filter(set, "group"), mdl_filter(x, samples$group))
  }
  expect_messages({
    knn_graph(set, 2, assay = "targets")
    knn_graph(set, 2, dimred = "PCA")
  })
})

test_that("a DataFrame is the data frame that it stands for", {
  skip_if_not_installed("S4Vectors")
  frame <- data.frame(a = c(1, 5, 2, 9), b = c(2, 2, 8, 1))
  table <- S4Vectors::DataFrame(a = frame$a, b = S4Vectors::Rle(frame$b))
  expect_same_values(knn_graph(table, 2, "euclidean"),
                   knn_graph(frame, 2, "euclidean"))
  rownames(table) <- row.names(frame) <- paste0("g", 1:4)
  expect_same_values(knn_graph(table, 2, "euclidean"),
                   knn_graph(frame, 2, "euclidean"))
  expect_same_values(
    knn_graph(table, 1, "euclidean", points = "columns"),
    knn_graph(t(as.matrix(frame)), 1, "euclidean")
  )
  expect_same_values(plan_of(table, 2), plan_of(frame, 2))
  table$name <- letters[1:4]
  expect_messages({
    knn_graph(table, 2)
    knn_graph(unname_rows(table), 2)
  })
  # The code in the hints works on it.
  expect_same_values(
    knn_graph(Filter(is.numeric, as.data.frame(table)), 2), knn_graph(frame, 2)
  )
  x <- unname_rows(table)
  kept <- data.frame(
    Filter(is.numeric, as.data.frame(x)), row.names = x[[3]],
    check.names = FALSE
  )
  expect_same_values(dimnames(kept), list(letters[1:4], c("a", "b")))
})

test_that("a query has the assay that is taken of the points", {
  skip_if_not_installed("SummarizedExperiment")
  experiment <- function(...) {
    SummarizedExperiment::SummarizedExperiment(list(...))
  }
  values <- random_matrix(14, 9)
  dimnames(values) <- list(paste0("g", 1:14), paste0("c", 1:9))
  both <- experiment(norm = values + 1, logcounts = values)
  other <- experiment(norm = values + 1)
  turned <- experiment(norm = values, logcounts = values^2)
  calls <- list(
    function(x, query, ...) knn_query(x, query, 2, ...),
    function(x, query, ...) within_query(x, query, distance = 0.5, ...),
    function(x, query, ...) {
      knn_predict(x, rep(1:2, 7), query = query, k = 2, ...)
    },
    function(x, query, ...) knn_plan(x, 2, query = query, ...),
    function(x, query, ...) {
      compare_neighbours(list(x, query), k = 2, permutations = NULL, ...)
    }
  )
  for (ask in calls) {
    expect_wrong(
      ask(both, other), "the assay that is taken of `x`: \"logcounts\""
    )
    expect_no_error(ask(both, other, assay = "norm"))
    # The assay of this name is used, not the default.
    expect_no_error(ask(other, turned))
  }
  expect_identical(
    values_of(knn_query(other, turned, 2)), knn_query(values + 1, values, 2)
  )
})

test_that("the example of an assay is none of counts", {
  skip_if_not_installed("SummarizedExperiment")
  values <- random_matrix(14, 9)
  set <- SummarizedExperiment::SummarizedExperiment(
    list(counts = values, norm = values)
  )
  expect_wrong(knn_graph(set, 2), "assay = \"norm\"", fixed = TRUE)
})
