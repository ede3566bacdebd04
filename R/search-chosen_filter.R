# Reports the filter that a search of these points uses. The search itself
# chooses it: it runs up to that choice.

# Returns list(filter_bits, filter_form, pruned): the bits of a number in the
# filter (0: no filter), its number form, and whether bounds of points prune
# pairs before it.
chosen_filter <- function(x, options, query, k, block, between,
                          call = caller_env()) {
  options$constant <- "isolate"
  search <- new_search(
    x, options, query = query, k = k, block = block, between = between,
    call = call
  )
  found <- in_core(
    cpp_chosen_filter(
      search$points$values, search$queries$values, search$request
    ),
    call
  )
  list(
    filter_bits = found$bits, filter_form = form_name(found$form),
    pruned = found$by_keys
  )
}

# `x` and `query` are those of knn_plan(), whose values are to be sampled.
check_reads_points <- function(filter, x, query, cluster, call = caller_env()) {
  check_flag(filter, "filter", call = call)
  if (!filter) {
    return(invisible())
  }
  refuse <- function(why) {
    abort_argument(
      c("With {.code filter = TRUE} there must be points.", x = why), call
    )
  }
  if (!is.null(cluster)) {
    refuse("A plan with {.arg hosts} is made by sizes alone.")
  }
  if (is_size(x)) {
    refuse("{.arg x} is their size.")
  }
  if (!is.null(query) && is_size(query)) {
    refuse("{.arg query} is the number of its points.")
  }
}

# The core numbers the forms of a filter from 0, which means none.
form_name <- function(form) {
  cpp_cpu()$filter_forms[[form + 1L]]
}

# Returns the names of the forms for the help pages (roxygen2 runs this).
filter_form_help <- function() {
  paste0("`\"", cpp_cpu()$filter_forms, "\"`", collapse = ", ")
}

# `bits` are those of a number in the filter, and `form` is the name of its
# form.
describe_filter <- function(bits, form, pruned = FALSE) {
  if (bits == 0) {
    return("none")
  }
  paste0(
    form, ", numbers of ", bits, " bit", if (bits > 1) "s",
    if (pruned) ", of pairs that bounds on points leave"
  )
}
