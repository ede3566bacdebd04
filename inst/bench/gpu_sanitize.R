# Run by gpu_sanitize.sh: each kernel once or twice, on little.

library(fsknn)

x <- matrix(stats::qnorm((seq_len(150 * 19) * 7919 %% 10007 + 0.5) / 3e7), 150)
x <- x + sin(seq_along(x))
x[140:150, ] <- x[1:11, ]
for (metric in c("pearson", "euclidean", "manhattan", "chebyshev", "proportional")) {
  values <- if (metric == "proportional") abs(x) else x
  for (k in c(3, 149)) {
    knn_graph(values, k, metric, backend = "cuda", chunk_size = 64)
  }
}
for (sign in c("absolute", "negative")) {
  knn_graph(x, 5, "spearman", sign, backend = "cuda")
}
invisible(query_knn(x, x[1:70, ], 9, "cosine", backend = "cuda", chunk_size = 64))
# Lists longer than what is gathered at a time.
long <- cbind(sin(seq_len(3000)))
invisible(find_knn(long, 2500, "euclidean", backend = "cuda", chunk_size = 2900))
invisible(query_knn(
  long, long[1:3, , drop = FALSE], 2999, "manhattan", backend = "cuda"
))
# The filter: lists of each capacity, few and many features, both forms of rows,
# queries, and rows that overflow.
many <- matrix(sin(seq_len(4200 * 70)^1.5), 4200)
for (k in c(5, 40, 100, 400, 1000, 2000)) {
  invisible(find_knn(many, k, backend = "cuda"))
}
invisible(find_knn(many, 5, "euclidean", backend = "cuda"))
invisible(find_knn(replace(many, 7, 1e200), 300, "euclidean", backend = "cuda"))
invisible(find_knn(many[, rep(1:70, 9)], 5, "cosine", backend = "cuda"))
for (metric in c("pearson", "euclidean")) {
  invisible(query_knn(many, many[1:300, ] + 0.1, 5, metric, backend = "cuda"))
}
invisible(knn_graph(many[, 1:9], 3, "spearman", "negative", backend = "cuda"))
# The elementwise filter, its last features a part of what is staged at a time.
for (metric in c("manhattan", "chebyshev", "proportional")) {
  values <- if (metric == "proportional") abs(many) + 1e-3 else many
  invisible(find_knn(values, 5, metric, backend = "cuda"))
  invisible(query_knn(values, values[1:300, ] + 0.1, 5, metric, backend = "cuda"))
}
invisible(find_knn(many[, 1:5], 300, "manhattan", backend = "cuda"))
near <- rbind(many[rep(1, 300), ] * (1 + 1e-9 * many[1:300, ]), many[301:4200, ])
invisible(knn_graph(near, 5, "pearson", "absolute", backend = "cuda"))
