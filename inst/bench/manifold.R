# How long does a diffusion map of many points take, once their graph is there,
# and does it find what they lie on?
#
#   Rscript inst/bench/manifold.R [n] [backend] [num_threads]
#   Rscript inst/bench/manifold.R 1533876 cuda 2     # the default is "auto", 2
#
# With the package and RSpectra installed (R_LIBS says where). The points lie on
# a three-dimensional torus of radii 1, 0.8 and 0.65, rotated into 20 dimensions,
# in noise of standard deviation 0.005 in each of these. The graph has k = 20 by
# Euclidean distance, by `backend` and all threads; the map ten coordinates by
# `num_threads`. Prints seconds of each step (elapsed, and of all cores
# together), the largest residual, the eigenvalues beside those of the torus,
# and how much of its six true coordinates, the cosine and sine of each angle, a
# linear model of the map's first six explains. Seeds are fixed.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

num_points <- word(1, 1533876)
backend <- word(2, "auto")
num_threads <- word(3, 2)

radii <- c(1, 0.8, 0.65)
noise <- 0.005
num_features <- 20

make_points <- function(n) {
  set.seed(14)
  true <- do.call(cbind, lapply(radii, function(radius) {
    angle <- stats::runif(n, 0, 2 * pi)
    cbind(cos(angle), sin(angle))
  }))
  turn <- qr.Q(qr(matrix(stats::rnorm(num_features^2), num_features)))
  x <- (true * rep(rep(radii, each = 2), each = n)) %*%
    turn[seq_len(ncol(true)), ]
  list(x = x + stats::rnorm(length(x), sd = noise), true = true)
}

# Those of the waves on the torus that change least, beside the least.
true_ratios <- function(count) {
  waves <- expand.grid(-3:3, -3:3, -3:3)
  values <- sort(colSums((t(waves) / radii)^2))[-1]
  values[seq_len(count)] / values[[1]]
}

timed <- function(step, code) {
  time <- system.time(value <- code)
  cat(sprintf(
    "%-16s %9.1f s elapsed, %9.1f s of CPU\n", step, time[["elapsed"]],
    processor_seconds(time)
  ))
  value
}

cat(sprintf(
  "%s points, k = 20, backend %s, diffusion_map() by %d threads\n",
  format(num_points, big.mark = ","), backend, as.integer(num_threads)
))
made <- timed("points made", make_points(num_points))
nn <- timed("knn_search()", knn_search(
  made$x, k = 20, metric = "euclidean", backend = backend
))
true <- made$true
rm(made)
invisible(gc())
map <- timed("diffusion_map()", diffusion_map(nn, num_threads = num_threads))
print(map)

gaps <- 1 - map$eigenvalues[1, ]
cat("1 - eigenvalue, over the mean of the first two\n")
print(round(rbind(
  map = gaps / mean(gaps[1:2]), torus = true_ratios(length(gaps))
), 3))
explained <- 1 - colSums(stats::lm.fit(
  cbind(1, map$coordinates[, 1:6]), true
)$residuals^2) / colSums(scale(true, scale = FALSE)^2)
cat("R^2 of the true coordinates by the first six: ",
    toString(round(explained, 4)), "\n", sep = "")
cat("Correlation with what the six say, the least: ",
    round(sqrt(min(explained)), 5), "\n", sep = "")
cat("Largest residual: ", format(max(map$residuals), digits = 2), "\n",
    sep = "")
peak <- gsub("[^0-9]", "", first_match("/proc/self/status", "^VmHWM"))
cat("Peak memory of R, search included: ", round(as.numeric(peak) / 2^20, 2),
    " GiB\n", sep = "")
