naive_connectivity <- function(r, power, type) {
  s <- switch(
    type, unsigned = abs(r), signed = (1 + r) / 2,
    "signed hybrid" = ifelse(r > 0, r, 0)
  )
  s[is.na(s)] <- 0
  diag(s) <- 0
  rowSums(s^power)
}

network_types <- c("unsigned", "signed", "signed hybrid")

test_that("connectivities are sums of powers over all pairs", {
  x <- random_matrix(90, 11, seed = 1)
  rownames(x) <- paste0("g", 1:90)
  powers <- c(1, 6, 2.5)
  for (metric in c("pearson", "spearman")) {
    r <- stats::cor(t(x), method = metric)
    for (type in network_types) {
      found <- pair_connectivity(x, powers, type, metric)
      expect_identical(dimnames(found$k), list(rownames(x), c("1", "6", "2.5")))
      for (p in 1:3) {
        expect_equal(
          found$k[, p], naive_connectivity(r, powers[[p]], type),
          tolerance = 1e-12
        )
      }
    }
  }
  one <- pair_connectivity(x, powers, num_threads = 1)
  expect_identical(pair_connectivity(x, powers, num_threads = 3), one)
  expect_identical(nrow(as.data.frame(one)), 270L)
})

test_that("missing values and isolated points are counted as they should", {
  x <- random_matrix(50, 9, seed = 2)
  x[withr::with_seed(2, sample(450, 90))] <- NA
  r <- suppressWarnings(stats::cor(t(x), use = "pairwise.complete.obs"))
  r[tcrossprod(!is.na(x)) < 4] <- NA
  found <- pair_connectivity(x, 4, na = "pairwise", min_pairs = 4)
  expect_equal(
    unname(found$k[, 1]), naive_connectivity(r, 4, "unsigned"),
    tolerance = 1e-12
  )
  x <- random_matrix(20, 5, seed = 3)
  x[7, ] <- 2
  found <- pair_connectivity(x, 2, constant = "isolate")
  expect_identical(which(is.na(found$k)), 7L)
  expect_identical(attr(soft_threshold(found), "num_points"), 19L)
})

test_that("the fit over all pairs is WGCNA's", {
  skip_if_not_installed("WGCNA")
  base <- random_matrix(5, 25, seed = 4)
  x <- base[rep(1:5, c(40, 30, 20, 10, 20)), ] * rep_len(c(1, 1, -1), 120) +
    random_matrix(120, 25, seed = 5)
  powers <- c(1, 2, 4, 6, 12)
  for (type in if (is_long()) network_types else "signed hybrid") {
    # WGCNA warns that it uses no workers.
    suppressWarnings(utils::capture.output(
      theirs <- WGCNA::pickSoftThreshold(
        t(x), powerVector = powers, networkType = type
      )$fitIndices
    ))
    ours <- soft_threshold(pair_connectivity(x, powers, type))
    expect_equal(
      unname(as.matrix(as.data.frame(ours))), unname(as.matrix(theirs)),
      tolerance = 1e-6
    )
  }
})

test_that("connectivities print, and wrong input is told of", {
  x <- random_matrix(12, 6, seed = 6)
  found <- pair_connectivity(x, c(1, 2))
  expect_snapshot(format(found))
  expect_messages({
    pair_connectivity(x, 0.5)
    pair_connectivity(x, 2, "any")
    pair_connectivity(x, 2, metric = "euclidean")
    pair_connectivity(x, 2, sign = "absolute")
    soft_threshold(found, 2)
    soft_threshold(found, type = "signed")
  })
})
