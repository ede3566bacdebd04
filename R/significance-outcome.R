# Outcomes: values of the samples that are not a row of the points, converted to
# one more row. Numbers are used as they are. Of two levels, the first is 0 and
# the second 1. Survival times become martingale residuals, the observed minus
# the expected events.

# Returns the numbers for `values`, one for each sample, NA if missing. Values
# of other types are returned unchanged. `design` holds covariates of a null
# model of survival, one in each column, or NULL.
as_outcome <- function(values, arg, design = NULL, weights = NULL,
                       call = caller_env()) {
  if (inherits(values, "Surv")) {
    return(martingale_residuals(values, arg, design, weights, call))
  }
  if (is.factor(values) || is_text(values)) {
    return(two_levels(levels_of(values), arg, call))
  }
  values
}

# Text is treated as factor() does. A single string is a name instead.
is_text <- function(values) {
  is.character(values) && !is.object(values) && is.null(dim(values)) &&
    length(values) != 1
}

# Returns a factor unchanged. Levels of other values are sorted in the same way
# in every locale. Whole numbers are written in full.
levels_of <- function(values) {
  if (is.factor(values)) {
    return(values)
  }
  levels <- sort(unique(values), method = "radix")
  text <- id_text(levels)
  # This is what factor() does, but without converting each value to text.
  if (is.object(values) || anyDuplicated(text) > 0) {
    return(factor(values, levels))
  }
  structure(
    match(values, levels), names = names(values), levels = text,
    class = "factor"
  )
}

# Returns 0 for the first of the two levels in use, and 1 for the second.
two_levels <- function(values, arg, call) {
  levels <- levels(droplevels(values))
  if (length(levels) == 2) {
    return(as.double(values == levels[[2]]))
  }
  abort_argument(
    c(
      "{.arg {arg}} must have two levels where it is a factor or text.",
      x = "It has {words_of_levels(levels)}.", cures_of_levels(values, levels)
    ),
    call
  )
}

words_of_levels <- function(levels) {
  shown <- first_few(paste0("\"", utils::head(levels, 3), "\""), length(levels))
  paste0(length(levels), if (length(levels) > 0) ": ", shown)
}

# Says what can be done with three or more levels. The caller has `arg`.
cures_of_levels <- function(values, levels) {
  if (length(levels) < 3) {
    return(NULL)
  }
  numbers <- !is.ordered(values) &&
    !anyNA(suppressWarnings(as.numeric(levels)))
  c(
    i = if (numbers) {
      "They are numbers: {.code as.numeric(as.character({arg}))}."
    },
    i = if (is.ordered(values)) {
      "For their order there is {.code as.integer({arg})}."
    },
    i = paste0(
      "For one level against all others there is, for example, {.code {arg} ==
       \"", escape_braces(levels[[1]]), "\"}."
    ),
    i = "For two of them, leave the other samples out of {.arg x}."
  )
}

# Fits Cox's model without the points (Therneau, Grambsch and Fleming, 1990).
martingale_residuals <- function(values, arg, design = NULL, weights = NULL,
                                 call = caller_env()) {
  rlang::check_installed("survival", "for an outcome of class Surv.")
  type <- attr(values, "type")
  if (!type %in% c("right", "counting")) {
    abort_argument(
      c(
        "{.arg {arg}} must have times that are right-censored, or intervals
         (start, stop].",
        x = "It is of type {.val {type}}."
      ),
      call
    )
  }
  there <- !is.na(values)
  if (sum(values[there, "status"]) == 0) {
    abort_argument("{.arg {arg}} must have an event.", call)
  }
  frame <- list(values = values)
  formula <- values ~ 1
  if (!is.null(design)) {
    frame$design <- design
    formula <- values ~ design
  }
  environment(formula) <- list2env(frame, parent = asNamespace("survival"))
  fit <- withCallingHandlers(
    rlang::inject(survival::coxph(
      formula, weights = !!weights, na.action = stats::na.exclude
    )),
    warning = function(condition) {
      warn_of_cox(conditionMessage(condition), arg, call)
      rlang::cnd_muffle(condition)
    }
  )
  as.double(stats::residuals(fit, type = "martingale"))
}

# Repeats a warning of survival::coxph() with the name of the outcome.
warn_of_cox <- function(words, arg, call) {
  cli::cli_warn(
    c(
      "The Cox model of {.arg {arg}} with the covariates in {.arg adjust} may
       not have converged.",
      x = "{.fn survival::coxph} warns: {words}"
    ),
    class = "fsknn_cox_warning", call = call
  )
}

# --- outcomes of nearest_to() ------------------------------------------------

# Converts outcomes to queries. `values` has an outcome in each row, over the
# samples that count. `labels` are their names if several are possible. Without
# an outcome, the search's own queries are returned.
bring_outcomes <- function(search, outcome, x, call = caller_env()) {
  if (is.null(outcome)) {
    return(search$queries)
  }
  outcomes <- outcomes_given(outcome, x, search, call)
  rows <- lapply(names(outcomes), function(label) {
    outcome_row(outcomes[[label]], label, search, call)
  })
  list(
    values = do.call(rbind, rows), are_outcomes = TRUE,
    labels = if (names(outcomes)[[1]] != "outcome") names(outcomes)
  )
}

# Returns a list of outcomes. A single one without a name is called "outcome".
outcomes_given <- function(outcome, x, search, call) {
  input <- search$options$input
  features <- search$points$features
  by_name <- is.character(outcome) && !is.null(sample_table(x)) &&
    input$points == "rows" && is.null(input$dimred) &&
    (length(outcome) != size_given(search$points)[[2]] ||
       any(outcome %in% colnames(sample_table(x))))
  if (by_name) {
    outcomes <- lapply(outcome, function(name) {
      sample_variable(x, name, "outcome", call = call)
    })
    names <- if (length(outcomes) == 1) "outcome" else outcome
    return(stats::setNames(outcomes, names))
  }
  outcome <- if (is_table(outcome)) {
    match_names(outcome, features, "outcome", "features", call)
  } else {
    outcome
  }
  if (!is_table(outcome) && (inherits(outcome, "Surv") || !is.list(outcome))) {
    return(list(outcome = outcome))
  }
  outcomes <- as.list(outcome)
  named <- length(outcomes) > 0 && !is.null(names(outcomes)) &&
    all(nzchar(names(outcomes))) && anyDuplicated(names(outcomes)) == 0
  if (!named) {
    abort_argument(
      "Where {.arg outcome} is a list, each of its outcomes must have a name of
       its own, and there must be one.",
      call
    )
  }
  outcomes
}

# Returns one outcome over the samples that count.
outcome_row <- function(values, label, search, call) {
  points <- search$points
  samples <- samples_that_count(points)
  arg <- if (label == "outcome") label else paste0("outcome$", label)
  check_outcome_type(values, arg, call)
  values <- match_names(values, points$features, arg, "features", call)
  check_outcome_fits(values, arg, search, call)
  values <- values[samples]
  row <- as_outcome(
    values, arg, design = design_for_outcome(search),
    weights = search$options$weights, call = call
  )
  row <- as.double(row)
  infinite <- which(is.infinite(row))
  if (length(infinite) > 0) {
    abort_argument(
      c(
        "{.arg {arg}} must be finite.",
        x = "{cli::qty(length(infinite))}Infinite at position{?s}
             {first_few(samples[infinite])}."
      ),
      call
    )
  }
  missing <- which(is.na(row))
  if (length(missing) > 0 && search$options$na != "pairwise") {
    count <- length(missing)
    abort_argument(
      c(
        "{.arg {arg}} must not be missing.",
        x = "{tally(count, \"sample\")} {cli::qty(count)}{?has/have} none:
             {first_few(samples[missing])}.",
        i = "Leave {cli::qty(count)}{?this sample/these samples} out of
             {.arg x} too."
      ),
      call
    )
  }
  known <- unique(row[!is.na(row)])
  if (length(known) < 2 &&
        search$options$metric$undefined_rows == "constant") {
    abort_argument(
      c(
        "{.arg {arg}} must vary.",
        x = if (length(known) == 0) {
          "All are missing."
        } else {
          "All values that count are {known}."
        }
      ),
      call
    )
  }
  row
}

# Returns the user's numbers of the samples that count.
samples_that_count <- function(points) {
  points$samples %||% seq_len(ncol(points$values))
}

check_outcome_type <- function(values, arg, call, levels = "two") {
  good <- inherits(values, "Surv") || is.factor(values) || is_text(values) ||
    is_number_like(values) && !is.object(values) && is.null(dim(values))
  if (good) {
    return(invisible())
  }
  given <- describe_value(values)
  abort_argument(
    c(
      "{.arg {arg}} must be numbers, logical values, a factor or text of
       {levels} levels, or survival times ({.fn survival::Surv}), not
       {given}.",
      i = if (rlang::is_string(values)) {
        "The name of a column is understood where {.arg x} is an ExpressionSet
         or a SummarizedExperiment whose rows are the points."
      },
      i = if (inherits(values, "difftime")) {
        "Use {.code as.numeric({arg}, units = \"days\")}."
      },
      i = if (is.numeric(values) && length(dim(values)) == 2) {
        "Several outcomes are columns of a data frame."
      }
    ),
    call
  )
}

# Checks that there is one value for each sample.
check_outcome_fits <- function(values, arg, search, call) {
  points <- search$points
  wanted <- points$num_given %||% ncol(points$values)
  side <- feature_side(points)
  if (length(values) != wanted) {
    given <- tally(length(values), "value")
    abort_argument(
      c(
        "{.arg {arg}} must have one value for each {side} (feature) of
         {.arg x}.",
        x = "{.arg x} has {tally(wanted, side)}, {.arg {arg}} has {given}."
      ),
      call
    )
  }
}

# The null model uses covariates unchanged, even if the metric ranks them.
design_for_outcome <- function(search) {
  if (is.null(search$covariates)) {
    return(NULL)
  }
  points <- search$points
  samples <- samples_that_count(points)
  design <- design_of(search$covariates, ranked = FALSE, samples)
  if (ncol(design) > 0) design
}

# Isolated points may be left out, but a requested outcome may not.
check_outcomes_defined <- function(search, call) {
  queries <- search$queries
  without <- search$query_skip
  if (!isTRUE(queries$are_outcomes) || length(without) == 0) {
    return(invisible())
  }
  which <- first_few(paste0("\"", queries$labels[without], "\""))
  adjusted <- !is.null(search$options$adjust)
  abort_argument(
    c(
      "{.arg outcome} must have values for which metric
       {.val {search$options$metric$name}} has a value.",
      x = if (!is.null(queries$labels)) "It has none of {which}.",
      i = if (adjusted) "The covariates in {.arg adjust} may explain it all."
    ),
    call
  )
}
