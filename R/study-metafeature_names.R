# Names of metafeatures ("ARF1 - SLC40A1"), and the search for a name.

# Returns the names of the rows of the small matrix.
part_names <- function(x) {
  rownames(x$values) %||% as.character(seq_len(nrow(x$values)))
}

# Returns all names, or those of some rows. They are not stored: 1.5 million of
# them take more memory than the data.
metafeature_names <- function(x, rows = NULL) {
  if (!is.null(rows)) {
    x <- keep_metafeatures(x, rows)
  }
  cpp_metafeature_names(x, part_names(x))
}

# Returns the numbers of metafeatures with these names. A few names are parsed
# one by one. For many, all names are made.
find_metafeatures <- function(x, names, call = caller_env()) {
  if (length(names) > 1000) {
    all_names <- metafeature_names(x)
    rows <- match(names, all_names)
    several <- which(names %in% all_names[duplicated(all_names)])
  } else {
    numbers <- lapply(names, numbers_by_name, x = x)
    if (!is.null(x$kept)) {
      numbers <- lapply(numbers, function(all) {
        at <- match(all, x$kept)
        at[!is.na(at)]
      })
    }
    rows <- vapply(numbers, function(all) all[1], 0)
    several <- which(lengths(numbers) > 1)
  }
  if (length(several) > 0) {
    name <- names[[several[[1]]]]
    abort_argument(
      c(
        "Metafeatures must be named so that one is meant.",
        x = "Several are called {.val {name}}.",
        i = "Give its number, or let no two rows have one name, with
             {.code rownames(x) <- make.unique(rownames(x))}."
      ),
      call
    )
  }
  if (anyNA(rows)) {
    unknown <- unique(names[is.na(rows)])
    reversed <- reversed_name(x, unknown[[1]])
    count <- length(unknown)
    where <- first_few(paste0("\"", utils::head(unknown, 3), "\""), count)
    abort_argument(
      c(
        "Metafeatures must be named as they are.",
        x = "{format_count(count)} {cli::qty(count)}name{?s} {?is/are} not
             there: {where}.",
        i = if (!is.null(reversed)) {
          "There is {.val {reversed}}: the row that stands first in the matrix
           comes first."
        }
      ),
      call
    )
  }
  as.integer(rows)
}

# Returns the name of the same pair in the right order, or NULL.
reversed_name <- function(x, name) {
  for (op in x$ops) {
    for (parts in split_at(name, paste0(" ", op, " "))) {
      reversed <- paste(parts[[2]], op, parts[[1]])
      if (length(numbers_by_name(reversed, x)) > 0) {
        return(reversed)
      }
    }
  }
  NULL
}

# Returns all metafeatures with that name, kept or not. Rows may share a name,
# and a row may have the name of a pair.
numbers_by_name <- function(name, x) {
  parts <- part_names(x)
  num_rows <- length(parts) - x$num_extra
  num_pairs <- as.double(num_rows) * (num_rows - 1) / 2
  at <- as.double(which(parts == name))
  numbers <- at + (at > num_rows) * length(x$ops) * num_pairs
  parts <- parts[seq_len(num_rows)]
  for (which_op in seq_along(x$ops)) {
    for (pair in split_at(name, paste0(" ", x$ops[[which_op]], " "))) {
      pairs <- expand.grid(
        i = as.double(which(parts == pair[[1]])),
        j = as.double(which(parts == pair[[2]]))
      )
      pairs <- pairs[pairs$i < pairs$j, ]
      before <- (pairs$i - 1) * (2 * num_rows - pairs$i) / 2
      numbers <- c(
        numbers,
        num_rows + (which_op - 1) * num_pairs + before + (pairs$j - pairs$i)
      )
    }
  }
  numbers
}

# Returns all ways to split `name` at `separator`, since a row's own name may
# contain it.
split_at <- function(name, separator) {
  starts <- gregexpr(separator, name, fixed = TRUE)[[1]]
  lapply(starts[starts > 0], function(start) {
    c(
      substr(name, 1, start - 1),
      substr(name, start + nchar(separator), nchar(name))
    )
  })
}
