# How long does the CPU engine take beside half of OpenBLAS's sgemm, where other
# programs run on the machine too? In processor seconds, not those of the clock.
#
#   Rscript inst/bench/cpu_seconds.R [full | quick | large]
#
# with the package installed (R_LIBS says where), and OpenBLAS as R's BLAS. The
# data are those of cpu.R; two threads; whole calls. Floor and searches in turn;
# medians, with the lowest and highest. quick: fewer rounds, and no 100,000
# points; large: those alone, once.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)
openblas <- load_floor()
cat("OpenBLAS core:", openblas[[1]], " load:", machine_load(), "\n")
invisible(call_floor("bench_blas_threads", 2L))

# Searches of n points for each metric and k.
measure <- function(n, metrics, ks, rounds) {
  x <- simulate_expression(n, 295L)
  positive <- 2^x
  call_floor("bench_floor_load", x, 2048L)
  stride <- if (n > 50000) 8L else 1L
  done <- sum(pmin(2048, n - seq(0, n - 1, by = 2048 * stride)))
  tasks <- Map(function(metric, k) {
    function() {
      values <- if (metric == "proportional") positive else x
      run <- time_once(function() {
        knn_search(values, k, metric, backend = "cpu", num_threads = 2)
      }, "cpu")
      c(
        run$seconds, run$stats$pairs_exact / n, run$stats$rows_recomputed,
        run$stats$filter_bits
      )
    }
  }, metrics, ks)
  names(tasks) <- paste(metrics, ks)
  floor <- function() {
    pause()
    times <- system.time(call_floor("bench_floor_pass", 2048L, stride))
    c(0.5 * n / done * processor_seconds(times), NA, NA, NA)
  }
  tasks <- c(list(floor = floor), tasks)
  for (task in tasks[-1]) task() # to warm up
  runs <- vapply(seq_len(rounds), function(round) {
    vapply(tasks, function(task) task(), numeric(4))
  }, matrix(0, 4, length(tasks)))
  call_floor("bench_floor_unload")
  facts <- t(apply(runs, 1:2, stats::median))
  show(data.frame(
    n, what = names(tasks), seconds = signif(facts[, 1], 3),
    lowest = signif(apply(runs[1, , , drop = FALSE], 2, min), 3),
    highest = signif(apply(runs[1, , , drop = FALSE], 2, max), 3),
    ratio = round(facts[, 1] / facts[1, 1], 2),
    exact_a_point = round(facts[, 2], 1), redone = facts[, 3], bits = facts[, 4]
  ))
}

how <- word(1, "full")
rounds <- if (how == "quick") 3 else 9
if (how != "large") {
  measure(5000L, "pearson", 20, rounds)
  measure(
    10000L, rep(c("pearson", "manhattan", "proportional"), c(3, 1, 1)),
    c(20, 128, 1024, 20, 20), rounds
  )
  measure(24158L, "pearson", 20, max(3, rounds %/% 2))
}
if (how != "quick") {
  measure(100000L, "pearson", 20, if (how == "large") 1 else 3)
}
cat("load:", machine_load(), "\n")
