#' Points prepared once for many searches
#'
#' Reads, checks and prepares points, and keeps them: on the GPUs if they fit
#' there, otherwise in the memory of this computer. The functions that search
#' pairs of points take the index where they take `x`. A search then only
#' prepares the queries. Use an index for a few queries at a time, or for
#' several searches of the same points.
#'
#' @section Functions that take an index:
#' [knn_search()], [knn_graph()], [knn_query()], [nearest_to()],
#' [within_search()], [within_query()], [threshold_graph()], [mutual_pairs()],
#' [pair_histogram()], [pair_connectivity()] and [mst_knn()] take an index as
#' `x`. Their answers are the same to the last bit. [FsknnParam()] keeps an
#' index for BiocNeighbors.
#'
#' Other functions compare parts of the points, or several versions of them.
#' With an index they stop and say which data to use instead.
#'
#' @section Options:
#' Metric, sign and [point options][point_options()] belong to the index. They
#' need not be repeated. Another value than that of the index is an error.
#'
#' [Run options][run_options()] of `knn_index()` are defaults for the searches,
#' which may have others. A search on another backend, or on other GPUs, first
#' prepares the points there.
#'
#' @section What is kept:
#' The index keeps the checked values, and the prepared points. Each search
#' prepares the points anew, from the checked values, if
#' * values are missing under `na = "pairwise"`, because each pair is compared
#'   over its own samples;
#' * the points are [metafeatures()], or do not fit in memory and are in a
#'   temporary file;
#' * it has `block`, `BPPARAM` or `checkpoint`, or counts or sums over all pairs
#'   ([pair_histogram()], [pair_connectivity()]).
#'
#' `print()` says where the points are and how much memory they take. The
#' values are those at the time of the call: later changes of `x` have no
#' effect.
#'
#' @section Saved and shared indexes:
#' A file of `saveRDS()` has the checked values. The first search after
#' `readRDS()` prepares the points again, and so does a search in a forked
#' process (`parallel::mclapply()`). A forked process can use the CPU only. A
#' saved index of points in a temporary file is an error: make it again.
#'
#' After a GPU was lost, a search with `backend = "cuda"` is an error, as
#' without an index. With `backend = "cpu"`, or in a new R session, the points
#' are prepared again.
#'
#' @inheritParams knn_search
#' @param ... [Point options][point_options()] and [run
#'   options][run_options()], by name, or collected as `options = `. `BPPARAM`
#'   and `checkpoint` are options of each search.
#' @param index The value of `knn_index()`.
#'
#' @returns `knn_index()` returns an object of class `fsknn_index`, to which
#'   all copies refer. `knn_release()` frees its memory at once and returns it
#'   invisibly. The index can't be used afterwards. Without `knn_release()`,
#'   memory is freed when no variable refers to the index.
#' @section Errors:
#' Errors of the data are those of [knn_search()]. The use of an index where it
#' can't be used, or with other options than its own, is a
#' `fsknn_argument_error`.
#' @seealso [knn_query()] for the neighbours of other points.
#' @export
#' @examples
#' x <- matrix(rnorm(500 * 20), nrow = 500)
#' index <- knn_index(x, backend = "cpu")
#' index
#'
#' # a few queries at a time
#' for (i in 1:3) {
#'   print(knn_query(index, matrix(rnorm(20), nrow = 1), k = 4)$index)
#' }
#'
#' # other searches of the same points
#' knn_graph(index, k = 3)
#' threshold_graph(index, 0.8)
#' identical(knn_search(index, 5), knn_search(x, 5))
#'
#' knn_release(index)
knn_index <- function(x, metric = NULL, sign = "signed", ...) {
  check_supplied(x)
  given <- options_given("knn_index", ...)
  made_from <- substitute(x)
  index <- new_index(
    x, check_options(given, "knn_index"), given,
    if (is.name(made_from)) as.character(made_from), current_env()
  )
  prepare_index(index, current_env())
  index
}

#' @rdname knn_index
#' @export
knn_release <- function(index) {
  check_supplied(index)
  if (!is_index(index)) {
    given <- describe_type(index)
    abort_argument(
      "{.arg index} must be made by {.fn knn_index}, not {given}.",
      current_env()
    )
  }
  if (!is.null(index$held)) {
    give_back_held(index$held)
  }
  file <- index$search$points$values
  if (is_row_file(file) && is_of_this_session(index)) {
    close_row_file(file)
  }
  for (name in c("search", "held", "tables", "checked", "before")) {
    index[[name]] <- NULL
  }
  index$released <- TRUE
  invisible(index)
}

is_index <- function(x) {
  inherits(x, "fsknn_index")
}

# Verbs that take an index as `x`. Each makes one search by new_search().
takes_index <- c(
  "knn_search", "knn_graph", "knn_query", "nearest_to", "within_search",
  "within_query", "threshold_graph", "mutual_pairs", "pair_histogram",
  "pair_connectivity", "mst_knn"
)

# --- the index ---------------------------------------------------------------

# An index is an environment, so that its points may be prepared again for all
# its copies:
#   search     as new_search() has it before there are queries. `checked` is the
#              value of check_values()
#   given      the options as they were given, with metric and sign
#   made_from  the name of `x`, or NULL
#   size       points and features, with those of weight 0
#   tables     the tables of a container, for columns that are given by name
#   held       the handle of R/search-held_points.R, made when it is needed
#   checked    the last options of a search, see verb_options()
#   before     the last query, see query_as_before()
#   process, loaded  whose handle this is: see is_of_this_session()
new_index <- function(x, options, given, made_from = NULL,
                      call = caller_env()) {
  options$keep_file <- TRUE
  search <- read_search(x, NULL, options, TRUE, call)
  size <- dim(search$points$values)
  search <- bring_search(fit_samples(search, x, call), call)
  if (!is_row_file(search$points$values)) {
    search$points$blocks <- NULL
  }
  tell_if_counts(x, search$points, options$metric)
  index <- new.env(parent = emptyenv())
  index$search <- search
  index$given <- given
  index$made_from <- made_from
  index$size <- size
  index$tables <- list(samples = sample_table(x), rows = row_table(x))
  index$of_container <- is_container(x)
  index$of_experiment <- inherits(x, "SummarizedExperiment")
  mark_session(index)
  class(index) <- "fsknn_index"
  index
}

# A handle, or a temporary file, belongs to one process and one loaded library.
# A copy from a file has another environment, even in the same session.
mark_session <- function(index) {
  index$process <- Sys.getpid()
  index$loaded <- is_loaded
}

is_of_this_session <- function(index) {
  identical(index$loaded, is_loaded)
}

# Returns whether the core can hold these points for searches. It holds neither
# rows that are made or read when they are compared, nor pairs over common
# samples.
is_holdable <- function(search) {
  is.matrix(search$points$values) && !identical(search$na, "pairwise")
}

# More queries than those that the CPU compares without a filter.
many_queries <- 17L

# Makes the core prepare the points, by a search whose answer is not needed.
prepare_index <- function(index, call) {
  search <- index$search
  values <- search$points$values
  rows <- setdiff(seq_len(nrow(values)), search$skip)
  if (!is_holdable(search) || length(rows) == 0) {
    return(invisible())
  }
  search$options$progress <- FALSE
  at <- rows[seq.int(1, length(rows), length.out = many_queries)]
  search$request <- request_of_index(search, min(20L, length(rows)))
  search <- hold_index(search, index, call)
  found <- ask_core(
    search$held, values[at, , drop = FALSE], search$request
  )
  # The search that needs such a distance reports it.
  if (!identical(found$failure, "range")) {
    in_core(found, call)
  }
}

request_of_index <- function(search, k = NULL) {
  new_request(
    k, search$options, search$skip, largest = search$largest, na = search$na
  )
}

# Adds the handle of the points to a search, if the core can use it there.
hold_index <- function(search, index, call) {
  request <- search$request
  if (!is_holdable(index$search) || !is.null(request$blocks) ||
        identical(request$na, "pairwise")) {
    return(search)
  }
  search$held <- held_of_index(index, call)
  search$index <- index
  search
}

# Returns the handle of the points, prepared again if that is necessary.
held_of_index <- function(index, call) {
  if (is.null(index$held) || !is_of_this_session(index) ||
        index$process != Sys.getpid()) {
    # Queries may lack values where no point does.
    index$held <- hold_points(
      index$search$points$values, request_of_index(index$search), call
    )
    mark_session(index)
  }
  index$held
}

# After a failure, such as that of a GPU, everything is checked again.
note_failure <- function(index, found) {
  if (!is.null(found$failure)) {
    index$checked <- NULL
    index$before <- NULL
  }
}

# --- searches by an index ----------------------------------------------------

# Returns the options of a search: those of the index, and run options of the
# call.
options_with_index <- function(index, given, verb, call) {
  if (!verb %in% takes_index) {
    abort_index(index, "x", call)
  }
  check_not_released(index, call)
  of_points <- names(given) %in% options_of_points()
  check_same_options(index, given[of_points], call)
  run <- given[!of_points]
  own <- index$given[!names(index$given) %in% options_of_points()]
  if (any(c("backend", "devices") %in% names(run))) {
    own[c("backend", "devices")] <- NULL
  }
  own <- own[!names(own) %in% names(run)]
  kept <- index$search$options
  options <- check_options(
    c(
      list(metric = kept$metric$name, sign = kept$sign, na = kept$na),
      own, run
    ),
    verb, call
  )
  facts <- c(
    "metric", "sign", "na", "min_pairs", "constant", "input", "weights",
    "weight_kind", "adjust", "allele_table"
  )
  options[facts] <- kept[facts]
  options$of_index <- TRUE
  # Another `na` would be no option of the search.
  options["cures_na"] <- list(NULL)
  options
}

options_of_points <- function() {
  c("metric", "sign", names(formals(point_options)))
}

# Most of the checks of a search take longer than the search of a query. After a
# query of an index, only the values of the next one of the same form are
# checked. Returns the answer; or NULL, if the query must be searched as a new
# one, which also reports what is wrong with it.
query_as_before <- function(index, query, options, k, block, output,
                            call = caller_env()) {
  before <- if (is_index(index)) index$before
  if (is.null(before) || !is.null(block) || !is.null(output) ||
        !identical(before$options, options) || !identical(before$k, k) ||
        !identical(before$form, form_of_query(query))) {
    return(NULL)
  }
  started <- Sys.time()
  num_searches <- session$num_searches
  request <- before$request
  largest <- in_core(
    cpp_scan_plain(query, request$num_threads, options$metric), call
  )$largest
  if (is.na(largest)) {
    return(NULL)
  }
  request$largest <- max(index$search$checked$largest, largest)
  held <- held_of_index(index, call)
  asked <- Sys.time()
  found <- cpp_knn_search(held, query, request)
  seconds <- seconds_since(asked)
  note_failure(index, found)
  if (identical(found$failure, "range")) {
    return(NULL)
  }
  in_core(found, call)
  remember_search(
    index$search$points$values, query, request, found$stats, seconds
  )
  if (!isTRUE(options$counts_known)) {
    tell_if_counts(query, list(values = query), options$metric, "query")
  }
  answer <- found[c("index", "distance")]
  attributes(answer) <- before$attributes
  facts <- before$facts
  facts$num_queries <- nrow(query)
  run <- facts_of_run(
    request$backend, request$devices, request$num_threads, started,
    before = num_searches
  )
  facts[names(run)] <- run
  attr(answer, "searched") <- new_searched(facts)
  answer
}

# Remembers a query that has passed all checks, and was searched without
# special cases.
remember_query <- function(index, query, options, k, block, search, answer) {
  form <- if (is_index(index)) form_of_query(query)
  queries <- search$queries
  # Values that were transposed, or put in the order of the points' features,
  # are not those of the next query.
  as_given <- !is.null(form) && !queries$transposed &&
    identical(queries$values, query)
  if (!as_given || !is.null(block) || !is.null(search$each_k) ||
        is.null(search$held) || !is.null(search$points$samples) ||
        !is.null(options$adjust) || options$na != "error" ||
        options$verbose || length(search$query_skip) > 0 ||
        !is.null(options$long)) {
    return(invisible())
  }
  index$before <- list(
    options = options, k = k, form = form, request = search$request,
    facts = searched_of(answer), attributes = attributes(answer)
  )
}

# Returns what the checks of a plain matrix depend on, besides its values, or
# NULL.
form_of_query <- function(query) {
  names <- dimnames(query)
  if (is.matrix(query) && !is.object(query) && nrow(query) > 0 &&
        (is.double(query) || is.integer(query)) && is.null(names[[1]])) {
    list(typeof(query), ncol(query), names)
  }
}

# Returns what the defaults of run options depend on.
session_state <- function() {
  # options() would sort them all first.
  all <- .Options
  list(
    all[startsWith(names(all), "fsknn.")], rlang::is_interactive(),
    Sys.getpid(), is_loaded,
    Sys.getenv(
      c("OMP_THREAD_LIMIT", "OMP_NUM_THREADS", "_R_CHECK_LIMIT_CORES_"),
      names = FALSE
    )
  )
}

check_not_released <- function(index, call) {
  if (isTRUE(index$released)) {
    abort_argument(
      c(
        "{.arg x} must be an index that has not been released.",
        i = "Make it again with {.fn knn_index}."
      ),
      call
    )
  }
  if (is_row_file(index$search$points$values) && !is_of_this_session(index)) {
    abort_argument(
      c(
        "The points of this index were in a temporary file, which a saved index
         does not have.",
        i = "Make it again with {.fn knn_index}."
      ),
      call
    )
  }
}

# Refuses options of the points that differ from those of the index.
check_same_options <- function(index, given, call) {
  for (name in names(given)) {
    own <- own_option(index, name)
    if (is.null(given[[name]]) || is_same_option(given[[name]], own)) {
      next
    }
    value <- given[[name]]
    abort_argument(
      c(
        if (is.null(own)) {
          "{.arg {name}} can't be given: the index was made without it."
        } else if (is_short(own) && is_short(value)) {
          "{.arg {name}} must be that of the index, {.val {own}}, not
           {.val {value}}."
        } else {
          "{.arg {name}} must be the same as for the index."
        },
        i = "Leave it out, or make another index with {.fn knn_index}."
      ),
      call
    )
  }
}

is_short <- function(value) {
  is.atomic(value) && length(value) == 1 && !is.object(value)
}

# Returns the value of an option, as the index uses it.
own_option <- function(index, name) {
  options <- index$search$options
  taken <- index$search$points$taken_from
  switch(
    name,
    metric = options$metric$name, points = options$input$points,
    assay = , dimred = index$given[[name]] %||% unname(taken[name][[1]]),
    sign = , na = , constant = , min_pairs = options[[name]],
    index$given[[name]]
  )
}

# Whole vectors of choices are the default. Numbers may be integer or double.
is_same_option <- function(value, own) {
  if (is.character(value) && rlang::is_string(own)) {
    return(identical(unname(value[[1]]), own))
  }
  if (is.numeric(value) && is.numeric(own)) {
    return(isTRUE(all.equal(value, own, tolerance = 0)))
  }
  identical(value, own, ignore.environment = TRUE)
}

# `x` is an index where there must be data.
abort_index <- function(index, arg, call) {
  name <- index$made_from
  abort_argument(
    c(
      "{.arg {arg}} must be data here, not an index.",
      i = if (is.null(name)) {
        "Give the data from which the index was made."
      } else {
        "Give the data from which the index was made: {.code {name}}."
      }
    ),
    call
  )
}

# Returns the part of a search that an index has.
search_of_index <- function(index, options, call) {
  # Only options_with_index() lets a verb have an index.
  if (!isTRUE(options$of_index)) {
    abort_index(index, "x", call)
  }
  search <- index$search
  search$options <- options
  search
}

# Checks the names of points once for each index.
check_index_names <- function(x, points, call) {
  if (is_index(x) && isTRUE(x$names_checked)) {
    return(invisible())
  }
  check_row_names(points$names, "x", points$transposed, call = call)
  if (is_index(x)) {
    x$names_checked <- TRUE
  }
}

# Returns the number of points and features as the user gave them.
size_given <- function(points) {
  size <- dim(points$values)
  c(size[[1]], points$num_given %||% size[[2]])
}

# --- print -------------------------------------------------------------------

#' @method format fsknn_index
#' @export
format.fsknn_index <- function(x, ...) {
  if (isTRUE(x$released)) {
    return("Index of points, released")
  }
  search <- x$search
  options <- search$options
  n <- x$size[[1]]
  element <- describe_element(search$points$taken_from)
  lines <- c(
    "Metric" = describe_metric(
      options$metric$name, options$sign, !is.null(options$weights),
      ncol(options$adjust)
    ),
    "Read from" = element,
    "Missing values" = if (options$na != "error") options$na,
    "Isolated points" = if (length(search$skip) > 0) {
      format_count(length(search$skip))
    },
    describe_places(x)
  )
  c(
    paste0(
      "Index of ", tally(n, "point"), " with ", tally(x$size[[2]], "feature")
    ),
    paste0(format(paste0(names(lines), ":")), " ", lines)
  )
}

#' @export
print.fsknn_index <- function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}

#' @export
summary.fsknn_index <- function(object, ...) {
  object
}

#' @export
dim.fsknn_index <- function(x) {
  x$size
}

#' @export
`[.fsknn_index` <- function(x, ...) {
  name <- x$made_from
  abort_argument(
    c(
      "An index can't be subset.",
      i = if (is.null(name)) {
        "Select from the data, and make another index with {.fn knn_index}."
      } else {
        "Select from the data, {.code {name}}, and make another index with
         {.fn knn_index}."
      }
    ),
    current_env()
  )
}

describe_places <- function(index) {
  search <- index$search
  values <- search$points$values
  bytes <- bytes_of_values(values)
  if (!is_holdable(search)) {
    why <- if (is_row_file(values)) {
      "they are in a temporary file"
    } else if (is.matrix(values)) {
      "pairs are compared over common samples"
    } else {
      "they are made when they are compared"
    }
    return(c(
      "Prepared" = paste0("by each search (", why, ")"),
      "Memory" = format_bytes(bytes)
    ))
  }
  there <- list(cpu = 0)
  if (!is.null(index$held) && is_of_this_session(index) &&
        index$process == Sys.getpid()) {
    there <- in_core(cpp_held_bytes(index$held))
  }
  on <- c(
    if (there$cpu > 0) "the CPU",
    if (length(there$gpus) > 0) {
      paste0(
        if (length(there$gpus) == 1) "GPU " else "GPUs ",
        paste(there$gpus, collapse = ", ")
      )
    }
  )
  c(
    "Prepared" = if (is.null(on)) {
      "by the next search"
    } else {
      paste("on", paste(on, collapse = " and "))
    },
    "Memory" = paste0(
      format_bytes(bytes + there$cpu),
      if (length(there$gpus) > 0) {
        paste0(", and ", format_bytes(max(there$bytes)), " on each GPU")
      }
    )
  )
}

# Returns the bytes that checked values take in memory.
bytes_of_values <- function(values) {
  if (is_row_file(values)) {
    return(0)
  }
  if (!is.matrix(values)) {
    return(bytes_made_from(values))
  }
  (if (is.double(values)) 8 else 4) * as.double(length(values))
}
