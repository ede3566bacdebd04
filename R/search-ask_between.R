# Searches the pairs of two blocks of the points, and merges such parts into the
# answer. The blocks of a search are those of R/search-block_pairs.R.

# `values` are as in ask_core(). From a file, only the rows of the two blocks
# are read. `a` and `b` are c(first, last), rows of `values`, b after a. NULL
# for `b` searches a with itself. `request` is from new_request(), for the k
# nearest or all within a distance. Its `largest` is over all points. If it is
# -1, all points are examined. `limits`, for the k nearest, is NULL or one value
# for each row of a, then of b. Pairs strictly farther than a point's limit are
# not reported for that point. With Inf all are reported, with -Inf none.
#
# Returns list(count, index, distance, correlation, stats), or the core's
# failure. `count` is for each row of a, then of b. The others follow row by
# row; `index` is among all points. For the k nearest, a point has at most k of
# the other block, within its limit, by (distance, index). For all within a
# distance, each pair is reported once, if it is within the limit of either
# point. It belongs to its point of a, and within a alone to the lower number.
# Correlations are returned if the metric is one.
ask_between <- function(values, a, b, request, limits = NULL) {
  found <- cpp_between(values, c(a, b), limits, request)
  if (identical(found$failure, "too_many_pairs")) {
    found <- with_facts_of(found, request)
  }
  found
}

# The whole answer, merged from parts: new_merged() creates it empty.
# merge_part() adds parts of ask_between(), with their blocks, in any order.
# limits_of() gives the limits for the next part, and merged_answer() the
# answer. For the k nearest, a part may be added more than once.
new_merged <- function(num_points, request, call = caller_env()) {
  whole <- if (is_within(request)) {
    cpp_new_pairs(num_points, request)
  } else {
    cpp_new_lists(num_points, request$k, request$correlation)
  }
  if (is.list(whole)) {
    in_core(whole, call)
  }
  list(handle = whole, num_points = num_points, request = request)
}

merge_part <- function(whole, a, b, part, call = caller_env()) {
  blocks <- c(a, b)
  in_core(
    if (is_within(whole$request)) {
      cpp_take_pairs(whole$handle, blocks, part)
    } else {
      threads <- whole$request$num_threads
      cpp_merge_lists(whole$handle, blocks, part, threads)
    },
    call
  )
  invisible(whole)
}

# Limits for ask_between(). They are NULL for a search within a distance.
limits_of <- function(whole, a, b) {
  if (!is_within(whole$request)) {
    c(
      cpp_limits_of(whole$handle, a[[1]], a[[2]]),
      if (!is.null(b)) cpp_limits_of(whole$handle, b[[1]], b[[2]])
    )
  }
}

# Returns the answer of ask_core() without `stats`. each_part(take) calls
# take(a, b, part) with all parts, because parts within a distance may be too
# many to keep.
merged_answer <- function(whole, each_part, call = caller_env()) {
  if (!is_within(whole$request)) {
    return(in_core(cpp_answer_of_lists(whole$handle, whole$request), call))
  }
  room <- cpp_allocate_pairs(whole$handle)
  if (identical(room$failure, "too_many_pairs")) {
    room <- with_facts_of(room, whole$request)
  }
  if (in_core(room, call)$again) {
    each_part(function(a, b, part) merge_part(whole, a, b, part, call))
  }
  in_core(cpp_answer_of_pairs(whole$handle), call)
}
