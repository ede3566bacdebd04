# How long does knn_impute() take, and how wrong is it, beside impute.knn() with
# and without its blocks, and the means of rows?
#
#   Rscript inst/bench/impute.R FILE    vantveer78_full.rds of the study's data:
#                                       a list with `expr` and `scale`
#   Rscript inst/bench/impute.R         made-up data of that size
#
# With the package installed (R_LIBS says where), and impute. Prints seconds
# (the median of three, of seven for knn_impute(); once for impute.knn() without
# blocks, which takes half a minute), how many filled values differ, and the
# root mean square error of 20,000 entries that were hidden, of the same seed
# for all.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

read_study <- function(file) {
  study <- readRDS(file)
  x <- study$expr / study$scale
  x[rowSums(!is.na(x)) > 0, ]
}

make_study <- function(n = 24188, d = 78) {
  x <- matrix(rnorm(n * 5), n) %*% matrix(rnorm(5 * d), 5) / 12 +
    matrix(rnorm(n * d), n) / 6
  some <- sample(n, 10641)
  at <- cbind(sample(some, 13604, replace = TRUE), sample(d, 13604, TRUE))
  x[at] <- NA
  x
}

# Medians, elapsed and of all cores together.
seconds <- function(call, times = 3) {
  all <- vapply(seq_len(times), function(i) {
    time <- system.time(call())
    c(elapsed = time[["elapsed"]], cpu = processor_seconds(time))
  }, c(0, 0))
  apply(all, 1, stats::median)
}

quiet <- function(code) {
  suppressMessages(suppressWarnings(utils::capture.output(result <- code)))
  result
}

by_impute <- function(x, blocks, k = 10) {
  most <- if (blocks) 1500 else nrow(x)
  quiet(impute::impute.knn(x, k, maxp = most)$data)
}

by_rows <- function(x) {
  at <- which(is.na(x), arr.ind = TRUE)
  x[at] <- rowMeans(x, na.rm = TRUE)[at[, 1]]
  x
}

set.seed(1)
x <- if (length(words) > 0) read_study(word(1)) else make_study()
gaps <- is.na(x)
cat(sprintf(
  "%d x %d, %d entries missing in %d rows; standard deviation %.3f\n",
  nrow(x), ncol(x), sum(gaps), sum(rowSums(gaps) > 0), sd(x, na.rm = TRUE)
))
cat(sprintf(
  "%d cores, R %s, impute %s\n", parallel::detectCores(), getRversion(),
  utils::packageVersion("impute")
))

ours <- quiet(knn_impute(x, 10))
whole <- NULL
times <- rbind(
  "knn_impute()" = seconds(function() quiet(knn_impute(x, 10)), 7),
  "impute.knn(), blocks" = seconds(function() by_impute(x, TRUE)),
  "impute.knn(), no blocks" =
    seconds(function() whole <<- by_impute(x, FALSE), 1)
)
print(round(times, 2))
blocks <- by_impute(x, TRUE)
off <- abs(blocks - whole)[gaps]
cat(sprintf(
  "largest difference of knn_impute() and impute.knn() without blocks: %.1e\n",
  max(abs(ours - whole))
))
cat(sprintf(
  "with blocks %.0f%% of the filled values differ; median difference %.2f\n",
  100 * mean(off > 1e-9), stats::median(off)
))

known <- which(!gaps)
hidden <- sample(known, 20000)
holes <- replace(x, hidden, NA)
error <- function(filled) sqrt(mean((filled - x)[hidden]^2))
print(round(c(
  "impute.knn(), blocks" = error(by_impute(holes, TRUE)),
  "knn_impute()" = error(quiet(knn_impute(holes, 10))),
  "available" = error(quiet(knn_impute(holes, 10, donors = "available"))),
  "by distance" = error(quiet(knn_impute(holes, 10, weighting = "distance"))),
  "pearson" = error(quiet(knn_impute(holes, 10, "pearson"))),
  "pearson, k = 20" = error(quiet(knn_impute(holes, 20, "pearson"))),
  "row means" = error(by_rows(holes))
), 4))
