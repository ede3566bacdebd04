hosts_plan <- function(..., x = c(20000, 100), k = 10, hosts = 4,
                       num_threads = 2) {
  given <- list(...)
  of_hosts <- names(given) %in% names(formals(host_options))
  hosts <- do.call(host_options, c(list(hosts), given[of_hosts]))
  args <- list(x, k = k, hosts = hosts, num_threads = num_threads)
  do.call(knn_plan, c(args, given[!of_hosts]))
}

# Computes the model as documented, by a loop over blocks in plain R.
naive_plan <- function(n, d, k, hosts, threads, num_blocks, memory_rate) {
  co <- model_constants("cpu")
  ends <- floor(n * (0:num_blocks) / num_blocks)
  size <- diff(ends)
  depth <- 8 * ceiling(d / 8)
  a_pair <- (co$pair^2.5 + (co$product * depth)^2.5)^0.4
  at_once <- 2 * min(hosts, num_blocks * (num_blocks + 1) / 2) / num_blocks
  total <- c(tasks = 0, pairs = 0, read = 0, written = 0, seconds = 0)
  for (delta in 0:((num_blocks - 1) / 2)) {
    for (a in seq_len(num_blocks)) {
      b <- (a + delta - 1) %% num_blocks + 1
      if (delta == 0) {
        points <- size[a]
        pairs <- size[a] * (size[a] - 1) / 2
        most <- size[a] - 1
      } else {
        points <- size[a] + size[b]
        pairs <- size[a] * size[b]
        most <- min(size[a], size[b])
      }
      seen <- max(0, 2 * delta - 1 - max(0, at_once - 1))
      found <- points * min(most, k / max(1, seen))
      read <- points * d * 8
      written <- found * 12 + points * 4
      compute <- co$start + (
        points * (co$point + co$value * d) + pairs * a_pair +
          min(found, 2 * pairs) * (co$neighbour + co$exact * depth)
      ) / threads
      total <- total + c(
        1, pairs, read, written, compute + (read + written) / memory_rate
      )
    }
  }
  total
}

test_that("a plan of many hosts is what a loop over its blocks says", {
  for (n in c(2000, 20001)) {
    for (size in c(300, 5000)) {
      withr::local_options(fsknn.split_size = size)
      plan <- hosts_plan(x = c(n, 100), network = 1e8)
      naive <- naive_plan(n, 100, 10, 4, 2, plan$num_blocks, 1e8)
      expect_identical(plan$num_blocks %% 2, 1)
      expect_gte(plan$num_blocks, min(ceiling(n / size), n))
      expect_equal(plan$num_tasks, naive[["tasks"]])
      expect_equal(plan$num_pairs, n * (n - 1) / 2)
      expect_equal(plan$num_pairs, naive[["pairs"]])
      expect_equal(plan$bytes_read, naive[["read"]])
      expect_equal(plan$bytes_read, (plan$num_blocks) * n * 800)
      expect_equal(plan$bytes_written, naive[["written"]])
      expect_equal(sum(plan$task_seconds), naive[["seconds"]])
    }
  }
})

test_that("one host alone takes all tasks in turn", {
  withr::local_options(fsknn.split_size = 1000)
  plan <- hosts_plan(hosts = 1)
  expect_equal(plan$seconds[["tasks"]], sum(plan$task_seconds))
  expect_equal(
    plan$seconds[["all"]],
    sum(plan$seconds[c("folder", "tasks", "collect")])
  )
  # If there are at most as many tasks as hosts, the time is that of the
  # longest.
  withr::local_options(fsknn.split_size = 20000)
  plan <- hosts_plan(hosts = 7)
  expect_identical(plan$num_tasks, 1)
  expect_equal(plan$seconds[["tasks"]], plan$task_seconds)
})

test_that("disk and network are no faster than they are told to be", {
  of <- function(...) {
    hosts_plan(x = c(1e6, 1000), hosts = 10, ...)
  }
  plain <- of()
  moved <- plain$bytes_read + plain$bytes_written
  # All hosts share the disk, but each has its own network.
  for (rate in c(1e6, 1e7)) {
    slow <- of(disk = rate)
    expect_gte(slow$seconds[["tasks"]], moved / rate)
    slow <- of(network = rate)
    expect_gte(slow$seconds[["tasks"]], moved / rate / 10)
    expect_lt(slow$seconds[["tasks"]], of(disk = rate)$seconds[["tasks"]])
  }
  expect_equal(of(disk = "1 GB"), of(disk = 1e9))
  expect_gt(of(disk = 1e9)$seconds[["all"]], plain$seconds[["all"]])
})

test_that("waiting for the disk or the network has a name", {
  of <- function(...) {
    hosts_plan(x = c(1e6, 1000), hosts = 100, num_threads = 8, ...)
  }
  parts <- c("start", "read", "search", "write", "wait")
  for (plan in list(
    of(), of(disk = 1e9), of(network = 1e8),
    of(network = 1e8, devices_per_host = 4), of(disk = 1e7, network = 1e8)
  )) {
    expect_equal(sum(plan$seconds_a_task[parts]), plan$seconds_a_task[["all"]])
    shown <- paste(format(plan), collapse = "\n")
    expect_identical(
      grepl("wait for the", shown), plan$seconds_a_task[["wait"]] > 0
    )
  }
  expect_identical(of()$seconds_a_task[["wait"]], 0)
  expect_match(format(of(disk = 1e9)), "wait for the shared disk", all = FALSE)
  expect_match(
    format(of(network = 1e8, devices_per_host = 4)),
    "wait for the host's network", all = FALSE
  )
})

test_that("the plan says what limits the time", {
  limit <- function(hosts, n = 2e6, ...) {
    hosts_plan(x = c(n, 1000), k = 20, hosts = hosts, num_threads = 8, ...)
  }
  expect_identical(limit(2)$limited_by, "search")
  expect_identical(limit(1000)$limited_by, "points")
  # More hosts take longer here because of the disk.
  few <- limit(64, disk = "1 GB")
  many <- limit(1024, disk = "1 GB")
  expect_gt(many$seconds[["all"]], few$seconds[["all"]])
  expect_identical(many$limited_by, "disk")
  expect_match(
    format(many), "Limited by: +the shared disk; more hosts do not help",
    all = FALSE
  )
  expect_identical(
    limit(8, network = 1e7, devices_per_host = 4)$limited_by, "network"
  )
  for (name in c(
    "disk", "network", "moving", "tasks", "points", "collect", "search",
    "starting"
  )) {
    for (help in c(TRUE, FALSE)) {
      expect_true(rlang::is_string(fsknn:::describe_limit(name, help)))
    }
  }
})

test_that("more hosts help where twice as many are predicted faster", {
  for (disk in list(NULL, "1 GB")) {
    for (x in list(c(5000, 300), c(24158, 300), c(1e6, 1000))) {
      plans <- lapply(2^(0:7), function(hosts) {
        hosts_plan(
          x = x, k = 20, hosts = hosts, disk = disk, network = disk %||% Inf,
          num_threads = NULL
        )
      })
      seconds <- vapply(plans, function(plan) plan$seconds[["all"]], 0)
      helped <- vapply(plans, function(plan) plan$more_help, NA)
      expect_identical(helped[-8], seconds[-1] < 0.95 * seconds[-8])
      for (plan in plans) {
        words <- utils::tail(format(plan), 1)
        expect_identical(!grepl("do not help", words), plan$more_help)
        expect_identical(
          grepl("start and end of tasks", words), plan$limited_by == "starting"
        )
      }
    }
  }
  few <- knn_plan(c(24158, 300), 20, hosts = 8)
  expect_identical(few$limited_by, "starting")
})

test_that("the collecting host has room for the answer", {
  plan <- hosts_plan(x = c(1e6, 50), k = 500, memory = "8 GB")
  # Lists take 12 bytes for each neighbour, and the answer takes as many.
  expect_gte(plan$bytes_collecting, 2 * 1e6 * 500 * 12)
  expect_gte(plan$bytes_collecting, plan$bytes_host + 1e6 * 500 * 12)
  expect_lte(plan$bytes_host, 8e9)
  expect_match(
    format(plan), "collecting host: .*too much; knn_collect\\(\\) alone takes",
    all = FALSE
  )
  expect_no_match(format(hosts_plan(memory = "8 GB")), "too much")
})

test_that("memory, GPUs, threads and weights count", {
  withr::local_options(fsknn.split_size = NULL)
  small <- hosts_plan(x = c(1e6, 1000), memory = "1 GB")
  expect_gt(small$num_blocks, hosts_plan(x = c(1e6, 1000))$num_blocks)
  expect_lte(small$bytes_host, 1e9)
  gpus <- hosts_plan(x = c(1e6, 1000), memory = "1 GB", devices_per_host = 2)
  expect_identical(gpus$backend, "cuda")
  expect_identical(gpus$num_workers, 8)
  expect_lte(gpus$bytes_host, 1e9)
  expect_lt(gpus$seconds[["tasks"]], small$seconds[["tasks"]])
  fast <- hosts_plan(x = c(1e5, 1000), num_threads = 8)
  expect_lt(
    fast$seconds[["tasks"]], hosts_plan(x = c(1e5, 1000))$seconds[["tasks"]]
  )
  half <- hosts_plan(weights = rep(c(0, 1, 0, 2), 25))
  expect_identical(half$num_features, 50L)
  expect_true(half$weighted)
  adjusted <- hosts_plan(adjust = ~ age, data = data.frame(age = 1:100))
  expect_identical(adjusted$num_covariates, 1L)
})

# Makes points of which the folder's plan reads only the number.
sized_points <- function(n, d) structure(list(size = c(n, d)), class = "row_file")

test_that("blocks are planned as a folder makes them", {
  withr::local_options(fsknn.split_size = NULL)
  # These are irrelevant here: the makespan is slow for so many tasks, and GPUs
  # depend on the machine.
  local_functions(
    makespan = function(...) 1, memory_for_pair = function(...) Inf
  )
  cut_of_folder <- function(n, d, k, workers, size = NULL, backend = "cpu") {
    work <- list(
      values = sized_points(n, d), num_rows = n,
      request = list(
        k = k, num_threads = 2L, backend = backend, metric = "pearson"
      )
    )
    work$plan <- new_task_plan(
      work, list(long = list(size = size, workers = list(count = workers)))
    )
    expect_identical(work$plan$kind, "pairs")
    cut <- cut_of_work(work)
    c(cut$num_blocks, num_tasks(work), max(block_sizes(cut)))
  }
  cut_of_plan <- function(plan) {
    c(plan$num_blocks, plan$num_tasks, plan$block_points)
  }
  cases <- expand.grid(
    n = c(301, 1e6, 2e7), d = c(10, 20000), k = c(1, 300, 5000),
    hosts = c(1, 16, 30000), gpus = 0:1
  )
  # Every fifth has each two values of two columns together.
  for (row in if (is_long()) 1:108 else seq(1, 108, 5)) {
    case <- as.list(cases[row, ])
    plan <- hosts_plan(
      x = c(case$n, case$d), k = min(case$k, case$n - 1), hosts = case$hosts,
      devices_per_host = case$gpus
    )
    expect_identical(cut_of_plan(plan), cut_of_folder(
      case$n, case$d, plan$k, case$hosts,
      backend = if (case$gpus) "cuda" else "cpu"
    ))
    expect_lte(plan$num_blocks, 201)
    expect_false(plan$cut_by_memory)
  }
  # The results of a task fit, unless there are too many tasks.
  plan <- hosts_plan(x = c(1e6, 10), k = 1000)
  expect_lte(2 * plan$block_points * 20 * 1000, 2^29)
  expect_identical(hosts_plan(x = c(1e7, 10), k = 5000)$num_blocks, 201)
  # For long rows, results are no reason for short tasks.
  expect_identical(
    hosts_plan(x = c(2e7, 15876), k = 200, devices_per_host = 2)$num_blocks,
    hosts_plan(x = c(2e7, 15876), k = 1, devices_per_host = 2)$num_blocks
  )
  # Memory of the hosts limits the blocks, and the suggested option gives the
  # same.
  for (n in c(20000, 1e6, 2e7)) {
    for (memory in c(1e8, 1e9)) {
      plan <- hosts_plan(x = c(n, 100), k = 20, hosts = 16, memory = memory)
      expect_lte(plan$bytes_host, memory)
      size <- if (plan$cut_by_memory) as.integer(plan$block_points)
      expect_identical(cut_of_plan(plan), cut_of_folder(n, 100, 20, 16, size))
    }
  }
  expect_match(
    format(hosts_plan(x = c(2e7, 100), memory = 1e8)),
    "by options\\(fsknn.split_size = [0-9]+\\)$", all = FALSE
  )
})

test_that("metrics by differences have a rate of their own", {
  fast <- hosts_plan(metric = "cosine")
  slow <- hosts_plan(metric = "manhattan")
  expect_gt(slow$seconds[["tasks"]], fast$seconds[["tasks"]])
  expect_identical(hosts_plan(metric = "euclidean")$seconds, fast$seconds)
})

test_that("a plan of many hosts prints, and is a row", {
  plan <- hosts_plan()
  # All numbers are made up, because real ones depend on measurements.
  plan$limited_by <- "search"
  plan$more_help <- TRUE
  plan$seconds[] <- c(12, 3600, 0.5, 4000, 1e6)
  plan$seconds_a_task[] <- c(0.05, 2, 100, 0.25, 0, 103.4)
  shown <- function(...) {
    values <- list(...)
    plan[names(values)] <- values
    plan
  }
  expect_snapshot({
    host_options(2, memory = "1 GB")
    plan
    shown(
      failures = 0.25, devices_per_host = 2L, backend = "cuda", memory = 2^38,
      disk = 1e10, network = 2^30, waits_for = "disk", limited_by = "disk",
      more_help = FALSE,
      seconds_a_task = replace(plan$seconds_a_task, "wait", 1.1)
    )
  })
  row <- as.data.frame(plan)
  expect_identical(nrow(row), 1L)
  expect_identical(row$seconds_all, 1e6)
})

test_that("what is wrong, or not known, is said in words", {
  expect_messages({
    host_options(memory = "1 GB")
    host_options(2, disc = "1 GB")
    knn_plan(c(100, 5), k = 2, hosts = 0)
    knn_plan(c(100, 5), k = 2, hosts = 2.5)
    host_options(2, devices_per_host = -1)
    host_options(2, memory = "much")
    host_options(2, memory = 10)
    host_options(2, disk = 0)
    host_options(2, network = NA)
    host_options(2, failures = -1)
    host_options(2, restart = "soon")
    knn_plan(c(100, 5), k = 2, hosts = 2, query = 5)
    knn_plan(c(100, 5), k = 2, hosts = 2, block = gl(2, 50))
    knn_plan(c(100, 5), k = 2, hosts = 2, na = "pairwise")
    knn_plan(c(100, 5), k = 2, hosts = 2, chunk_size = 100)
    knn_plan(c(100, 5), k = 2, hosts = 2, devices = 1)
    knn_plan(c(100, 5), k = 2, hosts = 2, max_memory = "1 GB")
    knn_plan(c(100, 5), k = 2, hosts = 2, max_device_memory = "1 GB")
    knn_plan(c(100, 5), k = 2, hosts = 2, backend = "cuda")
    knn_plan(
      c(100, 5), k = 2, hosts = host_options(2, devices_per_host = 1),
      backend = "cpu"
    )
    knn_plan(c(100, 5), k = 2, hosts = 2, metric = "canberra")
    knn_plan(c(100, 5), k = 100, hosts = 2)
  })
})

test_that("products of long rows have a rate of their own on GPUs", {
  co <- model_constants("gpu")
  a_pair <- function(d) kernel_seconds(co, "gpu", 0, 1, 0, d)
  of <- function(rate, d) (co$pair^2.5 + (rate * d)^2.5)^0.4
  expect_equal(a_pair(2048), of(co$product, 2048))
  expect_equal(a_pair(4096), of(co$long_product, 4096))
  expect_gt(co$long_product, co$product)
})
