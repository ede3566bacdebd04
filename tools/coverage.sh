#!/bin/sh
# coverage.sh [CODE]   which lines of R/ and src/ the tests in R run (or that code
# does), of a build without CUDA: the share of each, and in _build/coverage/lines
# every stretch of lines that nothing runs. What only the C++ tests run counts
# as not run, and so what FSKNN_LONG_TESTS asks for, unless it is set.

. tools/common.sh
sh tools/setup.sh test coverage || exit 1
folder=$build/coverage
rm -rf "$folder"
mkdir -p "$folder/fsknn" || exit 1
for part in DESCRIPTION LICENSE NAMESPACE NEWS.md R src inst man configure \
  cleanup tests
do
  cp -R "$part" "$folder/fsknn" || exit 1
done
rm -rf "$folder/fsknn/tests/cpp" "$folder/fsknn/tests/cuda"
(cd "$folder/fsknn" && ./cleanup) || exit 1

FSKNN_CUDA_ARCH=none
NOT_CRAN=true
export FSKNN_CUDA_ARCH NOT_CRAN
Rscript -e '
  arguments <- commandArgs(TRUE)
  code <- arguments[-1]
  # Without optimisation the tests take an hour. covr sets its flags as it loads.
  loadNamespace("covr")
  options(covr.flags = vapply(
    getOption("covr.flags"), sub, "", pattern = "-O0", replacement = "-Og"
  ))
  # Tests kill processes, some while they write down what lines they ran.
  invisible(suppressMessages(trace(
    "merge_coverage.character", where = asNamespace("covr"), print = FALSE,
    tracer = quote(files <- Filter(function(file) {
      !inherits(try(readRDS(file), silent = TRUE), "try-error")
    }, files))
  )))
  # Lines that a failing test has run are run.
  if (!length(code)) {
    code <- sprintf(
      "testthat::test_dir(%s, package = %s, load_package = %s, %s)",
      deparse(file.path(arguments[[1]], "fsknn", "tests", "testthat")),
      deparse("fsknn"), deparse("installed"),
      "reporter = testthat::CheckReporter$new(), stop_on_failure = FALSE"
    )
  }
  found <- covr::package_coverage(
    file.path(arguments[[1]], "fsknn"), quiet = FALSE,
    type = "none", code = code,
    line_exclusions = list("R/RcppExports.R", "src/RcppExports.cpp")
  )
  lines <- covr::tally_coverage(found, by = "line")
  language <- ifelse(grepl("[.]R$", lines$filename), "R", "C++")
  for (one in c("R", "C++")) {
    run <- lines$value[language == one] > 0
    cat(sprintf(
      "%s: %.1f%% of %d lines\n", one, 100 * mean(run), length(run)
    ))
  }
  missed <- lines[lines$value == 0, ]
  missed <- missed[order(missed$filename, missed$line), ]
  stretch <- cumsum(c(TRUE, diff(missed$line) != 1 |
    head(missed$filename, -1) != tail(missed$filename, -1)))
  words <- vapply(split(missed, stretch), function(rows) {
    sprintf("%s:%d-%d", rows$filename[[1]], min(rows$line), max(rows$line))
  }, "")
  writeLines(words, file.path(arguments[[1]], "lines"))
' "$folder" "$@" || exit 1
echo "Lines that nothing runs: $folder/lines"
