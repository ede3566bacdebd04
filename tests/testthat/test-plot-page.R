page_of <- function(...) {
  skip_if_not_installed("htmlwidgets")
  page <- plot_neighbourhood(..., interactive = TRUE)
  expect_s3_class(page, "htmlwidget")
  page$x
}

# Makes four points around "a", of which e is two steps away.
page_edges <- function() {
  new_knn_edges(
    list(
      from = c("b", "c", "d", "e"), to = c("a", "a", "a", "d"),
      rank = rep(1L, 4), distance = c(0.1, 0.2, 0.5, 0.4),
      correlation = c(0.9, -0.8, 0.5, 0.6)
    ),
    vertices = data.frame(name = letters[1:5]), metric = "pearson",
    sign = "absolute", k = 1L
  )
}

test_that("a page has the points, edges and colours of the picture", {
  page <- page_of(page_edges(), "a", steps = 2)
  at <- match(letters[1:5], page$points$label)
  expect_identical(as.vector(page$points$focus[at]), c(TRUE, rep(FALSE, 4)))
  expect_identical(
    as.vector(page$points$shape[at][-1]),
    c("circle", "diamond", "circle", "square")
  )
  expect_identical(page$points$fill[at][[2]], "#B2182B")
  expect_identical(page$points$fill[at][[5]], unknown_colour)
  expect_match(page$points$text[at][[3]], "r with a: -0.800", fixed = TRUE)
  expect_match(page$points$text[at][[1]], "the point itself\n3 edges here")
  # Ends are numbered from 0.
  ends <- cbind(
    page$points$label[page$edges$from + 1], page$points$label[page$edges$to + 1]
  )
  key <- apply(ends, 1, function(two) paste(sort(two), collapse = " "))
  expect_setequal(key, c("a b", "a c", "a d", "d e"))
  expect_match(page$edges$text[key == "a c"], "r = -0.800\ndistance 0.2")
  expect_identical(as.vector(page$edges$dash[key == "a c"]), "7 5")
  expect_identical(order(page$edges$width), order(c(0.9, 0.8, 0.5, 0.6)[
    match(key, c("a b", "a c", "a d", "d e"))
  ]))
  titles <- vapply(page$legend, `[[`, "", "title")
  expect_identical(titles, c("Point", "|r|", "Edge"))
  expect_identical(page$scale$limit, 0.9)
})

test_that("pages show clusters, graphs without r, and one point", {
  page <- page_of(page_edges(), "a", clusters = c(1, 1, 2, 3, 3))
  expect_identical(page$legend[[1]]$title, "Cluster")
  labels <- vapply(page$legend[[1]]$entries, `[[`, "", "label")
  expect_identical(labels, c("1", "2", "3"))
  expect_null(page$scale)
  x <- random_matrix(20, 5)
  page <- page_of(knn_graph(x, 3, "euclidean"), 4)
  expect_identical(page$legend[[2]]$title, "Distance")
  alone <- knn_graph(x, 3)
  alone <- alone[alone$from != 4 & alone$to != 4, ]
  page <- page_of(alone, 4)
  expect_length(page$points$x, 1)
  expect_length(page$edges$from, 0)
})

test_that("a saved page is one file that asks for nothing", {
  skip_if_not_installed("htmlwidgets")
  skip_if_not_installed("rmarkdown")
  skip_if_not(rmarkdown::pandoc_available(), "pandoc is not installed")
  file <- withr::local_tempfile(fileext = ".html")
  edges <- page_edges()
  attr(edges, "vertices")$symbol <- c("<b>a</b>", letters[2:5])
  htmlwidgets::saveWidget(
    plot_neighbourhood(edges, "a", text = "symbol", interactive = TRUE), file
  )
  lines <- paste(readLines(file, warn = FALSE), collapse = "\n")
  expect_match(lines, "HTMLWidgets.widget({", fixed = TRUE)
  expect_no_match(lines, "(src|href)=\"https?:")
  expect_no_match(lines, "<b>a</b>", fixed = TRUE)
})
