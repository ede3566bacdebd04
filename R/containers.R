# Bioconductor's containers of expression values: an ExpressionSet (Biobase),
# a SummarizedExperiment and its children, limma's EList and EListRaw. None of
# the packages is needed until a user brings such an object. What is no matrix
# of points is told of by R/input_hints.R.

is_container <- function(x) {
  inherits(x, c("ExpressionSet", "SummarizedExperiment", "EList", "EListRaw"))
}

# What a container holds and `input` (of check_input()) asks for:
#   values  a matrix of any kind
#   turn    are its columns the points?
#   cells   are the points cells (samples), the columns of `x`, though they are
#           rows of `values`?
take_matrix <- function(x, input, arg = "x", call = caller_env()) {
  UseMethod("take_matrix")
}

#' @export
take_matrix.default <- function(x, input, arg = "x", call = caller_env()) {
  check_is_data(x, arg, call)
  for (element in c("assay", "dimred")) {
    if (!is.null(input[[element]])) {
      given <- describe_type(x)
      abort_argument(
        c(
          "{.arg {element}} says what to take out of a container, and
           {.arg {arg}} is {given}.",
          i = "Leave {.arg {element}} out."
        ),
        call
      )
    }
  }
  list(values = x, turn = input$points == "columns", cells = FALSE)
}

#' @export
take_matrix.ExpressionSet <- function(x, input, arg = "x",
                                      call = caller_env()) {
  need_package("Biobase", arg, call)
  check_no_dimred(x, input, arg, call)
  names <- Biobase::assayDataElementNames(x)
  values <- if (is.null(input$assay)) {
    Biobase::exprs(x)
  } else {
    at <- find_element(input$assay, names, "assay", "assay", arg, call)
    Biobase::assayDataElement(x, names[[at]])
  }
  list(values = values, turn = input$points == "columns", cells = FALSE)
}

#' @export
take_matrix.SummarizedExperiment <- function(x, input, arg = "x",
                                             call = caller_env()) {
  need_package("SummarizedExperiment", arg, call)
  if (!is.null(input$dimred)) {
    return(take_reduced(x, input, arg, call))
  }
  names <- SummarizedExperiment::assayNames(x)
  num_assays <- length(SummarizedExperiment::assays(x))
  if (num_assays == 0) {
    abort_argument("{.arg {arg}} must hold an assay, and has none.", call)
  }
  at <- find_element(
    input$assay %||% 1L, names, "assay", "assay", arg, call,
    count = num_assays
  )
  # With the dimension names of the experiment, not always those of the assay.
  values <- SummarizedExperiment::assay(x, at)
  list(values = values, turn = input$points == "columns", cells = FALSE)
}

# Its elements are those of a list: E, the expression values, and others of
# their shape.
#' @export
take_matrix.EList <- function(x, input, arg = "x", call = caller_env()) {
  check_no_dimred(x, input, arg, call)
  parts <- lapply(stats::setNames(nm = names(x)), function(name) x[[name]])
  parts <- parts[vapply(parts, is.matrix, NA)]
  at <- find_element(
    input$assay %||% "E", names(parts), "assay", "matrix", arg, call,
    many = "matrices"
  )
  values <- parts[[at]]
  if (is.null(dimnames(values))) {
    dimnames(values) <- dimnames(parts$E)
  }
  list(values = values, turn = input$points == "columns", cells = FALSE)
}

#' @export
take_matrix.EListRaw <- take_matrix.EList

# A table of S4Vectors, as the data frame that it stands for.
#' @export
take_matrix.DataFrame <- function(x, input, arg = "x", call = caller_env()) {
  need_package("S4Vectors", arg, call)
  columns <- lapply(as.list(x), function(values) {
    if (methods::is(values, "Rle")) as.vector(values) else values
  })
  frame <- structure(
    columns, class = c("fsknn_frame", "data.frame"),
    row.names = rownames(x) %||% .set_row_names(nrow(x))
  )
  take_matrix.default(frame, input, arg, call)
}

# A reduced dimension has a row for each cell, so cells are the points.
take_reduced <- function(x, input, arg, call = caller_env()) {
  check_no_dimred(x, input, arg, call)
  need_package("SingleCellExperiment", arg, call)
  if (input$chosen && input$points == "rows") {
    abort_argument(
      c(
        "{.arg points} can't be \"rows\" with {.arg dimred}.",
        i = "A reduced dimension has values for the columns (cells) of
             {.arg {arg}} only."
      ),
      call
    )
  }
  names <- SingleCellExperiment::reducedDimNames(x)
  at <- find_element(
    input$dimred, names, "dimred", "reduced dimension", arg, call
  )
  values <- SingleCellExperiment::reducedDim(x, at)
  if (inherits(values, "LinearEmbeddingMatrix")) {
    values <- as.matrix(values)
  }
  list(values = values, turn = FALSE, cells = TRUE)
}

check_no_dimred <- function(x, input, arg, call = caller_env()) {
  if (is.null(input$dimred) || inherits(x, "SingleCellExperiment")) {
    return(invisible())
  }
  given <- describe_type(x)
  abort_argument(
    "{.arg dimred} needs a SingleCellExperiment, and {.arg {arg}} is {given}.",
    call
  )
}

# The number of the element that is named or numbered.
find_element <- function(value, names, option, what, arg, call = caller_env(),
                         count = length(names), many = paste0(what, "s")) {
  if (!is.character(value)) {
    if (value <= count) {
      return(as.integer(value))
    }
    abort_argument(
      "{.arg {option}} must be at most {count}, the number of {many} of
       {.arg {arg}}, not {value}.",
      call
    )
  }
  at <- match(value, names)
  if (!is.na(at)) {
    return(at)
  }
  nearest <- if (length(names) > 0) nearest_spelling(value, names)
  known <- first_few(paste0("\"", names, "\""), limit = 10L)
  abort_argument(
    c(
      "{.arg {arg}} has no {what} {.val {value}}.",
      x = if (length(names) > 0) "There are: {known}.",
      x = if (length(names) == 0) {
        "Its {many} have no names, or there are none."
      },
      i = if (!is.null(nearest)) "Did you mean {.val {nearest}}?"
    ),
    call
  )
}

# The matrix of a container, features of the container in rows; anything else
# as it is.
expression_of <- function(x, arg = "x", call = caller_env()) {
  take_matrix(x, check_input(), arg = arg, call = call)$values
}

# The table that describes the samples of a container, or NULL.
sample_table <- function(x) {
  if (inherits(x, "ExpressionSet")) {
    Biobase::pData(x)
  } else if (inherits(x, "SummarizedExperiment")) {
    SummarizedExperiment::colData(x)
  } else if (inherits(x, c("EList", "EListRaw"))) {
    x$targets
  }
}

# The table that describes the rows of a container, or NULL.
row_table <- function(x) {
  if (inherits(x, "ExpressionSet")) {
    Biobase::fData(x)
  } else if (inherits(x, "SummarizedExperiment")) {
    SummarizedExperiment::rowData(x)
  } else if (inherits(x, c("EList", "EListRaw"))) {
    x$genes
  }
}

# What a user names or gives: one string beside a container is the name of a
# column of its sample data; anything else is taken as the values.
sample_variable <- function(x, value, arg, call = caller_env()) {
  table <- sample_table(x)
  if (is.null(table) || !rlang::is_string(value)) {
    return(value)
  }
  without_names(table_column(table, value, arg, call = call))
}

# of: what the table is, in words.
table_column <- function(table, name, arg, of = "the sample data of {.arg x}",
                      call = caller_env()) {
  columns <- colnames(table)
  if (name %in% columns) {
    values <- table[[name]]
    return(if (inherits(values, "Rle")) S4Vectors::decode(values) else values)
  }
  nearest <- if (length(columns) > 0) nearest_spelling(name, columns)
  hint <- if (!is.null(nearest)) {
    c(i = "Did you mean {.val {nearest}}?")
  }
  known <- first_few(paste0("\"", columns, "\""), limit = 5L)
  abort_argument(
    c(
      paste0(
        "{.arg {arg}} must be the name of a column of ", of,
        ", not {.val {name}}."
      ),
      x = if (length(columns) > 0) "There are: {known}.",
      hint
    ),
    call
  )
}

need_package <- function(package, arg, call = caller_env()) {
  if (!requireNamespace(package, quietly = TRUE)) {
    abort_argument(
      c(
        "The package {.pkg {package}} is needed for this {.arg {arg}}, and is
         not installed.",
        i = "Install it with {.code BiocManager::install(\"{package}\")}."
      ),
      call
    )
  }
}
