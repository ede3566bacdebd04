#' Diffusion maps of a graph of neighbours
#'
#' Gives the points of a graph coordinates in which near means joined by many
#' short paths: the leading eigenvectors of a random walk on the graph (Coifman
#' and Lafon 2006). They follow what data lie along, a course of development or
#' the turning of an object, where straight distances do not. Nothing but the
#' neighbours is read, so that it takes millions of points.
#'
#' @details
#' The pairs of neighbours, each with a distance \eqn{d}, are made symmetric
#' (`mode`; where both directions have a distance, and not the same one,
#' the smaller counts) and weighed:
#' \deqn{W_{ij} = \exp(-d_{ij}^2 / \epsilon), \quad
#'   q_i = 1 + \sum_j W_{ij}, \quad
#'   A_{ij} = W_{ij} / (q_i q_j)^\alpha, \quad d_i = \sum_j A_{ij}}{%
#'   W_ij = exp(-d_ij^2 / epsilon), q_i = 1 + sum_j W_ij,
#'   A_ij = W_ij / (q_i q_j)^alpha, d_i = sum_j A_ij}
#' The walk goes from i to j with probability \eqn{A_{ij} / d_i}{A_ij / d_i}.
#' Its eigenvectors \eqn{\psi} are those of \eqn{S = D^{-1/2} A D^{-1/2}}{S =
#' D^-1/2
#' A D^-1/2} over the square roots of d, scaled so that \eqn{\sum_i d_i \psi_i^2
#' = \sum_i d_i}{sum(d psi^2) = sum(d)}. The first, which is constant, is left
#' out. Coordinate l is \eqn{\lambda_l^t \psi_l}{lambda_l^t psi_l}, with t =
#' `time`: squared distances in all of them are diffusion distances. Each
#' coordinate is positive at the first point where it is at least half as large
#' as anywhere.
#'
#' **The diagonal.** A point counts itself in the density q and in the sum that
#' epsilon is chosen by (\eqn{W_{ii} = 1}{W_ii = 1}), and the walk never stays
#' where it is (\eqn{W_{ii} = 0}{W_ii = 0} in A). That is destiny's choice too:
#' with `alpha = 1` and `epsilon = 2 * sigma^2` the eigenvectors are those of
#' `destiny::DiffusionMap(distance = as_sparse(edges, mode = "union"),
#' sigma = sigma)`.
#'
#' **Epsilon.** The sum of all W grows with epsilon, as a power of it while it
#' is of the size of the data's own scale: there the slope of log(sum) against
#' log(epsilon) is half the dimension of what the data lie on. Below, the
#' diagonal is all there is; far above, the pairs that the graph lacks are
#' missed, since it was cut at k. Values between the medians over the points of
#' the squared distance to the nearest neighbour (other than at 0) and to the
#' last one are taken for valid, and epsilon is that of the steepest slope among
#' them. With \eqn{W_{ii} = 1}{W_ii = 1} twice the slope is too low for a
#' dimension rather than too high, the more so the fewer neighbours there are;
#' without the diagonal the slope would grow without end as epsilon falls. The
#' slope, the valid range and the dimension are reported, `plot(map,
#' which = "epsilon")` draws them.
#'
#' **Self-tuning.** `local = 7` takes \eqn{W_{ij} = \exp(-d_{ij}^2 / (\epsilon
#' s_i s_j))}{W_ij = exp(-d_ij^2 / (epsilon s_i s_j))} with \eqn{s_i}{s_i} the
#' distance of point i to its 7th neighbour (Zelnik-Manor and Perona 2004), or
#' its last where it has fewer, and epsilon 1 unless it is given: for data that
#' lie much denser in some places than in others. Where \eqn{s_i}{s_i} is 0, as
#' so many points are the same as point i, it is the distance to the nearest
#' neighbour that is not the same; of a point all of whose neighbours are the
#' same as itself, the smallest of all other points. Pairs at distance 0 have
#' W = 1 always.
#'
#' **Correlations.** The distance of correlations and of cosine is 1 - r (or
#' 1 - |r|, 1 + r, as `sign` had it); \eqn{d^2 = 2 (1 - r)}{d^2 = 2 (1 - r)} is
#' the squared distance of the standardised rows then, and that is what is
#' taken. All other distances are squared.
#'
#' **Distances of any magnitude.** Where the squares of typical distances, below
#' 1e-135 or above 1e135, would come near the ends of a double's range, all
#' distances are divided by a power of two first. The result has it as `unit`:
#' its `epsilon`, `range` and `curve` are of distances divided by `unit`. All
#' else has no unit but `scale`, which is in that of the distances. The argument
#' `epsilon` is always of the distances as they are.
#'
#' **Components.** Where the graph falls into several components each has a map
#' of its own: no walk leads from one to another, eigenvalue 1 would repeat, and
#' coordinates of different components can't be compared. `component` numbers
#' them by size. A component of up to `num_components` + 1 points has too few
#' for a map, and `NA` as coordinates; a point without neighbours belongs to no
#' component. Weights that are too small for a double (epsilon much less than a
#' squared distance) join nothing.
#'
#' **Eigenpairs** of components of up to 300 points are by [base::eigen()]; of
#' larger ones they are found by RSpectra's Lanczos method, with the product
#' by S computed by all threads and, of many points, a Chebyshev polynomial of
#' S in its place, which has the same eigenvectors. What comes out depends on
#' none of that beyond rounding, and not at all on the number of threads:
#' `residuals` holds \eqn{||S v - \lambda v||}{||S v - lambda v||} with
#' \eqn{||v|| = 1}{||v|| = 1}. Eigenvectors of eigenvalues that are the same, as
#' on a circle, can be turned against each other.
#'
#' @param edges Neighbours of points with their distances, in any shape that
#'   [as_knn()] takes: what [knn_search()] gives, an edge data frame of any
#'   kind, those of other packages; or shards of an answer
#'   ([read_knn()]), which are read by blocks.
#' @param num_components Number of coordinates, a whole number from 1.
#' @param alpha How much of the points' density is taken out, from 0 (none) to
#'   1 (default: all, so that coordinates depend on the shape that points lie
#'   on and not on how they are spread over it); 0.5 is the Fokker-Planck
#'   diffusion.
#' @param epsilon A positive number in units of squared distance (with `local`,
#'   a factor without a unit); `NULL` (default): chosen as said in Details.
#' @param local `NULL` (default), or which neighbour's distance scales a point
#'   (7 is usual): see Details.
#' @param time Steps of the walk, a whole number from 0.
#' @param mode `"union"` (default): pairs of which either point is a
#'   neighbour of the other; `"mutual"`: those of which both are.
#' @param ... Must be empty.
#' @param metric The metric that the distances are of, where `edges` does not
#'   say (edge data frames and shards do): `NULL` (default) takes them for
#'   lengths. What matters is whether they are 1 - r.
#' @inheritParams run_options
#' @inheritParams snn_graph
#'
#' @returns A list of class `fsknn_diffusion_map`, which prints a summary:
#'   * `coordinates`: a matrix, a row for each point (with its name, where it
#'     has one) and a column for each coordinate, `"DC1"` and so on;
#'   * `eigenvalues`, `residuals`: matrices, a row for each component that has
#'     a map;
#'   * `component`: the number of each point's component, 1 being the largest,
#'     or `NA`; `sizes`: the points of each;
#'   * `epsilon`, `chosen` (how), `slope`, `dimension` (twice the slope, with
#'     and without the diagonal), `range` (of valid values) and `curve`, a data
#'     frame with `epsilon`, `log_sum`, `slope` and `slope_without`, which is
#'     without
#'     the diagonal;
#'   * `density` (q), `degree` (d) and `scale` (s, or `NULL`) of each point;
#'   * `unit`: 1, or the power of two that `epsilon`, `range` and `curve` have
#'     as unit of length (see Details);
#'   * `alpha`, `time`, `local`, `mode`, `metric`, `num_pairs`.
#'
#'   `as.matrix()` gives the coordinates, which are what
#'   `SingleCellExperiment::reducedDim()` takes; `as.data.frame()` has a row for
#'   each point, `summary()` one for each component and coordinate. For
#'   `plot()` and `predict()` see [predict.fsknn_diffusion_map()].
#' @section Errors:
#' Of class `fsknn_argument_error`: neighbours in no shape that is known or
#' without distances, distances that are missing or below 0 (inner products), a
#' neighbour that is there twice. `fsknn_package_error`: a component of more
#' than 300 points where RSpectra is not installed. A warning of class
#' `fsknn_convergence_warning` says where eigenpairs were not found to full
#' accuracy.
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
