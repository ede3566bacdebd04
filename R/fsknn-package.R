#' @description
#' Exact k-nearest-neighbour graphs of gene-expression matrices, on GPUs and on
#' CPUs, with the same answer to the last bit on all of them. Rows are points
#' (probes, genes), columns are features (samples).
#'
#' Start with [knn_graph()], which gives an edge data frame, and [as_igraph()];
#' `vignette("fsknn")` shows the way.
#'
#' * Neighbours: [knn_graph()], and as plain matrices [knn_search()] and
#'   [knn_query()]; [nearest_to()] those of one point alone. All within a
#'   distance: [within_search()], [within_query()], [threshold_graph()].
#' * Graphs of graphs: [undirected_edges()], [snn_graph()], [combine_graphs()];
#'   [knn_recall()] compares an approximate one.
#' * Checks: results print what was searched, where and how long it took;
#'   [knn_verify()] computes a sample of rows again by the definition.
#' * What runs where: [knn_plan()] says it beforehand, [knn_stats()] afterwards;
#'   [knn_backends()] what there is to run on.
#' * Before the graph: [mdl_filter()] and [alpha_beta_k()] choose rows that tell
#'   of a class, [metafeatures()] stands for all their pairs, [add_phenotype()]
#'   makes an outcome one more point, and [nki_study()] brings the breast-cancer
#'   study's data.
#' * After it: [spanning_forest()] and [mst_knn()] make trees and clusters,
#'   [plot_neighbourhood()] and [plot_profiles()] pictures. Results have
#'   `summary()`, `as.data.frame()` and `plot()`: see [results].
#' * To and from other packages: [FsknnParam()] for all that take a `BNPARAM`;
#'   [as_igraph()], [as_sparse()]; [as_knn()] for the neighbours of
#'   others; [read_points()], [read_knn()], [read_edges()] and their writers for
#'   files.
#'
#' @section Options:
#' * `fsknn.num_threads`: an upper limit for the default of `num_threads`.
#' * `fsknn.max_device_memory`: the default of `max_device_memory`, the most
#'   memory to use on each GPU, as bytes or a string such as `"4 GiB"`.
#' * `fsknn.max_memory`: the default of `max_memory`, the most memory to use for
#'   data that are read by blocks.
#' * `fsknn.show_time`: `FALSE` leaves the line "Time" (seconds and backend) out
#'   of the prints of results, for documents that must not change.
#' * `fsknn.temporary_folder`: where data that do not fit in memory go.
#' * `fsknn.split_size`: points in a split of work that is dealt out or kept by
#'   `checkpoint`.
#' * `fsknn.instruction_set`: one of the instruction sets that
#'   [knn_backends()] names, to have the CPU engine use that one instead of the
#'   best; with `/8` or `/16` behind it, or behind `auto`, products of rows of
#'   length 1 (correlations, cosine) and sums of differences (Manhattan,
#'   Proportional Similarity) in whole numbers of so many bits, instead of what
#'   a sample of the data says (by prices that were measured with AVX2 and
#'   AVX-512; with NEON, by instructions that were counted). With `/32`
#'   differences are floats; with `/all` GPUs filter no graph; with `/sorted` or
#'   `/scattered` points are met in that order, whether or not it pays; with
#'   `/hasty` at the end, what is guessed of limits is often wrong, and rows are
#'   done again. The answer is the same; this is an aid for tests.
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
  cpp_give_back_held(NULL)
  is_loaded$now <- FALSE
  cpp_give_back() # pinned memory that is kept from call to call
  library.dynam.unload("fsknn", libpath)
}
