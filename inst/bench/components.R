# Would principal components, as a first stage of the CPU filter, leave out
# tiles of pairs?
#
#   Rscript inst/bench/components.R [FOLDER]
#
# With the package installed (R_LIBS says where), and Bioconductor's ALL. FOLDER
# has vantveer78_full.rds and nki295_small.rds (see CONTRIBUTING.md). An estimate
# in R, for Pearson and k = 20: the columns of rows of length 1 are turned to
# their principal components (or at random). With the first p of them a pair's
# product is at most that of its first p features and the product of the lengths
# of what is left. "pairs": the share for which that reaches the lower of both
# rows' final thresholds; "tiles": of the engine's tiles of 8 x 48 points, the
# share that has such a pair, with points in random order, by their thresholds,
# or along the first component, where near ones share tiles; "work": p features of all tiles, and the others of those tiles,
# beside all features of all. The final thresholds are the lowest there are, and
# rounding is left out, so that the truth is above these numbers.

library(fsknn)

unit_rows <- function(x) {
  x <- x - rowMeans(x)
  x <- x[rowSums(x^2) > 0, ]
  x / sqrt(rowSums(x^2))
}

turned <- function(z, how) {
  axes <- if (how == "components") {
    eigen(crossprod(z), symmetric = TRUE)$vectors
  } else {
    qr.Q(qr(matrix(stats::rnorm(ncol(z)^2), ncol(z))))
  }
  z %*% axes
}

# Of 40 tiles' rows and all columns.
shares <- function(first, tail, limit, order) {
  first <- first[order, , drop = FALSE]
  tail <- tail[order]
  limit <- limit[order]
  tiles <- length(order) %/% 48
  columns <- seq_len(48 * tiles)
  found <- vapply(round(seq(1, length(order) %/% 8, length.out = 40)), function(at) {
    rows <- 8 * (at - 1) + 1:8
    bound <- tcrossprod(first[rows, , drop = FALSE], first[columns, ]) +
      outer(tail[rows], tail[columns])
    stays <- bound >= outer(limit[rows], limit[columns], pmin)
    in_tile <- colSums(matrix(colSums(stays), 48)) > 0
    c(mean(stays), mean(in_tile))
  }, c(0, 0))
  rowMeans(found)
}

estimate <- function(data, x, k = 20) {
  z <- unit_rows(x)
  z <- z[sample(nrow(z)), ]
  limit <- 1 - knn_search(z, k, "cosine", backend = "cpu")$distance[, k]
  rows <- list()
  for (how in c("components", "random")) {
    y <- turned(z, how)
    for (p in c(16, 32, 64)) {
      first <- y[, seq_len(p)]
      tail <- sqrt(pmax(0, rowSums(y[, -seq_len(p), drop = FALSE]^2)))
      for (order in c("random", "threshold", "component")) {
        at <- switch(
          order, random = seq_len(nrow(z)), threshold = order(limit),
          component = order(first[, 1])
        )
        share <- shares(first, tail, limit, at)
        rows[[length(rows) + 1]] <- data.frame(
          data, n = nrow(z), d = ncol(z), turned = how, p, order,
          pairs = share[[1]], tiles = share[[2]],
          work = p / ncol(z) + (1 - p / ncol(z)) * share[[2]]
        )
      }
    }
  }
  rows <- do.call(rbind, rows)
  numbers <- c("pairs", "tiles", "work")
  rows[numbers] <- round(rows[numbers], 3)
  print(rows, row.names = FALSE)
}

set.seed(16)
utils::data("ALL", package = "ALL", envir = environment())
estimate("ALL", unname(Biobase::exprs(ALL)))
folder <- commandArgs(TRUE)
for (file in c("vantveer78_full.rds", "nki295_small.rds")) {
  if (length(folder) == 0) next
  arrays <- readRDS(file.path(folder, file))$expr
  arrays <- unname(arrays[rowSums(is.na(arrays)) == 0, ])
  storage.mode(arrays) <- "double"
  estimate(sub("_.*", "", file), arrays)
}
for (num_factors in c(20, 200)) {
  loadings <- matrix(stats::rnorm(10000 * num_factors), 10000)
  scores <- matrix(stats::rnorm(num_factors * 295), num_factors)
  simulated <- loadings %*% scores / sqrt(num_factors) +
    0.5 * matrix(stats::rnorm(10000 * 295), 10000)
  estimate(paste(num_factors, "factors"), simulated)
}
