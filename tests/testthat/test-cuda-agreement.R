# The GPUs of one search exchange their results. Each must therefore choose the
# same filter for the points, whatever it holds from earlier searches.

# Returns the answer, and the number of bits in the filter.
ask_held <- function(points, x, k, metric, devices, chunk_size = 0L) {
  options <- list(
    metric = list(name = metric), sign = "signed", num_threads = 4L,
    chunk_size = chunk_size,
    backend = list(name = "cuda", devices = devices)
  )
  request <- fsknn:::new_request(as.integer(k), options)
  if (is.null(points)) {
    return(fsknn:::hold_points(x, request))
  }
  found <- fsknn:::in_core(fsknn:::ask_core(points, NULL, request))
  list(
    neighbours = as_neighbours(found[c("index", "distance")]),
    bits = found$stats$filter_bits, devices = found$stats$num_devices
  )
}

# Returns the largest memory limit for each path: points in double on each GPU,
# in panels, and with the filter's rows in host memory.
limits_of_ways <- function(x, k, metric, devices) {
  limits <- c(whole = Inf)
  plan <- function(...) {
    knn_plan(
      x, k, metric, backend = "cuda", devices = devices, chunk_size = 1000, ...
    )
  }
  for (bytes in plan()$bytes_peak * 0.9^(1:60)) {
    found <- plan(max_device_memory = bytes)
    if (!found$streamed || !nzchar(found$filter)) next
    way <- if (found$bytes_host > 0) "stretches" else "panels"
    if (is.na(limits[way])) limits[[way]] <- bytes
  }
  limits
}

test_that("what is held of points is filtered as each search would filter", {
  skip_if_no_cuda()
  # Bytes leave few candidates for 5 neighbours, and too many for 300.
  x <- random_matrix(20000, 78, seed = 91)
  metric <- "manhattan"
  fresh <- lapply(c(5, 300), function(k) {
    found <- knn_search(x, k, metric, backend = "cuda", devices = 1)
    list(
      neighbours = as_neighbours(unclass(found)[c("index", "distance")]),
      bits = knn_stats()$filter_bits
    )
  })
  skip_if(!knn_stats()$filtered, "No GPU here has the filter.")
  skip_if(
    fresh[[1]]$bits == fresh[[2]]$bits, "One form serves few and many here."
  )
  for (devices in gpus_to_try()) {
    devices <- devices %||% seq_len(2)
    points <- ask_held(NULL, x, 5, metric, devices)
    # The first device searches alone, then all do, then the first again.
    for (at in c(1, 2, 1)) {
      found <- ask_held(
        points, x, c(5, 300)[[at]], metric, devices,
        chunk_size = if (at == 2) 1000L else 0L
      )
      label <- paste(length(devices), "GPUs, k =", c(5, 300)[[at]])
      expect_identical(found$bits, fresh[[at]]$bits, label = label)
      expect_same_bits(found$neighbours, fresh[[at]]$neighbours, label)
      expect_identical(
        as.integer(found$devices), if (at == 2) length(devices) else 1L,
        label = label
      )
    }
    fsknn:::give_back_held(points)
  }
})

test_that("what is held of points is right after a filter learnt again", {
  skip_if_no_cuda()
  x <- random_matrix(6000, 40, seed = 96)
  few <- seq(1, 6000, 11)
  x[cbind(few, rep_len(1:40, length(few)))] <- 1e9
  for (devices in gpus_to_try()) {
    devices <- devices %||% seq_len(2)
    points <- ask_held(NULL, x, 5, "euclidean", devices)
    for (k in c(5, 9, 5)) {
      expect_same_bits(
        ask_held(points, x, k, "euclidean", devices)$neighbours,
        as_neighbours(unclass(
          knn_search(x, k, "euclidean", backend = "cpu")
        )[c("index", "distance")]),
        paste(length(devices), "GPUs, k =", k)
      )
    }
    fsknn:::give_back_held(points)
  }
})

test_that("GPUs that learnt different filters don't believe each other", {
  skip_if_no_cuda()
  skip_if(nrow(gpus_here()) < 2, "There is one GPU.")
  x <- random_matrix(9000, 60, seed = 92)
  expected <- knn_search(x, 5, backend = "cpu")
  limits <- limits_of_ways(x, 5, "pearson", 1:2)
  expect_named(limits, c("whole", "panels", "stretches"))
  for (way in names(limits)) {
    run <- function() {
      knn_search(
        x, 5, backend = "cuda", devices = 1:2, chunk_size = 1000,
        max_device_memory = if (way != "whole") limits[[way]]
      )
    }
    expect_identical(run(), expected, label = way)
    expect_identical(knn_stats()$num_devices, 2L, label = way)
    for (device in gpus_here()$cuda_id[1:2]) {
      found <- with_fault(
        run(), "invalid_value", "another filter learnt", device = device
      )
      expect_true(found$fired, label = way)
      expect_s3_class(found$value, "error")
      expect_match(conditionMessage(found$value), "learnt different filters")
    }
    expect_identical(run(), expected, label = way)
  }
})

# One row does not fit the number form of the others. The points are shuffled,
# so such rows are on either GPU.
test_that("a row that a form can't hold may be any GPU's", {
  skip_if_no_cuda()
  whole <- small_integers(4500, 20, largest = 2, seed = 93)
  spread <- random_matrix(4500, 20, seed = 94)
  cases <- list(
    list(x = whole, metric = "manhattan", entry = 0.5, bits = "auto"),
    list(x = whole, metric = "proportional", entry = 1e7, bits = "auto"),
    list(x = pmin(whole, 1), metric = "euclidean", entry = 2, bits = "auto"),
    list(x = spread, metric = "manhattan", entry = 1e150, bits = "auto/8"),
    list(x = spread, metric = "pearson", entry = 1e9, bits = "auto/8"),
    list(x = spread, metric = "euclidean", entry = 1e40, bits = "auto/16")
  )
  for (case in cases) {
    withr::local_options(fsknn.instruction_set = case$bits)
    for (row in c(1, 2, 1500, 3000, 4499, 4500)) {
      x <- case$x
      x[row, 7] <- case$entry
      expected <- knn_search(x, 6, case$metric, backend = "cpu")
      for (devices in gpus_to_try()) {
        expect_identical(
          knn_search(
            x, 6, case$metric, backend = "cuda", devices = devices,
            chunk_size = 1000
          ),
          expected,
          label = paste(case$metric, case$entry, "row", row)
        )
        expect_true(knn_stats()$filtered)
      }
    }
  }
})

test_that("long lists are the same from one GPU and from two", {
  skip_if_no_cuda()
  x <- random_matrix(4600, 40, seed = 95)
  x[4001:4200, ] <- x[1:200, ]
  for (k in c(300, 1024)) {
    for (metric in c("pearson", "euclidean", "manhattan")) {
      expected <- knn_search(x, k, metric, backend = "cpu")
      for (devices in gpus_to_try()) {
        devices <- devices %||% 1:2
        limits <- limits_of_ways(x, k, metric, devices)
        for (way in names(limits)) {
          label <- paste(metric, "k =", k, way, length(devices), "GPUs")
          expect_identical(
            knn_search(
              x, k, metric, backend = "cuda", devices = devices,
              chunk_size = 1000,
              max_device_memory = if (way != "whole") limits[[way]]
            ),
            expected,
            label = label
          )
          expect_identical(
            knn_stats()$num_devices, length(devices), label = label
          )
          expect_true(knn_stats()$filtered, label = label)
        }
      }
    }
  }
})
