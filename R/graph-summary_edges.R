#' Summarize and plot the edges of a graph
#'
#' `summary()` describes a graph: isolated points, components, the share of
#' reciprocal edges, hubs, and distances by the rank of the neighbour. Hubs are
#' points that are neighbours of very many others. `plot()` draws in-degrees and
#' distances.
#'
#' @details The *in-degree* of a point is the number of neighbour lists that
#' contain it. In high-dimensional data, a few points are in very many lists and
#' others in none (Radovanovic et al. 2010). This is a property of the data and
#' the metric, not of the search, which is exact. Graphs of mutual neighbours
#' ([undirected_edges()]) or shared neighbours ([snn_graph()]) have fewer hubs.
#'
#' Quantiles are over the points (R's type 7). They are of r if the edges have a
#' correlation (of |r| under `sign = "absolute"`), otherwise of the distance.
#'
#' @param object,x An edge data frame with its points, as from [knn_graph()],
#'   [threshold_graph()], [undirected_edges()] or [spanning_forest()].
#' @param ... Must be empty.
#' @param hubs The number of points with the largest in-degree to list.
#' @param which `"rank"`: r or distance by the rank of the neighbour (for a
#'   graph without ranks: its distribution). `"degree"`: the distribution of
#'   in-degrees (for an undirected graph: degrees). `NULL` (default): both, side
#'   by side, by the package patchwork.
#'
#' @returns `summary()`: a list of class `summary.fsknn_edges`, with a print
#'   method:
#'   * `num_points`, `num_edges`;
#'   * `isolated`: the number of points without an edge in either direction;
#'   * `components`: their sizes without isolated points, the largest first;
#'   * `directed`: is the graph directed?
#'   * `reciprocity`, of a directed graph: the share of edges from i to j for
#'     which there is an edge from j to i;
#'   * `in_degree`: the in-degree of each point (for an undirected graph, its
#'     degree);
#'   * `hubs`: a data frame with `name` and `in_degree`, the largest first;
#'   * `value`: `"correlation"`, `"|correlation|"` or `"distance"`;
#'   * `quantiles`: a data frame of the quantiles of this value. It has a row
#'     for each `rank` (one row without ranks), and `edges`, the number of
#'     edges.
#'
#'   `plot()`: a ggplot object, or with both pictures patchwork's.
#'
#' @section Errors: Edges without the table of their points are an error of
#' class `fsknn_argument_error`. Plots need the package ggplot2, and both plots
#' at once need patchwork.
#' @references
#' Radovanovic M, Nanopoulos A, Ivanovic M (2010). Hubs in Space: Popular
#' Nearest Neighbors in High-Dimensional Data. *Journal of Machine Learning
#' Research* 11: 2487-2531. <https://jmlr.org/papers/v11/radovanovic10a.html>
#' @seealso [results] for the summaries, tables and pictures of other results.
#' @method summary fsknn_edges
#' @export
#' @examples
#' x <- matrix(rnorm(200 * 12), nrow = 200)
#' rownames(x) <- paste0("gene", 1:200)
#' edges <- knn_graph(x, k = 10, backend = "cpu")
#' summary(edges)
#' if (requireNamespace("patchwork", quietly = TRUE)) {
#'   plot(edges)
#' }
summary.fsknn_edges <- function(object, ..., hubs = 5) {
  check_no_more(...)
  hubs <- check_whole_number(hubs, "hubs", 0, .Machine$integer.max)
  facts <- edges_facts(object, "object", current_env())
  num_points <- facts$num_points
  directed <- has_directions(object)
  out <- tabulate(facts$from, num_points)
  in_degree <- tabulate(facts$to, num_points)
  degree <- out + in_degree
  graph <- igraph::add_edges(
    igraph::make_empty_graph(num_points), rbind(facts$from, facts$to)
  )
  sizes <- igraph::components(graph, mode = "weak")$csize
  shown <- if (directed) in_degree else degree
  top <- order(-shown)[seq_len(min(hubs, sum(shown > 0)))]
  value <- shown_value(object, facts)
  structure(
    list(
      header = format_edges_header(object),
      num_points = num_points,
      num_edges = nrow(object),
      isolated = sum(degree == 0),
      components = sort(sizes[sizes > 1], decreasing = TRUE),
      directed = directed,
      reciprocity = if (directed) igraph::reciprocity(graph),
      in_degree = shown,
      hubs = data.frame(
        name = facts$vertices$name[top], in_degree = shown[top]
      ),
      value = value$name,
      quantiles = quantiles_by_rank(if (directed) facts$rank, value$values)
    ),
    class = "summary.fsknn_edges"
  )
}

# If r of either sign is near, the distribution of r would have two peaks.
shown_value <- function(edges, facts) {
  if (!is.numeric(facts$correlation)) {
    return(list(name = "distance", values = facts$distance))
  }
  if (identical(attr(edges, "sign"), "absolute")) {
    list(name = "|correlation|", values = abs(facts$correlation))
  } else {
    list(name = "correlation", values = facts$correlation)
  }
}

# Trees and the edges of clusters contain each pair of points once.
has_directions <- function(edges) {
  kind <- attr(edges, "kind", exact = TRUE)
  !is_undirected(edges) && !isTRUE(grepl("^(Minimum spanning|MST)", kind))
}

shown_quantiles <- c(0.05, 0.25, 0.5, 0.75, 0.95)
quantile_names <- c("q05", "q25", "median", "q75", "q95")

# Returns the default quantiles of quantile() for each rank, or one row without
# ranks. It sorts once, for tens of millions of edges.
quantiles_by_rank <- function(rank, value) {
  there <- !is.na(value)
  with_rank <- !is.null(rank)
  rank <- if (with_rank) as.integer(rank[there]) else rep(1L, sum(there))
  value <- value[there]
  ranks <- sort(unique(rank))
  group <- match(rank, ranks)
  value <- value[order(group, value, method = "radix")]
  count <- tabulate(group, length(ranks))
  before <- cumsum(count) - count
  columns <- lapply(shown_quantiles, function(share) {
    at <- (count - 1) * share
    low <- floor(at)
    first <- value[before + low + 1]
    next_one <- value[before + pmin(low + 1, count - 1) + 1]
    first + (at - low) * (next_one - first)
  })
  names(columns) <- quantile_names
  data.frame(
    rank = if (with_rank) ranks else rep(NA_integer_, length(ranks)),
    edges = count, columns
  )
}

#' @export
print.summary.fsknn_edges <- function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}

#' @method format summary.fsknn_edges
#' @export
format.summary.fsknn_edges <- function(x, ...) {
  # With type 1, quantiles are observed degrees, never between two whole
  # numbers.
  degree <- stats::quantile(x$in_degree, c(0.25, 0.5, 0.75, 1), type = 1)
  degree <- vapply(degree, format_count, "")
  never <- sum(x$in_degree == 0) - x$isolated
  sizes <- vapply(x$components, format_count, "")
  lines <- c(
    "Isolated points" = format_count(x$isolated),
    "Components" = components_in_words(sizes),
    "Edges that go both ways" = if (x$directed) percent_or_none(x$reciprocity),
    "In-degree" = paste0(
      "median ", degree[[2]], ", quartiles ", degree[[1]], " and ",
      degree[[3]], ", largest ", degree[[4]]
    ),
    "Nobody's neighbour" = if (x$directed && never > 0) tally(never, "point")
  )
  if (!x$directed) {
    names(lines)[names(lines) == "In-degree"] <- "Degree"
  }
  lines <- paste0(format(paste0(names(lines), ":")), " ", lines)
  hubs <- paste0(id_text(x$hubs$name), " (", x$hubs$in_degree, ")")
  c(
    x$header, lines,
    if (nrow(x$hubs) > 0) fill_line("Hubs: ", hubs),
    if (nrow(x$quantiles) > 0) format_quantiles(x$quantiles, x$value)
  )
}

components_in_words <- function(sizes) {
  if (length(sizes) == 0) {
    return("none")
  }
  if (length(sizes) == 1) {
    return(paste("1, of", sizes, "points"))
  }
  paste0(
    format_count(length(sizes)), ", of points: ", first_few(sizes, limit = 5L)
  )
}

percent_or_none <- function(share) {
  if (is.finite(share)) percent(share) else "none"
}

# If there are many ranks, only some are shown.
format_quantiles <- function(quantiles, value) {
  few <- unique(c(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000))
  rank <- quantiles$rank
  shown <- length(rank) <= 6 | rank %in% c(few, rank[[length(rank)]])
  body <- quantiles[shown, quantile_names]
  cells <- if (value != "distance") {
    sprintf("%.3f", as.matrix(body))
  } else {
    format(as.matrix(body), digits = 4)
  }
  dim(cells) <- dim(body)
  table <- rbind(c("5%", "25%", "median", "75%", "95%"), cells)
  ranks <- if (anyNA(rank)) c("", "") else c("rank", format(rank[shown]))
  table <- cbind(ranks, table)
  table <- apply(table, 2, formatC, width = max(8, nchar(cells) + 2))
  dim(table) <- c(nrow(body) + 1L, 6L)
  of <- if (anyNA(rank)) "all edges" else "neighbours, by rank"
  title <- c(
    "correlation" = "Correlation", "|correlation|" = "|r|",
    "distance" = "Distance"
  )[[value]]
  c(paste0(title, " of ", of, ":"), apply(table, 1, paste, collapse = ""))
}

# Puts the items after a title, on as many lines as the page needs, without
# breaking an item.
fill_line <- function(title, items, width = page_width()) {
  indent <- "  "
  lines <- character()
  line <- title
  for (at in seq_along(items)) {
    item <- paste0(items[[at]], if (at < length(items)) ",")
    joint <- if (at == 1) "" else " "
    if (at > 1 && nchar(paste0(line, joint, item), "width") > width) {
      lines <- c(lines, line)
      line <- paste0(indent, item)
    } else {
      line <- paste0(line, joint, item)
    }
  }
  c(lines, line)
}

page_width <- function() min(getOption("width"), 80L)
