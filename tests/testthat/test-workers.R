params_here <- function() {
  list(
    snow = BiocParallel::SnowParam(2),
    forked = BiocParallel::MulticoreParam(2)
  )
}

# Two values, one too far from the other: an error of the core.
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
  # All within a distance, and of some points; the tree of lists.
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
    for (param in c(params_here(), BiocParallel::SerialParam())) {
      call$BPPARAM <- param
      expect_identical(eval(call), whole_call, label = deparse(call[[1]]))
    }
  }
  # In this process.
  expect_identical(
    knn_search(x, 5, constant = "isolate", backend = "cpu",
             BPPARAM = BiocParallel::SerialParam()),
    whole
  )
})

test_that("workers that are up stay so, and take one call after another", {
  skip_if_not_installed("BiocParallel")
  for (param in params_here()) {
    BiocParallel::bpstart(param)
    withr::defer(BiocParallel::bpstop(param))
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
    BiocParallel::bpstop(param)
  }
})

test_that("an error of a worker is the error of the call", {
  skip_if_not_installed("BiocParallel")
  x <- too_far_apart()
  alone <- expect_error(
    knn_search(x, 198, "manhattan", backend = "cpu"),
    class = "fsknn_range_error"
  )
  for (param in params_here()) {
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
  for (param in params_here()) {
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

test_that("what a worker says is said, and its failures are told as such", {
  work <- list(
    request = list(num_threads = 1L)
  )
  # No worker but this process: it works on one split after another.
  here <- function(answer) {
    function(param, next_split, receive, work) {
      while (!is.null(split <- next_split())) receive(answer(split, work))
    }
  }
  run <- function(dispatch, take = function(split, found) NULL) {
    fsknn:::run_on_workers(
      list(local = FALSE, forked = FALSE, num_threads = 1L), work, 1:3, take,
      quote(knn_search(x)), dispatch
    )
  }
  says <- function(split, work) {
    list(split = split, found = list(), conditions = list(
      simpleMessage(paste0("split ", split, "\n")),
      simpleWarning("take care")
    ))
  }
  taken <- integer()
  said <- character()
  hear <- function(muffle) {
    function(condition) {
      said <<- c(said, conditionMessage(condition))
      invokeRestart(muffle)
    }
  }
  withCallingHandlers(
    run(here(says), function(split, found) taken <<- c(taken, split)),
    message = hear("muffleMessage"), warning = hear("muffleWarning")
  )
  expect_identical(taken, 1:3)
  expect_identical(
    said,
    c("split 1\n", "take care", "split 2\n", "take care", "split 3\n",
      "take care")
  )

  # A wrong version is an error there, and arrives as one.
  old <- function(split, work) {
    work$version <- "0.0.1"
    fsknn:::work_on_split(split, work)
  }
  error <- expect_error(run(here(old)), class = "fsknn_worker_error")
  expect_match(conditionMessage(error$parent), "not 0.0.1")
  # No further split is begun, and the others are waited for.
  begun <- 0
  fails <- function(split, work) {
    begun <<- begun + 1
    list(split = split, found = list(failure = "memory", bytes_asked = 64))
  }
  expect_error(run(here(fails)), class = "fsknn_memory_error")
  expect_identical(begun, 1)
  # What goes wrong with the reply is no failure of a worker.
  expect_error(
    run(here(says), function(split, found) {
      rlang::abort("disk full", class = "fsknn_checkpoint_error")
    }) |> suppressMessages() |> suppressWarnings(),
    class = "fsknn_checkpoint_error"
  )
  # A worker that is gone.
  expect_error(
    run(function(...) stop("connection closed")), class = "fsknn_worker_error"
  )
})

test_that("workers and checkpoints work together", {
  skip_if_not_installed("BiocParallel")
  withr::local_options(fsknn.split_size = 40L)
  x <- random_matrix(150, 9)
  whole <- knn_graph(x, 5, backend = "cpu")
  for (param in params_here()) {
    folder <- withr::local_tempdir()
    expect_identical(
      knn_graph(x, 5, backend = "cpu", BPPARAM = param, checkpoint = folder),
      whole
    )
    files <- list.files(folder, "split", full.names = TRUE)
    expect_length(files, 4)
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
  for (param in params_here()) {
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
  expect_snapshot(error = TRUE, {
    knn_search(x, 5, BPPARAM = 4)
    knn_search(
      x, 5, BPPARAM = BiocParallel::MulticoreParam(2), backend = "cuda"
    )
    knn_search(x, 5, BPPARAM = BiocParallel::MulticoreParam(2), devices = 1)
  })
  # Backend "auto" does not look for GPUs then.
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
  expect_snapshot(error = TRUE, groups(local, c(4L, 2L)))
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
    "Sys.sleep(60)"
  )
  children <- lapply(1:3, function(i) start_child(claim))
  said <- lapply(children, said_by)
  for (child in children) tools::pskill(child$pid, tools::SIGKILL)
  # Each keeps its own from split to split.
  got <- vapply(said, paste, "", collapse = " ")
  expect_setequal(got, c("4 4", "2 2", "none"))
})
