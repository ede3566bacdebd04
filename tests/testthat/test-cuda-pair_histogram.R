# All pairs counted on a GPU. The counts are those of the CPU, however many
# pairs need double.

counted <- function(x, ..., backend) {
  found <- pair_histogram(
    x, ..., backend = backend, devices = if (backend == "cuda") 1,
    constant = "isolate"
  )
  found$exact <- NULL
  found
}

test_that("a GPU counts what the CPU counts, under every metric", {
  skip_if_no_cuda()
  for_all_metrics(function(metric, sign, backend) {
    if (backend != "cuda") {
      return()
    }
    x <- values_for(random_matrix(700, 13, seed = 81), metric)
    x[c(5, 600), ] <- undefined_value(metric)
    label <- paste(metric, sign)
    distance <- knn_search(
      x, 690, metric, sign, backend = "cpu", constant = "isolate"
    )$distance
    at <- unique(stats::quantile(distance, 0:30 / 30, type = 1, na.rm = TRUE,
                                 names = FALSE))
    # Breaks are distances of pairs and their adjacent numbers.
    beside <- sort(unique(c(at, at * (1 + 2^-52))))
    for (breaks in list(beside, 12, 5000, c(-Inf, at[[2]], Inf))) {
      if (length(breaks) == 1 || length(unique(breaks)) > 1) {
        expect_identical(
          counted(x, breaks, metric, sign, value = "distance", backend = "cuda"),
          counted(x, breaks, metric, sign, value = "distance", backend = "cpu"),
          label = label
        )
      }
    }
    expect_identical(
      counted(x, 17, metric, sign, backend = "cuda"),
      counted(x, 17, metric, sign, backend = "cpu"),
      label = label
    )
  })
})

test_that("chunks, little memory and several GPUs change no count", {
  skip_if_no_cuda()
  x <- random_matrix(3000, 30, seed = 82)
  for (metric in c("pearson", "euclidean")) {
    expected <- counted(x, 40, metric, backend = "cpu")
    on_gpu <- function(...) {
      found <- pair_histogram(x, 40, metric, backend = "cuda", ...)
      found$exact <- NULL
      found
    }
    expect_identical(on_gpu(), expected)
    expect_identical(on_gpu(chunk_size = 64, devices = 1), expected)
    expect_identical(on_gpu(max_device_memory = 5e6, devices = 1), expected)
  }
})

test_that("weights, covariates and a distance beyond range are heard of", {
  skip_if_no_cuda()
  x <- random_matrix(300, 12, seed = 83)
  weights <- seq(0.5, 2, length.out = 12)
  batch <- rep(0:1, 6)
  for (backend in c("cpu", "cuda")) {
    expect_identical(
      counted(x, 20, weights = weights, backend = backend),
      counted(x, 20, weights = weights, backend = "cpu")
    )
    expect_identical(
      counted(x, 20, adjust = batch, backend = backend),
      counted(x, 20, adjust = batch, backend = "cpu")
    )
    expect_error(
      counted(1e308 * rbind(c(1, 1), -1), c(0, 1), "manhattan",
              backend = backend),
      class = "fsknn_range_error"
    )
  }
  lacking <- replace(x, 7, NA)
  expect_error(
    pair_histogram(lacking, 5, na = "pairwise", backend = "cuda"),
    class = "fsknn_backend_error"
  )
})
