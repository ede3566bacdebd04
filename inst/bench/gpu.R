# How long does backend "cuda" take? The whole R call from a double matrix to
# index and distance: wall clock, median of 5 after one to warm up. Needs a GPU:
#
#   Rscript gpu.R [results.csv]
#
# Simulated expression data (64 latent factors and noise). That the answer is
# the CPU's is checked first at each n up to 24,158; see gpu_check.R for more.

library(fsknn)

if (!knn_backends()$usable[[2]]) {
  stop(knn_backends()$detail[[2]])
}
print(cuda_devices())
set.seed(1)

normal <- function(n, d) matrix(rnorm(n * d), n, d)

simulated <- function(n, d, factors = 64) {
  normal(n, factors) %*% normal(factors, d) + normal(n, d)
}

time_call <- function(x, k, metric = "pearson", devices = NULL, times = 5) {
  run <- function() find_knn(x, k, metric, backend = "cuda", devices = devices)
  found <- run()
  if (nrow(x) <= 24158) {
    stopifnot(identical(found, find_knn(x, k, metric, backend = "cpu")))
  }
  seconds <- vapply(seq_len(times), function(i) system.time(run())[["elapsed"]], 0)
  data.frame(
    n = nrow(x), d = ncol(x), k = k, metric = metric,
    gpus = if (is.null(devices)) nrow(cuda_devices()) else length(devices),
    median = median(seconds), least = min(seconds), most = max(seconds)
  )
}

x <- simulated(24158, 295)
timing <- rbind(
  time_call(x, 1),
  time_call(x, 20),
  time_call(x, 1000),
  time_call(x[, 1:8], 20),
  time_call(x, 20, "spearman"),
  time_call(abs(x), 20, "euclidean"),
  time_call(abs(x), 20, "manhattan"),
  time_call(abs(x), 20, "chebyshev"),
  time_call(abs(x), 20, "proportional")
)
x <- simulated(100000, 295)
for (gpus in unique(c(1, nrow(cuda_devices())))) {
  timing <- rbind(timing, time_call(x, 20, devices = seq_len(gpus), times = 3))
}

print(timing, row.names = FALSE)
results <- commandArgs(TRUE)
if (length(results) > 0) {
  utils::write.csv(timing, results[[1]], row.names = FALSE)
}
