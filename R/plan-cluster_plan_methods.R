# Methods for plans of many hosts: print, data frame and simulation.

#' @method format fsknn_cluster_plan
#' @export
format.fsknn_cluster_plan <- function(x, ...) {
  number <- function(value) format_count(round(value))
  workers <- if (x$backend == "cuda") {
    tally(x$devices_per_host, "GPU")
  } else {
    tally(x$num_threads, "thread")
  }
  a_second <- function(bytes) {
    if (!is.finite(bytes)) {
      return("not counted")
    }
    paste(format_bytes(bytes), "a second")
  }
  memory <- if (is.finite(x$memory)) paste(" of", format_bytes(x$memory))
  a_task <- x$seconds_a_task
  lines <- c(
    "Hosts" = paste0(number(x$hosts), ", each with ", workers),
    "Metric" = describe_metric(
      x$metric, x$sign, x$weighted, x$num_covariates
    ),
    "Neighbours (k)" = number(x$k),
    "Points (n)" = number(x$num_points),
    "Features (d)" = number(x$num_features),
    "Blocks of points" = paste0(
      number(x$num_blocks), " of ", number(x$block_points),
      if (x$cut_by_memory) {
        paste0(
          ", by options(fsknn.split_size = ",
          format(x$block_points, scientific = FALSE), ")"
        )
      }
    ),
    "Tasks (pairs of blocks)" = number(x$num_tasks),
    "Pairs of points" = number(x$num_pairs),
    "Memory, each host" = paste0(format_bytes(x$bytes_host), memory),
    "Memory, the collecting host" = paste0(
      format_bytes(x$bytes_collecting), memory,
      if (x$bytes_collecting > x$memory) {
        paste0(
          ": too much; knn_collect() alone takes ",
          format_bytes(collecting_bytes(x$num_points, 0, x$bytes_answer))
        )
      }
    ),
    "Folder, points" = format_bytes(x$bytes_points),
    "Folder, results" = format_bytes(x$bytes_written),
    "Read by all tasks" = format_bytes(x$bytes_read),
    "Answer" = format_bytes(x$bytes_answer),
    "Shared disk" = a_second(x$disk),
    "Network of each host" = a_second(x$network),
    "Time, points into the folder" = format_seconds(x$seconds[["folder"]]),
    "Time, a task" = paste0(
      format_seconds(a_task[["all"]]), " (read ",
      format_seconds(a_task[["read"]]), ", search ",
      format_seconds(a_task[["search"]]), ", write ",
      format_seconds(a_task[["write"]]), ", start and end ",
      format_seconds(a_task[["start"]]),
      if (a_task[["wait"]] > 0) {
        paste0(
          ", wait for the ",
          if (x$waits_for == "disk") "shared disk " else "host's network ",
          format_seconds(a_task[["wait"]])
        )
      },
      ")"
    ),
    "Time, all tasks" = format_seconds(x$seconds[["tasks"]]),
    if (x$failures > 0) {
      c("Time, with failures" = paste0(
        format_seconds(x$seconds[["failing"]]), " (each host ",
        format(x$failures, digits = 3), " times an hour, back after ",
        format_seconds(x$restart), ")"
      ))
    },
    "Time, results collected" = format_seconds(x$seconds[["collect"]]),
    "Time, whole" = format_seconds(x$seconds[["all"]]),
    "Limited by" = describe_limit(x$limited_by, x$more_help)
  )
  paste0(format(paste0(names(lines), ":")), " ", lines)
}

# Describes the bottleneck and whether more hosts help: that is, whether a plan
# with twice as many takes less than 95% of the time. More hosts divide the
# points into more blocks, and each block is read once for each other block.
describe_limit <- function(limit, more_help) {
  more_tasks <- ", since they make more and smaller tasks"
  what <- switch(
    limit,
    disk = "the shared disk", network = "the network of each host",
    moving = "reading and writing by each worker",
    tasks = "the number of tasks",
    starting = "the start and end of tasks, which take the same however small",
    points = "writing the points into the folder, by one process",
    collect = "collecting the results, by one process", search = "the search"
  )
  paste0(what, if (more_help) {
    "; more hosts help"
  } else {
    paste0("; more hosts do not help", switch(
      limit,
      disk = , network = , moving = paste0(
        more_tasks, ", which read more in all"
      ),
      tasks = ", and would have nothing to do",
      search = , starting = more_tasks
    ))
  })
}

#' @export
print.fsknn_cluster_plan <- function(x, ...) {
  cat("kNN plan of many hosts", format(x), sep = "\n")
  invisible(x)
}

#' @rdname results
#' @method as.data.frame fsknn_cluster_plan
#' @export
as.data.frame.fsknn_cluster_plan <- function(x, row.names = NULL,
                                             optional = FALSE, ...) {
  check_no_more(...)
  check_unused(row.names, optional)
  row <- one_row(unclass(x))
  seconds <- as.list(x$seconds)
  names(seconds) <- paste0("seconds_", names(seconds))
  cbind(row, as.data.frame(seconds))
}

#' Simulate a search by many hosts
#'
#' Simulates the plan of a search by many hosts (`knn_plan(hosts = )`). Each
#' worker claims the free task with the lowest number, works for the seconds
#' that the plan assumes, and claims the next one. No search is run, and no file
#' is written.
#'
#' @details
#' Hosts fail at random, at intervals of an exponential distribution, with
#' `failures` per hour of work on average. A host that fails loses its tasks in
#' progress and returns after `restart` seconds. The lease of a lost task
#' expires after `options(fsknn.lease_seconds = )` seconds (60 by default). Then
#' the next free worker claims the task.
#'
#' The random numbers are those of R: call [set.seed()] first to repeat the same
#' runs.
#'
#' @param object A plan for many hosts, from [knn_plan()].
#' @param nsim Number of runs, a whole number from 1; 1 by default.
#' @param seed Must be `NULL`: call [set.seed()] instead.
#' @param ... Must be empty.
#'
#' @returns A data frame of class `fsknn_simulation`, which prints as a summary.
#'   It has one row for each run and the columns
#'   * `seconds`: from the first claim to the last result, without making the
#'     folder and without collecting the results;
#'   * `failures`: the number of failures of hosts;
#'   * `tasks_again`: the number of tasks that were lost with their worker and
#'     started again.
#' @section Errors:
#' A wrong argument is an error of class `fsknn_argument_error`. So is a plan
#' with a task that takes more than three times the mean time between failures.
#' A host would hardly ever complete it.
#' @seealso [knn_plan()], whose `seconds` come from a formula for the same.
#' @importFrom stats simulate
#' @method simulate fsknn_cluster_plan
#' @export
#' @examples
#' hosts <- host_options(20, failures = 0.5)
#' plan <- knn_plan(c(2e6, 1000), k = 20, hosts = hosts, num_threads = 8)
#' plan
#' runs <- simulate(plan, nsim = 5)
#' runs
#' summary(runs$seconds)
simulate.fsknn_cluster_plan <- function(object, nsim = 1, seed = NULL, ...) {
  check_no_more(...)
  nsim <- check_whole_number(nsim, "nsim", 1, 1e6)
  if (!is.null(seed)) {
    abort_argument(c(
      "{.arg seed} must be NULL.",
      i = "Call {.code set.seed()} before {.code simulate()}."
    ))
  }
  rate <- object$failures / 3600
  longest <- max(object$task_seconds)
  if (rate * longest > 3) {
    between <- format_seconds(1 / rate)
    task <- format_seconds(longest)
    abort_argument(c(
      "Tasks must be shorter than three times the time between failures of a
       host.",
      x = "A task takes {task}, and a host fails every {between} of work."
    ))
  }
  runs <- vapply(seq_len(nsim), function(run) {
    run_cluster(
      object$task_seconds, object$hosts, max(1, object$devices_per_host),
      rate, object$restart, object$lease
    )
  }, c(seconds = 0, failures = 0, tasks_again = 0))
  structure(
    as.data.frame(t(runs)),
    class = c("fsknn_simulation", "data.frame"),
    hosts = object$hosts, num_tasks = object$num_tasks
  )
}

#' @export
print.fsknn_simulation <- function(x, ...) {
  wanted <- c("seconds", "failures", "tasks_again")
  if (!all(wanted %in% names(x)) || nrow(x) == 0) {
    return(NextMethod())
  }
  spread <- function(values, words) {
    if (length(unique(values)) == 1) {
      return(words(values[[1]]))
    }
    paste0(
      words(mean(values)), " (", words(min(values)), " to ",
      words(max(values)), ")"
    )
  }
  count <- function(value) format_count(round(value, 1))
  lines <- c(
    "Simulated runs" = format_count(nrow(x)),
    "Hosts" = format_count(attr(x, "hosts")),
    "Tasks" = format_count(attr(x, "num_tasks")),
    "Time, all tasks" = spread(x$seconds, format_seconds),
    "Failures of hosts" = spread(x$failures, count),
    "Tasks begun again" = spread(x$tasks_again, count)
  )
  cat(paste0(format(paste0(names(lines), ":")), " ", lines), sep = "\n")
  invisible(x)
}
