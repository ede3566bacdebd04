# Is the answer of backend "cuda" identical() to that of backend "cpu", bit for
# bit, at sizes that the package's tests have no time for? Needs a GPU:
#
#   Rscript gpu_check.R
#
# Prints each comparison that fails, and the number of all; ends with status 1
# when one failed. Memory checks: gpu_sanitize.sh beside this file.

library(fsknn)

if (!knn_backends()$usable[[2]]) {
  stop(knn_backends()$detail[[2]])
}
print(cuda_devices())
set.seed(1)

metrics <- rbind(
  expand.grid(
    metric = c("pearson", "spearman"),
    sign = c("signed", "absolute", "negative"), stringsAsFactors = FALSE
  ),
  data.frame(
    metric = c("cosine", "euclidean", "manhattan", "chebyshev", "proportional"),
    sign = "signed"
  )
)

checked <- 0L
failed <- character()

check <- function(label, verb, ...) {
  answers <- lapply(c("cuda", "cpu"), function(backend) {
    tryCatch(
      verb(..., backend = backend),
      fsknn_error = function(err) class(err)[[1]]
    )
  })
  checked <<- checked + 1L
  if (!identical(answers[[1]], answers[[2]])) {
    failed <<- c(failed, label)
    message("DIFFERS: ", label)
  }
}

# As check(), for all metrics on one matrix.
check_all <- function(label, x, k, chunk_size = NULL) {
  for (m in seq_len(nrow(metrics))) {
    metric <- metrics$metric[[m]]
    sign <- metrics$sign[[m]]
    if (metric %in% c("pearson", "spearman") && ncol(x) < 2) {
      next
    }
    check(
      paste0(label, ", k = ", k, ", chunk ", chunk_size, ", ", metric, " ", sign),
      if (k <= 200) knn_graph else knn_search,
      if (metric == "proportional") abs(x) else x, k, metric, sign,
      chunk_size = chunk_size, constant = "isolate"
    )
  }
}

normal <- function(n, d) matrix(rnorm(n * d), n, d)

started <- proc.time()[["elapsed"]]
for (d in c(1, 2, 78, 295)) {
  x <- normal(2100, d)
  for (k in c(1, 20, 128, 1000, 2099)) {
    check_all(paste("d =", d), x, k)
  }
  check_all(paste("d =", d), x, 20, 64)
  check_all(paste("d =", d), x, 1000, 1000)
}
check_all("d = 4096", normal(900, 4096), 20)
check_all("d = 4096", normal(900, 4096), 899, 300)
check_all("d = 20000", normal(150, 20000), 20, 64)

base <- normal(1100, 37)
hard <- list(
  "ties" = matrix(sample(0:3, 1100 * 7, TRUE), 1100),
  "few values" = matrix(sample(0:1, 1100 * 3, TRUE), 1100),
  "duplicates" = base[rep_len(1:50, 1100), ],
  "opposite rows" = rbind(base[1:550, ], -base[1:550, ]),
  "1e-300" = base * 1e-300,
  "1e300" = base * 1e300,
  "1e-300 beside 1e300" = base * rep_len(c(1e-300, 1, 1e300), 1100),
  "subnormal" = round(base * 1000) * 2^-1074,
  "shifted by 1e9" = base + 1e9,
  "one huge entry" = replace(base, 500, 1e200),
  "largest doubles" = base * 4e307
)
for (gap in c(1e-7, 1e-12, 1e-15)) {
  hard[[paste("near-ties at", gap)]] <-
    base[rep_len(1:3, 1100), ] * (1 + gap * normal(1100, 37))
}
for (name in names(hard)) {
  for (k in c(3, 200)) {
    check_all(name, hard[[name]], k, if (k == 200) 500)
  }
}

x <- rbind(normal(3000, 50), matrix(0, 5, 50))
query <- rbind(normal(700, 50), 0, x[1:20, ])
for (m in seq_len(nrow(metrics))) {
  values <- if (metrics$metric[[m]] == "proportional") abs else identity
  for (k in c(1, 20, 3000)) {
    check(
      paste("query,", metrics$metric[[m]], metrics$sign[[m]], "k =", k),
      knn_query, values(x), values(query), k, metrics$metric[[m]],
      metrics$sign[[m]], constant = "isolate"
    )
  }
}

# However the work is cut up, on however many GPUs.
x <- normal(10000, 60)
devices <- cuda_devices()$device
for (metric in c("pearson", "manhattan")) {
  expected <- knn_search(x, 20, metric, backend = "cpu")
  for (chosen in unique(c(as.list(devices), list(devices, rev(devices))))) {
    for (chunk_size in c(64, 1000, 4096)) {
      checked <- checked + 1L
      found <- knn_search(
        x, 20, metric, devices = chosen, chunk_size = chunk_size
      )
      if (!identical(found, expected)) {
        label <- paste(metric, "chunk", chunk_size, "devices", toString(chosen))
        failed <- c(failed, label)
        message("DIFFERS: ", label)
      }
    }
  }
}
x <- normal(24158, 295)
for (k in c(1, 20, 1000)) {
  check(paste("n = 24158, k =", k), knn_graph, x, k)
}
for (metric in c("spearman", "euclidean", "manhattan", "chebyshev")) {
  check(paste("n = 24158,", metric), knn_graph, x, 20, metric)
}
check("n = 24158, proportional", knn_graph, abs(x), 20, "proportional")

cat(
  checked, " comparisons, ", length(failed), " differ; ",
  round(proc.time()[["elapsed"]] - started), " seconds.\n", sep = ""
)
quit(status = length(failed) > 0)
