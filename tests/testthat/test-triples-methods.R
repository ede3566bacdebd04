# Print, rows and summary of triples.

example_triples <- function() {
  x <- rbind(
    a = c(4, 0, 1, 1), b = c(4, 0, 1, 1), c = c(4, 1, 1, 0),
    d = c(0, 4, 0, 4), e = c(1, 4, 1, 4)
  )
  threshold_triples(x, 0.5)
}

test_that("rows of triples are triples, and other columns are not", {
  found <- example_triples()
  some <- found[2:3, ]
  expect_s3_class(some, "fsknn_triples")
  expect_identical(attr(some, "vertices"), attr(found, "vertices"))
  expect_null(attr(some, "checksum"))
  expect_identical(attr(found[, 1:5], "checksum"), attr(found, "checksum"))
  expect_null(attr(found[c(1, seq_len(nrow(found) - 1)), ], "checksum"))
  expect_identical(
    attr(found[seq_len(nrow(found)), ], "checksum"), attr(found, "checksum")
  )
  bound <- rbind(some, found[1, ])
  expect_identical(class(bound), "data.frame")
  expect_null(attr(bound, "checksum"))
  expect_identical(bound$third, found$third[c(2:3, 1)])
  expect_identical(class(found[c("from", "similarity")]), "data.frame")
  expect_null(attr(found[c("from", "similarity")], "vertices"))
  expect_identical(class(as.data.frame(found)), "data.frame")
  expect_identical(as.data.frame(found)$third, found$third)
})

test_that("rows say that they are rows, also stages bound by dplyr", {
  skip_if_not_installed("dplyr")
  x <- random_matrix(9, 6)^2
  stages <- lapply(1:2, function(i) threshold_triples(x, 0.1, stage = c(i, 3)))
  title <- function(triples) utils::capture.output(print(triples))[[1]]
  expect_match(title(stages[[1]]), "^Triples: .* stage 1 of 3")
  expect_match(title(dplyr::bind_rows(stages)), "^Rows of triples: ")
  expect_match(title(stages[[1]][1:2, ]), "^Rows of triples: ")
})

test_that("triples print, and what there is of them", {
  found <- example_triples()
  expect_snapshot({
    print(found[, 1:4], digits = 3)
    print(found[0, ])
    print(found[, 1:4], n = 2, digits = 3)
  })
})

test_that("a summary counts points, and says how much pairs show", {
  found <- example_triples()
  facts <- summary(found, hubs = 2)
  expect_identical(facts$num_triples, nrow(found))
  expect_identical(sum(facts$in_triples), 3L * nrow(found))
  expect_identical(
    facts$quantiles$median[facts$quantiles$value == "similarity"],
    stats::median(found$similarity)
  )
  expect_snapshot(facts)
  expect_snapshot(summary(found[0, ]))
  lost <- found
  attr(lost, "vertices") <- NULL
  expect_messages(summary(lost))
})

test_that("a place is 0 where all three meet, 1 where pairs share apart", {
  together <- rbind(c(6, 1, 0, 0), c(6, 0, 1, 0), c(6, 0, 0, 1))
  apart <- rbind(c(3, 3, 0, 1), c(3, 0, 3, 1), c(0, 3, 3, 1))
  place <- function(x) fsknn:::triple_place(threshold_triples(x, 0))
  expect_equal(place(together), 0, tolerance = 1e-12)
  expect_equal(place(apart), 1, tolerance = 1e-12)
  expect_identical(place(rbind(1:3, 1:3, 1:3)), NA_real_)
})

test_that("the points of triples may be a vector", {
  ids <- c(1e5, 2e5, 1e15, 123456, 7)
  x <- unname(cbind(c(4, 4, 4, 0, 1), c(0, 0, 1, 4, 4), c(1, 1, 1, 0, 1)))
  rownames(x) <- sprintf("%.0f", ids)
  found <- threshold_triples(x, 0.2)
  given <- structure(found, vertices = ids)
  expect_output(print(given), "5 points of 3 features")
  expect_identical(summary(given), summary(found))
  stages <- lapply(1:2, function(stage) {
    structure(
      threshold_triples(x, 0.2, stage = c(stage, 2)), vertices = factor(ids)
    )
  })
  whole <- do.call(rbind, stages)
  expect_identical(as.data.frame(whole), as.data.frame(found))
})
