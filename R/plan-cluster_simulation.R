# Simulates many hosts that work in one folder. Hosts claim tasks, fail and come
# back. Leases of dead hosts expire, and their tasks are claimed again. The
# rules are those of the folder.

# Simulates one run. `seconds` has the time of each task. `rate` is the number
# of failures of a running host in a second. `restart` is the time in seconds
# until it is back. `lease` is the time in seconds until a dead worker's task is
# free again.
run_cluster <- function(seconds, hosts, workers_a_host, rate = 0, restart = 0,
                        lease = 0) {
  num_tasks <- length(seconds)
  host_of <- rep(seq_len(hosts), each = workers_a_host)
  task <- integer(length(host_of)) # 0: idle
  ends <- rep(Inf, length(host_of))
  back <- rep(Inf, hosts) # Inf: it is up
  fails <- if (rate > 0) stats::rexp(hosts, rate) else rep(Inf, hosts)
  # Holds tasks of dead workers in the order in which their leases expire. Those
  # after num_seen are not free yet.
  lost <- integer()
  lost_free <- double()
  num_seen <- 0L
  free_again <- integer()
  next_task <- 1L
  done <- 0L
  failures <- 0L
  now <- 0

  # Each idle worker in turn claims the lowest free task.
  idle <- seq_along(host_of)
  repeat {
    for (worker in idle) {
      if (length(free_again) > 0) {
        at <- which.min(free_again)
        claimed <- free_again[[at]]
        free_again <- free_again[-at]
      } else if (next_task <= num_tasks) {
        claimed <- next_task
        next_task <- next_task + 1L
      } else {
        break
      }
      task[[worker]] <- claimed
      ends[[worker]] <- now + seconds[[claimed]]
    }
    first_end <- which.min(ends)
    first_fail <- which.min(fails)
    first_back <- which.min(back)
    expires <- if (num_seen < length(lost)) lost_free[[num_seen + 1]] else Inf
    times <- c(ends[[first_end]], expires, back[[first_back]],
               fails[[first_fail]])
    event <- which.min(times)
    now <- times[[event]]
    if (event == 1L) {
      done <- done + 1L
      if (done == num_tasks) {
        break
      }
      task[[first_end]] <- 0L
      ends[[first_end]] <- Inf
      idle <- first_end
    } else if (event == 2L) {
      num_seen <- num_seen + 1L
      free_again <- c(free_again, lost[[num_seen]])
      idle <- which(task == 0L & is.infinite(back[host_of]))
    } else if (event == 3L) {
      back[[first_back]] <- Inf
      fails[[first_back]] <- now + stats::rexp(1, rate)
      idle <- which(host_of == first_back)
    } else {
      failures <- failures + 1L
      fails[[first_fail]] <- Inf
      back[[first_fail]] <- now + restart
      died <- which(host_of == first_fail & task > 0L)
      lost <- c(lost, task[died])
      lost_free <- c(lost_free, rep(now + lease, length(died)))
      task[died] <- 0L
      ends[died] <- Inf
      idle <- integer()
    }
  }
  c(seconds = now, failures = failures, tasks_again = length(lost))
}

# --- expected time by a formula ----------------------------------------------

# Returns the mean seconds of all tasks with failures. `makespan` is that
# without failures. Each task takes `seconds`, and a worker fails `rate` times
# in a second.
#
# While there are more tasks than workers, a task takes the mean time of a
# renewal process. It consists of attempts until one succeeds, each failed one
# followed by a restart. In the last round, every running task may fail, which
# is noticed a lease later, and may fail again. The last of all these determines
# the end. If the last round has few tasks, some of that overlaps with it.
failing_seconds <- function(makespan, seconds, num_tasks, num_workers, rate,
                            restart, lease) {
  if (rate == 0) {
    return(makespan)
  }
  a_task <- expm1(rate * seconds) * (1 / rate + restart)
  rounds <- max(0, num_tasks / num_workers - 1)
  last <- expected_last(seconds, min(num_workers, num_tasks), rate, lease)
  max(makespan, rounds * a_task + seconds + last)
}

# Returns the mean time beyond `seconds` of the latest of `num_tasks` tasks that
# start together. An attempt fails with the chance that its worker fails. The
# time of failure is exponential, truncated at `seconds`, and the next attempt
# starts a lease later. The chances are computed on a grid of times and summed
# over attempts.
expected_last <- function(seconds, num_tasks, rate, lease, cells = 40) {
  fails <- -expm1(-rate * seconds)
  longest <- seconds + lease
  # Fewer than one run in a million needs more attempts.
  attempts <- ceiling(log(1e-6 / num_tasks) / log(fails))
  step <- max(longest / cells, attempts * longest / 4000)
  count <- max(1, ceiling(attempts * longest / step))
  edges <- seq(0, seconds, length.out = cells + 1)
  mass <- -diff(exp(-rate * edges))
  middle <- edges[-1] - seconds / cells / 2 + lease
  lost <- tabulate_mass(pmax(1, round(middle / step)), mass, count)
  at <- which(lost > 0)
  # begun[i + 1] is the chance that an attempt begins i steps after the first.
  begun <- c(1, numeric(count))
  for (i in seq_len(count)) {
    near <- at[at <= i]
    begun[[i + 1]] <- sum(lost[near] * begun[i - near + 1])
  }
  done <- pmin(1, cumsum(begun) * (1 - fails))
  sum(1 - done^num_tasks) * step
}

tabulate_mass <- function(at, mass, count) {
  sums <- numeric(count)
  for (i in seq_along(at)) {
    if (at[[i]] <= count) {
      sums[[at[[i]]]] <- sums[[at[[i]]]] + mass[[i]]
    }
  }
  sums
}
