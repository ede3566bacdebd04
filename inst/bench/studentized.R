# How much longer does a studentized statistic take than a correlation?
#
#   Rscript inst/bench/studentized.R [ROUNDS] [THREADS] [FOLDER]
#     [--machine=LABEL]
#
# 12,625 points in 128 samples, as of a microarray study, without any effect.
# Both statistics take the same permutations in turn, in one process. Seconds
# are medians of the processor's over all rounds (7), so that other work on the
# machine matters less. With FOLDER, the rows are kept in studentized.csv.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

rounds <- word(1, 7)
threads <- word(2, 1)
folder <- check_folder(word(3))
machine <- option("machine", cpu_name())

set.seed(1)
x <- matrix(rnorm(12625 * 128), 12625)
module <- rep_len(1:25, nrow(x))
two <- factor(rep_len(1:2, 128))
three <- factor(rep_len(1:3, 128))
number <- rnorm(128)
covariates <- matrix(rnorm(128 * 2), 128)

nearest <- function(outcome, permutations, ...) {
  function(statistic) {
    nearest_to(
      x, outcome = outcome, k = 20, sign = "absolute", statistic = statistic,
      permutations = permutations, num_threads = threads, ...
    )
  }
}
cases <- list(
  "nearest_to(), two levels" = nearest(two, 1000),
  "nearest_to(), two levels, 10,000 permutations" = nearest(two, 10000),
  "nearest_to(), two levels, 2 covariates" =
    nearest(two, 1000, adjust = covariates),
  "nearest_to(), numbers" = nearest(number, 1000),
  "nearest_to(), three levels" = nearest(three, 1000),
  "module_summary(), two levels, 25 modules" = function(statistic) {
    module_summary(
      module, x, outcome = list(outcome = two), permutations = 1000,
      statistic = statistic, num_threads = threads
    )
  }
)

seconds_of <- function(case, statistic) {
  set.seed(1)
  gc(FALSE)
  processor_seconds(system.time(suppressMessages(case(statistic))))
}
measure <- function(name) {
  # The first call of each loads and compiles code.
  times <- vapply(seq_len(rounds + 1), function(round) {
    c(
      correlation = seconds_of(cases[[name]], "correlation"),
      studentized = seconds_of(cases[[name]], "studentized")
    )
  }, double(2))[, -1]
  medians <- apply(times, 1, stats::median)
  data.frame(
    case = name, t(signif(medians, 3)),
    ratio = signif(medians[["studentized"]] / medians[["correlation"]], 2),
    points = nrow(x), samples = ncol(x), threads, rounds, machine,
    date = format(Sys.Date())
  )
}
rows <- do.call(rbind, lapply(names(cases), measure))
show(rows[setdiff(names(rows), c("machine", "date"))], right = FALSE)
store_table(folder, "studentized.csv", rows)
