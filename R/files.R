# What the readers and writers of files share: paths, gzip, lines, and errors
# that name file and line.

check_path <- function(file, arg, call = caller_env()) {
  if (!rlang::is_string(file) || is.na(file) || !nzchar(file)) {
    given <- describe_value(file)
    abort_argument(
      "{.arg {arg}} must be the path of a file, not {given}.", call
    )
  }
  path <- path.expand(file)
  if (dir.exists(path)) {
    abort_argument(
      "{.arg {arg}} must be a file, and {.file {file}} is a folder.", call
    )
  }
  path
}

check_path_in <- function(file, arg = "file", call = caller_env()) {
  path <- check_path(file, arg, call)
  if (!file.exists(path)) {
    abort_argument(
      "{.arg {arg}} must be a file that is there, and {.file {file}} is not.",
      call
    )
  }
  path
}

check_path_out <- function(file, arg = "file", call = caller_env()) {
  path <- check_path(file, arg, call)
  if (!dir.exists(dirname(path))) {
    abort_argument(
      c(
        "{.arg {arg}} must be in a folder that is there.",
        x = "There is no folder {.file {dirname(file)}}."
      ),
      call
    )
  }
  path
}

is_gzip_path <- function(path) grepl("\\.gz$", path, ignore.case = TRUE)

# Binary, so that lines end in "\n" on every system.
open_for_writing <- function(path) {
  if (is_gzip_path(path)) gzfile(path, "wb") else base::file(path, "wb")
}

# The lines of a text file, plain or compressed, in UTF-8, without the marks
# that editors leave.
read_text_lines <- function(path) {
  connection <- gzfile(path, "rt") # reads plain files as well
  on.exit(close(connection))
  # Part by part, so that Ctrl-C is heard between them.
  parts <- list()
  repeat {
    part <- readLines(connection, 1e5, warn = FALSE, skipNul = TRUE)
    parts[[length(parts) + 1L]] <- part
    if (length(part) < 1e5) {
      break
    }
  }
  lines <- unlist(parts)
  if (all(validUTF8(lines))) {
    Encoding(lines) <- "UTF-8"
  } else {
    lines <- iconv(lines, "latin1", "UTF-8")
  }
  if (length(lines) > 0) {
    lines[[1]] <- sub("^\ufeff", "", lines[[1]])
  }
  sub("\r$", "", lines)
}

# The one form of an error about what is in a file: the line (NULL where it is
# the file as a whole), what it must do, and what is there instead.
abort_file <- function(file, line, must, found, hint = NULL,
                       call = caller_env()) {
  where <- if (is.null(line)) "" else paste("Line", line, "of ")
  cli_abort(
    c(
      "{where}{.file {file}} must {must}.",
      x = "{found}.",
      i = if (!is.null(hint)) "{hint}."
    ),
    class = c("fsknn_file_error", "fsknn_error"),
    call = call
  )
}

quote_text <- function(text, width = 40L) {
  text <- gsub("\t", " ", trimws(text), fixed = TRUE)
  if (nchar(text) > width) {
    text <- paste0(substr(text, 1, width), "...")
  }
  paste0("\"", text, "\"")
}

number_of <- function(count, noun, nouns = paste0(noun, "s")) {
  paste(format_bound(count), if (count == 1) noun else nouns)
}
