#' All similarities of pairs or triples, a byte each
#'
#' Computes the Proportional Similarity of every pair, or every triple, of
#' points, and writes each as one unsigned byte, as CoMet does: stage by stage,
#' so that neither they nor the pairs are ever held in memory.
#'
#' A byte is floor(255 c) of the exact double c, and the file is what
#' [write_comet_metrics()] with `form = "bytes"` makes of
#' `threshold_graph(x, 0, metric)` or `threshold_triples(x, 0, metric)`: pairs
#' (i, j) by j, then i, i < j; triples (i, j, k) by j, then k, then i,
#' i < j < k. It has n (n - 1) / 2 or n (n - 1) (n - 2) / 6 bytes: 292 MB of
#' pairs of 24,158 points. [read_comet_metrics()] reads it. All is computed in
#' double on CPUs, d features for each pair or triple.
#'
#' @inheritParams threshold_triples
#' @param file Path of the file. It is named when it is whole.
#' @param num_way 2 (default) for pairs, 3 for triples.
#' @param ... [Point options][point_options()] and [run
#'   options][run_options()], by name, or collected as `options = `.
#'   `max_memory` is a limit for the bytes that are not written yet, 64 MiB by
#'   default.
#' @returns `file`, invisibly.
#' @section Errors: As for [knn_search()]; points without a value are an error,
#'   since a byte can't be missing. What the file system refuses is a
#'   `fsknn_file_error`.
#' @inherit threshold_triples references
#' @seealso [comet_files]; `threshold_graph(file = )` and
#'   `threshold_triples(file = )` for those above a threshold.
#' @export
#' @examples
#' x <- matrix(rexp(50 * 8), nrow = 50)
#' file <- tempfile()
#' write_comet_bytes(x, file, num_way = 3)
#' file.size(file) == choose(50, 3)
#' head(read_comet_metrics(file, 3, form = "bytes", num_points = 50), 3)
#' unlink(file)
write_comet_bytes <- function(x, file, num_way = 2,
                              metric = c("proportional", "sorensen"), ...) {
  check_supplied(x)
  check_supplied(file)
  path <- check_path_out(file)
  num_way <- check_whole_number(num_way, "num_way", 2, 3)
  metric <- check_triple_metric(metric)
  options <- triple_options("write_comet_bytes", ...)
  search <- new_search(x, options)
  values <- search$points$values
  if (!is.matrix(values)) {
    abort_argument("{.arg x} must be a matrix.", current_env())
  }
  check_num_points(nrow(values), num_way, "x", search$points$turned)
  call <- current_env()
  room <- options$max_memory %||% 2^26
  bar <- new_split_bar(
    search$request$progress, choose(nrow(values), num_way), "Similarities"
  )
  on.exit(end_bar(bar))
  request <- search$request
  write_whole_bytes(file, path, call = call, write = function(put) {
    opened <- in_core(
      cpp_open_bytes(
        values, request_with_bar(request, bar, 0), as.integer(num_way)
      ),
      call
    )
    repeat {
      asked <- request_with_bar(request, bar, min(room, bar$num_rows))
      bytes <- in_core(cpp_next_bytes(opened$handle, room, asked), call)$bytes
      if (length(bytes) == 0) {
        break
      }
      put(bytes)
      step_bar(bar, length(bytes))
    }
  })
  invisible(file)
}
