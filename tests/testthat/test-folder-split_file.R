# Damage to any file of a checkpoint never leads to a wrong answer.

# Returns searches of `x` that store different columns.
kept_searches <- function() {
  list(
    lists = function(x, ...) knn_search(x, 3, ...),
    edges = function(x, ...) knn_graph(x, 3, ...),
    near = function(x, ...) within_search(x, 0.6, ...),
    pairs = function(x, ...) threshold_graph(x, 0.3, ...)
  )
}

# The search runs on the CPU with one thread, so that thousands of runs are
# cheap.
in_folder <- function(search, x, folder, ...) {
  withr::local_options(fsknn.split_size = 9L)
  search(x, backend = "cpu", num_threads = 1, checkpoint = folder, ...)
}

# The answer from a folder, or the class of the error; and what was said.
outcome <- function(search, x, folder) {
  said <- character()
  answer <- withCallingHandlers(
    tryCatch(in_folder(search, x, folder), fsknn_error = class),
    message = function(message) {
      said <<- c(said, conditionMessage(message))
      invokeRestart("muffleMessage")
    }
  )
  list(answer = answer, said = paste(said, collapse = " "))
}

# After one file of a folder was changed, there must be the right answer and a
# message about the split, or a specific error. Returns what is wrong, or NULL.
wrong_with <- function(got, whole, is_split) {
  if (!is_split && identical(got$answer[[1]], "fsknn_checkpoint_error")) {
    return(NULL)
  }
  if (!identical(got$answer, whole)) {
    return("another answer")
  }
  if (!grepl("(damaged|of another search).*done[[:space:]]+again", got$said)) {
    return("nothing said")
  }
}

copy_folder <- function(from, to) {
  unlink(to, recursive = TRUE)
  dir.create(to)
  file.copy(list.files(from, full.names = TRUE), to)
}

# In turn, flips a bit, overwrites bytes, truncates, appends, or writes zeros
# from some byte on (as file systems may do).
damaged <- function(bytes, trial) {
  at <- sample.int(length(bytes), 1)
  after <- at:length(bytes)
  switch(
    trial %% 5 + 1,
    replace(bytes, at, xor(bytes[[at]], as.raw(2^sample(0:7, 1)))),
    replace(bytes, after[seq_len(min(8, length(after)))],
            as.raw(sample(0:255, min(8, length(after)), TRUE))),
    bytes[seq_len(at - 1)],
    c(bytes, as.raw(sample(0:255, at, TRUE))),
    replace(bytes, after, as.raw(0))
  )
}

# Each search tests a third of the task files, which are alike. Together they
# test all, and each kind of damage on several files.
fuzz_folders <- function(trials) {
  x <- random_matrix(30, 7)
  wrong <- character()
  turns <- 0
  searches <- kept_searches()
  for (name in names(searches)) {
    folder <- withr::local_tempdir()
    whole <- in_folder(searches[[name]], x, folder)
    tasks <- task_files(folder)
    turn <- match(name, names(searches)) %% 3
    files <- c(
      list.files(folder, "search", full.names = TRUE),
      tasks[seq_along(tasks) %% 3 == turn]
    )
    for (file in files) {
      bytes <- bytes_of(file)
      for (trial in turns + seq_len(trials)) {
        bad <- damaged(bytes, trial)
        if (identical(bad, bytes)) next
        writeBin(bad, file)
        what <- wrong_with(
          outcome(searches[[name]], x, folder), whole,
          grepl("task", basename(file))
        )
        if (!is.null(what)) {
          wrong <- c(wrong, paste(name, basename(file), trial, what))
        }
        # The original file is restored.
        writeBin(bytes, file)
      }
      turns <- turns + trials
    }
  }
  wrong
}

test_that("a damaged file of a folder never gives a wrong answer", {
  withr::local_seed(12)
  expect_identical(fuzz_folders(if (is_long()) 50 else 2), character())
})

test_that("each byte of what the search is, is looked at", {
  x <- random_matrix(30, 7)
  search <- kept_searches()$lists
  folder <- withr::local_tempdir()
  in_folder(search, x, folder)
  file <- list.files(folder, "search", full.names = TRUE)
  bytes <- bytes_of(file)
  # Only digits and letters are replaced by others, so that the file stays text.
  for (at in seq(1, length(bytes), by = if (is_long()) 1 else 11)) {
    writeBin(replace(bytes, at, xor(bytes[[at]], as.raw(1))), file)
    expect_error(in_folder(search, x, folder), class = "fsknn_checkpoint_error")
  }
})

test_that("a split of another search is never taken", {
  x <- random_matrix(30, 7)
  other <- x
  other[30, 7] <- other[30, 7] + 1
  searches <- kept_searches()
  local_folder()
  # These have splits of the same form: a matrix with one changed row, one with
  # fewer points, and the same search with smaller splits. Of the latter, the
  # fourth split has as many rows as the last one here.
  others <- list(
    list(x = other, size = 9L, split = 3),
    list(x = x[1:21, ], size = 9L, split = 2),
    list(x = x, size = 3L, split = 4)
  )
  for (name in names(searches)) {
    search <- searches[[name]]
    whole <- in_folder(search, x, paste0(name, "-own"))
    for (at in if (name == "lists" || is_long()) seq_along(others) else 1) {
      from <- paste(name, at)
      withr::with_options(
        list(fsknn.split_size = others[[at]]$size),
        search(others[[at]]$x, backend = "cpu", checkpoint = from)
      )
      copy_folder(paste0(name, "-own"), "mixed")
      file.copy(
        task_files(from)[[others[[at]]$split]], "mixed", overwrite = TRUE
      )
      got <- outcome(search, x, "mixed")
      expect_identical(got$answer, whole, label = from)
      expect_match(
        got$said, paste("Task", others[[at]]$split, "was of another search")
      )
    }
  }
  # The search has other columns and another k.
  searches$wide <- function(x, ...) knn_search(x, 7, ...)
  searches$narrow <- function(x, ...) knn_search(x, 1, ...)
  for (name in c("wide", "narrow")) {
    in_folder(searches[[name]], x, paste0(name, "-own"))
  }
  whole <- suppressMessages(in_folder(searches$lists, x, "lists-own"))
  for (name in setdiff(names(searches), "lists")) {
    copy_folder("lists-own", "mixed")
    file.copy(task_files(paste0(name, "-own")), "mixed", overwrite = TRUE)
    got <- outcome(searches$lists, x, "mixed")
    expect_identical(got$answer, whole)
    expect_match(got$said, "Tasks 1, 2, 3, and 12 more were of another search")
  }
})

test_that("what the search is, from another folder, gives no wrong answer", {
  x <- random_matrix(30, 7)
  search <- kept_searches()$lists
  own <- withr::local_tempdir()
  whole <- in_folder(search, x, own)
  # This is the same search with other splits.
  other <- withr::local_tempdir()
  withr::with_options(
    list(fsknn.split_size = 4L), search(x, backend = "cpu", checkpoint = other)
  )
  file.copy(file.path(other, "fsknn-search"), own, overwrite = TRUE)
  got <- outcome(search, x, own)
  expect_identical(got$answer, whole)
  expect_match(got$said, "of another search")
  # This is another search.
  third <- withr::local_tempdir()
  in_folder(kept_searches()$near, x, third)
  file.copy(file.path(third, "fsknn-search"), own, overwrite = TRUE)
  expect_error(in_folder(search, x, own), class = "fsknn_checkpoint_error")
})

test_that("numbers that no search gives are refused though they are sealed", {
  x <- random_matrix(30, 7)
  searches <- kept_searches()
  change <- list(
    lists = list(index = 31L, index = 0L, count = -1L),
    edges = list(index = NA_integer_, count = 1000L),
    near = list(index = 31L, count = -1L, count = 1000L, index = 0L),
    pairs = list(index = 0L, count = NA_integer_)
  )
  types <- list(
    count = integer(), index = integer(), distance = double(),
    correlation = double(), facts = double()
  )
  columns <- list(
    lists = c("count", "index", "distance"),
    edges = c("count", "index", "distance", "correlation"),
    near = c("count", "index", "distance", "correlation"),
    pairs = c("count", "index", "distance", "correlation")
  )
  for (name in names(searches)) {
    folder <- withr::local_tempdir()
    whole <- in_folder(searches[[name]], x, folder)
    file <- file.path(folder, "fsknn-task-000002")
    form <- types[c(columns[[name]], "facts")]
    held <- fsknn:::cpp_read_sealed(file, "task", 2, "", form,
                                    rep(NA_real_, length(form)))
    expect_identical(held$state, "whole")
    for (at in seq_along(change[[name]])) {
      bad <- held$columns
      bad[[names(change[[name]])[[at]]]][[2]] <- change[[name]][[at]]
      fsknn:::cpp_write_sealed(file, "task", 2, held$fingerprint, bad, FALSE)
      got <- outcome(searches[[name]], x, folder)
      expect_identical(got$answer, whole)
      expect_match(got$said, "Task 2 was damaged")
    }
  }
})

test_that("what is no file is a named error, and not waited for", {
  skip_on_os("windows")
  x <- random_matrix(30, 7)
  folder <- withr::local_tempdir()
  in_folder(kept_searches()$lists, x, folder)
  for (name in c("search", "task-000002", "work", "points")) {
    file <- file.path(folder, paste0("fsknn-", name))
    file.rename(file, paste0(file, "-away"))
    dir.create(file)
    expect_error(
      in_folder(kept_searches()$lists, x, folder),
      class = "fsknn_checkpoint_error", label = name
    )
    unlink(file, recursive = TRUE)
    system2("mkfifo", shQuote(file))
    expect_error(
      in_folder(kept_searches()$lists, x, folder),
      class = "fsknn_checkpoint_error", label = name
    )
    file.remove(file)
    file.rename(paste0(file, "-away"), file)
  }
  expect_message(in_folder(kept_searches()$lists, x, folder), "15 of 15 tasks")
})

test_that("files are their owner's alone, and no link is written through", {
  skip_on_os("windows")
  x <- random_matrix(30, 7)
  folder <- withr::local_tempdir()
  victim <- withr::local_tempfile()
  writeLines("precious", victim)
  # An earlier version used these names for unfinished files.
  for (name in c("search", "search.dcf")) {
    file.symlink(
      victim,
      file.path(folder, paste0("fsknn-", name, ".part-", Sys.getpid()))
    )
  }
  try(in_folder(kept_searches()$lists, x, folder), silent = TRUE)
  expect_identical(readLines(victim), "precious")
  unlink(list.files(folder, full.names = TRUE))
  before <- Sys.umask("000")
  withr::defer(Sys.umask(before))
  in_folder(kept_searches()$lists, x, folder)
  modes <- file.mode(list.files(folder, full.names = TRUE))
  expect_identical(unique(format(modes)), "600")
})

test_that("a folder's name reaches no other folder", {
  skip_on_os("windows")
  x <- random_matrix(30, 7)
  search <- kept_searches()$lists
  local_folder()
  # These are names of unfinished files in this version and an earlier one.
  unfinished <- paste0("fsknn-task-000001.part-", c("00000000deadbeef", "77"))
  own <- c("run*", "run[12]", "run?")
  others <- c("run1", "run2")
  for (folder in c(own, others)) {
    in_folder(search, x, folder)
    file.create(file.path(folder, unfinished))
  }
  for (folder in own) {
    suppressMessages(in_folder(search, x, folder))
    expect_length(list.files(folder, "part"), 1)
  }
  expect_true(all(file.exists(file.path(rep(others, each = 2), unfinished))))
})

test_that("R's options change neither the words nor what the search is", {
  x <- random_matrix(2001, 7)
  folder <- withr::local_tempdir()
  find <- function() {
    withr::local_options(fsknn.split_size = 1000L)
    threshold_graph(x, 0.9, backend = "cpu", checkpoint = folder)
  }
  whole <- find()
  withr::local_options(OutDec = ",", scipen = -20, warn = 2)
  expect_message(again <- find(), "6 of 6 tasks")
  expect_identical(again, whole)
  # Thousands have a comma in messages.
  expect_identical(fsknn:::format_count(1234567), "1,234,567")
  expect_identical(fsknn:::format_bound(0.5), "0.5")
  error <- expect_error(
    threshold_graph(x, 0.8, backend = "cpu", checkpoint = folder),
    class = "fsknn_checkpoint_error"
  )
  expect_match(conditionMessage(error), "was 0.9, and is 0.8")
})

test_that("a file is whole, or is not there", {
  folder <- withr::local_tempdir()
  path <- file.path(folder, "file")
  columns <- list(bytes = as.raw(seq_len(255)), one = NA_integer_,
                  numbers = c(NA, NaN, Inf, -0))
  mark <- strrep("0f", 8)
  write <- function(path, columns) {
    fsknn:::cpp_write_sealed(path, "test", 1, mark, columns, FALSE)
  }
  read <- function(path, kind = "test", number = 1, print = mark,
                   types = columns, lengths = base::lengths(types)) {
    fsknn:::cpp_read_sealed(path, kind, number, print, types, lengths)
  }
  write(path, columns)
  expect_identical(read(path)$columns, columns)
  expect_identical(read(path, print = "")$columns, columns)
  expect_identical(read(path, lengths = c(NA, 1, NA))$columns, columns)
  for (file in list(
    read(path, kind = "best"), read(path, number = 2),
    read(path, print = strrep("0e", 8)), read(path, types = columns[1:2]),
    read(path, types = columns[c(1, 3, 2)]), read(path, lengths = c(NA, 2, NA)),
    read(path, types = stats::setNames(columns, c("bytes", "one", "none")))
  )) {
    expect_identical(file$state, "other")
    expect_null(file$columns)
  }
  write(path, list())
  expect_identical(read(path)$state, "other")
  expect_identical(read(file.path(folder, "none"))$state, "missing")
  answer <- write(file.path(folder, "none", "file"), columns)
  expect_identical(answer$failure, "file")
  # Impossible values are refused.
  many <- withr::local_tempfile()
  write(many, columns)
  for (answer in list(
    write(path, list("text")), write(path, list(a = "text")),
    write(path, list(1)), read(path, print = "what"), read(path, lengths = 1),
    read(many, types = list(bytes = "text", one = 1L, numbers = 1))
  )) {
    expect_identical(answer$failure, "internal")
  }
  expect_identical(list.files(folder), "file")
})

test_that("parts that are none are refused, not copied", {
  put <- function(whole, part, first) fsknn:::cpp_put_part(whole, part, first)
  whole <- matrix(0, 5, 3)
  for (first in c(-1, 4, 5, 0.5, 1e300, NA, NaN, Inf)) {
    expect_error(put(whole, matrix(1, 2, 3), first), "no part", label = first)
  }
  expect_error(put(whole, matrix(1, 6, 3), 0), "no part")
  expect_error(put(whole, 1:6, 0), "no part")
  expect_error(put(whole, as.double(1:7), 0), "no part")
  expect_error(put(list(1), list(2), 0), "whole numbers and doubles")
  expect_error(put("a", "b", 0), "whole numbers and doubles")
  expect_error(put(NULL, 1, 0), "no part")
  expect_error(put(double(3), double(2), 2), "no part")
  expect_error(put(matrix(0, 5, 0), 1, 0), "no part")
  put(whole, as.double(1:6), 3)
  expect_identical(whole, rbind(matrix(0, 3, 3), matrix(as.double(1:6), 2)))
  lists <- function(...) fsknn:::cpp_lists_of(...)
  for (counts in list(3L, c(-1L, 3L), c(5L, -3L), NA_integer_, integer(),
                      c(.Machine$integer.max, 1L))) {
    expect_null(lists(1:2, c(1, 2), counts))
  }
  expect_null(lists(1:2, 1, 2L))
  expect_identical(
    lists(1:3, c(0.5, 1, 2), c(2L, 0L, 1L)),
    list(index = list(1:2, integer(), 3L),
         distance = list(c(0.5, 1), double(), 2))
  )
  between <- function(...) fsknn:::cpp_all_between(...)
  expect_true(between(c(1L, NA, 5L), 1L, 5L, TRUE))
  expect_false(between(c(1L, NA, 5L), 1L, 5L, FALSE))
  expect_false(between(c(1L, 6L), 1L, 5L, FALSE))
  expect_false(between(c(0L, 5L), 1L, 5L, FALSE))
})

test_that("a limit on the size of files is an error of the checkpoint", {
  skip_on_os("windows")
  folder <- withr::local_tempdir()
  script <- file.path(folder, "script.R")
  writeLines(c(
    sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")),
    "x <- matrix(sin((1:40000)^2), ncol = 20)",
    sprintf("folder <- %s", deparse(file.path(folder, "search"))),
    "tryCatch(",
    "  fsknn::knn_search(x, 50, checkpoint = folder, progress = FALSE),",
    "  fsknn_checkpoint_error = function(err) cat(\"told\\n\")",
    ")"
  ), script)
  said <- system2(
    "sh",
    c("-c", shQuote(paste(
      "ulimit -f 100;", shQuote(file.path(R.home("bin"), "Rscript")), "--vanilla",
      shQuote(script)
    ))),
    stdout = TRUE, stderr = FALSE
  )
  expect_identical(as.character(said), "told")
})
