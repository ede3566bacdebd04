# How long do the nearest loci under tables of alleles take, all pairs above a
# threshold, and triples?
#
#   Rscript inst/bench/genotypes.R [SNPS] [SAMPLES] [--backend=cpu] [--devices=1]
#   Rscript inst/bench/genotypes.R triples [SNPS] [SAMPLES] [--threads=2]
#     [--backend=cpu] [--devices=1]
#
# prints medians of three calls of knn_search() with k = 10, and of
# threshold_graph(), under "ccc" and "duo", beside two other metrics of the same
# sums of products. A comparison is a sample of a pair of SNPs. Each search
# compares all pairs. "device" is the time of GPUs in the last call, as in
# knn_stats(). A sample of the rows is compared with the definition
# (knn_verify()). "2% missing" has na = "pairwise", on the CPU.
#
# "triples" prints the same of triples: of threshold_triples() above a similarity
# that few have, triple_histogram() and nearest_triples() with k = 10. A comparison is a sample of a triple of SNPs. nearest_triples() compares
# each triple for each of its three points. "of_limit" is the share of what the
# sums of products alone could do in the same CPU seconds, with the fewest
# vector instructions (floor.cpp has the rate of such instructions); on a GPU it
# and "a_cpu_second" have no meaning. The largest similarities are compared with R's own arithmetic.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

of_triples <- identical(words[1], "triples")
if (of_triples) words <- words[-1]
snps <- word(1, if (of_triples) 1000 else 20000)
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

# Samples for each lane of 32 bits and vector instruction: bytes by VNNI (1
# instruction for 4 samples) or AVX2 (2); bits by VPOPCNTDQ (3 for 32) or by
# tables of half bytes (9). floor.cpp has two instructions for a lane.
samples_a_lane <- function(metric) {
  set <- utils::tail(fsknn:::cpp_backends()$cpu$instruction_sets, 1)
  has <- function(part) grepl(part, set, fixed = TRUE)
  if (metric == "duo") {
    return(32 / if (has("popcnt")) 3 else 9)
  }
  4 / if (has("vnni") || has("popcnt")) 1 else 2
}
if (of_triples) {
  threads <- option("threads", fsknn:::default_num_threads())
  options(fsknn.num_threads = threads, fsknn.backend = backend)
  limit <- vector_rate(1L)
  all <- choose(snps, 3) * samples
  rows <- lapply(list(ccc = x, duo = present), function(x) {
    metric <- if (max(x) > 1) "ccc" else "duo"
    best <- nearest_triples(x, 1, metric)
    least <- stats::quantile(best$similarity, 0.99, names = FALSE)
    at <- which.max(best$similarity)
    three <- x[c(at, best$second[at], best$third[at]), ]
    copies <- max(x)
    shares <- vapply(0:7, function(kind) {
      counted <- bitwAnd(kind, c(4, 2, 1)) > 0
      alleles <- abs(copies * (1 - counted) - three)
      weights <- prod(1 - 2 / 3 * rowMeans(alleles) / copies)
      (if (copies == 2) 9 / 2 else 4) * weights *
        mean(alleles[1, ] * alleles[2, ] * alleles[3, ]) / copies^3
    }, 0)
    stopifnot(abs(max(shares) - max(best$similarity)) < 1e-12)
    verbs <- list(
      threshold_triples = function() threshold_triples(x, least, metric),
      triple_histogram = function() triple_histogram(x, 20, metric),
      nearest_triples = function() nearest_triples(x, 10, metric)
    )
    do.call(rbind, lapply(names(verbs), function(verb) {
      times <- replicate(3, {
        gc()
        times <- system.time(verbs[[verb]]())
        c(times[["elapsed"]], processor_seconds(times))
      })
      compared <- all * if (verb == "nearest_triples") 3 else 1
      middle <- apply(times, 1, stats::median)
      data.frame(
        metric, verb, seconds = signif(middle[[1]], 3),
        comparisons = signif(compared / middle[[1]], 3),
        a_cpu_second = signif(compared / middle[[2]], 3),
        of_limit = signif(
          compared / middle[[2]] /
            (2 * limit * samples_a_lane(metric)), 2
        )
      )
    }))
  })
  cat(
    snps, "SNPs,", samples, "samples,", threads, "threads,",
    utils::tail(fsknn:::cpp_backends()$cpu$instruction_sets, 1), "\n"
  )
  show(do.call(rbind, unname(rows)))
  quit()
}

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
if (backend != "cuda") {
  holed <- x
  holed[sample(length(x), length(x) / 50)] <- NA
  rows[[length(rows) + 1]] <- row_for("ccc", "2% missing", function() {
    knn_search(holed, 10, "ccc", na = "pairwise", backend = "cpu")
  })
}
cat(snps, "SNPs,", samples, "samples, backend", backend, "\n")
show(do.call(rbind, rows))
