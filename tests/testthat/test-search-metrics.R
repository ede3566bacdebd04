test_that("each metric has one complete row", {
  table <- fsknn:::metric_table()
  expect_identical(anyDuplicated(table$name), 0L)
  expect_false(anyNA(table))
  expect_true(all(
    table$similarity %in% c("correlation", "complement", "reciprocal", "none")
  ))
  expect_true(all(table$undefined_rows %in% c("constant", "zero", "none")))
  # A metric has a sign if and only if it is a correlation.
  expect_identical(table$has_sign, table$similarity == "correlation")
})

test_that("the core knows every metric and sign of the table", {
  x <- random_matrix(6, 4)
  for_all_metrics(function(metric, sign, backend) {
    expect_no_error(
      knn_search(values_for(x, metric), 2, metric, sign, backend = backend)
    )
  })
})

test_that("the naive reference knows every metric", {
  for (metric in fsknn:::metric_table()$name) {
    expect_false(
      is.null(naive_distance(matrix(c(1, 2, 4, 3), 2), metric = metric)),
      label = metric
    )
  }
})

test_that("the help and the message of an unknown metric name every metric", {
  help <- fsknn:::metric_help()
  message <- rlang::catch_cnd(knn_search(diag(4), 1, metric = "other"))$message
  for (metric in paste0('"', fsknn:::metric_table()$name, '"')) {
    expect_match(help, metric, fixed = TRUE)
    expect_match(message, metric, fixed = TRUE)
  }
})

test_that("the first metric is the default", {
  expect_null(eval(formals(knn_search)$metric))
  expect_identical(
    fsknn:::default_metric(NULL), fsknn:::metric_table()$name[[1]]
  )
})

test_that("bicor is WGCNA's", {
  skip_if_not_installed("WGCNA")
  # Some rows have outliers on either side, and some have MAD 0, also in pairs.
  # The number of samples is even or odd.
  for (d in c(12, 31)) {
    x <- random_matrix(40, d, seed = d)
    x[5, 3] <- 1e6
    x[6, 1:4] <- c(-50, 80, -1e9, 7)
    x[7, seq_len(d - 3)] <- 2
    x[8, seq_len(d - 4)] <- 5
    x[9:14, ] <- small_integers(6, d, largest = 2)
    expected <- suppressWarnings(WGCNA::bicor(t(x)))
    for (backend in backends_here()) {
      edges <- knn_graph(x, 39, "bicor", backend = backend)
      expect_equal(
        edges$correlation, expected[cbind(edges$from, edges$to)],
        tolerance = 1e-12
      )
    }
  }
})

test_that("bicor of real microarrays is WGCNA's", {
  skip_if_not_installed("WGCNA")
  data <- read_nki295("vantveer78_876.rds")
  x <- (data$expr / data$scale)[1:200, ]
  expected <- suppressWarnings(WGCNA::bicor(t(x)))
  edges <- knn_graph(x, 20, "bicor", "absolute", backend = "cpu")
  expect_equal(
    edges$correlation, expected[cbind(edges$from, edges$to)], tolerance = 1e-12
  )
  diag(expected) <- NA
  largest <- apply(abs(expected), 1, max, na.rm = TRUE)
  expect_equal(edges$distance[edges$rank == 1], 1 - largest, tolerance = 1e-10)
})

test_that("bicor by hand", {
  # The median is 2, the deviations are 2 1 0 1 8, and the MAD is 1. 10 is at 8
  # / 9 of the deviation where a value gets weight 0; 11 is there.
  tilde <- function(u) u * (1 - u^2)^2
  a <- c(0, 1, 2, 3, 10)
  b <- c(0, 1, 2, 3, 11)
  u <- c(-2, -1, 0, 1, 8) / 9
  v <- c(-2, -1, 0, 1, 9) / 9
  r <- sum(tilde(u) * tilde(v)) / sqrt(sum(tilde(u)^2) * sum(tilde(v)^2))
  edges <- knn_graph(rbind(a, b), 1, "bicor")
  expect_equal(edges$correlation, c(r, r), tolerance = 1e-14)
})

test_that("bicor is the same wherever a row's level is", {
  # With whole numbers, only half the sum of two of them is rounded.
  for (d in c(20, 21)) {
    x <- round(100 * random_matrix(60, d, seed = 5))
    moved <- x + 2^52 + 2^(1:60 %% 45)
    for (backend in backends_here()) {
      expect_identical(
        knn_search(moved, 59, "bicor", backend = backend),
        knn_search(x, 59, "bicor", backend = "cpu")
      )
    }
  }
})

test_that("canberra by hand", {
  x <- rbind(c(3, 0, -1, 2), c(1, 0, 1, 2), c(0, 5, -1, 6))
  # The terms are 2/4, 0/0, 2/2, 0/4; 3/3, 5/5, 0/2, 4/8; 1/1, 5/5, 2/2, 4/8.
  for (backend in backends_here()) {
    found <- knn_search(x, 2, "canberra", backend = backend)
    expect_identical(found$index, rbind(2:3, c(1L, 3L), 1:2))
    expect_identical(
      found$distance, rbind(c(1.5, 2.5), c(1.5, 3.5), c(2.5, 3.5))
    )
  }
})

test_that("canberra is base R's where no term is 0 / 0, else not rescaled", {
  x <- random_matrix(40, 23)
  zeros <- small_integers(40, 23)
  all_terms <- as.matrix(stats::dist(x, "canberra"))
  # dist() replaces each term 0 / 0 by the mean term.
  terms <- each_pair(zeros, zeros, function(p, q) sum(p != 0 | q != 0))
  some_terms <- as.matrix(stats::dist(zeros, "canberra")) * terms / 23
  for (backend in backends_here()) {
    edges <- knn_graph(x, 39, "canberra", backend = backend)
    expect_equal(
      edges$distance, all_terms[cbind(edges$from, edges$to)], tolerance = 1e-13
    )
    edges <- knn_graph(zeros, 39, "canberra", backend = backend)
    expect_equal(
      edges$distance, some_terms[cbind(edges$from, edges$to)],
      tolerance = 1e-13
    )
  }
})

test_that("canberra takes any double, and has no unit", {
  x <- small_integers(12, 5, largest = 6)
  x[1:6, ] <- -x[1:6, ]
  for (backend in backends_here()) {
    expected <- knn_search(x, 3, "canberra", backend = backend)
    for (unit in 2^c(-1074, -1022, 1000, 1021)) {
      expect_identical(
        knn_search(x * unit, 3, "canberra", backend = backend), expected
      )
    }
    # Features have units from the smallest to the largest.
    units <- rep(2^c(-1074, -1022, 0, 1000, 1021), each = 12)
    expect_identical(
      knn_search(x * units, 3, "canberra", backend = backend), expected
    )
    # Rows of zeros have a distance from each other, and from all others.
    x[2:3, ] <- 0
    found <- knn_search(x, 1, "canberra", backend = backend)
    expect_identical(found$index[2:3], 3:2)
    expect_identical(found$distance[2:3], c(0, 0))
  }
})

test_that("inner products by hand: a point is left out by its number", {
  x <- rbind(c(1, 2, 0), c(10, 20, 0), c(-3, 1, 0), 0, 0)
  for (backend in backends_here()) {
    found <- knn_search(x, 4, "inner_product", backend = backend)
    expect_identical(
      found$index,
      rbind(c(2L, 4:5, 3L), c(1L, 4:5, 3L), c(4:5, 1:2), c(1:3, 5L), 1:4)
    )
    expect_identical(
      found$distance,
      rbind(c(-50, 0, 0, 1), c(-50, 0, 0, 10), c(0, 0, 1, 10), 0, 0)
    )
    # A distance is 0, never -0.
    expect_true(all(1 / found$distance[found$distance == 0] == Inf))
    # The first row is nearer to the second than to itself.
    expect_identical(
      knn_query(x, x[1:2, ], 2, "inner_product", backend = backend)$index,
      rbind(2:1, 2:1)
    )
    expect_identical(
      nearest_to(x, 2, 2, "inner_product", backend = backend)$distance, c(-50, 0)
    )
  }
})

test_that("limits of inner products may be below 0", {
  x <- small_integers(60, 7)
  x[c(1, 9), ] <- 0
  x[20:30, ] <- -x[20:30, ]
  products <- tcrossprod(x)
  for (backend in backends_here()) {
    for (least in c(-3, 0, 4, 11, 1e9)) {
      found <- within_search(x, -least, "inner_product", backend = backend)
      for (i in seq_len(60)) {
        near <- setdiff(which(products[i, ] >= least), i)
        expect_identical(
          found$index[[i]], near[order(-products[i, near], near)]
        )
        expect_identical(found$distance[[i]], -sort(products[i, near], TRUE) + 0)
      }
      asked <- within_query(
        x, x[5:9, ], -least, "inner_product", backend = backend
      )
      expect_identical(
        lengths(asked$index), as.integer(rowSums(products[5:9, ] >= least))
      )
    }
  }
  error <- expect_error(
    within_search(x, 100, "inner_product", max_memory = 12 * 200),
    class = "fsknn_size_error"
  )
  fits <- as.double(fsknn:::round_down(error$fits))
  expect_lt(fits, 0)
  expect_lte(sum(lengths(within_search(x, fits, "inner_product")$index)), 200)
})

test_that("inner products beside a value of 1e290 or more are right", {
  x <- rbind(numeric(9), 0 + random_matrix(60, 9))
  x[-1, 1] <- 0
  for (backend in backends_here()) {
    rest <- knn_search(x[-1, ], 3, "inner_product", backend = backend)
    for (huge in 2^c(963, 1023)) {
      x[1, 1] <- huge
      all <- knn_search(x, 6, "inner_product", backend = backend)
      expect_identical(all$index[-1, 1:3], rest$index + 1L)
      expect_identical(all$distance[-1, 1:3], rest$distance)
    }
  }
})

test_that("inner products have the square of the unit, and a range", {
  x <- random_matrix(80, 9)
  for (backend in backends_here()) {
    find <- function(x) {
      knn_search(x, 6, "inner_product", backend = backend)
    }
    expected <- find(x)
    for (unit in 2^c(-500, 3, 480)) {
      found <- find(x * unit)
      expect_identical(found$index, expected$index)
      expect_identical(found$distance, expected$distance * unit * unit)
    }
    expect_identical(range(find(x * 2^-600)$distance), c(0, 0))
    expect_error(find(x * 2^520), class = "fsknn_range_error")
    huge <- x
    huge[1:2, 3] <- 1e200
    expect_error(find(huge), class = "fsknn_range_error")
    # A product overflows, but not one of the nearest.
    huge[1, 3] <- -1e200
    expect_lt(max(find(huge)$distance[1:2, ]), 0)
  }
})

test_that("what takes distances for lengths refuses inner products", {
  x <- small_integers(20, 4)
  nn <- knn_search(x, 2, "inner_product")
  edges <- knn_graph(x, 2, "inner_product")
  expect_messages({
    mst_knn(x, "inner_product")
    mst_knn(edges)
    spanning_forest(edges)
    threshold_graph(x, 0.5, "inner_product")
    as_igraph(edges, weight = "similarity")
    as_igraph(edges, weight = "distance")
    as_knn(nn, "uwot")
    knn_search(x, 2, "inner_product", sign = "absolute")
    knn_search(x, 2, "inner_product", weights = 1:4)
    knn_search(x, 2, "inner_product", na = "pairwise")
    within_search(x, NA, "inner_product")
    knn_search(x, 2, "inner")
  }, transform = without_metrics)
  skip_if_not_installed("Matrix")
  expect_messages(as_sparse(edges, "similarity"))
  # The shared-neighbour graph needs no lengths, only who is a neighbour of
  # whom.
  expect_identical(snn_graph(nn), snn_graph(nn["index"]))
  expect_identical(as_knn(edges), nn)
  expect_identical(range(Matrix::diag(as_sparse(edges))), c(0, 0))
  file <- withr::local_tempfile(fileext = ".knn")
  write_knn(edges, file)
  expect_equal(
    read_knn(
      file, metric = "inner_product"
    )$distance, edges$distance, tolerance = 1e-6
  )
})

test_that("inner products are not drawn as lengths", {
  skip_if_not_installed("ggplot2")
  skip_if_not_installed("ggraph")
  edges <- knn_graph(small_integers(20, 4), 2, "inner_product")
  expect_error(plot_neighbourhood(edges, 1), "no distances below 0")
})

test_that("jaccard and sorensen are base R's and proxy's", {
  x <- values_for(random_matrix(40, 23), "jaccard")
  x[3, ] <- 1
  expected <- list(jaccard = list(stats::dist(x, "binary")), sorensen = list())
  if (rlang::is_installed("proxy")) {
    expected$jaccard[[2]] <- proxy::dist(x > 0, method = "Jaccard")
    expected$sorensen[[1]] <- proxy::dist(x > 0, method = "Dice")
  }
  for (backend in backends_here()) {
    for (metric in names(expected)) {
      edges <- knn_graph(x > 0, 39, metric, backend = backend)
      for (other in expected[[metric]]) {
        expect_equal(
          edges$distance, as.matrix(other)[cbind(edges$from, edges$to)],
          tolerance = 1e-14
        )
      }
    }
  }
})

test_that("jaccard and sorensen by hand", {
  x <- rbind(c(1, 1, 1, 0, 0), c(0, 1, 1, 1, 0), c(0, 0, 0, 0, 1))
  expect_identical(
    knn_search(x, 2, "jaccard")$distance,
    rbind(c(1 - 2 / 4, 1), c(1 - 2 / 4, 1), c(1, 1))
  )
  expect_identical(
    knn_search(x, 2, "sorensen")$distance,
    rbind(c(1 - 4 / 6, 1), c(1 - 4 / 6, 1), c(1, 1))
  )
})

test_that("what is not binary is an error that says where", {
  x <- values_for(random_matrix(10, 4), "jaccard")
  rownames(x) <- paste0("g", 1:10)
  one <- replace(x, 12, 0.5)
  many <- replace(x, c(2, 13, 25, 36), c(-1, 2, 1 + 2^-52, 1e300))
  expect_messages({
    knn_search(one, 2, "jaccard")
    knn_graph(many, 2, "sorensen")
    knn_query(x, many, 2, "sorensen")
    knn_search(replace(x, 3, NA), 2, "jaccard")
    knn_search(metafeatures(x, "+"), 2, "jaccard")
  })
})

test_that("rows of zeros are an error or isolated under jaccard and sorensen", {
  x <- values_for(random_matrix(10, 4), "jaccard")
  rownames(x) <- paste0("g", 1:10)
  x[c(2, 7), ] <- 0
  expect_messages({
    knn_search(x, 2, "jaccard")
    knn_search(x[1:3, ], 1, "sorensen")
  })
  for (backend in backends_here()) {
    for (metric in c("jaccard", "sorensen")) {
      found <- knn_search(x, 7, metric, constant = "isolate", backend = backend)
      expect_identical(which(is.na(found$index[, 1])), c(g2 = 2L, g7 = 7L))
      expect_same_bits(
        without_names(found),
        brute_force(x, k = 7, metric = metric, skip = c(2L, 7L))
      )
    }
  }
})

test_that("-0 is 0 in binary data", {
  x <- values_for(random_matrix(12, 5), "jaccard")
  minus <- replace(x, x == 0, -0)
  expect_identical(knn_search(minus, 3, "jaccard"), knn_search(x, 3, "jaccard"))
})

genotypes <- function(n, d, seed = 1) {
  x <- withr::with_seed(
    seed, matrix(stats::rbinom(n * d, 2, stats::runif(n, 0.05, 0.6)), n)
  )
  x[1, ] <- 0
  x[2, ] <- 2
  x[4, ] <- x[3, ]
  rownames(x) <- paste0("rs", seq_len(n))
  x
}

test_that("tables of alleles are counted allele by allele, by every verb", {
  x <- genotypes(150, 37)
  for (metric in c("ccc", "duo")) {
    values <- if (metric == "duo") (x > 0) + 0 else x
    copies <- if (metric == "duo") 1 else 2
    expected <- without_self(naive_distance(values, metric = metric))
    for (backend in backends_here()) {
      found <- knn_search(values, 6, metric, backend = backend)
      nearest <- t(apply(expected, 1, function(row) sort(row)[1:6]))
      expect_equal(unname(found$distance), nearest, tolerance = 1e-12)
      edges <- threshold_graph(values, 0.5, metric, backend = backend)
      near <- which(expected < 0.5 & upper.tri(expected), arr.ind = TRUE)
      expect_setequal(
        paste(edges$from, edges$to),
        paste(rownames(x)[near[, 1]], rownames(x)[near[, 2]])
      )
      counts <- pair_histogram(
        values, metric, breaks = c(0, 0.25, 0.5, 2), backend = backend
      )
      expect_equal(
        counts$count,
        as.vector(table(cut(
          (1 - expected)[upper.tri(expected)], c(0, 0.25, 0.5, 2), right = FALSE
        )))
      )
    }
    # Two loci are compared as one at the frequency of their alleles.
    top <- naive_distance(
      rbind(rep(c(0, copies), 5), rep(c(0, copies), 5)), metric = metric
    )
    expect_equal(top[1, 2], if (metric == "duo") 1 / 9 else 0)
  }
})

test_that("the constants of allele tables are options, also of an index", {
  x <- genotypes(80, 21)
  constants <- c(multiplier = 1.5, parameter = 0.5)
  expected <- without_self(
    naive_distance(x, metric = "ccc", table = constants)
  )
  found <- knn_search(x, 3, "ccc", allele_table = constants)
  expect_equal(
    unname(found$distance), t(apply(expected, 1, function(row) sort(row)[1:3])),
    tolerance = 1e-12
  )
  expect_true(all(knn_verify(found, x)$agree))
  index <- knn_index(x, "ccc", allele_table = constants)
  for (again in 1:2) {
    expect_identical(
      unclass(knn_search(index, 3))[c("index", "distance")],
      unclass(found)[c("index", "distance")]
    )
  }
  expect_identical(
    knn_search(x, 3, "ccc", allele_table = c(parameter = 2 / 3))$distance,
    knn_search(x, 3, "ccc")$distance
  )
  expect_identical(
    knn_search(x, 3, "ccc", checkpoint = withr::local_tempdir(),
               allele_table = constants)$distance,
    found$distance
  )
  trees <- mst_knn(x, "ccc", allele_table = constants, backend = "cpu")
  expect_equal(
    trees$edges$distance, expected[cbind(
      match(trees$edges$from, rownames(x)), match(trees$edges$to, rownames(x))
    )],
    tolerance = 1e-12
  )
})

test_that("allele tables refuse other constants and values in words", {
  x <- genotypes(20, 9)
  expect_error(
    knn_search(x + 1, 2, "ccc"), "must hold only 0, 1 and 2",
    class = "fsknn_argument_error"
  )
  expect_error(knn_search(x, 2, "duo"), "must hold only 0 and 1")
  expect_error(
    knn_search(replace(x, 5, NA), 2, "ccc", na = "mean"), "can't be used"
  )
  expect_error(
    knn_search(x, 2, allele_table = c(parameter = 1)), "It is for \"ccc\""
  )
  for (wrong in list(1, c(p = 1), "a", c(multiplier = 1, multiplier = 2))) {
    expect_error(
      knn_search(x, 2, "ccc", allele_table = wrong), "numbers with the names"
    )
  }
  for (wrong in c(0, -1, Inf, NA)) {
    expect_error(
      knn_search(x, 2, "ccc", allele_table = c(multiplier = wrong)),
      "must be a number from 1e-100"
    )
  }
  for (wrong in c(-0.1, 1.1, NA)) {
    expect_error(
      knn_search(x, 2, "ccc", allele_table = c(parameter = wrong)),
      "must be a number from 0 to 1"
    )
  }
  # Distances may be below 0 then.
  expect_error(
    mst_knn(x, "ccc", allele_table = c(multiplier = 9)), "below 0"
  )
})

test_that("distances of allele tables below 0 go to files and back", {
  x <- genotypes(40, 12)
  edges <- knn_graph(x, 3, "ccc", allele_table = c(multiplier = 20))
  expect_lt(min(edges$distance), 0)
  file <- withr::local_tempfile(fileext = ".knn")
  write_knn(edges, file)
  expect_equal(
    read_knn(file, metric = "ccc")$distance, edges$distance, tolerance = 1e-5
  )
  # Half of the alleles of homozygous samples: the similarity is 1, not more.
  half <- rbind(c(2, 2, 0, 0), c(2, 2, 0, 0), c(0, 0, 2, 2), x[5:10, 1:4])
  expect_identical(min(knn_search(half, 2, "ccc")$distance), 0)
  expect_identical(pair_histogram(half, "ccc", breaks = 4)$above, 0)
})
