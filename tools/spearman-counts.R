# Counts permutations by Spearman's statistic and stores the counts in
# R/sysdata.rda, from which p-values are computed (R/significance-correlation_p.R).
#
#   Rscript tools/spearman-counts.R
#
# It needs a C++ compiler, half a minute and 4.4 GiB of memory. The file is part
# of the repository, so this runs only if the table is to be extended.
#
# Up to 18 samples, counts are exact in double. Beyond, they are rounded to 53
# bits, which changes a p-value by less than 1e-15 of it.

program <- tempfile()
source <- file.path("tools", "spearman-counts.cpp")
built <- system2("g++", c("-O2", "-std=c++17", "-o", program, source))
stopifnot(built == 0)
table <- utils::read.csv(text = system2(program, stdout = TRUE))
spearman_half_counts <- unname(split(as.double(table$count), table$n))
stopifnot(lengths(spearman_half_counts) == ((2:21)^3 - 2:21) %/% 12 + 1)
save(
  spearman_half_counts, file = file.path("R", "sysdata.rda"), version = 2,
  compress = "xz"
)
