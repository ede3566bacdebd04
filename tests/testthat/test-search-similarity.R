# Similarities of pairs, to the last bit, wherever one is shown, compared or
# written.

# For whole numbers both sums are exact, and only the quotient is rounded.
pair_similarity <- function(x, metric = "proportional") {
  low <- function(i, j) sum(pmin(x[i, ], x[j, ]))
  one <- function(i, j) {
    all <- sum(x[i, ]) + sum(x[j, ])
    if (metric == "jaccard") low(i, j) / (all - low(i, j)) else
      2 * low(i, j) / all
  }
  outer(seq_len(nrow(x)), seq_len(nrow(x)), Vectorize(one))
}

# Makes pairs with few features in common: most similarities are below 1/2.
sparse_counts <- function(num_points, num_features, seed = 1, most = 9) {
  x <- counts_matrix(num_points, num_features, most, seed)
  gaps <- whole_numbers(length(x), seed + 50) %/% 4096 %% 3 > 0
  x[gaps] <- 0
  x[rowSums(x) == 0, 1] <- 1
  x
}

binary_points <- function(num_points, num_features, seed = 1) {
  x <- (whole_numbers(num_points * num_features, seed) %/% 4096 %% 3 == 0) + 0
  x <- matrix(x, num_points)
  x[rowSums(x) == 0, 1] <- 1
  x
}

in_comet_bytes <- function(all) {
  as.raw(floor(255 * all[upper.tri(all)]))
}

# Each edge's similarity is the bits of the reference.
expect_similarity <- function(edges, all, label) {
  number <- function(ends) match(ends, attr(edges, "vertices")$name)
  at <- cbind(number(edges$from), number(edges$to))
  expect_gt(nrow(edges), 0)
  expect_identical(edges$similarity, all[at], label = label)
  expect_identical(edges$distance, 1 - all[at], label = label)
}

data_of <- function(metric, num_points = 70, num_features = 11) {
  if (metric == "proportional") {
    sparse_counts(num_points, num_features)
  } else {
    binary_points(num_points, num_features)
  }
}

test_that("bytes are floor(255 c) of the double c, of all small pairs", {
  local_folder()
  cases <- list(
    list(counts_matrix(200, 3, 12), "proportional"),
    list(sparse_counts(150, 7), "proportional"),
    list(binary_points(150, 13), "sorensen")
  )
  for (case in cases) {
    x <- case[[1]]
    metric <- case[[2]]
    all <- pair_similarity(x)
    # 1 - distance would give another byte for some.
    expect_false(identical(in_comet_bytes(1 - (1 - all)), in_comet_bytes(all)))
    threshold_graph(x, 0, metric, file = "bytes", format = "comet_bytes")
    expect_identical(bytes_of("bytes"), in_comet_bytes(all))
    write_edges(threshold_graph(x, 0, metric), "metrics", "comet_bytes")
    expect_identical(bytes_of("metrics"), in_comet_bytes(all))
    fifth <- all[upper.tri(all)] == 0.2
    expect_identical(unique(bytes_of("bytes")[fifth]), as.raw(51))
  }
})

test_that("every verb's edges have the double that is rounded once", {
  for (metric in c("proportional", "sorensen", "jaccard")) {
    x <- data_of(metric)
    all <- pair_similarity(x, metric)
    off <- all[upper.tri(all)]
    expect_gt(mean(1 - (1 - off) != off), 0.1)
    for (backend in backends_here()) {
      ask <- function(verb, ...) {
        verb(x, ..., metric = metric, backend = backend)
      }
      edges <- ask(knn_graph, 30)
      expect_similarity(edges, all, "knn_graph")
      expect_similarity(edges[7:200, ], all, "rows")
      graph <- ask(threshold_graph, 0.05)
      expect_similarity(graph, all, "threshold_graph")
      some <- ask(threshold_graph, 0.05, subset = c(9, 2, 60))
      expect_similarity(some, all, "subset")
      expect_similarity(
        ask(mutual_pairs, 20, block = rep(1:2, 35)), all, "mutual_pairs"
      )
      tree <- ask(mst_knn)
      expect_similarity(tree$tree, all, "mst_knn")
    }
    far <- knn_graph(x[1:40, ], 39, metric)
    all_of_some <- all[1:40, 1:40]
    expect_similarity(undirected_edges(far), all_of_some, "undirected_edges")
    expect_similarity(spanning_forest(far), all_of_some, "spanning_forest")
    expect_similarity(mst_knn(far)$tree, all_of_some, "mst_knn of a graph")
    stable <- withr::with_seed(
      1, edge_stability(x[1:40, ], 12, metric = metric, resamples = 5)
    )
    expect_similarity(stable, all_of_some, "edge_stability")
  }
})

test_that("so have graphs, matrices and files of them", {
  local_folder()
  x <- data_of("proportional")
  all <- pair_similarity(x)
  edges <- threshold_graph(x, 0.1, "proportional")
  at <- cbind(edges$from, edges$to)
  graph <- as_igraph(edges, weight = "similarity")
  ends <- igraph::as_edgelist(graph, names = FALSE)
  expect_identical(igraph::E(graph)$weight, all[ends])
  forest <- mst_knn(as_igraph(knn_graph(x, 69, "proportional")))$tree
  expect_similarity(forest, all, "mst_knn of igraph")
  skip_if_not_installed("Matrix")
  sparse <- as.matrix(as_sparse(edges, "similarity"))
  expect_identical(unname(sparse[at]), all[at])

  write_edges(edges, "edges.graphml")
  back <- igraph::read_graph("edges.graphml", "graphml")
  ends <- igraph::as_edgelist(back, names = FALSE)
  expect_identical(
    igraph::E(back)$similarity, as.numeric(sprintf("%.15g", all[ends]))
  )
  threshold_graph(x, 0.1, "proportional", file = "found.csv")
  found <- utils::read.csv("found.csv")
  expect_identical(names(found), names(edges))
  expect_identical(found$similarity, edges$similarity)
  threshold_graph(x, 0.1, "proportional", file = "found.bin", format = "comet")
  write_edges(edges, "edges.bin", "comet")
  expect_identical(bytes_of("found.bin"), bytes_of("edges.bin"))
  as_float <- function(x) {
    readBin(writeBin(x, raw(), size = 4), "double", length(x), 4)
  }
  expect_identical(
    read_edges("edges.bin", "comet")$similarity, as_float(all[at])
  )
})

test_that("work in a folder, and data that are not held, tell the same", {
  local_folder()
  for (metric in c("proportional", "sorensen", "jaccard")) {
    x <- data_of(metric)
    verbs <- list(
      knn = function(...) knn_graph(..., k = 25, metric = metric),
      threshold = function(...) threshold_graph(..., 0.1, metric = metric)
    )
    for (verb in names(verbs)) {
      ask <- verbs[[verb]]
      edges <- ask(x)
      expect_similarity(edges, pair_similarity(x, metric), metric)
      withr::with_options(list(fsknn.split_size = 50), {
        expect_identical(ask(x, checkpoint = "work"), edges)
      })
      expect_identical(knn_collect("work"), edges)
      unlink("work", recursive = TRUE)
      skip_if_not_installed("DelayedArray")
      delayed <- DelayedArray::DelayedArray(x)
      # Edges must fit in memory, too; there are blocks of all rows, and of
      # eleven.
      room <- c(knn = 2000, threshold = 1e5)[[verb]]
      expect_identical(ask(delayed, max_memory = room), edges)
    }
  }
})

test_that("thresholds and bins compare that double, not 1 - distance", {
  for (metric in c("proportional", "sorensen", "jaccard")) {
    x <- data_of(metric, 60)
    all <- pair_similarity(x, metric)
    all <- all[upper.tri(all)]
    attained <- unique(all)
    some <- attained[attained > 0][seq(1, length(unique(all)) - 1, 4)]
    # Thresholds are equal to values of pairs, just above, and just below.
    least <- sort(unique(c(some, some * (1 + 2^-52), some * (1 - 2^-53))))
    least <- least[least <= 1]
    for (backend in backends_here()) {
      found <- vapply(least, function(least) {
        nrow(threshold_graph(x, least, metric, backend = backend)) + 0
      }, 0)
      wanted <- vapply(least, function(least) sum(all >= least) + 0, 0)
      expect_identical(found, wanted)
      counted <- pair_histogram(x, c(least, 2), metric, backend = backend)
      expect_identical(rev(cumsum(rev(counted$counts))), wanted)
    }
    local_folder()
    for (at in which(least < 0.5)[1:6]) {
      found <- threshold_graph(x, least[[at]], metric, file = "some.csv")
      expect_identical(found$count, wanted[[at]])
      expect_identical(nrow(utils::read.csv("some.csv")) + 0, wanted[[at]])
    }
  }
})

test_that("no weight lies below the threshold that its pair reached", {
  for (metric in c("proportional", "sorensen", "jaccard")) {
    x <- data_of(metric)
    all <- pair_similarity(x, metric)
    reached <- unique(all[all > 0 & all < 0.5])
    below <- reached[1 - (1 - reached) < reached]
    expect_gt(length(below), 0)
    for (least in below) {
      edges <- threshold_graph(x, least, metric)
      weight <- igraph::E(as_igraph(edges, weight = "similarity"))$weight
      expect_identical(min(weight), least)
      skip_if_not_installed("Matrix")
      expect_identical(min(as_sparse(edges, "similarity")@x), least)
    }
  }
})

# --- CoMet's checksum --------------------------------------------------------

# Whole numbers of any size are digits to the base 2^15, the lowest first.
carried <- function(digits) {
  for (i in seq_len(length(digits) - 1)) {
    over <- digits[[i]] %/% 2^15
    digits[[i]] <- digits[[i]] - over * 2^15
    digits[[i + 1]] <- digits[[i + 1]] + over
  }
  digits
}

digits_of <- function(number, count) {
  carried(c(number %% 2^15, number %/% 2^15, rep(0, count - 2)))
}

# Reads "95-731337953569731265-108597638988176688": three numbers of 60 bits.
parse_checksum <- function(text) {
  numbers <- strsplit(text, "-", fixed = TRUE)[[1]]
  unlist(lapply(rev(numbers), function(number) {
    Reduce(function(digits, figure) {
      carried(c(10 * digits[[1]] + figure, 10 * digits[-1]))
    }, as.numeric(strsplit(number, "", fixed = TRUE)[[1]]), rep(0, 4))
  }))
}

# Sums value / 16 over all, in steps of 2^-60, times a number that depends on
# the two or three points. These are counted from 0, the last first.
comet_checksum <- function(points, values, num_points) {
  scramble <- function(i) (4096 * i + 150889) %% 714025
  id <- Reduce(function(id, at) id * num_points + at, rev(points))
  factor <- scramble(id + 956158765) + 714025 * scramble(id + 842467637)
  sums <- rep(0, 12)
  for (i in seq_along(values)) {
    a <- digits_of(factor[[i]], 4)
    b <- digits_of(floor(values[[i]] * 2^56), 4)
    for (j in 1:4) {
      sums[j:(j + 3)] <- sums[j:(j + 3)] + a[[j]] * b
    }
    sums <- carried(sums)
  }
  sums
}

test_that("CoMet's published checksums of pairs and of triples are met", {
  # These are the small cases of its quick start guide.
  x <- rbind(c(1, 2), c(3, 4), c(2, 1), c(4, 3))
  edges <- threshold_graph(x, 0, "proportional")
  expect_identical(
    comet_checksum(list(edges$from - 1, edges$to - 1), edges$similarity, 4),
    parse_checksum("0-82898256547-645082804690974176")
  )
  triples <- threshold_triples(x, 0)
  expect_identical(
    comet_checksum(
      list(triples$from - 1, triples$to - 1, triples$third - 1),
      triples$similarity, 4
    ),
    parse_checksum("0-84749404949-5538720434861296")
  )
})

test_that("CoMet's checksum of pairs is met by more and smaller values", {
  x <- sparse_counts(60, 9)
  all <- pair_similarity(x)
  edges <- threshold_graph(x, 0, "proportional")
  sum_of <- function(values) {
    comet_checksum(list(edges$from - 1, edges$to - 1), values, 60)
  }
  wanted <- sum_of(all[cbind(edges$from, edges$to)])
  expect_identical(sum_of(edges$similarity), wanted)
  expect_false(identical(sum_of(1 - edges$distance), wanted))
})

test_that("edges of allele tables say which alleles go together", {
  # The second row has the other allele where the first has the counted one.
  x <- rbind(
    a = rep(c(0, 2), each = 6), b = rep(c(2, 0), each = 6),
    c = rep(c(0, 2, 0), c(5, 3, 4)), d = rep(c(1, 0), c(1, 11))
  )
  edges <- knn_graph(x, 3, "ccc")
  of <- function(from, to) {
    edges[edges$from == from & edges$to == to, c("similarity", "alleles")]
  }
  expect_equal(of("a", "b")$similarity, 1)
  expect_identical(as.character(of("a", "b")$alleles), "01")
  expect_identical(as.character(of("b", "a")$alleles), "01")
  expect_identical(as.character(of("c", "d")$alleles), "00")
  # The counted allele of `a`, which is half of all, with the other of `d`.
  share <- 0.5 * (1 - 2 / 3 / 2) * (1 - 2 / 3 * 23 / 24) * 9 / 2
  expect_equal(of("a", "d")$similarity, share)
  expect_identical(as.character(of("a", "d")$alleles), "10")
  expect_identical(as.character(of("d", "a")$alleles), "01")
  expect_identical(edges$distance, 1 - edges$similarity)
})

test_that("alleles follow the ends of edges, in all graphs and files", {
  x <- withr::with_seed(2, matrix(
    stats::rbinom(80 * 60, 2, stats::runif(80, 0.05, 0.9)), 80
  ))
  rownames(x) <- paste0("rs", 1:80)
  all <- threshold_graph(x, 0, "ccc", backend = "cpu")
  known <- rbind(
    data.frame(all[c("from", "to")], alleles = as.character(all$alleles)),
    data.frame(
      from = all$to, to = all$from,
      alleles = c("00", "10", "01", "11")[as.integer(all$alleles)]
    )
  )
  expect_alleles <- function(edges) {
    at <- match(paste(edges$from, edges$to), paste(known$from, known$to))
    expect_identical(as.character(edges$alleles), known$alleles[at])
  }
  edges <- knn_graph(x, 4, "ccc", backend = "cpu")
  expect_true(any(edges$alleles == "01") && any(edges$alleles == "10"))
  expect_alleles(edges)
  for (mode in c("union", "mutual")) {
    expect_alleles(undirected_edges(edges, mode))
    expect_alleles(igraph::as_data_frame(as_igraph(edges, mode = mode)))
  }
  expect_alleles(spanning_forest(edges))
  expect_alleles(combine_graphs(edges, edges[1:9, ]))
  file <- withr::local_tempfile(fileext = ".csv")
  threshold_graph(x, 0.3, "ccc", file = file, backend = "cpu")
  written <- utils::read.csv(file, colClasses = c(alleles = "character"))
  expect_gt(nrow(written), 100)
  expect_alleles(written)
})
