#' Histogram of the similarities of all triples
#'
#' Counts all triples of points by their similarity (see [threshold_triples()]).
#' The counts are exact. Use them to choose a threshold before you ask for the
#' triples above it.
#'
#' @inheritParams threshold_triples
#' @param breaks The number of bins of equal width from 0 to 1, 20 by default.
#'   (With an `allele_table` by which similarities may be above 1, they end at
#'   the largest possible one of a pair.) Or the limits of the bins: two or more
#'   ascending numbers.
#' @returns A data frame of class `fsknn_triple_histogram` with a row for each
#'   bin:
#'   * `lower`, `upper`: the limits of the bin. `lower` belongs to the bin;
#'     `upper` belongs to the last bin only;
#'   * `triples`: the number of triples in the bin (double);
#'   * `and_above`: the number of triples in this bin or above. This is the
#'     number that [threshold_triples()] gives for `min_similarity = lower`.
#'
#'   The attributes `below` and `above` hold the numbers of triples outside all
#'   bins, and `checksum` is as in [threshold_triples()].
#'   [rbind()][rbind.fsknn_triples] combines the counts of all stages. A subset
#'   of the rows or columns is a plain data frame.
#'
#'   `summary()`: a data frame with the columns `most`, `min_similarity` and
#'   `triples`. `min_similarity` is the smallest `lower` that leaves at most
#'   `most` triples, and `triples` is the number that it leaves. Both are `NA`
#'   if no `lower` does. `plot()`: a ggplot object.
#' @section Errors: As for [knn_search()].
#' @section Cost: All triples are compared: n (n - 1) (n - 2) / 6 times the
#' number of features.
#' @inherit threshold_triples references
#' @seealso [threshold_triples()]
#' @export
#' @examples
#' x <- matrix(rexp(60 * 12), nrow = 60)
#' counts <- triple_histogram(x, breaks = seq(0.4, 0.8, by = 0.05))
#' counts
#' summary(counts, most = c(10, 100))
#' if (requireNamespace("ggplot2", quietly = TRUE)) {
#'   plot(counts)
#' }
triple_histogram <- function(x, breaks = 20,
                             metric = c(
                               "proportional", "sorensen", "ccc", "duo"
                             ),
                             ..., stages = NULL, stage = NULL) {
  check_supplied(x)
  metric <- check_triple_metric(metric)
  options <- triple_options("triple_histogram", ...)
  breaks <- check_triple_breaks(breaks, options$metric$most %||% 1)
  search <- new_triple_search(x, options)
  search <- ask_triples(
    search, "histogram", check_stages(stages, stage), breaks = breaks
  )
  finish_triples(run_triples(search), search)
}

is_triple_histogram <- function(x) {
  inherits(x, "fsknn_triple_histogram")
}

new_triple_histogram <- function(found, search) {
  asked <- search$request$triples
  histogram <- counts_by_bin(
    asked$breaks, found$counts, metric = search$options$metric$name,
    num_points = nrow(search$points$values), stage = stage_attribute(asked),
    checksum = found$checksum
  )
  with_searched(histogram, search)
}

# `counts` has the numbers below, in each bin, and above.
counts_by_bin <- function(breaks, counts, ...) {
  bins <- length(breaks) - 1L
  inside <- counts[seq_len(bins) + 1L]
  above <- counts[[bins + 2L]]
  structure(
    data.frame(
      lower = breaks[seq_len(bins)], upper = breaks[-1], triples = inside,
      and_above = rev(cumsum(rev(inside))) + above
    ),
    class = c("fsknn_triple_histogram", "data.frame"), below = counts[[1]],
    above = above, ...
  )
}

# Adds the histograms of all stages of one search.
add_histograms <- function(parts) {
  first <- parts[[1]]
  counts <- Reduce(`+`, lapply(parts, function(part) {
    c(attr(part, "below"), part$triples, attr(part, "above"))
  }))
  counts_by_bin(
    c(first$lower, first$upper[[nrow(first)]]), counts,
    metric = attr(first, "metric"), num_points = attr(first, "num_points"),
    checksum = add_checksums(vapply(parts, attr, "", "checksum")),
    searched = searched_in_all(parts)
  )
}

check_triple_breaks <- function(breaks, most, call = caller_env()) {
  breaks <- check_breaks(breaks, call)
  if (length(breaks) == 1) {
    return(seq(0, breaks) / breaks * most)
  }
  infinite <- breaks[is.infinite(breaks)]
  if (length(infinite) > 0) {
    abort_argument(
      c(
        "{.arg breaks} must be finite, not {infinite[[1]]}.",
        i = "All similarities are from 0 to {most}."
      ),
      call
    )
  }
  breaks
}

histogram_attributes <- c(
  "below", "above", "metric", "num_points", "stage", "checksum", "searched"
)

# A part of the bins is a plain data frame, because the counts outside, the
# checksum and the stage are for all bins.
#' @export
`[.fsknn_triple_histogram` <- function(x, ...) {
  result <- NextMethod()
  if (is.data.frame(result)) as_bins(result, x) else result
}

as_bins <- function(result, histogram) {
  bins <- c("lower", "upper", "triples", "and_above")
  if (!identical(as.list(result)[bins], as.list(histogram)[bins])) {
    attributes(result)[histogram_attributes] <- NULL
    class(result) <- setdiff(class(result), "fsknn_triple_histogram")
  }
  result
}

#' @export
print.fsknn_triple_histogram <- function(x, ...) {
  header <- paste0(
    "Triples by similarity: ", tally(attr(x, "num_points"), "point"), ", ",
    tally(sum(x$triples) + attr(x, "below") + attr(x, "above"), "triple"),
    ", ", attr(x, "metric")
  )
  cat(header, "\n", sep = "")
  cat_searched(x)
  table <- as.data.frame(x)
  counted <- c("triples", "and_above")
  table[counted] <- lapply(table[counted], format_counts)
  print(table, row.names = FALSE, ...)
  outside <- c(below = attr(x, "below"), above = attr(x, "above"))
  for (side in names(outside)[outside > 0]) {
    cat(tally(outside[[side]], "triple"), " ", side, "\n", sep = "")
  }
  invisible(x)
}

#' @rdname triple_histogram
#' @method as.data.frame fsknn_triple_histogram
#' @param row.names,optional Not used: from the generic.
#' @export
as.data.frame.fsknn_triple_histogram <- function(x, row.names = NULL,
                                                 optional = FALSE, ...) {
  check_unused(row.names, optional)
  data.frame(unclass(x)[c("lower", "upper", "triples", "and_above")])
}

#' @rdname triple_histogram
#' @method summary fsknn_triple_histogram
#' @param object A histogram of triples.
#' @param most How many triples a threshold may leave, one or more numbers.
#' @export
summary.fsknn_triple_histogram <- function(object, ...,
                                           most = c(1e3, 1e4, 1e5, 1e6, 1e7)) {
  check_no_more(...)
  if (!is.numeric(most) || anyNA(most) || length(most) == 0) {
    given <- describe_value(most)
    abort_argument("{.arg most} must be numbers, not {given}.", current_env())
  }
  at <- vapply(most, function(room) {
    match(TRUE, object$and_above <= room)
  }, 1L)
  data.frame(
    most = most, min_similarity = object$lower[at],
    triples = object$and_above[at]
  )
}

#' @rdname triple_histogram
#' @method plot fsknn_triple_histogram
#' @export
plot.fsknn_triple_histogram <- function(x, ...) {
  check_no_more(...)
  rlang::check_installed("ggplot2", "to draw a histogram.")
  shown <- as.data.frame(x)[x$triples > 0, ]
  ggplot2::ggplot(shown) +
    ggplot2::geom_rect(
      ggplot2::aes(
        xmin = .data$lower, xmax = .data$upper, ymin = 0.5,
        ymax = .data$triples
      ),
      fill = "#BBD3E6", colour = "#0B3C5D", linewidth = 0.3
    ) +
    ggplot2::scale_y_log10() +
    ggplot2::labs(
      title = paste(
        "Similarity of", tally(sum(x$triples), "triple"), "of",
        tally(attr(x, "num_points"), "point")
      ),
      x = "Similarity of three", y = "Triples"
    ) +
    theme_summary()
}
