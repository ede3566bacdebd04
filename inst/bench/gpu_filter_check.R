# Is the answer of the tensor-core filter identical() to that of backend "cpu",
# on data made to break its bound or to overflow its lists? As gpu_check.R, at
# sizes where the filter is used. Needs a GPU of compute capability 7.5 or more:
#
#   Rscript gpu_filter_check.R [--form=byte|half] [METRIC ...]
#
# With metrics (or "weights") it makes the comparisons of those alone, with a
# form all that can be filtered by it.
# Prints each case with the rows whose candidates overflowed (which are done
# again in float64), and the number of comparisons that fail; ends with status 1
# when one did.

library(fsknn)

if (!knn_backends()$usable[[2]]) {
  stop(knn_backends()$detail[[2]])
}
print(cuda_devices())
set.seed(1)

only <- commandArgs(trailingOnly = TRUE)
form <- sub("^--form=", "", grep("^--form=", only, value = TRUE))
only <- grep("^--", only, value = TRUE, invert = TRUE)
fsknn:::cpp_force_form(c(form, "")[[1]])
checked <- 0L
failed <- character()
threads <- parallel::detectCores()

ask <- function(x, k, metric, sign, backend, chunk_size, skip, correlation,
                query = NULL, weights = NULL) {
  options <- list(
    metric = list(name = metric), sign = sign, num_threads = threads,
    chunk_size = as.integer(chunk_size), weights = weights,
    backend = list(name = backend, devices = if (backend == "cuda") 1L else integer())
  )
  request <- fsknn:::new_request(
    as.integer(k), options, sort(as.integer(skip)), correlation = correlation
  )
  fsknn:::cpp_knn_search(x, query, request)
}

check <- function(label, x, k, metric = "pearson", sign = "signed",
                  chunk_size = 0, skip = integer(), most_redone = Inf,
                  query = NULL, weights = NULL) {
  if (length(only) > 0 && !any(c(metric, if (!is.null(weights)) "weights") %in% only)) {
    return(invisible())
  }
  correlation <- metric %in% c("pearson", "spearman", "bicor")
  answer <- function(backend, chunk_size) {
    ask(x, k, metric, sign, backend, chunk_size, skip, correlation, query, weights)
  }
  found <- answer("cuda", chunk_size)
  expected <- answer("cpu", 0)
  parts <- c("index", "distance", "correlation")
  said <- if (!is.null(found$failure)) {
    "FAILS: "
  } else if (!identical(found[parts], expected[parts])) {
    "DIFFERS: "
  } else if (found$stats$pairs_filtered == 0) {
    "NOT FILTERED: "
  } else if (found$stats$rows_redone > most_redone) {
    "TOO MANY REDONE: "
  } else {
    ""
  }
  checked <<- checked + 1L
  label <- paste0(
    said, label, ", ", nrow(x), " x ", ncol(x), ", k = ", k, ", ", metric, " ",
    sign, if (!is.null(weights)) ", weighted"
  )
  if (nzchar(said)) {
    failed <<- c(failed, label)
  }
  if (is.null(found$failure)) {
    cat(sprintf(
      "%s: %.0f redone, %.1f exact a row\n",
      label, found$stats$rows_redone, found$stats$pairs_exact / nrow(x)
    ))
  } else {
    print(found)
  }
}

signs <- c("signed", "absolute", "negative")
normal <- function(n, d) matrix(rnorm(n * d), n, d)
simulated <- function(n, d, factors = 64) {
  normal(n, factors) %*% normal(factors, d) + normal(n, d)
}

started <- proc.time()[["elapsed"]]
for (n in c(4096, 4097, 5000, 8191, 12545)) {
  check("normal", normal(n, 37), 20)
}
x <- simulated(6000, 295)
for (sign in signs) {
  for (metric in c("pearson", "spearman", "bicor")) {
    check("simulated", x, 20, metric, sign)
  }
  check("simulated", x, 20, "pearson", sign, weights = rexp(295))
  check("simulated", x, 20, "spearman", sign, weights = 2^-(1:295 / 8))
}
for (k in c(1, 20, 32, 33, 64, 65, 128)) {
  check("simulated", x, k, "cosine", most_redone = 60)
}
for (chunk_size in c(64, 300, 1000, 4096)) {
  check(paste("chunk", chunk_size), x, 20, chunk_size = chunk_size)
}
for (k in c(20, 128, 129, 200, 256, 500, 512, 1000, 1024, 1500, 2048)) {
  check("many neighbours", x, k, "pearson", most_redone = 60)
  check("many neighbours", x, k, "euclidean", most_redone = 60)
}
check("some left out", x, 20, "euclidean", skip = sample(6000, 700))
check("some left out", x, 20, "pearson", "absolute", skip = sample(6000, 700))
for (d in c(2, 3, 8, 64, 65, 1024, 5000)) {
  check("few or many features", normal(4500, d), 20)
  check("few or many features", normal(4500, d), 20, "euclidean")
}
check("one feature", normal(4500, 1), 20, "cosine")
check("whole numbers", matrix(sample.int(1000L, 5000 * 20, TRUE), 5000), 20)

n <- 6000
base <- normal(n, 37)
spike <- base
spike[cbind(seq_len(n), sample(37, n, TRUE))] <- 1e6
one_bit <- base[rep_len(1:600, n), ]
one_bit[, 1] <- one_bit[, 1] * (1 + (seq_len(n) %/% 600) * 2^-52)
sparse <- matrix(0, n, 300)
sparse[cbind(rep(seq_len(n), 3), sample(300, 3 * n, TRUE))] <- rnorm(3 * n)
hard <- list(
  "ties" = matrix(sample(0:3, n * 7, TRUE), n),
  "few values" = matrix(sample(0:1, n * 6, TRUE), n),
  "duplicates" = base[rep_len(1:3000, n), ],
  "many duplicates" = base[rep_len(1:50, n), ],
  "opposite rows" = rbind(base[1:3000, ], -base[1:3000, ]),
  "one huge entry a row" = spike,
  "one huge entry" = replace(base, 500, 1e200),
  "one large entry" = replace(base, 500, 1e8),
  "huge rows" = base * rep_len(c(1e6, rep(1, 499)), n),
  "rows of all lengths" = base * 2^(seq_len(n) %% 40),
  "tiny" = base * 1e-300,
  "clusters" = base[rep_len(1:20, n), ] * 1e3 + base,
  "one bit apart" = one_bit,
  "sparse" = sparse,
  "wide range in a row" = base * 2^matrix(sample(-60:0, n * 37, TRUE), n),
  "1e-300 beside 1e300" = base * rep_len(c(1e-300, 1, 1e300), n),
  "subnormal" = round(base * 1000) * 2^-1074,
  "shifted by 1e9" = base + 1e9,
  "nearly constant" = 1 + base * 1e-13
)
for (gap in c(1e-3, 1e-7, 1e-12, 1e-15)) {
  hard[[paste("near-ties at", gap)]] <-
    base[rep_len(1:300, n), ] * (1 + gap * normal(n, 37))
  hard[[paste("all near at", gap)]] <-
    base[rep_len(1:3, n), ] * (1 + gap * normal(n, 37))
}
for (name in names(hard)) {
  x <- hard[[name]]
  constant <- which(apply(x, 1, function(row) max(row) == min(row)))
  for (sign in signs) {
    check(name, x, 10, "pearson", sign, skip = constant)
  }
  check(name, x, 100, "spearman", skip = constant)
  check(name, x, 10, "bicor", skip = constant)
  check(name, x, 30, "bicor", "absolute", skip = constant)
  weights <- 2^seq(-20, 20, length.out = ncol(x))
  check(name, x, 10, "pearson", skip = constant, weights = weights)
  check(name, x, 10, "spearman", skip = constant, weights = weights)
  check(name, x, 20, "cosine", skip = constant)
  for (k in c(10, 300)) {
    check(name, x, k, "euclidean", skip = constant)
  }
}

# Queries: other points, some of the points themselves, and some far away.
x <- simulated(6000, 100)
for (count in c(256, 300, 2000)) {
  query <- rbind(
    simulated(count - 40, 100), x[1:20, ], x[21:40, ] * rep(c(1, 1e6), 10)
  )
  for (k in c(1, 20, 130, 1000)) {
    for (metric in c("pearson", "spearman", "bicor", "cosine", "euclidean")) {
      check(paste(count, "queries"), x, k, metric, query = query)
    }
  }
  check(paste(count, "queries"), x, 20, query = query, weights = rexp(100))
  check(paste(count, "queries"), x, 20, "pearson", "absolute", query = query)
  check(paste(count, "queries"), x, 20, "spearman", "negative", query = query)
}
for (name in names(hard)) {
  x <- hard[[name]]
  if (any(apply(x, 1, function(row) max(row) == min(row)))) {
    next
  }
  for (metric in c("pearson", "cosine", "euclidean")) {
    check(paste("queries,", name), x, 10, metric, query = x[1:500, ])
  }
}

# Metafeatures i - j in file order: near neighbours stand side by side.
b <- simulated(200, 78, 10)
pairs <- utils::combn(200, 2)
check("differences", b[pairs[1, ], ] - b[pairs[2, ], ], 20, most_redone = 200)
check("sums", b[pairs[1, ], ] + b[pairs[2, ], ], 20, "spearman", most_redone = 200)
made <- metafeatures(b[1:60, ])
for (metric in c("pearson", "bicor")) {
  check("metafeatures", made, 20, metric)
  check("metafeatures", made, 20, metric, query = made[1:300, ])
}
check("metafeatures", made, 20, weights = rexp(78))

# The elementwise filter. Data of a proportion are not negative.
elementwise <- function(label, x, k, ..., metrics = c("manhattan", "chebyshev", "proportional")) {
  for (metric in metrics) {
    values <- if (metric == "proportional") abs(x) else x
    empty <- if (metric == "proportional") which(rowSums(values) == 0)
    check(label, values, k, metric, skip = empty, ...)
  }
}
for (d in c(1, 2, 3, 8, 31, 32, 33, 64, 300, 1024, 5000)) {
  elementwise("few or many features", normal(4500, d), 20)
}
for (n in c(4096, 4097, 5000, 8191, 12545)) {
  elementwise("normal", normal(n, 37), 20, most_redone = 20)
}
x <- simulated(6000, 295)
for (k in c(1, 20, 32, 33, 65, 128, 300, 1024, 2048)) {
  check("simulated", x, k, "manhattan")
}
elementwise("simulated", x, 128)
for (chunk_size in c(64, 300, 4096)) {
  elementwise(paste("chunk", chunk_size), x, 20, chunk_size = chunk_size)
}
check("some left out", x, 20, "manhattan", skip = sample(6000, 700))
wide <- list(
  "1e-318 to 1e290" = base * 10^rep_len(seq(-318, 290, by = 32), n),
  "all at 1e300" = base * 1e300, "all subnormal" = base * 1e-320,
  "heavy tails" = exp(5 * base), "counts" = round(exp(3 * base)),
  "one huge entry in a hundred rows" =
    replace(base, cbind(1:100, rep_len(1:37, 100)), 1e200)
)
for (name in c(names(hard), names(wide))) {
  # Sums of such a range are beyond a double, or no proportions.
  few <- if (name %in% c("1e-318 to 1e290", "subnormal", "all subnormal")) {
    c("manhattan", "chebyshev")
  } else {
    c("manhattan", "chebyshev", "proportional")
  }
  elementwise(name, c(hard, wide)[[name]], 10, metrics = few)
}

# Zeros and ones: many pairs are equally far apart.
for (d in c(7, 64, 300, 3000)) {
  for (share in c(0.02, 0.5, 0.9)) {
    x <- matrix(as.integer(runif(5000 * d) < share), 5000)
    # Rows that have much in common, and none without anything.
    x[2001:4000, ] <- x[1:2000, ]
    x[2001:4000, seq_len(min(d, 5))] <- 1L
    x[cbind(1:5000, sample(d, 5000, TRUE))] <- 1L
    for (metric in c("jaccard", "sorensen")) {
      for (k in c(1, 20, 300)) {
        check(paste("share", share), x, k, metric)
      }
      check("300 queries", x, 20, metric, query = x[3001:3300, ])
    }
  }
}

x <- simulated(24158, 295)
check("simulated", x, 20, "bicor", most_redone = 20)
elementwise("simulated", x, 20, most_redone = 20)
check("simulated", x, 20, most_redone = 20)
check("simulated", x, 100, "pearson", "absolute", most_redone = 20)
check(
  "simulated", simulated(30000, 60, 8), 20, "spearman", "negative",
  most_redone = 20
)

cat(
  checked, " comparisons, ", length(failed), " fail; ",
  round(proc.time()[["elapsed"]] - started), " seconds.\n", sep = ""
)
writeLines(failed)
quit(status = length(failed) > 0)
