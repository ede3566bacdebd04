# Compares the plan of a sample with its search.
expect_look <- function(x, k, metric = "pearson", sign = "signed", ...,
                        query = NULL) {
  plan <- knn_plan(x, k, metric, sign, ..., query = query, filter = TRUE)
  if (is.null(query)) {
    knn_search(x, k, metric, sign, ..., constant = "isolate")
  } else {
    knn_query(x, query, k, metric, sign, ...)
  }
  stats <- knn_stats()
  forms <- c("filter_bits", "filter_form")
  testthat::expect_identical(unclass(plan)[forms], unclass(stats)[forms])
  if (stats$pairs_pruned > 0) testthat::expect_true(plan$pruned)
  plan
}

test_that("a plan that looks names the filter of the search", {
  x <- random_matrix(300, 12)
  for_all_metrics(function(metric, sign, backend) {
    values <- values_for(x, metric)
    expect_look(values, 4, metric, sign, backend = backend)
    expect_look(
      values, 4, metric, sign, backend = backend, query = values[1:200, ]
    )
  })
})

test_that("the points decide it", {
  x <- random_matrix(300, 12)
  bits <- function(x, metric) {
    expect_look(x, 3, metric, backend = "cpu")$filter_bits
  }
  expect_identical(bits(x, "manhattan"), 16L)
  expect_identical(bits(x * 10^rep_len(0:9, 300), "manhattan"), 32L)
  expect_identical(bits(values_for(x, "jaccard"), "manhattan"), 1L)
  expect_identical(bits(x, "canberra"), 0L)
  for (asked in c("auto/8", "auto/int8")) {
    withr::local_options(fsknn.instruction_set = asked)
    expect_identical(bits(x, "pearson"), 8L)
  }
})

test_that("it says whether pairs are told apart before the filter", {
  x <- exp(random_matrix(400, 12))
  plan <- expect_look(x, 3, "manhattan", backend = "cpu")
  expect_false(plan$pruned)
  withr::local_options(fsknn.instruction_set = "auto/sorted")
  plan <- expect_look(x, 3, "manhattan", backend = "cpu")
  expect_true(plan$pruned)
})

test_that("it looks as the search does at few queries, blocks and files", {
  x <- random_matrix(400, 12)
  for (backend in backends_here()) {
    few <- expect_look(x, 3, backend = backend, query = x[1, , drop = FALSE])
    if (backend == "cpu") expect_identical(few$filter_bits, 0L)
    block <- gl(4, 100)
    for (between in list(FALSE, TRUE)) {
      expect_look(x, 3, backend = backend, block = block, between = between)
    }
    expect_look(
      x, 3, backend = backend, block = block, query = random_matrix(90, 12)
    )
  }
  skip_if_not_installed("DelayedArray")
  lazy <- DelayedArray::DelayedArray(x)
  plan <- expect_look(lazy, 3, backend = "cpu", max_memory = 20000)
  expect_gt(plan$bytes_file, 0)
})

test_that("it looks at points with values missing, and leaves rows out", {
  x <- random_matrix(200, 12)
  x[cbind(1:40, 1 + 1:40 %% 12)] <- NA
  for (metric in c("pearson", "euclidean")) {
    plan <- expect_look(x, 3, metric, backend = "cpu", na = "pairwise")
    expect_identical(plan$filter_bits, 16L)
    expect_look(x, 3, metric, backend = "cpu", na = "mean")
  }
  expect_error(
    knn_plan(x, 3, backend = "cpu", filter = TRUE), class = "fsknn_finite_error"
  )
  x <- random_matrix(200, 12)
  x[7, ] <- 1
  expect_look(x, 3, backend = "cpu")
})

test_that("what is wrong besides is told before points are looked at", {
  x <- random_matrix(50, 6)
  x[1, 1] <- NA
  expect_error(knn_plan(x, k = 50, backend = "cpu", filter = TRUE), "`k` must be")
})

test_that("it leaves no facts of a search behind", {
  x <- random_matrix(100, 6)
  knn_search(x, 3, backend = "cpu")
  before <- knn_stats()
  knn_plan(x, 5, "euclidean", backend = "cpu", filter = TRUE)
  expect_identical(knn_stats(), before)
})

test_that("GPUs look at points in memory, in panels and in stretches", {
  skip_if_no_cuda()
  x <- random_matrix(6000, 40)
  for (metric in c("pearson", "manhattan", "euclidean")) {
    for (devices in gpus_to_try()) {
      for (forced in c("auto", "auto/8", "auto/16")) {
        withr::local_options(fsknn.instruction_set = forced)
        expect_look(x, 5, metric, backend = "cuda", devices = devices)
      }
      withr::local_options(fsknn.instruction_set = "auto")
      for (limit in limits_for_panels(x, 5, metric)) {
        expect_look(
          x, 5, metric, backend = "cuda", devices = devices,
          max_device_memory = limit
        )
      }
    }
  }
  # A search afterwards is not affected.
  found <- knn_search(x, 5, backend = "cuda")
  expect_identical(found, knn_search(x, 5, backend = "cpu"))
})

test_that("what a look told prints", {
  plan <- knn_plan(c(100, 5), k = 3, backend = "cpu")
  line <- function(bits, form, pruned) {
    plan[c("filter_bits", "filter_form", "pruned")] <- list(bits, form, pruned)
    grep("^Filter:", format(plan), value = TRUE)
  }
  expect_match(
    line(8L, "int8", FALSE), "int8, numbers of 8 bits (chosen", fixed = TRUE
  )
  expect_match(
    line(1L, "bits", FALSE), "bits, numbers of 1 bit (chosen", fixed = TRUE
  )
  expect_match(line(16L, "int16", TRUE), "pairs that bounds on points leave")
  expect_match(line(0L, "none", FALSE), "none")
})

test_that("there must be points to look at", {
  x <- random_matrix(20, 5)
  expect_messages({
    knn_plan(c(100, 5), k = 3, filter = TRUE)
    knn_plan(x, k = 3, query = 4, filter = TRUE)
    knn_plan(x, k = 3, hosts = 2, filter = TRUE)
    knn_plan(x, k = 3, filter = NA)
  })
})

test_that("plans and searches agree about which metrics have a filter", {
  for_all_metrics(function(metric, sign, backend) {
    if (backend != "cpu") {
      return()
    }
    x <- values_for(random_matrix(300, 12), metric)
    knn_search(x, 3, metric, sign, backend = backend)
    expect_identical(knn_stats()$filtered, has_filter(metric), label = metric)
  })
})

test_that("the help names every form of a filter", {
  help <- fsknn:::filter_form_help()
  for (form in c("none", "bits", "int8", "int8_centred", "float32")) {
    expect_match(help, paste0("\"", form, "\""), fixed = TRUE)
  }
})
