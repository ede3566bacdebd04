# How many rows of noise does mdl_filter() keep, and are its p-values what they
# say? Independent rows of normal values in classes of some sizes.
#
#   Rscript inst/bench/calibration_mdl.R [DATA SETS] [CORES] [FOLDER]
#     [--only=TEXT]
#
# prints a table, and stores it in FOLDER as calibration-mdl.csv (calibrate() in
# harness.R).
#
# In the table, for each design:
#   kept     the share of 1,000 rows of noise that are kept
#   p_0.05   the share of the rows of noise with p_value up to 0.05
#   any      the share of data sets of noise with an fdr up to 0.05
#   false    of 1,000 rows, 100 are 1.5 standard deviations higher in the
#            second class: the mean share of noise among those with fdr up to
#            0.05
#   power    the share of the 100 rows with fdr up to 0.05

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
source(file.path(dirname(script[[1]]), "harness.R"))
library(fsknn)

num_rows <- 1000
permutations <- 39

# Numbers of samples in the classes
sizes <- list(
  c(3, 3), c(5, 5), c(10, 10), c(5, 15), c(25, 25), c(50, 50), c(148, 148),
  c(10, 10, 10)
)
names(sizes) <- vapply(sizes, paste, "", collapse = " + ")

one_set <- function(size) {
  class <- rep(seq_along(size), size)
  noise <- matrix(rnorm(num_rows * length(class)), num_rows)
  judge <- function(x) {
    mdl_filter(
      x, class, permutations = permutations, num_threads = 1, progress = FALSE
    )
  }
  of_noise <- judge(noise)
  shifted <- noise
  shifted[1:100, class == 2] <- shifted[1:100, class == 2] + 1.5
  found <- which(judge(shifted)$fdr <= 0.05)
  c(
    kept = mean(of_noise$keep), p_0.05 = mean(of_noise$p_value <= 0.05),
    any = any(of_noise$fdr <= 0.05),
    false = sum(found > 100) / max(1, length(found)),
    power = mean(1:100 %in% found)
  )
}

calibrate("calibration-mdl.csv", sizes, one_set, row_of_means)
