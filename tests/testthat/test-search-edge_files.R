# Edges that are written to a file during the search are those of the graph.

test_that("a file has the edges of the graph, all digits, in its order", {
  x <- random_matrix(70, 9)
  x[64:70, ] <- x[1:7, ]
  x[30, ] <- 1
  file <- withr::local_tempfile(fileext = ".csv")
  for (named in c(FALSE, TRUE)) {
    if (named) rownames(x) <- paste0("g", 1:70)
    for (metric in c("pearson", "cosine", "proportional")) {
      y <- if (metric == "proportional") exp(x) else x
      signs <- c("signed", if (metric == "pearson") "absolute")
      for (sign in signs) {
        for (least in c(0.2, 0.8)) {
          graph <- threshold_graph(
            y, least, metric, sign, constant = "isolate", backend = "cpu"
          )
          expect_gt(nrow(graph), 0)
          for (room in list(NULL, 24 * 80)) {
            told <- threshold_graph(
              y, least, metric, sign, constant = "isolate", backend = "cpu",
              file = file, max_memory = room
            )
            expect_identical(told$count, nrow(graph) + 0)
            found <- utils::read.csv(file)
            expect_identical(names(found), names(graph))
            for (column in names(found)) {
              expect_identical(found[[column]], graph[[column]])
            }
          }
        }
      }
    }
  }
})

test_that("records of CoMet are those of write_edges()", {
  x <- exp(random_matrix(40, 9))
  files <- replicate(2, withr::local_tempfile())
  for (metric in c("proportional", "pearson")) {
    graph <- threshold_graph(x, 0.3, metric, backend = "cpu")
    write_edges(graph, files[[1]], "comet")
    threshold_graph(x, 0.3, metric, backend = "cpu", file = files[[2]],
                    format = "comet", max_memory = 40 * 24)
    expect_identical(
      readBin(files[[1]], "raw", 1e6), readBin(files[[2]], "raw", 1e6)
    )
  }
  expect_message(
    threshold_graph(x, 1, "proportional", backend = "cpu", file = files[[2]],
                    format = "comet", verbose = TRUE)
  )
  expect_identical(file.size(files[[2]]), 0)
})

test_that("a file of edges prints, and wrong ones are errors", {
  x <- counts_matrix(8, 4)
  withr::local_dir(withr::local_tempdir())
  expect_snapshot(
    threshold_graph(x, 0.5, "proportional", backend = "cpu", file = "found.csv")
  )
  expect_messages({
    threshold_graph(x, 0.5, file = "found.csv", subset = 1)
    threshold_graph(x, 0.5, file = "found.csv", checkpoint = "here")
    threshold_graph(x, 0.5, file = "found.csv", na = "pairwise")
    threshold_graph(x, -0.5, file = "found", format = "comet")
    threshold_graph(x, 0.5, file = "found")
  })
})
