# Simulates faults that this machine can't produce (cuda/device/faults.hpp).

# These are CUDA's error numbers.
cuda_errors <- c(
  invalid_value = 1L, memory = 2L, initialization = 3L, old_driver = 35L,
  no_device = 100L, mismatch = 803L, illegal_address = 700L,
  launch_failure = 719L, unknown = 999L
)

# The simulation exists only in a build with CUDA, with or without a GPU.
skip_if_no_faults <- function() {
  if (fsknn:::cpp_fake_machine(NULL)) {
    return(invisible(TRUE))
  }
  if (identical(Sys.getenv("FSKNN_REQUIRE_CUDA"), "1")) {
    stop("FSKNN_REQUIRE_CUDA is 1, but this is a build without CUDA.")
  }
  testthat::skip("Built without CUDA.")
}

# Runs `expr` while the nth CUDA call with this text fails. Returns its value or
# error, the number of calls with this text, and whether one failed.
with_fault <- function(expr, error, text = "", nth = 1, device = -1L) {
  fsknn:::cpp_arm_fault(list(
    text = text, nth = nth, code = cuda_errors[[error]], device = device
  ))
  on.exit(fsknn:::cpp_arm_fault(NULL))
  value <- tryCatch(expr, error = function(err) err)
  report <- fsknn:::cpp_arm_fault(NULL)
  list(value = value, matched = report$matched, fired = report$fired)
}

# Describes GPUs with an architecture that this installation supports.
fake_gpus <- function(name, free = 40 * 2^30, shared = 227L * 1024L) {
  compiled <- fsknn:::backend_facts()$cuda$architectures
  arch <- sub("[^0-9]*([0-9]+).*", "\\1", compiled)
  data.frame(
    name = name,
    major = rep_len(as.integer(arch) %/% 10L, length(name)),
    minor = rep_len(as.integer(arch) %% 10L, length(name)),
    total = rep_len(48 * 2^30, length(name)),
    free = rep_len(free, length(name)),
    multiprocessors = rep_len(100L, length(name)),
    shared = rep_len(shared, length(name))
  )
}

# Replaces the machine until the test ends.
local_machine <- function(devices = fake_gpus(character()), error = NULL,
                          driver = 13000L, runtime = 13000L,
                          env = parent.frame()) {
  fsknn:::cpp_fake_machine(list(
    code = if (is.null(error)) 0L else cuda_errors[[error]],
    driver = driver, runtime = runtime, devices = devices
  ))
  withr::defer(fsknn:::cpp_fake_machine(NULL), envir = env)
}
