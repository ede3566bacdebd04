#' Stability of modules under resampling
#'
#' Draws some of the samples repeatedly, builds the kNN graph of all points from
#' each draw, and clusters it by a function of yours. The *stability* of a
#' module is how well the clusters of the draws agree with it. Points that
#' change their module between draws are found, too.
#'
#' @details
#' **Modules.** The modules are the clusters of the graph of all samples. Each
#' is compared with its best match among the clusters of a draw. The agreement
#' of two sets of points is the Jaccard coefficient, the number of common points
#' divided by that of all points in either. `stability` is the mean of the
#' agreements with the best match (Hennig 2007).
#'
#' Hennig calls a cluster
#' *dissolved* in a draw if the best match is at most 0.5, and *recovered* if it
#' is at least 0.75. He resamples points. Here, all points are in each draw, and
#' samples are drawn: see [edge_stability()] for `"subsample"` and
#' `"bootstrap"`.
#'
#' **Points.** `stability` of a point is the mean Jaccard coefficient of its
#' module and its cluster in a draw. `together` is the proportion of the other
#' points of its module that are in its cluster, on average. A point with few
#' companions is at the border of its module. If all points of a module stay
#' together while `stability` is low, it is joined with others.
#'
#' **Stability by chance.** There is no test and no p-value. A clustering finds
#' clusters in noise, too, and samples that are drawn twice make them similar.
#' So the samples of each point are permuted independently, and the same
#' resamples of these data are clustered. `chance` has the size and the
#' stability of *their* modules. A module that is no more stable than these may
#' be due to chance. At most the first `r most_noise_resamples` resamples are
#' used.
#'
#' The reverse is weaker evidence, since the data are permuted only once. In
#' noise, the most stable module of the data exceeds all modules of permuted
#' data about every second time. In a simulation
#' (`inst/bench/calibration_modules.R`, 1,000 data sets), 15% of the modules of
#' noise did so. True modules had 10 of 60 points, in 24 samples. With r = 0.5
#' within them, 76% were found and did so, and with r = 0.3 it was 23%.
#' Compare modules of similar size, and look for a clear difference.
#'
#' **Whole units.** With `unit`, each draw takes units with all of their
#' samples, such as donors with all of their cells: see [edge_stability()].
#' Stability then refers to other donors. Permuted data are made by exchange of
#' whole units. With units of unequal size, there are no modules of permuted
#' data. Without `unit`, each draw has samples of all donors. In the simulation,
#' 90% of the modules of noise that differed between donors then exceeded all
#' modules of permuted data. With `unit` it was 14%.
#'
#' **Interpretation.** Stability tells whether a module depends on a few of
#' *these* samples. It is high for each structure that most samples share, also
#' for a batch. Large modules that include most points have a large Jaccard
#' coefficient with any large cluster. See [module_preservation()] for other
#' samples.
#'
#' All resamples are drawn by R's random numbers before the first search. If
#' `cluster` uses random numbers, they follow in order of the draws. After
#' [set.seed()], an answer is reproducible.
#'
#' @inheritParams edge_stability
#' @param cluster A function of one argument, the edges of a graph as from
#'   [knn_graph()]. It returns the clusters of the points: a result of
#'   [mst_knn()] or of igraph's `cluster_*()` functions, or a vector. A vector
#'   has a cluster for each row of `attr(edges, "vertices")`, and `NA` means no
#'   cluster.
#' @param resamples Number of draws of the samples, 50 by default.
#' @param min_size The minimum number of points in a module, 3 by default.
#' @param chance `TRUE` (default) also computes the stability of modules of
#'   permuted data, except for units of unequal size.
#' @param ... [Point options][point_options()] and [run options][run_options()],
#'   by name, or collected as `options = `. `adjust` is fitted to the samples of
#'   each draw. Data that are read by blocks must fit in `max_memory`.
#'
#' @returns An object of class `fsknn_module_stability`, a list of
#'   * `modules`: a data frame with a row for each module. Its columns are
#'     `module`, `size`, `stability`, `recovered` and `dissolved` (proportions
#'     of the draws), and `together`. The latter is the proportion of the pairs
#'     of its points that are in one cluster;
#'   * `points`: a data frame with a row for each point of a module: `point`,
#'     `module`, `stability` and `together`;
#'   * `comembership`: a matrix with a row and a column for each module. It has
#'     the proportion of pairs, one point from each, that are in one cluster;
#'   * `memberships`: an integer matrix with the cluster of each point of the
#'     graph (row) in each draw (column), or `NA`.
#'     `mean(m[i, ] == m[j, ])` is how often two points are together;
#'   * `chance`: a data frame of the modules of permuted data (`size`,
#'     `stability`), or `NULL`;
#'   * `draw`: a list of the settings of the draws.
#'
#'   `as.data.frame()` returns the modules, or with `what` the `"points"` or
#'   `"chance"`.
#' @inheritSection knn_search Errors
#' @references
#' Hennig C (2007). Cluster-wise assessment of cluster stability.
#' *Computational Statistics & Data Analysis* 52(1): 258-271.
#' \doi{10.1016/j.csda.2006.11.025}
#' @seealso [edge_stability()] for edges, [module_preservation()] for other
#'   samples.
#' @order 1
#' @export
#' @examples
#' # Two modules, of which the second is weak, among noise
#' group <- rep(c(1, 2, NA), c(15, 15, 30))
#' factors <- matrix(rnorm(2 * 30), 2)
#' x <- matrix(rnorm(60 * 30), 60)
#' x[1:15, ] <- x[1:15, ] + rep(2 * factors[1, ], each = 15)
#' x[16:30, ] <- x[16:30, ] + rep(0.5 * factors[2, ], each = 15)
#'
#' set.seed(1)
#' louvain <- function(edges) {
#'   igraph::cluster_louvain(as_igraph(edges, mode = "union"))
#' }
#' found <- module_stability(x, louvain, k = 5, resamples = 20)
#' found
#' head(found$points)
module_stability <- function(x, cluster, k = 20, resamples = 50,
                             method = c("subsample", "bootstrap"),
                             fraction = NULL, metric = NULL, sign = "signed",
                             ..., min_size = 3, chance = TRUE, unit = NULL) {
  check_supplied(x)
  check_supplied(cluster)
  if (!is.function(cluster)) {
    given <- describe_value(cluster)
    abort_argument(
      c(
        "{.arg cluster} must be a function of the edges, not {given}.",
        i = "For example {.code cluster = mst_knn}."
      ),
      current_env()
    )
  }
  method <- check_resampling(method)
  resamples <- check_whole_number(resamples, "resamples", 1, 1e6)
  min_size <- check_whole_number(min_size, "min_size", 2, .Machine$integer.max)
  chance <- check_flag(chance, "chance")
  options <- verb_options("module_stability", ...)
  options$in_memory <- TRUE
  search <- new_search(x, options, k = k, as_edges = TRUE)
  draw <- list(
    method = method, resamples = resamples,
    num_samples = ncol(search$points$values)
  )
  unit <- units_of_search(unit, search, x)
  draw$num_units <- if (!is.null(unit)) max(unit)
  draw$size <- check_fraction(fraction, draw, options$metric)
  drawn <- draw_samples(draw, unit)
  noise <- if (chance && can_permute_points(search, unit)) {
    on_permuted_points(search, unit)
  }
  found <- cluster_resamples(search, drawn, cluster, min_size, current_env())
  if (nrow(found$modules) == 0) {
    abort_argument(
      c(
        "{.arg cluster} must find a module of {.arg min_size} points,
         {min_size}, or more.",
        x = "The largest has {format_count(found$largest)}."
      ),
      current_env()
    )
  }
  found$largest <- NULL
  found["chance"] <- list(if (!is.null(noise)) {
    of_noise <- cluster_resamples(
      noise, utils::head(drawn, most_noise_resamples), cluster, min_size,
      current_env()
    )
    of_noise$modules[c("size", "stability")]
  })
  found$draw <- draw
  structure(found, class = "fsknn_module_stability")
}

# Modules of noise are many and alike.
most_noise_resamples <- 20L

# Compares the clusters of all samples with those of each resample.
cluster_resamples <- function(search, drawn, cluster, min_size, call) {
  edges <- edges_of_search(search_quietly(search, call), search)
  vertices <- attr(edges, "vertices")$name
  points <- list(
    values = matrix(0, length(vertices), 1),
    names = if (is.character(vertices)) vertices
  )
  clusters_of <- function(edges) {
    check_membership(cluster(edges), points, "cluster(edges)", call)
  }
  of <- clusters_of(edges)
  sizes <- tabulate(of, nlevels(of))
  large <- which(sizes >= min_size)
  module <- match(as.integer(of), large)
  sums <- list(agreement = 0, recovered = 0, dissolved = 0, pairs = 0)
  of_points <- matrix(0, length(vertices), 2)
  memberships <- matrix(NA_integer_, length(vertices), length(drawn))
  bar <- new_split_bar(search$request$progress, length(drawn), "Resamples")
  on.exit(end_bar(bar))
  for (at in seq_along(drawn)) {
    found <- as.integer(clusters_of(
      graph_of_resample(search, drawn[[at]], call)
    ))
    memberships[, at] <- found
    compared <- compare_clusters(module, found, length(large))
    sums$agreement <- sums$agreement + compared$best
    sums$recovered <- sums$recovered + (compared$best >= 0.75)
    sums$dissolved <- sums$dissolved + (compared$best <= 0.5)
    sums$pairs <- sums$pairs + compared$pairs
    of_points <- of_points + compared$points
    step_bar(bar, 1)
  }
  share <- function(sum) sum / length(drawn)
  names <- module_names(levels(of))[large]
  pairs <- share(sums$pairs)
  dimnames(pairs) <- list(names, names)
  within <- order(module, na.last = NA)
  rownames(memberships) <- points$names
  list(
    modules = data.frame(
      module = names, size = sizes[large],
      stability = share(sums$agreement), recovered = share(sums$recovered),
      dissolved = share(sums$dissolved), together = unname(diag(pairs)),
      stringsAsFactors = FALSE
    ),
    points = data.frame(
      point = vertices[within], module = names[module[within]],
      stability = share(of_points[within, 1]),
      together = share(of_points[within, 2]), stringsAsFactors = FALSE
    ),
    comembership = pairs, memberships = memberships,
    largest = max(0L, sizes)
  )
}

# `module` (1 to num_modules) and `cluster` have a number for each point, NA for
# none. Returns the Jaccard coefficient of each module with its best match, the
# proportion of pairs of points of two modules that are in one cluster, and for
# each point two columns: the Jaccard coefficient of its module and its cluster,
# and the proportion of its module that is with it.
compare_clusters <- function(module, cluster, num_modules) {
  num_clusters <- max(0L, cluster, na.rm = TRUE)
  both <- which(!is.na(module) & !is.na(cluster))
  common <- matrix(
    tabulate(
      (cluster[both] - 1) * num_modules + module[both],
      num_modules * num_clusters
    ),
    num_modules, num_clusters
  )
  sizes <- tabulate(module, num_modules)
  either <- outer(sizes, tabulate(cluster, num_clusters), `+`) - common
  jaccard <- common / either
  best <- if (num_clusters == 0) {
    double(num_modules)
  } else {
    apply(jaccard, 1, max)
  }
  pairs <- tcrossprod(common) / outer(sizes, sizes)
  diag(pairs) <- rowSums(common * (common - 1)) / (sizes * (sizes - 1))
  points <- matrix(0, length(module), 2)
  own <- cbind(module[both], cluster[both])
  points[both, 1] <- jaccard[own]
  points[both, 2] <- (common[own] - 1) / (sizes[module[both]] - 1)
  list(best = best, pairs = pairs, points = points)
}

#' @method format fsknn_module_stability
#' @export
format.fsknn_module_stability <- function(x, ...) {
  chance <- x$chance$stability
  c(
    paste0(
      "Stability of ", tally(nrow(x$modules), "module"), " of ",
      tally(nrow(x$points), "point"), ": ", format_draw(x$draw)
    ),
    if (length(chance) > 0) {
      paste0(
        "Chance: ", tally(length(chance), "module"),
        " of permuted data, stability ",
        paste(unique(format_share(range(chance))), collapse = " to ")
      )
    } else if (!is.null(x$chance)) {
      "Chance: no module of permuted data is as large."
    }
  )
}

#' @export
print.fsknn_module_stability <- function(x, ..., n = 10) {
  cat(format(x), sep = "\n")
  largest <- utils::head(order(-x$modules$size), n)
  print_some(x$modules[largest, ], nrow(x$modules), "module")
  invisible(x)
}

#' @param what For `as.data.frame()`: `"modules"` (default), `"points"` or
#'   `"chance"`.
#' @param row.names,optional Not used: arguments of the generic.
#' @method as.data.frame fsknn_module_stability
#' @rdname module_stability
#' @order 2
#' @export
as.data.frame.fsknn_module_stability <- function(x, row.names = NULL,
                                                 optional = FALSE, ...,
                                                 what = c("modules", "points",
                                                          "chance")) {
  check_no_more(...)
  check_unused(row.names, optional, c("modules", "points", "chance"))
  what <- check_choice(what, c("modules", "points", "chance"), "what")
  if (is.null(x[[what]])) {
    abort_argument(
      "There are no modules of permuted data: {.fn module_stability} makes them
       with {.code chance = TRUE}, unless units differ in size.",
      current_env()
    )
  }
  x[[what]]
}
