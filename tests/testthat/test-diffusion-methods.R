# Prints without their numbers, which may differ in the last digits.
no_numbers <- function(lines) {
  gsub("[0-9]+(\\.[0-9]+)?(e[-+][0-9]+)?", "#", lines)
}

three_parts <- function() {
  x <- random_matrix(64, 2, seed = 3)
  x[41:60, ] <- x[41:60, ] + 20
  x[61:64, ] <- x[61:64, ] + 60
  rownames(x) <- paste0("p", 1:64)
  knn_graph(x, 3, metric = "euclidean", backend = "cpu")
}

test_that("maps print what they are", {
  one <- near(random_matrix(50, 2, seed = 1), 8)
  expect_snapshot(diffusion_map(one, 3), transform = no_numbers)
  expect_snapshot(
    diffusion_map(three_parts(), 3, epsilon = 1), transform = no_numbers
  )
  expect_snapshot(
    diffusion_map(one, 8, local = 3, epsilon = 2, mode = "mutual"),
    transform = no_numbers
  )
  expect_snapshot(
    diffusion_map(near(matrix(1, 20, 2), 4), 2), transform = no_numbers
  )
  expect_snapshot(
    summary(diffusion_map(three_parts(), 3, epsilon = 1)),
    transform = no_numbers
  )
})

test_that("a map is a table, and a matrix", {
  map <- diffusion_map(three_parts(), 3, epsilon = 1)
  frame <- as.data.frame(map)
  expect_identical(names(frame), c("name", "component", paste0("DC", 1:3)))
  expect_identical(frame$name, paste0("p", 1:64))
  expect_identical(as.matrix(map), map$coordinates)
  expect_identical(rownames(as.matrix(map)), paste0("p", 1:64))
  rows <- as.data.frame(summary(map))
  expect_identical(nrow(rows), length(map$eigenvalues))
  expect_identical(rows$eigenvalue[4:6], unname(map$eigenvalues[2, ]))
})

test_that("a map goes into a SingleCellExperiment", {
  skip_if_not_installed("SingleCellExperiment")
  x <- random_matrix(40, 3, seed = 1)
  rownames(x) <- paste0("c", 1:40)
  cells <- SingleCellExperiment::SingleCellExperiment(list(counts = t(x)))
  map <- diffusion_map(
    knn_graph(cells, 6, metric = "euclidean", backend = "cpu",
              points = "columns"), 2
  )
  SingleCellExperiment::reducedDim(cells, "DiffusionMap") <- as.matrix(map)
  expect_identical(
    SingleCellExperiment::reducedDim(cells, "DiffusionMap"), map$coordinates
  )
  # The cells can be searched by the stored map.
  expect_s3_class(
    knn_search(cells, 3, metric = "euclidean", dimred = "DiffusionMap",
               backend = "cpu"),
    "fsknn_neighbours"
  )
})

test_that("maps are drawn", {
  skip_if_not_installed("ggplot2")
  map <- diffusion_map(three_parts(), 3, epsilon = 1)
  built <- function(...) ggplot2::ggplot_build(plot(map, ...))
  expect_identical(nrow(built()$data[[1]]), sum(map$component == 1))
  second <- built(component = 2, coordinates = c(3, 1))$data[[1]]
  expect_equal(second$x, unname(map$coordinates[map$component == 2, 3]))
  expect_gt(length(unique(built(colour = 1:64)$data[[1]]$colour)), 10)
  expect_length(
    unique(built(colour = rep(c("a", "b"), 32))$data[[1]]$colour), 2
  )
  expect_identical(
    nrow(built(which = "eigenvalues")$data[[2]]), length(map$eigenvalues)
  )
  expect_s3_class(built(which = "epsilon"), "ggplot_built")
  nobody <- diffusion_map(near(random_matrix(5, 2, seed = 1), 2), 4)
  expect_messages({
    plot(map, which = "picture")
    plot(map, component = 3)
    plot(map, coordinates = c(1, 4))
    plot(map, colour = 1:3)
    plot(nobody)
  })
})

test_that("a map without any eigenpair prints so, and warns of nothing", {
  map <- diffusion_map(knn_search(random_matrix(40, 3), 5), 2)
  map$residuals[] <- NA
  map$eigenvalues[] <- NA
  expect_no_warning(lines <- capture.output(print(map)))
  expect_match(lines, "Largest residual: NA", all = FALSE)
})
