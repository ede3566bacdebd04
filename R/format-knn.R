#' Read and write neighbours
#'
#' Reads the answer of a k-nearest-neighbour search from a file or a folder, and
#' writes it to a file of another program.
#'
#' | `format` | default for | result of `read_knn()` |
#' | --- | --- | --- |
#' | `"knn"` | all other files | GPU-FS-kNN, as [knn_graph()] |
#' | `"ibin"` | `.ibin` files | big-ann-benchmarks, as [knn_search()] |
#' | `"shards"` | folders | the answer of `knn_search(output = )`, opened |
#'
#' A file gets its name when it is complete. After an error, Ctrl-C or a full
#' disk, an older file is unchanged.
#'
#' @section Edges of GPU-FS-kNN: This is the `.knn` text format of the program
#' that GPU-FS-kNN was published with (Arefin 2012, File S1). The first line
#' holds the number of points and the number of edges. Each further line holds
#' one edge: `source target weight`, points counted from 0, the weight with six
#' decimals.
#'
#' The weight is the signed correlation r if the metric is a correlation
#' (whatever `sign` is), otherwise the distance. The format contains neither the
#' names of the points nor the metric. Give them to `read_knn()` again. Weights
#' that are read back agree to six decimals.
#'
#' @section Neighbours of big-ann-benchmarks: The ground truth of these
#' benchmarks is an `.ibin` file. It holds the number of rows n and the number
#' of neighbours k. Then it holds n x k numbers of neighbours, integers of 4
#' bytes, and n x k distances, floats of 4 bytes. Numbers count from 0 in the
#' file and from 1 in R, and -1 means no neighbour (`NA`).
#'
#' Any other negative number, a neighbour that a row has twice, and a neighbour
#' without a distance are errors. Among equally distant points, the lower number
#' comes first. So duplicate points have one right answer. Other programs write
#' squared Euclidean distances, but here `distance` is the distance itself.
#' [read_points()] reads the vectors of these benchmarks.
#'
#' @section Shards: A search with `output = ` writes its answer to a folder (see
#' [knn_output()]). `read_knn()` opens it as one answer, whose matrices are read
#' when they are used. It reads the description of the answer and, of each file,
#' the size and a digest of its ends (64 KiB each). A file that is missing,
#' truncated, incomplete or from another answer is an error that names it.
#' `verify = TRUE` reads all bytes, and finds any that has changed.
#'
#' Verbs that take an answer also take shards:
#' * by blocks of rows, with one block in memory: `write_knn()` to an `.ibin`
#'   file, [knn_recall()] for either or both answers, [spanning_forest()] with
#'   the tree;
#' * by blocks, into a result that must fit in memory: [as_sparse()] of
#'   distances or ones, [diffusion_map()], and [snn_graph()], which reads the
#'   indices only;
#' * all others ([as_knn()], [undirected_edges()], ...) as a whole.
#'
#' Some verbs need all neighbours at once: [diffusion_map()], [as_sparse()] for
#' symmetric matrices, and those that take the answer as a whole. They refuse an
#' answer with more than `options(fsknn.max_memory = )`, by default a third of
#' the free memory, at 12 bytes for each neighbour. [snn_graph()] has the same
#' limit at 4 bytes for each neighbour.
#'
#' @param file Path of the file, or of the folder of shards. Files of the format
#'   `"knn"` may be compressed: `read_knn()` reads gzip, bzip2 and xz, and
#'   `write_knn()` writes gzip if the path ends in `.gz`.
#' @param format `"knn"`, `"ibin"` or `"shards"`. `NULL` (default): see the
#'   table. `write_knn()` has the first two.
#' @param ... Must be empty.
#' @param metric,sign Format `"knn"`: the metric and sign of the weights, as in
#'   [knn_graph()]. `NULL` (default) is `"pearson"` and `"signed"`.
#' @param names Format `"knn"`: names of the points, in their order: a character
#'   vector with a name for each point of the file. `NULL` (default): points are
#'   numbers.
#' @param verify Format `"shards"`: read all bytes of all files, and compare
#'   their digests? `FALSE` by default.
#' @param edges For `"knn"`, an edge data frame from [knn_graph()]. For
#'   `"ibin"`, neighbours in any shape that [as_knn()] takes, with equally many
#'   for each point, or shards. The rows are points of the same data or queries.
#' @param vertices Format `"knn"`: all points in order, as in [as_igraph()]. It
#'   is needed only if `edges` has lost them.
#' @param distances Format `"ibin"`: write distances, as ground truth has them?
#'   `NULL` (default) does so if there are any.
#' @param object The result of `read_knn()` for a folder.
#'
#' @returns `read_knn()`, by format:
#'   * `"knn"`: an edge data frame as from [knn_graph()]. `from` and `to` are
#'     names, or integers counted from 1. `rank` is the order by distance within
#'     a source, with ties in the order of the file. `distance` and, for a
#'     correlation, `correlation` follow. Rows are ordered by source, then rank.
#'     The vertices include points without edges.
#'   * `"ibin"`: neighbours as from [knn_search()]. `distance` is `NULL` if the
#'     file has none.
#'   * `"shards"`: a list of class `fsknn_shards`. `index` and `distance` are as
#'     from [knn_search()], but each is a `DelayedMatrix`. It has a row for each
#'     point of the search and k columns (with `block`, k for each block).
#'     `folder` is the path, and `facts` a list that describes the answer.
#'
#'   `facts` has the elements `rows`, `columns`, `points`, `of`, `metric`,
#'   `sign`, `format`, `precision` and `files`. `points` is the number of points
#'   that indices refer to. `of` is `"points"`, `"subset"` or `"queries"`, and
#'   `files` is a data frame.
#'
#'   For shards, `dim()` gives the dimensions of the matrices. `summary()` gives
#'   quantiles of the distance for each rank, and reads all distances, some
#'   columns at a time.
#'
#'   `write_knn()`: `file`, invisibly.
#' @section Errors:
#' A file that breaks its format is a `fsknn_file_error`. For a text file, the
#' error names the line, the condition and what was found:
#' * a first line that is not two counts, or another number of edges than it
#'   says;
#' * a line that is not two whole numbers and a finite one;
#' * a point that does not exist, or is its own neighbour;
#' * an edge that occurs twice;
#' * a weight that the metric can't have.
#'
#' Edges whose distances decrease within every source are a warning: `metric` or
#' `sign` is probably different. A folder without an answer, or whose files have
#' changed, is a `fsknn_shards_error`. An option that is not for the format is a
#' `fsknn_argument_error`.
#' @inherit read_points references
#' @seealso [write_edges()] for graphs in other formats, [knn_recall()] for the
#'   quality of an approximate search.
#' @export
#' @examples
#' x <- matrix(rnorm(60), nrow = 10)
#' rownames(x) <- paste0("gene", 1:10)
#' edges <- knn_graph(x, k = 3, metric = "pearson", backend = "cpu")
#' file <- tempfile(fileext = ".knn")
#' write_knn(edges, file)
#' head(readLines(file), 4)
#' head(read_knn(file, metric = "pearson", names = rownames(x)), 3)
#'
#' # the ground truth of queries
#' truth <- knn_query(x, x[1:5, ] + 0.01, k = 3, metric = "euclidean")
#' file <- tempfile(fileext = ".ibin")
#' write_knn(truth, file)
#' read_knn(file)
#'
#' # an answer in a folder
#' if (requireNamespace("HDF5Array", quietly = TRUE)) {
#'   folder <- tempfile()
#'   knn_search(x, k = 3, output = folder)
#'   nn <- read_knn(folder, verify = TRUE)
#'   dim(nn)
#'   nn$distance
#'   unlink(folder, recursive = TRUE)
#' }
read_knn <- function(file, format = NULL, ..., metric = NULL, sign = NULL,
                     names = NULL, verify = FALSE) {
  check_no_more(...)
  check_supplied(file)
  verify <- check_flag(verify, "verify")
  call <- current_env()
  is_folder <- rlang::is_string(file) && isTRUE(dir.exists(path.expand(file)))
  format <- if (is.null(format)) {
    if (is_folder) "shards" else knn_format(file, call)
  } else {
    check_choice(format, c("knn", "ibin", "shards"), "format")
  }
  check_for_formats(
    format, "knn", list(metric = metric, sign = sign, names = names)
  )
  if (format == "shards") {
    return(read_shards(file, verify, call))
  }
  if (verify) {
    abort_for_formats("verify", "shards", format)
  }
  path <- check_path_in(file)
  if (format == "ibin") {
    read_ibin_file(file, path, call)
  } else {
    read_knn_file(file, path, metric, sign, names, call)
  }
}

#' @rdname read_knn
#' @export
write_knn <- function(edges, file, format = NULL, ..., vertices = NULL,
                      distances = NULL) {
  check_no_more(...)
  check_supplied(edges)
  path <- check_path_out(file)
  call <- current_env()
  format <- if (is.null(format)) {
    knn_format(file, call)
  } else {
    check_choice(format, c("knn", "ibin"), "format")
  }
  check_for_formats(format, "knn", list(vertices = vertices))
  check_for_formats(format, "ibin", list(distances = distances))
  if (format == "ibin") {
    write_ibin_file(edges, file, path, distances, call)
  } else {
    write_knn_file(edges, file, path, vertices, call)
  }
  invisible(file)
}

# A text of edges may have any ending that is not for another verb.
knn_format <- function(file, call) {
  own <- c("knn", "ibin")
  ending <- if (rlang::is_string(file)) tolower(tools::file_ext(file))
  if (isTRUE(ending %in% setdiff(names(other_endings), own))) {
    format_of_ending(file, own, character(), other_endings, call)
  }
  if (identical(ending, "ibin")) "ibin" else "knn"
}
