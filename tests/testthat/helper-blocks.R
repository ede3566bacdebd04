# Returns, by name, matrices that are read by blocks, all with the values of x.
# Those of HDF5Array and bigmemory are included only if these are installed.
block_matrices <- function(x) {
  skip_if_not_installed("DelayedArray")
  n <- nrow(x)
  d <- ncol(x)
  made <- list(
    "in memory" = DelayedArray::DelayedArray(x),
    "delayed operations" =
      DelayedArray::DelayedArray(rbind(0, x * 2))[-1, , drop = FALSE] / 2
  )
  if (requireNamespace("HDF5Array", quietly = TRUE)) {
    write <- function(values, chunk) {
      HDF5Array::writeHDF5Array(
        values, withr::local_tempfile(.local_envir = teardown_env()), "x",
        chunkdim = pmin(chunk, dim(values)), with.dimnames = FALSE
      )
    }
    made[["square chunks"]] <- write(x, c(50L, 7L))
    made[["tall chunks"]] <- write(x, c(n, 2L))
    made[["turned"]] <- t(write(t(x), c(7L, 50L)))
    made[["sparse in a file"]] <- tenx_matrix(x)
  }
  if (requireNamespace("bigmemory", quietly = TRUE)) {
    made[["big.matrix"]] <- bigmemory::as.big.matrix(x)
  }
  if (requireNamespace("Matrix", quietly = TRUE)) {
    made[["dgCMatrix"]] <- methods::as(x, "CsparseMatrix")
  }
  made
}

# TENxMatrix() is avoided: HDF5Array 1.26 with rhdf5 2.42 can't open its own
# files.
tenx_matrix <- function(x) {
  sparse <- methods::as(x + 0, "CsparseMatrix")
  dimnames(sparse) <- list(
    paste0("r", seq_len(nrow(x))), paste0("c", seq_len(ncol(x)))
  )
  file <- withr::local_tempfile(.local_envir = teardown_env())
  try(
    suppressWarnings(suppressMessages(
      HDF5Array::writeTENxMatrix(sparse, file, group = "mat")
    )),
    silent = TRUE
  )
  seed <- methods::new(
    "TENxMatrixSeed",
    filepath = file, group = "mat", subdata = NULL, dim = dim(x),
    indptr_ranges = data.frame(
      start = sparse@p[-length(sparse@p)] + 1, width = diff(sparse@p)
    ),
    dimnames = list(NULL, NULL)
  )
  DelayedArray::DelayedArray(seed)
}

# Returns the temporary files that this process holds open. Only base names are
# compared, because the folder of a clone may have a similar name.
open_row_files <- function() {
  skip_if_not(dir.exists("/proc/self/fd"), "There is no /proc")
  open <- Sys.readlink(list.files("/proc/self/fd", full.names = TRUE))
  open[grepl("^fsknn-", basename(open))]
}

# Makes values that the metric accepts.
metric_values <- function(metric, n, d, seed = 1) {
  values_for(random_matrix(n, d, seed), metric)
}

# Makes a chunked seed that counts the chunks read: list(seed, reads), where
# `reads` is an environment with `chunks`. Its class is removed when `frame`
# ends.
new_counted_seed <- function(x, chunk, frame) {
  methods::setClass(
    "CountedSeed",
    slots = c(x = "matrix", chunk = "integer", reads = "environment"),
    where = frame
  )
  withr::defer(methods::removeClass("CountedSeed", where = frame), frame)
  define <- function(generic, method) {
    methods::setMethod(generic, "CountedSeed", method, where = frame)
    withr::defer(
      methods::removeMethod(generic, "CountedSeed", where = frame), frame
    )
  }
  define("dim", function(x) dim(x@x))
  define(DelayedArray::chunkdim, function(x) x@chunk)
  define(DelayedArray::extract_array, function(x, index) {
    for (side in 1:2) {
      index[[side]] <- index[[side]] %||% seq_len(dim(x@x)[[side]])
    }
    touched <- Map(function(at, size) {
      length(unique((at - 1) %/% size))
    }, index, x@chunk)
    x@reads$chunks <- x@reads$chunks + prod(unlist(touched))
    x@x[index[[1]], index[[2]], drop = FALSE]
  })
  reads <- new.env(parent = emptyenv())
  reads$chunks <- 0
  list(
    seed = methods::new("CountedSeed", x = x, chunk = chunk, reads = reads),
    reads = reads
  )
}
