# The folder as the protocol: workers communicate only by its files.

kept_graph <- function(x, folder, ...) {
  knn_graph(x, 5, backend = "cpu", checkpoint = folder, ...)
}

# Makes a folder without finished tasks.
empty_folder <- function(x, find = kept_graph, env = parent.frame()) {
  folder <- withr::local_tempdir(.local_envir = env)
  find(x, folder)
  file.remove(task_files(folder))
  folder
}

# Starts a process that works in a folder and reports how many tasks it did. It
# pauses in each task, to be observed there.
start_worker <- function(folder, before = character(), pause = 0.05) {
  start_child(c(
    "options(fsknn.num_threads = 1)",
    before,
    sprintf("trace('write_task', quote(Sys.sleep(%s)), print = FALSE,", pause),
    "      where = asNamespace('fsknn'))",
    sprintf("done <- try(knn_worker(%s, backend = 'cpu'))", deparse(folder)),
    "say(if (inherits(done, 'try-error')) 'failed' else done)"
  ))
}

end_child <- function(child) tools::pskill(child$pid, tools::SIGKILL)

test_that("a folder is worked in by hand, and collected, for every search", {
  withr::local_options(fsknn.split_size = 40L)
  x <- random_matrix(100, 9)
  rownames(x) <- paste0("g", 1:100)
  x[17, ] <- 1
  holes <- x
  holes[cbind(c(5, 77, 100), c(1, 9, 2))] <- NA
  query <- random_matrix(70, 9, seed = 2)
  isolated <- list(constant = "isolate", backend = "cpu")
  searches <- list(
    list(knn_search, x, 5), list(knn_graph, x, 5),
    list(knn_search, x, rep(c(0, 4), 50)), list(knn_query, x, query, 3),
    list(within_search, x, 0.3), list(threshold_graph, x, 0.5),
    list(within_query, x, query, 0.3),
    list(threshold_graph, x, 0.5, subset = c(5, 99, 1)),
    list(knn_graph, x, 3, "spearman", subset = 9:1),
    list(knn_graph, x, 2, block = rep(1:2, 50)),
    list(knn_graph, holes, 5, na = "pairwise", min_pairs = 9),
    list(knn_search, holes, 5, na = "mean"),
    list(within_search, x, rep(c(0.1, 0.4), 50))
  )
  for (at in seq_along(searches)) {
    find <- function(...) {
      do.call(searches[[at]][[1]], c(searches[[at]][-1], isolated, list(...)))
    }
    suppressMessages({
      whole <- find()
      folder <- withr::local_tempdir()
      expect_identical(find(checkpoint = folder), whole, label = at)
      all <- length(task_files(folder))
      file.remove(task_files(folder)[c(TRUE, FALSE)])
      expect_error(knn_collect(folder), class = "fsknn_checkpoint_error")
      expect_identical(knn_worker(folder, num_threads = 1), (all + 1L) %/% 2L)
      expect_identical(knn_collect(folder), whole, label = at)
    })
  }
})

test_that("each pair is met once, and limits of others' tasks cut what is told", {
  withr::local_options(fsknn.split_size = 150L)
  x <- random_matrix(1000, 12)
  for (metric in c("pearson", "euclidean")) {
    folder <- withr::local_tempdir()
    whole <- knn_search(x, 5, metric, backend = "cpu")
    expect_identical(
      knn_search(x, 5, metric, backend = "cpu", checkpoint = folder), whole
    )
    pairs <- 1000 * 999 / 2
    expect_gte(knn_stats()$pairs_filtered, pairs)
    expect_lte(knn_stats()$pairs_filtered, 1.05 * pairs)
    # Later tasks report fewer neighbours than early ones.
    sizes <- file.size(task_files(folder))
    expect_lt(mean(utils::tail(sizes, 7)), 0.7 * mean(sizes[8:14]))
    # A separate worker, which reads the results of others, reports fewer, too.
    lasts <- utils::tail(task_files(folder), 7)
    file.remove(lasts)
    knn_worker(folder, num_threads = 1, backend = "cpu")
    expect_lt(mean(file.size(lasts)), 0.7 * mean(sizes[8:14]))
    expect_identical(knn_collect(folder), whole)
  }
})

test_that("several processes do each task once", {
  skip_on_os("windows")
  withr::local_options(fsknn.split_size = 40L)
  x <- random_matrix(300, 9)
  whole <- knn_graph(x, 5, backend = "cpu")
  folder <- empty_folder(x)
  workers <- lapply(1:3, function(i) start_worker(folder, pause = 0))
  here <- knn_worker(folder, num_threads = 1, backend = "cpu")
  done <- c(here, as.integer(vapply(workers, said_by, "", seconds = 300)))
  expect_identical(sum(done), 45L)
  expect_identical(knn_collect(folder), whole)
  status <- knn_status(folder)
  expect_identical(status$tasks[["done"]], 45L)
  expect_identical(sum(status$done_by$tasks), 45L)
})

# With FSKNN_LONG_TESTS=1 there are 200 runs instead of 3.
test_that("several callers of one folder all give the answer", {
  skip_on_os("windows")
  withr::local_options(fsknn.split_size = 60L)
  x <- random_matrix(600, 12)
  whole <- knn_search(x, 5, backend = "cpu", num_threads = 1)
  for (run in seq_len(if (is_long()) 200 else 3)) {
    folder <- withr::local_tempdir()
    found <- parallel::mclapply(1:4, function(caller) {
      tryCatch(
        suppressMessages(knn_search(
          x, 5, backend = "cpu", num_threads = 1, checkpoint = folder
        )),
        error = conditionMessage
      )
    }, mc.cores = 4)
    for (answer in found) {
      expect_identical(answer, whole)
    }
    unlink(folder, recursive = TRUE)
  }
})

test_that("a caller that ends sweeps what the dead left, and nothing else", {
  skip_if_not(file.exists("/proc/self/ns/pid"), "there is no /proc")
  withr::local_options(fsknn.split_size = 40L)
  x <- random_matrix(120, 9)
  folder <- withr::local_tempdir()
  kept_graph(x, folder)
  mine <- fsknn:::words_of_claim()
  far <- gsub("place: [^\n]*", "place: there", mine)
  files <- list(
    "lease-00000000000000aa" = mine,
    "claim-000005-001" = mine,
    "lease-00000000000000bb" = far,
    "lease-00000000000000cc" = "",
    "lease-00000000000000dd" = sub(
      "process: [0-9]+", "process: 2000000000", mine
    ),
    "claim-000006-002" = sub("start: [0-9]+", "start: 1", mine),
    "lease-00000000000000ee" = far,
    "task-000005.part-00000000000000aa" = "half",
    "failure-000005-1.part-00000000000000aa" = "half",
    "aside-00000000000000aa" = "half",
    "task-000006.part-00000000000000bb" = "half",
    "aside-00000000000000bb" = "half",
    "failure-000001-1" = "an earlier trial"
  )
  paths <- file.path(folder, paste0("fsknn-", names(files)))
  for (at in seq_along(files)) {
    cat("00000000000000000007\n", files[[at]], sep = "", file = paths[[at]])
  }
  old <- grepl("ee$|bb$", names(files)) & !grepl("lease-.*bb", names(files))
  Sys.setFileTime(paths[old], Sys.time() - 3600)
  suppressMessages(kept_graph(x, folder))
  expect_identical(
    names(files)[file.exists(paths)],
    c(
      "lease-00000000000000aa", "claim-000005-001", "lease-00000000000000bb",
      "lease-00000000000000cc", "task-000005.part-00000000000000aa",
      "failure-000005-1.part-00000000000000aa", "aside-00000000000000aa"
    )
  )
  # Without a living worker, the unfinished files belong to nobody.
  unlink(paths[1:4])
  suppressMessages(kept_graph(x, folder))
  expect_identical(names(files)[file.exists(paths)], "aside-00000000000000aa")
})

test_that("a finished folder may be read-only", {
  withr::local_options(fsknn.split_size = 30L)
  x <- random_matrix(100, 9)
  finders <- list(
    pairs = function(...) knn_graph(x, 5, backend = "cpu", ...),
    rows = function(...) knn_query(x, x[1:60, ] + 1, 3, backend = "cpu", ...),
    within = function(...) within_search(x, 0.3, backend = "cpu", ...),
    triples = function(...) threshold_triples(exp(x), 0.8, ...),
    tree = function(...) mst_knn(x, backend = "cpu", ...),
    permuted = function(...) {
      withr::with_seed(9, edge_significance(
        knn_graph(x, 3, backend = "cpu"), x, permutations = 3,
        backend = "cpu", ...
      ))
    },
    resampled = function(...) {
      withr::with_seed(9, edge_stability(x, 3, 5, backend = "cpu", ...))
    }
  )
  for (name in names(finders)) {
    folder <- withr::local_tempdir()
    whole <- finders[[name]](checkpoint = folder)
    before <- list.files(folder)
    Sys.chmod(folder, "500")
    # root may write anywhere, so even the attempt to write is an error here.
    local({
      refuse <- function(...) stop("written")
      local_functions(
        cpp_write_sealed = refuse, cpp_write_points = refuse,
        cpp_claim = refuse
      )
      expect_identical(
        suppressMessages(finders[[name]](checkpoint = folder)), whole,
        label = name
      )
    })
    expect_identical(
      suppressMessages(finders[[name]](checkpoint = folder)), whole,
      label = name
    )
    Sys.chmod(folder, "700")
    expect_identical(list.files(folder), before, label = name)
  }
})

test_that("a look reads few claims, however many workers there are", {
  withr::local_options(fsknn.split_size = 2L, fsknn.lease_seconds = 60)
  x <- random_matrix(30, 9)
  folder <- empty_folder(x)
  tasks <- 1:100
  for (task in tasks) {
    cat(
      "00000000000000000007\nhost: far\nprocess: 1\nstart: 1\nplace: there\n",
      file = file.path(folder, sprintf("fsknn-claim-%06d-001", task))
    )
  }
  job <- fsknn:::join_folder(folder, "folder", NULL, NULL)
  now <- 0
  read <- character()
  text <- fsknn:::claim_text
  local_functions(
    cpp_steady_seconds = function() now,
    claim_text = function(path) {
      read <<- c(read, basename(path))
      text(path)
    }
  )
  look <- function() {
    read <<- character()
    unname(fsknn:::are_worked_on(job, tasks, rep(1L, 100)))
  }
  most <- fsknn:::most_claims_read
  all <- character()
  for (i in 1:5) {
    expect_true(all(look()))
    expect_lte(length(read), most)
    all <- c(all, read)
  }
  # Each claim is read once, and none again before a part of the lease is over.
  expect_setequal(all, sprintf("fsknn-claim-%06d-001", tasks))
  expect_identical(anyDuplicated(all), 0L)
  # A claim whose counter does not change is dead; one of them changes.
  now <- 61
  cat(
    "00000000000000000008", file = file.path(folder, "fsknn-claim-000050-001")
  )
  for (i in 1:4) {
    worked_on <- look()
  }
  expect_identical(which(worked_on), 50L)
})

test_that("workers that are killed lose their own task and no more", {
  skip_on_os("windows")
  withr::local_options(fsknn.split_size = 40L)
  x <- random_matrix(200, 9)
  whole <- knn_graph(x, 5, backend = "cpu")
  folder <- empty_folder(x)
  for (trial in 1:2) {
    worker <- start_worker(folder)
    before <- length(task_files(folder))
    expect_true(wait_for(
      function() length(task_files(folder)) >= before + 2, 120
    ))
    end_child(worker)
  }
  done <- task_files(folder)
  times <- file.mtime(done)
  expect_lt(length(done), 15)
  # Processes that ended on this machine are detected at once.
  expect_identical(
    knn_worker(folder, num_threads = 1, backend = "cpu"), 15L - length(done)
  )
  expect_identical(file.mtime(done), times)
  expect_identical(knn_collect(folder), whole)
})

test_that("the call itself may be killed, and another takes its place", {
  skip_on_os("windows")
  withr::local_options(fsknn.split_size = 40L)
  x <- random_matrix(200, 9)
  whole <- knn_graph(x, 5, backend = "cpu")
  folder <- withr::local_tempdir()
  data <- withr::local_tempfile(fileext = ".rds")
  saveRDS(x, data)
  start_call <- function() {
    start_child(c(
      "options(fsknn.split_size = 40L, fsknn.num_threads = 1)",
      sprintf("x <- readRDS(%s)", deparse(data)),
      "trace('write_task', quote(Sys.sleep(0.05)), print = FALSE,",
      "      where = asNamespace('fsknn'))",
      sprintf(
        "edges <- knn_graph(x, 5, backend = 'cpu', checkpoint = %s)",
        deparse(folder)
      ),
      "saveRDS(edges, paste0(out, '.rds'))",
      "say('whole')"
    ))
  }
  # Two calls run at once, and one is killed.
  calls <- lapply(1:2, function(i) start_call())
  expect_true(wait_for(function() length(task_files(folder)) >= 2, 120))
  end_child(calls[[1]])
  expect_identical(said_by(calls[[2]], 300), "whole")
  expect_identical(readRDS(paste0(calls[[2]]$out, ".rds")), whole)
  expect_identical(suppressMessages(kept_graph(x, folder)), whole)
})

test_that("who stands still is overtaken, and does no harm when it wakes", {
  skip_on_os("windows")
  withr::local_options(fsknn.split_size = 40L, fsknn.lease_seconds = 1)
  x <- random_matrix(120, 9)
  whole <- knn_graph(x, 5, backend = "cpu")
  folder <- empty_folder(x)
  worker <- start_worker(folder, pause = 1)
  claims <- function() list.files(folder, "^fsknn-claim-")
  expect_true(wait_for(function() length(claims()) > 0, 120))
  tools::pskill(worker$pid, tools::SIGSTOP)
  # This process does all tasks, including that of the stopped worker.
  expect_gte(knn_worker(folder, num_threads = 1, backend = "cpu"), 5L)
  done <- task_files(folder)
  expect_length(done, 6)
  bytes <- lapply(done, readBin, "raw", 1e6)
  expect_identical(knn_collect(folder), whole)
  tools::pskill(worker$pid, tools::SIGCONT)
  expect_false(identical(said_by(worker, 120), "failed"))
  # The first result stays.
  expect_identical(lapply(done, readBin, "raw", 1e6), bytes)
  expect_identical(knn_collect(folder), whole)
})

test_that("a result that is damaged is done again", {
  withr::local_options(fsknn.split_size = 40L)
  x <- random_matrix(120, 9)
  whole <- knn_graph(x, 5, backend = "cpu")
  folder <- withr::local_tempdir()
  kept_graph(x, folder)
  writeBin(as.raw(1:9), task_files(folder)[[4]])
  expect_error(knn_collect(folder), "1 of 6 tasks")
  expect_identical(knn_worker(folder, num_threads = 1), 1L)
  expect_identical(knn_collect(folder), whole)
  # A task file that proves good when it is checked again is not lost.
  job <- fsknn:::join_folder(folder, "folder", NULL, NULL)
  fsknn:::take_task_away(job, 4, NULL)
  expect_length(task_files(folder), 6)
})

test_that("points that are damaged are told, and not searched", {
  withr::local_options(fsknn.split_size = 40L)
  x <- random_matrix(120, 9)
  folder <- empty_folder(x)
  path <- file.path(folder, "fsknn-points")
  bytes <- readBin(path, "raw", 1e6)
  writeBin(replace(bytes, 900, xor(bytes[[900]], as.raw(1))), path)
  expect_error(
    knn_worker(folder, num_threads = 1, backend = "cpu"), "as it was written",
    class = "fsknn_checkpoint_error"
  )
  writeBin(bytes[1:900], path)
  expect_error(
    knn_worker(folder, backend = "cpu"), "damaged",
    class = "fsknn_checkpoint_error"
  )
  # The call has the points and repairs the folder.
  expect_identical(kept_graph(x, folder), knn_graph(x, 5, backend = "cpu"))
})

test_that("a failure is told in the words of the search, by whoever meets it", {
  x <- random_matrix(60, 9)
  x[3, ] <- 1.5e308
  x[4, ] <- -1.5e308
  folder <- withr::local_tempdir()
  find <- function(...) {
    knn_search(x, 58, "manhattan", backend = "cpu", ...)
  }
  alone <- expect_error(find(), class = "fsknn_range_error")
  error <- expect_error(find(checkpoint = folder), class = "fsknn_range_error")
  expect_identical(conditionMessage(error), conditionMessage(alone))
  expect_error(knn_collect(folder), class = "fsknn_range_error")
})

test_that("a task that fails is tried three times", {
  withr::local_options(fsknn.split_size = 40L)
  x <- random_matrix(120, 9)
  folder <- empty_folder(x)
  tried <- 0
  local_functions(
    search_task = function(...) {
      tried <<- tried + 1
      stop("the disk made a noise")
    }
  )
  expect_error(
    knn_worker(folder, backend = "cpu"), "made a noise",
    class = "fsknn_worker_error"
  )
  expect_gte(tried, 3)
  expect_gte(knn_status(folder)$tasks[["failed"]], 1)
  expect_error(knn_collect(folder), class = "fsknn_worker_error")
})

test_that("what is no folder of this version's work is refused in words", {
  x <- random_matrix(60, 9)
  local_folder()
  kept_graph(x, "kept")
  dir.create("empty")
  dir.create("other")
  writeLines("dear", "other/letter.txt")
  local_functions(package_version_text = function() "0.0.1")
  kept_graph(x, "old")
  local_functions(package_version_text = function() "1.0.0")
  expect_messages({
    knn_worker("old")
    knn_worker("none")
    knn_worker("empty")
    knn_collect("other")
    knn_status(NA)
    knn_worker("old", max_tasks = 0)
  })
})

test_that("the state of a folder is told", {
  withr::local_options(fsknn.split_size = 40L)
  x <- random_matrix(120, 9)
  local_folder()
  kept_graph(x, "kept")
  status <- knn_status("kept")
  expect_identical(status$seconds_left, 0)
  file.remove(task_files("kept")[5:6])
  # This claim is from an unknown machine.
  writeLines(
    c("00000000000000000007", "host: far", "process: 12", "start: 1",
      "place: there"),
    "kept/fsknn-claim-000006-002"
  )
  expect_identical(knn_worker("kept", wait = FALSE, backend = "cpu"), 1L)
  status <- knn_status("kept")
  expect_identical(
    status$tasks, c(done = 5L, at_work = 1L, failed = 0L, left = 0L, all = 6L)
  )
  expect_identical(status$workers$host, "far")
  expect_gt(status$seconds_left, 0)
  shown <- format(status)
  expect_match(shown, "5 of 6 done, 1 at work", all = FALSE)
  expect_match(shown, "task 6: process 12 on far, last sign", all = FALSE)
  expect_identical(utils::capture.output(print(status)), shown)
})

test_that("a claim of random bytes is a damaged one, in words", {
  withr::local_options(fsknn.split_size = 40L)
  x <- random_matrix(120, 9)
  folder <- withr::local_tempdir()
  whole <- kept_graph(x, folder)
  file.remove(task_files(folder)[[6]])
  claim <- file.path(folder, "fsknn-claim-000006-002")
  for (bytes in list(
    as.raw(c(0xff, 0xfe, 0xc3, 0x28, 0x0a, 0xfc, 0x80)), raw(), as.raw(1:99)
  )) {
    writeBin(bytes, claim)
    expect_no_warning(status <- knn_status(folder))
    expect_identical(status$workers$process, NA_character_)
    expect_match(
      format(status), "task 6: a damaged claim, last sign", all = FALSE
    )
    expect_no_warning(
      expect_identical(knn_worker(folder, wait = FALSE, backend = "cpu"), 0L)
    )
  }
  Sys.setFileTime(claim, Sys.time() - 3600)
  expect_match(format(knn_status(folder)), "a damaged claim, gone", all = FALSE)
})

test_that("what the same search mends is said to be mended by it", {
  withr::local_options(fsknn.split_size = 40L, fsknn.lease_seconds = 0.3)
  x <- random_matrix(120, 9)
  folder <- withr::local_tempdir()
  whole <- kept_graph(x, folder)
  damage <- function(path) writeBin(as.raw(1:99), path)
  for (name in c("fsknn-points", "fsknn-work")) {
    path <- file.path(folder, name)
    for (hurt in list(damage, file.remove)) {
      hurt(path)
      for (verb in list(knn_status, knn_collect)) {
        message <- tryCatch(
          verb(folder), fsknn_checkpoint_error = conditionMessage
        )
        expect_match(message, "same\\s+`checkpoint`")
        expect_no_match(message, "delete")
      }
      expect_identical(suppressMessages(kept_graph(x, folder)), whole)
      expect_identical(knn_collect(folder), whole)
    }
  }
})

test_that("a status reads only what is new since the last one", {
  withr::local_options(fsknn.split_size = 40L)
  x <- random_matrix(120, 9)
  folder <- withr::local_tempdir()
  kept_graph(x, folder)
  first <- knn_status(folder)
  file.remove(task_files(folder)[[4]])
  knn_worker(folder, num_threads = 1, backend = "cpu")
  # Another process might write the receipt some time later.
  Sys.setFileTime(file.path(folder, "fsknn-receipt-000004"), Sys.time() + 10)
  reads <- 0
  read <- fsknn:::cpp_read_sealed
  local_functions(cpp_read_sealed = function(path, kind, ...) {
    reads <<- reads + (kind == "receipt")
    read(path, kind, ...)
  })
  second <- knn_status(folder)
  expect_identical(reads, 1)
  expect_identical(sum(second$done_by$tasks), 6L)
  expect_identical(first$done_by$process, second$done_by$process)
  # Receipts of another folder are not used for this one.
  other <- withr::local_tempdir()
  kept_graph(x, other)
  reads <- 0
  expect_identical(sum(knn_status(other)$done_by$tasks), 6L)
  expect_identical(reads, 6)
})

test_that("a folder that can't be written to is an error in words", {
  skip_on_os("windows")
  skip_if(identical(Sys.info()[["user"]], "root"), "root may write anywhere")
  withr::local_options(fsknn.split_size = 40L)
  x <- random_matrix(120, 9)
  folder <- empty_folder(x)
  Sys.chmod(folder, "500")
  withr::defer(Sys.chmod(folder, "700"))
  expect_error(
    knn_worker(folder), "Permission", class = "fsknn_checkpoint_error"
  )
})

# Makes the folder as it is while its call still writes the points.
half_made_folder <- function(x, env = parent.frame()) {
  folder <- empty_folder(x, env = env)
  file.remove(file.path(folder, c("fsknn-work", "fsknn-points")))
  folder
}

test_that("a worker waits for the points of a call that is at them", {
  skip_on_os("windows")
  withr::local_options(fsknn.split_size = 40L)
  x <- random_matrix(120, 9)
  whole <- knn_graph(x, 5, backend = "cpu")
  folder <- half_made_folder(x)
  waits <- withr::local_tempfile()
  worker <- start_worker(folder, before = c(
    sprintf("waits <- %s", deparse(waits)),
    "trace('cpp_wait', quote(file.create(waits)), print = FALSE,",
    "      where = asNamespace('fsknn'))"
  ))
  expect_true(wait_for(function() file.exists(waits), patience))
  expect_identical(kept_graph(x, folder), whole)
  expect_match(said_by(worker), "^[0-6]$")
  expect_identical(knn_collect(folder), whole)
})

test_that("who writes points is waited for as long as they grow", {
  withr::local_options(fsknn.split_size = 40L)
  x <- random_matrix(120, 9)
  whole <- knn_graph(x, 5, backend = "cpu")
  folder <- half_made_folder(x)
  part <- file.path(folder, "fsknn-points.part-0123456789abcdef")
  # Each check takes 40 s of the 60 s that the file may stay unchanged.
  now <- 0
  grow <- TRUE
  local_functions(
    cpp_steady_seconds = function() now,
    cpp_wait = function(seconds) {
      now <<- now + 40
      if (grow) {
        cat("more", file = part, append = TRUE)
      }
      if (grow && file.size(part) > 40) {
        file.remove(part)
        kept_graph(x, folder)
        file.remove(task_files(folder)[1:2])
      }
    }
  )
  expect_identical(knn_worker(folder, num_threads = 1, backend = "cpu"), 2L)
  expect_gte(now, 400)
  expect_identical(knn_collect(folder), whole)
  # A file that stops growing is reported.
  file.remove(file.path(folder, c("fsknn-work", "fsknn-points")))
  cat("some", file = part)
  grow <- FALSE
  now <- 0
  expect_error(
    knn_worker(folder, backend = "cpu"), "nobody completes it",
    class = "fsknn_checkpoint_error"
  )
  expect_lte(now, 120)
})

test_that("only of one's own processes is it said that they are gone", {
  skip_if_not(file.exists("/proc/self/ns/pid"), "there is no /proc")
  is_gone <- function(words) fsknn:::are_processes_gone(words)
  mine <- fsknn:::words_of_claim()
  expect_false(is_gone(mine))
  # No process has such a high number, and a process with another start time is
  # a different one.
  gone <- sub("process: [0-9]+", "process: 2000000000", mine)
  expect_true(is_gone(gone))
  expect_true(is_gone(sub("start: [0-9]+", "start: 1", mine)))
  # Nothing is concluded about processes of another user, which /proc may hide,
  # or of other machines and containers.
  expect_match(mine, "place: .+ [0-9]+\n$")
  user <- file.info("/proc/self")$uid
  expect_false(is_gone(sub("[0-9]+\n$", paste0(user + 1, "\n"), gone)))
  expect_false(is_gone(sub("place: .", "place: x", gone)))
  expect_false(is_gone(sub("pid:.", "pid:.1", gone)))
  expect_false(is_gone(sub("user:.", "user:.1", gone)))
  expect_false(is_gone(sub("place: [^\n]*", "place: ", gone)))
})

test_that("a process that ended is gone, though nobody asked how it did", {
  skip_if_not(file.exists("/proc/self/stat"), "there is no /proc")
  said <- withr::local_tempfile()
  # This process starts a child and then becomes a program that never waits for
  # it.
  system2("sh", c("-c", shQuote(sprintf(
    "sleep 1 & echo $! $$ > %s.part; mv %s.part %s; exec sleep 600",
    said, said, said
  ))), wait = FALSE)
  expect_true(wait_for(function() file.exists(said), patience))
  pids <- scan(said, quiet = TRUE)
  withr::defer(tools::pskill(pids[[2]], tools::SIGKILL))
  expect_true(wait_for(
    function() is.null(fsknn:::process_start(pids[[1]])), patience
  ))
  expect_true(file.exists(file.path("/proc", pids[[1]], "stat")))
  expect_type(fsknn:::process_start(pids[[2]]), "character")
})
