# Rscript inst/scripts/breast-cancer.R FOLDER
# Makes inst/extdata/study anew: the results that the vignette "breast-cancer"
# shows where the data are not. Run it in the package's root, with the package
# installed; FOLDER holds the files that ?nki_study describes. The k = 1 graph
# of 384,127 rows takes some minutes on a CPU, about a second on a GPU.
folder <- commandArgs(trailingOnly = TRUE)
if (length(folder) != 1 || !dir.exists(folder)) {
  stop("Name the folder that holds the study's data.")
}
store <- file.path("inst", "extdata", "study")
dir.create(store, recursive = TRUE, showWarnings = FALSE)
options(
  fsknn.data = normalizePath(folder), fsknn.store = normalizePath(store)
)
rmarkdown::render(
  file.path("vignettes", "breast-cancer.Rmd"), output_dir = tempdir(),
  intermediates_dir = tempdir(), quiet = TRUE
)
print(list.files(store))
