# Models the seconds of a part of a search. The constants were fitted to runs
# that are stored with the package (inst/bench/cluster_model.R fits them and
# reports the errors). On the CPU, they are seconds of one thread.
#
#   start      before and after the work of a task
#   point      each point of a task's blocks
#   sent       transfer of a point to a GPU, and of its answer back
#   value      each value read, prepared and, for a GPU, transferred
#   pair       each pair, however short the rows
#   product    each feature of a pair, in the filter by products
#   long_product  the same for rows so long that a GPU sums them in parts
#   difference  each feature of a pair, in the filter by differences
#   neighbour  each pair that passes the filter
#   exact      each feature of such a pair

# Maps metrics to the rates of the filter. The rates of other metrics were never
# measured.
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

# Returns the number of features as padded for a kernel.
model_depth <- function(num_features, where) {
  step <- if (where == "gpu") 64 else 8
  step * ceiling(num_features / step)
}

# Maximum number of features that a GPU sums at once (kMostInOne of
# src/cuda/plan/number_forms.hpp).
longest_in_one <- 2048

# A filter is bound by its products or, for short rows, by the work on each sum.
# Near the transition, both contribute.
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

# Arguments are vectors over tasks: points, pairs, and the pairs that pass the
# filter (about n k in a whole search).
kernel_seconds <- function(constants, where, points, pairs, left, num_features,
                           rate = "product") {
  depth <- model_depth(num_features, where)
  points *
    (constants$point + constants$sent + constants$value * num_features) +
    pairs * seconds_a_pair(constants, where, depth, rate) +
    left * (constants$neighbour + constants$exact * depth)
}
