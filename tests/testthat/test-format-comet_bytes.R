# All similarities, one byte each, without keeping any in memory. The files must
# equal those of write_comet_metrics(), whose order and values other tests
# check.

test_that("all pairs and all triples are written as from a graph of them", {
  files <- replicate(2, withr::local_tempfile())
  for (case in list(c(3, 1), c(4, 5), c(23, 9))) {
    x <- counts_matrix(case[[1]], case[[2]])
    for (y in list(x, exp(random_matrix(case[[1]], case[[2]])), (x > 1) + 0)) {
      metric <- if (max(y) == 1) "sorensen" else "proportional"
      y <- y[rowSums(y) > 0, , drop = FALSE]
      if (nrow(y) < 3) next
      write_comet_metrics(threshold_graph(y, 0, metric), files[[1]], "bytes")
      for (room in c(1, 40, 1e6)) {
        for (num_threads in 1:2) {
          write_comet_bytes(y, files[[2]], metric = metric, max_memory = room,
                            num_threads = num_threads)
          expect_identical(bytes_of(files[[2]]), bytes_of(files[[1]]))
        }
      }
      write_comet_metrics(threshold_triples(y, 0, metric), files[[1]], "bytes")
      for (room in c(1, 40, 1e6)) {
        write_comet_bytes(y, files[[2]], 3, metric = metric, max_memory = room)
        expect_identical(bytes_of(files[[2]]), bytes_of(files[[1]]))
      }
    }
  }
})

test_that("what has no byte is an error, and leaves what was there", {
  x <- counts_matrix(6, 4)
  file <- withr::local_tempfile()
  write_comet_bytes(x, file)
  before <- bytes_of(file)
  x[2, ] <- 0
  error <- expect_error(write_comet_bytes(x, file), class = "fsknn_error")
  expect_false(grepl("constant =", conditionMessage(error), fixed = TRUE))
  expect_wrong(write_comet_bytes(x))
  expect_error(write_comet_bytes(x - 1, file), class = "fsknn_error")
  expect_wrong(write_comet_bytes(x, file, 4))
  expect_wrong(write_comet_bytes(x[3:4, ], file, 3))
  expect_identical(bytes_of(file), before)
})
