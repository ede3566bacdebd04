#!/bin/sh
# try-extending.sh   does what vignettes/extending.Rmd says, with the changes and the
# examples that stand in it: applies its ```diff blocks to a copy of the package,
# builds it, runs its ```r and ```cpp examples, compares what they print with the
# ```text block that follows each, and runs the tests that go through all metrics.
# The copy has the objects of `make dev`, and compiles again what a change concerns.

. tools/common.sh
vignette=$root/vignettes/extending.Rmd
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
copy=$scratch/fsknn
library=$scratch/library

fail() {
  echo "try-extending.sh: $1" >&2
  exit 1
}

# blocks LANGUAGE: the text of all fenced blocks of that language.
blocks() {
  sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$vignette" | sed '/^```/d'
}

# text_after LANGUAGE: the ```text block that follows the first such block.
text_after() {
  awk -v start="\`\`\`$1" '
    $0 == start { wait = 1 }
    wait && $0 == "```text" { on = 1; next }
    on && /^```/ { exit }
    on
  ' "$vignette"
}

# same NAME: what was printed is what the page shows.
same() {
  diff "$scratch/$1.expected" "$scratch/$1.printed" ||
    fail "the $1 example prints something else (>) than the page (<)"
}

sh tools/build.sh dev || exit 1
mkdir -p "$library" && cp -R -L -p "$build/package" "$copy" &&
  mkdir -p "$copy/tests" && cp -R -p tests/testthat "$copy/tests" || exit 1
blocks diff > "$scratch/changes"
[ -s "$scratch/changes" ] || fail "the page has no changes"
(cd "$copy" && patch -p1 --fuzz=1 < "$scratch/changes") ||
  fail "a change of the page does not apply"

# In haste: what is tested is that it works, not how fast. make knows what an object
# was made from by the *.d beside it.
cat > "$scratch/Makevars" <<END
CXX17FLAGS = -O1 -g0 $strict
include \$(wildcard *.d */*.d */*/*.d)
END
(cd "$copy" && R_MAKEVARS_USER=$scratch/Makevars R CMD INSTALL --no-docs \
  --no-byte-compile --library="$library" --configure-args=--without-cuda .) \
  > "$scratch/log" 2>&1 || {
  cat "$scratch/log" >&2
  fail "the package with the new metrics does not build"
}
R_LIBS=$library${R_LIBS:+:$R_LIBS}
export R_LIBS

blocks r > "$scratch/r.R"
text_after r > "$scratch/r.expected"
# One language and form of message everywhere.
LANGUAGE=en Rscript -e 'options(width = 80, cli.unicode = TRUE)' \
  -e "source('$scratch/r.R', print.eval = TRUE)" > "$scratch/r.printed" 2>&1
same r

blocks cpp > "$scratch/cpp.cpp"
text_after cpp > "$scratch/cpp.expected"
g++ -std=c++17 -fopenmp -Wall -I"$copy/src" -o "$scratch/cpp" \
  "$scratch/cpp.cpp" $(find "$copy/src/core" "$copy/src/cpu" -name "*.o") ||
  fail "the C++ example does not compile"
"$scratch/cpp" > "$scratch/cpp.printed" || fail "the C++ example fails"
same cpp

(cd "$copy/tests/testthat" && FSKNN_TEST_METRICS=ruzicka,chisquare Rscript -e '
  library(fsknn)
  stopifnot(c("ruzicka", "chisquare") %in% fsknn:::metric_table()$name)
  testthat::test_dir(
    ".", filter = "^(exactness|search-(knn_search|knn_query|metrics))$",
    package = "fsknn", load_package = "installed", reporter = "summary",
    stop_on_failure = TRUE
  )
') || fail "the tests do not pass with the new metrics"
echo "The changes of the page apply, build and pass the tests."
