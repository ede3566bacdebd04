# How long do searches for all pairs within a distance take on one GPU?
#
#   Rscript inst/bench/gpu_within.R [--short] [--no-check]
#
# with the package installed (R_LIBS says where) and a GPU. Points are 100,000 x
# 300 independent normal values; printed are the number of edges, and seconds of
# the whole call (the median of five; --short: of three) and of its parts. Before
# that, unless --no-check, 20,000 of the points are searched on the CPU too: the
# answers must be identical.

library(fsknn)

if (!knn_backends()$usable[[2]]) {
  stop(knn_backends()$detail[[2]])
}
arguments <- commandArgs(TRUE)
times <- if ("--short" %in% arguments) 3 else 5
print(cuda_devices())
set.seed(20130002)
x <- matrix(stats::rnorm(1e5 * 300), 1e5)

# Distances of other metrics that about as many pairs are within.
quantile_of <- function(metric, part) {
  some <- knn_search(x[1:2000, ], 1999, metric, backend = "cpu")
  stats::quantile(some$distance, part, names = FALSE)
}
part <- stats::pnorm(-0.25 * sqrt(299))
on_gpu <- list(backend = "cuda", devices = 1)
graph <- function(least, ...) {
  function(x, on) do.call(threshold_graph, c(list(x, least, ...), on))
}
search <- function(limit, metric) {
  function(x, on) do.call(within_search, c(list(x, limit, metric), on))
}
edges_of <- function(found) {
  if (is.data.frame(found)) nrow(found) else sum(lengths(found$index)) / 2
}
cases <- list(
  "r >= 0.25" = graph(0.25),
  "r >= 0.20" = graph(0.20),
  "r >= 0.15" = graph(0.15),
  "|r| >= 0.25" = graph(0.25, sign = "absolute"),
  "Spearman's r >= 0.25" = graph(0.25, "spearman"),
  "euclidean" = search(quantile_of("euclidean", part), "euclidean"),
  "manhattan" = search(quantile_of("manhattan", part), "manhattan")
)
if (!"--no-check" %in% arguments) {
  some <- x[1:20000, ]
  for (name in names(cases)) {
    stopifnot(identical(
      cases[[name]](some, on_gpu), cases[[name]](some, list(backend = "cpu"))
    ))
  }
}
rows <- lapply(names(cases), function(name) {
  seconds <- lapply(seq_len(times), function(i) {
    gc()
    call <- system.time(found <- cases[[name]](x, on_gpu))[["elapsed"]]
    stats <- knn_stats()
    c(
      edges = edges_of(found), call = call, stats$seconds[1:3],
      exact = stats$pairs_exact, filtered = stats$filtered
    )
  })
  data.frame(
    case = name, t(apply(do.call(rbind, seconds), 2, stats::median))
  )
})
print(do.call(rbind, rows), row.names = FALSE, digits = 4)
