# What was searched: the record of a search in its result, for prints and
# knn_verify().

# Results must be identical() on every backend, but backend and seconds differ.
# They are therefore in the attribute "srcref" of a function that does nothing:
# identical() and all.equal() ignore it. It is saved with the result. A result
# without a record has such a function, too.
new_searched <- function(facts = NULL) {
  attr(does_nothing, "srcref") <- facts
  does_nothing
}

does_nothing <- as.function(alist(NULL), envir = baseenv())

# Returns the facts that a result holds, or NULL.
searched_of <- function(x) {
  attr(attr(x, "searched", exact = TRUE), "srcref", exact = TRUE)
}

# Adds the record of a search to its result.
with_searched <- function(result, search) {
  facts <- facts_of_search(search)
  facts$num_rows <- if (is.data.frame(result)) nrow(result)
  attr(result, "searched") <- new_searched(facts)
  result
}

facts_of_search <- function(search) {
  request <- search$request
  values <- search$points$values
  c(
    facts_of_request(request),
    list(
      num_points = nrow(values), num_features = ncol(values),
      num_queries = if (is.null(request$query_self)) {
        NROW(search$queries$values)
      } else {
        0L
      },
      outcomes = isTRUE(search$queries$are_outcomes),
      nearest = search$nearest, some_names = some_names(search),
      input = search$options$input, samples = search$points$samples,
      each_k = search$each_k,
      request = request[verified_by[verified_by %in% names(request)]]
    ),
    facts_of_run(
      request$backend, request$devices, request$num_threads, search$started,
      in_tasks = !is.null(search$options$long), before = search$before
    )
  )
}

# Returns up to 100 names of points with their numbers, by which knn_verify()
# recognises points in another order. The answer for points has all names.
some_names <- function(search) {
  num_points <- nrow(search$points$values)
  if (is.null(search$queries) || !is.null(search$request$query_self) ||
        is.null(known_points(search$points))) {
    return(NULL)
  }
  at <- unique(round(seq(1, num_points, length.out = min(num_points, 100))))
  list(at = at, names = point_names(search$points, at))
}

# What knn_verify() needs of a request.
verified_by <- c(
  "k", "na", "min_pairs", "skip", "query_skip", "query_self", "subset",
  "weights", "adjust", "blocks", "within",
  "allele_table"
)

# The answer of a folder has no `started`: others may have done the work.
# `before` is the number of searches then. If there was one since, knn_stats()
# has the GPUs that took part, if the user named none.
facts_of_run <- function(backend, devices, num_threads, started,
                         in_tasks = FALSE, before = NULL) {
  if (is.null(started)) {
    return(NULL)
  }
  if (length(devices) == 0 && backend == "cuda" &&
        !identical(session$num_searches, before)) {
    devices <- knn_stats()$devices
  }
  list(
    seconds = seconds_since(started),
    devices = devices, num_threads = num_threads, in_tasks = in_tasks
  )
}

# Returns the facts of a verb that makes several searches. `values` are its
# points.
facts_of_verb <- function(options, values, started, ...) {
  c(
    list(
      backend = options$backend$name, metric = options$metric$name,
      sign = options$sign, weighted = !is.null(options$weights),
      num_covariates = 0L, num_points = nrow(values),
      num_features = ncol(values), ...
    ),
    facts_of_run(
      options$backend$name, options$backend$devices, options$num_threads,
      started, in_tasks = !is.null(options$long)
    )
  )
}

# Returns the lines of a print, or NULL. `points` says whether other lines leave
# out the points and the metric.
format_searched <- function(x, points = TRUE) {
  facts <- searched_of(x)
  if (is.null(facts)) {
    return(NULL)
  }
  nearest <- facts$nearest
  c(
    if (points) {
      paste0(
        if (is.null(nearest)) {
          "Searched: "
        } else {
          paste0("Nearest to ", nearest$to, " among ")
        },
        tally(facts$num_points, "point"), " of ",
        nearest$features %||% tally(facts$num_features, "feature"),
        if (is.null(nearest) && isTRUE(facts$num_queries > 0)) {
          paste0(
            " for ", format_count(facts$num_queries),
            if (facts$num_queries == 1) " query" else " queries"
          )
        },
        ", ", describe_metric(
          facts$metric, facts$sign, facts$weighted, facts$num_covariates
        ),
        if (isTRUE(nearest$relabelled$num > 0)) {
          paste0(", ", describe_relabelling(nearest$relabelled))
        }
      )
    },
    describe_smallest_p(nearest$relabelled),
    nearest$notes,
    if (!is.null(facts$seconds) && !isFALSE(getOption("fsknn.show_time"))) {
      paste0("Time: ", describe_run(facts))
    }
  )
}

# Returns "0.31 s, backend cuda (GPU 1)".
describe_run <- function(facts) {
  seconds <- facts$seconds
  where <- if (facts$in_tasks) {
    "tasks"
  } else if (facts$backend == "cpu") {
    tally(facts$num_threads, "thread")
  } else if (length(facts$devices) == 0) {
    "all GPUs"
  } else {
    several <- length(facts$devices) > 1
    paste0(if (several) "GPUs " else "GPU ", toString(facts$devices))
  }
  time <- if (seconds < 1) {
    paste(format(signif(seconds, 2), scientific = FALSE), "s")
  } else {
    format_seconds(seconds)
  }
  paste0(time, ", backend ", facts$backend, " (", where, ")")
}

# Prints the lines of format_searched().
cat_searched <- function(x, points = TRUE) {
  writeLines(as.character(format_searched(x, points)))
}
