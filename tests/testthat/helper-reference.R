# The naive reference: plain R in double, one pair or one matrix at a time. Each
# metric uses another formula or implementation than the package. Values that
# would overflow or underflow in R's own functions are scaled by powers of two,
# which is exact.

power_of_two <- function(magnitude) {
  2^floor(log2(magnitude))
}

scale_rows <- function(x) {
  x <- x + 0 # converts to double
  largest <- apply(abs(x), 1, max)
  by <- ifelse(largest == 0, 1, power_of_two(largest))
  # The division has two steps, because 1 / 2^-1074 is beyond the range of a
  # double.
  half <- power_of_two(sqrt(by))
  x / half / (by / half)
}

# Returns the distance of every row of x (rows) to every row of y (columns).
naive_distance <- function(x, y = x, metric, sign = "signed") {
  switch(
    metric,
    pearson = ,
    spearman = {
      r <- stats::cor(t(scale_rows(x)), t(scale_rows(y)), method = metric)
      switch(sign, signed = 1 - r, absolute = 1 - abs(r), negative = 1 + r)
    },
    bicor = {
      r <- tcrossprod(biweight_rows(x), biweight_rows(y))
      switch(sign, signed = 1 - r, absolute = 1 - abs(r), negative = 1 + r)
    },
    cosine = {
      # This is half the squared chord between two points of the unit sphere.
      a <- scale_rows(x)
      b <- scale_rows(y)
      a <- a / sqrt(rowSums(a^2))
      b <- b / sqrt(rowSums(b^2))
      each_pair(a, b, function(p, q) sum((p - q)^2) / 2)
    },
    euclidean = each_pair(x, y, in_own_unit(function(p, q) {
      sqrt(sum((p - q)^2))
    })),
    inner_product = each_pair(x, y, function(p, q) {
      units <- vapply(list(p, q), function(row) {
        if (all(row == 0)) 1 else power_of_two(max(abs(row)))
      }, 0)
      # R sums in long double.
      sum <- sum((p / units[[1]]) * (q / units[[2]]))
      0 - sum * min(units) * max(units)
    }),
    manhattan = each_pair(x, y, in_own_unit(function(p, q) sum(abs(p - q)))),
    chebyshev = each_pair(x, y, function(p, q) max(abs(p - q))),
    # The ratio of the smaller to the larger magnitude never overflows.
    canberra = each_pair(x, y, function(p, q) {
      ratio <- pmin(abs(p), abs(q)) / pmax(abs(p), abs(q))
      term <- ifelse(sign(p) * sign(q) < 0, 1, (1 - ratio) / (1 + ratio))
      sum(term[p != 0 | q != 0])
    }),
    # This is the form of Bray and Curtis.
    proportional = each_pair(x, y, function(p, q) {
      unit <- power_of_two(max(p, q))
      sum(abs(p / unit - q / unit)) / sum(p / unit + q / unit)
    }),
    # For sets, this is the share of elements in only one set among those in
    # either.
    jaccard = each_pair(x, y, function(p, q) {
      sum(xor(p, q)) / sum(p | q)
    }),
    sorensen = each_pair(x, y, function(p, q) {
      sum(xor(p, q)) / (sum(p == 1) + sum(q == 1))
    })
  )
}

# Returns rows of length 1 whose products are biweight midcorrelations. The
# formulas are those of Langfelder and Horvath (2012), with R's own medians.
biweight_rows <- function(x) {
  rows <- apply(x + 0, 1, function(row) {
    # The scale prevents overflow of differences.
    row <- row / max(1, power_of_two(max(abs(row))) / 2^990)
    far <- row - stats::median(row)
    mad <- stats::mad(row, constant = 1)
    if (mad == 0) {
      row <- drop(scale_rows(matrix(row, 1)))
      row <- row - mean(row)
      row <- row - mean(row)
      return(row / sqrt(sum(row^2)))
    }
    u <- far / mad / 9
    tilde <- ifelse(abs(u) < 1, u * (1 - u^2)^2, 0)
    tilde / sqrt(sum(tilde^2))
  })
  t(rows)
}

# Scales a pair by its own largest difference.
in_own_unit <- function(fun) {
  function(p, q) {
    largest <- max(abs(p - q))
    if (largest == 0) {
      return(0)
    }
    unit <- power_of_two(largest)
    unit * fun((p - q) / unit, 0)
  }
}

# Of the pairs of a matrix with itself, half are computed: each `fun` is
# symmetric.
each_pair <- function(x, y, fun) {
  result <- matrix(0, nrow(x), nrow(y))
  same <- identical(x, y)
  columns <- seq_len(nrow(y))
  for (i in seq_len(nrow(x))) {
    for (j in if (same) columns[columns >= i] else columns) {
      result[i, j] <- fun(x[i, ], y[j, ])
    }
  }
  if (same) {
    result[lower.tri(result)] <- t(result)[lower.tri(result)]
  }
  result
}

# Returns the tolerance for distances, relative to the larger of the distance
# and the metric's own scale. Correlations, cosine and proportional are 1 minus
# a number of size 1, so their scale is 1 (r itself is accurate to about d ulp).
# The others are sums of terms with one sign, accurate to about d ulp. A maximum
# is exact.
metric_tolerance <- function(metric) {
  switch(metric, chebyshev = 0, 1e-13)
}

# An inner product has terms of either sign. Its scale is that of the rows'
# lengths, represented by the point's largest product.
metric_scale <- function(metric, reference) {
  if (metric == "inner_product") {
    reference[!is.finite(reference)] <- 0
    return(apply(abs(reference), 1, max))
  }
  if (metric %in% c("euclidean", "manhattan", "chebyshev")) 0 else 1
}

# `nn` is a result of knn_search() or knn_query(). `reference` has the distances
# of every point (rows) to every candidate (columns), Inf for candidates that do
# not count. Each distance must be that of its index. The r-th distance must be
# the reference's r-th smallest. So another neighbour is accepted only if the
# reference's own distances are within the tolerance.
expect_same_neighbours <- function(nn, reference, metric,
                                   tolerance = metric_tolerance(metric)) {
  k <- ncol(nn$index)
  rows <- seq_len(nrow(nn$index))
  own <- matrix(reference[cbind(rep(rows, k), as.vector(nn$index))], ncol = k)
  smallest <- t(apply(reference, 1, sort))[, seq_len(k), drop = FALSE]
  scale <- metric_scale(metric, reference)
  allowed <- tolerance * pmax(abs(own), scale)
  if (tolerance > 0) {
    allowed <- allowed + 2^-1074 # the grid of subnormal distances
  }
  belongs <- all(abs(nn$distance - own) <= allowed)
  # Both sides have the error.
  nearest <- all(abs(own - smallest) <= 2 * allowed)
  distinct <- !any(apply(nn$index, 1, anyDuplicated))
  testthat::expect(
    belongs && nearest && distinct,
    sprintf(
      "%s: distance belongs to index: %s; nearest: %s; distinct: %s. Worst %g.",
      metric, belongs, nearest, distinct,
      max(abs(nn$distance - own) / pmax(abs(own), scale, 1e-300))
    )
  )
  invisible(nn)
}

# Orders by (distance, index), as knn_search() does. It is for matrices on which
# the reference's arithmetic is exact.
naive_knn <- function(x, k, metric, sign = "signed") {
  distance <- naive_distance(x, metric = metric, sign = sign)
  diag(distance) <- Inf
  index <- t(apply(distance, 1, order))[, seq_len(k), drop = FALSE]
  pick <- cbind(rep(seq_len(nrow(x)), k), as.vector(index))
  list(index = index, distance = matrix(distance[pick], ncol = k))
}

# Works as expect_identical() without a report of differences, which takes
# longer than all the rest.
expect_same_bits <- function(found, expected, label = "the answer") {
  testthat::expect(
    identical(found, expected),
    sprintf(
      "%s differs: %d indices and %d distances of %d are not the same.",
      label, sum(!same_entries(found$index, expected$index)),
      sum(!same_entries(found$distance, expected$distance)),
      length(expected$index)
    )
  )
  invisible(found)
}

# Removes the names of points from neighbours.
without_names <- function(found) {
  found$index <- unname(found$index)
  found$distance <- unname(found$distance)
  found
}

same_entries <- function(a, b) {
  (is.na(a) & is.na(b)) | (!is.na(a) & !is.na(b) & a == b)
}

without_self <- function(distance) {
  diag(distance) <- Inf
  distance
}

# Returns every metric with each of its signs.
all_metrics <- function() {
  table <- fsknn:::metric_table()
  signed <- expand.grid(
    metric = table$name[table$has_sign], sign = fsknn:::metric_signs,
    stringsAsFactors = FALSE
  )
  rbind(signed, data.frame(metric = table$name[!table$has_sign], sign = "signed"))
}

# Returns every metric, and the signs of Pearson's correlation: those of others
# are the same code. The long suite, and digests, have all signs of all.
few_signs <- function() {
  all <- all_metrics()
  if (is_long()) {
    return(all)
  }
  all[all$sign == "signed" | all$metric == "pearson", ]
}

# Runs `fun(metric, sign, backend)` for every metric, sign and backend of this
# machine.
for_all_metrics <- function(fun, metrics = all_metrics()) {
  for (backend in backends_here()) {
    for (row in seq_len(nrow(metrics))) {
      fun(metrics$metric[[row]], metrics$sign[[row]], backend)
    }
  }
}

# Makes values valid for a metric. Proportional takes no negative values.
# Jaccard and Sorensen take only 0 and 1: entries above 0 become 1, and a row
# without any gets its first feature. Products of entries above 2^490 could
# overflow.
values_for <- function(x, metric) {
  facts <- fsknn:::metric_facts(metric)
  largest <- max(abs(x), na.rm = TRUE)
  if (facts$below_zero && largest > 2^490) {
    return(x / power_of_two(largest) * 2^490)
  }
  if (facts$binary) {
    there <- x > 0
    there[rowSums(there) == 0, 1] <- TRUE
    return(there + 0)
  }
  if (facts$non_negative) abs(x) else x
}

# A row filled with this value has no distance under the metric.
undefined_value <- function(metric) {
  if (fsknn:::metric_facts(metric)$undefined_rows == "constant") 5 else 0
}

is_correlation <- function(metric) {
  metric %in% c("pearson", "spearman", "bicor")
}

# Runs Kruskal's algorithm on all pairs, ordered by (distance, lower, higher
# number). Returns rows low, high. `points` are the numbers of the points.
naive_tree <- function(distance, points = seq_len(nrow(distance))) {
  if (length(points) < 2) {
    return(matrix(0L, 0, 2))
  }
  pairs <- t(utils::combn(points, 2))
  pairs <- pairs[order(distance[pairs], pairs[, 1], pairs[, 2]), , drop = FALSE]
  group <- seq_len(nrow(distance))
  kept <- logical(nrow(pairs))
  for (row in seq_len(nrow(pairs))) {
    ends <- group[pairs[row, ]]
    if (ends[[1]] != ends[[2]]) {
      kept[[row]] <- TRUE
      group[group == ends[[2]]] <- ends[[1]]
    }
  }
  pairs[kept, , drop = FALSE]
}

naive_is_near <- function(distance, i, j, points, k) {
  others <- setdiff(points, i)
  j %in% utils::head(others[order(distance[i, others], others)], k)
}

# Computes MST-kNN by its definition: each component gets its own tree, which is
# cut. Returns a list of components, each a vector of points.
naive_mst_knn <- function(distance, points = seq_len(nrow(distance))) {
  k <- max(1, floor(log(length(points))))
  tree <- naive_tree(distance, points)
  near <- apply(tree, 1, function(ends) {
    naive_is_near(distance, ends[[1]], ends[[2]], points, k) ||
      naive_is_near(distance, ends[[2]], ends[[1]], points, k)
  })
  if (all(near)) {
    return(list(points))
  }
  tree <- tree[unlist(near), , drop = FALSE]
  group <- seq_len(nrow(distance))
  for (row in seq_len(nrow(tree))) {
    ends <- group[tree[row, ]]
    group[group == ends[[2]]] <- ends[[1]]
  }
  pieces <- unname(split(points, group[points]))
  do.call(c, lapply(pieces, naive_mst_knn, distance = distance))
}

# Numbers the components: the largest first, then by first point.
naive_membership <- function(components, num_points) {
  components <- components[
    order(-lengths(components), vapply(components, min, 0))
  ]
  membership <- integer(num_points)
  for (at in seq_along(components)) {
    membership[components[[at]]] <- at
  }
  membership
}

# Returns all permutations of 1 to num, one in each column.
permutations_of <- function(num) {
  if (num == 1) {
    return(matrix(1L))
  }
  shorter <- permutations_of(num - 1)
  do.call(cbind, lapply(seq_len(num), function(first) {
    rbind(first, shorter + (shorter >= first), deparse.level = 0)
  }))
}
