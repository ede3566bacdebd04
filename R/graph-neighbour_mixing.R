#' How labels mix among neighbours
#'
#' Says for each point of a graph how many of its neighbours have its own label
#' (a batch, a cluster, a cell type), how varied their labels are, and what
#' chance would give: to see whether batches lie apart before anything is
#' corrected, and after.
#'
#' @param edges Neighbours of points, in any shape that [as_knn()] takes: an
#'   edge data frame of any kind, what [knn_search()] or [within_search()]
#'   gives, and others. Of undirected edges both ends are neighbours of each
#'   other.
#' @param labels The label of each point, none missing: a factor, or a vector
#'   that makes one, in the order of the points, or with their names. Levels
#'   that no point has are left out. With `data`, the name of a column.
#' @param ... Must be empty.
#' @param self Is a point one of its own neighbours? `FALSE` by default; then a
#'   point without neighbours has `NA`.
#' @param weighted Does a neighbour count 1 / (number of points with its label),
#'   so that a common label does not look pure for being common? `FALSE` by
#'   default.
#' @param permutations How often labels are dealt out anew (drawn by R's own
#'   generator, before anything is counted), a whole number; `NULL`: never.
#' @param strata `NULL` (default), or a group of each point (its cell type, say)
#'   within which labels are dealt out; given as `labels` are.
#' @param data `NULL` (default), or where `labels` and `strata` are columns: a
#'   data frame (or `DataFrame`) with a row for each point, whose row names are
#'   matched with the points', or an `ExpressionSet` or a `SummarizedExperiment`
#'   whose samples (cells) are the points.
#'
#' @returns A data frame of class `fsknn_mixing` with a row for each point and
#'   the columns `name` (or number), `label`, `neighbours` (their number) and,
#'   of the labels' shares p among them,
#'   * `purity`: the share of its own label;
#'   * `most`: the label of most of them, the first level on a tie;
#'   * `entropy`: -sum(p log2 p), in bits: 0 where all are the same;
#'   * `simpson`: 1 / sum(p^2), the number of labels that would give that
#'     variety: what LISI gives (Korsunsky et al. 2019,
#'     \doi{10.1038/s41592-019-0619-0}), with all neighbours counting alike.
#'
#'   Its attribute `chance` is a data frame with a row for each of the three
#'   measures: the mean over the points as `observed`, the mean and the standard
#'   deviation of that under permuted labels (`chance`, `sd`), and `p`. It
#'   prints with that; `summary()` goes by label, `plot()` draws each label's
#'   points.
#'
#' @section Purity of bluster:
#' `bluster::neighborPurity(y, labels, k)` takes the neighbours within the
#' median distance of the k-th neighbours, each point one of its own, and weighs
#' by label: it is `neighbour_mixing(within_search(y, d, metric = "euclidean"),
#' labels, self = TRUE, weighted = TRUE)$purity`, with `d` the median of
#' `knn_search(y, k, metric = "euclidean")$distance[, k]`. A neighbour whose
#' distance *is* that median is within; there the square of d, rounded, decides.
#'
#' @section Null:
#' Labels are dealt out over the points (within `strata`) without regard to the
#' graph. `p` is the share of permutations, what was observed counted as one of
#' them (Phipson and Smyth 2010, \doi{10.2202/1544-6115.1585}), in which labels
#' lie as far apart: purity as high, entropy or Simpson's number as low. It
#' speaks of all points together, not of any one, and of labels that may go with
#' other things: cells of different types in different batches lie apart
#' whatever the batches did. `strata` takes out what is known of that. Nor does
#' it speak of one label: by chance a rare label's purity is lower than the mean
#' of all points that `plot()` draws (about the label's `share` in `summary()`,
#' or what `strata` make of it).
#' @section Errors:
#' Of class `fsknn_argument_error`: neighbours in no shape that is known, labels
#' that are missing, of another number or of other names, and only one label.
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
neighbour_mixing <- function(edges, labels, ..., self = FALSE,
                             weighted = FALSE, permutations = 100,
                             strata = NULL, data = NULL) {
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
  drawn <- if (!is.null(permutations)) {
    draw_permutations(num_points, permutations, strata)
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
      graph, as.integer(labels), nlevels(labels), weighted, columns, drawn
    ),
    weighted = weighted,
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

# `drawn` has a permutation in each column, or is NULL.
chance_of_mixing <- function(graph, labels, num_labels, weighted, columns,
                             drawn) {
  mean_of <- function(columns) {
    vapply(columns[mixing_measures], mean, 0, na.rm = TRUE)
  }
  observed <- mean_of(columns)
  chance <- data.frame(measure = mixing_measures, observed = unname(observed))
  if (is.null(drawn)) {
    return(chance)
  }
  permuted <- vapply(seq_len(ncol(drawn)), function(at) {
    mean_of(mixing_of(graph, labels[drawn[, at]], num_labels, weighted))
  }, observed)
  # High purity and low variety mean little mixing.
  apart <- c(1, -1, -1)
  chance$chance <- unname(rowMeans(permuted))
  chance$sd <- unname(apply(permuted, 1, stats::sd))
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
  invisible(x)
}

#' @rdname results
#' @method as.data.frame fsknn_mixing
#' @export
as.data.frame.fsknn_mixing <- function(x, row.names = NULL, optional = FALSE,
                                       ...) {
  check_no_more(...)
  attributes(x)[c("chance", "weighted")] <- NULL
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
