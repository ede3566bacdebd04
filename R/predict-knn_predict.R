#' Predict classes or numbers from nearest neighbours
#'
#' Predicts the label of a point from the labels of its k nearest neighbours. It
#' is the class of most of them, or the mean of their numbers. Without `query`,
#' each point is predicted from the others by cross-validation, which leaves out
#' the point alone or its fold. The predictions are compared with the known
#' labels for each k from 1 to `k`, by one search.
#'
#' @inheritParams knn_search
#' @param x The points with known labels, as for [knn_search()]. To predict the
#'   samples of an expression matrix, which are its columns, use `points =
#'   "columns"`.
#' @param labels The label of each point of `x`, none missing: a factor, text or
#'   logical values for classes, or numbers for a mean. Classes that are written
#'   as numbers must be converted to a factor. Unused levels are dropped. Labels
#'   are in the order of the points, or have their names. For an `ExpressionSet`
#'   or a `SummarizedExperiment`, they may be the name of a column. It is one of
#'   the sample data if the points are samples, otherwise of the row data.
#' @param query Points to predict, as for [knn_query()]. `NULL` (default)
#'   predicts the points of `x` from each other.
#' @param k Number of neighbours, a whole number from 1 to the number of points
#'   that remain when the largest fold is left out.
#' @param weighting `"equal"` (default), or `"distance"`, which weights a
#'   neighbour by 1 / distance. If the nearest are at distance 0, only these
#'   count. `"inner_product"`, whose distances may be below 0, excludes
#'   `"distance"`.
#' @param folds `NULL` (default) leaves out one point at a time. Otherwise a
#'   number of folds to draw, or the fold of each point, given like `labels`. A
#'   point's neighbours are then found only among the points of other folds.
#'   With `unit`, `NULL` leaves out one unit at a time.
#' @param strata With a number of `folds`: a group of each point, such as its
#'   label, given like `labels`. The points of each group are distributed evenly
#'   over the folds. With `unit`, units are distributed, and all points of one
#'   must be in one group.
#' @param unit `NULL` (default), or the unit of each point, such as the donor of
#'   a cell, given like `labels`. No fold has only a part of a unit.
#' @param select `NULL` (default), or a function of the remaining points and
#'   their labels, `function(x, labels)`. It is called for each fold (with
#'   `query`: once). The points are on the same side of its `x` as of yours.
#'
#'   It returns the features to use, as numbers, names or a logical vector. Or
#'   it returns a function, which is applied to those points and to the points
#'   left out. Use that for anything else that is estimated from data, such as
#'   imputed values and scales.
#'
#' @returns A list of class `fsknn_prediction`:
#'   * `predicted`: a label for each point (a factor, or numbers);
#'   * `truth`: the labels, or `NULL` with `query`;
#'   * `probability`: for classes, their proportions of the votes, points x
#'     classes;
#'   * `by_k`: the predictions for k = 1, 2, ..., points x k, labels or numbers;
#'   * `error`: without `query`, a data frame with a row for each k. For
#'     classes, it has `wrong` and `number` (counts of points), `error` (their
#'     ratio), and `balanced` (the mean of the errors within classes). For
#'     numbers, it has `rmse`, `mae` and `correlation`;
#'   * `confusion`: for classes, without `query`, the table of `truth` and
#'     `predicted`;
#'   * `neighbours`: as from [knn_query()], numbers of points of `x`;
#'   * `folds`: a factor, or `NULL`;
#'   * `features`: the choice of `select` for each fold;
#'   * `k`, `metric`, `sign`, `weighting`, `names` (of the points, or `NULL`).
#'
#'   It prints with its confusion matrix, and `summary()` has more. `plot()`
#'   draws the error by k, or with `which = "confusion"` the matrix.
#'   `as.data.frame()` has a row for each point.
#'
#' @section Ties:
#' Neighbours at the same distance are taken in the order of their numbers, and
#' never more than k. If classes have equal votes, the class whose first
#' neighbour is the nearest is predicted. A point without neighbours (isolated,
#' or with `na = "pairwise"`) is `NA`, and counts as neither right nor wrong.
#'
#' So votes need no random numbers. Without ties, the answer with `metric =
#' "euclidean"` is that of `class::knn()` and `class::knn.cv()`. These draw one
#' class at random if votes are equal. They treat distances as tied if they
#' differ by less than a ten-thousandth of their size.
#'
#' @section Cross-validation without leakage:
#' Every step that uses the labels of the points left out, or that combines
#' values of several points, belongs inside a fold. Examples are the choice of
#' genes that differ between classes, imputation from other samples, and scaling
#' by the spread over samples. Done on all samples in advance, such a step leaks
#' the labels into the predictions. The error is then too low (Ambroise and
#' McLachlan 2002, \doi{10.1073/pnas.102102699}).
#'
#' The example below chooses 20 of 2,000 genes of *pure noise*. If the genes are
#' chosen on all samples, leave-one-out finds almost no error. With `select`,
#' half of the predictions are wrong, as they should be. `na = "mean"` and `na =
#' "pairwise"` are safe, because they use a point's own values.
#'
#' Points of one unit, such as cells of one donor, resemble each other. If a
#' donor has one label (a disease), a cell's neighbours tell the donor, and so
#' the label. The error is then near 0 even if the disease has no effect. Give
#' the donor as `unit`, so that no other cell of the donor is used.
#'
#' The error of the best `k` is also too low, because the labels were used to
#' choose it. Choose `k` in advance, or keep separate samples for a test
#' (`query`).
#'
#' @section Comparison with chance:
#' The errors have no p-value. The error of always predicting the most frequent
#' class is printed beside them. For the error under permuted labels, call
#' `knn_predict(x, sample(labels), ...)` many times with the same `select`.
#' @inheritSection knn_search Errors
#' @seealso [knn_query()] for the neighbours themselves, [neighbour_mixing()]
#'   for how labels mix in a graph.
#' @references
#' Cover TM, Hart PE (1967). Nearest Neighbor Pattern Classification. *IEEE
#' Transactions on Information Theory* 13(1): 21-27.
#' \doi{10.1109/TIT.1967.1053964}
#' @export
#' @examples
#' set.seed(1)
#' genes <- matrix(rnorm(500 * 40), 500, dimnames = list(paste0("g", 1:500)))
#' type <- factor(rep(c("healthy", "ill"), 20))
#' genes[1:30, type == "ill"] <- genes[1:30, type == "ill"] + 1
#' knn_predict(genes, type, k = 9, points = "columns")
#'
#' # New samples
#' new <- matrix(rnorm(500 * 3), 500)
#' knn_predict(genes, type, new, k = 9, points = "columns")$predicted
#'
#' # Cells of 10 donors of whom 5 are ill, which has no effect
#' donor <- rep(1:10, each = 12)
#' ill <- donor <= 5
#' cells <- matrix(rnorm(10 * 30), 10)[donor, ] + matrix(rnorm(120 * 30), 120)
#' knn_predict(cells, ill, metric = "euclidean")$error$error[5]
#' knn_predict(cells, ill, metric = "euclidean", unit = donor)$error$error[5]
#'
#' # Leakage: noise, and its 20 best genes, chosen on all samples
#' noise <- matrix(rnorm(2000 * 40), 2000)
#' best <- function(x, labels) {
#'   ill <- labels == "ill"
#'   difference <- rowMeans(x[, ill]) - rowMeans(x[, !ill])
#'   order(-abs(difference))[1:20]
#' }
#' chosen <- best(noise, type)
#' outside <- knn_predict(noise[chosen, ], type, k = 5, points = "columns")
#' inside <- knn_predict(noise, type, k = 5, points = "columns", select = best)
#' c(outside = outside$error$error[5], inside = inside$error$error[5])
knn_predict <- function(x, labels, query = NULL, k = 5, metric = NULL,
                        sign = "signed", ...,
                        weighting = c("equal", "distance"), folds = NULL,
                        strata = NULL, unit = NULL, select = NULL) {
  check_supplied(x)
  check_supplied(labels)
  options <- verb_options("knn_predict", ...)
  input <- input_beside(options$input, x, query)
  num_points <- points_size(x, input)[[1]]
  check_num_points(
    num_points, 1L + is.null(query), "x", is_transposed(x, input)
  )
  labels <- check_labels(labels, x, input, num_points)
  weighting <- check_weighting(weighting, options$metric)
  folds <- check_folds(
    folds, strata, unit, x, input, num_points, !is.null(query)
  )
  k <- check_prediction_k(k, num_points, folds, !is.null(query))
  check_select(select, options)
  found <- if (is.null(select)) {
    find_donors(x, query, k, options, folds)
  } else {
    find_selected(x, query, k, options, folds, labels, select)
  }
  new_prediction(found, labels, k, options, weighting, folds, !is.null(query))
}

is_transposed <- function(x, input) {
  taken <- take_matrix(x, input)
  taken$turn || taken$cells
}

# Returns a factor without unused levels, or numbers.
check_labels <- function(labels, x, input, num_points, call = caller_env()) {
  labels <- given_values(x, labels, "labels", input, "points", call = call)
  is_class <- is.factor(labels) || is.character(labels) || is.logical(labels)
  is_number <- is.numeric(labels) && !is.object(labels)
  if (!is.null(dim(labels)) || !(is_class || is_number)) {
    given <- describe_type(labels)
    abort_argument(
      "{.arg labels} must be a factor, text or logical values for classes, or
       numbers, not {given}.",
      call
    )
  }
  if (length(labels) != num_points) {
    abort_argument(
      c(
        "{.arg labels} must have one value for each of the
         {format_count(num_points)} points of {.arg x}.",
        x = "It has {format_count(length(labels))}.",
        i = if (length(labels) == 1) {
          "The samples of a matrix are its columns: {.code points =
           \"columns\"}."
        }
      ),
      call
    )
  }
  bad <- which(if (is_class) is.na(labels) else !is.finite(labels))
  if (length(bad) > 0) {
    count <- length(bad)
    abort_argument(
      c(
        "{.arg labels} must have no missing values{if (is_number) \", nor
         infinite ones\"}.",
        x = "{tally(count, \"point\")} {cli::qty(count)}{?has/have} such a
             label: {first_few(bad)}.",
        i = "Give the others as {.arg x}, and these as {.arg query}."
      ),
      call
    )
  }
  if (is_number) {
    return(as.double(labels))
  }
  labels <- as_blocks(labels, num_points, "labels", call = call)
  if (nlevels(labels) < 2) {
    abort_argument(
      c(
        "{.arg labels} must have at least two classes.",
        x = "All {format_count(num_points)} points are of class
             {.val {levels(labels)}}."
      ),
      call
    )
  }
  labels
}

check_weighting <- function(weighting, metric, call = caller_env()) {
  weighting <- check_choice(
    weighting, c("equal", "distance"), "weighting", call = call
  )
  if (weighting == "distance" && metric$below_zero) {
    abort_argument(
      "{.arg weighting} can't be {.val distance} with metric
       {.val {metric$name}}, whose distances may be below 0.",
      call
    )
  }
  weighting
}

check_prediction_k <- function(k, num_points, folds, has_query,
                               call = caller_env()) {
  left_out <- if (has_query) {
    0L
  } else if (is.null(folds)) {
    1L
  } else {
    max(table(folds))
  }
  hint <- paste0("{.arg x} has ", tally(num_points, "point"))
  if (left_out > 1) {
    hint <- paste0(hint, ", and the largest fold ", format_count(left_out))
  } else if (left_out == 1) {
    hint <- paste0(hint, ", and one is left out at a time")
  }
  check_whole_number(
    k, "k", 1, num_points - left_out, hint = paste0(hint, "."), call = call
  )
}
