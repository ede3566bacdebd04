#' Collect the answer of a finished search
#'
#' Combines the results of all workers in a folder (see [knn_worker()]). The
#' answer is that of the original search, to the last bit, and does not need its
#' data. The same call with the same `checkpoint` gives it, too.
#'
#' @inheritParams knn_worker
#' @param wait `FALSE` (default): unfinished tasks are an error. `TRUE` waits
#'   until other workers have finished them.
#' @param num_threads Number of CPU threads, as for [knn_search()].
#'
#' @returns The result of the call that made the folder: of [knn_search()],
#'   [knn_query()], [within_search()], [knn_graph()] or [threshold_graph()]. For
#'   verbs that process neighbours further, such as [mst_knn()], the result is
#'   the neighbours. Call such a verb again with the same `checkpoint`.
#' @seealso [knn_worker()], [knn_status()]
#' @export
#' @examples
#' x <- matrix(rnorm(100 * 12), nrow = 100)
#' folder <- tempfile()
#' edges <- knn_graph(x, k = 3, checkpoint = folder)
#' identical(knn_collect(folder), edges)
#' unlink(folder, recursive = TRUE)
knn_collect <- function(folder, ..., wait = FALSE, num_threads = NULL) {
  check_no_more(...)
  check_supplied(folder)
  check_flag(wait, "wait")
  num_threads <- check_num_threads(num_threads)
  call <- current_env()
  job <- join_folder(folder, "folder", NULL, call)
  job$work$request$num_threads <- num_threads
  if (is_resampled(job$work$request)) {
    abort_argument(
      c(
        "The folder {.file {folder}} holds counts of edges, which are no answer
         alone.",
        i = "Call the verb that made it again, with the same
             {.arg checkpoint}."
      ),
      call
    )
  }
  answer <- collect_folder(job, wait, call)
  found <- whole_answer(answer, job$work, call)
  search <- job$search
  search$request <- job$work$request
  search$points$values <- job$work$values
  finish_search(found, search, call)
}

# Reads and checks all results. It is an error if some are missing.
collect_folder <- function(job, wait, call) {
  answer <- new_answer(job$work)
  pause <- 0.1
  repeat {
    state <- look_at_folder(job, call)
    bad <- collect_tasks(job, answer, state, NULL, call)
    if (all(answer$taken)) {
      return(answer)
    }
    state$done[c(bad$damaged, bad$other)] <- FALSE
    failure <- ending_failure(job, state, call)
    if (!is.null(failure)) {
      raise_job_failure(job, failure, call)
    }
    if (!wait) {
      abort_tasks_left(job, sum(!answer$taken), length(answer$taken), call)
    }
    cpp_wait(pause)
    pause <- min(2 * pause, 5)
  }
}

abort_tasks_left <- function(job, left, count, call) {
  cli_abort(
    c(
      "The work in {.file {job$given}} is not done.",
      x = "{format_count(left)} of {format_count(count)}
           {cli::qty(count)}task{?s} {cli::qty(left)}{?is/are} left.",
      i = "{.fn knn_worker} does them; {.fn knn_status} says who is at it."
    ),
    class = c("fsknn_checkpoint_error", "fsknn_error"),
    call = call
  )
}

# Makes the answer of a verb from the answer of the core.
finish_search <- function(found, search, call) {
  request <- search$request
  if (asks_triples(request)) {
    return(finish_triples(found, search))
  }
  as_edges <- request$as_edges || isTRUE(search$as_edges)
  if (has_short_lists(request)) {
    found <- finish_short_lists(found, search, as_edges)
  }
  if (!as_edges) {
    index_and_distance(found, search)
  } else if (is_within(request)) {
    threshold_edges(found, search, call)
  } else {
    edges_of_search(found, search, call)
  }
}
