# Backends of this machine. If FSKNN_REQUIRE_CUDA is "1", a missing GPU is a
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

# Removes the free memory of GPUs from a plan, because it changes while others
# use them.
plan_of <- function(...) {
  plan <- knn_plan(...)
  plan$devices$memory_free <- rep(NA_real_, nrow(plan$devices))
  plan
}

# Returns the largest memory limit of a GPU for which points are processed in
# panels. The filter's rows are either on the GPU ("panels") or in host memory
# ("stretches").
limits_for_panels <- function(x, k, metric, ...) {
  most <- knn_plan(x, k, metric, backend = "cuda", devices = 1, ...)$bytes_peak
  limits <- c(panels = NA_real_, stretches = NA_real_)
  for (bytes in most * 0.9^(1:60)) {
    plan <- knn_plan(
      x, k, metric, backend = "cuda", devices = 1, max_device_memory = bytes,
      ...
    )
    if (!plan$streamed || !nzchar(plan$filter)) next
    way <- if (plan$bytes_host > 0) "stretches" else "panels"
    if (is.na(limits[[way]])) limits[[way]] <- bytes
    if (!anyNA(limits)) break
  }
  limits[!is.na(limits)]
}

gpus_here <- function(start = FALSE) {
  knn_backends(start)$devices$cuda
}

# Returns whether the metric has a filter on any backend.
has_filter <- function(metric) {
  nzchar(knn_plan(c(6000, 30), 3, metric, backend = "cpu")$filter)
}

# Tries one GPU, and all if there are several.
gpus_to_try <- function() {
  if (nrow(gpus_here()) > 1) list(1, NULL) else list(1)
}

# Returns the answer by definition: the core's exact step over all pairs.
brute_force <- function(x, query = NULL, k, metric, sign = "signed",
                        skip = integer(), query_skip = integer(),
                        weights = NULL, adjust = NULL, ...) {
  options <- list(
    metric = list(name = metric), sign = sign, num_threads = 1L,
    chunk_size = 0L, weights = weights, adjust = adjust,
    backend = list(name = "cpu", devices = integer()), ...
  )
  request <- fsknn:::new_request(as.integer(k), options, skip, query_skip)
  as_neighbours(
    fsknn:::cpp_brute_force(x, query, request)[c("index", "distance")]
  )
}

# Adds the class of search results to a list of index and distance.
as_neighbours <- function(found) {
  structure(
    found, class = "fsknn_neighbours", searched = fsknn:::new_searched()
  )
}

# Returns index and distance as a plain list.
bare <- function(found) {
  found[c("index", "distance")]
}

# Sets an environment variable for the rest of a test.
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

# `find`, a function of a search's options, gives these bits on all backends, in
# chunks and by threads too, and by all instruction sets.
expect_everywhere <- function(find, expected, label) {
  for (backend in backends_here()) {
    expect_same_bits(find(backend = backend), expected, label)
    expect_same_bits(
      find(backend = backend, chunk_size = 16, num_threads = 2), expected, label
    )
  }
  for (set in fsknn:::cpp_backends()$cpu$instruction_sets) {
    rlang::with_options(
      fsknn.instruction_set = set,
      expect_same_bits(find(backend = "cpu"), expected, paste(label, set))
    )
  }
}
