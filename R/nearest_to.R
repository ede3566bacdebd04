#' What is nearest to one point
#'
#' The k nearest neighbours of one row, such as a clinical outcome added by
#' [add_phenotype()], without the graph of all rows. They are those that
#' [knn_search()] gives for that row, to the last bit.
#'
#' Rows are read, prepared, compared with the one, and dropped, so that little
#' memory is needed: of [metafeatures()] no more than a block of rows is there
#' at any time.
#'
#' @inheritParams knn_search
#' @param x The points, as for [knn_search()].
#' @param point The point: the name of a row of `x`, or its number.
#' @param k Number of neighbours, a whole number from 1 to the number of other
#'   points.
#' @param constant What to do with other points for which the metric has no
#'   value: see [knn_search()]. The point itself must have one.
#'
#' @returns A data frame with k rows (fewer where `na = "pairwise"` leaves fewer
#'   neighbours), the nearest first, and the columns
#'   * `rank`: 1 to k;
#'   * `name`: of the row, its number where `x` has no row names;
#'   * `index`: the row's number in `x`;
#'   * `distance`: double;
#'   * `correlation`: for correlations only, the signed r, whatever `sign` is.
#'
#'   Of [metafeatures()] that are left out, the attribute `left_out` tells.
#' @inheritSection knn_search Errors
#' @inheritSection knn_search Missing values
#' @inherit knn_search references
#' @seealso [knn_query()] for points that are not in `x`, [knn_graph()] for all.
#' @export
#' @examples
#' x <- matrix(rnorm(200 * 12), nrow = 200)
#' rownames(x) <- paste0("gene", 1:200)
#' x <- add_phenotype(x, rexp(12), "years to relapse")
#' nearest_to(x, "years to relapse", k = 5)
#' # by |r|
#' nearest_to(x, "years to relapse", k = 5, sign = "absolute")
nearest_to <- function(x, point, k = 20, metric = "pearson", sign = "signed",
                       ..., constant = c("error", "isolate"),
                       backend = c("auto", "cuda", "cpu"), devices = NULL,
                       num_threads = NULL, max_device_memory = NULL,
                       progress = NULL, verbose = FALSE,
                       points = c("rows", "columns"), assay = NULL,
                       dimred = NULL, weights = NULL, max_memory = NULL,
                       na = c("error", "pairwise", "mean"), min_pairs = NULL) {
  check_no_more(...)
  rlang::check_required(x)
  rlang::check_required(point)
  options <- check_options(
    metric, sign, constant, backend, devices, num_threads,
    chunk_size = NULL, progress, verbose, max_device_memory, max_memory, na,
    min_pairs
  )
  options$input <- check_input(points, assay, dimred)
  options$weights <- check_sample_weights(weights, options$metric)
  search <- search_of_point(x, point, k, options)
  found <- run_search(search)
  there <- !is.na(found$index[1, ])
  index <- found$index[1, there]
  columns <- list(
    rank = seq_along(index),
    name = point_names(search$points, index) %||% as.character(index),
    index = index,
    distance = found$distance[1, there]
  )
  if (!is.null(found$correlation)) {
    columns$correlation <- found$correlation[1, there]
  }
  add_left_out(
    as.data.frame(columns, stringsAsFactors = FALSE), search
  )
}

# The search for one point among the others, all checked.
search_of_point <- function(x, point, k, options, call = caller_env()) {
  points <- read_points(x, options$input, "x", call = call)
  num_points <- nrow(points$values)
  check_num_points(num_points, 2L, "x", points$turned, call = call)
  check_num_features(
    ncol(points$values), options$metric, "x", points$turned, call = call
  )
  options <- fit_na(options, points, call = call)
  weights <- fit_weights(options$weights, points, call = call)
  points <- keep_samples(points, weights)
  options$weights <- weights$values
  at <- find_point(points, point, call = call)
  check_k(k, num_points, call = call)
  brought <- bring_all(points, NULL, options, call)
  points <- brought$points
  checked <- check_values(points, options, "x", call = call)
  if (at %in% checked$skip) {
    row <- describe_rows(at, points)
    side <- point_side(points)
    abort_argument(
      c(
        "{.arg point} must be a {side} for which metric
         {.val {options$metric$name}} has a value.",
        x = "{tools::toTitleCase(side)} {row} has none."
      ),
      call
    )
  }
  k <- check_k(k, num_points, length(checked$skip), call = call)
  list(
    points = points,
    queries = list(values = rows_of(points, at)),
    left_out = checked$left_out,
    verbose = options$verbose,
    as_rows = TRUE,
    request = new_request(
      k, options, skip = sort(c(at, checked$skip)),
      correlation = has_correlation(options$metric),
      rows_made = is_metafeatures(points$values),
      largest = checked$largest,
      max_memory = brought$max_memory, bytes_file = brought$bytes_file,
      na = na_of_search(options, points, checked, call = call)
    )
  )
}

# The number of the one row that is meant.
find_point <- function(points, point, arg = "point", call = caller_env()) {
  num_points <- nrow(points$values)
  if (!rlang::is_string(point)) {
    return(check_whole_number(point, arg, 1, num_points, call = call))
  }
  if (is_metafeatures(points$values)) {
    return(find_metafeatures(points$values, point, call = call))
  }
  side <- point_side(points)
  at <- which(points$names == point)
  if (length(at) == 1) {
    return(at)
  }
  if (length(at) > 1) {
    where <- first_few(at)
    abort_argument(
      c(
        "{.arg {arg}} must name one {side} of {.arg x}.",
        x = "{tools::toTitleCase(side)}s {where} are called {.val {point}}.",
        i = "Give the {side}'s number."
      ),
      call
    )
  }
  nearest <- if (length(points$names) > 0) nearest_spelling(point, points$names)
  abort_argument(
    c(
      "{.arg {arg}} must be the name of a {side} of {.arg x}, or its number.",
      x = if (is.null(points$names)) {
        "{.arg x} has no {side} names."
      } else {
        "There is no {side} {.val {point}}."
      },
      i = if (!is.null(nearest)) "Did you mean {.val {nearest}}?"
    ),
    call
  )
}
