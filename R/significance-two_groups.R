# Converts two groups of samples, or two matrices of the same points, to one
# matrix with a group for each column.

# Returns x (in the form that searches take), labels (1 or 2 for each column),
# names of the groups, strata and unit (or NULL), and options to go with x.
take_two_groups <- function(x, groups, strata, unit, permuted, options,
                            call = caller_env()) {
  if (is_two_tables(x)) {
    taken <- bind_two(x, groups, strata, unit, permuted, options, call)
  } else {
    num_samples <- points_size(x, options$input, "x", call)[[2]]
    # Weights are matched now, because samples in neither group are dropped
    # below.
    options["weights"] <- list(match_names(
      options$weights, names_of_side(x, options$input, "features"), "weights",
      "features", call
    ))
    groups <- check_groups(groups, x, num_samples, options, call)
    strata <- check_strata(
      strata, x, num_samples, permuted, input = options$input, call = call
    )
    unit <- check_strata(
      unit, x, num_samples, permuted, input = options$input, arg = "unit",
      call = call
    )
    if (!is.null(options$adjust)) {
      points <- take_points(x, options$input, "x", call)
      options$adjust$covariates <- read_covariates(
        with_strata(options, strata)$adjust, x, points, options$input, call
      )
    }
    taken <- list(
      x = x, labels = as.integer(groups), names = levels(groups),
      strata = strata, unit = unit, options = options
    )
  }
  taken <- drop_groupless(taken, call)
  check_can_change(taken$labels, taken$strata, call)
  taken
}

is_two_tables <- function(x) {
  is.list(x) && !is.data.frame(x) && !is.object(x) && is.null(dim(x)) &&
    length(x) == 2
}

bind_two <- function(x, groups, strata, unit, permuted, options, call) {
  if (!is.null(groups)) {
    abort_argument(
      "{.arg groups} can't be given where {.arg x} is a list of two, which are
       the groups.",
      call
    )
  }
  given <- intersect(
    c("weights", "adjust"), names(Filter(Negate(is.null), options))
  )
  for (name in given) {
    abort_argument(
      c(
        "{.arg {name}} can't be given where {.arg x} is a list of two.",
        i = "Bind them together, and give {.arg groups}."
      ),
      call
    )
  }
  inputs <- list(
    options$input,
    input_of_query(options$input, x[[2]], x[[1]], "x[[2]]", call)
  )
  parts <- Map(function(one, input) {
    in_memory(take_points(one, input, "x", call), "x", call)
  }, x, inputs)
  sizes <- vapply(parts, function(part) nrow(part$values), 1L)
  if (sizes[[1]] != sizes[[2]]) {
    abort_argument(
      c(
        "The two of {.arg x} must have the same points.",
        x = "They have {format_count(sizes[[1]])} and
             {format_count(sizes[[2]])}."
      ),
      call
    )
  }
  for (part in parts) {
    if (is_metafeatures(part$values)) abort_no_metafeatures(call)
  }
  at <- match_order(
    known_points(parts[[2]]), known_points(parts[[1]]), words_of_two(), call
  )
  if (!is.null(at)) {
    parts[[2]]$values <- parts[[2]]$values[at, , drop = FALSE]
  }
  values <- cbind(parts[[1]]$values, parts[[2]]$values)
  samples <- lapply(parts, function(part) colnames(part$values))
  all_named <- !any(vapply(samples, is.null, NA))
  dimnames(values) <- list(
    parts[[1]]$names %||% parts[[2]]$names, if (all_named) unlist(samples)
  )
  names <- rlang::names2(x)
  names <- if (all(nzchar(names)) && anyDuplicated(names) == 0) {
    names
  } else {
    c("1", "2")
  }
  options$input <- check_input()
  list(
    x = values,
    labels = rep(1:2, vapply(parts, function(part) ncol(part$values), 1L)),
    names = names,
    strata = check_strata(strata, values, ncol(values), permuted, call = call),
    unit = check_strata(
      unit, values, ncol(values), permuted, arg = "unit", call = call
    ),
    options = options
  )
}

abort_no_metafeatures <- function(call) {
  abort_argument(
    c(
      "{.arg x} must be held in memory as a matrix, and is metafeatures.",
      i = "Use {.code as.matrix(x)} if that fits."
    ),
    call
  )
}

# Returns a factor with two levels, NA for samples in neither.
check_groups <- function(groups, x, num_samples, options, call) {
  if (is.null(groups)) {
    abort_argument(
      c(
        "{.arg groups} must say which samples are in which of two groups.",
        i = "Two matrices of the same points can be given as a list in place of
             {.arg x}."
      ),
      call
    )
  }
  groups <- droplevels(levels_of(each_value(
    x, groups, "groups", num_samples, options$input, "features", call = call
  )))
  if (nlevels(groups) != 2) {
    shown <- first_few(paste0("\"", levels(groups), "\""), nlevels(groups))
    abort_argument(
      c(
        "{.arg groups} must be of two groups.",
        x = "There {cli::qty(nlevels(groups))}{?is/are}
             {format_count(nlevels(groups))}: {shown}.",
        i = if (nlevels(groups) > 2) {
          "Samples whose group is {.code NA} are left out: compare two at a
           time, or join some by a logical vector."
        }
      ),
      call
    )
  }
  groups
}

# Drops the samples that are in neither group.
drop_groupless <- function(taken, call) {
  keep <- which(!is.na(taken$labels))
  if (length(keep) == length(taken$labels)) {
    return(taken)
  }
  options <- taken$options
  points <- in_memory(take_points(taken$x, options$input, "x", call), "x", call)
  if (is_metafeatures(points$values)) {
    abort_no_metafeatures(call)
  }
  values <- points$values[, keep, drop = FALSE]
  dimnames(values) <- list(points$names, colnames(values))
  options$input <- check_input()
  if (length(options$weights) == length(taken$labels)) {
    options$weights <- options$weights[keep]
  }
  frame <- options$adjust$covariates$frame
  if (!is.null(frame)) {
    options$adjust$covariates$frame <- frame[keep, , drop = FALSE]
    options$adjust$covariates["strata"] <- list(taken$strata[keep])
  }
  list(
    x = values, labels = taken$labels[keep], names = taken$names,
    strata = taken$strata[keep], unit = taken$unit[keep], options = options
  )
}

# If each stratum has samples of only one group, permutations within strata
# change nothing.
check_can_change <- function(labels, strata, call) {
  if (is.null(strata)) {
    return(invisible())
  }
  if (!can_change(labels, strata)) {
    abort_argument(
      c(
        "One of {.arg strata} at least must have samples of both groups.",
        x = "Each has samples of one, so that no permutation changes a group."
      ),
      call
    )
  }
}

can_change <- function(labels, strata) {
  any(tapply(labels, strata, function(of) length(unique(of)) > 1))
}

# Returns list(drawn, facts): see relabellings().
relabel_groups <- function(labels, taken, samples, designs, permutations,
                           call = caller_env()) {
  unit <- taken$unit[samples]
  values <- t(labels)
  exchange <- exchange_of(
    values, taken$strata[samples], unit, do.call(cbind, as.list(designs)), call
  )
  if (exchange$kind == "units") {
    check_group_sizes(
      labels[!duplicated(unit)], taken$names, NULL, call, "units"
    )
  }
  # Residuals differ, so that no two units have the same.
  relabellings(
    exchange, permutations, if (is.null(designs)) values,
    if (is.null(designs)) same_classes else identical, "groups", call
  )
}

# Few samples of one group in a stratum determine the difference of the groups
# badly. Their number counts as n1 n2 / (n1 + n2) in each stratum, the inverse
# of the variance of the difference. Two groups of 6 without strata have 3.
tell_few_in_strata <- function(labels, strata) {
  if (is.null(strata)) {
    return(invisible())
  }
  sizes <- table(strata, labels)
  too_few <- sum(sizes[, 1] * sizes[, 2] / rowSums(sizes)) < fewest_in_strata
  # What is left of the samples to compare the groups' spreads.
  left <- 1 - sum(sizes > 0) / length(labels)
  if (too_few) {
    cli::cli_inform(
      "P-values may be too small, because few samples of both groups are in the
       same of {.arg strata}.",
      class = "fsknn_few_in_strata"
    )
  } else if (left < least_left_in_strata) {
    cli::cli_inform(
      "P-values of points are too small if the groups' spreads differ, because
       the {.arg strata} are small.",
      class = "fsknn_few_in_strata"
    )
  }
}

fewest_in_strata <- 3

least_left_in_strata <- 0.75

fewest_in_group <- 3L

# `designs` has the covariates of each group, or NULL. `of` are the samples, or
# the units.
check_group_sizes <- function(labels, names, designs, call, of = "samples") {
  sizes <- tabulate(labels, 2)
  covariates <- max(0L, vapply(designs, NCOL, 1L))
  fewest <- fewest_in_group + covariates
  if (all(sizes >= fewest)) {
    return(invisible())
  }
  abort_argument(
    c(
      "Each group must have at least {fewest} {of}.",
      x = "{.val {names[[1]]}} has {sizes[[1]]}, {.val {names[[2]]}} has
           {sizes[[2]]}.",
      i = if (covariates > 0) {
        "These are {fewest_in_group}, and one for each of
         {tally(covariates, \"covariate\")}."
      }
    ),
    call
  )
}

# --- values for permutations -------------------------------------------------

# Makes values exchangeable under the null hypothesis that the groups differ at
# most in each point's mean and spread. It removes the difference of means and
# equalises the spreads, which leaves correlations within a group unchanged.
# `weights` are those of samples, or NULL, and `kind` is their kind. Without
# strata, it returns values to permute. With strata, their means stay where they
# are, and it returns a list:
#   level      the mean of each point in the stratum of each sample
#   residuals  the distances from it, with the same spread in both groups, which
#              are permuted
#   spreads    the spread of each point in each group (column)
# A sample that moves to the other group takes the spread of its new group. So
# the strata's means are as large beside it as they were in the data.
standardise_groups <- function(values, labels, strata = NULL, weights = NULL,
                               kind = NULL) {
  counts <- counts_of_weights(weights, kind, ncol(values))
  weights <- weights %||% counts
  # Only proportions matter.
  weights <- weights / mean(weights)
  storage.mode(values) <- "double"
  # The scale does not matter: the result is divided by its spread.
  values <- values / unit_of_rows(values)
  strata <- strata %||% rep(1L, ncol(values))
  strata <- match(strata, unique(strata))
  in_second <- as.double(labels == 2)
  away <- in_second - as.vector(weighted_by(strata, weights, t(in_second)))
  without <- function(precision) {
    difference <- ((values * precision) %*% (away * weights)) /
      (precision %*% (weights * away^2))
    values - as.vector(difference) %o% in_second
  }
  moved <- without(array(1, dim(values)))
  level <- weighted_by(strata, weights, moved)
  if (max(strata) == 1) {
    spreads <- group_spreads(moved - level, labels, strata, weights, counts)
    return((moved - level) / spreads$groups[, labels])
  }
  spreads <- spreads_in_strata(values, labels, strata, weights)
  # The difference in a noisy stratum is known less well.
  precision <- 1 / spreads$strata[, strata]
  spreads <- spreads$groups
  moved <- without(precision)
  # In a stratum, the samples of a noisy group say less about its level.
  level <- weighted_by(strata, weights, moved, 1 / spreads[, labels]^2)
  list(
    level = level, residuals = (moved - level) / spreads[, labels],
    spreads = spreads
  )
}

# Spreads are compared by the differences of a group's samples in one stratum.
# Distances from the stratum's mean would depend on the other group's spread.
spreads_in_strata <- function(values, labels, strata, weights) {
  parts <- lapply(1:2, function(group) {
    at <- which(labels == group)
    of <- match(strata[at], unique(strata[at]))
    design <- outer(of, seq_len(max(of))[-1], `==`) + 0
    part <- free_of_group(values[, at, drop = FALSE], design, weights[at])
    list(values = part$values, strata = strata[at][part$like])
  })
  sizes <- vapply(parts, function(part) ncol(part$values), 1L)
  group_spreads(
    do.call(cbind, lapply(parts, `[[`, "values")), rep(1:2, sizes),
    unlist(lapply(parts, `[[`, "strata")), rep(1, sum(sizes)),
    num_strata = max(strata)
  )
}

# The variance of a sample is proportional to 1 / weight if weights are
# precisions. Its weighted square then counts as one, and otherwise as its
# weight.
counts_of_weights <- function(weights, kind, num_samples) {
  if (is.null(weights) || identical(kind, "precision")) {
    return(rep(1, num_samples))
  }
  weights / mean(weights)
}

# Returns the residuals of each group, with a spread of 1. Whole units of them
# are permuted if there are covariates, among which are the strata. Isolated
# points have no spread.
residuals_of_groups <- function(values, labels, designs, strata, weights,
                                kind = NULL) {
  storage.mode(values) <- "double"
  values <- values / unit_of_rows(values)
  weights <- weights %||% rep(1, ncol(values))
  for (group in 1:2) {
    at <- which(labels == group)
    fit <- stats::lm.wfit(
      cbind(1, designs[[group]][at, ]), t(values[, at]), weights[at]
    )
    values[, at] <- t(fit$residuals)
  }
  equal <- rep(1, ncol(values))
  strata <- strata %||% equal
  strata <- match(strata, unique(strata))
  # Residuals move with their weights.
  precision <- if (identical(kind, "precision")) weights / mean(weights)
  spreads <- group_spreads(
    values, labels, strata, precision %||% equal, equal
  )
  values / spreads$groups[, labels]
}

# Residuals of covariates depend on each other, since there are fewer degrees of
# freedom than samples. These are as many uncorrelated residuals of each group
# as there are degrees of freedom, with the same spread in both groups:
# permutations of normal ones are exact for known spreads (Theil's BLUS
# residuals are of this kind). Returns
#   values   their correlations without centring are those of the residuals
#   labels, strata   of the samples that they are most like
free_residuals <- function(values, labels, designs, strata, weights, call) {
  storage.mode(values) <- "double"
  values <- values / unit_of_rows(values)
  parts <- lapply(1:2, function(group) {
    at <- which(labels == group)
    part <- free_of_group(
      values[, at, drop = FALSE], designs[[group]][at, , drop = FALSE],
      weights[at] %||% rep(1, length(at))
    )
    c(part, list(labels = rep(group, length(part$like)),
                 strata = strata[at][part$like]))
  })
  both <- function(what) c(parts[[1]][[what]], parts[[2]][[what]])
  labels <- both("labels")
  strata <- both("strata")
  if (!is.null(strata) && !can_change(labels, strata)) {
    abort_argument(
      c(
        "The covariates leave nothing to permute within {.arg strata}.",
        x = "No stratum has residuals of both groups: one sample of a group is
             explained by the stratum.",
        i = "Leave out {.arg adjust}, or join some strata."
      ),
      call
    )
  }
  values <- cbind(parts[[1]]$values, parts[[2]]$values)
  equal <- rep(1, length(labels))
  spreads <- group_spreads(
    values, labels,
    if (is.null(strata)) equal else match(strata, unique(strata)), equal
  )
  values <- values / spreads$groups[, labels]
  list(values = values, labels = labels, strata = strata)
}

# Returns uncorrelated residuals of one group, each of which is most like that
# of one sample (`like`).
free_of_group <- function(values, design, weights) {
  root <- sqrt(weights)
  design <- qr(root * cbind(1, design))
  rooted <- values * rep(root, each = nrow(values))
  left <- t(qr.resid(design, t(rooted)))
  rest <- qr.Q(design, complete = TRUE)[, -seq_len(design$rank), drop = FALSE]
  if (ncol(rest) == 0) {
    return(list(values = values[, 0, drop = FALSE], like = integer()))
  }
  like <- independent_rows(rest)
  nearest <- svd(rest[like, , drop = FALSE])
  free <- left %*% (rest %*% nearest$v %*% t(nearest$u))
  # A stratum without any spread has residuals of rounding errors.
  free[abs(free) <= 1e-12 * largest_of_rows(rooted)] <- 0
  list(values = free, like = like)
}

# Returns as many rows as there are columns: one after the other, the first of
# those that are farthest from the span of the rows before.
independent_rows <- function(rows) {
  like <- integer()
  left <- rows
  for (time in seq_len(ncol(rows))) {
    squares <- rowSums(left^2)
    at <- which(squares >= max(squares) - 1e-9)[[1]]
    like <- c(like, at)
    along <- left[at, ] / sqrt(squares[[at]])
    left <- left - (left %*% along) %*% along
  }
  sort(like)
}

# Estimates spreads of each point (row) by its residuals. The result has
#   groups   the standard deviation in each group (column), up to a factor
#   strata   a moderated variance in each stratum (column)
# A group may have more samples of a noisy stratum. So the variance is modelled
# as a factor of the group times a factor of the stratum. Both are those of
# maximum likelihood for normal residuals, but each group has one more sample of
# the variance of both. Without it, a point that is constant in one group of the
# only stratum with both groups would have an infinite ratio. With one stratum,
# the first is the root mean square. `strata` are numbered from 1. The weighted
# square of a sample counts as `counts` squares.
group_spreads <- function(left, labels, strata, weights, counts = weights,
                          num_strata = max(strata)) {
  squares <- total <- list()
  for (group in 1:2) {
    in_stratum <- outer(strata, seq_len(num_strata), `==`) * (labels == group)
    squares[[group]] <- left^2 %*% (in_stratum * weights)
    total[[group]] <- colSums(in_stratum * counts)
  }
  both <- rep(total[[1]] + total[[2]], each = nrow(left))
  # Strata of one group say nothing about the ratio.
  mixed <- rep(total[[1]] > 0 & total[[2]] > 0, each = nrow(left))
  prior <- if (num_strata > 1) prior_of_group else 0
  of_stratum <- array(1, dim(squares[[1]]))
  before <- 0
  for (time in seq_len(most_spread_steps)) {
    # Nor does a stratum without any spread.
    known <- mixed & of_stratum > 0
    sums <- vapply(1:2, function(group) {
      rowSums(replace(squares[[group]] / of_stratum, !known, 0))
    }, double(nrow(left)))
    sums <- matrix(sums, ncol = 2)
    sizes <- cbind(known %*% total[[1]], known %*% total[[2]])
    of_both <- rowSums(sums) / pmax(rowSums(sizes), 1e-300)
    of_group <- (sums + prior * of_both) / pmax(sizes + prior, 1e-300)
    # Isolated points have no spread.
    of_group[of_group == 0] <- 1
    if (prior > 0) {
      # Only the ratio is determined.
      of_group <- of_group / sqrt(of_group[, 1] * of_group[, 2])
    }
    if (max(abs(log(of_group) - before)) < 1e-9) {
      break
    }
    before <- log(of_group)
    of_stratum <- (squares[[1]] / of_group[, 1] +
                     squares[[2]] / of_group[, 2]) / pmax(both, 1)
  }
  # Few samples may have a variance near 0. That of all samples counts as some
  # more of them.
  of_all <- rowSums(of_stratum * both) / max(1, sum(counts))
  of_all[of_all == 0] <- 1
  list(
    groups = sqrt(of_group),
    strata = (of_stratum * both + of_all * prior_samples) /
      (both + prior_samples)
  )
}

# The steps converge in a few, because groups share most strata.
most_spread_steps <- 200

prior_samples <- 4

prior_of_group <- 1

# Replaces each value by the weighted mean of its row over the samples of its
# stratum.
weighted_by <- function(strata, weights, values, precision = 1) {
  precision <- array(precision, dim(values)) * rep(weights, each = nrow(values))
  for (stratum in unique(strata)) {
    at <- which(strata == stratum)
    of <- precision[, at, drop = FALSE]
    values[, at] <- rowSums(values[, at, drop = FALSE] * of) / rowSums(of)
  }
  values
}
