#!/bin/sh
# Faults of a real GPU. Run from the package's root; needs nvcc, a GPU, and
# fsknn installed.
set -e
here=inst/bench
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${NVCC:-nvcc}" -shared -Xcompiler -fPIC -o "$folder/gpu_faults.so" \
  "$here/gpu_faults.cu"
Rscript "$here/gpu_faults.R" "$folder/gpu_faults.so"
