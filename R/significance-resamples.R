# Searches of the same points by resampled samples: which samples each resample
# has, the request to the core, and how often each edge was found. A search by
# tasks divides its resamples as other searches divide their rows.


# --- samples of a resample ---------------------------------------------------

# Returns the samples of each draw. `unit` is from units_of_search(), or NULL.
draw_samples <- function(draw, unit) {
  draw_resamples(
    draw$num_samples, draw$resamples, draw$method, draw$size,
    unit %||% seq_len(draw$num_samples)
  )
}

# Returns the numbers of samples in each resample, ascending. R's generator
# draws all resamples here. With `unit`, a number for each sample, it draws
# `size` units with all of their samples.
draw_resamples <- function(num_samples, resamples, method, size,
                           unit = seq_len(num_samples)) {
  members <- split(seq_len(num_samples), unit)
  lapply(seq_len(resamples), function(resample) {
    drawn <- sample.int(length(members), size, replace = method == "bootstrap")
    sort(unlist(members[drawn], use.names = FALSE))
  })
}

# Converts resamples to the form of the core. For Pearson's correlation, a
# sample that was drawn three times has three times the weight. For other
# metrics its column is repeated three times. That includes Spearman's, which
# ranks samples without their weights. `weights` are those of the samples, or
# NULL.
features_and_weights <- function(drawn, weights, as_weights) {
  if (!as_weights) {
    return(list(
      features = drawn,
      weights = lapply(drawn, function(samples) even_or(weights[samples]))
    ))
  }
  features <- lapply(drawn, unique)
  times <- Map(function(samples, once) {
    times <- as.double(tabulate(samples)[once])
    even_or(if (is.null(weights)) times else times * weights[once])
  }, drawn, features)
  list(features = features, weights = times)
}

# Returns NULL if all weights are equal, as weights_for() does.
even_or <- function(weights) {
  if (any(weights != weights[1])) weights
}

# --- request to the core -----------------------------------------------------

# Makes the search that counts edges. `drawn` is from draw_resamples().
# `watched` is list(row, to), edges that are always counted, by rows of the
# answer. Other edges are reported if they are in at least `least` graphs.
resampled_search <- function(search, drawn, watched, least) {
  request <- search$request
  metric <- search$options$metric
  repeated <- any(vapply(drawn, anyDuplicated, 1L) > 0)
  # Pairs over common samples have no weights, and missing values are filled
  # with an unweighted mean.
  as_weights <- repeated && metric$name == "pearson" && request$na == "error"
  asked <- features_and_weights(drawn, request$weights, as_weights)
  asked$adjust <- resampled_covariates(search, asked)
  request[c("weights", "adjust")] <- list(NULL)
  request$largest <- -1
  request$as_edges <- FALSE
  request$correlation <- FALSE
  request$resamples <- c(asked, list(
    total = length(drawn), least = least, row = watched$row, to = watched$to,
    undefined_rows = metric$undefined_rows,
    fewest = min(lengths(lapply(drawn, unique)))
  ))
  search$request <- request
  search$num_rows <- length(drawn)
  search
}

is_resampled <- function(request) {
  !is.null(request$resamples)
}

# Covariates are fitted to the samples of each resample. Returns matrices as
# from kept_covariates(), or NULL for no covariates.
resampled_covariates <- function(search, asked) {
  if (is.null(search$covariates)) {
    return(vector("list", length(asked$features)))
  }
  ranked <- search$options$metric$name == "spearman"
  Map(function(features, weights) {
    samples <- if (is.null(search$points$samples)) {
      features
    } else {
      search$points$samples[features]
    }
    values <- kept_covariates(search$covariates, ranked, samples, weights)
    if (ncol(values) > 0) values
  }, asked$features, asked$weights)
}

# Makes a request for some of the resamples.
some_resamples <- function(request, which) {
  for (part in c("features", "weights", "adjust")) {
    request$resamples[[part]] <- request$resamples[[part]][which]
  }
  request
}

# There are enough tasks that losing one costs little and each worker has its
# share.
automatic_resamples <- function(resamples, num_workers) {
  tasks <- if (num_workers > 1) 3 * num_workers else 20
  as.integer(max(1, ceiling(resamples / tasks)))
}

# --- counts of edges ---------------------------------------------------------

# `count` is that of the watched edges, in order. `row`, `to` and `times` are
# those of others. `absent` is the number of resamples in which each point had
# no value.
count_columns <- c("count", "row", "to", "times", "absent")

# Counts of some resamples are added to those of others.
begin_counts <- function(answer, work) {
  answer$counts <- list(
    count = integer(length(work$request$resamples$to)), row = integer(),
    to = integer(), times = integer(), absent = integer(nrow(work$values))
  )
  answer$seen <- 0
}

put_counts <- function(answer, work, task, found) {
  resamples <- work$request$resamples
  counts <- answer$counts
  answer$seen <- answer$seen + rows_of_task(work, task)
  others <- add_times(
    list(
      row = c(counts$row, found$row), to = c(counts$to, found$to),
      times = c(counts$times, found$times)
    ),
    nrow(work$values), resamples$least - (resamples$total - answer$seen)
  )
  answer$counts <- c(
    list(count = counts$count + found$count), others,
    list(absent = counts$absent + found$absent)
  )
}

# Merges repeated edges, sorted by row and point, and adds their times. Keeps
# only those that can still reach the minimum number of graphs.
add_times <- function(others, num_points, least) {
  order <- order(others$row, others$to, method = "radix")
  others <- lapply(others, `[`, order)
  # The key is exact in double for up to 9e7 points.
  pair <- (others$row - 1) * num_points + others$to
  first <- !duplicated_sorted(pair)
  sums <- cumsum(as.double(others$times))
  last <- which(c(first[-1], rep(TRUE, length(first) > 0)))
  times <- as.integer(diff(c(0, sums[last])))
  kept <- times >= least
  list(
    row = others$row[first][kept], to = others$to[first][kept],
    times = times[kept]
  )
}

counts_form <- function(work) {
  watched <- length(work$request$resamples$to)
  list(
    types = stats::setNames(rep(list(integer()), 5), count_columns),
    lengths = c(watched, NA, NA, NA, nrow(work$values))
  )
}

counts_in_range <- function(work, columns) {
  points <- nrow(work$values)
  total <- length(work$request$resamples$features)
  rows <- length(work$request$subset %||% seq_len(points))
  all_between <- function(values, low, high) {
    cpp_all_between(values, as.integer(low), as.integer(high), FALSE)
  }
  length(unique(lengths(columns[c("row", "to", "times")]))) == 1 &&
    all_between(columns$count, 0, total) &&
    all_between(columns$row, 1, rows) &&
    all_between(columns$to, 1, points) &&
    all_between(columns$times, 1, total) &&
    all_between(columns$absent, 0, total)
}

# Returns the graph of one resample, as an edge data frame. The core finds its
# edges as it finds those to count. Their distances are over the same samples.
graph_of_resample <- function(search, samples, call) {
  none <- list(row = integer(), to = integer())
  counting <- resampled_search(search, list(samples), none, 1L)
  found <- find_whole(counting, call)
  asked <- counting$request$resamples
  search$request$feature_subset <- asked$features[[1]]
  search$request["weights"] <- list(asked$weights[[1]])
  search$request["adjust"] <- list(asked$adjust[[1]])
  search$request$largest <- -1
  search$request$progress <- FALSE
  from <- found$row
  to <- found$to
  measured <- measure_pairs(search, from, to, call)
  order <- order(from, measured$distance, to, method = "radix")
  found <- list(
    from = from[order], to = to[order], rank = sequence(rle(from)$lengths),
    distance = measured$distance[order],
    correlation = if (search$request$correlation) measured$correlation[order]
  )
  edges <- edges_of_search(found, search)
  attr(edges, "num_features") <- length(samples)
  edges
}

raise_few_points <- function(result, call) {
  left <- result$left
  abort_argument(
    c(
      "Too few points vary in a resample.",
      x = "By the samples of resample {format_bound(result$resample)} only
           {format_count(left)} point{cli::qty(left)}{?s} {?has/have} a value
           under the metric, which is not more than {.arg k}.",
      i = "Draw more samples, by {.arg fraction}, or leave out points that
           seldom vary."
    ),
    call
  )
}

# Permutes the samples of every point independently by R's generator. The result
# is that of x[i, sample.int(ncol(x))] for one row after another. With `unit`, a
# number for each sample, it permutes units of equal size. Each sample gets the
# value of the sample at the same place in another unit.
permute_within_points <- function(values, unit = NULL) {
  if (is.null(unit)) {
    return(cpp_permute_rows(values))
  }
  members <- do.call(rbind, split(seq_along(unit), unit))
  units <- seq_len(nrow(members))
  from <- cpp_permute_rows(
    matrix(units, nrow(values), length(units), byrow = TRUE)
  )
  permuted <- values
  for (place in seq_len(ncol(members))) {
    for (to in units) {
      sample <- members[from[, to], place]
      permuted[, members[to, place]] <- values[cbind(seq_along(sample), sample)]
    }
  }
  permuted
}

# A covariate may differ between units by another share than the rest. So units
# exchange the residuals, which the search adjusts once more (Freedman and Lane
# 1983). Covariates of units are then removed twice from the means of units.
# This makes these means as variable after a permutation as they were.
without_covariates <- function(values, search, unit) {
  covariates <- search$request$adjust
  if (is.null(unit) || is.null(covariates)) {
    return(values)
  }
  storage.mode(values) <- "double"
  holes <- which(is.na(values), arr.ind = TRUE)
  values[holes] <- rowMeans(values, na.rm = TRUE)[holes[, 1]]
  if (search$options$metric$name == "spearman") {
    values <- t(apply(values, 1, rank))
  }
  weights <- search$request$weights %||% rep(1, ncol(values))
  fit <- stats::lm.wfit(cbind(1, covariates), t(values), weights)
  left <- t(fit$residuals)
  dimnames(left) <- dimnames(values)
  unit <- match(unit, unique(unit))
  freedom <- max(unit) - 1
  lost <- sum(constant_within(t(covariates), unit))
  by <- sqrt(freedom / max(1, freedom - lost))
  left + (by - 1) * weighted_by(unit, weights, left)
}

# Returns the distances of pairs of points, given by number, as a search
# computes them: list(distance, correlation, common).
measure_pairs <- function(search, from, to, call = caller_env()) {
  in_core(
    cpp_measure_pairs(search$points$values, from, to, search$request), call
  )
}
