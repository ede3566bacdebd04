test_that("options are taken from the verb by the names of its arguments", {
  verb <- function(x, k = 3, metric = "pearson", sign = "signed", na = "error",
                   num_threads = NULL, points = c("rows", "columns")) {
    fsknn:::verb_options()
  }
  options <- verb(
    1, metric = "spearman", na = "mean", sign = "negative", num_threads = 3
  )
  expect_identical(options$metric$name, "spearman")
  expect_identical(options$sign, "negative")
  expect_identical(options$na, "mean")
  expect_identical(options$num_threads, 3L)
  expect_false(options$input$chosen)
  # Missing arguments get the defaults.
  expect_false(options$verbose)
  expect_null(options$long)
  expect_identical(options$constant, "error")
  expect_error(verb(1, sign = "odd"), "`sign` must be", class = "fsknn_error")
})

searching_verbs <- function() {
  list(
    knn_search = knn_search, knn_query = knn_query, knn_graph = knn_graph,
    within_search = within_search, within_query = within_query,
    threshold_graph = threshold_graph, nearest_to = nearest_to,
    knn_plan = knn_plan,
    mst_knn = getS3method("mst_knn", "default", envir = asNamespace("fsknn"))
  )
}

test_that("verbs take the options that the help page says they take", {
  verbs <- searching_verbs()
  having <- function(option) {
    has <- vapply(verbs, function(verb) option %in% names(formals(verb)), NA)
    names(verbs)[has]
  }
  expect_identical(
    having("subset"),
    c("knn_search", "knn_graph", "within_search", "threshold_graph")
  )
  expect_identical(
    having("block"),
    c("knn_search", "knn_query", "knn_graph", "nearest_to", "knn_plan")
  )
  expect_identical(having("between"), setdiff(having("block"), "knn_query"))
  expect_identical(having("BPPARAM"), having("checkpoint"))
  expect_identical(
    setdiff(names(verbs), having("checkpoint")), c("nearest_to", "knn_plan")
  )
  expect_identical(having("weights"), names(verbs))
  expect_identical(having("output"), c("knn_search", "knn_query"))
  expect_identical(having("adjust"), names(verbs))
  expect_identical(having("data"), having("adjust"))
  expect_identical(having("na"), names(verbs))
})

test_that("every verb that searches has options of the same names", {
  verbs <- searching_verbs()
  data <- c(
    "x", "query", "point", "k", "distance", "min_similarity", "subset", "block",
    "between", "outcome", "permutations", "strata", "output", "file",
    "format", "...",
    # These belong to a plan, and to one of many hosts.
    "look", "hosts", "devices_per_host", "memory", "disk", "network",
    "failures", "restart"
  )
  for (verb in verbs) {
    expect_setequal(
      setdiff(names(formals(verb)), c(data, names(fsknn:::unless_told))),
      character()
    )
    # The choices are the same, with the same default.
    for (name in intersect(names(formals(verb)), "constant")) {
      expect_identical(eval(formals(verb)[[name]]), c("error", "isolate"))
    }
  }
})

test_that("a progress bar is drawn only where someone watches", {
  rlang::local_interactive(FALSE)
  expect_false(fsknn:::check_progress(NULL))
  rlang::local_interactive(TRUE)
  expect_true(fsknn:::check_progress(NULL))
  expect_false(fsknn:::check_progress(FALSE))
})

test_that("the metric is Euclidean where a reduced dimension is taken", {
  skip_if_not_installed("SingleCellExperiment")
  x <- random_matrix(30, 12)
  set <- SingleCellExperiment::SingleCellExperiment(
    list(logcounts = x),
    reducedDims = list(PCA = random_matrix(12, 5, seed = 2))
  )
  pca <- SingleCellExperiment::reducedDim(set, "PCA")
  calls <- list(
    function(...) knn_search(..., k = 3),
    function(...) knn_graph(..., k = 3),
    function(...) knn_query(..., query = pca[1:4, ], k = 3),
    function(...) within_search(..., distance = 2),
    function(...) within_query(..., query = pca[1:4, ], distance = 2),
    function(...) nearest_to(..., point = 2, k = 3),
    function(...) mst_knn(...),
    function(...) knn_predict(..., labels = rep(1:2, 6), k = 3)$error,
    function(...) {
      mutual_pairs(..., block = rep(1:2, 6), k = 3)[c("from", "to")]
    },
    function(...) pair_histogram(..., breaks = c(0, 2, 4)),
    function(...) knn_plan(..., k = 3, backend = "cpu")$metric
  )
  plain <- function(answer) {
    attr(answer, "taken_from") <- NULL
    answer
  }
  for (call in calls) {
    given <- plain(call(set, dimred = "PCA"))
    expect_equal(given, plain(call(set, dimred = "PCA", metric = "euclidean")))
    expect_false(isTRUE(all.equal(
      given, plain(call(set, dimred = "PCA", metric = "pearson"))
    )))
  }
  # Without a reduced dimension, the default is Pearson's correlation.
  expect_identical(knn_search(pca, 3), knn_search(pca, 3, "pearson"))
  # BiocNeighbors' parameter gives the same edges.
  skip_if_not_installed("BiocNeighbors")
  found <- BiocNeighbors::findKNN(pca, k = 3, BNPARAM = FsknnParam())
  expect_identical(
    unname(knn_search(set, 3, dimred = "PCA")$index), unname(found$index)
  )
})
