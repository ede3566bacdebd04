#' @description
#' Exact k-nearest-neighbour graphs of gene-expression matrices, on GPUs and on
#' CPUs. The result is the same to the last bit on all of them. Rows are points
#' (probes, genes), columns are features (samples).
#'
#' Start with [knn_graph()], which returns an edge data frame, and
#' [as_igraph()]. `vignette("fsknn")` is an introduction.
#'
#' * Neighbours: [knn_graph()] returns edges, [knn_search()] and [knn_query()]
#'   return matrices. [nearest_to()] finds the neighbours of one point or
#'   outcome, with p-values. [within_search()], [within_query()] and
#'   [threshold_graph()] find all neighbours within a distance.
#' * Graphs from graphs: [undirected_edges()], [snn_graph()] and
#'   [combine_graphs()]. [knn_recall()] measures the recall of an approximate
#'   search.
#' * Checks: printed results show what was searched, where, and how long it
#'   took. [knn_verify()] recomputes a sample of rows from the definition.
#' * Plans and statistics: [knn_plan()] describes a search in advance,
#'   [knn_stats()] afterwards. [knn_backends()] lists backends and GPUs.
#' * Before the graph: [mdl_filter()] and [alpha_beta_k()] select rows that
#'   separate classes. [metafeatures()] represents all pairs of rows.
#'   [add_phenotype()] adds an outcome as one more point. [nki_study()] loads
#'   the data of the breast-cancer study.
#' * After the graph: [spanning_forest()] and [mst_knn()] compute trees and
#'   clusters. [plot_neighbourhood()] and [plot_profiles()] draw them. Results
#'   have the methods `summary()`, `as.data.frame()` and `plot()`: see
#'   [results].
#' * Other packages: [FsknnParam()] is for functions with an argument `BNPARAM`.
#'   [as_igraph()] and [as_sparse()] convert graphs, and [as_knn()] converts
#'   neighbours from other packages.
#' * Files: [read_points()], [read_knn()], [read_edges()] and the corresponding
#'   functions for writing. [read_h5ad()] and [write_h5ad_neighbours()] are for
#'   AnnData. [read_plink()] reads genotypes.
#'
#' @section Options:
#' * `fsknn.num_threads`: an upper limit for the default of `num_threads`.
#' * `fsknn.max_device_memory`: the default of `max_device_memory`, the maximum
#'   memory on each GPU, as bytes or a string such as `"4 GiB"`.
#' * `fsknn.max_memory`: the default of `max_memory`, the maximum memory for
#'   data that are read by blocks.
#' * `fsknn.show_time`: `FALSE` omits the line "Time" (seconds and backend) from
#'   printed results, for documents that must not change.
#' * `fsknn.temporary_folder`: the folder for data that do not fit in memory.
#' * `fsknn.split_size`: the number of points in a split of the work of
#'   `BPPARAM` or `checkpoint`.
#' * `fsknn.instruction_set`: an instruction set of [knn_backends()], which the
#'   CPU then uses instead of the best one. It is an aid for tests and does not
#'   change the answer: see "Instruction sets in tests".
#'
#' [run_options()] has defaults for a session, too.
#'
#' @section Instruction sets in tests:
#' A suffix of `options(fsknn.instruction_set = )`, behind a name or `auto`,
#' selects how the filter computes. By default a sample of the data decides,
#' with costs that were measured for AVX2 and AVX-512. For NEON, they come from
#' a count of instructions.
#' * `/8` and `/16` use integers of 8 or 16 bits. They are for products of rows
#'   of length 1 (correlations, cosine) and for sums of differences (Manhattan,
#'   Proportional Similarity).
#' * `/32` computes differences in floats.
#' * `/all` uses no filter on GPUs.
#' * `/sorted`, `/tree` and `/scattered` compare points in that order, even if
#'   it is slower. It is that of sums or lengths (on CPUs), of a tree, or
#'   random.
#' * `/hasty` comes last. It makes many guessed limits wrong, so that rows are
#'   searched again.
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
