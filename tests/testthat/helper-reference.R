# The naive reference for tests. Its distances are those of knn_verify():
# naive_distance() in R/search-by_definition.R.

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

# Returns every metric with each of its signs, or those that FSKNN_TEST_METRICS
# names ("ruzicka,chisquare").
all_metrics <- function() {
  table <- fsknn:::metric_table()
  asked <- Sys.getenv("FSKNN_TEST_METRICS")
  if (nzchar(asked)) {
    table <- table[table$name %in% strsplit(asked, ",")[[1]], ]
  }
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
# without any gets its first feature. Genotypes are 0, 1 and 2. Products of entries above 2^490 could
# overflow.
values_for <- function(x, metric) {
  facts <- fsknn:::metric_facts(metric)
  largest <- max(abs(x), na.rm = TRUE)
  if (facts$below_zero && largest > 2^490) {
    return(x / power_of_two(largest) * 2^490)
  }
  if (facts$levels > 0) {
    there <- x > 0
    there[rowSums(there) == 0, 1] <- TRUE
    return(there + (there & facts$levels > 1 & x > stats::median(x[there])))
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

# Snapshots of messages that list all metrics name none of them, so that a new
# metric changes no snapshot.
without_metrics <- function(lines) {
  all <- paste0('"', fsknn:::metric_table()$name, '"', collapse = ", ")
  gsub(all, "<all metrics>", lines, fixed = TRUE)
}
