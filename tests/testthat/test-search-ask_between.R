# Block pairs, and the answers merged from them: the same bits as those of one
# search.

# Makes a search with the checks of a verb. `told` are its arguments. A file of
# its rows exists until `frame` ends.
search_of <- function(x, told, k = NULL, within = NULL, as_edges = FALSE,
                      similarity = NULL, frame = parent.frame()) {
  told$num_threads <- 2
  told$backend <- told$backend %||% "cpu"
  options <- fsknn:::check_options(told)
  if (is.null(within)) {
    return(
      fsknn:::new_search(x, options, k = k, as_edges = as_edges, call = frame)
    )
  }
  fsknn:::ask_within(
    fsknn:::new_search(x, options, as_edges = as_edges, call = frame),
    within, similarity
  )
}

# Returns first and last points of `count` blocks, some small, some large.
ragged_blocks <- function(n, count) {
  ends <- floor(n * (seq_len(count) / count)^1.7)
  ends <- pmax(ends, seq_len(count))
  ends[[count]] <- n
  Map(c, c(1, ends[-count] + 1), ends)
}

# Works like a folder of tasks: each two blocks are searched with the current
# limits, in some order. `asked` receives the facts of the parts.
by_blocks <- function(search, count, twice = FALSE, asked = NULL) {
  values <- search$points$values
  request <- search$request
  n <- nrow(values)
  blocks <- ragged_blocks(n, count)
  tasks <- expand.grid(i = seq_len(count), j = seq_len(count))
  tasks <- tasks[tasks$i <= tasks$j, ]
  tasks <- tasks[order((tasks$i * 7 + tasks$j * 3) %% 11), ]
  whole <- fsknn:::new_merged(n, request)
  each <- function(take) {
    for (t in seq_len(nrow(tasks))) {
      a <- blocks[[tasks$i[[t]]]]
      b <- if (tasks$i[[t]] < tasks$j[[t]]) blocks[[tasks$j[[t]]]]
      limits <- fsknn:::limits_of(whole, a, b)
      part <- fsknn:::in_core(
        fsknn:::ask_between(values, a, b, request, limits)
      )
      take(a, b, part)
    }
  }
  each(function(a, b, part) {
    if (!is.null(asked)) asked$pairs <- asked$pairs + part$stats$pairs_filtered
    fsknn:::merge_part(whole, a, b, part)
    if (twice) fsknn:::merge_part(whole, a, b, part)
  })
  found <- fsknn:::merged_answer(whole, each)
  found[setdiff(names(found), "stats")]
}

at_once <- function(search) {
  found <- fsknn:::in_core(
    fsknn:::ask_core(search$points$values, NULL, search$request)
  )
  found[setdiff(names(found), "stats")]
}

test_that("nearest neighbours of all points come out of block pairs", {
  for (matrix in list(random_matrix(160, 9), small_integers(130, 5))) {
    for_all_metrics(function(metric, sign, backend) {
      x <- values_for(matrix, metric)
      for (count in c(1, 3, 5)) {
        search <- search_of(x, list(metric = metric, sign = sign, backend = backend), k = 7)
        expect_identical(
          by_blocks(search, count), at_once(search),
          label = paste(metric, sign, backend, count)
        )
      }
    })
  }
})

test_that("hard matrices go by blocks, too", {
  matrices <- hard_matrices()
  for (name in names(matrices)) {
    for_all_metrics(function(metric, sign, backend) {
      x <- values_for(matrices[[name]], metric)
      search <- search_of(x, list(metric = metric, sign = sign, backend = backend), k = 3)
      expect_identical(
        by_blocks(search, 3, twice = TRUE), at_once(search),
        label = paste(name, metric, sign, backend)
      )
    }, few_signs())
  }
})

test_that("lists are longer than blocks, and each pair is met once", {
  x <- random_matrix(601, 12)
  asked <- new.env()
  asked$pairs <- 0
  search <- search_of(x, list(), k = 250, as_edges = TRUE)
  expect_identical(by_blocks(search, 5, asked = asked), at_once(search))
  expect_gte(asked$pairs, 601 * 600 / 2)
  expect_lt(asked$pairs, 1.05 * 601 * 600 / 2)
})

test_that("points left out, weights, covariates and filled values go along", {
  x <- random_matrix(120, 14)
  x[c(3, 60, 61, 120), ] <- 1
  holes <- x
  holes[seq(5, length(x), 37)] <- NA
  covariates <- data.frame(age = 1:14, batch = rep(c("a", "b"), 7))
  cases <- list(
    list(x, list(constant = "isolate")),
    list(x, list(constant = "isolate", weights = rep_len(1:3, 14))),
    list(x, list(constant = "isolate", metric = "spearman", na = "error")),
    list(holes, list(constant = "isolate", na = "mean")),
    list(x, list(
      constant = "isolate", adjust = ~ age + batch, data = covariates
    )),
    list(x, list(metric = "manhattan"))
  )
  for (case in cases) {
    for (as_edges in c(FALSE, TRUE)) {
      search <- search_of(case[[1]], case[[2]], k = 6, as_edges = as_edges)
      expect_identical(by_blocks(search, 3), at_once(search))
    }
  }
})

test_that("every instruction set gives the same by blocks", {
  x <- random_matrix(150, 40)
  search <- search_of(x, list(metric = "euclidean"), k = 5)
  whole <- at_once(search)
  for (set in fsknn:::cpp_cpu()$instruction_sets) {
    search$request$instruction_set <- set
    expect_identical(by_blocks(search, 3), whole, label = set)
  }
})

test_that("metafeatures meet by blocks", {
  made <- metafeatures(random_matrix(14, 11))
  for (metric in c("pearson", "euclidean")) {
    search <- search_of(made, list(metric = metric), k = 4)
    expect_identical(by_blocks(search, 5), at_once(search))
  }
})

test_that("rows in a file are read of two blocks at a time", {
  skip_if_not_installed("DelayedArray")
  plain <- random_matrix(130, 7)
  for (metric in c("pearson", "euclidean", "manhattan")) {
    told <- list(metric = metric, max_memory = 1e3)
    search <- search_of(DelayedArray::DelayedArray(plain), told, k = 4)
    expect_s3_class(search$points$values, "row_file")
    expected <- at_once(search_of(plain, list(metric = metric), k = 4))
    expect_identical(by_blocks(search, 3), expected)
    expect_identical(at_once(search), expected)
  }
})

test_that("the answer is that of the verbs", {
  x <- random_matrix(90, 8)
  search <- search_of(x, list(sign = "absolute"), k = 9)
  expect_identical(
    by_blocks(search, 3),
    c(
      unclass(knn_search(x, 9, sign = "absolute"))[c("index", "distance")],
      list(correlation = NULL)
    )
  )
})

test_that("all pairs within a distance are put together, too", {
  for (matrix in list(random_matrix(90, 9), small_integers(80, 5))) {
    for_all_metrics(function(metric, sign, backend) {
      x <- values_for(matrix, metric)
      all <- brute_force(x, k = 20, metric = metric, sign = sign)$distance
      told <- list(metric = metric, sign = sign, backend = backend)
      for (as_edges in c(FALSE, TRUE)) {
        search <- search_of(x, told, within = all[1, 9], as_edges = as_edges)
        expect_identical(
          by_blocks(search, 3), at_once(search),
          label = paste(metric, sign, backend, as_edges)
        )
      }
      # Each point has its own distance, and there are more pairs than are kept
      # at once.
      search <- search_of(x, told, within = all[cbind(seq_len(nrow(x)), rep_len(1:20, nrow(x)))])
      search$request$within$most_kept <- 10
      expect_identical(by_blocks(search, 5), at_once(search))
    })
  }
})

test_that("edges within a distance keep their least similarity", {
  x <- small_integers(80, 6)
  x[, 1] <- seq_len(80) %% 7
  search <- search_of(
    x, list(constant = "isolate"), within = 1 - 0.3, as_edges = TRUE,
    similarity = 0.3
  )
  expect_identical(by_blocks(search, 3), at_once(search))
})

test_that("too many pairs are told of", {
  search <- search_of(random_matrix(60, 5), list(), within = 2, as_edges = TRUE)
  search$request$within$most <- 100
  found <- fsknn:::ask_between(
    search$points$values, c(1, 30), c(31, 60), search$request
  )
  expect_error(fsknn:::in_core(found), class = "fsknn_size_error")
  whole <- fsknn:::new_merged(60, search$request)
  search$request$within$most <- 1e6
  part <- fsknn:::ask_between(
    search$points$values, c(1, 30), c(31, 60), search$request
  )
  fsknn:::merge_part(whole, c(1, 30), c(31, 60), part)
  expect_error(fsknn:::merged_answer(whole), class = "fsknn_size_error")
})

test_that("a distance beyond a double's range is no neighbour of a part", {
  x <- rbind(random_matrix(40, 3), c(1.5e308, 0, 0), c(-1.5e308, 0, 0))
  search <- search_of(x, list(metric = "manhattan"), k = 3)
  part <- fsknn:::ask_between(x, c(41, 42), NULL, search$request)
  expect_identical(part$count, c(0L, 0L))
  # Each of the two finds three others.
  expect_identical(by_blocks(search, 3), at_once(search))
  search <- search_of(x, list(metric = "manhattan"), k = 41)
  expect_error(by_blocks(search, 3), class = "fsknn_range_error")
  expect_error(at_once(search), class = "fsknn_range_error")
})

test_that("limits are told of, and what is no part is refused", {
  x <- random_matrix(50, 6)
  search <- search_of(x, list(), k = 2)
  whole <- fsknn:::new_merged(50, search$request)
  expect_identical(fsknn:::limits_of(whole, c(1, 3), c(9, 9)), rep(Inf, 4))
  part <- fsknn:::ask_between(x, c(1, 50), NULL, search$request)
  fsknn:::merge_part(whole, c(1, 50), NULL, part)
  expect_identical(
    fsknn:::limits_of(whole, c(1, 50), NULL),
    knn_search(x, 2)$distance[, 2]
  )
  part$index[[1]] <- 51L
  expect_error(fsknn:::merge_part(whole, c(1, 50), NULL, part), "no lists")
  found <- fsknn:::ask_between(
    x, c(1, 2), NULL, search$request, limits = c(1, NaN)
  )
  expect_identical(found$failure, "internal")
})

test_that("two blocks take no more than half of a GPU's memory", {
  gpus <- data.frame(memory_total = c(16e9, 80e9, NA))
  memory <- function(..., max_device_memory = 0) {
    fsknn:::memory_for_pair(
      list(
        backend = "cuda", devices = c(...),
        max_device_memory = max_device_memory
      ),
      gpus
    )
  }
  expect_identical(memory(), 7.5e9)
  expect_identical(memory(2), 39.5e9)
  expect_identical(memory(2, max_device_memory = 10e9), 4.5e9)
  # Even little memory leaves some.
  expect_identical(memory(1, max_device_memory = 1e9), 0.25e9)
  expect_identical(memory(3), Inf)
  expect_identical(fsknn:::memory_for_pair(list(backend = "cpu"), gpus), Inf)
  # The limit decides the size of blocks with long rows.
  size <- function(memory) {
    fsknn:::block_size(1e6, 20000, 20, on_gpu = TRUE, memory = memory)
  }
  expect_lt(size(memory(1)), size(Inf))
  expect_lte(2 * size(memory(1)) * fsknn:::bytes_in_task(20000, 20), 7.5e9)
})
