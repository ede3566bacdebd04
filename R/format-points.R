#' Read and write points
#'
#' Reads points, a matrix with points in rows, from files of three kinds, and
#' writes them. `format` is taken from the ending of the file's name, unless it
#' is given.
#'
#' | `format` | ending | contents |
#' | --- | --- | --- |
#' | `"fbin"` | `.fbin` | big-ann-benchmarks: floats of 4 bytes |
#' | `"u8bin"` | `.u8bin` | big-ann-benchmarks: bytes without a sign |
#' | `"i8bin"` | `.i8bin` | big-ann-benchmarks: bytes with a sign |
#' | `"cibm"` | `.cibm` | text of GPU-FS-kNN, with names and classes |
#' | `"comet"` | `.comet` | vectors of CoMet |
#'
#' A file gets its name when it is complete. After an error, Ctrl-C or a full
#' disk, an older file is unchanged.
#'
#' @section Files of big-ann-benchmarks:
#' Benchmarks of approximate nearest neighbours keep their vectors and queries
#' in binary files of one simple form (Simhadri et al. 2022). Each verb that
#' takes a matrix also takes the path of such a file, or its
#' `read_points(backed = TRUE)`.
#'
#' A file that does not fit in memory is read by blocks. Metrics that take
#' values as they are (`"euclidean"`, `"manhattan"`, `"chebyshev"`,
#' `"canberra"`, `"inner_product"`) read it where it is. On GPUs they do so from
#' 1 GiB of doubles on. The file must not change meanwhile. Other metrics
#' prepare each row once, in a temporary file.
#'
#' A file begins with two unsigned integers of 4 bytes, the numbers of rows n
#' and of columns d. Then n x d values follow, row after row, the lowest byte
#' first. Nothing is compressed, and there are no names. In an `.fbin` file NaN
#' is a missing value: `NA` is written as NaN, and NaN is read as `NA`.
#'
#' The points are always the rows. With `points = "columns"`, use
#' `t(read_points(file))`, which must fit in memory. [read_knn()] reads the
#' neighbours of these benchmarks (`.ibin`).
#'
#' @section The CIBM format:
#' This is the text format of the program that GPU-FS-kNN was published with
#' (Arefin 2012, File S1). It holds a matrix, a name for each point and each
#' sample, and a class for each sample.
#'
#' ```
#' <MicroarrayData>
#' 10  6
#' F_1  1  4.5  2  7.3  8.21  5.71
#' ... a line for each point: its name, then its values ...
#' <SamplesNames>
#' C1  C2  C3  C4  C5  C6
#' <SamplesClasses>
#' 1  1  1  0  0  0
#' <EndOfFile>
#' ```
#'
#' The second line holds the number of points and the number of features. Tabs
#' or spaces separate the fields. If a line of a point has tabs, its name ends
#' at the first tab and may contain spaces. No cell between two tabs may be
#' empty. Blank lines, Windows line ends and a missing last line end are
#' accepted. Text that is not UTF-8 is read as Latin-1. Plain and compressed
#' files (gzip, bzip2, xz) are read. A file is written with gzip if its name
#' ends in `.gz`.
#'
#' All values must be finite numbers. Each is written with as many digits as are
#' needed to read the same double back. Rows without names are called `F_1`,
#' `F_2`, ...; columns `C1`, `C2`, ... Classes are written as text. So `"1"` is
#' read as 1, a factor as text, and 1.5 as `"1.5"`. The format requires
#' classes: without any, each sample gets class 0.
#'
#' @section Vectors of CoMet: CoMet (Joubert et al. 2018) compares all pairs and
#' triples of vectors. Its input has the values of vector 1, then those of
#' vector 2, and so on, as floats of 4 or 8 bytes. A vector is a point here. The
#' file does not contain its shape or type: give `num_features` (CoMet's
#' `--num_field`) and `precision`. [read_edges()] and [write_edges()] are for
#' CoMet's results.
#'
#' @param file Path of the file.
#' @param format `"fbin"`, `"u8bin"`, `"i8bin"`, `"cibm"` or `"comet"`. `NULL`
#'   (default) takes it from the ending of `file`.
#' @param ... Must be empty.
#' @param backed `TRUE` opens a file of big-ann-benchmarks and reads its rows
#'   only when they are used. `FALSE` (default) reads the file into memory.
#' @param num_features Format `"comet"`: number of values of a vector.
#' @param num_points Format `"comet"`: number of vectors, which is checked.
#'   `NULL` (default) takes as many as the file has.
#' @param precision Format `"comet"`: `"single"` for floats of 4 bytes (`NULL`,
#'   the default) or `"double"`.
#' @param byte_order Format `"comet"`: `"little"` for the lowest byte first
#'   (`NULL`, the default) or `"big"`.
#' @param x Points, in any form that [knn_search()] takes. They are whole
#'   numbers from 0 to 255 for `"u8bin"`, and from -128 to 127 for `"i8bin"`.
#'   `"fbin"` stores the nearest float of 4 bytes. For `"cibm"` a numeric
#'   matrix.
#' @param class Format `"cibm"`: one class for each column of `x`, in that order
#'   or with their names: whole numbers, or text without tabs. `NULL` (default)
#'   takes the attribute `classes` of `x`, if any.
#'
#' @returns `read_points()`: a matrix with points in rows, double, or integer
#'   for bytes. From a CIBM file it has row and column names. Its attribute
#'   `classes` has one class for each column. Classes are integers if all are
#'   whole numbers without leading zeros or `+`, otherwise character. With
#'   `backed = TRUE`, an object that represents the file and has `dim()`;
#'   `x[rows, ]` and `as.matrix()` read it. `write_points()`: `file`, invisibly.
#' @section Errors: A file that breaks its format is a `fsknn_file_error`. The
#' error names the file, the line of a text, the condition and what was found. A
#' file that can't be written, and a value that the format can't hold, are such
#' errors, too. An option that is not for the format is a
#' `fsknn_argument_error`.
#' @references
#' Arefin AS, Riveros C, Berretta R, Moscato P (2012). GPU-FS-kNN: A Software
#' Tool for Fast and Scalable kNN Computation Using GPUs. *PLoS ONE* 7(8):
#' e44000, File S1. \doi{10.1371/journal.pone.0044000}
#'
#' Joubert W, Nance J, Weighill D, Jacobson D (2018). Parallel accelerated
#' vector similarity calculations for genomics applications. *Parallel
#' Computing* 75: 130-145. \doi{10.1016/j.parco.2018.03.009}
#'
#' Simhadri HV, Williams G, Aumüller M, et al. (2022). Results of the NeurIPS'21
#' Challenge on Billion-Scale Approximate Nearest Neighbor Search. *Proceedings
#' of Machine Learning Research* 176: 177-189.
#' @seealso [read_knn()] for files of neighbours, [read_edges()] for edges.
#' @export
#' @examples
#' folder <- tempfile()
#' dir.create(folder)
#' base <- file.path(folder, "base.fbin")
#' write_points(matrix(rnorm(200 * 8), nrow = 200), base)
#' read_points(base, backed = TRUE)
#' nn <- knn_search(base, k = 3, metric = "euclidean")
#'
#' x <- rbind(F_1 = c(C1 = 1, C2 = 4.5, C3 = 2), F_2 = c(1, 3, 8))
#' file <- file.path(folder, "two.cibm")
#' write_points(x, file, class = c(1, 1, 0))
#' writeLines(readLines(file))
#' read_points(file)
#'
#' vectors <- file.path(folder, "vectors.comet")
#' write_points(x, vectors, precision = "double")
#' read_points(vectors, num_features = 3, precision = "double")
#' unlink(folder, recursive = TRUE)
read_points <- function(file, format = NULL, ..., backed = FALSE,
                        num_features = NULL, num_points = NULL,
                        precision = NULL, byte_order = NULL) {
  check_no_more(...)
  path <- check_path_in(file)
  format <- file_format(file, format, point_formats, packed = "cibm")
  backed <- check_flag(backed, "backed")
  check_for_formats(format, "comet", list(
    num_features = num_features, num_points = num_points,
    precision = precision, byte_order = byte_order
  ))
  if (!format %in% bin_point_types && backed) {
    abort_for_formats("backed", bin_point_types, format)
  }
  call <- current_env()
  if (format == "cibm") {
    return(read_cibm_file(file, path, call))
  }
  if (format == "comet") {
    return(read_comet_vectors(
      file, path, num_features, num_points, precision, byte_order, call
    ))
  }
  points <- open_bin(file, path, format, call)
  if (backed) points else as.matrix(points)
}

#' @rdname read_points
#' @export
write_points <- function(x, file, format = NULL, ..., class = NULL,
                         precision = NULL, byte_order = NULL) {
  check_no_more(...)
  check_supplied(x)
  path <- check_path_out(file)
  format <- file_format(file, format, point_formats, packed = "cibm")
  check_for_formats(format, "cibm", list(class = class))
  check_for_formats(
    format, "comet", list(precision = precision, byte_order = byte_order)
  )
  call <- current_env()
  if (format == "cibm") {
    write_cibm_file(x, file, path, class, call)
  } else {
    values <- values_to_write(x, call)
    if (format == "comet") {
      write_comet_vectors(values, file, path, precision, byte_order, call)
    } else {
      write_bin_points(values, file, path, format, call)
    }
  }
  invisible(file)
}

point_formats <- c("fbin", "u8bin", "i8bin", "cibm", "comet")

# Returns a matrix, or values that are read by blocks.
values_to_write <- function(x, call) {
  values <- take_points(x, call = call)$values
  if (!is.matrix(values) && !is_read_by_blocks(values) ||
        is_metafeatures(values)) {
    abort_argument("{.arg x} must be a matrix.", call)
  }
  values
}
