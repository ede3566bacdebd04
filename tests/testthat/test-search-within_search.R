# Computes every pair by the core's exact step, as the definition says.
within_by_definition <- function(x, distance, metric, sign = "signed") {
  n <- nrow(x)
  all <- brute_force(x, k = n - 1, metric = metric, sign = sign)
  distance <- rep_len(distance, n)
  rows <- seq_len(n)
  as_neighbours(list(
    index = lapply(rows, function(i) {
      all$index[i, all$distance[i, ] <= distance[[i]]]
    }),
    distance = lapply(rows, function(i) {
      all$distance[i, all$distance[i, ] <= distance[[i]]]
    })
  ))
}

# Some pairs have exactly this distance, to distinguish "at most" from "less".
some_distance <- function(x, metric, sign, share) {
  all <- brute_force(x, k = nrow(x) - 1, metric = metric, sign = sign)$distance
  sort(all)[[ceiling(share * length(all))]]
}

test_that("all neighbours within a distance are those of the definition", {
  for (matrix in list(random_matrix(150, 9), small_integers(120, 6))) {
    for_all_metrics(function(metric, sign, backend) {
      x <- values_for(matrix, metric)
      for (share in c(0.02, 0.4)) {
        limit <- some_distance(x, metric, sign, share)
        found <- within_search(
          x, limit, metric, sign, backend = backend, chunk_size = 48
        )
        expect_identical(
          found, within_by_definition(x, limit, metric, sign),
          label = paste(metric, sign, backend)
        )
      }
    })
  }
})

test_that("hard matrices have their neighbours within a distance, too", {
  matrices <- hard_matrices()
  for (name in names(matrices)) {
    for_all_metrics(function(metric, sign, backend) {
      x <- values_for(matrices[[name]], metric)
      limit <- some_distance(x, metric, sign, 0.3)
      expect_identical(
        within_search(x, limit, metric, sign, backend = backend),
        within_by_definition(x, limit, metric, sign),
        label = paste(name, metric, sign, backend)
      )
    }, few_signs())
  }
})

test_that("the naive reference agrees on whole numbers", {
  x <- small_integers(50, 5, largest = 4)
  distance <- without_self(naive_distance(x, metric = "manhattan"))
  found <- within_search(x, 4, "manhattan")
  expect_identical(
    lapply(found$index, sort),
    lapply(1:50, function(i) which(distance[i, ] <= 4))
  )
  expect_identical(
    within_search(x, 0, "manhattan")$index,
    lapply(1:50, function(i) which(distance[i, ] == 0))
  )
})

test_that("each point may have its own distance", {
  x <- random_matrix(80, 7)
  limits <- uniform_numbers(80)
  for_all_metrics(function(metric, sign, backend) {
    x <- values_for(x, metric)
    limits <- limits * some_distance(x, metric, sign, 0.5)
    expect_identical(
      within_search(x, limits, metric, sign, backend = backend),
      within_by_definition(x, limits, metric, sign)
    )
  })
})

test_that("a subset's neighbours within a distance are part of the whole", {
  x <- random_matrix(90, 7)
  rows <- c(90, 3, 41, 40, 3)
  limits <- seq(0.3, 0.7, by = 0.1)
  for (backend in backends_here()) {
    found <- within_search(x, limits, subset = rows, backend = backend)
    all <- within_by_definition(
      x, replace(rep(0, 90), rows[1:4], limits[1:4]), "pearson"
    )
    expect_identical(found$index[1:4], all$index[rows[1:4]])
    expect_identical(found$distance[1:4], all$distance[rows[1:4]])
    last <- within_by_definition(x, 0.7, "pearson")
    expect_identical(found$index[[5]], last$index[[3]])
  }
})

test_that("points of a query are found, but points that it is not", {
  x <- random_matrix(70, 6)
  query <- x[c(5, 60), ]
  for (backend in backends_here()) {
    found <- within_query(x, query, 0.5, backend = backend)
    near <- knn_query(x, query, 70, backend = "cpu")
    expect_identical(
      found$index,
      lapply(1:2, function(i) near$index[i, near$distance[i, ] <= 0.5])
    )
    expect_identical(vapply(found$index, `[`, 1L, 1L), c(5L, 60L))
  }
})

test_that("the second pass gives what was not kept from the first", {
  x <- random_matrix(200, 6)
  for (backend in backends_here()) {
    options <- fsknn:::check_options(list(backend = backend, chunk_size = 48))
    search <- fsknn:::ask_within(fsknn:::new_search(x, options), 0.5)
    find <- function() fsknn:::run_search(search)[c("index", "distance")]
    kept <- find()
    search$request$within$most_kept <- 100
    expect_identical(find(), kept)
  }
})

test_that("isolated points have no neighbours within any distance", {
  x <- random_matrix(30, 5)
  x[c(4, 9), ] <- 2
  for (backend in backends_here()) {
    found <- within_search(x, 2, constant = "isolate", backend = backend)
    expect_identical(lengths(found$index)[c(4, 9, 1)], c(0L, 0L, 27L))
    expect_false(any(unlist(found$index) %in% c(4, 9)))
  }
})

test_that("the search for all within a distance is remembered", {
  x <- random_matrix(100, 5)
  within_search(x, 0.2, backend = "cpu")
  stats <- knn_stats()
  expect_identical(stats$k, NA_integer_)
  expect_equal(stats$pairs_filtered, 100 * 100 / 2)
  expect_lt(stats$pairs_exact, 100 * 99 / 2)
  expect_match(format(stats), "all within a distance", all = FALSE)
})

test_that("nothing within a distance is an empty list", {
  x <- random_matrix(20, 4)
  found <- within_search(x, 0, metric = "euclidean")
  expect_identical(found$index, rep(list(integer()), 20))
  expect_identical(found$distance, rep(list(double()), 20))
})

test_that("more pairs than there is memory for are refused with a cure", {
  x <- random_matrix(300, 8)
  for (backend in backends_here()) {
    for (room in c(40000, 6000)) {
      withr::with_options(list(fsknn.max_memory = 12 * room), {
        error <- expect_error(
          within_search(x, 1, backend = backend), class = "fsknn_size_error"
        )
      })
      expect_identical(error$most, room)
      expect_gt(error$pairs, room)
      limit <- as.double(fsknn:::round_down(error$fits))
      entries <- sum(lengths(within_search(x, limit)$index))
      expect_lte(entries, room)
      expect_gt(entries, room / 2)
    }
  }
})

test_that("what can't be a distance, or is too much, is said", {
  x <- small_integers(40, 4, largest = 4)
  expect_messages({
    within_search(x, -1)
    within_search(x, c(1, 2))
    within_search(x, NA_real_)
    within_search(x, "far")
    within_search(x)
    within_query(x, x[1:2, ], c(1, NA))
  })
  withr::local_options(fsknn.max_memory = 12 * 1000)
  expect_messages({
    within_search(x, 8, "manhattan")
    within_search(x, rep(8, 40), "manhattan")
    threshold_graph(x, -1)
  })
  withr::local_options(fsknn.max_memory = 12)
  expect_messages(within_search(x[c(1:9, 1:9), ], 1))
})

test_that("the cure holds for distances of any magnitude", {
  x <- random_matrix(120, 4, seed = 3)
  withr::local_options(fsknn.max_memory = 12 * 2000)
  for (power in c(-300, -200, -45, -40, -1, 0, 38, 40, 200, 300)) {
    at_scale <- x * 10^power
    error <- expect_error(
      within_search(at_scale, Inf, "euclidean"), class = "fsknn_size_error"
    )
    cure <- sub(
      ".*`distance = (.*)` would fit.*", "\\1", conditionMessage(error)
    )
    entries <- sum(lengths(
      within_search(at_scale, as.double(cure), "euclidean")$index
    ))
    expect_lte(entries, 2000)
    expect_gt(entries, 1000)
  }
})

test_that("three digits of a distance are never more than it", {
  distance <- c(
    10^(-300:300), -10^(-300:300), 0.3 * (1 - 2^-53), 1 - 2^-53, 999.9999,
    2^-1074, 1e-310, .Machine$double.xmin, .Machine$double.xmax,
    -.Machine$double.xmax
  )
  text <- vapply(distance, fsknn:::round_down, "")
  expect_true(all(as.double(text) <= distance))
  expect_true(all(abs(as.double(text) / distance - 1) <= 0.0101))
})

test_that("each point's own distance is told how far it may go", {
  x <- withr::with_seed(1, matrix(rnorm(3000), 600))
  limits <- c(rep(0.5, 15), rep(1e-9, 585))
  withr::local_options(fsknn.max_memory = 12 * 3000)
  error <- expect_error(
    within_search(x, rep(0.5, 600)), "all would fit", class = "fsknn_size_error"
  )
  expect_gt(0.5, error$fits)
  # One point may have a larger limit than that, since others have not.
  expect_gt(sum(lengths(within_search(x, limits)$index)), 1000)
  fits <- pmin(rep(0.5, 600), as.double(fsknn:::round_down(error$fits)))
  expect_lte(sum(lengths(within_search(x, fits)$index)), 3000)
})

test_that("the memory for the answer is an argument", {
  x <- random_matrix(300, 8)
  error <- expect_error(
    within_search(x, 1, max_memory = 12 * 6000), class = "fsknn_size_error"
  )
  expect_identical(error$most, 6000)
  error <- expect_error(
    within_query(x, x, 1, max_memory = 12 * 7000), class = "fsknn_size_error"
  )
  expect_identical(error$most, 7000)
  error <- expect_error(
    threshold_graph(x, 0, max_memory = 24 * 5000), class = "fsknn_size_error"
  )
  expect_identical(error$most, 5000)
  withr::local_options(fsknn.max_memory = 12)
  expect_identical(
    within_search(x, 1, max_memory = "1 GB"),
    within_search(x, 1, max_memory = Inf)
  )
  expect_messages(within_search(x, 1, max_memory = "much"))
})

test_that("a search for all within a distance tells what it does", {
  x <- random_matrix(50, 6)
  # Removes lines that depend on the machine and the time.
  timeless <- function(lines) {
    sub(
      "^((Start|End|Seconds|CPU threads|Pairs, at most): *).*", "\\1...", lines
    )
  }
  expect_messages({
    found <- within_search(x, 0.2, verbose = TRUE, backend = "cpu")
    found <- within_query(
      x, x[1:3, ], 0.2, "spearman", verbose = TRUE, backend = "cpu"
    )
    edges <- threshold_graph(x, 0.9, verbose = TRUE, backend = "cpu")
  }, transform = timeless)
})
