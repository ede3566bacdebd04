# Results that are written to a file during the search, as rows of a CSV file or
# in CoMet's formats. They need not fit in memory.

found_formats <- c("csv", comet_formats)

# Returns NULL, or list(file, path, format).
check_found_file <- function(file, format, call = caller_env()) {
  if (is.null(file)) {
    if (!is.null(format)) {
      abort_argument("{.arg format} is for a {.arg file}.", call)
    }
    return(NULL)
  }
  path <- check_path_out(file, call = call)
  format <- file_format(
    file, format, found_formats, packed = "csv", call = call
  )
  list(file = file, path = path, format = format)
}

# `find` is called with a function that takes a list of columns; those named
# `ends` are numbers of points. `names` are those of the points, or NULL.
# Returns the value of `find`.
write_found <- function(sink, columns, ends, names, find, call) {
  if (sink$format == "csv") {
    write_whole_file(sink$file, sink$path, call = call, write = function(put) {
      put(paste(csv_quoted(columns), collapse = ","))
      in_file <- if (!is.null(names)) csv_quoted(names)
      find(function(part) {
        if (!is.null(names)) {
          part[ends] <- lapply(part[ends], function(at) in_file[at])
        }
        put_csv_rows(put, part[columns])
      })
    })
  } else {
    write_whole_bytes(sink$file, sink$path, call = call, write = function(put) {
      find(function(part) {
        for (rows in row_ranges(length(part$similarity), 2^18)) {
          put(comet_records(
            lapply(part[ends], `[`, rows), part$similarity[rows], "little",
            part$alleles[rows]
          ))
        }
      })
    })
  }
}

# Makes the value of a verb that wrote a file. `what` is "edge" or "triple", and
# `count` is their number.
new_found_file <- function(sink, search, what, count, least, ...) {
  written <- structure(
    list(
      file = sink$file, format = sink$format, what = what, count = count,
      metric = search$options$metric$name, min_similarity = least,
      num_points = nrow(search$points$values), ...
    ),
    class = "fsknn_found_file"
  )
  with_searched(written, search)
}

#' @export
print.fsknn_found_file <- function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}

#' @method format fsknn_found_file
#' @export
format.fsknn_found_file <- function(x, ...) {
  c(
    paste0(
      tally(x$count, x$what), " of ", tally(x$num_points, "point"), ", ",
      x$metric, " of at least ", format(x$min_similarity, digits = 15),
      if (!is.null(x$stage)) {
        paste(", stage", x$stage[[1]], "of", x$stage[[2]])
      },
      if (!is.null(x$num_subset)) {
        paste0(", with any of ", tally(x$num_subset, "point"))
      }
    ),
    format_searched(x),
    paste0("File: ", x$file, " (", x$format, ")"),
    if (!is.null(x$checksum)) paste("Checksum:", x$checksum)
  )
}
