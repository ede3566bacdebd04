#' Plan a search: work, memory and GPUs
#'
#' Computes the plan of a call to [knn_search()], [knn_graph()] or
#' [knn_query()] from the sizes of its data alone. Nothing is searched, and the
#' values of `x` are not read unless `filter = TRUE`. With `hosts`, the plan is
#' for many machines that work on one folder: see "Many hosts".
#'
#' The terms are those of the paper (Arefin 2012). The n x n matrix of distances
#' is cut into *chunks* of `chunk_size` on a side. Chunks in the same rows are a
#' *split*. The workers (GPUs or threads) process the splits in *segments*.
#' Points and features are padded to n' and d'.
#'
#' The plan describes one search in this process, without `BPPARAM`,
#' `checkpoint` and `output`. For a `subset`, give its points, or their number,
#' as `query`. A plan for GPUs starts CUDA on them, to read how much of their
#' memory is free.
#'
#' @inheritParams knn_search
#' @param k Number of neighbours of each point, a whole number from 1 to the
#'   number of other points.
#' @param x The points, as for [knn_search()], or their size: two whole numbers,
#'   `c(points, features)`.
#' @param query `NULL` (default) for the graph of `x`. For [knn_query()], the
#'   points to find neighbours for, as a matrix or data frame, or their number.
#' @param ... [Point options][point_options()] and [run
#'   options][run_options()], by name, or collected as `options = `. With `na =
#'   "pairwise"` the plan is for points with missing values, whose prepared form
#'   takes more memory. Such a plan is made for the CPU only.
#' @param block,between As for [knn_search()]: a factor over the points, or the
#'   name of a container's column, and the blocks that neighbours may come from.
#'   Only pairs between these blocks are compared, and each block has its own
#'   lists of neighbours. A GPU compares each pair of points of a graph once if
#'   the metric has a filter and memory is sufficient. Otherwise, and for
#'   queries, blocks are searched one after another. The memory in the plan is
#'   then that of the largest of these searches.
#' @param filter `TRUE` reads the points and reports the filter that a search of
#'   them would choose. Several metrics have a filter of 8-bit numbers, and one
#'   of 16-bit numbers for points that 8 bits do not separate well. `x` and
#'   `query` must then be points, not sizes. `FALSE` by default. See "The chosen
#'   filter".
#' @param hosts `NULL` (default) for a search in this process. Otherwise the
#'   number of machines that work on one folder, or [host_options()] with more
#'   details of them.
#'
#' @returns A list of class `fsknn_plan`. Its print method includes what the
#'   paper's program prints: the backend, the host's CPUs, the sizes, and the
#'   GPUs with the host thread of each. Memory is in bytes, in addition to the
#'   input. On GPUs it is for each GPU, except for the result. Elements are
#'   * `backend`, and `devices`: the GPUs that take part, a data frame as in
#'     [knn_backends()];
#'   * `bytes_prepared`, `bytes_filter` and `bytes_result`: the memory of the
#'     prepared points, of the filter and of the result. The filter includes its
#'     bounds on CPUs. `bytes_peak`: the maximum at any time;
#'   * `bytes_made_from`: for [metafeatures()] on GPUs, the memory of the data
#'     that they are computed from;
#'   * `streamed`: whether the points do not stay in memory. They then pass
#'     through a GPU's memory, or on the CPU come by blocks of `block_points`
#'     from a temporary file;
#'   * `bytes_file`: the size of that file; `num_passes`: how often the points
#'     are read;
#'   * `bytes_host`: for streamed points on GPUs, the host's memory for the
#'     filter's rows and for candidates, if these do not stay on the GPU;
#'   * `num_pairs`: the number of pairs of points that are compared;
#'   * `filter`: how most pairs are pruned before their distance is computed, in
#'     words. If there are several ways, the search chooses one by its points;
#'   * with `filter = TRUE` also `filter_form`, `filter_bits` and `pruned`: see
#'     "The chosen filter".
#'
#'   With `hosts`, it is a list of class `fsknn_cluster_plan` with a print
#'   method:
#'   * `num_blocks`, `block_points` (in the largest block), `cut_by_memory`,
#'     `num_tasks` and `num_pairs`;
#'   * `bytes_points` (the points in the folder), `bytes_read` (by all tasks
#'     together), `bytes_written` (results in the folder) and `bytes_answer`;
#'   * `bytes_host`: the memory of a host whose workers do tasks;
#'   * `bytes_collecting`: the memory of the host that collects the answer;
#'   * `limited_by`: the step that takes most of the time. This is the search
#'     (`"search"`), the hosts' `"network"`, the shared `"disk"`, a worker's
#'     reading and writing (`"moving"`), or the start and end of tasks
#'     (`"starting"`). It may also be too few tasks (`"tasks"`), writing the
#'     points to the folder (`"points"`), or reading the results (`"collect"`);
#'   * `more_help`: does the same plan with twice the hosts take less than 95%
#'     of the time?
#'   * `seconds_a_task`: the mean seconds of a task, by parts. `wait` is the
#'     time while others use the shared disk or the host's network;
#'     `waits_for` names which;
#'   * `seconds`, named: `folder` (writing the points to the folder), `tasks`,
#'     `collect` (reading the results), `failing` (`tasks` with failures, on
#'     average) and `all`.
#'
#'   [simulate()][simulate.fsknn_cluster_plan] simulates the run.
#'
#' @section The chosen filter:
#' With `filter = TRUE`, [knn_search()] or [knn_query()] starts, and stops when
#' it has chosen its filter. This takes about the time of preparing the points.
#' It takes the memory of the search, including memory for its answer, and the
#' temporary file if there is one. Invalid points are the same error as in the
#' search. Rows for which the metric has no value are left out.
#'
#' The plan then prints the chosen filter, with three more elements.
#' `filter_form` is the name of its number form, and `filter_bits` the bits of a
#' number (see [knn_stats()]). Without a filter they are `"none"` and 0.
#' `pruned` says whether sums or lengths of points, or the boxes around near
#' points, prune pairs before the filter.
#'
#' With `block`, if blocks are searched one after another, the elements describe
#' the first search. Points that a GPU searches again may use wider numbers. On
#' a GPU of compute capability 9.0, correlations and cosine have no filter if
#' `k` is large and rows are long. Computing all pairs is faster there.
#'
#' @section Many hosts:
#' The points are divided into an odd number of blocks. A task is a pair of
#' blocks, or a block with itself, so that each pair of points is compared once.
#' The blocks are those of `knn_search(checkpoint = )` with as many workers.
#'
#' Each worker gets at least four tasks, and no task takes much longer than half
#' a minute (two minutes on a GPU). The lists of a task take at most 512 MiB, or
#' at most as much as the points that it reads. These rules make no more than
#' 201 blocks (20,301 files of tasks). Two blocks always fit into a worker's
#' share of `memory`.
#'
#' A call that makes a folder does not know the memory of all hosts. If they
#' need smaller blocks (`cut_by_memory`), the print says so; set
#' `options(fsknn.split_size = )` to the plan's `block_points` there. A worker
#' is a host's CPU, or one of its GPUs. For [knn_search()], the host that
#' collects the answer also holds the lists of all points and, at the end, the
#' answer made of them (`bytes_collecting`). If that is more than `memory`, the
#' print says so, and gives the memory that [knn_collect()] takes, which does no
#' tasks.
#'
#' More workers make more and smaller tasks, and all tasks together read the
#' points as often as there are blocks. So more hosts can increase the time if
#' `limited_by` is the shared disk, or the start and end of tasks.
#'
#' The seconds come from a model. Costs are per value read and prepared, per
#' pair, per feature of a pair, and per pair that passes the filter. The
#' constants were fitted to stored runs on one machine with two cores and on one
#' H200. The file `system.file("extdata/bench/cluster-model.csv", package =
#' "fsknn")` contains them and their sources. The article "many-hosts" of the
#' website reports the errors of the model. The time on another CPU or GPU
#' differs by a constant factor.
#'
#' A task reads two blocks and writes its results, at the speed of `network` and
#' `disk`, which all tasks share. The model assumes no caching. The size of
#' results is the average for points in random order.
#'
#' Such a plan is for a graph of points without missing values. The metrics are
#' those that were timed: `"pearson"`, `"spearman"`, `"bicor"`, `"cosine"`,
#' `"euclidean"`, `"manhattan"`, `"chebyshev"` and `"proportional"`. `query`,
#' `block`, `na = "pairwise"`, `chunk_size`, `devices`, `max_memory` and
#' `max_device_memory` are errors that say why. This machine needs no GPU.
#'
#' The mean time with failures comes from a formula. While there are more tasks
#' than workers, each worker repeats a task until no failure interrupts it. At
#' the end, the search waits for the last of all tasks in progress. Each of them
#' may be lost. It starts again when its lease has expired.
#' @inheritSection knn_search Errors
#' @inherit knn_search references
#' @seealso [knn_backends()]; [knn_stats()] for facts about a completed search;
#'   [simulate.fsknn_cluster_plan()] for hosts that fail.
#' @export
#' @examples
#' # the expression matrix of the paper
#' knn_plan(c(24158, 295), k = 20, backend = "cpu")
#'
#' # the filter that a search of these points would choose
#' x <- matrix(rnorm(2000 * 30), nrow = 2000)
#' knn_plan(x, backend = "cpu", filter = TRUE)$filter_bits
#'
#' # neighbours in each of three batches
#' knn_plan(c(6000, 50), block = gl(3, 2000), backend = "cpu")$num_pairs
#'
#' # 16 hosts of two GPUs each, of the size of Dashti's largest run (2013)
#' hosts <- host_options(16, devices_per_host = 2, memory = "512 GiB",
#'                       disk = "40 GB", network = "5 GB", failures = 0.01)
#' knn_plan(c(20e6, 15876), k = 200, hosts = hosts)
knn_plan <- function(x, k = 20, metric = NULL, sign = "signed", ...,
                     query = NULL, block = NULL, between = FALSE,
                     filter = FALSE, hosts = NULL) {
  check_supplied(x)
  given <- options_given("knn_plan", ...)
  cluster <- check_hosts(hosts)
  if (!is.null(cluster)) {
    given$backend <- check_planned_hosts(
      c(given, list(query = query, block = block)), cluster
    )
  }
  check_reads_points(filter, x, query, cluster)
  options <- check_options(given, "knn_plan")
  check_planned_cpu(options)
  asked <- list(options = options, block = block)
  of_query <- input_of_query(options$input, query, x)
  input <- input_beside(options$input, x, query)
  transposed <- are_transposed(input)
  size <- plan_size(x, input)
  query_size <- if (!is.null(query)) {
    plan_query_size(query, size, of_query, x, input)
  }
  check_sizes(
    size, query_size, options$metric, transposed, are_transposed(of_query)
  )
  if (!is_size(x)) {
    options["weights"] <- list(match_names(
      options$weights, names_of_side(x, input, "features"), "weights",
      "features"
    ))
  }
  weights <- weights_for(options$weights, size[[2]], transposed)
  options["weights"] <- list(weights$values)
  options["adjust"] <- list(
    plan_covariates(x, size, transposed, input, options, weights)
  )
  num_features <- length(weights$samples %||% seq_len(size[[2]]))
  if (!is.null(block) && !is_size(x)) {
    block <- given_values(x, block, "block", input, "points")
  }
  blocks <- plan_blocks(block, between, size[[1]], is.null(query))
  k <- check_k(k, size[[1]], self_excluded = is.null(query))
  check_block_sizes(blocks, k, integer())
  if (!is.null(cluster)) {
    facts <- new_request(k, options)
    facts <- c(
      list(num_points = size[[1]], num_features = num_features),
      facts_of_request(facts)[-1], facts["k"], options["num_threads"]
    )
    return(new_cluster_plan(facts, cluster))
  }
  storage <- storage_of(
    taken_values(x, input), taken_values(query, of_query), options,
    share = num_features / size[[2]]
  )
  request <- new_request(
    k, options, correlation = has_correlation(options$metric),
    bytes_made_from = bytes_made_from(x), max_memory = storage$max_memory,
    bytes_file = storage$bytes_file,
    # Values in a file have no missing ones, or the search is refused.
    na = if (storage$bytes_file > 0) "error" else options$na,
    blocks = blocks
  )
  chosen <- if (filter) {
    chosen_filter(x, asked$options, query, k, asked$block, between)
  }
  plan <- new_plan(size[[1]], num_features, query_size[1] %||% 0, request)
  plan[names(chosen)] <- chosen
  if (storage$in_place) plan$in_place <- TRUE
  plan
}

# The memory of GPUs for pairs over common samples depends on the values.
check_planned_cpu <- function(options, call = caller_env()) {
  if (options$backend$name == "cuda" && identical(options$na, "pairwise")) {
    abort_argument(
      c(
        "With {.code na = \"pairwise\"} a plan is made for backend \"cpu\"
         only.",
        i = "Use {.code backend = \"cpu\"}."
      ),
      call
    )
  }
}

# Makes blocks of points of which only the number is known.
plan_blocks <- function(block, between, num_points, is_graph,
                        call = caller_env()) {
  points <- list(values = matrix(0, num_points, 0))
  check_block(
    block, between, points, if (is_graph) seq_len(num_points), call = call
  )
}

# Returns the request's covariates for features of which at most the names are
# known.
plan_covariates <- function(x, size, transposed, input, options, weights,
                            call = caller_env()) {
  if (is.null(options$adjust)) {
    return(NULL)
  }
  names <- if (!is_size(x)) names_of_side(x, input, "features")
  points <- list(
    values = matrix(0, 0, size[[2]], dimnames = list(NULL, names)),
    transposed = transposed, features = names
  )
  search <- list(options = options, points = points)
  fit_covariates(search, x, weights, call = call)$values
}

# Returns the content of a container, or a matrix unchanged, or NULL for a size.
taken_values <- function(x, input, call = caller_env()) {
  if (length(dim(x)) == 2 || is_container(x)) {
    take_matrix(x, input, call = call)$values
  }
}

# Returns TRUE for a number of points instead of points.
is_size <- function(x) {
  is.numeric(x) && is.null(dim(x))
}

# Returns c(points, features) of a matrix, or as given.
plan_size <- function(x, input, call = caller_env()) {
  if (!is_size(x)) {
    return(points_size(x, input, "x", call = call))
  }
  good <- length(x) == 2 && all(is.finite(x)) && all(x == trunc(x)) &&
    all(x >= 0) && all(x <= .Machine$integer.max)
  if (!good) {
    given <- describe_value(x)
    abort_argument(
      c(
        "{.arg x} must be a matrix, or two whole numbers
         {.code c(points, features)}.",
        x = if (length(x) != 2) "It is {given}."
      ),
      call
    )
  }
  as.integer(x)
}

# Does the same for queries, or for a number of them. They may have more
# features than x, whose size is `size`, if both have names.
plan_query_size <- function(query, size, input, x, x_input,
                            call = caller_env()) {
  if (!is_size(query)) {
    query_size <- points_size(query, input, "query", call = call)
    queries <- list(transposed = are_transposed(input))
    at <- if (!is_size(x)) {
      match_order(
        names_of_side(query, input, "features"),
        names_of_side(x, x_input, "features"),
        words_of_features(feature_side(queries), "query"), call, extra = TRUE
      )
    }
    return(c(query_size[[1]], if (is.null(at)) query_size[[2]] else size[[2]]))
  }
  most <- .Machine$integer.max
  c(check_whole_number(query, "query", 1, most, call = call), size[[2]])
}

are_transposed <- function(input) {
  input$points == "columns" || !is.null(input$dimred)
}

new_plan <- function(num_points, num_features, num_queries, request,
                     call = caller_env()) {
  sizes <- in_core(
    cpp_plan(num_points, num_features, num_queries, request), call
  )
  used <- seq_len(min(sizes$num_workers, nrow(sizes$devices)))
  sizes$devices <- sizes$devices[used, ]
  structure(
    c(
      facts_of_request(request),
      list(
        host_cpus = cpp_cpu()$threads,
        num_threads = request$num_threads,
        max_device_memory = request$max_device_memory,
        bytes_file = request$bytes_file,
        bytes_made_from = request$bytes_made_from
      ),
      if (!is.null(request$blocks)) list(num_blocks = request$blocks$count),
      sizes
    ),
    class = "fsknn_plan"
  )
}

# Makes lines of "name: value", including those that File S1's program prints.
#' @method format fsknn_plan
#' @export
format.fsknn_plan <- function(x, ...) {
  number <- function(value) {
    vapply(as.double(value), format_count, "")
  }
  padded <- function(size, to) {
    padding <- if (to != size) paste0(" (padded to ", number(to), ")")
    paste0(number(size), padding)
  }
  lines <- c(
    "Backend" = x$backend,
    "Host CPUs" = paste0(number(x$host_cpus), " (", x$num_threads, " used)"),
    describe_devices(x$devices),
    "Metric" = describe_metric(
      x$metric, x$sign, x$weighted, x$num_covariates
    ),
    "Neighbours (k)" = number(x$k),
    "Points (n)" = padded(x$num_points, x$padded_points),
    "Features (d)" = padded(x$num_features, x$padded_features),
    "Query points" = if (x$num_queries > 0) number(x$num_queries),
    "Chunk size" = number(x$chunk_size),
    "Splits" = number(x$num_splits),
    "Chunks in each split" = number(x$chunks_per_split),
    "Segments" = number(x$num_segments),
    "Splits in each segment" = number(x$splits_per_segment),
    "Chunks computed" = number(x$num_chunks),
    "Blocks (labels)" = if (!is.null(x$num_blocks)) {
      paste0(number(x$num_blocks), ", ", number(x$num_pairs),
             " pairs of points")
    },
    "Filter" = if (!is.null(x$filter_bits)) {
      paste(
        describe_filter(x$filter_bits, x$filter_form, x$pruned),
        "(chosen from a sample)"
      )
    } else if (nzchar(x$filter)) {
      x$filter
    } else {
      "none"
    },
    describe_file(x$bytes_file, isTRUE(x$in_place)),
    if (x$backend == "cuda") describe_device_bytes(x) else describe_bytes(x),
    "Instruction set" = if (nzchar(x$instruction_set)) x$instruction_set
  )
  paste0(format(paste0(names(lines), ":")), " ", lines)
}

# Each GPU has its own host thread (Arefin 2012).
describe_devices <- function(devices) {
  if (nrow(devices) == 0) {
    return(c("CUDA devices" = "none used"))
  }
  drivers <- paste0(
    "device ", devices$device, " (CUDA's number ", devices$cuda_id, "), ",
    devices$name
  )
  names(drivers) <- paste("Host thread", seq_along(drivers), "uses")
  c("CUDA devices" = paste(nrow(devices), "used"), drivers)
}

# Describes data that do not fit in memory, and the free disk space.
describe_file <- function(bytes, in_place = FALSE,
                          folder = temporary_folder()) {
  if (in_place) {
    c("Points" = "read from their own file")
  } else if (bytes > 0) {
    free <- cpp_bytes_free(folder)$bytes
    room <- if (!is.null(free)) {
      too_little <- if (free < bytes) ": does not fit"
      paste0(", ", format_bytes(free), " free", too_little)
    }
    c("Temporary file" = paste0(format_bytes(bytes), " in ", folder, room))
  }
}

describe_bytes <- function(plan) {
  blocks <- ceiling(
    c(plan$num_points, plan$num_queries) / max(1, plan$block_points)
  )
  c(
    "Blocks of points" = if (plan$streamed) {
      paste0(
        format_count(sum(blocks)), " of ", format_count(plan$block_points),
        ", two in memory at a time"
      )
    },
    "Times that the file is read" = if (plan$streamed) {
      format_count(plan$num_passes)
    },
    "Memory, prepared data" = format_bytes(plan$bytes_prepared),
    "Memory, filter" = if (plan$bytes_filter > 0) {
      format_bytes(plan$bytes_filter)
    },
    "Memory, result" = format_bytes(plan$bytes_result),
    "Memory, peak" = format_bytes(plan$bytes_peak)
  )
}

# Each GPU needs the same, so the one with the least free memory decides.
describe_device_bytes <- function(plan) {
  room <- paste0(format_bytes(min(plan$devices$memory_free)), " free")
  if (plan$max_device_memory > 0) {
    room <- paste0(room, ", limit ", format_bytes(plan$max_device_memory))
  }
  limits <- c(plan$devices$memory_free, plan$max_device_memory)
  if (plan$bytes_peak > min(limits[limits > 0])) {
    room <- paste0(room, ": does not fit")
  }
  made <- plan$bytes_made_from > 0
  reading <- c(
    if (made) "made there", if (plan$streamed) "piece by piece",
    if (!plan$streamed) "stay on each GPU"
  )
  c(
    "Expected passes" = paste0(
      format_count(plan$num_passes), " (points ",
      paste(reading, collapse = ", "), ")"
    ),
    "Each GPU, points are made of" = if (made) {
      format_bytes(plan$bytes_made_from)
    },
    "Each GPU, points" = format_bytes(plan$bytes_prepared),
    "Each GPU, filter" = if (plan$bytes_filter > 0) {
      format_bytes(plan$bytes_filter)
    },
    "Each GPU, peak" = paste0(format_bytes(plan$bytes_peak), " (", room, ")"),
    "Host memory, filter" = if (plan$bytes_host > 0) {
      paste0(
        format_bytes(plan$bytes_host), " (its rows pass through the GPUs)"
      )
    },
    "Host memory, result" = format_bytes(plan$bytes_result)
  )
}

#' @export
print.fsknn_plan <- function(x, ...) {
  cat("kNN plan", format(x), sep = "\n")
  invisible(x)
}
