test_that("the request has exactly the fields that the core reads", {
  options <- fsknn:::check_options(list(
    metric = "spearman", sign = "absolute", backend = "cpu", num_threads = 2,
    chunk_size = 48
  ))
  request <- fsknn:::new_request(3L, options, skip = 4L)
  expect_identical(request, list(
    k = 3L, metric = "spearman", sign = "absolute", skip = 4L,
    query_skip = integer(), query_self = NULL, backend = "cpu", devices = integer(),
    num_threads = 2L, chunk_size = 48L, max_device_memory = 0,
    max_memory = 0, bytes_file = 0, weights = NULL, adjust = NULL, bytes_made_from = 0,
    correlation = FALSE, as_edges = FALSE, largest = -1, na = "error",
    min_pairs = 3L, subset = NULL, feature_subset = NULL, blocks = NULL,
    progress = FALSE, instruction_set = "auto"
  ))
})

test_that("all within a distance are asked for without a k", {
  x <- random_matrix(20, 5)
  rownames(x) <- letters[1:20]
  options <- fsknn:::check_options(list(backend = "cpu", max_memory = 8e4))
  search <- fsknn:::new_search(x, options, as_edges = TRUE)
  expect_null(search$request$k)
  expect_false(fsknn:::is_within(search$request))
  asked <- fsknn:::ask_within(search, 0.5, similarity = 0.5)$request
  expect_true(fsknn:::is_within(asked))
  expect_identical(asked$within, list(
    limits = 0.5, similarity = 0.5, most = 2000, most_kept = 2^24
  ))
})
