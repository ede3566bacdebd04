#!/bin/sh
# What tools/steps.sh adds up: each failure is counted once.

. tools/common.sh

status=0
build=$(mktemp -d) || exit 1
trap 'rm -rf "$build"' EXIT

# expect WORDS LAST COMMANDS: the last line that these commands make it say.
expect() {
  got=$(
    . tools/steps.sh
    eval "$3"
    finish
  )
  got=$(printf '%s\n' "$got" | tail -n 1)
  if [ "$got" != "$2" ]; then
    echo "$1: '$got', not '$2'"
    status=1
  fi
}

expect "a step" "1 passed, 0 failed, 0 skipped" 'step one true'
expect "a step that fails" "1 passed, 1 failed, 0 skipped" \
  'step one true; step two false'
expect "a step that can't be run" "0 passed, 0 failed, 1 skipped" \
  'step one sh -c "exit 77"'
expect "tests within a step" "8 passed, 0 failed, 2 skipped" \
  'step one true; add tests 7 0 2'
expect "one test that fails" "7 passed, 1 failed, 0 skipped" \
  'step one false; add tests 7 1 0'
expect "two that fail" "7 passed, 2 failed, 0 skipped" \
  'step one false; add tests 7 2 0'
expect "one that fails, and something else" "7 passed, 2 failed, 0 skipped" \
  'step one false; add tests 7 1 0 1'
expect "a step that fails without its tests" "7 passed, 1 failed, 0 skipped" \
  'step one false; add tests 7 0 0'
expect "a step that fails before one with tests" "8 passed, 1 failed, 0 skipped" \
  'step one false; step two true; add tests 7 0 0'
expect "tests that fail in a step that passes" "8 passed, 1 failed, 0 skipped" \
  'step one true; add tests 7 1 0'
lane() { step one true; step two false; step three sh -c "exit 77"; }
dying_lane() { step one true; exit 3; }
expect "steps beside others" "2 passed, 1 failed, 1 skipped" \
  'beside lane lane; step four true; join lane'
expect "steps beside others that do not end" "1 passed, 1 failed, 0 skipped" \
  'beside lane dying_lane; step four true; join lane'
exit $status
