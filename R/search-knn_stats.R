#' What the last search was like
#'
#' Facts about the last search of this R session that completed: where it ran,
#' how many pairs the filter left to the exact step, and where the time went.
#' They are separate from the answer, which is the same to the last bit in any
#' case.
#'
#' @returns `NULL` if there was no search yet, otherwise a list of class
#'   `fsknn_stats`, with a print method:
#'   * `backend`, `metric`, `sign`, `weighted` (whether samples had weights),
#'     `num_covariates` (what points were adjusted for),
#'     `k` (`NA` for [within_search()] and [threshold_graph()]), `num_points`,
#'     `num_features` (without those of weight 0),
#'     `num_queries` (0 for a graph);
#'   * `num_devices`: the number of GPUs that took part (0: the CPU), and
#'     `devices`: their rows in [knn_backends()];
#'   * `pairs_pruned`: how many pairs of points nothing looked at, because their
#'     sums or lengths tell them apart (on CPUs, where a sample says that this
#'     pays: most pairs of intensities under Manhattan, proportional and
#'     Euclidean distance), `pairs_filtered`, pairs that the filter looked at,
#'     and `pairs_exact`, those whose distance was made in double precision (one
#'     that is made again, with a row that is done again, counts again, and on a
#'     GPU one that both its points' lists have for each of them);
#'   * `rows_redone`: points with more candidates than their list had room for,
#'     which were done again (on the CPU those with fewer than k neighbours
#'     within a first limit that a sample of the points gave), and
#'     `rows_widened`: those of them for which a wider filter was enough;
#'   * `rows_short`: with `na = "pairwise"`, points with fewer than k
#'     neighbours;
#'   * `filtered`: whether there was a filter (on a GPU there may be none for
#'     large `k` and long rows: see [knn_plan()]). `filter_form` is the name of
#'     its number form, and `filter_bits` the bits of a number (1, 8, 16 or 32;
#'     0 without a filter). Data and hardware decide between
#'     `r filter_form_help()`. Codes are small whole numbers, and `_centred`
#'     means rows relative to a centre. `streamed`: whether points were read
#'     more than once, because they did not fit in the GPU's memory;
#'   * `seconds`: named numbers: `prepare` (centring, ranks, scaling), `search`
#'     (filter, exact step and selection), `emit` (the answer's matrices or
#'     edges), `device` (on GPUs, from prepared points to merged lists; part of
#'     `search`), and `call`, the whole call of the core;
#'   * `bytes_device`: the maximum memory in use on any one GPU.
#' @seealso [knn_plan()] for what a search would be like.
#' @export
#' @examples
#' x <- matrix(rnorm(200 * 12), nrow = 200)
#' nn <- knn_search(x, k = 3, backend = "cpu")
#' knn_stats()
knn_stats <- function() {
  get0("last_search", envir = session, inherits = FALSE)
}

# Holds what is kept from one call to the next.
session <- new.env(parent = emptyenv())

remember_search <- function(values, queries, request, stats, seconds) {
  assign(
    "last_search", new_stats(values, queries, request, stats, seconds),
    envir = session
  )
}

new_stats <- function(values, queries, request, stats, seconds) {
  devices <- request$devices
  if (length(devices) == 0) {
    devices <- seq_len(stats$num_devices)
  }
  structure(
    c(facts_of_request(request), list(
      k = request$k %||% NA_integer_,
      num_points = nrow(values),
      num_features = ncol(values),
      num_queries = num_queries(queries, request),
      num_devices = stats$num_devices,
      devices = devices[seq_len(stats$num_devices)],
      pairs_filtered = stats$pairs_filtered,
      pairs_pruned = stats$pairs_pruned,
      pairs_exact = stats$pairs_exact,
      rows_redone = stats$rows_redone,
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
    "Pairs told apart" = if (x$pairs_pruned > 0) format_count(x$pairs_pruned),
    "Pairs in double" = format_count(x$pairs_exact),
    "Rows done again" = paste0(
      format_count(x$rows_redone),
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
