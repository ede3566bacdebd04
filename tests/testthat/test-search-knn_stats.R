forget_search <- function() {
  rm(list = ls(fsknn:::session), envir = fsknn:::session)
}

test_that("there is nothing to say before the first search", {
  forget_search()
  expect_null(knn_stats())
})

test_that("a search leaves its facts, and they are no part of the answer", {
  x <- random_matrix(90, 8)
  for_all_metrics(function(metric, sign, backend) {
    found <- knn_search(
      values_for(x, metric), 4, metric, sign, backend = backend
    )
    expect_named(found, c("index", "distance"))
    expect_null(attributes(found$index)$stats)
    stats <- knn_stats()
    expect_s3_class(stats, "fsknn_stats")
    expect_identical(stats$backend, backend)
    expect_identical(stats$metric, metric)
    expect_identical(stats$sign, sign)
    expect_identical(stats$k, 4L)
    expect_identical(stats$num_points, 90L)
    expect_identical(stats$num_features, 8L)
    expect_identical(stats$num_queries, 0L)
    # Every distance was computed in double, with any filter.
    expect_gte(stats$pairs_exact, 90 * 4 / 2)
    expect_true(all(stats$seconds >= 0))
    expect_gte(
      stats$seconds[["call"]],
      sum(stats$seconds[c("prepare", "search", "emit")])
    )
  })
})

test_that("the facts are those of the last search that ended well", {
  x <- random_matrix(60, 5)
  knn_query(x, x[1:7, ], 2, backend = "cpu")
  expect_identical(knn_stats()$num_queries, 7L)
  expect_identical(knn_stats()$num_devices, 0L)
  expect_identical(knn_stats()$devices, integer())
  before <- knn_stats()
  expect_error(knn_search(x, 100, backend = "cpu"))
  expect_identical(knn_stats(), before)
  knn_graph(x, 3, "euclidean", backend = "cpu")
  expect_identical(knn_stats()$metric, "euclidean")
})

test_that("the CPU's filter is seen at work", {
  knn_search(random_matrix(1000, 8), 2, backend = "cpu")
  expect_true(knn_stats()$filtered)
  expect_gt(knn_stats()$pairs_filtered, 1000 * 999 / 2 - 1)
  expect_lt(knn_stats()$pairs_exact, 1000 * 999 / 2)
})

test_that("the filter's numbers are told, and their bits", {
  x <- random_matrix(300, 12)
  bits_of <- function(x, metric = "pearson", ask = "auto", ...) {
    rlang::with_options(
      fsknn.instruction_set = ask,
      knn_search(x, 3, metric, backend = "cpu", ...)
    )
    knn_stats()[c("filtered", "filter_form", "filter_bits")]
  }
  of <- function(form, bits) {
    list(filtered = bits > 0L, filter_form = form, filter_bits = bits)
  }
  expect_identical(bits_of(x, ask = "auto/8"), of("int8", 8L))
  expect_identical(bits_of(x, ask = "auto/16"), of("int16", 16L))
  expect_identical(bits_of(x, "manhattan"), of("int16", 16L))
  expect_identical(bits_of(values_for(x, "jaccard"), "jaccard"), of("bits", 1L))
  expect_identical(
    bits_of(x * 10^rep_len(0:9, 300), "manhattan"), of("float32", 32L)
  )
  expect_identical(bits_of(x, "canberra"), of("none", 0L))
  # Genotypes over common samples: DUO's counts are bits.
  loci <- values_for(x, "duo")
  loci[5, 3] <- NA
  of_pairs <- lapply(c("duo", "ccc"), function(metric) {
    bits_of(loci, metric, na = "pairwise")
  })
  expect_identical(of_pairs, list(of("bits", 1L), of("int8", 8L)))
  # The rows are near-duplicates, and the filter subtracts a centre.
  expect_identical(bits_of(1e6 + x, "cosine"), of("int16_centred", 16L))
  for (form in c("int8", "int16")) {
    bits <- if (form == "int8") 8L else 16L
    expect_identical(bits_of(x, ask = paste0("auto/", form)), of(form, bits))
  }
  # A form of the other engine means its number of bits.
  expect_identical(bits_of(x, ask = "auto/float16"), of("int16", 16L))
  expect_error(bits_of(x, ask = "auto/float8"), "instruction_set")
})

test_that("GPUs tell the bits of their filters' numbers", {
  skip_if_no_cuda()
  x <- random_matrix(4500, 20)
  bits_of <- function(x, metric, ask = "auto") {
    rlang::with_options(
      fsknn.instruction_set = ask, knn_search(x, 3, metric, backend = "cuda")
    )
    unlist(knn_stats()[c("filter_form", "filter_bits")], use.names = FALSE)
  }
  of <- function(form, bits) c(form, bits)
  filter <- knn_plan(x, 3, backend = "cuda")$filter
  skip_if(!nzchar(filter), "No GPU here has the filter.")
  expect_identical(bits_of(x, "pearson", "auto/16"), of("float16", 16L))
  expect_identical(bits_of(x, "euclidean"), of("float16", 16L))
  expect_identical(bits_of(x, "manhattan"), of("float32", 32L))
  expect_identical(bits_of(x, "canberra"), of("none", 0L))
  bits <- knn_plan(x, 3, "jaccard", backend = "cuda")$filter
  expect_identical(
    bits_of(values_for(x, "jaccard"), "jaccard"),
    if (grepl("bits", bits, fixed = TRUE)) {
      of("bits", 1L)
    } else {
      of("float32", 32L)
    }
  )
  # For so few points, halves are faster.
  expect_identical(bits_of(x, "pearson"), of("float16", 16L))
  withr::local_options(fsknn.instruction_set = "auto/8")
  filter <- knn_plan(x, 3, backend = "cuda")$filter
  skip_if_not(
    grepl("bytes", filter, fixed = TRUE), "No GPU here multiplies bytes."
  )
  expect_identical(bits_of(x, "pearson", "auto/int8"), of("int8", 8L))
})

test_that("on GPUs it names those that took part, and their memory", {
  skip_if_no_cuda()
  x <- random_matrix(5000, 20)
  knn_search(x, 5, backend = "cuda", devices = 1)
  stats <- knn_stats()
  expect_identical(stats$num_devices, 1L)
  expect_identical(stats$devices, 1L)
  expect_gt(stats$bytes_device, 5000 * 20)
  expect_gt(stats$seconds[["device"]], 0)
})

test_that("the facts print", {
  # All numbers are made up.
  stats <- list(
    num_devices = 0L, pairs_filtered = 1e6, pairs_pruned = 405, pairs_exact = 12345,
    rows_recomputed = 0, rows_widened = 0, rows_short = 0, filtered = TRUE,
    filter_form = 1L, filter_bits = 1L, streamed = FALSE,
    seconds_prepare = 0.0101,
    seconds_search = 0.5, seconds_emit = 0.01,
    seconds_device = 0, bytes_device = 0
  )
  request <- list(
    backend = "cpu", metric = "pearson", sign = "absolute", k = 5L,
    devices = integer()
  )
  on_cpu <- fsknn:::new_stats(c(1415L, 3L), 0L, request, stats, 0.53)
  request$backend <- "cuda"
  request$devices <- c(2L, 3L)
  stats$num_devices <- 2L
  stats$pairs_pruned <- 0
  stats$filter_form <- 3L
  stats$filter_bits <- 8L
  stats$rows_recomputed <- 1200
  stats$rows_widened <- 1100
  stats$streamed <- TRUE
  stats$bytes_device <- 3 * 2^30
  stats$seconds_device <- 0.25
  on_gpus <- fsknn:::new_stats(c(1415L, 3L), 10L, request, stats, 0.53)
  expect_snapshot({
    on_cpu
    on_gpus
  })
  request$devices <- integer()
  all_gpus <- fsknn:::new_stats(c(9L, 3L), 0L, request, stats, 0.53)
  expect_identical(all_gpus$devices, 1:2)
})
