#!/bin/sh
# cpp-test.sh [NAME] [CASE]: compiles the package as `make dev` does, then the C++ tests of
# the file NAME (test_lists), or all, and runs them, or the cases that CASE fits.

. tools/common.sh
sh tools/setup.sh check && sh tools/build.sh dev || exit 1
program=tests
if [ -n "$1" ]; then
  program=changed
  rm -f "$build/cpp/changed"
fi
make_cpp program=$program only="$1" "$build/cpp/$program" &&
  "$build/cpp/$program" ${2:+"-tc=$2"}
