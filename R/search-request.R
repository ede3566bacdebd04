# The request to the core, in the form that it reads.

# `k` is NULL for a search within a distance (see ask_within()); with blocks, k
# is for each list. With `as_edges`, the answer is a data frame. `subset` are
# the points of `x` whose neighbours are requested. `feature_subset` are the
# columns that count, in any order, each any number of times. NULL is all;
# weights and `largest` are for those that count. `blocks` is from
# check_block(). `largest` is the largest magnitude, or -1. `query_self` is the
# point that each query is, which is then not its own neighbour. NA is a query
# that is none; NULL means that none is.
new_request <- function(k, options, skip = integer(), query_skip = integer(),
                        correlation = FALSE, as_edges = FALSE,
                        bytes_made_from = 0, largest = -1, subset = NULL,
                        feature_subset = NULL, max_memory = 0, bytes_file = 0,
                        na = options$na %||% "error", blocks = NULL,
                        query_self = NULL) {
  request <- list(
    k = k,
    metric = options$metric$name,
    sign = options$sign,
    skip = skip,
    query_skip = query_skip,
    query_self = query_self,
    backend = options$backend$name,
    devices = options$backend$devices,
    num_threads = options$num_threads,
    chunk_size = options$chunk_size,
    max_device_memory = options$max_device_memory %||% 0,
    max_memory = max_memory,
    bytes_file = bytes_file,
    weights = options$weights,
    adjust = options$adjust,
    bytes_made_from = bytes_made_from,
    correlation = correlation,
    as_edges = as_edges,
    largest = largest,
    na = na,
    min_pairs = options$min_pairs %||% default_min_pairs,
    subset = subset,
    feature_subset = feature_subset,
    blocks = blocks,
    progress = options$progress %||% FALSE,
    instruction_set = options$instruction_set %||% "auto"
  )
  request$allele_table <- options$allele_table
  request
}

# Plans and statistics both report these facts of a request.
facts_of_request <- function(request) {
  list(
    backend = request$backend, metric = request$metric, sign = request$sign,
    weighted = !is.null(request$weights),
    num_covariates = num_covariates(request) %||% 0L
  )
}

# Returns whether rows may have fewer than k neighbours, and then fewer edges.
has_short_lists <- function(request) {
  !is_within(request) && identical(request$na, "pairwise")
}

is_within <- function(request) {
  !is.null(request$within)
}

# Returns the number of points that are searched for among others, or 0 for all
# points among themselves.
num_queries <- function(queries, request) {
  if (!is.null(queries)) nrow(queries) else length(request$subset)
}

# Returns the core's answer to a request, or its failure.
ask_core <- function(values, queries, request) {
  if (is_resampled(request)) {
    return(cpp_count_edges(values, request))
  }
  if (!is_within(request)) {
    return(cpp_knn_search(values, queries, request))
  }
  found <- cpp_within_search(values, queries, request)
  if (identical(found$failure, "too_many_pairs")) {
    found <- with_facts_of(found, request)
  }
  found
}
