# The text format of GPU-FS-kNN for points: see read_points().

read_cibm_file <- function(file, path, call) {
  lines <- read_text_lines(file, path, call)
  # Blank lines are dropped, but the others keep their line numbers for the
  # errors.
  number <- which(grepl("[^ \t]", lines))
  cibm <- list(
    file = file, text = lines[number], number = number,
    num_lines = length(lines), call = call
  )
  expect_tag(cibm, 1, "<MicroarrayData>")
  counts <- read_counts(cibm)
  num_points <- counts[[1]]
  num_features <- counts[[2]]
  x <- read_rows(cibm, num_points, num_features)

  at <- num_points + 3
  expect_tag(cibm, at, "<SamplesNames>", paste(
    "after", number_of(num_points, "row")
  ))
  samples <- read_fields(cibm, at + 1, num_features, "name")
  check_names_once(cibm, samples, rep(at + 1, num_features), "sample")
  expect_tag(cibm, at + 2, "<SamplesClasses>", "after the samples' names")
  classes <- read_fields(cibm, at + 3, num_features, "class", "classes")
  expect_tag(cibm, at + 4, "<EndOfFile>", "after the samples' classes")
  if (length(cibm$text) > at + 4) {
    abort_cibm(cibm, at + 5, "not be there: <EndOfFile> ends the file",
               it_reads(cibm, at + 5))
  }
  colnames(x) <- samples
  attr(x, "classes") <- as_classes(classes)
  x
}

write_cibm_file <- function(x, file, path, class, call) {
  check_cibm_matrix(x, call)
  classes <- match_names(
    class %||% attr(x, "classes"), colnames(x), "class", "features",
    call = call
  )
  classes <- cibm_classes(classes, ncol(x), call)
  points <- rownames(x) %||% paste0("F_", seq_len(nrow(x)))
  samples <- colnames(x) %||% paste0("C", seq_len(ncol(x)))
  check_cibm_names(points, "row", call)
  check_cibm_names(samples, "column", call)

  write_whole_file(file, path, call = call, write = function(put) {
    put(c("<MicroarrayData>", paste(nrow(x), ncol(x), sep = "\t")))
    # Rows are written in blocks, because a matrix as text is many times larger.
    for (rows in row_ranges(nrow(x), max(1, 5e5 %/% ncol(x)))) {
      columns <- lapply(seq_len(ncol(x)), function(column) {
        number_text(x[rows, column])
      })
      put(do.call(paste, c(list(points[rows]), columns, sep = "\t")))
    }
    put(c(
      "<SamplesNames>", paste(samples, collapse = "\t"),
      "<SamplesClasses>", paste(classes, collapse = "\t"), "<EndOfFile>"
    ))
  })
}

# --- reading -----------------------------------------------------------------

# `at` counts only lines that are not blank.
abort_cibm <- function(cibm, at, must, found, hint = NULL) {
  abort_file(cibm$file, cibm$number[[at]], must, found, hint, cibm$call)
}

abort_truncated <- function(cibm, must) {
  found <- if (cibm$num_lines == 0) {
    "It is empty"
  } else {
    paste("It ends at line", cibm$num_lines)
  }
  abort_file(cibm$file, NULL, must, found, call = cibm$call)
}

it_reads <- function(cibm, at) {
  paste("It reads", quote_text(cibm$text[[at]]))
}

line_2_says <- function(cibm, count, noun) {
  paste("Line", cibm$number[[2]], "says", number_of(count, noun))
}

expect_tag <- function(cibm, at, tag, after = NULL) {
  if (at > length(cibm$text)) {
    abort_truncated(cibm, paste(c("have a line", tag, after), collapse = " "))
  }
  if (trim_blanks(cibm$text[[at]]) != tag) {
    hint <- if (tag == "<SamplesNames>") {
      line_2_says(cibm, at - 3, "point")
    }
    must <- paste(c("be", tag, after), collapse = " ")
    abort_cibm(cibm, at, must, it_reads(cibm, at), hint)
  }
}

read_counts <- function(cibm) {
  what <- "two whole numbers, of points and of features"
  if (length(cibm$text) < 2) {
    abort_truncated(cibm, paste("have a second line with", what))
  }
  fields <- split_fields(cibm$text[[2]])[[1]]
  counts <- suppressWarnings(as.numeric(fields))
  good <- length(counts) == 2 && all(grepl("^[0-9]+$", fields)) &&
    all(counts >= 1 & counts < .Machine$integer.max - 8)
  if (!good) {
    abort_cibm(cibm, 2, paste("hold", what), it_reads(cibm, 2))
  }
  counts
}

# R's split by a regular expression measures the rest of the line at each field.
# For a long line, that would take quadratic time.
split_fields <- function(text) {
  text <- chartr("\t", " ", text)
  fields <- strsplit(text, " ", fixed = TRUE)
  has_empty <- startsWith(text, " ") | grepl("  ", text, fixed = TRUE)
  fields[has_empty] <- lapply(
    fields[has_empty], function(of_line) of_line[nzchar(of_line)]
  )
  fields
}

is_tag <- function(text) grepl("^[ \t]*<[A-Za-z]+>[ \t]*$", text)

read_rows <- function(cibm, num_points, num_features) {
  # Only lines that exist are read, so that a wrong count cannot exhaust memory.
  num_rows <- min(num_points, length(cibm$text) - 2)
  tag <- which(is_tag(cibm$text[seq_len(num_rows) + 2]))
  if (length(tag) > 0) {
    abort_cibm(
      cibm, tag[[1]] + 2,
      paste("be row", tag[[1]], "of", format_bound(num_points)),
      it_reads(cibm, tag[[1]] + 2), line_2_says(cibm, num_points, "point")
    )
  }
  # The same holds for the number of features: a row has at most one value for
  # two characters.
  if (num_rows > 0 && 2 * num_features > nchar(cibm$text[[3]], "bytes")) {
    num_values <- length(split_fields(cibm$text[[3]])[[1]]) - 1
    abort_row(cibm, 1, num_features, num_values)
  }
  at_once <- max(1, 5e5 %/% num_features)
  blocks <- lapply(row_ranges(num_rows, at_once), function(rows) {
    scan_rows(cibm, rows, num_features) %||%
      split_rows(cibm, rows, num_features)
  })
  if (num_rows < num_points) {
    abort_truncated(cibm, paste("have", number_of(num_points, "row")))
  }
  names <- unlist(lapply(blocks, `[[`, "names"))
  check_names_once(cibm, names, seq_len(num_points) + 2, "row")
  x <- do.call(rbind, lapply(blocks, `[[`, "values"))
  rownames(x) <- names
  x
}

# Reads regular rows ten times as fast as split_rows(). Returns NULL for others.
scan_rows <- function(cibm, rows, num_features) {
  text <- cibm$text[rows + 2]
  # scan() would drop a byte-order mark.
  if (any(has_tab_rules(text) | has_odd_number(text)) ||
        startsWith(text[[1]], "\ufeff")) {
    return(NULL)
  }
  what <- c(list(""), rep(list(0), num_features))
  fields <- tryCatch(
    scan(
      text = text, what = what, quote = "", quiet = TRUE,
      na.strings = character(), multi.line = FALSE
    ),
    error = function(condition) NULL
  )
  if (is.null(fields) || length(fields[[1]]) != length(rows)) {
    return(NULL)
  }
  values <- unlist(fields[-1], use.names = FALSE)
  if (!all(is.finite(values))) {
    return(NULL)
  }
  list(names = fields[[1]], values = matrix(values, nrow = length(rows)))
}

# Finds names that only a tab ends, empty names and empty cells.
has_tab_rules <- function(text) {
  grepl("^ *(\t|[^ \t]+ +[^ \t][^\t]*\t)|\t *\t", text, perl = TRUE)
}

# R reads 0x10 as 16 and 1e as 1, but the format has only decimal numbers.
has_odd_number <- function(text) {
  grepl(
    "(^|[ \t])[-+]?0[xX]|[0-9.][eE][-+]?([ \t]|$)", text, perl = TRUE
  )
}

# Reads rows that scan_rows() cannot read. It allows names with spaces and
# reports errors.
split_rows <- function(cibm, rows, num_features) {
  fields <- lapply(rows, row_fields, cibm = cibm, num_features = num_features)
  fields <- matrix(unlist(fields), nrow = num_features + 1)
  text <- fields[-1, , drop = FALSE]
  values <- suppressWarnings(as.numeric(text))
  bad <- which(!is.finite(values) | has_odd_number(text))
  if (length(bad) > 0) {
    column <- (bad[[1]] - 1) %% num_features + 1
    row <- rows[[(bad[[1]] - 1) %/% num_features + 1]]
    abort_cibm(
      cibm, row + 2, "hold a name and finite numbers",
      paste("Value", column, "is", quote_text(text[[bad[[1]]]]))
    )
  }
  list(
    names = fields[1, ],
    values = matrix(values, ncol = num_features, byrow = TRUE)
  )
}

# Splits a row into name and values. If it has tabs, the first one ends the
# name, and no cell may be empty. Spaces may also separate values, as in File
# S1.
row_fields <- function(row, cibm, num_features) {
  text <- sub("[ \t]+$", "", cibm$text[[row + 2]])
  if (!grepl("\t", text, fixed = TRUE)) {
    fields <- split_fields(text)[[1]]
  } else {
    name <- trim_blanks(sub("\t.*", "", text))
    cells <- strsplit(sub("^[^\t]*\t", "", text), "\t", fixed = TRUE)[[1]]
    cells <- trim_blanks(cells)
    if (name == "") {
      abort_cibm(cibm, row + 2, "begin with a name", "There is a tab before it")
    }
    empty <- which(cells == "")
    if (length(empty) > 0) {
      abort_cibm(
        cibm, row + 2, "have no empty cell",
        paste("The cell of value", empty[[1]], "is empty")
      )
    }
    fields <- c(name, unlist(split_fields(cells)))
  }
  if (length(fields) != num_features + 1) {
    abort_row(cibm, row, num_features, length(fields) - 1)
  }
  fields
}

abort_row <- function(cibm, row, num_features, num_values) {
  abort_cibm(
    cibm, row + 2,
    paste("hold a name and", number_of(num_features, "value")),
    paste("It holds a name and", number_of(num_values, "value")),
    line_2_says(cibm, num_features, "feature")
  )
}

# Reads the line after a tag, with a field for each sample.
read_fields <- function(cibm, at, count, noun, nouns = paste0(noun, "s")) {
  wanted <- number_of(count, noun, nouns)
  if (at > length(cibm$text)) {
    abort_truncated(cibm, paste("have a line with", wanted))
  }
  text <- cibm$text[[at]]
  fields <- split_fields(text)[[1]]
  if (!is_tag(text)) {
    cells <- trim_blanks(strsplit(trim_blanks(text), "\t", fixed = TRUE)[[1]])
    empty <- which(cells == "")
    if (length(empty) > 0) {
      abort_cibm(
        cibm, at, paste("hold", wanted, "and no empty cell"),
        paste("The cell of", noun, empty[[1]], "is empty")
      )
    }
    if (length(cells) == count) {
      return(cells)
    }
    if (length(fields) == count) {
      return(fields)
    }
  }
  found <- if (is_tag(text)) {
    it_reads(cibm, at)
  } else {
    paste("It holds", number_of(length(fields), noun, nouns))
  }
  abort_cibm(
    cibm, at, paste("hold", wanted), found,
    line_2_says(cibm, count, "feature")
  )
}

check_names_once <- function(cibm, names, at, noun) {
  twice <- which(duplicated(names))
  if (length(twice) == 0) {
    return(invisible())
  }
  name <- names[[twice[[1]]]]
  first <- at[[match(name, names)]]
  again <- at[[twice[[1]]]]
  where <- if (first != again) paste(" in line", cibm$number[[first]])
  abort_cibm(
    cibm, again, paste("give each", noun, "a name of its own"),
    paste0(quote_text(name), " was there already", where)
  )
}

# Text such as "007" stays text, because a number would lose the zeros.
as_classes <- function(fields) {
  whole <- all(grepl("^(0|-?[1-9][0-9]{0,8})$", fields))
  if (whole) as.integer(fields) else fields
}

# --- writing -----------------------------------------------------------------

check_cibm_matrix <- function(x, call = caller_env()) {
  if (!is.matrix(x) || !is.numeric(x)) {
    given <- describe_type(x)
    abort_argument("{.arg x} must be a numeric matrix, not {given}.", call)
  }
  if (nrow(x) < 1 || ncol(x) < 1) {
    abort_argument(
      "{.arg x} must have rows and columns, not {nrow(x)} x {ncol(x)}.", call
    )
  }
  bad <- which(!is.finite(x))
  if (length(bad) > 0) {
    at <- arrayInd(bad[[1]], dim(x))
    abort_argument(
      c(
        "{.arg x} must hold finite numbers only.",
        x = "{format_count(length(bad))} {cli::qty(length(bad))}value{?s}
             {?is/are} not, first that in row {at[[1]]}, column {at[[2]]}.",
        i = "The CIBM format has no sign for a missing value."
      ),
      call
    )
  }
}

# The sign is in a variable, because cli treats it as markup in a message.
tag_start <- "<"

# Checks that text is read back unchanged: it has no tabs and is not a tag.
is_cibm_text <- function(text) {
  !is.na(text) & nzchar(text) & !grepl("^[ <]|[\t\r\n]| $", text)
}

check_cibm_names <- function(names, noun, call = caller_env()) {
  check_names_text(names, "x", noun, call)
  bad <- which(!is_cibm_text(names))
  if (length(bad) > 0) {
    abort_argument(
      c(
        "The {noun} names of {.arg x} must be text without tabs, line ends or
         outer spaces that does not start with {.val {tag_start}}.",
        x = "The name of {noun} {bad[[1]]} is {.val {names[[bad[[1]]]]}}."
      ),
      call
    )
  }
  twice <- which(duplicated(names))
  if (length(twice) > 0) {
    name <- names[[twice[[1]]]]
    which_names <- if (noun == "row") "Rows" else "Columns"
    abort_argument(
      c(
        "The {noun} names of {.arg x} must be unique.",
        x = "{which_names} {match(name, names)} and {twice[[1]]} are both called
             {.val {name}}."
      ),
      call
    )
  }
}

cibm_classes <- function(classes, num_samples, call = caller_env()) {
  if (is.null(classes)) {
    return(rep("0", num_samples))
  }
  if (!is.atomic(classes) || length(classes) != num_samples) {
    abort_argument(
      c(
        "{.arg class} must have one class for each of the {num_samples}
         column{?s} of {.arg x}.",
        x = "It has {length(classes)}."
      ),
      call
    )
  }
  check_labels_text(classes, "class", call)
  text <- as.character(classes)
  if (is.numeric(classes) && !anyNA(classes)) {
    text <- number_text(classes)
  }
  bad <- which(is.na(classes) | !is_cibm_text(text))
  if (length(bad) > 0) {
    abort_argument(
      c(
        "{.arg class} must be numbers, or text without tabs, line ends or
         outer spaces that does not start with {.val {tag_start}}.",
        x = "The class of column {bad[[1]]} is {.val {text[[bad[[1]]]]}}."
      ),
      call
    )
  }
  text
}
