test_that("all pairs with a correlation of at least so much are edges", {
  x <- random_matrix(120, 9)
  rownames(x) <- paste0("gene", 1:120)
  r <- stats::cor(t(x))
  pairs <- which(upper.tri(r) & r >= 0.4, arr.ind = TRUE)
  for (backend in backends_here()) {
    edges <- threshold_graph(x, 0.4, backend = backend)
    expect_s3_class(edges, "fsknn_edges")
    expect_identical(names(edges), c("from", "to", "distance", "correlation"))
    expect_setequal(
      paste(edges$from, edges$to),
      paste(rownames(x)[pairs[, 1]], rownames(x)[pairs[, 2]])
    )
    expect_true(all(edges$correlation >= 0.4))
    expect_equal(edges$correlation, r[cbind(edges$from, edges$to)])
    first <- match(edges$from, rownames(x))
    expect_identical(order(first, edges$distance), seq_len(nrow(edges)))
  }
})

test_that("edges have the distances of the kNN graph, with each sign", {
  x <- random_matrix(60, 7)
  for (sign in fsknn:::metric_signs) {
    for (metric in c("pearson", "spearman")) {
      all <- knn_graph(x, 59, metric, sign)
      similarity <- switch(
        sign, signed = all$correlation, absolute = abs(all$correlation),
        negative = -all$correlation
      )
      expected <- all[similarity >= 0.3 & all$from < all$to, ]
      for (backend in backends_here()) {
        edges <- threshold_graph(x, 0.3, metric, sign, backend = backend)
        expect_identical(edges$from, expected$from)
        expect_identical(edges$to, expected$to)
        expect_identical(edges$distance, expected$distance)
        expect_identical(edges$correlation, expected$correlation)
      }
    }
  }
})

test_that("r itself is compared, not what is left of it in 1 - r", {
  # For this correlation, 1 - r is also that of a greater number.
  x <- random_matrix(400, 12)
  edges <- threshold_graph(x, 0)
  r <- edges$correlation[edges$correlation < 0.25]
  next_one <- r + 2^-54
  lost <- which(1 - r == 1 - next_one & next_one > r)
  expect_gt(length(lost), 0)
  at <- lost[[1]]
  expect_true(r[[at]] %in% threshold_graph(x, r[[at]])$correlation)
  expect_false(r[[at]] %in% threshold_graph(x, next_one[[at]])$correlation)
})

test_that("cosine and proportional have similarities, lengths have none", {
  x <- abs(random_matrix(50, 6))
  unit <- x / sqrt(rowSums(x^2))
  cosine <- tcrossprod(unit)
  edges <- threshold_graph(x, 0.9, "cosine")
  expect_identical(nrow(edges), sum(cosine[upper.tri(cosine)] >= 0.9))
  expect_named(edges, c("from", "to", "distance"))
  distance <- naive_distance(x, metric = "proportional")
  expect_identical(
    nrow(threshold_graph(x, 0.7, "proportional")),
    sum(1 - distance[upper.tri(distance)] >= 0.7)
  )
  expect_messages(threshold_graph(x, 0.5, "euclidean"))
})

test_that("isolated points are vertices of the graph", {
  x <- random_matrix(30, 5)
  x[7, ] <- 1
  edges <- threshold_graph(x, 0.99, constant = "isolate")
  graph <- as_igraph(edges)
  expect_equal(igraph::vcount(graph), 30L)
  expect_false(igraph::is_directed(graph))
  expect_equal(igraph::ecount(graph), nrow(edges))
})

test_that("its graph has similarity as weight, and prints as what it is", {
  x <- random_matrix(40, 6)
  edges <- threshold_graph(x, 0.5)
  graph <- as_igraph(edges, weight = "similarity")
  expect_identical(igraph::E(graph)$weight, edges$correlation)
  expect_false(igraph::is_directed(as_igraph(edges[1:3, ], mode = "mutual")))
  expect_output(print(edges), "Threshold graph: 40 points")
})

test_that("a subset's edges are those of the whole graph that it has part in", {
  x <- random_matrix(90, 7)
  rownames(x) <- paste0("g", 1:90)
  x[40:44, ] <- x[1:5, ]
  x[9, ] <- 1
  rows <- c(41L, 90L, 1L, 9L, 3L, 2L)
  subsets <- list(rows, rownames(x)[rows], 1:90 %in% rows, integer())
  for (backend in backends_here()) {
    for (sign in fsknn:::metric_signs) {
      find <- function(...) {
        threshold_graph(
          x, 0.3, sign = sign, constant = "isolate", backend = backend, ...
        )
      }
      whole <- find()
      for (subset in subsets) {
        some <- if (length(subset) == 0) character() else rownames(x)[rows]
        part <- whole[whole$from %in% some | whole$to %in% some, ]
        attr(part, "row.names") <- .set_row_names(nrow(part))
        expect_identical(find(subset = subset), part)
      }
    }
  }
  expect_identical(
    threshold_graph(x, 0.3, constant = "isolate", subset = 90:1),
    threshold_graph(x, 0.3, constant = "isolate")
  )
  expect_messages({
    threshold_graph(x, 0.3, subset = c(2, 2))
    threshold_graph(x, 0.3, subset = 91)
    threshold_graph(x, 0.3, subset = "g91")
  })
})

test_that("what can't be a similarity is said", {
  x <- abs(random_matrix(10, 4))
  expect_messages({
    threshold_graph(x)
    threshold_graph(x, 2)
    threshold_graph(x, -0.1, "proportional")
    threshold_graph(x, c(0.1, 0.2))
    threshold_graph(x, "high")
  })
})

test_that("a suggested similarity fits, however near to 1", {
  distance <- c(
    0, 2^-54, 2^-53, 7.9936057773011255e-15, 1e-14, 3e-9, 1.2345e-5, 0.1, 0.3,
    0.5, 0.7, 1 - 2^-53, 1, 1 + 2^-52, 1.7
  )
  text <- vapply(distance, fsknn:::similarity_that_fits, "")
  expect_true(all(1 - as.double(text) <= distance))
  expect_true(all(1 - as.double(text) >= distance * 0.98 - 2^-52))
  expect_identical(text[c(10, 13)], c("0.5", "0"))

  set.seed(3)
  x <- outer(rep(1, 400), rnorm(30)) + 1e-7 * rnorm(400 * 30)
  for (sign in c("signed", "negative")) {
    y <- if (sign == "negative") x * rep(c(1, -1), 200) else x
    least <- 0.5
    # A sample says first, then what the first suggestion finds.
    for (look in 1:3) {
      found <- tryCatch(
        threshold_graph(y, least, sign = sign, max_memory = "200 kB"),
        fsknn_size_error = identity
      )
      if (is.data.frame(found)) break
      text <- sub(
        ".*min_similarity = ([-0-9.e]+)`.*", "\\1", conditionMessage(found)
      )
      expect_gt(as.double(text), least)
      least <- as.double(text)
    }
    expect_gt(nrow(found), 1000)
  }
})
