# Imputation compared with impute.knn(), and with a naive reference that
# processes each row by itself.

# Makes correlated rows, so that neighbours matter.
data_with_holes <- function(n, d, share = 0.05, seed = 1) {
  x <- withr::with_seed(seed, {
    matrix(rnorm(n * 3), n) %*% matrix(rnorm(3 * d), 3) +
      0.5 * matrix(rnorm(n * d), n)
  })
  with_holes(x, share, seed + 1)
}

# Reads the table of imputed values where the help page says it is.
imputed_of <- function(x) {
  if (inherits(x, "ExpressionSet")) {
    Biobase::preproc(Biobase::experimentData(x))$imputed
  } else if (inherits(x, c("SummarizedExperiment", "DataFrame"))) {
    S4Vectors::metadata(x)$imputed
  } else if (inherits(x, c("EList", "EListRaw", "DGEList"))) {
    x$imputed
  } else {
    attr(x, "imputed")
  }
}

quiet_means <- function(code) {
  suppressMessages(code, classes = "fsknn_column_means")
}

# Imputes entry by entry, as knn_impute() documents.
naive_impute <- function(x, k, metric = "euclidean", available = FALSE,
                         by_distance = FALSE, row_max = 0.5) {
  known <- rowSums(is.na(x)) <= trunc(row_max * ncol(x)) &
    rowSums(!is.na(x)) > 0
  means <- colMeans(x[known, , drop = FALSE], na.rm = TRUE)
  filled <- x
  spread <- donors <- matrix(NA_real_, nrow(x), ncol(x))
  for (i in which(rowSums(is.na(x)) > 0)) {
    others <- setdiff(which(known), i)
    both <- function(j) !is.na(x[i, ]) & !is.na(x[j, ])
    distance <- vapply(others, function(j) {
      at <- both(j)
      a <- x[i, at]
      b <- x[j, at]
      switch(
        metric,
        euclidean = sqrt(ncol(x) * mean((a - b)^2)),
        manhattan = ncol(x) * mean(abs(a - b)),
        pearson = 1 - stats::cor(a, b)
      )
    }, 0)
    near <- others[order(distance)]
    distance <- sort(distance)
    for (f in which(is.na(x[i, ]))) {
      if (!known[i]) {
        filled[i, f] <- means[f]
        next
      }
      use <- seq_along(near)
      if (available) {
        use <- use[!is.na(x[near, f])]
      }
      use <- use[seq_len(min(k, length(use)))]
      use <- use[!is.na(x[near[use], f])]
      value <- vapply(near[use], function(j) {
        if (metric != "pearson") {
          return(x[j, f])
        }
        at <- both(j)
        (x[j, f] - mean(x[j, at])) * stats::sd(x[i, at]) /
          stats::sd(x[j, at]) + mean(x[i, at])
      }, 0)
      weight <- if (by_distance) 1 / distance[use] else rep(1, length(use))
      donors[i, f] <- length(use)
      filled[i, f] <- if (length(use) == 0) {
        means[f]
      } else {
        sum(weight * value) / sum(weight)
      }
      if (length(use) > 1) {
        spread[i, f] <- sqrt(
          sum(weight * (value - filled[i, f])^2) / sum(weight) *
            length(use) / (length(use) - 1)
        )
      }
    }
  }
  list(values = filled, sd = spread, donors = donors)
}

plain <- function(filled) {
  attr(filled, "imputed") <- NULL
  filled
}

test_that("values are those of impute.knn() without blocks", {
  skip_if_not_installed("impute")
  of_impute <- function(x, k, ...) {
    suppressWarnings(impute::impute.knn(x, k, maxp = nrow(x), ...)$data)
  }
  x <- data_with_holes(300, 24, 0.06)
  # impute 1.72 takes the first value as 0 in the mean of the first column.
  x[1, ] <- c(0, random_matrix(1, 23))
  x[7, 1:15] <- NA   # above row_max
  x[11, ] <- NA
  x[20:120, 3] <- NA # some entries have no donor
  x[150:250, 3] <- NA
  for (backend in backends_here()) {
    for (k in c(1, 5, 10)) {
      expect_equal(
        plain(quiet_means(knn_impute(x, k, backend = backend))),
        of_impute(x, k), tolerance = 1e-12
      )
    }
    expect_equal(
      plain(quiet_means(
        knn_impute(x, 10, row_max = 0.1, col_max = 0.9, backend = backend)
      )),
      of_impute(x, 10, rowmax = 0.1, colmax = 0.9), tolerance = 1e-12
    )
  }
  complete <- x[rowSums(is.na(x)) < 2, ]
  dimnames(complete) <- list(seq_len(nrow(complete)), letters[1:24])
  expect_equal(
    plain(knn_impute(complete, 10)), of_impute(complete, 10), tolerance = 1e-12
  )
})

test_that("metrics, donors and weighting do what the help says", {
  x <- data_with_holes(90, 14, 0.1)
  x[1:40, 2] <- NA
  x[3, 1:9] <- NA
  for (metric in c("euclidean", "manhattan", "pearson")) {
    for (donors in c("nearest", "available")) {
      for (weighting in c("equal", "distance")) {
        expected <- naive_impute(
          x, 6, metric, donors == "available", weighting == "distance"
        )
        for (backend in backends_here()) {
          filled <- quiet_means(knn_impute(
            x, 6, metric, donors = donors, weighting = weighting,
            backend = backend
          ))
          expect_equal(plain(filled), expected$values, tolerance = 1e-9)
          table <- imputed_of(filled)
          at <- cbind(table$row, table$column)
          expect_identical(which(is.na(x)), which(is.na(x))[order(
            (table$column - 1) * 90 + table$row
          )])
          expect_identical(table$value, plain(filled)[at])
          given <- !is.na(expected$donors[at])
          expect_equal(table$donors[given], expected$donors[at][given])
          expect_equal(table$sd, expected$sd[at], tolerance = 1e-6)
        }
      }
    }
  }
})

test_that("values of any size are filled in alike", {
  x <- data_with_holes(60, 12, 0.05)
  for (metric in c("euclidean", "pearson")) {
    filled <- plain(knn_impute(x, 4, metric))
    for (times in 2^c(-600, 600)) {
      expect_identical(plain(knn_impute(x * times, 4, metric)), filled * times)
    }
  }
})

test_that("k donors are found wherever k rows have the entry", {
  x <- data_with_holes(200, 10, 0.02)
  x[1:192, 4] <- NA # eight have it
  for (k in c(3, 8)) {
    filled <- knn_impute(x, k, donors = "available", col_max = 1)
    table <- imputed_of(filled)
    expect_true(all(table$donors == k))
    expect_equal(
      plain(filled), naive_impute(x, k, available = TRUE)$values,
      tolerance = 1e-12
    )
  }
  # If there are fewer, all are used.
  table <- imputed_of(knn_impute(x, 9, donors = "available", col_max = 1))
  expect_identical(unique(table$donors[table$column == 4]), 8L)
})

test_that("a donor at distance 0 alone counts under weighting by distance", {
  x <- rbind(c(1, 2, 3, NA), c(1, 2, 3, 10), c(1, 2, 3, 12), c(2, 2, 3, 99))
  filled <- knn_impute(x, 3, weighting = "distance")
  expect_identical(filled[1, 4], 11)
  expect_identical(imputed_of(filled)$donors, 2L)
  expect_identical(knn_impute(x, 3)[1, 4], 121 / 3)
})

test_that("answers do not depend on threads, backend or chunks, and values stay", {
  x <- data_with_holes(400, 30, 0.08)
  one <- knn_impute(x, 7, num_threads = 1, backend = "cpu")
  for (backend in backends_here()) {
    expect_identical(knn_impute(x, 7, num_threads = 2, backend = backend), one)
    expect_identical(knn_impute(x, 7, chunk_size = 48, backend = backend), one)
  }
  there <- !is.na(x)
  expect_identical(plain(one)[there], x[there])
  expect_false(anyNA(one))
  complete <- one[, ]
  same <- knn_impute(complete, 7)
  expect_identical(plain(same), complete)
  expect_identical(nrow(imputed_of(same)), 0L)
})

test_that("columns can be the points", {
  x <- data_with_holes(60, 20, 0.05)
  dimnames(x) <- list(paste0("r", 1:60), letters[1:20])
  turned <- knn_impute(t(x), 5, points = "columns")
  rows <- knn_impute(x, 5)
  expect_identical(plain(turned), t(plain(rows)))
  table <- imputed_of(turned)
  expect_identical(table$value, plain(turned)[cbind(table$row, table$column)])
  expect_identical(
    sort((table$column - 1) * 20 + table$row), sort(which(is.na(t(x))) + 0)
  )
})

# Expects the table of a matrix, with the assay in a last column.
expect_imputed <- function(filled, table, assay) {
  table$assay <- rep(assay, nrow(table))
  expect_identical(imputed_of(filled), table)
}

test_that("the table of imputed values has the names of the sides", {
  x <- data_with_holes(60, 8, 0.05)
  bare <- imputed_of(knn_impute(x, 4))
  expect_named(bare, c("row", "column", "value", "sd", "donors"))
  expect_named(
    imputed_of(knn_impute(as.data.frame(x), 4)),
    c("row", "column", "column_name", "value", "sd", "donors")
  )
  dimnames(x) <- list(paste0("g", 1:60), letters[1:8])
  turned <- knn_impute(t(x), 4, points = "columns")
  for (filled in list(knn_impute(x, 4), turned)) {
    table <- imputed_of(filled)
    backwards <- filled[rev(seq_len(nrow(filled))), rev(seq_len(ncol(filled)))]
    at <- cbind(table$row_name, table$column_name)
    expect_identical(backwards[at], table$value)
  }
})

test_that("a part of the table is printed as a part", {
  x <- data_with_holes(60, 8, 0.05)
  table <- imputed_of(knn_impute(x, 4))
  expect_messages({
    head(table, 3)
    table[table$row == table$row[[1]], ]
    rbind(table, table)[1:3, c("row", "value")]
  })
  expect_null(attr(as.data.frame(table), "total"))
  expect_identical(names(cbind(table, a = 1))[6], "a")
})

test_that("what comes as a container goes as one", {
  x <- data_with_holes(60, 8, 0.05)
  dimnames(x) <- list(paste0("g", 1:60), letters[1:8])
  expected <- knn_impute(x, 4)
  table <- imputed_of(expected)
  frame <- knn_impute(as.data.frame(x), 4)
  expect_s3_class(frame, "data.frame")
  expect_identical(as.matrix(frame), plain(expected))
  expect_identical(imputed_of(frame), table)
  whole <- with_holes(matrix(1:200, 20), 0.05)
  storage.mode(whole) <- "integer"
  expect_type(knn_impute(whole, 2), "double")
  if (requireNamespace("Biobase", quietly = TRUE)) {
    set <- Biobase::ExpressionSet(x)
    filled <- knn_impute(set, 4)
    expect_identical(Biobase::exprs(filled), plain(expected))
    expect_imputed(filled, table, "exprs")
    both <- knn_impute(filled, 4, into = "imputed")
    expect_identical(unique(imputed_of(both)$assay), "exprs")
    beside <- knn_impute(set, 4, into = "imputed")
    expect_identical(Biobase::exprs(beside), x)
    expect_identical(
      Biobase::assayDataElement(beside, "imputed"), plain(expected)
    )
    expect_true(methods::validObject(beside))
  }
  if (requireNamespace("SummarizedExperiment", quietly = TRUE)) {
    set <- SummarizedExperiment::SummarizedExperiment(list(a = x * 2, b = x))
    filled <- knn_impute(set, 4, assay = "b")
    expect_identical(SummarizedExperiment::assayNames(filled), c("a", "b"))
    expect_identical(SummarizedExperiment::assay(filled, "b"), plain(expected))
    expect_identical(SummarizedExperiment::assay(filled, "a"), x * 2)
    expect_imputed(filled, table, "b")
    both <- imputed_of(knn_impute(filled, 4, assay = "a"))
    expect_identical(nrow(both), 2L * nrow(table))
    expect_identical(both$assay, rep(c("b", "a"), each = nrow(table)))
    expect_identical(both$value, c(table$value, table$value * 2))
    expect_output(print(both), paste(nrow(both), "values filled in, in"))
    again <- imputed_of(knn_impute(filled, 4, assay = "b"))
    expect_identical(nrow(again), 0L)
    nameless <- SummarizedExperiment::SummarizedExperiment(unname(x))
    expect_identical(unique(imputed_of(knn_impute(nameless, 4))$assay), "1")
    beside <- knn_impute(set, 4, assay = "b", into = "c")
    expect_identical(SummarizedExperiment::assay(beside, "c"), plain(expected))
    turned <- knn_impute(set, 2, assay = "b", points = "columns")
    expect_identical(
      SummarizedExperiment::assay(turned, "b"),
      plain(knn_impute(x, 2, points = "columns"))
    )
  }
  if (requireNamespace("limma", quietly = TRUE)) {
    list <- methods::new("EList", list(E = x))
    filled <- knn_impute(list, 4)
    expect_identical(filled$E, plain(expected))
    expect_imputed(filled, table, "E")
    expect_messages(knn_impute(list, 4, into = "imputed"))
    genes <- data.frame(name = rownames(x))
    list <- methods::new("EList", list(genes = genes, E = x))
    second <- knn_impute(list, 4, assay = 1)
    expect_identical(second$E, plain(expected))
    expect_identical(second$genes, genes)
  }
  if (requireNamespace("DelayedArray", quietly = TRUE)) {
    lazy <- DelayedArray::DelayedArray(x)
    expect_identical(plain(as.matrix(knn_impute(lazy, 4))), plain(expected))
    expect_wrong(knn_impute(lazy, 4, max_memory = 100))
  }
})

test_that("splits and a folder change nothing", {
  x <- data_with_holes(120, 12, 0.1)
  expected <- knn_impute(x, 5)
  folder <- withr::local_tempfile()
  for (time in 1:2) {
    expect_identical(
      suppressMessages(knn_impute(x, 5, checkpoint = folder)), expected
    )
  }
})

test_that("what column means fill is counted", {
  x <- data_with_holes(40, 12, 0.02)
  x[2, 1:9] <- NA
  x[3, ] <- NA
  x[5:30, 2] <- NA
  expect_messages({
    filled <- knn_impute(x, 2)
    filled <- knn_impute(x[-(2:3), ], 1, col_max = 0.9)
    imputed_of(filled)
  })
  table <- imputed_of(quiet_means(knn_impute(x, 2)))
  expect_true(all(table$donors[table$row %in% 2:3] == 0))
  expect_identical(is.na(table$sd), table$donors < 2)
  expect_false(any(is.nan(table$sd)))
  # Constant rows have no neighbours under a correlation.
  x <- data_with_holes(40, 12, 0)
  x[4, ] <- 1
  x[4, 2] <- NA
  filled <- quiet_means(knn_impute(x, 3, "pearson"))
  expect_identical(filled[4, 2], mean(x[, 2], na.rm = TRUE))
})

test_that("an infinite value is an error wherever it is", {
  x <- data_with_holes(20, 8, 0.05)
  complete <- random_matrix(20, 8)
  few_left <- x
  few_left[3, 1:6] <- NA # above row_max
  for (value in c(Inf, -Inf)) {
    cases <- list(
      replace(complete, 5, value), replace(x, which(!is.na(x))[4], value),
      replace(few_left, cbind(3, 7), value)
    )
    for (bad in cases) {
      for (metric in c("euclidean", "manhattan", "pearson")) {
        expect_error(
          knn_impute(bad, 2, metric), "finite numbers only",
          class = "fsknn_finite_error"
        )
      }
      expect_error(knn_impute_error(bad, k = 1:2), class = "fsknn_finite_error")
    }
  }
})

test_that("a mean of large values is none of infinity", {
  x <- random_matrix(20, 10)
  x[, 3] <- 4e307
  x[5, 3] <- NA
  for (metric in c("euclidean", "manhattan")) {
    for (weighting in c("equal", "distance")) {
      filled <- knn_impute(x, 5, metric, weighting = weighting)
      expect_equal(filled[5, 3], 4e307)
    }
  }
})

test_that("what can't be is an error that says so", {
  x <- data_with_holes(20, 8, 0.05)
  many <- replace(x, cbind(1:17, 2), NA)
  infinite <- replace(x, 3, Inf)
  empty <- x
  empty[, 3] <- NA
  few <- x
  few[1:18, 1:5] <- NA
  few[19, 6] <- NA
  expect_messages({
    knn_impute(many, 3)
    knn_impute(empty, 3, col_max = 1)
    knn_impute(x, 20)
    knn_impute(few, 3, col_max = 1)
    knn_impute(infinite, 3)
    knn_impute(x, 3, "chebyshev")
    knn_impute(x, 3, donors = "all")
    knn_impute(x, 3, weighting = 1:8)
    knn_impute(x, 3, row_max = 2)
    knn_impute(x, 0)
    knn_impute(x, 3, into = "filled")
    knn_impute(x, 3, donors = "available", checkpoint = "folder")
    knn_impute(x, 3, 5)
    knn_impute(metafeatures(random_matrix(3, 8)), 2)
  })
})

test_that("a matrix of any kind comes back as one of that kind", {
  for (package in c("Matrix", "DelayedArray", "HDF5Array", "bigmemory")) {
    skip_if_not_installed(package)
  }
  x <- small_integers(30, 8)
  dimnames(x) <- list(paste0("g", 1:30), paste0("s", 1:8))
  x[cbind(c(2, 2, 9, 30), c(1, 5, 8, 8))] <- NA
  x <- x + 0
  filled <- knn_impute(x, 3, backend = "cpu")
  sparse <- methods::as(x, "dgCMatrix")
  kinds <- list(
    dgCMatrix = sparse, dgTMatrix = methods::as(sparse, "TsparseMatrix"),
    dgRMatrix = methods::as(sparse, "RsparseMatrix"),
    dgeMatrix = methods::as(sparse, "unpackedMatrix"),
    DelayedMatrix = DelayedArray::DelayedArray(x),
    HDF5Matrix = HDF5Array::writeHDF5Array(x, with.dimnames = TRUE)
  )
  for (kind in names(kinds)) {
    found <- knn_impute(kinds[[kind]], 3, backend = "cpu")
    expect_s4_class(found, kind)
    expect_identical(as.matrix(found), matrix(filled, 30, dimnames = dimnames(x)))
    expect_identical(imputed_of(found), imputed_of(filled))
    turned <- knn_impute(t(kinds[[kind]]), 3, points = "columns", backend = "cpu")
    expect_identical(as.matrix(turned), t(matrix(filled, 30, dimnames = dimnames(x))))
    expect_identical(
      fsknn:::is_read_by_blocks(turned), fsknn:::is_read_by_blocks(found)
    )
    if (kind != "HDF5Matrix") {
      # After t(), these are DelayedMatrix objects and keep their class.
      expect_identical(class(turned), class(t(kinds[[kind]])))
    }
  }
  # The matrix was symmetric, but the result is not.
  symmetric <- methods::as(crossprod(replace(x, is.na(x), 0)), "CsparseMatrix")
  symmetric[1, 2] <- symmetric[2, 1] <- NA
  symmetric <- Matrix::forceSymmetric(symmetric)
  expect_s4_class(knn_impute(symmetric, 2, backend = "cpu"), "dgCMatrix")
  of_sparse <- knn_impute(DelayedArray::DelayedArray(sparse), 3, backend = "cpu")
  expect_true(DelayedArray::is_sparse(of_sparse))
  big <- knn_impute(bigmemory::as.big.matrix(x), 3, backend = "cpu")
  expect_s4_class(big, "big.matrix")
  expect_identical(big[, ], matrix(filled, 30, dimnames = dimnames(x)))

  skip_if_not_installed("SummarizedExperiment")
  experiment <- SummarizedExperiment::SummarizedExperiment(
    list(raw = x, kept = kinds$DelayedMatrix)
  )
  ask <- function(...) {
    knn_impute(experiment, 3, assay = "kept", backend = "cpu", ...)
  }
  assay <- function(of, name) SummarizedExperiment::assay(of, name)
  expect_s4_class(assay(ask(), "kept"), "DelayedMatrix")
  expect_identical(assay(ask(), "raw"), x)
  expect_s4_class(assay(ask(into = "filled"), "filled"), "DelayedMatrix")
  expect_identical(
    as.matrix(assay(ask(into = "filled"), "filled")),
    matrix(filled, 30, dimnames = dimnames(x))
  )
})

test_that("what comes from a file goes to one, whatever was done to it", {
  for (package in c("HDF5Array", "SummarizedExperiment")) {
    skip_if_not_installed(package)
  }
  x <- data_with_holes(60, 8, 0.05)
  dimnames(x) <- list(paste0("g", 1:60), paste0("s", 1:8))
  stored <- HDF5Array::writeHDF5Array(x, chunkdim = c(20, 4))
  dimnames(stored) <- dimnames(x)
  turned <- t(knn_impute(t(stored), 3, points = "columns", backend = "cpu"))
  found <- list(
    stored = knn_impute(stored, 3, backend = "cpu"), turned = turned,
    computed = knn_impute(2 * stored, 3, backend = "cpu") / 2,
    bound = knn_impute(
      rbind(stored[1:30, ], DelayedArray::DelayedArray(x)[31:60, ]), 3,
      backend = "cpu"
    )
  )
  expected <- knn_impute(x, 3, backend = "cpu")
  for (name in names(found)) {
    expect_true(fsknn:::is_in_file(found[[name]]), label = name)
    expect_equal(
      as.matrix(found[[name]]), expected[, ], tolerance = 1e-14, label = name
    )
  }
  expect_identical(DelayedArray::chunkdim(found$stored), c(20L, 4L))
  expect_false(fsknn:::is_in_file(
    knn_impute(DelayedArray::DelayedArray(x), 3, backend = "cpu")
  ))
  # The original file is unchanged.
  expect_identical(as.matrix(stored), x)

  whole <- SummarizedExperiment::SummarizedExperiment(
    list(log = log2(stored^2))
  )
  filled <- knn_impute(whole, 3, into = "filled", backend = "cpu")
  assay <- SummarizedExperiment::assay(filled, "filled")
  expect_true(fsknn:::is_in_file(assay))
  expect_identical(dimnames(assay), dimnames(x))
  expect_false(anyNA(as.matrix(assay)))
  folder <- withr::local_tempfile()
  HDF5Array::saveHDF5SummarizedExperiment(filled, folder)
  again <- HDF5Array::loadHDF5SummarizedExperiment(folder)
  expect_identical(imputed_of(again), imputed_of(filled))
  expect_identical(
    as.matrix(SummarizedExperiment::assay(again, "filled")), as.matrix(assay)
  )
})

test_that("a sparse matrix in a file stays one", {
  skip_if_not_installed("HDF5Array")
  x <- small_integers(30, 8) * (small_integers(30, 8, seed = 3) > 2) + 0
  x[cbind(c(2, 2, 9, 30), c(1, 5, 8, 8))] <- NA
  stored <- HDF5Array::writeHDF5Array(x, as.sparse = TRUE)
  for (given in list(stored, 2 * stored)) {
    found <- knn_impute(given, 3, backend = "cpu")
    expect_true(DelayedArray::is_sparse(found))
    expect_true(fsknn:::is_in_file(found))
    expect_identical(
      as.matrix(found), knn_impute(as.matrix(given), 3, backend = "cpu")[, ]
    )
  }
})

test_that("rows that do not vary are not counted as donors", {
  x <- data_with_holes(30, 6, 0.05)
  x[11:30, ] <- x[11:30, 1]
  x[11:30, 1] <- x[11:30, 2]
  x <- replace(x, is.na(x), 0)
  x[cbind(c(1, 2, 4, 6), c(2, 3, 2, 5))] <- NA
  filled <- knn_impute(x, 8, "pearson", donors = "available", backend = "cpu")
  donors <- imputed_of(filled)$donors
  expect_true(all(donors >= 7 & donors <= 8))
})

test_that("of columns errors speak of columns", {
  x <- data_with_holes(20, 6, 0.05)
  expect_error(
    knn_impute(x, 6, points = "columns"), "number of columns that may be donors"
  )
})

test_that("what is filled in does not depend on threads", {
  x <- random_matrix(700, 30)
  x[whole_numbers(1500, 5) %% length(x) + 1] <- NA
  x[7, ] <- NA
  for (metric in c("euclidean", "pearson")) {
    for (donors in c("nearest", "available")) {
      by <- function(num_threads, ...) {
        suppressMessages(knn_impute(
          x, 4, metric, donors = donors, num_threads = num_threads,
          backend = "cpu", ...
        ))
      }
      one <- by(1)
      expect_identical(by(3), one)
      expect_false(anyNA(one))
      expect_identical(which(one != x | is.na(x)), which(is.na(x)))
      table <- imputed_of(one)
      expect_identical((table$column - 1L) * 700L + table$row, which(is.na(x)))
      expect_identical(table$value, one[which(is.na(x))])
      expect_identical(
        t(suppressMessages(knn_impute(
          t(x), 4, metric, donors = donors, points = "columns", backend = "cpu"
        ))[, ]),
        one[, ]
      )
    }
  }
})

test_that("entries without donors are told of with the choice that has them", {
  x <- random_matrix(30, 6)
  x[1:12, 2] <- NA
  told <- function(...) {
    words <- ""
    withCallingHandlers(
      knn_impute(x, k = 1, ...),
      fsknn_column_means = function(message) {
        words <<- conditionMessage(message)
        rlang::cnd_muffle(message)
      }
    )
    words
  }
  expect_match(told(), "donors = \"available\"", fixed = TRUE)
  expect_identical(told(donors = "available"), "")
  x[20, 1:5] <- NA
  expect_no_match(told(donors = "available"), "available")
})

test_that("points without features are an error, not a crash", {
  for (x in list(matrix(0, 3, 0), matrix(0, 0, 0), data.frame())) {
    expect_wrong(knn_impute(x), "at least 1 column \\(features\\), not 0")
    expect_wrong(knn_impute_error(x, k = 1), "at least 1 column")
  }
  expect_wrong(
    knn_impute(matrix(0, 0, 3), points = "columns"), "at least 1 row"
  )
})

test_that("the donors' spread is right for values of any magnitude", {
  x <- data_with_holes(80, 8)
  ask <- function(factor, ...) {
    imputed_of(quiet_means(knn_impute(x * factor, 4, ...)))
  }
  expected <- ask(1)
  by_distance <- ask(1, weighting = "distance")
  for (power in c(-990, -700, -500, 500, 700, 1000)) {
    factor <- 2^power
    found <- ask(factor)
    expect_identical(found$value, expected$value * factor)
    expect_identical(found$sd, expected$sd * factor)
    # Distances differ in their last bits.
    found <- ask(factor, weighting = "distance")
    expect_equal(found$sd / factor, by_distance$sd, tolerance = 1e-12)
  }
  # Their mean is far from the spread, and their difference overflows.
  y <- rbind(
    c(1, 1, NA), c(1, 1, .Machine$double.xmax), c(1, 1, -1.2e308),
    c(1, 1, 1e308)
  )
  expect_equal(
    imputed_of(knn_impute(y, 3))$sd,
    1e308 * stats::sd(c(1.7976931348623157, -1.2, 1))
  )
})

test_that("values near a double's limit are filled as smaller ones, or named", {
  most <- .Machine$double.xmax
  outcomes <- vapply(1:40, function(seed) {
    set.seed(seed)
    x <- matrix(rnorm(60), 12)
    x[, 5] <- rep(c(most, -most), 6) * runif(12, 0.1, 0.5 + 0.5 * seed %% 2)
    x[, 4] <- rep(c(most, -most), each = 6) * 0.7
    x[sample(60, 4)] <- NA
    fill <- function(x) {
      weighting <- if (seed %% 2) "equal" else "distance"
      suppressMessages(knn_impute(x, 3, "pearson", weighting = weighting))
    }
    # A power of two takes no bit from any of the larger ones.
    want <- imputed_of(fill(x * 2^-20))$value * 2^20
    got <- tryCatch(imputed_of(fill(x))$value, fsknn_range_error = identity)
    if (inherits(got, "error")) {
      expect_false(all(is.finite(want)))
      return("error")
    }
    expect_equal(got, want, tolerance = 1e-13)
    "value"
  }, "")
  expect_setequal(outcomes, c("error", "value"))
})

test_that("a filled-in value beyond range is an error with a place", {
  set.seed(1)
  x <- matrix(rnorm(60), 12)
  x[1, ] <- 1e3 * x[1, ]
  x[, 5] <- runif(12, 0.8, 1) * .Machine$double.xmax
  x[1, 5] <- NA
  expect_true(all(is.finite(knn_impute(x, 3))))
  rownames(x) <- paste0("g", 1:12)
  error <- expect_error(
    knn_impute(x, 3, "pearson"), class = "fsknn_range_error"
  )
  expect_match(
    conditionMessage(error), "row 1 (\"g1\"), column 5", fixed = TRUE
  )
  error <- expect_error(
    knn_impute(t(x), 3, "pearson", points = "columns"),
    class = "fsknn_range_error"
  )
  expect_match(
    conditionMessage(error), "column 1 (\"g1\"), row 5", fixed = TRUE
  )
})

test_that("rows without neighbours are told as such, without a hint", {
  set.seed(4)
  x <- matrix(rnorm(60), 12)
  x[2, ] <- c(1, 1, 1, NA, NA)
  told <- expect_message(
    knn_impute(x, 3, "pearson"), class = "fsknn_column_means"
  )
  expect_match(conditionMessage(told), "2 are in 1 row without neighbours.")
  expect_no_match(conditionMessage(told), "available")
  x[3:9, 5] <- NA
  told <- expect_message(
    knn_impute(x, 1, "pearson", col_max = 0.9), class = "fsknn_column_means"
  )
  expect_match(conditionMessage(told), "2 are in 1 row without neighbours.")
  expect_match(conditionMessage(told), "no donor has\\s+a value")
  expect_match(conditionMessage(told), "available")
})
