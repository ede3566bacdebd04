# Writes a long answer to shards, one range of rows after another.
#
#   fsknn-shards           text: facts of the answer, and each file with its
#                          size and digests (files/shards.hpp); written last
#   fsknn-lock             locked by the search that writes
#   shard-000001.h5        or index-000001.ibin and distance-000001.fbin

# Rows are requested in order, each once. A range has at most `at_once` entries
# and never spans two shards.
#   rows_of   function(first, last): list(index, distance), two matrices of the
#             rows first to last of the answer; with `rows`, of more rows, of
#             which these two and those between them are meant
#   claim     from claim_output()
#   facts     named text: facts of the answer
write_shards <- function(rows_of, num_rows, k, claim, facts = NULL,
                         call = caller_env(), at_once = 2^22) {
  output <- claim$output
  shard_rows <- min(output$shard_rows %||% max(1, floor(2^24 / k)), num_rows)
  range_rows <- max(1, floor(at_once / k))
  shards <- seq_len(ceiling(num_rows / max(1, shard_rows)))
  first <- (shards - 1) * shard_rows + 1
  last <- pmin(shards * shard_rows, num_rows)
  names <- lapply(shards, function(at) {
    rows <- c(first[[at]], last[[at]])
    write_shard(rows_of, at, rows, k, range_rows, claim, call)
  })
  each <- lengths(names)
  names <- as.character(unlist(names))
  # The digests of all files at once, by all threads.
  found <- in_shard(
    cpp_file_facts(file.path(claim$folder, names), TRUE, claim$num_threads),
    output, call
  )
  files <- paste(
    names, number_text(rep(first, each)), number_text(rep(last, each)),
    number_text(found$bytes), found$ends, found$whole
  )
  lines <- c(
    form = "1", version = package_version_text(), format = output$format,
    precision = output$precision, rows = number_text(num_rows),
    columns = number_text(k), facts
  )
  lines <- paste0(
    c(names(lines), rep("file", length(files))), ": ", c(lines, files)
  )
  text <- paste0(enc2utf8(lines), "\n", collapse = "")
  digest <- paste("digest:", cpp_digest_raw(charToRaw(text)))
  path <- file.path(claim$folder, shards_name)
  write_whole_file(
    file.path(output$given, shards_name), path,
    function(put) put(c(lines, digest)), call
  )
  claim$whole <- TRUE
  invisible()
}

# Returns the names of the files, which are then complete.
write_shard <- function(rows_of, shard, rows, k, range_rows, claim, call) {
  size <- c(rows[[2]] - rows[[1]] + 1, k)
  writer <- new_shard(shard, size, claim, call)
  on.exit(writer$drop())
  firsts <- seq(rows[[1]], rows[[2]], by = range_rows)
  for (first in firsts) {
    last <- min(first + range_rows - 1, rows[[2]])
    part <- rows_of(first, last)
    given <- dim(part$index)
    meant <- part$rows %||% c(1, given[[1]])
    if (given[[2]] != k || meant[[2]] - meant[[1]] != last - first ||
          meant[[2]] > given[[1]] || !identical(dim(part$distance), given)) {
      rlang::abort("Rows of an answer have its columns.", .internal = TRUE)
    }
    writer$put(part, first - rows[[1]] + 1)
  }
  writer$finish()
}

# Serves ranges of an answer that is in memory, without a copy.
rows_of_answer <- function(found) {
  function(first, last) {
    list(
      index = found$index, distance = found$distance, rows = c(first, last)
    )
  }
}

# Returns a part without other rows.
cut_part <- function(part) {
  if (is.null(part$rows)) {
    return(part)
  }
  rows <- seq.int(part$rows[[1]], part$rows[[2]])
  list(
    index = part$index[rows, , drop = FALSE],
    distance = part$distance[rows, , drop = FALSE]
  )
}

in_shard <- function(answer, output, call) {
  if (identical(answer$failure, "file")) {
    abort_shard_unwritten(output, basename(answer$path), answer$message, call)
  }
  in_core(answer, call)
}

abort_shard_unwritten <- function(output, name, words, call) {
  words <- sub("[.]$", "", words)
  cli_abort(
    c(
      "The folder {.file {output$given}} of {.arg output} can't be written to.",
      x = "{.file {name}}: {words}.",
      i = "The partial output was deleted."
    ),
    class = c("fsknn_output_error", "fsknn_file_error", "fsknn_error"),
    call = call
  )
}

# --- a search into shards ----------------------------------------------------

# Returns the value of a verb: the answer, or its shards.
answer_of <- function(search, output, call = caller_env()) {
  if (is.null(output)) {
    return(index_and_distance(run_search(search, call), search))
  }
  if (!is.null(search$each_k)) {
    abort_argument(
      c(
        "{.arg output} can't be used with a {.arg k} for each point.",
        i = "Lists of different lengths have no columns."
      ),
      call
    )
  }
  claim <- claim_output(output, call, search$request$num_threads)
  on.exit(release_output(claim))
  columns <- row_width(search$request)
  rows_of <- if (is_answer_long(search, columns)) {
    rows_by_ranges(search, call)
  } else {
    rows_of_answer(run_search(search, call))
  }
  write_shards(
    rows_of, search$num_rows, columns, claim, facts_of_answer(search), call
  )
  shards <- open_shards(output$given, output$folder, FALSE, call)
  with_searched(add_left_out(shards, search), search)
}

# Returns the facts of an answer besides its size.
facts_of_answer <- function(search) {
  request <- search$request
  of <- if (!is.null(search$queries)) {
    "queries"
  } else if (!is.null(request$subset)) {
    "subset"
  } else {
    "points"
  }
  c(
    points = number_text(nrow(search$points$values)), of = of,
    metric = request$metric, sign = request$sign
  )
}

is_answer_long <- function(search, columns) {
  is.null(search$options$long) && !has_short_lists(search$request) &&
    12 * search$num_rows * columns > max_memory_of(search$options)
}

# Searches one range and returns its rows as ask_core() does.
find_range <- function(work, range, bar, call) {
  request <- work$request
  request$progress <- FALSE
  request$bar <- bar$drawn
  request$share <- split_share(bar, rows_of_task(work, range))
  in_core(search_task(work, range, request), call)
}

# Searches the rows by ranges, each among all points, and keeps the last range.
rows_by_ranges <- function(search, call) {
  started <- Sys.time()
  if (search$options$verbose) {
    tell_lines(describe_search(search, call))
  }
  work <- new_work(search)
  columns <- row_width(search$request)
  most <- floor(max_memory_of(search$options) / (24 * columns))
  size <- min(automatic_size("rows", work, 1L), most)
  work$plan <- list(kind = "rows", size = as.integer(max(1, size)))
  bar <- new_split_bar(search$request$progress, work$num_rows)
  defer(end_bar(bar), parent.frame())
  held <- new.env(parent = emptyenv())
  held$split <- 0
  take <- function(split) {
    if (held$split != split) {
      held$found <- NULL
      held$found <- find_range(work, split, bar, call)
      held$split <- split
      held$stats <- add_stats(held$stats, held$found$stats)
      step_bar(bar, rows_of_task(work, split))
      seconds <- as.double(Sys.time() - started, units = "secs")
      remember_search(
        work$values, work$queries, search$request, held$stats, seconds
      )
    }
    rows_of_answer(held$found)
  }
  function(first, last) {
    size <- work$plan$size
    splits <- seq(ceiling(first / size), ceiling(last / size))
    parts <- lapply(splits, function(split) {
      bounds <- task_bounds(work, split)
      rows <- pmax(first, pmin(last, bounds)) - bounds[[1]] + 1
      cut_part(take(split)(rows[[1]], rows[[2]]))
    })
    list(
      index = do.call(rbind, lapply(parts, `[[`, "index")),
      distance = do.call(rbind, lapply(parts, `[[`, "distance"))
    )
  }
}
