# Near-duplicate rows, which filters centre, and entries far larger than all
# others: the answers are those by definition.

offset_matrices <- function() {
  base <- random_matrix(70, 13, seed = 61)
  profile <- rep(cos(3 * 1:13), each = 70)
  few <- base
  few[cbind(seq(3, 70, 9), 1 + seq_len(8))] <- c(1e8, -1e8)
  column <- base
  column[, 5] <- 1e8 * column[, 5]
  some <- base + 1e4
  some[1:7, ] <- base[1:7, ]
  list(
    "shifted by 30" = base + 30, "shifted by 1e6" = base + 1e6,
    "shifted by 1e12" = base + 1e12, "some rows shifted" = some,
    "a profile" = 1e-3 * base + profile, "some huge entries" = few,
    "one huge entry" = replace(base, 100, 1e30), "a huge column" = column,
    "all rows alike" = matrix(rep(1e6 + 1:13, each = 70), 70),
    "shifted near-ties" = 1e5 + base[rep(1:3, length.out = 70), ] + 1e-9 * base
  )
}

test_that("centred rows give exactly the brute-force answer", {
  matrices <- offset_matrices()
  check <- function(name, metric, sign = "signed") {
    x <- matrices[[name]]
    expected <- brute_force(x, k = 7, metric = metric, sign = sign)
    for (bits in c(8, 16)) {
      found <- rlang::with_options(
        fsknn.instruction_set = paste0("auto/", bits),
        knn_search(x, 7, metric, sign, backend = "cpu", chunk_size = 48)
      )
      expect_same_bits(found, expected, label = paste(name, metric, sign, bits))
    }
  }
  for (name in names(matrices)) {
    check(name, "cosine")
    check(name, "pearson")
    check(name, "pearson", "negative")
    check(name, "euclidean")
  }
})

test_that("few pairs of shifted rows are computed in double", {
  plain <- random_matrix(2000, 60, seed = 62)
  pairs_of <- function(x, metric) {
    knn_search(x, 5, metric, backend = "cpu")
    knn_stats()$pairs_exact / nrow(x)
  }
  most <- 3 * pairs_of(plain, "cosine")
  expect_lt(pairs_of(plain + 1e3, "cosine"), most)
  expect_lt(pairs_of(plain + 1e6, "cosine"), 2 * most)
  profile <- rep(cos(3 * 1:60), each = 2000)
  expect_lt(pairs_of(0.01 * plain + profile, "pearson"), most)
  expect_lt(pairs_of(replace(plain, 100, 1e30), "euclidean"), most)
})

test_that("queries of shifted points may be anywhere", {
  x <- random_matrix(300, 13, seed = 63) + 1e4
  query <- rbind(x[1:20, ] + 1e-3, random_matrix(20, 13, seed = 64), -x[1:5, ])
  points <- knn_search(x, 3, "cosine", backend = "cpu")
  expect_identical(nrow(points$index), 300L)
  for (bits in c(8, 16)) {
    found <- rlang::with_options(
      fsknn.instruction_set = paste0("auto/", bits),
      knn_query(x, query, 7, "cosine", backend = "cpu")
    )
    expect_same_bits(
      found, brute_force(x, query = query, k = 7, metric = "cosine"),
      label = bits
    )
  }
})

test_that("GPUs filter rows that are near each other, and rows far from most", {
  skip_if_no_cuda()
  n <- 6000
  plain <- random_matrix(n, 63, seed = 65)
  few <- seq(1, n, 11)
  huge <- function(columns, values) {
    replace(plain, cbind(few, rep_len(columns, length(few))), values)
  }
  signs <- rep_len(c(1, -1, 1), length(few))
  cases <- list(
    list("near", "cosine", 1e4 + 1e-3 * plain),
    list("far columns", "euclidean", huge(1:9, 1e9)),
    list("one far column", "euclidean", huge(5, 1e9)),
    list("far to both sides", "euclidean", huge(5, 1e9 * signs)),
    list("far columns", "inner_product", huge(1:63, 1e9)),
    list("far to both sides", "inner_product", huge(5, 1e9 * signs)),
    list("far beyond a factor", "inner_product", huge(1:63, 1e30)),
    list("some not near", "cosine", {
      x <- 1e5 + plain
      x[few, ] <- plain[few, ]
      x
    })
  )
  for (case in cases) {
    x <- case[[3]]
    label <- paste(case[[2]], case[[1]])
    for (k in c(7, 20)) {
      expected <- knn_search(x, k, case[[2]], backend = "cpu")
      expect_identical(
        knn_search(x, k, case[[2]], backend = "cuda"), expected, label = label
      )
      stats <- knn_stats()
      if (!stats$filtered || case[[1]] == "far beyond a factor") next
      # These rows overflowed every filter and were computed in double.
      expect_lt(stats$rows_recomputed - stats$rows_widened, n / 20, label = label)
    }
    query <- x[c(few, 2:400), ]
    expect_identical(
      knn_query(x, query, 7, case[[2]], backend = "cuda"),
      knn_query(x, query, 7, case[[2]], backend = "cpu"),
      label = paste(label, "queries")
    )
  }
})
