#' All neighbours within a distance
#'
#' `find_within()` finds, for each row of a matrix, all other rows whose
#' distance is at most `distance`; `query_within()` finds them for the rows of
#' `query`. Distances are those of [find_knn()], to the last bit, and so is the
#' test: a pair whose distance equals the limit counts.
#'
#' The pairs are counted first, and only then is memory for them asked for.
#' Where they would not fit, the call stops with an error that says how many
#' there are and what distance would fit.
#'
#' @inheritParams find_knn
#' @param distance The largest distance that counts: one number, or one for each
#'   point whose neighbours are asked for (of `x`, `subset` or `query`).
#'
#' @returns A list of two lists with one entry for each point, in the order of
#'   `x` (of `subset`, of `query`), each in order of (distance, index):
#'   * `index`: integer vectors, the neighbours' row numbers in `x` (from 1);
#'   * `distance`: double vectors, their distances.
#'
#'   A point is not its own neighbour, but a point of `query` that is also in
#'   `x` is found. Isolated points (see `constant`) have none. That is the form
#'   of BiocNeighbors' `findNeighbors()`, which does count a point itself.
#' @section Errors:
#' As for [find_knn()]. Too many pairs for the memory that is free are a
#' `fsknn_size_error` with the fields `pairs`, `most` (what there is room for)
#' and `fits` (a distance within which there would be room for all).
#' @inherit find_knn references
#' @seealso [similarity_graph()] for an edge data frame of all pairs above a
#'   correlation, [find_knn()] for a number of neighbours.
#' @export
#' @examples
#' x <- matrix(rnorm(200 * 12), nrow = 200)
#' near <- find_within(x, distance = 0.4) # correlations of at least 0.6
#' lengths(near$index)[1:10]
#' near$index[[1]]
#'
#' query_within(x, x[1:2, ], distance = 3, metric = "euclidean")$index
find_within <- function(x, distance, metric = "pearson", sign = "signed", ...,
                        constant = c("error", "isolate"),
                        backend = c("auto", "cuda", "cpu"), devices = NULL,
                        num_threads = NULL, chunk_size = NULL,
                        max_device_memory = NULL, progress = NULL,
                        points = c("rows", "columns"), assay = NULL,
                        dimred = NULL, subset = NULL, weights = NULL) {
  rlang::check_dots_empty()
  rlang::check_required(x)
  rlang::check_required(distance)
  options <- check_options(
    metric, sign, constant, backend, devices, num_threads, chunk_size,
    progress, verbose = FALSE, max_device_memory
  )
  options$input <- check_input(points, assay, dimred)
  options$weights <- check_sample_weights(weights, options$metric)
  search <- new_search(x, k = 1L, options = options, subset = subset)
  within <- new_within(check_distance(distance, num_asked(search)))
  add_left_out(run_within(search, within), search)
}

#' @rdname find_within
#' @inheritParams query_knn
#' @export
query_within <- function(x, query, distance, metric = "pearson",
                         sign = "signed", ...,
                         constant = c("error", "isolate"),
                         backend = c("auto", "cuda", "cpu"), devices = NULL,
                         num_threads = NULL, chunk_size = NULL,
                         max_device_memory = NULL, progress = NULL,
                         points = c("rows", "columns"), assay = NULL,
                         dimred = NULL, weights = NULL) {
  rlang::check_dots_empty()
  rlang::check_required(x)
  rlang::check_required(query)
  rlang::check_required(distance)
  options <- check_options(
    metric, sign, constant, backend, devices, num_threads, chunk_size,
    progress, verbose = FALSE, max_device_memory
  )
  options$input <- check_input(points, assay, dimred)
  if (is.null(query)) {
    abort_input(query, "query", current_env())
  }
  options$input <- check_input(points, assay, dimred)
  options$weights <- check_sample_weights(weights, options$metric)
  search <- new_search(x, query, k = 1L, options = options)
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

# What the core is told besides the request. once: each pair once, as edges;
# similarity: the least that edges must have, or NULL.
new_within <- function(limits, as_edges = FALSE, similarity = NULL,
                       most = Inf) {
  list(
    limits = limits, once = as_edges, as_edges = as_edges,
    similarity = similarity, most = most, most_kept = 2^24
  )
}

# Gives what cpp_find_within() gives, but for what is not the answer.
run_within <- function(search, within, call = caller_env()) {
  values <- search$points$values
  queries <- search$queries$values
  within$most <- most_pairs(within, search)
  started <- Sys.time()
  result <- cpp_find_within(values, queries, search$request, within)
  if (identical(result$failure, "too_many_pairs")) {
    raise_too_many(result, within, call)
  }
  if (!is.null(result$failure)) {
    raise_failure(result, call)
  }
  request <- search$request
  request["k"] <- NA_integer_
  remember_search(
    values, queries, request, result$stats,
    as.double(Sys.time() - started, units = "secs")
  )
  result$stats <- NULL
  result
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
  most <- (check_max_memory(NULL) %||% free_memory()) / bytes
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
    "No {.arg distance} above {round_down(result$fits)} would fit."
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
