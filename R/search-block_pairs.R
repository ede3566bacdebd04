# How all pairs of points are cut into tasks: pairs of blocks of points. Plain
# arithmetic that the search by a folder and the plan of it both use, so that
# what is planned is what is done.
#
# It promises, for every number of points from 1 on:
# * blocks are runs of points, in the order of the points, none of them empty;
#   the sizes of two blocks differ by one point at most;
# * the number of blocks is odd. So in round delta (0, 1, ... up to half of the
#   blocks) every block I meets block I + delta, counted round in a circle, and
#   each two points meet in one task and in no other (CoMet balances its nodes
#   the same way, Joubert et al. 2018);
# * a task is a block with itself (round 0, the first tasks) or with another.
#   Tasks are numbered round by round, so that after the first rounds each
#   block has met as many others: limits of its points are as good as can be;
# * the same arguments give the same cut, on every machine.

# Products in a task where nothing else decides: so much is lost with a worker.
# By rates that are rounded down from what runs reach, half a minute on the CPU,
# and two on a GPU, which would wait for its disk in shorter ones.
task_products <- function(on_gpu, num_threads = 1) {
  if (on_gpu) {
    return(120 * 1e14)
  }
  30 * 1e11 * max(1, num_threads, na.rm = TRUE)
}

# Points in a block below which to read and prepare two of them is no small part
# of a task. Only for the sake of many workers is a block smaller.
least_block <- function(on_gpu, slow_to_prepare = FALSE) {
  if (on_gpu) 262144 else if (slow_to_prepare) 98304 else 32768
}

# Tasks for each worker, so that the last ones end at about the same time.
tasks_a_worker <- 4

# Bytes that a worker takes for a point of a block that it works on: its row in
# double and in the filter's form, and its lists, as found and on their way to a
# file.
bytes_in_task <- function(num_features, k) {
  10 * (num_features + 8) + 40 * k + 64
}

# Rows that a task's part of the answer may have, each of so many neighbours
# (0: nobody knows how many). It is held twice on its way to a file: at most
# 2^29 bytes of it, or, where a pair of blocks is read for it, of longer rows
# than those of the answer, 2^30 neighbours.
most_result_rows <- function(width, num_features = 0) {
  most <- if (20 * width <= 8 * num_features) 2^30 else 2^29 / 20
  max(1, most / width)
}

# Some hundred blocks at most: their pairs, each a file, are many more. Only
# for the sake of memory are there more.
most_blocks <- 201

# Points in a block, where the user does not say so. k: 0 where nobody knows how
# many neighbours there will be. num_workers: of the whole cluster, each on one
# task at a time. memory: bytes that one worker may use.
block_size <- function(num_points, num_features, k, num_workers = 1,
                       on_gpu = FALSE, num_threads = 1, slow_to_prepare = FALSE,
                       memory = Inf) {
  n <- as.double(num_points)
  d <- as.double(num_features)
  # A task of two blocks of m points is m^2 d products.
  long <- n / sqrt(task_products(on_gpu, num_threads) / max(1, d))
  long <- min(long, n / least_block(on_gpu, slow_to_prepare))
  # B (B + 1) / 2 tasks.
  wanted <- if (num_workers > 1) tasks_a_worker * as.double(num_workers) else 1
  shared <- (sqrt(8 * wanted + 1) - 1) / 2
  held <- 2 * n / most_result_rows(k, d)
  blocks <- ceiling(max(1, min(max(long, shared, held), most_blocks)))
  fitting <- floor(memory / (2 * bytes_in_task(d, k)))
  max(1, min(ceiling(n / blocks), fitting))
}

# The cut, by the number of points and the size alone, so that all who know
# these have the same. size: points in a block, where the user or the folder
# says so; NULL: as block_size() has it, of ...
block_cut <- function(num_points, ..., size = NULL) {
  n <- as.double(num_points)
  size <- size %||% block_size(n, ...)
  cut_into_blocks(n, ceiling(n / size))
}

# At least so many blocks, and an odd number of them; of few points as many as
# there can be.
cut_into_blocks <- function(num_points, least) {
  n <- as.double(num_points)
  most <- max(1, n - (n %% 2 == 0))
  count <- min(least + (least %% 2 == 0), most)
  list(num_points = n, num_blocks = count, num_tasks = count * (count + 1) / 2)
}

# c(first, last) of a block's points, both from 1.
cut_bounds <- function(cut, block) {
  end <- (c(block - 1, block) * cut$num_points) %/% cut$num_blocks
  c(end[[1]] + 1, end[[2]])
}

# Points in each of these blocks.
block_sizes <- function(cut, blocks = seq_len(cut$num_blocks)) {
  (blocks * cut$num_points) %/% cut$num_blocks -
    ((blocks - 1) * cut$num_points) %/% cut$num_blocks
}

# The blocks of tasks, a vector of numbers from 1 to cut$num_tasks: list(a, b),
# a < b but in a round 0's task, which is a block with itself (a == b).
blocks_of_tasks <- function(cut, tasks) {
  row <- (tasks - 1) %% cut$num_blocks
  delta <- (tasks - 1) %/% cut$num_blocks
  other <- (row + delta) %% cut$num_blocks
  list(a = pmin(row, other) + 1, b = pmax(row, other) + 1)
}

# Pairs of two points that each of these tasks looks at. Over all tasks they
# are each pair of the points once.
pairs_of_tasks <- function(cut, tasks) {
  blocks <- blocks_of_tasks(cut, tasks)
  a <- block_sizes(cut, blocks$a)
  b <- block_sizes(cut, blocks$b)
  ifelse(blocks$a == blocks$b, a * (a - 1) / 2, a * b)
}
