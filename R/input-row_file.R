# Rows in a temporary file, prepared for one metric, for data larger than
# memory. `file` belongs to the core. It has no name and disappears with the
# process.

new_row_file <- function(x, options, max_memory, call = caller_env()) {
  shape <- tile_shape(dim(x), chunks_of(x), tile_bytes(max_memory))
  folder <- temporary_folder(call)
  file <- cpp_row_file(
    folder, nrow(x), ncol(x), shape[[2]], new_request(NULL, options),
    options$metric$levels
  )
  if (is.list(file)) {
    raise_failure(file, call)
  }
  structure(
    list(
      file = file, size = dim(x), columns = colnames(x), shape = shape
    ),
    class = "row_file"
  )
}

is_row_file <- function(x) {
  inherits(x, "row_file")
}

# Reads, checks and prepares every value once. Returns the value of cpp_scan().
fill_row_file <- function(file, x, options, arg, call = caller_env()) {
  for_tiles(
    x, file$shape, options, arg, call,
    function(tile, rows, strip, columns) {
      in_core(cpp_row_file_add(file$file, strip, rows[[1]], tile), call)
    }
  )
  in_core(cpp_row_file_finish(file$file), call)
}

close_row_file <- function(file) {
  cpp_row_file_close(file$file)
}

# A GPU prepares rows from this many bytes of them on as fast from their file.
least_in_place <- 2^30

# Returns whether searches read points from the user's own file, of vectors or
# of genotypes. No temporary file is then needed: raw rows need no form of their
# own, unless the metric's form of each row is kept or missing values are
# filled.
is_read_in_place <- function(x, options) {
  inherits(x, c("fsknn_bin_file", "fsknn_plink")) &&
    x$type %in% c(bin_point_types, "bed") &&
    !x$transposed && is.null(x$kept) &&
    identical(options$metric$undefined_rows, "none") &&
    identical(options$na %||% "error", "error") &&
    !isTRUE(options$in_memory) && !isTRUE(options$keep_file)
}

# `size` becomes that of a range, and `whole` stays that of the file.
rows_in_place <- function(x) {
  structure(
    list(
      file = enc2native(path.expand(x$file)), size = x$size, whole = x$size,
      type = x$type, allele = x$allele
    ),
    class = c("bin_rows", "row_file")
  )
}

# The rows must be consecutive.
#' @export
`[.row_file` <- function(x, i, j, ..., drop = FALSE) {
  x$first <- (x$first %||% 1) + i[[1]] - 1
  x$size[[1]] <- length(i)
  x
}

#' @export
dim.row_file <- function(x) {
  x$size
}

#' @export
dimnames.row_file <- function(x) {
  list(NULL, x$columns)
}

#' @export
length.row_file <- function(x) {
  prod(x$size)
}

# options(fsknn.temporary_folder = ) is the folder for large files. The default
# is R's temporary folder.
temporary_folder <- function(call = caller_env()) {
  folder <- getOption("fsknn.temporary_folder", tempdir())
  if (!rlang::is_string(folder) || !dir.exists(folder)) {
    given <- describe_value(folder)
    abort_argument(
      "{.arg options(fsknn.temporary_folder = )} must be a folder that is there,
       not {given}.",
      call
    )
  }
  path.expand(folder)
}

# Evaluates `expr` when the frame ends, normally or by an error.
defer <- function(expr, frame) {
  run <- as.call(list(function() expr))
  do.call(on.exit, list(run, TRUE), envir = frame)
}
