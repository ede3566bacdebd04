# Raw counts grow with the depth of a sample, so their correlations and
# distances reflect depth. A message suggests a transformation. Values are taken
# for counts if the name of the assay or the values suggest it.

# `points` is from take_points(). Their values may or may not be in memory.
tell_if_counts <- function(x, points, metric, arg = "x") {
  if (is_genotypes(x)) {
    return(invisible())
  }
  named <- is_counts_name(points$taken_from["assay"])
  correlated <- has_correlation(metric)
  depth <- if (correlated && !named) depth_of_counts(points)
  if (!named && is.null(depth) ||
        !correlated && metric$name != "euclidean") {
    return(invisible())
  }
  cure <- cure_of_counts(x, points$taken_from, arg)
  cli::cli_inform(
    c(
      if (named) {
        "{.arg {arg}} holds counts (assay {.val {points$taken_from}}), which
         grow with the depth of a sample."
      } else {
        "{.arg {arg}} looks like counts, which grow with the depth of a sample:
         non-negative whole numbers, with column sums that differ by a factor
         of {depth}."
      },
      i = if (is_container(x)) {
        "Use values that are comparable between samples: {.code {cure}}."
      } else {
        "If they are, and samples are columns, use comparable values:
         {.code {cure}}."
      }
    ),
    class = "fsknn_counts_message"
  )
}

is_counts_name <- function(name) {
  !is.null(name) &&
    isTRUE(grepl("^(raw[._ ]?)?counts$", name, ignore.case = TRUE))
}

# Returns NULL if the values are not counts of samples with different depths.
# Otherwise it returns the ratio of the extreme depths. A sample of rows
# suffices: a matrix of fractions fails in the first row.
depth_of_counts <- function(points) {
  values <- points$values
  if (!is.matrix(values) || is.logical(values) || length(values) == 0) {
    return(NULL)
  }
  is_whole <- function(x) all(x == trunc(x), na.rm = TRUE)
  if (!is_whole(values[1, ])) {
    return(NULL)
  }
  num_rows <- max(20, min(1000, 5e6 %/% ncol(values)))
  rows <- seq(1, nrow(values), length.out = min(nrow(values), num_rows))
  part <- values[rows, , drop = FALSE]
  if (!is_whole(part) || any(part < 0, na.rm = TRUE)) {
    return(NULL)
  }
  part <- part / unit_of_values(part)
  # Samples are the columns of the user's object.
  if (isTRUE(points$transposed)) {
    part <- t(part)
  }
  depth <- colSums(part, na.rm = TRUE)
  if (length(depth) < 2 || min(depth) == 0) {
    return(NULL)
  }
  # Column sums of unrelated numbers also differ, but no more than their
  # variances imply.
  spread <- rowSums((part - rowMeans(part, na.rm = TRUE))^2, na.rm = TRUE)
  apart <- stats::var(depth) > 4 * sum(spread) / (length(depth) - 1)
  factor <- max(depth) / min(depth)
  if (apart && factor >= 1.2) format(factor, digits = 2)
}

# Returns code that makes comparable values from this very object.
cure_of_counts <- function(x, taken_from, arg = "x") {
  if (inherits(x, "DESeqDataSet")) {
    return(variance_stable(x, arg))
  }
  assays <- if (inherits(x, "SummarizedExperiment")) {
    SummarizedExperiment::assayNames(x)
  }
  if ("logcounts" %in% assays) {
    return("assay = \"logcounts\"")
  }
  at <- taken_from %||% "1"
  if (inherits(x, "SingleCellExperiment") && at == "counts") {
    return(paste0("scuttle::logNormCounts(", arg, ")"))
  }
  counts <- if (inherits(x, "SummarizedExperiment")) {
    at <- if (is.null(taken_from)) at else paste0("\"", at, "\"")
    paste0("SummarizedExperiment::assay(", arg, ", ", at, ")")
  } else if (inherits(x, "ExpressionSet")) {
    element <- taken_from %||% "exprs"
    paste0("Biobase::assayDataElement(", arg, ", \"", element, "\")")
  } else if (is_array_list(x) && !inherits(x, "DGEList")) {
    paste0(arg, "$", taken_from %||% "E")
  } else {
    arg
  }
  paste0("edgeR::cpm(", counts, ", log = TRUE)")
}

# DESeq2::vst() needs 1,000 rows.
variance_stable <- function(x, arg) {
  verb <- if (nrow(x) < 1000) "varianceStabilizingTransformation" else "vst"
  paste0("DESeq2::", verb, "(", arg, ")")
}
