#' Diffusion maps of a neighbour graph
#'
#' Computes coordinates of the points from the leading eigenvectors of a random
#' walk on the graph (Coifman and Lafon 2006). Points that many short paths
#' connect are close in these coordinates. They follow curved structures, such
#' as a course of development or the rotation of an object, where straight-line
#' distances fail. Only the neighbours are read, so the graph may have millions
#' of points.
#'
#' @details
#' **Kernel and walk.** The pairs of neighbours, each with a distance \eqn{d},
#' are made symmetric by `mode`. If both directions have a distance and these
#' differ, the smaller one counts. The weights and degrees are
#' \deqn{W_{ij} = \exp(-d_{ij}^2 / \epsilon), \quad
#'   q_i = 1 + \sum_j W_{ij}, \quad
#'   A_{ij} = W_{ij} / (q_i q_j)^\alpha, \quad d_i = \sum_j A_{ij}}{%
#'   W_ij = exp(-d_ij^2 / epsilon), q_i = 1 + sum_j W_ij,
#'   A_ij = W_ij / (q_i q_j)^alpha, d_i = sum_j A_ij}
#' The walk goes from i to j with probability \eqn{A_{ij} / d_i}{A_ij / d_i}.
#'
#' **Coordinates.** The eigenvectors \eqn{\psi} of the walk are the eigenvectors
#' of \eqn{S = D^{-1/2} A D^{-1/2}}{S = D^-1/2 A D^-1/2}, divided by the square
#' roots of d. They are scaled so that \eqn{\sum_i d_i \psi_i^2 = \sum_i
#' d_i}{sum(d psi^2) = sum(d)}. The first one is constant and is left out.
#' Coordinate l is \eqn{\lambda_l^t \psi_l}{lambda_l^t psi_l}, where t is
#' `time`. Euclidean distances in all coordinates are diffusion distances.
#'
#' The sign of \eqn{\psi}{psi} is fixed by one point: the first one where its
#' absolute value is at least half of the maximum. It is positive there.
#'
#' **The diagonal.** A point counts itself in the density q and in the sum that
#' determines epsilon (\eqn{W_{ii} = 1}{W_ii = 1}). The walk itself never stays
#' at a point (\eqn{A_{ii} = 0}{A_ii = 0}).
#'
#' **Comparison with destiny.** The package destiny treats the diagonal in the
#' same way. Compare `alpha = 1` and `epsilon = 2 * sigma^2` with
#' `destiny::DiffusionMap(distance = as_sparse(edges, mode = "union"),
#' sigma = sigma)`. Both have the same eigenvalues. The eigenvectors of destiny
#' are those of S. They equal \eqn{\psi}{psi} times `sqrt(degree)`, up to the
#' sign and a constant factor.
#'
#' **Epsilon.** The sum of all W grows with epsilon. Near the scale of the data
#' it grows as a power of epsilon. There the slope of log(sum) against
#' log(epsilon) is half the intrinsic dimension of the data. For much smaller
#' epsilon only the diagonal remains in the sum. For much larger epsilon the sum
#' lacks the pairs that the graph leaves out beyond the k nearest.
#'
#' The valid range of epsilon lies between two medians over the points. The
#' lower one is the median squared distance to the nearest neighbour at a
#' distance above 0. The upper one is the median squared distance to the last
#' neighbour. Epsilon is the value with the steepest slope in this range.
#'
#' Because \eqn{W_{ii} = 1}{W_ii = 1}, twice the slope tends to underestimate
#' the dimension, and more so for fewer neighbours. Without the diagonal, the
#' slope would grow without limit as epsilon decreases. The result contains the
#' slope, the range and the dimension; `plot(map, which = "epsilon")` draws
#' them.
#'
#' **Self-tuning.** Use `local = 7` for data that are much denser in some
#' regions than in others (Zelnik-Manor and Perona 2004). The weights are then
#' \eqn{W_{ij} = \exp(-d_{ij}^2 / (\epsilon s_i s_j))}{W_ij = exp(-d_ij^2 /
#' (epsilon s_i s_j))}. Here \eqn{s_i}{s_i} is the distance from point i to its
#' 7th neighbour, or to its last one if it has fewer. Epsilon is 1 unless you
#' give it.
#'
#' If \eqn{s_i}{s_i} would be 0 because of duplicates of point i, it is the
#' distance to the nearest neighbour at a distance above 0. If all neighbours
#' are duplicates, it is the smallest scale of all other points. Pairs at
#' distance 0 always have W = 1.
#'
#' **Correlations.** For correlations and cosine, the distance is 1 - r (or
#' 1 - |r|, or 1 + r, by `sign`). The squared distance in the kernel is then
#' twice this distance. For example, 2 (1 - r) is the squared Euclidean distance
#' of rows that are scaled to length 1. All other distances are squared.
#'
#' **Distances of any magnitude.** Squares of typical distances below 1e-135 or
#' above 1e135 could leave the range of a double. All distances are then divided
#' by a power of two first, which the result contains as `unit`. Its `epsilon`,
#' `range` and `curve` refer to the divided distances. `scale` has the unit of
#' the original distances. The argument `epsilon` always refers to the original
#' distances.
#'
#' **Components.** If the graph has several connected components, each has its
#' own map. No walk leads from one to another, so coordinates of different
#' components are not comparable. `component` numbers the components by
#' decreasing size. A component of up to `num_components` + 1 points is too
#' small for a map; its coordinates are `NA`. A point without neighbours belongs
#' to no component. A weight that underflows to 0 (epsilon much smaller than the
#' squared distance) connects nothing.
#'
#' **Eigenpairs.** [base::eigen()] computes the eigenpairs of components of up
#' to 300 points, the Lanczos method of RSpectra those of larger ones. All
#' threads compute its matrix products. For many points, the matrix S is
#' replaced by a Chebyshev polynomial of it, which has the same eigenvectors.
#' The method affects the result only by rounding. The number of threads does
#' not affect it.
#'
#' The element `residuals` contains \eqn{||S v - \lambda v||}{||S v - lambda
#' v||} with \eqn{||v|| = 1}{||v|| = 1}. Eigenvectors of equal eigenvalues, as
#' on a circle, are unique only up to rotation.
#'
#' @param edges Neighbours of points with their distances, in any shape that
#'   [as_knn()] takes: the value of [knn_search()], any edge data frame, or
#'   neighbours from another package. It may also be shards of an answer
#'   ([read_knn()]), which are read by blocks.
#' @param num_components Number of coordinates, a whole number from 1.
#' @param alpha How strongly the map corrects for the density of the points,
#'   from 0 (no correction) to 1 (default). With 1, coordinates depend on the
#'   shape of the data and not on the density of points along it. With 0.5 the
#'   walk approximates Fokker-Planck diffusion.
#' @param epsilon The kernel's scale: a positive number in units of squared
#'   distance (with `local`, a factor without a unit). `NULL` (default) chooses
#'   it: see "Epsilon" in Details.
#' @param local `NULL` (default), or the rank of the neighbour whose distance
#'   is the scale of a point (7 is usual): see "Self-tuning" in Details.
#' @param time Steps of the walk, a whole number from 0.
#' @param mode `"union"` (default) joins two points if either is a neighbour of
#'   the other, `"mutual"` only if both are.
#' @param ... Must be empty.
#' @param metric The metric of the distances, if `edges` does not record it
#'   (edge data frames and shards do). `NULL` (default) treats them as lengths.
#'   The metric determines only whether the distances are 1 - r.
#' @inheritParams run_options
#' @inheritParams snn_graph
#'
#' @returns A list of class `fsknn_diffusion_map`, which prints as a summary:
#'   * `coordinates`: a matrix with a row for each point (and its name, if it
#'     has one) and the columns `"DC1"`, `"DC2"` and so on;
#'   * `eigenvalues`, `residuals`: matrices with a row for each component that
#'     has a map;
#'   * `component`: the number of each point's component (1 is the largest), or
#'     `NA`; `sizes`: the number of points in each component;
#'   * `epsilon`; `chosen`: how it was chosen; `slope`: the slope there;
#'     `dimension`: twice the slope, with and without the diagonal;
#'   * `range`: the valid values of epsilon; `curve`: a data frame with
#'     `epsilon`, `log_sum`, `slope` and `slope_without` (without the diagonal);
#'   * `density` (q), `degree` (d) and `scale` (s, or `NULL`) of each point;
#'   * `unit`: 1, or the power of two that is the unit of length of `epsilon`,
#'     `range` and `curve` (see Details);
#'   * `alpha`, `time`, `local`, `mode`, `metric`, `num_pairs`.
#'
#'   `as.matrix()` gives the coordinates, in the form that
#'   `SingleCellExperiment::reducedDim()` takes. `as.data.frame()` has a row for
#'   each point, and `summary()` one for each component and coordinate. For
#'   `plot()` and `predict()` see [predict.fsknn_diffusion_map()].
#' @section Errors:
#' An error of class `fsknn_argument_error` means that
#' * `edges` has an unknown shape or no distances;
#' * distances are missing or below 0 (inner products);
#' * a point has the same neighbour twice.
#'
#' An error of class `fsknn_package_error` means that a component has more than
#' 300 points and RSpectra is not installed. A warning of class
#' `fsknn_convergence_warning` says how many eigenpairs are missing or have a
#' residual above 1e-6.
#' @references
#' Coifman RR, Lafon S (2006). Diffusion maps. *Applied and Computational
#' Harmonic Analysis* 21(1): 5-30. \doi{10.1016/j.acha.2006.04.006}
#'
#' Zelnik-Manor L, Perona P (2004). Self-tuning spectral clustering. *Advances
#' in Neural Information Processing Systems* 17: 1601-1608.
#'
#' Coifman RR, Shkolnisky Y, Sigworth FJ, Singer A (2008). Graph Laplacian
#' tomography from unknown random projections. *IEEE Transactions on Image
#' Processing* 17(10): 1891-1899 (epsilon by the slope).
#' \doi{10.1109/TIP.2008.2002305}
#'
#' Dashti A (2013). *Efficient computation of k-nearest neighbor graphs for
#' large high-dimensional data sets on GPU clusters*. Master's thesis,
#' University of
#' Wisconsin-Milwaukee (diffusion maps of kNN graphs of millions of images).
#' <https://dc.uwm.edu/etd/280>
#'
#' Angerer P, Haghverdi L, Buettner M, Theis FJ, Marr C, Buettner F (2016).
#' destiny: diffusion maps for large-scale single-cell data in R.
#' *Bioinformatics* 32(8): 1241-1243. \doi{10.1093/bioinformatics/btv715}
#' @seealso [predict.fsknn_diffusion_map()] for new points and pictures;
#'   [snn_graph()], [spanning_forest()]
#' @export
#' @examples
#' # points along a spiral, in noise
#' set.seed(1)
#' at <- sort(runif(250, 3, 12))
#' x <- cbind(at * cos(at), at * sin(at)) + rnorm(500, sd = 0.1)
#' edges <- knn_graph(x, k = 10, metric = "euclidean", backend = "cpu")
#' map <- diffusion_map(edges, num_components = 3)
#' map
#' cor(map$coordinates[, 1], at, method = "spearman")
#'
#' # into a SingleCellExperiment:
#' # SingleCellExperiment::reducedDim(sce, "DiffusionMap") <- as.matrix(map)
diffusion_map <- function(edges, num_components = 10, alpha = 1,
                          epsilon = NULL, local = NULL, time = 1,
                          mode = c("union", "mutual"), ...,
                          metric = NULL, num_threads = NULL) {
  check_no_more(...)
  check_supplied(edges)
  num_components <- check_whole_number(num_components, "num_components", 1, 1e4)
  alpha <- check_alpha(alpha)
  if (!is.null(epsilon)) {
    epsilon <- check_epsilon(epsilon)
  }
  if (!is.null(local)) {
    local <- check_whole_number(local, "local", 1, max_edges)
  }
  time <- check_whole_number(time, "time", 0, max_edges)
  mode <- check_choice(
    mode, c("union", "mutual"), "mode",
    synonyms = c(intersection = "mutual", both = "mutual", either = "union")
  )
  num_threads <- check_num_threads(num_threads)
  metric <- check_map_metric(metric, metric_of_neighbours(edges))
  if (is_knn_shards(edges)) {
    check_shards_are_graph(edges, "edges", current_env())
    nn <- list(index = lists_of_shards(edges, "edges", current_env()))
  } else {
    nn <- read_knn_shape(edges, arg = "edges")
    check_map_distances(nn)
  }
  names <- nn$names
  joined <- cpp_join_neighbours(
    nn$index, nn$distance, mode == "mutual", is_one_minus(metric),
    local %||% 0L, num_threads
  )
  # The neighbours take as much memory as all that follows.
  rm(nn)
  if (identical(joined$failure, "repeated")) {
    abort_repeated(joined$point, names, current_env())
  }
  in_core(joined, current_env())
  if (!is.null(epsilon)) {
    epsilon <- in_unit(epsilon, joined$unit)
  }
  scale <- choose_epsilon(joined, epsilon, local, num_threads, current_env())
  walk <- in_core(
    cpp_walk(joined$graph, scale$epsilon, alpha, num_threads), current_env()
  )
  maps <- map_components(walk, num_components, time, num_threads, names)
  structure(
    c(
      maps, scale,
      list(
        density = walk$density, degree = walk$degree,
        scale = if (!is.null(local)) joined$scales, unit = joined$unit,
        alpha = alpha, time = time, local = local, mode = mode,
        metric = metric, num_pairs = joined$num_pairs
      )
    ),
    class = "fsknn_diffusion_map"
  )
}

is_number <- function(value) {
  is.numeric(value) && !is.object(value) && is.null(dim(value)) &&
    length(value) == 1 && is.finite(value)
}

check_alpha <- function(alpha, call = caller_env()) {
  if (is_number(alpha) && alpha >= 0 && alpha <= 1) {
    return(as.double(alpha))
  }
  given <- describe_value(alpha)
  abort_argument(
    "{.arg alpha} must be a number from 0 to 1, not {given}.", call
  )
}

check_epsilon <- function(epsilon, call = caller_env()) {
  if (is_number(epsilon) && epsilon > 0) {
    return(as.double(epsilon))
  }
  given <- describe_value(epsilon)
  abort_argument(
    c(
      "{.arg epsilon} must be a positive number, not {given}.",
      i = "It is a squared distance; {.code NULL} chooses one."
    ),
    call
  )
}

# Returns a squared length in this unit. A value beyond the range of a double is
# clamped, which does not change the weights.
in_unit <- function(epsilon, unit) {
  if (unit == 1) {
    return(epsilon)
  }
  range <- c(.Machine$double.xmin, .Machine$double.xmax)
  min(max(epsilon / unit / unit, range[[1]]), range[[2]])
}

metric_of_neighbours <- function(edges) {
  if (is_knn_shards(edges)) edges$facts$metric else attr(edges, "metric")
}

# The metric of the edges is used, and one that the user gives must agree.
check_map_metric <- function(metric, own, call = caller_env()) {
  if (!is.null(metric)) {
    metric <- check_metric(metric, call = call)$name
    if (!is.null(own) && !identical(metric, own)) {
      abort_argument(
        "{.arg metric} can't be {.val {metric}}: the edges are of metric
         {.val {own}}.",
        call
      )
    }
  }
  metric <- metric %||% own
  if (identical(metric, "inner_product")) {
    abort_argument(
      "A diffusion map needs distances, and those of metric
       {.val inner_product} are none.",
      call
    )
  }
  metric
}

# Returns TRUE if distances are 1 - r, so that 2 (1 - r) is a squared distance.
is_one_minus <- function(metric) {
  !is.null(metric) &&
    (metric == "cosine" || has_correlation(metric_facts(metric)))
}

check_map_distances <- function(nn, arg = "edges", call = caller_env()) {
  if (is.null(nn$distance)) {
    abort_argument("{.arg {arg}} must have distances.", call)
  }
  # This check needs no copies and passes if all distances are valid.
  if (is.matrix(nn$distance) && length(nn$distance) > 0 &&
        isTRUE(min(nn$distance) >= 0 && max(nn$distance) < Inf)) {
    return(invisible())
  }
  index <- unlist(nn$index, use.names = FALSE)
  distance <- unlist(nn$distance, use.names = FALSE)
  check_lengths(distance[!is.na(distance)], arg, call)
  bad <- !is.na(index) & !is.finite(distance)
  if (any(bad)) {
    abort_argument(
      c(
        "The distances of {.arg {arg}} must be finite.",
        x = "{format_count(sum(bad))} of {format_count(sum(!is.na(index)))}
             {cli::qty(sum(bad))}{?is/are} not."
      ),
      call
    )
  }
}

abort_repeated <- function(point, names, call) {
  point <- if (is.null(names)) point else paste0("\"", names[[point]], "\"")
  abort_argument(
    "A point must not have the same neighbour twice, or itself: point {point}
     has.",
    call
  )
}
