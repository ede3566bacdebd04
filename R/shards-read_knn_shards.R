#' Open the shards of a long answer
#'
#' What a search with `output = ` wrote (see [knn_output()]), as one answer
#' whose matrices are read when they are asked for.
#'
#' Opening reads the text that says what the answer is, and of each file its
#' size and a digest of its ends (64 KiB each): a file that is missing, was cut,
#' is that of another answer or whose writing was ended is an error that names
#' it. `verify = TRUE` reads all bytes, and finds any that is not as it was.
#'
#' What takes an answer takes it, too:
#' * by blocks of rows, so that no more than a block is in memory:
#'   [write_ibin()] and [knn_recall()] (either of the two, or both),
#'   [spanning_forest()] (beside it the tree so far);
#' * by blocks, into what it makes or works on, which must fit in memory:
#'   [as_sparse()], of distances or ones; [diffusion_map()]; [snn_graph()],
#'   which takes the indices alone;
#' * all others ([as_knn()], [convert_knn()], [undirected_edges()], ...) as a
#'   whole.
#'
#' What works on all neighbours at once ([diffusion_map()], [as_sparse()] of
#' symmetric matrices, and those that take the answer as a whole) refuses one
#' whose 12 bytes a place are more than `options(fsknn.max_memory = )` (by
#' default a third of what is free); [snn_graph()] does so for 4 bytes.
#'
#' @param folder Path of the folder.
#' @param ... Must be empty.
#' @param verify Read all bytes of all files, and compare their digests? `FALSE`
#'   by default.
#' @param object What `read_knn_shards()` gives.
#'
#' @returns A list of class `knn_shards`: `index` and `distance`, each a
#'   `DelayedMatrix` with a row for each point that was asked for and k columns
#'   (with `block`, k of each), as [knn_search()] has them; and `folder` and
#'   `facts`, a list of what the answer is: `rows`, `columns`, the number of
#'   `points` that indices are numbers of, `of` (`"points"`, `"subset"`,
#'   `"queries"`), `metric`, `sign`, `format`, `precision`, and `files`, a data
#'   frame. `dim()` is that of its matrices. `summary()` has quantiles of the
#'   distance of each rank, for which all distances are read, some columns at a
#'   time.
#' @section Errors: A folder that is not there is a `fsknn_argument_error`; one
#' without an answer, or whose files are not those that were written, a
#' `fsknn_shards_error`.
#' @seealso [knn_output()]
#' @export
#' @examples
#' x <- matrix(rnorm(200 * 12), nrow = 200)
#' if (requireNamespace("HDF5Array", quietly = TRUE)) {
#'   folder <- tempfile()
#'   knn_search(x, k = 3, output = folder)
#'   nn <- read_knn_shards(folder, verify = TRUE)
#'   dim(nn)
#'   nn$distance
#'   as_sparse(nn)[1:3, 1:8]
#'   unlink(folder, recursive = TRUE)
#' }
read_knn_shards <- function(folder, ..., verify = FALSE) {
  check_no_more(...)
  check_supplied(folder)
  verify <- check_flag(verify, "verify")
  path <- check_output_folder(folder, "folder", current_env())
  if (!dir.exists(path)) {
    abort_argument(
      "{.arg folder} must be a folder that is there, and {.file {folder}} is
       not.",
      current_env()
    )
  }
  open_shards(folder, path, verify, current_env())
}

is_knn_shards <- function(x) {
  inherits(x, "knn_shards")
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
    c(matrices, list(folder = path, facts = facts)), class = "knn_shards",
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
  found <- cpp_file_facts(full, verify)
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
dim.knn_shards <- function(x) {
  dim(x$index)
}

#' @method format knn_shards
#' @export
format.knn_shards <- function(x, ...) {
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
print.knn_shards <- function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}

#' @rdname read_knn_shards
#' @method summary knn_shards
#' @export
summary.knn_shards <- function(object, ...) {
  check_no_more(...)
  size <- dim(object)
  at_once <- max(1, floor(2^26 / max(1, size[[1]])))
  parts <- lapply(row_stretches(size[[2]], at_once), function(columns) {
    distance <- as_plain(object$distance[, columns, drop = FALSE])
    quantiles_by_rank(rep(columns, each = size[[1]]), as.vector(distance))
  })
  structure(
    list(lines = format(object)[1:2], quantiles = do.call(rbind, parts)),
    class = "summary.knn_shards"
  )
}

#' @export
print.summary.knn_shards <- function(x, ...) {
  cat(x$lines, sep = "\n")
  if (NROW(x$quantiles) > 0) {
    cat(format_quantiles(x$quantiles, "distance"), sep = "\n")
  }
  invisible(x)
}
