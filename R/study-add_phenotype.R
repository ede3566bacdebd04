#' Add a clinical outcome as a row
#'
#' Appends a variable of the samples, such as years to relapse, to the rows of
#' expression values. It then has the same status as a probe: it is the "dummy
#' probe" of Arefin et al. (2012). A graph then shows which probes are near the
#' outcome. A correlation does not depend on its unit, but Euclidean and other
#' distances do.
#'
#' @param x Rows of features (probes, genes) with one column for each sample. It
#'   is a numeric matrix (dense or sparse), a `DelayedMatrix`, a `big.matrix`, a
#'   data frame of numeric columns, an `ExpressionSet`, a
#'   `SummarizedExperiment`, or [metafeatures()].
#' @param values One value for each column of `x`, in that order or with their
#'   names. These types are possible:
#'   * numbers, or logical values;
#'   * a factor of two levels, of which the first counts as 0 and the second as
#'     1;
#'   * text with two different values, converted to a factor (in sorted order);
#'   * survival times ([survival::Surv()]), which are replaced by their
#'     martingale residuals: see [nearest_to()].
#'
#'   For an `ExpressionSet` or a `SummarizedExperiment`, it may be the name of a
#'   column of its sample data.
#' @param name The name of the new row, one string that no row of `x` has. If
#'   `values` names a column, that name is the default.
#' @param ... Must be empty.
#' @param na What to do with missing `values`. `"error"` (default) is an
#'   error. `"drop"` leaves these samples out of `x`, with a message that names
#'   them.
#'
#' @returns `x` with one more row, the last. If `x` had no row names, the other
#'   rows are named by their numbers.
#'   * An ordinary matrix for a matrix of any kind, and a data frame for a data
#'     frame.
#'   * An `ExpressionSet`: the new row of its feature data is `NA`, and also
#'     that of matrices besides the expression values.
#'   * A `SummarizedExperiment`: the outcome is a row of the assay `logcounts`
#'     if that exists, otherwise of the first one. Other assays and the row data
#'     are `NA` there. Row data of a type without `NA`, such as ranges, are left
#'     out, and a message says so. A `RangedSummarizedExperiment` or another
#'     subclass becomes a plain `SummarizedExperiment`, since an outcome has no
#'     genomic position.
#'   * [metafeatures()]: the row follows all metafeatures and is in no pair.
#' @section Errors:
#' An error of class `fsknn_argument_error` is raised by
#' * values of another type, or not one for each sample;
#' * missing values, unless they are dropped;
#' * infinite values, and values that are all equal;
#' * a name that a row of `x` already has.
#' @inherit knn_search references
#' @seealso [nearest_to()] for the nearest neighbours of the outcome.
#' @export
#' @examples
#' x <- matrix(rnorm(100 * 12), nrow = 100)
#' rownames(x) <- paste0("gene", 1:100)
#' years <- c(rexp(11), NA)
#' x <- add_phenotype(x, years, "years to relapse", na = "drop")
#' dim(x)
#' nearest_to(x, "years to relapse", k = 3)
add_phenotype <- function(x, values, name, ...,
                          na = c("error", "drop")) {
  check_no_more(...)
  check_supplied(x)
  check_supplied(values)
  na <- check_choice(na, c("error", "drop"), "na")
  if (missing(name)) {
    name <- if (is_sample_column(x, values)) values
  }
  check_phenotype_name(name)
  input <- check_input(assay = assay_of_outcome(x))
  points <- as_points(
    take_matrix(x, input, call = current_env())$values, "x",
    call = current_env()
  )
  check_new_name(points, name)
  values <- match_names(
    sample_variable(x, values, "values"), feature_names(points$values),
    "values", "features"
  )
  values <- check_phenotype(as_outcome(values, "values"), points$values)
  absent <- which(is.na(values))
  if (length(absent) > 0) {
    check_missing(absent, feature_names(points$values), na)
    x <- x[, -absent, drop = FALSE]
    values <- values[-absent]
  }
  check_varies(values, length(absent))
  append_row(x, values, name)
}

# Returns TRUE if `values` is a string beside a container.
is_sample_column <- function(x, values) {
  rlang::is_string(values) && !is.null(sample_table(x))
}

check_phenotype_name <- function(name, call = caller_env()) {
  if (rlang::is_string(name) && !is.na(name) && nzchar(name)) {
    check_text(name, "`name`", "name", "name", call)
    return(invisible())
  }
  given <- if (is.null(name)) "missing" else describe_value(name)
  abort_argument(
    c(
      "{.arg name} must be one string, the name of the new row.",
      x = "It is {given}."
    ),
    call
  )
}

check_new_name <- function(points, name, call = caller_env()) {
  taken <- if (is_metafeatures(points$values)) {
    length(numbers_by_name(name, points$values)) > 0
  } else {
    # Rows without names will be named by their numbers.
    name %in% (points$names %||% as.character(seq_len(nrow(points$values))))
  }
  if (taken) {
    abort_argument(
      c(
        "{.arg name} must be new.",
        x = "{.arg x} has a row {.val {name}} already."
      ),
      call
    )
  }
}

# Checks that there is one number for each sample. Some may be NA.
check_phenotype <- function(values, x, call = caller_env()) {
  if (!is_number_like(values) || is.object(values) || length(dim(values)) > 1) {
    given <- describe_type(values)
    hint <- if (rlang::is_string(values)) {
      c(i = "The name of a column is understood where {.arg x} is an
             ExpressionSet or a SummarizedExperiment.")
    } else if (is.character(values)) {
      c(i = "Of two words one can count as 1, for example by
             {.code values == \"relapse\"}.")
    } else if (inherits(values, "difftime")) {
      c(i = "Use {.code as.numeric(values, units = \"days\")}.")
    }
    abort_argument(
      c("{.arg values} must be a vector of numbers, not {given}.", hint), call
    )
  }
  if (length(values) != ncol(x)) {
    samples <- tally(ncol(x), "column")
    given <- tally(length(values), "value")
    abort_argument(
      c(
        "{.arg values} must have one number for each sample.",
        x = "{.arg x} has {samples}, {.arg values} has {given}."
      ),
      call
    )
  }
  values <- as.vector(values)
  infinite <- which(is.infinite(values))
  if (length(infinite) > 0) {
    where <- first_few(infinite)
    abort_argument(
      c(
        "{.arg values} must be finite.",
        x = "{cli::qty(length(infinite))}Infinite at position{?s} {where}."
      ),
      call
    )
  }
  unname(values)
}

check_missing <- function(absent, samples, na, call = caller_env()) {
  count <- length(absent)
  names <- if (is.null(samples)) absent else paste0("\"", samples[absent], "\"")
  if (na == "error") {
    where <- first_few(names)
    abort_argument(
      c(
        "{.arg values} must not be missing.",
        x = "{tally(count, \"sample\")} {cli::qty(count)}{?has/have} none:
             {where}.",
        i = "Leave {cli::qty(count)}{?this sample/these samples} out with
             {.code na = \"drop\"}."
      ),
      call
    )
  }
  where <- first_few(names, limit = 10L)
  cli::cli_inform(
    "{format_count(count)} {cli::qty(count)}sample{?s} without a value
     {?is/are} left out: {where}.",
    class = "fsknn_dropped_samples"
  )
}

check_varies <- function(values, dropped, call = caller_env()) {
  distinct <- length(unique(values))
  if (distinct > 1) {
    return(invisible())
  }
  left <- if (dropped > 0) " that are left"
  abort_argument(
    c(
      "{.arg values} must vary.",
      x = if (length(values) == 0) {
        "All are missing."
      } else {
        "All {format_count(length(values))}{left} are {values[[1]]}."
      }
    ),
    call
  )
}

append_row <- function(x, values, name) {
  UseMethod("append_row")
}

#' @export
append_row.default <- function(x, values, name) {
  names <- rownames(x) %||% as.character(seq_len(nrow(x)))
  values <- rbind(
    in_memory(as_points(x))$values, values, deparse.level = 0
  )
  rownames(values) <- c(names, name)
  values
}

#' @export
append_row.data.frame <- function(x, values, name) {
  x <- as.data.frame(x) # subclasses may have no row names
  row <- as.list(values)
  names(row) <- names(x)
  row <- as.data.frame(row, row.names = name, optional = TRUE)
  rbind(x, row)
}

#' @export
append_row.metafeatures <- function(x, values, name) {
  parts <- part_names(x)
  num_rows <- nrow(x$values) - x$num_extra
  check_num_metafeatures(num_rows, length(x$ops), x$num_extra + 1L)
  x$values <- rbind(x$values, values, deparse.level = 0)
  rownames(x$values) <- c(parts, name)
  x$num_extra <- x$num_extra + 1L
  if (!is.null(x$kept)) {
    last <- count_metafeatures(num_rows, length(x$ops), x$num_extra)
    x$kept <- c(x$kept, as.integer(last))
  }
  x
}

#' @export
append_row.ExpressionSet <- function(x, values, name) {
  data <- Biobase::assayData(x)
  elements <- if (is.environment(data)) ls(data) else names(data)
  matrices <- lapply(elements, function(element) {
    row <- if (element == "exprs") values else NA
    append_row.default(data[[element]], rep_len(row, ncol(x)), name)
  })
  names(matrices) <- elements
  features <- Biobase::featureData(x)
  Biobase::pData(features)[name, ] <- NA
  rownames(features) <- c(Biobase::featureNames(x), name)
  methods::slot(x, "assayData", check = FALSE) <- do.call(
    Biobase::assayDataNew, c(list(Biobase::storageMode(x)), matrices)
  )
  methods::slot(x, "featureData", check = FALSE) <- features
  methods::validObject(x)
  x
}

# Returns the default assay of the verbs, or the first if there is no default.
# Returns NULL if `x` has no assays.
assay_of_outcome <- function(x) {
  if (inherits(x, "SummarizedExperiment")) {
    names <- SummarizedExperiment::assayNames(x)
    default_assay(names, length(SummarizedExperiment::assays(x))) %||% 1L
  }
}

#' @export
append_row.SummarizedExperiment <- function(x, values, name) {
  taken <- assay_of_outcome(x)
  # The conversion takes two steps: a direct one loses row names and row data.
  if (methods::is(x, "RangedSummarizedExperiment")) {
    x <- methods::as(x, "RangedSummarizedExperiment")
  }
  x <- methods::as(x, "SummarizedExperiment")
  names <- rownames(x) %||% as.character(seq_len(nrow(x)))
  assays <- SummarizedExperiment::assays(x, withDimnames = FALSE)
  if (is.character(taken)) {
    taken <- match(taken, SummarizedExperiment::assayNames(x))
  }
  assays <- lapply(seq_along(assays), function(at) {
    row <- rep_len(if (at == taken) values else NA, ncol(x))
    assay <- rbind(as.matrix(assays[[at]]), row, deparse.level = 0)
    dimnames(assay) <- list(c(names, name), colnames(x))
    assay
  })
  names(assays) <- SummarizedExperiment::assayNames(x)
  features <- SummarizedExperiment::rowData(x)
  features <- append_missing(features)
  rownames(features) <- c(names, name)
  SummarizedExperiment::SummarizedExperiment(
    assays, rowData = features,
    colData = SummarizedExperiment::colData(x),
    metadata = methods::slot(x, "metadata")
  )
}

# Returns row data with one more row of missing or, for vectors as entries,
# empty values.
append_missing <- function(features) {
  longer <- lapply(features, function(column) {
    tryCatch(with_missing(column), error = function(e) NULL)
  })
  unfit <- vapply(longer, is.null, NA)
  if (any(unfit)) {
    where <- first_few(paste0("\"", names(features)[unfit], "\""))
    cli::cli_inform(
      "Row data left out, for the outcome can have none: {where}.",
      class = "fsknn_dropped_row_data"
    )
  }
  # An existing row is a placeholder until each column is replaced.
  result <- features[c(seq_len(nrow(features)), 1L), !unfit, drop = FALSE]
  for (at in seq_along(result)) {
    result[[at]] <- longer[!unfit][[at]]
  }
  result
}

with_missing <- function(column) {
  if (length(dim(column)) == 2) {
    return(column[c(seq_len(nrow(column)), NA), , drop = FALSE])
  }
  if (is.atomic(column) || is.list(column)) {
    return(column[c(seq_along(column), NA)])
  }
  if (methods::is(column, "Rle")) {
    return(c(column, NA))
  }
  empty <- column[1]
  empty[[1]] <- empty[[1]][0]
  c(column, empty)
}
