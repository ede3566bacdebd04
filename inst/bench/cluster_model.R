# The model of knn_plan(hosts = ): its constants, its error, and its predictions
# for 1 to 1,000 hosts that fail.
#   Rscript inst/bench/cluster_model.R fit [folder]       constants of stored runs
#   Rscript inst/bench/cluster_model.R fit-gpu [folder]   those of GPUs only
#   Rscript inst/bench/cluster_model.R check [folder]     real runs by tasks, CPU
#   Rscript inst/bench/cluster_model.R gpu [folder]       real runs, one GPU or two
#   Rscript inst/bench/cluster_model.R check-gpu [folder] stored ones by the model
#   Rscript inst/bench/cluster_model.R simulate [folder]  hosts that fail
# folder: where tables are stored (inst/extdata/bench); not given: printed only.
# "fit" comes first, with the package installed anew after it.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

part <- word(1, "simulate")
folder <- check_folder(word(2))
inner <- function(name) utils::getFromNamespace(name, "fsknn")

keep <- function(table, file) {
  show(table, digits = 4)
  store_table(folder, file, table)
}

stored <- function(file) {
  utils::read.csv(
    system.file("extdata", "bench", file, package = "fsknn", mustWork = TRUE),
    stringsAsFactors = FALSE
  )
}

simulated_points <- function(n, d) factor_rows(n, d, 64, noise = 1)

# --- fit ----------------------------------------------------------------------

# Constants by which the runs' seconds come out, least squares of logarithms.
# runs: n, d, k, units (GPUs, or 1), seconds. known: constants that are not
# fitted.
fit_constants <- function(runs, where, start, known) {
  predict <- function(logs) {
    constants <- c(as.list(exp(logs)), known)
    constants$start + inner("kernel_seconds")(
      constants, where, runs$n, runs$n * (runs$n - 1) / 2, runs$n * runs$k,
      runs$d
    ) / runs$units
  }
  loss <- function(logs) sum(log(predict(logs) / runs$seconds)^2)
  fitted <- list(par = log(start))
  for (again in 1:8) {
    fitted <- optim(
      fitted$par, loss, control = list(maxit = 20000, reltol = 1e-12)
    )
  }
  list(
    constants = exp(fitted$par), ratio = predict(fitted$par) / runs$seconds
  )
}

tell_ratios <- function(what, runs) {
  cat(sprintf(
    "%s: %d runs, model / measured %.2f to %.2f, %.0f%% of them within 25%%\n",
    what, nrow(runs), min(runs$ratio), max(runs$ratio),
    100 * mean(abs(runs$ratio - 1) <= 0.25)
  ))
  print(runs[runs$ratio < 0.75 | runs$ratio > 1.25, ], row.names = FALSE)
}

# Device seconds of Pearson graphs on one H200 and on two, and, beside them, the
# way there.
fit_gpu <- function() {
  gpu <- stored("gpu.csv")
  gpu <- gpu[gpu$who == "fsknn" & !is.na(gpu$device_median) & gpu$gpus == 1 &
               !gpu$streamed & gpu$data == "simulated", ]
  paper <- stored("paper.csv")
  paper <- paper[paper$where == "gpu" & !is.na(paper$device) &
                   is.na(paper$chunk_size), ]
  pearson <- gpu[gpu$metric == "pearson", ]
  own <- stored("cluster-gpu.csv")
  own <- own[own$use == "fit", ]
  large <- stored("large.csv")
  large <- large[large$case == "long", ]
  runs <- rbind(
    data.frame(n = pearson$n, d = pearson$d, k = pearson$k, units = 1,
               seconds = pearson$device_median),
    data.frame(n = paper$n, d = paper$d, k = paper$k, units = 1,
               seconds = paper$device),
    data.frame(n = own$n, d = own$d, k = own$k, units = own$gpus,
               seconds = own$seconds),
    data.frame(n = large$n, d = large$d, k = large$k, units = large$gpus,
               seconds = large$device)
  )
  fitted <- fit_constants(
    runs, "gpu",
    c(start = 2e-4, point = 2e-8, pair = 4e-13, product = 3e-15,
      long_product = 6e-15, neighbour = 1e-9, exact = 2e-12),
    list(value = 0, sent = 0)
  )
  runs$ratio <- fitted$ratio
  tell_ratios("H200s, device", runs)
  constants <- as.list(fitted$constants)
  # By differences: of the runs of 100,000 points, all else as it is.
  other <- gpu[gpu$metric %in% c("manhattan", "chebyshev", "proportional"), ]
  pairs <- other$n * (other$n - 1) / 2
  without <- constants$start + other$n * constants$point + other$n * other$k *
    (constants$neighbour + constants$exact * inner("model_depth")(295, "gpu"))
  constants$difference <- median(
    (other$device_median - without) / pairs /
      inner("model_depth")(other$d, "gpu")
  )
  sent <- paper[paper$n >= 1e5, ]
  way <- lm(I(search - device) ~ n + I(n * d), data = sent)
  print(summary(way)$coefficients)
  constants$sent <- max(0, coef(way)[["n"]])
  constants$value <- coef(way)[["I(n * d)"]]
  source <- paste(
    "gpu.csv, paper.csv, cluster-gpu.csv, large.csv: H200s,",
    "2026-11-21 and 2026-11-23"
  )
  table_of("gpu", constants, c(
    start = source, point = source, pair = source, product = source,
    long_product = source, neighbour = source, exact = source,
    sent = "paper.csv: search less device, one H200, 2026-11-21",
    difference = "gpu.csv: n = 100,000, d = 295, one H200, 2026-11-21",
    value = "paper.csv: search less device, one H200, 2026-11-21"
  ))
}

# As they are stored.
of_cpu <- function() {
  table <- stored("cluster-model.csv")
  table[table$where == "cpu", ]
}

# Whole calls on two cores; reading and merging are timed here.
fit_cpu <- function() {
  cpu <- stored("cpu.csv")
  cpu$note[is.na(cpu$note)] <- ""
  cpu <- cpu[cpu$who == "knn_search()" & cpu$note == "" & cpu$threads == 2, ]
  pearson <- cpu[cpu$metric == "pearson", ]
  runs <- data.frame(
    n = pearson$n, d = pearson$d, k = pearson$k, units = 1,
    seconds = pearson$median * pearson$threads
  )
  here <- timed_here()
  fitted <- fit_constants(
    runs, "cpu",
    c(start = 1e-2, pair = 1e-10, product = 6e-12, neighbour = 1e-7,
      exact = 1e-9),
    list(point = 0, sent = 0, value = here$value)
  )
  runs$ratio <- fitted$ratio
  tell_ratios("Two cores, whole calls, seconds of a thread", runs)
  constants <- as.list(fitted$constants)
  other <- cpu[cpu$metric %in% c("manhattan", "chebyshev", "proportional") &
                 cpu$n == 10000, ]
  depth <- inner("model_depth")(other$d, "cpu")
  without <- constants$start + other$n * other$d * here$value +
    other$n * other$k * (constants$neighbour + constants$exact * depth)
  constants$difference <- median(
    (2 * other$median - without) / (other$n * (other$n - 1) / 2) / depth
  )
  # What a call takes besides is once, what a task takes each time.
  constants$start <- NULL
  constants <- c(constants, list(point = 0, sent = 0), here)
  source <- "cpu.csv: two cores, no GPU, 2026-11-21"
  now <- paste("this script: two cores, no GPU,", Sys.Date())
  table_of("cpu", constants, c(
    pair = source, product = source, neighbour = source, exact = source,
    difference = source, point = "with the values", sent = "nothing is",
    value = now, merge = now, start = now
  ))
}

table_of <- function(where, constants, source) {
  units <- c(
    start = "a task", point = "a point", sent = "a point", value = "a value",
    pair = "a pair", product = "a feature of a pair",
    long_product = "a feature of a pair of long rows",
    difference = "a feature of a pair",
    neighbour = "a pair left", exact = "a feature of a pair left",
    merge = "a neighbour found"
  )
  names <- names(constants)
  data.frame(
    where = where, constant = names, value = signif(unlist(constants), 4),
    unit = paste("seconds", units[names]), source = unname(source[names]),
    row.names = NULL
  )
}

# The least of several, since others may work on this machine; of what one
# thread does, the processor's seconds.
least_seconds <- function(call, times = 9, of = c("user.self", "sys.self")) {
  min(vapply(seq_len(times), function(time) {
    sum(system.time(call())[of])
  }, 0))
}

timed_here <- function() {
  set.seed(1)
  x <- simulated_points(20000, 500)
  # One query of each point: all values are prepared, and little else is done.
  value <- least_seconds(function() {
    knn_query(x, x[1:60, ], k = 1, backend = "cpu", num_threads = 1)
  }) / length(x)
  # Tasks of next to no work.
  few <- simulated_points(200, 10)
  options(fsknn.split_size = 20)
  tasks <- inner("cut_into_blocks")(200, 10)$num_tasks
  start <- least_seconds(function() {
    kept <- tempfile()
    on.exit(unlink(kept, recursive = TRUE))
    knn_search(few, k = 5, backend = "cpu", checkpoint = kept, num_threads = 1)
  }, 3, "elapsed") / tasks
  # Lists of two blocks into the lists of all.
  found <- knn_search(x[, 1:20], k = 20, metric = "euclidean", backend = "cpu")
  part <- list(
    count = rep(20L, nrow(x)), index = as.vector(t(found$index)),
    distance = as.vector(t(found$distance)), correlation = NULL
  )
  merge <- least_seconds(function() {
    lists <- inner("cpp_new_lists")(nrow(x), 20, FALSE)
    inner("in_core")(
      inner("cpp_merge_lists")(lists, c(1, nrow(x)), part, 1L), quote(fit())
    )
  }) / length(found$index)
  list(value = value, start = start, merge = merge)
}

# --- check --------------------------------------------------------------------

# A search by the tasks of a plan, one after another, each with the limits that
# those before it left: list(found, tasks, pairs, seconds), the latter two of
# the filter and of the processor.
search_by_tasks <- function(x, plan, metric, num_threads) {
  options <- inner("check_options")(list(
    metric = metric, backend = "cpu", num_threads = num_threads
  ))
  request <- inner("new_request")(plan$k, options, largest = max(abs(x)))
  cut <- inner("cut_into_blocks")(nrow(x), plan$num_blocks)
  whole <- inner("new_merged")(nrow(x), request)
  pairs <- 0
  seconds <- 0
  for (task in seq_len(cut$num_tasks)) {
    blocks <- inner("blocks_of_tasks")(cut, task)
    a <- inner("cut_bounds")(cut, blocks$a)
    b <- if (blocks$b != blocks$a) inner("cut_bounds")(cut, blocks$b)
    used <- system.time({
      limits <- inner("limits_of")(whole, a, b)
      part <- inner("ask_between")(x, a, b, request, limits)
      inner("merge_part")(whole, a, b, part)
    })
    pairs <- pairs + part$stats$pairs_filtered
    seconds <- seconds + processor_seconds(used)
  }
  found <- inner("merged_answer")(whole)
  list(found = found, tasks = task, pairs = pairs, seconds = seconds)
}

# Such searches beside their plans: numbers of tasks and pairs must be the same,
# and so the answer and that of one search. Seconds are of the processor, all
# threads together: others work on this machine.
check_cpu <- function() {
  set.seed(2)
  threads <- 2
  rows <- lapply(list(
    list(n = 6000, d = 50, k = 10, size = 900, metric = "pearson"),
    list(n = 12000, d = 295, k = 20, size = 2500, metric = "pearson"),
    list(n = 12000, d = 295, k = 20, size = 4000, metric = "euclidean"),
    list(n = 8000, d = 295, k = 20, size = 2000, metric = "manhattan"),
    list(n = 3000, d = 4096, k = 100, size = 700, metric = "pearson")
  ), function(case) {
    options(fsknn.split_size = case$size)
    x <- simulated_points(case$n, case$d)
    plan <- knn_plan(
      x, k = case$k, metric = case$metric, hosts = 1, num_threads = threads
    )
    whole <- knn_search(x, case$k, case$metric, backend = "cpu")
    by_tasks <- search_by_tasks(x, plan, case$metric, threads)
    stopifnot(
      identical(by_tasks$found$index, whole$index),
      identical(by_tasks$found$distance, whole$distance)
    )
    start <- inner("model_constants")("cpu")$start
    planned <- sum(plan$task_seconds - start) * threads
    data.frame(
      metric = case$metric, n = case$n, d = case$d, k = case$k,
      tasks = by_tasks$tasks, tasks_planned = plan$num_tasks,
      pairs = by_tasks$pairs, pairs_planned = plan$num_pairs,
      seconds = by_tasks$seconds, seconds_planned = planned
    )
  })
  table <- do.call(rbind, rows)
  table$pairs_ratio <- table$pairs / table$pairs_planned
  table$ratio <- table$seconds_planned / table$seconds
  table$machine <- paste("two cores, no GPU,", Sys.Date())
  stopifnot(table$tasks == table$tasks_planned)
  keep(table, "cluster-check.csv")
}

# Whole searches on one GPU and on two, device seconds. The constants are fitted
# to the first cases, and judged by the others.
gpu_cases <- data.frame(
  n = c(100000, 400000, 400000, 100000, 60000, 1500000,
        150000, 250000, 1000000, 40000, 50000, 30000),
  d = c(295, 295, 1024, 295, 8192, 295, 295, 512, 100, 6000, 2048, 12000),
  k = c(20, 20, 20, 200, 200, 20, 20, 50, 20, 100, 100, 200),
  use = rep(c("fit", "check"), each = 6),
  stringsAsFactors = FALSE
)

run_gpu <- function() {
  devices <- knn_backends()$devices$cuda
  if (nrow(devices) == 0) {
    cat("No GPU is here: nothing was run.", attr(devices, "reason"), "\n")
    return(invisible())
  }
  set.seed(2)
  # Longer than there are points: no two values of a feature are one number.
  noise <- rnorm(2^21 + 7)
  rows <- list()
  for (at in seq_len(nrow(gpu_cases))) {
    case <- gpu_cases[at, ]
    x <- matrix(rnorm(case$n * 16), case$n) %*%
      matrix(rnorm(16 * case$d), 16) / 4 + rep_len(noise, case$n * case$d)
    for (gpus in seq_len(min(2, nrow(devices)))) {
      seconds <- vapply(1:4, function(time) {
        knn_search(
          x, case$k, backend = "cuda", devices = devices$device[seq_len(gpus)]
        )
        knn_stats()$seconds[["device"]]
      }, 0)[-1]
      rows <- c(rows, list(data.frame(
        case, gpus = gpus, seconds = median(seconds), least = min(seconds),
        most = max(seconds), machine = paste(devices$name[[1]], Sys.Date())
      )))
      print(rows[[length(rows)]], row.names = FALSE)
    }
  }
  keep(do.call(rbind, rows), "cluster-gpu.csv")
}

# The stored runs that nothing was fitted to: the kernel is to be within 25%.
check_gpu <- function() {
  runs <- stored("cluster-gpu.csv")
  runs <- runs[runs$use == "check", ]
  constants <- inner("model_constants")("gpu")
  constants$value <- constants$sent <- 0  # these are seconds of a device
  runs$planned <- constants$start + inner("kernel_seconds")(
    constants, "gpu", runs$n, runs$n * (runs$n - 1) / 2, runs$n * runs$k, runs$d
  ) / runs$gpus
  runs$ratio <- runs$planned / runs$seconds
  cat(sprintf(
    "%d of %d within 25%%\n", sum(abs(runs$ratio - 1) <= 0.25), nrow(runs)
  ))
  keep(runs, "cluster-check-gpu.csv")
}

# --- simulate -----------------------------------------------------------------

# The largest run of Dashti (2013), on hosts of two H200s: what simulation and
# formula say, in hours. Each host reads 10 GB/s from a file system that serves
# any number of them, or, without failures, 100 GB/s in all.
simulate_hosts <- function(nsim = 10) {
  set.seed(3)
  rows <- list()
  for (hosts in c(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)) {
    for (case in list(
      c(0, Inf), c(0.01, Inf), c(0.1, Inf), c(1, Inf), c(0, 1e11)
    )) {
      failures <- case[[1]]
      plan <- knn_plan(
        c(20e6, 15876), k = 200, hosts = host_options(
          hosts, devices_per_host = 2, memory = "512 GiB", disk = case[[2]],
          network = "10 GB", failures = failures, restart = 300
        )
      )
      runs <- simulate(plan, nsim = if (failures == 0) 1 else nsim)
      rows <- c(rows, list(data.frame(
        hosts = hosts, failures = failures, disk = case[[2]], blocks = plan$num_blocks,
        tasks = plan$num_tasks, task_seconds = mean(plan$task_seconds),
        petabytes_read = plan$bytes_read / 1e15,
        hours = mean(runs$seconds) / 3600,
        hours_low = min(runs$seconds) / 3600,
        hours_high = max(runs$seconds) / 3600,
        hours_formula = plan$seconds[["failing"]] / 3600,
        tasks_again = mean(runs$tasks_again), runs = nrow(runs)
      )))
    }
  }
  table <- do.call(rbind, rows)
  keep(table, "cluster-simulated.csv")
}

switch(
  part,
  fit = keep(rbind(fit_cpu(), fit_gpu()), "cluster-model.csv"),
  `fit-gpu` = keep(rbind(of_cpu(), fit_gpu()), "cluster-model.csv"),
  check = check_cpu(),
  gpu = run_gpu(),
  `check-gpu` = check_gpu(),
  simulate = simulate_hosts(),
  stop(
    "The first argument must be fit, fit-gpu, check, gpu, check-gpu or simulate."
  )
)
