# Covariates of samples (features): the arguments `adjust` and `data`. The
# result is the request's `adjust`, a matrix with a row for each feature that
# counts. Its columns are linearly independent of each other and of the
# constant.

# Checks what is possible without the data. Returns NULL, or both arguments
# unchanged.
check_adjust <- function(adjust, data, options, call = caller_env()) {
  if (is.null(adjust)) {
    if (!is.null(data)) {
      abort_argument(
        c(
          "{.arg data} can't be given without {.arg adjust}.",
          i = "It has the variables that a formula in {.arg adjust} names."
        ),
        call
      )
    }
    return(NULL)
  }
  check_adjusts(options, call)
  check_covariates_told(adjust, data, call)
  list(adjust = adjust, data = data)
}

# Refuses options for which residuals have no meaning.
check_adjusts <- function(options, call) {
  metric <- options$metric
  if (!metric$takes_covariates) {
    able <- metrics_with("takes_covariates")
    abort_argument(
      c(
        "{.arg adjust} can't be used with metric {.val {metric$name}}.",
        x = if (metric$name == "bicor") {
          "A fit by least squares is not robust: one outlier changes the
           residuals of all samples."
        } else {
          "It depends on the means and the size of the values, which residuals
           do not keep."
        },
        i = "Only {able} take covariates."
      ),
      call
    )
  }
  if (identical(options$na, "pairwise")) {
    abort_argument(
      c(
        "{.arg adjust} can't be used with {.code na = \"pairwise\"}.",
        x = "Each pair would have residuals of its own, over the samples that
             both rows have.",
        i = "Fill missing values in, or use {.code na = \"mean\"}."
      ),
      call
    )
  }
}

check_covariates_told <- function(adjust, data, call) {
  if (rlang::is_formula(adjust)) {
    if (length(adjust) != 2) {
      abort_argument(
        c(
          "{.arg adjust} must be a formula with one side.",
          i = "For example {.code ~ age + batch}."
        ),
        call
      )
    }
    if (!is.null(data) && !is.data.frame(data) &&
          !inherits(data, "DataFrame")) {
      given <- describe_type(data)
      abort_argument(
        "{.arg data} must be a data frame with one row for each feature of
         {.arg x}, not {given}.",
        call
      )
    }
    return(invisible())
  }
  if (!is.null(data)) {
    abort_argument(
      "{.arg data} can't be given where {.arg adjust} is no formula.", call
    )
  }
  is_covariate <- is_number_like(adjust) || is.factor(adjust) ||
    is.character(adjust) || is_date(adjust)
  if (!is_covariate && !is.data.frame(adjust) &&
        !inherits(adjust, "DataFrame")) {
    given <- describe_type(adjust)
    abort_argument(
      "{.arg adjust} must be a formula with one side, a numeric matrix, a data
       frame, a vector or a factor, not {given}.",
      call
    )
  }
  if (rlang::is_string(adjust)) {
    abort_argument(
      c(
        "{.arg adjust} must have a value for each feature of {.arg x}, and is
         one string.",
        i = "A variable of {.arg data}, or of a container, is named by a
             formula: {.code ~ {adjust}}."
      ),
      call
    )
  }
}

is_date <- function(values) {
  inherits(values, c("Date", "POSIXct", "difftime"))
}

# --- covariates of these points ----------------------------------------------

# `search` has points and options, and `weights` is from fit_weights(). Returns
# NULL, or the covariates of all features (see read_covariates()) and `values`,
# the request's `adjust`.
fit_covariates <- function(search, x, weights, call = caller_env()) {
  options <- search$options
  asked <- options$adjust
  if (is.null(asked)) {
    return(NULL)
  }
  points <- search$points
  covariates <- asked$covariates %||%
    read_covariates(asked, x, points, options$input, call)
  samples <- weights$samples %||% seq_len(ncol(points$values))
  check_covariates_known(covariates, samples, points, call)
  ranked <- options$metric$name == "spearman"
  values <- kept_covariates(covariates, ranked, samples, weights$values, call)
  check_something_left(ncol(values), samples, covariates, call)
  list(
    covariates = covariates, values = if (ncol(values) > 0) values
  )
}

# Returns the covariates of some samples, in order, each any number of times.
# The matrix has the linearly independent columns.
kept_covariates <- function(covariates, ranked, samples, weights = NULL,
                            call = caller_env()) {
  values <- design_of(covariates, ranked, samples)
  kept <- in_core(cpp_covariates(values, weights), call)$kept
  values[, kept, drop = FALSE]
}

# Returns list(terms, frame, protecting, strata). `frame` has a row for each
# feature, with variables that are numbers, matrices of numbers or factors.
# `terms` says how to combine them. `protecting` has the names of hidden factors
# that protect an outcome. `strata` is from check_strata().
read_covariates <- function(asked, x, points, input, call) {
  num_features <- ncol(points$values)
  in_order <- function(values, arg, ...) {
    match_names(values, points$features, arg, "features", call, ...)
  }
  covariates <- if (rlang::is_formula(asked$adjust)) {
    data <- in_order(asked$data, "data") %||% feature_table(x, input)
    formula <- with_variables(asked$adjust, data, num_features, in_order)
    fitted <- covariates_of_formula(formula, data, num_features, call)
    # Variables that the formula computes from others may have names, too.
    fitted$frame[] <- Map(in_order, fitted$frame, names(fitted$frame))
    fitted
  } else {
    covariates_of_values(in_order(asked$adjust, "adjust"))
  }
  protecting <- vapply(covariates$frame, inherits, NA, "fsknn_protecting")
  covariates$protecting <- names(covariates$frame)[protecting]
  covariates$frame[] <- Map(
    as_covariate, covariates$frame, names(covariates$frame),
    MoreArgs = list(call = call)
  )
  rows <- nrow(covariates$frame)
  if (rows != num_features && length(covariates$frame) > 0) {
    side <- feature_side(points)
    abort_argument(
      "The covariates in {.arg adjust} must have one value for each {side}
       (feature) of {.arg x}: {num_features}, not {rows}.",
      call
    )
  }
  covariates$strata <- check_strata(
    asked$strata, x, num_features, input = input, known = points$features,
    call = call
  )
  covariates
}

# Adds strata of permutations to the covariates, if there are any. Residuals
# that are permuted within strata must not differ between them. An index has its
# covariates already: see check_index_strata().
with_strata <- function(options, strata) {
  if (is.list(options$adjust)) {
    options$adjust["strata"] <- list(strata)
  }
  options
}

# Variables outside `data` come from the formula's environment. They are also
# put in the order of the features, by in_order(values, name). They keep their
# names, so that a result computed from them (`y[9:1]`) is put in order, too.
with_variables <- function(formula, data, num_features, in_order) {
  from <- environment(formula)
  env <- new.env(parent = from)
  for (name in setdiff(all.vars(formula), c(".", colnames(data)))) {
    values <- get0(name, from, ifnotfound = NULL)
    # Objects of other lengths are not variables of the features, but serve to
    # compute them.
    if (NROW(values) == num_features) {
      assign(name, in_order(values, name, keep = TRUE), envir = env)
    }
  }
  environment(formula) <- env
  formula
}

covariates_of_formula <- function(formula, data, num_features, call) {
  data <- plain_table(data)
  # The columns are in order by now, and their own names would only mislead.
  data[] <- lapply(data, without_names)
  said <- function(err) {
    words <- conditionMessage(err)
    abort_argument(
      c("The formula in {.arg adjust} can't be used.", x = "{words}."), call
    )
  }
  terms <- tryCatch(stats::terms(formula, data = data), error = said)
  if (!is.null(attr(terms, "offset"))) {
    abort_argument("The formula in {.arg adjust} must have no offset.", call)
  }
  attr(terms, "intercept") <- 1L
  if (length(attr(terms, "term.labels")) == 0) {
    return(list(terms = terms, frame = data.frame(row.names = num_features)))
  }
  frame <- tryCatch(
    stats::model.frame(terms, data, na.action = stats::na.pass), error = said
  )
  list(terms = attr(frame, "terms"), frame = frame)
}

# Takes the columns of a data frame as `~ .` does, or one variable.
covariates_of_values <- function(values) {
  frame <- if (is.data.frame(values) || inherits(values, "DataFrame")) {
    plain_table(values)
  } else {
    rows <- NROW(values)
    structure(
      list(adjust = values), row.names = .set_row_names(rows),
      class = "data.frame"
    )
  }
  if (length(frame) == 0) {
    return(list(terms = stats::terms(~ 1), frame = frame))
  }
  list(terms = stats::terms(~ ., data = frame), frame = frame)
}

# Returns the table that describes the features of a container (its samples,
# unless they are the points), or NULL.
feature_table <- function(x, input) {
  if (!is.null(input$dimred)) {
    NULL
  } else if (input$points == "columns") {
    row_table(x)
  } else {
    sample_table(x)
  }
}

# Returns a data frame with the columns that can be covariates.
plain_table <- function(table) {
  if (is.null(table) || is.data.frame(table)) {
    return(table)
  }
  columns <- lapply(as.list(table), function(values) {
    if (methods::is(values, "Rle")) as.vector(values) else values
  })
  structure(
    columns[vapply(columns, is.atomic, NA)], class = "data.frame",
    row.names = .set_row_names(nrow(table))
  )
}

# Returns a variable as numbers or a factor. Other types are an error that names
# it.
as_covariate <- function(values, name, call) {
  if (is.factor(values) || is.character(values) || is.logical(values)) {
    return(droplevels(factor(values, ordered = FALSE)))
  }
  good <- is_date(values) ||
    is.numeric(values) && !inherits(values, "integer64")
  if (!good) {
    given <- describe_type(values)
    abort_argument(
      c(
        "Covariates in {.arg adjust} must be numbers or factors.",
        x = "{.code {name}} is {given}."
      ),
      call
    )
  }
  numbers <- as.double(values)
  if (length(dim(values)) == 2) {
    numbers <- matrix(numbers, nrow(values), dimnames = dimnames(values))
  }
  numbers
}

# `samples` are the user's numbers of the samples that count.
check_covariates_known <- function(covariates, samples, points, call) {
  wrong <- lapply(covariates$frame, function(values) {
    bad <- if (is.factor(values)) is.na(values) else !is.finite(values)
    if (is.matrix(bad)) {
      bad <- rowSums(bad) > 0
    }
    intersect(samples, which(bad))
  })
  wrong <- wrong[lengths(wrong) > 0]
  if (length(wrong) == 0) {
    return(invisible())
  }
  side <- feature_side(points)
  names <- feature_names(points$values)
  where <- vapply(names(wrong), function(name) {
    at <- wrong[[name]]
    shown <- if (is.null(names)) at else paste0(at, " (\"", names[at], "\")")
    paste0("`", name, "` at ", side, " ", first_few(shown))
  }, "")
  where <- paste(where, collapse = "; ")
  abort_argument(
    c(
      "The covariates in {.arg adjust} must not be missing or infinite.",
      x = "{where}.",
      i = "Leave out such samples, of {.arg x} too (or give them weight 0), or
           fill the values in."
    ),
    call
  )
}

check_something_left <- function(rank, samples, covariates, call) {
  num_samples <- length(samples)
  if (rank + 1 < num_samples) {
    return(invisible())
  }
  abort_argument(
    c(
      "{.arg adjust} must leave something of the points.",
      x = "The mean and {tally(rank, \"covariate\")} explain any values of
           {tally(num_samples, \"sample\")}.",
      i = if (!is.null(covariates$strata)) {
        "Each of {.arg strata} but the first is a covariate, too."
      },
      detail_bullets(many_levels(covariates$frame, samples))
    ),
    call
  )
}

# Describes factors and text with a level for nearly each sample, in cli markup.
many_levels <- function(frame, samples) {
  words <- lapply(names(frame), function(name) {
    levels <- if (is.factor(frame[[name]])) {
      levels(droplevels(frame[[name]][samples]))
    }
    if (length(levels) < 3 || length(levels) <= length(samples) / 2) {
      return(NULL)
    }
    numbers <- !anyNA(suppressWarnings(as.numeric(levels)))
    paste0(
      escape_braces(paste0("{.code ", name, "}"), name),
      " is text or a factor with ", tally(length(levels), "level"),
      if (numbers) ", all of them numbers", "."
    )
  })
  unlist(words)
}

# --- the design matrix -------------------------------------------------------

# Returns the columns of the design matrix for some samples, without the
# constant. With `ranked`, numbers are ranked over these samples, but factors
# are not. The option "contrasts" has no effect here. Indicators of the strata
# are the last columns, so that a covariate that equals one is kept before it.
design_of <- function(covariates, ranked, samples) {
  cbind(
    design_of_frame(covariates, ranked, samples),
    design_of_strata(covariates$strata[samples])
  )
}

# Returns an indicator of each stratum but the first, or NULL without strata.
design_of_strata <- function(strata) {
  if (length(strata) > 0) {
    strata <- match(strata, unique(strata))
    indicators(max(strata))[strata, , drop = FALSE]
  }
}

design_of_frame <- function(covariates, ranked, samples) {
  frame <- lapply(covariates$frame, function(values) {
    if (is.factor(values)) {
      values <- droplevels(values[samples])
      attr(values, "contrasts") <- indicators(nlevels(values))
    } else if (is.matrix(values)) {
      values <- values[samples, , drop = FALSE]
      if (ranked) values[] <- apply(values, 2, rank)
    } else {
      values <- values[samples]
      if (ranked) values <- rank(values)
    }
    values
  })
  if (length(frame) == 0) {
    return(matrix(0, length(samples), 0))
  }
  frame <- structure(
    frame, class = "data.frame", row.names = .set_row_names(length(samples)),
    terms = covariates$terms
  )
  design <- stats::model.matrix(covariates$terms, frame)
  matrix(as.double(design[, -1]), nrow(design))
}

# Returns treatment contrasts: an indicator of each level but the first. A
# single level gives a column of zeros, which is dropped later.
indicators <- function(num_levels) {
  if (num_levels < 2) {
    return(matrix(0, num_levels, 1))
  }
  diag(num_levels)[, -1, drop = FALSE]
}

# Returns the number of covariates in a request, or NULL if there are none.
num_covariates <- function(request) {
  ncol(request$adjust)
}
