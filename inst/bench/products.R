# Products of halves and of bytes on one GPU, side by side, which of them the
# engine takes by a sample of the data, and what of a candidate's price
# (kByteCandidateCost, src/cuda/plan/number_forms.hpp) these times say.
#
#   Rscript inst/bench/products.R [N ...]
#
# with the package installed (R_LIBS says where) and a GPU. A library that was
# built with FSKNN_CUDA_ARCH=90 has on Hopper the code of all other GPUs,
# products by warps; one with 90a that of warpgroups. Graphs of N points (24,158,
# 100,000 and 384,126) of 295 features, simulated of 64 factors and noise (all of
# variance 1, as in gpu.R), Pearson, k = 20. Printed are device seconds and those
# of the whole call, medians of three calls, pairs of a point that came to the
# exact step, rows that were done again, and 1e12 pairs a second; all answers are
# checked to be identical.

library(fsknn)

if (!knn_backends()$usable[[2]]) {
  stop(knn_backends()$detail[[2]])
}
sizes <- as.numeric(commandArgs(TRUE))
if (length(sizes) == 0) sizes <- c(24158, 100000, 384126)
d <- 295
k <- 20

simulated <- function(n, factors = 64) {
  set.seed(16)
  scores <- matrix(stats::rnorm(factors * d), factors)
  # Columns are points, so that pieces stand one after the other.
  normal <- function(rows, seed) {
    piece <- function(first) {
      set.seed(seed + first)
      stats::rnorm(rows * min(n - first + 1, 10000))
    }
    pieces <- parallel::mclapply(
      seq(1, n, 10000), piece, mc.cores = parallel::detectCores()
    )
    matrix(unlist(pieces), rows)
  }
  crossprod(scores, normal(factors, 0)) + normal(d, n)
}

# As in src/cuda/filter/byte_choice.hpp: candidates that a row is expected to
# have at last by bytes, of the features that a row in bytes has.
features_in_bytes <- 32 * ceiling((d + 2 * (2 + ceiling(d / 128))) / 32)
expected_candidates <- function(x) {
  n <- ncol(x)
  sample <- scale(x[, sample(n, 64)])
  sample <- sweep(sample, 2, sqrt(colSums(sample^2)), "/")
  step <- 1.4 * 2.9 / sqrt(d) / 127
  gap <- 4 * step * sqrt(features_in_bytes / 12)
  products <- crossprod(sample)
  diag(products) <- NA
  centre <- rowMeans(products, na.rm = TRUE)
  spread <- apply(products, 1, stats::sd, na.rm = TRUE)
  part <- k / n
  begins <- stats::qnorm(part, lower.tail = FALSE)
  k * mean(stats::pnorm(begins - gap / spread, lower.tail = FALSE)) / part
}

forms <- c(halves = "/16", bytes = "/8", chosen = "")

compare <- function(x, times = 3) {
  n <- ncol(x)
  first <- NULL
  median_of <- function(form) {
    options(fsknn.instruction_set = paste0("auto", forms[[form]]))
    seconds <- matrix(0, 2, times)
    for (i in seq_len(times)) {
      found <- knn_search(
        x, k, points = "columns", backend = "cuda", devices = 1
      )
      seconds[, i] <- knn_stats()$seconds[c("device", "call")]
    }
    seconds <- apply(seconds, 1, stats::median)
    if (is.null(first)) first <<- found
    stopifnot(identical(found, first))
    stats <- knn_stats()
    cat(sprintf(
      paste(
        "n = %7d, %-6s %2d bits: %.4f s, call %.3f s, exact %6.1f a point,",
        "%.0f again, %.2fe12 pairs a second\n"
      ),
      n, form, stats$filter_bits, seconds[[1]], seconds[[2]],
      stats$pairs_exact / n, stats$rows_redone,
      n * (n - 1) / 2 / seconds[[1]] / 1e12
    ))
    seconds[[1]]
  }
  seconds <- vapply(names(forms), median_of, 0)
  more <- expected_candidates(x) - k
  cat(sprintf(
    "n = %7d, bytes over halves: %.3f; candidates more expected: %.1f\n",
    n, seconds[["bytes"]] / seconds[["halves"]], more
  ))
  data.frame(
    saved = (seconds[["halves"]] - seconds[["bytes"]]) / n,
    products = n * features_in_bytes, more = more
  )
}

x <- simulated(max(sizes))
print(cuda_devices())
rows <- do.call(rbind, lapply(sizes, function(n) compare(x[, seq_len(n)])))
if (nrow(rows) > 1) {
  # Of a point: what is saved is in proportion to products, what is lost to
  # candidates.
  fit <- stats::coef(stats::lm(saved ~ 0 + products + more, rows))
  cat(sprintf(
    "a candidate more costs what %.2g products' features save\n",
    -fit[["more"]] / fit[["products"]]
  ))
}
