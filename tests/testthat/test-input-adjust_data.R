# Covariates for all sources of rows.

test_that("a sample of weight 0 is no part of the fit", {
  x <- random_matrix(50, 13)
  samples <- some_samples(13)
  samples$age[[2]] <- NA
  x[, 7] <- 1e308
  samples$batch[[7]] <- "of its own"
  weights <- exp(normal_numbers(13, 46))
  weights[c(2, 7)] <- 0
  kept <- weights > 0
  blocks <- list(x)
  if (requireNamespace("DelayedArray", quietly = TRUE)) {
    blocks[[2]] <- DelayedArray::DelayedArray(x)
  }
  for (metric in c("pearson", "spearman")) {
    expected <- knn_search(
      x[, kept], 4, metric, weights = weights[kept], adjust = ~ age + batch,
      data = samples[kept, ]
    )
    for (values in blocks) {
      expect_identical(
        knn_search(
          values, 4, metric, weights = weights, adjust = ~ age + batch,
          data = samples, max_memory = 1e3
        ),
        expected
      )
    }
  }
})

test_that("what does not fit in memory is adjusted on its way to a file", {
  x <- random_matrix(150, 15)
  samples <- some_samples(15)
  x[9, ] <- 3 * samples$age - 2
  x[70, ] <- 5
  query <- random_matrix(30, 15, seed = 2)
  blocks <- block_matrices(x)
  for (metric in c("pearson", "spearman")) {
    by <- function(verb, x, ..., k = 4) {
      verb(
        x, ..., metric = metric, adjust = ~ age + batch, data = samples,
        constant = "isolate", max_memory = 1e4
      )
    }
    # test-input-blocks.R reads all kinds; ranks are of what has been read.
    kinds <- c("in memory", "square chunks", "big.matrix", "dgCMatrix")
    kinds <- if (is_long()) names(blocks) else intersect(kinds, names(blocks))
    if (metric == "spearman") {
      kinds <- kinds[1]
    }
    for (kind in kinds) {
      expect_identical(
        by(knn_graph, blocks[[kind]], 4), by(knn_graph, x, 4), label = kind
      )
    }
    expect_identical(
      by(knn_query, blocks[[1]], query, 4), by(knn_query, x, query, 4)
    )
    expect_identical(
      by(knn_query, blocks[[1]], query[1:2, ], 4),
      by(knn_query, x, query[1:2, ], 4)
    )
    expect_identical(
      by(within_search, blocks[[1]], 0.3), by(within_search, x, 0.3)
    )
    x_na <- x
    x_na[c(3, 77, 500)] <- NA
    expect_identical(
      by(knn_search, block_matrices(x_na)[[1]], 4, na = "mean"),
      by(knn_search, x_na, 4, na = "mean")
    )
  }
})

test_that("missing values are filled before rows are adjusted", {
  x <- random_matrix(40, 11)
  x[c(3, 77, 200)] <- NA
  samples <- some_samples(11)
  filled <- t(apply(x, 1, function(row) {
    row[is.na(row)] <- mean(row, na.rm = TRUE)
    row
  }))
  expect_equal(
    knn_graph(x, 39, na = "mean", adjust = ~ age, data = samples)$distance,
    knn_graph(filled, 39, adjust = ~ age, data = samples)$distance,
    tolerance = 1e-13
  )
  x[5, ] <- samples$age
  x[5, 4] <- NA
  found <- knn_search(
    x, 3, na = "mean", adjust = ~ age + I(seq_along(age) == 4), data = samples,
    constant = "isolate"
  )
  expect_identical(which(is.na(found$index[, 1])), 5L)
})

test_that("metafeatures are adjusted as they are made", {
  x <- random_matrix(9, 17)
  samples <- some_samples(17)
  # A covariate is the difference of two rows.
  x[7, ] <- x[2, ] + samples$age
  m <- metafeatures(x, c("-", "*"))
  for (metric in c("pearson", "spearman")) {
    design <- design_for(~ age + batch, samples, metric == "spearman")
    for (backend in backends_here()) {
      by <- function() {
        knn_search(
          m, 4, metric, adjust = ~ age + batch, data = samples,
          backend = backend
        )
      }
      expect_message(found <- by(), "1 that the covariates explain")
      expect_identical(attr(found, "left_out")$reason, "explained")
      skip <- attr(found, "left_out")$point
      expect_length(skip, 1)
      expected <- brute_force(
        as.matrix(m), k = 4, metric = metric, skip = skip, adjust = design
      )
      attr(found, "left_out") <- NULL
      expect_same_bits(found, expected)
    }
  }
})

test_that("held points are adjusted anew for other covariates and samples", {
  x <- random_matrix(80, 19)
  samples <- some_samples(19)
  resampled <- c(1:15, 3, 3, 7, 11)
  for (backend in backends_here()) {
    request <- function(formula, features = NULL) {
      options <- list(
        metric = list(name = "pearson"), sign = "signed", num_threads = 2L,
        chunk_size = 0L, backend = list(
          name = backend, devices = if (backend == "cuda") 1L else integer()
        ),
        adjust = if (!is.null(formula)) {
          design_for(formula, samples, samples = features)
        }
      )
      fsknn:::new_request(6L, options, feature_subset = features)
    }
    points <- fsknn:::hold_points(x, request(NULL))
    for (formula in c(~ age, ~ age, ~ age + batch)) {
      for (features in list(NULL, resampled)) {
        found <- fsknn:::in_core(
          fsknn:::ask_core(points, NULL, request(formula, features))
        )
        columns <- features %||% 1:19
        expect_identical(
          found$distance,
          knn_search(
            x[, columns], 6, adjust = formula, data = samples[columns, ],
            backend = backend
          )$distance
        )
      }
    }
    plain <- fsknn:::in_core(fsknn:::ask_core(points, NULL, request(NULL)))
    expect_identical(
      plain$distance, knn_search(x, 6, backend = backend)$distance
    )
    # These covariates are for other samples than those that count.
    wrong <- request(~ age)
    wrong$feature_subset <- 1:7
    expect_error(
      fsknn:::in_core(fsknn:::ask_core(points, NULL, wrong)),
      "a row for each feature"
    )
  }
})

test_that("splits and checkpoints keep to the covariates", {
  x <- random_matrix(90, 12)
  samples <- some_samples(12)
  folder <- withr::local_tempfile()
  withr::local_options(fsknn.split_size = 40)
  by <- function(...) {
    knn_search(x, 4, adjust = ~ age, data = samples, backend = "cpu", ...)
  }
  expected <- by()
  expect_identical(by(checkpoint = folder), expected)
  expect_identical(suppressMessages(by(checkpoint = folder)), expected)
  samples$age[[3]] <- samples$age[[3]] + 1
  expect_error(
    by(checkpoint = folder), "The values of `adjust` were others",
    class = "fsknn_checkpoint_error"
  )
})

test_that("what a formula computes is matched by its names", {
  x <- random_matrix(30, 14)
  dimnames(x) <- list(paste0("g", 1:30), paste0("S", 1:14))
  set.seed(3)
  age <- stats::setNames(rnorm(14), colnames(x))
  order <- sample(14)
  other <- list(age = age[order])
  made <- function() other$age
  right <- knn_graph(x, 2, adjust = ~ age)
  for (adjust in list(
    ~ other$age, ~ age[order], ~ with(other, age), ~ made(),
    ~ scale(age[order]), ~ I(2 * other$age)
  )) {
    expect_equal(knn_graph(x, 2, adjust = adjust), right)
  }
  expect_equal(
    knn_graph(x, 2, adjust = ~ poly(age[order], 2)),
    knn_graph(x, 2, adjust = ~ poly(age, 2))
  )
  # cut() drops the names.
  groups <- cut(age, 3)
  shuffled <- age[order]
  expect_equal(
    knn_graph(x, 2, adjust = ~ cut(shuffled, 3)),
    knn_graph(x, 2, adjust = ~ groups)
  )
  # Names of single columns in the data are not names of samples.
  data <- data.frame(age = unname(age))
  data$age <- stats::setNames(data$age, letters[1:14])
  expect_equal(knn_graph(x, 2, adjust = ~ age, data = data), right)
  expect_wrong(knn_graph(x, 2, adjust = ~ other$age[-1]), "no value: \"S")
})

test_that("text that takes all there is of the points is named", {
  x <- random_matrix(30, 14)
  data <- data.frame(id = paste0("p", 1:14), age = as.character(1:14))
  expect_error(
    knn_graph(x, 2, adjust = ~ id, data = data),
    "`id` is text or a factor with 14 levels.", fixed = TRUE
  )
  expect_error(
    knn_graph(x, 2, adjust = ~ age, data = data),
    "`age` is text or a factor with 14 levels, all of them numbers."
  )
})
