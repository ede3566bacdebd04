# Converts the user's objects to the form that the core takes. The verbs call
# take_points(). It takes the matrix from a container (R/input-containers.R) and
# transposes it if its columns are the points. as_points() then returns
#   values  a double, integer or logical matrix, points in rows, passed on
#           without a copy; or metafeatures
#   names   the row names, or NULL
#   transposed  TRUE if the points were columns of the user's object; only
#           messages use it
#   features  the names of the features as given, before any is left out
#   numbered  TRUE if the names of the points are only row numbers
# A new kind of matrix is one method of as_points(), and a new container one
# method of take_matrix(). Both are S3 methods registered in NAMESPACE, so the
# package of the class need not be installed.
as_points <- function(x, arg = "x", call = caller_env()) {
  UseMethod("as_points")
}

# Returns how to read `x` and `query`. `chosen` says whether the user chose rows
# or columns as the points.
check_input <- function(points = point_sides, assay = NULL, dimred = NULL,
                        call = caller_env()) {
  chosen <- !identical(points, point_sides)
  points <- check_choice(points, point_sides, "points", call = call)
  check_element(assay, "assay", call = call)
  check_element(dimred, "dimred", call = call)
  if (!is.null(assay) && !is.null(dimred)) {
    abort_argument(
      "Only one of {.arg assay} and {.arg dimred} can say where the values
       are.",
      call
    )
  }
  list(points = points, chosen = chosen, assay = assay, dimred = dimred)
}

point_sides <- c("rows", "columns")

# Checks a name or a number of an element of a container.
check_element <- function(value, arg, call = caller_env()) {
  good <- is.null(value) || is_whole(value) && value >= 1 ||
    rlang::is_string(value) && !is.na(value) && is_valid_text(value)
  if (!good) {
    given <- describe_value(value)
    abort_argument(
      "{.arg {arg}} must be a name or a number, not {given}.", call
    )
  }
}

# If plain values are given beside a container, the element to extract concerns
# only the container.
input_beside <- function(input, own, other) {
  of_container <- is_container(other) || is_index(other) && other$of_container
  if (of_container && !is_container(own)) {
    input[c("assay", "dimred")] <- list(NULL)
  }
  input
}

# If the query and `x` are both experiments and no assay is named, the query
# uses the assay with the name of that of x. `arg` is the name of the query in
# errors.
input_of_query <- function(input, query, x, arg = "query",
                           call = caller_env()) {
  input <- input_beside(input, query, x)
  of_experiment <- inherits(x, "SummarizedExperiment") ||
    is_index(x) && x$of_experiment
  if (!is.null(input$assay %||% input$dimred) || !of_experiment ||
        !inherits(query, "SummarizedExperiment")) {
    return(input)
  }
  name <- if (is_index(x)) {
    unname(x$search$points$taken_from["assay"])
  } else {
    names <- SummarizedExperiment::assayNames(x)
    at <- default_assay(names, length(SummarizedExperiment::assays(x)))
    if (is.character(at)) at else names[at]
  }
  known <- SummarizedExperiment::assayNames(query)
  if (length(name) == 0 || is.na(name) || !nzchar(name) || is.null(known)) {
    return(input)
  }
  if (!name %in% known) {
    known <- first_few(paste0("\"", known, "\""), limit = 10L)
    abort_argument(
      c(
        "{.arg {arg}} must have the assay that is taken of {.arg x}:
         {.val {name}}.",
        x = "There are: {known}.",
        i = "{.arg assay} names another one, of both."
      ),
      call
    )
  }
  input$assay <- name
  input
}

take_points <- function(x, input = NULL, arg = "x", call = caller_env()) {
  input <- input %||% check_input()
  taken <- take_matrix(x, input, arg = arg, call = call)
  if (arg == "x") {
    tell_if_distances(taken$values, arg)
    tell_if_ids(taken$values, taken$turn, arg)
  }
  if (!taken$turn) {
    points <- as_points(taken$values, arg = arg, call = call)
  } else {
    points <- as_points(turn(taken$values, arg, call), arg = arg, call = call)
  }
  points$transposed <- taken$turn || taken$cells
  points$features <- names_of_taken(taken, "features")
  points$numbered <- !taken$turn && is.data.frame(taken$values) &&
    is.null(row_names_of(taken$values))
  check_names_text(points$names, arg, point_side(points), call)
  check_names_text(
    feature_names(points$values), arg, feature_side(points), call
  )
  points$taken_from <- taken$taken_from
  points
}

# Returns the names of points for matching. Automatic row numbers of a data
# frame are not names.
known_points <- function(points) {
  if (!isTRUE(points$numbered)) point_names(points)
}

# Some objects are incomplete although they look complete. Reading them crashes
# R or gives arbitrary values.
check_intact <- function(values, arg, call) {
  if (inherits(values, "big.matrix") && has_no_data(values)) {
    abort_argument(
      c(
        "{.arg {arg}} must be a {.cls big.matrix} whose data are there.",
        x = "Its pointer is nil: such a matrix does not outlive its session, nor
             does it come back from a file of R's.",
        i = "Keep {.code bigmemory::describe()} of it, and give what
             {.code bigmemory::attach.big.matrix()} makes of that."
      ),
      call
    )
  }
  if (inherits(values, "Matrix")) {
    found <- methods::validObject(values, test = TRUE)
    if (!isTRUE(found)) {
      abort_argument(
        c(
          "{.arg {arg}} must be a valid {.cls {class(values)}}.",
          x = "{found}."
        ),
        call
      )
    }
  }
  if (inherits(values, "DelayedMatrix")) {
    DelayedArray::seedApply(values, check_intact, arg, call)
  }
  invisible()
}

has_no_data <- function(x) {
  identical(methods::slot(x, "address"), methods::new("externalptr"))
}

# Returns the number of points and of features without reading a value.
points_size <- function(x, input = NULL, arg = "x", call = caller_env()) {
  input <- input %||% check_input()
  taken <- take_matrix(x, input, arg = arg, call = call)
  values <- taken$values
  check_intact(values, arg, call)
  size <- if (isS4(values) && length(dim(values)) == 2) {
    dim(values)
  } else {
    dim(as_points(values, arg = arg, call = call)$values)
  }
  if (taken$turn) rev(size) else size
}

# Transposes the object. If it is not a matrix, as_points() reports that.
turn <- function(x, arg, call = caller_env()) {
  check_intact(x, arg, call)
  if (is.data.frame(x)) {
    points <- as_points(x, arg = arg, call = call)
    values <- points$values
    dimnames(values) <- list(points$names, names(x))
    return(t(values))
  }
  if (is_metafeatures(x)) {
    abort_argument(
      "{.arg points} can't be \"columns\" with metafeatures, whose points are
       rows.",
      call
    )
  }
  if (inherits(x, "fsknn_bin_file")) {
    abort_argument(
      c(
        "{.arg points} can't be \"columns\" with a file of vectors, whose points
         are rows.",
        x = "A column is spread over the whole file.",
        i = "If it fits in memory: {.code t(read_points(file))}."
      ),
      call
    )
  }
  if (length(dim(x)) != 2) {
    return(x)
  }
  if (inherits(x, "big.matrix")) {
    x <- big_rows(x)
  }
  tryCatch(t(x), error = function(err) {
    given <- describe_type(x)
    abort_argument(
      "{.arg points} can't be \"columns\" where {.arg {arg}} is {given}.", call
    )
  })
}

#' @export
as_points.matrix <- function(x, arg = "x", call = caller_env()) {
  if (!is_number_like(x)) {
    abort_input(x, arg, call)
  }
  list(values = x, names = rownames(x))
}

#' @export
as_points.data.frame <- function(x, arg = "x", call = caller_env()) {
  good <- vapply(x, is_number_like, NA) & lengths(lapply(x, dim)) == 0
  if (!all(good)) {
    check_names_text(names(x), arg, "column", call)
    check_columns_text(x[!good], arg, call)
    types <- vapply(x[!good], describe_type, "")
    bad <- paste0("`", names(types), "` is ", types)
    where <- first_few(bad)
    # A numeric matrix as a column is numeric, but not one feature.
    nested <- !good & vapply(x, is_number_like, NA)
    text <- text_of_numbers(x)
    frame <- converted_code(x, text, arg)
    kept <- keep_numbers(x, arg, frame, text$columns)
    # Leaving out such a column would leave out a sample.
    unreadable <- length(text$columns) > 0 && is.null(text$options)
    abort_argument(
      c(
        "Every column of {.arg {arg}} must be a numeric vector.",
        x = "Column {where}.",
        detail_bullets(text$found),
        i = text$reading,
        i = if (all(good | nested) || unreadable) {
          NULL
        } else if (!is.null(kept$column)) {
          "To have the values of {.arg {kept$column}} as names:
           {.code {kept$code}}."
        } else if (is.null(frame)) {
          "Leave out such columns, for example with {.code {kept$code}}."
        } else {
          "{if (is.null(text$reading)) \"Convert\" else \"Or convert\"} what is
           there: {.code {kept$code}}."
        },
        i = if (any(nested)) {
          "With {.code as.matrix({arg})} each column of a matrix in it is one."
        }
      ),
      call
    )
  }
  # Automatic row names (1, 2, ...) are not names.
  names <- if (.row_names_info(x) > 0) row.names(x)
  values <- if (length(x) == 0) numeric() else unlist(x, use.names = FALSE)
  # matrix() would copy the values.
  dim(values) <- c(nrow(x), length(x))
  dimnames(values) <- list(NULL, names(x))
  list(values = values, names = names)
}

# Containers give the expression values, or the default assay.
#' @export
as_points.ExpressionSet <- function(x, arg = "x", call = caller_env()) {
  as_points(expression_of(x, arg, call), arg, call)
}

#' @export
as_points.SummarizedExperiment <- function(x, arg = "x", call = caller_env()) {
  as_points(expression_of(x, arg, call), arg, call)
}

#' @export
as_points.EList <- function(x, arg = "x", call = caller_env()) {
  as_points(expression_of(x, arg, call), arg, call)
}

#' @export
as_points.EListRaw <- as_points.EList

#' @export
as_points.DGEList <- as_points.EList

#' @export
as_points.DataFrame <- function(x, arg = "x", call = caller_env()) {
  as_points(expression_of(x, arg, call), arg, call)
}

#' @export
as_points.default <- function(x, arg = "x", call = caller_env()) {
  # A matrix with a class of its own (table, AsIs) is still a matrix.
  if (is.matrix(x) && !isS4(x) && is_number_like(x)) {
    return(as_points.matrix(unclass(x), arg = arg, call = call))
  }
  check_is_data(x, arg, call)
  abort_input(x, arg, call)
}

# integer64 has the type double, but its bits are not those of a double.
is_number_like <- function(x) {
  (is.numeric(x) || is.logical(x)) && !inherits(x, "integer64")
}

# Could these be names or numbers of rows?
can_be_rows <- function(x) {
  plain <- is.null(dim(x)) && !is.object(x)
  plain && (is.character(x) || is.numeric(x) && length(x) > 0 &&
              isTRUE(all(x >= 1 & x == trunc(x))))
}

abort_input <- function(x, arg, call) {
  given <- describe_type(x)
  hint <- if (is.character(x) || is.factor(x)) {
    check_labels_text(x, arg, call)
    hint_of_text(x, arg)
  } else if (isS4(x)) {
    hint_of_s4(x, arg)
  } else if (inherits(x, "integer64")) {
    c(i = "Make its values double: {.code {code_of_doubles(x, arg)}}.")
  } else if (is.numeric(x) && is.null(dim(x)) && !is.object(x)) {
    c(
      i = "If it is one point, use {.code t({arg})}. If it has points with one
           feature, use {.code as.matrix({arg})}."
    )
  }
  if (arg == "query" && can_be_rows(x)) {
    hint <- c(
      hint,
      i = "For some of the points of {.arg x}, use
           {.code knn_search(x, subset = {arg})}."
    )
  }
  abort_argument(
    c(
      "{.arg {arg}} must be a numeric matrix or a data frame of numeric columns,
       not {given}.",
      hint
    ),
    call
  )
}
