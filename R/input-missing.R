# Missing values: the arguments `na` and `min_pairs`, and rows with too few
# neighbours.

na_choices <- c("error", "pairwise", "mean")

# Two values always lie on a line, so r would be 1 or -1. A distance over one or
# two samples is often small by chance.
default_min_pairs <- 3L

cure_of_missing <- "Leave out rows or columns with missing values, or fill them
                    in."

# Returns list(na, min_pairs). With NULL, min_pairs has its default, which
# depends on the data (see fit_na()).
check_na <- function(na, min_pairs, metric, call = caller_env()) {
  na <- check_choice(na, na_choices, "na", call = call)
  if (!is.null(min_pairs)) {
    correlated <- has_correlation(metric)
    min_pairs <- check_whole_number(
      min_pairs, "min_pairs", min = if (correlated) 2 else 1,
      max = .Machine$integer.max,
      hint = if (correlated) {
        "Over fewer than two common samples there is no correlation."
      },
      call = call
    )
  }
  if (na != "pairwise" && !is.null(min_pairs)) {
    abort_argument(
      c(
        "{.arg min_pairs} can't be given with {.code na = \"{na}\"}.",
        i = "It is for {.code na = \"pairwise\"}."
      ),
      call
    )
  }
  if (na == "pairwise" && !metric$pairwise) {
    able <- metrics_with("pairwise")
    abort_argument(
      c(
        "{.code na = \"pairwise\"} can't be used with metric
         {.val {metric$name}}.",
        i = "It is for {able}.",
        i = if (metric$levels > 0) {
          cure_of_missing
        } else {
          "With {.val {metric$name}} there is {.code na = \"mean\"}."
        }
      ),
      call
    )
  }
  if (na == "mean" && metric$levels > 0) {
    abort_argument(
      c(
        "{.code na = \"mean\"} can't be used with metric {.val {metric$name}}.",
        x = if (metric$levels == 1) {
          "A mean is neither 0 nor 1."
        } else {
          "A mean is no number of alleles."
        },
        i = cure_of_missing
      ),
      call
    )
  }
  list(na = na, min_pairs = min_pairs)
}

check_na_and_weights <- function(options, call = caller_env()) {
  if (identical(options$na, "pairwise") && !is.null(options$weights)) {
    abort_argument(
      "{.arg weights} can't be used with {.code na = \"pairwise\"}.", call
    )
  }
}

# Adapts the options for missing values to these points.
fit_na <- function(options, points, call = caller_env()) {
  if (!identical(options$na, "pairwise")) {
    return(options)
  }
  options$min_pairs <- options$min_pairs %||%
    min(default_min_pairs, ncol(points$values))
  check_common_samples(points, options$min_pairs, call)
  options
}

# Pairs over common samples need the original values, but a file holds prepared
# rows.
check_pairwise_in_memory <- function(points, queries, missing,
                                     call = caller_env()) {
  in_file <- c(
    x = is_row_file(points$values), query = is_row_file(queries$values)
  )
  if (!any(in_file)) {
    return(invisible())
  }
  arg <- names(in_file)[in_file][[1]]
  values <- if (arg == "x") points$values else queries$values
  needed <- format_bytes(dense_bytes(values))
  abort_argument(
    c(
      "{.arg na} can't be \"pairwise\" where values are missing and
       {.arg {arg}} does not fit in memory.",
      x = "{format_count(missing)} {cli::qty(missing)}value{?s} {?is/are}
           missing, and {.arg {arg}} takes {needed} as a matrix.",
      i = "Raise {.arg max_memory}, or use {.code na = \"mean\"}."
    ),
    call
  )
}

# Does the work of check_values() if missing values are allowed, in one pass
# over the values. `missing` is the number of missing values.
check_known_values <- function(points, options, arg, call = caller_env()) {
  if (is_metafeatures(points$values)) {
    abort_argument(
      c(
        "{.arg na} must be \"error\" for metafeatures.",
        i = "Those with a value that is not finite are left out; fill missing
             values in before {.fn metafeatures}."
      ),
      call
    )
  }
  scan <- points$scan %||% in_core(
    cpp_scan_missing(
      points$values, options$num_threads, scan_request(options),
      quick = identical(options$na, "pairwise"),
      levels = options$metric$levels
    ),
    call
  )
  check_finite(points, scan, arg, call = call)
  check_allowed(points, scan, options$metric, arg, call = call)
  check_non_negative(points, scan, options$metric, arg, call = call)
  check_empty_rows(points, scan$empty, options$constant, arg, call = call)
  skip <- check_defined_rows(
    points, scan, options$metric, options$constant, arg, call = call
  )
  list(
    skip = sort(c(scan$empty, skip)), left_out = NULL,
    largest = scan$largest, largest_row = scan$largest_row,
    missing = scan$missing
  )
}

check_common_samples <- function(points, min_pairs, call) {
  num_features <- ncol(points$values)
  if (min_pairs <= num_features) {
    return(invisible())
  }
  abort_argument(
    c(
      "{.arg min_pairs} must not be above the number of {feature_side(points)}s
       (features), {num_features}, but is {min_pairs}.",
      i = "No two {point_side(points)}s could have so many samples in common."
    ),
    call
  )
}

# Returns `na` for the core. If no value is missing, every pair is over all
# samples. The search is then identical, to the last bit, to one without `na`.
na_of_search <- function(options, points, checked, queries = NULL,
                         query_checked = NULL, call = caller_env()) {
  missing <- sum(checked$missing, query_checked$missing)
  if (missing == 0) {
    return("error")
  }
  if (identical(options$na, "pairwise")) {
    check_pairwise_in_memory(points, queries, missing, call = call)
  }
  options$na
}

# --- rows with too few neighbours --------------------------------------------

# Rows may have fewer than k neighbours, and then fewer edges. The core returns
# matrices with NA for missing neighbours.
find_short_lists <- function(search, call) {
  if (search$request$backend == "cuda" &&
        is_allele_table(search$request$metric)) {
    search <- on_cpu_alone(
      search, pairwise_on_cpu("Tables of alleles are counted"),
      "fsknn_tables_pairwise", call
    )
  }
  as_edges <- search$request$as_edges
  search$as_edges <- as_edges
  search$request$as_edges <- FALSE
  finish_short_lists(find_in_parts_or_whole(search, call), search, as_edges)
}

# Reports the number of such rows, and makes edges of the matrices.
finish_short_lists <- function(found, search, as_edges) {
  tell_short_rows(count_short_rows(found, search), search, as_edges)
  if (!as_edges) {
    return(found)
  }
  request <- search$request
  edges_of_matrices(found, request$subset, request$k, request$num_threads)
}

# Isolated points are not counted: they have no neighbours for another reason.
count_short_rows <- function(found, search) {
  request <- search$request
  skip <- if (is.null(search$queries)) request$skip else request$query_skip
  num_rows <- nrow(found$index)
  rows <- request$subset %||% seq_len(num_rows)
  if (!is.null(request$blocks)) {
    short <- is.na(found$index)
    if (!is.null(search$each_k)) {
      short <- short & asked_places(search$each_k, ncol(short))
    }
    return(sum(rowSums(short) > 0 & !rows %in% skip))
  }
  k <- rep_len(search$each_k %||% request$k, num_rows)
  asked <- which(k > 0 & !rows %in% skip)
  sum(is.na(found$index[cbind(asked, k[asked])]))
}

tell_short_rows <- function(count, search, as_edges) {
  if (count == 0) {
    return(invisible())
  }
  wanted <- if (is.null(search$each_k)) paste(" =", search$request$k) else ""
  what <- if (as_edges) {
    "{?It has/They have} fewer edges."
  } else if (isTRUE(search$as_table)) {
    "There are fewer rows."
  } else if (!is.null(search$each_k)) {
    "{?Its/Their} neighbours are shorter vectors."
  } else {
    "The places that are left hold {.code NA}."
  }
  min_pairs <- search$request$min_pairs
  cli::cli_inform(
    c(
      "{format_count(count)} {cli::qty(count)}point{?s} {?has/have} fewer than
       {.arg k}{wanted} neighbours.",
      x = paste0(
        "The other pairs have fewer than {.arg min_pairs} = {min_pairs}
         samples in common",
        if (has_correlation(search$options$metric)) {
          ", or no variation on them"
        },
        "."
      ),
      i = paste0("{cli::qty(count)}", what)
    ),
    class = "fsknn_short_rows",
    count = count
  )
}

# Returns edges in the order of the core: by point, then by rank. `list_size` is
# the length of each list of a point. NULL means that it has one list.
edges_of_matrices <- function(found, from = NULL, list_size = NULL,
                              num_threads = 1L) {
  edges <- in_core(
    cpp_edges_of_matrices(
      found$index, found$distance, found$correlation, from,
      list_size %||% ncol(found$index), num_threads
    )
  )
  c(edges, list(stats = found$stats))
}
