#' Preservation of modules in other data
#'
#' Tests whether the modules of one data set are found in another: whether their
#' points are correlated there, too, and with the same structure. The statistics
#' are those of `WGCNA::modulePreservation()` (Langfelder and others 2011), with
#' permutation p-values beside Z.
#'
#' @details
#' **Statistics.** Each module has four statistics of density and three of
#' connectivity. r is the correlation of two points of the module, and kME that
#' of a point with the module's eigengene (see [module_summary()]):
#' * `variance_explained`: the mean of kME^2 in `x_test`;
#' * `mean_kme`: the mean of kME in `x_test`, each with the sign of kME in `x`,
#'   without the sign of the result;
#' * `mean_correlation`: the mean of r in `x_test`, each with the sign of r in
#'   `x`;
#' * `mean_adjacency`: the mean adjacency in `x_test` (see [soft_threshold()]
#'   for `type` and `power`);
#' * `cor_kim`: the correlation, between both data sets, of the connectivities
#'   of the points, which are the sums of their adjacencies within the module;
#' * `cor_kme`: the same of kME, without its sign;
#' * `cor_cor`: the same of r over all pairs.
#'
#' **Permutations.** In each permutation, a module of m points is compared with
#' m points of `x_test` that are drawn at random from all common points. Z is
#' the difference of a statistic to the mean of its permutations, divided by
#' their standard deviation.
#'
#' `z_density` is the median Z of the four statistics
#' of density, `z_connectivity` that of the three others, and `z_summary` is the
#' mean of both. Langfelder and others call a module with a Zsummary above 10
#' strongly preserved, and one below 2 not preserved. Z grows with the size of a
#' module.
#'
#' The p-value of a statistic is (b + 1) / (B + 1). In b of B permutations, it
#' is at least as large as in the data. For the summary, the data and all
#' permutations are standardised together and compared by Zsummary. `p_adjusted`
#' adjusts this p-value for the number of modules (Holm 1979), which needs no
#' assumption about their dependence. All modules share the random points of a
#' permutation: a smaller module takes the first of them.
#'
#' **Null hypothesis.** The module is a random set of points, as far as `x_test`
#' is concerned. So a small p-value shows that the module is *more* correlated
#' there than random points, or in the same pattern. It does not follow that
#' random points are uncorrelated. Samples are not permuted. The p-value refers
#' to these samples, and a batch or a mixture of tissues that both data sets
#' share preserves modules, too.
#'
#' P-values are at their level in simulated data
#' (`inst/bench/calibration_modules.R`, 1,000 data sets). There are 200 points
#' with modules of 10 and 40 points, and 20 samples in `x_test`. A module of 10
#' points that is preserved with r = 0.5 has a Zsummary of 4 on average, and one
#' of 40 points 11. So many preserved modules have a Zsummary below 10, and
#' p-values find them.
#'
#' If `x_test` has samples that also chose the modules, each module is
#' preserved. The samples of both must be different.
#'
#' **Modules from few points.** With `max_size`, a larger module is represented
#' by so many of its points, drawn at random, as in WGCNA.
#'
#' WGCNA fixes the power at 6 (12 for `"signed"`), which is the default here.
#' Its statistics of separability, cluster coefficients and maximum adjacency
#' ratios are not computed. They are not part of its Zsummary.
#'
#' @param clusters The module of each point of `x`, as for [module_summary()].
#'   Points without a module (`NA`) are in no module, but they are drawn at
#'   random like all others.
#' @param x The points in which the modules were found (the reference).
#' @param x_test The points in other samples. If both have names, the points
#'   that both have are compared, in any order. Otherwise both must have the
#'   same number of points, in the same order.
#' @param power The soft threshold power. `NULL` (default) is 6, and 12 for
#'   `type = "signed"`.
#' @param permutations Number of permutations, 1,000 by default.
#' @param type `"unsigned"` (default), `"signed"` or `"signed hybrid"`.
#' @param min_size The minimum number of common points of a module, 3 by
#'   default. Smaller modules are left out.
#' @param max_size Larger modules are represented by so many of their points,
#'   1,000 by default. `Inf` uses all.
#' @param ... [Point options][point_options()] for both data sets, and [run
#'   options][run_options()], by name, or collected as `options = `.
#'   `constant = "isolate"` leaves out points that are constant in either.
#'   `na = "mean"` replaces a missing value by the mean of its row.
#'
#' @returns An object of class `fsknn_preservation`, a list of
#'   * `modules`: a data frame with a row for each module. Its columns are
#'     `module`, `size` (in `x`), `common` (points that are compared),
#'     `z_summary`, `z_density`, `z_connectivity`, `p_value` and `p_adjusted`;
#'   * `statistics`: a data frame with a row for each module and statistic. It
#'     has the columns `module`, `statistic`, `observed`, the `mean` and `sd` of
#'     the permutations, `z` and `p_value`;
#'   * `left_out`: the modules with fewer than `min_size` common points;
#'   * `num_points` (common ones), `num_samples` (of both), `permutations`,
#'     `type` and `power`.
#'
#'   A statistic that is the same in all permutations has no Z.
#'   `as.data.frame()` returns the modules, or with `what = "statistics"` the
#'   statistics.
#'
#'   Time grows with the square of the largest module.
#'   `inst/bench/preservation.R` measures it.
#' @inheritSection knn_search Errors
#' @references
#' Langfelder P, Luo R, Oldham MC, Horvath S (2011). Is my network module
#' preserved and reproducible? *PLoS Computational Biology* 7(1): e1001057.
#' \doi{10.1371/journal.pcbi.1001057}
#'
#' Holm S (1979). A simple sequentially rejective multiple test procedure.
#' *Scandinavian Journal of Statistics* 6(2): 65-70.
#'
#' Phipson B, Smyth GK (2010). Permutation p-values should never be zero.
#' *Statistical Applications in Genetics and Molecular Biology* 9: 39.
#' \doi{10.2202/1544-6115.1585}
#' @seealso [module_summary()] for eigengenes and outcomes.
#' @order 1
#' @export
#' @examples
#' # Two modules, of which the second is not there in new samples
#' profile <- function(n) matrix(rnorm(2 * n), 2)[rep(1:2, each = 15), ]
#' x <- rbind(profile(30), matrix(0, 70, 30)) + rnorm(100 * 30)
#' x_test <- rbind(profile(25), matrix(0, 70, 25)) + rnorm(100 * 25)
#' x_test[16:30, ] <- rnorm(15 * 25)
#' module <- rep(c("kept", "lost", NA), c(15, 15, 70))
#'
#' found <- module_preservation(module, x, x_test, permutations = 200)
#' found
#' head(as.data.frame(found, what = "statistics"), 7)
module_preservation <- function(clusters, x, x_test, power = NULL,
                                permutations = 1000, ...,
                                type = c("unsigned", "signed", "signed hybrid"),
                                min_size = 3, max_size = 1000) {
  check_supplied(clusters)
  check_supplied(x)
  check_supplied(x_test)
  type <- check_network_type(type)
  power <- check_powers(
    power %||% if (type == "signed") 12 else 6, "power", one = TRUE
  )
  permutations <- check_permutations(permutations) %||% 1000L
  min_size <- check_whole_number(min_size, "min_size", 3, .Machine$integer.max)
  max_size <- check_max_size(max_size, min_size)
  options <- verb_options("module_preservation", ...)
  reference <- read_module_points(x, options)
  test <- read_module_points(x_test, options, "x_test")
  membership <- check_membership(clusters, reference)
  common <- common_points(reference, test)
  members <- split(seq_along(common$x), membership[common$x])
  sizes <- tabulate(membership, nlevels(membership))
  kept <- lengths(members) >= min_size
  if (!any(kept)) {
    abort_argument(
      c(
        "A module must have {.arg min_size} points, {min_size}, or more that
         are in {.arg x} and {.arg x_test}.",
        x = "The largest has {format_count(max(0L, lengths(members)))}."
      ),
      current_env()
    )
  }
  asked <- list(type = type, power = power, permutations = permutations)
  measured <- measure_preservation(
    lapply(members[kept], at_most, max_size), common, reference, test, asked,
    options, current_env()
  )
  names <- module_names(names(members))
  new_preservation(
    measured,
    data.frame(
      module = names[kept], size = sizes[kept],
      common = unname(lengths(members[kept])), stringsAsFactors = FALSE
    ),
    c(asked, list(
      left_out = names[!kept], num_points = length(common$x),
      num_samples = c(
        x = ncol(reference$values), x_test = ncol(test$values)
      )
    ))
  )
}

check_max_size <- function(max_size, min_size, call = caller_env()) {
  if (identical(max_size, Inf)) {
    return(max_size)
  }
  check_whole_number(
    max_size, "max_size", min_size, .Machine$integer.max, call = call
  )
}

at_most <- function(points, size) {
  if (length(points) <= size) {
    return(points)
  }
  points[sample.int(length(points), size)]
}

# Returns list(x, x_test): the numbers of points in both, those of the same
# point at the same place. Constant points of either are left out.
common_points <- function(points, test, call = caller_env()) {
  names <- lapply(list(points, test), function(of) real_names(known_points(of)))
  sizes <- c(nrow(points$values), nrow(test$values))
  if (is.null(names[[1]]) || is.null(names[[2]])) {
    if (sizes[[1]] != sizes[[2]]) {
      abort_argument(
        c(
          "{.arg x} and {.arg x_test} must have the same points in the same
           order, or names.",
          x = "{.arg x} has {tally(sizes[[1]], 'point')} and {.arg x_test}
               {format_count(sizes[[2]])}."
        ),
        call
      )
    }
    at <- seq_len(sizes[[1]])
  } else {
    check_row_names(names[[1]], "x", points$transposed, call = call)
    check_row_names(names[[2]], "x_test", test$transposed, call = call)
    at <- match(names[[1]], names[[2]])
  }
  from <- setdiff(which(!is.na(at) & !at %in% test$skip), points$skip)
  list(x = from, x_test = at[from])
}

statistic_names <- c(
  "variance_explained", "mean_kme", "mean_correlation", "mean_adjacency",
  "cor_kim", "cor_kme", "cor_cor"
)

# Returns list(observed, null) of the core, as arrays [statistic, module,
# permutation]. `members` are positions in `common`.
measure_preservation <- function(members, common, reference, test, asked,
                                 options, call) {
  most <- max(lengths(members))
  num_common <- length(common$x_test)
  check_permutations_fit(
    asked$permutations, 4 * most + 4 * 56 * length(members), call
  )
  drawn <- vapply(seq_len(asked$permutations), function(at) {
    sample.int(num_common, most)
  }, integer(most))
  listed <- unlist(members)
  rows <- standard_rows(reference$values[common$x[listed], , drop = FALSE])
  places <- split(
    seq_along(listed), rep(seq_along(members), lengths(members))
  )
  found <- in_core(
    cpp_preserve_modules(
      t(rows), t(standard_rows(test$values[common$x_test, , drop = FALSE])),
      unname(places), unname(members), drawn, asked$type, asked$power,
      options$instruction_set %||% "auto", max(1L, options$num_threads),
      options$progress
    ),
    call
  )
  size <- c(length(statistic_names), length(members))
  list(
    observed = array(found$observed, size),
    null = array(found$null, c(size, asked$permutations))
  )
}

new_preservation <- function(measured, modules, facts) {
  each <- lapply(seq_len(nrow(modules)), function(at) {
    judge_preservation(
      measured$observed[, at],
      matrix(measured$null[, at, ], length(statistic_names))
    )
  })
  part <- function(what) vapply(each, function(one) one$summary[[what]], 0)
  for (what in names(each[[1]]$summary)) {
    modules[[what]] <- part(what)
  }
  modules$p_adjusted <- stats::p.adjust(modules$p_value, "holm")
  statistics <- data.frame(
    module = rep(modules$module, each = length(statistic_names)),
    statistic = statistic_names,
    do.call(rbind, lapply(each, `[[`, "statistics")), stringsAsFactors = FALSE
  )
  structure(
    c(list(modules = modules, statistics = statistics), facts),
    class = "fsknn_preservation"
  )
}

# Takes the seven statistics of a module, observed and [7 x permutations].
judge_preservation <- function(observed, null) {
  # A correlation of equal values has none.
  null[is.nan(null)] <- NA
  centre <- rowMeans(null, na.rm = TRUE)
  spread <- apply(null, 1, stats::sd, na.rm = TRUE)
  # Rounding leaves something of a spread of zero.
  spread[!is.na(spread) & spread < 1e-10 * (1 + abs(centre))] <- NA
  z <- (observed - centre) / spread
  density <- stats::median(z[1:4], na.rm = TRUE)
  connectivity <- stats::median(z[5:7], na.rm = TRUE)
  large <- function(observed, null) {
    permutation_p(
      sum(null >= observed - 1e-12, na.rm = TRUE), length(null)
    )
  }
  # The data are one of the sets by which all are standardised.
  all <- cbind(observed, null)
  all <- (all - rowMeans(all, na.rm = TRUE)) /
    apply(all, 1, stats::sd, na.rm = TRUE)
  summary <- colMeans(
    rbind(column_medians(all[1:4, ]), column_medians(all[5:7, ])), na.rm = TRUE
  )
  list(
    summary = c(
      z_summary = mean(c(density, connectivity), na.rm = TRUE),
      z_density = density, z_connectivity = connectivity,
      p_value = large(summary[[1]], summary[-1])
    ),
    statistics = data.frame(
      observed = observed, mean = centre, sd = spread, z = z,
      p_value = vapply(seq_along(observed), function(at) {
        p <- large(observed[[at]], null[at, ])
        if (is.na(observed[[at]])) NA_real_ else p
      }, 0)
    )
  )
}

# Returns the medians of the columns of three or four rows, without the missing.
column_medians <- function(values) {
  if (anyNA(values)) {
    return(apply(values, 2, stats::median, na.rm = TRUE))
  }
  rows <- lapply(seq_len(nrow(values)), function(row) values[row, ])
  (colSums(values) - do.call(pmin, rows) - do.call(pmax, rows)) /
    (nrow(values) - 2)
}

#' @method format fsknn_preservation
#' @export
format.fsknn_preservation <- function(x, ...) {
  c(
    paste0(
      "Preservation of ", tally(nrow(x$modules), "module"), ": ",
      tally(x$num_points, "common point"), ", ",
      format_count(x$num_samples[["x"]]), " and ",
      tally(x$num_samples[["x_test"]], "sample")
    ),
    paste0(
      tally(x$permutations, "permutation"), ", ", x$type, ", power ",
      format(x$power)
    ),
    if (length(x$left_out) > 0) {
      paste0(
        tally(length(x$left_out), "module"), " with too few common points: ",
        first_few(x$left_out)
      )
    }
  )
}

#' @export
print.fsknn_preservation <- function(x, ..., n = 10) {
  cat(format(x), sep = "\n")
  best <- utils::head(order(-x$modules$z_summary), n)
  print_some(x$modules[best, ], nrow(x$modules), "module")
  invisible(x)
}

#' @param what For `as.data.frame()`: `"modules"` (default) or `"statistics"`.
#' @param row.names,optional Not used: arguments of the generic.
#' @method as.data.frame fsknn_preservation
#' @rdname module_preservation
#' @order 2
#' @export
as.data.frame.fsknn_preservation <- function(x, row.names = NULL,
                                             optional = FALSE, ...,
                                             what = c("modules",
                                                      "statistics")) {
  check_no_more(...)
  check_unused(row.names, optional, c("modules", "statistics"))
  x[[check_choice(what, c("modules", "statistics"), "what")]]
}
