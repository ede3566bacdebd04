triple_plan <- function(...) threshold_triples(..., plan = TRUE)

# The plan of a search for triples, compared with the search.

test_that("a plan counts what is asked of, and foretells what is found", {
  x <- exp(random_matrix(260, 9))
  plan <- triple_plan(x, 0.6)
  expect_identical(plan$num_triples, choose(260, 3))
  expect_identical(plan$path, "all")
  expect_identical(plan$sampled, 96)
  expect_identical(plan$sample_pairs, 1)
  found <- triple_histogram(x, c(0.6, 1))$triples
  expect_gt(plan$expected, found / 1.5)
  expect_lt(plan$expected, found * 1.5)
  # All triples are computed if no pair can be pruned.
  expect_identical(plan$comparisons, choose(260, 3) * 9)
})

test_that("plans of stages add up, and a subset has the triples of its points", {
  x <- exp(random_matrix(200, 5))
  of_stages <- vapply(1:7, function(i) {
    triple_plan(x, 0.6, stage = c(i, 7))$num_triples
  }, 0)
  expect_identical(sum(of_stages), choose(200, 3))
  for (subset in list(4, c(1, 200, 17))) {
    plan <- triple_plan(x, 0.6, subset = subset)
    expect_identical(
      plan$num_triples,
      nrow(threshold_triples(x, 0, subset = subset)) + 0
    )
    expect_true(is.na(plan$expected))
  }
})

# Makes six groups of points.
six_groups <- function(noise) {
  exp(2 * random_matrix(6, 160)[rep(1:6, 50), ] +
        noise * random_matrix(300, 160, 2))
}

test_that("the path is the one that the search takes, and both say so", {
  # Few pairs are similar, and few triangles of them can have such a triple.
  x <- six_groups(0.7)
  plan <- triple_plan(x, 0.85)
  expect_identical(plan$path, "pairs")
  expect_gt(plan$sample_pairs, 0.1)
  expect_lt(plan$sample_pairs, 0.2)
  expect_lt(
    plan$comparisons, triple_plan(x, 0.85, path = "all")$comparisons / 10
  )
  told <- paste(
    testthat::capture_messages(threshold_triples(x, 0.85, verbose = TRUE)),
    collapse = ""
  )
  expect_match(told, "Path: pairs (of the pairs of 96 points 16", fixed = TRUE)
  expect_identical(triple_plan(x, 0.5)$path, "all")
  expect_match(
    format(triple_plan(x, 0.99)), "few: pairs rule out all", all = FALSE,
    fixed = TRUE
  )
  expect_identical(triple_plan(x[1:192, ], 0.85)$sampled, 0)
})

test_that("points that stand in triples together are foretold roughly", {
  x <- six_groups(0.3)
  plan <- triple_plan(x, 0.8)
  found <- nrow(threshold_triples(x, 0.8))
  expect_gt(plan$expected, found / 2)
  expect_lt(plan$expected, found * 2)
})

test_that("where pairs are many but triangles have no room, pairs are taken", {
  x <- exp(0.8 * random_matrix(250, 300))
  plan <- triple_plan(x, 0.8)
  expect_gt(plan$sample_pairs, 0.9)
  expect_identical(plan$path, "pairs")
})

test_that("plans print", {
  x <- counts_matrix(20, 6)
  expect_snapshot({
    triple_plan(x, 0.8, backend = "cpu")
    triple_plan((x > 1) + 0, 0.8, "sorensen", subset = 1:2, stage = c(1, 3),
                constant = "isolate", backend = "cpu")
  })
  expect_messages({
    triple_plan(x)
    triple_plan(x, 2)
    triple_plan(x, 0.8, path = "some")
    triple_plan(-x, 0.8)
    triple_plan(x, 0.8, file = "found.csv")
    triple_plan(x, 0.8, stages = 3)
    triple_plan(x, 0.8, checkpoint = "folder")
  })
})

test_that("a threshold that a sample names is counted before it is told", {
  # Triples are rare, so no sample of 96 points has one.
  x <- exp(random_matrix(260, 8))
  x[1:40, ] <- x[rep(1:8, 5), ] * (1 + 0.01 * abs(random_matrix(40, 8, 2)))
  for (most in c(10, 1000)) {
    failure <- expect_error(
      threshold_triples(x, 0.3, max_memory = 120 * most),
      class = "fsknn_size_error"
    )
    expect_true(is.finite(failure$fits))
    expect_match(conditionMessage(failure), "would fit", fixed = TRUE)
    fits <- fsknn:::round_up(failure$fits)
    expect_lte(nrow(threshold_triples(x, fits)), most)
  }
})
