# BiocNeighbors 2.0 to 2.4: all are generics on X and BNPARAM; a matrix is made
# an index first.
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

on_both <- c("X", "BNPARAM")
setGeneric(
  "buildIndex", signature = on_both,
  function(X, transposed = FALSE, ..., BNPARAM = NULL)
    standardGeneric("buildIndex")
)
setMethod(
  "buildIndex", c("matrix", "BiocNeighborParam"),
  function(X, transposed = FALSE, ..., BNPARAM = NULL) defineBuilder(BNPARAM)
)
setGeneric(
  "findKNN", signature = on_both,
  function(X, k, get.index = TRUE, get.distance = TRUE, num.threads = 1,
           subset = NULL, ..., BNPARAM = NULL) standardGeneric("findKNN")
)
setGeneric(
  "queryKNN", signature = on_both,
  function(X, query, k, get.index = TRUE, get.distance = TRUE, num.threads = 1,
           subset = NULL, transposed = FALSE, ..., BNPARAM = NULL)
    standardGeneric("queryKNN")
)
setGeneric(
  "findNeighbors", signature = on_both,
  function(X, threshold, get.index = TRUE, get.distance = TRUE, num.threads = 1,
           subset = NULL, ..., BNPARAM = NULL) standardGeneric("findNeighbors")
)
setGeneric(
  "queryNeighbors", signature = on_both,
  function(X, query, threshold, get.index = TRUE, get.distance = TRUE,
           num.threads = 1, subset = NULL, transposed = FALSE, ...,
           BNPARAM = NULL) standardGeneric("queryNeighbors")
)
setGeneric(
  "findDistance", signature = on_both,
  function(X, k, num.threads = 1, subset = NULL, ..., BNPARAM = NULL)
    standardGeneric("findDistance")
)
setGeneric(
  "queryDistance", signature = on_both,
  function(X, query, k, num.threads = 1, subset = NULL, transposed = FALSE, ...,
           BNPARAM = NULL) standardGeneric("queryDistance")
)

# The method that makes an index of a matrix, or takes BNINDEX where there is no
# X, and asks again with all else that it was given.
ask_again <- function(name, index) {
  arguments <- formals(getGeneric(name))
  others <- setdiff(names(arguments), c("X", "BNPARAM", "..."))
  method <- function() NULL
  formals(method) <- arguments
  handed_on <- lapply(stats::setNames(nm = others), as.name)
  body(method) <- as.call(c(as.name(name), index, handed_on, quote(...)))
  environment(method) <- environment(ask_again)
  method
}

for (name in c("find", "query")) {
  for (what in c("KNN", "Neighbors", "Distance")) {
    generic <- paste0(name, what)
    built <- if (name == "query") {
      quote(buildIndex(X, transposed = transposed, ..., BNPARAM = BNPARAM))
    } else {
      quote(buildIndex(X, ..., BNPARAM = BNPARAM))
    }
    setMethod(generic, c("matrix", "ANY"), ask_again(generic, built))
    setMethod(
      generic, c("missing", "ANY"), ask_again(generic, quote(list(...)$BNINDEX))
    )
  }
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
