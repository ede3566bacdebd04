# Triples by tasks in a folder: the answer and the checksum of one search.

points_of_triples <- function(n = 30, d = 11) {
  x <- exp(random_matrix(n, d))
  x[n - 1:3, ] <- x[1:3, ]
  rownames(x) <- paste0("g", seq_len(n))
  x
}

test_that("dozens of decompositions give one answer and one checksum", {
  x <- points_of_triples()
  for (least in c(0.55, 0.8)) {
    for (subset in list(NULL, c("g21", "g2"))) {
      whole <- threshold_triples(x, least, subset = subset)
      expect_gt(nrow(whole), 3)
      for (path in c("pairs", "all")) {
        for (stages in c(2, 5, 31, 400)) {
          expect_identical(
            threshold_triples(
              x, least, subset = subset, path = path, stages = stages,
              num_threads = 1 + stages %% 2
            ),
            whole
          )
        }
        # Each stage is itself divided into stages.
        folders <- replicate(3, withr::local_tempdir())
        parts <- lapply(1:3, function(i) {
          threshold_triples(
            x, least, subset = subset, path = path, stage = c(i, 3),
            checkpoint = folders[[i]]
          )
        })
        expect_identical(do.call(rbind, parts), whole)
      }
      folder <- withr::local_tempdir()
      expect_identical(
        threshold_triples(x, least, subset = subset, checkpoint = folder,
                          stages = 7),
        whole
      )
      expect_length(task_files(folder), 7)
      expect_message(
        again <- threshold_triples(x, least, subset = subset,
                                   checkpoint = folder),
        class = "fsknn_resumed"
      )
      expect_identical(again, whole)
      expect_identical(knn_collect(folder), whole)
    }
  }
})

test_that("three points, one feature, and rows left out go by tasks", {
  for (x in list(rbind(1:4, 4:1, c(2, 2, 2, 2)), matrix(c(1, 2, 3, 4, 0), 5))) {
    whole <- threshold_triples(x, 0, constant = "isolate")
    expect_gt(nrow(whole), 0)
    best <- nearest_triples(x, 1, constant = "isolate")
    counts <- triple_histogram(x, 7, constant = "isolate")
    for (stages in c(1, 4)) {
      expect_identical(
        threshold_triples(x, 0, constant = "isolate", stages = stages,
                          checkpoint = withr::local_tempdir()),
        whole
      )
      expect_identical(
        triple_histogram(x, 7, constant = "isolate", stages = stages,
                         checkpoint = withr::local_tempdir()),
        counts
      )
      withr::with_options(list(fsknn.split_size = stages), expect_identical(
        nearest_triples(x, 1, constant = "isolate",
                        checkpoint = withr::local_tempdir()),
        best
      ))
    }
  }
})

test_that("counts and nearest triples are kept, and collected", {
  x <- points_of_triples()
  counts <- triple_histogram(x, 30)
  best <- nearest_triples(x, 4)
  some <- nearest_triples(x, 4, subset = c("g9", "g2", "g30"))
  withr::local_options(fsknn.split_size = 4L)
  for (stages in c(2, 9, 50)) {
    folder <- withr::local_tempdir()
    expect_identical(triple_histogram(x, 30, stages = stages), counts)
    expect_identical(
      triple_histogram(x, 30, stages = stages, checkpoint = folder), counts
    )
    expect_identical(knn_collect(folder), counts)
    expect_identical(
      do.call(rbind, lapply(seq_len(stages), function(i) {
        triple_histogram(x, 30, stage = c(i, stages))
      })),
      counts
    )
  }
  for (what in list(list(NULL, best, 8), list(c("g9", "g2", "g30"), some, 1))) {
    folder <- withr::local_tempdir()
    expect_identical(
      nearest_triples(x, 4, subset = what[[1]], checkpoint = folder), what[[2]]
    )
    expect_length(task_files(folder), what[[3]])
    expect_identical(knn_collect(folder), what[[2]])
  }
})

test_that("a folder knows which triples it is of, and what is in it", {
  x <- points_of_triples()
  folder <- withr::local_tempdir()
  whole <- threshold_triples(x, 0.6, checkpoint = folder, stages = 4)
  expect_messages({
    threshold_triples(x, 0.7, checkpoint = folder)
    threshold_triples(x, 0.6, subset = 1, checkpoint = folder)
    threshold_triples(x, 0.6, stage = c(1, 2), checkpoint = folder)
    triple_histogram(x, checkpoint = folder)
    knn_search(x, 3, checkpoint = folder, backend = "cpu")
    knn_worker(folder, backend = "gpu")
  }, transform = function(lines) {
    gsub(folder, "FOLDER", lines, fixed = TRUE)
  })
  # The folder records the size of the work.
  expect_match(format(knn_status(folder))[[2]], "triples of at least 0.6")
  for (file in task_files(folder)[c(2, 3)]) {
    bytes <- readBin(file, "raw", file.size(file))
    at <- length(bytes) - 60
    bytes[[at]] <- xor(bytes[[at]], as.raw(8))
    writeBin(bytes, file)
  }
  expect_message(
    again <- threshold_triples(x, 0.6, checkpoint = folder),
    "were damaged"
  )
  expect_identical(again, whole)
})

test_that("too many triples are too many by tasks, too", {
  x <- points_of_triples()
  error <- expect_error(
    threshold_triples(x, 0.1, stages = 5, max_memory = 144 * 50),
    class = "fsknn_size_error"
  )
  expect_identical(error$triples, 4060)
  expect_lte(nrow(threshold_triples(x, error$fits)), 50)
  error <- expect_error(
    threshold_triples(x, 0.1, stages = 5, max_memory = 144 * 50,
                      checkpoint = withr::local_tempdir()),
    class = "fsknn_size_error"
  )
  expect_identical(error$most, 50)
  expect_match(conditionMessage(error), "triple_histogram")
})

test_that("room and a file are each call's own, the folder's triples all's", {
  x <- points_of_triples()
  whole <- threshold_triples(x, 0.2)
  folder <- withr::local_tempdir()
  expect_error(
    threshold_triples(x, 0.2, checkpoint = folder, stages = 4,
                      max_memory = "5 KiB"),
    class = "fsknn_size_error"
  )
  unlink(list.files(folder, "failure", full.names = TRUE))
  expect_identical(knn_worker(folder), 4L)
  expect_identical(knn_collect(folder), whole)
  # The folder is made by a call that writes a file.
  folder <- withr::local_tempdir()
  file <- withr::local_tempfile(fileext = ".csv")
  threshold_triples(x, 0.2, checkpoint = folder, file = file)
  expect_identical(knn_collect(folder), whole)
  # The folder is made by a call that writes no file, with one task.
  subset <- c("g21", "g2")
  threshold_triples(x, 0.2, subset = subset, file = file)
  lines <- readLines(file)
  folder <- withr::local_tempdir()
  whole <- threshold_triples(x, 0.2, subset = subset, checkpoint = folder)
  expect_length(task_files(folder), 1)
  suppressMessages(threshold_triples(x, 0.2, subset = subset, file = file,
                                     checkpoint = folder))
  expect_identical(readLines(file), lines)
  expect_identical(knn_collect(folder), whole)
})

test_that("a search that was killed goes on, and others may join in", {
  skip_on_cran()
  x <- points_of_triples(60, 20)
  expected <- list(
    threshold_triples(x, 0.6), triple_histogram(x, 10), nearest_triples(x, 2)
  )
  calls <- c(
    "threshold_triples(x, 0.6, checkpoint = folder, stages = 300)",
    "triple_histogram(x, 10, checkpoint = folder, stages = 300)",
    "nearest_triples(x, 2, checkpoint = folder)"
  )
  withr::local_options(fsknn.split_size = 1L)
  data <- withr::local_tempfile()
  saveRDS(x, data)
  folders <- replicate(3, withr::local_tempdir())
  # One child makes all three calls and is killed in each. It starts the next
  # call on request.
  for (i in seq_along(calls)) {
    folder <- folders[[i]]
    child <- start_child(c(
      "options(fsknn.split_size = 1L)",
      sprintf("x <- readRDS(%s)", deparse(data)),
      sprintf("folder <- %s", deparse(folder)), calls[[i]]
    ))
    wait_for(function() length(task_files(folder)) >= 3, patience)
    tools::pskill(child$pid, tools::SIGKILL)
    wait_for(function() is.null(fsknn:::process_start(child$pid)), patience)
    left <- knn_status(folder)$tasks
    expect_gt(left[["left"]] + left[["at_work"]], 5)
    expect_identical(knn_worker(folder, max_tasks = 3), 3L)
    found <- suppressMessages(eval(parse(text = calls[[i]])))
    expect_identical(found, expected[[i]])
  }
})

test_that("workers of BiocParallel find the same", {
  skip_if_not_installed("BiocParallel")
  x <- points_of_triples()
  calls <- list(
    quote(threshold_triples(x, 0.6)),
    quote(threshold_triples(x, 0.6, subset = c(20, 3), stages = 6)),
    quote(triple_histogram(x, 12)), quote(nearest_triples(x, 3))
  )
  up <- lapply(
    list(BiocParallel::SnowParam(2), BiocParallel::MulticoreParam(2)),
    BiocParallel::bpstart
  )
  withr::defer(lapply(up, BiocParallel::bpstop))
  params <- c(up, BiocParallel::SerialParam())
  for (call in calls) {
    whole <- eval(call)
    for (param in params) {
      call$BPPARAM <- param
      expect_identical(eval(call), whole)
    }
  }
})

test_that("what a search holds is given back when it ends, not as garbage", {
  x <- points_of_triples()
  give_back <- fsknn:::cpp_close_triples
  given_back <- 0L
  local_functions(cpp_close_triples = function(handle) {
    given_back <<- given_back + 1L
    give_back(handle)
    # Releasing twice is allowed.
    give_back(handle)
  })
  # What earlier tests left does not count.
  gc()
  expect_given_back <- function(call) {
    given_back <<- 0L
    call()
    expect_gte(given_back, 1L)
  }
  file <- withr::local_tempfile(fileext = ".csv")
  folder <- withr::local_tempdir()
  expect_given_back(function() threshold_triples(x, 0.6))
  expect_given_back(function() threshold_triples(x, 0.6, file = file))
  expect_given_back(function() threshold_triples(x, 0.6, checkpoint = folder))
  unlink(task_files(folder)[[1]])
  expect_given_back(function() knn_worker(folder, backend = "cpu"))
  expect_given_back(function() {
    expect_error(
      threshold_triples(x, 0.2, max_memory = "5 KiB"),
      class = "fsknn_size_error"
    )
  })
})
