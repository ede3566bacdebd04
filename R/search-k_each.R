# A number of neighbours for each point. The k nearest are a prefix of more, so
# one search with the largest k suffices, and its rows are cut.

# `k` is as the user gave it. Returns NULL if it is one number for all, which
# new_search() checks. Otherwise returns a checked whole number for each point.
check_each_k <- function(k, num_rows, hint = NULL, call = caller_env()) {
  plain <- is.numeric(k) && (!is.object(k) || inherits(k, "AsIs")) &&
    is.null(dim(k))
  if (!plain || (length(k) == 1 && !inherits(k, "AsIs"))) {
    return(NULL)
  }
  if (length(k) != num_rows) {
    abort_argument(
      c(
        "{.arg k} must be one number, or one for each point, not
         {describe_value(unclass(k))}.",
        i = "Neighbours are asked for of {tally(num_rows, \"point\")}.",
        i = hint
      ),
      call
    )
  }
  bad <- is.na(k) | k < 0 | k != trunc(k)
  if (any(bad)) {
    where <- first_few(
      vapply(utils::head(unclass(k)[bad], 3), format_bound, ""), sum(bad)
    )
    abort_argument(
      c(
        "Each {.arg k} must be a whole number, 0 or more.",
        x = "Not so: {where}."
      ),
      call
    )
  }
  as.double(unclass(k))
}

# Returns the answer of a search as matrices, or cut to lists.
index_and_distance <- function(found, search) {
  found <- found[c("index", "distance")]
  if (is.matrix(search$each_k)) {
    found <- cut_lists_of_blocks(found, search$each_k)
  } else if (!is.null(search$each_k)) {
    found <- cpp_cut_rows(found$index, found$distance, search$each_k)
  }
  names <- search$points$names
  if (!is.null(search$queries)) {
    names <- search$queries$names
  } else if (!is.null(search$request$subset)) {
    names <- names[search$request$subset]
  }
  nn <- new_neighbours(found, names, search$points$taken_from)
  with_searched(add_left_out(nn, search), search)
}

# Which places of an answer by blocks does a k for each list ask for?
asked_places <- function(each_k, num_places) {
  most <- num_places / ncol(each_k)
  rank <- rep(rep(seq_len(most), ncol(each_k)), each = nrow(each_k))
  rank <= each_k[, rep(seq_len(ncol(each_k)), each = most)]
}

cut_lists_of_blocks <- function(found, each_k) {
  kept <- t(asked_places(each_k, ncol(found$index)) & !is.na(found$index))
  row <- factor(col(kept)[kept], seq_len(nrow(each_k)))
  lapply(found, function(part) unname(split(t(part)[kept], row)))
}
