# Tasks of BiocNeighbors' generics, done by knn_search(), knn_query(),
# within_search() and within_query(), with results in BiocNeighbors' form. A
# task gets the list `a` of a call's arguments under BiocNeighbors' names (X, k,
# get.index, ...). `.frame` is the frame of that call, for messages. `.old` is
# TRUE for the conventions of 1.16.

# --- the form of the answers -------------------------------------------------

# One k for all gives matrices. Otherwise lists are cut to each point's own k.
form_answer <- function(found, k, get_index, get_distance) {
  wanted <- list(index = get_index %||% TRUE, distance = get_distance %||% TRUE)
  answer <- list()
  for (what in names(wanted)) {
    if (isFALSE(wanted[[what]])) {
      next
    }
    values <- found[[what]]
    answer[[what]] <- if (k$varies) {
      lapply(seq_along(k$each), function(at) values[at, seq_len(k$each[[at]])])
    } else if (identical(wanted[[what]], "transposed")) {
      t(values)
    } else {
      values
    }
  }
  answer
}

check_wanted <- function(a, arg) {
  wanted <- a[[arg]]
  good <- is.null(wanted) || isTRUE(wanted) || isFALSE(wanted) ||
    identical(wanted, "normal") || identical(wanted, "transposed")
  if (!good) {
    given <- describe_value(wanted)
    abort_argument(
      "{.arg {arg}} must be TRUE, FALSE, \"normal\" or \"transposed\", not
       {given}.",
      a$.frame
    )
  }
}

# Without index and distance, returns the number of neighbours.
form_within <- function(found, a) {
  index <- a$get.index %||% TRUE
  distance <- a$get.distance %||% TRUE
  if (isFALSE(index) && isFALSE(distance)) {
    return(lengths(found$index))
  }
  c(
    if (!isFALSE(index)) found["index"],
    if (!isFALSE(distance)) found["distance"]
  )
}

# --- tasks of BiocNeighbors 2.0 and later ------------------------------------

check_given <- function(a, args) {
  lacking <- setdiff(args, names(a))
  if (length(lacking) > 0) {
    abort_argument("{.arg {lacking[[1]]}} must be given.", a$.frame)
  }
}

find_task <- function(a, reference = reference_of(a)) {
  check_given(a, "k")
  check_wanted(a, "get.index")
  check_wanted(a, "get.distance")
  num_points <- nrow(reference$values)
  rows <- point_rows(a, reference)
  num_asked <- if (is.null(rows)) num_points else length(rows)
  k <- cap_k(a$k, num_asked, num_points - 1L, minus_one = TRUE, a$.frame)
  found <- nearest_of(a, reference, k$most, rows)
  list(found = found, k = k)
}

query_task <- function(a, reference = reference_of(a)) {
  check_given(a, c("query", "k"))
  check_wanted(a, "get.index")
  check_wanted(a, "get.distance")
  query <- query_of(a, reference)
  k <- cap_k(
    a$k, nrow(query), nrow(reference$values), minus_one = FALSE, a$.frame
  )
  found <- nearest_of(a, reference, k$most, query = query)
  list(found = found, k = k)
}

# Returns the distance to the last neighbour, or 0 if there is none.
last_distance <- function(done) {
  k <- rep_len(done$k$each, nrow(done$found$distance))
  last <- double(length(k))
  has <- which(k > 0)
  last[has] <- done$found$distance[cbind(has, k[has])]
  last
}

within_task <- function(a, reference = reference_of(a)) {
  check_given(a, "threshold")
  within_of(a, reference, a$threshold, point_rows(a, reference))
}

query_within_task <- function(a, reference = reference_of(a)) {
  check_given(a, c("query", "threshold"))
  check_given(a, "threshold")
  within_of(a, reference, a$threshold, query = query_of(a, reference))
}

build_task <- function(a) {
  check_number_type(a$X, "X", a$.frame)
  values <- if (isTRUE(a$transposed)) t(a$X) else a$X
  methods::new(
    "FsknnIndex", data = values, names = rownames(values), param = a$BNPARAM,
    kept = new.env(parent = emptyenv())
  )
}

# Serves callers that search in their own C++ code. They get BiocNeighbors'
# exhaustive search, which gives the same results, but only for these distances.
define_builder <- function(a) {
  param <- a$BNPARAM
  theirs <- c(
    euclidean = "Euclidean", manhattan = "Manhattan", cosine = "Cosine"
  )[tolower(param@distance)]
  if (is.na(theirs)) {
    abort_no_builder(paste0("distance \"", param@distance, "\""), a$.frame)
  }
  given <- intersect(names(param@options), c("sign", "weights", "na"))
  for (option in given) {
    if (!is_default_option(option, param@options[[option]])) {
      abort_no_builder(paste0("`", option, "`"), a$.frame)
    }
  }
  get <- function(name) getExportedValue("BiocNeighbors", name)
  get("defineBuilder")(get("ExhaustiveParam")(distance = unname(theirs)))
}

is_default_option <- function(option, value) {
  default <- option_default(option)
  is.null(value) || identical(value, utils::head(default, 1))
}

abort_no_builder <- function(what, call) {
  abort_argument(
    c(
      "There is no builder for {what}.",
      x = "Who calls {.fn defineBuilder} searches in C++ of its own, where
           BiocNeighbors has \"Euclidean\", \"Manhattan\" and \"Cosine\"
           only."
    ),
    call
  )
}

# --- tasks of 1.16 -----------------------------------------------------------

# Names are checked here, because no later function receives the other
# arguments.
old_arguments <- c(
  "X", "k", "threshold", "query", "BNINDEX", "BNPARAM", "get.index",
  "get.distance", "last", "subset", "raw.index", "warn.ties", "BPPARAM",
  "transposed", "num.threads"
)

check_old_arguments <- function(a) {
  unknown <- setdiff(names(a), c(old_arguments, ".frame"))
  if (length(unknown) > 0) {
    abort_argument("Unused argument {.arg {unknown}}.", a$.frame)
  }
}

# One more neighbour is searched for, to detect a tie with the last.
old_knn <- function(a, task, most) {
  check_old_arguments(a)
  if (is_whole(a$k) && a$k < 1) {
    abort_argument("{.arg k} must be positive.", a$.frame)
  }
  a$.old <- TRUE
  reference <- reference_of(a)
  most <- max(nrow(reference$values) - most, 0L)
  warn <- !isFALSE(a$warn.ties)
  more <- warn && is_whole(a$k) && a$k < most
  if (more) {
    a$k <- a$k + 1
    a$.spare <- TRUE
  }
  done <- task(a, reference)
  if (done$k$most < 1) {
    # The capped k is 0. bluster expects this error if there are no points.
    abort_argument("{.arg k} must be positive.", a$.frame)
  }
  found <- done$found
  if (warn && has_ties(found$distance)) {
    warning(
      "detected tied distances to neighbors, see ?'BiocNeighbors-ties'",
      call. = FALSE
    )
  }
  k <- ncol(found$distance) - more
  last <- min(a$last %||% k, k)
  kept <- seq_len(last) + (k - last)
  found <- lapply(found, function(x) x[, kept, drop = FALSE])
  form_answer(found, list(varies = FALSE), a$get.index, a$get.distance)
}

has_ties <- function(distance) {
  columns <- seq_len(max(ncol(distance) - 1, 0))
  any(distance[, columns] == distance[, columns + 1], na.rm = TRUE)
}

# A point is its own neighbour here. It comes at distance 0, after others at
# that distance with a lower index.
old_within <- function(a) {
  check_old_arguments(a)
  a$.old <- TRUE
  reference <- reference_of(a)
  found <- within_task(a, reference)
  rows <- point_rows(a, reference) %||% seq_len(nrow(reference$values))
  before <- Map(function(row, index, distance) {
    sum(distance == 0 & index < row)
  }, rows, found$index, found$distance)
  found$index <- Map(append, found$index, rows, before)
  found$distance <- Map(append, found$distance, 0, before)
  form_within(found, a)
}

build_old_task <- function(a) {
  values <- if (isTRUE(a$transposed)) a$X else t(a$X)
  values <- if (is.matrix(values)) values else as.matrix(values)
  storage.mode(values) <- "double"
  names <- colnames(values)
  methods::new(
    "FsknnIndex", data = values, NAMES = names,
    distance = a$BNPARAM@distance, param = a$BNPARAM,
    kept = new.env(parent = emptyenv())
  )
}

# --- files -------------------------------------------------------------------

save_neighbours <- function(a) {
  writeLines("fsknn", file.path(a$dir, "ALGORITHM"))
  saveRDS(a$BNINDEX, file.path(a$dir, "index.rds"))
  invisible()
}

load_neighbours <- function(dir, ...) {
  readRDS(file.path(dir, "index.rds"))
}

# --- tasks by name -----------------------------------------------------------

neighbour_tasks <- list(
  build = function(a) build_task(a),
  builder = function(a) define_builder(a),
  find = function(a) {
    done <- find_task(a)
    form_answer(done$found, done$k, a$get.index, a$get.distance)
  },
  query_find = function(a) {
    done <- query_task(a)
    form_answer(done$found, done$k, a$get.index, a$get.distance)
  },
  distance = function(a) last_distance(find_task(a)),
  query_distance = function(a) last_distance(query_task(a)),
  within = function(a) form_within(within_task(a), a),
  query_within = function(a) form_within(query_within_task(a), a),
  build_old = function(a) build_old_task(a),
  find_old = function(a) old_knn(a, find_task, 1L),
  query_old = function(a) old_knn(a, query_task, 0L),
  within_old = function(a) old_within(a),
  query_within_old = function(a) {
    check_old_arguments(a)
    a$.old <- TRUE
    form_within(query_within_task(a), a)
  },
  save = function(a) save_neighbours(a)
)
