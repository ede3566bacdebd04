test_that("a plan is known for a matrix and for its size alike", {
  x <- random_matrix(120, 7)
  expect_identical(plan_of(x), plan_of(c(120, 7)))
  expect_identical(plan_of(as.data.frame(x)), plan_of(x))
})

test_that("the plan's numbers agree with each other", {
  for (n in c(2, 17, 1000, 24158)) {
    for (chunk_size in list(NULL, 16, 48, 1000)) {
      plan <- knn_plan(
        c(n, 295), k = 1, backend = "cpu", num_threads = 2,
        chunk_size = chunk_size
      )
      expect_identical(as.double(plan$num_points), as.double(n))
      # These are equations 1 and 2 of the paper.
      expect_equal(
        plan$padded_points, plan$chunk_size * ceiling(n / plan$chunk_size)
      )
      expect_equal(
        plan$padded_features, plan$data_block * ceiling(295 / plan$data_block)
      )
      expect_equal(plan$num_splits, plan$padded_points / plan$chunk_size)
      expect_gte(plan$num_segments * plan$splits_per_segment, plan$num_splits)
      # By symmetry, about half of the chunks are computed, and never more than
      # all.
      splits <- plan$num_splits
      expect_gte(plan$num_chunks, splits * (splits + 1) / 2)
      expect_lte(plan$num_chunks, splits^2)
      expect_gte(plan$bytes_peak, plan$bytes_result)
    }
  }
})

test_that("queries are planned as well", {
  x <- random_matrix(100, 7)
  plan <- plan_of(x, query = 30)
  expect_equal(plan$num_queries, 30)
  expect_identical(plan, plan_of(x, query = random_matrix(30, 7)))
  expect_equal(knn_plan(c(1, 7), k = 1, query = 2)$k, 1)
})

test_that("a plan for millions of points takes no time", {
  plan <- knn_plan(c(1533876, 295), backend = "cpu")
  expect_equal(plan$num_points, 1533876)
})

test_that("a plan can be made for the GPU", {
  skip_if_no_cuda()
  plan <- knn_plan(c(24158, 295), backend = "cuda")
  expect_gte(nrow(plan$devices), 1)
})

test_that("a plan prints in the paper's words", {
  # All numbers are made up, because real ones depend on the machine.
  gpus <- data.frame(
    device = c(1L, 3L), cuda_id = c(0L, 2L), name = c("GTX 480", "C2050"),
    memory_free = c(1.5, 3) * 2^30
  )
  plan <- structure(
    list(
      backend = "cpu", metric = "pearson", sign = "negative", host_cpus = 8L,
      num_threads = 4L, devices = gpus[0, ], num_points = 24158,
      num_features = 295, num_queries = 0, k = 20, chunk_size = 1024,
      padded_points = 24576, padded_features = 304, data_block = 16,
      num_splits = 24, chunks_per_split = 24, num_segments = 4,
      splits_per_segment = 6, num_chunks = 300, num_workers = 4,
      bytes_prepared = 6e7, bytes_filter = 3e7, bytes_result = 5798e3,
      bytes_peak = 1e8, instruction_set = "baseline", filter = "some products",
      streamed = FALSE, num_passes = 1, max_device_memory = 0, bytes_file = 0,
      block_points = 0, bytes_made_from = 0, bytes_host = 0
    ),
    class = "fsknn_plan"
  )
  with_gpus <- plan
  with_gpus$backend <- "cuda"
  with_gpus$devices <- gpus
  with_gpus$instruction_set <- ""
  with_gpus$num_queries <- 1000
  with_gpus$padded_points <- 24158
  streamed <- with_gpus
  streamed$filter <- ""
  streamed$bytes_filter <- 0
  streamed$streamed <- TRUE
  streamed$num_passes <- 5
  streamed$max_device_memory <- 2^29
  stretches <- streamed
  stretches$filter <- "some products"
  stretches$bytes_filter <- 2e7
  stretches$bytes_host <- 3e8
  made <- streamed
  made$bytes_made_from <- 5e6
  too_large <- with_gpus
  too_large$bytes_peak <- 2^31
  expect_snapshot({
    plan
    with_gpus
    streamed
    stretches
    made
    too_large
  })
})

test_that("a real plan prints", {
  expect_output(print(knn_plan(c(100, 5))), "Chunks in each split:")
})

test_that("wrong sizes are an error", {
  expect_messages({
    knn_plan(100)
    knn_plan(c(100, 5, 2))
    knn_plan(c(100, 5.5))
    knn_plan(c(100, NA))
    knn_plan(c(1, 5))
    knn_plan(c(10, 0))
    knn_plan(c(10, 1))
    knn_plan(c(10, 5), k = 10)
    knn_plan(c(10, 5), k = 2, query = 0)
    knn_plan(c(10, 5), k = 2, query = matrix(0, 2, 4))
    knn_plan("a")
    knn_plan(c(100, 5), chunk = 2, threads = 3)
  })
})

test_that("a plan knows of missing values", {
  plain <- knn_plan(c(1000, 50), backend = "cpu")
  expect_identical(knn_plan(c(1000, 50), backend = "cpu", na = "mean"), plain)
  plan <- knn_plan(c(1000, 50), backend = "cpu", na = "pairwise")
  expect_match(plan$filter, "common samples")
  expect_gt(plan$bytes_filter, 2 * plain$bytes_filter)
  expect_gte(plan$bytes_prepared, plain$bytes_prepared)
  expect_identical(plan$num_chunks, plain$num_chunks)
  # The plan is what a search reports.
  x <- random_matrix(60, 9)
  x[2, 3] <- NA
  expect_message(
    expect_message(
      knn_search(x, 3, na = "pairwise", verbose = TRUE, backend = "cpu"),
      "common samples"
    ),
    "Seconds:"
  )
  expect_messages({
    knn_plan(c(100, 5), metric = "chebyshev", na = "pairwise")
    knn_plan(c(100, 5), weights = 1:5, na = "pairwise", backend = "cpu")
    fsknn:::check_planned_cpu(
      list(na = "pairwise", backend = list(name = "cuda")),
      call = quote(knn_plan())
    )
  })
})
