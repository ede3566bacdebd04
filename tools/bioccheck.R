# Bioconductor's own check, BiocCheck, of a tarball; Rscript tools/bioccheck.R
# TARBALL FOLDER. Its report goes to FOLDER, and what it installed stays in
# FOLDER/library. An error or a warning of it makes this fail. Switched off, by
# its own options, is what needs a network:
#   no-check-deprecated   are packages that are used deprecated in Bioconductor?
#   no-check-CRAN         has CRAN a package of this name?
#   no-check-bioc-help    do mailing list and support site know the maintainer?
#   no-check-version-num  does the version suit Bioconductor's present release?
# Of the last what can be known here is seen to below: 0.99.z, a new package.

arguments <- commandArgs(TRUE)
folder <- normalizePath(arguments[[2]])
suppressPackageStartupMessages(library(BiocCheck))

version <- sub("^.*_(.*)[.]tar[.]gz$", "\\1", basename(arguments[[1]]))
if (!grepl("^0[.]99[.][0-9]+$", version)) {
  stop("A new package's version is 0.99.z, not ", version, ".")
}

# What it says while it works is in its report too, but for the noise of
# vignettes whose chunks it takes out of their context.
log <- file(file.path(folder, "messages.txt"), "w")
sink(log, type = "message")
sink(log)
found <- tryCatch(
  BiocCheck(
    normalizePath(arguments[[1]]), checkDir = folder,
    `no-check-deprecated` = TRUE, `no-check-CRAN` = TRUE,
    `no-check-bioc-help` = TRUE, `no-check-version-num` = TRUE
  ),
  error = identity
)
sink()
sink(type = "message")
close(log)
library_folder <- file.path(folder, "library")
dir.create(library_folder)
file.copy(
  Sys.glob(file.path(tempdir(), "*", "lib", "fsknn")), library_folder,
  recursive = TRUE
)
if (inherits(found, "error")) {
  writeLines(readLines(file.path(folder, "messages.txt")))
  stop(found)
}

# Each condition's first words; the places are in the report.
say <- function(kind, conditions) {
  for (words in conditions) {
    text <- sub("^ *\\* *[A-Z]+: *", "", gsub("[[:space:]]+", " ", unlist(words)))
    places <- length(text) - 1
    writeLines(strwrap(
      paste0(kind, ": ", text[[1]], if (places > 0) paste0(" [", places, "]")),
      exdent = 2
    ))
  }
}
say("NOTE", found$note)
say("WARNING", found$warning)
say("ERROR", found$error)
quit(status = as.integer(length(found$error) + length(found$warning) > 0))
