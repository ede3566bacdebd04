# The value of searches: index and distance, as two matrices or two lists. The
# class serves the print method. The attributes are the element of a container
# that was read, and the record of the search, which identical() ignores. So the
# results of two ways to search, or of a conversion to another package's shape
# and back, are identical(). `names` are those of the rows, or NULL.
new_neighbours <- function(found, names = NULL, taken_from = NULL) {
  structure(
    name_rows(found[c("index", "distance")], names), class = "fsknn_neighbours",
    taken_from = taken_from, searched = new_searched()
  )
}

# Adds the names of the points to index and distance, matrices or lists.
name_rows <- function(nn, names) {
  if (is.null(names)) {
    return(nn)
  }
  there <- lengths(nn) > 0
  nn[there] <- lapply(nn[there], function(part) {
    if (is.matrix(part)) rownames(part) <- names else names(part) <- names
    part
  })
  nn
}

#' @method format fsknn_neighbours
#' @export
format.fsknn_neighbours <- function(x, ...) {
  as_lists <- is.list(x$index)
  sizes <- if (as_lists) {
    vapply(x$index, function(row) sum(!is.na(row)), 1L)
  } else {
    rowSums(!is.na(x$index))
  }
  none <- sum(sizes == 0)
  element <- describe_element(attr(x, "taken_from"))
  distance <- unlist(x$distance, use.names = FALSE)
  distance <- distance[!is.na(distance)]
  shape <- if (as_lists) {
    paste("lists of", tally(length(sizes), "vector"))
  } else {
    paste(format_count(dim(x$index)), collapse = " x ")
  }
  c(
    paste0(
      "Neighbours of ", tally(length(sizes), "point"),
      if (length(sizes) > 0) paste0(": ", sizes_in_words(sizes)),
      if (!is.null(element)) paste0(", ", element)
    ),
    format_searched(x),
    if (none > 0 && none < length(sizes)) {
      paste("Points with none:", format_count(none))
    },
    if (length(distance) > 0) {
      ends <- vapply(range(distance), format, "", digits = 4)
      paste("Distances:", paste(ends, collapse = " to "))
    },
    paste0(
      "$index", if (!is.null(x$distance)) ", $distance", ": ", shape
    )
  )
}

sizes_in_words <- function(sizes) {
  if (max(sizes) == 0) {
    return("none")
  }
  if (min(sizes) == max(sizes)) {
    return(paste(format_count(sizes[[1]]), "each"))
  }
  paste0(
    format_count(min(sizes)), " to ", format_count(max(sizes)), ", ",
    format_count(sum(sizes)), " in all"
  )
}

#' @export
print.fsknn_neighbours <- function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}
