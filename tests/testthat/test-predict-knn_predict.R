# Predictions compared with loops in plain R, and with package class.

labelled_points <- function(num_points = 60, num_features = 6, classes = 3,
                            seed = 3) {
  x <- random_matrix(num_points, num_features, seed = seed)
  labels <- factor(letters[rep_len(seq_len(classes), num_points)])
  x[labels == "b", 1:2] <- x[labels == "b", 1:2] + 1.5
  list(x = x, labels = labels)
}

# Predicts one point from the labels and distances of its neighbours in order.
naive_vote <- function(labels, distance, weighting) {
  weight <- if (weighting == "equal") {
    rep(1, length(labels))
  } else if (distance[[1]] == 0) {
    as.double(distance == 0)
  } else {
    1 / distance
  }
  if (is.numeric(labels)) {
    return(sum(weight * labels) / sum(weight))
  }
  votes <- vapply(levels(labels), function(level) {
    sum(weight[labels == level])
  }, 0)
  tied <- names(votes)[votes > max(votes) * (1 - 1e-12)]
  as.character(labels[weight > 0 & labels %in% tied][[1]])
}

# `all` [points x others] has the remaining points for each point, in the true
# order.
naive_prediction <- function(x, labels, k, weighting, out, metric = "euclidean") {
  distance <- naive_distance(x, metric = metric)
  vapply(seq_len(nrow(x)), function(i) {
    rest <- setdiff(seq_len(nrow(x)), out(i))
    near <- rest[order(distance[i, rest], rest)][seq_len(k)]
    naive_vote(labels[near], distance[i, near], weighting)
  }, if (is.factor(labels)) "" else 0)
}

test_that("classes and numbers are those of a loop, for each k and backend", {
  data <- labelled_points()
  numbers <- rowSums(data$x[, 1:3])
  folds <- rep_len(c("u", "v", "w", "v"), 60)
  for (backend in backends_here()) {
    for (weighting in c("equal", "distance")) {
      for (by in list(NULL, folds)) {
        out <- function(i) if (is.null(by)) i else which(by == by[[i]])
        told <- knn_predict(
          data$x, data$labels, k = 7, metric = "euclidean", weighting = weighting,
          folds = by, backend = backend
        )
        means <- knn_predict(
          data$x, numbers, k = 7, metric = "euclidean", weighting = weighting,
          folds = by, backend = backend
        )
        for (k in 1:7) {
          expect_identical(
            told$by_k[, k],
            naive_prediction(data$x, data$labels, k, weighting, out)
          )
          expect_equal(
            means$by_k[, k], naive_prediction(data$x, numbers, k, weighting, out),
            tolerance = 1e-12
          )
        }
        expect_identical(as.character(told$predicted), told$by_k[, 7])
        expect_identical(means$predicted, means$by_k[, 7])
        expect_equal(rowSums(told$probability), rep(1, 60))
        expect_identical(
          told$error$wrong,
          as.double(colSums(told$by_k != as.character(data$labels)))
        )
        expect_equal(means$error$rmse[[7]], sqrt(mean((means$predicted - numbers)^2)))
        expect_identical(sum(diag(told$confusion)), 60L - as.integer(told$error$wrong[[7]]))
      }
    }
  }
})

test_that("predictions are those of class where nothing ties", {
  skip_if_not_installed("class")
  data <- labelled_points(120, 4)
  query <- random_matrix(70, 4, seed = 9)
  # That package treats distances as ties if they differ by less than 1e-4
  # relative to themselves, and breaks ties of votes at random.
  clear <- function(nn, told) {
    apart <- apply(nn$distance^2, 1, function(row) {
      min(diff(row) / row[-length(row)])
    })
    top <- apply(told$probability, 1, function(row) {
      sum(row > max(row) - 1e-9)
    })
    apart > 1e-3 & top == 1
  }
  ask <- function(...) knn_query(..., metric = "euclidean")
  for (k in c(1, 3, 5, 8)) {
    told <- knn_predict(data$x, data$labels, query, k, metric = "euclidean")
    theirs <- class::knn(data$x, query, data$labels, k)
    where <- clear(ask(data$x, query, k + 1), told)
    expect_gt(sum(where), 20)
    expect_identical(as.character(told$predicted)[where], as.character(theirs)[where])
    expect_null(told$error)
    own <- knn_predict(data$x, data$labels, k = k, metric = "euclidean")
    theirs <- class::knn.cv(data$x, data$labels, k)
    where <- clear(knn_search(data$x, k + 1, metric = "euclidean"), own)
    expect_gt(sum(where), 20)
    expect_identical(
      as.character(own$predicted)[where], as.character(theirs)[where]
    )
  }
})

test_that("ties of votes go to the nearer class, and those at distance 0 lead", {
  x <- cbind(c(0, 1, 2, 10, 10))
  labels <- c("b", "a", "a", "b", "c")
  ask <- function(at, ...) {
    knn_predict(x, labels, cbind(at), metric = "euclidean", ...)
  }
  # At 0.4 the neighbours are b (0.4) and a (0.6), with one vote each.
  expect_identical(as.character(ask(0.4, k = 2)$predicted), "b")
  expect_identical(as.character(ask(0.6, k = 2)$predicted), "a")
  # Both are at distance 0, so the lower number is first.
  expect_identical(as.character(ask(10, k = 2)$predicted), "b")
  expect_identical(
    ask(10, k = 5, weighting = "distance")$probability,
    matrix(c(0, 0.5, 0.5), 1, dimnames = list(NULL, c("a", "b", "c")))
  )
  expect_identical(
    knn_predict(x, c(1, 2, 3, 4, 5), cbind(1), 3, metric = "euclidean",
                weighting = "distance")$predicted,
    2
  )
})

test_that("samples of containers are predicted by a column of theirs", {
  skip_if_not_installed("Biobase")
  data <- labelled_points(30, 8, 2)
  set <- Biobase::ExpressionSet(
    t(`rownames<-`(data$x, paste0("s", 1:30))),
    Biobase::AnnotatedDataFrame(
      data.frame(kind = data$labels, row.names = paste0("s", 1:30))
    )
  )
  told <- knn_predict(set, "kind", k = 3, points = "columns")
  plain <- knn_predict(data$x, data$labels, k = 3)
  expect_identical(told$by_k, plain$by_k)
  expect_identical(as.data.frame(told)$name, paste0("s", 1:30))
  drawn <- function() {
    set.seed(4)
    knn_predict(set, "kind", k = 3, points = "columns", folds = 5, strata = "kind")
  }
  expect_identical(drawn(), drawn())
  expect_true(all(table(drawn()$folds, data$labels) == 3))
})

test_that("folds are drawn once, evenly, whatever does the searching", {
  data <- labelled_points(50)
  ask <- function(...) {
    set.seed(8)
    knn_predict(data$x, data$labels, k = 4, folds = 7, strata = data$labels, ...)
  }
  one <- ask(num_threads = 1)
  expect_identical(ask(num_threads = 3, chunk_size = 48), one)
  expect_identical(
    ask(checkpoint = withr::local_tempdir())[c("by_k", "folds")],
    one[c("by_k", "folds")]
  )
  sizes <- table(one$folds, data$labels)
  expect_lte(diff(range(rowSums(sizes))), 1)
  expect_true(all(apply(sizes, 2, function(of) diff(range(of))) <= 1))
  strata <- (seq_len(50)^2 %/% 7) %% 3
  uneven <- knn_predict(data$x, data$labels, k = 4, folds = 7, strata = strata)
  sizes <- table(uneven$folds, strata)
  expect_lte(diff(range(rowSums(sizes))), 1)
  expect_true(all(apply(sizes, 2, function(of) diff(range(of))) <= 1))
  again <- knn_predict(data$x, data$labels, k = 4, folds = one$folds)
  expect_identical(again$by_k, one$by_k)
  # With as many folds as points, one is left out at a time.
  set.seed(1)
  expect_identical(
    knn_predict(data$x, data$labels, k = 4, folds = 50)$by_k,
    knn_predict(data$x, data$labels, k = 4)$by_k
  )
  # No random number is drawn unless it is needed.
  set.seed(5)
  before <- .Random.seed
  knn_predict(data$x, data$labels, k = 4)
  expect_identical(.Random.seed, before)
})

test_that("features are chosen inside each fold", {
  x <- t(random_matrix(500, 40, seed = 12)) # noise: 40 points, 500 features
  labels <- factor(rep(c("yes", "no"), 20))
  best <- function(x, labels) {
    apart <- colMeans(x[labels == "yes", ]) - colMeans(x[labels == "no", ])
    order(-abs(apart))[1:10]
  }
  outside <- knn_predict(x[, best(x, labels)], labels, k = 5)
  inside <- knn_predict(x, labels, k = 5, select = best)
  expect_lt(outside$error$error[[5]], 0.25)
  expect_gt(inside$error$error[[5]], 0.3)
  # These are the features that each fold chose, and the predictions.
  folds <- rep_len(1:4, 40)
  some <- knn_predict(x, labels, k = 3, folds = folds, select = best)
  for (fold in 1:4) {
    out <- which(folds == fold)
    chosen <- best(x[-out, ], labels[-out])
    expect_identical(some$features[[fold]], chosen)
    by_hand <- knn_query(x[-out, chosen], x[out, chosen], 3)
    expect_identical(
      some$neighbours$index[out, ],
      matrix((1:40)[-out][by_hand$index], ncol = 3)
    )
    expect_identical(some$neighbours$distance[out, ], by_hand$distance)
  }
  # Features are chosen on the user's side, by name or as a logical vector. For
  # queries they are chosen once.
  columns <- knn_predict(
    t(x), labels, k = 3, folds = folds, points = "columns",
    select = function(x, labels) best(t(x), labels)
  )
  expect_identical(columns$by_k, some$by_k)
  named <- x
  colnames(named) <- paste0("g", 1:500)
  expect_identical(
    knn_predict(
      named, labels, k = 3, folds = folds,
      select = function(x, labels) colnames(x)[best(x, labels)]
    )$by_k,
    some$by_k
  )
  expect_identical(
    knn_predict(
      x, labels, x[1:3, ] + 0.1, k = 3,
      select = function(x, labels) seq_len(ncol(x)) %in% best(x, labels)
    )$neighbours$distance,
    knn_query(
      x[, sort(best(x, labels))], x[1:3, sort(best(x, labels))] + 0.1, 3
    )$distance
  )
})

test_that("what is learned in a fold may be a function", {
  x <- random_matrix(30, 5)
  x[c(3, 40, 77)] <- NA
  labels <- rep_len(c("u", "v", "w"), 30)
  fill <- function(x, labels) {
    means <- colMeans(x, na.rm = TRUE)
    function(y) {
      missing <- which(is.na(y), arr.ind = TRUE)
      y[missing] <- means[missing[, 2]]
      y
    }
  }
  folds <- rep_len(1:3, 30)
  told <- knn_predict(x, labels, k = 2, folds = folds, select = fill)
  for (fold in 1:3) {
    out <- which(folds == fold)
    learned <- fill(x[-out, ], labels[-out])
    by_hand <- knn_query(learned(x[-out, ]), learned(x[out, ]), 2)
    expect_identical(told$neighbours$distance[out, ], by_hand$distance)
  }
  weights <- c(1, 2, 3, 4, 5)
  filled <- fill(x, labels)(x)
  weighted <- knn_predict(
    filled, labels, k = 2, weights = weights, folds = folds,
    select = function(x, labels) c(5, 2, 3)
  )
  out <- which(folds == 1)
  expect_identical(
    weighted$neighbours$distance[out, ],
    knn_query(
      filled[-out, c(5, 2, 3)], filled[out, c(5, 2, 3)], 2,
      weights = weights[c(5, 2, 3)]
    )$distance
  )
})

test_that("points without neighbours are predicted as NA", {
  data <- labelled_points(20)
  data$x[c(2, 9), ] <- 1
  told <- knn_predict(data$x, data$labels, k = 3, constant = "isolate")
  expect_identical(which(is.na(told$predicted)), c(2L, 9L))
  expect_identical(told$error$number, rep(18, 3))
  means <- knn_predict(data$x, as.double(1:20), k = 3, constant = "isolate")
  expect_identical(which(is.na(means$predicted)), c(2L, 9L))
  expect_snapshot(told)
})

test_that("predictions print, sum up, and are tables and pictures", {
  data <- labelled_points(60)
  told <- knn_predict(data$x, data$labels, k = 4, metric = "euclidean")
  set.seed(2)
  folds <- knn_predict(data$x, data$labels, k = 4, folds = 5, weighting = "distance")
  expect_snapshot({
    told
    summary(told)
    folds
    knn_predict(data$x, data$labels, data$x[1:9, ], k = 4)
    knn_predict(data$x, data$x[, 1], k = 2)
    knn_predict(
      data$x, data$labels, k = 2, folds = rep_len(1:3, 60),
      select = function(x, labels) 1:4
    )
    head(as.data.frame(folds), 3)
  })
  skip_if_not_installed("ggplot2")
  expect_s3_class(plot(told), "ggplot")
  expect_s3_class(plot(told, which = "confusion"), "ggplot")
  means <- knn_predict(data$x, data$x[, 1], k = 2)
  expect_s3_class(plot(means), "ggplot")
  expect_wrong(plot(means, which = "confusion"))
  expect_wrong(plot(knn_predict(data$x, data$labels, data$x, k = 4)))
})

test_that("wrong labels, folds and choices are errors that say so", {
  data <- labelled_points(20)
  x <- data$x
  labels <- data$labels
  expect_messages({
    knn_predict(x)
    knn_predict(x, labels[1:3])
    knn_predict(x, "kind")
    knn_predict(x, rep("all", 20))
    knn_predict(x, factor(rep("a", 20), levels = c("a", "b")))
    knn_predict(x, replace(labels, c(2, 5), NA))
    knn_predict(x, c(Inf, 1:19))
    knn_predict(x, Sys.Date() + 1:20)
    knn_predict(x, labels, k = 20)
    knn_predict(x, labels, k = 12, folds = rep(1:2, c(12, 8)))
    knn_predict(x, labels, x[1, , drop = FALSE], k = 21)
    knn_predict(x, labels, folds = 1)
    knn_predict(x, labels, folds = rep(1, 20))
    knn_predict(x, labels, folds = 1:3)
    knn_predict(x, labels, strata = labels)
    knn_predict(x, labels, query = x, folds = 3)
    knn_predict(x, labels, metric = "inner_product", weighting = "distance")
    knn_predict(x, labels, select = 1:3)
    knn_predict(x, labels, select = function(x, labels) "g1")
    knn_predict(x, labels, select = function(x, labels) 0)
    knn_predict(x, labels, select = function(x, labels) function(y) y[1, ])
    knn_predict(x, labels, select = function(x, labels) 1:4, checkpoint = "here")
    knn_predict(x, labels, 3)
  })
  # Unused levels are not classes.
  wide <- factor(labels, levels = c("z", levels(labels)))
  expect_identical(
    knn_predict(x, wide, k = 2)$probability,
    knn_predict(x, labels, k = 2)$probability
  )
})

test_that("numbers of any magnitude are predicted, and their errors told", {
  x <- random_matrix(40, 4, seed = 1)
  value <- x[, 1] + random_matrix(40, 1, seed = 2)[, 1] / 10
  ask <- function(factor, by = 1, weighting = "equal") {
    knn_predict(
      x * by, value * factor, k = 5, metric = "euclidean", weighting = weighting
    )
  }
  for (weighting in c("equal", "distance")) {
    expected <- ask(1, weighting = weighting)
    for (power in c(-1000, -600, 600, 1021)) {
      factor <- 2^power
      found <- ask(factor, weighting = weighting)
      expect_equal(found$predicted / factor, expected$predicted)
      expect_equal(ask(1, 2^(power / 2), weighting)$by_k, expected$by_k)
      for (part in c("rmse", "mae")) {
        expect_equal(found$error[[part]] / factor, expected$error[[part]])
      }
      expect_equal(found$error$correlation, expected$error$correlation)
      expect_no_match(format(found), "standard deviation of the truth (Inf|0)")
    }
  }
})
