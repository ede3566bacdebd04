# What do hidden factors do to edges and to an outcome?
#
#   Rscript inst/bench/calibration_factors.R [DATA SETS] [FOLDER]
#
# prints a table, and stores it in FOLDER as calibration-factors.csv.
#
# 120 points in 40 samples: four modules of 10 points (r = 0.5) and 80 others. A
# batch of two levels, which nobody recorded, shifts 60 points. Designs without
# it, with an outcome that 5 or 80 points follow, and of noise: see below.
#
# In the table, for points as they are, adjusted by the found factors, by those
# that keep the outcome, and by the true batch:
#   factors    mean number of factors
#   precision  share of the 180 nearest pairs that are within a module
#   found      share of the points that follow the outcome with p_adjusted at
#              most 0.05
#   family     share of data sets with a false call, where no point follows it
# P-values with factors that keep the outcome are refused by the package. They
# are computed here from a plain matrix, to show why.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

num_sets <- word(1, 100)
folder <- check_folder(word(2))
num_samples <- 40
num_pairs <- 180
module <- c(rep(1:4, each = 10), 5:84)

draw <- function(has_batch = TRUE, has_modules = TRUE, follow = 0,
                 batch_effect = 1.5) {
  x <- matrix(rnorm(120 * num_samples), 120)
  if (has_modules) {
    base <- matrix(rnorm(4 * num_samples), 4)
    x[1:40, ] <- sqrt(0.5) * x[1:40, ] + sqrt(0.5) * base[module[1:40], ]
  }
  batch <- sample(rep(0:1, length.out = num_samples))
  if (has_batch) {
    at <- sample(120, 60)
    x[at, ] <- x[at, ] + batch_effect * outer(sample(c(-1, 1), 60, TRUE), batch)
  }
  outcome <- rnorm(num_samples)
  true <- if (follow > 0) 41:(40 + follow)
  x[true, ] <- x[true, ] + 0.8 * rep(outcome, each = follow)
  list(x = x, batch = batch, outcome = outcome, true = true)
}

designs <- list(
  "batch and modules" = function() draw(),
  "modules alone" = function() draw(has_batch = FALSE),
  "batch, 5 points follow the outcome" = function() draw(follow = 5),
  "batch, 80 points follow the outcome" = function() draw(follow = 80),
  "noise" = function() draw(FALSE, FALSE)
)

plain <- function(factors) {
  vapply(factors, as.double, double(num_samples))
}

one_set <- function(design) {
  data <- design()
  free <- hidden_factors(data$x, permutations = 19)
  kept <- hidden_factors(data$x, keep = data$outcome, permutations = 19)
  one <- hidden_factors(data$x, num = 1)
  five <- hidden_factors(data$x, keep = data$outcome, num = 5)
  ways <- list(
    "as they are" = NULL, "factors" = free, "factors, outcome kept" = kept,
    "one factor" = one, "five factors, outcome kept" = five,
    "true batch" = data$batch
  )
  do.call(rbind, lapply(names(ways), function(way) {
    adjust <- ways[[way]]
    num <- if (is.data.frame(adjust)) ncol(adjust) else 1 - is.null(adjust)
    if (is.data.frame(adjust)) {
      adjust <- if (num > 0) matrix(plain(adjust), num_samples)
    }
    graph <- threshold_graph(
      data$x, min_similarity = 0, adjust = adjust, backend = "cpu",
      num_threads = 1
    )
    nearest <- utils::head(graph[order(graph$distance), ], num_pairs)
    found <- nearest_to(
      data$x, outcome = data$outcome, k = 120, sign = "absolute",
      adjust = adjust, permutations = 99, backend = "cpu", num_threads = 1
    )
    called <- found$p_adjusted <= 0.05
    true <- found$index %in% data$true
    data.frame(
      way = way, factors = num,
      precision = mean(module[nearest$from] == module[nearest$to]),
      found = mean(called[true]), family = any(called & !true)
    )
  }))
}

rows <- lapply(names(designs), function(name) {
  set.seed(13)
  sets <- do.call(rbind, lapply(seq_len(num_sets), function(set) {
    one_set(designs[[name]])
  }))
  ways <- unique(sets$way)
  mean_of <- function(what) {
    as.vector(tapply(sets[[what]], factor(sets$way, ways), mean))
  }
  data.frame(
    design = name, way = ways, factors = mean_of("factors"),
    precision = if (name == "noise") NA else mean_of("precision"),
    found = mean_of("found"), family = mean_of("family"),
    data_sets = num_sets, machine = paste(parallel::detectCores(), "cores, CPU"),
    date = format(Sys.Date())
  )
})
table <- do.call(rbind, rows)
table$found[is.nan(table$found)] <- NA
numbers <- vapply(table, is.double, NA)
table[numbers] <- lapply(table[numbers], signif, 3)
print(table[1:6], right = FALSE, row.names = FALSE)
store_table(folder, "calibration-factors.csv", table)
