# The null distribution: the search is repeated on points whose samples are
# permuted independently.

# These distances of a search are kept: the smallest of each point (NA if it has
# none), and three quantiles at each rank. Where each pair has its own samples,
# p-values take the place of the first.
kept_quantiles <- c(0.05, 0.5, 0.95)

keep_of_search <- function(search, call, limits = NULL) {
  found <- search_quietly(search, call)
  list(
    nearest = if (has_own_samples(search)) {
      smallest_p_of_points(search, found, call)
    } else {
      found$distance[, 1]
    },
    by_rank = as.vector(apply(
      found$distance, 2, stats::quantile, kept_quantiles,
      na.rm = TRUE, names = FALSE
    )),
    nearer = if (!is.null(limits)) {
      # A bin excludes its upper break, and limits are above distances.
      counts <- count_pairs(
        search, c(-Inf, limits, Inf), "distance", call = call
      )$counts
      cumsum(counts[1 + seq_along(limits)])
    }
  )
}

# Returns list(common, observed, nearest, by_rank). `common` says whether
# distances have one scale for all points. `observed` is the smallest distance
# of each point in the data. `nearest` has the smallest distances of a
# permutation in each column. `by_rank` is a data frame for plot(). With
# `limits` (distances in ascending order), `nearer` counts the pairs of all
# permutations up to each.
# With `unit`, whole units are permuted: see permute_within_points().
permute_and_search <- function(search, permutations, unit, limits, call) {
  values <- search$points$values
  if (is_metafeatures(values)) {
    abort_argument(
      c(
        "{.arg permutations} can't be had of metafeatures.",
        x = "Pairs that share a row stay dependent, however it is permuted."
      ),
      call
    )
  }
  # Each point and permutation needs a double, and a copy with the data needs
  # another.
  check_permutations_fit(permutations, 16 * nrow(values), call)
  one <- without_folder(search)
  # Permutations within points do not change this.
  one$tied <- tied_points(search)
  one$request$progress <- FALSE
  observed <- keep_of_search(one, call)
  one$options$verbose <- FALSE
  nearest <- matrix(NA_real_, nrow(values), permutations)
  by_rank <- nearer <- 0
  values <- with_equal_variance(
    without_covariates(values, search, unit), search
  )
  bar <- new_split_bar(search$request$progress, permutations)
  on.exit(end_bar(bar))
  kept <- NULL
  for (at in seq_len(permutations)) {
    # Each permutation is drawn in this process before its search, which draws
    # nothing. So the random stream is the same as if all were drawn at first,
    # which would need memory for as many copies of `x`.
    one$points$values <- with_own_variance(
      permute_within_points(values, unit), search
    )
    if (at == 1) {
      kept <- open_permutations(search, one, permutations, limits, call)
    }
    of_one <- read_permutation(
      kept, at, nrow(values), one$request$k, length(limits), call
    )
    if (is.null(of_one)) {
      of_one <- keep_of_search(one, call, limits)
      write_permutation(kept, at, of_one, call)
    }
    nearest[, at] <- of_one$nearest
    by_rank <- by_rank + of_one$by_rank / permutations
    nearer <- nearer + of_one$nearer
    step_bar(bar, 1)
  }
  list(
    common = has_correlation(search$options$metric),
    observed = observed$nearest, nearest = nearest,
    by_rank = distances_by_rank(observed$by_rank, by_rank),
    limits = limits, nearer = nearer
  )
}

# The message about rows with too few neighbours would only be a repetition.
search_quietly <- function(search, call) {
  suppressMessages(run_search(search, call), classes = "fsknn_short_rows")
}

# Returns the smallest p-value of the pairs of each point, 1 if it has none.
# `found` has the k nearest. Pairs that are farther may have more samples, and
# so a smaller p-value. Where that is possible, more of them are searched for.
smallest_p_of_points <- function(search, found, call) {
  present <- !is.na(search$points$values)
  counts <- rowSums(present)
  most_k <- nrow(present) - 1 - length(search$request$skip)
  smallest <- rep(1, nrow(present))
  rows <- seq_len(nrow(present))
  repeat {
    k <- ncol(found$index)
    for (rank in seq_len(k)) {
      there <- which(!is.na(found$index[, rank]))
      from <- rows[there]
      both <- present[from, , drop = FALSE] &
        present[found$index[there, rank], , drop = FALSE]
      smallest[from] <- pmin(smallest[from], p_without_missing(
        r_of_distance(found$distance[there, rank], search$request$sign),
        rowSums(both), search$request,
        search$tied[from] | search$tied[found$index[there, rank]]
      ))
    }
    # No farther pair has a smaller p-value than this, by Student's t. Those of
    # ranks may be smaller than its p-value by 0.5%, where r has the sign of the
    # nearest.
    last <- found$distance[, k]
    bound <- 0.99 * replace(r_to_p(
      r_toward_zero(last, search$request$sign), counts[rows] - 2,
      alternative_of_sign(search$request$sign)
    ), counts[rows] < 3, 1)
    open <- !is.na(last) & bound < smallest[rows]
    if (k >= most_k || !any(open)) {
      return(smallest)
    }
    rows <- rows[open]
    search$request$k <- as.integer(min(4 * k, most_k))
    search$request$subset <- rows
    search$num_rows <- length(rows)
    found <- search_quietly(search, call)
  }
}

# Returns r of distances, or 0 beyond 0, where more samples make no p-value
# smaller.
r_toward_zero <- function(distance, sign) {
  r <- r_of_distance(distance, sign)
  if (sign == "negative") pmin(r, 0) else pmax(r, 0)
}

distances_by_rank <- function(observed, chance) {
  of_one <- function(values, what) {
    values <- matrix(values, length(kept_quantiles))
    data.frame(
      rank = seq_len(ncol(values)), what = what, low = values[1, ],
      middle = values[2, ], high = values[3, ]
    )
  }
  rbind(of_one(observed, "observed"), of_one(chance, "chance"))
}

# --- p-values ----------------------------------------------------------------

# Sums of the same terms in another order differ in their last bits. Distances
# this close count as equal, which never lowers a p-value.
as_small <- function(distance, common) {
  distance + 1e-12 * (if (common) 1 else abs(distance))
}

p_of_permutations <- function(pairs, null) {
  num <- ncol(null$nearest)
  limit <- pairs$limit %||% as_small(pairs$distance, null$common)
  of_point <- function(points) {
    count <- integer(length(points))
    for (at in seq_len(num)) {
      below <- null$nearest[points, at] <= limit
      count <- count + (below & !is.na(below))
    }
    permutation_p(count, num)
  }
  list(
    p_from = of_point(pairs$from), p_to = of_point(pairs$to),
    p_permutation = family_p(pairs, null, limit, num)
  )
}

family_p <- function(pairs, null, limit, num) {
  if (null$common) {
    smallest <- smallest_of_columns(null$nearest)
    return(permutation_p(findInterval(limit, sort(smallest)), num))
  }
  # Each point is standardised over its smallest distances in the data and in
  # all permutations. The data are thus treated like any permutation.
  all <- cbind(null$observed, null$nearest)
  unit <- unit_of_rows(all)
  all <- all / unit
  centre <- rowMeans(all)
  spread <- sqrt(rowMeans((all - centre)^2))
  spread[!is.na(spread) & spread == 0] <- Inf
  smallest <- smallest_of_columns((null$nearest / unit - centre) / spread)
  score_of <- function(points) {
    (limit / unit[points] - centre[points]) / spread[points]
  }
  score <- pmin(score_of(pairs$from), score_of(pairs$to))
  permutation_p(findInterval(score + 1e-9, sort(smallest)), num)
}

smallest_of_columns <- function(values) {
  apply(values, 2, min, na.rm = TRUE)
}

# --- permutations in a folder ------------------------------------------------

# The folder is that of a search by tasks with one permutation in each. They are
# drawn in sequence, so they are not distributed. If several processes share a
# folder, each does the next permutation that is not yet done. The values of the
# first one identify the random stream.
open_permutations <- function(search, one, permutations, limits, call) {
  if (is.null(search$options$long$folder)) {
    return(NULL)
  }
  request <- search$request
  threads <- max(1L, request$num_threads, na.rm = TRUE)
  request$permuted <- in_core(
    cpp_digest(one$points$values, threads), call
  )$digest
  request$kept <- if (has_own_samples(search)) "p_value" else "distance"
  request$limits <- limits
  work <- list(
    values = search$points$values, request = request,
    num_rows = permutations, plan = list(kind = "rows", size = 1L)
  )
  job <- open_folder(search$options$long$folder, work, call)
  job$work <- work
  num_done <- sum(look_at_folder(job, call)$done)
  tell_resumed(
    job, num_done, permutations, list(damaged = integer(), other = integer()),
    num_done
  )
  job
}

# Returns NULL if the file is missing or damaged.
read_permutation <- function(job, at, num_points, k, num_limits, call) {
  if (is.null(job)) {
    return(NULL)
  }
  read <- function(path) {
    cpp_read_sealed(
      path, "task", at, job$print,
      list(nearest = double(), by_rank = double(), nearer = double()),
      c(num_points, length(kept_quantiles) * k, num_limits)
    )
  }
  file <- in_files(read(task_file(job, at)), job, call)
  if (file$state == "whole") {
    return(file$columns)
  }
  if (file$state != "missing") {
    take_file_away(job, at, call, function(path) {
      identical(read(path)$state, "whole")
    })
  }
  NULL
}

write_permutation <- function(job, at, of_one, call) {
  if (is.null(job)) {
    return(invisible())
  }
  write_once(
    job, sprintf("task-%06d", at), "task", at, job$print,
    lapply(of_one[c("nearest", "by_rank", "nearer")], as.double), call
  )
}
