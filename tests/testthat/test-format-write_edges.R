# Three of the four points have edges, and the names contain special characters.
test_edges <- function(names = c("1000_at", "a \"b\" & <c>", "HLA-DRA \u00e9", "d")) {
  new_knn_edges(
    list(
      from = names[c(1, 2, 3)], to = names[c(2, 1, 1)], rank = c(1L, 1L, 1L),
      distance = c(1 / 3, 1 / 3, 1e-9 * pi), correlation = c(2 / 3, 2 / 3, 1)
    ),
    vertices = data.frame(name = names),
    metric = "pearson", sign = "signed", k = 1L
  )
}

no_triples <- function() {
  x <- rbind(diag(4), 0)[, 1:4][1:4, ]
  rownames(x) <- letters[1:4]
  threshold_triples(x, 0.9)
}

annotation <- function(edges = test_edges()) {
  data.frame(
    name = rev(c(attr(edges, "vertices")$name, "another")),
    symbol = c("X", "CD3D", NA, "HLA, \"DR\"", "RPL3")
  )
}

# Decodes text of GML as readers other than igraph do.
gml_text <- function(text) {
  vapply(text, function(word) {
    for (entity in unique(regmatches(word, gregexpr("&#[0-9]+;", word))[[1]])) {
      sign <- intToUtf8(as.integer(gsub("[^0-9]", "", entity)))
      word <- gsub(entity, sign, word, fixed = TRUE)
    }
    word <- gsub("&quot;", "\"", word, fixed = TRUE)
    gsub("&amp;", "&", word, fixed = TRUE)
  }, "", USE.NAMES = FALSE)
}

expect_same_graph <- function(graph, edges) {
  names <- attr(edges, "vertices")$name
  expect_identical(gml_text(igraph::V(graph)$name), names)
  ends <- igraph::as_edgelist(graph, names = FALSE)
  expect_identical(names[ends[, 1]], edges$from)
  expect_identical(names[ends[, 2]], edges$to)
  expect_equal(igraph::E(graph)$rank, edges$rank, tolerance = 0)
  # Numbers are written with 15 significant digits.
  expect_equal(igraph::E(graph)$distance, edges$distance, tolerance = 1e-14)
  expect_equal(igraph::E(graph)$correlation, edges$correlation, tolerance = 1e-14)
}

test_that("CSV holds the columns of the edges", {
  local_folder()
  edges <- test_edges()
  expect_identical(
    expect_invisible(write_edges(edges, "edges.csv")), "edges.csv"
  )
  back <- read.csv("edges.csv", encoding = "UTF-8")
  expect_identical(names(back), names(edges))
  expect_identical(back$from, edges$from)
  expect_identical(back$to, edges$to)
  expect_equal(back$distance, edges$distance, tolerance = 1e-14)
})

test_that("CSV holds what is known of both ends", {
  local_folder()
  edges <- test_edges()
  write_edges(edges, "edges.csv.gz", vertices = annotation())
  expect_identical(readBin("edges.csv.gz", "raw", 2), as.raw(c(0x1f, 0x8b)))
  back <- read.csv("edges.csv.gz", encoding = "UTF-8")
  expect_identical(back$from_symbol, c("RPL3", "HLA, \"DR\"", NA))
  expect_identical(back$to_symbol, c("HLA, \"DR\"", "RPL3", "RPL3"))
})

test_that("a data frame holds what is known of both ends", {
  edges <- test_edges()
  frame <- as.data.frame(edges, vertices = annotation())
  expect_identical(class(frame), "data.frame")
  expect_identical(as.list(frame)[names(edges)], as.list(edges)[names(edges)])
  expect_identical(frame$from_symbol, c("RPL3", "HLA, \"DR\"", NA))
  expect_identical(frame$to_symbol, c("HLA, \"DR\"", "RPL3", "RPL3"))
  expect_identical(class(as.data.frame(edges)), "data.frame")
  expect_identical(data.frame(edges, more = 1:3)$more, 1:3)
  x <- rbind(diag(3), 1)[, c(1:3, 1:3)]
  rownames(x) <- letters[1:4]
  triples <- threshold_triples(x, 0)
  frame <- as.data.frame(
    triples, vertices = data.frame(name = letters[4:1], place = 4:1)
  )
  for (end in c("from", "to", "third")) {
    expect_identical(letters[frame[[paste0(end, "_place")]]], triples[[end]])
  }
  expect_messages({
    as.data.frame(edges, vertices = data.frame(name = "d", place = 1))
    as.data.frame(edges, vertices = 1:4)
  })
})

test_that("a graph without edges is written without any", {
  local_folder()
  none <- test_edges()[0, ]
  triples <- no_triples()
  heads <- list(
    list(none, "\"from\",\"to\",\"rank\",\"distance\",\"correlation\""),
    list(spanning_forest(none), "\"from\",\"to\",\"rank\",\"distance\",\"correlation\""),
    list(triples, paste0(
      "\"from\",\"to\",\"third\",\"similarity\",\"pair_from_to\",",
      "\"pair_from_third\",\"pair_to_third\",\"at_least\",\"at_most\""
    ))
  )
  for (case in heads) {
    for (file in c("none.csv", "none.csv.gz")) {
      write_edges(case[[1]], file)
      expect_identical(readLines(file), case[[2]])
    }
    for (format in c("graphml", "gml")) {
      write_edges(case[[1]], "none", format)
      graph <- igraph::read_graph("none", format)
      expect_equal(igraph::ecount(graph), 0)
      expect_equal(igraph::vcount(graph), 4)
    }
  }
  write_edges(none, "none.csv", vertices = annotation())
  expect_identical(nrow(read.csv("none.csv")), 0L)
  write_edges(triples, "none.csv", form = "clique")
  expect_identical(nrow(read.csv("none.csv")), 0L)
})

test_that("edges without a column are written where their points have places", {
  local_folder()
  points <- data.frame(name = c("a", "b"), x = 1:2, y = 1:2)
  edges <- data.frame(from = "a", to = "b")
  for (format in c("graphml", "gml")) {
    write_edges(edges, "edges", format, vertices = points)
    expect_equal(igraph::ecount(igraph::read_graph("edges", format)), 1)
  }
})

test_that("CSV is written of edges that lost their vertices", {
  local_folder()
  lost <- as.data.frame(as.list(test_edges()))
  write_edges(lost, "edges.csv")
  expect_identical(nrow(read.csv("edges.csv")), 3L)
})

test_that("GraphML keeps all points, names, order and numbers", {
  local_folder()
  edges <- test_edges()
  write_edges(edges, "edges.graphml", vertices = annotation())
  graph <- igraph::read_graph("edges.graphml", "graphml")
  expect_same_graph(graph, edges)
  expect_identical(igraph::V(graph)$symbol, c("RPL3", "HLA, \"DR\"", "", "CD3D"))
})

test_that("GML keeps all points, names, order and numbers", {
  local_folder()
  edges <- test_edges()
  expect_no_warning(write_edges(edges, "edges.gml", vertices = annotation()))
  graph <- igraph::read_graph("edges.gml", "gml")
  expect_same_graph(graph, edges)
  expect_identical(
    gml_text(igraph::V(graph)$symbol), c("RPL3", "HLA, \"DR\"", "", "CD3D")
  )
  expect_identical(igraph::V(graph)$label, igraph::V(graph)$name)
})

test_that("a point without a label of its own is shown by its name", {
  local_folder()
  edges <- test_edges()
  names <- attr(edges, "vertices")$name
  points <- data.frame(name = names, label = c(NA, "", letters[3:4]))
  for (format in c("graphml", "gml")) {
    write_edges(edges, "edges", format, vertices = points)
    graph <- igraph::read_graph("edges", format)
    expect_identical(
      gml_text(igraph::V(graph)$label), gml_text(c(names[1:2], "c", "d"))
    )
  }
})

test_that("points that are numbers are written by their numbers", {
  local_folder()
  edges <- test_edges(names = 1:4)
  for (format in c("graphml", "gml")) {
    write_edges(edges, "edges", format)
    graph <- igraph::read_graph("edges", format)
    expect_identical(as.integer(igraph::V(graph)$name), 1:4)
    expect_identical(igraph::ecount(graph), 3)
  }
})

test_that("edges that lost their vertices are written once they are given", {
  local_folder()
  edges <- test_edges()
  lost <- as.data.frame(as.list(edges))
  expect_messages(write_edges(lost, "edges.gml"))
  write_edges(lost, "edges.gml", vertices = attr(edges, "vertices"))
  expect_same_graph(igraph::read_graph("edges.gml", "gml"), edges)
})

test_that("columns of every plain type can be read back", {
  local_folder()
  edges <- test_edges(letters[1:4])
  vertices <- data.frame(
    name = letters[1:4],
    count = c(1L, NA, 3L, 4L),
    score = c(0.5, NA, Inf, -1),
    flag = c(TRUE, FALSE, TRUE, FALSE),
    maybe = c(TRUE, NA, FALSE, TRUE),
    group = factor(c("u", "v", NA, "u")),
    day = as.Date("2012-08-31") + 0:3,
    text = c("x", "a\001b", NA, "two\nlines")
  )
  text <- list(
    maybe = c("true", "", "false", "true"),
    group = c("u", "v", "", "u"),
    day = c("2012-08-31", "2012-09-01", "2012-09-02", "2012-09-03"),
    text = c("x", "a b", "", "two\nlines")
  )

  write_edges(edges, "edges.graphml", vertices = vertices)
  back <- igraph::vertex_attr(igraph::read_graph("edges.graphml", "graphml"))
  expect_equal(back$count, c(1, NaN, 3, 4))
  expect_equal(back$score, c(0.5, NaN, Inf, -1))
  expect_identical(back$flag, vertices$flag)
  expect_identical(back[names(text)], text)

  expect_no_warning(write_edges(edges, "edges.gml", vertices = vertices))
  back <- igraph::vertex_attr(igraph::read_graph("edges.gml", "gml"))
  expect_identical(back$count, c("1", "", "3", "4"))
  expect_identical(back$score, c("0.5", "", "Inf", "-1"))
  expect_identical(back$flag, c(1, 0, 1, 0))
  expect_identical(lapply(back[names(text)], gml_text), text)
})

test_that("columns whose names GML can't hold get names that it can", {
  local_folder()
  edges <- test_edges(letters[1:4])
  edges[["cluster.no"]] <- 1:3
  vertices <- data.frame(
    name = letters[1:4], id = paste0("p", 1:4), a.b = 1:4, a_b = 5:8,
    `2nd` = 9:12, check.names = FALSE
  )
  write_edges(edges, "edges.gml", vertices = vertices)
  graph <- igraph::read_graph("edges.gml", "gml")
  expect_identical(igraph::V(graph)$id1, paste0("p", 1:4))
  expect_identical(igraph::V(graph)$ab, c(1, 2, 3, 4))
  expect_identical(igraph::V(graph)$ab1, c(5, 6, 7, 8))
  expect_identical(igraph::V(graph)$x2nd, c(9, 10, 11, 12))
  expect_identical(igraph::E(graph)$clusterno, c(1, 2, 3))
})

test_that("what can't be written is an error, and no file is made", {
  local_folder()
  edges <- test_edges(letters[1:4])
  few <- data.frame(name = c("a", "c", "x"), symbol = 1:3)
  twice <- data.frame(name = c("a", "b", "b", "c", "d"))
  expect_messages({
    write_edges(1:3, "edges.csv")
    write_edges(edges, "edges")
    write_edges(edges, "edges.xgmml")
    write_edges(edges, "edges.xml", "graphm")
    write_edges(edges, "absent/edges.csv")
    write_edges(edges, "edges.csv", weight = "r")
    write_edges(edges, "edges.csv", vertices = "a")
    write_edges(edges, "edges.csv", vertices = few)
    write_edges(edges, "edges.csv", vertices = twice)
    write_edges(edges, "edges.graphml.gz")
  })
  edges$list <- list(1, 2, 3)
  for (format in c("csv", "graphml", "gml")) {
    expect_messages(write_edges(edges, "edges", format))
  }
  expect_identical(list.files(), character())
})

test_that("trees and clusters are written as undirected graphs", {
  local_folder()
  x <- random_matrix(30, 6)
  rownames(x) <- paste0("gene", 1:30)
  tree <- spanning_forest(knn_graph(x, k = 3))
  clusters <- mst_knn(x, k = 2)
  for (format in c("graphml", "gml")) {
    write_edges(tree, "edges", format)
    graph <- igraph::read_graph("edges", format)
    expect_false(igraph::is_directed(graph))
    expect_identical(igraph::V(graph)$name, rownames(x))
    expect_identical(igraph::V(graph)$label, rownames(x))
    expect_equal(
      sort(igraph::E(graph)$distance), sort(tree$distance), tolerance = 1e-14
    )
    expect_equal(
      1 - igraph::E(graph)$correlation, igraph::E(graph)$distance,
      tolerance = 1e-12
    )

    write_edges(clusters, "edges", format)
    graph <- igraph::read_graph("edges", format)
    expect_equal(igraph::V(graph)$cluster, unname(clusters$membership))
    # The edges between clusters are removed.
    expect_identical(
      as.integer(igraph::components(graph)$no), length(clusters$sizes)
    )
    ends <- igraph::as_edgelist(graph, names = FALSE)
    expect_equal(
      igraph::E(graph)$correlation, stats::cor(t(x))[ends], tolerance = 1e-12
    )
  }
  write_edges(clusters, "edges.csv")
  back <- read.csv("edges.csv")
  expect_identical(back$from, clusters$edges$from)
  expect_identical(back$from_cluster, back$to_cluster)
})

placed <- function() {
  edges <- test_edges(letters[1:4])
  attr(edges, "vertices") <- data.frame(
    name = letters[1:4], x = c(0, 1, 2, NA), y = c(0, 1, -1, 3),
    color = c("red", "#00ff00", NA, "blue"),
    symbol = c("circle", "diamond", "square", "star"), size = c(1, 2, 1, 1)
  )
  edges$width <- 1:3
  edges$lty <- c("solid", "dashed", "dotted")
  edges
}

test_that("GraphML has places and looks as yEd has them", {
  local_folder()
  edges <- placed()
  write_edges(edges, "edges.graphml")
  lines <- readLines("edges.graphml")
  all <- function(element, name) {
    found <- regmatches(lines, regexpr(paste0("<", element, " [^>]*>"), lines))
    sub(paste0(".* ", name, "=\"([^\"]*)\".*"), "\\1", found)
  }
  expect_identical(
    grep("graphics$", all("key", "yfiles.type"), value = TRUE),
    c("nodegraphics", "edgegraphics")
  )
  # The fourth point has no position.
  at <- as.numeric(all("y:Geometry", "x"))
  down <- as.numeric(all("y:Geometry", "y"))
  size <- as.numeric(all("y:Geometry", "width"))
  expect_identical(size, c(16, 32, 16))
  step <- 100 * sqrt(3) / 2
  expect_equal(at + size / 2, step * 0:2, tolerance = 1e-3)
  expect_equal(down + size / 2, step * c(0, -1, 1), tolerance = 1e-3)
  expect_identical(all("y:Fill", "color"), c("#FF0000", "#00FF00", "#7F7F7F"))
  expect_identical(all("y:Shape", "type"), c("ellipse", "diamond", "rectangle"))
  labels <- regmatches(lines, regexpr("[a-d]</y:NodeLabel>", lines))
  expect_identical(substr(labels, 1, 1), letters[1:3])
  expect_identical(all("y:LineStyle", "type"), c("line", "dashed", "dotted"))
  expect_identical(all("y:LineStyle", "width"), c("1", "2", "3"))
  expect_identical(unique(all("y:Arrows", "target")), "standard")
})

# igraph 2 warns that it leaves out a block of GML, which other programs read.
test_that("igraph reads what has places and looks", {
  local_folder()
  edges <- placed()
  for (format in c("graphml", "gml")) {
    write_edges(edges, "edges", format)
    graph <- withCallingHandlers(
      igraph::read_graph("edges", format),
      warning = function(condition) {
        if (format == "gml") invokeRestart("muffleWarning")
      }
    )
    expect_same_graph(graph, edges)
    expect_equal(igraph::E(graph)$width, 1:3)
    expect_identical(igraph::V(graph)$symbol[[2]], "diamond")
  }
})

test_that("GML has places and looks in blocks of their own", {
  local_folder()
  edges <- placed()
  attr(edges, "vertices")$graphics <- "mine"
  write_edges(edges, "edges.gml")
  lines <- trimws(readLines("edges.gml"))
  expect_identical(sum(lines == "graphics"), 6L)
  first <- which(lines == "graphics")[[2]]
  expect_identical(
    lines[first + c(1:8)],
    c(
      "[", "x 86.6", "y -86.6", "w 32", "h 32", "type \"diamond\"",
      "fill \"#00FF00\"", "outline \"#404040\""
    )
  )
  expect_true("style \"dashed\"" %in% lines)
  graph <- igraph::read_graph("edges.gml", "gml")
  expect_identical(igraph::V(graph)$graphics1[[1]], "mine")
  attr(edges, "vertices")$color <- "no colour"
  expect_messages(write_edges(edges, "other.gml"))
  expect_false(file.exists("other.gml"))
})

test_that("a picture is written as it stands", {
  local_folder()
  skip_if_not_installed("ggraph")
  rlang::local_options(lifecycle_verbosity = "quiet")
  x <- random_matrix(40, 8)
  rownames(x) <- paste0("g", 1:40)
  edges <- knn_graph(x, 3, sign = "absolute")
  picture <- plot_neighbourhood(edges, "g7", steps = 2)
  for (format in c("graphml", "gml")) {
    write_edges(picture, "picture", format)
    graph <- igraph::read_graph("picture", format)
    at <- match(igraph::V(graph)$name, picture$data$label)
    expect_equal(igraph::V(graph)$x, picture$data$x[at])
    expect_equal(igraph::V(graph)$y, picture$data$y[at])
    red_blue <- grDevices::col2rgb(igraph::V(graph)$color)[c(1, 3), ]
    r <- picture$data$value[at]
    expect_true(all((r > 0) == (red_blue[1, ] > red_blue[2, ]), na.rm = TRUE))
    links <- igraph::as_data_frame(graph)
    whole <- undirected_edges(edges)
    key <- function(a, b) paste(pmin(a, b), pmax(a, b))
    row <- match(key(links$from, links$to), key(whole$from, whole$to))
    expect_equal(links$correlation, whole$correlation[row])
    expect_identical(links$lty == "dashed", links$correlation < 0)
    expect_identical(order(links$width), order(abs(links$correlation)))
  }
})

# Makes a graph with everything that is difficult in a file: special characters,
# line ends, characters that XML excludes, and numbers of every size.
hard_graph <- function() {
  names <- c(
    "TGF-\u00df", "a\nb\r\"c\" & <d>", "\U1F600 x", "d\uFFFE\uFFFF\u0007",
    "5e"
  )
  vertices <- data.frame(
    name = names, gene.id = c(100000, NA, 7157, 3845, 1),
    gene_id = 1:5, long = c(3e9, -1, 2, NA, 0),
    score = c(Inf, -Inf, NaN, 0.5, 1), small = c(1e-5, 1e-300, 2, 0.25, 5),
    flag = c(TRUE, FALSE, TRUE, FALSE, TRUE), check.names = FALSE
  )
  vertices[["gene id"]] <- letters[1:5]
  vertices[["\u00df\n'"]] <- letters[1:5]
  edges <- data.frame(
    from = names[1:2], to = names[2:3], distance = c(1, 2e-7), n = c(1L, NA)
  )
  list(edges = edges, vertices = vertices, shown = c(names[1:3], "d   ", "5e"))
}

test_that("GraphML is what its schema asks for", {
  xmllint <- Sys.which("xmllint")
  skip_if(xmllint == "", "xmllint is not installed")
  schema <- test_path("graphml.xsd")
  schema <- normalizePath(schema)
  local_folder()
  hard <- hard_graph()
  valid <- function(edges, ...) {
    write_edges(edges, "edges.graphml", ...)
    said <- suppressWarnings(system2(
      xmllint, c("--noout", "--schema", schema, "edges.graphml"),
      stdout = TRUE, stderr = TRUE
    ))
    expect_identical(said, "edges.graphml validates")
  }
  valid(hard$edges, vertices = hard$vertices)
  valid(test_edges(), vertices = annotation())
  valid(test_edges()[0, ])
  valid(placed())
  valid(no_triples())
  # The validator must reject an invalid file.
  lines <- readLines("edges.graphml")
  writeLines(sub("v_name", "v name", lines), "edges.graphml")
  expect_false(suppressWarnings(system2(
    xmllint, c("--noout", "--schema", schema, "edges.graphml"),
    stdout = FALSE, stderr = FALSE
  )) == 0)
})

test_that("GraphML's numbers are those of Java, of the type that they have", {
  local_folder()
  hard <- hard_graph()
  write_edges(hard$edges, "edges.graphml", vertices = hard$vertices, digits = 3)
  lines <- readLines("edges.graphml", encoding = "UTF-8")
  types <- regmatches(lines, regexpr("attr.type=\"[a-z]*\"", lines))
  expect_identical(
    gsub("attr.type=|\"", "", types),
    c(
      "string", "int", "int", "long", "double", "double", "boolean", "string",
      "string", "string", "double", "int"
    )
  )
  values <- function(key) {
    found <- grep(
      paste0("<data key=\"", key, "\">"), lines, fixed = TRUE, value = TRUE
    )
    gsub(" *<[^>]*>", "", found)
  }
  expect_identical(values("v_gene.id"), c("100000", "7157", "3845", "1"))
  expect_identical(values("v_long"), c("3000000000", "-1", "2", "0"))
  expect_identical(values("v_score"), c("Infinity", "-Infinity", "0.5", "1"))
  expect_identical(values("e_n"), "1")
  graph <- igraph::read_graph("edges.graphml", "graphml")
  expect_identical(igraph::V(graph)$name, hard$shown)
  expect_equal(igraph::V(graph)$score, hard$vertices$score)
  expect_equal(igraph::V(graph)$gene.id, c(100000, NaN, 7157, 3845, 1))
  expect_identical(igraph::V(graph)$`gene id`, letters[1:5])
})

# Reads names and some numbers of a file with NetworkX, one line for each point.
read_by_networkx <- function(python, file, format) {
  code <- c(
    "import sys",
    "import networkx",
    "read = getattr(networkx, 'read_' + sys.argv[2])",
    "graph = read(sys.argv[1])",
    "for name, data in graph.nodes(data=True):",
    "    name = data['name']",
    "    codes = ' '.join(str(ord(letter)) for letter in name)",
    "    print(codes + ';' + repr(data['small']) + ';' + repr(data['score']))",
    "print(graph.number_of_edges())"
  )
  writeLines(code, "read.py")
  suppressWarnings(system2(
    python, c("read.py", file, format), stdout = TRUE, stderr = TRUE
  ))
}

test_that("NetworkX reads what is written", {
  # Debian's NetworkX is available only to Debian's Python.
  pythons <- Filter(nzchar, Sys.which(c("python3", "/usr/bin/python3")))
  python <- Find(function(python) {
    system2(
      python, c("-c", shQuote("import networkx")), stdout = FALSE,
      stderr = FALSE
    ) == 0
  }, pythons)
  skip_if(is.null(python), "NetworkX is not installed")
  local_folder()
  hard <- hard_graph()
  hard$vertices$score[[3]] <- 2
  for (format in c("graphml", "gml")) {
    write_edges(hard$edges, "edges", format, vertices = hard$vertices)
    lines <- read_by_networkx(python, "edges", format)
    expect_identical(lines[[6]], "2")
    parts <- strsplit(lines[1:5], ";", fixed = TRUE)
    names <- vapply(parts, function(part) {
      intToUtf8(as.integer(strsplit(part[[1]], " ")[[1]]))
    }, "")
    expect_identical(names, hard$shown)
    numbers <- as.numeric(vapply(parts, `[[`, "", 2))
    expect_identical(numbers, hard$vertices$small)
    if (format == "graphml") {
      scores <- vapply(parts, `[[`, "", 3)
      expect_identical(scores, c("inf", "-inf", "2.0", "0.5", "1.0"))
    }
  }
  expect_true(all(readBin("edges", "raw", 1e5) < as.raw(128)))
})

test_that("ids that are numbers are written and matched in full", {
  local_folder()
  ids <- c(100000, 7157, 2e15)
  x <- random_matrix(3, 6)
  rownames(x) <- c("100000", "7157", "2000000000000000")
  edges <- knn_graph(x, 1)
  genes <- data.frame(name = ids, symbol = c("A", "B", "C"), entrez = ids)
  write_edges(edges, "edges.csv", vertices = genes, digits = 3)
  back <- read.csv("edges.csv", colClasses = "character")
  expect_identical(back$from, rownames(x))
  expect_identical(back$from_symbol, genes$symbol)
  expect_identical(back$from_entrez, rownames(x))
  numbered <- data.frame(from = ids[1:2], to = ids[2:3])
  write_edges(numbered, "edges.csv", digits = 3)
  back <- read.csv("edges.csv", colClasses = "character")
  expect_identical(back$to, rownames(x)[2:3])
  for (vertices in list(ids, genes)) {
    graph <- as_igraph(numbered, vertices = vertices)
    expect_identical(igraph::V(graph)$name, rownames(x))
  }
  for (format in c("graphml", "gml")) {
    write_edges(numbered, "edges", format, vertices = genes, digits = 3)
    graph <- igraph::read_graph("edges", format)
    expect_identical(igraph::V(graph)$name, rownames(x))
  }
})

test_that("an igraph graph has its own writer", {
  skip_if_not_installed("igraph")
  ring <- igraph::make_ring(5)
  file <- withr::local_tempfile(fileext = ".csv")
  expect_error(write_edges(ring, file), "igraph::write_graph")
})

test_that("a column of numbers that are all missing is empty text in GML", {
  local_folder()
  edges <- test_edges(letters[1:4])
  edges$p <- NA_real_
  edges$count <- NA_integer_
  edges$flag <- NA
  vertices <- data.frame(name = letters[1:4], score = NaN, number = NA_integer_)
  write_edges(edges, "edges.gml", vertices = vertices)
  lines <- trimws(readLines("edges.gml"))
  for (name in c("p", "count", "flag", "score", "number")) {
    values <- unique(grep(paste0("^", name, " "), lines, value = TRUE))
    expect_identical(values, paste(name, "\"\""))
  }
})

test_that("names of columns hold what GraphML can, and stay different", {
  local_folder()
  edges <- test_edges(letters[1:4])
  edges[["p\001q"]] <- 1:3
  edges[["p q"]] <- 4:6
  vertices <- data.frame(name = letters[1:4])
  vertices[["a\ufffeb"]] <- 1:4
  vertices[["c\uffff\u001fd"]] <- 5:8
  write_edges(edges, "edges.graphml", vertices = vertices)
  graph <- igraph::read_graph("edges.graphml", "graphml")
  expect_identical(igraph::vertex_attr(graph, "a b"), c(1, 2, 3, 4))
  expect_identical(igraph::vertex_attr(graph, "c  d"), c(5, 6, 7, 8))
  expect_identical(igraph::edge_attr(graph, "p q"), c(1, 2, 3))
  expect_identical(igraph::edge_attr(graph, "p q1"), c(4, 5, 6))
})

test_that("a column that would be lost is an error", {
  local_folder()
  edges <- test_edges(letters[1:4])
  vertices <- data.frame(name = letters[1:4], L = 1:4, L = 5:8,
                         check.names = FALSE)
  expect_refused <- function(code, words) {
    expect_wrong(code, words)
    expect_identical(list.files(), character())
  }
  for (format in c("csv", "graphml", "gml")) {
    expect_refused(
      write_edges(edges, "edges", format, vertices = vertices),
      "columns of `vertices` must have different names"
    )
    for (name in c("", NA)) {
      other <- edges
      other$more <- 1:3
      names(other)[[6]] <- name
      expect_refused(write_edges(other, "edges", format), "Column 6 has none")
    }
  }
  expect_refused(as_igraph(edges, vertices = vertices), "different names")
  twice <- edges
  twice$more <- 1:3
  names(twice)[[6]] <- "rank"
  for (format in c("graphml", "gml")) {
    expect_refused(write_edges(twice, "edges", format), "\"rank\"")
  }
  expect_refused(as_igraph(twice), "\"rank\"")
  edges$from_L <- 1:3
  expect_refused(
    write_edges(edges, "edges.csv", vertices = vertices[1:2]),
    "`from_L` would be there twice"
  )
  write_edges(twice, "edges.csv")
  expect_identical(sum(names(read.csv("edges.csv", check.names = FALSE)) ==
                         "rank"), 2L)
})

test_that("names of columns that are no UTF-8 are an error, with a cure", {
  local_folder()
  edges <- test_edges(letters[1:4])
  vertices <- data.frame(name = letters[1:4], L = 1:4)
  names(vertices)[[2]] <- "\xfc"
  for (format in c("csv", "graphml", "gml")) {
    expect_wrong(
      write_edges(edges, "edges", format, vertices = vertices),
      "iconv\\(colnames\\(vertices\\), "
    )
  }
})

test_that("hints on text that is no UTF-8 name the column", {
  local_folder()
  edges <- test_edges(letters[1:4])
  bad <- c("\xfc", "b", "c", "d")
  vertices <- data.frame(name = letters[1:4], L = bad)
  of_edges <- edges
  of_edges[["L M"]] <- factor(bad[1:3], bad[1:3])
  for (format in c("csv", "graphml", "gml")) {
    expect_wrong(
      write_edges(edges, "edges", format, vertices = vertices),
      "iconv(vertices$L, ", fixed = TRUE
    )
    expect_error(
      write_edges(of_edges, "edges", format),
      "iconv(levels(edges[[\"L M\"]]), ", fixed = TRUE
    )
  }
})

test_that("raw bytes are written as text", {
  local_folder()
  edges <- test_edges(letters[1:4])
  edges$byte <- as.raw(c(1, 255, 10))
  for (format in c("graphml", "gml")) {
    write_edges(edges, "edges", format)
    graph <- igraph::read_graph("edges", format)
    expect_identical(igraph::E(graph)$byte, c("01", "ff", "0a"))
  }
  write_edges(edges, "edges.csv")
  expect_identical(
    sub(".*,", "", readLines("edges.csv")[-1]),
    c("\"01\"", "\"ff\"", "\"0a\"")
  )
})

test_that("whole numbers beyond 2^53 are written in full", {
  local_folder()
  ids <- 2^53 + c(2, 4, 1e18 - 2^53)
  text <- c("9007199254740994", "9007199254740996", "1000000000000000000")
  edges <- data.frame(from = ids[1:2], to = ids[2:3])
  write_edges(edges, "edges.csv")
  back <- read.csv("edges.csv", colClasses = "character")
  expect_identical(back$from, text[1:2])
  expect_identical(back$to, text[2:3])
  vertices <- data.frame(name = ids, id = ids)
  write_edges(edges, "edges.graphml", vertices = vertices)
  lines <- readLines("edges.graphml")
  for (word in text) {
    expect_length(grep(paste0("v_name.*>", word, "<"), lines), 1)
    expect_length(grep(paste0("v_id.*>", word, "<"), lines), 1)
  }
})

test_that("a compressed file's extension may be in capitals", {
  local_folder()
  write_edges(test_edges(letters[1:4]), "edges.csv.GZ")
  expect_identical(nrow(read.csv(gzfile("edges.csv.GZ"))), 3L)
})
