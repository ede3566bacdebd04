#!/bin/sh
# slowest.sh [COUNT]   compiles every source file as `make dev` would, without ccache and
# to nowhere, and prints the slowest ones with their seconds of processor time.

. tools/common.sh
sh tools/build.sh dev || exit 1
export CCACHE_DISABLE=1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
use_makevars Makevars
cd "$build/package/src" || exit 1

# -B: as if nothing had been compiled. Of each command this keeps all but the object
# and its *.d, and adds `times`, which prints the seconds of the shell's children.
MAKEFLAGS=-B R CMD SHLIB --dry-run -o fsknn.so |
  sed -n 's/ -MMD -MP//; s/^\(.* -c \([^ ]*\)\) -o .*/\1 -o \/dev\/null; times > "$0\/$$"; sed -n "2s|^|\2 |p" "$0\/$$"/p' |
  xargs -d '\n' -P "$jobs" -I COMMAND sh -c 'COMMAND' "$scratch" > "$scratch/times" ||
  exit 1
awk '{
  split($2, user, /[ms]/)
  split($3, kernel, /[ms]/)
  printf "%7.1f s  %s\n", 60 * (user[1] + kernel[1]) + user[2] + kernel[2], $1
}' "$scratch/times" | sort -rn > "$scratch/sorted"
head -n "${1:-25}" "$scratch/sorted"
awk '{ sum += $1 } END { printf "%7.1f s  all %d files\n", sum, NR }' "$scratch/sorted"
