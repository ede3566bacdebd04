#' The k nearest neighbours of every point
#'
#' Finds, for each row of a matrix, the k other rows with the smallest
#' distance. The answer is exact: neighbours are ordered by (distance, index),
#' the lower index first on a tie, where the distance is a double made by one
#' fixed sequence of operations. It is the same to the last bit on every
#' backend, for any number of threads or GPUs, and for any chunk size.
#'
#' @param x Points in rows (genes, probes), features in columns (samples),
#'   unless `points` says otherwise: a numeric, integer or logical matrix, a
#'   data frame of numeric columns, a matrix of package Matrix (`dgCMatrix`), a
#'   `DelayedMatrix` (`HDF5Matrix`, `TENxMatrix`), a `big.matrix`, a file of
#'   vectors ([bin_file()], or its path, which ends in `.fbin`, `.u8bin` or
#'   `.i8bin`), an `ExpressionSet`, a `SummarizedExperiment` or
#'   `SingleCellExperiment` (see `assay` and `dimred`), an `EList` of limma, a
#'   `DGEList` of edgeR, a `DataFrame` of S4Vectors, or [metafeatures()]. Values
#'   must be finite; where there is an argument `na`, it says what becomes of
#'   missing ones. A message tells of data that are probably not what you mean:
#'   see "Messages about the data" in [knn_search()].
#' @param k Number of neighbours of each point, a whole number from 1 to the
#'   number of other points. It is never cut down to fit. Or one number for each
#'   point (of `x`, or of `subset`), from 0: then `index` and `distance` are
#'   lists.
#' @param metric The distance, computed in double precision. `NULL` (default)
#'   takes `"pearson"`, or `"euclidean"` where `dimred` is given. One of:
#'
#'   `r metric_help()`
#'
#'   The biweight midcorrelation is that of WGCNA's `bicor()` with its defaults
#'   (`maxPOutliers = 1`, `pearsonFallback = "individual"`; Langfelder and
#'   Horvath 2012, \doi{10.18637/jss.v046.i11}): a value counts the less the
#'   further it is from the row's median, and nothing from 9 median absolute
#'   deviations on; a row in which more than half of the values are equal
#'   (deviation 0) is taken as under `"pearson"`. Proportional Similarity is
#'   that of Joubert et al. (2018, \doi{10.1016/j.parco.2018.03.009}).
#' @param sign For correlations (`"pearson"`, `"spearman"` and `"bicor"`), what
#'   is near: `"signed"` (default) takes 1 - r, `"absolute"` 1 - |r|,
#'   `"negative"` 1 + r. With other metrics only `"signed"`, which changes
#'   nothing, is allowed.
#' @param ... Must be empty: what follows must be named in full.
#' @param constant What to do with points for which the metric has no value
#'   (constant rows under a correlation, rows of zeros under `"cosine"`,
#'   `"proportional"`, `"jaccard"` and `"sorensen"`): `"error"` (default), or
#'   `"isolate"`, which keeps them as isolated points. An isolated point has no
#'   neighbours (`NA`), and is nobody's neighbour; `k` may not exceed the number
#'   of the other points less one. Of [metafeatures()] such rows are always left
#'   out.
#' @param backend `"auto"` (default) takes CUDA where it can be used and the
#'   CPU elsewhere, and says so once a session when it takes a GPU; `"cuda"` and
#'   `"cpu"` take that one or fail. See [knn_backends()].
#' @param devices Which GPUs to use: whole numbers from the column `device` of
#'   [cuda_devices()]. `NULL` (default) takes all; a small matrix uses fewer.
#' @param num_threads Number of CPU threads. `NULL` (default) takes all that the
#'   process may use, and no more than any of the environment variables
#'   `OMP_THREAD_LIMIT` and `OMP_NUM_THREADS` and
#'   `options(fsknn.num_threads = )` says.
#' @param chunk_size Points on a side of a chunk, the square tile of the
#'   distance matrix that is computed at a time; rounded up as the backend
#'   needs. `NULL` (default) chooses. It changes time and memory, never the
#'   answer.
#' @param max_device_memory The most memory to use on each GPU: bytes, or a
#'   string such as `"4 GiB"` or `"500 MB"`. `NULL` (default) takes
#'   `getOption("fsknn.max_device_memory")` where that is set, else what is
#'   free. Points that do not fit are read piece by piece; the answer is the
#'   same. The CPU engine does not read it.
#' @param max_memory The most memory to use for an `x` (and `query`) that is
#'   read by blocks: bytes, or a string such as `"4 GiB"`. `NULL` (default)
#'   takes `getOption("fsknn.max_memory")` where that is set, else a third of
#'   what is free. See "Data larger than memory" in [knn_search()].
#' @param progress Show a progress bar? `NULL` (default) does so in an
#'   interactive session.
#' @param verbose Tell the plan (see [knn_plan()]), start, end and seconds?
#'   `FALSE` by default.
#' @param points Which side of `x` are the points: its `"rows"` (default), or
#'   its `"columns"`, as for the cells of a `SingleCellExperiment` or the
#'   samples of an `ExpressionSet`. What is said here of rows then holds for
#'   columns. Columns are turned into rows first, which takes a copy of `x` (a
#'   `DelayedMatrix` and a `big.matrix` are turned when they are read).
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
#' @param subset The points whose neighbours to find, among all points of `x`:
#'   row numbers (from 1), row names, or a logical vector with one value for
#'   each point. `NULL` (default): all of them. The answer for them is that of
#'   the whole search, to the last bit, in the order asked for.
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
#'   `BiocParallel::SnowParam(4)`: the work is dealt out in tasks to its
#'   workers. See "Workers" in [knn_search()].
#' @param checkpoint `NULL` (default), or the path of a folder, new or empty:
#'   each task that is done is kept there, the same call goes on from them after
#'   it was ended at any moment, and other processes may help. See "Checkpoints"
#'   in [knn_search()], and [knn_work()].
#' @param na What to do with missing values (`NA` and `NaN`; infinite values are
#'   an error always): `"error"` (default) says how many there are, and where
#'   the first are; `"mean"` takes the mean of what the row has in their place
#'   (not under `"jaccard"` and `"sorensen"`, whose values are 0 and 1);
#'   `"pairwise"` (`"pearson"` and `"spearman"`, with any `sign`,
#'   `"euclidean"` and `"manhattan"`) takes each pair over the samples that both
#'   rows have: see "Missing values" in [knn_search()]. A row with no value at
#'   all is an error, or isolated, as `constant` says.
#' @param min_pairs With `na = "pairwise"`, the fewest samples that a pair must
#'   have in common to be neighbours: a whole number from 2 (`"euclidean"` and
#'   `"manhattan"`: 1) to the number of columns. `NULL` (default) is 3, or the
#'   number of columns where that is less. Over few samples a high correlation
#'   comes by chance (over two it always is 1 or -1), and so does a small
#'   distance: where many values are missing more should be asked for.
#' @param block `NULL` (default), or the block of each point (a batch, a donor,
#'   a plate): a factor, or any vector that makes one, with one value for each
#'   point of `x` and none missing, in their order or with their names (see
#'   "Names" in [search_options]). Beside an
#'   `ExpressionSet` or a `SummarizedExperiment` also the name of a column: of
#'   the sample data where the points are samples (cells), else of the row data.
#'   The k nearest neighbours *in each block* are found then: see "Blocks" in
#'   [knn_search()].
#' @param between With `block`: `FALSE` (default) finds neighbours in all
#'   blocks, `TRUE` k in each block but the point's own, `"together"` the k
#'   nearest among the points of all other blocks.
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
#' @param output `NULL` (default), or where the answer is to go if it is too
#'   long for memory or for others to read from R: the path of a folder, new or
#'   empty, or what [knn_output()] gives, which says how.
#'
#' @returns With `output` what [read_knn_shards()] gives. Else a list of class
#'   `knn_neighbours`, whose print is a summary, of two matrices with one row
#'   for each point, in the order of `x` (or of `subset`), and k columns, the
#'   nearest first:
#'   * `index`: integer, the neighbours' row numbers in `x` (from 1);
#'   * `distance`: double, their distances.
#'
#'   With `block` the columns are those of one block after another: see the
#'   section on blocks.
#'
#'   With a `k` for each point they are lists of vectors instead, one for each
#'   point, as [within_search()] gives them.
#'
#'   Row names of `x`, which may repeat here, are the row names of both (or the
#'   names of both lists); those of [metafeatures()] are not. Rows of isolated
#'   points are `NA`; in lists they are `integer(0)` and `double(0)`.
#'
#' @section Messages about the data:
#' A message tells of data that can be searched but are probably not meant:
#' * counts (class `fsknn_counts_message`), which grow with the depth of a
#'   sample. With a correlation or `"euclidean"` these are an assay called
#'   `counts`, a `DGEList` or a `DESeqDataSet`. With a correlation they are also
#'   non-negative whole numbers whose column sums differ by more than their
#'   variances explain;
#' * distances (class `fsknn_distances_message`): a matrix that is symmetric
#'   with zeros along its diagonal;
#' * names of rows (class `fsknn_ids_message`): a column of different whole
#'   numbers that is called an id, or counts the rows, or stands beside columns
#'   of fractions.
#'
#' The message says what to do. `suppressMessages(classes = )` hides it.
#'
#' @section Last bits:
#' A distance is a sum over the features in the order of the columns. In another
#' order of the columns its last bits may be others, and of two points that are
#' as good as equally far the other one may come first. The order of the rows
#' changes no distance.
#'
#' Under a correlation and `"cosine"` a row's distance from itself, as
#' [knn_query()] gives it for a query that is a row of `x`, may be 2e-16 or so
#' rather than 0: it is 1 - r, and r is a sum of rounded products. Rows that are
#' equal tie all the same. Under the other metrics it is 0.
#'
#' @section Errors:
#' A wrong argument is an error of class `fsknn_argument_error` before any work
#' is done. A distance that is too large for a double is a `fsknn_range_error`,
#' too little memory a `fsknn_memory_error`. A failure of CUDA is a
#' `fsknn_cuda_error` with the fields `device` (of [cuda_devices()]), `cuda_id`,
#' `bytes_asked` and `bytes_free` (`NA` where it was not about memory),
#' `cuda_words` and `sticky`; one that shows before any work, as there is no
#' device, no driver or too old a one, is a `fsknn_backend_error` too. All of
#' these have class `fsknn_error`.
#'
#' After an error, and after Ctrl-C, the GPU's memory is given back and the next
#' call works. Some errors a GPU does not recover from (`sticky` is `TRUE`):
#' then every later use of CUDA in this R process fails with the same words, and
#' the CPU backend still works.
#'
#' @section Blocks:
#' With `block` each point has k neighbours in each block, the nearest there by
#' (distance, index), as Polański et al. (2020,
#' \doi{10.1093/bioinformatics/btz625}) take them to put batches side by side;
#' here they are exact. Blocks come in the order of the factor's levels (values
#' that are no factor are sorted, in every locale alike); levels that no point
#' has are left out. So of b blocks `index` and `distance` have k b columns, k
#' of the first block, the nearest first, then k of the second; a graph's edges
#' likewise. With `between = TRUE` the point's own block is left out, and there
#' are k (b - 1), with `between = "together"` k columns.
#'
#' A block with fewer than k points that can be neighbours is an error that
#' names it: a point is not its own neighbour, so that a block that is searched
#' by its own points needs k + 1 of them, and isolated points do not count.
#' `k` is one number. All other options mean what they mean without blocks; with
#' `na = "pairwise"` a list that is short ends in `NA`.
#'
#' Each two points in memory meet once, as they do without blocks; on GPUs where
#' the metric has a filter, memory is enough and there are 4,096 points or more,
#' `between = "together"` on one GPU. With a `subset`, with missing values, data
#' in a file, workers or a checkpoint, points of two blocks meet twice.
#'
#' @section Workers:
#' With `BPPARAM` the work is done by workers that BiocParallel starts: each
#' runs [knn_work()] in the folder `checkpoint`, or in a temporary one. The
#' answer is the same to the last bit, and so are errors: a failure of a worker
#' is the error that it would be here. A worker that is lost is told of (a
#' message of class `fsknn_worker_lost`), and its task is done by others, or at
#' last by the call itself. Where no worker would work, as those of another
#' version of fsknn, that is a `fsknn_worker_error`.
#'
#' * `SnowParam()` of this machine and `MulticoreParam()` need nothing else.
#'   Other machines (`SnowParam(type = "MPI")` or with names of hosts,
#'   `BatchtoolsParam()`) need a `checkpoint` in a folder that all of them see:
#'   without one that is an error. Each needs this version of fsknn.
#' * Workers read the points that they need from the folder; children that are
#'   forked for a call without a `checkpoint` have them already.
#' * Where `num_threads` is `NULL` the threads of this machine are shared out;
#'   workers elsewhere take what they may use there.
#' * With backend `"cuda"` each worker of a `SnowParam` has one GPU of its own
#'   (an even share where there are more GPUs). More workers than GPUs are an
#'   error. On other machines each worker takes the `devices` named, or a GPU
#'   that no other worker there has.
#' * Workers of a `MulticoreParam` are forks, which can't use CUDA once this
#'   process has, and work with one thread each unless `num_threads` says
#'   otherwise. Backend `"auto"` takes the CPU then, `"cuda"` is an error.
#' * While workers are at it the progress bar stands still: [knn_status()] tells
#'   of a `checkpoint` from another session.
#' * Ctrl-C stops workers, save those that are still starting R. A call from
#'   within a worker should say `num_threads = 1`.
#'
#' @section Checkpoints:
#' With `checkpoint` the search is cut into tasks, each kept in the folder when
#' it is done. A run that was ended (by `kill -9`, by a queue's time limit, by
#' the machine) loses the tasks that were at work, one for each worker, and no
#' more. Call it again with the same data and the same folder; backend, devices,
#' threads, workers, chunk size and `max_memory` may be others. The answer is
#' the same to the last bit. Several calls, and [knn_work()] on any machine that
#' shares the folder, may be at it at the same time: each task is then one of
#' theirs. Data or arguments that would change the answer are a
#' `fsknn_checkpoint_error` that says which; a folder that holds something else
#' is refused. No file of it is believed before a digest of its bytes agrees. A
#' task whose file is damaged, or that of another search, is told of and done
#' again; damage to the file that says what the search is (`fsknn-search`) is a
#' `fsknn_checkpoint_error`. This is against accidents: whoever may write to the
#' folder could make files that are believed, and so files are made for their
#' owner alone to read and write. The folder holds the points (8 bytes a value)
#' and what tasks found, usually some times 12 bytes for each point and
#' neighbour (with correlations, 20), and stays when the call is over: then the
#' same call, or [knn_collect()], only reads it. Delete it when it is not needed
#' any more.
#'
#' For all points among themselves a task is a pair of two blocks of the points,
#' or a block with itself, so that each two points are compared once, as they
#' are without tasks. For `query`, `subset`, `block`, and missing values under
#' `na = "pairwise"`, it is a range of the points whose neighbours are asked
#' for, searched for among all: then two points may be compared twice, once from
#' each side. Tasks are made so large that preparing the points again is a small
#' part of their time; `options(fsknn.split_size = )` sets the number of points
#' in a block, or in a range.
#'
#' @section Data larger than memory:
#' A `DelayedMatrix`, a `big.matrix`, a file of vectors ([bin_file()]) and a
#' sparse matrix are read by blocks,
#' whole chunks of the file that they come from, each once. Of some rows or
#' columns of a matrix (`h[keep, ]`), in their order, a chunk may be in two
#' blocks and is read for each. A matrix that is put together of several
#' (`rbind()`, `cbind()`) is read by rows, and one whose rows are in another
#' order than in the file in that order: then chunks may be read many times,
#' and a file of its own (`HDF5Array::writeHDF5Array()`) is worth its time.
#'
#' Where the dense form (8 bytes a value) fits in `max_memory`, they become a
#' matrix in memory. Else they are checked, prepared for the metric, and
#' written to a temporary file as they are read; then blocks of the file are
#' searched against blocks, two in memory at a time on the CPU, and piece by
#' piece through the memory of GPUs. The answer is the same to the last bit.
#' The file is as large as the dense form. It has no name, so that its room is
#' free again when the call ends, in whatever way, and stands in `tempdir()`,
#' or in the folder that `options(fsknn.temporary_folder = )` names: it should
#' be on a disk, and not in memory as `/tmp` is on some systems. Where there is
#' too little room, that is a `fsknn_disk_error` before anything is read.
#' [knn_plan()] tells what would be.
#'
#' With `na = "mean"` missing values are filled in on the way to the file;
#' `na = "pairwise"` is an error if any value is missing, which shows when all
#' have been read.
#'
#' @section Arithmetic:
#' Rows are brought to length 1 for correlations and cosine, each scaled by its
#' own power of two first, so that their magnitude does not matter. Distances of
#' rows as they are (Euclidean, inner product, Manhattan, Chebyshev,
#' Proportional) are right whatever else the matrix holds: see [metrics]. The
#' vignette "proofs" has every step.
#'
#' @section Missing values:
#' With `na = "pairwise"` the distance of two points under `"euclidean"` and
#' `"manhattan"` is their mean over the m samples that both have, scaled to all
#' d: sqrt(d / m * sum((a - b)^2)), and d / m * sum(|a - b|). A pair that lacks
#' nothing has the distance that it has without missing values.
#'
#' Under correlations it is made of Pearson's r over
#' the samples that both have, as of `cor(use = "pairwise.complete.obs")`: means
#' first, then sums of squares and products of the deviations. Under
#' `"spearman"` each row is ranked once, over what it has, and r is Pearson's of
#' those ranks over the common samples; [stats::cor()] ranks both rows anew over
#' the common samples of each pair, so that its values differ where values are
#' missing.
#'
#' A pair with fewer than `min_pairs` samples in common, or under a correlation
#' with a row that does not vary on them, is no pair of neighbours. Points left
#' with fewer than k neighbours have `NA` in the places that remain (in a graph:
#' fewer edges); a message of class `fsknn_short_rows` says how many there are,
#' and [knn_stats()] has the number as `rows_short`. Under a correlation a row
#' that does not vary over all that it has is constant: see `constant`.
#'
#' Where nothing is missing the answer is that of `na = "error"`, to the last
#' bit. These distances are no metric: points are compared over different
#' samples. They need the values themselves, so that an `x` (or `query`) with
#' missing values that does not fit in `max_memory` is an error; `na = "mean"`
#' takes data of any size.
#'
#' @section Covariates:
#' With `adjust` each row is replaced by its residuals from the covariates and a
#' constant, by least squares (weighted ones where there are `weights`), before
#' it is brought to length 1. So distances are those of `lm()`'s residuals, made
#' by the contract's own arithmetic (see the vignette "proofs"): the same to the
#' last bit on every backend, of data in memory and in a file, of
#' [metafeatures()] and of `query`. The correlation of residuals is the partial
#' correlation (Yule 1907, \doi{10.1098/rspa.1907.0028}; Frisch and Waugh 1933,
#' \doi{10.2307/1907330}). Each covariate takes a degree of freedom, so that
#' correlations between unrelated rows are larger: edges, trees and the table of
#' [nearest_to()] have the number of covariates that count as the attribute
#' `num_covariates`, for p-values.
#'
#' Words are factors, dates are numbers. Under `"spearman"` rows are ranked and
#' then adjusted, and so are covariates: numbers are replaced by their ranks
#' (over the samples that count, before interactions are made of them; each
#' column of a matrix by itself), factors are not.
#'
#' * A covariate that says nothing beyond a constant and those before it (a
#'   factor's unused level, a column twice) is dropped: what is left of it is no
#'   more than 1.2e-7 (2^-23) of its length about its mean. In another order
#'   others are dropped, and last bits of r may differ.
#' * Covariates that are missing or infinite are an error, and so are as many as
#'   leave nothing of any row.
#' * A row that the covariates explain has nothing left, and no r: the root of
#'   the mean square of its residuals is no more than 9.1e-13 (2^-40) of the
#'   power of two that its largest value reaches, where rounding is. It is
#'   treated as a constant row: see `constant`.
#' * A weight of 0 leaves the sample out of the fit, too.
#' * `na = "mean"` fills in before rows are adjusted. Under `na = "pairwise"`
#'   each pair would have residuals of its own: an error. So is `"bicor"`, since
#'   least squares are not robust, and every metric that is no correlation.
#'
#' @references
#' Arefin AS, Riveros C, Berretta R, Moscato P (2012). GPU-FS-kNN: A Software
#' Tool for Fast and Scalable kNN Computation Using GPUs. *PLoS ONE* 7(8):
#' e44000. \doi{10.1371/journal.pone.0044000}
#' @seealso [search_options] for which other verbs have these options,
#'   [knn_graph()] for an edge data frame with names, [knn_query()] for
#'   the neighbours of other points, [nearest_to()] for those of one,
#'   [knn_stats()] for what the search was like.
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
