# How long do the verbs take that judge and use neighbours, beside the searches
# that they need? Seconds of whole calls, the least of three, of simulated data.
#
#   Rscript inst/bench/statistics.R [cuda | cpu] [share of the points]

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

backend <- word(1, "cuda")
share <- word(2, 1)
if (backend == "cuda") need_gpu()
size <- function(n) max(200, round(n * share))

# Every call draws the same random numbers.
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
  factor_rows(n, d, factors, noise = 1)
}

cat(R.version.string, "\n")
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

# A search in blocks beside one for as many neighbours in all; with `between` a
# point has no list of its own block.
for (n in vapply(c(1e5, 4e5), size, 0)) {
  x <- simulate(n, 295, 32)
  for (blocks in c(2, 5, 40)) {
    k <- max(1, 20 %/% blocks)
    uneven <- rep(seq_len(blocks), pmax(50, n * 0.5^seq_len(blocks)))
    cat("\nBlocks,", n, "x 295\n")
    whole <- least(paste("knn_search(), k =", k * blocks), function() {
      knn_search(x, k * blocks, backend = backend)
    })
    for (block in list(sample(blocks, n, TRUE), sample(uneven, n, TRUE))) {
      for (between in c(FALSE, TRUE)) {
        each <- least(
          paste0("k = ", k, " in each of ", blocks, " blocks of ",
                 min(table(block)), " points or more, between = ", between),
          function() {
            knn_search(
              x, k, block = block, between = between, backend = backend
            )
          }
        )
        cat(sprintf("that is %.2f times\n", each / whole))
      }
    }
  }
}

set.seed(20130002)
n <- size(1e5)
x <- matrix(rnorm(n * 300), n)
cat("\nPairs within a distance,", n, "x 300 independent values\n")
for (least_r in c(0.25, 0.2, 0.15)) {
  for (sign in c("signed", "absolute")) {
    least(paste("threshold_graph(), r >=", least_r, sign), function() {
      threshold_graph(x, least_r, sign = sign, backend = backend)
    })
  }
}
least("threshold_graph(), Spearman's r >= 0.25", function() {
  threshold_graph(x, 0.25, "spearman", backend = backend)
})
few <- x[seq_len(min(n, 2000)), ]
for (metric in c("euclidean", "manhattan")) {
  near <- knn_search(few, nrow(few) - 1, metric, backend = "cpu")$distance
  limit <- quantile(near, pnorm(-0.25 * sqrt(299)), names = FALSE)
  least(paste("within_search(), as many pairs,", metric), function() {
    within_search(x, limit, metric, backend = backend)
  })
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
