query <- function(x, new, k) {
  knn_query(x, new, k, metric = "euclidean", backend = "cpu")
}

test_that("points of the map have their own coordinates", {
  x <- random_matrix(100, 3, seed = 1)
  for (local in list(NULL, 5)) {
    map <- diffusion_map(near(x, 10), 4, local = local)
    expect_identical(
      predict(map, query(x, x[7:30, ], 10)), map$coordinates[7:30, ]
    )
  }
})

test_that("a point's own neighbours give its coordinates", {
  # With all other points as neighbours, this is the equation of the
  # eigenvector.
  x <- random_matrix(40, 2, seed = 2)
  nn <- near(x, 39)
  for (alpha in c(0, 1)) {
    for (local in list(NULL, 6)) {
      map <- diffusion_map(nn, 3, alpha = alpha, local = local)
      expect_equal(predict(map, nn), map$coordinates, tolerance = 1e-8)
      lists <- list(
        index = lapply(1:40, function(i) rev(nn$index[i, ])),
        distance = lapply(1:40, function(i) rev(nn$distance[i, ]))
      )
      expect_equal(predict(map, lists), map$coordinates, tolerance = 1e-8)
    }
  }
  y <- random_matrix(40, 5, seed = 2)
  edges <- knn_graph(y, 39, backend = "cpu")
  map <- diffusion_map(edges, 3)
  expect_equal(
    predict(map, knn_search(y, 39, backend = "cpu")), map$coordinates,
    tolerance = 1e-8
  )
})

test_that("new points come where they belong", {
  at <- 2 * pi * seq_len(300) / 300
  x <- cbind(cos(at), sin(at))
  map <- diffusion_map(near(x, 12), 2)
  between <- at[1:299] + pi / 300
  found <- predict(map, query(x, cbind(cos(between), sin(between)), 12))
  expected <- (map$coordinates[1:299, ] + map$coordinates[2:300, ]) / 2
  expect_lt(max(abs(found - expected)), 0.002)
  # The result is finite at any distance.
  far <- predict(map, query(x, rbind(c(1e4, 0)), 12))
  expect_true(all(is.finite(far)))
})

test_that("components are not mixed", {
  x <- random_matrix(64, 2, seed = 3)
  x[41:60, ] <- x[41:60, ] + 20
  x[61:64, ] <- x[61:64, ] + 60
  map <- diffusion_map(near(x, 3), 3, epsilon = 1)
  skip_if(length(map$sizes) != 3)
  new <- rbind(x[1, ] + 0.01, x[50, ] + 0.01, x[62, ] + 0.01)
  found <- predict(map, query(x, new, 50))
  own <- predict(map, list(
    index = list(query(x[1:40, ], new[1, , drop = FALSE], 40)$index[1, ]),
    distance = list(query(x[1:40, ], new[1, , drop = FALSE], 40)$distance[1, ])
  ))
  expect_equal(found[1, ], own[1, ])
  expect_false(anyNA(found[2, ]))
  expect_true(all(is.na(found[3, ])))
})

test_that("scales of new points follow the rule for points that are the same", {
  x <- random_matrix(50, 2, seed = 4)
  map <- diffusion_map(near(x, 8), 2, local = 2)
  none <- predict(map, list(index = matrix(NA_integer_, 1, 2),
                            distance = matrix(NA_real_, 1, 2)))
  expect_true(all(is.na(none)))
  # The point's own scale is its second distance, or the only one.
  by_hand <- function(index, distance, own) {
    w <- exp(-distance^2 / (own * map$scale[index])) / map$density[index]
    colSums(w / sum(w) * map$coordinates[index, , drop = FALSE]) /
      map$eigenvalues[1, ]
  }
  index <- c(3L, 9L, 11L)
  distance <- c(0.2, 0.3, 0.5)
  give <- function(n) {
    list(index = t(index[seq_len(n)]), distance = t(distance[seq_len(n)]))
  }
  expect_equal(predict(map, give(3))[1, ], by_hand(index, distance, 0.3))
  expect_equal(predict(map, give(1))[1, ], by_hand(3L, 0.2, 0.2))
})

test_that("wrong neighbours of new points are told of", {
  x <- random_matrix(30, 2, seed = 1)
  map <- diffusion_map(near(x, 5), 2)
  nn <- query(x, x[1:3, ] + 0.1, 4)
  other <- nn
  other$index[2, 2] <- 31L
  below <- nn
  below$distance[1, 1] <- -1
  expect_messages({
    predict(map)
    predict(map, nn$index)
    predict(map, other)
    predict(map, below)
    predict(map, nn, type = "x")
  })
})
