# Returns list(index, distance) as knn_search() and knn_query() do. A failure is
# an error of class "status_1" and so on, and Ctrl-C is R's interrupt. `how` is
# the C function.
nearest <- function(x, k, metric, query = NULL, sign = NULL,
                    num_threads = 1L, backend = NULL, how = C_find) {
  rows <- nrow(if (is.null(query)) x else query)
  answer <- list(
    index = matrix(0L, rows, max(k, 0)), distance = matrix(0, rows, max(k, 0))
  )
  found <- .Call(
    how, x, query, as.integer(k), metric, sign, as.integer(num_threads),
    backend, answer$index, answer$distance
  )
  if (found[[1]] == 2) {
    stop(structure(class = c("interrupt", "condition"), list()))
  }
  if (found[[1]] != 0) {
    stop(structure(
      class = c(paste0("status_", found[[1]]), "error", "condition"),
      list(message = found[[2]], call = NULL)
    ))
  }
  answer
}
