# Points of known shapes without random draws, the same on every machine.
spread <- function(n, by) (seq_len(n) * by) %% 1

on_circle <- function(at) cbind(cos(at), sin(at))

on_sphere <- function(n) {
  z <- 1 - (2 * seq_len(n) - 1) / n
  at <- 2 * pi * spread(n, 0.6180339887498949)
  cbind(sqrt(1 - z^2) * on_circle(at), z)
}

# 1 - lambda beside the smallest `count` of them.
ratios <- function(map, count) {
  gaps <- 1 - map$eigenvalues[1, ]
  unname(gaps / mean(gaps[seq_len(count)]))
}

# Computes the map by its formulas on whole matrices.
reference_map <- function(squared, joined, epsilon, alpha, count, time = 1) {
  w <- ifelse(joined, exp(-squared / epsilon), 0)
  diag(w) <- 0
  q <- rowSums(w) + 1
  a <- w / outer(q, q)^alpha
  d <- rowSums(a)
  found <- eigen(a / sqrt(outer(d, d)), symmetric = TRUE)
  psi <- found$vectors * sqrt(sum(d) / d)
  psi <- apply(psi, 2, function(p) {
    first <- which(abs(p) >= max(abs(p)) / 2)[[1]]
    p * sign(p[[first]])
  })
  l <- 1 + seq_len(count)
  list(
    values = found$values[l],
    coordinates = psi[, l] %*% diag(found$values[l]^time)
  )
}

joined_by <- function(nn, n, mode = "union") {
  there <- matrix(FALSE, n, n)
  there[cbind(as.vector(row(nn$index)), as.vector(nn$index))] <- TRUE
  if (mode == "union") there | t(there) else there & t(there)
}

expect_map <- function(map, reference, tolerance = 1e-8) {
  expect_lt(max(abs(map$eigenvalues[1, ] - reference$values)), tolerance)
  expect_lt(max(abs(map$coordinates - reference$coordinates)), tolerance)
}

test_that("a map is that of dense matrices", {
  for (n in c(150, 340)) {
    if (n > most_dense) {
      skip_if_not_installed("RSpectra")
    }
    x <- 3 * cbind(spread(n, 0.7548776662466927), spread(n, 0.5698402909980532))
    nn <- near(x, 12)
    squared <- as.matrix(dist(x))^2
    for (mode in c("union", "mutual")) {
      for (alpha in c(0, 0.5, 1)) {
        map <- diffusion_map(
          nn, 5, alpha = alpha, epsilon = 0.2, mode = mode, time = 2
        )
        expect_true(all(map$component == 1))
        expect_map(map, reference_map(
          squared, joined_by(nn, n, mode), 0.2, alpha, 5, time = 2
        ))
        expect_lt(max(map$residuals), 1e-10)
      }
    }
    # The scale is self-tuning.
    s <- nn$distance[, 7]
    map <- diffusion_map(nn, 5, local = 7)
    expect_equal(map$scale, s)
    expect_map(map, reference_map(
      squared / outer(s, s), joined_by(nn, n), 1, 1, 5
    ))
  }
})

test_that("correlations are squared as 2 (1 - r)", {
  x <- random_matrix(120, 9, seed = 8)
  edges <- knn_graph(x, k = 10, backend = "cpu")
  nn <- knn_search(x, k = 10, backend = "cpu")
  map <- diffusion_map(edges, 4, epsilon = 0.8)
  expect_map(map, reference_map(
    2 * (1 - cor(t(x))), joined_by(nn, 120), 0.8, 1, 4
  ))
  expect_identical(
    diffusion_map(nn, 4, epsilon = 0.8, metric = "pearson")$coordinates,
    map$coordinates
  )
  local <- diffusion_map(edges, 4, local = 3)
  s <- sqrt(2 * nn$distance[, 3])
  expect_map(local, reference_map(
    2 * (1 - cor(t(x))) / outer(s, s), joined_by(nn, 120), 1, 1, 4
  ))
})

test_that("a circle has the eigenvalues of a circle", {
  skip_if_not_installed("RSpectra")
  at <- 2 * pi * (seq_len(420) - 1) / 420
  map <- diffusion_map(near(on_circle(at), 20), 6)
  # The graph looks the same from each point, so waves are its eigenvectors.
  step <- seq_len(10)
  weight <- exp(-(2 * sin(pi * step / 420))^2 / map$epsilon)
  wave <- function(l) sum(weight * cos(2 * pi * l * step / 420)) / sum(weight)
  expect_equal(
    unname(map$eigenvalues[1, ]), vapply(rep(1:3, each = 2), wave, 0),
    tolerance = 1e-12
  )
  # Gaps of waves grow as l^2: cos(a) = 1 - a^2 / 2 + rest, rest < a^4 / 24.
  largest <- (2 * pi * 3 * 10 / 420)^2 / 12
  expect_equal(ratios(map, 2), c(1, 1, 4, 4, 9, 9), tolerance = largest)
})

# Returns the first two patterns of the limit (Coifman and Lafon 2006, section
# 3.3) for points with density p on a circle: (p^s f')' = -g p^s f, s = 2 - 2
# alpha.
patterns_of_limit <- function(turned, alpha) {
  size <- length(turned)
  arc <- diff(c(turned, turned[[1]] + 2 * pi))
  density <- 1 / arc
  power <- 2 - 2 * alpha
  stiff <- density^power / arc
  mass <- density^power * arc
  mass <- (mass + mass[c(size, seq_len(size - 1))]) / 2
  matrix <- matrix(0, size, size)
  after <- c(seq_len(size)[-1], 1)
  for (at in seq_len(size)) {
    ends <- c(at, after[[at]])
    matrix[ends, ends] <- matrix[ends, ends] +
      stiff[[at]] * matrix(c(1, -1, -1, 1), 2)
  }
  found <- eigen(matrix / sqrt(outer(mass, mass)), symmetric = TRUE)
  found$vectors[, size - 1:2] / sqrt(mass)
}

# Returns the residual of cosine and sine in a linear model of the patterns.
rest_of <- function(patterns, circle) {
  model <- stats::lm.fit(cbind(1, patterns), circle)
  sqrt(mean(model$residuals^2))
}

test_that("a circle is one whatever its density, and alpha = 0 shows it", {
  skip_if_not_installed("RSpectra")
  n <- 2000
  k <- 200
  at <- 2 * pi * seq_len(n) / n
  turned <- at + 0.6 * sin(at)
  circle <- on_circle(turned)
  # The sum over points approximates an integral if points are dense relative to
  # the root of epsilon. The cut at k is negligible: exp(-9) of the weight
  # remains there.
  epsilon <- (0.4 * pi * k / n)^2 / 9
  nn <- near(circle, k)
  whole <- diffusion_map(nn, 6, epsilon = epsilon)
  # The rest is because the walk does not stay: with the diagonal it would, with
  # probability p. The g of (I - P) v = g (1 - p) v are between those of I - P
  # divided by 1 - min(p) and by 1 - max(p). (This is by Courant and Fischer.)
  p <- 1 / (1 + whole$density^2 * whole$degree)
  factor <- (1 - min(p)) / (1 - max(p))
  # In addition, exp(-epsilon l^2 / 4) is not its first order: the error is 9
  # epsilon / 8 for l = 3. The part beyond the cut has erfc(3) + 3.4 exp(-9) of
  # the squares.
  more <- 1 + 9 * epsilon / 8 + 0.001
  off <- ratios(whole, 2) / c(1, 1, 4, 4, 9, 9)
  expect_lt(max(off, 1 / off), factor * more)
  expect_lt(factor, 1.2)
  # Patterns mix by at most the change of the operator divided by the gap to the
  # next, 4 - 1 (Davis and Kahan). Their mean square is 1/2.
  bound <- (factor * more - 1) * 4 / 3 * sqrt(1 / 2)
  expect_lt(rest_of(whole$coordinates[, 1:2], circle), bound)
  # Without alpha it is the pattern of another operator, which is also known.
  some <- seq(4, n, 4)
  limit <- rest_of(patterns_of_limit(turned[some], 0), circle[some, ])
  expect_lt(rest_of(patterns_of_limit(turned[some], 1), circle[some, ]), 1e-3)
  none <- diffusion_map(nn, 2, alpha = 0, epsilon = epsilon)
  expect_gt(limit, 2 * bound)
  expect_lt(abs(rest_of(none$coordinates, circle) - limit), bound)
})

test_that("a sphere has the eigenvalues of a sphere", {
  skip_if_not_installed("RSpectra")
  x <- on_sphere(2500)
  nn <- near(x, 20)
  map <- diffusion_map(nn, 8, num_threads = 2)
  expect_equal(ratios(map, 3), rep(c(1, 3), c(3, 5)), tolerance = 0.02)
  expect_lt(max(map$residuals), 1e-10)
  expect_gt(map$dimension[["without"]], 1.7)
  # The first three coordinates are the three axes after a rotation.
  model <- stats::lm.fit(cbind(1, map$coordinates[, 1:3]), x)
  expect_lt(max(abs(model$residuals)), 0.05)
  # The result is identical, to the last bit, for any number of threads.
  expect_identical(
    diffusion_map(nn, 8, num_threads = 1)[c("coordinates", "eigenvalues")],
    map[c("coordinates", "eigenvalues")]
  )
})

test_that("eigenvalues of a tridiagonal matrix are those of eigen()", {
  for (size in c(2, 9, 60)) {
    diagonal <- spread(size, 0.37) - 0.4
    beside <- spread(size, 0.71)
    # The matrix is block-diagonal where this entry is 0.
    beside[[size %/% 2]] <- 0
    matrix <- diag(diagonal)
    at <- seq_len(size - 1)
    matrix[cbind(at, at + 1)] <- matrix[cbind(at + 1, at)] <- beside[at]
    values <- eigen(matrix, symmetric = TRUE)$values
    lanczos <- list(diagonal = diagonal, beside = beside)
    for (wanted in seq_len(size)) {
      expect_equal(
        ritz_value(lanczos, wanted), values[[wanted]], tolerance = 1e-12
      )
    }
  }
})

test_that("a filter finds the same eigenpairs, with fewer calls", {
  skip_if_not_installed("RSpectra")
  nn <- near(on_sphere(2500), 12)
  joined <- cpp_join_neighbours(nn$index, nn$distance, FALSE, FALSE, 0L, 2L)
  walk <- cpp_walk(joined$graph, 0.005, 1, 2L)
  calls <- new.env()
  apply <- function(x, filter = no_filter) {
    calls$number <- calls$number + 1
    cpp_walk_apply(
      walk$walk, 1L, x, filter$degree, filter$low, filter$high, 2L
    )$product
  }
  count_calls <- function(filter) {
    calls$number <- 0
    vectors <- lanczos_vectors(apply, 2500, 8, filter)
    list(calls = calls$number, pairs = judge_pairs(vectors, apply))
  }
  calls$number <- 0
  filter <- choose_filter(apply, 2500, 8, 2L)
  expect_gt(filter$degree, 1)
  plain <- count_calls(no_filter)
  filtered <- count_calls(filter)
  expect_lt(filtered$calls, plain$calls / 2)
  expect_equal(filtered$pairs$values, plain$pairs$values, tolerance = 1e-10)
  expect_lt(max(filtered$pairs$residuals), 1e-8)
  # A filter that leaves too few eigenvalues above it is rejected.
  high <- mean(plain$pairs$values[3:4])
  found <- sparse_vectors(
    apply, 2500, 8, 2L,
    function(...) list(degree = 8L, low = -1, high = high)
  )
  expect_equal(
    judge_pairs(found, apply)$values, plain$pairs$values, tolerance = 1e-10
  )
})

test_that("a torus has the eigenvalues of a torus", {
  skip_if_not_installed("RSpectra")
  n <- 3000
  a <- 2 * pi * spread(n, 0.7548776662466927)
  b <- 2 * pi * spread(n, 0.5698402909980532)
  map <- diffusion_map(near(cbind(on_circle(a), 0.6 * on_circle(b)), 20), 6)
  expect_equal(
    ratios(map, 2), c(1, 1, rep(1 / 0.36, 2), rep(1 + 1 / 0.36, 2)),
    tolerance = 0.04
  )
})

test_that("a Swiss roll is unrolled", {
  skip_if_not_installed("RSpectra")
  n <- 1500
  at <- 1.5 * pi * (1 + 2 * spread(n, 0.7548776662466927))
  x <- cbind(at * cos(at), 12 * spread(n, 0.5698402909980532), at * sin(at))
  map <- diffusion_map(near(x, 12), 3)
  expect_gt(abs(cor(map$coordinates[, 1], at, method = "spearman")), 0.99)
  expect_lt(max(abs(cor(x[, c(1, 3)], at, method = "spearman"))), 0.9)
})

# Makes images of three balls, red, green and blue, at the ends of three arms at
# right angles, visible from each side. An image has 9 x 9 pixels of three
# colours. The rotations have the matrices `turn`, row by row.
turned_images <- function(n) {
  at <- cbind(
    spread(n, 0.8191725133961645), spread(n, 0.6710436067037893),
    spread(n, 0.5497004779019703)
  )
  q <- cbind(
    sqrt(1 - at[, 1]) * on_circle(2 * pi * at[, 2]),
    sqrt(at[, 1]) * on_circle(2 * pi * at[, 3])
  )
  w <- q[, 1]
  i <- q[, 2]
  j <- q[, 3]
  k <- q[, 4]
  turn <- cbind(
    1 - 2 * (j^2 + k^2), 2 * (i * j - k * w), 2 * (i * k + j * w),
    2 * (i * j + k * w), 1 - 2 * (i^2 + k^2), 2 * (j * k - i * w),
    2 * (i * k - j * w), 2 * (j * k + i * w), 1 - 2 * (i^2 + j^2)
  )
  pixel <- as.matrix(expand.grid(-4:4, -4:4)) * 0.4
  colours <- lapply(1:3, function(ball) {
    exp(-2 * (
      outer(turn[, ball], pixel[, 1], "-")^2 +
        outer(turn[, 3 + ball], pixel[, 2], "-")^2
    ))
  })
  list(images = do.call(cbind, colours), turn = turn)
}

# For small rotations, the distance of two images is that of the first two rows
# of their rotations. So it is a symmetric top with eigenvalues l (l + 1) - m^2
# / 2: 1.5 six times, 2 three times, then 4. The patterns of the nine are the
# nine entries of the rotation.
test_that("images of an object tell all three degrees of its turning", {
  skip_if_not_installed("RSpectra")
  data <- turned_images(2000)
  map <- diffusion_map(near(data$images, 20), 9)
  model <- stats::lm.fit(cbind(1, map$coordinates), data$turn)
  explained <- 1 - colSums(model$residuals^2) /
    colSums(scale(data$turn, scale = FALSE)^2)
  expect_gt(min(explained), 0.95)
  # The three with a larger gap are the third row: rotations in the plane of the
  # image do not change it and do not count.
  gap <- 1 - map$eigenvalues[1, ]
  expect_gt(mean(gap[7:9]) / mean(gap[1:6]), (1 + 4 / 3) / 2)
  # The nearest image in the map has nearly the rotation that is nearest. A map
  # with two degrees of freedom would leave the third to chance, 90 degrees and
  # more.
  angle_to_nearest <- function(x) {
    nearest <- near(x, 1)$index[, 1]
    cosine <- (rowSums(data$turn * data$turn[nearest, ]) - 1) / 2
    acos(pmax(-1, pmin(1, cosine)))
  }
  best <- angle_to_nearest(data$turn)
  by_map <- angle_to_nearest(map$coordinates)
  expect_lt(stats::median(by_map), 1.25 * stats::median(best))
  expect_lt(max(by_map), 2 * max(best))
  expect_gt(map$dimension[["without"]], 2.5)
  expect_lt(map$dimension[["with_diagonal"]], 3.5)
})

test_that("eigenvectors are those of destiny", {
  skip_if_not_installed("destiny")
  x <- random_matrix(200, 4, seed = 5)
  edges <- knn_graph(x, k = 15, metric = "euclidean", backend = "cpu")
  sigma <- 0.9
  theirs <- suppressWarnings(destiny::DiffusionMap(
    distance = as_sparse(edges, mode = "union"), sigma = sigma,
    n_eigs = 6
  ))
  map <- diffusion_map(edges, 6, epsilon = 2 * sigma^2, time = 0)
  expect_equal(
    unname(map$eigenvalues[1, ]), unname(theirs@eigenvalues), tolerance = 1e-8
  )
  # Their eigenvectors are those of S, with length 1.
  ours <- map$coordinates * sqrt(map$degree / sum(map$degree))
  overlap <- abs(colSums(ours * theirs@eigenvectors))
  expect_equal(unname(overlap), rep(1, 6), tolerance = 1e-8)
})

test_that("shapes of neighbours make no difference", {
  x <- random_matrix(90, 3, seed = 2)
  nn <- near(x, 8)
  map <- diffusion_map(nn, 3)
  for (to in c("uwot", "RANN", "FNN", "edges")) {
    other <- diffusion_map(as_knn(nn, to = to), 3)
    expect_identical(other$coordinates, map$coordinates)
  }
  undirected <- undirected_edges(as_knn(nn, to = "edges"))
  expect_equal(
    diffusion_map(undirected, 3, epsilon = map$epsilon)$coordinates,
    map$coordinates
  )
  lists <- list(index = asplit(nn$index, 1), distance = asplit(nn$distance, 1))
  expect_identical(
    diffusion_map(lapply(lists, lapply, as.vector), 3)$coordinates,
    map$coordinates
  )
})

test_that("components have maps of their own", {
  x <- random_matrix(160, 3, seed = 3)
  x[101:150, ] <- x[101:150, ] + 100
  x[151:160, ] <- x[151:160, ] + 200
  # Of 10 points, 9 neighbours are all others: too few for 9 coordinates.
  nn <- near(x, 9)
  map <- diffusion_map(nn, 9, epsilon = 2)
  expect_identical(map$sizes, c(100L, 50L, 10L))
  expect_identical(map$component, rep(1:3, c(100, 50, 10)))
  expect_identical(dim(map$eigenvalues), c(2L, 9L))
  expect_true(all(is.na(map$coordinates[151:160, ])))
  alone <- diffusion_map(near(x[101:150, ], 9), 9, epsilon = 2)
  expect_equal(map$coordinates[101:150, ], alone$coordinates)
  expect_equal(map$eigenvalues["2", ], alone$eigenvalues["1", ])
  expect_false(anyNA(diffusion_map(nn, 8, epsilon = 2)$coordinates))
})

test_that("isolated points have no coordinates and change nothing", {
  x <- random_matrix(60, 4, seed = 9)
  x[c(5, 60), ] <- 0
  edges <- knn_graph(
    x, k = 6, metric = "cosine", constant = "isolate", backend = "cpu"
  )
  map <- diffusion_map(edges, 3)
  expect_identical(which(is.na(map$component)), c(5L, 60L))
  expect_true(all(is.na(map$coordinates[c(5, 60), ])))
  without <- diffusion_map(
    knn_graph(x[-c(5, 60), ], k = 6, metric = "cosine", backend = "cpu"), 3
  )
  expect_equal(map$epsilon, without$epsilon)
  expect_equal(map$coordinates[-c(5, 60), ], without$coordinates)
})

test_that("weights that vanish join nothing", {
  x <- random_matrix(80, 2, seed = 1)
  x[1, ] <- c(1000, 0)
  map <- diffusion_map(near(x, 8), 3, epsilon = 0.5)
  expect_identical(which(is.na(map$component)), 1L)
  expect_false(anyNA(map$coordinates[-1, ]))
})

test_that("points that are the same have scales, and a map", {
  x <- random_matrix(80, 3, seed = 7)
  x[2:9, ] <- rep(x[1, ], each = 8)
  nn <- near(x, 6)
  map <- diffusion_map(nn, 4, local = 4)
  # The six nearest of the first nine points are equal to them.
  s <- nn$distance[10:80, 4]
  expect_identical(map$scale[1:9], rep(min(s), 9))
  expect_identical(map$scale[10:80], s)
  expect_true(all(is.finite(map$coordinates)))
  expect_lt(max(map$residuals), 1e-12)
  # Four of the five nearest are equal, and the fifth is not.
  y <- x
  y[6:9, ] <- y[6:9, ] + 1:4
  near_y <- near(y, 6)
  map <- diffusion_map(near_y, 4, local = 4)
  expect_identical(map$scale[1:5], near_y$distance[1:5, 5])
  # No points differ.
  same <- diffusion_map(near(matrix(1, 30, 2), 5), 3)
  expect_true(is.na(same$slope))
  expect_identical(same$epsilon, 1)
  expect_false(anyNA(same$coordinates))
})

test_that("epsilon is that of the steepest slope of the valid ones", {
  x <- random_matrix(300, 2, seed = 11)
  nn <- near(x, 15)
  map <- diffusion_map(nn, 2)
  sum_at <- function(epsilon) {
    there <- joined_by(nn, 300)
    log(sum(exp(-as.matrix(dist(x))[there]^2 / epsilon)) + 300)
  }
  step <- 1e-5
  slope <- (sum_at(map$epsilon * (1 + step)) -
              sum_at(map$epsilon * (1 - step))) /
    (log(1 + step) - log(1 - step))
  expect_equal(map$slope, slope, tolerance = 1e-6)
  expect_identical(map$range, c(
    median(nn$distance[, 1]^2), median(nn$distance[, 15]^2)
  ))
  valid <- map$curve$epsilon >= map$range[[1]] &
    map$curve$epsilon <= map$range[[2]]
  expect_identical(map$slope, max(map$curve$slope[valid]))
  expect_equal(diffusion_map(nn, 2, epsilon = 0.3)$epsilon, 0.3)
})

test_that("wrong input is told of", {
  nn <- near(random_matrix(30, 2, seed = 1), 4)
  below <- nn
  below$distance[3, 2] <- -1
  missing <- nn
  missing$distance[3, 2] <- NA
  twice <- nn
  twice$index[4, 2] <- twice$index[4, 1]
  edges <- knn_graph(
    random_matrix(30, 2, seed = 1), k = 4, metric = "inner_product",
    backend = "cpu"
  )
  expect_messages({
    diffusion_map()
    diffusion_map("a")
    diffusion_map(nn$index)
    diffusion_map(nn, 0)
    diffusion_map(nn, 2.5)
    diffusion_map(nn, alpha = 2)
    diffusion_map(nn, epsilon = 0)
    diffusion_map(nn, epsilon = "a")
    diffusion_map(nn, local = 0)
    diffusion_map(nn, time = 0.5)
    diffusion_map(nn, mode = "all")
    diffusion_map(nn, 2, dims = 3)
    diffusion_map(below)
    diffusion_map(missing)
    diffusion_map(twice)
    diffusion_map(edges)
    diffusion_map(as_knn(nn, to = "edges"), metric = "euclid")
    diffusion_map(knn_graph(random_matrix(30, 3, seed = 1), 4),
                  metric = "euclidean")
  }, transform = without_metrics)
})

test_that("a walk that hardly moves is mapped where Lanczos' method fails", {
  skip_if_not_installed("RSpectra")
  # Correlations of three features are points on a circle with very unequal
  # spacing.
  x <- random_matrix(400, 3)
  nn <- knn_search(x, 8)
  expect_no_warning(map <- diffusion_map(nn, 2))
  expect_lt(max(map$residuals), 1e-9)
  expect_false(anyNA(map$coordinates))
})

test_that("a map has no unit but that of its distances", {
  x <- random_matrix(80, 3, seed = 1)
  nn <- knn_search(x, 8, "euclidean", backend = "cpu")
  near <- knn_query(x, x[1:5, ] + 0.01, 8, "euclidean", backend = "cpu")
  times <- function(found, factor) {
    found$distance <- found$distance * factor
    found
  }
  expect_same_map <- function(found, map) {
    for (part in c("coordinates", "eigenvalues", "density", "degree")) {
      expect_equal(found[[part]], map[[part]], tolerance = 1e-10)
    }
  }
  map <- diffusion_map(nn, 3)
  expect_identical(map$unit, 1)
  local <- diffusion_map(nn, 3, local = 5)
  given <- diffusion_map(nn, 3, epsilon = 2)
  placed <- predict(map, near)
  for (power in c(-1015, -700, -520, -480, -450, -300, 300, 449, 500, 700,
                  1010)) {
    scale <- 2^power
    there <- times(nn, scale)
    found <- diffusion_map(there, 3)
    expect_same_map(found, map)
    expect_equal(found$epsilon / (scale / found$unit)^2, map$epsilon)
    expect_equal(found$range / (scale / found$unit)^2, map$range)
    expect_equal(found$slope, map$slope)
    expect_equal(predict(found, times(near, scale)), placed, tolerance = 1e-10)
    of_local <- diffusion_map(there, 3, local = 5)
    expect_same_map(of_local, local)
    expect_identical(of_local$scale, local$scale * scale)
    if (abs(power) < 500) {
      expect_same_map(diffusion_map(there, 3, epsilon = 2 * scale^2), given)
    }
  }
})

test_that("a few distances of another magnitude leave a map as it is", {
  nn <- knn_search(random_matrix(80, 3, seed = 1), 8, backend = "cpu",
                   metric = "euclidean")
  # Their weights are 0 and 1 in both.
  plain <- wide <- nn
  plain$distance[7, 8] <- 1e100
  wide$distance[7, 8] <- 1e300
  plain$distance[9, 1] <- 1e-100
  wide$distance[9, 1] <- 1e-300
  plain <- diffusion_map(plain, 3)
  wide <- diffusion_map(wide, 3)
  expect_identical(wide$coordinates, plain$coordinates)
  expect_identical(wide$epsilon, plain$epsilon)
  # No two of its points have the other magnitude in common.
  far <- list(
    index = matrix(c(1L, 2L, 3L, 5L), 2), distance = rbind(c(1e300, 2e300),
                                                          c(1e300, 1e300))
  )
  map <- diffusion_map(nn, 3)
  expected <- map$coordinates[1, ] / map$eigenvalues[1, ]
  expect_equal(predict(map, far)[1, ], expected)
  weight <- 1 / map$density[c(2, 5)]
  expect_equal(
    predict(map, far)[2, ],
    colSums(map$coordinates[c(2, 5), ] * weight) / sum(weight) /
      map$eigenvalues[1, ]
  )
})

test_that("an epsilon given for tiny or huge distances is of their squares", {
  nn <- knn_search(random_matrix(80, 3, seed = 1), 8, backend = "cpu",
                   metric = "euclidean")
  tiny <- huge <- nn
  tiny$distance <- nn$distance * 1e-200
  huge$distance <- nn$distance * 1e200
  # All weights are 1, or all are 0.
  expect_equal(diffusion_map(tiny, 2, epsilon = 1)$density[[1]],
               diffusion_map(nn, 2, epsilon = 1e300)$density[[1]])
  expect_identical(diffusion_map(huge, 2, epsilon = 1)$density, rep(1, 80))
  expect_output(print(diffusion_map(huge, 2)), "exp(-(d / ", fixed = TRUE)
})
