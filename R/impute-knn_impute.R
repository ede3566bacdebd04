#' Impute missing values from the nearest neighbours
#'
#' Replaces each missing entry of a row by the mean of this entry in its k
#' nearest rows, the *donors*. The neighbours are exact and from all rows.
#' `impute::impute.knn()`, which defined this method, instead cuts the rows into
#' blocks of at most 1,500 and searches within a block.
#'
#' @details
#' **Candidate donors.** The neighbours of each row with missing values are
#' searched among all rows whose share of missing values is at most `row_max`.
#' Distances use the columns that both rows have (`na = "pairwise"` of
#' [knn_search()]). Donors give measured values only, never imputed ones.
#'
#' **Donors of an entry.** With `donors = "nearest"` (default), the donors are
#' those among the k nearest rows that have the entry, as in
#' `impute::impute.knn()`. So with `k = 10` there may be only eight. With
#' `"available"`, they are the k nearest rows that *have* the entry. So there
#' are always k donors if k rows have it (Troyanskaya et al. 2001, and
#' scikit-learn's `KNNImputer`). Rows with fewer donors are searched again, so
#' `checkpoint` is not available.
#'
#' **Imputed value.** Under `"euclidean"` and `"manhattan"`, the imputed value
#' is the mean of the donors' values. `"pearson"` ignores level and spread, so
#' each donor is first scaled to the row. Its value becomes (value - mean) times
#' the ratio of the standard deviations, plus the row's mean. These means and
#' standard deviations are over the columns that both rows have.
#'
#' With `weighting = "distance"`, a donor has the
#' weight 1 / distance; if there are donors at distance 0, only these count. The
#' `sd` of the donors' values shows how well they agree. It is not a standard
#' error, because donors may agree and be wrong.
#'
#' **Column means.** Some entries get the mean of their column, over the rows
#' whose share of missing values is at most `row_max`:
#' * all entries of rows above `row_max`;
#' * entries that no donor has;
#' * entries of rows without neighbours (under `"pearson"`, constant rows).
#'
#' A message of class `fsknn_column_means` counts these entries, and the table
#' of imputed values shows them with 0 `donors`.
#'
#' **Differences from impute.** Only in these cases does `impute::impute.knn()`
#' 1.72 give other values. It uses 0 for the first value of the first column in
#' that column's mean. It leaves 0 in a row that is the only one above
#' `row_max`. It finds neighbours of a row without any value if `row_max` is 1.
#' It gives two rows without a common column a distance of 10^5 in each column,
#' so that they can be nearer than other rows.
#'
#' **Limits.** Imputed values vary less than measured ones, because they are
#' means. Values that are missing because they are small (as in proteomics) are
#' replaced by larger ones. [knn_impute_error()] estimates both effects in your
#' data. Later analyses treat imputed values as measured. If you train and test
#' a model, impute within each fold.
#'
#' @param x Rows with missing values (`NA`, `NaN`), such as genes or probes, in
#'   any form that [knn_search()] takes except [metafeatures()]. Infinite values
#'   are an error.
#' @param k Number of donors, a whole number from 1. It must be less than the
#'   number of rows whose share of missing values is at most `row_max`.
#' @param metric `"euclidean"` (default), `"manhattan"` or `"pearson"`.
#' @param donors `"nearest"` (default) or `"available"`: see Details.
#' @param weighting `"equal"` (default) or `"distance"`: the weights of donors.
#' @param row_max The largest share of missing values in a row, from 0 to 1 (0.5
#'   by default). A row with more gets the columns' means and is not a donor.
#' @param col_max The largest share of missing values in a column, from 0 to 1
#'   (0.8 by default). A column with more is an error.
#' @param into For an `ExpressionSet`, a `SummarizedExperiment` and an `EList`:
#'   the name of the assay that gets the imputed matrix. `NULL` (default)
#'   replaces the assay that was read.
#' @param ... [Point options][point_options()] and [run
#'   options][run_options()], by name, or collected as `options = `.
#'   `min_pairs` is 1 by default, under `"pearson"` 3.
#'
#' @returns `x` without missing values, in the same form:
#'   * for a matrix, a matrix of the same kind; for a data frame, a data frame;
#'   * for a container, the same container with one assay replaced or added, of
#'     the kind that was read;
#'   * for a `DelayedMatrix` with values from a file, an `HDF5Matrix` in a new
#'     file. \pkg{HDF5Array} chooses a temporary file, which the end of the
#'     session deletes: see `HDF5Array::setHDF5DumpDir()`;
#'   * for another `DelayedMatrix` or a `big.matrix`, the same in memory; for a
#'     sparse `Matrix`, a sparse `Matrix`.
#'
#'   Data from a file are read into memory, and must fit in `max_memory`.
#'
#'   The result has a table of the imputed values, a data frame of class
#'   `fsknn_imputed` with one row for each entry that was missing:
#'   * `row`, `column`: the position in `x`;
#'   * `row_name`, `column_name`: their names, if `x` has names;
#'   * `value`: the imputed value;
#'   * `sd`: the standard deviation of the donors' values (with their weights),
#'     `NA` for fewer than two donors;
#'   * `donors`: the number of donors; 0 if the value is the column's mean;
#'   * `assay`: the name or number of the assay, for a container. The table of
#'     a container has the imputed values of all its assays.
#'
#'   The table of `filled <- knn_impute(x)` is `attr(filled, "imputed")` for a
#'   matrix and a data frame. For a `SummarizedExperiment` and a `DataFrame`, it
#'   is `S4Vectors::metadata(filled)$imputed`; for an `EList`, `filled$imputed`;
#'   for an `ExpressionSet`,
#'   `Biobase::preproc(Biobase::experimentData(filled))$imputed`.
#'
#'   The table describes the values as they were imputed. It does not follow
#'   later changes of `filled`. Functions such as `t()`, `log2()` and `scale()`
#'   keep it as it is; subsetting a matrix drops it. After a change of the
#'   order, use the names instead of the positions.
#'
#' @section Errors:
#' The following are errors of class `fsknn_argument_error`:
#' * a column with a share of missing values above `col_max`, or without any
#'   value;
#' * a `k` that is not less than the number of donors;
#' * an infinite value;
#' * an `x` that does not fit in `max_memory`.
#'
#' A row without any value is no error. It gets the columns' means.
#' @references
#' Troyanskaya O, Cantor M, Sherlock G, Brown P, Hastie T, Tibshirani R,
#' Botstein D, Altman RB (2001). Missing value estimation methods for DNA
#' microarrays.
#' *Bioinformatics* 17: 520-525. \doi{10.1093/bioinformatics/17.6.520}
#' @seealso [knn_impute_error()] to choose `k` and the metric.
#' @export
#' @examples
#' x <- matrix(rnorm(10 * 12), 10)[rep(1:10, 20), ] + 0.3 * rnorm(200 * 12)
#' holes <- replace(x, sample(length(x), 100), NA)
#' filled <- knn_impute(holes, k = 5)
#' sqrt(mean((filled - x)[is.na(holes)]^2))
#' attr(filled, "imputed")
knn_impute <- function(x, k = 10,
                       metric = c("euclidean", "manhattan", "pearson"), ...,
                       donors = c("nearest", "available"),
                       weighting = c("equal", "distance"), row_max = 0.5,
                       col_max = 0.8, into = NULL) {
  check_supplied(x)
  options <- impute_options("knn_impute", ..., metric = metric)
  how <- check_impute(k, donors, weighting, row_max, col_max)
  started <- Sys.time()
  check_into(into, x)
  check_one_search(how, options$long$folder)
  read <- read_holes(x, options)
  how$points <- read
  holes <- find_holes(read$values, how, read, options$num_threads)
  filled <- fill_holes(read$values, holes, how, options)
  tell_column_means(filled, how, read)
  filled$searched <- new_searched(facts_of_verb(options, read$values, started))
  put_back(x, filled, read, into, options$input)
}

impute_metrics <- c("euclidean", "manhattan", "pearson")

# Returns the checked options of a verb, and `asked_pairs`, the given min_pairs.
impute_options <- function(verb, ..., metric, call = caller_env()) {
  given <- option_list(verb, ..., .call = call)
  asked_pairs <- given$min_pairs
  given$metric <- check_choice(metric, impute_metrics, "metric", call = call)
  given$na <- "pairwise"
  if (is.null(asked_pairs) && given$metric != "pearson") {
    given$min_pairs <- 1
  }
  given$constant <- "isolate"
  options <- check_options(given, verb, call)
  # Searches of one call are many, and their answer is no graph.
  options$counts_known <- TRUE
  options["asked_pairs"] <- list(asked_pairs)
  options
}

# How entries are made of neighbours. (`points`, for messages, are added when
# they are read.)
check_impute <- function(k, donors, weighting, row_max, col_max,
                         call = caller_env()) {
  list(
    k = check_whole_number(k, "k", 1, .Machine$integer.max, call = call),
    available = check_choice(
      donors, c("nearest", "available"), "donors", call = call
    ) == "available",
    by_distance = check_choice(
      weighting, c("equal", "distance"), "weighting", call = call
    ) == "distance",
    row_max = check_share(row_max, "row_max", call = call),
    col_max = check_share(col_max, "col_max", call = call)
  )
}

# A folder is of one search.
check_one_search <- function(how, checkpoint, call = caller_env()) {
  if (how$available && !is.null(checkpoint)) {
    abort_argument(
      c(
        "{.arg checkpoint} can't be used with {.code donors = \"available\"}.",
        x = "Rows that lack donors are searched for again."
      ),
      call
    )
  }
}

check_share <- function(value, arg, call = caller_env()) {
  good <- is.numeric(value) && length(value) == 1 && is.finite(value) &&
    value >= 0 && value <= 1
  if (!good) {
    given <- describe_value(value)
    abort_argument(
      "{.arg {arg}} must be one number from 0 to 1, not {given}.", call
    )
  }
  as.double(value)
}

# The values in memory, as doubles, points in rows.
read_holes <- function(x, options, call = caller_env()) {
  points <- take_points(x, options$input, "x", call = call)
  if (is_metafeatures(points$values)) {
    abort_argument(
      c(
        "{.arg x} can't be metafeatures.",
        i = "Fill missing values in before {.fn metafeatures}."
      ),
      call
    )
  }
  check_num_features(
    ncol(points$values), metric_facts("euclidean"), "x", points$transposed, call
  )
  options$in_memory <- TRUE
  points <- bring_all(points, NULL, options, call)$points
  if (!is.double(points$values)) {
    storage.mode(points$values) <- "double"
  }
  scan <- in_core(
    cpp_scan_missing(points$values, options$num_threads, NULL, quick = TRUE),
    call
  )
  check_finite(points, scan, "x", call = call)
  points
}

# Which rows and columns lack how much. eligible: the rows that may give and
# take; asked: of those, the ones with a missing value.
find_holes <- function(values, how, points, num_threads,
                       call = caller_env()) {
  counts <- in_core(cpp_count_missing(values, num_threads), call)
  num_features <- ncol(values)
  check_columns(counts$columns, nrow(values), how$col_max, points, call)
  known <- counts$rows <= trunc(how$row_max * num_features) &
    counts$rows < num_features
  list(
    rows = counts$rows, eligible = known,
    asked = which(known & counts$rows > 0)
  )
}

check_columns <- function(missing, num_rows, col_max, points, call) {
  bad <- which(missing > col_max * num_rows | missing == num_rows)
  if (num_rows == 0 || length(bad) == 0) {
    return(invisible())
  }
  side <- feature_side(points)
  count <- length(bad)
  empty <- all(missing[bad] == num_rows)
  limit <- paste0(format(100 * col_max), "%")
  where <- first_few(utils::head(bad, 3), count)
  abort_argument(
    c(
      if (empty) {
        "{.arg x} must have no {side} whose values are all missing."
      } else {
        "{.arg x} must have no {side} with more than {limit} of its values
         missing ({.arg col_max})."
      },
      x = "{tally(count, side)} {cli::qty(count)}{?has/have} {if (empty) \"no
           value\" else \"more\"}: {where}.",
      i = if (empty) {
        "Leave {cli::qty(count)}{?it/them} out."
      } else {
        "Leave {cli::qty(count)}{?it/them} out, or raise {.arg col_max}."
      }
    ),
    call
  )
}

# --- filling -----------------------------------------------------------------

# values without missing ones, and the entries that were: row, column, value,
# sd, donors, by column, then row.
fill_holes <- function(values, holes, how, options, call = caller_env()) {
  entries <- list(
    row = integer(), column = integer(), value = double(), sd = double(),
    donors = integer()
  )
  stages <- list()
  if (length(holes$asked) > 0) {
    stages <- find_givers(values, holes, how, options, call = call)
    entries <- make_entries(stages, how, options, call = call)
  }
  alone <- unlist(lapply(stages, function(stage) {
    stage$numbers[is.na(stage$index[, 1])]
  }))
  entries_alone <- sum(entries$row %in% alone)
  entries <- add_rows_above(entries, values, holes)
  made <- put_means(entries$made, values, holes)
  list(
    values = in_core(
      cpp_put_entries(
        values, made$row, made$column, made$value, options$num_threads
      ),
      call
    )[[1]],
    entries = made, above = entries$above,
    entries_above = entries$entries_above,
    alone = length(alone), entries_alone = entries_alone
  )
}

# Rows above row_max have no donors.
add_rows_above <- function(entries, values, holes) {
  rows <- which(!holes$eligible)
  if (length(rows) == 0) {
    return(list(made = entries, above = 0L, entries_above = 0L))
  }
  at <- which(is.na(values[rows, , drop = FALSE]), arr.ind = TRUE)
  count <- nrow(at)
  made <- list(
    row = c(entries$row, rows[at[, 1]]),
    column = c(entries$column, unname(at[, 2])),
    value = c(entries$value, rep(NA_real_, count)),
    sd = c(entries$sd, rep(NA_real_, count)),
    donors = c(entries$donors, integer(count))
  )
  list(made = in_order(made), above = length(rows), entries_above = count)
}

# By column, then row: as the core has them, of one search.
in_order <- function(entries) {
  order <- order(entries$column, entries$row, method = "radix")
  lapply(entries, `[`, order)
}

# Of many entries there is hardly ever one: asked without a vector of them all.
any_without_donors <- function(entries) {
  length(entries$donors) > 0 && min(entries$donors) == 0
}

# Where there are no donors, the column's mean over the rows that take part, or
# over all where none of those has a value.
put_means <- function(made, values, holes) {
  if (!any_without_donors(made)) {
    return(made)
  }
  none <- which(made$donors == 0)
  columns <- unique(made$column[none])
  part <- values[, columns, drop = FALSE]
  means <- colMeans(part[holes$eligible, , drop = FALSE], na.rm = TRUE)
  bare <- is.nan(means)
  means[bare] <- colMeans(part[, bare, drop = FALSE], na.rm = TRUE)
  made$value[none] <- means[match(made$column[none], columns)]
  made
}

# The neighbours of the rows that ask, in stages of list(rows, index,
# distance), numbers of `values`. One search; where each entry has its own
# donors, rows that lack some ask again for twice as many, until there are none:
# the first k of more are those of fewer.
find_givers <- function(values, holes, how, options, call = caller_env()) {
  eligible <- which(holes$eligible)
  check_donors(how, length(eligible), nrow(values), call)
  all_in <- length(eligible) == nrow(values)
  part <- if (all_in) values else values[eligible, , drop = FALSE]
  asked <- if (all_in) holes$asked else match(holes$asked, eligible)
  most <- length(eligible) - 1L
  if (how$available && has_correlation(options$metric)) {
    most <- most - num_isolated(part, how$k, options, call)
  }
  share <- sum(holes$rows[holes$asked]) / length(part)
  wanted <- if (how$available) {
    min(most, ceiling(how$k * (1 + 2 * share)) + 2L)
  } else {
    how$k
  }
  stages <- list()
  while (length(asked) > 0) {
    found <- search_givers(part, asked, wanted, options, call)
    done <- is_served(part, asked, found, how, options, call) | wanted == most
    stages <- c(stages, list(list(
      values = part, rows = asked[done], numbers = eligible[asked[done]],
      index = found$index[done, , drop = FALSE],
      distance = found$distance[done, , drop = FALSE]
    )))
    asked <- asked[!done]
    wanted <- min(most, 2L * wanted)
  }
  stages
}

check_donors <- function(how, num_eligible, num_rows, call) {
  if (how$k < num_eligible) {
    return(invisible())
  }
  side <- point_side(how$points)
  others <- num_rows - num_eligible
  limit <- paste0(format(100 * how$row_max), "%")
  abort_argument(
    c(
      "{.arg k} must be less than the number of {side}s that may be donors,
       {format_count(num_eligible)}, but is {format_count(how$k)}.",
      i = if (others > 0) {
        "{format_count(others)} {side}{cli::qty(others)}{?s} {?has/have}
         more than {limit} of the values missing ({.arg row_max})."
      }
    ),
    call
  )
}

# Rows that are no one's neighbours: under "pearson" those that do not vary.
num_isolated <- function(part, k, options, call) {
  options$input <- check_input()
  length(new_search(part, options, k = k, call = call)$skip)
}

search_givers <- function(part, asked, k, options, call) {
  options$input <- check_input()
  search <- new_search(
    part, options, k = k, call = call,
    subset = if (length(asked) < nrow(part)) asked
  )
  withCallingHandlers(
    run_search(search, call),
    fsknn_short_rows = function(message) {
      rlang::cnd_muffle(message)
    }
  )
}

# Has each missing entry of these rows k donors, or are there no more?
is_served <- function(part, asked, found, how, options, call) {
  if (!how$available) {
    return(rep(TRUE, length(asked)))
  }
  last <- found$index[, ncol(found$index)]
  found$values <- part
  found$rows <- asked
  donors <- give(found, how$k, how, options, call)
  short <- unique(donors$row[donors$donors < how$k])
  is.na(last) | !asked %in% short
}

give <- function(stage, k, how, options, call) {
  how$rescaled <- has_correlation(options$metric)
  in_core(cpp_impute(
    stage$values, stage$rows, stage$index, stage$distance, k,
    how[c("available", "by_distance", "rescaled")], options$num_threads
  ), call)
}

make_entries <- function(stages, how, options, k = how$k,
                         call = caller_env()) {
  made <- lapply(stages, function(stage) {
    entries <- give(stage, k, how, options, call)
    if (!identical(stage$rows, stage$numbers)) {
      entries$row <- stage$numbers[match(entries$row, stage$rows)]
    }
    entries
  })
  if (length(made) == 1) {
    made <- made[[1]]
  } else {
    parts <- names(made[[1]])
    made <- in_order(stats::setNames(
      lapply(parts, function(part) unlist(lapply(made, `[[`, part))), parts
    ))
  }
  check_filled(made, how$points, call)
  made
}

# Donors that are brought to a row's spread may leave the range of a double.
check_filled <- function(made, points, call) {
  bad <- which(made$donors > 0 & !is.finite(made$value))
  if (length(bad) == 0) {
    return(invisible())
  }
  rows <- describe_rows(utils::head(made$row[bad], 3), points)
  where <- first_few(
    paste0(
      point_side(points), " ", rows, ", ", feature_side(points), " ",
      utils::head(made$column[bad], 3)
    ),
    length(bad)
  )
  cli_abort(
    c(
      "A filled-in value is beyond the range of a double (about 1.8e308).",
      x = "{tally(length(bad), \"value\")}, at {where}.",
      i = "Scale {.arg x}, or look for rows of a wrong magnitude."
    ),
    class = c("fsknn_range_error", "fsknn_error"),
    call = call
  )
}

tell_column_means <- function(filled, how, points) {
  if (!any_without_donors(filled$entries)) {
    return(invisible())
  }
  count <- sum(filled$entries$donors == 0)
  row <- point_side(points)
  column <- feature_side(points)
  above <- filled$above
  of_above <- filled$entries_above
  alone <- filled$alone
  of_alone <- filled$entries_alone
  without <- count - of_above - of_alone
  limit <- paste0(format(100 * how$row_max), "%")
  lack <- if (how$row_max < 1) {
    "more than {limit} of the values missing ({.arg row_max})"
  } else {
    "all values missing"
  }
  cli::cli_inform(
    c(
      "{format_count(count)} missing {cli::qty(count)}value{?s} {?is/are}
       filled by the mean of {?its/their} {column}.",
      x = if (of_above > 0) {
        paste0(
          "{format_count(of_above)} {cli::qty(of_above)}{?is/are} in
           {format_count(above)} {row}{cli::qty(above)}{?s} with ", lack, "."
        )
      },
      x = if (of_alone > 0) {
        "{format_count(of_alone)} {cli::qty(of_alone)}{?is/are} in
         {format_count(alone)} {row}{cli::qty(alone)}{?s} without neighbours."
      },
      x = if (without > 0) {
        "{format_count(without)} {cli::qty(without)}{?is/are} where no donor has
         a value."
      },
      i = if (without > 0 && !how$available) {
        "{.code donors = \"available\"} takes the nearest {row}s that have
         one."
      }
    ),
    class = "fsknn_column_means",
    count = count
  )
}
