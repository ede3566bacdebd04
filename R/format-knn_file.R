#' Read and write edges in the format of GPU-FS-kNN
#'
#' The `.knn` text format of the program that GPU-FS-kNN was published with
#' (Arefin 2012, File S1). The first line holds the number of points and the
#' number of edges, each further line one edge: `source target weight`, points
#' counted from 0, the weight with six decimals. The weight is the signed
#' correlation r where the metric is a correlation (whatever `sign` is), else
#' the distance.
#'
#' `write_knn()` writes beside the file's name, and names what is whole: an
#' error, Ctrl-C or a full disk leaves what was there as it was.
#'
#' The format holds neither the names of the points nor the metric: give them to
#' `read_knn()` again. It also rounds: what is read back agrees to six decimals.
#'
#' @param edges Edge data frame from [knn_graph()].
#' @param file Path of the file. `read_knn()` reads plain and compressed (gzip,
#'   bzip2, xz) files; `write_knn()` compresses with gzip where the path ends
#'   in `.gz`.
#' @param ... Must be empty.
#' @param vertices All points in order, as in [as_igraph()]: needed only where
#'   `edges` has lost them.
#' @param metric,sign What the weights are, as in [knn_graph()].
#' @param names Names of the points, in their order: a character vector with a
#'   name for each point of the file. `NULL` (the default): points are numbers.
#'
#' @returns `read_knn()`: an edge data frame as [knn_graph()] gives it: `from`
#'   and `to` (names, else integers counted from 1), `rank` (order by distance
#'   within a source, ties in the order of the file), `distance`, and
#'   `correlation` where the metric is one; rows by source, then rank. Points
#'   without edges are kept in its vertices. `write_knn()`: `file`, invisibly.
#'
#' @section Errors:
#' A file that breaks the format is an error that names the file, the line, what
#' had to be there and what is: a first line that is not two counts, another
#' number of edges than it says, a line that is not two whole numbers and a
#' finite one, a point that is not there or is its own neighbour, an edge given
#' twice, a weight that the metric can't have. Edges whose distances decrease
#' within every source are a warning: `metric` or `sign` is likely another.
#'
#' @references
#' Arefin AS, Riveros C, Berretta R, Moscato P (2012). GPU-FS-kNN: A Software
#' Tool for Fast and Scalable kNN Computation Using GPUs. *PLoS ONE* 7(8):
#' e44000, File S1. \doi{10.1371/journal.pone.0044000}
#'
#' @examples
#' x <- matrix(rnorm(60), nrow = 10)
#' rownames(x) <- paste0("gene", 1:10)
#' edges <- knn_graph(x, k = 3, metric = "pearson", backend = "cpu")
#' file <- tempfile(fileext = ".knn")
#' write_knn(edges, file)
#' head(readLines(file), 4)
#' head(read_knn(file, metric = "pearson", names = rownames(x)), 3)
#' @name knn_file
NULL

#' @rdname knn_file
#' @export
write_knn <- function(edges, file, ..., vertices = NULL) {
  check_no_more(...)
  check_supplied(edges)
  check_edges(edges)
  points <- check_vertices(vertices %||% attr(edges, "vertices"))$name
  from <- vertex_numbers(edges$from, points)
  to <- vertex_numbers(edges$to, points)
  weight <- knn_file_weights(edges)
  check_knn_ends(from, to, points)
  path <- check_path_out(file)

  write_whole_file(file, path, function(put) {
    put(sprintf("%d %d", length(points), nrow(edges)))
    for (rows in row_stretches(length(from), 2e4)) {
      put(sprintf("%d %d %f", from[rows] - 1L, to[rows] - 1L, weight[rows]))
    }
  })
  invisible(file)
}

#' @rdname knn_file
#' @export
read_knn <- function(file, metric = "pearson", sign = "signed", names = NULL) {
  metric <- check_metric(metric)
  sign <- check_sign(sign, metric)
  path <- check_path_in(file)
  knn <- list(file = file, call = current_env(), metric = metric)
  lines <- read_text_lines(file, path)
  knn$number <- which(grepl("[^[:space:]]", lines))
  knn$num_lines <- length(lines)
  knn$text <- lines[knn$number]
  counts <- read_knn_counts(knn)
  check_point_names(names, counts[[1]])
  check_knn_lines(knn, counts[[2]])
  fields <- scan(
    text = knn$text[-1], what = list(0, 0, 0), quiet = TRUE
  )
  check_knn_values(knn, fields, counts[[1]])
  knn_fields_to_edges(fields, counts[[1]], metric, sign, names)
}

# Returns r for correlations, otherwise the distance.
knn_file_weights <- function(edges, call = caller_env()) {
  metric <- metric_facts(attr(edges, "metric") %||% NA)
  if (is.null(metric)) {
    abort_argument(
      c(
        "{.arg edges} has lost its metric, so that it is not known what the
         weights of the file are.",
        i = "Give it back with {.code attr(edges, \"metric\") <-}."
      ),
      call
    )
  }
  column <- if (has_correlation(metric)) "correlation" else "distance"
  weight <- edges[[column]]
  if (!is.numeric(weight) || !all(is.finite(weight))) {
    abort_argument(
      "{.arg edges} must have a column {.code {column}} of finite numbers.",
      call
    )
  }
  limits <- knn_weight_limits(metric)
  beyond <- weight < limits[[1]] | weight > limits[[2]]
  if (any(beyond)) {
    abort_argument(
      c(
        "The column {.code {column}} of {.arg edges} must hold values that
         metric {.val {metric$name}} can have.",
        x = "{weight[beyond][[1]]} is none."
      ),
      call
    )
  }
  weight
}

# A float32 with six decimals may print as 1.000001.
knn_weight_limits <- function(metric) {
  if (has_correlation(metric)) {
    c(-1, 1) * (1 + 1.5e-6)
  } else {
    c(if (metric$below_zero) -1 else 0, 1) * .Machine$double.xmax
  }
}

# Refuses edges that read_knn() would refuse.
check_knn_ends <- function(from, to, names, call = caller_env()) {
  if (length(names) == 0) {
    abort_argument("{.arg vertices} must have points.", call)
  }
  same <- which(from == to)
  if (length(same) > 0) {
    abort_argument(
      c(
        "{.arg edges} must join two points: none is its own neighbour.",
        x = "Row {same[[1]]} joins {.val {names[[from[[same[[1]]]]]]}} with
             itself."
      ),
      call
    )
  }
  twice <- is_repeated_pair(from, to)
  if (any(twice)) {
    at <- which(twice)[[1]]
    abort_argument(
      c(
        "{.arg edges} must have each edge once.",
        x = "Row {at} repeats the edge from {.val {names[[from[[at]]]]}} to
             {.val {names[[to[[at]]]]}}."
      ),
      call
    )
  }
}

# Returns whether the pair also occurs further up. Sorting takes a twentieth of
# the time of duplicated().
is_repeated_pair <- function(from, to) {
  in_order <- order(from, to, method = "radix") # the order is stable
  repeated <- logical(length(from))
  repeated[in_order] <- duplicated_sorted(from[in_order]) &
    duplicated_sorted(to[in_order])
  repeated
}

# --- reading -----------------------------------------------------------------

abort_knn <- function(knn, at, must, found, hint = NULL) {
  abort_file(knn$file, knn$number[[at]], must, found, hint, knn$call)
}

read_knn_counts <- function(knn) {
  what <- "two whole numbers, of points and of edges"
  if (length(knn$text) == 0) {
    abort_file(
      knn$file, NULL, paste("have a first line with", what), "It is empty",
      call = knn$call
    )
  }
  fields <- split_fields(knn$text[[1]])[[1]]
  good <- length(fields) == 2 && all(grepl("^[0-9]{1,10}$", fields))
  counts <- if (good) as.numeric(fields)
  if (!good || counts[[1]] < 1 || any(counts > .Machine$integer.max)) {
    found <- paste("It reads", quote_text(knn$text[[1]]))
    abort_knn(knn, 1, paste("hold", what), found)
  }
  counts
}

check_point_names <- function(names, num_points, call = caller_env()) {
  if (is.null(names)) {
    return(invisible())
  }
  points <- format_bound(num_points)
  if (!is.character(names) || length(names) != num_points) {
    given <- if (is.character(names)) length(names) else describe_type(names)
    abort_argument(
      "{.arg names} must be a character vector with a name for each of the
       {points} points of the file, not {given}.",
      call
    )
  }
  check_text(names, "`names`", "point", "names", call)
  bad <- which(is.na(names) | names == "")
  if (length(bad) > 0) {
    abort_argument(
      c(
        "{.arg names} must not be missing or empty.",
        x = "That of point {bad[[1]]} is."
      ),
      call
    )
  }
  twice <- which(duplicated(names))
  if (length(twice) > 0) {
    name <- names[[twice[[1]]]]
    abort_argument(
      c(
        "{.arg names} must be unique.",
        x = "Points {match(name, names)} and {twice[[1]]} are both called
             {.val {name}}."
      ),
      call
    )
  }
}

# One pattern checks all lines at once, so that scan() cannot fail.
check_knn_lines <- function(knn, num_edges) {
  number <- "[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?"
  edge <- paste0("^[ \t]*[0-9]+[ \t]+[0-9]+[ \t]+", number, "[ \t]*$")
  bad <- which(!grepl(edge, knn$text[-1], perl = TRUE))
  if (length(bad) > 0) {
    at <- bad[[1]] + 1
    abort_knn(
      knn, at, "hold an edge: source, target (whole numbers) and weight",
      paste("It reads", quote_text(knn$text[[at]]))
    )
  }
  given <- length(knn$text) - 1
  if (given != num_edges) {
    abort_file(
      knn$file, NULL, paste("hold", number_of(num_edges, "edge")),
      paste("It holds", format_bound(given)),
      paste("Line", knn$number[[1]], "says so"), knn$call
    )
  }
}

check_knn_values <- function(knn, fields, num_points) {
  abort_first <- function(bad, must, found) {
    at <- which(bad)[1]
    if (!is.na(at)) {
      abort_knn(knn, at + 1, must, found(at))
    }
  }
  reads <- function(at) paste("It reads", quote_text(knn$text[[at + 1]]))
  abort_first(
    fields[[1]] >= num_points | fields[[2]] >= num_points,
    paste("join two of the points 0 to", format_bound(num_points - 1)), reads
  )
  abort_first(
    fields[[1]] == fields[[2]],
    "join two points: none is its own neighbour", reads
  )
  is_r <- has_correlation(knn$metric)
  below_zero <- knn$metric$below_zero
  limits <- knn_weight_limits(knn$metric)
  abort_first(
    !(fields[[3]] >= limits[[1]] & fields[[3]] <= limits[[2]]),
    if (is_r) {
      "have a correlation, from -1 to 1, as weight"
    } else {
      paste0(
        "have a distance, finite", if (!below_zero) " and not below 0",
        ", as weight"
      )
    },
    reads
  )
  from <- fields[[1]]
  to <- fields[[2]]
  twice <- is_repeated_pair(from, to)
  abort_first(twice, "not repeat an edge", function(at) {
    first <- knn$number[[which(from == from[[at]] & to == to[[at]])[[1]] + 1]]
    paste("Line", first, "has the same source and target")
  })
}

knn_fields_to_edges <- function(fields, num_points, metric, sign, names,
                                call = caller_env()) {
  from <- as.integer(fields[[1]]) + 1L
  to <- as.integer(fields[[2]]) + 1L
  weight <- fields[[3]]
  is_r <- has_correlation(metric)
  correlation <- if (is_r) pmax(-1, pmin(1, weight))
  distance <- if (is_r) {
    switch(
      sign,
      signed = 1 - correlation,
      absolute = 1 - abs(correlation),
      negative = 1 + correlation
    )
  } else {
    weight
  }
  warn_if_decreasing(from, distance, call)

  order <- order(from, distance) # stable: ties keep the order of the file
  from <- from[order]
  to <- to[order]
  degree <- rle(from)$lengths
  named <- function(points) if (is.null(names)) points else names[points]
  columns <- list(
    from = named(from), to = named(to), rank = sequence(degree),
    distance = distance[order]
  )
  columns$correlation <- correlation[order]
  # A file may have many more points than edges. Their numbers take no memory
  # here: unlike data.frame(), R stores a sequence as its first and last number.
  vertices <- structure(
    list(name = names %||% seq_len(num_points)),
    row.names = .set_row_names(num_points), class = "data.frame"
  )
  new_knn_edges(
    columns, vertices = vertices,
    metric = metric$name, sign = sign, k = max(degree, 0L)
  )
}

# If every source has its farthest neighbour first, `metric` or `sign` is wrong.
warn_if_decreasing <- function(from, distance, call = caller_env()) {
  same_source <- which(diff(from) == 0)
  steps <- diff(distance)[same_source]
  if (any(steps < 0) && all(steps <= 0)) {
    cli::cli_warn(
      c(
        "The edges of the file come with the farthest neighbour first.",
        i = "Are {.arg metric} and {.arg sign} those it was written with?"
      ),
      class = "fsknn_order_warning", call = call
    )
  }
}
