# Checkpoints: a folder that keeps the splits of a search that are done, so that
# a run that was ended at any moment goes on from there.
#
#   fsknn-search          what the search is, as text, and the size of splits
#   fsknn-split-000001    a split's part of the answer: see split_file.R
#   fsknn-lock            held by the process that works on it
#
# Files are sealed (see core/sealed_file.hpp): what has the name is whole, and
# one that is not (a broken disk, another program) is told from it. All splits
# have the search's fingerprint, a digest of its text and of the size of splits:
# that of another search, or of other rows, is told too. Such a split is done
# again. A damaged fsknn-search is an error: what else is in the folder may be
# somebody's.

check_checkpoint <- function(checkpoint, call = caller_env()) {
  if (is.null(checkpoint)) {
    return(NULL)
  }
  if (!rlang::is_string(checkpoint) || is.na(checkpoint) ||
        !nzchar(checkpoint)) {
    given <- describe_value(checkpoint)
    abort_argument(
      "{.arg checkpoint} must be the path of a folder, not {given}.", call
    )
  }
  if (file.exists(checkpoint) && !dir.exists(checkpoint)) {
    abort_argument(
      c(
        "{.arg checkpoint} must be the path of a folder, or of one to make.",
        x = "{.file {checkpoint}} is a file."
      ),
      call
    )
  }
  checkpoint
}

# NULL where nothing is kept; else an environment: folder, given (as the user
# wrote it), lock, size (rows in a split), print (the fingerprint of files),
# done (splits whose files are there).
open_checkpoint <- function(search, work, call) {
  given <- search$options$long$folder
  if (is.null(given)) {
    return(NULL)
  }
  dir.create(given, showWarnings = FALSE, recursive = TRUE)
  if (!dir.exists(given)) {
    abort_argument(
      "The folder {.file {given}} of {.arg checkpoint} can't be made.", call
    )
  }
  kept <- new.env(parent = emptyenv())
  kept$given <- given
  kept$folder <- normalizePath(given)
  check_folder_is_ours(kept, call)
  lock_checkpoint(kept, call)
  opened <- FALSE
  on.exit(if (!opened) close_checkpoint(kept))
  print <- fingerprint(work, call)
  known <- read_checkpoint(kept, call)
  if (is.null(known)) {
    write_checkpoint(kept, print, work$size, call)
    kept$size <- work$size
  } else {
    check_same_search(kept, known, print, call)
    kept$size <- as.integer(known[["split_size"]])
  }
  kept$print <- cpp_digest_raw(search_text(print, kept$size))
  work$size <- kept$size
  left <- paste0("^fsknn-.*", unfinished_file, "$")
  unlink(list.files(kept$folder, left, full.names = TRUE), expand = FALSE)
  kept$done <- which(
    file.exists(split_file(kept, seq_len(num_splits(work))))
  )
  opened <- TRUE
  kept
}

close_checkpoint <- function(kept) {
  if (!is.null(kept$lock)) {
    cpp_unlock_file(kept$lock)
    kept$lock <- NULL
  }
}

checkpoint_file <- function(kept, name) {
  file.path(kept$folder, paste0("fsknn-", name))
}

split_file <- function(kept, split) {
  checkpoint_file(kept, sprintf("split-%06d", split))
}

# How the name of a file ends that is not whole yet.
unfinished_file <- "[.]part-[0-9a-f]{16}"

# New or empty, or made by us.
check_folder_is_ours <- function(kept, call) {
  files <- list.files(kept$folder, all.files = TRUE, no.. = TRUE)
  if (length(files) == 0 || "fsknn-search" %in% files) {
    return(invisible())
  }
  if ("fsknn-search.dcf" %in% files) {
    abort_unreadable(kept, "It was made by another version of fsknn.", call)
  }
  # Ended before it had written what it searches for.
  ours <- paste0("^fsknn-(lock|search", unfinished_file, ")$")
  others <- files[!grepl(ours, files)]
  if (length(others) == 0) {
    return(invisible())
  }
  where <- first_few(paste0("\"", others, "\""))
  abort_argument(
    c(
      "The folder {.file {kept$given}} of {.arg checkpoint} must be new, empty,
       or that of an earlier run.",
      x = "It holds something else: {where}."
    ),
    call
  )
}

lock_checkpoint <- function(kept, call) {
  answer <- in_files(cpp_lock_file(checkpoint_file(kept, "lock")), kept, call)
  if (is.null(answer$lock)) {
    who <- if (answer$owner > 0) {
      paste("process", format_bound(answer$owner))
    } else {
      "another process"
    }
    cli_abort(
      c(
        "The folder {.file {kept$given}} of {.arg checkpoint} is in use.",
        x = "It is held by {who}.",
        i = "Wait for it to end, or give another folder."
      ),
      class = c("fsknn_checkpoint_error", "fsknn_error"),
      call = call
    )
  }
  kept$lock <- answer$lock
}

# --- what the search is ------------------------------------------------------

# What changes where and how the answer is found, and not the answer.
free_to_change <- c(
  "backend", "devices", "num_threads", "chunk_size", "max_device_memory",
  "max_memory", "bytes_file", "bytes_made_from", "largest", "progress",
  "instruction_set"
)

# What is asked of pairs within a distance, by the names that the verbs have for
# it; how many there is room for is free to change.
within_text <- function(within) {
  if (!is.null(within$similarity)) {
    list(min_similarity = within$similarity)
  } else {
    list(distance = within$limits)
  }
}

# Named text: everything that the answer depends on.
fingerprint <- function(work, call) {
  threads <- max(1L, work$request$num_threads, na.rm = TRUE)
  digest_of <- function(values) {
    if (is.null(values)) {
      return("none")
    }
    in_core(cpp_digest(values, threads), call)$digest
  }
  request <- work$request
  if (is_within(request)) {
    request <- c(request, within_text(request$within))
  }
  request <- request[setdiff(names(request), c(free_to_change, "within"))]
  request <- request[order(names(request))]
  c(
    version = package_version_text(),
    points = number_text(nrow(work$values)),
    features = number_text(ncol(work$values)),
    x = digest_of(work$values),
    query = digest_of(work$queries),
    vapply(request, value_text, "")
  )
}

# A value as one line of text: itself, or a digest.
value_text <- function(value) {
  if (is.null(value)) {
    return("none")
  }
  if (is.atomic(value) && length(value) == 1 && is.null(attributes(value))) {
    return(if (is.double(value)) number_text(value) else as.character(value))
  }
  if (is.atomic(value) && length(value) == 0) {
    return("none")
  }
  # Without the head, which names the version of R.
  bytes <- serialize(value, NULL, ascii = FALSE, xdr = TRUE, version = 2)
  paste0(
    number_text(length(value)), " values, ", cpp_digest_raw(bytes[-seq_len(14)])
  )
}

# The bytes of lines "name: value".
search_text <- function(print, size) {
  lines <- c(split_size = number_text(size), print)
  charToRaw(enc2utf8(paste0(names(lines), ": ", lines, "\n", collapse = "")))
}

write_checkpoint <- function(kept, print, size, call) {
  text <- search_text(print, size)
  in_files(
    cpp_write_sealed(
      checkpoint_file(kept, "search"), "search", 0, cpp_digest_raw(text),
      list(text = text)
    ),
    kept, call
  )
}

# Named text, or NULL where there is none yet.
read_checkpoint <- function(kept, call) {
  file <- in_files(
    cpp_read_sealed(
      checkpoint_file(kept, "search"), "search", 0, "",
      list(text = raw()), NA_real_
    ),
    kept, call
  )
  if (file$state == "missing") {
    return(NULL)
  }
  if (file$state == "damaged") {
    abort_unreadable(
      kept, "{.file fsknn-search} in it is damaged: it was changed, or cut.",
      call
    )
  }
  known <- if (file$state == "whole") text_of_search(file$columns$text)
  if (is.null(known)) {
    abort_unreadable(
      kept,
      "{.file fsknn-search} in it is not what this version of fsknn writes.",
      call
    )
  }
  known
}

# NULL where it is no such text.
text_of_search <- function(bytes) {
  if (any(bytes == 0)) {
    return(NULL)
  }
  text <- rawToChar(bytes)
  Encoding(text) <- "UTF-8"
  lines <- strsplit(text, "\n", fixed = TRUE)[[1]]
  colon <- regexpr(": ", lines, fixed = TRUE)
  known <- stats::setNames(
    substring(lines, colon + 2), substr(lines, 1, colon - 1)
  )
  size <- known["split_size"]
  if (grepl("^[1-9][0-9]{0,9}$", size) &&
        as.double(size) <= .Machine$integer.max) {
    known
  }
}

abort_unreadable <- function(kept, why, call) {
  cli_abort(
    c(
      "The folder {.file {kept$given}} of {.arg checkpoint} can't be read.",
      x = why,
      i = "Give another folder, or delete this one."
    ),
    class = c("fsknn_checkpoint_error", "fsknn_error"),
    call = call
  )
}

check_same_search <- function(kept, known, print, call) {
  names <- union(names(print), setdiff(names(known), "split_size"))
  then <- unname(known[names])
  now <- unname(print[names])
  then[is.na(then)] <- "none"
  now[is.na(now)] <- "none"
  other <- which(then != now)
  if (length(other) == 0) {
    return(invisible())
  }
  details <- vapply(other, function(at) {
    describe_difference(names[[at]], then[[at]], now[[at]])
  }, "")
  # Not by cli, whose braces may be in them.
  details <- unique(details)
  cli_abort(
    c(
      "The folder {.file {kept$given}} of {.arg checkpoint} is that of another
       search.",
      stats::setNames(
        paste0("{details[[", seq_along(details), "]]}"),
        rep("x", length(details))
      ),
      i = "Give another folder, or delete this one."
    ),
    class = c("fsknn_checkpoint_error", "fsknn_error"),
    call = call
  )
}

describe_difference <- function(name, then, now) {
  is_digest <- function(text) {
    grepl("^([0-9]+ values, )?[0-9a-f]{16}$", text)
  }
  if (name %in% c("skip", "query_skip")) {
    return("Other points are left out (`constant`).")
  }
  given <- c(then, now) != "none"
  if (name %in% c("as_edges", "correlation") ||
        name %in% c("k", "distance", "min_similarity") && !all(given)) {
    return("It was made by another function.")
  }
  if (is_digest(then) || is_digest(now)) {
    if (then == "none") {
      return(paste0("`", name, "` was not given then."))
    }
    if (now == "none") {
      return(paste0("`", name, "` is not given now."))
    }
    return(paste0("The values of `", name, "` were others."))
  }
  label <- switch(
    name,
    version = "The version of fsknn",
    points = "The number of points (rows of `x`)",
    features = "The number of features (columns of `x`)",
    paste0("`", name, "`")
  )
  paste0(label, " was ", then, ", and is ", now, ".")
}

# --- splits ------------------------------------------------------------------

keep_split <- function(kept, work, answer, split, found, call) {
  if (is.null(kept)) {
    return(invisible())
  }
  columns <- columns_of_split(work, found, split_form(work, answer, split))
  in_files(
    cpp_write_sealed(
      split_file(kept, split), "split", split, kept$print, columns
    ),
    kept, call
  )
}

# Puts what is there into the answer; gives the splits that are left.
take_kept <- function(kept, work, answer, bar, call) {
  taken <- logical(num_splits(work))
  bad <- list(damaged = integer(), other = integer())
  for (split in kept$done) {
    file <- read_split(kept, work, answer, split, call)
    if (file$state == "whole") {
      put_split(answer, work, split, file$found, call)
      step_bar(bar, rows_of_split(work, split))
      taken[[split]] <- TRUE
    } else {
      why <- if (file$state == "other") "other" else "damaged"
      bad[[why]] <- c(bad[[why]], split)
    }
  }
  tell_resumed(kept, sum(taken), length(taken), bad)
  which(!taken)
}

# list(state, found): as cpp_read_sealed() and the search give them.
read_split <- function(kept, work, answer, split, call) {
  form <- split_form(work, answer, split)
  file <- in_files(
    cpp_read_sealed(
      split_file(kept, split), "split", split, kept$print, form$types,
      form$lengths
    ),
    kept, call
  )
  if (file$state == "whole") {
    file$found <- split_of_columns(work, file$columns)
    if (is.null(file$found)) {
      file$state <- "damaged"
    }
  }
  file
}

tell_resumed <- function(kept, num_done, num_splits, bad) {
  if (length(kept$done) == 0) {
    return(invisible())
  }
  damaged <- first_few(bad$damaged)
  other <- first_few(bad$other)
  # What is put in by braces says how many there are, too: qty() comes after it.
  cli::cli_inform(
    c(
      i = "{num_done} of {num_splits} split{?s} {cli::qty(num_done)}{?is/are}
           taken from the folder {.file {kept$given}}.",
      "!" = if (length(bad$damaged) > 0) {
        "{cli::qty(length(bad$damaged))}Split{?s} {damaged}
         {cli::qty(length(bad$damaged))}{?was/were} damaged, and {?is/are} done
         again."
      },
      "!" = if (length(bad$other) > 0) {
        "{cli::qty(length(bad$other))}Split{?s} {other}
         {cli::qty(length(bad$other))}{?was/were} of another search or of other
         rows, and {?is/are} done again."
      }
    ),
    class = "fsknn_resumed"
  )
}

# What the file system refused, in words; else the answer.
in_files <- function(answer, kept, call) {
  if (!identical(answer$failure, "file")) {
    return(in_core(answer, call))
  }
  name <- basename(answer$path)
  cli_abort(
    c(
      "The folder {.file {kept$given}} of {.arg checkpoint} can't be used.",
      x = "{.file {name}}: {answer$message}."
    ),
    class = c("fsknn_checkpoint_error", "fsknn_error"),
    call = call
  )
}
