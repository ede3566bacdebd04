# How long does the exact graph of many cells take, from a file to a file?
#
#   Rscript inst/bench/cells_file.R N [K] [--devices=N] [--closeness=X]
#     [--folder=FOLDER] [--check=ROWS] [--runs=N] [--memory=BYTES]
#
# Writes the atlas of cells.R with N cells in 50 components to an .fbin file in
# FOLDER (default: R's temporary folder; a file of this size is used again), and
# searches for the K (15) nearest of each on the first N GPUs (1). The answer
# goes to shards, format "bin". The time is that of the whole call: reading the
# file, checking all values, the search, and writing. The files are in the
# system's cache if the memory suffices. ROWS rows (1,000) are compared with
# brute force in doubles by PyTorch (cells_atlas.py).

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

n <- word(1, 1e6)
k <- word(2, 15)
num_components <- 50
devices <- option("devices", 1)
rows_checked <- option("check", 1000)
memory <- option("memory")
folder <- option("folder", tempdir())
need_gpu()

torch <- function(...) {
  python <- option("python", "python3")
  words <- shQuote(c(bench_file("cells_atlas.py"), ..., "cuda"))
  stopifnot("PyTorch failed." = system2(python, words) == 0)
}
number <- function(x) format(x, scientific = FALSE)

file <- file.path(folder, "cells.fbin")
bytes <- 8 + 4 * n * num_components
if (!identical(file.size(file), bytes)) {
  start <- clock()
  torch("make", file, number(n), num_components, option("closeness", 1))
  say("The file took ", signif(clock() - start, 3), " s.")
}
for (run in seq_len(option("runs", 1))) {
  answer <- file.path(folder, "cells-answer")
  unlink(answer, recursive = TRUE)
  pause()
  start <- clock()
  found <- knn_search(
    file, k, "euclidean", backend = "cuda", devices = seq_len(devices),
    max_memory = if (is.null(memory)) 16 * n * k else memory,
    output = knn_output(answer, "bin")
  )
  seconds <- clock() - start
  stats <- knn_stats()
  left <- stats$pairs_filtered / (stats$pairs_filtered + stats$pairs_pruned)
  say(
    number(n), " cells, ", stats$num_devices, " GPUs: ", signif(seconds, 4),
    " s; ", signif(100 * left, 3), "% of pairs filtered, ",
    number(stats$rows_recomputed), " rows recomputed; seconds: ",
    paste(names(stats$seconds), signif(stats$seconds, 4), collapse = ", "),
    "; GPU memory ", signif(stats$bytes_device / 2^30, 4), " GiB"
  )
}
if (rows_checked > 0) {
  torch("check", file, k, answer, number(rows_checked))
}
