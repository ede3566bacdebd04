# Searches within a distance: the request to the core, and the messages about
# it.

# Adds the request for all within these distances (one, or one for each row) to
# a search. `similarity` is the minimum that edges must have, or NULL.
ask_within <- function(search, limits, similarity = NULL,
                       call = caller_env()) {
  search <- within_on_cpu(search, call)
  search$request$within <- list(
    limits = limits, similarity = similarity, most = most_pairs(search),
    most_kept = 2^24
  )
  search
}

# Returns TRUE if the user left the choice of the backend.
is_automatic <- function(backend, devices) {
  is.null(devices) && !identical(backend, "cuda")
}

# Pairs with missing samples are found only on the CPU.
within_on_cpu <- function(search, call = caller_env()) {
  request <- search$request
  if (request$backend != "cuda" || cpp_cuda_finds_within(request)) {
    return(search)
  }
  on_cpu_alone(
    search, pairwise_on_cpu("All pairs within a distance are found"),
    "fsknn_within_pairwise", call
  )
}

pairwise_on_cpu <- function(what) {
  paste(what, "on the CPU where values are missing and na is \"pairwise\".")
}

# Moves the search to the CPU, unless the user demanded a GPU. `reason` is a
# sentence, and `id` is that of the message, which is shown once.
on_cpu_alone <- function(search, reason, id, call) {
  if (!search$options$automatic) {
    abort_backend("cuda", reason, built = TRUE, call)
  }
  rlang::inform(
    c("Using backend \"cpu\".", i = reason),
    .frequency = "once", .frequency_id = id
  )
  search$request$backend <- "cpu"
  search$request$devices <- integer()
  if (!is.null(search$options$long$workers)) {
    # The workers need no shares of GPUs.
    search$options$long$workers["groups"] <- list(NULL)
  }
  search
}

# Describes the request in lines as format.fsknn_plan() does.
describe_within <- function(search) {
  request <- search$request
  values <- search$points$values
  asked <- num_queries(search$queries$values, request)
  lines <- c(
    "Backend" = request$backend,
    "CPU threads" = format_count(request$num_threads),
    "Metric" = describe_metric(
      request$metric, request$sign, !is.null(request$weights),
      num_covariates(request)
    ),
    "Neighbours" = "all within a distance",
    "Points (n)" = format_count(nrow(values)),
    "Features (d)" = format_count(ncol(values)),
    "Query points" = if (asked > 0) format_count(asked),
    "Pairs, at most" = format_count(request$within$most)
  )
  paste0(format(paste0(names(lines), ":")), " ", lines)
}

# Returns the number of entries that fit in memory. Each takes 12 bytes in
# lists, 24 as edges, and 16 more for names.
most_pairs <- function(search) {
  as_edges <- search$request$as_edges
  bytes <- if (!as_edges) {
    12
  } else if (is.null(search$points$names)) {
    24
  } else {
    40
  }
  most <- (search$options$max_memory %||% free_memory()) / bytes
  floor(if (as_edges) min(most, max_edges) else most)
}

# Adds to a failure with too many pairs what its message needs.
with_facts_of <- function(failure, request) {
  within <- request$within
  c(failure, list(
    as_edges = request$as_edges, similarity = within$similarity,
    several_limits = length(within$limits) > 1,
    least = if (may_be_below_zero(metric_facts(request$metric))) -Inf else 0
  ))
}

# Before a search by tasks, each of which sees only its own pairs, a sample of
# all pairs shows if there are far too many. Without tasks, the core samples
# itself.
check_room <- function(work, call) {
  in_core(sample_pairs(work), call)
}

# The memory may be full with fewer pairs than the sample can detect for sure.
# The limit is therefore reduced for this sample.
too_many_of_all <- function(work) {
  within <- work$request$within
  work$request$within$most <- within$most / 2.5
  sampled <- sample_pairs(work)
  if (is.null(sampled$failure)) {
    sampled <- c(sampled, list(
      failure = "too_many_pairs", pairs = NaN, estimated = TRUE, fits = NaN
    ))
  }
  if (nothing_fits(sampled)) {
    sampled$fits <- NaN
  }
  sampled$most <- within$most
  sampled
}

# Returns TRUE if no distance is small enough.
nothing_fits <- function(result) {
  isTRUE(result$fits < result$least || result$fits == -Inf)
}

sample_pairs <- function(work) {
  with_facts_of(
    cpp_sample_pairs(work$values, work$queries, work$request), work$request
  )
}

raise_too_many <- function(result, call) {
  pairs <- format_count(signif(result$pairs, if (result$estimated) 2 else 15))
  most <- format_count(result$most)
  # The sample may miss that there are too many.
  found <- if (!isTRUE(result$pairs > result$most)) {
    "More than {most}"
  } else if (result$estimated) {
    "About {pairs}"
  } else {
    "{pairs}"
  }
  room <- if (result$as_edges && result$most >= max_edges) {
    "a data frame has room for {most}"
  } else {
    "there is memory for {most}"
  }
  cure <- if (is.nan(result$fits)) {
    "A greater {.arg max_memory} has room for more."
  } else if (nothing_fits(result)) {
    if (result$least == 0) {
      "Even those at distance 0 are too many."
    } else {
      "Even those at the smallest distances are too many."
    }
  } else if (!is.null(result$similarity)) {
    "{.code min_similarity = {similarity_that_fits(result$fits)}} would fit."
  } else if (result$several_limits) {
    "With no {.arg distance} above {round_down(result$fits)} all would fit."
  } else {
    "{.code distance = {round_down(result$fits)}} would fit."
  }
  what <- if (is.null(result$similarity)) {
    "within {.arg distance}"
  } else {
    "as similar as {.arg min_similarity}"
  }
  cli_abort(
    c(
      paste0("Too many pairs of points are ", what, "."),
      x = paste0(found, "; ", room, "."),
      i = cure
    ),
    class = c("fsknn_size_error", "fsknn_error"),
    call = call,
    pairs = result$pairs, most = result$most,
    fits = if (nothing_fits(result)) -Inf else result$fits
  )
}

# Rounds to three digits, never up.
round_down <- function(number) {
  if (!is.finite(number) || number == 0) {
    return(format(number))
  }
  parts <- as.double(strsplit(sprintf("%.15e", number), "e", fixed = TRUE)[[1]])
  for (hundredths in floor(100 * parts[[1]]) - 0:1) {
    text <- sprintf("%.0fe%.0f", hundredths, parts[[2]] - 2)
    text <- format(as.double(text), digits = 3)
    # Parsing the text rounds again.
    if (is.finite(as.double(text)) && as.double(text) <= number) {
      return(text)
    }
  }
  format(number, digits = 17)
}

# The verb searches within 1 - similarity, which must be no more than what fits.
# Near 1 similarities are multiples of 2^-53, and 15 digits may be less.
similarity_that_fits <- function(distance) {
  short <- format(1 - as.double(round_down(distance)), digits = 15)
  if (1 - as.double(short) <= distance) {
    return(short)
  }
  format(1 - floor(distance * 2^53) / 2^53, digits = 17)
}
