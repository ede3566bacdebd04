# Returns the core's distances of all pairs.
core_distances <- function(x, metric, sign = "signed") {
  n <- nrow(x)
  found <- brute_force(x, k = n - 1, metric = metric, sign = sign)
  distance <- matrix(0, n, n)
  distance[cbind(rep(seq_len(n), n - 1), as.vector(found$index))] <-
    as.vector(found$distance)
  distance
}

far_clusters <- function(num_points, num_features, num_clusters) {
  centres <- 10 * random_matrix(num_clusters, num_features, seed = 11)
  centres[rep_len(seq_len(num_clusters), num_points), ] +
    0.1 * random_matrix(num_points, num_features, seed = 12)
}

# Returns matrices for which lists of neighbours do not determine the tree.
tree_matrices <- function() {
  c(
    hard_matrices(),
    list(
      "far clusters" = far_clusters(90, 5, 3),
      "all as far" = diag(30) + 0,
      "two points, repeated" = rbind(1:5 + 0, c(5, 1, 4, 2, 9))[
        rep(1:2, each = 20),
      ],
      "ever farther" = cbind(2^(1:40 / 4), 1, 3)
    )
  )
}

# Returns the core's answer from lists of k neighbours.
core_mst_knn <- function(x, k, metric, sign = "signed", most = 1e6,
                         num_threads = 1L, chunk_size = 0L,
                         instruction_set = "auto") {
  options <- list(
    metric = list(name = metric), sign = sign, num_threads = num_threads,
    chunk_size = chunk_size, backend = list(name = "cpu", devices = integer()),
    instruction_set = instruction_set
  )
  request <- new_request(as.integer(k), options)
  found <- cpp_knn_search(x, NULL, request)
  cpp_mst_knn(x, found$index, found$distance, as.integer(most), request)
}

# Checks that no cluster has points of two groups.
expect_within <- function(membership, groups) {
  expect_identical(
    nrow(unique(cbind(membership, groups))), length(unique(c(membership)))
  )
}

parts <- c("from", "to", "distance", "kept", "cluster")

expect_naive <- function(found, distance, label) {
  tree <- naive_tree(distance)
  cluster <- naive_membership(naive_mst_knn(distance), nrow(distance))
  same <- identical(cbind(found$from, found$to), tree) &&
    identical(found$distance, distance[tree]) &&
    identical(found$cluster, cluster) &&
    identical(found$kept, cluster[tree[, 1]] == cluster[tree[, 2]])
  expect(same, paste("Not the tree and clusters by definition:", label))
}

test_that("tree and clusters are those by definition, for every metric", {
  matrices <- tree_matrices()
  searched <- 0
  for (name in names(matrices)) {
    for_all_metrics(function(metric, sign, backend) {
      x <- values_for(matrices[[name]], metric)
      found <- core_mst_knn(x, k = 2, metric, sign)
      if (identical(found$failure, "range")) {
        return()
      }
      searched <<- searched + (found$passes > 0)
      expect_naive(
        found, core_distances(x, metric, sign), paste(name, metric, sign)
      )
      in_tree <- core_mst_knn(
        x, k = 2, metric, sign, instruction_set = "auto/tree", chunk_size = 48L
      )
      expect_identical(
        in_tree[c(parts, "passes")], found[c(parts, "passes")],
        label = paste(name, metric, sign)
      )
    }, few_signs())
  }
  # If lists determined all trees, these would not test the search.
  expect_gt(searched, 40)
})

test_that("neither the lists' length nor the work's shape changes anything", {
  x <- far_clusters(150, 6, 5)
  for (metric in c("pearson", "euclidean", "manhattan")) {
    expected <- core_mst_knn(x, 149, metric)
    expect_identical(expected$passes, 0L)
    for (k in c(1, 3, 9, 40)) {
      expect_identical(core_mst_knn(x, k, metric)[parts], expected[parts])
    }
    others <- list(
      core_mst_knn(x, 3, metric, num_threads = 3L),
      core_mst_knn(x, 3, metric, chunk_size = 48L),
      core_mst_knn(x, 3, metric, instruction_set = "baseline"),
      core_mst_knn(x, 3, metric, instruction_set = "auto/tree"),
      core_mst_knn(x, 3, metric, instruction_set = "auto/scattered")
    )
    for (other in others) {
      expect_gt(other$passes, 0)
      expect_identical(other[parts], expected[parts])
    }
  }
})

test_that("in order of a tree the spanning tree is the same", {
  n <- 2500
  x <- far_clusters(n, 6, 40) + 0.3 * random_matrix(n, 6, seed = 13)
  # Duplicates in clusters, antipodes, and an offset that leaves few digits.
  x[seq(5, n, 9), ] <- x[seq(4, n - 1, 9), ]
  data <- list(
    clusters = x, offset = 1e9 + 1e-3 * x, antipodes = x * rep_len(c(1, -1), n),
    subnormal = 1e-310 * x, ties = round(x / 5)
  )
  for (name in names(data)) {
    for (metric in c("euclidean", "manhattan", "chebyshev", "cosine")) {
      found <- lapply(c("scattered", "tree"), function(order) {
        core_mst_knn(
          data[[name]], 4, metric, num_threads = 2L, chunk_size = 96L,
          instruction_set = paste0("auto/", order)
        )
      })
      expect_identical(
        found[[2]][parts], found[[1]][parts], label = paste(name, metric)
      )
      if (name == "clusters") expect_gt(found[[2]]$pairs_pruned, 0.3 * n^2 / 2)
    }
  }
  found <- lapply(c("scattered", "tree"), function(order) {
    core_mst_knn(
      data$antipodes, 4, "pearson", "absolute", chunk_size = 96L,
      instruction_set = paste0("auto/", order)
    )
  })
  expect_identical(found[[2]][parts], found[[1]][parts])
  expect_gt(found[[1]]$passes, 0)
})

test_that("clusters that fall apart again are cut by their own sizes", {
  # The points are a chain of groups with different sizes and widths, which need
  # cut after cut.
  x <- do.call(rbind, lapply(1:9, function(g) {
    5 * g^2 + g * random_matrix(4 * g, 2, seed = g)
  }))
  distance <- core_distances(x, "euclidean")
  for (most in c(1, 2, 1e6)) {
    found <- core_mst_knn(x, 4, "euclidean", most = most)
    expect_gt(max(found$cluster), 1)
    if (most == 1e6) expect_naive(found, distance, "a chain of groups")
  }
  # k is floor(ln n) rather than a fixed number, so the clusters differ.
  expect_false(identical(
    core_mst_knn(x, 4, "euclidean")$cluster,
    core_mst_knn(x, 4, "euclidean", most = 1)$cluster
  ))
})

test_that("whole numbers full of ties give the reference's answer", {
  for (seed in 1:4) {
    x <- small_integers(40, 3, seed = seed)
    for (metric in c("manhattan", "chebyshev")) {
      found <- core_mst_knn(x, 3, metric)
      expect_naive(found, naive_distance(x, metric = metric), metric)
    }
  }
})

test_that("mst_knn() gives membership, sizes, edges and tree", {
  x <- far_clusters(60, 8, 3)
  rownames(x) <- paste0("g", 1:60)
  clusters <- mst_knn(x, "euclidean")
  expect_s3_class(clusters, "fsknn_mst_knn")
  expect_identical(names(clusters$membership), rownames(x))
  expect_within(clusters$membership, rep_len(1:3, 60))
  expect_identical(clusters$sizes, tabulate(clusters$membership))
  expect_false(is.unsorted(rev(clusters$sizes)))
  expect_identical(nrow(clusters$tree), 59L)
  expect_identical(nrow(clusters$edges), 60L - length(clusters$sizes))
  expect_false(is.unsorted(clusters$tree$distance))
  expect_true(clusters$exact)
  graph <- as_igraph(clusters$edges, mode = "union")
  expect_within(igraph::components(graph)$membership, clusters$membership)
  expect_identical(igraph::V(graph)$cluster, unname(clusters$membership))
  expect_identical(
    as.vector(igraph::sizes(igraph::make_clusters(graph, clusters$membership))),
    clusters$sizes
  )
  expect_identical(mst_knn(as.data.frame(x), "euclidean"), clusters)
})

test_that("edges of correlations have the signed r", {
  x <- random_matrix(30, 6)
  for (sign in metric_signs) {
    tree <- mst_knn(x, sign = sign)$tree
    r <- stats::cor(t(x))[cbind(tree$from, tree$to)]
    expect_equal(tree$correlation, r, tolerance = 1e-12)
  }
  expect_null(mst_knn(x, "euclidean")$tree$correlation)
})

test_that("isolated points are clusters of their own", {
  x <- random_matrix(30, 6)
  x[c(3, 20), ] <- 5
  expect_messages(mst_knn(x))
  clusters <- mst_knn(x, constant = "isolate")
  joined <- mst_knn(x[-c(3, 20), ])
  expect_identical(clusters$membership[-c(3, 20)], joined$membership)
  expect_identical(clusters$membership[c(3, 20)], length(joined$sizes) + 1:2)
  expect_identical(clusters$tree$distance, joined$tree$distance)
})

test_that("few points are clustered too", {
  expect_identical(mst_knn(random_matrix(2, 4))$membership, c(1L, 1L))
  expect_identical(sum(mst_knn(random_matrix(3, 4))$sizes), 3L)
  expect_messages(mst_knn(random_matrix(1, 4)))
})

test_that("a graph of all pairs gives what the matrix gives", {
  x <- random_matrix(50, 5)
  for (metric in c("pearson", "euclidean")) {
    whole <- mst_knn(knn_graph(x, k = 49, metric = metric))
    expected <- mst_knn(x, metric)
    expect_identical(whole$membership, expected$membership)
    expect_identical(whole$edges, expected$edges)
    expect_identical(whole$tree, expected$tree)
    expect_false(whole$exact)
  }
  small <- small_integers(40, 3)
  expect_identical(
    mst_knn(knn_graph(small, k = 39, metric = "manhattan"))$tree,
    mst_knn(small, "manhattan")$tree
  )
})

test_that("a graph's edges are all that counts, in either direction", {
  x <- far_clusters(60, 8, 3)
  rownames(x) <- paste0("g", 1:60)
  edges <- knn_graph(x, k = 5, metric = "euclidean")
  clusters <- mst_knn(edges)
  expect_within(clusters$membership, rep_len(1:3, 60))
  expect_identical(nrow(clusters$tree), 57L)
  for (mode in c("directed", "union")) {
    expect_identical(
      mst_knn(as_igraph(edges, mode = mode))$membership, clusters$membership
    )
  }
})

test_that("k lowers the number of neighbours that count", {
  x <- random_matrix(60, 5)
  distance <- core_distances(x, "pearson")
  one <- mst_knn(x, k = 1)
  # Only edges to a nearest neighbour are left.
  nearest <- apply(distance + diag(Inf, 60), 1, which.min)
  ends <- one$tree[c("from", "to")]
  near <- nearest[ends$from] == ends$to | nearest[ends$to] == ends$from
  expect_true(all(near[paste(ends$from, ends$to) %in%
                         paste(one$edges$from, one$edges$to)]))
  expect_gt(length(one$sizes), length(mst_knn(x)$sizes))
  expect_identical(mst_knn(x, k = 4), mst_knn(x))
  expect_identical(mst_knn(x, k = 50), mst_knn(x))
  edges <- knn_graph(x, k = 10)
  expect_gt(length(mst_knn(edges, k = 1)$sizes), length(mst_knn(edges)$sizes))
})

test_that("a graph with too few neighbours is an error", {
  x <- random_matrix(60, 5)
  edges <- knn_graph(x, k = 3)
  expect_messages({
    mst_knn(edges)
    mst_knn(as_igraph(edges))
    mst_knn(edges, k = 4)
  })
  expect_no_error(mst_knn(edges, k = 3))
  ten <- knn_graph(x, k = 10)
  expect_messages(mst_knn(ten[ten$rank <= 2, ]))
  ten$rank <- NULL
  graph <- as_igraph(ten)
  expect_messages(mst_knn(graph))
})

test_that("what is neither points nor a graph is an error", {
  x <- random_matrix(20, 5)
  lost <- as.data.frame(as.list(knn_graph(x, k = 3)))
  expect_messages({
    mst_knn("a")
    mst_knn(lost)
    mst_knn(x, k = 0)
    mst_knn(knn_graph(x, k = 3), sign = "absolute")
  })
})

test_that("a distance beyond double's range is an error, not an answer", {
  x <- rbind(far_clusters(20, 4, 1), far_clusters(20, 4, 1) + 1)
  x[1:20, ] <- x[1:20, ] + 1e308
  x[21:40, ] <- x[21:40, ] - 1e308
  expect_error(mst_knn(x, "manhattan"), class = "fsknn_range_error")
})

test_that("it is printed in a few lines", {
  x <- rbind(far_clusters(60, 8, 3), 7)
  expect_snapshot(mst_knn(x, "euclidean"))
  expect_snapshot(mst_knn(x, constant = "isolate", sign = "absolute"))
  expect_snapshot(mst_knn(knn_graph(x[1:60, ], k = 5, metric = "euclidean")))
})

test_that("24,158 points take seconds", {
  skip_unless_long()
  withr::local_options(fsknn.num_threads = 2)
  factors <- matrix(stats::qnorm(uniform_numbers(40 * 295, 3)), 40)
  # The numbers are cheap to make, because this test is about time.
  x <- matrix(sin(seq_len(24158 * 40)^1.1), 24158) %*% factors
  edges <- knn_graph(x, k = 10, backend = "cpu")
  expect_lt(cpu_seconds(mst_knn(edges)), 20)
  expect_lt(cpu_seconds(mst_knn(x, backend = "cpu")), 60)
})

test_that("missing values may be filled by the row's mean", {
  x <- random_matrix(60, 9, seed = 5)
  withr::with_seed(6, x[sample(length(x), 60)] <- NA)
  filled <- t(cpp_filled(x)$rows)
  for (metric in c("pearson", "euclidean")) {
    expect_identical(mst_knn(x, metric, na = "mean"), mst_knn(filled, metric))
  }
  # Clusters are computed as far as the graph allows.
  graph <- knn_graph(x, 20, na = "pairwise")
  expect_s3_class(mst_knn(graph), "fsknn_mst_knn")
  expect_messages({
    mst_knn(x)
    mst_knn(x, na = "pairwise")
    mst_knn(x, na = "omit")
  })
})

test_that("k = \"connected\" is the smallest that connects the kNN graph", {
  # The points come in pairs, and each nearest neighbour is within the pair.
  x <- random_matrix(40, 6, seed = 8)[rep(1:40, each = 2), ] +
    1e-3 * random_matrix(80, 6, seed = 9)
  smallest <- function(x, metric) {
    for (k in seq_len(floor(log(nrow(x))))) {
      graph <- as_igraph(knn_graph(x, k, metric = metric), mode = "union")
      if (igraph::is_connected(graph)) break
    }
    k
  }
  found <- 0
  for (metric in c("pearson", "euclidean")) {
    for (points in list(x, random_matrix(90, 5), far_clusters(60, 8, 3))) {
      k <- smallest(points, metric)
      clusters <- mst_knn(points, metric, k = "connected")
      expect_identical(clusters$k, as.integer(k))
      fixed <- mst_knn(points, metric, k = k)
      expect_identical(clusters[names(fixed)], fixed[names(fixed)])
      found <- c(found, k)
      edges <- knn_graph(points, 8, metric = metric)
      from_graph <- mst_knn(edges, k = "connected")
      expect_identical(from_graph$k, as.integer(k))
      expect_identical(from_graph$membership, mst_knn(edges, k = k)$membership)
    }
  }
  expect_gt(length(unique(found[-1])), 2)
  expect_null(mst_knn(x)$k)
  flat <- rbind(x, 1)
  expect_identical(
    mst_knn(flat, constant = "isolate", k = "connected")$k,
    mst_knn(x, k = "connected")$k
  )
  expect_identical(mst_knn(x[1:2, ], k = "connected")$k, 1L)
  edges <- knn_graph(x, 8)
  edges$rank <- NULL
  expect_messages({
    mst_knn(x, k = "connect")
    mst_knn(edges, k = "connected")
    mst_knn(knn_graph(x, 3), k = "connected")
  })
  expect_output(print(clusters), "k = . \\(\"connected\"\\)")
})

test_that("the published rule gives 21 clusters of the study's array", {
  skip_on_cran()
  data <- read_nki295("vantveer78_full.rds")
  x <- data$expr[!is.na(rowSums(data$expr)), ]
  x <- rbind(x, data$clinical$months / 12)
  rownames(x) <- NULL
  clusters <- mst_knn(x, k = "connected")
  expect_identical(clusters$k, 4L)
  expect_length(clusters$sizes, 21)
  expect_length(mst_knn(x)$sizes, 1)
})

test_that("a graph without edges gives single points, and no warning", {
  edges <- knn_graph(random_matrix(10, 5), k = 2)
  expect_no_warning(clusters <- mst_knn(edges[0, ]))
  expect_identical(max(clusters$sizes), 1L)
})
