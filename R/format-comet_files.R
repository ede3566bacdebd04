#' Files of CoMet
#'
#' CoMet (Joubert et al. 2018) compares all pairs and all triples of vectors on
#' many GPUs. Its input, and the results that it writes, are read and written
#' here, so that data and results go both ways.
#'
#' No file of CoMet says what is in it: neither numbers of rows and columns, nor
#' types, nor names. All of that must be known, as for CoMet itself
#' (`--num_vector`, `--num_field`, and how it was built).
#'
#' * **Vectors**: its input for the Proportional Similarity (Czekanowski
#'   metric): the values of vector 1, then those of vector 2, and so on, as
#'   floats of 4 or of 8 bytes. A vector is a point here, a row.
#' * **Metrics as records**: for each pair (or triple) that is written, two (or
#'   three) numbers of vectors, unsigned integers of 4 bytes that count from 0,
#'   and the similarity, a float of 4 bytes: 12 bytes (16). Which pairs those
#'   are, and in which order, is free; CoMet writes those *above* a threshold.
#' * **Metrics as bytes**: the similarity of every pair (or triple) as one
#'   unsigned byte, floor(255 c), and no numbers of vectors: place tells which
#'   pair it is. The order here is that of one CoMet process: pairs (i, j) by j,
#'   then i, i < j; triples (i, j, k) by j, then k, then i, i < j < k.
#'   Several processes write a file each, by blocks of vectors: those files are
#'   not read here.
#'
#' Files are written beside their name, and named when they are whole: an error,
#' Ctrl-C or a full disk leaves what was there as it was.
#'
#' @param file Path of the file.
#' @param num_features Number of values of a vector (CoMet's `--num_field`).
#' @param type What a value is: `"float32"` (default) or `"float64"`.
#' @param ... Must be empty.
#' @param num_points Number of vectors (`--num_vector`). Of vectors: `NULL`
#'   (default) takes as many as the file has. Of metrics: needed for bytes;
#'   of records, that no number is beyond it is checked.
#' @param byte_order `"little"` (default: the lowest byte first, as on the
#'   machines that CoMet was written for) or `"big"`.
#' @param x `write_comet_vectors()`: points, in all that [knn_search()] takes.
#'   `write_comet_metrics()`: pairs, as [threshold_graph()] gives them, under a
#'   metric whose similarity is from 0 to 1; or triples of
#'   [threshold_triples()].
#' @param form `"records"` (default) or `"bytes"`. As bytes all pairs (triples)
#'   must be there: those of `threshold_graph(x, 0, metric = "proportional")`
#'   (of `threshold_triples(x, 0)`).
#' @param num_way 2 (default) for pairs, 3 for triples.
#'
#' @returns `read_comet_vectors()`: a double matrix, a row for each vector.
#'   `read_comet_metrics()`: a data frame with the columns `from`, `to`, of
#'   triples `third` (integer, from 1) and `similarity` (double), in the order
#'   of the file; of bytes `similarity` is byte / 255, and what it stands for is
#'   up to 1 / 255 larger. `write_comet_vectors()`, `write_comet_metrics()`:
#'   `file`, invisibly.
#' @section Errors:
#' The following are errors of class `fsknn_file_error`:
#' * a file whose size does not fit its shape, or that can't be written;
#' * a vector number or a similarity outside its range, or a vector value that
#'   is not finite;
#' * a vector paired with itself, or a pair (triple) that occurs twice in any
#'   order;
#' * a value to write that is missing, infinite, or too large for 4 bytes.
#'
#' The following are errors of class `fsknn_argument_error`:
#' * edges that do not hold each pair once, or (as bytes) do not hold all pairs;
#' * edges whose metric has no similarity from 0 to 1;
#' * similarities that are not numbers from 0 to 1.
#' @references
#' Joubert W, Nance J, Weighill D, Jacobson D (2018). Parallel accelerated
#' vector similarity calculations for genomics applications. *Parallel
#' Computing* 75: 130-145. \doi{10.1016/j.parco.2018.03.009}
#' @seealso [write_comet_bytes()] for all of them of data, with none held,
#'   [threshold_graph()], [threshold_triples()], [bin_file()] for files
#'   that say their shape.
#' @name comet_files
#' @examples
#' folder <- tempfile()
#' dir.create(folder)
#' x <- matrix(rexp(50 * 8), nrow = 50)
#' vectors <- file.path(folder, "vectors.bin")
#' write_comet_vectors(x, vectors, type = "float64")
#' identical(read_comet_vectors(vectors, 8, type = "float64"), x)
#'
#' # pairs above a threshold, and all of them
#' metrics <- file.path(folder, "metrics.bin")
#' write_comet_metrics(threshold_graph(x, 0.8, "proportional"), metrics)
#' head(read_comet_metrics(metrics), 3)
#' write_comet_metrics(
#'   threshold_graph(x, 0, "proportional"), metrics, form = "bytes"
#' )
#' file.size(metrics)
#' head(read_comet_metrics(metrics, form = "bytes", num_points = 50), 3)
#' unlink(folder, recursive = TRUE)
NULL

comet_types <- c("float32", "float64")

comet_type_bytes <- c(float32 = 4L, float64 = 8L)

comet_forms <- c("records", "bytes")

byte_orders <- c("little", "big")

# --- vectors -----------------------------------------------------------------

#' @rdname comet_files
#' @export
read_comet_vectors <- function(file, num_features,
                               type = c("float32", "float64"), ...,
                               num_points = NULL,
                               byte_order = c("little", "big")) {
  check_no_more(...)
  path <- check_path_in(file)
  check_supplied(num_features)
  num_features <- check_whole_number(
    num_features, "num_features", 1, .Machine$integer.max
  )
  type <- check_choice(type, comet_types, "type")
  num_points <- check_comet_points(num_points)
  byte_order <- check_choice(byte_order, byte_orders, "byte_order")
  value_bytes <- comet_type_bytes[[type]]
  call <- current_env()
  rows <- comet_rows(
    file, num_features * value_bytes, num_points,
    paste("vectors of", tally(num_features, "value"), "of type", type), call
  )
  connection <- base::file(path, "rb")
  on.exit(close(connection))
  parts <- lapply(comet_stretches(rows, num_features), function(part) {
    values <- read_comet_part(
      connection, "double", length(part) * num_features, value_bytes,
      byte_order, file, call
    )
    if (!all(is.finite(values))) {
      abort_file(
        file, NULL, "hold finite numbers",
        "It has a value that is missing or infinite",
        "It may have another byte order, or values of another type", call
      )
    }
    matrix(values, ncol = num_features, byrow = TRUE)
  })
  if (length(parts) == 0) {
    return(matrix(0, 0, num_features))
  }
  if (length(parts) == 1) parts[[1]] else do.call(rbind, parts)
}

#' @rdname comet_files
#' @export
write_comet_vectors <- function(x, file, type = c("float32", "float64"), ...,
                                byte_order = c("little", "big")) {
  check_no_more(...)
  check_supplied(x)
  path <- check_path_out(file)
  type <- check_choice(type, comet_types, "type")
  byte_order <- check_choice(byte_order, byte_orders, "byte_order")
  call <- current_env()
  values <- read_points(x)$values
  if (!is.matrix(values) && !is_read_by_blocks(values) ||
        is_metafeatures(values)) {
    abort_argument("{.arg x} must be a matrix.", call)
  }
  if (ncol(values) == 0) {
    abort_argument("{.arg x} must have columns.", call)
  }
  # Numbers from here on are rounded to infinity: it is halfway between the
  # largest float and 2^128.
  largest <- if (type == "float32") 2^128 - 2^103 else Inf
  write_whole_bytes(file, path, call = call, write = function(put) {
    for (rows in comet_stretches(nrow(values), ncol(values))) {
      part <- t(as_plain(values[rows, , drop = FALSE]))
      if (!all(is.finite(part))) {
        abort_unwritten(file, "A value is missing or infinite", call)
      }
      if (any(abs(part) >= largest)) {
        abort_unwritten(file, "A value is too large for 4 bytes", call)
      }
      put(as_bytes(as.double(part), comet_type_bytes[[type]], byte_order))
    }
  })
  invisible(file)
}

as_bytes <- function(values, size, byte_order) {
  writeBin(values, raw(), size = size, endian = byte_order)
}

# Each range of rows has a few MB of values.
comet_stretches <- function(rows, columns) {
  row_stretches(rows, max(1, floor(2^20 / columns)))
}

check_comet_points <- function(num_points, least = 1, call = caller_env()) {
  if (is.null(num_points)) {
    return(NULL)
  }
  check_whole_number(
    num_points, "num_points", least, .Machine$integer.max, call = call
  )
}

# Returns the number of rows of `row_bytes` in a file. `what` describes the
# rows.
comet_rows <- function(file, row_bytes, wanted, what, call) {
  bytes <- file.size(path.expand(file))
  rows <- bytes / row_bytes
  if (rows != trunc(rows) || rows > .Machine$integer.max ||
        !is.null(wanted) && rows != wanted) {
    must <- if (is.null(wanted)) {
      paste("hold", what)
    } else {
      paste("hold", format_count(wanted), what)
    }
    abort_file(
      file, NULL, must,
      paste0(
        "It has ", tally(bytes, "byte"), ", ", format_count(row_bytes),
        " for each"
      ),
      call = call
    )
  }
  rows
}

read_comet_part <- function(connection, what, count, size, byte_order, file,
                            call) {
  values <- readBin(connection, what, count, size = size, endian = byte_order)
  if (length(values) != count) {
    abort_file(
      file, NULL, "be as long as it was when it was opened",
      "It is shorter now", call = call
    )
  }
  values
}

# --- metrics -----------------------------------------------------------------

#' @rdname comet_files
#' @export
write_comet_metrics <- function(x, file, form = c("records", "bytes"), ...,
                                byte_order = NULL) {
  check_no_more(...)
  check_supplied(x)
  path <- check_path_out(file)
  form <- check_choice(form, comet_forms, "form")
  byte_order <- check_comet_order(byte_order, form)
  call <- current_env()
  metrics <- comet_metrics_of(x, call)
  in_order <- check_each_once(metrics$ends, call)
  if (form == "bytes") {
    metrics <- in_comet_order(metrics, in_order, call)
  }
  count <- length(metrics$similarity)
  write_whole_bytes(file, path, call = call, write = function(put) {
    for (rows in row_stretches(count, 2^18)) {
      similarity <- metrics$similarity[rows]
      put(if (form == "bytes") {
        as.raw(floor(255 * similarity))
      } else {
        comet_records(
          lapply(metrics$ends, `[`, rows), similarity, byte_order
        )
      })
    }
  })
  invisible(file)
}

# `ends` are numbers from 1.
comet_records <- function(ends, similarity, byte_order) {
  ends <- lapply(ends, function(numbers) {
    matrix(as_bytes(numbers - 1L, 4L, byte_order), 4L)
  })
  values <- matrix(as_bytes(similarity, 4L, byte_order), 4L)
  as.vector(do.call(rbind, c(ends, list(values))))
}

check_comet_order <- function(byte_order, form, call = caller_env()) {
  if (is.null(byte_order)) {
    return("little")
  }
  if (form == "bytes") {
    abort_argument(
      "{.arg byte_order} can't be given with {.code form = \"bytes\"}, whose
       values are of one byte.",
      call
    )
  }
  check_choice(byte_order, byte_orders, "byte_order", call = call)
}

# Returns the ends of pairs or triples as ascending numbers from 1, their
# similarities, and the number of all points.
comet_metrics_of <- function(x, call) {
  if (is_triples(x)) {
    ends <- triple_ends(x, "x", call)
    return(list(
      ends = ends$numbers, similarity = check_similarities(x$similarity, call),
      num_points = nrow(ends$vertices)
    ))
  }
  if (is.data.frame(x) && all(c("from", "to", "third") %in% names(x))) {
    abort_argument(
      "{.arg x} must be triples as {.fn threshold_triples} gave them, or rows
       of them, not a data frame made of such.",
      call
    )
  }
  check_is_pairs(x, call)
  vertices <- check_vertices(attr(x, "vertices"), call)
  ends <- lapply(x[c("from", "to")], function(ends) {
    vertex_numbers(ends, vertices$name, call)
  })
  similarity <- edge_weights(x, "similarity", call)
  list(
    ends = list(pmin(ends[[1]], ends[[2]]), pmax(ends[[1]], ends[[2]])),
    similarity = check_similarities(similarity, call),
    num_points = nrow(vertices)
  )
}

# Returns doubles, because integers would be written as such.
check_similarities <- function(similarity, call) {
  if (!is.numeric(similarity)) {
    given <- describe_type(similarity)
    abort_argument(
      "{.arg x} must have a numeric column {.code similarity}, not {given}.",
      call
    )
  }
  if (anyNA(similarity) || any(similarity < 0 | similarity > 1)) {
    abort_argument(
      "The similarities of {.arg x} must be between 0 and 1.", call
    )
  }
  as.double(similarity)
}

check_is_pairs <- function(x, call) {
  if (!is.data.frame(x) || !all(c("from", "to") %in% names(x))) {
    given <- describe_type(x)
    abort_argument(
      "{.arg x} must be pairs from {.fn threshold_graph}, or triples from
       {.fn threshold_triples}, not {given}.",
      call
    )
  }
  if (!is_undirected(x)) {
    abort_argument(
      c(
        "{.arg x} must have each pair of points once.",
        i = "{.fn threshold_graph} has; {.fn undirected_edges} makes it so."
      ),
      call
    )
  }
}

# Returns the order of CoMet: by the second, the third and the first end.
check_each_once <- function(ends, call) {
  wrong <- wrong_ends(ends)
  if (!is.null(wrong)) {
    abort_argument(c("{.arg x} must {wrong$must}.", x = "{wrong$found}."), call)
  }
  order_of_ends(ends)
}

order_of_ends <- function(ends) {
  do.call(order, c(ends[-1], ends[1], list(method = "radix")))
}

# Checks pairs or triples of numbers from 1. Returns NULL, or what must hold and
# the first that is wrong.
wrong_ends <- function(ends) {
  what <- if (length(ends) == 2) "pair" else "triple"
  ends <- lapply(ascending_ends(ends), as.integer)
  at <- which(Reduce(`|`, Map(`==`, ends[-1], ends[-length(ends)])))[1]
  if (!is.na(at)) {
    numbers <- vapply(ends, `[[`, 1L, at)
    return(list(
      must = paste0("have ", what, "s of different points"),
      found = paste("One is that of points", paste(numbers, collapse = ", "))
    ))
  }
  in_order <- order_of_ends(ends)
  sorted <- lapply(ends, `[`, in_order)
  at <- which(Reduce(`&`, lapply(sorted, function(numbers) {
    numbers[-1] == numbers[-length(numbers)]
  })))[1]
  if (!is.na(at)) {
    numbers <- vapply(sorted, `[[`, 1L, at)
    list(
      must = paste("have each", what, "of points once"),
      found = paste(
        "That of points", paste(numbers, collapse = ", "), "is there twice"
      )
    )
  }
}

ascending_ends <- function(ends) {
  low <- do.call(pmin, unname(ends))
  high <- do.call(pmax, unname(ends))
  if (length(ends) == 2) {
    return(list(low, high))
  }
  total <- Reduce(`+`, lapply(ends, as.double))
  list(low, total - low - high, high)
}

# Puts all pairs or triples in the order in which one process of CoMet computes
# them.
in_comet_order <- function(metrics, in_order, call) {
  ends <- metrics$ends
  num_way <- length(ends)
  all <- choose(metrics$num_points, num_way)
  given <- length(metrics$similarity)
  if (given != all) {
    what <- if (num_way == 2) "pair" else "triple"
    abort_argument(
      c(
        "{.arg x} must have every {what} of points to be written as bytes.",
        x = "It has {format_count(given)} of {format_count(all)}."
      ),
      call
    )
  }
  list(similarity = metrics$similarity[in_order])
}

#' @rdname comet_files
#' @export
read_comet_metrics <- function(file, num_way = 2,
                               form = c("records", "bytes"), ...,
                               num_points = NULL, byte_order = NULL) {
  check_no_more(...)
  path <- check_path_in(file)
  num_way <- check_whole_number(num_way, "num_way", 2, 3)
  form <- check_choice(form, comet_forms, "form")
  num_points <- check_comet_points(num_points, num_way)
  byte_order <- check_comet_order(byte_order, form)
  call <- current_env()
  what <- if (num_way == 2) "pair" else "triple"
  if (form == "bytes" && is.null(num_points)) {
    abort_argument(
      "{.arg num_points} must be given with {.code form = \"bytes\"}.", call
    )
  }
  connection <- base::file(path, "rb")
  on.exit(close(connection))
  columns <- if (form == "bytes") {
    count <- comet_rows(
      file, 1, choose(num_points, num_way), tally_all(what, num_points), call
    )
    bytes <- read_comet_part(connection, "raw", count, 1L, "little", file, call)
    c(comet_ends(num_points, num_way), list(as.integer(bytes) / 255))
  } else {
    count <- comet_rows(
      file, 4 * (num_way + 1), NULL,
      paste0("records of ", what, "s, ", num_way, " numbers and a float each"),
      call
    )
    found <- read_comet_records(
      connection, count, num_way, num_points, byte_order, file, call
    )
    wrong <- wrong_ends(found[seq_len(num_way)])
    if (!is.null(wrong)) {
      abort_file(file, NULL, wrong$must, wrong$found, call = call)
    }
    found
  }
  names(columns) <- c("from", "to", if (num_way == 3) "third", "similarity")
  as.data.frame(columns)
}

tally_all <- function(what, num_points) {
  paste0("bytes, one for each ", what, " of ", tally(num_points, "point"))
}

read_comet_records <- function(connection, count, num_way, num_points,
                               byte_order, file, call) {
  parts <- lapply(row_stretches(count, 2^18), function(rows) {
    size <- 4L * (num_way + 1L)
    bytes <- matrix(
      read_comet_part(
        connection, "raw", size * length(rows), 1L, byte_order, file, call
      ),
      nrow = size
    )
    taken <- function(place, what) {
      readBin(
        as.vector(bytes[4 * place + 1:4, ]), what, length(rows), size = 4L,
        endian = byte_order
      )
    }
    ends <- lapply(seq_len(num_way) - 1L, taken, "integer")
    similarity <- taken(num_way, "double")
    check_comet_records(ends, similarity, num_points, file, call)
    c(lapply(ends, `+`, 1L), list(similarity))
  })
  lapply(seq_len(num_way + 1L), function(column) {
    values <- unlist(lapply(parts, `[[`, column))
    values %||% if (column <= num_way) integer() else double()
  })
}

# With a wrong byte order or record length, values are rarely in range. In R, a
# number above 2^31 - 1 is negative or missing.
check_comet_records <- function(ends, similarity, num_points, file, call) {
  most <- num_points %||% .Machine$integer.max
  numbers <- unlist(ends)
  far <- which(is.na(numbers) | numbers < 0 | numbers >= most)
  odd <- which(is.na(similarity) | similarity < 0 | similarity > 1)
  if (length(far) == 0 && length(odd) == 0) {
    return(invisible())
  }
  number <- numbers[far[1]]
  abort_file(
    file, NULL,
    paste(
      "have numbers of vectors below", format_count(most),
      "and similarities from 0 to 1"
    ),
    if (length(far) == 0) {
      paste("It has the similarity", signif(similarity[[odd[[1]]]], 3))
    } else if (is.na(number) || number < 0) {
      "It has a number of 2^31 or more"
    } else {
      paste("It has the number", format_count(number))
    },
    "It may have another byte order, or records of another length", call
  )
}

# Returns the ends of all pairs or triples in the order of the bytes.
comet_ends <- function(num_points, num_way) {
  if (num_way == 2) {
    to <- rep(seq_len(num_points), seq_len(num_points) - 1L)
    return(list(sequence(seq_len(num_points) - 1L), to))
  }
  middle <- seq_len(num_points)
  before <- middle - 1L
  after <- num_points - middle
  # For each middle point and each later one, there are all points before the
  # middle one.
  pairs <- list(
    middle = rep(middle, after), third = unlist(lapply(middle, function(j) {
      j + seq_len(num_points - j)
    }))
  )
  runs <- before[pairs$middle]
  list(sequence(runs), rep(pairs$middle, runs), rep(pairs$third, runs))
}
