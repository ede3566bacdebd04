#' Soft threshold powers
#'
#' Computes the connectivity of points for several soft threshold powers, and
#' how well its distribution fits a power law. Edges have the weights of WGCNA,
#' over all pairs or in a kNN graph of correlations. The table is that of
#' `WGCNA::pickSoftThreshold()`.
#'
#' @details
#' The weight (adjacency) of an edge depends on its correlation r (Zhang and
#' Horvath 2005; Langfelder and Horvath 2008):
#' * `type = "unsigned"`: |r|^power;
#' * `"signed"`: ((1 + r) / 2)^power;
#' * `"signed hybrid"`: r^power, or 0 for an r below 0.
#'
#' Each pair of points counts once, whatever the direction of its edge. The
#' connectivity of a point is the sum of the weights of its edges.
#'
#' The connectivities are divided into `breaks` bins of equal width. The fit is
#' a straight line: log10 of the share of points in a bin, plus 1e-9, on log10
#' of its mean connectivity. An empty bin has its midpoint instead of the mean.
#' This is `WGCNA::scaleFreeFitIndex()`.
#'
#' With [pair_connectivity()], over all pairs, the table equals that of
#' `WGCNA::pickSoftThreshold()` except for rounding. A kNN graph contains only
#' pairs of near neighbours, so its connectivity is a different one. Each point
#' has at least k edges, and the weak pairs that a power reduces are already
#' missing. Such a fit describes the graph, and does not show which power a
#' network of all pairs needs. A good fit is no evidence: it is a convention,
#' not a test.
#'
#' @param edges For a fit over all pairs, the result of [pair_connectivity()],
#'   which has the powers and the type. Points without a correlation are left
#'   out. For a graph, an edge data frame with the column `correlation`, as from
#'   [knn_graph()] or [threshold_graph()].
#' @param powers The powers, numbers of 1 or more. The default is that of
#'   `WGCNA::pickSoftThreshold()`.
#' @param type `"unsigned"` (default; for graphs with `sign = "absolute"`),
#'   `"signed"` or `"signed hybrid"`.
#' @param ... Must be empty.
#' @param breaks The number of bins, 10 by default.
#'
#' @returns A data frame of class `fsknn_powers` with a row for each power and
#'   the columns
#'   * `power`;
#'   * `r_squared`, `slope`: of the straight line;
#'   * `truncated_r_squared`: the adjusted R squared with an additional term for
#'     the connectivity itself (an exponentially truncated power law);
#'   * `mean_k`, `median_k`, `max_k`: of the connectivity.
#'
#'   The fit is `NA` if all points have the same connectivity. `plot()` draws
#'   mean connectivity and R squared. R squared has the sign of -slope, so a
#'   power law is above 0. The plot needs ggplot2.
#' @inheritSection spanning_forest Errors
#' @references
#' Zhang B, Horvath S (2005). A general framework for weighted gene
#' co-expression network analysis. *Statistical Applications in Genetics and
#' Molecular Biology* 4(1): 17. \doi{10.2202/1544-6115.1128}
#'
#' Langfelder P, Horvath S (2008). WGCNA: an R package for weighted correlation
#' network analysis. *BMC Bioinformatics* 9: 559. \doi{10.1186/1471-2105-9-559}
#' @seealso [pair_connectivity()], [sparse_tom()] for the topological overlap,
#'   [module_summary()] for eigengenes.
#' @export
#' @examples
#' x <- matrix(rnorm(5 * 30), 5)[rep(1:5, 2^(3:7)), ] +
#'   matrix(rnorm(248 * 30), 248)
#' soft_threshold(pair_connectivity(x))
#'
#' # of a graph
#' edges <- knn_graph(x, k = 15, sign = "absolute", backend = "cpu")
#' soft_threshold(edges)
soft_threshold <- function(edges, powers = c(1:10, seq(12, 20, by = 2)),
                           type = c("unsigned", "signed", "signed hybrid"),
                           ..., breaks = 10) {
  check_no_more(...)
  check_supplied(edges)
  if (inherits(edges, "fsknn_pair_connectivity")) {
    if (!missing(powers) || !missing(type)) {
      abort_argument(
        "{.arg powers} and {.arg type} are those of {.fn pair_connectivity},
         and can't be given once more.",
        current_env()
      )
    }
    breaks <- check_whole_number(breaks, "breaks", 3, 1e4)
    return(soft_threshold_of_all(edges, breaks))
  }
  powers <- check_powers(powers, "powers")
  type <- check_network_type(type)
  breaks <- check_whole_number(breaks, "breaks", 3, 1e4)
  pairs <- similar_pairs(edges, type)
  if (length(pairs$similarity) == 0) {
    abort_argument("{.arg edges} must have an edge.", current_env())
  }
  rows <- lapply(powers, function(power) {
    row_of_power(power, connectivity_of(pairs, pairs$similarity^power), breaks)
  })
  new_powers(rows, type, pairs$num_points, "kNN graph")
}

# Computes the table from connectivities over all pairs.
soft_threshold_of_all <- function(connectivity, breaks) {
  k <- connectivity$k
  k <- k[!is.na(k[, 1]), , drop = FALSE]
  powers <- connectivity$powers
  rows <- lapply(seq_along(powers), function(at) {
    row_of_power(powers[[at]], k[, at], breaks)
  })
  new_powers(rows, connectivity$type, nrow(k), "All pairs")
}

row_of_power <- function(power, k, breaks) {
  data.frame(
    power = power, scale_free_fit(unname(k), breaks), mean_k = mean(k),
    median_k = stats::median(k), max_k = max(k)
  )
}

# `of` says in plots what the sums are over.
new_powers <- function(rows, type, num_points, of) {
  structure(
    do.call(rbind, rows), class = c("fsknn_powers", "data.frame"),
    type = type, num_points = num_points, of = of
  )
}

check_powers <- function(powers, arg, one = FALSE, call = caller_env()) {
  plain <- is.numeric(powers) && !is.object(powers) && is.null(dim(powers))
  size <- length(powers)
  if (plain && size > 0 && (!one || size == 1) && all(is.finite(powers)) &&
        all(powers >= 1)) {
    return(as.double(powers))
  }
  given <- describe_value(powers)
  wanted <- if (one) "a number of 1 or more" else "numbers of 1 or more"
  abort_argument("{.arg {arg}} must be {wanted}, not {given}.", call)
}

check_network_type <- function(type, call = caller_env()) {
  check_choice(
    type, c("unsigned", "signed", "signed hybrid"), "type",
    synonyms = c(absolute = "unsigned", hybrid = "signed hybrid"), call = call
  )
}

# Returns each pair of points of a graph once: from, to (numbers) and
# similarity, whose powers are WGCNA's adjacencies. `edges` is the undirected
# graph.
similar_pairs <- function(edges, type, call = caller_env()) {
  if (is.matrix(edges) && is.numeric(edges) && !inherits(edges, "Surv") &&
        !all(edges >= 1 & edges == trunc(edges), na.rm = TRUE)) {
    abort_argument(
      c(
        "{.arg edges} must be a graph with correlations, not a matrix of
         values.",
        i = "Of a matrix with points in rows use {.code knn_graph(edges)}.",
        i = if ("powers" %in% ls(call)) {
          "Over all pairs use {.code pair_connectivity(edges)}."
        }
      ),
      call
    )
  }
  edges <- edges_of(edges, call = call)
  if (!is.numeric(edges[["correlation"]])) {
    abort_argument(
      c(
        "{.arg edges} must have a column {.code correlation}.",
        i = "Graphs of {.val pearson}, {.val spearman} and {.val bicor} have
             it."
      ),
      call
    )
  }
  edges <- undirected_edges(edges, "union")
  facts <- edges_facts(edges, "edges", call)
  r <- edges$correlation
  list(
    from = facts$from, to = facts$to, num_points = facts$num_points,
    similarity = switch(
      type, unsigned = abs(r), signed = (1 + r) / 2,
      "signed hybrid" = pmax(r, 0)
    ),
    edges = edges
  )
}

connectivity_of <- function(pairs, adjacency) {
  k <- double(pairs$num_points)
  sums <- rowsum(c(adjacency, adjacency), c(pairs$from, pairs$to))
  k[as.integer(rownames(sums))] <- sums
  k
}

# Returns how well connectivities fit a power law, by bins of equal width.
scale_free_fit <- function(k, breaks) {
  lowest <- min(k)
  width <- (max(k) - lowest) / breaks
  if (width == 0) {
    return(data.frame(
      r_squared = NA_real_, slope = NA_real_, truncated_r_squared = NA_real_
    ))
  }
  edges <- lowest + width * seq(0, breaks)
  # The ends of the range belong to the first and last bin.
  bin <- findInterval(k, edges[-c(1, breaks + 1)], left.open = TRUE) + 1
  count <- tabulate(bin, breaks)
  centre <- (edges[-1] + edges[-(breaks + 1)]) / 2
  mean <- double(breaks)
  sums <- rowsum(k, bin)
  mean[as.integer(rownames(sums))] <- sums
  mean <- mean / pmax(count, 1)
  at <- ifelse(mean == 0, centre, mean)
  log_k <- log10(at)
  log_share <- log10(count / length(k) + 1e-9)
  line <- stats::lm.fit(cbind(1, log_k), log_share)
  truncated <- stats::lm.fit(cbind(1, log_k, at), log_share)
  total <- sum((log_share - mean(log_share))^2)
  left <- function(fit) sum(fit$residuals^2) / total
  data.frame(
    r_squared = 1 - left(line), slope = unname(line$coefficients[[2]]),
    truncated_r_squared =
      1 - left(truncated) * (breaks - 1) / (breaks - truncated$rank)
  )
}

#' @param x For `plot()`: what `soft_threshold()` gave.
#' @rdname soft_threshold
#' @export
plot.fsknn_powers <- function(x, ...) {
  check_no_more(...)
  rlang::check_installed("ggplot2", "to draw powers.")
  panels <- c("Scale-free fit (signed R squared)", "Mean connectivity")
  table <- data.frame(
    power = rep(x$power, 2),
    value = c(-sign(x$slope) * x$r_squared, x$mean_k),
    panel = factor(rep(panels, each = nrow(x)), levels = panels)
  )
  .data <- rlang::.data
  ggplot2::ggplot(
    table[!is.na(table$value), ], ggplot2::aes(.data$power, .data$value)
  ) +
    ggplot2::geom_line(colour = "grey60") +
    ggplot2::geom_point(colour = "#1F5582", size = 2) +
    ggplot2::facet_wrap("panel", scales = "free_y") +
    ggplot2::labs(
      x = paste0("Soft threshold power (", attr(x, "type"), ")"), y = NULL,
      subtitle = paste(
        attr(x, "of"), "of", tally(attr(x, "num_points"), "point")
      )
    ) +
    plain_theme()
}
