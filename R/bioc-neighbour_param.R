#' Use fsknn through BiocNeighbors
#'
#' Creates an object for the argument `BNPARAM` of [BiocNeighbors::findKNN()],
#' related functions, and all functions that call them. Examples are
#' `bluster::makeSNNGraph()`, `makeKNNGraph()` and `clusterRows()`,
#' `scran::buildSNNGraph()` and `scater::runUMAP(external_neighbors = TRUE)`.
#' They then search by [knn_search()], [knn_query()] and [within_search()].
#' Answers are exact, with the lower index first on a tie. Any metric is
#' possible, and a GPU is used if there is one.
#'
#' @section Conventions of BiocNeighbors: Answers have BiocNeighbors' form.
#' These conventions differ from the rest of this package:
#' * A `k` that is too large is reduced with a warning.
#' * `num.threads` or the number of workers of `BPPARAM` sets the number of CPU
#'   threads, unless the parameter has `num_threads`. No process is forked.
#' * `get.index` and `get.distance` may be `"normal"` or `"transposed"`. `k` and
#'   `threshold` may have one number for each point. `subset` may be numbers,
#'   names or a logical vector. See the help of BiocNeighbors.
#' * `.check.nonfinite` has no effect: values that are not finite are an error.
#' * `weights`, `na` and `min_pairs` are set here. `subset` and `BPPARAM` are
#'   arguments of BiocNeighbors' functions. `checkpoint` is not available,
#'   because callers could not find the folder again.
#'
#' BiocNeighbors 1.16 and all versions from 2.0 on are supported. This package
#' does not require BiocNeighbors otherwise, so install it yourself. With
#' version 1.16, these conventions apply, too:
#' * Ties among the distances give a warning, unless `warn.ties = FALSE`,
#'   although they do not change the order here.
#' * `findNeighbors()` includes the point itself.
#' * A `k` that is reduced to 0 is an error, and so is a row of zeros under
#'   `"Cosine"`.
#'
#' With later versions, `findDistance()` gives 0 if there is no neighbour, and a
#' row of zeros has distance 1 from all others.
#'
#' @section Packages that search in C++: Some packages, such as batchelor
#' (`mnnCorrect()`) and SingleR, search in their own C++ code. They ask the
#' parameter for a builder of indices (`BiocNeighbors::defineBuilder()`, from
#' version 2.0 on). They get the builder of BiocNeighbors' exhaustive search on
#' the CPU. It is exact, but the order of ties and the rounding are those of
#' BiocNeighbors.
#'
#' The builder supports `"Euclidean"`, `"Manhattan"` and `"Cosine"`. For
#' another metric, weights or `na`, there is no builder, and the error names the
#' cause.
#'
#' @section Tests: The script `bioc_tests.R`, in the folder `bench` of this
#' package, runs the tests of BiocNeighbors and bluster with this parameter in
#' place of theirs.
#'
#' @param distance The metric, in upper or lower case: one of those of
#'   [knn_search()], such as `"pearson"` or `"Euclidean"` (default). The default
#'   is as in `knn_graph(x, dimred = "PCA")`; without `dimred`, the default in
#'   this package is `"pearson"`. `"Cosine"` has the meaning of BiocNeighbors:
#'   the Euclidean distance of rows scaled to length 1,
#'   \eqn{\sqrt{2 (1 - \cos)}}{sqrt(2 (1 - cos))}. Except for rounding, its
#'   neighbours are those of the metric `"cosine"` of [knn_search()], 1 - cos.
#' @param ... More arguments of [knn_search()] by name, such as `sign`,
#'   `backend`, `devices`, `num_threads` or `progress`.
#'
#' @returns An object of S4 class `FsknnParam`, which extends
#'   `BiocNeighborParam`. It has `distance` as given, and the slot `options`
#'   with the list of the other arguments. `BiocNeighbors::buildIndex()` makes
#'   an `FsknnIndex` of it, which holds the points. It prepares them for its
#'   first search and keeps them prepared (see [knn_index()]).
#'
#' @section Errors:
#' The following are errors of class `fsknn_argument_error`:
#' * an unknown metric or argument, or one that can't be set here;
#' * a value that is not valid (`devices` is checked where the search runs);
#' * a point with fewer than k neighbours, because callers would use its missing
#'   ones;
#' * a builder for a search that BiocNeighbors does not have.
#'
#' Other errors are those of [knn_search()].
#' @references
#' Lun A (2018). BiocNeighbors: Nearest Neighbor Detection for Bioconductor
#' Packages. \doi{10.18129/B9.bioc.BiocNeighbors}
#' @seealso [knn_search()] and [knn_query()], without BiocNeighbors.
#' @aliases FsknnParam-class FsknnIndex-class
#' @export
#' @examples
#' if (requireNamespace("BiocNeighbors", quietly = TRUE)) {
#'   x <- matrix(rnorm(200 * 12), nrow = 200)
#'   param <- FsknnParam("pearson", backend = "cpu")
#'   nn <- BiocNeighbors::findKNN(x, k = 3, BNPARAM = param)
#'   head(nn$index)
#'   if (requireNamespace("bluster", quietly = TRUE)) {
#'     print(bluster::makeSNNGraph(x, k = 5, BNPARAM = param))
#'   }
#' }
FsknnParam <- function(distance = "Euclidean", ...) {
  options <- check_neighbour_options(distance, list(...))
  if (!requireNamespace("BiocNeighbors", quietly = TRUE)) {
    abort_argument(
      c(
        "The package {.pkg BiocNeighbors} is needed for {.fn FsknnParam}, and is
         not installed.",
        i = "Install it with {.code BiocManager::install(\"BiocNeighbors\")}."
      ),
      current_env()
    )
  }
  register_neighbours()
  methods::new(
    "FsknnParam", distance = distance, options = options, package = topenv()
  )
}

# Returns this package's name for a metric, ignoring case. Only "cosine" means
# BiocNeighbors' own. `unit` says that rows are first scaled to length 1.
metric_of_distance <- function(distance, call = caller_env()) {
  known <- metric_table()$name
  if (rlang::is_string(distance) && is_valid_text(distance)) {
    word <- tolower(distance)
    if (identical(word, "cosine")) {
      return(list(metric = "euclidean", unit = TRUE))
    }
    if (word %in% known) {
      return(list(metric = word, unit = FALSE))
    }
  }
  check_choice(
    distance, c(known, "Euclidean", "Manhattan", "Cosine"), "distance",
    synonyms = metric_synonyms(), call = call
  )
}

# These arguments of knn_search() belong to BiocNeighbors, or would break its
# callers. They read every index, so no point may lack neighbours.
not_options <- c(
  "x", "k", "metric", "constant", "subset", "points", "assay", "dimred",
  "BPPARAM", "checkpoint", "adjust", "data", "block", "between", "output",
  "statistic", "family"
)

check_neighbour_options <- function(distance, options, call = caller_env()) {
  metric <- metric_facts(metric_of_distance(distance, call = call)$metric)
  refuse_below_zero(
    metric, "{.fn FsknnParam}",
    "those who call take distances for lengths",
    "{.fn knn_search} takes it.", call
  )
  names <- rlang::names2(options)
  if (any(names == "")) {
    abort_argument("Arguments after {.arg distance} must be named.", call)
  }
  known <- setdiff(c("sign", option_names()), not_options)
  unknown <- setdiff(names, known)
  if (length(unknown) > 0) {
    name <- unknown[[1]]
    meant <- if (name %in% not_options) {
      name
    } else {
      meant_argument(name, c(known, not_options))
    }
    metric_given <- options[[name]]
    abort_argument(
      c(
        "{.arg {name}} is no argument of {.fn FsknnParam}.",
        i = if (is.null(meant)) {
          NULL
        } else if (meant == "metric") {
          if (rlang::is_string(metric_given)) {
            "Use {.code distance = \"{metric_given}\"}."
          } else {
            "Use {.arg distance}."
          }
        } else if (meant %in% c("k", "subset", "BPPARAM")) {
          "Give {.arg {meant}} to BiocNeighbors' functions, such as
           {.fn BiocNeighbors::findKNN}."
        } else if (meant == "x") {
          "Give the data to BiocNeighbors' functions, such as
           {.fn BiocNeighbors::findKNN}."
        } else if (meant %in% not_options) {
          "BiocNeighbors has no {.arg {meant}}: use {.fn knn_search}."
        } else {
          "Did you mean {.arg {meant}}?"
        }
      ),
      call
    )
  }
  check_backend(options$backend %||% "auto", call)
  as_searched <- options
  as_searched$metric <- metric$name
  as_searched$backend <- "cpu"
  as_searched$devices <- NULL
  check_options(as_searched, call = call)
  options
}
