test_that("an element of obsm is read with the names of the cells", {
  x <- read_h5ad(cells_file())
  expect_identical(dim(x), c(150L, 8L))
  expect_type(x, "double")
  expect_identical(rownames(x), paste0("cell", 1:150))
  # The components are centred, uncorrelated, and in order of variance.
  expect_lt(max(abs(colMeans(x))), 1e-12)
  expect_lt(max(abs(crossprod(x) - diag(colSums(x^2)))), 1e-9)
  expect_false(is.unsorted(rev(colSums(x^2))))
})

test_that("layers are read, sparse or dense, with the names of the genes", {
  file <- cells_file()
  skip_if_not_installed("Matrix")
  counts <- read_h5ad(file, layer = "X")
  expect_s4_class(counts, "dgCMatrix")
  logs <- read_h5ad(file, layer = "logcounts")
  expect_identical(dimnames(counts), dimnames(logs))
  expect_identical(colnames(logs), paste0("gene", 1:40))
  counts <- as.matrix(counts)
  expect_equal(log1p(counts / rowSums(counts) * 1e4), logs, tolerance = 1e-6)
})

test_that("a backed array is read as a whole array is, and searched", {
  file <- cells_file()
  skip_if_not_installed("HDF5Array")
  x <- read_h5ad(file)
  expect_no_warning(backed <- read_h5ad(file, backed = TRUE))
  expect_s4_class(backed, "DelayedMatrix")
  expect_identical(as.matrix(backed), x)
  expect_identical(
    knn_graph(backed, 5, "euclidean", max_memory = 4000),
    knn_graph(x, 5, "euclidean")
  )
  logs <- read_h5ad(file, layer = "logcounts", backed = TRUE)
  expect_identical(as.matrix(logs), read_h5ad(file, layer = "logcounts"))
})

test_that("an array of many blocks is put together", {
  skip_if_not_installed("rhdf5")
  local_folder()
  x <- random_matrix(23, 4)
  rhdf5::h5createFile("a.h5")
  rhdf5::h5write(t(x), "a.h5", "x")
  h5 <- rhdf5::H5Fopen("a.h5")
  withr::defer(rhdf5::H5Fclose(h5))
  for (at_once in c(1, 7, 23, 100)) {
    expect_identical(read_h5_dense(h5, "x", dim(x), at_once), x)
  }
})

test_that("what AnnData writes is read", {
  skip_if_not_installed("rhdf5")
  skip_if_not_installed("Matrix")
  python <- python_with_anndata()
  local_folder()
  in_python(python, c(
    "rng = numpy.random.default_rng(2)",
    "names = ['c\u00e9ll %d' % i for i in range(12)]",
    "cells = anndata.AnnData(scipy.sparse.csc_matrix(",
    "  rng.poisson(1, (12, 5)).astype('float32')),",
    "  obs=pandas.DataFrame(index=pandas.Index(names, name='barcode')))",
    "cells.obsm['single'] = rng.normal(size=(12, 3)).astype('float32')",
    "cells.obsm['whole'] = rng.integers(-9, 9, (12, 2))",
    "cells.obsm['bytes'] = rng.integers(0, 9, (12, 2)).astype('uint8')",
    "cells.obsm['sparse'] = scipy.sparse.csr_matrix(cells.obsm['whole'])",
    "cells.layers['rows'] = scipy.sparse.csr_matrix(cells.X)",
    "cells.layers['packed'] = cells.X.toarray()",
    "cells.write_h5ad('a.h5ad', compression='gzip')",
    "for name in ['single', 'whole', 'bytes']:",
    "  cells.obsm[name].astype('float64').tofile(name)",
    "cells.layers['packed'].astype('float64').tofile('X')",
    # as before 0.7: records, and other attributes
    "with h5py.File('old.h5ad', 'w') as old:",
    "  records = numpy.array([(name.encode(), i) for i, name in",
    "    enumerate('abc')], dtype=[('index', 'S1'), ('depth', 'i4')])",
    "  old['obs'] = records",
    "  old['var'] = records[:2]",
    "  X = old.create_group('X')",
    "  X.attrs['h5sparse_format'] = 'csr'",
    "  X.attrs['h5sparse_shape'] = (3, 2)",
    "  X['data'] = [5.0, 6.0]",
    "  X['indices'] = [1, 0]",
    "  X['indptr'] = [0, 1, 1, 2]",
    "  old['layers/flat'] = numpy.arange(6.0).reshape(3, 2)"
  ))
  names <- paste("c\u00e9ll", 0:11)
  expected <- function(name, columns) {
    values <- readBin(name, "double", 1000, endian = "little")
    matrix(values, 12, columns, byrow = TRUE, dimnames = list(names, NULL))
  }
  expect_identical(read_h5ad("a.h5ad", "single"), expected("single", 3))
  expect_identical(read_h5ad("a.h5ad", "whole"), expected("whole", 2))
  expect_identical(read_h5ad("a.h5ad", "bytes"), expected("bytes", 2))
  expect_identical(
    as.matrix(read_h5ad("a.h5ad", "sparse")), expected("whole", 2)
  )
  genes <- expected("X", 5)
  colnames(genes) <- 0:4
  for (layer in c("X", "rows", "packed")) {
    expect_identical(as.matrix(read_h5ad("a.h5ad", layer = layer)), genes)
  }
  old <- rbind(a = c(a = 0, b = 5), b = 0, c = c(6, 0))
  expect_identical(as.matrix(read_h5ad("old.h5ad", layer = "X")), old)
  expect_identical(
    read_h5ad("old.h5ad", layer = "flat"),
    matrix(0:5 + 0, 3, byrow = TRUE, dimnames = dimnames(old))
  )
})

test_that("what is not there is an error that lists what is", {
  local_folder()
  copy_cells()
  writeLines("text", "text.h5ad")
  rhdf5::h5createFile("other.h5ad")
  rhdf5::h5write(1:3, "other.h5ad", "counts")
  file.copy("cells.h5ad", "wrong.h5ad")
  h5 <- rhdf5::H5Fopen("wrong.h5ad")
  rhdf5::h5write(matrix(1, 2, 3), h5, "obsm/short")
  rhdf5::h5write(1:150, h5, "obsm/line")
  rhdf5::h5write(matrix("a", 2, 150), h5, "obsm/words")
  rhdf5::H5Ldelete(h5, "var/_index")
  rhdf5::H5Fclose(h5)
  expect_messages({
    read_h5ad("cells.h5ad", "X_umap")
    read_h5ad("cells.h5ad", layer = "count")
    read_h5ad("cells.h5ad", 1)
    read_h5ad("cells.h5ad", "X_pca", layer = "X")
    read_h5ad("cells.h5ad", layer = "X", backed = TRUE)
    read_h5ad("none.h5ad")
    read_h5ad("text.h5ad")
    read_h5ad("other.h5ad")
    read_h5ad("other.h5ad", layer = "X")
    read_h5ad("wrong.h5ad", "short")
    read_h5ad("wrong.h5ad", "line")
    read_h5ad("wrong.h5ad", "words")
    read_h5ad("wrong.h5ad", layer = "logcounts")
    read_points("cells.h5ad")
    knn_graph("cells.h5ad", 3)
  })
  expect_length(rhdf5::h5validObjects(), 0)
})
