# Runs a search by tasks or in one piece, describes it on request, and records
# its statistics.

# Returns the answer as ask_core() does.
run_search <- function(search, call = caller_env()) {
  if (!search$options$verbose) {
    return(find_somehow(search, call))
  }
  described <- describe_search(search, call)
  started <- Sys.time()
  tell_lines(c(described, paste("Start:", format(started))))
  found <- find_somehow(search, call)
  ended <- Sys.time()
  seconds <- as.double(ended - started, units = "secs")
  tell_lines(c(
    paste("End:", format(ended)),
    paste("Seconds:", format(round(seconds, 3), nsmall = 3))
  ))
  found
}

describe_search <- function(search, call) {
  if (is_within(search$request)) {
    return(describe_within(search))
  }
  values <- search$points$values
  format(new_plan(
    nrow(values), ncol(values),
    num_queries(search$queries$values, search$request), search$request,
    call = call
  ))
}

# Sends the lines unchanged, as one message.
tell_lines <- function(lines) {
  rlang::inform(paste(lines, collapse = "\n"))
}

find_somehow <- function(search, call) {
  if (has_short_lists(search$request)) {
    return(find_short_lists(search, call))
  }
  find_in_parts_or_whole(search, call)
}

find_in_parts_or_whole <- function(search, call) {
  find <- if (is.null(search$options$long)) find_whole else find_in_folder
  naming_largest(search, find(search, call = call), call)
}

find_whole <- function(search, call) {
  values <- search$points$values
  queries <- search$queries$values
  started <- Sys.time()
  if (!is.null(search$index) && is_within(search$request) && is.null(queries)) {
    # The core does not sample held points first.
    check_room(list(values = values, request = search$request), call)
  }
  found <- ask_core(search$held %||% values, queries, search$request)
  if (!is.null(search$index)) {
    note_failure(search$index, found)
  }
  found <- in_core(found, call)
  seconds <- seconds_since(started)
  remember_search(values, queries, search$request, found$stats, seconds)
  found
}

# A difference of times would take longer than the search of a query.
seconds_since <- function(started) {
  as.double(Sys.time()) - as.double(started)
}
