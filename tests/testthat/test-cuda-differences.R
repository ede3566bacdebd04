# Differences of bytes, of 16-bit integers and of floats on GPUs, forced by
# options(fsknn.instruction_set = ). The answers are those of the CPU, bit for
# bit.

difference_metrics <- c("manhattan", "chebyshev", "proportional")

# Searches with each form. `as_asked` says that the requested form must have
# been used.
expect_as_cpu <- function(search, label, as_asked = FALSE) {
  cpu <- rlang::with_options(
    fsknn.instruction_set = "auto/16", search("cpu")
  )
  for (asked in c("int8", "int16", "float32")) {
    found <- rlang::with_options(
      fsknn.instruction_set = paste0("auto/", asked), search("cuda")
    )
    expect_identical(found, cpu, label = paste(label, "by", asked))
    if (as_asked) expect_identical(knn_stats()$filter_form, asked)
  }
}

expect_graph_as_cpu <- function(x, k, metric, as_asked = FALSE, ...) {
  x <- values_for(x, metric)
  expect_as_cpu(
    function(backend) knn_search(x, k, metric, backend = backend, ...),
    paste(metric, "d =", ncol(x), "k =", k), as_asked
  )
}

# The filter of 16-bit integers exists from compute capability 9.0 on.
skip_if_no_differences <- function() {
  skip_if_no_cuda()
  usable <- rlang::with_options(
    fsknn.instruction_set = "auto/16",
    knn_plan(
      c(4500, 30), k = 3, metric = "manhattan", backend = "cuda"
    )$filter
  )
  skip_if(!grepl("16-bit", usable, fixed = TRUE), "No GPU here has them.")
}

# n is not a multiple of a tile.
num_points <- 4321
hard_points <- function(d, seed = 1) {
  x <- abs(random_matrix(num_points, d, seed = seed))
  noise <- random_matrix(200, d, seed = seed + 1)
  x[4001:4100, ] <- x[1:100, , drop = FALSE] # copies
  x[4101:4200, ] <- x[1:100, , drop = FALSE] *
    (1 + 10^-rep(7:16, 10) * noise[1:100, , drop = FALSE]) # near ties
  x
}

test_that("differences of whole numbers give the CPU's graphs", {
  skip_if_no_differences()
  for (d in c(1, 2, 15, 16, 17, 78, 129)) {
    for (metric in difference_metrics) {
      expect_graph_as_cpu(hard_points(d), 20, metric)
    }
  }
  x <- hard_points(64)
  for (metric in c("manhattan", "proportional")) {
    expect_graph_as_cpu(x, 20, metric, as_asked = TRUE)
    for (k in c(1, 70, 1100)) expect_graph_as_cpu(x, k, metric)
    for (chunk_size in c(1, 300)) {
      expect_graph_as_cpu(x, 7, metric, chunk_size = chunk_size)
    }
  }
  expect_graph_as_cpu(hard_points(2100), 5, "manhattan")
  expect_graph_as_cpu(hard_points(2100), 5, "proportional")
  expect_graph_as_cpu(hard_points(300), 5, "chebyshev")
})

test_that("whole numbers serve hard points, or wider ones do", {
  skip_if_no_differences()
  hard <- list(
    "one huge entry" = replace(hard_points(40), 7, 1e9),
    "a huge entry in many rows" =
      replace(hard_points(40), cbind(1:300, rep(1:40, length.out = 300)), 1e5),
    "ties" = small_integers(num_points, 9, largest = 3),
    "levels beyond bytes" = small_integers(num_points, 9, largest = 5000),
    "all alike" = matrix(rep(abs(random_matrix(1, 30)), each = num_points),
                         num_points),
    "alike but for one" = replace(
      matrix(rep(abs(random_matrix(1, 30)), each = num_points), num_points),
      77, 3
    ),
    "natural scale" = exp(2 * random_matrix(num_points, 40)),
    "far from 0" = 1e8 + abs(random_matrix(num_points, 40)),
    "tiny" = 1e-290 * abs(random_matrix(num_points, 40)),
    "large" = 1e290 * abs(random_matrix(num_points, 40)),
    "over 60 powers of two" =
      2^(30 * sin(outer(seq_len(num_points), 1:40, "*")^1.1))
  )
  zeros <- hard_points(40)
  zeros[4201:4300, ] <- 0
  zeros[cbind(4201:4300, rep(1:40, length.out = 100))] <-
    10^-seq(0, 300, length.out = 100)
  hard[["near-empty rows"]] <- zeros
  for (name in names(hard)) {
    for (metric in difference_metrics) {
      x <- values_for(hard[[name]], metric)
      if (metric == "proportional") {
        x <- x[rowSums(x) > 0, , drop = FALSE]
      }
      expect_as_cpu(
        function(backend) knn_search(x, 9, metric, backend = backend),
        paste(name, metric)
      )
    }
  }
})

test_that("whole numbers serve queries, near and far", {
  skip_if_no_differences()
  x <- hard_points(33)
  for (level in c(0, 1e-9, 3, 1e8, 1e200)) {
    query <- rbind(
      level + abs(random_matrix(300, 33, seed = 4)), x[c(1:3, 4100), ]
    )
    for (metric in difference_metrics) {
      expect_as_cpu(
        function(backend) knn_query(x, query, 6, metric, backend = backend),
        paste(level, metric)
      )
    }
  }
})

test_that("whole numbers serve all pairs within a distance", {
  skip_if_no_differences()
  x <- hard_points(33)
  for (metric in difference_metrics) {
    near <- knn_search(x, 9, metric, backend = "cpu")$distance
    # The limits are the exact distance of some pairs, 0 for copies alone, and a
    # median.
    for (distance in c(near[[75, 4]], 0, stats::median(near[, 2]))) {
      expect_as_cpu(
        function(backend) {
          within_search(x, distance, metric, backend = backend)
        },
        paste(metric, "within", distance)
      )
    }
    expect_as_cpu(
      function(backend) {
        within_query(x, x[1:300, ] + 0.01, near[[75, 4]], metric,
                     backend = backend)
      },
      paste("queries within, by", metric)
    )
  }
  expect_as_cpu(
    function(backend) {
      threshold_graph(x, 0.9, "proportional", backend = backend)
    },
    "threshold graph"
  )
  rlang::with_options(
    fsknn.instruction_set = "auto/int8",
    within_search(x, near[[75, 4]], "manhattan", backend = "cuda")
  )
  expect_identical(knn_stats()$filter_form, "int8")
  expect_identical(knn_stats()$filter_bits, 8L)
})

test_that("whole numbers serve blocks of points", {
  skip_if_no_differences()
  x <- hard_points(33)
  request <- function(backend, metric) {
    options <- fsknn:::check_options(list(
      metric = metric, backend = backend,
      devices = if (backend == "cuda") 1, num_threads = 2
    ))
    fsknn:::new_search(x, options, k = 7)
  }
  for (metric in difference_metrics) {
    expect_as_cpu(
      function(backend) {
        search <- request(backend, metric)
        found <- fsknn:::in_core(fsknn:::ask_between(
          search$points$values, c(101, 2000), c(2001, 4300), search$request,
          NULL
        ))
        found[c("count", "index", "distance")]
      },
      paste("blocks by", metric)
    )
  }
})

test_that("the form is chosen by what it leaves, and told", {
  skip_if_no_differences()
  x <- random_matrix(20000, 200, seed = 9)
  bits <- function(x, ...) {
    knn_search(x, 10, ..., backend = "cuda")
    knn_stats()$filter_bits
  }
  expect_identical(bits(x, "manhattan"), 8L)
  expect_identical(bits(x, "chebyshev"), 16L)
  # Nearly all entries are within the lowest of 254 steps.
  expect_gt(bits(exp(3 * x), "manhattan"), 8L)
  # There are too few points for a choice.
  expect_identical(bits(x[1:4200, 1:20], "manhattan"), 32L)
  # A plan does not see the points and reports the first form.
  expect_match(
    knn_plan(x, 10, "manhattan", backend = "cuda")$filter, "whole numbers"
  )
  expect_match(
    knn_plan(x, 10, "chebyshev", backend = "cuda")$filter, "16-bit"
  )
})

# Searches in panels of both kinds on one GPU, and on all GPUs. `bits` is that
# of the filter.
expect_panels_as_cpu <- function(x, k, metric, bits = NULL, label = "", ...) {
  x <- values_for(x, metric)
  expected <- knn_search(x, k, metric, backend = "cpu", ...)
  limits <- limits_for_panels(x, k, metric, ...)
  # For very short rows, lists take most of the memory, and one of the limits
  # may not exist.
  expect_true("panels" %in% names(limits))
  if (ncol(x) > 20) expect_true("stretches" %in% names(limits))
  for (way in names(limits)) {
    for (devices in gpus_to_try()) {
      expect_identical(
        knn_search(
          x, k, metric, backend = "cuda", devices = devices,
          max_device_memory = limits[[way]], ...
        ),
        expected, label = paste(metric, label, way)
      )
      stats <- knn_stats()
      expect_true(stats$streamed && stats$filtered, label = paste(metric, way))
      expect_lte(stats$bytes_device, limits[[way]])
      if (!is.null(bits)) {
        expect_identical(
          stats$filter_bits, bits, label = paste(metric, label, way)
        )
      }
    }
  }
}

# Forces each of the forms.
with_bits <- function(asked, code) {
  rlang::with_options(fsknn.instruction_set = paste0("auto/", asked), code)
}

# Has rows that small samples rarely include: copies, near ties, far and huge
# ones.
hard_streams <- function(n = 9000, d = 40, seed = 21) {
  x <- abs(random_matrix(n, d, seed = seed))
  noise <- random_matrix(200, d, seed = seed + 1)
  x[4001:4200, ] <- x[1:200, ] # copies
  x[4201:4400, ] <- x[1:200, ] * (1 + 10^-rep(7:16, 20) * noise) # near ties
  x[4401:4700, ] <- x[rep(5, 300), ] # more than a short list holds
  x[n - 10, 3] <- 1e9
  x[n - 9, ] <- 1e7
  x[n - 8, ] <- 1
  x[n - 7:1, ] <- 1e-9
  x
}

test_that("differences of whole numbers serve points that come in panels", {
  skip_if_no_differences()
  x <- hard_streams()
  ties <- small_integers(9000, 12, largest = 3) + 1
  for (metric in difference_metrics) {
    for (asked in c(8, 16)) {
      bits <- if (metric == "chebyshev") 16L else as.integer(asked)
      with_bits(asked, {
        expect_panels_as_cpu(x, 10, metric, bits)
        expect_panels_as_cpu(ties, 7, metric, bits, "ties")
      })
    }
    with_bits(8, expect_panels_as_cpu(x, 1, metric))
    with_bits(8, expect_panels_as_cpu(x, 80, metric))
  }
})

test_that("differences of whole numbers serve points by group", {
  skip_if_no_differences()
  x <- hard_streams(5501)
  ties <- small_integers(5501, 12, largest = 3) + 1
  block <- withr::with_seed(4, sample(rep_len(c(1, 1, 1, 2, 3), 5501)))
  for (metric in difference_metrics) {
    for (between in list(FALSE, TRUE, "together")) {
      for (points in list(x, ties)) {
        found <- function(backend, k) {
          knn_search(
            points, k, metric, block = block, between = between,
            backend = backend
          )
        }
        for (k in c(3, 40)) {
          expected <- found("cpu", k)
          for (asked in c(8, 16)) {
            with_bits(asked, expect_identical(
              found("cuda", k), expected,
              label = paste(metric, between, "k =", k, "by", asked)
            ))
            bits <- if (metric == "chebyshev") 16L else as.integer(asked)
            expect_identical(knn_stats()$filter_bits, bits)
            expect_true(knn_stats()$filtered)
          }
        }
      }
    }
  }
})

test_that("the form is chosen by a sample in panels and by group, too", {
  skip_if_no_differences()
  x <- random_matrix(20000, 200, seed = 9)
  limits <- limits_for_panels(x, 10, "manhattan")
  expect_named(limits, c("panels", "stretches"))
  block <- rep_len(c(1, 2), 20000)
  bits <- function(x, metric, ...) {
    knn_search(x, 10, metric, backend = "cuda", devices = 1, ...)
    knn_stats()$filter_bits
  }
  whole <- round(20 * x)
  expect_identical(
    bits(x, "manhattan", max_device_memory = limits[["panels"]]), 8L
  )
  for (limit in limits) {
    expect_identical(bits(whole, "manhattan", max_device_memory = limit), 8L)
    expect_true(knn_stats()$streamed)
    expect_lte(bits(x, "manhattan", max_device_memory = limit), 16L)
    expect_identical(bits(x, "chebyshev", max_device_memory = limit), 16L)
    # Nearly all entries are within the lowest of 254 steps.
    expect_gt(bits(exp(3 * x), "manhattan", max_device_memory = limit), 8L)
  }
  # With blocks, rounds grow faster, and lists have room for fewer candidates.
  expect_lte(bits(x, "manhattan", block = block), 16L)
  expect_identical(bits(whole, "manhattan", block = block), 8L)
  expect_identical(bits(x, "chebyshev", block = block), 16L)
  expect_gt(bits(exp(3 * x), "manhattan", block = block), 8L)
  # There are too few points for a choice.
  few <- x[1:5000, 1:20]
  expect_identical(
    bits(few, "manhattan", block = rep_len(c(1, 2), 5000)), 32L
  )
  expect_identical(
    bits(
      few, "manhattan",
      max_device_memory = limits_for_panels(few, 10, "manhattan")[["panels"]]
    ),
    32L
  )
})
