# How long does a search of binary data take in bits, and how long in numbers?
#
#   Rscript inst/bench/bits.R [cpu|cuda] [N]
#
# With the package installed (R_LIBS says where). Points are N rows of 1,024
# bits (30,000 on the CPU, 100,000 on a GPU), a tenth of them set, k = 20,
# Sorensen's distance. A hundred times the matrix under "proportional" is the
# same search, with the same bits in its answer, which the script checks; it is
# no data of small numbers, and so goes through the filter of other ones. On the
# CPU each instruction set of this machine is timed. Prints seconds, the median
# of three calls of two threads: of the search without the preparation (CPU), or
# on the device. On a GPU besides N x 1,000 genotypes 0, 1 and 2 (two bits each)
# under Proportional Similarity and Manhattan distance, beside a hundred times
# them: seconds and comparisons (features of pairs) a second; and all pairs
# within a distance, whole calls. And the rows of 0 and 1 under Euclidean
# distance, cosine and Pearson's correlation, by bits and in 16 bits.

library(fsknn)

given <- c(commandArgs(TRUE), "cpu")
backend <- given[[1]]
sizes <- c(cpu = 30000, cuda = 100000)
n <- if (length(given) > 2) as.numeric(given[[2]]) else sizes[[backend]]
set.seed(16)
x <- matrix(as.double(runif(n * 1024) < 0.1), n)

timed <- function(x, metric) {
  runs <- lapply(1:3, function(i) {
    found <- knn_search(x, 20, metric, backend = backend, num_threads = 2)
    stats <- knn_stats()
    seconds <- stats$seconds[[if (backend == "cpu") "search" else "device"]]
    list(found = found, seconds = seconds, stats = stats)
  })
  seconds <- vapply(runs, `[[`, 0, "seconds")
  c(runs[[1]][c("found", "stats")], seconds = stats::median(seconds))
}

both <- function(set) {
  bits <- timed(x, "sorensen")
  numbers <- timed(100 * x, "proportional")
  stopifnot(
    identical(bits$found$index, numbers$found$index),
    identical(bits$found$distance, numbers$found$distance)
  )
  data.frame(
    n, set, bits = bits$seconds, numbers = numbers$seconds,
    ratio = numbers$seconds / bits$seconds,
    exact_a_row = bits$stats$pairs_exact / n, redone = bits$stats$rows_redone
  )
}

genotypes <- function(metric) {
  set.seed(17)
  x <- matrix(
    as.double(sample(0:2, n * 1000, replace = TRUE, c(0.6, 0.3, 0.1))), n
  )
  bits <- timed(x, metric)
  numbers <- timed(100 * x, metric)
  stopifnot(identical(bits$found$index, numbers$found$index))
  # So near that few pairs are.
  most <- min(bits$found$distance)
  calls <- vapply(1:3, function(i) {
    system.time(
      within_search(x, most, metric, backend = backend)
    )[["elapsed"]]
  }, 0)
  data.frame(
    n, metric, bits = bits$seconds, numbers = numbers$seconds,
    a_second = n * (n - 1) / 2 * 1000 / bits$seconds,
    exact_a_row = bits$stats$pairs_exact / n, redone = bits$stats$rows_redone,
    within = stats::median(calls)
  )
}

binary <- function(metric) {
  bits <- timed(x, metric)
  old <- options(fsknn.instruction_set = "auto/16")
  on.exit(options(old))
  wide <- timed(x, metric)
  stopifnot(identical(bits$found, wide$found))
  data.frame(
    n, metric, bits = bits$seconds, filter_bits = bits$stats$filter_bits,
    wide = wide$seconds, ratio = wide$seconds / bits$seconds,
    exact_a_row = bits$stats$pairs_exact / n, redone = bits$stats$rows_redone
  )
}

if (backend == "cpu") {
  sets <- strsplit(sub(";.*", "", knn_backends()$detail[[1]]), ", ")[[1]]
  rows <- lapply(rev(sets), function(set) {
    options(fsknn.instruction_set = set)
    both(set)
  })
  print(do.call(rbind, rows), digits = 3, row.names = FALSE)
} else {
  print(cuda_devices())
  invisible(knn_search(x[seq_len(5000), ], 20, "sorensen", backend = backend))
  print(both("cuda"), digits = 3, row.names = FALSE)
  rows <- lapply(c("proportional", "manhattan"), genotypes)
  print(do.call(rbind, rows), digits = 3, row.names = FALSE)
}
rows <- lapply(c("euclidean", "cosine", "pearson"), binary)
print(do.call(rbind, rows), digits = 3, row.names = FALSE)
