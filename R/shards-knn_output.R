#' Write a long answer to a folder of shards
#'
#' The neighbours of 20,000,000 points, 200 each, are 4e9 entries: 48 GB, and
#' more rows than a data frame can have. With `output = `, [knn_search()] and
#' [knn_query()] write them to a folder, in shards of some rows each. The result
#' is that of [read_knn()]: index and distance as a
#' `DelayedArray::DelayedMatrix`, which is read when it is used.
#'
#' @section The folder: `output = "folder"` is short for `knn_output("folder")`.
#' The folder must be new or empty. A folder with any content, such as an
#' answer, is an error before the search begins. So is a folder to which another
#' search writes. An error or Ctrl-C deletes the partial output. After a killed
#' process, the same call deletes what it left, and nothing else, and starts
#' again.
#'
#' * `"hdf5"`: files `shard-000001.h5`, ... with two data sets, `index`
#'   (integer, from 1, [NA] where there is no neighbour) and `distance`, without
#'   chunks or compression. R sees them as rows x k. Programs in C or Python,
#'   which count dimensions in reverse order, see them as k x rows.
#' * `"bin"`: files `index-000001.ibin` and `distance-000001.fbin` (`.dbin` for
#'   doubles), ... in the form of big-ann-benchmarks: see [read_points()].
#'   Numbers count from 0 there, and -1 means no neighbour.
#'
#' A file gets its name when it is complete and on the disk. The last file is
#' `fsknn-shards`, a text that describes the answer and has a digest of each
#' file. Without it there is no answer.
#'
#' The search locks the file `fsknn-lock` (by `flock()`). The lock works among
#' the processes of one machine. Do not give one folder to two machines.
#'
#' @section Memory: The answer is held in memory once, at 12 bytes an entry, and
#' then written. If it needs more than `max_memory`, it is computed for one
#' range of rows after another, and each is written before the next begins. Then
#' each pair of points is compared twice, once from each side. With `na =
#' "pairwise"`, `BPPARAM` or `checkpoint`, the answer must fit in memory.
#'
#' @section Other verbs:
#' Other verbs have no `output`:
#' * [knn_graph()] gives edges, which are rows of a data frame. [knn_search()]
#'   gives the same neighbours as shards.
#' * [within_search()] and [threshold_graph()] give a variable number of
#'   neighbours, which is counted and limited in advance.
#' * A `k` for each point gives lists, which have no columns.
#'
#' @param folder Path of a folder, new or empty; `~` is the home directory.
#' @param format `"hdf5"` (default), which needs the packages rhdf5 and
#'   HDF5Array, or `"bin"`, which needs DelayedArray.
#' @param ... Must be empty.
#' @param shard_rows Number of rows in a shard, a whole number from 1, or `Inf`
#'   for one shard. `NULL` (default) takes 2^24 entries, 192 MiB with doubles.
#' @param precision Type of the distances. `"double"` keeps them to the last
#'   bit. `"single"` rounds them to floats of 4 bytes, so that different
#'   distances may become equal. `NULL` (default) is `"double"` with `"hdf5"`,
#'   and `"single"` with `"bin"`, as other programs expect. A distance that is
#'   too large for a float is a `fsknn_file_error`.
#'
#' @returns An object of class `fsknn_output`, for `output = `.
#' @section Errors: A folder that is not empty, or is in use, is a
#' `fsknn_output_error`. A file that can't be written is a `fsknn_file_error`.
#' @seealso [read_knn()]
#' @export
#' @examples
#' x <- matrix(rnorm(200 * 12), nrow = 200)
#' if (requireNamespace("DelayedArray", quietly = TRUE)) {
#'   folder <- tempfile()
#'   output <- knn_output(folder, "bin", shard_rows = 80, precision = "double")
#'   nn <- knn_search(x, k = 3, output = output)
#'   nn
#'   list.files(folder)
#'   identical(as_knn(nn), knn_search(x, k = 3))
#'   unlink(folder, recursive = TRUE)
#' }
knn_output <- function(folder, format = c("hdf5", "bin"), ...,
                       shard_rows = NULL, precision = NULL) {
  check_no_more(...)
  check_supplied(folder)
  format <- check_choice(format, c("hdf5", "bin"), "format")
  precision <- if (is.null(precision)) {
    if (format == "hdf5") "double" else "single"
  } else {
    check_choice(precision, c("double", "single"), "precision")
  }
  structure(
    list(
      folder = check_output_folder(folder, "folder", current_env()),
      given = folder, format = format,
      shard_rows = check_shard_rows(shard_rows, current_env()),
      precision = precision
    ),
    class = "fsknn_output"
  )
}

check_output_folder <- function(folder, arg, call) {
  if (!rlang::is_string(folder) || is.na(folder) || !nzchar(folder)) {
    given <- describe_value(folder)
    abort_argument(
      "{.arg {arg}} must be the path of a folder, not {given}.", call
    )
  }
  check_text(folder, paste0("`", arg, "`"), "path", arg, call)
  path <- sub("(.)/+$", "\\1", path.expand(folder))
  if (file.exists(path) && !dir.exists(path)) {
    abort_argument(
      c(
        "{.arg {arg}} must be the path of a folder, or of one to make.",
        x = "{.file {folder}} is a file."
      ),
      call
    )
  }
  path
}

check_shard_rows <- function(shard_rows, call) {
  if (is.null(shard_rows) || identical(shard_rows, Inf)) {
    return(shard_rows)
  }
  check_whole_number(
    shard_rows, "shard_rows", 1, .Machine$integer.max, call = call
  )
}

#' @export
print.fsknn_output <- function(x, ...) {
  rows <- if (is.null(x$shard_rows)) {
    ""
  } else if (is.infinite(x$shard_rows)) {
    ", one shard"
  } else {
    paste0(", shards of ", tally(x$shard_rows, "row"))
  }
  cat(
    "Shards for an answer: ", shard_format_words(x$format, x$precision), rows,
    "\nFolder: ", x$given, "\n", sep = ""
  )
  invisible(x)
}

shard_format_words <- function(format, precision) {
  paste0(
    if (format == "hdf5") "HDF5" else "files of big-ann-benchmarks", ", ",
    "distances in ", precision, " precision"
  )
}

# Checks the argument `output`. Returns NULL, or a knn_output whose folder is
# free as far as that can be checked without the data.
check_output <- function(output, call = caller_env()) {
  if (is.null(output)) {
    return(NULL)
  }
  if (!inherits(output, "fsknn_output")) {
    if (!rlang::is_string(output) || is.na(output) || !nzchar(output)) {
      given <- describe_value(output)
      abort_argument(
        "{.arg output} must be the path of a folder or what {.fn knn_output}
         gives, not {given}.",
        call
      )
    }
    given <- output
    folder <- check_output_folder(output, "output", call)
    output <- knn_output(folder)
    output$given <- given
  }
  check_shard_packages(output$format, "Such an output", call)
  check_output_is_free(output, call)
  output
}

check_shard_packages <- function(format, what, call) {
  check_package("DelayedArray", what, call)
  if (format == "hdf5") {
    check_package("rhdf5", what, call)
    check_package("HDF5Array", what, call)
  }
}

# --- the folder --------------------------------------------------------------

shards_name <- "fsknn-shards"
shards_lock <- "fsknn-lock"

# Matches the files that a search writes, complete or not.
shard_file_form <- paste0(
  "^((index|distance|shard)-[0-9]{6,}[.](ibin|fbin|dbin|h5)|", shards_name,
  ")([.]part-[0-9a-f]{16})?$"
)

abort_output <- function(output, message, call, hint = "Give another folder.") {
  cli_abort(
    c(
      "The folder {.file {output$given}} of {.arg output} can't be written to.",
      x = "{message}", i = hint # file names must not be formatted
    ),
    class = c("fsknn_output_error", "fsknn_error"), call = call
  )
}

# The folder must be new, empty, or left by a search that did not complete its
# answer.
check_output_is_free <- function(output, call) {
  files <- list.files(output$folder, all.files = TRUE, no.. = TRUE)
  if (shards_name %in% files) {
    opened <- tryCatch(
      open_shards(output$given, output$folder, FALSE, call),
      fsknn_package_error = function(err) TRUE, # unknown: no package
      error = function(err) NULL
    )
    if (is.null(opened)) {
      abort_output(
        output, "It holds an answer already, which is damaged.", call,
        "{.fn read_knn} says what is wrong with it; delete the folder, or
         give another."
      )
    }
    abort_output(
      output, "It holds an answer already.", call,
      "{.fn read_knn} opens it; give another folder, or delete this one."
    )
  }
  others <- files[files != shards_lock & !grepl(shard_file_form, files)]
  if (length(others) > 0) {
    where <- first_few(paste0("\"", others, "\""))
    message <- cli::format_inline("It holds something else: {where}.")
    abort_output(output, message, call)
  }
}

# Creates, locks and clears the folder. Returns an environment for
# release_output().
claim_output <- function(output, call, num_threads = check_num_threads(NULL)) {
  dir.create(output$folder, showWarnings = FALSE, recursive = TRUE)
  if (!dir.exists(output$folder)) {
    abort_output(output, "It can't be made.", call)
  }
  claim <- new.env(parent = emptyenv())
  claim$output <- output
  claim$folder <- normalizePath(output$folder)
  claim$whole <- FALSE
  claim$num_threads <- num_threads
  path <- file.path(claim$folder, shards_lock)
  answer <- cpp_lock_host(path)
  if (identical(answer$failure, "file")) {
    message <- cli::format_inline(
      "It can't be locked: {.file {basename(path)}}: {answer$message}."
    )
    abort_output(output, message, call)
  }
  claim$lock <- in_core(answer, call)$lock
  if (is.null(claim$lock)) {
    abort_output(output, "Another search is writing to it.", call)
  }
  # The folder may have changed since the first check.
  free <- FALSE
  on.exit(if (!free) cpp_unlock_host(claim$lock))
  check_output_is_free(output, call)
  clear_output(claim)
  free <- TRUE
  claim
}

clear_output <- function(claim) {
  left <- list.files(claim$folder, shard_file_form, full.names = TRUE)
  unlink(left, expand = FALSE)
}

# Deletes an incomplete answer.
release_output <- function(claim) {
  if (is.null(claim$lock)) {
    return(invisible())
  }
  if (!claim$whole) {
    clear_output(claim)
  }
  cpp_unlock_host(claim$lock)
  claim$lock <- NULL
  invisible()
}
