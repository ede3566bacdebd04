# Failures of the core. It reports facts, list(failure =, ...), and this file
# has the messages.

# Returns the core's answer, or raises its failure as an error.
in_core <- function(result, call = caller_env()) {
  if (!is.null(result$failure)) {
    raise_failure(result, call)
  }
  result
}

raise_failure <- function(result, call) {
  switch(
    result$failure,
    interrupt = rlang::interrupt(),
    range = raise_range_failure(call),
    memory = raise_memory_failure(result, call),
    disk = raise_disk_failure(result, call),
    file = raise_file_failure(result, call),
    backend = raise_backend_failure(result, call),
    cuda = raise_cuda_failure(result, call),
    too_many_pairs = raise_too_many(result, call),
    too_many_triples = raise_too_many_triples(result, call),
    handle = raise_handle_failure(result, call),
    too_few_points = raise_few_points(result, call),
    raise_other_failure(result, call)
  )
}

# `of_points` and `of_queries` are from largest_entry(), or NULL if unknown.
raise_range_failure <- function(call, of_points = NULL, of_queries = NULL) {
  cli_abort(
    c(
      "A distance is beyond the range of a double (about 2.2e-308 to 1.8e308).",
      x = if (!is.null(of_points)) {
        "The entry of {.arg x} with the largest magnitude is {of_points}."
      },
      x = if (!is.null(of_queries)) {
        "The entry of {.arg query} with the largest magnitude is {of_queries}."
      },
      i = if (is.null(of_queries)) {
        "Scale {.arg x}, or look for rows of a wrong magnitude."
      } else {
        "Scale {.arg x} and {.arg query} alike, or look for rows of a wrong
         magnitude."
      }
    ),
    class = c("fsknn_range_error", "fsknn_error"),
    call = call
  )
}

# Returns the value of `code`. A range failure in it reports the largest
# entries.
naming_largest <- function(search, code, call) {
  tryCatch(code, fsknn_range_error = function(error) {
    raise_range_failure(
      call, largest_entry(search$points), largest_entry(search$queries)
    )
  })
}

# Describes the largest value and its position, or returns NULL if the scan did
# not record it.
largest_entry <- function(points) {
  row <- points$largest_row
  if (is.null(row) || is.na(row)) {
    return(NULL)
  }
  if (is_metafeatures(points$values)) {
    return(paste("in row", describe_rows(row, points)))
  }
  x <- points$blocks %||% points$values
  column <- which.max(abs(as.double(as_plain(x[row, , drop = FALSE]))))
  describe_cells(cbind(row, column), points)
}

raise_memory_failure <- function(result, call) {
  asked <- bytes_or_null(result$bytes_asked)
  cli_abort(
    c(
      "There is too little memory.",
      x = if (!is.null(asked)) "{format_bytes(asked)} could not be allocated.",
      i = "See {.fn knn_plan} for what a call needs."
    ),
    class = c("fsknn_memory_error", "fsknn_error"),
    call = call,
    bytes_asked = asked
  )
}

raise_disk_failure <- function(result, call) {
  asked <- bytes_or_null(result$bytes_asked)
  folder <- temporary_folder(call)
  cli_abort(
    c(
      "The data do not fit in memory, and there is no temporary file for them.",
      x = if (is.null(asked)) {
        "{result$message}."
      } else {
        "{format_bytes(asked)} are needed in {.file {folder}}, and
         {format_bytes(result$bytes_free)} are free."
      },
      i = "Another folder can be named by
           {.code options(fsknn.temporary_folder = )}; {.arg max_memory} says
           what fits in memory."
    ),
    class = c("fsknn_disk_error", "fsknn_error"),
    call = call,
    bytes_asked = asked
  )
}

# A file of points that is read during the search.
raise_file_failure <- function(result, call) {
  cli_abort(
    c("{.file {result$path}} can't be read.", x = "{result$message}."),
    class = c("fsknn_file_error", "fsknn_error"), call = call
  )
}

raise_backend_failure <- function(result, call) {
  cuda <- backend_facts()$cuda
  abort_backend(
    "cuda", why_no_cuda(cuda, result), built = cuda$built, call,
    cuda_words = result$cuda_words
  )
}

# Says what a search must hold in a GPU's memory at once, if the plan refused.
held_words <- c(
  two_chunks = "two chunks of the smallest size do not fit",
  all_points = "with missing values points are held whole",
  triples = "triples are gone through where all points are held"
)

raise_cuda_failure <- function(result, call) {
  if (!is.null(result$held)) {
    result$cuda_words <- "the memory that may be used is too small"
    result$where <- paste("the plan:", held_words[[result$held]])
  }
  device <- result$device %||% NA_integer_
  cuda_id <- result$cuda_id %||% NA_integer_
  words <- result$cuda_words %||% ""
  where <- result$where %||% ""
  asked <- result$bytes_asked %||% NA_real_
  free <- result$bytes_free %||% NA_real_
  sticky <- isTRUE(result$sticky)
  hint <- if (sticky) {
    c(
      "!" = "This R process can no longer use CUDA: the GPU, or CUDA's hold on
             it, was lost.",
      i = "Restart R to use it again; {.code backend = \"cpu\"} still works."
    )
  } else if (!is.na(asked)) {
    c(i = "See {.fn knn_plan} for what a call needs, and the argument
           {.arg max_device_memory}; other processes may hold the rest.")
  } else {
    c(i = "See {.fn knn_backends}, or use {.code backend = \"cpu\"}.")
  }
  cli_abort(
    c(
      "CUDA failed{on_device(device, cuda_id)}.",
      x = if (nzchar(words)) "{words}",
      x = if (!is.na(asked)) {
        "{format_bytes(asked)} asked for, {format_bytes(free)} free."
      },
      x = if (nzchar(where)) "In {where}.",
      hint
    ),
    class = c("fsknn_cuda_error", "fsknn_error"),
    call = call,
    device = device,
    cuda_id = cuda_id,
    bytes_asked = asked,
    bytes_free = free,
    cuda_words = words,
    where = where,
    sticky = sticky
  )
}

# Returns " on device 1 (CUDA's number 0)", or nothing.
on_device <- function(device, cuda_id) {
  if (!is.na(device)) {
    paste0(" on device ", device, " (CUDA's number ", cuda_id, ")")
  } else if (!is.na(cuda_id)) {
    paste0(" on CUDA's device ", cuda_id)
  } else {
    ""
  }
}

# Says why held points are unusable, and the cure if there is one.
handle_words <- c(
  gone = "they were given back, or the handle comes from a file, another
          process, or a package that was unloaded since",
  forked = "the handle is the parent's of this process",
  pairwise = "pairs over common samples are found from the data alone"
)

raise_handle_failure <- function(result, call) {
  why <- handle_words[[result$why]]
  cli_abort(
    c(
      paste0("Points that are held can't be used here: ", why, "."),
      i = if (result$why != "pairwise") "Hold them anew, from the data."
    ),
    class = c("fsknn_handle_error", "fsknn_error"),
    call = call
  )
}

raise_other_failure <- function(result, call) {
  kind <- result$failure
  words <- result$message %||% ""
  cli_abort(
    c("The core failed ({kind}).", x = if (nzchar(words)) "{words}"),
    class = c(paste0("fsknn_", kind, "_error"), "fsknn_error"),
    call = call
  )
}

# A failure that is not about memory has 0 or NA bytes.
bytes_or_null <- function(bytes) {
  if (!is.null(bytes) && !is.na(bytes) && bytes > 0) bytes
}
