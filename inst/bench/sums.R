# How many pairs do points' sums, or lengths, leave to the CPU engine's filter,
# and what is that worth?
#
#   Rscript inst/bench/sums.R [FOLDER]
#
# With the package installed (R_LIBS says where), and Bioconductor's ALL: 12,625
# x 128 intensities, on their log scale and off it. FOLDER has
# vantveer78_full.rds (see CONTRIBUTING.md): log ratios, of which sums say
# nothing. One thread; in turn points shuffled ("/scattered"), and as the engine
# chooses, and in order of their sums whatever a sample says, by 16 bits and by
# 8. "seconds": of the processor, the least of five calls; "share": of all pairs
# that the filter looked at; "exact": pairs of a point that went to the exact
# step. The answers are checked to be identical.

library(fsknn)

orders <- c(
  scattered = "/scattered", chosen = "", sorted_16 = "/16/sorted",
  scattered_16 = "/16/scattered", sorted_8 = "/8/sorted",
  scattered_8 = "/8/scattered"
)

timed <- function(search, order) {
  options(fsknn.instruction_set = paste0("auto", order))
  seconds <- system.time(found <- search())
  stats <- knn_stats()
  list(
    found = found, seconds = sum(seconds[c("user.self", "sys.self")]),
    stats = stats
  )
}

compare <- function(data, metric, search, num_pairs, num_rows, rounds = 5) {
  runs <- lapply(seq_len(rounds), function(round) {
    lapply(orders, function(order) timed(search, order))
  })
  first <- runs[[1]]
  for (run in first) stopifnot(identical(run$found, first[[1]]$found))
  seconds <- vapply(names(orders), function(order) {
    min(vapply(runs, function(run) run[[order]]$seconds, 0))
  }, 0)
  fact <- function(name) vapply(first, function(run) run$stats[[name]], 0)
  print(data.frame(
    data, metric, order = names(orders), seconds = round(seconds, 3),
    ratio = round(seconds / seconds[[1]], 2), bits = fact("filter_bits"),
    share = round(fact("pairs_filtered") / num_pairs, 3),
    exact = round(fact("pairs_exact") / num_rows)
  ), row.names = FALSE)
}

graph <- function(data, x, metrics, k = 20) {
  for (metric in metrics) {
    compare(data, metric, function() {
      knn_search(x, k, metric, backend = "cpu", num_threads = 1)
    }, nrow(x)^2 / 2, nrow(x))
  }
}

# 2,000 of the points as queries of all, and all pairs within the median
# distance of the fifth neighbours.
others <- function(data, x, metric) {
  query <- x[seq(1, nrow(x), length.out = 2000), ]
  compare(paste(data, "(2,000 queries)"), metric, function() {
    knn_query(x, query, 20, metric, backend = "cpu", num_threads = 1)
  }, 2000 * nrow(x), 2000)
  options(fsknn.instruction_set = "auto")
  near <- knn_search(x, 5, metric, backend = "cpu")$distance[, 5]
  compare(paste(data, "(within)"), metric, function() {
    within_search(
      x, stats::median(near), metric, backend = "cpu", num_threads = 1
    )
  }, nrow(x)^2 / 2, nrow(x))
}

utils::data("ALL", package = "ALL", envir = environment())
intensities <- unname(Biobase::exprs(ALL))
metrics <- c("manhattan", "proportional", "euclidean")
graph("ALL, log scale", intensities, metrics)
graph("ALL", 2^intensities, metrics)
for (metric in metrics) {
  others("ALL, log scale", intensities, metric)
}
folder <- commandArgs(TRUE)
if (length(folder) > 0) {
  arrays <- readRDS(file.path(folder, "vantveer78_full.rds"))$expr
  arrays <- unname(arrays[rowSums(is.na(arrays)) == 0, ])
  storage.mode(arrays) <- "double"
  graph("breast cancer", arrays, c("manhattan", "euclidean"))
}
