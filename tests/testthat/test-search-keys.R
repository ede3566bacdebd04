# Pairs that are pruned by the points' sums or lengths, or by boxes.
# options(fsknn.instruction_set = ) makes the CPU engine use that order or not.

in_order <- function(order, search) {
  rlang::with_options(fsknn.instruction_set = paste0("auto/", order), search())
}
keyed_metrics <- c("manhattan", "proportional", "euclidean")
boxed_metrics <- c("manhattan", "chebyshev", "euclidean")
# The metrics of rows of length 1, with their signs.
unit_metrics <- list(
  c("cosine", "signed"), c("pearson", "signed"), c("pearson", "absolute"),
  c("pearson", "negative"), c("spearman", "signed"), c("spearman", "absolute"),
  c("spearman", "negative"), c("bicor", "signed"), c("bicor", "absolute"),
  c("bicor", "negative")
)

# Makes points at different levels, in an order that would help a search.
levels_of <- function(n, d, seed) {
  withr::with_seed(seed, {
    10 + sort(stats::rexp(n)) * 5 + 0.1 * matrix(stats::runif(n * d), n)
  })
}

test_that("in order of sums the answer is the brute-force one", {
  matrices <- hard_matrices()
  matrices[["levels"]] <- levels_of(120, 7, seed = 1)
  matrices[["multiples of one row"]] <- outer(rep_len(0:40, 61), 1:9)
  for (name in names(matrices)) {
    for (metric in setdiff(keyed_metrics, "proportional")) {
      x <- values_for(matrices[[name]], metric)
      found <- in_order("sorted", function() {
        knn_search(x, 7, metric, backend = "cpu", chunk_size = 48)
      })
      expect_same_bits(
        found, brute_force(x, k = 7, metric = metric),
        label = paste(name, metric)
      )
    }
  }
  x <- matrices[["levels"]]
  expect_same_bits(
    in_order("sorted", function() {
      knn_search(x, 7, "proportional", backend = "cpu", chunk_size = 48)
    }),
    brute_force(x, k = 7, metric = "proportional")
  )
})

test_that("lengths tell rows apart in the filter's unit", {
  # In the 60 clusters, a neighbour may be as far as the difference of lengths,
  # by which pairs are pruned.
  base <- random_matrix(4500, 20, seed = 32)[rep_len(1:60, 4500), ]
  x <- base * (1 + 1e-3 * random_matrix(4500, 20, seed = 33))
  found <- in_order("sorted", function() {
    knn_search(x, 10, "euclidean", backend = "cpu")
  })
  expect_same_bits(found, brute_force(x, k = 10, metric = "euclidean"))
})

test_that("any verb has the same answer in either order", {
  x <- levels_of(400, 11, seed = 2)
  query <- levels_of(150, 11, seed = 3)
  for (metric in keyed_metrics) {
    limit <- knn_search(x, 5, metric, backend = "cpu")$distance[[200, 5]]
    for (bits in c("8", "16")) {
      same <- function(verb, ...) {
        search <- function() {
          verb(x, ..., metric = metric, backend = "cpu", chunk_size = 48)
        }
        expect_identical(
          in_order(paste0(bits, "/sorted"), search),
          in_order(paste0(bits, "/scattered"), search), label = metric
        )
      }
      same(knn_search, k = 9)
      same(knn_search, k = 399)
      same(knn_search, k = 3, subset = c(5, 99, 230))
      same(knn_query, query, k = 9)
      same(within_search, limit)
      same(within_query, query, limit)
    }
  }
})

test_that("sums leave pairs out where a sample says that they do", {
  x <- levels_of(3000, 40, seed = 4)
  alike <- random_matrix(3000, 40, seed = 5)
  for (metric in keyed_metrics) {
    share <- function(x) {
      knn_search(values_for(x, metric), 10, metric, backend = "cpu")
      stats <- knn_stats()
      expect_equal(stats$pairs_filtered + stats$pairs_pruned, 3000^2 / 2)
      stats$pairs_pruned / (3000^2 / 2)
    }
    expect_gt(share(x), 0.5)
    expect_identical(share(alike), 0)
  }
})

# Makes points around a few centres, in an order that does not help a search.
clusters_of <- function(n, d, seed) {
  withr::with_seed(seed, {
    centres <- 20 * matrix(stats::rnorm(25 * d), 25)
    centres[sample(25, n, TRUE), ] + matrix(stats::rnorm(n * d), n)
  })
}

test_that("in order of a tree the answer is the brute-force one", {
  matrices <- hard_matrices()
  matrices[["clusters"]] <- clusters_of(200, 7, seed = 6)
  matrices[["on a sphere"]] <- local({
    x <- random_matrix(150, 3, seed = 7)
    x / sqrt(rowSums(x^2))
  })
  matrices[["on a line"]] <- outer(1:150, c(1, -2, 0.5))
  matrices[["offset"]] <- 1e8 + 1e-4 * random_matrix(150, 5, seed = 8)
  matrices[["2^159"]] <- 2^157 * clusters_of(150, 5, seed = 9) / 100
  for (name in names(matrices)) {
    for (metric in boxed_metrics) {
      x <- values_for(matrices[[name]], metric)
      found <- in_order("tree", function() {
        knn_search(x, 7, metric, backend = "cpu", chunk_size = 48)
      })
      expect_same_bits(
        found, brute_force(x, k = 7, metric = metric),
        label = paste(name, metric)
      )
    }
  }
})

test_that("any verb has the same answer in order of a tree", {
  x <- clusters_of(400, 11, seed = 10)
  query <- clusters_of(150, 11, seed = 10)
  for (metric in boxed_metrics) {
    limit <- knn_search(x, 5, metric, backend = "cpu")$distance[[200, 5]]
    for (bits in c("8", "16")) {
      same <- function(verb, ..., points = x) {
        search <- function() {
          verb(points, ..., metric = metric, backend = "cpu", chunk_size = 48)
        }
        expect_identical(
          in_order(paste0(bits, "/tree"), search),
          in_order(paste0(bits, "/scattered"), search), label = metric
        )
      }
      same(knn_search, k = 9)
      same(knn_graph, k = 9)
      same(knn_search, k = 399)
      same(knn_search, k = 3, subset = c(5, 99, 230))
      same(knn_query, query, k = 9)
      same(within_search, limit)
      same(within_query, query, limit)
    }
  }
})

test_that("boxes leave pairs out where a sample says that they do", {
  x <- clusters_of(4000, 15, seed = 11)
  for (metric in boxed_metrics) {
    knn_search(x, 10, metric, backend = "cpu")
    stats <- knn_stats()
    expect_equal(stats$pairs_filtered + stats$pairs_pruned, 4000^2 / 2)
    expect_gt(stats$pairs_pruned, 0.5 * 4000^2 / 2)
    expect_true(
      knn_plan(x, 10, metric, backend = "cpu", filter = TRUE)$pruned
    )
  }
})

# Rows of length 1 whose distances lie at the borders of the bounds.
unit_matrices <- function() {
  x <- clusters_of(150, 9, seed = 12)
  scales <- rep_len(c(1, 2^900, 2^-900, 2^-1060, 1e-5), 150)
  near <- rep(1, 150) %o% (1:9)^2 + 1e-9 * random_matrix(150, 9, seed = 13)
  list(
    clusters = x,
    antipodes = x[c(1:75, 1:75), ] * rep(c(1, -1), each = 75),
    "antipodes and duplicates" = x[rep_len(1:20, 150), ] *
      rep_len(c(1, -1, -2), 150),
    "other scales" = x * scales,
    "nearly one place" = near,
    ties = round(x / 20),
    "three features" = clusters_of(150, 3, seed = 14),
    "some constant" = rbind(matrix(5, 5, 9), x, 0, matrix(-1, 3, 9))
  )
}

test_that("in order of a tree unit rows have the brute-force answer", {
  matrices <- unit_matrices()
  for (name in names(matrices)) {
    for (metric in unit_metrics) {
      x <- matrices[[name]]
      undefined <- if (metric[[1]] == "cosine") {
        rowSums(x != 0) == 0
      } else {
        apply(x, 1, function(row) all(row == row[[1]]))
      }
      for (bits in c("8", "16")) {
        found <- in_order(paste0(bits, "/tree"), function() {
          knn_search(
            x, 7, metric[[1]], sign = metric[[2]], backend = "cpu",
            chunk_size = 48, constant = "isolate"
          )
        })
        expect_same_bits(
          found,
          brute_force(
            x, k = 7, metric = metric[[1]], sign = metric[[2]],
            skip = which(undefined)
          ),
          label = paste(name, toString(metric), bits)
        )
      }
    }
  }
})

test_that("any verb has the same answer for unit rows in order of a tree", {
  x <- clusters_of(400, 11, seed = 15)
  x <- rbind(x, -x[1:100, ])
  query <- -clusters_of(150, 11, seed = 15)
  for (metric in unit_metrics) {
    limit <- knn_search(
      x, 5, metric[[1]], sign = metric[[2]], backend = "cpu"
    )$distance[[200, 5]]
    same <- function(verb, ..., points = x) {
      search <- function() {
        verb(
          points, ..., metric = metric[[1]], sign = metric[[2]],
          backend = "cpu", chunk_size = 48
        )
      }
      expect_identical(
        in_order("tree", search), in_order("scattered", search),
        label = toString(metric)
      )
    }
    same(knn_search, k = 9)
    same(knn_graph, k = 9)
    same(knn_search, k = 499)
    same(knn_search, k = 3, subset = c(5, 99, 230))
    if (metric[[1]] %in% c("pearson", "spearman")) {
      same(knn_search, k = 3, weights = rep_len(1:3, 11))
    }
    same(knn_query, query, k = 9)
    same(within_search, limit)
    same(within_query, query, limit)
    same(threshold_graph, min_similarity = max(0.1, 1 - limit))
  }
})

test_that("boxes of unit rows prune where a sample shows a gain", {
  # Half of the clusters are the mirror images of the others.
  x <- clusters_of(12000, 15, seed = 16) * rep_len(c(1, -1), 12000)
  pairs <- 12000^2 / 2
  for (metric in unit_metrics[1:4]) {
    pruned <- function(x) {
      knn_search(x, 10, metric[[1]], sign = metric[[2]], backend = "cpu")
      stats <- knn_stats()
      expect_equal(stats$pairs_filtered + stats$pairs_pruned, pairs)
      stats$pairs_pruned / pairs
    }
    expect_gt(pruned(x), 0.5)
  }
  expect_identical(pruned(random_matrix(12000, 60, seed = 17)), 0)
})

test_that("verbs by block have the same answer in order of a tree", {
  x <- clusters_of(600, 11, seed = 18)
  block <- rep_len(c("a", "b", "a", "c"), 600)
  # In block c all points are far from those of a and b.
  x[block == "c", ] <- x[block == "c", ] + 300
  for (metric in c(boxed_metrics, "cosine")) {
    same <- function(verb, ..., points = x) {
      search <- function() {
        verb(points, ..., metric = metric, backend = "cpu", chunk_size = 48)
      }
      expect_identical(
        in_order("tree", search), in_order("scattered", search), label = metric
      )
    }
    for (between in list(FALSE, TRUE, "together")) {
      same(knn_search, k = 5, block = block, between = between)
    }
    same(mutual_pairs, block = block, k = 4)
    same(knn_search, k = 5, block = rep_len(1:30, 600), between = "together")
  }
})

test_that("boxes leave pairs of blocks out where a sample says that they do", {
  x <- clusters_of(6000, 15, seed = 19)
  alike <- random_matrix(6000, 60, seed = 20)
  pruned <- function(x, block) {
    knn_search(
      x, 10, "euclidean", backend = "cpu", block = block, between = "together"
    )
    stats <- knn_stats()
    stats$pairs_pruned / (stats$pairs_filtered + stats$pairs_pruned)
  }
  for (blocks in c(2, 3, 40)) {
    expect_gt(pruned(x, rep_len(seq_len(blocks), 6000)), 0.4)
    expect_identical(pruned(alike, rep_len(seq_len(blocks), 6000)), 0)
  }
})

test_that("histograms have the same counts in order of a tree", {
  x <- clusters_of(500, 11, seed = 21)
  counts <- function(order, ...) {
    found <- in_order(order, function() {
      pair_histogram(x, ..., backend = "cpu", chunk_size = 48)
    })
    as.data.frame(found)
  }
  for (metric in boxed_metrics) {
    breaks <- c(0, 3, 9, 30)
    expect_identical(
      counts("tree", breaks, metric = metric),
      counts("scattered", breaks, metric = metric), label = metric
    )
  }
  for (sign in metric_signs) {
    breaks <- c(0.2, 0.8, 0.95, 1)
    expect_identical(
      counts("tree", breaks, sign = sign),
      counts("scattered", breaks, sign = sign), label = sign
    )
  }
})
