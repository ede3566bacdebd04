test_that("neighbours are a row for each, in matrices and in lists", {
  x <- random_matrix(25, 5)
  nn <- knn_search(x, 3)
  rows <- as.data.frame(nn)
  expect_s3_class(rows, "data.frame", exact = TRUE)
  edges <- knn_graph(x, 3)
  expect_identical(
    rows, as.data.frame(as.list(edges[c("from", "to", "rank", "distance")]))
  )
  within <- within_search(x, 0.4)
  rows <- as.data.frame(within)
  expect_identical(rows$to, unlist(within$index))
  expect_identical(rows$distance, unlist(within$distance))
  expect_identical(rows$from, rep(1:25, lengths(within$index)))
  expect_identical(rows$rank[rows$from == 2], seq_along(within$index[[2]]))
  # Isolated points have no rows, and an answer may be empty.
  silent <- knn_search(rbind(x, 0), 3, constant = "isolate")
  expect_identical(nrow(as.data.frame(silent)), 75L)
  expect_identical(nrow(as.data.frame(within_search(x, 1e-9))), 0L)
})

test_that("clusters are a row for each point, or each cluster", {
  x <- random_matrix(60, 6)
  rownames(x) <- paste0("g", 1:60)
  clusters <- mst_knn(x, k = 1)
  points <- as.data.frame(clusters)
  expect_identical(points$name, rownames(x))
  expect_identical(points$cluster, unname(clusters$membership))
  expect_identical(points$size, clusters$sizes[points$cluster])
  facts <- summary(clusters)
  expect_s3_class(facts, "data.frame")
  expect_identical(facts$size, clusters$sizes)
  for (at in seq_len(nrow(facts))) {
    inside <- names(which(clusters$membership == at))
    own <- clusters$edges[clusters$edges$from %in% inside, ]
    degree <- table(factor(c(own$from, own$to), inside))
    expect_identical(facts$edges_at_centre[[at]], max(degree))
    expect_identical(facts$centre[[at]], names(which.max(degree)))
    if (nrow(own) > 0) {
      expect_equal(facts$median_distance[[at]], median(own$distance))
    }
    out <- xor(clusters$tree$from %in% inside, clusters$tree$to %in% inside)
    expect_identical(
      facts$distance_to_others[[at]], min(clusters$tree$distance[out])
    )
  }
  one <- summary(mst_knn(x[1:4, ], k = 3))
  expect_true(all(is.na(one$distance_to_others) == (nrow(one) == 1)))
})

test_that("filters, recalls, plans and statistics are tables", {
  x <- small_integers(12, 20, largest = 5)
  x[3, ] <- rep(c(1, 9), each = 10)
  rownames(x) <- letters[1:12]
  filter <- mdl_filter(x, rep(0:1, each = 10))
  rows <- as.data.frame(filter)
  expect_identical(rows$name, rownames(x))
  expect_identical(rows$keep, unname(filter$keep))
  expect_identical(rows$cuts[[3]], "5")
  expect_identical(nchar(rows$cuts) > 0, rows$keep)
  expect_equal(summary(filter)$entropy, 1)

  chosen <- alpha_beta_k(filter, solver = "none")
  expect_identical(as.data.frame(chosen)$index, chosen$index)
  expect_identical(as.data.frame(chosen)$name, chosen$features)

  y <- random_matrix(30, 5)
  recall <- knn_recall(knn_search(y[, 1:3], 4), knn_search(y, 5))
  expect_identical(as.data.frame(recall)$recall, recall$per_point$recall)
  expect_identical(as.data.frame(recall)$point, 1:30)

  row <- as.data.frame(knn_stats())
  expect_identical(nrow(row), 1L)
  expect_identical(row$seconds_call, knn_stats()$seconds[["call"]])
  plans <- lapply(c(100, 1000), function(n) {
    as.data.frame(knn_plan(c(n, 5), k = 3, backend = "cpu"))
  })
  plans <- do.call(rbind, plans)
  expect_identical(plans$num_points, c(100, 1000))
  expect_identical(plans$num_devices, c(0L, 0L))
})

test_that("summaries print", {
  x <- random_matrix(60, 6)
  rownames(x) <- paste0("g", 1:60)
  plan <- summary(knn_plan(c(2000, 50), 5, backend = "cpu", num_threads = 2))
  plan[c("bytes_peak", "bytes_free", "filter")] <- list(3e6, 8e9, "a filter")
  small <- plan
  small[c("bytes_free", "fits")] <- list(1e6, FALSE)
  y <- small_integers(12, 20, largest = 5)
  y[3, ] <- rep(c(1, 9), each = 10)
  expect_snapshot({
    summary(knn_search(x, 3))
    summary(mst_knn(x, k = 2))
    print(summary(mst_knn(x, k = 1)), n = 2)
    summary(mdl_filter(y, rep(0:1, each = 10)))
    summary(knn_recall(knn_search(x[, 1:3], 4), knn_search(x, 4)))
    plan
    small
  })
  stats <- knn_stats()
  expect_identical(summary(stats), stats)
  m <- metafeatures(x[1:4, ])
  expect_identical(summary(m), m)
})

test_that("a long list of long names fits the page", {
  long <- structure(
    list(
      index = 1:30, features = c(
        strrep("n", 120), paste0("NM_", 1000000 + 2:30, " - Contig41887_RC")
      ), k = 30L, alpha = 20L, beta = 10L, lower_bound = 29L, gap = 1 / 30,
      beta_bound = 11L, optimal = FALSE, solver = "none", seconds = 1
    ),
    class = "fsknn_alpha_beta_k"
  )
  expect_snapshot({
    long
    summary(long)
  })
  expect_true(all(nchar(format(long, n = 30)) <= 80))
})

test_that("long names of rows leave room for their cuts", {
  x <- small_integers(3, 20, largest = 5)
  x[3, ] <- rep(c(1, 9), each = 10)
  rownames(x) <- paste0(strrep("very ", 20), "long ", 1:3)
  lines <- format(mdl_filter(x, rep(0:1, each = 10)))
  expect_true(all(nchar(lines) <= 80))
  expect_match(lines[[6]], "very ve.*\\.\\.\\.  1.000; 5")
})

test_that("pictures of results have what their tables have", {
  skip_if_not_installed("ggplot2")
  x <- random_matrix(60, 6)
  within <- within_search(x, 0.4)
  number <- plot(within, which = "number")
  bars <- ggplot2::layer_data(number, 1)
  expect_equal(bars$y, tabulate(lengths(within$index) + 1L))
  expect_s3_class(plot(knn_search(x, 3)), "ggplot")

  clusters <- mst_knn(x, k = 1)
  sizes <- ggplot2::layer_data(plot(clusters, which = "size"), 1)
  expect_equal(sizes$y, clusters$sizes[clusters$sizes > 1])
  tree <- ggplot2::layer_data(plot(clusters, which = "tree"), 1)
  expect_equal(sum(tree$count), nrow(clusters$tree))

  y <- small_integers(12, 20, largest = 5)
  y[3, ] <- rep(c(1, 9), each = 10)
  filter <- mdl_filter(y, rep(0:1, each = 10))
  points <- plot(filter)$data
  expect_equal(points$gain, sort(filter$gain[filter$keep], decreasing = TRUE))

  recall <- knn_recall(knn_search(x[, 1:3], 4), knn_search(x, 4))
  bars <- ggplot2::layer_data(plot(recall), 1)
  shares <- table(factor(recall$per_point$recall, bars$x))
  expect_equal(bars$y, as.vector(shares))
})

test_that("the picture of a plan has the chunks that are computed", {
  skip_if_not_installed("ggplot2")
  for (splits in c(7, 8)) {
    plan <- knn_plan(
      c(splits * 48, 5), k = 2, backend = "cpu", num_threads = 3,
      chunk_size = 48
    )
    expect_equal(plan$num_splits, splits)
    cells <- fsknn:::plan_cells(plan)
    expect_equal(nrow(cells), plan$num_splits * plan$chunks_per_split)
    expect_equal(sum(cells$computed), plan$num_chunks)
    # Each unordered pair of splits occurs once.
    met <- cells[cells$computed, ]
    pair <- paste(pmin(met$row, met$column), pmax(met$row, met$column))
    expect_identical(anyDuplicated(pair), 0L)
    expect_equal(nrow(ggplot2::layer_data(plot(plan), 1)), plan$num_chunks)
  }
  queries <- knn_plan(
    c(100, 5), k = 2, query = 30, backend = "cpu", chunk_size = 16
  )
  cells <- fsknn:::plan_cells(queries)
  expect_true(all(cells$computed))
  large <- knn_plan(c(1e6, 100), backend = "cpu", num_threads = 12)
  expect_lte(nrow(fsknn:::plan_cells(large)), 1600)
  expect_no_error(ggplot2::ggplot_build(plot(large)))
})

test_that("as.data.frame() refuses arguments that it does not use", {
  x <- matrix(normal_numbers(240, 3), 20)
  set.seed(1)
  found <- compare_neighbours(x, rep(c("a", "b"), 6), k = 3, permutations = 2)
  graph <- knn_search(x, k = 2, backend = "cpu")
  expect_messages({
    as.data.frame(found, "edges")
    as.data.frame(found, NULL, "edges")
    as.data.frame(found, "pairs")
    as.data.frame(graph, paste0("p", 1:40))
    as.data.frame(graph, optional = NA)
  })
  methods <- grep(
    "^as[.]data[.]frame[.]fsknn_", ls(asNamespace("fsknn")), value = TRUE
  )
  for (name in methods) {
    method <- getFromNamespace(name, "fsknn")
    expect_error(method(list(), "edges"), class = "fsknn_argument_error")
  }
  nearest <- nearest_to(x, 1, k = 3)
  expect_identical(cbind(nearest, a = 1)$index, nearest$index)
})
