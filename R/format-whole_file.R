# Writes files completely or not at all. They are written under a temporary
# name, flushed to the disk, and then renamed. After an error, Ctrl-C or a full
# disk, the previous file is unchanged.

# `write` is called with a function that takes lines, and its value is returned.
# `file` is the path as the user wrote it.
write_whole_file <- function(file, path, write, call = caller_env()) {
  check <- function(answer) in_output(answer, file, call)
  output <- check(cpp_open_output(enc2native(path)))$output
  on.exit(cpp_drop_output(output))
  packed <- is_gzip_path(path)
  waiting <- new.env(parent = emptyenv())
  waiting$text <- list()
  waiting$size <- 0
  flush <- function() {
    bytes <- charToRaw(paste(waiting$text, collapse = ""))
    deflated <- if (packed) memCompress(bytes, "gzip")
    check(cpp_write_output(output, bytes, deflated))
    waiting$text <- list()
    waiting$size <- 0
  }
  put <- function(lines) {
    text <- paste0(enc2utf8(lines), "\n", collapse = "")
    waiting$text[[length(waiting$text) + 1L]] <- text
    waiting$size <- waiting$size + nchar(text, "bytes")
    if (waiting$size > 2^20) {
      flush()
    }
  }
  given <- write(put)
  if (waiting$size > 0) {
    flush()
  }
  check(cpp_finish_output(output))
  invisible(given)
}

# `write` is called with a function that takes raw vectors.
write_whole_bytes <- function(file, path, write, call = caller_env()) {
  check <- function(answer) in_output(answer, file, call)
  output <- check(cpp_open_output(enc2native(path)))$output
  on.exit(cpp_drop_output(output))
  given <- write(function(bytes) {
    check(cpp_write_output(output, bytes, NULL))
  })
  check(cpp_finish_output(output))
  invisible(given)
}

# Returns the core's answer, or raises an error if the file system refused.
in_output <- function(answer, file, call) {
  if (identical(answer$failure, "file")) {
    abort_unwritten(file, answer$message, call)
  }
  in_core(answer, call)
}

abort_unwritten <- function(file, words, call) {
  cli_abort(
    c(
      "{.file {file}} can't be written.",
      x = "{words}.",
      i = "What was there before is as it was."
    ),
    class = c("fsknn_file_error", "fsknn_error"),
    call = call
  )
}

# Splits rows into ranges of about `at_once`.
row_ranges <- function(num_rows, at_once) {
  lapply(seq_len(ceiling(num_rows / at_once)), function(range) {
    seq.int((range - 1) * at_once + 1, min(range * at_once, num_rows))
  })
}

# Whole numbers below 2^64, the largest ids, are written in full, as the core
# does up to 2^53. Others have `digits` significant digits. Of 17 digits, the
# last two are written only if fewer would give another double. R's own parser
# is sometimes off by one bit, but those of other programs are not.
number_text <- function(x, digits = 17L) {
  text <- cpp_number_text(x, digits)
  large <- which(abs(x) > 2^53 & abs(x) < 2^64)
  text[large] <- sprintf("%.0f", x[large])
  text
}
