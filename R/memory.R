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
