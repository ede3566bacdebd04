#' Statistics of the last search
#'
#' Reports facts about the last completed search of this session: where it ran,
#' how many pairs passed the filter, and the time of each step. The answer does
#' not depend on these: it is the same to the last bit in any case.
#'
#' @returns `NULL` if no search has completed yet, otherwise a list of class
#'   `fsknn_stats` with a print method. Its elements are the settings, the use
#'   of GPUs, counts of pairs and points, the filter, and time and memory.
#'
#'   Settings:
#'   * `backend`, `metric`, `sign`;
#'   * `weighted`: whether samples had weights; `num_covariates`: the number of
#'     covariates that points were adjusted for;
#'   * `k`: `NA` for [within_search()] and [threshold_graph()];
#'   * `num_points`, `num_features` (without those of weight 0), `num_queries`
#'     (0 for a graph);
#'   * `num_devices`: the number of GPUs that took part (0 on the CPU);
#'     `devices`: their numbers, as in [knn_backends()].
#'
#'   Pairs and points:
#'   * `pairs_pruned`: pairs that were excluded before the filter (see *Pruned
#'     pairs*);
#'   * `pairs_filtered`: pairs that the filter examined;
#'   * `pairs_exact`: distances that were computed in double precision. A pair
#'     counts again if a row is searched again. On GPUs it counts twice if it is
#'     a candidate for both of its points;
#'   * `rows_recomputed`: points that were searched again, because they had more
#'     candidates than their list could hold. On CPUs these are points with
#'     fewer than k neighbours within a first limit, which a sample of the
#'     points gave;
#'   * `rows_widened`: those of them for which a wider filter was sufficient;
#'   * `rows_short`: with `na = "pairwise"`, points with fewer than k
#'     neighbours.
#'
#'   Filter, time and memory:
#'   * `filtered`: whether there was a filter. On a GPU there may be none for
#'     large `k` and long rows: see [knn_plan()];
#'   * `filter_form`: the name of the filter's number form, and `filter_bits`:
#'     the bits of a number (1, 8, 16 or 32; 0 without a filter). Data and
#'     hardware decide between `r filter_form_help()`. Codes are small whole
#'     numbers, and `_centred` means rows relative to a centre;
#'   * `streamed`: whether points were read more than once, because they did not
#'     fit in the GPU's memory;
#'   * `seconds`: a named vector. `prepare` is centring, ranking and scaling;
#'     `search` is the filter, the exact step and the selection; `emit` makes
#'     the answer's matrices or edges. `device`, a part of `search`, is the time
#'     on GPUs from prepared points to merged lists. `call` is the whole call of
#'     the core;
#'   * `bytes_device`: the maximum memory in use on any one GPU.
#'
#' @section Pruned pairs:
#' Sums or lengths of points, or boxes around groups of near points, exclude
#' pairs. They are used if a sample says that this saves time.
#'
#' Sums or lengths prune most pairs of intensities under Manhattan, Proportional
#' and Euclidean distances. Boxes prune most pairs of cells in principal
#' components. CPUs use both. There, boxes serve Euclidean, Manhattan and
#' Chebyshev distances, cosine and correlations. They prune pairs in graphs,
#' also by `block`, in queries, spanning trees ([mst_knn()]) and histograms
#' ([pair_histogram()]). Only lists in each of more than 16 blocks are without.
#'
#' GPUs use boxes for graphs under Euclidean distance. They need at least
#' 262,144 points of at most 128 features, which fit the GPU, and `k` of at most
#' 64.
#' @seealso [knn_plan()] for the plan of a search in advance.
#' @export
#' @examples
#' x <- matrix(rnorm(200 * 12), nrow = 200)
#' nn <- knn_search(x, k = 3, backend = "cpu")
#' knn_stats()
knn_stats <- function() {
  if (!is.null(session$last_search)) {
    do.call(new_stats, session$last_search)
  }
}

# Holds what is kept from one call to the next.
session <- new.env(parent = emptyenv())

# knn_stats() makes the statistics, which takes longer than to search for a
# query.
remember_search <- function(values, queries, request, stats, seconds) {
  session$num_searches <- sum(session$num_searches, 1)
  session$last_search <- list(
    size = dim(values), num_queries = num_queries(queries, request),
    request = request, stats = stats, seconds = seconds
  )
}

new_stats <- function(size, num_queries, request, stats, seconds) {
  devices <- request$devices
  if (length(devices) == 0) {
    devices <- seq_len(stats$num_devices)
  }
  structure(
    c(facts_of_request(request), list(
      k = request$k %||% NA_integer_,
      num_points = size[[1]],
      num_features = size[[2]],
      num_queries = num_queries,
      num_devices = stats$num_devices,
      devices = devices[seq_len(stats$num_devices)],
      pairs_filtered = stats$pairs_filtered,
      pairs_pruned = stats$pairs_pruned,
      pairs_exact = stats$pairs_exact,
      rows_recomputed = stats$rows_recomputed,
      rows_widened = stats$rows_widened,
      rows_short = stats$rows_short,
      filtered = stats$filtered,
      filter_form = form_name(stats$filter_form),
      filter_bits = stats$filter_bits,
      streamed = stats$streamed,
      seconds = c(
        prepare = stats$seconds_prepare, search = stats$seconds_search,
        emit = stats$seconds_emit, device = stats$seconds_device,
        call = seconds
      ),
      bytes_device = stats$bytes_device
    )),
    class = "fsknn_stats"
  )
}

#' @method format fsknn_stats
#' @export
format.fsknn_stats <- function(x, ...) {
  seconds <- function(name) {
    sprintf("%.4f s", x$seconds[[name]])
  }
  on_gpu <- x$backend == "cuda"
  lines <- c(
    "Backend" = x$backend,
    "CUDA devices" = if (on_gpu) paste(x$devices, collapse = ", "),
    "Metric" = describe_metric(
      x$metric, x$sign, x$weighted, x$num_covariates
    ),
    "Neighbours (k)" = if (is.na(x$k)) {
      "all within a distance"
    } else {
      format_count(x$k)
    },
    "Points (n)" = format_count(x$num_points),
    "Features (d)" = format_count(x$num_features),
    "Query points" = if (x$num_queries > 0) format_count(x$num_queries),
    "Filter" = describe_filter(x$filter_bits, x$filter_form),
    "Points read" = if (on_gpu && x$streamed) "piece by piece",
    "Pairs filtered" = format_count(x$pairs_filtered),
    "Pairs pruned" = if (x$pairs_pruned > 0) format_count(x$pairs_pruned),
    "Pairs in double" = format_count(x$pairs_exact),
    "Rows recomputed" = paste0(
      format_count(x$rows_recomputed),
      if (x$rows_widened > 0) {
        paste0(" (", format_count(x$rows_widened), " by a wider filter)")
      }
    ),
    "Rows short of k" = if (x$rows_short > 0) format_count(x$rows_short),
    "Time, prepare" = seconds("prepare"),
    "Time, search" = seconds("search"),
    "Time, on devices" = if (on_gpu) seconds("device"),
    "Time, emit" = seconds("emit"),
    "Time, whole call" = seconds("call"),
    "Memory, each GPU" = if (on_gpu) format_bytes(x$bytes_device)
  )
  paste0(format(paste0(names(lines), ":")), " ", lines)
}

#' @export
print.fsknn_stats <- function(x, ...) {
  cat("Last kNN search", format(x), sep = "\n")
  invisible(x)
}
