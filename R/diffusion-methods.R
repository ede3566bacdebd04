# Methods for diffusion maps: print, tables and plots.

#' @export
print.fsknn_diffusion_map <- function(x, ...) {
  cat(format_map(x), sep = "\n")
  invisible(x)
}

format_map <- function(x) {
  c(
    paste0(
      "Diffusion map: ", tally(nrow(x$coordinates), "point"), ", ",
      tally(ncol(x$coordinates), "coordinate"), ", alpha = ",
      format_bound(x$alpha), ", time = ", format_bound(x$time)
    ),
    format_kernel(x), format_dimension(x), format_components(x),
    format_pairs(x)
  )
}

format_kernel <- function(x) {
  squared <- if (isTRUE(is_one_minus(x$metric))) {
    "2 (1 - r)"
  } else if (unit_of_map(x) != 1) {
    paste0("(d / ", format_number(x$unit), ")^2")
  } else {
    "d^2"
  }
  scaled <- if (is.null(x$local)) {
    paste0("-", squared, " / ")
  } else {
    paste0("-", squared, " / (s_i s_j")
  }
  epsilon <- format_number(x$epsilon)
  paste0(
    "Kernel: exp(", scaled,
    if (is.null(x$local)) {
      epsilon
    } else {
      paste0(
        if (x$epsilon != 1) paste0(" ", epsilon),
        ")), s: distance to neighbour ", x$local
      )
    },
    if (is.null(x$local)) ")", ", ", tally(x$num_pairs, "pair"), " (",
    x$mode, ")"
  )
}

# Returns the unit of distances. Maps of earlier versions have none.
unit_of_map <- function(map) {
  map$unit %||% 1
}

format_dimension <- function(x) {
  if (is.na(x$slope)) {
    return("Epsilon: no two points differ")
  }
  how <- c(
    given = "given", slope = "by the slope", "self-tuning" = "of self-tuning"
  )[[x$chosen]]
  c(
    paste0(
      "Epsilon: ", how, ", valid from ", format_number(x$range[[1]]), " to ",
      format_number(x$range[[2]])
    ),
    paste0(
      "Slope: ", format_number(x$slope, 3), ", dimension about ",
      format_number(x$dimension[["with_diagonal"]], 2), " (",
      format_number(x$dimension[["without"]], 2), " without the diagonal)"
    )
  )
}

format_components <- function(x) {
  mapped <- nrow(x$eigenvalues)
  small <- x$sizes[-seq_len(mapped)]
  if (mapped == 0) {
    small <- x$sizes
  }
  isolated <- sum(is.na(x$component))
  if (mapped == 1 && length(small) == 0 && isolated == 0) {
    return(NULL)
  }
  sizes <- x$sizes[seq_len(mapped)]
  paste0(
    "Components: ",
    paste(
      c(
        paste0(
          mapped, " with a map",
          if (mapped > 0) {
            paste0(
              " (", first_few(format_counts(sizes)), " ",
              if (identical(as.integer(sizes), 1L)) "point" else "points", ")"
            )
          }
        ),
        if (length(small) > 0) {
          paste0(
            format_count(length(small)), " too small (",
            tally(sum(small), "point"), ")"
          )
        },
        if (isolated > 0) tally(isolated, "isolated point")
      ),
      collapse = ", "
    )
  )
}

format_pairs <- function(x) {
  if (nrow(x$eigenvalues) == 0) {
    return(NULL)
  }
  values <- x$eigenvalues[1, ]
  shown <- utils::head(vapply(values, format_number, "", digits = 4), 6)
  c(
    paste0(
      if (nrow(x$eigenvalues) > 1) "Eigenvalues of the largest: " else
        "Eigenvalues: ",
      paste(shown, collapse = " "),
      if (length(values) > length(shown)) " ..."
    ),
    paste0("Largest residual: ", format_number(largest_residual(x), 1))
  )
}

# Returns NA if no eigenpair was found.
largest_residual <- function(x) {
  if (all(is.na(x$residuals))) NA_real_ else max(x$residuals, na.rm = TRUE)
}

format_number <- function(number, digits = 3) {
  format(signif(number, digits), digits = digits, decimal.mark = ".")
}

#' @rdname results
#' @method as.data.frame fsknn_diffusion_map
#' @export
as.data.frame.fsknn_diffusion_map <- function(x, row.names = NULL,
                                              optional = FALSE, ...) {
  check_no_more(...)
  check_unused(row.names, optional)
  names <- rownames(x$coordinates) %||% seq_len(nrow(x$coordinates))
  frame <- data.frame(
    name = names, component = x$component, x$coordinates,
    stringsAsFactors = FALSE
  )
  attr(frame, "row.names") <- .set_row_names(nrow(frame))
  frame
}

#' @export
as.matrix.fsknn_diffusion_map <- function(x, ...) {
  check_no_more(...)
  x$coordinates
}

#' @rdname results
#' @method summary fsknn_diffusion_map
#' @export
summary.fsknn_diffusion_map <- function(object, ...) {
  check_no_more(...)
  mapped <- nrow(object$eigenvalues)
  count <- ncol(object$eigenvalues)
  structure(
    data.frame(
      component = rep(seq_len(mapped), each = count),
      points = rep(object$sizes[seq_len(mapped)], each = count),
      coordinate = rep(colnames(object$eigenvalues), mapped),
      eigenvalue = as.vector(t(object$eigenvalues)),
      residual = as.vector(t(object$residuals)), stringsAsFactors = FALSE
    ),
    header = format_map(object)[seq_len(4 - is.na(object$slope) * 1)],
    class = c("summary.fsknn_diffusion_map", "data.frame")
  )
}

#' @rdname results
#' @export
print.summary.fsknn_diffusion_map <- function(x, ..., n = 10) {
  header <- attr(x, "header")
  if (!is.null(header)) {
    cat(header, sep = "\n")
  }
  class(x) <- "data.frame"
  print(utils::head(x, n), row.names = FALSE, digits = 5)
  if (nrow(x) > n) {
    cat("... and ", tally(nrow(x) - n, "more row"), "\n", sep = "")
  }
  invisible(x)
}
