# Puts imputed values back into the user's object.

#' @export
print.fsknn_imputed <- function(x, n = 6, ...) {
  means <- sum(x$donors == 0)
  total <- attr(x, "total", exact = TRUE) %||% nrow(x)
  cat(
    if (nrow(x) < total) {
      paste(
        format_count(nrow(x)), "of", tally(total, "value"), "filled in"
      )
    } else {
      paste0(
        tally(nrow(x), "value"), " filled in, in ",
        tally(length(unique(x$row)), "row")
      )
    },
    if (means > 0) {
      paste0("; ", format_count(means), " by the column's mean")
    },
    "\n", sep = ""
  )
  cat_searched(x)
  print(utils::head(as.data.frame(x), n), digits = 3, row.names = FALSE)
  more <- nrow(x) - n
  if (more > 0) {
    cat("and ", format_count(more), " more\n", sep = "")
  }
  invisible(x)
}

# data.frame() and cbind() call this method, too, and pass further arguments.
#' @method as.data.frame fsknn_imputed
#' @export
as.data.frame.fsknn_imputed <- function(x, row.names = NULL, optional = FALSE,
                                        ...) {
  check_unused(row.names, optional)
  attributes(x)[c("searched", "total")] <- NULL
  class(x) <- "data.frame"
  x
}

# Entries are ordered by column and row, as in the matrix. `names` are the
# dimnames of `x`: positions alone are wrong once `x` is sorted.
new_imputed <- function(filled, transposed, names = NULL) {
  entries <- filled$entries
  sides <- c("row", "column")
  names(entries)[1:2] <- if (transposed) rev(sides) else sides
  if (transposed) {
    order <- order(entries$column, entries$row, method = "radix")
    entries <- lapply(entries, `[`, order)
  }
  entries$row_name <- names[[1]][entries$row]
  entries$column_name <- names[[2]][entries$column]
  columns <- c(
    "row", "column", "row_name", "column_name", "value", "sd", "donors"
  )
  structure(
    entries[intersect(columns, names(entries))],
    class = c("fsknn_imputed", "data.frame"),
    row.names = .set_row_names(length(entries$row)),
    searched = filled$searched, total = length(entries$row)
  )
}

# A data frame has row names, such as "1", even if nobody gave them.
names_of_sides <- function(x) {
  names <- dimnames(if (is_array_list(x)) x[[main_matrix(x)]] else x)
  if (is.data.frame(x) && .row_names_info(x) < 0) {
    names[1] <- list(NULL)
  }
  names
}

# Joins the table of an assay to those of other assays in `before`.
add_imputed <- function(before, table, assay) {
  table$assay <- rep(as.character(assay), nrow(table))
  others <- if (inherits(before, "fsknn_imputed")) {
    before[!is.null(before$assay) & before$assay != assay, , drop = FALSE]
  }
  if (NROW(others) == 0) {
    return(table)
  }
  columns <- union(names(others), names(table))
  same <- function(part) {
    part <- as.data.frame(part)
    part[setdiff(columns, names(part))] <- NA
    part[columns]
  }
  joined <- rbind(same(others), same(table))
  structure(
    joined, class = class(table), total = nrow(joined),
    row.names = .set_row_names(nrow(joined))
  )
}

put_back <- function(x, filled, points, into, input, call = caller_env()) {
  table <- new_imputed(filled, points$transposed, names_of_sides(x))
  values <- filled$values
  if (points$transposed) {
    values <- t(values)
  }
  read <- take_matrix(x, input, call = call)$values
  if (inherits(x, "ExpressionSet")) {
    dimnames(values) <- dimnames(Biobase::exprs(x))
    return(put_in_set(x, as_before(values, read), table, into, input))
  }
  if (inherits(x, "SummarizedExperiment")) {
    at <- into %||% input$assay %||% default_assay(
      SummarizedExperiment::assayNames(x),
      length(SummarizedExperiment::assays(x))
    )
    SummarizedExperiment::assay(x, at, withDimnames = FALSE) <-
      as_before(values, read)
    names <- SummarizedExperiment::assayNames(x)
    if (is.numeric(at) && !is.null(names)) {
      at <- names[[at]]
    }
    S4Vectors::metadata(x)$imputed <-
      add_imputed(S4Vectors::metadata(x)$imputed, table, at)
    return(x)
  }
  if (is_array_list(x)) {
    main <- main_matrix(x)
    dimnames(values) <- dimnames(x[[main]])
    at <- into %||% input$assay %||% main
    if (is.numeric(at)) {
      # The number is that of a matrix, as in take_matrix().
      is_matrix <- vapply(names(x), function(name) is.matrix(x[[name]]), NA)
      at <- names(x)[is_matrix][[at]]
    }
    x[[at]] <- values
    x$imputed <- add_imputed(x$imputed, table, at)
    return(x)
  }
  put_in_table(x, values, table)
}

put_in_set <- function(x, values, table, into, input) {
  name <- into %||% input$assay %||% "exprs"
  if (is.numeric(name)) {
    name <- Biobase::assayDataElementNames(x)[[name]]
  }
  x <- Biobase::assayDataElementReplace(x, name, values, validate = FALSE)
  about <- Biobase::experimentData(x)
  notes <- Biobase::preproc(about)
  notes$imputed <- add_imputed(notes$imputed, table, name)
  Biobase::preproc(about) <- notes
  Biobase::experimentData(x) <- about
  x
}

put_in_table <- function(x, values, table) {
  if (is.data.frame(x) || inherits(x, "DataFrame")) {
    for (at in unique(table$column)) {
      x[[at]] <- values[, at]
    }
    if (is.data.frame(x)) {
      attr(x, "imputed") <- table
    } else {
      S4Vectors::metadata(x)$imputed <- table
    }
    return(x)
  }
  dimnames(values) <- dimnames(x)
  values <- as_before(values, x)
  attr(values, "imputed") <- table
  values
}

# Returns a matrix of the class of `read`, or a plain one if that is plain.
as_before <- function(values, read) {
  if (inherits(read, "DelayedMatrix")) {
    return(as_delayed(values, read))
  }
  if (inherits(read, "big.matrix")) {
    return(bigmemory::as.big.matrix(values))
  }
  if (!inherits(read, "Matrix")) {
    return(values)
  }
  # A symmetric matrix, for instance, may no longer be symmetric.
  values <- methods::as(values, "dgCMatrix")
  kinds <- c("CsparseMatrix", "RsparseMatrix", "TsparseMatrix")
  kind <- kinds[vapply(kinds, function(kind) inherits(read, kind), NA)]
  if (inherits(read, "denseMatrix")) {
    kind <- "unpackedMatrix"
  }
  if (length(kind) == 1) methods::as(values, kind) else values
}

# Data from a file go to a file, block by block, in chunks of the same shape.
# HDF5Array chooses the file (getHDF5DumpDir()) and its settings.
as_delayed <- function(values, read) {
  sparse <- DelayedArray::is_sparse(read)
  if (!is_in_file(read) || !requireNamespace("HDF5Array", quietly = TRUE)) {
    if (sparse) {
      values <- methods::as(values, "dgCMatrix")
    }
    return(DelayedArray::DelayedArray(values))
  }
  HDF5Array::writeHDF5Array(
    values, chunkdim = DelayedArray::chunkdim(read), as.sparse = sparse,
    with.dimnames = TRUE
  )
}

# Returns TRUE if any part is in a file, whatever delayed operations it has.
is_in_file <- function(x) {
  any(unlist(DelayedArray::seedApply(x, function(seed) {
    is.character(tryCatch(DelayedArray::path(seed), error = function(e) NULL))
  })))
}

check_into <- function(into, x, call = caller_env()) {
  if (is.null(into)) {
    return(invisible())
  }
  if (!rlang::is_string(into) || is.na(into) || !nzchar(into) ||
        !is_valid_text(into)) {
    given <- describe_value(into)
    abort_argument(
      "{.arg into} must be the name of an assay, not {given}.", call
    )
  }
  if (is_array_list(x) && into == "imputed") {
    given <- describe_type(x)
    abort_argument(
      "{.arg into} can't be \"imputed\" for {given}: this element takes the
       table of imputed values.",
      call
    )
  }
  if (!is_container(x)) {
    given <- describe_type(x)
    abort_argument(
      c(
        "{.arg into} says which assay of a container takes the values, and
         {.arg x} is {given}.",
        i = "Leave {.arg into} out."
      ),
      call
    )
  }
}
