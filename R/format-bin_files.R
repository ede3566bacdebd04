#' Matrices and neighbours in the files of big-ann-benchmarks
#'
#' Benchmarks of approximate nearest neighbours keep their vectors, queries and
#' ground truth in binary files of one simple form (Simhadri et al. 2022). Each
#' verb that takes a matrix takes such a file, by its path or by `bin_file()`;
#' more than fits in memory is read by blocks.
#'
#' A file has two unsigned integers of 4 bytes, the numbers of rows n and of
#' columns d, and then n x d values, row after row, the lowest byte first. By
#' the ending of its name they are floats of 4 bytes (`.fbin`), bytes without
#' (`.u8bin`) or with a sign (`.i8bin`), or numbers of neighbours (`.ibin`,
#' integers of 4 bytes). Nothing of a file is compressed, and there are no
#' names. In an `.fbin` file NaN is a missing value: `NA` is written as NaN, and
#' NaN is read as `NA`.
#'
#' Ground truth is an `.ibin` file too: n x k numbers of neighbours, and after
#' them, in the same file, n x k distances as floats of 4 bytes. Numbers count
#' from 0 in the file and from 1 in R, and -1 means no neighbour (`NA`). Any
#' other negative number, a neighbour that a row has twice and a neighbour
#' without a distance are errors. Among equally distant points the lower number
#' comes first, so that duplicate points have one right answer. Other programs
#' write squared Euclidean distances: there `distance` is the distance itself.
#'
#' Rows are the points of these files, and only rows: those of one point stand
#' together in the file, while a column is spread over all of it, and would have
#' to be gathered by reading the whole file for each. With `points = "columns"`
#' take `t(as.matrix(bin_file(file)))`, where that fits in memory.
#'
#' Files are written beside their name, and named when they are whole: an error,
#' Ctrl-C or a full disk leaves what was there as it was.
#'
#' @param file Path of the file.
#' @param type What the values are: `"fbin"`, `"u8bin"` or `"i8bin"`. `NULL`
#'   (default) goes by the ending of the file's name.
#' @param x `write_fbin()`: points, in all that [knn_search()] takes; whole
#'   numbers from 0 to 255 for `.u8bin`, from -128 to 127 for `.i8bin`, and the
#'   nearest float of 4 bytes for `.fbin`. `write_ibin()`: neighbours in any
#'   shape that [as_knn()] takes with as many for each point, or what
#'   [read_knn_shards()] gives. They are written as they are: of the points
#'   themselves or of queries.
#' @param distances Write distances, too, as ground truth has them? `NULL`
#'   (default) does so where there are any.
#' @param ... Must be empty.
#'
#' @returns `bin_file()`: an object that stands for the file, with `dim()`, and
#'   `x[rows, ]` and `as.matrix()` that read. `read_fbin()`: a matrix (double;
#'   integer of bytes). `read_ibin()`: neighbours as [knn_search()] gives them;
#'   `distance` is `NULL` where the file has none. `write_fbin()`,
#'   `write_ibin()`: `file`, invisibly.
#' @section Errors: A file whose size is not what its head says, which has no
#' rows or columns, or more than the 2^31 - 1 that R counts, is a
#' `fsknn_file_error` that has the numbers; so is one that can't be written, and
#' a value that has no place in it.
#' @references
#' Simhadri HV, Williams G, Aumüller M, et al. (2022). Results of the NeurIPS'21
#' Challenge on Billion-Scale Approximate Nearest Neighbor Search. *Proceedings
#' of Machine Learning Research* 176: 177-189.
#' @seealso [knn_output()] for answers in such files, [knn_recall()] for how
#'   good an approximate search was.
#' @export
#' @examples
#' folder <- tempfile()
#' dir.create(folder)
#' base <- file.path(folder, "base.fbin")
#' write_fbin(matrix(rnorm(200 * 8), nrow = 200), base)
#' bin_file(base)
#' nn <- knn_search(base, k = 3, metric = "euclidean")
#'
#' # ground truth of queries
#' queries <- file.path(folder, "query.fbin")
#' write_fbin(matrix(rnorm(5 * 8), nrow = 5), queries)
#' truth <- knn_query(base, queries, k = 3, metric = "euclidean")
#' write_ibin(truth, file.path(folder, "truth.ibin"))
#' read_ibin(file.path(folder, "truth.ibin"))
#' unlink(folder, recursive = TRUE)
bin_file <- function(file, type = NULL) {
  open_bin(file, type, "file", current_env())
}

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

open_bin <- function(file, type, arg, call) {
  path <- check_path_in(file, arg, call)
  type <- check_bin_type(type, path, bin_point_types, arg, call)
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

check_bin_type <- function(type, path, types, arg, call) {
  if (!is.null(type)) {
    return(check_choice(type, types, "type", call = call))
  }
  type <- bin_ending(path)
  if (is.null(type) || !type %in% types) {
    endings <- paste0(".", types, collapse = ", ")
    abort_argument(
      c(
        "{.arg {arg}} must end in one of {endings}.",
        x = "Its name is {.file {basename(path)}}."
      ),
      call
    )
  }
  type
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
          "Values of type ", paste0("\"", others, "\"", collapse = " or "),
          " would be so long"
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
    x <- open_bin(x, NULL, arg, call)
  }
  take_matrix.default(x, input, arg, call)
}

#' @rdname bin_file
#' @export
read_fbin <- function(file, type = NULL) {
  as.matrix(open_bin(file, type, "file", current_env()))
}

#' @rdname bin_file
#' @export
write_fbin <- function(x, file, ...) {
  check_no_more(...)
  check_supplied(x)
  path <- check_path_out(file)
  type <- check_bin_type(NULL, path, bin_point_types, "file", current_env())
  values <- read_points(x)$values
  if (!is.matrix(values) && !is_read_by_blocks(values) ||
        is_metafeatures(values)) {
    abort_argument("{.arg x} must be a matrix.", current_env())
  }
  write_bin_parts(file, path, dim(values), current_env(), function(put) {
    at_once <- max(1, 2^22 / ncol(values))
    for (rows in row_stretches(nrow(values), floor(at_once))) {
      tile <- as_plain(values[rows, , drop = FALSE])
      put(type, array(as.double(tile), dim(tile)))
    }
  })
  invisible(file)
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
    check(cpp_put_bin(output, ending, values, shifted))
  })
  check(cpp_finish_bin(output))
  invisible()
}

#' @rdname bin_file
#' @export
read_ibin <- function(file) {
  path <- check_path_in(file)
  call <- current_env()
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

#' @rdname bin_file
#' @export
write_ibin <- function(x, file, ..., distances = NULL) {
  check_no_more(...)
  check_supplied(x)
  path <- check_path_out(file)
  nn <- if (is_knn_shards(x)) x else take_neighbours(x, "x", current_env())
  if (is.list(nn$index)) {
    abort_argument(
      "{.arg x} must have as many neighbours for every point.", current_env()
    )
  }
  if (!is.null(distances)) {
    check_flag(distances, "distances")
    if (distances && is.null(nn$distance)) {
      abort_argument(
        "{.arg distances} can't be TRUE where {.arg x} has none.",
        current_env()
      )
    }
  }
  call <- current_env()
  size <- dim(nn$index)
  at_once <- max(1, floor(2^22 / size[[2]]))
  write_bin_parts(file, path, size, call, function(put) {
    for (rows in row_stretches(size[[1]], at_once)) {
      block <- block_of_neighbours(nn, rows, call)
      check_right_neighbours(block, rows[[1]] - 1, call)
      put("ibin", block$index, shifted = TRUE)
    }
    if (distances %||% !is.null(nn$distance)) {
      for (rows in row_stretches(size[[1]], at_once)) {
        put("fbin", as_plain(nn$distance[rows, , drop = FALSE]))
      }
    }
  })
  invisible(file)
}

# `before` is the number of rows before this block.
check_right_neighbours <- function(block, before, call) {
  wrong <- wrong_neighbours(block)
  if (!is.null(wrong)) {
    abort_argument(
      c(
        "{.arg x} must {wrong$must}.",
        x = "Row {first_row(wrong, before)}."
      ),
      call
    )
  }
}
