#!/bin/sh
# Runs every kernel on small matrices under compute-sanitizer's four tools: invalid
# memory accesses and leaks, races in shared memory, reads of uninitialised memory,
# and barriers that not all threads reach. Needs a GPU and the toolkit:
#
#   sh gpu_sanitize.sh [TOOL ...]
#
# Run it on Hopper with the package built for 90a and then for 90 (FSKNN_CUDA_ARCH):
# other GPUs compute products by warps, too ("forms", "bytes", "bits").
# FSKNN_SANITIZE_GPUS=all searches on all GPUs instead of one. FSKNN_SANITIZE_PARTS
# names the parts to run, and FSKNN_SANITIZE_SHARES divides each into so many
# processes. FSKNN_JOBS processes run in parallel, by default a third of the
# processors. Prints a line for each process, and what a tool found. The exit
# status is then not 0.

here=$(cd "$(dirname "$0")" && pwd)
export here
[ $# -gt 0 ] || set -- memcheck racecheck initcheck synccheck
parts=${FSKNN_SANITIZE_PARTS:-$(Rscript "$here/gpu_sanitize.R")} || exit 1
shares=${FSKNN_SANITIZE_SHARES:-1}
for tool in "$@"; do
  for part in $parts; do
    for share in $(seq "$shares"); do
      echo "$tool $part $share/$shares"
    done
  done
done | xargs -P "${FSKNN_JOBS:-$((($(nproc) + 2) / 3))}" -L 1 sh -c '
  options=
  [ "$0" != memcheck ] || options="--leak-check full"
  begun=$(date +%s)
  if printed=$(compute-sanitizer --tool "$0" $options --target-processes all \
    --error-exitcode 1 Rscript "$here/gpu_sanitize.R" "$1" "$2" 2>&1); then
    echo "ok $0 $1 $2, $(($(date +%s) - begun)) s"
  else
    echo "$printed"
    echo "FAILED $0 $1 $2, $(($(date +%s) - begun)) s"
    exit 1
  fi'
