# Manhattan and proportional distance in 8-bit integers, forced by
# options(fsknn.instruction_set = ). The answers are those by definition, and
# those with 16 bits.

with_bits <- function(bits, search) {
  rlang::with_options(fsknn.instruction_set = paste0("auto/", bits), search())
}
byte_metrics <- c("manhattan", "proportional")

expect_as_16_bits <- function(search, label) {
  expect_identical(with_bits(8, search), with_bits(16, search), label = label)
}

test_that("8 bits give exactly the brute-force answer of hard matrices", {
  matrices <- hard_matrices()
  # Nearly empty rows are beside rows far from 0.
  matrices[["near-empty rows"]] <- rbind(
    1e10 + abs(random_matrix(40, 13, seed = 6)),
    diag(13) * 10^-seq(2, 302, 25)
  )
  matrices[["one feature"]] <- random_matrix(61, 1, seed = 7)
  matrices[["a constant row"]] <- rbind(matrices[["random"]], 5)
  matrices[["long rows"]] <- random_matrix(61, 3000, seed = 8)
  matrices[["counts"]] <- small_integers(61, 9, largest = 300)
  for (name in names(matrices)) {
    for (metric in byte_metrics) {
      x <- values_for(matrices[[name]], metric)
      for (k in c(1, 7)) {
        found <- with_bits(8, function() {
          knn_search(x, k, metric, backend = "cpu", chunk_size = 48)
        })
        expect_same_bits(
          found, brute_force(x, k = k, metric = metric),
          label = paste(name, metric, "k =", k)
        )
      }
    }
  }
})

test_that("8 bits give the neighbours by definition", {
  x <- small_integers(150, 9, largest = 60)
  for (metric in byte_metrics) {
    found <- with_bits(8, function() {
      knn_search(x, 11, metric, backend = "cpu")
    })
    expect_same_neighbours(
      found, without_self(naive_distance(x, metric = metric)), metric
    )
  }
})

test_that("8 bits serve queries beyond the points' range", {
  x <- abs(random_matrix(200, 21, seed = 10))
  for (level in c(0, 1e-3, 50, 1e8, 1e100)) {
    query <- rbind(
      level + abs(random_matrix(40, 21, seed = 11)),
      level * abs(random_matrix(20, 21, seed = 12)) + 1e-9
    )
    for (metric in byte_metrics) {
      found <- with_bits(8, function() {
        knn_query(x, query, 6, metric, backend = "cpu")
      })
      expect_same_bits(
        found, brute_force(x, query, k = 6, metric = metric),
        label = paste(level, metric)
      )
    }
  }
})

test_that("8 bits give what 16 do, by whatever way pairs are met", {
  x <- abs(random_matrix(330, 37, seed = 13))
  x[301:330, ] <- x[1:30, ]
  x[7, 5] <- 1e6
  block <- rep(1:3, length.out = 330)
  for (metric in byte_metrics) {
    near <- knn_search(x, 9, metric, backend = "cpu")$distance
    search <- function(verb, ...) {
      expect_as_16_bits(
        function() verb(x, ..., metric = metric, backend = "cpu"), metric
      )
    }
    search(knn_search, 329)
    search(knn_search, 3, block = block)
    search(knn_search, 3, block = block, between = TRUE)
    search(knn_search, 7, subset = c(5, 99, 230))
    search(within_search, near[[75, 4]]) # the exact distance of some pairs
    search(within_search, 0)
    search(mst_knn, k = 4)
    search(pair_histogram, c(0, 0.5, max(near)), value = "distance")
  }
})

test_that("8 bits filter points that come in blocks of a file", {
  skip_if_not_installed("DelayedArray")
  x <- abs(random_matrix(1700, 203, seed = 14))
  for (metric in byte_metrics) {
    search <- function(x, ...) knn_search(x, 5, metric, backend = "cpu", ...)
    whole <- search(x)
    streamed <- with_bits(8, function() {
      search(DelayedArray::DelayedArray(x), max_memory = 2e6)
    })
    expect_true(knn_stats()$streamed)
    expect_identical(streamed$index, whole$index)
    expect_identical(streamed$distance, whole$distance)
  }
})

# The instruction sets differ if a form is only slightly faster. Here the points
# have rank 5, and 8 bits leave few more pairs. A second test then leaves about
# as many as 16 bits do. For values over many orders of magnitude, 8 bits leave
# nearly all pairs.
test_that("bytes are taken where they pay on any instruction set", {
  sets <- setdiff(fsknn:::cpp_cpu()$instruction_sets, "baseline")
  skip_if(length(sets) == 0, "bytes are no faster here")
  x <- random_matrix(3000, 5, seed = 15) %*% random_matrix(5, 300, seed = 16)
  told <- function(x, bits) {
    rlang::with_options(
      fsknn.instruction_set = bits,
      knn_search(x, 2, "manhattan", backend = "cpu")
    )
    knn_stats()
  }
  for (set in sets) {
    forced <- function(x, bits) told(x, paste0(set, "/", bits))
    expect_identical(told(x, set)$filter_bits, 8L, label = set)
    # Threads process pairs in any order, so counts vary.
    expect_lt(forced(x, 8)$pairs_exact, 1.2 * forced(x, 16)$pairs_exact)
    wide <- exp(4 * x)
    chosen <- told(wide, set)
    expect_identical(chosen$filter_bits, 32L, label = set)
    expect_lt(chosen$pairs_exact, 0.5 * forced(wide, 8)$pairs_exact)
  }
})
