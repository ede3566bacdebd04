#' Supervised feature filter by minimum description length
#'
#' Divides the values of each row into intervals that separate the classes of
#' the samples. A cut is accepted only if its information gain exceeds the cost
#' of its description (Fayyad and Irani 1993). A row is kept if it has at least
#' one accepted cut. This is the first filter of the breast-cancer study (Arefin
#' et al. 2012, Results).
#'
#' A row's samples are sorted. Candidate cuts are midpoints of adjacent
#' different values. Those between two values whose samples all have the same
#' class are left out (Fayyad and Irani 1992). The candidate with the smallest
#' class entropy is taken, the lowest of equally good ones. It is accepted if
#' its information gain exceeds
#'
#' \deqn{\frac{\log_2(N - 1)}{N} + \frac{\log_2(3^k - 2) -
#'   (k E(S) - k_1 E(S_1) - k_2 E(S_2))}{N}}{
#'   log2(N - 1) / N + (log2(3^k - 2) - (k E(S) - k1 E(S1) - k2 E(S2))) / N}
#'
#' where N is the number of samples in the interval S, and E is the class
#' entropy in bits. The numbers of classes present in S and in its two parts are
#' k, k1 and k2. Both parts are then divided in the same way.
#'
#' @section Rows of pure noise:
#' The criterion is not a test, and some rows without any relation to the class
#' are kept. With two equal classes of normal values, it keeps about 10% of such
#' rows with 6 samples, 2.6% with 20 and 0.3% with 296
#' (`inst/bench/calibration_mdl.R`). A row without a cut may still be related to
#' the class, but too weakly to pay for a cut.
#'
#' With `permutations`, the classes of the samples are permuted, and all rows
#' are divided again each time. `chance` has the number of rows that are kept in
#' each permutation. Its mean divided by the number of rows kept estimates the
#' share of noise among them. It is too large if many rows are not noise. If
#' there are no more ways to assign the classes to the samples than
#' `permutations`, each is used once.
#'
#' The `p_value` of a row compares its information gain with those of all rows,
#' in the data and in all permutations. It is the share of gains at least as
#' large, and 1 without a cut. Rows without equal values have the same
#' distribution of gains if the class does not matter, so they are compared with
#' each other. A row with many equal values has smaller gains by chance. Its
#' p-value is then too large, and those of other rows may be somewhat too small.
#'
#' `fdr` is the p-value adjusted over all rows by Benjamini and Hochberg (1995).
#' With B permutations it is at least 1 / (B + 1).
#'
#' The null hypothesis is that every order of the classes is equally likely, so
#' samples must be independent.
#'
#' @param x Features (genes, probes) in rows and samples in columns. It is a
#'   numeric, integer or logical matrix, a data frame of numeric columns, an
#'   `ExpressionSet`, or a `SummarizedExperiment`. Of the latter, the default
#'   assay of [knn_search()] is read. All values must be finite.
#' @param class The class of each sample, one value for each column of `x`, in
#'   that order or with their names. It is a factor, text, logical values or
#'   whole numbers, with at least two classes and none missing. For an
#'   `ExpressionSet` or a `SummarizedExperiment`, it may be the name of a column
#'   of its sample data.
#' @param ... Must be empty: later arguments must be named in full.
#' @param permutations Number of permutations of `class`. `NULL` (default) does
#'   none. See *Rows of pure noise*.
#' @inheritParams run_options
#' @inheritParams knn_search
#'
#' @returns A list of class `fsknn_mdl_filter`, with a print method:
#'   * `cuts`: a list with a numeric vector for each row of `x`, the accepted
#'     cuts in increasing order, or `numeric(0)`. A value equal to a cut belongs
#'     to the interval below it. Row names are kept.
#'   * `gain`: the information gain of each row's intervals, in bits. It is the
#'     entropy of the class minus its mean entropy within the final intervals
#'     (weighted by their samples). It is 0 without a cut.
#'   * `keep`: whether each row has a cut. To filter, use `x[f$keep, ]`.
#'   * `levels`: an integer matrix of the rows kept, where 1 is the lowest
#'     interval. It is an input of [alpha_beta_k()].
#'   * `class`: the class of each sample, a factor.
#'
#'   With permutations, it also has
#'   * `p_value` and `fdr`: those of each row;
#'   * `chance`: the number of rows kept in each permutation;
#'   * `relabelled`: a list with the smallest p-value that a row without equal
#'     values can have (`smallest_p`).
#'
#' `predict()` returns an integer matrix of such levels, with a row for each row
#' kept and a column for each sample of `newdata`.
#'
#' @section Errors:
#' An invalid argument, a value that is missing or not finite, and a class with
#' fewer than two values are errors of class `fsknn_argument_error`. To leave
#' out rows with missing values, use `x[rowSums(is.na(x)) == 0, ]`.
#'
#' @references
#' Fayyad UM, Irani KB (1993). Multi-Interval Discretization of
#' Continuous-Valued Attributes for Classification Learning. *Proceedings of the
#' 13th International Joint Conference on Artificial Intelligence*, 1022-1027.
#' <https://hdl.handle.net/2014/35171>
#'
#' Fayyad UM, Irani KB (1992). On the Handling of Continuous-Valued Attributes
#' in Decision Tree Generation. *Machine Learning* 8: 87-102.
#' \doi{10.1007/BF00994007}
#'
#' Benjamini Y, Hochberg Y (1995). Controlling the false discovery rate.
#' *Journal of the Royal Statistical Society B* 57: 289-300.
#' \doi{10.1111/j.2517-6161.1995.tb02031.x}
#'
#' Arefin AS, Riveros C, Berretta R, Moscato P (2012). GPU-FS-kNN: A Software
#' Tool for Fast and Scalable kNN Computation Using GPUs. *PLoS ONE* 7(8):
#' e44000. \doi{10.1371/journal.pone.0044000}
#' @seealso [alpha_beta_k()] for a small set of the rows kept.
#' @export
#' @examples
#' f <- mdl_filter(t(iris[, 1:4]), iris$Species)
#' f
#' f$cuts
#' table(predict(f, t(iris[, 1:4]))["Petal.Length", ], iris$Species)
#'
#' # How many of 1,000 rows of noise are kept?
#' noise <- matrix(rnorm(1000 * 20), 1000)
#' mdl_filter(noise, rep(1:2, 10), permutations = 19)
mdl_filter <- function(x, class, ..., permutations = NULL, num_threads = NULL,
                       progress = NULL) {
  check_no_more(...)
  check_supplied(x)
  check_supplied(class)
  permutations <- check_permutations(permutations)
  num_threads <- check_num_threads(num_threads)
  progress <- check_progress(progress)
  points <- in_memory(as_points(expression_of(x)))
  check_num_points(nrow(points$values), 1L, "x")
  class <- check_class(
    class, x, ncol(points$values), feature_names(points$values)
  )
  scan <- in_core(cpp_scan(points$values, num_threads))
  check_finite(points, scan, "x")
  found <- in_core(
    cpp_mdl_cuts(points$values, class, nlevels(class), num_threads, progress)
  )
  cuts <- stats::setNames(found$cuts, points$names)
  filter <- list(
    cuts = cuts,
    gain = stats::setNames(found$gain, points$names),
    keep = lengths(cuts) > 0,
    levels = NULL,
    class = class
  )
  filter$levels <- levels_by(filter, points$values, num_threads)
  if (!is.null(permutations)) {
    filter <- c(filter, judge_cuts(
      points$values, class, filter$gain, permutations, num_threads, progress
    ))
  }
  structure(filter, class = "fsknn_mdl_filter")
}

# Divides all rows again by permuted classes. The data count as one permutation,
# so that p-values are exact if there are no equal values and all relabellings
# are used.
judge_cuts <- function(values, class, gain, permutations, num_threads, progress,
                       call = caller_env()) {
  labels <- t(as.integer(class))
  relabelled <- relabellings(
    exchange_of(labels), permutations, labels, same_classes, "class", call
  )
  drawn <- relabelled$drawn
  bar <- new_split_bar(progress, ncol(drawn))
  on.exit(end_bar(bar))
  count_beyond <- function(gains) {
    # Sums of the same terms in another order differ in their last bits.
    length(gains) - findInterval(gain - 1e-9, sort(gains), left.open = TRUE)
  }
  beyond <- count_beyond(gain)
  chance <- integer(ncol(drawn))
  for (at in seq_len(ncol(drawn))) {
    found <- in_core(
      cpp_mdl_cuts(
        values, class[drawn[, at]], nlevels(class), num_threads, FALSE
      ),
      call
    )
    beyond <- beyond + count_beyond(found$gain)
    chance[[at]] <- sum(lengths(found$cuts) > 0)
    step_bar(bar, 1)
  }
  p <- beyond / (length(gain) * (ncol(drawn) + 1))
  list(
    p_value = stats::setNames(p, names(gain)),
    fdr = stats::setNames(stats::p.adjust(p, "BH"), names(gain)),
    chance = chance, relabelled = relabelled$facts
  )
}

#' @rdname mdl_filter
#' @param object A filter, as returned by `mdl_filter()`.
#' @param newdata The same features of the same or other samples, in any form
#'   that `mdl_filter()` accepts. It has all rows from which the filter was
#'   made, or only the rows kept, in that order or with their names.
#'   `predict()` applies the filter's cuts to them. Missing values remain
#'   missing.
#' @method predict fsknn_mdl_filter
#' @export
predict.fsknn_mdl_filter <- function(object, newdata, ..., num_threads = NULL) {
  check_no_more(...)
  check_supplied(newdata)
  num_threads <- check_num_threads(num_threads)
  values <- expression_of(newdata, "newdata")
  points <- in_memory(as_points(values, "newdata"), "newdata")
  levels_by(object, filter_rows(object, points), num_threads)
}

# Returns all rows that the filter was made from, or those it keeps, in its
# order.
filter_rows <- function(filter, points, call = caller_env()) {
  all <- length(filter$keep)
  kept <- sum(filter$keep)
  given <- nrow(points$values)
  if (given != all && given != kept) {
    abort_argument(
      c(
        "{.arg newdata} must have the rows that the filter was made from
         ({format_count(all)}) or those that it keeps ({format_count(kept)}).",
        x = "It has {format_count(given)}."
      ),
      call
    )
  }
  wanted <- names(filter$keep)
  if (given != all) {
    wanted <- wanted[filter$keep]
  }
  at <- match_order(
    points$names, wanted, words_of_rows("object", "newdata"), call
  )
  if (is.null(at)) points$values else points$values[at, , drop = FALSE]
}

# Returns the kept rows as levels from 1. `values` has all rows or only the kept
# ones.
levels_by <- function(filter, values, num_threads, call = caller_env()) {
  kept <- which(filter$keep)
  rows <- if (nrow(values) == length(filter$keep)) kept else seq_along(kept)
  found <- in_core(
    cpp_levels(values, rows, filter$cuts[filter$keep], num_threads), call
  )
  if (!is.null(names(kept)) || !is.null(colnames(values))) {
    dimnames(found$levels) <- list(names(kept), colnames(values))
  }
  found$levels
}

#' @export
print.fsknn_mdl_filter <- function(x, ..., n = 5) {
  cat(format(x, n = n), sep = "\n")
  invisible(x)
}

#' @method format fsknn_mdl_filter
#' @export
format.fsknn_mdl_filter <- function(x, ..., n = 5) {
  all <- length(x$keep)
  kept <- sum(x$keep)
  sizes <- table(x$class)
  of_class <- paste0(names(sizes), " (", format_count(as.vector(sizes)), ")")
  cuts <- table(lengths(x$cuts)[x$keep])
  lines <- c(
    paste0(
      "MDL filter: ", tally(all, "row"), ", ", tally(length(x$class), "sample")
    ),
    paste0("Classes: ", first_few(of_class, limit = 5L)),
    paste0("Kept: ", format_count(kept), " (", percent(kept / all), ")"),
    describe_chance(x)
  )
  if (kept == 0) {
    return(c(lines, "No row has a cut that pays for its description."))
  }
  with_cuts <- paste0(
    vapply(as.vector(cuts), format_count, ""), " with ",
    vapply(as.integer(names(cuts)), tally, "", what = "cut")
  )
  best <- utils::head(order(-x$gain), min(n, kept))
  named <- names(x$gain)[best] %||% paste("row", best)
  # The cuts of a row take up to 40 characters.
  named <- few_items(named, length(named), width = page_width() - 42L)
  c(
    lines,
    paste0("Cuts: ", first_few(with_cuts, limit = 5L)),
    if (length(best) > 0) "Most informative rows (bits; cuts):",
    if (length(best) > 0) paste0(
      "  ", format(named), "  ", format(round(x$gain[best], 3), nsmall = 3),
      "; ", vapply(x$cuts[best], function(cuts) {
        first_few(format(cuts, digits = 4, trim = TRUE), limit = 4L)
      }, "")
    )
  )
}

describe_chance <- function(x) {
  if (is.null(x$chance)) {
    return(NULL)
  }
  # All relabellings include the data.
  mean <- mean(c(x$chance, if (x$relabelled$all) sum(x$keep)))
  c(
    paste0(
      "By chance: ", format(mean, digits = 3), " (mean of ",
      describe_relabelling(x$relabelled), ")"
    ),
    paste0(
      tally(sum(x$fdr <= 0.05), "row"), " with an fdr of 0.05 or less"
    ),
    describe_smallest_p(x$relabelled)
  )
}

percent <- function(share) {
  paste0(format(round(100 * share, 1), nsmall = 1, trim = TRUE), "%")
}

#' @rdname results
#' @method as.data.frame fsknn_mdl_filter
#' @export
as.data.frame.fsknn_mdl_filter <- function(x, row.names = NULL,
                                           optional = FALSE, ...) {
  check_no_more(...)
  check_unused(row.names, optional)
  columns <- list(row = seq_along(x$keep))
  columns$name <- names(x$keep)
  as.data.frame(
    c(columns, list(
      keep = unname(x$keep), gain = unname(x$gain),
      num_cuts = unname(lengths(x$cuts)),
      cuts = vapply(x$cuts, function(cuts) {
        paste(format(cuts, digits = 4, trim = TRUE), collapse = ", ")
      }, "", USE.NAMES = FALSE)
    ), lapply(x[intersect(c("p_value", "fdr"), names(x))], unname)),
    stringsAsFactors = FALSE
  )
}

#' @rdname results
#' @method summary fsknn_mdl_filter
#' @export
summary.fsknn_mdl_filter <- function(object, ...) {
  check_no_more(...)
  gain <- object$gain[object$keep]
  structure(
    list(
      lines = format(object, n = 0),
      num_rows = length(object$keep), kept = sum(object$keep),
      classes = table(object$class, dnn = NULL),
      entropy = class_entropy(object$class),
      cuts = table(lengths(object$cuts)[object$keep], dnn = NULL),
      gain = stats::quantile(gain, c(0, 0.25, 0.5, 0.75, 1))
    ),
    class = "summary.fsknn_mdl_filter"
  )
}

# Returns the entropy in bits, the maximum that a row can say about the class.
class_entropy <- function(class) {
  share <- tabulate(class) / length(class)
  share <- share[share > 0]
  -sum(share * log2(share))
}

#' @export
print.summary.fsknn_mdl_filter <- function(x, ...) {
  cat(x$lines, sep = "\n")
  if (x$kept > 0) {
    gain <- sprintf("%.3f", x$gain)
    cat(
      "Information of the rows kept (bits of ", sprintf("%.3f", x$entropy),
      "): median ", gain[[3]], ",\n  quartiles ", gain[[2]], " and ", gain[[4]],
      ", from ", gain[[1]], " to ", gain[[5]], "\n", sep = ""
    )
  }
  invisible(x)
}

#' @rdname results
#' @method plot fsknn_mdl_filter
#' @export
plot.fsknn_mdl_filter <- function(x, ...) {
  check_no_more(...)
  rlang::check_installed("ggplot2", "to draw a filter.")
  kept <- order(-x$gain, seq_along(x$gain))
  kept <- kept[x$keep[kept]]
  cuts <- lengths(x$cuts)[kept]
  words <- c("1 cut", "2 cuts", "3 or more")
  shown <- data.frame(
    rank = seq_along(kept), gain = unname(x$gain[kept]),
    cuts = factor(words[pmin(cuts, 3L)], levels = words)
  )
  entropy <- class_entropy(x$class)
  ggplot2::ggplot(shown, ggplot2::aes(x = .data$rank, y = .data$gain)) +
    ggplot2::geom_hline(
      yintercept = entropy, linetype = "dashed", colour = "grey40"
    ) +
    ggplot2::annotate(
      "text", x = Inf, y = entropy, hjust = 1.05, vjust = -0.6, size = 3,
      colour = "grey30", label = "all there is to know of the class"
    ) +
    ggplot2::geom_point(
      ggplot2::aes(colour = .data$cuts, shape = .data$cuts), size = 1.4
    ) +
    ggplot2::scale_colour_manual(values = c(
      "1 cut" = "#0072B2", "2 cuts" = "#E69F00", "3 or more" = "#009E73"
    )) +
    ggplot2::scale_x_continuous(labels = format_counts) +
    ggplot2::expand_limits(y = c(0, 1.08 * entropy)) +
    ggplot2::labs(
      title = paste(format(x, n = 0)[c(1, 3)], collapse = ". "),
      x = "Rows kept, the most informative first",
      y = "Information of the class (bits)"
    ) +
    theme_summary()
}
