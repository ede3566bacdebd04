# What there is to run on. Where FSKNN_REQUIRE_CUDA is "1" a missing GPU is a
# failure, not a skip.
cuda_is_usable <- function() {
  fsknn:::backend_facts()$cuda$usable
}

backends_here <- function() {
  c("cpu", if (cuda_is_usable()) "cuda")
}

skip_if_no_cuda <- function() {
  if (cuda_is_usable()) {
    return(invisible(TRUE))
  }
  reason <- fsknn:::why_no_cuda(fsknn:::backend_facts()$cuda)
  if (identical(Sys.getenv("FSKNN_REQUIRE_CUDA"), "1")) {
    stop("FSKNN_REQUIRE_CUDA is 1, but CUDA can't be used: ", reason)
  }
  testthat::skip(paste("No CUDA:", reason))
}

# A plan but for what is free on a GPU, which changes while others use it.
plan_of <- function(...) {
  plan <- knn_plan(...)
  plan$devices$memory_free <- rep(NA_real_, nrow(plan$devices))
  plan
}

# The answer by definition: the core's exact step over all pairs.
brute_force <- function(x, query = NULL, k, metric, sign = "signed",
                        skip = integer(), query_skip = integer(),
                        weights = NULL, adjust = NULL) {
  options <- list(
    metric = list(name = metric), sign = sign, num_threads = 1L,
    chunk_size = 0L, weights = weights, adjust = adjust,
    backend = list(name = "cpu", devices = integer())
  )
  request <- fsknn:::new_request(as.integer(k), options, skip, query_skip)
  as_neighbours(
    fsknn:::cpp_brute_force(x, query, request)[c("index", "distance")]
  )
}

# A list of index and distance with the class that searches give theirs.
as_neighbours <- function(found) {
  structure(found, class = "knn_neighbours")
}

# An environment variable for the rest of a test.
local_variable <- function(name, value, frame = parent.frame()) {
  old <- Sys.getenv(name, unset = NA)
  restore <- if (is.na(old)) {
    bquote(Sys.unsetenv(.(name)))
  } else {
    bquote(do.call(Sys.setenv, stats::setNames(list(.(old)), .(name))))
  }
  do.call(Sys.setenv, stats::setNames(list(value), name))
  do.call(on.exit, list(restore, add = TRUE), envir = frame)
}
