#' Stability of edges under resampling
#'
#' Draws some of the samples repeatedly and builds the kNN graph of all points
#' from each draw. The *stability* of an edge is the proportion of these graphs
#' that have it. An edge that depends on a few samples is missing from most
#' draws.
#'
#' @details
#' **Resampling.** `"subsample"` (default) draws some of the samples without
#' replacement: half of them, as in the stability selection of Meinshausen and
#' Buhlmann (2010). `"bootstrap"` draws as many as there are, with replacement
#' (Efron 1979). A sample that was drawn three times has weight 3 with
#' `"pearson"`. With other metrics, and with `na` of `"pairwise"` or `"mean"`,
#' its column is repeated three times. That is equivalent and slower.
#'
#' Prefer `"subsample"` for correlations. The correlations of a bootstrap vary
#' as those of about half of the samples do, because repeated samples agree with
#' themselves. This inflates the *largest* of many correlations, so chance edges
#' are often near. More true edges are then missing than from new data of as
#' many patients.
#'
#' **Whole units.** Samples of one unit, such as the cells of a donor, are not
#' independent, and each draw of samples would have all donors. With `unit`,
#' each draw takes units with all of their samples. A stable edge is then found
#' in other donors, too. Permuted data are made by exchange of whole units,
#' which must have equal size. With units of unequal size, there are no chance
#' edges.
#'
#' **Stability of chance edges.** There is no test and no p-value. Instead, the
#' search is also done once on data in which the samples of each point are
#' permuted independently. The stability of *its* edges under the same resamples
#' is an attribute, and `summary()` and `plot()` show it beside that of the
#' data. This stability is not small, since each draw shares its samples with
#' the whole data. An edge that is no more stable than chance edges may be due
#' to chance.
#'
#' The permuted data are searched for at most `r most_chance_points` points,
#' drawn at random, and the first `r most_chance_resamples` resamples. They are
#' not used for [metafeatures()], which have rows in common.
#'
#' **Interpretation.** Stability is high for each edge that is consistent in
#' *these* samples, whether by biology, a batch or a subgroup. It says nothing
#' about patients of another population. Points of a tight module have many
#' neighbours at similar distances, which replace each other between draws. So
#' the edges within a module may be unstable while the module is stable.
#'
#' **Edges returned.** They are the edges of the graph of all samples, and
#' further edges that at least `min_stability` of the resamples have. The latter
#' have no `rank`. A consensus graph is `edges[edges$stability >= 0.8, ]`, or
#' `combine_graphs(edges, min_stability = 0.8)`, which accepts several graphs:
#' see [combine_graphs()].
#'
#' **Constant points.** Under a correlation, a point that is constant over the
#' samples of a draw is absent from that graph, and so are its edges. Under
#' metrics that are undefined for rows of zeros, the same holds for a point that
#' is 0 in all of them. The column `absent` of the vertices counts these draws.
#'
#' **Covariates.** `adjust` is fitted to the samples of each draw.
#'
#' **Time and memory.** Data are read, sent to GPUs and checked once. A search
#' with half of the samples takes about half of the time of one with all. The
#' counts take about 13 bytes for each edge that could still reach
#' `min_stability`.
#'
#' All random numbers are R's and are drawn before the first search. After
#' [set.seed()], an answer is reproducible on every backend, with any number of
#' threads, with `BPPARAM` and from a `checkpoint`.
#'
#' @inheritParams knn_graph
#' @param resamples Number of draws of the samples, a whole number.
#' @param method `"subsample"` (default) or `"bootstrap"`: see Details.
#' @param fraction The number of samples (or units) to draw, as a proportion of
#'   all. `NULL` (default) is 0.5 for `"subsample"`, which must be below 1, and
#'   1 for `"bootstrap"`.
#' @param min_stability Edges that are not in the graph of all samples are
#'   returned if at least this proportion of the resamples has them.
#' @param chance `TRUE` (default) also computes the stability of chance edges,
#'   except for units of unequal size.
#' @param unit `NULL` (default), or the unit of each sample (column of `x`),
#'   such as its donor. It is in the order of the samples, or has their names.
#'   For an `ExpressionSet` or a `SummarizedExperiment`, it may be the name of a
#'   column of its sample data.
#' @param ... [Point options][point_options()] and [run options][run_options()],
#'   by name, or collected as `options = `. Data that are read by blocks must
#'   fit in `max_memory`. With `BPPARAM` and `checkpoint`, a task is some of the
#'   resamples. The few searches of permuted data run in this process.
#'
#' @returns An edge data frame as from [knn_graph()], which also has class
#'   `fsknn_stability`. The column `stability` is the proportion of the
#'   resamples whose graph has the edge. Edges that only resamples have follow
#'   the others of their point, the most stable first. Their `rank` is `NA`, and
#'   their `distance` is over all samples.
#'
#'   The attribute `vertices` has two more columns for each point: `stability`,
#'   the mean over its edges in the graph of all samples, and `absent`. The
#'   attribute `stability` is a list of the settings of the draws and of
#'   `chance`. The latter counts the chance edges that are in 0, 1, 2, ... of
#'   the resamples. `summary()` returns quantiles, also for each rank. `plot()`
#'   draws a ggplot of the stabilities of the edges and of chance edges.
#' @inheritSection knn_search Errors
#' @references
#' Meinshausen N, Buhlmann P (2010). Stability selection. *Journal of the Royal
#' Statistical Society B* 72: 417-473. \doi{10.1111/j.1467-9868.2010.00740.x}
#'
#' Efron B (1979). Bootstrap methods: another look at the jackknife. *Annals of
#' Statistics* 7: 1-26. \doi{10.1214/aos/1176344552}
#' @seealso [edge_significance()] for p-values of edges, and [combine_graphs()].
#' @export
#' @examples
#' # Groups of genes that vary together, among noise
#' group <- rep(c(1:3, NA), c(10, 10, 10, 70))
#' x <- matrix(rnorm(100 * 40), 100)
#' factors <- matrix(rnorm(3 * 40), 3)
#' x[!is.na(group), ] <- x[!is.na(group), ] + 2 * factors[na.omit(group), ]
#' rownames(x) <- paste0("gene", 1:100)
#'
#' edges <- edge_stability(x, k = 3, resamples = 50)
#' edges
#' summary(edges)
#' # A graph of the stable edges
#' as_igraph(edges[edges$stability >= 0.8, ])
#' # The mean for each point
#' head(attr(edges, "vertices"))
edge_stability <- function(x, k = 20, resamples = 100,
                           method = c("subsample", "bootstrap"),
                           fraction = NULL, metric = NULL, sign = "signed", ...,
                           min_stability = 0.5, chance = TRUE, subset = NULL,
                           unit = NULL) {
  check_supplied(x)
  method <- check_resampling(method)
  resamples <- check_whole_number(resamples, "resamples", 1, 1e6)
  min_stability <- check_positive_share(min_stability, "min_stability")
  chance <- check_flag(chance, "chance")
  options <- verb_options("edge_stability", ...)
  # A file would hold points prepared with all of their samples.
  options$in_memory <- TRUE
  search <- new_search(x, options, k = k, subset = subset, as_edges = TRUE)
  draw <- list(
    method = method, resamples = resamples,
    num_samples = ncol(search$points$values), min_stability = min_stability
  )
  unit <- units_of_search(unit, search, x)
  draw$num_units <- if (!is.null(unit)) max(unit)
  draw$size <- check_fraction(fraction, draw, options$metric)
  stable <- find_stability(search, draw, chance, unit, current_env())
  new_stability(stable, search, draw)
}

check_resampling <- function(method, call = caller_env()) {
  check_choice(
    method, c("subsample", "bootstrap"), "method",
    synonyms = c(subsampling = "subsample", bootstrapping = "bootstrap"),
    call = call
  )
}

# Checks a share above 0 and at most 1.
check_positive_share <- function(value, arg, call = caller_env()) {
  good <- is.numeric(value) && length(value) == 1 && !is.object(value) &&
    is.finite(value) && value > 0 && value <= 1
  if (!good) {
    given <- describe_value(value)
    abort_argument(
      "{.arg {arg}} must be a number above 0 and at most 1, not {given}.", call
    )
  }
  as.double(value)
}

# Returns the number of samples to draw.
check_fraction <- function(fraction, draw, metric, call = caller_env()) {
  subsample <- draw$method == "subsample"
  fraction <- fraction %||% if (subsample) 0.5 else 1
  fraction <- check_positive_share(fraction, "fraction", call)
  num_items <- draw$num_units %||% draw$num_samples
  items <- if (is.null(draw$num_units)) "samples" else "units"
  size <- round(fraction * num_items)
  least <- if (metric$undefined_rows == "constant") 2 else 1
  most <- if (subsample) num_items - 1 else num_items
  if (size >= least && size <= most) {
    return(as.integer(size))
  }
  needed <- least + subsample
  if (!is.null(draw$num_units) && num_items < needed) {
    abort_argument(
      "{.arg unit} must have {format_bound(needed)} units or more, not
       {format_bound(num_items)}.",
      call
    )
  }
  abort_argument(
    c(
      "{.arg fraction} must draw {format_bound(least)} {items} or more, and
       {if (subsample) 'fewer than' else 'no more than'} there are.",
      x = "It draws {format_bound(size)} of {format_bound(num_items)}."
    ),
    call
  )
}

# --- the search --------------------------------------------------------------

# Edges of noise are many and alike. So many points and resamples suffice to
# estimate their shares.
most_chance_points <- 500L
most_chance_resamples <- 50L

# Draws all random numbers first, and then searches. Returns list(found, count,
# others, absent, chance). `found` are the edges of the graph of all samples,
# with their counts; `others` are further edges. `chance` counts the edges of
# noise in 0, 1, ... resamples.
find_stability <- function(search, draw, chance, unit, call) {
  drawn <- draw_samples(draw, unit)
  noise <- if (chance) draw_chance(search, unit)
  least <- max(1L, as.integer(ceiling(
    # In double, 0.07 * 100 exceeds 7.
    draw$min_stability * draw$resamples * (1 - 1e-12)
  )))
  found <- run_search(without_folder(search), call)
  counted <- count_found(search, found, drawn, least, call)
  list(
    found = found, count = counted$count,
    others = measure_others(search, counted, call), absent = counted$absent,
    chance = if (!is.null(noise)) {
      count_chance(noise, utils::head(drawn, most_chance_resamples), call)
    }
  )
}

# Only the search of the resamples uses the folder.
without_folder <- function(search) {
  search$options$long["folder"] <- list(NULL)
  if (is.null(search$options$long$workers)) {
    search$options["long"] <- list(NULL)
  }
  search
}

# Returns the counts of the core: see R/significance-resamples.R.
count_found <- function(search, found, drawn, least, call) {
  subset <- search$request$subset
  row <- if (is.null(subset)) found$from else match(found$from, subset)
  find_in_parts_or_whole(
    resampled_search(search, drawn, list(row = row, to = found$to), least),
    call
  )
}

# Returns the edges found only in resamples, with their distances over all
# samples.
measure_others <- function(search, counted, call) {
  from <- counted$row
  if (!is.null(search$request$subset)) {
    from <- search$request$subset[from]
  }
  measured <- measure_pairs(search, from, counted$to, call)
  list(
    from = from, to = counted$to, rank = rep(NA_integer_, length(from)),
    distance = measured$distance,
    correlation = if (search$request$correlation) measured$correlation,
    count = counted$times
  )
}

# Units of unequal size can't change places, and metafeatures have rows in
# common.
can_permute_points <- function(search, unit) {
  sizes <- if (!is.null(unit)) tabulate(unit)
  !is_metafeatures(search$points$values) && length(unique(sizes)) <= 1
}

# Makes the same search on independent points, for some of them. Returns NULL if
# the points can't be permuted.
draw_chance <- function(search, unit) {
  if (!can_permute_points(search, unit)) {
    return(NULL)
  }
  asked <- search$request$subset %||% seq_len(nrow(search$points$values))
  asked <- setdiff(asked, search$request$skip)
  if (length(asked) > most_chance_points) {
    asked <- sort(asked[sample.int(length(asked), most_chance_points)])
  }
  if (length(asked) == 0) {
    return(NULL)
  }
  search <- on_permuted_points(search, unit)
  search$request$subset <- as.integer(asked)
  search$num_rows <- length(asked)
  search
}

# Makes a search of independent points with the same values.
on_permuted_points <- function(search, unit = NULL) {
  search$points$values <- permute_within_points(
    without_covariates(search$points$values, search, unit), unit
  )
  search$request$progress <- FALSE
  search$options$verbose <- FALSE
  search$options["long"] <- list(NULL)
  search
}

count_chance <- function(noise, drawn, call) {
  resamples <- length(drawn)
  found <- suppressMessages(
    run_search(noise, call), classes = "fsknn_short_rows"
  )
  count <- count_found(noise, found, drawn, resamples + 1L, call)$count
  tabulate(count + 1L, resamples + 1L)
}

# --- the answer --------------------------------------------------------------

new_stability <- function(stable, search, draw) {
  found <- stable$found
  num_points <- nrow(search$points$values)
  share <- stable$count / draw$resamples
  vertices <- mean_stability(found$from, share, num_points)
  vertices$absent <- stable$absent
  found$count <- stable$count
  found <- join_edges(found, stable$others, search$request$subset)
  edges <- edges_of_search(found, search)
  edges$stability <- found$count / draw$resamples
  left_out <- attr(edges, "left_out")$point
  if (length(left_out) > 0) {
    vertices <- vertices[-left_out, ]
  }
  attr(edges, "vertices") <- cbind(attr(edges, "vertices"), vertices)
  attr(edges, "stability") <- c(draw, list(chance = stable$chance))
  class(edges) <- c("fsknn_stability", class(edges))
  edges
}

# Returns the mean over the edges of each point, or NA if it has none.
mean_stability <- function(from, share, num_points) {
  sums <- numeric(num_points)
  if (length(from) > 0) {
    by_point <- rowsum(share, from, reorder = FALSE)
    sums[as.integer(rownames(by_point))] <- by_point
  }
  counts <- tabulate(from, num_points)
  data.frame(stability = ifelse(counts > 0, sums / counts, NA_real_))
}

# The others follow the edges of the same point, the most frequent first.
join_edges <- function(found, others, subset) {
  if (length(others$from) == 0) {
    return(found)
  }
  columns <- c("from", "to", "rank", "distance", "correlation", "count")
  joined <- lapply(stats::setNames(nm = columns), function(column) {
    c(found[[column]], others[[column]])
  })
  row <- if (is.null(subset)) joined$from else match(joined$from, subset)
  order <- order(
    row, is.na(joined$rank), joined$rank, -joined$count, joined$to,
    method = "radix"
  )
  lapply(joined[lengths(joined) > 0], `[`, order)
}
