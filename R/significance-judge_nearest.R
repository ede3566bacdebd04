# Significance of the nearest points of a point or an outcome. It computes
# p-values of correlations and false discovery rates over all points.
# Permutations of the outcome give p-values adjusted for the maximum over all
# points.

# A metric without p-values of its own needs permutations.
check_has_p_values <- function(permutations, metric, call = caller_env()) {
  if (!identical(permutations, 0L) || has_correlation(metric)) {
    return(invisible())
  }
  able <- metrics_with("has_sign")
  abort_argument(
    c(
      "{.arg permutations} must be 1 or more with metric {.val {metric$name}},
       not 0.",
      i = "Only {able} have p-values without permutations."
    ),
    call
  )
}

check_no_blocks <- function(permutations, block, call = caller_env()) {
  if (is.null(permutations) || is.null(block)) {
    return(invisible())
  }
  abort_argument(
    c(
      "{.arg permutations} can't be used with {.arg block}.",
      x = "The nearest in each block are a family of their own.",
      i = "Give the points of one block as {.arg x}."
    ),
    call
  )
}

# Returns the relabellings of the samples that count (see relabellings()), and
# the strata and units of these samples.
draw_for_search <- function(search, x, permutations, strata, unit,
                            call = caller_env()) {
  points <- search$points
  num_given <- points$num_given %||% ncol(points$values)
  strata <- check_strata(
    strata, x, num_given, for_permutations = permutations > 0,
    input = search$options$input, call = call
  )
  if (!is.null(strata) && !is.null(points$samples)) {
    strata <- strata[points$samples]
    check_can_permute(strata, call, counted = TRUE)
  }
  if (is_index(x)) {
    check_index_strata(search, strata, call)
  }
  check_varies_in_strata(search, strata, call)
  unit <- units_of_search(
    unit, search, x, for_permutations = permutations > 0, call = call
  )
  arg <- asked_by(search)
  request <- search$request
  exchange <- exchange_of(
    search$queries$values, strata, unit, request$adjust, call
  )
  relabelled <- relabellings(
    exchange, permutations, permutable(search)$values,
    same_for_sign(request$sign, request$metric == "spearman"), arg, call
  )
  facts <- relabelled$facts
  if (!is.null(search$levels)) {
    relabelled$facts$smallest_p <- if (facts$all || !is.null(facts$num_units)) {
      smallest_p(relabelled$drawn, t(search$levels), same_classes)
    } else {
      facts$smallest_p[[1]]
    }
  }
  c(relabelled, list(strata = strata, unit = unit))
}

# Returns the argument that has the outcomes.
asked_by <- function(search) {
  if (isTRUE(search$queries$are_outcomes)) "outcome" else "point"
}

# If an outcome (or a point) is constant within each stratum, no permutation
# changes it, and strata among the covariates leave no residuals. Rounding and
# missing values do not count. `strata` are those of the samples that count, or
# NULL.
check_varies_in_strata <- function(search, strata, call) {
  asked <- search$queries$values
  if (is.null(strata) || !is.matrix(asked)) {
    return(invisible())
  }
  nested <- which(apply(asked, 1, is_constant_within, strata))
  if (length(nested) == 0) {
    return(invisible())
  }
  arg <- asked_by(search)
  labels <- asked_names(search)
  abort_argument(
    c(
      "{.arg {arg}} must vary within one of {.arg strata} at least.",
      x = if (is.null(labels)) {
        "In each, all samples have the same value."
      } else {
        "In each, all samples have the same value of
         {first_few(paste0(\"\\\"\", labels[nested], \"\\\"\"))}."
      },
      i = "Permutations within {.arg strata} do not change such values. If
           samples of one stratum are of one subject, who has one value, give
           the subjects as {.arg unit}."
    ),
    call
  )
}

is_constant_within <- function(values, strata) {
  there <- !is.na(values)
  values <- values[there]
  left <- values - stats::ave(values, strata[there])
  all(abs(left) <= 1e-12 * max(abs(values), 0))
}

# The points of an index have been adjusted already, so their covariates must
# explain the strata. With `adjust = ~ 1` there are none.
check_index_strata <- function(search, strata, call) {
  if (is.null(strata) || is.null(search$covariates)) {
    return(invisible())
  }
  request <- search$request
  both <- cbind(request$adjust, design_of_strata(strata))
  kept <- in_core(cpp_covariates(both, request$weights), call)$kept
  if (length(kept) > (num_covariates(request) %||% 0)) {
    abort_argument(
      c(
        "{.arg strata} must be among the covariates of an index that was made
         with {.arg adjust}.",
        i = "Make it with the strata, too: {.code adjust = ~ age + batch}."
      ),
      call
    )
  }
}

# Runs a search and computes its significance. Student's t takes samples as
# independent, so there are no p-values from it with units. Returns
#   found    as run_search() does
#   columns  further columns of the table, matrices of the shape of found$index
#   null     the smallest distance of each permutation (row) for each outcome
#            (column), or the largest statistic
# `strata` and `unit` are those of the samples that count.
# `bytes` limits the queries of one search and its answer.
judge_nearest <- function(search, drawn, bytes = bytes_at_once, strata = NULL,
                          unit = NULL, call = caller_env()) {
  if (is.null(search$held) && can_be_held(search)) {
    # The points are prepared, and sent to a GPU, once for all searches below.
    search$held <- hold_points(search$points$values, search$request, call)
    on.exit(give_back_held(search$held))
  }
  search$tied <- tied_points(search)
  has_p_values <- has_correlation(search$options$metric) && is.null(unit)
  if (has_p_values) {
    tell_tails(
      tails_of(search, search$queries$values), search$request$metric,
      "{.code p_adjusted}, by {.arg permutations}, needs no normal values."
    )
  }
  if (!is.null(search$kind)) {
    judged <- judge_by_statistic(search, drawn, bytes, strata, unit, call)
    columns <- judged$columns
  } else {
    judge <- if (has_own_samples(search)) judge_by_p else search_permuted
    judged <- judge(search, drawn, bytes, call)
    columns <- list()
    if (has_p_values) {
      columns <- analytic_columns(search, judged$found, bytes, call)
    }
  }
  columns$p_adjusted <- judged$adjusted
  order <- c("statistic", "p_value", "p_adjusted", "fdr")
  list(
    found = judged$found, columns = columns[intersect(order, names(columns))],
    null = judged$null
  )
}

bytes_at_once <- 2^28

# Returns whether each pair has a correlation over its own number of samples, so
# that p-values are compared instead of distances.
has_own_samples <- function(search) {
  can_be_short(search) && has_correlation(search$options$metric)
}

can_be_held <- function(search) {
  !can_be_short(search) && !is_row_file(search$points$values)
}

# --- permutations ------------------------------------------------------------

# Searches the outcomes and their permutations together, in one pass over the
# points unless there are very many. `adjusted` has p_adjusted for each outcome
# and rank, or is NULL without permutations. It follows the step-down method of
# Westfall and Young: each step is over the points not listed before.
search_permuted <- function(search, drawn, bytes, call) {
  outcomes <- search$queries$values
  k <- search$request$k
  num_outcomes <- nrow(outcomes)
  num_permutations <- ncol(drawn)
  permuted <- permutable(search)
  at_once <- max(
    1, floor(bytes / max(8 * ncol(outcomes), 20 * k)) - num_outcomes
  )
  counts <- matrix(0, num_outcomes, k)
  null <- matrix(0, num_permutations, num_outcomes)
  colnames(null) <- asked_names(search)
  found <- NULL
  for (rows in number_ranges(num_outcomes * num_permutations, at_once)) {
    of <- (rows - 1) %/% num_permutations + 1
    by <- (rows - 1) %% num_permutations + 1
    queries <- permuted_rows(permuted, drawn, of, by)
    if (is.null(found)) {
      both <- ask_of_queries(
        search, rbind(outcomes, queries), c(seq_len(num_outcomes), of), call
      )
      own <- seq_len(num_outcomes)
      found <- rows_found(both, own)
      if (length(rows) == 0) {
        break
      }
      both <- rows_found(both, -own)
    } else {
      search$request$correlation <- FALSE
      both <- ask_of_queries(search, queries, of, call)
    }
    for (outcome in unique(of)) {
      some <- which(of == outcome)
      steps <- best_of_the_rest(
        found$index[outcome, ], rows_found(both, some)
      )
      limit <- with_rounding(found$distance[outcome, ], search$options$metric)
      counts[outcome, ] <- counts[outcome, ] +
        colSums(steps <= rep(limit, each = length(some)))
      null[by[some], outcome] <- steps[, 1]
    }
  }
  if (can_be_short(search)) {
    tell_short_rows(count_short_rows(found, search), search, FALSE)
  }
  if (num_permutations == 0) {
    return(list(found = found))
  }
  adjusted <- if (is_one_family(search)) {
    adjust_over_call(
      with_rounding(found$distance, search$options$metric), null
    )
  } else {
    t(apply(permutation_p(counts, num_permutations), 1, cummax))
  }
  dim(adjusted) <- dim(counts)
  list(found = found, adjusted = adjusted, null = null)
}

# Does the same by p-values, as each pair has its own number of samples. The
# steps are in order of the p-value, over all points: the step-down minP of
# Westfall and Young. So each permutation needs the p-values of all points.
judge_by_p <- function(search, drawn, bytes, call) {
  judged <- search_permuted(search, drawn[, 0, drop = FALSE], bytes, call)
  num_permutations <- ncol(drawn)
  if (num_permutations == 0) {
    return(judged)
  }
  found <- judged$found
  num_outcomes <- nrow(found$index)
  judged$adjusted <- array(NA_real_, dim(found$index))
  judged$null <- matrix(0, num_permutations, num_outcomes)
  colnames(judged$null) <- asked_names(search)
  own <- judged$adjusted
  smallest_p <- judged$null
  at_once <- max(1, floor(bytes / 40 / nrow(search$points$values)))
  for (outcome in seq_len(num_outcomes)) {
    asked <- search_for_all(search, outcome)
    values <- asked$queries$values
    observed <- p_of_all(asked, TRUE, call)$p
    order <- order(observed)
    counts <- 0
    for (some in number_ranges(num_permutations, at_once)) {
      rows <- lapply(some, function(by) values[, drawn[, by]])
      asked$queries$values <- do.call(rbind, rows)
      all <- p_of_all(asked, FALSE, call)
      judged$null[some, outcome] <- all$nearest
      permuted <- matrix(all$p, nrow(observed))[order, , drop = FALSE]
      smallest_p[some, outcome] <- apply(permuted, 2, min)
      for (at in seq_along(some)) {
        smallest <- rev(cummin(rev(permuted[, at])))
        counts <- counts + (smallest <= observed[order])
      }
    }
    adjusted <- cummax(permutation_p(counts, num_permutations))
    judged$adjusted[outcome, ] <-
      adjusted[match(found$index[outcome, ], order)]
    own[outcome, ] <- observed[found$index[outcome, ]]
  }
  if (is_one_family(search)) {
    judged$adjusted <- adjust_over_call(own, smallest_p)
  }
  judged
}

# Returns a search of some outcomes (or points) for all points.
search_for_all <- function(search, outcomes) {
  request <- search$request
  search$queries <- list(
    values = search$queries$values[outcomes, , drop = FALSE]
  )
  search$request$correlation <- FALSE
  search$request$query_self <- request$query_self[outcomes]
  search$request$k <- nrow(search$points$values) - length(request$skip) -
    !is.null(request$query_self)
  search
}

# Returns the p-values of all points (rows) for each query (column), and the
# smallest distance of each query. Points without a p-value have 1. With
# `rounded`, p-values are a little larger, so that none is missed which is equal
# in theory.
p_of_all <- function(asked, rounded, call) {
  queries <- asked$queries$values
  tied <- rows_with_ties(queries)
  self <- asked$request$query_self
  asked$request$query_self <- if (!is.null(self)) rep(self, nrow(queries))
  all <- find_all(asked, call)
  common <- common_samples(asked, queries)
  p <- array(1, dim(common))
  nearest <- double(nrow(queries))
  for (at in seq_len(nrow(queries))) {
    there <- which(!is.na(all$index[[at]]))
    index <- all$index[[at]][there]
    distance <- all$distance[[at]][there]
    nearest[[at]] <- min(distance, Inf)
    if (rounded) {
      distance <- with_rounding(distance, asked$options$metric)
    }
    p[index, at] <- p_without_missing(
      r_of_distance(distance, asked$request$sign), common[index, at],
      asked$request, asked$tied[index] | tied[[at]]
    )
  }
  list(p = p, nearest = nearest)
}

# Returns the number of samples that each point (row) and query (column) have.
common_samples <- function(search, queries) {
  (!is.na(search$points$values)) %*% t(!is.na(queries))
}

# Returns p-values of correlations under na = "pairwise", 1 for those without
# degrees of freedom. `ties` is that of correlation_p_value().
p_without_missing <- function(r, num_samples, request, ties) {
  p <- correlation_p_value(
    r, num_samples, 0, request$metric, alternative_of_sign(request$sign), ties
  )
  replace(p, is.na(p), 1)
}

# Returns whether each point has equal values, where Spearman's p-values need it
# and r does not show it: under na = "pairwise", whose points are in memory.
tied_points <- function(search) {
  values <- search$points$values
  if (search$request$metric == "spearman" && can_be_short(search)) {
    rows_with_ties(values)
  } else {
    logical(nrow(values))
  }
}

# Splits 1 to count into ranges of `at_once` numbers. There is one empty range
# if count is 0.
number_ranges <- function(count, at_once) {
  if (count == 0) list(integer()) else row_ranges(count, at_once)
}

# Returns the core's answer for queries, each of which is an outcome or a
# permutation of it.
ask_of_queries <- function(search, queries, of, call) {
  search$queries <- list(values = queries)
  search$num_rows <- nrow(queries)
  search$request$query_self <- search$request$query_self[of]
  undefined <- undefined_queries(search, call)
  search$request$query_skip <- undefined
  # Rows with too few neighbours are reported once, at the end.
  find <- if (can_be_short(search)) find_in_parts_or_whole else run_search
  found <- find(search, call)
  # A permutation without a value counts as the most extreme.
  found$distance[undefined, ] <- -Inf
  found
}

# Returns all points, the nearest first, as lists with an entry for each query.
# It searches within the largest possible distance of a correlation. On a GPU,
# this takes a tenth of the time of a search with k = n. knn_stats() keeps
# reporting the search for neighbours.
find_all <- function(search, call) {
  request <- search$request
  if (!can_be_short(search)) {
    request["k"] <- list(NULL)
    pairs <- as.double(nrow(search$queries$values)) *
      nrow(search$points$values)
    request$within <- list(
      limits = 2, similarity = NULL, most = pairs, most_kept = pairs
    )
  }
  found <- in_core(
    ask_core(
      search$held %||% search$points$values, search$queries$values, request
    ),
    call
  )
  if (is.list(found$index)) {
    return(found)
  }
  rows <- seq_len(nrow(found$index))
  list(
    index = lapply(rows, function(row) found$index[row, ]),
    distance = lapply(rows, function(row) found$distance[row, ])
  )
}

can_be_short <- function(search) {
  identical(search$request$na, "pairwise")
}

rows_found <- function(found, rows) {
  found <- found[c("index", "distance", "correlation")]
  lapply(found[lengths(found) > 0], function(values) {
    values[rows, , drop = FALSE]
  })
}

# Returns, for each permutation (row), the smallest distance of all points
# except the first i - 1 listed ones. The k nearest of a permutation suffice for
# k steps, because i - 1 < k points cannot fill them. The value is infinite if
# no point is left.
best_of_the_rest <- function(listed, found) {
  k <- length(listed)
  distance <- found$distance
  distance[is.na(distance)] <- Inf
  step <- match(found$index, listed)
  dim(step) <- dim(distance)
  step[is.na(step)] <- k + 1L
  best <- matrix(Inf, nrow(distance), k + 1)
  # The nearest is assigned last and therefore stays.
  for (rank in rev(seq_len(k))) {
    best[cbind(seq_len(nrow(best)), step[, rank])] <- distance[, rank]
  }
  for (rank in rev(seq_len(k))) {
    best[, rank] <- pmin(best[, rank], best[, rank + 1])
  }
  best[, seq_len(k), drop = FALSE]
}

# Distances that are equal in theory may differ in double. They are compared up
# to the rounding of sums, relative to 1 for bounded metrics.
with_rounding <- function(distance, metric) {
  bounded <- metric$similarity %in% c("correlation", "complement")
  distance + 1e-12 * pmax(abs(distance), if (bounded) 1 else 0)
}

# Returns the values to permute, one row for each outcome. With covariates these
# are its residuals (Freedman and Lane, 1983), which the search adjusts again.
# Spearman's residuals are those of ranks, and the fitted values are added
# before they are ranked again. If weights are precisions, residuals are scaled
# to equal variance (by `root`), and take the variance of their new sample.
permutable <- function(search) {
  values <- search$queries$values
  covariates <- search$request$adjust
  root <- search$options$weighting$root
  if (is.null(covariates) && is.null(root)) {
    return(list(values = values))
  }
  if (search$request$na == "mean") {
    values <- t(apply(values, 1, function(row) {
      replace(row, is.na(row), mean(row, na.rm = TRUE))
    }))
  }
  ranked <- search$request$metric == "spearman"
  if (ranked) {
    values <- t(apply(values, 1, rank))
  }
  equal <- rep(1, ncol(values))
  weights <- search$request$weights %||% equal
  fit <- stats::lm.wfit(cbind(equal, covariates), t(values), weights)
  residuals <- t(as.matrix(fit$residuals))
  list(
    values = residuals * rep(root %||% equal, each = nrow(residuals)),
    fitted = if (ranked) values - residuals, root = root
  )
}

# Row r is outcome of[r] under permutation by[r].
permuted_rows <- function(permuted, drawn, of, by) {
  num_samples <- ncol(permuted$values)
  rows <- matrix(0, length(of), num_samples)
  for (outcome in unique(of)) {
    some <- which(of == outcome)
    values <- permuted$values[outcome, drawn[, by[some]]]
    if (!is.null(permuted$fitted)) {
      # Rounding keeps ties of ranks that are equal in theory.
      values <- round(values + permuted$fitted[outcome, ], 9)
    }
    if (!is.null(permuted$root)) {
      values <- values / permuted$root
    }
    rows[some, ] <- matrix(values, length(some), num_samples, byrow = TRUE)
  }
  rows
}

# With few samples, permuted residuals may be in the span of the covariates.
undefined_queries <- function(search, call) {
  if (is.null(search$request$adjust)) {
    return(integer())
  }
  options <- search$options
  scan <- in_core(
    cpp_scan(
      search$queries$values, options$num_threads, FALSE, scan_request(options)
    ),
    call
  )
  sort(c(scan$constant, scan$explained))
}

# --- p-values ----------------------------------------------------------------

# Returns p_value and fdr of the points found. The latter is that of Benjamini
# and Hochberg (1995) over all points, whose distances are searched for, or over
# those of all outcomes.
analytic_columns <- function(search, found, bytes, call) {
  request <- search$request
  num_outcomes <- nrow(found$index)
  at_once <- max(1, floor(bytes / 20 / nrow(search$points$values)))
  p_value <- fdr <- found$correlation
  listed <- seq_len(ncol(p_value))
  one_family <- is_one_family(search)
  of_all <- list()
  for (some in number_ranges(num_outcomes, at_once)) {
    asked <- search_for_all(search, some)
    all <- find_all(asked, call)
    for (at in seq_along(some)) {
      p_of <- p_of_outcome(search, asked$queries$values[at, ])
      index <- all$index[[at]]
      p <- p_of(r_of_distance(all$distance[[at]], request$sign), index)
      p[listed] <- p_of(found$correlation[some[[at]], ], index[listed])
      p_value[some[[at]], ] <- p[listed]
      fdr[some[[at]], ] <- stats::p.adjust(p, "BH")[listed]
      if (one_family) {
        of_all[[some[[at]]]] <- p
      }
    }
  }
  if (one_family) {
    all <- stats::p.adjust(unlist(of_all), "BH")
    first <- cumsum(lengths(of_all)) - lengths(of_all)
    fdr[] <- all[outer(first, listed, `+`)]
  }
  list(p_value = p_value, fdr = fdr)
}

# Under "absolute" this is |r|, which has the same p-value as r.
r_of_distance <- function(distance, sign) {
  if (sign == "negative") distance - 1 else 1 - distance
}

# Returns a function of correlations and of the numbers of their points.
p_of_outcome <- function(search, outcome) {
  request <- search$request
  pairwise <- can_be_short(search)
  num_samples <- if (pairwise) {
    as.vector(common_samples(search, t(outcome)))
  } else {
    num_samples_of(search)
  }
  # Weighted ranks have no exact p-value, and values that were filled in are
  # equal.
  tied <- !is.null(request$weights) || !pairwise && anyNA(outcome) ||
    rows_with_ties(t(outcome))
  function(r, index) {
    ties <- if (tied) TRUE else if (pairwise) search$tied[index]
    correlation_p_value(
      r, if (pairwise) num_samples[index] else num_samples,
      num_covariates(request) %||% 0, request$metric,
      alternative_of_sign(request$sign), ties
    )
  }
}
