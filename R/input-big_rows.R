# A big.matrix (package bigmemory) as points: see R/input-lazy_rows.R.

big_rows <- function(x) {
  new_lazy_rows("big_rows", dim(x), dimnames(x), function(rows, columns) {
    if (is.null(columns)) {
      x[rows, , drop = FALSE]
    } else {
      x[rows, columns, drop = FALSE]
    }
  })
}

#' @export
as_points.big_rows <- function(x, arg = "x", call = caller_env()) {
  need_package("bigmemory", arg, call)
  NextMethod()
}
