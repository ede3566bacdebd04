# The outcomes of one call may need several searches: outcomes that lack values
# are compared over other samples, factors of three or more levels have no
# direction, and others have another statistic. Each search is a *part*.

# Calls ask(part) for each part of the outcomes, and returns one table.
# `outcomes` is from outcomes_given(), and `search` has points and options that
# were read. A part is list(outcome, options, is_factor, levels, label).
# `outcome` is for new_search(). `options` leave out the samples that lack a
# value, by weights of 0. `levels` has the level of each sample that counts, for
# a factor of three or more levels.
for_parts <- function(outcomes, search, ask, call) {
  facts <- Map(
    facts_of_outcome, outcomes, names(outcomes),
    MoreArgs = list(search = search, call = call)
  )
  tell_left_out_samples(facts, call)
  facts <- with_one_statistic(facts, search$options)
  parts <- split(seq_along(outcomes), part_of_each(facts, search$options, call))
  tables <- lapply(parts, function(at) {
    first <- facts[[at[[1]]]]
    part <- list(
      outcome = outcomes[at],
      is_factor = first$is_factor, levels = first$levels,
      options = without_samples(search, first$missing, call)
    )
    # Counts in x are reported once.
    part$options$counts_known <- isTRUE(part$options$counts_known) ||
      at[[1]] > 1
    if (!is.null(first$levels)) {
      check_levels(first$of, part$options, first$arg, call)
      part$label <- names(outcomes)[at]
      part$outcome <- first$indicators
    }
    ask(part)
  })
  if (length(tables) == 1) {
    return(tables[[1]])
  }
  bind_nearest(tables, names(outcomes), parts)
}

# Returns what decides about the part of an outcome. `indicators` are those of
# all levels but the first of three or more.
facts_of_outcome <- function(values, label, search, call) {
  points <- search$points
  options <- search$options
  arg <- if (label == "outcome") label else paste0("outcome$", label)
  check_outcome_type(values, arg, call, levels = "two or more")
  values <- match_names(values, points$features, arg, "features", call)
  check_outcome_fits(values, arg, search, call)
  weights <- match_names(
    options$weights, points$features, "weights", "features", call
  )
  counts <- if (length(weights) == length(values)) {
    weights > 0
  } else {
    rep(TRUE, length(values))
  }
  # An index has only the samples that it was made with.
  can_leave_out <- options$na != "pairwise" && !isTRUE(options$of_index)
  missing <- is.na(values) & counts
  missing <- if (can_leave_out) which(missing) else integer()
  facts <- list(label = label, arg = arg, missing = unname(missing))
  if (can_leave_out && all(is.na(values[counts]))) {
    abort_argument(
      c("{.arg {arg}} must vary.", x = "All values that count are missing."),
      call
    )
  }
  facts$is_factor <- is.factor(values) || is_text(values) || is.logical(values)
  # Such a factor has no studentized statistic, but the others of the call have.
  facts$has_single <- facts$is_factor &&
    any(table(as.character(values[counts])) < 2)
  if (is.factor(values) || is_text(values)) {
    kept <- which(counts & !is.na(values))
    of <- droplevels(levels_of(values)[kept])
    if (nlevels(of) > 2) {
      facts$of <- of
      facts$levels <- as.integer(of)
      facts$indicators <- lapply(
        rlang::set_names(levels(of)[-1]),
        function(level) as.double(levels_of(values) == level)
      )
    }
  }
  facts
}

tell_left_out_samples <- function(facts, call) {
  counts <- vapply(facts, function(one) length(one$missing), 0L)
  if (all(counts == 0)) {
    return(invisible())
  }
  some <- which(counts > 0)
  words <- paste0(
    vapply(facts[some], `[[`, "", "label"), ": ", format_count(counts[some])
  )
  cli::cli_inform(
    c(
      "{cli::qty(length(some))}{?An outcome is/Outcomes are} missing for some
       samples, which are left out for {?it/each by itself}.",
      i = "Samples: {escape_braces(first_few(words))}."
    ),
    class = "fsknn_samples_left_out"
  )
}

# Outcomes of one family have one statistic.
with_one_statistic <- function(facts, options) {
  all_factors <- all(vapply(facts, function(one) {
    one$is_factor && !one$has_single
  }, NA))
  lapply(facts, function(one) {
    one$is_factor <- one$is_factor &&
      !identical(options$statistic, "correlation") &&
      (all_factors || options$family != "call" || !is.null(options$statistic))
    one
  })
}

# Returns the number of the part of each outcome.
part_of_each <- function(facts, options, call) {
  is_factor <- vapply(facts, `[[`, NA, "is_factor")
  has_levels <- !vapply(facts, function(one) is.null(one$levels), NA)
  missing <- vapply(facts, function(one) toString(one$missing), "")
  has_single <- vapply(facts, `[[`, NA, "has_single")
  key <- paste(
    is_factor, missing, ifelse(has_levels, seq_along(facts), ""),
    is_factor & has_single & is.null(options$statistic)
  )
  of <- match(key, unique(key))
  if (options$family == "call" && max(of) > 1) {
    abort_argument(
      c(
        "{.code family = \"call\"} permutes all outcomes together, with one
         statistic.",
        x = if (any(has_levels)) {
          "A factor of three or more levels has a statistic of its own."
        } else if (any(missing != missing[[1]])) {
          "They must lack a value for the same samples, if for any."
        } else {
          "With {.code statistic = \"studentized\"}, give factors and numbers
           in calls of their own."
        }
      ),
      call
    )
  }
  of
}

# Returns options with weights of 0 for these samples.
without_samples <- function(search, missing, call) {
  options <- search$options
  if (length(missing) == 0) {
    return(options)
  }
  points <- search$points
  weights <- match_names(
    options$weights, points$features, "weights", "features", call
  )
  options$weights <- replace(
    weights %||% rep(1, ncol(points$values)), missing, 0
  )
  options
}

# Checks a factor of three or more levels.
check_levels <- function(of, options, arg, call) {
  levels <- levels(of)
  why <- if (options$metric$name != "pearson") {
    "With three or more levels, the metric must be {.val pearson}, not
     {.val {options$metric$name}}."
  } else if (options$na == "pairwise") {
    "With three or more levels, {.arg na} must not be {.val pairwise}."
  } else if (options$sign != "absolute") {
    "Three or more levels have no direction: use
     {.code sign = \"absolute\"}."
  } else if (length(levels) == length(of)) {
    "A level must have more than one sample."
  }
  if (is.null(why)) {
    return(invisible())
  }
  abort_argument(
    c(
      "{.arg {arg}} can't be used as a factor of so many levels.",
      x = "It has {words_of_levels(levels)}.", x = why,
      cures_of_levels(of, levels)
    ),
    call
  )
}

# --- one table ---------------------------------------------------------------

# Returns one table of all outcomes, in their order. `parts` has the numbers of
# the outcomes of each table.
bind_nearest <- function(tables, labels, parts) {
  names <- unique(unlist(lapply(tables, names)))
  order <- c(
    "point", "rank", "name", "index", "distance", "correlation", "statistic",
    "p_value", "p_adjusted", "fdr"
  )
  names <- intersect(order, names)
  plain <- lapply(tables, function(table) {
    table <- as.data.frame(table)
    if (is.null(table$statistic)) table$statistic <- table$correlation
    table[setdiff(names, names(table))] <- NA_real_
    table[intersect(names, names(table))]
  })
  all <- do.call(rbind, unname(plain))
  all <- all[order(match(all$point, labels)), ]
  rownames(all) <- NULL
  back <- order(unlist(parts))
  facts <- lapply(tables, searched_of)
  nearest <- lapply(facts, `[[`, "nearest")
  relabelled <- lapply(nearest, `[[`, "relabelled")
  num <- vapply(relabelled, function(of) of$num %||% 0L, 0L)
  one <- facts[[1]]
  one$num_rows <- nrow(all)
  one$seconds <- sum(vapply(facts, function(of) of$seconds, 0))
  num_features <- range(vapply(facts, function(of) of$num_features, 0L))
  one$nearest <- list(
    to = tally(length(labels), "outcome"),
    features = if (num_features[[1]] < num_features[[2]]) {
      paste(num_features[[1]], "to", tally(num_features[[2]], "feature"))
    },
    relabelled = relabelled[[which.max(num)]],
    notes = unique(unlist(lapply(nearest, `[[`, "notes")))
  )
  if (any(num > 0)) {
    smallest <- unlist(lapply(relabelled, `[[`, "smallest_p"))[back]
    one$nearest$relabelled$smallest_p <- attr(all, "smallest_p") <- smallest
    null <- lapply(tables, function(table) {
      of <- attr(table, "null")
      rbind(of, matrix(NA_real_, max(num) - nrow(of), ncol(of)))
    })
    attr(all, "null") <- do.call(cbind, unname(null))[, back, drop = FALSE]
  }
  attr(all, "num_covariates") <- attr(tables[[1]], "num_covariates")
  attr(all, "left_out") <- attr(tables[[1]], "left_out")
  structure(
    all, class = c("fsknn_nearest", "data.frame"), searched = new_searched(one)
  )
}
