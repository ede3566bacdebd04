# The folder of long work is its protocol. The processes that work on a search
# agree with each other only by files in it. They may be one or many, on one
# machine or several that share the folder, at the same time or in turn.
#
#   fsknn-search             what the search is, as text, and its division
#   fsknn-work               what a worker needs to know besides its points
#   fsknn-points, -query     the points, with a digest of each
#   fsknn-task-000001        a task's part of the answer: see folder-task_file.R
#   fsknn-claim-000001-001   who works on it: see folder-claims.R
#   fsknn-lease-*            the file of that claim's owner, under its own name
#   fsknn-receipt-000001     who did it, and how long it took
#   fsknn-failure-000001-1   what went wrong: see folder-failures.R
#   fsknn-call-*             exists as long as a call that started workers
#
# A file with its final name is complete: it was written under another name,
# which is unpredictable, and then linked or renamed. If several processes write
# the same file, the first link wins and the others' are dropped. The answer is
# the same in each case. Files of the answer are sealed (see
# core/files/sealed_file.hpp), which detects damage by a broken disk or another
# program. All have the fingerprint of the search, a digest of its text and its
# division. This detects files of another search or of other rows, too. Such a
# task is done again. A damaged fsknn-search is an error, because the other
# files in the folder may belong to somebody else.

check_checkpoint <- function(checkpoint, call = caller_env()) {
  if (is.null(checkpoint)) {
    return(NULL)
  }
  check_folder_name(checkpoint, "checkpoint", call)
}

check_folder_name <- function(folder, arg, call) {
  if (!rlang::is_string(folder) || is.na(folder) || !nzchar(folder)) {
    given <- describe_value(folder)
    abort_argument(
      "{.arg {arg}} must be the path of a folder, not {given}.", call
    )
  }
  check_text(folder, paste0("`", arg, "`"), "path", arg, call)
  if (file.exists(folder) && !dir.exists(folder)) {
    abort_argument(
      c(
        "{.arg {arg}} must be the path of a folder{if (arg == \"checkpoint\")
         \", or of one to make\"}.",
        x = "{.file {folder}} is a file."
      ),
      call
    )
  }
  folder
}

# Creates an environment:
#   folder, given   its path, and as the user wrote it; arg: by which argument
#   print           the fingerprint that its files have
#   text            what the search is, as from fingerprint()
#   plan            list(kind, size): see search-tasks.R
#   lease_seconds   maximum time between two changes of a claim's counter
new_job <- function(folder, arg = "checkpoint") {
  job <- new.env(parent = emptyenv())
  job$given <- folder
  job$folder <- normalizePath(folder)
  job$arg <- arg
  job$lease_seconds <- lease_seconds()
  job$word <- random_word()
  job
}

# For options(fsknn.lease_seconds = ), see folder-claims.R.
lease_seconds <- function(call = caller_env()) {
  seconds <- getOption("fsknn.lease_seconds", 60)
  good <- is.numeric(seconds) && length(seconds) == 1 && is.finite(seconds) &&
    seconds > 0
  if (!good) {
    given <- describe_value(seconds)
    abort_argument(
      "{.code options(fsknn.lease_seconds = )} must be a number above 0, not
       {given}.",
      call
    )
  }
  as.double(seconds)
}

# Returns 16 hexadecimal digits that no other process has. They do not depend on
# R's seed.
random_word <- function() {
  session$words <- (session$words %||% 0) + 1
  cpp_digest_raw(charToRaw(paste(
    Sys.info()[["nodename"]], Sys.getpid(), tempfile(),
    format(cpp_steady_seconds(), digits = 17), session$words
  )))
}

# Creates the folder of `work`, or joins those who work in it.
open_folder <- function(given, work, call) {
  dir.create(given, showWarnings = FALSE, recursive = TRUE)
  if (!dir.exists(given)) {
    abort_argument(
      "The folder {.file {given}} of {.arg checkpoint} can't be made.", call
    )
  }
  job <- new_job(given)
  check_folder_is_ours(job, call)
  text <- fingerprint(work, call)
  plan <- text_of_plan(work$plan)
  known <- read_search_text(job, call)
  if (is.null(known)) {
    bytes <- search_text(text, plan)
    first <- write_once(
      job, "search", "search", 0, cpp_digest_raw(bytes), list(text = bytes),
      call
    )
    # Another call may have created it in the meantime.
    known <- if (first) c(plan, text) else read_search_text(job, call)
  }
  check_same_search(job, known, text, call)
  know_search(job, known)
  job
}

know_search <- function(job, known) {
  of_plan <- names(known) %in% c("tasks", "task_size")
  job$plan <- list(
    kind = known[["tasks"]], size = as.integer(known[["task_size"]])
  )
  job$text <- known[!of_plan]
  job$print <- cpp_digest_raw(search_text(job$text, known[of_plan]))
  invisible(job)
}

job_file <- function(job, name) {
  file.path(job$folder, paste0("fsknn-", name))
}

# The name of an incomplete file ends with this pattern.
unfinished_file <- "[.]part-[0-9a-f]{16}"

# The folder must be new or empty, or made by this package.
check_folder_is_ours <- function(job, call) {
  files <- list.files(job$folder, all.files = TRUE, no.. = TRUE)
  if (length(files) == 0 || "fsknn-search" %in% files) {
    return(invisible())
  }
  if ("fsknn-search.dcf" %in% files) {
    abort_unreadable(job, "It was made by another version of fsknn.", call)
  }
  # These files are left by a call that ended before it had written its search.
  ours <- paste0("^fsknn-(lock|search", unfinished_file, ")$")
  others <- files[!grepl(ours, files)]
  if (length(others) == 0 || file.exists(job_file(job, "search"))) {
    return(invisible())
  }
  where <- first_few(paste0("\"", others, "\""))
  abort_argument(
    c(
      "The folder {.file {job$given}} of {.arg {job$arg}} must be new, empty,
       or that of an earlier run.",
      x = "It holds something else: {where}."
    ),
    call
  )
}

# Returns named text, or NULL if the file does not exist yet.
read_search_text <- function(job, call) {
  file <- in_files(
    cpp_read_sealed(
      job_file(job, "search"), "search", 0, "", list(text = raw()), NA_real_
    ),
    job, call
  )
  if (file$state == "missing") {
    return(NULL)
  }
  if (file$state == "damaged") {
    abort_unreadable(
      job, "{.file fsknn-search} in it is damaged: it was changed, or cut.",
      call
    )
  }
  known <- if (file$state == "whole") text_of_search(file$columns$text)
  if (is.null(known)) {
    abort_unreadable(
      job,
      "{.file fsknn-search} in it is not what this version of fsknn writes.",
      call
    )
  }
  known
}

other_folder <- "Give another folder, or delete this one."

# `hint` says how to proceed.
abort_unreadable <- function(job, why, call, hint = other_folder) {
  cli_abort(
    c(
      "The folder {.file {job$given}} of {.arg {job$arg}} can't be read.",
      x = why,
      i = hint
    ),
    class = c("fsknn_checkpoint_error", "fsknn_error"),
    call = call
  )
}

# This is the hint for files that the owner of the points can write again.
mended_by_search <- "The search that made it mends it: call it again, with the
                     same {.arg checkpoint}."

# Returns TRUE if the new file got the name.
write_once <- function(job, name, kind, number, print, columns, call) {
  in_files(
    cpp_write_sealed(
      job_file(job, name), kind, number, print, columns, once = TRUE
    ),
    job, call
  )$first
}

# Raises an error if the file system refused, and otherwise returns the answer.
in_files <- function(answer, job, call) {
  if (!identical(answer$failure, "file")) {
    return(in_core(answer, call))
  }
  name <- basename(answer$path)
  cli_abort(
    c(
      "The folder {.file {job$given}} of {.arg {job$arg}} can't be used.",
      x = "{.file {name}}: {answer$message}."
    ),
    class = c("fsknn_checkpoint_error", "fsknn_error"),
    call = call
  )
}

# --- description of the work -------------------------------------------------

# Each call writes the missing files for those who come later. `with_points` is
# FALSE if all workers have the points already.
write_work <- function(job, search, work, with_points, call) {
  parts <- list(
    version = package_version_text(), lease_seconds = job$lease_seconds,
    request = request_for_all(work$request),
    num_rows = work$num_rows, search = search_for_collecting(search),
    points = write_rows(job, "points", work$values, work, with_points, call),
    query = write_rows(job, "query", work$queries, work, with_points, call)
  )
  write_mended(job, "work", list(parts = serialize(parts, NULL)), call)
  job$lease_seconds <- read_work(job, call)$lease_seconds
}

# Removes what holds only for this call: later calls may have other memory, and
# may want a file for triples.
request_for_all <- function(request) {
  request$bar <- NULL
  request$triples[c("most", "to_file", "with_pairs")] <- NULL
  request
}

# Returns what is needed to make the answer from the results, without the
# values.
search_for_collecting <- function(search) {
  kept <- search[intersect(
    names(search),
    c("num_rows", "each_k", "left_out", "query_left_out", "skip", "as_table",
      "as_edges")
  )]
  kept$points <- search$points[intersect(
    names(search$points),
    c("names", "transposed", "cells", "taken_from", "samples")
  )]
  kept$options <- search$options[c("metric", "input")]
  kept["queries"] <- list(if (!is.null(search$queries)) list())
  kept
}

# An undamaged file is left alone, so that a finished folder may be read-only. A
# damaged one is replaced, because its writer knows the right content.
write_mended <- function(job, name, columns, call) {
  is_whole <- function() read_sealed_work(job, name, call)$state == "whole"
  if (is_whole()) {
    return(invisible())
  }
  first <- write_once(job, name, name, 0, job$print, columns, call)
  if (!first && !is_whole()) {
    in_files(
      cpp_write_sealed(
        job_file(job, name), name, 0, job$print, columns, once = FALSE
      ),
      job, call
    )
  }
}

read_sealed_work <- function(job, name, call) {
  in_files(
    cpp_read_sealed(
      job_file(job, name), name, 0, job$print, list(parts = raw()), NA_real_
    ),
    job, call
  )
}

# Returns NULL if the file does not exist yet.
read_work <- function(job, call) {
  file <- read_sealed_work(job, "work", call)
  if (file$state == "missing") {
    return(NULL)
  }
  if (file$state != "whole") {
    abort_unreadable(
      job, "{.file fsknn-work} in it is damaged, or of another search.", call,
      mended_by_search
    )
  }
  unserialize(file$columns$parts)
}

# Rows are written to a file of their own. Recipes for rows are stored in
# fsknn-work.
write_rows <- function(job, name, values, work, with_points, call) {
  if (!is.matrix(values) && !is_row_file(values)) {
    return(list(values = values))
  }
  if (with_points) {
    path <- job_file(job, name)
    written <- function() {
      in_files(
        cpp_write_points(path, values, work$request, job$print), job, call
      )$first
    }
    known <- in_files(cpp_open_points(path, job$print), job, call)$state
    if (known == "missing") {
      known <- if (written()) {
        "whole"
      } else {
        in_files(cpp_open_points(path, job$print), job, call)$state
      }
    }
    if (known != "whole") {
      unlink(path)
      written()
    }
  }
  list(in_file = TRUE)
}

# Returns rows in the form that the core takes, or NULL if the file does not
# exist yet.
read_point_rows <- function(job, name, part, call) {
  if (!isTRUE(part$in_file)) {
    return(list(values = part$values))
  }
  file <- in_files(cpp_open_points(job_file(job, name), job$print), job, call)
  if (file$state == "missing") {
    return(NULL)
  }
  if (file$state != "whole") {
    abort_unreadable(
      job,
      paste0(
        "{.file fsknn-", name, "} in it is damaged, or of another search."
      ),
      call, mended_by_search
    )
  }
  list(values = structure(
    list(file = file$file, size = file$size, prepared = file$prepared),
    class = c("point_file", "row_file")
  ))
}
