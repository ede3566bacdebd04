# BiocParallel workers: which they are, what they may use, and how they are
# started. Their work is the loop of folder-loop.R.

# Returns NULL, or list(param, count, local, forked, num_threads, groups).
check_workers <- function(BPPARAM, options, num_threads = NULL,
                          call = caller_env()) {
  if (is.null(BPPARAM)) {
    return(NULL)
  }
  if (!methods::is(BPPARAM, "BiocParallelParam")) {
    given <- describe_type(BPPARAM)
    abort_argument(
      c(
        "{.arg BPPARAM} must be one of BiocParallel's parameters, not {given}.",
        i = "For example {.code BiocParallel::SnowParam(4)}; {.code NULL} works
             in this process, with all its threads and GPUs."
      ),
      call
    )
  }
  need_package("BiocParallel", "BPPARAM", call)
  if (methods::is(BPPARAM, "SerialParam")) {
    return(NULL)
  }
  workers <- list(
    param = BPPARAM,
    count = max(1L, as.integer(BiocParallel::bpnworkers(BPPARAM))),
    local = are_local(BPPARAM),
    forked = are_forked(BPPARAM)
  )
  workers$num_threads <- worker_threads(workers, num_threads)
  if (options$backend$name == "cuda") {
    workers$groups <- device_groups(workers, options$backend$devices, call)
  }
  workers
}

are_forked <- function(BPPARAM) {
  methods::is(BPPARAM, "MulticoreParam")
}

# Returns TRUE if all workers are on this machine. For MPI that is unknown.
are_local <- function(BPPARAM) {
  if (are_forked(BPPARAM)) {
    return(TRUE)
  }
  if (!methods::is(BPPARAM, "SnowParam") ||
        !identical(BPPARAM$.clusterargs$type, "SOCK")) {
    return(FALSE)
  }
  hosts <- BiocParallel::bpworkers(BPPARAM)
  if (is.null(BiocParallel::bpbackend(BPPARAM))) {
    return(FALSE)
  }
  is.numeric(hosts) || all(hosts %in% c(
    "localhost", "127.0.0.1", Sys.info()[["nodename"]]
  ))
}

check_shared_folder <- function(workers, folder, call) {
  if (is.null(workers) || workers$local || !is.null(folder)) {
    return(invisible())
  }
  abort_argument(
    c(
      "{.arg BPPARAM} needs a {.arg checkpoint} where its workers are not all
       on this machine.",
      x = "A {.cls {class(workers$param)}} may have them anywhere, and they work
           in a folder that all of them see.",
      i = "Name one of a shared file system: {.code checkpoint =
           \"/scratch/me/search\"}."
    ),
    call
  )
}

# Returns the backend of a call with workers. Forked workers cannot use a GPU
# that this process has queried, and choosing a backend queries the GPUs.
backend_for <- function(BPPARAM, backend, devices, call = caller_env()) {
  if (is.null(BPPARAM) || !are_forked(BPPARAM)) {
    return(backend)
  }
  if (identical(backend, "cuda") || !is.null(devices)) {
    abort_argument(
      c(
        "Backend {.val cuda} can't be used by the workers of a
         {.cls MulticoreParam}.",
        x = "CUDA does not survive a fork.",
        i = "Use {.code BiocParallel::SnowParam()}, one GPU for each worker."
      ),
      call
    )
  }
  if (identical(backend, "auto") || length(backend) > 1) "cpu" else backend
}

# Returns the number of threads of each worker. With NA, the worker determines
# it.
worker_threads <- function(workers, num_threads) {
  if (!is.null(num_threads)) {
    return(as.integer(num_threads))
  }
  # The threads of the parent do not survive a fork.
  if (workers$forked) {
    return(1L)
  }
  if (!workers$local) {
    return(NA_integer_)
  }
  max(1L, default_num_threads() %/% workers$count)
}

# Returns the GPUs of each worker: one, or an equal share. Workers on other
# machines share theirs as in folder-host_gpus.R.
device_groups <- function(workers, devices, call,
                          device_table = cuda_devices) {
  if (!workers$local) {
    return(NULL)
  }
  if (length(devices) == 0) {
    devices <- device_table()$device
  }
  if (workers$count > length(devices)) {
    abort_argument(
      c(
        "{.arg BPPARAM} must not have more workers than there are GPUs: each
         worker has its own.",
        x = "It has {workers$count} for {length(devices)} GPU{?s}.",
        i = "Use as many workers as GPUs, or {.code backend = \"cpu\"}."
      ),
      call
    )
  }
  unname(split(devices, (seq_along(devices) - 1L) %% workers$count))
}

# Children that are forked on demand have all data of this process.
have_all <- function(workers) {
  workers$forked && !BiocParallel::bpisup(workers$param)
}

# --- the parent --------------------------------------------------------------

# Starts the workers and waits until they end. Their results are in the folder,
# and the caller does the rest, so a killed worker does not end the call.
work_by_workers <- function(job, workers, call, start = start_workers) {
  office <- open_office()
  watched <- job_file(job, paste0("call-", random_word()))
  file.create(watched)
  state <- new.env(parent = emptyenv())
  # Deleting these files tells workers that nobody waits for them any more.
  end <- function() {
    unlink(watched, expand = FALSE)
    close_office(office)
  }
  on.exit({
    end()
    session$lent <- NULL
    if (!isTRUE(state$done)) {
      forget_children(workers)
    }
  })
  if (have_all(workers)) {
    session$lent <- list(
      folder = job$folder, values = job$work$values, queries = job$work$queries
    )
  }
  order <- list(
    folder = job$folder, print = job$print, version = package_version_text(),
    num_threads = workers$num_threads, watch = watched,
    backend = job$request$backend, devices = job$request$devices,
    office = if (workers$local) office, groups = workers$groups,
    on_host = !workers$local
  )
  replies <- tryCatch(
    # An interrupt must reach the workers before anything waits for them.
    withCallingHandlers(
      start(workers, order), interrupt = function(condition) end()
    ),
    error = function(err) err
  )
  state$done <- !inherits(replies, "error")
  hear_replies(replies, job, call)
}

start_workers <- function(workers, order) {
  BiocParallel::bplapply(
    seq_len(workers$count), work_as_worker, order = order,
    BPPARAM = workers$param
  )
}

# Repeats the conditions of the workers. If all of them refused, it is an error,
# because the caller requested workers.
hear_replies <- function(replies, job, call) {
  if (inherits(replies, "error")) {
    tell_lost_worker(conditionMessage(replies))
    return(invisible())
  }
  for (reply in replies) {
    signal_again(reply$conditions)
  }
  refused <- Filter(Negate(is.null), lapply(replies, `[[`, "refused"))
  if (length(refused) == 0) {
    return(invisible())
  }
  words <- unique(unlist(refused))
  if (length(refused) == length(replies)) {
    cli_abort(
      c(
        "No worker of {.arg BPPARAM} could work in the folder
         {.file {job$given}}.",
        stats::setNames(
          paste0("{words[[", seq_along(words), "]]}"), rep("x", length(words))
        )
      ),
      class = c("fsknn_worker_error", "fsknn_error"),
      call = call
    )
  }
  tell_lost_worker(words)
}

tell_lost_worker <- function(words) {
  rlang::inform(
    c("A worker of `BPPARAM` is lost; the work goes on.", x = words),
    class = "fsknn_worker_lost"
  )
}

# Without this, the next call would receive the results of these children.
forget_children <- function(workers) {
  if (workers$forked) {
    suppressWarnings(
      while (!is.null(parallel::mccollect(wait = FALSE, timeout = 1))) NULL
    )
  }
}

# Creates a folder on this machine that exists as long as the call.
open_office <- function() {
  office <- tempfile("fsknn-workers-")
  dir.create(office)
  normalizePath(office)
}

close_office <- function(office) {
  unlink(office, recursive = TRUE, expand = FALSE)
}

package_version_text <- function() {
  as.character(utils::packageVersion("fsknn"))
}

signal_again <- function(conditions) {
  for (condition in conditions) {
    if (inherits(condition, "warning")) {
      warning(condition)
    } else {
      message(condition)
    }
  }
}

# --- a worker ----------------------------------------------------------------

# Runs in the worker and returns list(done, refused, conditions). It raises no
# error.
work_as_worker <- function(number, order) {
  said <- new.env(parent = emptyenv())
  keep <- function(muffle) {
    function(condition) {
      said$conditions <- c(said$conditions, list(condition))
      invokeRestart(muffle)
    }
  }
  reply <- tryCatch(
    withCallingHandlers(
      list(done = work_to_order(order)$done),
      warning = keep("muffleWarning"), message = keep("muffleMessage")
    ),
    error = function(err) {
      list(refused = paste0(conditionMessage(err), " (", who_am_i(), ")"))
    }
  )
  c(reply, list(conditions = said$conditions))
}

work_to_order <- function(order) {
  call <- NULL
  version <- package_version_text()
  if (version != order$version) {
    stop("This worker has fsknn ", version, ", not ", order$version, ".")
  }
  lent <- session$lent
  if (!identical(lent$folder, order$folder)) {
    lent <- NULL
  }
  job <- join_folder(order$folder, "checkpoint", lent, call)
  on.exit(end_work(job$work))
  if (job$print != order$print) {
    stop("The folder ", order$folder, " is that of another search.")
  }
  request <- job$request
  request$watch <- order$watch
  request$backend <- order$backend
  request$devices <- order$devices
  request$num_threads <- if (is.na(order$num_threads)) {
    default_num_threads()
  } else {
    order$num_threads
  }
  if (!is.null(order$groups)) {
    request$devices <- claim_devices(order$office, order$groups)
  } else if (order$on_host && order$backend == "cuda") {
    request$devices <- claim_host_devices(order$devices)
  }
  job$request <- request
  work_in_folder(job, call = call)
}
