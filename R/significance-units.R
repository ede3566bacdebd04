# Whole units, such as donors with several samples each, in permutations. What
# is exchanged are *items*: samples, units of any size with one value, or units
# of equal size with the values of their samples. Resamples and folds, which
# take whole units, are in R/significance-resamples.R and R/predict-folds.R.

# Returns list(kind, num_units, item, position, pool):
#   kind      "samples", "units" or "blocks"
#   item      the item of each sample
#   position  the place of each sample in its item, 1 for all with one value
#   pool      for each item, the number of the items that it is exchanged with
# `values` has a row for each outcome, over the samples that count. `strata` and
# `unit` are from check_strata(), or NULL. `covariates` has a row for each
# sample, or is NULL.
exchange_of <- function(values, strata = NULL, unit = NULL, covariates = NULL,
                        call = caller_env()) {
  num_samples <- ncol(values)
  strata <- strata %||% rep(1L, num_samples)
  exchange <- list(
    kind = "samples", item = seq_len(num_samples),
    position = rep(1L, num_samples), pool = strata
  )
  if (is.null(unit)) {
    return(exchange)
  }
  unit <- match(unit, unique(unit))
  exchange$num_units <- max(unit)
  exchange$item <- unit
  exchange$pool <- of_units(strata, unit, "strata", call)
  is_constant <- all(constant_within(values, unit))
  exchange$kind <- if (is_constant) "units" else "blocks"
  if (exchange$kind == "units") {
    check_units_covariates(covariates, unit, call)
  } else {
    exchange$position <- place_in_unit(unit)
    exchange$pool <- combined(exchange$pool, tabulate(unit))
  }
  check_units_can_permute(exchange, call)
  exchange
}

# Returns NULL, or the unit of each sample that counts, numbered from 1.
units_of_search <- function(unit, search, x, for_permutations = TRUE,
                            call = caller_env()) {
  points <- search$points
  unit <- check_strata(
    unit, x, points$num_given %||% ncol(points$values), for_permutations,
    input = search$options$input, arg = "unit", call = call
  )
  if (!is.null(unit)) {
    unit <- unit[samples_that_count(points)]
    match(unit, unique(unit))
  }
}

# Returns whether each row has one value in each unit. Sums that differ by
# rounding are equal, and so are missing values.
constant_within <- function(values, unit) {
  first <- values[, match(unit, unit), drop = FALSE]
  near <- abs(values - first) <= 1e-9 * largest_of_rows(values)
  same <- near %in% TRUE | is.na(values) & is.na(first)
  rowSums(!matrix(same, nrow(values))) == 0
}

largest_of_rows <- function(values) {
  apply(abs(values), 1, function(row) max(0, row[is.finite(row)]))
}

# Returns the number of each pair of values, whole numbers from 1 on.
combined <- function(first, second) {
  both <- first + (second - 1) * as.double(max(first))
  match(both, unique(both))
}

place_in_unit <- function(unit) {
  position <- integer(length(unit))
  position[order(unit)] <- sequence(tabulate(unit))
  position
}

# Returns the value of each unit, which all of its samples must have.
of_units <- function(values, unit, arg, call, samples = "samples") {
  first <- match(seq_len(max(unit)), unit)
  mixed <- which(values != values[first][unit])
  if (length(mixed) > 0) {
    count <- length(unique(unit[mixed]))
    abort_argument(
      c(
        "All {samples} of one {.arg unit} must have one value of {.arg {arg}}.",
        x = "They have several in {tally(count, \"unit\")}."
      ),
      call
    )
  }
  values[first]
}

check_units_covariates <- function(covariates, unit, call) {
  if (length(covariates) == 0 || all(constant_within(t(covariates), unit))) {
    return(invisible())
  }
  abort_argument(
    c(
      "With {.arg unit}, the covariates in {.arg adjust} must be constant within
       units.",
      x = "Permutations give all values of one unit to another, which may have
           another number of samples.",
      i = "Give the mean of a covariate in each unit."
    ),
    call
  )
}

check_units_can_permute <- function(exchange, call) {
  if (anyDuplicated(exchange$pool) > 0) {
    return(invisible())
  }
  blocks <- exchange$kind == "blocks"
  abort_argument(
    c(
      "Two units{if (blocks) \" of the same size\"} at least must be in the same
       stratum, so that something can be permuted.",
      i = if (blocks) {
        "Give the units as {.arg strata} to permute values within them."
      }
    ),
    call
  )
}

# The means of units lose degrees of freedom by the means and covariates of
# groups that were removed from `values`, and once more when the groups are
# permuted. The values within units lose hardly any. So permuted data would have
# too small differences between units, and too small correlations. This makes
# the means of units as variable after a permutation as they were.
restore_units <- function(values, unit, strata, weights, designs) {
  unit <- match(unit, unique(unit))
  strata <- strata %||% rep(1L, length(unit))
  weights <- weights %||% rep(1, length(unit))
  num_strata <- length(unique(strata))
  removed <- if (is.null(designs)) {
    num_strata + 1
  } else {
    2 + sum(vapply(designs, ncol, 1L))
  }
  freedom <- max(1, max(unit) - removed)
  by <- sqrt((max(unit) - num_strata) / freedom)
  away <- weighted_by(unit, weights, values) -
    weighted_by(strata, weights, values)
  values + (by - 1) * away
}

# --- relabellings ------------------------------------------------------------

# Returns list(drawn, facts). `drawn` is an integer matrix: in each column, the
# sample whose value each sample gets. If there are few distinct relabellings of
# `values`, these are all but the observed one. Otherwise R's generator draws
# them. Without `values`, all items differ. `facts` are for prints, and have the
# smallest possible p-value of each outcome, by `is_same` of two vectors.
relabellings <- function(exchange, permutations, values = NULL,
                         is_same = identical, arg = "outcome",
                         call = caller_env()) {
  # Each integer is later converted to a double as well.
  check_permutations_fit(permutations, 12 * length(exchange$item), call)
  items <- all_arrangements(
    exchange$pool, types_of_items(exchange, values), permutations
  )
  is_fixed <- !is.null(items) && ncol(items) == 0
  has_units <- !is.null(exchange$num_units)
  if (is_fixed && has_units) {
    abort_argument(
      c(
        "Permutations of units must change {.arg {arg}}.",
        x = "All units that are exchanged have the same values.",
        i = "Give the units as {.arg strata} to permute values within them."
      ),
      call
    )
  }
  # Without units, values that no permutation changes have a p-value of 1.
  all <- !is.null(items) && !is_fixed
  if (!all) {
    items <- draw_permutations(
      length(exchange$pool), permutations, exchange$pool, call
    )
  }
  drawn <- samples_of_items(items, exchange)
  values <- values %||% t(exchange$item)
  list(drawn = drawn, facts = list(
    num = ncol(drawn), all = all, kind = exchange$kind,
    num_units = exchange$num_units,
    smallest_p = if (all || has_units) {
      smallest_p(drawn, values, is_same)
    } else {
      rep(permutation_p(0, permutations), nrow(values))
    }
  ))
}

# Returns the sample that each sample gets its value from.
samples_of_items <- function(items, exchange) {
  if (exchange$kind == "samples") {
    return(items)
  }
  item <- exchange$item
  before <- cumsum(c(0L, tabulate(item)))
  at <- before[items[item, ]] + exchange$position
  array(order(item)[at], c(length(item), ncol(items)))
}

# Returns a number for each item, equal if all outcomes have equal values.
types_of_items <- function(exchange, values) {
  num_items <- length(exchange$pool)
  if (is.null(values)) {
    return(seq_len(num_items))
  }
  values <- round(values / pmax(largest_of_rows(values), 1e-300), 9)
  of_samples <- Reduce(combined, lapply(seq_len(nrow(values)), function(row) {
    match(values[row, ], unique(values[row, ]))
  }))
  type <- rep(1L, num_items)
  for (position in unique(exchange$position)) {
    here <- which(exchange$position == position)
    here <- here[!duplicated(exchange$item[here])]
    at_position <- rep(1L, num_items)
    at_position[exchange$item[here]] <- of_samples[here] + 1L
    type <- combined(type, at_position)
  }
  type
}

# Returns all distinct arrangements of the items' types but the observed one, an
# arrangement in each column. Returns NULL if there are more than `most`.
all_arrangements <- function(pool, type, most) {
  groups <- unname(split(seq_along(pool), pool))
  of_group <- vapply(groups, function(group) {
    counts <- tabulate(match(type[group], unique(type[group])))
    lfactorial(length(group)) - sum(lfactorial(counts))
  }, 0)
  if (sum(of_group) > log(most + 1) + 1e-9) {
    return(NULL)
  }
  items <- matrix(seq_along(pool))
  for (group in groups[of_group > 1e-9]) {
    orders <- distinct_orders(type[group])
    times <- ncol(items)
    items <- items[, rep(seq_len(times), ncol(orders)), drop = FALSE]
    items[group, ] <- group[orders[, rep(seq_len(ncol(orders)), each = times)]]
  }
  changed <- colSums(matrix(type[items] != type, nrow(items))) > 0
  items[, changed, drop = FALSE]
}

# Returns an order of the items in each column, one for each distinct
# arrangement of their types.
distinct_orders <- function(type) {
  orders <- matrix(0L, length(type), 1)
  for (one in unique(type)) {
    from <- which(type == one)
    parts <- lapply(seq_len(ncol(orders)), function(at) {
      free <- which(orders[, at] == 0L)
      places <- utils::combn(length(free), length(from))
      part <- matrix(orders[, at], length(type), ncol(places))
      column <- rep(seq_len(ncol(places)), each = length(from))
      part[cbind(free[places], column)] <- from
      part
    })
    orders <- do.call(cbind, parts)
  }
  orders
}

# --- the smallest p-value ----------------------------------------------------

# Returns, for each row of `values`, the smallest p-value that the relabellings
# can give. Those that are the same as the observed values count as extreme in
# any data. `is_same` compares two vectors.
smallest_p <- function(drawn, values, is_same) {
  apply(values, 1, function(row) {
    same <- vapply(seq_len(ncol(drawn)), function(at) {
      is_same(row, row[drawn[, at]])
    }, NA)
    permutation_p(sum(same), ncol(drawn))
  })
}

# With |r|, values of the other sign are the same, such as two swapped groups.
same_for_sign <- function(sign, ranked = FALSE) {
  function(row, other) {
    if (!identical(is.na(row), is.na(other))) {
      return(FALSE)
    }
    row <- row[!is.na(row)]
    other <- other[!is.na(other)]
    if (ranked) {
      row <- rank(row)
      other <- rank(other)
    }
    near <- 1e-9 * max(abs(row))
    both <- row + other
    all(abs(row - other) <= near) ||
      sign == "absolute" && max(both) - min(both) <= 2 * near
  }
}

# Classes with other names are the same classes.
same_classes <- function(row, other) {
  identical(match(row, unique(row)), match(other, unique(other)))
}

# Returns "1,000 permutations", or "all 70 relabellings of 8 units". `facts` is
# from relabellings().
describe_relabelling <- function(facts) {
  paste0(
    if (facts$all) {
      paste("all", tally(facts$num + 1, "relabelling"))
    } else {
      tally(facts$num, "permutation")
    },
    if (!is.null(facts$num_units)) {
      paste0(
        " of ", tally(facts$num_units, "unit"),
        if (facts$kind == "blocks") " as blocks"
      )
    }
  )
}

# Returns a line for prints, or NULL. Most p-values of many permutations of
# samples can be as small as 1 / (their number + 1), which is not worth a line.
describe_smallest_p <- function(facts) {
  if (is.null(facts) || facts$num == 0 ||
        !facts$all && is.null(facts$num_units)) {
    return(NULL)
  }
  paste0(
    "Smallest possible p-value: ",
    format(max(facts$smallest_p), digits = 3),
    if (!is.null(facts$num_units)) " (by permutation of units)"
  )
}
