# Values for points: in order, by name, or as a column of a container.

input_of <- function(...) fsknn:::check_input(...)

experiment <- function() {
  x <- random_matrix(40, 12)
  dimnames(x) <- list(paste0("gene", 1:40), paste0("cell", 1:12))
  experiment <- SummarizedExperiment::SummarizedExperiment(
    list(logcounts = x),
    colData = S4Vectors::DataFrame(
      batch = S4Vectors::Rle(rep(c("u", "v"), each = 6)),
      kind = rep_len(c("a", "b", "c"), 12), row.names = colnames(x)
    ),
    rowData = S4Vectors::DataFrame(chromosome = rep_len(c("1", "2"), 40))
  )
  methods::as(experiment, "SingleCellExperiment")
}

test_that("named values are put in the points' order, wherever points are", {
  x <- random_matrix(12, 6)
  rownames(x) <- letters[1:12]
  block <- factor(rep_len(c("v", "u"), 12))
  named <- stats::setNames(block, letters[1:12])
  shuffled <- named[c(7:12, 6:1)]
  expect_false(identical(unname(shuffled), block))
  by_place <- knn_search(x, 2, block = block)
  expect_identical(knn_search(x, 2, block = shuffled), by_place)
  expect_identical(knn_search(t(x), 2, block = shuffled, points = "columns"), by_place)
  expect_identical(knn_search(as.data.frame(x), 2, block = shuffled), by_place)
  expect_identical(
    knn_graph(x, 2, block = shuffled, between = TRUE),
    knn_graph(x, 2, block = block, between = TRUE)
  )
  expect_identical(
    nearest_to(x, 3, 2, block = shuffled), nearest_to(x, 3, 2, block = block)
  )
  expect_identical(
    knn_query(x, unname(x[1:3, ]), 2, block = shuffled),
    knn_query(x, unname(x[1:3, ]), 2, block = block)
  )
  expect_identical(mutual_pairs(x, shuffled, 2), mutual_pairs(x, block, 2))
  made <- metafeatures(x[1:5, ])
  of_made <- rep_len(c("p", "q", "q"), nrow(made))
  names(of_made) <- rownames(made)
  expect_identical(
    knn_search(made, 1, block = rev(of_made)),
    knn_search(made, 1, block = unname(of_made))
  )
  # Names have no meaning if points have none.
  expect_identical(
    knn_search(unname(x), 2, block = shuffled[1:12]),
    without_names(knn_search(x, 2, block = unname(shuffled)))
  )
})

test_that("labels, folds and strata are matched by name, too", {
  x <- random_matrix(24, 6)
  rownames(x) <- paste0("s", 1:24)
  labels <- rep_len(c("ill", "well", "ill"), 24)
  folds <- rep_len(1:3, 24)
  strata <- rep(1:4, c(5, 6, 6, 7))
  mixed <- function(values) rev(stats::setNames(values, rownames(x)))
  expect_identical(
    knn_predict(x, mixed(labels), k = 3, folds = mixed(folds)),
    knn_predict(x, labels, k = 3, folds = folds)
  )
  with_seed <- function(code) withr::with_seed(1, code)
  expect_identical(
    with_seed(knn_predict(x, mixed(labels), folds = 4, strata = mixed(strata))),
    with_seed(knn_predict(x, labels, folds = 4, strata = strata))
  )
  edges <- knn_graph(x, 4)
  expected <- with_seed(neighbour_mixing(edges, labels, strata = strata))
  expect_identical(
    with_seed(neighbour_mixing(edges, mixed(labels), strata = mixed(strata))),
    expected
  )
  data <- data.frame(kind = labels, plate = strata, row.names = rownames(x))[24:1, ]
  expect_identical(
    with_seed(neighbour_mixing(edges, "kind", strata = "plate", data = data)),
    expected
  )
  # Samples are the columns here.
  genes <- t(x)
  outcome <- sin(1:24)
  ask <- function(strata) {
    with_seed(nearest_to(
      genes, k = 2, outcome = outcome, permutations = 9, strata = strata
    ))
  }
  expect_identical(ask(mixed(strata)), ask(strata))
  expect_false(identical(ask(rev(strata)), ask(strata)))
  contrast <- function(groups, strata) {
    with_seed(compare_neighbours(
      genes, groups, k = 2, permutations = 9, strata = strata
    ))
  }
  expect_identical(
    contrast(mixed(labels), mixed(strata)), contrast(labels, strata)
  )
  two <- list(ill = genes[, labels == "ill"], well = genes[, labels == "well"])
  of_two <- strata[order(labels)]
  expect_identical(
    with_seed(compare_neighbours(
      two, k = 2, permutations = 9, strata = mixed(strata)
    )),
    with_seed(compare_neighbours(two, k = 2, permutations = 9, strata = of_two))
  )
})

test_that("one string is a column of the table of that side", {
  for (package in c("SingleCellExperiment", "S4Vectors")) {
    skip_if_not_installed(package)
  }
  x <- experiment()
  values <- SummarizedExperiment::assay(x)
  batch <- rep(c("u", "v"), each = 6)
  SingleCellExperiment::reducedDim(x, "PCA") <- t(values[1:5, ])
  expect_same_values(
    knn_search(x, 2, points = "columns", block = "batch"),
    knn_search(t(values), 2, block = batch)
  )
  expect_same_values(
    knn_graph(x, 2, dimred = "PCA", block = "batch"),
    knn_graph(t(values[1:5, ]), 2, "euclidean", block = batch)
  )
  expect_same_values(
    mutual_pairs(x, "batch", 2, points = "columns"),
    mutual_pairs(t(values), batch, 2)
  )
  expect_same_values(
    knn_search(x, 2, block = "chromosome"),
    knn_search(values, 2, block = rep_len(1:2, 40))
  )
  kind <- rep_len(c("a", "b", "c"), 12)
  expect_identical(
    knn_predict(x, "kind", k = 3, points = "columns"),
    knn_predict(t(values), kind, k = 3)
  )
  edges <- knn_graph(x, 3, points = "columns")
  expect_identical(
    neighbour_mixing(edges, "kind", data = x, permutations = NULL),
    neighbour_mixing(edges, kind, permutations = NULL)
  )
  expect_identical(
    neighbour_mixing(
      edges, "batch", data = SummarizedExperiment::colData(x)[12:1, ],
      permutations = NULL
    ),
    neighbour_mixing(edges, batch, permutations = NULL)
  )
  # Samples are the features, so the sample data is the same.
  ask <- function(x, strata) {
    withr::with_seed(1, nearest_to(
      x, k = 2, outcome = sin(1:12), permutations = 9, strata = strata
    ))
  }
  expect_identical(ask(x, "batch"), ask(values, batch))
  expect_messages({
    knn_search(x, 2, points = "columns", block = "bach")
    knn_search(x, 2, block = "batch")
    neighbour_mixing(edges, "type", data = x)
    neighbour_mixing(edges, "type", data = 1:12)
  })
})

test_that("names that are not the points' are errors", {
  x <- random_matrix(6, 5)
  rownames(x) <- letters[1:6]
  block <- stats::setNames(rep(1:2, 3), letters[1:6])
  expect_messages({
    knn_search(x, 1, block = stats::setNames(block, c(letters[1:4], "g", "h")))
    knn_search(x, 1, block = block[-2])
    knn_search(x, 1, block = c(block, a = 1L))
    knn_predict(x, stats::setNames(block, letters[3:8]))
    neighbour_mixing(knn_graph(x, 2), block[c(1, 1, 3:6)])
    nearest_to(t(x), outcome = sin(1:6), k = 1, permutations = 9,
               strata = stats::setNames(rep(1:2, 3), LETTERS[1:6]))
  })
  # Names are repeated among the points but in order, so values match by
  # position.
  rownames(x) <- c("a", "a", "b", "c", "d", "e")
  expect_identical(
    knn_search(x, 1, block = stats::setNames(rep(1:2, 3), rownames(x))),
    knn_search(x, 1, block = rep(1:2, 3))
  )
  expect_messages({
    knn_search(x, 1, block = stats::setNames(rep(1:2, 3), rev(rownames(x))))
  })
})

test_that("what can be no values is refused as such, whatever its names are", {
  x <- random_matrix(24, 10)
  rownames(x) <- paste0("a", 1:24)
  other <- x
  rownames(other) <- paste0("b", 1:24)
  edges <- knn_graph(x, 3)
  for (code in list(
    quote(mutual_pairs(x, other, 3)), quote(knn_graph(x, 3, block = other)),
    quote(neighbour_mixing(edges, other)), quote(knn_predict(x, other)),
    quote(knn_predict(x, rep(1:2, 12), folds = other)),
    quote(compare_neighbours(t(x), other))
  )) {
    expect_wrong(eval(code), "not\\s+a\\s+numeric matrix")
  }
})

test_that("blocks and labels that are whole numbers are written in full", {
  x <- random_matrix(24, 10)
  values <- rep(c(1e5, 2e5, 123456), 8)
  full <- c("100000", "123456", "200000")
  for (values in list(values, as.integer(values))) {
    expect_identical(levels(knn_graph(x, 2, block = values)$block), full)
    pairs <- mutual_pairs(x, values, 2)
    expect_identical(levels(pairs$block_from), full)
    mixing <- neighbour_mixing(knn_graph(x, 3), values)
    expect_identical(levels(mixing$label), full)
    expect_identical(levels(fsknn:::check_class(values, NULL, 24, NULL)), full)
  }
  predicted <- knn_predict(x, factor(values))
  expect_true(all(
    paste0("probability_", full) %in% names(as.data.frame(predicted))
  ))
})
