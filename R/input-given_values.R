# Values for points or for their features: blocks, labels, strata and groups.
# They are given in order, by name, or as the name of a column in the table that
# a container has for that side.

# Returns the values in order, without names. `of` is "points" or "features" of
# x, as `input` (from check_input()) defines them. `known` are their names, or
# NULL, which are read only if needed.
given_values <- function(x, values, arg, input, of,
                         known = names_of_side(x, input, of),
                         call = caller_env()) {
  if (rlang::is_string(values)) {
    values <- side_column(x, values, arg, input, of, call = call)
  }
  # Objects that can't be values are an error, regardless of their names.
  if (!can_be_labels(values)) {
    return(values)
  }
  check_labels_text(values, arg, call)
  match_names(values, known, arg, of, call)
}

# Checks the text of values and of their names.
check_labels_text <- function(values, arg, call) {
  is_level <- is.factor(values)
  check_text(
    if (is_level) levels(values) else values, paste0("`", arg, "`"),
    if (is_level) "level" else "position", arg, call
  )
  check_text(
    names(values), paste0("The names of `", arg, "`"), "position",
    paste0("names(", arg, ")"), call
  )
}

# Does the same for values that must be a vector or a factor.
each_value <- function(x, values, arg, num_values, input, of,
                       known = names_of_side(x, input, of),
                       call = caller_env()) {
  values <- given_values(x, values, arg, input, of, known, call = call)
  plain <- can_be_labels(values)
  if (!plain || length(values) != num_values) {
    given <- if (plain) {
      tally(length(values), "value")
    } else {
      describe_type(values)
    }
    what <- if (of == "points") "points" else "samples"
    abort_argument(
      "{.arg {arg}} must have one value for each of the
       {format_count(num_values)} {what} of {.arg x}, not {given}.",
      call
    )
  }
  values
}

# Returns whether this side is the columns of the container or matrix.
side_is_columns <- function(input, of) {
  transposed <- input$points == "columns" || !is.null(input$dimred)
  transposed == (of == "points")
}

# Returns the named column, or the name itself if there is no table.
side_column <- function(x, name, arg, input, of, call) {
  in_columns <- side_is_columns(input, of)
  table <- if (in_columns) sample_table(x) else row_table(x)
  if (is.null(table)) {
    return(name)
  }
  of <- if (in_columns) "the sample data of {.arg x}" else
    "the row data of {.arg x}"
  without_names(table_column(table, name, arg, of, call = call))
}

# Returns the names without reading a value.
names_of_side <- function(x, input, of) {
  if (is_index(x)) {
    points <- x$search$points
    return(if (of == "features") points$features else known_points(points))
  }
  names_of_taken(take_matrix(x, input), of)
}

# `taken` is from take_matrix().
names_of_taken <- function(taken, of) {
  values <- taken$values
  if (of == "features") {
    return(if (taken$turn) row_names_of(values) else feature_names(values))
  }
  if (taken$turn) feature_names(values) else row_names_of(values)
}
