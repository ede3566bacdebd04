#' Estimate the error of imputed values
#'
#' Hides some of the known entries, imputes them as [knn_impute()] does, and
#' measures the error for each number of neighbours and each metric. Use it to
#' choose both.
#'
#' @details `hide = "random"` (default) hides every entry with the same
#' probability. `"low"` hides low values first, as the detection limit of a mass
#' spectrometer does. It adds a normal deviate to each value, with half of the
#' standard deviation of all values, and hides the smallest sums.
#'
#' Data are rarely missing at random. Then `"low"` gives the more realistic
#' error, which is larger: neighbours that have the entry have larger values
#' there.
#'
#' A hidden entry may not bring a row above `row_max` or a column above
#' `col_max`. Another entry is hidden instead, so that the same rows take part
#' as in [knn_impute()]. R's random numbers choose all entries at the start. So
#' `set.seed()` repeats the choice, and every metric and `k` has the same
#' entries. Each metric needs one search, for the largest `k`.
#'
#' @inheritParams knn_impute
#' @param fraction The share of the known entries to hide, above 0 and below 1.
#' @param k The numbers of donors to try: whole numbers.
#' @param metric One or more of `"euclidean"`, `"manhattan"`, `"pearson"`.
#' @param hide `"random"` (default) or `"low"`: see Details.
#' @param donors `"nearest"` (default) or `"available"`: see [knn_impute()].
#'
#' @returns A data frame of class `fsknn_impute_error` with a row for each
#'   metric and `k`:
#'   * `metric`, `k`;
#'   * `rmse`: the root of the mean squared error over the hidden entries;
#'   * `bias`: the mean of the imputed minus the hidden values;
#'   * `column_means`: the number of entries that got the column's mean.
#'
#'   Its attributes are `row_means` and `column_means`, the errors (rmse) of
#'   these means; `spread`, the standard deviation of the hidden values;
#'   `num_hidden`, `hide`, `donors` and `weighting`. [print()] and [plot()] show
#'   it.
#' @seealso [knn_impute()]
#' @export
#' @examples
#' x <- matrix(rnorm(10 * 12), 10)[rep(1:10, 20), ] + 0.5 * rnorm(200 * 12)
#' set.seed(1)
#' error <- knn_impute_error(x, k = c(1, 2, 5, 10, 20, 50))
#' error
#' if (requireNamespace("ggplot2", quietly = TRUE)) {
#'   plot(error)
#' }
knn_impute_error <- function(x, fraction = 0.05,
                             k = c(1, 2, 3, 5, 10, 15, 20, 30),
                             metric = c("euclidean", "pearson"), ...,
                             hide = c("random", "low"),
                             donors = c("nearest", "available"),
                             weighting = c("equal", "distance"), row_max = 0.5,
                             col_max = 0.8) {
  check_supplied(x)
  metrics <- check_metrics(metric)
  asked <- check_ks(k)
  hide <- check_choice(hide, c("random", "low"), "hide")
  check_part(fraction)
  options <- impute_options("knn_impute_error", ..., metric = metrics[[1]])
  how <- check_impute(max(asked), donors, weighting, row_max, col_max)
  started <- Sys.time()
  read <- read_holes(x, options)
  how$points <- read
  find_holes(read$values, how, read, options$num_threads)
  hidden <- draw_hidden(read$values, fraction, hide, how)
  truth <- read$values[hidden]
  values <- replace(read$values, hidden, NA)
  holes <- find_holes(values, how, read, options$num_threads)
  verb <- current_env()
  judged <- lapply(metrics, function(metric) {
    options <- impute_options_of(metric, options)
    judge_metric(values, holes, hidden, truth, asked, how, options, verb)
  })
  result <- new_impute_error(
    do.call(rbind, judged), values, hidden, truth, hide, how
  )
  options$metric$name <- paste(metrics, collapse = ", ")
  attr(result, "searched") <- new_searched(
    facts_of_verb(options, values, started)
  )
  result
}

check_metrics <- function(metric, call = caller_env()) {
  if (!is.character(metric) || length(metric) == 0 || anyNA(metric)) {
    given <- describe_value(metric)
    abort_argument(
      "{.arg metric} must be one or more names of metrics, not {given}.", call
    )
  }
  vapply(unique(metric), check_choice, "", impute_metrics, "metric",
         call = call, USE.NAMES = FALSE)
}

check_ks <- function(k, call = caller_env()) {
  good <- is.numeric(k) && !is.object(k) && is.null(dim(k)) &&
    length(k) > 0 && all(is.finite(k)) && all(k == trunc(k)) && all(k >= 1)
  if (!good) {
    given <- describe_value(k)
    abort_argument(
      "{.arg k} must be whole numbers, 1 or more, not {given}.", call
    )
  }
  sort(unique(as.integer(k)))
}

check_part <- function(fraction, call = caller_env()) {
  check_share(fraction, "fraction", call = call)
  if (fraction <= 0 || fraction >= 1) {
    abort_argument(
      "{.arg fraction} must be above 0 and below 1, not {fraction}.", call
    )
  }
}

# The same but for the metric.
impute_options_of <- function(metric, options) {
  options$metric <- metric_facts(metric)
  options["min_pairs"] <- list(
    options$asked_pairs %||% if (metric != "pearson") 1L
  )
  options
}

# Places in `values` of entries to hide, no row and no column above its share.
draw_hidden <- function(values, fraction, hide, how, call = caller_env()) {
  known <- which(!is.na(values))
  count <- max(1, round(fraction * length(known)))
  key <- if (hide == "random") {
    stats::runif(length(known))
  } else {
    values[known] + stats::rnorm(
      length(known), sd = standard_deviation(values[known]) / 2
    )
  }
  known <- known[order(key)]
  row <- (known - 1) %% nrow(values) + 1
  column <- (known - 1) %/% nrow(values) + 1
  lacks_row <- rowSums(is.na(values))
  lacks_column <- colSums(is.na(values))
  room_row <- min(
    trunc(how$row_max * ncol(values)), ncol(values) - 1
  ) - lacks_row
  room_column <- pmin(
    trunc(how$col_max * nrow(values)), nrow(values) - 1
  ) - lacks_column
  free <- number_within(row) <= room_row[row]
  known <- known[free]
  free <- number_within(column[free]) <= room_column[column[free]]
  known <- known[free]
  if (length(known) < count) {
    most <- format(floor(1000 * length(known) / sum(!is.na(values))) / 1000)
    abort_argument(
      c(
        "{.arg fraction} must be at most {most} here.",
        x = "More would bring rows above {.arg row_max} or columns above
             {.arg col_max}."
      ),
      call
    )
  }
  sort(known[seq_len(count)])
}

# 1 for the first of each kind, 2 for the second ...
number_within <- function(kind) {
  order <- order(kind)
  sizes <- rle(kind[order])$lengths
  number <- integer(length(kind))
  number[order] <- sequence(sizes)
  number
}

# One search, and an error for each k.
judge_metric <- function(values, holes, hidden, truth, ks, how, options,
                         call = caller_env()) {
  stages <- find_givers(values, holes, how, options, call = call)
  rows <- lapply(ks, function(k) {
    made <- make_entries(stages, how, options, k, call = call)
    entries <- add_rows_above(made, values, holes)
    entries$made <- put_means(entries$made, values, holes)
    at <- (entries$made$column - 1) * as.double(nrow(values)) +
      entries$made$row
    filled <- entries$made$value[match(hidden, at)]
    data.frame(
      metric = options$metric$name, k = k,
      rmse = root_mean_square(filled, truth),
      bias = mean_difference(filled, truth),
      column_means = sum(at[entries$made$donors == 0] %in% hidden)
    )
  })
  check_errors_in_range(do.call(rbind, rows), call)
}

check_errors_in_range <- function(errors, call) {
  if (all(is.finite(errors$rmse)) && all(is.finite(errors$bias))) {
    return(errors)
  }
  cli_abort(
    c(
      "An error is beyond the range of a double (about 1.8e308).",
      i = "Scale {.arg x}, or look for rows of a wrong magnitude."
    ),
    class = c("fsknn_range_error", "fsknn_error"),
    call = call
  )
}

new_impute_error <- function(table, values, hidden, truth, hide, how) {
  rmse <- function(filled) root_mean_square(filled, truth)
  row <- (hidden - 1) %% nrow(values) + 1
  column <- (hidden - 1) %/% nrow(values) + 1
  structure(
    table,
    class = c("fsknn_impute_error", "data.frame"),
    row_means = rmse(rowMeans(values, na.rm = TRUE)[row]),
    column_means = rmse(colMeans(values, na.rm = TRUE)[column]),
    spread = standard_deviation(truth),
    num_hidden = length(hidden), hide = hide,
    donors = if (how$available) "available" else "nearest",
    weighting = if (how$by_distance) "distance" else "equal"
  )
}

#' @method format fsknn_impute_error
#' @export
format.fsknn_impute_error <- function(x, ...) {
  best <- which.min(x$rmse)
  words <- c(random = "at random", low = "low values first")
  number <- function(value) format(value, digits = 3)
  c(
    paste0(
      "Error of imputing ", tally(attr(x, "num_hidden"), "hidden value"), " (",
      words[[attr(x, "hide")]], "), donors: ", attr(x, "donors"),
      if (attr(x, "weighting") == "distance") ", by 1 / distance"
    ),
    paste0(
      "Least: ", number(x$rmse[best]), " with k = ", x$k[best], ", ",
      x$metric[best], "; row means ", number(attr(x, "row_means")),
      ", column means ", number(attr(x, "column_means")),
      ", standard deviation ", number(attr(x, "spread"))
    ),
    format_searched(x)
  )
}

#' @export
print.fsknn_impute_error <- function(x, ...) {
  if (is.null(attr(x, "num_hidden"))) { # some of its columns
    return(NextMethod())
  }
  cat(format(x), sep = "\n")
  print(as.data.frame(x), digits = 3, row.names = FALSE)
  invisible(x)
}

#' @rdname results
#' @method summary fsknn_impute_error
#' @export
summary.fsknn_impute_error <- function(object, ...) {
  check_no_more(...)
  object
}

#' @method as.data.frame fsknn_impute_error
#' @export
as.data.frame.fsknn_impute_error <- function(x, row.names = NULL,
                                             optional = FALSE, ...) {
  check_no_more(...)
  check_unused(row.names, optional)
  data.frame(unclass(x)[c("metric", "k", "rmse", "bias", "column_means")])
}

#' @rdname results
#' @method plot fsknn_impute_error
#' @export
plot.fsknn_impute_error <- function(x, ...) {
  check_no_more(...)
  rlang::check_installed("ggplot2", "to draw errors.")
  lines <- data.frame(
    error = c(attr(x, "row_means"), attr(x, "column_means")),
    word = c("row means", "column means")
  )
  # Far above the rest they would leave no room for it.
  lines <- lines[lines$error <= 1.3 * max(x$rmse), ]
  ggplot2::ggplot(
    as.data.frame(x),
    ggplot2::aes(x = .data$k, y = .data$rmse, colour = .data$metric)
  ) +
    ggplot2::geom_hline(
      data = lines, ggplot2::aes(yintercept = .data$error),
      linetype = "dashed", colour = "grey40"
    ) +
    ggplot2::geom_text(
      data = lines, inherit.aes = FALSE, size = 3, colour = "grey30",
      hjust = 1.05, vjust = -0.6,
      ggplot2::aes(x = Inf, y = .data$error, label = .data$word)
    ) +
    ggplot2::geom_line() +
    ggplot2::geom_point(size = 1.8) +
    ggplot2::scale_x_continuous(
      breaks = function(limits) setdiff(whole_breaks(limits), 0)
    ) +
    ggplot2::scale_y_continuous(expand = ggplot2::expansion(c(0.05, 0.1))) +
    ggplot2::scale_colour_manual(
      values = c(
        euclidean = "#0B3C5D", manhattan = "#C8553D", pearson = "#5E8C31"
      )
    ) +
    ggplot2::labs(
      title = format(x)[[1]], x = "Neighbours, k", colour = NULL,
      y = paste0(
        "Root mean square error (n = ",
        format_count(attr(x, "num_hidden")), ")"
      )
    ) +
    theme_summary()
}
