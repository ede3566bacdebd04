# Weights of samples (features), for correlations.

# Checks what is possible without the data. Returns NULL, or the weights as
# given.
check_sample_weights <- function(weights, metric, call = caller_env()) {
  if (is.null(weights)) {
    return(NULL)
  }
  if (!metric$takes_weights) {
    weighted <- metrics_with("takes_weights")
    abort_argument(
      c(
        "{.arg weights} can't be used with metric {.val {metric$name}}.",
        i = "Only {weighted} take weights."
      ),
      call
    )
  }
  if (!is.numeric(weights) || is.object(weights) || !is.null(dim(weights))) {
    given <- describe_type(weights)
    abort_argument(
      "{.arg weights} must be a numeric vector with one number for each feature
       of {.arg x}, not {given}.",
      call
    )
  }
  refuse_weights(!is.finite(weights), weights, "finite", call)
  refuse_weights(weights < 0, weights, "0 or more", call)
  weights
}

refuse_weights <- function(wrong, weights, wanted, call) {
  if (!any(wrong)) {
    return(invisible())
  }
  at <- which(wrong)
  count <- length(at)
  first <- utils::head(at, 3)
  where <- first_few(
    paste0("number ", first, " is ", weights[first]), total = count
  )
  abort_argument(
    c(
      "All {.arg weights} must be {wanted}.",
      x = "{format_count(count)} {cli::qty(count)}{?is/are} not: {where}."
    ),
    call
  )
}

# Beyond this ratio, a sample vanishes in the rounding error of another.
largest_weight_ratio <- 1e15

# Returns the weights for this many features, or NULL without weights. `samples`
# are the columns that count, or NULL for all. `values` are their weights, or
# NULL if all are equal. The search is then unweighted, with identical bits.
weights_for <- function(weights, num_features, transposed = FALSE,
                        call = caller_env()) {
  if (is.null(weights)) {
    return(NULL)
  }
  if (length(weights) != num_features) {
    side <- feature_side(list(transposed = transposed))
    abort_argument(
      "{.arg weights} must have one number for each {side} (feature) of
       {.arg x}: {num_features}, not {length(weights)}.",
      call
    )
  }
  samples <- which(weights > 0)
  count <- length(samples)
  if (count < 2) {
    abort_argument(
      c(
        "At least 2 of the {.arg weights} must be above 0, not {count}.",
        i = "A sample of weight 0 is left out."
      ),
      call
    )
  }
  values <- as.double(unname(weights[samples]))
  if (max(values) / min(values) > largest_weight_ratio) {
    least <- format(min(values))
    most <- format(max(values))
    abort_argument(
      c(
        "The largest of the {.arg weights} must be no more than 1e15 times the
         smallest one above 0.",
        x = "They are {most} and {least}.",
        i = "Use 0 for samples that are to count nothing."
      ),
      call
    )
  }
  list(
    samples = if (count < length(weights)) samples,
    values = if (any(values != values[[1]])) values
  )
}

# Calls weights_for() for the columns of some points.
fit_weights <- function(weights, points, call = caller_env()) {
  weights <- match_names(weights, points$features, "weights", "features", call)
  weights_for(weights, ncol(points$values), points$transposed, call = call)
}

# Drops the columns (samples) of weight 0, so that no later step sees them. If
# the data are read by blocks, they are dropped on reading. `samples` are the
# user's numbers of the others, and `num_given` is the original number.
keep_samples <- function(points, weights) {
  if (is.null(points) || is.null(weights$samples)) {
    return(points)
  }
  points$num_given <- ncol(points$values)
  points$values <- points$values[, weights$samples, drop = FALSE]
  points$samples <- weights$samples
  points
}
