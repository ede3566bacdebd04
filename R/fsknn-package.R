#' @description
#' Exact k-nearest-neighbour graphs of gene-expression matrices, on GPUs and on
#' CPUs, with the same answer to the last bit on all of them. Rows are points
#' (probes, genes), columns are features (samples).
#'
#' Start with [knn_graph()], which gives an edge data frame, and [as_igraph()].
#' [find_knn()] and [query_knn()] give plain matrices. [knn_plan()] says what
#' would run where, [knn_backends()] and [cuda_devices()] what there is to run
#' on, [knn_stats()] what the last search was like.
#'
#' [knn_mst()] and [mst_knn()] make trees and clusters, [write_edges()] files for
#' other programs, [plot_neighbourhood()] and [plot_profiles()] pictures.
#'
#' @section Options:
#' * `fsknn.num_threads`: an upper limit for the default of `num_threads`.
#' * `fsknn.max_device_memory`: the default of `max_device_memory`, the most
#'   memory to use on each GPU, as bytes or a string such as `"4 GiB"`.
#' * `fsknn.instruction_set`: one of the instruction sets that
#'   [knn_backends()] names, to have the CPU engine use that one instead of the
#'   best. The answer is the same; this is an aid for tests.
#'
#' @references
#' Arefin AS, Riveros C, Berretta R, Moscato P (2012). GPU-FS-kNN: A Software
#' Tool for Fast and Scalable kNN Computation Using GPUs. *PLoS ONE* 7(8):
#' e44000. \doi{10.1371/journal.pone.0044000}
#'
#' @useDynLib fsknn, .registration = TRUE
#' @importFrom Rcpp sourceCpp
#' @importFrom BiocGenerics t
#' @importFrom cli cli_abort
#' @importFrom rlang %||% .data caller_env current_env
#' @keywords internal
"_PACKAGE"

.onLoad <- function(libname, pkgname) {
  register_when_loaded()
}

.onUnload <- function(libpath) {
  library.dynam.unload("fsknn", libpath)
}
