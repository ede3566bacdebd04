named <- function(num_rows = 40, num_columns = 9) {
  x <- random_matrix(num_rows, num_columns, seed = 51)
  rownames(x) <- paste0("g", seq_len(num_rows))
  x
}

test_that("one point's neighbours are those that all points' search gives", {
  x <- named()
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(x, metric)
    all <- knn_search(x, 6, metric, sign, backend = backend)
    edges <- knn_graph(x, 6, metric, sign, backend = backend)
    for (at in c(1, 17, 40)) {
      found <- nearest_to(x, at, 6, metric, sign, backend = backend)
      expect_identical(found$index, all$index[at, ])
      expect_identical(found$distance, all$distance[at, ])
      expect_identical(found$rank, 1:6)
      own <- edges[edges$from == rownames(x)[[at]], ]
      expect_identical(found$name, own$to)
      expect_identical(found$correlation, own$correlation)
      expect_identical(
        nearest_to(x, rownames(x)[[at]], 6, metric, sign, backend = backend),
        found
      )
    }
  })
})

test_that("of metafeatures it is the same as of their matrix", {
  x <- named(9)
  x[3, 2] <- 0
  m <- metafeatures(x)
  all <- as.matrix(m)
  skip <- which(apply(!is.finite(all), 1, any))
  for_all_metrics(function(metric, sign, backend) {
    facts <- fsknn:::metric_facts(metric)
    if (facts$non_negative || facts$levels > 0) {
      return()
    }
    suppressMessages(
      found <- nearest_to(m, "g2 - g7", 5, metric, sign, backend = backend)
    )
    at <- which(rownames(all) == "g2 - g7")
    expected <- brute_force(
      all, k = 5, metric = metric, sign = sign, skip = unname(skip)
    )
    expect_identical(found$index, expected$index[at, ])
    expect_identical(found$distance, expected$distance[at, ])
    expect_identical(found$name, rownames(all)[found$index])
    expect_identical(attr(found, "left_out")$point, unname(skip))
  })
})

test_that("threads change nothing, and k may be all the others", {
  x <- random_matrix(3000, 7, seed = 5)
  first <- nearest_to(x, 5, 2999)
  expect_identical(nearest_to(x, 5, 2999, num_threads = 2), first)
  expect_setequal(first$index, seq_len(3000)[-5])
  expect_false(is.unsorted(first$distance))
})

test_that("rows without names are named by number, and isolated ones left", {
  x <- unname(named())
  x[7, ] <- 1
  found <- nearest_to(x, 3, 38, constant = "isolate")
  expect_identical(found$name, as.character(found$index))
  expect_false(7L %in% found$index)
})

test_that("few queries and many give the same neighbours", {
  x <- random_matrix(500, 11, seed = 6)
  query <- random_matrix(40, 11, seed = 7)
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(x, metric)
    query <- values_for(query, metric)
    many <- knn_query(x, query, 5, metric, sign, backend = backend)
    few <- knn_query(x, query[1:3, ], 5, metric, sign, backend = backend)
    expect_identical(few$index, many$index[1:3, ])
    expect_identical(few$distance, many$distance[1:3, ])
  })
})

test_that("wrong arguments are errors that say what can be done", {
  x <- named()
  rownames(x)[5:6] <- "twice"
  flat <- x
  flat[2, ] <- 1
  m <- metafeatures(x[1:4, ], "/")
  expect_messages({
    nearest_to(x)
    nearest_to(x, "gg7", 3)
    nearest_to(unname(x), "g7", 3)
    nearest_to(x, "twice", 3)
    nearest_to(x, 41, 3)
    nearest_to(x, 1.5, 3)
    nearest_to(x, NULL, 3)
    nearest_to(x, c("g1", "twice"), 3)
    nearest_to(x, character(), 3)
    nearest_to(x, NA_character_, 3)
    nearest_to(x, c(1, NA), 3)
    nearest_to(x, 1, 40)
    nearest_to(x, 1, 3, kk = 2)
    nearest_to(x[1, , drop = FALSE], 1, 1)
    nearest_to(flat, 1, 3)
    nearest_to(flat, 2, 3, constant = "isolate")
    nearest_to(m, "g2 / g1", 3)
    nearest_to(m, "outcome", 3)
  })
})
