# Workers of BiocParallel: who they are, what they may use, and what they say.

# NULL, or list(param, count, local, groups, ...): see there.
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

# Whether all are on this machine.
are_local <- function(BPPARAM) {
  if (are_forked(BPPARAM)) {
    return(TRUE)
  }
  if (!methods::is(BPPARAM, "SnowParam")) {
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

# The backend that a call with workers runs on. Forked workers can't use a GPU
# that this process has looked at, and to choose one is to look.
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

# Threads of each worker; NA: it finds out for itself.
worker_threads <- function(workers, num_threads) {
  if (!is.null(num_threads)) {
    return(as.integer(num_threads))
  }
  # The threads of the parent do not come along with a fork.
  if (workers$forked) {
    return(1L)
  }
  if (!workers$local) {
    return(NA_integer_)
  }
  max(1L, default_num_threads() %/% workers$count)
}

# Which GPUs each worker has: one, or an even share of them. Workers of other
# machines have GPUs of their own, numbered as given.
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

# --- the parent --------------------------------------------------------------

# What a worker of this machine reads itself; other things are small, and sent.
lend_values <- function(values, office, name, call) {
  plain <- is.matrix(values) && typeof(values) %in%
    c("double", "integer", "logical")
  if (!plain) {
    return(values)
  }
  lent <- cpp_lend_matrix(values, file.path(office, name))
  if (identical(lent$failure, "file")) {
    # No room for it in the temporary folder.
    return(values)
  }
  structure(in_core(lent, call), class = "fsknn_lent")
}

# Splits `left` to the workers; `take` is called here with each as it comes.
run_on_workers <- function(workers, work, left, take, call,
                           dispatch = dispatch_to_workers) {
  if (length(left) == 0) {
    return(invisible())
  }
  office <- open_office()
  state <- new.env(parent = emptyenv())
  # Gone, it tells workers that nobody waits for them any more.
  on.exit({
    close_office(office)
    if (!isTRUE(state$done)) {
      forget_children(workers)
    }
  })
  work$request <- worker_request(work$request, workers, office)
  work$office <- if (workers$local) office
  # Children that are forked when they are needed have all there is.
  has_all <- workers$forked && !BiocParallel::bpisup(workers$param)
  if (workers$local && !has_all) {
    # By way of a file: what goes through a socket can't be stopped half way.
    work$values <- lend_values(work$values, office, "x", call)
    work$queries <- lend_values(work$queries, office, "query", call)
  }
  work$groups <- workers$groups
  work$version <- package_version_text()
  state$left <- left
  next_split <- function() {
    if (!is.null(state$failure) || length(state$left) == 0) {
      return(NULL)
    }
    split <- state$left[[1]]
    state$left <- state$left[-1]
    split
  }
  receive <- function(reply) {
    signal_again(reply$conditions)
    if (!is.null(state$failure)) {
      return()
    }
    # What fails is told once all workers have answered: a reply that nobody
    # waits for would be taken for one to the next call.
    fail <- function(raise) {
      state$failure <- raise
      close_office(office)
    }
    if (is.null(reply$found$failure)) {
      tryCatch(
        take(reply$split, reply$found),
        error = function(err) fail(function() rlang::cnd_signal(err))
      )
    } else {
      fail(function() raise_reply(reply, call))
    }
  }
  tryCatch(
    # Before anything waits for them.
    withCallingHandlers(
      dispatch(workers$param, next_split, receive, work),
      interrupt = function(condition) close_office(office)
    ),
    error = function(err) raise_worker_failure(err, call)
  )
  state$done <- TRUE
  if (!is.null(state$failure)) {
    state$failure()
  }
}

# Children that nobody asked how they fared would be asked by the next call.
forget_children <- function(workers) {
  if (workers$forked) {
    suppressWarnings(
      while (!is.null(parallel::mccollect(wait = FALSE, timeout = 1))) NULL
    )
  }
}

# Replies come in no order; what FUN needs besides its split goes to each worker
# once.
dispatch_to_workers <- function(param, next_split, receive, work) {
  BiocParallel::bpiterate(
    next_split, work_on_split, work = work,
    REDUCE = function(count, reply) {
      # The first reply comes as a list of it.
      receive(reply)
      count
    },
    init = 0L, reduce.in.order = FALSE, BPPARAM = param
  )
  invisible()
}

worker_request <- function(request, workers, office) {
  request$progress <- FALSE
  request$num_threads <- workers$num_threads
  if (workers$local) {
    request$watch <- office
  }
  request
}

# A folder that is there as long as the call is.
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

# A failure of the core, in the words of any other; an error of R by its own.
raise_reply <- function(reply, call) {
  if (is.null(reply$found$error)) {
    raise_failure(reply$found, call)
  }
  raise_worker_failure(reply$found$error, call)
}

raise_worker_failure <- function(err, call) {
  cli_abort(
    c(
      "A worker of {.arg BPPARAM} failed.",
      i = "It needs this version of fsknn, and memory for a copy of {.arg x}."
    ),
    class = c("fsknn_worker_error", "fsknn_error"),
    call = call,
    parent = err
  )
}

# --- a worker ----------------------------------------------------------------

# Runs in the worker; gives list(split, found, conditions) and no error.
work_on_split <- function(split, work) {
  said <- new.env(parent = emptyenv())
  keep <- function(muffle) {
    function(condition) {
      said$conditions <- c(said$conditions, list(condition))
      invokeRestart(muffle)
    }
  }
  found <- tryCatch(
    withCallingHandlers(
      find_as_worker(split, work),
      warning = keep("muffleWarning"), message = keep("muffleMessage")
    ),
    error = function(err) list(failure = "error", error = err)
  )
  list(split = split, found = found, conditions = said$conditions)
}

find_as_worker <- function(split, work) {
  version <- package_version_text()
  if (version != work$version) {
    stop("This worker has fsknn ", version, ", not ", work$version, ".")
  }
  if (!is.null(work$office) && !dir.exists(work$office)) {
    return(list(failure = "interrupt"))
  }
  request <- work$request
  if (is.na(request$num_threads)) {
    request$num_threads <- default_num_threads()
  }
  if (!is.null(work$groups)) {
    request$devices <- claim_devices(work$office, work$groups)
  }
  work$values <- borrow_values(work$values)
  work$queries <- borrow_values(work$queries)
  search_split(work, split, request)
}

# Read once, and kept until another call's are asked for.
borrow_values <- function(values) {
  if (!inherits(values, "fsknn_lent")) {
    return(values)
  }
  name <- paste0("borrowed_", basename(values$path))
  held <- get0(name, envir = session, inherits = FALSE)
  if (!identical(held$path, values$path)) {
    rm(list = intersect(name, ls(session)), envir = session)
    held <- list(
      path = values$path,
      values = in_core(cpp_borrow_matrix(unclass(values)))$values
    )
    assign(name, held, envir = session)
  }
  held$values
}

# The GPUs that are this worker's as long as the call is: the first group that
# no other process has. The lock goes with the process, if not before.
claim_devices <- function(office, groups) {
  claim <- get0("claim", envir = session, inherits = FALSE)
  if (!identical(claim$office, office)) {
    claim <- list(office = office)
    for (number in seq_along(groups)) {
      lock <- cpp_lock_file(file.path(office, paste0("devices-", number)))
      if (!is.null(lock$lock)) {
        claim$lock <- lock$lock
        claim$devices <- groups[[number]]
        break
      }
    }
    if (is.null(claim$devices)) {
      stop("There is no GPU left for this worker.")
    }
    assign("claim", claim, envir = session)
  }
  claim$devices
}
