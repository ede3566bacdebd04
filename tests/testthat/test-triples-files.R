# Triples that are written to a file during the search.

read_found <- function(file) {
  found <- utils::read.csv(file)
  expect_identical(names(found), fsknn:::triple_columns)
  found
}

test_that("a CSV file has the triples, all digits, in order", {
  x <- exp(random_matrix(26, 9))
  file <- withr::local_tempfile(fileext = ".csv")
  for (named in c(FALSE, TRUE)) {
    if (named) rownames(x) <- paste0("g\"", seq_len(26))
    whole <- threshold_triples(x, 0.6)
    told <- threshold_triples(x, 0.6, file = file)
    expect_s3_class(told, "fsknn_found_file")
    expect_identical(told$count, nrow(whole) + 0)
    expect_identical(told$checksum, attr(whole, "checksum"))
    expect_identical(as.list(read_found(file)), as.list(as.data.frame(whole)))
  }
  packed <- withr::local_tempfile(fileext = ".csv.gz")
  threshold_triples(x, 0.6, file = packed)
  expect_identical(readLines(packed), readLines(file))
})

test_that("the file is the same whatever fits in memory, and by tasks", {
  x <- exp(random_matrix(40, 9))
  x[38:40, ] <- x[1:3, ]
  file <- withr::local_tempfile(fileext = ".csv")
  for (subset in list(NULL, c(30, 7, 2))) {
    whole <- threshold_triples(x, 0.5, subset = subset)
    expect_gt(nrow(whole), 200)
    told <- threshold_triples(x, 0.5, subset = subset, file = file)
    with_any <- grepl("with any of 3 points", format(told)[[1]], fixed = TRUE)
    expect_identical(with_any, !is.null(subset))
    expected <- readLines(file)
    found <- read_found(file)
    if (!is.null(subset)) {
      owner <- apply(as.matrix(found[1:3]), 1, function(at) {
        min(intersect(at, subset))
      })
      expect_false(is.unsorted(owner))
      found <- found[order(found$from, found$to, found$third), ]
    }
    expect_identical(found$similarity, whole$similarity)
    for (room in c(41, 400)) {
      again <- threshold_triples(x, 0.5, subset = subset, file = file,
                                 max_memory = 120 * room)
      expect_identical(again, told)
      expect_identical(readLines(file), expected)
    }
    again <- threshold_triples(x, 0.5, subset = subset, file = file, stages = 6,
                               checkpoint = withr::local_tempdir())
    expect_identical(again, told)
    expect_identical(readLines(file), expected)
  }
  parts <- lapply(1:3, function(i) {
    threshold_triples(x, 0.5, stage = c(i, 3), file = file)
    utils::read.csv(file)
  })
  all <- do.call(rbind, parts)
  all <- all[order(all$from, all$to, all$third), ]
  expect_identical(all$similarity, threshold_triples(x, 0.5)$similarity)
})

test_that("records of CoMet are those of write_edges()", {
  x <- exp(random_matrix(20, 9))
  files <- replicate(2, withr::local_tempfile())
  whole <- threshold_triples(x, 0.6)
  write_edges(whole, files[[1]], "comet")
  threshold_triples(x, 0.6, file = files[[2]], format = "comet",
                    max_memory = 120 * 30)
  expect_identical(
    readBin(files[[1]], "raw", 1e6), readBin(files[[2]], "raw", 1e6)
  )
  none <- threshold_triples(x, 1, file = files[[1]], format = "comet")
  expect_identical(none$count, 0)
  expect_identical(file.size(files[[1]]), 0)
})

test_that("a file of triples prints, and wrong ones are errors", {
  x <- counts_matrix(8, 4)
  folder <- withr::local_tempdir()
  withr::local_dir(folder)
  expect_snapshot({
    threshold_triples(x, 0.5, file = "found.csv")
    threshold_triples(x, 0.5, stage = c(1, 2), file = "found", format = "comet")
  })
  expect_messages({
    threshold_triples(x, 0.5, file = "found.txt")
    threshold_triples(x, 0.5, file = "none/found.csv")
    threshold_triples(x, 0.5, file = "found.bin.gz", format = "comet")
    threshold_triples(x, 0.5, format = "csv")
    threshold_triples(x, 0.5, file = "found.csv", format = "gml")
  })
  # After an error, the previous file is unchanged.
  before <- readLines("found.csv")
  expect_error(threshold_triples(x - 9, 0.5, file = "found.csv"))
  expect_identical(readLines("found.csv"), before)
})
