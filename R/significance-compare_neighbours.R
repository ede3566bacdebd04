#' Compare the neighbours of points between two groups of samples
#'
#' Builds the kNN graph within each of two groups of samples. For each point, it
#' reports how far the two lists of neighbours agree. It also reports how much
#' nearer the neighbours in one group are there than in the other. For each
#' edge, it reports how much the correlation changes. P-values come from
#' permutations of the groups, each followed by a new search.
#'
#' @details
#' **Statistics of a point.** Let A and B be its lists of k neighbours in the
#' two groups:
#' * `shared` is the number of neighbours in both lists. `jaccard` is that
#'   number divided by the number of neighbours in either list.
#' * `rbo` is the rank-biased overlap (Webber, Moffat and Zobel 2010), in which
#'   the nearest neighbours count most. It is the mean over depths d of the
#'   proportion of the first d neighbours that both lists share, weighted by
#'   `persistence`^d. It is the *extrapolated* form, which uses the proportion
#'   at depth k for all greater depths. Equal lists have 1, and lists without a
#'   common neighbour have 0.
#' * `correlation_1` and `correlation_2` are means of the point's correlations
#'   in each group, over the points of either list. They are means of |r| with
#'   `sign = "absolute"`, and of -r with `"negative"`.
#' * `lost` says how much nearer the neighbours of group 1 are there than in
#'   group 2. An edge of A loses the difference of Fisher's z = atanh(r), the
#'   first group minus the second. (With `"negative"` it is the reverse, and
#'   with `"absolute"` the sign of r in the first group decides.) A third of
#'   `lost` is the mean over the point's own list A. Two thirds are the mean
#'   over the lists of the points in A, each in group 1.
#' * `gained` is the same for group 2 and its lists. So a point in a module of
#'   group 2 alone has a large value.
#'
#' Both are above 0 by chance, because neighbours are selected for being near in
#' their own group. `lost_expected` and `gained_expected` are the means over
#' permutations.
#'
#' **Statistic of an edge.** The edges are those of either group's graph.
#' `change` is the difference of Fisher's z = atanh(r), the second group minus
#' the first. It uses the signed r for every `sign`. Values of |r| above 1 -
#' 1e-12 are replaced by 1 - 1e-12.
#'
#' **Permutations.** First, the values are centred within their group and scaled
#' to the same spread in both groups. Each permutation then reassigns the group
#' labels to the samples (within `strata`), and both graphs are *searched
#' again*. The permutations are drawn by R's random numbers before the search.
#' After [set.seed()], an answer is reproducible on any backend.
#'
#' The new search is necessary because edges are selected for being near. An
#' edge that is near by chance in one group is usually less near in the other. A
#' p-value for two correlations that were not selected would call a third of the
#' edges of pure noise significant.
#'
#' **P-values.** All are (b + 1) / (B + 1), where b of the B permutations are at
#' least as extreme as the data (Phipson and Smyth 2010).
#'
#' `lost`, `gained` and `change` are divided by a standard error, in the data
#' and in each permutation. Such a studentized statistic (DiCiccio and Romano
#' 2017) allows heavier tails. The standard error is one number for all points
#' (or all edges): the mean of theirs. That of a point or an edge comes from the
#' influence of each sample on it (Devlin, Gnanadesikan and Kettenring 1975).
#'
#' For a point, `lost` and `gained` are then standardised by its own means and
#' standard deviations, over all permutations and the observed value. The larger
#' of the two counts.
#' * `p_value`: b counts the permutations in which the point is as extreme.
#' * `p_adjusted` controls the family-wise error rate. b counts the permutations
#'   in which any point is as extreme (Westfall and Young 1993). Ranks in place
#'   of standardised values would tie: with fewer permutations than points, some
#'   point has its most extreme rank in every permutation.
#'
#' For an edge:
#' * `p_value`: b counts the permutations in which some edge of the point
#'   `from`, to any neighbour, changes as much or more.
#' * `p_adjusted`: b counts the permutations in which any edge of either graph
#'   does.
#'
#' @section Null hypothesis:
#' The two groups differ at most in the mean and the spread of each point. After
#' both are removed, samples (of one stratum) are exchangeable. Any other
#' difference in how points vary together may therefore be significant. Examples
#' are a cluster of samples within one group, another shape of the distribution,
#' an outlier, or samples that are not independent.
#'
#' The permutations are exact for known means and spreads. With estimates from
#' the samples they are nearly exact, except for the smallest groups. See
#' `inst/bench/calibration_contrast.R` and its results in the site's article
#' "calibration".
#'
#' If `strata` are given, the difference of the groups' means and the ratio of
#' their spreads are assumed to be the same in each stratum. Shifts between
#' strata remain in the correlations, as in those of [knn_graph()]. So strata
#' stay where they are, and the distances from their means are permuted. A
#' sample that moves to the other group takes the spread of that group.
#'
#' Strata may have unequal spreads. A point's variance is modelled as a factor
#' of the group times a factor of the stratum, by maximum likelihood for normal
#' values. Only differences of a group's samples in the same stratum count, so
#' matched pairs are taken to have equal spreads in both groups. Each group has
#' one more sample with the variance of both, which bounds the ratio. In small
#' groups and strata this model is rough (see *What is not controlled*).
#'
#' The difference of means has weights by the strata's variances, and the level
#' of a stratum by the groups' variances (generalised least squares).
#'
#' @section Whole units:
#' If donors have several samples each (cells), give the donor as `unit`. Donors
#' that are each in one group are permuted among the groups, with all of their
#' samples. Each group must have three or more. The labels of units with samples
#' of both groups are permuted as blocks, among units of equal size: see *Whole
#' units* in [nearest_to()]. `strata = donor` permutes labels within donors.
#'
#' The number of donors limits what can be found. If there are at most
#' `permutations` other ways to assign them to the groups, all are used. The
#' statistics are the same if groups are swapped, so two groups of 4 donors can
#' give no p-value below 2 / 70. The print and `relabelled$smallest_p` have the
#' smallest possible one.
#'
#' Means and spreads of groups are estimated from few donors. After they are
#' removed, the means of donors vary less, and their deviations are enlarged by
#' the degrees of freedom that were lost. Correlations include differences
#' *between* donors: points that differ between donors in the same way are
#' correlated. For correlations within donors, use `adjust = ~ donor`, with
#' the donor as a factor. Covariates must be constant within units.
#'
#' We simulated 60 points of donors with 20 cells each, without a difference
#' (`inst/bench/calibration_units.R`). Without `unit`, some edge is called at 5%
#' in each of 1,000 data sets. With `unit`, it is 2%, 7% and 4% for 4 and 4, 10
#' and 10, and 20 and 20 donors. Some point is called in 4%, 7% and 6%. Of 4 and
#' 4 donors it should be 3%, since p-values are multiples of 2 / 70. So points
#' and edges may be called somewhat too often.
#'
#' @section Covariates:
#' With `adjust`, correlations are partial correlations within each group, as in
#' [knn_graph()] of the group alone. So a covariate may have another effect in
#' each group.
#'
#' The null hypothesis is then about the residuals of each group. These depend
#' on each other, because there are fewer degrees of freedom than samples. So
#' uncorrelated residuals take their place, as many as there are degrees of
#' freedom (of the kind of Theil 1965). They have the same correlations. Each is
#' most like the residual of one sample. They are scaled to the same spread in
#' both groups and permuted as samples are without covariates. For normal values
#' and known spreads, this is exact.
#'
#' With `strata`, these are covariates, too: an indicator of each stratum but
#' the first in each group. The residuals are permuted within strata. A sample
#' that is alone in its group and stratum has none.
#'
#' With `unit`, residuals of whole units are permuted and adjusted once more
#' (Freedman and Lane 1983). Then p-values of points are too small with few
#' units.
#'
#' `adjust` is for `"pearson"` only. Residuals of ranks keep a part of a
#' covariate's effect. If this effect differs between the groups, so do the
#' correlations.
#'
#' @section What is not controlled:
#' We simulated 60 points without a difference, in 1,000 data sets of each kind
#' (`inst/bench/calibration_contrast.R`). Of shares, 95% are then between 4%
#' and 6% at a true share of 5%.
#' * Small strata, if the groups' spreads differ. We made independent points,
#'   with 3 times the spread in one group. Some point has a `p_adjusted` of at
#'   most 0.05 in 46% of data sets with 15 matched pairs as strata. It is 53%
#'   with 8 strata of 2 and 2 samples, and 8% with 2 strata of 10 and 10. Some
#'   point is called in 6%, 7% and 6% if the points are in modules. Edges are
#'   not called too often. A message of class `fsknn_few_in_strata`
#'   tells of small strata.
#' * Strata of unequal spread, where groups of few samples have very unequal
#'   numbers in them. Some point is called in 8% with 5 and 1 in groups of 6. A
#'   message of the same class says so.
#' * Strata that shift points, if the groups' spreads differ, too. Some point of
#'   a module is called in 8%. With `adjust = ~ 1`, correlations are within
#'   strata, and it is 5%.
#' * Heavy tails and outliers. Of t-distributed values (3 degrees of freedom),
#'   some point and some edge is called in 7% each with Pearson's r. Of
#'   lognormal values, it is 5% and 22%. With Spearman's r of the former, it is
#'   6%, so `"spearman"` is safer. A message
#'   of class `fsknn_tails` says so if the mean excess kurtosis within groups is
#'   above some 0.7. With fewer than 9 samples in a group there is none.
#' * Strata in which the groups' spreads have other ratios than elsewhere.
#' * Some points that differ. Family-wise p-values hold if no point differs at
#'   all (weak control). If some points differ, the lists of other points
#'   contain them, and these points may be significant, too. See *Power*.
#' * Several points without adjustment. The `p_value` of a point or an edge is
#'   for this one alone. Of 1,000 points without a difference, about 50 have a
#'   p-value below 0.05.
#'
#' No false-discovery rate is given. With B permutations no p-value is below 1 /
#' (B + 1), and thousands of points would need smaller ones.
#'
#' @section Power:
#' We simulated 500 points with k = 10 and 99 permutations
#' (`inst/bench/power_contrast.R`; 50 or 100 data sets of each kind). Points of
#' a module have a correlation of 0.6. The table has the points of a module that
#' have a `p_adjusted` of at most 0.05, if it dissolves in one group:
#'
#' | samples | module of 10 points | module of 40 points |
#' | --- | --- | --- |
#' | 10 and 10 | 1% | 9% |
#' | 20 and 20 | 24% | 76% |
#' | 40 and 40 | 94% | 100% |
#'
#' Points that join another module are found less often. If 40 points join one
#' of 20, they keep each other as neighbours, and 17% are found with 40 and 40
#' samples. A single hub that leaves one module for another is found in 24% of
#' the data sets there, and in 2% with 20 and 20.
#'
#' Some points are significant only because many of their neighbours have
#' changed. With 40 and 40 samples, 1.4 other points are found beside the module
#' of 10 points that dissolves, and 13 beside the module of 40. Look at the
#' edges of a point to see which of its neighbours were lost.
#'
#' A large p-value is no evidence that a point keeps its neighbours.
#'
#' @section Weights:
#' Unequal `weights` must say their kind for p-values, as in `weights =
#' list(precision = w)`: see "P-values with weights" in [nearest_to()]. A sample
#' keeps its weight when its label is permuted. With precisions, a sample's
#' variance is proportional to 1 / weight, which decides how the groups' spreads
#' are equalised. With frequencies, there are no `permutations`.
#'
#' @section Options:
#' `metric` must be a correlation, because other metrics depend on the means
#' that are removed. There is no `subset`, because the family-wise p-values are
#' over all points. `na = "pairwise"` is an error, because each pair would have
#' its own samples.
#'
#' The points are prepared (or sent to a GPU) once for all permutations. Each
#' permutation is two searches by all threads or GPUs.
#'
#' @param x The points, as for [knn_search()], held in memory, with the samples
#'   of both groups. It may also be a list of two such data sets with the same
#'   points, which are matched by name if both have names. Names of the list, if
#'   any, name the groups.
#' @param groups The group of each sample (column of `x`): a factor or a vector
#'   with two different values, and `NA` for samples to leave out. Values are in
#'   the order of the samples, or have their names. For an `ExpressionSet` or a
#'   `SummarizedExperiment`, it may be the name of a column of its sample data.
#'   Group 1 is the first level of a factor, or the first value in sorted order.
#'   `NULL` (default) if `x` is a list.
#' @param k Number of neighbours of each point, as for [knn_search()].
#' @param metric,sign The correlation, `"pearson"` (default), `"spearman"` or
#'   `"bicor"`, and which correlations count as near: see [knn_search()].
#' @param permutations Number of permutations, 100 by default. If there are no
#'   more ways to assign the samples to the groups, each is used once. `NULL`
#'   does none and gives no p-values.
#' @param strata `NULL` (default), or a value for each sample, given like
#'   `groups`. Labels are permuted only among samples with the same value.
#' @param unit `NULL` (default), or the unit of each sample, such as its donor,
#'   given like `groups`. See *Whole units*.
#' @param persistence The weight of deeper ranks in `rbo`, above 0 and below 1.
#'   With 0.9 (default), the first 10 ranks have 86% of the weight.
#' @param ... [Point options][point_options()] and [run options][run_options()],
#'   by name, or collected as `options = `. A point that is constant in either
#'   group counts as constant: `constant = "isolate"` leaves it without
#'   neighbours in both groups, and with `NA` in `points`. `na = "mean"` uses
#'   the mean of the row's values in the sample's group.
#'
#' @returns An object of class `fsknn_contrast`, a list of
#'   * `points`: a data frame with a row for each point, in order. Its columns
#'     are `point` (name or number), `shared`, `jaccard`, `rbo`,
#'     `correlation_1`, `correlation_2`, `lost` and `gained`. With permutations,
#'     it also has `rbo_expected`, `lost_expected` and `gained_expected` (means
#'     over permutations), `p_value` and `p_adjusted`;
#'   * `edges`: a data frame with a row for each edge of either graph, those of
#'     a point together. Its columns are `from`, `to`, `rank_1` and `rank_2`
#'     (`NA` if that graph lacks the edge), `correlation_1`, `correlation_2`
#'     (signed) and `change`. With permutations, it also has `p_value` and
#'     `p_adjusted`;
#'   * `groups`: the number of samples in each group;
#'   * `k`, `metric`, `sign`, `weighted`, `permutations` (those that were used),
#'     `persistence` and `num_features`;
#'   * `relabelled`: with permutations, a list with the smallest possible
#'     p-value (`smallest_p`).
#'
#'   `as.data.frame()` returns the points, or the edges with `what = "edges"`.
#'   `summary()` counts the p-values below `level`. `plot()` draws the `n`
#'   points that changed most. They are ordered by p-value (adjusted, then
#'   unadjusted), and then by `lost` or `gained`. It needs ggplot2.
#'
#'   P-values need 16 bytes of memory for each point and permutation, and 16
#'   bytes for each value of a group.
#' @inheritSection knn_search Errors
#' @references
#' Devlin SJ, Gnanadesikan R, Kettenring JR (1975). Robust estimation and
#' outlier detection with correlation coefficients. *Biometrika* 62: 531-545.
#' \doi{10.1093/biomet/62.3.531}
#'
#' DiCiccio CJ, Romano JP (2017). Robust Permutation Tests For Correlation And
#' Regression Coefficients. *Journal of the American Statistical Association*
#' 112: 1211-1220. \doi{10.1080/01621459.2016.1202117}
#'
#' Freedman D, Lane D (1983). A Nonstochastic Interpretation of Reported
#' Significance Levels. *Journal of Business & Economic Statistics* 1: 292-298.
#' \doi{10.1080/07350015.1983.10509354}
#'
#' Webber W, Moffat A, Zobel J (2010). A similarity measure for indefinite
#' rankings. *ACM Transactions on Information Systems* 28(4): 20.
#' \doi{10.1145/1852102.1852106}
#'
#' Westfall PH, Young SS (1993). *Resampling-Based Multiple Testing*. Wiley,
#' New York.
#'
#' Phipson B, Smyth GK (2010). Permutation P-values should never be zero.
#' *Statistical Applications in Genetics and Molecular Biology* 9(1): 39.
#' \doi{10.2202/1544-6115.1585}
#' Theil H (1965). The Analysis of Disturbances in Regression Analysis. *Journal
#' of the American Statistical Association* 60: 1067-1079.
#' \doi{10.1080/01621459.1965.10480851}
#' @seealso [knn_graph()] for the graph of one group, and [combine_graphs()] for
#'   the edges that two graphs share.
#' @export
#' @examples
#' # Two modules; in the second group, 20 genes no longer follow theirs
#' x <- matrix(rnorm(2 * 40), 2)[rep(1:2, each = 50), ] +
#'   0.5 * matrix(rnorm(100 * 40), 100)
#' rownames(x) <- paste0("gene", 1:100)
#' group <- rep(c("control", "case"), each = 20)
#' x[1:20, group == "case"] <- rnorm(20 * 20)
#' found <- compare_neighbours(
#'   x, factor(group, c("control", "case")), k = 10, permutations = 50,
#'   backend = "cpu"
#' )
#' found
#' head(found$points[order(found$points$p_adjusted), ])
#' found$edges[found$edges$p_adjusted < 0.05, ]
compare_neighbours <- function(x, groups = NULL, k = 20, metric = "pearson",
                               sign = "signed", ..., permutations = 100,
                               strata = NULL, unit = NULL, persistence = 0.9) {
  check_supplied(x)
  permutations <- check_permutations(permutations)
  persistence <- check_persistence(persistence)
  options <- verb_options("compare_neighbours", ...)
  check_is_correlation(
    options$metric,
    "Groups may differ in the means of points, which other metrics see."
  )
  check_adjusts_groups(options)
  options$weighting <- weigh_p(x, options, !is.null(permutations), permutations)
  options$in_memory <- TRUE
  # Ties concern the lists of each group: see check_group_values().
  taken <- take_two_groups(
    x, groups, strata, unit, !is.null(permutations), options
  )
  constant <- options$constant
  taken$options$constant <- "isolate"
  search <- new_search(taken$x, taken$options, k = k, named = TRUE,
                       correlation = TRUE)
  if (!is.matrix(search$points$values)) {
    abort_no_metafeatures(current_env())
  }
  samples <- search$points$samples %||% seq_along(taken$labels)
  labels <- taken$labels[samples]
  designs <- designs_of_groups(search, labels, samples)
  check_group_sizes(labels, taken$names, designs, current_env())
  # Samples of weight 0 have been dropped.
  check_can_change(labels, taken$strata[samples], current_env())
  search <- check_group_values(
    search, labels, taken$names, constant, designs
  )
  drawn <- free <- NULL
  if (!is.null(permutations)) {
    check_not_protecting(search$covariates, current_env())
    if (!is.null(designs) && is.null(taken$unit)) {
      free <- free_residuals(
        search$points$values, labels, designs, taken$strata[samples],
        search$options$weights, current_env()
      )
    }
    relabelled <- if (is.null(free)) {
      relabel_groups(labels, taken, samples, designs, permutations)
    } else {
      relabel_groups(
        free$labels, free, seq_along(free$labels), NULL, permutations
      )
    }
    drawn <- relabelled$drawn
    taken$relabelled <- relabelled$facts
  }
  if (!is.null(drawn) && is.null(designs)) {
    tell_few_in_strata(labels, taken$strata[samples])
  }
  if (!is.null(drawn)) {
    tell_tails_of_groups(
      search$points$values, labels, search$request$metric, designs
    )
  }
  tell_contrast(search, labels)
  contrast_groups(
    search, labels, taken, drawn, persistence, samples, designs, free
  )
}

# Residuals of ranks keep a part of an effect, which may differ between groups.
check_adjusts_groups <- function(options, call = caller_env()) {
  if (is.null(options$adjust) || options$metric$name == "pearson") {
    return(invisible())
  }
  abort_argument(
    c(
      "{.arg adjust} can be used with metric {.val pearson} only.",
      x = "Ranks keep a part of a covariate's effect. If this effect differs
           between groups, so do correlations of ranks."
    ),
    call
  )
}

# Returns the covariates of each group, as kept_covariates() does, or NULL. They
# have a row for each sample, which is 0 outside the group.
designs_of_groups <- function(search, labels, samples) {
  if (is.null(search$covariates)) {
    return(NULL)
  }
  lapply(1:2, function(group) {
    at <- labels == group
    kept <- kept_covariates(
      search$covariates, FALSE, samples[at], search$options$weights[at]
    )
    design <- matrix(0, length(labels), ncol(kept))
    design[at, ] <- kept
    design
  })
}

check_persistence <- function(persistence, call = caller_env()) {
  good <- is.numeric(persistence) && length(persistence) == 1 &&
    !is.na(persistence) && persistence > 0 && persistence < 1
  if (!good) {
    given <- describe_value(persistence)
    abort_argument(
      "{.arg persistence} must be a number above 0 and below 1, not {given}.",
      call
    )
  }
  persistence
}

check_is_correlation <- function(metric, hint = NULL, call = caller_env()) {
  if (has_correlation(metric)) {
    return(invisible())
  }
  able <- quote_metrics(
    metric_table()$name[metric_table()$similarity == "correlation"]
  )
  abort_argument(
    c(
      "{.arg metric} must be a correlation ({able}), not {.val {metric$name}}.",
      i = hint
    ),
    call
  )
}

# Checks the values of each group by itself. Missing ones are filled with the
# group's mean. Points that are constant in either group are errors or isolated.
check_group_values <- function(search, labels, names, constant, designs,
                               call = caller_env()) {
  options <- search$options
  options$constant <- constant
  skip <- search$skip
  for (group in 1:2) {
    columns <- which(labels == group)
    part <- search$points
    part$values <- part$values[, columns, drop = FALSE]
    part$samples <- (part$samples %||% seq_along(labels))[columns]
    part$scan <- NULL
    options["adjust"] <- list(
      design_or_null(designs[[group]][columns, , drop = FALSE])
    )
    options["weights"] <- list(even_or(search$options$weights[columns]))
    checked <- tryCatch(
      check_values(part, options, "x", call = call),
      fsknn_argument_error = function(err) {
        cli_abort(
          "Group {.val {names[[group]]}} can't be searched.",
          parent = err, call = call, class = class(err)[
            startsWith(class(err), "fsknn_")
          ]
        )
      }
    )
    skip <- union(skip, checked$skip)
    if (checked$missing > 0) {
      # The filled values have the bits that a search of this group alone would
      # give.
      search$points$values[, columns] <- t(cpp_filled(part$values)$rows)
    }
  }
  search$skip <- search$request$skip <- as.integer(sort(skip))
  search$request$na <- "error"
  num_points <- nrow(search$points$values)
  check_k(search$request$k, num_points, length(skip), call = call)
  search
}

tell_contrast <- function(search, labels, call = caller_env()) {
  if (!search$options$verbose) {
    return(invisible())
  }
  values <- search$points$values
  plans <- lapply(tabulate(labels, 2), function(num_features) {
    format(new_plan(nrow(values), num_features, 0, search$request, call = call))
  })
  tell_lines(c("Group 1", plans[[1]], "Group 2", plans[[2]]))
}

contrast_groups <- function(search, labels, taken, drawn, persistence, samples,
                            designs, free, call = caller_env()) {
  values <- search$points$values
  weights <- search$options$weights
  fewest <- fewest_in_groups(labels, if (is.null(free)) drawn)
  task <- new_contrast_task(
    search, fewest, persistence, designs, !is.null(drawn)
  )
  task$shown <- search$request$progress
  # The data are not standardised here, so that lists are identical to those of
  # knn_search().
  found <- contrast_of(values, values, labels, task, call)
  edges <- edges_of_contrast(found$groups)
  points <- points_of_contrast(found$points, search)
  if (!is.null(drawn)) {
    if (is.null(free)) {
      values <- values_to_permute(
        search, labels, taken, samples, designs, taken$strata[samples]
      )
    } else {
      # With their negatives, the mean is 0 in any group.
      values <- cbind(free$values, -free$values)
      labels <- rep(free$labels, 2)
      drawn <- rbind(drawn, drawn + nrow(drawn))
      task[c("designs", "weights")] <- list(NULL)
      task$at_risk <- rows_at_risk(values, min(tabulate(labels, 2)))
      # The same correlations, and standard errors that compare to those of
      # permutations.
      found <- contrast_of(values, values, labels, task, call)
    }
    change_t <- abs(edges$change) / found$error
    permuted <- permuted_contrasts(
      values, labels, drawn, task, list(from = edges$from, change_t = change_t),
      call
    )
    of_points <- point_p_values(found$points, permuted)
    expected <- permuted$means
    expected[is.na(points$rbo) | is.nan(expected)] <- NA
    points$rbo_expected <- expected[, "rbo"]
    points$lost_expected <- expected[, "lost"]
    points$gained_expected <- expected[, "gained"]
    is_alone <- is.na(points$rbo)
    points$p_value <- replace(of_points$p_value, is_alone, NA)
    points$p_adjusted <- replace(of_points$p_adjusted, is_alone, NA)
    edges$p_value <- permutation_p(permuted$edges_beyond, ncol(drawn))
    edges$p_adjusted <- p_of_largest(change_t, permuted$largest)
  }
  names <- search$points$names
  if (!is.null(names)) {
    edges$from <- cpp_names_at(names, edges$from)
    edges$to <- cpp_names_at(names, edges$to)
  }
  contrast <- structure(
    list(
      points = points,
      edges = structure(
        edges, class = "data.frame",
        row.names = .set_row_names(length(edges$from))
      ),
      groups = stats::setNames(tabulate(labels, 2), taken$names),
      k = search$request$k, metric = search$request$metric,
      sign = search$request$sign, weighted = !is.null(weights),
      permutations = if (is.null(drawn)) 0L else ncol(drawn),
      relabelled = taken$relabelled, persistence = persistence,
      num_features = length(labels)
    ),
    class = "fsknn_contrast"
  )
  with_searched(contrast, search)
}

values_to_permute <- function(search, labels, taken, samples, designs, strata) {
  values <- search$points$values
  weights <- search$options$weights
  kind <- search$options$weighting$kind
  values <- if (is.null(designs)) {
    standardise_groups(values, labels, strata, weights, kind)
  } else {
    residuals_of_groups(values, labels, designs, strata, weights, kind)
  }
  if (taken$relabelled$kind != "units") {
    return(values)
  }
  restore <- function(values) {
    restore_units(values, taken$unit[samples], strata, weights, designs)
  }
  if (is.list(values)) {
    values$residuals <- restore(values$residuals)
    values
  } else {
    restore(values)
  }
}

points_of_contrast <- function(found, search) {
  k <- search$request$k
  data.frame(
    point = search$points$names %||% seq_along(found$shared),
    shared = found$shared, jaccard = found$shared / (2 * k - found$shared),
    rbo = ifelse(is.nan(found$rbo), NA, found$rbo),
    correlation_1 = ifelse(is.nan(found$mean_1), NA, found$mean_1),
    correlation_2 = ifelse(is.nan(found$mean_2), NA, found$mean_2),
    lost = found$lost, gained = found$gained,
    stringsAsFactors = FALSE
  )
}

# Points are numbered from 1. The edges of a point are in order of rank in the
# first group, followed by those found only in the second.
edges_of_contrast <- function(groups) {
  k <- ncol(groups[[1]]$index)
  there <- which(!is.na(groups[[1]]$index[, 1]))
  listed <- lapply(groups, function(group) {
    by_row <- function(values) as.vector(t(values[there, , drop = FALSE]))
    list(
      from = rep(there, each = k), to = by_row(group$index),
      rank = rep(seq_len(k), length(there)), own = by_row(group$own),
      other = by_row(group$other)
    )
  })
  first <- listed[[1]]
  second <- listed[[2]]
  # The key is exact in double for up to 9e7 points.
  key <- function(of) (of$from - 1) * nrow(groups[[1]]$index) + of$to
  at <- match(key(first), key(second))
  only <- setdiff(seq_along(second$from), at)
  edges <- list(
    from = c(first$from, second$from[only]),
    to = c(first$to, second$to[only]),
    rank_1 = c(first$rank, rep(NA, length(only))),
    rank_2 = c(second$rank[at], second$rank[only]),
    correlation_1 = c(first$own, second$other[only]),
    correlation_2 = c(first$other, second$own[only])
  )
  edges$change <- fisher_z(edges$correlation_2) - fisher_z(edges$correlation_1)
  order <- order(edges$from, edges$rank_1, edges$rank_2, method = "radix")
  lapply(edges, `[`, order)
}

# This is the formula of the core (core/search/contrast.hpp).
fisher_z <- function(r) {
  most <- 1 - 1e-12
  atanh(pmin(pmax(r, -most), most))
}
