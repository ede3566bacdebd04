euclidean <- function(x, k = 5) knn_search(x, k, metric = "euclidean")

# Returns the parts of a CSR matrix as they are in the file.
stored <- function(file, name) {
  lapply(
    stats::setNames(nm = c("data", "indices", "indptr")),
    function(part) as.vector(rhdf5::h5read(file, paste0(name, "/", part)))
  )
}

# Returns the matrix of neighbours that the file holds, nearest first.
stored_neighbours <- function(file, name = "obsp/distances") {
  parts <- stored(file, name)
  rows <- length(parts$indptr) - 1
  list(
    index = matrix(parts$indices + 1L, rows, byrow = TRUE),
    distance = matrix(parts$data, rows, byrow = TRUE)
  )
}

expect_stored <- function(file, nn, ...) {
  found <- stored_neighbours(file, ...)
  expect_identical(found$index, unname(nn$index))
  expect_identical(found$distance, unname(nn$distance))
}

test_that("neighbours are matched with the cells by name", {
  local_folder()
  file <- copy_cells()
  x <- read_h5ad(file)
  nn <- euclidean(x)
  set.seed(1)
  order <- sample(nrow(x))
  shuffled <- knn_graph(x[order, ], 5, "euclidean")
  expect_identical(
    write_h5ad_neighbours(shuffled, file, connectivities = FALSE), file
  )
  expect_stored(file, nn)
  named <- as_knn(shuffled)
  expect_false(identical(rownames(named$index), rownames(x)))
  others <- list(
    named = named, edges = shuffled[rev(seq_len(nrow(shuffled))), ],
    by_place = euclidean(unname(x)), uwot = as_knn(nn, "uwot"),
    graph = as_igraph(shuffled)
  )
  for (shape in names(others)) {
    write_h5ad_neighbours(
      others[[shape]], file, connectivities = FALSE, overwrite = TRUE
    )
    expect_stored(file, nn)
  }
})

test_that("another key keeps neighbours, and overwrite replaces them all", {
  skip_if_not_installed("uwot")
  local_folder()
  file <- copy_cells()
  x <- read_h5ad(file)
  write_h5ad_neighbours(euclidean(x), file)
  write_h5ad_neighbours(
    euclidean(x, 3), file, key = "exact", obsm = "X_pca"
  )
  expect_stored(file, euclidean(x))
  expect_stored(file, euclidean(x, 3), "obsp/exact_distances")
  read <- function(name) as.vector(rhdf5::h5read(file, name))
  expect_identical(read("uns/exact/distances_key"), "exact_distances")
  expect_identical(read("uns/exact/params/n_neighbors"), 4L)
  expect_identical(read("uns/exact/params/use_rep"), "X_pca")
  # Those of other neighbours would not be right.
  write_h5ad_neighbours(
    euclidean(x, 4), file, connectivities = FALSE, overwrite = TRUE
  )
  expect_stored(file, euclidean(x, 4))
  parts <- rhdf5::h5ls(file)
  expect_setequal(
    parts$name[parts$group == "/obsp"],
    c("distances", "exact_distances", "exact_connectivities")
  )
  expect_identical(read_h5ad(file), x)
})

test_that("lists of different lengths, duplicates and shards are written", {
  local_folder()
  file <- copy_cells()
  x <- unname(read_h5ad(file))
  x[7, ] <- x[3, ]
  within <- within_search(x, 6, metric = "euclidean")
  expect_gt(length(unique(lengths(within$index))), 1)
  write <- function(nn) {
    write_h5ad_neighbours(nn, file, connectivities = FALSE, overwrite = TRUE)
  }
  write(within)
  found <- stored(file, "obsp/distances")
  expect_identical(found$indptr, c(0L, cumsum(lengths(within$index))))
  expect_identical(found$indices, unlist(within$index) - 1L)
  expect_identical(found$data, unlist(within$distance))
  expect_true(0 %in% found$data)
  nn <- euclidean(x)
  nn$index[4, 5] <- NA
  write(nn)
  expect_length(stored(file, "obsp/distances")$data, 150 * 5 - 1)
  skip_if_not_installed("DelayedArray")
  output <- knn_output("out", "bin", precision = "double")
  write(knn_search(x, 5, "euclidean", output = output))
  expect_stored(file, euclidean(x))
})

test_that("AnnData reads the types, the order and the values", {
  python <- python_with_anndata()
  skip_if_not_installed("uwot")
  local_folder()
  file <- copy_cells()
  nn <- euclidean(read_h5ad(file))
  write_h5ad_neighbours(nn, file, obsm = "X_pca")
  said <- in_python(python, c(
    "cells = anndata.read_h5ad('cells.h5ad')",
    "for name in ['distances', 'connectivities']:",
    "  m = cells.obsp[name]",
    "  print(type(m).__name__, m.dtype, m.indices.dtype, m.indptr.dtype,",
    "        *m.shape, m.has_sorted_indices, (m != m.T).nnz == 0)",
    "near = cells.obsp['distances']",
    "near.indices.astype('int32').tofile('indices')",
    "near.data.tofile('data')",
    "print(set(map(int, near.getnnz(axis=1))))",
    "entry = cells.uns['neighbors']",
    "print(sorted(entry), entry['connectivities_key'],",
    "      entry['distances_key'])",
    "print({k: (str(v), type(v).__name__) for k, v in",
    "       sorted(entry['params'].items())})",
    # What AnnData reads, it can write: its own layout is the same.
    "cells.write_h5ad('again.h5ad')",
    "def layout(path):",
    "  found = {}",
    "  def look(name, item):",
    "    kind = item.dtype.str if hasattr(item, 'dtype') else 'group'",
    "    found[name] = (kind, getattr(item, 'shape', None),",
    "      sorted((k, str(v)) for k, v in item.attrs.items()))",
    "  with h5py.File(path) as file:",
    "    for part in ['obsp', 'uns']:",
    "      file[part].visititems(lambda n, i: look(part + '/' + n, i))",
    "  return found",
    "print(layout('cells.h5ad') == layout('again.h5ad'))"
  ))
  expect_identical(said, c(
    "csr_matrix float64 int32 int32 150 150 False False",
    "csr_matrix float32 int32 int32 150 150 True True",
    "{5}",
    paste("['connectivities_key', 'distances_key', 'params']",
          "connectivities distances"),
    paste0(
      "{'method': ('umap', 'str'), 'metric': ('euclidean', 'str'), ",
      "'n_neighbors': ('6', 'int64'), 'use_rep': ('X_pca', 'str')}"
    ),
    "True"
  ))
  in_rows <- function(file, what) {
    matrix(readBin(file, what, 1e4, endian = "little"), 150, byrow = TRUE)
  }
  expect_identical(in_rows("indices", "integer") + 1L, unname(nn$index))
  expect_identical(in_rows("data", "double"), unname(nn$distance))
})

test_that("connectivities are uwot's, of the given neighbours", {
  skip_if_not_installed("uwot")
  skip_if_not_installed("Matrix")
  local_folder()
  file <- copy_cells()
  nn <- euclidean(read_h5ad(file))
  set.seed(1)
  before <- .Random.seed
  write_h5ad_neighbours(nn, file)
  expect_identical(.Random.seed, before)
  parts <- stored(file, "obsp/connectivities")
  found <- Matrix::sparseMatrix(
    j = parts$indices, p = parts$indptr, x = parts$data, dims = c(150, 150),
    index1 = FALSE, repr = "R"
  )
  # The definition of UMAP: the weights of each row sum to log2(k + 1), before
  # both directions are joined.
  own <- matrix(0, 150, 150)
  for (i in 1:150) {
    d <- nn$distance[i, ]
    weights <- function(scale) exp(-pmax(0, d - min(d)) / scale)
    scale <- stats::uniroot(
      function(scale) sum(weights(scale)) - log2(6), c(1e-3, 1e3), tol = 1e-10
    )$root
    own[i, nn$index[i, ]] <- weights(scale)
  }
  expect_equal(
    unname(as.matrix(found)), own + t(own) - own * t(own), tolerance = 1e-4
  )
})

test_that("the file is unchanged after an error, and nothing is beside it", {
  local_folder()
  file <- copy_cells()
  before <- bytes_of(file)
  expect_error(
    change_h5ad(file, file, rlang::current_env(), function(h5) {
      put_h5_scalar(h5, "uns/word", "text")
      put_h5_group(h5, "none/group")
    }),
    "cells.h5ad.* can't be written", class = "fsknn_file_error"
  )
  expect_identical(bytes_of(file), before)
  expect_identical(list.files(all.files = TRUE, no.. = TRUE), file)
  expect_length(rhdf5::h5validObjects(), 0)
})

test_that("a full disk leaves the file as it was", {
  skip_if_not_installed("rhdf5")
  folder <- withr::local_tempdir()
  mounted <- suppressWarnings(system2(
    "mount", c("-t", "tmpfs", "-o", "size=600k", "none", shQuote(folder)),
    stdout = FALSE, stderr = FALSE
  ))
  skip_if(mounted != 0, "No mount is permitted here.")
  withr::defer(system2("umount", shQuote(folder)))
  withr::local_dir(folder)
  file <- copy_cells()
  before <- bytes_of(file)
  x <- read_h5ad(file)
  # The disk has room for the copy, but not for all neighbours, or for none.
  pages <- function(bytes) 4096 * ceiling(bytes / 4096)
  for (room in c(0, 1, 10, 30) * 4096) {
    unlink("rest")
    left <- pages(600 * 1024) - 2 * pages(file.size(file)) - room
    writeBin(raw(left), "rest")
    expect_error(
      write_h5ad_neighbours(euclidean(x, 140), file, connectivities = FALSE),
      class = "fsknn_file_error"
    )
    expect_identical(bytes_of(file), before)
    expect_setequal(
      list.files(all.files = TRUE, no.. = TRUE), c(file, "rest")
    )
  }
  unlink("rest")
  expect_length(rhdf5::h5validObjects(), 0)
  write_h5ad_neighbours(euclidean(x), file, connectivities = FALSE)
  expect_stored(file, euclidean(x))
})

test_that("a link leads to the file, which keeps its permissions", {
  local_folder()
  dir.create("inner")
  file.copy(cells_file(), "inner/cells.h5ad")
  Sys.chmod("inner/cells.h5ad", "0640")
  file.symlink("inner/cells.h5ad", "link.h5ad")
  nn <- euclidean(read_h5ad("link.h5ad"))
  write_h5ad_neighbours(nn, "link.h5ad", connectivities = FALSE)
  expect_identical(Sys.readlink("link.h5ad"), "inner/cells.h5ad")
  expect_identical(format(file.mode("inner/cells.h5ad")), "640")
  expect_stored("inner/cells.h5ad", nn)
  expect_identical(list.files("inner"), "cells.h5ad")
})

test_that("wrong neighbours and files are errors", {
  skip_if_not_installed("uwot")
  local_folder()
  file <- copy_cells()
  x <- read_h5ad(file)
  nn <- euclidean(x)
  write_h5ad_neighbours(nn, file, key = "old", connectivities = FALSE)
  other <- x
  rownames(other)[3] <- "stranger"
  twice <- nn
  twice$index[2, 2] <- twice$index[2, 1]
  without <- as_knn(nn)
  without["distance"] <- list(NULL)
  rhdf5::h5createFile("other.h5ad")
  expect_messages({
    write_h5ad_neighbours(nn, file, key = "old")
    write_h5ad_neighbours(euclidean(other), file)
    write_h5ad_neighbours(euclidean(unname(x)[-1, ]), file)
    write_h5ad_neighbours(knn_query(x, x[1:9, ], 3), file)
    write_h5ad_neighbours(twice, file)
    write_h5ad_neighbours(without, file)
    write_h5ad_neighbours(within_search(x, 6, metric = "euclidean"), file)
    write_h5ad_neighbours(nn, file, key = "a/b")
    write_h5ad_neighbours(nn, file, obsm = "X_umap")
    write_h5ad_neighbours(nn, "other.h5ad")
    write_h5ad_neighbours(nn, "none.h5ad")
    write_h5ad_neighbours(x, file)
  })
})
