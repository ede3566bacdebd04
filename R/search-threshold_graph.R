#' The graph of all pairs above a similarity
#'
#' Connects every two points whose similarity is at least `min_similarity`. This
#' is a relevance or co-expression network with a hard threshold. A point may
#' have any number of edges.
#'
#' @details
#' The similarity is
#' * r for correlations (|r| with `sign = "absolute"`, -r with
#'   `sign = "negative"`), and the cosine;
#' * `2 sum(min(a, b)) / sum(a + b)` for `"proportional"` and `"sorensen"`;
#' * `sum(a & b) / sum(a | b)` for `"jaccard"`;
#' * the largest entry of the table of alleles for `"ccc"` and `"duo"` (see
#'   [metrics]).
#'
#' The search compares the similarity itself, which is rounded once. It does not
#' compare 1 - distance, which has lost the last bits. Metrics that measure
#' lengths, such as `"euclidean"`, have no similarity, and neither has
#' `"inner_product"`: see [within_search()].
#'
#' With `na = "pairwise"`, the correlation of two points is over the samples
#' that both have: see "Missing values" in [point_options()]. This is a
#' co-expression network of data with missing values.
#'
#' @param x The points, as for [knn_search()]. If there are row names (column
#'   names with `points = "columns"` or a `dimred`), they name the points and
#'   must be unique.
#' @inheritParams within_search
#' @param metric A metric of [knn_search()] with a similarity: a correlation
#'   (`"pearson"` by default, even with `dimred`), `"cosine"`, `"proportional"`,
#'   `"jaccard"`, `"sorensen"`, `"ccc"` or `"duo"`.
#' @param ... [Point options][point_options()] and [run options][run_options()],
#'   by name, or collected as `options = `. With `constant = "isolate"`, points
#'   for which the metric has no value have no edges. `max_memory` is also a
#'   limit for the answer, for which all free memory may be used by default.
#' @param subset The points whose edges are returned, as for [knn_search()],
#'   without repeats. The result has the edges of the whole graph with at least
#'   one end in `subset`. The other points are vertices, too.
#' @param min_similarity The minimum similarity, one number: between -1 and 1
#'   for correlations and cosine, between 0 and 1 otherwise.
#' @param file Path of a file to which the edges are written during the search.
#'   They then need not fit in memory; `max_memory` limits the part in memory.
#'   `NULL` (default) writes no file. It can't be combined with `subset`,
#'   `BPPARAM`, `checkpoint` or `na = "pairwise"`.
#' @param stage `NULL` (default) for all pairs, or `c(i, of)` for the i-th of
#'   `of` parts with about equally many pairs (the *phases* of CoMet). The parts
#'   may be searched by different processes or on different days. [rbind()]
#'   combines them: see [rbind.fsknn_edges]. A part has the edges of consecutive
#'   points `from`. It can't be combined with `subset`, `BPPARAM`, `checkpoint`
#'   or `na = "pairwise"`.
#' @param format The format of `file` (see [write_edges()]). The default is the
#'   ending of `file`, such as `.csv` or `.csv.gz`.
#'   * `"csv"`: the columns of the data frame with all digits.
#'   * `"comet"`: CoMet's records, for similarities of at least 0.
#'   * `"comet_bytes"`: one byte for each of all pairs. It is for
#'     `"proportional"` and `"sorensen"` with `min_similarity = 0`, and the CPU
#'     computes it.
#'
#' @returns A data frame of class `fsknn_edges` with each pair of points once,
#'   in the order of `from`, the earlier one in `x`, then of distance:
#'   * `from`, `to`: the points, as row names of `x` if it has any (character),
#'     otherwise as row numbers (integer);
#'   * `distance`: double, as in [knn_search()];
#'   * `correlation`: for correlations only, the signed r, for every `sign`;
#'   * `similarity`: for `"proportional"`, `"sorensen"`, `"jaccard"`, `"ccc"`
#'     and `"duo"` only, the double that was compared;
#'   * `alleles`: for `"ccc"` and `"duo"` only, the entry of the table of
#'     alleles (see [metrics]).
#'
#'   The attribute `vertices` holds all points, including isolated ones.
#'   [as_igraph()] makes an undirected graph of it. The attribute `stage` holds
#'   the argument, if it was given.
#'
#'   With `file`, a list of class `fsknn_found_file` instead, with a print
#'   method: `file`, `format`, `what` (`"edge"`), `count` (their number),
#'   `metric`, `min_similarity`, `num_points` and `stage`. The file is in the
#'   order of the data frame, and has another name until it is complete.
#' @section Errors:
#' Errors are those of [knn_search()]. The pairs are counted before memory for
#' them is allocated. If they do not fit in it, or exceed the 2^31 - 1 rows of a
#' data frame, the call is a `fsknn_size_error`. It reports a `min_similarity`
#' with which they would fit.
#' @inheritSection within_search Missing values
#' @inherit knn_search references
#' @seealso [knn_graph()] for a fixed number of neighbours of each point,
#'   [within_search()] for distances and for lists.
#' @export
#' @examples
#' x <- matrix(rnorm(200 * 12), nrow = 200)
#' rownames(x) <- paste0("gene", 1:200)
#' edges <- threshold_graph(x, min_similarity = 0.7)
#' edges
#' g <- as_igraph(edges, weight = "similarity")
#' igraph::count_components(g)
#'
#' # in three parts
#' parts <- lapply(1:3, function(i) {
#'   threshold_graph(x, min_similarity = 0.7, stage = c(i, 3))
#' })
#' nrow(do.call(rbind, parts))
threshold_graph <- function(x, min_similarity, metric = "pearson",
                            sign = "signed", ..., subset = NULL, stage = NULL,
                            file = NULL, format = NULL) {
  check_supplied(x)
  check_supplied(min_similarity)
  options <- verb_options("threshold_graph", ...)
  least <- check_similarity(min_similarity, options$metric)
  sink <- check_edge_file(file, format, least, subset, options)
  stage <- check_pair_stage(stage, subset, options, sink)
  options <- options_for_bytes(options, sink, least, logical(), current_env())
  search <- new_search(x, options, subset = subset, as_edges = TRUE)
  search <- ask_within(search, 1 - least, similarity = least)
  search$stage <- stage
  if (identical(sink$format, "comet_bytes")) {
    return(write_bytes_found(search, sink, "edge", 2, current_env()))
  }
  if (!is.null(sink)) {
    return(write_found_edges(search, sink))
  }
  if (!is.null(stage)) {
    edges <- threshold_edges(find_stage_edges(search), search)
    attr(edges, "min_similarity") <- least
    attr(edges, "stage") <- stage
    return(edges)
  }
  threshold_edges(run_search(search), search)
}

threshold_edges <- function(found, search, call = caller_env()) {
  if (!is.null(search$request$subset)) {
    found <- edges_of_some(found, search)
  }
  if (!has_correlation(search$options$metric)) {
    found$correlation <- NULL
  }
  edges <- edges_of_search(keep_similar(found, search, call), search, call)
  as_undirected(edges, "Threshold graph")
}

# Selects the edges of the requested points from the graph of all points, in its
# order.
edges_of_some <- function(found, search) {
  num_points <- nrow(search$points$values)
  edges <- each_pair_once(
    found, are_asked(search$request$subset, num_points)
  )
  in_order <- order(edges$from, edges$distance, edges$to, method = "radix")
  lapply(edges, `[`, in_order)
}

check_similarity <- function(similarity, metric, call = caller_env()) {
  if (metric$similarity %in% c("reciprocal", "none")) {
    abort_argument(
      c(
        "Metric {.val {metric$name}} has no similarity to compare with
         {.arg min_similarity}.",
        i = "Use {.fn within_search} with a distance."
      ),
      call
    )
  }
  signed <- has_correlation(metric) || metric$name == "cosine"
  least <- if (signed) -1 else 0
  most <- metric$most %||% 1
  plain <- is.numeric(similarity) && !is.object(similarity) &&
    length(similarity) == 1 && !is.na(similarity)
  if (!plain || similarity < least || similarity > most) {
    given <- describe_value(similarity)
    abort_argument(
      "{.arg min_similarity} must be a number between {least} and {most}, not
       {given}.",
      call
    )
  }
  as.double(similarity)
}

# Marks edges that contain each pair once, in either direction. `kind` is the
# name that is printed.
as_undirected <- function(edges, kind) {
  attr(edges, "kind") <- kind
  attr(edges, "directed") <- FALSE
  edges
}

is_undirected <- function(edges) {
  isFALSE(attr(edges, "directed"))
}
