# Products of bytes on a GPU, which "auto/int8" forces even if they are slower,
# and of halves ("auto/float16"). On Hopper, a library built with
# FSKNN_CUDA_ARCH=90 uses the code of all other GPUs, products by warps. One
# built with 90a uses warpgroups.

num_filtered <- 4500

# Compares the GPU's answers by bytes and by halves with the CPU's. `form` is
# the form that the GPU reports when bytes are requested, or NULL for either.
expect_same_by_bytes <- function(x, k, metric = "pearson", sign = "signed",
                                 form = NULL, query = NULL) {
  label <- paste(metric, sign, "k =", k, "d =", ncol(x))
  answer <- function(backend) {
    if (is.null(query)) {
      knn_search(x, k, metric, sign, backend = backend)
    } else {
      knn_query(x, query, k, metric, sign, backend = backend)
    }
  }
  expected <- answer("cpu")
  for (asked in c("int8", "float16")) {
    withr::local_options(fsknn.instruction_set = paste0("auto/", asked))
    expect_identical(answer("cuda"), expected, label = paste(label, asked))
    if (asked == "float16" || !is.null(form)) {
      expect_identical(
        knn_stats()$filter_form, if (asked == "float16") asked else form,
        label = paste(label, asked, "form")
      )
    }
  }
}

skip_if_no_bytes <- function() {
  skip_if_no_cuda()
  usable <- knn_plan(c(num_filtered, 30), k = 3, backend = "cuda")$filter
  skip_if(!nzchar(usable), "No GPU here has the filter.")
}

test_that("products of bytes give the same graph for rows of any length", {
  skip_if_no_bytes()
  for (d in c(2, 3, 4, 15, 28, 29, 60, 61, 123, 124, 295, 1100)) {
    x <- random_matrix(num_filtered, d, seed = d)
    expect_same_by_bytes(x, 20, if (d < 4) "cosine" else "pearson", form = "int8")
  }
  expect_same_by_bytes(random_matrix(num_filtered, 1, seed = 2), 5, "cosine")
  x <- random_matrix(num_filtered, 78, seed = 35)
  expect_same_by_bytes(x[, rep(1:78, 53)], 5, form = "int8")
  for (k in c(1, 40, 300, 1100, 2048)) expect_same_by_bytes(x, k, form = "int8")
  expect_same_by_bytes(x[1:4097, 1:4], 5, "spearman")
})

test_that("more features than bytes are added up of go by halves", {
  skip_if_no_bytes()
  x <- random_matrix(4096, 20, seed = 3)[, rep_len(1:20, 16385)]
  expect_same_by_bytes(x, 3, form = "float16")
})

test_that("products of bytes drop no near-tie, and no tie", {
  skip_if_no_bytes()
  base <- random_matrix(num_filtered, 78, seed = 36)
  noise <- random_matrix(num_filtered, 78, seed = 37)
  for (gap in c(1e-3, 1e-7, 1e-12, 1e-15, 0)) {
    for (families in c(60, 1500)) {
      x <- base[rep_len(seq_len(families), num_filtered), ] * (1 + gap * noise)
      expect_same_by_bytes(x, 10)
      expect_same_by_bytes(x, 10, "cosine")
    }
  }
  whole <- small_integers(num_filtered, 9, largest = 3)
  whole <- whole[apply(whole, 1, function(row) max(row) > min(row)), ]
  for (k in c(1, 20, 300)) expect_same_by_bytes(whole, k)
  expect_same_by_bytes(whole, 20, "spearman", "absolute")
})

test_that("products of bytes are right for rows of few large entries", {
  skip_if_no_bytes()
  x <- random_matrix(num_filtered, 78, seed = 35)
  # There are rows that are constant except for one entry, equal rows, opposite
  # rows, and one huge entry.
  hard <- x
  hard[4001:4100, ] <- x[1:100, ] * (1 + 1e-7 * x[201:300, ])
  hard[4101:4150, ] <- x[1:50, ]
  hard[4151:4200, ] <- -x[1:50, ]
  hard[4201:4250, ] <- 0
  hard[cbind(4201:4250, 1:50)] <- 1
  hard[4251, 3] <- 1e9
  for (sign in c("signed", "absolute", "negative")) {
    for (k in c(1, 20, 300)) expect_same_by_bytes(hard, k, "pearson", sign)
  }
  expect_same_by_bytes(hard, 20, "cosine")
  lone <- matrix(0, num_filtered, 78)
  lone[cbind(seq_len(num_filtered), rep_len(1:78, num_filtered))] <- 1
  expect_same_by_bytes(lone, 20)
  alike <- x[rep(1, num_filtered), ]
  expect_same_by_bytes(alike, 7)
  expect_same_by_bytes(rbind(-alike[1, ], alike), 7, "pearson", "absolute")
  huge <- x
  huge[cbind(seq_len(num_filtered), rep_len(1:78, num_filtered))] <- 1e8
  expect_same_by_bytes(huge, 10, "pearson", "negative")
  expect_same_by_bytes(round(x * 1000) * 2^-1074, 10)
})

test_that("queries by products of bytes are those of the CPU", {
  skip_if_no_bytes()
  x <- random_matrix(num_filtered, 78, seed = 38)
  query <- rbind(random_matrix(500, 78, seed = 39), x[1:50, ], -x[1:50, ])
  wild <- rbind(query, diag(78), replace(x[1, ], 5, 1e200))
  for (sign in c("signed", "absolute", "negative")) {
    # For magnitudes, the worst row decides.
    form <- if (sign != "absolute") "int8"
    expect_same_by_bytes(x, 6, "pearson", sign, query = query, form = form)
    expect_same_by_bytes(x, 300, "pearson", sign, query = wild)
  }
})

test_that("bytes that do not fit a GPU's memory are as they are", {
  skip_if_no_bytes()
  withr::local_options(fsknn.instruction_set = "auto/int8")
  x <- random_matrix(9000, 300, seed = 6)
  plan <- knn_plan(x, 7, backend = "cuda", devices = 1)
  expected <- knn_search(x, 7, backend = "cpu")
  for (share in c(1, 1 / 3)) {
    expect_identical(
      knn_search(
        x, 7, backend = "cuda", devices = 1,
        max_device_memory = share * plan$bytes_peak
      ),
      expected, label = paste("share", share)
    )
  }
})
