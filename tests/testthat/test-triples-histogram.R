# Counts of all triples, compared with every triple by itself.

test_that("bins hold what they should, ends too", {
  x <- counts_matrix(16, 6)
  similarity <- threshold_triples(x, 0)$similarity
  meets <- sort(unique(similarity))
  for (breaks in list(
    seq(0, 1, length.out = 21), seq(0.5, 0.8, by = 0.1), c(0, 1),
    meets[seq(1, length(meets), by = 3)]
  )) {
    found <- triple_histogram(x, breaks)
    bins <- length(breaks) - 1
    expected <- vapply(seq_len(bins), function(bin) {
      low <- similarity >= breaks[[bin]]
      last <- bin == bins & similarity == breaks[[bin + 1]]
      sum(low & (similarity < breaks[[bin + 1]] | last)) + 0
    }, 0)
    expect_identical(found$triples, expected)
    expect_identical(attr(found, "below"), sum(similarity < breaks[[1]]) + 0)
    expect_identical(
      attr(found, "above"), sum(similarity > breaks[[bins + 1]]) + 0
    )
    expect_identical(
      found$and_above,
      vapply(breaks[seq_len(bins)], function(b) sum(similarity >= b) + 0, 0)
    )
  }
  expect_identical(triple_histogram(x), triple_histogram(x, 0:20 / 20))
  expect_identical(
    triple_histogram(x, num_threads = 2), triple_histogram(x, num_threads = 1)
  )
})

test_that("isolated points are in none, and a threshold is found", {
  x <- counts_matrix(16, 6)
  x[5, ] <- 0
  found <- triple_histogram(x, 50, constant = "isolate")
  expect_identical(sum(found$triples), choose(15, 3))
  chosen <- summary(found, most = c(-1, 20, 1e6))
  expect_identical(is.na(chosen$min_similarity), c(TRUE, FALSE, FALSE))
  expect_identical(chosen$min_similarity[[3]], 0)
  least <- chosen$min_similarity[[2]]
  expect_identical(
    nrow(threshold_triples(x, least, constant = "isolate")) + 0,
    chosen$triples[[2]]
  )
  expect_lte(chosen$triples[[2]], 20)
})

test_that("a histogram prints, is a data frame and is drawn", {
  found <- triple_histogram(rbind(c(1, 0), c(1, 0), c(1, 0), c(0, 1)), 4)
  expect_snapshot({
    found
    triple_histogram(rbind(1:2, 2:1, 1:2), c(0.95, 0.97))
  })
  expect_identical(class(as.data.frame(found)), "data.frame")
  skip_if_not_installed("ggplot2")
  picture <- plot(found)
  expect_s3_class(picture, "ggplot")
  expect_no_error(print(picture))
})

test_that("the only stage of one is combined to the whole", {
  x <- counts_matrix(12, 4)
  whole <- triple_histogram(x, 4)
  part <- triple_histogram(x, 4, stage = c(1, 1))
  expect_identical(rbind(part), whole)
  expect_identical(rbind(whole), whole)
})

test_that("wrong breaks are errors", {
  x <- counts_matrix(6, 4)
  expect_messages({
    triple_histogram(x, 0)
    triple_histogram(x, c(0.5, 0.5))
    triple_histogram(x, "Sturges")
    triple_histogram(x, c(0, NA))
    triple_histogram(x, 1e7)
    triple_histogram(x, c(0, 0.5, Inf))
    summary(triple_histogram(x, 2), most = "few")
  })
})

test_that("some bins of a histogram are a plain data frame", {
  x <- counts_matrix(12, 4)
  parts <- lapply(1:2, function(i) triple_histogram(x, 4, stage = c(i, 2)))
  for (cut in list(
    parts[[1]][2:3, ], head(parts[[1]], 1), parts[[1]][, c("lower", "triples")],
    subset(parts[[1]], lower > 0.3), parts[[1]][4:1, ]
  )) {
    expect_identical(class(cut), "data.frame")
    expect_null(attr(cut, "checksum"))
    expect_null(attr(cut, "stage"))
    expect_wrong(rbind(parts[[2]], cut))
  }
  expect_identical(parts[[1]][], parts[[1]])
  expect_identical(parts[[1]][1:4, ], parts[[1]])
})

test_that("triples of loci are counted, also above 1", {
  for (metric in c("ccc", "duo")) {
    x <- genotype_matrix(37, 25, if (metric == "ccc") 2 else 1)
    for (multiplier in c(4, 30)) {
      constants <- c(multiplier = multiplier)
      similarity <- threshold_triples(
        x, 0, metric, allele_table = constants
      )$similarity
      breaks <- sort(unique(similarity))
      breaks <- breaks[seq(2, length(breaks), length.out = 9)]
      found <- triple_histogram(x, breaks, metric, allele_table = constants)
      expect_identical(
        found$and_above,
        vapply(breaks[1:8], function(b) sum(similarity >= b) + 0, 0)
      )
      expect_identical(attr(found, "below"), sum(similarity < breaks[[1]]) + 0)
      expect_identical(attr(found, "above"), sum(similarity > breaks[[9]]) + 0)
      parts <- lapply(1:4, function(i) {
        triple_histogram(
          x, breaks, metric, allele_table = constants, stage = c(i, 4)
        )
      })
      expect_identical(do.call(rbind, parts), found)
      expect_identical(
        triple_histogram(
          x, breaks, metric, allele_table = constants, stages = 5,
          num_threads = 2
        ),
        found
      )
      whole <- triple_histogram(x, 20, metric, allele_table = constants)
      expect_identical(sum(whole$triples), choose(37, 3))
      expect_identical(whole$upper[[20]] > 1, multiplier == 30)
    }
  }
})
