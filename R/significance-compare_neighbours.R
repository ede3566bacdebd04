#' Which neighbours differ between two groups of samples
#'
#' Builds the kNN graph within each of two groups of samples, and says for each
#' point how far its two lists of neighbours agree and how much its correlation
#' to them changes, and for each edge how much its correlation changes. What
#' chance would give is found by permuting the groups and searching again.
#'
#' @details
#' **Of a point**, with lists A and B of k neighbours in the two groups:
#' * `shared` is their number in common, `jaccard` that over the number in
#'   either;
#' * `rbo` is the rank-biased overlap (Webber, Moffat and Zobel 2010), in which
#'   the agreement among the nearest counts most: the mean over depths d of the
#'   share of neighbours in common among the first d, weighted by
#'   `persistence`^d. It is the *extrapolated* form, which takes the share at
#'   depth k for all depths beyond: 1 for equal lists, 0 for lists with nothing
#'   in common;
#' * `correlation_1` and `correlation_2` are the means of its correlations, in
#'   each of the groups, to the points of either list (of |r| with
#'   `sign = "absolute"`, of -r with `"negative"`), and `change` is the second
#'   less the first.
#'
#' **Of an edge**, an edge of either group's graph, `change` is the difference
#' of Fisher's z, atanh(r), the second group's less the first's, of the signed r
#' whatever `sign` is. |r| above 1 - 1e-12 counts as that.
#'
#' **Permutations.** In each the groups' labels are dealt out anew (within
#' `strata`), to samples whose values were centred within their group and
#' brought to the same spread there, and both graphs are *searched for again*:
#' edges are listed since they are near, so that one that is near by chance in
#' one group is less so in the other. A p-value for two correlations that were
#' not chosen would call a third of the edges of pure noise significant, and so
#' none is given. The permutations are drawn first, by R's random numbers:
#' [set.seed()] repeats an answer on any backend.
#'
#' * `p_rbo`: the share of permutations (with what was observed as one of them:
#'   (b + 1) / (B + 1), Phipson and Smyth 2010) in which the point's overlap is
#'   as low. Lists often share nothing by chance alone, and all such ties count
#'   against the point.
#' * `p_change`: in which its change is as far from the mean of all of them.
#' * `p_rbo_adjusted`, `p_change_adjusted`: family-wise, by the smallest
#'   p-value of all points in each permutation (Westfall and Young 1993). Ranks
#'   would tie there: with fewer permutations than points some point is at its
#'   most extreme in every permutation. So a point's p-value is told there by
#'   the number of its standard deviations from its mean, both over all
#'   permutations and what was observed.
#' * of edges, `p_value`: the share of permutations in which some edge of the
#'   point (`from`), to whatever neighbour, changes as much; `p_adjusted`: in
#'   which any edge of either graph does.
#'
#' @section Null and what is not controlled:
#' The null: the two groups differ in no more than the mean and the spread of
#' each point, so that, those taken away, samples (of one stratum) can be
#' exchanged. Any other difference in how points vary together may be found,
#' such as a cluster of samples within one group, another shape of the
#' distribution, an outlier, or samples that are not independent.
#'
#' Exchanging is exact for known means and spreads; with those of the samples
#' themselves it is nearly so, for all but the smallest groups (see
#' `inst/bench/calibration_contrast.R`, whose figures are in the site's article
#' "calibration"). Where values have heavy tails or outliers, `"spearman"` is
#' safer: with Pearson's r of t-distributed values (3 degrees of freedom, 20
#' samples a group) some edge has a `p_adjusted` below 0.05 in 14% of data sets
#' of no difference, with Spearman's in 5%.
#'
#' Where `strata` are given, the groups' difference of means is taken to be the
#' same in each stratum; what differs between strata stays in the correlations,
#' as in those of [knn_graph()].
#'
#' Family-wise p-values hold where no point differs at all (weak control). Where
#' some do, so do the lists of their neighbours: a list is of other points. And
#' p-values that are not adjusted are one for each point or edge: of 1,000, 50
#' are below 0.05 by chance. No false-discovery rate is given: with B
#' permutations no p-value is below 1 / (B + 1), which thousands of points need.
#'
#' @section Options:
#' There is no `subset`, since what is family-wise is over all points; and no
#' `BPPARAM` or `checkpoint`: points are sent to a GPU (or prepared) once for
#' all permutations, each of which is two searches by all threads or GPUs. With
#' `na = "pairwise"` each pair would have samples of its own: that is an error.
#' Correlations only: other metrics see the means that are taken away. To take
#' out a confounder, give what `limma::removeBatchEffect()` leaves with the
#' groups in its `design`.
#'
#' @param x The points, as for [knn_search()], held in memory, with the samples
#'   of both groups. Or a list of two of these with the same points, matched by
#'   name where both have names; names of the list, if any, name the groups.
#' @param groups The group of each sample (column of `x`): a factor or a vector
#'   with two different values, `NA` for samples to leave out; in the order of
#'   the samples, or with their names. Beside an
#'   `ExpressionSet` or a `SummarizedExperiment` also the name of a column of
#'   its sample data. Group 1 is the first level (in sorted order where it is no
#'   factor). `NULL` (default) where `x` is a list.
#' @param k Number of neighbours of each point, as for [knn_search()].
#' @param metric,sign One of the correlations, `"pearson"` (default),
#'   `"spearman"` or `"bicor"`, and what of it is near: see [knn_search()].
#' @param permutations How many permutations, 100 by default. `NULL`: none, and
#'   no p-values.
#' @param strata `NULL` (default), or a value for each sample, given as `groups`
#'   are: labels are permuted among samples with the same value only.
#' @param persistence How much deeper ranks count in `rbo`, above 0 and below 1:
#'   with 0.9 (default) the first 10 have 86% of the weight.
#' @param ... [Point options][point_options()] and [run
#'   options][run_options()], by name, or collected as `options = `. A point
#'   that is constant in either group counts as constant: `constant =
#'   "isolate"` leaves it without neighbours in both, with `NA` in `points`.
#'   `na = "mean"` takes the mean of the row's values in the sample's group. A
#'   sample keeps its weight when its label is permuted.
#'
#' @returns An object of class `fsknn_contrast`, a list of
#'   * `points`: a data frame with a row for each point, in order: `point` (name
#'     or number), `shared`, `jaccard`, `rbo`, `correlation_1`, `correlation_2`,
#'     `change`; and, from permutations, `rbo_expected` (the mean over them),
#'     `p_rbo`, `p_rbo_adjusted`, `p_change` and `p_change_adjusted`;
#'   * `edges`: a data frame with a row for each edge of either graph, those of
#'     a point together: `from`, `to`, `rank_1` and `rank_2` (`NA` in the graph
#'     that does not have it), `correlation_1`, `correlation_2` (signed),
#'     `change`, and from permutations `p_value` and `p_adjusted`;
#'   * `groups`: the number of samples of each; and `k`, `metric`, `sign`,
#'     `weighted`, `permutations`, `persistence` and `num_features`.
#'
#'   `as.data.frame()` gives the points, or `what = "edges"`; `summary()` counts
#'   what is below `alpha`; `plot()` draws the `n` points that changed most
#'   `by = "rbo"` or `"change"`, in order of p-value (adjusted, then not), then
#'   of size. It needs ggplot2. With permutations p-values of both take 16 bytes
#'   for each point and permutation.
#' @inheritSection knn_search Errors
#' @references
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
#' @seealso [knn_graph()] for the graph of one group, [combine_graphs()] for
#'   what two graphs have in common.
#' @export
#' @examples
#' # Two modules; in the second group the first 20 genes no longer follow one
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
#' head(found$points[order(found$points$p_rbo_adjusted), ])
#' found$edges[found$edges$p_adjusted < 0.05, ]
compare_neighbours <- function(x, groups = NULL, k = 20, metric = "pearson",
                               sign = "signed", ..., permutations = 100,
                               strata = NULL, persistence = 0.9) {
  check_supplied(x)
  permutations <- check_permutations(permutations)
  persistence <- check_persistence(persistence)
  options <- verb_options("compare_neighbours", ...)
  check_is_correlation(
    options$metric,
    "Groups may differ in the means of points, which other metrics see."
  )
  options$in_memory <- TRUE
  # Ties concern the lists of each group: see check_group_values().
  taken <- take_two_groups(
    x, groups, strata, !is.null(permutations), options
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
  check_group_sizes(labels, taken$names, current_env())
  # Samples of weight 0 have been dropped.
  check_can_change(labels, taken$strata[samples], current_env())
  search <- check_group_values(search, labels, taken$names, constant)
  drawn <- if (!is.null(permutations)) {
    draw_permutations(length(labels), permutations, taken$strata[samples])
  }
  tell_contrast(search, labels)
  contrast_groups(search, labels, taken, drawn, persistence, samples)
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
check_group_values <- function(search, labels, names, constant,
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
                            call = caller_env()) {
  values <- search$points$values
  weights <- search$options$weights
  task <- new_contrast_task(search, labels, persistence)
  task$shown <- search$request$progress
  # The data are not standardised here, so that lists are identical to those of
  # knn_search().
  found <- contrast_of(values, values, labels, task, call)
  edges <- edges_of_contrast(found$groups)
  points <- points_of_contrast(found$points, search)
  if (!is.null(drawn)) {
    values <- standardise_groups(values, labels, taken$strata[samples], weights)
    task$at_risk <- rows_at_risk(values, min(tabulate(labels, 2)))
    permuted <- permuted_contrasts(values, labels, drawn, task, edges, call)
    of_rbo <- point_p_values(points$rbo, permuted$rbo, FALSE)
    of_change <- point_p_values(points$change, permuted$change, TRUE)
    points$rbo_expected <- of_rbo$expected
    points$rbo_expected[is.na(points$rbo)] <- NA
    points$p_rbo <- of_rbo$p_value
    points$p_rbo_adjusted <- of_rbo$p_adjusted
    points$p_change <- of_change$p_value
    points$p_change_adjusted <- of_change$p_adjusted
    edges$p_value <- permutation_p(permuted$edges_beyond, ncol(drawn))
    edges$p_adjusted <- p_of_largest(abs(edges$change), permuted$largest)
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
      persistence = persistence, num_features = length(labels)
    ),
    class = "fsknn_contrast"
  )
  with_searched(contrast, search)
}

points_of_contrast <- function(found, search) {
  k <- search$request$k
  data.frame(
    point = search$points$names %||% seq_along(found$shared),
    shared = found$shared, jaccard = found$shared / (2 * k - found$shared),
    rbo = ifelse(is.nan(found$rbo), NA, found$rbo),
    correlation_1 = ifelse(is.nan(found$mean_1), NA, found$mean_1),
    correlation_2 = ifelse(is.nan(found$mean_2), NA, found$mean_2),
    change = ifelse(is.nan(found$mean_1), NA, found$mean_2 - found$mean_1),
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
