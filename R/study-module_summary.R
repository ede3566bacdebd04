#' Module eigengenes, hubs and their correlation with outcomes
#'
#' For each module (cluster of points), reports its size, its eigengene and the
#' variance that the eigengene explains. An eigengene is a profile over the
#' samples that represents the module. The function also reports the points that
#' are most correlated with it (hubs), and its correlation with outcomes.
#'
#' @details
#' The eigengene (Langfelder and Horvath 2008) is the first right singular
#' vector of the module's rows, each standardised to mean 0 and standard
#' deviation 1. Its length is 1. Its sign makes its correlation with the mean of
#' these rows positive. `variance_explained` is the proportion of the rows' sum
#' of squares that it explains. That is the mean of the rows' squared
#' correlations with it.
#'
#' `kme` is a point's correlation with the eigengene of its own module. The
#' `hub` of a module is the point with the largest |kme|. Eigengenes and the
#' variance explained are those of `WGCNA::moduleEigengenes()`, and `kme` is
#' that of `WGCNA::signedKME()`.
#'
#' No matrix is larger than the module's rows, or samples x samples. So modules
#' of 100,000 points are summarised in seconds.
#'
#' @section Outcomes:
#' The correlations of eigengenes with outcomes and their p-values are those of
#' [nearest_to()] with `sign = "absolute"`, that is, two-sided. The null
#' hypothesis of `p_value` and `p_adjusted` is that the outcome is independent
#' of the eigengenes.
#'
#' With `strata`, the permutations for `p_adjusted` are within each stratum.
#' `p_value` of r ignores strata without `adjust`. With it, they are covariates,
#' and `p_value` assumes the same spread in all strata. The moderated t of a
#' factor of two levels always has strata as covariates.
#' * A factor may have three or more levels. Its `correlation` is then the
#'   correlation ratio, which is never negative.
#' * `statistic`, for factors, is a moderated t or F, whose permutations give
#'   `p_adjusted`: see [test_options()].
#' * `p_value` is analytic, and assumes values that are nearly normal under
#'   `"pearson"` and `"bicor"`. For factors it is that of the moderated t or F.
#'   It is valid only for a module chosen in advance.
#' * `p_adjusted` is family-wise over all modules, by Westfall and Young's
#'   step-down maximum over permutations of the outcome.
#' * `fdr` is `p_value` adjusted by Benjamini and Hochberg over the modules.
#'
#' Of few modules, the p-values of a moderated F are somewhat too small if
#' levels have few samples. We simulated five modules and three levels of 6, 9
#' and 15 samples, of which a tenth was missing
#' (`inst/bench/calibration_outcome.R`).
#' Without any effect, some module has an `fdr` of at most 0.05 in 9% of data
#' sets, and a `p_adjusted` in 6%.
#'
#' With `unit`, whole donors are permuted, and only `p_adjusted` is given: see
#' *Whole units* in [nearest_to()].
#'
#' With several outcomes, each is a family of its own, unless `family = "call"`.
#' P-values are too small if the outcome contributed to the modules. That is so
#' if points were selected by the outcome, or if it is a row of `x` as from
#' [add_phenotype()]. Leave that row out of `x` and `clusters`. See
#' [nearest_to()] for further limits.
#'
#' An eigengene may be correlated with an outcome although few of its points
#' are. If `variance_explained` is small, the eigengene represents the module
#' poorly.
#'
#' @param clusters The module of each point (row of `x`). It may be a result of
#'   [mst_knn()] or of igraph's `cluster_*()` functions, or a vector or factor
#'   such as WGCNA's `colors`. `NA` means no module. If both have names, points
#'   are matched by name. WGCNA's "grey" (or 0) is a module like any other,
#'   unless you replace it by `NA`.
#' @param x The points, as for [knn_search()], held in memory.
#' @param outcome `NULL` (default), or an outcome of the samples, or several in
#'   a data frame or a list with names. They are as for [nearest_to()]: numbers,
#'   logical values, a factor or text, or survival times (`survival::Surv`).
#'   Samples that lack an outcome are left out for it, with a message. If both
#'   have names, samples are matched by name. For an `ExpressionSet` or a
#'   `SummarizedExperiment`, it may be names of columns of its sample data.
#' @param min_size The minimum number of points in a module, 3 by default.
#'   Smaller modules are left out.
#' @param metric The correlation of eigengenes with outcomes: `"pearson"`
#'   (default), `"spearman"` or `"bicor"`.
#' @param permutations Number of permutations of the outcome for `p_adjusted`. 0
#'   (default) gives no `p_adjusted`.
#' @param ... [Point options][point_options()], [run options][run_options()] and
#'   [test options][test_options()] (`statistic`, `family`), by name, or
#'   collected as `options = `. `constant = "isolate"` puts constant
#'   rows in no module. `na = "mean"` replaces a missing value of `x` by the
#'   mean of its row. `adjust` applies to the correlations of eigengenes with
#'   outcomes, and not to the eigengenes that are returned.
#' @inheritParams nearest_to
#'
#' @returns An object of class `fsknn_modules`, a list of
#'   * `modules`: a data frame with a row for each module, in order: `module`,
#'     `size`, `variance_explained` and `hub` (name or number of a point);
#'   * `outcomes`, if there are any: a data frame with a row for each outcome
#'     and module. Its columns are `outcome`, `module`, `correlation`,
#'     `statistic` (if an outcome has a moderated t or F), `p_value`,
#'     `p_adjusted` (with permutations) and `fdr`. With `unit`, there is no
#'     `p_value` and no `fdr`. The modules with the largest |correlation| are
#'     first;
#'   * `points`: a data frame with a row for each point in a module: `point`,
#'     `module`, `kme` and `rank` (1 for the hub);
#'   * `eigengenes`: a matrix with a row for each module and a column for each
#'     sample. Rows are named `ME` and the module. It can be searched, or bound
#'     to `x`;
#'   * `num_samples` and `permutations` (those that were used), and with
#'     outcomes `relabelled`, a list with the smallest possible `p_adjusted`
#'     (`smallest_p`).
#'
#'   `as.data.frame()` returns the modules, or with `what` the `"outcomes"` or
#'   `"points"`. `plot()` draws the correlations of the `n` largest modules with
#'   outcomes, or without outcomes the variance explained. It needs ggplot2.
#' @inheritSection knn_search Errors
#' @references
#' Langfelder P, Horvath S (2008). WGCNA: an R package for weighted correlation
#' network analysis. *BMC Bioinformatics* 9: 559. \doi{10.1186/1471-2105-9-559}
#'
#' Westfall PH, Young SS (1993). *Resampling-Based Multiple Testing*. Wiley,
#' New York.
#' @seealso [mst_knn()] for clusters, [soft_threshold()] and [sparse_tom()] for
#'   WGCNA's networks.
#' @order 1
#' @export
#' @examples
#' # Three modules, of which the second is correlated with the stage
#' x <- matrix(rnorm(3 * 40), 3)
#' stage <- x[2, ] + rnorm(40)
#' x <- x[rep(1:3, each = 30), ] + matrix(rnorm(90 * 40), 90)
#' rownames(x) <- paste0("gene", 1:90)
#' found <- module_summary(
#'   rep(c("a", "b", "c"), each = 30), x,
#'   outcome = list(stage = stage, age = rnorm(40)), permutations = 200
#' )
#' found
#' head(found$points)
module_summary <- function(clusters, x, outcome = NULL, ..., min_size = 3,
                           metric = "pearson", permutations = 0,
                           strata = NULL, unit = NULL) {
  check_supplied(clusters)
  check_supplied(x)
  min_size <- check_whole_number(min_size, "min_size", 1, .Machine$integer.max)
  permutations <- check_permutations(permutations, least = 0)
  options <- verb_options("module_summary", ...)
  check_is_correlation(options$metric)
  check_tests(options, if (is.null(outcome)) "outcome")
  read <- read_module_points(x, options)
  membership <- check_membership(clusters, read)
  membership[read$skip] <- NA
  modules <- modules_of(membership, min_size)
  made <- lapply(modules$members, function(at) {
    eigengene_of(read$values[at, , drop = FALSE])
  })
  found <- new_module_summary(modules, made, read)
  if (!is.null(outcome)) {
    table <- outcomes_of_modules(
      found, outcome, x, read, options, permutations = permutations,
      strata = strata, unit = unit
    )
    found$outcomes <- table$outcomes
    found$permutations <- table$relabelled$num
    found$relabelled <- table$relabelled
  }
  found
}

# Returns values (a matrix with missing ones filled), names, and `skip`, the
# rows that are constant.
read_module_points <- function(x, options, arg = "x", call = caller_env()) {
  options$in_memory <- TRUE
  # The rows must meet the conditions of Pearson's r.
  options$metric <- check_metric("pearson")
  # Only outcomes are adjusted.
  options["adjust"] <- list(NULL)
  points <- take_points(x, options$input, arg, call = call)
  points <- bring_all(points, NULL, options, call)$points
  if (!is.matrix(points$values)) {
    abort_no_metafeatures(call)
  }
  check_num_features(ncol(points$values), options$metric, arg,
                     points$transposed, call = call)
  checked <- check_values(points, options, arg, call = call)
  tell_if_counts(x, points, options$metric, arg)
  if (checked$missing > 0) {
    points$values <- structure(
      t(cpp_filled(points$values)$rows), dimnames = dimnames(points$values)
    )
  }
  points$skip <- checked$skip
  points
}

# A module for each point, NA for none: a factor.
check_membership <- function(clusters, points, arg = "clusters",
                             call = caller_env()) {
  of <- if (inherits(clusters, "fsknn_mst_knn")) {
    clusters$membership
  } else if (inherits(clusters, "communities")) {
    values <- igraph::membership(clusters)
    stats::setNames(as.vector(values), names(values))
  } else {
    clusters
  }
  if (!can_be_labels(of)) {
    given <- describe_type(of)
    abort_argument(
      "{.arg {arg}} must be what {.fn mst_knn} or igraph gives, or a vector
       with a module for each point, not {given}.",
      call
    )
  }
  check_labels_text(of, arg, call)
  of <- match_names(of, known_points(points), arg, "points", call)
  num_points <- nrow(points$values)
  if (length(of) != num_points) {
    given <- tally(length(of), "point")
    abort_argument(
      c(
        "{.arg {arg}} must have a module for each of the
         {format_count(num_points)} points of {.arg x}.",
        x = "It is of {given}."
      ),
      call
    )
  }
  if (is.factor(of)) droplevels(of) else factor(of)
}

# Returns the modules that are large enough, in order, and their points.
modules_of <- function(membership, min_size, call = caller_env()) {
  members <- split(seq_along(membership), membership)
  members <- members[lengths(members) >= min_size]
  if (length(members) == 0) {
    largest <- max(0L, tabulate(membership))
    abort_argument(
      c(
        "A module must have {.arg min_size} points, {min_size}, or more.",
        x = "The largest has {format_count(largest)}."
      ),
      call
    )
  }
  list(module = module_names(names(members)), members = unname(members))
}

# Returns the names of modules, as numbers if all are.
module_names <- function(names) {
  whole <- !grepl("[^0-9]", names) & nchar(names) < 10
  if (all(whole)) as.integer(names) else names
}

# Takes rows that vary. Returns the eigengene, its share of their sum of
# squares, and its correlation with each row.
eigengene_of <- function(rows) {
  rows <- standard_rows(rows)
  # The smaller of the two products has the same information.
  if (nrow(rows) <= ncol(rows)) {
    parts <- eigen(tcrossprod(rows), symmetric = TRUE)
    vector <- as.vector(crossprod(rows, parts$vectors[, 1]))
    vector <- vector / sqrt(sum(vector^2))
  } else {
    parts <- eigen(crossprod(rows), symmetric = TRUE)
    vector <- parts$vectors[, 1]
  }
  if (sum(vector * colMeans(rows)) < 0) {
    vector <- -vector
  }
  r <- as.vector(rows %*% vector)
  list(vector = vector, explained = mean(r^2), kme = r)
}

# Scales rows that vary to mean 0 and length 1.
standard_rows <- function(rows) {
  storage.mode(rows) <- "double"
  # Rows are first scaled by their maximum, so that squares do not overflow or
  # underflow.
  rows <- rows / apply(abs(rows), 1, max)
  rows <- rows - rowMeans(rows)
  rows / sqrt(rowSums(rows^2))
}

new_module_summary <- function(modules, made, points) {
  names <- points$names %||% seq_len(nrow(points$values))
  label <- function(at) names[at]
  part <- function(what) lapply(made, `[[`, what)
  rank <- lapply(part("kme"), function(r) {
    rank <- integer(length(r))
    rank[order(-abs(r))] <- seq_along(r)
    rank
  })
  members <- unlist(modules$members)
  hubs <- unlist(Map(function(at, rank) at[rank == 1], modules$members, rank))
  sizes <- lengths(modules$members)
  table <- data.frame(
    point = label(members), module = rep(modules$module, sizes),
    kme = unlist(part("kme")), rank = unlist(rank), stringsAsFactors = FALSE
  )
  structure(
    list(
      modules = data.frame(
        module = modules$module, size = sizes,
        variance_explained = unlist(part("explained")), hub = label(hubs),
        stringsAsFactors = FALSE
      ),
      outcomes = NULL, points = table,
      eigengenes = matrix(
        unlist(part("vector")), length(made), byrow = TRUE,
        dimnames = list(
          paste0("ME", modules$module), feature_names(points$values)
        )
      ),
      num_samples = ncol(points$values), permutations = 0L
    ),
    class = "fsknn_modules"
  )
}

# Returns list(outcomes, relabelled): the results of nearest_to() for all
# modules, and the facts of the permutations. `points` is from
# read_module_points().
outcomes_of_modules <- function(found, outcome, x, points, options,
                                permutations, strata, unit,
                                call = caller_env()) {
  given <- outcomes_given(
    outcome, x, list(options = options, points = points), call
  )
  strata <- check_strata(
    strata, x, found$num_samples, permutations > 0, input = options$input,
    call = call
  )
  unit <- check_strata(
    unit, x, found$num_samples, permutations > 0, input = options$input,
    arg = "unit", call = call
  )
  adjust <- options$adjust
  if (rlang::is_formula(adjust$adjust) && is.null(adjust$data)) {
    table <- feature_table(x, options$input)
    options$adjust["data"] <- list(if (!is.null(table)) without_names(table))
  }
  options[c("input", "sign", "constant", "na")] <- list(
    check_input(), "absolute", "error", "error"
  )
  eigengenes <- found$eigengenes
  colnames(eigengenes) <- points$features
  num_modules <- nrow(eigengenes)
  table <- for_parts(
    given, list(options = options, points = points),
    function(part) {
      nearest_of_part(
        eigengenes, part, permutations, strata, unit, call, k = num_modules
      )
    },
    call
  )
  columns <- intersect(
    c("correlation", "statistic", "p_value", "p_adjusted", "fdr"), names(table)
  )
  outcomes <- cbind(
    data.frame(
      outcome = rep(names(given), each = num_modules),
      module = found$modules$module[table$index], stringsAsFactors = FALSE
    ),
    as.data.frame(table)[columns]
  )
  list(
    outcomes = outcomes, relabelled = searched_of(table)$nearest$relabelled
  )
}
