# Points that are held, against the verbs that read them anew, bit for bit.

# What a verb would ask the core of `x`, by its own checks.
request_of <- function(x, k, metric, ..., query = NULL, weights = NULL,
                       skip = integer(), sign = "signed", backend = "cpu",
                       as_edges = FALSE) {
  options <- list(
    metric = list(name = metric), sign = sign, num_threads = 2L,
    chunk_size = 0L, weights = weights,
    backend = list(
      name = backend,
      devices = if (backend == "cuda") 1L else integer()
    )
  )
  fsknn:::new_request(
    as.integer(k), options, as.integer(skip), as_edges = as_edges, ...
  )
}

search_held <- function(points, request, query = NULL) {
  found <- fsknn:::in_core(fsknn:::ask_core(points, query, request))
  as_neighbours(found[c("index", "distance")])
}

held_data <- function() {
  list(
    x = random_matrix(260, 21, seed = 31), query = random_matrix(9, 21, seed = 32)
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
    within <- fsknn:::in_core(
      fsknn:::cpp_within_search(points, NULL, request)
    )
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
  expect_snapshot(error = TRUE, search_held(points, request))
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
