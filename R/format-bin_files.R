# The files of big-ann-benchmarks: points (.fbin, .u8bin, .i8bin) and neighbours
# (.ibin).

bin_point_types <- c("fbin", "u8bin", "i8bin")

bin_value_bytes <- c(fbin = 4, u8bin = 1, i8bin = 1, ibin = 4, dbin = 8)

bin_value_words <- c(
  fbin = "floats of 4 bytes", u8bin = "bytes", i8bin = "bytes with a sign",
  ibin = "integers of 4 bytes", dbin = "doubles"
)

bin_ending <- function(path) {
  ending <- tolower(tools::file_ext(path))
  if (ending %in% names(bin_value_bytes)) ending
}

open_bin <- function(file, path, type, call) {
  head <- check_bin_head(file, path, type, call)
  size <- c(head$rows, head$columns)
  new_lazy_rows(
    "fsknn_bin_file", size, NULL,
    function(rows, columns) {
      values <- read_bin(file, path, type, rows, call = call)
      if (ncol(values) != size[[2]]) {
        abort_file(
          file, NULL, "be as it was when it was opened",
          "Its rows have another length now", call = call
        )
      }
      if (is.null(columns)) values else values[, columns, drop = FALSE]
    },
    file = file, type = type
  )
}

# Checks the header before anything else is read. `bytes_of_place` holds the
# possible bytes of an entry: there are two if each may also have a distance.
check_bin_head <- function(file, path, type, call,
                           bytes_of_place = bin_value_bytes[[type]]) {
  head <- in_bin(cpp_bin_head(path), file, "read", call)
  whole <- function(number) {
    format(number, scientific = FALSE, big.mark = ",", trim = TRUE)
  }
  if (is.na(head$rows)) {
    abort_file(
      file, NULL, "begin with two numbers of 4 bytes, of rows and of columns",
      paste("It has", number_of(head$bytes, "byte")), call = call
    )
  }
  shape <- paste(whole(head$rows), "x", whole(head$columns))
  if (head$rows == 0 || head$columns == 0) {
    abort_file(
      file, NULL, "have rows and columns", paste("It says", shape), call = call
    )
  }
  if (max(head$rows, head$columns) > .Machine$integer.max) {
    abort_file(
      file, NULL, "have no more than 2^31 - 1 rows and columns",
      paste("It says", shape), call = call
    )
  }
  places <- head$rows * head$columns
  expected <- 8 + places * bytes_of_place
  if (!head$bytes %in% expected) {
    of_place <- (head$bytes - 8) / places
    others <- setdiff(
      bin_point_types[bin_value_bytes[bin_point_types] == of_place], type
    )
    abort_file(
      file, NULL, "be as long as it says",
      paste0(
        shape, " values of ", paste(bytes_of_place, collapse = " or "),
        " bytes take ", paste(whole(expected), collapse = " or "),
        " bytes, and it has ", whole(head$bytes)
      ),
      if (length(others) > 0 && type %in% bin_point_types) {
        paste0(
          "Values of the format ",
          paste0("\"", others, "\"", collapse = " or "), " would be so long"
        )
      },
      call
    )
  }
  head
}

# Returns the core's answer, or raises an error if the file system refused.
in_bin <- function(answer, file, verb, call) {
  if (!identical(answer$failure, "file")) {
    return(in_core(answer, call))
  }
  if (verb == "written") {
    abort_unwritten(file, answer$message, call)
  }
  cli_abort(
    c("{.file {file}} can't be {verb}.", x = "{answer$message}."),
    class = c("fsknn_file_error", "fsknn_error"), call = call
  )
}

# Reads rows as they are stored. `start` is the byte offset of row 1.
read_bin <- function(file, path, type, rows, start = 8, shifted = FALSE,
                     call = caller_env()) {
  answer <- cpp_read_bin(path, type, start, as.double(rows), shifted)
  values <- in_bin(answer, file, "read", call)$values
  # A float cannot hold R's NA.
  if (anyNA(values)) {
    values[is.na(values)] <- NA
  }
  values
}

#' @export
print.fsknn_bin_file <- function(x, ...) {
  cat(
    tally(nrow(x), "point"), " of ", tally(ncol(x), "feature"), ": ",
    bin_value_words[[x$type]], " in \"", x$file, "\"\n", sep = ""
  )
  invisible(x)
}

# A string is a file of points if its extension says so.
#' @export
take_matrix.character <- function(x, input, arg = "x", call = caller_env()) {
  is_path <- rlang::is_string(x) && !is.na(x) && is.null(dim(x))
  if (is_path) {
    check_text(x, paste0("`", arg, "`"), "path", arg, call)
  }
  if (is_path && isTRUE(bin_ending(x) %in% bin_point_types)) {
    x <- open_bin(x, check_path_in(x, arg, call), bin_ending(x), call)
  }
  take_matrix.default(x, input, arg, call)
}

write_bin_points <- function(values, file, path, type, call) {
  write_bin_parts(file, path, dim(values), call, function(put) {
    at_once <- max(1, 2^22 / ncol(values))
    for (rows in row_ranges(nrow(values), floor(at_once))) {
      tile <- as_plain(values[rows, , drop = FALSE])
      put(type, array(as.double(tile), dim(tile)))
    }
  })
}

# `write` is called with a function that takes an extension and a matrix of
# rows.
write_bin_parts <- function(file, path, size, call, write) {
  if (any(size == 0)) {
    abort_argument("{.arg x} must have rows and columns.", call)
  }
  check <- function(answer) in_bin(answer, file, "written", call)
  output <- check(cpp_new_bin(enc2native(path), size[[1]], size[[2]]))$file
  on.exit(cpp_drop_bin(output))
  write(function(ending, values, shifted = FALSE) {
    check(cpp_put_bin(
      output, ending, values, 1, nrow(values), shifted, check_num_threads(NULL)
    ))
  })
  check(cpp_finish_bin(output))
  invisible()
}

read_ibin_file <- function(file, path, call) {
  head <- check_bin_head(file, path, "ibin", call, c(4, 8))
  places <- head$rows * head$columns
  rows <- seq_len(head$rows)
  nn <- list(
    index = read_bin(file, path, "ibin", rows, shifted = TRUE, call = call),
    distance = NULL
  )
  if (head$bytes > 8 + 4 * places) {
    nn$distance <- read_bin(file, path, "fbin", rows, 8 + 4 * places,
                            call = call)
    nn$distance[is.na(nn$index)] <- NA
  }
  wrong <- wrong_neighbours(nn)
  if (!is.null(wrong)) {
    abort_file(
      file, NULL, wrong$must, paste("Row", first_row(wrong)), call = call
    )
  }
  new_neighbours(nn)
}

# Checks neighbours (matrices index and distance). Returns NULL, or what must
# hold and the rows for which it does not.
wrong_neighbours <- function(nn) {
  again <- repeating_points(nn)
  if (length(again) > 0) {
    return(list(
      must = "have each neighbour of a row once",
      words = "has one twice", rows = again
    ))
  }
  if (is.null(nn$distance)) {
    return(NULL)
  }
  unlike <- which(rowSums(is.na(nn$index) != is.na(nn$distance)) > 0)
  if (length(unlike) > 0) {
    list(
      must = "have a distance for each neighbour, and for nothing else",
      words = "has not", rows = unlike
    )
  }
}

first_row <- function(wrong, before = 0) {
  paste(format_count(wrong$rows[[1]] + before), wrong$words)
}

write_ibin_file <- function(edges, file, path, distances, call) {
  nn <- if (is_knn_shards(edges)) {
    edges
  } else {
    take_neighbours(edges, "edges", call)
  }
  if (is.list(nn$index)) {
    abort_argument(
      "{.arg edges} must have as many neighbours for every point.", call
    )
  }
  if (!is.null(distances)) {
    check_flag(distances, "distances", call = call)
    if (distances && is.null(nn$distance)) {
      abort_argument(
        "{.arg distances} can't be TRUE where {.arg edges} has none.", call
      )
    }
  }
  size <- dim(nn$index)
  at_once <- max(1, floor(2^22 / size[[2]]))
  write_bin_parts(file, path, size, call, function(put) {
    for (rows in row_ranges(size[[1]], at_once)) {
      block <- block_of_neighbours(nn, rows, call)
      check_right_neighbours(block, rows[[1]] - 1, call)
      put("ibin", block$index, shifted = TRUE)
    }
    if (distances %||% !is.null(nn$distance)) {
      for (rows in row_ranges(size[[1]], at_once)) {
        put("fbin", as_plain(nn$distance[rows, , drop = FALSE]))
      }
    }
  })
}

# `before` is the number of rows before this block.
check_right_neighbours <- function(block, before, call) {
  wrong <- wrong_neighbours(block)
  if (!is.null(wrong)) {
    abort_argument(
      c(
        "{.arg edges} must {wrong$must}.",
        x = "Row {first_row(wrong, before)}."
      ),
      call
    )
  }
}
