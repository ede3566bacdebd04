# How fast is the CPU engine, against the least that the work can take and
# against the other exact searches there are?
#
#   Rscript inst/bench/cpu.R [full | quick] [FOLDER]
#
# from the repository's root, with the package installed (R_LIBS says where).
# Prints its tables last; with FOLDER it also writes cpu.csv and
# cpu-machine.csv there. README.md beside this file says what is measured and
# how. Nothing else should run on the machine meanwhile.

# --- A process without settings that slow OpenBLAS ----------------------------

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
bench_file <- function(name) file.path(dirname(normalizePath(script)), name)
rscript <- file.path(R.home("bin"), "Rscript")

# OPENBLAS_CORETYPE and others are read when OpenBLAS loads, that is before any
# line here, and can halve its speed.
blas_settings <- function() {
  grep(
    "^(OPENBLAS|GOTO|OMP|GOMP|KMP|MKL|BLIS)_", names(Sys.getenv()),
    value = TRUE
  )
}

if (!"--anew" %in% commandArgs(TRUE)) {
  found <- blas_settings()
  Sys.unsetenv(found)
  Sys.setenv(
    R_LIBS = paste(.libPaths(), collapse = ":"),
    FSKNN_BENCH_REMOVED = paste(found, collapse = " ")
  )
  quit(status = system2(
    rscript,
    c("--vanilla", shQuote(script), shQuote(commandArgs(TRUE)), "--anew")
  ))
}
stopifnot(all(blas_settings() == "OPENBLAS_CORETYPE"))  # see openblas.R

arguments <- setdiff(commandArgs(TRUE), "--anew")
quick <- FALSE
if (length(arguments) > 0) {
  quick <- switch(
    arguments[[1]], quick = TRUE, full = FALSE,
    stop("The first argument must be \"full\" or \"quick\".")
  )
}
folder <- if (length(arguments) > 1) arguments[[2]]
if (!is.null(folder)) {
  stopifnot("FOLDER must be there already." = dir.exists(folder))
}
started <- Sys.time()
library(fsknn)

# --- Compiled parts -----------------------------------------------------------

# Compiles and loads one file; gives the compiler's last words where that fails,
# else NULL.
compile <- function(file, libraries = "") {
  build <- tempfile("bench")
  dir.create(build)
  file.copy(bench_file(file), build)
  writeLines(
    c(
      "PKG_CXXFLAGS = $(SHLIB_OPENMP_CXXFLAGS)",
      paste("PKG_LIBS =", libraries, "$(SHLIB_OPENMP_CXXFLAGS) -ldl")
    ),
    file.path(build, "Makevars")
  )
  old <- setwd(build)
  on.exit(setwd(old))
  log <- suppressWarnings(system2(
    file.path(R.home("bin"), "R"), c("CMD", "SHLIB", file),
    stdout = TRUE, stderr = TRUE
  ))
  object <- sub("cpp$", "so", file)
  if (!file.exists(object)) {
    return(paste(utils::tail(log, 5), collapse = "\n"))
  }
  dyn.load(object)
  NULL
}

failed <- compile("floor.cpp")
if (!is.null(failed)) {
  stop("floor.cpp can't be compiled:\n", failed)
}
call_floor <- function(name, ...) .Call(name, ..., PACKAGE = "floor")
clock <- function() call_floor("bench_clock")
set_blas_threads <- function(n) call_floor("bench_blas_threads", n)

openblas <- call_floor("bench_openblas")
blas_file <- extSoftVersion()[["BLAS"]]
if (is.null(openblas) || !grepl("openblas", blas_file, ignore.case = TRUE)) {
  stop(
    "R's BLAS is not OpenBLAS, so there is no floor to measure against ",
    "(Debian: libopenblas0-pthread)."
  )
}

source(bench_file("openblas.R"))
start_as_skylakex(
  openblas[[1]], script, commandArgs(TRUE), options = "--vanilla"
)

machine_threads <- fsknn:::cpp_backends()$cpu$threads
threads <- min(2L, machine_threads)

# --- The simulator ------------------------------------------------------------

# Expression as sums of 200 latent factors, each gene with loadings and each
# sample with scores of its own from N(0, 1), divided by sqrt(200) so that what
# they explain has variance 1, and noise from N(0, 1/4). There are no clusters:
# distances crowd, which is hard on every way to reject pairs early.
simulate_expression <- function(n, d, num_factors = 200, seed = 1) {
  set.seed(
    seed, kind = "Mersenne-Twister", normal.kind = "Inversion",
    sample.kind = "Rejection"
  )
  loadings <- matrix(stats::rnorm(n * num_factors), n)
  scores <- matrix(stats::rnorm(num_factors * d), num_factors)
  noise <- matrix(stats::rnorm(n * d, sd = 0.5), n)
  loadings %*% scores / sqrt(num_factors) + noise
}

# --- Checks, before any time is printed ----------------------------------------

# Sampled rows must have the very bits of the core's brute force.
check_against_core <- function(x, found, k, metric, sign = "signed") {
  rows <- unique(round(seq(1, nrow(x), length.out = 24)))
  # As the package makes it, so that what a request holds is known there alone.
  request <- fsknn:::new_request(k + 1L, fsknn:::check_options(list(
    metric = metric, sign = sign, backend = "cpu", num_threads = 1
  )))
  expected <- fsknn:::cpp_brute_force(x, x[rows, , drop = FALSE], request)
  for (at in seq_along(rows)) {
    others <- which(expected$index[at, ] != rows[[at]])[seq_len(k)]
    same <- identical(
      list(found$index[rows[[at]], ], found$distance[rows[[at]], ]),
      list(expected$index[at, others], expected$distance[at, others])
    )
    if (!same) {
      stop(sprintf("%s: row %d is not that of brute force.", metric, rows[[at]]))
    }
  }
}

# A timed search, whose seconds are with its neighbours, against another.
same_neighbours <- function(timed, found) {
  identical(timed$index, found$index) &&
    identical(timed$distance, found$distance)
}

# A peer's neighbours against ours. Where they differ, both distances, in
# double, must be as near as the peer's precision can tell: in units of the
# squared lengths that its sums have in them. Gives the number of such places.
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
  apart <- abs(squared_distance(index[at]) - squared_distance(found$index[at]))
  allowed <- if (float) 4e-6 else 1e-13
  unit <- squares[at[, 1]] + squares[index[at]]
  if (any(apart > allowed * unit)) {
    stop(sprintf(
      "%s: %d neighbours are others, by up to %g.", name,
      sum(apart > allowed * unit), max(apart / unit)
    ))
  }
  nrow(at)
}

# --- Timing ---------------------------------------------------------------------

pause <- function() {
  # What a run leaves behind is collected now, and threads that still wait for
  # work in a loop (OpenBLAS's do so for some 30 ms) go to sleep.
  gc()
  Sys.sleep(0.06)
}

warm_up <- function() {
  end <- clock() + 0.3
  while (clock() < end) call_floor("bench_vector_rate", machine_threads, FALSE)
}

# Each task is run once first and checked; then all in turn, `rounds` times. The
# package and the floor (`own`) are there in every round; a peer until it has had
# `least` runs and some `enough` seconds, and if its first run took that long where
# none need be, that one counts and is the only one. Gives a list of the tasks with
# `seconds`, or `missing`.
run_interleaved <- function(tasks, rounds, enough = 3,
                            least = if (quick) 0 else 3) {
  warm_up()
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
        seconds <- task$run()$seconds
        tasks[[at]]$seconds <- c(task$seconds, seconds)
      }
    }
  }
  for (task in tasks) if (!is.null(task$done)) task$done()
  tasks
}

tile_rows <- c(1024L, 2048L, 4096L)

# At the largest sizes one tile in eight is done, twice, and scaled to all.
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

is_floor <- function(task) startsWith(task$name, "floor ")

# The best of all passes of all tile heights.
best_floor <- function(tasks) {
  all <- lapply(Filter(is_floor, tasks), `[[`, "seconds")
  list(seconds = min(unlist(all)), rows = tile_rows[[which.min(vapply(all, min, 0))]])
}

own_task <- function(name, search, check = NULL) {
  list(
    name = name, own = TRUE, float = FALSE, threads = NA, check = check,
    run = function() {
      start <- clock()
      found <- search()
      c(list(seconds = clock() - start), unclass(found))
    }
  )
}

# --- The result -----------------------------------------------------------------

new_rows <- function(tasks, table, n, d, k, metric, threads, unit) {
  one <- function(task) {
    seconds <- task$seconds
    has <- length(seconds) > 0
    data.frame(
      table = table, n = n, d = d, k = k, metric = metric,
      threads = task$threads %|NA|% threads, who = task$name,
      runs = length(seconds),
      median = if (has) stats::median(seconds) else NA,
      lowest = if (has) min(seconds) else NA,
      highest = if (has) max(seconds) else NA,
      unit = unit,
      ratio = if (has) stats::median(seconds) / unit else NA,
      near_ties = task$agreement %|NA|% NA,
      note = paste(
        c(task$what, task$words, task$missing), collapse = "; "
      )
    )
  }
  do.call(rbind, lapply(tasks, one))
}

`%|NA|%` <- function(a, b) if (is.null(a) || is.na(a)) b else a

floor_row <- function(tasks, table, n, d, k, metric, threads) {
  floor <- best_floor(tasks)
  row <- new_rows(
    list(list(
      name = "floor", seconds = floor$seconds,
      what = sprintf(
        "half of sgemm, tiles of %d rows, %.0f GFLOP/s",
        floor$rows, 1e-9 * n^2 * d / floor$seconds
      )
    )),
    table, n, d, k, metric, threads, floor$seconds
  )
  row$runs <- sum(lengths(lapply(Filter(is_floor, tasks), `[[`, "seconds")))
  row
}

say <- function(...) message(format(Sys.time(), "%H:%M:%S "), ...)

# --- Tables ---------------------------------------------------------------------

source(bench_file("peers.R"))
faiss_missing <- compile("faiss_peer.cpp", "-lfaiss $(LAPACK_LIBS) $(BLAS_LIBS)")
missing_peers <- list(
  faiss = if (!is.null(faiss_missing)) {
    "not run: no C++ library of FAISS (Debian: libfaiss-dev)"
  },
  sklearn = if (is.null(sklearn_version())) {
    "not run: no scikit-learn (Debian: python3-sklearn)"
  }
)

# Seconds of each peer at the last size, to foretell those at the next.
last_seconds <- new.env()

# What the packages take at 1,000 points, before they are let loose on more.
try_small <- function(x, k) {
  points <- 1000L
  small <- x[seq_len(points), , drop = FALSE]
  packages <- Filter(
    function(peer) is.null(peer$missing) && isTRUE(peer$try_small),
    peers_of_graph(small, k, threads, TRUE, missing_peers)
  )
  remember_seconds(
    lapply(packages, function(peer) {
      peer$run() # loads the package
      c(peer, list(seconds = peer$run()$seconds))
    }),
    points
  )
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

remember_seconds <- function(tasks, n) {
  for (task in tasks) {
    if (length(task$seconds) > 0) {
      last_seconds[[task$name]] <- list(n = n, seconds = stats::median(task$seconds))
    }
  }
}

# Pearson graphs of wide data: the package, the peers and the floor.
measure_graph <- function(n, d, k, rounds, limit, first_size) {
  say("graph, n = ", n)
  x <- simulate_expression(n, d)
  points <- unit_rows(x)
  found <- knn_search(x, k = k, backend = "cpu", num_threads = threads)
  check_against_core(x, found, k, "pearson")

  # Whole numbers of so many bits, whatever a sample of the data says.
  in_bits <- function(bits) {
    own_task(paste("knn_search(),", bits, "bits"), function() {
      old <- options(fsknn.instruction_set = paste0("auto/", bits))
      on.exit(options(old))
      knn_search(x, k = k, backend = "cpu", num_threads = threads)
    }, function(again) {
      stopifnot(same_neighbours(again, found))
      NULL
    })
  }
  own <- list(
    own_task("knn_search()", function() {
      knn_search(x, k = k, backend = "cpu", num_threads = threads)
    }, function(again) {
      stopifnot(same_neighbours(again, found))
      NULL
    }),
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
  peers <- lapply(peers, function(peer) {
    peer$check <- function(answer) {
      count_near_ties(answer, found, points, peer$float, peer$name)
    }
    peer
  })
  tasks <- run_interleaved(c(floor_tasks(points), own, peers), rounds)
  floor <- best_floor(tasks)
  remember_seconds(tasks, n)
  call_floor("bench_floor_unload")
  rbind(
    floor_row(tasks, "graph", n, d, k, "pearson", threads),
    new_rows(
      Filter(Negate(is_floor), tasks), "graph", n, d, k, "pearson", threads,
      floor$seconds
    )
  )
}

# Graphs of narrow data, where selection is most of the work.
measure_low_d <- function(n, d, k, rounds, metric, num_threads) {
  say("low d, ", metric, ", ", num_threads, " thread(s)")
  x <- simulate_expression(n, d)
  points <- if (metric == "pearson") unit_rows(x) else x
  search <- function() {
    knn_search(
      x, k = k, metric = metric, backend = "cpu", num_threads = num_threads
    )
  }
  found <- search()
  check_against_core(x, found, k, metric)
  peers <- lapply(
    peers_of_low_d(points, k, metric == "pearson", num_threads, missing_peers),
    function(peer) {
      peer$check <- function(answer) {
        count_near_ties(answer, found, points, peer$float, peer$name)
      }
      peer
    }
  )
  own <- own_task("knn_search()", search)
  tasks <- run_interleaved(c(list(own), peers), rounds)
  new_rows(
    tasks, "low d", n, d, k, metric, num_threads,
    stats::median(tasks[[1]]$seconds)
  )
}

measure_all_low_d <- function(n, d, k, rounds, metrics) {
  cases <- expand.grid(
    threads = unique(c(1L, threads)), metric = metrics, stringsAsFactors = FALSE
  )
  do.call(rbind, lapply(seq_len(nrow(cases)), function(at) {
    measure_low_d(n, d, k, rounds, cases$metric[[at]], cases$threads[[at]])
  }))
}

# Elementwise distances against the rate of their vector instructions.
measure_elementwise <- function(n, d, k, rounds) {
  say("elementwise distances")
  x <- simulate_expression(n, d)
  # Intensities rather than log ratios: no negative values.
  data <- list(manhattan = x, proportional = 2^x)
  elements <- n * (n - 1) / 2 * d
  own <- lapply(names(data), function(metric) {
    values <- data[[metric]]
    own_task(metric, function() {
      knn_search(
        values, k = k, metric = metric, backend = "cpu", num_threads = threads
      )
    }, function(found) {
      check_against_core(values, found, k, metric)
      NULL
    })
  })
  limits <- lapply(c(two = FALSE, three = TRUE), function(three) {
    list(
      name = if (three) "limit, 3 instructions" else "limit, 2 instructions",
      own = TRUE, threads = threads,
      what = paste(
        call_floor("bench_vector_name"),
        if (three) "subtract, clear the sign, add" else "minimum, add"
      ),
      run = function() {
        list(
          seconds = elements / call_floor("bench_vector_rate", threads, three)
        )
      }
    )
  })
  tasks <- run_interleaved(c(limits, own), rounds)
  unit <- min(tasks[[1]]$seconds)
  rows <- new_rows(tasks, "elementwise", n, d, k, "", threads, unit)
  own <- rows$who %in% names(data)
  rows$metric[own] <- rows$who[own]
  rows$who[own] <- "knn_search()"
  rows
}

# The package alone: other metrics, signs and k.
measure_variants <- function(n, d, rounds) {
  say("other metrics and k")
  x <- simulate_expression(n, d)
  cases <- rbind(
    data.frame(metric = "pearson", sign = "signed", k = c(1L, 20L, 128L, 1024L)),
    data.frame(metric = "pearson", sign = c("absolute", "negative"), k = 20L),
    data.frame(
      metric = c(
        "spearman", "cosine", "euclidean", "manhattan", "chebyshev",
        "proportional"
      ),
      sign = "signed", k = 20L
    )
  )
  own <- lapply(seq_len(nrow(cases)), function(at) {
    case <- cases[at, ]
    values <- if (case$metric == "proportional") 2^x else x
    own_task(sprintf("case %d", at), function() {
      knn_search(
        values, k = case$k, metric = case$metric, sign = case$sign,
        backend = "cpu", num_threads = threads
      )
    }, function(found) {
      check_against_core(values, found, case$k, case$metric, case$sign)
      NULL
    })
  })
  tasks <- run_interleaved(c(floor_tasks(unit_rows(x)), own), rounds)
  floor <- best_floor(tasks)
  call_floor("bench_floor_unload")
  rows <- new_rows(
    Filter(Negate(is_floor), tasks), "variants", n, d, cases$k, "", threads,
    floor$seconds
  )
  rows <- rows[!duplicated(rows$who), ]
  rows$k <- cases$k
  rows$metric <- cases$metric
  rows$who <- "knn_search()"
  rows$note <- ifelse(cases$sign == "signed", "", cases$sign)
  rbind(floor_row(tasks, "variants", n, d, 20L, "pearson", threads), rows)
}

# Each call in a process of its own: memory that one call gave back would hide
# what the next takes. In MB (10^6 bytes).
measure_memory <- function(n, d, k) {
  say("memory")
  file <- tempfile()
  on.exit(unlink(file))
  writeBin(as.vector(simulate_expression(n, d)), file)
  do.call(rbind, lapply(c("knn_search", "knn_graph"), function(verb) {
    printed <- system2(
      rscript,
      c("--vanilla", shQuote(bench_file("memory.R")), file, n, d, k, threads, verb),
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

# --- The machine, without its name ------------------------------------------------

first_match <- function(file, pattern) {
  lines <- grep(pattern, tryCatch(readLines(file), error = function(e) ""), value = TRUE)
  trimws(sub("^[^:=]*[:=]", "", lines[1]))
}

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

version_of <- function(package) {
  if (requireNamespace(package, quietly = TRUE)) {
    as.character(utils::packageVersion(package))
  } else {
    "-"
  }
}

compiler_version <- function() {
  command <- system2(
    file.path(R.home("bin"), "R"), c("CMD", "config", "CXX17"), stdout = TRUE
  )
  # The command may begin with a launcher, such as a compiler cache.
  command <- strsplit(command, " ")[[1]]
  words <- system2(command[[1]], c(command[-1], "--version"), stdout = TRUE)
  words[[1]]
}

describe_machine <- function(load) {
  cpu <- "/proc/cpuinfo"
  memory <- as.numeric(gsub("[^0-9]", "", first_match("/proc/meminfo", "^MemTotal")))
  facts <- c(
    date = format(started, "%Y-%m-%d"),
    cpu = sprintf(
      "%s, family %s, model %s", first_match(cpu, "^model name"),
      first_match(cpu, "^cpu family"), first_match(cpu, "^model\\s")
    ),
    cores = machine_threads,
    caches = sprintf(
      "L1d %s, L2 %s a core, L3 %s", cache_size(1), cache_size(2), cache_size(3)
    ),
    memory = sprintf("%.0f GB", memory * 1024 / 1e9),
    "instruction set" = utils::tail(fsknn:::cpp_backends()$cpu$instruction_sets, 1),
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
    "scikit-learn" = if (is.null(missing_peers$sklearn)) sklearn_version() else "-"
  )
  packages <- c("BiocNeighbors", "FNN", "RANN")
  facts <- c(facts, vapply(packages, version_of, ""))
  data.frame(what = names(facts), value = unname(facts))
}

# --- Run ------------------------------------------------------------------------

load <- tryCatch(
  strsplit(readLines("/proc/loadavg"), " ")[[1]][[1]],
  error = function(e) NA
)
if (!is.na(load) && as.numeric(load) > 0.5) {
  say("WARNING: other programs run here (load ", load, "): don't store this run.")
}
removed <- Sys.getenv("FSKNN_BENCH_REMOVED")
if (nzchar(removed)) say("Started anew without ", removed, ".")
machine <- describe_machine(load)
writeLines(sprintf("%-18s %s", machine$what, machine$value))

d <- 295L
k <- 20L
if (quick) {
  times <- rbind(
    measure_graph(2000L, d, k, 7, 4, TRUE),
    measure_graph(10000L, d, k, 3, 8, FALSE),
    measure_all_low_d(10000L, 8L, k, 3, "pearson"),
    measure_elementwise(5000L, d, k, 3)
  )
} else {
  times <- rbind(
    measure_graph(5000L, d, k, 11, 15, TRUE),
    measure_graph(10000L, d, k, 9, 15, FALSE),
    measure_graph(24158L, d, k, 5, 15, FALSE),
    measure_graph(100000L, d, k, 3, 30, FALSE),
    measure_all_low_d(10000L, 8L, k, 7, c("pearson", "euclidean")),
    measure_elementwise(10000L, d, k, 7),
    measure_variants(10000L, d, 5)
  )
}
memory <- measure_memory(24158L, d, k)

# --- Print and store --------------------------------------------------------------

show_times <- function(rows) {
  number <- function(x, digits) {
    ifelse(is.na(x), "-", formatC(x, digits = digits, format = "f"))
  }
  print(
    data.frame(
      n = rows$n, k = rows$k, metric = rows$metric, threads = rows$threads,
      who = rows$who, runs = rows$runs,
      median = number(rows$median, 4), lowest = number(rows$lowest, 4),
      highest = number(rows$highest, 4), ratio = number(rows$ratio, 2),
      near_ties = ifelse(is.na(rows$near_ties), "", rows$near_ties),
      note = rows$note
    ),
    right = FALSE, row.names = FALSE
  )
}

titles <- c(
  graph = "Pearson graphs: seconds, and their ratio to the floor",
  "low d" = "Low d: seconds, and their ratio to knn_search()",
  elementwise = paste(
    "Elementwise distances: seconds, and their ratio to two vector",
    "instructions an element"
  ),
  variants = "Other metrics and k: seconds, and their ratio to the floor"
)
options(width = 200)
for (table in unique(times$table)) {
  cat("\n", titles[[table]], "\n", sep = "")
  show_times(times[times$table == table, ])
}
cat("\nMemory, in MB, above what is resident when the data are in place\n")
print(memory, digits = 4, row.names = FALSE)

if (!is.null(folder)) {
  write <- function(what, file) {
    utils::write.csv(what, file.path(folder, file), row.names = FALSE)
  }
  rounded <- c("median", "lowest", "highest", "unit", "ratio")
  times[rounded] <- lapply(times[rounded], signif, digits = 4)
  megabytes <- endsWith(names(memory), "_mb")
  memory[megabytes] <- lapply(memory[megabytes], round, digits = 1)
  write(times, "cpu.csv")
  write(machine, "cpu-machine.csv")
  write(memory, "cpu-memory.csv")
}
say(sprintf(
  "done in %.1f minutes", as.double(Sys.time() - started, units = "mins")
))
