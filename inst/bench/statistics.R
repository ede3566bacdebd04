# What a statistic costs beside the searches that it stands on: seconds of whole
# calls, the smallest of `times`, of simulated data.
#   Rscript inst/bench/statistics.R [cuda | cpu] [share of the points]

library(fsknn)
arguments <- commandArgs(TRUE)
backend <- if (length(arguments) > 0) arguments[[1]] else "cuda"
share <- if (length(arguments) > 1) as.numeric(arguments[[2]]) else 1

size <- function(n) max(200, round(n * share))

# A call is made anew each time: what it draws is the same.
least <- function(what, call, times = 3) {
  seconds <- vapply(seq_len(times), function(time) {
    set.seed(1)
    gc(FALSE)
    system.time(suppressMessages(suppressWarnings(call())))[["elapsed"]]
  }, 0)
  cat(sprintf("%-58s %8.3f s\n", what, min(seconds)))
  invisible(min(seconds))
}

simulate <- function(n, d, factors) {
  set.seed(1)
  matrix(rnorm(n * factors), n) %*% matrix(rnorm(factors * d), factors) /
    sqrt(factors) + matrix(rnorm(n * d), n)
}

cat(R.version.string, "\n")
if (backend == "cuda") print(cuda_devices()$name)
cat("Backend", backend, "- share of the points", share, "\n")

set.seed(1)
pairs <- metafeatures(matrix(rnorm(round(876 * sqrt(share)) * 295), ncol = 295))
outcome <- rnorm(295)
covariates <- matrix(rnorm(295 * 3), 295)
cat("\nAn outcome,", nrow(pairs), "metafeatures x 295\n")
least("nearest_to()", function() {
  nearest_to(pairs, outcome = outcome, backend = backend)
})
least("nearest_to(permutations = 1000)", function() {
  nearest_to(pairs, outcome = outcome, permutations = 1000, backend = backend)
})
least("the same, 3 covariates", function() {
  nearest_to(pairs, outcome = outcome, permutations = 1000,
             adjust = covariates, backend = backend)
})

x <- simulate(size(24158), 295, 200)
groups <- rep_len(1:2, 295)
cat("\nEdges,", nrow(x), "x 295, k = 20\n")
least("knn_search()", function() knn_search(x, 20, backend = backend))
least("edge_stability(), 100 resamples, chance = FALSE", function() {
  edge_stability(x, 20, chance = FALSE, backend = backend)
})
least("edge_stability(), 100 resamples", function() {
  edge_stability(x, 20, backend = backend)
})
least("compare_neighbours(), 100 permutations", function() {
  compare_neighbours(x, groups, k = 20, permutations = 100, backend = backend)
}, times = 1)

for (n in size(c(1e5, 4e5))) {
  x <- matrix(rnorm(n * 100), n)
  for (blocks in c(2, 5)) {
    block <- sample(blocks, n, TRUE)
    cat("\nBlocks,", n, "x 100\n")
    whole <- least(paste("knn_search(), k =", 10 * blocks), function() {
      knn_search(x, 10 * blocks, backend = backend)
    })
    each <- least(paste("k = 10 in each of", blocks, "blocks"), function() {
      knn_search(x, 10, block = block, backend = backend)
    })
    cat(sprintf("that is %.2f times\n", each / whole))
  }
}

x <- simulate(size(50000), 295, 20)
cat("\nMissing values,", nrow(x), "x 295, k = 20\n")
least("knn_graph(), nothing missing", function() {
  knn_graph(x, 20, backend = backend)
})
x[sample(length(x), 0.05 * length(x))] <- NA
least("knn_graph(na = \"pairwise\"), 5% missing", function() {
  knn_graph(x, 20, na = "pairwise", backend = backend)
})

n <- size(1e5)
x <- simulate(n, 500, 20)
x[sample(length(x), 0.05 * length(x))] <- NA
cat("\nMissing values,", n, "x 500, 5%\n")
least("knn_search(na = \"pairwise\", \"euclidean\")", function() {
  knn_search(x, 10, "euclidean", na = "pairwise", backend = backend)
})
least("knn_impute()", function() knn_impute(x, 10, backend = backend))

x <- matrix(rnorm(50000 * 100), 50000)
labels <- factor(rep(1:2, 50))
cat("\nClasses of 100 samples of 50,000 features\n")
least("knn_predict(), leave one out", function() {
  knn_predict(x, labels, k = 10, points = "columns", backend = backend)
})
