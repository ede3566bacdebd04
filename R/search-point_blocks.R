# The argument `block`: points in blocks (batches, donors, plates), whose
# neighbours are found in each block. The core calls these groups, because a
# block there is a part of the data that is read at a time.

# Returns the form for the core (see groups_from() in bind_common.cpp), list(of,
# count, lists, of_row), and the blocks' names. Returns NULL if `block` is NULL.
# `rows` are the points whose neighbours are requested, and NULL for rows of
# another matrix.
check_block <- function(block, between, points, rows, call = caller_env()) {
  if (is.null(block)) {
    check_no_between(between, call)
    return(NULL)
  }
  between <- check_between(between, call)
  block <- as_blocks(block, nrow(points$values), "block", call = call)
  count <- nlevels(block)
  if (count < 2 && !isFALSE(between)) {
    abort_argument(
      c(
        "Neighbours between blocks need two blocks or more.",
        x = "All points are of block {.val {levels(block)}}."
      ),
      call
    )
  }
  of <- as.integer(block)
  list(
    of = of, count = count,
    lists = if (isFALSE(between)) {
      "each"
    } else if (isTRUE(between)) {
      "others"
    } else {
      "together"
    },
    of_row = if (!is.null(rows)) of[rows],
    names = levels(block)
  )
}

check_no_between <- function(between, call) {
  if (!isFALSE(between)) {
    abort_argument(
      "{.arg between} is about blocks: give {.arg block}, too.", call
    )
  }
}

check_between <- function(between, call) {
  if (isTRUE(between) || isFALSE(between) || identical(between, "together")) {
    return(between)
  }
  given <- describe_value(between)
  abort_argument(
    "{.arg between} must be TRUE, FALSE or {.val together}, not {given}.", call
  )
}

# Numbers, text and factors can be sorted into groups. Raw and complex values
# cannot.
can_be_labels <- function(values) {
  plain <- is.factor(values) || is.atomic(values) && !is.object(values) &&
    !is.raw(values) && !is.complex(values)
  plain && !is.null(values) && is.null(dim(values))
}

# Returns a factor over the points without unused levels. Levels of other
# vectors are sorted in the same way in every locale.
as_blocks <- function(values, num_points, arg, call = caller_env()) {
  if (!can_be_labels(values)) {
    given <- describe_type(values)
    abort_argument(
      "{.arg {arg}} must be a factor, or a vector, with one value for each
       point, not {given}.",
      call
    )
  }
  if (length(values) != num_points) {
    abort_argument(
      c(
        "{.arg {arg}} must have one value for each point.",
        x = "There are {tally(num_points, \"point\")}, and
             {tally(length(values), \"value\")}."
      ),
      call
    )
  }
  # NA may also be a level of a factor.
  missing <- if (is.factor(values)) {
    is.na(levels(values))[values] %in% c(NA, TRUE)
  } else {
    is.na(values)
  }
  if (any(missing)) {
    where <- first_few(utils::head(which(missing), 3), sum(missing))
    abort_argument(
      c("{.arg {arg}} must not be {.code NA}.", x = "It is at {where}."), call
    )
  }
  # Values match by position. As row names, these names would look like those of
  # the points.
  names(values) <- NULL
  if (is.factor(values)) droplevels(values) else levels_of(values)
}

# Returns the number of neighbour lists of a point.
num_lists <- function(blocks) {
  if (is.null(blocks)) {
    return(1L)
  }
  switch(blocks$lists,
    each = blocks$count, others = blocks$count - 1L, together = 1L
  )
}

row_width <- function(request) {
  as.double(request$k) * num_lists(request$blocks)
}

# Returns a k for each point (`names` are theirs), or NULL if `k` is one number.
# With blocks, it is a matrix with a column for each list of a point.
each_k_in_blocks <- function(k, names, num_rows, blocks, call) {
  if (is.null(blocks)) {
    k <- match_names(k, names, "k", "points", call)
    return(check_each_k(k, num_rows, call = call))
  }
  size <- c(num_rows, num_lists(blocks))
  if (is_of_blocks(k, blocks)) {
    k <- check_each_k(I(k[blocks$names]), blocks$count, call = call)
    return(array(k[blocks_of_lists(blocks, num_rows)], size))
  }
  k <- match_names(k, names, "k", "points", call)
  hint <- if (blocks$lists != "together") {
    "It may also have one number for each block, with the blocks' names."
  }
  each_k <- check_each_k(k, num_rows, hint, call)
  if (!is.null(each_k)) array(each_k, size)
}

# Are these a number for each block, by name? A list over several blocks has no
# such numbers.
is_of_blocks <- function(k, blocks) {
  is.numeric(k) && blocks$lists != "together" && !is.null(names(k)) &&
    length(k) == blocks$count && setequal(names(k), blocks$names)
}

# Returns the number of the block of each list, points x lists.
blocks_of_lists <- function(blocks, num_rows) {
  lists <- matrix(
    seq_len(num_lists(blocks)), num_rows, num_lists(blocks), byrow = TRUE
  )
  # A point has no list of its own block.
  if (blocks$lists == "others") lists + (lists >= blocks$of_row) else lists
}

# Checks that every block has k neighbours for all points that search it.
check_block_sizes <- function(blocks, k, skip, call = caller_env()) {
  if (is.null(blocks)) {
    return(invisible())
  }
  left <- if (length(skip) > 0) blocks$of[-skip] else blocks$of
  sizes <- tabulate(left, blocks$count)
  own <- blocks$lists == "each" & sizes > 0 &
    seq_len(blocks$count) %in% blocks$of_row
  there <- if (blocks$lists == "together") {
    sum(sizes) - sizes
  } else {
    sizes - own
  }
  bad <- which(there < k)
  if (length(bad) == 0) {
    return(invisible())
  }
  shown <- utils::head(bad, 3)
  where <- first_few(
    paste0("\"", blocks$names[shown], "\" (", format_count(there[shown]), ")"),
    length(bad)
  )
  abort_argument(
    c(
      if (blocks$lists == "together") {
        "Each block must have at least {.arg k} = {k} points outside of it."
      } else {
        "Each block must have at least {.arg k} = {k} points that can be
         neighbours."
      },
      x = "Too few: {where}.",
      i = if (any(own[bad])) {
        "A point is not its own neighbour, so that its block needs one more."
      }
    ),
    call
  )
}

# Returns the blocks of a search for some of its rows. `rows` are numbers among
# all rows.
blocks_of_rows <- function(blocks, rows) {
  if (!is.null(blocks$of_row)) {
    blocks$of_row <- blocks$of_row[rows]
  }
  blocks
}

# Returns the blocks of neighbours by number. There may be millions, and
# factor() would convert each to text.
block_of_points <- function(blocks, index) {
  structure(blocks$of[index], levels = blocks$names, class = "factor")
}
