# Methods for triples: print and summary.

is_triples <- function(x) {
  inherits(x, "fsknn_triples")
}

triple_attributes <- c(
  "vertices", "metric", "min_similarity", "num_features", "subset", "stage",
  "checksum", "searched"
)

# Rows of triples stay triples. Without one of the point columns, they become a
# data frame. Checksum and stage are for all rows, so they are dropped.
#' @export
`[.fsknn_triples` <- function(x, ...) {
  result <- NextMethod()
  if (is.data.frame(result)) as_triple_rows(result, x) else result
}

# `triples` are those that the rows were taken from.
as_triple_rows <- function(result, triples) {
  attributes(result)[triple_attributes] <- NULL
  of_triples <- c("from", "to", "third", "similarity")
  if (!all(of_triples %in% names(result))) {
    class(result) <- "data.frame"
    return(result)
  }
  kept <- attributes(triples)
  kept <- kept[names(kept) %in% triple_attributes]
  if (!identical(as.list(result)[of_triples], as.list(triples)[of_triples])) {
    kept <- kept[!names(kept) %in% c("checksum", "stage")]
  }
  attributes(result) <- c(attributes(result), kept)
  result
}

# data.frame() calls this method, too, and passes further arguments.
#' @method as.data.frame fsknn_triples
#' @rdname write_edges
#' @export
as.data.frame.fsknn_triples <- function(x, row.names = NULL, optional = FALSE,
                                        ..., vertices = NULL) {
  check_unused(row.names, optional)
  if (!is.null(vertices)) {
    return(frame_with_vertices(x, vertices, current_env()))
  }
  attributes(x)[triple_attributes] <- NULL
  class(x) <- "data.frame"
  x
}

#' @export
print.fsknn_triples <- function(x, ..., n = 10) {
  cat(format_triples_header(x), "\n", sep = "")
  cat_searched(x, points = FALSE)
  shown <- min(nrow(x), n)
  if (shown > 0) {
    top <- as.data.frame(x[seq_len(shown), , drop = FALSE])
    top <- with_id_text(top, c("from", "to", "third"))
    print(top, row.names = FALSE, ...)
  }
  if (nrow(x) > shown) {
    cat("... and ", tally(nrow(x) - shown, "more triple"), "\n", sep = "")
  }
  invisible(x)
}

format_triples_header <- function(x) {
  vertices <- vertex_table(attr(x, "vertices"))
  stage <- attr(x, "stage", exact = TRUE)
  subset <- attr(x, "subset", exact = TRUE)
  parts <- c(
    if (!is.null(vertices)) tally_points(nrow(vertices), x),
    tally(nrow(x), "triple"),
    if (!is.null(subset)) paste("with one of", tally(length(subset), "point")),
    if (!is.null(attr(x, "min_similarity"))) {
      paste("similarity of at least", format_bound(attr(x, "min_similarity")))
    },
    if (!is.null(stage)) paste("stage", stage[[1]], "of", stage[[2]]),
    attr(x, "metric")
  )
  # Rows have lost the checksum. Triples that were read from a file have no
  # threshold.
  are_rows <- is.null(attr(x, "checksum", exact = TRUE)) &&
    !is.null(attr(x, "min_similarity"))
  title <- if (are_rows) "Rows of triples: " else "Triples: "
  paste0(title, paste(parts, collapse = ", "))
}

#' Summary of triples
#'
#' Summarizes the triples of [threshold_triples()]: their similarities, how much
#' of these the pairs explain, and the points that are in most triples.
#'
#' The pairs of a triple imply two bounds, `at_least` and `at_most`. The *place*
#' of the triple between them is a number from 0 to 1: (similarity - at_least) /
#' (at_most - at_least). Among triples with the same three pair similarities,
#' the similarity is larger if fewer features are shared by all three points.
#'
#' At place 0, the pairs share the same features as far as possible: where two
#' points are large together, the third is too. At place 1, each pair shares
#' features of its own. (If pairs share little, this can happen below 1, because
#' the triple cannot reach the `at_most` of [threshold_triples()].) Triples
#' whose bounds differ by less than 1e-12 have no place, because their pairs
#' determine the similarity.
#'
#' @param object Triples of [threshold_triples()], or rows of them.
#' @param ... Must be empty.
#' @param hubs Number of points to list as hubs, the points in most triples.
#' @returns A list of class `summary.fsknn_triples`, with a print method:
#'   * `num_points`, `num_triples`, `points_in` (points in some triple);
#'   * `in_triples`: the number of triples of each point;
#'   * `hubs`: a data frame with `name` and `triples`, the largest number first;
#'   * `quantiles`: a data frame with the quantiles (R's type 7) of
#'     `similarity`, `at_least`, `at_most`, of the largest pair similarity
#'     (`largest_pair`) and of `place`.
#' @section Errors:
#' Triples without the table of their points are an error of class
#' `fsknn_argument_error`.
#' @seealso [threshold_triples()]
#' @method summary fsknn_triples
#' @export
#' @examples
#' x <- matrix(rexp(60 * 12), nrow = 60)
#' summary(threshold_triples(x, 0.7))
summary.fsknn_triples <- function(object, ..., hubs = 5) {
  check_no_more(...)
  hubs <- check_whole_number(hubs, "hubs", 0, .Machine$integer.max)
  ends <- triple_ends(object, "object", current_env())
  names <- ends$vertices$name
  count <- tabulate(unlist(ends$numbers), length(names))
  top <- order(-count)[seq_len(min(hubs, sum(count > 0)))]
  bounded <- is.null(object$alleles)
  values <- c(
    list(similarity = object$similarity),
    if (bounded) as.list(object)[c("at_least", "at_most")],
    list(largest_pair = do.call(pmax, as.list(object)[pair_columns])),
    if (bounded) list(place = triple_place(object))
  )
  quantiles <- lapply(values, function(value) {
    stats::quantile(value, shown_quantiles, names = FALSE, na.rm = TRUE)
  })
  structure(
    list(
      header = format_triples_header(object), num_points = length(names),
      num_triples = nrow(object), points_in = sum(count > 0),
      in_triples = count,
      hubs = data.frame(name = names[top], triples = count[top]),
      alleles = if (!bounded) table(object$alleles),
      quantiles = data.frame(
        value = names(values),
        matrix(
          unlist(quantiles), ncol = length(shown_quantiles), byrow = TRUE,
          dimnames = list(NULL, quantile_names)
        )
      )
    ),
    class = "summary.fsknn_triples"
  )
}

# Returns the position, from 0 to 1, within the bounds that the pairs imply.
triple_place <- function(triples) {
  room <- triples$at_most - triples$at_least
  room[room < 1e-12] <- NA
  pmin(pmax((triples$similarity - triples$at_least) / room, 0), 1)
}

# Returns the three points of each triple as numbers from 1.
triple_ends <- function(triples, arg, call, vertices = NULL) {
  vertices <- vertices %||% attr(triples, "vertices")
  if (is.null(vertices)) {
    abort_argument(
      c(
        "{.arg {arg}} has lost its points.",
        i = "Give {.code attr({arg}, \"vertices\")} of the triples as
             {.fn threshold_triples} made them."
      ),
      call
    )
  }
  vertices <- check_vertices(vertices, call)
  numbers <- lapply(c("from", "to", "third"), function(end) {
    vertex_numbers(triples[[end]], vertices$name, call)
  })
  list(numbers = numbers, vertices = vertices)
}

#' @export
print.summary.fsknn_triples <- function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}

#' @method format summary.fsknn_triples
#' @export
format.summary.fsknn_triples <- function(x, ...) {
  hubs <- paste0(id_text(x$hubs$name), " (", format_counts(x$hubs$triples), ")")
  titles <- c(
    similarity = "Similarity", at_least = "Lower bound by pairs",
    at_most = "Upper bound by pairs", largest_pair = "Largest pair",
    place = "Place between"
  )
  cells <- sprintf("%.3f", as.matrix(x$quantiles[quantile_names]))
  cells[cells %in% c("NA", "NaN")] <- "-"
  dim(cells) <- c(nrow(x$quantiles), length(quantile_names))
  table <- rbind(c("5%", "25%", "median", "75%", "95%"), cells)
  table <- apply(table, 2, formatC, width = 8)
  table <- paste0(
    format(c("", titles[x$quantiles$value])), apply(table, 1, paste,
                                                    collapse = "")
  )
  c(
    x$header,
    paste0(
      "Points in a triple: ", format_count(x$points_in), " of ",
      format_count(x$num_points)
    ),
    if (nrow(x$hubs) > 0) fill_line("Most triples: ", hubs),
    if (!is.null(x$alleles)) {
      counts <- format_counts(x$alleles)
      fill_line("Alleles: ", paste0(names(x$alleles), " (", counts, ")"))
    },
    if (x$num_triples > 0) table
  )
}
