# Searches of a contrast: one in each of two groups of samples, with the given
# labels and with permuted ones.

# Returns what all searches of one contrast share. `search` is from
# new_search(). `fewest` is the smallest number of samples in a group, and
# `designs` has the covariates of each group, or is NULL. They have a row for
# each sample. `tested`: p-values are wanted.
new_contrast_task <- function(search, fewest, persistence, designs = NULL,
                              tested = FALSE) {
  request <- search$request
  request$progress <- FALSE
  # These depend on the features of a group, which change.
  request$largest <- -1
  request[c("weights", "adjust")] <- list(NULL)
  values <- search$points$values
  list(
    request = request, weights = search$options$weights, designs = designs,
    persistence = persistence, tested = tested, num_points = nrow(values),
    at_risk = rows_at_risk(values, fewest)
  )
}

# Whole units move between groups, which then have other numbers of samples.
fewest_in_groups <- function(labels, drawn) {
  sizes <- vapply(seq_len(NCOL(drawn)), function(at) {
    min(tabulate(if (is.null(drawn)) labels else labels[drawn[, at]], 2))
  }, 1L)
  min(sizes, tabulate(labels, 2))
}

# Returns rows with so many equal values that a group might have no others.
rows_at_risk <- function(values, fewest) {
  # A row with so many equal values has two of them in any subset of this size.
  some <- values[, seq_len(ncol(values) - fewest + 2), drop = FALSE]
  rows <- which(apply(some, 1, anyDuplicated) > 0)
  most <- apply(values[rows, , drop = FALSE], 1, function(row) {
    max(tabulate(match(row, row)))
  })
  rows[most >= fewest]
}

# `points` is a handle, or values. `labels` is 1 or 2 for each feature. With
# covariates, a sample has those of sample `place`. Returns `groups` and
# `points`, the value of cpp_contrast_points() with `lost` and `gained` of
# fall_of_lists(). If p-values are wanted, these and `largest` are also in
# standard errors (lost_t, gained_t, largest_t); `error` is that of edges. Each
# group has its lists (index) and the correlations of their pairs, in the group
# itself (own) and in the other (other).
contrast_of <- function(points, values, labels, task, call,
                        place = seq_along(labels)) {
  columns <- list(which(labels == 1), which(labels == 2))
  designs <- Map(function(design, at) {
    design[place[at], , drop = FALSE]
  }, task$designs, columns[seq_along(task$designs)])
  skip <- sort(Reduce(union, list(
    task$request$skip, constant_in_either(values, columns, task$at_risk),
    explained_in_either(values, columns, designs)
  )))
  check_k(task$request$k, task$num_points, length(skip), call = call)
  requests <- lapply(1:2, function(group) {
    design <- if (!is.null(task$designs)) designs[[group]]
    request_within(columns[[group]], task, skip, design)
  })
  groups <- lapply(requests, function(request) {
    found <- in_core(ask_core(points, NULL, request), call)
    list(
      index = found$index, own = found$correlation,
      towards = towards_near(found$correlation, task$request$sign),
      variance = 0, of_pairs = 0
    )
  })
  # The first group comes first, because the points are still prepared for the
  # features of the second.
  for (group in 1:2) {
    groups[[group]]$other <- in_core(
      cpp_pair_correlations(
        points, groups[[group]]$index, requests[[3 - group]]
      ),
      call
    )$correlation
    if (task$tested) {
      groups <- add_variances(groups, 3 - group, points, requests, call)
    }
  }
  points <- in_core(
    cpp_contrast_points(
      groups[[1]], groups[[2]], task$request$sign, task$persistence,
      task$request$num_threads
    ),
    call
  )
  points$lost <- fall_of_lists(groups[[1]])
  points$gained <- fall_of_lists(groups[[2]])
  if (task$tested) {
    points$lost_t <- points$lost / mean_error(groups[[1]]$variance)
    points$gained_t <- points$gained / mean_error(groups[[2]]$variance)
    error <- mean_error(c(groups[[1]]$of_pairs, groups[[2]]$of_pairs))
    points$largest_t <- points$largest / error
  }
  list(
    groups = groups, skip = skip, points = points,
    error = if (task$tested) error
  )
}

# Returns for each point how much nearer the pairs of this group's lists are
# than in the other group, by Fisher's z: a third of the mean over its own list,
# and two thirds of the mean over the lists of its neighbours. One list has too
# few pairs to show a change. In a module, the lists of the neighbours change
# together. With a smaller share of the own list, more points would be found
# that only have such neighbours.
fall_of_lists <- function(group) {
  fall <- rowMeans(
    group$towards * (fisher_z(group$own) - fisher_z(group$other))
  )
  near <- matrix(fall[group$index], nrow(group$index))
  (fall + 2 * rowMeans(near)) / 3
}

# The factor of each r that makes near pairs have large values.
towards_near <- function(r, sign) {
  switch(sign, signed = r * 0 + 1, absolute = sign(r), negative = r * 0 - 1)
}

# Adds the variances of fall_of_lists() that come from the samples of group
# `at`. The other group's pairs have their correlations `other` there.
add_variances <- function(groups, at, points, requests, call) {
  for (group in 1:2) {
    of <- groups[[group]]
    r <- if (group == at) of$own else of$other
    found <- in_core(
      cpp_list_variances(points, of$index, r, of$towards, requests[[at]]), call
    )
    groups[[group]]$variance <- of$variance + found$variance
    groups[[group]]$of_pairs <- of$of_pairs + found$pairs
  }
  groups
}

# Returns one standard error for all points (or pairs), the mean of theirs. A
# point's own is known from few samples, and it is large in a module. So it
# would hide that the module dissolves.
mean_error <- function(variance) {
  error <- mean(sqrt(variance), na.rm = TRUE)
  if (error > 0) error else 1
}

request_within <- function(columns, task, skip, design = NULL) {
  request <- task$request
  request$feature_subset <- columns
  request$skip <- skip
  weights <- task$weights[columns]
  if (length(unique(weights)) > 1) {
    request$weights <- weights
  }
  request["adjust"] <- list(design_or_null(design))
  request
}

# The core has no matrix without columns.
design_or_null <- function(design) {
  if (NCOL(design) > 0) design
}

# Returns the rows that the covariates of a group explain. Permuted residuals of
# few samples can be such rows.
explained_in_either <- function(values, columns, designs) {
  rows <- lapply(seq_along(designs), function(group) {
    part <- values[, columns[[group]], drop = FALSE]
    part <- t(part / unit_of_rows(part))
    left <- stats::lm.fit(cbind(1, designs[[group]]), part)$residuals
    about <- sweep(part, 2, colMeans(part))
    which(colSums(as.matrix(left)^2) <= 1e-20 * colSums(about^2))
  })
  unlist(rows)
}

constant_in_either <- function(values, columns, at_risk) {
  if (length(at_risk) == 0) {
    return(integer())
  }
  is_constant <- function(at) {
    rows <- values[at_risk, at, drop = FALSE]
    rowSums(rows != rows[, 1]) == 0
  }
  at_risk[is_constant(columns[[1]]) | is_constant(columns[[2]])]
}

# Returns the statistics of permutations: lost_t and gained_t have a column for
# each, and `means` of lost, gained and rbo are over all. `largest` has, for
# each permutation, the largest difference of all edges. `edges_beyond` counts,
# for each observed edge, the permutations that were at least as extreme at its
# point. `edges` is from edges_of_contrast().
#
# Permutations move samples to other groups. With covariates and units, `values`
# are residuals, which move to the places of other samples. Groups and
# covariates stay there (Freedman and Lane 1983). With strata, `values` are the
# list that standardise_groups() returns.
permuted_contrasts <- function(values, labels, drawn, task, edges, call) {
  num <- ncol(drawn)
  by_stratum <- is.list(values)
  if (!by_stratum) {
    points <- hold_points(values, task$request, call)
    on.exit(give_back_held(points))
    task$at_risk <- rows_at_risk(values, fewest_in_groups(labels, drawn))
  }
  bar <- new_split_bar(task$shown, num)
  on.exit(end_bar(bar), add = TRUE)
  empty <- matrix(NA_real_, task$num_points, num)
  found <- list(
    lost_t = empty, gained_t = empty, largest = double(num),
    edges_beyond = integer(length(edges$from))
  )
  sums <- counts <- matrix(0, task$num_points, 3)
  beyond <- edges$change_t - tied_within
  for (at in seq_len(num)) {
    place <- drawn[, at]
    now <- if (by_stratum) {
      moved <- values$level + values$residuals * values$spreads[, labels[place]]
      contrast_within_strata(moved, labels[place], task, call)
    } else {
      contrast_of(points, values, labels[place], task, call, place)
    }
    now <- now$points
    found$lost_t[, at] <- now$lost_t
    found$gained_t[, at] <- now$gained_t
    values_now <- cbind(now$lost, now$gained, now$rbo)
    there <- !is.na(values_now)
    sums <- sums + replace(values_now, !there, 0)
    counts <- counts + there
    found$largest[[at]] <- max(now$largest_t, -Inf, na.rm = TRUE)
    # A point without a list in this permutation counts as at least as extreme.
    now$largest_t[is.na(now$largest_t)] <- Inf
    found$edges_beyond <- found$edges_beyond +
      (now$largest_t[edges$from] >= beyond)
    step_bar(bar, 1)
  }
  found$means <- sums / counts
  colnames(found$means) <- c("lost", "gained", "rbo")
  found
}

# Each permutation has its own values, which are prepared once for both groups.
contrast_within_strata <- function(values, labels, task, call) {
  points <- hold_points(values, task$request, call)
  on.exit(give_back_held(points))
  task$at_risk <- rows_at_risk(values, min(tabulate(labels, 2)))
  contrast_of(points, values, labels, task, call)
}

# Statistics that differ by less are ties: they differ by rounding.
tied_within <- 1e-9

# --- p-values ----------------------------------------------------------------

# Returns p_value and p_adjusted of each point. Each statistic is standardised
# by the point's own mean and standard deviation. These are over the observed
# value and all permutations, so that none is special. The larger of the two
# counts. p_adjusted is family-wise, by the most extreme point of each
# permutation. Ranks would not do: with more points than permutations, the
# smallest p-value would always be 1 / (num + 1).
point_p_values <- function(observed, permuted) {
  sides <- lapply(c("lost_t", "gained_t"), function(side) {
    standardise_rows(cbind(observed[[side]], permuted[[side]]))
  })
  extreme <- pmax(sides[[1]], sides[[2]])
  own <- extreme[, 1]
  extreme <- extreme[, -1, drop = FALSE]
  # A permutation without a value counts.
  beyond <- rowSums(is.na(extreme) | extreme >= own - tied_within)
  beyond[is.na(own)] <- NA
  largest <- vapply(seq_len(ncol(extreme)), function(at) {
    max(extreme[, at], -Inf, na.rm = TRUE)
  }, 0)
  list(
    p_value = permutation_p(beyond, ncol(extreme)),
    p_adjusted = p_of_largest(own, largest)
  )
}

# A row without any spread has no extreme value.
standardise_rows <- function(values) {
  values <- values - rowMeans(values, na.rm = TRUE)
  spread <- sqrt(rowMeans(values^2, na.rm = TRUE))
  spread[!is.na(spread) & spread <= tied_within] <- Inf
  values / spread
}

# Returns p-values by the number of permutations whose largest statistic is at
# least the observed one.
p_of_largest <- function(observed, largest) {
  below <- findInterval(
    observed - tied_within, sort(largest), left.open = TRUE
  )
  permutation_p(length(largest) - below, length(largest))
}
