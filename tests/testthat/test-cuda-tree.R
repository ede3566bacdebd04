# GPUs put points in the order of a tree and prune blocks of pairs by boxes, if
# this is asked for or a sample says that it pays. No answer changes.

# Returns the answer with points in this order.
found_in <- function(order, x, k, ...) {
  withr::local_options(fsknn.instruction_set = paste0("auto/", order))
  found <- knn_search(x, k, "euclidean", backend = "cuda", devices = 1, ...)
  list(neighbours = bare(found), stats = knn_stats())
}

# Expects equal answers, and that pairs were pruned in the order of a tree.
expect_same_in_tree <- function(x, k, prunes = TRUE) {
  tree <- found_in("tree", x, k)
  expect_identical(tree$neighbours, found_in("scattered", x, k)$neighbours)
  # Recomputed rows are compared again.
  pairs <- with(tree$stats, pairs_filtered + pairs_pruned)
  again <- nrow(x) * tree$stats$rows_recomputed
  n <- nrow(x)
  if (tree$stats$filtered) {
    expect_gte(pairs, n * (n - 1) / 2)
    expect_lte(pairs, n * (n - 1) / 2 + again)
  }
  if (prunes) expect_gt(tree$stats$pairs_pruned, 0)
  invisible(tree$stats)
}

# Clusters of near points, as in an atlas of cells.
clustered <- function(n, d, clusters = 40, seed = 1) {
  centres <- 10 * random_matrix(clusters, d, seed = seed)
  centres[rep_len(seq_len(clusters), n), ] +
    random_matrix(n, d, seed = seed + 1)
}

test_that("a tree prunes blocks and changes no answer", {
  skip_if_no_cuda()
  x <- clustered(20000, 20)
  skip_if(!found_in("scattered", x, 5)$stats$filtered, "No filter here.")
  for (k in c(1, 15, 33, 64)) expect_same_in_tree(x, k)
  stats <- expect_same_in_tree(x, 15)
  expect_lt(stats$pairs_filtered, stats$pairs_pruned / 2)
  # Longer lists are not filled by one block, and no block is pruned.
  expect_equal(found_in("tree", x, 65)$stats$pairs_pruned, 0)
  expect_equal(found_in("tree", x[, rep(1:20, 7)], 5)$stats$pairs_pruned, 0)
})

test_that("a tree's boxes hold hostile points", {
  skip_if_no_cuda()
  x <- clustered(6000, 7, clusters = 9)
  skip_if(!found_in("scattered", x, 5)$stats$filtered, "No filter here.")
  # Ties at the bound: few values, copies, and points on a line.
  expect_same_in_tree(round(x / 4), 20, prunes = FALSE)
  expect_same_in_tree(x[rep(1:60, 100), ], 30, prunes = FALSE)
  expect_same_in_tree(cbind(1:6000, 0), 15)
  expect_same_in_tree(cbind(floor(1:6000 / 300), 0), 15, prunes = FALSE)
  expect_same_in_tree(matrix(0, 6000, 3), 15, prunes = FALSE)
  # Far from 0, of huge and tiny length, and with rows far from all others.
  for (changed in list(x + 1e9, x - 1e15, x * 1e150, x * 1e-160, x * 1e-300)) {
    expect_same_in_tree(changed, 15, prunes = FALSE)
  }
  x[c(1, 3000, 6000), 2] <- c(1e200, -1e190, 1e30)
  expect_same_in_tree(x, 15, prunes = FALSE)
  x[1:3000, ] <- x[1:3000, ] * 1e-160
  expect_same_in_tree(x, 64, prunes = FALSE)
  # On a sphere all points are about as far from each other.
  sphere <- random_matrix(6000, 12, seed = 5)
  expect_same_in_tree(sphere / sqrt(rowSums(sphere^2)), 15, prunes = FALSE)
})

test_that("a tree in parts fits in less memory and changes no answer", {
  skip_if_no_cuda()
  x <- clustered(40000, 20)
  skip_if(!found_in("scattered", x, 5)$stats$filtered, "No filter here.")
  plan <- function(order, ...) {
    withr::local_options(fsknn.instruction_set = paste0("auto/", order))
    knn_plan(x, 15, "euclidean", backend = "cuda", devices = 1, ...)$bytes_peak
  }
  all <- found_in("scattered", x, 15)$neighbours
  expect_lte(found_in("tree", x, 15)$stats$bytes_device, plan("tree"))
  n <- nrow(x)
  # In 2, 4 and 8 parts.
  for (limit in c(250, 160, 140) * 1e6) {
    expect_lte(plan("tree", max_device_memory = limit), limit)
    found <- found_in("tree", x, 15, max_device_memory = limit)
    expect_identical(found$neighbours, all)
    stats <- found$stats
    expect_lte(stats$bytes_device, limit)
    expect_gt(stats$pairs_pruned, 0)
    # Pairs of two parts are met from either side.
    pairs <- stats$pairs_filtered + stats$pairs_pruned
    expect_gt(pairs, 1.2 * n * (n - 1) / 2 + n * stats$rows_recomputed)
  }
})

test_that("a tree in parts may not be needed, or not be possible", {
  skip_if_no_cuda()
  # Small whole numbers are compared by their bits, without a tree.
  x <- round(clustered(40000, 20) / 8)
  skip_if(!found_in("scattered", x, 5)$stats$filtered, "No filter here.")
  found <- found_in("tree", x, 15, max_device_memory = 2e8)
  expect_identical(found$neighbours, found_in("scattered", x, 15)$neighbours)
  expect_lte(found$stats$bytes_device, 2e8)
})

test_that("each of several GPUs has a part of a tree", {
  skip_if_no_cuda()
  skip_if(nrow(gpus_here()) < 2, "There is one GPU.")
  x <- clustered(40000, 20)
  search <- function(order, ...) {
    withr::local_options(fsknn.instruction_set = paste0("auto/", order))
    found <- knn_search(
      x, 15, "euclidean", backend = "cuda", devices = 1:2, chunk_size = 20000,
      ...
    )
    list(neighbours = bare(found), stats = knn_stats())
  }
  all <- search("scattered")$neighbours
  tree <- search("tree")
  expect_identical(tree$neighbours, all)
  expect_equal(tree$stats$num_devices, 2)
  expect_gt(tree$stats$pairs_pruned, 0)
  in_parts <- search("tree", max_device_memory = 1.3e8)
  expect_identical(in_parts$neighbours, all)
  expect_gt(in_parts$stats$pairs_pruned, 0)
})

test_that("points of an index may be in either order", {
  skip_if_no_cuda()
  x <- clustered(20000, 20)
  skip_if(!found_in("scattered", x, 5)$stats$filtered, "No filter here.")
  withr::local_options(
    fsknn.instruction_set = "auto/tree", fsknn.backend = "cuda",
    fsknn.devices = 1
  )
  index <- knn_index(x, "euclidean")
  on.exit(knn_release(index))
  for (turn in 1:2) {
    expect_identical(
      bare(knn_search(index, 9)),
      found_in("scattered", x, 9)$neighbours
    )
    expect_identical(
      bare(knn_query(index, x[1:300, ] + 0.1, 9)),
      bare(knn_query(x, x[1:300, ] + 0.1, 9, "euclidean"))
    )
  }
})

test_that("a sample decides for or against a tree", {
  skip_if_no_cuda()
  skip_unless_long()
  withr::local_options(fsknn.instruction_set = "auto")
  search <- function(x) {
    knn_search(x, 15, "euclidean", backend = "cuda", devices = 1)
    knn_stats()$pairs_pruned
  }
  expect_gt(search(clustered(270000, 20, clusters = 300)), 0)
  expect_equal(search(random_matrix(270000, 50, seed = 2)), 0)
})
