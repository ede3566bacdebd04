#' The k nearest neighbours of every point
#'
#' Finds, for each row of a matrix, the k other rows with the smallest distance.
#' The answer is exact. Neighbours are ordered by (distance, index), the lower
#' index first on a tie, and the distance is a double from one fixed sequence of
#' operations. It is the same to the last bit on every backend, for any number
#' of threads or GPUs, and for any chunk size.
#'
#' @param x Points in rows (genes, probes) and features in columns (samples);
#'   the option `points = "columns"` exchanges them. It can be one of these:
#'   * a numeric, integer or logical matrix, or a data frame of numeric columns;
#'   * a matrix of package Matrix (`dgCMatrix`), a `DelayedMatrix`
#'     (`HDF5Matrix`, `TENxMatrix`) or a `big.matrix`;
#'   * an `ExpressionSet`, a `SummarizedExperiment` or a `SingleCellExperiment`
#'     (see `assay` and `dimred` in [point_options()]);
#'   * an `EList` of limma, a `DGEList` of edgeR, or a `DataFrame` of S4Vectors;
#'   * a file of vectors, as [read_points()] or as a path that ends in `.fbin`,
#'     `.u8bin` or `.i8bin`;
#'   * genotypes: files of PLINK by [read_plink()], a `VCF` of
#'     VariantAnnotation, or a `SnpMatrix` of snpStats, whose SNPs are columns;
#'   * [metafeatures()].
#'
#'   Values must be finite. For missing values see the option `na` of
#'   [point_options()]. A message reports data that are probably not what you
#'   mean: see "Messages about the data" in [knn_search()]. For several searches
#'   of the same points, see [knn_index()].
#' @param k Number of neighbours of each point, a whole number from 1 to the
#'   number of other points. It is never reduced to fit. It may also be one
#'   number for each point (of `x`, or of `subset`), from 0: then `index` and
#'   `distance` are lists. With `block`, it may be one number for each block.
#' @param metric The distance, computed in double precision. `NULL` (default) is
#'   `"pearson"`, or `"euclidean"` if `dimred` is given. One of:
#'
#'   `r metric_help()`
#'
#'   The biweight midcorrelation is that of WGCNA's `bicor()` with its defaults
#'   (`maxPOutliers = 1`, `pearsonFallback = "individual"`; Langfelder and
#'   Horvath 2012, \doi{10.18637/jss.v046.i11}). The weight of a value decreases
#'   with its distance from the row's median, and is 0 from 9 median absolute
#'   deviations on. A row in which more than half of the values are equal
#'   (deviation 0) is treated as under `"pearson"`. Proportional Similarity is
#'   that of Joubert et al. (2018, \doi{10.1016/j.parco.2018.03.009}).
#' @param sign For correlations (`"pearson"`, `"spearman"` and `"bicor"`), which
#'   of them count as near. The distance is 1 - r for `"signed"` (default), 1 -
#'   |r| for `"absolute"`, and 1 + r for `"negative"`. Other metrics allow only
#'   `"signed"`, which changes nothing.
#' @param ... [Point options][point_options()] and [run
#'   options][run_options()], by name, or collected as `options = `.
#' @param subset The points whose neighbours are returned, in the requested
#'   order. Give row numbers (from 1), row names, or a logical vector with one
#'   value for each point. `NULL` (default) is all. Neighbours come from all
#'   points of `x`, and the answer is that of the whole search, to the last bit.
#' @param block `NULL` (default), or the block of each point (a batch, a donor,
#'   a plate): a factor, or any vector that can become one. It has one value for
#'   each point of `x` and none missing, in their order or with their names (see
#'   "Names" in [point_options()]). The search then finds the k nearest
#'   neighbours *in each block*: see "Blocks" in [knn_search()].
#'
#'   For an `ExpressionSet` or a `SummarizedExperiment`, `block` may be the name
#'   of a column. This is a column of the sample data if the points are samples
#'   (cells), otherwise of the row data.
#' @param between With `block`, the blocks of the neighbours. `FALSE` (default)
#'   finds k neighbours in every block, and `TRUE` in every block except the
#'   point's own. `"together"` finds the k nearest among the points of all other
#'   blocks.
#' @param output `NULL` (default) returns the answer. For an answer that is too
#'   large for memory, or is for other programs, give the path of a folder, new
#'   or empty. [knn_output()] has further settings.
#'
#' @returns With `output`, the value of [read_knn()]. Otherwise a list of
#'   class `fsknn_neighbours`, which prints as a summary. It holds two matrices
#'   with one row for each point, in the order of `x` (or of `subset`), and k
#'   columns, the nearest first:
#'   * `index`: integer, the neighbours' row numbers in `x` (from 1);
#'   * `distance`: double, their distances.
#'
#'   With `block`, the columns of one block follow those of another: see the
#'   section on blocks.
#'
#'   If `k` has one number for each point, they are lists with a vector for each
#'   point, as from [within_search()].
#'
#'   Both have the row names of `x`, which may repeat here, but not those of
#'   [metafeatures()]. Rows of isolated points are `NA`; in lists they are
#'   `integer(0)` and `double(0)`.
#'
#' @section Messages about the data:
#' A message reports data that can be searched but are probably not meant:
#' * counts (class `fsknn_counts_message`), which grow with the depth of a
#'   sample. With a correlation or `"euclidean"` these are an assay called
#'   `counts`, a `DGEList` or a `DESeqDataSet`. With a correlation they are also
#'   non-negative whole numbers whose column sums differ by more than their
#'   variances explain;
#' * distances (class `fsknn_distances_message`): a matrix that is symmetric
#'   with zeros along its diagonal;
#' * row identifiers (class `fsknn_ids_message`): a column of different whole
#'   numbers. It has a name such as "id", or it numbers the rows, or it is next
#'   to columns of fractions.
#'
#' The message says what to do. `suppressMessages(classes = )` hides it.
#'
#' @section Rounding:
#' A distance is a sum over the features in the order of the columns. Another
#' order of the columns may change its last bits, and the order of two points
#' that are almost equally far. The order of the rows changes no distance.
#'
#' [knn_query()] also returns the distance of a row of `x` from itself. Under a
#' correlation and `"cosine"`, this may be about 2e-16 rather than 0. The reason
#' is that r in 1 - r is a sum of rounded products. Equal rows still tie. Under
#' the other metrics the distance is 0, except under `"inner_product"`.
#'
#' @section Errors:
#' All errors have class `fsknn_error`. A wrong argument is an error of class
#' `fsknn_argument_error`, before any work is done. A distance that is too large
#' for a double is a `fsknn_range_error`, and too little memory is a
#' `fsknn_memory_error`.
#'
#' A failure of CUDA is a `fsknn_cuda_error`. Its fields are `device` (of
#' [knn_backends()]), `cuda_id`, `bytes_asked`, `bytes_free`, `cuda_words` and
#' `sticky`. The two sizes are `NA` if memory was not the cause. If the failure
#' is detected before any work (no device, no driver or one that is too old), it
#' is also a `fsknn_backend_error`.
#'
#' After an error or Ctrl-C, the GPU's memory is released and the next call
#' works. From some errors a GPU does not recover (`sticky` is `TRUE`). Every
#' later use of CUDA in this R process then fails with the same message, but the
#' CPU backend still works.
#'
#' @section Blocks:
#' With `block`, each point has k neighbours in each block: those that are
#' nearest by distance, and then by row number. Polański et al. (2020,
#' \doi{10.1093/bioinformatics/btz625}) use such neighbours to align batches;
#' here they are exact. Blocks are in the order of the factor's levels, without
#' unused levels. Other values are sorted, in the same way in every locale.
#'
#' With b blocks, `index` and `distance` have k b columns. The first k are of
#' the first block, the nearest first, the next k are of the second block, and
#' so on. The edges of a graph are in the same order. With `between = TRUE`, the
#' point's own block is left out, and there are k (b - 1) columns. With
#' `between = "together"` there are k.
#'
#' A block with fewer than k possible neighbours is an error that names it. A
#' point is not its own neighbour, so a block that is searched by its own points
#' needs k + 1 of them. Isolated points do not count. All other options have the
#' same meaning as without blocks. With `na = "pairwise"`, a list with too few
#' neighbours ends in `NA`.
#'
#' In `knn_search()` and [knn_query()], `k` may also be one number for each
#' block, with the names of the blocks, as in `k = c(day1 = 10, day2 = 5)`. A
#' block of 0 is left out. With these, or with a `k` for each point, `index` and
#' `distance` are lists. Each block must have enough points for the largest `k`.
#'
#' Each pair of points in memory is compared once, as without blocks. On GPUs
#' this needs a metric with a filter, enough memory and at least 4,096 points,
#' and for `between = "together"` a single GPU. With a `subset`, missing values,
#' data in a file, workers or a checkpoint, points of two blocks are compared
#' twice.
#'
#' @section Arithmetic:
#' For correlations and cosine, rows are scaled to length 1, first by their own
#' power of two, so that their magnitude does not matter. For Euclidean, inner
#' product, Manhattan, Chebyshev and Proportional, rows are not scaled, and
#' distances are accurate for any other values in the matrix: see [metrics]. The
#' vignette "proofs" has every step.
#'
#' @references
#' Arefin AS, Riveros C, Berretta R, Moscato P (2012). GPU-FS-kNN: A Software
#' Tool for Fast and Scalable kNN Computation Using GPUs. *PLoS ONE* 7(8):
#' e44000. \doi{10.1371/journal.pone.0044000}
#' @seealso
#'   * [point_options()] and [run_options()] for the options of all functions;
#'   * [knn_graph()] for an edge data frame with names;
#'   * [knn_query()] for the neighbours of other points, and [nearest_to()] for
#'     those of one point;
#'   * [knn_stats()] for facts about the search.
#' @export
#' @examples
#' x <- matrix(rnorm(200 * 12), nrow = 200) # 200 points, 12 features
#' nn <- knn_search(x, k = 3)
#' nn
#' head(nn$index)
#' head(nn$distance)
#'
#' # the most anti-correlated rows
#' knn_search(x, k = 1, sign = "negative")$index[1:5, ]
#'
#' # robust against outliers; samples of different weights
#' knn_search(x, k = 1, metric = "bicor")$index[1:5, ]
#' knn_search(x, k = 1, weights = rep(c(1, 4), 6))$index[1:5, ]
#'
#' # adjusted for batch and age
#' samples <- data.frame(batch = rep(c("a", "b", "c"), 4), age = 41:52)
#' knn_search(x, k = 1, adjust = ~ batch + age, data = samples)$index[1:5, ]
#'
#' # presence and absence of features
#' knn_search(x > 0, k = 1, metric = "jaccard")$distance[1:5, ]
#'
#' # the samples as points
#' knn_search(x, k = 2, points = "columns")$index
#'
#' # missing values: each pair over the samples that both have
#' x[sample(length(x), 100)] <- NA
#' knn_search(x, k = 3, na = "pairwise", min_pairs = 8)$distance[1:3, ]
knn_search <- function(x, k = 20, metric = NULL, sign = "signed", ...,
                       subset = NULL, block = NULL, between = FALSE,
                       output = NULL) {
  check_supplied(x)
  output <- check_output(output)
  options <- verb_options("knn_search", ...)
  search <- new_search(
    x, options, k = k, subset = subset, block = block, between = between
  )
  answer_of(search, output)
}
