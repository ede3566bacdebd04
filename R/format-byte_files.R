# All similarities of pairs or triples, a byte each, in the order of CoMet. The
# core computes them part by part, so that they are never all in memory.

byte_metrics <- c("proportional", "sorensen")

# Checks a search that writes such a file, and returns its options. `given` says
# which arguments were given that can't be used.
options_for_bytes <- function(options, sink, least, given, call) {
  if (!identical(sink$format, "comet_bytes")) {
    return(options)
  }
  if (!options$metric$name %in% byte_metrics) {
    metrics <- paste0("\"", byte_metrics, "\"", collapse = " or ")
    abort_argument(
      "{.arg metric} must be {metrics} with
       {.code format = \"comet_bytes\"}, not {.val {options$metric$name}}.",
      call
    )
  }
  if (least != 0) {
    abort_argument(
      c(
        "{.arg min_similarity} must be 0 with
         {.code format = \"comet_bytes\"}.",
        i = "Such a file has every similarity."
      ),
      call
    )
  }
  given <- c(
    given, BPPARAM = !is.null(options$long$workers),
    checkpoint = !is.null(options$long$folder),
    "constant = \"isolate\"" = options$constant == "isolate",
    "backend = \"cuda\"" = options$backend$name == "cuda" &&
      !options$automatic
  )
  if (any(given)) {
    arg <- names(given)[given][[1]]
    abort_argument(
      "{.code {arg}} can't be used with {.code format = \"comet_bytes\"}.", call
    )
  }
  options$backend <- list(name = "cpu", devices = integer())
  options$in_memory <- TRUE
  options
}

# `what` is "edge" or "triple", and `num_way` 2 or 3.
write_bytes_found <- function(search, sink, what, num_way, call) {
  values <- search$points$values
  if (!is.matrix(values)) {
    abort_argument("{.arg x} must be a matrix.", call)
  }
  check_num_points(nrow(values), num_way, "x", search$points$transposed, call)
  room <- search$options$max_memory %||% 2^26
  count <- choose(nrow(values), num_way)
  request <- search$request
  request$within <- NULL
  request$triples <- NULL
  bar <- new_split_bar(request$progress, count, "Similarities")
  on.exit(end_bar(bar))
  write_whole_bytes(sink$file, sink$path, call = call, write = function(put) {
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
  new_found_file(sink, search, what, count, 0)
}
