# Makes a simple graph: a star around "a", a chain from "d" to "g", and a
# separate pair.
known_edges <- function() {
  from <- c("a", "b", "c", "d", "e", "f", "g", "h", "i")
  to <- c("b", "a", "a", "a", "d", "e", "f", "i", "h")
  r <- c(0.9, 0.9, -0.8, 0.5, 0.6, 0.7, 0.75, 0.3, 0.3)
  new_knn_edges(
    list(
      from = from, to = to, rank = rep(1L, 9), distance = 1 - abs(r),
      correlation = r
    ),
    vertices = data.frame(name = letters[1:9], symbol = c(LETTERS[1:8], NA)),
    metric = "pearson", sign = "absolute", k = 1L
  )
}

skip_without_pictures <- function(frame = parent.frame()) {
  skip_if_not_installed("ggplot2")
  skip_if_not_installed("ggraph")
  # ggraph's own layers use a deprecated name of ggplot2.
  rlang::local_options(lifecycle_verbosity = "quiet", .frame = frame)
}

shown <- function(plot) plot$data$label
# Returns the layers with this geometry.
layer_data_of <- function(plot, geom) {
  built <- ggplot2::ggplot_build(plot)
  at <- which(vapply(plot$layers, function(layer) {
    inherits(layer$geom, geom)
  }, NA))
  do.call(rbind, lapply(built$data[at], function(data) {
    data[intersect(c("x", "y", "label", "fill", "shape", "size"), names(data))]
  }))
}

test_that("the points are those within some steps, in either direction", {
  skip_without_pictures()
  edges <- known_edges()
  expect_setequal(shown(plot_neighbourhood(edges, "a")), letters[1:4])
  expect_setequal(shown(plot_neighbourhood(edges, "d")), c("d", "a", "e"))
  expect_setequal(
    shown(plot_neighbourhood(edges, "a", steps = 2)), letters[1:5]
  )
  expect_setequal(
    shown(plot_neighbourhood(edges, "g", steps = Inf)), letters[1:7]
  )
  expect_setequal(shown(plot_neighbourhood(edges, "i")), c("h", "i"))
})

test_that("where there are too many the nearest stay, and a caption says so", {
  skip_without_pictures()
  plot <- plot_neighbourhood(known_edges(), "a", steps = Inf, max_points = 3)
  # By distance, b is at 0.1, c at 0.2, and d at 0.5.
  expect_setequal(shown(plot), c("a", "b", "c"))
  expect_identical(plot$labels$caption, "The 3 nearest of 7 points")
  expect_null(plot_neighbourhood(known_edges(), "a")$labels$caption)
})

test_that("a graph gives one picture and leaves R's numbers alone", {
  skip_without_pictures()
  x <- random_matrix(80, 6)
  edges <- knn_graph(x, k = 4)
  set.seed(1)
  seed <- .Random.seed
  first <- plot_neighbourhood(edges, 7, steps = 2)
  expect_identical(.Random.seed, seed)
  set.seed(2)
  second <- plot_neighbourhood(edges, "7", steps = 2)
  places <- c("x", "y")
  expect_identical(as.list(first$data)[places], as.list(second$data)[places])
  # No two points are close together.
  expect_gt(min(stats::dist(first$data[places])), 0.05)
})

test_that("an igraph graph gives the same picture", {
  skip_without_pictures()
  edges <- known_edges()
  places <- c("x", "y", "label", "value")
  for (mode in c("directed", "union")) {
    expect_identical(
      as.list(plot_neighbourhood(as_igraph(edges, mode = mode), "a")$data)[places],
      as.list(plot_neighbourhood(edges, "a")$data)[places]
    )
  }
})

test_that("colours show r with the point, about 0, and shapes its sign", {
  skip_without_pictures()
  plot <- plot_neighbourhood(known_edges(), "a", steps = 2)
  at <- match(letters[1:5], shown(plot))
  # e is two steps away, so no edge gives its r with a.
  expect_identical(plot$data$value[at], c(NA, 0.9, -0.8, 0.5, NA))
  scale <- plot$scales$get_scales("fill")
  expect_identical(scale$get_limits(), c(-0.9, 0.9))
  expect_identical(scale$name, "r with\na")
  expect_identical(scale$map(0), "#F7F7F7")
  points <- layer_data_of(plot, "GeomPoint")
  # The points are b, c, d, e, and a, the largest, last.
  expect_identical(
    points$fill[c(1, 4, 5)], c("#B2182B", unknown_colour, "#F0E442")
  )
  expect_equal(points$shape[1:4], c(21, 23, 21, 22))
  expect_identical(which(points$size == max(points$size)), 5L)
  # There are legends of colours, shapes, widths and lines.
  shapes <- plot$scales$get_scales("shape")
  expect_identical(unname(shapes$labels), c("above 0", "below 0", "not known"))
  expect_identical(plot$scales$get_scales("edge_width")$name, "|r|")
  expect_identical(
    plot$scales$get_scales("edge_linetype")$breaks,
    c("r above 0", "r below 0")
  )
})

test_that("the sign alone can be shown", {
  skip_without_pictures()
  plot <- plot_neighbourhood(known_edges(), "a", steps = 2, colour = "sign")
  expect_identical(
    as.character(plot$data$group)[match(letters[2:5], shown(plot))],
    c("positive", "negative", "positive", "not joined")
  )
  points <- layer_data_of(plot, "GeomPoint")
  expect_setequal(points$fill, c("#0072B2", "#D55E00", "#9E9E9E", "#F0E442"))
  expect_identical(length(unique(points$shape[1:4])), 3L)
})

test_that("colours may be numbers of any kind, named by point", {
  skip_without_pictures()
  edges <- known_edges()
  numbers <- c(e = 2, a = -1, b = -4)
  by_name <- plot_neighbourhood(edges, "a", steps = 2, colour = numbers)
  at <- match(letters[1:5], shown(by_name))
  expect_identical(by_name$data$value[at], c(-1, -4, NA, NA, 2))
  expect_identical(by_name$scales$get_scales("fill")$get_limits(), c(-4, 4))
  table <- data.frame(name = names(numbers), correlation = numbers)
  by_table <- plot_neighbourhood(edges, "a", steps = 2, colour = table)
  expect_identical(by_table$data$value, by_name$data$value)
  attr(edges, "vertices")$change <- 1:9 / 10
  by_column <- plot_neighbourhood(edges, "a", steps = 2, colour = "change")
  expect_equal(by_column$data$value[at], 1:5 / 10)
  x <- random_matrix(30, 8)
  rownames(x) <- paste0("g", 1:30)
  near <- nearest_to(x, "g3", k = 29)
  plot <- plot_neighbourhood(knn_graph(x, 3), "g3", steps = 2, colour = near)
  others <- plot$data$label != "g3"
  expect_equal(
    plot$data$value[others], unname(cor(t(x))["g3", plot$data$label[others]])
  )
})

test_that("widths are of |r|, or of what is near", {
  skip_without_pictures()
  width <- function(plot) plot$scales$get_scales("edge_width")
  scale <- width(plot_neighbourhood(known_edges(), "a"))
  expect_lt(scale$map(0.5), scale$map(0.9))
  edges <- known_edges()
  edges$correlation <- NULL
  scale <- width(plot_neighbourhood(edges, "a"))
  expect_identical(scale$name, "Distance")
  expect_gt(scale$map(0.1), scale$map(0.5))
})

test_that("labels keep clear of few edges", {
  skip_without_pictures()
  plot <- plot_neighbourhood(known_edges(), "g", steps = Inf)
  texts <- layer_data_of(plot, "GeomTextRepel")
  expect_gt(sum(texts$label == ""), 10)
  expect_setequal(setdiff(texts$label, ""), letters[1:7])
})

test_that("clusters are shown where there are some, eight at most", {
  skip_without_pictures()
  edges <- known_edges()
  clusters <- c(1, 1, 2, 3, 3, 3, 3, 4, 4)
  plot <- plot_neighbourhood(edges, "a", clusters = clusters)
  expect_identical(
    as.character(plot$data$group)[match(letters[1:4], shown(plot))],
    c("1", "1", "2", "3")
  )
  named <- rev(stats::setNames(clusters, letters[1:9]))
  expect_identical(
    plot_neighbourhood(edges, "a", clusters = named)$data$group,
    plot$data$group
  )
  expect_identical(
    levels(factor(
      plot_neighbourhood(edges, "a", clusters = clusters, colour = "sign")$
        data$group
    )),
    c("it", "negative", "positive")
  )
  many <- knn_graph(random_matrix(30, 5), k = 5)
  plot <- plot_neighbourhood(many, 3, steps = Inf, clusters = rep_len(1:12, 30))
  expect_identical(length(unique(plot$data$group)), 9L)
  expect_true("others" %in% plot$data$group)
  expect_no_error(ggplot2::ggplot_build(plot))
})

test_that("clusters of mst_knn() give the cluster, or the tree", {
  skip_without_pictures()
  x <- rbind(random_matrix(20, 5), random_matrix(20, 5, seed = 2) + 100)
  rownames(x) <- paste0("g", 1:40)
  clusters <- mst_knn(x, "euclidean")
  own <- clusters$membership == clusters$membership[["g3"]]
  expect_setequal(shown(plot_neighbourhood(clusters, "g3")), rownames(x)[own])
  tree <- plot_neighbourhood(clusters, "g3", steps = Inf)
  expect_setequal(shown(tree), rownames(x))
  expect_gt(length(unique(tree$data$group)), 1)
  # A point that is alone in its cluster still has neighbours.
  more <- unname(rbind(random_matrix(3, 5, seed = 4), x[1:9, ]))
  alone <- mst_knn(more, k = 1)
  alone$membership[] <- seq_along(alone$membership)
  expect_gt(length(shown(plot_neighbourhood(alone, 1))), 1)
})

test_that("clusters keep their words, and the point's own is in the legend", {
  skip_without_pictures()
  own <- stats::setNames(rep(c("luminal", "basal"), c(1, 8)), letters[1:9])
  legend <- function(plot) plot$scales$get_scales("fill")$get_limits()
  for (clusters in list(own, factor(own), unname(own), factor(unname(own)))) {
    plot <- plot_neighbourhood(known_edges(), "a", clusters = clusters)
    expect_identical(legend(plot), c("basal", "luminal"))
    dots <- layer_data_of(plot, "GeomPoint")
    # The last is the point itself.
    expect_identical(dots$fill[[4]], unname(cluster_colours[[2]]))
    expect_equal(dots$shape[[4]], cluster_shapes[[2]])
  }
})

test_that("labels come from a column or a named vector", {
  skip_without_pictures()
  edges <- known_edges()
  expect_setequal(
    shown(plot_neighbourhood(edges, "a", text = "symbol")), LETTERS[1:4]
  )
  expect_setequal(
    shown(plot_neighbourhood(edges, "i", text = "symbol")), c("H", "i")
  )
  expect_setequal(
    shown(plot_neighbourhood(edges, "a", text = c(a = "outcome", c = "CD3"))),
    c("outcome", "b", "CD3", "d")
  )
})

test_that("a graph without correlations or with one point can be drawn", {
  skip_without_pictures()
  edges <- knn_graph(random_matrix(20, 5), k = 3, metric = "euclidean")
  expect_no_error(
    ggplot2::ggplot_build(plot_neighbourhood(edges, 4, steps = 2))
  )
  alone <- edges[edges$from != 4 & edges$to != 4, ]
  expect_identical(shown(plot_neighbourhood(alone, 4)), "4")
  expect_no_error(ggplot2::ggplot_build(plot_neighbourhood(alone, 4)))
  edges <- knn_graph(random_matrix(20, 5), k = 3)
  alone <- edges[edges$from != 4 & edges$to != 4, ]
  expect_no_error(ggplot2::ggplot_build(plot_neighbourhood(alone, 4)))
})

test_that("without correlations points show whether they are joined", {
  skip_without_pictures()
  edges <- known_edges()
  edges$correlation <- NULL
  plot <- plot_neighbourhood(edges, "a", steps = 2)
  group <- stats::setNames(plot$data$group, plot$data$label)
  expect_identical(group[["a"]], "it")
  expect_true(all(group[c("b", "c", "d")] == "joined"))
  expect_identical(group[["e"]], "not joined")
})

test_that("a picture of 60 points is drawn to a file without a word", {
  skip_without_pictures()
  x <- random_matrix(120, 6)
  rownames(x) <- paste0("Contig", 10000 + 1:120, "_RC")
  plot <- plot_neighbourhood(
    knn_graph(x, k = 5, sign = "absolute"), rownames(x)[[5]], steps = Inf
  )
  expect_identical(nrow(plot$data), 60L)
  file <- withr::local_tempfile(fileext = ".pdf")
  expect_message(
    expect_no_warning(ggplot2::ggsave(file, plot, width = 7, height = 6)), NA
  )
  expect_gt(file.size(file), 5000)
})

# Returns the relative sum of squared differences between distances and steps.
stress_of <- function(at, steps) {
  apart <- as.matrix(stats::dist(at))
  below <- lower.tri(steps)
  sum(((apart - steps) / steps)[below]^2)
}

test_that("points are put as far apart as they are steps apart", {
  from <- 1:9
  at <- fsknn:::stress_layout(10, from, from + 1)
  expect_equal(
    unname(as.matrix(stats::dist(at))), abs(outer(1:10, 1:10, "-")) + 0,
    tolerance = 0.01
  )
  expect_equal(colMeans(at), c(0, 0))
  # The points are along the first axis, from the right.
  expect_identical(order(-at[, 1]), 1:10)
  expect_equal(fsknn:::stress_layout(2, 1, 2), cbind(c(0.5, -0.5), 0),
    tolerance = 0.01
  )
  set.seed(5)
  to <- 2:40
  from <- vapply(to, function(point) sample.int(point - 1L, 1), 1L)
  graph <- igraph::make_graph(rbind(from, to), directed = FALSE)
  steps <- igraph::distances(graph)
  at <- fsknn:::stress_layout(40, from, to)
  # Moving any single point does not improve the layout.
  found <- stress_of(at, steps)
  for (point in c(1, 7, 40)) {
    for (move in list(c(0.05, 0), c(-0.05, 0), c(0, 0.05), c(0, -0.05))) {
      other <- at
      other[point, ] <- other[point, ] + move
      expect_gt(stress_of(other, steps), found)
    }
  }
})

test_that("what can't be drawn is an error that helps", {
  skip_without_pictures()
  edges <- known_edges()
  named <- edges
  attr(named, "vertices")$name <- paste0("clinical", 1:9)
  named$from <- paste0("clinical", match(edges$from, letters))
  named$to <- paste0("clinical", match(edges$to, letters))
  expect_messages({
    plot_neighbourhood(named, "clincal3")
    plot_neighbourhood(edges, c("a", "b"))
    plot_neighbourhood(1:3, "a")
    plot_neighbourhood(edges, "a", steps = 0)
    plot_neighbourhood(edges, "a", max_points = 1)
    plot_neighbourhood(edges, "a", clusters = 1:3)
    plot_neighbourhood(edges, "a", colour = "r")
    plot_neighbourhood(edges, "a", colour = "cluster")
    plot_neighbourhood(edges, "a", colour = 1:9)
    plot_neighbourhood(edges, "a", text = "gene")
    plot_neighbourhood(edges, "a", layout = "kk")
  })
})
