# A split's part of the answer as the columns of a sealed file (see
# core/sealed_file.hpp), and back. Lists, one vector a row, are counts and all
# that is in them; facts are a column of doubles.

# Facts of a split, by the names and of the types that the core has for them.
split_facts <- list(
  pairs_filtered = 0, pairs_exact = 0, rows_redone = 0, rows_widened = 0,
  rows_short = 0, seconds_prepare = 0, seconds_search = 0, seconds_emit = 0,
  seconds_device = 0, bytes_device = 0, num_devices = 0L, filtered = FALSE,
  streamed = FALSE
)

# What a split's file must hold: columns by name (their types), and how many
# values each has; NA where only the search could tell.
split_form <- function(work, answer, split) {
  request <- work$request
  if (is_resampled(request)) {
    form <- counts_form(work)
    types <- form$types
    lengths <- form$lengths
  } else if (!is_within(request)) {
    types <- lapply(answer$columns, function(column) vector(typeof(column)))
    lengths <- rep(entries_of_split(answer, work, split), length(types))
  } else {
    integers <- if (request$as_edges) c("from", "to") else c("count", "index")
    doubles <- c("distance", if (request$correlation) "correlation")
    types <- c(
      stats::setNames(rep(list(integer()), 2), integers),
      stats::setNames(rep(list(double()), length(doubles)), doubles)
    )
    lengths <- rep(NA_real_, length(types))
    lengths[names(types) == "count"] <- rows_of_split(work, split)
  }
  list(
    types = c(types, list(facts = double())),
    lengths = c(lengths, length(split_facts))
  )
}

columns_of_split <- function(work, found, form) {
  columns <- found
  columns$facts <- as.double(unlist(found$stats[names(split_facts)]))
  if (is_within(work$request) && !work$request$as_edges) {
    columns$count <- lengths(found$index)
    columns$index <- as.integer(unlist(found$index))
    columns$distance <- as.double(unlist(found$distance))
  }
  columns[names(form$types)]
}

# What the search would have given; NULL for numbers that no search gives, which
# nothing is to be asked of.
split_of_columns <- function(work, columns) {
  if (!are_in_range(work, columns)) {
    return(NULL)
  }
  found <- columns[setdiff(names(columns), "facts")]
  if (!is_resampled(work$request)) {
    found <- rows_of_columns(found)
  }
  if (is.null(found)) {
    return(NULL)
  }
  found$stats <- Map(
    function(fact, value) as.vector(value, typeof(fact)),
    split_facts, columns$facts
  )
  found
}

# NULL where they do not go together.
rows_of_columns <- function(columns) {
  if (!is.null(columns$count)) {
    cpp_lists_of(columns$index, columns$distance, columns$count)
  } else if (length(unique(lengths(columns))) == 1) {
    columns
  }
}

are_in_range <- function(work, columns) {
  if (is_resampled(work$request)) {
    return(counts_in_range(work, columns))
  }
  points <- nrow(work$values)
  # Rows may be short of neighbours; edges are there, or not.
  cpp_all_between(columns$index %||% integer(), 1L, points, TRUE) &&
    cpp_all_between(columns$from %||% integer(), 1L, points, FALSE) &&
    cpp_all_between(columns$to %||% integer(), 1L, points, FALSE) &&
    cpp_all_between(
      columns$rank %||% integer(), 1L, as.integer(work$request$k %||% 1L), FALSE
    )
}
