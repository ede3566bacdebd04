# Triples of Proportional Similarity on the CPU: all of them looked at, and
# above a threshold by pairs. The data are lognormal rows of 64 latent factors,
# each with most of one of them.
#   Rscript triples.R [THREADS [N ...]]
# Prints a table: the median of up to five runs in seconds (and the slowest,
# which tells of other work on the machine), features of triples a second, how
# many triples pass; path "all" only where it takes less than ten minutes by the
# vector limit. First it prints the load of the machine, and the rate of the two
# vector instructions that a feature needs (a maximum, and a sum; floor.cpp has
# them with the minimum, which is as fast).

arguments <- as.integer(commandArgs(TRUE))
threads <- if (length(arguments) > 0) arguments[[1]] else 2L
sizes <- if (length(arguments) > 1) {
  arguments[-1]
} else {
  c(500L, 1000L, 2000L, 5000L, 10000L, 24158L)
}
num_features <- 295L

here <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
build <- tempfile("floor")
dir.create(build)
invisible(file.copy(file.path(dirname(here), "floor.cpp"), build))
writeLines(
  c(
    "PKG_CXXFLAGS = $(SHLIB_OPENMP_CXXFLAGS)",
    "PKG_LIBS = $(SHLIB_OPENMP_CXXFLAGS) -ldl"
  ),
  file.path(build, "Makevars")
)
invisible(system2(
  file.path(R.home("bin"), "R"),
  c("CMD", "SHLIB", file.path(build, "floor.cpp")),
  stdout = FALSE, stderr = FALSE
))
dyn.load(file.path(build, "floor.so"))
rate <- max(vapply(1:3, function(i) {
  .Call("bench_vector_rate", threads, FALSE, PACKAGE = "floor")
}, 1))
load <- "/proc/loadavg"
cat("Load:", if (file.exists(load)) readLines(load) else "?", "\n")
cat(
  "Vector limit (", .Call("bench_vector_name", PACKAGE = "floor"), "), ",
  threads, " threads: ", format(rate, digits = 3), " a second\n",
  sep = ""
)

make_points <- function(n, d) {
  set.seed(2018)
  factors <- matrix(stats::rnorm(64 * d), 64)
  loadings <- matrix(stats::rnorm(n * 64) / 24, n)
  own <- cbind(seq_len(n), seq_len(n) %% 64 + 1)
  loadings[own] <- loadings[own] + 1.5
  exp(loadings %*% factors + 0.3 * stats::rnorm(n * d))
}

# Straight to the core, which says what the work was.
core <- function(name, ...) {
  found <- utils::getFromNamespace(name, "fsknn")(...)
  if (!is.null(found$failure)) {
    stop(found$message)
  }
  found
}

# The median of several runs: of one alone where it takes long.
search <- function(x, least, path) {
  request <- list(
    k = NULL, metric = "proportional", sign = "signed", skip = integer(),
    query_skip = integer(), num_threads = threads, chunk_size = 0L,
    max_device_memory = 0, max_memory = 0, largest = -1, na = "error",
    min_pairs = 3L, instruction_set = "auto", devices = integer(),
    progress = FALSE
  )
  seconds <- numeric()
  while (length(seconds) < 5 && sum(seconds) < 60) {
    seconds[length(seconds) + 1] <- system.time({
      opened <- core(
        "cpp_open_triples", x, request, least, integer(), c(1, 1), path
      )
      found <- core(
        "cpp_find_triples", opened$handle, 1, 1, 1e8, FALSE, FALSE, TRUE,
        request
      )
    })[["elapsed"]]
  }
  data.frame(
    n = nrow(x), d = ncol(x), least = least,
    path = if (found$stats$by_pairs) "pairs" else "all", runs = length(seconds),
    seconds = stats::median(seconds), slowest = max(seconds),
    per_second = choose(nrow(x), 3) * ncol(x) / stats::median(seconds),
    looked_at = found$stats$comparisons / stats::median(seconds) / rate,
    triples = found$stats$triples, candidates = found$stats$candidates,
    checksum = found$checksum
  )
}

rows <- list()
for (n in sizes) {
  x <- make_points(n, num_features)
  one_by_one <- choose(n, 3) * num_features / rate < 600
  for (path in c(if (one_by_one) "all", "pairs", "auto")) {
    for (least in if (path == "all") c(0.7, 0.9) else c(0.8, 0.9)) {
      rows[[length(rows) + 1]] <- search(x, least, path)
    }
  }
}
options(width = 200)
print(do.call(rbind, rows), digits = 3, row.names = FALSE)
