# Bioconductor's containers of expression values: an ExpressionSet (Biobase),
# a SummarizedExperiment and its children. Neither package is needed until a
# user brings such an object.

# The plain matrix of a container; anything else as it is.
expression_of <- function(x, arg = "x", call = caller_env()) {
  if (inherits(x, "ExpressionSet")) {
    need_package("Biobase", arg, call)
    return(Biobase::exprs(x))
  }
  if (!inherits(x, "SummarizedExperiment")) {
    return(x)
  }
  need_package("SummarizedExperiment", arg, call)
  if (length(SummarizedExperiment::assayNames(x)) == 0 &&
        length(SummarizedExperiment::assays(x)) == 0) {
    abort_argument("{.arg {arg}} must hold an assay, and has none.", call)
  }
  values <- SummarizedExperiment::assay(x)
  # Its row names are those of the experiment, not always those of the assay.
  if (is.matrix(values)) {
    dimnames(values) <- dimnames(x)
  }
  values
}

# The table that describes the samples of a container, or NULL.
sample_table <- function(x) {
  if (inherits(x, "ExpressionSet")) {
    Biobase::pData(x)
  } else if (inherits(x, "SummarizedExperiment")) {
    SummarizedExperiment::colData(x)
  }
}

# What a user names or gives: one string beside a container is the name of a
# column of its sample data; anything else is taken as the values.
sample_variable <- function(x, value, arg, call = caller_env()) {
  table <- sample_table(x)
  if (is.null(table) || !rlang::is_string(value)) {
    return(value)
  }
  columns <- colnames(table)
  if (value %in% columns) {
    return(table[[value]])
  }
  nearest <- if (length(columns) > 0) nearest_spelling(value, columns)
  hint <- if (!is.null(nearest)) {
    c(i = "Did you mean {.val {nearest}}?")
  }
  known <- first_few(paste0("\"", columns, "\""), limit = 5L)
  abort_argument(
    c(
      "{.arg {arg}} must be the name of a column of the sample data of
       {.arg x}, not {.val {value}}.",
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
