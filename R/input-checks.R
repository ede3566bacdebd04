# Argument checks. Each returns its value in the form that the core takes, or
# raises an error with the user's call. A message says what must hold and what
# was given, then `x` details. An `i` hint is added only if the cure is known.

abort_argument <- function(message, call = caller_env(),
                           .envir = parent.frame()) {
  cli_abort(
    c(message, i = swapped_hint(call)),
    class = c("fsknn_argument_error", "fsknn_error"),
    call = call,
    .envir = .envir
  )
}

# Checks an argument without a default. rlang::check_required() would raise an
# error of another class.
check_supplied <- function(value, arg = rlang::caller_arg(value),
                           call = caller_env()) {
  if (missing(value)) {
    abort_argument("{.arg {arg}} is absent but must be supplied.", call)
  }
}

is_whole <- function(value) {
  is.numeric(value) && !is.object(value) && is.null(dim(value)) &&
    length(value) == 1 && is.finite(value) && value == trunc(value)
}

check_whole_number <- function(value, arg, min, max, hint = NULL,
                               call = caller_env()) {
  if (is_whole(value) && value >= min && value <= max) {
    return(as.integer(value))
  }
  check_not_collected(value, call)
  given <- describe_value(value)
  range <- if (min == max) {
    format_bound(min)
  } else {
    paste0("a whole number between ", format_bound(min), " and ",
           format_bound(max))
  }
  # The hint explains a number that is out of range, so it does not fit other
  # values.
  if (!is_whole(value)) {
    hint <- NULL
  }
  abort_argument(
    c("{.arg {arg}} must be {range}, not {given}.", i = hint),
    call = call
  )
}

check_flag <- function(value, arg, call = caller_env()) {
  if (isTRUE(value) || isFALSE(value)) {
    return(value)
  }
  given <- describe_value(value)
  abort_argument("{.arg {arg}} must be TRUE or FALSE, not {given}.", call)
}

# Checks that the text is valid in its declared encoding.
is_valid_text <- function(text) validEnc(text) & Encoding(text) != "bytes"

# Checks names, labels, words and paths. Values that are not text pass. `what`
# describes the text. `place` is "row", "column" or another word; the position
# in `text` is its number. `code` is R's code for the text.
check_text <- function(text, what, place, code, call = caller_env()) {
  bad <- if (is.character(text)) which(!is_valid_text(text))
  count <- length(bad)
  if (count == 0) {
    return(invisible())
  }
  shown <- utils::head(bad, 3)
  where <- first_few(
    paste0(place, " ", shown, " (\"", encodeString(text[shown]), "\")"), count
  )
  abort_argument(
    c(
      "{what} must be valid UTF-8.",
      x = "Not so: {where}.",
      i = "If {cli::qty(count)}{?it is/they are} Latin-1, use
           {.code iconv({code}, \"latin1\", \"UTF-8\")}."
    ),
    call
  )
}

# `side` is "row" or "column" of the user's object.
check_names_text <- function(names, arg, side, call = caller_env()) {
  function_name <- if (side == "row") "rownames" else "colnames"
  check_text(
    names, paste0("The ", side, " names of `", arg, "`"), side,
    paste0(function_name, "(", arg, ")"), call
  )
}

# Checks the text in the columns of a data frame.
check_columns_text <- function(data, arg, call = caller_env()) {
  data <- as.list(data)
  for (at in seq_along(data)) {
    name <- names(data)[[at]]
    is_level <- is.factor(data[[at]])
    code <- if (identical(make.names(name), name)) {
      paste0(arg, "$", name)
    } else {
      paste0(arg, "[[", encode_text(name), "]]")
    }
    check_text(
      if (is_level) levels(data[[at]]) else data[[at]],
      paste0("The column `", name, "`"), if (is_level) "level" else "row",
      if (is_level) paste0("levels(", code, ")") else code, call
    )
  }
}

# Checks that `...` is empty. It is there so that later arguments must be named.
# `.belongs` is a function that says where another argument belongs, or NULL.
check_no_more <- function(..., .belongs = NULL, .call = caller_env()) {
  dots <- rlang::enquos(...) # drops the empty one after a last comma
  if (length(dots) == 0) {
    return(invisible())
  }
  name <- names(dots)[[1]]
  if (name == "") {
    abort_too_many(.call)
  }
  known <- names(formals(rlang::caller_fn()))
  abort_no_argument(name, known, .call, if (!is.null(.belongs)) .belongs(name))
}

# Checks the arguments of as.data.frame() that our methods do not use. A second
# value without a name is `row.names`. data.frame() and cbind() pass
# `optional = TRUE`, which changes nothing here. `choices` are those of `what`.
check_unused <- function(row.names, optional, choices = NULL,
                         call = caller_env()) {
  arg <- "row.names"
  value <- row.names
  must <- "NULL"
  if (is.null(row.names)) {
    if (rlang::is_bool(optional)) {
      return(invisible())
    }
    arg <- "optional"
    value <- optional
    must <- "FALSE"
  }
  given <- describe_value(value)
  meant <- if (rlang::is_string(value) && value %in% choices) value
  codes <- paste0("what = \"", meant %||% choices, "\"")
  abort_argument(
    c(
      "{.arg {arg}} must be {.code {must}}, not {given}: this method of
       {.fn as.data.frame} does not use it.",
      i = if (!is.null(meant)) {
        "Did you mean {.code {codes}}?"
      } else if (!is.null(choices)) {
        "Choose the table by {.or {.code {codes}}}."
      } else if (arg == "row.names") {
        "Name the rows afterwards: {.code row.names(table) <- names}."
      }
    ),
    call
  )
}

abort_too_many <- function(call) {
  abort_argument(
    "There is a value too many: all but the first arguments must be named.",
    call
  )
}

# `known` are the names of arguments that exist. `hint` is known to fit better
# than a similar name.
abort_no_argument <- function(name, known, call, hint = NULL) {
  meant <- meant_argument(name, setdiff(known, "..."))
  if (name == "BNPARAM") {
    hint <- "It is for functions of BiocNeighbors, such as
             {.fn BiocNeighbors::findKNN}."
  }
  if (is.null(hint) && !is.null(meant)) {
    hint <- "Did you mean {.arg {meant}}?"
  }
  abort_argument(c("There is no argument {.arg {name}}.", i = hint), call)
}

# Maps names of arguments in other packages to ours.
argument_synonyms <- c(
  threads = "num_threads", nthreads = "num_threads", nthread = "num_threads",
  cores = "num_threads", ncores = "num_threads", njobs = "num_threads",
  workers = "num_threads", cpus = "num_threads",
  neighbors = "k", neighbours = "k", nneighbors = "k", nneighbours = "k",
  numneighbors = "k", numneighbours = "k", nn = "k", kparam = "k",
  method = "metric", distance = "metric", dist = "metric",
  measure = "metric", distfun = "metric", similarity = "metric",
  covariates = "adjust", covariate = "adjust", design = "adjust",
  networktype = "sign", absolute = "sign", signed = "sign", abs = "sign",
  gpu = "backend", usegpu = "backend", gpus = "devices", deviceid = "devices",
  quiet = "verbose", silent = "verbose",
  transposed = "points", transpose = "points", margin = "points",
  blocksize = "chunk_size", batchsize = "chunk_size", tilesize = "chunk_size",
  threshold = "min_similarity", cutoff = "min_similarity",
  mincor = "min_similarity",
  use = "na", narm = "na", reduction = "dimred", nperm = "permutations",
  radius = "distance", eps = "distance", filename = "file", path = "file"
)

# Returns the one of the arguments `known` that a user may have meant, or NULL.
# The given name may differ in spelling (K, numThreads) or be that of another
# package. It may also be one word of ours, or a typing error.
meant_argument <- function(name, known) {
  bare <- function(words) gsub("[._]", "", tolower(words))
  same <- known[bare(known) == bare(name)]
  if (length(same) > 0) {
    return(same[[1]])
  }
  # A word with another meaning is not a typing error.
  synonym <- unname(argument_synonyms[bare(name)])
  if (!is.na(synonym)) {
    return(if (synonym %in% known) synonym)
  }
  has_word <- vapply(
    strsplit(known, "_", fixed = TRUE), function(words) name %in% words, NA
  )
  if (any(has_word) && nearest_edits(name, known) > 1) {
    return(known[[which(has_word)[[1]]]])
  }
  # A name of one letter is always within one edit of another.
  nearest <- nearest_spelling(name, known)
  if (!is.null(nearest) && nearest_edits(name, nearest) < nchar(name)) nearest
}

nearest_edits <- function(value, choices) {
  min(utils::adist(value, choices, ignore.case = TRUE))
}

# Returns one of several words. A default that is the whole vector means its
# first. "Did you mean" is suggested for a word that is spelt similarly, or that
# is one of the `synonyms` (names) of a choice (values).
check_choice <- function(value, choices, arg, synonyms = NULL,
                         call = caller_env()) {
  if (identical(value, choices)) {
    return(choices[[1]])
  }
  if (rlang::is_string(value) && value %in% choices) {
    return(value)
  }
  check_not_collected(value, call)
  # The list is built here, because versions of cli join the last two
  # differently ("and", "or").
  options <- paste0("\"", choices, "\"", collapse = ", ")
  given <- describe_value(value)
  hint <- NULL
  check_text(
    if (rlang::is_string(value)) value, paste0("`", arg, "`"), "word", arg,
    call
  )
  nearest <- nearest_spelling(value, choices, synonyms)
  if (!is.null(nearest)) {
    hint <- c(i = "Did you mean {.val {nearest}}?")
  }
  abort_argument(
    c("{.arg {arg}} must be one of {options}, not {given}.", hint),
    call
  )
}

# Returns the choice that a misspelt word may mean, or NULL.
nearest_spelling <- function(value, choices, synonyms = NULL) {
  if (!rlang::is_string(value) || is.na(value) || !is_valid_text(value)) {
    return(NULL)
  }
  if (tolower(value) %in% names(synonyms)) {
    return(synonyms[[tolower(value)]])
  }
  begun <- startsWith(tolower(choices), tolower(value))
  if (nchar(value) > 1 && sum(begun) == 1) {
    return(choices[begun])
  }
  if (nearest_edits(value, choices) > max(2, nchar(value) %/% 2)) {
    return(NULL)
  }
  choices[[which.min(utils::adist(value, choices, ignore.case = TRUE))]]
}

check_metric <- function(metric, call = caller_env()) {
  name <- check_choice(
    metric, metric_table()$name, "metric", synonyms = metric_synonyms(),
    call = call
  )
  metric_facts(name)
}

check_sign <- function(sign, metric, call = caller_env()) {
  sign <- check_choice(
    sign, metric_signs, "sign", synonyms = sign_synonyms, call = call
  )
  if (!metric$has_sign && sign != "signed") {
    signed <- metrics_with("has_sign")
    abort_argument(
      c(
        "{.arg sign} can't be {.val {sign}} with metric {.val {metric$name}}.",
        i = "Only {signed} have a sign."
      ),
      call
    )
  }
  sign
}

# Checks k against the largest possible one. `isolated` points have no
# neighbours and are not neighbours.
check_k <- function(k, num_points, isolated = 0L, self_excluded = TRUE,
                    call = caller_env()) {
  check_some_left(
    num_points, isolated, self_excluded,
    "No {.arg k} is small enough: too few points are left.", call = call
  )
  largest <- num_points - isolated - self_excluded
  # The hint is evaluated only for an error, because to format it takes long.
  hint <- function() {
    paste0(
      "{.arg x} has ", tally(num_points, "point"),
      if (isolated > 0) {
        paste0(", ", format_count(isolated), " of them isolated")
      },
      if (self_excluded) ", and a point is not its own neighbour", "."
    )
  }
  check_whole_number(
    k, "k", min = 1, max = largest, hint = hint(), call = call
  )
}

# Checks that a point can have a neighbour.
check_some_left <- function(num_points, isolated, self_excluded,
                            must = "Too few points are left.",
                            call = caller_env()) {
  if (num_points - isolated - self_excluded >= 1) {
    return(invisible())
  }
  points <- format_count(num_points)
  abort_argument(
    c(
      must,
      x = "{format_count(isolated)} of the {points} points of {.arg x}
           {cli::qty(isolated)}{?is/are} isolated."
    ),
    call
  )
}

# --- sizes -------------------------------------------------------------------

# These say whether points and features are rows or columns of the user's
# object.
feature_side <- function(points) {
  if (isTRUE(points$transposed)) "row" else "column"
}

point_side <- function(points) {
  if (isTRUE(points$transposed)) "column" else "row"
}

check_num_points <- function(num_points, at_least, arg, transposed = FALSE,
                             call = caller_env()) {
  side <- point_side(list(transposed = transposed))
  if (num_points < at_least) {
    abort_argument(
      "{.arg {arg}} must have at least {at_least} {side}{cli::qty(at_least)}{?s}
       (points), not {num_points}.",
      call
    )
  }
}

check_num_features <- function(num_features, metric, arg, transposed = FALSE,
                               call = caller_env()) {
  side <- point_side(list(transposed = !isTRUE(transposed)))
  other <- point_side(list(transposed = transposed))
  at_least <- if (metric$undefined_rows == "constant") 2L else 1L
  if (num_features >= at_least) {
    return(invisible())
  }
  hint <- if (num_features > 0) {
    c(i = "With one {side} every {other} is constant, and metric
           {.val {metric$name}} has no value.")
  }
  at_least <- if (num_features > 0) at_least else 1L
  abort_argument(
    c(
      "{.arg {arg}} must have at least {at_least} {side}{cli::qty(at_least)}{?s}
       (features), not {num_features}.",
      hint
    ),
    call
  )
}

max_edges <- .Machine$integer.max

check_num_edges <- function(num_points, k, call = caller_env()) {
  edges <- as.double(num_points) * k
  if (edges > max_edges) {
    abort_argument(
      c(
        "A data frame can't hold this graph: it has {format_count(edges)}
         edges, and R's limit is {format_count(max_edges)}.",
        i = "Use {.fn knn_search}, whose matrices have no such limit, or a
             smaller {.arg k}."
      ),
      call
    )
  }
}

# `size` is c(points, features). `query_size` is NULL if the points are searched
# among themselves or, with have_others, for queries that are not points.
check_sizes <- function(size, query_size, metric, transposed = FALSE,
                        query_transposed = transposed, have_others = FALSE,
                        call = caller_env()) {
  alone <- is.null(query_size) && !have_others
  check_num_points(size[[1]], 1L + alone, "x", transposed, call = call)
  check_num_features(size[[2]], metric, "x", transposed, call = call)
  if (!is.null(query_size)) {
    check_num_points(
      query_size[[1]], 1L, "query", query_transposed, call = call
    )
    check_same_features(
      size[[2]], query_size[[2]], query_transposed, call = call
    )
  }
}

check_same_features <- function(wanted, given, transposed = FALSE,
                                call = caller_env()) {
  if (wanted != given) {
    side <- point_side(list(transposed = !isTRUE(transposed)))
    abort_argument(
      "{.arg query} must have as many {side}s (features) as {.arg x}: {wanted},
       not {given}.",
      call
    )
  }
}

# colnames() of metafeatures is avoided, because it would make all row names,
# too.
feature_names <- function(values) {
  colnames(if (is_metafeatures(values)) values$values else values)
}

# --- values ------------------------------------------------------------------

check_row_names <- function(names, arg, transposed = FALSE,
                            call = caller_env()) {
  side <- point_side(list(transposed = transposed))
  function_name <- if (side == "row") "rownames" else "colnames"
  if (is.null(names)) {
    return(invisible())
  }
  check_names_text(names, arg, side, call)
  empty <- which(is.na(names) | names == "")
  if (length(empty) > 0) {
    count <- length(empty)
    where <- first_few(empty)
    abort_argument(
      c(
        "The {side} names of {.arg {arg}} must not be missing or empty.",
        x = "{format_count(count)} {side}{cli::qty(count)}{?s} {?has/have} none:
             {where}.",
        i = "Name {cli::qty(count)}{?it/them}, or take all names away with
             {.code {function_name}({arg}) <- NULL}."
      ),
      call
    )
  }
  if (anyDuplicated(names) > 0) {
    repeated <- unique(names[duplicated(names)])
    count <- length(repeated)
    where <- first_few(paste0("\"", utils::head(repeated, 3), "\""), count)
    abort_argument(
      c(
        "The {side} names of {.arg {arg}} must be unique.",
        x = "{format_count(count)} {cli::qty(count)}name{?s}
             {?is/are} repeated: {where}.",
        i = "Use {.code {function_name}({arg}) <-
             make.unique({function_name}({arg}))}."
      ),
      call
    )
  }
}

# --- options -----------------------------------------------------------------

# A larger chunk gains nothing, and its padding would take most of the memory.
max_chunk_size <- 1048576L

check_chunk_size <- function(chunk_size, call = caller_env()) {
  if (is.null(chunk_size)) {
    return(0L)
  }
  check_whole_number(
    chunk_size, "chunk_size", min = 1, max = max_chunk_size, call = call
  )
}

# options(fsknn.instruction_set = ) serves tests, but is checked like the
# others.
check_instruction_set <- function(call = caller_env()) {
  core <- cpp_cpu()
  known <- c("auto", core$instruction_sets)
  filters <- c(setdiff(core$filter_forms, "none"), "8", "16", "32", "all")
  check_choice(
    getOption("fsknn.instruction_set", "auto"),
    c(outer(
      outer(known, c("", paste0("/", filters)), paste0),
      c("", "/sorted", "/tree", "/scattered", "/hasty"), paste0
    )),
    "options(fsknn.instruction_set = )", call = call
  )
}

check_progress <- function(progress, call = caller_env()) {
  if (is.null(progress)) {
    return(rlang::is_interactive())
  }
  check_flag(progress, "progress", call = call)
}
