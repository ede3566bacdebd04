# Rscript inst/scripts/breast-cancer.R FOLDER [TABLE ...]
# Makes inst/extdata/study anew: the results that the vignette "breast-cancer"
# shows where the data are not. Run it in the package's root, with the package
# installed; FOLDER holds the files that ?nki_study describes. Needs limma,
# org.Hs.eg.db and Matrix besides what the page needs, and ten minutes on two
# cores. Tables that are named and take minutes (expanded-graph, whole-way,
# enrichment, clusters) are left as they are.
arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
if (length(arguments) == 0 || !dir.exists(folder)) {
  stop("Name the folder that holds the study's data.")
}
store <- file.path("inst", "extdata", "study")
dir.create(store, recursive = TRUE, showWarnings = FALSE)
options(
  fsknn.data = normalizePath(folder), fsknn.store = normalizePath(store),
  fsknn.keep = arguments[-1]
)
rmarkdown::render(
  file.path("vignettes", "breast-cancer.Rmd"), output_dir = tempdir(),
  intermediates_dir = tempdir(), quiet = TRUE
)
print(list.files(store))
