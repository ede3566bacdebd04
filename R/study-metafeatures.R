#' Metafeatures: pairs of rows combined by an operator
#'
#' Represents the rows of a matrix, followed by each pair of rows combined by
#' each operator. Arefin et al. (2012) call these metafeatures. A metafeature
#' may be more correlated with an outcome than either of its rows. The object
#' stores only the matrix, and computes a metafeature when it is read. So 876
#' rows represent 384,126 metafeatures with `"-"`, or 1,533,876 with all four
#' operators, in the memory of 876 rows.
#'
#' Rows i and j (i < j) give one metafeature for each operator, `x[i, ]` op
#' `x[j, ]`, for instance `"ARF1 - SLC40A1"`. The rows themselves come first.
#' The pairs (i, j) follow, one operator after another in the order of `ops`,
#' with i changing slowest. Rows added by [add_phenotype()] come last and are in
#' no pair. Each value is one correctly rounded operation on R's doubles.
#'
#' [knn_graph()], [knn_search()], [knn_query()], [nearest_to()] and [knn_plan()]
#' accept the object instead of a matrix. They compute its rows block by block,
#' a GPU in its own memory. On the CPU, a search stores the metafeatures as
#' 16-bit integers (a quarter of the matrix's bytes), which its filter needs. It
#' computes a row's doubles again for each exact distance. The matrix of doubles
#' is never stored.
#'
#' @section Metafeatures that are left out:
#' Every graph and search leaves out metafeatures with
#' * a value that is not finite: a division by zero, or a product beyond the
#'   range of a double (`"not finite"`);
#' * no variation: all values are equal (`"no variation"`);
#' * no residual under `adjust`: the covariates explain all variation
#'   (`"explained"`).
#'
#' They are not neighbours of any point. Their rows in the result of
#' [knn_search()] are `NA`, and they are not among the vertices of
#' [knn_graph()]. A message gives their number. The attribute `left_out` of the
#' result is a data frame with the columns `point` (row number), `name` and
#' `reason` (the words in quotes above). It does not exist if none is left out.
#' [knn_query()] also has the attribute `query_left_out` for its queries.
#'
#' @param x A numeric, integer or logical matrix, a data frame of numeric
#'   columns, an `ExpressionSet` or a `SummarizedExperiment` (the assay that
#'   [knn_search()] reads by default). It has at least two rows (points), and
#'   features (samples) in columns. All values must be finite. Without row
#'   names, the metafeatures are named by row numbers (`"1 - 2"`).
#' @param ops Some of `"-"`, `"+"`, `"*"`, `"/"`, in any order. All by default.
#'
#' @returns An object of class `metafeatures`. Its dimensions and dimension
#'   names are those of the matrix that it represents. Names are computed when
#'   they are needed.
#'
#'   `x[i, j]` selects rows and columns by number, name or condition. It returns
#'   metafeatures, or a plain vector if one row or one column remains (unless
#'   `drop = FALSE`). `x[cbind(i, j)]` returns single values, and `as.matrix()`
#'   the whole matrix. The object can be the seed of a
#'   `DelayedArray::DelayedArray()`. It has at most 2^31 - 1 rows.
#' @section Errors:
#' An invalid `x` (see [knn_search()]), fewer than two rows, too many rows, and
#' unknown or repeated operators are errors of class `fsknn_argument_error`.
#' @inherit knn_search references
#' @seealso [add_phenotype()] to add an outcome as a row, [nearest_to()] for the
#'   nearest neighbours of one point.
#' @export
#' @examples
#' x <- matrix(rnorm(6 * 10), nrow = 6)
#' rownames(x) <- c("ARF1", "BCAR1", "CD24", "ESR1", "SLC40A1", "TSPYL5")
#' m <- metafeatures(x, ops = c("-", "/"))
#' m
#' m["ARF1 - SLC40A1", ]
#' edges <- knn_graph(m, k = 1)
#' head(edges)
#'
#' # The outcome as a point, and its nearest neighbours
#' m <- add_phenotype(m, rexp(10), "years to relapse")
#' nearest_to(m, "years to relapse", k = 3)
metafeatures <- function(x, ops = c("-", "+", "*", "/")) {
  check_supplied(x)
  ops <- check_ops(ops)
  if (is_metafeatures(x)) {
    abort_argument(
      "{.arg x} must be what metafeatures are made from, not metafeatures.",
      current_env()
    )
  }
  points <- in_memory(as_points(x, "x", call = current_env()))
  check_num_points(nrow(points$values), 2L, "x")
  if (ncol(points$values) < 1) {
    abort_argument(
      "{.arg x} must have at least 1 column (features), not 0.", current_env()
    )
  }
  scan <- cpp_scan(points$values, 1L)
  check_finite(points, scan, "x")
  check_num_metafeatures(nrow(points$values), length(ops))
  values <- points$values
  # The row names of a data frame are not part of its values.
  dimnames(values) <- list(points$names, colnames(values))
  new_metafeatures(values, ops)
}

# `values` has the rows that are paired, followed by num_extra that are not.
# `kept` are the numbers of the metafeatures in use, or NULL for all.
new_metafeatures <- function(values, ops, num_extra = 0L, kept = NULL) {
  structure(
    list(values = values, ops = ops, num_extra = num_extra, kept = kept),
    class = "metafeatures"
  )
}

is_metafeatures <- function(x) {
  inherits(x, "metafeatures")
}

# Returns the bytes from which a GPU computes the points, or 0 for stored
# points.
bytes_made_from <- function(x) {
  if (is_latent_rows(x)) {
    return(4 * x$factors * x$d)
  }
  if (!is_metafeatures(x)) {
    return(0)
  }
  padded <- 8 * ceiling(ncol(x$values) / 8)
  8 * nrow(x$values) * padded + 4 * length(x$kept)
}

metafeature_operators <- c("-", "+", "*", "/")

check_ops <- function(ops, call = caller_env()) {
  good <- is.character(ops) && length(ops) > 0 && !anyNA(ops) &&
    all(ops %in% metafeature_operators) && anyDuplicated(ops) == 0
  if (good) {
    return(as.vector(ops))
  }
  check_text(ops, "`ops`", "position", "ops", call)
  known <- paste0("\"", metafeature_operators, "\"", collapse = ", ")
  given <- if (is.character(ops) && length(ops) > 0) {
    paste0("\"", ops, "\"", collapse = ", ")
  } else {
    describe_value(ops)
  }
  abort_argument(
    "{.arg ops} must be some of {known}, each once, not {given}.", call
  )
}

count_metafeatures <- function(num_rows, num_ops, num_extra = 0) {
  num_rows <- as.double(num_rows)
  num_rows + num_ops * num_rows * (num_rows - 1) / 2 + num_extra
}

check_num_metafeatures <- function(num_rows, num_ops, num_extra = 0,
                                   call = caller_env()) {
  count <- count_metafeatures(num_rows, num_ops, num_extra)
  if (count <= .Machine$integer.max) {
    return(invisible())
  }
  operators <- tally(num_ops, "operator")
  abort_argument(
    c(
      "{.arg x} has too many rows for metafeatures.",
      x = "{format_count(num_rows)} rows under {operators} give
           {format_count(count)}, and a point's number is at most
           {format_count(.Machine$integer.max)}.",
      i = "Keep fewer rows (see {.fn mdl_filter}), or fewer operators."
    ),
    call
  )
}

#' @export
dim.metafeatures <- function(x) {
  num_rows <- if (is.null(x$kept)) {
    count_metafeatures(
      nrow(x$values) - x$num_extra, length(x$ops), x$num_extra
    )
  } else {
    length(x$kept)
  }
  c(as.integer(num_rows), ncol(x$values))
}

#' @export
length.metafeatures <- function(x) {
  prod(dim(x))
}

#' @export
dimnames.metafeatures <- function(x) {
  list(metafeature_names(x), colnames(x$values))
}

# `rows` are positive whole numbers within the rows of x.
keep_metafeatures <- function(x, rows) {
  x$kept <- if (is.null(x$kept)) as.integer(rows) else x$kept[rows]
  x
}

#' @export
as.matrix.metafeatures <- function(x, ...) {
  values <- cpp_metafeature_rows(x)
  dimnames(values) <- dimnames(x)
  values
}

#' @export
as.array.metafeatures <- function(x, ...) {
  as.matrix(x)
}

#' @method as.data.frame metafeatures
#' @export
as.data.frame.metafeatures <- function(x, ...) {
  as.data.frame(as.matrix(x), ...)
}

#' @export
`[.metafeatures` <- function(x, i, j, ..., drop = TRUE) {
  num_subscripts <- nargs() - 1L - !missing(drop)
  if (num_subscripts == 1L && !missing(i)) {
    return(metafeature_cells(x, i))
  }
  if (!missing(i)) {
    x <- keep_metafeatures(x, metafeature_rows(x, i))
  }
  if (!missing(j)) {
    x$values <- x$values[, j, drop = FALSE]
  }
  if (drop && any(dim(x) == 1L)) as.matrix(x)[, , drop = TRUE] else x
}

# Returns single values: x[cbind(rows, columns)].
metafeature_cells <- function(x, at, call = caller_env()) {
  if (!is.matrix(at) || !is.numeric(at) || ncol(at) != 2) {
    abort_argument(
      c(
        "Metafeatures must be taken by rows and columns.",
        i = "Use {.code x[rows, ]}, or {.code x[cbind(rows, columns)]}."
      ),
      call
    )
  }
  rows <- unique(at[, 1])
  small <- as.matrix(x[rows, , drop = FALSE])
  unname(small[cbind(match(at[, 1], rows), at[, 2])])
}

# Converts a subscript to row numbers of x.
metafeature_rows <- function(x, i, call = caller_env()) {
  num_rows <- nrow(x)
  if (is.character(i)) {
    return(find_metafeatures(x, i, call = call))
  }
  if (is.factor(i) || !(is.numeric(i) || is.logical(i)) ||
        (is.logical(i) && length(i) > num_rows)) {
    given <- describe_type(i)
    abort_argument(
      "A subscript of rows must be numbers, names, or TRUE and FALSE for each
       of the {format_count(num_rows)} rows, not {given}.",
      call
    )
  }
  rows <- seq_len(num_rows)[i]
  if (anyNA(rows)) {
    abort_argument(
      "A subscript of rows must be within the {format_count(num_rows)} rows,
       and not missing.",
      call
    )
  }
  rows
}

#' @method format metafeatures
#' @export
format.metafeatures <- function(x, ...) {
  size <- dim(x)
  num_rows <- nrow(x$values) - x$num_extra
  operators <- paste0("\"", x$ops, "\"", collapse = ", ")
  others <- if (x$num_extra > 0) {
    paste0(", and ", tally(x$num_extra, "row"), " in no pair")
  }
  shown <- unique(c(utils::head(seq_len(size[[1]]), 3), size[[1]]))
  shown <- paste0("\"", metafeature_names(x, shown[shown > 0]), "\"")
  if (size[[1]] > 4) {
    shown <- append(shown, "...", after = 3)
  }
  c(
    paste0(
      "Metafeatures: ", tally(size[[1]], "row"), " (points) x ",
      tally(size[[2]], "column"), " (features)"
    ),
    paste0(
      if (!is.null(x$kept)) "Some of those of " else "Made of ",
      tally(num_rows, "row"), " and their pairs under ", operators, others
    ),
    if (size[[1]] > 0) paste("Names:", paste(shown, collapse = ", ")),
    paste0(
      "Held: ", format_bytes(8 * length(x$values)), "; as a matrix: ",
      format_bytes(8 * prod(size))
    )
  )
}

#' @export
print.metafeatures <- function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}

#' @export
as_points.metafeatures <- function(x, arg = "x", call = caller_env()) {
  # Names are made when they are needed: see point_names().
  list(values = x, names = NULL)
}
