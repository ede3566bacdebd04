# Stability of modules compared with a loop over graphs of x[, samples].

# Makes three modules of different strength among noise.
module_rows <- function(n = 60, d = 24, seed = 3) {
  withr::local_seed(seed)
  x <- matrix(stats::rnorm(n * d), n)
  factors <- matrix(stats::rnorm(3 * d), 3)
  of <- rep(1:3, c(12, 9, 8))
  x[seq_along(of), ] <- x[seq_along(of), ] +
    c(2, 1, 0.7)[of] * factors[of, ]
  x
}

louvain <- function(edges) {
  withr::with_seed(
    1, igraph::cluster_louvain(as_igraph(edges, mode = "union"))
  )
}

jaccard <- function(a, b) length(intersect(a, b)) / length(union(a, b))

# Returns what module_stability() has, from clusters of all samples and a list
# of clusters of each resample.
naive_stability <- function(all, each, min_size) {
  modules <- Filter(
    function(points) length(points) >= min_size, split(seq_along(all), all)
  )
  best <- vapply(each, function(of) {
    vapply(modules, function(points) {
      max(vapply(split(seq_along(of), of), jaccard, 0, points))
    }, 0)
  }, double(length(modules)))
  best <- matrix(best, length(modules))
  points <- do.call(rbind, lapply(modules, function(points) {
    do.call(rbind, lapply(points, function(point) {
      rowMeans(vapply(each, function(of) {
        own <- which(of == of[[point]])
        c(
          jaccard(own, points),
          mean(of[setdiff(points, point)] == of[[point]])
        )
      }, double(2)))
    }))
  }))
  pairs <- outer(seq_along(modules), seq_along(modules), Vectorize(
    function(i, j) {
      mean(vapply(each, function(of) {
        same <- outer(of[modules[[i]]], of[modules[[j]]], `==`)
        if (i == j) mean(same[upper.tri(same)]) else mean(same)
      }, 0))
    }
  ))
  list(modules = modules, best = best, points = points, pairs = pairs)
}

test_that("stability is by definition, under each kind of search", {
  skip_if_not_installed("igraph")
  x <- module_rows()
  batch <- rep_len(1:2, 24)
  settings <- list(
    list(), list(method = "bootstrap"), list(metric = "spearman"),
    list(sign = "absolute"), list(metric = "euclidean"),
    list(adjust = batch), list(fraction = 0.75, points = "columns")
  )
  for (one in settings) {
    one <- lapply(one, identity)
    given <- if (is.null(one$points)) x else t(x)
    found <- withr::with_seed(5, do.call(module_stability, c(
      list(given, louvain, k = 4, resamples = 6, min_size = 4, chance = FALSE),
      one
    )))
    method <- one$method %||% "subsample"
    size <- 24 * (one$fraction %||% if (method == "subsample") 0.5 else 1)
    drawn <- withr::with_seed(
      5, fsknn:::draw_resamples(24, 6, method, size)
    )
    graph <- function(samples) {
      knn_graph(
        x[, samples], 4, metric = one$metric %||% "pearson",
        sign = one$sign %||% "signed",
        adjust = if (!is.null(one$adjust)) batch[samples]
      )
    }
    clusters <- function(samples) {
      as.vector(igraph::membership(louvain(graph(samples))))
    }
    each <- lapply(drawn, clusters)
    expect_equal(found$memberships, matrix(unlist(each), 60))
    expected <- naive_stability(clusters(1:24), each, 4)
    expect_identical(
      found$modules$module, as.integer(names(expected$modules))
    )
    expect_identical(
      found$modules$size, unname(lengths(expected$modules))
    )
    expect_equal(found$modules$stability, rowMeans(expected$best))
    expect_equal(found$modules$recovered, rowMeans(expected$best >= 0.75))
    expect_equal(found$modules$dissolved, rowMeans(expected$best <= 0.5))
    expect_equal(unname(found$comembership), expected$pairs)
    expect_equal(found$modules$together, diag(expected$pairs))
    expect_identical(
      found$points$point, unlist(expected$modules, use.names = FALSE)
    )
    expect_equal(found$points$stability, expected$points[, 1])
    expect_equal(found$points$together, expected$points[, 2])
  }
})

test_that("graphs of resamples are those of their samples", {
  x <- module_rows()
  rownames(x) <- paste0("g", 1:60)
  seen <- list()
  keep <- function(edges) {
    seen[[length(seen) + 1]] <<- edges
    rep(1:2, 30)
  }
  for (metric in c("pearson", "jaccard", "manhattan")) {
    seen <- list()
    values <- if (metric == "jaccard") (x > 0) + 0 else x
    withr::with_seed(5, module_stability(
      values, keep, k = 4, resamples = 2, metric = metric, chance = FALSE
    ))
    drawn <- withr::with_seed(5, fsknn:::draw_resamples(24, 2, "subsample", 12))
    expect_length(seen, 3)
    for (at in 1:2) {
      expect_identical(
        seen[[at + 1]], knn_graph(values[, drawn[[at]]], 4, metric = metric)
      )
    }
    expect_identical(seen[[1]], knn_graph(values, 4, metric = metric))
  }
  weights <- rep_len(c(1, 2, 0, 5), 24)
  kept <- which(weights > 0)
  seen <- list()
  withr::with_seed(5, module_stability(
    x, keep, k = 4, resamples = 2, weights = weights, chance = FALSE,
    method = "bootstrap"
  ))
  drawn <- withr::with_seed(5, fsknn:::draw_resamples(18, 2, "bootstrap", 18))
  for (at in 1:2) {
    expected <- knn_graph(
      x[, kept][, drawn[[at]]], 4, weights = weights[kept][drawn[[at]]]
    )
    expect_identical(seen[[at + 1]]$to, expected$to)
    expect_equal(seen[[at + 1]]$correlation, expected$correlation)
  }
})

test_that("clusters come in every shape, and missing ones count as none", {
  x <- module_rows()
  expected <- withr::with_seed(5, module_stability(
    x, mst_knn, k = 8, resamples = 4, chance = FALSE
  ))
  found <- withr::with_seed(5, module_stability(
    x, function(edges) factor(mst_knn(edges)$membership), k = 8, resamples = 4,
    chance = FALSE
  ))
  expect_equal(found$modules, expected$modules)
  # Points without a cluster agree with nothing.
  calls <- 0
  half <- function(edges) {
    calls <<- calls + 1
    if (calls == 1) rep(1, 60) else rep(c(1, NA), c(15, 45))
  }
  found <- module_stability(x, half, k = 3, resamples = 3, chance = FALSE)
  expect_equal(found$modules$stability, 0.25)
  expect_equal(found$modules$dissolved, 1)
  expect_equal(found$points$stability, rep(c(0.25, 0), c(15, 45)))
  expect_equal(found$points$together, rep(c(14 / 59, 0), c(15, 45)))
  calls <- 0
  none <- function(edges) {
    calls <<- calls + 1
    if (calls == 1) rep(1, 60) else rep(NA, 60)
  }
  found <- module_stability(x, none, k = 3, resamples = 2, chance = FALSE)
  expect_equal(found$modules$stability, 0)
  # Constant points are vertices without edges.
  x[7, ] <- 1
  found <- suppressMessages(module_stability(
    x, function(edges) rep(1, nrow(attr(edges, "vertices"))), k = 3,
    resamples = 2, constant = "isolate", chance = FALSE
  ))
  expect_identical(found$points$point, 1:60)
})

test_that("a real module is more stable than those of permuted data", {
  skip_if_not_installed("igraph")
  x <- module_rows()
  found <- withr::with_seed(2, module_stability(
    x, louvain, k = 4, resamples = 30, min_size = 4
  ))
  first <- found$points$module[found$points$point == 1]
  own <- found$modules[found$modules$module == first, ]
  expect_gt(own$stability, max(found$chance$stability))
  expect_gt(nrow(found$chance), 2)
  # The chance is that of the same search of permuted points.
  permuted <- withr::with_seed(2, {
    drawn <- fsknn:::draw_resamples(24, 30, "subsample", 12)
    fsknn:::permute_within_points(x)
  })
  clusters <- function(samples) {
    as.vector(igraph::membership(louvain(knn_graph(permuted[, samples], 4))))
  }
  expected <- naive_stability(
    clusters(1:24), lapply(drawn[1:20], clusters), 4
  )
  expect_equal(found$chance$stability, rowMeans(expected$best))
  expect_output(print(found), "Chance: .* of permuted data")
})

test_that("draws take whole units", {
  skip_if_not_installed("igraph")
  x <- module_rows()
  ask <- function(x, cluster = louvain, ...) {
    withr::with_seed(2, module_stability(x, cluster, k = 4, resamples = 6, ...))
  }
  # Units of repeated samples have the correlations of single samples.
  unit <- rep(letters[1:24], each = 3)
  for (method in c("subsample", "bootstrap")) {
    alone <- ask(x, method = method)
    units <- ask(x[, rep(1:24, each = 3)], method = method, unit = unit)
    for (part in c("modules", "points", "memberships", "chance")) {
      expect_equal(units[[part]], alone[[part]])
    }
  }
  expect_output(print(units), "of 24 of 24 units", fixed = TRUE)
  # Each graph is that of the samples of half of the units, of any size.
  unit <- rep(c("d", "a", "c", "b", "f", "e"), c(2, 6, 3, 5, 4, 4))
  columns <- c(24:13, 1:12)
  seen <- list()
  found <- ask(x[, columns], function(edges) {
    seen[[length(seen) + 1]] <<- edges
    rep(1:2, 30)
  }, unit = unit[columns])
  drawn <- withr::with_seed(2, replicate(6, sample.int(6, 3), simplify = FALSE))
  of <- unique(unit[columns])
  for (at in 1:6) {
    samples <- which(unit[columns] %in% of[drawn[[at]]])
    expect_identical(seen[[at + 1]], knn_graph(x[, columns[samples]], 4))
  }
  expect_null(found$chance)
  expect_wrong(as.data.frame(found, what = "chance"), "units differ in size")
  expect_wrong(ask(x, unit = unit, fraction = 0.95), "fraction")
  expect_wrong(ask(x, unit = 1:3), "unit")
})

test_that("wrong arguments and clusters are explained", {
  x <- module_rows()
  expect_wrong(module_stability(x, "louvain"), "must be a function")
  expect_wrong(
    module_stability(x, function(edges) 1:3, k = 3), "cluster\\(edges\\)"
  )
  expect_wrong(
    module_stability(x, function(edges) 1:60, k = 3), "The largest has 1"
  )
  expect_wrong(
    module_stability(x, mst_knn, k = 8, checkpoint = tempfile()),
    "does not take"
  )
  expect_wrong(module_stability(x, mst_knn, min_size = 1), "min_size")
  found <- module_stability(
    x, function(edges) rep(1:2, 30), k = 3, resamples = 2, chance = FALSE
  )
  expect_wrong(as.data.frame(found, what = "chance"), "chance = TRUE")
  expect_identical(as.data.frame(found, what = "points"), found$points)
  expect_output(print(found, n = 1), "2 modules of 60 points.*1 more module")
})
