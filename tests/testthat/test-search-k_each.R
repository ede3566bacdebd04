cut_rows <- function(found, k) {
  rows <- seq_along(k)
  as_neighbours(list(
    index = lapply(rows, function(i) found$index[i, seq_len(k[[i]])]),
    distance = lapply(rows, function(i) found$distance[i, seq_len(k[[i]])])
  ))
}

test_that("a k for each point gives the first of each row, as lists", {
  x <- random_matrix(50, 6)
  k <- rep(c(3, 0, 7, 1, 49), 10)
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(x, metric)
    all <- knn_search(x, 49, metric, sign)
    expect_identical(
      knn_search(x, k, metric, sign, backend = backend), cut_rows(all, k)
    )
  })
  all <- knn_search(x, 7)
  few <- c(9, 2, 30)
  expect_identical(
    knn_search(x, c(2L, 0L, 7L), subset = few),
    cut_rows(lapply(all, function(m) m[few, ]), c(2, 0, 7))
  )
  expect_identical(knn_search(x, rep(0, 50))$index, rep(list(integer()), 50))
})

test_that("rows are cut where they are, or not at all", {
  cut <- function(k, distance = matrix(0, 2, 3)) {
    fsknn:::cpp_cut_rows(matrix(1:6, 2), distance, k)
  }
  expect_identical(cut(c(3, 0))$index, list(c(1L, 3L, 5L), integer()))
  for (k in list(c(4, 0), c(-1, 0), c(NA, 0), c(Inf, 0), c(NaN, 1), 1, 1:3)) {
    expect_error(cut(k), "not so long")
  }
  expect_error(cut(c(1, 1), matrix(0, 2, 2)), "not so long")
  expect_error(cut(c(1, 1), matrix(0, 1, 3)), "not so long")
})

test_that("I() of one number makes lists of one point's neighbours", {
  x <- random_matrix(20, 5)
  expect_type(knn_search(x, I(rep(2, 20)))$index, "list")
  expect_identical(
    knn_search(x, I(4), subset = 3)$index, list(knn_search(x, 4)$index[3, ])
  )
  expect_true(is.matrix(knn_search(x, 4, subset = 3)$index))
})

test_that("queries have a k each, too", {
  x <- random_matrix(30, 5)
  query <- random_matrix(4, 5, seed = 2)
  k <- c(30, 1, 0, 2)
  expect_identical(knn_query(x, query, k), cut_rows(knn_query(x, query, 30), k))
})

test_that("points with too few neighbours have vectors as short as these", {
  x <- random_matrix(20, 5)
  x[3, ] <- 0
  found <- knn_search(x, rep(2:3, 10), constant = "isolate")
  expect_identical(found$index[[3]], integer())
  expect_identical(found$distance[[3]], double())
  expect_identical(lengths(found$index[-3]), rep(2:3, 10)[-3])
  x[2, 1:4] <- NA # one column in common with any
  told <- rlang::catch_cnd(
    found <- knn_search(
      x, rep(2:3, 10), "euclidean", na = "pairwise", min_pairs = 2
    ),
    "fsknn_short_rows"
  )
  expect_match(rlang::cnd_message(told), "Its neighbours are shorter vectors")
  found <- suppressMessages(knn_search(
    x, rep(2:3, 10), "euclidean", na = "pairwise", min_pairs = 2
  ))
  expect_identical(found$index[[2]], integer())
  expect_false(anyNA(unlist(found)))
})

test_that("a k for each point that is none is an error", {
  x <- random_matrix(20, 5)
  expect_messages({
    knn_search(x, c(1, 2))
    knn_search(x, rep(c(2, -1), 10))
    knn_search(x, rep(c(2, 20), 10))
    knn_search(x, rep(c(2, 0.5, NA, 1), 5))
    knn_query(x, x[1:3, ], 1:2)
    knn_graph(x, rep(2, 20))
  })
})

# Takes the first k[row, list] of each list of a row, by definition.
cut_lists <- function(found, most, k) {
  at <- lapply(seq_len(nrow(k)), function(row) {
    unlist(lapply(seq_len(ncol(k)), function(list) {
      (list - 1) * most + seq_len(k[row, list])
    }))
  })
  rows <- seq_along(at)
  as_neighbours(list(
    index = lapply(rows, function(i) found$index[i, at[[i]]]),
    distance = lapply(rows, function(i) found$distance[i, at[[i]]])
  ))
}

test_that("with blocks, k may be that of a block or of a point", {
  x <- random_matrix(40, 6)
  block <- factor(rep(c("b", "a", "c", "a"), 10), c("c", "b", "a"))
  of_block <- c(a = 5, b = 0, c = 2)
  for (between in c(FALSE, TRUE)) {
    whole <- knn_search(x, 5, block = block, between = between)
    lists <- t(vapply(as.character(block), function(own) {
      blocks <- c("c", "b", "a")
      of_block[if (between) setdiff(blocks, own) else blocks]
    }, double(3 - between)))
    for (backend in backends_here()) {
      expect_identical(
        knn_search(x, of_block, block = block, between = between,
                   backend = backend),
        cut_lists(whole, 5, lists)
      )
    }
    few <- c(7, 2, 31)
    expect_identical(
      knn_search(x, of_block, block = block, between = between, subset = few),
      cut_lists(lapply(whole, function(m) m[few, ]), 5, lists[few, ])
    )
    of_point <- rep(c(5, 0, 3, 1), 10)
    expect_identical(
      knn_search(x, of_point, block = block, between = between),
      cut_lists(whole, 5, matrix(of_point, 40, 3 - between))
    )
  }
  query <- random_matrix(3, 6, seed = 2)
  expect_identical(
    knn_query(x, query, of_block, block = block),
    cut_lists(
      knn_query(x, query, 5, block = block), 5,
      matrix(of_block[c("c", "b", "a")], 3, 3, byrow = TRUE)
    )
  )
  together <- knn_search(x, 5, block = block, between = "together")
  expect_identical(
    knn_search(x, of_point, block = block, between = "together"),
    cut_lists(together, 5, matrix(of_point))
  )
})

test_that("lists of blocks are verified and may be short", {
  x <- random_matrix(40, 6)
  block <- rep(c("a", "b"), 20)
  found <- knn_search(x, c(b = 4, a = 1), block = block)
  expect_true(all(knn_verify(found, x)$agree))
  found$index[[3]] <- rev(found$index[[3]])
  expect_false(all(knn_verify(found, x)$agree))
  # Point 1 shares all samples with point 2 of block b alone.
  x[1, 1:3] <- NA
  x[setdiff(seq(2, 40, 2), 2), 4:6] <- NA
  ask <- function(k) {
    knn_search(x, k, block = block, na = "pairwise", min_pairs = 2)
  }
  expect_message(ask(c(a = 1, b = 3)), class = "fsknn_short_rows")
  expect_message(ask(c(a = 3, b = 1)), NA, class = "fsknn_short_rows")
  short <- suppressMessages(ask(c(a = 1, b = 3)))
  expect_identical(block[short$index[[1]]], c("a", "b"))
})

test_that("a k of other blocks is an error", {
  x <- random_matrix(12, 5)
  block <- rep(c("a", "b", "c"), 4)
  expect_messages({
    knn_search(x, c(a = 1, b = 2), block = block)
    knn_search(x, c(a = 1, b = 2, c = -1), block = block)
    knn_search(x, c(a = 1, b = 2, c = 4), block = block)
    knn_search(x, c(a = 1, b = 2, c = 1), block = block, between = "together")
    knn_search(x, c(a = 1, b = 2, c = 1))
  })
})
