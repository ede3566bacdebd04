# Run in a process of its own by test-bioc-neighbour_apis.R, in which BiocNeighbors
# is one of the shapes beside this file. Arguments: where the data are, and where
# to leave the answers.
files <- commandArgs(trailingOnly = TRUE)
given <- readRDS(files[[1]])
x <- given$x
y <- given$y
param <- fsknn::FsknnParam()
chord <- fsknn::FsknnParam("Cosine")
pearson <- fsknn::FsknnParam("pearson", backend = "cpu")
library(BiocNeighbors)

# What a call gives, or the words of its error; and of its warnings.
said <- function(expr) {
  warnings <- character()
  value <- withCallingHandlers(
    tryCatch(expr, error = function(err) conditionMessage(err)),
    warning = function(w) {
      warnings <<- c(warnings, conditionMessage(w))
      invokeRestart("muffleWarning")
    }
  )
  list(value = value, warnings = warnings)
}

index <- buildIndex(x, BNPARAM = param)
k_each <- rep(c(2, 5), length.out = nrow(x))
answers <- list(
  version = as.character(utils::packageVersion("BiocNeighbors")),
  find = findKNN(x, k = 4, BNPARAM = param),
  find_pearson = findKNN(x, k = 4, BNPARAM = pearson),
  find_index = findKNN(index, k = 4),
  find_turned = findKNN(
    buildIndex(t(x), transposed = TRUE, BNPARAM = param), k = 4
  ),
  find_transposed = findKNN(
    x, k = 4, get.index = "transposed", get.distance = "transposed",
    BNPARAM = param
  ),
  find_no_distance = findKNN(x, k = 4, get.distance = FALSE, BNPARAM = param),
  find_subset = findKNN(x, k = 4, subset = c(9, 2), BNPARAM = param),
  find_named = findKNN(x, k = 4, subset = c("c9", "c2"), BNPARAM = param),
  find_threads = findKNN(x, k = 4, num.threads = 2, BNPARAM = param),
  find_each = findKNN(x, k = k_each, BNPARAM = param),
  find_as_is = findKNN(x, k = I(3), subset = 7, BNPARAM = param),
  find_wrong_k = said(findKNN(x, k = 1:3, BNPARAM = param))$value,
  find_wrong_subset = said(
    findKNN(x, k = 4, subset = 1000, BNPARAM = param)
  )$value,
  find_capped = said(findKNN(x[1:4, ], k = 9, BNPARAM = param)),
  find_empty = said(findKNN(x[0, , drop = FALSE], k = 9, BNPARAM = param)),
  find_ties = said(findKNN(matrix(0, 5, 3), k = 2, BNPARAM = param)),
  query = queryKNN(x, query = y, k = 4, BNPARAM = param),
  query_index = queryKNN(index, query = y, k = 4),
  query_turned = queryKNN(
    t(x), query = t(y), k = 4, transposed = TRUE, BNPARAM = param
  ),
  query_subset = queryKNN(x, query = y, k = 4, subset = 3:2, BNPARAM = param),
  query_each = queryKNN(
    x, query = y, k = rep(2:3, length.out = nrow(y)), BNPARAM = param
  ),
  query_capped = said(queryKNN(x[1:4, ], query = y, k = 9, BNPARAM = param)),
  within = findNeighbors(x, threshold = 1.5, BNPARAM = param),
  within_index = findNeighbors(index, threshold = 1.5),
  within_count = findNeighbors(
    x, threshold = 1.5, get.index = FALSE, get.distance = FALSE, BNPARAM = param
  ),
  within_subset = findNeighbors(
    x, threshold = 1.5, subset = c(9, 2), BNPARAM = param
  ),
  query_within = queryNeighbors(x, query = y, threshold = 1.5, BNPARAM = param),
  distance = findDistance(x, k = 4, BNPARAM = param),
  distance_each = findDistance(x, k = k_each, BNPARAM = param),
  distance_subset = findDistance(index, k = 4, subset = c(9, 2)),
  query_distance = queryDistance(x, query = y, k = 4, BNPARAM = param),
  distance_none = findDistance(x, k = 0, BNPARAM = param),
  distance_one = said(
    findDistance(x[1, , drop = FALSE], k = 3, BNPARAM = param)
  )$value,
  query_distance_none = said(
    queryDistance(x[0, , drop = FALSE], query = y, k = 3, BNPARAM = param)
  )$value,
  find_zero = said(findKNN(x, k = 4, subset = 0:2, BNPARAM = param))$value,
  find_negative = said(findKNN(x, k = 4, subset = -2, BNPARAM = param))$value,
  within_zero = said(
    findNeighbors(x, threshold = 1, subset = 0, BNPARAM = param)
  )$value,
  distance_zero = said(
    findDistance(x, k = 4, subset = 0, BNPARAM = param)
  )$value,
  query_without = queryKNN(x, query = y, k = 4, subset = -2, BNPARAM = param),
  find_wrong_ks = said(findKNN(x, k = c(-1, 2, 3), BNPARAM = param))$value,
  find_negative_k = said(findKNN(x, k = -1, BNPARAM = param))$value,
  find_zero_rows = findKNN(
    replace(x, c(3, 9) + 30 * rep(0:3, each = 2), 0), k = 4, BNPARAM = chord
  ),
  query_zero_rows = queryKNN(
    x, query = replace(y, 2 + 6 * 0:3, 0), k = 4, BNPARAM = chord
  ),
  find_missing = said(findKNN(replace(x, 7, NA), k = 4, BNPARAM = param))$value,
  query_missing = said(
    queryKNN(x, query = replace(y, 2, Inf), k = 4, BNPARAM = param)
  )$value,
  within_missing = said(
    findNeighbors(replace(x, 7, NaN), threshold = 1, BNPARAM = param)
  )$value,
  find_letters = said(
    findKNN(matrix(letters[1:4], 2), k = 1, BNPARAM = param)
  )$value,
  index_names = index@names,
  builders = lapply(
    c(Euclidean = "Euclidean", Manhattan = "manhattan", Cosine = "cosine"),
    function(name) defineBuilder(fsknn::FsknnParam(name, na = "error"))
  ),
  no_builder = said(defineBuilder(pearson))$value,
  no_builder_na = said(
    defineBuilder(fsknn::FsknnParam("euclidean", na = "mean"))
  )$value,
  mutual = findMutualNN(x, y, k1 = 3, k2 = 2, BNPARAM = param),
  index_shown = utils::capture.output(print(index)),
  param_distance = bndistance(pearson)
)
# A matrix that is none of R's own is taken where BiocNeighbors hands it on.
if (answers$version >= "2.5" && requireNamespace("Matrix", quietly = TRUE)) {
  answers$find_sparse <- findKNN(Matrix::Matrix(x), k = 4, BNPARAM = param)
}
if (answers$version < "2.5") {
  answers$find_bnindex <- findKNN(BNINDEX = index, k = 4)
} else {
  folder <- tempfile()
  dir.create(folder)
  saveIndex(index, folder)
  answers$find_loaded <- findKNN(loadIndex(folder), k = 4)
}
saveRDS(answers, files[[2]])
