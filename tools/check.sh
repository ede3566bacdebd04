#!/bin/sh
# check.sh [COMMIT]   compiles the package as `make dev` does, then runs the arrows, the
# linters and the tests of the files that differ from COMMIT: by default from the last
# commit or, if none does, from the one before it.

. tools/common.sh
sh tools/setup.sh check || exit 1
begun=$(now)

# Deleted files have neither form nor tests.
list_changed() {
  git diff --name-only --diff-filter=d "$1" -- &&
    git ls-files --others --exclude-standard
}
changed=$(list_changed "${1:-HEAD}") || exit 1
[ -n "$changed$1" ] || changed=$(list_changed HEAD~1)

# chosen COMMAND: what sed -n makes of the changed files.
chosen() {
  printf '%s\n' "$changed" | sed -n "$1"
}

# callers FILE: the names of the files in R/ that use functions of this one.
callers() {
  functions=$(sed -n 's/^\([.A-Za-z][.A-Za-z0-9_]*\) <- function(.*/\1/p' "$1")
  [ -z "$functions" ] || grep -l -w -F "$functions" R/*.R | grep -v -x "$1" |
    sed 's/^R\///; s/\.R$//'
}

# A file in R/ has the test of its name, or those of up to five files that use it;
# a binding has those of the files that call it.
list_r_tests() {
  chosen 's/^tests\/testthat\/test-\(.*\)\.R$/\1/p'
  bindings=$(chosen '/^src\/bind_.*\.cpp$/p')
  {
    chosen '/^R\/.*\.R$/p'
    [ -z "$bindings" ] || grep -l -w -F \
      "$(cat $bindings | sed -n 's/^[^ ].* \(cpp_[a-z_0-9]*\)(.*/\1/p')" R/*.R
  } | sed 's/^R\///; s/\.R$//' | grep -v -x RcppExports | sort -u |
    while read -r name; do
      if [ -f "tests/testthat/test-$name.R" ]; then
        echo "$name"
      else
        callers "R/$name.R" | while read -r other; do
          [ ! -f "tests/testthat/test-$other.R" ] || echo "$other"
        done | head -n 5
      fi
    done
}

# A file in src/ has the test of its name, or those that include its header.
list_cpp_tests() {
  chosen 's/^tests\/cpp\/\(test_.*\)\.cpp$/\1/p'
  chosen 's/^src\/\(c.*\)\.[ch]pp$/\1/p' | sort -u | while read -r path; do
    name=test_${path##*/}
    if [ -f "tests/cpp/$name.cpp" ]; then
      echo "$name"
    else
      grep -l -x -F "#include \"$path.hpp\"" tests/cpp/test_*.cpp |
        sed 's/.*\/\(.*\)\.cpp$/\1/' | grep . ||
        echo "No C++ test includes $path.hpp: make cpp-test runs all of them." >&2
    fi
  done
}

run_cpp_tests() {
  rm -f "$build/cpp/changed"
  make_cpp program=changed only="$*" "$build/cpp/changed" &&
    "$build/cpp/changed" --no-colors=true -tce="$long_cpp_tests"
}

status=0
check() {
  "$@" || {
    echo "FAILED: $*"
    status=1
  }
}

sh tools/build.sh dev || exit 1
check sh tools/check-arrows.sh
check sh tools/lint.sh $changed
names=$(list_cpp_tests | sort -u)
count=$(printf '%s' "$names" | grep -c .)
[ -z "$names" ] || check run_cpp_tests $names
names=$(list_r_tests | sort -u)
count=$((count + $(printf '%s' "$names" | grep -c .)))
R_LIBS=$library${R_LIBS:+:$R_LIBS}
export R_LIBS
[ -z "$names" ] || check sh tools/test-r.sh $names
[ -z "$(chosen '/\.cuh*$/p')" ] ||
  echo "GPU code is compiled by FSKNN_CUDA_ARCH=90a make dev and tested by make test-gpu."
echo "$(chosen '$=') changed files: $count files of tests were run, in $(($(now) - begun)) seconds."
exit $status
