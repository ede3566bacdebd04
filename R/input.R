# What users bring, as the core takes it: as_points() gives
#   values  a double, integer or logical matrix, points in rows, handed on as
#           it is, with no copy; or metafeatures
#   names   the row names, or NULL
# A new kind of input is one method.
as_points <- function(x, arg = "x", call = caller_env()) {
  UseMethod("as_points")
}

#' @export
as_points.matrix <- function(x, arg = "x", call = caller_env()) {
  if (!is_number_like(x)) {
    abort_input(x, arg, call)
  }
  list(values = x, names = rownames(x))
}

#' @export
as_points.data.frame <- function(x, arg = "x", call = caller_env()) {
  good <- vapply(x, is_number_like, NA) & lengths(lapply(x, dim)) == 0
  if (!all(good)) {
    types <- vapply(x[!good], describe_type, "")
    bad <- paste0("`", names(types), "` is ", types)
    # A numeric matrix as a column is numeric, but not one feature.
    where <- paste(first_few(bad))
    abort_argument(
      c(
        "Every column of {.arg {arg}} must be a numeric vector.",
        x = "Column {where}.",
        i = "Leave out such columns, for example with
             {.code {arg}[vapply({arg}, is.numeric, NA)]}."
      ),
      call
    )
  }
  # Automatic row names (1, 2, ...) are no names.
  names <- if (.row_names_info(x) > 0) row.names(x)
  values <- if (length(x) == 0) numeric() else unlist(x, use.names = FALSE)
  # Not matrix(), which would copy them.
  dim(values) <- c(nrow(x), length(x))
  dimnames(values) <- list(NULL, names(x))
  list(values = values, names = names)
}

# Bioconductor's containers: the expression values, or the first assay.
#' @export
as_points.ExpressionSet <- function(x, arg = "x", call = caller_env()) {
  as_points(expression_of(x, arg, call), arg, call)
}

#' @export
as_points.SummarizedExperiment <- function(x, arg = "x", call = caller_env()) {
  as_points(expression_of(x, arg, call), arg, call)
}

#' @export
as_points.default <- function(x, arg = "x", call = caller_env()) {
  # A matrix with a class of its own (table, AsIs) is still a matrix.
  if (is.matrix(x) && !isS4(x) && is_number_like(x)) {
    return(as_points.matrix(unclass(x), arg = arg, call = call))
  }
  abort_input(x, arg, call)
}

# integer64 is typed double, but its bits are no double's.
is_number_like <- function(x) {
  (is.numeric(x) || is.logical(x)) && !inherits(x, "integer64")
}

abort_input <- function(x, arg, call) {
  given <- describe_type(x)
  hint <- if (isS4(x) && length(dim(x)) == 2) {
    c(i = "Use {.code as.matrix({arg})} if that fits in memory.")
  } else if (is.numeric(x) && is.null(dim(x)) && !is.object(x)) {
    c(i = "For points with one feature use {.code as.matrix({arg})}.")
  }
  abort_argument(
    c(
      "{.arg {arg}} must be a numeric matrix or a data frame of numeric columns,
       not {given}.",
      hint
    ),
    call
  )
}
