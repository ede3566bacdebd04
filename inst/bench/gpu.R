# How long does backend "cuda" take, on the device and in R?
#
#   Rscript inst/bench/gpu.R [SECTION ...] [--folder=DIR] [--quick] [--short]
#     [--seconds=N] [--no-peer] [--bits=8|16]
#
# with the package installed (R_LIBS says where) and a GPU. Sections:
#   main     d = 295, k = 20, n = 24,158 to 1,533,876
#   points   n = 100,000: other k, d and metrics
#   bits     n = 100,000 rows of 0 and 1, a tenth of them 1: Sorensen, and the
#            same by floats
#   dashti   n = 16,384 of 4,096 and 16,384 features, k up to 1,024
#   real     metafeatures of real data beside simulated data of that size; the
#            environment variable FSKNN_BENCH_RDS names the file
#   devices  1, 2, 4, ... GPUs
#   large    n = 10,000,000 on two GPUs, once; some 60 GB of memory
#   stream   a quarter, a twentieth and a fortieth of the memory, and all of it
#   first    the first call of a fresh session, and the third
# All of them where none is named, large only where it is. --quick leaves out
# the largest sizes, --short runs each case fewer times and checks fewer rows,
# --seconds=N begins nothing after N seconds, --bits filters products by numbers
# of so many bits wherever it can be, whether or not it pays. With --folder
# tables are kept in DIR/gpu.csv and DIR/gpu-machine.csv, a row as soon as it is
# there; a section's rows, and their machine, take the place of those of an
# earlier run, fsknn's and the peer's each for themselves. README.md beside this
# file says what is measured and how.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

quick <- flag("quick")
short <- flag("short")
folder <- check_folder(option("folder"))
options(
  fsknn.instruction_set = paste(c("auto", option("bits")), collapse = "/"),
  width = 160
)
most_seconds <- option("seconds", Inf)
all_sections <- c(
  "first", "main", "points", "bits", "real", "dashti", "stream", "devices"
)
sections <- if (length(words) == 0) all_sections else words
stopifnot("No such section." = sections %in% c(all_sections, "large"))
need_gpu()
gpus <- knn_backends()$devices$cuda
threads <- parallel::detectCores()

# --- One measurement ----------------------------------------------------------

# Sampled rows against other code in double, and some of them against backend
# "cpu", bit for bit.
check_rows <- function(x, found, rows, metric, cpu_rows) {
  k <- ncol(found$index)
  outcome <- call_tools(
    "bench_check", x, rows, found$index[rows, , drop = FALSE],
    found$distance[rows, , drop = FALSE], metric, 1e-9
  )
  cpu_rows <- rows[seq_len(min(cpu_rows, length(rows)))]
  same <- NA
  if (length(cpu_rows) > 0 && k < nrow(x) - 1) {
    cpu <- knn_query(
      x, x[cpu_rows, , drop = FALSE], k + 1, metric, backend = "cpu",
      constant = "isolate"
    )
    same <- same_rows(cpu, found, cpu_rows, k)
  }
  list(
    recall = 1 - outcome[[1]] / (length(rows) * k), error = outcome[[2]],
    rows = length(rows), identical = same
  )
}

# Rows to check: spread ones, and those with the nearest neighbours, whose lists
# of candidates overflow first.
rows_to_check <- function(found, count) {
  k <- ncol(found$index)
  there <- which(!is.na(found$distance[, k]))
  spread <- there[round(seq(1, length(there), length.out = count / 2))]
  crowded <- order(found$distance[, k])[seq_len(count / 2)]
  sort(unique(as.integer(c(spread, crowded))))
}

measure <- function(section, x, k, metric = "pearson", devices = 1L,
                    data = "simulated", checked = 128, cpu_rows = 16,
                    max_device_memory = NULL) {
  label <- paste0(
    section, ": n = ", nrow(x), ", d = ", ncol(x), ", k = ", k, ", ", metric,
    ", ", length(devices), " GPU(s)"
  )
  if (time_left(most_seconds) < 0) {
    say(label, ": left out, no time left")
    return()
  }
  say(label)
  values <- as.double(nrow(x)) * ncol(x)
  large <- values > 2e8 || k > 256
  times <- if (short && large) 2 else if (short || large) 3 else 5
  if (values > 2e9) {
    times <- 1
  }
  if (short) {
    checked <- if (startsWith(data, "real")) checked else min(checked, 64)
    cpu_rows <- min(cpu_rows, 4)
  }
  call <- function(verb) {
    verb(
      x, k, metric, backend = "cuda", devices = devices, constant = "isolate",
      max_device_memory = max_device_memory
    )
  }
  found <- call(knn_search)
  one <- function(i) {
    gc(FALSE)
    times <- system.time(answer <- call(knn_graph), gcFirst = FALSE)
    rm(answer)
    c(times[["elapsed"]], knn_stats()$seconds[["device"]])
  }
  runs <- vapply(seq_len(times), one, numeric(2))
  stats <- knn_stats()
  outcome <- list(recall = NA, error = NA, rows = 0, identical = NA)
  if (checked > 0) {
    rows <- rows_to_check(found, checked)
    outcome <- check_rows(x, found, rows, metric, cpu_rows)
  }
  row <- data.frame(
    section = section, who = "fsknn", data = data, n = nrow(x), d = ncol(x),
    k = k, metric = metric, gpus = length(devices), runs = times,
    device_median = median(runs[2, ]), device_lowest = min(runs[2, ]),
    device_highest = max(runs[2, ]), call_median = median(runs[1, ]),
    call_lowest = min(runs[1, ]), call_highest = max(runs[1, ]),
    streamed = stats$streamed, device_bytes = stats$bytes_device,
    rows_recomputed = stats$rows_recomputed, rows_widened = stats$rows_widened,
    exact_a_row = stats$pairs_exact / nrow(x), rows_checked = outcome$rows,
    recall = outcome$recall, largest_error = outcome$error,
    same_as_cpu = outcome$identical,
    note = paste(stats$filter_bits, "bits")
  )
  keep(row)
  show(row[c(
    "device_median", "call_median", "recall", "largest_error", "same_as_cpu",
    "rows_checked", "rows_recomputed", "exact_a_row", "device_bytes"
  )])
  if (isTRUE(outcome$recall < 1) || isFALSE(outcome$identical)) {
    stop("The answer is wrong: ", label)
  }
}

# Rows of a section, fsknn's or its peer's, take the place of those of an
# earlier run, and so does their machine.
results <- NULL
keep <- function(row) {
  results <<- rbind(results, row)
  rows <- results
  measured <- grep("^(device_[mlh]|call_|exact_|largest_)", names(rows))
  rows[measured] <- lapply(rows[measured], signif, digits = 4)
  key <- function(rows) paste(rows$section, rows$who == "fsknn")
  sort <- function(rows) {
    rows[order(match(rows$section, c(all_sections, "large")), rows$who), ]
  }
  store_rows(folder, "gpu.csv", rows, key, sort)
  machines <- rows[!duplicated(key(rows)), c("section", "who")]
  store_rows(
    folder, "gpu-machine.csv", cbind(machines, describe_machine()), key, sort,
    "character"
  )
}

peer_row <- function(section, fields) {
  value <- function(at) as.numeric(fields[[at]])
  scaled <- value(9) == 0
  data.frame(
    section = section, who = paste("PyTorch", fields[[1]], "fp32"),
    data = "simulated", n = value(2), d = value(3), k = value(4),
    metric = "pearson", gpus = 1, runs = max(1, value(9)),
    device_median = value(6), device_lowest = value(7),
    device_highest = value(8), call_median = NA, call_lowest = NA,
    call_highest = NA, streamed = FALSE, device_bytes = NA,
    rows_recomputed = NA, rows_widened = NA, exact_a_row = NA, rows_checked = 0,
    recall = NA, largest_error = NA, same_as_cpu = NA,
    note = if (scaled) "part of the rows, scaled" else ""
  )
}

python <- Sys.which("python3")
has_torch <- !flag("no-peer") && nzchar(python) && identical(
  suppressWarnings(system2(
    python, c("-c", shQuote("import torch; torch.zeros(1).cuda()")),
    stdout = FALSE, stderr = FALSE
  )),
  0L
)
if (!has_torch) {
  say("No PyTorch beside it: python3 has none that sees a GPU, or --no-peer.")
}

# cases: a matrix of n, d, k.
measure_torch <- function(section, cases) {
  if (!has_torch || time_left(most_seconds) < 0) {
    return()
  }
  say(section, ": PyTorch")
  lines <- system2(
    python,
    c(
      shQuote(bench_file("torch_peer.py")),
      format(t(cases), scientific = FALSE, trim = TRUE)
    ),
    stdout = TRUE
  )
  for (fields in strsplit(lines, ",")) {
    row <- peer_row(section, fields)
    keep(row)
    show(row[c("who", "n", "d", "k", "device_median")])
  }
}

# --- Sections -----------------------------------------------------------------

run_section <- list(
  first = function() {
    code <- paste(
      "library(fsknn); x <- matrix(sin(seq_len(24158 * 50) * 7), 24158);",
      "for (i in 1:3) cat(system.time(knn_graph(x, 20, backend = \"cuda\",",
      "devices = 1))[[\"elapsed\"]], \"\")"
    )
    say("first: three sessions")
    sessions <- vapply(1:3, function(i) {
      scan(
        text = system2(rscript, c("-e", shQuote(code)), stdout = TRUE),
        quiet = TRUE
      )
    }, numeric(3))
    show(as.data.frame(t(sessions)))
    one <- function(seconds, note) {
      row <- peer_row("first", c("", 24158, 50, 20, 0, NA, NA, NA, 3))
      row$who <- "fsknn"
      row$call_median <- median(seconds)
      row$call_lowest <- min(seconds)
      row$call_highest <- max(seconds)
      row$note <- note
      keep(row)
    }
    one(sessions[1, ], "first call of a session")
    one(sessions[3, ], "third call")
  },
  main = function() {
    sizes <- c(24158, 100000, 384126, 1533876)
    if (quick) {
      sizes <- sizes[1:2]
    }
    for (n in sizes) {
      measure("main", simulated(n, 295), 20, checked = 256, cpu_rows = 16)
    }
    measure_torch("main", cbind(sizes, 295, 20))
  },
  points = function() {
    n <- if (quick) 24158 else 100000
    x <- simulated(n, 295)
    for (k in c(1, 128, 1024)) {
      measure("points", x, k)
    }
    for (metric in c("manhattan", "proportional", "chebyshev", "euclidean")) {
      values <- if (metric == "proportional") exp(x / 8) else x
      measure("points", values, 20, metric)
    }
    for (d in c(8, 32, 1024)) {
      measure("points", simulated(n, d), 20)
    }
    measure_torch(
      "points",
      cbind(n, c(295, 295, 295, 8, 32, 1024), c(1, 128, 1024, 20, 20, 20))
    )
  },
  bits = function() {
    n <- if (quick) 24158 else 100000
    for (d in c(1024, if (!quick) 8192)) {
      x <- simulated(n, d)
      some <- x[seq(1, length(x), length.out = 1e5)]
      x <- (x > quantile(some, 0.9)) + 0
      data <- "simulated, a tenth set"
      measure("bits", x, 20, "sorensen", data = data)
      if (d == 1024) measure("bits", x, 20, "proportional", data = data)
    }
  },
  real = function() {
    file <- Sys.getenv("FSKNN_BENCH_RDS")
    if (!file.exists(file)) {
      say("real: left out, FSKNN_BENCH_RDS names no file.")
      return()
    }
    read <- readRDS(file)
    base <- unname(read$expr / read$scale)
    for (operations in c("-", if (!quick) "-+*/")) {
      x <- unname(as.matrix(metafeatures(base, strsplit(operations, "")[[1]])))
      x <- x[is.finite(rowSums(x)), ]
      measure(
        "real", x, 20, checked = 512, cpu_rows = 8,
        data = paste("real, expanded by", operations)
      )
      y <- simulated(nrow(x), ncol(x))
      measure("real", y, 20, checked = 64, cpu_rows = 4)
    }
  },
  dashti = function() {
    x <- simulated(16384, 4096)
    for (k in if (quick) 128 else c(128, 512, 1024)) {
      measure("dashti", x, k, checked = 64, cpu_rows = 8)
    }
    if (!quick) {
      x <- simulated(16384, 16384)
      measure("dashti", x, 512, checked = 32, cpu_rows = 4)
    }
    cases <- rbind(
      cbind(16384, 4096, c(128, 512, 1024)), c(16384, 16384, 512)
    )
    measure_torch("dashti", cases[if (quick) 1 else 1:4, , drop = FALSE])
  },
  stream = function() {
    x <- simulated(if (quick) 100000 else 384126, 295)
    plan <- knn_plan(x, 20, backend = "cuda", devices = 1)
    measure("stream", x, 20, checked = 64, cpu_rows = 4)
    for (part in c(4, 20, 40)) {
      measure(
        "stream", x, 20, max_device_memory = plan$bytes_peak / part,
        checked = 64, cpu_rows = 4
      )
    }
  },
  devices = function() {
    x <- simulated(if (quick) 384126 else 1533876, 295)
    for (count in intersect(c(1, 2, 4, 8), seq_len(nrow(gpus)))) {
      measure(
        "devices", x, 20, devices = seq_len(count), checked = 64, cpu_rows = 4
      )
    }
  },
  large = function() {
    x <- simulated(if (quick) 100000 else 1e7, 295)
    measure(
      "large", x, 20, devices = 1:2, checked = if (quick) 64 else 16,
      cpu_rows = 2
    )
  }
)

# --- The machine --------------------------------------------------------------

describe_machine <- function() {
  driver <- tryCatch(
    suppressWarnings(system2(
      "nvidia-smi", c("--query-gpu=driver_version", "--format=csv,noheader"),
      stdout = TRUE, stderr = FALSE
    )),
    error = function(e) "-"
  )
  data.frame(
    date = format(Sys.time(), "%Y-%m-%d"),
    GPUs = paste(nrow(gpus), "x", gpus$name[[1]]),
    driver = c(driver, "-")[[1]],
    toolkit = sub(
      ".*CUDA ([0-9.]+).*", "\\1", paste(knn_backends()$detail[[2]], "")
    ),
    "host CPU" = paste(threads, "x", cpu_name()),
    R = as.character(getRversion()), fsknn = version_of("fsknn"),
    check.names = FALSE
  )
}

# --- Run ----------------------------------------------------------------------

show(describe_machine())
failures <- character()
for (section in sections) {
  tryCatch(run_section[[section]](), error = function(err) {
    failures <<- c(failures, paste0(section, ": ", conditionMessage(err)))
    say("FAILED: ", conditionMessage(err))
  })
}
cat("\nAll: seconds, medians\n")
if (!is.null(results)) {
  show(
    results[c(
      "section", "who", "data", "n", "d", "k", "metric", "gpus",
      "device_median", "call_median", "recall", "same_as_cpu", "rows_recomputed",
      "note"
    )],
    digits = 4
  )
}
say(sprintf("done in %.1f minutes", (clock() - began) / 60))
writeLines(failures)
quit(status = length(failures) > 0)
