#' Smallest set of features that separates classes
#'
#' Solves the (alpha, beta)-k-feature set problem (Cotta, Sloper and Moscato
#' 2004; Berretta, Mendes and Moscato 2007). It finds the smallest set of rows
#' of a discretised matrix with two properties. Any two samples of *different*
#' classes *differ* in at least `alpha` of these rows. Any two samples of the
#' *same* class *agree* in at least `beta` of them. It is the second filter of
#' the breast-cancer study (Arefin et al. 2012, Results), after [mdl_filter()].
#'
#' @param x A result of [mdl_filter()], of which the kept rows are used as they
#'   were discretised. Or discretised features in rows and samples in columns,
#'   as an integer, logical or whole-numbered matrix, a data frame, an
#'   `ExpressionSet` or a `SummarizedExperiment`. Values are labels: only their
#'   equality matters.
#' @param class The class of each sample, as for [mdl_filter()]. `NULL`
#'   (default) uses the class of the filter.
#' @param alpha The minimum number of rows in which samples of different classes
#'   must differ. It is a whole number, or `"max"` (default) for the largest
#'   possible value. That is the minimum, over all pairs of such samples, of the
#'   number of rows in which they differ.
#' @param beta The minimum number of rows in which samples of the same class
#'   must agree. It is a whole number, where 0 is no constraint, or `"max"`
#'   (default). `"max"` first finds the smallest k for `alpha` alone, and then
#'   the largest `beta` among the sets of that size (Ravetti, Berretta and
#'   Moscato 2009). It never increases k for a larger `beta`.
#' @param ... Must be empty: later arguments must be named in full.
#' @param time_limit The time in seconds after which the search ends, 60 by
#'   default. A first set is always found, however short the limit. For
#'   thousands of rows and tens of thousands of pairs, this takes seconds.
#' @param solver The exact solver for sets that the bound (see "Method" below)
#'   does not prove to be the smallest. `"auto"` (default) uses GLPK if the
#'   package Rglpk is installed. `"glpk"` requires that package. `"none"` does
#'   not use it.
#' @inheritParams run_options
#' @inheritParams knn_search
#'
#' @returns A list of class `fsknn_alpha_beta_k`, with a print method:
#'   * `index`: integer, the chosen rows in increasing order. For a result of
#'     [mdl_filter()], they are rows of the original matrix;
#'   * `features`: their names, or `NULL` if `x` has no row names;
#'   * `k`: their number;
#'   * `alpha`, `beta`: the given values, or the largest ones found for `"max"`;
#'   * `lower_bound`: no set has fewer rows than this;
#'   * `gap`: (k - lower_bound) / k, 0 if k is proven to be the smallest;
#'   * `beta_bound`: for `beta = "max"`, no set of k rows has a larger `beta`
#'     than this. Otherwise `beta`;
#'   * `optimal`: whether k is proven to be the smallest, and `beta` the
#'     largest;
#'   * `solver`: `"Rglpk"` if it was used, otherwise `"none"`;
#'   * `seconds`: the time taken.
#'
#' @section Method:
#' Rows that some pair of samples requires are taken first, and redundant pairs
#' are dropped. A Lagrangian relaxation gives the lower bound, by the volume
#' algorithm (Barahona and Anbil 2000). A greedy cover is computed repeatedly
#' from its reduced costs, and improved by a weighting local search (Gao, Yao,
#' Weise and Li 2015). If the bound equals the size of the set, the set is
#' proven to be the smallest.
#'
#' Otherwise, rows are fixed or excluded by their reduced costs, and GLPK solves
#' the rest. It starts with few constraints, and those that its last solution
#' violates are added. The search is the same in every run if the time suffices.
#' Otherwise, the result depends on the machine.
#'
#' @section Memory:
#' Pairs are stored as bits. After the reductions, they take twice (rows x
#' pairs) / 8 bytes besides `x`. That is 22 MB for 2,000 rows and all 43,365
#' pairs of 295 samples, and 260 MB for 24,000 rows. No matrix of constraints
#' has more than a million entries.
#'
#' @section Errors:
#' An error of class `fsknn_argument_error` is raised by an invalid argument,
#' and by values that are missing or not whole. It is also raised if even all
#' rows together do not satisfy `alpha` or `beta`. The message then names a pair
#' of samples for which it is impossible, and the possible values. Ctrl-C stops
#' a call.
#'
#' @references
#' Cotta C, Sloper C, Moscato P (2004). Evolutionary Search of Thresholds for
#' Robust Feature Set Selection: Application to the Analysis of Microarray Data.
#' *Applications of Evolutionary Computing*, LNCS 3005: 21-30.
#' \doi{10.1007/978-3-540-24653-4_3}
#'
#' Berretta R, Mendes A, Moscato P (2007). Selection of Discriminative Genes in
#' Microarray Experiments Using Mathematical Programming. *Journal of Research
#' and Practice in Information Technology* 39(4): 287-299.
#'
#' Ravetti MG, Berretta R, Moscato P (2009). Novel Biomarkers for Prostate
#' Cancer Revealed by (alpha, beta)-k-Feature Sets. *Foundations of
#' Computational Intelligence* 5: 149-175. \doi{10.1007/978-3-642-01536-6_7}
#'
#' Barahona F, Anbil R (2000). The Volume Algorithm: Producing Primal Solutions
#' with a Subgradient Method. *Mathematical Programming* 87: 385-399.
#' \doi{10.1007/s101070050002}
#'
#' Gao C, Yao X, Weise T, Li J (2015). An Efficient Local Search Heuristic with
#' Row Weighting for the Unicost Set Covering Problem. *European Journal of
#' Operational Research* 246(3): 750-761. \doi{10.1016/j.ejor.2015.05.038}
#' @seealso [mdl_filter()] for the filter before this one.
#' @export
#' @examples
#' set.seed(1)
#' class <- rep(c("good", "poor"), each = 10)
#' x <- matrix(rbinom(30 * 20, 1, 0.4), 30)
#' x[1:15, class == "poor"] <- 1 - x[1:15, class == "good"]
#' chosen <- alpha_beta_k(x, class)
#' chosen
#' x[chosen$index, ]
#'
#' # After the first filter: alpha_beta_k(mdl_filter(x, class))
alpha_beta_k <- function(x, class = NULL, alpha = "max", beta = "max", ...,
                         time_limit = 60, solver = c("auto", "glpk", "none"),
                         num_threads = NULL, progress = NULL) {
  check_no_more(...)
  check_supplied(x)
  started <- Sys.time()
  seconds <- check_time_limit(time_limit)
  solver <- choose_solver(solver)
  num_threads <- check_num_threads(num_threads)
  progress <- check_progress(progress)
  input <- cover_input(x, class, num_threads)
  cover <- new_cover(input$levels, input$class, num_threads, solver, progress)
  alpha <- check_pair_demand(alpha, "alpha", cover)
  wants_most <- identical(beta, "max")
  if (!wants_most) {
    beta <- check_pair_demand(beta, "beta", cover)
  }
  found <- if (wants_most) {
    most_agreement(cover, alpha, seconds, current_env())
  } else {
    found <- solve_cover(cover, alpha, beta, 0L, seconds, current_env())
    c(found, list(beta = beta, beta_bound = beta))
  }
  # The check is fast compared with the search and proves the result.
  lacks <- pair_lacks(cover, found$chosen, alpha, found$beta)
  stopifnot("the set found does not fulfil all pairs" = all(lacks == 0))
  k <- length(found$chosen)
  structure(
    list(
      index = input$rows[found$chosen],
      features = rownames(input$levels)[found$chosen],
      k = k,
      alpha = alpha,
      beta = found$beta,
      lower_bound = found$lower_bound,
      gap = if (k == 0) 0 else (k - found$lower_bound) / k,
      beta_bound = found$beta_bound,
      optimal = k == found$lower_bound && found$beta == found$beta_bound,
      solver = found$solver,
      seconds = as.double(Sys.time() - started, units = "secs")
    ),
    class = "fsknn_alpha_beta_k"
  )
}

# Finds the smallest set for alpha alone, then the largest beta for a set of
# that size. It uses bisection: a set for some beta serves any smaller one.
most_agreement <- function(cover, alpha, seconds, call) {
  until <- Sys.time() + seconds
  left <- function() as.double(until - Sys.time(), units = "secs")
  best <- solve_cover(cover, alpha, 0L, 0L, seconds / 2, call)
  low <- beta_of(cover, best$chosen)
  pairs <- cover$same & cover$upper
  all_rows <- seq_len(nrow(cover$levels))
  bound <- min(length(best$chosen), beta_of(cover, all_rows))
  high <- if (any(pairs)) bound else low
  bound <- high
  while (low < high && left() > 0) {
    middle <- (low + high + 1L) %/% 2L
    k <- length(best$chosen)
    share <- max(left(), 0.01) / (ceiling(log2(high - low + 1)) + 1)
    found <- solve_cover(cover, alpha, middle, k, share, call)
    if (found$solver != "none") {
      best$solver <- found$solver
    }
    if (length(found$chosen) <= k) {
      best$chosen <- found$chosen
      low <- beta_of(cover, best$chosen)
      high <- max(high, low)
    } else {
      high <- middle - 1L
      # Otherwise it is unknown, and the bound stays.
      if (found$lower_bound > k && bound >= middle) {
        bound <- high
      }
    }
  }
  bound <- min(bound, length(best$chosen))
  best$beta <- as.integer(low)
  best$beta_bound <- as.integer(max(bound, low))
  best
}

# --- arguments ---------------------------------------------------------------

# Returns levels as an integer matrix, the class, and the user's numbers of the
# rows.
cover_input <- function(x, class, num_threads, call = caller_env()) {
  if (inherits(x, "fsknn_mdl_filter")) {
    check_some_rows(nrow(x$levels), "{.arg x} keeps no row.", call)
    class <- if (is.null(class)) {
      x$class
    } else {
      check_class(
        class, NULL, ncol(x$levels), colnames(x$levels), call = call
      )
    }
    rows <- unname(which(x$keep))
    return(list(levels = x$levels, class = class, rows = rows))
  }
  points <- in_memory(
    as_points(expression_of(x, call = call), call = call), call = call
  )
  levels <- points$values
  check_some_rows(nrow(levels), "{.arg x} has no row.", call)
  class <- check_class(
    class, x, ncol(levels), feature_names(levels), call = call
  )
  scan <- in_core(cpp_scan(levels, num_threads), call)
  # The values are labels, so a mean of neighbours cannot fill them in.
  check_finite(points, scan, "x", metric = list(levels = 1), call = call)
  check_whole_levels(levels, call)
  if (is.double(levels)) {
    # Any whole numbers can be labels, even those beyond the range of an
    # integer.
    levels[] <- match(levels, unique(as.vector(levels)))
  }
  mode(levels) <- "integer"
  rownames(levels) <- points$names
  list(levels = levels, class = class, rows = seq_len(nrow(levels)))
}

check_some_rows <- function(count, words, call) {
  if (count == 0) {
    abort_argument(
      c("{.arg x} must have rows to choose from.", x = words), call
    )
  }
}

check_whole_levels <- function(levels, call) {
  if (!is.double(levels) || all(levels == trunc(levels))) {
    return(invisible())
  }
  at <- arrayInd(which(levels != trunc(levels))[[1]], dim(levels))
  value <- format(levels[at])
  abort_argument(
    c(
      "{.arg x} must hold discrete levels: whole numbers or logical values.",
      x = "Row {at[[1]]}, column {at[[2]]} is {value}.",
      i = "Use {.code alpha_beta_k(mdl_filter(x, class))}."
    ),
    call
  )
}

check_time_limit <- function(value, call = caller_env()) {
  good <- is.numeric(value) && !is.object(value) && length(value) == 1 &&
    is.finite(value) && value > 0
  if (!good) {
    given <- describe_value(value)
    abort_argument(
      "{.arg time_limit} must be a positive number of seconds, not {given}.",
      call
    )
  }
  as.double(value)
}

choose_solver <- function(solver, call = caller_env()) {
  solver <- check_choice(
    solver, c("auto", "glpk", "none"), "solver",
    synonyms = c(rglpk = "glpk"), call = call
  )
  installed <- requireNamespace("Rglpk", quietly = TRUE)
  if (solver == "auto") {
    solver <- if (installed) "glpk" else "none"
  }
  if (solver == "glpk" && !installed) {
    abort_argument(
      c(
        "{.arg solver} can't be {.val glpk}: the package {.pkg Rglpk} is not
         installed.",
        i = "Install it, or use {.code solver = \"none\"}."
      ),
      call
    )
  }
  solver
}

# Returns a whole number that all rows together allow. For "max", it is the
# largest.
check_pair_demand <- function(value, arg, cover, call = caller_env()) {
  pairs <- cover$upper & (cover$same == (arg == "beta"))
  counts <- pair_counts(cover, seq_len(nrow(cover$levels)))
  counts[!pairs] <- NA
  # If no two samples are in one class, any beta is possible.
  most <- if (any(pairs)) min(counts, na.rm = TRUE) else nrow(cover$levels)
  if (identical(value, "max") && most > 0) {
    return(as.integer(most))
  }
  if (!identical(value, "max") && !(is_whole(value) && value >= 0)) {
    given <- describe_value(value)
    abort_argument(
      "{.arg {arg}} must be a whole number, 0 or more, or {.val max}, not
       {given}.",
      call
    )
  }
  if (!identical(value, "max") && value <= most) {
    return(as.integer(value))
  }
  pair <- if (any(pairs)) arrayInd(which.min(counts), dim(counts))
  abort_pair_demand(value, arg, most, pair, cover, call)
}

abort_pair_demand <- function(value, arg, most, pair, cover, call) {
  rows <- format_count(nrow(cover$levels))
  samples <- describe_rows(
    as.vector(pair), list(names = colnames(cover$levels))
  )
  does <- if (arg == "alpha") "differ" else "agree"
  kind <- if (arg == "alpha") "of different classes" else "of the same class"
  wanted <- if (identical(value, "max")) {
    "No {.arg {arg}} above 0 is possible."
  } else {
    "{.arg {arg}} must be at most {most}, not {format_bound(value)}."
  }
  hint <- if (most > 0 && arg == "alpha") {
    "The largest possible: {.code alpha = \"max\"}."
  } else if (most > 0) {
    "{.code beta = \"max\"} takes the largest that a smallest set has."
  } else {
    "Leave out one of the two samples, or choose among more rows."
  }
  abort_argument(
    c(
      wanted,
      x = if (is.null(pair)) {
        "There are {rows} rows."
      } else {
        "Samples {samples[[1]]} and {samples[[2]]}, {kind}, {does} in {most} of
         the {rows} rows."
      },
      i = hint
    ),
    call
  )
}

# --- print -------------------------------------------------------------------

#' @export
print.fsknn_alpha_beta_k <- function(x, ..., n = 10) {
  cat(format(x, n = n), sep = "\n")
  invisible(x)
}

#' @method format fsknn_alpha_beta_k
#' @export
format.fsknn_alpha_beta_k <- function(x, ..., n = 10) {
  size <- if (x$k == x$lower_bound) {
    "no smaller set does"
  } else {
    paste0(
      "at least ", format_count(x$lower_bound), " are needed; gap ",
      percent(x$gap)
    )
  }
  beta <- if (x$beta < x$beta_bound) {
    paste0(" (at most ", format_count(x$beta_bound), " for this k)")
  }
  c(
    paste0("(", x$alpha, ", ", x$beta, ")-k-feature set"),
    paste0("k: ", format_count(x$k), " (", size, ")"),
    paste0("Different classes differ in at least: ", format_count(x$alpha)),
    paste0("Same class agrees in at least: ", format_count(x$beta), beta),
    paste0("Solver: ", x$solver),
    fill_line("Rows: ", few_items(x$features %||% x$index, n))
  )
}

# Returns at most n of the items, each short enough for its own line, the first
# after a title.
few_items <- function(items, n, width = page_width() - 8L) {
  shown <- utils::head(as.character(items), n)
  long <- nchar(shown, "width") > width
  shown[long] <- paste0(strtrim(shown[long], width - 3L), "...")
  more <- length(items) - length(shown)
  c(shown, if (more > 0) paste("and", format_count(more), "more"))
}
