# The memory that data may use if they are read by blocks.

# Returns bytes, or NULL if nobody gave a limit: the default is computed when it
# is needed.
check_max_memory <- function(max_memory, call = caller_env()) {
  arg <- "max_memory"
  if (is.null(max_memory)) {
    max_memory <- getOption("fsknn.max_memory")
    arg <- "options(fsknn.max_memory = )"
  }
  if (is.null(max_memory) || identical(max_memory, Inf)) {
    return(max_memory)
  }
  check_bytes(max_memory, arg, call)
}

# Values in memory, their prepared rows and the filter's rows take 2.5 times the
# dense form. A third of the free memory is therefore safe.
max_memory_of <- function(options) {
  options$max_memory %||% check_max_memory(NULL) %||% (free_memory() / 3)
}

# Returns the bytes that the process may still allocate, by the machine and by
# its control group. If neither is known, it is 4 GiB.
free_memory <- function(meminfo = "/proc/meminfo", groups = memory_groups()) {
  fields <- if (file.exists(meminfo)) readLines(meminfo, warn = FALSE)
  line <- grep("^MemAvailable:", fields, value = TRUE)
  free <- as.double(sub("^MemAvailable: *([0-9]+) kB$", "\\1", line)) * 1024
  left <- unlist(lapply(groups, group_memory_left))
  least <- min(c(free, left), Inf)
  if (is.finite(least)) max(least, 0) else 2^32
}

# Returns the folders with the limits of the process's control group and of its
# parents.
memory_groups <- function(mount = "/sys/fs/cgroup",
                          own = "/proc/self/cgroup") {
  lines <- if (file.exists(own)) readLines(own, warn = FALSE)
  path <- sub("^[0-9]+:(memory)?:/?", "", grep(
    "^[0-9]+:(memory)?:", lines, value = TRUE
  ))
  parts <- strsplit(path, "/", fixed = TRUE)
  paths <- unique(c("", unlist(lapply(parts, function(part) {
    Reduce(file.path, part, accumulate = TRUE)
  }))))
  folders <- c(file.path(mount, paths), file.path(mount, "memory", paths))
  folders[dir.exists(folders)]
}

# The names are those of cgroup versions 2 and 1. Cached files that the system
# may drop count as free.
group_memory_left <- function(folder) {
  limit <- number_in(folder, c("memory.max", "memory.limit_in_bytes"))
  used <- number_in(folder, c("memory.current", "memory.usage_in_bytes"))
  if (is.null(limit) || is.null(used)) {
    return(NULL)
  }
  stat <- file.path(folder, "memory.stat")
  lines <- if (file.exists(stat)) readLines(stat, warn = FALSE)
  pattern <- "^(total_)?inactive_file "
  dropped <- as.double(sub(pattern, "", grep(pattern, lines, value = TRUE)))
  limit - used + max(0, dropped)
}

# Returns NULL if there is no number ("max" is no limit).
number_in <- function(folder, names) {
  for (name in file.path(folder, names)) {
    if (file.exists(name)) {
      text <- readLines(name, n = 1, warn = FALSE)
      return(if (grepl("^[0-9]+$", text)) as.double(text))
    }
  }
}

# Returns the bytes on each GPU. With 0, only the free memory is a limit.
check_device_memory <- function(max_device_memory, call = caller_env()) {
  arg <- "max_device_memory"
  if (is.null(max_device_memory)) {
    max_device_memory <- getOption("fsknn.max_device_memory")
    arg <- "options(fsknn.max_device_memory = )"
  }
  if (is.null(max_device_memory)) {
    return(0)
  }
  check_bytes(max_device_memory, arg, call)
}

check_bytes <- function(value, arg, call = caller_env()) {
  bytes <- parse_bytes(value)
  if (is.na(bytes) || bytes < 1) {
    given <- describe_value(value)
    abort_argument(
      c(
        "{.arg {arg}} must be a number of bytes, 1 or more, not {given}.",
        i = "A string such as \"4 GiB\" or \"500 MB\" will do."
      ),
      call
    )
  }
  bytes
}

# Reads a number, or a string of a number and a unit of 1024 (GiB) or of 1000
# (GB).
parse_bytes <- function(value) {
  if (is.numeric(value) && !is.object(value) && length(value) == 1 &&
        is.null(dim(value))) {
    return(if (is.finite(value)) as.double(value) else NA_real_)
  }
  if (!rlang::is_string(value) || !is_valid_text(value)) {
    return(NA_real_)
  }
  form <- "^ *([0-9]+\\.?[0-9]*) *([kmgt]?)(i?)b? *$"
  found <- regmatches(value, regexec(form, value, ignore.case = TRUE))[[1]]
  if (length(found) == 0) {
    return(NA_real_)
  }
  power <- match(tolower(found[[3]]), c("", "k", "m", "g", "t")) - 1
  if (power == 0 && nzchar(found[[4]])) {
    return(NA_real_)
  }
  as.double(found[[2]]) * (if (nzchar(found[[4]])) 1024 else 1000)^power
}
