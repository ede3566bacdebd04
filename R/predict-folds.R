# Folds of a prediction: which points are left out together, and what is learned
# from the others.

# Returns a factor, or NULL if each point is its own fold. All random numbers
# are drawn here.
check_folds <- function(folds, strata, unit, x, input, num_points, has_query,
                        call = caller_env()) {
  if (has_query && !(is.null(folds) && is.null(strata) && is.null(unit))) {
    abort_argument(
      "{.arg folds}, {.arg strata} and {.arg unit} are of points of {.arg x}
       that are left out: there are none where {.arg query} has the points to
       predict.",
      call
    )
  }
  by_number <- length(folds) == 1 && is.numeric(folds)
  if (!is.null(strata) && !by_number) {
    abort_argument(
      "{.arg strata} are for {.arg folds} that are drawn: give their number.",
      call
    )
  }
  unit <- check_fold_units(unit, x, input, num_points, call)
  if (is.null(folds)) {
    return(unit)
  }
  if (by_number) {
    most <- if (is.null(unit)) num_points else nlevels(unit)
    count <- check_whole_number(
      folds, "folds", 2, most,
      hint = if (!is.null(unit)) "A fold has one {.arg unit} at least.",
      call = call
    )
    return(draw_folds(count, strata, unit, x, input, num_points, call))
  }
  folds <- given_values(x, folds, "folds", input, "points", call = call)
  folds <- as_blocks(folds, num_points, "folds", call = call)
  if (nlevels(folds) < 2) {
    abort_argument(
      c(
        "{.arg folds} must have at least two folds.",
        x = "All points are in fold {.val {levels(folds)}}."
      ),
      call
    )
  }
  if (!is.null(unit)) {
    of_units(as.integer(folds), as.integer(unit), "folds", call, "points")
  }
  folds
}

# Returns a factor without unused levels, or NULL.
check_fold_units <- function(unit, x, input, num_points, call) {
  if (is.null(unit)) {
    return(NULL)
  }
  unit <- given_values(x, unit, "unit", input, "points", call = call)
  unit <- as_blocks(unit, num_points, "unit", call = call)
  if (nlevels(unit) < 2) {
    abort_argument(
      c(
        "{.arg unit} must have at least two units.",
        x = "All points are of unit {.val {levels(unit)}}."
      ),
      call
    )
  }
  unit
}

# Assigns the points (or units) of each stratum, in random order, to the folds
# in turn, one stratum after another. So the folds differ by at most one point
# (or unit), within a stratum and in total.
draw_folds <- function(count, strata, unit, x, input, num_points, call) {
  unit <- if (is.null(unit)) seq_len(num_points) else as.integer(unit)
  groups <- if (is.null(strata)) {
    rep(1L, num_points)
  } else {
    check_strata(
      strata, x, num_points, input = input, of = "points", call = call
    )
  }
  groups <- of_units(groups, unit, "strata", call, "points")
  drawn <- draw_permutations(length(groups), 1, groups)
  folds <- integer(length(groups))
  folds[drawn[order(groups), 1]] <- rep_len(seq_len(count), length(groups))
  factor(folds[unit], seq_len(count))
}

check_select <- function(select, options, call = caller_env()) {
  if (is.null(select)) {
    return(invisible())
  }
  if (!is.function(select)) {
    given <- describe_type(select)
    abort_argument(
      "{.arg select} must be a function of points and their labels, not
       {given}.",
      call
    )
  }
  if (!is.null(options$long)) {
    abort_argument(
      "With {.arg select} each fold is a search of its own: there is no
       {.arg BPPARAM} and no {.arg checkpoint} for them together.",
      call
    )
  }
}

# Runs one search for the neighbours among all other points, or among those of
# other folds.
find_donors <- function(x, query, k, options, folds, call = caller_env()) {
  if (nlevels(folds) == length(folds)) {
    folds <- NULL # a point is never its own neighbour
  }
  search <- new_search(
    x, options, query, k = k, block = folds,
    between = if (is.null(folds)) FALSE else "together", call = call
  )
  found <- run_search(search, call)
  found$names <- (search$queries %||% search$points)$names
  found$searched <- new_searched(facts_of_search(search))
  found
}

# Runs a search for each fold, with the features that `select` makes of the
# other points.
find_selected <- function(x, query, k, options, folds, labels, select,
                          call = caller_env()) {
  started <- Sys.time()
  read <- read_search(x, query, options, FALSE, call)
  # Weights are matched now, because features are later selected by number.
  options["weights"] <- list(match_names(
    options$weights, read$points$features, "weights", "features", call
  ))
  points <- matrix_in_memory(read$points, "x", call)
  queries <- if (!is.null(query)) matrix_in_memory(read$queries, "query", call)
  transposed <- isTRUE(read$points$transposed)
  num_points <- nrow(points)
  if (is.null(query)) {
    folds <- folds %||% factor(seq_len(num_points))
    members <- unname(split(seq_len(num_points), folds))
  } else {
    members <- list(integer())
  }
  count <- nrow(queries %||% points)
  found <- list(
    index = matrix(NA_integer_, count, k),
    distance = matrix(NA_real_, count, k),
    names = (read$queries %||% read$points)$names,
    features = vector("list", length(members))
  )
  bar <- new_split_bar(options$progress, count)
  on.exit(end_bar(bar))
  tell_if_counts(x, read$points, options$metric)
  if (!is.null(query)) {
    tell_if_counts(query, read$queries, options$metric, "query")
  }
  options[c("progress", "verbose", "input", "counts_known")] <- list(
    FALSE, FALSE, check_input(), TRUE
  )
  for (fold in seq_along(members)) {
    out <- members[[fold]]
    kept <- setdiff(seq_len(num_points), out)
    rows <- if (is.null(query)) out else seq_len(count)
    learned <- learn_fold(
      points[kept, , drop = FALSE],
      if (is.null(query)) points[out, , drop = FALSE] else queries,
      labels[kept], select, transposed, options$weights, call
    )
    options["weights"] <- list(learned$weights)
    search <- new_search(
      learned$points, options, learned$queries, k = k, call = call
    )
    options["weights"] <- list(learned$all_weights)
    nearest <- run_search(search, call)
    found$index[rows, ] <- kept[nearest$index]
    found$distance[rows, ] <- nearest$distance
    found$features[fold] <- list(learned$features)
    step_bar(bar, length(rows))
  }
  found$searched <- new_searched(facts_of_verb(
    options, points, started, num_queries = NROW(queries)
  ))
  found
}

matrix_in_memory <- function(points, arg, call) {
  if (!is.matrix(points$values)) {
    abort_argument(
      c(
        "With {.arg select}, {.arg {arg}} must be a plain matrix, or a container
         of one: the function gets parts of it.",
        i = "Use {.code as.matrix()} if it fits in memory."
      ),
      call
    )
  }
  values <- points$values
  if (is.null(rownames(values)) && !is.null(points$names)) {
    rownames(values) <- points$names
  }
  values
}

# Applies `select` to the remaining points. The features that it chooses, or the
# function that it returns, are then applied to these and to the points left
# out.
learn_fold <- function(points, queries, labels, select, transposed, weights,
                       call) {
  side <- function(values) if (transposed) t(values) else values
  chosen <- select(side(points), labels)
  learned <- list(weights = weights, all_weights = weights)
  if (!is.function(chosen)) {
    learned$features <- chosen
    at <- check_features(chosen, points, call)
    learned$points <- points[, at, drop = FALSE]
    learned$queries <- queries[, at, drop = FALSE]
    learned["weights"] <- list(weights[at])
    return(learned)
  }
  if (!is.null(weights)) {
    abort_argument(
      "{.arg weights} are of the features as they are, and {.arg select} made
       others.",
      call
    )
  }
  apply_to <- function(values) {
    made <- chosen(side(values))
    if (!is.matrix(made) || !is_number_like(made) ||
          nrow(side(made)) != nrow(values)) {
      given <- describe_type(made)
      abort_argument(
        c(
          "The function that {.arg select} gives must make a numeric matrix of
           as many points.",
          x = "It made {given}{if (is.matrix(made)) paste0(\" of \",
               nrow(made), \" x \", ncol(made))}."
        ),
        call
      )
    }
    side(made)
  }
  learned$points <- apply_to(points)
  learned$queries <- apply_to(queries)
  learned
}

check_features <- function(chosen, points, call) {
  count <- ncol(points)
  names <- colnames(points)
  at <- if (is.character(chosen)) {
    match(chosen, names)
  } else if (is.logical(chosen) && length(chosen) == count) {
    which(chosen)
  } else if (is.numeric(chosen) && is.null(dim(chosen))) {
    as.vector(chosen)
  }
  good <- length(at) > 0 && !anyNA(at) && all(at >= 1 & at <= count) &&
    all(at == trunc(at))
  if (!good) {
    given <- describe_value(chosen)
    abort_argument(
      c(
        "{.arg select} must give features of {.arg x}, as numbers, names or a
         logical vector, or a function.",
        x = if (is.character(chosen) && length(chosen) > 0) {
          "{.arg x} has no feature {first_few(unique(chosen[is.na(at)]))}."
        } else {
          "It gave {given}."
        }
      ),
      call
    )
  }
  as.integer(at)
}
