# The same by the definition in words.
written_out <- function(x, ops, extra = NULL) {
  rows <- list(x)
  for (op in ops) {
    for (i in seq_len(nrow(x) - 1)) {
      for (j in seq(i + 1, nrow(x))) {
        row <- rbind(do.call(op, list(x[i, ], x[j, ])))
        rownames(row) <- paste(rownames(x)[[i]], op, rownames(x)[[j]])
        rows[[length(rows) + 1]] <- row
      }
    }
  }
  do.call(rbind, c(rows, list(extra)))
}

test_that("metafeatures are the rows, then the pairs under each operator", {
  x <- small()
  expect_identical(
    as.matrix(metafeatures(x)), written_out(x, c("-", "+", "*", "/"))
  )
  expect_identical(
    as.matrix(metafeatures(x, c("/", "-"))), written_out(x, c("/", "-"))
  )
  expect_identical(
    as.matrix(metafeatures(x[1:2, ], "+")), written_out(x[1:2, ], "+")
  )
  # There is one column.
  expect_identical(
    as.matrix(metafeatures(x[, 1, drop = FALSE], "*")),
    written_out(x[, 1, drop = FALSE], "*")
  )
})

test_that("the paper's numbers of rows come out", {
  x <- matrix(0, 876, 2)
  expect_identical(dim(metafeatures(x, "-")), c(384126L, 2L))
  expect_identical(dim(metafeatures(x)), c(1533876L, 2L))
})

test_that("integers, data frames and Bioconductor's containers will do", {
  x <- small()
  storage.mode(x) <- "integer"
  expect_identical(as.matrix(metafeatures(x, "+")), written_out(x + 0, "+"))
  x <- small()
  expect_identical(
    as.matrix(metafeatures(as.data.frame(x), "-")), written_out(x, "-")
  )
  skip_if_not_installed("Biobase")
  set <- Biobase::ExpressionSet(x)
  expect_identical(as.matrix(metafeatures(set, "-")), written_out(x, "-"))
})

test_that("rows and columns are taken as of a matrix", {
  m <- metafeatures(small())
  all <- as.matrix(m)
  expect_identical(as.matrix(m[c(50, 3, 3, 91), ]), all[c(50, 3, 3, 91), ])
  expect_identical(as.matrix(m[-(1:80), 2:4]), all[-(1:80), 2:4])
  expect_identical(
    as.matrix(m[c(TRUE, FALSE, FALSE), ]), all[c(TRUE, FALSE, FALSE), ]
  )
  expect_identical(as.matrix(m[, c("s3", "s1")]), all[, c("s3", "s1")])
  names <- c("g2 * g6", "g1", "g1 - g7", "g6 / g7")
  expect_identical(as.matrix(m[names, ]), all[names, ])
  expect_identical(m["g2 * g6", ], all["g2 * g6", ])
  expect_identical(m[4:6, 2], all[4:6, 2])
  expect_identical(m["g2 + g3", "s4"], all["g2 + g3", "s4"])
  at <- cbind(c(9, 9, 70), c(1, 2, 5))
  expect_identical(m[at], all[at])
  expect_s3_class(m["g2 * g6", , drop = FALSE], "metafeatures")
  # Rows are selected from a selection.
  again <- m[40:60, ][c(3, 1), ]
  expect_identical(as.matrix(again), all[c(42, 40), ])
  expect_identical(again[rownames(all)[[40]], ], all[40, ])
  expect_identical(dim(m[integer(), ]), c(0L, 9L))
  expect_identical(as.matrix(utils::head(m, 2)), all[1:2, ])
})

test_that("it is a seed for DelayedArray", {
  skip_if_not_installed("DelayedArray")
  m <- metafeatures(small())
  delayed <- DelayedArray::DelayedArray(m)
  expect_identical(dim(delayed), dim(m))
  expect_identical(as.matrix(delayed), as.matrix(m))
  expect_identical(
    as.matrix(delayed[c(90, 2, 2), 3:1]), as.matrix(m)[c(90, 2, 2), 3:1]
  )
  expect_identical(
    DelayedArray::extract_array(m, list(c(20L, 4L), NULL)),
    as.matrix(m)[c(20, 4), ]
  )
  expect_equal(as.vector(sum(delayed)), sum(as.matrix(m)))
})

test_that("products of binary rows are binary: what both have", {
  x <- values_for(small(12, 9), "jaccard")
  m <- metafeatures(x, "*")
  for (backend in backends_here()) {
    for (metric in c("jaccard", "sorensen")) {
      found <- suppressMessages(knn_search(m, 4, metric, backend = backend))
      skip <- attr(found, "left_out")$point
      expect_gt(length(skip), 0) # those that no two rows have in common
      expect_same_bits(
        as_neighbours(found[c("index", "distance")]),
        brute_force(as.matrix(m), k = 4, metric = metric, skip = skip)
      )
    }
  }
})

test_that("every metric finds the neighbours of the matrix of all rows", {
  m <- metafeatures(small(9, 11))
  for_all_metrics(function(metric, sign, backend) {
    if (fsknn:::metric_facts(metric)$levels > 0) {
      return() # see the next test
    }
    if (metric == "proportional") {
      m <- metafeatures(abs(small(9, 11)), c("+", "*", "/"))
    }
    all <- as.matrix(m)
    expect_identical(
      knn_search(m, 4, metric, sign, backend = backend),
      without_names(knn_search(all, 4, metric, sign, backend = backend)),
      label = paste(metric, sign, backend)
    )
    expect_identical(
      knn_graph(m, 3, metric, sign, backend = backend),
      knn_graph(all, 3, metric, sign, backend = backend)
    )
    expect_same_bits(
      knn_search(m, 2, metric, sign, backend = backend),
      brute_force(all, k = 2, metric = metric, sign = sign)
    )
    for (some in list(c(101, 3), 20:70)) {
      expected <- without_names(knn_query(all, all[some, ], 4, metric, sign))
      expect_identical(
        knn_query(m, m[some, ], 4, metric, sign, backend = backend), expected
      )
      expect_identical(
        knn_query(all, m[some, ], 4, metric, sign, backend = backend), expected
      )
      expect_identical(
        without_names(
          knn_query(m, all[some, ], 4, metric, sign, backend = backend)
        ),
        expected
      )
    }
  })
})

test_that("chunks, threads and the order of rows change nothing", {
  m <- metafeatures(small(14, 8))
  first <- knn_search(m, 6)
  for (chunk_size in c(48, 96, 1e6)) {
    for (num_threads in 1:2) {
      expect_same_bits(
        knn_search(m, 6, chunk_size = chunk_size, num_threads = num_threads),
        first
      )
    }
  }
  some <- c(300, 2, 44, 45, 46, 120:150)
  expect_same_bits(
    knn_search(m[some, ], 6), without_names(knn_search(as.matrix(m)[some, ], 6))
  )
})

test_that("a plan of metafeatures holds no matrix of them", {
  m <- metafeatures(matrix(0, 876, 295))
  plan <- knn_plan(m, backend = "cpu")
  expect_identical(plan$num_points, 1533876)
  expect_lt(plan$bytes_prepared, 100 * 2^20)
  plan <- knn_plan(c(1533876, 295), backend = "cpu")
  expect_gt(plan$bytes_prepared, 3 * 2^30)
})

test_that("printing says what it is made of", {
  expect_snapshot({
    metafeatures(matrix(0, 876, 78))
    m <- metafeatures(small(), c("-", "/"))
    m
    add_phenotype(m, 1:9, "outcome")
    m[c(1, 20), ]
    m[20, , drop = FALSE]
    m[0, ]
  })
})

test_that("wrong arguments are errors that say what can be done", {
  x <- small()
  m <- metafeatures(x, "-")
  expect_messages({
    metafeatures()
    metafeatures("a")
    metafeatures(x[1, , drop = FALSE])
    metafeatures(x[, 0])
    metafeatures(replace(x, 3, NA))
    metafeatures(x, "%")
    metafeatures(x, character())
    metafeatures(x, 1)
    metafeatures(x, c("-", "-"))
    metafeatures(m)
    metafeatures(matrix(0, 40000, 1))
    m["g9", ]
    m["g2 - g1", ]
    m[c("a", "b", "c", "d"), ]
    m[29, ]
    m[3]
    m[list(1), ]
    m[rep(TRUE, 100), ]
  })
})
