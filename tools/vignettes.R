# Rscript tools/vignettes.R FOLDER: the vignettes of the package whose sources lie
# in FOLDER, built into its inst/doc with the index that R CMD INSTALL wants, as
# R CMD build does it; with the package that is installed already.

setwd(commandArgs(TRUE)[[1]])
files <- list.files("vignettes", "[.]Rmd$")
names <- sub("[.]Rmd$", "", files)
dir.create("inst/doc", showWarnings = FALSE, recursive = TRUE)
dir.create("build", showWarnings = FALSE)

rscript <- file.path(R.home("bin"), "Rscript")
for (at in seq_along(files)) {
  cat("  vignette ", at, " of ", length(files), ": ", names[[at]], "\n", sep = "")
  # Each in an R of its own, as attached packages would be there for the next.
  code <- sprintf(
    "tools::buildVignette('vignettes/%s', 'inst/doc', buildPkg = 'knitr')",
    files[[at]]
  )
  log <- tempfile()
  status <- system2(rscript, c("-e", shQuote(code)), stdout = log, stderr = log)
  if (status != 0) {
    writeLines(readLines(log))
    stop("The vignette ", names[[at]], " could not be built.", call. = FALSE)
  }
}
invisible(file.copy(file.path("vignettes", files), "inst/doc", overwrite = TRUE))

facts <- lapply(file.path("vignettes", files), tools::vignetteInfo)
index <- data.frame(
  File = files,
  Title = vapply(facts, `[[`, "", "title"),
  PDF = paste0(names, ".html"),
  R = paste0(names, ".R")
)
index$Depends <- lapply(facts, `[[`, "depends")
index$Keywords <- lapply(facts, `[[`, "keywords")
saveRDS(index, "build/vignette.rds", version = 2)

# A chunk whose package is missing is left out of its page.
lines <- unlist(lapply(file.path("vignettes", files), readLines))
uses <- regmatches(lines, gregexpr('(?<=requireNamespace\\(")[^"]+', lines, perl = TRUE))
missing <- setdiff(unlist(uses), rownames(installed.packages()))
if (length(missing)) {
  cat("Vignettes show less without these packages:", toString(missing), "\n")
}
