#' Pictures of diffusion maps, and coordinates for new points
#'
#' `plot()` draws the points by two coordinates, the eigenvalues, or the slope
#' that epsilon was chosen by. `predict()` gives new points, whose nearest
#' among those of the map are known, their coordinates (Nystrom's extension),
#' without a new map.
#'
#' @details
#' A new point y has weights \eqn{W_{yj}}{W_yj} with its neighbours j, by the
#' map's epsilon (and, with `local`, its own scale), walks to each of them with
#' probability \eqn{p_j \propto W_{yj} / q_j^\alpha}{p_j proportional to W_yj /
#' q_j^alpha}, and its coordinate l is \eqn{\sum_j p_j c_{jl} / \lambda_l}{sum_j
#' p_j c_jl / lambda_l} of their coordinates c: what the equation of an
#' eigenvector says of each point of the map. A point at distance 0 from one of
#' the map is that one (the first of several) and has its coordinates. The
#' others have those of the component that their nearest neighbour is in, of
#' which alone neighbours count; `NA` where that has no map, or there are no
#' neighbours.
#'
#' @param object,x What [diffusion_map()] gives.
#' @param newdata Neighbours of the new points among those of the map, with
#'   distances of the same metric: what [knn_query()] gives, best with the k of
#'   the map's own graph; or another shape that [as_knn()] takes with
#'   `queries = TRUE`.
#' @param ... Must be empty.
#' @param which `"coordinates"` (default), `"eigenvalues"` (of all components
#'   that have a map) or `"epsilon"`: the slope by epsilon, the valid range
#'   shaded, epsilon marked.
#' @param coordinates Numbers of the two to draw.
#' @param colour `NULL`, or a value for each point (numbers, or what makes a
#'   factor): how points are coloured.
#' @param component The component to draw, by its number.
#' @param title Of the colours; `NULL`: none.
#'
#' @returns `predict()`: a matrix with a row for each new point and the map's
#'   columns. `plot()`: a ggplot object. Of more than 50,000 points evenly many
#'   are left out, and the picture says so.
#' @section Errors:
#' Of class `fsknn_argument_error`: neighbours in no shape that is known, or of
#' numbers that the map has no points for; a component that has no map.
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
