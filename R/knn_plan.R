#' What a call would do, and where
#'
#' The plan of a call to [find_knn()], [knn_graph()] or [query_knn()]: pure
#' arithmetic, nothing is computed and the values of `x` are not looked at. Its
#' words are those of the paper (Arefin 2012): the n x n matrix of distances is
#' cut into *chunks* of `chunk_size` on a side; chunks in the same rows are a
#' *split*; the splits are dealt to the workers (GPUs or threads) in *segments*.
#' Points and features are padded to n' and d'.
#'
#' @inheritParams find_knn
#' @param x A matrix or data frame as for [find_knn()], or just its size: two
#'   whole numbers, `c(points, features)`.
#' @param query `NULL` (default) for the graph of `x`; for [query_knn()] the
#'   matrix or data frame of the points to find neighbours for, or their number.
#'
#' @returns A list of class `knn_plan`, with a print method: the backend, the
#'   CPUs and GPUs of the host, the sizes, and the bytes that will be needed
#'   besides the input (`bytes_prepared`, `bytes_filter`, `bytes_result`, and
#'   `bytes_peak`, the most at any time).
#' @inheritSection find_knn Errors
#' @inherit find_knn references
#' @seealso [knn_backends()], [cuda_devices()]
#' @export
#' @examples
#' # the expression matrix of the paper
#' knn_plan(c(24158, 295), k = 20, backend = "cpu")
knn_plan <- function(x, k = 20, metric = "pearson", sign = "signed", ...,
                     query = NULL, backend = c("auto", "cuda", "cpu"),
                     devices = NULL, num_threads = NULL, chunk_size = NULL,
                     max_device_memory = NULL) {
  rlang::check_dots_empty()
  rlang::check_required(x)
  options <- check_options(
    metric, sign, constant = "error", backend, devices, num_threads,
    chunk_size, progress = FALSE, verbose = FALSE, max_device_memory
  )
  self_excluded <- is.null(query)
  size <- plan_size(x)
  check_num_points(size[[1]], 1L + self_excluded, "x")
  check_num_features(size[[2]], options$metric, "x")
  num_queries <- if (self_excluded) 0 else query_count(query, size)
  k <- check_k(k, size[[1]], self_excluded = self_excluded)
  request <- new_request(
    k, options, correlation = has_correlation(options$metric),
    rows_made = is_metafeatures(x)
  )
  new_plan(size[[1]], size[[2]], num_queries, request)
}

# c(points, features) of a matrix, or as given.
plan_size <- function(x, call = caller_env()) {
  if (!is.null(dim(x)) || !is.numeric(x)) {
    return(dim(as_points(x, "x", call = call)$values))
  }
  good <- length(x) == 2 && all(is.finite(x)) && all(x == trunc(x)) &&
    all(x >= 0) && all(x <= .Machine$integer.max)
  if (!good) {
    given <- describe_value(x)
    abort_argument(
      c(
        "{.arg x} must be a matrix, or two whole numbers
         {.code c(points, features)}.",
        x = if (length(x) != 2) "It is {given}."
      ),
      call
    )
  }
  as.integer(x)
}

query_count <- function(query, size, call = caller_env()) {
  if (is.null(dim(query)) && is.numeric(query)) {
    return(check_whole_number(
      query, "query", 1, .Machine$integer.max, call = call
    ))
  }
  values <- as_points(query, "query", call = call)$values
  check_num_points(nrow(values), 1L, "query", call = call)
  if (ncol(values) != size[[2]]) {
    abort_argument(
      "{.arg query} must have as many columns (features) as {.arg x}:
       {size[[2]]}, not {ncol(values)}.",
      call
    )
  }
  nrow(values)
}

new_plan <- function(num_points, num_features, num_queries, request,
                     call = caller_env()) {
  sizes <- cpp_plan(num_points, num_features, num_queries, request)
  if (!is.null(sizes$failure)) {
    raise_failure(sizes, call)
  }
  facts <- backend_facts()
  devices <- if (request$backend == "cuda") cuda_devices()$name
  if (length(request$devices) > 0) {
    devices <- devices[request$devices]
  }
  structure(
    c(
      list(
        backend = request$backend,
        metric = request$metric,
        sign = request$sign,
        host_cpus = facts$cpu$threads,
        num_threads = request$num_threads,
        devices = devices %||% character()
      ),
      sizes
    ),
    class = "knn_plan"
  )
}

# Lines of "what: value"; those about chunks in the paper's words.
#' @export
format.knn_plan <- function(x, ...) {
  number <- function(value) {
    vapply(as.double(value), format_count, "")
  }
  padded <- function(size, to) {
    padding <- if (to != size) paste0(" (padded to ", number(to), ")")
    paste0(number(size), padding)
  }
  lines <- c(
    "Backend" = x$backend,
    "Host CPUs" = paste0(number(x$host_cpus), " (", x$num_threads, " used)"),
    "CUDA devices" = if (length(x$devices) > 0) {
      paste0(length(x$devices), " (", paste(x$devices, collapse = ", "), ")")
    } else {
      "none used"
    },
    "Metric" = describe_metric(x$metric, x$sign),
    "Neighbours (k)" = number(x$k),
    "Points (n)" = padded(x$num_points, x$padded_points),
    "Features (d)" = padded(x$num_features, x$padded_features),
    "Query points" = if (x$num_queries > 0) number(x$num_queries),
    "Chunk size" = number(x$chunk_size),
    "Splits" = number(x$num_splits),
    "Chunks in each split" = number(x$chunks_per_split),
    "Segments" = number(x$num_segments),
    "Splits in each segment" = number(x$splits_per_segment),
    "Chunks computed" = number(x$num_chunks),
    "Memory, prepared data" = format_bytes(x$bytes_prepared),
    "Memory, filter" = if (x$bytes_filter > 0) format_bytes(x$bytes_filter),
    "Memory, result" = format_bytes(x$bytes_result),
    "Memory, peak" = format_bytes(x$bytes_peak),
    "Instruction set" = if (nzchar(x$instruction_set)) x$instruction_set,
    "Filter" = if (nzchar(x$filter)) x$filter
  )
  paste0(format(paste0(names(lines), ":")), " ", lines)
}

#' @export
print.knn_plan <- function(x, ...) {
  cat("kNN plan", format(x), sep = "\n")
  invisible(x)
}
