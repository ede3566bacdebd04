# BiocNeighbors 2.5.1 and later: plain functions, which make an index of what is
# none and call a generic of that index.
setClass(
  "BiocNeighborParam", contains = "VIRTUAL", slots = c(distance = "character")
)
setClass("BiocNeighborIndex", contains = "VIRTUAL")

setGeneric("bndistance", function(x) standardGeneric("bndistance"))
setMethod("bndistance", "BiocNeighborParam", function(x) x@distance)

# Who searches in C++ asks for a builder.
setClass("ExhaustiveParam", contains = "BiocNeighborParam")
ExhaustiveParam <- function(distance = "Euclidean") {
  new("ExhaustiveParam", distance = distance)
}
setGeneric("defineBuilder", function(BNPARAM) standardGeneric("defineBuilder"))
setMethod("defineBuilder", "ExhaustiveParam", function(BNPARAM) {
  list(builder = bndistance(BNPARAM), class = "ExhaustiveIndex")
})

setGeneric(
  "buildIndex", signature = "BNPARAM",
  function(X, BNPARAM, transposed = FALSE, ...) standardGeneric("buildIndex")
)
setGeneric(
  "findKnnFromIndex", signature = "BNINDEX",
  function(BNINDEX, k, get.index = TRUE, get.distance = TRUE, num.threads = 1,
           subset = NULL, ...) standardGeneric("findKnnFromIndex")
)
setGeneric(
  "queryKnnFromIndex", signature = "BNINDEX",
  function(BNINDEX, query, k, get.index = TRUE, get.distance = TRUE,
           num.threads = 1, subset = NULL, transposed = FALSE, ...)
    standardGeneric("queryKnnFromIndex")
)
setGeneric(
  "findNeighborsFromIndex", signature = "BNINDEX",
  function(BNINDEX, threshold, get.index = TRUE, get.distance = TRUE,
           num.threads = 1, subset = NULL, ...)
    standardGeneric("findNeighborsFromIndex")
)
setGeneric(
  "queryNeighborsFromIndex", signature = "BNINDEX",
  function(BNINDEX, query, threshold, get.index = TRUE, get.distance = TRUE,
           num.threads = 1, subset = NULL, transposed = FALSE, ...)
    standardGeneric("queryNeighborsFromIndex")
)
setGeneric(
  "findDistanceFromIndex", signature = "BNINDEX",
  function(BNINDEX, k, num.threads = 1, subset = NULL, ...)
    standardGeneric("findDistanceFromIndex")
)
setGeneric(
  "queryDistanceFromIndex", signature = "BNINDEX",
  function(BNINDEX, query, k, num.threads = 1, subset = NULL,
           transposed = FALSE, ...) standardGeneric("queryDistanceFromIndex")
)
setGeneric(
  "saveIndex", signature = "BNINDEX",
  function(BNINDEX, dir, ...) standardGeneric("saveIndex")
)

as_index <- function(X, ...) {
  if (is(X, "BiocNeighborIndex")) X else buildIndex(X, ...)
}

workers <- function(num.threads, BPPARAM) {
  if (is.null(BPPARAM)) num.threads else BiocParallel::bpnworkers(BPPARAM)
}

findKNN <- function(X, k, get.index = TRUE, get.distance = TRUE,
                    num.threads = 1, subset = NULL, ..., BPPARAM = NULL,
                    BNPARAM = NULL) {
  findKnnFromIndex(
    as_index(X, ..., BNPARAM = BNPARAM), k = k, get.index = get.index,
    get.distance = get.distance, num.threads = workers(num.threads, BPPARAM),
    subset = subset, ...
  )
}

queryKNN <- function(X, query, k, get.index = TRUE, get.distance = TRUE,
                     num.threads = 1, subset = NULL, transposed = FALSE, ...,
                     BPPARAM = NULL, BNPARAM = NULL) {
  queryKnnFromIndex(
    as_index(X, transposed = transposed, ..., BNPARAM = BNPARAM),
    query = query, k = k, get.index = get.index, get.distance = get.distance,
    num.threads = workers(num.threads, BPPARAM), subset = subset,
    transposed = transposed, ...
  )
}

findNeighbors <- function(X, threshold, get.index = TRUE, get.distance = TRUE,
                          num.threads = 1, subset = NULL, ..., BPPARAM = NULL,
                          BNPARAM = NULL) {
  findNeighborsFromIndex(
    as_index(X, ..., BNPARAM = BNPARAM), threshold = threshold,
    get.index = get.index, get.distance = get.distance,
    num.threads = workers(num.threads, BPPARAM), subset = subset, ...
  )
}

queryNeighbors <- function(X, query, threshold, get.index = TRUE,
                           get.distance = TRUE, num.threads = 1, subset = NULL,
                           transposed = FALSE, ..., BPPARAM = NULL,
                           BNPARAM = NULL) {
  queryNeighborsFromIndex(
    as_index(X, transposed = transposed, ..., BNPARAM = BNPARAM),
    query = query, threshold = threshold, get.index = get.index,
    get.distance = get.distance, num.threads = workers(num.threads, BPPARAM),
    subset = subset, transposed = transposed, ...
  )
}

findDistance <- function(X, k, num.threads = 1, subset = NULL, ...,
                         BPPARAM = NULL, BNPARAM = NULL) {
  findDistanceFromIndex(
    as_index(X, ..., BNPARAM = BNPARAM), k = k,
    num.threads = workers(num.threads, BPPARAM), subset = subset, ...
  )
}

queryDistance <- function(X, query, k, num.threads = 1, subset = NULL,
                          transposed = FALSE, ..., BPPARAM = NULL,
                          BNPARAM = NULL) {
  queryDistanceFromIndex(
    as_index(X, transposed = transposed, ..., BNPARAM = BNPARAM),
    query = query, k = k, num.threads = workers(num.threads, BPPARAM),
    subset = subset, transposed = transposed, ...
  )
}

readers <- new.env()
registerLoadIndexFunction <- function(name, fun) assign(name, fun, readers)
loadIndex <- function(dir, ...) {
  get(readLines(file.path(dir, "ALGORITHM")), readers)(dir, ...)
}

# Wants its indices transposed, and trusts that they are.
findMutualNN <- function(data1, data2, k1, k2 = k1, ...) {
  to2 <- queryKNN(
    data2, query = data1, k = k2, get.index = "transposed",
    get.distance = FALSE, ...
  )
  to1 <- queryKNN(
    data1, query = data2, k = k1, get.index = "transposed",
    get.distance = FALSE, ...
  )
  list(to2$index, to1$index)
}
