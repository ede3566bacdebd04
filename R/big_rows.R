# A big.matrix (package bigmemory) as points: its rows, or its columns, and of
# their features those that count. Nothing of it is read until rows are asked
# for.
#   x       the big.matrix
#   turned  are its columns the points?
#   kept    the numbers of the features that count; NULL: all

big_rows <- function(x) {
  structure(list(x = x, turned = FALSE, kept = NULL), class = "big_rows")
}

#' @export
as_points.big_rows <- function(x, arg = "x", call = caller_env()) {
  need_package("bigmemory", arg, call)
  list(values = x, names = rownames(x))
}

#' @export
dim.big_rows <- function(x) {
  size <- dim(x$x)
  if (x$turned) {
    size <- rev(size)
  }
  c(size[[1]], length(x$kept %||% seq_len(size[[2]])))
}

#' @export
dimnames.big_rows <- function(x) {
  names <- dimnames(x$x)
  if (is.null(names)) {
    return(NULL)
  }
  if (x$turned) {
    names <- rev(names)
  }
  if (!is.null(x$kept) && !is.null(names[[2]])) {
    names[[2]] <- names[[2]][x$kept]
  }
  names
}

# Points are columns, and the other way round; before features are left out.
#' @method t big_rows
#' @export
t.big_rows <- function(x) {
  x$turned <- !x$turned
  x
}

# x[, j] reads nothing; x[i, ] and x[i, j] are plain matrices. Whole numbers.
#' @export
`[.big_rows` <- function(x, i, j, ..., drop = FALSE) {
  features <- x$kept %||% seq_len(ncol(x))
  if (!missing(j)) {
    features <- features[j]
  }
  if (missing(i)) {
    x$kept <- features
    return(x)
  }
  if (x$turned) {
    t(x$x[features, i, drop = FALSE])
  } else {
    x$x[i, features, drop = FALSE]
  }
}
