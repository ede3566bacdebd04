# Run by gpu_sanitize.sh: each kernel once or twice, on little.
#
#   Rscript gpu_sanitize.R PART [SHARE]
#                                   double, all_pairs, lists, guesses, forms,
#                                   bytes, bits, queries, elementwise, within,
#                                   near_empty, missing, blocks, adjusted,
#                                   streamed, streamed_bits, made, tasks,
#                                   tree or triples;
#                                   without PART their names
#
# SHARE, such as 2/5, runs the second of five shares of the part's searches. A
# share beyond the number of searches repeats one.

library(fsknn)

# On one GPU, or on all with FSKNN_SANITIZE_GPUS=all.
options(
  fsknn.backend = "cuda",
  fsknn.devices = if (Sys.getenv("FSKNN_SANITIZE_GPUS") != "all") 1
)

graph <- function(x, k, ...) {
  invisible(knn_search(x, k, ...))
}
queries <- function(x, query, k, ...) {
  invisible(knn_query(x, query, k, ...))
}
# x, its last rows zeros but for one entry.
near_empty <- function(x, tiny) {
  rows <- nrow(x) - tiny + seq_len(tiny)
  x[rows, ] <- 0
  x[cbind(rows, rep_len(seq_len(ncol(x)), tiny))] <- 1e-40
  x
}
# Enough points for a filter.
many <- matrix(sin(seq_len(4200 * 70)^1.5), 4200)
elementwise <- c("manhattan", "chebyshev", "proportional")
suited <- function(x, metric) if (metric == "proportional") abs(x) + 1e-3 else x
alleles <- list(ccc = pmax(floor(2 * many) + 1, 0), duo = (many > 0.6) + 0)

parts <- list(
  # Both paths, few features and several stretches of them, stages, queries,
  # counts, and the best of each point; more points than a block's threads go
  # through at once, lists that overflow, and more breaks than shared memory has
  # room for.
  triples = function() {
    for (d in c(1, 20, 2100)) {
      x <- exp(many[1:150, rep_len(1:70, d), drop = FALSE])
      for (path in c("all", "pairs")) {
        stopifnot(nrow(threshold_triples(
          x, if (d == 1) 0.999 else 0.8, path = path, stage = c(1, 2)
        )) > 0)
      }
      threshold_triples(x, 0.9, subset = 1:5, stage = c(2, 3))
      triple_histogram(x)
      nearest_triples(x, 3)
    }
    x <- exp(many[1:600, 1:33])
    x[, 1] <- -0
    for (path in c("all", "pairs")) {
      threshold_triples(x, 0.8, path = path)
    }
    nearest_triples(x, 2)
    for (breaks in c(2000, 5000)) {
      triple_histogram(x[1:200, ], breaks = breaks)
    }
    threshold_triples(
      x[1:120, ], 0, path = "all", max_device_memory = 40e6
    )
    # By bits: several squares, parts of codes, lowers that stand there twice.
    for (d in c(33, 600)) {
      x <- pmin(floor(exp(many[1:270, rep_len(1:70, d)])), 4)
      x[, 1] <- 1
      threshold_triples(x, 0.8, path = "all")
      threshold_triples(x, 0.5, subset = c(3, 260), stage = c(2, 3))
      triple_histogram(x)
      triple_histogram(x, breaks = 3000)
      nearest_triples(x, 2)
    }
  },
  # Blocks pruned by boxes: with and without tests of single points, lists that
  # overflow, rows without a bound, and the sample that decides.
  tree = function() {
    options(fsknn.instruction_set = "auto/tree")
    x <- many[, 1:40] + 5 * many[rep_len(1:30, 4200), 31:70]
    x <- rbind(x, x + 1e-3)
    for (k in c(1, 15, 60)) graph(x, k, "euclidean")
    stopifnot(knn_stats()$pairs_pruned > 0)
    graph(x[, rep(1:40, 3)], 15, "euclidean")
    graph(x[rep(1:60, 140), ], 30, "euclidean")
    graph(replace(x, 7, 1e30), 15, "euclidean")
    options(fsknn.instruction_set = "auto")
    wide <- matrix(sin(seq_len(2^18 * 2)), 2^18)
    graph(wide, 2, "euclidean")
  },
  # Small whole numbers by bits; queries that are none.
  codes = function() {
    x <- pmin(floor(exp(many[, 1:33])), 9)
    x[, 1] <- 1
    y <- x[1:600, ]
    y[3, 2] <- 0.5
    for (metric in c("proportional", "manhattan")) {
      graph(x, 5, metric)
      queries(x, y, 5, metric)
      within_search(x, if (metric == "manhattan") 4 else 0.1, metric)
    }
  },
  # In float64: few points, every metric, and lists longer than what is gathered
  # at a time.
  double = function() {
    x <- matrix(
      stats::qnorm((seq_len(150 * 19) * 7919 %% 10007 + 0.5) / 3e7), 150
    )
    x <- x + sin(seq_along(x))
    x[140:150, ] <- x[1:11, ]
    for (metric in c("pearson", "euclidean", elementwise)) {
      for (k in c(3, 149)) graph(suited(x, metric), k, metric, chunk_size = 64)
    }
    for (sign in c("absolute", "negative")) {
      knn_graph(x, 5, "spearman", sign)
    }
    queries(x, x[1:70, ], 9, "cosine", chunk_size = 64)
    long <- cbind(sin(seq_len(3000)))
    graph(long, 2500, "euclidean", chunk_size = 2900)
    queries(long, long[1:3, , drop = FALSE], 2999, "manhattan")
  },
  # Products of doubles on tensor cores, where the GPU has them: a chunk for
  # rows, for both, and of rows with themselves; tiles that are not full.
  all_pairs = function() {
    options(fsknn.instruction_set = "auto/all")
    x <- matrix(sin(seq_len(1030 * 261)^1.5), 1030)
    for (sign in c("signed", "absolute", "negative")) {
      graph(x, 90, "pearson", sign, chunk_size = 576)
    }
    graph(x, 1029)
    queries(x, x[1:1025, ] + 0.1, 9, "cosine")
    graph(x[, 1:20], 90, "euclidean", chunk_size = 320)
    options(fsknn.instruction_set = "auto")
  },
  # The filter with lists of each capacity.
  lists = function() {
    for (k in c(5, 40, 100, 400, 1000, 2000)) graph(many, k)
    graph(many[rep(1:42, 100), ], 400) # most are as near as others
  },
  # Guesses of thresholds, many of them wrong: by the exact step, by the cut.
  guesses = function() {
    options(fsknn.instruction_set = "auto/hasty")
    for (k in c(5, 20, 40, 300)) graph(many, k)
    graph(many, 20, "euclidean")
    queries(many, many[1:600, ] + 0.1, 20)
    options(fsknn.instruction_set = "auto/8/hasty")
    graph(many, 20)
    options(fsknn.instruction_set = "auto")
  },
  # Both forms of rows, few and many features, rows that overflow.
  forms = function() {
    graph(many, 5, "euclidean")
    graph(replace(many, 7, 1e200), 300, "euclidean")
    graph(many[, rep(1:70, 9)], 5, "cosine")
    graph(many[, rep(1:70, 31)], 5) # several stretches of features
    graph(many[, 1:9], 3, "spearman", "negative")
    near <- many
    near[1:300, ] <- many[rep(1, 300), ] * (1 + 1e-9 * many[1:300, ])
    knn_graph(near, 5, "pearson", "absolute")
  },
  # The filter by bytes: rows of whole parts, and of 1 to 3 steps in the last.
  bytes = function() {
    options(fsknn.instruction_set = "auto/int8")
    for (sign in c("signed", "absolute", "negative")) {
      graph(many, 20, "pearson", sign)
    }
    for (d in c(20, 60, 120, 150)) {
      graph(many[, rep_len(1:70, d)], 5)
      if (d < 70) stopifnot(knn_stats()$filter_form == "int8")
    }
    graph(many[, rep(1:70, 40)], 5)
    graph(many[, 1:9], 300, "cosine")
    queries(many, many[1:300, ] + 0.1, 5)
    near <- many
    near[1:300, ] <- many[rep(1, 300), ] * (1 + 1e-9 * many[1:300, ])
    graph(near, 5)
    options(fsknn.instruction_set = "auto")
  },
  # The filters by differences of whole numbers, and of floats.
  differences = function() {
    near <- abs(many) + 0.1
    near[1:300, ] <- near[rep(1, 300), ] * (1 + 1e-9 * abs(many[1:300, ]))
    near[301, 3] <- 1e6
    for (bits in c(8, 16, 32)) {
      options(fsknn.instruction_set = paste0("auto/", bits))
      for (metric in elementwise) {
        graph(near, 5, metric)
        graph(near[, 1:9], 20, metric)
        queries(near, near[1:300, ] + 0.1, 5, metric)
      }
      within_search(near, 3, "manhattan")
      threshold_graph(near, 0.95, "proportional")
      knn_search(
        near, 5, "manhattan", block = rep(1:3, length.out = nrow(near)),
        between = TRUE
      )
    }
    options(fsknn.instruction_set = "auto")
  },
  # The filters by common bits, and by bits of alleles.
  bits = function() {
    for (metric in names(alleles)) {
      x <- alleles[[metric]]
      graph(x, 5, metric)
      graph(x[, rep(1:70, 20)], 20, metric)
      queries(x, x[1:300, ], 5, metric)
      threshold_graph(x, 0.7, metric)
      graph(x[rep(1:14, 300), ], 5, metric)
    }
    few <- (many > 0.6) + 0
    few[cbind(seq_len(nrow(few)), 1:70)] <- 1
    wide <- few[, rep(1:70, 20)]
    for (metric in c("sorensen", "jaccard")) {
      graph(few, 5, metric)
      graph(wide, 20, metric)
      queries(few, few[1:300, ], 5, metric)
    }
    threshold_graph(wide, 0.9, "sorensen")
    graph(few[rep(1:14, 300), ], 5, "jaccard")
  },
  queries = function() {
    for (metric in c("pearson", "euclidean")) {
      queries(many, many[1:300, ] + 0.1, 5, metric)
    }
  },
  # Some features are a part of what is staged at a time.
  elementwise = function() {
    for (metric in elementwise) {
      values <- suited(many, metric)
      graph(values, 5, metric)
      queries(values, values[1:300, ] + 0.1, 5, metric)
    }
    graph(many[, 1:5], 300, "manhattan")
  },
  # All pairs within a distance: by both filters and in doubles, of points and of
  # queries, limits for each, long rows, and a row that is wild.
  within = function() {
    on_gpu <- function(f, ..., filtered = TRUE) {
      f(...)
      stopifnot(knn_stats()$filtered == filtered)
    }
    for (metric in c("pearson", "euclidean", "manhattan", "proportional")) {
      x <- suited(many, metric)
      near <- sort(knn_search(x[1:300, ], 9, metric, backend = "cpu")$distance)
      limit <- near[[20]]
      on_gpu(within_search, x, limit, metric)
      on_gpu(within_search, x, rep(near[c(1, 9, 40)], 1400), metric)
      on_gpu(within_query, x, x[1:300, ] + 1e-3, limit, metric)
      on_gpu(within_search, x, 1e3, metric, filtered = FALSE)
    }
    within_search(replace(many, 7, 1e200), 1, "euclidean")
    pair_histogram(many, 200)
    pair_histogram(many, 3000, "manhattan")
    on_gpu(threshold_graph, many[, rep(1:70, 31)], 0.6, sign = "absolute")
  },
  # Rows of next to nothing beside rows far from 0, whose proportions no float
  # holds: lists that overflow, and are filtered again as rows against columns.
  near_empty = function() {
    for (level in c(1e6, 1e10, 1e300)) {
      for (tiny in c(1, 400)) {
        x <- near_empty(level * (1 + 1e-10 * abs(many[, 1:24])), tiny)
        graph(x, 5, "proportional")
        queries(x, x[3801:4200, ], 5, "proportional")
        queries(x[1:3800, ], x[3801:4200, ], 5, "proportional")
      }
      longer <- rbind(many, many + 1, many + 2)[, 1:24]
      longer <- near_empty(level * (1 + 1e-10 * abs(longer)), 400)
      graph(longer, 5, "proportional")
      queries(longer, longer[12201:12600, ], 5, "proportional")
    }
    graph(near_empty(1e10 + abs(many), 400), 5, "manhattan")
    near <- near_empty(1e10 + abs(many), 400)
    graph(
      near, 5, "proportional",
      max_device_memory = streaming_limit(near, 5, "proportional", "stays")
    )
  },
  # Points by block: lists of few neighbours, and of more; blocks of few points.
  blocks = function() {
    block <- c(rep(6, 9), rep_len(1:5, 4191))
    for (k in c(1, 5, 8)) graph(many, k, block = block)
    graph(many, 8, "pearson", block = block, between = "together")
    graph(many, 3, "euclidean", block = block, between = TRUE)
    graph(many, 12, "manhattan", block = rep_len(1:3, 4200))
  },
  # Pairs over common samples: the filters by products and of differences, rows
  # that overflow, rows that are too long for the filter.
  missing = function() {
    holes <- many[1:900, ]
    holes[seq(1, length(holes), 7)] <- NA
    holes[800:900, ] <- holes[rep(1, 101), ]
    wild <- replace(holes, cbind(3, 2), 1e200)
    for (metric in c("pearson", "euclidean", "manhattan")) {
      graph(holes, 5, metric, na = "pairwise")
      graph(holes[, 1:9], 600, metric, na = "pairwise")
      graph(wild, 5, metric, na = "pairwise")
      queries(holes, wild[1:200, ], 5, metric, na = "pairwise")
    }
    knn_graph(holes, 5, na = "pairwise")
    # So near that sums in float32 take the place of products of halves.
    near <- many[rep(1:3, 500), ] + 1e-7 * many[1:1500, ]
    near[seq(1, length(near), 7)] <- NA
    for (metric in c("pearson", "euclidean")) {
      graph(near, 5, metric, na = "pairwise")
    }
  },
  # Rows less what covariates explain: fewer vectors than are taken at a time,
  # and more; with weights, ranks, rows that end within a lane.
  adjusted = function() {
    for (d in c(9, 70)) {
      x <- many[1:900, seq_len(d)]
      covariates <- matrix(cos(seq_len(6 * d)^1.5), d)
      for (num in c(1, 6)) {
        adjust <- covariates[, seq_len(num)]
        graph(x, 5, adjust = adjust)
        graph(x, 5, "spearman", adjust = adjust)
        graph(x, 5, adjust = adjust, weights = seq_len(d))
        queries(x, x[1:50, ] + 0.1, 5, adjust = adjust)
      }
    }
    graph(many, 5, adjust = cos(1:70))
  },
  # The filter's rows resident and the doubles streamed, rows that overflow among
  # them; then the filter's rows streamed from the host, too; then all in doubles.
  streamed = function() {
    near <- many
    near[1:300, ] <- many[rep(1, 300), ] * (1 + 1e-12 * many[1:300, ])
    for (metric in c("pearson", "euclidean", "manhattan")) {
      for (filter in c("stays", "comes", "none")) {
        limit <- streaming_limit(near, 5, metric, filter)
        graph(near, 5, metric, max_device_memory = limit)
        stopifnot(
          knn_stats()$streamed, knn_stats()$filtered == (filter != "none"),
          !knn_stats()$filtered || knn_stats()$rows_widened > 0
        )
      }
    }
    knn_graph(
      near, 5, max_device_memory = streaming_limit(near, 5, "pearson", "stays")
    )
    limit <- streaming_limit(many, 400, "pearson", "comes")
    graph(many, 400, max_device_memory = limit)
  },
  # Few bits where points are streamed, and by block: differences of whole
  # numbers, codes, and those whose last rows do not suit.
  streamed_bits = function() {
    block <- rep_len(1:3, nrow(many))
    ways <- function(x, metric) {
      for (filter in c("stays", "comes")) {
        limit <- streaming_limit(x, 5, metric, filter)
        graph(x, 5, metric, max_device_memory = limit)
        stopifnot(knn_stats()$streamed, knn_stats()$filtered)
      }
      graph(x, 5, metric, block = block)
      graph(x, 12, metric, block = block, between = "together")
    }
    near <- abs(many) + 0.1
    near[1:300, ] <- near[rep(1, 300), ] * (1 + 1e-9 * abs(many[1:300, ]))
    near[301, 3] <- 1e6
    for (bits in c(8, 16)) {
      options(fsknn.instruction_set = paste0("auto/", bits))
      for (metric in elementwise) ways(near, metric)
    }
    options(fsknn.instruction_set = "auto")
    x <- pmin(floor(exp(many)), 3)
    x[, 1] <- 1
    few <- (many > 0.6) + 0
    few[cbind(seq_len(nrow(few)), 1:70)] <- 1
    few[1:30, ] <- few[rep(1, 30), ]
    for (metric in c("manhattan", "proportional")) ways(x, metric)
    for (metric in c("euclidean", "pearson")) ways(few, metric)
    for (metric in names(alleles)) ways(alleles[[metric]], metric)
    ways(replace(few, cbind(c(11, 4000), 3), 2), "euclidean")
  },
  # Rows that the device makes: metafeatures and latent rows, by numbers too,
  # held and made again for the exact step.
  made = function() {
    small <- fsknn::metafeatures(many[1:70, ], "-")
    latent <- fsknn:::latent_rows(4200, 70, factors = 5)
    for (x in list(small, latent)) {
      graph(x, 5, constant = "isolate")
      graph(x, 5, "euclidean", subset = c(7, 3, 2400))
      queries(x, x[5:9, ], 3, "spearman", constant = "isolate")
    }
    long <- fsknn:::latent_rows(9000, 70, factors = 5)
    limit <- streaming_limit(long, 5, "pearson", "stays")
    graph(long, 5, max_device_memory = limit)
  },
  # Two blocks of points: by each filter and without one, from limits, with
  # rows that overflow, and one block with itself.
  tasks = function() {
    near <- many
    near[1:300, ] <- many[rep(1, 300), ] * (1 + 1e-9 * many[1:300, ])
    between <- function(x, b, limits = NULL, metric = "pearson", k = 5) {
      options <- fsknn:::check_options(list(
        metric = metric, constant = "isolate", backend = "cuda",
        devices = getOption("fsknn.devices")
      ))
      search <- fsknn:::new_search(x, options, k = k)
      invisible(fsknn:::in_core(fsknn:::ask_between(
        search$points$values, c(1, 800), b, search$request, limits
      )))
    }
    for (metric in c("pearson", "euclidean", "canberra", elementwise)) {
      x <- suited(many, metric)
      between(x, c(801, 1700), metric = metric)
      limits <- rep(c(0.9, -Inf, Inf), length.out = 1700)
      between(x, c(801, 1700), limits, metric)
      between(x, NULL, metric = metric)
      between(x, c(4000, 4200), metric = metric, k = 300)
    }
    for (k in c(40, 100, 400)) between(many, c(801, 1700), k = k)
    for (k in c(1000, 2000)) between(many, c(801, 4200), k = k)
    between(near, c(801, 1700))
    between(near[c(801:1600, 1:300, 1601:2000), ], c(801, 1500))
    between(many[, rep(1:70, 31)], c(801, 1700))
    between(fsknn:::latent_rows(1700, 70, factors = 5), c(801, 1700))
  }
)

# The most memory for which points are streamed so: the filter's rows stay on the
# GPU, or come from the host, or there is no filter.
streaming_limit <- function(x, k, metric, filter) {
  # Several GPUs take more, to exchange their lists. Of so few points, they then
  # hold no filter's rows.
  if (filter == "stays" && is.null(getOption("fsknn.devices"))) {
    filter <- "comes"
  }
  for (bytes in 4e8 * 0.97^(0:200)) {
    plan <- knn_plan(x, k, metric, max_device_memory = bytes)
    is <- if (!nzchar(plan$filter)) {
      "none"
    } else if (plan$bytes_host > 0) {
      "comes"
    } else {
      "stays"
    }
    if (plan$streamed && is == filter) {
      return(bytes)
    }
  }
  stop("no limit makes it so")
}

# Runs every `of`-th search of a part's code, from number `share` on. A search is
# a call that stands alone. What prepares searches is always run: assignments,
# functions and options. A check that asks knn_stats() belongs to the search
# before it.
run_share <- function(code, share, of) {
  env <- new.env(parent = globalenv())
  number <- 0
  done <- 0
  runs <- FALSE
  visit <- function(expr) {
    called <- if (is.call(expr)) as.character(expr[[1]])[[1]] else ""
    if (called == "{") {
      for (line in as.list(expr)[-1]) visit(line)
    } else if (called == "for") {
      for (value in as.list(eval(expr[[3]], env))) {
        assign(as.character(expr[[2]]), value, env)
        visit(expr[[4]])
      }
    } else if (called %in% c("<-", "options")) {
      eval(expr, env)
    } else if ("knn_stats" %in% all.names(expr)) {
      if (runs) eval(expr, env)
    } else {
      number <<- number + 1
      runs <<- number %% of == share %% of
      if (runs) {
        eval(expr, env)
        done <<- done + 1
      }
    }
  }
  visit(code)
  message(done, " of ", number, " searches")
  # The sanitizer takes a process without any kernel for a failure.
  if (done == 0) run_share(code, (share - 1) %% number + 1, number)
}

words <- commandArgs(TRUE)
if (length(words) == 0) {
  writeLines(names(parts))
} else {
  share <- if (length(words) > 1) words[[2]] else "1/1"
  share <- as.integer(strsplit(share, "/", fixed = TRUE)[[1]])
  run_share(body(parts[[words[[1]]]]), share[[1]], share[[2]])
  # Gives back what is kept from call to call.
  unloadNamespace("fsknn")
}
