#' Classes or numbers predicted from the nearest neighbours
#'
#' Predicts the label of a point from the labels of its k nearest: the class
#' that most of them have, or the mean of their numbers. Without `query` each
#' point is predicted from others, by leaving out it alone or its fold, and the
#' predictions are compared with what is known, for each k from 1 to `k`, by one
#' search.
#'
#' @inheritParams knn_search
#' @param x The points whose labels are known, as for [knn_search()]. The
#'   samples of an expression matrix are its columns: `points = "columns"`.
#' @param labels The label of each point of `x`, none missing: a factor, text or
#'   logical values for classes, numbers for a mean. (Classes that are written
#'   as numbers must be made a factor.) Levels that no point has are left out.
#'   In the order of the points, or with their names. Beside an `ExpressionSet`
#'   or a `SummarizedExperiment` the name of a column will do: of the sample
#'   data where the points are samples, else of the row data.
#' @param query Points to predict, as for [knn_query()], or `NULL` (default):
#'   those of `x` from each other.
#' @param k How many neighbours, a whole number from 1 to the points that remain
#'   when the largest fold is left out.
#' @param vote `"equal"` (default), or `"distance"`: a neighbour counts 1 /
#'   distance (not under `"inner_product"`, whose distances may be below 0).
#'   Where the nearest is at distance 0, those at distance 0 count alone.
#' @param folds `NULL` (default) leaves out one point at a time. Or a number of
#'   folds to draw, or the fold of each point, given as `labels` are: a point's
#'   neighbours are then found among the other folds' points only.
#' @param strata With a number of `folds`: a group of each point (its label,
#'   say), given as `labels` are; each group is dealt out evenly.
#' @param select `NULL` (default), or a function of the points that remain and
#'   their labels, `function(x, labels)`, which is called for each fold (of
#'   `query`: once). Its `x` has points on the same side as yours. It gives the
#'   features to compare by, as numbers, names or a logical vector; or a
#'   function that is applied to those points and to the points left out alike,
#'   for whatever else is learned from data (missing values filled in, scales).
#'
#' @returns A list of class `fsknn_prediction`:
#'   * `predicted`: a label for each point (a factor, or numbers);
#'   * `truth`: the labels, or `NULL` with `query`;
#'   * `probability`: for classes, points x classes: their shares of the vote;
#'   * `by_k`: what would be predicted by k = 1, 2, ...: points x k, labels or
#'     numbers;
#'   * `error`: without `query`, a data frame with a row for each k: the
#'     `wrong` among `number` points, `error`, their share, and `balanced`, the
#'     mean of the classes' own shares; or, of numbers, `rmse`, `mae` and
#'     `correlation`;
#'   * `confusion`: for classes, without `query`, the table of `truth` and
#'     `predicted`;
#'   * `neighbours`: as [knn_query()] gives them, numbers of points of `x`;
#'   * `folds`: a factor, or `NULL`; `features`: what `select` chose, for each
#'     fold;
#'   * `k`, `metric`, `sign`, `vote`, `names` (of the points, or `NULL`).
#'
#'   It prints with its confusion matrix; `summary()` has more, `plot()` draws
#'   the error by k (`which = "confusion"`: the matrix), and `as.data.frame()`
#'   has a row for each point.
#'
#' @section Ties:
#' Neighbours at the same distance count in the order of their numbers, and no
#' more than k do. Where classes have as many votes, that one is predicted whose
#' first neighbour is the nearest. No random numbers are needed: where
#' distances do not tie the answer is that of `class::knn()` and
#' `class::knn.cv()`, but for tied votes, which they draw. (They compare by
#' `metric = "euclidean"`, and take for tied what differs by less than a
#' ten-thousandth of itself.) A point without neighbours (isolated, or by
#' `na = "pairwise"`) is `NA`, and counts as neither right nor wrong.
#'
#' @section What must happen inside a fold:
#' Everything that has seen the labels of the points left out, or that mixes
#' values of several points, belongs inside: choosing genes that differ between
#' the classes, filling in missing values from other samples, scaling by the
#' spread over samples. Done beforehand on all samples, it carries what is to be
#' predicted into what it is predicted from. The example below chooses 20 of
#' 2,000 genes of *pure noise*: with the choice made on all samples,
#' leave-one-out finds next to no error; with `select`, half are wrong, as they
#' should be (Ambroise and McLachlan 2002, \doi{10.1073/pnas.102102699}).
#' `na = "mean"` and `na = "pairwise"` are safe: they use a point's own values.
#'
#' So is a `k` that was chosen by the least `error`: that error has seen the
#' labels, and is too low. Take `k` beforehand, or keep samples apart (`query`).
#'
#' @section Null:
#' The errors come with no p-value. That of always predicting the commonest
#' class is printed beside them; the error under permuted labels is
#' `knn_predict(x, sample(labels), ...)`, many times, with the same `select`.
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
#' # new samples
#' new <- matrix(rnorm(500 * 3), 500)
#' knn_predict(genes, type, new, k = 9, points = "columns")$predicted
#'
#' # what goes wrong: noise, and its 20 best genes chosen on all samples
#' noise <- matrix(rnorm(2000 * 40), 2000)
#' best <- function(x, labels) {
#'   ill <- labels == "ill"
#'   apart <- rowMeans(x[, ill]) - rowMeans(x[, !ill])
#'   order(-abs(apart))[1:20]
#' }
#' chosen <- best(noise, type)
#' outside <- knn_predict(noise[chosen, ], type, k = 5, points = "columns")
#' inside <- knn_predict(noise, type, k = 5, points = "columns", select = best)
#' c(outside = outside$error$error[5], inside = inside$error$error[5])
knn_predict <- function(x, labels, query = NULL, k = 5, metric = NULL,
                        sign = "signed", ..., vote = c("equal", "distance"),
                        folds = NULL, strata = NULL, select = NULL) {
  check_supplied(x)
  check_supplied(labels)
  options <- verb_options("knn_predict", ...)
  input <- input_beside(options$input, x, query)
  num_points <- points_size(x, input)[[1]]
  check_num_points(
    num_points, 1L + is.null(query), "x", is_turned(x, input)
  )
  labels <- check_labels(labels, x, input, num_points)
  vote <- check_vote(vote, options$metric)
  folds <- check_folds(
    folds, strata, x, input, num_points, !is.null(query)
  )
  k <- check_prediction_k(k, num_points, folds, !is.null(query))
  check_select(select, options)
  found <- if (is.null(select)) {
    find_donors(x, query, k, options, folds)
  } else {
    find_selected(x, query, k, options, folds, labels, select)
  }
  new_prediction(found, labels, k, options, vote, folds, !is.null(query))
}

is_turned <- function(x, input) {
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

check_vote <- function(vote, metric, call = caller_env()) {
  vote <- check_choice(vote, c("equal", "distance"), "vote", call = call)
  if (vote == "distance" && metric$below_zero) {
    abort_argument(
      "{.arg vote} can't be {.val distance} with metric {.val {metric$name}},
       whose distances may be below 0.",
      call
    )
  }
  vote
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
    hint <- paste0(hint, ", of which one is left out at a time")
  }
  check_whole_number(
    k, "k", 1, num_points - left_out, hint = paste0(hint, "."), call = call
  )
}
