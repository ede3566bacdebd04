# Metafeatures that are left out of a search: which, why, and the message.

# Returns row names of points, all or those of some rows, or NULL if points have
# none.
point_names <- function(points, rows = NULL) {
  if (is_metafeatures(points$values)) {
    metafeature_names(points$values, rows)
  } else if (is.null(rows)) {
    points$names
  } else {
    points$names[rows]
  }
}

# `scan` is from cpp_scan(). Returns NULL if nothing is left out.
find_left_out <- function(points, scan) {
  rows <- c(scan$non_finite_rows, scan$constant, scan$explained)
  if (length(rows) == 0) {
    return(NULL)
  }
  reasons <- rep(
    c("not finite", "no variation", "explained"),
    lengths(scan[c("non_finite_rows", "constant", "explained")])
  )
  in_order <- order(rows)
  rows <- rows[in_order]
  data.frame(
    point = rows,
    name = metafeature_names(points$values, rows),
    reason = reasons[in_order]
  )
}

tell_left_out <- function(left_out, num_points, arg, attribute) {
  if (is.null(left_out)) {
    return(invisible())
  }
  count <- nrow(left_out)
  points <- format_count(num_points)
  of <- function(reason) {
    names <- left_out$name[left_out$reason == reason]
    shown <- paste0("\"", utils::head(names, 3), "\"")
    list(count = length(names), first = first_few(shown, length(names)))
  }
  broken <- of("not finite")
  flat <- of("no variation")
  explained <- of("explained")
  cli::cli_inform(
    c(
      "{format_count(count)} of the {points} metafeatures of {.arg {arg}}
       {cli::qty(count)}{?is/are} left out.",
      x = if (broken$count > 0) {
        "{format_count(broken$count)} with values that are not finite:
         {broken$first}."
      },
      x = if (flat$count > 0) {
        "{format_count(flat$count)} with no variation: {flat$first}."
      },
      x = if (explained$count > 0) {
        "{format_count(explained$count)} that the covariates explain:
         {explained$first}."
      },
      i = "The attribute {.field {attribute}} of the result has them all."
    ),
    class = "fsknn_left_out"
  )
}

# Adds the attributes of a result that say what was left out.
add_left_out <- function(result, search) {
  attr(result, "left_out") <- search$left_out
  attr(result, "query_left_out") <- search$query_left_out
  result
}
