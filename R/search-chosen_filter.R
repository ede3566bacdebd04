# Which of several filters a search of these points takes. The search itself
# says so: it is made as far as that choice.

# Gives list(filter_bits, filter_form, apart): of a number in the filter (0:
# there is none), which numbers they are, and whether sums or lengths tell pairs
# apart before it.
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
    apart = found$by_keys
  )
}

# x, query: of knn_plan(), whose values are to be looked at.
check_look <- function(look, x, query, cluster, call = caller_env()) {
  check_flag(look, "look", call = call)
  if (!look) {
    return(invisible())
  }
  refuse <- function(why) {
    abort_argument(
      c("With {.code look = TRUE} there must be points.", x = why), call
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

# The core counts the forms of a filter by their width, from 0: none.
form_name <- function(form) {
  cpp_cpu()$filter_forms[[form + 1L]]
}

# bits: of a number in a filter; form: its name.
describe_filter <- function(bits, form, apart = FALSE) {
  if (bits == 0) {
    return("none")
  }
  paste0(
    form, ", numbers of ", bits, " bit", if (bits > 1) "s",
    if (apart) ", of pairs that sums or lengths leave"
  )
}
