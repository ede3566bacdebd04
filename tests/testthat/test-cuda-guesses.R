# Thresholds that are estimated after a row has met a part of the points. With
# "/hasty", many estimates are too strict, and rows are recomputed.

# Compares the GPU's answer under each setting with the CPU's. `many` is the
# minimum share of recomputed rows under "/hasty".
expect_same_by_guesses <- function(x, k, metric = "pearson", ..., query = NULL,
                                   bits = "", many = 0.02) {
  answer <- function(backend) {
    if (is.null(query)) {
      knn_search(x, k, metric, ..., backend = backend)
    } else {
      knn_query(x, query, k, metric, ..., backend = backend)
    }
  }
  label <- paste(metric, "k =", k, bits)
  expected <- answer("cpu")
  withr::local_options(fsknn.instruction_set = paste0("auto", bits, "/hasty"))
  expect_identical(answer("cuda"), expected, label = label)
  rows <- NROW(if (is.null(query)) x else query)
  expect_gte(knn_stats()$rows_recomputed, many * rows, label = label)
}

skip_if_no_guesses <- function() {
  skip_if_no_cuda()
  usable <- knn_plan(c(4500, 30), k = 3, backend = "cuda")$filter
  skip_if(!nzchar(usable), "No GPU here has the filter.")
}

test_that("rows whose guess was too high are done again", {
  skip_if_no_guesses()
  x <- random_matrix(9000, 70, seed = 61)
  # Up to 32, the exact step confirms an estimate; beyond, the last cut does.
  for (k in c(2, 5, 20, 32, 33, 100, 300, 1100)) {
    expect_same_by_guesses(x, k)
  }
  for (metric in c("cosine", "euclidean", "inner_product", "chebyshev")) {
    for (k in c(20, 40)) expect_same_by_guesses(x, k, metric)
  }
  for (sign in c("absolute", "negative")) {
    expect_same_by_guesses(x, 20, sign = sign)
  }
  for (bits in c("/8", "/16", "/32")) {
    for (metric in c("pearson", "manhattan", "proportional")) {
      if (metric == "pearson" && bits == "/32") next
      suited <- if (metric == "proportional") abs(x) else x
      for (k in c(20, 100)) {
        expect_same_by_guesses(suited, k, metric, bits = bits)
      }
    }
  }
  # There are near-duplicates, and rows of whole numbers.
  expect_same_by_guesses(x + 1e6, 20, "cosine")
  counts <- matrix(abs(round(2 * x)), nrow(x))
  for (metric in c("manhattan", "proportional")) {
    expect_same_by_guesses(counts, 20, metric)
  }
  # No threshold is estimated for one neighbour.
  expect_same_by_guesses(x, 1, many = 0)
})

test_that("guesses are right of ties, copies and rows that stand out", {
  skip_if_no_guesses()
  x <- random_matrix(6000, 40, seed = 62)
  noise <- random_matrix(6000, 40, seed = 63)
  # There are copies, and near-copies that no filter can distinguish.
  copies <- x[rep(1:300, 20), ]
  near <- copies * (1 + 1e-14 * noise)
  # All rows are equal except a few.
  alike <- x[rep(1, 6000), ]
  alike[1:50, ] <- x[1:50, ]
  binary <- matrix(as.double(x > 0.8), nrow(x))
  binary[, 1] <- 1
  huge <- replace(x, cbind(c(7, 4000), c(1, 3)), 1e8)
  for (k in c(19, 20, 40)) {
    expect_same_by_guesses(copies, k, many = 0)
    expect_same_by_guesses(near, k, many = 0)
    expect_same_by_guesses(alike, k, "euclidean", many = 0)
    expect_same_by_guesses(binary, k, "sorensen", many = 0)
    expect_same_by_guesses(huge, k, "euclidean")
    expect_same_by_guesses(huge, k, "inner_product", many = 0)
    expect_same_by_guesses(huge, k, bits = "/8", many = 0)
  }
})

test_that("of copies few guesses are too high", {
  skip_if_no_guesses()
  # More points are at the distance of the k-th neighbour than an estimate
  # admits.
  x <- random_matrix(200, 60, seed = 67)[rep(1:200, 100), ]
  for (metric in c("pearson", "euclidean")) {
    for (k in c(20, 32)) {
      found <- knn_search(x, k, metric, backend = "cuda")
      expect_lte(
        knn_stats()$rows_recomputed, 0.02 * nrow(x), label = paste(metric, k)
      )
      expect_identical(found, knn_search(x, k, metric, backend = "cpu"))
    }
  }
})

test_that("queries are guessed of batch by batch", {
  skip_if_no_guesses()
  x <- random_matrix(7000, 50, seed = 64)
  query <- random_matrix(900, 50, seed = 65)
  query[1:100, ] <- x[1:100, ]
  for (k in c(5, 20, 100)) {
    for (metric in c("pearson", "euclidean", "manhattan")) {
      expect_same_by_guesses(x, k, metric, query = query)
    }
    expect_same_by_guesses(x, k, query = query, bits = "/8")
  }
})

test_that("a guess that is not bold is hardly ever wrong", {
  skip_if_no_guesses()
  for (n in c(5000, 20000)) {
    x <- random_matrix(n, 60, seed = 66)
    for (metric in c("pearson", "euclidean")) {
      for (k in c(20, 60)) {
        found <- knn_search(x, k, metric, backend = "cuda")
        # The risk is 0.01 for each search and round, and there are fewer than
        # ten.
        expect_lte(knn_stats()$rows_recomputed, 2, label = paste(metric, n, k))
        expect_identical(found, knn_search(x, k, metric, backend = "cpu"))
      }
    }
  }
})
