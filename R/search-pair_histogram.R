#' Histograms of all pairs
#'
#' Counts the pairs of points in bins of similarity or distance. All n (n - 1) /
#' 2 pairs are counted exactly, and none is stored. Use it to choose the
#' threshold of a graph in advance, even for too many points for a matrix of all
#' pairs.
#'
#' @details
#' A pair is counted by the exact double that [threshold_graph()] and
#' [within_search()] compare. A bin includes its lower break and excludes its
#' upper one; the last bin also includes the last break. So the number of pairs
#' with a similarity from a break upwards is the number of edges of
#' `threshold_graph(min_similarity = )` for this break.
#'
#' On CPUs, under correlations, the cosine and the Euclidean distance, a pair is
#' first compared in 16-bit integers, which give an interval. If the interval is
#' within one bin, the pair is counted there. Other pairs, near a break, are
#' computed in double (`vignette("proofs")` has the proof). If bins are narrower
#' than twice the interval (about 6e-4 of r for 300 samples), all pairs are
#' computed in double.
#'
#' On CPUs, pairs beyond the last finite break are counted without comparing
#' them, where boxes around their points show that they are so far. For
#' similarities, these are the pairs below the first break. So breaks near the
#' threshold of a graph take less time than breaks over all values. See *Pruned
#' pairs* in [knn_stats()].
#'
#' If all values are 0 and 1, common bits are counted instead, also under
#' Manhattan distances, Proportional Similarity, Jaccard and Sorensen. For these
#' four, and for the Euclidean distance, such counts are exact for bins of any
#' width.
#'
#' Under other metrics, and with `na = "pairwise"` if values are missing, all
#' pairs are computed in double, which takes longer. GPUs compute all pairs in
#' double. They can't compare pairs over common samples, so the CPU counts if
#' values are missing and `na = "pairwise"`.
#'
#' @inheritParams within_search
#' @param breaks The breaks between bins: two or more ascending numbers, of
#'   which the first may be `-Inf` and the last `Inf`. Or the number of bins, a
#'   whole number. These have equal widths and cover all possible values. Under
#'   metrics without a largest value they cover the observed values, for which
#'   all pairs are computed once more, in double. (There are fewer bins if there
#'   are not enough doubles between the two ends.)
#' @param value `"similarity"` or `"distance"`. `NULL` (default) is the
#'   similarity if the metric has one, otherwise the distance. The similarity is
#'   r for correlations (|r| with `sign = "absolute"`, -r with
#'   `sign = "negative"`), and the cosine. For `"proportional"`, `"jaccard"`,
#'   `"sorensen"`, `"ccc"` and `"duo"` it is that of [threshold_graph()].
#' @param ... [Point options][point_options()] and [run options][run_options()],
#'   by name, or collected as `options = `. With `constant = "isolate"`, points
#'   for which the metric has no value are in no pair.
#'
#' @returns A list of class `fsknn_pair_histogram`:
#'   * `breaks`: the breaks, double;
#'   * `counts`: pairs in each bin, whole numbers (double, exact to 2^53);
#'   * `below`, `above`: pairs outside the breaks;
#'   * `pairs`: all that have a value, the sum of these;
#'   * `no_value`: pairs without one, under `na = "pairwise"`: too few samples
#'     in common, or a row that does not vary on them;
#'   * `exact`: pairs that were computed in double;
#'   * `num_points`, `num_isolated`: points, and those left out of all pairs;
#'   * `metric`, `sign`, `value`, `weighted`, `num_covariates`: the settings of
#'     the search.
#'
#'   `as.data.frame()` gives a row for each bin: `lower`, `upper`, `count`, and
#'   `share` of all pairs. `summary()` gives a row for each break but the last.
#'   It has the pairs from there upwards (for a distance: those below), their
#'   share, and their average number for a point. `plot()` draws the bins and
#'   needs ggplot2.
#'
#'   The result does not depend on the number of threads or GPUs, and only
#'   `exact` depends on the backend.
#' @section Errors:
#' Errors are those of [knn_search()]. Breaks that are not ascending, and a
#' similarity of a metric that has none, are of class `fsknn_argument_error`. A
#' distance beyond the range of a double is a `fsknn_range_error`.
#' @section Missing values:
#' For the options `na` and `min_pairs`, see "Missing values" in
#' [point_options()]. With `na = "pairwise"`, some pairs have no value. They
#' have fewer than `min_pairs` samples in common, or, under a correlation, a row
#' that does not vary on these. Such a pair is in no bin, and counts 0 in a sum.
#' @inherit knn_search references
#' @seealso [threshold_graph()] and [within_search()] for the pairs themselves,
#'   [pair_connectivity()] for sums over them.
#' @export
#' @examples
#' x <- matrix(rnorm(300 * 12), nrow = 300)
#' found <- pair_histogram(x, 10)
#' found
#' as.data.frame(found)
#'
#' # how many edges would a threshold give?
#' summary(pair_histogram(x, c(0.5, 0.6, 0.7, 0.8, 0.9, 1)))
#' nrow(threshold_graph(x, 0.8, backend = "cpu"))
#'
#' pair_histogram(x, c(0, 2, 4, Inf), metric = "euclidean")
pair_histogram <- function(x, breaks, metric = NULL, sign = "signed", ...,
                           value = NULL) {
  check_supplied(x)
  check_supplied(breaks)
  options <- verb_options("pair_histogram", ...)
  value <- check_pair_value(value, options$metric)
  breaks <- check_breaks(breaks)
  search <- counted_on_cpu(new_search(x, options))
  if (length(breaks) == 1) {
    breaks <- equal_bins(search, value, breaks, current_env())
  }
  found <- count_pairs(search, breaks, value, call = current_env())
  new_pair_histogram(found, breaks, value, search)
}

# Pairs that GPUs cannot count are counted on the CPU.
counted_on_cpu <- function(search, call = caller_env()) {
  request <- search$request
  if (request$backend != "cuda" || !identical(request$na, "pairwise")) {
    return(search)
  }
  on_cpu_alone(
    search, pairwise_on_cpu("Pairs are counted"), "fsknn_counts_pairwise", call
  )
}

has_similarity <- function(metric) {
  !metric$similarity %in% c("reciprocal", "none")
}

check_pair_value <- function(value, metric, call = caller_env()) {
  if (is.null(value)) {
    return(if (has_similarity(metric)) "similarity" else "distance")
  }
  value <- check_choice(value, c("similarity", "distance"), "value",
                        call = call)
  if (value == "similarity" && !has_similarity(metric)) {
    abort_argument(
      c(
        "Metric {.val {metric$name}} has no similarity.",
        i = "Use {.code value = \"distance\"}."
      ),
      call
    )
  }
  value
}

# Checks the breaks, or the number of bins.
check_breaks <- function(breaks, call = caller_env()) {
  plain <- is.numeric(breaks) && !is.object(breaks) && is.null(dim(breaks)) &&
    length(breaks) > 0
  if (!plain || (length(breaks) == 1 && !is_whole(breaks))) {
    given <- describe_value(breaks)
    abort_argument(
      "{.arg breaks} must be two numbers or more, or a whole number of bins, not
       {given}.",
      call
    )
  }
  if (length(breaks) == 1) {
    return(check_whole_number(breaks, "breaks", 1, 1e6, call = call))
  }
  breaks <- as.double(breaks)
  if (anyNA(breaks)) {
    abort_argument("{.arg breaks} must not be missing.", call)
  }
  at <- which(diff(breaks) <= 0 | breaks[-1] == breaks[-length(breaks)])
  if (length(at) > 0) {
    first <- format_bound(breaks[[at[[1]]]])
    second <- format_bound(breaks[[at[[1]] + 1]])
    abort_argument(
      c(
        "{.arg breaks} must be ascending, each above the one before.",
        x = "After {first} comes {second}."
      ),
      call
    )
  }
  breaks
}

# Returns breaks of bins of equal width, over all possible values or, if these
# are unbounded, over the observed ones.
equal_bins <- function(search, value, count, call) {
  range <- range_of_values(search$options, value)
  if (is.null(range)) {
    found <- count_pairs(search, c(-Inf, Inf), value, TRUE, call)
    range <- c(found$least, found$largest)
    if (!all(is.finite(range))) {
      range <- c(0, 1)
    }
  }
  # The difference of the ends may be beyond the range of a double, so none is
  # formed.
  at <- seq(0, 1, length.out = count + 1)
  breaks <- range[[1]] * (1 - at) + range[[2]] * at
  breaks <- unique(pmin(pmax(breaks, range[[1]]), range[[2]]))
  # If all values are equal, there is one bin with this value.
  if (length(breaks) == 1) rep(breaks, 2) else breaks
}

range_of_values <- function(options, value) {
  metric <- options$metric
  if (!has_similarity(metric)) {
    return(NULL)
  }
  most <- metric$most %||% 1
  both <- (has_correlation(metric) && options$sign != "absolute") ||
    metric$name == "cosine"
  if (value == "distance") {
    c(1 - most, if (both) 2 else 1)
  } else {
    c(if (both) -1 else 0, most)
  }
}

count_pairs <- function(search, breaks, value, extremes = FALSE,
                        call = caller_env()) {
  counted <- cpp_count_pairs(
    search$points$values, search$request, breaks, value == "similarity",
    extremes
  )
  naming_largest(search, in_core(counted, call), call)
}

new_pair_histogram <- function(found, breaks, value, search) {
  counts <- found$counts
  bins <- length(breaks) - 1
  request <- search$request
  n <- found$num_points
  histogram <- structure(
    list(
      breaks = breaks, counts = counts[seq_len(bins) + 1],
      below = counts[[1]], above = counts[[bins + 2]], pairs = sum(counts),
      no_value = n * (n - 1) / 2 - sum(counts),
      exact = found$stats$pairs_exact,
      num_points = nrow(search$points$values),
      num_isolated = length(search$skip), metric = request$metric,
      sign = if (metric_facts(request$metric)$has_sign) request$sign,
      value = value, weighted = !is.null(request$weights),
      num_covariates = num_covariates(request) %||% 0L
    ),
    class = "fsknn_pair_histogram"
  )
  with_searched(histogram, search)
}
