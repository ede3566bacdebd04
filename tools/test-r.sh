#!/bin/sh
# test-r.sh [FILE ...]: the tests in R of the installed package (R_LIBS says where); all,
# or those of these names ("cuda-blocks"). Each file runs in a process of its own and
# leaves a line, so that the results so far are known if time ends before the tests
# do: some side by side first, then one by one those that measure time or memory of a
# GPU or make up faults. FSKNN_TEST_LOGS names a folder for what they print.

. tools/common.sh
logs=${FSKNN_TEST_LOGS:-$build/test-r}
mkdir -p "$logs" || exit 1
export NOT_CRAN=true logs

alone='cuda cuda-devices cuda-faults cuda-triples search-backends
  search-failures search-memory search-larger_than_memory search-threads
  search-interrupt plan-knn_plan graph-results'

# Prints a line for one file: failed, passed and skipped expectations, seconds.
one='
  begun=$(date +%s)
  Rscript -e "
    results <- as.data.frame(testthat::test_file(
      \"tests/testthat/test-$0.R\", package = \"fsknn\",
      reporter = testthat::MultiReporter\$new(reporters = list(
        testthat::CheckReporter\$new(), testthat::ListReporter\$new()
      ))
    ))
    failed <- sum(results\$failed) + sum(results\$error)
    cat(sprintf(
      \"RESULT %d failed, %d passed, %d skipped\\n\", failed,
      sum(results\$passed), sum(results\$skipped)
    ))
    quit(status = failed > 0)
  " > "$logs/$0.log" 2>&1
  status=$?
  line=$(sed -n "s/^RESULT //p" "$logs/$0.log")
  word=ok
  [ $status -eq 0 ] || word=FAILED
  [ $word = ok ] || [ -z "$verbose" ] || cat "$logs/$0.log"
  echo "$word $0: ${line:-no result, status $status}, $(($(date +%s) - begun)) s"
  exit $status'

if [ $# -gt 0 ]; then
  together=$*
  alone=
  export verbose=yes
else
  together=$(ls tests/testthat | sed -n 's/^test-\(.*\)\.R$/\1/p' |
    grep -v -x -F "$(echo $alone | tr ' ' '\n')")
fi

failed=0
printf '%s\n' $together |
  xargs -P "${FSKNN_TEST_JOBS:-$jobs}" -I NAME sh -c "$one" NAME || failed=1
for name in $alone; do
  sh -c "$one" "$name" || failed=1
done
exit $failed
