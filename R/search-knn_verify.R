#' Check a result against the definition
#'
#' Computes a sample of rows of a result again and compares them. All distances
#' are computed in R's own double arithmetic ([stats::cor()], sums, medians,
#' ranks), not by the package's C++ or CUDA code. So one line checks an answer
#' of any backend.
#'
#' A row is a point, or a query, with its neighbours. It agrees if
#' * each distance equals the recomputed one;
#' * no neighbour is missing;
#' * no neighbour is wrong: the point itself, an isolated point, a point of
#'   another block, or a point that is too far;
#' * the nearest neighbour comes first, and the lower index first at equal
#'   distances. (Searches within a distance are not checked for this.)
#'
#' The result remembers the options of its search, also after [saveRDS()]. These
#' are metric, sign, `k`, distance or similarity, `subset`, `block`, `weights`,
#' `adjust`, `na`, `points`, `assay` and `dimred`. Only indices and distances
#' are checked, not columns such as `correlation` or p-values.
#'
#' @section Tolerance and ties:
#' Two distances are equal if they differ by at most `tolerance` times the
#' larger one. Some distances are 1 minus a similarity (correlations, cosine,
#' proportional, Jaccard, Sorensen). These may differ by `tolerance` itself.
#' Under `"inner_product"` it is `tolerance` times the largest product of the
#' row.
#'
#' Points at equal distances are ties, and each of them may be the last
#' neighbour. With `adjust`, a row that the covariates explain almost completely
#' has few exact digits left, and may disagree. For shards in single precision
#' ([knn_output()]), `tolerance` is at least 1.2e-7 (2^-23).
#'
#' @section Time:
#' R code compares each row with all points. For 24,158 points of 295 features,
#' 100 rows take some seconds under a correlation, and longer under other
#' metrics. `x` is read into memory.
#'
#' @param result The complete value of [knn_search()], [knn_query()],
#'   [within_search()], [within_query()], [knn_graph()], [threshold_graph()] or
#'   [nearest_to()] (with `point`). It may also be neighbours from another
#'   package, in the form that [as_knn()] returns; they need a `metric`.
#' @param x The points that were searched, as they were given to the search.
#' @param n How many rows to check (default: 100). They are evenly spread over
#'   all rows. The first one depends on the clock, so that the next call checks
#'   others. R's random numbers are not used.
#' @param ... Must be empty.
#' @param query For neighbours of queries: the queries, as they were given to
#'   the search.
#' @param metric,sign For a result that does not remember its search: as for
#'   [knn_search()].
#' @param tolerance See "Tolerance and ties".
#'
#' @returns A list of class `fsknn_verified`, which prints as a summary:
#'   * `rows`: the numbers of the checked rows;
#'   * `agree`: `TRUE` or `FALSE` for each of them;
#'   * `differences`: a data frame with a line for each difference: `row`,
#'     `neighbour` (its index), `problem`, `distance` (in the result) and
#'     `recomputed`;
#'   * `largest`: the largest difference of two distances, relative as in
#'     "Tolerance and ties";
#'   * `num_rows` (of the result), `metric`, `sign`, `tolerance`.
#' @section Errors:
#' An error of class `fsknn_argument_error` means that
#' * the result can't be recomputed: trees, triples, mutual or undirected edges,
#'   resampled edges, or the neighbours of an outcome;
#' * `x` has another size than the points that were searched;
#' * `query` is missing, or is given for a result without queries.
#' @seealso [knn_recall()] compares an approximate search with an exact one.
#' @export
#' @examples
#' x <- matrix(rnorm(200 * 12), nrow = 200)
#' nn <- knn_search(x, k = 5)
#' knn_verify(nn, x)
#'
#' # an index that is wrong
#' nn$index[7, 5] <- nn$index[7, 5] %% 200L + 1L
#' knn_verify(nn, x, n = 200)
#'
#' knn_verify(threshold_graph(x, 0.7), x)
knn_verify <- function(result, x, n = 100, ..., query = NULL, metric = NULL,
                       sign = NULL, tolerance = 1e-9) {
  check_no_more(...)
  check_supplied(result)
  check_supplied(x)
  n <- check_whole_number(n, "n", 1, .Machine$integer.max)
  check_share(tolerance, "tolerance")
  facts <- facts_to_verify(result, metric, sign)
  facts$in_single <- identical(result$facts$precision, "single")
  if (facts$in_single) {
    tolerance <- max(tolerance, 2^-23)
  }
  asked <- facts$request
  data <- read_verified(result, x, query, facts)
  of <- asked$query_self %||% asked$subset %||% seq_len(nrow(data$rows))
  rows <- spread_rows(length(of), n)
  check_all_rows(result, length(of))
  found <- rows_of_result(result, rows, of, data$names, asked)
  # Distances of some rows at a time take up to 256 MB.
  groups <- split(rows, (seq_along(rows) - 1) %/% ceiling(
    2^25 / nrow(data$points)
  ))
  checked <- lapply(groups, function(rows) {
    distance <- distance_to_all(data, of[rows], facts)
    lapply(seq_along(rows), function(at) {
      row <- rows[[at]]
      check_row(
        row, found(row), distance[at, ],
        candidates_of(of[[row]], facts$request, data), facts, tolerance
      )
    })
  })
  new_verified(unlist(checked, recursive = FALSE), rows, of, facts, tolerance)
}

# Returns the record of a result, or one for neighbours without a record.
facts_to_verify <- function(result, metric, sign, call = caller_env()) {
  facts <- searched_of(result)
  is_list <- inherits(result, c("fsknn_neighbours", "fsknn_shards"))
  is_graph <- inherits(result, "fsknn_edges") &&
    !inherits(result, "fsknn_stability") &&
    (attr(result, "kind", exact = TRUE) %||% "Threshold graph") ==
      "Threshold graph"
  has_record <- !is.null(facts)
  why <- if (!is_list && !is_graph && !inherits(result, "fsknn_nearest")) {
    "It is not the answer of one search for neighbours."
  } else if (!is.null(attr(result, "stage", exact = TRUE))) {
    "It is a stage of a search: combine all stages by {.fn rbind}."
  } else if (isTRUE(facts$outcomes)) {
    "Neighbours of an {.arg outcome} are not recomputed."
  } else if (has_record && !is.null(metric %||% sign)) {
    "It remembers its metric: leave out {.arg metric} and {.arg sign}."
  } else if (!has_record && !is_list) {
    "It does not remember its search."
  } else if (!has_record && is.null(metric)) {
    "It does not remember its search: give {.arg metric}."
  }
  if (!is.null(why)) {
    given <- describe_type(result)
    is_other <- !any(startsWith(class(result), "fsknn_"))
    abort_argument(
      c(
        "{.arg result}, {given}, can't be computed again.",
        x = why,
        i = if (is_other) {
          "For neighbours of another package, give {.code as_knn(result)} and
           {.arg metric}."
        }
      ),
      call
    )
  }
  if (has_record) {
    return(facts)
  }
  metric <- check_metric(metric, call = call)
  list(
    metric = metric$name, sign = check_sign(sign %||% "signed", metric, call),
    each_k = if (is.list(result$index)) lengths(result$index),
    request = list(k = NCOL(result$index), na = "error")
  )
}

# Reads points and queries as the search did, into memory.
read_verified <- function(result, x, query, facts, call = caller_env()) {
  wants_query <- facts$num_queries > 0
  if (length(wants_query) == 1 && wants_query == is.null(query)) {
    abort_argument(
      if (wants_query) {
        "{.arg query} must be given: {.arg result} is of queries."
      } else {
        "{.arg query} can't be given: {.arg result} is of the points."
      },
      call
    )
  }
  check_same_container(x, query, facts$input, call)
  options <- list(
    input = facts$input %||% check_input(),
    metric = metric_facts(facts$metric)
  )
  search <- read_search(x, query, options, FALSE, call)
  plain <- function(points, arg) {
    values <- in_memory(points, arg, call)$values
    values <- if (is_metafeatures(values)) as.matrix(values) else values
    kept <- facts$samples
    if (is.null(kept)) values else values[, kept, drop = FALSE]
  }
  points <- plain(search$points, "x")
  queries <- if (!is.null(query)) plain(search$queries, "query")
  searched <- c(facts$num_points, facts$num_features)
  if (length(searched) == 2 && any(dim(points) != searched)) {
    sizes <- lapply(list(dim(points), searched), format_counts)
    abort_argument(
      c(
        "{.arg x} must have the points that {.arg result} is of.",
        x = "It has {sizes[[1]][[1]]} points of {sizes[[1]][[2]]} features, not
             {sizes[[2]][[1]]} of {sizes[[2]][[2]]}."
      ),
      call
    )
  }
  check_some_names(search$points, facts$some_names, call)
  names <- point_names(search$points)
  row_names <- if (is.null(queries)) names else point_names(search$queries)
  at <- order_of_result(result, row_names, !is.null(queries), facts, call)
  if (!is.null(at) && is.null(queries)) {
    points <- points[at, , drop = FALSE]
    names <- names[at]
  } else if (!is.null(at)) {
    queries <- queries[at, , drop = FALSE]
  }
  list(
    points = points, queries = queries, rows = queries %||% points,
    names = names
  )
}

check_same_container <- function(x, query, input, call) {
  taken_from <- unlist(input[c("assay", "dimred")])
  if (length(taken_from) == 0 || is_index(x) || is_container(x) ||
        is_container(query)) {
    return(invisible())
  }
  given <- describe_type(x)
  element <- describe_element(taken_from)
  abort_argument(
    c(
      "{.arg x} must be the container that was searched, not {given}.",
      x = "{.arg result} is of its {element}."
    ),
    call
  )
}

# The answer for queries has no names of points but those in its record.
check_some_names <- function(points, known, call) {
  if (is.null(known) || is.null(known_points(points))) {
    return(invisible())
  }
  names <- point_names(points, known$at)
  other <- which(is.na(names) | names != known$names)
  if (length(other) > 0) {
    abort_other_order("x", known$at, known$names, names, other, call)
  }
}

abort_other_order <- function(arg, at, known, names, other, call) {
  one <- other[[1]]
  side <- if (arg == "query") "Query" else "Point"
  abort_argument(
    c(
      "{.arg {arg}} must have its points in the order of the search.",
      x = "{side} {at[[one]]} was {.val {known[[one]]}}, and is
           {.val {names[[one]]}}."
    ),
    call
  )
}

# Returns the order of points (or queries) with these names that is the order of
# the result, or NULL if they are in this order or one of both has no names.
order_of_result <- function(result, names, are_queries, facts, call) {
  names <- real_names(names)
  asked <- facts$request
  at <- seq_along(names)
  known <- if (inherits(result, "fsknn_nearest")) {
    at <- result$index
    result$name
  } else if (is.data.frame(result)) {
    at <- setdiff(at, attr(result, "left_out")$point)
    vertex_table(attr(result, "vertices"))$name
  } else {
    at <- asked$query_self %||% asked$subset %||% at
    names_of_rows(result$index)
  }
  if (is.null(names) || !is.character(known) || is.null(real_names(known)) ||
        length(known) != length(at) || identical(names[at], known)) {
    return(NULL)
  }
  arg <- if (are_queries) "query" else "x"
  one <- if (are_queries) "query" else "point"
  if (length(known) == length(names) && !anyDuplicated(at)) {
    return(match_order(names, known, words_of_result(arg, one), call))
  }
  other <- which(is.na(names[at]) | names[at] != known)
  abort_other_order(arg, at, known, names[at], other, call)
}

words_of_result <- function(arg, one) {
  list(
    must = "The points of {.arg {words$arg}} must have the names that
            {.arg result} has, each once.",
    arg = arg, one = one, lacks = "{?is/are} not there"
  )
}

check_all_rows <- function(result, num_rows, call = caller_env()) {
  rows <- if (is.list(result$index)) lengths(result)[["index"]]
  rows <- rows %||% nrow(result$index)
  if (!is.null(rows) && rows != num_rows) {
    sizes <- format_counts(c(num_rows, rows))
    abort_argument(
      "{.arg result} must have a row for each of {sizes[[1]]} points, not
       {sizes[[2]]}.",
      call
    )
  }
}

# Returns up to `n` of the rows, evenly spread from a start that the clock
# chooses.
spread_rows <- function(count, n) {
  if (n >= count) {
    return(seq_len(count))
  }
  start <- as.double(Sys.time()) %% 1
  floor((seq_len(n) - 1 + start) * count / n) + 1
}

# Returns a function that takes a row of the result and returns its neighbours.
rows_of_result <- function(result, rows, of, names, asked) {
  if (is.data.frame(result)) {
    return(rows_of_table(result, rows, of, names, asked))
  }
  as_lists <- is.list(result$index)
  part <- lapply(result[c("index", "distance")], function(part) {
    if (as_lists) part[rows] else as_plain(part[rows, , drop = FALSE])
  })
  function(row) {
    at <- match(row, rows)
    one <- lapply(part, function(part) {
      if (as_lists) part[[at]] else part[at, ]
    })
    lapply(one, function(values) unname(values)[!is.na(one$index)])
  }
}

# For edges and the table of nearest_to(). An undirected edge is in both rows.
rows_of_table <- function(result, rows, of, names, asked,
                          call = caller_env(2)) {
  check_complete(result, call)
  number <- function(ends) {
    if (is.numeric(ends)) ends else match(ends, names)
  }
  to <- result$index %||% number(result$to)
  from <- if (is.null(result$index)) {
    number(result$from)
  } else if (is.null(result$point)) {
    rep(of, length(to))
  } else {
    of[match(result$point, names[of] %||% of)]
  }
  if (anyNA(from) || anyNA(to)) {
    abort_argument("{.arg x} must have the names that {.arg result} has.", call)
  }
  if (is.null(asked$within)) {
    check_table_order(result, match(from, of), asked, call)
  }
  forth <- which(from %in% of[rows])
  back <- if (is_undirected(result)) which(to %in% of[rows])
  at <- c(forth, back)
  ends <- list(
    index = c(to[forth], from[back]), distance = result$distance[at]
  )
  places <- split(seq_along(at), factor(c(from[forth], to[back]), of[rows]))
  function(row) lapply(ends, `[`, places[[match(row, rows)]])
}

# The record of a search has the number of rows of its table.
check_complete <- function(result, call) {
  num_rows <- searched_of(result)$num_rows
  if (is.null(num_rows) || nrow(result) == num_rows) {
    return(invisible())
  }
  there <- format_count(nrow(result))
  rows <- if (inherits(result, "fsknn_edges")) "edge" else "row"
  abort_argument(
    c(
      "{.arg result} must be complete, as the search returned it.",
      x = "{there} of {tally(num_rows, rows)} {cli::qty(nrow(result))}{?is/are}
           there."
    ),
    call
  )
}

# Rows must be in order of point, then rank (which starts anew in each block).
check_table_order <- function(result, at, asked, call) {
  step <- diff(at)
  falls <- if (is.null(asked$blocks)) diff(result$rank %||% at) < 0 else FALSE
  if (any(step < 0 | step == 0 & falls, na.rm = TRUE)) {
    rows <- if (inherits(result, "fsknn_edges")) "edges" else "rows"
    abort_argument(
      c(
        "{.arg result} must be complete, as the search returned it.",
        x = "Its {rows} are in another order."
      ),
      call
    )
  }
}

distance_to_all <- function(data, of, facts) {
  rows <- data$rows[of, , drop = FALSE]
  size <- max(1, floor(2^22 / ncol(data$points)))
  parts <- lapply(row_ranges(nrow(data$points), size), function(points) {
    distance_as_asked(
      rows, data$points[points, , drop = FALSE], facts$metric, facts$sign,
      facts$request
    )
  })
  do.call(cbind, parts)
}

# Returns the lists of points that a point or query may have neighbours in.
candidates_of <- function(point, asked, data) {
  is_query <- !is.null(data$queries)
  if (point %in% (if (is_query) asked$query_skip else asked$skip)) {
    return(list(integer()))
  }
  all <- setdiff(
    seq_len(nrow(data$points)), c(asked$skip, if (!is_query) point)
  )
  blocks <- asked$blocks
  if (is.null(blocks)) {
    return(list(all))
  }
  if (blocks$lists != "each") {
    all <- all[blocks$of[all] != blocks$of[[point]]]
  }
  if (blocks$lists == "together") list(all) else split(all, blocks$of[all])
}

# Returns the differences of a row, and the largest one of its distances.
check_row <- function(row, found, distance, candidates, facts, tolerance) {
  scale <- scale_of(facts$metric, distance[unlist(candidates)])
  near <- function(of) tolerance * pmax(abs(of), scale) + 2^-1074
  own <- distance[found$index]
  own[!found$index %in% unlist(candidates)] <- NA
  off <- if (is.null(found$distance)) 0 * own else abs(found$distance - own)
  problem <- function(at, word, known = own[at]) {
    if (length(at) > 0) {
      given <- match(at, seq_along(found$index))
      data.frame(
        row = row, neighbour = found$index[at], problem = word,
        distance = (found$distance %||% own)[given], recomputed = known
      )
    }
  }
  limit <- asked_limit(row, facts)
  parts <- list(
    problem(which(is.na(own)), "no candidate"),
    problem(which(duplicated(found$index)), "twice"),
    problem(
      which(off > near(own) | is.na(off) & !is.na(own)), "other distance"
    ),
    if (!is.null(limit)) problem(which(own > limit + near(limit)), "too far")
  )
  for (which in seq_along(candidates)) {
    list <- candidates[[which]]
    list <- list[!is.na(distance[list])]
    at <- which(found$index %in% list)
    if (is.null(limit)) {
      each_k <- facts$each_k
      each_k <- if (is.matrix(each_k)) each_k[row, which] else each_k[row]
      wanted <- min(length(list), each_k %||% facts$request$k)
      parts <- c(parts, list(
        problem(at[seq_along(at) > wanted], "one too many"),
        problem(at[out_of_order(found, at, facts$in_single)], "out of order")
      ))
      last <- if (length(at) < wanted) Inf else max(own[at], -Inf)
    } else {
      wanted <- Inf
      last <- limit
    }
    missing <- setdiff(list, found$index)
    missing <- missing[
      distance[missing] < if (is.finite(last)) last - near(last) else last
    ]
    missing <- missing[order(distance[missing])]
    # One of the nearer points stands for all, unless the list is too short.
    missing <- utils::head(missing, max(1, min(wanted - length(at), 1e6)))
    if (length(missing) > 0) {
      parts <- c(parts, list(data.frame(
        row = row, neighbour = missing, problem = "missing",
        distance = NA_real_, recomputed = distance[missing]
      )))
    }
  }
  list(
    differences = do.call(rbind, parts),
    largest = max(0, off / pmax(abs(own), scale, 2^-1022), na.rm = TRUE)
  )
}

# Distances that are rounded to single precision may tie in any order.
out_of_order <- function(found, at, in_single) {
  step <- diff(found$distance[at])
  which(step < 0 | !in_single & step == 0 & diff(found$index[at]) < 0) + 1
}

# Returns the size of numbers whose rounding is that of a distance.
scale_of <- function(metric, distance) {
  switch(
    metric_facts(metric)$similarity,
    correlation = , complement = 1, none = max(0, abs(distance), na.rm = TRUE),
    0
  )
}

asked_limit <- function(row, facts) {
  limits <- facts$request$within$limits
  if (length(limits) > 1) limits[[row]] else limits
}

# --- the object --------------------------------------------------------------

new_verified <- function(checked, rows, of, facts, tolerance) {
  differences <- do.call(rbind, lapply(checked, `[[`, "differences"))
  if (is.null(differences)) {
    differences <- data.frame(
      row = integer(), neighbour = integer(), problem = character(),
      distance = double(), recomputed = double()
    )
  }
  structure(
    list(
      rows = rows, agree = !rows %in% differences$row,
      differences = differences,
      largest = max(0, vapply(checked, `[[`, 0, "largest")),
      num_rows = length(of), metric = facts$metric, sign = facts$sign,
      tolerance = tolerance
    ),
    class = "fsknn_verified"
  )
}

#' @method format fsknn_verified
#' @export
format.fsknn_verified <- function(x, ...) {
  count <- length(x$rows)
  c(
    paste0(
      format_count(sum(x$agree)), " of ", tally(count, "row"), " agree",
      if (count == 1 && x$agree) "s",
      " with the definition, ", describe_metric(x$metric, x$sign),
      if (count < x$num_rows) {
        paste0(" (a sample of ", format_count(x$num_rows), ")")
      }
    ),
    paste0(
      "Largest difference of a distance: ", format(x$largest, digits = 2),
      " (tolerance ", format(x$tolerance), ", relative)"
    )
  )
}

#' @export
print.fsknn_verified <- function(x, ..., n = 5) {
  cat(format(x), sep = "\n")
  if (nrow(x$differences) > 0) {
    cat("Differences:\n")
    print_differences(utils::head(x$differences, n), ...)
    more <- nrow(x$differences) - n
    if (more > 0) {
      cat("... and ", format_count(more), " more\n", sep = "")
    }
    is_rounded <- x$largest > x$tolerance && x$largest <= 1e-5
    if (is_rounded && "other distance" %in% x$differences$problem) {
      # Single precision also rounds coordinates, which may exceed distances.
      cat(
        "For distances in single precision, use `tolerance = ",
        if (x$largest <= 1e-6) "1e-6" else "1e-5", "`.\n", sep = ""
      )
    }
  }
  invisible(x)
}

# Distances have enough digits to show that they differ.
print_differences <- function(shown, ..., digits = NULL) {
  given <- shown$distance
  known <- shown$recomputed
  differ <- which(given != known & shown$problem == "other distance")
  for (enough in max(3, getOption("digits")):16) {
    if (all(signif(given[differ], enough) != signif(known[differ], enough))) {
      break
    }
  }
  print(shown, row.names = FALSE, digits = digits %||% enough, ...)
}
