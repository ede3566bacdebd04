# Triples on a GPU: the CPU's answer, to the last bit, and its checksum.

on_both <- function(verb, x, ..., more = list()) {
  expected <- verb(x, ..., backend = "cpu")
  found <- do.call(verb, c(list(x, ..., backend = "cuda"), more))
  expect_identical(found, expected)
  expected
}

test_that("a GPU finds the triples that the CPU finds, with ties and zeros", {
  skip_if_no_cuda()
  cases <- list(
    c(3, 1), c(3, 5), c(4, 1), c(7, 2), c(19, 5), c(24, 9), c(17, 33),
    c(20, 16), c(21, 48), c(70, 31), c(150, 8), c(140, 300)
  )
  for (case in cases) {
    x <- counts_matrix(case[[1]], case[[2]])
    for (least in c(0.4, 0.75, 0.8, 0.95, 1)) {
      for (path in c("auto", "pairs", "all")) {
        on_both(threshold_triples, x, least, path = path)
      }
    }
    on_both(triple_histogram, x)
    on_both(triple_histogram, x, breaks = c(0.3, 2 / 3, 0.75, 1))
  }
  on_both(threshold_triples, counts_matrix(30, 4), 0)
  signed <- counts_matrix(40, 17)
  signed[signed == 0] <- -0
  for (breaks in c(20, 2000)) {
    on_both(triple_histogram, signed, breaks = breaks)
  }
})

test_that("small whole numbers are counted by bits, and others are not", {
  skip_if_no_cuda()
  # There are squares of 256 points and others, rows of more than 1,024 bits,
  # the longest codes, and one that is too long.
  cases <- list(
    c(600, 33, 2), c(270, 700, 2), c(262, 40, 32), c(262, 40, 33)
  )
  for (case in cases) {
    x <- counts_matrix(case[[1]], case[[2]], case[[3]] - 1)
    x[, 2] <- 0
    x[2, 1] <- case[[3]]
    counts <- on_both(triple_histogram, x, breaks = 50)
    on_both(triple_histogram, x, breaks = c(0.3, 2 / 3, 0.75, 1))
    on_both(triple_histogram, x, breaks = 3000)
    for (most in c(10, 30000)) {
      # The threshold is missing if more triples than that are equal.
      least <- summary(counts, most = most)$min_similarity
      if (is.na(least)) least <- 1
      for (path in c("pairs", "all")) {
        on_both(threshold_triples, x, least, path = path)
        on_both(
          threshold_triples, x, least - 0.02, path = path,
          subset = c(3, 200, 7)
        )
      }
      for (i in 1:3) {
        on_both(
          threshold_triples, x, least - 0.02, subset = c(3, 250, 7),
          stage = c(i, 3), path = "all"
        )
      }
    }
    on_both(nearest_triples, x, 4)
    # These are the same triples in half precision.
    many <- on_both(triple_histogram, 100 * x, breaks = 50)
    expect_identical(many, counts)
  }
})

test_that("rows of real numbers have the CPU's bits at every threshold", {
  skip_if_no_cuda()
  for (case in list(c(90, 13, 1), c(300, 40, 3), c(131, 700, 2))) {
    x <- exp(case[[3]] * random_matrix(case[[1]], case[[2]], seed = 7))
    x[5, ] <- x[9, ]
    rownames(x) <- paste0("p", seq_len(nrow(x)))
    counts <- on_both(triple_histogram, x, breaks = 50)
    on_both(triple_histogram, x, breaks = 5000)
    for (most in c(10, 1000, 30000)) {
      least <- summary(counts, most = most)$min_similarity
      found <- on_both(threshold_triples, x, least)
      # Some triple has this threshold.
      some <- found$similarity[[1]]
      on_both(threshold_triples, x, some)
      on_both(threshold_triples, x, some + 2^-52)
    }
  }
})

test_that("binary data and more than a stretch of features are as on the CPU", {
  skip_if_no_cuda()
  x <- matrix(whole_numbers(120 * 200) %% 3 == 0, 120) + 0
  on_both(threshold_triples, x, 0.5, metric = "sorensen")
  on_both(triple_histogram, x, metric = "sorensen")
  wide <- exp(random_matrix(40, 5000, seed = 3))
  on_both(threshold_triples, wide, 0.55)
  on_both(triple_histogram, wide, breaks = 200)
})

test_that("scales, huge entries and nearly empty rows change no bit", {
  skip_if_no_cuda()
  x <- exp(random_matrix(60, 17, seed = 11))
  for (scale in c(1e-300, 1e-20, 1e20, 1e300)) {
    y <- x / max(x) * scale
    on_both(threshold_triples, y, 0.6)
    on_both(triple_histogram, y)
  }
  one <- replace(x, 31, 1e15)
  huge <- replace(x, 31, 1e300)
  tiny <- x
  tiny[c(3, 40), ] <- tiny[c(3, 40), ] * 1e-310
  mixed <- x * 10^(whole_numbers(60) %% 600 - 300)
  for (y in list(one, huge, tiny, mixed)) {
    for (path in c("pairs", "all")) {
      on_both(threshold_triples, y, 0.55, path = path)
      on_both(threshold_triples, y, 0.9, path = path)
    }
    on_both(triple_histogram, y)
  }
})

test_that("queries, isolated points, missing values and columns are heard of", {
  skip_if_no_cuda()
  x <- exp(random_matrix(90, 13, seed = 5))
  rownames(x) <- paste0("p", 1:90)
  on_both(threshold_triples, x, 0.6, subset = c("p7", "p80", "p12"))
  on_both(threshold_triples, x, 0.8, subset = "p33")
  empty <- replace(x, cbind(c(4, 50), rep(1:13, each = 2)), 0)
  on_both(threshold_triples, empty, 0.6, constant = "isolate")
  on_both(triple_histogram, empty, constant = "isolate")
  lacking <- replace(x, 77, NA)
  on_both(threshold_triples, lacking, 0.6, na = "mean")
  on_both(threshold_triples, t(x), 0.6, points = "columns")
})

test_that("no decomposition changes a triple or the checksum", {
  skip_if_no_cuda()
  x <- exp(random_matrix(150, 20, seed = 6))
  whole <- threshold_triples(x, 0.6, backend = "cpu")
  counted <- triple_histogram(x, backend = "cpu")
  for (of in c(2, 3, 7, 40)) {
    parts <- lapply(seq_len(of), function(i) {
      threshold_triples(x, 0.6, stage = c(i, of), backend = "cuda")
    })
    expect_identical(do.call(rbind, parts), whole)
    expect_identical(
      threshold_triples(x, 0.6, stages = of, backend = "cuda"), whole
    )
    expect_identical(triple_histogram(x, stages = of, backend = "cuda"), counted)
    for (i in seq_len(min(of, 3))) {
      on_both(threshold_triples, x, 0.6, stage = c(i, of), subset = c(3, 90, 7))
    }
  }
  on_both(threshold_triples, x, 0.6, subset = c(3, 90, 7), stages = 11)
  for (devices in seq_len(nrow(gpus_here()))) {
    expect_identical(
      threshold_triples(x, 0.6, backend = "cuda", devices = seq_len(devices)),
      whole
    )
  }
})

test_that("the best of each point are the CPU's, with ties and few others", {
  skip_if_no_cuda()
  for (case in list(c(3, 4), c(5, 3), c(40, 6), c(140, 21))) {
    x <- counts_matrix(case[[1]], case[[2]])
    pairs <- choose(case[[1]] - 1, 2)
    for (k in unique(pmin(pairs, c(1, 3, 40, 1000)))) {
      for (path in c("auto", "pairs", "all")) {
        on_both(nearest_triples, x, k, path = path)
      }
    }
  }
  x <- exp(2 * random_matrix(300, 35, seed = 4))
  rownames(x) <- paste0("p", 1:300)
  on_both(nearest_triples, x, 10)
  on_both(nearest_triples, x, 3, subset = c("p7", "p300", "p41"))
  x[c(9, 12), ] <- 0
  on_both(nearest_triples, x, 5, constant = "isolate")
  on_both(nearest_triples, x[-c(9, 12), ] * 1e-300, 5)
  on_both(
    nearest_triples, counts_matrix(900, 9), 7,
    more = list(max_device_memory = 2e6)
  )
})

test_that("a task in a folder is done by the backend that is asked for", {
  skip_if_no_cuda()
  x <- exp(random_matrix(80, 12, seed = 8))
  whole <- threshold_triples(x, 0.6, backend = "cpu")
  for (backends in list("cuda", c("cpu", "cuda"))) {
    folder <- withr::local_tempfile()
    found <- threshold_triples(
      x, 0.6, stages = 5, checkpoint = folder, backend = backends[[1]]
    )
    expect_identical(found, whole)
    again <- threshold_triples(
      x, 0.6, stages = 5, checkpoint = folder, backend = rev(backends)[[1]]
    )
    expect_identical(again, whole)
  }
})

test_that("little device memory is enough, and too little is an error", {
  skip_if_no_cuda()
  x <- exp(random_matrix(900, 30, seed = 9))
  whole <- threshold_triples(x, 0.75, backend = "cpu")
  counted <- triple_histogram(x, backend = "cpu")
  for (bytes in c(1.2e6, 2e6, 1e7)) {
    expect_identical(
      threshold_triples(
        x, 0.75, backend = "cuda", max_device_memory = bytes, path = "all"
      ),
      whole
    )
    expect_identical(
      triple_histogram(x, backend = "cuda", max_device_memory = bytes), counted
    )
  }
  expect_error(
    threshold_triples(x, 0.75, backend = "cuda", max_device_memory = 1e5),
    "all points are held", class = "fsknn_cuda_error"
  )
})

test_that("too many triples are told of as on the CPU", {
  skip_if_no_cuda()
  x <- exp(random_matrix(100, 12, seed = 10))
  fails <- function(backend) {
    tryCatch(
      threshold_triples(x, 0.3, backend = backend, max_memory = 1e6),
      fsknn_size_error = function(err) err[c("triples", "most", "fits")]
    )
  }
  expect_identical(fails("cuda"), fails("cpu"))
})

test_that("a GPU has its memory back after a call, not after R's next gc", {
  skip_if_no_cuda()
  x <- exp(random_matrix(20000, 200, seed = 8))
  free <- function() gpus_here(start = TRUE)$memory_free[[1]]
  threshold_triples(x[1:100, ], 0.999, backend = "cuda", devices = 1)
  before <- free()
  threshold_triples(x, 0.999, backend = "cuda", devices = 1)
  # The points take 40 MB.
  expect_gt(free(), before - 1e7)
})

test_that("triples of alleles have the CPU's bits", {
  skip_if_no_cuda()
  # There are squares of 256 points and others, and rows of several parts.
  cases <- list(c(3, 4), c(12, 9), c(40, 70), c(262, 700), c(600, 33))
  for (metric in c("ccc", "duo")) {
    for (case in cases) {
      x <- genotype_matrix(case[[1]], case[[2]], if (metric == "ccc") 2 else 1)
      counts <- on_both(triple_histogram, x, metric, breaks = 50)
      on_both(triple_histogram, x, metric, breaks = c(0.05, 0.1, 0.3, 0.4))
      on_both(triple_histogram, x, metric, breaks = 3000)
      for (most in c(10, 3000)) {
        least <- summary(counts, most = most)$min_similarity
        if (is.na(least)) least <- 0.3
        found <- on_both(threshold_triples, x, least, metric)
        some <- c(least, found$similarity)[[nrow(found) %/% 2 + 1]]
        for (at in pmax(some + c(-2^-52, 0, 2^-52), 0)) {
          on_both(threshold_triples, x, at, metric)
        }
        if (case[[1]] < 200) next
        on_both(threshold_triples, x, least, metric, subset = c(3, 200, 7))
        for (i in 1:3) {
          on_both(
            threshold_triples, x, least, metric, subset = c(3, 250, 7),
            stage = c(i, 3)
          )
          on_both(threshold_triples, x, least, metric, stage = c(i, 3))
        }
      }
      for (k in unique(pmin(choose(case[[1]] - 1, 2), c(1, 4, 60)))) {
        on_both(nearest_triples, x, k, metric)
      }
    }
  }
})

test_that("tables of any multiplier and parameter have the CPU's bits", {
  skip_if_no_cuda()
  x <- genotype_matrix(80, 41)
  for (table in list(c(9 / 2, 0), c(20, 2 / 3), c(1, 1), c(1e-3, 0.4))) {
    table <- c(multiplier = table[[1]], parameter = table[[2]])
    counts <- on_both(triple_histogram, x, metric = "ccc", allele_table = table)
    least <- summary(counts, most = 500)$min_similarity
    if (is.na(least)) least <- table[[1]] / 20
    on_both(threshold_triples, x, least, metric = "ccc", allele_table = table)
    on_both(nearest_triples, x, 5, metric = "ccc", allele_table = table)
  }
})

test_that("triples of alleles need little memory, and run in tasks and stages", {
  skip_if_no_cuda()
  x <- genotype_matrix(700, 60)
  x[x == 2 & whole_numbers(length(x)) %% 4 > 0] <- 0
  counts <- triple_histogram(x, metric = "ccc", backend = "cpu")
  least <- summary(counts, most = 3000)$min_similarity
  for (bytes in c(6e6, 1e7)) {
    more <- list(max_device_memory = bytes)
    on_both(threshold_triples, x, least, "ccc", more = more)
    on_both(triple_histogram, x, metric = "ccc", more = more)
    on_both(nearest_triples, x, 3, "ccc", subset = 5:20, more = more)
  }
  expect_error(
    threshold_triples(
      x, least, "ccc", backend = "cuda", max_device_memory = 1e6
    ),
    "all points are held", class = "fsknn_cuda_error"
  )
  whole <- threshold_triples(x, least, "ccc", backend = "cpu")
  expect_identical(
    threshold_triples(x, least, "ccc", backend = "cuda", stages = 5), whole
  )
  for (devices in seq_len(nrow(gpus_here()))) {
    expect_identical(
      threshold_triples(
        x, least, "ccc", backend = "cuda", devices = seq_len(devices)
      ),
      whole
    )
  }
})
