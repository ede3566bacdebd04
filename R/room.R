# Whether a matrix that is not dense yet can be written out in full.

check_room <- function(size, arg, call = caller_env()) {
  needed <- 8 * prod(size)
  free <- memory_left()
  if (is.na(free) || needed <= free) {
    return(invisible())
  }
  cli_abort(
    c(
      "Too little memory to write out {.arg {arg}} in full, as every point is
       dense once it is prepared.",
      x = "{format_count(size[[1]])} x {format_count(size[[2]])} doubles take
           {format_bytes(needed)}, and {format_bytes(free)} are free.",
      i = "Leave out rows or columns, or bring a reduced dimension."
    ),
    class = c("fsknn_memory_error", "fsknn_error"),
    call = call,
    bytes_asked = needed
  )
}

# Bytes that this process can still have: of the machine, and of the control
# group that it is in; NA where neither can be told.
memory_left <- function(root = "") {
  number <- function(file) {
    path <- paste0(root, file)
    text <- if (file.exists(path)) readLines(path, n = 1, warn = FALSE)
    # "max" where there is no limit
    if (length(text) == 1) suppressWarnings(as.double(text)) else NA_real_
  }
  group <- c(
    number("/sys/fs/cgroup/memory.max") -
      number("/sys/fs/cgroup/memory.current"),
    number("/sys/fs/cgroup/memory/memory.limit_in_bytes") -
      number("/sys/fs/cgroup/memory/memory.usage_in_bytes")
  )
  found <- c(free_of_machine(paste0(root, "/proc/meminfo")), group)
  found <- found[!is.na(found)]
  if (length(found) > 0) min(found) else NA_real_
}

free_of_machine <- function(path) {
  if (!file.exists(path)) {
    return(NA_real_)
  }
  line <- grep("^MemAvailable:", readLines(path, warn = FALSE), value = TRUE)
  if (length(line) == 0) {
    return(NA_real_)
  }
  1024 * as.double(gsub("[^0-9]", "", line[[1]]))
}
