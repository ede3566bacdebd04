# The files of CoMet: vectors (see read_points()), and metrics of pairs and
# triples (see read_edges()) as records or as bytes.

comet_type_bytes <- c(single = 4L, double = 8L)

byte_orders <- c("little", "big")

# --- vectors -----------------------------------------------------------------

read_comet_vectors <- function(file, path, num_features, num_points,
                               precision, byte_order, call) {
  if (is.null(num_features)) {
    abort_argument(
      "{.arg num_features} must be given for the format {.val comet}.", call
    )
  }
  num_features <- check_whole_number(
    num_features, "num_features", 1, .Machine$integer.max, call = call
  )
  num_points <- check_comet_points(num_points, call = call)
  precision <- check_comet_precision(precision, call)
  byte_order <- check_byte_order(byte_order, call)
  value_bytes <- comet_type_bytes[[precision]]
  rows <- comet_rows(
    file, num_features * value_bytes, num_points,
    paste(
      "vectors of", tally(num_features, "value"), "of", value_bytes, "bytes"
    ),
    call
  )
  connection <- base::file(path, "rb")
  on.exit(close(connection))
  parts <- lapply(comet_ranges(rows, num_features), function(part) {
    values <- read_comet_part(
      connection, "double", length(part) * num_features, value_bytes,
      byte_order, file, call
    )
    if (!all(is.finite(values))) {
      abort_file(
        file, NULL, "hold finite numbers",
        "It has a value that is missing or infinite",
        "It may have another byte order, or values of another precision", call
      )
    }
    matrix(values, ncol = num_features, byrow = TRUE)
  })
  if (length(parts) == 0) {
    return(matrix(0, 0, num_features))
  }
  if (length(parts) == 1) parts[[1]] else do.call(rbind, parts)
}

write_comet_vectors <- function(values, file, path, precision, byte_order,
                                call) {
  precision <- check_comet_precision(precision, call)
  byte_order <- check_byte_order(byte_order, call)
  if (ncol(values) == 0) {
    abort_argument("{.arg x} must have columns.", call)
  }
  # Numbers from here on are rounded to infinity: it is halfway between the
  # largest float and 2^128.
  largest <- if (precision == "single") 2^128 - 2^103 else Inf
  write_whole_bytes(file, path, call = call, write = function(put) {
    for (rows in comet_ranges(nrow(values), ncol(values))) {
      part <- t(as_plain(values[rows, , drop = FALSE]))
      if (!all(is.finite(part))) {
        abort_unwritten(file, "A value is missing or infinite", call)
      }
      if (any(abs(part) >= largest)) {
        abort_unwritten(file, "A value is too large for 4 bytes", call)
      }
      put(as_bytes(as.double(part), comet_type_bytes[[precision]], byte_order))
    }
  })
}

check_comet_precision <- function(precision, call) {
  check_choice(
    precision %||% "single", names(comet_type_bytes), "precision", call = call
  )
}

check_byte_order <- function(byte_order, call) {
  check_choice(
    byte_order %||% "little", byte_orders, "byte_order", call = call
  )
}

as_bytes <- function(values, size, byte_order) {
  writeBin(values, raw(), size = size, endian = byte_order)
}

# Each range of rows has a few MB of values.
comet_ranges <- function(rows, columns) {
  row_ranges(rows, max(1, floor(2^20 / columns)))
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

write_comet_metrics <- function(x, file, path, format, byte_order, call) {
  byte_order <- check_byte_order(byte_order, call)
  metrics <- comet_metrics_of(x, call)
  in_order <- check_each_once(metrics$ends, call)
  if (format == "comet_bytes") {
    metrics <- in_comet_order(metrics, in_order, call)
  }
  count <- length(metrics$similarity)
  write_whole_bytes(file, path, call = call, write = function(put) {
    for (rows in row_ranges(count, 2^18)) {
      similarity <- metrics$similarity[rows]
      put(if (format == "comet_bytes") {
        as.raw(floor(255 * similarity))
      } else {
        comet_records(
          lapply(metrics$ends, `[`, rows), similarity, byte_order,
          metrics$alleles[rows]
        )
      })
    }
  })
}

# `ends` are numbers from 1. With alleles, a vector has two numbers, that of the
# counted allele last.
comet_records <- function(ends, similarity, byte_order, alleles = NULL) {
  ends <- lapply(seq_along(ends), function(at) {
    numbers <- ends[[at]] - 1L
    if (!is.null(alleles)) {
      numbers <- 2L * numbers + (substr(as.character(alleles), at, at) == "1")
    }
    matrix(as_bytes(numbers, 4L, byte_order), 4L)
  })
  values <- matrix(as_bytes(similarity, 4L, byte_order), 4L)
  as.vector(do.call(rbind, c(ends, list(values))))
}

# Returns the ends of pairs or triples as ascending numbers from 1, their
# similarities, and the number of all points.
comet_metrics_of <- function(x, call) {
  if (is_triples(x)) {
    ends <- triple_ends(x, "edges", call)
    return(list(
      ends = ends$numbers, similarity = check_similarities(x$similarity, call),
      num_points = nrow(ends$vertices), alleles = x$alleles
    ))
  }
  if (is.data.frame(x) && all(c("from", "to", "third") %in% names(x))) {
    abort_argument(
      "{.arg edges} must be triples as {.fn threshold_triples} gave them, or
       rows of them, not a data frame made of such.",
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
    num_points = nrow(vertices),
    alleles = if (!is.null(x$alleles)) {
      ifelse(
        ends[[1]] > ends[[2]], swapped_alleles(x$alleles),
        as.character(x$alleles)
      )
    }
  )
}

# Returns doubles, because integers would be written as such.
check_similarities <- function(similarity, call) {
  if (!is.numeric(similarity)) {
    given <- describe_type(similarity)
    abort_argument(
      "{.arg edges} must have a numeric column {.code similarity}, not
       {given}.",
      call
    )
  }
  if (anyNA(similarity) || any(similarity < 0 | similarity > 1)) {
    abort_argument(
      "The similarities of {.arg edges} must be between 0 and 1.", call
    )
  }
  as.double(similarity)
}

check_is_pairs <- function(x, call) {
  if (!is.data.frame(x) || !all(c("from", "to") %in% names(x))) {
    given <- describe_type(x)
    abort_argument(
      "{.arg edges} must be pairs from {.fn threshold_graph}, or triples from
       {.fn threshold_triples}, not {given}.",
      call
    )
  }
  if (!is_undirected(x)) {
    abort_argument(
      c(
        "{.arg edges} must have each pair of points once.",
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
    abort_argument(
      c("{.arg edges} must {wrong$must}.", x = "{wrong$found}."), call
    )
  }
  order_of_ends(ends)
}

order_of_ends <- function(ends) {
  do.call(order, c(ends[-1], ends[1], list(method = "radix")))
}

# Checks pairs or triples of numbers from 1. Returns NULL, or what must hold and
# the first that is wrong.
wrong_ends <- function(ends) {
  equal_ends(ends) %||% repeated_ends(ends)
}

equal_ends <- function(ends) {
  what <- if (length(ends) == 2) "pair" else "triple"
  ends <- lapply(ascending_ends(ends), as.integer)
  at <- which(Reduce(`|`, Map(`==`, ends[-1], ends[-length(ends)])))[1]
  if (!is.na(at)) {
    numbers <- vapply(ends, `[[`, 1L, at)
    list(
      must = paste0("have ", what, "s of different points"),
      found = paste("One is that of points", paste(numbers, collapse = ", "))
    )
  }
}

# `of` says what the numbers are.
repeated_ends <- function(ends, of = "points") {
  what <- if (length(ends) == 2) "pair" else "triple"
  ends <- lapply(ascending_ends(ends), as.integer)
  in_order <- order_of_ends(ends)
  sorted <- lapply(ends, `[`, in_order)
  at <- which(Reduce(`&`, lapply(sorted, function(numbers) {
    numbers[-1] == numbers[-length(numbers)]
  })))[1]
  if (!is.na(at)) {
    numbers <- vapply(sorted, `[[`, 1L, at)
    list(
      must = paste("have each", what, "of", of, "once"),
      found = paste(
        "That of", of, paste(numbers, collapse = ", "), "is there twice"
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
        "{.arg edges} must have every {what} of points to be written as bytes.",
        x = "It has {format_count(given)} of {format_count(all)}."
      ),
      call
    )
  }
  list(similarity = metrics$similarity[in_order])
}

read_comet_metrics <- function(file, path, format, num_way, num_points,
                               byte_order, alleles, call) {
  byte_order <- check_byte_order(byte_order, call)
  num_way <- check_whole_number(num_way, "num_way", 2, 3, call = call)
  num_points <- check_comet_points(num_points, num_way, call)
  what <- if (num_way == 2) "pair" else "triple"
  if (format == "comet_bytes" && is.null(num_points)) {
    abort_argument(
      "{.arg num_points} must be given for the format {.val comet_bytes}.", call
    )
  }
  connection <- base::file(path, "rb")
  on.exit(close(connection))
  columns <- if (format == "comet_bytes") {
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
      connection, count, num_way, num_points, byte_order, file, alleles, call
    )
    codes <- found[seq_len(num_way)]
    if (alleles) found <- without_alleles(found, num_way)
    wrong <- equal_ends(found[seq_len(num_way)]) %||%
      repeated_ends(codes, if (alleles) "alleles" else "points")
    if (!is.null(wrong)) {
      abort_file(file, NULL, wrong$must, wrong$found, call = call)
    }
    found
  }
  names(columns) <- c(
    "from", "to", if (num_way == 3) "third", "similarity",
    if (alleles) "alleles"
  )
  as.data.frame(columns)
}

# Returns points, similarities and alleles of records whose numbers are those of
# alleles.
without_alleles <- function(found, num_way) {
  codes <- lapply(found[seq_len(num_way)], `-`, 1L)
  known <- if (num_way == 2) allele_pairs else levels(triple_alleles(1L))
  c(
    lapply(codes, function(code) code %/% 2L + 1L), found[num_way + 1],
    list(factor(do.call(paste0, lapply(codes, `%%`, 2L)), known))
  )
}

tally_all <- function(what, num_points) {
  paste0("bytes, one for each ", what, " of ", tally(num_points, "point"))
}

read_comet_records <- function(connection, count, num_way, num_points,
                               byte_order, file, alleles, call) {
  # Each vector has a number for either allele.
  if (alleles && !is.null(num_points)) num_points <- 2 * num_points
  parts <- lapply(row_ranges(count, 2^18), function(rows) {
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
