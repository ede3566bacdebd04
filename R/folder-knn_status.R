#' Progress of a search in a folder
#'
#' Reports which tasks of a search in a folder are done (see [knn_worker()]),
#' which workers are active, and how long the rest will take.
#'
#' @inheritParams knn_worker
#'
#' @returns A list of class `fsknn_status`, with a print method:
#'   * `folder`, and `made_by`: the metric, k, points and features of the
#'     search;
#'   * `tasks`: a named vector of `done`, `at_work`, `failed`, `left` and `all`.
#'     A task is `failed` after three trials, or after one if another trial
#'     would not help. `left` counts tasks that nobody has begun, or whose
#'     worker is gone;
#'   * `workers`: a data frame with a row for each claim: `task`, `host`,
#'     `process`, `trial` (1, unless others began the task before), `silent` and
#'     `gone`. `silent` is the time since its last sign in seconds, by the clock
#'     of the file system. `gone` is `TRUE` if the process is known to have
#'     ended. `host` and `process` are `NA` if the claim is damaged;
#'   * `done_by`: a data frame with a row for each `host` and `process` that
#'     finished tasks. `tasks` is their number, and `seconds` the average time
#'     of a task;
#'   * `seconds_left`: the time that the rest needs with the present number of
#'     workers. It is `NA` if there is no worker, or no finished task.
#' @seealso [knn_worker()], [knn_collect()]
#' @export
#' @examples
#' x <- matrix(rnorm(100 * 12), nrow = 100)
#' folder <- tempfile()
#' edges <- knn_graph(x, k = 3, checkpoint = folder)
#' knn_status(folder)
#' unlink(folder, recursive = TRUE)
knn_status <- function(folder, ...) {
  check_no_more(...)
  check_supplied(folder)
  call <- current_env()
  job <- join_folder(folder, "folder", NULL, call)
  state <- look_at_folder(job, call)
  workers <- who_works(job, state)
  failed <- !state$done & (state$final | state$failures >= most_trials)
  at_work <- length(unique(workers$task[!workers$gone]))
  all <- length(state$done)
  done_by <- who_worked(job, state)
  left <- all - sum(state$done) - sum(failed)
  structure(
    list(
      folder = folder,
      made_by = list(
        metric = job$work$request$metric, k = job$work$request$k %||% NA,
        triples = if (asks_triples(job$work$request)) {
          describe_asked(job$work$request)
        },
        num_points = nrow(job$work$values),
        num_features = ncol(job$work$values)
      ),
      tasks = c(
        done = sum(state$done), at_work = at_work, failed = sum(failed),
        left = left - at_work, all = all
      ),
      workers = workers, done_by = done_by,
      seconds_left = if (left == 0) {
        0
      } else if (at_work == 0 || nrow(done_by) == 0) {
        NA_real_
      } else {
        left * stats::weighted.mean(done_by$seconds, done_by$tasks) / at_work
      }
    ),
    class = "fsknn_status"
  )
}

# The table is built by columns: one data frame for each of many rows takes
# seconds.
who_works <- function(job, state) {
  tasks <- which(!state$done & state$generation > 0)
  paths <- claim_file(job, tasks, state$generation[tasks])
  texts <- lapply(paths, claim_text)
  silent <- as.double(time_of_folder(job) - file.mtime(paths), units = "secs")
  # The other claims were deleted since the folder was listed.
  there <- which(!vapply(texts, is.null, NA) & !is.na(silent))
  texts <- vapply(texts[there], identity, "")
  facts <- lapply(texts, claim_facts)
  silent <- silent[there]
  host <- vapply(facts, `[[`, "", "host")
  process <- vapply(facts, `[[`, "", "process")
  damaged <- host == "" | process == ""
  host[damaged] <- NA
  process[damaged] <- NA
  data.frame(
    task = tasks[there], host = host, process = process,
    trial = state$generation[tasks[there]], silent = pmax(0, silent),
    gone = are_processes_gone(texts) | silent > job$lease_seconds
  )
}

# Uses the clock that sets the times of files in this folder.
time_of_folder <- function(job) {
  path <- job_file(job, paste0("aside-", random_word()))
  on.exit(unlink(path, expand = FALSE))
  made <- suppressWarnings(file.create(path))
  if (made) file.mtime(path) else Sys.time()
}

who_worked <- function(job, state) {
  rows <- all_receipts(job, which(state$done))
  rows <- rows[rows$whole, ]
  who <- match(
    paste(rows$process, rows$host), unique(paste(rows$process, rows$host))
  )
  first <- !duplicated(who)
  data.frame(
    host = rows$host[first], process = rows$process[first],
    tasks = tabulate(who, sum(first)),
    seconds = as.vector(tapply(rows$seconds, factor(who), mean))
  )
}

# Most of the time of a status is spent on opening a file for each task. The
# session therefore keeps the receipts of the last folder and reads only those
# that are new or changed.
all_receipts <- function(job, tasks) {
  files <- job_file(job, sprintf("receipt-%06d", tasks))
  written <- as.double(file.mtime(files))
  # A worker may not have written its receipt yet, or never write it.
  there <- !is.na(written)
  key <- paste(job$print, files, sprintf("%.9f", written))[there]
  new <- !key %in% session$receipts$key
  rows <- rbind(
    session$receipts,
    read_receipts(job, tasks[there][new], files[there][new], key[new])
  )
  session$receipts <- rows[match(key, rows$key), ]
  session$receipts
}

read_receipts <- function(job, tasks, files, key) {
  types <- list(
    seconds = double(), ended = double(), process = integer(), host = raw()
  )
  sizes <- c(1, 1, 1, NA)
  rows <- lapply(seq_along(files), function(at) {
    cpp_read_sealed(
      files[[at]], "receipt", tasks[[at]], job$print, types, sizes
    )[["columns"]]
  })
  whole <- lengths(rows) > 0
  of_whole <- function(column, value) {
    values <- rep(value, length(rows))
    values[whole] <- vapply(rows[whole], column, value)
    values
  }
  data.frame(
    key = key, whole = whole,
    host = of_whole(function(row) rawToChar(row$host), ""),
    process = of_whole(function(row) row$process, NA_integer_),
    seconds = of_whole(function(row) row$seconds, NA_real_),
    row.names = NULL
  )
}

#' @method format fsknn_status
#' @export
format.fsknn_status <- function(x, ...) {
  made <- x$made_by
  tasks <- x$tasks
  k <- if (!is.null(made$triples)) {
    paste("triples", made$triples)
  } else if (is.na(made$k)) {
    "all within a distance"
  } else {
    paste("k =", format_count(made$k))
  }
  lines <- c(
    paste0("Work in ", x$folder),
    paste0(
      tally(made$num_points, "point"), " of ",
      tally(made$num_features, "feature"), ", ", made$metric, ", ", k
    ),
    paste0(
      "Tasks: ", format_count(tasks[["done"]]), " of ",
      format_count(tasks[["all"]]), " done, ",
      format_count(tasks[["at_work"]]), " at work, ",
      format_count(tasks[["left"]]), " left",
      if (tasks[["failed"]] > 0) {
        paste0(", ", format_count(tasks[["failed"]]), " failed")
      }
    )
  )
  lines <- c(lines, format_workers(x))
  c(lines, if (is.na(x$seconds_left)) {
    "Ready: unknown"
  } else if (x$seconds_left == 0) {
    "Ready"
  } else {
    paste("Ready: in about", format_seconds(x$seconds_left))
  })
}

format_workers <- function(x) {
  at_work <- x$workers
  c(
    sprintf(
      "  task %d: %s, %s%s", at_work$task,
      ifelse(
        is.na(at_work$process), "a damaged claim",
        paste("process", at_work$process, "on", at_work$host)
      ),
      ifelse(
        at_work$gone, "gone",
        paste("last sign", format_seconds(at_work$silent), "ago")
      ),
      ifelse(at_work$trial > 1, paste0(", trial ", at_work$trial), "")
    ),
    sprintf(
      "  process %d on %s did %s, %s each", x$done_by$process, x$done_by$host,
      vapply(x$done_by$tasks, tally, "", "task"),
      format_seconds(x$done_by$seconds)
    )
  )
}

#' @export
print.fsknn_status <- function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}
