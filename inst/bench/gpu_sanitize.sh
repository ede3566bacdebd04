#!/bin/sh
# Runs every kernel on small matrices under compute-sanitizer's four tools: bad
# memory accesses and leaks, races in shared memory, reads of memory that nothing
# wrote, and barriers that not all threads reach. Needs a GPU and the toolkit:
#
#   sh gpu_sanitize.sh [TOOL ...]
#
# On Hopper with the package built for 90a, then for 90 (FSKNN_CUDA_ARCH), which is
# what other GPUs run: products by warps ("forms", "bytes", "bits").
# Some minutes, most of them racecheck's. Ends with status 1 when a tool found
# something.

here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || set -- memcheck racecheck initcheck synccheck
parts=$(Rscript "$here/gpu_sanitize.R") || exit 1
status=0
for tool in "$@"; do
  for part in $parts; do
    echo "== $tool, $part"
    case $tool in
      memcheck) options="--leak-check full" ;;
      *) options= ;;
    esac
    compute-sanitizer --tool "$tool" $options --target-processes all \
      --error-exitcode 1 Rscript "$here/gpu_sanitize.R" "$part" || status=1
  done
done
exit $status
