# Verbs that take answers read shards in blocks of rows, or as a whole if they
# fit in memory.

# Calls use(block, rows) for blocks of about 2^22 entries, in order. A block has
# index and distance, two plain matrices. With distance = FALSE it has only
# index.
for_shard_blocks <- function(shards, use, distance = TRUE,
                             call = caller_env(), at_once = 2^22) {
  size <- dim(shards)
  each <- max(1, floor(at_once / max(1, size[[2]])))
  for (rows in row_ranges(size[[1]], each)) {
    use(shard_block(shards, rows, distance, call), rows)
  }
}

shard_block <- function(shards, rows, distance, call) {
  index <- as_plain(shards$index[rows, , drop = FALSE])
  if (!cpp_all_between(index, 1L, as.integer(shards$facts$points), TRUE)) {
    abort_shards(
      shards$folder, "It has neighbours that are none of the points.", call,
      "{.code read_knn(verify = TRUE)} says which file is damaged."
    )
  }
  block <- list(index = index)
  if (distance) {
    block$distance <- as_plain(shards$distance[rows, , drop = FALSE])
    # A float cannot hold R's NA.
    block$distance[is.na(index)] <- NA
    if (any(is.na(block$distance) & !is.na(index))) {
      abort_shards(
        shards$folder, "It has neighbours without a distance.", call,
        "{.code read_knn(verify = TRUE)} says which file is damaged."
      )
    }
  }
  block
}

# Reads the whole answer, at 12 bytes for each entry.
shards_in_memory <- function(shards, arg, call, at_once = 2^22) {
  check_shards_fit(shards, 12, arg, call)
  size <- dim(shards)
  index <- matrix(NA_integer_, size[[1]], size[[2]])
  distance <- matrix(NA_real_, size[[1]], size[[2]])
  for_shard_blocks(shards, function(block, rows) {
    in_core(cpp_put_rows(index, block$index, rows[[1]] - 1), call)
    in_core(cpp_put_rows(distance, block$distance, rows[[1]] - 1), call)
  }, call = call, at_once = at_once)
  list(index = index, distance = distance, self = FALSE, names = NULL)
}

# `each` is the number of bytes for each entry.
check_shards_fit <- function(shards, each, arg, call) {
  needed <- each * prod(as.double(dim(shards)))
  most <- max_memory_of(list())
  if (needed > most) {
    abort_argument(
      c(
        "{.arg {arg}} must fit in memory here.",
        x = "It takes {format_bytes(needed)}, and the limit is
             {format_bytes(most)}.",
        i = "See {.fn read_knn} for what takes it by blocks, and
             {.code options(fsknn.max_memory = )}."
      ),
      call
    )
  }
}

# Counts the entries that hold a neighbour.
count_in_shards <- function(shards, call, at_once) {
  count <- new.env(parent = emptyenv())
  count$found <- 0
  for_shard_blocks(shards, function(block, rows) {
    count$found <- count$found + sum(!is.na(block$index))
  }, distance = FALSE, call, at_once)
  count$found
}

# Makes the core's own lists, at 12 bytes for each entry.
lists_of_shards <- function(shards, arg, call, at_once = 2^22) {
  check_shards_fit(shards, 12, arg, call)
  lists <- in_core(
    cpp_room_for_lists(count_in_shards(shards, call, at_once)), call
  )$lists
  for_shard_blocks(shards, function(block, rows) {
    distance <- block$distance[!is.na(block$index)]
    if (!all(distance >= 0 & distance < Inf)) {
      abort_shards(
        shards$folder, "It has distances that are no lengths.", call,
        "{.code read_knn(verify = TRUE)} says which file is damaged."
      )
    }
    in_core(cpp_add_to_lists(lists, block$index, block$distance), call)
  }, call = call, at_once = at_once)
  lists
}

# Reads neighbours without their distances, at 4 bytes for each entry.
sets_of_shards <- function(shards, arg, call, at_once = 2^22) {
  check_shards_fit(shards, 4, arg, call)
  sets <- in_core(
    cpp_room_for_sets(count_in_shards(shards, call, at_once)), call
  )$sets
  state <- new.env(parent = emptyenv())
  for_shard_blocks(shards, function(block, rows) {
    again <- repeating_points(block) + (rows[[1]] - 1)
    state$repeating <- c(state$repeating, again)
    in_core(cpp_add_to_sets(sets, block$index), call)
  }, distance = FALSE, call, at_once)
  abort_if_repeating(state$repeating, NULL, call)
  sets
}

# Checks that the rows are the points themselves, all of them, in order.
check_shards_are_graph <- function(shards, arg, call) {
  of <- shards$facts$of
  if (of != "points") {
    abort_argument(
      c(
        "{.arg {arg}} must be the neighbours of all points.",
        x = if (of == "queries") {
          "These are of queries."
        } else {
          "These are of some of the points."
        }
      ),
      call
    )
  }
}

# --- a sparse matrix ---------------------------------------------------------

# The matrix is stored by columns but read by rows: one pass counts, and one
# fills.
sparse_of_shards <- function(shards, value, call, at_once = 2^22) {
  n <- nrow(shards)
  next_place <- double(n)
  for_shard_blocks(shards, function(block, rows) {
    in_core(cpp_count_in_columns(next_place, block$index), call)
  }, distance = FALSE, call, at_once)
  check_num_entries(sum(next_place), call)
  begins <- c(0, cumsum(next_place))
  place <- begins[-length(begins)]
  row_of <- integer(begins[[n + 1]])
  is_one <- identical(value, "one")
  values <- if (is_one) rep(1, length(row_of)) else double(length(row_of))
  for_shard_blocks(shards, function(block, rows) {
    in_core(
      cpp_put_in_columns(
        place, row_of, values, block$index, block$distance, rows[[1]] - 1
      ),
      call
    )
  }, distance = !is_one, call, at_once)
  check_distinct_places(row_of, begins, call)
  methods::new(
    methods::getClass("dgCMatrix", where = asNamespace("Matrix")),
    i = row_of, p = as.integer(begins), x = values, Dim = c(n, n),
    Dimnames = list(NULL, NULL)
  )
}

# Rows ascend in each column, so a repeated neighbour is next to itself.
check_distinct_places <- function(row_of, begins, call) {
  again <- which(duplicated_sorted(row_of))
  starts <- begins[-length(begins)][diff(begins) > 0] + 1
  again <- setdiff(again, starts)
  abort_if_repeating(sort(unique(row_of[again])) + 1, NULL, call)
}

# Each pair is stored once, in the upper triangle. `mode` is "union" or
# "mutual".
symmetric_of_shards <- function(shards, value, mode, call, at_once = 2^22) {
  lists <- lists_of_shards(shards, "edges", call, at_once)
  joined <- cpp_joined_triangle(
    lists, mode == "mutual", max_edges, check_num_threads(NULL)
  )
  if (identical(joined$failure, "repeated")) {
    abort_repeated(joined$point, NULL, call)
  }
  in_core(joined, call)
  check_num_entries(joined$pairs, call)
  is_one <- identical(value, "one")
  methods::new(
    methods::getClass("dsCMatrix", where = asNamespace("Matrix")),
    i = joined$row_of, p = joined$begins,
    x = if (is_one) rep(1, length(joined$row_of)) else joined$values,
    Dim = rep(nrow(shards), 2), Dimnames = list(NULL, NULL)
  )
}

# --- a spanning forest -------------------------------------------------------

# The forest of all edges is that of the new ones and of the forest so far. An
# edge that closes a cycle of shorter edges does so with further edges, too.
forest_of_shards <- function(shards, call, at_once = 2^22) {
  vertices <- data.frame(name = seq_len(nrow(shards)))
  state <- new.env(parent = emptyenv())
  state$tree <- NULL
  k <- ncol(shards)
  for_shard_blocks(shards, function(block, rows) {
    there <- !is.na(as.vector(t(block$index)))
    columns <- list(
      from = rep(rows, each = k)[there],
      to = as.vector(t(block$index))[there],
      rank = rep(seq_len(k), length(rows))[there],
      distance = as.vector(t(block$distance))[there]
    )
    if (!is.null(state$tree)) {
      before <- unclass(state$tree)[names(columns)]
      columns <- Map(c, before, columns)
    }
    state$tree <- spanning_forest(new_knn_edges(
      columns, vertices, shards$facts$metric, shards$facts$sign, k
    ))
  }, call = call, at_once = at_once)
  state$tree
}

# --- recall ------------------------------------------------------------------

# Runs count_hits() on blocks of rows if one or both answers are shards.
hits_by_blocks <- function(approx, exact, queries, call = caller_env(),
                           at_once = 2^22) {
  given <- list(approx = approx, exact = exact)
  of_shards <- Filter(is_knn_shards, given)
  queries <- queries ||
    any(vapply(of_shards, function(x) x$facts$of != "points", NA))
  given <- Map(function(x, arg) {
    if (is_knn_shards(x)) {
      return(x)
    }
    nn <- take_neighbours(x, arg, call)
    largest <- max(largest_index(nn), of_shards[[1]]$facts$points)
    leave_out_self(nn, queries, arg, call, largest)
  }, given, names(given))
  if (is.null(given$exact$distance)) {
    abort_argument("{.arg exact} must have distances.", call)
  }
  sizes <- lapply(given, function(x) {
    if (is_knn_shards(x)) rep(ncol(x), nrow(x)) else row_sizes(x)
  })
  check_recall_sizes(sizes$approx, sizes$exact, call)
  k <- max(1, sizes$approx, sizes$exact)
  parts <- lapply(
    row_ranges(length(sizes$exact), max(1, floor(at_once / k))),
    function(rows) {
      block <- lapply(given, block_of_neighbours, rows, call)
      check_true_distances(in_places(block$exact), call, rows[[1]] - 1)
      count_hits(block$approx, block$exact)
    }
  )
  do.call(rbind, parts)
}

block_of_neighbours <- function(nn, rows, call) {
  if (is_knn_shards(nn)) {
    return(shard_block(nn, rows, TRUE, call))
  }
  lapply(nn[c("index", "distance")], function(part) {
    if (is.list(part)) part[rows] else part[rows, , drop = FALSE]
  })
}
