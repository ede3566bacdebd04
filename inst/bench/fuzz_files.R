# Do the readers of files withstand any input?
#
#   Rscript inst/bench/fuzz_files.R [inputs] [seed]
#
# Files that are right are broken in some places, and read. Each is read as
# something that the format can say and that is read back the same once it is
# written, or is an error of ours that names the file; nothing else, no warning,
# and no long time. The tests in R run 20,000 of them (test-format-fuzz_files.R).

# What makes trouble: parts of numbers, of lines and of both formats.
troubles <- lapply(c(
  "\t", "\t\t", " ", "\n", "\r", "\r\n", "0", "-", ".", "e", "1e", "1e999",
  "0x1F", "NA", "NaN", "Inf", "1e-320", "2147483647", "99999999999", "#", "\"",
  "'", "\\", "{x}", "%s", "<", "<EndOfFile>\n", "<SamplesNames>\n", "a", ",",
  "5,5", "1L", "1d5", "+1", "\u00e9", "\u00a0", "\u2028", "\ufeff"
), charToRaw)
troubles <- c(troubles, lapply(c(0L, 12L, 26L, 128L, 233L, 255L), as.raw))

one_of <- function(values) values[[sample.int(length(values), 1)]]

right_cibm <- function() {
  size <- sample.int(4, 2, replace = TRUE)
  names <- c("a", "gene 4", "x1", "\u00e9 b", "1e", "F_1", "0x10", "<b", "7")
  gap <- one_of(c("\t", "\t", " "))
  rows <- vapply(seq_len(size[[1]]), function(row) {
    values <- one_of(list(
      sprintf("%.3g", stats::rnorm(size[[2]])), sample.int(9, size[[2]], TRUE)
    ))
    name <- paste0(names[[sample.int(9, 1)]], row)
    if (gap == " ") {
      name <- gsub(" ", "_", name, fixed = TRUE)
    }
    paste(c(name, values), collapse = gap)
  }, "")
  c(
    "<MicroarrayData>", paste(size, collapse = gap), rows, "<SamplesNames>",
    paste0("s", seq_len(size[[2]]), collapse = gap), "<SamplesClasses>",
    paste(sample.int(3, size[[2]], TRUE), collapse = gap), "<EndOfFile>"
  )
}

right_knn <- function() {
  n <- sample.int(6, 1) + 1L
  from <- rep(0:(n - 1L), n)
  to <- rep(0:(n - 1L), each = n)
  kept <- which(from != to)
  kept <- kept[sample.int(length(kept), sample.int(length(kept), 1))]
  weight <- stats::runif(length(kept), -1, 1)
  c(
    paste(n, length(kept)),
    sprintf("%d %d %f", from[kept], to[kept], weight)
  )
}

right_bim <- function() {
  gap <- one_of(c("\t", " "))
  id <- sample(c("rs1", "rs2", ".", "1:5:A:G", "\u00e9", "."), 3)
  paste(
    sample(c(1:22, "X"), 3), id, one_of(c("0", "0.5", "1e-5")),
    sample.int(1e6, 3), c("A", "0", "ACGT"), "G", sep = gap
  )
}

break_bytes <- function(bytes) {
  size <- length(bytes)
  at <- sample.int(size, 1)
  switch(
    sample.int(6, 1),
    append(bytes, one_of(troubles), at - 1L),
    c(bytes[seq_len(at - 1L)], one_of(troubles), bytes[-seq_len(at)]),
    bytes[seq_len(at)],
    bytes[-seq.int(at, min(size, at + sample.int(8, 1)))],
    append(bytes, bytes[seq.int(at, min(size, at + 12L))], sample.int(size, 1)),
    {
      bytes[[at]] <- as.raw(sample.int(256, 1) - 1L)
      bytes
    }
  )
}

break_some <- function(bytes) {
  for (i in seq_len(sample(0:3, 1))) {
    if (length(bytes) > 0) bytes <- break_bytes(bytes)
  }
  bytes
}

# As a gzip file, broken or not.
pack_some <- function(bytes) {
  file <- tempfile()
  on.exit(unlink(file))
  connection <- gzfile(file, "wb")
  writeBin(bytes, connection)
  close(connection)
  break_some(readBin(file, "raw", 1e6))
}

can_be_written <- utils::getFromNamespace("is_cibm_text", "fsknn")

# The numbers of a CIBM file's rows, read as simply as can be; TRUE where they
# are those of `x`.
has_values_of <- function(bytes, x) {
  text <- rawToChar(bytes)
  # So that any byte is a character.
  Encoding(text) <- "latin1"
  lines <- strsplit(text, "[\r\n]+", perl = TRUE)[[1]]
  lines <- trimws(lines[grepl("[^ \t]", lines, useBytes = TRUE)])
  all(vapply(seq_len(nrow(x)), function(i) {
    row <- lines[[i + 2L]]
    has_tabs <- grepl("\t", row, fixed = TRUE)
    name <- if (has_tabs) "^[^\t]*\t" else "^[^ ]+ +"
    cells <- strsplit(sub(name, "", row), if (has_tabs) "\t" else " +")[[1]]
    numbers <- as.numeric(unlist(strsplit(trimws(cells), " +")))
    all(nzchar(trimws(cells))) && identical(numbers, as.vector(x[i, ]))
  }, NA))
}

# What a file is read as, written and read again, is the same; and the format
# can say it.
check_cibm_value <- function(x, file, bytes) {
  stopifnot(
    all(bytes != 0), has_values_of(bytes, unname(x))
  )
  names <- c(rownames(x), colnames(x))
  stopifnot(
    is.double(x), all(is.finite(x)), all(nzchar(names)), all(validUTF8(names)),
    !anyDuplicated(rownames(x)), !anyDuplicated(colnames(x)),
    length(attr(x, "classes")) == ncol(x)
  )
  # Some names can be read, and not be written.
  if (all(can_be_written(c(names, as.character(attr(x, "classes")))))) {
    fsknn::write_points(x, file, "cibm")
    stopifnot(identical(fsknn::read_points(file, "cibm"), x))
  }
}

check_knn_value <- function(edges, file, bytes) {
  stopifnot(all(bytes != 0))
  n <- nrow(attr(edges, "vertices"))
  stopifnot(
    all(edges$from >= 1), all(edges$from <= n), all(edges$to >= 1),
    all(edges$to <= n), all(edges$from != edges$to),
    !anyDuplicated(data.frame(edges$from, edges$to)),
    !is.unsorted(edges$from), all(abs(edges$correlation) <= 1)
  )
  # Points are written by name, each of them.
  if (n < 1e6) {
    fsknn::write_knn(edges, file)
    again <- fsknn::read_knn(file)
    stopifnot(
      identical(edges$from, again$from),
      all(abs(sort(again$correlation) - sort(edges$correlation)) < 1e-6)
    )
  }
}

read_cibm <- function(file) fsknn::read_points(file, "cibm")

# Genotypes of three SNPs and two samples, whose SNPs are fuzzed.
read_bim <- function(file) {
  other <- function(ending) file.path(dirname(file), paste0("study.", ending))
  if (!file.exists(other("bed"))) {
    writeBin(as.raw(c(0x6c, 0x1b, 0x01, 1:3)), other("bed"))
    writeLines(c("F a 0 0 0 1", "F b 0 0 0 2"), other("fam"))
  }
  suppressMessages(
    fsknn::read_plink(other("bed"), bim = file, fam = other("fam"))
  )
}

check_bim_value <- function(x, file, bytes) {
  stopifnot(
    all(bytes != 0), identical(dim(x), c(3L, 2L)),
    identical(rownames(x), x$variants$name), !anyDuplicated(rownames(x)),
    all(nzchar(rownames(x))), all(validUTF8(rownames(x))),
    is.integer(x$variants$position), !anyNA(x$variants$position),
    all(is.finite(x$variants$cm)), !anyNA(unlist(x$variants))
  )
}

formats <- list(
  list(right = right_cibm, read = read_cibm, check = check_cibm_value),
  list(right = right_knn, read = fsknn::read_knn, check = check_knn_value),
  list(right = right_bim, read = read_bim, check = check_bim_value)
)

right_bytes <- function(format) {
  end <- one_of(c("\n", "\n", "\r\n", "\r"))
  charToRaw(paste0(format$right(), end, collapse = ""))
}

# One input: "read", "refused", or an error that says what is wrong.
fuzz_one <- function(file, right, is_ours) {
  at <- sample.int(length(formats), 1)
  format <- formats[[at]]
  bytes <- break_some(one_of(right[[at]]))
  packed <- sample.int(20, 1) == 1
  writeBin(if (packed) pack_some(bytes) else bytes, file)
  value <- tryCatch(format$read(file), warning = identity, error = identity)
  if (!inherits(value, "condition")) {
    # It takes some times as long as reading.
    if (sample.int(10, 1) == 1) {
      # What is damaged once it is packed is seen by the reader.
      format$check(value, file, bytes)
    }
    return("read")
  }
  if (inherits(value, "fsknn_order_warning")) {
    return("read")
  }
  if (!is_ours(value)) {
    stop("not an error of ours: ", conditionMessage(value), call. = FALSE)
  }
  "refused"
}

# Making words takes most of the time of an error, so that they are made for one
# in 1,000 only, and their parts are checked for all.
with_few_words <- function(expr) {
  quick <- function(file, line, must, found, hint = NULL, call = NULL) {
    stopifnot(
      length(file) == 1, is.null(line) || line >= 1,
      all(validUTF8(c(must, found, hint)))
    )
    if (sample.int(1000, 1) == 1) {
      whole(file, line, must, found, hint, call)
    }
    stop(structure(
      list(message = paste(file, must, found), call = NULL),
      class = c("fsknn_file_error", "error", "condition")
    ))
  }
  whole <- utils::getFromNamespace("abort_file", "fsknn")
  warn <- utils::getFromNamespace("warn_if_decreasing", "fsknn")
  put <- function(name, value) utils::assignInNamespace(name, value, "fsknn")
  put("abort_file", quick)
  put("warn_if_decreasing", function(from, distance, call = NULL) {
    if (sample.int(1000, 1) == 1) warn(from, distance, call)
  })
  on.exit({
    put("abort_file", whole)
    put("warn_if_decreasing", warn)
  })
  expr
}

# Counts of what came of them. The first input that is not as it should be stops
# it, and its bytes are printed.
fuzz_files <- function(num_inputs, seed) {
  set.seed(seed)
  folder <- tempfile("fuzz")
  dir.create(folder)
  file <- file.path(folder, "input.txt")
  slowest <- 0
  counts <- c(read = 0, refused = 0)
  is_ours <- function(value) {
    inherits(value, "fsknn_file_error") &&
      grepl("input.txt", conditionMessage(value), fixed = TRUE)
  }
  # Of 500 inputs each: to make them takes as long as to read them.
  right <- list()
  with_few_words(for (input in seq_len(num_inputs)) {
    if (input %% 500 == 1) {
      right <- lapply(formats, function(format) {
        lapply(1:20, function(i) right_bytes(format))
      })
    }
    begun <- proc.time()[["elapsed"]]
    came <- tryCatch(
      fuzz_one(file, right, is_ours),
      error = function(err) {
        bytes <- readBin(file, "raw", file.size(file))
        stop(
          "Input ", input, " of seed ", seed, ": ", conditionMessage(err),
          "\nIts bytes: ", paste(bytes, collapse = " "), call. = FALSE
        )
      }
    )
    slowest <- max(slowest, proc.time()[["elapsed"]] - begun)
    counts[[came]] <- counts[[came]] + 1
  })
  unlink(folder, recursive = TRUE)
  c(counts, slowest = slowest)
}

if (sys.nframe() == 0) {
  asked <- as.numeric(commandArgs(trailingOnly = TRUE))
  num_inputs <- if (length(asked) > 0) asked[[1]] else 1e6
  seed <- if (length(asked) > 1) asked[[2]] else 1
  seconds <- system.time(found <- fuzz_files(num_inputs, seed))[["elapsed"]]
  cat(sprintf(
    "seed %.0f: %.0f files read, %.0f refused; slowest %.2f s; %.0f s in all\n",
    seed, found[["read"]], found[["refused"]], found[["slowest"]], seconds
  ))
}
