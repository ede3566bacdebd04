# Triples above a similarity, compared with every triple by itself.

test_that("all triples of at least so much are found, ties and zeros too", {
  cases <- list(
    c(3, 1), c(3, 5), c(4, 1), c(7, 2), c(19, 5), c(24, 9), c(17, 33)
  )
  for (case in cases) {
    x <- counts_matrix(case[[1]], case[[2]])
    expected <- naive_triples(x)
    for (least in c(0, 0.5, 0.75, 0.8, 0.95, 1)) {
      # Sums of whole numbers are exact except for one rounding.
      at <- expected$similarity >= least - 1e-14
      found <- threshold_triples(x, least)
      expect_s3_class(found, "fsknn_triples")
      expect_same_triples(found, expected[at, ])
    }
  }
})

test_that("sums that are exact give the bits of the source's own formula", {
  x <- counts_matrix(16, 8)
  x[] <- x[] %% 4 + 1
  found <- threshold_triples(x, 0)
  sums <- rowSums(x)
  total <- sums[found$from] + sums[found$to] + sums[found$third]
  largest <- rowSums(pmax(x[found$from, ], x[found$to, ], x[found$third, ]))
  expect_identical(found$similarity, 1.5 * (total - largest) / total)
  pair <- 2 * rowSums(pmin(x[found$from, ], x[found$to, ])) /
    (sums[found$from] + sums[found$to])
  expect_equal(found$pair_from_to, pair, tolerance = 1e-15)
})

test_that("the example of CoMet's guide has the values that it prints", {
  x <- rbind(c(1, 2), c(3, 4), c(2, 1), c(4, 3))
  found <- threshold_triples(x, 0)
  expect_identical(found$from, c(1L, 1L, 1L, 2L))
  expect_identical(found$to, c(2L, 2L, 3L, 3L))
  expect_identical(found$third, c(3L, 4L, 4L, 4L))
  expect_equal(
    found$similarity,
    c(6.92307692307692291e-01, 7.94117647058823484e-01,
      6.92307692307692291e-01, 7.94117647058823484e-01),
    tolerance = 1e-15
  )
})

test_that("pairs are those of the threshold graph, and bounds hold", {
  x <- exp(2 * random_matrix(20, 11))
  found <- threshold_triples(x, 0)
  expect_identical(nrow(found), 1140L)
  pairs <- threshold_graph(x, 0, "proportional")
  expect_gt(sum(1 - pairs$distance != pairs$similarity), 9)
  all <- matrix(NA_real_, 20, 20)
  all[cbind(pairs$from, pairs$to)] <- pairs$similarity
  expect_identical(found$pair_from_to, all[cbind(found$from, found$to)])
  expect_identical(found$pair_from_third, all[cbind(found$from, found$third)])
  expect_identical(found$pair_to_third, all[cbind(found$to, found$third)])
  expect_true(all(found$at_least <= found$similarity + 1e-14))
  expect_true(all(found$at_most >= found$similarity - 1e-14))
})

test_that("the bits of a triple are the same in all six orders of it", {
  for (seed in 1:6) {
    x <- exp(3 * random_matrix(3, 37, seed))
    orders <- list(1:3, c(1, 3, 2), c(2, 1, 3), c(2, 3, 1), c(3, 1, 2), 3:1)
    values <- vapply(orders, function(at) {
      threshold_triples(x[at, ], 0)$similarity
    }, 0)
    expect_identical(values, rep(values[[1]], 6))
  }
})

test_that("the answer does not depend on path, stages or threads", {
  x <- exp(random_matrix(26, 13))
  x[20:22, ] <- x[1:3, ]
  for (least in c(0.55, 0.8)) {
    expected <- threshold_triples(x, least, path = "all", num_threads = 1)
    expect_gt(nrow(expected), 5)
    for (path in c("auto", "pairs", "all")) {
      for (num_threads in 1:2) {
        for (stages in c(1, 2, 3, 7, 40)) {
          found <- threshold_triples(
            x, least, path = path, num_threads = num_threads, stages = stages
          )
          expect_identical(found, expected)
        }
      }
    }
    for (of in c(1, 2, 5)) {
      parts <- lapply(rev(seq_len(of)), function(i) {
        threshold_triples(x, least, stage = c(i, of))
      })
      expect_identical(do.call(rbind, parts), expected)
      if (of > 1) {
        checksums <- vapply(parts, attr, "", "checksum")
        expect_identical(
          fsknn:::add_checksums(checksums), attr(expected, "checksum")
        )
      } else {
        expect_identical(parts[[1]], expected)
      }
    }
  }
})

test_that("a checksum tells of another answer", {
  x <- exp(random_matrix(12, 6))
  sum_of <- function(...) attr(threshold_triples(...), "checksum")
  first <- sum_of(x, 0)
  expect_match(first, "^[0-9a-f]{16}$")
  expect_identical(sum_of(x, 0), first)
  expect_false(sum_of(x, 0.5) == first)
  expect_false(sum_of(x[c(2, 1, 3:12), ], 0) == first)
  x[12, 6] <- x[12, 6] * (1 + 1e-12)
  expect_false(sum_of(x, 0) == first)
})

test_that("checksums are added modulo 2^64", {
  add <- fsknn:::add_checksums
  expect_identical(add("00000000000000ff"), "00000000000000ff")
  expect_identical(
    add(c("ffffffffffffffff", "0000000000000001")), "0000000000000000"
  )
  expect_identical(
    add(c("fedcba9876543210", "8000000000008000", "000000000000ffff")),
    "7edcba987655b20f"
  )
})

test_that("subset gives the triples that have one of its points", {
  x <- counts_matrix(18, 6)
  rownames(x) <- paste0("g", 1:18)
  all <- threshold_triples(x, 0.6)
  for (subset in list("g5", c("g17", "g2", "g2"), 9, c(1, 18))) {
    names <- if (is.numeric(subset)) rownames(x)[subset] else subset
    has <- all$from %in% names | all$to %in% names | all$third %in% names
    expected <- as.data.frame(all[has, ])
    for (path in c("auto", "pairs", "all")) {
      found <- threshold_triples(x, 0.6, subset = subset, path = path)
      expect_equal(as.data.frame(found), expected, ignore_attr = "row.names")
    }
  }
})

test_that("rows of zeros are in no triple, and keep their place", {
  x <- counts_matrix(14, 5)
  x[c(4, 9), ] <- 0
  expect_messages(threshold_triples(x, 0.5))
  found <- threshold_triples(x, 0.5, constant = "isolate")
  expected <- naive_triples(x)
  expect_same_triples(found, expected[expected$similarity >= 0.5 - 1e-14, ])
  expect_identical(nrow(attr(found, "vertices")), 14L)
  x[3:14, ] <- 0
  expect_messages(threshold_triples(x, 0.5, constant = "isolate"))
})

test_that("missing values are an error, or their row's mean", {
  x <- exp(random_matrix(12, 7))
  x[2, 3] <- NA
  x[5, ] <- c(NA, 1:6)
  filled <- x
  filled[2, 3] <- mean(x[2, -3])
  filled[5, 1] <- 3.5
  expect_messages(threshold_triples(x, 0.5))
  expect_equal(
    as.data.frame(threshold_triples(x, 0.5, na = "mean")),
    as.data.frame(threshold_triples(filled, 0.5)), tolerance = 1e-12
  )
})

test_that("sorensen is the same of 0 and 1, logical or not", {
  x <- counts_matrix(15, 20, most = 1) > 0
  x[, 1] <- TRUE
  expected <- naive_triples(x)
  found <- threshold_triples(x, 0.7, "sorensen")
  expect_same_triples(found, expected[expected$similarity >= 0.7 - 1e-14, ])
  expect_identical(
    as.data.frame(threshold_triples(x + 0L, 0.7)), as.data.frame(found)
  )
})

test_that("scale does not matter, and large and small values are exact", {
  x <- exp(random_matrix(14, 9))
  expected <- threshold_triples(x, 0.5)
  for (scale in 2^c(-990, -300, 300, 990)) {
    found <- threshold_triples(x * scale, 0.5)
    expect_identical(found$similarity, expected$similarity)
    expect_identical(attr(found, "checksum"), attr(expected, "checksum"))
  }
  x[3, 2] <- 1e15
  expected <- naive_triples(x)
  found <- threshold_triples(x, 0)
  expect_equal(found$similarity, expected$similarity, tolerance = 1e-10)
})

test_that("names, columns and containers go in", {
  x <- counts_matrix(12, 6)
  rownames(x) <- paste0("g", 12:1)
  expected <- threshold_triples(x, 0.7)
  expect_type(expected$third, "character")
  numbers <- match(expected$from, rownames(x))
  expect_true(all(numbers < match(expected$to, rownames(x))))
  expect_identical(threshold_triples(t(x), 0.7, points = "columns"), expected)
  expect_identical(threshold_triples(as.data.frame(x), 0.7), expected)
  storage.mode(x) <- "integer"
  expect_identical(threshold_triples(x, 0.7), expected)
  skip_if_not_installed("DelayedArray")
  expect_identical(
    threshold_triples(DelayedArray::DelayedArray(x), 0.7), expected
  )
  skip_if_not_installed("SummarizedExperiment")
  cells <- SummarizedExperiment::SummarizedExperiment(
    list(other = x * 0, counts = x)
  )
  expect_identical(threshold_triples(cells, 0.7, assay = "counts"), expected)
})

test_that("too many triples are told before memory is asked for", {
  x <- exp(random_matrix(20, 8))
  error <- expect_error(
    threshold_triples(x, 0, max_memory = 120 * 50), class = "fsknn_size_error"
  )
  expect_identical(error$most, 50)
  expect_gt(error$triples, 50)
  expect_lte(nrow(threshold_triples(x, error$fits)), 50)
  fits <- fsknn:::round_up(error$fits)
  expect_lte(nrow(threshold_triples(x, fits, max_memory = 120 * 50)), 50)
  expect_messages({
    fsknn:::raise_too_many_triples(
      list(triples = 1234567, estimated = FALSE, most = 1000, fits = 0.81234),
      NULL
    )
    fsknn:::raise_too_many_triples(
      list(triples = 1.234e12, estimated = TRUE, most = 2^31 - 1, fits = NA),
      NULL
    )
  })
})

test_that("wrong inputs are errors", {
  x <- counts_matrix(8, 4)
  parts <- lapply(1:2, function(i) threshold_triples(x, 0.5, stage = c(i, 2)))
  other <- threshold_triples(x, 0.6, stage = c(2, 2))
  expect_messages({
    threshold_triples(x)
    threshold_triples(x, 1.5)
    threshold_triples(x, 0.5, "pearson")
    threshold_triples(x, 0.5, "dice")
    threshold_triples(x, 0.5, "sorensen")
    threshold_triples(-x, 0.5)
    threshold_triples(x[1:2, ], 0.5)
    threshold_triples(x, 0.5, na = "pairwise")
    threshold_triples(x, 0.5, subset = 9)
    threshold_triples(x, 0.5, subset = "g1")
    threshold_triples(x, 0.5, path = "some")
    threshold_triples(x, 0.5, stages = 0)
    threshold_triples(x, 0.5, stage = 3)
    threshold_triples(x, 0.5, stage = c(3, 2))
    threshold_triples(x, 0.5, stage = c(1, 2), stages = 2)
    threshold_triples(x, 0.5, backend = "gpu")
    do.call(rbind, rep(list(threshold_triples(x, 0.5)), 2))
    rbind(parts[[1]])
    rbind(parts[[1]], parts[[2]], parts[[2]])
    rbind(parts[[1]], other)
    rbind(parts[[1]], parts[[2]][1, ])
  })
})

test_that("verbose tells what was done, and the checksum", {
  x <- counts_matrix(8, 4)
  told <- testthat::capture_messages(
    found <- threshold_triples(x, 0.5, verbose = TRUE, subset = 1:2)
  )
  told <- paste(told, collapse = "")
  expect_match(told, "Triples in all: 56", fixed = TRUE)
  expect_match(told, "With one of: *2 points")
  expect_match(told, paste("Checksum:", attr(found, "checksum")), fixed = TRUE)
})

test_that("a threshold that is told to fit does, with stages too", {
  x <- withr::with_seed(1, matrix(rexp(40 * 8), 40))
  room <- 2000
  for (stages in list(NULL, 10)) {
    failure <- expect_error(
      threshold_triples(x, 0.3, stages = stages, max_memory = 120 * room),
      class = "fsknn_size_error"
    )
    expect_equal(failure$triples, nrow(threshold_triples(x, 0.3)))
    expect_equal(failure$most, room)
    fitting <- threshold_triples(
      x, failure$fits, stages = stages, max_memory = 120 * room
    )
    expect_lte(nrow(fitting), room)
  }
})

test_that("a threshold is rounded up, near 1 by what it lacks to 1", {
  round_up <- fsknn:::round_up
  expect_identical(round_up(0.81234), 0.813)
  expect_identical(round_up(0.9976123), 0.99762)
  expect_identical(round_up(1 - 1e-12), 1)
  expect_identical(round_up(1), 1)
  expect_identical(round_up(Inf), Inf)
  expect_identical(round_up(0.0123411), 0.0124)
})

test_that("of equal points no threshold is told to fit", {
  failure <- expect_error(
    threshold_triples(matrix(1, 700, 5), 1, max_memory = "1 MiB"),
    class = "fsknn_size_error"
  )
  expect_identical(failure$fits, Inf)
})

test_that("a subset that is no point is not sent to another verb's argument", {
  failure <- expect_wrong(
    threshold_triples(matrix(1:12, 4), 0.5, subset = list(1, 2))
  )
  expect_no_match(conditionMessage(failure), "outcome")
})

test_that("triples of alleles are counted allele by allele", {
  for (metric in c("ccc", "duo")) {
    for (case in list(c(3, 1), c(4, 5), c(13, 17), c(14, 40))) {
      x <- genotype_matrix(case[[1]], case[[2]], if (metric == "ccc") 2 else 1)
      expected <- naive_allele_triples(x, metric)
      for (least in c(0, 0.2, 0.4)) {
        at <- expected$similarity >= least - 1e-14
        found <- threshold_triples(x, least, metric)
        expect_s3_class(found, "fsknn_triples")
        columns <- setdiff(names(expected), "alleles")
        expect_identical(names(found), names(expected))
        expect_equal(
          as.data.frame(found)[columns], expected[at, columns],
          ignore_attr = "row.names", tolerance = 1e-13
        )
        expect_one_of(found$alleles, expected$alleles[at])
      }
    }
  }
})

test_that("values of alleles are those computed by hand", {
  # Two of four samples are homozygous for the counted allele of all three, and
  # the others for the other one: 9/2 * 1/2 * (1 - 1/3)^3.
  x <- rbind(c(2, 2, 0, 0), c(2, 2, 0, 0), c(2, 2, 0, 0), c(0, 0, 2, 2))
  found <- threshold_triples(x, 0, "ccc")
  expect_equal(found$similarity, rep(2 / 3, 4), tolerance = 1e-15)
  expect_identical(
    as.character(found$alleles), c("000", "001", "001", "001")
  )
  # Heterozygous samples have an eighth of each kind: 9/2 * 1/8 * (2/3)^3.
  one <- threshold_triples(matrix(1, 3, 5), 0, "ccc")
  expect_equal(one$similarity, 1 / 6, tolerance = 1e-15)
  # Three of eight samples have all three: 4 * 3/8 * (3/4)^3, the largest.
  y <- matrix(rep(c(1, 0), c(3, 5)), 3, 8, byrow = TRUE)
  largest <- threshold_triples(y, 0, "duo")
  expect_equal(largest$similarity, 81 / 128, tolerance = 1e-15)
  expect_identical(as.character(largest$alleles), "111")
  expect_identical(
    as.data.frame(threshold_triples(y == 1, 0, "duo")), as.data.frame(largest)
  )
  # Other constants: the other alleles have 20 * 5/8 * (1 - 5/16)^3.
  other <- threshold_triples(
    y, 4, "duo", allele_table = c(multiplier = 20, parameter = 0.5)
  )
  expect_equal(other$similarity, 20 * 5 / 8 * (11 / 16)^3, tolerance = 1e-15)
  expect_messages(threshold_triples(y, 1.5, "duo"))
})

test_that("a triple of alleles shows what no pair does", {
  # The third locus has the allele where the other two differ.
  x <- withr::with_seed(1, matrix(rbinom(3 * 400, 1, 0.5), 3))
  x <- rbind(a = x[1, ], b = x[2, ], c = abs(x[1, ] - x[2, ]), d = x[3, ])
  found <- threshold_triples(x, 0, "duo")
  at <- found$third == "c"
  expect_gt(found$similarity[at], max(found$similarity[!at]) * 1.5)
  expect_lt(diff(range(unlist(found[at, 6:8]))), 0.1)
})

test_that("triples of alleles do not depend on stages, threads or tasks", {
  x <- genotype_matrix(41, 30)
  rownames(x) <- paste0("rs", 1:41)
  for (subset in list(NULL, c("rs7", "rs41"))) {
    whole <- threshold_triples(x, 0.25, "ccc", subset = subset, num_threads = 1)
    expect_gt(nrow(whole), 50)
    if (!is.null(subset)) {
      all <- threshold_triples(x, 0.25, "ccc")
      has <- Reduce(`|`, lapply(all[1:3], `%in%`, subset))
      expect_equal(
        as.data.frame(whole), as.data.frame(all[has, ]),
        ignore_attr = "row.names"
      )
    }
    for (stages in c(2, 7, 60)) {
      expect_identical(
        threshold_triples(
          x, 0.25, "ccc", subset = subset, stages = stages,
          num_threads = 1 + stages %% 2
        ),
        whole
      )
    }
    parts <- lapply(3:1, function(i) {
      threshold_triples(x, 0.25, "ccc", subset = subset, stage = c(i, 3))
    })
    expect_identical(do.call(rbind, parts), whole)
    folder <- withr::local_tempdir()
    expect_identical(
      threshold_triples(
        x, 0.25, "ccc", subset = subset, stages = 5, checkpoint = folder
      ),
      whole
    )
    expect_identical(knn_collect(folder), whole)
    file <- withr::local_tempfile(fileext = ".csv")
    told <- threshold_triples(x, 0.25, "ccc", subset = subset, file = file)
    expect_identical(told$checksum, attr(whole, "checksum"))
    written <- utils::read.csv(file, colClasses = c(alleles = "character"))
    expect_identical(names(written), names(whole))
    if (is.null(subset)) {
      expect_identical(written$similarity, whole$similarity)
      expect_identical(written$alleles, as.character(whole$alleles))
    }
  }
  for (set in fsknn:::cpp_backends()$cpu$instruction_sets) {
    withr::local_options(fsknn.instruction_set = set)
    found <- threshold_triples(x, 0.25, "ccc", subset = c("rs7", "rs41"))
    expect_identical(found, whole)
  }
})

test_that("triples of alleles print, are summarised, and become graphs", {
  x <- genotype_matrix(20, 12)
  found <- threshold_triples(x, 0.3, "ccc")
  told <- summary(found)
  expect_identical(
    told$quantiles$value, c("similarity", "largest_pair")
  )
  expect_identical(sum(told$alleles), nrow(found))
  expect_match(format(told), "^Alleles: 000 \\(", all = FALSE)
  expect_output(print(found), "ccc")
  expect_s3_class(found[1:3, ], "fsknn_triples")
  g <- as_igraph(found)
  expect_identical(sum(igraph::V(g)$type), nrow(found))
  expect_true("alleles" %in% igraph::vertex_attr_names(g))
  file <- withr::local_tempfile(fileext = ".csv")
  write_edges(found, file)
  expect_identical(
    read.csv(file, colClasses = c(alleles = "character"))$alleles,
    as.character(found$alleles)
  )
})

test_that("the search of triples of alleles is planned, and refuses too many", {
  x <- genotype_matrix(200, 30)
  plan <- threshold_triples(x, 0.2, "ccc", plan = TRUE)
  found <- threshold_triples(x, 0.2, "ccc")
  expect_identical(plan$path, "all")
  expect_identical(plan$sampled, 96)
  expect_identical(plan$comparisons, choose(200, 3) * 30)
  expect_gt(plan$expected, 0.3 * nrow(found))
  expect_lt(plan$expected, 3 * nrow(found))
  error <- expect_error(
    threshold_triples(x, 0.3, "ccc", max_memory = 120 * 2000),
    class = "fsknn_size_error"
  )
  expect_lte(
    nrow(threshold_triples(x, error$fits, "ccc", max_memory = 120 * 2000)), 2000
  )
  # Similarities above 1, too.
  constants <- c(multiplier = 50)
  error <- expect_error(
    threshold_triples(
      x, 1, "ccc", allele_table = constants, max_memory = 120 * 2000
    ),
    class = "fsknn_size_error"
  )
  expect_gt(error$fits, 1)
  expect_lte(
    nrow(threshold_triples(x, error$fits, "ccc", allele_table = constants)),
    2000
  )
})

test_that("what triples of alleles lack is said", {
  x <- genotype_matrix(8, 6)
  gaps <- x
  gaps[3, 4] <- NA
  expect_messages({
    threshold_triples(x, 0.3, "ccc", path = "pairs")
    threshold_triples(x, 0.3, "duo")
    threshold_triples(x / 2, 0.3, "ccc")
    threshold_triples(gaps, 0.3, "ccc")
    threshold_triples(gaps, 0.3, "ccc", na = "mean")
    threshold_triples(gaps, 0.3, "ccc", na = "pairwise")
    threshold_triples(x, 0.3, allele_table = c(multiplier = 2))
    threshold_triples(
      x, 0, "ccc", file = tempfile(), format = "comet_bytes"
    )
  })
})
