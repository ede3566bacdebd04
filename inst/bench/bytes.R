# Do products and differences in 8 bits pay, and is what the engine chooses by a
# sample of the data the faster one?
#
#   Rscript inst/bench/bytes.R [FOLDER]
#
# With the package installed (R_LIBS says where), on a processor with AVX-512
# VNNI, or a 64-bit ARM one with the dot product extension; for differences
# AVX2 or NEON is enough. FOLDER has vantveer78_full.rds (see
# CONTRIBUTING.md), a real matrix of 78 arrays; golub is multtest's. What cpu.R
# simulates, at n = 5,000 to 24,158, is what the prices in
# src/cpu/filter/bytes_pay.cpp were taken from; all else here is other data.
# Both forms and the engine's own choice in turn, medians of the seconds of both
# processors (not of the clock), five calls of two threads; the answers are
# checked to be identical. "exact": pairs of a point that went to the exact
# step.

library(fsknn)

timed <- function(x, k, metric, bits) {
  options(fsknn.instruction_set = paste0("auto", bits))
  seconds <- system.time(
    found <- knn_search(x, k, metric, backend = "cpu", num_threads = 2)
  )
  stats <- knn_stats()
  list(
    found = found, seconds = sum(seconds[c("user.self", "sys.self")]),
    exact = stats$pairs_exact / nrow(x), bits = stats$filter_bits
  )
}

compare <- function(data, x, k, metric = "pearson", rounds = 5) {
  forms <- c(bytes = "/8", words = "/16", chosen = "")
  runs <- lapply(seq_len(rounds), function(round) {
    lapply(forms, function(bits) timed(x, k, metric, bits))
  })
  first <- runs[[1]]
  for (form in first) stopifnot(identical(form$found, first$words$found))
  seconds <- vapply(names(forms), function(form) {
    stats::median(vapply(runs, function(run) run[[form]]$seconds, 0))
  }, 0)
  exact <- vapply(first, `[[`, 0, "exact")
  print(data.frame(
    data, n = nrow(x), d = ncol(x), k, metric,
    t(round(seconds, 3)), ratio = round(seconds[[1]] / seconds[[2]], 2),
    exact_8 = round(exact[[1]]), exact_16 = round(exact[[2]]),
    bits = first$chosen$bits
  ), row.names = FALSE)
}

factors <- function(n, d, num_factors, noise = 0.5, draw = stats::rnorm) {
  loadings <- matrix(draw(n * num_factors), n)
  scores <- matrix(draw(num_factors * d), num_factors)
  loadings %*% scores / sqrt(num_factors) + noise * matrix(draw(n * d), n)
}
heavy <- function(count) stats::rt(count, df = 3)
clusters <- function(n, d, count) {
  centres <- matrix(stats::rnorm(count * d), count)
  noise <- 0.5 * matrix(stats::rnorm(n * d), n)
  centres[sample(count, n, replace = TRUE), ] + noise
}

set.seed(16)
folder <- commandArgs(TRUE)
for (n in c(5000, 10000, 24158)) {
  compare("200 factors", factors(n, 295, 200), 20)
}
# Differences: around 0, and as an array has them, on a log scale (12,625 x 128,
# each gene at a level and with a spread of its own) and off it, which is what
# 16 bits are for; and whole numbers.
for (n in c(10000, 24158)) {
  simulated <- factors(n, 295, 200)
  compare("200 factors", simulated, 20, "manhattan")
  compare("200 factors + 12", simulated + 12, 20, "proportional")
  compare("2^(200 factors)", 2^simulated, 20, "proportional")
}
level <- 3 + stats::rgamma(12625, 3, 0.8)
spread <- 0.15 + stats::rgamma(12625, 2, 6)
array <- pmax(level + spread * factors(12625, 128, 20, noise = 1), 0.1)
genotypes <- matrix(as.double(stats::rbinom(2e6, 2, 0.3)), 10000)
outlier <- factors(10000, 295, 200)
outlier[5, 7] <- 1e6
for (metric in c("manhattan", "proportional")) {
  compare("array, log scale", array, 20, metric)
  compare("array", 2^array, 20, metric)
  compare("genotypes", genotypes, 20, metric)
}
compare("one huge entry", outlier, 20, "manhattan")
compare("20 factors", factors(12000, 295, 20), 20)
compare("20 factors, t", factors(12000, 295, 20, draw = heavy), 20)
compare("20 factors, t", factors(12000, 295, 20, draw = heavy), 20, "spearman")
compare("30 clusters", clusters(12000, 128, 30), 20)
compare("independent", factors(12000, 1000, 1, noise = 5), 10)
compare("independent", factors(12000, 40, 1, noise = 5), 10)
compare("10 factors", factors(12000, 128, 10, noise = 0.1), 5)
compare("10 factors", factors(12000, 128, 10, noise = 0.1), 200)
if (requireNamespace("multtest", quietly = TRUE)) {
  utils::data("golub", package = "multtest", envir = environment())
  compare("golub", golub, 20)
  compare("golub", golub, 20, "cosine")
}
if (length(folder) > 0) {
  arrays <- readRDS(file.path(folder, "vantveer78_full.rds"))$expr
  arrays <- arrays[rowSums(is.na(arrays)) == 0, ]
  storage.mode(arrays) <- "double"
  compare("breast cancer", arrays, 20)
  compare("breast cancer", arrays, 5, "spearman")
}
