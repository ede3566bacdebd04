# Makes edges in the contract's form with base R only.
reference_edges <- function(x, k, sign = "signed") {
  r <- cor(t(x))
  distance <- switch(sign, signed = 1 - r, absolute = 1 - abs(r), negative = 1 + r)
  diag(distance) <- Inf
  to <- as.vector(apply(distance, 1, order)[seq_len(k), ])
  from <- rep(seq_len(nrow(x)), each = k)
  vertex <- if (is.null(rownames(x))) seq_len(nrow(x)) else rownames(x)
  new_knn_edges(
    list(
      from = vertex[from], to = vertex[to],
      rank = rep(seq_len(k), nrow(x)),
      distance = distance[cbind(from, to)], correlation = r[cbind(from, to)]
    ),
    vertices = data.frame(name = vertex), metric = "pearson", sign = sign,
    k = as.integer(k)
  )
}

distance_edges <- function() {
  new_knn_edges(
    list(
      from = c(1L, 2L, 3L), to = c(2L, 1L, 2L), rank = c(1L, 1L, 1L),
      distance = c(0.5, 0.5, 1e6 / 3)
    ),
    vertices = data.frame(name = 1:4), metric = "euclidean", sign = "signed",
    k = 1L
  )
}

values <- matrix((seq_len(72) * 37) %% 101 / 7, nrow = 12)
named_values <- structure(values, dimnames = list(paste0("gene", 1:12), NULL))

read_lines <- function(lines, ...) {
  local_folder()
  writeLines(lines, "file.knn")
  read_knn("file.knn", metric = ...)
}

test_that("the file has the form of File S1", {
  local_folder()
  edges <- reference_edges(values, 2)
  expect_identical(expect_invisible(write_knn(edges, "file.knn")), "file.knn")
  lines <- readLines("file.knn")
  expect_identical(lines[[1]], "12 24")
  expect_identical(
    lines[-1],
    sprintf("%d %d %f", edges$from - 1L, edges$to - 1L, edges$correlation)
  )
})

test_that("the weight is the signed correlation under every sign", {
  local_folder()
  for (sign in c("signed", "absolute", "negative")) {
    edges <- reference_edges(values, 3, sign)
    write_knn(edges, "file.knn")
    weight <- read.table("file.knn", skip = 1)[[3]]
    expect_lt(max(abs(weight - edges$correlation)), 5.01e-7)
  }
})

test_that("reading gives back the same columns to six decimals", {
  local_folder()
  for (sign in c("signed", "absolute", "negative")) {
    for (x in list(values, named_values)) {
      edges <- reference_edges(x, 3, sign)
      write_knn(edges, "file.knn")
      back <- read_knn("file.knn", sign = sign, names = rownames(x))
      exact <- c("from", "to", "rank")
      expect_identical(as.list(back)[exact], as.list(edges)[exact])
      expect_lt(max(abs(back$distance - edges$distance)), 5.01e-7)
      expect_lt(max(abs(back$correlation - edges$correlation)), 5.01e-7)
      expect_identical(attributes(back), attributes(edges))
    }
  }
})

test_that("distances and points without edges come back", {
  local_folder()
  edges <- distance_edges()
  write_knn(edges, "file.knn.gz")
  expect_identical(readBin("file.knn.gz", "raw", 2), as.raw(c(0x1f, 0x8b)))
  back <- read_knn("file.knn.gz", metric = "euclidean")
  expect_identical(attributes(back), attributes(edges))
  expect_identical(back$to, edges$to)
  expect_lt(max(abs(back$distance - edges$distance)), 5.01e-7)
  expect_null(back$correlation)
})

test_that("a graph without edges comes back", {
  edges <- read_lines("3 0")
  expect_identical(nrow(edges), 0L)
  expect_identical(attr(edges, "vertices"), data.frame(name = 1:3))
  local_folder()
  write_knn(edges, "file.knn")
  expect_identical(readLines("file.knn"), "3 0")
})

test_that("rows are put in order of source, distance and place in the file", {
  edges <- read_lines(c("3 5", "1 0 .5", "1 2 .4", "0 2 .1", "0 1 .5", "2 0 .3"))
  expect_identical(edges$from, c(1L, 1L, 2L, 2L, 3L))
  expect_identical(edges$to, c(2L, 3L, 1L, 3L, 1L))
  expect_identical(edges$rank, c(1L, 2L, 1L, 2L, 1L))
})

test_that("tabs, Windows line ends, blank lines and exponents do no harm", {
  edges <- read_lines(c("2\t2\r", "", "0\t1\t5e-1\r", "  1  0 .5 ", " "))
  expect_identical(edges$correlation, c(0.5, 0.5))
})

test_that("a correlation that float32 printed as 1.000001 is 1", {
  edges <- read_lines(c("2 2", "0 1 1.000001", "1 0 -1.000001"))
  expect_identical(edges$correlation, c(1, -1))
  expect_identical(edges$distance, c(0, 2))
})

test_that("edges with the farthest neighbour first are a warning", {
  lines <- c("3 4", "0 1 -0.5", "0 2 0.1", "1 0 -0.5", "1 2 0.2")
  expect_messages(edges <- read_lines(lines))
  expect_no_warning(read_lines(lines, sign = "negative"))
})

test_that("edges that lost vertices or metric can be written once they are given", {
  local_folder()
  edges <- reference_edges(values, 2)
  lost <- as.data.frame(as.list(edges))
  expect_messages(write_knn(lost, "file.knn"))
  vertices <- attr(edges, "vertices")
  expect_messages(write_knn(lost, "file.knn", vertices = vertices))
  attr(lost, "metric") <- "pearson"
  write_knn(lost, "file.knn", vertices = vertices)
  expect_identical(readLines("file.knn")[[1]], "12 24")
})

test_that("what can't be written is an error, and no file is made", {
  local_folder()
  edges <- reference_edges(values, 2)
  expect_messages({
    write_knn(1:3, "file.knn")
    write_knn(edges[c("from", "to")], "file.knn")
    write_knn(edges, "file.knn", vertex = 1)
    write_knn(edges, "absent/file.knn")
  })
  expect_false(file.exists("file.knn"))
})

test_that("a bad file is an error that names file, line and what was expected", {
  good <- c("3 2", "0 1 0.5", "1 0 0.5")
  bad <- function(line, text, ...) {
    good[[line]] <- text
    read_lines(good, ...)
  }
  expect_messages({
    read_lines(character())
    bad(1, "3")
    bad(1, "3 2 1")
    bad(1, "0 2")
    bad(1, "3 2.5")
    bad(1, "3 3")
    bad(1, "3 1")
    bad(2, "0 1")
    bad(2, "0 1 0.5 0.5")
    bad(2, "0 -1 0.5")
    bad(2, "0 1.5 0.5")
    bad(2, "0 1 nan")
    bad(3, "1 0 0,5")
    bad(3, "1 3 0.5")
    bad(3, "99999999999 0 0.5")
    bad(3, "1 1 0.5")
    bad(3, "0 1 0.4")
    bad(3, "1 0 1.5")
    bad(3, "1 0 -0.5", metric = "manhattan")
    bad(3, "1 0 1e999", metric = "manhattan")
  })
})

test_that("wrong arguments are errors", {
  good <- c("3 2", "0 1 0.5", "1 0 0.5")
  expect_messages(
    read_lines(good, metric = "pearsn"),
    transform = without_metrics
  )
  expect_messages({
    read_lines(good, metric = "cosine", sign = "negative")
    read_lines(good, names = c("a", "b"))
    read_lines(good, names = 1:3)
    read_lines(good, names = c("a", "b", "a"))
    read_lines(good, names = c("a", NA, "c"))
    read_knn("absent.knn")
  })
})

test_that("a file that speaks of very many points costs nothing", {
  local_folder()
  writeLines(c("2147483647 1", "0 1 0.500"), "file.knn")
  expect_lt(file.size("file.knn"), 25)
  before <- gc(reset = TRUE)
  seconds <- cpu_seconds(edges <- read_knn("file.knn"))
  after <- gc()
  expect_lt(seconds, 5)
  used <- match("max used", colnames(after)) + 1L
  expect_lt(sum(after[, used] - before[, used]), 64) # MiB
  expect_identical(nrow(attr(edges, "vertices")), 2147483647L)
  expect_identical(edges$to, 2L)
  expect_snapshot(edges)
})

test_that("what read_knn() would refuse is not written", {
  local_folder()
  edges <- knn_graph(random_matrix(10, 5), 2)
  itself <- edges
  itself$to[[3]] <- itself$from[[3]]
  beyond <- edges
  beyond$correlation[[2]] <- 1.5
  below <- knn_graph(random_matrix(10, 5), 2, "euclidean")
  below$distance[[1]] <- -1
  for (bad in list(itself, beyond, below, edges[c(1, 2, 1), ])) {
    expect_wrong(write_knn(bad, "bad.knn"))
  }
  expect_wrong(
    write_knn(edges[0, ], "bad.knn", vertices = character()), "points"
  )
  expect_identical(list.files(), character())
})
