# Files of big-ann-benchmarks, as points and as neighbours.

# Writes a file without the package's own writer.
put_bin <- function(file, values, size) {
  connection <- base::file(file, "wb")
  on.exit(close(connection))
  size_of_value <- c(fbin = 4L, u8bin = 1L, i8bin = 1L)[[tools::file_ext(file)]]
  writeBin(dim(values), connection, size = 4, endian = "little")
  writeBin(as.vector(t(values)), connection, size = size_of_value,
           endian = "little")
}

whole_matrix <- function(rows, columns, low, high) {
  x <- random_matrix(rows, columns)
  matrix(
    as.integer(round(low + (high - low) * (x - min(x)) / diff(range(x)))), rows
  )
}

test_that("files are read as another program writes them", {
  local_folder()
  cases <- list(
    u8bin = whole_matrix(30, 7, 0, 255), i8bin = whole_matrix(30, 7, -128, 127),
    fbin = round(random_matrix(30, 7) * 64) / 64
  )
  for (type in names(cases)) {
    file <- paste0("base.", type)
    x <- cases[[type]]
    put_bin(file, x)
    expect_identical(read_points(file), x, label = type)
    rows <- read_points(file, backed = TRUE)
    expect_identical(dim(rows), dim(x))
    expect_identical(rows[c(30, 2:4, 1), ], x[c(30, 2:4, 1), ])
    expect_identical(rows[, c(7, 1)][2:3, ], x[2:3, c(7, 1)])
    file.rename(file, "vectors")
    expect_identical(as.matrix(read_points("vectors", type, backed = TRUE)), x)
  }
})

test_that("what is written is read back, and is what another program expects", {
  local_folder()
  x <- whole_matrix(30, 7, 0, 127)
  for (type in c("fbin", "u8bin", "i8bin")) {
    file <- paste0("base.", type)
    expect_identical(write_points(x, file), file)
    bytes <- readBin(file, "raw", 1e4)
    put_bin(file, if (type == "fbin") x + 0 else x)
    expect_identical(bytes, readBin(file, "raw", 1e4), label = type)
    expect_equal(read_points(file), x)
  }
  x <- random_matrix(30, 7)
  write_points(x, "base.fbin")
  expect_lt(max(abs(read_points("base.fbin") / x - 1)), 2^-24)
  skip_if_not_installed("DelayedArray")
  write_points(DelayedArray::DelayedArray(x), "other.fbin")
  expect_identical(read_points("other.fbin"), read_points("base.fbin"))
})

test_that("a file is searched as the matrix that it holds, in memory and not", {
  local_folder()
  write_points(random_matrix(150, 12), "base.fbin")
  write_points(random_matrix(20, 12, seed = 2), "query.fbin")
  x <- read_points("base.fbin")
  query <- read_points("query.fbin")
  for (max_memory in c(1e9, 1e3)) {
    search <- function(...) {
      list(
        knn_search(..., k = 4, max_memory = max_memory),
        knn_search(..., k = 4, metric = "euclidean", subset = 7:9,
                   max_memory = max_memory, weights = NULL),
        within_search(..., distance = 0.1, max_memory = max_memory)
      )
    }
    expect_identical(search("base.fbin"), search(x))
    expect_identical(search(read_points("base.fbin", backed = TRUE)), search(x))
    weights <- c(0, 1:11)
    expect_identical(
      knn_query("base.fbin", "query.fbin", 3, max_memory = max_memory,
                weights = weights),
      knn_query(x, query, 3, weights = weights)
    )
  }
  bytes <- whole_matrix(60, 9, 0, 255)
  write_points(bytes, "base.u8bin")
  for (max_memory in c(1e9, 1e3)) {
    expect_identical(
      knn_graph("base.u8bin", 3, "manhattan", max_memory = max_memory),
      knn_graph(bytes, 3, "manhattan")
    )
  }
  expect_equal(knn_plan("base.u8bin", 3)$num_points, 60)
})

test_that("a file is cut anywhere, and that is said", {
  local_folder()
  x <- whole_matrix(5, 3, 0, 9)
  write_points(x, "whole.fbin")
  bytes <- readBin("whole.fbin", "raw", 1e3)
  expect_length(bytes, 8 + 60)
  for (length in c(0:12, seq(15, 63, 12), 67)) {
    writeBin(bytes[seq_len(length)], "cut.fbin")
    expect_error(
      knn_search("cut.fbin", 2), class = "fsknn_file_error", label = length
    )
  }
  writeBin(c(bytes, as.raw(0)), "cut.fbin")
  expect_messages({
    read_points("cut.fbin", backed = TRUE)
    knn_search("cut.fbin", 2)
    writeBin(bytes[1:5], "cut.fbin")
    read_points("cut.fbin", backed = TRUE)
    put_bin("cut.fbin", matrix(0, 0, 3))
    read_points("cut.fbin", backed = TRUE)
    writeBin(c(rep(as.raw(255), 8), as.raw(1)), "cut.fbin")
    read_points("cut.fbin", backed = TRUE)
    file.copy("whole.fbin", "other.u8bin")
    knn_query(x, "other.u8bin", 2)
    put_bin("bytes.i8bin", x)
    file.rename("bytes.i8bin", "bytes.fbin")
    read_points("bytes.fbin", backed = TRUE)
    read_points("bytes.fbin", "u8", backed = TRUE)
    read_points("none.fbin", backed = TRUE)
    read_points("whole.txt", backed = TRUE)
    knn_search("none.fbin", 2)
    knn_search("whole.fbin", 2, points = "columns")
  })
  # The file changes while it is open.
  rows <- read_points("whole.fbin", backed = TRUE)
  writeBin(bytes[1:60], "whole.fbin")
  expect_error(rows[5, ], "shorter", class = "fsknn_file_error")
  expect_identical(rows[1:2, ], x[1:2, ] + 0)
})

test_that("values that a file has no place for are refused", {
  local_folder()
  expect_messages({
    write_points(matrix(c(1, 256)), "a.u8bin")
    write_points(matrix(c(1, 0.5)), "a.i8bin")
    write_points(matrix(c(1, NA)), "a.i8bin")
    write_points(matrix(c(1, 1e39)), "a.fbin")
    write_points(matrix(1:4, 2), "a.bin")
    write_points("a", "a.fbin")
    write_points(metafeatures(matrix(1:6, 3)), "a.fbin")
  })
  expect_length(list.files(), 0)
  write_points(matrix(c(-0, NA, Inf, 1e-30, 0.1)), "a.fbin")
  back <- read_points("a.fbin")
  expect_identical(is.na(back[, 1]), c(FALSE, TRUE, FALSE, FALSE, FALSE))
  expect_identical(back[3, 1], Inf)
})

test_that("ground truth is written and read, of matrices and of shards", {
  local_folder()
  x <- random_matrix(50, 6)
  nn <- knn_query(x, random_matrix(9, 6, seed = 3), 4, "euclidean")
  nn$index[2, 4] <- NA
  nn$distance[2, 4] <- NA
  expect_identical(write_knn(nn, "truth.ibin"), "truth.ibin")
  bytes <- file("truth.ibin", "rb")
  on.exit(close(bytes))
  expect_identical(readBin(bytes, "integer", 2), c(9L, 4L))
  index <- readBin(bytes, "integer", 36)
  expect_identical(index[1:4], nn$index[1, ] - 1L)
  expect_identical(index[[8]], -1L)
  expect_equal(
    readBin(bytes, "double", 37, size = 4)[1:4], nn$distance[1, ],
    tolerance = 1e-7
  )
  back <- read_knn("truth.ibin")
  expect_identical(back$index, nn$index)
  expect_equal(back$distance, nn$distance, tolerance = 1e-7)
  expect_identical(knn_recall(back, nn, queries = TRUE)$recall, 1)
  write_knn(nn, "index.ibin", distances = FALSE)
  expect_identical(read_knn("index.ibin")$index, nn$index)
  expect_null(read_knn("index.ibin")$distance)
  expect_messages({
    write_knn(read_knn("index.ibin"), "a.ibin", distances = TRUE)
    write_knn(knn_search(x, rep(1:2, 25)), "a.ibin")
    write_knn(1, "a.ibin")
    writeBin(as.raw(1:20), "bad.ibin")
    read_knn("bad.ibin")
    read_knn("none.ibin")
  })
  skip_if_not_installed("DelayedArray")
  shards <- knn_search(
    x, 4, output = knn_output("out", "bin", shard_rows = 7, precision = "double")
  )
  write_knn(shards, "shards.ibin")
  write_knn(knn_search(x, 4), "plain.ibin")
  expect_identical(
    readBin("shards.ibin", "raw", 1e5), readBin("plain.ibin", "raw", 1e5)
  )
})

test_that("ties in ground truth go to the lower number", {
  local_folder()
  x <- random_matrix(12, 4)
  write_points(x[rep(1:12, 3), ], "base.fbin")
  write_points(x[1:5, ], "query.fbin")
  truth <- knn_query("base.fbin", "query.fbin", 3, "euclidean")
  expect_identical(truth$index, cbind(1:5, 13:17, 25:29))
})

test_that("a full disk leaves what was there", {
  skip_if_not(file.exists("/dev/full"))
  local_folder()
  file.symlink("/dev/full", "full.fbin")
  expect_error(
    write_points(random_matrix(300, 40), "full.fbin"), "No space left",
    class = "fsknn_file_error"
  )
  file.symlink("/dev/full", "full.ibin")
  expect_error(
    write_knn(knn_search(random_matrix(60, 4), 9), "full.ibin"),
    "No space left", class = "fsknn_file_error"
  )
})

test_that("a file of vectors prints what it is", {
  local_folder()
  write_points(random_matrix(1200, 4), "base.fbin")
  expect_snapshot(read_points("base.fbin", backed = TRUE))
})

test_that("rows of a file are asked for as those of a matrix", {
  file <- withr::local_tempfile(fileext = ".u8bin")
  x <- matrix(0:11, nrow = 4)
  write_points(x, file)
  points <- read_points(file, backed = TRUE)
  expect_identical(points[c(TRUE, FALSE, TRUE, FALSE), ], x[c(1, 3), ])
  expect_identical(points[-1, ], x[-1, ])
  expect_identical(points[c(0, 4, 2.7), 3:2], x[c(4, 2), 3:2])
  expect_identical(points[integer(), ], x[integer(), ])
  expect_identical(as.matrix(points[, -1]), x[, -1])
  for (rows in list(5, NA, "a", c(-1, 1), list(1))) {
    expect_wrong(points[rows, ], "numbers of rows, from 1 to 4")
  }
  expect_wrong(points[1, 4], "numbers of columns, from 1 to 3")
})

test_that("no file is written that could not be read", {
  file <- withr::local_tempfile(fileext = ".fbin")
  expect_wrong(
    write_points(matrix(0, 0, 3), file), "must have rows and columns"
  )
  expect_false(file.exists(file))
})

# Writes a ground truth of one row as another program might.
put_truth <- function(index, distance = NULL) {
  writeBin(
    c(
      writeBin(c(1L, length(index)), raw(), endian = "little"),
      writeBin(as.integer(index), raw(), endian = "little"),
      if (!is.null(distance)) {
        writeBin(as.double(distance), raw(), size = 4, endian = "little")
      }
    ),
    "truth.ibin"
  )
}

test_that("neighbours that no search gives are refused by reader and writer", {
  local_folder()
  put_truth(c(0, -2))
  expect_error(read_knn("truth.ibin"), "below -1", class = "fsknn_file_error")
  put_truth(c(4, 4))
  expect_error(read_knn("truth.ibin"), "twice", class = "fsknn_file_error")
  put_truth(c(4, 5), c(1, NaN))
  expect_error(
    read_knn("truth.ibin"), "a distance for each", class = "fsknn_file_error"
  )
  # Other programs may write any distance for a missing neighbour.
  put_truth(c(4, -1), c(1, 9))
  expect_identical(read_knn("truth.ibin")$distance, matrix(c(1, NA), 1))
  unlink("truth.ibin")
  nn <- function(index, distance) {
    list(index = rbind(index), distance = rbind(distance))
  }
  for (bad in list(
    nn(c(2L, 2L), c(0, 1)), nn(c(2L, 3L), c(0, NaN)),
    list(index = matrix(0L, 5, 0), distance = matrix(0, 5, 0)),
    list(index = matrix(0L, 0, 5), distance = matrix(0, 0, 5))
  )) {
    expect_wrong(write_knn(bad, "truth.ibin"))
  }
  expect_identical(list.files(), character())
  # A distance for a missing neighbour is ignored.
  write_knn(nn(c(2L, NA), c(0, 1)), "truth.ibin")
  expect_identical(read_knn("truth.ibin")$distance, matrix(c(0, NA), 1))
})

test_that("a missing value of a file of floats is read back as one", {
  local_folder()
  x <- rbind(c(1.5, NA), c(NaN, Inf))
  write_points(x, "x.fbin")
  expect_identical(read_points("x.fbin"), rbind(c(1.5, NA), c(NA, Inf)))
})

test_that("points that do not fit in memory are read from their own file", {
  x <- round(random_matrix(500, 7, seed = 3), 2)
  files <- withr::local_tempfile(fileext = c(".fbin", ".u8bin"))
  write_points(x, files[[1]])
  bytes <- matrix(sample(0:255, 3500, TRUE), 500)
  write_points(bytes, files[[2]])
  given <- list(read_points(files[[1]]), bytes)
  folder <- withr::local_tempdir()
  withr::local_options(fsknn.temporary_folder = file.path(folder, "none"))
  dir.create(file.path(folder, "none"))
  Sys.chmod(file.path(folder, "none"), "500")
  for (at in 1:2) {
    for (metric in c("euclidean", "manhattan")) {
      expected <- knn_search(given[[at]], 5, metric)
      found <- knn_search(files[[at]], 5, metric, max_memory = 20000)
      expect_identical(bare(found), bare(expected))
      expect_identical(
        bare(knn_search(files[[at]], 5, metric, max_memory = 20000,
                        subset = c(3, 400))),
        bare(knn_search(given[[at]], 5, metric, subset = c(3, 400)))
      )
    }
  }
  # Values are checked, and errors name them.
  x[7, 2] <- NA
  write_points(x, files[[1]])
  expect_error(
    knn_search(files[[1]], 5, "euclidean", max_memory = 20000), "row 7",
    class = "fsknn_finite_error"
  )
  plan <- knn_plan(
    read_points(files[[2]], backed = TRUE), 5, "euclidean", backend = "cpu",
    max_memory = 20000
  )
  expect_match(format(plan), "read from their own file", all = FALSE)
  expect_no_match(format(plan), "Temporary file")
})

test_that("a search notices that its file of points has changed", {
  local_folder()
  x <- round(random_matrix(500, 7, seed = 3), 2)
  write_points(x, "x.fbin")
  points <- read_points("x.fbin", backed = TRUE)
  expect_noticed <- function(words) {
    for (more in list(list(), list(block = rep(1:2, 250)))) {
      expect_error(
        rlang::inject(
          knn_search(points, 5, "euclidean", max_memory = 20000, !!!more)
        ),
        words, class = "fsknn_file_error"
      )
    }
  }
  for (other in list(x[1:300, ], rbind(x, x), x[, 1:3])) {
    write_points(other, "x.fbin")
    expect_noticed("other rows or columns")
  }
  writeBin(as.raw(1:100), "x.fbin")
  expect_noticed("as long as its head says")
  unlink("x.fbin")
  expect_noticed("No such file")
  # A file that is there again will do.
  write_points(x, "x.fbin")
  found <- knn_search(points, 5, "euclidean", max_memory = 20000)
  expect_identical(
    bare(found), bare(knn_search(read_points("x.fbin"), 5, "euclidean"))
  )
})
