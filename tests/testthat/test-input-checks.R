# Each message as a user sees it.

test_that("k must be a whole number that fits", {
  x <- random_matrix(10, 4)
  expect_messages({
    knn_search(x, k = 2.5)
    knn_search(x, k = 0)
    knn_search(x, k = -1)
    knn_search(x, k = NA)
    knn_search(x, k = NaN)
    knn_search(x, k = Inf)
    knn_search(x, k = c(1, 2))
    knn_search(x, k = integer())
    knn_search(x, k = "3")
    knn_search(x, k = NULL)
    knn_search(x, k = TRUE)
    knn_search(x, k = list(3))
    knn_search(x, k = 10)
    knn_search(x, k = 1e300)
    knn_search(x)
    knn_search(x[1:2, ], k = 2)
    knn_graph(x, k = 10)
  })
})

test_that("an unknown metric is an error that offers the nearest", {
  x <- random_matrix(10, 4)
  expect_messages({
    knn_search(x, 2, metric = "euclidian")
    knn_search(x, 2, metric = "Pearson")
    knn_search(x, 2, metric = "Bray-Curtis")
    knn_search(x, 2, metric = "something else")
    knn_search(x, 2, metric = NA)
    knn_search(x, 2, metric = NA_character_)
    knn_search(x, 2, metric = 1)
    knn_search(x, 2, metric = NA)
    knn_search(x, 2, metric = c("pearson", "cosine"))
  }, transform = without_metrics)
})

test_that("a sign must be one, and only for a metric that has signs", {
  x <- random_matrix(10, 4)
  expect_messages({
    knn_search(x, 2, sign = "negativ")
    knn_search(x, 2, sign = -1)
    knn_search(x, 2, metric = "cosine", sign = "absolute")
    knn_graph(x, 2, metric = "manhattan", sign = "negative")
  })
})

test_that("values that are not finite are an error that says where", {
  x <- random_matrix(10, 4)
  rownames(x) <- paste0("g", 1:10)
  one <- replace(x, 13, NA)
  many <- x
  many[7, 1] <- NaN
  many[2, 2:3] <- c(Inf, -Inf)
  many[9, 4] <- NA
  integers <- matrix(c(1:7, NA), 4)
  logicals <- matrix(c(TRUE, FALSE, NA, TRUE), 2)
  expect_messages({
    knn_search(one, 2)
    knn_search(many, 2)
    knn_search(unname(many), 2)
    knn_search(as.data.frame(many), 2, "euclidean")
    knn_search(integers, 2)
    knn_search(logicals, 1)
  })
})

test_that("too few points or features are an error", {
  x <- random_matrix(10, 4)
  expect_messages({
    knn_search(x[1, , drop = FALSE], 1)
    knn_search(x[0, ], 1)
    knn_search(x[, 0], 1)
    knn_search(matrix(numeric(), 0, 0), 1)
    knn_search(x[, 1, drop = FALSE], 1)
    knn_search(data.frame(), 1)
  })
})

test_that("rows without a value are an error that says how to go on", {
  x <- random_matrix(10, 4)
  rownames(x) <- paste0("g", 1:10)
  constant <- replace(x, cbind(3, 1:4), 7)
  more <- x
  more[c(2, 4, 5, 8), ] <- 1
  zero <- abs(x)
  zero[c(1, 10), ] <- 0
  expect_messages({
    knn_search(constant, 2)
    knn_search(more, 2, "spearman")
    knn_search(unname(more), 2)
    knn_search(zero, 2, "cosine")
    knn_search(zero, 2, "proportional")
    knn_search(more, 2, constant = "leave")
    knn_search(more * 0, 2, constant = "isolate")
    knn_search(more[c(1, 2, 4), ], 1, constant = "isolate")
  })
})

test_that("negative values under proportional are an error that says where", {
  x <- abs(random_matrix(10, 4))
  rownames(x) <- paste0("g", 1:10)
  one <- replace(x, 12, -0.5)
  many <- replace(x, c(2, 13, 25, 36), -1)
  expect_messages({
    knn_search(one, 2, "proportional")
    knn_search(many, 2, "proportional")
  })
})

test_that("options are checked", {
  x <- random_matrix(10, 4)
  expect_messages({
    knn_search(x, 2, chunk_size = 0)
    knn_search(x, 2, chunk_size = -16)
    knn_search(x, 2, chunk_size = 2.5)
    knn_search(x, 2, chunk_size = 1e9)
    knn_search(x, 2, chunk_size = "big")
    knn_search(x, 2, num_threads = 0)
    knn_search(x, 2, num_threads = 1e6)
    knn_search(x, 2, num_threads = NA)
    knn_search(x, 2, num_threads = c(1, 2))
    knn_search(x, 2, progress = "yes")
    knn_search(x, 2, progress = c(TRUE, FALSE))
    knn_search(x, 2, verbose = NA)
    knn_search(x, 2, devices = 0.5)
    knn_search(x, 2, devices = c(1, 1))
    knn_search(x, 2, devices = "1")
    knn_search(x, 2, devices = integer())
    knn_search(x, 2, backend = "gpu")
    knn_search(x, 2, backend = "cpu", devices = 1)
  })
})

test_that("a misspelt argument is an error", {
  x <- random_matrix(10, 4)
  expect_messages({
    knn_search(x, 2, n_threads = 2)
    knn_graph(x, 2, "pearson", "signed", "cpu")
    knn_query(x, x, 2, device = 1)
    as_igraph(knn_graph(x, 2), modus = "union")
    knn_search(x, 2, kk = 3)
    knn_search(x, 2, n = 3)
  })
  # A last comma adds no argument.
  expect_identical(knn_search(x, 2, backend = "cpu", ), knn_search(x, 2))
})

test_that("an argument by another name is told its own", {
  known <- c(names(formals(knn_search)), fsknn:::option_names())
  meant <- fsknn:::meant_argument
  for (name in c("K", "neighbors", "n_neighbours", "nn", "kk")) {
    expect_identical(meant(name, known), "k", info = name)
  }
  for (name in c("threads", "num.threads", "numThreads", "n_cores", "nthreads")) {
    expect_identical(meant(name, known), "num_threads", info = name)
  }
  expect_identical(meant("method", known), "metric")
  expect_identical(meant("use", known), "na")
  expect_identical(meant("na.rm", known), "na")
  expect_identical(meant("reduction", known), "dimred")
  expect_identical(
    meant("nperm", names(formals(nearest_to))), "permutations"
  )
  expect_identical(meant("use_gpu", known), "backend")
  expect_identical(meant("chunk", known), "chunk_size")
  expect_identical(meant("max_mem", known), "max_memory")
  expect_identical(meant("size", known), "chunk_size")
  expect_null(meant("n", known))
  expect_null(meant("radius", known))
  expect_identical(meant("radius", names(formals(within_search))), "distance")
  # Every synonym is for an argument of some verb.
  verbs <- lapply(getNamespaceExports("fsknn"), getExportedValue, ns = "fsknn")
  known <- unlist(lapply(verbs, function(verb) names(formals(verb))))
  expect_identical(setdiff(fsknn:::argument_synonyms, known), character())
})

test_that("what is said of a wrong name or sign is all that is needed", {
  x <- random_matrix(10, 4)
  expect_messages({
    knn_search(x, K = 3)
    knn_graph(x, 3, threads = 4)
    as_igraph(knn_graph(x, 2), weights = "similarity")
    knn_graph(x, 2, sign = "abs")
    knn_graph(x, 2, sign = "unsigned")
    knn_graph(x, 2, sign = "neg")
    knn_graph(x, 2, sign = "nothing of the kind")
  })
})

test_that("a missing x is an error", {
  expect_messages({
    knn_search()
    knn_graph(k = 3)
  })
})

test_that("wrong arguments have a class of their own", {
  expect_wrong(knn_search("a"))
  expect_error(knn_search("a"), class = "fsknn_error")
})

test_that("an error names the call that the user made", {
  x <- random_matrix(10, 4)
  call_of <- function(expr) {
    rlang::call_name(conditionCall(expect_error(expr)))
  }
  expect_identical(call_of(knn_search(x, 0)), "knn_search")
  expect_identical(call_of(knn_search(x, 2, chunk_size = 0)), "knn_search")
  expect_identical(call_of(knn_search(x, 2, backend = "gpu")), "knn_search")
  expect_identical(call_of(knn_search(x, 2, kk = 1)), "knn_search")
  expect_identical(call_of(knn_search("a")), "knn_search")
  expect_identical(call_of(knn_search(x * 0, 2)), "knn_search")
  expect_identical(call_of(knn_search(x * NA, 2)), "knn_search")
  expect_identical(call_of(knn_query(x, x[, 1:2])), "knn_query")
  expect_identical(call_of(knn_query(x, NULL)), "knn_query")
  expect_identical(call_of(knn_graph(x[, 0], 2)), "knn_graph")
  expect_identical(call_of(knn_plan(x, 99)), "knn_plan")
  expect_identical(call_of(knn_plan(1)), "knn_plan")
  expect_identical(call_of(as_igraph(1)), "as_igraph")
})

test_that("a wrong argument is seen before any work", {
  # The matrix would take long, but the error comes at once.
  x <- matrix(0, 200000, 20)
  expect_lt(cpu_seconds(expect_error(knn_search(x, 2, chunk_size = 0))), 5)
})

test_that("a limit on GPU memory is bytes, or a string that says so", {
  withr::local_options(fsknn.max_device_memory = NULL)
  bytes <- fsknn:::check_device_memory
  expect_identical(bytes(NULL), 0)
  expect_identical(bytes(4096L), 4096)
  expect_identical(bytes(2.5e9), 2.5e9)
  expect_identical(bytes("4 GiB"), 4 * 2^30)
  expect_identical(bytes("1.5gib"), 1.5 * 2^30)
  expect_identical(bytes("500 MB"), 5e8)
  expect_identical(bytes(" 64 k "), 64e3)
  expect_identical(bytes("123"), 123)
  expect_identical(bytes("9 B"), 9)
  withr::local_options(fsknn.max_device_memory = "1 TiB")
  expect_identical(bytes(NULL), 2^40)
  expect_identical(bytes(7), 7)
})

test_that("a limit on GPU memory that is none is an error", {
  x <- random_matrix(20, 3)
  expect_messages({
    knn_search(x, 1, backend = "cpu", max_device_memory = 0)
    knn_search(x, 1, backend = "cpu", max_device_memory = -2^30)
    knn_search(x, 1, backend = "cpu", max_device_memory = NA)
    knn_search(x, 1, backend = "cpu", max_device_memory = Inf)
    knn_query(x, x, 1, backend = "cpu", max_device_memory = "a lot")
    knn_graph(x, 1, backend = "cpu", max_device_memory = "4 iB")
    knn_plan(x, 1, backend = "cpu", max_device_memory = c(1, 2))
  })
  withr::local_options(fsknn.max_device_memory = TRUE)
  expect_messages(knn_search(x, 1, backend = "cpu"))
})

test_that("an argument that is left out is an error of argument everywhere", {
  exported <- mget(getNamespaceExports("fsknn"), asNamespace("fsknn"))
  # These verbs have a first argument without a default.
  verbs <- Filter(function(verb) {
    arguments <- formals(verb)
    length(arguments) > 0 && names(arguments)[[1]] != "..." &&
      identical(arguments[[1]], quote(expr = ))
  }, Filter(is.function, exported))
  expect_gt(length(verbs), 45)
  for (name in names(verbs)) {
    expect_wrong(verbs[[name]](), info = name)
  }
  expect_wrong(pair_histogram(matrix(1:12 / 7, 4)), "`breaks` is absent")
})

# A Latin-1 table that is read as UTF-8 contains such text.
latin1 <- "TGF-\xdf"

expect_no_utf8 <- function(expr, shown = "TGF-..df", hint = "latin1") {
  expect_wrong({{ expr }}, "valid UTF-8")
  message <- tryCatch(expr, error = conditionMessage)
  expect_match(message, shown)
  expect_match(message, hint)
}

test_that("names that are not UTF-8 are an error that names their row", {
  x <- random_matrix(12, 8)
  good <- x
  dimnames(good) <- list(paste0("g", 1:12), paste0("s", 1:8))
  rows <- good
  rownames(rows)[[3]] <- latin1
  columns <- good
  colnames(columns)[[2]] <- latin1
  verbs <- list(
    knn_search, knn_graph, mst_knn,
    function(x, ...) within_search(x, 0.5),
    function(x, ...) threshold_graph(x, 0.5),
    function(x, ...) knn_query(good, x, 2),
    function(x, ...) nearest_to(x, 1, k = 2),
    function(x, ...) knn_impute(x, k = 2),
    function(x, ...) write_points(x, tempfile(), "cibm"),
    function(x, ...) write_points(x, tempfile(fileext = ".fbin")),
    function(x, ...) pair_histogram(x, seq(-1, 1, 0.5))
  )
  for (verb in verbs) {
    expect_no_utf8(verb(rows, k = 2), "[Rr]ow 3 ")
    expect_no_utf8(verb(columns, k = 2), "[Cc]olumn 2 ")
  }
  expect_no_utf8(knn_graph(t(rows), 2, points = "columns"), "column 3 ")
  # After conversion, the name is valid.
  rownames(rows)[[3]] <- iconv(latin1, "latin1", "UTF-8")
  expect_identical(attr(knn_graph(rows, 2), "vertices")$name[[3]], "TGF-\u00df")
  expect_messages({
    rownames(good)[[3]] <- "TGF-\xdf"
    knn_graph(good, 2)
  })
})

test_that("text where numbers should be must be UTF-8 before all else", {
  x <- as.data.frame(random_matrix(12, 8))
  x$z <- c(latin1, "#N/A", rep("a", 10))
  expect_no_utf8(knn_graph(x, 2), "row 1 ", "iconv\\(x\\$z, ")
  expect_no_utf8(knn_search(x, 2), "column `z`")
  x$z <- factor(x$z, unique(x$z))
  expect_no_utf8(knn_graph(x, 2), "level 1 ", "iconv\\(levels\\(x\\$z\\), ")
  names(x)[[9]] <- latin1
  expect_no_utf8(knn_graph(x, 2), "column 9 ", "colnames\\(x\\)")
  x[[9]] <- 1:12 * 100L
  expect_no_utf8(knn_graph(x, 2), "column 9 ", "colnames\\(x\\)")
  expect_no_utf8(knn_graph(matrix(latin1, 4, 4), 2), "position 1 ")
})

test_that("names of graphs, labels and other words must be UTF-8", {
  x <- random_matrix(6, 5)
  rownames(x) <- letters[1:6]
  edges <- knn_graph(x, 2)
  labels <- c(latin1, letters[2:6])
  points <- data.frame(name = letters[1:6], symbol = labels)
  file <- withr::local_tempfile(fileext = ".csv")
  expect_no_utf8(write_edges(edges, file, vertices = points))
  expect_no_utf8(write_edges(edges, file, "gml", vertices = points))
  expect_no_utf8(as_igraph(edges, vertices = labels))
  expect_no_utf8(
    write_edges(edges, file, vertices = data.frame(name = labels, a = 1))
  )
  lost <- data.frame(from = labels[1:2], to = c("b", "c"))
  expect_no_utf8(write_edges(lost, file))
  expect_no_utf8(as_igraph(lost, vertices = letters[1:6]))
  expect_no_utf8(neighbour_mixing(edges, labels))
  expect_no_utf8(neighbour_mixing(edges, factor(labels, unique(labels))))
  expect_no_utf8(neighbour_mixing(edges, stats::setNames(1:6, labels)))
  expect_no_utf8(knn_predict(x, labels, k = 1))
  expect_no_utf8(knn_graph(x, 1, block = labels))
  expect_no_utf8(nearest_to(x, latin1, k = 1))
  expect_no_utf8(knn_graph(x, 2, metric = latin1))
  expect_no_utf8(knn_graph(x, 2, sign = latin1))
  expect_no_utf8(knn_search(x, 2, backend = latin1))
  expect_no_utf8(knn_graph(x, 2, subset = latin1))
  if (rlang::is_installed(c("ggplot2", "ggraph"))) {
    expect_no_utf8(plot_neighbourhood(edges, latin1))
  }
  expect_no_utf8(module_summary(labels, x))
  expect_no_utf8(add_phenotype(x, 1:5, name = latin1))
  expect_no_utf8(metafeatures(x, ops = latin1))
  expect_no_utf8(mdl_filter(x, labels[c(1, 1, 2, 2, 2)]))
  expect_no_utf8(alpha_beta_k(x, factor(labels[c(1, 1, 2, 2, 2)])))
  graph <- as_igraph(edges)
  igraph::V(graph)$name[[3]] <- latin1
  for (verb in list(mst_knn, spanning_forest, as_knn)) {
    expect_no_utf8(verb(graph), "vertex 3 ", "igraph::V\\(.*\\)\\$name")
  }
  if (rlang::is_installed(c("ggplot2", "ggraph"))) {
    expect_no_utf8(plot_neighbourhood(graph, "a"), "vertex 3 ")
  }
  expect_no_utf8(write_edges(edges, latin1))
  expect_no_utf8(read_points(latin1, "cibm"))
  expect_no_utf8(knn_graph(paste0(latin1, ".fbin"), 2))
  expect_no_utf8(knn_search(x, 2, checkpoint = latin1))
  expect_no_utf8(knn_search(x, 2, output = latin1))
  expect_no_utf8(read_knn(latin1))
  expect_wrong(knn_graph(x, 2, assay = latin1), "TGF-..df")
  expect_wrong(FsknnParam(latin1), "TGF-..df")
  expect_false(file.exists(file))
})
