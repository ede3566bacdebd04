#' Where a long answer goes: shards in a folder
#'
#' The neighbours of 20,000,000 points, 200 each, are 4e9 places: 48 GB, and
#' more rows than a data frame can have. With `output = ` [knn_search()] and
#' [knn_query()] write them to a folder, in shards of some rows each, and give
#' what [read_knn()] gives: index and distance as a
#' `DelayedArray::DelayedMatrix`, of which nothing is in memory until it is
#' asked for.
#'
#' `output = "folder"` stands for `knn_output("folder")`. The folder must be new
#' or empty. A folder with anything in it, an answer too, is an error, and so is
#' one that another search is writing to, before the search begins; an error or
#' Ctrl-C takes away what was written. After a process was killed the same call
#' clears what it left, and nothing else, and writes anew.
#'
#' * `"hdf5"`: files `shard-000001.h5`, ... with two data sets, `index`
#'   (integer, from 1, [NA] where there is no neighbour) and `distance`, without
#'   chunks or compression. R sees them as rows x k; to programs in C or Python,
#'   which count dimensions the other way round, they are k x rows.
#' * `"bin"`: files `index-000001.ibin` and `distance-000001.fbin` (`.dbin` of
#'   doubles), ... in the form of big-ann-benchmarks: see [read_points()].
#'   Numbers count from 0 there, and -1 is no neighbour.
#'
#' A file has its name when it is whole and on the disk. The last one to come is
#' `fsknn-shards`, a text that says what the answer is and has a digest of each
#' file: without it there is no answer. `fsknn-lock` is what the search holds.
#' The lock (`flock()`) is among the processes of one machine: two machines must
#' not be given one folder.
#'
#' The answer is in memory once, 12 bytes a place, and written from there. If it
#' would take more than `max_memory`, it is found by ranges of the rows instead,
#' each written before the next is begun: then each two points are compared
#' twice, once from each side. `na = "pairwise"` and searches with `BPPARAM` or
#' `checkpoint` hold it in memory.
#'
#' Which other verbs have no `output`: [knn_graph()] gives edges, which are rows
#' of a data frame, and for shards the same is said by [knn_search()];
#' [within_search()] and [threshold_graph()] give as many as there are, counted
#' and limited before; a `k` for each point gives lists, which have no columns.
#'
#' @param folder Path of a folder, new or empty; `~` is the home directory.
#' @param format `"hdf5"` (default), which needs the packages rhdf5 and
#'   HDF5Array, or `"bin"`, which needs DelayedArray.
#' @param ... Must be empty.
#' @param shard_rows Number of rows in a shard, a whole number from 1, or `Inf`
#'   for one shard. `NULL` (default) takes 2^24 places, 192 MiB of doubles.
#' @param precision Distances as `"double"`, the answer to the last bit, or
#'   `"single"`, floats of 4 bytes: the nearest ones, in which different
#'   distances may be equal. `NULL` (default) is `"double"` with `"hdf5"`, and
#'   `"single"` with `"bin"`, as other programs read it. A distance that is too
#'   large for a float is a `fsknn_file_error`.
#'
#' @returns An object of class `fsknn_output`, for `output = `.
#' @section Errors:
#' A folder that has something in it, or is in use, is a `fsknn_output_error`;
#' a file that can't be written a `fsknn_file_error`.
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
claim_output <- function(output, call) {
  dir.create(output$folder, showWarnings = FALSE, recursive = TRUE)
  if (!dir.exists(output$folder)) {
    abort_output(output, "It can't be made.", call)
  }
  claim <- new.env(parent = emptyenv())
  claim$output <- output
  claim$folder <- normalizePath(output$folder)
  claim$whole <- FALSE
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
