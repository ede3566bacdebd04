# The fingerprint of a search is text with everything that its answer depends
# on. It identifies the folder of the search (see folder-protocol.R).

# These options change where and how the answer is computed, but not the answer.
free_to_change <- c(
  "backend", "devices", "num_threads", "chunk_size", "max_device_memory",
  "max_memory", "bytes_file", "bytes_made_from", "largest", "progress",
  "instruction_set"
)

# Returns the limits of a search within a distance, under the names that the
# verbs have for them. The maximum number of pairs may change.
within_text <- function(within) {
  if (!is.null(within$similarity)) {
    list(min_similarity = within$similarity)
  } else {
    list(distance = within$limits)
  }
}

# Returns named text with everything that the answer depends on.
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
  if (asks_triples(request)) {
    request <- c(request, triples_text(request$triples))
  }
  request <- request[
    setdiff(names(request), c(free_to_change, "within", "triples"))
  ]
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

# Returns a value as one line of text: itself, or a digest.
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
  # The header is left out because it contains the version of R.
  bytes <- serialize(value, NULL, ascii = FALSE, xdr = TRUE, version = 2)
  paste0(
    number_text(length(value)), " values, ", cpp_digest_raw(bytes[-seq_len(14)])
  )
}

# Returns the bytes of lines "name: value". `plan` is as from text_of_plan().
search_text <- function(print, plan) {
  lines <- c(plan, print)
  charToRaw(enc2utf8(paste0(names(lines), ": ", lines, "\n", collapse = "")))
}

# Returns NULL if the bytes are not such text.
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
  size <- known["task_size"]
  if (isTRUE(known[["tasks"]] %in% task_kinds) &&
        grepl("^[1-9][0-9]{0,9}$", size) &&
        as.double(size) <= .Machine$integer.max) {
    known
  }
}

check_same_search <- function(kept, known, print, call) {
  names <- union(names(print), setdiff(names(known), c("tasks", "task_size")))
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
  # cli must not format the details, which may contain braces.
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
  name <- sub("^triples_", "", name)
  given <- c(then, now) != "none"
  if (name %in% c("as_edges", "correlation", "of_triples") ||
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
