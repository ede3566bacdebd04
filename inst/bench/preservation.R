# How long does module_preservation() take?
#
#   Rscript inst/bench/preservation.R [PERMUTATIONS] [THREADS]
#
# 20 modules of 500 points, in 100 samples of each of two data sets.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

permutations <- word(1, 1000)
threads <- word(2, 2)
set.seed(1)
module <- rep(1:20, each = 500)
draw <- function() draw_points(10000, 100, 500, 0.3)
x <- draw()
x_test <- draw()
times <- system.time(module_preservation(
  module, x, x_test, permutations = permutations, num_threads = threads
))
show(data.frame(
  permutations, threads, elapsed = times[["elapsed"]],
  processor = processor_seconds(times), load = machine_load(), cpu = cpu_name()
))
