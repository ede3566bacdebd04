# Makes edges from the form of cpp_knn_search(); the third of four points is
# isolated.
small_edges <- function() {
  fsknn:::found_to_edges(
    list(
      from = c(1L, 1L, 2L, 2L, 4L, 4L), to = c(2L, 3L, 1L, 4L, 2L, 1L),
      rank = c(1L, 2L, 1L, 2L, 1L, 2L),
      distance = c(0.5, 1, 0.5, 0.75, 0.75, 2), correlation = NULL
    ),
    num_points = 4L, k = 2L, names = c("a", "b", "c", "d"),
    metric = "euclidean", sign = "signed"
  )
}

test_that("what the core finds becomes edges with names", {
  edges <- small_edges()
  expect_s3_class(edges, c("fsknn_edges", "data.frame"), exact = TRUE)
  expect_named(edges, c("from", "to", "rank", "distance"))
  expect_identical(edges$from, c("a", "a", "b", "b", "d", "d"))
  expect_identical(edges$to, c("b", "c", "a", "d", "b", "a"))
  expect_identical(edges$rank, c(1L, 2L, 1L, 2L, 1L, 2L))
  expect_identical(attr(edges, "vertices")$name, c("a", "b", "c", "d"))
  expect_identical(attr(edges, "k"), 2L)
})

test_that("many names are put where they belong", {
  names <- paste0("p", 1:1000)
  at <- sample.int(1000, 5000, replace = TRUE)
  expect_identical(fsknn:::cpp_names_at(names, at), names[at])
  expect_identical(
    fsknn:::cpp_names_at(as.character(1:9), 9:1), rev(as.character(1:9))
  )
  expect_identical(fsknn:::cpp_names_at("a", integer()), character())
  for (at in list(0L, 2L, -1L, NA_integer_, c(1L, .Machine$integer.max))) {
    expect_error(fsknn:::cpp_names_at("a", at), "no such name")
  }
})

test_that("the core's edges are its matrices, row by row", {
  x <- random_matrix(60, 7, seed = 41)
  x[c(1, 20, 21, 60), ] <- 2
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(x, metric)
    x[c(1, 20, 21, 60), ] <- undefined_value(metric)
    for (k in c(1, 5)) {
      nn <- knn_search(
        x, k, metric, sign, constant = "isolate", backend = backend
      )
      edges <- knn_graph(
        x, k, metric, sign, constant = "isolate", backend = backend
      )
      points <- which(!is.na(nn$index[, 1]))
      expect_identical(edges$from, rep(points, each = k))
      expect_identical(edges$to, as.vector(t(nn$index[points, ])))
      expect_identical(edges$rank, rep.int(seq_len(k), length(points)))
      expect_identical(edges$distance, as.vector(t(nn$distance[points, ])))
    }
  })
})

test_that("no edges at all are still an edge data frame", {
  edges <- fsknn:::found_to_edges(
    list(
      from = integer(), to = integer(), rank = integer(), distance = double()
    ),
    num_points = 3L, k = 2L, metric = "pearson", sign = "signed"
  )
  expect_identical(nrow(edges), 0L)
  expect_identical(nrow(attr(edges, "vertices")), 3L)
  expect_snapshot(edges)
})

test_that("taking rows keeps what the edges know", {
  edges <- small_edges()
  kept <- attributes(edges)[c("vertices", "metric", "sign", "k")]
  for (part in list(edges[edges$rank == 1, ], head(edges, 2),
                    subset(edges, distance < 1), edges[order(edges$to), ],
                    edges[c("from", "to", "distance")],
                    edges[, c("from", "to")])) {
    expect_s3_class(part, "fsknn_edges")
    expect_identical(attributes(part)[names(kept)], kept)
  }
})

test_that("a part without both ends is a plain data frame or vector", {
  edges <- small_edges()
  part <- edges["distance"]
  expect_s3_class(part, "data.frame", exact = TRUE)
  expect_null(attr(part, "vertices"))
  expect_identical(edges[, "to"], edges$to)
  expect_identical(edges[["rank"]], edges$rank)
  expect_identical(edges[2, "to"], "c")
})

test_that("it behaves as the data frame that it is", {
  edges <- small_edges()
  edges$twice <- 2 * edges$distance
  expect_identical(edges$twice[[1]], 1)
  expect_s3_class(edges, "fsknn_edges")
  plain <- as.data.frame(edges)
  expect_identical(nrow(plain), 6L)
  expect_identical(nrow(merge(edges, data.frame(to = "a"))), 2L)
})

test_that("printing gives a line of facts and the first edges", {
  edges <- small_edges()
  expect_snapshot({
    edges
    print(edges, n = 2)
    print(edges[0, ])
    print(edges["distance"])
    print(edges[1, ])
  })
})

test_that("printing tells the sign of a correlation", {
  x <- rbind(a = c(1, 2, 3), b = c(3, 2, 1), c = c(1, 3, 2))
  edges <- knn_graph(x, 1, sign = "absolute")
  expect_identical(
    fsknn:::format_edges_header(edges),
    "kNN graph: 3 points of 3 features, 3 edges, k = 1, pearson (absolute)"
  )
})

test_that("every graph of a matrix says how many features its points have", {
  x <- random_matrix(60, 7)
  edges <- knn_graph(x, 6)
  graphs <- list(
    edges, edges[1:7, ], undirected_edges(edges),
    combine_graphs(edges, knn_graph(x, 3)), threshold_graph(x, 0.5),
    spanning_forest(edges), mst_knn(edges)$edges, mst_knn(x)$tree,
    knn_graph(x, 2, subset = 1:5),
    knn_graph(t(x), 2, points = "columns")
  )
  for (graph in graphs) {
    expect_match(
      fsknn:::format_edges_header(graph), "60 points of 7 features, "
    )
  }
  expect_match(
    fsknn:::format_edges_header(knn_graph(t(x), 2)), "7 points of 60 features"
  )
  expect_output(print(mst_knn(x)), "MST-kNN: 60 points of 7 features, ")
  # The number is an attribute, so it does not depend on the columns.
  expect_identical(attr(edges, "num_features"), 7L)
  expect_null(attr(edges["distance"], "num_features"))
  # Graphs of matrices with different widths have no common width.
  expect_null(
    attr(combine_graphs(edges, knn_graph(x[, 1:5], 3)), "num_features")
  )
})

test_that("edges of unknown origin print as well", {
  edges <- fsknn:::new_knn_edges(
    list(from = 1L, to = 2L, rank = 1L, distance = 0.5),
    vertices = data.frame(name = 1:2)
  )
  expect_snapshot(edges)
})

test_that("a column that is no vector is an error that names it", {
  x <- random_matrix(30, 5)
  edges <- knn_graph(x, 3, backend = "cpu")
  verbs <- list(
    as_igraph, as_sparse, mst_knn, as_knn, undirected_edges, summary, snn_graph,
    function(edges) knn_recall(edges, edges),
    function(edges) edge_significance(edges, x),
    function(edges) neighbour_mixing(edges, rep(1:2, 15)),
    function(edges) combine_graphs(edges, edges)
  )
  if (requireNamespace("ggraph", quietly = TRUE)) {
    verbs <- c(verbs, function(edges) plot_neighbourhood(edges, 1))
  }
  for (at in seq_along(edges)) {
    column <- edges[[at]]
    bad <- edges
    # A list or a matrix, in turn.
    bad[[at]] <- if (at %% 2) as.list(column) else cbind(column, 1)
    for (verb in verbs) {
      expect_wrong(verb(bad), paste0("`", names(edges)[[at]], "` is"))
    }
  }
  # A column that is never read may be a list.
  edges$note <- lapply(seq_len(nrow(edges)), seq_len)
  expect_s3_class(as_igraph(edges), "igraph")
})

test_that("points whose names are large numbers are found and shown in full", {
  x <- random_matrix(30, 5)
  ids <- 1:30 * 1e5
  edges <- knn_graph(x, 3, backend = "cpu")
  edges$from <- ids[edges$from]
  edges$to <- ids[edges$to]
  attr(edges, "vertices") <- data.frame(name = ids, score = 1:30)
  shown <- function(x) utils::capture.output(print(x))
  for (object in list(edges, summary(edges), summary(mst_knn(edges)))) {
    expect_false(any(grepl("[0-9]e[+][0-9]", shown(object))))
  }
  expect_match(shown(edges), "\\b100000\\b", all = FALSE)
  skip_if_not_installed("ggraph")
  for (point in list(1e5, "100000")) {
    picture <- plot_neighbourhood(edges, point, colour = "score")
    points <- attr(picture$data, "picture")$points
    expect_true("100000" %in% points$label)
    expect_false(anyNA(points$value))
  }
})

test_that("ids that are factors of large numbers match these numbers", {
  x <- random_matrix(30, 5)
  plain <- knn_graph(x, 3, "euclidean", backend = "cpu")
  ids <- 1:30 * 1e5
  named <- function(name) {
    edges <- plain
    edges$from <- name[plain$from]
    edges$to <- name[plain$to]
    attr(edges, "vertices") <- data.frame(name = name)
    edges
  }
  text <- named(sprintf("%.0f", ids))
  kinds <- list(number = named(ids), factor = named(factor(ids)))
  rownames(x) <- attr(text, "vertices")$name
  in_file <- function(edges) {
    file <- withr::local_tempfile(fileext = ".csv")
    write_edges(edges, file)
    utils::read.csv(file)
  }
  verbs <- list(
    as_igraph = function(edges) igraph::V(as_igraph(edges))$name,
    as_sparse = function(edges) as_sparse(edges)@i,
    mst_knn = function(edges) fsknn:::id_text(mst_knn(edges)$tree$from),
    undirected = function(edges) fsknn:::id_text(undirected_edges(edges)$to),
    forest = function(edges) fsknn:::id_text(spanning_forest(edges)$to),
    recall = function(edges) knn_recall(edges, text),
    first = function(edges) combine_graphs(edges, text),
    second = function(edges) combine_graphs(text, edges),
    significance = function(edges) {
      withr::local_seed(1)
      edge_significance(edges, x, permutations = 20)$p_value
    },
    write_edges = in_file,
    print = function(edges) utils::capture.output(print(edges))
  )
  for (verb in names(verbs)) {
    ask <- verbs[[verb]]
    for (kind in names(kinds)) {
      expect_equal(ask(kinds[[kind]]), ask(text), label = paste(verb, kind))
    }
  }
  expect_identical(dimnames(as_sparse(kinds$factor)), dimnames(as_sparse(text)))
  expect_identical(as_knn(kinds$factor), as_knn(text))
  # There is a single id, or levels are names.
  expect_identical(fsknn:::id_text(factor(c(1e5, NA))), c("100000", NA))
  expect_identical(fsknn:::id_text(factor(c("1e+05", "b"))), c("1e+05", "b"))
  expect_identical(fsknn:::id_text(factor("1e5")), "1e5")
})

test_that("triples of points whose names are large numbers are shown in full", {
  triples <- threshold_triples(exp(random_matrix(12, 5)), 0)
  ids <- 1:12 * 1e5
  for (end in c("from", "to", "third")) {
    triples[[end]] <- ids[triples[[end]]]
  }
  attr(triples, "vertices") <- data.frame(name = ids)
  for (object in list(triples, summary(triples))) {
    lines <- utils::capture.output(print(object))
    expect_false(any(grepl("[0-9]e[+][0-9]", lines)))
  }
})
