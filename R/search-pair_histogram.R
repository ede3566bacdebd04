#' Histograms of all pairs
#'
#' Counts how many of all n (n - 1) / 2 pairs of points have a similarity, or a
#' distance, in each of some bins: exactly, and without keeping any pair. So
#' the threshold of a graph can be chosen before there is one, for more points
#' than a matrix of all pairs could be held of.
#'
#' @details
#' A pair counts by the exact double that [threshold_graph()] and
#' [within_search()] compare: a bin holds what is at least its lower break, and
#' less than its upper one; the last bin holds what equals the last break, too.
#' So with a similarity the pairs from a break upwards are as many as
#' `threshold_graph(min_similarity = )` of this break has edges.
#'
#' On CPUs, under correlations, the cosine and the Euclidean distance, a pair is
#' first looked at in whole numbers of 16 bits. Where what they leave open lies
#' whole within a bin, that is the pair's; the others, near a break, are
#' computed in double: `vignette("proofs")` has the proof. With bins narrower
#' than twice what is left open (about 6e-4 of r for 300 samples) all pairs are.
#' Where all values are 0 and 1, common bits are counted instead, also under
#' Manhattan distances, Proportional Similarity, Jaccard and Sorensen: these
#' four, and the Euclidean distance, they tell exactly, however narrow the bins.
#' Otherwise, under the other metrics and with `na = "pairwise"` where values
#' are missing, all pairs are computed in double, which takes longer. GPUs
#' compute all pairs in double, but none over common samples: with values
#' missing and `na = "pairwise"` the CPU counts.
#'
#' @inheritParams within_search
#' @param breaks The breaks between bins: two numbers or more, ascending, of
#'   which the first may be `-Inf` and the last `Inf`; or the number of bins, a
#'   whole number. They are of equal width then, over all values that there can
#'   be; under metrics without a largest value from the least to the largest
#'   that there is, for which all pairs are computed once more, in double (and
#'   fewer where there are no more doubles between these to part them).
#' @param value `"similarity"` or `"distance"`. `NULL` (default) takes the
#'   similarity where the metric has one: r for correlations (|r| under
#'   `sign = "absolute"`, -r under `sign = "negative"`), the cosine, and that of
#'   [threshold_graph()] for `"proportional"`, `"jaccard"` and `"sorensen"`.
#' @param constant What to do with points for which the metric has no value (see
#'   [knn_search()]): `"error"` (default), or `"isolate"`, which counts no pair
#'   of them, and is an error where too few others are left.
#' @param max_memory The most memory to use for an `x` that is read by blocks,
#'   as for [knn_search()].
#'
#' @returns A list of class `pair_histogram`:
#'   * `breaks`: the breaks, double;
#'   * `counts`: pairs in each bin, whole numbers (double, exact to 2^53);
#'   * `below`, `above`: pairs outside the breaks;
#'   * `pairs`: all that have a value, the sum of these;
#'   * `no_value`: pairs without one, under `na = "pairwise"`: too few samples
#'     in common, or a row that does not vary on them;
#'   * `exact`: pairs that were computed in double;
#'   * `num_points`, `num_isolated`: points, and those left out of all pairs;
#'   * `metric`, `sign`, `value`, `weighted`, `num_covariates`: of what.
#'
#'   `as.data.frame()` gives a row for each bin: `lower`, `upper`, `count`, and
#'   `share` of all pairs. `summary()` gives for each break but the last the
#'   pairs from there upwards (of a distance: those below), their share, and how
#'   many a point has of them on average. `plot()` draws the bins; it needs
#'   ggplot2. Nothing of it depends on the number of threads or GPUs, and
#'   `exact` alone on the backend.
#' @section Errors:
#' As for [knn_search()], of class `fsknn_argument_error`: breaks that are not
#' ascending, and a similarity of a metric that has none. A distance beyond the
#' range of a double is a `fsknn_range_error`.
#' @section Missing values:
#' `na` and `min_pairs` mean what they mean in [knn_search()], whose help has
#' the section "Missing values". Under `na = "pairwise"` a pair with fewer than
#' `min_pairs` samples in common, or with a row that does not vary on them, has
#' no value: it is in no bin, and counts 0 in a sum.
#' @inheritSection knn_search Covariates
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
                           value = NULL, constant = c("error", "isolate"),
                           backend = c("auto", "cuda", "cpu"), devices = NULL,
                           num_threads = NULL, chunk_size = NULL,
                           max_device_memory = NULL, progress = NULL,
                           points = c("rows", "columns"), assay = NULL,
                           dimred = NULL, weights = NULL, max_memory = NULL,
                           na = c("error", "pairwise", "mean"),
                           min_pairs = NULL, adjust = NULL, data = NULL) {
  check_no_more(...)
  check_supplied(x)
  check_supplied(breaks)
  options <- verb_options()
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
  on_cpu_alone(search, "Pairs are counted", "fsknn_counts_pairwise", call)
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
  both <- (has_correlation(metric) && options$sign != "absolute") ||
    metric$name == "cosine"
  if (value == "distance") {
    c(0, if (both) 2 else 1)
  } else {
    c(if (both) -1 else 0, 1)
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
  structure(
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
    class = "pair_histogram"
  )
}
