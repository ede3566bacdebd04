# A task's part of the answer as the columns of a sealed file (see
# core/files/sealed_file.hpp), and back. Lists, one vector a row, are counts and all
# that is in them; facts are a column of doubles.

task_file <- function(job, task) {
  job_file(job, sprintf("task-%06d", task))
}

# Gives whether it is the first one, which alone counts.
write_task <- function(job, task, found, call) {
  work <- job$work
  columns <- columns_of_task(work, found, task_form(work, task))
  write_once(
    job, sprintf("task-%06d", task), "task", task, job$print, columns, call
  )
}

# list(state, found): as cpp_read_sealed() and the search give them.
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

# A file that is not what it should be makes room for another one. Under a name
# of its own it is looked at again: somebody else may have been faster, and this
# be the new one.
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

# Facts of a task, by the names and of the types that the core has for them.
task_facts <- list(
  pairs_filtered = 0, pairs_apart = 0, pairs_exact = 0, rows_redone = 0,
  rows_widened = 0, rows_short = 0, seconds_prepare = 0, seconds_search = 0,
  seconds_emit = 0, seconds_device = 0, bytes_device = 0, num_devices = 0L,
  filtered = FALSE, filter_form = 0L, filter_bits = 0L, streamed = FALSE
)

# What a task's file must hold: columns by name (their types), and how many
# values each has; NA where only the search could tell.
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

# In each column, of the k nearest of a range of rows.
entries_of_task <- function(work, task) {
  ends <- first_entries(work)[task + 0:1]
  entries <- ends[[2]] - ends[[1]]
  if (work$request$as_edges) entries else entries * row_width(work$request)
}

# Where in the columns of the answer each range begins (rows, or edges), and the
# last one ends.
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

# What the search would have given; NULL for numbers that no search gives, which
# nothing is to be asked of.
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

# NULL where they do not go together.
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
  # Rows may be short of neighbours; edges are there, or not.
  cpp_all_between(columns$index %||% integer(), 1L, points, !by_pairs) &&
    (!by_pairs || cpp_all_between(columns$count, 0L, points, FALSE)) &&
    cpp_all_between(columns$from %||% integer(), 1L, points, FALSE) &&
    cpp_all_between(columns$to %||% integer(), 1L, points, FALSE) &&
    cpp_all_between(
      columns$rank %||% integer(), 1L, as.integer(work$request$k %||% 1L), FALSE
    )
}
