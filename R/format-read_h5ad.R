#' Read cells from an AnnData file
#'
#' Reads a matrix of cells from a file of AnnData (`.h5ad`), the container of
#' scanpy. Cells are rows, as they are in Python, so the result is `x` for
#' [knn_graph()] and the other verbs. [write_h5ad_neighbours()] puts the
#' neighbours into the file.
#'
#' The matrix is one of these:
#' * `obsm = "X_pca"`, `"X_scVI"` and so on: an array of cells by components;
#' * `layer = "X"`: the matrix `X` of cells by genes;
#' * `layer = "counts"` and so on: a matrix of `layers`.
#'
#' Dense arrays and sparse matrices (CSR or CSC) of numbers are read from files
#' of AnnData 0.7 and later. From older files, `X` and `layers` are read. A data
#' frame in `obsm`, the matrix `raw`, and files of zarr are not supported.
#'
#' A dense array is read by blocks of cells, so that it is in memory once. With
#' `backed = TRUE` only the names are read, and the verbs read blocks of cells
#' when they need them. Read a sparse matrix into memory, or use
#' `HDF5Array::H5ADMatrix()`, which has genes in rows.
#'
#' For neighbours of cells use components (`obsm`), as scanpy does. Single genes
#' add much noise to the distances.
#'
#' @param file Path of the file.
#' @param obsm Name of the element of `obsm` to read, `"X_pca"` by default.
#' @param ... Must be empty.
#' @param layer Read this layer in place of `obsm`: its name in `layers`, or
#'   `"X"`. `NULL` (default) reads `obsm`.
#' @param backed `TRUE` opens a dense array and reads its values only when they
#'   are used. `FALSE` (default) reads it into memory.
#'
#' @returns Points, a row for each cell, with the names of the cells
#'   (`adata.obs_names`) as row names. From a layer, columns have the names of
#'   the genes. A dense array is a numeric matrix, or with `backed = TRUE` a
#'   `DelayedMatrix` of HDF5Array. A sparse matrix is a `dgCMatrix`.
#' @section Errors: An element that is not in the file is a
#'   `fsknn_argument_error`, which lists those that are. A file that is not
#'   HDF5, is damaged or has another layout is a `fsknn_file_error`. The package
#'   rhdf5, and for some results Matrix or HDF5Array, must be installed: a
#'   `fsknn_package_error` says which is missing.
#' @references
#' Virshup I, Rybakov S, Theis FJ, Angerer P, Wolf FA (2024). anndata: Access
#' and store annotated data matrices. *Journal of Open Source Software* 9(101):
#' 4371. \doi{10.21105/joss.04371}
#' @seealso [write_h5ad_neighbours()], [read_points()] for other files.
#' @export
#' @examples
#' # a small file that AnnData has written
#' file <- system.file("extdata", "cells.h5ad", package = "fsknn")
#' if (requireNamespace("rhdf5", quietly = TRUE)) {
#'   x <- read_h5ad(file, obsm = "X_pca")
#'   x[1:3, 1:4]
#'   knn_graph(x, k = 5, metric = "euclidean", backend = "cpu")
#' }
read_h5ad <- function(file, obsm = "X_pca", ..., layer = NULL,
                      backed = FALSE) {
  check_no_more(...)
  path <- check_path_in(file)
  if (!is.null(layer) && !missing(obsm)) {
    abort_argument("Only one of {.arg obsm} and {.arg layer} can be given.")
  }
  element <- if (is.null(layer)) c(obsm = obsm) else c(layer = layer)
  if (!rlang::is_string(element)) {
    abort_argument("{.arg {names(element)[[1]]}} must be one name.")
  }
  backed <- check_flag(backed, "backed")
  call <- current_env()
  read <- with_h5ad(file, path, call, function(h5) {
    check_h5ad_tables(h5, file, call)
    name <- h5ad_matrix_name(h5, element, call)
    size <- h5ad_matrix_size(h5, name, file, backed, call)
    names <- list(
      h5ad_index(h5, "obs", file, call),
      if (!is.null(layer)) h5ad_index(h5, "var", file, call)
    )
    list(
      name = name, size = size, names = names,
      x = if (!backed) read_h5ad_matrix(h5, name, size, call)
    )
  })
  named <- lengths(read$names) > 0
  if (any(read$size[named] != lengths(read$names)[named])) {
    abort_file(
      file, NULL, "have a row for each cell, and a column for each gene",
      paste0(
        "Its \"", read$name, "\" has ", paste(read$size, collapse = " x "),
        " values"
      ),
      call = call
    )
  }
  x <- read$x
  if (backed) {
    check_package("HDF5Array", "`backed = TRUE`")
    # R has the first dimension of the file last.
    x <- BiocGenerics::t(HDF5Array::HDF5Array(path, paste0("/", read$name)))
  }
  dimnames(x) <- read$names
  x
}

# Opens the file for `use`, which reads from it.
with_h5ad <- function(file, path, call, use) {
  check_package("rhdf5", "A file of AnnData", call)
  h5 <- tryCatch(
    open_h5(path, "H5F_ACC_RDONLY"),
    error = function(err) {
      abort_file(
        file, NULL, "be an HDF5 file", "HDF5 can't open it", call = call
      )
    }
  )
  on.exit(rhdf5::H5Fclose(h5))
  in_h5ad(use(h5), file, "read", call)
}

# HDF5Array switches the errors of HDF5 off, for this package too if both have
# one HDF5 library.
open_h5 <- function(path, mode) {
  rhdf5::h5errorHandling("normal")
  suppressMessages(rhdf5::H5Fopen(path, mode))
}

# Puts errors of HDF5 in words.
in_h5ad <- function(expr, file, verb, call) {
  rlang::try_fetch(expr, error = function(err) {
    if (inherits(err, "fsknn_error")) {
      return(rlang::zap())
    }
    words <- one_line(conditionMessage(err))
    cli_abort(
      c("{.file {file}} can't be {verb}.", x = "{words}"),
      class = c("fsknn_file_error", "fsknn_error"), call = call
    )
  })
}

one_line <- function(words) trimws(gsub("[[:space:]]+", " ", words))

# Returns the path in the file of the matrix that was asked for.
h5ad_matrix_name <- function(h5, element, call) {
  option <- names(element)
  group <- if (option == "obsm") "obsm" else "layers"
  names <- c(
    if (option == "layer" && h5_exists(h5, "X")) "X", h5_members(h5, group)
  )
  at <- find_element(
    element[[1]], names, option,
    if (option == "obsm") "element of `obsm`" else "layer",
    "file", call, many = if (option == "obsm") "elements of `obsm`" else
      "layers"
  )
  if (option == "layer" && names[[at]] == "X") {
    "X"
  } else {
    paste0(group, "/", names[[at]])
  }
}

# Returns the size of a matrix that can be read.
h5ad_matrix_size <- function(h5, name, file, backed, call) {
  abort <- function(found) {
    abort_file(
      file, NULL,
      paste0(
        "have a dense array or a sparse matrix of numbers as \"", name, "\""
      ),
      found, call = call
    )
  }
  if (!h5_is_group(h5, name)) {
    size <- rev(h5_dims(h5, name))
    if (length(size) != 2) {
      abort(paste("It has", tally(length(size), "dimension")))
    }
    if (!is.numeric(read_h5_block(h5, name, 1, pmin(size, 1)))) {
      abort("Its values are no numbers")
    }
    return(size)
  }
  if (is.na(h5_sparse_form(h5, name))) {
    type <- h5_attribute(h5, name, "encoding-type") %||% "none"
    abort(paste0("Its encoding-type is \"", type, "\""))
  }
  if (backed) {
    abort_argument(
      c(
        "{.arg backed} can't be TRUE for a sparse matrix.",
        x = "{.val {name}} of {.file {file}} is one.",
        i = "{.code HDF5Array::H5ADMatrix()} opens it, with genes in rows."
      ),
      call
    )
  }
  h5_attribute(h5, name, "shape") %||% h5_attribute(h5, name, "h5sparse_shape")
}

# Returns "csr", "csc", or NA if the group is no sparse matrix. The second
# attribute is that of AnnData before 0.7.
h5_sparse_form <- function(h5, name) {
  form <- h5_attribute(h5, name, "encoding-type") %||%
    h5_attribute(h5, name, "h5sparse_format")
  known <- c(csr = "csr", csc = "csc", csr_matrix = "csr", csc_matrix = "csc")
  known[form %||% ""]
}

read_h5ad_matrix <- function(h5, name, size, call) {
  if (h5_is_group(h5, name)) {
    read_h5_sparse(h5, name, size, call)
  } else {
    read_h5_dense(h5, name, size)
  }
}

# A block of rows takes 32 MiB.
read_h5_dense <- function(h5, name, size,
                          at_once = max(1, floor(2^22 / size[[2]]))) {
  x <- matrix(NA_real_, size[[1]], size[[2]])
  if (length(x) > 0) {
    for (rows in row_ranges(size[[1]], at_once)) {
      block <- read_h5_block(h5, name, rows[[1]], c(length(rows), size[[2]]))
      x[rows, ] <- t(block)
    }
  }
  x
}

# Returns rows of the file's array as columns. rhdf5 reads bytes without a sign
# as raw.
read_h5_block <- function(h5, name, first, size) {
  block <- rhdf5::h5read(
    h5, name, start = c(1, first), count = rev(size),
    bit64conversion = "double"
  )
  if (is.raw(block)) array(as.integer(block), dim(block)) else block
}

read_h5_sparse <- function(h5, name, size, call) {
  check_package("Matrix", "A sparse matrix", call)
  part <- function(what) {
    as.double(rhdf5::h5read(
      h5, paste0(name, "/", what), bit64conversion = "double"
    ))
  }
  begins <- part("indptr")
  check_num_entries(begins[[length(begins)]], call)
  # CSR is read as the columns of the transposed matrix.
  by_rows <- h5_sparse_form(h5, name) == "csr"
  x <- Matrix::sparseMatrix(
    i = part("indices"), p = begins, x = part("data"),
    dims = if (by_rows) rev(size) else size, index1 = FALSE
  )
  if (by_rows) Matrix::t(x) else x
}

# --- the parts of a file -----------------------------------------------------

check_h5ad_tables <- function(h5, file, call) {
  members <- h5_members(h5)
  if (!all(c("obs", "var") %in% members)) {
    abort_file(
      file, NULL, "have \"obs\" and \"var\", as a file of AnnData has",
      if (length(members) > 0) {
        paste("It has", first_few(paste0("\"", members, "\"")))
      } else {
        "It is empty"
      },
      call = call
    )
  }
}

# Returns the names of the cells ("obs") or genes ("var").
h5ad_index <- function(h5, table, file, call) {
  if (!h5_is_group(h5, table)) {
    # Before 0.7: a table of records.
    records <- rhdf5::h5read(h5, table)
    return(as.character(records[["index"]] %||% records[[1]]))
  }
  name <- paste0(table, "/", h5_attribute(h5, table, "_index") %||% "_index")
  if (!h5_exists(h5, name)) {
    abort_file(
      file, NULL, paste0("have the names of \"", table, "\" in \"", name, "\""),
      "They are not there", call = call
    )
  }
  if (!h5_is_group(h5, name)) {
    return(as.character(rhdf5::h5read(h5, name)))
  }
  read <- function(part) {
    as.vector(rhdf5::h5read(h5, paste0(name, "/", part)))
  }
  if (h5_exists(h5, paste0(name, "/categories"))) {
    as.character(read("categories"))[as.integer(read("codes")) + 1]
  } else {
    as.character(read("values"))
  }
}

h5_exists <- function(h5, name) {
  parts <- strsplit(name, "/", fixed = TRUE)[[1]]
  paths <- Reduce(function(a, b) paste0(a, "/", b), parts, accumulate = TRUE)
  # A link is looked up in a group that exists.
  for (path in paths) {
    if (!rhdf5::H5Lexists(h5, path)) {
      return(FALSE)
    }
  }
  TRUE
}

h5_is_group <- function(h5, name) {
  object <- rhdf5::H5Oopen(h5, name)
  on.exit(rhdf5::H5Oclose(object))
  rhdf5::H5Iget_type(object) == "H5I_GROUP"
}

h5_members <- function(h5, group = NULL) {
  if (is.null(group)) {
    return(rhdf5::h5ls(h5, recursive = FALSE, datasetinfo = FALSE)$name)
  }
  if (!h5_exists(h5, group) || !h5_is_group(h5, group)) {
    return(character())
  }
  object <- rhdf5::H5Gopen(h5, group)
  on.exit(rhdf5::H5Gclose(object))
  rhdf5::h5ls(object, recursive = FALSE, datasetinfo = FALSE)$name
}

# Returns the size of an array, its first dimension last.
h5_dims <- function(h5, name) {
  array <- rhdf5::H5Dopen(h5, name)
  on.exit(rhdf5::H5Dclose(array))
  space <- rhdf5::H5Dget_space(array)
  on.exit(rhdf5::H5Sclose(space), add = TRUE, after = FALSE)
  rhdf5::H5Sget_simple_extent_dims(space)$size
}

# Returns an attribute, or NULL if there is none of this name.
h5_attribute <- function(h5, name, attribute) {
  object <- rhdf5::H5Oopen(h5, name)
  on.exit(rhdf5::H5Oclose(object))
  if (!rhdf5::H5Aexists(object, attribute)) {
    return(NULL)
  }
  opened <- rhdf5::H5Aopen(object, attribute)
  on.exit(rhdf5::H5Aclose(opened), add = TRUE, after = FALSE)
  as.vector(rhdf5::H5Aread(opened))
}
