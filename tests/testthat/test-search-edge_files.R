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

test_that("stages are parts of the graph in its order", {
  x <- random_matrix(61, 9)
  x[50:61, ] <- x[1:12, ]
  x[30, ] <- 1
  loci <- genotype_matrix(61, 9)
  loci[30, ] <- 1
  file <- withr::local_tempfile(fileext = ".csv")
  for (metric in c("pearson", "proportional", "ccc")) {
    y <- switch(metric, pearson = x, proportional = exp(x), ccc = loci)
    if (metric != "pearson") rownames(y) <- paste0("g", 1:61)
    for (backend in backends_here()) {
      ask <- function(...) {
        threshold_graph(
          y, 0.3, metric, constant = "isolate", backend = backend, ...
        )
      }
      graph <- ask()
      for (of in c(1, 3, 100)) {
        stages <- lapply(seq_len(of), function(i) ask(stage = c(i, of)))
        expect_identical(do.call(rbind, rev(stages)), graph)
        expect_identical(stages[[1]]$from, head(graph$from, nrow(stages[[1]])))
        written <- lapply(seq_len(of), function(i) {
          found <- ask(stage = c(i, of), file = file)
          expect_identical(found$count, nrow(stages[[i]]) + 0)
          utils::read.csv(file, stringsAsFactors = FALSE)
        })
        expect_identical(
          unlist(lapply(written, `[[`, "distance")), graph$distance
        )
      }
      # Each has about a third of the pairs.
      pairs <- vapply(1:3, function(i) {
        nrow(threshold_graph(x[-30, ], -1, backend = backend, stage = c(i, 3)))
      }, 1L)
      expect_identical(sum(pairs), 1770L)
      expect_true(all(abs(pairs - 590) < 60))
    }
  }
  whole <- do.call(rbind, stages)
  expect_identical(nrow(knn_verify(whole, y)$differences), 0L)
  expect_output(print(stages[[1]]), "stage 1 of 100", fixed = TRUE)
  # Rows of stages are edges as any others.
  expect_null(attr(stages[[1]][1:2, ], "stage"))
})

test_that("stages that don't fit are errors", {
  x <- random_matrix(20, 5)
  one <- threshold_graph(x, 0.5, stage = c(1, 3))
  expect_messages({
    threshold_graph(x, 0.5, stage = 2)
    threshold_graph(x, 0.5, stage = c(1, 2), subset = 1)
    threshold_graph(x, 0.5, stage = c(1, 2), checkpoint = "here")
    threshold_graph(x, 0.5, stage = c(1, 2), na = "pairwise")
    threshold_graph(exp(x), 0, "proportional", stage = c(1, 2), file = "f",
                    format = "comet_bytes")
    rbind(one, one)
    rbind(one, threshold_graph(x, 0.4, stage = c(2, 3)))
    rbind(one, threshold_graph(x, 0.5))
    knn_verify(one, x)
  })
  expect_error(
    threshold_graph(x, -1, stage = c(1, 2), max_memory = 24 * 20),
    class = "fsknn_size_error"
  )
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
