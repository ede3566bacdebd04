# `make demo` runs this script on real data.
test_that("the demo says what it found, biology first, and writes its files", {
  skip_unless_long()
  for (package in c("ALL", "annotate", "Biobase", "ggplot2", "ggraph")) {
    skip_if_not_installed(package)
  }
  script <- system.file("scripts", "leukaemia.R", package = "fsknn")
  folder <- withr::local_tempdir()
  said <- withr::with_envvar(
    c(R_LIBS = paste(.libPaths(), collapse = ":")),
    system2(
      file.path(R.home("bin"), "Rscript"), c(script, folder), stdout = TRUE,
      stderr = FALSE
    )
  )
  expect_match(said, "Gene symbols are as of the array's time", all = FALSE)
  expect_match(said, "^Nearest to CD3D: +LCK SH2D1A CD3G", all = FALSE)
  where <- function(words) grep(words, said)[[1]]
  expect_lt(where("T cells"), where("^kNN plan"))
  expect_setequal(list.files(folder), c(
    "leukaemia.csv", "leukaemia.graphml", "neighbourhood.graphml",
    "neighbourhood.png"
  ))

  # Points are labelled by gene, or by probe if there is no gene.
  labels_of <- function(file) {
    graph <- igraph::read_graph(file.path(folder, file), "graphml")
    list(graph, igraph::V(graph)$label)
  }
  whole <- labels_of("leukaemia.graphml")
  expect_identical(
    whole[[2]][igraph::V(whole[[1]])$name %in% c("38319_at", "1000_at")],
    c("MAPK3", "CD3D")
  )
  blank <- igraph::V(whole[[1]])$symbol == ""
  expect_identical(whole[[2]][blank], igraph::V(whole[[1]])$name[blank])
  small <- labels_of("neighbourhood.graphml")
  expect_equal(igraph::vcount(small[[1]]), 41)
  expect_true(all(c("B2M", "HLA-C") %in% small[[2]]))
  expect_lt(file.size(file.path(folder, "neighbourhood.graphml")), 1e5)
})
