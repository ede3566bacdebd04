# How long does a search of binary data take in bits, and how long in numbers?
#
#   Rscript inst/bench/bits.R [cpu|cuda] [N]
#
# With the package installed (R_LIBS says where). Points are N rows of 1,024
# bits (30,000 on the CPU, 100,000 on a GPU), a tenth of them set, k = 20,
# Sorensen's distance. Twice the matrix under "proportional" is the same
# search, with the same bits in its answer, which the script checks; it is no
# data of 0 and 1, and so goes through the filter of other numbers. On the CPU
# each instruction set of this machine is timed. Prints seconds, the median of three
# calls of two threads: of the search without the preparation (CPU), or on the
# device.

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
  numbers <- timed(2 * x, "proportional")
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
}
