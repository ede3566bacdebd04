# Finds rows that contain their own number. Without these, neighbours are a
# graph of the points.

has_self <- function(nn) {
  if (is.list(nn$index)) {
    as.logical(
      mapply(function(row, i) i %in% row, nn$index, seq_along(nn$index))
    )
  } else {
    rowSums(nn$index == row(nn$index), na.rm = TRUE) > 0
  }
}

largest_index <- function(nn) {
  max(0L, unlist(nn$index, use.names = FALSE), na.rm = TRUE)
}

# `largest` is the largest index. If it is beyond the rows, row i is not point
# i.
leave_out_self <- function(nn, queries, arg, call,
                           largest = largest_index(nn)) {
  if (isTRUE(queries)) {
    if (isTRUE(nn$are_edges)) {
      abort_argument(
        "{.arg {arg}} must not be edges where rows are queries: edges are
         between the points themselves.",
        call
      )
    }
    return(nn)
  }
  if (nn$self || is.null(queries)) {
    check_graph_indices(largest, num_rows_of(nn), queries, call)
  }
  if (nn$self) {
    return(drop_self(nn, call))
  }
  if (largest <= num_rows_of(nn)) {
    check_no_self(nn, queries, arg, call)
  }
  nn
}

# Neighbours in a graph are rows. Those of a query may be other points.
check_graph_indices <- function(largest, num_points, queries, call) {
  if (largest > num_points) {
    abort_argument(
      c(
        "Neighbours must be of the points themselves.",
        x = "There {cli::qty(num_points)}{?is/are}
             {tally(num_points, \"point\")}, and {largest} is an index.",
        i = if (!is.null(queries)) {
          "If rows are queries, or only some of the points,
           {.code queries = TRUE} takes their neighbours as they are."
        }
      ),
      call
    )
  }
}

check_no_self <- function(nn, queries, arg, call) {
  rows <- which(has_self(nn))
  count <- length(rows)
  if (count == 0) {
    return(invisible())
  }
  others <- num_rows_of(nn) - count
  others_stay <- others == 0 || is.list(nn$index)
  where <- first_few(utils::head(rows, 3), count)
  cure <- paste0("as_knn(", arg, ", self = TRUE)")
  abort_argument(
    c(
      "A point must not be its own neighbour in {.arg {arg}}.",
      x = "{tally(count, \"point\")} {cli::qty(count)}{?is/are}: {where}.",
      i = if (others_stay) {
        "{.code {cure}} takes them out."
      } else {
        "{.code {cure}} takes them out, and the last neighbour of the other
         {cli::qty(others)}{?point/points}."
      },
      # FNN::get.knn() removes the first neighbour, assuming that it is the
      # point itself.
      i = if (!others_stay) {
        "{.code FNN::get.knn()} loses neighbours where rows are the same:
         {.code FNN::get.knnx(x, x, k + 1)} has them."
      },
      i = if (!is.null(queries)) {
        "If rows are queries, and not the points themselves, say
         {.code queries = TRUE}."
      }
    ),
    call
  )
}

drop_self <- function(nn, call) {
  if (is.list(nn$index)) {
    # A point that is absent from its list needs no removal: the lengths of
    # lists differ in any case.
    keep <- Map(function(row, i) is.na(row) | row != i, nn$index,
                seq_along(nn$index))
    nn$index <- Map(`[`, nn$index, keep)
    if (!is.null(nn$distance)) {
      nn$distance <- Map(`[`, nn$distance, keep)
    }
    return(nn)
  }
  columns <- ncol(nn$index)
  if (columns == 0) {
    return(nn)
  }
  own <- nn$index == row(nn$index) & !is.na(nn$index)
  found <- rowSums(own) > 0
  at <- ifelse(found, max.col(own, ties.method = "first"), columns)
  missed <- sum(!found & !is.na(nn$index[, 1]))
  if (missed > 0) {
    cli::cli_warn(
      c(
        "{format_count(missed)} of {format_count(length(found))} points
         {cli::qty(missed)}{?is/are} not among {?its/their} own neighbours.",
        i = "The last neighbour of {cli::qty(missed)}{?this point/these points}
             is left out instead: see {.fn as_knn}."
      ),
      class = "fsknn_self_warning", call = call
    )
  }
  without <- function(values) {
    left <- values[, -columns, drop = FALSE]
    after <- col(left) >= at
    left[after] <- values[, -1, drop = FALSE][after]
    left
  }
  nn$index <- without(nn$index)
  if (!is.null(nn$distance)) {
    nn$distance <- without(nn$distance)
  }
  nn
}

check_distinct_neighbours <- function(nn, names, call) {
  abort_if_repeating(repeating_points(nn), names, call)
}

# Returns the points, in order, that have a neighbour twice.
repeating_points <- function(nn) {
  places <- in_places(nn["index"])
  there <- !is.na(places$index)
  repeating_ends(places$row[there], places$index[there])
}

# `from` and `to` are numbers of points. `order` brings equal pairs together.
repeating_ends <- function(from, to,
                           order = base::order(from, to, method = "radix")) {
  again <- duplicated_sorted(from[order]) & duplicated_sorted(to[order])
  sort(unique(from[order][again]))
}

check_distinct <- function(from, to, names, call, ...) {
  abort_if_repeating(repeating_ends(from, to, ...), names, call)
}

abort_if_repeating <- function(points, names, call) {
  count <- length(points)
  if (count == 0) {
    return(invisible())
  }
  shown <- utils::head(points, 3)
  if (is.character(names)) {
    shown <- paste0("\"", names[shown], "\"")
  }
  where <- first_few(shown, count)
  abort_argument(
    c(
      "A point must not have the same neighbour twice.",
      x = "{tally(count, \"point\")} {cli::qty(count)}{?has/have} one twice:
           {where}."
    ),
    call
  )
}
