# Checkpoints: a folder that keeps the splits of a search that are done, so that
# a run that was ended at any moment goes on from there.
#
#   fsknn-search.dcf      what the search is: its fingerprint, and the splits
#   fsknn-split-000001    a split's part of the answer, sealed by a digest
#   fsknn-lock            held by the process that works on it
#
# A file is written beside its name, to the disk, and named then: what has the
# name is whole. One that is not (a broken disk, another program) is seen by its
# digest, and its split is done again.

checkpoint_form <- "fsknn checkpoint 1"

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
# wrote it), lock, size (rows in a split), done (splits whose files are there).
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
  work$size <- kept$size
  unlink(list.files(kept$folder, "^fsknn-.*[.]part-[0-9]+$", full.names = TRUE))
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

# New or empty, or made by us.
check_folder_is_ours <- function(kept, call) {
  files <- list.files(kept$folder, all.files = TRUE, no.. = TRUE)
  if (length(files) == 0 || "fsknn-search.dcf" %in% files) {
    return(invisible())
  }
  # Ended before it had written what it searches for.
  others <- files[!grepl("^fsknn-(lock|search[.]dcf[.]part-[0-9]+)$", files)]
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
    points = format_bound(nrow(work$values)),
    features = format_bound(ncol(work$values)),
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
    return(format(value, digits = 17))
  }
  if (is.atomic(value) && length(value) == 0) {
    return("none")
  }
  # Without the head, which names the version of R.
  bytes <- serialize(value, NULL, ascii = FALSE, xdr = TRUE, version = 2)
  paste0(
    length(value), " values, ", cpp_digest_raw(bytes[-seq_len(14)])
  )
}

write_checkpoint <- function(kept, print, size, call) {
  lines <- c(form = checkpoint_form, split_size = format_bound(size), print)
  text <- paste0(names(lines), ": ", lines, "\n", collapse = "")
  in_files(
    cpp_write_durably(
      checkpoint_file(kept, "search.dcf"), charToRaw(text), FALSE
    ),
    kept, call
  )
}

# Named text, or NULL where there is none yet.
read_checkpoint <- function(kept, call) {
  file <- checkpoint_file(kept, "search.dcf")
  if (!file.exists(file)) {
    return(NULL)
  }
  known <- tryCatch(
    {
      lines <- read.dcf(file)
      stats::setNames(lines[1, ], colnames(lines))
    },
    error = function(err) character()
  )
  size <- suppressWarnings(as.integer(known["split_size"]))
  if (!identical(known["form"], c(form = checkpoint_form)) || is.na(size) ||
        size < 1) {
    cli_abort(
      c(
        "The folder {.file {kept$given}} of {.arg checkpoint} can't be read.",
        x = "{.file fsknn-search.dcf} in it is not what this version of fsknn
             writes.",
        i = "Give another folder, or delete this one."
      ),
      class = c("fsknn_checkpoint_error", "fsknn_error"),
      call = call
    )
  }
  known
}

check_same_search <- function(kept, known, print, call) {
  names <- union(names(print), setdiff(names(known), c("form", "split_size")))
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
  is_digest <- function(text) grepl("[0-9a-f]{16}$", text)
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

keep_split <- function(kept, split, found, call) {
  if (is.null(kept)) {
    return(invisible())
  }
  bytes <- serialize(
    c(list(split = split), found), NULL, xdr = FALSE, version = 3
  )
  in_files(
    cpp_write_durably(split_file(kept, split), bytes, TRUE), kept, call
  )
}

# Puts what is there into the answer; gives the splits that are left.
take_kept <- function(kept, work, answer, bar, call) {
  damaged <- integer()
  for (split in kept$done) {
    found <- read_split(kept, work, split, call)
    if (is.null(found)) {
      damaged <- c(damaged, split)
      next
    }
    put_split(answer, work, split, found)
    step_bar(bar, rows_of_split(work, split))
  }
  tell_resumed(kept, length(kept$done) - length(damaged), num_splits(work),
               damaged)
  setdiff(seq_len(num_splits(work)), setdiff(kept$done, damaged))
}

# NULL where it is not whole.
read_split <- function(kept, work, split, call) {
  bytes <- in_files(
    cpp_read_sealed(split_file(kept, split)), kept, call
  )$bytes
  if (is.null(bytes)) {
    return(NULL)
  }
  found <- tryCatch(unserialize(bytes), error = function(err) NULL)
  if (identical(as.integer(found$split), as.integer(split))) found
}

tell_resumed <- function(kept, num_done, num_splits, damaged) {
  if (length(kept$done) == 0) {
    return(invisible())
  }
  where <- first_few(damaged)
  cli::cli_inform(
    c(
      i = "{num_done} of {num_splits} split{?s} {cli::qty(num_done)}{?is/are}
           taken from the folder {.file {kept$given}}.",
      "!" = if (length(damaged) > 0) {
        "{cli::qty(length(damaged))}Split{?s} {where} {?was/were} damaged, and
         {?is/are} done again."
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
