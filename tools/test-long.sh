#!/bin/sh
# What takes too long for `make test`: all linters, the tests in R with
# FSKNN_LONG_TESTS, and, as on a Mac, the C++ tests and the answers' digests by clang
# without OpenMP.

. tools/common.sh
sh tools/setup.sh test || exit 1
export FSKNN_LONG_TESTS=1 OMP_WAIT_POLICY=passive
status=0
[ $# -gt 0 ] || sh tools/lint.sh || status=1
sh tools/build.sh library &&
  R_LIBS=$library${R_LIBS:+:$R_LIBS} sh tools/test-r.sh "$@" || status=1
make_by_clang "$build/clang/tests-without-openmp" &&
  "$build/clang/tests-without-openmp" --no-colors=true || status=1
make_by_clang printer=print_answers-without-openmp digests || status=1
exit $status
