# Rscript inst/scripts/expression.R: writes inst/extdata/expression.csv, the small
# table of vignette("fsknn").
#
# It is simulated, so that the page can check its results: 200 genes in 60 samples,
# 30 controls and 30 treated. The genes of each of the modules A to F (20 each) vary
# together, and those named N vary alone. Module B is higher in treated samples.
# Module F holds together in controls only. One value in 100 is missing.

set.seed(1)
modules <- LETTERS[1:6]
module <- c(rep(modules, each = 20), rep("N", 80))
gene <- paste0(module, sequence(rle(module)$lengths))
group <- rep(c("control", "treated"), each = 30)
sample <- paste0(group, sequence(rle(group)$lengths))

# Each module has standard deviation 1 in each group.
half <- function() t(scale(matrix(rnorm(30 * 6), 30)))
shared <- cbind(half(), half())
dimnames(shared) <- list(modules, sample)
shared["B", group == "treated"] <- shared["B", group == "treated"] + 1.5
own <- matrix(rnorm(200 * 60), 200, dimnames = list(gene, sample))
signal <- 0 * own
in_module <- module %in% modules
signal[in_module, ] <- shared[module[in_module], ]
dissolved <- outer(module == "F", group == "treated")
signal[dissolved == 1] <- rnorm(sum(dissolved))
x <- 8 + rnorm(200) + signal + 0.6 * own
x[base::sample(length(x), 0.01 * length(x))] <- NA

# The rows are mixed, so that their order does not show the modules.
set.seed(5)
x <- x[base::sample(200), ]
utils::write.csv(
  data.frame(gene = rownames(x), round(x, 2)), "inst/extdata/expression.csv",
  row.names = FALSE, quote = FALSE, na = "NA"
)
