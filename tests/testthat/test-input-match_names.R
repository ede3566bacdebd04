# Every verb, with every argument that has values for points or samples: named
# values match by name, and others by position.

num_points <- 24
num_samples <- 12
points_called <- paste0("p-", seq_len(num_points))
samples_called <- paste0("TCGA-", seq_len(num_samples))

named_points <- function(seed = 4) {
  x <- random_matrix(num_points, num_samples, seed)
  dimnames(x) <- list(points_called, samples_called)
  x
}

# Adds names to values of any shape, and takes some of them by number.
with_names <- function(values, names) {
  if (is.list(values) && !is.data.frame(values)) {
    return(lapply(values, with_names, names))
  }
  if (length(dim(values)) == 2 && !inherits(values, "Surv")) {
    rownames(values) <- names
  } else {
    names(values) <- names
  }
  values
}

some_of <- function(values, at) {
  if (is.list(values) && !is.data.frame(values)) {
    lapply(values, some_of, at)
  } else if (length(dim(values)) == 2 && !inherits(values, "Surv")) {
    values[at, , drop = FALSE]
  } else {
    values[at]
  }
}

with_seed <- function(code) withr::with_seed(1, code)

predicted <- function(...) {
  knn_predict(...)[c("predicted", "neighbours", "by_k")]
}

# A case has values without names, and a verb to call with them and x.
case <- function(values, verb) list(values = values, verb = verb)

numbers_of <- function(count) round(sin(seq_len(count)) + 2, 2)
kinds_of <- function(count) rep_len(c("a", "b", "b", "a", "b"), count)

sample_cases <- function() {
  n <- num_samples
  w <- numbers_of(n)
  kind <- kinds_of(n)
  batch <- rep_len(1:3, n)
  table <- data.frame(age = w, kind = kind)
  modules <- rep_len(1:3, num_points)
  of_two <- replace(rep(1:2, 6), 12, NA)
  first <- function(x, labels) seq_len(ncol(x))[-1]
  cases <- list(
    "weights, knn_search" = case(w, function(v, x) {
      knn_search(x, 3, weights = v)
    }),
    "weights, knn_graph of columns" = case(w, function(v, x) {
      knn_graph(t(x), 3, weights = v, points = "columns")
    }),
    "weights of 0" = case(replace(w, 3:4, 0), function(v, x) {
      knn_search(x, 3, weights = v)
    }),
    "weights, knn_query" = case(w, function(v, x) {
      knn_query(x, x[1:3, ], 3, weights = v)
    }),
    "weights, within_search" = case(w, function(v, x) {
      within_search(x, 0.6, weights = v)
    }),
    "weights, within_query" = case(w, function(v, x) {
      within_query(x, x[1:3, ], 0.6, weights = v)
    }),
    "weights, threshold_graph" = case(w, function(v, x) {
      threshold_graph(x, 0.4, weights = v)
    }),
    "weights, nearest_to" = case(w, function(v, x) {
      nearest_to(x, 1, 3, weights = v)
    }),
    "weights, mutual_pairs" = case(w, function(v, x) {
      mutual_pairs(x, rep(1:2, 12), 3, weights = v)
    }),
    "weights, mst_knn" = case(w, function(v, x) {
      mst_knn(x, weights = v)$tree
    }),
    "weights, knn_predict" = case(w, function(v, x) {
      predicted(x, kinds_of(num_points), k = 3, weights = v)
    }),
    "weights, knn_predict with select" = case(w, function(v, x) {
      predicted(
        x, kinds_of(num_points), k = 3, weights = v, folds = rep(1:4, 6),
        select = first
      )
    }),
    "weights, pair_histogram" = case(w, function(v, x) {
      as.data.frame(pair_histogram(x, 20, weights = v))
    }),
    "weights, pair_connectivity" = case(w, function(v, x) {
      pair_connectivity(x, weights = v)
    }),
    "weights, edge_stability" = case(w, function(v, x) {
      with_seed(edge_stability(x, 3, resamples = 5, weights = v))
    }),
    "weights, edge_significance" = case(w, function(v, x) {
      edge_significance(
        knn_graph(x, 3, weights = v), x, weights = list(precision = v)
      )
    }),
    "weights, compare_neighbours" = case(w, function(v, x) {
      compare_neighbours(x, of_two, 3, permutations = NULL, weights = v)$edges
    }),
    "adjust, a vector" = case(w, function(v, x) knn_graph(x, 3, adjust = v)),
    "adjust, text" = case(kind, function(v, x) knn_graph(x, 3, adjust = v)),
    "adjust, a matrix" = case(cbind(w, batch), function(v, x) {
      knn_search(x, 3, adjust = v)
    }),
    "adjust, a data frame" = case(table, function(v, x) {
      within_search(x, 0.6, adjust = v)
    }),
    "adjust, a variable of the formula" = case(w, function(v, x) {
      age <- v
      knn_graph(x, 3, adjust = ~ poly(age, 2))
    }),
    "data, a data frame" = case(table, function(v, x) {
      nearest_to(x, 1, 3, adjust = ~ age + kind, data = v)
    }),
    "data, pair_histogram" = case(table, function(v, x) {
      as.data.frame(pair_histogram(x, 20, adjust = ~ age, data = v))
    }),
    "outcome, numbers" = case(w, function(v, x) {
      nearest_to(x, outcome = v, k = 3)
    }),
    "outcome, weights of 0" = case(w, function(v, x) {
      nearest_to(x, outcome = v, k = 3, weights = rep(c(0, 1), c(2, 10)))
    }),
    "outcome, a factor" = case(factor(kind), function(v, x) {
      nearest_to(x, outcome = v, k = 3)
    }),
    "outcome, text" = case(kind, function(v, x) {
      nearest_to(x, outcome = v, k = 3)
    }),
    "outcome, a list" = case(list(a = w, b = rev(w)), function(v, x) {
      nearest_to(x, outcome = v, k = 3)
    }),
    "outcome, a data frame" = case(table, function(v, x) {
      nearest_to(x, outcome = v, k = 3)
    }),
    "outcome, module_summary" = case(w, function(v, x) {
      module_summary(modules, x, v)$outcomes
    }),
    "outcome, a data frame of module_summary" = case(table, function(v, x) {
      module_summary(modules, x, v)$outcomes
    }),
    "adjust, module_summary" = case(w, function(v, x) {
      module_summary(modules, x, numbers_of(12)^2, adjust = v)$outcomes
    }),
    "data, module_summary" = case(table, function(v, x) {
      module_summary(
        modules, x, numbers_of(12)^2, adjust = ~ kind, data = v
      )$outcomes
    }),
    "strata, nearest_to" = case(batch, function(v, x) {
      with_seed(nearest_to(x, outcome = w, k = 3, permutations = 9, strata = v))
    }),
    "unit, nearest_to" = case(batch, function(v, x) {
      with_seed(nearest_to(x, outcome = w, k = 3, permutations = 9, unit = v))
    }),
    "unit, edge_stability" = case(batch, function(v, x) {
      with_seed(edge_stability(x, 3, resamples = 5, unit = v))$stability
    }),
    "unit, edge_significance" = case(batch, function(v, x) {
      with_seed(edge_significance(
        knn_graph(x, 3), x, permutations = 9, unit = v
      ))$p_from
    }),
    "unit, compare_neighbours" = case(batch, function(v, x) {
      with_seed(compare_neighbours(
        x, rep(1:2, 6), 3, permutations = 9, unit = v
      )$points)
    }),
    "strata, module_summary" = case(batch, function(v, x) {
      with_seed(
        module_summary(modules, x, w, permutations = 9, strata = v)$outcomes
      )
    }),
    "strata, compare_neighbours" = case(batch, function(v, x) {
      with_seed(compare_neighbours(
        x, rep(1:2, 6), 3, permutations = 9, strata = v
      )$edges)
    }),
    "groups" = case(kind, function(v, x) {
      compare_neighbours(x, v, 3, permutations = NULL)$edges
    }),
    "values, add_phenotype" = case(w, function(v, x) {
      unname(add_phenotype(x, v, "y"))
    }),
    "values, add_phenotype to a data frame" = case(kind, function(v, x) {
      # A data frame always has column names.
      if (!is.null(colnames(x))) x <- as.data.frame(x)
      unname(as.matrix(add_phenotype(x, v, "y")))
    }),
    "class, mdl_filter" = case(kind, function(v, x) mdl_filter(x, v)$gain),
    "class, alpha_beta_k" = case(kind, function(v, x) {
      alpha_beta_k(round(x), v, solver = "none")[1:5]
    }),
    "class, alpha_beta_k of a filter" = case(kind, function(v, x) {
      x[1, ] <- x[1, ] + 9 * (kind == "b")
      x[2, ] <- x[2, ] + 9 * (batch == 2)
      f <- mdl_filter(x, kind)
      f$levels <- round(x) - min(round(x)) + 1L
      mode(f$levels) <- "integer"
      f$keep[] <- TRUE
      alpha_beta_k(f, v, solver = "none")[1:5]
    }),
    "class, write_points" = case(kind, function(v, x) {
      file <- withr::local_tempfile()
      write_points(unname(x), file, "cibm")
      dimnames(x) <- dimnames(x) %||% dimnames(read_points(file, "cibm"))
      write_points(x, file, "cibm", class = v)
      attr(read_points(file, "cibm"), "classes")
    })
  )
  if (requireNamespace("survival", quietly = TRUE)) {
    time <- survival::Surv(w, rep_len(c(1, 1, 0), n))
    cases <- c(cases, list(
      "outcome, survival" = case(time, function(v, x) {
        nearest_to(x, outcome = v, k = 3)
      }),
      "outcome, survival adjusted" = case(time, function(v, x) {
        nearest_to(x, outcome = v, k = 3, adjust = batch)
      }),
      "outcome, survival of modules" = case(time, function(v, x) {
        module_summary(modules, x, list(relapse = v))$outcomes
      }),
      "values, survival" = case(time, function(v, x) {
        unname(add_phenotype(x, v, "y"))
      })
    ))
  }
  if (requireNamespace("S4Vectors", quietly = TRUE)) {
    frame <- S4Vectors::DataFrame(table)
    cases <- c(cases, list(
      "outcome, a DataFrame" = case(frame, function(v, x) {
        nearest_to(x, outcome = v, k = 3)
      }),
      "data, a DataFrame" = case(frame, function(v, x) {
        knn_graph(x, 3, adjust = ~ age, data = v)
      })
    ))
  }
  cases
}

point_cases <- function() {
  n <- num_points
  kind <- kinds_of(n)
  two <- rep_len(c(1, 2, 2, 1), n)
  list(
    "block, knn_search" = case(two, function(v, x) {
      knn_search(x, 3, block = v)
    }),
    "block, a factor" = case(factor(two), function(v, x) {
      knn_search(as.data.frame(x), 3, block = v)
    }),
    "block, knn_graph of columns" = case(kind, function(v, x) {
      as.data.frame(knn_graph(t(x), 3, block = v, points = "columns"))
    }),
    "block, knn_query" = case(two, function(v, x) {
      knn_query(x, x[1:3, ], 3, block = v)
    }),
    "block, nearest_to" = case(two, function(v, x) {
      nearest_to(x, 1, 3, block = v)
    }),
    "block, mutual_pairs" = case(kind, function(v, x) mutual_pairs(x, v, 3)),
    "block, knn_plan" = case(two, function(v, x) {
      unclass(plan_of(x, 3, block = v))
    }),
    "labels, knn_predict" = case(kind, function(v, x) {
      predicted(x, v, k = 3)
    }),
    "labels, numbers" = case(numbers_of(n), function(v, x) {
      predicted(x, v, k = 3)$predicted
    }),
    "folds" = case(rep_len(1:4, n), function(v, x) {
      predicted(x, kind, k = 3, folds = v)
    }),
    "strata, knn_predict" = case(kind, function(v, x) {
      with_seed(predicted(x, kind, k = 3, folds = 3, strata = v))
    }),
    "unit, knn_predict" = case(kind, function(v, x) {
      with_seed(predicted(x, rep_len(1:2, n) > 1, k = 3, unit = v))
    }),
    "unit, neighbour_mixing" = case(rep_len(1:4, n), function(v, x) {
      with_seed(attr(neighbour_mixing(
        knn_graph(x, 3), kind, unit = v, permutations = 9
      ), "chance"))
    }),
    "labels, neighbour_mixing" = case(kind, function(v, x) {
      neighbour_mixing(knn_graph(x, 3), v, permutations = NULL)$purity
    }),
    "strata, neighbour_mixing" = case(rep_len(1:4, n), function(v, x) {
      with_seed(attr(neighbour_mixing(
        knn_graph(x, 3), kind, strata = v, permutations = 9
      ), "chance"))
    }),
    "clusters, module_summary" = case(kind, function(v, x) {
      module_summary(v, x)$eigengenes
    }),
    "k" = case(rep_len(1:5, n), function(v, x) knn_search(x, v)),
    "distance" = case(numbers_of(n) / 4, function(v, x) within_search(x, v)),
    "subset" = case(kind == "a", function(v, x) {
      knn_search(x, 3, subset = v)
    }),
    "x, the second of two" = case(named_points(5), function(v, x) {
      if (is.null(rownames(v))) rownames(x) <- NULL
      compare_neighbours(list(x, v), k = 3, permutations = NULL)$points$rbo
    }),
    "x, predict.fsknn_mdl_filter" = case(named_points(5), function(v, x) {
      kind <- kinds_of(num_samples)
      x[c(1, 7, 9), kind == "a"] <- x[c(1, 7, 9), kind == "a"] + 9
      unname(predict(mdl_filter(x, kind), v))
    })
  )
}

# Values are all different, so that their order matters.
expect_names_matched <- function(case, about, called, x, no_names) {
  verb <- case$verb
  values <- some_of(case$values, seq_along(called))
  plain <- with_names(values, NULL)
  count <- length(called)
  mixed <- c(seq(2, count, 2), rev(seq(1, count, 2)))
  named <- with_names(values, called)
  expected <- verb(plain, x)
  expect(identical(verb(named, x), expected), paste("right order:", about))
  expect(
    identical(verb(some_of(named, mixed), x), expected),
    paste("shuffled:", about)
  )
  if (about != "block, knn_plan") {
    expect(
      !identical(verb(some_of(plain, mixed), x), expected),
      paste("no names, shuffled:", about)
    )
  }
  other <- replace(called, 2, "other")
  expect_wrong(
    verb(with_names(values, other), x), "must (be those|have)", info = about
  )
  expect_wrong(
    verb(with_names(values, make.names(called)), x), "make.names",
    fixed = TRUE, info = about
  )
  # x has no names, so values match by position.
  expect(
    identical(
      without_left_names(verb(named, no_names(x))),
      without_left_names(verb(plain, no_names(x)))
    ),
    paste("x without names:", about)
  )
}

without_left_names <- function(found) {
  if (is.list(found)) found else unname(found)
}

test_that("values of samples are matched by name in every verb", {
  x <- named_points()
  no_names <- function(x) {
    colnames(x) <- NULL
    x
  }
  cases <- sample_cases()
  for (about in names(cases)) {
    expect_names_matched(cases[[about]], about, samples_called, x, no_names)
  }
})

test_that("values of points are matched by name in every verb", {
  x <- named_points()
  no_names <- function(x) {
    rownames(x) <- NULL
    x
  }
  cases <- point_cases()
  for (about in names(cases)) {
    expect_names_matched(cases[[about]], about, points_called, x, no_names)
  }
})

test_that("row names that are whole numbers are no names", {
  x <- named_points()
  table <- data.frame(age = numbers_of(14))[-(1:2), , drop = FALSE]
  expect_identical(
    knn_graph(x, 3, adjust = ~ age, data = table),
    knn_graph(x, 3, adjust = table$age)
  )
  outcome <- table[12:1, , drop = FALSE]
  expect_identical(
    nearest_to(x, outcome = outcome, k = 3),
    nearest_to(x, outcome = list(age = outcome$age), k = 3)
  )
  # Row numbers of a data frame are not names, though edges use them for points.
  frame <- as.data.frame(unname(x))[24:1, ]
  kind <- kinds_of(24)
  expect_identical(
    knn_graph(frame, 3, block = stats::setNames(kind, points_called)),
    knn_graph(frame, 3, block = kind)
  )
  expect_identical(
    predicted(frame, stats::setNames(kind, points_called), k = 3),
    predicted(frame, kind, k = 3)
  )
  called <- stats::setNames(numbers_of(24), points_called)
  expect_identical(
    knn_search(frame, 3, points = "columns", weights = called),
    knn_search(frame, 3, points = "columns", weights = unname(called))
  )
})

test_that("samples in neither group, or without weight, are left out by name", {
  x <- named_points()
  groups <- stats::setNames(rep(c("a", "b", NA, "b"), 3), samples_called)
  w <- stats::setNames(numbers_of(12), samples_called)
  kept <- which(!is.na(groups))
  expected <- compare_neighbours(
    x[, kept], unname(groups[kept]), 3, permutations = NULL,
    weights = unname(w[kept])
  )
  expect_identical(
    compare_neighbours(
      x, rev(groups), 3, permutations = NULL, weights = w[c(12, 1:11)]
    ),
    expected
  )
})

test_that("what a container's own tables have goes by position", {
  skip_if_not_installed("SummarizedExperiment")
  x <- named_points()
  batch <- stats::setNames(rep_len(1:3, 12), LETTERS[1:12])
  experiment <- SummarizedExperiment::SummarizedExperiment(
    list(logcounts = x), colData = S4Vectors::DataFrame(
      kind = kinds_of(12), row.names = samples_called
    )
  )
  experiment$batch <- batch
  expect_identical(
    nearest_to(experiment, outcome = "batch", k = 3),
    nearest_to(x, outcome = unname(batch), k = 3)
  )
  # A vector is not the name of a column, even if it is text.
  expect_identical(
    nearest_to(experiment, outcome = rev(kinds_of(12)), k = 3),
    nearest_to(x, outcome = rev(kinds_of(12)), k = 3)
  )
  w <- stats::setNames(numbers_of(12), samples_called)
  expect_identical(
    module_summary(
      rep_len(1:3, 24), experiment, rev(w), adjust = ~ batch
    )$outcomes,
    module_summary(rep_len(1:3, 24), x, w, adjust = unname(batch))$outcomes
  )
})

# --- queries -----------------------------------------------------------------

query_forms <- function() {
  forms <- list(matrix = identity, data_frame = as.data.frame)
  if (requireNamespace("Matrix", quietly = TRUE)) {
    forms$sparse <- function(x) methods::as(x, "CsparseMatrix")
  }
  if (requireNamespace("DelayedArray", quietly = TRUE)) {
    forms$delayed <- DelayedArray::DelayedArray
  }
  if (requireNamespace("bigmemory", quietly = TRUE)) {
    forms$big <- bigmemory::as.big.matrix
  }
  if (requireNamespace("S4Vectors", quietly = TRUE)) {
    forms$DataFrame <- function(x) {
      S4Vectors::DataFrame(as.data.frame(x), check.names = FALSE)
    }
  }
  forms
}

query_verbs <- list(
  knn_query = function(x, query, ...) knn_query(x, query, 3, ...),
  within_query = function(x, query, ...) within_query(x, query, 0.6, ...),
  knn_predict = function(x, query, ...) {
    predicted(x, kinds_of(24), query, k = 3, ...)
  },
  select = function(x, query, ...) {
    predicted(
      x, kinds_of(24), query, k = 3, select = function(x, labels) 2:9, ...
    )
  }
)

test_that("a query's features are matched by name, and may be more", {
  x <- named_points()
  query <- unname(named_points(7)[1:5, ])
  wide <- cbind(query, random_matrix(5, 3, seed = 8))
  colnames(wide) <- c(samples_called, "more-1", "more-2", "more-3")
  mixed <- c(14, 3, 1, 12, 5, 13, 2, 11, 6:10, 15, 4)
  forms <- query_forms()
  for (verb in names(query_verbs)) {
    ask <- query_verbs[[verb]]
    expected <- ask(x, query)
    for (form in names(forms)) {
      # All verbs read a query by the same code, but `select` reads it in memory.
      if (verb != "knn_query" && !form %in% c("matrix", "data_frame")) {
        next
      }
      about <- paste(verb, form)
      made <- function(columns) forms[[form]](wide[, columns])
      expect(
        identical(ask(x, made(1:12)), expected), paste("right order:", about)
      )
      expect(
        identical(ask(x, made(c(12, 1:11))), expected),
        paste("shuffled:", about)
      )
      expect(identical(ask(x, made(mixed)), expected), paste("more:", about))
      expect_wrong(
        ask(x, made(2:15)), "1 column is not there: \"TCGA-1\"", fixed = TRUE,
        info = about
      )
      # Reading a file would change its names.
      changed <- wide[, 1:12]
      colnames(changed) <- make.names(colnames(changed))
      expect_wrong(
        ask(x, forms[[form]](changed)), "check.names = FALSE", fixed = TRUE,
        info = about
      )
      if (form %in% c("matrix", "sparse", "delayed")) {
        expect(
          identical(
            ask(t(x), forms[[form]](t(wide[, mixed])), points = "columns"),
            ask(t(x), t(query), points = "columns")
          ),
          paste("columns:", about)
        )
      }
    }
    # If one side has no names, values match by position and must be equally
    # many.
    expect_identical(ask(unname(x), wide[, c(3:12, 1:2)]),
                     ask(x, unname(wide[, c(3:12, 1:2)])))
    expect_wrong(ask(unname(x), wide), "as many columns")
  }
})

test_that("weights are of the points' features, whatever more a query has", {
  x <- named_points()
  wide <- cbind(named_points(7)[1:5, 12:1], more = 1)
  w <- stats::setNames(replace(numbers_of(12), 2, 0), samples_called)
  expect_identical(
    knn_query(x, wide, 3, weights = rev(w)),
    knn_query(x, wide[, samples_called], 3, weights = w)
  )
  expect_identical(
    unclass(plan_of(x, 3, query = wide)),
    unclass(plan_of(x, 3, query = wide[, samples_called]))
  )
})

test_that("queries of a file in pieces are matched by name", {
  skip_if_not_installed("DelayedArray")
  x <- named_points()
  wide <- cbind(named_points(7)[, 12:1], more = 1)
  expect_identical(
    knn_query(x, DelayedArray::DelayedArray(wide), 3, max_memory = 1000),
    knn_query(x, wide[, samples_called], 3)
  )
})

test_that("BiocNeighbors' queries are matched by name", {
  skip_if_not_installed("BiocNeighbors")
  x <- named_points()
  wide <- cbind(named_points(7)[1:5, 12:1], more = 1)
  for (distance in c("pearson", "Cosine")) {
    param <- FsknnParam(distance)
    ask <- function(query, x = named_points(), ...) {
      BiocNeighbors::queryKNN(x, query, k = 3, BNPARAM = param, ...)
    }
    expect_identical(ask(wide), ask(unname(wide[, samples_called])))
    # Since 2.0 both are transposed.
    both <- utils::packageVersion("BiocNeighbors") >= "1.99"
    expect_identical(
      ask(t(wide), if (both) t(x) else x, transposed = TRUE),
      ask(unname(wide[, samples_called]))
    )
    expect_wrong(ask(wide[, 2:13]), "is not there")
  }
})

# --- graphs ------------------------------------------------------------------

test_that("recall is of points of the same name", {
  x <- named_points()
  mixed <- c(7:24, 6:1)
  exact <- knn_graph(x, 5)
  other <- knn_graph(x[mixed, ], 4)
  expect_identical(knn_recall(other, exact)$recall, 1)
  # The approximate search found other neighbours for some points.
  off <- knn_graph(x[mixed, ] + random_matrix(24, 12, seed = 9) / 2, 4)
  in_order <- as_knn(off)
  in_order$index <- in_order$index[order(mixed), ]
  in_order$index[] <- mixed[in_order$index]
  expected <- knn_recall(in_order["index"], as_knn(exact))
  expect_true(expected$recall < 1 && stats::sd(expected$per_point$recall) > 0)
  expected["metric"] <- list("pearson (signed)")
  expect_identical(knn_recall(off, exact), expected)
  # Neighbours are lists if points have different numbers of them.
  expect_identical(
    knn_recall(off[off$rank < 3 | off$from != "p-1", ], exact)$per_point$recall[
      -1],
    expected$per_point$recall[-1]
  )
  expect_wrong(knn_recall(knn_graph(x[-1, ], 4), exact), "\"p-1\"")
  # One graph has no names, so points match by position.
  expect_identical(knn_recall(knn_graph(unname(x), 4), exact)$recall, 1)
})

test_that("queries' names are matched, and their neighbours are as they are", {
  x <- named_points()
  exact <- knn_query(x, named_points(7)[1:6, ], 4)$index
  rownames(exact) <- letters[1:6]
  expect_identical(
    knn_recall(
      exact[6:1, ],
      list(id = exact, dist = col(exact) + 0), queries = TRUE
    )$recall,
    1
  )
})

test_that("graphs of the same points are combined in any order", {
  x <- named_points()
  first <- knn_graph(x, 3)
  second <- knn_graph(named_points(5), 3)
  mixed <- knn_graph(named_points(5)[24:1, ], 3)
  for (mode in c("union", "intersection")) {
    by_name <- combine_graphs(first, mixed, mode = mode)
    expected <- combine_graphs(first, second, mode = mode)
    key <- function(edges) sort(paste(edges$from, edges$to, edges$graphs))
    expect_identical(key(by_name), key(expected))
    expect_identical(attr(by_name, "vertices"), attr(expected, "vertices"))
  }
  expect_wrong(combine_graphs(first, knn_graph(x[-1, ], 3)), "\"p-1\"")
})

test_that("pictures take values by name", {
  skip_if_not_installed("ggplot2")
  x <- named_points()
  w <- stats::setNames(numbers_of(12), samples_called)
  drawn <- function(...) plot_profiles(x, "p-3", ...)$data
  expect_identical(drawn(rev(w)), drawn(unname(w)))
  kind <- stats::setNames(kinds_of(12), samples_called)
  expect_identical(
    drawn("p-1", colour = kind[c(5:12, 1:4)]), drawn("p-1", colour = kind)
  )
  expect_identical(drawn(rev(kind)), drawn(factor(kind)))
  for (arg in c("against", "colour")) {
    values <- stats::setNames(kind, replace(samples_called, 3, "other"))
    told <- list(against = "p-1")
    told[[arg]] <- values
    expect_wrong(do.call(drawn, told), "other")
  }
  skip_if_not_installed("ggraph")
  edges <- knn_graph(x, 3)
  expect_wrong(
    plot_neighbourhood(
      edges, "p-1", clusters = stats::setNames(1:24, make.names(points_called))
    ),
    "make.names"
  )
  for (arg in c("text", "colour")) {
    told <- list(edges, "p-1")
    told[[arg]] <- stats::setNames(1:24, make.names(points_called))
    expect_wrong(do.call(plot_neighbourhood, told), "must be those of points")
  }
  symbols <- paste0("gene", 1:24)
  picture <- plot_neighbourhood(edges, "p-1", text = symbols)
  expect_true("gene1" %in% picture$data$label)
  expect_error(
    plot_neighbourhood(edges, "p-1", text = symbols[-1]), "23 values",
    class = "fsknn_argument_error"
  )
})

test_that("errors say how many names are missing, the first, and why", {
  x <- named_points()
  w <- stats::setNames(numbers_of(12), samples_called)
  table <- data.frame(age = w)
  other <- table
  rownames(other) <- replace(samples_called, c(2, 5), c("S2", "S5"))
  changed <- table
  rownames(changed) <- make.names(samples_called)
  mangled <- x
  colnames(mangled) <- make.names(samples_called)
  expect_messages({
    nearest_to(x, outcome = replace(w, 1, 1)[-(1:5)], k = 3)
    nearest_to(x, outcome = other, k = 3)
    knn_search(x, 3, adjust = ~ age, data = changed)
    knn_search(mangled, 3, adjust = ~ age, data = table)
    knn_search(mangled, 3, weights = w)
    knn_query(x, mangled, 3)
    knn_query(mangled, x, 3)
    knn_query(x, x[, 5:1], 3)
    knn_query(t(x), t(mangled) + 1, 3, points = "columns")
    compare_neighbours(list(x, x[-3, ][c(1:23, 1), ]), k = 3)
    combine_graphs(knn_graph(x, 3), knn_graph(x[-3, ], 3))
  })
})
