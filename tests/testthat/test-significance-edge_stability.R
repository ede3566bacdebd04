# Stability compared with a loop over graphs of x[, samples].

# Makes three groups of correlated rows among noise.
grouped_rows <- function(n = 60, d = 24, seed = 3) {
  withr::local_seed(seed)
  x <- matrix(stats::rnorm(n * d), n)
  factors <- matrix(stats::rnorm(3 * d), 3)
  x[1:24, ] <- x[1:24, ] + 1.5 * factors[rep(1:3, each = 8), ]
  x
}

# Counts in how many graphs each pair ("from to" by number) is.
naive_counts <- function(x, k, drawn, ..., subset = NULL) {
  keys <- lapply(drawn, function(samples) {
    edges <- suppressMessages(
      knn_graph(x[, samples], k, ..., constant = "isolate", subset = subset)
    )
    paste(edges$from, edges$to)
  })
  table(unlist(keys))
}

drawn_by <- function(seed, d, resamples, method, size) {
  withr::with_seed(seed, fsknn:::draw_resamples(d, resamples, method, size))
}

expect_counts <- function(edges, counts, resamples, least, label) {
  keys <- paste(edges$from, edges$to)
  expected <- as.integer(counts[keys])
  expected[is.na(expected)] <- 0L
  expect_identical(
    as.integer(round(edges$stability * resamples)), expected, label = label
  )
  expect_setequal(keys[edges$stability >= least / resamples - 1e-9],
                  names(counts)[counts >= least])
}

# Returns rows that may have no value with the binary data of for_all_metrics().
unfit_rows <- function(x, metric) {
  facts <- fsknn:::metric_facts(metric)
  switch(
    facts$undefined_rows, none = integer(),
    constant = which(apply(x, 1, function(row) length(unique(row)) == 1)),
    zero = which(rowSums(x != 0) == 0)
  )
}

test_that("an edge's stability is the share of graphs that have it", {
  x <- grouped_rows()
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(x, metric)
    for (method in c("subsample", "bootstrap")) {
      edges <- withr::with_seed(8, edge_stability(
        x, 3, 12, method, metric = metric, sign = sign, backend = backend,
        constant = "isolate", min_stability = 0.25, chance = FALSE
      ))
      size <- if (method == "subsample") 12 else 24
      counts <- naive_counts(
        x, 3, drawn_by(8, 24, 12, method, size), metric = metric, sign = sign,
        backend = backend
      )
      label <- paste(metric, sign, backend, method)
      expect_counts(edges, counts, 12, 3, label)
      own <- edges[!is.na(edges$rank), ]
      graph <- knn_graph(
        x, 3, metric = metric, sign = sign, backend = backend,
        constant = "isolate"
      )
      expect_identical(own$to, graph$to)
      expect_identical(own$distance, graph$distance)
      # Edges found only in resamples have distances over all samples.
      others <- edges[is.na(edges$rank), ]
      all <- knn_graph(
        x, 59 - length(unfit_rows(x, metric)), metric = metric, sign = sign,
        backend = backend, constant = "isolate"
      )
      at <- match(paste(others$from, others$to), paste(all$from, all$to))
      expect_identical(others$distance, all$distance[at], label = label)
      expect_identical(others$correlation, all$correlation[at])
    }
  }, few_signs())
})

test_that("weights, subsets and missing values go along", {
  x <- grouped_rows()
  weights <- rep_len(c(1, 2, 0, 5), 24)
  kept <- which(weights > 0)
  drawn <- drawn_by(8, 18, 12, "bootstrap", 18)
  edges <- withr::with_seed(8, edge_stability(
    x, 3, 12, "bootstrap", weights = weights, backend = "cpu",
    chance = FALSE, min_stability = 1 / 12
  ))
  keys <- lapply(drawn, function(samples) {
    graph <- knn_graph(
      x[, kept][, samples], 3, weights = weights[kept][samples],
      backend = "cpu"
    )
    paste(graph$from, graph$to)
  })
  expect_counts(edges, table(unlist(keys)), 12, 1, "weights")

  subset <- c(40L, 3L, 17L)
  edges <- withr::with_seed(8, edge_stability(
    x, 3, 12, subset = subset, backend = "cpu", chance = FALSE
  ))
  drawn <- drawn_by(8, 24, 12, "subsample", 12)
  expect_counts(
    edges, naive_counts(x, 3, drawn, backend = "cpu", subset = subset), 12, 6,
    "subset"
  )
  expect_identical(unique(edges$from), subset)

  x[cbind(1:60, rep_len(1:24, 60))] <- NA
  for (na in c("pairwise", "mean")) {
    edges <- suppressMessages(withr::with_seed(8, edge_stability(
      x, 3, 12, na = na, backend = "cpu", chance = TRUE
    )))
    expect_counts(
      edges, naive_counts(x, 3, drawn, backend = "cpu", na = na), 12, 6, na
    )
    expect_identical(sum(attr(edges, "stability")$chance), 180L)
    # A sample that was drawn twice also counts twice in a mean.
    edges <- suppressMessages(withr::with_seed(8, edge_stability(
      x, 3, 12, "bootstrap", na = na, backend = "cpu", chance = FALSE
    )))
    expect_counts(
      edges, naive_counts(
        x, 3, drawn_by(8, 24, 12, "bootstrap", 24), backend = "cpu", na = na
      ), 12, 6, paste(na, "bootstrap")
    )
  }
})

test_that("covariates are fitted anew to the samples of each draw", {
  x <- grouped_rows()
  covariates <- data.frame(
    age = uniform_numbers(24, 3), batch = factor(rep_len(1:3, 24))
  )
  # The row has no residual if this sample is not drawn.
  x[9, ] <- covariates$age
  x[9, 7] <- 5
  for (metric in c("pearson", "spearman")) {
    for (method in c("subsample", "bootstrap")) {
      size <- if (method == "subsample") 12 else 24
      drawn <- drawn_by(8, 24, 12, method, size)
      keys <- lapply(drawn, function(samples) {
        graph <- knn_graph(
          x[, samples], 3, metric, adjust = ~ age + batch,
          data = covariates[samples, ], constant = "isolate", backend = "cpu"
        )
        paste(graph$from, graph$to)
      })
      for (backend in backends_here()) {
        edges <- withr::with_seed(8, edge_stability(
          x, 3, 12, method, metric = metric, adjust = ~ age + batch,
          data = covariates, backend = backend, min_stability = 0.25
        ))
        expect_counts(
          edges, table(unlist(keys)), 12, 3, paste(metric, method, backend)
        )
      }
      absent <- attr(edges, "vertices")$absent
      expect_identical(
        absent[9],
        if (metric == "pearson") {
          sum(!vapply(drawn, function(samples) 7 %in% samples, NA))
        } else {
          absent[9]
        }
      )
    }
  }
  expect_identical(attr(edges, "num_covariates"), 3L)
  weights <- rep_len(c(1, 2, 0, 5), 24)
  kept <- which(weights > 0)
  drawn <- drawn_by(8, 18, 12, "subsample", 9)
  edges <- withr::with_seed(8, edge_stability(
    x, 3, 12, adjust = covariates$age, weights = weights, backend = "cpu",
    chance = FALSE, constant = "isolate"
  ))
  keys <- lapply(drawn, function(samples) {
    samples <- kept[samples]
    graph <- knn_graph(
      x[, samples], 3, adjust = covariates$age[samples],
      weights = weights[samples], constant = "isolate", backend = "cpu"
    )
    paste(graph$from, graph$to)
  })
  expect_counts(edges, table(unlist(keys)), 12, 6, "weights")
})

test_that("points that do not vary in a resample are absent and counted", {
  x <- grouped_rows()
  # One row varies only in two samples, and one never varies.
  x[5, ] <- 1
  x[5, c(2, 9)] <- c(3, -2)
  x[6, ] <- 0
  x[6, 4] <- 1
  x[50, ] <- 7
  drawn <- drawn_by(8, 24, 30, "subsample", 12)
  edges <- withr::with_seed(8, edge_stability(
    x, 3, 30, constant = "isolate", backend = "cpu", chance = FALSE,
    min_stability = 1 / 30
  ))
  expect_counts(
    edges, naive_counts(x, 3, drawn, backend = "cpu"), 30, 1, "absent"
  )
  absent <- attr(edges, "vertices")$absent
  expected <- integer(60)
  expected[5] <- sum(!vapply(drawn, function(s) any(c(2, 9) %in% s), NA))
  expected[6] <- sum(!vapply(drawn, function(s) 4 %in% s, NA))
  expect_identical(absent, expected)
  expect_gt(absent[6], 0)
  means <- attr(edges, "vertices")$stability
  own <- edges[!is.na(edges$rank), ]
  expect_equal(means[3], mean(own$stability[own$from == 3]))
  expect_identical(means[50], NA_real_)

  # Rows of zeros have no value under this metric.
  zeros <- abs(x)
  zeros[5:6, ] <- 0
  zeros[5, 1:3] <- 1
  zeros[6, 20:24] <- 2
  edges <- withr::with_seed(8, edge_stability(
    zeros[-50, ], 3, 30, metric = "cosine", backend = "cpu", chance = FALSE
  ))
  expect_identical(
    attr(edges, "vertices")$absent[5],
    sum(!vapply(drawn, function(s) any(1:3 %in% s), NA))
  )
})

test_that("a seed repeats the answer for threads, workers and checkpoints", {
  x <- grouped_rows(80, 20)
  ask <- function(...) {
    withr::with_seed(4, suppressMessages(edge_stability(
      x, 4, 10, backend = "cpu", min_stability = 0.1, ...
    )))
  }
  expected <- ask()
  expect_identical(ask(num_threads = 3), expected)
  folder <- withr::local_tempdir()
  withr::local_options(fsknn.split_size = 3L)
  for (time in 1:2) {
    expect_identical(ask(checkpoint = folder), expected)
  }
  expect_length(task_files(folder), 4)
  # A damaged task is done again, and resamples of another seed are reported.
  damaged <- file.path(folder, "fsknn-task-000002")
  writeBin(as.raw(1:10), damaged)
  expect_identical(ask(checkpoint = folder), expected)
  expect_error(
    withr::with_seed(5, edge_stability(
      x, 4, 10, backend = "cpu", min_stability = 0.1, checkpoint = folder
    )),
    "resamples", class = "fsknn_checkpoint_error"
  )
  skip_if_not_installed("BiocParallel")
  expect_identical(ask(BPPARAM = BiocParallel::MulticoreParam(2)), expected)
})

test_that("both backends give the same", {
  skip_if_no_cuda()
  x <- grouped_rows(3000, 40)
  x[7, ] <- 0
  x[7, 1:2] <- 1
  for (metric in c("pearson", "euclidean")) {
    for (method in c("subsample", "bootstrap")) {
      found <- lapply(c("cpu", "cuda"), function(backend) {
        withr::with_seed(4, edge_stability(
          x, 7, 20, method, metric = metric, backend = backend
        ))
      })
      expect_identical(found[[1]], found[[2]])
    }
  }
})

test_that("edges of a group stay, and those of noise as chance has them", {
  x <- grouped_rows(300, 60)
  edges <- withr::with_seed(4, edge_stability(x, 5, 40, backend = "cpu"))
  own <- edges[!is.na(edges$rank), ]
  group <- rep(c(1:3, NA), c(8, 8, 8, 276))
  within <- group[own$from] == group[own$to]
  chance <- fsknn:::chance_shares(attr(edges, "stability"))
  expect_gt(mean(own$stability[which(within)]), 0.75)
  noise <- own$stability[own$from > 24]
  expect_lt(abs(mean(noise) - mean(chance)), 0.02)
  expect_length(chance, 1500)
})

test_that("a consensus graph is taken by a threshold", {
  x <- grouped_rows()
  rownames(x) <- paste0("g", 1:60)
  edges <- withr::with_seed(8, edge_stability(
    x, 3, 12, backend = "cpu", chance = FALSE
  ))
  consensus <- combine_graphs(edges, min_stability = 0.75)
  expect_identical(
    paste(consensus$from, consensus$to),
    with(edges[edges$stability >= 0.75, ], paste(from, to))
  )
  expect_identical(attr(consensus, "kind"), "Consensus graph")
  expect_identical(consensus$stability >= 0.75, rep(TRUE, nrow(consensus)))
  by_rank <- withr::with_seed(8, edge_stability(
    x, 3, 12, metric = "spearman", backend = "cpu", chance = FALSE
  ))
  both <- combine_graphs(
    edges, by_rank, mode = "intersection", min_stability = 0.5
  )
  stay <- function(e) {
    e <- e[e$stability >= 0.5, ]
    paste(e$from, e$to)
  }
  expect_setequal(paste(both$from, both$to), intersect(stay(edges), stay(by_rank)))
  # Selected rows and igraph keep the facts of the resamples.
  top <- edges[edges$stability > 0.9, ]
  expect_identical(attr(top, "stability"), attr(edges, "stability"))
  graph <- as_igraph(top)
  expect_equal(igraph::vcount(graph), 60)
  expect_equal(igraph::vertex_attr(graph, "stability"),
               attr(edges, "vertices")$stability)
})

test_that("prints, summaries and pictures say what was drawn", {
  edges <- withr::with_seed(8, edge_stability(
    grouped_rows(), 3, 12, backend = "cpu"
  ))
  expect_output(print(edges, n = 2), "12 subsamples of 12 of 24 samples: mean")
  expect_output(print(edges, n = 2), "chance: 0")
  by_bootstrap <- withr::with_seed(8, edge_stability(
    grouped_rows(), 3, 12, "bootstrap", backend = "cpu"
  ))
  expect_output(print(by_bootstrap), "repeated inflate the largest r")
  told <- summary(edges)
  own <- edges[!is.na(edges$rank), ]
  expect_equal(told$edges[["mean"]], mean(own$stability))
  expect_equal(told$by_rank$stability[2], mean(own$stability[own$rank == 2]))
  expect_output(print(told), "edges .*chance|Mean by rank")
  told$by_rank <- data.frame(rank = 1:30, stability = seq(0.5, 1, length = 30))
  withr::with_options(list(width = 50), {
    lines <- utils::capture.output(print(told))
    expect_lte(max(nchar(lines[grepl("[0-9]: [01]\\.", lines)])), 50)
  })
  skip_if_not_installed("ggplot2")
  expect_s3_class(plot(edges), "ggplot")
  expect_s3_class(plot(edges[0, ]), "ggplot")
})

test_that("what can't be drawn is an error that says why", {
  x <- grouped_rows()
  expect_messages({
    edge_stability(x, 3, resamples = 0)
    edge_stability(x, 3, method = "jackknife")
    edge_stability(x, 3, fraction = 1)
    edge_stability(x, 3, fraction = 0.01)
    edge_stability(x, 3, fraction = 2)
    edge_stability(x, 3, min_stability = 0)
    combine_graphs(knn_graph(x, 3))
    combine_graphs(knn_graph(x, 3), min_stability = 0.5)
  })
  flat <- matrix(1, 6, 20)
  flat[cbind(1:6, 1:6)] <- 2
  expect_messages(withr::with_seed(1, edge_stability(flat, 4, 20)))
})
