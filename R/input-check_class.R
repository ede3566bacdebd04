# Returns the class of each sample, as a factor without unused levels. `value`
# holds the user's values, or the name of a column of the sample data of `x`.
# `samples` are the names of the samples, or NULL.
check_class <- function(value, x, num_samples, samples, call = caller_env()) {
  given <- sample_variable(x, value, "class", call = call)
  check_labels_text(given, "class", call)
  named <- match_names(given, samples, "class", "features", call)
  whole <- is.numeric(named) && !inherits(named, "integer64") &&
    !is.object(named) && all(named == trunc(named), na.rm = TRUE)
  good <- is.factor(named) || is.null(dim(named)) && !is.object(named) &&
    (is.character(named) || is.logical(named) || whole)
  if (!good) {
    abort_class_type(named, call)
  }
  if (length(named) != num_samples) {
    abort_class_length(named, x, num_samples, call)
  }
  check_class_missing(named, call)
  class <- if (is.numeric(named)) levels_of(named) else factor(named)
  if (nlevels(class) < 2) {
    abort_argument(
      c(
        "{.arg class} must have at least two classes.",
        x = "All {format_count(num_samples)} samples are of class
             {.val {levels(class)}}."
      ),
      call
    )
  }
  class
}

abort_class_type <- function(value, call) {
  given <- describe_type(value)
  number <- is.numeric(value) && !is.object(value) && is.null(dim(value))
  abort_argument(
    c(
      "{.arg class} must be a factor or a vector of text, logical values or
       whole numbers, not {given}.",
      x = if (number) "Some of its numbers are not whole.",
      i = if (number) {
        "Part it into classes first, for example by {.code class < 5}."
      }
    ),
    call
  )
}

abort_class_length <- function(value, x, num_samples, call) {
  count <- length(value)
  plain <- rlang::is_string(value) && is.null(sample_table(x))
  abort_argument(
    c(
      "{.arg class} must have one value for each of the
       {format_count(num_samples)} samples (columns) of {.arg x}.",
      x = "It has {format_count(count)}.",
      i = if (plain) {
        "The name of a column is understood where {.arg x} is an ExpressionSet
         or a SummarizedExperiment."
      }
    ),
    call
  )
}

check_class_missing <- function(value, call) {
  missing <- which(is.na(value))
  if (length(missing) == 0) {
    return(invisible())
  }
  count <- length(missing)
  where <- first_few(missing)
  abort_argument(
    c(
      "{.arg class} must have no missing values.",
      x = "{format_count(count)} {cli::qty(count)}{?is/are} missing:
           sample{?s} {where}.",
      i = "Leave such samples out of {.arg x} and {.arg class}."
    ),
    call
  )
}
