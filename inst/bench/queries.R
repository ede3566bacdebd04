# How long does a query of an index take?
#
#   Rscript inst/bench/queries.R [N] [D] [K] [--queries=1,16,...]
#     [--metrics=pearson,euclidean] [--backends=cpu,cuda] [--threads=N]
#     [--seconds=S] [--no-plain] [--no-peer] [--breakdown] [--folder=FOLDER]
#
# By default: 100,000 points of 295 features, k = 20; 1, 16, 256, 4,096 and
# 10,000 queries, on the CPU and on one GPU where there is one. Each cell calls
# knn_query() for S seconds (0.5), at least 3 and at most 300 times. Columns:
#   call      milliseconds of the R call, the median; `highest`: 9 of 10 calls
#             take at most that
#   cpu       milliseconds of all cores per call
#   device    milliseconds on the GPU, or of the search on a CPU
#   plain     call without an index (--no-plain leaves it out)
#   torch, torch_call   PyTorch's matmul and topk in float32: on the GPU with
#             queries and answer there, and from host to host (--no-peer leaves
#             it out). Its distances must agree with ours to 1e-3.
# --breakdown prints where the time of a call goes: the steps of the core, the
# functions of R (Rprof), and on a GPU the kernels, copies and calls of the CUDA
# runtime (CUPTI, if the toolkit has it). With --folder the rows replace those
# of queries.csv in that folder.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

list_of <- function(name, default) {
  strsplit(option(name, default), ",", fixed = TRUE)[[1]]
}
n <- as.integer(word(1, 100000))
d <- as.integer(word(2, 295))
k <- as.integer(word(3, 20))
counts <- as.integer(list_of("queries", "1,16,256,4096,10000"))
metrics <- list_of("metrics", "pearson,euclidean")
threads <- option("threads")
seconds <- option("seconds", 0.5)
folder <- check_folder(option("folder"))
has_gpu <- knn_backends()$usable[[2]]
backends <- list_of("backends", if (has_gpu) "cpu,cuda" else "cpu")
if ("cuda" %in% backends) need_gpu()
options(fsknn.num_threads = if (!is.null(threads)) as.integer(threads))

drawn <- simulated(n + max(counts), d)
x <- drawn[seq_len(n), ]
queries <- lapply(counts, function(m) drawn[n + seq_len(m), , drop = FALSE])
names(queries) <- counts
rm(drawn)

# --- One cell -----------------------------------------------------------------

# Milliseconds of calls in turn, with the core's own times.
time_calls <- function(search, at_least = 3, at_most = 300) {
  pause()
  found <- search()
  calls <- numeric()
  parts <- NULL
  before <- proc.time()
  until <- clock() + seconds
  while (length(calls) < at_least ||
           (clock() < until && length(calls) < at_most)) {
    start <- clock()
    search()
    calls <- c(calls, clock() - start)
    parts <- rbind(parts, knn_stats()$seconds)
  }
  used <- processor_seconds(proc.time() - before)
  list(
    found = found, calls = 1000 * calls, cpu = 1000 * used / length(calls),
    parts = 1000 * apply(parts, 2, stats::median)
  )
}

options_of <- function(backend) {
  list(backend = backend, devices = if (backend == "cuda") 1L)
}

time_cell <- function(index, metric, backend, count) {
  query <- queries[[as.character(count)]]
  given <- options_of(backend)
  search <- function(from, ...) {
    knn_query(
      from, query, k, ..., backend = given$backend, devices = given$devices
    )
  }
  run <- time_calls(function() search(index))
  plain <- NA
  if (!flag("no-plain")) {
    other <- time_calls(function() search(x, metric), 1, 5)
    stopifnot("The answers differ." = identical(run$found, other$found))
    plain <- stats::median(other$calls)
  }
  if (flag("breakdown")) break_down(function() search(index), backend, run)
  row <- data.frame(
    n = n, d = d, k = k, metric = metric, backend = backend, queries = count,
    call = stats::median(run$calls),
    highest = stats::quantile(run$calls, 0.9, names = FALSE), cpu = run$cpu,
    device = run$parts[[if (backend == "cpu") "search" else "device"]],
    plain = plain, runs = length(run$calls)
  )
  show(format(row, digits = 3))
  row
}

# --- Where the time goes ------------------------------------------------------

break_down <- function(search, backend, run) {
  cat("\nCore, ms: ")
  cat(paste(names(run$parts), signif(run$parts, 3)), sep = ", ")
  cat("\n")
  # Samples may be rarer than asked for: shares of the call's time are right.
  call <- stats::median(run$calls)
  runs <- max(5, min(1000, 1000 / call))
  log <- tempfile()
  utils::Rprof(log, interval = 0.001)
  for (i in seq_len(runs)) search()
  utils::Rprof(NULL)
  samples <- tryCatch(
    utils::summaryRprof(log)$by.total, error = function(e) NULL
  )
  if (!is.null(samples)) {
    cat("R, ms of a call:\n")
    samples$ms <- signif(call * samples$total.pct / 100, 2)
    print(utils::head(samples[c("ms", "total.pct", "self.pct")], 40))
  }
  if (backend == "cuda" && has_trace()) {
    runs <- 20
    search()
    .Call("trace_start", PACKAGE = "cuda_trace")
    for (i in seq_len(runs)) search()
    trace <- as.data.frame(.Call("trace_stop", PACKAGE = "cuda_trace"))
    trace <- trace[order(trace$kind, -trace$ns), ]
    trace$count <- trace$count / runs
    trace$us <- signif(trace$ns / runs / 1000, 3)
    trace$name <- substr(trace$name, 1, 100)
    cat("CUDA, of one call:\n")
    show(trace[c("kind", "count", "us", "name")], right = FALSE)
  }
  cat("\n")
}

# CUPTI's headers and library, from the toolkit or a Python package.
has_trace <- function() {
  if (is.loaded("trace_start")) {
    return(TRUE)
  }
  roots <- c(
    Sys.getenv("CUDA_HOME", "/usr/local/cuda"), Sys.glob("/usr/local/cuda*"),
    Sys.glob("/usr/local/cuda*/extras/CUPTI"),
    Sys.glob("/usr/l*/python3*/*-packages/nvidia/*"),
    Sys.glob("/usr/local/lib/python3*/*-packages/nvidia/*"),
    Sys.glob("/opt/*/lib/python3*/site-packages/nvidia/*")
  )
  headers <- Sys.glob(file.path(roots, "include", "cupti.h"))
  found <- Sys.glob(file.path(roots, "lib*", "libcupti.so*"))
  toolkit <- Sys.glob(file.path(roots, "include", "cuda.h"))
  if (length(headers) == 0 || length(found) == 0 || length(toolkit) == 0) {
    say("No CUPTI: CUDA's calls are not shown.")
    return(FALSE)
  }
  Sys.setenv(CPLUS_INCLUDE_PATH = paste(
    unique(dirname(c(headers, toolkit))), collapse = ":"
  ))
  log <- compile("cuda_trace.cpp", paste0(
    shQuote(found[[1]]), " -Wl,-rpath,", shQuote(dirname(found[[1]]))
  ), needed = FALSE)
  if (!is.null(log)) say("CUDA's calls are not shown:\n", log)
  is.null(log)
}

# --- PyTorch ------------------------------------------------------------------

python <- Sys.which("python3")
can_peer <- !flag("no-peer") && "cuda" %in% backends && nzchar(python) &&
  identical(
    suppressWarnings(system2(
      python, c("-c", shQuote("import torch; torch.zeros(1).cuda()")),
      stdout = FALSE, stderr = FALSE
    )), 0L
  )

write_floats <- function(values, path) {
  writeBin(as.vector(values), path, size = 4)
}

# A table of metric, queries and milliseconds. The peer writes the distances of
# the first queries.
time_torch <- function(folder = tempfile("torch")) {
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  write_floats(x, file.path(folder, "points"))
  write_floats(queries[[which.max(counts)]], file.path(folder, "queries"))
  said <- system2(
    python, c(
      shQuote(bench_file("queries_torch.py")), shQuote(folder), n, max(counts),
      d, k, paste(metrics, collapse = ","), paste(counts, collapse = ",")
    ), stdout = TRUE
  )
  times <- utils::read.csv(text = said, header = FALSE, col.names = c(
    "version", "metric", "queries", "torch", "torch_call"
  ))
  few <- queries[[which.min(counts)]]
  for (metric in unique(times$metric)) {
    theirs <- matrix(
      readBin(
        file.path(folder, metric), "double", nrow(few) * k, size = 4
      ), ncol = k, byrow = TRUE
    )
    ours <- knn_query(x, few, k, metric, backend = "cuda", devices = 1L)
    off <- max(abs(theirs - ours$distance) / pmax(1, ours$distance))
    stopifnot("PyTorch's distances differ." = off < 1e-3)
  }
  times
}

# --- All cells ----------------------------------------------------------------

options(width = 160)
cat(
  R.version.string, "; ", cpu_name(), ", load ", machine_load(), ", fsknn ",
  version_of("fsknn"), "\n", sep = ""
)
rows <- NULL
for (metric in metrics) {
  for (backend in backends) {
    start <- clock()
    index <- do.call(knn_index, c(list(x, metric), options_of(backend)))
    say("Index of ", metric, " on ", backend, ": ", signif(clock() - start, 3),
        " s")
    if (flag("breakdown")) print(index)
    for (count in counts) {
      rows <- rbind(rows, time_cell(index, metric, backend, count))
    }
    knn_release(index)
  }
}
rows$torch <- rows$torch_call <- NA_real_
if (can_peer) {
  peer <- time_torch()
  say("PyTorch ", peer$version[[1]])
  at <- match(paste(rows$metric, rows$queries, rows$backend),
              paste(peer$metric, peer$queries, "cuda"))
  rows[c("torch", "torch_call")] <- peer[at, c("torch", "torch_call")]
}
times <- c(
  "call", "highest", "cpu", "device", "plain", "torch", "torch_call"
)
rows[times] <- lapply(rows[times], signif, 3)
shown <- c("metric", "backend", "queries", times, "runs")
show(rows[shown])
store_rows(
  folder, "queries.csv",
  cbind(
    rows, cpu_name = cpu_name(), date = format(Sys.Date()),
    version = version_of("fsknn")
  ),
  function(table) {
    do.call(paste, table[c("n", "d", "k", "metric", "backend", "queries")])
  }
)
say("Seconds in all: ", round(clock() - began, 1))
