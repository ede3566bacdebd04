# Tasks of triples (see search-tasks.R): the division of a search, one task, its
# file, and the assembled answer. Searches above a similarity and counts are
# divided into ranges of the triples ("stages"). Searches for the best triples
# of each point are divided by points ("rows").

cut_triples <- function(work, options) {
  asked <- work$request$triples
  num_workers <- options$long$workers$count %||% 1L
  size <- if (asked$verb == "nearest") {
    options$long$size %||% triple_rows(work, is.null(options$long), num_workers)
  } else {
    asked$tasks %||% if (is.null(options$long)) {
      1
    } else {
      triple_stages(work, num_workers)
    }
  }
  list(
    kind = if (asked$verb == "nearest") "rows" else "stages",
    size = as.integer(max(1, size))
  )
}

# A task takes half a minute, or a share for each worker.
triple_stages <- function(work, num_workers) {
  asked <- work$request$triples
  num_points <- nrow(work$values)
  triples <- if (is.null(asked$contains)) {
    choose(num_points, 3)
  } else {
    length(asked$contains) * num_points^2 / 2
  }
  seconds <- triples * ncol(work$values) / asked$stage[[2]] /
    triple_rate(work$request)
  least <- if (num_workers > 1) 3 * num_workers else 1
  min(max(ceiling(seconds / 30), least), 10000)
}

triple_rows <- function(work, in_one, num_workers) {
  if (in_one) {
    return(work$num_rows)
  }
  of_row <- nrow(work$values)^2 / 2 * ncol(work$values)
  rows <- max(1, floor(30 * triple_rate(work$request) / of_row))
  max(1, ceiling(min(
    rows, work$num_rows / if (num_workers > 1) 3 * num_workers else 1
  )))
}

# Returns features of triples processed in a second.
triple_rate <- function(request) {
  if (request$backend == "cuda") {
    1e13 * max(1, length(request$devices))
  } else {
    each <- if (is_allele_table(request$metric)) 1e11 else 5e9
    each * max(1, request$num_threads, na.rm = TRUE)
  }
}

# Returns the parts that change the answer, under the names of the verbs'
# arguments.
triples_text <- function(asked) {
  list(
    of_triples = asked$verb, min_similarity = asked$least,
    triples_subset = asked$contains, stage = asked$stage, breaks = asked$breaks
  )
}

# --- one task ----------------------------------------------------------------

search_triples <- function(work, task, request) {
  asked <- request$triples
  if (asked$verb == "histogram") {
    return(cpp_triple_histogram(
      work$values, request, asked$breaks, asked$stage,
      c(task, num_tasks(work))
    ))
  }
  if (asked$verb == "nearest") {
    bounds <- task_bounds(work, task)
    of <- asked$contains %||% seq_len(nrow(work$values))
    return(cpp_nearest_triples(
      work$values, request, as.integer(request$k),
      of[seq.int(bounds[[1]], bounds[[2]])], asked$path
    ))
  }
  parts <- num_tasks(work)
  find_triple_part(
    work, request, task, parts, asked$most,
    stops = parts > 1 || isTRUE(asked$to_file)
  )
}

# Finds one part of all triples above a similarity. The process prepares the
# points once, on the first call.
find_triple_part <- function(work, request, part, parts, most, stops,
                             with_pairs = TRUE) {
  if (is.null(work$held$triples)) {
    opened <- open_triples(work, request)
    if (!is.null(opened$failure)) {
      return(opened)
    }
    work$held$triples <- opened$handle
  }
  cpp_find_triples(
    work$held$triples, part, parts, most, stops, with_pairs, request
  )
}

# Opens a prepared search of the core with its plan. `least` is the requested
# threshold or another.
open_triples <- function(work, request,
                         least = work$request$triples$least) {
  asked <- work$request$triples
  opened <- cpp_open_triples(
    work$values, request, least, asked$contains %||% integer(), asked$stage,
    asked$path
  )
  if (is.null(opened$failure)) {
    reg.finalizer(opened$handle, close_triples)
  }
  opened
}

# If a sample showed far too many triples, checks whether the suggested
# threshold fits. The triples above it are counted, unless that takes too long.
# Then `estimated_fit` says that it is unknown.
check_fit <- function(work, found) {
  is_to_check <- identical(found$failure, "too_many_triples") &&
    isTRUE(found$estimated) && isTRUE(is.finite(found$fits))
  if (!is_to_check) {
    return(found)
  }
  end_work(work)
  found$estimated_fit <- TRUE
  request <- work$request
  opened <- open_triples(work, request, round_up(found$fits))
  if (!is.null(opened$failure)) {
    return(found)
  }
  on.exit(close_triples(opened$handle))
  if (opened$plan$comparisons / triple_rate(request) > 60) {
    return(found)
  }
  counted <- cpp_find_triples(
    opened$handle, 1, 1, found$most, FALSE, FALSE, request
  )
  if (is.null(counted$failure)) {
    found$estimated_fit <- FALSE
  } else if (identical(counted$failure, "too_many_triples") &&
               !isTRUE(counted$estimated)) {
    found$fits <- counted$fits
    found$estimated_fit <- FALSE
  }
  found
}

# Releases the prepared points, also on GPUs, when a process has finished,
# without waiting for garbage collection.
end_work <- function(work) {
  if (!is.null(work$held$triples)) {
    close_triples(work$held$triples)
    work$held$triples <- NULL
  }
}

close_triples <- function(handle) {
  if (is_loaded$now) {
    cpp_close_triples(handle)
  }
  invisible()
}

# --- the file of a task ------------------------------------------------------

# Facts of a task have the names and types of the core.
triple_facts <- list(
  by_pairs = FALSE, triples = 0, candidates = 0, reranked = 0, comparisons = 0,
  seconds = 0, sampled = 0, sample_pairs = 0
)

# Returns the columns of the answer with their types.
triple_types <- function(request) {
  switch(
    request$triples$verb,
    threshold = lapply(
      rlang::set_names(columns_of_triples(request$metric)), function(column) {
        if (column %in% c("from", "to", "third", "alleles")) {
          integer()
        } else {
          double()
        }
      }
    ),
    nearest = c(
      list(second = integer(), third = integer(), similarity = double()),
      if (is_allele_table(request$metric)) list(alleles = integer())
    ),
    histogram = list(counts = double())
  )
}

triples_form <- function(work, task) {
  request <- work$request
  types <- triple_types(request)
  size <- switch(
    request$triples$verb,
    threshold = NA_real_,
    nearest = rows_of_task(work, task) * request$k,
    histogram = length(request$triples$breaks) + 1
  )
  list(
    types = c(types, list(checksum = raw())),
    lengths = c(rep(size, length(types)), 16)
  )
}

triples_in_range <- function(work, columns) {
  request <- work$request
  points <- as.integer(nrow(work$values))
  checksum <- rawToChar(columns$checksum[columns$checksum != 0])
  values <- columns[names(triple_types(request))]
  # Points without a triple have NA.
  some_lack <- request$triples$verb == "nearest"
  grepl("^[0-9a-f]{16}$", checksum) && length(unique(lengths(values))) == 1 &&
    all(vapply(names(values), function(name) {
      most <- if (name == "alleles") 8L else points
      !is.integer(values[[name]]) ||
        cpp_all_between(values[[name]], 1L, most, some_lack)
    }, NA))
}

# --- the answer --------------------------------------------------------------

begin_triples <- function(answer, work) {
  answer$count <- 0
  answer$parts <- vector("list", num_tasks(work))
}

put_triples <- function(answer, work, task, found, call) {
  asked <- work$request$triples
  if (asked$verb == "histogram") {
    answer$counts <- found$counts + (answer$counts %||% 0)
    return(invisible())
  }
  answer$count <- answer$count + length(found$from)
  if (isTRUE(asked$to_file)) {
    return(invisible())
  }
  if (answer$count > asked$most) {
    raise_failure(
      list(
        failure = "too_many_triples", triples = NaN, estimated = TRUE,
        most = asked$most, fits = NaN
      ),
      call
    )
  }
  answer$parts[[task]] <- found[columns_of_triples(work$request$metric)]
}

# Returns TRUE if this part would make too many.
is_too_many <- function(found, answer, most) {
  identical(found$failure, "too_many_triples") ||
    !is.null(found$from) && answer$count + length(found$from) > most
}

# Parts are in order of the triples' owners. With `subset`, that is not yet the
# order of the answer.
join_stages <- function(answer, work) {
  asked <- work$request$triples
  if (asked$verb == "histogram") {
    return(list(counts = answer$counts))
  }
  if (isTRUE(asked$to_file)) {
    return(list(count = answer$count))
  }
  columns <- join_parts(answer)
  if (!is.null(asked$contains)) {
    in_order <- order(
      columns$from, columns$to, columns$third, method = "radix"
    )
    columns <- lapply(columns, `[`, in_order)
  }
  columns
}
