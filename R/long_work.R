# Long work by splits: ranges of the rows that are asked for (points, some of
# them, queries; their nearest, or all within a distance), each a search of its
# own among all points, one after another or on several workers, each kept in a
# folder where that is asked for. The answer is put together of them, and is
# that of one search to the last bit. Where the points are searched by many sets
# of samples (see R/resamples.R) a split is some of those.
#
# What it costs. A search of all points meets each pair once, for both its
# points; splits meet it twice, once from each side. Preparing the points again
# for each split is little beside that, for splits of the size chosen here: it
# costs as much as the search for some thousand points on the CPU (more where
# they are ranked), and for some ten thousand on a GPU, where they must come
# over first.

# What is asked for besides the search, checked as far as that goes without it;
# NULL where it is a plain search.
check_long_work <- function(BPPARAM, checkpoint, options,
                            num_threads = NULL, call = caller_env()) {
  workers <- check_workers(BPPARAM, options, num_threads, call = call)
  folder <- check_checkpoint(checkpoint, call = call)
  if (is.null(workers) && is.null(folder)) {
    return(NULL)
  }
  list(
    workers = workers, folder = folder, size = check_split_size(call = call)
  )
}

# options(fsknn.split_size = ): rows in a split; NULL: automatic.
check_split_size <- function(call = caller_env()) {
  size <- getOption("fsknn.split_size")
  if (!is.null(size)) {
    check_whole_number(
      size, "options(fsknn.split_size = )", 1, .Machine$integer.max,
      call = call
    )
  }
}

# What ask_core() gives, found by splits.
find_by_splits <- function(search, call = caller_env()) {
  check_file_is_shared(search, call)
  started <- Sys.time()
  work <- new_split_work(search)
  if (is_within(work$request)) {
    check_room(work, call)
  }
  kept <- open_checkpoint(search, work, call)
  on.exit(close_checkpoint(kept))
  work$size <- kept$size %||% work$size
  answer <- new_answer(work)
  left <- seq_len(num_splits(work))
  bar <- new_split_bar(search$request$progress, work$num_rows)
  on.exit(end_bar(bar), add = TRUE)

  if (!is.null(kept)) {
    left <- take_kept(kept, work, answer, bar, call)
  }
  take <- function(split, found) {
    keep_split(kept, work, answer, split, found, call)
    put_split(answer, work, split, found, call)
    step_bar(bar, rows_of_split(work, split))
  }
  if (is.null(search$options$long$workers)) {
    for (split in left) {
      take(split, run_split(work, split, bar, call))
    }
  } else {
    run_on_workers(search$options$long$workers, work, left, take, call)
  }
  seconds <- as.double(Sys.time() - started, units = "secs")
  remember_search(
    work$values, work$queries, search$request, answer$stats, seconds
  )
  c(whole_answer(answer, work), list(stats = answer$stats))
}

# The search as splits of it are taken, and how large they are.
new_split_work <- function(search) {
  request <- search$request
  work <- list(
    values = search$points$values,
    queries = search$queries$values,
    request = request,
    num_rows = search$num_rows
  )
  num_workers <- search$options$long$workers$count %||% 1L
  work$size <- search$options$long$size %||% if (is_resampled(request)) {
    automatic_resamples(work$num_rows, num_workers)
  } else {
    automatic_split(
      nrow(work$values), ncol(work$values), work$num_rows, request, num_workers
    )
  }
  work
}

# At least one, which is empty where nothing is asked for.
num_splits <- function(work) {
  max(1L, as.integer(ceiling(work$num_rows / work$size)))
}

# c(first, last), among the rows of the answer.
split_bounds <- function(work, split) {
  c((split - 1) * work$size + 1, min(split * work$size, work$num_rows))
}

rows_of_split <- function(work, split) {
  diff(split_bounds(work, split)) + 1
}

# Rows in a split: enough that preparing all points again is a small part of the
# split's work, and otherwise half a minute of it, roughly. For workers smaller
# ones, so that each has its share.
automatic_split <- function(num_points, num_features, num_rows, request,
                            num_workers) {
  on_gpu <- request$backend == "cuda"
  slow_to_prepare <- request$metric %in% c("spearman", "bicor")
  least <- if (on_gpu) 800000 else if (slow_to_prepare) 98304 else 32768
  products_a_second <- if (on_gpu) {
    1e14 * max(1, length(request$devices))
  } else {
    1e11 * max(1, request$num_threads, na.rm = TRUE)
  }
  rows <- 30 * products_a_second / num_points / num_features
  if (num_workers > 1) {
    rows <- min(rows, num_rows / (3 * num_workers))
  }
  # A split is held twice on its way to a file: at most 2^29 bytes of it.
  rows <- max(rows, least)
  if (!is_within(request)) {
    rows <- min(rows, max(1, 2^29 / (20 * row_width(request))))
  }
  if (num_workers > 1) {
    rows <- min(rows, num_rows / num_workers)
  }
  as.integer(max(1, min(ceiling(rows), num_rows)))
}

# One split in this process, as ask_core() gives it.
run_split <- function(work, split, bar, call) {
  request <- work$request
  request$progress <- FALSE
  request$bar <- bar$drawn
  request$share <- split_share(bar, rows_of_split(work, split))
  in_core(search_split(work, split, request), call)
}

search_split <- function(work, split, request) {
  bounds <- split_bounds(work, split)
  rows <- bounds[[1]] - 1 + seq_len(rows_of_split(work, split))
  if (is_resampled(request)) {
    return(ask_core(work$values, NULL, some_resamples(request, rows)))
  }
  if (length(request$within$limits) > 1) {
    request$within$limits <- request$within$limits[rows]
  }
  request["blocks"] <- list(blocks_of_rows(request$blocks, rows))
  queries <- work$queries
  if (is.null(queries)) {
    subset <- request$subset
    request$subset <- if (is.null(subset)) as.integer(rows) else subset[rows]
  } else {
    skip <- request$query_skip
    skip <- skip[skip >= bounds[[1]] & skip <= bounds[[2]]]
    request$query_skip <- as.integer(skip - bounds[[1]] + 1)
    request$query_self <- request$query_self[rows]
    if (length(rows) < nrow(queries)) {
      queries <- queries[rows, , drop = FALSE]
    }
  }
  found <- ask_core(work$values, queries, request)
  if (identical(found$failure, "too_many_pairs")) {
    work$request$num_threads <- request$num_threads
    return(too_many_of_all(work))
  }
  found
}

# --- progress ----------------------------------------------------------------

# One bar over all splits; the core draws into it, too.
new_split_bar <- function(shown, num_rows) {
  bar <- new.env(parent = emptyenv())
  bar$drawn <- if (shown) cpp_new_bar("Nearest neighbours")
  bar$num_rows <- max(1, num_rows)
  bar$done <- 0
  bar
}

# The stretch of the bar that the next split is.
split_share <- function(bar, rows) {
  c(bar$done, bar$done + rows) / bar$num_rows
}

step_bar <- function(bar, rows) {
  bar$done <- bar$done + rows
  if (!is.null(bar$drawn)) {
    cpp_set_bar(bar$drawn, bar$done / bar$num_rows)
  }
}

end_bar <- function(bar) {
  if (!is.null(bar$drawn)) {
    cpp_end_bar(bar$drawn)
  }
}
