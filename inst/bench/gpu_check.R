# Is the answer of backend "cuda" identical() to that of backend "cpu", at sizes
# that the package's tests have no time for, and on data made to break the
# bounds of the filters or to overflow their lists? Needs a GPU:
#
#   Rscript inst/bench/gpu_check.R [SECTION ...] [--bits=8|16]
#     [--only=METRIC,...] [--all]
#
# Sections: small (no filter), large (devices, chunks), products, elementwise,
# binary (the filters, which need compute capability 7.5); all where none is
# named. --bits: all that can be filtered by numbers of so many bits is; --only:
# these metrics alone, or "weights". Prints each comparison that fails, and with
# --all each with the rows whose lists overflowed; ends with status 1 when one
# failed. Memory checks: gpu_sanitize.sh.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)
need_gpu()
set.seed(1)
options(
  fsknn.instruction_set = paste(c("auto", option("bits")), collapse = "/")
)
only <- unlist(strsplit(option("only", ""), ","))
checked <- 0L
failed <- character()

# verb: knn_search() or knn_query(), knn_graph() where edges are compared.
# filtered: whether the filter must be used; most_redone: so many rows may
# overflow.
check <- function(label, x, k, metric = "pearson", sign = "signed",
                  query = NULL, verb = NULL, filtered = FALSE,
                  most_redone = Inf, devices = 1, chunk_size = NULL, ...) {
  dots <- list(...)
  mine <- c(metric, if (!is.null(dots$weights)) "weights")
  if (length(only) > 0 && !any(mine %in% only)) {
    return(invisible())
  }
  arguments <- c(
    list(x), if (!is.null(query)) list(query),
    list(k, metric, sign, constant = "isolate"), dots
  )
  if (is.null(verb)) verb <- if (is.null(query)) knn_search else knn_query
  ask <- function(...) {
    tryCatch(
      suppressMessages(do.call(verb, c(arguments, list(...)))),
      fsknn_error = function(err) class(err)[[1]]
    )
  }
  expected <- ask(backend = "cpu")
  found <- ask(backend = "cuda", devices = devices, chunk_size = chunk_size)
  stats <- knn_stats()
  fault <- if (!identical(found, expected)) {
    "DIFFERS: "
  } else if (filtered && !is.list(found)) {
    "FAILS: "
  } else if (filtered && stats$pairs_filtered == 0) {
    "NOT FILTERED: "
  } else if (stats$rows_recomputed > most_redone) {
    "TOO MANY REDONE: "
  } else {
    ""
  }
  checked <<- checked + 1L
  label <- paste0(
    fault, label, ", ", nrow(x), " x ", ncol(x), ", k = ", k, ", ", metric, " ",
    sign, if (!is.null(dots$weights)) ", weighted",
    if (!is.null(chunk_size)) paste(", chunk", chunk_size)
  )
  if (nzchar(fault)) failed <<- c(failed, label)
  if (nzchar(fault) || flag("all")) {
    cat(sprintf("%s: %.0f redone\n", label, stats$rows_recomputed))
  }
}
filtered <- function(...) check(..., filtered = TRUE)

signs <- c("signed", "absolute", "negative")
elementwise <- c("manhattan", "chebyshev", "proportional")
normal <- function(n, d) matrix(rnorm(n * d), n, d)
factors <- function(n, d, count = 64) {
  normal(n, count) %*% normal(count, d) + normal(n, d)
}
# Data of a proportion are not negative.
suited <- function(x, metric) if (metric == "proportional") abs(x) else x

# Data that are hard on bounds, lists and ties; of `too_large` the filter need
# not be used.
too_large <- c("huge", "largest doubles")
hard_data <- function(n, d = 37) {
  base <- normal(n, d)
  one_bit <- base[rep_len(seq_len(n / 10), n), ]
  one_bit[, 1] <- one_bit[, 1] * (1 + (seq_len(n) %/% (n / 10)) * 2^-52)
  sparse <- matrix(0, n, 300)
  sparse[cbind(rep(seq_len(n), 3), sample(300, 3 * n, TRUE))] <- rnorm(3 * n)
  half <- base[seq_len(n / 2), ]
  spikes <- cbind(seq_len(n), sample(d, n, TRUE))
  hard <- list(
    "ties" = matrix(sample(0:3, n * 7, TRUE), n),
    "few values" = matrix(sample(0:1, n * 6, TRUE), n),
    "duplicates" = base[rep_len(seq_len(n / 2), n), ],
    "many duplicates" = base[rep_len(1:50, n), ],
    "opposite rows" = rbind(half, -half),
    "one huge entry a row" = replace(base, spikes, 1e6),
    "one huge entry" = replace(base, 500, 1e200),
    "one large entry" = replace(base, 500, 1e8),
    "huge rows" = base * rep_len(c(1e6, rep(1, 499)), n),
    "rows of all lengths" = base * 2^(seq_len(n) %% 40),
    "tiny" = base * 1e-300, "huge" = base * 1e300,
    "clusters" = base[rep_len(1:20, n), ] * 1e3 + base,
    "one bit apart" = one_bit, "sparse" = sparse,
    "wide range in a row" = base * 2^matrix(sample(-60:0, n * d, TRUE), n),
    "1e-300 beside 1e300" = base * rep_len(c(1e-300, 1, 1e300), n),
    "subnormal" = round(base * 1000) * 2^-1074,
    "shifted by 1e9" = base + 1e9, "nearly constant" = 1 + base * 1e-13,
    "largest doubles" = base * 4e307
  )
  for (gap in c(1e-3, 1e-7, 1e-12, 1e-15)) {
    near <- 1 + gap * normal(n, d)
    hard[[paste("near-ties at", gap)]] <- base[rep_len(1:300, n), ] * near
    hard[[paste("all near at", gap)]] <- base[rep_len(1:3, n), ] * near
  }
  hard
}

# --- Every metric without a filter --------------------------------------------

metrics <- rbind(
  expand.grid(
    metric = c("pearson", "spearman"), sign = signs, stringsAsFactors = FALSE
  ),
  data.frame(metric = c("cosine", "euclidean", elementwise), sign = "signed")
)

check_all <- function(label, x, k, chunk_size = NULL, query = NULL) {
  for (m in seq_len(nrow(metrics))) {
    metric <- metrics$metric[[m]]
    if (metric %in% c("pearson", "spearman") && ncol(x) < 2) next
    check(
      label, suited(x, metric), k, metric, metrics$sign[[m]],
      query = if (!is.null(query)) suited(query, metric),
      verb = if (is.null(query) && k <= 200) knn_graph, chunk_size = chunk_size
    )
  }
}

small <- function() {
  for (d in c(1, 2, 78, 295)) {
    x <- normal(2100, d)
    for (k in c(1, 20, 128, 1000, 2099)) check_all("normal", x, k)
    check_all("normal", x, 20, 64)
    check_all("normal", x, 1000, 1000)
  }
  check_all("normal", normal(900, 4096), 20)
  check_all("normal", normal(900, 4096), 899, 300)
  check_all("normal", normal(150, 20000), 20, 64)
  hard <- hard_data(1100)
  for (name in names(hard)) {
    check_all(name, hard[[name]], 3)
    check_all(name, hard[[name]], 200, 500)
  }
  x <- rbind(normal(3000, 50), matrix(0, 5, 50))
  query <- rbind(normal(700, 50), 0, x[1:20, ])
  for (k in c(1, 20, 3000)) check_all("queries", x, k, query = query)
}

# --- Any division of the work, any number of GPUs -----------------------------

large <- function() {
  x <- normal(10000, 60)
  all <- knn_backends()$devices$cuda$device
  for (metric in c("pearson", "manhattan")) {
    for (devices in unique(c(as.list(all), list(all, rev(all))))) {
      for (chunk_size in c(64, 1000, 4096)) {
        check(
          paste("devices", toString(devices)), x, 20, metric, devices = devices,
          chunk_size = chunk_size
        )
      }
    }
  }
  x <- normal(24158, 295)
  for (k in c(1, 20, 1000)) check("large", x, k, verb = knn_graph)
  for (metric in c("spearman", "euclidean", elementwise)) {
    check("large", suited(x, metric), 20, metric, verb = knn_graph)
  }
}

# --- The filter by products ---------------------------------------------------

products <- function() {
  for (n in c(4096, 4097, 5000, 8191, 12545)) {
    filtered("normal", normal(n, 37), 20)
  }
  x <- factors(6000, 295)
  for (sign in signs) {
    for (metric in c("pearson", "spearman", "bicor")) {
      filtered("factors", x, 20, metric, sign)
    }
    filtered("factors", x, 20, "pearson", sign, weights = rexp(295))
    filtered("factors", x, 20, "spearman", sign, weights = 2^-(1:295 / 8))
  }
  for (k in c(1, 20, 32, 33, 64, 65, 128)) {
    filtered("factors", x, k, "cosine", most_redone = 60)
  }
  for (chunk_size in c(64, 300, 1000, 4096)) {
    filtered("factors", x, 20, chunk_size = chunk_size)
  }
  for (k in c(20, 128, 129, 200, 256, 500, 512, 1000, 1024, 1500, 2048)) {
    filtered("many neighbours", x, k, "pearson", most_redone = 60)
    filtered("many neighbours", x, k, "euclidean", most_redone = 60)
  }
  some <- x
  some[sample(6000, 700), ] <- 0
  filtered("some left out", some, 20, "pearson", "absolute")
  filtered("some left out", some, 20, "cosine")
  for (d in c(2, 3, 8, 64, 65, 1024, 5000)) {
    filtered("few or many features", normal(4500, d), 20)
    filtered("few or many features", normal(4500, d), 20, "euclidean")
  }
  filtered("one feature", normal(4500, 1), 20, "cosine")
  whole <- matrix(sample.int(1000L, 5000 * 20, TRUE), 5000)
  filtered("whole numbers", whole, 20)

  hard <- hard_data(6000)
  for (name in names(hard)) {
    x <- hard[[name]]
    on_hard <- function(...) check(..., filtered = !name %in% too_large)
    weights <- 2^seq(-20, 20, length.out = ncol(x))
    for (sign in signs) on_hard(name, x, 10, "pearson", sign)
    on_hard(name, x, 100, "spearman")
    on_hard(name, x, 10, "bicor")
    on_hard(name, x, 30, "bicor", "absolute")
    on_hard(name, x, 10, "pearson", weights = weights)
    on_hard(name, x, 10, "spearman", weights = weights)
    on_hard(name, x, 20, "cosine")
    for (k in c(10, 300)) on_hard(name, x, k, "euclidean")
    for (metric in c("pearson", "cosine", "euclidean")) {
      on_hard(paste("queries,", name), x, 10, metric, query = x[1:500, ])
    }
  }

  # Queries: other points, some of the points themselves, and some far away.
  x <- factors(6000, 100)
  for (count in c(256, 300, 2000)) {
    label <- paste(count, "queries")
    query <- rbind(
      factors(count - 40, 100), x[1:20, ], x[21:40, ] * rep(c(1, 1e6), 10)
    )
    for (k in c(1, 20, 130, 1000)) {
      for (metric in c("pearson", "spearman", "bicor", "cosine", "euclidean")) {
        filtered(label, x, k, metric, query = query)
      }
    }
    filtered(label, x, 20, query = query, weights = rexp(100))
    filtered(label, x, 20, "pearson", "absolute", query = query)
    filtered(label, x, 20, "spearman", "negative", query = query)
  }

  # Metafeatures i - j in file order: near neighbours stand side by side.
  b <- factors(200, 78, 10)
  pairs <- utils::combn(200, 2)
  one <- b[pairs[1, ], ]
  other <- b[pairs[2, ], ]
  filtered("differences", one - other, 20, most_redone = 200)
  filtered("sums", one + other, 20, "spearman", most_redone = 200)
  made <- metafeatures(b[1:60, ])
  for (metric in c("pearson", "bicor")) {
    filtered("metafeatures", made, 20, metric)
    filtered("metafeatures", made, 20, metric, query = made[1:300, ])
  }
  filtered("metafeatures", made, 20, weights = rexp(78))

  x <- factors(24158, 295)
  filtered("large", x, 20, "bicor", most_redone = 20)
  filtered("large", x, 20, most_redone = 20)
  filtered("large", x, 100, "pearson", "absolute", most_redone = 20)
  filtered(
    "large", factors(30000, 60, 8), 20, "spearman", "negative", most_redone = 20
  )
}

# --- The elementwise filter ---------------------------------------------------

check_elementwise <- function(label, x, k, ..., metrics = elementwise) {
  for (metric in metrics) check(label, suited(x, metric), k, metric, ...)
}

by_differences <- function() {
  for (d in c(1, 2, 3, 8, 31, 32, 33, 64, 300, 1024, 5000)) {
    check_elementwise(
      "few or many features", normal(4500, d), 20, filtered = TRUE
    )
  }
  for (n in c(4096, 4097, 5000, 8191, 12545)) {
    check_elementwise(
      "normal", normal(n, 37), 20, filtered = TRUE, most_redone = 20
    )
  }
  x <- factors(6000, 295)
  for (k in c(1, 20, 32, 33, 65, 128, 300, 1024, 2048)) {
    filtered("factors", x, k, "manhattan")
  }
  check_elementwise("factors", x, 128, filtered = TRUE)
  for (chunk_size in c(64, 300, 4096)) {
    check_elementwise(
      "factors", x, 20, filtered = TRUE, chunk_size = chunk_size
    )
  }
  base <- normal(6000, 37)
  wide <- c(hard_data(6000), list(
    "1e-318 to 1e290" = base * 10^rep_len(seq(-318, 290, by = 32), 6000),
    "all subnormal" = base * 1e-320, "heavy tails" = exp(5 * base),
    "counts" = round(exp(3 * base)),
    "one huge entry in a hundred rows" =
      replace(base, cbind(1:100, rep_len(1:37, 100)), 1e200)
  ))
  for (name in names(wide)) {
    # Sums of some are beyond a double, or no proportions.
    few <- if (grepl("1e-318|subnormal", name)) 1:2 else 1:3
    check_elementwise(
      name, wide[[name]], 10, filtered = !name %in% too_large,
      metrics = elementwise[few]
    )
  }
  x <- factors(24158, 295)
  check_elementwise("large", x, 20, filtered = TRUE, most_redone = 20)
}

# --- The filter by bits -------------------------------------------------------

# Zeros and ones: many pairs have the same distance.
binary <- function() {
  for (d in c(7, 64, 300, 3000)) {
    for (share in c(0.02, 0.5, 0.9)) {
      x <- matrix(as.integer(runif(5000 * d) < share), 5000)
      # Rows that have much in common, and none without anything.
      x[2001:4000, ] <- x[1:2000, ]
      x[2001:4000, seq_len(min(d, 5))] <- 1L
      x[cbind(1:5000, sample(d, 5000, TRUE))] <- 1L
      for (metric in c("jaccard", "sorensen")) {
        for (k in c(1, 20, 300)) filtered(paste("share", share), x, k, metric)
        filtered("300 queries", x, 20, metric, query = x[3001:3300, ])
      }
    }
  }
}

run_section <- list(
  small = small, large = large, products = products,
  elementwise = by_differences, binary = binary
)
sections <- if (length(words) > 0) words else names(run_section)
stopifnot("No such section." = sections %in% names(run_section))
for (section in sections) {
  say(section)
  run_section[[section]]()
}
cat(sprintf(
  "%d comparisons, %d fail; %.0f seconds.\n", checked, length(failed),
  clock() - began
))
writeLines(failed)
quit(status = length(failed) > 0)
