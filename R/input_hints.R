# What users bring that is no matrix of points, and how to get one of it. Hints
# are code that works on that very object.

# An error with a hint, for those that are known.
check_is_data <- function(x, arg, call = caller_env()) {
  if (inherits(x, "Seurat")) {
    abort_seurat(x, arg, call)
  } else if (inherits(x, "MultiAssayExperiment")) {
    abort_experiments(x, arg, call)
  } else if (inherits(x, "dist")) {
    abort_distances(arg, call)
  } else if (inherits(x, "Surv")) {
    abort_survival(arg, call)
  } else if (is_list_of_matrices(x)) {
    abort_list(x, arg, call)
  }
}

# Cells, where there is a reduced dimension.
abort_seurat <- function(x, arg, call) {
  reductions <- names(methods::slot(x, "reductions"))
  reduction <- utils::head(intersect(c("pca", reductions), reductions), 1)
  cells <- paste0("SeuratObject::Embeddings(", arg, ", \"", reduction, "\")")
  genes <- paste0("SeuratObject::GetAssayData(", arg, ")")
  abort_argument(
    c(
      "{.arg {arg}} must hold points, and is a Seurat object.",
      i = if (length(reduction) > 0) {
        "Cells by a reduced dimension: {.code {cells}}."
      },
      i = "Genes by their values: {.code {genes}}, whose columns are cells."
    ),
    call
  )
}

abort_experiments <- function(x, arg, call) {
  names <- names(methods::slot(x, "ExperimentList"))
  code <- paste0(arg, "[[\"", utils::head(c(names, "name"), 1), "\"]]")
  known <- first_few(paste0("\"", names, "\""), limit = 10L)
  abort_argument(
    c(
      "{.arg {arg}} must hold points, and is a MultiAssayExperiment.",
      x = if (length(names) > 0) "Its experiments: {known}.",
      i = "Use one of them: {.code {code}}."
    ),
    call
  )
}

abort_distances <- function(arg, call) {
  abort_argument(
    c(
      "{.arg {arg}} must hold points, and is distances between some: an object
       of class <dist>.",
      i = "Use the data that they were made of: distances are made here."
    ),
    call
  )
}

abort_survival <- function(arg, call) {
  abort_argument(
    c(
      "{.arg {arg}} must hold points, and is survival times: an object of class
       <Surv>.",
      i = "They are an {.arg outcome} of the samples, for {.fn nearest_to} and
           {.fn module_summary}."
    ),
    call
  )
}

is_list_of_matrices <- function(x) {
  is.list(x) && !is.object(x) && is.null(dim(x)) && length(x) > 0 &&
    all(lengths(lapply(x, dim)) == 2)
}

abort_list <- function(x, arg, call) {
  named <- all(nzchar(rlang::names2(x)))
  which <- if (named) paste0("\"", names(x), "\"") else seq_along(x)
  known <- first_few(which, limit = 10L)
  code <- paste0(arg, "[[", which[[1]], "]]")
  rows <- unique(lapply(x, rownames))
  alike <- length(x) > 1 && length(rows) == 1 && !is.null(rows[[1]])
  bound <- paste0("do.call(cbind, ", arg, ")")
  abort_argument(
    c(
      "{.arg {arg}} must be one matrix, and is a list of
       {tally(length(x), \"table\")}: {known}.",
      i = "Use one of them: {.code {code}}.",
      i = if (alike) {
        "Or all, side by side, where each has its own columns:
         {.code {bound}}."
      }
    ),
    call
  )
}

# Code that keeps the numbers of a data frame, and the names of its rows where
# they stand in a column (whose name is given, too).
keep_numbers <- function(x, arg) {
  # Of a data.table, x[columns] is rows; a column of a DataFrame may be coded.
  frame <- if (inherits(x, c("data.table", "fsknn_frame"))) {
    paste0("as.data.frame(", arg, ")")
  } else {
    arg
  }
  numbers <- paste0("Filter(is.numeric, ", frame, ")")
  at <- if (.row_names_info(x) <= 0) name_column(x)
  if (is.null(at)) {
    return(list(code = numbers))
  }
  names <- paste0(arg, "[[", at, "]]")
  if (anyDuplicated(as.character(x[[at]])) > 0) {
    names <- paste0("make.unique(as.character(", names, "))")
  }
  code <- paste0(
    "data.frame(", numbers, ", row.names = ", names, ", check.names = FALSE)"
  )
  list(code = code, column = names(x)[[at]])
}

# The first column of text whose values are mostly different.
name_column <- function(x) {
  good <- vapply(x, function(values) {
    (is.character(values) || is.factor(values)) && is.null(dim(values)) &&
      length(unique(values)) > length(values) / 2
  }, NA)
  if (any(good)) which(good)[[1]]
}

# Square, symmetric, zeros along the diagonal: perhaps distances.
tell_if_distances <- function(x, arg) {
  like <- is.matrix(x) && is_number_like(x) && nrow(x) == ncol(x) &&
    nrow(x) > 2 && isTRUE(all(diag(x) == 0)) && is_symmetric(x)
  if (like) {
    cli::cli_inform(
      c(
        i = "{.arg {arg}} is symmetric with zeros along its diagonal, as
             distances are. Its rows are taken as points, its columns as
             features."
      ),
      class = "fsknn_distances_message"
    )
  }
}

# Without a transposed copy, and no further than the first difference.
is_symmetric <- function(x) {
  for (at in seq_len(nrow(x))) {
    if (!isTRUE(all(x[at, ] == x[, at]))) {
      return(FALSE)
    }
  }
  TRUE
}
