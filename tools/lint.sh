#!/bin/sh
# What machines say of the code's form, of all that is written by hand: nothing.
#   clang-format   src/ and the tests in C++ and CUDA   (.clang-format)
#   clang-tidy     src/core                             (.clang-tidy)
#   lintr          R/                                   (.lintr)
#   g++            headers of src/, each alone
# lint.sh format     writes the C++ and CUDA files as clang-format has them
# lint.sh FILE ...   of these files alone
# lint.sh quick      in two minutes of a processor instead of twenty, for `make test`:
#                    clang-tidy without its static analyzer, no lintr, no headers

. tools/common.sh
sh tools/setup.sh lint || exit 1

# Another version formats otherwise.
wanted=14
format=clang-format
command -v clang-format-$wanted > /dev/null 2>&1 && format=clang-format-$wanted
case $("$format" --version) in
  *version\ $wanted.*) ;;
  *) echo "lint.sh: clang-format $wanted is needed" >&2; exit 1 ;;
esac

chosen=$(printf '%s\n' "$@")

# Of the files on standard input those that are to be looked at.
only() {
  if [ -n "$chosen" ]; then grep -x -F "$chosen"; else cat; fi
}

list_code() {
  find src tests/cpp tests/cuda -name build -prune -o -type f \
    \( -name '*.[ch]pp' -o -name '*.cu' -o -name '*.cuh' \) \
    ! -name 'RcppExports.*' ! -name build_info.hpp -print | only
}

if [ "$1" = format ]; then
  chosen=
  list_code | xargs "$format" -i
  exit
fi

# A unit of src/core includes files that are compiled together.
list_tidied() {
  if [ -n "$quick" ]; then
    find src/core -name '*.cpp' | grep -v -x -F \
      "$(sed -n 's/^#include "\(.*\.cpp\)"$/src\/\1/p' src/core/*.cpp)"
  else
    find src/core -mindepth 2 -name '*.cpp' | only
  fi
}
quick=
checks=
if [ "$1" = quick ]; then
  quick=yes
  checks=--checks=-clang-analyzer-*,-bugprone-suspicious-include
  chosen=
fi

# Each header that plain C++ may include compiles alone, without R; but not what
# is the body of a kernel, which stands within another file. Where a header is the
# first line of a file that was compiled, that shows it. Without a toolkit only
# those are compiled that know no CUDA.
check_headers() {
  if command -v nvcc > /dev/null; then
    folders="src/core src/cpu src/cuda"
    # nvcc may be a script that calls another: it says itself what it includes.
    cuda_include=$(nvcc -dryrun -x cu /dev/null 2>&1 |
      sed -n 's/^#[$] INCLUDES=//p' | tr -d '"')
  else
    folders="src/core src/cpu src/cuda/plan"
    cuda_include=
  fi
  first=$(find src/core src/cpu src/cuda/* -name '*.cpp' \
    ! -path src/cuda/absent.cpp -exec head -n 1 {} \; |
    sed -n 's/^#include "\(.*\)"$/src\/\1/p')
  find $folders -name '*.hpp' ! -name build_info.hpp |
    grep -v -e kernels_body -e kernels_avx512.hpp -e kernels_half_bytes \
      -e kernels_vnni.hpp -e kernels_neon |
    grep -v -x -F "$first" |
    xargs -P "$jobs" -I FILE g++ -std=c++17 -fsyntax-only -Isrc $cuda_include \
      -x c++ -include FILE /dev/null
}

status=0
list_code | xargs -r "$format" --dry-run -Werror || status=1
# Without OpenMP: clang-tidy takes what only a pragma reads for never read.
list_tidied | sort | xargs -r -P "$jobs" -n 4 sh -c '
    clang-tidy --quiet '"$checks"' "$@" -- -std=c++17 -Isrc -Wreserved-identifier \
      -Wreserved-macro-identifier 2> /dev/null' tidy ||
  status=1
if [ -z "$quick$chosen" ]; then
  check_headers || status=1
fi
if [ -z "$quick" ]; then
  find R -name '*.R' | only | xargs -r -P "$jobs" -n 8 Rscript -e '
    found <- Filter(length, lapply(commandArgs(TRUE), lintr::lint))
    for (lints in found) print(lints)
    quit(status = length(found) > 0)
  ' || status=1
fi
Rscript -e '
  # Of two functions of one name R takes the one in the file that comes last.
  files <- list.files("R", "[.]R$", full.names = TRUE)
  code <- unlist(lapply(files, parse, keep.source = FALSE))
  given <- vapply(code, function(line) {
    if (is.call(line) && identical(line[[1]], quote(`<-`)) &&
          is.name(line[[2]])) as.character(line[[2]]) else ""
  }, "")
  twice <- unique(given[duplicated(given) & nzchar(given)])
  if (length(twice)) message("given a value twice: ", toString(twice))
  quit(status = length(twice) > 0)
' || status=1
exit $status
