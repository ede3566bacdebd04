# The argument `subset`: the points whose neighbours among all points are
# requested.

# Returns row numbers of the points (integer) in the requested order, or NULL.
# With `distinct`, a repeated point is an error.
check_subset <- function(subset, points, distinct = FALSE,
                         call = caller_env()) {
  if (is.null(subset)) {
    return(NULL)
  }
  num_points <- nrow(points$values)
  side <- point_side(points)
  rows <- if (is.logical(subset)) {
    check_logical_subset(
      match_names(subset, known_points(points), "subset", "points", call),
      num_points, call
    )
  } else if (is.character(subset)) {
    check_text(subset, "`subset`", "position", "subset", call)
    find_subset(subset, points, call)
  } else {
    check_subset_numbers(subset, num_points, side, call)
  }
  if (distinct && anyDuplicated(rows) > 0) {
    repeated <- unique(rows[duplicated(rows)])
    where <- first_few(utils::head(repeated, 3), length(repeated))
    abort_argument(
      c(
        "{.arg subset} must not repeat a {side}: its edges would be there
         twice.",
        x = "Repeated: {side} {where}."
      ),
      call
    )
  }
  rows
}

check_logical_subset <- function(subset, num_points, call) {
  if (length(subset) != num_points) {
    abort_argument(
      c(
        "A logical {.arg subset} must have one value for each point.",
        x = "{.arg x} has {tally(num_points, \"point\")}, {.arg subset}
             {tally(length(subset), \"value\")}."
      ),
      call
    )
  }
  if (anyNA(subset)) {
    where <- first_few(utils::head(which(is.na(subset)), 3), sum(is.na(subset)))
    abort_argument(
      c("{.arg subset} must not be {.code NA}.", x = "It is at {where}."),
      call
    )
  }
  which(subset, useNames = FALSE)
}

check_subset_numbers <- function(subset, num_points, side, call) {
  plain <- is.numeric(subset) && !is.object(subset) && is.null(dim(subset))
  if (!plain) {
    given <- describe_type(subset)
    abort_argument(
      "{.arg subset} must be {side} numbers, {side} names or a logical vector,
       not {given}.",
      call
    )
  }
  bad <- is.na(subset) | subset < 1 | subset > num_points |
    subset != trunc(subset)
  if (any(bad)) {
    where <- first_few(
      vapply(utils::head(subset[bad], 3), format_bound, ""), sum(bad)
    )
    abort_argument(
      c(
        "The {side} numbers in {.arg subset} must be whole numbers between 1
         and {format_bound(num_points)}.",
        x = "Not so: {where}."
      ),
      call
    )
  }
  as.integer(subset)
}

# Returns the rows with these names.
find_subset <- function(subset, points, call) {
  if (is_metafeatures(points$values)) {
    return(find_metafeatures(points$values, subset, call = call))
  }
  side <- point_side(points)
  if (is.null(points$names)) {
    abort_argument(
      c(
        "{.arg subset} must be {side} numbers or a logical vector here.",
        x = "{.arg x} has no {side} names."
      ),
      call
    )
  }
  rows <- match(subset, points$names)
  missing <- subset[is.na(rows)]
  twice <- unique(points$names[duplicated(points$names)])
  repeated <- intersect(subset, twice)
  if (length(missing) > 0 || length(repeated) > 0) {
    quoted <- function(names) {
      first_few(paste0("\"", utils::head(names, 3), "\""), length(names))
    }
    abort_argument(
      c(
        "Each name in {.arg subset} must be that of one {side} of {.arg x}.",
        x = if (length(missing) > 0) {
          "No {side} has the name {quoted(missing)}."
        },
        x = if (length(repeated) > 0) {
          "More than one {side} has the name {quoted(repeated)}."
        }
      ),
      call
    )
  }
  rows
}
