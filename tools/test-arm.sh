#!/bin/sh
# test-arm.sh: compiles the CPU engine for 64-bit ARM, and runs by an emulator
# the C++ tests that know of instruction sets, and some of the searches whose
# digests are committed. Processors with and without what NEON may have beside
# what all have: each finds the sets that it can run, and no other.

. tools/common.sh

arm=$build/arm
make -s -C tests/cpp build="$arm" CXX="$ccache aarch64-linux-gnu-g++" \
  CXXFLAGS="-O1 -g0" \
  "$arm/kernel-tests" "$arm/print_answers" || exit 1

# Of the other files' tests those that take seconds.
tests="kernels*,every instruction set sums*,bytes are taken*,\
differences of bytes are*,bytes and words keep*,nothing but what was added*,\
subnormal rows keep*,bits count the same*,a relative difference is right*"
status=0

# on CPU PROGRAM ARGUMENT...
on() {
  cpu=$1
  shift
  qemu-aarch64 -L /usr/aarch64-linux-gnu -cpu "$cpu" "$@"
}

# answers CPU SETS FORM.DATA...: the sets that there are, and their digests.
answers() {
  cpu=$1
  sets=$2
  shift 2
  folder=$arm/answers-$cpu
  rm -rf "$folder"
  on "$cpu" "$arm/print_answers" "$folder" "$@" || return 1
  found=$(ls "$folder" | grep -v -e -8 | tr '\n' ' ')
  if [ "$found" != "$sets " ]; then
    echo "$cpu has '$found', not '$sets '"
    return 1
  fi
  for set in $(ls "$folder"); do
    echo "$cpu, $set: $(ls "$folder/$set" | wc -l) answers"
    (cd "$folder/$set" && sha256sum --check --quiet --ignore-missing \
      "$root/tests/cpp/digests.sha256") || return 1
  done
}

on max "$arm/kernel-tests" -tc="$tests" --no-colors=true &
on_max=$!
answers cortex-a72 "baseline neon" knn.two-features || status=1
answers cortex-a76 "baseline neon neondot" knn.two-features || status=1
answers max "baseline neon neondot neoni8mm" \
  knn.generic knn.scales adjusted.ties || status=1
wait "$on_max" || status=1
exit $status
