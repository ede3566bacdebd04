# Chooses the scale of a diffusion map's kernel by the slope of log(sum of all
# weights) against log(epsilon). Each point counts itself as 1.

# Four values for each doubling suffice, because the slope is flat near its
# maximum.
steps_per_doubling <- 4

# `joined` is from cpp_join_neighbours(). Returns the map's facts about epsilon.
choose_epsilon <- function(joined, epsilon, local, num_threads, call) {
  num_points <- length(joined$nearest)
  measure <- function(at) {
    epsilon_curve(joined$graph, at, num_points, num_threads, call)
  }
  range <- valid_range(joined)
  if (is.null(range)) {
    # No two points differ, so all weights are 1 for any epsilon.
    return(list(
      epsilon = epsilon %||% 1, chosen = "no distance above 0",
      slope = NA_real_,
      dimension = c(with_diagonal = NA_real_, without = NA_real_),
      range = c(NA_real_, NA_real_),
      curve = measure(double())
    ))
  }
  curve <- measure(epsilon_grid(range))
  if (!is.null(epsilon)) {
    chosen <- "given"
  } else if (!is.null(local)) {
    epsilon <- 1
    chosen <- "self-tuning"
  } else {
    valid <- curve[
      curve$epsilon >= range[[1]] & curve$epsilon <= range[[2]], ,
      drop = FALSE
    ]
    epsilon <- valid$epsilon[[which.max(valid$slope)]]
    chosen <- "slope"
  }
  there <- measure(epsilon)
  list(
    epsilon = epsilon, chosen = chosen, slope = there$slope,
    dimension = 2 * c(
      with_diagonal = there$slope, without = there$slope_without
    ),
    range = range, curve = curve
  )
}

# Returns the median squared distances to the nearest different point and to the
# last neighbour, or NULL if there are none.
valid_range <- function(joined) {
  range <- c(
    stats::median(joined$nearest, na.rm = TRUE),
    stats::median(joined$farthest, na.rm = TRUE)
  )
  if (anyNA(range)) NULL else range
}

# The grid includes the ends of the range. Values beyond them serve only the
# plot.
epsilon_grid <- function(range, beyond = 3) {
  doublings <- diff(log2(range))
  within <- seq(0, doublings, length.out = ceiling(
    doublings * steps_per_doubling
  ) + 1)
  outside <- seq_len(beyond * 2) / 2
  c(
    range[[1]] * 2^-rev(outside), range[[1]] * 2^within[-length(within)],
    range[[2]], range[[2]] * 2^outside
  )
}

epsilon_curve <- function(graph, epsilon, num_points, num_threads, call) {
  sums <- in_core(cpp_kernel_sums(graph, epsilon, num_threads), call)
  data.frame(
    epsilon = epsilon, log_sum = log(num_points + sums$kernel),
    slope = sums$moment / (num_points + sums$kernel),
    slope_without = sums$moment / sums$kernel
  )
}
