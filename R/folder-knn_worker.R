#' Work in a folder, as one of any number of workers
#'
#' A search with `checkpoint` cuts its work into tasks in a folder.
#' `knn_worker()` does tasks of it until all are done: in another process, on
#' another machine that shares the folder, as often and whenever one likes,
#' whatever starts it.
#' The call that made the folder collects what all of them find, or
#' [knn_collect()] does so later; [knn_status()] says how far it is.
#'
#' @section The folder:
#' It holds the points, what is asked for, who works on what, and what is done,
#' as files; nothing else is needed: no server, no locks of the file system. A
#' worker claims a task by a link to the claim's name, which one alone can make,
#' and counts up in that file while it works. A claim whose count stood still
#' for 60 seconds, by the clock of who looks, is dead, and the task is for
#' others (`options(fsknn.lease_seconds = )`, where the folder is made, sets
#' another time; it should be more than twice as long as the file system may
#' show an old state of a file, which NFS does for up to 30 seconds by default).
#' On its own machine a worker of the same user that was killed is known at
#' once. So a worker, a machine or the call that made the folder may be killed
#' at any moment and loses no more than the task that it was at.
#'
#' A worker that was only slow may find its task done by another: the first
#' result that is linked to the task's name is the one that counts. Each result
#' has a digest, and is read only where that agrees; what is damaged is done
#' again. A task that fails is tried three times, and then the failure is told;
#' one that no other trial would mend, such as a distance beyond the range of a
#' double, is told at once. The file system must have hard links (NFS, Lustre,
#' GPFS and what Linux and macOS have on their disks do; FAT has not).
#'
#' A worker of another version of fsknn, or one that finds another search in the
#' folder, is refused. Whoever may write to the folder could make files that are
#' believed: keep it for yourself.
#'
#' @section Schedulers:
#' Make the folder by any search, with `checkpoint` on the shared file system;
#' the call may be ended then, or stay, and works too. Then, for Slurm,
#' ```
#' sbatch --array=1-100 --cpus-per-task=8 \
#'   --wrap "Rscript -e 'fsknn::knn_worker(\"/scratch/me/search\")'"
#' ```
#' for SGE,
#' ```
#' qsub -t 1-100 -pe smp 8 -b y \
#'   "Rscript -e 'fsknn::knn_worker(\"/scratch/me/search\")'"
#' ```
#' for LSF,
#' ```
#' bsub -J "knn[1-100]" -n 8 -R "span[hosts=1]" \
#'   "Rscript -e 'fsknn::knn_worker(\"/scratch/me/search\")'"
#' ```
#' and, where MPI is what starts processes (they need not speak to each other),
#' ```
#' mpirun -n 16 Rscript -e 'fsknn::knn_worker("/scratch/me/search")'
#' ```
#' Jobs that a time limit ends lose one task each; start more of them. Or let
#' BiocParallel start them: `BPPARAM = BiocParallel::BatchtoolsParam(100,
#' "slurm", template = )` in the call itself.
#'
#' @param folder The folder of a search: its `checkpoint`.
#' @inheritParams rlang::args_dots_empty
#' @param backend,devices,num_threads As for [knn_search()], for this worker. On
#'   a machine with GPUs each worker takes one that no other one has, or, where
#'   a scheduler gave this process GPUs of its own (`CUDA_VISIBLE_DEVICES`),
#'   those; backend `"auto"` takes the CPU where none is left.
#' @param max_tasks End after as many tasks; `NULL` (default): do all.
#' @param wait `TRUE` (default) stays while others work on what is left, to do
#'   what they do not; `FALSE` ends when nothing is left to begin.
#'
#' @returns The number of tasks that this worker did, invisibly. A failure that
#'   ended the work is the error that it would be in the search.
#' @seealso [knn_collect()], [knn_status()]; the section "Checkpoints" of
#'   [knn_search()]; the vignette "method" for why the answer is exact.
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
