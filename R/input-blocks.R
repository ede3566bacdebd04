# Matrices that are read by blocks: DelayedMatrix and its subclasses
# (HDF5Matrix, TENxMatrix), bigmemory's big.matrix, and files of vectors
# (R/format-bin_files.R) or genotypes (R/format-read_plink.R). as_points() reads
# none of their values: `values` is the object itself (see R/input-lazy_rows.R)
# until bring_points() reads it.

#' @export
as_points.DelayedMatrix <- function(x, arg = "x", call = caller_env()) {
  need_package("DelayedArray", arg, call)
  check_intact(x, arg, call)
  type <- DelayedArray::type(x)
  if (!type %in% c("double", "integer", "logical")) {
    abort_argument(
      "{.arg {arg}} must hold numbers, not values of type {type}.", call
    )
  }
  list(values = x, names = rownames(x))
}

#' @export
as_points.big.matrix <- function(x, arg = "x", call = caller_env()) {
  check_intact(x, arg, call)
  as_points(big_rows(x), arg, call)
}

# Prepared rows are dense, so sparse matrices of package Matrix are expanded, in
# memory or in a file.
#' @export
as_points.Matrix <- function(x, arg = "x", call = caller_env()) {
  need_package("Matrix", arg, call)
  check_intact(x, arg, call)
  list(values = x, names = rownames(x))
}

is_read_by_blocks <- function(values) {
  inherits(values, c("DelayedMatrix", "big.matrix", "lazy_rows", "Matrix"))
}

# Returns the size of values as doubles in memory. `share` is the share of the
# features that count.
dense_bytes <- function(values, share = 1) {
  8 * prod(as.double(dim(values))) * share
}

# Plans where the values of points and queries are stored. A part goes to a file
# if its dense form does not fit in memory, or stays in its own (`in_place`).
# Also returns the bytes of the files as doubles, and the memory left for blocks
# of them. For `share`, see dense_bytes().
storage_of <- function(x, query, options, share = 1) {
  storage <- list(
    in_file = c(FALSE, FALSE), in_place = FALSE, bytes_file = 0, max_memory = 0
  )
  values <- list(x, query)
  lazy <- vapply(values, is_read_by_blocks, NA)
  if (!any(lazy)) {
    return(storage)
  }
  left <- max_memory_of(options)
  for (at in which(lazy)) {
    bytes <- dense_bytes(values[[at]], share)
    in_place <- is_read_in_place(values[[at]], options)
    large <- bytes >= least_in_place && identical(options$backend$name, "cuda")
    if (bytes <= left && !(in_place && large)) {
      left <- left - bytes
    } else {
      storage$in_file[[at]] <- TRUE
      storage$in_place <- storage$in_place || in_place
      storage$bytes_file <- storage$bytes_file + bytes
    }
  }
  storage$max_memory <- max(left, 1)
  storage
}

# Makes points and queries ready for a search: matrices in memory, or rows in
# temporary files. The files are deleted when the frame `call` ends, except that
# of an index (`options$keep_file`).
bring_all <- function(points, queries, options, call = caller_env()) {
  storage <- storage_of(points$values, queries$values, options)
  points <- bring_points(
    points, storage$in_file[[1]], storage$max_memory, options, "x", call
  )
  if (!is.null(queries)) {
    queries <- bring_points(
      queries, storage$in_file[[2]], storage$max_memory, options, "query", call
    )
  }
  c(list(points = points, queries = queries), storage)
}

bring_points <- function(points, in_file, max_memory, options, arg, call) {
  if (!is_read_by_blocks(points$values)) {
    return(points)
  }
  points$blocks <- points$values
  if (in_file && is_read_in_place(points$blocks, options)) {
    points$values <- rows_in_place(points$blocks)
    return(points)
  }
  if (!in_file) {
    points$values <- read_matrix(points$blocks, max_memory, options, arg, call)
    return(points)
  }
  if (isTRUE(options$in_memory)) {
    abort_too_large(points$values, options, arg, call)
  }
  file <- new_row_file(points$blocks, options, max_memory, call)
  if (!isTRUE(options$keep_file)) {
    defer(close_row_file(file), call)
  }
  points$scan <- fill_row_file(file, points$blocks, options, arg, call)
  points$values <- file
  points
}

# Returns a plain matrix for code that needs all values in memory, or raises an
# error.
in_memory <- function(points, arg = "x", call = caller_env()) {
  options <- list(in_memory = TRUE)
  storage <- storage_of(points$values, NULL, options)
  bring_points(
    points, storage$in_file[[1]], storage$max_memory, options, arg, call
  )
}

abort_too_large <- function(values, options, arg, call) {
  needed <- format_bytes(dense_bytes(values))
  limit <- format_bytes(max_memory_of(options))
  abort_argument(
    c(
      "{.arg {arg}} must fit in memory as a matrix.",
      x = "It takes {needed}, and the limit is {limit}.",
      i = "See {.code options(fsknn.max_memory = )}."
    ),
    call
  )
}

# Returns some rows as the user gave them.
rows_of <- function(points, rows) {
  if (is.null(points$blocks)) {
    return(points$values[rows, , drop = FALSE])
  }
  as_plain(points$blocks[rows, , drop = FALSE])
}

# Returns single values, by rows and columns, as the user gave them.
cells_of <- function(points, at) {
  x <- points$blocks
  if (is.null(x)) {
    return(points$values[at])
  }
  vapply(seq_len(nrow(at)), function(cell) {
    value <- as_plain(x[at[cell, 1], at[cell, 2], drop = FALSE])[[1]]
    as.double(value)
  }, 0)
}

# --- tiles -------------------------------------------------------------------

# Returns c(rows, columns) of the tiles to read. A tile has whole rows if a row
# of the object's own chunks fits in `most` bytes: each chunk is then read once.
# Otherwise it has as many adjacent chunks as fit. Chunks of whole columns, as
# in a TENxMatrix, thus give tiles of whole columns.
tile_shape <- function(size, chunk = NULL, most) {
  size <- as.double(size)
  unit <- pmin(as.double(chunk %||% c(1, 1)), size)
  if (is.null(chunk) || 8 * unit[[1]] * size[[2]] <= most) {
    stripe <- 8 * unit[[1]] * size[[2]]
    rows <- max(1, floor(most / stripe)) * unit[[1]]
    return(c(min(rows, size[[1]]), size[[2]]))
  }
  columns <- max(1, floor(most / (8 * prod(unit)))) * unit[[2]]
  c(unit[[1]], min(columns, size[[2]]))
}

chunks_of <- function(x) {
  if (inherits(x, "DelayedMatrix")) {
    DelayedArray::chunkdim(x) %||% chunks_of_seed(x)
  } else if (inherits(x, "CsparseMatrix")) {
    # Columns are stored contiguously, but a row must be searched for in all of
    # them.
    c(nrow(x), 1)
  } else if (is_plink(x) && x$transposed) {
    # A SNP is stored contiguously, and here it is a column.
    c(nrow(x), 1)
  }
}

# A subset of a chunked matrix has no chunks of its own and is read from those
# of the whole. Returns NULL if the data come from several matrices.
chunks_of_seed <- function(x) {
  if (DelayedArray::nseed(x) != 1) {
    return(NULL)
  }
  seed <- DelayedArray::seed(x)
  chunk <- DelayedArray::chunkdim(seed) %||% chunks_of(seed)
  # `sides` maps dimensions to those of the seed. NULL means that they are the
  # same.
  sides <- attr(DelayedArray::netSubsetAndAperm(x), "dimmap")
  if (is.null(chunk) || is.null(sides)) {
    return(chunk)
  }
  if (!anyNA(sides)) chunk[sides]
}

# R copies a tile several times, so it takes only a part of the memory.
tile_bytes <- function(max_memory) {
  min(max(max_memory / 16, 2^16), 2^26)
}

# Calls use(tile, rows, strip, columns) for every tile, strip by strip of
# columns, with rows ascending.
for_tiles <- function(x, shape, options, arg, call, use) {
  size <- dim(x)
  first_rows <- seq(1, size[[1]], by = shape[[1]])
  first_columns <- seq(1, size[[2]], by = shape[[2]])
  bar <- if (isTRUE(options$progress)) {
    cli::cli_progress_bar(
      "Reading", total = length(first_rows) * length(first_columns)
    )
  }
  for (strip in seq_along(first_columns)) {
    columns <- range_from(first_columns[[strip]], shape[[2]], size[[2]])
    for (first in first_rows) {
      rows <- range_from(first, shape[[1]], size[[1]])
      use(read_tile(x, rows, columns, arg, call), rows, strip, columns)
      if (!is.null(bar)) cli::cli_progress_update(id = bar)
    }
  }
}

range_from <- function(first, count, end) {
  seq.int(first, min(first + count - 1, end))
}

read_tile <- function(x, rows, columns, arg, call) {
  tile <- if (length(columns) == ncol(x)) {
    x[rows, , drop = FALSE]
  } else {
    x[rows, columns, drop = FALSE]
  }
  tile <- as_plain(tile)
  if (!is.matrix(tile) || !is_number_like(tile)) {
    abort_input(tile, arg, call)
  }
  tile
}

as_plain <- function(x) {
  if (is.matrix(x)) x else methods::as(x, "matrix")
}

read_matrix <- function(x, max_memory, options, arg, call) {
  shape <- tile_shape(dim(x), chunks_of(x), tile_bytes(max_memory))
  if (all(shape >= dim(x))) {
    values <- read_tile(x, seq_len(nrow(x)), seq_len(ncol(x)), arg, call)
    dimnames(values) <- dimnames(x)
    return(values)
  }
  values <- NULL
  # A local environment would make R copy the matrix for each tile.
  # nolint start: undesirable_operator_linter
  for_tiles(x, shape, options, arg, call, function(tile, rows, strip, columns) {
    if (is.null(values)) {
      values <<- matrix(tile[NA_integer_], nrow(x), ncol(x))
    }
    values[rows, columns] <<- tile
  })
  # nolint end
  dimnames(values) <- dimnames(x)
  values
}
