# Makes six points: 1 <-> 2, 3 -> 1, and the separate 4 <-> 5. Point 6 has no
# edge.
few_edges <- function(correlation = NULL) {
  columns <- list(
    from = letters[c(1, 2, 3, 4, 5)], to = letters[c(2, 1, 1, 5, 4)],
    rank = rep(1L, 5), distance = c(0.1, 0.1, 0.4, 0.2, 0.2)
  )
  columns$correlation <- correlation
  new_knn_edges(
    columns, vertices = data.frame(name = letters[1:6]), metric = "pearson",
    sign = "signed", k = 1L, num_features = 12L
  )
}

test_that("a summary counts points, components, directions and degrees", {
  facts <- summary(few_edges())
  expect_s3_class(facts, "summary.fsknn_edges")
  expect_identical(facts$num_points, 6L)
  expect_identical(facts$num_edges, 5L)
  expect_identical(facts$isolated, 1L)
  expect_equal(facts$components, c(3, 2))
  expect_equal(facts$reciprocity, 4 / 5)
  expect_identical(facts$in_degree, c(2L, 1L, 0L, 1L, 1L, 0L))
  expect_identical(facts$hubs$name, c("a", "b", "d", "e"))
  expect_identical(facts$hubs$in_degree, c(2L, 1L, 1L, 1L))
  expect_identical(nrow(summary(few_edges(), hubs = 1)$hubs), 1L)
})

test_that("an undirected graph has degrees, and no direction", {
  facts <- summary(undirected_edges(few_edges()))
  expect_false(facts$directed)
  expect_null(facts$reciprocity)
  expect_identical(facts$in_degree, c(2L, 1L, 1L, 1L, 1L, 0L))
  expect_identical(nrow(facts$quantiles), 1L)
  tree <- spanning_forest(knn_graph(random_matrix(20, 5), 3))
  expect_false(summary(tree)$directed)
  expect_identical(sum(summary(tree)$in_degree), 2L * nrow(tree))
})

test_that("quantiles of each rank are those of quantile()", {
  edges <- knn_graph(random_matrix(61, 7), k = 4, sign = "absolute")
  facts <- summary(edges)
  expect_identical(facts$value, "|correlation|")
  signed <- knn_graph(random_matrix(9, 5), 2)
  expect_identical(summary(signed)$value, "correlation")
  expect_identical(facts$quantiles$rank, 1:4)
  expect_identical(facts$quantiles$edges, rep(61L, 4))
  for (rank in 1:4) {
    expect_equal(
      unlist(facts$quantiles[rank, 3:7], use.names = FALSE),
      quantile(
        abs(edges$correlation[edges$rank == rank]), c(0.05, 0.25, 0.5, 0.75, 0.95),
        names = FALSE
      )
    )
  }
  by_distance <- summary(knn_graph(random_matrix(30, 5), 2, "euclidean"))
  expect_identical(by_distance$value, "distance")
})

test_that("any edges have a summary, none at all and rows of some too", {
  edges <- few_edges(c(0.9, 0.9, -0.6, 0.8, 0.8))
  expect_snapshot({
    summary(edges)
    summary(undirected_edges(few_edges()))
    summary(edges[0, ])
  })
  lost <- as.data.frame(as.list(few_edges()))
  class(lost) <- c("fsknn_edges", "data.frame")
  expect_messages({
    summary(lost)
    summary(edges, hub = 3)
  })
})

test_that("many ranks and long names fit the page", {
  x <- random_matrix(150, 5)
  rownames(x) <- paste0("a long name of a probe that nobody can say ", 1:150)
  lines <- format(summary(knn_graph(x, k = 60)))
  expect_true(all(nchar(lines) <= 80))
  shown <- trimws(substr(utils::tail(lines, 7), 1, 8))
  expect_identical(shown, c("1", "2", "5", "10", "20", "50", "60"))
})

test_that("pictures show the quantiles, and whole degrees", {
  skip_if_not_installed("ggplot2")
  edges <- knn_graph(random_matrix(80, 6), k = 5)
  facts <- summary(edges)
  by_rank <- plot(edges, which = "rank")
  ribbon <- ggplot2::layer_data(by_rank, 1)
  expect_equal(ribbon$ymin, facts$quantiles$q05)
  expect_equal(ribbon$ymax, facts$quantiles$q95)
  expect_equal(ggplot2::layer_data(by_rank, 3)$y, facts$quantiles$median)
  expect_identical(by_rank$labels$y, "Correlation r (pearson)")
  degrees <- plot(edges, which = "degree")
  bars <- ggplot2::layer_data(degrees, 1)
  expect_equal(sum(bars$y), 80)
  expect_equal(bars$y[bars$x == 3], sum(facts$in_degree == 3))
  expect_equal(ggplot2::layer_data(degrees, 2)$xintercept, 5)
  # Without ranks, the plot shows the distribution.
  tree <- plot(undirected_edges(edges), which = "rank")
  expect_equal(sum(ggplot2::layer_data(tree, 1)$y), nrow(undirected_edges(edges)))
  one <- plot(knn_graph(random_matrix(20, 5), 1), which = "rank")
  expect_no_error(ggplot2::ggplot_build(one))
  expect_messages(plot(edges, which = "ranks"))
})

test_that("both pictures stand side by side, of a graph without edges too", {
  skip_if_not_installed("patchwork")
  edges <- knn_graph(random_matrix(80, 6), k = 5)
  both <- plot(edges)
  expect_s3_class(both, "patchwork")
  expect_s3_class(plot(edges[0, ]), "patchwork")
  file <- withr::local_tempfile(fileext = ".pdf")
  expect_no_warning(ggplot2::ggsave(file, both, width = 7, height = 5))
  expect_no_warning(
    ggplot2::ggsave(file, plot(edges[0, ]), width = 7, height = 5)
  )
})
