# Rows adjusted for covariates, as a GPU prepares them.

# Returns the prepared rows, from which distances are computed.
adjusted_on <- function(backend, x, metric, adjust, weights = NULL,
                        ids = NULL) {
  options <- list(
    metric = list(name = metric), sign = "signed", num_threads = 3L,
    chunk_size = 0L, weights = weights, adjust = adjust,
    backend = list(name = backend, devices = integer())
  )
  fsknn:::cpp_prepared(x, ids, fsknn:::new_request(1L, options))$rows
}

covariates_of_size <- function(num_features, count) {
  covariates <- random_matrix(num_features, count, seed = count)
  covariates[, 1] <- rep_len(0:2, num_features)
  covariates
}

test_that("a GPU adjusts rows as the CPU does, of any shape and type", {
  skip_if_no_cuda()
  for (d in c(7, 8, 9, 31, 295, 1025, 2049)) {
    x <- random_matrix(40, d, seed = d) * 10^seq(-300, 290, length.out = 40)
    # The offset is small enough that covariates do not explain this row, since
    # explained rows are not prepared.
    x[5, ] <- 1e3 + x[20, ] / max(abs(x[20, ]))
    whole <- small_integers(40, d, largest = 50)
    storage.mode(whole) <- "integer"
    weights <- 2^seq(-20, 20, length.out = d)
    for (count in unique(pmin(c(1, 2, 3, 4, 7, 40), d - 3))) {
      adjust <- covariates_of_size(d, count)
      for (metric in c("pearson", "spearman")) {
        for (w in list(NULL, weights)) {
          for (values in list(x, whole)) {
            expect_identical(
              adjusted_on("cuda", values, metric, adjust, w),
              adjusted_on("cpu", values, metric, adjust, w),
              label = paste(metric, d, count, is.null(w), typeof(values))
            )
          }
        }
      }
      expect_identical(
        adjusted_on("cuda", x, "pearson", adjust, ids = c(1L, 40L, 3L)),
        adjusted_on("cpu", x, "pearson", adjust, ids = c(1L, 40L, 3L))
      )
    }
  }
})

test_that("a GPU adjusts points that come in pieces, and those of many GPUs", {
  skip_if_no_cuda()
  x <- random_matrix(4500, 24, seed = 71)
  query <- random_matrix(300, 24, seed = 72)
  adjust <- covariates_of_size(24, 6)
  for (metric in c("pearson", "spearman")) {
    by <- function(verb, ...) {
      verb(..., metric = metric, adjust = adjust)
    }
    expected <- by(knn_search, x, 10, backend = "cpu")
    expect_identical(by(knn_search, x, 10, backend = "cuda"), expected)
    for (limit in c(16e6, 9e6)) {
      expect_identical(
        by(
          knn_search, x, 10, backend = "cuda", devices = 1,
          max_device_memory = limit
        ),
        expected
      )
      expect_true(knn_stats()$streamed)
      expect_lte(knn_stats()$bytes_device, limit)
    }
    expect_identical(
      by(knn_query, x, query, 10, backend = "cuda"),
      by(knn_query, x, query, 10, backend = "cpu")
    )
    expect_identical(
      by(nearest_to, x, 17, 10, backend = "cuda"),
      by(nearest_to, x, 17, 10, backend = "cpu")
    )
    far <- stats::quantile(expected$distance, 0.2)
    expect_identical(
      by(within_search, x, far, backend = "cuda"),
      by(within_search, x, far, backend = "cpu")
    )
  }
})
