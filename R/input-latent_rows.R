# Rows of latent factors as points, for benchmarks and tests of any size.
# Nothing is stored: rows are computed when they are read
# (src/core/rows/latent.hpp), and on GPUs in device memory. Searches accept the
# object as a matrix.
#
# Row i is sum_j score(i, j) loading(j, .) + noise. All three are nearly normal,
# and whole numbers times a power of two. So the same arguments give the same
# bits on every machine.

# Arguments of latent_rows():
#   n, d      rows (points) and columns (features)
#   factors   number of factors, 1 to 256
#   noise     standard deviation of a value's own part, relative to that of the
#             factors
#   seed      a whole number, 0 to 2^31 - 1
latent_rows <- function(n, d, factors = 10L, noise = 1, seed = 1L) {
  most <- .Machine$integer.max
  n <- check_whole_number(n, "n", 0, most)
  d <- check_whole_number(d, "d", 1, most)
  factors <- check_whole_number(factors, "factors", 1, 256)
  seed <- check_whole_number(seed, "seed", 0, most)
  # Scores and loadings have this standard deviation, and the noise is scaled to
  # it.
  of_one <- sqrt((2^32 - 1) / 3)
  largest <- floor(most / (sqrt(factors) * of_one))
  good <- is.numeric(noise) && length(noise) == 1 && !is.na(noise) &&
    noise >= 0 && noise <= largest
  if (!good) {
    abort_argument(
      "{.arg noise} must be a number between 0 and {format_count(largest)}, not
       {describe_value(noise)}.",
      current_env()
    )
  }
  multiplier <- round(noise * sqrt(factors) * of_one)
  structure(
    list(
      n = n, d = d, factors = factors, noise = as.integer(multiplier),
      seed = seed
    ),
    class = "latent_rows"
  )
}

is_latent_rows <- function(x) {
  inherits(x, "latent_rows")
}

#' @export
dim.latent_rows <- function(x) {
  c(x$n, x$d)
}

#' @export
length.latent_rows <- function(x) {
  prod(dim(x))
}

#' @export
as.matrix.latent_rows <- function(x, ...) {
  cpp_latent_rows(x, seq_len(x$n))
}

# x[i, ] and x[i, j] are plain matrices; x[cbind(i, j)] are single values.
#' @export
`[.latent_rows` <- function(x, i, j, ..., drop = FALSE) {
  num_subscripts <- nargs() - 1L - !missing(drop)
  if (num_subscripts == 1L && !missing(i)) {
    rows <- unique(i[, 1])
    return(x[rows, ][cbind(match(i[, 1], rows), i[, 2])])
  }
  rows <- if (missing(i)) seq_len(x$n) else seq_len(x$n)[i]
  values <- cpp_latent_rows(x, rows)
  if (missing(j)) values else values[, j, drop = drop]
}

#' @export
as_points.latent_rows <- function(x, arg = "x", call = caller_env()) {
  list(values = x, names = NULL)
}
