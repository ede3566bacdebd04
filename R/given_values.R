# Values that go with points or with their features: blocks, labels, strata,
# groups. They are given in order, by name, or as the name of a column of the
# table that a container has of that side.

# In order, and without names. of: "points" or "features" of x, as `input` (of
# check_input()) has them. known: their names, or NULL; read where needed only.
given_values <- function(x, values, arg, input, of,
                         known = names_of_side(x, input, of),
                         call = caller_env()) {
  if (rlang::is_string(values)) {
    values <- side_column(x, values, arg, input, of, call = call)
  }
  match_by_name(values, known, arg, of, call = call)
}

# The same for what must have one plain value for each: a vector, or a factor.
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

# Are they the columns of the container, or of the matrix?
side_is_columns <- function(input, of) {
  turned <- input$points == "columns" || !is.null(input$dimred)
  turned == (of == "points")
}

# The column that is named, or what was given where there is no table.
side_column <- function(x, name, arg, input, of, call) {
  in_columns <- side_is_columns(input, of)
  table <- if (in_columns) sample_table(x) else row_table(x)
  if (is.null(table)) {
    return(name)
  }
  of <- if (in_columns) "the sample data of {.arg x}" else
    "the row data of {.arg x}"
  table_column(table, name, arg, of, call = call)
}

# No value is read.
names_of_side <- function(x, input, of) {
  taken <- take_matrix(x, input)
  values <- taken$values
  if (of == "features") {
    return(if (taken$turn) row_names_of(values) else feature_names(values))
  }
  if (taken$turn) feature_names(values) else row_names_of(values)
}

# Automatic ones of a data frame are none.
row_names_of <- function(values) {
  if (is.data.frame(values)) {
    return(if (.row_names_info(values) > 0) row.names(values))
  }
  rownames(values)
}

# What has names that are those of the points, in their order. Where points have
# none, names of values mean nothing.
match_by_name <- function(values, known, arg, of, call) {
  given <- names(values)
  if (is.null(given) || !is.null(dim(values)) || is.null(known)) {
    return(values)
  }
  if (!identical(given, known)) {
    check_names_match(given, known, arg, of, call)
    values <- values[match(known, given)]
  }
  names(values) <- NULL
  values
}

check_names_match <- function(given, known, arg, of, call) {
  one <- if (of == "points") "point" else "sample"
  quoted <- function(names) paste0("\"", utils::head(names, 3), "\"")
  twice <- unique(c(given[duplicated(given)], known[duplicated(known)]))
  absent <- setdiff(known, given)
  unknown <- setdiff(given, known)
  if (length(twice) + length(absent) + length(unknown) == 0) {
    return(invisible())
  }
  abort_argument(
    c(
      "The names of {.arg {arg}} must be those of the {one}s, each once.",
      x = if (length(absent) > 0) {
        "{tally(length(absent), one)} {cli::qty(length(absent))}{?has/have} no
         value: {first_few(quoted(absent), length(absent))}."
      },
      x = if (length(unknown) > 0) {
        "{tally(length(unknown), \"name\")} {cli::qty(length(unknown))}{?is/are}
         of no {one}: {first_few(quoted(unknown), length(unknown))}."
      },
      x = if (length(twice) > 0) {
        "More than once there {cli::qty(length(twice))}{?is/are}
         {first_few(quoted(twice), length(twice))}."
      },
      i = "For values in the order of the {one}s, use {.code unname({arg})}."
    ),
    call
  )
}
