# The hint of an error, run as code; `x` is what the error was about.
run_hint <- function(x, n = 1, ...) {
  words <- tryCatch(
    knn_search(x, 1, "euclidean", ...),
    error = function(err) paste(rlang::cnd_message(err), collapse = "\n")
  )
  words <- gsub("\\s+", " ", words)
  code <- regmatches(words, gregexpr(": `[^`]+`", words))[[1]]
  code <- substring(code[[n]], 4, nchar(code[[n]]) - 1)
  eval(parse(text = code))
}

test_that("names of rows that stand in a column are kept by the hint", {
  values <- matrix(c(1, 5, 2, 9, 2, 2, 8, 1), 4)
  genes <- c("TP53", "MYC", "ESR1", "GATA3")
  frames <- list(
    data.frame(gene = genes, a = values[, 1], b = values[, 2]),
    data.frame(a = values[, 1], gene = factor(genes), "b c" = values[, 2],
               check.names = FALSE),
    data.frame(
      gene = genes, chromosome = c("17", "8", "6", "6"), a = values[, 1],
      b = values[, 2]
    )
  )
  if (requireNamespace("tibble", quietly = TRUE)) {
    frames <- c(frames, lapply(frames, tibble::as_tibble))
  }
  if (requireNamespace("data.table", quietly = TRUE)) {
    frames <- c(frames, lapply(frames[1:2], data.table::as.data.table))
  }
  for (frame in frames) {
    kept <- run_hint(frame)
    expect_identical(row.names(kept), genes)
    expect_identical(
      knn_search(kept, 2, "euclidean"), knn_search(values, 2, "euclidean")
    )
    expect_identical(
      attr(knn_graph(kept, 2, "euclidean"), "vertices")$name, genes
    )
  }
  twice <- data.frame(gene = c("a", "b", "b", "c"), value = values)
  expect_identical(row.names(run_hint(twice)), c("a", "b", "b.1", "c"))
  # names that are there already stay
  named <- data.frame(group = letters[1:4], value = values, row.names = genes)
  expect_snapshot(error = TRUE, {
    knn_search(frames[[1]])
    knn_search(twice)
    knn_search(named)
  })
})

test_that("of a Seurat object the hints give cells and genes", {
  skip_if_not_installed("SeuratObject")
  counts <- small_integers(20, 9, largest = 50)
  dimnames(counts) <- list(paste0("g", 1:20), paste0("c", 1:9))
  object <- suppressWarnings(SeuratObject::CreateSeuratObject(
    methods::as(counts, "CsparseMatrix")
  ))
  genes <- run_hint(object)
  expect_identical(dim(genes), c(20L, 9L))
  expect_s4_class(genes, "dgCMatrix")
  expect_snapshot(error = TRUE, knn_search(object, 2))
  cells <- random_matrix(9, 3)
  dimnames(cells) <- list(colnames(counts), paste0("PC_", 1:3))
  object[["pca"]] <- SeuratObject::CreateDimReducObject(
    cells, key = "PC_", assay = "RNA"
  )
  expect_identical(run_hint(object), cells)
  expect_identical(run_hint(object, 2), genes)
  expect_snapshot(error = TRUE, {
    knn_search(object, 2)
    knn_search(object, 2, dimred = "pca")
    knn_graph(object, 2, points = "columns")
  })
})

test_that("of a MultiAssayExperiment one experiment is to be taken", {
  here <- environment()
  methods::setClass(
    "MultiAssayExperiment", slots = c(ExperimentList = "list"), where = here
  )
  methods::setMethod(
    "[[", "MultiAssayExperiment",
    function(x, i, j, ...) x@ExperimentList[[i]], where = here
  )
  x <- random_matrix(6, 4)
  set <- methods::new("MultiAssayExperiment", ExperimentList = list(rna = x))
  expect_identical(run_hint(set), x)
  expect_snapshot(error = TRUE, knn_search(set, 2))
  methods::removeMethod("[[", "MultiAssayExperiment", where = here)
  methods::removeClass("MultiAssayExperiment", where = here)
})

test_that("distances are no points, and what looks like them is told of", {
  x <- random_matrix(9, 4)
  expect_snapshot(error = TRUE, knn_search(stats::dist(x), 2))
  square <- as.matrix(stats::dist(x))
  expect_message(
    found <- knn_search(square, 2, "euclidean"),
    class = "fsknn_distances_message"
  )
  expect_identical(dim(found$index), c(9L, 2L))
  expect_snapshot(invisible(knn_search(square, 2)))
  expect_message(
    knn_search(square, 2, points = "columns"),
    class = "fsknn_distances_message"
  )
  broken <- replace(square, 10, 3)
  diag <- replace(square, 1, 1)
  for (other in list(broken, diag, x, square[1:2, 1:2])) {
    expect_message(knn_search(other, 1), NA)
  }
})

test_that("a list of matrices is to be one of them, or all side by side", {
  x <- random_matrix(6, 4)
  y <- random_matrix(6, 3, seed = 2)
  expect_identical(run_hint(list(a = x, b = y)), x)
  expect_identical(run_hint(list(x, y)), x)
  rownames(x) <- rownames(y) <- paste0("g", 1:6)
  expect_identical(run_hint(list(a = x, b = y), 2), cbind(x, y))
  expect_snapshot(error = TRUE, {
    knn_search(list(a = x, b = y), 2)
    knn_search(list(x, unname(y)), 2)
    knn_search(list(x), 2)
  })
})

test_that("survival times are an outcome, and neither points nor edges", {
  skip_if_not_installed("survival")
  relapse <- survival::Surv(1:6, rep(0:1, 3))
  expect_snapshot(error = TRUE, {
    knn_search(relapse, 2)
    knn_query(matrix(1:12 + 0, 6), relapse, 2)
    mdl_filter(relapse, 1:2)
    as_knn(relapse)
    undirected_edges(relapse)
    neighbour_mixing(relapse, 1:6)
    as_igraph(relapse)
  })
})
