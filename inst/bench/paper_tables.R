# How long do Tables 2 and 3 and Figure 4 of Arefin et al. (2012) take today?
#
#   Rscript inst/bench/paper_tables.R [SECTION ...] [--folder=DIR]
#     [--where=gpu,gpus,cpu] [--cpu-limit=SECONDS] [--quick]
#
# with the package installed (R_LIBS says where). Sections: table2, table3,
# figure4; all where none is named. --where says what to time: one GPU, four
# GPUs (all, where there are fewer), the CPU; what the machine lacks is left
# out. What would take the CPU longer than --cpu-limit (600 seconds) is timed
# for fewer points, multiplied by the ratio of the numbers of pairs, and marked.
# --quick takes a tenth of the points and times once, to see whether all runs.
# With --folder the rows are kept in DIR/paper.csv, in place of earlier rows for
# the same question. README.md in this folder says what is measured.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

quick <- flag("quick")
folder <- check_folder(option("folder"))
cpu_limit <- option("cpu-limit", 600)
wanted <- strsplit(option("where", "gpu,gpus,cpu"), ",")[[1]]
all_sections <- c("table2", "table3", "figure4")
sections <- if (length(words) == 0) all_sections else words
stopifnot(
  "Sections are table2, table3, figure4." = sections %in% all_sections,
  "--where takes gpu, gpus, cpu." = wanted %in% c("gpu", "gpus", "cpu")
)
gpu_table <- knn_backends()$devices$cuda
gpus <- nrow(gpu_table)
wanted <- setdiff(wanted, c(if (gpus < 1) "gpu", if (gpus < 2) "gpus"))
if (length(wanted) == 0) {
  stop("Nothing to time here: no GPU, and --where without \"cpu\".")
}
many <- min(gpus, 4)
threads <- knn_plan(c(10, 3), k = 1, backend = "cpu")$num_threads
machine <- paste0(
  if (gpus > 0) paste0(gpus, " x ", gpu_table$name[[1]], ", "),
  cpu_name(), ", ", threads, " threads"
)
say(machine)

# --- One measurement ----------------------------------------------------------

# The whole R call, from a double matrix to the data frame of edges: once to
# warm up where that is short, then three times, or once where it takes long.
time_graph <- function(x, k, where, chunk_size = NULL) {
  run <- function() {
    invisible(gc())
    seconds <- system.time(
      knn_graph(
        x, k = k, backend = if (where == "cpu") "cpu" else "cuda",
        devices = switch(where, gpu = 1, gpus = seq_len(many)),
        chunk_size = chunk_size, progress = FALSE
      )
    )[["elapsed"]]
    c(seconds, knn_stats()$seconds[c("prepare", "search", "emit", "device")])
  }
  first <- run()
  times <- if (quick || first[[1]] > 60) 0 else if (first[[1]] > 8) 1 else 3
  runs <- list(first)
  if (times > 0) runs <- lapply(seq_len(times), function(i) run())
  runs <- do.call(rbind, runs)
  # The run with the median time, so that its parts belong together.
  middle <- runs[order(runs[, 1])[(nrow(runs) + 1) %/% 2], ]
  data.frame(
    seconds = middle[[1]], least = min(runs[, 1]), most = max(runs[, 1]),
    runs = nrow(runs), prepare = middle[[2]], search = middle[[3]],
    emit = middle[[4]], device = middle[[5]], extrapolated_from = NA_integer_
  )
}

# On the CPU, from fewer points where all would take too long. The time of each
# size foretells the largest that can be afforded.
time_cpu <- function(x, k) {
  n <- nrow(x)
  sizes <- c(10000, 25000, 50000, 100000, 200000, 400000)
  sizes <- c(sizes[sizes < n], n)
  at <- sizes[[1]]
  repeat {
    found <- time_graph(
      if (at == n) x else x[seq_len(at), , drop = FALSE], k, "cpu"
    )
    expected <- found$seconds * (sizes / at)^2
    # Half the limit for a size that is only a step on the way.
    next_at <- max(at, sizes[expected < ifelse(sizes == n, 1, 0.5) * cpu_limit])
    if (next_at == at) break
    at <- next_at
  }
  if (at < n) {
    parts <- c("seconds", "least", "most", "prepare", "search", "emit")
    found[parts] <- found[parts] * (n / at)^2
    found$extrapolated_from <- as.integer(at)
  }
  found
}

rows <- NULL
question <- function(rows) {
  do.call(paste, rows[c("table", "n", "d", "k", "chunk_size", "where")])
}
note <- function(table, set, x, k, where, chunk_size = NA) {
  if (!where %in% wanted) {
    return(invisible())
  }
  found <- if (where == "cpu") {
    time_cpu(x, k)
  } else {
    time_graph(x, k, where, if (!is.na(chunk_size)) chunk_size)
  }
  row <- data.frame(
    table = table, set = set, n = nrow(x), d = ncol(x), k = k,
    chunk_size = as.integer(chunk_size), where = where,
    gpus = switch(where, gpu = 1L, gpus = as.integer(many), cpu = 0L),
    threads = threads, found, machine = machine, date = format(Sys.Date())
  )
  say(question(row), ": ", format(found$seconds, digits = 4), " s")
  rows <<- rbind(rows, row)
  store_rows(folder, "paper.csv", rows, question)
}

# --- Sections -----------------------------------------------------------------

size <- function(n) if (quick) n %/% 10 else n
sets <- c(original = 24158, expanded_A = 384126, expanded_B = 1533876)

# One large matrix serves all: its first rows and columns are data of that
# shape.
everything <- NULL
first_of <- function(n, d) {
  if (is.null(everything) || nrow(everything) < n) {
    everything <<- NULL
    say("data: ", n, " x 295")
    everything <<- simulated(n, 295)
  }
  if (n == nrow(everything) && d == 295) {
    everything
  } else {
    everything[seq_len(n), seq_len(d), drop = FALSE]
  }
}

# A context on each GPU, before anything is timed.
for (where in intersect(wanted, c("gpu", "gpus"))) {
  invisible(time_graph(matrix(stats::rnorm(5000 * 20), 5000), 5, where))
}

# From small to large, so that a run that is cut short has most of it.
run_section <- list(
  table2 = function() {
    for (set in names(sets)) {
      x <- first_of(size(sets[[set]]), 295)
      for (where in c("gpu", "gpus")) {
        for (chunk_size in c(NA, 4096, 16384, 32768)) {
          note("2", set, x, 20, where, chunk_size)
        }
      }
      note("2", set, x, 20, "cpu")
    }
  },
  table3 = function() {
    cases <- c(10, 11, 11, 12, 15)
    names(cases) <- c(10000, 25000, 50000, 100000, 1533876)
    for (n in names(cases)) {
      for (d in c(8, 16, 20, 32, 64, 96, 295)) {
        x <- first_of(size(as.numeric(n)), d)
        for (where in c("gpu", "gpus", "cpu")) {
          note("3", "", x, cases[[n]], where)
        }
      }
    }
  },
  figure4 = function() {
    n <- size(sets[["expanded_A"]])
    for (k in c(1, 5, 10, 20, 30, 40, 50, 75, 100)) {
      x <- first_of(n, 100)
      for (where in c("gpu", "gpus")) note("4k", "expanded_A", x, k, where)
    }
    for (d in c(16, 32, 64, 100, 150, 200, 250, 295)) {
      x <- first_of(n, d)
      for (where in c("gpu", "gpus")) note("4d", "expanded_A", x, 20, where)
    }
  }
)
for (section in sections) {
  say(section)
  run_section[[section]]()
}
if (!is.null(rows)) {
  show(
    rows[setdiff(names(rows), c("gpus", "threads", "runs", "machine", "date"))],
    digits = 4
  )
}
