# Sets a split size so small that a matrix has several splits.
local_splits <- function(size, env = parent.frame()) {
  withr::local_options(fsknn.split_size = size, .local_envir = env)
}

test_that("a kept search gives the answer of a plain one, and gives it again", {
  local_splits(40L)
  x <- random_matrix(150, 9)
  rownames(x) <- paste0("g", 1:150)
  x[17, ] <- 1
  for (metric in c("pearson", "manhattan")) {
    folder <- withr::local_tempdir()
    whole <- knn_search(x, 5, metric, constant = "isolate", backend = "cpu")
    kept <- knn_search(x, 5, metric, constant = "isolate", backend = "cpu",
                     checkpoint = folder)
    expect_identical(kept, whole)
    expect_length(task_files(folder), 15)
    expect_message(
      again <- knn_search(x, 5, metric, constant = "isolate", backend = "cpu",
                        num_threads = 1, checkpoint = folder),
      class = "fsknn_resumed"
    )
    expect_identical(again, whole)
  }
})

test_that("kept tasks say what their filter's numbers were, the widest", {
  local_splits(40L)
  x <- random_matrix(150, 9)
  forms <- function(x, ...) {
    folder <- withr::local_tempdir()
    lapply(1:2, function(time) {
      suppressMessages(
        knn_search(x, 5, ..., backend = "cpu", checkpoint = folder)
      )
      unclass(knn_stats())[c("filter_form", "filter_bits")]
    })
  }
  of <- function(form, bits) {
    rep(list(list(filter_form = form, filter_bits = bits)), 2)
  }
  expect_identical(forms(x, "manhattan"), of("int16", 16L))
  expect_identical(forms(x, "canberra"), of("none", 0L))
  # Some tasks have wider numbers than others.
  wide <- rbind(x[1:75, ], x[76:150, ] * 10^rep_len(0:9, 75))
  expect_identical(forms(wide, "manhattan")[[1]]$filter_form, "float32")
})

test_that("edges, subsets and queries can be kept", {
  local_splits(40L)
  x <- random_matrix(150, 9)
  rownames(x) <- paste0("g", 1:150)
  x[c(3, 41), ] <- 1
  folder <- withr::local_tempdir()
  whole <- knn_graph(x, 5, constant = "isolate", backend = "cpu")
  for (time in 1:2) {
    expect_identical(
      suppressMessages(knn_graph(
        x, 5, constant = "isolate", backend = "cpu", checkpoint = folder
      )),
      whole
    )
  }
  subset <- c(90:150, 40:42, 5L, 3L)
  folder <- withr::local_tempdir()
  expect_identical(
    knn_graph(x, 5, constant = "isolate", backend = "cpu", subset = subset,
              checkpoint = folder),
    knn_graph(x, 5, constant = "isolate", backend = "cpu", subset = subset)
  )
  folder <- withr::local_tempdir()
  query <- rbind(random_matrix(99, 9, seed = 2), 1)
  expect_identical(
    knn_query(x, query, 5, constant = "isolate", backend = "cpu",
              checkpoint = folder),
    knn_query(x, query, 5, constant = "isolate", backend = "cpu")
  )
})

test_that("metafeatures can be kept", {
  local_splits(30L)
  m <- metafeatures(random_matrix(7, 9))
  folder <- withr::local_tempdir()
  expect_identical(
    knn_search(m, 3, backend = "cpu", checkpoint = folder),
    knn_search(m, 3, backend = "cpu")
  )
})

test_that("a split that is not as it was written is seen, and done again", {
  local_splits(40L)
  x <- random_matrix(150, 9)
  whole <- knn_search(x, 5, backend = "cpu")
  folder <- withr::local_tempdir()
  invisible(knn_search(x, 5, backend = "cpu", checkpoint = folder))
  damage <- list(
    cut = function(bytes) bytes[seq_len(length(bytes) - 9)],
    empty = function(bytes) raw(),
    turned = function(bytes) {
      at <- length(bytes) - 100
      bytes[[at]] <- xor(bytes[[at]], as.raw(4))
      bytes
    },
    longer = function(bytes) c(bytes, as.raw(0))
  )
  file <- task_files(folder)[[3]]
  bytes <- readBin(file, "raw", file.size(file))
  for (kind in names(damage)) {
    writeBin(damage[[kind]](bytes), file)
    expect_message(
      again <- knn_search(x, 5, backend = "cpu", checkpoint = folder),
      "Task 3 was damaged", label = kind
    )
    expect_identical(again, whole)
    expect_message(
      knn_search(x, 5, backend = "cpu", checkpoint = folder), "15 of 15 tasks"
    )
  }
  # The file of another split under this name is undamaged, but not the right
  # one.
  file.copy(task_files(folder)[[1]], file, overwrite = TRUE)
  expect_message(
    again <- knn_search(x, 5, backend = "cpu", checkpoint = folder),
    "Task 3 was of another search"
  )
  expect_identical(again, whole)
})

test_that("several damaged splits are told of in good words", {
  local_splits(20L)
  x <- random_matrix(150, 9)
  local_folder()
  find <- function(...) {
    knn_search(x, 5, backend = "cpu", checkpoint = "kept", ...)
  }
  whole <- find()
  damage <- function(splits) {
    for (file in task_files("kept")[splits]) writeBin(as.raw(1:9), file)
  }
  replace_by_first <- function(splits) {
    files <- task_files("kept")
    invisible(file.copy(files[rep(1, length(splits))], files[splits],
                        overwrite = TRUE))
  }
  expect_messages({
    damage(2)
    . <- find()
    damage(c(2, 4))
    . <- find()
    replace_by_first(c(3, 5))
    . <- find()
    damage(2:6)
    replace_by_first(7)
    again <- find()
  })
  expect_identical(again, whole)
})

# Repeatedly runs `call` (of `x`, stored in `folder`) in a child, which is
# killed when there are enough splits.
kill_half_way <- function(x, call, folder, at_least) {
  data <- withr::local_tempfile(fileext = ".rds")
  saveRDS(x, data)
  for (count in at_least) {
    child <- start_child(c(
      "options(fsknn.split_size = 300)",
      sprintf("x <- readRDS(%s)", deparse(data)),
      sprintf("folder <- %s", deparse(folder)),
      # The pause gives time to kill the child in the middle.
      "trace('write_task', quote(Sys.sleep(0.05)), print = FALSE,",
      "      where = asNamespace('fsknn'))",
      deparse(call),
      "say('finished')"
    ))
    expect_true(wait_for(function() length(task_files(folder)) >= count, 60))
    tools::pskill(child$pid, tools::SIGKILL)
    wait_for(function() !file.exists(file.path("/proc", child$pid)), 60)
    expect_false(file.exists(child$out))
  }
}

test_that("a run ended by kill -9 goes on from its last split", {
  skip_on_os("windows")
  x <- random_matrix(3000, 40)
  calls <- list(
    quote(knn_graph(x, 5, "spearman", backend = "cpu", checkpoint = folder)),
    quote(within_query(x, x[3000:1, ], 0.5, backend = "cpu",
                       checkpoint = folder)),
    quote(within_search(x, 0.5, backend = "cpu", checkpoint = folder)),
    quote(threshold_graph(x, 0.5, backend = "cpu", checkpoint = folder)),
    quote(mst_knn(x, backend = "cpu", checkpoint = folder))
  )
  # All verbs share the loop over tasks; tasks are pairs of splits, or splits.
  for (call in if (is_long()) calls else calls[1:2]) {
    name <- deparse(call[[1]])
    plain <- call
    plain$checkpoint <- NULL
    whole <- eval(plain)
    folder <- withr::local_tempdir()
    kill_half_way(x, call, folder, if (name == "knn_graph") c(2, 5) else 2)
    done <- task_files(folder)
    times <- file.mtime(done)
    count <- if (name == "within_query") 10 else 66
    expect_lt(length(done), count)
    # The options differ from those of the killed run.
    call$num_threads <- 1
    expect_message(
      again <- eval(call), paste(length(done), "of", count, "tasks"),
      class = "fsknn_resumed", label = name
    )
    expect_identical(again, whole, label = name)
    # The finished splits were not computed again.
    expect_identical(file.mtime(done), times)
    expect_length(list.files(folder, "part"), 0)
  }
})

test_that("a folder of another search says what is different", {
  x <- random_matrix(60, 9)
  folder <- "kept"
  local_folder()
  invisible(knn_search(x, 5, backend = "cpu", checkpoint = folder))
  other <- x
  other[60, 9] <- 0
  constant <- x
  constant[4, ] <- 2
  expect_messages({
    knn_search(x, 4, "spearman", "absolute", checkpoint = folder)
    knn_search(other, 5, checkpoint = folder)
    knn_search(x[-1, ], 5, checkpoint = folder)
    knn_search(x, 5, subset = 1:3, checkpoint = folder)
    knn_query(x, x, 5, checkpoint = folder)
    knn_graph(x, 5, checkpoint = folder)
    knn_search(constant, 5, constant = "isolate", checkpoint = folder)
    within_search(x, 0.5, checkpoint = folder)
  })
  within_search(x, 0.5, backend = "cpu", checkpoint = "near")
  expect_messages({
    within_search(x, 0.4, checkpoint = "near")
    within_search(x, rep(0.5, 60), checkpoint = "near")
    within_query(x, x, 0.5, checkpoint = "near")
    threshold_graph(x, 0.5, checkpoint = "near")
  })
  threshold_graph(x, 0.5, backend = "cpu", checkpoint = "graph")
  expect_messages(threshold_graph(x, 0.6, checkpoint = "graph"))
  # Options that do not change the answer may change.
  expect_identical(
    suppressMessages(knn_search(
      x, 5, chunk_size = 48, num_threads = 1, checkpoint = folder
    )),
    knn_search(x, 5, backend = "cpu")
  )
  # The same numbers may have another type.
  y <- small_integers(60, 9)
  invisible(knn_search(y, 5, backend = "cpu", checkpoint = "whole"))
  storage.mode(y) <- "integer"
  expect_message(knn_search(y, 5, backend = "cpu", checkpoint = "whole"))
})

test_that("a run goes on where its data no longer fit in memory, or do again", {
  local_splits(100L)
  x <- random_matrix(300, 13, seed = 10)
  holes <- x
  holes[cbind(c(5, 77, 300), c(1, 13, 2))] <- NA
  weights <- rep(c(1, 0, 2), length.out = 13)
  searches <- list(
    ranked = function(x, ...) knn_search(x, 5, "spearman", ...),
    raw = function(x, ...) knn_search(x, 5, "euclidean", ...),
    weighted = function(x, ...) knn_search(x, 5, weights = weights, ...),
    filled = function(x, ...) knn_search(x, 5, na = "mean", ...),
    isolated = function(x, ...) knn_search(x, 5, constant = "isolate", ...)
  )
  for (kind in names(searches)) {
    values <- switch(kind, filled = holes, isolated = {
      x[17, ] <- 1
      x
    }, x)
    search <- function(x, ...) {
      searches[[kind]](x, ..., backend = "cpu")
    }
    whole <- search(values)
    lazy <- block_matrices(values)
    # How rows are made and how they are read do not know of each other.
    forms <- intersect(
      c("square chunks", "big.matrix", "in memory", "tall chunks"), names(lazy)
    )
    if (!is_long()) {
      forms <- utils::head(forms, if (kind == "ranked") 2 else 1)
    }
    other <- values
    other[[3000]] <- other[[3000]] + 1
    for (form in forms) {
      for (limits in list(c(1e3, 1e9), c(1e9, 1e3))) {
        label <- paste(kind, form, limits[[1]])
        folder <- withr::local_tempdir()
        first <- search(
          lazy[[form]], max_memory = limits[[1]], checkpoint = folder
        )
        expect_identical(first, whole, label = label)
        expect_message(
          again <- search(
            lazy[[form]], max_memory = limits[[2]], checkpoint = folder
          ),
          "6 of 6 tasks", label = label
        )
        expect_identical(again, whole, label = label)
      }
    }
    for (limit in c(1e3, 1e9)) {
      expect_error(
        search(
          DelayedArray::DelayedArray(other), max_memory = limit,
          checkpoint = folder
        ),
        "values of `x` were others", class = "fsknn_checkpoint_error"
      )
    }
  }
})

test_that("a folder that holds something else is refused, and left alone", {
  x <- random_matrix(60, 9)
  local_folder()
  dir.create("letters")
  writeLines("dear", "letters/to-mother.txt")
  writeLines("not a folder", "file.txt")
  dir.create("broken")
  writeLines("form fsknn", "broken/fsknn-search")
  dir.create("old")
  writeLines("form: fsknn checkpoint 1", "old/fsknn-search.dcf")
  knn_search(x, 5, checkpoint = "cut", backend = "cpu")
  bytes <- readBin("cut/fsknn-search", "raw", 1e6)
  writeBin(bytes[seq_len(length(bytes) - 1)], "cut/fsknn-search")
  expect_messages({
    knn_search(x, 5, checkpoint = "letters")
    knn_search(x, 5, checkpoint = "file.txt")
    knn_search(x, 5, checkpoint = "broken")
    knn_search(x, 5, checkpoint = "old")
    knn_search(x, 5, checkpoint = "cut")
    knn_search(x, 5, checkpoint = NA)
    knn_search(x, 5, checkpoint = c("a", "b"))
  })
  expect_identical(list.files("letters"), "to-mother.txt")
  # These files are left by a run that was killed at its very start.
  dir.create("young")
  file.create(c("young/fsknn-search.part-0123456789abcdef", "young/fsknn-search.part-00000000deadbeef"))
  expect_identical(
    knn_search(x, 5, backend = "cpu", checkpoint = "young"),
    knn_search(x, 5, backend = "cpu")
  )
})

test_that("what the file system refuses is told", {
  skip_if(identical(Sys.info()[["user"]], "root"), "root may write anywhere")
  folder <- withr::local_tempdir()
  Sys.chmod(folder, "500")
  expect_error(
    knn_search(random_matrix(60, 9), 5, backend = "cpu", checkpoint = folder),
    "Permission", class = "fsknn_checkpoint_error"
  )
})

test_that("a digest of bytes is XXH64", {
  expect_identical(fsknn:::cpp_digest_raw(charToRaw("abc")), "44bc2cf5ad770999")
  skip_if_not_installed("digest")
  for (size in c(0:70, 1e6, 3e6 + 5)) {
    bytes <- as.raw((seq_len(size) * 37) %% 256)
    expect_identical(
      fsknn:::cpp_digest_raw(bytes),
      digest::digest(bytes, "xxhash64", serialize = FALSE)
    )
  }
})

test_that("a digest is of values, and of each of them", {
  digest <- function(x, threads = 1L) fsknn:::cpp_digest(x, threads)$digest
  x <- random_matrix(200, 30)
  expect_identical(digest(x, 2L), digest(x))
  seen <- digest(x)
  for (at in c(1, 7, 200, 201, 3333, 6000)) {
    y <- x
    y[[at]] <- y[[at]] * (1 + 2^-52)
    expect_false(digest(y) == seen)
  }
  expect_false(digest(x[200:1, ]) == seen)
  expect_false(digest(matrix(x, 100)) == seen)
  # Rows and columns of zeros change the digest.
  expect_false(digest(matrix(0, 2, 3)) == digest(matrix(0, 3, 2)))
})

test_that("splits are so large that preparing again costs little", {
  request <- list(
    backend = "cpu", num_threads = 2L, k = 20L, metric = "pearson"
  )
  size <- fsknn:::automatic_split(1533876, 295, 1533876, request, 1L)
  expect_gte(size, 30000)
  expect_lt(size, 100000)
  # There is too little work to split.
  expect_identical(fsknn:::automatic_split(500, 20, 500, request, 1L), 500L)
  # Each worker gets some splits.
  expect_lte(fsknn:::automatic_split(50000, 20, 50000, request, 4L), 12500L)
  request$backend <- "cuda"
  expect_gte(fsknn:::automatic_split(1e7, 295, 1e7, request, 1L), 800000)
})
