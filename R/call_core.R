# The calls into the core: a request made of checked arguments, and the
# core's failures in words.

# Everything that a call is asked to do besides its data, checked as far as
# that goes without the data.
check_options <- function(metric, sign, constant, backend, devices,
                          num_threads, chunk_size, progress, verbose,
                          max_device_memory = NULL, max_memory = NULL,
                          na = NULL, min_pairs = NULL,
                          call = caller_env()) {
  metric <- check_metric(metric, call = call)
  missing <- check_na(na, min_pairs, metric, call = call)
  list(
    metric = metric,
    sign = check_sign(sign, metric, call = call),
    na = missing$na,
    min_pairs = missing$min_pairs,
    constant = check_choice(
      constant, c("error", "isolate"), "constant", call = call
    ),
    chunk_size = check_chunk_size(chunk_size, call = call),
    num_threads = check_num_threads(num_threads, call = call),
    max_device_memory = check_device_memory(max_device_memory, call = call),
    max_memory = check_max_memory(max_memory, call = call),
    progress = check_progress(progress, call = call),
    verbose = check_flag(verbose, "verbose", call = call),
    instruction_set = check_instruction_set(call = call),
    backend = choose_backend(backend, devices, call = call)
  )
}

# The request as the core reads it.
new_request <- function(k, options, skip = integer(), query_skip = integer(),
                        correlation = FALSE, as_edges = FALSE,
                        rows_made = FALSE, largest = -1, subset = NULL,
                        max_memory = 0, bytes_file = 0,
                        na = options$na %||% "error") {
  list(
    k = k,
    metric = options$metric$name,
    sign = options$sign,
    skip = skip,
    query_skip = query_skip,
    backend = options$backend$name,
    devices = options$backend$devices,
    num_threads = options$num_threads,
    chunk_size = options$chunk_size,
    max_device_memory = options$max_device_memory %||% 0,
    max_memory = max_memory,
    bytes_file = bytes_file,
    weights = options$weights,
    rows_made = rows_made,
    correlation = correlation,
    as_edges = as_edges,
    largest = largest,
    na = na,
    min_pairs = options$min_pairs %||% default_min_pairs,
    subset = subset,
    progress = options$progress %||% FALSE,
    instruction_set = options$instruction_set %||% "auto"
  )
}

# Data and request, all checked. `as_edges`: the answer will be a data frame,
# so that row names must be usable and the edges few enough. `subset`: of the
# points of `x`, those whose neighbours are asked for (see check_subset()).
new_search <- function(x, query = NULL, k, options, as_edges = FALSE,
                       subset = NULL, call = caller_env()) {
  input <- options$input
  points <- read_points(x, input_beside(input, x, query), "x", call = call)
  queries <- if (!is.null(query)) {
    read_points(query, input_beside(input, query, x), "query", call = call)
  }
  self_excluded <- is.null(query)
  num_points <- nrow(points$values)

  check_num_points(
    num_points, 1L + self_excluded, "x", points$turned, call = call
  )
  check_num_features(
    ncol(points$values), options$metric, "x", points$turned, call = call
  )
  if (!self_excluded) {
    check_num_points(
      nrow(queries$values), 1L, "query", queries$turned, call = call
    )
    check_query_columns(
      points$values, queries$values, queries$turned, call = call
    )
  }
  if (as_edges) {
    points$names <- point_names(points)
    check_row_names(points$names, "x", points$turned, call = call)
  }
  subset <- check_subset(subset, points, distinct = as_edges, call = call)
  options <- fit_na(options, points, call = call)
  weights <- fit_weights(options$weights, points, call = call)
  points <- keep_samples(points, weights)
  queries <- keep_samples(queries, weights)
  options$weights <- weights$values
  num_rows <- if (!is.null(subset)) {
    length(subset)
  } else {
    nrow((queries %||% points)$values)
  }
  each_k <- if (!as_edges) check_each_k(k, num_rows, call = call)
  k <- if (is.null(each_k)) k else max(each_k, 1)
  k <- check_k(k, num_points, self_excluded = self_excluded, call = call)

  brought <- bring_all(points, queries, options, call)
  points <- brought$points
  queries <- brought$queries
  checked <- check_values(points, options, "x", call = call)
  skip <- checked$skip
  query_checked <- NULL
  if (!self_excluded) {
    query_checked <- check_values(queries, options, "query", call = call)
  }
  if (length(skip) > 0) {
    check_k(k, num_points, length(skip), self_excluded, call = call)
  }
  if (as_edges) {
    asked <- if (is.null(subset)) num_points - length(skip) else length(subset)
    check_num_edges(asked, k, call = call)
  }
  list(
    points = points,
    queries = queries,
    left_out = checked$left_out,
    query_left_out = query_checked$left_out,
    each_k = each_k,
    verbose = options$verbose,
    max_memory = options$max_memory,
    request = new_request(
      k, options, skip, query_checked$skip %||% integer(),
      correlation = as_edges && has_correlation(options$metric),
      as_edges = as_edges,
      rows_made = is_metafeatures(points$values),
      largest = max(checked$largest, query_checked$largest),
      subset = subset,
      max_memory = brought$max_memory, bytes_file = brought$bytes_file,
      na = na_of_search(
        options, points, checked, queries, query_checked, call = call
      )
    )
  )
}

# One pass over the values. skip: the rows to isolate; left_out: of
# metafeatures, those rows and why, or NULL; largest: the largest magnitude;
# missing: how many values are.
check_values <- function(points, options, arg, call = caller_env()) {
  if (!is.null(options$na) && options$na != "error") {
    return(check_known_values(points, options, arg, call = call))
  }
  scan <- points$scan %||% cpp_scan(
    points$values, options$num_threads, options$metric$binary
  )
  if (!is.null(scan$failure)) {
    raise_failure(scan, call)
  }
  made <- is_metafeatures(points$values)
  if (!made) {
    check_finite(
      points, scan, arg,
      cures_missing = !is.null(options$na) && !options$metric$binary,
      call = call
    )
  }
  check_non_negative(points, scan, options$metric, arg, call = call)
  check_binary(points, scan, options$metric, arg, call = call)
  if (made) {
    left_out <- find_left_out(points, scan)
    tell_left_out(
      left_out, nrow(points$values), arg,
      if (arg == "query") "query_left_out" else "left_out"
    )
    return(list(
      skip = left_out$point %||% integer(), left_out = left_out,
      largest = scan$largest, missing = 0
    ))
  }
  skip <- check_defined_rows(
    points, scan, options$metric, options$constant, arg, call = call
  )
  list(skip = skip, left_out = NULL, largest = scan$largest, missing = 0)
}

# Runs a search; gives what cpp_knn_search() gives.
# long: see check_long_work().
run_search <- function(search, long = NULL, call = caller_env()) {
  search$long <- long
  values <- search$points$values
  queries <- search$queries$values
  if (!search$verbose) {
    return(find_somehow(search, call))
  }
  plan <- new_plan(
    nrow(values), ncol(values), num_queries(queries, search$request),
    search$request, call = call
  )
  started <- Sys.time()
  tell_lines(c(format(plan), paste("Start:", format(started))))
  result <- find_somehow(search, call)
  ended <- Sys.time()
  seconds <- as.double(ended - started, units = "secs")
  tell_lines(c(
    paste("End:", format(ended)),
    paste("Seconds:", format(round(seconds, 3), nsmall = 3))
  ))
  result
}

# Points whose neighbours are asked for among others'; 0: those of all points.
num_queries <- function(queries, request) {
  if (!is.null(queries)) nrow(queries) else length(request$subset)
}

find_somehow <- function(search, call) {
  if (identical(search$request$na, "pairwise")) {
    return(find_pairwise(search, call))
  }
  find_in_parts_or_whole(search, call)
}

find_in_parts_or_whole <- function(search, call) {
  if (!is.null(search$long)) {
    return(find_by_splits(search, call))
  }
  find_in_core(
    search$points$values, search$queries$values, search$request, call
  )
}

# One message, its lines as they are.
tell_lines <- function(lines) {
  rlang::inform(paste(lines, collapse = "\n"))
}

find_in_core <- function(values, queries, request, call) {
  started <- Sys.time()
  result <- cpp_knn_search(values, queries, request)
  if (!is.null(result$failure)) {
    raise_failure(result, call)
  }
  seconds <- as.double(Sys.time() - started, units = "secs")
  remember_search(values, queries, request, result$stats, seconds)
  result
}

# The core reports a failure as facts; the words are here.
raise_failure <- function(result, call) {
  switch(
    result$failure,
    interrupt = rlang::interrupt(),
    range = raise_range_failure(call),
    memory = raise_memory_failure(result, call),
    disk = raise_disk_failure(result, call),
    backend = raise_backend_failure(result, call),
    cuda = raise_cuda_failure(result, call),
    raise_other_failure(result, call)
  )
}

raise_range_failure <- function(call) {
  cli_abort(
    c(
      "A distance is beyond the range of a double (about 1.8e308), or made of
       numbers too small to count beside the largest of {.arg x}.",
      i = "Scale {.arg x}, or look for rows of a wrong magnitude."
    ),
    class = c("fsknn_range_error", "fsknn_error"),
    call = call
  )
}

raise_memory_failure <- function(result, call) {
  asked <- bytes_or_null(result$bytes_asked)
  cli_abort(
    c(
      "There is too little memory.",
      x = if (!is.null(asked)) "{format_bytes(asked)} could not be had.",
      i = "See {.fn knn_plan} for what a call needs."
    ),
    class = c("fsknn_memory_error", "fsknn_error"),
    call = call,
    bytes_asked = asked
  )
}

raise_backend_failure <- function(result, call) {
  facts <- backend_facts()
  reason <- result$reason %||% result$message
  abort_backend(
    "cuda", reason, built = facts$cuda$built, call,
    cuda_words = result$cuda_words
  )
}

raise_cuda_failure <- function(result, call) {
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
    c(i = "See {.fn cuda_devices}, or use {.code backend = \"cpu\"}.")
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

# " on device 1 (CUDA's number 0)", or nothing.
on_device <- function(device, cuda_id) {
  if (!is.na(device)) {
    paste0(" on device ", device, " (CUDA's number ", cuda_id, ")")
  } else if (!is.na(cuda_id)) {
    paste0(" on CUDA's device ", cuda_id)
  } else {
    ""
  }
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

# A failure that is not one of memory says 0 or NA bytes.
bytes_or_null <- function(bytes) {
  if (!is.null(bytes) && !is.na(bytes) && bytes > 0) bytes
}
