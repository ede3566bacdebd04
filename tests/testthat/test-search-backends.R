facts_with <- function(built = TRUE, usable = FALSE, why = "no_device", ...) {
  list(
    cpu = list(instruction_sets = c("baseline", "avx2"), threads = 4L),
    cuda = list(
      built = built, usable = usable,
      why_not = if (!usable) list(why = why, ...),
      toolkit = if (built) "CUDA 13.0" else "", architectures = "90a"
    )
  )
}

two_devices <- function() {
  fsknn:::new_cuda_devices(data.frame(
    device = 1:2, cuda_id = 0:1, name = c("GTX 480", "C2050"),
    compute_capability = "2.0", memory_total = c(1.5, 3) * 2^30,
    memory_free = c(1, 2.75) * 2^30, multiprocessors = c(15L, 14L)
  ))
}

# Calls choose_backend() as a verb would, so that messages name one.
choose <- function(backend, devices = NULL, facts = facts_with()) {
  fsknn:::choose_backend(
    backend, devices, facts = facts, device_table = two_devices,
    call = quote(knn_search())
  )
}

# "auto" reports its choice once in a session, so this is reset.
told_by <- function(expr) {
  for (backend in c("cpu", "cuda")) {
    rlang::reset_message_verbosity(paste0("fsknn_auto_backend_", backend))
  }
  # Reports it again, for the tests that follow.
  on.exit(suppressMessages(knn_plan(c(10, 3), k = 1)))
  told <- NULL
  withCallingHandlers(expr, message = function(cnd) {
    told <<- c(told, conditionMessage(cnd))
    rlang::cnd_muffle(cnd)
  })
  told
}

test_that("the backends are listed, each with what is known of it", {
  table <- knn_backends()
  expect_s3_class(table, c("fsknn_backends", "data.frame"), exact = TRUE)
  expect_named(table, c("backend", "usable", "detail", "devices"))
  expect_named(table$devices, c("cpu", "cuda"))
  expect_wrong(knn_backends(start = 1))
  expect_identical(table$backend, c("cpu", "cuda"))
  expect_true(table$usable[[1]])
  expect_true(all(nzchar(table$detail)))
})

test_that("the list says why CUDA can't be used", {
  expect_snapshot({
    fsknn:::describe_backends(facts_with())
    fsknn:::describe_backends(facts_with(usable = TRUE))
  })
})

test_that("GPUs that were not compiled for are named, with what to do", {
  ask <- function(usable) {
    function() {
      facts <- facts_with(usable = usable, why = "other_devices")
      facts$cuda$left_out <- data.frame(
        name = c("Tesla T4", "GTX 480"), compute_capability = c("7.5", "2.0")
      )
      facts
    }
  }
  expect_snapshot({
    writeLines(fsknn:::describe_backends(fsknn:::backend_facts(ask(TRUE)))$detail)
    writeLines(fsknn:::describe_backends(fsknn:::backend_facts(ask(FALSE)))$detail)
  })
  expect_error(
    choose("cuda", facts = fsknn:::backend_facts(ask(FALSE))),
    "FSKNN_CUDA_ARCH=all"
  )
})

test_that("there are words for every reason that the core has", {
  reasons <- c(
    "not_built", "no_driver", "old_driver", "driver_mismatch", "no_device",
    "other_devices", "forked", "lost", "failed", "no_such_device"
  )
  words <- vapply(reasons, function(why) {
    facts <- facts_with(
      why = why, detail = "it was wished so.", driver = 11040L,
      runtime = 13000L, device = 3L, cuda_words = "what CUDA says"
    )
    facts$cuda$left_out <- data.frame(
      name = "Tesla T4", compute_capability = "7.5"
    )
    fsknn:::why_no_cuda(facts$cuda)
  }, "")
  expect_snapshot(writeLines(paste0(reasons, ": ", words)))
})

test_that("a failure to ask is a reason, not an error", {
  facts <- fsknn:::backend_facts(function() stop("the driver is gone"))
  expect_false(facts$cuda$usable)
  expect_identical(fsknn:::describe_backends(facts)$detail[[2]], "the driver is gone")
})

test_that("devices are listed, or the reason why there are none", {
  devices <- gpus_here()
  expect_named(devices, c(
    "device", "cuda_id", "name", "compute_capability", "memory_total",
    "memory_free", "multiprocessors"
  ))
  expect_s3_class(devices, c("fsknn_devices", "data.frame"), exact = TRUE)
  if (nrow(devices) == 0) {
    expect_true(nzchar(attr(devices, "reason")))
  }
})

test_that("devices print", {
  none <- fsknn:::new_cuda_devices(
    fsknn:::no_cuda_devices(), "This installation was built without CUDA."
  )
  expect_snapshot({
    two_devices()
    none
  })
  table <- fsknn:::describe_backends(facts_with(usable = TRUE))
  table$devices <- list(cpu = NULL, cuda = two_devices())
  expect_snapshot(fsknn:::print.fsknn_backends(table))
  table$devices <- list(cpu = NULL, cuda = none)
  expect_snapshot(fsknn:::print.fsknn_backends(table))
})

test_that("the self-test has a column, which is NA without a GPU", {
  expect_wrong(knn_backends(test = NA), "`test` must be TRUE or FALSE")
  table <- knn_backends(test = TRUE)
  expect_named(table, c("backend", "usable", "detail", "test", "devices"))
  expect_identical(nrow(table$devices$cuda), length(table$devices$cuda$test))
  expect_identical(table$test[[1]], NA_character_)
  if (!cuda_is_usable()) {
    expect_identical(table$test[[2]], NA_character_)
  }
})

test_that("GPUs pass the self-test", {
  skip_if_no_cuda()
  expect_no_warning(table <- knn_backends(test = TRUE))
  expect_identical(table$test, c(NA, "passed"))
  expect_identical(unique(table$devices$cuda$test), "passed")
  expect_false(anyNA(table$devices$cuda$memory_free))
  # CUDA is started by now.
  seconds <- system.time(knn_backends(test = TRUE))
  expect_lt(seconds[["elapsed"]], 5)
})

test_that("a failed self-test says what failed and what to do", {
  result <- function(failed = character(), finished = TRUE, why_not = "") {
    list(finished = finished, why_not = why_not, failed = failed)
  }
  tested <- function(...) {
    devices <- two_devices()
    devices$test <- fsknn:::words_of_self_tests(list(...))
    devices
  }
  passed <- tested(result(), result())
  expect_identical(fsknn:::summarise_self_tests(passed), "passed")
  expect_no_warning(fsknn:::warn_of_failed(passed, call = NULL))
  all <- c(
    "byte_sums", "bit_counts", "half_sums", "float64", "float32", "order"
  )
  one <- tested(result(), result("half_sums"))
  two <- tested(result(all), result(c("float64", "order")))
  unfinished <- tested(result(), result(finished = FALSE, why_not = "{lost}"))
  expect_warning(
    fsknn:::warn_of_failed(one, call = NULL), class = "fsknn_self_test_warning"
  )
  call <- quote(knn_backends())
  expect_messages({
    writeLines(fsknn:::summarise_self_tests(one))
    writeLines(fsknn:::summarise_self_tests(unfinished))
    fsknn:::warn_of_failed(one, call)
    fsknn:::warn_of_failed(two, call)
    fsknn:::warn_of_failed(unfinished, call)
  })
  expect_output(print(one), "failed: sums of products of half")
})

test_that("triples of alleles go to the CPU where a GPU is too old", {
  search <- function(automatic, devices = integer()) {
    list(
      request = list(backend = "cuda", devices = devices),
      options = list(automatic = automatic)
    )
  }
  devices <- two_devices()
  place <- function(search) {
    fsknn:::allele_triples_on_cpu(search, devices, call = NULL)
  }
  devices$compute_capability <- c("7.5", "10.0")
  rlang::reset_message_verbosity("fsknn_triples_of_alleles")
  expect_message(moved <- place(search(TRUE)), "compute capability 8.0")
  expect_identical(moved$request$backend, "cpu")
  expect_error(
    place(search(FALSE)), "compute capability 8.0",
    class = "fsknn_backend_error"
  )
  newer <- search(FALSE, devices$device[[2]])
  expect_identical(place(newer), newer)
  devices$compute_capability <- c("8.0", "12.0")
  expect_identical(place(search(FALSE)), search(FALSE))
})

test_that("auto takes CUDA where it can be used, and says so once", {
  usable <- facts_with(usable = TRUE)
  told <- told_by({
    chosen <- choose("auto", facts = usable)
    choose("auto", facts = usable)
  })
  expect_identical(chosen, list(name = "cuda", devices = integer()))
  expect_length(told, 1)
  expect_match(told, "Using backend \"cuda\"")
  expect_match(told, "GTX 480, C2050")
})

test_that("auto says why it takes the CPU only if CUDA was built in", {
  told <- told_by(chosen <- choose("auto"))
  expect_identical(chosen$name, "cpu")
  # This is news, not a failure, because nobody requested a GPU.
  expect_match(told, "\ni No NVIDIA GPU is visible")
  expect_null(told_by(choose("auto", facts = facts_with(built = FALSE))))
})

test_that("a backend that is asked for says nothing", {
  expect_null(told_by(choose("cpu")))
  expect_null(told_by(choose("cuda", facts = facts_with(usable = TRUE))))
})

test_that("the devices asked for are taken", {
  usable <- facts_with(usable = TRUE)
  expect_identical(choose("cuda", 2, usable)$devices, 2L)
  expect_identical(choose("cuda", c(2, 1), usable)$devices, 2:1)
})

test_that("a backend or device that is not there is an error that says why", {
  usable <- facts_with(usable = TRUE)
  unbuilt <- facts_with(FALSE, why = "not_built", detail = "it was wished so.")
  expect_messages({
    choose("cuda", facts = unbuilt)
    choose("cuda")
    choose("auto", devices = 1)
    choose("cuda", devices = 3, facts = usable)
    choose("cuda", devices = c(1, 7, 9), facts = usable)
  })
})

test_that("asking a user's call for CUDA fails where there is none", {
  if (cuda_is_usable()) {
    skip("CUDA is here.")
  }
  expect_error(
    knn_search(matrix(1:6, 3), 1, backend = "cuda"),
    class = "fsknn_backend_error"
  )
})

test_that("the demand for a GPU turns a skip into a failure", {
  if (cuda_is_usable()) {
    skip("CUDA is here.")
  }
  local_variable("FSKNN_REQUIRE_CUDA", "1")
  expect_error(skip_if_no_cuda(), "FSKNN_REQUIRE_CUDA")
})
