# Code that readers and writers of files share: paths, gzip, lines, and errors
# that name file and line.

check_path <- function(file, arg, call = caller_env()) {
  check_supplied(file, arg, call)
  if (!rlang::is_string(file) || is.na(file) || !nzchar(file)) {
    given <- describe_value(file)
    abort_argument(
      "{.arg {arg}} must be the path of a file, not {given}.", call
    )
  }
  check_text(file, paste0("`", arg, "`"), "path", arg, call)
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

# Returns the format: that given, or the one that the ending of the file's name
# is called. Only files of the formats `packed` are compressed. `elsewhere` maps
# other endings to the verb for them.
file_format <- function(file, format, formats, packed = character(),
                        endings = formats, elsewhere = other_endings,
                        call = caller_env()) {
  format <- if (is.null(format)) {
    format_of_ending(file, endings, packed, elsewhere, call)
  } else {
    check_choice(format, formats, "format", call = call)
  }
  if (is_gzip_path(file) && !format %in% packed) {
    abort_argument(
      c(
        "{.arg file} can't end in {.val .gz} where the format is
         {.val {format}}.",
        i = if (length(packed) > 0) {
          "Only files of the format {.val {packed}} are compressed."
        }
      ),
      call
    )
  }
  format
}

format_of_ending <- function(file, endings, packed, elsewhere, call) {
  name <- sub("\\.(gz|bz2|xz)$", "", basename(file), ignore.case = TRUE)
  ending <- if (grepl(".", name, fixed = TRUE)) tolower(sub("^.*\\.", "", name))
  if (isTRUE(ending %in% endings)) {
    return(ending)
  }
  known <- paste0("\".", endings, "\"", collapse = ", ")
  verb <- if (!is.null(ending)) elsewhere[ending]
  abort_argument(
    c(
      "{.arg file} must end in one of {known}, unless {.arg format} is given.",
      x = "It is {.file {file}}.",
      i = if (isTRUE(!is.na(verb))) "See {.fn {verb}} for such files."
    ),
    call
  )
}

# The readers of files by their endings.
other_endings <- c(
  fbin = "read_points", u8bin = "read_points", i8bin = "read_points",
  cibm = "read_points", comet = "read_edges", ibin = "read_knn",
  knn = "read_knn", h5ad = "read_h5ad", bed = "read_plink"
)

# Raises an error for an argument that is not for this format. `given` is a list
# of arguments, NULL if not given.
check_for_formats <- function(format, formats, given, call = caller_env()) {
  given <- names(given)[lengths(given) > 0]
  if (!format %in% formats && length(given) > 0) {
    abort_for_formats(given[[1]], formats, format, call)
  }
}

abort_for_formats <- function(arg, formats, format, call = caller_env()) {
  formats <- paste0("\"", formats, "\"", collapse = ", ")
  abort_argument(
    "{.arg {arg}} is for files of the format {formats}, and {.arg file} has the
     format {.val {format}}.",
    call
  )
}

# --- reading -----------------------------------------------------------------

# Returns the lines of a text file, plain or compressed, in UTF-8 and without
# byte-order mark and carriage returns.
read_text_lines <- function(file, path, call = caller_env()) {
  parts <- read_text_parts(file, path, call)
  # The whole file is checked, because a part in Latin-1 may be valid UTF-8 by
  # chance.
  is_utf8 <- all(vapply(parts, validUTF8, NA))
  lines <- lapply(parts, function(text) {
    if (is_utf8) {
      Encoding(text) <- "UTF-8"
    } else {
      text <- iconv(text, "latin1", "UTF-8")
    }
    if (grepl("\r", text, fixed = TRUE)) {
      text <- gsub("\r\n?", "\n", text, perl = TRUE)
    }
    strsplit(text, "\n", fixed = TRUE)[[1]]
  })
  lines <- as.character(unlist(lines))
  if (length(lines) > 0) {
    lines[[1]] <- sub("^\ufeff", "", lines[[1]])
  }
  lines
}

# Returns the text in parts of whole lines.
read_text_parts <- function(file, path, call) {
  blocks <- unpack_file(file, path, call)
  parts <- list()
  kept <- list() # parts of a line longer than a block
  for (at in seq_along(blocks)) {
    block <- blocks[[at]]
    if (length(grepRaw(as.raw(0), block, fixed = TRUE)) > 0) {
      abort_nul(file, blocks, call)
    }
    ends <- grepRaw("\n", block, fixed = TRUE, all = TRUE)
    last <- if (at == length(blocks)) length(block) else max(0L, ends)
    if (last > 0) {
      text <- c(kept, list(block[seq_len(last)]))
      parts[[length(parts) + 1L]] <- rawToChar(unlist(text))
      kept <- list()
    }
    if (last < length(block)) {
      kept[[length(kept) + 1L]] <- block[seq.int(last + 1L, length(block))]
    }
  }
  parts
}

abort_nul <- function(file, blocks, call) {
  bytes <- unlist(blocks)
  before <- bytes[seq_len(grepRaw(as.raw(0), bytes, fixed = TRUE) - 1L)]
  ends <- gregexpr("\r\n?|\n", rawToChar(before), useBytes = TRUE)[[1]]
  first <- as.integer(utils::head(bytes, 2))
  abort_file(
    file, sum(ends > 0) + 1, "be text", "It has a NUL byte",
    if (setequal(first, c(0xfe, 0xff))) {
      "The file seems to be in UTF-16: save it as UTF-8"
    },
    call
  )
}

# --- compressed files --------------------------------------------------------

# Returns the bytes of a file, decompressed if necessary. Ctrl-C is possible
# between two blocks.
unpack_file <- function(file, path, call) {
  connection <- suppressWarnings(
    tryCatch(gzfile(path, "rb"), error = function(err) NULL)
  )
  if (is.null(connection)) {
    abort_file(
      file, NULL, "be a file that can be read", "It can't be opened",
      call = call
    )
  }
  on.exit(close(connection))
  packed <- packed_by(path)
  if (packed == "bzip2") {
    return(unpack_bzip2(file, path, call))
  }
  blocks <- list()
  # A small file is read at once into a small block.
  at_once <- min(2^20, max(2^12, file.size(path)))
  repeat {
    block <- tryCatch(
      readBin(connection, "raw", at_once),
      warning = function(condition) abort_damaged(file, call),
      error = function(condition) abort_damaged(file, call)
    )
    if (length(block) == 0) {
      break
    }
    blocks[[length(blocks) + 1L]] <- block
  }
  if (packed == "gzip" && !ends_as_gzip(path, blocks)) {
    abort_damaged(file, call)
  }
  blocks
}

packed_by <- function(path) {
  first <- readBin(path, "raw", 3)
  if (identical(first[1:2], as.raw(c(0x1f, 0x8b)))) {
    "gzip"
  } else if (identical(first, charToRaw("BZh"))) {
    "bzip2"
  } else {
    "other"
  }
}

# A gzip file ends with the checksum and length of its last member. R does not
# detect a truncated one.
ends_as_gzip <- function(path, blocks) {
  size <- file.size(path)
  connection <- base::file(path, "rb")
  on.exit(close(connection))
  seek(connection, size - 8)
  end <- readBin(connection, "raw", 8)
  length <- sum(as.integer(end[5:8]) * 256^(0:3))
  # The length is stored modulo 4 GiB.
  lengths <- seq(length, max(length, sum(lengths(blocks))), by = 2^32)
  for (length in lengths) {
    if (identical(cpp_crc32(blocks, length), end[1:4])) {
      return(TRUE)
    }
  }
  FALSE
}

# R takes a damaged bzip2 file for a complete one, and memDecompress()
# decompresses only the first of several streams.
unpack_bzip2 <- function(file, path, call) {
  bytes <- readBin(path, "raw", file.size(path))
  starts <- grepRaw("BZh[1-9]1AY&SY", bytes, all = TRUE)
  if (!1L %in% starts) {
    abort_damaged(file, call)
  }
  ends <- c(starts[-1] - 1L, length(bytes))
  unpack <- function(start, end) {
    memDecompress(bytes[seq.int(start, end)], "bzip2")
  }
  tryCatch(
    Map(unpack, starts, ends),
    error = function(condition) abort_damaged(file, call)
  )
}

abort_damaged <- function(file, call) {
  abort_file(
    file, NULL, "be whole", "It is compressed, and damaged or cut off",
    call = call
  )
}

# Raises an error about the content of a file. It has the line (or NULL for the
# whole file), what must hold, and what was found.
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

# trimws() uses a Perl regular expression, which takes quadratic time on a long
# run of blanks between two words. This one is linear.
trim_blanks <- function(text) gsub("^[ \t\r\n]+|[ \t\r\n]+$", "", text)

quote_text <- function(text, width = 40L) {
  text <- gsub("\t", " ", trim_blanks(text), fixed = TRUE)
  if (nchar(text) > width) {
    text <- paste0(substr(text, 1, width), "...")
  }
  paste0("\"", text, "\"")
}

number_of <- function(count, noun, nouns = paste0(noun, "s")) {
  paste(format_bound(count), if (count == 1) noun else nouns)
}
