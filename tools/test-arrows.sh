#!/bin/sh
# check-arrows.sh, run on a copy into which one wrong thing at a time is planted.

root=$(pwd -P)
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
copy=$scratch/fsknn
status=0
mkdir "$copy" && cp -R "$root/R" "$root/src" "$copy" || exit 1

# expect TEXT: the check of the copy says so, and fails.
expect() {
  if sh tools/check-arrows.sh "$copy" > "$scratch/log" ||
    ! grep -q -F -e "$1" "$scratch/log"
  then
    echo "check-arrows.sh does not say '$1':"
    cat "$scratch/log"
    status=1
  fi
}

# plant FILE LINE TEXT: with this line at its end, the file is told of.
plant() {
  [ -f "$copy/$1" ] || echo "There is no $1 to plant in."
  cp "$copy/$1" "$scratch/kept"
  printf '%s\n' "$2" >> "$copy/$1"
  expect "$3: $2"
  cp "$scratch/kept" "$copy/$1"
}

plant src/core/rows/scan.cpp '#include "cpu/search/engine.hpp"' "core may not include this"
plant src/core/rows/scan.hpp '#include "bind_common.hpp"' "core may not include this"
plant src/core/rows/scan.cpp '# include <R_ext/BLAS.h>' "only bindings know R"
plant src/core/rows/scan.cpp '#include "../inst/include/fsknn.h"' \
  "only bindings may include inst/include/fsknn.h, and nothing else there"
plant src/core/rows/scan.hpp '#include <cuda_runtime.h>' \
  "a build without CUDA cannot include this"
plant src/cuda/search/engine.cpp '#include <math_constants.h>' \
  "only what nvcc compiles knows kernels"
plant src/core/rows/scan.cpp '#include <boost/any.hpp>' "not a header that is known (tools/check-arrows.sh)"
plant src/cpu/search/engine.cpp '#include "cuda/backend.hpp"' \
  "cpu may not include this"
plant src/cuda/search/engine.cpp '#include "cpu/search/engine.hpp"' \
  "cuda may not include this"
plant src/cuda/search/engine.cpp '#include <Rcpp.h>' "only bindings know R"
plant src/cuda/plan/plan.hpp '#include "cuda/device/faults.hpp"' \
  "this is higher up"
plant src/cuda/backend.hpp '#include "cuda/plan/plan.hpp"' "this is higher up"
plant src/core/rows/scan.cpp '#include "core/search/plan.hpp"' "this is higher up"
plant src/cuda/search/engine.cpp '#include "cuda/exact/sorting.cuh"' \
  "plain C++ may not include what nvcc compiles"
plant src/cuda/filter/half_bound.hpp '#include "cuda/device/check.hpp"' \
  "a build without CUDA cannot include this"
plant src/bind_common.cpp '#include "cuda/device/staging.hpp"' \
  "a build without CUDA cannot include this"
plant src/core/rows/scan.cpp '#include "core/rows/filled.cpp"' \
  "only a unit includes a .cpp or .cu"
plant src/core/rows.cpp '#include "cpu/search/few.cpp"' \
  "only a unit includes a .cpp or .cu"
plant src/cuda/plan.cpp '#include "cuda/search/rounds.cpp"' \
  "a build without CUDA cannot include this"
plant src/core/base/pieces.hpp '#include <omp.h>' "only core/base/team.cpp knows OpenMP"
plant src/cuda/search/engine.cpp '#pragma omp parallel' \
  "only core/base/team.cpp knows OpenMP"

mkdir "$copy/src/cuda/other" "$copy/src/gpu"
echo '#pragma once' > "$copy/src/cuda/other/x.hpp"
expect "no folder of src/cuda has this name"
rm -r "$copy/src/cuda/other"
echo '#pragma once' > "$copy/src/gpu/x.hpp"
expect "no part of src has this name"
rm -r "$copy/src/gpu"
exit $status
