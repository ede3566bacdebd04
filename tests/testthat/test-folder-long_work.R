# Returns calls `find(x, ...)` of every verb whose work can be distributed or
# stored.
long_verbs <- function() {
  # The limits have no period in common with the splits.
  limits <- rep_len(c(0.3, 0, 0.7, 0.5, 2, 0.2, 0.9), 150)
  list(
    knn_search = function(x, ...) knn_search(x, 5, ...),
    k_each = function(x, ...) knn_search(x, rep(c(0, 7, 3), 50), ...),
    knn_graph = function(x, ...) knn_graph(x, 5, ...),
    knn_query = function(x, ...) knn_query(x, x[149:30, ], 5, ...),
    within_search = function(x, ...) within_search(x, 0.5, ...),
    limits = function(x, ...) within_search(x, limits, ...),
    within_query = function(x, ...) {
      within_query(x, x[149:30, ], limits[1:120], ...)
    },
    threshold_graph = function(x, ...) threshold_graph(x, 0.4, ...)
  )
}

some_points <- function() {
  x <- random_matrix(150, 9)
  rownames(x) <- paste0("g", 1:150)
  x[c(17, 41), ] <- 1
  x[100:104, ] <- x[1:5, ]
  x
}

# Compares the answers of `find` while it stores results and from the stored
# results.
expect_by_splits <- function(find, whole, num_tasks, label) {
  folder <- withr::local_tempdir()
  expect_identical(find(checkpoint = folder), whole, label = label)
  expect_message(
    again <- find(checkpoint = folder),
    paste(num_tasks, "of", num_tasks, "tasks"), label = label
  )
  expect_identical(again, whole, label = label)
}

test_that("every verb gives by splits what it gives in one piece", {
  withr::local_options(fsknn.split_size = 40L)
  x <- some_points()
  verbs <- long_verbs()
  for (name in names(verbs)) {
    for (backend in backends_here()) {
      find <- function(...) {
        verbs[[name]](x, constant = "isolate", backend = backend, ...)
      }
      num_tasks <- if (grepl("query", name)) 3 else 15
      expect_by_splits(find, find(), num_tasks, paste(name, backend))
    }
  }
})

test_that("with weights, missing values and other metrics too", {
  withr::local_options(fsknn.split_size = 40L)
  x <- some_points()
  holes <- x
  holes[cbind(c(5, 6, 77, 149), c(1, 2, 3, 9))] <- NA
  options <- list(
    list(x, weights = rep(c(1, 0, 2), 3)),
    list(x, metric = "spearman", sign = "absolute"),
    list(abs(x), metric = "proportional"),
    list(x, metric = "cosine"),
    list(holes, na = "mean"),
    list(holes, na = "pairwise", min_pairs = 8)
  )
  verbs <- long_verbs()[c("knn_graph", "limits", "within_query",
                          "threshold_graph")]
  for (name in names(verbs)) {
    for (given in options) {
      # How rows are prepared and what is searched are independent, but for
      # pairwise samples.
      if (!is_long() && is.null(given$min_pairs) &&
            name %in% c("limits", "threshold_graph")) {
        next
      }
      find <- function(...) {
        do.call(verbs[[name]], c(
          given, list(constant = "isolate", backend = "cpu"), list(...)
        ))
      }
      suppressMessages(whole <- find(), classes = "fsknn_short_rows")
      suppressMessages(
        expect_by_splits(
          find, whole,
          if (grepl("query", name)) 3 else if (is.null(given$min_pairs)) 15 else 4,
          paste(name, names(given)[[2]], given[[2]][[1]])
        ),
        classes = "fsknn_short_rows"
      )
    }
  }
})

test_that("some rows among all are the same rows by splits", {
  withr::local_options(fsknn.split_size = 20L)
  x <- some_points()
  rows <- c(90:150, 17L, 40:42, 5L, 3L)
  verbs <- long_verbs()[c("knn_search", "knn_graph", "within_search",
                          "threshold_graph")]
  for (name in names(verbs)) {
    for (subset in list(rows, integer())) {
      for (backend in backends_here()) {
        find <- function(...) {
          verbs[[name]](
            x, constant = "isolate", subset = subset, backend = backend, ...
          )
        }
        folder <- withr::local_tempdir()
        whole <- find()
        expect_identical(find(checkpoint = folder), whole, label = name)
        expect_identical(
          suppressMessages(find(checkpoint = folder)), whole, label = name
        )
      }
    }
  }
})

test_that("metafeatures and data in a file are searched by splits too", {
  withr::local_options(fsknn.split_size = 30L)
  x <- random_matrix(7, 9)
  x[3, 2] <- 0
  m <- metafeatures(x)
  quiet <- function(code) suppressMessages(code, classes = "fsknn_left_out")
  expect_identical(
    quiet(within_search(m, 0.3, checkpoint = withr::local_tempdir())),
    quiet(within_search(m, 0.3))
  )
  expect_identical(
    quiet(threshold_graph(m, 0.7, checkpoint = withr::local_tempdir())),
    quiet(threshold_graph(m, 0.7))
  )
  skip_if_not_installed("DelayedArray")
  x <- random_matrix(220, 9, seed = 41)
  lazy <- DelayedArray::DelayedArray(x)
  folder <- withr::local_tempdir()
  whole <- within_search(x, 0.2)
  # The pairs fit in memory, but the matrix does not.
  expect_identical(
    within_search(lazy, 0.2, max_memory = 15000, checkpoint = folder), whole
  )
  expect_message(
    again <- within_search(lazy, 0.2, checkpoint = folder), "45 of 45 tasks"
  )
  expect_identical(again, whole)
})

test_that("the tree is that of lists found by splits", {
  withr::local_options(fsknn.split_size = 40L)
  x <- some_points()
  whole <- mst_knn(x, constant = "isolate", backend = "cpu")
  find <- function(...) {
    mst_knn(x, constant = "isolate", backend = "cpu", ...)
  }
  expect_by_splits(find, whole, 15, "mst_knn")
})

test_that("more pairs than there is room for are refused by splits too", {
  withr::local_options(fsknn.split_size = 50L)
  x <- random_matrix(300, 8)
  # The error comes from a sample, or only after splits have filled the memory.
  for (room in c(6000, 60000)) {
    find <- function(distance, ...) {
      within_search(
        x, distance, max_memory = 12 * room, backend = "cpu",
        checkpoint = withr::local_tempdir(), ...
      )
    }
    limit <- if (room > 10000) 1.2 else 1
    error <- expect_error(find(limit), class = "fsknn_size_error")
    expect_identical(error$most, room)
    expect_gt(error$pairs, room)
    fits <- as.double(fsknn:::round_down(error$fits))
    entries <- sum(lengths(find(fits)$index))
    expect_lte(entries, room)
    expect_gt(entries, room / 8)
  }
  # There is only one split.
  withr::local_options(fsknn.split_size = 290L)
  error <- expect_error(find(1.2), class = "fsknn_size_error")
  expect_gt(error$pairs, room)
  # If the sample detects nothing, the error is raised all the same.
  expect_messages({
    fsknn:::raise_too_many(
      list(
        pairs = NaN, estimated = TRUE, most = 1000, fits = NaN,
        as_edges = FALSE, several_limits = FALSE
      ),
      quote(within_search())
    )
    threshold_graph(
      x, 0, max_memory = 24 * 5000, checkpoint = withr::local_tempdir()
    )
  })
})

test_that("what can't deal work out, or keep it, is an error of every verb", {
  x <- random_matrix(60, 9)
  local_folder()
  writeLines("not a folder", "file.txt")
  expect_messages({
    within_search(x, 0.5, BPPARAM = 4)
    within_query(x, x, 0.5, BPPARAM = "many")
    threshold_graph(x, 0.5, BPPARAM = list())
    mst_knn(x, BPPARAM = TRUE)
    within_search(x, 0.5, checkpoint = NA)
    within_query(x, x, 0.5, checkpoint = c("a", "b"))
    threshold_graph(x, 0.5, checkpoint = "file.txt")
    mst_knn(x, checkpoint = 1)
    nearest_to(x, 1, checkpoint = "folder")
    knn_query(x, x, subset = 1:3)
  })
})

test_that("splits are told of, begun and ended, as any search is", {
  x <- random_matrix(50, 6)
  withr::local_options(fsknn.split_size = 20L)
  said <- character()
  withCallingHandlers(
    within_search(
      x, 0.2, verbose = TRUE, backend = "cpu",
      checkpoint = withr::local_tempdir()
    ),
    message = function(message) {
      said <<- c(said, conditionMessage(message))
      invokeRestart("muffleMessage")
    }
  )
  expect_match(said, "all within a distance", all = FALSE)
  expect_match(said, "Seconds", all = FALSE)
  stats <- knn_stats()
  expect_identical(stats$k, NA_integer_)
  expect_gte(stats$pairs_filtered, 50 * 49 / 2)
  expect_lte(stats$pairs_filtered, 1.05 * 50 * 49 / 2)
})
