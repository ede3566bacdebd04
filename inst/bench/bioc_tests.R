# The tests that BiocNeighbors or bluster have of their own, run with
# FsknnParam() in place of their exact algorithms' parameters.
#
#   Rscript bioc_tests.R FOLDER [PATTERN]
#
# FOLDER holds the package's source ("apt-get source r-bioc-biocneighbors", or
# Bioconductor's); the same version has to be installed. PATTERN chooses among
# its test files. Nothing of theirs is changed on disk.
#
# Failures are listed in two kinds: ours, and those of `not_ours` below, with
# the reason. The exit status is 1 if there are any of ours.

suppressPackageStartupMessages({
  library(testthat)
  library(BiocNeighbors)
  library(fsknn)
})

arguments <- commandArgs(trailingOnly = TRUE)
if (length(arguments) < 1) {
  stop("Usage: Rscript bioc_tests.R FOLDER [PATTERN]", call. = FALSE)
}
folder <- normalizePath(arguments[[1]])
pattern <- if (length(arguments) > 1) arguments[[2]] else ""
about <- read.dcf(file.path(folder, "DESCRIPTION"), c("Package", "Version"))
package <- about[[1, "Package"]]
installed <- as.character(packageVersion(package))
if (installed != about[[1, "Version"]]) {
  message(
    "The tests are of ", package, " ", about[[1, "Version"]], ", installed is ",
    installed, "."
  )
}
suppressPackageStartupMessages(library(package, character.only = TRUE))
is_old <- packageVersion("BiocNeighbors") < "1.99"

# --- ours in place of theirs --------------------------------------------------

# Wherever the name is bound: in the namespace, so that defaults are ours too,
# among what is attached, and in what bluster imports.
put_in_place <- function(name, value) {
  homes <- list(
    asNamespace("BiocNeighbors"), as.environment("package:BiocNeighbors"),
    parent.env(asNamespace(package))
  )
  for (home in homes) {
    if (exists(name, home, inherits = FALSE)) {
      unlockBinding(name, home)
      assign(name, value, home)
    }
  }
}

algorithms <- c("Kmknn", "Vptree", "Exhaustive")
searches <- 0
our_param <- function(..., distance = "Euclidean") {
  searches <<- searches + 1
  FsknnParam(distance)
}
for (algorithm in algorithms) {
  put_in_place(paste0(algorithm, "Param"), our_param)
}

# BiocNeighbors 1.16 has a function for each algorithm, too.
as_ours <- function(index) {
  if (is.null(index) || is(index, "FsknnIndex")) {
    return(index)
  }
  buildIndex(t(bndata(index)), BNPARAM = our_param(distance = bndistance(index)))
}

by_generic <- function(generic) {
  force(generic)
  function(X, ..., precomputed = NULL, distance = "Euclidean") {
    if (is.null(precomputed)) {
      generic(X, ..., BNPARAM = our_param(distance = distance))
    } else {
      generic(..., BNINDEX = as_ours(precomputed))
    }
  }
}

if (is_old) {
  verbs <- list(
    find = findKNN, query = queryKNN, rangeFind = findNeighbors,
    rangeQuery = queryNeighbors
  )
  for (algorithm in algorithms) {
    for (verb in names(verbs)) {
      put_in_place(paste0(verb, algorithm), by_generic(verbs[[verb]]))
    }
    put_in_place(
      paste0("build", algorithm),
      function(X, ..., distance = "Euclidean") {
        buildIndex(X, ..., BNPARAM = our_param(distance = distance))
      }
    )
  }
}

# --- the tests ----------------------------------------------------------------

# Approximate algorithms stay theirs, and what builds an index of theirs has
# nothing of ours in it.
no_part <- if (package == "BiocNeighbors") "annoy|hnsw|build|utils|Annoy|Hnsw"
tests <- file.path(folder, "tests", "testthat")
files <- list.files(tests, "^test.*[.][rR]$")
files <- files[grepl(pattern, files)]
if (!is.null(no_part)) {
  files <- files[!grepl(no_part, files)]
}

# Words of a failure, and why it is none of ours.
not_ours <- c(
  "readRDS(tmp)" = "our index can be saved and read back",
  "\"class: FsknnParam" = "our parameter is of another class",
  "there is no package called" = "a package that their test needs is not here",
  "inherits from 'FsknnIndex'" = "our index is of another class",
  "unable to find an inherited method" =
    "one class of ours stands for each of theirs, so none mismatch"
)

results <- list()
for (file in files) {
  results <- c(results, test_file(
    file.path(tests, file), reporter = "silent", env = NULL, package = package,
    load_package = "none", stop_on_failure = FALSE
  ))
}
is_bad <- function(result) {
  inherits(result, c("expectation_failure", "expectation_error"))
}
counted <- 0
failed <- list()
for (test in results) {
  for (result in test$results) {
    counted <- counted + !inherits(
      result, c("expectation_skip", "expectation_warning")
    )
    if (is_bad(result)) {
      failed <- c(failed, list(list(
        file = test$file, test = test$test, words = conditionMessage(result)
      )))
    }
  }
}
reason <- vapply(failed, function(failure) {
  found <- vapply(names(not_ours), grepl, NA, x = failure$words, fixed = TRUE)
  c(not_ours[found], NA)[[1]]
}, "")
cat(sprintf(
  "%s %s: %d expectations in %d files, %d failed, %d of them ours.\n",
  package, installed, counted, length(files), length(failed),
  sum(is.na(reason))
))
cat("FsknnParam() was asked for", searches, "times.\n")
for (at in seq_along(failed)) {
  failure <- failed[[at]]
  cat(
    "\n", failure$file, ": ", failure$test, "\n",
    if (!is.na(reason[[at]])) c("not ours: ", reason[[at]], "\n"),
    failure$words, "\n", sep = ""
  )
}
if (anyNA(reason)) {
  quit(status = 1)
}
