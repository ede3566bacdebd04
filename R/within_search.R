#' All neighbours within a distance
#'
#' `within_search()` finds, for each row of a matrix, all other rows whose
#' distance is at most `distance`; `within_query()` finds them for the rows of
#' `query`. Distances are those of [knn_search()], to the last bit, and so is
#' the test: a pair whose distance equals the limit counts.
#'
#' The pairs are counted first, and only then is memory for them asked for.
#' Where they would not fit, the call stops with an error that says how many
#' there are and what distance would fit.
#'
#' These verbs, and [threshold_graph()], make the whole answer in one piece, in
#' this process: they have neither `BPPARAM` nor `checkpoint`.
#'
#' @inheritParams knn_search
#' @param distance The largest distance that counts: one number, or one for each
#'   point whose neighbours are asked for (of `x`, `subset` or `query`).
#'
#' @param constant What to do with points for which the metric has no value (see
#'   [knn_search()]): `"error"` (default), or `"isolate"`, which keeps them as
#'   isolated points. An isolated point has no neighbours (in lists: empty
#'   vectors), and is nobody's neighbour.
#' @param max_memory The most memory to use for each of two: the answer, and an
#'   `x` (and `query`) that is read by blocks: bytes, or a string such as `"4 GiB"`.
#'   `NULL` (default) takes `getOption("fsknn.max_memory")` where that is set,
#'   else all that is free for the answer, and a third of it for what is read.
#' @param verbose Tell the size of the search, start, end and seconds? `FALSE`
#'   by default.
#'
#' @returns A list of two lists with one entry for each point, in the order of
#'   `x` (of `subset`, of `query`), each in order of (distance, index):
#'   * `index`: integer vectors, the neighbours' row numbers in `x` (from 1);
#'   * `distance`: double vectors, their distances.
#'
#'   A point is not its own neighbour, but a point of `query` that is also in
#'   `x` is found. Isolated points (see `constant`) have none: empty vectors.
#'   That is the form of BiocNeighbors' `findNeighbors()`, which does count a
#'   point itself.
#' @section Errors:
#' As for [knn_search()]. Too many pairs for the memory that is free are a
#' `fsknn_size_error` with the fields `pairs`, `most` (what there is room for)
#' and `fits` (a distance within which there would be room for all).
#' @section Missing values:
#' `na` and `min_pairs` mean what they mean in [knn_search()], whose help has
#' the section "Missing values": the distances are the same, to the last bit.
#' Under `na = "pairwise"` a pair with fewer than `min_pairs` samples in common,
#' or with a row that does not vary on them, is within no distance. Where values
#' are missing, such pairs are found on the CPU only: `backend = "auto"` takes
#' it, and says so once a session, `"cuda"` is an error.
#' @inherit knn_search references
#' @seealso [threshold_graph()] for an edge data frame of all pairs above a
#'   correlation, [knn_search()] for a number of neighbours.
#' @export
#' @examples
#' x <- matrix(rnorm(200 * 12), nrow = 200)
#' near <- within_search(x, distance = 0.4) # correlations of at least 0.6
#' lengths(near$index)[1:10]
#' near$index[[1]]
#'
#' within_query(x, x[1:2, ], distance = 3, metric = "euclidean")$index
#'
#' # missing values: each pair over the samples that both have
#' x[sample(length(x), 100)] <- NA
#' within_search(x, 0.2, na = "pairwise", min_pairs = 8)$index[1:3]
within_search <- function(x, distance, metric = "pearson", sign = "signed", ...,
                          constant = c("error", "isolate"),
                          backend = c("auto", "cuda", "cpu"), devices = NULL,
                          num_threads = NULL, chunk_size = NULL,
                          max_device_memory = NULL, progress = NULL,
                          verbose = FALSE, points = c("rows", "columns"),
                          assay = NULL, dimred = NULL, subset = NULL,
                          weights = NULL, max_memory = NULL,
                          na = c("error", "pairwise", "mean"),
                          min_pairs = NULL) {
  check_no_more(...)
  rlang::check_required(x)
  rlang::check_required(distance)
  options <- check_options(
    metric, sign, constant, backend, devices, num_threads, chunk_size,
    progress, verbose, max_device_memory, max_memory, na, min_pairs
  )
  options$input <- check_input(points, assay, dimred)
  options$weights <- check_sample_weights(weights, options$metric)
  search <- new_search(x, k = 1L, options = options, subset = subset)
  search <- pairwise_on_cpu(search, is_automatic(backend, devices))
  within <- new_within(check_distance(distance, num_asked(search)))
  add_left_out(run_within(search, within), search)
}

#' @rdname within_search
#' @inheritParams knn_query
#' @export
within_query <- function(x, query, distance, metric = "pearson",
                         sign = "signed", ...,
                         constant = c("error", "isolate"),
                         backend = c("auto", "cuda", "cpu"), devices = NULL,
                         num_threads = NULL, chunk_size = NULL,
                         max_device_memory = NULL, progress = NULL,
                         verbose = FALSE, points = c("rows", "columns"),
                         assay = NULL, dimred = NULL, weights = NULL,
                         max_memory = NULL,
                         na = c("error", "pairwise", "mean"),
                         min_pairs = NULL) {
  check_no_more(...)
  rlang::check_required(x)
  rlang::check_required(query)
  rlang::check_required(distance)
  options <- check_options(
    metric, sign, constant, backend, devices, num_threads, chunk_size,
    progress, verbose, max_device_memory, max_memory, na, min_pairs
  )
  if (is.null(query)) {
    abort_input(query, "query", current_env())
  }
  options$input <- check_input(points, assay, dimred)
  options$weights <- check_sample_weights(weights, options$metric)
  search <- new_search(x, query, k = 1L, options = options)
  search <- pairwise_on_cpu(search, is_automatic(backend, devices))
  within <- new_within(check_distance(distance, num_asked(search)))
  add_left_out(run_within(search, within), search)
}

# How many points' neighbours a search asks for.
num_asked <- function(search) {
  if (!is.null(search$queries)) {
    nrow(search$queries$values)
  } else if (!is.null(search$request$subset)) {
    length(search$request$subset)
  } else {
    nrow(search$points$values)
  }
}

check_distance <- function(distance, num_rows, call = caller_env()) {
  plain <- is.numeric(distance) && !is.object(distance) &&
    is.null(dim(distance))
  if (!plain || !length(distance) %in% c(1L, num_rows)) {
    given <- describe_value(distance)
    abort_argument(
      c(
        "{.arg distance} must be one number, or one for each point, not
         {given}.",
        i = if (plain) {
          "Neighbours are asked for of {tally(num_rows, \"point\")}."
        }
      ),
      call
    )
  }
  bad <- is.na(distance) | distance < 0
  if (any(bad)) {
    where <- first_few(
      vapply(utils::head(distance[bad], 3), format_bound, ""), sum(bad)
    )
    abort_argument(
      c(
        "{.arg distance} must not be negative or missing.",
        x = "It is {where}."
      ),
      call
    )
  }
  as.double(distance)
}

# What the core is told besides the request. as_edges: each pair once;
# similarity: the least that edges must have, or NULL.
new_within <- function(limits, as_edges = FALSE, similarity = NULL) {
  list(
    limits = limits, as_edges = as_edges, similarity = similarity,
    most_kept = 2^24
  )
}

# Did the user leave the choice of the backend?
is_automatic <- function(backend, devices) {
  is.null(devices) && !identical(backend, "cuda")
}

# Of pairs with samples missing, GPUs find the k nearest only.
pairwise_on_cpu <- function(search, automatic, call = caller_env()) {
  request <- search$request
  if (request$na != "pairwise" || request$backend != "cuda") {
    return(search)
  }
  reason <- paste(
    "All pairs within a distance are found on the CPU where values are missing",
    "and na is \"pairwise\"."
  )
  if (!automatic) {
    abort_backend("cuda", reason, built = TRUE, call)
  }
  rlang::inform(
    c("Using backend \"cpu\".", x = reason),
    .frequency = "once", .frequency_id = "fsknn_within_pairwise"
  )
  search$request$backend <- "cpu"
  search$request$devices <- integer()
  search
}

# Gives what cpp_within_search() gives, but for what is not the answer.
run_within <- function(search, within, call = caller_env()) {
  values <- search$points$values
  queries <- search$queries$values
  within$most <- most_pairs(within, search)
  started <- Sys.time()
  if (search$verbose) {
    tell_lines(c(
      describe_within(search, within), paste("Start:", format(started))
    ))
  }
  result <- cpp_within_search(values, queries, search$request, within)
  if (identical(result$failure, "too_many_pairs")) {
    raise_too_many(result, within, call)
  }
  if (!is.null(result$failure)) {
    raise_failure(result, call)
  }
  request <- search$request
  request["k"] <- NA_integer_
  ended <- Sys.time()
  seconds <- as.double(ended - started, units = "secs")
  remember_search(values, queries, request, result$stats, seconds)
  if (search$verbose) {
    tell_lines(c(
      paste("End:", format(ended)),
      paste("Seconds:", format(round(seconds, 3), nsmall = 3))
    ))
  }
  result$stats <- NULL
  result
}

# What is asked for, as lines of format.knn_plan().
describe_within <- function(search, within) {
  request <- search$request
  values <- search$points$values
  asked <- num_queries(search$queries$values, request)
  lines <- c(
    "Backend" = request$backend,
    "CPU threads" = format_count(request$num_threads),
    "Metric" = describe_metric(
      request$metric, request$sign, !is.null(request$weights)
    ),
    "Neighbours" = "all within a distance",
    "Points (n)" = format_count(nrow(values)),
    "Features (d)" = format_count(ncol(values)),
    "Query points" = if (asked > 0) format_count(asked),
    "Pairs, at most" = format_count(within$most)
  )
  paste0(format(paste0(names(lines), ":")), " ", lines)
}

# Entries that there is room for: 12 bytes each in lists, 24 as edges, whose
# names take 16 more.
most_pairs <- function(within, search) {
  bytes <- if (!within$as_edges) {
    12
  } else if (is.null(search$points$names)) {
    24
  } else {
    40
  }
  most <- (search$max_memory %||% free_memory()) / bytes
  floor(if (within$as_edges) min(most, max_edges) else most)
}

raise_too_many <- function(result, within, call) {
  pairs <- format_count(signif(result$pairs, if (result$estimated) 2 else 15))
  most <- format_count(result$most)
  about <- if (result$estimated) "About " else ""
  room <- if (within$as_edges && result$most >= max_edges) {
    "a data frame has room for {most}"
  } else {
    "there is memory for {most}"
  }
  cure <- if (result$fits < 0) {
    "Even those at distance 0 are too many."
  } else if (!is.null(within$similarity)) {
    "{.code min_similarity = {similarity_that_fits(result$fits)}} would fit."
  } else if (length(within$limits) > 1) {
    "With no {.arg distance} above {round_down(result$fits)} all would fit."
  } else {
    "{.code distance = {round_down(result$fits)}} would fit."
  }
  what <- if (is.null(within$similarity)) {
    "within {.arg distance}"
  } else {
    "as similar as {.arg min_similarity}"
  }
  cli_abort(
    c(
      paste0("Too many pairs of points are ", what, "."),
      x = paste0(about, "{pairs}; ", room, "."),
      i = cure
    ),
    class = c("fsknn_size_error", "fsknn_error"),
    call = call,
    pairs = result$pairs, most = result$most, fits = result$fits
  )
}

# Three digits, never more than it is.
round_down <- function(number) {
  if (!is.finite(number) || number <= 0) {
    return(format(number))
  }
  unit <- 10^(floor(log10(number)) - 2)
  format(floor(number / unit) * unit, digits = 3)
}

similarity_that_fits <- function(distance) {
  format(1 - as.double(round_down(distance)), digits = 15)
}
