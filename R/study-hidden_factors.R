#' Hidden factors of the samples
#'
#' Finds the leading directions of the samples, such as a batch that nobody
#' recorded, and how many of them are more than chance. The result is given to
#' other functions as `adjust = `.
#'
#' @details
#' **Factors.** Each point is adjusted for a constant, for the covariates in
#' `adjust` and for `keep`, and scaled to length 1. The factors are the leading
#' eigenvectors of the samples x samples matrix of products of these rows. These
#' are the leading principal components of the samples. They have length 1 and
#' are orthogonal to each other, to the covariates and to `keep`. The points are
#' read once and in blocks, so they need not fit in memory.
#'
#' **More than chance.** Factors are tested by parallel analysis (Buja and
#' Eyuboglu 1992), one after another (deflation, see Dobriban and Owen 2019).
#' The statistic is the share of the leading factor in the variance that the
#' factors before it left.
#'
#' In each permutation, the
#' samples of each point's residuals are permuted independently. Then they are
#' adjusted anew for the covariates, for `keep` and for the factors before. The
#' factor is more than chance if the p-value (b + 1) / (B + 1) is at most 0.05.
#' If all points are independent and all samples have the same variance, some
#' factor is found with a probability of at most about 5%. Of more than
#' `r format_count(most_parallel_points)` points, so many are drawn at random
#' for this.
#'
#' A sample with a larger variance than the others, such as one of poor quality,
#' is a direction, too. A message (class `fsknn_factor_of_sample`) says so if
#' one sample has half of a factor's sum of squares or more. Adjustment for it
#' nearly removes this sample.
#'
#' **Number of factors.** Modules of correlated points are more than chance,
#' too. `num = "permutation"` takes all factors up to the first one that is not
#' more than chance, and so removes modules. `num = "dominant"` (default) also
#' ends at the first factor that does not dominate.
#'
#' A dominant factor explains at least twice as much variance as the next
#' direction. It does so of all points, and also of the three quarters of the
#' points that follow it least. (These are chosen anew for the next direction.)
#' A strong batch that many points follow is dominant. Several modules of
#' similar size are not, and neither is a module of few points.
#'
#' Ahn and Horenstein (2013) count factors by the largest ratio of neighbouring
#' eigenvalues. The limit of 2 and the three quarters are ours. They were chosen
#' on simulated data like those below.
#'
#' **Keeping an outcome.** Factors contain each effect that many points share,
#' also that of an outcome. `keep` protects it: factors are then estimated from
#' residuals of the outcome, as in the first step of SVA's two-step algorithm
#' (Leek and Storey 2007). They are orthogonal to the outcome, so adjustment
#' does not remove its linear effect. It cannot remove the part of a batch that
#' is correlated with the outcome, either. SVA's second step, which would look
#' for this part among points without the outcome's effect, is not done.
#'
#' **P-values.** Factors that protect an outcome depend on it. They are chosen
#' to reduce the residuals of each point as far as possible without reducing its
#' correlation with the outcome. So p-values of that outcome would be too small.
#' `inst/bench/calibration_factors.R` shows by how much. [nearest_to()],
#' [module_summary()] and [compare_neighbours()] refuse to compute p-values with
#' such factors.
#'
#' Columns of the result remember that they
#' protect an outcome, also in another data frame or a formula. As a plain
#' matrix ([as.matrix()]) they do not.
#'
#' Without `keep`, factors are computed from the points alone. P-values of
#' [nearest_to()] with `adjust = ` are then valid if the outcome is independent
#' of *all* points. If many points follow the outcome, a factor may mix it with
#' a batch. Adjustment then removes the outcome from points that follow it, and
#' gives the others a correlation with it. In the simulation with 80 such points
#' of 120, `num = 1` leads to a false call in 78% of 100 data sets.
#'
#' @section When it hurts:
#' The figures are means over 1,000 simulated data sets of 120 points in 40
#' samples (`inst/bench/calibration_factors.R`, the article "calibration" of the
#' site). Those of modules of half or a quarter of the points are over 100.
#' Precision is the share of the nearest pairs that are within a module.
#'
#' * Modules are leading directions, too. Adjustment for a module removes it.
#'   With a batch of half of the points and four modules of 10, precision is
#'   0.35 without adjustment. It is 0.77 with dominant factors, 0.10 with those
#'   by permutation, and 0.79 with the true batch. Without a batch, it is 0.79
#'   without adjustment and with dominant factors (there are none), 0.55 with
#'   `num = 1` and 0.07 by permutation.
#' * A module that most points form looks like a batch. One of half of the
#'   points is removed (0.94 becomes 0.23). One of a quarter was dominant in 9%
#'   of data sets. Give `clusters`. It reports the share of each module's
#'   variance that the factors explain, and calls a module lost if it is half or
#'   more.
#' * A weak batch, one that few points follow, and two batches of similar
#'   strength are not dominant, and stay in the data. Neither is a batch of
#'   several levels, which has several directions. `num = "permutation"` returns
#'   all of them in `tested`. If `times_all` is large for one of the first few
#'   and not after it, give its place as `num`.
#' * Data with many directions, such as those of tissues. In the leukaemias of
#'   `vignette("significance")`, none is dominant.
#' * A sample of larger variance is a factor, which is dominant from some four
#'   times the variance of the others on: see above.
#' * An outcome with an effect on many points, without `keep`: see above.
#' * Cell types, ages or stages that many points reflect. They are factors,
#'   whether they are of interest or not.
#' * Each factor takes a degree of freedom. With few samples, correlations of
#'   unrelated points become larger.
#' * A recorded batch is usually better than an estimate. Give it as `adjust`
#'   itself.
#'
#' @param x The points, as for [knn_search()]: a matrix, a container,
#'   [metafeatures()], or data that are read by blocks.
#' @param keep `NULL` (default), or an outcome of the samples that must be kept,
#'   or several in a data frame or a list with names. They are numbers, logical
#'   values, factors or text of any number of levels, or survival times. They
#'   must not have missing values. See [nearest_to()] for the order and the
#'   names.
#' @param num `"dominant"` (default), `"permutation"`, or the number of factors:
#'   see "Number of factors" in Details.
#' @param permutations Number of permutations for each factor, 49 by default.
#'   Fewer than 19 cannot reach a p-value of 0.05.
#' @param clusters `NULL` (default), or the module of each point, as for
#'   [module_summary()], to report how much of each module the factors explain.
#' @param ... [Point options][point_options()] and [run options][run_options()],
#'   by name, or collected as `options = `. `adjust` and `data` are known
#'   covariates, for which points are adjusted first. Give the result and these
#'   covariates together in later calls. `na = "mean"` replaces a missing value
#'   by the mean of its row. Constant points, and points that the covariates
#'   explain, do not count.
#'
#' @returns A data frame of class `fsknn_factors`. It has a row for each sample,
#'   in the order of the samples and with their names. It has a column for each
#'   factor, `factor1` and so on. It has no columns if no factor was found. Its
#'   sign is that for which the largest entry is positive. Attributes:
#'   * `share`: the proportion of the variance that each factor explains, of
#'     points that were adjusted for the covariates and `keep`;
#'   * `tested`: a data frame with a row for each direction that was tested. The
#'     last one is that of the first direction that does not count, if there is
#'     one. `p_value` is that of the parallel analysis. `times_all` and
#'     `times_most` are its variance divided by that of the next direction, of
#'     all points and of the three quarters that follow it least. `NULL` for a
#'     given number;
#'   * `num_points`: the number of points that count;
#'   * `keep`: the names of the kept outcomes, or `NULL`;
#'   * `modules`, with `clusters`: a data frame of `module`, `size`, `explained`
#'     and `lost`. `explained` is the mean share of its points' variance that
#'     the factors explain, and a module is lost from 0.5 on.
#' @inheritSection knn_search Errors
#' @references
#' Ahn SC, Horenstein AR (2013). Eigenvalue ratio test for the number of
#' factors. *Econometrica* 81(3): 1203-1227. \doi{10.3982/ECTA8968}
#'
#' Buja A, Eyuboglu N (1992). Remarks on parallel analysis. *Multivariate
#' Behavioral Research* 27(4): 509-540. \doi{10.1207/s15327906mbr2704_2}
#'
#' Dobriban E, Owen AB (2019). Deterministic parallel analysis: an improved
#' method for selecting factors and principal components. *Journal of the Royal
#' Statistical Society B* 81(1): 163-183. \doi{10.1111/rssb.12301}
#'
#' Leek JT, Storey JD (2007). Capturing heterogeneity in gene expression studies
#' by surrogate variable analysis. *PLoS Genetics* 3(9): e161.
#' \doi{10.1371/journal.pgen.0030161}
#' @seealso [point_options()] for `adjust`.
#' @export
#' @examples
#' # A batch that nobody recorded shifts half of the points
#' x <- matrix(rnorm(200 * 30), 200)
#' batch <- rep(0:1, each = 15)
#' x[1:100, ] <- x[1:100, ] + outer(rnorm(100), batch) * 3
#'
#' set.seed(1)
#' factors <- hidden_factors(x)
#' factors
#' cor(factors$factor1, batch)
#'
#' # Edges without it
#' edges <- knn_graph(x, k = 3, adjust = factors)
hidden_factors <- function(x, keep = NULL, num = "dominant", ...,
                           permutations = 49, clusters = NULL) {
  check_supplied(x)
  is_given <- !rlang::is_string(num) || !num %in% c("dominant", "permutation")
  permutations <- check_permutations(permutations) %||% 49L
  options <- verb_options("hidden_factors", ...)
  points <- take_points(x, options$input)
  check_num_features(
    ncol(points$values), options$metric, "x", points$transposed
  )
  tell_if_counts(x, points, options$metric)
  if (!is.null(clusters)) {
    points$names <- point_names(points)
    membership <- check_membership(clusters, points)
    modules <- modules_of(membership, 1)
  }
  known <- known_directions(x, points, keep, options, current_env())
  num_samples <- ncol(points$values)
  most <- num_samples - ncol(known$basis)
  if (is_given) {
    num <- check_num_factors(num, most)
  }
  products <- sum_products(points, known$basis, options, current_env())
  tested <- NULL
  if (!is_given) {
    tested <- parallel_analysis(
      points, known$basis, num == "dominant", permutations, options,
      current_env()
    )
    num <- sum(tested$counts)
  }
  factors <- leading_factors(products$gram, num)
  tell_factors_of_samples(factors$vectors, points)
  new_factors(
    factors, points,
    list(
      tested = tested[c("p_value", "times_all", "times_most")],
      num_points = products$num_points,
      keep = known$kept,
      modules = if (!is.null(clusters)) {
        explained_modules(
          modules, points, known$basis, factors$vectors, options, current_env()
        )
      }
    )
  )
}

# Parallel analysis of more points would take longer and tell little more.
most_parallel_points <- 1000L

# A dominant factor explains so many times the variance of the next direction,
# of all points and of this share of the points, those that follow it least.
least_dominance <- 2
share_of_most <- 0.75

check_num_factors <- function(num, most, call = caller_env()) {
  if (!is_whole(num)) {
    given <- describe_value(num)
    abort_argument(
      "{.arg num} must be \"dominant\", \"permutation\" or the number of
       factors, not {given}.",
      call
    )
  }
  check_whole_number(
    num, "num", 1, most,
    hint = "The samples have no more directions that are orthogonal to the
            covariates and to {.arg keep}.",
    call = call
  )
}

# --- covariates and outcomes -------------------------------------------------

# Returns list(basis, kept). `basis` has orthonormal columns: the constant, the
# covariates and the kept outcomes. `kept` are the names of these, or NULL.
known_directions <- function(x, points, keep, options, call) {
  num_samples <- ncol(points$values)
  search <- list(points = points, options = options)
  design <- fit_covariates(search, x, NULL, call = call)$values
  kept <- NULL
  if (!is.null(keep)) {
    outcomes <- outcomes_given(keep, x, search, call)
    kept <- names(outcomes)
    if (identical(kept, "outcome")) kept <- "keep"
    design <- cbind(design, do.call(cbind, Map(function(values, label) {
      kept_design(values, label, points, call)
    }, unname(outcomes), kept)))
  }
  parts <- qr(cbind(rep(1, num_samples), design), tol = 1e-7)
  if (parts$rank >= num_samples) {
    abort_argument(
      c(
        "{.arg adjust} and {.arg keep} must leave something of the points.",
        x = "They explain any values of {tally(num_samples, 'sample')}."
      ),
      call
    )
  }
  list(
    basis = qr.Q(parts)[, seq_len(parts$rank), drop = FALSE], kept = kept
  )
}

# Returns the columns of an outcome: one for numbers, and an indicator of each
# level but the first.
kept_design <- function(values, label, points, call) {
  arg <- if (label == "keep") label else paste0("keep$", label)
  check_outcome_type(values, arg, call, levels = "any number of")
  values <- match_names(values, points$features, arg, "features", call)
  check_outcome_fits(values, arg, list(points = points), call)
  if (inherits(values, "Surv")) {
    values <- martingale_residuals(values, arg, call = call)
  }
  if (is_text(values) || is.logical(values)) {
    values <- levels_of(values)
  }
  bad <- which(if (is.factor(values)) is.na(values) else !is.finite(values))
  if (length(bad) > 0) {
    abort_argument(
      c(
        "{.arg {arg}} must not be missing or infinite.",
        x = "{tally(length(bad), 'sample')}: {first_few(bad)}."
      ),
      call
    )
  }
  frame <- structure(
    list(values = as_covariate(values, arg, call)),
    row.names = .set_row_names(length(values)), class = "data.frame"
  )
  design_of_frame(
    list(frame = frame, terms = stats::terms(~ values)), FALSE,
    seq_along(values)
  )
}

# --- the samples' products ---------------------------------------------------

# Returns rows of the points, adjusted for the basis and scaled to length 1.
# Rows that are constant, or that it explains, are left out.
adjusted_rows <- function(points, rows, basis, options, call) {
  values <- rows_off_basis(points, rows, basis, options, call)
  values[!is.na(values[, 1]), , drop = FALSE]
}

# The same, but the rows to be left out are NA. `change` is a function of rows,
# which is applied before.
rows_off_basis <- function(points, rows, basis, options, call,
                           change = identity) {
  values <- points$values
  values <- if (is_metafeatures(values)) {
    # Infinite ones are left out, as in a search.
    cpp_metafeature_rows(keep_metafeatures(values, rows))
  } else {
    from <- if (is_row_file(values)) points$blocks else values
    tile <- read_tile(from, rows, seq_len(ncol(from)), "x", call)
    filled_rows(tile, rows, points, options, call)
  }
  storage.mode(values) <- "double"
  values <- off_basis(change(values / unit_of_rows(values)), basis)
  length <- sqrt(rowSums(values^2))
  # Rounding leaves something of rows that are explained.
  length[!is.finite(length) | length <= 1e-10] <- NA
  values / length
}

# Fills in missing values by the mean of their row, or raises an error.
filled_rows <- function(values, rows, points, options, call) {
  wrong <- if (options$na == "mean") is.infinite(values) else !is.finite(values)
  if (any(wrong)) {
    at <- rows[[which(rowSums(wrong) > 0)[[1]]]]
    abort_argument(
      c(
        "{.arg x} must have no missing or infinite values.",
        x = "The first is in {point_side(points)} {at}.",
        i = if (options$na != "mean" && !any(is.infinite(values))) {
          "Use {.code na = \"mean\"}, or fill them in."
        }
      ),
      call
    )
  }
  if (anyNA(values)) {
    missing <- which(is.na(values), arr.ind = TRUE)
    values[missing] <- rowMeans(values, na.rm = TRUE)[missing[, 1]]
  }
  values
}

off_basis <- function(values, basis) {
  values - tcrossprod(values %*% basis, basis)
}

sum_products <- function(points, basis, options, call) {
  size <- dim(points$values)
  gram <- matrix(0, size[[2]], size[[2]])
  num_points <- 0
  at_once <- max(1, floor(tile_bytes(max_memory_of(options)) / 8 / size[[2]]))
  ranges <- row_ranges(size[[1]], at_once)
  bar <- new_split_bar(options$progress, length(ranges), "Products")
  on.exit(end_bar(bar))
  for (rows in ranges) {
    values <- adjusted_rows(points, rows, basis, options, call)
    gram <- gram + crossprod(values)
    num_points <- num_points + nrow(values)
    step_bar(bar, 1)
  }
  if (num_points == 0) {
    abort_argument(
      "{.arg x} must have a point that is neither constant nor explained by the
       covariates.",
      call
    )
  }
  list(gram = gram, num_points = num_points)
}

leading_factors <- function(gram, num) {
  parts <- eigen(gram, symmetric = TRUE)
  vectors <- parts$vectors[, seq_len(num), drop = FALSE]
  largest <- apply(vectors, 2, function(vector) vector[which.max(abs(vector))])
  list(
    vectors = vectors * rep(sign(largest), each = nrow(vectors)),
    share = (parts$values / sum(diag(gram)))[seq_len(num)]
  )
}

# A sample that varies more than the others is a direction of its own. No batch
# has so much of its sum of squares in one sample.
tell_factors_of_samples <- function(vectors, points) {
  at <- which(vectors^2 >= 0.5, arr.ind = TRUE)
  if (length(at) == 0) {
    return(invisible())
  }
  names <- real_names(points$features) %||% seq_len(nrow(vectors))
  pairs <- paste0("factor", at[, 2], " (sample ", names[at[, 1]], ")")
  cli::cli_inform(
    c(
      "{cli::qty(length(pairs))}{?A factor is/Factors are} mostly one sample:
       {first_few(pairs)}.",
      i = "Such a sample varies more than the others. Check its quality, or
           leave it out. Adjustment nearly removes it."
    ),
    class = "fsknn_factor_of_sample"
  )
}

# --- parallel analysis -------------------------------------------------------

# Returns a row for each direction up to the first that does not count.
parallel_analysis <- function(points, basis, must_dominate, permutations,
                              options, call) {
  rows <- seq_len(nrow(points$values))
  if (length(rows) > most_parallel_points) {
    rows <- sort(sample.int(length(rows), most_parallel_points))
  }
  values <- adjusted_rows(points, rows, basis, options, call)
  tested <- list()
  counts <- TRUE
  while (counts && ncol(basis) < ncol(values) - 1) {
    left <- off_basis(values, basis)
    gram <- crossprod(left)
    observed <- eigen(gram, symmetric = TRUE)
    share <- observed$values[[1]] / sum(diag(gram))
    larger <- sum(replicate(permutations, {
      permuted <- crossprod(off_basis(permute_within_points(left), basis))
      values <- eigen(permuted, symmetric = TRUE, only.values = TRUE)$values
      values[[1]] / sum(diag(permuted)) >= share - 1e-12
    }))
    p_value <- permutation_p(larger, permutations)
    times <- dominance(left, observed)
    counts <- p_value <= 0.05 &&
      (!must_dominate || isTRUE(min(times) >= least_dominance))
    tested <- c(tested, list(data.frame(
      p_value = p_value, times_all = times[[1]], times_most = times[[2]],
      counts = counts
    )))
    basis <- cbind(basis, observed$vectors[, 1])
  }
  do.call(rbind, tested)
}

# Returns the variance that the first direction explains divided by that of the
# second one, of all rows and of those that follow each direction least.
dominance <- function(rows, directions) {
  explained <- (rows %*% directions$vectors[, 1:2])^2
  least <- seq_len(ceiling(share_of_most * nrow(rows)))
  of_most <- colSums(apply(explained, 2, sort)[least, , drop = FALSE])
  c(sum(explained[, 1]), of_most[[1]]) / c(sum(explained[, 2]), of_most[[2]])
}

# --- the answer --------------------------------------------------------------

# Returns how much of each module's points the factors explain.
explained_modules <- function(modules, points, basis, factors, options, call) {
  explained <- vapply(modules$members, function(rows) {
    values <- adjusted_rows(points, rows, basis, options, call)
    mean(rowSums((values %*% factors)^2))
  }, 0)
  data.frame(
    module = modules$module, size = lengths(modules$members),
    explained = explained, lost = explained >= 0.5, stringsAsFactors = FALSE
  )
}

new_factors <- function(factors, points, facts) {
  num <- ncol(factors$vectors)
  columns <- lapply(seq_len(num), function(at) {
    values <- factors$vectors[, at]
    if (is.null(facts$keep)) values else new_protecting(values)
  })
  names(columns) <- sprintf("factor%d", seq_len(num))
  names <- real_names(points$features)
  structure(
    columns, row.names = names %||% .set_row_names(nrow(factors$vectors)),
    class = c("fsknn_factors", "data.frame"), share = factors$share,
    tested = facts$tested, num_points = facts$num_points, keep = facts$keep,
    modules = facts$modules
  )
}

# Values of a factor that protects an outcome. They keep their class in data
# frames and formulas.
new_protecting <- function(values) {
  structure(values, class = c("fsknn_protecting", "numeric"))
}

#' @export
`[.fsknn_protecting` <- function(x, ...) {
  new_protecting(NextMethod())
}

#' @method format fsknn_protecting
#' @export
format.fsknn_protecting <- function(x, ...) {
  format(as.double(x), ...)
}

#' @export
print.fsknn_protecting <- function(x, ...) {
  print(as.double(x), ...)
  invisible(x)
}

# Refuses p-values of outcomes with such factors among the covariates.
check_not_protecting <- function(covariates, call) {
  protecting <- covariates$protecting
  if (length(protecting) == 0) {
    return(invisible())
  }
  abort_argument(
    c(
      "{.arg adjust} must not have factors that protect an outcome where
       p-values are computed.",
      x = "{.fn hidden_factors} made {.code {protecting}} with {.arg keep}.
           P-values would be too small.",
      i = "Use factors without {.arg keep}, or leave out the p-values
           ({.code permutations = NULL})."
    ),
    call
  )
}

#' @method format fsknn_factors
#' @export
format.fsknn_factors <- function(x, ...) {
  tested <- attr(x, "tested")
  share <- attr(x, "share")
  modules <- attr(x, "modules")
  c(
    paste0(
      tally(ncol(x), "hidden factor"), " of ", tally(nrow(x), "sample"), ", ",
      tally(attr(x, "num_points"), "point")
    ),
    if (length(share) > 0) {
      paste0(
        "Share of variance: ",
        first_few(vapply(share, format_share, ""), limit = 6)
      )
    },
    if (!is.null(tested)) {
      times <- pmin(tested$times_all, tested$times_most)
      paste0(
        "Tested: ",
        first_few(paste0(
          "p = ", signif(tested$p_value, 2), " (", signif(times, 2),
          " times the next)"
        ))
      )
    },
    if (!is.null(attr(x, "keep"))) {
      paste0("Kept: ", first_few(attr(x, "keep")), " (no p-values)")
    },
    if (any(modules$lost)) {
      lost <- modules$module[modules$lost]
      paste0(tally(length(lost), "module"), " lost: ", first_few(lost))
    }
  )
}

#' @export
print.fsknn_factors <- function(x, ..., n = 6) {
  cat(format(x), sep = "\n")
  if (ncol(x) > 0) {
    print_some(utils::head(as.data.frame(x), n), nrow(x), "sample")
  }
  invisible(x)
}

# data.frame() calls this method, too, and passes further arguments.
#' @method as.data.frame fsknn_factors
#' @export
as.data.frame.fsknn_factors <- function(x, row.names = NULL, optional = FALSE,
                                        ...) {
  check_unused(row.names, optional)
  attributes(x) <- c(
    attributes(x)[c("names", "row.names")], class = "data.frame"
  )
  x
}
