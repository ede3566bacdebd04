# Searches of an index, compared with those of the data, bit for bit.

index_data <- function() {
  x <- random_matrix(90, 14, seed = 51)
  dimnames(x) <- list(paste0("g", 1:90), paste0("s", 1:14))
  query <- random_matrix(5, 14, seed = 52)
  # Columns are matched by name.
  dimnames(query) <- list(paste0("q", 1:5), paste0("s", 14:1))
  list(x = x, query = query)
}

# A call of each verb that takes an index, of points and options. `limit` is a
# distance, and `least` a similarity or NULL.
index_calls <- function(query, limit, least, block = rep_len(1:3, 90)) {
  calls <- list(
    knn_search = function(...) knn_search(..., k = 4),
    subset = function(...) knn_search(..., k = 4, subset = c(7, 2, 30)),
    each_k = function(...) knn_search(..., k = rep_len(c(2, 5, 0), 90)),
    block = function(...) knn_search(..., k = 2, block = block),
    block_subset = function(...) {
      knn_search(..., k = 2, block = block, between = TRUE, subset = 4:9)
    },
    knn_graph = function(...) knn_graph(..., k = 4),
    graph_subset = function(...) knn_graph(..., k = 4, subset = 5:20),
    one_query = function(...) knn_query(..., query = query[1, , drop = FALSE]),
    knn_query = function(...) knn_query(..., query = query, k = 7),
    query_block = function(...) {
      knn_query(..., query = query, k = 2, block = block)
    },
    nearest_to = function(...) nearest_to(..., point = c(3, 11), k = 5),
    within_search = function(...) within_search(..., distance = limit),
    within_subset = function(...) {
      within_search(..., distance = limit, subset = 3:8)
    },
    within_query = function(...) {
      within_query(..., query = query, distance = limit)
    },
    mutual_pairs = function(...) mutual_pairs(..., block = block, k = 3),
    pair_histogram = function(...) pair_histogram(..., breaks = 6)
  )
  if (!is.null(least)) {
    calls$threshold_graph <- function(...) {
      threshold_graph(..., min_similarity = least)
    }
  }
  calls
}

# The number of pairs that a filter leaves is not part of the answer.
without_work <- function(answer) {
  if (inherits(answer, "fsknn_pair_histogram")) answer$exact <- NULL
  answer
}

expect_same_answers <- function(x, query, ..., backend = "cpu", also = list(),
                                drop = character(), metric = "pearson") {
  ask <- function(call, ...) {
    suppressMessages(without_work(call(..., backend = backend)))
  }
  index <- suppressMessages(
    knn_index(x, metric = metric, ..., backend = backend)
  )
  far <- stats::median(
    suppressMessages(knn_search(x, 5, metric, ...))$distance, na.rm = TRUE
  )
  least <- if (fsknn:::has_similarity(fsknn:::metric_facts(metric))) 0.4
  calls <- c(index_calls(query, far, least), also)
  for (name in setdiff(names(calls), drop)) {
    info <- paste(name, metric, backend)
    expected <- ask(calls[[name]], x, metric = metric, ...)
    expect_identical(ask(calls[[name]], index), expected, info = info)
    # The same options may be repeated.
    expect_identical(
      ask(calls[[name]], index, metric = metric, ...), expected, info = info
    )
  }
  invisible(index)
}

test_that("searches of an index have the answers of the data", {
  data <- index_data()
  for_all_metrics(function(metric, sign, backend) {
    expect_same_answers(
      values_for(data$x, metric), values_for(data$query, metric),
      metric = metric, sign = sign, backend = backend,
      drop = if (metric == "inner_product") "nearest_to"
    )
  })
})

test_that("an index has the point options of its call", {
  data <- index_data()
  x <- data$x
  query <- data$query
  constant <- replace(x, cbind(4, 1:14), 1)
  holes <- replace(x, cbind(c(2, 5, 9, 9), c(1, 3, 7, 8)), NA)
  cases <- list(
    list(weights = rep_len(c(2, 0, 1), 14)),
    list(weights = c(s14 = 0, stats::setNames(1:13, paste0("s", 1:13)))),
    list(adjust = ~ a, data = data.frame(a = 1:14, row.names = colnames(x))),
    list(metric = "spearman", adjust = 1:14, weights = rep_len(1:2, 14)),
    list(constant = "isolate", sign = "absolute"),
    list(constant = "isolate", metric = "euclidean"),
    list(na = "mean"), list(na = "pairwise"),
    list(na = "pairwise", min_pairs = 5, metric = "euclidean")
  )
  for (backend in backends_here()) {
    for (options in cases) {
      values <- if (!is.null(options$constant)) {
        constant
      } else if (!is.null(options$na)) {
        holes
      } else {
        x
      }
      # GPUs do not search common samples for these.
      drop <- if (backend == "cuda" && identical(options$na, "pairwise")) {
        c(
          "within_search", "within_subset", "within_query", "pair_histogram",
          "threshold_graph"
        )
      }
      do.call(
        expect_same_answers,
        c(list(values, query, backend = backend, drop = drop), options)
      )
    }
  }
})

test_that("queries may lack values where no point does", {
  data <- index_data()
  holes <- replace(data$query, 3, NA)
  for (na in c("mean", "pairwise")) {
    expect_same_answers(data$x, holes, na = na)
  }
  index <- knn_index(data$x, backend = "cpu")
  # No hint names an option of the points.
  constant <- replace(data$query, cbind(2, 1:14), 1)
  expect_messages({
    knn_query(index, holes, 2)
    knn_query(index, constant, 2)
  })
})

test_that("further verbs, points by name, outcomes and permutations", {
  data <- index_data()
  x <- data$x
  outcome <- stats::setNames(random_matrix(1, 14)[1, ], colnames(x)[14:1])
  draws <- function(...) {
    withr::with_seed(4, nearest_to(
      ..., point = "g7", k = 3, permutations = 20, strata = gl(2, 7)
    ))
  }
  also <- list(
    connectivity = function(..., backend) pair_connectivity(..., powers = 2:3),
    mst_knn = function(...) mst_knn(...),
    named = function(...) nearest_to(..., point = "g7", k = 3),
    outcome = function(...) nearest_to(..., outcome = outcome, k = 3),
    zero = function(...) {
      nearest_to(..., outcome = outcome, k = 3, permutations = 0)
    },
    draws = draws,
    by_name = function(...) {
      knn_graph(..., k = 2, subset = c("g5", "g1"),
                block = stats::setNames(rep(1:2, 45), rownames(x)[90:1]))
    }
  )
  for (backend in backends_here()) {
    expect_same_answers(x, data$query, also = also, backend = backend)
  }
})

test_that("an index is read from every kind of data", {
  data <- index_data()
  x <- data$x
  for (values in c(
    block_matrices(x), list(as.data.frame(x)), list(round(10 * x) + 0L)
  )) {
    expect_same_answers(
      values, unname(data$query[, 14:1]),
      drop = c("block", "block_subset", "query_block", "mutual_pairs")
    )
  }
  expect_same_answers(
    t(x), t(data$query), points = "columns", drop = "one_query"
  )
})

test_that("an index of a container knows its assay and tables", {
  skip_if_not_installed("SingleCellExperiment")
  data <- index_data()
  set <- SingleCellExperiment::SingleCellExperiment(
    list(other = data$x + 1, logcounts = data$x),
    reducedDims = list(PCA = random_matrix(14, 4, seed = 2)),
    colData = data.frame(age = 1:14, batch = rep(1:2, 7)),
    rowData = data.frame(arm = rep(c("p", "q"), 45))
  )
  genes <- knn_index(set, backend = "cpu")
  ask <- function(verb, ...) {
    expect_identical(verb(genes, ..., backend = "cpu"),
                     verb(set, ..., backend = "cpu"))
  }
  ask(knn_search, 3)
  ask(knn_search, 3, assay = "logcounts")
  ask(knn_graph, 2, block = "arm", between = TRUE)
  ask(nearest_to, outcome = "age", k = 3)
  withr::with_seed(1, first <- nearest_to(
    genes, outcome = "age", k = 3, permutations = 9, strata = "batch"
  ))
  withr::with_seed(1, expect_identical(first, nearest_to(
    set, outcome = "age", k = 3, permutations = 9, strata = "batch"
  )))
  ask(knn_query, set[1:4, ], 3)
  ask(knn_query, data$query, 3)
  expect_messages(knn_search(genes, 3, assay = "other"))
  cells <- knn_index(set, dimred = "PCA", backend = "cpu")
  expect_identical(
    knn_search(cells, 3, block = "batch"),
    knn_search(set, 3, dimred = "PCA", block = "batch", backend = "cpu")
  )
  expect_output(print(cells), "dimred \"PCA\"")
})

test_that("metafeatures and data in a file are prepared by each search", {
  small <- metafeatures(index_data()$x[1:12, ])
  index <- knn_index(small, backend = "cpu")
  expect_null(index$held)
  expect_identical(
    knn_search(index, 3), knn_search(small, 3, backend = "cpu")
  )
  expect_identical(
    nearest_to(index, 3, 2), nearest_to(small, 3, 2, backend = "cpu")
  )
  skip_if_not_installed("DelayedArray")
  x <- index_data()$x
  before <- length(open_row_files())
  lazy <- DelayedArray::DelayedArray(x)
  index <- knn_index(lazy, max_memory = "2 kB", backend = "cpu")
  expect_length(open_row_files(), before + 1)
  for (query in list(x[1:3, ], lazy[1:3, ])) {
    expect_identical(
      knn_query(index, query, 4), knn_query(x, x[1:3, ], 4, backend = "cpu")
    )
  }
  expect_identical(knn_search(index, 4), knn_search(x, 4, backend = "cpu"))
  expect_identical(
    nearest_to(index, "g3", 4), nearest_to(x, "g3", 4, backend = "cpu")
  )
  expect_length(open_row_files(), before + 1)
  expect_output(print(index), "temporary file")
  saved <- unserialize(serialize(index, NULL))
  expect_messages(knn_search(saved, 4))
  rm(saved)
  knn_release(index)
  expect_length(open_row_files(), before)
  index <- knn_index(lazy, max_memory = "2 kB", backend = "cpu")
  rm(index)
  gc()
  expect_length(open_row_files(), before)
})

test_that("workers, a folder and shards use the values of an index", {
  skip_if_not_installed("DelayedArray")
  x <- index_data()$x
  index <- knn_index(x, backend = "cpu")
  folder <- withr::local_tempfile()
  expected <- knn_search(x, 4, backend = "cpu")
  withr::local_options(fsknn.split_size = 40L)
  expect_identical(knn_search(index, 4, checkpoint = folder), expected)
  # It is the folder of the same search of the data.
  expect_identical(
    suppressMessages(knn_search(x, 4, checkpoint = folder, backend = "cpu")),
    expected
  )
  shards <- withr::local_tempfile()
  found <- knn_search(index, 4, output = knn_output(shards, format = "bin"))
  expect_identical(
    unname(as.matrix(found$index)), unname(expected$index)
  )
  skip_if_not_installed("BiocParallel")
  expect_identical(
    knn_search(index, 4, BPPARAM = BiocParallel::MulticoreParam(2)), expected
  )
})

test_that("options of the index may be repeated, but not changed", {
  x <- abs(index_data()$x)
  index <- knn_index(
    x, metric = "pearson", sign = "absolute", weights = rep_len(1:2, 14),
    backend = "cpu"
  )
  expected <- knn_search(index, 2)
  same <- list(
    list(metric = "pearson"), list(metric = NULL), list(sign = "absolute"),
    list(points = "rows"), list(na = "error"), list(constant = "error"),
    list(weights = rep_len(c(1, 2), 14)), list(weights = NULL),
    list(options = point_options(na = "error")), list(num_threads = 1)
  )
  for (options in same) {
    expect_identical(do.call(knn_search, c(list(index, 2), options)), expected)
  }
  expect_messages({
    knn_search(index, 2, "spearman")
    knn_graph(index, 2, sign = "signed")
    nearest_to(index, 1, na = "mean")
    within_search(index, 0.1, weights = rep(1, 14))
    threshold_graph(index, 0.5, points = "columns")
    knn_query(index, x, 2, adjust = 1:14)
    knn_search(index, 2, min_pairs = 4)
    knn_search(index, 2, nonsense = 4)
  })
})

test_that("run options are those of the search, the index, or the session", {
  x <- index_data()$x
  index <- knn_index(x, num_threads = 1, backend = "cpu", chunk_size = 32)
  options <- function(...) {
    verb <- function(x, metric = "euclidean", sign = "signed", ...) {
      fsknn:::verb_options("knn_search", ...)
    }
    verb(index, ...)
  }
  expect_identical(options()$num_threads, 1L)
  expect_identical(options()$chunk_size, 32L)
  expect_identical(options()$metric$name, "pearson")
  expect_identical(options(num_threads = 2)$num_threads, 2L)
  expect_identical(options()$num_threads, 1L)
  index <- knn_index(x, backend = "cpu")
  expect_identical(options(), options())
  withr::local_options(fsknn.chunk_size = 64L)
  expect_identical(options()$chunk_size, 64L)
  withr::local_options(fsknn.chunk_size = "many")
  expect_error(options(), "chunk_size", class = "fsknn_argument_error")
  withr::local_options(fsknn.chunk_size = NULL)
  expect_null(options()$long)
  expect_false(is.null(options(checkpoint = withr::local_tempfile())$long))
  expect_null(options()$long)
  # A failure of the core, such as that of a GPU, forgets what was checked.
  expect_false(is.null(index$checked))
  fsknn:::note_failure(index, list(stats = NULL))
  expect_false(is.null(index$checked))
  fsknn:::note_failure(index, list(failure = "cuda"))
  expect_null(index$checked)
})

test_that("other verbs name the data to use instead of an index", {
  genes <- abs(index_data()$x)
  index <- knn_index(genes, backend = "cpu")
  expect_messages({
    knn_predict(index, gl(2, 45), k = 2)
    knn_query(genes, index, 2)
  })
  others <- list(
    function(x) knn_index(x), function(x) knn_plan(x, 2),
    function(x) knn_impute(x, 2), function(x) knn_impute_error(x, 0.1, 2),
    function(x) edge_stability(x, 2, 3),
    function(x) edge_significance(knn_graph(genes, 2), x),
    function(x) compare_neighbours(x, gl(2, 7), 2, permutations = NULL),
    function(x) module_summary(gl(2, 45), x),
    function(x) threshold_triples(x, 0.7, metric = "proportional"),
    function(x) nearest_triples(x, 2), function(x) triple_histogram(x, 5),
    function(x) metafeatures(x),
    function(x) write_points(x, tempfile(), "fbin"),
    function(x) knn_verify(knn_graph(genes, 2), x)
  )
  for (call in others) {
    expect_error(
      call(index), "must be data here, not an index",
      class = "fsknn_argument_error", info = deparse(body(call))
    )
  }
  expect_messages(knn_release(genes))
})

test_that("an index has the size of its points, and can't be subset", {
  genes <- index_data()$x
  index <- knn_index(genes, backend = "cpu")
  expect_identical(summary(index), index)
  expect_identical(dim(index), dim(genes))
  expect_false(is.matrix(index))
  expect_messages({
    index[1:2, ]
    knn_index(genes + 1, backend = "cpu")[1:2, ]
  })
  knn_release(index)
  expect_identical(dim(index), dim(genes))
})

test_that("the next queries of the same form are checked as the first", {
  data <- index_data()
  x <- data$x
  query <- unname(random_matrix(6, 14, seed = 53))
  named <- query[1:2, , drop = FALSE]
  colnames(named) <- colnames(x)[c(3, 1, 2, 4:14)]
  whole <- round(query[3:5, , drop = FALSE] * 10)
  storage.mode(whole) <- "integer"
  asked <- list(
    query, query[2, , drop = FALSE], named, named[, 14:1], whole, query,
    data$query, whole[, 14:1]
  )
  for (metric in c("pearson", "euclidean")) {
    index <- knn_index(x, metric, backend = "cpu")
    for (k in c(4, 2)) {
      for (q in c(asked, asked)) {
        expect_identical(
          knn_query(index, q, k), knn_query(x, q, k, metric, backend = "cpu")
        )
      }
    }
    expect_identical(index$before$k, 2)
    expect_null(index$before$queries$values)
    # What is wrong with a later query is reported.
    for (wrong in list(
      replace(query, 3, NA), replace(query, 3, Inf), query[, 1:13],
      array("a", dim(query))
    )) {
      knn_query(index, query, 2)
      first <- knn_index(x, metric, backend = "cpu")
      expect_identical(
        conditionMessage(expect_error(knn_query(index, wrong, 2))),
        conditionMessage(expect_error(knn_query(first, wrong, 2)))
      )
    }
    expect_error(knn_query(index, query, 91), "`k`")
    knn_release(index)
    expect_error(knn_query(index, query, 2), "released")
  }
  index <- knn_index(x, backend = "cpu")
  knn_query(index, query, 2)
  expect_error(knn_query(index, replace(query, row(query) == 2, 1), 2))
  # Other options, blocks and weights.
  block <- rep(1:3, 30)
  expect_identical(
    knn_query(index, query, 2, block = block),
    knn_query(x, query, 2, block = block, backend = "cpu")
  )
  expect_identical(
    knn_query(index, query, 2, constant = "error"),
    knn_query(x, query, 2, backend = "cpu")
  )
  index <- knn_index(x, weights = rep(c(0, 2), 7), backend = "cpu")
  for (i in 1:2) {
    expect_identical(
      knn_query(index, query, 2),
      knn_query(x, query, 2, weights = rep(c(0, 2), 7), backend = "cpu")
    )
  }
})

test_that("repeated queries are matched by name, and may be in columns", {
  x <- index_data()$x
  query <- unname(random_matrix(14, 14, seed = 53))
  turned <- query + t(query)
  index <- knn_index(x, backend = "cpu")
  cells <- knn_index(unname(t(x)), points = "columns", backend = "cpu")
  named <- query
  for (order in list(14:1, 1:14, c(2:14, 1))) {
    colnames(named) <- colnames(x)[order]
    expected <- knn_query(x, named, 3, backend = "cpu")
    for (i in 1:3) expect_identical(knn_query(index, named, 3), expected)
  }
  for (q in list(query[, 1:4], query, turned)) {
    expected <- knn_query(unname(x), t(q), 3, backend = "cpu")
    for (i in 1:3) expect_identical(knn_query(cells, q, 3), expected)
  }
})

test_that("repeated queries report and record the same as the first", {
  x <- index_data()$x
  query <- unname(random_matrix(3, 14, seed = 53))
  constant <- replace(query, cbind(2, 1:14), 1)
  counts <- matrix(rep(as.double(1:14), each = 8), nrow = 8)
  facts <- function(found) {
    facts <- fsknn:::searched_of(found)
    expect_gte(facts$seconds, 0)
    facts[names(facts) != "seconds"]
  }
  index <- knn_index(x, constant = "isolate", backend = "cpu")
  for (q in list(query, query[1, , drop = FALSE], constant, query, counts)) {
    if (identical(q, counts)) {
      expect_message(knn_query(index, q, 2), class = "fsknn_counts_message")
      expect_message(knn_query(index, q, 2), class = "fsknn_counts_message")
    }
    expected <- suppressMessages(
      knn_query(x, q, 2, constant = "isolate", backend = "cpu")
    )
    for (i in 1:3) {
      found <- suppressMessages(knn_query(index, q, 2))
      expect_identical(found, expected)
      expect_identical(facts(found), facts(expected))
      expect_identical(knn_stats()$num_queries, nrow(q))
    }
  }
  expect_message(knn_query(index, query, 2, verbose = TRUE), "Start")
  expect_message(knn_query(index, query, 2, verbose = TRUE), "Start")
  if (rlang::is_installed("DelayedArray")) {
    output <- knn_output(withr::local_tempfile(), format = "bin")
    expect_s3_class(
      knn_query(index, query, 2, output = output), "fsknn_shards"
    )
  }
  expect_error(knn_query(index, query, 2, nonsense = 1), "nonsense")
  # Wrong values, and a distance that is too large.
  index <- knn_index(x, "euclidean", backend = "cpu")
  far <- replace(query, cbind(2, 3:4), c(1.7e308, -1.7e308))
  words <- function(x, q, class, ...) {
    words_of(knn_query(x, q, 2, ..., backend = "cpu"), class)
  }
  for (i in 1:2) {
    knn_query(index, query, 2, backend = "cpu")
    expect_identical(
      words(index, query * Inf, "fsknn_finite_error"),
      words(x, query * Inf, "fsknn_finite_error", metric = "euclidean")
    )
    knn_query(index, query, 2, backend = "cpu")
    expect_identical(
      words(index, far, "fsknn_range_error"),
      words(x, far, "fsknn_range_error", metric = "euclidean")
    )
  }
})

test_that("an index prepares its points once", {
  data <- index_data()
  index <- knn_index(data$x, backend = "cpu")
  held <- index$held
  before <- fsknn:::cpp_num_held()
  for (i in 1:3) knn_query(index, data$query, 3)
  withr::with_seed(1, nearest_to(index, 2, 3, permutations = 5))
  expect_identical(index$held, held)
  expect_identical(fsknn:::cpp_num_held(), before)
  # Searches of what is held prepare it. Others use the values.
  index$held <- NULL
  knn_search(index, 2, block = rep(1:2, 45))
  expect_null(index$held)
  for (call in list(
    function(...) knn_graph(..., k = 2), function(...) nearest_to(..., 3, 2),
    function(...) within_query(..., data$query, 0.2),
    function(...) threshold_graph(..., 0.6)
  )) {
    index$held <- NULL
    call(index)
    expect_gt(fsknn:::cpp_held_bytes(index$held)$cpu, 8 * length(data$x))
  }
  # Statistics are those of the search.
  result <- knn_query(index, data$query, 3)
  stats <- knn_stats()
  expect_identical(stats$num_queries, 5L)
  expect_identical(stats$num_points, 90L)
  expect_identical(stats$backend, "cpu")
  # To prepare is no search.
  knn_index(data$x, backend = "cpu")
  expect_identical(knn_stats(), stats)
  # Results have the record of their search.
  expect_no_error(knn_verify(result, data$x, query = data$query))
})

test_that("memory is freed by release, or with the last variable", {
  x <- index_data()$x
  gc()
  before <- fsknn:::cpp_num_held()
  index <- knn_index(x, backend = "cpu")
  expect_identical(fsknn:::cpp_num_held(), before + 1L)
  copy <- index
  rm(index)
  gc()
  expect_identical(fsknn:::cpp_num_held(), before + 1L)
  rm(copy)
  gc()
  expect_identical(fsknn:::cpp_num_held(), before)
  index <- knn_index(x, backend = "cpu")
  copy <- index
  expect_invisible(knn_release(index))
  knn_release(index)
  expect_identical(fsknn:::cpp_num_held(), before)
  expect_snapshot(print(copy))
  expect_messages(knn_search(copy, 2))
})

test_that("a reloaded index and a forked child prepare the points again", {
  x <- index_data()$x
  index <- knn_index(x, backend = "cpu")
  expected <- knn_search(index, 3)
  file <- withr::local_tempfile()
  saveRDS(index, file)
  saved <- readRDS(file)
  expect_output(print(saved), "by the next search")
  expect_identical(knn_search(saved, 3), expected)
  expect_output(print(saved), "on the CPU")
  expect_identical(knn_search(saved, 3, metric = "pearson"), expected)
  child <- start_child(c(
    paste0("index <- readRDS('", file, "')"),
    "found <- fsknn::knn_search(index, 3)",
    "say(found$index[1:5, 1])"
  ))
  expect_identical(
    said_by(child), as.character(unname(expected$index[1:5, 1]))
  )
  skip_on_os("windows")
  in_fork <- parallel::mccollect(parallel::mcparallel(
    list(knn_search(index, 3), knn_search(index, 3))
  ))[[1]]
  expect_identical(in_fork, list(expected, expected))
  expect_identical(knn_search(index, 3), expected)
})

test_that("an index says what it holds, and where", {
  x <- replace(index_data()$x, cbind(4, 1:14), 1)
  expect_snapshot({
    print(knn_index(
      x, constant = "isolate", sign = "absolute", weights = rep_len(1:2, 14),
      backend = "cpu"
    ))
    print(knn_index(
      replace(x, 5, NA)[-4, ], na = "pairwise", backend = "cpu"
    ))
    print(knn_index(metafeatures(x[1:3, ]), backend = "cpu"))
  }, transform = function(lines) {
    # The filter's numbers differ between processors.
    sub("(Memory: +)[0-9.]+ KiB$", "\\1... KiB", lines)
  })
})

test_that("an index on GPUs is searched there, and elsewhere on request", {
  skip_if_no_cuda()
  data <- index_data()
  expected <- knn_query(data$x, data$query, 3, backend = "cpu")
  index <- knn_index(data$x, devices = 1)
  expect_output(print(index), "on GPU 1")
  expect_identical(knn_query(index, data$query, 3), expected)
  expect_identical(knn_stats()$backend, "cuda")
  expect_identical(knn_query(index, data$query, 3, backend = "cpu"), expected)
  expect_identical(knn_stats()$backend, "cpu")
  expect_identical(knn_query(index, data$query, 3), expected)
  expect_identical(knn_stats()$backend, "cuda")
})

test_that("too many pairs are the same error with an index", {
  x <- random_matrix(300, 6, seed = 3)
  words <- function(x) {
    tryCatch(
      within_search(x, 1.9, max_memory = 2000, backend = "cpu"),
      fsknn_size_error = conditionMessage
    )
  }
  expect_identical(words(knn_index(x, backend = "cpu")), words(x))
})

test_that("BiocNeighbors' index keeps the points", {
  skip_if_not_installed("BiocNeighbors")
  x <- unname(index_data()$x)
  for (distance in c("Euclidean", "Cosine", "pearson")) {
    param <- FsknnParam(distance, backend = "cpu")
    index <- BiocNeighbors::buildIndex(x, BNPARAM = param)
    expect_null(fsknn:::made_index(index))
    first <- BiocNeighbors::findKNN(BNINDEX = index, k = 3)
    made <- fsknn:::made_index(index)$index
    expect_s3_class(made, "fsknn_index")
    expect_identical(BiocNeighbors::findKNN(BNINDEX = index, k = 3), first)
    expect_identical(
      BiocNeighbors::findKNN(x, k = 3, BNPARAM = param), first
    )
    found <- BiocNeighbors::queryKNN(query = x[1:4, ], BNINDEX = index, k = 3)
    expect_identical(
      found,
      BiocNeighbors::queryKNN(x, query = x[1:4, ], k = 3, BNPARAM = param)
    )
    expect_identical(fsknn:::made_index(index)$index, made)
    # A saved index does not have them twice.
    saved <- serialize(index, NULL)
    expect_lt(length(saved), 1.5 * 8 * length(x) + 5000)
    expect_identical(
      BiocNeighbors::findKNN(BNINDEX = unserialize(saved), k = 3), first
    )
    # Other data in it are noticed.
    index@data <- index@data[rev(seq_len(nrow(index@data))), ]
    expect_null(fsknn:::made_index(index))
  }
})
