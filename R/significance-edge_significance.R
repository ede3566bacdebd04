#' Significance of the edges of a graph
#'
#' Computes p-values for the edges of a graph, each pair of points once. For
#' correlations they come from Student's t (for Spearman's, from the
#' distribution of ranks), adjusted for *all* pairs of points. For any metric
#' they come from permutations, in which the search is repeated on independent
#' points.
#'
#' @details
#' **Null hypotheses.** For `p_value`, the two points are independent over the
#' samples (with normal values, or with `"spearman"` any values). For
#' `p_permutation`, *all* points are independent of each other, and each order
#' of a point's samples is equally likely.
#'
#' **`p_value`** is one-sided or two-sided as the edges' `sign` requires: large
#' r for `"signed"`, low r for `"negative"`, and both for `"absolute"`.
#' Student's t has n - 2 degrees of freedom, less the number of covariates that
#' the edges were adjusted for. n is the number of samples, with `na =
#' "pairwise"` the number that both points have. With `na = "mean"`, r and n use
#' all samples. For `"bicor"`, the t distribution is an approximation.
#'
#' For `"spearman"`, p-values without ties are exact for up to 21 samples, and
#' beyond come from a beta distribution: see [nearest_to()]. If one of the two
#' points has ties, they come from t. With `na = "pairwise"`, they are somewhat
#' too large for pairs that lack samples.
#'
#' If Pearson's correlation has heavy tails (see *Skewed values*), and there are
#' `permutations`, `p_value` and `p_adjusted` come from these instead.
#'
#' `p_value` is valid only for a pair that was chosen in advance. The edges were
#' selected because their points are near, so use `p_adjusted` for them.
#'
#' **`p_adjusted`** adjusts for all m pairs of the points that are not isolated,
#' though only the listed pairs have p-values. Let p(1), p(2), ... be these in
#' increasing order.
#'
#' With `p_adjust = "BH"` (Benjamini and Hochberg 1995), the edge of p(j) has
#' the minimum of m p(i) / i over all i from j on. The rank of a listed pair
#' among all pairs is i or larger. So no value is below the adjusted p-value
#' over all pairs. If the listed pairs are the nearest of all, as from
#' [threshold_graph()], the two are equal except for the last ones.
#'
#' The edges with `p_adjusted` up to 0.05 are therefore among those that the
#' procedure rejects over all pairs at a false discovery rate of 0.05. Under the
#' conditions of the procedure, the rate holds for these edges. It does not hold
#' for the whole list or for another selection from it. Pairs that share a point
#' have dependent correlations. For these, the procedure is usually safe but not
#' proven to be.
#'
#' `"BY"` (Benjamini and Yekutieli 2001) holds under any dependence. Its values
#' are larger by a factor, the sum of 1 / i for i up to m, about ln(m) + 0.58.
#' `"bonferroni"` is m p, which bounds the probability of any false pair.
#'
#' **`p_permutation`.** Each permutation reorders the samples of every point
#' independently by R's random numbers, and the same search is run again. For
#' correlations, the p-value compares an edge's distance with the *smallest of
#' all* distances of a permutation. It is (b + 1) / (B + 1), where b of B
#' permutations have one as small or smaller (Phipson and Smyth 2010). If all
#' points are independent, the probability that any edge has a value of at most
#' 0.05 is at most 0.05.
#'
#' That control is *weak*: it holds if all points are independent. If some
#' depend on each other, a small value still shows that the *graph* is not due
#' to chance. It does not show which of the further edges are real.
#'
#' `p_from` and `p_to` use the smallest distance of one end of the edge: how
#' often does this point have as near a neighbour by chance? They are not
#' adjusted for the number of points.
#'
#' With `na = "pairwise"`, each pair has its own number of samples. P-values of
#' correlations then take the place of distances here. So a pair is compared
#' with the *smallest p-value* of a permutation (Westfall and Young 1993).
#'
#' **Weights.** Unequal `weights` must say their kind, as in `weights =
#' list(precision = w)`: see "P-values with weights" in [nearest_to()].
#' Permuted samples of other precision take the variance of their new place.
#' With frequencies, there are no `permutations`.
#'
#' **Metrics that are not correlations.** Their distances have no scale that is
#' common to all points: points of low variance are near to all others. So each
#' point's smallest distance is first compared with its own null distribution.
#' The statistic of a permutation is the minimum over points (the min-p of
#' Westfall and Young 1993). An edge has the smaller value of its two ends.
#'
#' Ranks among B permutations would be too coarse for this, because some of many
#' points always has the first rank. Instead, each point's smallest distance is
#' standardised by its mean and standard deviation over the permutations and the
#' data. This treats the data like each permutation, so its validity does not
#' depend on a normal distribution.
#'
#' **Whole units.** Samples of one unit, such as the cells of a donor, are not
#' independent. With `unit`, whole units of each point are exchanged. The first
#' sample of a unit gets the value of another unit's first sample, and so on.
#' This needs units of equal size. For others, average the samples of each unit
#' (pseudobulk).
#'
#' The null hypothesis is then that all points are independent of each other,
#' and each order of a point's units is equally likely. Student's t takes
#' samples as independent. So with `unit` there is no `p_value` and no
#' `p_adjusted`, and `permutations` are necessary.
#'
#' **Covariates.** With `adjust`, permuted points are adjusted for the same
#' covariates, of which they are independent. They then have the same degrees of
#' freedom as the data. The null hypothesis is that the points are independent
#' given the covariates, with errors of equal variance.
#'
#' With `unit`, the residuals of the covariates are exchanged, and adjusted once
#' more (Freedman and Lane 1983). So covariates may vary within units or not.
#' Ranks keep a part of a strong effect, so use `"pearson"` then.
#'
#' @section Skewed values:
#' Student's t is too small in the far tail for skewed values, for outliers and
#' for many zeros. A message (class `fsknn_tails`) says so. It depends on the
#' skewness of r and on the share by which its fourth moment is too large. Both
#' follow from the moments of the rows, over all orders of the samples (Pitman
#' 1937), and are means over at most 1,000 rows. Under `"spearman"`, they are
#' those of rows with ties. There is no message under `"bicor"`.
#'
#' The smaller a p-value, the more the tails matter, and with many pairs only
#' small ones are significant. So the message is about p-values at Bonferroni's
#' limit, 0.05 divided by the number of pairs (1e-4 at most). It is shown if
#' they are twice as frequent as they should be, by the first terms of
#' Edgeworth's expansion (Kolassa 2006). These are rough in the far tail.
#' `inst/bench/calibration_tails.R` counts p-values and messages for 14
#' distributions.
#'
#' With `permutations`, the p-value of an edge is then the share of *all* pairs
#' of all permutations that are as near. If b are as near, it is
#' `(b + 1) / (B m + 1)` for m pairs. So it can be far smaller than 1 / B. With
#' many edges, the distance compared may be slightly larger.
#'
#' If some points have heavier tails than others, the p-values of *their* edges
#' are too small, and those of other edges too large. With `na = "pairwise"`,
#' they stay those of t. `inst/bench/calibration_edges.R` simulates lognormal
#' values and counts.
#'
#' @section Edges explained by a common neighbour:
#' If A regulates B, and B regulates C, A and C are correlated, too. So are all
#' targets of a hub.
#'
#' With `explain = TRUE`, each edge is compared with its common
#' neighbours, the points that have an edge of `edges` with both of its ends.
#' `partial_correlation` is the first-order partial correlation of the ends
#' given the neighbour that makes it smallest in absolute value, and
#' `explained_by` is this neighbour. Both are `NA` without a common neighbour.
#' With r the correlations of i, j and neighbour k, it is
#' `(r_ij - r_ik r_jk) / sqrt((1 - r_ik^2) (1 - r_jk^2))`.
#'
#' A value near 0 says that k is enough to explain the edge. It is a filter: for
#' instance, keep the edges without a common neighbour and those with a
#' `partial_correlation` above 0.3 in absolute value. There is no p-value, since
#' the neighbour was selected. With n samples, the partial correlation of an
#' edge that k explains has a standard error of about `1 / sqrt(n - 3)`. The
#' smallest of several is nearer to 0 by chance, also for a direct edge with
#' many common neighbours.
#'
#' In a chain or a hub of normal values, the indirect edges have small values.
#' The direct edges keep most of their correlation. `calibration_explained.R` in
#' `inst/bench` simulates both. In a module of points that share a *hidden*
#' factor, no edge is direct, but many keep a large value. Each point is only a
#' noisy measurement of the factor.
#'
#' The rule is related to the data processing inequality of ARACNE (Margolin and
#' others 2006), which removes the weakest edge of a triangle. It is also
#' related to PCIT (Reverter and Chan 2008), which compares the partial with the
#' plain correlation. It equals neither. Neighbours that are not in `edges` are
#' not tried, so it depends on k. With `na = "pairwise"`, the three correlations
#' are over different samples. The formula is then an approximation, and is
#' limited to the range from -1 to 1.
#'
#' @section What is not controlled:
#' * Heavy tails, if there are no `permutations`. P-values by Student's t need
#'   values that are nearly normal, and the smallest of many p-values need it
#'   most. We simulated 40 independent
#'   points over 20 samples with heavy tails (t, 3 degrees of freedom). With
#'   `"bonferroni"` at 0.05, 21% of data sets have a false pair. With
#'   `"spearman"`, or with `p_permutation`, it is at most 5%.
#' * Ties under `"spearman"`, as in counts. P-values then come from Student's t,
#'   which is too small in the far tail, above all with few samples or many
#'   zeros. Use `p_permutation`.
#' * Batches and subgroups of samples. They make points depend on each other,
#'   and such edges are significant. They are not due to chance, but they may
#'   not be biology either: see `adjust` in [point_options()].
#' * Repeated samples, such as several cells of one donor, without `unit`.
#' * Permuted [metafeatures()] have no meaning, since pairs share their rows.
#'
#' @param edges An edge data frame of any kind, from [knn_graph()],
#'   [threshold_graph()] or [undirected_edges()], for instance. Its metric,
#'   `sign`, k and so on are taken from its attributes.
#' @param x The points from which the edges were computed. Each edge's distance
#'   is computed again, and another value is an error.
#' @param p_adjust `"BH"` (default), `"BY"` or `"bonferroni"`: see Details.
#' @param permutations Number of permutations of the samples, a whole number.
#'   `NULL` (default) does none. Metrics that are not correlations need some.
#' @param explain `TRUE` adds the columns `partial_correlation` and
#'   `explained_by`: see *Edges explained by a common neighbour*. `FALSE`
#'   (default) does not.
#' @param metric,sign,k As in [knn_graph()], for edges without these attributes,
#'   which were read from a file or come from another package. `k` is that of
#'   the searches of permuted points, 1 if it is not known.
#' @param unit `NULL` (default), or the unit of each sample (column of `x`),
#'   such as its donor, given as for [edge_stability()]: see Details.
#' @param ... [Point options][point_options()] and [run options][run_options()],
#'   by name, or collected as `options = `. Give `constant`, `weights`, `na`,
#'   `min_pairs`, `adjust` and `data` the values with which the edges were
#'   computed. Data that are read by blocks must fit in `max_memory`. With
#'   `BPPARAM`, workers share each permuted search. A `checkpoint` keeps the
#'   result of each permutation, and a run that continues must start from the
#'   same random seed.
#'
#' @returns An edge data frame as from [undirected_edges()], with each pair
#'   once. It also has class `fsknn_significance`. For correlations without
#'   `unit`, it has the columns `p_value` and `p_adjusted`. With permutations,
#'   it has `p_from`, `p_to` and `p_permutation`. With `explain = TRUE`, it has
#'   `partial_correlation` and `explained_by`, the name or number of a point.
#'
#'   The attribute `significance` has the number of pairs that were adjusted
#'   for. It also has the observed and the permuted distances by rank. `plot()`
#'   draws these as a ggplot. `summary()` counts the edges below some levels.
#' @inheritSection knn_search Errors
#' @references
#' Benjamini Y, Hochberg Y (1995). Controlling the false discovery rate.
#' *Journal of the Royal Statistical Society B* 57: 289-300.
#' \doi{10.1111/j.2517-6161.1995.tb02031.x}
#'
#' Benjamini Y, Yekutieli D (2001). The control of the false discovery rate in
#' multiple testing under dependency. *Annals of Statistics* 29: 1165-1188.
#' \doi{10.1214/aos/1013699998}
#'
#' Kolassa JE (2006). *Series Approximation Methods in Statistics*. Springer.
#' \doi{10.1007/0-387-32227-2}
#'
#' Margolin AA, Nemenman I, Basso K, et al. (2006). ARACNE: an algorithm for the
#' reconstruction of gene regulatory networks in a mammalian cellular context.
#' *BMC Bioinformatics* 7(Suppl 1): S7. \doi{10.1186/1471-2105-7-S1-S7}
#'
#' Freedman D, Lane D (1983). A Nonstochastic Interpretation of Reported
#' Significance Levels. *Journal of Business & Economic Statistics* 1: 292-298.
#' \doi{10.1080/07350015.1983.10509354}
#'
#' Phipson B, Smyth GK (2010). Permutation p-values should never be zero.
#' *Statistical Applications in Genetics and Molecular Biology* 9: 39.
#' \doi{10.2202/1544-6115.1585}
#'
#' Pitman EJG (1937). Significance tests which may be applied to samples from
#' any populations. II. The correlation coefficient test. *Supplement to the
#' Journal of the Royal Statistical Society* 4: 225-232. \doi{10.2307/2983647}
#'
#' Reverter A, Chan EKF (2008). Combining partial correlation and an information
#' theory approach to the reversed engineering of gene co-expression networks.
#' *Bioinformatics* 24(21): 2491-2497. \doi{10.1093/bioinformatics/btn482}
#'
#' Westfall PH, Young SS (1993). *Resampling-Based Multiple Testing*. Wiley.
#' @seealso [edge_stability()] for whether an edge persists in other subsets of
#'   the samples.
#' @export
#' @examples
#' # A pair of genes that vary together, among noise
#' x <- matrix(rnorm(60 * 30), 60)
#' x[2, ] <- x[1, ] + 0.3 * x[2, ]
#' rownames(x) <- paste0("gene", 1:60)
#' edges <- knn_graph(x, k = 3)
#' found <- edge_significance(edges, x)
#' found[order(found$p_value), ]
#'
#' # Which edges does a common neighbour explain?
#' x[3, ] <- x[2, ] + 0.3 * x[3, ]
#' edge_significance(knn_graph(x[1:9, ], k = 3), x[1:9, ], explain = TRUE)
#'
#' # Any metric, by permutations
#' by_distance <- edge_significance(
#'   knn_graph(x, k = 3, metric = "euclidean"), x, permutations = 99
#' )
#' summary(by_distance)
edge_significance <- function(edges, x, ...,
                              p_adjust = c("BH", "BY", "bonferroni"),
                              permutations = NULL, metric = NULL, sign = NULL,
                              k = NULL, explain = FALSE, unit = NULL) {
  check_supplied(edges)
  check_supplied(x)
  p_adjust <- check_choice(
    p_adjust, c("BH", "BY", "bonferroni"), "p_adjust",
    synonyms = c(fdr = "BH", hochberg = "BH", yekutieli = "BY", fwer =
                   "bonferroni")
  )
  permutations <- check_permutations(permutations)
  explain <- check_flag(explain, "explain")
  edges <- edges_of(edges)
  metric <- recorded_or_given(edges, "metric", metric)
  sign <- recorded_or_given(edges, "sign", sign, "signed")
  k <- recorded_or_given(edges, "k", k, 1L)
  given <- options_given("edge_significance", ...)
  check_told_again(edges, "weighted", given$weights, "weights")
  check_told_again(edges, "num_covariates", given$adjust, "adjust")
  options <- check_options(given, "edge_significance")
  check_has_p(options$metric, permutations, !is.null(unit))
  check_explains(explain, options$metric)
  options$weighting <- weigh_p(x, options, TRUE, permutations)
  # Values are permuted and compared with those of the edges, in memory.
  options$in_memory <- TRUE
  search <- new_search(x, options, k = k)
  unit <- units_of_search(unit, search, x)
  check_equal_units(unit)
  pairs <- pairs_of_edges(edges, search)
  tested <- list(p_adjust = p_adjust, permutations = permutations)
  tested$num_units <- if (!is.null(unit)) max(unit)
  added <- NULL
  has_t <- has_correlation(options$metric) && is.null(unit)
  tails <- if (has_t) tails_of(search)
  # Pairs with samples of their own have no common distribution of r.
  counts <- !is.null(tails) && !is.null(permutations) &&
    !has_own_samples(search)
  tell_tails(tails, search$request$metric, if (counts) {
    "{.code p_value} comes from the permutations instead."
  } else if (is.null(permutations)) {
    "Give {.arg permutations}, such as 100."
  } else {
    "Use {.code p_permutation}."
  })
  if (has_t) {
    added <- p_of_correlations(pairs, search, p_adjust)
    tested$num_pairs <- count_all_pairs(search)
  }
  if (!is.null(permutations)) {
    limits <- if (counts) limits_of_pairs(pairs)
    null <- permute_and_search(
      search, permutations, unit, limits, current_env()
    )
    if (counts) {
      added <- p_over_pairs(pairs, null, tested, search)
      tested$by_permutation <- TRUE
    }
    if (has_own_samples(search)) {
      pairs$limit <- p_without_missing(
        r_of_distance(as_small(pairs$distance, TRUE), sign),
        samples_of_pairs(pairs, search), search$request,
        ties_of_pairs(pairs, search)
      )
    }
    added <- c(added, p_of_permutations(pairs, null))
    tested$by_rank <- null$by_rank
  }
  if (explain) {
    added <- c(added, explain_pairs(pairs, search))
  }
  new_significance(pairs$edges, added, tested)
}

# Returns a setting that the edges recorded or the user gave. If both exist,
# they must agree.
recorded_or_given <- function(edges, what, given, otherwise = NULL,
                              call = caller_env()) {
  recorded <- attr(edges, what, exact = TRUE)
  if (is.null(recorded) || is.null(given) || identical(recorded, given) ||
        is.numeric(given) && isTRUE(all(recorded == given))) {
    value <- recorded %||% given %||% otherwise
    if (is.null(value)) {
      abort_argument(
        c(
          "{.arg edges} do not say by which {.arg {what}} they were made.",
          i = "Give {.arg {what}}."
        ),
        call
      )
    }
    return(value)
  }
  now <- describe_value(given)
  abort_argument(
    c(
      "{.arg {what}} must be that by which {.arg edges} were made.",
      x = "They were made with {.val {recorded}}, not {now}.",
      i = "Leave {.arg {what}} out."
    ),
    call
  )
}

# The edges record that this argument was used, but not its value.
check_told_again <- function(edges, recorded, given, arg, call = caller_env()) {
  had <- attr(edges, recorded, exact = TRUE)
  if (is.null(given) && !is.null(had) && had > 0) {
    abort_argument(
      c(
        "{.arg {arg}} must be given: {.arg edges} were made with some.",
        i = "Give the same as then."
      ),
      call
    )
  }
}

check_has_p <- function(metric, permutations, has_units,
                        call = caller_env()) {
  if (!is.null(permutations) || has_correlation(metric) && !has_units) {
    return(invisible())
  }
  if (has_units) {
    abort_argument(
      c(
        "{.arg permutations} must be given with {.arg unit}.",
        x = "P-values without permutations take all samples as independent.",
        i = "For example {.code permutations = 99}."
      ),
      call
    )
  }
  abort_argument(
    c(
      "{.arg permutations} must be given for metric {.val {metric$name}}.",
      x = "Its distances have no p-value of their own, as correlations have.",
      i = "For example {.code permutations = 99}."
    ),
    call
  )
}

# Each point is permuted by itself, so that a sample gets the value of one at
# the same place of another unit.
check_equal_units <- function(unit, call = caller_env()) {
  if (is.null(unit)) {
    return(invisible())
  }
  sizes <- range(tabulate(unit))
  if (sizes[[1]] == sizes[[2]] && max(unit) > 1) {
    return(invisible())
  }
  abort_argument(
    c(
      "{.arg unit} must have two units or more, all of the same size.",
      x = "{cli::qty(max(unit))}There {?is/are} {format_count(max(unit))}, of
           {paste(unique(format_count(sizes)), collapse = \" to \")} samples.",
      i = "For others, take one value of each unit (a pseudobulk): the mean or
           the sum of its samples, for {.arg x} and for the search of the
           edges."
    ),
    call
  )
}

check_explains <- function(explain, metric, call = caller_env()) {
  if (!explain || has_correlation(metric)) {
    return(invisible())
  }
  able <- metrics_with("has_sign")
  abort_argument(
    c(
      "{.arg explain} can't be used with metric {.val {metric$name}}.",
      x = "Only {able} have partial correlations."
    ),
    call
  )
}

# --- the pairs, checked against x --------------------------------------------

# Returns list(edges, from, to, distance, correlation, common): each pair of the
# edges once, by number of point, with its distance computed again.
pairs_of_edges <- function(edges, search, call = caller_env()) {
  given <- attr(edges, "vertices")$name
  edges <- undirected_edges(edges, "union")
  names <- point_names(search$points)
  known <- names %||% seq_len(nrow(search$points$values))
  numbers <- match(id_text(given), id_text(known))
  if (all(is.na(numbers)) && is.character(given) == is.null(names)) {
    # One side has no names. Numbers of points then mean positions.
    numbers <- if (is.null(names)) {
      place <- setdiff(seq_along(known), search$left_out$point)
      if (length(place) == length(given)) place else numbers
    } else {
      match(given, seq_along(known))
    }
  }
  others <- setdiff(
    seq_along(known), c(numbers, search$left_out$point)
  )
  if (anyNA(numbers) || length(others) > 0) {
    missing <- id_text(attr(edges, "vertices")$name[is.na(numbers)])
    abort_not_of_x(
      if (length(missing) > 0) {
        paste0(
          format_count(length(missing)), " of their points not in `x`: ",
          first_few(paste0("\"", utils::head(missing, 3), "\""),
                    length(missing))
        )
      } else {
        paste0("`x` has ", tally(length(others), "point"), " more")
      },
      call
    )
  }
  facts <- edges_facts(edges, "edges", call)
  from <- numbers[facts$from]
  to <- numbers[facts$to]
  measured <- measure_pairs(search, from, to, call)
  check_measured(edges, measured, search, call)
  c(list(edges = edges, from = from, to = to), measured)
}

# Distances from a file have six decimals.
check_measured <- function(edges, measured, search, call) {
  given <- edges[["distance"]]
  if (is.null(given)) {
    return(invisible())
  }
  scale <- max(1, abs(given[is.finite(given)]))
  off <- is.na(measured$distance) |
    abs(given - measured$distance) > 1e-6 * scale
  off <- which(off | is.na(off))
  if (length(off) == 0) {
    return(invisible())
  }
  at <- off[[1]]
  abort_not_of_x(
    paste0(
      tally(length(off), "distance"), " other than in `x`: from ",
      format(edges$from[[at]]), " to ", format(edges$to[[at]]), " there is ",
      format(given[[at]]), ", and in `x` ", format(measured$distance[[at]])
    ),
    call
  )
}

abort_not_of_x <- function(why, call) {
  abort_argument(
    c(
      "{.arg edges} must have been made of {.arg x}.",
      x = "{why}.",
      i = "Give the values, and the settings ({.arg weights}, {.arg na} and so
           on), that they were made with."
    ),
    call
  )
}

# --- p-values of correlations ------------------------------------------------

p_of_correlations <- function(pairs, search, p_adjust) {
  p <- correlation_p_value(
    pairs$correlation, samples_of_pairs(pairs, search),
    num_covariates(search$request) %||% 0,
    metric = search$request$metric,
    alternative = alternative_of_sign(search$request$sign),
    ties = ties_of_pairs(pairs, search)
  )
  list(
    p_value = p,
    p_adjusted = adjust_listed(p, count_all_pairs(search), p_adjust)
  )
}

# The p-value is the share of all permuted pairs that are as near. In the
# permutations of a point by itself, all orders of its samples are equally
# likely.
p_over_pairs <- function(pairs, null, tested, search) {
  at <- findInterval(
    as_small(pairs$distance, TRUE), null$limits, left.open = TRUE
  ) + 1
  p <- permutation_p(null$nearer[at], tested$num_pairs * tested$permutations)
  list(
    p_value = p,
    p_adjusted = adjust_listed(p, tested$num_pairs, tested$p_adjust)
  )
}

# Returns distances at which permuted pairs are counted: those of the pairs, or
# of many pairs some, closer for the nearest. A pair takes the next larger one.
limits_of_pairs <- function(pairs) {
  distance <- sort(as_small(pairs$distance, TRUE))
  ranks <- exp(seq(0, log(length(distance)), length.out = most_limits))
  unique(distance[unique(round(ranks))])
}

most_limits <- 1000

# Counts the pairs of points that are not isolated.
count_all_pairs <- function(search) {
  n <- nrow(search$points$values) - length(search$request$skip)
  n * (n - 1) / 2
}

# Returns the number of samples of each pair's correlation: those that both
# points have under na = "pairwise", and otherwise all.
samples_of_pairs <- function(pairs, search) {
  values <- search$points$values
  if (search$request$na != "pairwise") {
    return(num_samples_of(search))
  }
  if (length(pairs$common) > 0) {
    return(pairs$common)
  }
  counts <- integer(length(pairs$from))
  for (rows in row_ranges(length(counts), 2e4)) {
    both <- !is.na(values[pairs$from[rows], , drop = FALSE]) &
      !is.na(values[pairs$to[rows], , drop = FALSE])
    counts[rows] <- rowSums(both)
  }
  counts
}

# Returns whether either point of a pair has equal values. NULL means that r
# decides or that it does not matter. cor.test() has no exact p-value for
# weighted ranks. Filled-in values are equal.
ties_of_pairs <- function(pairs, search) {
  request <- search$request
  values <- search$points$values
  if (request$metric != "spearman" || is_metafeatures(values)) {
    return(NULL)
  }
  if (!is.null(request$weights)) {
    return(TRUE)
  }
  filled <- request$na != "pairwise"
  listed <- unique(c(pairs$from, pairs$to))
  tied <- logical(nrow(values))
  for (rows in row_ranges(length(listed), 2e4)) {
    some <- values[listed[rows], , drop = FALSE]
    tied[listed[rows]] <- rows_with_ties(some) |
      filled & rowSums(is.na(some)) > 0
  }
  tied[pairs$from] | tied[pairs$to]
}

# Adjusts p-values for all `num_pairs`, though only those of the listed pairs
# are known. Each gets its rank among the listed, which is at most its rank
# among all pairs. So no result is below that of p.adjust() over all pairs. That
# takes the minimum of num_pairs p / rank over all pairs with p-values at least
# as large. Each term here has at least the p-value and at most the rank of a
# term there.
adjust_listed <- function(p, num_pairs, p_adjust) {
  if (p_adjust == "bonferroni") {
    return(pmin(1, p * num_pairs))
  }
  known <- which(!is.na(p))
  order <- known[order(p[known], decreasing = TRUE)]
  rank <- rev(seq_along(order))
  factor <- if (p_adjust == "BY") harmonic_number(num_pairs) else 1
  adjusted <- p
  adjusted[order] <- pmin(1, cummin(factor * num_pairs / rank * p[order]))
  adjusted
}

# Returns the sum of 1 / i for i up to n, for any n.
harmonic_number <- function(n) {
  digamma(n + 1) - digamma(1)
}

# --- edges explained by a common neighbour -----------------------------------

# Returns for each pair the smallest partial correlation given a point that has
# an edge with both ends, and that point, by name or number. The lower point
# comes first on a tie. About `at_once` pairs of an edge and a point are
# compared at a time.
explain_pairs <- function(pairs, search, at_once = 1e6) {
  num_points <- nrow(search$points$values)
  num_pairs <- length(pairs$from)
  # Each edge from both of its ends, by end and other end. Keys are exact in
  # double for up to 9e7 points.
  ends <- c(pairs$from, pairs$to)
  others <- c(pairs$to, pairs$from)
  keys <- (ends - 1) * num_points + others
  order <- order(keys, method = "radix")
  keys <- keys[order]
  others <- others[order]
  r <- rep(pairs$correlation, 2)[order]
  degree <- tabulate(ends, num_points)
  first <- cumsum(c(0, degree))
  # The neighbours of the end that has fewer of them are tried.
  swapped <- degree[pairs$to] < degree[pairs$from]
  near <- ifelse(swapped, pairs$to, pairs$from)
  far <- ifelse(swapped, pairs$from, pairs$to)
  smallest <- rep(NA_real_, num_pairs)
  by <- rep(NA_integer_, num_pairs)
  part <- cumsum(as.double(degree[near])) %/% at_once
  for (some in split(seq_len(num_pairs), part)) {
    count <- degree[near[some]]
    pair <- rep(some, count)
    at <- sequence(count, first[near[some]] + 1)
    wanted <- (far[pair] - 1) * num_points + others[at]
    found <- findInterval(wanted, keys)
    there <- found > 0 & keys[pmax(found, 1)] == wanted
    pair <- pair[there]
    at <- at[there]
    partial <- partial_correlation(
      pairs$correlation[pair], r[at], r[found[there]]
    )
    sorted <- order(pair, abs(partial), others[at], method = "radix")
    sorted <- sorted[!is.na(partial[sorted])]
    sorted <- sorted[!duplicated(pair[sorted])]
    smallest[pair[sorted]] <- partial[sorted]
    by[pair[sorted]] <- others[at[sorted]]
  }
  names <- point_names(search$points)
  list(
    partial_correlation = smallest,
    explained_by = if (is.null(names)) by else names[by]
  )
}

# Returns the partial correlation of two points given a third, or NA if the
# third is one of them but for scale.
partial_correlation <- function(r, r_from, r_to) {
  left <- (1 - r_from^2) * (1 - r_to^2)
  partial <- (r - r_from * r_to) / sqrt(left)
  partial[!(left > 1e-12)] <- NA
  pmin(pmax(partial, -1), 1)
}

# --- the answer --------------------------------------------------------------

new_significance <- function(edges, added, tested) {
  for (column in names(added)) {
    edges[[column]] <- added[[column]]
  }
  attr(edges, "significance") <- tested
  class(edges) <- c(
    "fsknn_significance", setdiff(class(edges), "fsknn_stability")
  )
  edges
}
