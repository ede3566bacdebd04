# The division of all pairs of points into tasks: pairs of blocks of points. A
# search in a folder and its plan share this arithmetic, so that the plan is
# what is done.
#
# For every number of points from 1 on: * Blocks are runs of consecutive points,
# and none is empty. The sizes of two
#   blocks differ by at most one point.
# * The number of blocks is odd. In round delta (0, 1, ... up to half of the
#   blocks), every block I meets block I + delta, modulo the number of blocks.
#   So each two points meet in exactly one task. (CoMet balances its nodes in
#   the same way, Joubert et al. 2018.)
# * A task is a block with itself (round 0, the first tasks) or with another.
#   Tasks are numbered by rounds: after the first rounds, each block has met
#   equally many others, which makes the limits of its points low.
# * The same arguments give the same division on every machine.

# Default number of products in a task, which is also what a failed worker
# loses. The rates are below those of real runs. They give half a minute on the
# CPU and two minutes on a GPU, which would wait for its disk in shorter tasks.
task_products <- function(on_gpu, num_threads = 1) {
  if (on_gpu) {
    return(120 * 1e14)
  }
  30 * 1e11 * max(1, num_threads, na.rm = TRUE)
}

# Points in a block below which reading and preparing two blocks takes a large
# part of a task. A block is smaller only if there are many workers.
least_block <- function(on_gpu, slow_to_prepare = FALSE) {
  if (on_gpu) 262144 else if (slow_to_prepare) 98304 else 32768
}

# Tasks for each worker, so that the last ones end at about the same time.
tasks_a_worker <- 4

# Bytes of a worker for each point of the blocks of its task. They hold the row
# in double and in the filter's form, and its lists, as found and as written.
bytes_in_task <- function(num_features, k) {
  10 * (num_features + 8) + 40 * k + 64
}

# Maximum number of rows in a task's part of the answer, with `width` neighbours
# each (0: unknown). The part is in memory twice while it is written, so it has
# at most 2^29 bytes. If the rows of the two blocks are longer than those of the
# answer, it has at most 2^30 neighbours.
most_result_rows <- function(width, num_features = 0) {
  most <- if (20 * width <= 8 * num_features) 2^30 else 2^29 / 20
  max(1, most / width)
}

# The default has at most some hundred blocks, because each pair of them is a
# file. Only a lack of memory makes more.
most_blocks <- 201

# Default number of points in a block. `k` is 0 if the number of neighbours is
# unknown. `num_workers` is that of the whole cluster, each on one task at a
# time. `memory` is what one worker may use, in bytes.
block_size <- function(num_points, num_features, k, num_workers = 1,
                       on_gpu = FALSE, num_threads = 1, slow_to_prepare = FALSE,
                       memory = Inf) {
  n <- as.double(num_points)
  d <- as.double(num_features)
  # A task of two blocks of m points needs m^2 d products.
  long <- n / sqrt(task_products(on_gpu, num_threads) / max(1, d))
  long <- min(long, n / least_block(on_gpu, slow_to_prepare))
  # B blocks make B (B + 1) / 2 tasks.
  wanted <- if (num_workers > 1) tasks_a_worker * as.double(num_workers) else 1
  shared <- (sqrt(8 * wanted + 1) - 1) / 2
  held <- 2 * n / most_result_rows(k, d)
  blocks <- ceiling(max(1, min(max(long, shared, held), most_blocks)))
  fitting <- floor(memory / (2 * bytes_in_task(d, k)))
  max(1, min(ceiling(n / blocks), fitting))
}

# The division depends only on the number of points and the size, so that all
# who know these have the same. `size` is the number of points in a block, as
# the user or the folder gives it. With NULL, it is that of block_size(), to
# which ... is passed.
block_cut <- function(num_points, ..., size = NULL) {
  n <- as.double(num_points)
  size <- size %||% block_size(n, ...)
  cut_into_blocks(n, ceiling(n / size))
}

# Makes an odd number of blocks, at least `least`, but never more than there are
# points.
cut_into_blocks <- function(num_points, least) {
  n <- as.double(num_points)
  most <- max(1, n - (n %% 2 == 0))
  count <- min(least + (least %% 2 == 0), most)
  list(num_points = n, num_blocks = count, num_tasks = count * (count + 1) / 2)
}

# Returns c(first, last) of a block's points, counted from 1.
cut_bounds <- function(cut, block) {
  end <- (c(block - 1, block) * cut$num_points) %/% cut$num_blocks
  c(end[[1]] + 1, end[[2]])
}

# Returns the number of points in each of these blocks.
block_sizes <- function(cut, blocks = seq_len(cut$num_blocks)) {
  (blocks * cut$num_points) %/% cut$num_blocks -
    ((blocks - 1) * cut$num_points) %/% cut$num_blocks
}

# Returns list(a, b), the blocks of tasks from 1 to cut$num_tasks. In round 0 a
# task is a block with itself (a == b), otherwise a < b.
blocks_of_tasks <- function(cut, tasks) {
  row <- (tasks - 1) %% cut$num_blocks
  delta <- (tasks - 1) %/% cut$num_blocks
  other <- (row + delta) %% cut$num_blocks
  list(a = pmin(row, other) + 1, b = pmax(row, other) + 1)
}

# Returns the number of pairs of two points in each task. Over all tasks, each
# pair of points occurs once.
pairs_of_tasks <- function(cut, tasks) {
  blocks <- blocks_of_tasks(cut, tasks)
  a <- block_sizes(cut, blocks$a)
  b <- block_sizes(cut, blocks$b)
  ifelse(blocks$a == blocks$b, a * (a - 1) / 2, a * b)
}
