#' Plot the neighbourhood of one point
#'
#' Draws a point of a graph with its neighbours or its cluster, as in Figures 2
#' and 3a of Arefin et al. (2012).
#'
#' @details **Points and edges.** Points are selected by their number of steps
#' from `point`, along edges in either direction, up to `max_points`. Among
#' points at the same number of steps, those with the shorter path (the sum of
#' distances) come first. The caption gives the number of omitted points. All
#' edges among the selected points are drawn, once for each pair.
#'
#' **Colours.** By default, the colour of a point is its correlation r with
#' `point`, on a scale that is white at 0. r is known only for points that share
#' an edge with `point`; all others are grey. To colour all points by r, set
#' `colour` to a result of [nearest_to()] with a large k. It can also hold your
#' own numbers. Circles have positive values, diamonds negative, and squares
#' unknown values.
#'
#' With `colour = "cluster"`, the eight largest clusters in the picture have
#' colours of their own. With `"sign"`, colours show the sign of r only. In a
#' graph without correlations, colours show whether a point shares an edge with
#' `point`.
#'
#' **Edges.** An edge is wider if its |r| is larger (for other metrics: if its
#' distance is smaller). Edges with a negative r are dashed, as the legend says.
#' Shapes and line types repeat what the colours show. The colours are those of
#' Okabe and Ito and a blue-red scale, which colour-blind readers can
#' distinguish.
#'
#' **Layout.** The layout minimizes the stress: the difference between the
#' distances in the picture and the numbers of steps in the graph. It starts
#' from a fixed state. So the same graph gives the same picture, and the random
#' numbers of the session do not change. Labels overlap neither each other nor
#' points. They also avoid edges if there are at most two edges for each point.
#'
#' @param edges A graph: an edge data frame from [knn_graph()] or
#'   [spanning_forest()], an igraph graph from [as_igraph()], or clusters from
#'   [mst_knn()].
#' @param point The point's name, or its row number where points have no names.
#' @param ... Must be empty.
#' @param steps The number of steps from `point`: a whole number, or `Inf` for
#'   all connected points. `NULL` (default) is 1 for a graph. For clusters,
#'   `NULL` draws the point's cluster, or 2 steps if the cluster has no other
#'   point. A number draws the points of the whole tree that are at most so many
#'   steps away, with edges that were cut as dotted lines.
#' @param max_points The largest number of points to draw, 60 by default.
#' @param clusters The clusters of all points, for the colours: a vector in the
#'   order of the points, or with their names. Examples are `membership` of
#'   [mst_knn()] and of an igraph clustering. `NULL` (default): the column
#'   `cluster` of the points, if there is one.
#' @param colour The variable that colours the points. It is `"correlation"`
#'   (with `point`), `"sign"`, `"cluster"`, or the name of a numeric column of
#'   the table of points. It can also be numbers named by point, or a data frame
#'   with the columns `name` and `correlation`, as from [nearest_to()]. `NULL`
#'   (default): `"cluster"` if the picture shows several clusters, otherwise
#'   `"correlation"`.
#' @param text The labels of the points, such as gene symbols. `NULL` (default):
#'   their names. Otherwise a vector named by point (other points keep their
#'   names), or a vector with a value for each point in their order. It can also
#'   be the name of a column of the table of points.
#' @param text_size Size of the text in points. `NULL` (default): 6.5 to 9,
#'   depending on the number of points.
#' @param interactive `TRUE` gives an interactive page for a browser. Drag to
#'   move the picture, use the wheel to zoom, and double-click to reset it. The
#'   pointer shows names, r and distances. A click on a point shows only its own
#'   edges; a second click shows all again.
#'
#' @returns A ggplot object, to print, to extend (for example with `+
#'   ggplot2::labs(fill = "r with relapse")`), or to save with
#'   [ggplot2::ggsave()]. About 7 x 5 inches suit 60 points. [write_edges()]
#'   writes its points and edges for yEd and Cytoscape, with positions and
#'   colours.
#'
#'   With `interactive = TRUE`, a widget, to print, or to include in R Markdown.
#'   [htmlwidgets::saveWidget()] saves it as one file that needs no network.
#'
#' @section Errors:
#' A point that is not in the graph is an error of class `fsknn_argument_error`,
#' which suggests the nearest spelling. So are clusters that are not known. The
#' packages ggplot2 and ggraph are required, and htmlwidgets for a page.
#' @references
#' Arefin AS, Riveros C, Berretta R, Moscato P (2012). GPU-FS-kNN: A Software
#' Tool for Fast and Scalable kNN Computation Using GPUs. *PLoS ONE* 7(8):
#' e44000. \doi{10.1371/journal.pone.0044000}
#'
#' Gansner ER, Koren Y, North S (2005). Graph Drawing by Stress Majorization.
#' *GD 2004*, Lecture Notes in Computer Science 3383: 239-250.
#' \doi{10.1007/978-3-540-31843-9_25}
#' @seealso [plot_profiles()], [knn_graph()], [mst_knn()]
#' @export
#' @examplesIf requireNamespace("ggraph", quietly = TRUE)
#' group <- rep(1:3, each = 20)
#' x <- matrix(rnorm(3 * 12), nrow = 3)[group, ] + 0.7 * rnorm(60 * 12)
#' rownames(x) <- paste0("gene", 1:60)
#' edges <- knn_graph(x, k = 5, sign = "absolute", backend = "cpu")
#' plot_neighbourhood(edges, "gene7")
#' # two steps away, and r with gene7 known of all
#' near <- nearest_to(x, "gene7", k = 59, sign = "absolute", backend = "cpu")
#' plot_neighbourhood(edges, "gene7", steps = 2, max_points = 30, colour = near)
#' clusters <- mst_knn(x, backend = "cpu")
#' picture <- plot_neighbourhood(clusters, "gene7") # to print or to save
plot_neighbourhood <- function(edges, point, ..., steps = NULL,
                               max_points = 60, clusters = NULL, colour = NULL,
                               text = NULL, text_size = NULL,
                               interactive = FALSE) {
  check_no_more(...)
  check_supplied(edges)
  check_supplied(point)
  interactive <- check_flag(interactive, "interactive")
  if (interactive) {
    rlang::check_installed("htmlwidgets", "for a page of a graph.")
  } else {
    rlang::check_installed(c("ggplot2", "ggraph"), "to draw a graph.")
  }
  max_points <- check_whole_number(
    max_points, "max_points", min = 2, max = 1000
  )
  steps <- check_steps(steps)
  check_text_size(text_size)

  links <- drawn_links(edges, steps)
  names <- id_text(links$vertices$name)
  focus <- check_point(point, names, "point", "edges")
  if (inherits(edges, "fsknn_mst_knn") && is.null(steps)) {
    links <- own_cluster(links, focus)
    steps <- if (any(links$low == focus | links$high == focus)) Inf else 2
    if (is.finite(steps)) links <- drawn_links(edges, steps)
  }
  near <- nearest_in_graph(links, focus, steps %||% 1, max_points)
  clusters <- point_clusters(clusters, links$vertices, names)
  colour <- choose_colour(colour, clusters[near$points], links)

  picture <- picture_of(links, near$points, focus)
  picture$points$label <- point_labels(text, links$vertices)[near$points]
  picture <- colour_picture(picture, colour, names, clusters)
  words <- omitted_words(near)
  if (interactive) {
    return(draw_page(picture, words))
  }
  draw_picture(
    picture, text_size %||% default_text_size(length(near$points)), words
  )
}

check_steps <- function(steps, call = caller_env()) {
  if (is.null(steps) || identical(steps, Inf)) {
    return(steps)
  }
  check_whole_number(steps, "steps", min = 1, max = 1e9, call = call)
}

check_text_size <- function(text_size, call = caller_env()) {
  fine <- is.null(text_size) ||
    (rlang::is_double(text_size, n = 1, finite = TRUE) && text_size > 0) ||
    (rlang::is_integer(text_size, n = 1) && isTRUE(text_size > 0))
  if (!fine) {
    given <- describe_value(text_size)
    abort_argument(
      "{.arg text_size} must be a number of points above 0, not {given}.", call
    )
  }
}

# Returns the links to draw. `kept` is FALSE for those cut between two clusters.
drawn_links <- function(edges, steps, call = caller_env()) {
  if (!inherits(edges, "fsknn_mst_knn")) {
    links <- graph_links(edges, call = call)
    check_lengths(links$distance, "edges", call)
    links$kept <- rep(TRUE, length(links$low))
    return(links)
  }
  links <- graph_links(edges$tree, call = call)
  cluster <- edges$membership
  links$kept <- unname(cluster[links$low] == cluster[links$high])
  links
}

own_cluster <- function(links, focus) {
  parts <- c("low", "high", "distance", "correlation", "kept")
  here <- links$kept
  for (part in intersect(parts, names(links))) {
    links[[part]] <- links[[part]][here]
  }
  links
}

# Returns up to max_points points by (steps, length of the path, number).
nearest_in_graph <- function(links, focus, steps, max_points) {
  graph <- igraph::make_empty_graph(links$num_points, directed = FALSE)
  graph <- igraph::add_edges(graph, rbind(links$low, links$high))
  hops <- igraph::bfs(
    graph, focus, unreachable = FALSE, dist = TRUE, order = FALSE
  )$dist
  # Versions of igraph mark unreached points with NaN or -1.
  within <- which(is.finite(hops) & hops >= 0 & hops <= steps)
  ways <- igraph::distances(
    graph, v = focus, to = within, weights = links$distance
  )
  points <- within[order(hops[within], ways, within)]
  list(points = utils::head(points, max_points), all = length(points))
}

default_text_size <- function(num_points) {
  if (num_points > 45) 6.5 else if (num_points > 25) 7.5 else 9
}

omitted_words <- function(near) {
  if (near$all > length(near$points)) {
    paste0(
      "The ", length(near$points), " nearest of ", format_count(near$all),
      " points"
    )
  }
}

# --- content of the plot -----------------------------------------------------

point_clusters <- function(clusters, vertices, names, call = caller_env()) {
  if (is.null(clusters)) {
    return(vertices$cluster)
  }
  if (is.factor(clusters)) {
    clusters <- stats::setNames(as.character(clusters), names(clusters))
  }
  clusters <- match_names(
    c(unclass(clusters)), names, "clusters", "points", call
  )
  if (length(clusters) != length(names)) {
    abort_argument(
      "{.arg clusters} must have a value for each of the
       {format_count(length(names))} points.",
      call
    )
  }
  clusters
}

# Checks one of the words, or numbers named by point with a title.
choose_colour <- function(colour, clusters, links, call = caller_env()) {
  words <- c("correlation", "sign", "cluster")
  has_r <- !is.null(links$correlation)
  if (is.null(colour)) {
    several <- length(unique(clusters)) > 1
    return(if (several) "cluster" else if (has_r) "correlation" else "sign")
  }
  if (!rlang::is_string(colour) || !is.null(names(colour))) {
    colour <- check_colour_numbers(colour, words, call)
    check_names_known(
      names(colour$numbers), id_text(links$vertices$name), "colour", call
    )
    return(colour)
  }
  if (!colour %in% words && is.numeric(links$vertices[[colour]])) {
    numbers <- stats::setNames(
      links$vertices[[colour]], id_text(links$vertices$name)
    )
    return(list(title = colour, numbers = numbers))
  }
  colour <- check_choice(colour, words, "colour", call = call)
  if (colour == "cluster" && is.null(clusters)) {
    abort_argument(
      c(
        "{.code colour = \"cluster\"} needs clusters, and {.arg edges} has
         none.",
        i = "Give {.arg clusters}, or {.arg edges} made by {.fn mst_knn}."
      ),
      call
    )
  }
  # Without r, only whether an edge joins two points can be shown.
  if (colour == "correlation" && !has_r) "sign" else colour
}

check_colour_numbers <- function(colour, words, call) {
  title <- "Value"
  if (is.data.frame(colour) && all(c("name", "correlation") %in%
                                     names(colour))) {
    first <- !duplicated(colour$name)
    colour <- stats::setNames(colour$correlation[first], colour$name[first])
    title <- "Correlation r"
  }
  if (!is.numeric(colour) || is.null(names(colour))) {
    given <- describe_value(colour)
    # The list is built here, because versions of cli join the last two
    # differently.
    options <- paste0("\"", words, "\"", collapse = ", ")
    abort_argument(
      "{.arg colour} must be one of {options}, a column of the points, numbers
       named by point, or what {.fn nearest_to} gave, not {given}.",
      call
    )
  }
  list(title = title, numbers = colour)
}

# Values may be for some of the points, or for more than these. At least one
# name must then be that of a point.
check_names_known <- function(given, known, arg, call) {
  if (any(given %in% known)) {
    return(invisible())
  }
  quoted <- function(names) {
    first_few(paste0("\"", utils::head(names, 3), "\""), length(names))
  }
  abort_argument(
    c(
      "The names of {.arg {arg}} must be those of points.",
      x = "None is: {quoted(given)}.",
      x = "Points are {quoted(known)}."
    ),
    call
  )
}

point_labels <- function(text, vertices, call = caller_env()) {
  names <- id_text(vertices$name)
  if (is.null(text)) {
    return(names)
  }
  if (rlang::is_string(text) && is.null(names(text))) {
    if (!text %in% names(vertices)) {
      abort_argument(
        "{.arg text} must be a column of the points or a named vector; there
         is no column {.val {text}}.",
        call
      )
    }
    given <- id_text(vertices[[text]])
  } else {
    given <- id_text(text)
    if (!is.null(names(text))) {
      check_names_known(names(text), names, "text", call)
      given <- given[match(names, names(text))]
    } else if (length(text) != length(names)) {
      abort_argument(
        c(
          "{.arg text} must have a value for each of the
           {format_count(length(names))} points, or names of points.",
          x = "It has {tally(length(text), \"value\")}, and no names."
        ),
        call
      )
    }
  }
  ifelse(is.na(given) | given == "", names, given)
}

# Returns the plot's points (including the focus, which is drawn last) and
# edges, by numbers within the plot.
picture_of <- function(links, points, focus) {
  here <- links$low %in% points & links$high %in% points
  edges <- data.frame(
    from = match(links$low[here], points), to = match(links$high[here], points),
    kept = links$kept[here], distance = links$distance[here],
    strength = links$distance[here], sign = rep("joined", sum(here))
  )
  has_sign <- !is.null(links$correlation)
  if (has_sign) {
    edges$correlation <- links$correlation[here]
    edges$strength <- abs(edges$correlation)
    edges$sign <- ifelse(edges$correlation < 0, "negative", "positive")
  }
  edges$line <- edge_lines(edges, has_sign)
  at <- match(focus, points)
  layout <- stress_layout(length(points), edges$from, edges$to)
  list(
    points = data.frame(
      name = points, focus = points == focus, x = layout[, 1], y = layout[, 2]
    ),
    edges = edges, has_sign = has_sign,
    strength = if (has_sign) "|r|" else "Distance"
  )
}

# Adds what points show: `group`, or `value` around 0 with `sign`. It also adds
# `fill` and `shape`, which any program can draw.
colour_picture <- function(picture, colour, names, clusters) {
  points <- picture$points
  focus <- which(points$focus)
  joined <- joined_with(picture$edges, focus, nrow(points))
  own_name <- points$label[[focus]]
  if (identical(colour, "cluster")) {
    points$group <- cluster_words(clusters[points$name])
    looks <- cluster_scale(points)
    picture$title <- "Cluster"
  } else if (identical(colour, "sign")) {
    points$group <- joined$sign
    shown <- intersect(names(sign_colours), points$group)
    looks <- list(
      groups = shown, colours = sign_colours[shown], shapes = sign_shapes[shown]
    )
    if (picture$has_sign) picture$title <- paste("r with", own_name)
  } else {
    points$value <- if (is.list(colour)) {
      unname(colour$numbers[names[points$name]])
    } else {
      joined$correlation
    }
    picture$title <- if (is.list(colour)) {
      colour$title
    } else {
      paste0("r with\n", own_name)
    }
    return(colour_by_value(picture, points, focus))
  }
  picture[c("groups", "colours", "shapes")] <- looks
  points$fill <- unname(looks$colours[points$group])
  points$shape <- unname(looks$shapes[points$group])
  if (points$group[[focus]] == "it") {
    points[focus, c("fill", "shape")] <- list("#F0E442", 21)
  }
  picture$points <- points
  picture
}

colour_by_value <- function(picture, points, focus) {
  points$sign <- c("positive", "negative")[1 + (points$value < 0)]
  points$sign[is.na(points$value)] <- "not known"
  others <- points$value[-focus]
  # The scale ends at the largest value; for correlations, at the next tenth.
  limit <- max(abs(others), 0, na.rm = TRUE)
  limit <- if (limit <= 1) max(ceiling(10 * limit) / 10, 0.1) else limit
  picture$limit <- limit
  points$fill <- diverging(points$value, limit)
  points$shape <- unname(sign_shapes[points$sign])
  if (is.na(points$value[[focus]])) {
    points[focus, c("fill", "shape")] <- list("#F0E442", 21)
  }
  picture$points <- points
  picture
}

# Returns, for each point joined to the focus by an edge, the sign of r and r
# itself.
joined_with <- function(edges, focus, num_points) {
  sign <- rep("not joined", num_points)
  correlation <- rep(NA_real_, num_points)
  for (ends in list(c("from", "to"), c("to", "from"))) {
    own <- edges[[ends[[1]]]] == focus
    other <- edges[[ends[[2]]]][own]
    sign[other] <- edges$sign[own]
    if (!is.null(edges$correlation)) {
      correlation[other] <- edges$correlation[own]
    }
  }
  sign[[focus]] <- "it"
  list(sign = sign, correlation = correlation)
}

# Keeps the eight largest clusters of the plot by number, and merges the others.
cluster_words <- function(clusters) {
  count <- sort(table(clusters), decreasing = TRUE)
  own <- utils::head(names(count), length(cluster_colours))
  words <- ifelse(as.character(clusters) %in% own, clusters, "others")
  words[is.na(clusters)] <- "others"
  words
}

# --- layout ------------------------------------------------------------------

# Lays out a connected graph by stress majorization (Gansner et al. 2005),
# starting on a spiral. The first point is in the middle.
stress_layout <- function(num_points, from, to, iterations = 300) {
  if (num_points == 1) {
    return(matrix(0, 1, 2))
  }
  graph <- igraph::make_graph(rbind(from, to), num_points, directed = FALSE)
  steps <- igraph::distances(graph)
  # With the golden angle, no two points are close and none are on one line.
  turn <- seq_len(num_points) * pi * (3 - sqrt(5))
  spiral <- sqrt(seq_len(num_points) - 1) * cbind(cos(turn), sin(turn))
  dimensions <- min(2, num_points - 1)
  start <- suppressWarnings(stats::cmdscale(steps, k = dimensions))
  at <- 0.05 * spiral
  at[, seq_len(ncol(start))] <- at[, seq_len(ncol(start))] + start
  in_core(cpp_stress_layout(steps, at, iterations))$at
}
