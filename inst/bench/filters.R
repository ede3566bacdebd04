# Which form of the filter is the fastest, does the engine choose it, and how
# many pairs does it let pass on hard data?
#
#   Rscript inst/bench/filters.R cpu|cuda [SECTION ...] [--data=FOLDER]
#     [--share=1] [--rounds=3]
#
# with the package installed (R_LIBS says where). Sections:
#   products     Pearson: products in 8 bits and in 16
#   differences  Manhattan, Chebyshev, Proportional: 8 bits, 16 bits, floats
#   bits         data of 0, 1 and 2: few bits beside other numbers; on a CPU by
#                each instruction set
#   hard         rows far from 0, of one profile, with huge entries; on a GPU
#                the answer is compared with that of the CPU
#   order        CPU: points in order of their sums or lengths, and shuffled
#   parts        GPU: a part of the memory, and four blocks
# All of that backend where none is named. Each form is forced through
# options(fsknn.instruction_set) and compared with the engine's own choice; the
# answers must be identical. Printed are medians of --rounds calls: `seconds` of
# the device, or of two cores' processors (not of the clock) on a CPU; `share`
# of all pairs that the filter took; `exact` pairs a point that were computed in
# double; `redone` rows whose lists overflowed. --share takes a part of the
# points, to try a section. FOLDER has the study's vantveer78_full.rds
# (CONTRIBUTING.md); golub is multtest's, intensities are those of
# Bioconductor's ALL.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

backend <- match.arg(word(1, "cpu"), c("cpu", "cuda"))
on_gpu <- backend == "cuda"
if (on_gpu) need_gpu()
devices <- if (on_gpu) 1
share <- option("share", 1)
rounds <- option("rounds", 3)
data_folder <- option("data")
size <- function(n) pmax(400, round(n * share))
options(width = 160)
set.seed(16)

forms <- c(chosen = "auto", "8 bits" = "auto/8", "16 bits" = "auto/16")
if (on_gpu) forms <- c(forms, floats = "auto/32")

# A graph, or what `search` does with the points; `queries`: their number.
compare <- function(data, x, metric, k = 20, among = forms, search = NULL,
                    queries = NULL) {
  n <- nrow(x)
  if (is.null(search)) {
    search <- function() {
      knn_search(
        x, k, metric, backend = backend, devices = devices, num_threads = 2
      )
    }
  }
  compare_forms(
    data.frame(data, metric, n = n, d = ncol(x), k), c(queries, n)[[1]],
    c(queries * n, n * (n - 1) / 2)[[1]], backend, search, among, rounds
  )
}

available <- function(name, package) {
  if (!requireNamespace(package, quietly = TRUE)) {
    return(NULL)
  }
  utils::data(list = name, package = package, envir = environment())
  get(name)
}
latent <- function(n, d) {
  if (on_gpu) simulated(n, d) / sqrt(32) else factor_rows(n, d, 200)
}
skewed <- function(x) if (on_gpu) exp(x) else 2^x
genotypes <- function(n, d) {
  matrix(as.double(stats::rbinom(n * d, 2, 0.3)), n)
}
intensities <- function() {
  all <- available("ALL", "ALL")
  if (!is.null(all)) unname(Biobase::exprs(all))
}
sizes <- if (on_gpu) c(24158, 1e5, 384126) else c(5000, 10000, 24158)

products <- function() {
  among <- forms[setdiff(names(forms), "floats")]
  for (n in size(sizes)) compare("latent", latent(n, 295), "pearson", 20, among)
  if (on_gpu) {
    return(invisible())
  }
  n <- size(12000)
  heavy <- function(count) stats::rt(count, df = 3)
  few <- factor_rows(n, 128, 10, noise = 0.1)
  centres <- matrix(stats::rnorm(30 * 128), 30)
  clusters <- centres[sample(30, n, replace = TRUE), ] +
    0.5 * matrix(stats::rnorm(n * 128), n)
  compare("20 factors", factor_rows(n, 295, 20), "pearson", 20, among)
  for (metric in c("pearson", "spearman")) {
    compare(
      "20 factors, t", factor_rows(n, 295, 20, draw = heavy), metric, 20, among
    )
  }
  compare("30 clusters", clusters, "pearson", 20, among)
  for (d in c(40, 1000)) {
    x <- factor_rows(n, d, 1, noise = 5)
    compare("independent", x, "pearson", 10, among)
  }
  for (k in c(5, 200)) compare("10 factors", few, "pearson", k, among)
  golub <- available("golub", "multtest")
  for (metric in if (!is.null(golub)) c("pearson", "cosine")) {
    compare("golub", golub, metric, 20, among)
  }
  if (!is.null(data_folder)) {
    arrays <- study_rows(data_folder, "vantveer78_full.rds")
    compare("breast cancer", arrays, "pearson", 20, among)
    compare("breast cancer", arrays, "spearman", 5, among)
  }
}

# On a log scale and off it; on a CPU also arrays, each gene with a level and a
# spread of its own, whole numbers and one huge entry.
differences <- function() {
  for (n in size(if (on_gpu) sizes else sizes[-1])) {
    x <- latent(n, 295)
    compare("latent", x, "manhattan")
    for (metric in c("proportional", "chebyshev")) {
      compare("latent, log scale", x - min(x), metric)
    }
    for (metric in c("manhattan", "proportional")) {
      compare("latent, skewed", skewed(x), metric)
    }
  }
  if (on_gpu) {
    # The pairs above the similarity that 1e-5 of all reach.
    x <- latent(size(1e5), 295)
    for (data in c("log scale", "skewed")) {
      y <- if (data == "skewed") skewed(x) else x - min(x)
      some <- y[sample(nrow(y), min(nrow(y), 3000)), ]
      near <- sort(
        knn_search(some, 100, "proportional", backend = "cpu")$distance
      )
      least <- 1 - near[[ceiling(1e-5 * nrow(some)^2)]]
      compare(
        paste("pairs,", data), y, "proportional", NA, forms,
        function() {
          threshold_graph(
            y, least, "proportional", backend = backend, devices = devices
          )
        }
      )
    }
    return(invisible())
  }
  n <- size(12625)
  level <- 3 + stats::rgamma(n, 3, 0.8)
  spread <- 0.15 + stats::rgamma(n, 2, 6)
  array <- pmax(level + spread * factor_rows(n, 128, 20, noise = 1), 0.1)
  outlier <- replace(factor_rows(size(10000), 295, 200), 5, 1e6)
  for (metric in c("manhattan", "proportional")) {
    compare("array, log scale", array, metric)
    compare("array", 2^array, metric)
    compare("genotypes", genotypes(size(10000), 200), metric)
  }
  compare("one huge entry", outlier, "manhattan")
}

bits <- function() {
  n <- size(if (on_gpu) 1e5 else 30000)
  x <- matrix(as.double(stats::runif(n * 1024) < 0.1), n)
  x[cbind(seq_len(n), sample(1024, n, replace = TRUE))] <- 1
  if (!on_gpu) {
    # The text of the backend begins with them, the widest last.
    sets <- strsplit(sub(";.*", "", knn_backends()$detail[[1]]), ", ")[[1]]
    names(sets) <- sets
    compare("0 and 1", x, "sorensen", 20, rev(sets))
  }
  # A hundred times 0 and 1 has the same distances, and is filtered as other
  # numbers are.
  few <- compare("0 and 1", x, "sorensen", 20, forms["chosen"])
  other <- compare("0 and 100", 100 * x, "proportional", 20, forms["chosen"])
  parts <- c("index", "distance")
  stopifnot(identical(unclass(few)[parts], unclass(other)[parts]))
  for (metric in c("euclidean", "cosine", "pearson")) {
    compare("0 and 1", x, metric, 20, forms[c("chosen", "16 bits")])
  }
  x <- genotypes(n, 1000)
  for (metric in c("proportional", "manhattan")) {
    few <- compare("0, 1, 2", x, metric, 20, forms["chosen"])
    other <- compare("0, 100, 200", 100 * x, metric, 20, forms["chosen"])
    stopifnot(identical(few$index, other$index))
  }
}

hard <- function() {
  n <- size(30000)
  d <- 130
  plain <- matrix(stats::rnorm(n * d), n)
  profile <- rep(5 * stats::rnorm(d), each = n)
  entries <- function(count, value) {
    replace(plain, sample(length(plain), count), value)
  }
  spread_rows <- seq(1, n, 11)
  at <- cbind(spread_rows, rep_len(seq_len(d), length(spread_rows)))
  column <- plain
  column[, 3] <- column[, 3] * 1e8
  shifted <- plain + 1e6
  shifted[seq(1, n, 100), ] <- plain[seq(1, n, 100), ]
  cases <- list(
    cosine = list(
      plain = plain, "shifted by 10" = plain + 10,
      "shifted by 1e3" = plain + 1e3, "shifted by 1e6" = plain + 1e6,
      "shifted by 1e6, 1% not" = shifted,
      "spread 1e-3 about 1e4" = 1e4 + 1e-3 * plain
    ),
    pearson = list(
      plain = plain, "a profile" = plain + profile,
      "a profile, noise 1e-3" = 1e-3 * plain + profile
    ),
    euclidean = list(
      plain = plain, "shifted by 1e6" = plain + 1e6,
      "one entry at 1e12" = entries(1, 1e12),
      "one entry at 1e30" = entries(1, 1e30),
      "1% of rows at 1e8" = entries(n / 100, 1e8),
      "a column by 1e8" = column,
      "1 in 11 rows at 1e9" = replace(plain, at, 1e9)
    ),
    inner_product = list("1 in 11 rows at 1e9" = replace(plain, at, 1e9))
  )
  for (metric in names(cases)) {
    for (data in names(cases[[metric]])) {
      x <- cases[[metric]][[data]]
      found <- compare(data, x, metric, among = forms["chosen"])
      if (on_gpu) {
        on_cpu <- knn_search(x, 20, metric, backend = "cpu")
        stopifnot("The CPU's answer differs." = identical(found, on_cpu))
      }
    }
  }
}

# Graphs, 2,000 of the points as queries, and all pairs within the median
# distance of the fifth neighbours. Log ratios have nothing to win by their
# sums.
order_of_points <- function() {
  ways <- paste0("auto/", c(
    "scattered", "16/sorted", "16/scattered", "8/sorted", "8/scattered"
  ))
  names(ways) <- sub("auto/", "", ways)
  ways <- c(forms["chosen"], ways)
  x <- intensities()
  if (is.null(x)) x <- 7 + 2 * factor_rows(size(12625), 128, 20)
  for (metric in c("manhattan", "proportional", "euclidean")) {
    compare("intensities, log scale", x, metric, 20, ways)
    compare("intensities", 2^x, metric, 20, ways)
    query <- x[round(seq(1, nrow(x), length.out = size(2000))), ]
    compare("queries", x, metric, 20, ways, function() {
      knn_query(x, query, 20, metric, backend = "cpu", num_threads = 2)
    }, nrow(query))
    near <- knn_search(x, 5, metric, backend = "cpu")$distance[, 5]
    compare("within a distance", x, metric, NA, ways, function() {
      within_search(
        x, stats::median(near), metric, backend = "cpu", num_threads = 2
      )
    })
  }
  if (!is.null(data_folder)) {
    arrays <- study_rows(data_folder, "vantveer78_full.rds")
    for (metric in c("manhattan", "euclidean")) {
      compare("log ratios", arrays, metric, 20, ways)
    }
  }
}

# A quarter of the memory that all would take, a twentieth (then the filter's
# rows are in the host's memory), and four blocks with lists for each.
parts <- function() {
  n <- size(1e5)
  codes <- genotypes(n, 295)
  x <- simulated(n, 295)
  x <- x - min(x)
  cases <- list(
    list("genotypes", codes, "manhattan"),
    list("0/1", pmin(codes, 1), "pearson"), list("log scale", x, "manhattan"),
    list("log scale", x, "chebyshev"), list("log scale", x, "proportional")
  )
  for (case in cases) {
    y <- case[[2]]
    metric <- case[[3]]
    other <- if (metric == "pearson") "16 bits" else "floats"
    among <- forms[c("chosen", other)]
    most <- knn_plan(y, 20, metric, backend = "cuda", devices = 1)$bytes_peak
    search <- function(...) {
      function() knn_search(y, 20, metric, backend = "cuda", devices = 1, ...)
    }
    for (part in c(4, 20)) {
      compare(
        paste0(case[[1]], ", 1/", part), y, metric, 20, among,
        search(max_device_memory = most / part)
      )
    }
    block <- sample(rep_len(1:4, n))
    compare(
      paste0(case[[1]], ", blocks"), y, metric, 20, among, search(block = block)
    )
  }
}

run_section <- list(
  products = products, differences = differences, bits = bits, hard = hard
)
more <- if (on_gpu) list(parts = parts) else list(order = order_of_points)
run_section <- c(run_section, more)
sections <- if (length(words) > 1) words[-1] else names(run_section)
stopifnot("No such section." = sections %in% names(run_section))
for (section in sections) {
  say(section)
  run_section[[section]]()
}
