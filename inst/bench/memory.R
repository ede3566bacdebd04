# One call in a process of its own, and the memory that it took, for cpu.R:
#   Rscript memory.R POINTS N D K THREADS VERB
# POINTS: doubles, N x D in column-major order. Prints, in bytes: resident when
# the points are in place, the highest resident after the call, the answer.

arguments <- commandArgs(TRUE)
n <- as.integer(arguments[[2]])
d <- as.integer(arguments[[3]])
verb <- getExportedValue("fsknn", arguments[[6]])

status_bytes <- function(field) {
  line <- grep(paste0("^", field, ":"), readLines("/proc/self/status"), value = TRUE)
  1024 * as.numeric(gsub("[^0-9]", "", line))
}

# Loads what a first call loads.
invisible(verb(matrix(stats::rnorm(640), 64), k = 2, backend = "cpu"))
x <- readBin(arguments[[1]], "double", n * d)
dim(x) <- c(n, d)
invisible(gc())
# The high-water mark starts anew, at what is resident now.
try(writeLines("5", "/proc/self/clear_refs"), silent = TRUE)
before <- status_bytes("VmRSS")
answer <- verb(
  x, k = as.integer(arguments[[4]]), backend = "cpu",
  num_threads = as.integer(arguments[[5]])
)
after <- status_bytes("VmHWM")
cat(before, after, unclass(utils::object.size(answer)), "\n")
