# CoMet's files: its input, and its results in both forms.

# Writes a file without the package's own writer.
put_comet <- function(file, values, size, endian = "little") {
  connection <- base::file(file, "wb")
  on.exit(close(connection))
  writeBin(as.vector(t(values)), connection, size = size, endian = endian)
}

# CoMet's own example (its quick start guide) has 4 vectors of 2 fields.
comet_example <- rbind(c(1, 2), c(3, 4), c(2, 1), c(4, 3))
comet_pairs <- c(
  5.99999999999999978e-01, 6.66666666666666630e-01, 5.99999999999999978e-01,
  5.99999999999999978e-01, 8.57142857142857095e-01, 5.99999999999999978e-01
)
comet_pair_ends <- list(c(1L, 1L, 2L, 1L, 2L, 3L), c(2L, 3L, 3L, 4L, 4L, 4L))

to_float <- function(x) {
  readBin(
    writeBin(as.vector(x), raw(), size = 4), "double", length(x), size = 4
  )
}

test_that("vectors are read as CoMet stores them, and written so", {
  local_folder()
  x <- round(random_matrix(30, 7) * 64) / 64
  for (precision in c("single", "double")) {
    for (order in c("little", "big")) {
      size <- if (precision == "single") 4 else 8
      put_comet("by hand", x, size, order)
      expect_identical(
        read_points(
          "by hand", "comet", num_features = 7, precision = precision,
          byte_order = order
        ), x
      )
      expect_identical(
        write_points(x, "ours", "comet", precision = precision, byte_order = order),
        "ours"
      )
      expect_identical(
        readBin("ours", "raw", 1e4), readBin("by hand", "raw", 1e4)
      )
    }
  }
  expect_identical(read_points(
    "ours", "comet", num_features = 7, precision = "double", num_points = 30,
    byte_order = "big"
  ), x)
  x <- random_matrix(30, 7)
  write_points(x, "ours", "comet")
  expect_identical(
    read_points("ours", "comet", num_features = 7), array(to_float(x), dim(x))
  )
})

test_that("more than is read at a time comes back, and containers go in", {
  local_folder()
  x <- matrix(seq_len(2^20 + 5), ncol = 1)
  write_points(x, "long", "comet", precision = "double")
  expect_identical(
    read_points("long", "comet", num_features = 1, precision = "double"), x + 0
  )
  x <- random_matrix(20, 6)
  skip_if_not_installed("DelayedArray")
  write_points(
    DelayedArray::DelayedArray(x), "delayed", "comet", precision = "double"
  )
  expect_identical(
    read_points("delayed", "comet", num_features = 6, precision = "double"), x
  )
  skip_if_not_installed("SummarizedExperiment")
  cells <- SummarizedExperiment::SummarizedExperiment(list(counts = x))
  write_points(cells, "container", "comet", precision = "double")
  expect_identical(
    read_points("container", "comet", num_features = 6, precision = "double"), x
  )
})

test_that("pairs have the values that CoMet's guide prints, in its order", {
  local_folder()
  edges <- threshold_graph(comet_example, 0, "proportional")
  write_edges(edges, "bytes", "comet_bytes")
  # CoMet rounds down, except for the last bit of 0.6 * 255 = 153.
  expect_identical(
    as.integer(readBin("bytes", "raw", 100)),
    as.integer(floor(255 * (comet_pairs + 1e-15)))
  )
  back <- read_edges("bytes", "comet_bytes", num_points = 4)
  expect_identical(unname(as.list(back[1:2])), comet_pair_ends)
  expect_true(all(comet_pairs >= back$similarity - 1e-15))
  expect_true(all(comet_pairs < back$similarity + 1 / 255))

  write_edges(edges, "records", "comet")
  expect_identical(file.size("records"), 6 * 12)
  back <- read_edges("records", "comet")
  at <- order(back$to, back$from)
  expect_identical(unname(as.list(back[at, 1:2])), comet_pair_ends)
  expect_identical(back$similarity[at], to_float(comet_pairs))
})

test_that("records are two numbers from 0 and a float, in either byte order", {
  local_folder()
  x <- abs(random_matrix(40, 5))
  rownames(x) <- paste0("gene", 40:1)
  edges <- threshold_graph(x, 0.6, "proportional")
  for (order in c("little", "big")) {
    write_edges(edges, "records", "comet", byte_order = order)
    bytes <- matrix(bytes_of("records"), nrow = 12)
    ends <- readBin(as.vector(bytes[1:8, ]), "integer", 1e4, 4, endian = order)
    expect_identical(rownames(x)[ends + 1], c(rbind(edges$from, edges$to)))
    expect_identical(
      readBin(as.vector(bytes[9:12, ]), "double", 1e4, 4, endian = order),
      to_float(edges$similarity)
    )
    back <- read_edges("records", "comet", byte_order = order, num_points = 40)
    expect_identical(rownames(x)[back$from], edges$from)
    expect_identical(rownames(x)[back$to], edges$to)
  }
})

test_that("triples are read in CoMet's order, from both forms", {
  local_folder()
  expected <- data.frame(
    from = c(1L, 1L, 1L, 1L, 2L, 1L, 2L, 1L, 2L, 3L),
    to = c(2L, 2L, 2L, 3L, 3L, 3L, 3L, 4L, 4L, 4L),
    third = c(3L, 4L, 5L, 4L, 4L, 5L, 5L, 5L, 5L, 5L)
  )
  writeBin(as.raw(seq(0, 225, by = 25)), "bytes")
  back <- read_edges("bytes", "comet_bytes", num_way = 3, num_points = 5)
  expect_identical(back[1:3], expected)
  expect_identical(back$similarity, seq(0, 225, by = 25) / 255)

  connection <- base::file("records", "wb")
  for (row in 1:10) {
    writeBin(unlist(expected[row, ]) - 1L, connection, size = 4)
    writeBin(row / 16, connection, size = 4)
  }
  close(connection)
  back <- read_edges("records", "comet", num_way = 3)
  expect_identical(back[1:3], expected)
  expect_identical(back$similarity, 1:10 / 16)
})

test_that("records of alleles have the numbers of alleles", {
  local_folder()
  x <- genotype_matrix(12, 15)
  x <- x[12:1, ]
  pairs <- threshold_graph(x, 0, "ccc")
  # An edge may have its ends in any order.
  turned <- pairs[c(3, 1, 7), ]
  turned[1:2] <- turned[2:1]
  turned$alleles <- factor(
    c("00", "10", "01", "11")[as.integer(turned$alleles)],
    c("00", "01", "10", "11")
  )
  for (edges in list(pairs, turned, threshold_triples(x, 0, "ccc"))) {
    write_edges(edges, "records", "comet")
    num_way <- if (is.null(edges$third)) 2 else 3
    numbers <- matrix(
      readBin("records", "integer", 1e5, size = 4), nrow = num_way + 1
    )
    ends <- list(edges$from, edges$to, edges$third)[seq_len(num_way)]
    digits <- do.call(rbind, strsplit(as.character(edges$alleles), ""))
    codes <- 2 * (do.call(cbind, ends) - 1) + (digits == "1")
    expect_equal(t(apply(codes, 1, sort)), t(numbers[seq_len(num_way), ]))
    back <- read_edges(
      "records", "comet", num_way = num_way, num_points = 12, alleles = TRUE
    )
    expect_identical(back$similarity, to_float(edges$similarity))
    if (identical(edges, turned)) {
      expect_identical(back$alleles, pairs$alleles[c(3, 1, 7)])
    } else {
      expect_identical(back$alleles, edges$alleles)
      expect_identical(back$from, edges$from)
      # The search writes the same file.
      verb <- if (num_way == 2) threshold_graph else threshold_triples
      verb(x, 0, "ccc", file = "found", format = "comet")
      expect_identical(bytes_of("found"), bytes_of("records"))
    }
  }
  # A table may have several entries in a file of CoMet.
  two <- as.raw(c(0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 63))
  other <- replace(two, 5, as.raw(3))
  writeBin(c(two, other), "records")
  expect_identical(
    as.character(read_edges("records", "comet", alleles = TRUE)$alleles),
    c("00", "01")
  )
  expect_messages({
    read_edges("records", "comet", alleles = TRUE, num_points = 1)
    writeBin(c(two, two), "records")
    read_edges("records", "comet", alleles = TRUE)
    writeBin(replace(two, 5, as.raw(1)), "records")
    read_edges("records", "comet", alleles = TRUE)
    read_edges("records", "comet", alleles = 1)
    read_edges("records", "comet_bytes", num_points = 4, alleles = TRUE)
  })
})

test_that("an empty file of records has none, and no pair is written so", {
  local_folder()
  x <- abs(random_matrix(10, 5))
  edges <- threshold_graph(x, 1, "proportional")
  write_edges(edges, "records", "comet")
  expect_identical(file.size("records"), 0)
  expect_identical(
    read_edges("records", "comet"),
    data.frame(from = integer(), to = integer(), similarity = double())
  )
  # Vectors would keep their length, so an empty file has none.
  file.create("vectors")
  expect_identical(
    read_points("vectors", "comet", num_features = 7), matrix(0, 0, 7)
  )
})

test_that("what was there stays where a file can't be written", {
  local_folder()
  writeLines("before", "kept")
  x <- random_matrix(5, 3)
  x[2, 2] <- NA
  expect_messages(write_points(x, "kept", "comet"))
  x[2, 2] <- 1e39
  expect_messages(write_points(x, "kept", "comet"))
  expect_identical(readLines("kept"), "before")
  expect_identical(list.files(), "kept")
})

test_that("wrong files and wrong edges are told", {
  local_folder()
  write_points(comet_example, "vectors", "comet")
  edges <- threshold_graph(comet_example, 0, "proportional")
  write_edges(edges, "records", "comet")
  write_edges(edges, "bytes", "comet_bytes")
  expect_messages({
    read_points("vectors", "comet")
    read_points("vectors", "comet", num_features = 3)
    read_points("vectors", "comet", num_features = 2, num_points = 5)
    read_points("vectors", "comet", num_features = 2, precision = "double")
    read_points("none", "comet", num_features = 2)
    read_edges("records", "comet", num_way = 3)
    read_edges("records", "comet", num_points = 3)
    read_edges("records", "comet", byte_order = "big")
    read_edges("bytes", "comet_bytes")
    read_edges("bytes", "comet_bytes", num_points = 5)
    read_edges("bytes", "comet_bytes", num_points = 4, byte_order = "big")
    write_edges(edges[-1, ], "bytes", "comet_bytes")
    write_edges(comet_example, "records", "comet")
    write_edges(knn_graph(comet_example, 2, "proportional"), "records", "comet")
    write_edges(
      as.data.frame(threshold_triples(comet_example, 0)), "records", "comet"
    )
    write_edges(edges, "records", "comet", num_points = 4)
  })
})

test_that("a pair or a triple that is there twice is seen", {
  file <- withr::local_tempfile()
  x <- exp(random_matrix(6, 5))
  pairs <- threshold_graph(x, 0, "proportional", backend = "cpu")
  pairs[3, c("from", "to", "distance")] <- pairs[9, c("to", "from", "distance")]
  triples <- threshold_triples(x, 0)
  triples[2, ] <- triples[11, ]
  for (twice in list(pairs, triples)) {
    for (format in c("comet", "comet_bytes")) {
      expect_wrong(write_edges(twice, file, format), "is there twice")
    }
  }
})

put_records <- function(...) {
  writeBin(unlist(lapply(list(...), function(ends) {
    c(
      writeBin(as.integer(ends), raw(), endian = "little"),
      writeBin(0.5, raw(), size = 4, endian = "little")
    )
  })), "records")
}

test_that("records that can't be are refused by reader and writer", {
  local_folder()
  read <- function(...) {
    put_records(...)
    read_edges("records", "comet", num_way = length(..1))
  }
  expect_error(read(c(3, 3)), "different points", class = "fsknn_file_error")
  for (ends in list(c(1, 1, 1), c(1, 2, 1), c(5, 2, 2))) {
    expect_error(read(ends), "different points", class = "fsknn_file_error")
  }
  expect_error(read(1:2, 2:3, 2:1), "points 2, 3 is there twice",
               class = "fsknn_file_error")
  expect_error(read(1:3, c(2, 3, 1)), "2, 3, 4", class = "fsknn_file_error")
  expect_identical(read(2:1, 2:3)$from, c(3L, 3L))
  edges <- threshold_graph(comet_example, 0, "proportional")
  edges$to[[2]] <- edges$from[[2]]
  expect_wrong(write_edges(edges, "other", "comet"), "different points")
  expect_false(file.exists("other"))
})

test_that("vectors that could not be read are not written, nor others read", {
  local_folder()
  expect_wrong(write_points(matrix(0, 5, 0), "vectors", "comet"))
  expect_identical(list.files(), character())
  for (value in c(NA, NaN, Inf)) {
    writeBin(c(1, value), "vectors", size = 4, endian = "little")
    expect_error(
      read_points("vectors", "comet", num_features = 2),
      "finite", class = "fsknn_file_error"
    )
  }
})

test_that("similarities of triples are checked as those of pairs", {
  local_folder()
  graphs <- list(
    threshold_graph(comet_example, 0, "proportional"),
    threshold_triples(comet_example, 0)
  )
  for (graph in graphs) {
    for (value in c(NA, NaN, Inf, -1e-9, 1.0000001)) {
      for (format in c("comet", "comet_bytes")) {
        other <- graph
        other$similarity[[2]] <- value
        expect_wrong(write_edges(other, "other", format), "between 0 and 1")
      }
    }
    graph$similarity <- rep(1L, nrow(graph))
    num_way <- if ("third" %in% names(graph)) 3 else 2
    write_edges(graph, "whole", "comet")
    expect_true(all(read_edges(
      "whole", "comet", num_way = num_way
    )$similarity == 1))
  }
  triples <- graphs[[2]]
  for (values in list(NULL, as.character(triples$similarity),
                      factor(triples$similarity))) {
    triples$similarity <- values
    expect_wrong(
      write_edges(triples, "other", "comet"), "numeric column `similarity`"
    )
  }
  expect_false(file.exists("other"))
})
