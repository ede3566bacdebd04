# A search: its data and its request to the core, all checked. Every verb that
# searches for neighbours makes one, in one order. It reads points and queries,
# and then checks sizes, names, requested rows, missing values, weights, k, and
# at last the values.

# Arguments of new_search():
#   options       from verb_options()
#   k             one number, or one for each point; missing: all within a
#                 distance (see ask_within())
#   subset        points of `x` whose neighbours are requested
#   point         names or numbers of points, searched as queries
#   outcome       values of samples that are no point (see
#                 R/significance-outcome.R)
#   as_edges      the answer is a data frame: the number of edges is checked
#   named         row names are used, so they must be valid
#   correlation   r is returned beside the distance
#   block, between  the k nearest in each block (see search-point_blocks.R)
new_search <- function(x, options, query = NULL, k, subset = NULL,
                       point, outcome = NULL, as_edges = FALSE,
                       named = as_edges, correlation = as_edges,
                       block = NULL, between = FALSE,
                       call = caller_env()) {
  has_k <- !missing(k)
  started <- Sys.time()
  search <- read_search(x, query, options, !is.null(outcome), call)
  search[c("started", "before")] <- list(started, session$num_searches)
  if (named) {
    search$points$names <- point_names(search$points)
    check_index_names(x, search$points, call)
  }
  at <- if (!missing(point)) find_points(search$points, point, call = call)
  subset <- check_subset(
    subset, search$points, distinct = as_edges, call = call
  )
  blocks <- check_block(
    given_values(
      x, block, "block", input_beside(options$input, x, query), "points",
      known = known_points(search$points), call = call
    ),
    between, search$points,
    if (is.null(query %||% outcome)) {
      at %||% subset %||% seq_len(nrow(search$points$values))
    },
    call = call
  )
  search <- fit_samples(search, x, call)
  search$queries <- bring_outcomes(search, outcome, x, call)
  check_varies_in_strata(
    search, search$covariates$strata[samples_that_count(search$points)], call
  )
  search$num_rows <- count_rows(search, at, subset)
  num_points <- nrow(search$points$values)
  self_excluded <- is.null(search$queries)
  if (has_k) {
    is_list <- !as_edges && is.null(at %||% outcome)
    search$each_k <- if (is_list) {
      each_k_in_blocks(
        k, names_asked(search, at, subset), search$num_rows, blocks, call
      )
    }
    k <- if (is.null(search$each_k)) k else max(search$each_k, 1)
    check_k(k, num_points, self_excluded = self_excluded, call = call)
  }

  search <- bring_search(search, call)
  if (!isTRUE(options$counts_known)) {
    if (!is_index(x)) tell_if_counts(x, search$points, search$options$metric)
    if (!is.null(query)) {
      tell_if_counts(query, search$queries, search$options$metric, "query")
    }
  }
  search <- search_for_points(search, at, call)
  num_isolated <- length(search$skip)
  if (has_k) {
    k <- check_k(k, num_points, num_isolated, self_excluded, call = call)
  } else {
    check_some_left(num_points, num_isolated, self_excluded, call = call)
  }
  check_block_sizes(blocks, k, search$skip, call = call)
  if (has_k && as_edges) {
    asked <- search$num_rows - if (is.null(subset)) num_isolated else 0
    check_num_edges(asked, k * num_lists(blocks), call = call)
  }
  options <- search$options
  search$request <- new_request(
    if (has_k) k, options, search$skip, search$query_skip,
    correlation = correlation && has_correlation(options$metric),
    as_edges = as_edges,
    bytes_made_from = bytes_made_from(search$points$values),
    largest = search$largest, subset = subset,
    max_memory = search$max_memory, bytes_file = search$bytes_file,
    na = search$na, blocks = blocks, query_self = at
  )
  if (is_index(x)) hold_index(search, x, call) else search
}

# Reads points and queries, and checks that their sizes match.
read_search <- function(x, query, options, has_outcome, call) {
  input <- options$input
  if (is_index(x)) {
    search <- search_of_index(x, options, call)
  } else {
    search <- list(options = options)
    search$points <- take_points(
      x, input_beside(input, x, query), "x", call = call
    )
  }
  if (!is.null(query)) {
    search$queries <- take_points(
      query, input_of_query(input, query, x, call = call), "query", call = call
    )
  }
  points <- search$points
  if (!is.null(query)) {
    search$queries <- order_features(search$queries, points, call)
  }
  queries <- search$queries
  check_sizes(
    size_given(points), if (!is.null(queries)) dim(queries$values),
    options$metric, points$transposed, queries$transposed, has_outcome,
    call = call
  )
  search
}

# Puts the features of the queries in the order of the points', if both have
# names. Other features are dropped.
order_features <- function(queries, points, call) {
  at <- match_order(
    queries$features, points$features,
    words_of_features(feature_side(queries), "query"), call, extra = TRUE
  )
  if (!is.null(at)) {
    queries$values <- queries$values[, at, drop = FALSE]
    queries$features <- points$features
  }
  queries
}

# Applies missing values, weights of samples and covariates to the points.
fit_samples <- function(search, x, call) {
  if (is_index(x)) {
    search$queries <- keep_samples(search$queries, search$points["samples"])
    return(search)
  }
  options <- fit_na(search$options, search$points, call = call)
  weights <- fit_weights(options$weights, search$points, call = call)
  options["weights"] <- list(weights$values)
  fitted <- fit_covariates(search, x, weights, call = call)
  search$covariates <- fitted$covariates
  options["adjust"] <- list(fitted$values)
  search$options <- options
  search$points <- keep_samples(search$points, weights)
  search$queries <- keep_samples(search$queries, weights)
  search
}

# Returns the number of points whose neighbours are requested. `at` are those
# named by `point`, or NULL.
count_rows <- function(search, at, subset) {
  if (!is.null(at)) {
    length(at)
  } else if (!is.null(subset)) {
    length(subset)
  } else {
    nrow((search$queries %||% search$points)$values)
  }
}

# Returns the names of the points whose neighbours are requested, for matching
# values by name.
names_asked <- function(search, at = NULL, subset = NULL) {
  names <- known_points(search$queries %||% search$points)
  some <- at %||% subset
  if (is.null(some)) names else names[some]
}

# Loads the values, into memory or a file, and scans them once.
bring_search <- function(search, call) {
  options <- search$options
  brought <- bring_all(search$points, search$queries, options, call)
  # An index has its own part of these.
  sizes <- c("max_memory", "bytes_file")
  search[sizes] <- Map(max, brought[sizes], search[sizes])
  search$points <- brought$points
  search$queries <- brought$queries
  checked <- search$checked %||%
    check_values(search$points, options, "x", call = call)
  search$checked <- checked
  of_queries <- if (!is.null(search$queries)) {
    check_query_values(search$queries, options, call)
  }
  search$left_out <- checked$left_out
  search$skip <- checked$skip
  search$points$largest_row <- checked$largest_row
  search$query_left_out <- of_queries$left_out
  search$query_skip <- of_queries$skip %||% integer()
  search$largest <- max(checked$largest, of_queries$largest)
  if (!is.null(search$queries)) {
    search$queries$largest_row <- of_queries$largest_row
  }
  check_outcomes_defined(search, call)
  search$na <- na_of_search(
    options, search$points, checked, search$queries, of_queries, call = call
  )
  search
}

check_query_values <- function(queries, options, call) {
  if (!isTRUE(queries$are_outcomes)) {
    return(check_values(queries, options, "query", call = call))
  }
  # check_outcomes_defined() reports outcomes without a value.
  options$constant <- "isolate"
  check_values(queries, options, "outcome", call = call)
}

# Makes some points the queries, so that only their rows are held while the
# others are read. None is its own neighbour.
search_for_points <- function(search, at, call) {
  if (is.null(at)) {
    return(search)
  }
  without <- intersect(at, search$skip)
  if (length(without) > 0) {
    row <- describe_rows(without[[1]], search$points)
    side <- point_side(search$points)
    abort_argument(
      c(
        "{.arg point} must be a {side} for which metric
         {.val {search$options$metric$name}} has a value.",
        x = "{tools::toTitleCase(side)} {row} has none."
      ),
      call
    )
  }
  search$queries <- list(values = rows_of(search$points, at))
  search
}
