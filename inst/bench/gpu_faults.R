# Faults of a real GPU, not simulated as in the package's tests: another process
# that holds most of the memory, and an error that CUDA does not recover from.
#
#   sh inst/bench/gpu_faults.sh
#
# compiles gpu_faults.cu and runs this; it needs nvcc and a GPU.

library(fsknn)

library_file <- commandArgs(TRUE)[[1]]
rscript <- file.path(R.home("bin"), "Rscript")

say <- function(...) writeLines(sprintf(...))

x <- matrix(sin(seq_len(30000 * 12)), 30000)
expected <- knn_search(x[1:2000, ], 5, backend = "cpu")

# --- Another process holds most of the memory ---------------------------------

ready <- tempfile()
hog <- sprintf("
  dyn.load('%s')
  free <- .C('take_memory', 0L, 2e9, free = 0)$free
  writeLines(format(free), '%s')
  Sys.sleep(60)
", library_file, ready)
warm <- knn_search(x[1:2000, ], 5, backend = "cuda")
pid_file <- tempfile()
system(sprintf(
  "%s -e %s > /dev/null 2>&1 & echo $! > %s", rscript, shQuote(hog), pid_file
))
while (!file.exists(ready) || length(readLines(ready)) == 0) Sys.sleep(0.1)
before <- knn_backends()$devices$cuda$memory_free[[1]]
say("another process leaves %s bytes, seen here %.0f", readLines(ready), before)
stopifnot(before < 3e9)

# One chunk of all distances in double: 7.2 GB, unless the engine filters.
large <- tryCatch(
  knn_search(
    x, 5, "manhattan", backend = "cuda", devices = 1, chunk_size = 30016
  ),
  fsknn_cuda_error = identity
)
if (inherits(large, "error")) {
  writeLines(conditionMessage(large))
  stopifnot(
    large$bytes_asked > large$bytes_free, large$bytes_free < 3e9,
    large$device == 1, large$cuda_words == "out of memory", !large$sticky
  )
} else {
  say("the search found its way in what is left")
}
stopifnot(
  identical(knn_backends()$devices$cuda$memory_free[[1]], before),
  identical(knn_search(x[1:2000, ], 5, backend = "cuda"), expected)
)
tools::pskill(as.integer(readLines(pid_file)))
say("memory is given back, and the next call works")

# --- An error that CUDA does not recover from ---------------------------------

dyn.load(library_file)
say("CUDA's code of the real error: %d", .C("spoil", 0L, code = 0L)$code)
first <- tryCatch(
  knn_search(x[1:2000, ], 5, backend = "cuda"), error = identity
)
seconds <- system.time(
  second <- tryCatch(knn_search(x, 5, backend = "cuda"), error = identity)
)[["elapsed"]]
writeLines(conditionMessage(first))
stopifnot(
  inherits(first, "fsknn_cuda_error"), first$sticky,
  identical(conditionMessage(first), conditionMessage(second)), seconds < 1,
  !knn_backends()$usable[[2]],
  nrow(knn_backends(start = TRUE)$devices$cuda) == 0
)
print(knn_backends())
print(knn_backends()$devices$cuda)
stopifnot(
  identical(knn_search(x[1:2000, ], 5, backend = "cpu"), expected),
  identical(knn_search(x[1:2000, ], 5), expected)
)
say("later calls fail with the same words (%.3f s); the CPU works", seconds)
