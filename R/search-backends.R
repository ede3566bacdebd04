#' Available backends and GPUs
#'
#' Lists the backends and GPUs of this installation, and says why a backend
#' can't be used. It raises no error.
#'
#' @details
#' A backend can be unusable because the build has no CUDA, because there is no
#' GPU, or because a GPU failed permanently. The driver can be missing or too
#' old (with the versions). The process can be a forked child, or the
#' installation can be compiled for other GPUs.
#'
#' An installation is compiled for the GPUs of the machine that builds it, and
#' for newer ones. If there are none, it is compiled for all GPUs that the
#' package supports. To build for all in any case (for instance for a folder
#' that several machines share), install with `FSKNN_CUDA_ARCH=all` in the
#' environment. The head of the file `configure` has the other values of that
#' variable.
#'
#' A GPU is started only when a call uses it, because that takes a fraction of a
#' second and about 500 MB of its memory. The free memory of GPUs that this R
#' process has not used is therefore unknown.
#'
#' @section Self-test of GPUs:
#' Answers of backend `"cuda"` are exact if a GPU's arithmetic is as the proofs
#' assume (`vignette("proofs")`, *Assumptions*). With `test = TRUE`, each GPU
#' computes sums and single operations that are hard for these assumptions, with
#' the searches' own instructions. The results are compared with those of the
#' CPU:
#' * sums of products of bytes, up to the limits of 32 bits, and counts of up to
#'   2^20 common bits: exact;
#' * sums of products of half-precision floats, with the largest losses known to
#'   us: within the error bound;
#' * single operations on doubles and floats, with subnormal and infinite
#'   numbers, and comparisons of equal numbers: the same bits.
#'
#' The test takes about a second. It can find a GPU or a build that is wrong,
#' but it can't prove that one is right. If a GPU fails, its answers may be
#' wrong. There is a warning of class `fsknn_self_test_warning`. Use `backend =
#' "cpu"`, or `devices` to leave out that GPU.
#'
#' @param start Start CUDA on every GPU, to see how much memory each has free?
#'   `FALSE` by default.
#' @param test Test the arithmetic of every GPU? This starts CUDA on them.
#'   `FALSE` by default.
#'
#' @returns A data frame of class `fsknn_backends` with one row for each
#' backend. Its columns are `backend` (`"cpu"`, `"cuda"`), `usable` (logical),
#' `detail` and `devices`. For the CPU, `detail` has the instruction sets,
#' slowest first, and the threads. For CUDA it has the toolkit and the GPUs that
#' it was not compiled for, or the reason why it can't be used.
#'
#' The instruction sets are `baseline`, which every processor runs, and these:
#' * `avx2`, `avx512`, `avx512vnni` and `avx512popcnt` on x86-64, compiled by
#'   GCC;
#' * `neon`, `neondot` and `neoni8mm` on 64-bit ARM. The last two need GCC 10,
#'   clang 16 or later, or a build for such processors.
#'
#' The CPU backend uses the last one that this processor has.
#'
#' `devices` is a list with the GPUs. Its element `cuda` is a data frame with
#' one row for each usable GPU; `cpu` is `NULL`. The columns are
#' * `device`: the number for the argument `devices` of [knn_search()];
#' * `cuda_id`: CUDA's own number, from 0;
#' * `name`, `compute_capability`, `multiprocessors`;
#' * `memory_total`, `memory_free`: bytes; the free memory is `NA` if CUDA is
#'   not started.
#'
#' GPUs that this installation was not compiled for are left out, and the
#' attribute `left_out` names them.
#'
#' With `test = TRUE` there is a further column `test` in both data frames. For
#' a GPU it is `"passed"`, or `"failed: "` or `"not finished: "` with the
#' reasons. For backend `"cuda"` it is `"passed"` if all GPUs passed, otherwise
#' it has the words of those that did not. It is `NA` for the CPU, and for
#' `"cuda"` if there is no usable GPU.
#' @seealso [knn_plan()] for the backend and GPUs of one search.
#' @export
#' @examples
#' knn_backends()
#' nrow(knn_backends()$devices$cuda)
#' knn_backends(test = TRUE)$test
knn_backends <- function(start = FALSE, test = FALSE) {
  start <- check_flag(start, "start")
  test <- check_flag(test, "test")
  facts <- backend_facts()
  table <- describe_backends(facts)
  results <- if (test && facts$cuda$usable) cpp_self_test() else list()
  devices <- cuda_devices(start, facts)
  if (test) {
    # If the GPUs can no longer be listed, there are no rows.
    devices$test <- words_of_self_tests(results)[seq_len(nrow(devices))]
    table$test <- c(NA, summarise_self_tests(devices))
    warn_of_failed(devices, call = current_env())
  }
  table$devices <- list(cpu = NULL, cuda = devices)
  structure(table, class = c("fsknn_backends", "data.frame"))
}

# --- the self-test of GPUs ---------------------------------------------------

words_of_self_tests <- function(results) {
  vapply(results, function(result) {
    if (!result$finished) {
      paste0("not finished: ", result$why_not)
    } else if (length(result$failed) > 0) {
      words <- vapply(result$failed, words_of_assumption, "")
      paste0("failed: ", paste(words, collapse = "; "))
    } else {
      "passed"
    }
  }, "")
}

words_of_assumption <- function(name) {
  switch(
    name,
    byte_sums = "sums of products of bytes are not exact",
    bit_counts = "counts of common bits are not exact",
    half_sums = paste(
      "sums of products of half-precision floats exceed the error bound"
    ),
    float64 = "operations on doubles are not those of IEEE 754",
    float32 = "operations on floats are not those of IEEE 754",
    order = "comparisons of numbers are wrong",
    name
  )
}

# Returns the words for backend "cuda": NA without GPUs.
summarise_self_tests <- function(devices) {
  other <- devices$test != "passed"
  if (nrow(devices) == 0) {
    NA_character_
  } else if (!any(other)) {
    "passed"
  } else {
    paste0(
      "device ", devices$device[other], ": ", devices$test[other],
      collapse = "; "
    )
  }
}

warn_of_failed <- function(devices, call) {
  failed <- devices[startsWith(devices$test, "failed"), , drop = FALSE]
  if (nrow(failed) == 0) {
    return(invisible())
  }
  words <- paste0(
    "Device ", failed$device, " (", failed$name, ") ", failed$test, "."
  )
  cli::cli_warn(
    c(
      "{nrow(failed)} GPU{?s} failed the self-test. {?Its/Their} answers may be
       wrong.",
      rlang::set_names(sprintf("{words[[%d]]}", seq_along(words)), "x"),
      i = "Use {.code backend = \"cpu\"}, or {.arg devices} to leave
           {cli::qty(nrow(failed))}{?it/them} out.",
      i = "Please report this, with the GPU, its driver and the output of
           {.code knn_backends(test = TRUE)}."
    ),
    class = "fsknn_self_test_warning", call = call
  )
}

# Returns the GPUs as a data frame. If there are none, its attribute `reason`
# says why.
cuda_devices <- function(start = FALSE, facts = backend_facts()) {
  if (!facts$cuda$usable) {
    return(new_cuda_devices(no_cuda_devices(), why_no_cuda(facts$cuda)))
  }
  tryCatch(
    new_cuda_devices(
      cpp_cuda_devices(start), left_out = words_of_left_out(facts$cuda)
    ),
    error = function(err) {
      new_cuda_devices(no_cuda_devices(), conditionMessage(err))
    }
  )
}

new_cuda_devices <- function(devices, reason = "", left_out = "") {
  structure(
    devices,
    class = c("fsknn_devices", "data.frame"),
    reason = if (nrow(devices) == 0) reason else "",
    left_out = left_out
  )
}

no_cuda_devices <- function() {
  data.frame(
    device = integer(),
    cuda_id = integer(),
    name = character(),
    compute_capability = character(),
    memory_total = double(),
    memory_free = double(),
    multiprocessors = integer()
  )
}

# Returns the core's facts about its backends or, if that fails, the failure.
backend_facts <- function(ask = cpp_backends) {
  tryCatch(
    ask(),
    error = function(err) {
      list(
        cpu = list(
          instruction_sets = character(), filter_forms = character(),
          threads = 1L
        ),
        cuda = list(
          built = FALSE, usable = FALSE, toolkit = "",
          why_not = list(why = "not_asked", detail = conditionMessage(err))
        )
      )
    }
  )
}

# Says why CUDA can't be used, or "" if it can. `failure` is the failure of a
# call, if it differs from that of the core's facts.
why_no_cuda <- function(cuda, failure = cuda$why_not) {
  version <- function(number) {
    paste0(number %/% 1000, ".", number %% 1000 %/% 10)
  }
  switch(
    failure$why %||% "none",
    none = "",
    not_asked = failure$detail,
    not_built = paste(
      "This installation was built without CUDA:", failure$detail
    ),
    no_driver = "There is no NVIDIA driver.",
    old_driver = paste0(
      "The NVIDIA driver is too old: it supports CUDA ",
      version(failure$driver), ", and this installation needs CUDA ",
      version(failure$runtime), "."
    ),
    driver_mismatch = paste(
      "The NVIDIA driver and its libraries are of different versions (after an",
      "update of the driver a restart of the machine mends this)."
    ),
    no_device = "No NVIDIA GPU is visible to this process.",
    other_devices = words_of_left_out(cuda),
    forked = paste(
      "CUDA was used before this process was forked, and can't be used in a",
      "forked child."
    ),
    lost = paste0(
      "CUDA failed in this R process before, and can't be used in it again: ",
      failure$cuda_words, "."
    ),
    failed = paste0("CUDA failed: ", failure$cuda_words, "."),
    no_such_device = paste0("There is no CUDA device ", failure$device, ".")
  )
}

# Names the GPUs that this build does not support, and how to build for them, or
# returns "". A library that was built beside one GPU may be loaded beside
# another.
words_of_left_out <- function(cuda) {
  others <- cuda$left_out
  if (NROW(others) == 0) {
    return("")
  }
  names <- paste0(
    others$name, " (", others$compute_capability, ")", collapse = ", "
  )
  paste0(
    "This installation was compiled for the architectures ",
    cuda$architectures, ", not for ", names, ". To build for all that the ",
    "package is written for, reinstall with FSKNN_CUDA_ARCH=all in the ",
    "environment."
  )
}

describe_backends <- function(facts) {
  sets <- paste(facts$cpu$instruction_sets, collapse = ", ")
  threads <- facts$cpu$threads
  cpu <- paste0(sets, "; ", tally(threads, "thread"))
  left_out <- words_of_left_out(facts$cuda)
  cuda <- if (!facts$cuda$usable) {
    why_no_cuda(facts$cuda)
  } else if (nzchar(left_out)) {
    paste0(facts$cuda$toolkit, ". ", left_out)
  } else {
    facts$cuda$toolkit
  }
  data.frame(
    backend = c("cpu", "cuda"),
    usable = c(TRUE, facts$cuda$usable),
    detail = c(cpu, cuda)
  )
}

#' @export
print.fsknn_backends <- function(x, ...) {
  shown <- as.data.frame(unclass(x)[names(x) != "devices"])
  print(shown, row.names = FALSE, ...)
  devices <- x[["devices"]][["cuda"]]
  if (NROW(devices) > 0) {
    cat("\nGPUs:\n")
    print(devices)
  }
  invisible(x)
}

#' @export
print.fsknn_devices <- function(x, ...) {
  reason <- attr(x, "reason")
  if (nrow(x) == 0) {
    because <- if (nzchar(reason %||% "")) paste0(": ", reason)
    cat("No CUDA device", because, "\n", sep = "")
  } else {
    plain <- as.data.frame(unclass(x), stringsAsFactors = FALSE)
    for (column in intersect(c("memory_total", "memory_free"), names(plain))) {
      known <- !is.na(plain[[column]])
      plain[[column]] <- ifelse(known, format_bytes(plain[[column]]), "?")
    }
    print(plain, row.names = FALSE)
    left_out <- attr(x, "left_out")
    if (nzchar(left_out %||% "")) {
      cat(left_out, "\n", sep = "")
    }
  }
  invisible(x)
}

# --- choice of the backend ---------------------------------------------------

# Returns the backend and the devices of a call. With "auto", the choice is
# reported once in a session if it is news: a GPU, or none although CUDA was
# built in.
choose_backend <- function(backend, devices, facts = backend_facts(),
                           device_table = cuda_devices, call = caller_env()) {
  backend <- check_backend(backend, call)
  check_device_numbers(devices, call = call)
  if (backend == "cpu" && !is.null(devices)) {
    abort_argument(
      c(
        "{.arg devices} can't be given with backend \"cpu\".",
        i = "It names the GPUs of backend \"cuda\"."
      ),
      call
    )
  }
  wants_cuda <- backend == "cuda" || !is.null(devices)
  if (wants_cuda && !facts$cuda$usable) {
    if (!is.null(facts$cuda$lost)) {
      raise_failure(facts$cuda$lost, call)
    }
    abort_backend(
      "cuda", why_no_cuda(facts$cuda), built = facts$cuda$built, call,
      cuda_words = facts$cuda$why_not$cuda_words
    )
  }
  if (backend == "auto") {
    backend <- if (facts$cuda$usable) "cuda" else "cpu"
    tell_choice(backend, facts, device_table)
  }
  if (!is.null(devices)) {
    devices <- check_devices(devices, device_table(), call = call)
  }
  list(name = backend, devices = devices %||% integer())
}

tell_choice <- function(backend, facts, device_table) {
  text <- if (backend == "cuda") {
    names <- paste(device_table()$name, collapse = ", ")
    c("Using backend \"cuda\".", i = paste0("GPUs: ", names, "."))
  } else if (facts$cuda$built) {
    c("Using backend \"cpu\".", i = why_no_cuda(facts$cuda))
  }
  if (!is.null(text)) {
    # The id contains the backend, because a GPU may be lost after it was
    # reported.
    rlang::inform(
      text, .frequency = "once",
      .frequency_id = paste0("fsknn_auto_backend_", backend)
    )
  }
}

# Checks the form of `devices`, whatever devices exist.
check_device_numbers <- function(devices, call = caller_env()) {
  whole <- is.null(devices) || (
    is.numeric(devices) && !is.object(devices) && length(devices) > 0 &&
      all(is.finite(devices)) && all(devices == trunc(devices)) &&
      anyDuplicated(devices) == 0
  )
  if (!whole) {
    given <- if (is.numeric(devices) && length(devices) > 0) {
      first_few(devices)
    } else {
      describe_value(devices)
    }
    abort_argument(
      c(
        "{.arg devices} must be distinct whole numbers, not {given}.",
        i = "They are the {.code device} numbers of {.fn knn_backends}."
      ),
      call
    )
  }
}

check_devices <- function(devices, table, call = caller_env()) {
  missing <- setdiff(devices, table$device)
  if (length(missing) > 0) {
    count <- nrow(table)
    absent <- first_few(missing)
    abort_argument(
      c(
        "{.arg devices} must name devices that are there.",
        x = "There {cli::qty(count)}{?is/are} {count} CUDA device{?s}, and no
             {absent}.",
        i = "See {.fn knn_backends}."
      ),
      call
    )
  }
  as.integer(devices)
}

# The error has the fields of a CUDA failure, because it is one that precedes
# the first call of CUDA.
abort_backend <- function(backend, reason, built, call, cuda_words = NULL) {
  hint <- if (built) {
    "See {.fn knn_backends}, or use {.code backend = \"cpu\"}."
  } else {
    "See {.fn knn_backends}; reinstall with the CUDA toolkit present, or use
     {.code backend = \"cpu\"}."
  }
  cli_abort(
    c(
      "Can't use backend {.val {backend}}.",
      x = if (nzchar(reason)) "{reason}",
      i = hint
    ),
    class = c("fsknn_backend_error", "fsknn_cuda_error", "fsknn_error"),
    call = call,
    device = NA_integer_,
    cuda_id = NA_integer_,
    bytes_asked = NA_real_,
    bytes_free = NA_real_,
    cuda_words = cuda_words %||% "",
    sticky = FALSE
  )
}
