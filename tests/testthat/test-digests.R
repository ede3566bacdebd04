# The same bits forever: on every machine, backend and instruction set, in every
# version. Keys of the table name the request, not the functions.

# Returns the answers to all requests with one metric, by key. `...` is passed
# to each, for instance the backend.
all_answers <- function(kind, metric, sign, ..., reduced = FALSE) {
  data <- lapply(digest_matrices()[[kind]], values_for, metric)
  x <- data$x
  n <- nrow(x)
  ask <- function(verb, ...) {
    verb(..., metric = metric, sign = sign, constant = "isolate")
  }
  knn <- ask(knn_search, x, 12, ...)
  # Some pairs have exactly this distance, so that equality counts.
  far <- sort(knn$distance[!is.na(knn$distance)])
  limit <- far[[length(far) %/% 3]]
  edges <- ask(knn_graph, x, 9, ...)
  answers <- list(
    knn = knn,
    edges = edges,
    queries = ask(knn_query, x, data$queries, 11, ...),
    within = ask(within_search, x, limit, ...)
  )
  facts <- fsknn:::metric_facts(metric)
  if (!facts$below_zero) {
    tree <- ask(mst_knn, x, ...)
    answers$tree <- tree$tree
    answers[["tree-clusters"]] <- c(tree["membership"], tree$edges)
  }
  if (reduced) {
    return(keyed(answers, metric, sign, kind))
  }
  some <- c(n, 5, 60:75, 1)
  answers$nearest <- ask(nearest_to, x, 5, 12, ...)
  answers[["nearest-one"]] <- ask(knn_search, x, 1, ...)
  answers[["few-queries"]] <-
    ask(knn_query, x, data$queries[1:3, ], 4, ...)
  answers[["k-each"]] <- ask(knn_search, x, I(rep_len(c(0, 3, 8), n)), ...)
  answers$subset <- ask(knn_search, x, 6, ..., subset = some)
  answers[["subset-edges"]] <- ask(knn_graph, x, 6, ..., subset = some)
  answers[["subset-within"]] <- ask(within_search, x, limit, ..., subset = some)
  answers[["within-each"]] <-
    ask(within_search, x, limit * (seq_len(n) %% 3), ...)
  answers[["within-queries"]] <-
    ask(within_query, x, data$queries, limit, ...)
  if (!facts$similarity %in% c("reciprocal", "none")) {
    answers$threshold <- ask(threshold_graph, x, 0.25, ...)
  }
  if (!facts$below_zero) {
    answers[["edges-tree"]] <- spanning_forest(edges)
    answers[["edges-tree-clusters"]] <- mst_knn(edges)["membership"]
  }
  for (type in c("rank", "number", "jaccard")) {
    if (!anyNA(knn$index)) {
      answers[[paste0("shared-", type)]] <- snn_graph(knn, type)
    }
  }
  keyed(answers, metric, sign, kind)
}

keyed <- function(answers, metric, sign, kind) {
  stats::setNames(answers, paste(metric, sign, names(answers), kind, sep = "/"))
}

# Runs `fun(metric, sign)` for each metric, with one expectation for each.
each_metric <- function(fun, label, metrics = all_metrics()) {
  for (row in seq_len(nrow(metrics))) {
    metric <- metrics$metric[[row]]
    sign <- metrics$sign[[row]]
    expect_digests(fun(metric, sign), paste(label, metric, sign))
  }
}

# Returns the metrics with a property of the table of metrics.
metrics_where <- function(has) {
  table <- fsknn:::metric_table()
  metrics <- all_metrics()
  metrics[metrics$metric %in% table$name[has(table)], ]
}

weighable <- function() metrics_where(function(table) table$takes_weights)

pairwise <- function() metrics_where(function(table) table$pairwise)

not_binary <- function() metrics_where(function(table) table$levels == 0)

with_weights <- function(metric, sign, ...) {
  x <- digest_matrices()$generic$x
  weights <- (1 + whole_numbers(19, 111) %/% 4096 %% 50) * 0x1p-5
  ask <- function(verb, x, k) {
    verb(x, k, metric, sign, weights = weights, ...)
  }
  keyed(
    list(
      knn = ask(knn_search, x, 8), edges = ask(knn_graph, x, 5),
      within = ask(within_search, x, 0x1p-1)
    ),
    metric, sign, "weights"
  )
}

# Adjusts for covariates, one of which is redundant.
apart_from <- function(metric, sign, ...) {
  data <- digest_matrices()$generic
  samples <- data.frame(
    age = bell_matrix(1, 19, 115)[1, ], batch = rep_len(c("b", "a", "c"), 19)
  )
  samples$twice <- 2 * samples$age
  ask <- function(verb, x, ...) {
    verb(
      x, ..., metric = metric, sign = sign, adjust = ~ age * batch + twice,
      data = samples
    )
  }
  weights <- (1 + whole_numbers(19, 116) %/% 4096 %% 50) * 0x1p-5
  keyed(
    list(
      knn = ask(knn_search, data$x, 8, ...),
      edges = ask(knn_graph, data$x, 5, weights = weights, ...),
      within = ask(within_search, data$x, 0x1p-1, ...),
      queries = ask(knn_query, data$x, data$queries, 7, ...),
      metafeatures = ask(knn_search, metafeatures(data$x[1:14, ], "-"), 6, ...)
    ),
    metric, sign, "adjusted"
  )
}

over_common_samples <- function(metric, sign, ..., within = TRUE) {
  data <- digest_matrices()$generic
  x <- with_gaps(values_for(data$x, metric), 112)
  queries <- with_gaps(values_for(data$queries, metric), 113)
  ask <- function(verb, ...) {
    # Each call reports that some points have fewer neighbours.
    suppressMessages(
      verb(..., metric = metric, sign = sign, na = "pairwise", min_pairs = 4)
    )
  }
  answers <- list(
    knn = ask(knn_search, x, 8, ...),
    edges = ask(knn_graph, x, 5, ...),
    queries = ask(knn_query, x, queries, 7, ...),
    subset = ask(knn_search, x, 6, ..., subset = c(9, 3, 100)),
    nearest = ask(nearest_to, x, 20, 9, ...)
  )
  if (within) {
    limit <- c(euclidean = 2.5, manhattan = 8)[metric]
    limit <- if (is.na(limit)) 0.4 else limit[[1]]
    answers$within <- ask(within_search, x, limit, ...)
    answers[["within-queries"]] <- ask(within_query, x, queries, limit, ...)
    if (metric %in% c("pearson", "spearman")) {
      answers$threshold <- ask(threshold_graph, x, 0.5, ...)
    }
  }
  keyed(answers, metric, sign, "pairwise")
}

filled_by_means <- function(metric, sign, ...) {
  x <- with_gaps(values_for(digest_matrices()$generic$x, metric), 114)
  ask <- function(verb, x, k) {
    verb(x, k, metric, sign, na = "mean", ...)
  }
  keyed(
    list(
      knn = ask(knn_search, x, 8), edges = ask(knn_graph, x, 5),
      within = ask(within_search, x, 0x1p-1)
    ),
    metric, sign, "mean"
  )
}

of_metafeatures <- function(metric, sign, ...) {
  facts <- fsknn:::metric_facts(metric)
  x <- values_for(digest_matrices()$generic$x[1:14, ], metric)
  # Products of 0 and 1 are allowed values again.
  if (facts$levels > 0) x <- pmin(x, 1)
  ops <- if (facts$levels > 0) {
    "*"
  } else {
    c(if (!facts$non_negative) "-", "+", "*", "/")
  }
  made <- metafeatures(x, ops)
  ask <- function(verb, ...) {
    verb(..., metric = metric, sign = sign, constant = "isolate")
  }
  keyed(
    list(
      knn = ask(knn_search, made, 6, ...),
      subset = ask(knn_search, made, 5, ..., subset = c(80, 3, 20:25))
    ),
    metric, sign, "metafeatures"
  )
}

# Searches the generic matrix in any form that is read by blocks.
by_blocks <- function(blocks, metric, sign, ...) {
  data <- lapply(digest_matrices()$generic, values_for, metric)
  ask <- function(verb, ...) {
    verb(
      ..., metric = metric, sign = sign, constant = "isolate", max_memory = 1e4
    )
  }
  held <- blocks(data$x)
  keyed(
    list(
      knn = ask(knn_search, held, 12, ...),
      edges = ask(knn_graph, held, 9, ...),
      queries = ask(knn_query, held, data$queries, 11, ...),
      nearest = ask(nearest_to, held, 5, 12, ...)
    ),
    metric, sign, "generic"
  )
}

of_triples <- function(metric, ...) {
  x <- values_for(digest_matrices()$generic$x[1:70, ], metric)
  # Some triples have exactly this similarity.
  nearest <- nearest_triples(x, 7, metric, ...)
  least <- sort(nearest$similarity)[[100]]
  keyed(
    list(
      triples = threshold_triples(x, least, metric, ...),
      "triples-subset" =
        threshold_triples(x, least / 2, metric, subset = c(60, 3), ...),
      "triples-nearest" = nearest,
      "triples-counts" = triple_histogram(x, 50, metric, ...)
    ),
    metric, "signed", "generic"
  )
}

# There are enough points and queries for every filter of a GPU.
many_points <- function(metric, ...) {
  x <- values_for(bell_matrix(4500, 24, seed = 121), metric)
  x[4001:4100, ] <- x[1:100, ]
  queries <- values_for(bell_matrix(300, 24, seed = 122), metric)
  keyed(
    list(
      knn = knn_search(x, 10, metric, ...),
      edges = knn_graph(x, 5, metric, ...),
      queries = knn_query(x, queries, 10, metric, ...),
      subset = knn_search(x, 7, metric, ..., subset = seq(2, 4500, 13))
    ),
    metric, "signed", "many"
  )
}

many_common_samples <- function(metric, ...) {
  x <- with_gaps(bell_matrix(4500, 24, seed = 123), 124)
  queries <- with_gaps(bell_matrix(300, 24, seed = 125), 126)
  answers <- suppressMessages(list(
    knn = knn_search(x, 10, metric, na = "pairwise", ...),
    queries = knn_query(x, queries, 10, metric, na = "pairwise", ...)
  ))
  keyed(answers, metric, "signed", "many-pairwise")
}

filtered_metrics <- c(
  "euclidean", "pearson", "manhattan", "proportional", "chebyshev", "cosine",
  "inner_product"
)

# --- On the CPU --------------------------------------------------------------

test_that("answers on the CPU have the bits that they always had", {
  skip_if_not_installed("digest")
  for (kind in names(digest_matrices())) {
    reduced <- !kind %in% c("generic", "ties")
    each_metric(
      function(metric, sign) {
        all_answers(kind, metric, sign, backend = "cpu", reduced = reduced)
      },
      label = kind
    )
  }
})

test_that("weights, missing values and metafeatures have theirs", {
  skip_if_not_installed("digest")
  each_metric(
    function(...) with_weights(..., backend = "cpu"), "weights", weighable()
  )
  each_metric(
    function(...) apart_from(..., backend = "cpu"), "adjusted", weighable()
  )
  each_metric(
    function(...) over_common_samples(..., backend = "cpu"), "pairwise",
    pairwise()
  )
  each_metric(
    function(...) filled_by_means(..., backend = "cpu"), "mean", not_binary()
  )
  each_metric(function(...) of_metafeatures(..., backend = "cpu"), "made")
})

test_that("so have answers of thousands of points", {
  skip_if_not_installed("digest")
  for (metric in filtered_metrics) {
    expect_digests(many_points(metric, backend = "cpu"), metric)
  }
  for (metric in c("pearson", "euclidean", "manhattan")) {
    expect_digests(many_common_samples(metric, backend = "cpu"), "pairwise")
  }
})

test_that("so have triples, by any instruction set", {
  skip_if_not_installed("digest")
  sets <- fsknn:::cpp_backends()$cpu$instruction_sets
  for (set in if (is_long()) sets else c(sets[[1]], "auto")) {
    withr::local_options(fsknn.instruction_set = set)
    for (metric in fsknn:::triple_metrics) {
      expect_digests(of_triples(metric, backend = "cpu"), paste(metric, set))
    }
  }
})

test_that("data in a file have the bits of data in memory", {
  skip_if_not_installed("digest")
  skip_if_not_installed("DelayedArray")
  # test-input-blocks.R compares blocks with memory under every metric.
  few <- data.frame(
    metric = c("pearson", "euclidean", "jaccard"), sign = "signed"
  )
  each_metric(
    function(metric, sign) {
      by_blocks(DelayedArray::DelayedArray, metric, sign, backend = "cpu")
    },
    "DelayedMatrix", if (is_long()) all_metrics() else few
  )
  skip_if_not_installed("bigmemory")
  each_metric(
    function(metric, sign) {
      by_blocks(bigmemory::as.big.matrix, metric, sign, backend = "cpu")
    },
    "big.matrix", few[1, ]
  )
})

test_that("every instruction set has these bits", {
  skip_if_not_installed("digest")
  # The fastest has them above, and all have those of the core (tests/cpp/digests).
  sets <- fsknn:::cpp_backends()$cpu$instruction_sets
  for (set in if (is_long()) sets else sets[[1]]) {
    withr::local_options(fsknn.instruction_set = set)
    for (kind in c("generic", if (is_long()) "ties")) {
      each_metric(
        function(metric, sign) {
          all_answers(kind, metric, sign, backend = "cpu", reduced = TRUE)
        },
        label = paste(set, kind)
      )
    }
    each_metric(
      function(...) over_common_samples(..., backend = "cpu"),
      paste(set, "pairwise"), pairwise()
    )
    each_metric(
      function(...) with_weights(..., backend = "cpu"),
      paste(set, "weights"), weighable()
    )
    each_metric(
      function(...) apart_from(..., backend = "cpu"),
      paste(set, "adjusted"), weighable()
    )
  }
})

test_that("differences in whole numbers of 8 bits have these bits", {
  skip_if_not_installed("digest")
  for (set in fsknn:::cpp_backends()$cpu$instruction_sets) {
    withr::local_options(fsknn.instruction_set = paste0(set, "/8"))
    for (kind in c("generic", "ties")) {
      each_metric(
        function(metric, sign) {
          all_answers(kind, metric, sign, backend = "cpu", reduced = TRUE)
        },
        label = paste(set, kind),
        data.frame(metric = c("manhattan", "proportional"), sign = "signed")
      )
    }
  }
})

test_that("threads and chunks do not change these bits", {
  skip_if_not_installed("digest")
  metrics <- data.frame(metric = filtered_metrics, sign = "signed")
  for (num_threads in 1:2) {
    for (chunk_size in if (is_long()) c(48, 160) else c(48, 160)[num_threads]) {
      # Neighbours of a single point need no chunks.
      each_metric(
        function(metric, sign) {
          all_answers(
            "generic", metric, sign, backend = "cpu", reduced = TRUE,
            num_threads = num_threads, chunk_size = chunk_size
          )
        },
        label = paste(num_threads, "threads, chunks of", chunk_size),
        metrics
      )
    }
  }
})

# --- On GPUs -----------------------------------------------------------------

test_that("a GPU has these bits", {
  skip_if_not_installed("digest")
  skip_if_no_cuda()
  for (kind in names(digest_matrices())) {
    reduced <- !kind %in% c("generic", "ties")
    each_metric(
      function(metric, sign) {
        all_answers(kind, metric, sign, backend = "cuda", reduced = reduced)
      },
      label = paste("cuda", kind)
    )
  }
  each_metric(
    function(...) with_weights(..., backend = "cuda"), "cuda weights",
    weighable()
  )
  each_metric(
    function(...) apart_from(..., backend = "cuda"), "cuda adjusted",
    weighable()
  )
  each_metric(
    function(...) over_common_samples(..., backend = "cuda", within = FALSE),
    "cuda pairwise",
    metrics_where(function(table) table$pairwise & !table$table)
  )
  each_metric(
    function(...) filled_by_means(..., backend = "cuda"), "cuda mean",
    not_binary()
  )
  each_metric(function(...) of_metafeatures(..., backend = "cuda"), "cuda made")
})

test_that("a GPU's filters have these bits, in much and in little memory", {
  skip_if_not_installed("digest")
  skip_if_no_cuda()
  for (metric in filtered_metrics) {
    # With these limits, everything stays on the GPU, a graph is divided, or
    # queries have no filter.
    for (limit in list(NULL, 16e6, 9e6)) {
      expect_digests(
        many_points(
          metric, backend = "cuda", devices = 1, max_device_memory = limit
        ),
        paste("cuda", metric, limit)
      )
    }
  }
  for (metric in c("pearson", "euclidean", "manhattan")) {
    expect_digests(
      many_common_samples(metric, backend = "cuda", devices = 1),
      paste("cuda pairwise", metric)
    )
  }
})

test_that("two GPUs have these bits", {
  skip_if_not_installed("digest")
  skip_if_no_cuda()
  skip_if(nrow(gpus_here()) < 2, "There is one GPU.")
  for (metric in filtered_metrics) {
    expect_digests(
      many_points(metric, backend = "cuda", devices = 1:2),
      paste("two GPUs", metric)
    )
  }
  for (metric in c("pearson", "euclidean", "manhattan")) {
    expect_digests(
      many_common_samples(metric, backend = "cuda", devices = 1:2),
      paste("two GPUs, pairwise", metric)
    )
  }
})

test_that("data in a file have these bits on a GPU", {
  skip_if_not_installed("digest")
  skip_if_not_installed("DelayedArray")
  skip_if_no_cuda()
  each_metric(
    function(metric, sign) {
      by_blocks(DelayedArray::DelayedArray, metric, sign, backend = "cuda")
    },
    "cuda DelayedMatrix"
  )
})

# --- By block ----------------------------------------------------------------

test_that("answers by block have these bits", {
  skip_if_not_installed("digest")
  x <- digest_matrices()$ties$x
  block <- (seq_len(nrow(x)) * 7) %% 5 %/% 2
  for (backend in backends_here()) {
    for (metric in c("pearson", "euclidean")) {
      ask <- function(verb, ...) {
        verb(x, ..., metric = metric, block = block, constant = "isolate",
             backend = backend)
      }
      answers <- list(
        blocks = ask(knn_search, 6),
        "blocks-edges" = ask(knn_graph, 6),
        "blocks-between" = ask(knn_graph, 6, between = TRUE),
        "blocks-together" = ask(knn_graph, 6, between = "together"),
        mutual = mutual_pairs(
          x, block, 6, metric = metric, constant = "isolate", backend = backend
        )
      )
      expect_digests(keyed(answers, metric, "signed", "ties"), backend)
    }
  }
})

# --- The table itself --------------------------------------------------------

test_that("the table has nothing that is asked for no more", {
  skip_if_not_installed("digest")
  seen <- sort(ls(digests_seen, all.names = TRUE), method = "radix")
  if (writes_digests()) {
    utils::write.csv(
      data.frame(key = seen, sha256 = unlist(mget(seen, digests_seen))),
      digest_file(), row.names = FALSE, quote = FALSE
    )
  }
  expect_identical(sort(names(digest_table()), method = "radix"), seen)
})
