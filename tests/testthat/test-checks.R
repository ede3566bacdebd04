# Each message as a user sees it.

test_that("k must be a whole number that fits", {
  x <- random_matrix(10, 4)
  expect_snapshot(error = TRUE, {
    find_knn(x, k = 2.5)
    find_knn(x, k = 0)
    find_knn(x, k = -1)
    find_knn(x, k = NA)
    find_knn(x, k = NaN)
    find_knn(x, k = Inf)
    find_knn(x, k = c(1, 2))
    find_knn(x, k = integer())
    find_knn(x, k = "3")
    find_knn(x, k = NULL)
    find_knn(x, k = TRUE)
    find_knn(x, k = list(3))
    find_knn(x, k = 10)
    find_knn(x, k = 1e300)
    find_knn(x)
    find_knn(x[1:2, ], k = 2)
    knn_graph(x, k = 10)
  })
})

test_that("an unknown metric is an error that offers the nearest", {
  x <- random_matrix(10, 4)
  expect_snapshot(error = TRUE, {
    find_knn(x, 2, metric = "euclidian")
    find_knn(x, 2, metric = "Pearson")
    find_knn(x, 2, metric = "Bray-Curtis")
    find_knn(x, 2, metric = "something else")
    find_knn(x, 2, metric = NA)
    find_knn(x, 2, metric = NA_character_)
    find_knn(x, 2, metric = 1)
    find_knn(x, 2, metric = NULL)
    find_knn(x, 2, metric = c("pearson", "cosine"))
  })
})

test_that("a sign must be one, and only for a metric that has signs", {
  x <- random_matrix(10, 4)
  expect_snapshot(error = TRUE, {
    find_knn(x, 2, sign = "negativ")
    find_knn(x, 2, sign = -1)
    find_knn(x, 2, metric = "cosine", sign = "absolute")
    knn_graph(x, 2, metric = "manhattan", sign = "negative")
  })
})

test_that("values that are not finite are an error that says where", {
  x <- random_matrix(10, 4)
  rownames(x) <- paste0("g", 1:10)
  one <- replace(x, 13, NA)
  many <- x
  many[7, 1] <- NaN
  many[2, 2:3] <- c(Inf, -Inf)
  many[9, 4] <- NA
  integers <- matrix(c(1:7, NA), 4)
  logicals <- matrix(c(TRUE, FALSE, NA, TRUE), 2)
  expect_snapshot(error = TRUE, {
    find_knn(one, 2)
    find_knn(many, 2)
    find_knn(unname(many), 2)
    find_knn(as.data.frame(many), 2, "euclidean")
    find_knn(integers, 2)
    find_knn(logicals, 1)
  })
})

test_that("too few points or features are an error", {
  x <- random_matrix(10, 4)
  expect_snapshot(error = TRUE, {
    find_knn(x[1, , drop = FALSE], 1)
    find_knn(x[0, ], 1)
    find_knn(x[, 0], 1)
    find_knn(matrix(numeric(), 0, 0), 1)
    find_knn(x[, 1, drop = FALSE], 1)
    find_knn(data.frame(), 1)
  })
})

test_that("rows without a value are an error that says how to go on", {
  x <- random_matrix(10, 4)
  rownames(x) <- paste0("g", 1:10)
  constant <- replace(x, cbind(3, 1:4), 7)
  more <- x
  more[c(2, 4, 5, 8), ] <- 1
  zero <- abs(x)
  zero[c(1, 10), ] <- 0
  expect_snapshot(error = TRUE, {
    find_knn(constant, 2)
    find_knn(more, 2, "spearman")
    find_knn(unname(more), 2)
    find_knn(zero, 2, "cosine")
    find_knn(zero, 2, "proportional")
    find_knn(more, 2, constant = "leave")
    find_knn(more * 0, 2, constant = "isolate")
    find_knn(more[c(1, 2, 4), ], 1, constant = "isolate")
  })
})

test_that("negative values under proportional are an error that says where", {
  x <- abs(random_matrix(10, 4))
  rownames(x) <- paste0("g", 1:10)
  one <- replace(x, 12, -0.5)
  many <- replace(x, c(2, 13, 25, 36), -1)
  expect_snapshot(error = TRUE, {
    find_knn(one, 2, "proportional")
    find_knn(many, 2, "proportional")
  })
})

test_that("options are checked", {
  x <- random_matrix(10, 4)
  expect_snapshot(error = TRUE, {
    find_knn(x, 2, chunk_size = 0)
    find_knn(x, 2, chunk_size = -16)
    find_knn(x, 2, chunk_size = 2.5)
    find_knn(x, 2, chunk_size = 1e9)
    find_knn(x, 2, chunk_size = "big")
    find_knn(x, 2, num_threads = 0)
    find_knn(x, 2, num_threads = 1e6)
    find_knn(x, 2, num_threads = NA)
    find_knn(x, 2, num_threads = c(1, 2))
    find_knn(x, 2, progress = "yes")
    find_knn(x, 2, progress = c(TRUE, FALSE))
    find_knn(x, 2, verbose = NULL)
    find_knn(x, 2, verbose = NA)
    find_knn(x, 2, devices = 0.5)
    find_knn(x, 2, devices = c(1, 1))
    find_knn(x, 2, devices = "1")
    find_knn(x, 2, devices = integer())
    find_knn(x, 2, backend = "gpu")
    find_knn(x, 2, backend = "cpu", devices = 1)
  })
})

test_that("a misspelt argument is an error", {
  x <- random_matrix(10, 4)
  expect_snapshot(error = TRUE, {
    find_knn(x, 2, n_threads = 2)
    knn_graph(x, 2, "pearson", "signed", "cpu")
    query_knn(x, x, 2, device = 1)
    as_igraph(knn_graph(x, 2), modus = "union")
    find_knn(x, 2, kk = 3)
    find_knn(x, 2, n = 3)
  })
  # A last comma is none.
  expect_identical(find_knn(x, 2, backend = "cpu", ), find_knn(x, 2))
})

test_that("a missing x is an error", {
  expect_snapshot(error = TRUE, {
    find_knn()
    knn_graph(k = 3)
  })
})

test_that("wrong arguments have a class of their own", {
  expect_error(find_knn("a"), class = "fsknn_argument_error")
  expect_error(find_knn("a"), class = "fsknn_error")
})

test_that("an error names the call that the user made", {
  x <- random_matrix(10, 4)
  call_of <- function(expr) {
    rlang::call_name(conditionCall(expect_error(expr)))
  }
  expect_identical(call_of(find_knn(x, 0)), "find_knn")
  expect_identical(call_of(find_knn(x, 2, chunk_size = 0)), "find_knn")
  expect_identical(call_of(find_knn(x, 2, backend = "gpu")), "find_knn")
  expect_identical(call_of(find_knn(x, 2, kk = 1)), "find_knn")
  expect_identical(call_of(find_knn("a")), "find_knn")
  expect_identical(call_of(find_knn(x * 0, 2)), "find_knn")
  expect_identical(call_of(find_knn(x * NA, 2)), "find_knn")
  expect_identical(call_of(query_knn(x, x[, 1:2])), "query_knn")
  expect_identical(call_of(query_knn(x, NULL)), "query_knn")
  expect_identical(call_of(knn_graph(x[, 0], 2)), "knn_graph")
  expect_identical(call_of(knn_plan(x, 99)), "knn_plan")
  expect_identical(call_of(knn_plan(1)), "knn_plan")
  expect_identical(call_of(as_igraph(1)), "as_igraph")
})

test_that("a wrong argument is seen before any work", {
  # A matrix that would take long: the error is at once.
  x <- matrix(0, 200000, 20)
  time <- system.time(expect_error(find_knn(x, 2, chunk_size = 0)))
  expect_lt(time[["elapsed"]], 5)
})

test_that("a limit on GPU memory is bytes, or a string that says so", {
  withr::local_options(fsknn.max_device_memory = NULL)
  bytes <- fsknn:::check_device_memory
  expect_identical(bytes(NULL), 0)
  expect_identical(bytes(4096L), 4096)
  expect_identical(bytes(2.5e9), 2.5e9)
  expect_identical(bytes("4 GiB"), 4 * 2^30)
  expect_identical(bytes("1.5gib"), 1.5 * 2^30)
  expect_identical(bytes("500 MB"), 5e8)
  expect_identical(bytes(" 64 k "), 64e3)
  expect_identical(bytes("123"), 123)
  expect_identical(bytes("9 B"), 9)
  withr::local_options(fsknn.max_device_memory = "1 TiB")
  expect_identical(bytes(NULL), 2^40)
  expect_identical(bytes(7), 7)
})

test_that("a limit on GPU memory that is none is an error", {
  x <- random_matrix(20, 3)
  expect_snapshot(error = TRUE, {
    find_knn(x, 1, backend = "cpu", max_device_memory = 0)
    find_knn(x, 1, backend = "cpu", max_device_memory = -2^30)
    find_knn(x, 1, backend = "cpu", max_device_memory = NA)
    find_knn(x, 1, backend = "cpu", max_device_memory = Inf)
    query_knn(x, x, 1, backend = "cpu", max_device_memory = "a lot")
    knn_graph(x, 1, backend = "cpu", max_device_memory = "4 iB")
    knn_plan(x, 1, backend = "cpu", max_device_memory = c(1, 2))
  })
  withr::local_options(fsknn.max_device_memory = TRUE)
  expect_snapshot(error = TRUE, find_knn(x, 1, backend = "cpu"))
})
