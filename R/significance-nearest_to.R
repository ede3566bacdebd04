#' Nearest neighbours of a point or an outcome
#'
#' Finds the k nearest neighbours of one row, or of an outcome of the samples
#' such as years to relapse. It does not compute the graph of all rows. The
#' neighbours are those that [knn_search()] finds for that row, to the last bit.
#' With `permutations`, it also computes p-values: how often are neighbours as
#' near by chance?
#'
#' Rows are read, prepared, compared and dropped in one pass, so little memory
#' is needed. Of [metafeatures()], only a block of rows is in memory at any
#' time. Permuted outcomes take one more pass, all together.
#'
#' @inheritParams knn_search
#' @param x The points, as for [knn_search()].
#' @param point Rows of `x`: a name or a number, or several of them. A single
#'   number is always the number of a row.
#' @param outcome Instead of `point`, values that are not a row of `x`. It is a
#'   vector with one value for each feature (column) of `x`. They are in that
#'   order or have their names (see "Names" in [point_options()]). These types
#'   are possible:
#'   * numbers, or logical values;
#'   * a factor of two levels, of which the first counts as 0 and the second as
#'     1;
#'   * a factor of three or more levels: see *Three or more levels* below;
#'   * text, converted to a factor (in sorted order);
#'   * survival times, `survival::Surv(time, event)`: see "Survival" below.
#'
#'   Several outcomes are a data frame, or a list with names. For an
#'   `ExpressionSet` or a `SummarizedExperiment`, they may be names of columns
#'   of its sample data. If samples lack an outcome (`NA`), they are left out
#'   for this outcome, and a message of class `fsknn_samples_left_out` says how
#'   many. An index can't leave out samples. With `na = "pairwise"`, pairs are
#'   compared over common samples.
#' @param k Number of neighbours, a whole number from 1 to the number of other
#'   points.
#' @param permutations The number of permutations of the outcome for p-values.
#'   1,000 are usual. The smallest p-value of B permutations is 1 / (B + 1). If
#'   the outcome has no more distinct arrangements, each of them is used once. 0
#'   gives only the p-values of correlations that need no permutations. `NULL`
#'   (default) gives no p-values.
#'
#'   It excludes `block`, since the nearest points in each block would be a
#'   family of their own. Give the points of one block as `x` instead.
#' @param strata For `permutations`: a group for each sample, such as its batch,
#'   in their order or with their names. For a container, it may be the name of
#'   a column of its sample data. Values are permuted only within groups. It is
#'   an error if all samples of each group have the same value, up to rounding
#'   and missing values. With `adjust`, the groups are covariates, too. `NULL`
#'   (default) permutes among all samples.
#' @param unit For `permutations`: the unit of each sample, such as the donor of
#'   a cell, given like `strata`. Units must be independent of each other; the
#'   samples of one unit need not be. See *Whole units* below. `NULL` (default):
#'   all samples are independent.
#' @param ... [Point options][point_options()], [run options][run_options()] and
#'   [test options][test_options()] (`statistic`, `family`), by name, or
#'   collected as `options = `. `constant` applies to other points: the point
#'   itself must vary.
#'
#' @returns A data frame of class `fsknn_nearest`, which prints with a header.
#'   It has k rows for each point or outcome, the nearest first. There are fewer
#'   if `na = "pairwise"` leaves fewer neighbours, and k for each block with
#'   `block`. Its columns are
#'   * `point`: the name of the point or outcome, or the number of a row without
#'     a name. It exists if there are several, or if outcomes are in a list;
#'   * `rank`: 1 to k;
#'   * `name`: the name of the neighbour, or its number if `x` has no row names;
#'   * `index`: the neighbour's row number in `x`;
#'   * `distance`: double;
#'   * `correlation`: for correlations, the signed r for every `sign`. For a
#'     factor of three or more levels, the correlation ratio;
#'   * `block`: with `block`, that of the neighbour;
#'   * `statistic`: with `permutations`, the moderated t or F, if an outcome has
#'     such a `statistic`. For other outcomes of the call, it is the
#'     correlation. See [test_options()];
#'   * `p_value` and `fdr`: with `permutations` (0 or more) for correlations,
#'     the p-value of the pair and the false discovery rate over all points.
#'     With `family = "call"`, that is over the points of all outcomes. With
#'     `unit`, there are none;
#'   * `p_adjusted`: with 1 or more `permutations`, the family-wise p-value.
#'
#'   With `permutations`, there are attributes. `null` is a matrix of the
#'   smallest distances, permutations x outcomes. For correlations with `sign =
#'   "signed"` or `"absolute"`, 1 minus these is the largest r, or |r|, of each
#'   permutation. With another `statistic`, `null` has the largest of each
#'   permutation. Its last rows are `NA` for an outcome that has fewer
#'   permutations than others.
#'
#'   The attribute `smallest_p` has the smallest `p_adjusted` that
#'   is possible, for each outcome. The attribute `left_out` lists
#'   [metafeatures()] that were left out, and `num_covariates` is the number of
#'   covariates that rows were adjusted for, strata included.
#'
#' @section P-value of one pair:
#' `p_value` is valid only for a gene (or other point) that was chosen in
#' advance. The rows of this table were selected because they are near, so use
#' `p_adjusted` or `fdr` for them.
#'
#' Its null hypothesis is that the point and the outcome are independent. It is
#' one-sided on the side of the nearest (`"signed"`: r above 0, `"negative"`: r
#' below 0), and two-sided for `"absolute"`.
#' * `"pearson"`: Student's t with n - 2 degrees of freedom for n samples, as in
#'   [stats::cor.test()]. With `weights`, n depends on their kind, as below.
#' * For a factor, text or logical values with the studentized `statistic` (the
#'   default), it is that of the moderated t or F. With one point, this is
#'   Welch's test, as in [stats::t.test()] and [stats::oneway.test()]. With
#'   `weights`, it is Student's t.
#' * `"spearman"`: without ties and weights, from the distribution of ranks, as
#'   below. If the point or the outcome has ties, or with weights, from t. That
#'   is too small in the far tail.
#' * `"bicor"`: t, as in WGCNA's `bicorAndPvalue()`.
#'
#' For up to 21 samples, Spearman's p-value is exact, by the counts of all
#' permutations (van de Wiel and Di Bucchianico 2001). For more, it comes from a
#' symmetric beta distribution with the exact variance and kurtosis of r (David,
#' Kendall and Stuart 1951). It is then too large in the far tail. For one
#' side this is by at most 20% at 1e-4, and four times at 1e-6. Smaller p-values
#' are larger still, and for 22 samples even r = 1 has one of about 2e-10. The
#' p-value is never below 1 / n!, also with ties.
#'
#' With `na = "pairwise"`, n is the number of samples of the pair. The ranks of
#' the pair have gaps where other values are missing in one of the two. The
#' p-value is then that of ranks without gaps, with r rounded down to the next
#' value that such ranks can have. This makes it too large, with few samples by
#' several times.
#'
#' Whether a *point* has ties under `"spearman"` is inferred from r. This may
#' fail at r = 0, where it matters least, and for thousands of samples, where
#' both p-values nearly agree.
#'
#' With `adjust`, the p-value comes from t, also for `"spearman"`, with n - 2 -
#' q degrees of freedom for q covariates besides the constant. For `"pearson"`,
#' it is the p-value of the point in `lm()` of the outcome on it and the
#' covariates. For the moderated t of two levels, it is that of this t with the
#' covariates. With `na = "pairwise"`, n is the number of samples of each pair.
#'
#' Student's t assumes values that are nearly normal, above all for few samples
#' or groups of unequal size. `p_adjusted` does not. A message (class
#' `fsknn_tails`) says if `p_value` and `fdr` may be far too small, because
#' points and outcome are skewed: see *Skewed values* in [edge_significance()].
#'
#' Without `adjust`, `p_value` and `fdr` of r ignore `strata`: if batches shift
#' points and outcome, `adjust` for the batch. They then assume the same spread
#' in all batches, which `p_adjusted` does not. With `strata`, the moderated t
#' of two levels always has their indicators as covariates, and so do its
#' `p_value` and `fdr`.
#'
#' @section P-values with weights:
#' A correlation depends only on the proportions of `weights`. A p-value depends
#' on their meaning. So p-values need a list that names it:
#' * `weights = list(precision = w)`: the variance of a sample is proportional
#'   to 1 / weight, as for means of several measurements. The p-value is that of
#'   `lm(weights = )`, with n - 2 degrees of freedom for n samples of a weight
#'   above 0. For `p_adjusted`, residuals are scaled to equal variance and
#'   permuted. They take the variance of their new sample.
#' * `list(frequency = w)`: a sample stands for that many equal samples, so n is
#'   the sum of the weights, which must be whole numbers. There is no
#'   `p_adjusted`. Repeat the samples instead: `x[, rep(seq_along(weights),
#'   weights)]`.
#' * `list(sampling = w)`: weights of a survey, or any others, of samples with
#'   equal variance. n is Kish's (1965) effective number, the square of the sum
#'   of the weights divided by the sum of their squares. This is an
#'   approximation. For `p_adjusted`, values are permuted and weights stay. This
#'   assumes that values do not depend on weights.
#'
#' With `"spearman"`, only sampling weights are possible, because ranks ignore
#' weights. A wrong meaning gives wrong p-values: see the article "calibration"
#' of the site.
#'
#' @section Three or more levels:
#' A factor of three or more levels has no direction, so `sign` must be
#' `"absolute"`, and `metric` `"pearson"`. The nearest points are those with the
#' largest correlation ratio (eta), which is the multiple correlation of the
#' point with indicators of the levels. For two levels, it is |r|. Distances are
#' 1 - eta. The order of the levels, also of an ordered factor, does not count.
#'
#' `p_adjusted` is by permutation of a moderated Welch's F, and `p_value` is
#' that of this F. With `adjust`, `weights`, `strata`, or `statistic =
#' "correlation"`, `p_adjusted` is by permutation of eta, and `p_value` is that
#' of the F test of [stats::anova()].
#'
#' @section False discovery rate:
#' `fdr` is `p_value` adjusted by Benjamini and Hochberg (1995) over all points
#' that have one.
#' It is the smallest false discovery rate at which the neighbour is among the
#' rejected points. The rate is that of the rejected among all points, on
#' average, and not of the k that are shown. The procedure is proven for
#' independent points and for some kinds of positive dependence. For correlated
#' genes, it is usually safe but not proven to be, above all in two-sided tests
#' (`"absolute"`).
#'
#' @section Family-wise p-values:
#' `p_adjusted` is the step-down maxT of Westfall and Young (1993). With the
#' statistic r, each step is over all points except those listed before.
#' Studentized statistics such as a moderated t have an order of their own. Each
#' step is over all points except those with a larger statistic. So `p_adjusted`
#' need not increase with the rank.
#'
#' Its p-value is (b + 1) / (B + 1)
#' (Phipson and Smyth 2010). In b of B permutations, the nearest of these points
#' is at least as near as this one. The maximum up to each rank makes the values
#' monotone.
#'
#' With `family = "call"`, an outcome is permuted together with all others. b
#' counts the permutations in which the nearest of all points to any outcome is
#' at least as near. No point is left out of this single step. So values are
#' larger than those of Westfall and Young's method over all pairs.
#'
#' With `na = "pairwise"`, each pair has a correlation over its own number of
#' samples, and large r of few samples are common. So p-values are compared
#' instead of correlations: this is the step-down minP of Westfall and Young.
#' The steps are in order of `p_value`, over all points. The table is in order
#' of r, so `p_adjusted` may decrease in it.
#'
#' Outcomes with another statistic, or other missing values, are permuted one
#' after another.
#'
#' The null hypothesis is that the outcome's values are exchangeable among the
#' samples (of one stratum) relative to all points with no larger statistic. The
#' probability of any wrong call is then at most the level (with `adjust`,
#' nearly). This holds for any dependence between the points, and for any k.
#'
#' For a moderated t or F, it holds if the outcome is independent of all points.
#' If some points depend on the outcome, it holds only nearly, because they
#' change the prior and the weights of the others: see [test_options()].
#'
#' Permutations are drawn by R's random numbers before the search, so
#' [set.seed()] makes them reproducible on any backend. Distances are equal if
#' they differ by at most 1e-12, relative to their size. For correlations and
#' other bounded metrics, it is relative to 1. Scores of other statistics are
#' equal if they differ by at most 1e-9 of their size, plus 1e-12.
#'
#' Few samples have few arrangements: two groups of 4 have 70. If there are at
#' most `permutations` besides the observed one, all are used, without random
#' numbers. The p-value is then exact: the proportion of all arrangements that
#' are at least as extreme. No p-value is below `attr(, "smallest_p")`. With
#' `sign = "absolute"` and two groups of 4 this is 2 / 70, since groups that are
#' swapped have the same |r|.
#'
#' @section Whole units:
#' Several samples of one donor, such as cells, are not independent. Points
#' differ between donors, and many outcomes are the donor's. If all samples are
#' permuted, p-values are far too small. With `unit = donor`, whole donors are
#' permuted.
#' * **An outcome that is constant within units** (the donor's disease) is
#'   permuted among units, which may have any number of samples. The null
#'   hypothesis is that the outcomes of units are exchangeable, given the values
#'   and the number of their samples. `strata` are then groups of units.
#' * **An outcome that varies within units** is permuted as blocks, among units
#'   of equal size. The first sample of a unit gets the value of another unit's
#'   first sample, and so on. This is for series such as days of a patient,
#'   which have the same order in all units. Samples of a unit may depend on
#'   each other.
#' * **Permutations within units** are those of `strata = donor`. They are for
#'   an outcome that varies within donors, such as a treatment of some of the
#'   cells. The null hypothesis is that the samples of a donor are exchangeable.
#'   Differences between donors remain in all permutations.
#'
#' If some outcomes of a call vary within units, all are permuted as blocks.
#'
#' **P-values.** Student's t counts each sample as independent, whatever its
#' unit. So with `unit` there is no `p_value` and no `fdr`, only `p_adjusted`.
#' For a false discovery rate, take one value of each unit (a pseudobulk), such
#' as the mean of its samples, and search without `unit`. `p_adjusted` needs
#' some units: two groups of 3 have 20 arrangements, so no two-sided p-value is
#' below 0.1. The print states the smallest possible one.
#'
#' **Pairs.** For samples before and after a treatment, give the patient as
#' `strata`, which permutes within each pair. Donors that are nested in a
#' condition (each has one) are no strata, which is an error, but units.
#'
#' **Covariates.** With `unit` and `adjust`, the covariates of an outcome that
#' is constant within units must be constant, too.
#'
#' **Calibration.** We simulated 500 genes of donors with 20 cells each, without
#' any effect (`inst/bench/calibration_units.R`). Without `unit`, some gene is
#' called at 5% in each of 1,000 data sets. With `unit`, it is in 3%, 6% and 5%
#' of them (4 and 4, 10 and 10, 20 and 20 donors). Of 4 and 4 donors it should
#' be 3%, since p-values are multiples of 2 / 70.
#'
#' @section Permutations with covariates:
#' With `adjust`, the null hypothesis is that the outcome depends only on the
#' covariates. Its residuals are permuted (Freedman and Lane 1983), adjusted for
#' the covariates once more, and scaled to length 1. For `"spearman"`, they are
#' residuals of ranks. They are added to the fitted values and ranked again.
#'
#' Residuals are only approximately exchangeable, so the level is correct for
#' many samples and approximate for few. We simulated 30 samples and 9
#' covariates at a level of 5%. Some point was called in 5.5% of data sets with
#' correlated modules, and in 6.5% with independent points.
#'
#' Under `"spearman"`, ranks are adjusted by ranks with a linear model. If
#' covariates explain much of points and outcome, some of their effect remains
#' and is called (in 15% of such data sets).
#'
#' If `strata` are given, too, they are part of the model. For the outcome and
#' the points, an indicator of each stratum but the first is a covariate. t
#' loses as many degrees of freedom. Residuals are permuted within strata.
#' Without the indicators, residuals would differ between strata that shift
#' outcome, points and covariate. We simulated three such batches at a level of
#' 5%. Some point was called in 3% of data sets.
#'
#' With `adjust = ~ 1` the strata are the only covariates. Then the correlation
#' and `p_value` are within strata, too. An index must have been made with the
#' strata as covariates.
#'
#' @section What is not controlled:
#' * Several outcomes, each of which is a family of its own. `family = "call"`
#'   adjusts for all of them.
#' * The choice of metric, sign, weights and points after seeing results.
#' * Samples that are not exchangeable: batches, relatives, repeated samples.
#'   `strata` help with batches, and `unit` with repeated samples.
#' * Numbers of samples that depend on the outcome, with `unit`.
#' * Unequal variances in groups, above all in groups of unequal size. With
#'   `statistic = "correlation"`, a difference in variance alone may be
#'   significant. The moderated t, the default for factors, controls this unless
#'   values are skewed, or the ratio of both variances differs much between
#'   points: see [test_options()].
#' * Strata of unequal spread, for `p_value` and `fdr` of r. If points and
#'   outcome vary more in the same stratum, both are too small. With `adjust`, a
#'   message of class `fsknn_unequal_strata` says if the outcome's spreads
#'   differ.
#' * Weights of another kind than they are said to be.
#' * Distances over other numbers of samples, under `na = "pairwise"` and a
#'   metric that is not a correlation. The nearest of a permutation is often a
#'   point with few samples, so `p_adjusted` has less power for the others.
#' * Distances without a common scale, such as Euclidean. The nearest of all are
#'   points of low variance, so `p_adjusted` says little about others.
#'
#' @section Survival:
#' Survival times are replaced by martingale residuals of Cox's model without
#' points (Therneau, Grambsch and Fleming 1990). These are the observed events
#' of a patient minus those expected in the time at risk. A row's correlation
#' with them is nearly Cox's score test of that row, as an example shows. Its
#' sign is that of the log hazard ratio: r above 0 means more events. Censored
#' samples are kept as censored. A plain number of years would treat the end of
#' follow-up as an event.
#'
#' Residuals are permuted, that is, pairs of time and event. The null hypothesis
#' is that both event and censoring are independent of the points. Ties of event
#' times are treated as in [survival::coxph()] (Efron). With `adjust`, the
#' residuals are those of Cox's model on the covariates, which are not ranked.
#' With `weights`, the model is weighted.
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
#' David ST, Kendall MG, Stuart A (1951). Some Questions of Distribution in the
#' Theory of Rank Correlation. *Biometrika* 38: 131-140.
#' \doi{10.1093/biomet/38.1-2.131}
#'
#' Freedman D, Lane D (1983). A Nonstochastic Interpretation of Reported
#' Significance Levels. *Journal of Business & Economic Statistics* 1: 292-298.
#' \doi{10.1080/07350015.1983.10509354}
#'
#' Kish L (1965). *Survey Sampling*. Wiley.
#'
#' Phipson B, Smyth GK (2010). Permutation P-values Should Never Be Zero.
#' *Statistical Applications in Genetics and Molecular Biology* 9: 39.
#' \doi{10.2202/1544-6115.1585}
#'
#' Therneau TM, Grambsch PM, Fleming TR (1990). Martingale-based Residuals for
#' Survival Models. *Biometrika* 77: 147-160. \doi{10.1093/biomet/77.1.147}
#'
#' van de Wiel MA, Di Bucchianico A (2001). Fast Computation of the Exact Null
#' Distribution of Spearman's rho and Page's L Statistic for Samples with and
#' without Ties. *Journal of Statistical Planning and Inference* 92: 133-145.
#' \doi{10.1016/S0378-3758(00)00166-X}
#'
#' Westfall PH, Young SS (1993). *Resampling-Based Multiple Testing*. Wiley.
#' @seealso [knn_query()] for points that are not in `x`, [knn_graph()] for all
#'   points, [add_phenotype()] to add an outcome as a row.
#' @export
#' @examples
#' x <- matrix(rnorm(200 * 12), nrow = 200)
#' rownames(x) <- paste0("gene", 1:200)
#' years <- rexp(12)
#' nearest_to(x, outcome = years, k = 5)
#' # By |r|, with p-values by permutations
#' set.seed(1)
#' nearest_to(x, outcome = years, k = 3, sign = "absolute", permutations = 200)
#' # Rows of x, each by itself
#' nearest_to(x, c("gene7", "gene9"), k = 2)
#'
#' # Five ill and five healthy donors with 20 cells each, and no difference
#' donor <- rep(1:10, each = 20)
#' ill <- donor <= 5
#' cells <- matrix(rnorm(2000), 200)[, donor] + matrix(rnorm(40000), 200)
#' cell_by_cell <- nearest_to(
#'   cells, outcome = ill, k = 3, sign = "absolute", permutations = 200
#' )
#' cell_by_cell$p_adjusted
#' nearest_to(
#'   cells, outcome = ill, k = 3, sign = "absolute", permutations = 200,
#'   unit = donor
#' )
#'
#' # Relapse with censoring: the correlation, and Cox's score test beside it
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
                       unit = NULL, block = NULL, between = FALSE) {
  check_supplied(x)
  if (is.null(outcome) && missing(point)) {
    abort_argument("{.arg point} or {.arg outcome} must be supplied.")
  } else if (!is.null(outcome) && !missing(point)) {
    abort_two_askers(point, current_env())
  }
  options <- verb_options("nearest_to", ...)
  permutations <- check_permutations(permutations, least = 0)
  check_has_p_values(permutations, options$metric)
  check_no_blocks(permutations, block)
  check_tests(options, if (is.null(permutations)) "permutations")
  call <- current_env()
  if (is.null(outcome)) {
    return(nearest_of_part(
      x, list(options = options), permutations, strata, unit, call, k = k,
      point = point, block = block, between = between
    ))
  }
  search <- read_search(x, NULL, options, TRUE, call)
  for_parts(
    outcomes_given(outcome, x, search, call), search,
    function(part) {
      nearest_of_part(
        x, part, permutations, strata, unit, call, k = k, block = block,
        between = between
      )
    },
    call
  )
}

# Returns the table of one search: see for_parts(). Further arguments are those
# of new_search().
nearest_of_part <- function(x, part, permutations, strata, unit, call, ...) {
  options <- part$options
  has_p <- !is.null(permutations)
  options$weighting <- weigh_p(x, options, has_p, permutations, call)
  if (has_p) {
    options <- with_strata(options, strata)
  }
  search <- new_search(
    x, options, ..., outcome = part$outcome, correlation = TRUE, call = call
  )
  if (!is.null(options$weighting$root)) {
    # In the order of the samples.
    search$options$weighting$root <- sqrt(search$options$weights)
  }
  search$is_factor <- part$is_factor
  if (!is.null(part$levels)) {
    search$levels <- part$levels
    search$num_rows <- 1L
    search$queries$labels <- if (part$label != "outcome") part$label
    check_levels_have_no_block(search, call)
  }
  find_nearest(search, x, permutations, strata, unit, call)
}

check_levels_have_no_block <- function(search, call) {
  if (!is.null(search$request$blocks)) {
    abort_argument(
      "{.arg block} can't be used with an {.arg outcome} of three or more
       levels.",
      call
    )
  }
}

# Returns the table of a search, with p-values if `permutations` is a number.
find_nearest <- function(search, x, permutations, strata, unit,
                         call = caller_env()) {
  search$as_table <- TRUE
  if (is.null(permutations)) {
    check_strata(strata, x, 0, for_permutations = FALSE, call = call)
    check_strata(
      unit, x, 0, for_permutations = FALSE, arg = "unit", call = call
    )
    found <- if (is.null(search$levels)) {
      run_search(search, call)
    } else {
      nearest_by_ratio(search, call)
    }
    return(table_of_nearest(found, search))
  }
  check_not_protecting(search$covariates, call)
  relabelled <- draw_for_search(search, x, permutations, strata, unit, call)
  search <- with_statistic(search, relabelled, call)
  if (is.null(unit) && !search$has_p) {
    tell_unequal_strata(search, relabelled$strata)
  }
  judged <- judge_nearest(
    search, relabelled$drawn, strata = relabelled$strata,
    unit = relabelled$unit, call = call
  )
  search$relabelled <- relabelled$facts
  search$notes <- notes_of_p(search, strata, !is.null(unit))
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
  if (!is.null(judged$null)) {
    attr(table, "smallest_p") <- search$relabelled$smallest_p
  }
  attr(table, "num_covariates") <- num_covariates(search$request)
  class(table) <- c("fsknn_nearest", "data.frame")
  search$nearest <- list(
    to = describe_what_for(search), relabelled = search$relabelled,
    notes = search$notes
  )
  with_searched(add_left_out(table, search), search)
}

# Returns "gene7", "row 7", "2 points" or "an outcome".
describe_what_for <- function(search) {
  at <- search$request$query_self
  count <- length(at %||% search$queries$labels)
  if (count > 1) {
    tally(count, if (is.null(at)) "outcome" else "point")
  } else if (is.null(at)) {
    search$queries$labels %||% "an outcome"
  } else {
    point_names(search$points, at) %||% paste(point_side(search$points), at)
  }
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
as.data.frame.fsknn_nearest <- function(x, row.names = NULL, optional = FALSE,
                                        ...) {
  check_unused(row.names, optional)
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
find_points <- function(points, point, call = caller_env()) {
  plain <- is.numeric(point) && !is.object(point) && is.null(dim(point))
  several <- length(point) > 1 && (plain || is.character(point))
  if (!several) {
    check_is_point(point, ncol(points$values), call)
    return(find_point(points, point, call = call))
  }
  vapply(point, find_point, 1L, points = points, call = call,
         USE.NAMES = FALSE)
}

# A value that is neither name nor number of a row may be an outcome.
check_is_point <- function(point, num_features, call) {
  is_outcome <- !is.character(point) && length(point) > 1 &&
    (length(point) == num_features || is.list(point))
  if (is_outcome) {
    given <- describe_value(point)
    abort_argument(
      c(
        "{.arg point} must be names or numbers of rows, not {given}.",
        i = "Values of the features, which are no row of {.arg x}, are given by
             {.arg outcome}."
      ),
      call
    )
  }
}

# Returns the row number of one requested point.
find_point <- function(points, point, call = caller_env()) {
  num_points <- nrow(points$values)
  if (!rlang::is_string(point)) {
    return(check_whole_number(point, "point", 1, num_points, call = call))
  }
  check_text(point, "`point`", "name", "point", call)
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
        "{.arg point} must name one {side} of {.arg x}.",
        x = "{tools::toTitleCase(side)}s {where} are called {.val {point}}.",
        i = "Give the {side}'s number."
      ),
      call
    )
  }
  nearest <- if (length(points$names) > 0) nearest_spelling(point, points$names)
  abort_argument(
    c(
      "{.arg point} must be the name of a {side} of {.arg x}, or its number.",
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
