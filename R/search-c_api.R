#' Neighbours for the C and C++ code of other packages
#'
#' The header `fsknn.h` has one function, `fsknn_find()`. It finds the k nearest
#' neighbours of each row of a matrix, or of each query among them, from plain
#' pointers. The answers are those of [knn_search()] and [knn_query()], to the
#' last bit, on the CPU or on all GPUs.
#'
#' @section Your package:
#' The file `DESCRIPTION` needs both `Imports: fsknn` and `LinkingTo: fsknn`,
#' and `NAMESPACE` needs `importFrom(fsknn, knn_search)`, so that fsknn is
#' loaded before your code calls it. The header is C, and works in C++, too:
#'
#' ```c
#' #include <Rinternals.h>
#' #include <fsknn.h>
#'
#' /* x: a double matrix. index, distance: integer and double, [nrow(x) x k] */
#' void nearest(SEXP x, int k, int *index, double *distance) {
#'   char message[256];
#'   fsknn_request request = {0};
#'   request.points = REAL(x);
#'   request.num_points = Rf_nrows(x);
#'   request.num_features = Rf_ncols(x);
#'   request.k = k;
#'   request.metric = "euclidean";
#'   request.num_threads = 2;
#'   request.index = index;
#'   request.distance = distance;
#'   if (fsknn_find(&request, message, sizeof message) != FSKNN_OK)
#'     Rf_error("%s", message);
#' }
#' ```
#'
#' @section The request:
#' * Matrices are column-major doubles, as in R, and points are their rows.
#'   `index` has numbers from 1 and the order of [knn_search()], with a column
#'   for each neighbour. All memory is the caller's.
#' * `metric` is one of [metrics], `sign` is that of [knn_search()], and
#'   `backend` is `"cpu"` (default) or `"cuda"`. Weights, covariates, blocks and
#'   missing values are not available.
#' * Values that are `NA`, `NaN` or infinite are refused, and so are all others
#'   that [knn_search()] refuses by default.
#'
#' @section Failures:
#' `fsknn_find()` returns a status and writes a sentence into the caller's
#' buffer. It throws no C++ exception and raises no error of R, as long as fsknn
#' is loaded.
#'
#' Call it only on R's main thread, because it checks for Ctrl-C about ten times
#' a second. It then returns `FSKNN_INTERRUPTED`, and R no longer knows of the
#' interrupt. The search itself uses `num_threads` threads.
#'
#' The header has a version, which each call checks against the loaded fsknn. If
#' they differ, the status is `FSKNN_OTHER_VERSION`, and the calling package
#' must be installed again. [knn_stats()] has no facts about these searches.
#' @seealso The header itself, `system.file("include", "fsknn.h", package =
#'   "fsknn")`, describes each member and status.
#' @name fsknn-api
#' @examples
#' readLines(system.file("include", "fsknn.h", package = "fsknn"), n = 8)
NULL
