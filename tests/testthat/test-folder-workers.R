params_here <- function() {
  list(
    snow = BiocParallel::SnowParam(2),
    forked = BiocParallel::MulticoreParam(2)
  )
}

# These workers are started once, for all tests of this file that do not test how
# workers start: starting takes longer than a search.
pool <- new.env()
params_up <- function() {
  if (is.null(pool$up)) {
    pool$up <- lapply(params_here(), BiocParallel::bpstart)
    withr::defer(lapply(pool$up, BiocParallel::bpstop), teardown_env())
  }
  pool$up
}

# Two values are too far apart, which is an error of the core.
too_far_apart <- function() {
  x <- random_matrix(200, 9)
  x[3, ] <- 1.5e308
  x[4, ] <- -1.5e308
  x
}

test_that("the answer of workers is that of one process", {
  skip_if_not_installed("BiocParallel")
  x <- random_matrix(400, 9)
  rownames(x) <- paste0("g", 1:400)
  x[17, ] <- 1
  whole <- knn_search(x, 5, constant = "isolate", backend = "cpu")
  edges <- knn_graph(x, 5, constant = "isolate", backend = "cpu")
  query <- random_matrix(300, 9, seed = 2)
  found <- knn_query(x, query, 5, constant = "isolate", backend = "cpu")
  for (param in params_here()) {
    expect_identical(
      knn_search(x, 5, constant = "isolate", backend = "cpu", BPPARAM = param),
      whole
    )
    expect_false(BiocParallel::bpisup(param))
  }
  for (param in params_up()) {
    expect_identical(
      knn_graph(x, 5, constant = "isolate", backend = "cpu", BPPARAM = param),
      edges
    )
    expect_identical(
      knn_query(x, query, 5, constant = "isolate", backend = "cpu",
                BPPARAM = param),
      found
    )
  }
  # These search within a distance, for some points, and for a tree from lists.
  limits <- rep(c(0.3, 0, 0.7, 0.5), 100)
  calls <- list(
    quote(within_search(x, limits)), quote(within_query(x, query, 0.4)),
    quote(threshold_graph(x, 0.6)),
    quote(threshold_graph(x, 0.6, subset = c(399:40, 17, 3))),
    quote(mst_knn(x))
  )
  for (call in calls) {
    call$constant <- "isolate"
    call$backend <- "cpu"
    whole_call <- eval(call)
    for (param in c(params_up(), BiocParallel::SerialParam())) {
      call$BPPARAM <- param
      expect_identical(eval(call), whole_call, label = deparse(call[[1]]))
    }
  }
  # The search runs in this process.
  expect_identical(
    knn_search(x, 5, constant = "isolate", backend = "cpu",
             BPPARAM = BiocParallel::SerialParam()),
    whole
  )
})

test_that("workers that are up stay so, and take one call after another", {
  skip_if_not_installed("BiocParallel")
  for (param in params_up()) {
    for (seed in 1:2) {
      x <- random_matrix(200, 9, seed = seed)
      whole <- knn_search(x, 5, backend = "cpu")
      expect_identical(
        knn_search(x, 5, backend = "cpu", BPPARAM = param), whole
      )
      expect_error(
        knn_search(too_far_apart(), 198, "manhattan", backend = "cpu",
                 BPPARAM = param),
        class = "fsknn_range_error"
      )
    }
    x <- metafeatures(random_matrix(7, 9))
    expect_identical(
      knn_search(x, 3, backend = "cpu", BPPARAM = param),
      knn_search(x, 3, backend = "cpu")
    )
    expect_true(BiocParallel::bpisup(param))
  }
})

test_that("an error of a worker is the error of the call", {
  skip_if_not_installed("BiocParallel")
  x <- too_far_apart()
  alone <- expect_error(
    knn_search(x, 198, "manhattan", backend = "cpu"),
    class = "fsknn_range_error"
  )
  for (param in params_up()) {
    error <- expect_error(
      knn_search(x, 198, "manhattan", backend = "cpu", BPPARAM = param),
      class = "fsknn_range_error"
    )
    expect_identical(conditionMessage(error), conditionMessage(alone))
    expect_identical(as.character(conditionCall(error)[[1]]), "knn_search")
  }
})

test_that("workers find too many pairs, and the call says so", {
  skip_if_not_installed("BiocParallel")
  x <- random_matrix(300, 8)
  for (param in params_up()) {
    for (size in c(290, 50)) {
      withr::local_options(fsknn.split_size = size)
      error <- expect_error(
        within_search(
          x, 1.2, max_memory = 12 * 50000, backend = "cpu", BPPARAM = param
        ),
        class = "fsknn_size_error"
      )
      expect_identical(error$most, 50000)
      expect_identical(as.character(conditionCall(error)[[1]]), "within_search")
    }
  }
})

# Processes the replies of workers as a call does.
hear <- function(replies) {
  fsknn:::hear_replies(replies, list(given = "folder"), quote(knn_search(x)))
}

test_that("what a worker says is said, and that it is lost", {
  said <- list(done = 1L, conditions = list(
    simpleMessage("task 1\n"), simpleWarning("take care")
  ))
  expect_message(expect_warning(hear(list(said)), "take care"), "task 1")
  lost <- list(refused = "This worker has fsknn 0.0.1, not 1.0.0.")
  expect_message(
    hear(list(list(done = 3L), lost)), "0.0.1", class = "fsknn_worker_lost"
  )
  expect_message(hear(simpleError("connection closed")), "connection closed")
  # It is an error if no worker can work.
  error <- expect_error(hear(list(lost, lost)), class = "fsknn_worker_error")
  expect_match(conditionMessage(error), "0.0.1")
})

test_that("a worker of another version, or of another search, is refused", {
  x <- random_matrix(60, 9)
  folder <- withr::local_tempdir()
  knn_search(x, 5, backend = "cpu", checkpoint = folder)
  order <- list(
    folder = folder, print = strrep("0", 16), num_threads = 1L,
    version = fsknn:::package_version_text(), backend = "cpu", on_host = FALSE
  )
  reply <- fsknn:::work_as_worker(1, order)
  expect_match(reply$refused, "another search")
  order$version <- "0.0.1"
  expect_match(fsknn:::work_as_worker(1, order)$refused, "not 0.0.1")
  order$version <- fsknn:::package_version_text()
  order$folder <- file.path(folder, "none")
  expect_match(fsknn:::work_as_worker(1, order)$refused, "no such folder")
})

test_that("a call whose workers are killed goes on without them", {
  skip_on_os("windows")
  skip_if_not_installed("BiocParallel")
  withr::local_options(fsknn.split_size = 40L)
  x <- random_matrix(200, 9)
  whole <- knn_graph(x, 5, backend = "cpu")
  folder <- withr::local_tempdir()
  local_functions(
    start_workers = function(workers, order) {
      BiocParallel::bplapply(
        1:2,
        function(number, order) {
          if (number == 1) {
            tools::pskill(Sys.getpid(), tools::SIGKILL)
            Sys.sleep(60)
          }
          getNamespace("fsknn")$work_as_worker(number, order)
        },
        order = order, BPPARAM = workers$param
      )
    }
  )
  expect_message(
    found <- knn_graph(
      x, 5, backend = "cpu", BPPARAM = BiocParallel::SnowParam(2),
      checkpoint = folder
    ),
    class = "fsknn_worker_lost"
  )
  expect_identical(found, whole)
})

test_that("workers of other machines need a folder that all see", {
  skip_if_not_installed("BiocParallel")
  x <- random_matrix(60, 9)
  param <- BiocParallel::SnowParam(2, type = "MPI")
  expect_false(fsknn:::are_local(param))
  expect_messages(knn_search(x, 5, BPPARAM = param))
})

test_that("workers and checkpoints work together", {
  skip_if_not_installed("BiocParallel")
  withr::local_options(fsknn.split_size = 40L)
  x <- random_matrix(150, 9)
  whole <- knn_graph(x, 5, backend = "cpu")
  for (param in params_up()) {
    folder <- withr::local_tempdir()
    expect_identical(
      knn_graph(x, 5, backend = "cpu", BPPARAM = param, checkpoint = folder),
      whole
    )
    files <- task_files(folder)
    expect_length(files, 15)
    file.remove(files[c(1, 3)])
    expect_identical(
      suppressMessages(
        knn_graph(x, 5, backend = "cpu", BPPARAM = param, checkpoint = folder)
      ),
      whole
    )
  }
})

test_that("workers work after the parent used threads, and change no seed", {
  skip_if_not_installed("BiocParallel")
  x <- random_matrix(2000, 40)
  whole <- knn_search(x, 5, num_threads = 2, backend = "cpu")
  withr::local_seed(1)
  # Only forks share the parent's threads.
  for (param in list(params_here()$forked, params_up()$snow)) {
    before <- .Random.seed
    expect_identical(
      knn_search(x, 5, num_threads = 2, backend = "cpu", BPPARAM = param), whole
    )
    expect_identical(.Random.seed, before)
  }
})

test_that("BPPARAM must be one of BiocParallel's; forks leave CUDA alone", {
  skip_if_not_installed("BiocParallel")
  x <- random_matrix(60, 9)
  expect_messages({
    knn_search(x, 5, BPPARAM = 4)
    knn_search(
      x, 5, BPPARAM = BiocParallel::MulticoreParam(2), backend = "cuda"
    )
    knn_search(x, 5, BPPARAM = BiocParallel::MulticoreParam(2), devices = 1)
  })
  # Backend "auto" then does not query the GPUs.
  expect_identical(
    fsknn:::backend_for(
      BiocParallel::MulticoreParam(2), c("auto", "cuda", "cpu"), NULL
    ),
    "cpu"
  )
})

test_that("each worker has threads and GPUs of its own", {
  local <- list(local = TRUE, forked = FALSE, count = 2L)
  remote <- list(local = FALSE, forked = FALSE, count = 2L)
  forked <- list(local = TRUE, forked = TRUE, count = 2L)
  withr::local_options(fsknn.num_threads = 1)
  expect_identical(fsknn:::worker_threads(local, NULL), 1L)
  expect_identical(fsknn:::worker_threads(local, 3), 3L)
  expect_identical(fsknn:::worker_threads(forked, NULL), 1L)
  expect_identical(fsknn:::worker_threads(remote, NULL), NA_integer_)

  table <- function() data.frame(device = 1:5)
  groups <- function(workers, devices) {
    fsknn:::device_groups(workers, devices, quote(knn_search(x)), table)
  }
  expect_identical(groups(local, integer()), list(c(1L, 3L, 5L), c(2L, 4L)))
  expect_identical(groups(local, c(4L, 2L)), list(4L, 2L))
  expect_null(groups(remote, c(4L, 2L)))
  local$count <- 3L
  expect_messages(groups(local, c(4L, 2L)))
})

test_that("no two workers claim the same GPU", {
  skip_on_os("windows")
  office <- withr::local_tempdir()
  claim <- c(
    sprintf(
      "got <- try(fsknn:::claim_devices(%s, list(4L, 2L)), silent = TRUE)",
      deparse(office)
    ),
    sprintf(
      "again <- try(fsknn:::claim_devices(%s, list(4L, 2L)), silent = TRUE)",
      deparse(office)
    ),
    "say(if (inherits(got, 'try-error')) 'none' else c(got, again))",
    "Sys.sleep(600)"
  )
  children <- lapply(1:3, function(i) start_child(claim))
  said <- lapply(children, said_by)
  # Each process keeps its GPUs from task to task.
  got <- vapply(said, paste, "", collapse = " ")
  expect_setequal(got, c("4 4", "2 2", "none"))
  # The system releases the locks.
  tools::pskill(children[[which(got == "4 4")]]$pid, tools::SIGKILL)
  for (trial in 1:20) {
    child <- start_child(claim)
    said <- said_by(child)
    tools::pskill(child$pid, tools::SIGKILL)
    if (identical(said, c("4", "4"))) break
  }
  expect_identical(said, c("4", "4"))
  for (child in children) {
    tools::pskill(child$pid, tools::SIGKILL)
  }
})

test_that("GPUs of a machine are told apart as a scheduler names them", {
  withr::local_envvar(
    CUDA_VISIBLE_DEVICES = NA, SLURM_JOB_ID = NA,
    SLURM_STEP_TASKS_PER_NODE = NA, SLURM_TASKS_PER_NODE = NA
  )
  folder <- withr::local_tempdir()
  local_functions(host_folder = function() folder)
  claim <- function(devices = integer(), count = 2L) {
    rm(list = intersect("claim", ls(fsknn:::session)), envir = fsknn:::session)
    fsknn:::claim_host_devices(devices, count)
  }
  expect_identical(claim(3L), 3L)
  expect_identical(claim(), 1L)
  expect_identical(list.files(folder), "devices-0")
  withr::local_envvar(CUDA_VISIBLE_DEVICES = "GPU-a1, 3")
  expect_identical(fsknn:::visible_devices(), c("GPU-a1", "3"))
  expect_identical(claim(), 1L)
  withr::local_envvar(SLURM_JOB_ID = "17", SLURM_TASKS_PER_NODE = "2(x3)")
  expect_identical(claim(), 1L)
  expect_identical(
    list.files(folder), c("devices-0", "devices-17-GPU-a1", "devices-GPU-a1")
  )
  # The only process of its job on this machine gets all GPUs.
  withr::local_envvar(SLURM_TASKS_PER_NODE = "1(x3)")
  expect_identical(claim(), 1:2)
  rm(list = intersect("claim", ls(fsknn:::session)), envir = fsknn:::session)
})
