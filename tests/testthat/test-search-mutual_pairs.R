naive_mutual <- function(x, block, k, metric) {
  distance <- naive_distance(x, metric = metric)
  near <- function(i, b) {
    of <- setdiff(which(block == b), i)
    of[order(distance[i, of], of)][seq_len(k)]
  }
  pairs <- NULL
  for (i in seq_len(nrow(x))) {
    for (j in seq_len(nrow(x))) {
      if (i < j && block[i] != block[j] && j %in% near(i, block[j]) &&
            i %in% near(j, block[i])) {
        pairs <- rbind(pairs, c(
          i, j, match(i, near(j, block[i])), match(j, near(i, block[j]))
        ))
      }
    }
  }
  pairs
}

test_that("mutual pairs are those of a loop over blocks", {
  for (data in list(random_matrix(50, 5), small_integers(50, 4, largest = 2))) {
    block <- rep_len(c("a", "b", "b", "c"), 50)
    for (metric in c("euclidean", "manhattan")) {
      for (backend in backends_here()) {
        found <- mutual_pairs(data, block, 3, metric, backend = backend)
        expect_identical(
          unname(as.matrix(as.data.frame(found)[
            c("from", "to", "rank_from", "rank_to")
          ])),
          naive_mutual(data, block, 3, metric) + 0L
        )
        expect_identical(as.character(found$block_from), block[found$from])
        expect_identical(as.character(found$block_to), block[found$to])
        expect_identical(
          found$distance,
          vapply(seq_len(nrow(found)), function(e) {
            knn_query(
              data[found$to[e], , drop = FALSE],
              data[found$from[e], , drop = FALSE], 1, metric
            )$distance[[1]]
          }, 0)
        )
      }
    }
  }
})

test_that("mutual pairs of two blocks are those of BiocNeighbors", {
  skip_if_not_installed("BiocNeighbors")
  x <- random_matrix(130, 6)
  block <- rep_len(c(2, 1, 1), 130)
  found <- mutual_pairs(x, block, 4, metric = "euclidean")
  one <- which(block == 1)
  two <- which(block == 2)
  theirs <- BiocNeighbors::findMutualNN(x[one, ], x[two, ], k1 = 4)
  low <- pmin(one[theirs$first], two[theirs$second])
  high <- pmax(one[theirs$first], two[theirs$second])
  order <- order(low, high)
  expect_identical(found$from, low[order])
  expect_identical(found$to, high[order])
})

test_that("mutual pairs are edges: names, correlations, igraph, print", {
  x <- random_matrix(40, 7)
  rownames(x) <- paste0("cell", 1:40)
  found <- mutual_pairs(x, rep_len(1:2, 40), 2)
  expect_s3_class(found, "fsknn_edges")
  expect_false(attr(found, "directed"))
  expect_equal(
    found$correlation, stats::cor(t(x))[cbind(found$from, found$to)],
    tolerance = 1e-12
  )
  graph <- as_igraph(found)
  expect_false(igraph::is_directed(graph))
  expect_identical(igraph::ecount(graph), as.numeric(nrow(found)))
  expect_wrong(mst_knn(found))
  expect_snapshot(print(found, n = 2))
  expect_messages({
    mutual_pairs(x)
    mutual_pairs(x, NULL)
    mutual_pairs(x, rep("one", 40))
    mutual_pairs(x, rep(1:2, c(38, 2)), k = 3)
  })
})
