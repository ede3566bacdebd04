# Makes modules of different sizes, some larger than the number of samples.
module_data <- function(sizes = c(30, 12, 5), num_samples = 18, seed = 3) {
  of <- rep(seq_along(sizes), sizes)
  base <- random_matrix(length(sizes), num_samples, seed)
  x <- base[of, ] * rep_len(c(1, 1, -1), length(of)) +
    0.8 * random_matrix(length(of), num_samples, seed + 1)
  x <- 3 * x + 100
  rownames(x) <- paste0("g", seq_along(of))
  list(x = x, of = of, base = base)
}

# Uses R's own decomposition of the values of scale().
naive_eigengene <- function(rows) {
  z <- scale(t(rows))
  v <- svd(z, nu = 1, nv = 0)$u[, 1]
  v <- v * sign(stats::cor(v, rowMeans(z)))
  d <- svd(z)$d
  list(
    vector = v, explained = d[[1]]^2 / sum(d^2),
    kme = as.vector(stats::cor(z, v))
  )
}

test_that("eigengenes, hubs and what is explained are by definition", {
  data <- module_data()
  found <- module_summary(data$of, data$x)
  for (module in 1:3) {
    at <- which(data$of == module)
    expected <- naive_eigengene(data$x[at, ])
    expect_equal(found$eigengenes[module, ], expected$vector, tolerance = 1e-10)
    expect_equal(
      found$modules$variance_explained[[module]], expected$explained,
      tolerance = 1e-10
    )
    own <- found$points[found$points$module == module, ]
    expect_identical(own$point, rownames(data$x)[at])
    expect_equal(own$kme, expected$kme, tolerance = 1e-10)
    expect_equal(own$rank, rank(-abs(expected$kme)))
    expect_identical(
      found$modules$hub[[module]], own$point[which.max(abs(own$kme))]
    )
  }
  expect_identical(found$modules$size, c(30L, 12L, 5L))
  expect_identical(rownames(found$eigengenes), paste0("ME", 1:3))
  expect_null(found$outcomes)
  # The unit of a row does not matter, even if it is far from 1.
  far <- data$x * rep_len(c(1e-300, 1, 1e305), nrow(data$x))
  expect_equal(module_summary(data$of, far), found, tolerance = 1e-9)
})

test_that("they are WGCNA's", {
  skip_if_not_installed("WGCNA")
  data <- module_data()
  colors <- c("turquoise", "blue", "brown")[data$of]
  theirs <- WGCNA::moduleEigengenes(t(data$x), colors)
  found <- module_summary(colors, data$x)
  expect_identical(rownames(found$eigengenes), names(theirs$eigengenes))
  expect_equal(
    unname(t(found$eigengenes)), unname(as.matrix(theirs$eigengenes)),
    tolerance = 1e-10
  )
  expect_equal(
    found$modules$variance_explained,
    as.vector(unlist(theirs$varExplained)), tolerance = 1e-10
  )
  kme <- WGCNA::signedKME(t(data$x), theirs$eigengenes)
  at <- cbind(
    match(found$points$point, rownames(data$x)),
    match(paste0("kME", found$points$module), names(kme))
  )
  expect_equal(found$points$kme, as.matrix(kme)[at], tolerance = 1e-10)
})

test_that("clusters come in every shape, and small ones are left out", {
  data <- module_data()
  expected <- module_summary(data$of, data$x)
  expect_identical(module_summary(factor(data$of), data$x), expected)
  graph <- igraph::make_full_graph(nrow(data$x))
  igraph::V(graph)$name <- rownames(data$x)
  communities <- igraph::make_clusters(graph, data$of)
  expect_identical(module_summary(communities, data$x), expected)
  clusters <- mst_knn(data$x, sign = "absolute", k = 1)
  found <- module_summary(clusters, data$x)
  kept <- which(clusters$sizes >= 3)
  expect_identical(found$modules$module, kept)
  expect_identical(found$modules$size, clusters$sizes[kept])
  expect_identical(
    nrow(module_summary(clusters, data$x, min_size = 1)$modules),
    length(clusters$sizes)
  )
  some <- replace(data$of, data$of == 2, NA)
  expect_identical(module_summary(some, data$x)$modules$module, c(1L, 3L))
  one <- module_summary(rep(1, 47), data$x, min_size = 1)
  expect_identical(nrow(one$modules), 1L)
  single <- module_summary(1:47, data$x, min_size = 1)
  expect_equal(single$points$kme, rep(1, 47))
  skip_if_not_installed("Biobase")
  expect_identical(
    module_summary(data$of, Biobase::ExpressionSet(data$x))$modules,
    expected$modules
  )
})

test_that("outcomes are correlated as by cor.test(), of every kind", {
  data <- module_data()
  y <- data$base[1, ] + random_matrix(1, 18, seed = 9)[1, ]
  class <- factor(rep(c("low", "high"), 9), c("low", "high"))
  outcomes <- list(y = y, class = class)
  has_survival <- requireNamespace("survival", quietly = TRUE)
  if (has_survival) {
    time <- survival::Surv(exp(-y), rep(c(1, 1, 0), 6))
    outcomes$time <- time
  }
  found <- module_summary(data$of, data$x, outcomes)
  table <- found$outcomes
  expect_identical(nrow(table), 3L * length(outcomes))
  numbers <- list(y = y, class = as.double(class == "high"))
  if (has_survival) {
    numbers$time <- stats::residuals(
      survival::coxph(time ~ 1), type = "martingale"
    )
  }
  for (row in seq_len(nrow(table))) {
    test <- stats::cor.test(
      found$eigengenes[paste0("ME", table$module[[row]]), ],
      numbers[[table$outcome[[row]]]]
    )
    expect_equal(table$correlation[[row]], unname(test$estimate))
    if (table$outcome[[row]] == "class") {
      test <- stats::t.test(
        found$eigengenes[paste0("ME", table$module[[row]]), ] ~ class,
        # The prior of these modules has infinite degrees of freedom.
        var.equal = TRUE
      )
      expect_equal(table$statistic[[row]], -unname(test$statistic))
    }
    expect_equal(table$p_value[[row]], test$p.value)
  }
  of_y <- table[table$outcome == "y", ]
  expect_false(is.unsorted(of_y$p_value))
  expect_equal(of_y$fdr, stats::p.adjust(of_y$p_value, "BH"))
  expect_null(table$p_adjusted)
  alone <- module_summary(data$of, data$x, y)$outcomes
  of_y$statistic <- NULL
  expect_equal(alone[-1], of_y[-1], ignore_attr = "row.names")
  expect_identical(unique(alone$outcome), "outcome")
  # One module is a family of one test.
  one <- module_summary(rep(1, 47), data$x, y, permutations = 19)$outcomes
  expect_identical(nrow(one), 1L)
  expect_identical(one$fdr, one$p_value)
  ranked <- module_summary(data$of, data$x, y, metric = "spearman")$outcomes
  expect_equal(
    ranked$p_value[[1]],
    correlation_p_value(
      ranked$correlation[[1]], 18, 0, "spearman", "two.sided"
    )
  )
})

test_that("covariates are taken out of eigengenes and outcomes", {
  data <- module_data()
  y <- data$base[1, ] + random_matrix(1, 18, seed = 9)[1, ]
  table <- data.frame(age = 1:18, batch = rep(c("a", "b", "c"), 6))
  found <- module_summary(
    data$of, data$x, y, adjust = ~ age + batch, data = table
  )
  for (row in 1:3) {
    eigengene <- found$eigengenes[found$outcomes$module[[row]], ]
    fit <- summary(stats::lm(y ~ eigengene + age + batch, table))$coefficients
    expect_equal(found$outcomes$p_value[[row]], fit["eigengene", "Pr(>|t|)"])
  }
  expect_identical(found$eigengenes, module_summary(data$of, data$x)$eigengenes)
})

test_that("strata and covariates are those of nearest_to()", {
  data <- module_data()
  strata <- rep_len(c("a", "b", "c"), 18)
  y <- data$base[1, ] + random_matrix(1, 18, seed = 9)[1, ] + (strata == "a")
  age <- (1:18)^2 + 30 * (strata == "b")
  found <- withr::with_seed(2, module_summary(
    data$of, data$x, y, permutations = 60, adjust = age, strata = strata
  ))
  expected <- withr::with_seed(2, nearest_to(
    found$eigengenes, outcome = y, k = 3, sign = "absolute",
    permutations = 60, adjust = data.frame(age, strata), strata = strata
  ))
  columns <- c("correlation", "p_value", "p_adjusted", "fdr")
  expect_identical(found$outcomes$module, expected$index)
  expect_equal(
    as.list(found$outcomes[columns]), as.list(expected[columns])
  )
})

test_that("permutations of the outcome are family-wise over modules", {
  data <- module_data()
  y <- data$base[1, ] + 2 * random_matrix(1, 18, seed = 9)[1, ]
  strata <- rep_len(c("a", "b"), 18)
  for (groups in list(NULL, strata)) {
    set.seed(2)
    found <- module_summary(
      data$of, data$x, y, permutations = 60, strata = groups
    )
    set.seed(2)
    drawn <- draw_permutations(18, 60, groups)
    r <- abs(stats::cor(t(found$eigengenes), cbind(y, apply(
      drawn, 2, function(order) y[order]
    ))))
    order <- order(r[, 1], decreasing = TRUE)
    step_down <- cummax(vapply(seq_along(order), function(at) {
      left <- r[order[at:3], -1, drop = FALSE]
      permutation_p(sum(apply(left, 2, max) >= r[order[[at]], 1]), 60)
    }, 0))
    expect_identical(found$outcomes$module, order)
    expect_equal(found$outcomes$p_adjusted, step_down)
  }
})

test_that("missing values and constant rows are said, filled or left out", {
  data <- module_data()
  x <- data$x
  x[2, 3] <- NA
  filled <- x
  filled[2, 3] <- mean(x[2, -3])
  expect_equal(
    module_summary(data$of, x, na = "mean"),
    module_summary(data$of, filled), tolerance = 1e-12
  )
  flat <- data$x
  flat[31, ] <- 5
  without <- module_summary(data$of[-31], data$x[-31, ])
  expect_equal(module_summary(data$of, flat, constant = "isolate"), without)
  expect_messages({
    module_summary(data$of, x)
    module_summary(data$of, x, na = "pairwise")
    module_summary(data$of, flat)
    module_summary(data$of[-1], data$x)
    module_summary(list(1), data$x)
    module_summary(data$of, data$x, min_size = 50)
    module_summary(data$of, data$x, metric = "euclidean")
    module_summary(data$of, data$x, letters[1:18])
    module_summary(data$of, data$x, 1:18, strata = rep(1, 18))
    module_summary(data$of, metafeatures(data$x[1:10, ]))
  })
})

test_that("nothing of points x points is made", {
  skip_on_cran()
  x <- matrix(sin(seq_len(30000 * 12)^1.1), 30000)
  expect_lt(cpu_seconds(module_summary(rep(1, 30000), x)), 10)
})

test_that("modules are printed, tabled and drawn", {
  data <- module_data()
  found <- module_summary(data$of, data$x)
  expect_snapshot(found)
  expect_identical(as.data.frame(found), found$modules)
  expect_identical(as.data.frame(found, what = "points"), found$points)
  expect_messages(as.data.frame(found, what = "outcomes"))
  set.seed(1)
  tested <- module_summary(
    data$of, data$x, data.frame(one = data$base[1, ], two = 1:18),
    permutations = 30
  )
  expect_identical(as.data.frame(tested, what = "outcomes"), tested$outcomes)
  expect_output(print(tested), "2 outcomes: one, two \\(30 permutations\\)")
  expect_output(print(tested, n = 2), "and 1 more module")
  skip_if_not_installed("ggplot2")
  expect_no_error(ggplot2::ggplotGrob(plot(found, n = 2)))
  expect_identical(nrow(plot(tested)$data), 6L)
  expect_no_error(ggplot2::ggplotGrob(plot(tested)))
})

test_that("a summary of modules is what prints of them", {
  data <- module_data()
  found <- module_summary(data$of, data$x, backend = "cpu")
  expect_s3_class(summary(found), "fsknn_modules")
  expect_identical(summary(found), found)
  expect_wrong(summary(found, 3))
})

test_that("errors about outcomes name the verb that was called", {
  data <- module_data()
  calls <- list(
    quote(module_summary(data$of, data$x, 1:3)),
    quote(module_summary(data$of, data$x, rep(1, 18))),
    quote(module_summary(data$of, data$x, list(a = letters[1:18]))),
    quote(module_summary(data$of, data$x, 1:18, adjust = 1:18)),
    quote(module_summary(data$of, data$x, 1:18, adjust = 1:3)),
    quote(module_summary(data$of, data$x, 1:18, adjust = ~ nothing))
  )
  for (one in calls) {
    err <- expect_wrong(eval(one))
    expect_identical(as.list(err$call)[[1]], quote(module_summary))
  }
})
