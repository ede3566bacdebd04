# Turns the core's findings in the values into errors with positions.

# Scans the values once. Returns `skip`, the rows to isolate. `left_out` are the
# metafeatures that are left out and why, or NULL. `largest` is the largest
# magnitude, and largest_row a row with it. `missing` is the number of missing
# values.
check_values <- function(points, options, arg, call = caller_env()) {
  if (options$na != "error") {
    return(check_known_values(points, options, arg, call = call))
  }
  scan <- points$scan %||% in_core(
    cpp_scan(
      points$values, options$num_threads, options$metric$levels,
      scan_request(options)
    ),
    call
  )
  made <- is_metafeatures(points$values)
  if (!made) {
    check_finite(
      points, scan, arg, metric = options$metric, cures = options$cures_na,
      call = call
    )
  }
  check_non_negative(points, scan, options$metric, arg, call = call)
  check_allowed(points, scan, options$metric, arg, call = call)
  if (made) {
    left_out <- find_left_out(points, scan)
    tell_left_out(
      left_out, nrow(points$values), arg,
      if (arg == "query") "query_left_out" else "left_out"
    )
    return(list(
      skip = left_out$point %||% integer(), left_out = left_out,
      largest = scan$largest, largest_row = scan$largest_row, missing = 0
    ))
  }
  skip <- check_defined_rows(
    points, scan, options$metric, options$constant, arg, call = call
  )
  list(
    skip = skip, left_out = NULL, largest = scan$largest,
    largest_row = scan$largest_row, missing = 0
  )
}

# Covariates may explain a whole row, so a scan must know them.
scan_request <- function(options) {
  if (!is.null(options$adjust)) new_request(NULL, options)
}

# Returns "2 (\"g2\")" for a row with a name, otherwise "2".
describe_rows <- function(rows, points) {
  rows <- as.integer(rows) # a double 100000 would print as 1e+05
  names <- point_names(points, rows)
  if (is.null(names)) {
    return(as.character(rows))
  }
  paste0(rows, " (\"", names, "\")")
}

describe_cells <- function(at, points) {
  if (nrow(at) == 0) {
    return(character())
  }
  values <- cells_of(points, at)
  words <- ifelse(is.nan(values), "NaN", as.character(values))
  # A value close to 1 must not be printed as "1" in a message that it is not 1.
  short <- words %in% c("0", "1") & values != (words == "1")
  words[short] <- format(values[short], digits = 17)
  features <- as.integer(at[, 2])
  if (!is.null(points$samples)) {
    # The user's numbers are shown, because some features were left out.
    features <- points$samples[features]
  }
  side <- point_side(points)
  paste0(
    words, " at ", side, " ", describe_rows(at[, 1], points), ", ",
    feature_side(points), " ", features
  )
}

# Describes the cells that the core reported, of `count` in total.
first_cells <- function(at, count, points) {
  cells <- describe_cells(at, points)
  rest <- if (count > length(cells)) " (the first three)" else ""
  paste0(paste(cells, collapse = "; "), rest)
}

# `metric` is that of a search, or NULL for other uses. `cures` are values of
# `na` that the search takes.
check_finite <- function(points, scan, arg, metric = NULL, cures = NULL,
                         call = caller_env()) {
  if (scan$non_finite == 0) {
    return(invisible())
  }
  count <- scan$non_finite
  where <- first_cells(scan$non_finite_at, count, points)
  missing <- is.na(cells_of(points, scan$non_finite_at))
  cure <- if (any(missing)) cure_of_missing_values(metric, arg, cures)
  cli_abort(
    c(
      "{.arg {arg}} must hold finite numbers only.",
      x = "{format_count(count)} {cli::qty(count)}value{?s} {?is/are} not:
           {where}.",
      i = cure,
      i = if (is.null(cure) || !all(missing)) {
        "Leave out such rows or columns, or fill the values in."
      }
    ),
    class = c("fsknn_argument_error", "fsknn_finite_error", "fsknn_error"),
    call = call
  )
}

# Suggests the first of these values, or filling in. A mean of neighbours is
# neither 0 nor 1, and no number of alleles.
cure_of_missing_values <- function(metric, arg, cures) {
  if (isTRUE(metric$levels > 0)) {
    able <- "pairwise" %in% cures
    return(if (able) "Use {.code na = \"pairwise\"}.")
  }
  filled <- paste0("{.code knn_impute(", arg, ")}.")
  if (is.null(cures)) {
    return(paste("Fill missing values in with", filled))
  }
  paste0(
    "Use {.code na = \"", cures[[1]], "\"}, or fill missing values in
     with ", filled
  )
}

check_non_negative <- function(points, scan, metric, arg, call = caller_env()) {
  if (!metric$non_negative || scan$negative == 0) {
    return(invisible())
  }
  count <- scan$negative
  where <- first_cells(scan$negative_at, count, points)
  abort_argument(
    c(
      "{.arg {arg}} must hold no negative numbers under metric
       {.val {metric$name}}.",
      x = "{format_count(count)} {cli::qty(count)}value{?s} {?is/are} negative:
           {where}."
    ),
    call
  )
}

check_allowed <- function(points, scan, metric, arg, call = caller_env()) {
  if (metric$levels == 0 || scan$off_levels == 0) {
    return(invisible())
  }
  count <- scan$off_levels
  where <- first_cells(scan$off_levels_at, count, points)
  abort_argument(
    c(
      if (metric$levels == 1) {
        "{.arg {arg}} must hold only 0 and 1 (or FALSE and TRUE) under metric
         {.val {metric$name}}."
      } else {
        "{.arg {arg}} must hold only 0, 1 and 2 under metric
         {.val {metric$name}}."
      },
      x = if (metric$levels == 1) {
        "{format_count(count)} {cli::qty(count)}value{?s} {?is/are} neither:
         {where}."
      } else {
        "{format_count(count)} {cli::qty(count)}value{?s} {?is/are} none of
         these: {where}."
      },
      i = if (metric$levels == 1) {
        "For what is there at all, use {.code {arg} > 0}."
      } else {
        "A genotype is the number of copies of an allele."
      }
    ),
    call
  )
}

# Rows for which the metric has no value are an error, or they are isolated.
check_defined_rows <- function(points, scan, metric, constant, arg,
                               call = caller_env()) {
  rows <- switch(
    metric$undefined_rows,
    constant = scan$constant,
    zero = scan$zero,
    none = integer()
  )
  explained <- scan$explained
  if (constant == "isolate") {
    return(sort(c(rows, explained)))
  }
  check_not_explained(points, explained, arg, call)
  if (length(rows) == 0) {
    return(rows)
  }
  what <- if (metric$undefined_rows == "constant") "constant" else "all zeros"
  abort_rows(
    points, rows, arg,
    cli::format_inline("that is {what} under metric {.val {metric$name}}"),
    c("is", "are"), what, call
  )
}

check_not_explained <- function(points, rows, arg, call) {
  if (length(rows) == 0) {
    return(invisible())
  }
  abort_rows(
    points, rows, arg,
    cli::format_inline("that the covariates in {.arg adjust} explain"),
    c("has", "have"), "nothing left", call
  )
}

# Points without any value are an error, unless they are isolated.
check_empty_rows <- function(points, rows, constant, arg, call = caller_env()) {
  if (length(rows) == 0 || constant == "isolate") {
    return(invisible())
  }
  abort_rows(
    points, rows, arg, "whose values are all missing", c("has", "have"),
    "no value", call
  )
}

# `kind` describes the rows that are not allowed. `verb` (singular and plural)
# and `state` describe those that were found.
abort_rows <- function(points, rows, arg, kind, verb, state, call) {
  count <- length(rows)
  named <- describe_rows(utils::head(rows, 3), points)
  where <- first_few(named, total = count)
  side <- point_side(points)
  verb <- verb[[if (count == 1) 1 else 2]]
  abort_argument(
    c(
      "{.arg {arg}} must have no {side} {kind}.",
      x = "{format_count(count)} {side}{cli::qty(count)}{?s} {verb} {state}:
           {where}.",
      i = if (takes_option(call, "constant")) {
        "Leave {cli::qty(count)}{?it/them} out, or keep {?it/them} as
         {?an isolated point/isolated points} with
         {.code constant = \"isolate\"}."
      } else {
        "Leave {cli::qty(count)}{?it/them} out."
      }
    ),
    call
  )
}
