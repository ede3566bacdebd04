#' What is nearest to a point, or to an outcome
#'
#' The k nearest neighbours of one row, or of an outcome of the samples such as
#' years to relapse, without the graph of all rows: those that [knn_search()]
#' gives for that row, to the last bit. With `permutations` it says what they
#' are worth: would noise have given as near a neighbour?
#'
#' Rows are read, prepared, compared with the one, and dropped, so that little
#' memory is needed: of [metafeatures()] no more than a block of rows is there
#' at any time. It is one pass over them, of which there is nothing to be dealt
#' out (`BPPARAM`) or to be kept (`checkpoint`). Permuted outcomes go through
#' one more pass, all together.
#'
#' @inheritParams knn_search
#' @param x The points, as for [knn_search()].
#' @param point Rows of `x`: a name or a number, or several of them. One number
#'   is the number of a row, always.
#' @param outcome In place of `point`, what is no row of `x`: a vector with one
#'   value for each feature (column) of `x`, in that order or with their names
#'   (see "Names" in [point_options()]). It may be numbers; logical values; a
#'   factor of two levels, of which the second counts as 1 and the first as 0;
#'   text with two different values, taken as the factor of it (in sorted
#'   order); or survival times, `survival::Surv(time, event)`. Several
#'   are a data frame, or a list with names. Beside a container (an
#'   `ExpressionSet`, a `SummarizedExperiment`) also names of columns of its
#'   sample data.
#' @param k Number of neighbours, a whole number from 1 to the number of other
#'   points.
#' @param permutations `NULL` (default): neighbours alone. A number: they are
#'   judged, against so many permutations of the outcome; 1,000 are usual, and
#'   the smallest p-value of B permutations is 1 / (B + 1). With 0 there are
#'   only the p-values of correlations that need no permutations. Not with
#'   `block`: each block's nearest would be a family of its own, and so give the
#'   points of one block as `x`.
#' @param strata For `permutations`: a group for each sample (a batch, say), in
#'   their order or with their names, or beside a container the name of a column
#'   of its sample data. Values are permuted within groups only: where all
#'   samples of each group have one value, nothing is, and a warning of class
#'   `fsknn_nested_strata` says so. `NULL` (default): among all samples.
#' @param ... [Point options][point_options()] and [run
#'   options][run_options()], by name, or collected as `options = `. `constant`
#'   is about other points. The point itself must have a value.
#'
#' @returns A data frame of class `fsknn_nearest`, which prints with a header.
#'   It has k rows for each point or outcome (fewer where `na = "pairwise"`
#'   leaves fewer neighbours), the nearest first, and the columns
#'   * `point`: the name of what was asked for (of a row without a name its
#'     number), where there were several, or outcomes in a list;
#'   * `rank`: 1 to k;
#'   * `name`: of the row, its number where `x` has no row names;
#'   * `index`: the row's number in `x`;
#'   * `distance`: double;
#'   * `correlation`: for correlations only, the signed r, whatever `sign` is;
#'   * `block`: with `block` only, that of the neighbour. There are k rows for
#'     each block then;
#'   * with `permutations`, 0 or more, for correlations only: `p_value`, of this
#'     pair alone, and `fdr`, it adjusted for all points by Benjamini and
#'     Hochberg (1995);
#'   * with 1 or more: `p_adjusted`, the family-wise p-value.
#'
#'   The attribute `null` then has the smallest distance of each permutation (a
#'   row) of each outcome (a column): for correlations with `sign = "signed"` or
#'   `"absolute"` the largest r, or |r|, that chance gave is 1 less it. Of
#'   [metafeatures()] that are left out, the attribute `left_out` tells; of the
#'   covariates that rows were adjusted for, `num_covariates`.
#'
#' @section What the p-values say:
#' `p_value` is that of a correlation which was chosen beforehand, and so of
#' none in this table: it is there for what is made of it. Its null: this point
#' and the outcome are independent. It is one-sided as `sign` says, as the
#' nearest are on that side (`"signed"`: r above 0, `"negative"`: below), and
#' two-sided for `"absolute"`.
#' * `"pearson"`: Student's t on n - 2 degrees of freedom, n being the samples,
#'   as of [stats::cor.test()]; with `weights` that of the slope in
#'   `lm(weights = )`, of samples with a weight above 0;
#' * `"spearman"`: as `cor.test()` has it: without ties (and weights) exact for
#'   up to 9 samples and by an Edgeworth series for up to 1,290, else by t. Far
#'   out the series may give 0. That a *point* has ties is told by r itself, and
#'   may be missed at r = 0, where it matters least;
#' * `"bicor"`: by t, as WGCNA's `bicorAndPvalue()`.
#'
#' With `adjust` it is by t, under `"spearman"` too, on n - 2 - q degrees of
#' freedom, q being the covariates beside the constant: for `"pearson"` that of
#' the point in `lm()` of the outcome on it and the covariates.
#'
#' With `na = "pairwise"` n is that of each pair. A null of few degrees of
#' freedom stands on values near to normal; `p_adjusted` does not. Of `strata`
#' `p_value` and `fdr` know nothing: where batches shift points and outcome,
#' `adjust` for the batch.
#'
#' `fdr` is the smallest false discovery rate at which a neighbour would be
#' among those that are called, of all points. It holds where points are
#' independent, or depend on each other as positively as correlated genes do;
#' it is controlled on average, and not for the k that are shown.
#'
#' `p_adjusted` is by Westfall and Young's (1993) step-down maxT: the share of
#' permutations whose nearest of all points, but for those listed before, is at
#' least as near as this one, what was observed counting as one more (Phipson
#' and Smyth, 2010); made monotone. *Its null: which value of the outcome
#' belongs to which sample (of the same stratum) is chance, for all points that
#' are not listed before.* The chance that any point is called wrongly is then
#' at most the level, however the points depend on each other, and whatever k
#' is. Permutations are drawn by R's generator before the search, so that
#' [set.seed()] repeats them on any backend. Distances that differ by no more
#' than 1e-12 of themselves (of 1, for correlations and other bounded metrics)
#' count as equal. With few samples there are few arrangements, and p-values
#' can't be small: two groups of 4 have 70.
#'
#' With `adjust` the null is that the outcome depends on the covariates alone,
#' and residuals are permuted (Freedman and Lane, 1983): those of the outcome,
#' or of its ranks, are put in another order, adjusted for the covariates once
#' more, and brought to length 1, in each permutation (those of ranks are added
#' to what the covariates explain, and ranked again). Residuals are not quite
#' exchangeable, so that this is right as the number of samples grows, and near
#' for few: at a level of 5%, with 30 samples and 9 covariates, any point was
#' called in 5.5% of simulated data sets (correlated modules) and 6.5%
#' (independent points). Under `"spearman"` ranks are adjusted by ranks, as if
#' they were linear in them: where covariates are much of points and outcome
#' something of them stays, and is called (in 15% of such data sets).
#'
#' Not controlled are several outcomes (each has a family of its own: adjust
#' once more, as by [stats::p.adjust()] of the first `p_adjusted` of each), the
#' choice of metric, sign, weights and points after seeing results, and samples
#' that are not exchangeable: batches, relatives, repeats. `strata` help with
#' batches. Under Euclidean and other distances without a common scale the
#' nearest of all are points of low variance, and `p_adjusted` says little of
#' others.
#'
#' @section Survival:
#' For survival times there stand martingale residuals of Cox's model without
#' points: the events that a patient had, less those that were to be expected of
#' the time under risk (Therneau, Grambsch and Fleming, 1990). A row's
#' correlation with them is nearly Cox's score test of that row, as an example
#' shows, and its sign that of the log hazard ratio: r above 0 means more
#' events. Samples that are censored stay, as what they are. A plain number of
#' years would take the end of the follow-up for an event.
#'
#' Permuted are residuals, that is pairs of time and event: the null is that
#' both event and censoring have nothing to do with the points. Tied event times
#' are taken as [survival::coxph()] does (Efron). With `adjust` the residuals
#' are those of Cox's model on the covariates (as they are, not ranked), with
#' `weights` of the weighted model.
#'
#' @inheritSection knn_search Errors
#' @references
#' Arefin AS, Riveros C, Berretta R, Moscato P (2012). GPU-FS-kNN: A Software
#' Tool for Fast and Scalable kNN Computation Using GPUs. *PLoS ONE* 7(8):
#' e44000. \doi{10.1371/journal.pone.0044000}
#'
#' Benjamini Y, Hochberg Y (1995). Controlling the False Discovery Rate: A
#' Practical and Powerful Approach to Multiple Testing. *Journal of the Royal
#' Statistical Society B* 57: 289-300.
#' \doi{10.1111/j.2517-6161.1995.tb02031.x}
#'
#' Best DJ, Roberts DE (1975). Algorithm AS 89: The Upper Tail Probabilities of
#' Spearman's rho. *Applied Statistics* 24: 377-379. \doi{10.2307/2347111}
#'
#' Freedman D, Lane D (1983). A Nonstochastic Interpretation of Reported
#' Significance Levels. *Journal of Business & Economic Statistics* 1: 292-298.
#' \doi{10.1080/07350015.1983.10509354}
#'
#' Phipson B, Smyth GK (2010). Permutation P-values Should Never Be Zero.
#' *Statistical Applications in Genetics and Molecular Biology* 9: 39.
#' \doi{10.2202/1544-6115.1585}
#'
#' Therneau TM, Grambsch PM, Fleming TR (1990). Martingale-based Residuals for
#' Survival Models. *Biometrika* 77: 147-160. \doi{10.1093/biomet/77.1.147}
#'
#' Westfall PH, Young SS (1993). *Resampling-Based Multiple Testing*. Wiley.
#' @seealso [knn_query()] for points that are not in `x`, [knn_graph()] for all,
#'   [add_phenotype()] for an outcome as one more row.
#' @export
#' @examples
#' x <- matrix(rnorm(200 * 12), nrow = 200)
#' rownames(x) <- paste0("gene", 1:200)
#' years <- rexp(12)
#' nearest_to(x, outcome = years, k = 5)
#' # by |r|, and whether chance gives as much
#' set.seed(1)
#' nearest_to(x, outcome = years, k = 3, sign = "absolute", permutations = 200)
#' # rows of x, each by itself
#' nearest_to(x, c("gene7", "gene9"), k = 2)
#'
#' # relapse with censoring: the correlation, and Cox's score test beside it
#' if (requireNamespace("survival", quietly = TRUE)) {
#'   x <- matrix(rnorm(50 * 60), nrow = 50)
#'   relapse <- rexp(60, exp(x[1, ]))
#'   end <- rexp(60, 0.3)
#'   time <- survival::Surv(pmin(relapse, end), relapse <= end)
#'   near <- nearest_to(
#'     x, outcome = time, k = 4, sign = "absolute", permutations = 0
#'   )
#'   near$cox <- vapply(near$index, function(row) {
#'     summary(survival::coxph(time ~ x[row, ]))$sctest[["pvalue"]]
#'   }, 0)
#'   near[c("index", "correlation", "p_value", "cox", "fdr")]
#' }
nearest_to <- function(x, point, k = 20, metric = NULL, sign = "signed", ...,
                       outcome = NULL, permutations = NULL, strata = NULL,
                       block = NULL, between = FALSE) {
  check_supplied(x)
  if (is.null(outcome)) {
    check_supplied(point)
  } else if (!missing(point)) {
    abort_two_askers(point, current_env())
  }
  options <- verb_options("nearest_to", ...)
  permutations <- check_permutations(permutations, least = 0)
  check_has_p_values(permutations, options$metric)
  check_no_blocks(permutations, block)
  search <- new_search(
    x, options, k = k, point = point, outcome = outcome, correlation = TRUE,
    block = block, between = between
  )
  find_nearest(search, x, permutations, strata)
}

# Returns the table of a search, with p-values if `permutations` is a number.
find_nearest <- function(search, x, permutations, strata, call = caller_env()) {
  search$as_table <- TRUE
  if (is.null(permutations)) {
    check_strata(strata, x, 0, for_permutations = FALSE, call = call)
    return(table_of_nearest(run_search(search, call), search))
  }
  drawn <- draw_for_search(search, x, permutations, strata, call)
  judged <- judge_nearest(search, drawn, call = call)
  table_of_nearest(judged$found, search, judged)
}

abort_two_askers <- function(point, call) {
  given <- describe_value(point)
  abort_argument(
    c(
      "Only one of {.arg point} and {.arg outcome} can say whose neighbours to
       find.",
      x = "{.arg point} is {given}.",
      i = if (is_whole(point)) {
        "A number of neighbours is given by name, {.code k = {given}}."
      }
    ),
    call
  )
}

# `found` has matrices with a row for each requested point or outcome. `judged`
# is from judge_nearest(), or NULL.
table_of_nearest <- function(found, search, judged = NULL) {
  of <- rep(seq_len(nrow(found$index)), each = ncol(found$index))
  rank <- rep_len(seq_len(search$request$k), length(found$index))
  there <- which(!is.na(t(found$index)))
  taken <- function(values) as.vector(t(values))[there]
  index <- taken(found$index)
  columns <- list(
    rank = rank[there],
    name = point_names(search$points, index) %||% as.character(index),
    index = index,
    distance = taken(found$distance)
  )
  if (!is.null(found$correlation)) {
    columns$correlation <- taken(found$correlation)
  }
  if (!is.null(search$request$blocks)) {
    columns$block <- block_of_points(search$request$blocks, index)
  }
  columns <- c(columns, lapply(judged$columns, taken))
  labels <- asked_names(search)
  if (!is.null(labels)) {
    columns <- c(list(point = labels[of[there]]), columns)
  }
  table <- as.data.frame(columns, stringsAsFactors = FALSE)
  attr(table, "null") <- judged$null
  attr(table, "num_covariates") <- num_covariates(search$request)
  class(table) <- c("fsknn_nearest", "data.frame")
  with_searched(add_left_out(table, search), search)
}

# Rows keep the record of the search. Without indices or distances, it is a
# plain data frame.
#' @export
`[.fsknn_nearest` <- function(x, ...) {
  result <- NextMethod()
  if (!is.data.frame(result)) {
    return(result)
  }
  is_whole <- all(c("index", "distance") %in% names(result))
  if (!is_whole) {
    return(as.data.frame(result))
  }
  attr(result, "searched") <- attr(x, "searched", exact = TRUE)
  result
}

# data.frame() calls this method, too, and passes further arguments.
#' @method as.data.frame fsknn_nearest
#' @export
as.data.frame.fsknn_nearest <- function(x, ...) {
  attr(x, "searched") <- NULL
  class(x) <- "data.frame"
  x
}

#' @export
print.fsknn_nearest <- function(x, ...) {
  cat_searched(x)
  NextMethod()
  invisible(x)
}

# Returns the names of the requested points or outcomes if there are several.
asked_names <- function(search) {
  at <- search$request$query_self
  if (is.null(at)) {
    return(search$queries$labels)
  }
  if (length(at) > 1) {
    point_names(search$points, at) %||% as.character(at)
  }
}

# Returns the row numbers of the requested points.
find_points <- function(points, point, arg = "point", call = caller_env()) {
  plain <- is.numeric(point) && !is.object(point) && is.null(dim(point))
  several <- length(point) > 1 && (plain || is.character(point))
  if (!several) {
    check_is_point(point, ncol(points$values), arg, call)
    return(find_point(points, point, arg, call = call))
  }
  vapply(point, find_point, 1L, points = points, arg = arg, call = call,
         USE.NAMES = FALSE)
}

# A value that is neither name nor number of a row may be an outcome.
check_is_point <- function(point, num_features, arg, call) {
  is_outcome <- !is.character(point) && length(point) > 1 &&
    (length(point) == num_features || is.list(point))
  if (is_outcome) {
    given <- describe_value(point)
    abort_argument(
      c(
        "{.arg {arg}} must be names or numbers of rows, not {given}.",
        i = if (arg == "point") {
          "Values of the features, which are no row of {.arg x}, are given by
           {.arg outcome}."
        }
      ),
      call
    )
  }
}

# Returns the row number of one requested point.
find_point <- function(points, point, arg, call = caller_env()) {
  num_points <- nrow(points$values)
  if (!rlang::is_string(point)) {
    return(check_whole_number(point, arg, 1, num_points, call = call))
  }
  check_text(point, paste0("`", arg, "`"), "name", arg, call)
  if (is_metafeatures(points$values)) {
    return(find_metafeatures(points$values, point, call = call))
  }
  side <- point_side(points)
  at <- which(points$names == point)
  if (length(at) == 1) {
    return(at)
  }
  if (length(at) > 1) {
    where <- first_few(at)
    abort_argument(
      c(
        "{.arg {arg}} must name one {side} of {.arg x}.",
        x = "{tools::toTitleCase(side)}s {where} are called {.val {point}}.",
        i = "Give the {side}'s number."
      ),
      call
    )
  }
  nearest <- if (length(points$names) > 0) nearest_spelling(point, points$names)
  abort_argument(
    c(
      "{.arg {arg}} must be the name of a {side} of {.arg x}, or its number.",
      x = if (is.null(points$names)) {
        "{.arg x} has no {side} names."
      } else {
        "There is no {side} {.val {point}}."
      },
      i = if (!is.null(nearest)) "Did you mean {.val {nearest}}?"
    ),
    call
  )
}
