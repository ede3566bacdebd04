# Held points compared, bit for bit, with the verbs that read them anew.

# Makes the request of a verb for `x`, with its own checks.
request_of <- function(x, k, metric, ..., query = NULL, weights = NULL,
                       skip = integer(), sign = "signed", backend = "cpu",
                       as_edges = FALSE, features = NULL, adjust = NULL) {
  options <- list(
    metric = list(name = metric), sign = sign, num_threads = 2L,
    chunk_size = 0L, weights = weights, adjust = adjust,
    backend = list(
      name = backend,
      devices = if (backend == "cuda") 1L else integer()
    )
  )
  fsknn:::new_request(
    as.integer(k), options, as.integer(skip), as_edges = as_edges,
    feature_subset = features, ...
  )
}

search_held <- function(points, request, query = NULL) {
  found <- fsknn:::in_core(fsknn:::ask_core(points, query, request))
  as_neighbours(found[c("index", "distance")])
}

held_data <- function() {
  list(
    x = random_matrix(260, 21, seed = 31),
    query = random_matrix(9, 21, seed = 32)
  )
}

test_that("points are held once and searched many times, as by the verbs", {
  data <- held_data()
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(data$x, metric)
    query <- values_for(data$query, metric)
    ask <- function(k, ...) {
      request_of(x, k, metric, sign = sign, backend = backend, ...)
    }
    points <- fsknn:::hold_points(x, ask(1))
    by_verb <- function(verb, ...) {
      found <- verb(x, ..., metric = metric, sign = sign, backend = backend)
      as_neighbours(unclass(found))
    }
    for (k in c(3, 11)) {
      expect_same_bits(
        search_held(points, ask(k)), by_verb(knn_search, k),
        paste(metric, sign, backend, k)
      )
      expect_same_bits(
        search_held(points, ask(k), query), by_verb(knn_query, query, k),
        paste(metric, sign, backend, k, "of queries")
      )
    }
    limit <- stats::median(by_verb(knn_search, 5)$distance)
    request <- ask(1)
    request$within <- list(
      limits = limit, most = 1e6, most_kept = 1e6, similarity = NULL
    )
    within <- fsknn:::in_core(fsknn:::cpp_within_search(points, NULL, request))
    expect_identical(
      within[c("index", "distance")],
      unclass(by_verb(within_search, limit))[c("index", "distance")]
    )
    fsknn:::give_back_held(points)
  })
})

test_that("other weights, metrics and points left out need no other data", {
  x <- held_data()$x
  weights <- list(NULL, rep_len(c(1, 3, 2), 21), rep_len(c(5, 1), 21), NULL)
  for (backend in backends_here()) {
    points <- fsknn:::hold_points(x, request_of(x, 1, "pearson"))
    for (metric in c("pearson", "spearman", "manhattan", "pearson")) {
      for (w in if (metric == "manhattan") list(NULL) else weights) {
        for (skip in list(integer(), c(2L, 100L))) {
          found <- search_held(points, request_of(
            x, 4, metric, weights = w, skip = skip, backend = backend
          ))
          expect_same_bits(
            found, brute_force(x, k = 4, metric = metric, weights = w,
                               skip = skip),
            paste(metric, backend)
          )
        }
      }
    }
    fsknn:::give_back_held(points)
  }
})

# Some features are left out, in another order, or repeated.
chosen_features <- function() {
  list(c(1:6, 9:19), 21:1, NULL, c(7L, 7L, 7L, 1:12, 7L, 20L, 1L), 2:3)
}

test_that("features are left out or repeated as in a matrix of those alone", {
  data <- held_data()
  # Elsewhere this entry would be the largest, by which all are scaled.
  data$x[5, 8] <- 1e5
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(data$x, metric)
    query <- values_for(data$query, metric)
    points <- fsknn:::hold_points(x, request_of(x, 1, metric))
    chosen <- chosen_features()
    # With only two features, many rows are all zeros.
    if (fsknn:::metric_facts(metric)$levels > 0) chosen <- chosen[1:4]
    for (features in chosen) {
      of <- function(m) if (is.null(features)) m else m[, features]
      ask <- function(...) {
        request_of(
          x, 4, metric, sign = sign, backend = backend, features = features, ...
        )
      }
      by_verb <- function(verb, ...) {
        as_neighbours(unclass(verb(
          of(x), ..., metric = metric, sign = sign, backend = backend
        )))
      }
      label <- paste(metric, sign, backend, length(features))
      graph <- by_verb(knn_search, 4)
      expect_same_bits(search_held(points, ask()), graph, label)
      expect_same_bits(search_held(x, ask()), graph, label)
      expect_same_bits(
        search_held(points, ask(), query),
        by_verb(knn_query, of(query), 4), paste(label, "of queries")
      )
      expect_same_bits(
        search_held(points, ask(subset = c(9L, 3L, 200L))),
        by_verb(knn_search, 4, subset = c(9, 3, 200)), paste(label, "of some")
      )
    }
    fsknn:::give_back_held(points)
  })
})

test_that("weights and points left out go with the features that are left", {
  x <- held_data()$x
  weights <- rep_len(c(1, 3, 2, 9), 21)
  for (backend in backends_here()) {
    points <- fsknn:::hold_points(x, request_of(x, 1, "pearson"))
    for (features in chosen_features()) {
      kept <- features %||% seq_len(21)
      for (skip in list(integer(), c(2L, 100L))) {
        found <- search_held(points, request_of(
          x, 4, "spearman", weights = weights[kept], skip = skip,
          backend = backend, features = features
        ))
        expect_same_bits(found, brute_force(
          x[, kept], k = 4, metric = "spearman", weights = weights[kept],
          skip = skip
        ), backend)
      }
    }
    expect_error(
      search_held(points, request_of(
        x, 4, "pearson", weights = weights, features = 1:5, backend = backend
      )),
      "a weight for each feature"
    )
    expect_error(
      search_held(points, request_of(x, 4, "pearson", features = c(3L, 22L))),
      "no such feature"
    )
    fsknn:::give_back_held(points)
  }
})

test_that("means of missing values, and metafeatures, are of what is left", {
  x <- held_data()$x
  x[cbind(1:60, rep_len(1:21, 60))] <- NA
  small <- held_data()$x[1:24, ]
  made <- metafeatures(small)
  for (backend in backends_here()) {
    filled <- fsknn:::hold_points(x, request_of(x, 1, "pearson", na = "mean"))
    pairs <- fsknn:::hold_points(made, request_of(made, 1, "pearson"))
    for (features in chosen_features()[1:4]) {
      kept <- features %||% seq_len(21)
      ask <- function(...) {
        request_of(x, 4, "pearson", backend = backend, features = features, ...)
      }
      expect_same_bits(
        search_held(filled, ask(na = "mean")),
        as_neighbours(unclass(
          knn_search(x[, kept], 4, na = "mean", backend = backend)
        )),
        backend
      )
      expect_same_bits(
        search_held(pairs, ask()),
        as_neighbours(unclass(
          knn_search(metafeatures(small[, kept]), 4, backend = backend)
        )),
        backend
      )
    }
    fsknn:::give_back_held(filled)
    fsknn:::give_back_held(pairs)
  }
})

test_that("pairs over common samples are not searched for among held points", {
  x <- held_data()$x
  x[3, 2] <- NA
  pairwise <- request_of(x, 3, "pearson", na = "pairwise")
  expect_messages(fsknn:::hold_points(x, pairwise))
  points <- fsknn:::hold_points(x[-3, ], request_of(x, 3, "pearson"))
  expect_error(search_held(points, pairwise), class = "fsknn_handle_error")
  fsknn:::give_back_held(points)
})

test_that("all within a distance is found among the points that stay", {
  x <- random_matrix(1200, 21, seed = 41)
  query <- random_matrix(150, 21, seed = 42)
  for (backend in backends_here()) {
    points <- fsknn:::hold_points(x, request_of(x, 1, "pearson"))
    for (metric in c("pearson", "euclidean")) {
      limit <- c(pearson = 0.5, euclidean = 4)[[metric]]
      for (features in list(NULL, 2:20, c(1L, 1:21))) {
        of <- function(m) if (is.null(features)) m else m[, features]
        for (skip in list(integer(), c(2L, 100L, 1200L))) {
          request <- request_of(
            x, 1, metric, backend = backend, skip = skip, features = features
          )
          # There are several chunks, and the last one is short.
          request$chunk_size <- 256L
          request$within <- list(
            limits = limit, most = 1e7, most_kept = 1e7, similarity = NULL
          )
          for (q in list(NULL, query)) {
            found <- fsknn:::in_core(
              fsknn:::cpp_within_search(points, q, request)
            )
            request$backend <- "brute"
            request["feature_subset"] <- list(NULL)
            expected <- fsknn:::in_core(fsknn:::cpp_within_search(
              of(x), if (!is.null(q)) of(q), request
            ))
            request$backend <- backend
            request["feature_subset"] <- list(features)
            expect_identical(
              found[c("index", "distance")], expected[c("index", "distance")],
              paste(backend, metric)
            )
          }
          # Between them there is another kind of search of the same points.
          search_held(points, request_of(
            x, 2, metric, backend = backend, skip = skip, features = features
          ))
        }
      }
    }
    fsknn:::give_back_held(points)
  }
})

test_that("a GPU gets held points once, and prepares them once", {
  skip_if_no_cuda()
  x <- random_matrix(5000, 40, seed = 43)
  ask <- function(...) request_of(x, 3, "pearson", backend = "cuda", ...)
  points <- fsknn:::hold_points(x, ask())
  count <- function(what, request) {
    with_fault(
      fsknn:::in_core(fsknn:::ask_core(points, NULL, request)),
      "invalid_value", what, nth = 0
    )$matched
  }
  sent <- "pinned_[slot_of(number)]"
  prepared <- "cudaEventRecord(side.used[buffer].get(), target.stream)"
  within <- function(...) {
    request <- ask(...)
    request$within <- list(
      limits = 0.4, most = 1e7, most_kept = 1e7, similarity = NULL
    )
    request
  }
  expect_gt(count(sent, ask()), 0)
  expect_identical(count(prepared, ask()), 0)
  expect_identical(count(prepared, within()), 0)
  expect_identical(count(prepared, ask()), 0)
  for (features in list(1:30, c(5L, 5:40))) {
    expect_identical(count(sent, ask(features = features)), 0)
    expect_identical(count(prepared, within(features = features)), 0)
    expect_identical(count(sent, within(features = rev(features))), 0)
  }
  fsknn:::give_back_held(points)
})

test_that("a handle keeps its data, and gives its memory back", {
  before <- fsknn:::cpp_num_held()
  x <- held_data()$x + 0
  request <- request_of(x, 3, "euclidean")
  expected <- brute_force(x, k = 3, metric = "euclidean")
  points <- fsknn:::hold_points(x, request)
  rm(x)
  gc()
  expect_same_bits(search_held(points, request), expected)
  expect_identical(fsknn:::cpp_num_held(), before + 1L)
  rm(points)
  gc()
  expect_identical(fsknn:::cpp_num_held(), before)
})

test_that("a handle that holds nothing here is an error that says so", {
  x <- held_data()$x
  request <- request_of(x, 3, "euclidean")
  points <- fsknn:::hold_points(x, request)
  from_file <- unserialize(serialize(points, NULL))
  expect_error(search_held(from_file, request), class = "fsknn_handle_error")
  expect_no_error(search_held(points, request))
  skip_on_os("windows")
  in_fork <- parallel::mccollect(parallel::mcparallel(
    tryCatch(search_held(points, request), error = conditionMessage)
  ))[[1]]
  expect_match(in_fork, "the handle is the parent's")
  expect_same_bits(
    search_held(points, request), brute_force(x, k = 3, metric = "euclidean")
  )
  fsknn:::give_back_held(points)
  fsknn:::give_back_held(points)
  expect_messages(search_held(points, request))
})

test_that("after the package is unloaded a handle is an error", {
  child <- start_child(c(
    "x <- matrix(rnorm(200), 40)",
    "options <- list(metric = list(name = 'euclidean'), sign = 'signed',",
    "  num_threads = 1L, chunk_size = 0L, weights = NULL,",
    "  backend = list(name = 'cpu', devices = integer()))",
    "request <- fsknn:::new_request(3L, options)",
    "points <- fsknn:::hold_points(x, request)",
    "invisible(fsknn:::ask_core(points, NULL, request))",
    "unloadNamespace('fsknn')",
    "library(fsknn)",
    "failed <- fsknn:::ask_core(points, NULL, request)$failure",
    "rm(points)",
    "invisible(gc())",
    "say(failed, fsknn:::cpp_num_held())"
  ))
  expect_identical(said_by(child), c("handle", "0"))
})
