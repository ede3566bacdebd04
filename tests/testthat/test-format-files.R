# Code that readers share: text, compressed or not, and files that are not text.

small_cibm <- c(
  "<MicroarrayData>", "2 3", "a 1 2 3", "b 4 5 6",
  "<SamplesNames>", "x y z", "<SamplesClasses>", "1 1 0", "<EndOfFile>"
)

text_bytes <- function(lines, end = "\n") {
  charToRaw(paste0(lines, end, collapse = ""))
}

pack <- function(bytes, open) {
  file <- withr::local_tempfile()
  connection <- open(file, "wb")
  writeBin(bytes, connection)
  close(connection)
  readBin(file, "raw", file.size(file))
}

read_bytes <- function(bytes, name = "file.txt", read = function(file) {
                         read_points(file, "cibm")
                       }) {
  local_folder()
  writeBin(bytes, name)
  read(name)
}

test_that("all line ends do", {
  expected <- read_bytes(text_bytes(small_cibm))
  for (end in c("\r\n", "\r", "\n\n")) {
    expect_identical(read_bytes(text_bytes(small_cibm, end)), expected)
  }
})

test_that("lines longer than what is read at once come whole", {
  local_folder()
  x <- matrix(1:2, 2, dimnames = list(strrep(c("\u00e9", "b"), 1.2e6), "s"))
  write_points(x, "file.txt.gz", "cibm", class = 1)
  # expect_identical() would print the differences of such long texts.
  expect_true(identical(rownames(read_points(
    "file.txt.gz", "cibm"
  )), rownames(x)))
  # The plain file has many blocks.
  write_points(x, "file.txt", "cibm", class = 1)
  expect_true(identical(rownames(read_points("file.txt", "cibm")), rownames(x)))
})

test_that("a NUL byte is an error that names its line", {
  lines <- small_cibm
  lines[[4]] <- "b 0.@0 5 6"
  with_nul <- function(bytes) {
    bytes[bytes == charToRaw("@")] <- as.raw(0)
    bytes
  }
  expect_messages({
    read_bytes(with_nul(text_bytes(lines)))
    read_bytes(with_nul(text_bytes(lines, "\r")))
  })
  edges <- with_nul(text_bytes(c("2 2", "0 1 0.5", "1 0 0.@")))
  expect_messages(read_bytes(edges, "file.knn", read_knn))
  # The NUL byte is far inside the file.
  many <- with_nul(text_bytes(c(rep("0 1 0.5", 2e5), "0 1 @")))
  expect_error(read_bytes(many, read = read_knn), "Line 200001")
  utf16 <- as.raw(c(0xff, 0xfe, rbind(as.integer(text_bytes(small_cibm)), 0)))
  expect_messages(read_bytes(utf16))
})

test_that("packed files are read, in several parts too", {
  bytes <- text_bytes(small_cibm)
  expected <- read_bytes(bytes)
  half <- seq_len(length(bytes) %/% 2)
  for (open in list(gzfile, bzfile, xzfile)) {
    expect_identical(read_bytes(pack(bytes, open)), expected)
    parts <- c(pack(bytes[half], open), pack(bytes[-half], open))
    expect_identical(read_bytes(parts), expected)
  }
})

test_that("a packed file that is damaged is an error that names it", {
  local_folder()
  lines <- c("200 2000", sprintf("%d %d 0.%06d", rep(0:199, 10),
                                 (rep(0:199, 10) + rep(1:10, each = 200)) %% 200,
                                 (1:2000 * 7919L) %% 1000003L %% 1000000L))
  expect_damaged <- function(bytes) {
    writeBin(bytes, "file.knn.gz")
    expect_error(
      read_knn("file.knn.gz"), "file.knn.gz' must be whole",
      class = "fsknn_file_error", label = length(bytes)
    )
  }
  for (open in list(gzfile, bzfile, xzfile)) {
    packed <- pack(text_bytes(lines), open)
    size <- length(packed)
    for (left in c(6, 18, size %/% 2, size - c(13, 9, 8, 7, 4, 1))) {
      expect_damaged(packed[seq_len(left)])
    }
    for (at in c(20, size %/% 2, size - c(6, 1))) {
      damaged <- packed
      damaged[[at]] <- xor(damaged[[at]], as.raw(4))
      expect_damaged(damaged)
    }
  }
  expect_messages(read_knn("file.knn.gz"))
  expect_damaged(as.raw(c(0x1f, 0x8b)))
})

test_that("the digest of gzip is that of its definition", {
  raws <- list(charToRaw("12345"), raw(), charToRaw("6789"))
  bytes <- as.raw(c(0x26, 0x39, 0xf4, 0xcb))
  expect_identical(fsknn:::cpp_crc32(raws, 9), bytes)
  expect_identical(fsknn:::cpp_crc32(list(charToRaw("xy123456789")), 9), bytes)
  expect_identical(fsknn:::cpp_crc32(c(list(raw(5)), raws), 9), bytes)
  expect_identical(fsknn:::cpp_crc32(raws, 10), raw())
})
