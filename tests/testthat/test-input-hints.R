# Runs the code in the hint of an error; `x` is the object that caused it.
run_hint <- function(x, n = 1, ..., name = NULL) {
  words <- words_of(knn_search(x, 1, "euclidean", ...))
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
      without_names(knn_search(kept, 2, "euclidean")),
      knn_search(values, 2, "euclidean")
    )
    expect_identical(
      attr(knn_graph(kept, 2, "euclidean"), "vertices")$name, genes
    )
  }
  twice <- data.frame(gene = c("a", "b", "b", "c"), value = values)
  expect_identical(row.names(run_hint(twice)), c("a", "b", "b.1", "c"))
  # Existing names stay.
  named <- data.frame(group = letters[1:4], value = values, row.names = genes)
  expect_messages({
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
  expect_messages(knn_search(object, 2))
  cells <- random_matrix(9, 3)
  dimnames(cells) <- list(colnames(counts), paste0("PC_", 1:3))
  object[["pca"]] <- SeuratObject::CreateDimReducObject(
    cells, key = "PC_", assay = "RNA"
  )
  expect_identical(run_hint(object), cells)
  expect_identical(run_hint(object, 2), genes)
  expect_messages({
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
  expect_messages(knn_search(set, 2))
  methods::removeMethod("[[", "MultiAssayExperiment", where = here)
  methods::removeClass("MultiAssayExperiment", where = here)
})

test_that("distances are no points, and what looks like them is told of", {
  x <- random_matrix(9, 4)
  expect_messages(knn_search(stats::dist(x), 2))
  square <- as.matrix(stats::dist(x))
  expect_message(
    found <- knn_search(square, 2, "euclidean"),
    class = "fsknn_distances_message"
  )
  expect_identical(dim(found$index), c(9L, 2L))
  expect_messages(invisible(knn_search(square, 2)))
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
  expect_messages({
    knn_search(list(a = x, b = y), 2)
    knn_search(list(x, unname(y)), 2)
    knn_search(list(x), 2)
  })
})

test_that("survival times are an outcome, and neither points nor edges", {
  skip_if_not_installed("survival")
  relapse <- survival::Surv(1:6, rep(0:1, 3))
  expect_messages({
    knn_search(relapse, 2)
    knn_query(matrix(1:12 + 0, 6), relapse, 2)
    mdl_filter(relapse, 1:2)
    as_knn(relapse)
    undirected_edges(relapse)
    neighbour_mixing(relapse, 1:6)
    as_igraph(relapse)
  })
})

test_that("text among numbers is named, and the hint keeps the column", {
  lines <- c(
    "ID\tA\tB\tC\tD", "p1\t1.5\t2\t3\t4", "p2\t2.5\t1\t4\t#N/A",
    "p3\t6.5\t5\t-\t3", "p4\t1.25\t3\t2\t#N/A"
  )
  x <- utils::read.delim(text = lines)
  right <- utils::read.delim(
    text = lines, row.names = 1, na.strings = c("NA", "#N/A", "-")
  )
  words <- words_of(knn_search(x, 1))
  expect_match(words, "\"#N/A\" in 2 rows, \"-\" in 1 row", fixed = TRUE)
  expect_match(words, "na.strings = c(", fixed = TRUE)
  kept <- run_hint(x)
  expect_identical(kept, right)
  expect_identical(
    knn_graph(kept, 1, "euclidean", na = "pairwise", min_pairs = 1),
    knn_graph(right, 1, "euclidean", na = "pairwise", min_pairs = 1)
  )
  plain <- x[-1]
  expect_identical(as.matrix(run_hint(plain)), unname_rows(as.matrix(right)))
  plain$D <- factor(plain$D)
  expect_identical(as.matrix(run_hint(plain)), unname_rows(as.matrix(right)))
  if (requireNamespace("data.table", quietly = TRUE)) {
    expect_identical(run_hint(data.table::as.data.table(x)), right)
  }
  # A matrix of text gives the same.
  text <- as.matrix(x[-1])
  expect_identical(run_hint(text), unname_rows(as.matrix(right)))
  expect_identical(run_hint(as.matrix(x)), unname_rows(as.matrix(right)))
  expect_messages({
    knn_search(x, 1)
    knn_search(text, 1)
  })
})

test_that("decimal commas are read as such, and doubles stay as they are", {
  third <- c(1 / 3, 2 / 3, 0.1)
  x <- data.frame(a = c("1,5", "2,25", "3"), b = third)
  kept <- run_hint(x)
  expect_identical(kept, data.frame(a = c(1.5, 2.25, 3), b = third))
  expect_match(words_of(knn_search(x, 1)), "dec = \",\"", fixed = TRUE)
  expect_identical(
    run_hint(matrix(c("1,5", "2", "3,25", "4"), 2)),
    matrix(c(1.5, 2, 3.25, 4), 2)
  )
  both <- words_of(knn_search(data.frame(a = c("1,5", "2.5")), 1))
  expect_match(both, "decimal points beside decimal commas")
  expect_no_match(both, "type.convert")
  # Chromosomes are not values.
  genes <- data.frame(chromosome = c("1", "X", "2", "1"), a = 1:4 / 3)
  expect_no_match(words_of(knn_search(genes, 1)), "type.convert")
  # There are numbers as text, and braces that cli would interpret.
  expect_identical(
    run_hint(data.frame(a = c("1", "2"), b = c("3.5", "4"))),
    data.frame(a = 1:2, b = c(3.5, 4))
  )
  expect_identical(
    run_hint(data.frame(a = c("1", "2", "{x}"), b = 1:3))$a,
    c(1L, 2L, NA)
  )
  # Text without any number gets no such hint.
  expect_no_match(
    words_of(knn_search(matrix(letters[1:6], 2), 1)), "type.convert"
  )
})

test_that("integer64 is to be made double", {
  skip_if_not_installed("bit64")
  x <- data.frame(a = bit64::as.integer64(c(5, 7, 9)), b = 1:3 / 2)
  expect_identical(run_hint(x), data.frame(a = c(5, 7, 9), b = 1:3 / 2))
  expect_match(words_of(knn_search(x, 1)), "as.double", fixed = TRUE)
  x$gene <- c("a", "b", "c")
  kept <- run_hint(x)
  expect_identical(kept$a, c(5, 7, 9))
  expect_identical(rownames(kept), x$gene)
  square <- structure(bit64::as.integer64(1:4), dim = c(2, 2))
  expect_match(words_of(knn_search(square, 1)), "as.double", fixed = TRUE)
})

test_that("a column of ids is told of, and the hint makes names of it", {
  values <- data.frame(a = 1:6 / 7, b = c(2.5, 1, 7, 3, 9, 4), c = 6:1 / 5)
  told <- function(x, ...) {
    words <- NULL
    withCallingHandlers(
      knn_search(x, 1, "euclidean", ...),
      fsknn_ids_message = function(message) {
        words <<- gsub("\\s+", " ", conditionMessage(message))
        rlang::cnd_muffle(message)
      }
    )
    words
  }
  run <- function(x, words = told(x)) {
    eval(parse(text = sub(".*: `([^`]+)`.*", "\\1", words)))
  }
  entrez <- c(7157, 3845, 672, 675, 1956, 4609)
  for (ids in list(1:6, entrez, as.integer(entrez))) {
    x <- cbind(X = ids, values)
    expect_equal(run(x), `rownames<-`(values, ids), ignore_attr = "row.names")
    expect_identical(rownames(run(x)), as.character(ids))
    expect_identical(run(as.matrix(x)), as.matrix(values))
  }
  expect_match(told(cbind(X = 1:6, values)), "a feature")
  expect_match(told(cbind(X = 1:6, values), points = "columns"), "a point")
  whole <- data.frame(gene_id = entrez, a = c(5, 1, 2, 9, 4, 4), b = 6:1)
  expect_match(told(whole), "gene_id")
  expect_messages(invisible(knn_search(whole, 1, "euclidean")))
  for (quiet in list(
    values, whole[-1], data.frame(x = c(3, 1, 8), y = c(2, 9, 4)),
    iris[1:4], mtcars, as.matrix(values), unname(as.matrix(values))
  )) {
    expect_null(told(quiet))
  }
})

test_that("S4 objects have a hint that works, or none", {
  x <- small_integers(10, 6, largest = 9)
  dimnames(x) <- list(paste0("g", 1:10), paste0("c", 1:6))
  if (requireNamespace("SeuratObject", quietly = TRUE)) {
    sparse <- methods::as(x, "CsparseMatrix")
    expect_identical(
      as.matrix(run_hint(SeuratObject::CreateAssayObject(sparse))), x
    )
    cells <- random_matrix(6, 3)
    dimnames(cells) <- list(colnames(x), paste0("PC_", 1:3))
    reduced <- SeuratObject::CreateDimReducObject(
      cells, key = "PC_", assay = "RNA"
    )
    expect_identical(run_hint(reduced), cells)
  }
  if (requireNamespace("Biobase", quietly = TRUE)) {
    channels <- methods::new(
      "NChannelSet", assayData = Biobase::assayDataNew(R = x, G = x + 1)
    )
    expect_true(any(vapply(list(x, x + 1), identical, NA, run_hint(channels))))
  }
  here <- environment()
  methods::setClass("Opaque", slots = c(a = "matrix"), where = here)
  methods::setMethod("dim", "Opaque", function(x) dim(x@a), where = here)
  opaque <- methods::new("Opaque", a = x)
  expect_no_match(words_of(knn_search(opaque, 1)), "as.matrix", fixed = TRUE)
  registerS3method(
    "as.matrix", "Opaque", function(x, ...) x@a, envir = baseenv()
  )
  expect_identical(run_hint(opaque), x)
  methods::removeMethod("dim", "Opaque", where = here)
  methods::removeClass("Opaque", where = here)
})

test_that("the path of a table is to be read first", {
  file <- withr::local_tempfile(fileext = ".tsv")
  x <- data.frame(a = c(1.5, 2, 7), b = c(3, 1, 2.5), row.names = letters[1:3])
  utils::write.table(x, file, sep = "\t", col.names = NA)
  expect_identical(run_hint(file), x)
  file <- withr::local_tempfile(fileext = ".csv.gz")
  utils::write.csv(x, file)
  expect_identical(run_hint(file), x)
  file <- withr::local_tempfile(fileext = ".rds")
  saveRDS(x, file)
  expect_identical(run_hint(file), x)
  for (ending in c(".RData", ".rda")) {
    file <- withr::local_tempfile(fileext = ending)
    save(x, file = file)
    expect_identical(run_hint(file), x)
  }
  # No code is better than code that fails.
  words <- rlang::cnd_message(rlang::catch_cnd(knn_search("points.npy")))
  expect_match(words, "Read the file first, and give its values.")
  words <- rlang::cnd_message(rlang::catch_cnd(knn_search("points")))
  expect_no_match(words, "Read")
  for (verb in list(knn_graph, function(x) knn_query(random_matrix(5, 2), x))) {
    words <- rlang::cnd_message(rlang::catch_cnd(verb("counts.XLS")))
    expect_match(words, "readxl::read_excel(", fixed = TRUE)
  }
})

test_that("files of other packages are read by their readers", {
  skip_if_not_installed("Matrix")
  values <- small_integers(9, 4)
  sparse <- Matrix::Matrix(values, sparse = TRUE)
  file <- withr::local_tempfile(fileext = ".mtx")
  invisible(Matrix::writeMM(sparse, file))
  right <- knn_search(values, 2, "euclidean")
  expect_identical(knn_search(run_hint(file), 2, "euclidean"), right)
  skip_if_not_installed("readxl")
  file <- readxl::readxl_example("datasets.xlsx")
  expect_identical(run_hint(file), readxl::read_excel(file))
  skip_if_not_installed("HDF5Array")
  file <- withr::local_tempfile(fileext = ".h5")
  HDF5Array::writeHDF5Array(values, file, "counts")
  name <- "counts"
  found <- run_hint(file, name = name)
  expect_identical(knn_search(found, 2, "euclidean"), right)
})

test_that("numbers as text are read as they are meant, or no code is given", {
  table_of <- function(values) {
    data.frame(
      A = values, B = c(2.1, 2.5, 5, 2), C = c(3, 4, 2.1, 1),
      D = c(1.1, 1.6, 3.1, 1.7), row.names = paste0("p", 1:4)
    )
  }
  said <- function(x) words_of(knn_search(x, 1))
  code_of <- function(x) {
    eval(parse(text = sub(".* what is there: `([^`]+)`.*", "\\1", said(x))))
  }
  # Most values are missing, under one word.
  x <- table_of(c("nd", "nd", "nd", "1.2"))
  expect_match(said(x), "No number: \"nd\" in 3 rows", fixed = TRUE)
  expect_identical(code_of(x)$A, c(NA, NA, NA, 1.2))
  x <- table_of(c("1,234", "2,100", "6,111", "980"))
  expect_match(said(x), "marks thousands: \"1,234\"", fixed = TRUE)
  expect_identical(code_of(x)$A, c(1234, 2100, 6111, 980))
  x <- as.matrix(x)
  told <- sub(".*Convert it: `([^`]+)`.*", "\\1", said(x))
  expect_identical(eval(parse(text = told))[, "A"], c(
    p1 = 1234, p2 = 2100, p3 = 6111, p4 = 980
  ))
  x <- table_of(c("0,234", "2,100", "6,111", "980"))
  expect_identical(code_of(x)$A, c(0.234, 2.1, 6.111, 980))
  # Reading the file with that option would spoil the decimal points of other
  # columns.
  expect_no_match(said(x), "Read the file")
  for (values in list(
    c("15%", "2%", "3%", "4%"), c("1.234,5", "2.100,1", "980,1", "1,5"),
    c("\u22121.5", "2.5", "3", "4"), c("1 234", "2", "3", "4")
  )) {
    for (x in list(table_of(values), as.matrix(table_of(values)))) {
      words <- said(x)
      expect_match(words, "a form that R does not read: \"", fixed = TRUE)
      expect_no_match(words, "`.*\\(|na.strings")
    }
  }
  ids <- cbind(id = c(101, 205, 333), a = c(0.5, 1.5, 1.7))
  expect_message(
    knn_search(ids, 1, metric = "euclidean"), "x[, -1, drop = FALSE]",
    fixed = TRUE, class = "fsknn_ids_message"
  )
})

test_that("edges are no points, and no stages of triples", {
  x <- random_matrix(30, 12)
  edges <- knn_graph(x, 2)
  for (given in list(edges, as_igraph(edges))) {
    expect_wrong(
      knn_graph(given, 1), "must hold points, and is the edges of a graph"
    )
  }
  expect_wrong(knn_query(x, edges, 1), "`query` must hold points")
  skip_if_not_installed("survival")
  time <- survival::Surv(1:14, rep(1:0, 7))
  for (verb in list(soft_threshold, sparse_tom)) {
    expect_wrong(verb(time), "survival times")
  }
})

test_that("text beside numbers is read by the code of the hint", {
  numbers <- matrix(c(0.5, 1.25, 3, -4.5, 8.75, 2, 7.5, 1), 4)
  text_of <- function(...) {
    x <- array(format(numbers, nsmall = 2, trim = TRUE), dim(numbers))
    replace(x, c(...), names(c(...)))
  }
  said <- function(x) words_of(knn_search(x, 1))
  run_hint <- function(x) {
    code <- sub(".*(Convert| convert)[^`]*`(.*)`.*", "\\2", said(x))
    unname(as.matrix(eval(parse(text = code))))
  }
  holes <- function(...) replace(numbers, c(...), NA)
  # A matrix and a data frame of each; `x` is what the code reads.
  forms <- list(
    identity, as.data.frame,
    function(x) as.data.frame(x, stringsAsFactors = TRUE),
    function(x) structure(factor(x), dim = dim(x))
  )
  for (form in forms) {
    x <- form(text_of("NaN" = 2))
    expect_no_match(said(x), "No number: in|na.strings")
    expect_equal(run_hint(x), holes(2))
    x <- form(text_of("NA " = 2, " NA" = 7))
    expect_equal(run_hint(x), holes(2, 7))
    x <- form(text_of("#N/A " = 2, "NA\t" = 3))
    expect_match(said(x), "No number: \"#N/A\" in 1 row", fixed = TRUE)
    expect_equal(run_hint(x), holes(2, 3))
    x <- form(text_of("1,25" = 2))
    expect_match(said(x), "decimal points beside decimal commas")
    expect_equal(run_hint(x), numbers)
    x <- form(text_of("1,25" = 2, "n,d" = 3))
    expect_equal(run_hint(x), holes(3))
    x <- form(text_of("1,250" = 2, "n,d" = 3))
    expect_equal(run_hint(x), replace(holes(3), 2, 1250))
  }
})

test_that("a column of names with missing ones becomes row names", {
  x <- data.frame(id = c(NA, "a", "b"), p = c(0.5, 2, 1), q = 3:1)
  for (id in list(x$id, factor(x$id), c(NA, "a", "a"))) {
    x$id <- id
    code <- sub(".*as names: `(.*)`.*", "\\1", words_of(knn_graph(x, 1)))
    named <- eval(parse(text = code))
    expect_identical(anyDuplicated(row.names(named)), 0L)
    expect_identical(named$p, x$p)
  }
})

test_that("the path of a known file names its reader", {
  for (case in list(
    c("a.cibm", "read_points(x)"), c("a.ibin", "read_knn(x)"),
    c(
      "GSE1_series_matrix.txt.gz",
      "read.delim(x, comment.char = \"!\", row.names = 1)"
    )
  )) {
    x <- case[[1]]
    expect_match(words_of(knn_graph(x, 3)), case[[2]], fixed = TRUE)
  }
})

test_that("a vector as query, and swapped arguments, get a hint", {
  x <- random_matrix(20, 4)
  rownames(x) <- paste0("g", seq_len(20))
  graph <- knn_graph(x, 2)
  expect_messages({
    knn_query(x, x[1, ], k = 3)
    knn_query(x, c("g1", "g2"), k = 3)
    knn_query(x, 3, x[1:2, ])
    knn_search(3, x)
    threshold_graph(0.7, x)
    write_edges("edges.csv", graph)
    nearest_to("g1", x)
    knn_search(x, 1:2)
    knn_predict(x, as.data.frame(x))
  })
})
