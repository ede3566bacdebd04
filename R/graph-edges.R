# Edge data frames. Only this file turns neighbours into edges.

# `columns` is a list or data frame with from, to, rank and distance. It also
# has correlation for correlations, or similarity if the metric has its own.
# `vertices` is a data frame with column `name`, all points in order. metric,
# sign, k and num_features (of the points) may be NULL if unknown. `weighted`
# says whether samples had weights. `num_covariates` is the number of
# covariates; NULL or 0 is none. Nothing depends on how the edges were computed:
# they are the same on every backend.
new_knn_edges <- function(columns, vertices, metric = NULL, sign = NULL,
                          k = NULL, weighted = FALSE, num_features = NULL,
                          num_covariates = NULL) {
  # data.frame() would copy and check tens of millions of rows.
  structure(
    as.list(columns),
    row.names = .set_row_names(length(columns$from)),
    class = c("fsknn_edges", "data.frame"),
    vertices = vertices,
    metric = metric,
    sign = sign,
    k = k,
    weighted = if (isTRUE(weighted)) TRUE,
    num_features = num_features,
    num_covariates = num_covariates,
    searched = new_searched()
  )
}

# These attributes need an explanation:
#   kind        name of the edges if they are not a kNN graph
#   directed    FALSE if each pair of points occurs once
#   between     the argument of the search, unless it was FALSE
#   stability, significance  settings of edge_stability(), edge_significance()
#   taken_from  the element of a container that was read (see take_matrix())
#   searched    the record of the search (see search-searched.R)
edge_attributes <- c(
  "vertices", "metric", "sign", "k", "weighted", "num_features",
  "num_covariates", "kind", "left_out", "directed", "between", "stability",
  "significance", "taken_from", "searched"
)

# What the core found, as edges in order of point, then rank: from and to as
# numbers of points, rank, distance and, where there is one, correlation or
# similarity. names:
# of the points, or NULL. Points without edges are isolated, or no vertices at
# all: those of the data frame left_out (or NULL). blocks: see
# search-point_blocks.R.
found_to_edges <- function(found, num_points, k, names = NULL, metric, sign,
                           left_out = NULL, weighted = FALSE,
                           num_features = NULL, num_covariates = NULL,
                           blocks = NULL) {
  columns <- found[
    intersect(c("from", "to", "rank", "distance"), names(found))
  ]
  columns$correlation <- found$correlation
  columns$similarity <- found$similarity
  columns$alleles <- found$alleles
  if (!is.null(blocks)) {
    columns$block <- block_of_points(blocks, columns$to)
  }
  if (!is.null(names)) {
    columns$from <- cpp_names_at(names, columns$from)
    columns$to <- cpp_names_at(names, columns$to)
  }
  vertices <- names %||% seq_len(num_points)
  if (!is.null(left_out)) {
    vertices <- vertices[-left_out$point]
  }
  edges <- new_knn_edges(
    columns, vertices = data.frame(name = vertices),
    metric = metric, sign = sign, k = k, weighted = weighted,
    num_features = num_features, num_covariates = num_covariates
  )
  attr(edges, "left_out") <- left_out
  attr(edges, "between") <- if (!is.null(blocks)) {
    switch(blocks$lists, others = TRUE, together = "together")
  }
  edges
}

# Makes edges from the answer of a search for its own points.
edges_of_search <- function(found, search, call = caller_env()) {
  request <- search$request
  found <- with_similarity(found, search, call)
  edges <- found_to_edges(
    found, nrow(search$points$values), request$k,
    names = search$points$names, metric = request$metric,
    sign = request$sign, left_out = search$left_out,
    weighted = !is.null(request$weights),
    num_features = as.integer(ncol(search$points$values)),
    num_covariates = num_covariates(request), blocks = request$blocks
  )
  attr(edges, "taken_from") <- search$points$taken_from
  with_searched(edges, search)
}

#' @export
`[.fsknn_edges` <- function(x, ...) {
  kept <- attributes(x)[edge_attributes]
  result <- NextMethod()
  if (!is.data.frame(result)) {
    return(result)
  }
  # These are of all rows.
  attributes(result)[c("stage", "min_similarity")] <- NULL
  as_edge_rows(result, kept)
}

# Returns rows of edges, or some of their columns, with the attributes of edges.
as_edge_rows <- function(result, kept) {
  if (!all(c("from", "to") %in% names(result))) {
    # Without these columns, it is a plain data frame.
    attributes(result)[edge_attributes] <- NULL
    class(result) <- "data.frame"
    return(result)
  }
  attributes(result)[edge_attributes] <- kept
  result
}

#' @export
print.fsknn_edges <- function(x, ..., n = 10) {
  cat(format_edges_header(x), "\n", sep = "")
  cat_searched(x, points = FALSE)
  print_first_edges(x, n, ...)
  invisible(x)
}

print_first_edges <- function(x, n, ...) {
  shown <- min(nrow(x), n)
  if (shown > 0) {
    top <- x[seq_len(shown), , drop = FALSE]
    class(top) <- "data.frame"
    top <- with_id_text(top, c("from", "to"))
    print(top, row.names = FALSE, ...)
  }
  if (nrow(x) > shown) {
    cat("... and ", tally(nrow(x) - shown, "more edge"), "\n", sep = "")
  }
}

format_edges_header <- function(x) {
  vertices <- vertex_table(attr(x, "vertices"))
  metric <- attr(x, "metric")
  # Without `exact`, the attribute `kind` would match, too.
  k <- attr(x, "k", exact = TRUE)
  parts <- c(
    if (!is.null(vertices)) tally_points(nrow(vertices), x),
    describe_element(attr(x, "taken_from")),
    tally(nrow(x), "edge"),
    if (!is.null(k)) paste0("k = ", k, in_which_blocks(x)),
    if (!is.null(metric)) {
      describe_metric(
        metric, attr(x, "sign"), attr(x, "weighted"), attr(x, "num_covariates")
      )
    }
  )
  kind <- attr(x, "kind", exact = TRUE) %||% "kNN graph"
  stage <- attr(x, "stage", exact = TRUE)
  if (!is.null(stage)) {
    kind <- paste0(kind, " (stage ", stage[[1]], " of ", stage[[2]], ")")
  }
  paste0(kind, ": ", paste(parts, collapse = ", "))
}

# Says in which blocks the k neighbours of a search by blocks are.
in_which_blocks <- function(edges) {
  between <- attr(edges, "between", exact = TRUE)
  if (identical(between, "together")) {
    " in all other blocks"
  } else if (isTRUE(between)) {
    " in each other block"
  } else if (is.factor(edges[["block"]])) {
    paste(" in each of", tally(nlevels(edges[["block"]]), "block"))
  }
}

# Returns assay "logcounts", or dimred "PCA".
describe_element <- function(taken_from) {
  if (!is.null(taken_from)) {
    paste0(names(taken_from), " \"", taken_from, "\"")
  }
}

# Returns "50 points of 1,000 features", which shows if a matrix was not
# transposed.
tally_points <- function(count, edges) {
  num_features <- attr(edges, "num_features")
  paste0(
    tally(count, "point"),
    if (!is.null(num_features)) paste(" of", tally(num_features, "feature"))
  )
}
