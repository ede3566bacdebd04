# Later APIs of BiocNeighbors, simulated by packages of its name and form
# (folder neighbours), each in its own process.

data_for_apis <- function() {
  x <- random_matrix(30, 4)
  rownames(x) <- paste0("c", 1:30)
  list(x = x, y = random_matrix(6, 4, seed = 2))
}

answers_of_api <- function(version) {
  skip_on_cran()
  library <- withr::local_tempdir()
  source <- testthat::test_path("neighbours", version)
  log <- suppressWarnings(system2(
    file.path(R.home("bin"), "R"),
    c("CMD", "INSTALL", "--no-docs", "--no-test-load", "--no-byte-compile",
      shQuote(paste0("--library=", library)), shQuote(source)),
    stdout = TRUE, stderr = TRUE
  ))
  data <- withr::local_tempfile(fileext = ".rds")
  out <- withr::local_tempfile(fileext = ".rds")
  saveRDS(data_for_apis(), data)
  said <- suppressWarnings(system2(
    file.path(R.home("bin"), "Rscript"),
    shQuote(c(testthat::test_path("neighbours", "calls.R"), data, out)),
    stdout = TRUE, stderr = TRUE,
    env = paste0("R_LIBS=", paste(c(library, .libPaths()), collapse = ":"))
  ))
  if (!file.exists(out)) {
    stop(paste(c(log, said), collapse = "\n"))
  }
  readRDS(out)
}

expect_answers <- function(found) {
  data <- data_for_apis()
  names <- rownames(data$x)
  # BiocNeighbors' answers have no names.
  x <- unname(data$x)
  y <- unname(data$y)
  full <- knn_search(x, 5, "euclidean")
  four <- lapply(full, function(m) m[, 1:4])
  query <- bare(knn_query(x, y, 4, "euclidean"))
  within <- bare(within_search(x, 1.5, "euclidean"))
  rows <- function(found, at) lapply(found, function(m) m[at, ])
  as_lists <- function(found, k) {
    lapply(found, function(m) {
      k <- rep_len(k, nrow(m))
      lapply(seq_len(nrow(m)), function(i) m[i, seq_len(k[[i]])])
    })
  }
  for (name in c("find", "find_index", "find_turned", "find_threads")) {
    expect_identical(found[[name]], four, info = name)
  }
  expect_identical(found$find_pearson, bare(knn_search(x, 4, "pearson")))
  expect_identical(found$find_transposed, lapply(four, t))
  expect_identical(found$find_no_distance, four["index"])
  expect_identical(found$find_subset, rows(four, c(9, 2)))
  expect_identical(found$find_named, rows(four, c(9, 2)))
  expect_identical(found$find_each, as_lists(full, c(2, 5)))
  expect_identical(found$find_as_is, lapply(four, function(m) list(m[7, 1:3])))
  expect_match(found$find_wrong_k, "must be equal")
  expect_match(found$find_wrong_subset, "out-of-range")
  expect_identical(
    found$find_capped$value, bare(knn_search(x[1:4, ], 3, "euclidean"))
  )
  expect_identical(
    found$find_capped$warnings,
    "'k' capped at the number of observations minus 1"
  )
  expect_identical(dim(found$find_empty$value$index), c(0L, 0L))
  expect_match(found$find_empty$warnings, "capped")
  # These versions do not warn of ties.
  expect_identical(found$find_ties$warnings, character())

  for (name in c("query", "query_index", "query_turned")) {
    expect_identical(found[[name]], query, info = name)
  }
  expect_identical(found$query_subset, rows(query, 3:2))
  expect_identical(found$query_each, as_lists(query, 2:3))
  expect_identical(
    found$query_capped$value,
    bare(knn_query(x[1:4, ], y, 4, "euclidean"))
  )
  expect_identical(
    found$query_capped$warnings, "'k' capped at the number of observations"
  )

  expect_identical(found$within, within)
  expect_identical(found$within_index, within)
  expect_identical(found$within_count, lengths(within$index))
  expect_identical(found$within_subset, lapply(within, `[`, c(9, 2)))
  expect_identical(
    found$query_within, bare(within_query(x, y, 1.5, "euclidean"))
  )

  expect_identical(found$distance, four$distance[, 4])
  expect_identical(
    found$distance_each, full$distance[cbind(1:30, rep(c(2, 5), 15))]
  )
  expect_identical(found$distance_subset, four$distance[c(9, 2), 4])
  expect_identical(found$query_distance, query$distance[, 4])

  expect_identical(found$distance_none, numeric(30))
  expect_identical(found$distance_one, 0)
  expect_identical(found$query_distance_none, numeric(6))

  for (name in c(
    "find_zero", "find_negative", "within_zero", "distance_zero"
  )) {
    expect_match(found[[name]], "out-of-range", info = name)
  }
  # Negative numbers exclude queries, as in R.
  expect_identical(found$query_without, rows(query, -2))
  expect_match(found$find_wrong_ks, "must be equal")
  expect_match(found$find_negative_k, "positive")

  # A row of zeros stays unchanged, at distance 0 or 1 from others.
  zero <- found$find_zero_rows
  expect_identical(zero$index[c(3, 9), 1], c(9L, 3L))
  expect_equal(
    zero$distance[c(3, 9), ], matrix(c(0, 1, 1, 1), 2, 4, byrow = TRUE)
  )
  expect_equal(found$query_zero_rows$distance[2, ], rep(1, 4))

  for (name in c("find_missing", "query_missing", "within_missing")) {
    expect_match(found[[name]], "non-finite values", info = name)
  }
  expect_match(found$find_letters, "unknown type")

  expect_identical(found$index_names, names)
  expect_identical(found$builders, lapply(
    c(Euclidean = "Euclidean", Manhattan = "Manhattan", Cosine = "Cosine"),
    function(name) list(builder = name, class = "ExhaustiveIndex")
  ))
  expect_match(found$no_builder, "no builder for distance \"pearson\"")
  expect_match(found$no_builder_na, "no builder for `na`")

  expect_identical(found$mutual, list(
    t(knn_query(y, x, 2, "euclidean")$index),
    t(knn_query(x, y, 3, "euclidean")$index)
  ))
  expect_identical(
    found$index_shown,
    c("class: FsknnIndex", "size: 30 x 4", "distance: Euclidean")
  )
  expect_identical(found$param_distance, "pearson")
}

test_that("BiocNeighbors 2.0 to 2.4 find our methods", {
  found <- answers_of_api("2.0")
  expect_identical(found$version, "2.0.1")
  expect_answers(found)
  expect_identical(found$find_bnindex, found$find)
})

test_that("BiocNeighbors 2.5.1 and later find our methods", {
  found <- answers_of_api("2.7")
  expect_identical(found$version, "2.7.1")
  expect_answers(found)
  expect_identical(found$find_loaded, found$find)
  skip_if_not_installed("Matrix")
  expect_identical(found$find_sparse, found$find)
})
