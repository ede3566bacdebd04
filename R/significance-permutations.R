# Permutations of samples, shared by all statistics that use them. R's generator
# draws all of them before a search starts. So set.seed() makes an answer
# reproducible, whichever backend or worker searches.

# Returns an integer matrix of num_samples x num_permutations with a permutation
# of sample numbers in each column. `strata` has a group for each sample, and no
# sample leaves its group. NULL is one group. Groups are processed in order of
# appearance, which is the same in every locale.
draw_permutations <- function(num_samples, num_permutations, strata = NULL,
                              call = caller_env()) {
  # Each integer is later converted to a double as well.
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

# Phipson and Smyth (2010): `b` of `num` permutations were at least as extreme,
# and the observed data count as one more.
permutation_p <- function(b, num) {
  (b + 1) / (num + 1)
}

# Checks the number of permutations, a whole number or NULL for none.
check_permutations <- function(permutations, least = 1, call = caller_env()) {
  if (is.null(permutations)) {
    return(NULL)
  }
  check_whole_number(
    permutations, "permutations", least, .Machine$integer.max, call = call
  )
}

# Checks that all permutations fit in memory at once.
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

# Returns NULL, or a whole number for each sample that is the same within a
# group. For `strata` and the arguments from `of` on, see given_values();
# samples are features or points. `for_permutations` says whether permutations
# were requested. Without them, strata have no meaning. The same function checks
# units, with another `arg`. A unit may have one sample.
check_strata <- function(strata, x, num_samples, for_permutations = TRUE,
                         input = check_input(), of = "features",
                         known = names_of_side(x, input, of), arg = "strata",
                         call = caller_env()) {
  if (is.null(strata)) {
    return(NULL)
  }
  if (!for_permutations) {
    abort_argument(
      "{.arg {arg}} {if (arg == \"strata\") \"need\" else \"needs\"}
       {.arg permutations}, and there are none.",
      call
    )
  }
  values <- each_value(
    x, strata, arg, num_samples, input, of, known, call = call
  )
  one <- if (of == "points") "point" else "sample"
  missing <- which(is.na(values))
  if (length(missing) > 0) {
    count <- length(missing)
    abort_argument(
      c(
        "{.arg {arg}} must have no missing values.",
        x = "{format_count(count)} {cli::qty(count)}{?is/are} missing:
             {one}{cli::qty(count)}{?s} {first_few(missing)}."
      ),
      call
    )
  }
  groups <- match(values, unique(values))
  if (arg == "strata") {
    check_can_permute(groups, call, one = one)
  }
  groups
}

# With `counted`, only samples with a weight above 0 count.
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
