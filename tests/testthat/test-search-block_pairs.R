# Counts by loops in how many tasks each pair of points occurs.
times_met <- function(cut) {
  n <- cut$num_points
  met <- matrix(0, n, n)
  for (task in seq_len(cut$num_tasks)) {
    blocks <- blocks_of_tasks(cut, task)
    for (i in seq(cut_bounds(cut, blocks$a)[[1]],
                  cut_bounds(cut, blocks$a)[[2]])) {
      for (j in seq(cut_bounds(cut, blocks$b)[[1]],
                    cut_bounds(cut, blocks$b)[[2]])) {
        if (blocks$a < blocks$b || i < j) {
          met[i, j] <- met[i, j] + 1
        }
      }
    }
  }
  met
}

test_that("each two points meet in one task", {
  for (n in c(1, 2, 3, 7, 20, 31)) {
    for (least in c(1, 2, 3, 4, 7, 12, 40)) {
      cut <- cut_into_blocks(n, least)
      met <- times_met(cut)
      expect_identical(met[upper.tri(met)], rep(1, n * (n - 1) / 2))
      expect_identical(sum(met), n * (n - 1) / 2)
      expect_identical(
        vapply(seq_len(cut$num_tasks), function(task) {
          pairs_of_tasks(cut, task)
        }, 0),
        pairs_of_tasks(cut, seq_len(cut$num_tasks))
      )
      expect_identical(
        sum(pairs_of_tasks(cut, seq_len(cut$num_tasks))), n * (n - 1) / 2
      )
    }
  }
})

test_that("blocks are odd in number, and as large as each other", {
  for (n in c(1, 2, 3, 10, 1001, 2^31 - 1)) {
    for (least in c(1, 2, 5, 64, 999)) {
      cut <- cut_into_blocks(n, least)
      expect_identical(cut$num_blocks %% 2, 1)
      expect_gte(cut$num_blocks, min(least, n - 1))
      sizes <- block_sizes(cut)
      expect_identical(sum(sizes), as.double(n))
      expect_lte(diff(range(sizes)), 1)
      expect_gte(min(sizes), 1)
      bounds <- vapply(seq_len(cut$num_blocks), cut_bounds, cut = cut, c(0, 0))
      expect_identical(bounds[2, ] - bounds[1, ] + 1, sizes)
      expect_identical(bounds[1, -1], bounds[2, -cut$num_blocks] + 1)
      expect_identical(range(bounds), c(1, as.double(n)))
    }
  }
})

test_that("tasks come round by round: first each block with itself", {
  cut <- cut_into_blocks(100, 7)
  blocks <- blocks_of_tasks(cut, 1:28)
  expect_identical(blocks$a[1:7], as.double(1:7))
  expect_identical(blocks$b[1:7], as.double(1:7))
  # After every round, each block has met equally many others.
  for (round in 1:3) {
    so_far <- seq_len(7 * (round + 1))
    met <- tabulate(c(blocks$a[so_far], blocks$b[so_far]), 7)
    expect_identical(met, rep(2L * (round + 1L), 7))
  }
})

test_that("the number of blocks follows memory, workers and a task's length", {
  blocks <- function(...) block_cut(...)$num_blocks
  # A task of a second is one block.
  expect_identical(blocks(5000, 100, 20), 1)
  # Each worker has some tasks.
  for (workers in c(2, 5, 32, 1000)) {
    cut <- block_cut(1e6, 100, 20, num_workers = workers)
    expect_gte(cut$num_tasks, tasks_a_worker * workers)
  }
  # Two blocks fit in a worker's memory.
  for (memory in c(1e8, 1e9, 64e9)) {
    cut <- block_cut(1e6, 1000, 20, memory = memory)
    expect_lte(2 * max(block_sizes(cut)) * bytes_in_task(1000, 20), memory)
  }
  # No task is much longer than half a minute, unless blocks would be too small.
  cut <- block_cut(1e6, 1e5, 20)
  expect_lte(
    max(pairs_of_tasks(cut, seq_len(cut$num_tasks))) * 1e5,
    max(task_products(FALSE), 32768^2 * 1e5) * 1.001
  )
  # The user's size is used.
  expect_identical(blocks(1000, 10, 5, size = 100), 11)
  expect_identical(blocks(1000, 10, 5, size = 1001), 1)
})
