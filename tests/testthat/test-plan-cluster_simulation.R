test_that("without failures a simulation is the plan, to the last bit", {
  withr::local_options(fsknn.split_size = 1000)
  plan <- knn_plan(c(20000, 100), k = 10, hosts = 6, num_threads = 2)
  runs <- simulate(plan, nsim = 3)
  expect_identical(runs$seconds, rep(plan$seconds[["tasks"]], 3))
  expect_identical(runs$failures, c(0, 0, 0))
  expect_identical(runs$tasks_again, c(0, 0, 0))
  expect_identical(plan$seconds[["failing"]], plan$seconds[["tasks"]])
})

test_that("tasks that are alike take whole rounds", {
  for (tasks in c(1, 5, 12, 13)) {
    for (hosts in c(1, 3, 12)) {
      for (workers in 1:2) {
        expect_equal(
          run_cluster(rep(7, tasks), hosts, workers)[["seconds"]],
          7 * ceiling(tasks / hosts / workers)
        )
      }
    }
  }
})

# The worker that is free first takes the next task.
list_schedule <- function(seconds, workers) {
  free <- numeric(workers)
  for (task in seconds) {
    first <- which.min(free)
    free[[first]] <- free[[first]] + task
  }
  max(free)
}

test_that("tasks that differ are dealt out in their order", {
  set.seed(1)
  for (run in 1:20) {
    seconds <- rexp(30)
    for (workers in c(1, 4, 7)) {
      expect_equal(
        run_cluster(seconds, workers, 1)[["seconds"]],
        list_schedule(seconds, workers)
      )
    }
  }
})

test_that("one host that fails takes the time of a renewal process", {
  # A worker's task consists of attempts of exponential length until one lasts
  # `seconds`. Each other attempt is followed by a restart, or by the lease if
  # that is longer.
  seconds <- 100
  rate <- 1 / 150
  set.seed(2)
  naive <- replicate(4000, {
    now <- 0
    repeat {
      life <- rexp(1, rate)
      if (life >= seconds) break
      now <- now + life + 40
    }
    now + seconds
  })
  runs <- replicate(4000, run_cluster(
    seconds, 1, 1, rate = rate, restart = 40, lease = 10
  )[["seconds"]])
  known <- expm1(rate * seconds) * (1 / rate + 40)
  error <- sqrt(var(runs) / length(runs))
  expect_lt(abs(mean(runs) - known), 5 * error)
  expect_lt(abs(mean(naive) - known), 5 * error)
})

# Simulates in steps of time, without events and queues.
naive_cluster <- function(seconds, hosts, workers, rate, restart, lease, step) {
  host <- rep(seq_len(hosts), each = workers)
  task <- integer(length(host))
  left <- numeric(length(host))
  down <- numeric(hosts)
  state <- rep("free", length(seconds))
  wait <- numeric(length(seconds))
  now <- 0
  while (any(state != "done")) {
    for (w in which(task == 0 & down[host] <= 0)) {
      free <- which(state == "free")
      if (length(free) > 0) {
        task[w] <- free[1]
        left[w] <- seconds[free[1]]
        state[free[1]] <- "claimed"
      }
    }
    now <- now + step
    waiting <- state == "lost"
    wait[waiting] <- wait[waiting] - step
    state[waiting & wait <= 0] <- "free"
    up <- down <= 0
    down <- down - step
    for (h in which(up & runif(hosts) < -expm1(-rate * step))) {
      down[h] <- restart
      for (w in which(host == h & task > 0)) {
        state[task[w]] <- "lost"
        wait[task[w]] <- lease
        task[w] <- 0
      }
    }
    left <- left - step
    for (w in which(task > 0 & left <= step / 1e6)) {
      state[task[w]] <- "done"
      task[w] <- 0
    }
  }
  now
}

test_that("with failures it is a simulation by small steps, on average", {
  set.seed(3)
  seconds <- rep(c(20, 30), 8)
  runs <- 300
  ours <- replicate(runs, run_cluster(
    seconds, 3, 2, rate = 1 / 100, restart = 15, lease = 25
  )[["seconds"]])
  naive <- replicate(runs, naive_cluster(
    seconds, 3, 2, rate = 1 / 100, restart = 15, lease = 25, step = 0.5
  ))
  error <- sqrt((var(ours) + var(naive)) / runs)
  # Half a step is added to each lost attempt.
  expect_lt(abs(mean(ours) - mean(naive)), 4 * error + 2)
})

test_that("the formula is near the mean of simulations", {
  set.seed(4)
  for (case in list(c(60, 100, 10), c(60, 300, 100), c(120, 45, 45))) {
    seconds <- case[[1]]
    tasks <- case[[2]]
    hosts <- case[[3]]
    rate <- 1 / 1800
    runs <- replicate(60, run_cluster(
      rep(seconds, tasks), hosts, 1, rate, restart = 100, lease = 60
    )[["seconds"]])
    formula <- failing_seconds(
      seconds * ceiling(tasks / hosts), seconds, tasks, hosts, rate, 100, 60
    )
    expect_lt(abs(formula / mean(runs) - 1), 0.1)
  }
})

test_that("failures cost time, and are counted", {
  withr::local_options(fsknn.split_size = 500)
  plan <- knn_plan(
    c(20000, 100), k = 10, hosts = 6, num_threads = 2, failures = 600,
    restart = 1
  )
  set.seed(5)
  runs <- simulate(plan, nsim = 20)
  expect_gt(sum(runs$failures), 0)
  expect_true(all(runs$tasks_again <= runs$failures))
  expect_gt(mean(runs$seconds), plan$seconds[["tasks"]])
  expect_gt(plan$seconds[["failing"]], plan$seconds[["tasks"]])
  set.seed(5)
  expect_identical(simulate(plan, nsim = 20), runs)
})

test_that("simulated runs print", {
  runs <- structure(
    data.frame(
      seconds = c(100, 200), failures = c(0, 3), tasks_again = c(0, 2)
    ),
    class = c("fsknn_simulation", "data.frame"), hosts = 5L, num_tasks = 1225
  )
  expect_snapshot({
    runs
    runs[1, ]
    runs["seconds"]
  })
})

test_that("wrong simulations are errors", {
  plan <- knn_plan(c(20000, 100), k = 10, hosts = 6, num_threads = 2)
  lost <- plan
  lost$failures <- 7200
  lost$task_seconds <- 10
  expect_messages({
    simulate(plan, nsim = 0)
    simulate(plan, seed = 1)
    simulate(plan, times = 3)
    simulate(lost)
  })
})
