# The contract: the answer is bit for bit that of the core's exact step over all
# pairs. It does not depend on the backend or the division of the work.

test_that("hard matrices give exactly the brute-force answer", {
  matrices <- hard_matrices()
  for (name in names(matrices)) {
    for_all_metrics(function(metric, sign, backend) {
      x <- values_for(matrices[[name]], metric)
      for (k in c(1, 7)) {
        found <- knn_search(
          x, k, metric, sign, backend = backend, chunk_size = 48
        )
        expect_same_bits(
          found, brute_force(x, k = k, metric = metric, sign = sign),
          label = paste(name, metric, sign, backend, "k =", k)
        )
      }
    }, few_signs())
  }
})

test_that("k = 1 and k = n - 1 give exactly the brute-force answer at any n", {
  for (n in c(2, 3, 15, 16, 17, 47, 49, 97)) {
    x <- random_matrix(n, 5, seed = n)
    for_all_metrics(function(metric, sign, backend) {
      x <- values_for(x, metric)
      for (k in unique(c(1, n - 1))) {
        found <- knn_search(x, k, metric, sign, backend = backend)
        expect_same_bits(
          found, brute_force(x, k = k, metric = metric, sign = sign),
          label = paste("n =", n, metric, sign, backend, "k =", k)
        )
      }
    })
  }
})

test_that("one feature is enough where no correlation is asked for", {
  x <- matrix(small_integers(40, 2, largest = 20)[, 1] + 1)
  for_all_metrics(function(metric, sign, backend) {
    if (is_correlation(metric)) {
      return()
    }
    x <- values_for(x, metric)
    found <- knn_search(x, 5, metric, sign, backend = backend)
    expect_same_bits(found, brute_force(x, k = 5, metric = metric, sign = sign))
    expect_same_neighbours(
      found, without_self(naive_distance(x, metric = metric)), metric
    )
  })
})

test_that("one row beside another, and both alike, are found", {
  x <- rbind(c(1, 2, 4), c(1, 2, 4))
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(x, metric)
    found <- knn_search(x, 1, metric, sign, backend = backend)
    expect_identical(found$index, cbind(2:1), label = metric)
    expect_identical(found$distance[[1]], found$distance[[2]])
  })
})

test_that("the answer is the same for every chunk size and number of threads", {
  x <- random_matrix(230, 19, seed = 8)
  x[201:230, ] <- x[1:30, ]
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(x, metric)
    first <- knn_search(x, 9, metric, sign, backend = backend)
    for (chunk_size in c(16, 48, 1000)) {
      for (num_threads in 1:2) {
        again <- knn_search(
          x, 9, metric, sign, backend = backend, chunk_size = chunk_size,
          num_threads = num_threads
        )
        expect_same_bits(
          again, first,
          label = paste(metric, sign, backend, chunk_size, num_threads)
        )
      }
    }
  })
})

test_that("the answer is the same for every instruction set", {
  sets <- fsknn:::cpp_backends()$cpu$instruction_sets
  x <- random_matrix(150, 37, seed = 9)
  x[141:150, ] <- x[1:10, ]
  integers <- small_integers(150, 9)
  metrics <- all_metrics()
  for (row in seq_len(nrow(metrics))) {
    metric <- metrics$metric[[row]]
    sign <- metrics$sign[[row]]
    for (values in lapply(list(x, integers), values_for, metric)) {
      expected <- brute_force(values, k = 11, metric = metric, sign = sign)
      for (set in sets) {
        rlang::with_options(
          fsknn.instruction_set = set,
          found <- knn_search(values, 11, metric, sign, backend = "cpu")
        )
        expect_same_bits(found, expected, label = paste(metric, sign, set))
      }
    }
  }
})

test_that("the answer is the same by whole numbers of 8 and of 16 bits", {
  x <- random_matrix(150, 37, seed = 9)
  x[141:150, ] <- x[1:10, ]
  search <- function(values, metric, sign, bits) {
    rlang::with_options(
      fsknn.instruction_set = paste0("auto/", bits),
      list(
        knn_search(values, 11, metric, sign, backend = "cpu"),
        within_search(
          values, 0.5, metric = metric, sign = sign, backend = "cpu"
        )
      )
    )
  }
  metrics <- all_metrics()
  metrics <- metrics[
    metrics$metric %in% c(
      "pearson", "spearman", "bicor", "cosine", "manhattan", "proportional"
    ),
  ]
  for (row in seq_len(nrow(metrics))) {
    metric <- metrics$metric[[row]]
    sign <- metrics$sign[[row]]
    for (values in list(x, small_integers(150, 9))) {
      values <- values_for(values, metric)
      expect_identical(
        search(values, metric, sign, 8), search(values, metric, sign, 16),
        label = paste(metric, sign)
      )
    }
  }
  # With 32 bits, GPUs use floats. Whole numbers of a CPU have 16.
  for (metric in c("pearson", "manhattan", "chebyshev")) {
    expect_identical(
      search(x, metric, "signed", 32), search(x, metric, "signed", 16)
    )
  }
  rlang::with_options(
    fsknn.instruction_set = "auto/7",
    expect_error(knn_search(x, 3, backend = "cpu"), "instruction_set")
  )
})

test_that("all backends give the same bits", {
  skip_if_no_cuda()
  x <- random_matrix(500, 40, seed = 10)
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(x, metric)
    expect_same_bits(
      knn_search(x, 20, metric, sign, backend = backend),
      knn_search(x, 20, metric, sign, backend = "cpu"),
      label = paste(metric, sign, backend)
    )
  })
})

test_that("rows that are equal bit for bit tie, in order of index", {
  x <- random_matrix(10, 2, seed = 11)[rep(1:10, each = 3), ]
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(x, metric)
    found <- knn_search(x, 29, metric, sign, backend = backend)
    for (copy in list(1:3, 13:15)) {
      # The distances of another point to the three copies are equal.
      to_copies <- found$distance[30, match(copy, found$index[30, ])]
      expect_identical(to_copies, rep(to_copies[[1]], 3))
      expect_false(is.unsorted(match(copy, found$index[30, ])))
    }
  })
})

test_that("integer, logical and double storage give the same answer", {
  x <- small_integers(60, 8, largest = 1)
  integers <- x
  storage.mode(integers) <- "integer"
  logicals <- x == 1
  for_all_metrics(function(metric, sign, backend) {
    expected <- knn_search(x, 5, metric, sign, backend = backend)
    expect_same_bits(
      knn_search(integers, 5, metric, sign, backend = backend), expected
    )
    expect_same_bits(
      knn_search(logicals, 5, metric, sign, backend = backend), expected
    )
  })
})

test_that("rows may have 1, 2, 4,096 or 50,000 features", {
  for (num_features in c(1, 2, 4096, 50000)) {
    x <- random_matrix(17, num_features, seed = 71)
    metrics <- if (num_features > 1) c("pearson", "spearman")
    for (metric in c(metrics, "cosine", "euclidean", "manhattan")) {
      # Under cosine, two rows of one feature are equal or opposite, so all are
      # ties.
      expected <- brute_force(x, k = 7, metric = metric)
      for (backend in backends_here()) {
        expect_identical(
          knn_search(x, 7, metric, backend = backend), expected,
          label = paste(backend, metric, num_features)
        )
      }
    }
  }
})

# Returns twice the ranks minus d + 1, which are whole numbers: the number of
# smaller values minus that of larger ones. r times the root of the product of
# their sums of squares is exact.
whole_ranks <- function(x) {
  t(apply(x, 1, function(row) {
    rowSums(outer(row, row, ">")) - rowSums(outer(row, row, "<"))
  }))
}

test_that("Spearman's ties are those of whole numbers, in order of index", {
  x <- random_matrix(200, 6, seed = 72)
  products <- tcrossprod(whole_ranks(x))
  r <- products / diag(products)[[1]]
  for (sign in c("signed", "absolute", "negative")) {
    distance <- switch(sign, signed = 1 - r, absolute = 1 - abs(r), 1 + r)
    diag(distance) <- Inf
    nearest <- t(apply(distance, 1, order))[, 1:40]
    at <- cbind(rep(1:200, 40), c(nearest))
    for (backend in backends_here()) {
      graph <- knn_graph(x, 40, "spearman", sign, backend = backend)
      graph <- graph[order(graph$rank, graph$from), ]
      expect_identical(graph$to, c(nearest), label = paste(sign, backend))
      expect_identical(graph$distance, distance[at])
      expect_identical(graph$correlation, r[at])
    }
  }
})

test_that("under Spearman's the order of the samples changes no bit", {
  x <- random_matrix(150, 6, seed = 73)
  tied <- small_integers(150, 6, largest = 3)
  tied <- tied[apply(tied, 1, function(row) any(row != row[[1]])), ]
  gaps <- x
  gaps[seq(3, length(gaps), 11)] <- NA
  groups <- rep_len(c("a", "b", "c"), 150)
  asks <- list(
    function(x, tied, gaps, ...) knn_search(x, 9, ...),
    function(x, tied, gaps, ...) knn_search(tied, 9, ...),
    function(x, tied, gaps, ...) knn_graph(x, 9, sign = "absolute", ...),
    function(x, tied, gaps, ...) knn_query(x, tied, 9, ...),
    function(x, tied, gaps, ...) knn_search(x, 9, subset = 9:3, ...),
    function(x, tied, gaps, ...) {
      knn_graph(x, 4, block = groups, between = TRUE, ...)
    },
    function(x, tied, gaps, ...) within_search(x, 0.3, ...),
    function(x, tied, gaps, ...) threshold_graph(tied, 0.7, ...),
    function(x, tied, gaps, ...) {
      suppressMessages(knn_search(gaps, 5, na = "pairwise", ...))
    },
    function(x, tied, gaps, ...) {
      # Only CPUs do this search.
      suppressMessages(within_search(
        gaps, 0.3, "spearman", na = "pairwise", backend = "cpu"
      ))
    }
  )
  plain <- function(found) {
    attributes(found) <- attributes(found)[c("names", "class")]
    found
  }
  orders <- list(6:1, c(2, 4, 6, 1, 3, 5), c(5, 1, 2, 6, 4, 3))
  for (backend in backends_here()) {
    for (ask in asks) {
      answer <- function(order) {
        plain(ask(
          x[, order], tied[, order], gaps[, order], metric = "spearman",
          backend = backend
        ))
      }
      expected <- answer(1:6)
      for (order in orders) {
        expect_identical(
          answer(order), expected,
          label = paste(backend, deparse1(body(ask)))
        )
      }
    }
  }
})

test_that("rows of equal ranks are at Spearman's distance 0", {
  for (d in c(2, 3, 7, 30, 400)) {
    x <- rbind(random_matrix(6, d, seed = d), small_integers(3, d, 1))
    x[7:9, 1:2] <- 5:6 # none is constant
    x <- rbind(x, exp(x))
    for (backend in backends_here()) {
      nn <- knn_search(x, 1, "spearman", backend = backend)
      expect_identical(c(nn$distance), numeric(18))
      negative <- knn_query(x, -x, 1, "spearman", "negative", backend = backend)
      expect_identical(c(negative$distance), numeric(18))
    }
  }
})

test_that("equal ranks are neighbours among rows that are nearly alike", {
  # The filter's rows are rounded to length 1. Their error is larger than that
  # of most rows' sums.
  profiles <- rbind(
    c(1, 2, 2, 2, 1, 3, 4, 1, 1, 4), c(2, 1, 1, 3, 3, 1, 2, 4, 1, 4)
  )
  withr::local_options(rlib_message_verbosity = "quiet") # of counts
  for (backend in backends_here()) {
    for (num_points in c(300, 5000)) {
      for (profile in 1:2) {
        x <- matrix(rep(profiles[profile, ], each = num_points), num_points)
        some <- num_points / 10
        x[withr::with_seed(3, cbind(
          sample(num_points, some), sample(10, some, TRUE)
        ))] <- 3
        equal <- which(colSums(t(x) != profiles[profile, ]) == 0)
        found <- knn_search(x, 3, "spearman", backend = backend)
        first <- equal[1:4]
        expected <- t(vapply(equal, function(i) setdiff(first, i)[1:3], integer(3)))
        expect_identical(found$index[equal, ], expected)
        expect_identical(range(found$distance[equal, ]), c(0, 0))
        within <- within_search(x[1:300, ], 0, "spearman", backend = backend)
        near <- equal[equal <= 300]
        expect_identical(
          within$index[near], lapply(near, function(i) setdiff(near, i))
        )
      }
    }
  }
})
