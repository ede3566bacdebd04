#!/bin/sh
# Runs every kernel on small matrices under compute-sanitizer's four tools: bad
# memory accesses and leaks, races in shared memory, reads of memory that nothing
# wrote, and barriers that not all threads reach. Needs a GPU and the toolkit:
#
#   sh gpu_sanitize.sh
#
# Ends with status 1 when a tool found something.

here=$(cd "$(dirname "$0")" && pwd)
status=0
for tool in "memcheck --leak-check full" racecheck initcheck synccheck; do
  echo "== $tool"
  compute-sanitizer --tool $tool --target-processes all --error-exitcode 1 \
    Rscript "$here/gpu_sanitize.R" || status=1
done
exit $status
