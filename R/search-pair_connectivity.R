#' Connectivity over all pairs
#'
#' Computes the connectivity of each point in a weighted correlation network.
#' This is the sum of its similarities to all other points, each raised to a
#' power. One pass over all n (n - 1) / 2 pairs computes several powers, without
#' a matrix of pairs. Memory holds only the points, and up to 16 numbers for
#' each point and power.
#'
#' @details
#' The similarity of a correlation r is |r| for `type = "unsigned"` and (1 + r)
#' / 2 for `"signed"`. For `"signed hybrid"` it is r, or 0 for an r below 0
#' (Zhang and Horvath 2005; Langfelder and Horvath 2008). All r are computed in
#' double, as in [knn_search()]. The order of summation depends only on the
#' number of points, not on the number of threads. With `na = "pairwise"`, which
#' is how WGCNA treats missing values, a pair without a value counts 0.
#'
#' It runs on CPUs and has no argument `backend`.
#'
#' @inheritParams pair_histogram
#' @param powers The powers, numbers of 1 or more. Those of
#'   `WGCNA::pickSoftThreshold()` by default. Whole powers up to 64 are
#'   products, and much faster than others.
#' @param type `"unsigned"` (default), `"signed"` or `"signed hybrid"`.
#' @param metric A correlation: `"pearson"` (default), `"spearman"` or
#'   `"bicor"`.
#' @param ... [Point options][point_options()] and [run
#'   options][run_options()], by name, or collected as `options = `. `constant
#'   = "isolate"` leaves points without a value out of all sums and gives them
#'   `NA`.
#'
#' @returns A list of class `fsknn_pair_connectivity`. Its element `k` is a
#'   matrix with a row for each point (with its name) and a column for each
#'   power. The others are `powers`, `type`, `metric`, `weighted` and
#'   `num_covariates`. [soft_threshold()] computes WGCNA's table from it.
#'   `as.data.frame()` gives `name` (or number), `power` and `k`.
#' @section Errors:
#' As for [knn_search()], of class `fsknn_argument_error`.
#' @inheritSection pair_histogram Missing values
#' @references
#' Zhang B, Horvath S (2005). A general framework for weighted gene
#' co-expression network analysis. *Statistical Applications in Genetics and
#' Molecular Biology* 4(1): 17. \doi{10.2202/1544-6115.1128}
#'
#' Langfelder P, Horvath S (2008). WGCNA: an R package for weighted correlation
#' network analysis. *BMC Bioinformatics* 9: 559. \doi{10.1186/1471-2105-9-559}
#' @seealso [soft_threshold()], [pair_histogram()]
#' @export
#' @examples
#' x <- matrix(rnorm(5 * 30), 5)[rep(1:5, 2^(3:7)), ] +
#'   matrix(rnorm(248 * 30), 248)
#' found <- pair_connectivity(x, powers = c(1, 6, 12))
#' found
#' head(found$k)
#' soft_threshold(found)
pair_connectivity <- function(x, powers = c(1:10, seq(12, 20, by = 2)),
                              type = c("unsigned", "signed", "signed hybrid"),
                              metric = "pearson", ...) {
  check_supplied(x)
  powers <- check_powers(powers, "powers")
  type <- check_network_type(type)
  options <- verb_options("pair_connectivity", ...)
  check_is_correlation(options$metric)
  search <- new_search(x, options)
  found <- in_core(
    cpp_connectivities(search$points$values, search$request, type, powers)
  )
  k <- found$connectivity
  dimnames(k) <- list(point_names(search$points), format_powers(powers))
  connectivity <- structure(
    list(
      k = k, powers = powers, type = type, metric = options$metric$name,
      weighted = !is.null(search$request$weights),
      num_covariates = num_covariates(search$request) %||% 0L
    ),
    class = "fsknn_pair_connectivity"
  )
  with_searched(connectivity, search)
}

format_powers <- function(powers) {
  vapply(powers, format, "", digits = 15)
}

#' @method format fsknn_pair_connectivity
#' @export
format.fsknn_pair_connectivity <- function(x, ...) {
  without <- sum(is.na(x$k[, 1]))
  paste0(
    "Connectivity of ", tally(nrow(x$k), "point"), " over all pairs, ",
    describe_metric(x$metric, NULL, x$weighted, x$num_covariates), ", ",
    x$type,
    if (without > 0) paste0(" (", format_count(without), " isolated)")
  )
}

#' @export
print.fsknn_pair_connectivity <- function(x, ...) {
  cat(format(x), "\n", sep = "")
  cat_searched(x)
  k <- x$k[!is.na(x$k[, 1]), , drop = FALSE]
  print(
    data.frame(
      power = x$powers, mean_k = signif(colMeans(k), 4),
      median_k = signif(apply(k, 2, stats::median), 4),
      max_k = signif(apply(k, 2, max), 4)
    ),
    row.names = FALSE
  )
  invisible(x)
}

#' @param row.names,optional Not used; they are those of the generic.
#' @method as.data.frame fsknn_pair_connectivity
#' @rdname pair_connectivity
#' @export
as.data.frame.fsknn_pair_connectivity <- function(x, row.names = NULL,
                                                  optional = FALSE, ...) {
  check_no_more(...)
  check_unused(row.names, optional)
  n <- nrow(x$k)
  data.frame(
    name = rep(rownames(x$k) %||% seq_len(n), length(x$powers)),
    power = rep(x$powers, each = n), k = as.vector(x$k)
  )
}
