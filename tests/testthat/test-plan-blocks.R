# knn_plan(block = , adjust = ) compared with its searches.

# Counts the compared pairs of points by a loop.
pairs_between <- function(block, between) {
  # For many blocks together, all pairs are compared, and some are skipped.
  if (identical(between, "together") && length(unique(block)) > 16) {
    between <- FALSE
  }
  sizes <- as.double(table(block))
  all <- sum(sizes) * (sum(sizes) - 1) / 2
  if (isFALSE(between)) all else all - sum(sizes * (sizes - 1) / 2)
}

test_that("a search by block looks at the pairs that its plan says", {
  cases <- list(
    few = list(n = 400, block = rep(c("a", "b", "c"), c(200, 150, 50))),
    many = list(n = 400, block = rep_len(1:20, 400))
  )
  for (case in cases) {
    x <- random_matrix(case$n, 12)
    for (between in list(FALSE, TRUE, "together")) {
      of <- function(...) {
        knn_plan(
          x, k = 4, metric = "euclidean", block = case$block,
          between = between, backend = "cpu", num_threads = 2, ...
        )
      }
      plan <- of()
      expect_identical(plan$num_pairs, pairs_between(case$block, between))
      found <- knn_search(
        x, 4, "euclidean", block = case$block, between = between,
        backend = "cpu", num_threads = 2
      )
      # For a block with itself, a search counts half of its square.
      looked_at <- knn_stats()$pairs_filtered
      expect_gte(looked_at, plan$num_pairs)
      expect_lte(looked_at, plan$num_pairs + case$n / 2)
      expect_identical(plan$bytes_result, 12 * as.double(length(found$index)))
      # The plan is what a search reports.
      told <- capture_messages(knn_search(
        x, 4, "euclidean", block = case$block, between = between,
        backend = "cpu", num_threads = 2, verbose = TRUE
      ))
      shown <- strsplit(told[[1]], "\n", fixed = TRUE)[[1]]
      expect_true(all(format(plan) %in% shown))
      # A list of each block is kept, one more than requested between blocks.
      lists <- if (identical(between, "together")) {
        1
      } else {
        length(unique(case$block))
      }
      expect_identical(
        of()$bytes_working - knn_plan(
          c(case$n, 12), k = 4, metric = "euclidean", backend = "cpu",
          num_threads = 2, chunk_size = plan$chunk_size
        )$bytes_working,
        case$n * (lists - 1) * (4 * 12 + 16)
      )
      expect_identical(plan$bytes_peak, plan$bytes_prepared +
        plan$bytes_filter + plan$bytes_result + plan$bytes_working)
    }
  }
})

test_that("chunks of a plan by block are those of pairs of blocks", {
  block <- rep(c("a", "b", "c"), c(1000, 500, 100))
  plan <- function(between) {
    knn_plan(
      c(1600, 20), k = 4, block = block, between = between, backend = "cpu",
      num_threads = 1, chunk_size = 96
    )
  }
  chunks <- ceiling(c(1000, 500, 100) / 96)
  all <- sum(chunks) * (sum(chunks) + 1) / 2
  own <- sum(chunks * (chunks + 1) / 2)
  expect_identical(plan(FALSE)$num_chunks, all)
  expect_identical(plan(TRUE)$num_chunks, all - own)
  expect_identical(plan("together")$num_chunks, all - own)
  expect_identical(plan(FALSE)$num_splits, sum(chunks))
})

test_that("queries, and missing values, are planned block by block", {
  x <- random_matrix(120, 9)
  block <- gl(3, 40)
  plan <- knn_plan(
    x, k = 3, metric = "euclidean", query = 30, block = block, backend = "cpu"
  )
  found <- knn_query(
    x, random_matrix(30, 9, 2), k = 3, metric = "euclidean", block = block,
    backend = "cpu"
  )
  expect_identical(plan$num_pairs, 120 * 30)
  expect_identical(plan$bytes_result, 12 * as.double(length(found$index)))
  plan <- function(between) {
    knn_plan(
      c(120, 9), k = 3, metric = "euclidean", block = block, between = between,
      backend = "cpu", na = "pairwise"
    )
  }
  # Points of two blocks are compared twice.
  expect_identical(plan(FALSE)$num_pairs, 3 * (40 * 39 / 2) + 120 * 80)
  expect_identical(plan(TRUE)$num_pairs, 120 * 80)
  expect_identical(plan("together")$num_pairs, 120 * 80)
  expect_identical(plan(TRUE)$bytes_result, 120 * 6 * 12)
})

test_that("covariates are checked, and counted in memory", {
  x <- random_matrix(100, 16)
  samples <- data.frame(batch = rep(c("a", "b"), 8), age = 1:16)
  plain <- knn_plan(x, k = 3, backend = "cpu", num_threads = 1)
  plan <- knn_plan(
    x, k = 3, backend = "cpu", num_threads = 1, adjust = ~ batch + age,
    data = samples
  )
  expect_identical(plan$num_covariates, 2L)
  expect_identical(
    plan_of(c(100, 16), k = 3, backend = "cpu", num_threads = 1,
            adjust = ~ batch + age, data = samples),
    plan_of(x, k = 3, backend = "cpu", num_threads = 1,
            adjust = ~ batch + age, data = samples)
  )
  # The basis has rows as long as the points'.
  more <- plan$bytes_prepared - plain$bytes_prepared
  expect_gte(more, 2 * 16 * 8)
  expect_lte(more, 8 * 16 * 8)
  same <- setdiff(
    names(plan), c("num_covariates", "bytes_prepared", "bytes_peak")
  )
  expect_identical(plan[same], plain[same])
  expect_output(print(plan), "2 covariates")
  told <- capture_messages(knn_search(
    x, 3, backend = "cpu", num_threads = 1, adjust = ~ batch + age,
    data = samples, verbose = TRUE
  ))
  expect_match(told[[1]], "2 covariates")
  expect_identical(
    knn_plan(
      t(x), k = 3, points = "columns", backend = "cpu", num_threads = 1,
      adjust = samples$age
    )$num_covariates,
    1L
  )
})

test_that("blocks of a plan may be by name", {
  x <- random_matrix(60, 5)
  rownames(x) <- paste0("p", 1:60)
  block <- stats::setNames(rep(c("a", "b"), c(20, 40)), rownames(x))
  of <- function(block) {
    plan_of(x, k = 3, block = block, between = TRUE, backend = "cpu")
  }
  expect_identical(of(rev(block)), of(unname(block)))
  expect_identical(of(block)$num_pairs, 800)
})

test_that("wrong blocks and covariates are errors of a plan, too", {
  expect_messages({
    knn_plan(c(100, 5), k = 2, block = 1:99, backend = "cpu")
    knn_plan(c(100, 5), k = 2, between = TRUE)
    knn_plan(c(100, 5), k = 60, block = gl(2, 50), backend = "cpu")
    knn_plan(c(100, 5), k = 2, adjust = 1:4)
    knn_plan(c(100, 5), k = 2, metric = "cosine", adjust = 1:5)
  })
})
