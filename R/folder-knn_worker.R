#' Run a worker on the tasks of a search
#'
#' A search with `checkpoint` divides its work into tasks in a folder.
#' `knn_worker()` works on these tasks until all are done. It can run in another
#' process or on another machine that shares the folder, at any time and any
#' number of times.
#'
#' The call that made the folder collects all results, or [knn_collect()] does
#' so later. [knn_status()] reports the progress.
#'
#' @section The folder: The folder holds the points, the request, the claims of
#' workers and the results, as files. No server and no file locks are needed.
#'
#' A worker claims a task by a hard link with the name of the claim, which only
#' one process can create. While it works, it increases a count in that file.
#' Other workers treat a claim as dead if, by their own clocks, its count has
#' not changed for 60 seconds. Then they can take the task. A killed worker of
#' the same user on the same machine is detected at once. So a worker, a machine
#' or the original call can be killed at any time, and only its current task is
#' lost.
#'
#' `options(fsknn.lease_seconds = )`, set where the folder is made, changes the
#' 60 seconds. Use more than twice the time for which the file system may show
#' an old state of a file. For NFS, that is up to 30 seconds by default.
#'
#' Two workers can finish the same task if one of them was only slow. The first
#' result that is linked to the task's name counts. Each result has a digest,
#' and a damaged result is computed again. A failed task is tried three times,
#' and then reported. A failure that another trial cannot repair, such as a
#' distance beyond the range of a double, is reported at once.
#'
#' The file system must support hard links. NFS, Lustre, GPFS and the usual file
#' systems of Linux and macOS do; FAT does not.
#'
#' A worker of another version of fsknn, or one that finds another search in the
#' folder, stops with an error. Keep the folder private: anyone who can write to
#' it could insert false results.
#'
#' @section Schedulers: Make the folder by any search, with `checkpoint` on the
#' shared file system. You may stop this call, or let it work, too. Then start
#' workers. For Slurm:
#' ```
#' sbatch --array=1-100 --cpus-per-task=8 \
#'   --wrap "Rscript -e 'fsknn::knn_worker(\"/scratch/me/search\")'"
#' ```
#' For SGE:
#' ```
#' qsub -t 1-100 -pe smp 8 -b y \
#'   "Rscript -e 'fsknn::knn_worker(\"/scratch/me/search\")'"
#' ```
#' For LSF:
#' ```
#' bsub -J "knn[1-100]" -n 8 -R "span[hosts=1]" \
#'   "Rscript -e 'fsknn::knn_worker(\"/scratch/me/search\")'"
#' ```
#' If MPI starts the processes (they do not communicate):
#' ```
#' mpirun -n 16 Rscript -e 'fsknn::knn_worker("/scratch/me/search")'
#' ```
#' A job that reaches its time limit loses one task; start more jobs then. Or
#' let BiocParallel start the workers, in the call itself: `BPPARAM =
#' BiocParallel::BatchtoolsParam(100, "slurm", template = )`.
#'
#' @param folder The folder of a search: its `checkpoint`.
#' @inheritParams rlang::args_dots_empty
#' @param backend,devices,num_threads As for [knn_search()], for this worker. On
#'   a machine with GPUs, each worker takes one that no other worker has. If a
#'   scheduler gave this process its own GPUs (`CUDA_VISIBLE_DEVICES`), it takes
#'   those. Backend `"auto"` takes the CPU if no GPU is free.
#' @param max_tasks The largest number of tasks to do. `NULL` (default): all.
#' @param wait `TRUE` (default) stays while other workers are active, and takes
#'   over tasks that they do not finish. `FALSE` ends when no task is left to
#'   begin.
#'
#' @returns The number of tasks that this worker did, invisibly. If a task fails
#'   for good, the error is that of the search.
#' @seealso [knn_collect()], [knn_status()]; the section "Checkpoints" of
#'   [run_options()]; the vignette "method" for why the answer is exact.
#' @export
#' @examples
#' x <- matrix(rnorm(300 * 12), nrow = 300)
#' folder <- tempfile()
#' options(fsknn.split_size = 60) # for tasks so small
#' nn <- knn_search(x, k = 3, checkpoint = folder)
#' knn_status(folder)
#'
#' # somebody else's part is lost, and done again
#' file.remove(file.path(folder, "fsknn-task-000007"))
#' knn_worker(folder, num_threads = 1)
#' identical(knn_collect(folder), nn)
#' unlink(folder, recursive = TRUE)
#' options(fsknn.split_size = NULL)
knn_worker <- function(folder, ..., backend = c("auto", "cuda", "cpu"),
                       devices = NULL, num_threads = NULL, max_tasks = NULL,
                       wait = TRUE) {
  check_no_more(...)
  check_supplied(folder)
  check_flag(wait, "wait")
  call <- current_env()
  if (!is.null(max_tasks)) {
    max_tasks <- check_whole_number(
      max_tasks, "max_tasks", 1, .Machine$integer.max
    )
  }
  num_threads <- check_num_threads(num_threads)
  job <- join_folder(folder, "folder", NULL, call)
  on.exit(end_work(job$work))
  job$request <- request_of_worker(
    job$request, backend, devices, num_threads, call
  )
  worked <- work_in_folder(job, wait = wait, most = max_tasks %||% Inf,
                           call = call)
  if (!is.null(worked$failure)) {
    raise_job_failure(job, worked$failure, call)
  }
  invisible(worked$done)
}

# Returns the request with the backend, devices and threads of this worker.
request_of_worker <- function(request, backend, devices, num_threads, call) {
  chosen <- choose_backend(backend, devices, call = call)
  automatic <- is_automatic(devices = devices, backend = backend)
  if (chosen$name == "cuda" && automatic && is_within(request) &&
        !cpp_cuda_finds_within(request)) {
    chosen <- list(name = "cpu", devices = integer())
  }
  if (chosen$name == "cuda") {
    got <- tryCatch(
      claim_host_devices(chosen$devices), error = function(err) err
    )
    if (!inherits(got, "error")) {
      chosen$devices <- got
    } else if (automatic) {
      chosen <- list(name = "cpu", devices = integer())
    } else {
      cli_abort(
        "{conditionMessage(got)}",
        class = c("fsknn_backend_error", "fsknn_error"), call = call
      )
    }
  }
  request$backend <- chosen$name
  request$devices <- chosen$devices
  request$num_threads <- num_threads
  request
}

# Prepares an existing folder for work: see open_folder(). `lent` is
# list(values, queries) if this process already has them.
join_folder <- function(folder, arg, lent, call) {
  check_folder_name(folder, arg, call)
  if (!dir.exists(folder)) {
    abort_no_search(folder, arg, "There is no such folder here.", call)
  }
  job <- new_job(folder, arg)
  known <- read_search_text(job, call)
  if (is.null(known)) {
    abort_no_search(folder, arg, "There is no search in it.", call)
  }
  check_version(job, known, call)
  know_search(job, known)
  parts <- wait_for_parts(job, lent, call)
  job$lease_seconds <- parts$lease_seconds
  job$search <- parts$search
  job$work <- list(
    values = parts$values, queries = parts$queries, request = parts$request,
    num_rows = parts$num_rows, plan = job$plan,
    held = new.env(parent = emptyenv())
  )
  job$request <- parts$request
  job$request$progress <- FALSE
  job$request$watch <- NULL
  job
}

abort_no_search <- function(folder, arg, why, call) {
  cli_abort(
    c(
      "The folder {.file {folder}} of {.arg {arg}} holds no work.",
      x = why,
      i = "A search makes it, by its {.arg checkpoint}."
    ),
    class = c("fsknn_checkpoint_error", "fsknn_error"),
    call = call
  )
}

check_version <- function(job, known, call) {
  here <- package_version_text()
  there <- known[["version"]]
  if (identical(here, there)) {
    return(invisible())
  }
  cli_abort(
    c(
      "The folder {.file {job$given}} of {.arg {job$arg}} is that of another
       version of fsknn.",
      x = "It was made by version {there}, and this is {here}.",
      i = "All who work in a folder have the same."
    ),
    class = c("fsknn_checkpoint_error", "fsknn_error"),
    call = call
  )
}

# The call that makes the folder may still be writing. It is alive as long as
# its files grow.
wait_for_parts <- function(job, lent, call) {
  began <- cpp_steady_seconds()
  written <- 0
  repeat {
    parts <- read_work(job, call)
    if (!is.null(parts)) {
      rows <- if (is.null(lent)) {
        list(
          points = read_point_rows(job, "points", parts$points, call),
          query = read_point_rows(job, "query", parts$query, call)
        )
      } else {
        list(points = list(values = lent$values),
             query = list(values = lent$queries))
      }
      if (!any(vapply(rows, is.null, NA))) {
        if (asks_triples(parts$request)) {
          parts$request$triples$most <- most_triples(parts$search)
        }
        parts$values <- rows$points$values
        parts["queries"] <- list(rows$query$values)
        return(hold_in_memory(parts, job, call))
      }
    }
    sizes <- file.size(list.files(
      job$folder, paste0(unfinished_file, "$"), full.names = TRUE
    ))
    if (!identical(sizes, written)) {
      written <- sizes
      began <- cpp_steady_seconds()
    }
    if (cpp_steady_seconds() - began > job$lease_seconds) {
      abort_unreadable(
        job,
        "It is not complete, and nobody completes it: the call that made it was
         ended.", call, mended_by_search
      )
    }
    cpp_wait(0.1)
  }
}

# Splits of rows and stages read all points each time: from memory, if they fit.
# Block pairs read their two blocks from the file.
hold_in_memory <- function(parts, job, call) {
  if (job$plan$kind != "pairs") {
    for (name in c("values", "queries")) {
      parts[name] <- list(rows_in_memory(parts[[name]], job, call))
    }
  }
  parts
}

rows_in_memory <- function(values, job, call) {
  fits <- inherits(values, "point_file") && !values$prepared &&
    8 * prod(values$size) <= free_memory() / 3
  if (!fits) {
    return(values)
  }
  in_files(cpp_read_points(values), job, call)$values
}
