#' The most similar triples of each point
#'
#' For each point, finds the k triples with the largest similarity that contain
#' it (see [threshold_triples()]). This is [knn_search()] with pairs of other
#' points in place of neighbours.
#'
#' @inheritParams threshold_triples
#' @param k Number of triples of each point, a whole number from 1 to the number
#'   of pairs of other points. A larger `k` is an error.
#' @param subset The points whose triples are returned, in the requested order,
#'   as for [knn_search()]. A point that is named twice is searched once. `NULL`
#'   (default): all points.
#' @returns A list of class `fsknn_nearest_triples` with a print method,
#'   `summary()` and `as.data.frame()` (a row for each triple of each point):
#'   * `second`, `third`: integer matrices, points x k, the row numbers (from 1)
#'     of the two other points. `second` is the lower number;
#'   * `similarity`: double matrix, points x k;
#'   * `alleles`: for `"ccc"` and `"duo"` only, a character matrix with the
#'     entries of the tables of alleles. `"110"` is the counted alleles of the
#'     point and of `second` with the other allele of `third`.
#'
#'   Each row is ordered by decreasing similarity, then by `second`, then by
#'   `third`. So there is one right answer. Isolated points (see `constant`)
#'   have `NA`. Rows are named where `x` has row names. The attribute `checksum`
#'   is as in [threshold_triples()].
#' @section Errors: As for [knn_search()]. An answer that does not fit in memory
#'   is a `fsknn_size_error` that names a `k` that would fit.
#' @inherit threshold_triples references
#' @seealso [threshold_triples()] for all triples above a similarity.
#' @export
#' @examples
#' x <- matrix(rexp(60 * 12), nrow = 60)
#' rownames(x) <- paste0("gene", 1:60)
#' nt <- nearest_triples(x, k = 3)
#' nt
#' head(as.data.frame(nt))
#' as.data.frame(nearest_triples(x, k = 3, subset = c("gene7", "gene9")))
nearest_triples <- function(x, k = 10,
                            metric = c(
                              "proportional", "sorensen", "ccc", "duo"
                            ),
                            ..., subset = NULL,
                            path = c("auto", "pairs", "all")) {
  check_supplied(x)
  metric <- check_triple_metric(metric)
  options <- triple_options("nearest_triples", ...)
  path <- check_triple_path(path, metric)
  search <- new_triple_search(x, options, subset)
  k <- check_triple_k(k, search)
  check_room_for_nearest(k, search)
  search <- ask_triples(search, "nearest", path = path)
  search$request$k <- k
  search$num_rows <- length(asked_rows(search))
  finish_triples(run_triples(search), search)
}

# Returns the points whose triples are requested.
asked_rows <- function(search) {
  search$request$triples$contains %||% seq_len(nrow(search$points$values))
}

new_nearest_triples <- function(found, search) {
  of <- asked_rows(search)
  names <- point_names(search$points)
  answer <- found[names(triple_types(search$request))]
  if (!is.null(answer$alleles)) {
    answer$alleles[] <- as.character(triple_alleles(answer$alleles))
  }
  answer <- lapply(answer, function(part) {
    if (!is.null(names)) rownames(part) <- names[of]
    part
  })
  nearest <- structure(
    answer, class = "fsknn_nearest_triples", point = of,
    names_of_points = names, metric = search$options$metric$name,
    checksum = found$checksum
  )
  with_searched(nearest, search)
}

check_triple_k <- function(k, search, call = caller_env()) {
  others <- nrow(search$points$values) - length(search$skip) - 1
  isolated <- length(search$skip)
  check_whole_number(
    k, "k", 1, min(choose(others, 2), .Machine$integer.max),
    hint = paste0(
      "{.arg x} has ", tally(others + 1 + isolated, "point"),
      if (isolated > 0) {
        paste0(", ", format_count(isolated), " of them isolated")
      },
      ", and a point is in as many triples as there are pairs of other points."
    ),
    call = call
  )
}

# The answer takes 16 bytes for each triple, in addition to the lists that it is
# made from.
check_room_for_nearest <- function(k, search, call = caller_env()) {
  points <- length(
    search$contains %||% seq_len(nrow(search$points$values))
  )
  room <- search$options$max_memory %||% free_memory()
  most <- floor(room / (32 * points))
  if (k > most) {
    cli_abort(
      c(
        "There is no room for {format_count(k)} triples of each of
         {format_count(points)} points.",
        i = if (most >= 1) {
          "{.code k = {format(most, scientific = FALSE)}} would fit."
        } else {
          "Ask for some points by {.arg subset}, or give more by
           {.arg max_memory}."
        }
      ),
      class = c("fsknn_size_error", "fsknn_error"), call = call
    )
  }
}

#' @export
print.fsknn_nearest_triples <- function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}

#' @method format fsknn_nearest_triples
#' @export
format.fsknn_nearest_triples <- function(x, ...) {
  none <- sum(is.na(x$similarity[, 1]))
  some <- none < nrow(x$similarity)
  ends <- if (some) range(x$similarity, na.rm = TRUE)
  ends <- vapply(ends, format, "", digits = 4)
  c(
    paste0(
      "Triples of ", tally(nrow(x$similarity), "point"), ": ",
      format_count(ncol(x$similarity)), " each, ", attr(x, "metric")
    ),
    format_searched(x),
    if (none > 0) paste("Points with none:", format_count(none)),
    if (some) paste("Similarities:", paste(ends, collapse = " to ")),
    paste(
      paste0("Matrices ", paste(names(x), collapse = ", "), ":"),
      paste(format_counts(dim(x$similarity)), collapse = " x ")
    )
  )
}

#' @rdname results
#' @method as.data.frame fsknn_nearest_triples
#' @export
as.data.frame.fsknn_nearest_triples <- function(x, row.names = NULL,
                                                optional = FALSE, ...) {
  check_no_more(...)
  check_unused(row.names, optional)
  names <- attr(x, "names_of_points")
  size <- dim(x$similarity)
  named <- function(numbers) if (is.null(names)) numbers else names[numbers]
  frame <- data.frame(
    point = named(rep(attr(x, "point"), each = size[[2]])),
    rank = rep(seq_len(size[[2]]), size[[1]]),
    second = named(as.vector(t(x$second))),
    third = named(as.vector(t(x$third))),
    similarity = as.vector(t(x$similarity))
  )
  frame$alleles <- if (!is.null(x$alleles)) {
    factor(as.vector(t(x$alleles)), levels(triple_alleles(1L)))
  }
  frame <- frame[!is.na(frame$similarity), , drop = FALSE]
  attr(frame, "row.names") <- .set_row_names(nrow(frame))
  frame
}

#' @rdname results
#' @method summary fsknn_nearest_triples
#' @export
summary.fsknn_nearest_triples <- function(object, ...) {
  check_no_more(...)
  rows <- as.data.frame(object)
  structure(
    list(
      header = format(object)[[1]],
      quantiles = quantiles_by_rank(rows$rank, rows$similarity)
    ),
    class = "summary.fsknn_nearest_triples"
  )
}

#' @export
print.summary.fsknn_nearest_triples <- function(x, ...) {
  lines <- if (nrow(x$quantiles) > 0) {
    of_ranks <- format_quantiles(x$quantiles, "correlation")
    c("Similarity of triples, by rank:", of_ranks[-1])
  } else {
    "None of the points has one."
  }
  cat(x$header, lines, sep = "\n")
  invisible(x)
}
