#' All triples above a similarity
#'
#' Finds all triples of points whose Proportional Similarity of three is at
#' least `min_similarity`: which three go together more than any two of them
#' show (Joubert et al. 2018).
#'
#' @details
#' The similarity of three rows a, b and c with values that are not negative is
#'
#' `3 (n_ab + n_ac + n_bc - n_abc) / (2 S)`,
#'
#' where `n_ab` is the sum over the features of `min(a, b)`, `n_abc` that of
#' `min(a, b, c)`, and `S` the sum of all values of the three. It is 1 for three
#' equal rows, large where two of the three are large in the same places, and
#' larger still where all three are. Here it is computed in its equal form
#' `1.5 (S - sum(max(a, b, c))) / S`, in double, in one order of operations:
#' the same bits for any order of the three points, any `path`, any stages and
#' any number of threads. Its error is absolute, as small values are differences
#' of large ones: some 1e-16 times the square root of the number of features,
#' at worst times that number. `"sorensen"` is the same of 0/1 data.
#'
#' The three pairs alone say a good deal of a triple. With M of a pair the sum
#' of its maxima, the sum of the maxima of all three is at least the largest M,
#' and at most the least, over the three points p, of M_pq + M_pr - s_p (s: a
#' row's sum). `at_most` and `at_least` are the similarities that this leaves
#' possible: where between the two a triple lies is what pairs do not show.
#'
#' A triple of at least t has pairs of at least 4 - 3 / t each. So above 0.75
#' it is a triangle of a threshold graph, and few triples need be looked at:
#' that is `path = "pairs"`. `"all"` looks at all of them, n (n - 1) (n - 2) / 6
#' times the number of features. Triples are searched for on CPUs.
#'
#' @inheritParams within_search
#' @param x The points, as for [knn_search()], in memory. Row names (column
#'   names where `points = "columns"` or a `dimred` is taken), if there are any,
#'   name the points and must be unique.
#' @param min_similarity The least similarity that counts, one number between 0
#'   and 1.
#' @param metric `"proportional"` (default), for values that are not negative,
#'   or `"sorensen"`, for 0 and 1 (`FALSE` and `TRUE`).
#' @param query Names or numbers of points: only triples that have at least one
#'   of them are searched for and given. `NULL` (default): all triples.
#' @param stages A whole number: the search is cut into so many stages, done one
#'   after the other. `NULL` (default) is one. The answer is the same.
#' @param stage Two whole numbers, `c(i, of)`: only stage i of so many. The
#'   triples of all stages are those of the whole search, each once:
#'   [combine_triples()] puts them together.
#' @param path `"auto"` (default), `"pairs"` or `"all"`: see Details. The answer
#'   is the same.
#' @param max_memory The most memory to use for the answer: bytes, or a string
#'   such as `"4 GiB"`. `NULL` (default) takes `getOption("fsknn.max_memory")`
#'   where that is set, else all that is free.
#' @param na What missing values (`NA`, `NaN`) are: `"error"` (default), or
#'   `"mean"`, which takes for each the mean of its row's other values (not for
#'   `"sorensen"`).
#' @param verbose Tell the size of the search, what it did, its checksum and
#'   seconds? `FALSE` by default.
#'
#' @returns A data frame of class `fsknn_triples` with each triple once, in the
#'   order of its points in `x`:
#'   * `from`, `to`, `third`: the points, as row names of `x` where it has any
#'     (character), else as row numbers (integer); in the order of `x`;
#'   * `similarity`: of the three, double;
#'   * `pair_from_to`, `pair_from_third`, `pair_to_third`: the similarities of
#'     the pairs, 1 less their distance in [threshold_graph()];
#'   * `at_least`, `at_most`: the bounds that the pairs give.
#'
#'   Its attribute `vertices` holds all points, and `checksum` a hexadecimal
#'   number of 64 bits over all triples and the bits of their similarities. It
#'   does not depend on their order; those of the stages of a search add up to
#'   that of the whole (modulo 2^64).
#' @section Errors:
#' As for [knn_search()]. The triples are counted before memory for them is
#' asked for: more than fit it, or than the 2^31 - 1 rows of a data frame, are a
#' `fsknn_size_error` with the fields `triples`, `most` (what there is room for)
#' and `fits` (a threshold with which there would be room).
#' @references
#' Joubert W, Nance J, Weighill D, Jacobson D (2018). Parallel accelerated
#' vector similarity calculations for genomics applications. *Parallel
#' Computing* 75: 130-145. \doi{10.1016/j.parco.2018.03.009}
#' @seealso [nearest_triples()] for the best triples of each point,
#'   [triple_histogram()] to choose a threshold, [as_igraph()] and
#'   [write_edges()] for graphs of triples, [write_comet_metrics()],
#'   `vignette("triples")`.
#' @export
#' @examples
#' x <- matrix(rexp(60 * 12), nrow = 60)
#' rownames(x) <- paste0("gene", 1:60)
#' triples <- threshold_triples(x, min_similarity = 0.7)
#' triples
#' summary(triples)
#'
#' # those with one gene
#' threshold_triples(x, 0.7, query = "gene7")
threshold_triples <- function(x, min_similarity,
                              metric = c("proportional", "sorensen"), ...,
                              query = NULL, stages = NULL, stage = NULL,
                              path = c("auto", "pairs", "all"),
                              constant = c("error", "isolate"),
                              num_threads = NULL, progress = NULL,
                              verbose = FALSE, points = c("rows", "columns"),
                              assay = NULL, dimred = NULL, max_memory = NULL,
                              na = c("error", "mean")) {
  check_no_more(...)
  rlang::check_required(x)
  rlang::check_required(min_similarity)
  metric <- check_triple_metric(metric)
  na <- check_triple_na(na)
  options <- triple_options()
  path <- check_choice(path, triple_paths, "path")
  least <- check_similarity(min_similarity, options$metric)
  stages <- check_stages(stages, stage)
  search <- new_triple_search(x, options, query, named = TRUE)
  found <- run_triples(search, paste("of at least", least), function(call) {
    find_triples(search, least, path, stages, call)
  })
  new_triples(found, search, least, stages)
}

triple_metrics <- c("proportional", "sorensen")

triple_paths <- c("auto", "pairs", "all")

check_triple_metric <- function(metric, call = caller_env()) {
  synonyms <- metric_synonyms()
  check_choice(
    metric, triple_metrics, "metric",
    synonyms = synonyms[synonyms %in% triple_metrics], call = call
  )
}

check_triple_na <- function(na, call = caller_env()) {
  check_choice(na, c("error", "mean"), "na", call = call)
}

# The options of a verb of triples, checked: on the CPU, in memory.
triple_options <- function(verb = caller_env()) {
  known <- intersect(names(unless_told), ls(verb))
  told <- c(mget(known, envir = verb), list(backend = "cpu"))
  options <- check_options(told, call = verb)
  options$in_memory <- TRUE
  options
}

# The stages to do, as numbers, and how many there are.
check_stages <- function(stages, stage, call = caller_env()) {
  most <- 1e6
  if (is.null(stage)) {
    of <- check_whole_number(stages %||% 1, "stages", 1, most, call = call)
    return(list(todo = seq_len(of), of = of, whole = TRUE))
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
  list(todo = as.integer(stage[[1]]), of = as.integer(stage[[2]]),
       whole = stage[[2]] == 1)
}

# Data read and checked; contains: the rows of which a triple must have one.
new_triple_search <- function(x, options, query = NULL, named = FALSE,
                              call = caller_env()) {
  search <- new_search(x, options, named = named, call = call)
  points <- search$points
  if (!is.matrix(points$values)) {
    abort_argument(
      "{.arg x} must be a matrix: triples are not searched for among
       metafeatures.",
      call
    )
  }
  num_points <- nrow(points$values)
  check_num_points(num_points, 3L, "x", points$turned, call = call)
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
  search$contains <- if (!is.null(query)) {
    unique(find_points(points, query, "query", call = call))
  }
  search
}

# find: called with the user's call, gives what the core found. Told of where
# that is wanted.
run_triples <- function(search, what, find, call = caller_env()) {
  if (!search$options$verbose) {
    return(find(call))
  }
  values <- search$points$values
  num_points <- nrow(values) - length(search$skip)
  lines <- c(
    "Backend" = "cpu",
    "CPU threads" = format_count(search$request$num_threads),
    "Metric" = search$options$metric$name,
    "Triples" = what,
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
  found <- find(call)
  ended <- Sys.time()
  seconds <- as.double(ended - started, units = "secs")
  tell_lines(c(
    paste("End:", format(ended)),
    paste("Seconds:", format(round(seconds, 3), nsmall = 3)),
    if (!is.null(found$stats$path)) paste("Path:", found$stats$path),
    paste("Checksum:", found$checksum)
  ))
  found
}

# Bytes of a triple: its columns, twice while they are put together, and names.
most_triples <- function(search) {
  bytes <- if (is.null(search$points$names)) 120 else 144
  room <- search$options$max_memory %||% free_memory()
  floor(min(room / bytes, max_edges))
}

find_triples <- function(search, least, path, stages, call) {
  most <- most_triples(search)
  find <- function(stage, of, most) {
    in_core(
      cpp_threshold_triples(
        search$points$values, search$request, least,
        search$contains %||% integer(), stage, of, path, most,
        triple_limits(search)
      ),
      call
    )
  }
  if (length(stages$todo) == 1) {
    return(find(stages$todo, stages$of, most))
  }
  parts <- list()
  count <- 0
  for (stage in stages$todo) {
    part <- tryCatch(
      find(stage, stages$of, most - count), fsknn_size_error = function(e) NULL
    )
    # How many there are, and what would fit, only the whole search knows.
    if (is.null(part)) {
      return(find(1, 1, most))
    }
    parts[[length(parts) + 1L]] <- part
    count <- count + length(part$similarity)
  }
  join_triples(parts)
}

triple_limits <- function(search) {
  search$request[c("num_threads", "max_memory", "progress")]
}

triple_columns <- c(
  "from", "to", "third", "similarity", "pair_from_to", "pair_from_third",
  "pair_to_third", "at_least", "at_most"
)

# Parts of one answer, in its order. from, to, third: numbers of points.
join_triples <- function(parts) {
  if (length(parts) == 1) {
    return(parts[[1]])
  }
  columns <- lapply(triple_columns, function(column) {
    unlist(lapply(parts, `[[`, column))
  })
  names(columns) <- triple_columns
  in_order <- order(columns$from, columns$to, columns$third, method = "radix")
  c(lapply(columns, `[`, in_order), list(
    stats = parts[[1]]$stats,
    checksum = add_checksums(vapply(parts, `[[`, "", "checksum"))
  ))
}

# Hexadecimal numbers of 64 bits, added modulo 2^64.
add_checksums <- function(checksums) {
  pieces <- lapply(1:4, function(piece) {
    sum(strtoi(substr(checksums, 4 * piece - 3, 4 * piece), 16L))
  })
  carry <- 0
  words <- character(4)
  for (piece in 4:1) {
    total <- pieces[[piece]] + carry
    words[[piece]] <- sprintf("%04x", as.integer(total %% 65536))
    carry <- total %/% 65536
  }
  paste(words, collapse = "")
}

new_triples <- function(found, search, least, stages) {
  points <- search$points
  columns <- found[triple_columns]
  if (!is.null(points$names)) {
    for (end in c("from", "to", "third")) {
      columns[[end]] <- cpp_names_at(points$names, columns[[end]])
    }
  }
  structure(
    columns,
    row.names = .set_row_names(length(columns$similarity)),
    class = c("fsknn_triples", "data.frame"),
    vertices = data.frame(
      name = points$names %||% seq_len(nrow(points$values))
    ),
    metric = search$options$metric$name,
    min_similarity = least,
    num_features = as.integer(ncol(points$values)),
    query = search$contains,
    stage = if (!stages$whole) c(stages$todo, stages$of),
    checksum = found$checksum
  )
}

#' Put the triples of the stages of a search together
#'
#' What [threshold_triples()] found with `stage = c(1, of)`, `c(2, of)` and so
#' on, in one process or in many, becomes what it finds without.
#'
#' @param ... Triples of [threshold_triples()] of each stage of one search, in
#'   any order; or one list of them.
#' @returns The triples of the whole search, `identical()` to those that
#'   [threshold_triples()] gives without `stage`.
#' @section Errors:
#' Of class `fsknn_argument_error`: what is no triples of a stage, stages of
#' different searches (as far as they tell: points, metric, threshold, query and
#' number of stages), and stages that lack or are there twice.
#' @seealso [threshold_triples()]
#' @export
#' @examples
#' x <- matrix(rexp(60 * 12), nrow = 60)
#' parts <- lapply(1:3, function(i) {
#'   threshold_triples(x, 0.7, stage = c(i, 3))
#' })
#' identical(combine_triples(parts), threshold_triples(x, 0.7))
combine_triples <- function(...) {
  parts <- list(...)
  call <- current_env()
  unknown <- setdiff(names(parts), "")
  if (length(unknown) > 0) {
    abort_argument("There is no argument {.arg {unknown[[1]]}}.", call)
  }
  if (length(parts) == 1 && is.list(parts[[1]]) && !is_triples(parts[[1]])) {
    parts <- parts[[1]]
  }
  check_stages_of_one(parts, call)
  first <- parts[[1]]
  names <- attr(first, "vertices")$name
  columns <- join_triples(lapply(parts, function(part) {
    part_columns <- lapply(triple_columns, function(column) part[[column]])
    names(part_columns) <- triple_columns
    for (end in c("from", "to", "third")) {
      part_columns[[end]] <- vertex_numbers(part_columns[[end]], names, call)
    }
    c(part_columns, list(checksum = attr(part, "checksum")))
  }))
  named <- is.character(first$from)
  for (end in if (named) c("from", "to", "third")) {
    columns[[end]] <- names[columns[[end]]]
  }
  whole <- attributes(first)
  structure(
    columns[triple_columns],
    row.names = .set_row_names(length(columns$similarity)),
    class = c("fsknn_triples", "data.frame"),
    vertices = whole$vertices, metric = whole$metric,
    min_similarity = whole$min_similarity, num_features = whole$num_features,
    query = whole$query, checksum = columns$checksum
  )
}

check_stages_of_one <- function(parts, call) {
  stages <- lapply(parts, attr, "stage", exact = TRUE)
  good <- length(parts) > 0 && all(vapply(parts, is_triples, NA)) &&
    all(lengths(stages) == 2)
  if (!good) {
    abort_argument(
      "Each part must be what {.fn threshold_triples} gave with a {.arg stage},
       as it gave it.",
      call
    )
  }
  facts <- lapply(parts, function(part) {
    c(
      attributes(part)[
        c("vertices", "metric", "min_similarity", "num_features", "query")
      ],
      list(of = attr(part, "stage")[[2]])
    )
  })
  if (length(unique(facts)) > 1) {
    abort_argument("All parts must be of one search.", call)
  }
  of <- stages[[1]][[2]]
  numbers <- vapply(stages, `[[`, 1L, 1L)
  lacking <- setdiff(seq_len(of), numbers)
  if (length(lacking) > 0 || anyDuplicated(numbers) > 0) {
    abort_argument(
      c(
        "Each of the {of} stages must be there once.",
        x = if (length(lacking) > 0) "There is no stage {first_few(lacking)}.",
        x = if (anyDuplicated(numbers) > 0) {
          "Stage {numbers[duplicated(numbers)][[1]]} is there twice."
        }
      ),
      call
    )
  }
}

# estimated: of a sample. fits: the least threshold that would fit, NA where
# none does.
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
      i = if (is.finite(fits)) {
        "{.code min_similarity = {fits}} would fit."
      } else {
        "No threshold leaves few enough. Take a {.arg stage} at a time, or a
         {.arg query}."
      }
    ),
    class = c("fsknn_size_error", "fsknn_error"), call = call,
    triples = result$triples, most = result$most, fits = result$fits
  )
}

# Three digits, never less than it is.
round_up <- function(number) {
  if (!is.finite(number) || number <= 0) {
    return(number)
  }
  unit <- 10^(floor(log10(number)) - 2)
  signif(ceiling(number / unit) * unit, 3)
}
