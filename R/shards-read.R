# Answers in folders, which searches with `output` write: see read_knn().

read_shards <- function(folder, verify, call) {
  path <- check_output_folder(folder, "file", call)
  if (!dir.exists(path)) {
    abort_argument(
      "{.arg file} must be a folder that is there, and {.file {folder}} is
       not.",
      call
    )
  }
  open_shards(folder, path, verify, call)
}

is_knn_shards <- function(x) {
  inherits(x, "fsknn_shards")
}

# `given` is the path as the user wrote it.
open_shards <- function(given, path, verify, call) {
  facts <- read_shards_text(given, path, call)
  check_shard_packages(facts$format, "This answer", call)
  for (at in seq_len(nrow(facts$files))) {
    check_shard_file(facts$files[at, ], given, path, verify, call)
  }
  path <- normalizePath(path)
  matrices <- if (facts$format == "hdf5") {
    hdf5_matrices(facts, path)
  } else {
    bin_matrices(facts, path)
  }
  structure(
    c(matrices, list(folder = path, facts = facts)), class = "fsknn_shards",
    searched = new_searched()
  )
}

abort_shards <- function(given, words, call, hint = NULL) {
  cli_abort(
    c(
      "The answer in {.file {given}} can't be read.", x = "{words}", i = hint
    ),
    class = c("fsknn_shards_error", "fsknn_file_error", "fsknn_error"),
    call = call
  )
}

# --- facts of the answer -----------------------------------------------------

read_shards_text <- function(given, path, call) {
  file <- file.path(path, shards_name)
  if (!file.exists(file)) {
    files <- list.files(path, all.files = TRUE, no.. = TRUE)
    begun <- any(files == shards_lock | grepl(shard_file_form, files))
    abort_shards(
      given,
      if (begun) {
        "It is not whole: the search that writes it is at work, or was ended."
      } else {
        "There is none: no file \"fsknn-shards\"."
      },
      call, if (begun) "The same call as before writes it anew."
    )
  }
  facts <- facts_of_text(readBin(file, "raw", file.size(file)))
  if (is.null(facts)) {
    abort_shards(
      given,
      "\"fsknn-shards\" is damaged, or of another version of fsknn.", call
    )
  }
  facts
}

# Returns NULL if the bytes are not such text.
facts_of_text <- function(bytes) {
  end <- grepRaw("\ndigest: ", bytes, fixed = TRUE)
  if (length(end) == 0 || any(bytes == 0)) {
    return(NULL)
  }
  body <- bytes[seq_len(end)]
  digest <- rawToChar(bytes[-seq_len(end)])
  if (!identical(digest, paste0("digest: ", cpp_digest_raw(body), "\n"))) {
    return(NULL)
  }
  lines <- strsplit(rawToChar(body), "\n", fixed = TRUE)[[1]]
  colon <- regexpr(": ", lines, fixed = TRUE)
  name <- substr(lines, 1, colon - 1)
  text <- substring(lines, colon + 2)
  facts <- as.list(stats::setNames(text, name)[name != "file"])
  known <- c("form", "format", "precision", "rows", "columns", "points", "of")
  if (!all(known %in% names(facts)) || facts$form != "1") {
    return(NULL)
  }
  for (number in c("rows", "columns", "points")) {
    facts[[number]] <- as.double(facts[[number]])
  }
  files <- strsplit(text[name == "file"], " ", fixed = TRUE)
  column <- function(at) vapply(files, `[`, "", at)
  facts$files <- data.frame(
    name = column(1), first = as.double(column(2)),
    last = as.double(column(3)), bytes = as.double(column(4)),
    ends = column(5), whole = column(6)
  )
  facts
}

check_shard_file <- function(file, given, path, verify, call) {
  name <- file$name
  abort <- function(words) {
    abort_shards(given, paste0("\"", name, "\" ", words, "."), call)
  }
  full <- file.path(path, name)
  if (!file.exists(full)) {
    abort("is missing")
  }
  size <- file.size(full)
  if (!identical(size, file$bytes)) {
    abort(paste0(
      "is damaged: it has ", format_count(size), " bytes, and had ",
      format_count(file$bytes)
    ))
  }
  found <- cpp_file_facts(full, verify, 1L)
  if (identical(found$failure, "file")) {
    abort(paste0("can't be read: ", found$message))
  }
  found <- in_core(found, call)
  if (found$ends != file$ends) {
    abort("is damaged, or that of another answer")
  }
  if (verify && found$whole != file$whole) {
    abort("is damaged: its bytes are others than were written")
  }
}

# --- matrices of the answer --------------------------------------------------

# Returns names and rows of the files that hold indices or distances.
files_of <- function(facts, what) {
  if (facts$format == "hdf5") {
    facts$files
  } else {
    facts$files[startsWith(facts$files$name, what), ]
  }
}

empty_matrices <- function(facts) {
  list(
    index = DelayedArray::DelayedArray(matrix(0L, 0, facts$columns)),
    distance = DelayedArray::DelayedArray(matrix(0, 0, facts$columns))
  )
}

hdf5_matrices <- function(facts, path) {
  if (facts$rows == 0) {
    return(empty_matrices(facts))
  }
  one <- function(what) {
    parts <- lapply(file.path(path, facts$files$name), function(file) {
      HDF5Array::HDF5Array(file, what)
    })
    if (length(parts) == 1) parts[[1]] else do.call(rbind, parts)
  }
  list(index = one("index"), distance = one("distance"))
}

bin_matrices <- function(facts, path) {
  if (facts$rows == 0) {
    return(empty_matrices(facts))
  }
  one <- function(what) {
    files <- files_of(facts, what)
    DelayedArray::DelayedArray(new_lazy_rows(
      "fsknn_shard_rows", c(facts$rows, facts$columns), NULL,
      function(rows, columns) read_bin_shards(path, files, rows, columns)
    ))
  }
  list(index = one("index"), distance = one("distance"))
}

# Reads rows in any order, from any of the files.
read_bin_shards <- function(path, files, rows, columns) {
  rows <- as.double(rows)
  shard <- findInterval(rows, files$first)
  ending <- tools::file_ext(files$name[[1]])
  read <- function(at, rows) {
    name <- files$name[[at]]
    values <- read_bin(
      name, file.path(path, name), ending, rows - files$first[[at]] + 1,
      shifted = ending == "ibin"
    )
    if (is.null(columns)) values else values[, columns, drop = FALSE]
  }
  if (length(rows) == 0) {
    return(read(1, double()))
  }
  if (length(unique(shard)) == 1) {
    return(read(shard[[1]], rows))
  }
  parts <- split(seq_along(rows), shard)
  values <- do.call(rbind, Map(
    function(at, places) read(at, rows[places]),
    as.integer(names(parts)), parts
  ))
  values[order(unlist(parts, use.names = FALSE)), , drop = FALSE]
}

# --- the object --------------------------------------------------------------

#' @export
dim.fsknn_shards <- function(x) {
  dim(x$index)
}

#' @method format fsknn_shards
#' @export
format.fsknn_shards <- function(x, ...) {
  facts <- x$facts
  files <- facts$files
  shards <- length(unique(files$first))
  c(
    paste0(
      "Neighbours of ", tally(facts$rows, "point"), ", ",
      format_count(facts$columns), " each",
      if (facts$of != "points") {
        paste0(
          if (facts$of == "queries") " (queries)" else " (a subset)",
          ", among ", format_count(facts$points)
        )
      },
      if (!is.null(facts$metric)) paste0(": ", facts$metric)
    ),
    paste0(
      tally(shards, "shard"), ", ", format_bytes(sum(files$bytes)), " (",
      shard_format_words(facts$format, facts$precision), ")"
    ),
    format_searched(x),
    paste0(
      "$index, $distance: ",
      paste(format_count(dim(x)), collapse = " x "), ", read when asked for"
    )
  )
}

#' @export
print.fsknn_shards <- function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}

#' @rdname read_knn
#' @method summary fsknn_shards
#' @export
summary.fsknn_shards <- function(object, ...) {
  check_no_more(...)
  size <- dim(object)
  at_once <- max(1, floor(2^26 / max(1, size[[1]])))
  parts <- lapply(row_ranges(size[[2]], at_once), function(columns) {
    distance <- as_plain(object$distance[, columns, drop = FALSE])
    quantiles_by_rank(rep(columns, each = size[[1]]), as.vector(distance))
  })
  structure(
    list(lines = format(object)[1:2], quantiles = do.call(rbind, parts)),
    class = "summary.fsknn_shards"
  )
}

#' @export
print.summary.fsknn_shards <- function(x, ...) {
  cat(x$lines, sep = "\n")
  if (NROW(x$quantiles) > 0) {
    cat(format_quantiles(x$quantiles, "distance"), sep = "\n")
  }
  invisible(x)
}
