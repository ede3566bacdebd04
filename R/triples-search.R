# Code that the verbs of triples share: options, data, the search with its
# messages, and the answer.

triple_metrics <- c("proportional", "sorensen", "ccc", "duo")

triple_paths <- c("auto", "pairs", "all")

check_triple_metric <- function(metric, call = caller_env()) {
  synonyms <- metric_synonyms()
  check_choice(
    metric, triple_metrics, "metric",
    synonyms = synonyms[synonyms %in% triple_metrics], call = call
  )
}

# Triples of alleles have one path.
check_triple_path <- function(path, metric, call = caller_env()) {
  path <- check_choice(path, triple_paths, "path", call = call)
  if (!is_allele_table(metric)) {
    return(path)
  }
  if (path == "pairs") {
    abort_argument(
      c(
        "{.code path = \"pairs\"} can't be used with metric {.val {metric}}.",
        i = "It always skips points that are too dissimilar for any triple."
      ),
      call
    )
  }
  "all"
}

# Returns the checked options of a verb of triples. Data are in memory.
triple_options <- function(verb, ..., .call = caller_env()) {
  options <- verb_options(verb, ..., .call = .call)
  options$in_memory <- TRUE
  options
}

# Returns list(stage, tasks). `stage` is c(i, of), the one stage to do. `tasks`
# is the number of tasks to divide it into, or NULL.
check_stages <- function(stages, stage, call = caller_env()) {
  most <- 1e6
  if (is.null(stage)) {
    if (!is.null(stages)) {
      stages <- check_whole_number(stages, "stages", 1, most, call = call)
    }
    return(list(stage = c(1, 1), tasks = stages))
  }
  if (!is.null(stages)) {
    abort_argument(
      c(
        "Only one of {.arg stages} and {.arg stage} can be given.",
        i = "{.code stage = c(i, of)} says how many there are."
      ),
      call
    )
  }
  plain <- is.numeric(stage) && !is.object(stage) && length(stage) == 2
  good <- plain && all(is.finite(stage)) && all(stage == trunc(stage)) &&
    stage[[1]] >= 1 && stage[[1]] <= stage[[2]] && stage[[2]] <= most
  if (!good) {
    given <- if (plain) {
      paste0("c(", stage[[1]], ", ", stage[[2]], ")")
    } else {
      describe_value(stage)
    }
    abort_argument(
      "{.arg stage} must be two whole numbers, c(i, of), i from 1 to `of`, not
       {given}.",
      call
    )
  }
  list(stage = as.double(stage), tasks = NULL)
}

# Older GPUs can't count the common bits of rows.
allele_triples_on_cpu <- function(search, devices = cuda_devices(),
                                  call = caller_env()) {
  request <- search$request
  if (request$backend != "cuda") {
    return(search)
  }
  used <- length(request$devices) == 0 | devices$device %in% request$devices
  if (all(numeric_version(devices$compute_capability[used]) >= "8.0")) {
    return(search)
  }
  on_cpu_alone(
    search,
    "Triples of alleles need GPUs of compute capability 8.0 or more.",
    "fsknn_triples_of_alleles", call
  )
}

# Reads and checks the data. `contains` are the rows of which a triple must have
# one.
new_triple_search <- function(x, options, subset = NULL, named = FALSE,
                              call = caller_env()) {
  search <- new_search(x, options, named = named, call = call)
  if (options$metric$table) {
    search <- allele_triples_on_cpu(search, call = call)
  }
  points <- search$points
  if (!is.matrix(points$values)) {
    abort_argument(
      "{.arg x} must be a matrix: triples are not searched for among
       metafeatures.",
      call
    )
  }
  num_points <- nrow(points$values)
  check_num_points(num_points, 3L, "x", points$transposed, call = call)
  if (num_points - length(search$skip) < 3) {
    isolated <- format_count(length(search$skip))
    of <- format_count(num_points)
    abort_argument(
      c(
        "Too few points are left for a triple.",
        x = "{isolated} of the {of} points of {.arg x} are isolated."
      ),
      call
    )
  }
  search$contains <- unique(check_subset(subset, points, call = call))
  if (!is.null(subset) && length(search$contains) == 0) {
    abort_argument("{.arg subset} must have at least one point.", call)
  }
  search
}

# Adds the request to a search. `verb` is "threshold", "nearest" or "histogram",
# and `stages` is from check_stages(). These do not change the answer:
#   tasks     number of tasks; NULL: as many as are useful
#   path      see threshold_triples()
#   most      maximum number of triples in memory
#   to_file   triples are written to a file as they are found
ask_triples <- function(search, verb, stages = NULL, ...) {
  search$request$triples <- c(
    list(
      verb = verb, contains = search$contains,
      stage = stages$stage %||% c(1, 1), tasks = stages$tasks
    ),
    list(...)
  )
  search
}

asks_triples <- function(request) {
  !is.null(request$triples)
}

# Runs the search with messages if requested. `take` is called with the parts of
# triples that are written to a file.
run_triples <- function(search, take = NULL, call = caller_env()) {
  if (!search$options$verbose) {
    return(naming_largest(search, find_triples(search, take, call), call))
  }
  asked <- search$request$triples
  values <- search$points$values
  num_points <- nrow(values) - length(search$skip)
  lines <- c(
    "Backend" = search$request$backend,
    "GPUs" = describe_gpus(search$request),
    "CPU threads" = format_count(search$request$num_threads),
    "Metric" = search$options$metric$name,
    "Triples" = describe_asked(search$request),
    "Points (n)" = format_count(nrow(values)),
    "Features (d)" = format_count(ncol(values)),
    "Triples in all" = format_count(choose(num_points, 3)),
    "With one of" = if (!is.null(search$contains)) {
      tally(length(search$contains), "point")
    }
  )
  started <- Sys.time()
  tell_lines(c(
    paste0(format(paste0(names(lines), ":")), " ", lines),
    paste("Start:", format(started))
  ))
  found <- naming_largest(search, find_triples(search, take, call), call)
  ended <- Sys.time()
  seconds <- as.double(ended - started, units = "secs")
  tell_lines(c(
    paste("End:", format(ended)),
    paste("Seconds:", format(round(seconds, 3), nsmall = 3)),
    if (asked$verb != "histogram") {
      paste("Path:", describe_path(
        found$stats$by_pairs, found$stats$sampled, found$stats$sample_pairs
      ))
    },
    paste("Checksum:", found$checksum)
  ))
  found
}

# Describes the path, and the sample of points by which it was chosen.
describe_path <- function(by_pairs, sampled, pairs) {
  paste0(
    if (by_pairs) "pairs" else "all",
    if (sampled > 0) {
      paste0(
        " (of the pairs of ", format_count(sampled), " points ",
        format(100 * pairs, digits = 3), "% can be in such a triple)"
      )
    }
  )
}

# Returns NULL on the CPU.
describe_gpus <- function(request) {
  if (request$backend != "cuda") {
    return(NULL)
  }
  of <- request$devices
  if (length(of) == 0) "all" else paste(of, collapse = ", ")
}

# A triple needs memory for its columns, twice while parts are joined, and for
# names. With a file, only the current part counts: it is cut to fit, but in a
# folder it is a task.
most_triples <- function(search, to_file = FALSE) {
  bytes <- if (is.null(search$points$names)) 120 else 144
  room <- search$options$max_memory %||% free_memory()
  is_cut <- to_file && is.null(search$options$long)
  floor(min(room / bytes, if (is_cut) 2^22 else max_edges))
}

# Does the tasks one after the other, with the division that a folder has.
find_triples <- function(search, take = NULL, call = caller_env()) {
  if (!is.null(search$options$long)) {
    return(find_in_folder(search, take, call))
  }
  work <- new_work(search)
  on.exit(end_work(work))
  if (!is.null(take)) {
    return(find_triples_for_file(work, take, call))
  }
  bar <- new_split_bar(work$request$progress, num_tasks(work), "Triples")
  on.exit(end_bar(bar), add = TRUE)
  answer <- new_answer(work)
  most <- work$request$triples$most
  for (task in seq_len(num_tasks(work))) {
    request <- request_with_bar(work$request, bar, 1)
    found <- search_task(work, task, request)
    # Only the search as a whole knows the total number, and the threshold that
    # would fit.
    if (num_tasks(work) > 1 && is_too_many(found, answer, most)) {
      work$plan$size <- 1L
      found <- search_task(work, 1L, work$request)
    }
    found <- check_fit(work, found)
    put_task(answer, work, task, in_core(found, call), call)
    step_bar(bar, 1)
  }
  whole_answer(answer, work, call)
}

request_with_bar <- function(request, bar, count) {
  request$progress <- FALSE
  request$bar <- bar$drawn
  request$share <- split_share(bar, count)
  request
}

# Returns the value of a verb.
finish_triples <- function(found, search) {
  switch(
    search$request$triples$verb,
    threshold = new_triples(found, search),
    nearest = new_nearest_triples(found, search),
    histogram = new_triple_histogram(found, search)
  )
}

describe_asked <- function(request) {
  asked <- request$triples
  switch(
    asked$verb,
    threshold = paste("of at least", asked$least),
    nearest = paste(request$k, "of each point"),
    histogram = "counted by similarity"
  )
}

pair_columns <- c("pair_from_to", "pair_from_third", "pair_to_third")

triple_columns <- c(
  "from", "to", "third", "similarity", pair_columns, "at_least", "at_most"
)

allele_triple_columns <- c(triple_columns[1:4], "alleles", pair_columns)

columns_of_triples <- function(metric) {
  if (is_allele_table(metric %||% "")) allele_triple_columns else triple_columns
}

# Returns the entries of tables of three loci from their numbers: "110" is the
# counted alleles of the first two points with the other allele of the third.
triple_alleles <- function(entry) {
  names <- c("000", "001", "010", "011", "100", "101", "110", "111")
  factor(names[entry], names)
}

with_triple_alleles <- function(found) {
  if (!is.null(found$alleles)) found$alleles <- triple_alleles(found$alleles)
  found
}

# Returns the stage if there are several.
stage_attribute <- function(asked) {
  if (asked$stage[[2]] > 1) as.integer(asked$stage)
}

new_triples <- function(found, search) {
  points <- search$points
  asked <- search$request$triples
  metric <- search$options$metric$name
  columns <- with_triple_alleles(found[columns_of_triples(metric)])
  if (!is.null(points$names)) {
    for (end in c("from", "to", "third")) {
      columns[[end]] <- cpp_names_at(points$names, columns[[end]])
    }
  }
  triples <- structure(
    columns,
    row.names = .set_row_names(length(columns$similarity)),
    class = c("fsknn_triples", "data.frame"),
    vertices = data.frame(
      name = points$names %||% seq_len(nrow(points$values))
    ),
    metric = metric, min_similarity = asked$least,
    num_features = as.integer(ncol(points$values)),
    subset = asked$contains,
    stage = stage_attribute(asked),
    checksum = found$checksum
  )
  with_searched(triples, search)
}

# `estimated` says that the number is from a sample. `fits` is the lowest
# threshold that would fit, or NA.
raise_too_many_triples <- function(result, call) {
  estimated <- isTRUE(result$estimated)
  most <- format_count(result$most)
  found <- if (!isTRUE(result$triples > result$most)) {
    "More than {most}"
  } else {
    triples <- format_count(signif(result$triples, if (estimated) 2 else 15))
    if (estimated) "About {triples}" else "{triples}"
  }
  fits <- round_up(result$fits)
  cli_abort(
    c(
      "Too many triples of points are as similar as {.arg min_similarity}.",
      x = paste0(
        found, "; there is room for {most}",
        if (result$most >= max_edges) " rows in a data frame", "."
      ),
      i = if (is.nan(fits)) {
        "{.fn triple_histogram} says how many a threshold leaves; a {.arg file}
         takes any number, a task of enough {.arg stages} at a time."
      } else if (is.finite(fits) && isTRUE(result$estimated_fit)) {
        "By a sample {.code min_similarity = {fits}} may fit:
         {.fn triple_histogram} with a {.arg stage} says more."
      } else if (is.finite(fits)) {
        "{.code min_similarity = {fits}} would fit."
      } else {
        "No threshold leaves few enough. Take a {.arg file}, a {.arg stage} at a
         time, or a {.arg subset}."
      }
    ),
    class = c("fsknn_size_error", "fsknn_error"), call = call,
    triples = result$triples, most = result$most, fits = result$fits
  )
}

# Rounds to three digits of the similarity, or of its difference from 1. The
# result is never below it.
round_up <- function(similarity) {
  if (!is.finite(similarity) || similarity <= 0 || similarity >= 1) {
    return(similarity)
  }
  unit <- 10^(floor(log10(min(similarity, 1 - similarity))) - 2)
  unit <- max(unit, 1e-9)
  min(1, signif(ceiling(similarity / unit) * unit, 12))
}
