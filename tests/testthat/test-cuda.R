# What only a GPU can show. Tests of every verb and metric run on it too, by
# for_all_metrics(); here is what cuts the work up and what goes wrong.

test_that("the GPU's answer is the CPU's for every k and chunk size", {
  skip_if_no_cuda()
  x <- random_matrix(700, 21, seed = 21)
  x[601:650, ] <- x[1:50, ]
  for_all_metrics(function(metric, sign, backend) {
    if (backend == "cpu") {
      return()
    }
    x <- values_for(x, metric)
    for (k in c(1, 20, 128, 699)) {
      expected <- find_knn(x, k, metric, sign, backend = "cpu")
      for (chunk_size in list(NULL, 1, 200, 4096)) {
        expect_identical(
          find_knn(x, k, metric, sign, backend = "cuda", chunk_size = chunk_size),
          expected,
          label = paste(metric, sign, k, chunk_size %||% "automatic")
        )
      }
    }
  })
})

test_that("lists longer than the GPU's selection gathers at a time are right", {
  skip_if_no_cuda()
  x <- small_integers(5000, 4, largest = 9)
  for (k in c(1500, 2500, 4999)) {
    expected <- find_knn(x, k, "manhattan", backend = "cpu")
    for (chunk_size in list(NULL, 1000)) {
      expect_identical(
        find_knn(x, k, "manhattan", backend = "cuda", chunk_size = chunk_size),
        expected,
        label = paste("k =", k)
      )
    }
  }
})

test_that("points that draw nearer and nearer, or away, are all seen", {
  skip_if_no_cuda()
  # For the first point every one is nearer than all before it, for the last
  # one the other way.
  x <- matrix(c(0, 5000:1), ncol = 1)
  for (k in c(1, 20, 3000)) {
    expect_identical(
      find_knn(x, k, "euclidean", backend = "cuda"),
      find_knn(x, k, "euclidean", backend = "cpu"),
      label = paste("k =", k)
    )
  }
})

test_that("queries, isolated points and correlations are those of the CPU", {
  skip_if_no_cuda()
  x <- random_matrix(300, 12, seed = 22)
  query <- rbind(random_matrix(90, 12, seed = 23), x[1:10, ])
  x[c(1, 77, 300), ] <- 0
  query[5, ] <- 0
  for_all_metrics(function(metric, sign, backend) {
    if (backend == "cpu") {
      return()
    }
    x <- values_for(x, metric)
    query <- values_for(query, metric)
    answer <- function(backend, ...) {
      query_knn(
        x, query, 7, metric, sign, constant = "isolate", backend = backend, ...
      )
    }
    expect_identical(answer("cuda"), answer("cpu"), label = metric)
    expect_identical(answer("cuda", chunk_size = 64), answer("cpu"), label = metric)
    graph <- function(backend, ...) {
      knn_graph(
        x, 7, metric, sign, constant = "isolate", backend = backend, ...
      )
    }
    expect_identical(graph("cuda"), graph("cpu"), label = metric)
    expect_identical(graph("cuda", chunk_size = 64), graph("cpu"), label = metric)
  })
})

test_that("each GPU alone, and all together, give the same", {
  skip_if_no_cuda()
  x <- random_matrix(1000, 9, seed = 24)
  expected <- find_knn(x, 5, backend = "cpu")
  devices <- cuda_devices()$device
  for (chosen in c(as.list(devices), list(devices), list(rev(devices)))) {
    expect_identical(
      find_knn(x, 5, devices = chosen, chunk_size = 128), expected,
      label = paste("devices", paste(chosen, collapse = ", "))
    )
  }
})

test_that("too little GPU memory is an error with its facts, and leaves none taken", {
  skip_if_no_cuda()
  x <- random_matrix(50, 3)
  find_knn(x, 5, backend = "cuda") # the context and the modules stay
  before <- cuda_devices()
  # One chunk of all distances, which is more than the GPU has.
  most <- max(before$memory_total)
  n <- ceiling(sqrt(most / 8)) + 64
  skip_if(n > 1048576, "No chunk is larger than this GPU.")
  error <- expect_error(
    find_knn(
      matrix(seq_len(n)), 1, "manhattan", backend = "cuda", devices = 1,
      chunk_size = n
    ),
    class = "fsknn_cuda_error"
  )
  expect_gt(error$bytes_asked, most)
  expect_gt(error$bytes_free, 0)
  expect_lte(error$bytes_free, most)
  expect_match(error$cuda_words, "memory")
  expect_identical(error$device, before$cuda_id[[1]])
  expect_identical(cuda_devices()$memory_free, before$memory_free)
  expect_identical(
    find_knn(x, 5, backend = "cuda"), find_knn(x, 5, backend = "cpu")
  )
})

test_that("a call leaves no GPU memory taken", {
  skip_if_no_cuda()
  x <- random_matrix(2000, 30)
  find_knn(x, 20, backend = "cuda")
  before <- cuda_devices()$memory_free
  find_knn(x, 20, backend = "cuda")
  find_knn(x, 1999, "chebyshev", backend = "cuda")
  expect_identical(cuda_devices()$memory_free, before)
})

test_that("an interrupt stops the GPU, which leaves no GPU memory taken", {
  skip_if_no_cuda()
  skip_on_os("windows")
  # Enough work for many seconds, were it let be.
  x <- matrix(sin(seq_len(1.6e7)), ncol = 8)
  work <- function(x) {
    find_knn(x, 1, "euclidean", backend = "cuda", devices = 1, progress = FALSE)
  }
  work(x[1:20000, ])
  before <- cuda_devices()$memory_free
  # Sent only while the work is under way: R would end by it otherwise.
  under_way <- tempfile()
  file.create(under_way)
  withr::defer(unlink(under_way))
  system(sprintf(
    "(sleep 2; test -e '%s' && kill -INT %d) > /dev/null 2>&1 &",
    under_way, Sys.getpid()
  ))
  started <- Sys.time()
  said <- tryCatch(work(x), interrupt = function(cnd) "interrupted")
  unlink(under_way)
  seconds <- as.double(Sys.time() - started, units = "secs")
  expect_identical(said, "interrupted")
  expect_lt(seconds, 4)
  expect_identical(cuda_devices()$memory_free, before)
  x <- x[1:500, ]
  expect_identical(work(x), find_knn(x, 1, "euclidean", backend = "cpu"))
})

test_that("a forked child is told that it can't use CUDA, and its parent can", {
  skip_if_no_cuda()
  skip_on_os("windows")
  x <- random_matrix(50, 3)
  here <- find_knn(x, 5, backend = "cuda")
  in_child <- parallel::mclapply(1:2, function(i) {
    list(
      usable = knn_backends()$usable[[2]],
      detail = knn_backends()$detail[[2]],
      devices = nrow(cuda_devices()),
      error = tryCatch(
        find_knn(x, 5, backend = "cuda"), error = function(err) class(err)
      ),
      cpu = find_knn(x, 5, backend = "cpu", num_threads = 1)
    )
  }, mc.cores = 2)
  for (child in in_child) {
    expect_false(child$usable)
    expect_match(child$detail, "forked")
    expect_identical(child$devices, 0L)
    expect_true("fsknn_backend_error" %in% child$error)
    expect_identical(child$cpu, here)
  }
  expect_identical(find_knn(x, 5, backend = "cuda"), here)
})

test_that("distances beyond a double's range are an error, on the GPU too", {
  skip_if_no_cuda()
  x <- rbind(c(1.7e308, 1), c(-1.7e308, 2), c(1.7e308, 3))
  for (metric in c("euclidean", "manhattan", "chebyshev")) {
    expect_error(
      find_knn(x, 2, metric, backend = "cuda"), class = "fsknn_range_error"
    )
  }
})
