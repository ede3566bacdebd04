#' The k nearest neighbours of every point
#'
#' Finds, for each row of a matrix, the k other rows with the smallest distance.
#' The answer is exact. Neighbours are ordered by (distance, index), the lower
#' index first on a tie, and the distance is a double from one fixed sequence of
#' operations. It is the same to the last bit on every backend, for any number
#' of threads or GPUs, and for any chunk size.
#'
#' @param x Points in rows (genes, probes), features in columns (samples),
#'   unless `points` says otherwise: a numeric, integer or logical matrix, a
#'   data frame of numeric columns, a matrix of package Matrix (`dgCMatrix`), a
#'   `DelayedMatrix` (`HDF5Matrix`, `TENxMatrix`), a `big.matrix`, a file of
#'   vectors ([read_points()], or its path, which ends in `.fbin`, `.u8bin` or
#'   `.i8bin`), an `ExpressionSet`, a `SummarizedExperiment` or
#'   `SingleCellExperiment` (see `assay` and `dimred`), an `EList` of limma, a
#'   `DGEList` of edgeR, a `DataFrame` of S4Vectors, or [metafeatures()]. Values
#'   must be finite. If there is an argument `na`, it says how missing values
#'   are treated. A message reports data that are probably not what you mean:
#'   see "Messages about the data" in [knn_search()].
#' @param k Number of neighbours of each point, a whole number from 1 to the
#'   number of other points. It is never reduced to fit. It may also be one
#'   number for each point (of `x`, or of `subset`), from 0: then `index` and
#'   `distance` are lists.
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
#' @param sign For correlations (`"pearson"`, `"spearman"` and `"bicor"`), the
#'   distance: `"signed"` (default) is 1 - r, `"absolute"` 1 - |r|, and
#'   `"negative"` 1 + r. Other metrics allow only `"signed"`, which changes
#'   nothing.
#' @param ... Must be empty: later arguments must be named in full.
#' @param constant What to do with points for which the metric has no value
#'   (constant rows under a correlation, rows of zeros under `"cosine"`,
#'   `"proportional"`, `"jaccard"` and `"sorensen"`): `"error"` (default), or
#'   `"isolate"`, which keeps them as isolated points. An isolated point has no
#'   neighbours (`NA`), and is not a neighbour of any point. `k` must be less
#'   than the number of the other points. Such rows of [metafeatures()] are
#'   always left out.
#' @param backend `"auto"` (default) uses CUDA if possible and otherwise the
#'   CPU, and says so once in a session when it uses a GPU. `"cuda"` and `"cpu"`
#'   use that backend or fail. See [knn_backends()].
#' @param devices The GPUs to use: whole numbers from the column `device` of
#'   [knn_backends()]. `NULL` (default) uses all, or fewer for a small matrix.
#' @param num_threads Number of CPU threads. `NULL` (default) uses all that the
#'   process may use, within the limits of the environment variables
#'   `OMP_THREAD_LIMIT` and `OMP_NUM_THREADS` and of
#'   `options(fsknn.num_threads = )`.
#' @param chunk_size Points on a side of a chunk, the square tile of the
#'   distance matrix that is computed at a time. It is rounded up as the backend
#'   needs. `NULL` (default) chooses it. It changes time and memory, never the
#'   answer.
#' @param max_device_memory The maximum memory on each GPU: bytes, or a string
#'   such as `"4 GiB"` or `"500 MB"`. `NULL` (default) is
#'   `getOption("fsknn.max_device_memory")` if that is set, otherwise the free
#'   memory. Points that do not fit are read in parts, with the same answer. The
#'   CPU engine ignores it.
#' @param max_memory The maximum memory for an `x` (and `query`) that is read by
#'   blocks: bytes, or a string such as `"4 GiB"`. `NULL` (default) is
#'   `getOption("fsknn.max_memory")` if that is set, otherwise a third of the
#'   free memory. See "Data larger than memory" in [knn_search()].
#' @param progress Show a progress bar? `NULL` (default) does so in an
#'   interactive session.
#' @param verbose Report the plan (see [knn_plan()]), start, end and seconds?
#'   `FALSE` by default.
#' @param points The side of `x` that holds the points: its `"rows"` (default),
#'   or its `"columns"`, as for the cells of a `SingleCellExperiment` or the
#'   samples of an `ExpressionSet`. The documentation of rows then holds for
#'   columns. Columns are transposed first, which copies `x` (a `DelayedMatrix`
#'   and a `big.matrix` are transposed when they are read).
#' @param assay The name or number of the assay to read, for an `ExpressionSet`,
#'   a `SummarizedExperiment` and its subclasses, or an `EList`. `NULL`
#'   (default) reads `logcounts` if it exists, otherwise the only assay. Several
#'   other assays are an error that lists them. The default is `exprs` for an
#'   `ExpressionSet`, `E` for an `EList` or `EListRaw`, and `counts` for a
#'   `DGEList`. A second experiment (`query`) is read from the assay of the same
#'   name. The printed result names the assay, except `exprs` and `E`.
#' @param dimred The name (such as `"PCA"`) or number of a reduced dimension of
#'   a `SingleCellExperiment`, which is read instead of an assay. Its cells are
#'   the points. The default `metric` is then `"euclidean"`, as in
#'   [FsknnParam()].
#' @param subset The points whose neighbours are returned, among all points of
#'   `x`: row numbers (from 1), row names, or a logical vector with one value
#'   for each point. `NULL` (default) is all. Their answer is that of the whole
#'   search, to the last bit, in the requested order.
#' @param weights For `"pearson"` and `"spearman"`, a weight for each sample
#'   (column of `x`, and of `query`), in their order or with their names.
#'   Weights are finite and not negative. r is then the weighted correlation of
#'   `stats::cov.wt(cor = TRUE)`, for `"spearman"` that of the ordinary average
#'   ranks. Only the weights' proportions matter. A sample of weight 0 is left
#'   out: its values are neither read nor ranked, and an `x` in memory is copied
#'   without it. A row is constant if it is so on the other samples. The largest
#'   weight may be no more than 1e15 times the smallest one above 0. `NULL`
#'   (default): all weigh alike.
#' @param BPPARAM `NULL` (default), or one of BiocParallel's parameters, such as
#'   `BiocParallel::SnowParam(4)`: its workers share the work in tasks. See
#'   "Workers" in [knn_search()].
#' @param checkpoint `NULL` (default), or the path of a folder, new or empty.
#'   Each finished task is stored there. After an interruption at any moment,
#'   the same call continues from them, and other processes may help. See
#'   "Checkpoints" in [knn_search()], and [knn_worker()].
#' @param na What to do with missing values (`NA` and `NaN`; infinite values are
#'   always an error). `"error"` (default) says how many there are, and where
#'   the first are. `"mean"` replaces them by the mean of the row's other values
#'   (not under `"jaccard"` and `"sorensen"`, whose values are 0 and 1).
#'   `"pairwise"` (`"pearson"` and `"spearman"`, with any `sign`, `"euclidean"`
#'   and `"manhattan"`) compares each pair over the samples that both rows have:
#'   see "Missing values" in [knn_search()]. A row without any value is an
#'   error, or isolated, as `constant` says.
#' @param min_pairs With `na = "pairwise"`, the minimum number of samples that
#'   two neighbours must have in common. It is a whole number from 2
#'   (`"euclidean"` and `"manhattan"`: 1) to the number of columns. `NULL`
#'   (default) is 3, or the number of columns if that is less. Over few samples,
#'   a high correlation or a small distance is often due to chance (over two
#'   samples r is always 1 or -1). If many values are missing, a larger number
#'   is advisable.
#' @param block `NULL` (default), or the block of each point (a batch, a donor,
#'   a plate): a factor, or any vector that can become one. It has one value for
#'   each point of `x` and none missing, in their order or with their names (see
#'   "Names" in [search_options]). Beside an `ExpressionSet` or a
#'   `SummarizedExperiment`, it may be the name of a column, of the sample data
#'   if the points are samples (cells), otherwise of the row data. The k nearest
#'   neighbours *in each block* are then found: see "Blocks" in [knn_search()].
#' @param between With `block`: `FALSE` (default) finds neighbours in all
#'   blocks, `TRUE` finds k in each block except the point's own, and
#'   `"together"` finds the k nearest among the points of all other blocks.
#' @param adjust For `"pearson"` and `"spearman"`, covariates of the samples
#'   (columns of `x`, and of `query`), such as batch or age, which rows are
#'   adjusted for: each becomes its residuals, and r is the partial correlation.
#'   Give a formula with one side (`~ age + batch`), or the covariates as a
#'   numeric matrix, a vector, a factor, or a data frame of these. They are in
#'   the order of the columns, or have their names. `NULL` (default): no
#'   adjustment. See
#'   "Covariates" in [knn_search()].
#' @param data A data frame with one row for each sample, in the order of the
#'   columns or with their names as row names. It holds the variables of the
#'   formula `adjust`. `NULL` (default) takes the sample data of a container
#'   (`colData()`, `pData()`, the `targets` of an `EList`), or with
#'   `points = "columns"` the data of its rows. Other variables are looked up
#'   where the formula was written.
#' @param output `NULL` (default), or the destination of an answer that is too
#'   long for memory or is for other programs: the path of a folder, new or
#'   empty, or a value of [knn_output()] with further settings.
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
#'   With a `k` for each point, they are lists with a vector for each point, as
#'   from [within_search()].
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
#' * names of rows (class `fsknn_ids_message`): a column of different whole
#'   numbers that is called an id, or numbers the rows, or is next to columns of
#'   fractions.
#'
#' The message says what to do. `suppressMessages(classes = )` hides it.
#'
#' @section Last bits:
#' A distance is a sum over the features in the order of the columns. Another
#' order of the columns may change its last bits, and the order of two points
#' that are almost equally far. The order of the rows changes no distance.
#'
#' Under a correlation and `"cosine"`, the distance of a row from itself, as
#' [knn_query()] returns it for a row of `x`, may be about 2e-16 rather than 0.
#' It is 1 - r, and r is a sum of rounded products. Equal rows tie all the same.
#' Under the other metrics it is 0.
#'
#' @section Errors:
#' A wrong argument is an error of class `fsknn_argument_error` before any work
#' is done. A distance that is too large for a double is a `fsknn_range_error`,
#' and too little memory is a `fsknn_memory_error`. A failure of CUDA is a
#' `fsknn_cuda_error` with the fields `device` (of [knn_backends()]), `cuda_id`,
#' `bytes_asked` and `bytes_free` (`NA` if memory was not the cause),
#' `cuda_words` and `sticky`. If it is detected before any work (no device, no
#' driver or one that is too old), it is also a `fsknn_backend_error`. All of
#' these have class `fsknn_error`.
#'
#' After an error or Ctrl-C, the GPU's memory is released and the next call
#' works. From some errors a GPU does not recover (`sticky` is `TRUE`). Every
#' later use of CUDA in this R process then fails with the same words, but the
#' CPU backend still works.
#'
#' @section Blocks:
#' With `block`, each point has k neighbours in each block, the nearest there by
#' (distance, index). Polański et al. (2020,
#' \doi{10.1093/bioinformatics/btz625}) use such neighbours to align batches;
#' here they are exact. Blocks are in the order of the factor's levels (other
#' values are sorted, in the same way in every locale), without unused levels.
#' With b blocks, `index` and `distance` have k b columns: k of the first block,
#' the nearest first, then k of the second, and so on. The edges of a graph are
#' in the same order. With `between = TRUE`, the point's own block is left out,
#' and there are k (b - 1) columns. With `between = "together"` there are k.
#'
#' A block with fewer than k possible neighbours is an error that names it. A
#' point is not its own neighbour, so a block that is searched by its own points
#' needs k + 1 of them. Isolated points do not count. `k` is one number. All
#' other options have the same meaning as without blocks. With
#' `na = "pairwise"`, a list with too few neighbours ends in `NA`.
#'
#' Each pair of points in memory is compared once, as without blocks. On GPUs
#' this needs a metric with a filter, enough memory and at least 4,096 points,
#' and for `between = "together"` a single GPU. With a `subset`, missing values,
#' data in a file, workers or a checkpoint, points of two blocks are compared
#' twice.
#'
#' @section Workers:
#' With `BPPARAM`, BiocParallel starts workers, and each runs [knn_worker()] in
#' the folder `checkpoint`, or in a temporary one. The answer is the same to the
#' last bit, and so are errors: a failure of a worker raises the error that it
#' would be here. A lost worker is reported by a message of class
#' `fsknn_worker_lost`. Its task is done by others, or finally by the call
#' itself. If no worker can work, for instance because all have another version
#' of fsknn, it is a `fsknn_worker_error`.
#'
#' * `SnowParam()` on this machine and `MulticoreParam()` need nothing else.
#'   Other machines (`SnowParam(type = "MPI")` or with names of hosts,
#'   `BatchtoolsParam()`) need a `checkpoint` in a folder that all of them see.
#'   Without one it is an error. Each needs this version of fsknn.
#' * Workers read the points that they need from the folder. Children that are
#'   forked for a call without a `checkpoint` have them already.
#' * If `num_threads` is `NULL`, the workers share the threads of this machine.
#'   Workers elsewhere use all that they may use there.
#' * With backend `"cuda"`, each worker of a `SnowParam` has its own GPU (an
#'   equal share if there are more GPUs). More workers than GPUs are an error.
#'   On other machines, each worker uses the `devices` named, or a GPU that no
#'   other worker there has.
#' * Workers of a `MulticoreParam` are forks, which can't use CUDA once this
#'   process has used it. They have one thread each unless `num_threads` says
#'   otherwise. Backend `"auto"` then uses the CPU, and `"cuda"` is an error.
#' * The progress bar does not move while workers are active. [knn_status()]
#'   reports on a `checkpoint` from another session.
#' * Ctrl-C stops workers, except those that are still starting R. A call from
#'   within a worker should say `num_threads = 1`.
#'
#' @section Checkpoints:
#' With `checkpoint`, the search is divided into tasks, each of which is stored
#' in the folder when it is done. A run may be killed by `kill -9`, by a queue's
#' time limit or by the machine. It loses only the tasks in progress, one for
#' each worker. Call it again with the same data and the same folder. Backend,
#' devices, threads, workers, chunk size and `max_memory` may differ. The answer
#' is the same to the last bit. Several calls, and [knn_worker()] on any machine
#' that shares the folder, may work at the same time and share the tasks. Data
#' or arguments that would change the answer are a `fsknn_checkpoint_error` that
#' says which. A folder with other content is refused. The digest of each file
#' is checked before it is used. If the file of a task is damaged or from
#' another search, this is reported and the task is done again. Damage to the
#' file that describes the search (`fsknn-search`) is a
#' `fsknn_checkpoint_error`. This protects against accidents, not against forged
#' files: anyone who may write to the folder could make them. Files are
#' therefore readable and writable only for their owner. The folder holds the
#' points (8 bytes a value) and the results of tasks. These are usually a few
#' times 12 bytes for each point and neighbour (with correlations, 20). It stays
#' after the call: the same call, or [knn_collect()], then only reads it. Delete
#' it when it is no longer needed.
#'
#' For all points among themselves, a task is a pair of two blocks of the
#' points, or a block with itself. Each pair of points is thus compared once, as
#' without tasks. For `query`, `subset`, `block`, and missing values under
#' `na = "pairwise"`, a task is a range of the requested points, searched among
#' all. Two points may then be compared twice, once from each side. Tasks are so
#' large that preparing the points again is a small part of their time.
#' `options(fsknn.split_size = )` sets the number of points in a block, or in a
#' range.
#'
#' @section Data larger than memory:
#' A `DelayedMatrix`, a `big.matrix`, a file of vectors ([read_points()]) and a
#' sparse matrix are read by blocks of whole chunks of their file, each once. If
#' some rows or columns of a matrix are selected in order (`h[keep, ]`), a chunk
#' may be in two blocks and is read for each. A matrix that combines several
#' (`rbind()`, `cbind()`) is read by rows. One whose rows are in another order
#' than in the file is read in that order. Chunks may then be read many times,
#' and writing a new file first (`HDF5Array::writeHDF5Array()`) saves time.
#'
#' If the dense form (8 bytes a value) fits in `max_memory`, they become a
#' matrix in memory. Otherwise they are checked, prepared for the metric, and
#' written to a temporary file as they are read. Blocks of the file are then
#' searched against each other, two in memory at a time on the CPU. GPUs read
#' them in parts. The answer is the same to the last bit. The file is as large
#' as the dense form. It has no name, so its space is free again when the call
#' ends, for any reason. It is in `tempdir()`, or in the folder that
#' `options(fsknn.temporary_folder = )` names. That should be on a disk, and not
#' in memory as `/tmp` is on some systems. Too little space is a
#' `fsknn_disk_error` before anything is read. [knn_plan()] reports all this in
#' advance.
#'
#' With `na = "mean"`, missing values are filled in before they are written.
#' `na = "pairwise"` is an error if any value is missing, which is known when
#' all have been read.
#'
#' @section Arithmetic:
#' For correlations and cosine, rows are scaled to length 1, first by their own
#' power of two, so that their magnitude does not matter. For Euclidean, inner
#' product, Manhattan, Chebyshev and Proportional, rows are not scaled, and
#' distances are accurate whatever else the matrix holds: see [metrics]. The
#' vignette "proofs" has every step.
#'
#' @section Missing values:
#' With `na = "pairwise"`, the distance of two points under `"euclidean"` and
#' `"manhattan"` is their mean over the m samples that both have, scaled to all
#' d: sqrt(d / m * sum((a - b)^2)), and d / m * sum(|a - b|). A pair without
#' missing values has its usual distance.
#'
#' Under correlations, it is computed from Pearson's r over the samples that
#' both have, as in `cor(use = "pairwise.complete.obs")`: means first, then sums
#' of squares and products of the deviations. Under `"spearman"`, each row is
#' ranked once, over its own values, and r is Pearson's of those ranks over the
#' common samples. [stats::cor()] ranks both rows again over the common samples
#' of each pair, so its values differ if values are missing.
#'
#' Two points with fewer than `min_pairs` samples in common, or under a
#' correlation with a row that does not vary on them, are not neighbours. Points
#' with fewer than k neighbours have `NA` in the remaining places (in a graph:
#' fewer edges). A message of class `fsknn_short_rows` says how many there are,
#' and [knn_stats()] has the number as `rows_short`. Under a correlation, a row
#' that does not vary over all its values is constant: see `constant`.
#'
#' If nothing is missing, the answer is that of `na = "error"`, to the last bit.
#' These distances are not a metric: points are compared over different samples.
#' They need the original values, so an `x` (or `query`) with missing values
#' that does not fit in `max_memory` is an error. `na = "mean"` takes data of
#' any size.
#'
#' @section Covariates:
#' With `adjust`, each row is replaced by its residuals from the covariates and
#' a constant, before it is scaled to length 1. The fit is by least squares
#' (weighted if there are `weights`). So distances are those of `lm()`'s
#' residuals, in the contract's own arithmetic (see the vignette "proofs"). They
#' are the same to the last bit on every backend, for data in memory and in a
#' file, for [metafeatures()] and for `query`. The correlation of residuals is
#' the partial correlation (Yule 1907, \doi{10.1098/rspa.1907.0028}; Frisch and
#' Waugh 1933, \doi{10.2307/1907330}). Each covariate takes a degree of freedom,
#' so correlations between unrelated rows are larger. For p-values, edges, trees
#' and the table of [nearest_to()] have the attribute `num_covariates`, the
#' number of covariates that count.
#'
#' Text becomes a factor, and dates become numbers. Under `"spearman"`, rows are
#' ranked and then adjusted, and covariates are ranked, too. Numbers are
#' replaced by their ranks (over the samples that count, before interactions are
#' computed, and each column of a matrix by itself), but factors are not.
#'
#' * A covariate that adds nothing to a constant and those before it (a factor's
#'   unused level, a repeated column) is dropped: its residual is at most 1.2e-7
#'   (2^-23) of its length about its mean. In another order, others are dropped,
#'   and last bits of r may differ.
#' * Covariates that are missing or infinite are an error, and so are so many
#'   that no row has a residual.
#' * A row that the covariates explain has no residual, and no r. The root mean
#'   square of its residuals is at most 9.1e-13 (2^-40) of the power of two that
#'   its largest value reaches, where rounding is. It is treated as a constant
#'   row: see `constant`.
#' * A weight of 0 leaves the sample out of the fit, too.
#' * `na = "mean"` fills in values before rows are adjusted. `na = "pairwise"`
#'   is an error, because each pair would have its own residuals. So is
#'   `"bicor"`, because least squares are not robust, and every metric that is
#'   not a correlation.
#'
#' @references
#' Arefin AS, Riveros C, Berretta R, Moscato P (2012). GPU-FS-kNN: A Software
#' Tool for Fast and Scalable kNN Computation Using GPUs. *PLoS ONE* 7(8):
#' e44000. \doi{10.1371/journal.pone.0044000}
#' @seealso [search_options] for which other verbs have these options,
#'   [knn_graph()] for an edge data frame with names, [knn_query()] for the
#'   neighbours of other points, [nearest_to()] for those of one, [knn_stats()]
#'   for facts about the search.
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
#' # robust against outliers; samples that weigh more than others
#' knn_search(x, k = 1, metric = "bicor")$index[1:5, ]
#' knn_search(x, k = 1, weights = rep(c(1, 4), 6))$index[1:5, ]
#'
#' # apart from what a batch and the age explain
#' samples <- data.frame(batch = rep(c("a", "b", "c"), 4), age = 41:52)
#' knn_search(x, k = 1, adjust = ~ batch + age, data = samples)$index[1:5, ]
#'
#' # what is there and what is not
#' knn_search(x > 0, k = 1, metric = "jaccard")$distance[1:5, ]
#'
#' # the samples as points
#' knn_search(x, k = 2, points = "columns")$index
#'
#' # missing values: each pair over the samples that both have
#' x[sample(length(x), 100)] <- NA
#' knn_search(x, k = 3, na = "pairwise", min_pairs = 8)$distance[1:3, ]
knn_search <- function(x, k = 20, metric = NULL, sign = "signed", ...,
                       constant = c("error", "isolate"),
                       backend = c("auto", "cuda", "cpu"), devices = NULL,
                       num_threads = NULL, chunk_size = NULL,
                       max_device_memory = NULL, progress = NULL,
                       verbose = FALSE, points = c("rows", "columns"),
                       assay = NULL, dimred = NULL, subset = NULL,
                       BPPARAM = NULL, checkpoint = NULL, weights = NULL,
                       max_memory = NULL, na = c("error", "pairwise", "mean"),
                       min_pairs = NULL, block = NULL, between = FALSE,
                       adjust = NULL, data = NULL, output = NULL) {
  check_no_more(...)
  check_supplied(x)
  output <- check_output(output)
  search <- new_search(
    x, verb_options(), k = k, subset = subset, block = block, between = between
  )
  answer_of(search, output)
}
