#' Exact neighbours for every package that takes a BiocNeighbors parameter
#'
#' An object to hand as `BNPARAM` to [BiocNeighbors::findKNN()] and its
#' relatives, and to all that call them: `bluster::makeSNNGraph()`,
#' `makeKNNGraph()` and `clusterRows()`, `scran::buildSNNGraph()`,
#' `scater::runUMAP(external_neighbors = TRUE)` and others. They then search by
#' [knn_search()], [knn_query()] and [within_search()]: exactly, with the lower
#' index first on a tie, under any metric, and on the GPU where there is one.
#'
#' The answers have BiocNeighbors' form, and its customs are kept here, though
#' nowhere else in this package:
#' * `k` that is too large is cut down with a warning.
#' * `num.threads` and `BPPARAM` give the number of CPU threads, where
#'   `num_threads` is not set in the parameter. Nothing is forked: of a
#'   `BPPARAM` the number of workers is read.
#' * `get.index` and `get.distance` may be `"normal"` or `"transposed"`, `k` one
#'   number for each point, `threshold` too, `subset` numbers, names or a
#'   logical vector, as BiocNeighbors' help says. `.check.nonfinite` changes
#'   nothing:
#'   values that are not finite are an error.
#' * `weights`, `na` and `min_pairs` can be chosen here; `subset` and `BPPARAM`
#'   are arguments of BiocNeighbors' functions, and a `checkpoint` is not to be
#'   had: who calls them would not know the folder again.
#' * With BiocNeighbors 1.16, ties among the distances are warned of, unless
#'   `warn.ties = FALSE` (the order does not depend on them here), and a point
#'   is among those that `findNeighbors()` gives for it. A `k` that is cut down
#'   to 0 is an error, and so is a row of zeros under `"Cosine"`. Later versions
#'   do none of this: with no neighbour to be had `findDistance()` gives 0, and
#'   a row of zeros stays one, at distance 1 from all others.
#'
#' Some packages search in C++ of their own, as batchelor's `mnnCorrect()` and
#' SingleR do, and ask the parameter for a builder of indices
#' (`BiocNeighbors::defineBuilder()`, from 2.0 on). They get that of
#' BiocNeighbors' exhaustive search, on the CPU: exact, but with their order of
#' ties and their rounding. It knows `"Euclidean"`, `"Manhattan"` and
#' `"Cosine"`; for any other metric, weights or `na` the error says that there
#' is no builder, and names which.
#'
#' BiocNeighbors 1.16 and all versions from 2.0 on are understood. It has to be
#' installed, which this package does not ask for otherwise. A script runs the
#' tests that BiocNeighbors and bluster have of their own with this parameter
#' in place of theirs: `bioc_tests.R`, in the folder `bench` of this package.
#'
#' @param distance The metric, in upper or lower case: one of those of
#'   [knn_search()], such as `"pearson"` or `"Euclidean"` (default). `"Cosine"`
#'   means here what it means in BiocNeighbors: the Euclidean distance of rows
#'   scaled to length 1, \eqn{\sqrt{2 (1 - \cos)}}{sqrt(2 (1 - cos))}. Its
#'   neighbours are those of the metric `"cosine"` of [knn_search()], 1 - cos,
#'   apart from rounding. The default is that of `knn_graph(x, dimred = "PCA")`;
#'   without `dimred` the verbs of this package take `"pearson"`.
#' @param ... More arguments of [knn_search()] by name, such as `sign`,
#'   `backend`, `devices`, `num_threads` or `progress`.
#'
#' @returns An object of S4 class `FsknnParam`, which extends
#'   `BiocNeighborParam`: `distance` is as given, and the slot `options` has the
#'   list of the other arguments. `BiocNeighbors::buildIndex()` makes an
#'   `FsknnIndex` of it, which holds the points. It prepares them for its first
#'   search and keeps them prepared (see [knn_index()]).
#'
#' @section Errors:
#' An unknown metric or argument, one that can't be chosen here, or a value that
#' is not valid (`devices` where the search runs) is an error of class
#' `fsknn_argument_error`; so is every point that has fewer than k neighbours,
#' since those who call would read its missing ones, and a builder for what
#' BiocNeighbors has no search for. Other errors are those of [knn_search()].
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
  "BPPARAM", "checkpoint", "adjust", "data", "block", "between", "output"
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
    nearest <- nearest_spelling(unknown[[1]], known)
    refused <- unknown[[1]] %in% not_options
    abort_argument(
      c(
        "{.arg {unknown[[1]]}} is no argument of {.fn FsknnParam}.",
        i = if (refused) {
          "What it says of {.fn knn_search} is BiocNeighbors' to say, or not to
           be had with it."
        } else if (!is.null(nearest)) {
          "Did you mean {.arg {nearest}}?"
        }
      ),
      call
    )
  }
  # The hardware is checked where the search runs.
  check_choice(
    options$backend %||% "auto", c("auto", "cuda", "cpu"), "backend",
    synonyms = c(gpu = "cuda"), call = call
  )
  told <- options
  told$metric <- metric$name
  told$backend <- "cpu"
  told$devices <- NULL
  check_options(told, call = call)
  options
}
