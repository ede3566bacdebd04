# The best triples of each point, compared with every triple by itself.

naive_nearest <- function(x, k, of = seq_len(nrow(x))) {
  all <- naive_triples(x)
  # Rounding makes ties of values that differ only by rounding errors.
  all$similarity <- round(all$similarity, 12)
  rows <- lapply(of, function(point) {
    ends <- as.matrix(all[1:3])
    mine <- ends[rowSums(ends == point) > 0, , drop = FALSE]
    value <- all$similarity[rowSums(ends == point) > 0]
    others <- matrix(t(mine)[t(mine) != point], ncol = 2, byrow = TRUE)
    at <- order(-value, others[, 1], others[, 2])[seq_len(k)]
    list(others[at, 1], others[at, 2], value[at])
  })
  column <- function(at) {
    matrix(unlist(lapply(rows, `[[`, at)), ncol = k, byrow = TRUE)
  }
  list(second = column(1), third = column(2), similarity = column(3))
}

expect_nearest <- function(found, expected) {
  expect_identical(unname(found$second), expected$second)
  expect_identical(unname(found$third), expected$third)
  expect_equal(unname(found$similarity), expected$similarity,
               tolerance = 1e-11)
}

test_that("the best triples of each point are found, ties by the indices", {
  for (case in list(c(3, 1), c(5, 2), c(12, 4), c(20, 17))) {
    x <- counts_matrix(case[[1]], case[[2]])
    most <- choose(nrow(x) - 1, 2)
    for (k in unique(pmin(c(1, 3, most), most))) {
      expected <- naive_nearest(x, k)
      for (path in c("auto", "pairs", "all")) {
        expect_nearest(nearest_triples(x, k, path = path), expected)
      }
    }
  }
})

test_that("threads and paths do not change a bit", {
  x <- exp(random_matrix(25, 10))
  first <- nearest_triples(x, 6, num_threads = 1, path = "all")
  for (path in c("auto", "pairs", "all")) {
    expect_identical(nearest_triples(x, 6, num_threads = 2, path = path), first)
  }
  all <- threshold_triples(x, 0)
  at <- order(-all$similarity, all$from, all$to, all$third)[[1]]
  expect_identical(max(first$similarity), all$similarity[[at]])
})

test_that("subset gives the rows of the whole answer, in its order", {
  x <- exp(random_matrix(15, 6))
  rownames(x) <- paste0("g", 1:15)
  all <- nearest_triples(x, 4)
  some <- nearest_triples(x, 4, subset = c("g9", "g2"))
  for (part in c("second", "third", "similarity")) {
    expect_identical(some[[part]], all[[part]][c(9, 2), ])
  }
  frame <- as.data.frame(some)
  expect_identical(frame$point, rep(c("g9", "g2"), each = 4))
  expect_identical(frame$rank, rep(1:4, 2))
  expect_identical(frame$second, rownames(x)[t(some$second)])
})

test_that("isolated points have none", {
  x <- counts_matrix(9, 5)
  x[4, ] <- 0
  found <- nearest_triples(x, 2, constant = "isolate")
  expect_true(all(is.na(found$second[4, ])))
  expect_false(any(found$second == 4 | found$third == 4, na.rm = TRUE))
  expect_nearest(
    lapply(unclass(found), function(part) part[-4, ]),
    naive_nearest(x, 2, (1:9)[-4])
  )
  expect_identical(nrow(as.data.frame(found)), 16L)
})

test_that("triples of points print, and have a summary", {
  x <- counts_matrix(9, 5)
  x[4, ] <- 0
  found <- nearest_triples(x, 2, constant = "isolate")
  found$similarity[] <- ifelse(is.na(found$similarity), NA, 0.5)
  expect_snapshot({
    found
    summary(found)
  })
})

test_that("wrong inputs are errors", {
  x <- counts_matrix(6, 4)
  expect_messages({
    nearest_triples(x, 0)
    nearest_triples(x, 11)
    nearest_triples(x, 2, subset = "a")
    nearest_triples(x, 2, subset = logical(6))
    nearest_triples(x, 2, "cosine")
    nearest_triples(x[1:2, ], 1)
  })
})

test_that("an answer that does not fit is an error that says what would", {
  x <- matrix(as.double(1:120 %% 11), nrow = 20)
  expect_messages({
    nearest_triples(x, k = 10, max_memory = 5000)
    nearest_triples(x, k = 10, max_memory = 100)
  })
  expect_error(
    nearest_triples(x, k = 10, max_memory = 5000), class = "fsknn_size_error"
  )
  expect_identical(
    nearest_triples(x, k = 7, max_memory = 5000), nearest_triples(x, k = 7)
  )
})

test_that("points that have none print so, though there be no others", {
  x <- counts_matrix(8, 5)
  x[3, ] <- 0
  found <- nearest_triples(x, 2, subset = 3, constant = "isolate")
  expect_no_warning(expect_snapshot({
    found
    summary(found)
  }))
  expect_identical(nrow(as.data.frame(found)), 0L)
})

test_that("the best triples of loci are found, ties by the indices", {
  for (metric in c("ccc", "duo")) {
    x <- genotype_matrix(22, 9, if (metric == "ccc") 2 else 1)
    rownames(x) <- paste0("rs", 1:22)
    all <- threshold_triples(unname(x), 0, metric)
    k <- 12
    found <- nearest_triples(x, k, metric, num_threads = 1)
    expect_identical(
      nearest_triples(x, k, metric, num_threads = 2), found
    )
    for (point in 1:22) {
      mine <- all[all$from == point | all$to == point | all$third == point, ]
      ends <- as.matrix(as.data.frame(mine)[1:3])
      others <- matrix(t(ends)[t(ends) != point], ncol = 2, byrow = TRUE)
      at <- order(-mine$similarity, others[, 1], others[, 2])[1:k]
      expect_identical(unname(found$second[point, ]), others[at, 1])
      expect_identical(unname(found$third[point, ]), others[at, 2])
      expect_identical(unname(found$similarity[point, ]), mine$similarity[at])
      for (rank in c(1, k)) {
        rows <- c(point, others[at[[rank]], ])
        expected <- naive_table(
          unname(x[rows, ]), if (metric == "ccc") 2 else 1,
          if (metric == "ccc") 9 / 2 else 4
        )
        expect_one_of(found$alleles[[point, rank]], expected$alleles)
      }
    }
    some <- nearest_triples(x, k, metric, subset = c("rs9", "rs2"))
    expect_identical(some$alleles, found$alleles[c(9, 2), ])
    frame <- as.data.frame(some)
    expect_identical(
      as.character(frame$alleles[1:k]), unname(found$alleles[9, ])
    )
    folder <- withr::local_tempdir()
    expect_identical(
      nearest_triples(x, k, metric, checkpoint = folder), found
    )
    expect_output(print(found), "second, third, similarity, alleles")
  }
})
