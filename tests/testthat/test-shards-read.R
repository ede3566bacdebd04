# Shards are read as they were written, or damage is reported.

shards_of <- function(folder, format = "bin", seed = 1, k = 4, rows = 40) {
  skip_if_not_installed("DelayedArray")
  if (format == "hdf5") skip_if_not_installed("HDF5Array")
  x <- random_matrix(100, 9, seed = seed)
  knn_search(x, k, output = knn_output(
    folder, format, shard_rows = rows, precision = "double"
  ))
}

# Changes some bytes of a file.
change_file <- function(file, change) {
  bytes <- readBin(file, "raw", file.size(file))
  writeBin(change(bytes), file)
}

flip <- function(at) {
  force(at)
  function(bytes) {
    bytes[[at]] <- xor(bytes[[at]], as.raw(1))
    bytes
  }
}

test_that("shards print what they are", {
  local_folder()
  found <- shards_of("out")
  expect_snapshot(found)
  expect_snapshot(summary(found))
  expect_snapshot(shards_of("h5", "hdf5")$facts[c("rows", "columns", "of")])
  query <- knn_query(
    random_matrix(30, 4), random_matrix(5, 4), 3, output = knn_output("q", "bin")
  )
  expect_snapshot(query)
})

test_that("summary() has the quantiles of the answer in memory", {
  local_folder()
  found <- summary(shards_of("out"))
  plain <- summary(knn_search(random_matrix(100, 9), 4))
  expect_equal(found$quantiles, plain$quantiles)
})

test_that("a folder that has no answer is told of", {
  skip_if_not_installed("HDF5Array")
  local_folder()
  dir.create("empty")
  dir.create("begun")
  file.create("begun/index-000001.ibin")
  writeLines("a", "file")
  expect_messages({
    read_knn("none", "shards")
    read_knn("file", "shards")
    read_knn("empty")
    read_knn("begun")
    read_knn("empty", FALSE)
    read_knn("empty", verify = 1)
  })
})

test_that("a file that is missing, cut or another's is named", {
  for (format in c("hdf5", "bin")) {
    local_folder()
    shards_of("good", format)
    shards_of("other", format, seed = 2)
    files <- setdiff(list.files("good"), c("fsknn-lock", "fsknn-shards"))
    # Files are told apart by digests, whatever their format and number.
    kinds <- split(files, sub("-.*", "", files))
    some <- unlist(lapply(kinds, if (format == "bin") range else min))
    for (file in if (is_long()) files else some) {
      expect_damaged <- function(words) {
        error <- expect_error(read_knn("good"), class = "fsknn_shards_error")
        expect_match(
          conditionMessage(error), paste0("\"", file, "\" .*", words)
        )
      }
      path <- file.path("good", file)
      file.copy(path, "kept", overwrite = TRUE)
      file.copy(file.path("other", file), path, overwrite = TRUE)
      expect_damaged("damaged")
      size <- file.size("kept")
      for (length in c(0, 5, 8, 20, size %/% 2, size - 1)) {
        file.copy("kept", path, overwrite = TRUE)
        change_file(path, function(bytes) bytes[seq_len(length)])
        expect_damaged("damaged: it has")
      }
      # Some bytes in each region are changed.
      for (at in c(1, 7, 9, size %/% 2, size)) {
        file.copy("kept", path, overwrite = TRUE)
        change_file(path, flip(at))
        expect_damaged("damaged")
      }
      unlink(path)
      expect_damaged("missing")
      file.copy("kept", path, overwrite = TRUE)
      expect_s3_class(read_knn("good", verify = TRUE), "fsknn_shards")
    }
    # One file of the answer replaces another.
    shard <- file.path("good", files)
    file.copy(shard[[1]], "kept", overwrite = TRUE)
    same <- which(file.size(shard) == file.size(shard[[1]]))
    file.copy(shard[[same[[2]]]], shard[[1]], overwrite = TRUE)
    expect_error(read_knn("good"), class = "fsknn_shards_error")
  }
})

test_that("a byte in the middle of a long file is found by reading it all", {
  skip_if_not_installed("DelayedArray")
  local_folder()
  x <- random_matrix(3000, 5)
  shards <- knn_search(x, 20, output = knn_output("out", "bin"))
  expect_gt(file.size("out/index-000001.ibin"), 2e5)
  change_file("out/index-000001.ibin", flip(1e5))
  expect_s3_class(read_knn("out"), "fsknn_shards")
  expect_messages(read_knn("out", verify = TRUE))
  change_file("out/index-000001.ibin", function(bytes) {
    bytes[100000 + 0:11] <- as.raw(0x77)
    bytes
  })
  expect_messages(
    snn_graph(shards), function(lines) sub("'.*out'", "'out'", lines)
  )
})

test_that("the text that says what the answer is is believed as it was", {
  local_folder()
  shards_of("out")
  file <- "out/fsknn-shards"
  file.copy(file, "kept")
  size <- file.size(file)
  for (at in c(1, 20, size %/% 2, size - 3, size)) {
    change_file(file, flip(at))
    expect_error(read_knn("out"), "damaged", class = "fsknn_shards_error")
    file.copy("kept", file, overwrite = TRUE)
  }
  for (length in c(0, 1, 30, size - 1)) {
    change_file(file, function(bytes) bytes[seq_len(length)])
    expect_error(read_knn("out"), "damaged", class = "fsknn_shards_error")
    file.copy("kept", file, overwrite = TRUE)
  }
  expect_s3_class(read_knn("out"), "fsknn_shards")
})

test_that("what an answer's text says is no code", {
  expect_error(
    fsknn:::abort_shards("folder", "\"{stop('run')}\" is missing.", NULL),
    "{stop('run')}", fixed = TRUE, class = "fsknn_shards_error"
  )
})
