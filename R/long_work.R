# Long work by splits: ranges of the rows of the answer, each a search of its
# own among all points, one after another or on several workers, each kept in a
# folder where that is asked for. The answer is put together of them, and is
# that of one search to the last bit.
#
# What it costs. A search of all points meets each pair once, for both its
# points; splits meet it twice, once from each side. Preparing the points again
# for each split is little beside that, for splits of the size chosen here: it
# costs as much as the search for some thousand points on the CPU (more where they
# are ranked), and for some ten thousand on a GPU, where they must come over first.

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
    keep_split(kept, split, found, call)
    put_split(answer, work, split, found)
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
  c(answer$columns, list(stats = answer$stats))
}

# The search as splits of it are taken, and how large they are.
new_split_work <- function(search) {
  request <- search$request
  work <- list(
    values = search$points$values,
    queries = search$queries$values,
    request = request
  )
  work$num_rows <- if (!is.null(work$queries)) {
    nrow(work$queries)
  } else if (!is.null(request$subset)) {
    length(request$subset)
  } else {
    nrow(work$values)
  }
  work$size <- search$options$long$size %||% automatic_split(
    nrow(work$values), ncol(work$values), work$num_rows, request,
    search$options$long$workers$count %||% 1L
  )
  work
}

num_splits <- function(work) {
  as.integer(ceiling(work$num_rows / work$size))
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
  rows <- min(max(rows, least), max(1, 2^29 / (20 * request$k)))
  if (num_workers > 1) {
    rows <- min(rows, num_rows / num_workers)
  }
  as.integer(min(max(1, ceiling(rows)), num_rows))
}

# One split in this process, as cpp_knn_search() gives it.
run_split <- function(work, split, bar, call) {
  request <- work$request
  request$progress <- FALSE
  request$bar <- bar$drawn
  request$share <- split_share(bar, rows_of_split(work, split))
  found <- search_split(work, split, request)
  if (!is.null(found$failure)) {
    raise_failure(found, call)
  }
  found
}

search_split <- function(work, split, request) {
  bounds <- split_bounds(work, split)
  rows <- seq.int(bounds[[1]], bounds[[2]])
  if (is.null(work$queries)) {
    subset <- request$subset
    request$subset <- if (is.null(subset)) as.integer(rows) else subset[rows]
    return(cpp_knn_search(work$values, NULL, request))
  }
  skip <- request$query_skip
  skip <- skip[skip >= bounds[[1]] & skip <= bounds[[2]]]
  request$query_skip <- as.integer(skip - bounds[[1]] + 1)
  queries <- if (length(rows) == nrow(work$queries)) {
    work$queries
  } else {
    work$queries[rows, , drop = FALSE]
  }
  cpp_knn_search(work$values, queries, request)
}

# --- the answer --------------------------------------------------------------

# The whole answer, to be filled in place: its columns, and where in them each
# split begins.
new_answer <- function(work) {
  request <- work$request
  first <- (seq_len(num_splits(work)) - 1) * work$size
  length <- as.double(work$num_rows)
  if (request$as_edges) {
    asked <- request$subset %||% seq_len(work$num_rows)
    has_edges <- cumsum(!(asked %in% request$skip))
    before <- c(0, has_edges[first])
    length <- has_edges[[work$num_rows]] * as.double(request$k)
    first <- before * as.double(request$k)
  }
  new_column <- function(type) {
    if (request$as_edges) {
      vector(type, length)
    } else {
      matrix(vector(type, 1L), work$num_rows, request$k)
    }
  }
  columns <- if (request$as_edges) {
    list(from = new_column("integer"), to = new_column("integer"),
         rank = new_column("integer"), distance = new_column("double"))
  } else {
    list(index = new_column("integer"), distance = new_column("double"))
  }
  if (request$correlation) {
    columns$correlation <- new_column("double")
  }
  answer <- new.env(parent = emptyenv())
  answer$columns <- columns
  answer$first <- first
  answer$stats <- NULL
  answer
}

put_split <- function(answer, work, split, found) {
  for (column in names(answer$columns)) {
    cpp_put_part(
      answer$columns[[column]], found[[column]], answer$first[[split]]
    )
  }
  answer$stats <- add_stats(answer$stats, found$stats)
}

# Facts of several searches as those of one: pairs and seconds add up.
add_stats <- function(whole, part) {
  if (is.null(whole) || is.null(part)) {
    return(whole %||% part)
  }
  largest <- c("bytes_device", "num_devices", "filtered", "streamed")
  both <- Map(function(name, a, b) {
    if (is.logical(a)) a || b else if (name %in% largest) max(a, b) else a + b
  }, names(whole), whole, part[names(whole)])
  stats::setNames(both, names(whole))
}

# --- progress ----------------------------------------------------------------

# One bar over all splits; the core draws into it, too.
new_split_bar <- function(shown, num_rows) {
  bar <- new.env(parent = emptyenv())
  bar$drawn <- if (shown) cpp_new_bar("Nearest neighbours")
  bar$num_rows <- num_rows
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
