# Some of these packages have, or had, a verb with a name that we once used.
# Attached after this package, they would mask ours.
neighbours_of_ours <- c(
  "destiny", "knn.covertree", "IRanges", "GenomicRanges",
  "SummarizedExperiment", "uwot", "igraph", "BiocNeighbors", "spatstat.geom",
  "FNN", "RANN", "dbscan", "bluster", "scran", "scater", "Seurat", "WGCNA"
)

test_that("no verb has the name of one of a package that is used beside it", {
  # Whole packages are attached, so this needs another process.
  child <- start_child(c(
    "ours <- getNamespaceExports('fsknn')",
    sprintf("packages <- %s", paste(deparse(neighbours_of_ours), collapse = "")),
    "attached <- vapply(packages, function(package) {",
    "  suppressWarnings(suppressMessages(",
    "    require(package, character.only = TRUE, quietly = TRUE)",
    "  ))",
    "}, NA)",
    "others <- c(packages[attached], 'stats', 'graphics', 'utils', 'base')",
    "exports <- unlist(lapply(others, getNamespaceExports))",
    "found <- vapply(ours, function(name) {",
    "  identical(get(name, globalenv()), getExportedValue('fsknn', name))",
    "}, NA)",
    "say(sum(attached), 'attached', ours[!found], intersect(ours, exports))"
  ))
  said <- said_by(child, 240)
  expect_identical(said[-1], "attached")
  skip_if(said[[1]] == "0", "none of these packages is installed")
})

test_that("an edge data frame is called `edges` by every verb that needs one", {
  takers <- c(
    "as_igraph", "as_sparse", "plot_neighbourhood", "soft_threshold",
    "spanning_forest", "sparse_tom", "undirected_edges",
    "write_edges", "write_h5ad_neighbours", "write_knn"
  )
  for (verb in takers) {
    arguments <- names(formals(getExportedValue("fsknn", verb)))
    expect_identical(arguments[[1]], "edges", info = verb)
  }
  all <- lapply(getNamespaceExports("fsknn"), function(verb) {
    names(formals(getExportedValue("fsknn", verb)))
  })
  expect_false("graph" %in% unlist(all))
})

test_that("every verb refuses an argument that it does not know", {
  edges <- knn_graph(random_matrix(20, 4), 2)
  # These arguments before the dots avoid another error that would come first.
  first <- list(
    combine_graphs = list(edges, edges),
    mst_knn = list(random_matrix(20, 4))
  )
  # test-search-options.R has the verbs that take options.
  others <- setdiff(getNamespaceExports("fsknn"), fsknn:::option_verbs)
  for (verb in others) {
    call <- getExportedValue("fsknn", verb)
    has_dots <- "..." %in% names(formals(call))
    error <- expect_error(
      do.call(call, c(first[[verb]], list(unheard_of = 1))),
      "unheard_of|unused argument", info = verb
    )
    expect_identical(
      inherits(error, "fsknn_argument_error"), has_dots, info = verb
    )
  }
  for (graph in list(edges, as_igraph(edges))) {
    expect_wrong(mst_knn(graph, unheard_of = 1), "unheard_of")
  }
})
