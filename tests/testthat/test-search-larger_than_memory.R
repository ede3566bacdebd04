# 960 MB of doubles in a file are searched with 400 MB of memory, beyond what R
# takes with the packages loaded (HDF5Array alone some 330 MB). This takes about
# a minute and runs if FSKNN_LONG_TESTS is set, as by `make test-long`.

run_script <- function(lines, limit_kib = NULL) {
  script <- withr::local_tempfile(lines = lines, fileext = ".R")
  command <- paste(
    if (!is.null(limit_kib)) paste("ulimit -d", format_bound(limit_kib), "&&"),
    shQuote(file.path(R.home("bin"), "Rscript")), shQuote(script), "2>&1"
  )
  out <- suppressWarnings(system2("sh", c("-c", shQuote(command)), stdout = TRUE))
  list(out = out, status = attr(out, "status") %||% 0L)
}

format_bound <- function(x) format(floor(x), scientific = FALSE)

# Reads a line such as "what: 123", in KiB.
number_of_line <- function(out, what) {
  line <- grep(paste0("^", what, ":"), out, value = TRUE)
  as.double(sub(".*: *", "", line[[1]]))
}

loading <- c(
  "suppressMessages({library(fsknn); library(HDF5Array)})",
  "tell <- function(what, field) {",
  "  line <- grep(field, readLines('/proc/self/status'), value = TRUE)",
  "  cat(what, ': ', gsub('[^0-9]', '', line), '\\n', sep = '')",
  "}"
)

# Writes rows of 50 groups, and the nearest of the first three by cor(), block
# by block. There are few long rows, which are searched faster.
writing <- function(file, answer) {
  c(
    loading,
    "n <- 15000L; d <- 8000L; set.seed(1)",
    "centres <- matrix(runif(50 * d), 50)",
    sprintf("sink <- HDF5RealizationSink(c(n, d), type = 'double', filepath = '%s', name = 'x', chunkdim = c(500L, 500L), level = 0L)", file),
    "grid <- DelayedArray::RegularArrayGrid(c(n, d), c(500L, d))",
    "r <- matrix(0, n, 3)",
    "for (at in seq_along(grid)) {",
    "  rows <- (at - 1) * 500 + 1:500",
    "  x <- matrix(runif(500 * d), 500) + centres[rows %% 50 + 1, ]",
    "  if (at == 1) first <- x[1:3, ]",
    "  r[rows, ] <- cor(t(x), t(first))",
    "  sink <- DelayedArray::write_block(sink, grid[[at]], x)",
    "}",
    "r[cbind(1:3, 1:3)] <- -2",
    "index <- t(apply(r, 2, function(of) order(-of)[1:20]))",
    sprintf("saveRDS(list(index = index, r = r), '%s')", answer)
  )
}

searching <- function(file, max_memory, answer) {
  c(
    loading,
    sprintf("x <- HDF5Array('%s', 'x')", file),
    "tell('peak before', 'VmHWM'); tell('data before', 'VmData')",
    sprintf("nn <- knn_search(x, k = 20, backend = 'cpu', num_threads = 2, max_memory = '%s')", max_memory),
    "tell('peak after', 'VmHWM')",
    "print(knn_stats()$streamed)",
    sprintf("saveRDS(lapply(nn, function(of) of[1:3, ]), '%s')", answer)
  )
}

test_that("960 MB are searched in 400 MB, which a matrix in memory can't be", {
  skip_unless_long()
  skip_if_not_installed("HDF5Array")
  skip_if_not(file.exists("/proc/self/status"), "There is no /proc")
  folder <- withr::local_tempdir()
  file <- file.path(folder, "x.h5")
  expected <- file.path(folder, "expected.rds")
  found <- file.path(folder, "found.rds")
  written <- run_script(writing(file, expected))
  expect_identical(written$status, 0L, label = toString(written$out))

  cap_kib <- 400e6 / 1024
  by_blocks <- run_script(searching(file, "200 MB", found))
  expect_identical(by_blocks$status, 0L, label = toString(by_blocks$out))
  used <- number_of_line(by_blocks$out, "peak after") -
    number_of_line(by_blocks$out, "peak before")
  expect_lt(used, cap_kib)
  expected <- readRDS(expected)
  found <- readRDS(found)
  expect_identical(unname(found$index), unname(expected$index))
  pick <- cbind(as.vector(found$index), rep(1:3, 20))
  expect_equal(as.vector(found$distance), 1 - expected$r[pick], tolerance = 1e-12)

  # The system sets the same limit on what a process may allocate.
  data <- number_of_line(by_blocks$out, "data before")
  in_memory <- run_script(searching(file, "100 GB", "none"), data + cap_kib)
  expect_false(in_memory$status == 0L)
  expect_match(in_memory$out, "allocate|too little memory", all = FALSE)
})
