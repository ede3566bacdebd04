# Default number of threads: those that the process may use by affinity and
# control groups, within the usual limits. R CMD check allows two.
default_num_threads <- function(usable = cpp_cpu()$threads,
                                call = caller_env()) {
  option <- getOption("fsknn.num_threads")
  if (!is.null(option)) {
    option <- check_whole_number(
      option, "options(fsknn.num_threads)", 1, max_num_threads, call = call
    )
  }
  limits <- c(
    usable,
    option,
    thread_limit("OMP_THREAD_LIMIT"),
    thread_limit("OMP_NUM_THREADS"),
    if (under_r_cmd_check()) 2L
  )
  max(1L, as.integer(min(limits)))
}

max_num_threads <- 1024L

# OMP_NUM_THREADS may be a list with one number for each level of nesting. An
# unreadable value is no limit, as in OpenMP.
thread_limit <- function(variable) {
  text <- sub(",.*", "", Sys.getenv(variable))
  if (!grepl("^ *[0-9]{1,9} *$", text)) {
    return(NULL)
  }
  limit <- as.integer(text)
  if (limit > 0) limit
}

under_r_cmd_check <- function() {
  flag <- tolower(Sys.getenv("_R_CHECK_LIMIT_CORES_"))
  nzchar(flag) && flag != "false"
}

check_num_threads <- function(num_threads, call = caller_env()) {
  if (is.null(num_threads)) {
    return(default_num_threads(call = call))
  }
  check_whole_number(
    num_threads, "num_threads", min = 1, max = max_num_threads, call = call
  )
}
