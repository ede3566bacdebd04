# How long do the nearest loci under tables of alleles take, and all pairs above
# a threshold?
#
#   Rscript inst/bench/genotypes.R [SNPS] [SAMPLES] [--backend=cpu] [--devices=1]
#
# prints medians of three calls of knn_search() with k = 10, and of
# threshold_graph(), under "ccc" and "duo", beside two other metrics of the same
# sums of products. A comparison is a sample of a pair of SNPs. Each search
# compares all pairs. "device" is the time of GPUs in the last call, as in
# knn_stats(). A sample of the rows is compared with the definition
# (knn_verify()).

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

snps <- word(1, 20000)
samples <- word(2, 1000)
backend <- option("backend", "auto")
devices <- option("devices", 0)
options(fsknn.show_time = FALSE)
if (devices > 0) options(fsknn.devices = seq_len(devices))

# Independent SNPs, whose counted alleles have frequencies from 2% to 60%.
set.seed(1)
x <- matrix(rbinom(snps * samples, 2, runif(snps, 0.02, 0.6)), snps)
storage.mode(x) <- "double"
present <- (x > 0) + 0

median_of <- function(call) {
  stats::median(vapply(1:3, function(i) system.time(call())[["elapsed"]], 0))
}
row_for <- function(metric, verb, call) {
  seconds <- median_of(call)
  stats <- knn_stats()
  data.frame(
    metric, verb, seconds = signif(seconds, 3),
    device = signif(stats$seconds[["device"]], 3),
    filter = if (isTRUE(stats$filtered)) stats$filter_form else "none",
    comparisons = signif(choose(snps, 2) * samples / seconds, 3)
  )
}
found <- knn_search(x, 10, "ccc", backend = backend)
stopifnot(knn_verify(found, x, n = 20)$agree)
threshold <- 1 - min(found$distance[, 10])
values <- list(ccc = x, duo = present, euclidean = x, inner_product = x)
rows <- lapply(names(values), function(metric) {
  row_for(metric, "knn_search, k = 10", function() {
    knn_search(values[[metric]], 10, metric, backend = backend)
  })
})
rows[[length(rows) + 1]] <- row_for("ccc", "threshold_graph", function() {
  threshold_graph(x, threshold, "ccc", backend = backend)
})
cat(snps, "SNPs,", samples, "samples, backend", backend, "\n")
show(do.call(rbind, rows))
