# The arguments `na` and `min_pairs` for all pairs within a distance: the answer
# is that of knn_search() for all other points, up to the distance.

holes <- function(x, share, seed = 1) {
  withr::with_seed(seed, x[sample(length(x), share * length(x))] <- NA)
  x
}

# Makes batches without a common sample, rows with few values, a row without
# variation there, and scattered missing values.
holed_matrix <- function() {
  x <- holes(random_matrix(70, 16, seed = 30), 0.1, seed = 31)
  x[1:10, 1:8] <- NA
  x[11:20, 9:16] <- NA
  x[21, 3:16] <- NA
  x[22, 1:8] <- 7
  x[60:65, ] <- x[50:55, ]
  x
}

quietly <- function(code) {
  suppressMessages(code, classes = "fsknn_short_rows")
}

# `all` has index and distance of all neighbours of each point.
within_limits <- function(all, limits) {
  rows <- seq_len(nrow(all$index))
  limits <- rep_len(limits, length(rows))
  near <- lapply(rows, function(i) which(all$distance[i, ] <= limits[[i]]))
  as_neighbours(list(
    index = lapply(rows, function(i) all$index[i, near[[i]]]),
    distance = lapply(rows, function(i) all$distance[i, near[[i]]])
  ))
}

test_that("pairs over common samples are those of knn_search(), bit for bit", {
  x <- holed_matrix()
  for (metric in c("pearson", "spearman")) {
    for (sign in fsknn:::metric_signs) {
      for (min_pairs in c(2, 3, 9)) {
        all <- quietly(knn_search(
          x, 69, metric, sign, na = "pairwise", min_pairs = min_pairs,
          backend = "cpu"
        ))
        # Some pairs have exactly this distance, to distinguish "at most" from
        # "less".
        limit <- sort(all$distance)[[600]]
        found <- function(...) {
          within_search(
            x, ..., metric = metric, sign = sign, na = "pairwise",
            min_pairs = min_pairs, backend = "cpu"
          )
        }
        expect_identical(found(limit), within_limits(all, limit))
        expect_identical(found(2), within_limits(all, 2))
        expect_identical(found(0), within_limits(all, 0))
        limits <- rep(c(0, limit, 0.4, 1, 9), 14)
        expect_identical(
          found(limits, num_threads = 2, chunk_size = 16),
          within_limits(all, limits)
        )
        rows <- c(70, 3, 21, 3)
        expect_identical(
          found(limit, subset = rows),
          as_neighbours(
            lapply(within_limits(all, limit), function(part) part[rows])
          )
        )
      }
    }
  }
})

test_that("queries meet points over the samples that both have", {
  x <- holed_matrix()
  query <- rbind(
    holes(random_matrix(20, 16, seed = 32), 0.3, seed = 33), x[c(5, 60), ]
  )
  for (metric in c("pearson", "spearman")) {
    all <- quietly(knn_query(
      x, query, 70, metric, na = "pairwise", min_pairs = 5, backend = "cpu"
    ))
    limits <- seq(0, 1.5, length.out = 22)
    for (limit in list(0.6, limits)) {
      expect_identical(
        within_query(
          x, query, limit, metric, na = "pairwise", min_pairs = 5,
          backend = "cpu"
        ),
        within_limits(all, limit)
      )
    }
  }
})

test_that("differences over common features within a distance are those", {
  x <- holed_matrix()
  for (metric in c("euclidean", "manhattan")) {
    for (min_pairs in c(1, 9)) {
      ask <- function(verb, ...) {
        quietly(verb(
          x, ..., metric = metric, na = "pairwise", min_pairs = min_pairs,
          backend = "cpu"
        ))
      }
      all <- ask(knn_search, k = 69)
      limit <- sort(all$distance)[[600]]
      limits <- rep(c(0, limit, limit / 2, 2 * limit, 1e9), 14)
      for (these in list(limit, 0, 1e9, limits)) {
        expect_identical(
          ask(within_search, distance = these), within_limits(all, these)
        )
      }
      all <- ask(knn_query, query = x[5:44, ], k = 70)
      expect_identical(
        ask(within_query, query = x[5:44, ], distance = limit),
        within_limits(all, limit)
      )
    }
  }
})

test_that("co-expression above a threshold is that of cor()", {
  x <- holed_matrix()
  rownames(x) <- paste0("gene", seq_len(nrow(x)))
  r <- suppressWarnings(stats::cor(t(x), use = "pairwise.complete.obs"))
  r[tcrossprod(!is.na(x)) < 6] <- NA
  similar <- list(signed = r, absolute = abs(r), negative = -r)
  for (sign in names(similar)) {
    edges <- threshold_graph(
      x, 0.5, sign = sign, na = "pairwise", min_pairs = 6, backend = "cpu"
    )
    expected <- which(upper.tri(r) & similar[[sign]] >= 0.5, arr.ind = TRUE)
    expect_setequal(
      paste(edges$from, edges$to),
      paste(rownames(x)[expected[, 1]], rownames(x)[expected[, 2]])
    )
    expect_equal(
      edges$correlation, r[cbind(edges$from, edges$to)], tolerance = 1e-12
    )
  }
})

test_that("pairs over common samples are filtered, and kept or found twice", {
  x <- holes(random_matrix(1500, 60, seed = 34), 0.05, seed = 35)
  kept <- within_search(x, 0.5, na = "pairwise", backend = "cpu")
  stats <- knn_stats()
  expect_lt(stats$pairs_exact, 0.1 * stats$pairs_filtered)
  options <- fsknn:::check_options(list(backend = "cpu", na = "pairwise"))
  search <- fsknn:::ask_within(fsknn:::new_search(x, options), 0.5)
  search$request$within$most_kept <- 10
  expect_identical(
    fsknn:::run_search(search)[c("index", "distance")], bare(kept)
  )
})

test_that("too many pairs over common samples are refused with a cure", {
  x <- holes(random_matrix(300, 20, seed = 36), 0.1, seed = 37)
  for (room in c(30000, 5000)) { # counted, and estimated from a sample
    error <- expect_error(
      within_search(x, 1, na = "pairwise", max_memory = 12 * room),
      class = "fsknn_size_error"
    )
    limit <- as.double(fsknn:::round_down(error$fits))
    entries <- sum(lengths(within_search(x, limit, na = "pairwise")$index))
    expect_lte(entries, room)
    expect_gt(entries, room / 2)
  }
})

test_that("the row's mean is taken, for every metric", {
  x <- holes(abs(random_matrix(40, 9, seed = 38)), 0.2, seed = 39)
  filled <- t(cpp_filled(x)$rows)
  for_all_metrics(function(metric, sign, backend) {
    if (isTRUE(fsknn:::metric_facts(metric)$levels > 0)) {
      return()
    }
    all <- knn_search(filled, 39, metric, sign)$distance
    limit <- sort(all)[[500]]
    expect_identical(
      within_search(x, limit, metric, sign, na = "mean", backend = backend),
      within_search(filled, limit, metric, sign, backend = backend)
    )
    expect_identical(
      within_query(
        x, x[3:9, ], limit, metric, sign, na = "mean", backend = backend
      ),
      within_query(
        filled, filled[3:9, ], limit, metric, sign, backend = backend
      )
    )
  })
  expect_identical(
    threshold_graph(x, 0.5, na = "mean"), threshold_graph(filled, 0.5)
  )
})

test_that("with nothing missing the pairs are those without `na`", {
  x <- random_matrix(60, 11, seed = 40)
  plain <- within_search(x, 0.7, "spearman")
  for (na in c("pairwise", "mean")) {
    expect_identical(within_search(x, 0.7, "spearman", na = na), plain)
  }
})

test_that("isolated points are within no distance", {
  x <- holed_matrix()
  x[2, ] <- NA
  x[4, ] <- c(rep(3, 12), rep(NA, 4))
  found <- within_search(
    x, 2, na = "pairwise", constant = "isolate", backend = "cpu"
  )
  expect_identical(found$index[c(2, 4)], list(integer(), integer()))
  expect_false(any(unlist(found$index) %in% c(2, 4)))
  expect_wrong(within_search(x, 2, na = "pairwise"))
})

test_that("missing values are an error that names `na`, as is what can't be", {
  x <- holed_matrix()
  expect_messages({
    within_search(x, 1)
    within_query(x[1:9, 9:16], x[1:5, ], 1, na = "pairwise")
    within_search(x, 1, "chebyshev", na = "pairwise")
    threshold_graph(x, 0.5, weights = 1:16, na = "pairwise")
    threshold_graph(x, 0.5, na = "pairwise", min_pairs = 17)
  })
})

test_that("pairs over common samples take the CPU where it may be chosen", {
  options <- list(
    metric = list(name = "pearson"), sign = "signed", na = "pairwise",
    backend = list(name = "cuda", devices = 1L), num_threads = 1L,
    chunk_size = 0L,
    automatic = fsknn:::is_automatic(c("auto", "cuda", "cpu"), NULL)
  )
  search <- list(
    request = fsknn:::new_request(NULL, options), options = options
  )
  rlang::reset_message_verbosity("fsknn_within_pairwise")
  expect_messages(on_cpu <- fsknn:::within_on_cpu(search))
  expect_identical(on_cpu$request$backend, "cpu")
  expect_identical(on_cpu$request$devices, integer())
  expect_null(on_cpu$options$long)
  with_workers <- search
  with_workers$options$long <- list(workers = list(count = 1L, groups = list(1L)))
  expect_identical(
    suppressMessages(fsknn:::within_on_cpu(with_workers))$options$long$workers,
    list(count = 1L, groups = NULL)
  )
  for (given in list(list("cuda", NULL), list("auto", 1))) {
    expect_false(fsknn:::is_automatic(given[[1]], given[[2]]))
  }
  search$options$automatic <- FALSE
  expect_messages(fsknn:::within_on_cpu(search, call = quote(within_search())))
  expect_error(fsknn:::within_on_cpu(search), class = "fsknn_backend_error")
  search$request$na <- "mean"
  expect_identical(fsknn:::within_on_cpu(search), search)
})

test_that("what does not fit in memory has its missing values filled", {
  skip_if_not_installed("DelayedArray")
  x <- holes(random_matrix(220, 9, seed = 41), 0.05, seed = 42)
  lazy <- DelayedArray::DelayedArray(x)
  expected <- within_search(x, 0.2, na = "mean")
  expect_gt(sum(lengths(expected$index)), 0)
  # The pairs fit in memory, but the matrix does not.
  expect_identical(
    within_search(lazy, 0.2, na = "mean", max_memory = 15000, backend = "cpu"),
    expected
  )
  expect_wrong(
    within_search(lazy, 0.2, na = "pairwise", max_memory = 15000),
    "does not fit in memory"
  )
  plan <- knn_plan(lazy, max_memory = 15000, backend = "cpu")
  expect_identical(
    knn_plan(lazy, max_memory = 15000, backend = "cpu", na = "pairwise"), plan
  )
})
