# Covariates of samples, with lm() as the reference.

test_that("correlations are those of lm()'s residuals", {
  x <- random_matrix(40, 31) + 7
  samples <- some_samples(31)
  x[11:20, ] <- x[11:20, ] + outer(1:10, samples$age)
  x[21:25, ] <- small_integers(5, 31)
  weights <- exp(normal_numbers(31, 43))
  for (formula in c(y ~ age, y ~ age + batch, y ~ batch * dose + treated)) {
    adjust <- formula[-2]
    for (metric in c("pearson", "spearman")) {
      for (w in list(NULL, weights)) {
        r <- residual_r(x, formula, samples, w, metric == "spearman")
        for (sign in fsknn:::metric_signs) {
          for (backend in backends_here()) {
            edges <- knn_graph(
              x, 39, metric, sign, weights = w, adjust = adjust,
              data = samples, backend = backend
            )
            expect_equal(
              edges$correlation, r[cbind(edges$from, edges$to)],
              tolerance = 1e-12
            )
          }
          of_r <- switch(
            sign, signed = 1 - r, absolute = 1 - abs(r), negative = 1 + r
          )
          expect_same_neighbours(
            knn_search(
              x, 5, metric, sign, weights = w, adjust = adjust, data = samples
            ),
            without_self(of_r), metric, tolerance = 1e-12
          )
        }
      }
    }
  }
})

test_that("a partial correlation by hand", {
  # The reference is r_ab.c = (r_ab - r_ac r_bc) / sqrt((1 - r_ac^2) (1 -
  # r_bc^2)).
  x <- rbind(c(1, 2, 4, 3, 5), c(2, 1, 3, 5, 4))
  age <- c(1, 3, 2, 5, 4)
  r <- function(a, b) stats::cor(a, b)
  ac <- r(x[1, ], age)
  bc <- r(x[2, ], age)
  expected <- (r(x[1, ], x[2, ]) - ac * bc) / sqrt((1 - ac^2) * (1 - bc^2))
  expect_equal(
    knn_graph(x, 1, adjust = age)$correlation, rep(expected, 2),
    tolerance = 1e-14
  )
})

test_that("adjusted answers are exactly the brute-force ones", {
  matrices <- hard_matrices()
  for (name in names(matrices)) {
    x <- matrices[[name]]
    samples <- some_samples(ncol(x))
    adjust <- if (ncol(x) > 6) ~ age + batch else ~ age
    weights <- exp(normal_numbers(ncol(x), 44))
    if (ncol(x) < 4) next
    for (metric in c("pearson", "spearman")) {
      design <- design_for(adjust, samples, metric == "spearman")
      found <- function(...) {
        knn_search(
          x, 7, metric, weights = weights, adjust = adjust, data = samples,
          constant = "isolate", ...
        )
      }
      first <- found(backend = "cpu")
      skip <- which(is.na(first$index[, 1]))
      expected <- brute_force(
        x, k = 7, metric = metric, skip = skip, weights = weights,
        adjust = design
      )
      label <- paste(name, metric)
      expect_same_bits(first, expected, label)
      expect_everywhere(found, expected, label)
    }
  }
})

test_that("covariates can be given in many ways", {
  x <- random_matrix(50, 23)
  samples <- some_samples(23)
  age <- samples$age
  batch <- samples$batch
  for (metric in c("pearson", "spearman")) {
    by <- function(...) knn_search(x, 4, metric, ...)
    expected <- by(adjust = ~ age, data = samples)
    expect_identical(by(adjust = age), expected)
    expect_identical(by(adjust = ~ age), expected)
    expect_identical(by(adjust = cbind(age)), expected)
    expect_identical(by(adjust = samples["age"]), expected)
    expect_identical(by(adjust = ~ 0 + age), expected)
    expect_identical(by(adjust = as.Date(age, "1970-01-01")), expected)
    expected <- by(adjust = ~ age + batch, data = samples)
    expect_identical(by(adjust = samples[c("age", "batch")]), expected)
    expect_identical(by(adjust = ~ ., data = samples[c(1, 3)]), expected)
    expect_identical(by(adjust = ~ samples$age + samples$batch), expected)
    samples$batch <- factor(batch, levels = c("a", "z", "b", "c", "y"))
    expect_identical(by(adjust = ~ age + batch, data = samples), expected)
    # The coding of factors does not matter.
    withr::with_options(
      list(contrasts = c("contr.sum", "contr.helmert")), {
        expect_identical(by(adjust = ~ age + batch, data = samples), expected)
        samples$batch <- factor(batch, ordered = TRUE)
        expect_identical(by(adjust = ~ age + batch, data = samples), expected)
      }
    )
    samples$batch <- batch
    twice <- cbind(0, age, age, 3, 2 * age - 7)
    expect_identical(by(adjust = twice), by(adjust = age))
  }
  # Variables of `data` take precedence.
  other <- data.frame(age = rev(age))
  expect_identical(
    knn_search(x, 4, adjust = ~ age, data = other),
    knn_search(x, 4, adjust = rev(age))
  )
})

test_that("covariates come from a container's own data", {
  skip_if_not_installed("Biobase")
  x <- random_matrix(30, 12)
  colnames(x) <- paste0("s", 1:12)
  rownames(x) <- paste0("g", 1:30)
  samples <- some_samples(12)
  rownames(samples) <- colnames(x)
  expected <- knn_graph(x, 4, adjust = ~ batch + age, data = samples)
  set <- Biobase::ExpressionSet(
    x, Biobase::AnnotatedDataFrame(samples),
    Biobase::AnnotatedDataFrame(
      data.frame(gc = normal_numbers(30, 45), row.names = rownames(x))
    )
  )
  expect_identical(knn_graph(set, 4, adjust = ~ batch + age), expected)
  gc <- Biobase::fData(set)$gc
  expect_identical(
    knn_search(set, 3, points = "columns", adjust = ~ gc),
    knn_search(t(x), 3, adjust = gc)
  )
  skip_if_not_installed("SummarizedExperiment")
  experiment <- SummarizedExperiment::SummarizedExperiment(
    x, colData = S4Vectors::DataFrame(
      age = samples$age, batch = S4Vectors::Rle(samples$batch)
    )
  )
  expect_identical(knn_graph(experiment, 4, adjust = ~ batch + age), expected)
  table <- SummarizedExperiment::colData(experiment)
  expect_identical(knn_graph(x, 4, adjust = ~ batch + age, data = table), expected)
  expect_identical(knn_graph(x, 4, adjust = table[2:1]), expected)
})

test_that("covariates that say nothing change nothing", {
  x <- random_matrix(50, 9)
  for (metric in c("pearson", "spearman")) {
    plain <- knn_graph(x, 5, metric)
    expect_identical(knn_graph(x, 5, metric, adjust = ~ 1), plain)
    expect_identical(knn_graph(x, 5, metric, adjust = rep(3, 9)), plain)
    expect_identical(knn_graph(x, 5, metric, adjust = factor(rep(1, 9))), plain)
    expect_identical(knn_graph(x, 5, metric, adjust = data.frame()), plain)
  }
  expect_null(attr(plain, "num_covariates"))
})

test_that("ranks are adjusted for ranks of numbers, and for factors", {
  x <- random_matrix(40, 17)
  samples <- some_samples(17)
  by <- function(...) knn_search(x, 4, "spearman", ...)
  # A monotone transformation of a covariate, or of a row, changes nothing.
  expect_identical(
    by(adjust = ~ log(dose), data = samples), by(adjust = samples$dose)
  )
  expect_identical(
    knn_search(exp(x), 4, "spearman", adjust = samples$age),
    by(adjust = samples$age)
  )
  expect_equal(
    design_for(~ age:treated, samples, ranked = TRUE)[, 1],
    rank(samples$age) * !samples$treated
  )
  expect_identical(
    design_for(~ batch, samples, ranked = TRUE), design_for(~ batch, samples)
  )
})

test_that("every verb takes covariates", {
  x <- random_matrix(60, 14)
  rownames(x) <- paste0("g", 1:60)
  query <- random_matrix(25, 14, seed = 2)
  samples <- some_samples(14)
  for (metric in c("pearson", "spearman")) {
    design <- design_for(~ batch + dose, samples, metric == "spearman")
    for (backend in backends_here()) {
      by <- function(verb, ...) {
        verb(
          ..., metric = metric, adjust = ~ batch + dose, data = samples,
          backend = backend
        )
      }
      for (q in list(query, query[1:3, ])) {
        expect_same_bits(
          by(knn_query, x, q, 5),
          brute_force(x, q, k = 5, metric = metric, adjust = design)
        )
      }
      edges <- by(knn_graph, x, 59)
      near <- by(nearest_to, x, "g9", 6)
      own <- edges[edges$from == "g9", ][1:6, ]
      expect_identical(near$name, own$to)
      expect_identical(near$distance, own$distance)
      expect_identical(near$correlation, own$correlation)
      some <- c(9, 3, 41)
      whole <- by(knn_search, x, 5)
      expect_identical(
        bare(by(knn_search, x, 5, subset = some)),
        lapply(bare(whole), function(part) part[some, ])
      )
      each <- by(knn_search, x, rep_len(c(5, 0, 2), 60))
      expect_identical(each$distance[[3]], whole$distance[3, 1:2])
      within <- by(within_search, x, 0.8)
      expect_identical(
        sort(unlist(within$distance, use.names = FALSE)),
        sort(edges$distance[edges$distance <= 0.8])
      )
      of_fourth <- by(knn_query, x, query, 60)$distance[4, ]
      expect_identical(
        by(within_query, x, query, 0.8)$distance[[4]],
        of_fourth[of_fourth <= 0.8]
      )
      pairs <- by(threshold_graph, x, 0.3)
      expect_equal(nrow(pairs), sum(edges$correlation >= 0.3) / 2)
      tree <- by(mst_knn, x)
      r <- residual_r(
        x, y ~ batch + dose, samples, ranked = metric == "spearman"
      )
      graph <- igraph::graph_from_adjacency_matrix(
        1 - r, "undirected", weighted = TRUE, diag = FALSE
      )
      expect_equal(
        sum(tree$tree$distance), sum(igraph::E(igraph::mst(graph))$weight)
      )
    }
  }
})

test_that("rows that the covariates explain are errors, or isolated", {
  x <- random_matrix(20, 12)
  samples <- some_samples(12)
  x[4, ] <- 1e-200 * (3 * samples$age + 2)
  x[9, ] <- (samples$batch == "a") * 1e200
  x[12, ] <- 7
  x[15, ] <- samples$age + 1e-9 * x[15, ]
  rownames(x) <- paste0("g", 1:20)
  expect_messages({
    knn_search(x[-12, ], 3, adjust = ~ age + batch, data = samples)
    knn_search(x, 3, adjust = ~ age + batch, data = samples)
    nearest_to(
      x, "g9", 3, adjust = ~ batch, data = samples, constant = "isolate"
    )
    knn_query(
      x[1:3, ], x[9, , drop = FALSE], 3, adjust = ~ batch, data = samples
    )
  })
  for (backend in backends_here()) {
    edges <- knn_graph(
      x, 3, adjust = ~ age + batch, data = samples, constant = "isolate",
      backend = backend
    )
    expect_identical(setdiff(rownames(x), edges$from), c("g4", "g9", "g12"))
    expect_false(any(edges$to %in% c("g4", "g9", "g12")))
  }
})

test_that("results say for how many covariates they are adjusted", {
  x <- random_matrix(30, 12)
  samples <- some_samples(12)
  adjusted <- function(verb, ...) {
    verb(x, ..., adjust = ~ age + batch, data = samples, backend = "cpu")
  }
  edges <- adjusted(knn_graph, 9)
  number <- function(edges) attr(edges, "num_covariates")
  expect_identical(number(edges), 3L)
  expect_identical(number(edges[edges$rank == 1, ]), 3L)
  expect_identical(number(undirected_edges(edges)), 3L)
  expect_identical(number(spanning_forest(edges)), 3L)
  expect_identical(number(mst_knn(edges)$tree), 3L)
  expect_identical(number(combine_graphs(edges, edges)), 3L)
  expect_null(number(combine_graphs(edges, knn_graph(x, 9))))
  expect_identical(number(adjusted(threshold_graph, 0.5)), 3L)
  expect_identical(number(adjusted(nearest_to, 3, 5)), 3L)
  tree <- adjusted(mst_knn)
  expect_identical(number(tree$edges), 3L)
  for (printed in list(edges, tree, undirected_edges(edges))) {
    expect_match(
      utils::capture.output(printed)[[1]], "adjusted for 3 covariates",
      fixed = TRUE
    )
  }
  adjusted(knn_graph, 9)
  expect_identical(knn_stats()$num_covariates, 3L)
  expect_true(any(grepl("adjusted for 3", format(knn_stats()))))
  suppressMessages(expect_message(
    adjusted(knn_search, 9, verbose = TRUE), "adjusted for 3 covariates"
  ))
  expect_no_match(
    utils::capture.output(knn_graph(x, 3))[[1]], "adjusted", fixed = TRUE
  )
})

test_that("one degree of freedom must be left, and is enough", {
  x <- random_matrix(20, 6)
  edges <- knn_graph(x, 19, adjust = random_matrix(6, 4, seed = 3))
  expect_equal(abs(edges$correlation), rep(1, 380), tolerance = 1e-12)
  expect_messages(knn_graph(x, 3, adjust = random_matrix(6, 5, seed = 3)))
})

test_that("wrong covariates are errors", {
  x <- random_matrix(20, 4)
  colnames(x) <- letters[1:4]
  samples <- data.frame(
    age = c(1, NA, 3, Inf), site = c("a", "b", NA, "a"), row.names = letters[1:4]
  )
  number <- 1:4 + 0
  expect_messages({
    knn_search(x, 3, "bicor", adjust = number)
    knn_search(x, 3, "euclidean", adjust = number)
    knn_search(x, 3, na = "pairwise", adjust = number)
    knn_search(x, 3, data = samples)
    knn_search(x, 3, adjust = number, data = samples)
    knn_search(x, 3, adjust = y ~ number)
    knn_search(x, 3, adjust = ~ nothing_of_that_name)
    knn_search(x, 3, adjust = ~ age + offset(age), data = samples)
    knn_search(x, 3, adjust = ~ age, data = 1:4)
    knn_search(x, 3, adjust = ~ age + site, data = samples)
    knn_search(x, 3, adjust = samples)
    knn_search(x, 3, adjust = 1:3)
    knn_search(x, 3, adjust = ~ age, data = samples[1:3, ])
    knn_search(x, 3, adjust = list(1, 2, 3, 4))
    knn_search(x, 3, adjust = "age")
    knn_search(x, 3, adjust = number * 1i)
    knn_search(x, 3, adjust = I(data.frame(a = I(list(1, 2, 3, 4)))))
    knn_graph(x, 3, adjust = ~ age, data = samples[4:1, ])
    FsknnParam("pearson", adjust = number)
    snn_graph(knn_search(x, 3), adjust = number)
  })
})
