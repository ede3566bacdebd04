# Families of tests, and notes of what p-values of nearest points assume.

# With "outcome", p-values are adjusted for all points of one outcome (or
# requested point). With "call", they are adjusted for those of all outcomes.
families <- c("outcome", "call")

# Checks test_options(). `lacks` is the argument without which there are no
# p-values, or NULL.
check_tests <- function(options, lacks, call = caller_env()) {
  asked <- c(
    family = if (options$family == "call") "call", statistic = options$statistic
  )
  if (length(asked) > 0 && !is.null(lacks)) {
    abort_argument(
      "{.code {names(asked)[[1]]} = \"{asked[[1]]}\"} needs {.arg {lacks}}, and
       there is none.",
      call
    )
  }
  if (options$family == "call" && !has_correlation(options$metric)) {
    abort_argument(
      c(
        "{.code family = \"call\"} can't be used with metric
         {.val {options$metric$name}}.",
        x = "Distances from outcomes of another scale can't be compared."
      ),
      call
    )
  }
}

is_one_family <- function(search) {
  identical(search$options$family, "call")
}

# Returns family-wise p-values over all outcomes. `observed` are distances or
# p-values, with a row for each outcome. `null` are the smallest of each
# permutation (row) and outcome (column). The permutations are the same for all
# outcomes. This is one step: no point is left out of later steps.
adjust_over_call <- function(observed, null) {
  smallest <- sort(apply(null, 1, min))
  counts <- findInterval(observed, smallest)
  p <- permutation_p(counts, nrow(null))
  dim(p) <- dim(observed)
  p
}

# Returns lines for the header of a table with p-values.
notes_of_p <- function(search, strata, has_units) {
  families <- search$num_rows
  weighting <- search$options$weighting
  c(
    if (!is.null(search$kind) && search$relabelled$num > 0) {
      paste0("Permuted statistic: ", describe_statistic(search, strata))
    },
    if (families > 1 && !is_one_family(search)) {
      paste0(
        "Adjusted p-values: ", format_count(families),
        " families, one for each ", asked_by(search)
      )
    },
    # Whole units have neither p_value nor fdr.
    if (has_correlation(search$options$metric) && !has_units &&
          !isTRUE(search$has_p)) {
      c(
        if (!is.null(strata)) {
          paste0("p_value and fdr: ", if (is.null(search$request$adjust)) {
            "strata are ignored"
          } else {
            "the same spread in all strata is assumed"
          })
        },
        if (!is.null(weighting)) {
          paste0(
            "p_value and fdr: weights are ",
            switch(
              weighting$kind, precision = "precisions",
              frequency = "frequencies", sampling = "sampling weights"
            ),
            ", and count as ", format(weighting$num_samples, digits = 3),
            " samples"
          )
        }
      )
    }
  )
}

describe_statistic <- function(search, strata) {
  request <- search$request
  of_groups <- isTRUE(search$is_factor) && is.null(request$weights)
  switch(
    search$kind,
    robust = if (!of_groups) {
      "moderated t with a robust standard error"
    } else if (is.null(request$adjust %||% strata)) {
      "moderated Welch's t"
    } else {
      "moderated t with a variance for each level"
    },
    welch = "moderated Welch's F", ratio = "correlation ratio"
  )
}

# Student's t assumes equal variances. If points and outcome vary more in the
# same stratum, it is too small. This compares the strata of the largest and the
# smallest variance of each outcome's residuals, by F tests with Bonferroni's
# adjustment for the pairs of strata.
tell_unequal_strata <- function(search, strata) {
  if (is.null(strata) || is.null(search$request$adjust) ||
        !has_correlation(search$options$metric)) {
    return(invisible())
  }
  ratio <- apply(permutable(search)$values, 1, ratio_of_spreads, strata)
  if (all(ratio == 1)) {
    return(invisible())
  }
  arg <- asked_by(search)
  which <- which.max(ratio)
  label <- asked_names(search)[which]
  of <- if (is.null(label)) paste("the", arg) else paste0("\"", label, "\"")
  most <- format(ratio[[which]], digits = 2)
  cli::cli_inform(
    c(
      "{.arg p_value} and {.arg fdr} assume the same spread in all
       {.arg strata}.",
      x = "The standard deviations of {of} differ between strata by a factor of
           {most}. If points vary more in the same strata, {.arg p_value} and
           {.arg fdr} are too small.",
      i = "{.arg p_adjusted} does not assume it."
    ),
    class = "fsknn_unequal_strata"
  )
}

# Returns the ratio of standard deviations, or 1 if it may be due to chance.
ratio_of_spreads <- function(residuals, strata) {
  freedom <- tabulate(strata) - 1
  variance <- as.vector(rowsum(residuals^2, strata)) / freedom
  known <- which(freedom > 0)
  if (length(known) < 2) {
    return(1)
  }
  most <- known[[which.max(variance[known])]]
  least <- known[[which.min(variance[known])]]
  p <- stats::pf(
    variance[[most]] / variance[[least]], freedom[[most]], freedom[[least]],
    lower.tail = FALSE
  )
  if (p * length(known) * (length(known) - 1) > 0.01) {
    return(1)
  }
  sqrt(variance[[most]] / variance[[least]])
}
