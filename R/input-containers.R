# Bioconductor's containers of expression values: an ExpressionSet (Biobase), a
# SummarizedExperiment and its subclasses, limma's EList and EListRaw, and
# edgeR's DGEList. Their packages are needed only if a user gives such an
# object. R/input-hints.R has the messages for other objects.

is_container <- function(x) {
  inherits(x, c("ExpressionSet", "SummarizedExperiment")) || is_array_list(x)
}

# Classes of limma and edgeR are lists of matrices of one shape, with tables.
is_array_list <- function(x) {
  inherits(x, c("EList", "EListRaw", "DGEList"))
}

main_matrix <- function(x) {
  if (inherits(x, "DGEList")) "counts" else "E"
}

# Extracts the element of a container that `input` (from check_input()) selects:
#   values      a matrix of any kind
#   turn        its columns are the points
#   cells       the points are cells (samples), the columns of `x`, though they
#               are rows of `values`
#   taken_from  c(assay = ) or c(dimred = ), the name of the element; NULL if
#               it has none worth printing
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
  at <- find_element(
    input$assay %||% "exprs", names, "assay", "assay", arg, call
  )
  taken_element(
    Biobase::assayDataElement(x, names[[at]]), input, names[[at]]
  )
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
  assay <- input$assay %||% default_assay(names, num_assays)
  if (is.null(assay)) {
    abort_which_assay(x, names, num_assays, arg, call)
  }
  at <- find_element(
    assay, names, "assay", "assay", arg, call, count = num_assays
  )
  # The dimension names are those of the experiment, which may differ from those
  # of the assay.
  taken_element(SummarizedExperiment::assay(x, at), input, names[at])
}

# Takes an element with its name, if it has one. Names that mean the whole
# container are dropped.
taken_element <- function(values, input, name) {
  named <- length(name) == 1 && !is.na(name) && nzchar(name) &&
    !name %in% c("exprs", "E")
  list(
    values = values, turn = input$points == "columns", cells = FALSE,
    taken_from = if (named) c(assay = name)
  )
}

# Returns the default assay: the log counts, or the only one. With NULL, the
# user has to choose.
default_assay <- function(names, num_assays) {
  if ("logcounts" %in% names) {
    "logcounts"
  } else if (num_assays == 1) {
    1L
  }
}

abort_which_assay <- function(x, names, num_assays, arg, call) {
  known <- if (is.null(names)) {
    paste0("numbers 1 to ", num_assays)
  } else {
    first_few(paste0("\"", names, "\""), limit = 10L)
  }
  # Counts are the last choice.
  best <- c(names[!vapply(names, is_counts_name, NA)], names)
  one <- if (is.null(names)) "1" else paste0("\"", best[[1]], "\"")
  # Not every verb has the option.
  code <- if (is.environment(call) && takes_option(call, "assay")) {
    paste0("assay = ", one)
  } else {
    paste0("SummarizedExperiment::assay(", arg, ", ", one, ")")
  }
  stable <- if (inherits(x, "DESeqDataSet")) variance_stable(x, arg)
  abort_argument(
    c(
      "{.arg {arg}} has {num_assays} assays, and none is called
       {.val logcounts}: say which one to take.",
      x = "There are: {known}.",
      i = if (is.null(stable)) "For example: {.code {code}}.",
      i = if (!is.null(stable)) {
        "Of counts use values of constant variance: {.code {stable}}."
      }
    ),
    call
  )
}

# The list has the expression values as E (or counts), and other elements of the
# same shape.
#' @export
take_matrix.EList <- function(x, input, arg = "x", call = caller_env()) {
  check_no_dimred(x, input, arg, call)
  parts <- lapply(stats::setNames(nm = names(x)), function(name) x[[name]])
  parts <- parts[vapply(parts, is.matrix, NA)]
  at <- find_element(
    input$assay %||% main_matrix(x), names(parts), "assay", "matrix", arg,
    call, many = "matrices"
  )
  values <- parts[[at]]
  if (is.null(dimnames(values))) {
    dimnames(values) <- dimnames(parts[[main_matrix(x)]])
  }
  taken_element(values, input, names(parts)[[at]])
}

#' @export
take_matrix.EListRaw <- take_matrix.EList

#' @export
take_matrix.DGEList <- take_matrix.EList

# Converts a table of S4Vectors to a data frame.
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

# snpStats has samples in rows. The values are copies of its second allele.
#' @export
take_matrix.SnpMatrix <- function(x, input, arg = "x", call = caller_env()) {
  need_package("snpStats", arg, call)
  take_matrix.default(methods::as(x, "numeric"), input, arg, call)
}

# VariantAnnotation has a row for each variant, and calls as text.
#' @export
take_matrix.VCF <- function(x, input, arg = "x", call = caller_env()) {
  need_package("SummarizedExperiment", arg, call)
  names <- SummarizedExperiment::assayNames(x)
  if (is.null(input$assay %||% input$dimred) && "GT" %in% names) {
    input$assay <- "GT"
  }
  taken <- take_matrix.SummarizedExperiment(x, input, arg, call)
  if (identical(taken$taken_from, c(assay = "GT"))) {
    taken$values <- copies_of_calls(taken$values)
  }
  taken
}

# Returns the number of alternative alleles in calls such as "0/1", "1|1" and
# "1". It is NA if an allele is not known (".").
copies_of_calls <- function(calls) {
  known <- unique(as.vector(calls))
  copies <- vapply(strsplit(known, "[/|]"), function(alleles) {
    if (all(grepl("^[0-9]+$", alleles))) sum(alleles != "0") else NA
  }, 0L)
  array(copies[match(calls, known)], dim(calls), dimnames(calls))
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
  list(
    values = values, turn = FALSE, cells = TRUE,
    taken_from = if (nzchar(names[[at]])) c(dimred = names[[at]])
  )
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

# Returns the number of an element that is given by name or number.
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

# Returns the matrix of a container, with its features in rows. Other objects
# are returned unchanged.
expression_of <- function(x, arg = "x", call = caller_env()) {
  take_matrix(x, check_input(), arg = arg, call = call)$values
}

# Returns the table that describes the samples of a container, or NULL.
sample_table <- function(x) {
  if (is_index(x)) {
    x$tables$samples
  } else if (inherits(x, "ExpressionSet")) {
    Biobase::pData(x)
  } else if (inherits(x, "SummarizedExperiment")) {
    SummarizedExperiment::colData(x)
  } else if (inherits(x, "DGEList")) {
    x$samples
  } else if (is_array_list(x)) {
    x$targets
  } else if (is_plink(x)) {
    x[[plink_table(x, "columns")]]
  }
}

# Returns the table that describes the rows of a container, or NULL.
row_table <- function(x) {
  if (is_index(x)) {
    x$tables$rows
  } else if (inherits(x, "ExpressionSet")) {
    Biobase::fData(x)
  } else if (inherits(x, "SummarizedExperiment")) {
    SummarizedExperiment::rowData(x)
  } else if (is_array_list(x)) {
    x$genes
  } else if (is_plink(x)) {
    x[[plink_table(x, "rows")]]
  }
}

# A string beside a container is the name of a column of its sample data.
# Anything else is taken as the values.
sample_variable <- function(x, value, arg, call = caller_env()) {
  table <- sample_table(x)
  if (is.null(table) || !rlang::is_string(value)) {
    return(value)
  }
  without_names(table_column(table, value, arg, call = call))
}

# `of` describes the table.
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
