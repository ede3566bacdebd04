# Makes five rows: g2 has a zero, g3 equals g4, and g5 is constant.
with_gaps <- function() {
  x <- random_matrix(5, 8, seed = 41)
  rownames(x) <- paste0("g", 1:5)
  x[2, 3] <- 0
  x[4, ] <- x[3, ]
  x[5, ] <- 2
  x
}

expected_left_out <- function(x, m) {
  all <- as.matrix(m)
  broken <- apply(!is.finite(all), 1, any)
  flat <- !broken & apply(all, 1, function(row) max(row) == min(row))
  point <- which(broken | flat)
  data.frame(
    point = unname(point), name = rownames(all)[point],
    reason = unname(ifelse(broken[point], "not finite", "no variation"))
  )
}

test_that("rows without values or variation are left out of every search", {
  x <- with_gaps()
  for_all_metrics(function(metric, sign, backend) {
    if (fsknn:::metric_facts(metric)$levels > 0) {
      return() # metafeatures of numbers are not binary
    }
    ops <- c("-", "+", "*", "/")
    if (metric == "proportional") {
      x <- abs(x)
      ops <- ops[-1]
    }
    m <- metafeatures(x, ops)
    all <- as.matrix(m)
    left_out <- expected_left_out(x, m)
    expect_gte(nrow(left_out), 3)
    suppressMessages({
      nn <- knn_search(m, 3, metric, sign, backend = backend)
      edges <- knn_graph(m, 3, metric, sign, backend = backend)
      asked <- knn_query(
        m, m[c(1, left_out$point[[1]], 2), ], 3, metric, sign,
        backend = backend
      )
    })
    expect_identical(attr(nn, "left_out"), left_out)
    expect_identical(attr(edges, "left_out"), left_out)
    expect_identical(attr(asked, "left_out"), left_out)
    expect_identical(attr(asked, "query_left_out")$point, 2L)
    expect_identical(attr(asked, "query_left_out")$name, left_out$name[[1]])
    expect_true(all(is.na(nn$index[left_out$point, ])))
    expect_true(all(is.na(asked$index[2, ])))

    # The result is that of the matrix with these rows isolated.
    attr(nn, "left_out") <- NULL
    expect_identical(
      nn,
      brute_force(
        all, k = 3, metric = metric, sign = sign, skip = left_out$point
      ),
      label = paste(metric, sign, backend)
    )
    # The result is that of the matrix of the others.
    kept <- all[-left_out$point, ]
    others <- knn_graph(kept, 3, metric, sign, backend = backend)
    attr(edges, "left_out") <- NULL
    expect_identical(edges, others)
    expect_identical(attr(edges, "vertices")$name, rownames(kept))
  }, few_signs())
})

test_that("nothing left out, nothing said", {
  m <- metafeatures(random_matrix(4, 6))
  expect_silent(nn <- knn_search(m, 2))
  expect_named(attributes(nn), c("names", "class", "searched"))
  expect_null(attr(knn_graph(m, 2), "left_out"))
})

test_that("taking edges keeps what was left out", {
  suppressMessages(edges <- knn_graph(metafeatures(with_gaps()), 2))
  expect_identical(
    attr(edges[edges$rank == 1, ], "left_out"), attr(edges, "left_out")
  )
})

test_that("a message says how many are left out, and which first", {
  m <- metafeatures(with_gaps())
  expect_messages({
    nn <- knn_search(m, 2)
    edges <- knn_graph(m[1:5, ], 2)
    asked <- knn_query(m[1:4, ], m, 2)
  })
})

test_that("a k that is too large counts what was left out", {
  m <- metafeatures(with_gaps(), "-")
  expect_messages({
    suppressMessages(knn_search(m, 13))
    suppressMessages(knn_search(metafeatures(matrix(1, 3, 4)), 1))
    knn_search(m, 2, "proportional")
  })
})
