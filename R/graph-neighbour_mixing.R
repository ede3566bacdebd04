#' Mixing of labels among neighbours
#'
#' Measures how labels (batches, clusters, cell types) mix in a graph. For each
#' point, it gives the share of neighbours with its own label, and the diversity
#' of its neighbours' labels. A permutation test compares the means with chance.
#' Use it to check whether batches are separated, before and after a correction.
#'
#' @param edges Neighbours of points, in any shape that [as_knn()] takes: an
#'   edge data frame, a result of [knn_search()] or [within_search()], and
#'   others. In an undirected graph, the ends of an edge are neighbours of each
#'   other.
#' @param labels The label of each point: a factor, or a vector that makes one,
#'   in the order of the points or with their names. Missing labels are an
#'   error. Unused levels are dropped. With `data`, the name of a column.
#' @param ... Must be empty.
#' @param self Does each point count as its own neighbour? If `FALSE` (default),
#'   a point without neighbours has `NA`.
#' @param weighted Does a neighbour count 1 / (number of points with its label)?
#'   A common label then has no high purity just because it is common. `FALSE`
#'   by default.
#' @param permutations The number of permutations of the labels, a whole number.
#'   `NULL`: no test. R's generator draws them before the labels are counted.
#' @param strata `NULL` (default), or a group for each point (such as its cell
#'   type), in the same form as `labels`. Labels are permuted within groups.
#' @param unit `NULL` (default), or the unit of each point (such as its donor),
#'   in the same form as `labels`. See *Permutation test*.
#' @param data The data with the columns that `labels`, `strata` and `unit`
#'   name, or `NULL` (default). Either a data frame (or `DataFrame`) with a row
#'   for each point, with row names that match the points. Or an `ExpressionSet`
#'   or a `SummarizedExperiment` whose samples (cells) are the points.
#'
#' @returns A data frame of class `fsknn_mixing` with a row for each point. Its
#'   columns are `name` (or number), `label`, `neighbours` (their number) and
#'   measures of the shares p of the labels among the neighbours:
#'   * `purity`: the share of the point's own label;
#'   * `most`: the most frequent label, the first level on a tie;
#'   * `entropy`: -sum(p log2 p), in bits: 0 if all are equal;
#'   * `simpson`: 1 / sum(p^2), the number of equally frequent labels with this
#'     diversity. It is the LISI of Korsunsky et al. (2019), with equal weights
#'     of all neighbours.
#'
#'   The attribute `chance` is a data frame with a row for each of the three
#'   numeric measures. `observed` is the mean over the points. `chance` and `sd`
#'   are the mean and standard deviation of `observed` under permuted labels,
#'   and `p` is the p-value. The print method shows it. The attribute
#'   `relabelled` has the smallest possible one, `smallest_p`. `summary()` has a
#'   row for each label, and `plot()` shows the points of each label.
#'
#' @section Purity of bluster: `bluster::neighborPurity(y, labels, k)` takes the
#' neighbours within the median distance of the k-th neighbours. Each point is
#' its own neighbour, and labels are weighted. It is equal to
#' `neighbour_mixing(within_search(y, d, metric = "euclidean"), labels, self =
#' TRUE, weighted = TRUE)$purity`, with `d` the median of `knn_search(y, k,
#' metric = "euclidean")$distance[, k]`. A neighbour whose distance *is* that
#' median is included here; bluster compares rounded squares.
#'
#' @section Permutation test: Labels are permuted over the points (within
#' `strata`), independently of the graph. `p` is the share of permutations with
#' labels at least as separated as observed. That is a purity at least as high,
#' or an entropy or Simpson's number at most as high. The observed labels count
#' as one permutation (Phipson and Smyth 2010, \doi{10.2202/1544-6115.1585}).
#'
#' With few points or units, there may be at most `permutations` other ways to
#' assign the labels. Then all of them are used, and `p` is exact.
#'
#' Cells of one donor are not independent, and are often neighbours of each
#' other. If labels are those of donors (such as their disease), permuted cells
#' are mixed far better by chance than whole donors. Give the donor as `unit`.
#' Labels that are constant within units are permuted among units of any size.
#' Others are permuted as blocks, among units of equal size: see *Whole units*
#' in [nearest_to()]. `strata = donor` permutes labels within donors. The print
#' states the smallest possible `p`.
#'
#' `p` is for the mean of all points, not for single points. A small `p` does
#' not show the cause: cells of different types in different batches are
#' separated without any batch effect. `strata` accounts for known groups.
#'
#' `p` is not for a single label either. By chance, the purity of a rare label
#' is lower than the mean of all points that `plot()` shows. It is about the
#' label's `share` in `summary()`, unless `strata` change it.
#' @section Errors: The following are errors of class `fsknn_argument_error`:
#' neighbours in an unknown shape, a single label, and missing labels. So are
#' labels that do not match the points in number or names.
#' @seealso [knn_graph()], whose `block` finds neighbours in each batch;
#'   [mutual_pairs()]
#' @references
#' Korsunsky I, Millard N, Fan J, et al. (2019). Fast, sensitive and accurate
#' integration of single-cell data with Harmony. *Nature Methods* 16: 1289-1296.
#' \doi{10.1038/s41592-019-0619-0}
#' @export
#' @examples
#' set.seed(1)
#' x <- matrix(rnorm(200 * 5), 200)
#' batch <- rep(c("first", "second"), each = 100)
#' x[batch == "second", ] <- x[batch == "second", ] + 1
#' mixing <- neighbour_mixing(knn_graph(x, k = 15, metric = "euclidean"), batch)
#' mixing
#' summary(mixing)
#'
#' # Cells of 8 donors, of whom 4 are ill, and no effect of the disease
#' donor <- rep(1:8, each = 25)
#' ill <- donor <= 4
#' cells <- matrix(rnorm(8 * 5), 8)[donor, ] + matrix(rnorm(200 * 5), 200)
#' edges <- knn_graph(cells, k = 15, metric = "euclidean")
#' neighbour_mixing(edges, ill)
#' neighbour_mixing(edges, ill, unit = donor)
neighbour_mixing <- function(edges, labels, ..., self = FALSE,
                             weighted = FALSE, permutations = 100,
                             strata = NULL, unit = NULL, data = NULL) {
  check_no_more(...)
  check_supplied(edges)
  check_supplied(labels)
  nn <- read_knn_shape(edges, arg = "edges")
  places <- in_places(nn)
  num_points <- length(places$size)
  labels <- as_blocks(
    labels_of_points(labels, data, nn$names, "labels"), num_points, "labels"
  )
  if (nlevels(labels) < 2) {
    abort_argument(
      c(
        "{.arg labels} must have two values or more.",
        x = "All points have {.val {levels(labels)}}."
      ),
      current_env()
    )
  }
  self <- check_flag(self, "self")
  weighted <- check_flag(weighted, "weighted")
  permutations <- check_permutations(permutations)
  strata <- check_strata(
    labels_of_points(strata, data, nn$names, "strata"), NULL, num_points,
    !is.null(permutations), of = "points", known = NULL
  )
  unit <- check_strata(
    labels_of_points(unit, data, nn$names, "unit"), NULL, num_points,
    !is.null(permutations), of = "points", known = NULL, arg = "unit"
  )
  relabelled <- if (!is.null(permutations)) {
    values <- t(as.integer(labels))
    exchange <- exchange_of(values, strata, unit)
    relabellings(exchange, permutations, values, same_classes, "labels")
  }
  graph <- neighbours_of_points(places, num_points, self)
  columns <- mixing_of(graph, as.integer(labels), nlevels(labels), weighted)
  found <- data.frame(
    name = nn$names %||% seq_len(num_points), label = labels,
    neighbours = graph$count, purity = columns$purity,
    most = factor(levels(labels)[columns$most], levels(labels)),
    entropy = columns$entropy, simpson = columns$simpson,
    stringsAsFactors = FALSE
  )
  structure(
    found,
    chance = chance_of_mixing(
      graph, as.integer(labels), nlevels(labels), weighted, columns,
      relabelled
    ),
    weighted = weighted, relabelled = relabelled$facts,
    class = c("fsknn_mixing", "data.frame")
  )
}

# Returns labels in the order of the points. A string is the name of a column of
# `data`, in which the points are rows or samples.
labels_of_points <- function(values, data, names, arg, call = caller_env()) {
  if (!is.null(data) && rlang::is_string(values)) {
    table <- sample_table(data) %||% data
    if (!is.data.frame(table) && !inherits(table, "DataFrame")) {
      given <- describe_type(data)
      abort_argument(
        "{.arg data} must be a data frame with a row for each point, or a
         container whose samples the points are, not {given}.",
        call
      )
    }
    values <- table_column(table, values, arg, "{.arg data}", call = call)
    of_rows <- row_names_of(table)
    if (!is.null(of_rows)) {
      names(values) <- of_rows
    }
  }
  if (!can_be_labels(values)) {
    return(values) # refused as such, whatever its names are
  }
  check_labels_text(values, arg, call)
  match_names(values, names, arg, "points", call)
}

# row and index are those of each existing neighbour, and count is for each
# point.
neighbours_of_points <- function(places, num_points, self) {
  there <- which(!is.na(places$index))
  row <- places$row[there]
  index <- places$index[there]
  if (self) {
    row <- c(row, seq_len(num_points))
    index <- c(index, seq_len(num_points))
  }
  list(row = row, index = index, count = tabulate(row, num_points))
}

mixing_of <- function(graph, labels, num_labels, weighted) {
  num_points <- length(labels)
  counts <- tabulate(
    graph$row + as.double(num_points) * (labels[graph$index] - 1),
    num_points * num_labels
  )
  share <- matrix(as.double(counts), num_points)
  if (weighted) {
    share <- share / rep(tabulate(labels, num_labels), each = num_points)
  }
  total <- rowSums(share)
  total[total == 0] <- NA
  share <- share / total
  log_share <- log2(share)
  log_share[which(share == 0)] <- 0
  most <- max.col(share, ties.method = "first")
  most[is.na(total)] <- NA
  list(
    purity = share[cbind(seq_len(num_points), labels)], most = most,
    entropy = abs(rowSums(share * log_share)),
    simpson = 1 / rowSums(share^2)
  )
}

mixing_measures <- c("purity", "entropy", "simpson")

# `relabelled` is from relabellings(), or NULL.
chance_of_mixing <- function(graph, labels, num_labels, weighted, columns,
                             relabelled) {
  mean_of <- function(columns) {
    vapply(columns[mixing_measures], mean, 0, na.rm = TRUE)
  }
  observed <- mean_of(columns)
  chance <- data.frame(measure = mixing_measures, observed = unname(observed))
  if (is.null(relabelled)) {
    return(chance)
  }
  drawn <- relabelled$drawn
  permuted <- vapply(seq_len(ncol(drawn)), function(at) {
    mean_of(mixing_of(graph, labels[drawn[, at]], num_labels, weighted))
  }, observed)
  # High purity and low variety mean little mixing.
  apart <- c(1, -1, -1)
  # The observed labels are one of all relabellings.
  null <- cbind(permuted, if (relabelled$facts$all) observed)
  chance$chance <- unname(rowMeans(null))
  chance$sd <- unname(apply(null, 1, stats::sd))
  # Sums in another order count as equal.
  margin <- 1e-12 * abs(observed)
  chance$p <- permutation_p(
    unname(rowSums(apart * permuted >= apart * observed - margin)), ncol(drawn)
  )
  chance
}

#' @export
print.fsknn_mixing <- function(x, ...) {
  chance <- attr(x, "chance")
  if (is.null(chance) || is.null(x[["label"]])) {
    class(x) <- "data.frame"
    print(x, ...)
    return(invisible(x))
  }
  cat(
    "Mixing of ", nlevels(x$label), " labels over ", tally(nrow(x), "point"),
    ", neighbours of a point: ", sizes_in_words(x$neighbours), "\n", sep = ""
  )
  print(chance, row.names = FALSE, digits = 3)
  relabelled <- attr(x, "relabelled")
  if (!is.null(relabelled$num_units)) {
    cat("p: ", describe_relabelling(relabelled), "\n", sep = "")
  }
  writeLines(as.character(describe_smallest_p(relabelled)))
  invisible(x)
}

#' @rdname results
#' @method as.data.frame fsknn_mixing
#' @export
as.data.frame.fsknn_mixing <- function(x, row.names = NULL, optional = FALSE,
                                       ...) {
  check_no_more(...)
  check_unused(row.names, optional)
  attributes(x)[c("chance", "weighted", "relabelled")] <- NULL
  class(x) <- "data.frame"
  x
}

#' @rdname results
#' @method summary fsknn_mixing
#' @export
summary.fsknn_mixing <- function(object, ...) {
  check_no_more(...)
  by_label <- function(values) {
    as.vector(tapply(values, object$label, mean, na.rm = TRUE))
  }
  size <- as.vector(table(object$label))
  structure(
    data.frame(
      label = levels(object$label), points = size, share = size / sum(size),
      purity = by_label(object$purity), entropy = by_label(object$entropy),
      simpson = by_label(object$simpson)
    ),
    class = c("summary.fsknn_mixing", "data.frame")
  )
}

#' @export
print.summary.fsknn_mixing <- function(x, ...) {
  class(x) <- "data.frame"
  print(x, row.names = FALSE, digits = 3)
  invisible(x)
}

#' @rdname results
#' @method plot fsknn_mixing
#' @export
plot.fsknn_mixing <- function(x, ..., which = c("purity", "simpson")) {
  check_no_more(...)
  which <- check_choice(which, c("purity", "simpson"), "which")
  rlang::check_installed("ggplot2", "to draw how labels mix.")
  sizes <- table(x$label)
  words <- paste0(names(sizes), " (", format_counts(as.vector(sizes)), ")")
  shown <- data.frame(
    label = factor(words[as.integer(x$label)], words), value = x[[which]]
  )
  shown <- shown[!is.na(shown$value), ]
  chance <- attr(x, "chance")
  at <- chance$chance[chance$measure == which]
  ggplot2::ggplot(shown, ggplot2::aes(x = .data$label, y = .data$value)) +
    ggplot2::geom_violin(
      fill = "#BBD3E6", colour = NA, scale = "width", width = 0.8
    ) +
    ggplot2::geom_boxplot(
      width = 0.12, outlier.shape = NA, colour = "#0B3C5D"
    ) +
    (if (length(at) > 0) {
      list(
        ggplot2::geom_hline(
          yintercept = at, linetype = "dashed", colour = "grey40"
        ),
        ggplot2::annotate(
          "text", x = Inf, y = at, hjust = 1.05, vjust = -0.6, size = 3,
          colour = "grey30", label = "mean of all points under permuted labels"
        )
      )
    }) +
    ggplot2::labs(
      title = paste0(
        "Mixing of ", nlevels(x$label), " labels over ",
        tally(nrow(x), "point")
      ),
      x = "Label (points)",
      y = if (which == "purity") {
        "Share of neighbours with the same label"
      } else {
        "Labels among the neighbours (1 / sum p\u00b2)"
      }
    ) +
    theme_summary()
}
