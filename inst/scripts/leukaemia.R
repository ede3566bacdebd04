# The main job on real data: the Pearson graph of all probes of a leukaemia data
# set, its clusters, and files to look at.
#
#   Rscript leukaemia.R [folder]
#
# From a clone, `make demo` installs what this needs and runs it.

needed <- c(
  "fsknn", "ALL", "annotate", "Biobase", "igraph", "ggplot2", "ggraph"
)
place <- vapply(needed, function(name) system.file(package = name), "")
if (!all(nzchar(place))) {
  absent <- paste(needed[!nzchar(place)], collapse = ", ")
  stop("These R packages are needed: ", absent, call. = FALSE)
}
suppressPackageStartupMessages(library(fsknn))
# ggraph 2.1.0 and ggplot2 3.4 do not agree on a name, which is no news here.
options(lifecycle_verbosity = "quiet", cli.progress_show_after = 0)

started <- proc.time()[["elapsed"]]
seconds_since <- function(start) {
  sprintf("%.2f seconds", proc.time()[["elapsed"]] - start)
}
big <- function(number) format(number, big.mark = ",", trim = TRUE)

# All to standard output, so that `make demo > log` keeps the order.
say <- function(...) cli::cat_line(strwrap(paste0(...), width = 79))
heading <- function(text) {
  cli::cat_line()
  cli::cat_rule(left = cli::style_bold(text), width = 79)
}
say_table <- function(table) {
  columns <- Map(function(name, column) {
    formatC(
      c(name, format(column)), width = max(nchar(c(name, format(column)))),
      flag = if (is.numeric(column)) "" else "-"
    )
  }, names(table), table)
  lines <- trimws(do.call(paste, c(columns, sep = "  ")), "right")
  cli::cat_line(cli::col_grey(lines[[1]]))
  cli::cat_line(lines[-1])
}

# --- data --------------------------------------------------------------------

read_leukaemia <- function() {
  store <- new.env()
  utils::data("ALL", package = "ALL", envir = store)
  Biobase::exprs(store$ALL)
}

# The gene symbols of their time; "" for the probes that had none.
read_symbols <- function(probes) {
  store <- new.env()
  utils::data("hgu95Asym", package = "annotate", envir = store)
  symbols <- vapply(mget(probes, envir = store$hgu95Asym), `[[`, "", 1)
  ifelse(is.na(symbols) | symbols == "NA", "", symbols)
}

# --- clusters ----------------------------------------------------------------

# A cluster gets a name where it holds at least three of its markers.
markers <- list(
  "HLA, B cells" = c("HLA-DRA", "CD74", "CD19", "CD79A", "CD79B", "BLNK"),
  "T cells" = c("CD3D", "CD3G", "CD3E", "CD3Z", "LCK", "LAT", "ZAP70"),
  "ribosome" = c("RPL18", "RPL24", "RPL11", "RPS5", "RPS10", "RPS13"),
  "cell division" = c("CCNB1", "CCNB2", "TOP2A", "BUB1B", "MAD2L1", "MCM6"),
  "mitochondria, proteasome" = c("COX5B", "ATP5J2", "UQCRC1", "PSMB3"),
  "immediate early genes" = c("NR4A1", "NR4A2", "JUNB", "ZFP36", "FOSL2"),
  "myeloid cells, NK cells" = c("S100A8", "S100A9", "FCN1", "GNLY", "GZMB"),
  "red blood cells" = c("GYPA", "SLC4A1", "ALAS2", "EPB42", "HBD"),
  "interferon response" = c("MX1", "ISG15", "STAT1", "OAS1", "IFIT1"),
  "histones" = c("H2BFG", "H2BFL", "H2AFI", "H1F2", "H4FD"),
  "E2A/PBX1 leukaemia" = c("PBX1", "ROR1", "AOX1", "KIAA0802"),
  "MLL leukaemia, HOXA" = c("HOXA9", "HOXA5", "HOXA4", "MEIS1"),
  "immunoglobulins" = c("IGHM", "IGKC", "IGL@", "IGHG3"),
  "metallothioneins" = c("MT1F", "MT1B", "MT1H", "MT1E"),
  "heat shock" = c("HSPA6", "HSPA1A", "HSPA1B", "DNAJB1"),
  "Y chromosome" = c("DBY", "RPS4Y", "SMCY", "USP9Y")
)

# Clusters of probes that are among each other's neighbours with r of at least
# 0.6, largest first; probes in none of five or more have NA.
find_clusters <- function(edges) {
  close <- edges[edges$correlation >= 0.6, ]
  graph <- as_igraph(close, weight = "similarity", mode = "mutual")
  set.seed(1) # Leiden's algorithm draws random numbers
  found <- igraph::cluster_leiden(
    graph, objective_function = "modularity", n_iterations = 10
  )
  member <- as.integer(igraph::membership(found))
  size <- tabulate(member)
  number <- match(seq_along(size), order(-size))
  number[size < 5] <- NA
  list(graph = graph, number = number[member])
}

name_clusters <- function(number, symbols) {
  name <- rep("", max(number, na.rm = TRUE))
  for (marker in names(markers)) {
    held <- number[!is.na(number) & symbols %in% markers[[marker]]]
    genes <- unique(data.frame(
      held, symbol = symbols[!is.na(number) & symbols %in% markers[[marker]]]
    ))
    count <- tabulate(genes$held, length(name))
    if (max(count) >= 3) {
      name[[which.max(count)]] <- marker
    }
  }
  name
}

describe_clusters <- function(clusters, x, symbols) {
  spread <- apply(x, 1, stats::sd)
  rows <- lapply(seq_along(clusters$name), function(cluster) {
    members <- which(clusters$number == cluster)
    inside <- igraph::induced_subgraph(clusters$graph, members)
    genes <- symbols[members[order(-igraph::strength(inside))]]
    data.frame(
      cluster = cluster,
      probes = length(members),
      r = round(stats::median(igraph::E(inside)$correlation), 2),
      sd = round(stats::median(spread[members]), 2),
      name = clusters$name[[cluster]],
      genes = paste(utils::head(unique(genes[genes != ""]), 5), collapse = " ")
    )
  })
  do.call(rbind, rows)
}

# --- picture -----------------------------------------------------------------

# A gene and the genes nearest to it within two steps, the shortest way by
# distance first. The probes of a gene become one point.
neighbourhood <- function(edges, centre, vertices, size) {
  graph <- as_igraph(edges, mode = "union", vertices = vertices)
  near <- as.integer(igraph::ego(graph, 2, centre)[[1]])
  way <- igraph::distances(
    graph, centre, near, weights = igraph::E(graph)$distance
  )
  near <- near[order(way)]
  near <- near[vertices$symbol[near] != ""]
  genes <- utils::head(unique(vertices$symbol[near]), size + 1)
  graph <- igraph::induced_subgraph(
    graph, near[vertices$symbol[near] %in% genes]
  )
  graph <- igraph::contract(
    graph, match(igraph::V(graph)$symbol, genes), vertex.attr.comb = "first"
  )
  igraph::simplify(
    graph, edge.attr.comb = list(correlation = "max", "ignore")
  )
}

# The points of a picture that are in no cluster of known meaning.
with_other <- function(vertices) {
  vertices$cluster_name[vertices$cluster_name == ""] <- "other"
  vertices
}

# A graph of genes as GraphML. Its points are named for their gene.
write_neighbourhood <- function(graph, file) {
  igraph::V(graph)$probe <- igraph::V(graph)$name
  igraph::V(graph)$name <- igraph::V(graph)$symbol
  igraph::V(graph)$label <- igraph::V(graph)$symbol
  igraph::write_graph(graph, file, format = "graphml")
}

draw_neighbourhood <- function(graph, gene, file, title, subtitle) {
  group <- igraph::V(graph)$cluster_name
  count <- sort(table(group[group != "other"]), decreasing = TRUE)
  igraph::V(graph)$is_centre <- igraph::V(graph)$symbol == gene
  colours <- c(
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7B3294"
  )
  colours <- c(rep_len(colours, length(count)), "grey60")
  names(colours) <- c(names(count), "other")
  picture <- ggraph::ggraph(graph, layout = "stress") +
    ggraph::geom_edge_link(
      ggplot2::aes(edge_width = correlation, edge_alpha = correlation),
      edge_colour = "grey40"
    ) +
    ggraph::geom_node_point(
      ggplot2::aes(fill = cluster_name, size = is_centre), shape = 21,
      colour = "white", stroke = 0.8
    ) +
    ggraph::geom_node_text(
      ggplot2::aes(
        label = ifelse(is_centre, " ", symbol),
        point.size = I(ifelse(is_centre, 14, 4))
      ),
      repel = TRUE, size = 3.7, colour = "grey10", bg.colour = "white",
      bg.r = 0.15, box.padding = 0.2, max.overlaps = Inf,
      min.segment.length = 1, segment.colour = "grey50", max.time = Inf,
      max.iter = 20000, seed = 2
    ) +
    ggraph::geom_node_text(
      ggplot2::aes(label = symbol, filter = is_centre), size = 4,
      fontface = "bold", colour = "white"
    ) +
    ggraph::scale_edge_width(range = c(0.2, 1.8), name = "Correlation r") +
    ggraph::scale_edge_alpha(range = c(0.15, 0.75), name = "Correlation r") +
    ggplot2::scale_fill_manual(
      values = colours, limits = names(colours), name = "Cluster"
    ) +
    ggplot2::scale_size_manual(values = c(4.5, 14), guide = "none") +
    ggplot2::guides(
      fill = ggplot2::guide_legend(override.aes = list(size = 4.5), order = 1)
    ) +
    ggplot2::coord_cartesian(clip = "off") +
    ggplot2::labs(title = title, subtitle = subtitle) +
    ggraph::theme_graph(
      base_family = "sans", background = "white", base_size = 13,
      title_size = 20,
      subtitle_size = 13.5, plot_margin = ggplot2::margin(16, 16, 16, 16)
    )
  ggplot2::ggsave(
    file, picture, width = 12.5, height = 9.5, dpi = 160, bg = "white"
  )
}

# --- the job -----------------------------------------------------------------

main <- function(folder) {
  dir.create(folder, showWarnings = FALSE, recursive = TRUE)
  k <- 20

  heading("Data")
  x <- read_leukaemia()
  symbols <- read_symbols(rownames(x))
  say(
    big(nrow(x)), " probes (rows) of ", ncol(x), " patients with acute ",
    "lymphoblastic leukaemia (columns): Bioconductor's ALL, on Affymetrix's ",
    "HG-U95Av2 array."
  )

  say(
    "Gene symbols are as of the array's time: its DBY, say, is today's DDX3Y."
  )

  heading("Graph")
  plan <- knn_plan(x, k = k)
  start <- proc.time()[["elapsed"]]
  edges <- knn_graph(x, k = k, metric = "pearson", progress = TRUE)
  say(
    "The ", k, " nearest neighbours of each probe by Pearson correlation, ",
    "exact: ", big(nrow(edges)), " edges in ", seconds_since(start), "."
  )
  cli::cat_line()
  first <- as.data.frame(utils::head(edges, 6))
  say_table(data.frame(
    from = first$from, gene = symbols[first$from], to = first$to,
    neighbour = symbols[first$to], rank = first$rank,
    distance = round(first$distance, 6),
    correlation = round(first$correlation, 6)
  ))
  say("... and ", big(nrow(edges) - nrow(first)), " more.")
  cli::cat_line()
  for (probe in c("38319_at", "37039_at", "904_s_at", "32466_at")) {
    # Other genes, each once: a gene may have several probes.
    near <- unique(symbols[edges$to[edges$from == probe]])
    near <- setdiff(near, c("", symbols[[probe]]))
    cli::cat_line(
      "Nearest to ", format(paste0(symbols[[probe]], ":"), width = 9),
      paste(utils::head(near, 8), collapse = " ")
    )
  }

  heading("Clusters")
  start <- proc.time()[["elapsed"]]
  clusters <- find_clusters(edges)
  clusters$name <- name_clusters(clusters$number, symbols)
  table <- describe_clusters(clusters, x, symbols)
  say(
    big(sum(!is.na(clusters$number))), " probes in ", nrow(table), " clusters ",
    "(Leiden, on neighbours both ways with r >= 0.6), found in ",
    seconds_since(start), ". The largest, and small ones of known meaning:"
  )
  cli::cat_line()
  say_table(table[table$cluster <= 16 | table$name != "", ])
  cli::cat_line()
  say(
    "r, sd: median correlation of the edges, and of the probes' standard ",
    "deviation (log2); clusters of low sd are mostly genes that these cells ",
    "do not use. name: from three or more marker genes. genes: the best ",
    "connected."
  )

  heading("Files")
  vertices <- data.frame(
    name = rownames(x),
    symbol = unname(symbols),
    cluster = clusters$number,
    cluster_name = ifelse(
      is.na(clusters$number), "", clusters$name[clusters$number]
    )
  )
  write_to <- function(name, what, write) {
    start <- proc.time()[["elapsed"]]
    file <- file.path(folder, name)
    write(file)
    cli::cat_line(
      format(file, width = 35), format(what, width = 29),
      sprintf("%5.2f MB ", file.size(file) / 1e6), seconds_since(start)
    )
  }
  # What yEd and Cytoscape write beside a point; one without a symbol has the
  # probe's name.
  labelled <- transform(vertices, label = symbol)
  pictured <- neighbourhood(
    edges, "428_s_at", with_other(vertices), size = 40
  )
  as_file <- function(file) write_edges(edges, file, vertices = vertices)
  as_graph <- function(file) write_edges(edges, file, vertices = labelled)
  as_small_graph <- function(file) write_neighbourhood(pictured, file)
  as_picture <- function(file) {
    draw_neighbourhood(
      pictured, "B2M", file,
      title = "B2M (beta-2-microglobulin) and its 40 nearest genes",
      subtitle = paste0(
        "Graph of the k = ", k, " nearest neighbours by Pearson correlation; ",
        "genes within two steps of B2M.\n",
        ncol(x), " patients with acute lymphoblastic leukaemia, ",
        big(nrow(x)), " probes; the probes of a gene are one point."
      )
    )
  }
  write_to("leukaemia.csv", "the edges, as a table", as_file)
  write_to("leukaemia.graphml", "the graph, for Cytoscape", as_graph)
  write_to("neighbourhood.png", "a picture of B2M's neighbours", as_picture)
  write_to("neighbourhood.graphml", "its graph, for yEd too", as_small_graph)

  heading("How the search was made")
  print(plan)
  cli::cat_line()
  say("All done in ", seconds_since(started), ".")
}

arguments <- commandArgs(trailingOnly = TRUE)
main(if (length(arguments) > 0) arguments[[1]] else "demo-output")
