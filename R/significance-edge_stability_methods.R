# Methods for the stability of edges.

#' @method print fsknn_stability
#' @export
print.fsknn_stability <- function(x, ..., n = 10) {
  cat(format_edges_header(x), "\n", sep = "")
  cat_searched(x, points = FALSE)
  cat(paste0(format_stability(x), "\n"), sep = "")
  print_first_edges(x, n, ...)
  invisible(x)
}

# Describes the stability, the share expected by chance, and the other edges.
format_stability <- function(x) {
  draw <- attr(x, "stability")
  own <- is_own_edge(x)
  chance <- chance_shares(draw)
  mean_of <- if (any(own)) format_share(mean(x$stability[own])) else "none"
  lines <- paste0(
    format_draw(draw), ": mean stability ", mean_of,
    if (!is.null(chance)) paste0(" (chance: ", format_share(mean(chance)), ")")
  )
  if (!all(own)) {
    lines <- c(lines, paste(
      tally(sum(!own), "edge"), "that only resamples have, at least",
      format_share(draw$min_stability), "of them"
    ))
  }
  if (draw$method == "bootstrap") {
    lines <- c(lines, "Samples that are repeated inflate the largest r.")
  }
  lines
}

format_draw <- function(draw) {
  how <- if (draw$method == "subsample") "subsample" else "bootstrap sample"
  paste0(
    tally(draw$resamples, how), " of ", format_count(draw$size), " of ",
    tally(
      draw$num_units %||% draw$num_samples,
      if (is.null(draw$num_units)) "sample" else "unit"
    )
  )
}

format_share <- function(share) {
  format(round(share, 2), nsmall = 2, decimal.mark = ".")
}

# Returns TRUE for edges of the graph of all samples.
is_own_edge <- function(x) {
  if (is.null(x$rank)) rep(TRUE, nrow(x)) else !is.na(x$rank)
}

# Returns the share of each edge of noise, or NULL if they are unknown.
chance_shares <- function(draw) {
  counts <- draw$chance
  if (is.null(counts)) {
    return(NULL)
  }
  rep((seq_along(counts) - 1) / (length(counts) - 1), counts)
}

#' @method summary fsknn_stability
#' @export
summary.fsknn_stability <- function(object, ...) {
  draw <- attr(object, "stability")
  own <- is_own_edge(object)
  probs <- c(0.05, 0.25, 0.5, 0.75, 0.95)
  about <- function(shares) {
    c(mean = if (length(shares) > 0) mean(shares) else NA_real_,
      stats::quantile(shares, probs))
  }
  chance <- chance_shares(draw)
  rank <- object$rank[own]
  shares <- object$stability[own]
  ranks <- sort(unique(rank))
  absent <- attr(object, "vertices")$absent
  structure(
    list(
      header = format_edges_header(object), draw = draw,
      edges = about(shares),
      chance = if (!is.null(chance)) about(chance),
      above_chance = if (!is.null(chance)) {
        mean(shares > stats::quantile(chance, 0.95))
      },
      by_rank = data.frame(
        rank = ranks,
        stability = vapply(ranks, function(r) mean(shares[rank == r]), 0)
      ),
      others = sum(!own), absent = sum(absent > 0),
      most_absent = max(0, absent)
    ),
    class = "summary.fsknn_stability"
  )
}

#' @method print summary.fsknn_stability
#' @export
print.summary.fsknn_stability <- function(x, ...) {
  cat(x$header, "\n", format_draw(x$draw), "\n", sep = "")
  print(signif(rbind(edges = x$edges, chance = x$chance), 3), ...)
  if (!is.null(x$above_chance)) {
    cat(format_share(x$above_chance),
        " of the edges are above 95% of chance's\n", sep = "")
  }
  by_rank <- paste0(
    x$by_rank$rank, ": ", vapply(x$by_rank$stability, format_share, "")
  )
  cat(fill_line("Mean by rank: ", by_rank), sep = "\n")
  cat(tally(x$others, "edge"), " that only resamples have, at least ",
      format_share(x$draw$min_stability), " of them\n", sep = "")
  if (x$absent > 0) {
    cat(tally(x$absent, "point"), " did not vary in some resamples (at most ",
        format_count(x$most_absent), ")\n", sep = "")
  }
  invisible(x)
}

# Draws two overlaid histograms of shares, for the edges and for noise.
#' @method plot fsknn_stability
#' @export
plot.fsknn_stability <- function(x, ...) {
  rlang::check_installed("ggplot2", "to draw stability.")
  draw <- attr(x, "stability")
  edges <- x$stability[is_own_edge(x)]
  chance <- chance_shares(draw)
  # Each bar covers a whole number of resamples.
  per_bar <- max(1, round(draw$resamples / 25))
  bars <- seq(-0.5, draw$resamples + per_bar, by = per_bar) / draw$resamples
  bar_of <- function(shares, what) {
    if (length(shares) == 0) {
      return(NULL)
    }
    count <- tabulate(findInterval(shares, bars), length(bars) - 1)
    data.frame(
      share = (bars[-1] + bars[-length(bars)]) / 2,
      part = 100 * count / length(shares), what = what
    )
  }
  what <- c(
    paste0("the data (", tally(length(edges), "edge"), ")"),
    paste0("chance (", tally(length(chance), "edge"), ")")
  )
  drawn <- rbind(bar_of(edges, what[[1]]), bar_of(chance, what[[2]]))
  drawn$what <- factor(drawn$what, levels = what)
  ggplot2::ggplot(
    drawn,
    ggplot2::aes(x = .data$share, y = .data$part, fill = .data$what)
  ) +
    ggplot2::geom_col(
      position = "identity", alpha = 0.6,
      width = per_bar / draw$resamples
    ) +
    ggplot2::scale_fill_manual(
      values = stats::setNames(c("#0072B2", "#999999"), what), name = NULL
    ) +
    ggplot2::labs(
      x = paste0("stability (share of ", format_draw(draw), ")"),
      y = "edges (%)"
    ) +
    theme_summary()
}
