# knn_plan(hosts = ) plans a search by many hosts in one folder. It uses a model
# (see plan-model.R) and the folder's division into tasks
# (search-block_pairs.R).

#' Hosts of a plan
#'
#' Describes the machines that work on one folder, for `knn_plan(hosts = )`.
#'
#' @param hosts The number of machines that work on one folder, a whole number.
#' @param devices_per_host GPUs of each host, a whole number. With 0 (default)
#'   the hosts use their CPUs, with `num_threads` threads each.
#' @param memory The memory that each host may use, in bytes or as `"256 GiB"`.
#'   `NULL` (default): no limit.
#' @param disk The speed of the shared file system for all hosts together, in
#'   bytes (or `"10 GB"`) per second that are read or written. `NULL` (default):
#'   reading and writing take no time there.
#' @param network The speed of the network to or from one host, in bytes (or
#'   `"5 GB"`) per second. `NULL` (default): the transfer takes no time.
#' @param failures The average number of failures of a host per hour of work;
#'   0 by default.
#' @param restart Seconds until a failed host works again; 300 by default.
#' @param ... Must be empty: other names are an error.
#'
#' @returns A list of class `fsknn_hosts` with the checked values.
#' @seealso [knn_plan()]
#' @export
#' @examples
#' host_options(16, devices_per_host = 2, memory = "512 GiB", disk = "40 GB")
host_options <- function(hosts, ..., devices_per_host = 0, memory = NULL,
                         disk = NULL, network = NULL, failures = 0,
                         restart = 300) {
  check_no_more(...)
  check_supplied(hosts)
  new_hosts(hosts, devices_per_host, memory, disk, network, failures, restart)
}

new_hosts <- function(hosts, devices_per_host = 0, memory = NULL, disk = NULL,
                      network = NULL, failures = 0, restart = 300,
                      call = caller_env()) {
  structure(
    list(
      hosts = check_whole_number(hosts, "hosts", 1, 1e5, call = call),
      devices_per_host = check_whole_number(
        devices_per_host, "devices_per_host", 0, 64, call = call
      ),
      memory = check_host_bytes(memory, "memory", call),
      disk = check_host_bytes(disk, "disk", call),
      network = check_host_bytes(network, "network", call),
      failures = check_at_least_0(failures, "failures", call),
      restart = check_at_least_0(restart, "restart", call)
    ),
    class = "fsknn_hosts"
  )
}

#' @export
print.fsknn_hosts <- function(x, ...) {
  cat("Hosts of a plan\n")
  utils::str(unclass(x), no.list = TRUE, give.attr = FALSE)
  invisible(x)
}

# Returns the checked facts of the hosts, or NULL for one process.
check_hosts <- function(hosts, call = caller_env()) {
  if (is.null(hosts)) {
    return(NULL)
  }
  if (!inherits(hosts, "fsknn_hosts")) {
    hosts <- new_hosts(hosts, call = call)
  }
  unclass(hosts)
}

# Returns Inf if the value is not given: capacity or speed is then unlimited.
check_host_bytes <- function(value, arg, call) {
  if (is.null(value) || identical(value, Inf)) {
    return(Inf)
  }
  check_bytes(value, arg, call)
}

check_at_least_0 <- function(value, arg, call) {
  good <- is.numeric(value) && !is.object(value) && length(value) == 1 &&
    is.finite(value) && value >= 0
  if (!good) {
    given <- describe_value(value)
    abort_argument(
      "{.arg {arg}} must be a number from 0 on, not {given}.", call
    )
  }
  as.double(value)
}

# `asked` holds the options of knn_plan() and its arguments. Returns a backend
# that exists on this machine, whatever the hosts have.
check_planned_hosts <- function(asked, cluster, call = caller_env()) {
  refuse <- function(what, why, hint = NULL) {
    abort_argument(
      c("{.arg {what}} can't be used with {.arg hosts}.", x = why, i = hint),
      call
    )
  }
  given <- function(name) !is.null(asked[[name]])
  if (given("query")) {
    refuse("query", "The plan is of a graph, whose tasks are pairs of blocks of
                     points; queries are dealt out by ranges of their own.")
  }
  if (given("block")) {
    refuse("block", "Searches by block are dealt out by ranges of points, not
                     by pairs of blocks.")
  }
  if (identical(asked$na, "pairwise")) {
    refuse("na", "With {.code na = \"pairwise\"} work is dealt out by ranges of
                  points, not by pairs of blocks.")
  }
  if (given("chunk_size")) {
    refuse("chunk_size", "It cuts up the work within a task, and the seconds of
                          the plan are those of the size that is chosen
                          automatically.")
  }
  for (name in c("max_memory", "max_device_memory")) {
    if (given(name)) {
      refuse(name, "It is a limit of this process.",
             "{.arg memory} is what each host may use.")
    }
  }
  if (given("devices")) {
    refuse("devices", "It names GPUs of this machine.",
           "{.arg devices_per_host} says how many each host has.")
  }
  backend <- (asked$backend %||% "auto")[[1]]
  if (identical(backend, "cuda") && cluster$devices_per_host == 0) {
    abort_argument(
      c("With {.code backend = \"cuda\"} each host must have a GPU.",
        i = "Say how many with {.arg devices_per_host}."),
      call
    )
  }
  if (identical(backend, "cpu") && cluster$devices_per_host > 0) {
    abort_argument(
      "With {.code backend = \"cpu\"} {.arg devices_per_host} must be 0.", call
    )
  }
  if (isTRUE(backend %in% c("auto", "cuda"))) "cpu" else backend
}

# Returns the rate of a metric. Other metrics were not measured.
rate_of_metric <- function(metric, call) {
  if (!metric %in% names(filter_rates)) {
    known <- quote_metrics(names(filter_rates))
    abort_argument(
      c(
        "A plan of many hosts knows no seconds of metric {.val {metric}}.",
        x = "Its rate was not measured.",
        i = "Measured are {known}."
      ),
      call
    )
  }
  filter_rates[[metric]]
}

# `facts` is list(num_points, num_features, k, metric, sign, weighted,
# num_covariates, num_threads). `compare` also plans for twice the hosts, to
# know whether more of them help.
new_cluster_plan <- function(facts, cluster, call = caller_env(),
                             compare = TRUE) {
  on_gpu <- cluster$devices_per_host > 0
  where <- if (on_gpu) "gpu" else "cpu"
  rate <- rate_of_metric(facts$metric, call)
  workers_a_host <- max(1, cluster$devices_per_host)
  num_workers <- cluster$hosts * workers_a_host
  n <- as.double(facts$num_points)
  d <- as.double(facts$num_features)
  cut_for <- function(memory) {
    block_cut(
      n, d, facts$k, num_workers = num_workers, on_gpu = on_gpu,
      num_threads = facts$num_threads,
      slow_to_prepare = facts$metric %in% c("spearman", "bicor"),
      memory = memory, size = check_split_size(call)
    )
  }
  cut <- cut_for(cluster$memory / workers_a_host)
  check_two_points_fit(cut, cluster, workers_a_host, d, facts$k, call)
  tasks <- task_table(cut, facts, num_workers, where, rate)
  one <- min(cluster$network, cluster$disk)
  bytes <- tasks$bytes_read + tasks$bytes_written
  at_work <- min(num_workers, cut$num_tasks)
  # A task takes its own work in sequence. It also takes at least its share of
  # the host's network and of the disk that all share (bounds of a closed
  # queue).
  bounds <- data.frame(
    work = tasks$compute + bytes / one,
    network = bytes * workers_a_host / cluster$network,
    disk = bytes * at_work / cluster$disk
  )
  tasks$seconds <- do.call(pmax, bounds)
  constants <- model_constants("cpu")
  bytes_points <- n * d * 8
  bytes_answer <- n * facts$k * 12
  bytes_host <- workers_a_host * 2 * max(block_sizes(cut)) *
    bytes_in_task(d, facts$k)
  found <- sum(tasks$found)
  steps <- c(
    folder = n * d * constants$value + bytes_points / one,
    tasks = makespan(tasks$seconds, cluster$hosts, workers_a_host),
    collect = found * constants$merge + sum(tasks$bytes_written) / one
  )
  lease <- lease_seconds(call)
  rate_of_failures <- cluster$failures / 3600
  with_failures <- failing_seconds(
    steps[["tasks"]], mean(tasks$seconds), cut$num_tasks, num_workers,
    rate_of_failures, cluster$restart, lease
  )
  seconds <- c(steps, failing = with_failures, all = sum(
    steps[c("folder", "collect")], with_failures
  ))
  more_help <- if (compare) {
    cluster$hosts <- 2 * cluster$hosts
    more <- new_cluster_plan(facts, cluster, call, compare = FALSE)
    cluster$hosts <- cluster$hosts / 2
    more$seconds[["all"]] < 0.95 * seconds[["all"]]
  }
  structure(
    c(
      facts, cluster,
      list(
        backend = if (on_gpu) "cuda" else "cpu", num_workers = num_workers,
        lease = lease,
        num_blocks = cut$num_blocks, block_points = max(block_sizes(cut)),
        cut_by_memory = cut$num_blocks > cut_for(Inf)$num_blocks,
        num_tasks = cut$num_tasks, num_pairs = sum(tasks$pairs),
        bytes_points = bytes_points, bytes_read = sum(tasks$bytes_read),
        bytes_written = sum(tasks$bytes_written),
        bytes_answer = bytes_answer,
        bytes_host = bytes_host,
        bytes_collecting = collecting_bytes(n, bytes_host, bytes_answer),
        waits_for = names(which.max(colSums(bounds[c("network", "disk")]))),
        limited_by = what_limits(
          steps, bounds, mean(tasks$compute), cut$num_tasks, num_workers,
          start_of_task(where)
        ),
        more_help = more_help, seconds = seconds,
        seconds_a_task = c(
          start = start_of_task(where), read = mean(tasks$bytes_read) / one,
          search = mean(tasks$compute) - start_of_task(where),
          write = mean(tasks$bytes_written) / one,
          wait = mean(tasks$seconds - bounds$work),
          all = mean(tasks$seconds)
        ),
        task_seconds = tasks$seconds
      )
    ),
    class = "fsknn_cluster_plan"
  )
}

# Returns the bytes of the host whose call collects. It holds lists of all
# points, first beside its own work and at the end beside the answer.
collecting_bytes <- function(num_points, bytes_host, bytes_answer) {
  lists <- bytes_answer + 4 * num_points
  lists + max(bytes_host, bytes_answer)
}

# Returns the name of the bottleneck. It is "points" (writing the folder),
# "collect", or for the tasks one of these: "disk", "network", "tasks" (fewer
# than workers), "moving" (each worker's own reading and writing), "starting"
# (start and end of each) or "search".
what_limits <- function(seconds, bounds, compute, num_tasks, num_workers,
                        start) {
  longest <- names(which.max(seconds))
  if (longest != "tasks") {
    return(if (longest == "folder") "points" else longest)
  }
  bound <- names(which.max(colSums(bounds)))
  if (bound != "work") {
    bound
  } else if (num_tasks < num_workers) {
    "tasks"
  } else if (mean(bounds$work) > 2 * compute) {
    "moving"
  } else if (start > compute - start) {
    "starting"
  } else {
    "search"
  }
}

check_two_points_fit <- function(cut, cluster, workers_a_host, d, k, call) {
  needed <- workers_a_host * 2 * max(block_sizes(cut)) * bytes_in_task(d, k)
  if (needed <= cluster$memory || cut$num_blocks < cut$num_points - 1) {
    return(invisible())
  }
  needed <- format_bytes(needed)
  abort_argument(
    "{.arg memory} must have room for two points in each worker of a host:
     {needed}.",
    call
  )
}

# Returns a row for each task: points, pairs, pairs found, bytes, and a worker's
# seconds without reading and writing.
#
# The pairs found are, for each point, those of the other block within its k-th
# distance so far. With j blocks seen, that is k / j on average if points are in
# random order. Tasks of a block that run at the same time do not see each
# other.
task_table <- function(cut, facts, num_workers, where, rate) {
  numbers <- seq_len(cut$num_tasks)
  blocks <- blocks_of_tasks(cut, numbers)
  apart <- blocks$a != blocks$b
  size_a <- block_sizes(cut, blocks$a)
  size_b <- ifelse(apart, block_sizes(cut, blocks$b), 0)
  points <- size_a + size_b
  round <- (numbers - 1) %/% cut$num_blocks
  at_once <- min(num_workers, cut$num_tasks) * 2 / cut$num_blocks
  seen <- pmax(2 * round - 1 - pmax(0, at_once - 1), 0)
  of_other <- ifelse(apart, pmin(size_a, size_b), size_a - 1)
  found <- points * pmin(facts$k / pmax(1, seen), of_other)
  pairs <- pairs_of_tasks(cut, numbers)
  constants <- model_constants(where)
  kernel <- kernel_seconds(
    constants, where, points, pairs, pmin(found, 2 * pairs), facts$num_features,
    rate
  )
  threads <- if (where == "gpu") 1 else facts$num_threads
  data.frame(
    points, pairs, found, bytes_read = points * facts$num_features * 8,
    bytes_written = found * 12 + points * 4,
    compute = start_of_task(where) + kernel / threads
  )
}

# Returns the cost of a task besides its work: the folder's files, and a GPU's
# start.
start_of_task <- function(where) {
  of_gpu <- if (where == "gpu") model_constants("gpu")$start else 0
  model_constants("cpu")$start + of_gpu
}

# Returns the total seconds if tasks are assigned in order to the next free
# worker.
makespan <- function(seconds, hosts, workers_a_host) {
  num_workers <- hosts * workers_a_host
  if (length(seconds) <= num_workers) {
    return(max(seconds))
  }
  # With so many tasks, a continuous approximation suffices.
  if (length(seconds) > 1e5) {
    return(sum(seconds) / num_workers + max(seconds) / 2)
  }
  run_cluster(seconds, hosts, workers_a_host)[["seconds"]]
}
