#' Combining the stages of a search for pairs or triples
#'
#' `rbind()` combines the results of [threshold_triples()],
#' [triple_histogram()] or [threshold_graph()] with `stage = c(1, of)`, `c(2, of)` and so on. The
#' stages may come from one process or from many. The result is that of one
#' search without `stage`.
#'
#' Rows of triples or edges, which have lost their stage, are bound as the rows
#' of a plain data frame (triples) or of edges.
#'
#' @param ... Triples of [threshold_triples()], counts of [triple_histogram()],
#'   or edges of [threshold_graph()], of every stage of one search, in any
#'   order. For a list of stages, use `do.call(rbind, stages)`.
#' @param deparse.level Not used: from the generic.
#' @returns The triples, counts or edges of the whole search, `identical()` to those
#'   of a search without `stage`. A single result of a whole search is returned
#'   as it is. For rows of triples, a data frame.
#' @section Errors:
#' The following are errors of class `fsknn_argument_error`:
#' * stages together with something else, or several whole searches;
#' * stages of different searches, if the points, metric, threshold, subset,
#'   breaks or number of stages differ;
#' * a stage that is missing or given twice.
#' @seealso [threshold_triples()], [triple_histogram()], [threshold_graph()]
#' @name rbind.fsknn_triples
#' @method rbind fsknn_triples
#' @export
#' @examples
#' x <- matrix(rexp(60 * 12), nrow = 60)
#' parts <- lapply(1:3, function(i) {
#'   threshold_triples(x, 0.7, stage = c(i, 3))
#' })
#' identical(do.call(rbind, parts), threshold_triples(x, 0.7))
rbind.fsknn_triples <- function(..., deparse.level = 1) {
  parts <- unname(list(...))
  of_search <- c("stage", "checksum")
  are_rows <- vapply(parts, function(part) {
    is.data.frame(part) && !any(of_search %in% names(attributes(part)))
  }, NA)
  if (all(are_rows)) {
    return(do.call(rbind, lapply(parts, as.data.frame)))
  }
  call <- current_env()
  check_stages_of_one(parts, call)
  first <- parts[[1]]
  points <- vertex_table(attr(first, "vertices"))
  known <- check_vertices(points, call)$name
  names <- columns_of_triples(attr(first, "metric"))
  columns <- join_triples(lapply(parts, function(part) {
    part_columns <- as.list(part)[names]
    for (end in c("from", "to", "third")) {
      part_columns[[end]] <- vertex_numbers(part_columns[[end]], known, call)
    }
    c(part_columns, list(checksum = attr(part, "checksum")))
  }))
  named <- is.character(first$from)
  for (end in if (named) c("from", "to", "third")) {
    columns[[end]] <- points$name[columns[[end]]]
  }
  whole <- attributes(first)
  structure(
    columns[names],
    row.names = .set_row_names(length(columns$similarity)),
    class = c("fsknn_triples", "data.frame"),
    vertices = whole$vertices, metric = whole$metric,
    min_similarity = whole$min_similarity, num_features = whole$num_features,
    subset = whole$subset, checksum = columns$checksum,
    searched = searched_in_all(parts)
  )
}

#' @rdname rbind.fsknn_triples
#' @method rbind fsknn_triple_histogram
#' @export
rbind.fsknn_triple_histogram <- function(..., deparse.level = 1) {
  parts <- unname(list(...))
  check_stages_of_one(parts, current_env())
  add_histograms(parts)
}

#' @rdname rbind.fsknn_triples
#' @method rbind fsknn_edges
#' @export
rbind.fsknn_edges <- function(..., deparse.level = 1) {
  parts <- unname(list(...))
  stages <- lapply(parts, attr, "stage", exact = TRUE)
  if (all(lengths(stages) == 0)) {
    return(rbind.data.frame(...))
  }
  check_stages_of_one(parts, current_env())
  parts <- parts[order(vapply(stages, `[[`, 1L, 1))]
  edges <- do.call(rbind.data.frame, parts)
  attributes(edges)[c("stage", "min_similarity")] <- NULL
  attr(edges, "searched") <- searched_in_all(parts)
  edges
}

# Returns the record of the whole search: the rows of all stages, and their
# seconds, if known.
searched_in_all <- function(parts) {
  all <- lapply(parts, searched_of)
  facts <- all[[1]]
  if (!is.null(facts$num_rows)) {
    facts$num_rows <- sum(vapply(all, `[[`, 1L, "num_rows"))
  }
  seconds <- unlist(lapply(all, `[[`, "seconds"))
  facts$seconds <- if (length(seconds) == length(parts)) sum(seconds)
  new_searched(facts)
}

check_stages_of_one <- function(parts, call) {
  # A single stage is the whole search and has no attribute for stages.
  stages <- lapply(parts, function(part) {
    is_whole <- length(parts) == 1 && !is.null(attr(part, "checksum"))
    attr(part, "stage", exact = TRUE) %||% if (is_whole) c(1L, 1L)
  })
  of_stages <- length(parts) > 0 && all(lengths(stages) == 2)
  all_triples <- all(vapply(parts, function(part) {
    is_triples(part) &&
      all(columns_of_triples(attr(part, "metric")) %in% names(part))
  }, NA))
  good <- of_stages && (all_triples ||
    all(vapply(parts, is_triple_histogram, NA)) ||
    all(vapply(parts, inherits, NA, "fsknn_edges")))
  if (!good) {
    abort_argument(
      c(
        "All parts must be results of {.fn threshold_triples} with a
         {.arg stage}, or all of {.fn triple_histogram}, or all of
         {.fn threshold_graph}, and unchanged.",
        i = "To bind rows, use {.fn as.data.frame} first."
      ),
      call
    )
  }
  facts <- Map(function(part, stage) {
    c(
      attributes(part)[
        c("vertices", "metric", "sign", "min_similarity", "num_features",
          "subset", "num_points", "weighted", "num_covariates")
      ],
      if (is_triple_histogram(part)) as.list(part)[c("lower", "upper")],
      list(of = stage[[2]])
    )
  }, unname(parts), stages)
  if (length(unique(facts)) > 1) {
    abort_argument("All stages must be of one search.", call)
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

# Joins parts of one answer in its order. from, to and third are numbers of
# points.
join_triples <- function(parts) {
  names <- setdiff(names(parts[[1]]), "checksum")
  columns <- lapply(rlang::set_names(names), function(column) {
    unlist(lapply(parts, `[[`, column))
  })
  in_order <- order(columns$from, columns$to, columns$third, method = "radix")
  c(lapply(columns, `[`, in_order), list(
    checksum = add_checksums(vapply(parts, `[[`, "", "checksum"))
  ))
}

# Adds hexadecimal numbers of 64 bits modulo 2^64.
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
