# Distances by their definitions, in R's own double arithmetic, for knn_verify()
# and for the tests. They share no code with src/: each metric uses another
# formula or implementation. Values that would overflow or underflow in R's own
# functions are scaled by powers of two, which is exact.

power_of_two <- function(magnitude) {
  2^floor(log2(magnitude))
}

row_units <- function(x) {
  largest <- apply(abs(x), 1, max)
  ifelse(largest == 0, 1, power_of_two(largest))
}

scale_rows <- function(x) {
  x <- x + 0 # converts to double
  by <- row_units(x)
  # The division has two steps, because 1 / 2^-1074 is beyond the range of a
  # double.
  half <- power_of_two(sqrt(by))
  x / half / (by / half)
}

# Returns the distance of every row of x (rows) to every row of y (columns).
# `table` has the multiplier and the parameter of allele tables.
naive_distance <- function(x, y = x, metric, sign = "signed",
                           table = default_allele_table(metric)) {
  switch(
    metric,
    pearson = ,
    spearman = distance_of_r(
      # Isolated points are constant.
      suppressWarnings(
        stats::cor(t(scale_rows(x)), t(scale_rows(y)), method = metric)
      ), sign
    ),
    bicor = distance_of_r(
      tcrossprod(biweight_rows(x), biweight_rows(y)), sign
    ),
    cosine = {
      # This is half the squared chord between two points of the unit sphere.
      a <- scale_rows(x)
      b <- scale_rows(y)
      each_row(
        a / sqrt(rowSums(a^2)), b / sqrt(rowSums(b^2)),
        function(p, q) colSums((q - p)^2) / 2
      )
    },
    euclidean = each_row(x, y, function(p, q) {
      gap <- abs(q - p)
      distance <- sqrt(colSums(gap^2))
      unsafe <- which(!(distance > 2^-450 & distance < 2^450))
      distance[unsafe] <- vapply(unsafe, function(at) {
        largest <- max(gap[, at])
        unit <- if (largest == 0) 1 else power_of_two(largest)
        unit * sqrt(sum((gap[, at] / unit)^2))
      }, 0)
      distance
    }),
    inner_product = {
      units_x <- row_units(x)
      units_y <- row_units(y)
      # colSums() sums in long double.
      sums <- each_row(
        scale_rows(x), scale_rows(y), function(p, q) colSums(q * p)
      )
      0 - sums * outer(units_x, units_y, pmin) * outer(units_x, units_y, pmax)
    },
    manhattan = each_row(x, y, function(p, q) colSums(abs(q - p))),
    chebyshev = each_row(x, y, function(p, q) {
      do.call(pmax, lapply(seq_along(p), function(j) abs(q[j, ] - p[[j]])))
    }),
    # Relative to the larger magnitude, nothing overflows.
    canberra = each_row(x, y, function(p, q) {
      larger <- pmax(abs(q), abs(p))
      ratio <- pmin(abs(q), abs(p)) / larger
      term <- abs(q - p) / larger / (1 + ratio)
      term[sign(q) * sign(p) < 0] <- 1
      term[is.nan(ratio)] <- 0
      colSums(term)
    }),
    # This is the form of Bray and Curtis.
    proportional = each_row(x, y, function(p, q) {
      share <- function(p, q) colSums(abs(q - p)) / colSums(q + p)
      distance <- share(p, q)
      huge <- which(!is.finite(distance))
      distance[huge] <- share(p / 2^60, q[, huge, drop = FALSE] / 2^60)
      distance
    }),
    # For sets, this is the share of elements in only one set among those in
    # either.
    jaccard = each_row(x, y, function(p, q) colSums(q != p) / colSums(q | p)),
    sorensen = each_row(x, y, function(p, q) {
      colSums(q != p) / (colSums(q == 1) + sum(p == 1))
    }),
    ccc = ,
    duo = 1 - largest_of_tables(x, y, metric, table)
  )
}

distance_of_r <- function(r, sign) {
  switch(sign, signed = 1 - r, absolute = 1 - abs(r), negative = 1 + r)
}

# Calls fun(p, q) for each row p of x. The columns of q are the rows of y.
each_row <- function(x, y, fun) {
  q <- t(y) + 0
  result <- matrix(0, nrow(x), nrow(y))
  for (i in seq_len(nrow(x))) {
    result[i, ] <- fun(x[i, ] + 0, q)
  }
  result
}

# Returns the largest entry of each pair's table, over the samples that both
# rows have. A sample adds a pair of alleles to an entry for each of its alleles
# of this kind at one locus and each at the other.
largest_of_tables <- function(x, y, metric, table) {
  x <- unname(x + 0)
  y <- unname(y + 0)
  copies <- metric_facts(metric)$levels
  samples <- tcrossprod(!is.na(x), !is.na(y))
  alleles <- function(rows, counted) {
    alleles <- if (counted) rows else copies - rows
    alleles[is.na(alleles)] <- 0
    alleles
  }
  weight <- function(rows, counted) {
    frequency <- rowSums(alleles(rows, counted)) / rowSums(!is.na(rows))
    1 - table[["parameter"]] * frequency / copies
  }
  largest <- NULL
  for (one in c(FALSE, TRUE)) {
    for (other in c(FALSE, TRUE)) {
      pairs <- tcrossprod(alleles(x, one), alleles(y, other))
      value <- table[["multiplier"]] * pairs / (copies^2 * samples) *
        outer(weight(x, one), weight(y, other))
      largest <- if (is.null(largest)) value else pmax(largest, value)
    }
  }
  largest
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

# Returns the distances of a search with options. `asked` is a knn_verify()
# record's request: weights, covariates and missing values.
distance_as_asked <- function(x, y, metric, sign, asked) {
  if (identical(asked$na, "mean")) {
    x <- with_row_means(x)
    y <- with_row_means(y)
  }
  pairwise <- identical(asked$na, "pairwise")
  fitted <- !is.null(asked$weights) || !is.null(asked$adjust)
  if (metric == "spearman" && (pairwise || fitted)) {
    x <- t(apply(x, 1, rank, na.last = "keep"))
    y <- t(apply(y, 1, rank, na.last = "keep"))
    metric <- "pearson"
  }
  if (fitted) {
    r <- tcrossprod(
      residual_rows(x, asked$weights, asked$adjust),
      residual_rows(y, asked$weights, asked$adjust)
    )
    distance_of_r(r, sign)
  } else if (pairwise) {
    distance_over_common(x, y, metric, sign, asked)
  } else {
    naive_distance(
      x, y, metric, sign, asked$allele_table %||% default_allele_table(metric)
    )
  }
}

with_row_means <- function(x) {
  at <- which(is.na(x), arr.ind = TRUE)
  x[at] <- rowMeans(x, na.rm = TRUE)[at[, 1]]
  x
}

# Returns rows of length 1: weighted residuals from the mean and the covariates.
residual_rows <- function(x, weights, adjust) {
  root <- sqrt(weights %||% rep(1, ncol(x)))
  fit <- qr(root * cbind(rep(1, ncol(x)), adjust), tol = 1e-10)
  left <- qr.resid(fit, root * t(scale_rows(x)))
  t(left) / sqrt(colSums(left^2))
}

# Each pair is compared over the m samples that both rows have.
distance_over_common <- function(x, y, metric, sign, asked) {
  m <- tcrossprod(!is.na(x), !is.na(y))
  distance <- switch(
    metric,
    pearson = distance_of_r(
      suppressWarnings(
        stats::cor(t(x), t(y), use = "pairwise.complete.obs")
      ), sign
    ),
    euclidean = sqrt(ncol(x) / m * each_row(x, y, function(p, q) {
      colSums((q - p)^2, na.rm = TRUE)
    })),
    manhattan = ncol(x) / m * each_row(x, y, function(p, q) {
      colSums(abs(q - p), na.rm = TRUE)
    }),
    ccc = ,
    duo = 1 - largest_of_tables(
      x, y, metric, asked$allele_table %||% default_allele_table(metric)
    )
  )
  distance[m < asked$min_pairs] <- NA
  distance
}
