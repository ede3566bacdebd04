#' Distance metrics
#'
#' Values of the argument `metric` of [knn_search()] and other functions.
#'
#' `r metric_help()`
#'
#' `vignette("fsknn")` explains which metric suits which question,
#' `vignette("proofs")` how each is computed, and `vignette("extending")` how to
#' add another.
#'
#' @section Data of 0 and 1:
#' If all values are 0 or 1, one bit for each is sufficient for `"jaccard"`,
#' `"sorensen"`, `"proportional"`, `"manhattan"` and `"euclidean"`. Counting the
#' common ones is exact, and about four times faster than comparing numbers.
#' This is detected in the data and needs no argument. The answers are the same.
#' GPUs of compute capability 8.0 or higher count bits under `"jaccard"` and
#' `"sorensen"`, whose data are always 0 and 1.
#'
#' @section Proportional Similarity, Sorensen and Jaccard:
#' The similarity of two rows is the double 2 sum(min(a, b)) / sum(a + b), or
#' sum(a & b) / sum(a | b) for Jaccard. This quotient is rounded once, and the
#' distance is 1 - similarity. Below a similarity of 1/2 the distance has lost
#' its last bits.
#'
#' So edges ([knn_graph()], [threshold_graph()], [mst_knn()], [mutual_pairs()])
#' have both columns, and [as_igraph()], [as_sparse()] and [write_edges()] use
#' the column `similarity`. Neighbours in other shapes ([knn_search()],
#' [read_knn()]) have distances only. Their similarity is 1 - distance, which
#' differs by at most 5.6e-17.
#'
#' @section Tables of alleles:
#' `"ccc"` is the custom correlation coefficient of two loci (Climer et al.
#' 2014). `"duo"` is its form for rows of 0 and 1. Both are metrics of CoMet
#' (Joubert et al. 2019). The formulas, constants and order of operations are
#' CoMet's, so entries have the bits of its double precision. A similarity that
#' only rounding makes more than 1 is 1.
#'
#' A row holds the genotypes of one locus in d samples: the number of copies of
#' an allele, which is the *counted* allele. A sample has C = 2 alleles at a
#' locus (`"duo"`: C = 1). Combining each with each of another locus gives C^2
#' pairs of alleles. A pair has both counted alleles, one of them (in two ways),
#' or none. The table of two loci has the share f_ij of each of these four kinds
#' among all C^2 d pairs. An entry is
#'
#' multiplier * f_ij * (1 - parameter * f_i) * (1 - parameter * f_j),
#'
#' with f_i and f_j the frequencies of its two alleles. So rare alleles that go
#' together have large entries. The constants are 9/2 and 2/3 (`"duo"`: 4 and
#' 2/3), unless [point_options()] has others (`allele_table`).
#'
#' The similarity of two rows is the largest of the four entries, and the
#' distance is 1 - similarity. With the default constants, the similarity is at
#' most 1 (`"duo"`: 8/9). It is 1 for two loci with the same alleles of
#' frequency 1/2, if all samples are homozygous. Equal rows need not have the
#' largest similarity, so a point need not be nearest to itself. With a larger
#' multiplier, similarities may be above 1 and distances below 0, as for
#' `"inner_product"`.
#'
#' Edges ([knn_graph()], [threshold_graph()]) have the similarity and the column
#' `alleles`, which tells the entry. `"11"` is both counted alleles, `"10"` the
#' counted allele of `from` with the other one of `to`, and so on. Of equal
#' entries, it is the first of `"00"`, `"01"`, `"10"`, `"11"`.
#'
#' **Three loci** ([threshold_triples()], [nearest_triples()],
#' [triple_histogram()]). A sample has C^3 triples of alleles, one of each
#' locus. The table has the share f_ijk of each of eight kinds among all C^3 d.
#' An entry is
#'
#' multiplier * f_ijk * (1 - parameter * f_i) * (1 - parameter * f_j) *
#' (1 - parameter * f_k),
#'
#' with the same constants as that of two loci, as in CoMet (`src/formulas.hh`).
#' The weight of the smallest frequency is multiplied first, that of the largest
#' last. So the order of the loci changes no bit. With the default constants, a
#' similarity of three is at most 0.712 (`"duo"`: 0.633). It is largest for
#' three loci with the same alleles of frequency 3/8, if all samples are
#' homozygous. Of equal entries, `alleles` is the first of `"000"`, `"001"`,
#' and so on to `"111"`.
#'
#' **Missing genotypes** are an error, unless pairs are compared with `na =
#' "pairwise"`. A table then counts the pairs of alleles of the samples that
#' both loci have. The frequencies f_i and f_j are those of all samples of each
#' locus, as in CoMet (`--sparse`). They may differ from those of the common
#' samples. So similarities may be above 1, and distances below 0. Such searches
#' run on the CPU.
#'
#' @section Inner product:
#' The distance of `"inner_product"` is minus the sum of the products of the two
#' rows' values. The nearest rows are those with the largest product, for
#' instance long rows in the same direction. The distance is below 0 for most
#' neighbours and has no lower bound. A row of zeros is at distance 0 from all
#' rows. Products beyond the range of a double are a `fsknn_range_error`.
#'
#' A point need not be the nearest to itself. [knn_search()] and other functions
#' exclude a point from its own neighbours by its number, as they always do, and
#' never by a distance.
#'
#' [within_search()] and [within_query()] take limits below 0 for it:
#' `distance = -5` finds the pairs whose product is at least 5. There is no
#' `sign`, and no `weights` (multiply the columns by their square roots).
#'
#' Functions that use a distance as a length, or convert it to a similarity,
#' refuse:
#' * [mst_knn()] of a matrix and [FsknnParam()] refuse the metric;
#' * [spanning_forest()], [mst_knn()] of a graph, [plot_neighbourhood()] and
#'   [knn_recall()] distances below 0;
#' * [threshold_graph()], and `"similarity"` in [as_igraph()], [as_sparse()] and
#'   [write_edges()], the metric, as it has no similarity;
#' * [as_igraph()] with `weight = "distance"` weights that are not positive;
#' * [as_knn()] the shapes in which a point is its own first neighbour at
#'   distance 0 (`"uwot"`, `"rnndescent"`, `"RANN"`, `"Seurat"`).
#'
#' [snn_graph()], [undirected_edges()] and [combine_graphs()] use only the
#' indices of neighbours, and accept the metric.
#'
#' @section Ties of ranks:
#' Under `"spearman"`, r is computed from whole numbers: twice the ranks, minus
#' d + 1 for d samples. Their sums are exact up to some 300,000 samples (some
#' 100,000 with `na = "pairwise"`). So pairs of rows without ties and with
#' mathematically equal r are at the same distance, in any order of the samples.
#' The lower row number then comes first. Rows with equal ranks are at distance
#' 0.
#'
#' Rows with other patterns of ties may differ in the last bit although r is
#' mathematically equal. With more samples, and with `weights` or `adjust`, sums
#' are rounded. Rounding may then decide which of such pairs is nearer.
#'
#' @section Values of any magnitude:
#' One huge value does not change the distances of the other points. Errors are
#' bounded for any finite data:
#' * `"euclidean"`, `"manhattan"` and `"chebyshev"` distances have a relative
#'   error of at most 1e-12 (up to 60,000 features).
#' * The error of an `"inner_product"` is at most 1e-12 of the sum of the
#'   absolute values of its products.
#' * A `"proportional"` similarity has a relative error of at most 1e-12 (up to
#'   23,000 features). That of three rows ([threshold_triples()],
#'   [nearest_triples()], [triple_histogram()]) has an absolute error of at most
#'   2e-12.
#'
#' A distance or similarity below 2.2e-308 is subnormal and has fewer digits. If
#' the data have an entry of 2 or more, so has a Euclidean distance below
#' sqrt(d) * 1.4e-309. (That limit is the larger one from 257 features on.) A
#' distance above 1.8e308 is a `fsknn_range_error` if it is among the nearest.
#'
#' Data with very large entries are compared pair by pair, without a filter,
#' which is slower. The limits are 1.5e48 (`"euclidean"`), 2.6e120
#' (`"inner_product"`) and 2e295 (`"manhattan"`, `"chebyshev"`,
#' `"proportional"`). The triples of such data are compared one by one, on the
#' CPU.
#'
#' With `na = "pairwise"`, all of this holds for the features that two rows have
#' in common. A huge value that the other row lacks does not reduce the accuracy
#' of their distance or correlation.
#'
#' @section Over common features:
#' With `na = "pairwise"`, a pair is compared over the m of the d features that
#' both rows have. Correlations (`"pearson"`, `"spearman"`) are those of these
#' features. Sums of differences are scaled to all d features: `"euclidean"` is
#' `sqrt(d / m * sum((a - b)^2))` and `"manhattan"` is `d / m * sum(|a - b|)`.
#' So a pair without missing values has its usual distance. Distances of pairs
#' with few and with many common features are comparable.
#'
#' For `"ccc"` and `"duo"` see "Tables of alleles". The other metrics have no
#' such form.
#' @references
#' Climer S, Yang W, de las Fuentes L, Davila-Roman VG, Gu CC (2014). A Custom
#' Correlation Coefficient (CCC) Approach for Fast Identification of Multi-SNP
#' Association Patterns in Genome-Wide SNPs Data. *Genetic Epidemiology* 38:
#' 610-621. \doi{10.1002/gepi.21833}
#'
#' Joubert W, Nance J, Climer S, Weighill D, Jacobson D (2019). Parallel
#' Accelerated Custom Correlation Coefficient Calculations for Genomics
#' Applications. *Parallel Computing* 84: 15-23.
#' \doi{10.48550/arXiv.1705.08213}
#' @seealso [knn_search()]
#' @name metrics
#' @examples
#' x <- matrix(rnorm(200 * 12), nrow = 200)
#' nn <- knn_search(x, k = 3, metric = "inner_product")
#' head(nn$distance)
#' -sum(x[1, ] * x[nn$index[1, 1], ])
#' lengths(within_search(x, -10, metric = "inner_product")$index)[1:10]
NULL

# The only place in R that knows the metrics. A new metric is one row here, one
# place in src/core, its definition in R/search-by_definition.R, and NEWS.
#
#   name            name for the user and for the core
#   label           for messages and print methods
#   has_sign        it has "absolute" and "negative" forms
#   distance        the formula as documented, for people
#   similarity      similarity of as_igraph(): "correlation" (r, |r| or -r as
#                   `sign` says), "complement" (1 - distance), "reciprocal" (of
#                   1 + distance) or "none"
#   undefined_rows  rows for which the metric has no value: "constant", "zero"
#                   or "none"
#   non_negative    all entries must be at least 0
#   levels          entries must be whole numbers from 0 to this (1: FALSE or
#                   TRUE, too); 0: any numbers
#   table           the metric is the largest entry of a table of alleles
#   takes_weights   samples can be weighted
#   takes_covariates  rows can be adjusted for covariates of the samples
#   pairwise        it is defined over the samples that two rows have in
#                   common, as `na = "pairwise"` needs
#   below_zero      distances can be below 0, so they are not lengths
#   own_similarity  edges store the similarity beside the distance, because
#                   1 - distance has lost its last bits
#   synonyms        other names, separated by spaces; only for "Did you mean"
metric_row <- function(name, label, has_sign, distance, similarity,
                       undefined_rows = "none", non_negative = FALSE,
                       levels = 0, table = FALSE, takes_weights = FALSE,
                       takes_covariates = takes_weights, pairwise = FALSE,
                       below_zero = FALSE, own_similarity = FALSE,
                       synonyms = "") {
  data.frame(
    name, label, has_sign, distance, similarity, undefined_rows, non_negative,
    levels, table, takes_weights, takes_covariates, pairwise, below_zero,
    own_similarity, synonyms
  )
}

known_metrics <- rbind(
  metric_row("pearson", "Pearson correlation", TRUE, "1 - r",
             "correlation", undefined_rows = "constant", takes_weights = TRUE,
             pairwise = TRUE, synonyms = "cor correlation"),
  metric_row("spearman", "Spearman correlation", TRUE,
             "1 - r of the average ranks", "correlation",
             undefined_rows = "constant", takes_weights = TRUE,
             pairwise = TRUE),
  metric_row("bicor", "biweight midcorrelation", TRUE, "1 - r",
             "correlation", undefined_rows = "constant",
             synonyms = "biweight bimidcor midcorrelation"),
  metric_row("cosine", "cosine", FALSE, "1 - cos(a, b)",
             "complement", undefined_rows = "zero"),
  metric_row("euclidean", "Euclidean", FALSE, "sqrt(sum((a - b)^2))",
             "reciprocal", pairwise = TRUE, synonyms = "l2"),
  metric_row("inner_product", "inner product", FALSE, "-sum(a b)", "none",
             below_zero = TRUE,
             synonyms = "inner innerproduct inner-product ip dot dot_product"),
  metric_row("manhattan", "Manhattan", FALSE, "sum(|a - b|)",
             "reciprocal", pairwise = TRUE, synonyms = "l1 cityblock taxicab"),
  metric_row("chebyshev", "Chebyshev", FALSE, "max(|a - b|)",
             "reciprocal", synonyms = "maximum max supremum linf"),
  metric_row("canberra", "Canberra", FALSE,
             "sum(|a - b| / (|a| + |b|)), 0 / 0 being 0", "reciprocal"),
  metric_row("proportional",
             "Proportional Similarity (Czekanowski; Bray-Curtis)", FALSE,
             "1 - 2 sum(min(a, b)) / sum(a + b)",
             "complement", undefined_rows = "zero", non_negative = TRUE,
             own_similarity = TRUE,
             synonyms = "bray braycurtis bray-curtis czekanowski"),
  metric_row("jaccard", "Jaccard", FALSE, "1 - sum(a & b) / sum(a | b)",
             "complement", undefined_rows = "zero", levels = 1,
             own_similarity = TRUE, synonyms = "binary"),
  metric_row("sorensen", "Sorensen (Dice)", FALSE,
             "1 - 2 sum(a & b) / (sum(a) + sum(b))",
             "complement", undefined_rows = "zero", levels = 1,
             own_similarity = TRUE, synonyms = "dice sorensen-dice"),
  metric_row("ccc", "custom correlation coefficient of alleles (CCC)", FALSE,
             "1 - the largest entry of the table of alleles", "complement",
             pairwise = TRUE, levels = 2, table = TRUE, own_similarity = TRUE,
             synonyms = "custom customcorrelation"),
  metric_row("duo", "CCC of one allele a sample (DUO)", FALSE,
             "1 - the largest entry of the table of alleles", "complement",
             pairwise = TRUE, levels = 1, table = TRUE, own_similarity = TRUE)
)

metric_table <- function() {
  known_metrics
}

# The constants of a metric of allele tables: CoMet's defaults. NULL for others.
default_allele_table <- function(metric) {
  switch(
    metric,
    ccc = c(multiplier = 9 / 2, parameter = 2 / 3),
    duo = c(multiplier = 4, parameter = 2 / 3)
  )
}

# Checks the option `allele_table` of a metric (see metric_facts()). Returns the
# constants, or NULL if they are the metric's own.
check_allele_table <- function(given, metric, call = caller_env()) {
  if (is.null(given)) {
    return(NULL)
  }
  if (!metric$table) {
    able <- metrics_with("table")
    abort_argument(
      c(
        "{.arg allele_table} can't be used with metric {.val {metric$name}}.",
        i = "It is for {able}."
      ),
      call
    )
  }
  constants <- default_allele_table(metric$name)
  known <- is.numeric(given) && length(given) > 0 &&
    all(rlang::names2(given) %in% names(constants)) &&
    anyDuplicated(names(given)) == 0
  if (!known) {
    abort_argument(
      c(
        "{.arg allele_table} must be numbers with the names
         {.val multiplier}, {.val parameter} or both.",
        x = "It is {describe_value(given)}."
      ),
      call
    )
  }
  constants[names(given)] <- given
  multiplier <- constants[["multiplier"]]
  parameter <- constants[["parameter"]]
  if (is.na(multiplier) || multiplier < 1e-100 || multiplier > 1e100) {
    abort_argument(
      "The multiplier of {.arg allele_table} must be a number from 1e-100 to
       1e100, not {multiplier}.",
      call
    )
  }
  if (is.na(parameter) || parameter < 0 || parameter > 1) {
    abort_argument(
      "The parameter of {.arg allele_table} must be a number from 0 to 1, not
       {parameter}.",
      call
    )
  }
  constants
}

# The largest value that an entry of a table of alleles can have. With f the
# frequency of both alleles and of their pair, it is multiplier f (1 - parameter
# f)^2, which is largest at f = 1 / (3 parameter). Over common samples, the
# alleles may be rare and nevertheless all that these samples have.
largest_table_entry <- function(constants, common = FALSE) {
  if (common) {
    return(constants[["multiplier"]])
  }
  f <- min(1, 1 / (3 * constants[["parameter"]]))
  constants[["multiplier"]] * f * (1 - constants[["parameter"]] * f)^2
}

metric_signs <- c("signed", "absolute", "negative")

# These synonyms serve only "Did you mean".
sign_synonyms <- c(
  unsigned = "absolute", both = "absolute", either = "absolute",
  positive = "signed", pos = "signed", "signed hybrid" = "signed",
  anti = "negative", anticorrelation = "negative", inverse = "negative"
)

# Returns the list of metrics for the help pages (roxygen2 runs this).
metric_help <- function() {
  table <- metric_table()
  needs <- ifelse(table$non_negative, ", for data without negative values", "")
  needs[table$levels == 1] <- ", for binary data (0 and 1, or logical)"
  needs[table$levels == 2] <- ", for genotypes (0, 1 or 2 copies of an allele)"
  needs[table$below_zero] <- ", which may be below 0: see [metrics]"
  paste0(
    "* `\"", table$name, "\"`: ", table$label, ", ", table$distance, needs,
    collapse = "\n"
  )
}

# Returns one row of the table as a list, or NULL if there is no such metric.
metric_facts <- function(name) {
  table <- metric_table()
  at <- match(name, table$name)
  if (is.na(at)) {
    return(NULL)
  }
  as.list(table[at, ])
}

# Whether distances may be below 0 with some constants (see `allele_table`).
may_be_below_zero <- function(metric) {
  metric$below_zero || metric$table
}

# Refuses a metric with negative distances for uses as lengths or similarities.
# `what` is a verb or an argument in cli markup, and `why` is a clause.
refuse_below_zero <- function(metric, what, why, hint = NULL,
                              call = caller_env()) {
  if (!metric$below_zero) {
    return(invisible())
  }
  abort_argument(
    c(
      paste0("Metric {.val {metric$name}} can't be used with ", what, "."),
      x = paste0("Its distances may be below 0, and ", why, "."),
      i = hint
    ),
    call
  )
}

metric_synonyms <- function() {
  table <- metric_table()
  words <- strsplit(table$synonyms, " ", fixed = TRUE)
  stats::setNames(rep(table$name, lengths(words)), unlist(words))
}

# Returns the metrics with a property as text for messages: "pearson" and
# "spearman".
metrics_with <- function(property) {
  table <- metric_table()
  quote_metrics(table$name[table[[property]]])
}

# Returns whether the core computes the product of two rows of length 1, that is
# r or the cosine.
is_dot_product <- function(name) {
  has_correlation(metric_facts(name)) || name == "cosine"
}

has_correlation <- function(metric) {
  metric$similarity == "correlation"
}

# Names a metric as in prints: "pearson (absolute)", "pearson (signed),
# weighted", "spearman (signed), adjusted for 2 covariates" or "euclidean".
describe_metric <- function(name, sign, weighted = FALSE,
                            num_covariates = NULL) {
  facts <- metric_facts(name)
  if (!is.null(facts) && facts$has_sign && !is.null(sign)) {
    name <- paste0(name, " (", sign, ")")
  }
  paste0(
    name, if (isTRUE(weighted)) ", weighted",
    if (isTRUE(num_covariates > 0)) {
      paste(", adjusted for", tally(num_covariates, "covariate"))
    }
  )
}
