# Answers in shards are identical, to the last bit, to those in memory.

shard_formats <- c("hdf5", "bin")

skip_without_shards <- function(format = "hdf5") {
  skip_if_not_installed("DelayedArray")
  if (format == "hdf5") skip_if_not_installed("HDF5Array")
}

# Writes to a new folder each time.
in_shards <- function(format, ..., precision = "double") {
  knn_output(tempfile("shards-"), format, ..., precision = precision)
}

test_that("shards hold the answer, to the last bit, however they are cut", {
  x <- random_matrix(40, 9)
  query <- random_matrix(23, 9, seed = 2)
  plain <- knn_search(x, 6)
  for (format in shard_formats) {
    skip_without_shards(format)
    # Both formats are cut by the same code.
    cuts <- list(NULL, 13, 40, 1, 20, 41, Inf)
    for (rows in if (format == "bin") cuts else cuts[1:3]) {
      found <- knn_search(x, 6, output = in_shards(format, shard_rows = rows))
      expect_s3_class(found, "fsknn_shards")
      expect_identical(as_knn(found), plain)
      num_files <- length(unique(found$facts$files$first))
      expect_identical(
        as.double(num_files), ceiling(40 / min(rows %||% 40, 40))
      )
    }
    expect_identical(dim(found), c(40L, 6L))
    expect_s4_class(found$index, "DelayedMatrix")
    expect_identical(as.matrix(found$index[c(39, 3), 2:4]),
                     plain$index[c(39, 3), 2:4])
    expect_identical(DelayedArray::type(found$distance), "double")
    output <- in_shards(format, shard_rows = 10)
    found <- knn_query(x, query, 4, metric = "manhattan", output = output)
    expect_identical(
      as_knn(found, queries = TRUE), knn_query(x, query, 4, "manhattan")
    )
    expect_identical(found$facts$of, "queries")
    # Points are in the requested order, some of them twice.
    some <- c(20, 3, 39, 20)
    found <- knn_search(
      x, 4, subset = some, output = in_shards(format, shard_rows = 3)
    )
    expect_identical(
      as_knn(found, queries = TRUE), knn_search(x, 4, subset = some)
    )
    block <- rep(c("a", "b", "c"), length.out = 40)
    found <- knn_search(
      x, 2, block = block, output = in_shards(format, shard_rows = 12)
    )
    expect_identical(as_knn(found), knn_search(x, 2, block = block))
  }
})

test_that("places without a neighbour are NA", {
  x <- random_matrix(40, 9)
  x[c(7, 30), ] <- 5
  y <- random_matrix(40, 6)
  y[sample.int(240, 110)] <- NA
  for (format in shard_formats) {
    skip_without_shards(format)
    for (precision in c("double", "single")) {
      found <- as_knn(knn_search(
        x, 3, constant = "isolate",
        output = in_shards(format, shard_rows = 9, precision = precision)
      ))
      plain <- knn_search(x, 3, constant = "isolate")
      expect_identical(found$index, plain$index)
      expect_equal(found$distance, plain$distance, tolerance = 1e-7)
      expect_identical(is.nan(found$distance), is.nan(plain$distance))
    }
    search <- function(...) {
      suppressMessages(knn_search(
        y, 12, na = "pairwise", metric = "euclidean", min_pairs = 3,
        constant = "isolate", ...
      ))
    }
    expect_identical(as_knn(search(output = in_shards(format))), search())
  }
})

test_that("distances are rounded to floats where that is asked for", {
  x <- random_matrix(60, 9)
  plain <- knn_search(x, 3)
  for (format in shard_formats) {
    skip_without_shards(format)
    found <- as_knn(
      knn_search(x, 3, output = in_shards(format, precision = "single"))
    )
    expect_identical(found$index, plain$index)
    expect_false(identical(found$distance, plain$distance))
    expect_lt(max(abs(found$distance / plain$distance - 1)), 2^-24)
    output <- in_shards(format, precision = "single")
    expect_error(
      knn_search(x * 1e100, 3, metric = "euclidean", output = output),
      "too large for 4 bytes", class = "fsknn_file_error"
    )
    expect_identical(list.files(output$folder), "fsknn-lock")
  }
})

test_that("an answer too long for memory is found by ranges, the same", {
  x <- random_matrix(90, 9)
  x[5, ] <- 1
  query <- random_matrix(31, 9, seed = 2)
  for (format in shard_formats) {
    skip_without_shards(format)
    found <- knn_search(
      x, 5, constant = "isolate", max_memory = 4000,
      output = in_shards(format, shard_rows = 40)
    )
    expect_identical(as_knn(found), knn_search(x, 5, constant = "isolate"))
    # Each pair of points was compared twice.
    expect_identical(knn_stats()$num_points, 90L)
    found <- knn_query(
      x, query, 5, constant = "isolate", max_memory = 500,
      output = in_shards(format, shard_rows = 40)
    )
    expect_identical(
      as_knn(found, queries = TRUE), knn_query(x, query, 5,
                                               constant = "isolate")
    )
    some <- c(20:1, 5, 77)
    found <- knn_search(
      x, 5, subset = some, constant = "isolate", max_memory = 500,
      output = in_shards(format)
    )
    expect_identical(
      as_knn(found, queries = TRUE),
      knn_search(x, 5, subset = some, constant = "isolate")
    )
  }
})

test_that("a search with a checkpoint or workers goes to shards, too", {
  skip_without_shards("bin")
  x <- random_matrix(90, 9)
  folder <- withr::local_tempdir()
  withr::local_options(fsknn.split_size = 40)
  expect_identical(
    as_knn(knn_search(
      x, 5, backend = "cpu", checkpoint = folder, output = in_shards("bin")
    )),
    knn_search(x, 5)
  )
  # The same call writes the answer again from the finished tasks.
  expect_identical(
    as_knn(suppressMessages(knn_search(
      x, 5, backend = "cpu", checkpoint = folder, output = in_shards("bin")
    ))),
    knn_search(x, 5)
  )
})

test_that("ranges are asked for in order, once, and not across shards", {
  skip_without_shards("bin")
  output <- in_shards("bin", shard_rows = 10)
  claim <- fsknn:::claim_output(output, NULL)
  asked <- list()
  rows_of <- function(first, last) {
    asked[[length(asked) + 1]] <<- c(first, last)
    rows <- first:last
    list(index = cbind(rows, rows), distance = cbind(rows, rows) / 8)
  }
  fsknn:::write_shards(
    rows_of, 27, 2, claim, c(points = "27", of = "points"), at_once = 9
  )
  fsknn:::release_output(claim)
  expect_identical(
    do.call(rbind, asked),
    rbind(c(1, 4), c(5, 8), c(9, 10), c(11, 14), c(15, 18), c(19, 20),
          c(21, 24), c(25, 27))
  )
  found <- as_knn(read_knn(output$folder, verify = TRUE), queries = TRUE)
  expect_identical(found$index, cbind(1:27, 1:27))
})

test_that("shards are written by the threads of the search", {
  skip_without_shards("bin")
  x <- random_matrix(20, 4)
  # The default is not read where the search has a number.
  withr::local_options(fsknn.num_threads = "many")
  expect_wrong(knn_search(x, 3), "num_threads")
  search <- function(...) knn_search(x, 3, num_threads = 1, ...)
  found <- search(output = in_shards("bin"))
  expect_identical(as.matrix(found$index), search()$index)
})

test_that("a disk that is full takes away what was written", {
  for (format in shard_formats) {
    skip_without_shards(format)
    folder <- withr::local_tempdir()
    mounted <- suppressWarnings(system2(
      "mount", c("-t", "tmpfs", "-o", "size=64k", "none", shQuote(folder)),
      stdout = FALSE, stderr = FALSE
    ))
    skip_if(mounted != 0, "no file system can be mounted here")
    out <- file.path(folder, "out")
    found <- tryCatch(
      knn_search(random_matrix(900, 6), 9, output = knn_output(
        out, format, shard_rows = 300, precision = "double"
      )),
      error = identity
    )
    left <- list.files(out)
    system2("umount", shQuote(folder))
    expect_s3_class(found, "fsknn_output_error")
    expect_match(conditionMessage(found), "No space left")
    expect_identical(left, "fsknn-lock")
  }
})

test_that("a limit on the size of files is an error, and nothing stays", {
  skip_without_shards("bin")
  folder <- withr::local_tempdir()
  script <- tempfile(fileext = ".R")
  writeLines(c(
    sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")),
    "x <- matrix(sin(1:6000), 600)",
    sprintf("output <- fsknn::knn_output(%s, 'bin')", deparse(folder)),
    "tryCatch(fsknn::knn_search(x, 9, output = output),",
    "  error = function(e) cat(class(e)[[1]], list.files(output$folder)))"
  ), script)
  said <- system2(
    "sh", c("-c", shQuote(paste(
      "ulimit -f 8;", file.path(R.home("bin"), "Rscript"), "--vanilla",
      shQuote(script)
    ))),
    stdout = TRUE, stderr = FALSE
  )
  expect_identical(said, "fsknn_output_error fsknn-lock")
})
