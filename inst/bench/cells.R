# How fast is exact search of simulated cells, beside approximate search?
#
#   Rscript inst/bench/cells.R [N,N,...] [K] [METHOD,METHOD,...]
#     [--rounds=N] [--threads=N] [--closeness=X] [--torch=DEVICE]
#     [--folder=FOLDER]
#
# By default: 30,000 and 100,000 cells in 50 components, k = 15, the methods
# fsknn, kmknn, annoy, hnsw, rcpphnsw, faiss_hnsw and faiss_ivf, two threads,
# three rounds. The methods exhaustive, vptree, gpu and torch run only where
# they are named; --torch is the device of the last (default: cuda). With
# --folder the rows replace those of cells.csv in that folder; README.md in this
# folder says what is timed. Nothing else should run on the machine meanwhile.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

sizes <- as.numeric(strsplit(word(1, "30000,100000"), ",", fixed = TRUE)[[1]])
k <- as.integer(word(2, 15))
num_components <- 50
rounds <- option("rounds", 3)
threads <- as.integer(option("threads", 2))
closeness <- option("closeness", 1)
folder <- check_folder(option("folder"))

# --- Data ---------------------------------------------------------------------

# An atlas of cells in principal components: 8 lineages of 10 types each, of
# uneven frequency. 30% of the cells lie on the way from their type to the next
# one of the lineage. A larger `closeness` brings the types of a lineage closer
# together.
simulate_atlas <- function(n, d, closeness, seed = 1) {
  set.seed(
    seed, kind = "Mersenne-Twister", normal.kind = "Inversion",
    sample.kind = "Rejection"
  )
  spread <- 12 * exp(-(seq_len(d) - 1) / 9) + 1
  normal <- function(rows, sd) {
    matrix(stats::rnorm(rows * d), rows) * rep(sd, each = rows)
  }
  lineage <- rep(1:8, each = 10)
  centre <- normal(8, 0.8 * spread)[lineage, ] +
    normal(80, 0.45 * spread / closeness)
  next_type <- 10 * (lineage - 1) + seq_len(80) %% 10 + 1
  type <- sample(80, n, TRUE, exp(1.2 * stats::rnorm(80)))
  way <- ifelse(stats::runif(n) < 0.3, stats::runif(n), 0)
  scale <- exp(0.15 * stats::rnorm(n))
  x <- matrix(0, n, d)
  # By columns, for the memory of millions of cells.
  for (t in seq_len(d)) {
    own <- centre[type, t]
    noise <- (0.15 * spread[[t]] + 0.55) * scale * stats::rnorm(n)
    x[, t] <- own + way * (centre[next_type[type], t] - own) + noise
  }
  x
}

# --- Methods ------------------------------------------------------------------

# A method has build(x), which makes an index, and search(x, index), which gives
# neighbours and distances without the point itself. missing() says why it can't
# run here, or is NULL. All parameters that are not set here are the packages'
# defaults.

no_package <- function(package) {
  function() {
    if (!requireNamespace(package, quietly = TRUE)) {
      "its package is not installed"
    }
  }
}

ours <- function(label, ...) {
  list(
    label = label, missing = no_package("fsknn"), exact = TRUE, ours = TRUE,
    build = function(x) NULL,
    search = function(x, index) knn_search(x, k, "euclidean", ...)
  )
}

bioc <- function(label, param, exact = FALSE) {
  # BiocNeighbors 1.16 takes an index by its name, later versions as the data.
  by_name <- version_of("BiocNeighbors") < "1.99"
  list(
    label = paste("BiocNeighbors", label),
    missing = no_package("BiocNeighbors"), exact = exact,
    build = function(x) {
      param <- getExportedValue("BiocNeighbors", param)()
      BiocNeighbors::buildIndex(x, BNPARAM = param)
    },
    search = function(x, index) {
      given <- if (by_name) list(BNINDEX = index) else list(index)
      workers <- if (threads > 1) {
        BiocParallel::MulticoreParam(threads)
      } else {
        BiocParallel::SerialParam()
      }
      do.call(
        BiocNeighbors::findKNN, c(given, list(k = k, BPPARAM = workers))
      )
    }
  )
}

# RcppHNSW and FAISS count a point as its own neighbour, but may miss it.
without_self <- function(found) {
  keep <- t(found$idx != row(found$idx))
  keep[nrow(keep), colSums(keep) == nrow(keep)] <- FALSE
  lapply(c(index = "idx", distance = "dist"), function(part) {
    matrix(t(found[[part]])[keep], nrow(found$idx), byrow = TRUE)
  })
}

# FAISS by its C++ library. factory(n): its description of the index.
faiss <- function(label, factory, settings) {
  list(
    label = paste0("FAISS ", label), missing = faiss_missing, exact = FALSE,
    build = function(x) {
      call_faiss("bench_faiss_build", x, factory(nrow(x)), settings, threads)
    },
    search = function(x, index) {
      found <- call_faiss("bench_faiss_find", index, x, k + 1L, threads)
      stopifnot("FAISS found too few neighbours." = all(found$idx > 0))
      without_self(found)
    }
  )
}

call_faiss <- function(name, ...) .Call(name, ..., PACKAGE = "faiss_peer")

faiss_missing <- function() {
  if (is.loaded("bench_faiss_build")) {
    return(NULL)
  }
  log <- compile(
    "faiss_peer.cpp", "-lfaiss $(LAPACK_LIBS) $(BLAS_LIBS)", needed = FALSE
  )
  if (!is.null(log)) {
    paste0("no C++ library of FAISS (Debian: libfaiss-dev):\n", log)
  }
}

# A method with run() has a clock of its own: torch_cells.py gets the rows as
# floats in a file. Starting Python and reading the file are not timed.
torch <- function(device) {
  # The system's Python may have PyTorch where the first of the path has not.
  pythons <- unique(c(Sys.which("python3"), "/usr/bin/python3"))
  python <- NULL
  ask <- function(..., of = python, errors = "") {
    words <- shQuote(c(bench_file("torch_cells.py"), ..., device))
    suppressWarnings(system2(of, words, stdout = TRUE, stderr = errors))
  }
  has_torch <- function(of) {
    file.exists(of) && length(ask("version", of = of, errors = FALSE)) == 1
  }
  list(
    label = paste0("PyTorch, ", if (device == "cpu") "CPU" else "one GPU"),
    missing = function() {
      python <<- Find(has_torch, pythons)
      if (is.null(python)) {
        paste("python3 has no PyTorch with the device", device)
      }
    },
    exact = FALSE,
    run = function(x) {
      rows <- tempfile()
      answer <- tempfile()
      on.exit(unlink(c(rows, answer)))
      writeBin(as.vector(t(x)), rows, size = 4)
      seconds <- strsplit(ask(rows, nrow(x), ncol(x), k, answer), ",")[[1]]
      read <- function(what, size) {
        matrix(readBin(from, what, nrow(x) * k, size), nrow(x), byrow = TRUE)
      }
      from <- file(answer, "rb")
      on.exit(close(from), add = TRUE, after = FALSE)
      index <- read("integer", 4) + 1L
      seconds <- as.numeric(seconds)
      list(
        found = list(index = index, distance = read("double", 4)),
        build = seconds[[1]], seconds = sum(seconds)
      )
    }
  )
}

methods <- list(
  fsknn = ours("fsknn", backend = "cpu", num_threads = threads),
  kmknn = bioc("KMKNN", "KmknnParam", exact = TRUE),
  annoy = bioc("Annoy", "AnnoyParam"),
  hnsw = bioc("HNSW", "HnswParam"),
  rcpphnsw = list(
    label = "RcppHNSW, ef = 50", missing = no_package("RcppHNSW"),
    exact = FALSE,
    build = function(x) RcppHNSW::hnsw_build(x, n_threads = threads),
    search = function(x, index) {
      without_self(RcppHNSW::hnsw_search(
        x, index, k + 1L, ef = max(50, k + 1), n_threads = threads
      ))
    }
  ),
  faiss_hnsw = faiss(
    "HNSW, M = 32, ef = 50", function(n) "HNSW32", "efSearch=50"
  ),
  faiss_ivf = faiss(
    "IVF, nprobe = 16",
    function(n) sprintf("IVF%.0f,Flat", round(4 * sqrt(n))), "nprobe=16"
  ),
  exhaustive = bioc("exhaustive", "ExhaustiveParam", exact = TRUE),
  vptree = bioc("VP tree", "VptreeParam", exact = TRUE),
  gpu = ours("fsknn, one GPU", backend = "cuda", devices = 1L),
  torch = torch(option("torch", "cuda"))
)

chosen <- word(3, "fsknn,kmknn,annoy,hnsw,rcpphnsw,faiss_hnsw,faiss_ivf")
chosen <- strsplit(chosen, ",", fixed = TRUE)[[1]]
unknown <- setdiff(chosen, names(methods))
if (length(unknown) > 0) {
  stop(
    "No method ", toString(unknown), "; there are ", toString(names(methods))
  )
}
methods <- methods[chosen]
if ("gpu" %in% chosen) need_gpu()
for (name in chosen) {
  reason <- methods[[name]]$missing()
  if (!is.null(reason)) {
    say(methods[[name]]$label, ": not run, ", reason, ".")
    methods[[name]] <- NULL
  }
}

# --- Timing -------------------------------------------------------------------

run_once <- function(method, x) {
  set.seed(1)
  pause()
  if (!is.null(method$run)) {
    return(method$run(x))
  }
  start <- clock()
  index <- method$build(x)
  built <- clock()
  found <- method$search(x, index)
  list(found = found, build = built - start, seconds = clock() - start)
}

# What fsknn's last search did, in words: pairs that no bound excluded, and the
# seconds on a GPU.
facts_of <- function(method) {
  if (!isTRUE(method$ours)) {
    return("")
  }
  stats <- knn_stats()
  left <- stats$pairs_filtered / (stats$pairs_filtered + stats$pairs_pruned)
  device <- stats$seconds[["device"]]
  paste0(
    ", ", signif(100 * left, 3), "% of pairs filtered",
    if (device > 0) paste0(", device ", signif(device, 3), " s")
  )
}

# The share of the k nearest neighbours that a method found. An exact method
# that misses one stops the script.
recall_of <- function(method, found, exact) {
  recall <- knn_recall(found, exact)
  if (method$exact && recall$at_most < 1) {
    stop(method$label, " is exact, and yet misses neighbours.")
  }
  recall$recall
}

# A row for each method: medians over the rounds, in which the methods take
# turns. Each runs on a few points first, which loads its code.
time_methods <- function(x) {
  few <- x[seq_len(min(nrow(x), 1000)), ]
  for (method in methods) run_once(method, few)
  exact <- knn_search(x, k, "euclidean")
  check_against_core(x, exact, k, "euclidean")
  runs <- lapply(seq_len(rounds), function(round) {
    lapply(methods, function(method) {
      run <- run_once(method, x)
      facts <- facts_of(method)
      run$recall <- recall_of(method, run$found, exact)
      run$found <- NULL
      say(
        "round ", round, ", ", method$label, ": ", signif(run$seconds, 3),
        " s, recall ", round(run$recall, 3), facts
      )
      run
    })
  })
  do.call(rbind, lapply(names(methods), function(name) {
    of <- function(part) vapply(runs, function(run) run[[name]][[part]], 0)
    data.frame(
      n = nrow(x), d = ncol(x), k = k, closeness = closeness,
      method = methods[[name]]$label, exact = methods[[name]]$exact,
      seconds = signif(stats::median(of("seconds")), 4),
      lowest = signif(min(of("seconds")), 4),
      highest = signif(max(of("seconds")), 4),
      build = signif(stats::median(of("build")), 4),
      recall = round(mean(of("recall")), 4), runs = rounds
    )
  }))
}

# --- All sizes ----------------------------------------------------------------

machine <- data.frame(
  threads = threads, cpu = cpu_name(), date = format(Sys.Date()),
  version = version_of("fsknn")
)
cat(
  R.version.string, "; ", machine$cpu, ", ", threads, " threads, load ",
  machine_load(), "\n", "BiocNeighbors ", version_of("BiocNeighbors"),
  ", RcppHNSW ", version_of("RcppHNSW"),
  if (is.loaded("bench_faiss_version")) {
    paste0(", FAISS ", paste(call_faiss("bench_faiss_version"), collapse = "."))
  },
  ", fsknn ", machine$version, "\n",
  sep = ""
)
key <- function(table) {
  sprintf(
    "%.0f %d %d %g %s", table$n, table$d, table$k, table$closeness,
    table$method
  )
}
in_order <- function(table) table[order(table$n), ]
table <- NULL
for (n in sizes) {
  rows <- time_methods(simulate_atlas(n, num_components, closeness))
  table <- rbind(table, rows)
  store_rows(folder, "cells.csv", cbind(table, machine), key, in_order)
  show(rows[c("n", "method", "exact", "seconds", "build", "recall")])
}

# README.md's table.
cells <- sprintf(
  "%.3g s, %s", table$seconds,
  ifelse(table$exact, "exact", sprintf("recall %.3f", table$recall))
)
counts <- unique(table$n)
columns <- lapply(counts, function(n) cells[table$n == n])
table_lines <- do.call(
  paste, c(list(unique(table$method)), columns, list(sep = " | "))
)
heads <- paste(format(counts, big.mark = ",", trim = TRUE), "cells")
writeLines(c("", paste("|", c(
  paste(c("method", heads), collapse = " | "),
  paste(rep("---", length(heads) + 1), collapse = " | "), table_lines
), "|")))
