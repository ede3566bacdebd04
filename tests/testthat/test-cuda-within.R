# All pairs within a distance on a GPU: the CPU's answer, bit for bit. With
# enough points it uses the filter, or double if most pairs are within.

# Only few of these pairs are within the distance, and n = 4,200 suffices for a
# filter.
many_rows <- function(d = 24, n = 4200, seed = 71) random_matrix(n, d, seed)

# Returns distances of neighbours, the nearest first.
near_distances <- function(x, metric, sign = "signed", k = 6) {
  sort(knn_search(x, k, metric, sign, backend = "cpu",
                  constant = "isolate")$distance)
}

on_gpu <- function(f, ..., devices = 1) {
  f(..., backend = "cuda", devices = devices, constant = "isolate")
}
on_cpu <- function(f, ...) f(..., backend = "cpu", constant = "isolate")

expect_same_within <- function(f, ..., filtered = TRUE, label = NULL,
                               gpu_only = list(), devices = 1) {
  expected <- on_cpu(f, ...)
  found <- do.call(on_gpu, c(list(f, ..., devices = devices), gpu_only))
  if (!is.na(filtered)) {
    expect_identical(knn_stats()$filtered, filtered, label = label)
  }
  expect_identical(found, expected, label = label)
  invisible(expected)
}

# Returns the number and its two adjacent numbers.
and_beside <- function(limit) {
  bit <- 2^(floor(log2(abs(limit))) - 52)
  c(limit, limit + bit, limit - bit / 2)
}

test_that("every metric's pairs within a distance are the CPU's", {
  skip_if_no_cuda()
  for_all_metrics(function(metric, sign, backend) {
    if (backend != "cuda") {
      return()
    }
    x <- values_for(many_rows(), metric)
    query <- values_for(many_rows(n = 700, seed = 72), metric)
    near <- near_distances(x, metric, sign)
    filtered <- if (has_filter(metric)) NA else FALSE
    label <- paste(metric, sign)
    # There is one distance for all, and one for each point, of which some have
    # no neighbours.
    each <- rep(near[c(400, 4000, 1, 9000)], length.out = nrow(x))
    found <- expect_same_within(
      within_search, x, near[[3000]], metric, sign,
      filtered = filtered, label = label
    )
    expect_gt(length(found$index), 0)
    if (metric %in% c("pearson", "cosine", "euclidean", "manhattan")) {
      expect_true(knn_stats()$filtered, label = label)
      # Each pair is filtered once, and few of them need double.
      expect_lte(knn_stats()$pairs_filtered, 4200 * 4199 / 2)
      expect_lt(knn_stats()$pairs_exact, 4200^2 / 64)
    }
    expect_same_within(
      within_search, x, each, metric, sign, filtered = filtered, label = label
    )
    expect_same_within(
      within_query, x, query, each[1:700], metric, sign,
      filtered = filtered, label = label
    )
    expect_same_within(
      within_query, x, query, near[[3000]], metric, sign,
      filtered = filtered, label = label, gpu_only = list(chunk_size = 64)
    )
  })
})

test_that("distances at a limit are within it, and a bit beside it or not", {
  skip_if_no_cuda()
  for (metric in c("pearson", "euclidean", "inner_product", "manhattan",
                   "chebyshev", "proportional", "cosine")) {
    x <- values_for(many_rows(d = 17), metric)
    near <- near_distances(x, metric)
    for (limit in c(and_beside(near[[1]]), and_beside(near[[2000]]))) {
      expect_same_within(within_search, x, limit, metric, label = metric)
    }
  }
  # 1 - r has lost bits that r has.
  x <- many_rows(d = 17)
  r <- 1 - near_distances(x, "pearson")[[2000]]
  for (least in and_beside(r)) {
    expect_same_within(threshold_graph, x, least)
    expect_same_within(threshold_graph, x, least, "spearman", "absolute")
  }
})

test_that("near-ties, duplicates and wild rows are told apart in double", {
  skip_if_no_cuda()
  base <- many_rows(d = 21, seed = 73)
  cases <- lapply(c(1e-7, 1e-9, 1e-12, 1e-15), function(gap) {
    x <- base
    x[1:400, ] <- base[rep(1:20, 20), ] *
      (1 + gap * random_matrix(400, 21, seed = 74))
    x
  })
  equal <- base
  equal[1:300, ] <- base[rep(1:3, 100), ]
  wild <- base
  wild[c(5, 1000, 3000), 3] <- c(1e100, -1e120, 1e60)
  wild[2000, ] <- wild[2000, ] * 1e9
  tiny <- base
  tiny[1:200, ] <- tiny[1:200, ] * 1e-200
  opposite <- base
  opposite[2101:4200, ] <- -base[1:2100, ]
  constant <- base
  constant[c(1, 17, 4200), ] <- 2
  cases <- c(cases, list(equal, wild, tiny, opposite, constant))
  for (at in seq_along(cases)) {
    for (metric in c("pearson", "euclidean", "inner_product", "manhattan",
                     "chebyshev", "proportional")) {
      x <- values_for(cases[[at]], metric)
      near <- near_distances(x, metric)
      label <- paste(at, metric)
      for (limit in near[c(1, 2000, 5000)]) {
        expect_same_within(
          within_search, x, limit, metric, filtered = NA, label = label
        )
        expect_same_within(
          within_query, x[-(1:600), ], x[1:600, ], limit, metric,
          filtered = NA, label = label
        )
      }
    }
  }
})

dist_of <- function(x, metric) {
  d <- naive_distance(x, metric = metric)
  d[upper.tri(d)]
}

test_that("where many pairs are within, all are met in doubles", {
  skip_if_no_cuda()
  x <- many_rows(d = 9, n = 4100)
  for (metric in c("pearson", "euclidean", "manhattan")) {
    middle <- stats::median(dist_of(x[1:60, ], metric))
    expect_same_within(within_search, x, middle, metric, filtered = FALSE)
    some <- rep(c(middle, near_distances(x, metric)[[1]]), length.out = 4100)
    expect_same_within(within_search, x, some, metric, filtered = FALSE)
  }
  expect_same_within(within_search, x, Inf, "euclidean", filtered = FALSE)
  # No pair is within this distance.
  expect_same_within(within_search, x, 0, "euclidean", filtered = TRUE)
  expect_same_within(within_search, x, -Inf, "inner_product", filtered = TRUE)
  # Pairs that are not kept are computed a second time.
  near <- near_distances(x, "pearson")[[9000]]
  search <- function(kept) {
    options <- fsknn:::check_options(list(backend = "cuda", devices = 1))
    search <- fsknn:::ask_within(fsknn:::new_search(x, options), near)
    search$request$within$most_kept <- kept
    fsknn:::run_search(search)[c("index", "distance")]
  }
  expect_identical(search(100), search(2^24))
  expect_true(knn_stats()$filtered)
})

test_that("weights, covariates, subsets and long rows are filtered too", {
  skip_if_no_cuda()
  x <- many_rows()
  near <- near_distances(x, "pearson")[[3000]]
  weights <- seq(0.5, 2, length.out = 24)
  batch <- rep(c(0, 1, 0), 8)
  expect_same_within(within_search, x, near, weights = weights)
  expect_same_within(within_search, x, near, adjust = batch)
  expect_same_within(within_search, x, near, subset = 1000:1999)
  expect_same_within(threshold_graph, x, 1 - near, subset = 1000:1999)
  # Rows are split into several column ranges.
  long <- x[, rep(1:24, 90)] + many_rows(d = 2160, seed = 75) / 4
  for (metric in c("pearson", "euclidean", "manhattan")) {
    near <- near_distances(long, metric)[[3000]]
    expect_same_within(within_search, long, near, metric)
  }
})

test_that("chunks, little memory and several GPUs change no bit", {
  skip_if_no_cuda()
  x <- many_rows(d = 40, n = 9000)
  gpus <- nrow(gpus_here())
  for (metric in c("pearson", "euclidean", "chebyshev")) {
    near <- near_distances(x, metric)[[9000]]
    for (chunk_size in c(64, 300, 5000)) {
      expect_same_within(
        within_search, x, near, metric, gpu_only = list(chunk_size = chunk_size)
      )
    }
    # The first limit has room for the filter, and the second has not.
    for (limit in c(80e6, 20e6)) {
      expect_same_within(
        within_search, x, near, metric,
        filtered = limit > 5e7, gpu_only = list(max_device_memory = limit)
      )
      expect_lte(knn_stats()$bytes_device, limit)
    }
    expect_same_within(
      within_search, x, near, metric, devices = seq_len(gpus)
    )
    expect_identical(knn_stats()$num_devices, gpus)
    expect_same_within(
      within_query, x, x[1:700, ], near, metric,
      devices = seq_len(min(gpus, 3))
    )
  }
})

test_that("points that are held are searched by the filter again and again", {
  skip_if_no_cuda()
  x <- many_rows()
  ask <- function(limit, metric) {
    options <- fsknn:::check_options(
      list(metric = metric, backend = "cuda", devices = 1)
    )
    fsknn:::ask_within(fsknn:::new_search(x, options), limit)
  }
  points <- fsknn:::hold_points(x, ask(0, "pearson")$request)
  for (metric in c("pearson", "pearson", "euclidean")) {
    for (limit in near_distances(x, metric)[c(100, 5000)]) {
      search <- ask(limit, metric)
      found <- fsknn:::in_core(fsknn:::ask_core(points, NULL, search$request))
      expected <- fsknn:::in_core(fsknn:::ask_core(x, NULL, search$request))
      expect_true(found$stats$filtered)
      parts <- setdiff(names(expected), "stats")
      expect_identical(found[parts], expected[parts], label = metric)
    }
    # First most pairs are within the distance, then few again.
    search <- ask(if (metric == "pearson") 1.5 else 100, metric)
    found <- fsknn:::in_core(fsknn:::ask_core(points, NULL, search$request))
    expect_false(found$stats$filtered)
    expect_gt(sum(lengths(found$index)), 1e6)
  }
})

test_that("pairs of two blocks count for either of their points", {
  skip_if_no_cuda()
  x <- many_rows(n = 5400)
  for (metric in c("pearson", "euclidean", "manhattan")) {
    near <- near_distances(x, metric)
    each <- rep(near[c(400, 4000, 1, 9000)], length.out = 5400)
    for (limit in list(near[[3000]], each)) {
      part <- function(backend) {
        options <- fsknn:::check_options(list(
          metric = metric, backend = backend,
          devices = if (backend == "cuda") 1
        ))
        search <- fsknn:::ask_within(fsknn:::new_search(x, options), limit)
        fsknn:::in_core(fsknn:::ask_between(
          search$points$values, c(1, 900), c(1001, 5400), search$request
        ))
      }
      parts <- c("count", "index", "distance", "correlation")
      found <- part("cuda")
      expect_true(found$stats$filtered, label = metric)
      expect_identical(found[parts], part("cpu")[parts], label = metric)
    }
  }
})
