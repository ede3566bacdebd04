# Hints for objects that are not a matrix of points: code that makes one from
# that very object.

# Raises an error with a hint for known classes.
check_is_data <- function(x, arg, call = caller_env()) {
  if (is_index(x)) {
    abort_index(x, arg, call)
  } else if (inherits(x, "Seurat")) {
    abort_seurat(x, arg, call)
  } else if (inherits(x, "MultiAssayExperiment")) {
    abort_experiments(x, arg, call)
  } else if (inherits(x, "dist")) {
    abort_distances(arg, call)
  } else if (inherits(x, "Surv")) {
    abort_survival(arg, call)
  } else if (inherits(x, c("fsknn_edges", "fsknn_triples", "igraph"))) {
    abort_edges(x, arg, call)
  } else if (is_list_of_matrices(x)) {
    abort_list(x, arg, call)
  }
}

# Suggests the cells if there is a reduced dimension.
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

abort_edges <- function(x, arg, call) {
  is_graph <- !inherits(x, "fsknn_triples")
  what <- if (is_graph) "the edges of a graph" else "triples"
  abort_argument(
    c(
      "{.arg {arg}} must hold points, and is {what}: an object of class
       <{class(x)[[1]]}>.",
      i = "Use the data that they were made of."
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

# Returns code that makes a matrix from this object, or no hint.
hint_of_s4 <- function(x, arg) {
  code <- if (inherits(x, c("Assay", "StdAssay"))) {
    paste0("SeuratObject::GetAssayData(", arg, ")")
  } else if (inherits(x, "DimReduc")) {
    paste0("SeuratObject::Embeddings(", arg, ")")
  } else if (inherits(x, "eSet")) {
    elements <- Biobase::assayDataElementNames(x)
    if (length(elements) > 0) {
      paste0("Biobase::assayDataElement(", arg, ", \"", elements[[1]], "\")")
    }
  } else if (length(dim(x)) == 2 && has_as_matrix(x)) {
    paste0("as.matrix(", arg, ")")
  }
  if (!is.null(code)) {
    c(i = paste0("Its values: {.code ", code, "}."))
  }
}

# Checks for a method, because as.matrix() might fail or return something
# arbitrary.
has_as_matrix <- function(x) {
  any(vapply(methods::is(x), function(class) {
    methods::existsMethod("as.matrix", class) ||
      !is.null(utils::getS3method("as.matrix", class, optional = TRUE))
  }, NA))
}

# Returns code that keeps the numbers of a data frame, and the names of its rows
# if they are in a column (whose name is returned, too). `frame` is code of the
# data frame after conversion of the columns `converted`, or NULL.
keep_numbers <- function(x, arg, frame = NULL, converted = integer()) {
  numbers <- paste0("Filter(is.numeric, ", frame %||% frame_code(x, arg), ")")
  x[converted] <- 0
  at <- if (.row_names_info(x) <= 0) name_column(x)
  if (is.null(at)) {
    all_there <- !is.null(frame) && all(vapply(x, is.numeric, NA))
    return(list(code = if (all_there) frame else numbers))
  }
  names <- paste0(arg, "[[", at, "]]")
  if (anyNA(x[[at]])) {
    names <- paste0("make.unique(paste(", names, "))")
  } else if (anyDuplicated(as.character(x[[at]])) > 0) {
    names <- paste0("make.unique(as.character(", names, "))")
  }
  code <- paste0(
    "data.frame(", numbers, ", row.names = ", names, ", check.names = FALSE)"
  )
  list(code = code, column = names(x)[[at]])
}

# For a data.table, x[columns] selects rows; a column of a DataFrame may be
# encoded.
frame_code <- function(x, arg) {
  if (inherits(x, c("data.table", "fsknn_frame"))) {
    paste0("as.data.frame(", arg, ")")
  } else {
    arg
  }
}

# Returns code that converts text with numbers (`text`, from text_of_numbers())
# and integer64 columns to doubles, or NULL if there are none.
converted_code <- function(x, text, arg) {
  frame <- code <- frame_code(x, arg)
  replaced <- function(code, at, convert, options = "") {
    at <- ranges_code(at)
    paste0(
      "replace(", code, ", ", at, ", ", convert, "(", frame, "[", at, "], ",
      options, ")"
    )
  }
  if (!is.null(text$edit)) {
    edited <- edited_code(text, "text")
    convert <- paste0("function(text) ", edited, ")")
    code <- replaced(code, text$columns, "lapply", convert)
  } else if (!is.null(text$options)) {
    code <- replaced(
      code, text$columns, "type.convert", paste0(text$options, ")")
    )
  }
  long <- which(vapply(x, inherits, NA, "integer64"))
  if (length(long) > 0) {
    code <- replaced(code, long, "lapply", "as.double)")
  }
  if (code != frame) code
}

# Code that makes numbers of text, once it is edited.
edited_code <- function(text, of) {
  edited <- sprintf(text$edit, of)
  if (text$options == "as.is = TRUE") {
    return(paste0("as.numeric(", edited, ")"))
  }
  paste0("type.convert(", edited, ", ", text$options, ")")
}

# "2:9", "c(2, 4:5)".
ranges_code <- function(at) {
  runs <- split(at, cumsum(c(1, diff(at) != 1)))
  words <- vapply(runs, function(run) {
    paste(unique(range(run)), collapse = ":")
  }, "")
  if (length(words) == 1) words else paste0("c(", toString(words), ")")
}

# Columns of text that are mostly numbers. Gives their numbers `columns`, what
# is found there (`found`), how to read it (`reading`), both in cli's words, and
# `options`, those of type.convert(); NULL where no option would do. `edit`:
# code that makes R's numbers of text (%s) with commas, where no option does.
text_of_numbers <- function(x) {
  is_text <- vapply(x, function(values) {
    (is.character(values) || is.factor(values)) && is.null(dim(values))
  }, NA)
  raw <- lapply(x[is_text], as.character)
  texts <- lapply(raw, trimws)
  kinds <- lapply(texts, kinds_of_text)
  # In a table of other numbers, whole numbers as text are labels (chromosomes).
  numbers <- x[vapply(x, is_number_like, NA)]
  whole <- vapply(numbers, is_whole_column, NA)
  like <- as.logical(mapply(function(kind, text) {
    others <- known_text(text)[kind == "other"]
    decimal <- any(kind %in% c("comma", "point", "form"))
    if (mean(kind == "other") > 0.5) {
      # Names are mostly different, but words for missing values are not.
      return(decimal && length(unique(others)) <= length(others) / 2)
    }
    decimal || length(numbers) == 0 || any(kind == "other") && any(whole)
  }, kinds, texts))
  columns <- unname(which(is_text)[like])
  if (length(columns) == 0) {
    return(list(columns = integer()))
  }
  raw <- raw[like]
  texts <- texts[like]
  kinds <- kinds[like]
  in_rows <- function(kind) {
    rows <- unlist(lapply(seq_along(texts), function(at) {
      text <- texts[[at]]
      rows <- which(text %in% known_text(text))
      rows <- rows[kinds[[at]] == kind]
      stats::setNames(rows, text[rows])
    }))
    unique(data.frame(text = names(rows), row = unname(rows)))
  }
  strange <- in_rows("other")
  commas <- in_rows("comma")
  forms <- in_rows("form")
  grouped <- nrow(commas) > 0 && all(grepl(thousands, commas$text))
  mixed <- nrow(commas) > 0 && !grouped && "point" %in% unlist(kinds)
  edit <- if (nrow(forms) > 0) {
    NULL
  } else if (grouped) {
    "gsub(\",\", \"\", %s)"
  } else if (mixed) {
    "sub(\",\", \".\", %s, fixed = TRUE)"
  }
  # Numbers are meant that no option reads.
  unread <- !is.null(edit) || nrow(forms) > 0
  # type.convert() compares words with the blanks around them.
  words <- unique(c("NA", strange$text))
  blanks <- setdiff(
    unlist(Map(function(raw, text) raw[text %in% words], raw, texts)), words
  )
  words <- c(words, blanks)
  if (!is.null(edit)) {
    sign <- if (grouped) "" else "."
    words <- sub(",", sign, words, fixed = TRUE)
  }
  options <- c(
    if (length(words) > 1) {
      paste0("na.strings = c(", toString(encode_text(words)), ")")
    },
    if (nrow(commas) > 0 && !unread) "dec = \",\""
  )
  list(
    columns = columns,
    found = found_text(strange, commas, forms, grouped, mixed),
    edit = edit,
    # Of a file that has decimal points, dec = "," would spoil those.
    reading = if (!unread && (nrow(commas) == 0 || all(whole)) &&
                    length(options) > 0) {
      words <- escape_braces(paste0("{.code ", options, "}"), options)
      paste0("Read the file with ", paste(words, collapse = " and "), ".")
    },
    options = if (nrow(forms) == 0) {
      paste(c(options, "as.is = TRUE"), collapse = ", ")
    }
  )
}

is_whole_column <- function(values) {
  !any(values != trunc(values), na.rm = TRUE)
}

known_text <- function(text) {
  text[!is.na(text) & !text %in% c("", "NA", "NaN")]
}

# Matches "12,345" and "1,234,567.8"; a comma after 0 is decimal.
thousands <- "^[-+]?[1-9][0-9]{0,2}(,[0-9]{3})+([.][0-9]+)?$"

# Matches "1.234,5", "1 234", "15%", and other forms that R does not read as
# numbers.
other_forms <- paste0(
  "^[-+]?([0-9]{1,3}([.' ][0-9]{3})+|[0-9]+)([.,][0-9]+)?",
  "([eE][-+]?[0-9]+)? ?%?$"
)

# Classifies each known text: "whole", "point" or "comma" for a number, "form"
# for a number in another form, otherwise "other".
kinds_of_text <- function(text) {
  text <- known_text(text)
  number <- function(text) !is.na(suppressWarnings(as.numeric(text)))
  kind <- ifelse(number(text), "whole", "other")
  kind[kind == "whole" & grepl("[.eE]", text)] <- "point"
  with_comma <- grepl("^[^,.]*,[^,.]*$", text)
  kind[with_comma & number(sub(",", ".", text, fixed = TRUE))] <- "comma"
  kind[grepl(thousands, text)] <- "comma"
  # Replaces true minus signs and non-breaking spaces.
  plain <- gsub("\u2212", "-", text, fixed = TRUE)
  plain <- gsub("\u202f", " ", plain, fixed = TRUE)
  plain <- gsub("\u00a0", " ", plain, fixed = TRUE)
  kind[kind == "other" & grepl(other_forms, plain)] <- "form"
  if (length(kind) == 0) "other" else kind
}

found_text <- function(strange, commas, forms, grouped, mixed) {
  rows_of <- function(found) {
    counts <- sort(table(found$text), decreasing = TRUE)
    words <- paste0(
      encode_text(names(counts)), " in ", vapply(counts, tally, "", "row")
    )
    escape_braces(first_few(words))
  }
  c(
    if (nrow(strange) > 0) paste0("No number: ", rows_of(strange), "."),
    if (nrow(forms) > 0) {
      paste0("Numbers in a form that R does not read: ", rows_of(forms), ".")
    },
    if (nrow(commas) > 0) {
      mark <- if (grouped) "Comma that marks thousands: " else "Decimal comma: "
      paste0(mark, rows_of(commas), ".")
    },
    if (mixed) "There are decimal points beside decimal commas."
  )
}

encode_text <- function(text) {
  encodeString(text, quote = "\"")
}

# Escapes braces for cli's templates. `within` is the part that may contain
# braces.
escape_braces <- function(template, within = template) {
  safe <- gsub("([{}])", "\\1\\1", within)
  mapply(sub, within, safe, template, fixed = TRUE, USE.NAMES = FALSE)
}

detail_bullets <- function(words) {
  stats::setNames(as.character(words), rep("x", length(words)))
}

# Returns code that reads a file of points, by file extension. %s is the path.
file_readers <- c(
  csv = "read.csv(%s, row.names = 1)",
  tsv = "read.delim(%s, row.names = 1)",
  tab = "read.delim(%s, row.names = 1)",
  txt = "read.delim(%s, row.names = 1)",
  xlsx = "readxl::read_excel(%s)", xls = "readxl::read_excel(%s)",
  rds = "readRDS(%s)", rdata = "get(load(%s))", rda = "get(load(%s))",
  mtx = "Matrix::readMM(%s)", h5ad = "read_h5ad(%s)",
  h5 = "HDF5Array::HDF5Array(%s, name)",
  hdf5 = "HDF5Array::HDF5Array(%s, name)",
  parquet = "arrow::read_parquet(%s)", feather = "arrow::read_feather(%s)",
  cibm = "read_points(%s)", comet = "read_points(%s, num_features = )",
  fbin = "read_points(%s)", u8bin = "read_points(%s)",
  i8bin = "read_points(%s)", bed = "read_plink(%s)"
)

# The readers of text and of R's own files also read compressed files.
hint_of_path <- function(path, arg) {
  plain <- tolower(sub("[.](gz|bz2|xz)$", "", path, ignore.case = TRUE))
  ending <- tools::file_ext(plain)
  if (!nzchar(ending) && !file.exists(path)) {
    return(NULL)
  }
  if (ending == "ibin") {
    return(c(
      i = paste0("It holds neighbours, and no points: {.code read_knn(", arg,
                 ")}.")
    ))
  }
  if (!ending %in% names(file_readers)) {
    return(c(i = "Read the file first, and give its values."))
  }
  code <- sprintf(file_readers[[ending]], arg)
  if (endsWith(plain, "_series_matrix.txt")) { # of GEO
    code <- sub(", ", ", comment.char = \"!\", ", code, fixed = TRUE)
  }
  c(
    i = paste0("Read the file first: {.code ", code, "}."),
    i = if (grepl("name)", code, fixed = TRUE)) {
      paste0("The names of its data sets: {.code rhdf5::h5ls(", arg, ")}.")
    }
  )
}

# Returns the hint for a matrix of text, or for the path of a file.
hint_of_text <- function(x, arg) {
  if (rlang::is_string(x) && is.null(dim(x))) {
    return(hint_of_path(x, arg))
  }
  if (!is.matrix(x) || length(x) == 0) {
    return(NULL)
  }
  columns <- lapply(seq_len(ncol(x)), function(at) x[, at])
  text <- text_of_numbers(columns)
  if (length(text$columns) == 0) {
    return(NULL)
  }
  part <- if (is.factor(x)) array_code("as.character", arg) else arg
  if (length(text$columns) < ncol(x)) {
    part <- paste0(part, "[, ", ranges_code(text$columns), ", drop = FALSE]")
  }
  if (!is.null(text$edit)) {
    part <- paste0(
      "replace(", part, ", TRUE, ", sprintf(text$edit, part), ")"
    )
  }
  code <- paste0("type.convert(", part, ", ", text$options, ")")
  code <- escape_braces(paste0("{.code ", code, "}"), code)
  c(
    detail_bullets(text$found),
    i = if (!is.null(text$options)) paste0("Convert it: ", code, ".")
  )
}

code_of_doubles <- function(x, arg) {
  if (is.null(dim(x))) {
    return(paste0("as.matrix(as.double(", arg, "))"))
  }
  array_code("as.double", arg)
}

# Code that converts the values of an array.
array_code <- function(convert, arg) {
  paste0(
    "array(", convert, "(", arg, "), dim(", arg, "), dimnames(", arg, "))"
  )
}

# Returns the first column of text whose values are mostly different.
name_column <- function(x) {
  good <- vapply(x, function(values) {
    (is.character(values) || is.factor(values)) && is.null(dim(values)) &&
      length(unique(values)) > length(values) / 2
  }, NA)
  if (any(good)) which(good)[[1]]
}

# Reports a column of numbers that looks like names of the rows. It has row
# numbers (1, 2, ...), or different whole numbers beside columns of fractions or
# under a name such as "entrez_id". In a matrix, only the first column is
# examined.
tell_if_ids <- function(x, transposed, arg) {
  at <- if (is.data.frame(x)) {
    Find(function(at) is_id(x, at), seq_along(x))
  } else if (is.matrix(x) && is_number_like(x) && !is.null(colnames(x)) &&
               ncol(x) > 1) {
    first <- as.data.frame(x[, 1:2, drop = FALSE])
    if (is_id(first, 1)) 1L
  }
  if (is.null(at)) {
    return(invisible())
  }
  name <- colnames(x)[[at]]
  as <- if (transposed) "a point" else "a feature (sample)"
  frame <- frame_code(x, arg)
  code <- if (is.matrix(x)) {
    paste0(arg, "[, -1, drop = FALSE]")
  } else {
    paste0(
      "data.frame(", frame, "[-", at, "], row.names = ", arg, "[[", at,
      "]], check.names = FALSE)"
    )
  }
  first <- paste(format_bound(x[[1, at]]), format_bound(x[[2, at]]), sep = ", ")
  cli::cli_inform(
    c(
      "Column {.val {name}} of {.arg {arg}} ({first}, ...) is taken as {as}, and
       looks like names of the rows.",
      i = "If it is: {.code {code}}."
    ),
    class = "fsknn_ids_message"
  )
}

is_id <- function(frame, at) {
  values <- frame[[at]]
  if (!is_number_like(values) || is.logical(values) || is.object(values) ||
        !is.null(dim(values)) || length(values) < 3 || length(frame) < 2 ||
        !are_different_ids(values)) {
    return(FALSE)
  }
  name <- names(frame)[[at]]
  if (!is_valid_text(name)) {
    return(FALSE) # this is an error elsewhere
  }
  name <- tolower(name)
  if (grepl("entrez|(^|[^a-z])(gene_?)?ids?$", name)) {
    return(TRUE)
  }
  # Row numbers count as names for any other columns.
  if (all(diff(values) == 1) && values[[1]] <= 1 && grepl(row_words, name)) {
    return(TRUE)
  }
  others <- frame[-at]
  others <- others[vapply(others, is_number_like, NA)]
  (max(values) >= 100 || all(diff(values) == 1) && values[[1]] <= 1) &&
    length(others) > 0 && !any(vapply(others, is_whole_column, NA))
}

row_words <- "^(x|v1|rows?|rownames?|index|nr|no|unnamed.*)?$"

are_different_ids <- function(values) {
  !anyNA(values) && all(is.finite(values)) && values[[1]] >= 0 &&
    values[[1]] == trunc(values[[1]]) && all(values == trunc(values)) &&
    all(values >= 0) && anyDuplicated(values) == 0
}

# A square symmetric matrix with zeros along the diagonal may hold distances.
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

# This copies nothing and stops at the first difference.
is_symmetric <- function(x) {
  for (at in seq_len(nrow(x))) {
    if (!isTRUE(all(x[at, ] == x[, at]))) {
      return(FALSE)
    }
  }
  TRUE
}

# Returns a hint where a verb's data are a single value or text, and another of
# its arguments looks like data. `frame` is that of the verb.
swapped_hint <- function(frame) {
  called <- if (is.environment(frame)) function_of(frame)
  if (is.null(called)) {
    return(NULL)
  }
  names <- setdiff(as.character(names(formals(called))), "...")
  values <- lapply(rlang::set_names(names), function(name) {
    missing <- eval(call("missing", as.name(name)), frame)
    if (!missing) tryCatch(get0(name, frame), error = function(err) NULL)
  })
  of_data <- intersect(c("x", "query", "edges", "result"), names)
  odd <- Filter(function(name) {
    value <- values[[name]]
    plain <- is.atomic(value) && is.null(dim(value)) && !is.object(value)
    plain && (length(value) == 1 || is.character(value))
  }, of_data)
  data <- Filter(function(name) {
    length(dim(values[[name]])) == 2
  }, setdiff(names, c(of_data, "data", "adjust", "outcome", "vertices")))
  if (length(odd) > 0 && length(data) > 0) {
    paste0(
      "Are these swapped? {.arg ", odd[[1]], "} comes before {.arg ",
      data[[1]], "}."
    )
  }
}
