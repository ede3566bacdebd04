# Draws the pictures of README.md into man/figures. From the repository's root:
#
#   Rscript tools/draw-readme.R         # both; needs the installed package
#   Rscript tools/draw-readme.R chart   # only the chart of times
#
# README-cells.png: seconds and recall of neighbour searches of simulated cells,
#   from inst/extdata/bench/cells.csv, which inst/bench/cells.R writes.
# README-graph.png: the gene graph of a leukaemia study (Bioconductor's ALL) and
#   the names of its clusters.

library(ggplot2)

# --- The chart of times -------------------------------------------------------

num_cells <- 100000
file <- "man/figures/README-cells.png"
times <- utils::read.csv("inst/extdata/bench/cells.csv")
times <- times[
  times$n == num_cells & times$k == 15 & times$closeness == 1 &
    !grepl("GPU|PyTorch", times$method),
]
times <- times[order(times$seconds), ]
times$method <- factor(times$method, rev(times$method))
times$kind <- ifelse(times$exact, "exact", "approximate")
times$text <- paste0(
  format(round(times$seconds, 1), nsmall = 1, trim = TRUE), " s, ",
  ifelse(
    times$exact, "exact",
    sprintf("finds %.0f%% of the neighbours", 100 * times$recall)
  )
)
chart <- ggplot(times, aes(seconds, method)) +
  geom_col(aes(fill = kind), width = 0.7) +
  geom_text(aes(label = text), hjust = 0, nudge_x = 0.3, size = 3.3) +
  scale_fill_manual(
    values = c(exact = "#1F5582", approximate = "grey72"), name = NULL,
    breaks = c("exact", "approximate")
  ) +
  scale_x_continuous(
    limits = c(0, 1.75 * max(times$seconds)), expand = expansion(c(0, 0))
  ) +
  labs(
    x = NULL, y = NULL,
    title = paste(
      "Seconds to find the 15 nearest neighbours of each of",
      format(num_cells, big.mark = ",", scientific = FALSE), "cells"
    ),
    subtitle = "Simulated cells, 50 principal components, two CPU cores"
  ) +
  theme_minimal(base_size = 11) +
  theme(
    plot.title.position = "plot", plot.title = element_text(size = 12),
    panel.grid = element_blank(), axis.text.x = element_blank(),
    axis.text.y = element_text(colour = "black", size = 10),
    legend.position = "none", plot.margin = margin(6, 6, 0, 6)
  )
ggsave(file, chart, width = 7.6, height = 3.1, dpi = 110, bg = "white")
message(file, ": ", round(file.size(file) / 1024), " KiB")
if ("chart" %in% commandArgs(TRUE)) quit()

# --- The gene graph -----------------------------------------------------------

suppressPackageStartupMessages(library(fsknn))
options(lifecycle_verbosity = "quiet")

store <- new.env()
utils::data("ALL", package = "ALL", envir = store)
utils::data("hgu95Asym", package = "annotate", envir = store)
x <- Biobase::exprs(store$ALL)
symbols <- vapply(mget(rownames(x), envir = store$hgu95Asym), `[[`, "", 1)

# Probes that vary, among each other's 20 nearest with r of at least 0.6, and of
# their clusters those of eight probes and more.
x <- x[apply(x, 1, stats::sd) >= 0.6, ]
edges <- knn_graph(x, k = 20)
graph <- as_igraph(
  edges[edges$correlation >= 0.6, ], weight = "similarity", mode = "mutual"
)
set.seed(1)
cluster <- igraph::membership(igraph::cluster_leiden(
  graph, objective_function = "modularity", n_iterations = 10
))
large <- table(cluster)[as.character(cluster)] >= 8
graph <- igraph::induced_subgraph(graph, which(large))
cluster <- match(cluster[large], unique(cluster[large]))
symbol <- symbols[igraph::V(graph)$name]

# A cluster has a name where it holds three of its markers.
markers <- list(
  "B cells, HLA" = c("HLA-DRA", "CD74", "CD19", "CD79A", "CD79B", "BLNK"),
  "T cells" = c("CD3D", "CD3G", "CD3E", "CD3Z", "LCK", "LAT", "ZAP70"),
  "ribosome" = c("RPL18", "RPL24", "RPL11", "RPS5", "RPS10", "RPS13"),
  "cell division" = c("CCNB1", "CCNB2", "TOP2A", "BUB1B", "MAD2L1", "MCM6"),
  "early response" = c("NR4A1", "NR4A2", "JUNB", "ZFP36", "FOSL2"),
  "myeloid cells" = c("S100A8", "S100A9", "FCN1", "MNDA", "CD14"),
  "red blood cells" = c("GYPA", "SLC4A1", "ALAS2", "EPB42", "HBD"),
  "interferon" = c("MX1", "ISG15", "STAT1", "OAS1", "IFIT1"),
  "histones" = c("H2BFG", "H2BFL", "H2AFI", "H1F2", "H4FD"),
  "immunoglobulins" = c("IGHM", "IGKC", "IGL@", "IGHG3"),
  "metallothioneins" = c("MT1F", "MT1B", "MT1H", "MT1E"),
  "mitochondria" = c("COX5B", "ATP5J2", "UQCRC1", "PSMB3"),
  "E2A-PBX1" = c("PBX1", "ROR1", "DUSP4", "KCNJ12"),
  "HOXA, MLL" = c("HOXA9", "HOXA5", "HOXA4", "MEIS1"),
  "heat shock" = c("HSPA6", "HSPA1A", "HSPA1B", "DNAJB1"),
  "proteasome" = c("PSMD11", "PSMB7", "HSPCB", "HSPA8", "YWHAE"),
  "Y chromosome" = c("DBY", "RPS4Y", "SMCY", "USP9Y")
)
held <- vapply(markers, function(genes) {
  tabulate(
    unlist(lapply(genes, function(gene) unique(cluster[symbol %in% gene]))),
    max(cluster)
  )
}, integer(max(cluster)))
best <- apply(held, 2, which.max)
named <- best[apply(held, 2, max) >= 3]
name <- names(named)[match(cluster, named)]

# Only these, each cluster by itself.
graph <- igraph::induced_subgraph(graph, which(!is.na(name)))
name <- name[!is.na(name)]
ends <- igraph::as_edgelist(graph, names = FALSE)
graph <- igraph::delete_edges(
  graph, which(name[ends[, 1]] != name[ends[, 2]])
)
parts <- igraph::components(graph)
kept <- which(parts$csize[parts$membership] >= 6)
graph <- igraph::induced_subgraph(graph, kept)
name <- name[kept]

# Each cluster in a circle of its size, large ones in the upper row.
set.seed(4)
sizes <- sort(table(name), decreasing = TRUE)
radius <- 0.75 * sqrt(as.numeric(sizes)) + 1.2
room <- pmax(radius, 4.6)
row <- ifelse(sizes >= 60, 1, 2)
place <- matrix(0, length(name), 2)
labels <- data.frame(name = names(sizes), x = 0, y = 0)
for (one in 1:2) {
  inside <- which(row == one)
  gap <- (76 - 2 * sum(room[inside])) / length(inside)
  middle <- cumsum(2 * room[inside] + gap) - room[inside]
  height <- c(12, -11)[[one]]
  for (i in seq_along(inside)) {
    members <- which(name == names(sizes)[[inside[[i]]]])
    own <- igraph::layout_with_kk(igraph::induced_subgraph(graph, members))
    own <- sweep(own, 2, (apply(own, 2, max) + apply(own, 2, min)) / 2)
    own <- own / max(sqrt(rowSums(own^2))) * radius[[inside[[i]]]]
    place[members, ] <- sweep(own, 2, c(middle[[i]], height), "+")
    labels$x[[inside[[i]]]] <- middle[[i]]
    labels$y[[inside[[i]]]] <- height - max(radius[inside]) - 1
  }
}
labels$text <- paste0(labels$name, "\n", sizes, " probes")
ends <- igraph::as_edgelist(graph, names = FALSE)
lines <- data.frame(
  x = place[ends[, 1], 1], y = place[ends[, 1], 2],
  xend = place[ends[, 2], 1], yend = place[ends[, 2], 2]
)
points <- data.frame(x = place[, 1], y = place[, 2], name)
colours <- grDevices::hcl.colors(length(named), "Dark 3")
names(colours) <- names(named)

picture <- ggplot(points, aes(x, y)) +
  geom_segment(
    aes(xend = xend, yend = yend), lines, colour = "grey75", linewidth = 0.15
  ) +
  geom_point(aes(colour = name), size = 0.8) +
  geom_text(
    aes(label = text), labels, size = 3.2, lineheight = 0.9, vjust = 1,
    colour = "grey20"
  ) +
  scale_colour_manual(values = colours, na.value = "grey55", guide = "none") +
  coord_equal(ylim = c(-22, 23), clip = "off") +
  theme_void()
file <- "man/figures/README-graph.png"
ggsave(file, picture, width = 8.4, height = 4.7, dpi = 110, bg = "white")
message(
  file, ": ", nrow(points), " probes, ", round(file.size(file) / 1024), " KiB"
)
