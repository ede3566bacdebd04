# Tests that only a GPU can run: division of the work, and failures. Tests of
# every verb and metric also run on GPUs, by for_all_metrics().

test_that("the GPU's answer is the CPU's for every k and chunk size", {
  skip_if_no_cuda()
  x <- random_matrix(700, 21, seed = 21)
  x[601:650, ] <- x[1:50, ]
  for_all_metrics(function(metric, sign, backend) {
    if (backend == "cpu") {
      return()
    }
    x <- values_for(x, metric)
    for (k in c(1, 20, 128, 699)) {
      expected <- knn_search(x, k, metric, sign, backend = "cpu")
      for (chunk_size in list(NULL, 1, 200, 4096)) {
        expect_identical(
          knn_search(
            x, k, metric, sign, backend = "cuda", chunk_size = chunk_size
          ),
          expected,
          label = paste(metric, sign, k, chunk_size %||% "automatic")
        )
      }
    }
  })
})

# This is enough points for the filter by tensor cores, if the GPU has them.
num_filtered <- 4500

expect_same_graph <- function(x, k, metric = "pearson", sign = "signed", ...) {
  expect_identical(
    knn_search(x, k, metric, sign, backend = "cuda", ...),
    knn_search(x, k, metric, sign, backend = "cpu"),
    label = paste(metric, sign, "k =", k)
  )
}

test_that("lists that are settled early lose nothing", {
  skip_if_no_cuda()
  withr::local_options(fsknn.instruction_set = "auto/int8")
  n <- num_filtered
  x <- random_matrix(n, 78, seed = 37)
  knn_search(x, 20, backend = "cuda", devices = 1)
  skip_if_not(
    knn_stats()$filter_form == "int8", "No GPU here multiplies bytes."
  )
  near <- x
  near[4001:4200, ] <- x[1:200, ] *
    (1 + 10^-rep(7:16, 20) * random_matrix(200, 78, seed = 38))
  near[4201:4250, ] <- x[1:50, ]
  one <- matrix(rep(abs(random_matrix(1, 30)), each = n), n)
  one[cbind(c(77, 78), c(3, 4))] <- c(9, -9)
  centres <- random_matrix(30, 50, seed = 39)
  sets <- list(
    "near ties and copies" = near,
    "huge entries" = replace(x, cbind(1:300, rep(1:78, length.out = 300)), 1e5),
    "constant but for one" =
      replace(matrix(0, n, 40), cbind(1:n, rep(1:40, length.out = n)), 1),
    "all alike but two" = one,
    "ties" = matrix(floor(4 * sin(seq_len(9 * n)^1.3)) + 4, n),
    "tight clusters" = centres[rep(1:30, length.out = n), ] +
      1e-6 * random_matrix(n, 50, seed = 40)
  )
  for (name in names(sets)) {
    set <- sets[[name]][apply(sets[[name]], 1, function(row) {
      max(row) > min(row)
    }), ]
    for (metric in c("pearson", "manhattan", "proportional")) {
      points <- values_for(set, metric)
      for (k in c(1, 20, 32)) expect_same_graph(points, k, metric)
      expect_identical(
        knn_query(points, points[1:300, ] + 1, 20, metric, backend = "cuda"),
        knn_query(points, points[1:300, ] + 1, 20, metric, backend = "cpu"),
        label = paste("queries:", name, metric)
      )
    }
    expect_same_graph(set, 20, "pearson", "absolute")
  }
  # The statistics count the pairs that were computed, which are all neighbours
  # but not all candidates.
  for (k in c(20, 33)) {
    knn_search(x, k, backend = "cuda", devices = 1)
    expect_gte(knn_stats()$pairs_exact, k * n)
    expect_lt(knn_stats()$pairs_exact, 300 * n)
  }
})

test_that("rows of several stretches of features are filtered", {
  skip_if_no_cuda()
  usable <- knn_plan(c(num_filtered, 30), k = 3, backend = "cuda")$filter
  skip_if(!nzchar(usable), "No GPU here has the filter.")
  # The filter is forced where all pairs would be faster.
  withr::local_options(fsknn.instruction_set = "auto/16")
  x <- random_matrix(num_filtered, 3100, seed = 33)
  x[4001:4100, ] <- x[1:100, ] * (1 + 1e-7 * random_matrix(100, 3100, seed = 34))
  x[4101:4200, ] <- -x[1:100, ]
  # These rows differ only in one column range, or in all others.
  x[4201, ] <- c(x[1, 1:1024], x[2, 1025:3100])
  x[4202, ] <- c(x[1, 1:2048], rep(0, 1052))
  for (num_features in c(2048, 2049, 3072)) {
    part <- x[, seq_len(num_features)]
    expect_same_graph(part, 20)
    expect_same_graph(part, 5, "euclidean")
  }
  for (k in c(1, 300, 1100)) expect_same_graph(x, k)
  expect_same_graph(x, 7, "spearman", "absolute")
  expect_same_graph(x, 7, chunk_size = 64)
  limit <- knn_plan(x, 7, backend = "cuda", devices = 1)$bytes_peak / 3
  expect_same_graph(x, 7, devices = 1, max_device_memory = limit)
  expect_identical(
    knn_query(x, x[1:300, ] + 1, 6, backend = "cuda"),
    knn_query(x, x[1:300, ] + 1, 6, backend = "cpu")
  )
  # With very many features, correlations of unrelated rows are nearly equal.
  # Without column ranges, nearly all rows would be recomputed.
  x <- random_matrix(4100, 8192, seed = 36)
  found <- knn_search(x, 20, backend = "cuda")
  stats <- knn_stats()
  expect_true(stats$filtered)
  expect_identical(stats$rows_recomputed, 0)
  expect_identical(found, knn_search(x, 20, backend = "cpu"))
})

test_that("the filter's answer is the CPU's for every k, sign and chunk size", {
  skip_if_no_cuda()
  x <- random_matrix(num_filtered, 30, seed = 31)
  x[4001:4100, ] <- x[1:100, ]
  x[4101:4200, ] <- -x[1:100, ]
  for (k in c(1, 20, 33, 65, 128, 129, 300, 600, 1100, 2048, 2049)) {
    expect_same_graph(x, k)
    expect_same_graph(x, k, "euclidean")
  }
  for (sign in c("absolute", "negative")) {
    expect_same_graph(x, 7, "pearson", sign)
    expect_same_graph(x, 7, "spearman", sign)
  }
  for (chunk_size in c(1, 300, 4096)) {
    expect_same_graph(x, 7, "cosine", chunk_size = chunk_size)
    expect_same_graph(x, 7, "euclidean", chunk_size = chunk_size)
  }
  expect_same_graph(x[1:4097, 1:3], 9)
  x[c(5, 4000), ] <- 1
  for (backend in c("cuda", "cpu")) {
    assign(backend, knn_graph(x, 5, constant = "isolate", backend = backend))
  }
  expect_identical(cuda, cpu)
})

test_that("rows that fill one part of features, and one more, are filtered", {
  skip_if_no_cuda()
  # A part has 64 features. Squared distances take six for the rows' norms.
  x <- random_matrix(num_filtered, 65, seed = 37)
  x[4001:4100, ] <- x[1:100, ]
  x[4101:4150, ] <- -x[1:50, ]
  for (num_features in c(1, 57:59, 63:65)) {
    part <- x[, seq_len(num_features), drop = FALSE]
    expect_same_graph(part, 15, "euclidean")
    expect_same_graph(part, 100, "euclidean")
    if (num_features < 3) next
    for (sign in c("signed", "absolute", "negative")) {
      expect_same_graph(part, 15, "pearson", sign)
    }
  }
})

test_that("the filter drops no near-tie, and rows that overflow are done again", {
  skip_if_no_cuda()
  base <- random_matrix(num_filtered, 20, seed = 32)
  noise <- random_matrix(num_filtered, 20, seed = 33)
  for (gap in c(1e-3, 1e-7, 1e-12, 1e-15, 0)) {
    for (families in c(3, 60, 1500)) {
      x <- base[rep_len(seq_len(families), num_filtered), ] * (1 + gap * noise)
      expect_same_graph(x, 10)
      expect_same_graph(x, 10, "cosine", chunk_size = 1024)
      expect_same_graph(x, 10, "euclidean")
    }
  }
  huge <- base
  huge[cbind(seq_len(num_filtered), rep_len(1:20, num_filtered))] <- 1e8
  expect_same_graph(huge, 10, "pearson", "negative")
  expect_same_graph(round(base * 1000) * 2^-1074, 10)
  expect_same_graph(small_integers(num_filtered, 4, largest = 3) + 1, 10, "cosine")
})

test_that("the elementwise filter's answer is the CPU's, whatever the data", {
  skip_if_no_cuda()
  base <- random_matrix(num_filtered, 13, seed = 35)
  noise <- random_matrix(num_filtered, 13, seed = 36)
  huge <- replace(base, 500, 1e200)
  # Each row has its own power of ten.
  wide <- base * 10^rep_len(seq(-310, 300, by = 61), num_filtered)
  all <- list(
    base,
    small_integers(num_filtered, 4, largest = 3) + 1,
    base[rep_len(1:1500, num_filtered), ] * (1 + 1e-7 * noise),
    base[rep_len(1:60, num_filtered), ] * (1 + 1e-12 * noise),
    huge, wide, base + 1e9, base * 1e300, exp(5 * base)
  )
  for (x in all) {
    for (metric in c("manhattan", "chebyshev", "proportional")) {
      expect_same_graph(if (metric == "proportional") abs(x) else x, 20, metric)
    }
  }
  for (metric in c("manhattan", "chebyshev")) {
    expect_same_graph(round(base * 1000) * 2^-1074, 10, metric)
  }
  for (k in c(1, 128, 300)) {
    expect_same_graph(base[1:4099, ], k, "manhattan", chunk_size = 300)
  }
})

test_that("queries by the elementwise filter are the CPU's", {
  skip_if_no_cuda()
  x <- random_matrix(num_filtered, 19, seed = 38)
  query <- rbind(random_matrix(900, 19, seed = 39), x[1:100, ], 1e3 * x[1:20, ])
  for (metric in c("manhattan", "chebyshev", "proportional")) {
    values <- if (metric == "proportional") abs else identity
    for (k in c(1, 30, 200)) {
      expect_identical(
        knn_query(values(x), values(query), k, metric, backend = "cuda"),
        knn_query(values(x), values(query), k, metric, backend = "cpu"),
        label = paste(metric, "k =", k)
      )
    }
  }
})

test_that("few rows of unlike points overflow the elementwise filter's lists", {
  skip_if_no_cuda()
  x <- random_matrix(num_filtered, 40, seed = 37)
  for (metric in c("manhattan", "chebyshev", "proportional")) {
    knn_search(abs(x), 20, metric, backend = "cuda")
    stats <- knn_stats()
    expect_true(stats$filtered)
    expect_lt(stats$rows_recomputed, 10)
    expect_lt(stats$pairs_exact, 300 * num_filtered)
  }
})

test_that("the filter for |a - b|^2 is right for rows of any length", {
  skip_if_no_cuda()
  base <- random_matrix(num_filtered, 20, seed = 35)
  one_bit <- base[rep_len(1:900, num_filtered), ]
  one_bit[, 1] <- one_bit[, 1] * (1 + (seq_len(num_filtered) %/% 900) * 2^-52)
  rows <- list(
    "far from zero" = base + 1e9,
    "one huge entry" = replace(base, 500, 1e200),
    "one large entry" = replace(base, 500, 1e8),
    "some huge rows" = base * rep_len(c(1e6, rep(1, 499)), num_filtered),
    "rows of all lengths" = base * 2^(seq_len(num_filtered) %% 40),
    "tiny" = base * 1e-300,
    "subnormal" = round(base * 1000) * 2^-1074,
    "opposite rows" = rbind(base, -base)[seq_len(num_filtered) * 2, ],
    "one bit apart" = one_bit,
    "whole numbers" = small_integers(num_filtered, 4, largest = 9),
    "all the same but one" = rbind(base[1, ] + 1, base[rep(1, num_filtered), ])
  )
  for (name in names(rows)) {
    for (k in c(3, 200)) {
      expect_identical(
        knn_search(rows[[name]], k, "euclidean", backend = "cuda"),
        knn_search(rows[[name]], k, "euclidean", backend = "cpu"),
        label = paste(name, k)
      )
    }
  }
})

test_that("queries by the filter are those of the CPU", {
  skip_if_no_cuda()
  x <- random_matrix(num_filtered, 30, seed = 36)
  query <- rbind(random_matrix(560, 30, seed = 37), x[1:40, ], 1e4 * x[41:60, ])
  x[c(7, 4100), ] <- 0
  query[3, ] <- 0
  metrics <- list(
    c("pearson", "signed"), c("pearson", "absolute"), c("spearman", "negative"),
    c("cosine", "signed"), c("euclidean", "signed")
  )
  for (metric in metrics) {
    for (k in c(1, 20, 300, 1500)) {
      answer <- function(backend) {
        knn_query(
          x, query, k, metric[[1]], metric[[2]], constant = "isolate",
          backend = backend
        )
      }
      expect_identical(answer("cuda"), answer("cpu"), label = paste(metric[[1]], k))
    }
  }
})

test_that("near neighbours that stand side by side overflow no list", {
  skip_if_no_cuda()
  small <- random_matrix(100, 40, seed = 34)
  pairs <- utils::combn(100, 2)
  x <- small[pairs[1, ], ] - small[pairs[2, ], ]
  options <- list(
    metric = list(name = "pearson"), sign = "signed", num_threads = 1L,
    chunk_size = 0L, backend = list(name = "cuda", devices = integer())
  )
  found <- cpp_knn_search(x, NULL, new_request(20L, options))
  skip_if(found$stats$pairs_filtered == 0, "No GPU here has the filter.")
  expect_identical(found$stats$rows_recomputed, 0)
  expect_lt(found$stats$pairs_exact, 60 * nrow(x))
  expect_same_graph(x, 20)
})

test_that("lists longer than the GPU's selection gathers at a time are right", {
  skip_if_no_cuda()
  x <- small_integers(5000, 4, largest = 9)
  for (k in c(1500, 2500, 4999)) {
    expected <- knn_search(x, k, "manhattan", backend = "cpu")
    for (chunk_size in list(NULL, 1000)) {
      expect_identical(
        knn_search(
          x, k, "manhattan", backend = "cuda", chunk_size = chunk_size
        ),
        expected,
        label = paste("k =", k)
      )
    }
  }
})

test_that("points that draw nearer and nearer, or away, are all seen", {
  skip_if_no_cuda()
  # For the first point, each point is nearer than all before it. For the last,
  # it is the reverse.
  x <- matrix(c(0, 5000:1), ncol = 1)
  for (k in c(1, 20, 3000)) {
    expect_identical(
      knn_search(x, k, "euclidean", backend = "cuda"),
      knn_search(x, k, "euclidean", backend = "cpu"),
      label = paste("k =", k)
    )
  }
})

test_that("queries, isolated points and correlations are those of the CPU", {
  skip_if_no_cuda()
  x <- random_matrix(300, 12, seed = 22)
  query <- rbind(random_matrix(90, 12, seed = 23), x[1:10, ])
  x[c(1, 77, 300), ] <- 0
  query[5, ] <- 0
  for_all_metrics(function(metric, sign, backend) {
    if (backend == "cpu") {
      return()
    }
    x <- values_for(x, metric)
    query <- values_for(query, metric)
    answer <- function(backend, ...) {
      knn_query(
        x, query, 7, metric, sign, constant = "isolate", backend = backend, ...
      )
    }
    expect_identical(answer("cuda"), answer("cpu"), label = metric)
    expect_identical(answer("cuda", chunk_size = 64), answer("cpu"), label = metric)
    graph <- function(backend, ...) {
      knn_graph(
        x, 7, metric, sign, constant = "isolate", backend = backend, ...
      )
    }
    expect_identical(graph("cuda"), graph("cpu"), label = metric)
    expect_identical(graph("cuda", chunk_size = 64), graph("cpu"), label = metric)
  })
})

test_that("each GPU alone, and all together, give the same", {
  skip_if_no_cuda()
  x <- random_matrix(1000, 9, seed = 24)
  expected <- knn_search(x, 5, backend = "cpu")
  devices <- gpus_here()$device
  for (chosen in c(as.list(devices), list(devices), list(rev(devices)))) {
    expect_identical(
      knn_search(x, 5, devices = chosen, chunk_size = 128), expected,
      label = paste("devices", paste(chosen, collapse = ", "))
    )
  }
})

test_that("too little GPU memory is an error with its facts, and leaves none taken", {
  skip_if_no_cuda()
  x <- random_matrix(5000, 3)
  work <- function(...) {
    knn_search(x, 5, "manhattan", backend = "cuda", devices = 1, ...)
  }
  work() # the context and the modules stay
  before <- gpus_here()
  error <- expect_error(
    work(max_device_memory = 1e5), class = "fsknn_cuda_error"
  )
  expect_gt(error$bytes_asked, 1e5)
  expect_identical(error$bytes_free, 1e5)
  expect_match(error$cuda_words, "memory")
  expect_identical(error$device, 1L)
  expect_identical(error$cuda_id, before$cuda_id[[1]])
  expect_false(error$sticky)
  expect_identical(gpus_here()$memory_free, before$memory_free)
  expect_identical(work(), knn_search(x, 5, "manhattan", backend = "cpu"))
})

test_that("a chunk that does not fit the GPU is made smaller", {
  skip_if_no_cuda()
  x <- random_matrix(9000, 3)
  work <- function(...) knn_search(x, 5, "chebyshev", backend = "cuda", ...)
  expected <- work()
  expect_identical(work(chunk_size = 9000, max_device_memory = 5e7), expected)
  expect_lte(knn_stats()$bytes_device, 5e7)
})

test_that("a call leaves no GPU memory taken", {
  skip_if_no_cuda()
  x <- random_matrix(2000, 30)
  knn_search(x, 20, backend = "cuda")
  before <- gpus_here()$memory_free
  knn_search(x, 20, backend = "cuda")
  knn_search(x, 1999, "chebyshev", backend = "cuda")
  expect_identical(gpus_here()$memory_free, before)
})

# The float64 pass and the filter each get work for many seconds.
for (long_work in list(c("euclidean", 2e6), c("cosine", 6e6))) test_that(paste0(
  "an interrupt stops the GPU (", long_work[[1]], ") and leaves no memory taken"
), {
  skip_if_no_cuda()
  skip_on_os("windows")
  x <- matrix(sin(seq_len(8 * as.double(long_work[[2]]))), ncol = 8)
  work <- function(x) {
    knn_search(
      x, 1, long_work[[1]], backend = "cuda", devices = 1, progress = FALSE
    )
  }
  # The first search loads its kernels, which stay in the GPU's memory. From
  # 262,144 points on they include those that prune blocks.
  work(x[1:300000, ])
  before <- gpus_here()$memory_free
  # The signal is sent only during the work, because it would otherwise end R.
  under_way <- tempfile()
  file.create(under_way)
  withr::defer(unlink(under_way))
  system(sprintf(
    "(sleep 2; test -e '%s' && kill -INT %d) > /dev/null 2>&1 &",
    under_way, Sys.getpid()
  ))
  started <- Sys.time()
  said <- tryCatch(work(x), interrupt = function(cnd) "interrupted")
  unlink(under_way)
  seconds <- as.double(Sys.time() - started, units = "secs")
  expect_identical(said, "interrupted")
  expect_lt(seconds, 4)
  expect_identical(gpus_here()$memory_free, before)
  x <- x[1:500, ]
  expect_identical(work(x), knn_search(x, 1, long_work[[1]], backend = "cpu"))
})

test_that("a forked child is told that it can't use CUDA, and its parent can", {
  skip_if_no_cuda()
  skip_on_os("windows")
  x <- random_matrix(50, 3)
  here <- knn_search(x, 5, backend = "cuda")
  in_child <- parallel::mclapply(1:2, function(i) {
    list(
      usable = knn_backends()$usable[[2]],
      detail = knn_backends()$detail[[2]],
      devices = nrow(gpus_here()),
      error = tryCatch(
        knn_search(x, 5, backend = "cuda"), error = function(err) class(err)
      ),
      cpu = knn_search(x, 5, backend = "cpu", num_threads = 1)
    )
  }, mc.cores = 2)
  for (child in in_child) {
    expect_false(child$usable)
    expect_match(child$detail, "forked")
    expect_identical(child$devices, 0L)
    expect_true("fsknn_backend_error" %in% child$error)
    expect_identical(child$cpu, here)
  }
  expect_identical(knn_search(x, 5, backend = "cuda"), here)
})

test_that("distances beyond a double's range are an error, on the GPU too", {
  skip_if_no_cuda()
  x <- rbind(c(1.7e308, 1), c(-1.7e308, 2), c(1.7e308, 3))
  for (metric in c("euclidean", "manhattan", "chebyshev")) {
    expect_error(
      knn_search(x, 2, metric, backend = "cuda"), class = "fsknn_range_error"
    )
  }
})

# Returns the prepared rows, from which distances are computed, and their sums.
prepared_on <- function(backend, x, metric, ids = NULL, weights = NULL,
                        num_threads = 3L) {
  options <- list(
    metric = list(name = metric), sign = "signed", num_threads = num_threads,
    chunk_size = 0L, weights = weights, backend = list(name = backend, devices = integer())
  )
  cpp_prepared(x, ids, new_request(1L, options))
}

expect_same_rows <- function(x, metric, ids = NULL, weights = NULL) {
  expect_identical(
    prepared_on("cuda", x, metric, ids, weights),
    prepared_on("cpu", x, metric, ids, weights),
    label = paste(metric, paste(dim(x), collapse = " x "), typeof(x))
  )
}

row_metrics <- c(
  "pearson", "spearman", "bicor", "cosine", "euclidean", "manhattan"
)

test_that("the GPU prepares rows as the CPU does, of any shape and type", {
  skip_if_no_cuda()
  for (d in c(1, 7, 8, 9, 31, 295, 1024, 1025, 2049, 5000)) {
    x <- random_matrix(50, d, seed = d) * 10^seq(-300, 290, length.out = 50)
    ties <- small_integers(50, d, largest = 5)
    storage.mode(ties) <- "integer"
    ties[cbind(1:50, rep_len(seq_len(d), 50))] <- 7L
    for (metric in if (d > 1) row_metrics else row_metrics[4:6]) {
      expect_same_rows(x, metric)
      expect_same_rows(ties, metric)
      expect_same_rows(ties * 2^-1074, metric)
      # With few columns, some row might be constant.
      if (d > 30) expect_same_rows(x > 0, metric)
      expect_same_rows(x, metric, ids = c(1L, 2L, 50L, 3L))
      expect_same_rows(ties, metric, ids = 50L)
    }
    weights <- 2^seq(-30, 20, length.out = d)
    for (metric in if (d > 1) c("pearson", "spearman")) {
      expect_same_rows(x, metric, weights = weights)
      expect_same_rows(ties, metric, weights = weights)
      expect_same_rows(ties, metric, ids = 50L, weights = 1 / weights)
    }
  }
})

test_that("medians on the GPU are those of the CPU, of awkward rows", {
  skip_if_no_cuda()
  for (d in c(2, 3, 4, 5, 8, 9, 64, 65)) {
    base <- random_matrix(40, d, seed = d)
    expect_same_rows(base * 1.5e307, "bicor") # two of them add up to infinity
    expect_same_rows(base * 1e-318, "bicor")
    outlier <- base
    outlier[cbind(1:40, rep_len(seq_len(d), 40))] <- 1.7e308
    expect_same_rows(outlier, "bicor")
    expect_same_rows(-outlier, "bicor")
    # More than half of the values are equal or nearly equal, so the MAD is 0 or
    # tiny.
    alike <- base
    alike[, seq_len(d %/% 2 + 1)] <- rep(c(0, -0, 7, -1e300), 10)
    alike[1:20, seq_len(d %/% 2 + 1)] <-
      alike[1:20, seq_len(d %/% 2 + 1)] * (1 + 2^-52 * seq_len(d %/% 2 + 1))
    alike[, d] <- 3
    expect_same_rows(alike, "bicor")
    # Half of the values are below and half above zero, with zeros of both
    # signs.
    expect_same_rows(sign(base) * 0 + (base > 1), "bicor")
    expect_same_rows(sign(base), "bicor")
  }
})

test_that("weighted searches on the GPU are those of the CPU", {
  skip_if_no_cuda()
  weights <- c(0, 1, 2, 0.3, 1e-9, 5, 0, 7:20)
  for (n in c(300, num_filtered)) {
    x <- random_matrix(n, 21, seed = 51)
    x[, 1] <- NA
    for (metric in c("pearson", "spearman")) {
      graph <- function(backend, ...) {
        knn_graph(x, 9, metric, weights = weights, backend = backend, ...)
      }
      expect_identical(graph("cuda"), graph("cpu"), label = paste(metric, n))
      expect_identical(
        nearest_to(x, 7, 5, metric, weights = weights, backend = "cuda"),
        nearest_to(x, 7, 5, metric, weights = weights, backend = "cpu")
      )
    }
  }
  made <- metafeatures(x[1:40, -1])
  graph <- function(backend) {
    knn_graph(made, 9, "spearman", weights = weights[-1], backend = backend)
  }
  expect_identical(graph("cuda"), graph("cpu"))
})

test_that("the GPU prepares rows as the CPU does, in many panels and pieces", {
  skip_if_no_cuda()
  # There are more panels than pinned pieces, and rows wider than a piece.
  tall <- random_matrix(1e6 + 3, 20, seed = 43)
  wide <- random_matrix(11, 250001, seed = 44)
  for (metric in c("pearson", "spearman", "manhattan")) {
    expect_same_rows(tall, metric)
    expect_same_rows(tall, metric, ids = sample.int(nrow(tall), 3e5))
    expect_same_rows(wide, metric)
    expect_same_rows(round(wide), metric)
  }
  line <- matrix(sin(1:3e6), ncol = 1)
  expect_same_rows(line, "euclidean")
})

test_that("zeros of both signs rank alike on the GPU too", {
  skip_if_no_cuda()
  x <- rbind(c(0, -0, 1, -1, 0), c(-0, 0, 2, -3, -0))
  expect_same_rows(x, "spearman")
  expect_same_rows(cbind(x, matrix(1:4000, 2)), "spearman")
})

test_that("metafeatures are made on the GPU as on the CPU", {
  skip_if_no_cuda()
  x <- random_matrix(60, 33, seed = 45) + 3
  made <- metafeatures(x)
  for (metric in row_metrics) {
    expect_same_rows(made, metric)
    expect_same_rows(made, metric, ids = c(60L, 61L, 1830L, 1831L, 7140L))
  }
})

test_that("edges of the GPU are those of the CPU, in many pieces", {
  skip_if_no_cuda()
  x <- small_integers(3000, 4, largest = 9)
  rownames(x) <- paste0("p", 1:3000)
  x[c(1, 2, 1500, 3000), ] <- 0
  for (k in c(1, 700, 2995)) {
    graph <- function(backend) {
      knn_graph(x, k, "proportional", constant = "isolate", backend = backend)
    }
    expect_identical(graph("cuda"), graph("cpu"), label = paste("k =", k))
  }
  # The filter is used, with correlations and some rows left out.
  x <- random_matrix(num_filtered, 20, seed = 46)
  x[c(1, 77, 78, num_filtered), ] <- 3
  graph <- function(backend, ...) {
    knn_graph(x, 100, constant = "isolate", backend = backend, ...)
  }
  expect_identical(graph("cuda"), graph("cpu"))
  expect_identical(graph("cuda", num_threads = 1), graph("cpu"))
})

test_that("what is nearest to one point is so on a GPU that keeps no points", {
  skip_if_no_cuda()
  x <- random_matrix(9000, 12, seed = 47)
  x[8001:8100, ] <- x[1:100, ]
  made <- metafeatures(random_matrix(110, 12, seed = 48))
  for_all_metrics(function(metric, sign, backend) {
    if (backend == "cpu") {
      return()
    }
    x <- values_for(x, metric)
    x[c(2, 9000), ] <- undefined_value(metric)
    for (k in c(1, 20, 3000)) {
      one <- function(backend) {
        nearest_to(
          x, 8001, k, metric, sign, constant = "isolate", backend = backend
        )
      }
      expect_identical(one("cuda"), one("cpu"), label = paste(metric, sign, k))
    }
    some <- x[-c(2, 9000), ]
    two <- function(backend) {
      knn_query(some, x[c(1, 8001), ], 5, metric, sign, backend = backend)
    }
    expect_identical(two("cuda"), two("cpu"), label = paste(metric, sign))
  })
  for (k in c(1, 20)) {
    expected <- nearest_to(made, 5, k, backend = "cpu")
    expect_identical(nearest_to(made, 5, k, backend = "cuda"), expected)
    expect_true(knn_stats()$streamed)
  }
})

test_that("the graph of metafeatures is that of their matrix, on the GPU too", {
  skip_if_no_cuda()
  small <- random_matrix(100, 15, seed = 49) + 4
  made <- metafeatures(small, ops = c("-", "/"))
  for (metric in c("pearson", "spearman", "euclidean")) {
    for (k in c(3, 200)) {
      expect_identical(
        knn_search(made, k, metric, backend = "cuda"),
        without_names(
          knn_search(as.matrix(made), k, metric, backend = "cuda")
        ),
        label = paste(metric, k)
      )
    }
  }
})

test_that("rows far from 0 and huge entries are filtered, too", {
  skip_if_no_cuda()
  plain <- random_matrix(num_filtered, 78, seed = 71)
  profile <- rep(cos(3 * 1:78), each = num_filtered)
  some <- plain + 1e4
  some[1:40, ] <- plain[1:40, ]
  ties <- plain + 1e4
  ties[4001:4100, ] <- ties[1:100, ]
  for (x in list(
    plain + 10, plain + 1e3, plain + 1e6, plain + 1e12, plain - 1e5, some, ties
  )) expect_same_graph(x, 20, "cosine")
  for (noise in c(0.1, 1e-5)) {
    for (sign in c("signed", "absolute", "negative")) {
      expect_same_graph(noise * plain + profile, 5, "pearson", sign)
    }
  }
  entries <- plain
  entries[cbind(seq(1, num_filtered, 10), 1 + seq_len(450) %% 78)] <- 1e8
  column <- plain
  column[, 5] <- 1e8 * column[, 5]
  for (x in list(
    entries, -1e30 * entries, column, replace(plain, 5, 1e30),
    replace(plain, 5, 1e300)
  )) expect_same_graph(x, 20, "euclidean")
  expect_identical(
    within_search(ties, 2e-9, "cosine", backend = "cuda"),
    within_search(ties, 2e-9, "cosine", backend = "cpu")
  )
  query <- rbind(plain[1:500, ], ties[1:500, ] + 1e-3)
  expect_identical(
    knn_query(ties, query, 5, "cosine", backend = "cuda"),
    knn_query(ties, query, 5, "cosine", backend = "cpu")
  )
  knn_search(plain, 20, "euclidean", backend = "cuda")
  skip_if_not(knn_stats()$filter_bits == 16, "No filter by halves here.")
  few <- num_filtered / 10 + 20
  knn_search(plain + 1e3, 20, "cosine", backend = "cuda")
  expect_lt(knn_stats()$rows_recomputed, 20)
  knn_search(entries, 20, "euclidean", backend = "cuda")
  expect_lt(knn_stats()$rows_recomputed, few)
})

test_that("few queries have longer lists, which may overflow, too", {
  skip_if_no_cuda()
  x <- abs(random_matrix(20000, 30, seed = 91))
  # More than the longer lists hold.
  x[seq_len(1500), ] <- x[rep(20000, 1500), ] *
    (1 + 1e-9 * random_matrix(1500, 30, seed = 92))
  query <- rbind(
    x[c(20000, 3, 400, 9000), ], abs(random_matrix(253, 30, seed = 93))
  )
  for (metric in c("pearson", "euclidean", "manhattan", "proportional")) {
    index <- knn_index(x, metric, backend = "cuda")
    for (k in c(1, 20, 32, 33)) {
      expected <- knn_query(x, query, k, metric, backend = "cpu")
      for (rows in list(1, 9, 2:17, 1:256, 1:257)) {
        label <- paste(metric, k, length(rows))
        found <- knn_query(index, query[rows, , drop = FALSE], k)
        expect_identical(
          found$index, expected$index[rows, , drop = FALSE], label = label
        )
        expect_identical(
          found$distance, expected$distance[rows, , drop = FALSE],
          label = label
        )
        stats <- knn_stats()
        if (stats$filtered && metric == "pearson" && k > 1) {
          expect_gte(stats$rows_recomputed, sum(rows <= 3), label = label)
        }
      }
    }
    knn_release(index)
  }
})
