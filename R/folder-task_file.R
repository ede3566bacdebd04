# Converts a task's part of the answer to the columns of a sealed file (see
# core/files/sealed_file.hpp), and back. Lists with one vector for each row are
# stored as counts and concatenated values. Facts are a column of doubles.

task_file <- function(job, task) {
  job_file(job, sprintf("task-%06d", task))
}

# Returns TRUE if this result is the first one, since only that counts.
write_task <- function(job, task, found, call) {
  work <- job$work
  columns <- columns_of_task(work, found, task_form(work, task))
  write_once(
    job, sprintf("task-%06d", task), "task", task, job$print, columns, call
  )
}

# Returns list(state, found), as from cpp_read_sealed() and the search.
read_task <- function(job, task, call) {
  work <- job$work
  form <- task_form(work, task)
  file <- in_files(
    cpp_read_sealed(
      task_file(job, task), "task", task, job$print, form$types, form$lengths
    ),
    job, call
  )
  if (file$state == "whole") {
    file$found <- task_of_columns(work, file$columns)
    if (is.null(file$found)) {
      file$state <- "damaged"
    }
  }
  file
}

take_task_away <- function(job, task, call) {
  form <- task_form(job$work, task)
  take_file_away(job, task, call, function(path) {
    file <- cpp_read_sealed(
      path, "task", task, job$print, form$types, form$lengths
    )
    identical(file$state, "whole") &&
      !is.null(task_of_columns(job$work, file$columns))
  })
}

# Removes a bad file to allow another trial. It is first renamed and then
# checked again, because another process may just have replaced it with a good
# one.
take_file_away <- function(job, task, call, is_good) {
  path <- task_file(job, task)
  aside <- job_file(job, paste0("aside-", random_word()))
  if (!suppressWarnings(file.rename(path, aside))) {
    if (file.exists(path)) {
      in_files(
        list(failure = "file", path = path, message = "it can't be renamed"),
        job, call
      )
    }
    return(invisible())
  }
  if (is_good(aside)) {
    cpp_link_first(aside, path)
  }
  unlink(aside, expand = FALSE)
}

# Facts of a task have the names and types of the core.
task_facts <- list(
  pairs_filtered = 0, pairs_pruned = 0, pairs_exact = 0, rows_recomputed = 0,
  rows_widened = 0, rows_short = 0, seconds_prepare = 0, seconds_search = 0,
  seconds_emit = 0, seconds_device = 0, bytes_device = 0, num_devices = 0L,
  filtered = FALSE, filter_form = 0L, filter_bits = 0L, streamed = FALSE
)

# Returns the form of a task's file: the types of its columns by name, and their
# lengths. NA is a length that is known only after the search.
task_form <- function(work, task) {
  request <- work$request
  in_lists <- work$plan$kind == "pairs" ||
    is_within(request) && !request$as_edges
  if (asks_triples(request)) {
    form <- triples_form(work, task)
    types <- form$types
    lengths <- form$lengths
  } else if (is_resampled(request)) {
    form <- counts_form(work)
    types <- form$types
    lengths <- form$lengths
  } else {
    types <- typed_columns(
      if (in_lists) {
        c("count", "index")
      } else if (!request$as_edges) {
        "index"
      } else {
        c("from", "to", if (!is_within(request)) "rank")
      },
      request$correlation || in_lists && is_within(request) &&
        is_dot_product(request$metric) && work$plan$kind == "pairs"
    )
    lengths <- if (in_lists || is_within(request)) {
      ifelse(names(types) == "count", rows_of_task(work, task), NA_real_)
    } else {
      rep(entries_of_task(work, task), length(types))
    }
  }
  list(
    types = c(types, list(facts = double())),
    lengths = c(lengths, length(facts_of(request)))
  )
}

facts_of <- function(request) {
  if (asks_triples(request)) triple_facts else task_facts
}

typed_columns <- function(integers, correlation) {
  doubles <- c("distance", if (correlation) "correlation")
  c(
    stats::setNames(rep(list(integer()), length(integers)), integers),
    stats::setNames(rep(list(double()), length(doubles)), doubles)
  )
}

# Returns the number of entries in each column, for the k nearest of a range of
# rows.
entries_of_task <- function(work, task) {
  ends <- first_entries(work)[task + 0:1]
  entries <- ends[[2]] - ends[[1]]
  if (work$request$as_edges) entries else entries * row_width(work$request)
}

# Returns the offset of each range in the columns of the answer (in rows or
# edges), and the end of the last.
first_entries <- function(work) {
  request <- work$request
  first <- c(
    (seq_len(num_tasks(work)) - 1) * as.double(work$plan$size), work$num_rows
  )
  if (request$as_edges) {
    asked <- request$subset %||% seq_len(work$num_rows)
    before <- c(0, cumsum(!(asked %in% request$skip)))
    first <- before[first + 1] * row_width(request)
  }
  first
}

columns_of_task <- function(work, found, form) {
  columns <- found
  facts <- facts_of(work$request)
  columns$facts <- as.double(unlist(found$stats[names(facts)]))
  if (!is.null(found$checksum)) {
    columns$checksum <- charToRaw(found$checksum)
  }
  if (is.list(found$index)) {
    columns$count <- lengths(found$index)
    columns$index <- as.integer(unlist(found$index))
    columns$distance <- as.double(unlist(found$distance))
  }
  columns[names(form$types)]
}

# Returns the part as the search returned it, or NULL if a value is impossible.
task_of_columns <- function(work, columns) {
  if (!are_in_range(work, columns)) {
    return(NULL)
  }
  found <- columns[setdiff(names(columns), "facts")]
  if (asks_triples(work$request)) {
    found$checksum <- rawToChar(found$checksum)
  } else if (!is_resampled(work$request)) {
    found <- rows_of_columns(found, work$plan$kind == "pairs")
  }
  if (is.null(found)) {
    return(NULL)
  }
  found$stats <- Map(
    function(fact, value) as.vector(value, typeof(fact)),
    facts_of(work$request), columns$facts
  )
  found
}

# Returns NULL if the columns do not match.
rows_of_columns <- function(columns, by_pairs) {
  if (by_pairs) {
    entries <- lengths(columns[names(columns) != "count"])
    if (all(entries == sum(columns$count))) {
      columns["correlation"] <- list(columns$correlation)
      columns
    }
  } else if (!is.null(columns$count)) {
    cpp_lists_of(columns$index, columns$distance, columns$count)
  } else if (length(unique(lengths(columns))) == 1) {
    columns
  }
}

are_in_range <- function(work, columns) {
  if (asks_triples(work$request)) {
    return(triples_in_range(work, columns))
  }
  if (is_resampled(work$request)) {
    return(counts_in_range(work, columns))
  }
  points <- as.integer(nrow(work$values))
  by_pairs <- work$plan$kind == "pairs"
  # Rows may have too few neighbours, but an edge always has both ends.
  cpp_all_between(columns$index %||% integer(), 1L, points, !by_pairs) &&
    (!by_pairs || cpp_all_between(columns$count, 0L, points, FALSE)) &&
    cpp_all_between(columns$from %||% integer(), 1L, points, FALSE) &&
    cpp_all_between(columns$to %||% integer(), 1L, points, FALSE) &&
    cpp_all_between(
      columns$rank %||% integer(), 1L, as.integer(work$request$k %||% 1L), FALSE
    )
}
