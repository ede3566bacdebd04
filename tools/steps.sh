# Read by tools/test.sh: steps that are run one after the other, and their sum.
# Each step counts as one test; what a step itself counts is added to that.

passed=0
failed=0
skipped=0
report=
step_failed=no

note() {
  report="$report$1
"
}

# Seconds of the processors that all commands so far took. `times` is not called in a
# subshell, which would have its own. Those of a lane are added to the step of the main
# lane during which it ends.
cpu_seconds() {
  printed=$(mktemp)
  times > "$printed"
  cpu=$(awk 'NR == 2 {
    gsub("s", "")
    for (i = 1; i <= 2; i++) { split($i, part, "m"); sum += 60 * part[1] + part[2] }
    printf "%d", sum
  }' "$printed")
  rm -f "$printed"
}

# step WORDS COMMAND...: a command that passes, fails (any status), or says by
# status 77 that it could not be run here, with the reason in $reason.
step() {
  words=$1
  shift
  echo
  echo "== $words"
  begun=$(now)
  cpu_seconds
  cpu_before=$cpu
  reason=
  step_failed=no
  "$@"
  status=$?
  cpu_seconds
  took="$(($(now) - begun)) s, $((cpu - cpu_before)) s of processors"
  case $status in
    0)
      passed=$((passed + 1))
      note "passed   $words ($took)" ;;
    77)
      skipped=$((skipped + 1))
      echo "Skipped: $reason"
      note "skipped  $words: $reason" ;;
    *)
      failed=$((failed + 1))
      step_failed=yes
      echo "FAILED: $words"
      note "FAILED   $words ($took)" ;;
  esac
  return $status
}

# add WORDS PASSED FAILED SKIPPED [OTHERS]: tests that the last step counted. It
# failed because one of them did, and is no failure more, unless it had OTHERS.
add() {
  passed=$((passed + $2))
  failed=$((failed + $3))
  skipped=$((skipped + $4))
  if [ $step_failed = yes ] && [ "$3" -gt 0 ] && [ "${5:-0}" -eq 0 ]; then
    failed=$((failed - 1))
  fi
  step_failed=no
  note "         $1: $2 passed, $3 failed, $4 skipped"
}

# beside LANE COMMAND...: steps that run beside those that follow, until join LANE.
# What they print is held back till then, so that lines do not mix.
beside() {
  lane=$1
  shift
  echo
  echo "== Beside what follows: $lane, in ${build#"$root"/}/$lane.log"
  rm -f "$build/$lane.steps"
  (
    passed=0
    failed=0
    skipped=0
    report=
    "$@"
    printf '%s\n%s' "$passed $failed $skipped" "$report" > "$build/$lane.steps"
  ) > "$build/$lane.log" 2>&1 &
  lane_process=$!
}

# join LANE: the last one that was begun. One that was killed is a failure.
join() {
  wait "$lane_process"
  cat "$build/$1.log"
  if [ -f "$build/$1.steps" ]; then
    { read -r lane_passed lane_failed lane_skipped; lane_report=$(cat); } \
      < "$build/$1.steps"
    passed=$((passed + lane_passed))
    failed=$((failed + lane_failed))
    skipped=$((skipped + lane_skipped))
    note "$lane_report"
  else
    failed=$((failed + 1))
    note "FAILED   the steps of '$1' did not end"
  fi
}

finish() {
  echo
  echo "== Summary"
  printf '%s' "$report"
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" -eq 0 ]
  exit $?
}
