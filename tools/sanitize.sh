#!/bin/sh
# sanitize.sh address    the C++ tests under the address and undefined sanitizers
# sanitize.sh short      the same without those that take longest: 3 minutes on two cores
# sanitize.sh thread     the C++ tests under the thread sanitizer, by clang and its
#                        OpenMP: what GCC's does between threads is not seen by it
# sanitize.sh no_openmp  the same by clang with C++'s own threads
# sanitize.sh bindings   tests in R that go through every binding, under the
#                        address sanitizer, of a build without CUDA
# sanitize.sh            all of them
# Prints what they find, and fails then. Builds lie in _build/sanitize.

. tools/common.sh
folder=$build/sanitize
mkdir -p "$folder" || exit 1

# compile NAME COMPILER FLAGS [PROGRAM]: the C++ tests, into a folder of that
# name.
compile() {
  make -s -C tests/cpp build="$folder/$1" CXX="$2" CXXFLAGS="-O1 -g $3" \
    "$folder/$1/${4:-tests}"
}

sanitize_address() {
  compile address g++ \
    "-fsanitize=address,undefined -fno-sanitize-recover=undefined" || return 1
  UBSAN_OPTIONS=print_stacktrace=1 "$folder/address/tests" "$@"
}

sanitize_short() {
  sanitize_address -tce="$long_cpp_tests"
}

tsan_flags="-fsanitize=thread -Wno-unknown-warning-option"

# Archer tells the sanitizer how OpenMP's threads wait for each other.
sanitize_thread() {
  sh tools/setup.sh test sanitize || return 1
  compile thread clang++ "$tsan_flags" || return 1
  archer=$(clang++ -print-file-name=libarcher.so)
  [ -f "$archer" ] || { echo "clang has no libarcher.so" >&2; return 1; }
  TSAN_OPTIONS=ignore_noninstrumented_modules=1 OMP_TOOL_LIBRARIES=$archer \
    "$folder/thread/tests"
}

sanitize_no_openmp() {
  sh tools/setup.sh test sanitize || return 1
  compile thread clang++ "$tsan_flags" tests-without-openmp || return 1
  "$folder/thread/tests-without-openmp"
}

# Files whose tests call every function of RcppExports.R between them; `make
# coverage` shows one that does not.
files="study-alpha_beta_k search-backends input-blocks folder-checkpoint
  cuda-faults format-files search-k_each search-knn_graph plan-knn_plan
  search-knn_search study-mdl_filter study-metafeature_names
  study-metafeatures input-missing graph-mst_knn input-row_file
  graph-snn_graph graph-spanning_forest folder-split_file search-subset
  format-whole_file search-within_search folder-workers"

sanitize_bindings() {
  library=$folder/library
  rm -rf "$library"
  mkdir -p "$library" || return 1
  cat > "$folder/Makevars" <<END
CXX17FLAGS = -O1 -g -fsanitize=address -fno-omit-frame-pointer
SHLIB_CXX17LDFLAGS += -fsanitize=address
END
  rm -f "$folder"/fsknn_*.tar.gz
  (cd "$folder" && R CMD build --no-build-vignettes --no-manual "$root") \
    > "$folder/log" 2>&1 &&
    R_MAKEVARS_USER=$folder/Makevars R CMD INSTALL --no-docs --no-test-load \
      --library="$library" --configure-args=--without-cuda \
      "$(find_tarball "$folder")" >> "$folder/log" 2>&1 || {
    cat "$folder/log"
    return 1
  }
  # R itself is not instrumented: the sanitizer comes first, and R's own memory
  # is no leak.
  (cd tests/testthat && LD_PRELOAD=$(g++ -print-file-name=libasan.so) \
    ASAN_OPTIONS=detect_leaks=0 NOT_CRAN=true \
    R_LIBS=$library${R_LIBS:+:$R_LIBS} Rscript -e '
      testthat::test_dir(
        ".", filter = sprintf("^(%s)$", gsub("[[:space:]]+", "|", commandArgs(TRUE))),
        package = "fsknn", load_package = "installed", reporter = "summary",
        stop_on_failure = TRUE
      )
    ' "$files")
}

status=0
for part in ${1:-address thread no_openmp bindings}; do
  begun=$(now)
  if sanitize_$part; then
    echo "sanitize.sh: nothing found ($part, $(($(now) - begun)) s)"
  else
    echo "sanitize.sh: FAILED ($part)"
    status=1
  fi
done
exit $status
