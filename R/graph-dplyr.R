# Methods of dplyr's and tidygraph's generics for edges and triples, registered
# if these packages are installed.

# dplyr's verbs end with this call. `data` is their result, and `template` the
# edges that they were given.
#' @exportS3Method dplyr::dplyr_reconstruct
dplyr_reconstruct.fsknn_edges <- function(data, template) {
  class(data) <- class(template)
  as_edge_rows(data, attributes(template)[edge_attributes])
}

#' @rawNamespace S3method(dplyr::dplyr_reconstruct,fsknn_triples,
#'   reconstruct_triples)
reconstruct_triples <- function(data, template) {
  class(data) <- class(template)
  as_triple_rows(data, template)
}

#' @rawNamespace S3method(dplyr::dplyr_reconstruct,fsknn_triple_histogram,
#'   reconstruct_bins)
reconstruct_bins <- function(data, template) {
  attributes(data)[histogram_attributes] <-
    attributes(template)[histogram_attributes]
  class(data) <- class(template)
  as_bins(data, template)
}

# The conversion uses igraph, because tidygraph would take the points of a data
# frame from its edges and drop isolated ones.
#' @exportS3Method tidygraph::as_tbl_graph
as_tbl_graph.fsknn_edges <- function(x, ...) {
  tidygraph::as_tbl_graph(as_igraph(x), ...)
}

#' @exportS3Method tidygraph::as_tbl_graph
as_tbl_graph.fsknn_mst_knn <- function(x, ...) {
  tidygraph::as_tbl_graph(as_igraph(x$edges, mode = "union"), ...)
}
