# Tables of alleles on GPUs. Tensor cores count bits of alleles, and the answer
# is that of the CPU, bit for bit.

# Makes counts of alleles: rare and common ones, copies, and rows that are the
# same in all samples but one, or in all.
alleles <- function(n, d, copies = 2, seed = 1) {
  withr::with_seed(seed, {
    x <- matrix(as.double(stats::rbinom(n * d, copies, stats::runif(n))), n)
    x[n %/% 2 + seq_len(n %/% 10), ] <- x[seq_len(n %/% 10), ]
    alike <- seq_len(300) + n %/% 4
    x[alike, ] <- x[rep(1, 300), ]
    at <- cbind(alike[1:200], 1 + 1:200 %% d)
    x[at] <- copies - x[at]
    x[n - 0:9, ] <- 0
    x[n - 10:19, ] <- copies
    x[cbind(n - 0:7, 1 + 0:7 %% d)] <- 1
    x
  })
}
copies_of <- c(ccc = 2, duo = 1)

expect_same_tables <- function(x, k, metric, ...) {
  cuda <- knn_search(x, k, metric, backend = "cuda", ...)
  stats <- knn_stats()
  expect_true(stats$filtered)
  expect_identical(stats$filter_bits, 1L)
  expect_identical(
    cuda, knn_search(x, k, metric, backend = "cpu"),
    label = paste(metric, "d =", ncol(x), "k =", k)
  )
}

skip_if_no_alleles <- function() {
  skip_if_no_cuda()
  usable <- knn_plan(
    c(4500, 30), k = 3, metric = "ccc", backend = "cuda"
  )$filter
  skip_if(!grepl("alleles", usable, fixed = TRUE), "No GPU here counts bits.")
}

test_that("nearest loci are the CPU's, for every width and k", {
  skip_if_no_alleles()
  for (metric in names(copies_of)) {
    for (d in c(5, 31, 33, 257, 1025, 5000)) {
      expect_same_tables(alleles(4500, d, copies_of[[metric]], d), 20, metric)
    }
    # Few pairs pass.
    expect_lt(knn_stats()$pairs_exact, 4500^2 / 20)
    x <- alleles(4700, 130, copies_of[[metric]])
    for (k in c(1, 33, 300, 1100)) expect_same_tables(x, k, metric)
    expect_same_tables(x, 7, metric, chunk_size = 300)
    limit <- knn_plan(x, 7, metric, backend = "cuda", devices = 1)$bytes_peak
    expect_same_tables(x, 7, metric, devices = 1, max_device_memory = limit / 3)
  }
})

test_that("other constants of tables have the CPU's nearest loci", {
  skip_if_no_alleles()
  for (metric in names(copies_of)) {
    x <- alleles(4500, 60, copies_of[[metric]], 7)
    for (own in list(c(4.5, 0), c(1e100, 1), c(1e-12, 0.5), c(1e-100, 0.5))) {
      table <- c(multiplier = own[[1]], parameter = own[[2]])
      found <- function(backend) {
        knn_search(
          x, 9, metric, backend = backend,
          options = point_options(allele_table = table)
        )
      }
      expect_identical(found("cuda"), found("cpu"), label = paste(own))
    }
  }
})

test_that("queries, blocks and pairs of loci are the CPU's", {
  skip_if_no_alleles()
  for (metric in names(copies_of)) {
    copies <- copies_of[[metric]]
    x <- alleles(5000, 150, copies, 4)
    queries <- rbind(alleles(2500, 150, copies, 5), x[1:50, ])
    block <- rep_len(1:3, nrow(x))
    apart <- sort(knn_search(x, 3, metric, backend = "cpu")$distance)
    found <- function(backend) {
      list(
        knn_query(x, queries, 6, metric, backend = backend),
        knn_search(
          x, 6, metric, block = block, between = TRUE, backend = backend
        ),
        # Some pairs have exactly this distance.
        within_search(x, apart[[3000]], metric, backend = backend),
        threshold_graph(x, 1 - apart[[9000]], metric, backend = backend),
        mst_knn(x, metric, k = 4, backend = backend)
      )
    }
    expect_identical(found("cuda"), found("cpu"), label = metric)
    counts <- function(backend) {
      pair_histogram(x, (0:40) / 20, metric, backend = backend)$counts
    }
    expect_identical(counts("cuda"), counts("cpu"), label = metric)
  }
})

test_that("loci that a GPU holds are searched as new ones are", {
  skip_if_no_alleles()
  x <- alleles(40000, 400)
  queries <- alleles(500, 400, seed = 2)
  index <- knn_index(x, "ccc", backend = "cuda", devices = 1)
  for (k in c(3, 8)) {
    held <- knn_query(index, queries, k = k)
    again <- knn_stats()$seconds[["prepare"]]
    new <- knn_query(x, queries, k, "ccc", backend = "cuda", devices = 1)
    expect_identical(held, new)
  }
  # The points have stayed on the GPU.
  expect_lt(again, knn_stats()$seconds[["prepare"]] / 2)
})
