test_that("options are taken from `...`, checked, and have defaults", {
  verb <- function(x, metric = "pearson", sign = "signed", ...) {
    fsknn:::verb_options("knn_search", ...)
  }
  options <- verb(
    1, metric = "spearman", na = "mean", sign = "negative", num_threads = 3
  )
  expect_identical(options$metric$name, "spearman")
  expect_identical(options$sign, "negative")
  expect_identical(options$na, "mean")
  expect_identical(options$num_threads, 3L)
  # Missing arguments get the defaults.
  expect_false(options$input$chosen)
  expect_false(options$verbose)
  expect_null(options$long)
  expect_identical(options$constant, "error")
  expect_error(verb(1, sign = "odd"), "`sign` must be", class = "fsknn_error")
})

# A short call of each verb that takes options.
option_verbs <- function() {
  x <- abs(random_matrix(30, 8))
  holes <- replace(x, c(3, 50, 77), NA)
  list(
    knn_search = function(...) knn_search(x, 2, ...),
    knn_graph = function(...) knn_graph(x, 2, ...),
    knn_query = function(...) knn_query(x, x[1:3, ], 2, ...),
    knn_index = function(...) knn_index(x, ...),
    within_search = function(...) within_search(x, 0.5, ...),
    within_query = function(...) within_query(x, x[1:3, ], 0.5, ...),
    threshold_graph = function(...) threshold_graph(x, 0.5, ...),
    mutual_pairs = function(...) mutual_pairs(x, gl(2, 15), 2, ...),
    pair_histogram = function(...) pair_histogram(x, 5, ...),
    pair_connectivity = function(...) pair_connectivity(x, 2, ...),
    mst_knn = function(...) mst_knn(x, ...),
    nearest_to = function(...) nearest_to(x, 1, 2, ...),
    edge_stability = function(...) edge_stability(x, 2, 3, ...),
    edge_significance = function(...) edge_significance(knn_graph(x, 2), x, ...),
    compare_neighbours = function(...) {
      compare_neighbours(x, gl(2, 4), 2, permutations = NULL, ...)
    },
    knn_predict = function(...) knn_predict(x, gl(2, 15), k = 2, ...),
    knn_impute = function(...) knn_impute(holes, 2, ...),
    knn_impute_error = function(...) knn_impute_error(holes, 0.1, 2, ...),
    knn_plan = function(...) knn_plan(x, 2, ...),
    module_summary = function(...) module_summary(gl(2, 15), x, ...),
    module_stability = function(...) {
      module_stability(x, function(edges) gl(2, 15), 2, 2, ...)
    },
    hidden_factors = function(...) hidden_factors(x, num = 1, ...),
    module_preservation = function(...) {
      module_preservation(gl(2, 15), x, x, permutations = 2, ...)
    },
    threshold_triples = function(...) threshold_triples(x, 0.7, ...),
    nearest_triples = function(...) nearest_triples(x, 2, ...),
    triple_histogram = function(...) triple_histogram(x, 5, ...)
  )
}

test_that("the verbs of the table are those that are called here", {
  expect_setequal(
    names(option_verbs()), sub("[.]default$", "", fsknn:::option_verbs)
  )
})

test_that("a verb has at most twelve arguments besides its options", {
  for (name in names(option_verbs())) {
    verb <- getExportedValue("fsknn", name)
    if (name == "mst_knn") {
      verb <- getS3method("mst_knn", "default", envir = asNamespace("fsknn"))
    }
    own <- names(formals(verb))
    expect_true("..." %in% own, info = name)
    # The dots are its options.
    own <- setdiff(own, "...")
    expect_lte(length(own), 12, label = name)
    expect_length(intersect(own, fsknn:::option_names()), 0)
  }
})

test_that("every verb takes every option, or says why not", {
  calls <- option_verbs()
  values <- list(
    points = "rows", assay = 1L, dimred = 1L, na = "mean", min_pairs = 3,
    constant = "isolate", weights = rep(1, 8), adjust = 1:8,
    data = data.frame(a = 1:8), backend = "cpu", devices = 99L,
    num_threads = 1, chunk_size = 64, max_device_memory = "1 GiB",
    max_memory = "1 GiB", progress = FALSE, verbose = FALSE, BPPARAM = 1,
    checkpoint = 1, allele_table = c(parameter = 0.5)
  )
  tests <- setdiff(names(formals(test_options)), "...")
  expect_setequal(c(names(values), tests), fsknn:::option_names())
  # These have other reasons to be errors, which name them.
  other <- c(
    "assay", "dimred", "min_pairs", "weights", "adjust", "data", "devices",
    "BPPARAM", "checkpoint", "allele_table"
  )
  for (verb in names(calls)) {
    expect_error(
      calls[[verb]](unheard_of = 1), "no argument `unheard_of`",
      class = "fsknn_argument_error", info = verb
    )
    for (option in names(values)) {
      error <- tryCatch(
        suppressMessages({
          do.call(calls[[verb]], values[option])
          NULL
        }),
        error = identity
      )
      entry <- fsknn:::entry_for(fsknn:::exceptions, verb, option)
      words <- if (!is.null(error)) rlang::cnd_message(error)
      info <- paste(verb, option, words)
      if (!is.null(entry)) {
        expect_match(words, paste0("does not take `", option), info = info)
      } else if (!is.null(error)) {
        expect_true(option %in% other, info = info)
        expect_s3_class(error, "fsknn_error")
        expect_no_match(words, "does not take|no argument")
      }
    }
  }
})

test_that("the exceptions name verbs and options that exist", {
  tables <- list(fsknn:::exceptions, fsknn:::needs_all_values)
  for (entry in do.call(c, tables)) {
    for (verb in entry$verbs) {
      expect_true(verb %in% getNamespaceExports("fsknn"), info = verb)
      expect_true(any(c(verb, "mst_knn.default") %in% fsknn:::option_verbs))
    }
    known <- c(fsknn:::option_names(), "subset", "block")
    expect_true(all(entry$options %in% known))
  }
})

test_that("collected options are those given by name", {
  calls <- option_verbs()
  some <- c("knn_search", "threshold_graph", "nearest_to", "knn_plan")
  for (verb in some) {
    expect_identical(
      calls[[verb]](
        options = c(
          point_options(na = "mean", constant = "isolate"),
          run_options(backend = "cpu", num_threads = 1)
        )
      ),
      calls[[verb]](
        na = "mean", constant = "isolate", backend = "cpu", num_threads = 1
      )
    )
  }
  expect_identical(unclass(point_options()), rlang::set_names(list(), character()))
  expect_snapshot({
    print(run_options(backend = "cpu", num_threads = 2))
    print(point_options())
  })
})

test_that("both kinds of collected options may be in a list", {
  x <- replace(random_matrix(30, 8), 3, NA)
  point <- point_options(na = "mean")
  run <- run_options(backend = "cpu", num_threads = 1)
  wanted <- knn_graph(x, 2, options = c(point, run))
  expect_identical(knn_graph(x, 2, options = list(point, run)), wanted)
  expect_identical(knn_graph(x, 2, options = list(a = point, b = run)), wanted)
})

test_that("options are checked when they are collected", {
  expect_messages({
    run_options("gpu")
    run_options(num_threads = 0)
    run_options(devices = 0.5)
    run_options(max_memory = "lots")
    point_options("colums")
    point_options(na = "skip", constant = "isolate")
    point_options(constant = NA)
  })
  # Defaults, and all choices of one, are values.
  expect_length(
    run_options(backend = c("auto", "cuda", "cpu"), num_threads = NULL), 2
  )
  # The hardware is checked where the search runs.
  expect_length(run_options("cuda", devices = 99L), 2)
})

test_that("predictions and mutual pairs are adjusted as neighbours are", {
  age <- c(3, 1, 4, 1, 5, 9, 2, 6)
  x <- random_matrix(40, 8) + outer(1:40 / 10, age)
  left <- t(apply(x, 1, function(row) stats::residuals(stats::lm(row ~ age))))
  labels <- gl(2, 20)
  same <- c("from", "to", "rank_from", "rank_to")
  adjusted <- mutual_pairs(x, labels, 3, adjust = ~age, data = data.frame(age))
  expect_equal(
    as.list(adjusted)[same], as.list(mutual_pairs(left, labels, 3))[same]
  )
  found <- knn_predict(x, labels, k = 3, adjust = age)
  expect_identical(found$predicted, knn_predict(left, labels, k = 3)$predicted)
  folds <- rep(1:5, 8)
  found <- knn_predict(x, labels, k = 3, folds = folds, adjust = age)
  expect_identical(
    found$predicted,
    knn_predict(left, labels, k = 3, folds = folds)$predicted
  )
  query <- knn_predict(x, labels, x[1:5, ], k = 3, adjust = age)
  expect_identical(
    query$predicted, knn_predict(left, labels, left[1:5, ], k = 3)$predicted
  )
})

test_that("options are collected through a wrapper, too", {
  wrapper <- function(...) run_options(...)
  expect_identical(wrapper(backend = "cpu"), run_options(backend = "cpu"))
  expect_identical(
    do.call(point_options, list(na = "mean")), point_options(na = "mean")
  )
  inner <- function(x, ...) knn_search(x, 2, ...)
  x <- random_matrix(20, 4)
  expect_identical(
    inner(x, options = wrapper(backend = "cpu"), metric = "euclidean"),
    knn_search(x, 2, "euclidean", backend = "cpu")
  )
})

test_that("wrong options are errors that say which", {
  x <- random_matrix(10, 5)
  expect_messages({
    knn_search(x, 2, bakend = "cpu")
    knn_search(x, 2, nonsense = 1)
    knn_search(x, 2, "pearson", "signed", 7)
    knn_search(x, 2, na = "mean", options = point_options(na = "error"))
    knn_search(x, 2, options = list(na = "mean"))
    point_options(nonsense = 1)
    run_options(bakend = "cpu")
    point_options(num_threads = 2)
    run_options(na = "mean")
    point_options(metric = "cosine")
    knn_graph(x, k = 2, point_options(na = "mean"))
    knn_graph(x, point_options(na = "mean"))
    knn_graph(x, 2, "pearson", "signed", run_options("cpu"))
    knn_graph(x, 2, point_options = point_options(na = "mean"))
    knn_graph(x, 2, options = list(run_options("cpu"), 1))
    knn_graph(x, 2, BNPARAM = 1)
    nearest_to(x, 1, 2, checkpoint = "folder")
    knn_index(x, checkpoint = "folder")
    knn_impute(x, 2, weights = 1:5)
    knn_plan(c(10, 5), 2, devices_per_host = 2)
  })
})

test_that("run options have defaults for the session", {
  x <- random_matrix(30, 6)
  withr::local_options(fsknn.backend = "cpu", fsknn.chunk_size = 16L)
  options <- fsknn:::check_options(list())
  expect_identical(options$backend$name, "cpu")
  expect_identical(options$chunk_size, 16L)
  # An argument is stronger.
  expect_identical(fsknn:::check_options(list(chunk_size = 32))$chunk_size, 32L)
  # Where it does not apply, it is ignored.
  expect_no_error(triple_histogram(abs(x), 5))
  withr::local_options(fsknn.BPPARAM = "none", fsknn.devices = 7L)
  expect_no_error(nearest_to(x, 1, 2))
  withr::local_options(fsknn.BPPARAM = NULL)
  expect_no_error(knn_search(x, 2))
  expect_no_error(knn_search(x, 2, backend = "cpu"))
  expect_identical(
    fsknn:::session_defaults(list(devices = 1L), "knn_search")$backend, NULL
  )
  # No folder is shared by accident.
  withr::local_options(fsknn.checkpoint = tempfile())
  expect_null(fsknn:::check_options(list())$long)
  withr::local_options(fsknn.backend = "cppu", fsknn.devices = NULL)
  expect_messages({
    knn_search(x, 2)
    knn_search(x, 2, na = "maen")
  })
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
