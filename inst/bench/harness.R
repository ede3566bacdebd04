# The harness of the scripts in this folder: arguments, compiled parts,
# simulated data, timing, checks, tables and the machine. A script begins with
#
#   script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
#   source(file.path(dirname(script[[1]]), "harness.R"))
#
# and loads the package itself, since compare.R chooses its library first.

# --- The script and its arguments ---------------------------------------------

script <- normalizePath(script[[1]])
rscript <- file.path(R.home("bin"), "Rscript")
bench_file <- function(name) file.path(dirname(script), name)
is_option <- grepl("^--", commandArgs(TRUE))
words <- commandArgs(TRUE)[!is_option]
given_options <- commandArgs(TRUE)[is_option]

flag <- function(name) paste0("--", name) %in% given_options

# The value of the last --name=, a number where `default` is one.
option <- function(name, default = NULL) {
  start <- paste0("--", name, "=")
  values <- given_options[startsWith(given_options, start)]
  if (length(values) == 0) {
    return(default)
  }
  value <- substring(values[[length(values)]], nchar(start) + 1)
  if (is.numeric(default)) as.numeric(value) else value
}

# The argument without dashes at this place, a number where `default` is one.
word <- function(at, default = NULL) {
  if (length(words) < at) {
    return(default)
  }
  if (is.numeric(default)) as.numeric(words[[at]]) else words[[at]]
}

# The folder of the tables, or NULL where they are only printed.
check_folder <- function(folder) {
  stopifnot("The folder must exist." = is.null(folder) || dir.exists(folder))
  folder
}

start_again <- function() {
  quit(status = system2(
    rscript, c("--vanilla", shQuote(c(script, commandArgs(TRUE))))
  ))
}

clock <- function() as.double(Sys.time())
began <- clock()
time_left <- function(limit) limit - (clock() - began)
say <- function(...) message(format(Sys.time(), "%H:%M:%S "), ...)
show <- function(x, ...) {
  print(x, ..., row.names = FALSE)
  flush(stdout())
}

# --- Compiled parts -----------------------------------------------------------

# Compiles and loads one file of this folder. Gives NULL, or the last lines of
# the compiler where it fails and `needed` is FALSE. Sessions that a script
# starts find the result in FSKNN_BENCH_BUILD.
compile <- function(file, libraries = "", needed = TRUE) {
  build <- Sys.getenv("FSKNN_BENCH_BUILD", tempdir())
  object <- file.path(build, sub("cpp$", "so", file))
  log <- NULL
  if (!file.exists(object)) {
    file.copy(bench_file(file), build)
    writeLines(c(
      "PKG_CXXFLAGS = $(SHLIB_OPENMP_CXXFLAGS)",
      paste("PKG_LIBS =", libraries, "$(SHLIB_OPENMP_CXXFLAGS) -ldl")
    ), file.path(build, "Makevars"))
    old <- setwd(build)
    on.exit(setwd(old))
    log <- suppressWarnings(system2(
      file.path(R.home("bin"), "R"), c("CMD", "SHLIB", file),
      stdout = TRUE, stderr = TRUE
    ))
  }
  if (file.exists(object)) {
    dyn.load(object)
    return(invisible())
  }
  log <- paste(utils::tail(log, 5), collapse = "\n")
  if (needed) stop(file, " can't be compiled:\n", log)
  log
}

call_floor <- function(name, ...) .Call(name, ..., PACKAGE = "floor")

call_tools <- function(name, ...) {
  if (!is.loaded("bench_simulate")) compile("tools.cpp")
  .Call(name, ..., parallel::detectCores(), PACKAGE = "tools")
}

# Compiles floor.cpp. The script is started again without the environment
# variables that OpenBLAS reads when it loads, since they can halve its speed.
# An OpenBLAS that takes a processor with AVX-512 for a Prescott is a fourth as
# fast, and makes all ratios to it flattering: it is started as SkylakeX.
load_floor <- function() {
  settings <- grep(
    "^(OPENBLAS|GOTO|OMP|GOMP|KMP|MKL|BLIS)_", names(Sys.getenv()),
    value = TRUE
  )
  if (!nzchar(Sys.getenv("FSKNN_BENCH_CLEAN"))) {
    if (length(settings) > 0) {
      say("Started again without ", toString(settings), ".")
    }
    Sys.unsetenv(settings)
    Sys.setenv(
      R_LIBS = paste(.libPaths(), collapse = ":"), FSKNN_BENCH_CLEAN = "yes"
    )
    start_again()
  }
  compile("floor.cpp")
  openblas <- call_floor("bench_openblas")
  if (is.null(openblas)) {
    stop(
      "R's BLAS must be OpenBLAS, whose product the times are compared with ",
      "(Debian: libopenblas0-pthread)."
    )
  }
  has_avx512 <- any(grepl(
    " avx512f ", readLines("/proc/cpuinfo"), fixed = TRUE
  ))
  if (openblas[[1]] == "Prescott" && has_avx512 && length(settings) == 0) {
    Sys.setenv(OPENBLAS_CORETYPE = "SkylakeX")
    start_again()
  }
  openblas
}

# --- Data ---------------------------------------------------------------------

# 64 latent factors of variance 1 each and noise, compiled and in parallel.
simulated <- function(n, d, seed = 1) {
  call_tools(
    "bench_simulate", as.integer(n), as.integer(d), 64L, as.integer(seed)
  )
}

# Latent factors that explain a variance of 1 together, and noise.
factor_rows <- function(n, d, factors, noise = 0.5, draw = stats::rnorm) {
  loadings <- matrix(draw(n * factors), n)
  scores <- matrix(draw(factors * d), factors)
  noise <- noise * matrix(draw(n * d), n)
  loadings %*% scores / sqrt(factors) + noise
}

# Expression: 200 factors and noise of standard deviation 1/2. There are no
# clusters: the distances of all pairs are alike, so that every early rejection
# of pairs is hard.
simulate_expression <- function(n, d) {
  set.seed(
    1, kind = "Mersenne-Twister", normal.kind = "Inversion",
    sample.kind = "Rejection"
  )
  factor_rows(n, d, 200)
}

unit_rows <- function(x) {
  x <- x - rowMeans(x)
  x / sqrt(rowSums(x * x))
}

# Complete rows of a study's file, see CONTRIBUTING.md.
study_rows <- function(folder, file) {
  x <- readRDS(file.path(folder, file))$expr
  x <- unname(x[rowSums(is.na(x)) == 0, ])
  storage.mode(x) <- "double"
  x
}

# Modules of points with correlation r within each, or independent points.
draw_points <- function(num_points, num_samples, module_size, r) {
  noise <- matrix(stats::rnorm(num_points * num_samples), num_points)
  if (module_size == 1) {
    return(noise)
  }
  modules <- matrix(
    stats::rnorm(num_points / module_size * num_samples), ncol = num_samples
  )
  sqrt(r) * modules[rep(seq_len(nrow(modules)), each = module_size), ] +
    sqrt(1 - r) * noise
}

# --- Timing and checks --------------------------------------------------------

# Of all cores together.
processor_seconds <- function(times) sum(times[c("user.self", "sys.self")])

# What one core does at most in a CPU second: of the two vector instructions
# that a feature needs, a maximum and a sum (floor.cpp has them with the
# minimum, which is as fast).
vector_rate <- function(threads) {
  compile("floor.cpp")
  # Of 20 calls of some 20 ms; the clock of the CPU tells milliseconds.
  rates <- vapply(1:5, function(i) {
    elements <- 0
    times <- system.time(for (call in 1:20) {
      from <- Sys.time()
      rate <- call_floor("bench_vector_rate", threads, FALSE)
      elements <- elements + rate * as.double(Sys.time() - from, units = "secs")
    })
    elements / processor_seconds(times)
  }, 1)
  say("vector limit (", call_floor("bench_vector_name"), "): ",
       format(stats::median(rates), digits = 3), " a CPU second (",
       format(min(rates), digits = 3), " to ", format(max(rates), digits = 3),
       ")")
  stats::median(rates)
}

pause <- function() {
  # Garbage is collected now, and OpenBLAS's threads, which wait actively for
  # some 30 ms, go to sleep.
  gc(FALSE)
  Sys.sleep(0.06)
}

# list(found, seconds, call, stats) of one search. `seconds`: of the device on a
# GPU (of the search where it does not report them), of all cores on
# a CPU.
time_once <- function(search, backend) {
  pause()
  times <- system.time(found <- search(), gcFirst = FALSE)
  stats <- fsknn::knn_stats()
  seconds <- if (backend == "cpu") {
    processor_seconds(times)
  } else {
    parts <- stats$seconds[c("device", "search")]
    parts[[if (isTRUE(parts[["device"]] > 0)) 1 else 2]]
  }
  list(
    found = found, seconds = seconds, call = times[["elapsed"]], stats = stats
  )
}

# The same search with each of `forms` (values of fsknn.instruction_set), in
# turn, `rounds` times. The answers must be identical. Prints medians with what
# the filter did, of a row of the answer and of all pairs, and gives the answer.
compare_forms <- function(labels, rows, pairs, backend, search, forms, rounds) {
  old <- options(fsknn.instruction_set = "auto")
  on.exit(options(old))
  found <- NULL
  runs <- lapply(seq_len(rounds), function(round) {
    lapply(forms, function(form) {
      options(fsknn.instruction_set = form)
      run <- time_once(search, backend)
      if (is.null(found)) found <<- run$found
      stopifnot("The forms' answers differ." = identical(run$found, found))
      run$found <- NULL
      run
    })
  })
  median_of <- function(what) {
    vapply(names(forms), function(form) {
      stats::median(vapply(runs, function(run) run[[form]][[what]], 0))
    }, 0)
  }
  fact <- function(name) {
    vapply(runs[[1]], function(run) as.double(run$stats[[name]]), 0)
  }
  seconds <- median_of("seconds")
  show(data.frame(
    labels, form = names(forms), bits = fact("filter_bits"),
    seconds = signif(seconds, 4), call = signif(median_of("call"), 4),
    ratio = round(seconds / seconds[[1]], 2),
    share = round(fact("pairs_filtered") / pairs, 3),
    exact = round(fact("pairs_exact") / rows, 1), redone = fact("rows_recomputed")
  ))
  invisible(found)
}

# Rows must have the bits of the core's brute force: scalar code, no filter.
check_against_core <- function(x, found, k, metric, sign = "signed") {
  rows <- unique(round(seq(1, nrow(x), length.out = 24)))
  request <- fsknn:::new_request(k + 1L, fsknn:::check_options(list(
    metric = metric, sign = sign, backend = "cpu", num_threads = 1
  )))
  expected <- fsknn:::cpp_brute_force(x, x[rows, , drop = FALSE], request)
  if (!same_rows(expected, found, rows, k)) {
    stop(metric, ": rows differ from those of brute force.")
  }
}

# answer: lists of k + 1 neighbours of the points `rows`, taken as queries;
# without the points themselves they must be the rows `at` of `found`.
same_rows <- function(answer, found, rows, k, at = rows) {
  all(vapply(seq_along(rows), function(i) {
    others <- which(answer$index[i, ] != rows[[i]])[seq_len(k)]
    identical(answer$index[i, others], found$index[at[[i]], ]) &&
      identical(answer$distance[i, others], found$distance[at[[i]], ])
  }, NA))
}

# --- Tables -------------------------------------------------------------------

# Puts rows into a table of the folder in place of those with the same key. key:
# of each row, and sort: the table in order, are functions of a table. Called
# after each new row with all of this run, so that a run that is cut short
# leaves what it has.
store_rows <- function(folder, file, rows, key, sort = identity,
                       classes = NA) {
  if (is.null(folder)) {
    return(invisible())
  }
  path <- file.path(folder, file)
  if (file.exists(path)) {
    old <- utils::read.csv(
      path, stringsAsFactors = FALSE, check.names = FALSE, colClasses = classes
    )
    rows <- rbind(old[!key(old) %in% key(rows), names(rows)], rows)
  }
  utils::write.csv(sort(rows), path, row.names = FALSE)
}

# A run that is killed leaves the old table or the new one.
store_table <- function(folder, file, table) {
  if (!is.null(folder)) {
    path <- file.path(folder, file)
    partial <- paste0(path, ".new")
    utils::write.csv(table, partial, row.names = FALSE)
    stopifnot(file.rename(partial, path))
  }
}

# Stores rows of some designs, named in the first column. `all` are the names of
# all designs, in order.
store_designs <- function(folder, file, table, all) {
  if (!is.null(folder) && file.exists(file.path(folder, file))) {
    # Text of numbers keeps its digits.
    stored <- utils::read.csv(
      file.path(folder, file), check.names = FALSE, colClasses = "character"
    )
    numbers <- vapply(table, is.numeric, NA)
    table[] <- lapply(table, as.character)
    kept <- stored[[1]] %in% setdiff(all, table[[1]])
    table <- rbind(stored[kept, names(table)], table)
    table <- table[order(match(table[[1]], all)), ]
    table[numbers] <- lapply(table[numbers], as.numeric)
  }
  store_table(folder, file, table)
}

# --- Calibrations -------------------------------------------------------------

# Runs a calibration: one_set() of each of `designs` (a named list) on many
# simulated data sets. row_of() makes rows of the table from the list of their
# results and the design's name. Prints the table, and stores it in `file`.
# Arguments of the script:
#
#   [DATA SETS] [CORES] [FOLDER] [--only=TEXT] [--missing] [--machine=LABEL]
#
# Each data set has its own seed, which depends on its number and on the
# design's name. So the number of cores and the other designs do not change the
# figures. Rows are stored after each design: a run that is stopped leaves those
# that are complete. With --only, designs run whose names have this text, and
# with --missing, those that are not stored with so many data sets. The other
# stored rows are kept.
calibrate <- function(file, designs, one_set, row_of, num_sets = 1000) {
  num_sets <- word(1, num_sets)
  cores <- word(2, 2)
  folder <- check_folder(word(3))
  machine <- option(
    "machine", paste(parallel::detectCores(), "cores, CPU")
  )
  RNGkind("L'Ecuyer-CMRG")
  chosen <- grepl(option("only", ""), names(designs), fixed = TRUE)
  stored <- file.path(c(folder, ".")[[1]], file)
  if (flag("missing") && file.exists(stored)) {
    stored <- utils::read.csv(stored)
    is_done <- stored$data_sets >= num_sets
    chosen <- chosen & !names(designs) %in% stored$design[is_done]
  }
  failed <- character()
  rows <- lapply(names(designs)[chosen], function(name) {
    before <- proc.time()
    sets <- try(over_sets(num_sets, cores, name, function() {
      one_set(designs[[name]])
    }))
    if (inherits(sets, "try-error")) {
      failed <<- c(failed, name)
      return(NULL)
    }
    row <- row_of(sets, name)
    numbers <- vapply(row, is.double, NA)
    row[numbers] <- lapply(row[numbers], signif, 3)
    row[is.na(row)] <- NA
    row <- data.frame(
      design = name, row, data_sets = num_sets, machine = machine,
      date = format(Sys.Date()), row.names = NULL, check.names = FALSE
    )
    store_designs(folder, file, row, names(designs))
    seconds <- sum((proc.time() - before)[-3]) / num_sets
    say(name, ": ", signif(seconds, 2), " CPU seconds a data set")
    row
  })
  table <- do.call(rbind, rows)
  options(width = 200)
  if (!is.null(table)) {
    show(table[setdiff(names(table), c("machine", "date"))], right = FALSE)
  }
  if (length(failed) > 0) {
    stop("Designs that failed: ", paste(failed, collapse = "; "))
  }
}

# The results of one() for each data set of a design. Processes take some sets
# at a time. An error in one set is an error.
over_sets <- function(num_sets, cores, name, one) {
  first <- 1e5 * (sum(utf8ToInt(name) * seq_len(nchar(name))) %% 20000)
  part <- ceiling(seq_len(num_sets) * min(1, 8 * cores / num_sets))
  parts <- parallel::mclapply(split(seq_len(num_sets), part), function(sets) {
    lapply(sets, function(set) {
      set.seed(first + set)
      one()
    })
  }, mc.cores = cores, mc.preschedule = FALSE)
  is_failed <- !vapply(parts, is.list, NA)
  if (any(is_failed)) {
    stop("A data set failed: ", parts[[which(is_failed)[[1]]]])
  }
  unlist(unname(parts), recursive = FALSE)
}

# The rows of a table of designs, named by its column `name`.
rows_by_name <- function(designs) {
  stats::setNames(split(designs, seq_len(nrow(designs))), designs$name)
}

# Means of the values that data sets give, as a row of a table.
row_of_means <- function(sets, ...) {
  data.frame(t(colMeans(do.call(rbind, sets))), check.names = FALSE)
}

# --- The machine, without its name --------------------------------------------

# The text behind the first ":" or "=" of the first line that matches.
first_match <- function(file, pattern) {
  lines <- tryCatch(readLines(file), error = function(e) "")
  trimws(sub("^[^:=]*[:=]", "", grep(pattern, lines, value = TRUE)[1]))
}

cpu_name <- function() first_match("/proc/cpuinfo", "^model name")

machine_load <- function() {
  words <- tryCatch(readLines("/proc/loadavg"), error = function(e) NA)
  as.numeric(sub(" .*", "", words))
}

version_of <- function(package) {
  if (requireNamespace(package, quietly = TRUE)) {
    as.character(utils::packageVersion(package))
  } else {
    "-"
  }
}

# Stops without a GPU where one is needed.
need_gpu <- function() {
  if (!fsknn::knn_backends()$usable[[2]]) {
    stop(fsknn::knn_backends()$detail[[2]])
  }
  print(fsknn::knn_backends()$devices$cuda)
}
