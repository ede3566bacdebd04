apart <- function(shift = 1.5, num_points = 90) {
  x <- random_matrix(num_points, 4, seed = 6)
  # Groups have different sizes, so that weights matter.
  labels <- rep_len(c("u", "v", "w", "w"), num_points)
  x[labels == "v", ] <- x[labels == "v", ] + shift
  list(x = x, labels = labels)
}

test_that("purity, entropy and Simpson's number are those of a loop", {
  data <- apart()
  nn <- knn_search(data$x, 7, metric = "euclidean")
  labels <- factor(data$labels)
  for (self in c(FALSE, TRUE)) {
    for (weighted in c(FALSE, TRUE)) {
      found <- neighbour_mixing(
        nn, data$labels, self = self, weighted = weighted, permutations = NULL
      )
      for (i in c(1, 2, 50)) {
        of <- c(nn$index[i, ], if (self) i)
        share <- table(labels[of]) / if (weighted) table(labels) else 1
        share <- share / sum(share)
        there <- share[share > 0]
        expect_equal(found$purity[[i]], share[[data$labels[[i]]]])
        expect_equal(found$entropy[[i]], -sum(there * log2(there)))
        expect_equal(found$simpson[[i]], 1 / sum(share^2))
        expect_identical(
          as.character(found$most[[i]]), names(share)[[which.max(share)]]
        )
      }
    }
  }
})

test_that("purity is that of bluster, where that is defined", {
  skip_if_not_installed("bluster")
  data <- apart()
  k <- 12
  theirs <- bluster::neighborPurity(data$x, data$labels, k = k)
  limit <- stats::median(
    knn_search(data$x, k, metric = "euclidean")$distance[, k]
  )
  within <- within_search(data$x, limit, metric = "euclidean")
  found <- neighbour_mixing(
    within, data$labels, self = TRUE, weighted = TRUE, permutations = NULL
  )
  expect_equal(found$purity, theirs$purity)
  expect_identical(as.character(found$most), as.character(theirs$maximum))
})

test_that("chance is that of permuted labels, drawn once", {
  data <- apart()
  edges <- knn_graph(data$x, 6, metric = "euclidean")
  ask <- function(...) {
    set.seed(3)
    neighbour_mixing(edges, data$labels, permutations = 40, ...)
  }
  found <- ask()
  expect_identical(ask(), found)
  set.seed(3)
  drawn <- fsknn:::draw_permutations(90, 40)
  means <- apply(drawn, 2, function(order) {
    mean(neighbour_mixing(
      edges, data$labels[order], permutations = NULL
    )$purity)
  })
  chance <- attr(found, "chance")
  expect_equal(chance$chance[[1]], mean(means))
  expect_equal(chance$sd[[1]], stats::sd(means))
  expect_equal(chance$observed[[1]], mean(found$purity))
  expect_equal(chance$p[[1]], (sum(means >= chance$observed[[1]]) + 1) / 41)
  # The expected number follows from the sizes of the labels.
  size <- as.vector(table(data$labels))
  expect_equal(
    chance$chance[[1]], sum(size / 90 * (size - 1) / 89), tolerance = 0.05
  )
  # If strata are the labels, permutations change nothing.
  fixed <- attr(ask(strata = data$labels), "chance")
  expect_equal(fixed$chance, fixed$observed)
  expect_identical(fixed$p, rep(1, 3))
})

test_that("p is uniform where labels have nothing to do with the graph", {
  x <- random_matrix(60, 4, seed = 2)
  edges <- knn_graph(x, 5)
  set.seed(11)
  p <- replicate(120, {
    labels <- sample(rep_len(1:3, 60))
    attr(neighbour_mixing(edges, labels, permutations = 19), "chance")$p
  })
  # Of 120 draws with 20% chance of at most 0.2, 10 to 41 are below, except once
  # in 10,000.
  below <- rowSums(p <= 0.2)
  expect_true(all(below >= 9 & below <= 42))
})

test_that("graphs of all kinds, and points without neighbours, are taken", {
  data <- apart()
  edges <- threshold_graph(data$x, 0.9)
  alone <- setdiff(1:90, c(edges$from, edges$to))
  expect_gt(length(alone), 0)
  found <- neighbour_mixing(edges, data$labels, permutations = 5)
  expect_identical(found$neighbours, tabulate(c(edges$from, edges$to), 90))
  expect_identical(which(is.na(found$purity)), as.integer(alone))
  expect_identical(which(is.na(found$most)), as.integer(alone))
  own <- neighbour_mixing(edges, data$labels, permutations = 5, self = TRUE)
  expect_identical(own$purity[alone], rep(1, length(alone)))
  by_block <- knn_graph(data$x, 3, block = data$labels)
  mixed <- neighbour_mixing(by_block, data$labels, permutations = NULL)
  expect_equal(mixed$purity, rep(1 / 3, 90))
  expect_equal(mixed$simpson, rep(3, 90))
})

test_that("mixing prints, sums up, and is a table and a picture", {
  data <- apart()
  rownames(data$x) <- paste0("cell", 1:90)
  set.seed(2)
  found <- neighbour_mixing(
    knn_graph(data$x, 6, metric = "euclidean"), data$labels, permutations = 20
  )
  expect_snapshot({
    found
    summary(found)
    head(as.data.frame(found), 2)
    found[1:2, c("name", "purity")]
  })
  skip_if_not_installed("ggplot2")
  expect_s3_class(plot(found), "ggplot")
  expect_s3_class(plot(found, which = "simpson"), "ggplot")
})

test_that("names of labels are no names of points", {
  data <- apart()
  edges <- knn_graph(data$x, 3)
  named <- stats::setNames(data$labels, rev(seq_along(data$labels)))
  expect_identical(
    neighbour_mixing(edges, named, permutations = NULL),
    neighbour_mixing(edges, data$labels, permutations = NULL)
  )
})

test_that("wrong labels of neighbours are errors", {
  data <- apart()
  edges <- knn_graph(data$x, 3)
  expect_messages({
    neighbour_mixing(edges)
    neighbour_mixing(edges, 1:3)
    neighbour_mixing(edges, rep(1, 90))
    neighbour_mixing(edges, replace(data$labels, 4, NA))
    neighbour_mixing(edges, data$labels, self = NA)
    neighbour_mixing(edges, data$labels, permutations = 0)
    neighbour_mixing(edges, data$labels, permutations = NULL, strata = data$labels)
    neighbour_mixing("edges", data$labels)
  })
})

test_that("of points errors about strata speak of points", {
  graph <- knn_graph(random_matrix(20, 4), k = 3, metric = "euclidean")
  labels <- rep(c("a", "b"), 10)
  expect_error(
    neighbour_mixing(graph, labels, strata = 1:20),
    "Two points at least must be in one of"
  )
  expect_error(
    neighbour_mixing(graph, labels, strata = c(NA, 2:20)), "missing: point 1"
  )
})
