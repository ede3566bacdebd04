#' Plan a search for triples
#'
#' `threshold_triples(plan = TRUE)` prepares the points, and predicts from a
#' sample of them what the search would do. It gives the `path` of the search,
#' the expected number of triples, and the number of comparisons.
#'
#' The sample is 96 of the points, and depends only on the number of points.
#' With 192 points or fewer there is no sample. The sample has 142,880 triples.
#' The plan counts those above the threshold, and the pairs that can be part of
#' such a triple.
#'
#' With `path = "auto"`, the CPU takes `"pairs"` if the sample shows that
#' triangles need fewer comparisons than all triples. A GPU takes it above a
#' similarity of 0.75, where the exclusion of other points costs next to
#' nothing.
#'
#' The numbers are rough, because triples share points. A triple that is rarer
#' than one in 142,880 is not in the sample. [triple_histogram()] with a
#' `stage`, for example `c(1, 1000)`, counts one part of the triples exactly.
#'
#' @returns A list of class `fsknn_triple_plan`, with a print method:
#'   * `backend`, `metric`, `min_similarity`, `num_points`, `num_features`;
#'   * `path`: `"pairs"` or `"all"`;
#'   * `sampled`: the number of points in the sample (0: no sample);
#'   * `sample_pairs`: the share of the sample's pairs that can be part of such
#'     a triple;
#'   * `num_triples`: the number of triples that the search covers;
#'   * `found_in_sample`: the number of the sample's triples above the
#'     threshold;
#'   * `expected`: the expected number of triples above the threshold, from the
#'     sample. It is `NA` with `subset`, or if fewer than 1,000 were found in
#'     the sample;
#'   * `comparisons`: the expected number of triples that no pair rules out,
#'     times the number of features;
#'   * `stages`: the number of tasks into which a search is divided with
#'     `checkpoint`, or by one worker of `BPPARAM`. A task takes about half a
#'     minute if plain loops compare all triples, and less otherwise.
#' @seealso [threshold_triples()], [triple_histogram()]
#' @name triple_plans
#' @examples
#' x <- matrix(rexp(300 * 12), nrow = 300)
#' threshold_triples(x, min_similarity = 0.85, plan = TRUE)
#' threshold_triples(x, 0.85, subset = 7, plan = TRUE)$comparisons
NULL

# Returns the plan of a search for triples.
plan_triples <- function(search, least, call) {
  work <- new_work(search)
  opened <- in_core(open_triples(work, work$request), call)
  on.exit(close_triples(opened$handle))
  plan <- opened$plan
  structure(
    list(
      backend = search$request$backend, metric = search$options$metric$name,
      min_similarity = least, num_points = nrow(work$values),
      num_features = ncol(work$values),
      path = if (plan$by_pairs) "pairs" else "all", sampled = plan$sampled,
      sample_pairs = plan$pairs, num_triples = plan$all,
      found_in_sample = plan$sample_found, expected = plan$triples,
      comparisons = plan$comparisons, stages = triple_stages(work, 1),
      stage = stage_attribute(search$request$triples),
      num_subset = length(search$contains)
    ),
    class = "fsknn_triple_plan"
  )
}

#' @method format fsknn_triple_plan
#' @export
format.fsknn_triple_plan <- function(x, ...) {
  rough <- function(number) format_count(signif(number, 2))
  lines <- c(
    "Backend" = x$backend,
    "Metric" = x$metric,
    "Triples" = paste0(
      "of at least ", format_bound(x$min_similarity),
      if (x$num_subset > 0) {
        paste(", with one of", tally(x$num_subset, "point"))
      },
      if (!is.null(x$stage)) {
        paste(", stage", x$stage[[1]], "of", x$stage[[2]])
      }
    ),
    "Points (n)" = format_count(x$num_points),
    "Features (d)" = format_count(x$num_features),
    "Triples in all" = format_count(round(x$num_triples)),
    "Path" = describe_path(x$path == "pairs", x$sampled, x$sample_pairs),
    "Expected" = if (!is.na(x$expected)) {
      paste("about", rough(x$expected), "triples")
    } else if (x$sampled == 0) {
      "not known: there are too few points for a sample"
    } else if (x$num_subset > 0) {
      "not known of a subset"
    } else {
      paste0(
        "not known: ", format_count(x$found_in_sample), " of the sample's ",
        format_count(choose(x$sampled, 3)), " triples"
      )
    },
    "Comparisons" = if (x$comparisons > 0) {
      rough(x$comparisons)
    } else {
      "few: pairs rule out all of the sample's triples"
    },
    "Stages" = paste(format_count(x$stages), "with a checkpoint")
  )
  paste0(format(paste0(names(lines), ":")), " ", lines)
}

#' @export
print.fsknn_triple_plan <- function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}
