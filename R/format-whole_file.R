# Files written all or nothing: beside their name, to the disk, and under it
# then. An error, Ctrl-C or a full disk leaves what was there as it was.

# write: called with a function that takes lines; what it gives is given. file:
# as the user gave it.
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

# write: called with a function that takes raw vectors.
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

# What the core gave, or what the file system said, in words.
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

# Stretches of rows, each of about so many.
row_stretches <- function(num_rows, at_once) {
  lapply(seq_len(ceiling(num_rows / at_once)), function(stretch) {
    seq.int((stretch - 1) * at_once + 1, min(stretch * at_once, num_rows))
  })
}

# Whole numbers below 2^64, the largest ids that there are, are written in full,
# as the core does up to 2^53. Others have `digits` significant digits. Of 17
# the last two stand only where they tell of another double: R's own reading is
# off by a bit at times, that of others not.
number_text <- function(x, digits = 17L) {
  text <- cpp_number_text(x, digits)
  large <- which(abs(x) > 2^53 & abs(x) < 2^64)
  text[large] <- sprintf("%.0f", x[large])
  text
}
