# The argument `block` on GPUs: one search computes each pair once, and its
# answers are those of the CPU, bit for bit.

by_blocks <- function(x, k, metric, block, between, backend, ...) {
  knn_search(
    x, k, metric, block = block, between = between, backend = backend,
    constant = "isolate", ...
  )
}

expect_same_by_blocks <- function(x, k, metric, block, label = "", ...,
                                  betweens = list(FALSE, TRUE, "together")) {
  for (between in betweens) {
    # The GPU runs last, because knn_stats() describes the last search.
    on_cpu <- by_blocks(x, k, metric, block, between, "cpu", ...)
    on_gpu <- by_blocks(x, k, metric, block, between, "cuda", ...)
    expect_same_bits(
      on_gpu, on_cpu, paste(metric, "k =", k, label, between)
    )
  }
}

# Makes blocks of these sizes with shuffled points.
blocks_of_sizes <- function(sizes, seed = 1) {
  withr::with_seed(seed, sample(rep(seq_along(sizes), sizes)))
}

test_that("lists by block are those of the CPU, for every kind of filter", {
  skip_if_no_cuda()
  x <- random_matrix(6000, 30, seed = 3)
  x[5001:5100, ] <- x[1:100, ]
  # One block has k + 1 points, and other sizes are close to multiples of a
  # tile.
  block <- blocks_of_sizes(c(2900, 2049, 513, 257, 256, 14, 11))
  for (metric in c(
    "pearson", "spearman", "euclidean", "manhattan", "chebyshev",
    "proportional", "inner_product", "canberra"
  )) {
    expect_same_by_blocks(values_for(x, metric), 10, metric, block)
    expect_true(knn_stats()$num_devices >= 1)
  }
  for (sign in c("absolute", "negative")) {
    expect_same_by_blocks(
      x, 3, "pearson", block, sign = sign, betweens = list(FALSE)
    )
  }
})

test_that("each two points meet once on a GPU, and the plan says so", {
  skip_if_no_cuda()
  x <- random_matrix(9000, 20, seed = 4)
  block <- blocks_of_sizes(c(4000, 3000, 2000))
  for (between in list(FALSE, TRUE, "together")) {
    plan <- knn_plan(
      x, 5, block = block, between = between, backend = "cuda", devices = 1
    )
    pairs <- choose(9000, 2) -
      if (isFALSE(between)) 0 else sum(choose(c(4000, 3000, 2000), 2))
    expect_identical(plan$num_pairs, pairs)
    expect_output(print(plan), "Blocks \\(labels\\)")
    found <- by_blocks(x, 5, "pearson", block, between, "cuda", devices = 1)
    stats <- knn_stats()
    expect_true(stats$filtered)
    expect_identical(stats$pairs_filtered, pairs)
    expect_lte(stats$bytes_device, plan$bytes_peak)
    expect_identical(plan$bytes_result, 20 * as.double(length(found$index)))
  }
})

test_that("few and many neighbours, large and tiny blocks are the CPU's", {
  skip_if_no_cuda()
  x <- random_matrix(5000, 24, seed = 5)
  for (k in c(1, 33, 65, 300)) {
    sizes <- c(3000, 1200, 799 - k, k + 1)
    expect_same_by_blocks(x, k, "euclidean", blocks_of_sizes(sizes))
  }
  # Points of blocks with one point have neighbours in others.
  expect_same_by_blocks(
    x, 1, "pearson", blocks_of_sizes(c(2500, 2497, 1, 1, 1)),
    betweens = list(TRUE, "together")
  )
  # There are forty blocks, then more than is efficient: one point or two in
  # each.
  expect_same_by_blocks(x, 2, "pearson", rep_len(1:40, 5000))
  expect_same_by_blocks(
    x, 1, "manhattan", rep_len(1:2500, 5000), betweens = list("together")
  )
})

test_that("copies, near-ties and long rows do not change what is found", {
  skip_if_no_cuda()
  base <- random_matrix(20, 40, seed = 6)
  copies <- base[rep_len(1:20, 6000), ]
  ties <- small_integers(6000, 6, largest = 3)
  block <- blocks_of_sizes(c(4000, 1500, 500))
  # More near-duplicates than lists can hold make rows recomputed.
  expect_same_by_blocks(copies, 4, "euclidean", block)
  expect_gt(knn_stats()$rows_recomputed, 0)
  expect_same_by_blocks(ties, 7, "manhattan", block)
  near <- copies + random_matrix(6000, 40, seed = 7) * 1e-9
  expect_same_by_blocks(near, 4, "pearson", block)
  wild <- random_matrix(6000, 12, seed = 8)
  wild[c(5, 900, 4444), ] <- wild[c(5, 900, 4444), ] * 1e8
  for (metric in c("euclidean", "inner_product", "manhattan")) {
    expect_same_by_blocks(wild, 6, metric, block, "wild")
  }
  long <- random_matrix(4200, 2100, seed = 9)
  expect_same_by_blocks(
    long, 3, "pearson", blocks_of_sizes(c(3000, 1200)),
    betweens = list(FALSE)
  )
})

test_that("points left out, subsets, graphs and correlations are the CPU's", {
  skip_if_no_cuda()
  x <- random_matrix(5200, 14, seed = 10)
  x[c(1, 77, 300, 5200), ] <- 3
  block <- blocks_of_sizes(c(3000, 1700, 500))
  expect_same_by_blocks(x, 6, "pearson", block, "isolated")
  for (between in list(FALSE, TRUE, "together")) {
    graph <- function(backend, ...) {
      knn_graph(
        x, 4, "spearman", "absolute", block = block, between = between,
        constant = "isolate", backend = backend, ...
      )
    }
    expect_identical(graph("cuda"), graph("cpu"))
    some <- c(700:1500, 3:5)
    expect_identical(
      by_blocks(x, 4, "euclidean", block, between, "cuda", subset = some),
      by_blocks(x, 4, "euclidean", block, between, "cpu", subset = some)
    )
  }
  weights <- seq(0.5, 3, length.out = 14)
  expect_same_by_blocks(x, 4, "pearson", block, weights = weights)
})

test_that("GPUs, chunks and memory do not change lists by block", {
  skip_if_no_cuda()
  x <- random_matrix(7000, 40, seed = 11)
  block <- blocks_of_sizes(c(3500, 2000, 1000, 500))
  for (between in list(FALSE, TRUE, "together")) {
    expected <- by_blocks(x, 8, "pearson", block, between, "cpu")
    for (count in intersect(c(1, 2, 4), seq_len(nrow(gpus_here())))) {
      for (chunk_size in list(NULL, 64, 1000)) {
        for (limit in list(NULL, 90e6, 60e6, 30e6)) {
          found <- by_blocks(
            x, 8, "pearson", block, between, "cuda",
            devices = seq_len(count), chunk_size = chunk_size,
            max_device_memory = limit
          )
          expect_identical(found, expected, label = paste(
            between, count, "GPUs, chunk", chunk_size, "limit", limit
          ))
          expect_lte(knn_stats()$bytes_device, limit %||% Inf)
        }
      }
    }
  }
})

test_that("mutual pairs between blocks are the CPU's", {
  skip_if_no_cuda()
  x <- random_matrix(5000, 16, seed = 12)
  block <- blocks_of_sizes(c(2500, 1500, 1000))
  edges <- mutual_pairs(x, block, 5, backend = "cuda")
  expect_identical(edges, mutual_pairs(x, block, 5, backend = "cpu"))
})
