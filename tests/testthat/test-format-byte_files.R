# All similarities, one byte each, without keeping any in memory. The files must
# equal those of write_edges(), whose order and values other
# tests check.

test_that("all pairs and all triples are written as from a graph of them", {
  files <- replicate(2, withr::local_tempfile())
  for (case in list(c(3, 1), c(4, 5), c(23, 9))) {
    x <- counts_matrix(case[[1]], case[[2]])
    for (y in list(x, exp(random_matrix(case[[1]], case[[2]])), (x > 1) + 0)) {
      metric <- if (max(y) == 1) "sorensen" else "proportional"
      y <- y[rowSums(y) > 0, , drop = FALSE]
      if (nrow(y) < 3) next
      write_edges(threshold_graph(y, 0, metric), files[[1]], "comet_bytes")
      for (room in c(1, 40, 1e6)) {
        for (num_threads in 1:2) {
          threshold_graph(
            y, 0, metric, file = files[[2]], format = "comet_bytes",
            max_memory = room, num_threads = num_threads
          )
          expect_identical(bytes_of(files[[2]]), bytes_of(files[[1]]))
        }
      }
      write_edges(threshold_triples(y, 0, metric), files[[1]], "comet_bytes")
      for (room in c(1, 40, 1e6)) {
        threshold_triples(
          y, 0, metric, file = files[[2]], format = "comet_bytes",
          max_memory = room
        )
        expect_identical(bytes_of(files[[2]]), bytes_of(files[[1]]))
      }
    }
  }
})

test_that("what has no byte is an error, and leaves what was there", {
  x <- counts_matrix(6, 4)
  file <- withr::local_tempfile()
  bytes_graph <- function(x, ...) {
    threshold_graph(x, 0, file = file, format = "comet_bytes", ...)
  }
  bytes_triples <- function(x, ...) {
    threshold_triples(x, 0, file = file, format = "comet_bytes", ...)
  }
  bytes_graph(x, metric = "proportional")
  before <- bytes_of(file)
  y <- x
  y[2, ] <- 0
  for (search in list(function(x) bytes_graph(x, "proportional"),
                      bytes_triples)) {
    expect_error(search(y), class = "fsknn_error")
    expect_error(search(x - 1), class = "fsknn_error")
    expect_wrong(search(x[3, , drop = FALSE]))
  }
  expect_wrong(bytes_triples(x[3:4, ]))
  expect_identical(bytes_of(file), before)
})

test_that("bytes are of all pairs or triples, in one search of the CPU", {
  local_folder()
  x <- counts_matrix(6, 4)
  file <- withr::local_tempfile()
  found <- threshold_graph(
    x, 0, "proportional", file = file, format = "comet_bytes"
  )
  expect_s3_class(found, "fsknn_found_file")
  expect_identical(found$count, choose(6, 2))
  found <- threshold_triples(x, 0, file = file, format = "comet_bytes")
  expect_identical(found$count, choose(6, 3))
  bytes_graph <- function(..., least = 0, metric = "proportional") {
    threshold_graph(x, least, metric, file = file, format = "comet_bytes", ...)
  }
  bytes_triples <- function(..., least = 0) {
    threshold_triples(x, least, file = file, format = "comet_bytes", ...)
  }
  expect_messages({
    bytes_graph(least = 0.5)
    bytes_graph(metric = "pearson")
    bytes_graph(constant = "isolate")
    bytes_graph(subset = 1)
    bytes_graph(checkpoint = "folder")
    bytes_triples(least = 0.5)
    bytes_triples(subset = 1)
    bytes_triples(stage = c(1, 2))
    bytes_triples(stages = 2)
    bytes_triples(checkpoint = "folder")
    threshold_graph(x, 0, file = "a.csv.gz", format = "comet_bytes")
  })
})
