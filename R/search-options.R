#' Point options: how to read and compare points
#'
#' Every function that compares points takes these options by name, with the
#' same meaning: `knn_search(x, k = 20, na = "mean")`. This function collects
#' some of them for several calls. It need not be called.
#'
#' Together with [run_options()], they are the `...` of these functions. Give
#' collected options as `options = `, several of them by `c()`, as in
#' `knn_search(x, options = c(point_options(na = "mean"), run_options()))`. An
#' option that is given twice is an error.
#'
#' @param points The side of `x` that holds the points: `"rows"` (default) or
#'   `"columns"`. Points are in columns for the cells of a
#'   `SingleCellExperiment` and for the samples of an `ExpressionSet`. The
#'   documentation of rows then holds for columns. Columns are transposed first,
#'   which copies `x`. A `DelayedMatrix` and a `big.matrix` are transposed when
#'   they are read.
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
#' @param na How to treat missing values (`NA` and `NaN`). See "Missing values"
#'   in [point_options()].
#'   * `"error"` (default) reports how many there are, and where the first are.
#'   * `"mean"` replaces them by the mean of the row's other values. It does not
#'     apply to `"jaccard"`, `"sorensen"`, `"ccc"` and `"duo"`, whose values are 0,
#'     1 and 2.
#'   * `"pairwise"` compares each pair over the samples that both rows have. It
#'     is for `"pearson"`, `"spearman"` (with any `sign`), `"euclidean"`,
#'     `"manhattan"`, `"ccc"` and `"duo"`.
#'
#'   Infinite values are always an error. A row without any value is an error,
#'   or isolated, as `constant` says.
#' @param min_pairs With `na = "pairwise"`, the minimum number of samples that
#'   two neighbours must have in common. It is a whole number from 2
#'   (without correlations: 1) to the number of columns. `NULL`
#'   (default) is 3, or the number of columns if that is less. Over few samples,
#'   a high correlation or a small distance is often due to chance (over two
#'   samples r is always 1 or -1). If many values are missing, a larger number
#'   is advisable.
#' @param constant How to treat points for which the metric has no value. These
#'   are constant rows under a correlation, and rows of zeros under `"cosine"`,
#'   `"proportional"`, `"jaccard"` and `"sorensen"`. `"error"` (default) refuses
#'   them. `"isolate"` keeps them as isolated points, which have no neighbours
#'   (`NA`) and are not neighbours of any point. `k` must be less than the
#'   number of the other points. Such rows of [metafeatures()] are always left
#'   out.
#' @param weights For `"pearson"` and `"spearman"`, a weight for each sample
#'   (column of `x`, and of `query`), in their order or with their names. `NULL`
#'   (default) gives all samples the same weight. Weights are finite and not
#'   negative, and only their proportions matter. The largest one may be no more
#'   than 1e15 times the smallest one above 0.
#'
#'   The correlation r is then that of `stats::cov.wt(cor = TRUE)`, for
#'   `"spearman"` that of the ordinary average ranks. A sample of weight 0 is
#'   left out: its values are neither read nor ranked, and an `x` in memory is
#'   copied without it. Whether a row is constant depends on the other samples.
#'   P-values need the meaning of weights, too. It is the name in a list, as in
#'   `weights = list(sampling = w)`: see "P-values with weights" in
#'   [nearest_to()].
#' @param adjust For `"pearson"` and `"spearman"`, covariates of the samples
#'   (columns of `x`, and of `query`), such as batch or age. Each row is
#'   replaced by its residuals, and r is the partial correlation: see
#'   "Covariates" in [point_options()]. `NULL` (default): no adjustment.
#'
#'   Give a formula with one side (`~ age + batch`), or the covariates as a
#'   numeric matrix, a vector, a factor, or a data frame of these. They are in
#'   the order of the columns, or have their names.
#' @param data A data frame with one row for each sample, in the order of the
#'   columns or with their names as row names. It holds the variables of the
#'   formula `adjust`. `NULL` (default) takes the sample data of a container
#'   (`colData()`, `pData()`, the `targets` of an `EList`), or with
#'   `points = "columns"` the data of its rows. Other variables are looked up
#'   where the formula was written.
#' @param allele_table For `"ccc"` and `"duo"`, the constants of the table of
#'   alleles: `c(multiplier = , parameter = )`, or one of them. `NULL` (default)
#'   is 9/2 and 2/3 (`"duo"`: 4 and 2/3). The multiplier is a number from 1e-100
#'   to 1e100, and the parameter from 0 to 1. See "Tables of alleles" in [metrics].
#' @param ... Must be empty: other names are an error.
#'
#' @returns A list of class `fsknn_options` of the options that were given.
#'
#' @section Options that some functions do not take:
#' `r exceptions_help()`
#'
#' `weights` and `adjust` are for `"pearson"` and `"spearman"`. `na =
#' "pairwise"` is for these, too, but without `weights` and `adjust`, and also
#' for `"euclidean"`, `"manhattan"`, `"ccc"` and `"duo"`. [metafeatures()] have
#' no missing values.
#' Functions that take a graph ([snn_graph()], [spanning_forest()],
#' [undirected_edges()] and others) take none of these options: they were given
#' when the graph was made.
#'
#' @section Names:
#' All functions match the values for points or samples by one rule. It holds
#' for `weights`, `adjust`, `data`, `outcome`, `block`, `labels`, `groups`,
#' `strata` and so on. The values may be a vector, a matrix, a data frame or
#' survival times.
#'
#' If both the values and `x` have names, values are matched by name, in any
#' order. A name that only one side has is an error. The error says so if the
#' names differ only by [make.names()]. If one side has no names, values are
#' matched by position, and their number must be right. Row names of a data
#' frame that are whole numbers do not count as names. A column of a container's
#' own table is in the order of its samples (or rows).
#'
#' The features of a `query` are matched by name, too. If it has more features
#' than `x`, the others are ignored.
#'
#' @section Missing values:
#' With `na = "pairwise"`, two points are compared over the m samples that both
#' have (of all d). Under `"euclidean"` and `"manhattan"`, the sum of
#' differences is scaled to all d: `sqrt(d / m * sum((a - b)^2))`, and
#' `d / m * sum(|a - b|)`. A pair without missing values has its usual distance.
#' For `"ccc"` and `"duo"`, see "Tables of alleles" in [metrics].
#'
#' Under `"pearson"`, the distance is computed from r over the common samples,
#' as in `cor(use = "pairwise.complete.obs")`. Means come first, then sums of
#' squares and products of the deviations. Under `"spearman"`, each row is
#' ranked once, over its own values, and r is Pearson's of those ranks over the
#' common samples. [stats::cor()] instead ranks both rows again for each pair,
#' so its values differ if values are missing.
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
#' (weighted if there are `weights`), as in `lm()`. The correlation of residuals
#' is the partial correlation (Yule 1907, \doi{10.1098/rspa.1907.0028}; Frisch
#' and Waugh 1933, \doi{10.2307/1907330}). The adjustment is linear.
#'
#' Each covariate takes a degree of freedom, so correlations between unrelated
#' rows are larger. For p-values, edges, trees and the table of [nearest_to()]
#' have the attribute `num_covariates`, the number of covariates that count.
#'
#' The residuals have their own fixed arithmetic (see the vignette "proofs").
#' Distances are the same to the last bit on every backend, for data in memory
#' and in a file, for [metafeatures()] and for `query`.
#'
#' Text becomes a factor, and dates become numbers. Under `"spearman"`, rows are
#' ranked and then adjusted. Numeric covariates are ranked, too, but factors are
#' not. Ranks are over the samples that count, for each column of a matrix by
#' itself, and before interactions are computed.
#'
#' * A covariate that adds nothing to a constant and those before it is dropped,
#'   such as a factor's unused level or a repeated column. Its residual is then
#'   at most 1.2e-7 (2^-23) of its length about its mean. In another order,
#'   others are dropped, and last bits of r may differ.
#' * Covariates that are missing or infinite are an error. So are too many
#'   covariates, with which no row has a residual.
#' * A row that the covariates explain has no residual, and no r: it is treated
#'   as a constant row (see `constant`). The root mean square of its residuals
#'   is then at the level of rounding. The limit is 9.1e-13 (2^-40) times the
#'   power of two that its largest value reaches.
#' * A weight of 0 leaves the sample out of the fit, too.
#' * `na = "mean"` fills in values before rows are adjusted. `na = "pairwise"`
#'   is an error, because each pair would have its own residuals. So is
#'   `"bicor"`, because least squares are not robust, and every metric that is
#'   not a correlation.
#' @seealso [run_options()] for where and how a search runs.
#' @export
#' @examples
#' x <- matrix(rnorm(200 * 12), nrow = 200)
#' x[sample(length(x), 100)] <- NA
#' same <- point_options(na = "pairwise", min_pairs = 8)
#' knn_search(x, k = 3, options = same)
#' threshold_graph(x, 0.9, options = same)
point_options <- function(points = c("rows", "columns"), assay = NULL,
                          dimred = NULL, na = c("error", "pairwise", "mean"),
                          min_pairs = NULL, constant = c("error", "isolate"),
                          weights = NULL, adjust = NULL, data = NULL,
                          allele_table = NULL, ...) {
  check_no_more(..., .belongs = where_it_belongs)
  collect_options()
}

#' Run options: where and how a search runs
#'
#' Every function that compares points takes these options by name, with the
#' same meaning: `knn_search(x, k = 20, backend = "cpu")`. They change time and
#' memory, never the answer. This function collects some of them for several
#' calls. It need not be called.
#'
#' Together with [point_options()], they are the `...` of these functions. Give
#' collected options as `options = `.
#'
#' A default for the session is set by `options()` with the prefix `fsknn.`, for
#' instance `options(fsknn.backend = "cpu")`, for each of them except
#' `checkpoint`. A function that does not take the option ignores the default.
#' So does a call with another option that excludes it.
#'
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
#'   needs, and on CPUs so that bounds compare 8,192 chunks at most. `NULL`
#'   (default) chooses it. It changes time and memory, never the answer.
#' @param max_device_memory The maximum memory on each GPU: bytes, or a string
#'   such as `"4 GiB"` or `"500 MB"`. `NULL` (default) is
#'   `getOption("fsknn.max_device_memory")` if that is set, otherwise the free
#'   memory. Points that do not fit are read in parts, with the same answer. The
#'   CPU engine ignores it.
#' @param max_memory The maximum memory for an `x` (and `query`) that is read by
#'   blocks: bytes, or a string such as `"4 GiB"`. `NULL` (default) is
#'   `getOption("fsknn.max_memory")` if that is set, otherwise a third of the
#'   free memory. See "Data larger than memory" in [run_options()].
#' @param progress Show a progress bar? `NULL` (default) does so in an
#'   interactive session.
#' @param verbose Report the plan (see [knn_plan()]), start, end and seconds?
#'   `FALSE` by default.
#' @param BPPARAM `NULL` (default), or one of BiocParallel's parameters, such as
#'   `BiocParallel::SnowParam(4)`: its workers share the work in tasks. See
#'   "Workers" in [run_options()].
#' @param checkpoint `NULL` (default), or the path of a folder, new or empty.
#'   Each finished task is stored there. After an interruption at any moment,
#'   the same call continues from them, and other processes may help. See
#'   "Checkpoints" in [run_options()], and [knn_worker()].
#' @param ... Must be empty: other names are an error.
#'
#' @returns A list of class `fsknn_options` of the options that were given.
#'
#' @inheritSection point_options Options that some functions do not take
#' @section Workers:
#' With `BPPARAM`, BiocParallel starts workers, and each runs [knn_worker()] in
#' the folder `checkpoint`, or in a temporary one. The answer is the same to the
#' last bit. A failure of a worker raises the same error as a failure here. A
#' lost worker is reported by a message of class `fsknn_worker_lost`. Its task
#' is done by others, or finally by the call itself. If no worker can work, for
#' instance because all have another version of fsknn, it is a
#' `fsknn_worker_error`.
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
#' With `checkpoint`, the search is divided into tasks. Each result is stored in
#' the folder when its task is done. A run that is killed (by `kill -9`, by a
#' queue's time limit, by the machine) loses only the tasks in progress, one for
#' each worker.
#'
#' To continue, call again with the same data and the same folder. Backend,
#' devices, threads, workers, chunk size and `max_memory` may differ. The answer
#' is the same to the last bit. Several calls, and [knn_worker()] on any machine
#' that shares the folder, may work at the same time and share the tasks. Data
#' or arguments that would change the answer are a `fsknn_checkpoint_error` that
#' says which.
#'
#' A folder with other content is refused. The digest of each file is checked
#' before it is used. If the file of a task is damaged or from another search,
#' this is reported and the task is done again. Damage to the file that
#' describes the search (`fsknn-search`) is a `fsknn_checkpoint_error`. These
#' checks find accidents, but not forgery: anyone who may write to the folder
#' could forge a file. Files are therefore readable and writable only for their
#' owner.
#'
#' The folder holds the points (8 bytes a value) and the results of tasks. These
#' are usually a few times 12 bytes for each point and neighbour (with
#' correlations, 20). The folder stays after the call: the same call, or
#' [knn_collect()], then only reads it. Delete it when it is no longer needed.
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
#' A `DelayedMatrix`, a `big.matrix`, a sparse matrix and a file of vectors
#' ([read_points()]) are read by blocks. If the dense form (8 bytes a value)
#' fits in `max_memory`, they become a matrix in memory. Otherwise they are
#' checked, prepared for the metric, and written to a temporary file as they are
#' read. Blocks of the file are then searched against each other, two in memory
#' at a time on the CPU. GPUs read them in parts. The answer is the same to the
#' last bit.
#'
#' The temporary file is as large as the dense form. It has no name, so its
#' space is free again when the call ends, for any reason. It is in `tempdir()`,
#' or in the folder that `options(fsknn.temporary_folder = )` names. That should
#' be on a disk, and not in memory as `/tmp` is on some systems. Too little
#' space is a `fsknn_disk_error` before anything is read. [knn_plan()] reports
#' all this in advance.
#'
#' A block consists of whole chunks of the matrix's file, and each chunk is read
#' once. There are exceptions. If rows or columns are selected in order
#' (`h[keep, ]`), a chunk may be in two blocks and is read for each. A matrix
#' that combines several (`rbind()`, `cbind()`) is read by rows. A matrix whose
#' rows are in another order than in the file is read in that order. Chunks may
#' then be read many times; writing a new file first
#' (`HDF5Array::writeHDF5Array()`) saves time.
#'
#' With `na = "mean"`, missing values are filled in before they are written.
#' `na = "pairwise"` is an error if any value is missing, which is known when
#' all have been read.
#' @seealso [point_options()] for how points are read and compared.
#' @export
#' @examples
#' x <- matrix(rnorm(200 * 12), nrow = 200)
#' rownames(x) <- paste0("gene", 1:200)
#' # store finished tasks in a folder
#' folder <- tempfile()
#' threshold_graph(x, 0.7, subset = "gene7", checkpoint = folder)
#' unlink(folder, recursive = TRUE)
#'
#' # defaults for the session
#' before <- options(fsknn.backend = "cpu", fsknn.num_threads = 2)
#' knn_search(x, k = 3)
#' options(before)
run_options <- function(backend = c("auto", "cuda", "cpu"), devices = NULL,
                        num_threads = NULL, chunk_size = NULL,
                        max_device_memory = NULL, max_memory = NULL,
                        progress = NULL, verbose = FALSE, BPPARAM = NULL,
                        checkpoint = NULL, ...) {
  check_no_more(..., .belongs = where_it_belongs)
  collect_options()
}

#' Test options: the statistic and the family of tests
#'
#' [nearest_to()] and [module_summary()] take these options by name, with the
#' same meaning: `nearest_to(x, outcome = y, statistic = "correlation")`. They
#' change p-values, never the neighbours. This function collects them for
#' several calls. It need not be called.
#'
#' Together with [point_options()] and [run_options()], they are the `...` of
#' these two functions. Give collected options as `options = `.
#'
#' @param statistic The statistic that is permuted for `p_adjusted`. See
#'   *Statistics* in [test_options()].
#'   * `NULL` (default): `"studentized"` for a factor, text or logical values if
#'     it is defined, and otherwise `"correlation"`.
#'   * `"correlation"`: r. For a factor of three or more levels, it is the
#'     correlation ratio.
#'   * `"studentized"`: a difference or a slope divided by a standard error that
#'     allows unequal variances. For a factor, it is Welch's t or F with
#'     moderated variances.
#' @param family The tests that `p_adjusted` and `fdr` are adjusted for.
#'   `"outcome"` (default): all points, for each outcome (or each `point`)
#'   separately. So ten outcomes are ten families. `"call"`: all points of all
#'   outcomes together. It is for correlations, and for Welch's t if all
#'   outcomes are factors of two levels. If some are not factors, the default is
#'   r. A factor of three or more levels must be the only outcome.
#' @param ... Must be empty: other names are an error.
#'
#' @returns A list of class `fsknn_options` of the options that were given.
#'
#' @section Statistics:
#' A permutation test of r tests whether points and outcome are *independent*.
#' If a small group varies more than a large one, permuted means differ less
#' than the means of the data do. So a gene may be called although the means of
#' both groups are equal.
#'
#' If means are equal and samples are many, a studentized statistic has nearly
#' the same distribution in the data and under permutation. Chung and Romano
#' (2013) show it for two groups, and DiCiccio and Romano (2017) for numbers. So
#' for a single point and many samples, its p-value is nearly correct if only
#' the means are equal. For numbers, this is a correlation of 0. If points and
#' outcome are independent, `p_adjusted` is correct for any number of samples,
#' as it is with r. With `adjust`, this holds nearly.
#' * **Two levels**: the difference of the means, divided by a standard error
#'   from both variances, as in Welch's t. It is positive if the second level
#'   has the larger mean. With 10 points or more, samples have weights (see
#'   *Moderated variances*), so these are weighted means. Their difference may
#'   have another sign than r, and `p_value` is that of the weighted means.
#' * **Three or more levels**: Welch's (1951) F. It is not defined with
#'   `adjust`, `weights` or `strata`. The correlation ratio, which is then the
#'   default, is the square root of the share of the variance that the levels
#'   explain.
#' * **Numbers**: the slope of the point on the outcome, divided by its
#'   heteroscedasticity-consistent standard error HC2 (MacKinnon and White
#'   1985). Degrees of freedom are those of Bell and McCaffrey (2002). The
#'   default for numbers is r.
#' * **Covariates**: the slope is that of the regression on the outcome and the
#'   covariates. For two levels, its variance has a part from each level.
#'   Residuals are permuted as for r.
#' * **Strata**: their indicators are covariates of the statistic, also without
#'   `adjust`. The listed correlations then still contain differences between
#'   strata.
#' * **Weights**: the slope is that of the weighted regression, with its HC2,
#'   also for two levels.
#' * **Units**: an outcome that is constant within units is compared with the
#'   means of units, each of which counts once. It is not defined with
#'   `weights`, nor for an outcome that varies within units.
#'
#' The studentized statistic is defined for `"pearson"` only. Ranks would need
#' another variance, which depends on ranks within each group (Brunner and
#' Munzel 2000). So Spearman and bicor permute r. With `na = "pairwise"`, each
#' point has its own number of samples, and so its own scale of t. Each level
#' needs two samples (or units).
#'
#' Points are ordered by the statistic for the step-down method, and not by r.
#' So `p_adjusted` need not increase with the rank.
#'
#' @section Moderated variances:
#' The variance of a small group is variable. So the largest of thousands of
#' Welch's t belongs to points that have a small variance by chance. Therefore
#' variances borrow strength from all points, as in limma (Smyth 2004) and in
#' the moderated Welch test (Demissie et al. 2008):
#' * Each variance (of a level, or HC2) is divided by the residual variance of
#'   the same point. So the scale of a point does not matter.
#' * Over all points, these ratios give a prior by the method of moments of
#'   their logarithms: a scale s0 and d0 degrees of freedom. The moderated ratio
#'   is (d0 s0 + d s) / (d0 + d) for a ratio s with d degrees of freedom. If all
#'   points have the same ratio, d0 is infinite. Then t has the power of r, but
#'   the right standard error for each level.
#' * t is converted to its normal score (Wallace 1959), and F to a chi-squared
#'   value by Bartlett's factor. Otherwise points with few degrees of freedom
#'   would too often be the largest. The degrees of freedom are Satterthwaite's,
#'   where each variance has d0 + d. Such a conversion is called prepivoting
#'   (Beran 1988).
#' * Each sample is weighted by the inverse of its variance over all points.
#'   Permuted groups mix samples of both groups. Without weights, the largest
#'   values of a mixture would differ from those of the data. These weights are
#'   moderated, too. They are not used with `weights`, or for fewer than 10
#'   points.
#'
#' Priors are estimated anew in each permutation, and so need no assumption: if
#' points and outcome are independent, `p_adjusted` is correct. Weights do not
#' depend on an `outcome`. A `point` of [nearest_to()] is itself among the rows
#' that give its weights, so for few rows its `p_adjusted` is approximate. Of
#' more than 2,048 points, some that are spread evenly give priors and weights.
#' A single point has no prior and no weights, so two levels have Welch's t as
#' in [stats::t.test()].
#'
#' If a point has no variance in one level, the level gets that of the prior. So
#' such a point has a finite `statistic` and a `p_adjusted`, which rest on the
#' other points.
#'
#' The column `statistic` has t or F, and the attribute `null` the largest
#' scores of each permutation. As a statistic depends on other points through
#' priors and weights, step-down p-values are correct only nearly if some points
#' do depend on the outcome.
#'
#' @section Level and power in simulations:
#' We simulated 2,000 independent points with equal means, at a level of 5%. The
#' script is `inst/bench/calibration_statistics.R`, and the article
#' "calibration" of the site has all results. The list has the share of data
#' sets in which a point is called: first by permutation of r, then of the
#' studentized statistic. There are 1,000 data sets, for which 95% of such
#' shares are between 4% and 6% at a true share of 5%.
#' * 8 and 32 normal values with standard deviations 3 and 1: 100% and 6%;
#' * the same with a covariate: 100% and 6%;
#' * the same if points have different variances, by a scaled inverse
#'   chi-squared distribution of 4 degrees of freedom: 100% and 6%;
#' * 5 and 60 with standard deviations 3 and 1: 100% and 5%;
#' * 10 and 10: 51% and 6%;
#' * 20 and 20: 25% and 4%;
#' * 20 and 40 in two batches as strata: 79% and 6%;
#' * levels of 6, 12 and 24 with standard deviations 3, 2 and 1: 100% and 5%;
#' * 10 and 10 donors with standard deviations 3 and 1: 42% and 5%;
#' * numbers, 40 samples, where the spread grows with the outcome: 97% and 5%.
#'
#' *Not controlled* are
#' * skewed values of unequal variance. With 8 and 32 lognormal values and
#'   standard deviations 3 and 1, it is 100% and 94%;
#' * variances that differ between points in each group independently, in groups
#'   of unequal size. In 8 and 32, each point and group had a factor from a
#'   scaled inverse chi-squared distribution. With 10 degrees of freedom, it is
#'   43% and 18%, and 100% and 9% with standard deviations 3 and 1. With 4
#'   degrees of freedom, it is 92% and 19%. In groups of 20 and 20 with 10
#'   degrees of freedom, the level holds (25% and 5%).
#'
#' If the groups have the same distribution, samples are exchangeable (residuals
#' nearly). Then the level holds for any statistic.
#'
#' The power is that of r where variances are equal. In 96 data sets, we shifted
#' 20 of 2,000 points in the first group, by 1.4 to 2.2 standard deviations. In
#' groups of 8 and 32, r finds 42% of them, and t 43%. In groups of 20 and 20,
#' they find 38% and 39%. In groups of 5 and 60, both find 59%, and in levels of
#' 6, 12 and 24, 42% and 43%.
#'
#' The studentized statistic takes longer than r, which needs one product for a
#' point and a permutation instead of two or three. `inst/bench/studentized.R`
#' measures it for 12,625 points in 128 samples with 1,000 permutations.
#'
#' On one thread of an AMD EPYC, [nearest_to()] took 4.7 times the processor
#' time of r for two levels (0.39 and 0.08 seconds). It took 3.7 times with two
#' covariates, and 3.9 times for numbers. With 10,000 permutations, it took 4.5
#' times for two levels. Welch's F of three levels took 0.8 times the time of
#' the correlation ratio. [module_summary()] of 25 modules took 1.1 times.
#'
#' `p_value` and `fdr` are not by permutation. With the studentized statistic,
#' they are those of the moderated t or F with its degrees of freedom. So they
#' allow unequal variances, also with `adjust` and `strata`. With `weights`,
#' they assume equal variances. A point without variance in any level, such as
#' one that is 0 in one group and 1 in the other, has no standard error. Its
#' `p_value` and `fdr` are `NA`. Its `p_adjusted` is that of the largest
#' statistic.
#'
#' In the list above, a point has `fdr` <= 0.05 in 5% to 6% of data sets. There
#' is no `fdr` of donors. In the designs that are not controlled, it is nearly
#' 100% with skewed values, and 13% to 25% with independent variances. In groups
#' of 20 and 20 it is 13% with these. In groups of 5 and 60 lognormal values, it
#' is 16% without any difference, and `p_adjusted` has its level.
#' @references
#' Bell RM, McCaffrey DF (2002). Bias Reduction in Standard Errors for Linear
#' Regression with Multi-Stage Samples. *Survey Methodology* 28: 169-181.
#'
#' Beran R (1988). Prepivoting Test Statistics: A Bootstrap View of Asymptotic
#' Refinements. *Journal of the American Statistical Association* 83: 687-697.
#' \doi{10.1080/01621459.1988.10478649}
#'
#' Brunner E, Munzel U (2000). The Nonparametric Behrens-Fisher Problem:
#' Asymptotic Theory and a Small-Sample Approximation. *Biometrical Journal* 42:
#' 17-25.
#'
#' Chung E, Romano JP (2013). Exact and Asymptotically Robust Permutation Tests.
#' *Annals of Statistics* 41: 484-507. \doi{10.1214/13-AOS1090}
#'
#' Demissie M, Mascialino B, Calza S, Pawitan Y (2008). Unequal Group Variances
#' in Microarray Data Analyses. *Bioinformatics* 24: 1168-1174.
#' \doi{10.1093/bioinformatics/btn100}
#'
#' DiCiccio CJ, Romano JP (2017). Robust Permutation Tests for Correlation and
#' Regression Coefficients. *Journal of the American Statistical Association*
#' 112: 1211-1220. \doi{10.1080/01621459.2016.1202117}
#'
#' MacKinnon JG, White H (1985). Some Heteroskedasticity-Consistent Covariance
#' Matrix Estimators with Improved Finite Sample Properties. *Journal of
#' Econometrics* 29: 305-325. \doi{10.1016/0304-4076(85)90158-7}
#'
#' Smyth GK (2004). Linear Models and Empirical Bayes Methods for Assessing
#' Differential Expression in Microarray Experiments. *Statistical Applications
#' in Genetics and Molecular Biology* 3: 3. \doi{10.2202/1544-6115.1027}
#'
#' Wallace DL (1959). Bounds on Normal Approximations to Student's and the
#' Chi-Square Distributions. *Annals of Mathematical Statistics* 30: 1121-1130.
#'
#' Welch BL (1951). On the Comparison of Several Mean Values: An Alternative
#' Approach. *Biometrika* 38: 330-336. \doi{10.1093/biomet/38.3-4.330}
#' @seealso [point_options()] and [run_options()].
#' @export
#' @examples
#' # Equal means, but the smaller group varies more
#' group <- factor(rep(c("ill", "healthy"), c(8, 32)), c("ill", "healthy"))
#' x <- matrix(rnorm(200 * 40), 200) * rep(c(3, 1)[group], each = 200)
#' same <- list(x, outcome = group, sign = "absolute", permutations = 200)
#' do.call(nearest_to, same)$p_adjusted[1:3]
#' do.call(nearest_to, c(same, statistic = "correlation"))$p_adjusted[1:3]
test_options <- function(statistic = NULL, family = c("outcome", "call"), ...) {
  check_no_more(..., .belongs = where_it_belongs)
  collect_options()
}

# Returns those arguments of the caller that are given. Its call does not show
# them where a wrapper passes its own `...` on.
collect_options <- function(frame = caller_env()) {
  names <- setdiff(names(formals(rlang::caller_fn())), "...")
  given <- Filter(function(name) {
    !eval(call("missing", as.name(name)), frame)
  }, names)
  given <- mget(given, envir = frame)
  check_collected(given, frame)
  structure(given, class = "fsknn_options")
}

# Checks options that need neither data nor other options. NULL is the default.
check_collected <- function(given, call) {
  checks <- list(
    points = function(value) check_input(points = value, call = call),
    assay = function(value) check_input(assay = value, call = call),
    dimred = function(value) check_input(dimred = value, call = call),
    na = function(value) check_choice(value, na_choices, "na", call = call),
    constant = function(value) check_constant(value, call),
    backend = function(value) check_backend(value, call),
    devices = function(value) check_device_numbers(value, call = call),
    num_threads = function(value) check_num_threads(value, call = call),
    chunk_size = function(value) check_chunk_size(value, call = call),
    max_device_memory = function(value) check_device_memory(value, call = call),
    max_memory = function(value) check_max_memory(value, call = call),
    progress = function(value) check_progress(value, call = call),
    verbose = function(value) check_flag(value, "verbose", call = call),
    statistic = function(value) check_statistic(value, call),
    family = function(value) {
      check_choice(value, families, "family", call = call)
    }
  )
  given <- Filter(Negate(is.null), given)
  for (name in intersect(names(checks), names(given))) {
    checks[[name]](given[[name]])
  }
}

check_constant <- function(constant, call) {
  check_choice(constant, c("error", "isolate"), "constant", call = call)
}

# The hardware is checked where the search runs.
check_backend <- function(backend, call) {
  check_choice(
    backend, c("auto", "cuda", "cpu"), "backend", synonyms = c(gpu = "cuda"),
    call = call
  )
}

# Says where an argument belongs that the other function of options has, or that
# is one of the functions that take options.
where_it_belongs <- function(name) {
  if (name %in% names(formals(point_options))) {
    "It is one of {.fn point_options}."
  } else if (name %in% names(formals(run_options))) {
    "It is one of {.fn run_options}."
  } else if (name %in% names(formals(test_options))) {
    "It is one of {.fn test_options}."
  } else if (name %in% names(formals(knn_search))) {
    "It is an argument of the function that takes the options, such as
     {.fn knn_search}."
  }
}

#' @export
c.fsknn_options <- function(...) {
  structure(
    unlist(lapply(list(...), unclass), recursive = FALSE),
    class = "fsknn_options"
  )
}

#' @export
print.fsknn_options <- function(x, ...) {
  cat("Options of fsknn:", if (length(x) == 0) " none", "\n", sep = "")
  if (length(x) > 0) {
    utils::str(unclass(x), no.list = TRUE, give.attr = FALSE)
  }
  invisible(x)
}

# The arguments of these functions are the table of options. Checks, defaults
# and messages are made from it.
option_table <- function() {
  c(formals(point_options), formals(run_options), formals(test_options))
}

option_names <- function() {
  setdiff(names(option_table()), "...")
}

option_default <- function(option) {
  eval(c(option_table(), alist(sign = "signed"))[[option]])
}

# The verbs that take options.
option_verbs <- c(
  "knn_search", "knn_graph", "knn_query", "knn_index", "within_search",
  "within_query", "threshold_graph", "mutual_pairs", "pair_histogram",
  "pair_connectivity", "mst_knn.default", "nearest_to", "edge_stability",
  "edge_significance", "compare_neighbours", "knn_predict", "knn_impute",
  "knn_impute_error", "knn_plan", "module_summary", "module_preservation",
  "module_stability", "hidden_factors", "threshold_triples", "nearest_triples",
  "triple_histogram"
)

# Is this the frame of a verb that takes the option? With an index, point
# options can't be changed.
takes_option <- function(frame, option) {
  if (is_index(get0("x", frame, inherits = FALSE))) {
    return(FALSE)
  }
  called <- function_of(frame)
  verbs <- Filter(
    function(name) identical(called, get(name, topenv())), option_verbs
  )
  length(verbs) > 0 && takes(verbs[[1]], option)
}

# Returns the function that was called in this frame.
function_of <- function(frame) {
  for (at in seq_len(sys.nframe())) {
    if (identical(sys.frame(at), frame)) {
      return(sys.function(at))
    }
  }
}

triple_verbs <- c(
  "threshold_triples", "nearest_triples", "triple_histogram"
)

# Options that verbs do not take, why, and what to do instead.
exceptions <- list(
  list(
    verbs = c(
      "nearest_to", "pair_histogram", "compare_neighbours", "module_summary",
      "module_stability"
    ),
    options = c("BPPARAM", "checkpoint"),
    why = "Its work is not divided into tasks."
  ),
  list(
    verbs = "knn_index", options = c("BPPARAM", "checkpoint"),
    why = "It does not search.", cure = "Give it to the search."
  ),
  list(
    verbs = "knn_impute_error", options = "checkpoint",
    why = "It makes several searches, and a folder holds one."
  ),
  list(
    verbs = "knn_plan",
    options = c("progress", "verbose", "BPPARAM", "checkpoint"),
    why = "A plan does no long work."
  ),
  list(
    verbs = "pair_connectivity",
    options = c(
      "backend", "devices", "chunk_size", "max_device_memory", "verbose",
      "BPPARAM", "checkpoint"
    ),
    why = "It runs in this process, on the CPU."
  ),
  list(
    verbs = triple_verbs, options = "chunk_size",
    why = "`stages` divides the work."
  ),
  list(
    verbs = c("knn_impute", "knn_impute_error"),
    options = c("na", "constant", "dimred", "weights", "adjust", "data"),
    why = "Rows are compared over the columns where both have values, without
           weights or adjustment. Other treatments of missing values or
           constant rows, and reduced dimensions, are not supported."
  ),
  list(
    verbs = "module_summary",
    options = c(
      "weights", "chunk_size", "max_device_memory", "verbose", "min_pairs"
    ),
    why = "It computes eigengenes, without weights and without a search."
  ),
  list(
    verbs = "module_preservation", options = c("adjust", "data"),
    why = "It compares correlations without covariates."
  ),
  list(
    verbs = c("module_preservation", "hidden_factors"),
    options = c(
      "weights", "backend", "devices", "chunk_size", "max_device_memory",
      "verbose", "min_pairs", "BPPARAM", "checkpoint"
    ),
    why = "It makes no search. It runs in this process on the CPU, without
           weights."
  ),
  list(
    verbs = c("knn_query", "within_query"), options = "subset",
    why = "`query` has the points whose neighbours are returned."
  ),
  list(
    verbs = "nearest_to", options = "subset",
    why = "`point` says whose neighbours are returned."
  ),
  list(
    verbs = c(
      "mst_knn", "knn_predict", "mutual_pairs", "pair_histogram",
      "module_stability"
    ),
    options = "subset",
    why = "All points contribute to the answer: give only some as `x`."
  ),
  list(
    verbs = c("within_search", "within_query", "threshold_graph"),
    options = "block",
    why = "Pairs within a distance do not depend on blocks: select them
           afterwards."
  )
)

# Verbs that do not take na = "pairwise", and why.
needs_all_values <- list(
  list(
    verbs = "mst_knn",
    why = "The tree is that of all pairs, and those with too few samples in
           common have no distance.",
    cure = "Use {.code na = \"mean\"}, or
            {.code mst_knn(knn_graph(x, na = \"pairwise\"))}."
  ),
  list(
    verbs = "compare_neighbours",
    why = "Points are prepared once for all permutations, and pairs over common
           samples can't be.",
    cure = "Use {.code na = \"mean\"}."
  ),
  list(
    verbs = c("module_summary", "module_preservation"),
    why = "An eigengene is of rows that have all values.",
    cure = "Use {.code na = \"mean\"}."
  ),
  list(
    verbs = "hidden_factors",
    why = "Factors are of rows that have all values.",
    cure = "Use {.code na = \"mean\"}."
  ),
  list(
    verbs = triple_verbs,
    why = "Triples are compared over all samples.",
    cure = "Use {.code na = \"mean\"}."
  )
)

# Returns the entry of such a table for a verb and an option, or NULL.
entry_for <- function(table, verb, option = NULL) {
  for (entry in table) {
    if (verb %in% entry$verbs &&
          (is.null(option) || option %in% entry$options)) {
      return(entry)
    }
  }
}

exceptions_help <- function() {
  quoted <- function(names, mark) paste0(mark, names, mark, collapse = ", ")
  row <- function(verbs, options, why) {
    paste0(
      "| ", paste0("[", verbs, "()]", collapse = ", "), " | ", options, " | ",
      gsub("\\s+", " ", why), " |"
    )
  }
  rows <- c(
    vapply(exceptions, function(entry) {
      row(entry$verbs, quoted(entry$options, "`"), entry$why)
    }, ""),
    vapply(needs_all_values, function(entry) {
      row(entry$verbs, "`na = \"pairwise\"`", entry$why)
    }, "")
  )
  head <- c("| function | does not take | reason |", "| --- | --- | --- |")
  paste(c(head, rows), collapse = "\n")
}

# The default metric. Reduced dimensions are made for Euclidean distances: a
# correlation would weight the first and the last dimension equally.
default_metric <- function(dimred) {
  if (is.null(dimred)) "pearson" else "euclidean"
}

# Returns the checked options of a verb, from its `...` and its arguments
# `metric` and `sign`. `verb` is its name in the tables above.
verb_options <- function(verb, ..., .call = caller_env()) {
  x <- get0("x", .call, inherits = FALSE)
  if (!is_index(x)) {
    return(check_options(options_given(verb, ..., .call = .call), verb, .call))
  }
  # The default of the verb is not that of the index.
  own <- list()
  for (name in c("metric", "sign")) {
    if (exists(name, envir = .call, inherits = FALSE) &&
          !eval(call("missing", as.name(name)), .call)) {
      own[name] <- list(get(name, envir = .call, inherits = FALSE))
    }
  }
  # To check the same arguments again would take longer than a query.
  key <- list(verb, own, rlang::list2(...), session_state())
  if (identical(x$checked$key, key)) {
    return(x$checked$options)
  }
  given <- c(own, option_list(verb, ..., .call = .call))
  options <- options_with_index(x, given, verb, .call)
  if (is.null(options$long)) {
    x$checked <- list(key = key, options = options)
  }
  options
}

# The same, unchecked.
options_given <- function(verb, ..., .call = caller_env()) {
  given <- option_list(verb, ..., .call = .call)
  own <- list()
  for (name in c("metric", "sign")) {
    if (exists(name, envir = .call, inherits = FALSE)) {
      own[name] <- list(get(name, envir = .call, inherits = FALSE))
    }
  }
  c(own, given)
}

# Returns the options in `...`, including those collected by point_options() and
# run_options().
option_list <- function(verb, ..., .call) {
  if (...length() == 0) {
    return(list())
  }
  given <- rlang::list2(...)
  names <- rlang::names2(given)
  for (options in given[names != "options"]) {
    check_not_collected(options, .call)
  }
  if (any(names == "")) {
    abort_too_many(.call)
  }
  collected <- names == "options"
  for (options in given[collected]) {
    if (is_list_of_collected(options)) {
      options <- do.call(c, unname(options))
    }
    if (!inherits(options, "fsknn_options")) {
      was <- describe_value(options)
      abort_argument(
        "{.arg options} must be made by {.fn point_options},
         {.fn run_options} or {.fn test_options}, not {was}.",
        .call
      )
    }
    given <- c(given, unclass(options))
  }
  given <- given[!names(given) %in% "options"]
  names <- names(given)
  if (anyDuplicated(names) > 0) {
    twice <- names[[anyDuplicated(names)]]
    abort_argument("{.arg {twice}} is given twice.", .call)
  }
  for (name in names) {
    check_takes(verb, name, .call)
  }
  given
}

is_list_of_collected <- function(options) {
  is.list(options) && !is.object(options) && length(options) > 0 &&
    all(vapply(options, inherits, NA, "fsknn_options"))
}

# Collected options have no place but `options`.
check_not_collected <- function(value, call) {
  if (inherits(value, "fsknn_options")) {
    abort_argument(
      c(
        "Options of {.fn point_options}, {.fn run_options} and
         {.fn test_options} must be given by the name {.arg options}.",
        i = "Give them as {.code options = c(...)}."
      ),
      call
    )
  }
}

check_takes <- function(verb, name, call) {
  entry <- entry_for(exceptions, verb, name)
  if (!is.null(entry)) {
    abort_argument(
      c(
        "{.fn {verb}} does not take {.arg {name}}.",
        x = entry$why, i = entry$cure
      ),
      call
    )
  }
  if (!name %in% taken_options(verb)) {
    own <- names(formals(function_of(call)))
    abort_no_argument(name, c(own, taken_options(verb)), call)
  }
}

# Only these verbs take test_options().
test_verbs <- c("nearest_to", "module_summary")

takes <- function(verb, option) {
  is.null(entry_for(exceptions, verb, option)) &&
    (verb %in% test_verbs || !option %in% names(formals(test_options)))
}

taken_options <- function(verb) {
  Filter(function(option) takes(verb, option), option_names())
}

# Returns the session's defaults of run options, as far as they apply.
session_defaults <- function(given, verb) {
  names <- setdiff(
    intersect(names(formals(run_options)), taken_options(verb)),
    # These have their own places, where they limit what is found.
    c("checkpoint", "num_threads", "max_memory", "max_device_memory")
  )
  names <- setdiff(names, names(given))
  defaults <- lapply(
    rlang::set_names(names), function(name) getOption(paste0("fsknn.", name))
  )
  defaults <- Filter(Negate(is.null), defaults)
  both <- function() c(given, defaults)
  if (!is.null(given$devices)) {
    defaults$backend <- NULL
  }
  if (identical(both()$backend, "cpu")) {
    defaults$devices <- NULL
  }
  needs_cuda <- identical(given$backend, "cuda") || !is.null(given$devices)
  if (!is.null(both()$BPPARAM) && are_forked(both()$BPPARAM)) {
    if (needs_cuda) {
      defaults$BPPARAM <- NULL
    } else {
      defaults$devices <- NULL
      if (identical(defaults$backend, "cuda")) defaults$backend <- NULL
    }
  }
  defaults
}

# Checks options in one order, as far as possible without the data. `given` are
# some of the options, and `metric` and `sign`.
check_options <- function(given, verb = "knn_search", call = caller_env()) {
  defaults <- session_defaults(given, verb)
  if (length(defaults) == 0) {
    return(check_each_option(given, verb, call))
  }
  rlang::try_fetch(
    check_each_option(c(given, defaults), verb, call),
    fsknn_argument_error = function(error) {
      words <- conditionMessage(error)
      of_session <- Filter(function(name) {
        grepl(paste0("`", name, "`"), words, fixed = TRUE)
      }, names(defaults))
      if (length(of_session) > 0) {
        error$body <- c(
          error$body,
          i = paste0(
            "It is set for this session by `options(fsknn.", of_session[[1]],
            " = )`."
          )
        )
      }
      rlang::cnd_signal(error)
    }
  )
}

check_each_option <- function(given, verb, call) {
  if (!takes(verb, "backend")) {
    given$backend <- "cpu"
  }
  get <- function(name) given[[name]] %||% option_default(name)
  metric <- check_metric(
    given$metric %||% default_metric(given$dimred), call = call
  )
  entry <- entry_for(needs_all_values, verb)
  if (!is.null(entry)) {
    # A mean is no number of alleles.
    if (metric$table) entry$cure <- NULL
    given$na <- check_needs_all(get("na"), entry, call)
  }
  missing <- check_na(given$na %||% "error", given$min_pairs, metric, call)
  options <- list(
    metric = metric,
    na = missing$na,
    min_pairs = missing$min_pairs,
    sign = check_sign(given$sign %||% "signed", metric, call = call),
    constant = check_constant(get("constant"), call),
    chunk_size = check_chunk_size(given$chunk_size, call = call),
    num_threads = check_num_threads(given$num_threads, call = call),
    max_device_memory = check_device_memory(
      given$max_device_memory, call = call
    ),
    max_memory = check_max_memory(given$max_memory, call = call),
    progress = takes(verb, "progress") &&
      check_progress(given$progress, call = call),
    verbose = check_flag(get("verbose"), "verbose", call = call),
    instruction_set = check_instruction_set(call = call),
    backend = choose_backend(
      backend_for(given$BPPARAM, get("backend"), given$devices, call = call),
      given$devices, call = call
    ),
    automatic = is_automatic(get("backend"), given$devices),
    input = check_input(get("points"), given$assay, given$dimred, call = call),
    weights = check_sample_weights(
      without_kind(given$weights), metric, call = call
    ),
    weight_kind = check_weight_kind(given$weights, call),
    allele_table = check_allele_table(given$allele_table, metric, call),
    statistic = check_statistic(given$statistic, call),
    family = check_choice(get("family"), families, "family", call = call)
  )
  # Similarities above 1 and distances below 0 are possible with a large
  # multiplier, and over common samples.
  common <- metric$table && identical(options$na, "pairwise")
  if (common || !is.null(options$allele_table)) {
    options$metric$most <- max(1, largest_table_entry(
      options$allele_table %||% default_allele_table(metric$name), common
    ))
    options$metric$below_zero <- options$metric$most > 1
  }
  check_na_and_weights(options, call = call)
  options["adjust"] <- list(
    check_adjust(given$adjust, given$data, options, call = call)
  )
  # What a message about missing values suggests.
  able <- is.null(entry) && is.null(given$weights) && is.null(given$adjust)
  options$cures_na <- c(
    if (able && isTRUE(metric$pairwise)) "pairwise", "mean"
  )
  options$long <- check_long_work(
    given$BPPARAM, given$checkpoint, options, given$num_threads, call = call
  )
  options
}

check_needs_all <- function(na, entry, call) {
  if (identical(na, na_choices)) {
    return("error")
  }
  if (!identical(na, "pairwise")) {
    return(check_choice(na, c("error", "mean"), "na", call = call))
  }
  abort_argument(
    c(
      "{.code na = \"pairwise\"} can't be used here.",
      x = entry$why, i = entry$cure
    ),
    call
  )
}
