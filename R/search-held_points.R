# One set of points for many searches. It is read, checked and sent to GPUs
# once. It is also prepared once, as long as metric, weights, features and the
# points left out stay the same. It serves verbs that search the same data
# repeatedly, for instance on resampled samples by a request's `feature_subset`.
# It does not serve pairs over common samples.

# `values` and `request` are as in ask_core(). Returns a handle that replaces
# the values there. Its memory is released with it.
hold_points <- function(values, request, call = caller_env()) {
  points <- in_core(cpp_hold_points(values, request), call)$points
  reg.finalizer(points, give_back_held)
  points
}

# Releases the memory before the handle is collected. If the package was
# unloaded, there is nothing left to release.
give_back_held <- function(points) {
  if (is_loaded$now) {
    cpp_give_back_held(points)
  }
  invisible()
}

is_loaded <- new.env(parent = emptyenv())
is_loaded$now <- TRUE
