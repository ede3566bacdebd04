# Graphs of triples: a triple is a vertex of a second kind, or each pair of its
# points is an edge.

triple_forms <- c("bipartite", "clique")

# An existing graph needs no form.
check_no_form <- function(form, call = caller_env()) {
  if (!identical(form, triple_forms)) {
    abort_argument(
      "{.arg form} is for triples of {.fn threshold_triples}, not for edges.",
      call
    )
  }
}

has_triple_form <- function(form, wanted, call = caller_env()) {
  check_choice(form, triple_forms, "form", call = call) == wanted
}

# Returns an edge data frame. `vertices` are the points with further columns.
edges_of_triples <- function(triples, form, vertices = NULL, arg = "edges",
                             call = caller_env()) {
  form <- check_choice(form, triple_forms, "form", call = call)
  ends <- triple_ends(triples, arg, call, vertices)
  if (form == "bipartite") {
    return(bipartite_edges(triples, ends, call))
  }
  lacking <- setdiff(c("similarity", pair_columns), names(triples))
  if (length(lacking) > 0) {
    abort_argument(
      c(
        "{.arg {arg}} must have the pairs of each triple for
         {.code form = \"clique\"}.",
        x = "It has no column {.code {lacking[[1]]}}."
      ),
      call
    )
  }
  clique_edges(triples, ends)
}

bipartite_edges <- function(triples, ends, call) {
  points <- ends$vertices
  count <- nrow(triples)
  taken <- intersect(names(points), c("type", triple_columns, "alleles"))
  if (length(taken) > 0) {
    abort_argument(
      "{.arg vertices} must have no column {.code {taken[[1]]}}, which triples
       have.",
      call
    )
  }
  names <- paste0("triple", seq_len(count))
  names <- utils::tail(make.unique(c(points$name, names), sep = "_"), count)
  of_triples <- intersect(
    c(triple_columns[-(1:3)], "alleles"), names(triples)
  )
  # Rows with index NA give columns of missing values with the right type.
  vertices <- rbind(
    cbind(
      points, type = rep(FALSE, nrow(points)),
      as.data.frame(triples)[rep(NA_integer_, nrow(points)), of_triples,
                             drop = FALSE]
    ),
    cbind(
      name = names,
      points[rep(NA_integer_, count), names(points) != "name", drop = FALSE],
      type = rep(TRUE, count),
      as.data.frame(triples)[of_triples]
    ),
    make.row.names = FALSE
  )
  edges <- new_knn_edges(
    list(
      from = rep(names, each = 3),
      to = points$name[as.vector(do.call(rbind, ends$numbers))],
      similarity = rep(triples$similarity, each = 3)
    ),
    vertices, metric = attr(triples, "metric")
  )
  as_undirected(edges, "Triples and their points")
}

# If several triples share a pair, the most similar one counts.
clique_edges <- function(triples, ends) {
  numbers <- ends$numbers
  from <- c(numbers[[1]], numbers[[1]], numbers[[2]])
  to <- c(numbers[[2]], numbers[[3]], numbers[[3]])
  pair <- unlist(as.data.frame(triples)[pair_columns], use.names = FALSE)
  of_triple <- rep(triples$similarity, 3)
  in_order <- order(from, to, -of_triple, method = "radix")
  key <- from[in_order] * (nrow(ends$vertices) + 1) + to[in_order]
  first <- !duplicated_sorted(key)
  best <- in_order[first]
  names <- ends$vertices$name
  edges <- new_knn_edges(
    list(
      from = names[from[best]], to = names[to[best]], similarity = pair[best],
      triples = tabulate(cumsum(first), sum(first)),
      best_triple = of_triple[best]
    ),
    ends$vertices, metric = attr(triples, "metric")
  )
  as_undirected(edges, "Clique expansion of triples")
}
