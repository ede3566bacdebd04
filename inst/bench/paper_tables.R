# Tables 2 and 3 and Figure 4 of Arefin et al. (2012), done again.
#
#   Rscript inst/bench/paper_tables.R [SECTION ...] [--folder=DIR]
#     [--where=gpu,gpus,cpu] [--cpu-limit=SECONDS] [--quick]
#
# with the package installed (R_LIBS says where). Sections: table2, table3,
# figure4; all where none is named. --where says what to time: one GPU, four
# GPUs (all, where there are fewer), the CPU; what is not there is left out.
# What would take the CPU longer than --cpu-limit (600 seconds) is timed for
# fewer points, multiplied by the ratio of the numbers of pairs, and marked.
# --quick takes a tenth of the points and times once, to see whether all runs.
# With --folder the rows are kept in DIR/paper.csv, in the place of earlier rows
# for the same question. README.md beside this file says what is measured.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
here <- dirname(normalizePath(script))
library(fsknn)

# --- What is asked ------------------------------------------------------------

arguments <- commandArgs(TRUE)
given <- grep("^--", arguments, value = TRUE)
value_of <- function(option, otherwise) {
  at <- grep(paste0("^--", option, "="), given, value = TRUE)
  if (length(at) == 0) otherwise else sub("^[^=]*=", "", at[[length(at)]])
}
quick <- "--quick" %in% given
folder <- value_of("folder", NULL)
cpu_limit <- as.numeric(value_of("cpu-limit", "600"))
wanted <- strsplit(value_of("where", "gpu,gpus,cpu"), ",")[[1]]
sections <- setdiff(arguments, given)
if (length(sections) == 0) {
  sections <- c("table2", "table3", "figure4")
}
stopifnot(
  "Sections are table2, table3, figure4." =
    sections %in% c("table2", "table3", "figure4"),
  "--where takes gpu, gpus, cpu." = wanted %in% c("gpu", "gpus", "cpu"),
  "DIR must be there already." = is.null(folder) || dir.exists(folder)
)

gpus <- if (knn_backends()$usable[[2]]) nrow(cuda_devices()) else 0
wanted <- setdiff(
  wanted, c(if (gpus < 1) "gpu", if (gpus < 2) "gpus")
)
many <- min(gpus, 4)
threads <- knn_plan(c(10, 3), k = 1, backend = "cpu")$num_threads

say <- function(...) message(format(Sys.time(), "%H:%M:%S "), ...)

machine <- function() {
  model <- grep("^model name", readLines("/proc/cpuinfo"), value = TRUE)
  model <- trimws(sub(".*:", "", model[1]))
  paste0(
    if (gpus > 0) paste0(gpus, " x ", cuda_devices()$name[[1]], ", "),
    model, ", ", threads, " threads"
  )
}
this_machine <- machine()
today <- format(Sys.Date())
say(this_machine)

# --- Data ---------------------------------------------------------------------

build <- tempfile("bench")
dir.create(build)
invisible(file.copy(file.path(here, "paper_data.cpp"), build))
writeLines(
  c(
    "PKG_CXXFLAGS = $(SHLIB_OPENMP_CXXFLAGS) -O3",
    "PKG_LIBS = $(SHLIB_OPENMP_CXXFLAGS)"
  ),
  file.path(build, "Makevars")
)
old <- setwd(build)
log <- suppressWarnings(system2(
  file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "paper_data.cpp"),
  stdout = TRUE, stderr = TRUE
))
if (!file.exists("paper_data.so")) {
  stop("paper_data.cpp can't be compiled:\n", paste(log, collapse = "\n"))
}
dyn.load("paper_data.so")
setwd(old)

simulated <- function(n, d) {
  say("data: ", n, " x ", d)
  .Call(
    "paper_simulate", as.integer(n), as.integer(d), 64L, as.integer(threads),
    PACKAGE = "paper_data"
  )
}

# --- One measurement ----------------------------------------------------------

# The whole R call, from a double matrix to the edge data frame. Once to warm up
# where that is short, then three times, or once where it takes long.
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
  if (times > 0) {
    runs <- lapply(seq_len(times), function(i) run())
  }
  runs <- do.call(rbind, runs)
  # The run with the median time, so that its parts belong together.
  middle <- runs[order(runs[, 1])[(nrow(runs) + 1) %/% 2], ]
  data.frame(
    seconds = middle[[1]], least = min(runs[, 1]), most = max(runs[, 1]),
    runs = nrow(runs), prepare = middle[[2]], search = middle[[3]],
    emit = middle[[4]], device = middle[[5]], extrapolated_from = NA_integer_
  )
}

# On the CPU, from fewer points where it would take too long. Each size that is
# timed tells the largest that can be afforded, until that is all or no larger.
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
    # Half the limit for what is only a step on the way.
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

rows <- list()
note <- function(table, set, x, k, where, chunk_size = NULL) {
  if (!where %in% wanted) {
    return(invisible())
  }
  found <- if (where == "cpu") {
    time_cpu(x, k)
  } else {
    time_graph(x, k, where, chunk_size)
  }
  row <- data.frame(
    table = table, set = set, n = nrow(x), d = ncol(x), k = k,
    chunk_size = as.integer(if (is.null(chunk_size)) NA else chunk_size),
    where = where,
    gpus = switch(where, gpu = 1L, gpus = as.integer(many), cpu = 0L),
    threads = threads, found, machine = this_machine, date = today
  )
  say(
    table, " ", set, " n = ", nrow(x), " d = ", ncol(x), " k = ", k, " ", where,
    if (!is.null(chunk_size)) paste0(" chunk ", chunk_size), ": ",
    format(found$seconds, digits = 4), " s",
    if (!is.na(found$extrapolated_from)) {
      paste0(" (from n = ", found$extrapolated_from, ")")
    }
  )
  rows[[length(rows) + 1]] <<- row
  keep()
}

# After each row: what was measured is not lost where a run is cut short.
keep <- function() {
  if (is.null(folder)) {
    return(invisible())
  }
  file <- file.path(folder, "paper.csv")
  new <- do.call(rbind, rows)
  question <- function(rows) {
    do.call(
      paste, rows[c("table", "n", "d", "k", "chunk_size", "where")]
    )
  }
  if (file.exists(file)) {
    old <- utils::read.csv(file, stringsAsFactors = FALSE)
    old <- old[!question(old) %in% question(new), ]
    new <- rbind(old, new[names(old)])
  }
  utils::write.csv(new, file, row.names = FALSE)
}

size <- function(n) if (quick) n %/% 10 else n

# A context on each GPU, before anything is timed.
for (where in intersect(wanted, c("gpu", "gpus"))) {
  invisible(time_graph(matrix(stats::rnorm(5000 * 20), 5000), 5, where))
}

# --- Sections -----------------------------------------------------------------

chunk_sizes <- c(4096, 16384, 32768)
sets <- c(original = 24158, expanded_A = 384126, expanded_B = 1533876)
columns <- c(8, 16, 20, 32, 64, 96, 295)
table3 <- data.frame(
  n = c(10000, 25000, 50000, 100000, 1533876), k = c(10, 11, 11, 12, 15)
)

# One large matrix serves all: its first rows and columns are data of that
# shape.
everything <- NULL
first_of <- function(n, d) {
  if (is.null(everything) || nrow(everything) < n) {
    everything <<- NULL
    everything <<- simulated(n, 295)
  }
  if (n == nrow(everything) && d == 295) {
    everything
  } else {
    everything[seq_len(n), seq_len(d), drop = FALSE]
  }
}

# From small to large, so that a run that is cut short has most of it.
for (section in sections) {
  say(section)
  if (section == "table2") {
    for (set in names(sets)) {
      x <- first_of(size(sets[[set]]), 295)
      for (where in c("gpu", "gpus")) {
        note("2", set, x, 20, where)
        for (chunk_size in chunk_sizes) {
          note("2", set, x, 20, where, chunk_size)
        }
      }
      note("2", set, x, 20, "cpu")
    }
  }
  if (section == "table3") {
    for (row in seq_len(nrow(table3))) {
      for (d in columns) {
        x <- first_of(size(table3$n[[row]]), d)
        for (where in c("gpu", "gpus", "cpu")) {
          note("3", "", x, table3$k[[row]], where)
        }
      }
    }
  }
  if (section == "figure4") {
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
}

all_rows <- do.call(rbind, rows)
if (is.null(all_rows)) {
  stop("Nothing to time here: no GPU, and --where without \"cpu\".")
}
print(
  all_rows[c(
    "table", "set", "n", "d", "k", "chunk_size", "where", "seconds", "least",
    "most", "prepare", "search", "emit", "device", "extrapolated_from"
  )],
  digits = 4, row.names = FALSE
)
