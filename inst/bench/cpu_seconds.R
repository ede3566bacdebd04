# What the CPU engine takes beside half an OpenBLAS sgemm, where other work runs
# on the machine too: by processor seconds, not those of the clock.
#
#   Rscript inst/bench/cpu_seconds.R [full | quick | large]
#
# With the package installed (R_LIBS says where), and OpenBLAS as R's BLAS. The
# same rows as cpu.R simulates, two threads, whole calls. Floor and searches in
# turn; medians, with the lowest and highest. quick: fewer rounds, and no
# 100,000 points; large: those alone, once. OpenBLAS is started as SkylakeX
# where it would be slow (openblas.R). Other settings are not removed here:
# unset them.

arguments <- commandArgs(TRUE)
script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
library(fsknn)

build <- tempfile("bench")
dir.create(build)
invisible(
  file.copy(file.path(dirname(normalizePath(script)), "floor.cpp"), build)
)
writeLines(
  c("PKG_CXXFLAGS = $(SHLIB_OPENMP_CXXFLAGS)",
    "PKG_LIBS = $(SHLIB_OPENMP_CXXFLAGS) -ldl"),
  file.path(build, "Makevars")
)
old <- setwd(build)
invisible(system2(
  file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "floor.cpp"), stdout = FALSE
))
setwd(old)
invisible(dyn.load(file.path(build, "floor.so")))
call_floor <- function(name, ...) .Call(name, ..., PACKAGE = "floor")
openblas <- call_floor("bench_openblas")
if (is.null(openblas)) stop("R's BLAS is not OpenBLAS.")
source(file.path(dirname(normalizePath(script)), "openblas.R"))
start_as_skylakex(openblas[[1]], script, arguments)
cat("OpenBLAS core:", openblas[[1]], " load:", readLines("/proc/loadavg"), "\n")
invisible(call_floor("bench_blas_threads", 2L))

simulate_expression <- function(n, d, num_factors = 200) {
  set.seed(1)
  loadings <- matrix(stats::rnorm(n * num_factors), n)
  scores <- matrix(stats::rnorm(num_factors * d), num_factors)
  noise <- matrix(stats::rnorm(n * d, sd = 0.5), n)
  loadings %*% scores / sqrt(num_factors) + noise
}

processor_seconds <- function(work) {
  gc()
  Sys.sleep(0.06)
  sum(system.time(work())[c("user.self", "sys.self")])
}

# asked: metric and k of each search.
measure <- function(n, asked, rounds) {
  x <- simulate_expression(n, 295L)
  positive <- 2^x
  call_floor("bench_floor_load", x, 2048L)
  stride <- if (n > 50000) 8L else 1L
  done <- sum(pmin(2048, n - seq(0, n - 1, by = 2048 * stride)))
  tasks <- list(floor = function() {
    0.5 * n / done * processor_seconds(function() {
      call_floor("bench_floor_pass", 2048L, stride)
    })
  })
  searches <- Map(function(metric, k) {
    values <- if (metric == "proportional") positive else x
    function() {
      knn_search(values, k, metric, backend = "cpu", num_threads = 2)
    }
  }, asked$metric, asked$k)
  names(searches) <- paste(asked$metric, asked$k)
  facts <- lapply(searches, function(search) {
    search()
    stats <- knn_stats()
    c(
      exact = stats$pairs_exact / n, redone = stats$rows_redone,
      bits = stats$filter_bits
    )
  })
  facts <- c(list(floor = c(exact = NA, redone = NA, bits = NA)), facts)
  tasks <- c(tasks, lapply(searches, function(search) {
    function() processor_seconds(search)
  }))
  seconds <- vapply(seq_len(rounds), function(round) {
    vapply(tasks, function(task) task(), 0)
  }, numeric(length(tasks)))
  call_floor("bench_floor_unload")
  median <- apply(seconds, 1, stats::median)
  facts <- do.call(rbind, facts)
  print(data.frame(
    n, what = names(tasks), seconds = signif(median, 3),
    lowest = signif(apply(seconds, 1, min), 3),
    highest = signif(apply(seconds, 1, max), 3),
    ratio = round(median / median[[1]], 2),
    exact_a_point = round(facts[, "exact"], 1), redone = facts[, "redone"],
    bits = facts[, "bits"]
  ), row.names = FALSE)
}

pearson <- function(k) data.frame(metric = "pearson", k = k)
how <- if (length(arguments) > 0) arguments[[1]] else "full"
rounds <- if (how == "quick") 3 else 9
if (how != "large") {
  measure(5000L, pearson(20), rounds)
  measure(
    10000L,
    rbind(
      pearson(c(20, 128, 1024)),
      data.frame(metric = c("manhattan", "proportional"), k = 20)
    ),
    rounds
  )
  measure(24158L, pearson(20), max(3, rounds %/% 2))
}
if (how != "quick") measure(100000L, pearson(20), if (how == "large") 1 else 3)
cat("load:", readLines("/proc/loadavg"), "\n")
