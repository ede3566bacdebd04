# Permutations of samples, for every statistic that has them. They are drawn by
# R's own generator, all of them before a search starts: so set.seed() repeats
# an answer, whatever does the searching.

# A permutation in each column: numbers of samples, an integer matrix of
# num_samples x num_permutations. strata: a group for each sample, of which none
# leaves its own; NULL: one group. Groups are drawn for in the order in which
# they come first, which no locale changes.
draw_permutations <- function(num_samples, num_permutations, strata = NULL,
                              call = caller_env()) {
  # As many doubles are made of them.
  check_permutations_fit(num_permutations, 12 * num_samples, call)
  groups <- if (is.null(strata)) {
    list(seq_len(num_samples))
  } else {
    unname(split(seq_len(num_samples), match(strata, unique(strata))))
  }
  groups <- groups[lengths(groups) > 1]
  drawn <- array(seq_len(num_samples), c(num_samples, num_permutations))
  for (at in seq_len(num_permutations)) {
    for (group in groups) {
      drawn[group, at] <- group[sample.int(length(group))]
    }
  }
  drawn
}

# By Phipson and Smyth (2010): of `num` permutations `b` were at least as
# extreme, and what was observed counts as one more.
permutation_p <- function(b, num) {
  (b + 1) / (num + 1)
}

# How many permutations: NULL for none, or a whole number.
check_permutations <- function(permutations, least = 1, call = caller_env()) {
  if (is.null(permutations)) {
    return(NULL)
  }
  check_whole_number(
    permutations, "permutations", least, .Machine$integer.max, call = call
  )
}

# Whether there is memory for what all permutations take at once.
check_permutations_fit <- function(num_permutations, bytes_each,
                                   call = caller_env()) {
  free <- free_memory()
  if (as.double(num_permutations) * bytes_each <= free) {
    return(invisible())
  }
  needed <- format_bytes(as.double(num_permutations) * bytes_each)
  abort_argument(
    c(
      "{.arg permutations} must be at most
       {format_count(floor(free / bytes_each))} here.",
      x = "{format_count(num_permutations)} permutations need {needed} of
           memory, and {format_bytes(free)} are free."
    ),
    call
  )
}

# A whole number for each sample, the same within a group, or NULL. `strata` and
# what follows `of`: see given_values(); samples are the features or points.
# for_permutations: were any asked for? Without them strata mean nothing.
check_strata <- function(strata, x, num_samples, for_permutations = TRUE,
                         input = check_input(), of = "features",
                         known = names_of_side(x, input, of),
                         call = caller_env()) {
  if (is.null(strata)) {
    return(NULL)
  }
  if (!for_permutations) {
    abort_argument(
      "{.arg strata} are for {.arg permutations}, of which there are none.",
      call
    )
  }
  values <- each_value(
    x, strata, "strata", num_samples, input, of, known, call = call
  )
  one <- if (of == "points") "point" else "sample"
  missing <- which(is.na(values))
  if (length(missing) > 0) {
    count <- length(missing)
    abort_argument(
      c(
        "{.arg strata} must have no missing values.",
        x = "{format_count(count)} {cli::qty(count)}{?is/are} missing:
             {one}{cli::qty(count)}{?s} {first_few(missing)}."
      ),
      call
    )
  }
  groups <- match(values, unique(values))
  check_can_permute(groups, call, one = one)
  groups
}

# counted: samples of a weight above 0 alone.
check_can_permute <- function(groups, call, counted = FALSE, one = "sample") {
  if (anyDuplicated(groups) > 0) {
    return(invisible())
  }
  of <- if (counted) " with a weight above 0" else ""
  abort_argument(
    c(
      "Two {one}s{of} at least must be in one of {.arg strata}.",
      x = "Each {one} is in one of its own, so that nothing can be permuted."
    ),
    call
  )
}
