# The one place in R that knows the metrics. Adding a metric is one row here
# (and one place in src/core, the reference in the tests, NEWS).
#
# name            what the user writes and the core is told
# label           for messages and print methods
# has_sign        are there "absolute" and "negative" forms?
# distance        the formula as documented, for people
# similarity      what as_igraph() takes as similarity: "correlation" (r, |r|
#                 or -r as `sign` says), "complement" (1 - distance) or
#                 "reciprocal" (of 1 + distance)
# undefined_rows  rows for which the metric has no value: "constant", "zero"
#                 or "none"
# non_negative    must all entries be at least 0?
# binary          must all entries be 0 or 1 (FALSE or TRUE)?
# takes_weights   can samples be weighted?
# pairwise        is it defined over the samples that two rows have in common
#                 (`na = "pairwise"`)?
# synonyms        what others call it, separated by spaces; only for "Did you
#                 mean"
metric_row <- function(name, label, has_sign, distance, similarity,
                       undefined_rows = "none", non_negative = FALSE,
                       binary = FALSE, takes_weights = FALSE,
                       pairwise = FALSE, synonyms = "") {
  data.frame(
    name, label, has_sign, distance, similarity, undefined_rows, non_negative,
    binary, takes_weights, pairwise, synonyms
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
             "reciprocal", synonyms = "l2"),
  metric_row("manhattan", "Manhattan", FALSE, "sum(|a - b|)",
             "reciprocal", synonyms = "l1 cityblock taxicab"),
  metric_row("chebyshev", "Chebyshev", FALSE, "max(|a - b|)",
             "reciprocal", synonyms = "maximum max supremum linf"),
  metric_row("canberra", "Canberra", FALSE,
             "sum(|a - b| / (|a| + |b|)), 0 / 0 being 0", "reciprocal"),
  metric_row("proportional",
             "Proportional Similarity (Czekanowski; Bray-Curtis)", FALSE,
             "1 - 2 sum(min(a, b)) / sum(a + b)",
             "complement", undefined_rows = "zero", non_negative = TRUE,
             synonyms = "bray braycurtis bray-curtis czekanowski"),
  metric_row("jaccard", "Jaccard", FALSE, "1 - sum(a & b) / sum(a | b)",
             "complement", undefined_rows = "zero", binary = TRUE,
             synonyms = "binary"),
  metric_row("sorensen", "Sorensen (Dice)", FALSE,
             "1 - 2 sum(a & b) / (sum(a) + sum(b))",
             "complement", undefined_rows = "zero", binary = TRUE,
             synonyms = "dice sorensen-dice")
)

metric_table <- function() {
  known_metrics
}

metric_signs <- c("signed", "absolute", "negative")

# What others call them; only for "Did you mean".
sign_synonyms <- c(
  unsigned = "absolute", both = "absolute", either = "absolute",
  positive = "signed", pos = "signed", "signed hybrid" = "signed",
  anti = "negative", anticorrelation = "negative", inverse = "negative"
)

# The list of metrics for the help pages (roxygen2 runs this).
metric_help <- function() {
  table <- metric_table()
  needs <- ifelse(table$non_negative, ", for data without negative values", "")
  needs[table$binary] <- ", for binary data (0 and 1, or logical)"
  paste0(
    "* `\"", table$name, "\"`: ", table$label, ", ", table$distance, needs,
    collapse = "\n"
  )
}

# One row of the table as a list, or NULL when there is no such metric.
metric_facts <- function(name) {
  table <- metric_table()
  at <- match(name, table$name)
  if (is.na(at)) {
    return(NULL)
  }
  as.list(table[at, ])
}

metric_synonyms <- function() {
  table <- metric_table()
  words <- strsplit(table$synonyms, " ", fixed = TRUE)
  stats::setNames(rep(table$name, lengths(words)), unlist(words))
}

# Those with a property, in words for messages: "pearson" and "spearman".
metrics_with <- function(property) {
  table <- metric_table()
  quote_metrics(table$name[table[[property]]])
}

has_correlation <- function(metric) {
  metric$similarity == "correlation"
}

# "pearson (absolute)", "pearson (signed), weighted" or "euclidean": how prints
# name a metric.
describe_metric <- function(name, sign, weighted = FALSE) {
  facts <- metric_facts(name)
  if (!is.null(facts) && facts$has_sign && !is.null(sign)) {
    name <- paste0(name, " (", sign, ")")
  }
  paste0(name, if (isTRUE(weighted)) ", weighted")
}
