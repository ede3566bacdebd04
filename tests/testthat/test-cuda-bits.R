# Rows of 0 and 1 on GPUs: tensor cores count what two rows both have, and what
# is found is the CPU's, bit for bit.

random_bits <- function(n, d, part = 0.1, seed = 1) {
  withr::with_seed(seed, {
    x <- matrix(as.double(stats::runif(n * d) < part), n)
    x[cbind(seq_len(n), sample(d, n, replace = TRUE))] <- 1
    x
  })
}

expect_same_bits_graph <- function(x, k, metric, ...) {
  cpu <- knn_search(x, k, metric, backend = "cpu")
  expect_identical(
    knn_search(x, k, metric, backend = "cuda", ...), cpu,
    label = paste(metric, "d =", ncol(x), "k =", k)
  )
}

skip_if_no_bits <- function() {
  skip_if_no_cuda()
  usable <- knn_plan(
    c(4500, 30), k = 3, metric = "jaccard", backend = "cuda"
  )$filter
  skip_if(!grepl("bits", usable, fixed = TRUE), "No GPU here counts bits.")
}

test_that("graphs of rows of bits are the CPU's, for every width and k", {
  skip_if_no_bits()
  for (d in c(1, 5, 78, 256, 1024, 1025, 3100, 20000)) {
    x <- random_bits(4500, d, if (d > 3000) 0.02 else 0.2, seed = d)
    for (metric in c("sorensen", "jaccard")) {
      expect_same_bits_graph(x, 20, metric)
      expect_gt(knn_stats()$pairs_exact, 0)
    }
  }
  x <- random_bits(4700, 130, 0.3, seed = 2)
  for (k in c(1, 33, 300, 1100)) expect_same_bits_graph(x, k, "sorensen")
  for (chunk_size in c(1, 300, 4096)) {
    expect_same_bits_graph(x, 7, "jaccard", chunk_size = chunk_size)
  }
})

test_that("ties, copies, full rows and nearly empty ones drop no neighbour", {
  skip_if_no_bits()
  x <- random_bits(4500, 1100, 0.1, seed = 3)
  x[1001:1300, ] <- x[rep(1, 300), ]
  x[1301:1400, ] <- 1
  x[1401:1500, ] <- 0
  x[cbind(1401:1500, 1:100)] <- 1
  # As x[1, ] but for one feature each.
  x[1501:2000, ] <- x[rep(1, 500), ]
  at <- cbind(1501:2000, 1:500)
  x[at] <- 1 - x[at]
  for (metric in c("sorensen", "jaccard")) {
    for (k in c(1, 20, 400)) expect_same_bits_graph(x, k, metric)
    # All alike, but for one.
    expect_same_bits_graph(x[c(1, rep(2, 4400)), ], 5, metric)
    expect_same_bits_graph(x[, 1:3][rowSums(x[, 1:3]) > 0, ], 3, metric)
  }
})

test_that("queries, blocks and pairs within a distance are counted by bits", {
  skip_if_no_bits()
  x <- random_bits(5000, 300, 0.15, seed = 4)
  x[4001:4200, ] <- x[1:200, ]
  queries <- rbind(random_bits(2500, 300, 0.1, seed = 5), x[1:50, ])
  block <- rep_len(1:3, nrow(x))
  found <- function(backend, metric) {
    list(
      knn_query(x, queries, 6, metric, backend = backend),
      knn_search(
        x, 6, metric, block = block, between = TRUE, backend = backend
      ),
      threshold_graph(x, 0.45, metric, backend = backend),
      threshold_graph(x, 1, metric, backend = backend),
      threshold_graph(
        x[1:4200, ], if (metric == "jaccard") 1 / 3 else 0.5, metric,
        backend = backend
      )
    )
  }
  for (metric in c("sorensen", "jaccard")) {
    expect_identical(
      found("cuda", metric), found("cpu", metric), label = metric
    )
  }
})

test_that("bits that do not fit a GPU's memory are counted as they come", {
  skip_if_no_bits()
  x <- random_bits(9000, 900, 0.1, seed = 6)
  limit <- knn_plan(
    x, 7, "sorensen", backend = "cuda", devices = 1
  )$bytes_peak / 3
  expect_same_bits_graph(
    x, 7, "sorensen", devices = 1, max_device_memory = limit
  )
})
