# Seconds of a part of a search, by a model whose constants were fitted to runs
# that are stored with the package (inst/bench/cluster_model.R fits them, and
# says how far off they are). On the CPU they are seconds of one thread.
#
#   start      what a task costs before and after its work
#   point      each point of a task's blocks
#   sent       each point on its way to a GPU, and its answer's back
#   value      each value read, prepared and, for a GPU, sent there
#   pair       each pair, however short the rows
#   product    each feature of a pair, in the filter by products
#   long_product  the same of rows so long that a GPU adds them up in stretches
#   difference  each feature of a pair, in the filter by differences
#   neighbour  each pair that the filter leaves
#   exact      each feature of such a pair

# Which of the filter's two rates a metric goes by; those of the metrics that
# are not named here were never measured.
filter_rates <- c(
  pearson = "product", spearman = "product", bicor = "product",
  cosine = "product", euclidean = "product", manhattan = "difference",
  chebyshev = "difference", proportional = "difference"
)

model_constants <- function(where) {
  file <- system.file(
    "extdata", "bench", "cluster-model.csv", package = "fsknn",
    mustWork = TRUE
  )
  table <- utils::read.csv(file, stringsAsFactors = FALSE)
  table <- table[table$where == where, ]
  stats::setNames(as.list(table$value), table$constant)
}

# Features as a kernel has them.
model_depth <- function(num_features, where) {
  step <- if (where == "gpu") 64 else 8
  step * ceiling(num_features / step)
}

# Features of the longest rows that a GPU adds up at once (kMostInOne of
# src/cuda/plan/number_forms.hpp).
longest_in_one <- 2048

# A filter is bound by its products, or, of short rows, by what it does with
# each sum; near the middle by both a little.
seconds_a_pair <- function(constants, where, depth, rate = "product") {
  product <- if (where == "gpu" && rate == "product") {
    ifelse(
      depth > longest_in_one, constants$long_product, constants$product
    )
  } else {
    constants[[rate]]
  }
  (constants$pair^2.5 + (product * depth)^2.5)^(1 / 2.5)
}

# Vectors of tasks: their points, pairs, and the pairs that the filter leaves
# (of a whole search about n k).
kernel_seconds <- function(constants, where, points, pairs, left, num_features,
                           rate = "product") {
  depth <- model_depth(num_features, where)
  points *
    (constants$point + constants$sent + constants$value * num_features) +
    pairs * seconds_a_pair(constants, where, depth, rate) +
    left * (constants$neighbour + constants$exact * depth)
}
