# What does the filter let pass where rows are far from 0, share a profile, or
# have entries far beyond all others, beside plain data of the same size?
#
#   Rscript inst/bench/offset.R [N] [BACKEND ...]
#
# With the package installed (R_LIBS says where); N = 30,000 rows of 130
# features, k = 20, on "cpu" (two threads) and, where there is one, "cuda".
# "exact": pairs of a point that were computed in double; "redone": rows that
# had to be done again; "bits" of the filter's numbers. Seconds are the device's
# on a GPU, of both processors (not of the clock) on a CPU; medians of three
# calls. Where both are run their answers must be identical.

library(fsknn)

asked <- commandArgs(TRUE)
n <- if (length(asked) > 0) as.integer(asked[[1]]) else 30000L
backends <- if (length(asked) > 1) {
  asked[-1]
} else {
  c("cpu", if (knn_backends()$usable[[2]]) "cuda")
}
if ("cuda" %in% backends) print(cuda_devices())
d <- 130L
k <- 20L
set.seed(16)
plain <- matrix(stats::rnorm(n * d), n)
profile <- rep(5 * stats::rnorm(d), each = n)

with_entries <- function(count, value) {
  replace(plain, sample(length(plain), count), value)
}
with_rows <- function(every, value) {
  rows <- seq(1, n, every)
  replace(plain, cbind(rows, rep_len(seq_len(d), length(rows))), value)
}
with_column <- function(by) {
  x <- plain
  x[, 3] <- x[, 3] * by
  x
}
data <- list(
  list("plain", "cosine", function() plain),
  list("shifted by 10", "cosine", function() plain + 10),
  list("shifted by 1e3", "cosine", function() plain + 1e3),
  list("shifted by 1e6", "cosine", function() plain + 1e6),
  list("shifted by 1e6, 1% not", "cosine", function() {
    x <- plain + 1e6
    few <- seq(1, n, 100)
    x[few, ] <- plain[few, ]
    x
  }),
  list("plain", "pearson", function() plain),
  list("a profile", "pearson", function() plain + profile),
  list("a profile, noise 1e-3", "pearson", function() 1e-3 * plain + profile),
  list("plain", "euclidean", function() plain),
  list("shifted by 1e6", "euclidean", function() plain + 1e6),
  list("one entry at 1e12", "euclidean", function() with_entries(1, 1e12)),
  list("one entry at 1e30", "euclidean", function() with_entries(1, 1e30)),
  list("1% of rows at 1e8", "euclidean", function() with_entries(n / 100, 1e8)),
  list("a column by 1e8", "euclidean", function() with_column(1e8)),
  list("spread 1e-3 about 1e4", "cosine", function() 1e4 + 1e-3 * plain),
  list("1 in 11 rows at 1e9", "euclidean", function() with_rows(11, 1e9)),
  list("1 in 11 rows at 1e9", "inner_product", function() with_rows(11, 1e9))
)

run <- function(x, metric, backend) {
  seconds <- system.time(
    found <- knn_search(x, k, metric, backend = backend, num_threads = 2)
  )
  stats <- knn_stats()
  list(
    found = found,
    seconds = if (backend == "cuda") {
      stats$seconds[["device"]]
    } else {
      sum(seconds[c("user.self", "sys.self")])
    },
    exact = stats$pairs_exact / n, bits = stats$filter_bits,
    redone = stats$rows_redone
  )
}

for (case in data) {
  x <- case[[3]]()
  first <- NULL
  for (backend in backends) {
    runs <- lapply(1:3, function(i) run(x, case[[2]], backend))
    answer <- runs[[1]]$found
    if (is.null(first)) first <- answer
    stopifnot(identical(answer, first))
    cat(sprintf(
      "%-5s %-10s %-24s %8.4f s, exact %7.0f, redone %6.0f, %2.0f bits\n",
      backend, case[[2]], case[[1]],
      stats::median(vapply(runs, `[[`, 0, "seconds")),
      runs[[1]]$exact, runs[[1]]$redone, runs[[1]]$bits
    ))
  }
}
