# The text format of GPU-FS-kNN for edges: see read_knn().

write_knn_file <- function(edges, file, path, vertices, call) {
  check_edges(edges, call)
  vertices <- vertices %||% attr(edges, "vertices")
  points <- check_vertices(vertices, call)$name
  from <- vertex_numbers(edges$from, points, call)
  to <- vertex_numbers(edges$to, points, call)
  weight <- knn_file_weights(edges, call)
  check_knn_ends(from, to, points, call)
  write_whole_file(file, path, call = call, write = function(put) {
    put(sprintf("%d %d", length(points), nrow(edges)))
    for (rows in row_ranges(length(from), 2e4)) {
      put(sprintf("%d %d %f", from[rows] - 1L, to[rows] - 1L, weight[rows]))
    }
  })
}

read_knn_file <- function(file, path, metric, sign, names, call) {
  metric <- check_metric(metric %||% "pearson", call = call)
  sign <- check_sign(sign %||% "signed", metric, call = call)
  knn <- list(file = file, call = call, metric = metric)
  lines <- read_text_lines(file, path, call)
  knn$number <- which(grepl("[^[:space:]]", lines))
  knn$num_lines <- length(lines)
  knn$text <- lines[knn$number]
  counts <- read_knn_counts(knn)
  check_point_names(names, counts[[1]], call)
  check_knn_lines(knn, counts[[2]])
  fields <- scan(
    text = knn$text[-1], what = list(0, 0, 0), quiet = TRUE
  )
  check_knn_values(knn, fields, counts[[1]])
  knn_fields_to_edges(fields, counts[[1]], metric, sign, names, call)
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
    c(if (may_be_below_zero(metric)) -1 else 0, 1) * .Machine$double.xmax
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
  below_zero <- may_be_below_zero(knn$metric)
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
