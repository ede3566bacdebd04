# Differences of bytes, of 16-bit whole numbers and of floats on one GPU, side
# by side, and which of them the engine takes by a sample of the data.
#
#   Rscript inst/bench/differences.R [--short | --ways]
#
# with the package installed (R_LIBS says where) and a GPU. Rows of 295 features
# are simulated of 64 factors, on a log scale and off it (lognormal). Printed
# are device seconds and those of the whole call, medians of three calls, pairs
# of a point that came to the exact step, rows that were done again, and
# features of pairs a second; all answers are checked to be identical. --short:
# n = 100,000 alone, and no threshold graph of the size of the poplar study
# (189,625 x 385; Joubert et al. 2018). Threshold graphs keep about 1e-5 of the
# pairs. --ways: only n = 100,000 where points do not fit a GPU, and by blocks,
# by whole numbers and by floats, and the same of genotypes and of 0 and 1.

library(fsknn)

if (!knn_backends()$usable[[2]]) {
  stop(knn_backends()$detail[[2]])
}
short <- "--short" %in% commandArgs(TRUE)
ways <- "--ways" %in% commandArgs(TRUE)
print(cuda_devices())

simulated <- function(n, d, factors = 64) {
  # Some rows at a time: a processor's cache is smaller than all.
  scores <- matrix(stats::rnorm(factors * d), factors)
  x <- matrix(0, n, d)
  for (first in seq(1, n, 10000)) {
    rows <- first:min(n, first + 9999)
    x[rows, ] <- matrix(stats::rnorm(length(rows) * factors), length(rows)) %*%
      scores / sqrt(factors) + matrix(stats::rnorm(length(rows) * d), ncol = d)
  }
  x
}

forms <- c(floats = "/32", bytes = "/8", "16 bits" = "/16", chosen = "")

compare <- function(data, x, metric, search, times = 3, tried = names(forms)) {
  first <- NULL
  pairs <- nrow(x) * (nrow(x) - 1) / 2
  for (form in tried) {
    if (metric == "chebyshev" && form == "bytes") next
    options(fsknn.instruction_set = paste0("auto", forms[[form]]))
    seconds <- matrix(0, 2, times)
    for (i in seq_len(times)) {
      found <- search(x)
      stats <- knn_stats()
      # Searches within a distance tell of all that is searched as one.
      device <- stats$seconds[["device"]]
      if (device == 0) device <- stats$seconds[["search"]]
      seconds[, i] <- c(device, stats$seconds[["call"]])
    }
    seconds <- apply(seconds, 1, stats::median)
    if (is.null(first)) first <- found
    stopifnot(identical(found, first))
    cat(sprintf(
      paste(
        "%-24s %-12s %-8s %2d bits: %.4f s, call %.3f s, exact %7.1f a point,",
        "%.0f again, %.1fe12 a second\n"
      ),
      data, metric, form, stats$filter_bits, seconds[[1]], seconds[[2]],
      stats$pairs_exact / nrow(x), stats$rows_redone,
      pairs * ncol(x) / seconds[[1]] / 1e12
    ))
  }
  invisible(first)
}

graph <- function(metric) {
  function(x) knn_search(x, 20, metric, backend = "cuda", devices = 1)
}
# A similarity that about so many of all pairs have.
threshold_for <- function(x, part) {
  some <- x[sample(nrow(x), 3000), ]
  found <- knn_search(some, 200, "proportional", backend = "cpu")
  1 - sort(found$distance)[[ceiling(part * 3000 * 2999)]]
}

set.seed(16)
# With a quarter of the memory that all would take, with a twentieth (then the
# filter's rows are in the host's), and in four blocks, with lists for each.
if (ways) {
  compare_ways <- function(data, x, metric, tried) {
    k <- 20
    most <- knn_plan(
      x, k, metric, backend = "cuda", devices = 1
    )$bytes_peak
    for (part in c(1, 4, 20)) {
      compare(
        paste0(data, ", 1/", part), x, metric,
        function(x) {
          knn_search(
            x, k, metric, backend = "cuda", devices = 1,
            max_device_memory = if (part > 1) most / part
          )
        },
        tried = tried
      )
    }
    block <- sample(rep_len(1:4, nrow(x)))
    compare(
      paste0(data, ", blocks"), x, metric,
      function(x) {
        knn_search(
          x, k, metric, block = block, backend = "cuda", devices = 1
        )
      },
      tried = tried
    )
  }
  genotypes <- matrix(stats::rbinom(1e5 * 295, 2, 0.3) + 0, 1e5)
  compare_ways("genotypes", genotypes, "manhattan", c("floats", "chosen"))
  compare_ways("0/1", pmin(genotypes, 1), "pearson", c("16 bits", "chosen"))
  x <- simulated(1e5, 295)
  x <- x - min(x)
  for (metric in c("manhattan", "chebyshev", "proportional")) {
    compare_ways("log scale", x, metric, c("floats", "chosen"))
  }
  quit(status = 0)
}
for (n in if (short) 100000 else c(24158, 100000, 384126)) {
  x <- simulated(n, 295)
  log_scale <- x - min(x)
  label <- paste0("n = ", n, ", ")
  for (metric in c("manhattan", "proportional", "chebyshev")) {
    compare(paste0(label, "log scale"), log_scale, metric, graph(metric))
  }
  lognormal <- exp(x)
  for (metric in c("manhattan", "proportional")) {
    compare(paste0(label, "lognormal"), lognormal, metric, graph(metric))
  }
}
sizes <- list(c(100000, 295), if (!short) c(189625, 385))
for (size in Filter(length, sizes)) {
  x <- simulated(size[[1]], size[[2]])
  for (data in c("log scale", "lognormal")) {
    y <- if (data == "log scale") x - min(x) else exp(x)
    least <- threshold_for(y, 1e-5)
    edges <- compare(
      paste0("above ", signif(least, 4), ", ", data), y, "proportional",
      function(x) {
        threshold_graph(x, least, "proportional", backend = "cuda", devices = 1)
      }
    )
    cat("  edges:", nrow(edges), "\n")
  }
}
