# Requirements of BiocNeighbors for its own exact algorithms, tested on ours.

# These tests are for BiocNeighbors 1.16; later versions are in
# test-bioc-neighbour_apis.R.
skip_if_no_neighbours <- function() {
  skip_if_not_installed("BiocNeighbors")
  skip_if(utils::packageVersion("BiocNeighbors") >= "1.99", "BiocNeighbors 2")
}

findKNN <- function(...) BiocNeighbors::findKNN(...)
queryKNN <- function(...) BiocNeighbors::queryKNN(...)
findNeighbors <- function(...) BiocNeighbors::findNeighbors(...)
queryNeighbors <- function(...) BiocNeighbors::queryNeighbors(...)
buildIndex <- function(...) BiocNeighbors::buildIndex(...)
ExhaustiveParam <- function(...) BiocNeighbors::ExhaustiveParam(...)

theirs <- c(Euclidean = "euclidean", Manhattan = "manhattan")

# Finds the k nearest rows of x for each row of y in plain R, with ties by
# order().
plain_nearest <- function(x, y = x, k, distance, self = FALSE) {
  between <- naive_distance(y, x, theirs[[distance]])
  if (self) {
    diag(between) <- Inf
  }
  index <- t(apply(between, 1, order))[, seq_len(k), drop = FALSE]
  rows <- rep(seq_len(nrow(y)), k)
  list(
    index = index,
    distance = matrix(between[cbind(rows, as.vector(index))], ncol = k)
  )
}

plain_within <- function(x, y = x, threshold, distance) {
  between <- naive_distance(y, x, theirs[[distance]])
  threshold <- rep_len(threshold, nrow(y))
  index <- lapply(seq_len(nrow(y)), function(i) {
    which(between[i, ] <= threshold[[i]])
  })
  list(
    index = index,
    distance = lapply(seq_len(nrow(y)), function(i) between[i, index[[i]]])
  )
}

# Sorts neighbours by index.
sorted <- function(found) {
  at <- lapply(found$index, order)
  list(
    index = Map(`[`, found$index, at), distance = Map(`[`, found$distance, at)
  )
}

test_that("findKNN() finds what plain R finds", {
  skip_if_no_neighbours()
  for (distance in names(theirs)) {
    param <- FsknnParam(distance)
    for (num_features in c(1, 5, 20)) {
      x <- matrix(uniform_numbers(60 * num_features, seed = 2), 60)
      most <- plain_nearest(x, k = 20, distance = distance, self = TRUE)
      for (k in c(1, 5, 20)) {
        found <- findKNN(x, k = k, BNPARAM = param)
        expected <- lapply(most, function(of) of[, seq_len(k), drop = FALSE])
        expect_identical(found$index, expected$index)
        expect_equal(found$distance, expected$distance)
        their_own <- findKNN(
          x, k = k, BNPARAM = ExhaustiveParam(distance = distance)
        )
        expect_equal(found, their_own)
      }
    }
  }
})

test_that("queryKNN() finds what plain R finds", {
  skip_if_no_neighbours()
  for (distance in names(theirs)) {
    param <- FsknnParam(distance)
    x <- matrix(uniform_numbers(100 * 5, seed = 3), 100)
    y <- matrix(uniform_numbers(40 * 5, seed = 4), 40)
    most <- plain_nearest(x, y, 20, distance)
    for (k in c(1, 5, 20)) {
      found <- queryKNN(x, query = y, k = k, BNPARAM = param)
      expected <- lapply(most, function(of) of[, seq_len(k), drop = FALSE])
      expect_identical(found$index, expected$index)
      expect_equal(found$distance, expected$distance)
    }
    turned <- queryKNN(
      x, query = t(y), k = 20, transposed = TRUE, BNPARAM = param
    )
    expect_identical(turned, found)
    frame <- as.data.frame(y)
    names(frame) <- NULL
    expect_identical(queryKNN(x, query = frame, k = 20, BNPARAM = param), found)
  }
})

test_that("cosine is BiocNeighbors', the chord, in any case of the word", {
  skip_if_no_neighbours()
  x <- matrix(uniform_numbers(200 * 6, seed = 5), 200)
  y <- matrix(uniform_numbers(20 * 6, seed = 6), 20)
  unit <- function(x) x / sqrt(rowSums(x^2))
  chord <- FsknnParam("Cosine")
  expect_identical(
    findKNN(x, k = 4, BNPARAM = chord),
    findKNN(unit(x), k = 4, BNPARAM = FsknnParam())
  )
  expect_identical(
    queryKNN(x, query = y, k = 4, BNPARAM = chord),
    queryKNN(unit(x), query = unit(y), k = 4, BNPARAM = FsknnParam())
  )
  expect_equal(
    findKNN(x, k = 4, BNPARAM = chord),
    findKNN(x, k = 4, BNPARAM = ExhaustiveParam(distance = "Cosine"))
  )
  for (word in c("cosine", "COSINE")) {
    expect_identical(
      findKNN(x, k = 4, BNPARAM = FsknnParam(word)),
      findKNN(x, k = 4, BNPARAM = chord)
    )
  }
  expect_identical(
    findKNN(x, k = 4, BNPARAM = chord)$index,
    knn_search(x, 4, "cosine")$index
  )
  x[3, ] <- 0
  expect_wrong(findKNN(x, k = 4, BNPARAM = chord))
})

test_that("rows have a length where squares leave the range of doubles", {
  skip_if_no_neighbours()
  x <- matrix(uniform_numbers(30 * 6, seed = 5), 30)
  chord <- FsknnParam("Cosine")
  plain <- findKNN(x, k = 4, BNPARAM = chord)
  for (scale in c(1e-200, 1e200)) {
    found <- findKNN(x * scale, k = 4, BNPARAM = chord)
    expect_identical(found$index, plain$index)
    expect_equal(found$distance, plain$distance)
  }
})

test_that("every metric is knn_search()'s", {
  skip_if_no_neighbours()
  x <- random_matrix(40, 9)
  metrics <- all_metrics()
  for (at in which(!metrics$metric %in% c("inner_product", "cosine"))) {
    metric <- metrics$metric[[at]]
    sign <- metrics$sign[[at]]
    values <- values_for(x, metric)
    param <- if (sign == "signed") {
      FsknnParam(metric)
    } else {
      FsknnParam(metric, sign = sign)
    }
    expect_identical(
      findKNN(values, k = 3, BNPARAM = param, warn.ties = FALSE),
      bare(knn_search(values, 3, metric, sign))
    )
    expect_identical(
      queryKNN(
        values, query = values[5:9, ], k = 3, BNPARAM = param, warn.ties = FALSE
      ),
      bare(knn_query(values, values[5:9, ], 3, metric, sign))
    )
  }
})

test_that("arguments of knn_search() are handed on", {
  skip_if_no_neighbours()
  x <- random_matrix(40, 9)
  weights <- 1:9
  param <- FsknnParam("pearson", weights = weights)
  expect_identical(
    findKNN(x, k = 3, BNPARAM = param),
    bare(knn_search(x, 3, weights = weights))
  )
  expect_identical(
    queryKNN(x, query = x[1:4, ], k = 3, BNPARAM = param),
    bare(knn_query(x, x[1:4, ], 3, weights = weights))
  )
  found <- findNeighbors(x, threshold = 0.3, BNPARAM = param)
  expected <- within_search(x, 0.3, weights = weights)
  expect_identical(lapply(found$index, `[`, -1), expected$index)
})

test_that("a search within a distance has all arguments of knn_search()", {
  skip_if_no_neighbours()
  taken <- setdiff(names(formals(knn_search)), fsknn:::not_options)
  expect_identical(setdiff(taken, names(formals(within_search))), character())
  expect_identical(setdiff(taken, names(formals(within_query))), character())
  x <- random_matrix(40, 12)
  x[cbind(1:40, rep(1:10, 4))] <- NA
  param <- FsknnParam(
    "pearson", na = "pairwise", min_pairs = 5, backend = "cpu",
    max_memory = "1 GB", verbose = TRUE
  )
  verbosely <- function(code) {
    expect_message(expect_message(code, "Backend:"), "Seconds:")
  }
  verbosely(found <- findNeighbors(x, threshold = 0.3, BNPARAM = param))
  expected <- within_search(
    x, 0.3, na = "pairwise", min_pairs = 5, backend = "cpu"
  )
  expect_gt(sum(lengths(expected$index)), 0)
  expect_identical(lapply(found$index, `[`, -1), expected$index)
  verbosely(
    found <- queryNeighbors(x, x[1:4, ], threshold = 0.3, BNPARAM = param)
  )
  expect_identical(
    found[c("index", "distance")],
    bare(within_query(
      x, x[1:4, ], 0.3, na = "pairwise", min_pairs = 5, backend = "cpu"
    ))
  )
})

test_that("points with fewer than k neighbours never reach those who call", {
  lacking <- matrix(c(1L, 2L, 2L, NA), 2)
  expect_wrong(fsknn:::check_all_found(lacking, NULL))
  expect_null(fsknn:::check_all_found(lacking[, 1, drop = FALSE], NULL))
})

test_that("a subset is the same rows, by number, name or flag", {
  skip_if_no_neighbours()
  x <- random_matrix(60, 8)
  rownames(x) <- paste0("cell", 1:60)
  param <- FsknnParam("pearson")
  full <- findKNN(x, k = 5, BNPARAM = param)
  rows_of <- function(found, rows) {
    lapply(found, function(m) m[rows, , drop = FALSE])
  }
  rows <- c(50, 3, 17, 17, 2)
  expect_identical(
    findKNN(x, k = 5, subset = rows, BNPARAM = param),
    rows_of(full, rows)
  )
  expect_identical(
    findKNN(x, k = 5, subset = c("cell9", "cell1"), BNPARAM = param),
    rows_of(full, c(9, 1))
  )
  flags <- rep(c(TRUE, FALSE, FALSE), 20)
  expect_identical(
    findKNN(x, k = 5, subset = flags, BNPARAM = param),
    rows_of(full, which(flags))
  )
  index <- buildIndex(x, BNPARAM = param)
  expect_identical(
    findKNN(BNINDEX = index, k = 5, subset = "cell9"),
    rows_of(full, 9)
  )
  none <- findKNN(x, k = 5, subset = integer(), BNPARAM = param)
  expect_identical(none, rows_of(full, integer()))

  y <- random_matrix(12, 8, seed = 9)
  rownames(y) <- letters[1:12]
  full <- queryKNN(x, query = y, k = 5, BNPARAM = param)
  for (rows in list(c(3, 1), letters[c(3, 1)], 1:12 %in% c(2, 7))) {
    numbers <- stats::setNames(1:12, letters[1:12])[rows]
    expect_identical(
      queryKNN(x, query = y, k = 5, subset = rows, BNPARAM = param),
      rows_of(full, numbers)
    )
  }
  expect_error(findKNN(x, k = 5, subset = 61, BNPARAM = param), "out-of-range")
  expect_error(
    queryKNN(x, query = y, k = 5, subset = "z", BNPARAM = param),
    "out of bounds"
  )
})

test_that("what is asked for is given, and no more", {
  skip_if_no_neighbours()
  x <- random_matrix(40, 6)
  param <- FsknnParam()
  find <- function(...) findKNN(x, k = 4, BNPARAM = param, ...)
  full <- find()
  expect_identical(find(get.distance = FALSE), full["index"])
  expect_identical(find(get.index = FALSE), full["distance"])
  expect_identical(find(get.index = "normal", get.distance = "normal"), full)
  turned <- find(get.index = "transposed", get.distance = "transposed")
  expect_identical(lapply(turned, t), full)
  expect_identical(length(find(get.index = FALSE, get.distance = FALSE)), 0L)
  expect_wrong(find(get.index = "sideways"))
  for (last in 1:4) {
    expect_identical(
      find(last = last),
      lapply(full, function(m) m[, seq(5 - last, 4), drop = FALSE])
    )
  }
  query <- function(...) {
    queryKNN(x, query = x[1:7, ] + 1, k = 4, BNPARAM = param, ...)
  }
  full <- query()
  expect_identical(query(get.distance = FALSE), full["index"])
  expect_identical(dim(query(get.index = "transposed")$index), c(4L, 7L))
  expect_identical(
    query(last = 1), lapply(full, function(m) m[, 4, drop = FALSE])
  )
})

test_that("an index stands for its points", {
  skip_if_no_neighbours()
  x <- random_matrix(40, 6)
  y <- random_matrix(9, 6, seed = 2)
  param <- FsknnParam("pearson")
  index <- buildIndex(x, BNPARAM = param)
  expect_s4_class(index, "FsknnIndex")
  expect_identical(dim(index), dim(x))
  expect_identical(BiocNeighbors::bndata(index), t(x))
  expect_identical(BiocNeighbors::bnorder(index), 1:40)
  expect_identical(BiocNeighbors::bndistance(index), "pearson")
  expect_identical(buildIndex(t(x), transposed = TRUE, BNPARAM = param), index)
  expect_snapshot(index)
  expected <- bare(knn_search(x, 4, "pearson"))
  expect_identical(findKNN(BNINDEX = index, k = 4), expected)
  expect_identical(findKNN(BNINDEX = index, BNPARAM = param, k = 4), expected)
  expect_identical(findKNN(BNINDEX = index, k = 4, raw.index = TRUE), expected)
  expect_identical(
    queryKNN(BNINDEX = index, query = y, k = 4),
    bare(knn_query(x, y, 4, "pearson"))
  )
})

test_that("too large a k is cut down with a warning, one below 1 an error", {
  skip_if_no_neighbours()
  x <- random_matrix(10, 6)
  y <- random_matrix(3, 6, seed = 2)
  param <- FsknnParam()
  expect_warning(
    found <- findKNN(x, k = 20, BNPARAM = param),
    "'k' capped at the number of observations minus 1", fixed = TRUE
  )
  expect_identical(found, bare(knn_search(x, 9, "euclidean")))
  expect_warning(
    found <- queryKNN(x, query = y, k = 20, BNPARAM = param),
    "'k' capped at the number of observations$"
  )
  expect_identical(found, bare(knn_query(x, y, 10, "euclidean")))
  # This leaves k = 0 for one point or none.
  for (rows in list(1, integer())) {
    some <- x[rows, , drop = FALSE]
    expect_warning(
      expect_error(findKNN(some, k = 3, BNPARAM = param), "positive"), "capped"
    )
  }
  expect_warning(
    expect_error(
      queryKNN(x[0, ], query = y, k = 3, BNPARAM = param), "positive"
    ),
    "capped"
  )
  expect_error(findKNN(x, k = 0, BNPARAM = param), "positive")
  expect_error(findKNN(x, k = -1, BNPARAM = param), "positive")
  expect_error(queryKNN(x, query = y, k = 0, BNPARAM = param), "positive")
})

test_that("ties are warned of, unless told otherwise", {
  skip_if_no_neighbours()
  param <- FsknnParam()
  words <- "detected tied distances to neighbors, see ?'BiocNeighbors-ties'"
  find <- function(x, k, ...) {
    findKNN(x, k = k, BNPARAM = param, ...)
  }
  # The tie may be with the next neighbour, or among those found.
  expect_warning(found <- find(rbind(1, 2, 3), 1), words, fixed = TRUE)
  expect_identical(dim(found$index), c(3L, 1L))
  expect_warning(find(rbind(1, 2, 3), 2), words, fixed = TRUE)
  expect_warning(find(rbind(0.1, 1, 2, 3, 5.2), 3), words, fixed = TRUE)
  expect_warning(find(matrix(0, 10, 5), 2), words, fixed = TRUE)
  expect_warning(find(rbind(1, 2, 4), 1), NA)
  expect_warning(find(rbind(1, 2, 4), 2), NA)
  expect_warning(find(rbind(0.1, 1, 2, 4, 4.1), 3), NA)
  expect_warning(find(matrix(0, 10, 5), 2, warn.ties = FALSE), NA)
  expect_warning(
    queryKNN(rbind(1, 3), query = rbind(2), k = 1, BNPARAM = param),
    words, fixed = TRUE
  )
  expect_warning(
    queryKNN(
      rbind(1, 3), query = rbind(2), k = 1, BNPARAM = param, warn.ties = FALSE
    ),
    NA
  )
})

test_that("workers of a BPPARAM are threads", {
  skip_if_no_neighbours()
  skip_if_not_installed("BiocParallel")
  x <- random_matrix(50, 6)
  param <- FsknnParam(verbose = TRUE, backend = "cpu")
  used <- function(...) {
    said <- testthat::capture_messages(findKNN(x, k = 4, BNPARAM = param, ...))
    sub(".*\\(([0-9]+) used\\).*", "\\1", said[grepl("used", said)])
  }
  expect_identical(used(BPPARAM = BiocParallel::SerialParam()), "1")
  expect_identical(used(BPPARAM = BiocParallel::SnowParam(3)), "3")
  param <- FsknnParam(num_threads = 2, verbose = TRUE, backend = "cpu")
  expect_identical(used(BPPARAM = BiocParallel::SnowParam(3)), "2")
  expect_identical(
    findKNN(
      x, k = 4, BNPARAM = FsknnParam(), BPPARAM = BiocParallel::SnowParam(2)
    ),
    bare(knn_search(x, 4, "euclidean"))
  )
})

test_that("what makes no sense is an error", {
  skip_if_no_neighbours()
  x <- random_matrix(20, 6)
  broken <- x
  broken[4, 2] <- NA
  param <- FsknnParam()
  expect_error(
    findKNN(x, k = 2, raw.index = TRUE, BNPARAM = param),
    "not valid"
  )
  expect_wrong(findKNN(broken, k = 2, BNPARAM = param))
  expect_error(findKNN(broken, k = 2, BNPARAM = param), "non-finite values")
  expect_wrong(findKNN(matrix(letters, 13), k = 2, BNPARAM = param))
  expect_error(queryKNN(x, k = 2, BNPARAM = param), "`query` must be given")
  expect_error(
    queryKNN(x, query = cbind(x, 1), k = 2, BNPARAM = param),
    "dimensionality"
  )
  expect_wrong(findKNN(x, k = 2, BNPARAM = param, neighbours = 3))
  expect_error(queryKNN(x, query = x[, 0], k = 2, BNPARAM = param), "mismatch")
  # Without features, all points are equal.
  found <- findKNN(x[, 0], k = 3, BNPARAM = param, warn.ties = FALSE)
  expect_identical(dim(found$index), c(20L, 3L))
  expect_true(all(found$distance == 0))
  expect_wrong(findKNN(x[, 0], k = 3, BNPARAM = FsknnParam("pearson")))
})

test_that("findNeighbors() finds what plain R finds, each point itself too", {
  skip_if_no_neighbours()
  for (distance in names(theirs)) {
    param <- FsknnParam(distance)
    for (num_features in c(1, 5)) {
      x <- matrix(uniform_numbers(50 * num_features, seed = 7), 50)
      y <- matrix(uniform_numbers(20 * num_features, seed = 8), 20)
      for (threshold in c(0.1, 0.5, 1)) {
        found <- findNeighbors(x, threshold = threshold, BNPARAM = param)
        expected <- plain_within(x, threshold = threshold, distance = distance)
        expect_identical(sorted(found)$index, expected$index)
        expect_equal(sorted(found)$distance, expected$distance)
        found <- queryNeighbors(
          x, query = y, threshold = threshold, BNPARAM = param
        )
        expected <- plain_within(x, y, threshold, distance)
        expect_identical(sorted(found)$index, expected$index)
        expect_equal(sorted(found)$distance, expected$distance)
      }
    }
  }
})

test_that("findNeighbors() takes subsets, many thresholds, and counts", {
  skip_if_no_neighbours()
  x <- matrix(uniform_numbers(100 * 3, seed = 9), 100)
  rownames(x) <- paste0("cell", 1:100)
  y <- matrix(uniform_numbers(30 * 3, seed = 10), 30)
  param <- FsknnParam()
  find <- function(...) findNeighbors(x, BNPARAM = param, ...)
  query <- function(...) {
    queryNeighbors(x, query = y, BNPARAM = param, ...)
  }
  full <- find(threshold = 0.3)
  expect_gt(length(unique(lengths(full$index))), 1)
  rows <- c(90, 4, 17)
  expect_identical(
    find(threshold = 0.3, subset = rows), lapply(full, `[`, rows)
  )
  expect_identical(
    find(threshold = 0.3, subset = rownames(x)[rows]), lapply(full, `[`, rows)
  )
  expect_identical(find(threshold = 0.3, get.distance = FALSE), full["index"])
  expect_identical(find(threshold = 0.3, get.index = FALSE), full["distance"])
  expect_identical(
    find(threshold = 0.3, get.index = FALSE, get.distance = FALSE),
    lengths(full$index)
  )
  limits <- rep(c(0.1, 0.3), 50)
  varied <- find(threshold = limits)
  wide <- limits == 0.3
  expect_identical(lapply(varied, `[`, wide), lapply(full, `[`, wide))
  expect_identical(
    lapply(varied, `[`, limits == 0.1),
    lapply(find(threshold = 0.1), `[`, limits == 0.1)
  )
  expect_identical(
    find(threshold = limits[rows], subset = rows), lapply(varied, `[`, rows)
  )
  index <- buildIndex(x, BNPARAM = param)
  expect_identical(findNeighbors(BNINDEX = index, threshold = 0.3), full)

  full <- query(threshold = 0.4)
  expect_identical(query(threshold = 0.4, subset = 5:3), lapply(full, `[`, 5:3))
  expect_identical(
    query(threshold = 0.4, get.index = FALSE, get.distance = FALSE),
    lengths(full$index)
  )
  expect_identical(
    queryNeighbors(
      BNINDEX = index, query = t(y), threshold = 0.4, transposed = TRUE
    ),
    full
  )
  expect_error(find(threshold = 0), "positive")
  expect_error(query(threshold = -1), "positive")
  expect_error(find(threshold = 0:1), "should be equal")
  expect_error(query(threshold = 0:1), "should be equal")
  expect_error(find(), "must be given")
  expect_error(find(threshold = 1, subset = 101), "out-of-range")
})

test_that("findNeighbors() of nothing is nothing", {
  skip_if_no_neighbours()
  x <- random_matrix(10, 4)
  y <- random_matrix(3, 4, seed = 2)
  param <- FsknnParam()
  none <- findNeighbors(x[0, , drop = FALSE], threshold = 1, BNPARAM = param)
  expect_identical(none, list(index = list(), distance = list()))
  none <- queryNeighbors(
    x[0, , drop = FALSE], query = y, threshold = 1, BNPARAM = param
  )
  expect_identical(lengths(none$index), integer(3))
  none <- queryNeighbors(
    x, query = y[0, , drop = FALSE], threshold = 1, BNPARAM = param
  )
  expect_identical(none, list(index = list(), distance = list()))
  all <- queryNeighbors(x[, 0], query = y[, 0], threshold = 1, BNPARAM = param)
  expect_identical(all$index, rep(list(1:10), 3))
  alike <- findNeighbors(x[, 0], threshold = 1, BNPARAM = param)
  expect_identical(alike$index, rep(list(1:10), 10))
  expect_identical(alike$distance, rep(list(numeric(10)), 10))
  expect_identical(all$distance, rep(list(numeric(10)), 3))
})

test_that("findMutualNN() and bluster find the same by any exact way", {
  skip_if_no_neighbours()
  x <- random_matrix(80, 6)
  y <- random_matrix(60, 6, seed = 2)
  param <- FsknnParam()
  expect_identical(
    BiocNeighbors::findMutualNN(x, y, k1 = 4, BNPARAM = param),
    BiocNeighbors::findMutualNN(x, y, k1 = 4)
  )
  skip_if_not_installed("bluster")
  expect_warning(
    expect_error(
      bluster::makeSNNGraph(x[0, ], BNPARAM = param), "must be positive"
    ),
    "capped"
  )
  for (make in list(bluster::makeSNNGraph, bluster::makeKNNGraph)) {
    expect_true(igraph::identical_graphs(make(x, BNPARAM = param), make(x)))
  }
  expect_identical(
    bluster::clusterRows(x, bluster::SNNGraphParam(k = 5, BNPARAM = param)),
    bluster::clusterRows(x, bluster::SNNGraphParam(k = 5))
  )
  of_graph <- function(param) {
    clusters <- bluster::NNGraphParam(shared = FALSE, k = 5, BNPARAM = param)
    bluster::clusterRows(x, clusters)
  }
  expect_identical(of_graph(param), of_graph(ExhaustiveParam()))
  expect_identical(
    bluster::clusterRows(x, bluster::DbscanParam(BNPARAM = param)),
    bluster::clusterRows(x, bluster::DbscanParam())
  )
})

test_that("scran's graphs and scater's UMAP take the parameter", {
  # Both call bluster and findKNN(), as above, and take 10 s to load.
  skip_unless_long()
  skip_if_no_neighbours()
  skip_if_not_installed("SingleCellExperiment")
  set <- SingleCellExperiment::SingleCellExperiment(
    list(logcounts = random_matrix(8, 60)),
    reducedDims = list(PCA = random_matrix(60, 5, seed = 2))
  )
  param <- FsknnParam()
  if (requireNamespace("scran", quietly = TRUE)) {
    expect_true(igraph::identical_graphs(
      scran::buildSNNGraph(set, use.dimred = "PCA", BNPARAM = param),
      scran::buildSNNGraph(set, use.dimred = "PCA")
    ))
  }
  skip_if_not_installed("scater")
  # UMAP itself is random, so both runs use the same seed.
  map <- function(...) {
    withr::with_seed(1, suppressWarnings(scater::calculateUMAP(
      t(SingleCellExperiment::reducedDim(set, "PCA")), pca = NULL,
      scale = FALSE, n_threads = 1, external_neighbors = TRUE, ...
    )))
  }
  # The default, k-means, uses random numbers.
  expect_identical(map(BNPARAM = param), map(BNPARAM = ExhaustiveParam()))
})
