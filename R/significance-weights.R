# Kinds of weights of samples. A search needs only their proportions, but a
# p-value needs their meaning.

weight_kinds <- c("precision", "frequency", "sampling")

# Weights may be given as list(kind = weights). Returns the weights alone.
without_kind <- function(weights) {
  if (is_of_kind(weights)) weights[[1]] else weights
}

is_of_kind <- function(weights) {
  is.list(weights) && !is.object(weights) && length(weights) == 1 &&
    !is.null(names(weights))
}

# Returns the kind of weights, or NULL.
check_weight_kind <- function(weights, call = caller_env()) {
  if (!is_of_kind(weights)) {
    return(NULL)
  }
  kind <- names(weights)
  if (!kind %in% weight_kinds) {
    kinds <- paste0("\"", weight_kinds, "\"", collapse = ", ")
    abort_argument(
      "The name in the list {.arg weights} must be one of {kinds}, not
       {.val {kind}}.",
      call
    )
  }
  kind
}

# Returns list(kind, num_samples, root), or NULL without p-values, or if the
# positive weights are equal and no frequencies.
#   num_samples  the number of samples that the degrees of freedom are of
#   root         square roots of precisions above 0, with which errors have
#                equal variance; NULL for other kinds
# `has_p` says whether p-values were requested, and `permutations` how many.
weigh_p <- function(x, options, has_p, permutations, call = caller_env()) {
  given <- if (is_index(x)) without_kind(x$given$weights) else options$weights
  counted <- as.double(given[given > 0])
  kind <- options$weight_kind
  unequal <- any(counted != counted[1])
  if (!has_p || !unequal && !identical(kind, "frequency")) {
    return(NULL)
  }
  if (is.null(kind)) {
    abort_argument(
      c(
        "{.arg weights} must say what they are, for p-values.",
        i = "{.code weights = list(precision = w)}: a sample's variance is
             proportional to 1 / weight (such as means of measurements).",
        i = "{.code list(frequency = w)}: a sample stands for so many equal
             ones.",
        i = "{.code list(sampling = w)}: weights of a survey, or any others."
      ),
      call
    )
  }
  check_weights_fit_kind(kind, counted, options$metric, call)
  check_permutes_weights(kind, permutations, call)
  list(
    kind = kind,
    num_samples = switch(
      kind, precision = length(counted), frequency = sum(counted),
      sampling = sum(counted)^2 / sum(counted^2)
    ),
    root = if (kind == "precision") sqrt(counted)
  )
}

check_weights_fit_kind <- function(kind, counted, metric, call) {
  if (metric$name == "spearman" && kind != "sampling") {
    abort_argument(
      c(
        "{.arg weights} must be {.val sampling} weights with metric
         {.val spearman}, for p-values, not {.val {kind}}.",
        x = "Ranks are those of the samples, without weights."
      ),
      call
    )
  }
  if (kind == "frequency" && any(counted != round(counted))) {
    abort_argument(
      "{.arg weights} must be whole numbers if they are frequencies.", call
    )
  }
}

# Permutations of frequencies would have to divide a sample into its equal ones.
check_permutes_weights <- function(kind, permutations, call) {
  if (kind != "frequency" || (permutations %||% 0) == 0) {
    return(invisible())
  }
  abort_argument(
    c(
      "{.arg permutations} can't be used with {.arg weights} that are
       frequencies.",
      x = "They would permute the equal samples that a weight stands for.",
      i = "Repeat the samples instead of weighting them:
           {.code x[, rep(seq_along(weights), weights)]}."
    ),
    call
  )
}

# Returns the number of samples of a correlation, for its degrees of freedom.
num_samples_of <- function(search) {
  search$options$weighting$num_samples %||% ncol(search$points$values)
}

# Returns rows whose values have equal variance, if weights are precisions. The
# rows are centred at their weighted means. Dividing the result by the roots
# reverts the scale. Otherwise the values are returned unchanged.
with_equal_variance <- function(values, search) {
  root <- search$options$weighting$root
  if (is.null(root)) {
    return(values)
  }
  root <- rep(root, each = nrow(values))
  weights <- replace(root^2, is.na(values), 0)
  weights <- matrix(weights, nrow(values))
  mean <- rowSums(replace(values, is.na(values), 0) * weights) /
    rowSums(weights)
  (values - mean) * root
}

with_own_variance <- function(values, search) {
  root <- search$options$weighting$root
  if (is.null(root)) values else values / rep(root, each = nrow(values))
}
