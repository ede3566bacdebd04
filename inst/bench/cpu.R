# How fast is the CPU engine, beside the least time that the work can take and
# beside other exact searches?
#
#   Rscript inst/bench/cpu.R [full | quick] [FOLDER]
#
# with the package installed (R_LIBS says where). Prints its tables last; with
# FOLDER it also writes cpu.csv, cpu-machine.csv and cpu-memory.csv there.
# README.md in this folder says what is measured and how. Nothing else should
# run on the machine meanwhile.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

# memory N D K VERB FILE: a session of its own, see measure_memory().
part <- match.arg(word(1, "full"), c("full", "quick", "memory"))
quick <- part == "quick"
folder <- if (part != "memory") check_folder(word(2))
started <- Sys.time()
machine_threads <- fsknn:::cpp_backends()$cpu$threads
threads <- min(2L, machine_threads)

# Bytes resident when the points are in place, the highest after the call, and
# those of the answer.
if (part == "memory") {
  n <- word(2, 0)
  k <- as.integer(word(4))
  verb <- getExportedValue("fsknn", word(5))
  # Loads what a first call loads.
  invisible(verb(matrix(stats::rnorm(640), 64), k = 2, backend = "cpu"))
  x <- matrix(readBin(word(6), "double", n * word(3, 0)), n)
  invisible(gc())
  # The high-water mark starts anew, at what is resident now.
  try(writeLines("5", "/proc/self/clear_refs"), silent = TRUE)
  resident <- function(field) {
    kilobytes <- first_match("/proc/self/status", paste0("^", field, ":"))
    1024 * as.numeric(gsub("[^0-9]", "", kilobytes))
  }
  before <- resident("VmRSS")
  answer <- verb(x, k = k, backend = "cpu", num_threads = threads)
  cat(before, resident("VmHWM"), unclass(utils::object.size(answer)), "\n")
  quit(status = 0)
}

openblas <- load_floor()
set_blas_threads <- function(n) call_floor("bench_blas_threads", n)

# --- Checks, before any time is printed ---------------------------------------

# A peer's neighbours against ours. Where they differ, the distances of both, in
# double, may differ by the peer's precision: a part of the squared lengths that
# its sums contain. Gives the number of such places.
count_near_ties <- function(peer, found, points, float, name) {
  index <- peer$index
  if (!identical(dim(index), dim(found$index)) || anyNA(index)) {
    stop(name, ": not the neighbours of all points.")
  }
  at <- which(index != found$index, arr.ind = TRUE)
  if (nrow(at) == 0) {
    return(0)
  }
  squares <- rowSums(points^2)
  squared_distance <- function(of) {
    rowSums((points[at[, 1], , drop = FALSE] - points[of, , drop = FALSE])^2)
  }
  unit <- squares[at[, 1]] + squares[index[at]]
  error <- abs(
    squared_distance(index[at]) - squared_distance(found$index[at])
  ) / unit
  if (any(error > if (float) 4e-6 else 1e-13)) {
    stop(sprintf("%s: neighbours differ, by up to %g.", name, max(error)))
  }
  nrow(at)
}

# Peers with the check against our answer.
checked <- function(peers, found, points) {
  lapply(peers, function(peer) {
    peer$check <- function(answer) {
      count_near_ties(answer, found, points, peer$float, peer$name)
    }
    peer
  })
}

# --- Timing -------------------------------------------------------------------

# Each task is run once and checked; then all in turn, `rounds` times. The
# package and the floor (`own`) take part in every round; a peer until it has
# had `least` runs and `enough` seconds. Where no runs are required, a first run
# of that length counts and stays the only one. Gives the tasks with `seconds`,
# or `missing`.
run_interleaved <- function(tasks, rounds, enough = 3,
                            least = if (quick) 0 else 3) {
  end <- clock() + 0.3
  while (clock() < end) call_floor("bench_vector_rate", machine_threads, FALSE)
  tasks <- lapply(tasks, function(task) {
    if (!is.null(task$missing)) {
      return(task)
    }
    if (!is.null(task$prepare)) task$prepare()
    pause()
    first <- task$run()
    if (!is.null(task$check)) task$agreement <- task$check(first)
    if (!is.null(task$note)) task$words <- task$note()
    task$rounds <- rounds
    if (!isTRUE(task$own)) {
      task$rounds <- min(
        rounds, task$rounds_at_most, max(least, floor(enough / first$seconds))
      )
    }
    task$seconds <- if (task$rounds == 0) first$seconds else numeric()
    task
  })
  for (round in seq_len(rounds)) {
    for (at in seq_along(tasks)) {
      task <- tasks[[at]]
      if (is.null(task$missing) && round <= task$rounds) {
        pause()
        tasks[[at]]$seconds <- c(task$seconds, task$run()$seconds)
      }
    }
  }
  for (task in tasks) if (!is.null(task$done)) task$done()
  tasks
}

tile_rows <- c(1024L, 2048L, 4096L)

# At the largest sizes one tile in eight is computed, twice, and scaled to all.
floor_tasks <- function(points) {
  large <- nrow(points) > 50000
  stride <- if (large) 8L else 1L
  call_floor("bench_floor_load", points, max(tile_rows))
  set_blas_threads(threads)
  lapply(tile_rows, function(rows) {
    list(
      name = paste("floor", rows), own = TRUE,
      run = function() {
        pass <- function(again) call_floor("bench_floor_pass", rows, stride)
        list(seconds = min(vapply(seq_len(1 + large), pass, 0)) / 2)
      }
    )
  })
}

own_task <- function(name, search, check = NULL) {
  list(
    name = name, own = TRUE, check = check,
    run = function() {
      start <- clock()
      found <- search()
      c(list(seconds = clock() - start), unclass(found))
    }
  )
}

search_task <- function(name, x, k, metric = "pearson", sign = "signed",
                        num_threads = threads, form = "auto", expected = NULL) {
  own_task(name, function() {
    old <- options(fsknn.instruction_set = form)
    on.exit(options(old))
    knn_search(
      x, k = k, metric = metric, sign = sign, backend = "cpu",
      num_threads = num_threads
    )
  }, function(found) {
    check_against_core(x, found, k, metric, sign)
    parts <- c("index", "distance")
    stopifnot(is.null(expected) || identical(found[parts], expected[parts]))
    NULL
  })
}

# --- The result ---------------------------------------------------------------

new_rows <- function(tasks, table, n, d, k, metric, threads, unit) {
  do.call(rbind, lapply(tasks, function(task) {
    seconds <- c(task$seconds, if (length(task$seconds) == 0) NA)
    data.frame(
      table = table, n = n, d = d, k = k, metric = metric,
      threads = c(task$threads, threads)[[1]], who = task$name,
      runs = length(task$seconds), median = stats::median(seconds),
      lowest = min(seconds), highest = max(seconds), unit = unit,
      ratio = stats::median(seconds) / unit,
      near_ties = c(task$agreement, NA)[[1]],
      note = paste(c(task$what, task$words, task$missing), collapse = "; ")
    )
  }))
}

# The rows of all tasks, first the floor: the best of all passes of all tile
# heights, which is the unit of the ratios.
rows_with_floor <- function(tasks, table, n, d, k, metric) {
  is_floor <- startsWith(vapply(tasks, `[[`, "", "name"), "floor ")
  passes <- lapply(tasks[is_floor], `[[`, "seconds")
  best <- min(unlist(passes))
  height <- tile_rows[[which.min(vapply(passes, min, 0))]]
  floor <- list(name = "floor", seconds = best, what = sprintf(
    "half of sgemm, tiles of %d rows, %.0f GFLOP/s", height,
    1e-9 * n^2 * d / best
  ))
  call_floor("bench_floor_unload")
  rows <- new_rows(
    c(list(floor), tasks[!is_floor]), table, n, d, k, metric, threads, best
  )
  rows$runs[[1]] <- length(unlist(passes))
  rows
}

# --- Tables -------------------------------------------------------------------

source(bench_file("peers.R"))
faiss_missing <- compile(
  "faiss_peer.cpp", "-lfaiss $(LAPACK_LIBS) $(BLAS_LIBS)", needed = FALSE
)
missing_peers <- list(
  faiss = if (!is.null(faiss_missing)) {
    "not run: no C++ library of FAISS (Debian: libfaiss-dev)"
  },
  sklearn = if (is.null(sklearn_version())) {
    "not run: no scikit-learn (Debian: python3-sklearn)"
  }
)

# Seconds of each peer at the last size, which foretell those at the next.
last_seconds <- new.env()
remember_seconds <- function(tasks, n) {
  for (task in tasks) {
    if (length(task$seconds) > 0) {
      last_seconds[[task$name]] <-
        list(n = n, seconds = stats::median(task$seconds))
    }
  }
}

# Seconds of the packages at 1,000 points, before they are run on more.
try_small <- function(x, k) {
  small <- x[seq_len(1000), , drop = FALSE]
  packages <- Filter(
    function(peer) is.null(peer$missing) && isTRUE(peer$try_small),
    peers_of_graph(small, k, threads, TRUE, missing_peers)
  )
  remember_seconds(lapply(packages, function(peer) {
    peer$run() # loads the package
    c(peer, list(seconds = peer$run()$seconds))
  }), 1000)
}

# Leaves out what would take longer than `limit`.
skip_slow <- function(tasks, n, limit) {
  lapply(tasks, function(task) {
    last <- last_seconds[[task$name]]
    if (is.null(task$missing) && !is.null(last)) {
      expected <- last$seconds * (n / last$n)^2
      if (expected > limit) {
        task$missing <- sprintf(
          "not run: %.1f s at n = %s let expect %.0f s", last$seconds,
          format(last$n, big.mark = ","), expected
        )
      }
    }
    task
  })
}

# Pearson graphs of wide data: the package, the peers and the floor.
measure_graph <- function(n, d, k, rounds, limit, first_size = FALSE) {
  say("graph, n = ", n)
  x <- simulate_expression(n, d)
  points <- unit_rows(x)
  found <- unclass(
    knn_search(x, k = k, backend = "cpu", num_threads = threads)
  )
  # Whole numbers of so many bits, whatever a sample of the data says.
  in_bits <- function(bits) {
    search_task(
      paste("knn_search(),", bits, "bits"), x, k, form = paste0("auto/", bits),
      expected = found
    )
  }
  own <- list(
    search_task("knn_search()", x, k),
    in_bits(8), in_bits(16),
    own_task("knn_graph()", function() {
      knn_graph(x, k = k, backend = "cpu", num_threads = threads)
    }, function(edges) {
      stopifnot(
        identical(edges$to, as.vector(t(found$index))),
        identical(edges$distance, as.vector(t(found$distance)))
      )
      NULL
    })
  )
  if (first_size) try_small(x, k)
  peers <- skip_slow(
    peers_of_graph(x, k, threads, first_size, missing_peers), n, limit
  )
  tasks <- run_interleaved(
    c(floor_tasks(points), own, checked(peers, found, points)), rounds
  )
  remember_seconds(tasks, n)
  rows_with_floor(tasks, "graph", n, d, k, "pearson")
}

# Graphs of narrow data, where selection is most of the work.
measure_low_d <- function(n, d, k, rounds, metric, num_threads) {
  say("low d, ", metric, ", ", num_threads, " thread(s)")
  x <- simulate_expression(n, d)
  points <- if (metric == "pearson") unit_rows(x) else x
  own <- search_task("knn_search()", x, k, metric, num_threads = num_threads)
  peers <- peers_of_low_d(
    points, k, metric == "pearson", num_threads, missing_peers
  )
  tasks <- run_interleaved(
    c(list(own), checked(peers, own$run(), points)), rounds
  )
  new_rows(
    tasks, "low d", n, d, k, metric, num_threads,
    stats::median(tasks[[1]]$seconds)
  )
}

measure_all_low_d <- function(n, d, k, rounds, metrics) {
  cases <- expand.grid(
    threads = unique(c(1L, threads)), metric = metrics, stringsAsFactors = FALSE
  )
  do.call(rbind, Map(function(metric, num_threads) {
    measure_low_d(n, d, k, rounds, metric, num_threads)
  }, cases$metric, cases$threads))
}

# Elementwise distances against the rate of their vector instructions.
measure_elementwise <- function(n, d, k, rounds) {
  say("elementwise distances")
  x <- simulate_expression(n, d)
  own <- list(
    search_task("knn_search()", x, k, "manhattan"),
    # Intensities rather than log ratios: no negative values.
    search_task("knn_search()", 2^x, k, "proportional")
  )
  limits <- lapply(c(FALSE, TRUE), function(three) {
    list(
      name = if (three) "limit, 3 instructions" else "limit, 2 instructions",
      own = TRUE,
      what = paste(
        call_floor("bench_vector_name"),
        if (three) "subtract, clear the sign, add" else "minimum, add"
      ),
      run = function() {
        elements <- n * (n - 1) / 2 * d
        list(
          seconds = elements / call_floor("bench_vector_rate", threads, three)
        )
      }
    )
  })
  tasks <- run_interleaved(c(limits, own), rounds)
  rows <- new_rows(
    tasks, "elementwise", n, d, k, "", threads, min(tasks[[1]]$seconds)
  )
  rows$metric <- c("", "", "manhattan", "proportional")
  rows
}

# The package alone: other metrics, signs and k.
measure_variants <- function(n, d, rounds) {
  say("other metrics and k")
  x <- simulate_expression(n, d)
  cases <- rbind(
    data.frame(
      metric = "pearson", sign = "signed", k = c(1L, 20L, 128L, 1024L)
    ),
    data.frame(metric = "pearson", sign = c("absolute", "negative"), k = 20L),
    data.frame(
      metric = c(
        "spearman", "cosine", "euclidean", "manhattan", "chebyshev",
        "proportional"
      ),
      sign = "signed", k = 20L
    )
  )
  own <- Map(function(metric, sign, k) {
    values <- if (metric == "proportional") 2^x else x
    search_task("knn_search()", values, k, metric, sign)
  }, cases$metric, cases$sign, cases$k)
  tasks <- run_interleaved(c(floor_tasks(unit_rows(x)), unname(own)), rounds)
  rows <- rows_with_floor(tasks, "variants", n, d, 20L, "pearson")
  rows$k[-1] <- cases$k
  rows$metric[-1] <- cases$metric
  rows$note[-1] <- ifelse(cases$sign == "signed", "", cases$sign)
  rows
}

# Each call in a session of its own: memory that one call gave back would hide
# what the next takes. In MB (10^6 bytes).
measure_memory <- function(n, d, k) {
  say("memory")
  file <- tempfile()
  on.exit(unlink(file))
  writeBin(as.vector(simulate_expression(n, d)), file)
  do.call(rbind, lapply(c("knn_search", "knn_graph"), function(verb) {
    printed <- system2(
      rscript, shQuote(c("--vanilla", script, "memory", n, d, k, verb, file)),
      stdout = TRUE
    )
    bytes <- scan(text = utils::tail(printed, 1), quiet = TRUE)
    data.frame(
      verb = paste0(verb, "()"), n = n, d = d, k = k, threads = threads,
      input_mb = 8e-6 * n * d, output_mb = bytes[[3]] / 1e6,
      peak_above_start_mb = (bytes[[2]] - bytes[[1]]) / 1e6,
      besides_output_mb = (bytes[[2]] - bytes[[1]] - bytes[[3]]) / 1e6
    )
  }))
}

# --- The machine --------------------------------------------------------------

cache_size <- function(level) {
  folders <- Sys.glob("/sys/devices/system/cpu/cpu0/cache/index*")
  read <- function(name) {
    vapply(file.path(folders, name), readLines, "", n = 1L)
  }
  if (length(folders) == 0) {
    return(NA)
  }
  size <- read("size")[read("level") == level & read("type") != "Instruction"]
  kilobytes <- as.numeric(sub("K$", "", size[1]))
  if (isTRUE(kilobytes >= 1024)) {
    sprintf("%g MB", kilobytes / 1024)
  } else {
    sprintf("%g kB", kilobytes)
  }
}

compiler_version <- function() {
  command <- system2(
    file.path(R.home("bin"), "R"), c("CMD", "config", "CXX17"), stdout = TRUE
  )
  # The command may begin with a launcher, such as a compiler cache.
  command <- strsplit(command, " ")[[1]]
  system2(command[[1]], c(command[-1], "--version"), stdout = TRUE)[[1]]
}

describe_machine <- function(load) {
  cpu <- "/proc/cpuinfo"
  memory <- gsub("[^0-9]", "", first_match("/proc/meminfo", "^MemTotal"))
  facts <- c(
    date = format(started, "%Y-%m-%d"),
    cpu = sprintf(
      "%s, family %s, model %s", cpu_name(), first_match(cpu, "^cpu family"),
      first_match(cpu, "^model\\s*:")
    ),
    cores = machine_threads,
    caches = sprintf(
      "L1d %s, L2 %s a core, L3 %s", cache_size(1), cache_size(2), cache_size(3)
    ),
    memory = sprintf("%.0f GB", as.numeric(memory) * 1024 / 1e9),
    "instruction set" =
      utils::tail(fsknn:::cpp_backends()$cpu$instruction_sets, 1),
    system = gsub("\"", "", first_match("/etc/os-release", "^PRETTY_NAME")),
    R = as.character(getRversion()),
    fsknn = version_of("fsknn"),
    compiler = compiler_version(),
    OpenBLAS = sprintf(
      "%s, core %s", sub("^OpenBLAS ([0-9.]+).*", "\\1", openblas[[2]]),
      openblas[[1]]
    ),
    "load at the start" = load,
    FAISS = if (is.null(missing_peers$faiss)) faiss_version() else "-",
    "scikit-learn" =
      if (is.null(missing_peers$sklearn)) sklearn_version() else "-"
  )
  packages <- c("BiocNeighbors", "FNN", "RANN")
  facts <- c(facts, vapply(packages, version_of, ""))
  data.frame(what = names(facts), value = unname(facts))
}

# --- Run ----------------------------------------------------------------------

load <- machine_load()
if (isTRUE(load > 0.5)) {
  say("WARNING: other programs run here (load ", load, "): don't store this.")
}
machine <- describe_machine(load)
writeLines(sprintf("%-18s %s", machine$what, machine$value))

d <- 295L
k <- 20L
times <- if (quick) {
  rbind(
    measure_graph(2000L, d, k, 7, 4, TRUE),
    measure_graph(10000L, d, k, 3, 8),
    measure_all_low_d(10000L, 8L, k, 3, "pearson"),
    measure_elementwise(5000L, d, k, 3)
  )
} else {
  rbind(
    measure_graph(5000L, d, k, 11, 15, TRUE),
    measure_graph(10000L, d, k, 9, 15),
    measure_graph(24158L, d, k, 5, 15),
    measure_graph(100000L, d, k, 3, 30),
    measure_all_low_d(10000L, 8L, k, 7, c("pearson", "euclidean")),
    measure_elementwise(10000L, d, k, 7),
    measure_variants(10000L, d, 5)
  )
}
memory <- measure_memory(24158L, d, k)

# --- Print and store ----------------------------------------------------------

titles <- c(
  graph = "Pearson graphs: seconds, and their ratio to the floor",
  "low d" = "Low d: seconds, and their ratio to knn_search()",
  elementwise = paste(
    "Elementwise distances: seconds, and their ratio to two vector",
    "instructions an element"
  ),
  variants = "Other metrics and k: seconds, and their ratio to the floor"
)
rounded <- c("median", "lowest", "highest", "unit", "ratio")
times[rounded] <- lapply(times[rounded], signif, digits = 4)
megabytes <- endsWith(names(memory), "_mb")
memory[megabytes] <- lapply(memory[megabytes], round, digits = 1)
options(width = 200)
for (table in unique(times$table)) {
  cat("\n", titles[[table]], "\n", sep = "")
  columns <- setdiff(names(times), c("table", "unit"))
  show(times[times$table == table, columns], right = FALSE)
}
cat("\nMemory, in MB, above what is resident when the data are in place\n")
show(memory)
store_table(folder, "cpu.csv", times)
store_table(folder, "cpu-machine.csv", machine)
store_table(folder, "cpu-memory.csv", memory)
say(sprintf(
  "done in %.1f minutes", as.double(Sys.time() - started, units = "mins")
))
