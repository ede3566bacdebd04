# How much memory data may take that are read by blocks.

# Bytes, or NULL where nobody says: the default is found when it is needed.
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

# Values in memory, prepared rows beside them and the filter's take two and a
# half times the dense form.
max_memory_of <- function(options) {
  options$max_memory %||% check_max_memory(NULL) %||% (free_memory() / 3)
}

# Bytes that the process may still take: of the machine's, and of its control
# group's. Where neither is known, 4 GiB.
free_memory <- function(meminfo = "/proc/meminfo", groups = memory_groups()) {
  fields <- if (file.exists(meminfo)) readLines(meminfo, warn = FALSE)
  line <- grep("^MemAvailable:", fields, value = TRUE)
  free <- as.double(sub("^MemAvailable: *([0-9]+) kB$", "\\1", line)) * 1024
  left <- unlist(lapply(groups, group_memory_left))
  least <- min(c(free, left), Inf)
  if (is.finite(least)) max(least, 0) else 2^32
}

# Folders with the limits of the process's control group and those above it.
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

# Either version's names; files that the system may drop count as free.
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

# NULL where there is no number ("max": no limit).
number_in <- function(folder, names) {
  for (name in file.path(folder, names)) {
    if (file.exists(name)) {
      text <- readLines(name, n = 1, warn = FALSE)
      return(if (grepl("^[0-9]+$", text)) as.double(text))
    }
  }
}

# Bytes on each GPU; 0 where there is no limit but what is free.
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

# A number, or a string of a number and a unit: of 1024 (GiB) or of 1000 (GB).
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
