#' What a call would do, and where
#'
#' The plan of a call to [knn_search()], [knn_graph()] or [knn_query()]. It is
#' pure arithmetic by sizes: nothing is computed, and the values of `x` are not
#' looked at, unless `look` asks for that. Its words are those of the paper
#' (Arefin 2012): the n x n matrix of distances is cut into *chunks* of
#' `chunk_size` on a side; chunks in the same rows are a *split*; the splits are
#' dealt to the workers (GPUs or threads) in *segments*. Points and features are
#' padded to n' and d'. The plan is of one search in this process, without
#' `BPPARAM`, `checkpoint` and `output`; for a `subset` give its number, or its
#' points, as `query`. A plan for GPUs starts CUDA on them, to see how much of
#' their memory is free. With `hosts` it is of many machines that work on one
#' folder: see the section on them.
#'
#' @inheritParams knn_search
#' @param k Number of neighbours of each point, a whole number from 1 to the
#'   number of other points.
#' @param x The points, as for [knn_search()], or just their size: two whole
#'   numbers, `c(points, features)`.
#' @param query `NULL` (default) for the graph of `x`; for [knn_query()] the
#'   matrix or data frame of the points to find neighbours for, or their number.
#' @param ... [Point options][point_options()] and [run
#'   options][run_options()], by name, or collected as `options = `. `na =
#'   "pairwise"` plans for points with missing values, whose prepared form
#'   takes more memory; for the CPU only.
#' @param block,between As for [knn_search()]: a factor over the points, or the
#'   name of a container's column, and which blocks a point's neighbours are in.
#'   The pairs that such a search looks at are those between the blocks in
#'   question, and it takes a list for each of them. On GPUs each two points of
#'   a graph meet once where the metric has a filter and memory is enough;
#'   else, and of queries, blocks are searched one after another, and the plan's
#'   memory is that of the largest of these searches.
#' @param look `TRUE` begins the search, [knn_search()] or [knn_query()], and
#'   ends it when it has chosen its filter, to say which: several metrics have a
#'   filter in numbers of 8 bits, and one in 16 for points that 8 bits do not
#'   tell apart well enough. That takes about the time that preparing the points
#'   takes, the memory of the search, room for its answer included, and the
#'   temporary file where there is one; what is wrong with the points is the
#'   search's error. Rows for which the metric has no value are left out. `x`
#'   and `query` must be points then, not their size. `FALSE` by default.
#' @param hosts `NULL` (default) for a search in this process. Otherwise the
#'   number of machines that work on one folder, or [host_options()], which say
#'   more about them.
#'
#' @returns A list of class `fsknn_plan`, with a print method that tells what
#'   the paper's program told: the backend, the CPUs of the host, the GPUs that
#'   take part (`devices`, a data frame as of [knn_backends()]) and the host
#'   thread of each, the sizes, and the bytes that will be needed besides the
#'   input (`bytes_prepared`, `bytes_filter`, `bytes_result`, and `bytes_peak`,
#'   the most at any time; for GPUs on each of them, save the result; for
#'   metafeatures `bytes_made_from`, what each GPU makes them of), and whether
#'   the points are `streamed` through a GPU's memory (`bytes_host` are then
#'   those of the filter's rows and of candidates, where these are in the host's
#'   memory), or by blocks of `block_points` from a temporary file of
#'   `bytes_file` bytes, in `num_passes` passes. `num_pairs` is the number of
#'   pairs of points that are looked at, and `filter` says in words what drops
#'   most of them before their distance is made; of several ways a search takes
#'   the one that its points suit. With `look` there is that one too, and is
#'   what is printed: `filter_form`, the numbers in it by name, and
#'   `filter_bits`, the bits of each (see [knn_stats()]; `"none"` and 0 where
#'   there is no filter), and `apart`, whether sums or lengths of points tell
#'   pairs apart before it (on CPUs). With `block`, where blocks are searched
#'   one after another, these are of the first; rows that are done again may
#'   take wider numbers on GPUs. On a GPU of compute capability 9.0 there is no
#'   filter where `k` is large and rows are long, by correlation or cosine:
#'   there all pairs are sooner made.
#'
#'   With `hosts` a list of class `fsknn_cluster_plan`, with a print method:
#'   * `num_blocks`, `block_points` (in the largest block), `cut_by_memory`,
#'     `num_tasks` and `num_pairs`;
#'   * `bytes_points` (the points in the folder), `bytes_read` (by all tasks
#'     together), `bytes_written` (results in the folder) and `bytes_answer`;
#'   * `bytes_host`: the memory of a host whose workers do tasks;
#'   * `bytes_collecting`: the memory of the host that collects the answer;
#'   * `limited_by`: the step that takes most of the time. It is `"search"`,
#'     `"disk"`, `"network"`, `"moving"` (each worker's reading and writing),
#'     `"starting"` (the start and end of tasks), `"tasks"` (fewer than
#'     workers), `"points"` (into the folder) or `"collect"`;
#'   * `more_help`: does the same plan with twice the hosts take less than 95%
#'     of the time?
#'   * `seconds_a_task`: the mean of a task, by its parts as printed. In `wait`
#'     others use the shared disk or the host's network, as `waits_for` says;
#'   * `seconds`, named: `folder` (points into the folder), `tasks`, `collect`
#'     (results out of it), `failing` (`tasks` with failures, on average) and
#'     `all`.
#'
#'   [simulate()][simulate.fsknn_cluster_plan] runs it in made-up time.
#'
#' @section Many hosts:
#' The points are cut into an odd number of blocks. A task is a pair of blocks,
#' or a block with itself, so that each pair of points is compared once. The
#' blocks are those of `knn_search(checkpoint = )` with as many workers. Each
#' worker has four tasks or more, and no task takes much longer than half a
#' minute (on a GPU two minutes). The lists of a task take no more than 512 MiB,
#' or no more than the points that it reads. More than 201 blocks (20,301 files
#' of tasks) are never made for these limits. Two blocks always fit into a
#' worker's share of `memory`.
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
#' points as often as there are blocks. So where the shared disk, or the start
#' and end of tasks, limit the time (`limited_by`), more hosts may make it
#' longer.
#'
#' The seconds are of a model: so much for each value read and prepared, each
#' pair, each feature of a pair, and each pair that the filter leaves, by
#' constants that were fitted to stored runs on one machine with two cores and
#' on one H200 (`system.file("extdata/bench/cluster-model.csv", package =
#' "fsknn")` has them with their sources; the article "many-hosts" of the site
#' says how far off they are). Another CPU or GPU is faster or slower than these
#' by its own factor. Reading and writing are of a task's two blocks and of its
#' results, as fast as `network` and `disk` let them, and no faster than all
#' tasks together can be served; nothing is taken for cached. Results are
#' counted as they are on average for points in random order.
#'
#' Such a plan is of a graph, of points with no missing values, for the metrics
#' that were timed: `"pearson"`, `"spearman"`, `"bicor"`, `"cosine"`,
#' `"euclidean"`, `"manhattan"`, `"chebyshev"` and `"proportional"`. `query`,
#' `block`, `na = "pairwise"`, `chunk_size`, `devices`, `max_memory` and
#' `max_device_memory` are errors there that say why. No GPU needs to be here.
#'
#' The mean time with failures is a formula's: while there are more tasks than
#' workers, each worker makes attempts at a task until one is not cut short; at
#' the end, the last of all the tasks at work is waited for, any of which may be
#' lost, which shows when its lease is dead, and be begun again.
#' @inheritSection knn_search Errors
#' @inherit knn_search references
#' @seealso [knn_backends()]; [knn_stats()] for what a search
#'   was like; [simulate.fsknn_cluster_plan()] for hosts that fail.
#' @export
#' @examples
#' # the expression matrix of the paper
#' knn_plan(c(24158, 295), k = 20, backend = "cpu")
#'
#' # which filter these points take
#' x <- matrix(rnorm(2000 * 30), nrow = 2000)
#' knn_plan(x, backend = "cpu", look = TRUE)$filter_bits
#'
#' # neighbours in each of three batches
#' knn_plan(c(6000, 50), block = gl(3, 2000), backend = "cpu")$num_pairs
#'
#' # 16 hosts of two GPUs each, of the size of Dashti's largest run (2013)
#' hosts <- host_options(16, devices_per_host = 2, memory = "512 GiB",
#'                       disk = "40 GB", network = "5 GB", failures = 0.01)
#' knn_plan(c(20e6, 15876), k = 200, hosts = hosts)
knn_plan <- function(x, k = 20, metric = NULL, sign = "signed", ...,
                     query = NULL, block = NULL, between = FALSE, look = FALSE,
                     hosts = NULL) {
  check_supplied(x)
  given <- options_given("knn_plan", ...)
  cluster <- check_hosts(hosts)
  if (!is.null(cluster)) {
    given$backend <- check_planned_hosts(
      c(given, list(query = query, block = block)), cluster
    )
  }
  check_look(look, x, query, cluster)
  options <- check_options(given, "knn_plan")
  check_planned_cpu(options)
  asked <- list(options = options, block = block)
  of_query <- input_of_query(options$input, query, x)
  input <- input_beside(options$input, x, query)
  turned <- are_turned(input)
  size <- plan_size(x, input)
  query_size <- if (!is.null(query)) {
    plan_query_size(query, size, of_query, x, input)
  }
  check_sizes(
    size, query_size, options$metric, turned, are_turned(of_query)
  )
  if (!is_size(x)) {
    options["weights"] <- list(match_names(
      options$weights, names_of_side(x, input, "features"), "weights",
      "features"
    ))
  }
  weights <- weights_for(options$weights, size[[2]], turned)
  options["weights"] <- list(weights$values)
  options["adjust"] <- list(
    plan_covariates(x, size, turned, input, options, weights)
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
  chosen <- if (look) {
    chosen_filter(x, asked$options, query, k, asked$block, between)
  }
  plan <- new_plan(size[[1]], num_features, query_size[1] %||% 0, request)
  plan[names(chosen)] <- chosen
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
plan_covariates <- function(x, size, turned, input, options, weights,
                            call = caller_env()) {
  if (is.null(options$adjust)) {
    return(NULL)
  }
  names <- if (!is_size(x)) names_of_side(x, input, "features")
  points <- list(
    values = matrix(0, 0, size[[2]], dimnames = list(NULL, names)),
    turned = turned, features = names
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
    queries <- list(turned = are_turned(input))
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

are_turned <- function(input) {
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
        describe_filter(x$filter_bits, x$filter_form, x$apart),
        "(points looked at)"
      )
    } else if (nzchar(x$filter)) {
      x$filter
    } else {
      "none"
    },
    describe_file(x$bytes_file),
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
describe_file <- function(bytes, folder = temporary_folder()) {
  if (bytes > 0) {
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
