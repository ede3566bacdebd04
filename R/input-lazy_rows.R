# Matrices that are read by rows, and only when rows are requested. Points are
# their rows or columns, and features may be left out.
#   size    rows and columns of the stored matrix
#   names   its dimension names, or NULL
#   fetch   function(rows, columns) that reads a plain matrix; both are whole
#           numbers, and NULL is all columns
#   transposed  TRUE if its columns are the points
#   kept    the numbers of the features that count; NULL: all

new_lazy_rows <- function(class, size, names, fetch, ...) {
  structure(
    list(
      size = as.integer(size), names = names, fetch = fetch, transposed = FALSE,
      kept = NULL, ...
    ),
    class = c(class, "lazy_rows")
  )
}

#' @export
as_points.lazy_rows <- function(x, arg = "x", call = caller_env()) {
  list(values = x, names = rownames(x))
}

#' @export
dim.lazy_rows <- function(x) {
  size <- if (x$transposed) rev(x$size) else x$size
  c(size[[1]], length(x$kept %||% seq_len(size[[2]])))
}

#' @export
length.lazy_rows <- function(x) {
  prod(dim(x))
}

#' @export
dimnames.lazy_rows <- function(x) {
  names <- x$names
  if (is.null(names)) {
    return(NULL)
  }
  if (x$transposed) {
    names <- rev(names)
  }
  if (!is.null(x$kept) && !is.null(names[[2]])) {
    names[[2]] <- names[[2]][x$kept]
  }
  names
}

# Exchanges points and features. It must precede the selection of features.
#' @method t lazy_rows
#' @export
t.lazy_rows <- function(x) {
  x$transposed <- !x$transposed
  x
}

# x[, j] reads nothing; x[i, ] and x[i, j] are plain matrices.
#' @export
`[.lazy_rows` <- function(x, i, j, ..., drop = FALSE) {
  call <- current_env()
  features <- x$kept
  if (!missing(j)) {
    j <- places_asked(j, ncol(x), "column", call)
    features <- (features %||% seq_len(ncol(x)))[j]
  }
  if (missing(i)) {
    x$kept <- features
    return(x)
  }
  i <- places_asked(i, nrow(x), "row", call)
  if (x$transposed) {
    t(x$fetch(features %||% seq_len(ncol(x)), i))
  } else {
    x$fetch(i, features)
  }
}

# Converts any subscript of R to whole numbers from 1: positive or negative
# numbers, or TRUE and FALSE. Names are not accepted.
places_asked <- function(asked, size, what, call) {
  places <- tryCatch(
    if (!is.character(asked)) seq_len(size)[asked],
    error = function(err) NULL
  )
  if (is.null(places) || anyNA(places)) {
    abort_argument(
      "What is asked for must be numbers of {what}s, from 1 to
       {format_count(size)}.",
      call
    )
  }
  places
}

#' @export
as.matrix.lazy_rows <- function(x, ...) {
  x[seq_len(nrow(x)), , drop = FALSE]
}

# DelayedArray requires these methods of a seed.
#' @export
as.array.lazy_rows <- function(x, ...) {
  as.matrix(x)
}
