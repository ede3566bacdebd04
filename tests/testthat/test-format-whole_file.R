# Files that users write contain either the whole new content or the old one.

cibm_of <- function(rows) {
  matrix(sin(seq_len(rows * 40)), rows)
}

writers <- list(
  csv = function(file) write_edges(knn_graph(cibm_of(400), 9), file),
  csv.gz = function(file) write_edges(knn_graph(cibm_of(400), 9), file),
  graphml = function(file) write_edges(knn_graph(cibm_of(400), 9), file),
  gml = function(file) write_edges(knn_graph(cibm_of(400), 9), file),
  knn = function(file) write_knn(knn_graph(cibm_of(400), 9), file),
  knn.gz = function(file) write_knn(knn_graph(cibm_of(400), 9), file),
  txt = function(file) write_points(cibm_of(400), file, "cibm"),
  txt.gz = function(file) write_points(cibm_of(400), file, "cibm")
)

test_that("what a writer wrote is there, and nothing beside it", {
  local_folder()
  for (ending in names(writers)) {
    file <- paste0("file.", ending)
    writeLines("old", file)
    Sys.chmod(file, "0640")
    expect_identical(writers[[ending]](file), file)
    expect_gt(file.size(file), 4000)
    expect_identical(format(file.mode(file)), "640")
    expect_identical(list.files(all.files = TRUE, no.. = TRUE), file)
    unlink(file)
  }
})

test_that("a disk that is full is an error", {
  skip_if_not(file.exists("/dev/full"))
  for (ending in c("csv", "graphml", "gml")) {
    expect_error(
      write_edges(knn_graph(cibm_of(400), 9), "/dev/full", format = ending),
      "No space left", class = "fsknn_file_error"
    )
  }
  local_folder()
  for (ending in names(writers)) {
    link <- paste0("full.", ending)
    file.symlink("/dev/full", link)
    expect_error(
      writers[[ending]](link), "No space left", class = "fsknn_file_error",
      label = ending
    )
    expect_identical(Sys.readlink(link), "/dev/full")
    unlink(link)
  }
  file.symlink("/dev/full", "full.txt")
  expect_messages(write_points(cibm_of(4), "full.txt", "cibm"))
  expect_true(file.exists("/dev/full"))
})

test_that("a disk that becomes full leaves the old file as it was", {
  folder <- withr::local_tempdir()
  mounted <- suppressWarnings(system2(
    "mount", c("-t", "tmpfs", "-o", "size=32k", "none", shQuote(folder)),
    stdout = FALSE, stderr = FALSE
  ))
  skip_if(mounted != 0, "No mount is permitted here.")
  withr::defer(system2("umount", shQuote(folder)))
  withr::local_dir(folder)
  for (ending in names(writers)) {
    file <- paste0("file.", ending)
    writeLines("old", file)
    # Random numbers can hardly be compressed.
    write <- function() {
      x <- matrix(sin((1:40000)^2), ncol = 40)
      switch(
        sub("[.]gz$", "", ending),
        txt = write_points(x, file, "cibm"),
        knn = write_knn(knn_graph(x, 9), file),
        write_edges(knn_graph(x, 9), file)
      )
    }
    expect_error(write(), "No space left", class = "fsknn_file_error",
                 label = ending)
    expect_identical(readLines(file), "old")
    expect_identical(list.files(all.files = TRUE, no.. = TRUE), file)
    unlink(file)
  }
})

test_that("a limit on the size of files leaves the old file as it was", {
  skip_on_os("windows")
  # covr writes files of its own.
  skip_on_covr()
  folder <- withr::local_tempdir()
  script <- file.path(folder, "script.R")
  writeLines(c(
    sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")),
    sprintf("setwd(%s)", deparse(folder)),
    "x <- matrix(sin((1:40000)^2), ncol = 40)",
    "edges <- fsknn::knn_graph(x, 9)",
    "tried <- list(",
    "  a.csv = function(f) fsknn::write_edges(edges, f),",
    "  a.csv.gz = function(f) fsknn::write_edges(edges, f),",
    "  a.gml = function(f) fsknn::write_edges(edges, f),",
    "  a.graphml = function(f) fsknn::write_edges(edges, f),",
    "  a.knn.gz = function(f) fsknn::write_knn(edges, f),",
    "  a.txt = function(f) fsknn::write_points(x, f, 'cibm'),",
    "  a.txt.gz = function(f) fsknn::write_points(x, f, 'cibm')",
    ")",
    "for (file in names(tried)) {",
    "  writeLines('old', file)",
    "  said <- tryCatch(tried[[file]](file), error = conditionMessage)",
    "  cat(grepl('File too large', said), readLines(file, warn = FALSE), '')",
    "}",
    "cat(length(list.files(pattern = '^a', all.files = TRUE)))"
  ), script)
  # The unit of ulimit is 512 or 1,024 bytes.
  said <- system2(
    "sh", c("-c", shQuote(paste(
      "ulimit -f 24;", shQuote(file.path(R.home("bin"), "Rscript")),
      "--vanilla", shQuote(script)
    ))),
    stdout = TRUE
  )
  expect_identical(said, paste0(strrep("TRUE old ", 7), "7"))
})

test_that("Ctrl-C leaves the old file as it was, and nothing beside it", {
  child <- start_child(c(
    "setwd(dirname(out)); folder <- basename(tempfile('')); dir.create(folder)",
    "setwd(folder)",
    "x <- matrix(sin(1:2e6), ncol = 40)",
    "edges <- knn_graph(x[1:6000, ], k = 60, backend = 'cpu')",
    "pid <- Sys.getpid()",
    "tried <- list(",
    "  a.csv.gz = function(f) write_edges(edges, f),",
    "  a.graphml = function(f) write_edges(edges, f),",
    "  a.txt = function(f) write_points(x, f, 'cibm')",
    ")",
    "said <- character()",
    "for (file in names(tried)) {",
    "  writeLines('old', file)",
    # This simulates Ctrl-C when the first part is on the disk.
    "  waiter <- parallel::mcparallel({",
    "    while (length(list.files(pattern = 'part-')) == 0) Sys.sleep(0.01)",
    "    Sys.sleep(0.2)",
    "    tools::pskill(pid, tools::SIGINT)",
    "  })",
    "  said <- c(said, tryCatch({tried[[file]](file); 'done'},",
    "    interrupt = function(i) 'interrupted', error = conditionMessage))",
    "  parallel::mccollect(waiter)",
    "  said <- c(said, readLines(file))",
    "}",
    "left <- setdiff(list.files(all.files = TRUE, no.. = TRUE), names(tried))",
    "setwd('..'); unlink(folder, recursive = TRUE)",
    "say(said, length(left))"
  ))
  expect_identical(said_by(child), c(rep(c("interrupted", "old"), 3), "0"))
})

test_that("links lead to the file that is replaced", {
  local_folder()
  dir.create("inner")
  writeLines("old", "inner/file.txt")
  file.symlink("inner/file.txt", "link.txt")
  file.symlink("inner/new.txt", "dangling.txt")
  x <- cibm_of(3)
  write_points(x, "link.txt", "cibm")
  write_points(x, "dangling.txt", "cibm")
  expect_identical(Sys.readlink("link.txt"), "inner/file.txt")
  expect_identical(Sys.readlink("dangling.txt"), "inner/new.txt")
  expect_identical(
    unname(read_points("inner/file.txt", "cibm")),
    unname(read_points("link.txt", "cibm"))
  )
  expect_setequal(list.files("inner"), c("file.txt", "new.txt"))
  file.symlink("loop.txt", "loop.txt")
  expect_error(write_points(x, "loop.txt", "cibm"), class = "fsknn_file_error")
})

test_that("a pipe is written to", {
  skip_on_os("windows")
  local_folder()
  x <- cibm_of(30)
  write_points(x, "file.txt", "cibm")
  expect_identical(system2("mkfifo", "pipe"), 0L)
  system2("sh", c("-c", shQuote("cat pipe > copy; mv copy got")), wait = FALSE)
  write_points(x, "pipe", "cibm")
  expect_true(wait_for(function() file.exists("got"), patience))
  expect_identical(readLines("got"), readLines("file.txt"))
})

test_that("a file that may not be written stays", {
  skip_if(identical(unname(Sys.info()[["effective_user"]]), "root"))
  local_folder()
  writeLines("old", "file.txt")
  Sys.chmod("file.txt", "0444")
  expect_error(
    write_points(cibm_of(3), "file.txt", "cibm"), class = "fsknn_file_error"
  )
  expect_identical(readLines("file.txt"), "old")
})

test_that("digits = 17 gives back the same doubles", {
  local_folder()
  set.seed(1)
  bits <- as.raw(sample(0:255, 8 * 4000, replace = TRUE))
  values <- readBin(bits, "double", 4000)
  values <- c(values[is.finite(values)], 5e-324, -1e-310, 0.1, 1 / 3, 2^53 - 1)
  # R reads this number correctly from 15 digits, other programs only from 17.
  values <- c(values, -3.3647036830957202e-192)
  write_values <- function(values, format) {
    names <- paste0("p", seq_along(values))
    edges <- data.frame(from = names, to = rev(names), distance = values)
    points <- data.frame(name = names, value = rev(values))
    write_edges(edges, "file", format, vertices = points, digits = 17)
  }
  for (format in c("csv", "graphml", "gml")) {
    # igraph's reader of GML takes large numbers for integers.
    here <- if (format == "gml") values[abs(values) < 1e9] else values
    # igraph 2 reads no subnormal numbers.
    if (format != "csv" && utils::packageVersion("igraph") >= "2") {
      here <- here[here == 0 | abs(here) >= .Machine$double.xmin]
    }
    write_values(here, format)
    back <- if (format == "csv") {
      found <- read.csv("file")
      list(found$distance, found$from_value)
    } else {
      graph <- igraph::read_graph("file", format)
      list(igraph::E(graph)$distance, igraph::V(graph)$value)
    }
    expect_identical(back, list(here, rev(here)), label = format)
  }
  write_points(matrix(values, 1), "file", "cibm")
  expect_identical(as.vector(read_points("file", "cibm")), values)
  edges <- data.frame(from = "a", to = "b", distance = c(1 / 3, 12345.678))
  write_edges(edges, "file", "csv", digits = 3)
  expect_identical(read.csv("file")$distance, c(0.333, 12300))
  expect_messages(write_edges(edges, "file", "csv", digits = 18))
})

test_that("names are UTF-8, or entities in GML, in every locale", {
  skip_on_os("windows")
  folder <- withr::local_tempdir()
  script <- file.path(folder, "script.R")
  writeLines(c(
    sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")),
    sprintf("setwd(%s)", deparse(folder)),
    "stopifnot(!l10n_info()[['UTF-8']])",
    "x <- matrix(sin(1:40), 8)",
    "names <- c('g\\u00e9ne', '\\u03b1-catenin \"<&', letters[3:8])",
    "rownames(x) <- names",
    "edges <- fsknn::knn_graph(x, 2)",
    "points <- data.frame(name = names, text = rev(names))",
    "for (file in c('a.csv', 'a.graphml', 'a.gml')) {",
    "  fsknn::write_edges(edges, file, vertices = points)",
    "}",
    "colnames(x) <- names[1:5]",
    "fsknn::write_points(x, 'a.txt', 'cibm')",
    "back <- fsknn::read_points('a.txt', 'cibm')",
    "cat(identical(dimnames(back), dimnames(x)))"
  ), script)
  said <- withr::with_envvar(c(LC_ALL = "C"), system2(
    file.path(R.home("bin"), "Rscript"), c("--vanilla", shQuote(script)),
    stdout = TRUE
  ))
  expect_identical(said, "TRUE")
  for (file in list.files(folder, "^a", full.names = TRUE)) {
    bytes <- readBin(file, "raw", 1e6)
    written <- if (endsWith(file, ".gml")) {
      c("g&#233;ne", "&#945;-catenin")
    } else {
      c("g\u00e9ne", "\u03b1-catenin")
    }
    for (name in written) {
      expect_gt(length(grepRaw(charToRaw(enc2utf8(name)), bytes)), 0)
    }
    expect_length(grepRaw("U+", bytes, fixed = TRUE), 0)
  }
})
