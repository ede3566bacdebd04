# One set of points that is searched many times: read and checked once, sent to
# GPUs once, and prepared once as long as metric, weights, features and the
# points left out stay the same. For verbs that ask of the same data again and
# again: of resampled samples, say, by a request's `feature_subset`. Not for
# pairs over common samples.

# values, request: as ask_core() takes them. Gives a handle that takes the place
# of the values there; its memory is given back with it.
hold_points <- function(values, request, call = caller_env()) {
  points <- in_core(cpp_hold_points(values, request), call)$points
  reg.finalizer(points, give_back_held)
  points
}

# By hand, before the handle is gone. Where the package was unloaded there is
# nothing to give back any more.
give_back_held <- function(points) {
  if (is_loaded$now) {
    cpp_give_back_held(points)
  }
  invisible()
}

is_loaded <- new.env(parent = emptyenv())
is_loaded$now <- TRUE
