#!/bin/sh
# compilers.sh [COMPILER ...]   compiles all C++ code except that of CUDA by each of
# these compilers (g++ and clang++), as C++17 and as C++20, where a warning is an
# error. Then compiles the C++ tests by the first with the assertions of libstdc++,
# and runs them. It takes some 30 minutes of a processor.

. tools/common.sh
sh tools/setup.sh test sanitize && sh tools/build.sh library || exit 1
[ $# -gt 0 ] || set -- g++ clang++
strict_flags="-Wall -Wextra -Wpedantic -Werror -D_GLIBCXX_ASSERTIONS"

# Headers of other packages may warn.
included=$(Rscript -e '
  linked <- strsplit(read.dcf("DESCRIPTION", "LinkingTo"), "[, \n]+")[[1]]
  folders <- c(R.home("include"), system.file("include", package = linked[[1]]))
  for (name in linked) folders <- c(folders, system.file("include", package = name))
  cat("-isystem", paste(unique(folders), collapse = " -isystem "))
')
included="$included -Isrc -I$build/package/src -Itests/cpp"

list_files() {
  # Rcpp writes RcppExports.cpp, which casts functions as R wants them.
  sed 's/#.*//; y/ /\n/' src/Makevars.in | sed -n 's/^\(.*\)\.o$/src\/\1.cpp/p' |
    grep -v -e '^src/cuda/' -e RcppExports &&
    ls src/cuda/absent.cpp src/cuda/plan.cpp tests/cpp/*.cpp tests/cpp/*/*.cpp
}

status=0
for compiler; do
  for standard in 17 20; do
    begun=$(now)
    list_files | xargs -P "$jobs" -I FILE $compiler -std=c++$standard \
      $strict_flags $included -DRCPP_NO_MODULES -DRCPP_NO_SUGAR -fopenmp \
      -fsyntax-only FILE || status=1
    echo "$compiler, C++$standard: $(list_files | wc -l) files," \
      "$(($(now) - begun)) seconds"
  done
done

make -s -C tests/cpp build="$build/asserted" CXX="$ccache $1" \
  CXXFLAGS="-O2 -g0 $strict_flags" TESTFLAGS=-O1 "$build/asserted/tests" &&
  "$build/asserted/tests" --no-colors=true || status=1
exit $status
