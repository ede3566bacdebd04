# Statistics of permuted outcomes that are no distance, so that no search finds
# the nearest: studentized ones, and those of factors of three or more levels.
# They are made from products of rows, and of their squares, with permuted
# outcomes. Rows are read in blocks. The three kinds are
#   robust  a slope divided by its standard error: Welch's t of two groups, and
#           HC2 of numbers (MacKinnon and White 1985)
#   welch   Welch's F for three or more groups
#   ratio   the correlation ratio of a factor, squared
# The variances of the first two are moderated (Smyth 2004), and samples have
# weights: see significance-moderated.R.

statistics <- c("studentized", "correlation")

check_statistic <- function(statistic, call = caller_env()) {
  if (is.null(statistic)) {
    return(NULL)
  }
  check_choice(statistic, statistics, "statistic", call = call)
}

# Sets the search's `kind` of statistic, NULL for r, and `has_p`: are p_value
# and fdr those of the moderated statistic? `relabelled` is from
# draw_for_search().
with_statistic <- function(search, relabelled, call) {
  asked <- search$options$statistic
  unit <- relabelled$unit
  why <- why_not_studentized(search, relabelled$facts, relabelled$strata, unit)
  if (identical(asked, "studentized") && !is.null(why)) {
    abort_argument(
      c(
        "{.code statistic = \"studentized\"} can't be used here.",
        x = why, i = "There is {.code statistic = \"correlation\"}."
      ),
      call
    )
  }
  request <- search$request
  is_factor <- isTRUE(search$is_factor)
  asked <- asked %||% if (is_factor && is.null(why)) statistics[[1]]
  studentized <- identical(asked, "studentized")
  search$kind <- if (!is.null(search$levels)) {
    if (studentized) "welch" else "ratio"
  } else if (studentized) {
    "robust"
  }
  search$has_p <- studentized && is.null(request$weights)
  search
}

# Returns words, or NULL.
why_not_studentized <- function(search, facts, strata, unit) {
  request <- search$request
  if (request$metric != "pearson") {
    "It is defined only for metric \"pearson\"."
  } else if (can_be_short(search)) {
    "With {.code na = \"pairwise\"}, points have their own numbers of samples."
  } else if (facts$kind == "blocks") {
    "An outcome that varies within units is permuted as blocks."
  } else if (!is.null(unit) && !is.null(request$weights)) {
    "It is not defined for {.arg unit} with {.arg weights}."
  } else if (identical(search$options$weighting$kind, "frequency")) {
    "A weight stands for several samples."
  } else if (!is.null(search$levels) &&
               !is.null(request$adjust %||% request$weights %||% strata)) {
    "Welch's F of three or more levels is not defined with {.arg adjust},
     {.arg weights} or {.arg strata}."
  } else if (isTRUE(search$is_factor) && has_small_level(search, unit)) {
    paste(
      "Each level needs two", if (is.null(unit)) "samples." else "units."
    )
  }
}

has_small_level <- function(search, unit) {
  first <- !duplicated(unit %||% seq_len(ncol(search$queries$values)))
  rows <- search$levels %||% search$queries$values
  any(apply(rbind(rows), 1, function(row) min(table(row[first]))) < 2)
}

# --- outcomes ----------------------------------------------------------------

# Returns what the statistics of a search need of its samples. With units, the
# samples are units, with their means.
#   permuted, drawn   for permuted_rows()
#   own        the outcomes, a row for each
#   levels     for "welch", the level of each sample
#   basis      orthonormal: a constant, the covariates and the strata
#   root       by which rows and outcomes are multiplied, or NULL
#   has_groups  does the variance have a part for each of two levels?
#   change     a function of rows of points: their weighted values, or means
new_design <- function(search, drawn, strata, unit) {
  request <- search$request
  values <- filled_means(search$queries$values)
  adjust <- request$adjust
  levels <- search$levels
  root <- if (!is.null(request$weights)) sqrt(request$weights)
  change <- if (is.null(root)) {
    identity
  } else {
    function(rows) rows * rep(root, each = nrow(rows))
  }
  if (!is.null(unit)) {
    first <- which(!duplicated(unit))
    means <- outer(unit, unit[first], `==`) + 0
    means <- means / rep(colSums(means), each = length(unit))
    change <- function(rows) rows %*% means
    values <- values[, first, drop = FALSE]
    adjust <- adjust[first, , drop = FALSE]
    levels <- levels[first]
    strata <- strata[first]
    drawn <- array(
      match(unit[drawn[first, ]], unit[first]), c(length(first), ncol(drawn))
    )
  }
  if (identical(search$kind, "ratio")) {
    strata <- NULL
  }
  search$queries$values <- values
  search$request["adjust"] <- list(adjust)
  constant <- rep(1, ncol(values))
  parts <- qr(
    cbind(constant, adjust, design_of_strata(strata)) * (root %||% constant),
    tol = 1e-7
  )
  basis <- qr.Q(parts)[, seq_len(parts$rank), drop = FALSE]
  list(
    kind = search$kind, sign = request$sign, permuted = permutable(search),
    has_groups = isTRUE(search$is_factor) && search$kind == "robust" &&
      is.null(root),
    drawn = drawn, own = values, levels = levels, root = root,
    basis = basis, plain = basis, change = change
  )
}

filled_means <- function(values) {
  missing <- which(is.na(values), arr.ind = TRUE)
  values[missing] <- rowMeans(values, na.rm = TRUE)[missing[, 1]]
  values
}

# Returns what statistic_of_rows() needs of the outcomes (`by` is NULL), or of
# outcome of[r] under permutation by[r].
outcomes_for <- function(design, of, by = NULL) {
  if (design$kind == "welch") {
    levels <- design$levels
    return(list(
      levels = if (is.null(by)) {
        matrix(levels)
      } else {
        array(levels[design$drawn[, by]], c(length(levels), length(by)))
      },
      root = design$root %||% rep(1, length(levels))
    ))
  }
  rows <- function(row) {
    if (is.null(by)) {
      design$own[row, , drop = FALSE]
    } else {
      permuted_rows(design$permuted, design$drawn, row, by)
    }
  }
  if (design$kind == "ratio") {
    each <- lapply(seq_len(nrow(design$own)), function(row) {
      off_columns(rows(rep(row, max(1, length(by)))), design)
    })
    return(list(directions = orthonormal_each(each)))
  }
  columns <- off_columns(rows(of), design)
  length <- sqrt(colSums(columns^2))
  columns <- columns / rep(length, each = nrow(columns))
  undefined <- which(!is.finite(length) | length == 0)
  columns[, undefined] <- 0
  left <- 1 - rowSums(design$basis^2) - columns^2
  weight <- if (design$has_groups) {
    t(if (is.null(by)) {
      design$own[of, , drop = FALSE]
    } else {
      permuted_rows(list(values = design$own), design$drawn, of, by)
    })
  } else {
    # Without a residual in theory, the sample does not count.
    ifelse(left < 1e-8, 0, columns^2 / left)
  }
  outcomes <- list(
    columns = columns, weight = weight, last = colSums(weight * columns^2),
    left = left, undefined = undefined
  )
  if (!design$has_groups || ncol(design$basis) > 1) {
    outcomes$weighted <- weight * columns
  }
  outcomes
}

# Returns columns without the basis, 0 if that leaves only rounding errors.
off_columns <- function(rows, design) {
  columns <- t(rows) * (design$root %||% 1)
  before <- colSums(columns^2)
  columns <- columns - design$basis %*% crossprod(design$basis, columns)
  columns[, colSums(columns^2) <= 1e-20 * before] <- 0
  columns
}

# Makes the first columns of the matrices orthonormal to each other, and so on.
orthonormal_each <- function(each) {
  for (at in seq_along(each)) {
    for (before in each[seq_len(at - 1)]) {
      along <- colSums(before * each[[at]])
      each[[at]] <- each[[at]] - before * rep(along, each = nrow(before))
    }
    length <- sqrt(colSums(each[[at]]^2))
    each[[at]] <- each[[at]] / rep(length, each = nrow(each[[at]]))
    each[[at]][, length < 1e-10] <- 0
  }
  each
}

# --- statistics --------------------------------------------------------------

# Returns the squared correlation ratio of each row (see rows_off_basis()).
ratios_of_rows <- function(rows, outcomes) {
  Reduce(`+`, lapply(outcomes$directions, function(columns) {
    (rows %*% columns)^2
  }))
}

# Calls use(values, rows) for blocks of all points, in order, or once if
# `design$prepared` has them all.
for_row_blocks <- function(search, design, call, use) {
  num_points <- nrow(search$points$values)
  if (!is.null(design$prepared)) {
    return(use(design$prepared, seq_len(num_points)))
  }
  for (rows in row_ranges(num_points, rows_at_once(search))) {
    values <- rows_off_basis(
      search$points, rows, design$plain, search$options, call, design$change
    )
    values[rows %in% search$skip, ] <- NA
    use(weighed_rows(values, design), rows)
  }
}

rows_at_once <- function(search) {
  bytes <- tile_bytes(max_memory_of(search$options))
  max(1, floor(bytes / 8 / ncol(search$points$values)))
}

# Returns a matrix of what use(values, rows) returns for rows of points.
over_all_points <- function(search, design, call, use) {
  parts <- list()
  # nolint start: undesirable_operator_linter
  for_row_blocks(search, design, call, function(values, rows) {
    parts[[length(parts) + 1]] <<- use(values, rows)
  })
  # nolint end
  do.call(rbind, parts)
}

# --- p-values ----------------------------------------------------------------

# Does the work of judge_nearest() for the kinds of statistics above. Returns
# also `columns`, of which p_value and fdr only without units.
judge_by_statistic <- function(search, drawn, bytes, strata, unit, call) {
  design <- new_design(search, drawn, strata, unit)
  design <- prepare_rows(design, search, call)
  design <- weigh_samples(design, search, call)
  found <- if (is.null(search$levels)) {
    search_permuted(search, drawn[, 0, drop = FALSE], bytes, call)$found
  } else {
    nearest_by_ratio(search, call)
  }
  own <- with_parts(
    outcomes_for(design, seq_len(nrow(found$index))), design, search, call
  )
  observed <- all_statistics(own, design, search, call)
  self <- search$request$query_self
  observed[cbind(self, seq_along(self))] <- -Inf
  judged <- list(found = found)
  columns <- list()
  if (search$kind != "ratio") {
    forms <- c(statistic = "plain", freedom = "freedom")
    forms <- lapply(forms, function(form) {
      design[c("sign", "form")] <- list("signed", form)
      all_statistics(own, design, search, call)
    })
    columns$statistic <- of_found(forms$statistic, found$index)
  }
  if (is.null(unit)) {
    p <- if (search$has_p) p_of_moderated(forms, search)
    columns <- c(columns, columns_of_tests(p, search, found, bytes, call))
  }
  if (ncol(drawn) > 0) {
    judged <- c(judged, step_down(search, design, observed, found, bytes, call))
  }
  c(judged, list(columns = columns))
}

# Returns the design with all rows of points, if they fit the memory at once.
prepare_rows <- function(design, search, call) {
  if (rows_at_once(search) >= nrow(search$points$values)) {
    design$prepared <- over_all_points(
      search, design, call, function(values, rows) values
    )
  }
  design
}

# Returns what is compared with permutations for all points (rows) and outcomes,
# larger for the nearer. It is -Inf for rows without values.
all_statistics <- function(outcomes, design, search, call) {
  over_all_points(search, design, call, function(values, rows) {
    place <- ifelse(is.na(values[, 1]), -1L, 1L)
    kept <- largest_statistics(
      values, outcomes, design, place, search, call
    )$kept
    scores <- matrix(-Inf, nrow(values), ncol(kept))
    scores[place > 0, ] <- kept
    scores
  })
}

# `values` has a row for each point and a column for each outcome, and `index`
# the points of each outcome (row). Returns values in the shape of `index`.
of_found <- function(values, index) {
  array(values[cbind(as.vector(index), as.vector(row(index)))], dim(index))
}

# The step-down maxT of Westfall and Young, in order of the statistic over all
# points. Points up to the last one found keep their statistics of all
# permutations. For the other points only the maximum of each permutation is
# kept.
step_down <- function(search, design, observed, found, bytes, call) {
  num_permutations <- ncol(design$drawn)
  num_outcomes <- ncol(observed)
  limits <- observed - 1e-9 * abs(observed) - 1e-12
  order <- rank <- array(0L, dim(observed))
  for (outcome in seq_len(num_outcomes)) {
    order[, outcome] <- order(-observed[, outcome])
    rank[order[, outcome], outcome] <- seq_len(nrow(order))
  }
  listed <- of_found(rank, found$index)
  num_steps <- apply(listed, 1, max)
  counts <- lapply(num_steps, double)
  null <- matrix(0, num_permutations, num_outcomes)
  colnames(null) <- asked_names(search)
  most <- max(8 * sum(num_steps), 32 * nrow(design$basis) * num_outcomes)
  for (some in number_ranges(num_permutations, max(1, floor(bytes / most)))) {
    permuted <- lapply(seq_len(num_outcomes), function(outcome) {
      with_parts(
        outcomes_for(design, rep(outcome, length(some)), some), design, search,
        call, outcome
      )
    })
    best <- best_of_steps(search, design, permuted, rank, num_steps, call)
    for (outcome in seq_len(num_outcomes)) {
      largest <- best$rest[[outcome]]
      for (step in rev(seq_len(num_steps[[outcome]]))) {
        largest <- pmax(largest, best$steps[[outcome]][step, ])
        limit <- limits[order[step, outcome], outcome]
        counts[[outcome]][[step]] <- counts[[outcome]][[step]] +
          sum(largest >= limit)
      }
      null[some, outcome] <- largest
    }
  }
  adjusted <- if (is_one_family(search)) {
    adjust_over_call(-of_found(limits, found$index), -null)
  } else {
    t(vapply(seq_len(num_outcomes), function(outcome) {
      p <- cummax(permutation_p(counts[[outcome]], num_permutations))
      p[listed[outcome, ]]
    }, double(ncol(listed))))
  }
  if (design$kind == "ratio") {
    null <- sqrt(null)
  }
  list(adjusted = matrix(adjusted, num_outcomes), null = null)
}

# Returns, for each outcome, the statistics of the first points by rank (rows)
# in each permutation, and the largest of all others.
best_of_steps <- function(search, design, permuted, rank, num_steps, call) {
  steps <- rest <- vector("list", length(permuted))
  self <- search$request$query_self
  # nolint start: undesirable_operator_linter
  for_row_blocks(search, design, call, function(values, at) {
    for (outcome in seq_along(permuted)) {
      step <- rank[at, outcome]
      place <- ifelse(step <= num_steps[[outcome]], step, 0L)
      place[is.na(values[, 1]) | at %in% self[outcome]] <- -1L
      largest <- largest_statistics(
        values, permuted[[outcome]], design, place, search, call
      )
      kept <- which(place > 0)
      steps[[outcome]] <<- steps[[outcome]] %||%
        matrix(-Inf, num_steps[[outcome]], length(largest$largest))
      steps[[outcome]][place[kept], ] <<- largest$kept
      rest[[outcome]] <<- pmax(rest[[outcome]] %||% -Inf, largest$largest)
    }
  })
  # nolint end
  list(steps = steps, rest = rest)
}

# Returns the statistics of the rows whose `place` is above 0, and the largest
# of those whose place is 0, for each outcome. A permutation without a value
# counts as the most extreme.
largest_statistics <- function(values, outcomes, design, place, search, call) {
  kept <- which(place > 0)
  if (design$kind == "ratio") {
    of_rows <- function(rows) {
      ratios_of_rows(values[rows, , drop = FALSE], outcomes)
    }
    rest <- split(which(place == 0), (seq_len(sum(place == 0)) - 1) %/% 1000)
    largest <- lapply(rest, function(rows) apply(of_rows(rows), 2, max))
    return(list(
      kept = of_rows(kept),
      largest = do.call(
        pmax, c(list(rep(-Inf, ncol(outcomes$directions[[1]]))), largest)
      )
    ))
  }
  place[kept] <- seq_along(kept)
  largest <- in_core(
    cpp_permuted_statistics(
      values, outcomes, outcomes$parts, design$sign, place, length(kept),
      design$form %||% "score", search$options$num_threads
    ),
    call
  )
  undefined <- outcomes$undefined
  largest$kept[, undefined] <- Inf
  largest$largest[undefined] <- Inf
  largest
}

# Returns p_value and fdr. `p` has the p-values of all points (rows) and
# outcomes, or is NULL.
columns_of_tests <- function(p, search, found, bytes, call) {
  if (is.null(p) && is.null(search$levels)) {
    return(analytic_columns(search, found, bytes, call))
  }
  p <- p %||% p_of_ratio(search, found, call)
  p[search$skip, ] <- NA
  self <- search$request$query_self
  p[cbind(self, seq_along(self))] <- NA
  fdr <- if (is_one_family(search)) {
    array(stats::p.adjust(p, "BH"), dim(p))
  } else {
    apply(p, 2, stats::p.adjust, "BH")
  }
  lapply(list(p_value = p, fdr = fdr), of_found, found$index)
}

# Returns the p-values of t or F (`statistic`) with its degrees of freedom.
p_of_moderated <- function(forms, search) {
  statistic <- forms$statistic
  # Points without values have none.
  freedom <- replace(forms$freedom, forms$freedom <= 0, NA)
  sides <- length(unique(search$levels)) - 1
  p <- if (search$kind == "welch") {
    stats::pf(statistic, sides, freedom, lower.tail = FALSE)
  } else {
    switch(
      search$request$sign,
      signed = stats::pt(-statistic, freedom),
      negative = stats::pt(statistic, freedom),
      absolute = 2 * stats::pt(-abs(statistic), freedom)
    )
  }
  # Without a prior, a difference of two constants has no standard error.
  replace(p, abs(statistic) > 1e5, NA)
}

# Returns the p-values of the F test of equal means, of covariates if there are
# any, for all points.
p_of_ratio <- function(search, found, call) {
  squares <- squared_ratios(search, call)
  sides <- length(unique(search$levels)) - 1
  freedom <- num_samples_of(search) - 1 - sides -
    (num_covariates(search$request) %||% 0)
  stats::pf(
    squares / (1 - squares) * freedom / sides, sides, freedom,
    lower.tail = FALSE
  )
}

squared_ratios <- function(search, call) {
  search$kind <- "ratio"
  design <- new_design(search, matrix(0L, 0, 0), NULL, NULL)
  own <- outcomes_for(design, 1)
  over_all_points(search, design, call, function(values, rows) {
    pmin(ratios_of_rows(values, own), 1)
  })
}

# Returns the points with the largest correlation ratios as run_search() does.
nearest_by_ratio <- function(search, call) {
  ratio <- sqrt(squared_ratios(search, call))
  index <- order(-replace(ratio, search$skip, NA))[seq_len(search$request$k)]
  found <- ratio[index]
  list(
    index = t(index), distance = t(1 - found), correlation = t(found)
  )
}
