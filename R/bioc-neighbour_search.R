# Points and searches for calls by BiocNeighbors: see R/bioc-neighbour_tasks.R.

# --- the points --------------------------------------------------------------

# `values` has points in rows, `names` are theirs or NULL, and `param` is the
# FsknnParam.
reference_of <- function(a) {
  index <- if (methods::is(a$BNINDEX, "FsknnIndex")) a$BNINDEX else a$X
  if (!methods::is(index, "FsknnIndex")) {
    if (isTRUE(a$raw.index)) {
      abort_argument(
        "{.arg raw.index} is not valid without a {.arg BNINDEX}.",
        a$.frame
      )
    }
    return(list(values = a$X, names = rownames(a$X), param = a$BNPARAM))
  }
  # BiocNeighbors 1.16 keeps points in columns.
  transposed <- "distance" %in% methods::slotNames(index)
  made <- made_index(index)
  list(
    values = made$values %||% if (transposed) t(index@data) else index@data,
    names = if (transposed) index@NAMES else index@names, param = index@param,
    given = index@data, kept = index@kept, made = made$index
  )
}

# Returns what searched_points() kept of these data, or NULL.
made_index <- function(index) {
  made <- index@kept$made
  made <- if (!is.null(made)) rlang::wref_value(made)
  if (identical(made$given, index@data)) made
}

# Returns what knn_search() takes as `x`. The first search by an index makes a
# knn_index() of its points. A weak reference keeps it, which is not part of a
# saved index, and which ends with the environment.
searched_points <- function(a, reference, metric, options) {
  if (!is.null(reference$made)) {
    return(reference$made)
  }
  x <- searched_values(reference$values, metric, a)
  kept <- reference$kept
  if (is.null(kept)) {
    return(x)
  }
  index <- new_index(
    x, check_options(options, "knn_index", call = a$.frame), options,
    call = a$.frame
  )
  kept$made <- rlang::new_weakref(
    kept,
    list(index = index, given = reference$given, values = reference$values)
  )
  index
}

# Returns the rows of the query, transposed if necessary, that `subset` selects.
query_of <- function(a, reference) {
  check_number_type(a$query, "query", a$.frame)
  query <- if (isTRUE(a$transposed)) t(a$query) else a$query
  at <- match_order(
    colnames(query), colnames(reference$values),
    words_of_features(if (isTRUE(a$transposed)) "row" else "column", "query"),
    a$.frame, extra = TRUE
  )
  if (!is.null(at)) {
    query <- query[, at, drop = FALSE]
  }
  if (NCOL(query) != ncol(reference$values)) {
    abort_argument(
      c(
        "Points and queries must have the same dimensionality.",
        x = "A mismatch: {.arg X} has {ncol(reference$values)} dimensions,
             {.arg query} {NCOL(query)}."
      ),
      a$.frame
    )
  }
  rows <- subset_rows(
    a$subset, nrow(query), rownames(query), a$.frame, "out of bounds"
  )
  if (is.null(rows)) query else query[rows, , drop = FALSE]
}

# Returns the rows of a subset of the points, or NULL. From BiocNeighbors 2.0
# on, numbers start at 1. Earlier versions ignored 0, and a negative number
# excluded a point, as in R.
point_rows <- function(a, reference) {
  numbers <- is.numeric(a$subset) && !isTRUE(a$.old)
  if (numbers && any(as.integer(a$subset) < 1, na.rm = TRUE)) {
    abort_argument("Indices of {.arg subset} are out-of-range.", a$.frame)
  }
  subset_rows(a$subset, nrow(reference$values), reference$names, a$.frame)
}

# Selects rows as R selects elements of a vector, or returns NULL.
subset_rows <- function(subset, num_points, names, call,
                        words = "out-of-range") {
  if (is.null(subset)) {
    return(NULL)
  }
  rows <- seq_len(num_points)
  names(rows) <- names
  rows <- unname(rows[subset])
  if (anyNA(rows)) {
    abort_argument("Indices of {.arg subset} are {words}.", call)
  }
  rows
}

# Returns the values for knn_search(). BiocNeighbors' "Cosine" needs rows of
# length 1. Without features, there is one in which all points are equal.
searched_values <- function(x, metric, a) {
  check_intact(x, "x", a$.frame)
  if (length(dim(x)) == 2 && ncol(x) == 0 && metric$metric %in% plain_metrics) {
    return(matrix(0, nrow(x), 1))
  }
  if (!metric$unit) {
    return(x)
  }
  unit_rows(in_memory_matrix(x), a)
}

# In BiocNeighbors 2.0 and later, a row of zeros stays unchanged, at distance 1
# from all others. Before, it is an error.
unit_rows <- function(x, a) {
  length <- sqrt(rowSums(x^2))
  # The squares of these rows leave the range of a double.
  for (row in which(length < 1e-140 | length == Inf)) {
    largest <- max(abs(x[row, ]))
    if (largest > 0 && largest < Inf) {
      x[row, ] <- x[row, ] / largest
      length[[row]] <- sqrt(sum(x[row, ]^2))
    }
  }
  zero <- which(length == 0)
  if (length(zero) > 0 && isTRUE(a$.old)) {
    where <- first_few(utils::head(zero, 3), length(zero))
    abort_argument(
      c(
        "No row may be all zeros under distance \"Cosine\".",
        x = "It is so in row {where}."
      ),
      a$.frame
    )
  }
  length[zero] <- 1
  x / length
}

plain_metrics <- c("euclidean", "manhattan", "chebyshev")

in_memory_matrix <- function(x) {
  x <- in_memory(as_points(x))$values
  if (is.matrix(x)) x else as.matrix(x)
}

check_number_type <- function(x, arg, call) {
  if (is.matrix(x) && !is_number_like(x)) {
    given <- describe_type(x)
    abort_argument(
      "{.arg {arg}} must hold numbers, and is of an unknown type: {given}.",
      call
    )
  }
}

# --- the searches ------------------------------------------------------------

# Callers search for these words in a message.
in_their_words <- function(call, search) {
  tryCatch(search, fsknn_finite_error = function(err) {
    cli_abort(
      "There must be no non-finite values.", parent = err, call = call,
      class = c("fsknn_argument_error", "fsknn_error")
    )
  })
}

search_options <- function(a, param, metric) {
  options <- param@options
  if (is.null(options$num_threads)) {
    options$num_threads <- threads_of(a)
  }
  c(list(metric = metric$metric), options)
}

# Returns NULL for the default of knn_search().
threads_of <- function(a) {
  workers <- if (!is.null(a$BPPARAM)) {
    BiocParallel::bpnworkers(a$BPPARAM)
  } else {
    a$num.threads
  }
  if (!is.null(workers)) as.integer(max(workers, 1))
}

# Returns index and distance (points x k) for the k nearest of every point, of
# those in `rows`, or of the queries. k is within bounds, and 0 gives no column.
nearest_of <- function(a, reference, k, rows = NULL, query = NULL) {
  num_points <- nrow(reference$values)
  num_asked <- if (is.null(query)) length(rows %||% seq_len(num_points)) else
    nrow(query)
  if (k < 1 || num_asked == 0) {
    return(list(
      index = matrix(0L, num_asked, k), distance = matrix(0, num_asked, k)
    ))
  }
  metric <- metric_of_distance(reference$param@distance)
  options <- search_options(a, reference$param, metric)
  x <- in_their_words(
    a$.frame, searched_points(a, reference, metric, options)
  )
  found <- in_their_words(a$.frame, if (is.null(query)) {
    do.call("knn_search", c(list(quote(x), k = k, subset = rows), options))
  } else {
    query <- searched_values(query, metric, a)
    do.call("knn_query", c(list(quote(x), quote(query), k = k), options))
  })
  # The neighbour that only serves to detect ties may be missing.
  needed <- seq_len(k - isTRUE(a$.spare))
  check_all_found(found$index[, needed, drop = FALSE], a$.frame)
  lapply(found[c("index", "distance")], unname)
}

# Returns lists of all neighbours within a distance of each point (without
# itself), or of each query.
within_of <- function(a, reference, threshold, rows = NULL, query = NULL) {
  num_points <- nrow(reference$values)
  num_asked <- if (is.null(query)) length(rows %||% seq_len(num_points)) else
    nrow(query)
  threshold <- check_thresholds(threshold, num_asked, a)
  alone <- if (is.null(query)) num_points < 2 else num_points < 1
  if (alone || num_asked == 0) {
    return(list(
      index = rep(list(integer()), num_asked),
      distance = rep(list(numeric()), num_asked)
    ))
  }
  metric <- metric_of_distance(reference$param@distance)
  options <- search_options(a, reference$param, metric)
  x <- in_their_words(
    a$.frame, searched_points(a, reference, metric, options)
  )
  found <- in_their_words(a$.frame, if (is.null(query)) {
    do.call(
      "within_search",
      c(list(quote(x), distance = threshold, subset = rows), options)
    )
  } else {
    query <- searched_values(query, metric, a)
    do.call(
      "within_query",
      c(list(quote(x), quote(query), distance = threshold), options)
    )
  })
  lapply(found[c("index", "distance")], unname)
}

check_thresholds <- function(threshold, num_asked, a) {
  if (!length(threshold) %in% c(1, num_asked)) {
    abort_argument(
      c(
        "{.arg threshold} should have length equal to the number of points
         asked for, or be one number.",
        x = "That length should be equal to {num_asked}, not
             {length(threshold)}."
      ),
      a$.frame
    )
  }
  positive <- is.numeric(threshold) && !anyNA(threshold) && all(threshold > 0)
  if (isTRUE(a$.old) && !positive) {
    abort_argument("{.arg threshold} must be positive.", a$.frame)
  }
  threshold
}

# Callers read every index, so none may be missing.
check_all_found <- function(index, call) {
  lacking <- sum(is.na(index[, ncol(index)]))
  if (lacking > 0) {
    abort_argument(
      c(
        "Every point must have {ncol(index)} neighbours.",
        x = "{format_count(lacking)} {cli::qty(lacking)}point{?s} {?has/have}
             fewer.",
        i = "Leave such points out, or use {.fn knn_search}."
      ),
      call
    )
  }
}

# Returns k as a whole number for each point, at most `most`.
cap_k <- function(k, num_asked, most, minus_one, call) {
  varies <- inherits(k, "AsIs") || length(k) != 1
  k <- as.integer(k)
  if (varies && length(k) != num_asked) {
    abort_argument(
      "The length of {.arg k} must be equal to the number of points asked for,
       {num_asked}, not {length(k)}.",
      call
    )
  }
  if (anyNA(k) || any(k < 0)) {
    abort_argument("{.arg k} must be positive.", call)
  }
  most <- max(most, 0L)
  if (any(k > most)) {
    warning(
      "'k' capped at the number of observations",
      if (minus_one) " minus 1", call. = FALSE
    )
    k <- pmin(k, most)
  }
  list(each = k, most = as.integer(max(k, 0L)), varies = varies)
}
