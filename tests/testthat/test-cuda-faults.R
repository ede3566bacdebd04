# Failures of GPUs. The first tests need a build with CUDA and no GPU; the
# others need one GPU or two.

# Resets the messages that a session shows once.
told_once <- function(expr) {
  for (backend in c("cpu", "cuda")) {
    rlang::reset_message_verbosity(paste0("fsknn_auto_backend_", backend))
  }
  on.exit(suppressMessages(knn_plan(c(10, 3), k = 1)))
  told <- character()
  withCallingHandlers(expr, message = function(cnd) {
    told <<- c(told, conditionMessage(cnd))
    rlang::cnd_muffle(cnd)
  })
  told
}

small <- random_matrix(60, 5)

# --- Without a GPU -----------------------------------------------------------

test_that("a probe says why there is no GPU, and never throws", {
  skip_if_no_faults()
  reasons <- character()
  look <- function() {
    expect_silent(table <- knn_backends())
    expect_false(table$usable[[2]])
    expect_silent(devices <- gpus_here(start = TRUE))
    expect_identical(nrow(devices), 0L)
    expect_identical(attr(devices, "reason"), table$detail[[2]])
    table$detail[[2]]
  }
  for (error in c("no_device", "mismatch", "initialization", "unknown")) {
    local_machine(error = error)
    reasons[[error]] <- look()
  }
  local_machine(error = "old_driver", driver = 11040L, runtime = 13000L)
  reasons[["too old"]] <- look()
  local_machine(error = "old_driver", driver = 0L)
  reasons[["no driver"]] <- look()
  expect_snapshot(writeLines(paste0(names(reasons), ": ", reasons)))
})

test_that("an explicit backend never falls back, and the error has CUDA's words", {
  skip_if_no_faults()
  local_machine(error = "old_driver", driver = 11040L, runtime = 13000L)
  expect_snapshot(error = TRUE, {
    knn_search(small, 2, backend = "cuda")
    knn_search(small, 2, devices = 1)
    knn_plan(small, 2, backend = "cuda")
  })
  error <- expect_error(
    knn_search(small, 2, backend = "cuda"), class = "fsknn_cuda_error"
  )
  expect_s3_class(error, "fsknn_backend_error")
  expect_match(error$cuda_words, "driver version is insufficient")
  expect_identical(error$device, NA_integer_)
  expect_identical(error$bytes_asked, NA_real_)
  expect_identical(error$bytes_free, NA_real_)
})

test_that("auto falls back where there is no usable device, and says so once", {
  skip_if_no_faults()
  local_machine(error = "old_driver", driver = 11040L, runtime = 13000L)
  told <- told_once({
    found <- knn_search(small, 2)
    knn_search(small, 2)
  })
  expect_length(told, 1)
  expect_match(told, "Using backend \"cpu\"")
  expect_match(told, "supports CUDA 11.4, and this installation needs CUDA 13.0")
  expect_identical(found, knn_search(small, 2, backend = "cpu"))
})

test_that("GPUs that the package was not compiled for are left out, and named", {
  skip_if_no_faults()
  gpus <- fake_gpus(c("Alpha", "Old", "Beta"))
  gpus$major[[2]] <- 2L
  gpus$minor[[2]] <- 0L
  local_machine(gpus)
  devices <- gpus_here()
  expect_identical(devices$name, c("Alpha", "Beta"))
  expect_identical(devices$device, 1:2)
  expect_identical(devices$cuda_id, c(0L, 2L))
  expect_match(attr(devices, "left_out"), "not for Old \\(2.0\\)")
  expect_output(print(devices), "not for Old \\(2.0\\)")
  how <- "with FSKNN_CUDA_ARCH=all"
  expect_match(attr(devices, "left_out"), how)
  expect_match(knn_backends()$detail[[2]], "^CUDA [0-9.]+[.] This installation")
  expect_match(knn_backends()$detail[[2]], how)
  local_machine(gpus[2, ])
  compiled <- fsknn:::backend_facts()$cuda$architectures
  detail <- knn_backends()$detail[[2]]
  expect_match(detail, "not for Old \\(2.0\\)")
  expect_match(detail, compiled, fixed = TRUE)
  expect_match(detail, how)
  expect_identical(nrow(gpus_here()), 0L)
  expect_error(knn_search(small, 2, backend = "cuda"), how)
  expect_match(told_once(knn_search(small, 2)), how)
})

test_that("devices of different kinds do what all of them can", {
  skip_if_no_faults()
  local_machine(fake_gpus(
    c("Large", "Small"), free = c(40, 3) * 2^30, shared = c(227L, 48L) * 1024L
  ))
  plan <- function(devices) {
    knn_plan(c(50000, 40), backend = "cuda", devices = devices)
  }
  both <- plan(NULL)
  expect_identical(nrow(both$devices), 2L)
  expect_identical(both$filter, plan(2)$filter)
  expect_false(identical(both$filter, plan(1)$filter))
  expect_lte(both$bytes_peak, 3 * 2^30)
  expect_identical(plan(2:1)$devices$cuda_id, 1:0)
})

test_that("a plan names each GPU and the host thread that drives it", {
  skip_if_no_faults()
  local_machine(fake_gpus(c("Alpha", "Beta", "Gamma")))
  plan <- knn_plan(
    c(24158, 295), k = 20, "manhattan", backend = "cuda", devices = c(1, 3),
    num_threads = 1, chunk_size = 4096
  )
  lines <- format(plan)
  expect_match(lines, "^CUDA devices: +2 used$", all = FALSE)
  expect_match(
    lines, "^Host thread 1 uses: +device 1 \\(CUDA's number 0\\), Alpha$",
    all = FALSE
  )
  expect_match(
    lines, "^Host thread 2 uses: +device 3 \\(CUDA's number 2\\), Gamma$",
    all = FALSE
  )
  expect_match(lines, "^Expected passes: +1 \\(points stay", all = FALSE)
  expect_match(lines, "^Each GPU, peak: +.* \\(40.0 GiB free\\)$", all = FALSE)
  # A matrix smaller than one split uses one GPU.
  small <- knn_plan(c(100, 5), k = 2, "manhattan", backend = "cuda")
  expect_identical(small$devices$name, "Alpha")
  expect_match(format(small), "^CUDA devices: +1 used$", all = FALSE)
})

test_that("where a GPU does not answer, CUDA's words are the error", {
  skip_if_no_faults()
  skip_if(cuda_is_usable(), "There is a GPU.")
  local_machine(fake_gpus("Ghost"))
  error <- expect_error(
    knn_search(small, 2, backend = "cuda"), class = "fsknn_cuda_error"
  )
  expect_false(inherits(error, "fsknn_backend_error"))
  expect_match(error$cuda_words, "driver|device")
  expect_match(error$where, "^cuda.*, .*cuda/.*:[0-9]+$")
})

test_that("after a device is lost CUDA fails with the same words, the CPU works", {
  skip_if_no_faults()
  if (!cuda_is_usable()) {
    local_machine(fake_gpus("Ghost"))
  }
  expected <- knn_search(small, 2, backend = "cpu")
  try_cuda <- function() knn_search(small, 2, backend = "cuda")
  told <- NULL
  seen <- with_fault(error = "illegal_address", text = "cudaSetDevice", {
    first <- tryCatch(try_cuda(), error = identity)
    # This fails before any call of CUDA, so for other reasons than the fault.
    second <- tryCatch(try_cuda(), error = identity)
    third <- tryCatch(knn_search(small, 2, devices = 1), error = identity)
    plan <- tryCatch(knn_plan(small, 2, backend = "cuda"), error = identity)
    table <- knn_backends()
    devices <- gpus_here(start = TRUE)
    cpu <- knn_search(small, 2, backend = "cpu")
    told <- told_once(auto <- list(knn_search(small, 2), knn_search(small, 2)))
  })
  expect_true(seen$fired)
  expect_s3_class(first, "fsknn_cuda_error")
  expect_true(first$sticky)
  expect_identical(first$cuda_words, "an illegal memory access was encountered")
  expect_match(conditionMessage(first), "can no longer use CUDA")
  for (later in list(second, third, plan)) {
    expect_s3_class(later, "fsknn_cuda_error")
    expect_identical(conditionMessage(later), conditionMessage(first))
    expect_identical(later$device, first$device)
  }
  expect_false(table$usable[[2]])
  expect_match(table$detail[[2]], "an illegal memory access")
  expect_identical(nrow(devices), 0L)
  expect_match(attr(devices, "reason"), "an illegal memory access")
  expect_identical(cpu, expected)
  expect_identical(auto, list(expected, expected))
  expect_length(told, 1)
  expect_match(told, "Using backend \"cpu\"")
  expect_match(told, "an illegal memory access")
})

test_that("a device that can't be made the current one is named itself", {
  skip_if_no_faults()
  local_machine(fake_gpus(c("Alpha", "Beta")))
  seen <- with_fault(
    knn_search(small, 2, devices = 2), "illegal_address", "cudaSetDevice",
    device = 1L
  )
  expect_true(seen$fired)
  expect_identical(seen$value$device, 2L)
  expect_identical(seen$value$cuda_id, 1L)
})

# --- With a GPU --------------------------------------------------------------

# Returns searches, by name, that cover all paths of the engine.
searches <- function() {
  x <- random_matrix(4500, 12, seed = 41)
  x[4000:4400, ] <- x[1:401, ] * (1 + 1e-12)
  query <- random_matrix(300, 12, seed = 42)
  wide <- matrix(sin(seq_len(4000 * 1000)^1.1), 4000)
  on <- function(backend, devices, ...) {
    knn_search(x, ..., backend = backend, devices = devices)
  }
  list(
    "filtered" = function(backend, devices = NULL) on(backend, devices, k = 5),
    "euclidean" = function(backend, devices = NULL) {
      on(backend, devices, k = 5, metric = "euclidean")
    },
    "elementwise" = function(backend, devices = NULL) {
      on(backend, devices, k = 3, metric = "manhattan")
    },
    "large k" = function(backend, devices = NULL) {
      on(backend, devices, k = 1500, metric = "spearman")
    },
    "edges" = function(backend, devices = NULL) {
      knn_graph(x, 4, backend = backend, devices = devices)
    },
    "streamed" = function(backend, devices = NULL) {
      knn_search(
        wide, 3, "euclidean", backend = backend, devices = devices,
        max_device_memory = 3e7
      )
    },
    "queries" = function(backend, devices = NULL) {
      knn_query(x, query, 7, backend = backend, devices = devices)
    }
  )
}

memory_free <- function() gpus_here(start = TRUE)$memory_free

# Returns all numbers or, if there are many, `most` of them at equal steps.
some_of <- function(count, most) {
  unique(round(seq(1, count, length.out = min(count, most))))
}

test_that("too little memory at any allocation gives all back; the next call works", {
  skip_if_no_cuda()
  for (name in names(searches())) {
    run <- searches()[[name]]
    expected <- run("cpu")
    expect_identical(run("cuda"), expected, label = name)
    before <- memory_free()
    count <- with_fault(run("cuda"), "memory", "cudaMalloc", nth = 0)$matched
    expect_gt(count, 0)
    for (nth in some_of(count, 40)) {
      seen <- with_fault(run("cuda"), "memory", "cudaMalloc", nth)
      label <- paste0(name, ", allocation ", nth)
      # If the memory differs from that of the plan, there are other
      # allocations, and an engine may choose another path.
      expect_true(seen$fired, label = label)
      if (inherits(seen$value, "error")) {
        expect_s3_class(seen$value, "fsknn_cuda_error")
        expect_gt(seen$value$bytes_asked, 0)
        expect_gt(seen$value$bytes_free, 0)
        expect_identical(seen$value$cuda_words, "out of memory")
        expect_false(is.na(seen$value$device))
      } else {
        expect_identical(seen$value, expected, label = label)
      }
      expect_identical(memory_free(), before, label = label)
    }
    expect_identical(run("cuda"), expected, label = name)
  }
})

test_that("too little page-locked memory is an error, and leaves nothing", {
  skip_if_no_cuda()
  run <- searches()[["filtered"]]
  expected <- run("cuda")
  before <- memory_free()
  count <- with_fault(run("cuda"), "memory", "cudaHostAlloc", nth = 0)$matched
  for (nth in seq_len(min(count, 10))) {
    seen <- with_fault(run("cuda"), "memory", "cudaHostAlloc", nth)
    if (inherits(seen$value, "error")) {
      expect_s3_class(seen$value, "fsknn_memory_error")
      expect_gt(seen$value$bytes_asked, 0)
    } else {
      expect_identical(seen$value, expected)
    }
    expect_identical(memory_free(), before)
  }
  expect_identical(run("cuda"), expected)
})

test_that("any call that fails leaves the device clean", {
  skip_if_no_cuda()
  for (name in c("filtered", "elementwise", "queries", "streamed")) {
    run <- searches()[[name]]
    expected <- run("cuda")
    before <- memory_free()
    count <- with_fault(run("cuda"), "invalid_value", nth = 0)$matched
    for (nth in some_of(count, 60)) {
      seen <- with_fault(run("cuda"), "invalid_value", nth = nth)
      label <- paste0(name, ", call ", nth)
      expect_true(seen$fired, label = label)
      if (inherits(seen$value, "error")) {
        expect_s3_class(seen$value, "fsknn_cuda_error")
        expect_false(seen$value$sticky)
      } else {
        expect_identical(seen$value, expected, label = label)
      }
      expect_identical(memory_free(), before, label = label)
    }
    expect_identical(run("cuda"), expected, label = name)
  }
})

for (name in c("filtered", "streamed")) test_that(paste0(
  "a device lost in the middle ends the call (", name, "), and is named"
), {
  skip_if_no_cuda()
  run <- searches()[[name]]
  expected <- run("cpu")
  devices <- gpus_here()
  for (row in devices$device) {
    id <- devices$cuda_id[[row]]
    count <- function(rows) {
      with_fault(
        run("cuda", rows), "launch_failure", nth = 0, device = id
      )$matched
    }
    # The GPU is used alone, and as one of all.
    for (rows in unique(list(row, devices$device))) {
      expect_identical(run("cuda", rows), expected)
      before <- memory_free()
      for (nth in some_of(count(rows), 12)) {
        later <- NULL
        seconds <- system.time(
          seen <- with_fault(error = "launch_failure", nth = nth, device = id, {
            first <- tryCatch(run("cuda", rows), error = identity)
            later <- tryCatch(run("cuda", rows), error = identity)
            first
          })
        )[["elapsed"]]
        expect_lt(seconds, 10)
        expect_s3_class(seen$value, "fsknn_cuda_error")
        expect_true(seen$value$sticky)
        expect_identical(seen$value$device, row)
        expect_identical(conditionMessage(later), conditionMessage(seen$value))
        # The fault is simulated: the device works, and its memory was released.
        expect_identical(memory_free(), before)
      }
      expect_identical(run("cuda", rows), expected)
    }
  }
})

test_that("devices that are lost together are told of as one", {
  skip_if_no_cuda()
  skip_if(nrow(gpus_here()) < 2, "There is one GPU.")
  try_cuda <- function() {
    tryCatch(knn_search(small, 2, backend = "cuda"), error = identity)
  }
  # A thread drives each GPU, so it is random which fails first.
  for (round in 1:50) {
    seen <- with_fault(
      list(try_cuda(), try_cuda()), "illegal_address", "cudaSetDevice"
    )
    expect_true(seen$fired)
    expect_s3_class(seen$value[[1]], "fsknn_cuda_error")
    expect_identical(seen$value[[1]]$device, seen$value[[2]]$device)
  }
})

test_that("GPUs of different kinds give the same answer", {
  skip_if_no_cuda()
  run <- searches()[["filtered"]]
  expected <- run("cpu")
  real <- gpus_here(start = TRUE)
  parts <- strsplit(real$compute_capability, ".", fixed = TRUE)
  gpus <- data.frame(
    name = real$name, total = real$memory_total, free = real$memory_free,
    major = as.integer(vapply(parts, `[[`, "", 1)),
    minor = as.integer(vapply(parts, `[[`, "", 2)),
    multiprocessors = real$multiprocessors, shared = 227L * 1024L
  )
  gpus$shared[[nrow(gpus)]] <- 48L * 1024L
  gpus$free[[1]] <- 64 * 2^20
  local_machine(gpus)
  expect_identical(run("cuda"), expected)
})

# Returns what a fresh session prints.
run_r <- function(code) {
  withr::with_envvar(
    c(R_LIBS = paste(.libPaths(), collapse = ":")),
    system2(
      file.path(R.home("bin"), "Rscript"), c("-e", shQuote(code)),
      stdout = TRUE, stderr = TRUE
    )
  )
}

test_that("a GPU that was not asked for is not started", {
  skip_if_no_cuda()
  devices <- nrow(gpus_here())
  code <- sprintf("
    library(fsknn)
    free <- function() is.na(knn_backends()$devices$cuda$memory_free)
    before <- free()
    x <- matrix(rnorm(5000 * 10), 5000)
    found <- knn_search(x, 3, devices = %d)
    after <- free()
    cat(before, after, sep = ' ')
  ", devices)
  said <- run_r(code)
  not_started <- c(rep("TRUE", devices), rep("TRUE", devices - 1), "FALSE")
  expect_identical(
    utils::tail(said, 1), paste(not_started, collapse = " ")
  )
})

test_that("a child forked after CUDA was used gets an error, and does not hang", {
  skip_if_no_cuda()
  skip_on_os("windows")
  expected <- knn_search(small, 2, backend = "cuda")
  job <- parallel::mcparallel(list(
    explicit = tryCatch(
      knn_search(small, 2, backend = "cuda"), error = function(err) {
        list(class = class(err), message = conditionMessage(err))
      }
    ),
    auto = suppressMessages(knn_search(small, 2))
  ))
  got <- NULL
  deadline <- Sys.time() + 20
  while (is.null(got) && Sys.time() < deadline) {
    got <- parallel::mccollect(job, wait = FALSE, timeout = 1)
  }
  expect_false(is.null(got))
  expect_true("fsknn_cuda_error" %in% got[[1]]$explicit$class)
  expect_match(got[[1]]$explicit$message, "forked")
  expect_identical(got[[1]]$auto, expected)
  expect_identical(knn_search(small, 2, backend = "cuda"), expected)
})

test_that("a child forked after the CPU's threads were used may use CUDA", {
  skip_if_no_cuda()
  skip_on_os("windows")
  # This needs its own session, in which CUDA was not used before the fork.
  code <- "
    library(fsknn)
    x <- matrix(sin(seq_len(6000 * 12)^1.1), 6000)
    here <- knn_search(x, 3, backend = 'cpu', num_threads = 2)
    job <- parallel::mcparallel(
      knn_search(x, 3, backend = 'cuda', num_threads = 2)
    )
    got <- NULL
    deadline <- Sys.time() + 30
    while (is.null(got) && Sys.time() < deadline)
      got <- parallel::mccollect(job, wait = FALSE, timeout = 1)
    if (is.null(got)) tools::pskill(job$pid, 9)
    cat(identical(got[[1]], here))
  "
  expect_identical(utils::tail(run_r(code), 1), "TRUE")
})
