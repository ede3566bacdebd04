# Pairs of two blocks of the points, and the whole answer that is put together
# of such parts. The blocks of a search are those of R/search-block_pairs.R.

# values: as ask_core() takes them; rows in a file are read of the two blocks
# alone. a, b: c(first, last), rows of `values`, b after a; NULL: a with itself.
# request: of new_request(), of the k nearest or all within a distance; its
# `largest` is of all points, or -1, and then all are looked at. limits: of the
# k nearest, NULL or one for each row of a, then of b: pairs that are strictly
# farther than a point's limit are not told of to that point. Inf: all are,
# -Inf: none.
#
# Gives list(count, index, distance, correlation, stats), or the core's failure.
# count: of each row of a, then of b. The others: row after row, index of all
# points. Of the k nearest a point has at most k of the other block, those at
# most its limit away, by (distance, index). Of all within a distance each pair
# is told of once, with its point of a (of a alone: with the lower number), if
# it is within the limit of either point; correlations are there where the
# metric is one.
ask_between <- function(values, a, b, request, limits = NULL) {
  found <- cpp_between(values, c(a, b), limits, request)
  if (identical(found$failure, "too_many_pairs")) {
    found <- with_facts_of(found, request)
  }
  found
}

# The whole answer: new_merged() has nothing yet, merge_part() takes parts of
# ask_between() in any order, each with its blocks, limits_of() tells what the
# next one need not look for, and merged_answer() is it. Of the k nearest a part
# may come any number of times.
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

# For ask_between(): NULL where all within a distance are asked for.
limits_of <- function(whole, a, b) {
  if (!is_within(whole$request)) {
    c(
      cpp_limits_of(whole$handle, a[[1]], a[[2]]),
      if (!is.null(b)) cpp_limits_of(whole$handle, b[[1]], b[[2]])
    )
  }
}

# What ask_core() gives, but for `stats`. each_part(take) calls take(a, b, part)
# with all parts, where those of all within a distance are too many to keep.
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
