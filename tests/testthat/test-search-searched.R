# The record of a search in its result.

# Returns the lines of a print that are about the search.
searched_lines <- function(x) {
  grep("^(Searched|Time): ", utils::capture.output(print(x)), value = TRUE)
}

test_that("each result says what was searched, where and how long", {
  withr::local_options(fsknn.show_time = NULL)
  x <- abs(random_matrix(30, 7))
  labels <- rep(c("a", "b"), 15)
  holes <- replace(x, c(3, 50), NA)
  shown <- "Searched: 30 points of 7 features, "
  one <- function(result, metric) {
    lines <- searched_lines(result)
    expect_identical(lines[-length(lines)], paste0(shown, metric))
    expect_match(
      lines[[length(lines)]], "^Time: [0-9.]+ s, backend cpu \\(1 thread\\)$"
    )
  }
  short <- function(result) {
    expect_match(searched_lines(result), "^Time: [0-9.]+ s, backend cpu \\(1")
  }
  cpu <- function(verb, ...) verb(..., backend = "cpu")
  one(cpu(knn_search, x, 3), "pearson (signed)")
  one(cpu(knn_search, x, 3, weights = 1:7), "pearson (signed), weighted")
  one(
    cpu(knn_search, x, 3, adjust = c(1:6, 9)),
    "pearson (signed), adjusted for 1 covariate"
  )
  one(cpu(within_search, x, 3, "euclidean"), "euclidean")
  one(cpu(pair_histogram, x, 3), "pearson (signed)")
  one(pair_connectivity(x, 2), "pearson (signed)")
  one(cpu(nearest_triples, x, 2), "proportional")
  one(cpu(triple_histogram, x, 2), "proportional")
  one(cpu(knn_predict, x, labels), "pearson (signed)")
  one(cpu(knn_predict, x, labels, folds = 3, select = \(x, labels) 1:7),
      "pearson (signed)")
  one(attr(cpu(knn_impute, holes, 3), "imputed"), "euclidean")
  one(cpu(knn_impute_error, holes, k = 3), "euclidean, pearson")
  groups <- c(1, 1, 1, 2, 2, 2, 2)
  one(cpu(compare_neighbours, x, groups, 3, permutations = NULL),
      "pearson (signed)")
  graph <- cpu(knn_graph, x, 3)
  short(graph)
  short(graph[1:5, ])
  short(undirected_edges(graph))
  short(cpu(threshold_graph, x, 0.5))
  short(cpu(mutual_pairs, x, labels, 3))
  short(cpu(edge_stability, x, 3, resamples = 2, chance = FALSE))
  short(edge_significance(graph, x))
  short(cpu(mst_knn, x))
  short(cpu(threshold_triples, x, 0.7))
  file <- withr::local_tempfile(fileext = ".csv")
  one(cpu(threshold_graph, x, 0.5, file = file), "pearson (signed)")
  expect_identical(
    searched_lines(cpu(knn_query, x, x[1:2, ], 3))[[1]],
    "Searched: 30 points of 7 features for 2 queries, pearson (signed)"
  )
})

test_that("the table of nearest_to() says whose neighbours it has", {
  x <- random_matrix(30, 7)
  rownames(x) <- paste0("g", seq_len(30))
  header <- function(...) {
    utils::capture.output(print(nearest_to(x, ..., backend = "cpu")))[[1]]
  }
  of <- " among 30 points of 7 features, pearson (signed)"
  point <- rownames(x)[[3]]
  expect_identical(header(point, 2), paste0("Nearest to ", point, of))
  expect_identical(header(3:4, 2), paste0("Nearest to 2 points", of))
  expect_identical(
    header(outcome = 1:7, k = 2, permutations = 19),
    paste0("Nearest to an outcome", of, ", 19 permutations")
  )
  expect_identical(
    header(outcome = list(age = c(3:1, 4:7)), k = 2, permutations = 0),
    paste0("Nearest to age", of)
  )
  x <- unname(x)
  expect_identical(header(3, 2), paste0("Nearest to row 3", of))
})

test_that("GPUs, tasks and long searches are named", {
  run <- function(...) {
    facts <- list(
      backend = "cuda", seconds = 0.01234, devices = 1:2, num_threads = 3,
      in_tasks = FALSE
    )
    fsknn:::describe_run(utils::modifyList(facts, list(...)))
  }
  expect_identical(run(), "0.012 s, backend cuda (GPUs 1, 2)")
  expect_identical(run(devices = 3L), "0.012 s, backend cuda (GPU 3)")
  expect_identical(run(devices = integer()), "0.012 s, backend cuda (all GPUs)")
  expect_identical(
    run(backend = "cpu", seconds = 300), "5 min, backend cpu (3 threads)"
  )
  expect_identical(run(in_tasks = TRUE), "0.012 s, backend cuda (tasks)")
  expect_identical(run(seconds = 2e-5), "0.00002 s, backend cuda (GPUs 1, 2)")
})

test_that("results of other seconds and backends are identical", {
  x <- random_matrix(40, 6)
  change <- function(result) {
    facts <- fsknn:::searched_of(result)
    facts[c("seconds", "backend")] <- list(99, "cuda")
    attr(result, "searched") <- fsknn:::new_searched(facts)
    result
  }
  results <- list(
    knn_search(x, 3), knn_graph(x, 3), nearest_to(x, 1, 3),
    pair_histogram(x, 5), threshold_triples(abs(x), 0.8)
  )
  for (result in results) {
    other <- change(result)
    expect_identical(other, result)
    expect_true(identical(other, result))
    expect_true(all.equal(other, result))
    expect_identical(fsknn:::searched_of(other)$seconds, 99)
  }
})

test_that("the record is saved, and a result without one prints", {
  withr::local_options(fsknn.show_time = NULL)
  found <- knn_search(random_matrix(40, 6), 3)
  file <- withr::local_tempfile()
  saveRDS(found, file)
  again <- readRDS(file)
  expect_identical(again, found)
  expect_identical(searched_lines(again), searched_lines(found))
  expect_length(searched_lines(found), 2)
  attr(again, "searched") <- NULL
  expect_identical(searched_lines(again), character())
  expect_identical(searched_lines(as_knn(found)), character())
})

test_that("rows of nearest_to() keep the record, plain tables do not", {
  near <- nearest_to(random_matrix(40, 6), 1:2, 3)
  expect_s3_class(near, "fsknn_nearest")
  expect_identical(fsknn:::searched_of(near[1:2, ])$num_points, 40L)
  expect_type(near[, "name"], "character")
  for (plain in list(near[c("rank", "name")], as.data.frame(near))) {
    expect_s3_class(plain, "data.frame", exact = TRUE)
    expect_null(attr(plain, "searched"))
  }
})

test_that("an option leaves the time out", {
  found <- knn_search(random_matrix(40, 6), 3)
  withr::local_options(fsknn.show_time = FALSE)
  expect_length(searched_lines(found), 1)
})

test_that("stages that are combined took the seconds of all", {
  x <- abs(random_matrix(20, 6))
  parts <- lapply(1:2, function(i) {
    threshold_triples(x, 0.6, stage = c(i, 2))
  })
  seconds <- vapply(parts, function(part) {
    fsknn:::searched_of(part)$seconds
  }, 0)
  whole <- do.call(rbind, parts)
  expect_identical(fsknn:::searched_of(whole)$seconds, sum(seconds))
  attr(parts[[1]], "searched") <- NULL
  unknown <- do.call(rbind, parts)
  expect_null(fsknn:::searched_of(unknown)$seconds)
  expect_identical(unknown, whole)
})
