test_that("neighbours and distances are those of the naive reference", {
  matrices <- hard_matrices()
  for (name in names(matrices)) {
    for_all_metrics(function(metric, sign, backend) {
      if (name == "1e-300 beside 1e300" && metric == "euclidean") {
        return() # squares of such differences overflow
      }
      x <- values_for(matrices[[name]], metric)
      found <- knn_search(x, 7, metric, sign, backend = backend)
      reference <- without_self(naive_distance(x, metric = metric, sign = sign))
      expect_same_neighbours(found, reference, metric)
    }, few_signs())
  }
})

test_that("indices are exact on small whole numbers full of ties", {
  exact <- data.frame(
    metric = c("euclidean", "manhattan", "chebyshev"), sign = "signed"
  )
  for (features in c(1, 2, 6)) {
    x <- small_integers(83, features)
    for_all_metrics(function(metric, sign, backend) {
      for (k in c(1, 10, 82)) {
        found <- knn_search(x, k, metric, backend = backend)
        reference <- naive_knn(x, k, metric)
        expect_identical(found$index, reference$index, label = metric)
        expect_equal(found$distance, reference$distance, tolerance = 1e-15)
      }
    }, metrics = exact)
  }
})

test_that("the result is two matrices of one row for each point", {
  x <- random_matrix(30, 4)
  rownames(x) <- paste0("g", 1:30)
  found <- knn_search(x, 3)
  expect_named(found, c("index", "distance"))
  expect_type(found$index, "integer")
  expect_type(found$distance, "double")
  expect_identical(dim(found$index), c(30L, 3L))
  expect_identical(dim(found$distance), c(30L, 3L))
  names <- list(rownames(x), NULL)
  expect_identical(dimnames(found$index), names)
  expect_identical(dimnames(found$distance), names)
  expect_null(dimnames(knn_search(unname(x), 3)$index))
})

test_that("neighbours have the names of the points that were asked for", {
  x <- random_matrix(30, 4)
  rownames(x) <- c("g1", paste0("g", 1:29)) # names may repeat
  query <- x[c("g7", "g3"), ]
  names_of <- function(found) {
    rows <- function(part) if (is.list(part)) names(part) else rownames(part)
    expect_identical(rows(found$distance), rows(found$index))
    rows(found$index)
  }
  expect_identical(names_of(knn_search(x, 3, subset = c(9, 2))), c("g8", "g1"))
  expect_identical(names_of(knn_query(x, query, 3)), c("g7", "g3"))
  expect_null(names_of(knn_query(x, unname(query), 3)))
  expect_identical(names_of(knn_query(unname(x), query, 3)), c("g7", "g3"))
  expect_identical(names_of(within_search(x, 0.3)), rownames(x))
  expect_identical(names_of(within_query(x, query, 0.3)), c("g7", "g3"))
  expect_identical(names_of(knn_search(x, rep(2:3, 15))), rownames(x))
  expect_identical(
    names_of(knn_search(t(x), 3, points = "columns")), rownames(x)
  )
  folder <- withr::local_tempfile()
  expect_identical(knn_search(x, 3, checkpoint = folder), knn_search(x, 3))
  expect_identical(knn_collect(folder), knn_search(x, 3))
})

test_that("distances are sorted, ties by index, and self is absent", {
  x <- small_integers(70, 4)
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(x, metric)
    found <- knn_search(x, 20, metric, sign, backend = backend)
    expect_true(all(found$index != row(found$index)))
    expect_false(any(apply(found$index, 1, anyDuplicated)))
    in_order <- vapply(seq_len(nrow(x)), function(i) {
      identical(order(found$distance[i, ], found$index[i, ]), 1:20)
    }, NA)
    expect_true(all(in_order))
  })
})

test_that("the distance between two points is the same from both ends", {
  x <- random_matrix(25, 6)
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(x, metric)
    found <- knn_search(x, 24, metric, sign, backend = backend)
    full <- matrix(0, 25, 25)
    full[cbind(as.vector(row(found$index)), as.vector(found$index))] <-
      found$distance
    expect_identical(full, t(full))
  })
})

test_that("the k nearest are the first of the k + 1 nearest", {
  x <- small_integers(50, 5)
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(x, metric)
    longer <- knn_search(x, 13, metric, sign, backend = backend)
    shorter <- knn_search(x, 12, metric, sign, backend = backend)
    expect_identical(shorter$index, longer$index[, 1:12])
    expect_identical(shorter$distance, longer$distance[, 1:12])
  })
})

test_that("a permutation of the points permutes the answer", {
  x <- random_matrix(90, 7) # no ties
  shuffle <- order(uniform_numbers(90, seed = 5))
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(x, metric)
    straight <- knn_search(x, 8, metric, sign, backend = backend)
    shuffled <- knn_search(x[shuffle, ], 8, metric, sign, backend = backend)
    expect_identical(shuffled$distance, straight$distance[shuffle, ])
    if (metric %in% c("spearman", "jaccard", "sorensen", "ccc", "duo")) {
      return() # sums of whole numbers tie, and ties are in order of index
    }
    back <- matrix(shuffle[shuffled$index], ncol = 8)
    expect_identical(back, straight$index[shuffle, ])
  })
})

test_that("a data frame is its matrix", {
  x <- random_matrix(40, 5)
  frame <- as.data.frame(x)
  expect_identical(knn_search(frame, 4), knn_search(x, 4))
})

test_that("isolated points have no neighbours and are nobody's", {
  x <- random_matrix(40, 5)
  gone <- c(1L, 17L, 40L)
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(x, metric)
    x[gone, ] <- 0
    if (fsknn:::metric_facts(metric)$undefined_rows == "none") {
      return()
    }
    found <- knn_search(
      x, 6, metric, sign, constant = "isolate", backend = backend
    )
    expect_true(all(is.na(found$index[gone, ])))
    expect_true(all(is.na(found$distance[gone, ])))
    expect_false(anyNA(found$index[-gone, ]))
    # The others have the neighbours that they have without the isolated points.
    alone <- knn_search(x[-gone, ], 6, metric, sign, backend = backend)
    expect_identical(found$distance[-gone, ], alone$distance)
    kept <- seq_len(40)[-gone]
    expect_identical(found$index[-gone, ], matrix(kept[alone$index], ncol = 6))
    expect_same_bits(
      found, brute_force(x, k = 6, metric = metric, sign = sign, skip = gone)
    )
  })
})

test_that("k may reach the number of other points that are not isolated", {
  x <- random_matrix(10, 5)
  x[3:4, ] <- 1
  found <- knn_search(x, 7, constant = "isolate")
  expect_false(anyNA(found$index[-(3:4), ]))
  expect_messages(knn_search(x, 8, constant = "isolate"))
})

test_that("'isolate' changes nothing where the metric has a value", {
  x <- random_matrix(20, 4)
  x[5, ] <- 2
  expect_identical(
    knn_search(x, 3, "euclidean", constant = "isolate"),
    knn_search(x, 3, "euclidean")
  )
})

test_that("a distance beyond double's range is an error", {
  x <- rbind(c(1e308, 1e308), c(-1e308, -1e308), c(0, 1))
  for (backend in backends_here()) {
    for (metric in c("manhattan", "euclidean", "chebyshev")) {
      expect_error(
        knn_search(x, 2, metric, backend = backend),
        class = "fsknn_range_error"
      )
    }
  }
})

test_that("random numbers are not touched", {
  stats::runif(1)
  before <- .Random.seed
  knn_search(random_matrix(30, 4), 3)
  expect_identical(.Random.seed, before)
})

test_that("input is not changed", {
  x <- random_matrix(30, 4)
  copy <- x + 0
  for_all_metrics(function(metric, sign, backend) {
    knn_search(values_for(x, metric), 3, metric, sign, backend = backend)
  })
  expect_identical(x, copy)
})

test_that("verbose tells the plan and the time", {
  x <- random_matrix(30, 4)
  told <- character()
  withCallingHandlers(
    quiet <- knn_search(x, 3, verbose = TRUE, backend = "cpu"),
    message = function(cnd) {
      told <<- c(told, conditionMessage(cnd))
      rlang::cnd_muffle(cnd)
    }
  )
  told <- paste(told, collapse = "\n")
  expect_match(told, "Chunk size:")
  expect_match(told, "Start: ")
  expect_match(told, "Seconds: ")
  expect_identical(quiet, knn_search(x, 3))
})

test_that("a call without verbose says nothing", {
  expect_silent(knn_search(random_matrix(30, 4), 3, backend = "cpu"))
})
