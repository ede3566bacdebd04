#' Plots of diffusion maps, and coordinates of new points
#'
#' `plot()` draws two coordinates of the points, the eigenvalues, or the slope
#' that determines epsilon. `predict()` computes the coordinates of new points
#' from their nearest neighbours in the map (Nystrom's extension). The map stays
#' as it is.
#'
#' @details
#' A new point y has a weight \eqn{W_{yj}}{W_yj} for each of its neighbours j.
#' The weight uses the map's epsilon and, if the map used `local`, the point's
#' own scale. The point walks to j with probability \eqn{p_j \propto W_{yj} /
#' q_j^\alpha}{p_j proportional to W_yj / q_j^alpha}. Its coordinate l is
#' \eqn{\sum_j p_j c_{jl} / \lambda_l}{sum_j p_j c_jl / lambda_l}, where
#' \eqn{c_{jl}}{c_jl} are the coordinates of the neighbours. This is the
#' eigenvector equation that holds for each point of the map.
#'
#' A new point at distance 0 from a point of the map has the coordinates of that
#' point (the first of several). Every other new point belongs to the component
#' of its nearest neighbour, and only neighbours in that component count. Its
#' coordinates are `NA` if the component has no map, or if it has no neighbours.
#'
#' @param object,x A result of [diffusion_map()].
#' @param newdata Neighbours of the new points among the points of the map, with
#'   distances of the same metric. Use the value of [knn_query()], if possible
#'   with the k of the map's graph, or another shape that [as_knn()] takes with
#'   `queries = TRUE`.
#' @param ... Must be empty.
#' @param which `"coordinates"` (default), `"eigenvalues"` (of all components
#'   that have a map) or `"epsilon"`. The last one draws the slope against
#'   epsilon, with the valid range shaded and the chosen epsilon marked.
#' @param coordinates The numbers of the two coordinates to draw.
#' @param colour The colours of the points: `NULL`, or one value for each point.
#'   Numbers give a continuous scale, other values are converted to a factor.
#' @param component The number of the component to draw.
#' @param title Title of the colour legend; `NULL` (default) for none.
#'
#' @returns `predict()`: a matrix with a row for each new point and the columns
#'   of the map's coordinates. `plot()`: a ggplot object. From a component of
#'   more than 50,000 points it draws an even sample of 50,000, and says so.
#' @section Errors:
#' An error of class `fsknn_argument_error` means that `newdata` has an unknown
#' shape, or an index above the number of points. For `plot()` it may mean that
#' the component has no map.
#' @references Bengio Y, Paiement JF, Vincent P, et al. (2004). Out-of-sample
#' extensions for LLE, Isomap, MDS, eigenmaps, and spectral clustering.
#' *Advances in Neural Information Processing Systems* 16: 177-184.
#' @seealso [diffusion_map()]
#' @importFrom stats predict
#' @export
#' @examples
#' at <- seq(0, 2 * pi, length.out = 201)[-1]
#' x <- cbind(cos(at), sin(at))
#' map <- diffusion_map(knn_search(x, k = 10, metric = "euclidean"), 2)
#' new <- cbind(cos(1:3 / 7), sin(1:3 / 7))
#' predict(map, knn_query(x, new, k = 10, metric = "euclidean"))
#' if (requireNamespace("ggplot2", quietly = TRUE)) {
#'   plot(map, colour = at)
#' }
predict.fsknn_diffusion_map <- function(object, newdata, ...) {
  check_no_more(...)
  check_supplied(newdata)
  nn <- read_knn_shape(newdata, queries = TRUE, arg = "newdata")
  check_map_distances(nn, "newdata")
  num_points <- nrow(object$coordinates)
  largest <- largest_index(nn)
  if (largest > num_points) {
    abort_argument(
      c(
        "{.arg newdata} must hold neighbours among the points of the map.",
        x = "There {cli::qty(num_points)}{?is/are}
             {tally(num_points, \"point\")}, and {largest} is an index."
      ),
      current_env()
    )
  }
  places <- in_places(nn)
  extend_map(object, places, num_rows_of(nn))
}

# `places` has row, index and distance of each neighbour.
extend_map <- function(map, places, num_rows) {
  there <- which(!is.na(places$index))
  there <- there[order(
    places$row[there], places$distance[there], places$index[there],
    method = "radix"
  )]
  row <- places$row[there]
  index <- places$index[there]
  distance <- places$distance[there]
  out <- matrix(
    NA_real_, num_rows, ncol(map$coordinates),
    dimnames = list(NULL, colnames(map$coordinates))
  )
  nearest <- !duplicated(row)
  component <- rep(NA_integer_, num_rows)
  component[row[nearest]] <- map$component[index[nearest]]
  squared <- squared_lengths(map, row, index, distance, num_rows)
  kept <- which(
    map$component[index] == component[row] &
      component[row] <= nrow(map$eigenvalues)
  )
  if (length(kept) > 0) {
    rows <- unique(row[kept])
    out[rows, ] <- walk_to(
      map, row[kept], index[kept], squared[kept], distance[kept]
    ) /
      map$eigenvalues[component[rows], , drop = FALSE]
  }
  # Points that are in the map get their own coordinates.
  same <- nearest & distance == 0
  out[row[same], ] <- map$coordinates[index[same], ]
  out
}

# Returns the mean coordinates of each row's neighbours, with the walk's
# weights.
walk_to <- function(map, row, index, squared, distance) {
  # Distances are relative to the nearest, so that not all weights vanish. The
  # common factor cancels.
  first <- order(row, squared, method = "radix")
  first <- first[!duplicated(row[first])]
  nearest <- first[match(row, row[first])]
  off <- squared - squared[nearest]
  # If squares overflow, any difference is many epsilons, and only the nearest
  # neighbours have a weight.
  beyond <- which(squared[nearest] == Inf)
  off[beyond] <- ifelse(distance[beyond] == distance[nearest][beyond], 0, Inf)
  weight <- exp(-off / map$epsilon) /
    map$density[index]^map$alpha
  total <- sum_by_row(weight, row)
  means <- vapply(seq_len(ncol(map$coordinates)), function(l) {
    sum_by_row(weight * map$coordinates[index, l], row) / total
  }, total)
  matrix(means, length(total))
}

sum_by_row <- function(values, row) {
  as.vector(rowsum(values, row, reorder = FALSE))
}

# Computes u of core/graph/diffusion.hpp for neighbours in order of row, then
# distance.
squared_lengths <- function(map, row, index, distance, num_rows) {
  if (is_one_minus(map$metric)) {
    distance <- sqrt(2 * distance)
  }
  if (is.null(map$local)) {
    return((distance / unit_of_map(map))^2)
  }
  size <- tabulate(row, num_rows)
  start <- cumsum(size) - size
  own <- distance[start[row] + pmin(map$local, size[row])]
  if (any(own == 0)) {
    positive <- which(distance > 0)
    positive <- positive[!duplicated(row[positive])]
    next_one <- rep(min(map$scale), num_rows)
    next_one[row[positive]] <- distance[positive]
    own[own == 0] <- next_one[row[own == 0]]
  }
  (distance / own) * (distance / map$scale[index])
}
