test_that("each column is a permutation, and set.seed() repeats them", {
  set.seed(1)
  first <- draw_permutations(7, 50)
  expect_type(first, "integer")
  expect_identical(dim(first), c(7L, 50L))
  expect_true(all(apply(first, 2, sort) == 1:7))
  expect_gt(ncol(unique(first, MARGIN = 2)), 45)
  set.seed(1)
  expect_identical(draw_permutations(7, 50), first)
  # Fewer permutations are the first of more.
  set.seed(1)
  expect_identical(draw_permutations(7, 20), first[, 1:20])
})

test_that("all permutations are as frequent", {
  set.seed(2)
  drawn <- draw_permutations(4, 12000)
  counts <- table(apply(drawn, 2, paste, collapse = ""))
  expect_length(counts, 24)
  expect_gt(stats::chisq.test(counts)$p.value, 1e-4)
})

test_that("strata are kept, in whatever type they are given", {
  strata <- c("b", "a", "b", "c", "a", "b", "a")
  set.seed(3)
  drawn <- draw_permutations(7, 200, strata)
  expect_true(all(strata[drawn] == strata))
  expect_true(all(apply(drawn, 2, sort) == 1:7))
  expect_true(all(drawn[4, ] == 4))
  # With three samples of one kind and three of another, all 36 arrangements
  # occur.
  expect_identical(ncol(unique(drawn, MARGIN = 2)), 36L)
  for (same in list(factor(strata), factor(strata, c("c", "b", "a")),
                    match(strata, letters))) {
    set.seed(3)
    expect_identical(draw_permutations(7, 200, same), drawn)
  }
})

test_that("a stratum of one sample is no vector of 1 to it", {
  # sample(5) would permute five numbers.
  expect_identical(draw_permutations(5, 3, c(1, 2, 3, 4, 5)), matrix(1:5, 5, 3))
  expect_identical(draw_permutations(1, 2), matrix(1L, 1, 2))
  expect_identical(dim(draw_permutations(4, 0)), c(4L, 0L))
})

test_that("what was observed counts as a permutation", {
  expect_identical(permutation_p(c(0, 3, 99), 99), c(0.01, 0.04, 1))
})

test_that("strata may be a column of sample data, and become numbers", {
  expect_null(check_strata(NULL, matrix(0, 2, 3), 3))
  expect_identical(
    check_strata(c("u", "v", "u"), matrix(0, 2, 3), 3), c(1L, 2L, 1L)
  )
  expect_identical(
    check_strata(factor(c("u", "v", "u")), matrix(0, 2, 3), 3), c(1L, 2L, 1L)
  )
  skip_if_not_installed("SummarizedExperiment")
  set <- SummarizedExperiment::SummarizedExperiment(
    matrix(0, 2, 3), colData = data.frame(batch = c(4, 7, 4))
  )
  expect_identical(check_strata("batch", set, 3), c(1L, 2L, 1L))
})

test_that("wrong permutations and strata are errors that say why", {
  x <- matrix(0, 2, 4)
  verb <- function(permutations = 10, strata = NULL) {
    count <- check_permutations(permutations)
    check_strata(strata, x, 4, !is.null(count))
  }
  expect_messages({
    verb(0)
    verb(2.5)
    verb("many")
    verb(strata = 1:3)
    verb(strata = list(1, 1, 2, 2))
    verb(strata = c(1, NA, 1, NA))
    verb(strata = 1:4)
    verb(NULL, c(1, 1, 2, 2))
  })
})

test_that("more permutations than memory has room for are an error", {
  x <- random_matrix(60, 60)
  edges <- knn_graph(x, 3, backend = "cpu")
  # Each would need more than 1 TiB.
  many <- .Machine$integer.max
  calls <- list(
    function() nearest_to(x, 1, 2, permutations = many),
    function() edge_significance(edges, x, permutations = many),
    function() compare_neighbours(x, rep(1:2, 30), k = 2, permutations = many),
    function() {
      module_summary(rep(1:2, 30), x, outcome = x[1, ], permutations = many)
    },
    function() {
      neighbour_mixing(edges, rep(1:2, 30), permutations = many)
    }
  )
  for (call in calls) {
    expect_wrong(call(), "`permutations` must be at most .* here")
  }
})
