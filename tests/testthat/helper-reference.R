# The naive reference: plain R, double, one pair or one matrix at a time, and
# for each metric another formula or another implementation than the package's.
# What must be scaled so that R's own functions neither overflow nor underflow
# is scaled by powers of two, which is exact.

power_of_two <- function(magnitude) {
  2^floor(log2(magnitude))
}

scale_rows <- function(x) {
  x <- x + 0 # double
  largest <- apply(abs(x), 1, max)
  by <- ifelse(largest == 0, 1, power_of_two(largest))
  # In two steps: 1 / 2^-1074 is beyond double's range.
  half <- power_of_two(sqrt(by))
  x / half / (by / half)
}

# The distance of every row of x (down) to every row of y (across).
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
      # Half the squared chord between two points of the unit sphere.
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
      # R adds up in long double.
      sum <- sum((p / units[[1]]) * (q / units[[2]]))
      0 - sum * min(units) * max(units)
    }),
    manhattan = each_pair(x, y, in_own_unit(function(p, q) sum(abs(p - q)))),
    chebyshev = each_pair(x, y, function(p, q) max(abs(p - q))),
    # By the ratio of the smaller magnitude to the larger, which overflows
    # nowhere.
    canberra = each_pair(x, y, function(p, q) {
      ratio <- pmin(abs(p), abs(q)) / pmax(abs(p), abs(q))
      term <- ifelse(sign(p) * sign(q) < 0, 1, (1 - ratio) / (1 + ratio))
      sum(term[p != 0 | q != 0])
    }),
    # Bray and Curtis' form.
    proportional = each_pair(x, y, function(p, q) {
      unit <- power_of_two(max(p, q))
      sum(abs(p / unit - q / unit)) / sum(p / unit + q / unit)
    }),
    # Of sets: what one has and the other has not, of what either has.
    jaccard = each_pair(x, y, function(p, q) {
      sum(xor(p, q)) / sum(p | q)
    }),
    sorensen = each_pair(x, y, function(p, q) {
      sum(xor(p, q)) / (sum(p == 1) + sum(q == 1))
    })
  )
}

# Rows of length 1 whose products are biweight midcorrelations, by Langfelder
# and Horvath's (2012) formulas and R's own medians.
biweight_rows <- function(x) {
  rows <- apply(x + 0, 1, function(row) {
    # So that no difference overflows.
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

# A pair in units of the size of its own largest difference.
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

each_pair <- function(x, y, fun) {
  result <- matrix(0, nrow(x), nrow(y))
  for (i in seq_len(nrow(x))) {
    for (j in seq_len(nrow(y))) {
      result[i, j] <- fun(x[i, ], y[j, ])
    }
  }
  result
}

# How far the package's distance may be from the reference's: relative to
# the larger of the distance and the metric's own scale. Correlations, cosine
# and proportional are one less a number of size 1, so that scale is 1 (r itself
# is good to about d units in the last place); the others are sums of like signs,
# good to about d units in the last place of themselves; a maximum is exact.
metric_tolerance <- function(metric) {
  switch(metric, chebyshev = 0, 1e-13)
}

# Of an inner product, terms of either sign, the scale is the two rows' lengths,
# for which the point's largest product stands.
metric_scale <- function(metric, reference) {
  if (metric == "inner_product") {
    reference[!is.finite(reference)] <- 0
    return(apply(abs(reference), 1, max))
  }
  if (metric %in% c("euclidean", "manhattan", "chebyshev")) 0 else 1
}

# nn: what knn_search() or knn_query() gave. reference: distances of every point
# (rows) to every candidate (columns), Inf where a candidate doesn't count.
# Holds if each distance is that of its index, and if the r-th distance is the
# reference's r-th smallest, so that another neighbour can stand there only
# where the reference's own distances are as close as the tolerance.
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
  # Both sides carry the error.
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

# As knn_search() orders: by (distance, index). For matrices on which the
# reference's arithmetic is exact.
naive_knn <- function(x, k, metric, sign = "signed") {
  distance <- naive_distance(x, metric = metric, sign = sign)
  diag(distance) <- Inf
  index <- t(apply(distance, 1, order))[, seq_len(k), drop = FALSE]
  pick <- cbind(rep(seq_len(nrow(x)), k), as.vector(index))
  list(index = index, distance = matrix(distance[pick], ncol = k))
}

# expect_identical() without its report of differences, which takes longer than
# all the rest.
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

# Neighbours without the names of their points.
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

# Every metric with every sign that it has.
all_metrics <- function() {
  table <- fsknn:::metric_table()
  signed <- expand.grid(
    metric = table$name[table$has_sign], sign = fsknn:::metric_signs,
    stringsAsFactors = FALSE
  )
  rbind(signed, data.frame(metric = table$name[!table$has_sign], sign = "signed"))
}

# Runs `fun(metric, sign, backend)` for every metric, sign and backend here.
for_all_metrics <- function(fun, metrics = all_metrics()) {
  for (backend in backends_here()) {
    for (row in seq_len(nrow(metrics))) {
      fun(metrics$metric[[row]], metrics$sign[[row]], backend)
    }
  }
}

# Proportional takes no negative values, Jaccard and Sorensen only 0 and 1: what
# is above 0, or the first feature of a row that has nothing above it. Products
# of entries beyond 2^490 could be beyond double's range.
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

# What a row is filled with that the metric has no value for.
undefined_value <- function(metric) {
  if (fsknn:::metric_facts(metric)$undefined_rows == "constant") 5 else 0
}

is_correlation <- function(metric) {
  metric %in% c("pearson", "spearman", "bicor")
}

# Kruskal's algorithm on all pairs, by (distance, lower, higher number): rows
# low, high. points: whose numbers they are.
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

# MST-kNN by its definition: each component's own tree, made anew, and cut.
# Gives a list of components, each a vector of points.
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

# Components to cluster numbers: the largest first, then by first point.
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

# All permutations of 1 to num, one in each column.
permutations_of <- function(num) {
  if (num == 1) {
    return(matrix(1L))
  }
  shorter <- permutations_of(num - 1)
  do.call(cbind, lapply(seq_len(num), function(first) {
    rbind(first, shorter + (shorter >= first), deparse.level = 0)
  }))
}
