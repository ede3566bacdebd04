# Triples of Proportional Similarity: all of them looked at, and above a
# threshold by pairs. The data are lognormal rows of 64 latent factors, each with
# most of one of them.
#   Rscript triples.R [THREADS [N ...]]
# Prints a table: the median of up to five runs in seconds (and the slowest,
# which tells of other work on the machine), features of triples a second, how
# many triples pass; path "all" only where it takes less than ten minutes by the
# vector limit. First it prints the load of the machine, and the rate of the two
# vector instructions that a feature needs (a maximum, and a sum; floor.cpp has
# them with the minimum, which is as fast).
#   Rscript triples.R gpu [STAGES]
#   Rscript triples.R genotypes
# The same on the first GPU, host preparation and search apart: the size of
# CoMet's node (2,880 x 20,000) unpruned, lognormal and of genotypes 0, 1, 2
# (which go by bits; and a hundred times them, which do not); 24,158 x 295 above the threshold that
# keeps a million triples, pruned, and of its unpruned search a stage of STAGES
# (20; 1: the whole), with the checksum of the same stage when it is pruned.
# `genotypes`: those alone.

arguments <- commandArgs(TRUE)
genotypes <- identical(arguments[1], "genotypes")
on_gpu <- identical(arguments[1], "gpu") || genotypes
arguments <- as.integer(if (on_gpu) arguments[-1] else arguments)
threads <- if (on_gpu) {
  fsknn:::default_num_threads()
} else if (length(arguments) > 0) {
  arguments[[1]]
} else {
  2L
}
sizes <- if (length(arguments) > 1) {
  arguments[-1]
} else {
  c(500L, 1000L, 2000L, 5000L, 10000L, 24158L)
}
num_features <- 295L

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

new_request <- function(backend) {
  list(
    k = NULL, metric = "proportional", sign = "signed", skip = integer(),
    query_skip = integer(), num_threads = threads, chunk_size = 0L,
    max_device_memory = 0, max_memory = 0, largest = -1, na = "error",
    min_pairs = 3L, instruction_set = "auto",
    devices = if (backend == "cuda") 1L else integer(), progress = FALSE,
    backend = backend
  )
}

# The median of several runs: of one alone where it takes long.
search <- function(x, least, path) {
  request <- new_request("cpu")
  seconds <- numeric()
  while (length(seconds) < 5 && sum(seconds) < 60) {
    seconds[length(seconds) + 1] <- system.time({
      opened <- core(
        "cpp_open_triples", x, request, least, integer(), c(1, 1), path
      )
      found <- core(
        "cpp_find_triples", opened$handle, 1, 1, 1e8, FALSE, FALSE, request
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

# One search on a GPU: what was found, and a row of the table.
search_on_gpu <- function(x, least, path, stage = c(1, 1)) {
  request <- new_request("cuda")
  gc()
  open <- system.time(opened <- core(
    "cpp_open_triples", x, request, least, integer(), stage, path
  ))[["elapsed"]]
  seconds <- system.time(found <- core(
    "cpp_find_triples", opened$handle, 1, 1, 3e7, FALSE, FALSE, request
  ))[["elapsed"]]
  found$row <- data.frame(
    n = nrow(x), d = ncol(x), least = least, path = path,
    stage = paste(stage, collapse = " of "), prepare = open, seconds = seconds,
    per_second = choose(nrow(x), 3) / stage[[2]] * ncol(x) / seconds,
    triples = found$stats$triples, candidates = found$stats$candidates,
    checksum = found$checksum
  )
  found
}

# The threshold that so many triples reach, by searches that come near it from
# above.
threshold_for <- function(x, wanted) {
  for (least in seq(0.95, 0.76, by = -0.01)) {
    found <- search_on_gpu(x, least, "auto")
    if (length(found$similarity) >= wanted) {
      return(sort(found$similarity, decreasing = TRUE)[[wanted]])
    }
  }
  stop("too few triples are similar enough")
}

# Of two bits each; and a hundred times them, which are no small numbers.
bench_genotypes <- function() {
  set.seed(17)
  x <- matrix(
    as.double(sample(0:2, 2880 * 20000, replace = TRUE, c(0.6, 0.3, 0.1))), 2880
  )
  lapply(c(1, 1, 1, 100), function(by) {
    search_on_gpu(by * x, 0.463, "all")$row
  })
}

bench_gpu <- function(stages) {
  print(fsknn::cuda_devices()[1, ])
  # CUDA starts, and memory is pinned, before anything is timed.
  search_on_gpu(make_points(300, 295), 0.9, "auto")
  x <- make_points(2880, 20000)
  rows <- lapply(c("all", "all", "auto"), function(path) {
    search_on_gpu(x, 0.8, path)$row
  })
  rows <- c(rows, bench_genotypes())
  x <- make_points(24158, 295)
  least <- threshold_for(x, 1e6)
  more <- lapply(1:3, function(i) search_on_gpu(x, least, "auto")$row)
  staged <- lapply(c("all", "auto"), function(path) {
    search_on_gpu(x, least, path, c(1, stages))$row
  })
  do.call(rbind, c(rows, more, staged))
}

bench_cpu <- function() {
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
  do.call(rbind, rows)
}

options(width = 200)
if (genotypes) {
  print(fsknn::cuda_devices()[1, ])
  search_on_gpu(make_points(300, 295), 0.9, "auto")
  table <- do.call(rbind, bench_genotypes())
} else if (on_gpu) {
  table <- bench_gpu(if (length(arguments) > 0) arguments[[1]] else 20L)
} else {
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
  table <- bench_cpu()
}
print(table, digits = 4, row.names = FALSE)
