# The rule for matching names, shared by all verbs. If both sides have names,
# values are matched by name, in any order. A name without a counterpart is an
# error. If one side has no names, values match by position, and the verb checks
# their number.

# Returns the values in the order of `known`, without names unless `keep`.
# `values` is a vector, a factor, survival times, or the rows of a matrix, a
# data frame or a DataFrame. Other objects are left for the verb to refuse.
# `known` are the names of the points or samples, in order, or NULL. It is
# evaluated only if the values have names, since metafeatures would have to make
# theirs. `of` is "points" or "features" (samples), the owner of the names.
match_names <- function(values, known, arg, of, call = caller_env(),
                        keep = FALSE) {
  values <- readable_survival(values)
  given <- names_of_values(values)
  if (is.null(given) || is.null(known)) {
    return(values)
  }
  at <- match_order(given, known, words_of_values(values, arg, of), call)
  values <- if (is.null(at)) values else take_values(values, at)
  if (keep) values else without_names(values)
}

# Loads the package survival, so that its methods give names and lengths of
# survival times. Column names are filled in, because unname() has removed them,
# too.
readable_survival <- function(values) {
  if (is.data.frame(values)) {
    times <- vapply(values, inherits, NA, "Surv")
    values[times] <- lapply(unclass(values)[times], readable_survival)
  } else if (inherits(values, "DataFrame")) {
    for (name in colnames(values)) {
      if (inherits(values[[name]], "Surv")) {
        values[[name]] <- readable_survival(values[[name]])
      }
    }
  } else if (inherits(values, "Surv")) {
    rlang::check_installed("survival", "for values of class Surv.")
    loadNamespace("survival")
    if (is.null(attr(values, "dimnames"))) {
      columns <- c(
        switch(
          attr(values, "type"), counting = , mcounting = c("start", "stop"),
          interval = c("time1", "time2"), "time"
        ),
        "status"
      )
      attr(values, "dimnames") <- list(NULL, columns)
    }
  }
  values
}

# Returns the position of each known name among the given ones, or NULL if
# values stay in their order. `words` is list(must, one, lacks, arg, same,
# code); see words_of_values(). `extra` allows further names.
match_order <- function(given, known, words, call, extra = FALSE) {
  given <- real_names(given)
  known <- real_names(known)
  if (is.null(given) || is.null(known) || identical(given, known)) {
    return(NULL)
  }
  check_names_match(given, known, words, extra, call)
  match(known, given)
}

# Names that are all empty count as no names.
real_names <- function(names) {
  if (all(is.na(names) | names == "")) NULL else names
}

names_of_values <- function(values) {
  real_names(
    if (is_table(values)) {
      row_names_of(values)
    } else if (is.atomic(values) && length(dim(values)) == 2) {
      rownames(values)
    } else if (is.atomic(values)) {
      names(values)
    }
  )
}

# Returns the row names of a table. Whole numbers do not count: they are
# automatic names, or what is left of these in some of the rows.
row_names_of <- function(values) {
  if (is.data.frame(values)) {
    names <- attr(values, "row.names")
    return(if (is.character(names)) names)
  }
  rownames(values)
}

is_table <- function(values) {
  is.data.frame(values) || inherits(values, "DataFrame")
}

take_values <- function(values, at) {
  if (length(dim(values)) == 2 && !inherits(values, "Surv")) {
    values[at, , drop = FALSE]
  } else {
    values[at]
  }
}

without_names <- function(values) {
  if (inherits(values, "Surv")) {
    # unname() would remove the names of its columns, too.
    dimnames <- attr(values, "dimnames")
    attr(values, "dimnames") <- list(NULL, dimnames[[2]])
  } else if (length(dim(values)) == 2) {
    rownames(values) <- NULL
  } else {
    names(values) <- NULL
  }
  values
}

# Returns the parts of an error about names. It has what must hold, what a known
# element is, what it lacks, and code that fixes the names.
#   same  code for values that are in order, though their names differ
#   made  code for values whose names are as they were before make.names()
words_of_values <- function(values, arg, of) {
  rows <- length(dim(values)) == 2
  in_rows <- rows && !inherits(values, "Surv")
  one <- if (of == "points") "point" else "sample"
  names <- if (in_rows) "row names" else "names"
  of_arg <- paste0(if (in_rows) "row", "names(", arg, ")")
  code <- if (rows) paste(of_arg, "<- NULL") else paste0("unname(", arg, ")")
  list(
    must = paste0(
      "The ", names, " of {.arg {words$arg}} must be those of the ", one,
      "s, each once."
    ),
    arg = arg, one = one, lacks = "{?has/have} no value", same = code,
    order = paste0("For values in the order of the ", one, "s, use"),
    made = paste0(of_arg, " <- make.names(", of_arg, ")")
  )
}

# Does the same for a second matrix (query) with the features of `x`.
words_of_features <- function(side, arg) {
  names <- paste0(if (side == "row") "row" else "col", "names")
  of_arg <- paste0(names, "(", arg, ")")
  list(
    must = paste0(
      "{.arg {words$arg}} must have all ", side, "s of {.arg x} by name, each
       once."
    ),
    arg = arg, one = side, lacks = "{?is/are} not there",
    same = paste0(of_arg, " <- ", names, "(x)"),
    order = paste0("For ", side, "s that are in the order of {.arg x}, use"),
    made = paste0(of_arg, " <- make.names(", of_arg, ")")
  )
}

# Does the same for the rows of x, which must be those of another object.
words_of_rows <- function(other, arg = "x") {
  list(
    must = "The row names of {.arg {words$arg}} must be those of
            {.arg {words$other}}, each once.",
    arg = arg, other = other, one = "row", lacks = "{?is/are} not there",
    same = paste0("rownames(", arg, ") <- NULL"),
    order = "For rows that are in the same order, use",
    made = paste0("rownames(", arg, ") <- make.names(rownames(", arg, "))")
  )
}

# Does the same for two matrices with points in their rows or columns.
words_of_two <- function() {
  list(
    must = "The points of both of {.arg {words$arg}} must have the same names,
            each once.",
    arg = "x", one = "point", lacks = "{?is/are} not in the second"
  )
}

# Does the same for the points of two graphs.
words_of_graphs <- function(first, second) {
  list(
    must = "The points of {.arg {words$arg}} must be those of
            {.arg {words$first}}, each once.",
    arg = second, first = first, one = "point", lacks = "{?is/are} not there"
  )
}

check_names_match <- function(given, known, words, extra, call) {
  quoted <- function(names) {
    first_few(paste0("\"", utils::head(names, 3), "\""), length(names))
  }
  absent <- setdiff(known, given)
  unknown <- setdiff(given, known)
  counted <- if (extra) given[given %in% known] else given
  twice <- unique(c(counted[duplicated(counted)], known[duplicated(known)]))
  wrong <- c(length(absent), if (!extra) length(unknown), length(twice))
  if (all(wrong == 0)) {
    return(invisible())
  }
  changed <- length(absent) > 0 && (extra || setequal(
    make.names(absent), make.names(unknown)
  )) && all(make.names(absent) %in% make.names(unknown))
  pair <- if (changed) {
    quoted(c(absent[[1]], unknown[
      match(make.names(absent[[1]]), make.names(unknown))
    ]))
  }
  of_known <- all(known %in% make.names(given))
  abort_argument(
    c(
      words$must,
      x = if (length(absent) > 0) {
        paste0(
          "{tally(length(absent), words$one)} {cli::qty(length(absent))}",
          words$lacks, ": {quoted(absent)}."
        )
      },
      x = if (length(unknown) > 0 && !extra) {
        "{tally(length(unknown), \"name\")} {cli::qty(length(unknown))}{?is/are}
         of no {words$one}: {quoted(unknown)}."
      },
      x = if (length(twice) > 0) {
        "More than once there {cli::qty(length(twice))}{?is/are}
         {quoted(twice)}."
      },
      x = if (changed) {
        "They differ only as {.fn make.names} changes names: {pair}."
      },
      i = if (changed && of_known && !is.null(words$made)) {
        "Use {.code {words$made}}."
      } else if (changed) {
        "{.fn read.csv} and {.fn data.frame} keep names with
         {.code check.names = FALSE}."
      } else if (length(given) == length(known) && !is.null(words$same)) {
        paste(words$order, "{.code {words$same}}.")
      }
    ),
    call
  )
}
