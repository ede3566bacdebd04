#!/bin/sh
# All that must hold. Each step counts as one test, besides those that the C++
# tests and testthat count themselves; the last line is their sum.

. tools/common.sh
. tools/steps.sh

# The name is one that a clone may have: nothing may take such a path for a file
# of the package's own.
check_dir=$build/fsknn-check
results=$build/testthat-results.tsv
# A copy of the sources to build from.
stage=$build/test-stage

# Threads that wait let others work. OpenMP's would be looking whether there is
# something to do, for a fifth of all the time of the C++ tests.
OMP_WAIT_POLICY=passive
export OMP_WAIT_POLICY

# --- Steps -----------------------------------------------------------------

# The kernels of GPUs older than Hopper, in haste: here they cannot run. What is
# compiled beside takes Hopper's alone.
check_older_gpus() {
  if ! command -v nvcc > /dev/null; then
    reason="there is no nvcc"
    return 77
  fi
  sed -n 's/^  \(cuda\/.*\)\.o.*/src\/\1.cu/p' src/Makevars.in |
    xargs ls 2> /dev/null |
    xargs -P "$jobs" -I FILE nvcc -std=c++17 -O3 --expt-relaxed-constexpr \
      -fmad=false -Xcicc -O0 -Xptxas -O0 -arch=sm_80 -Isrc -DNDEBUG \
      -cubin -o /dev/null FILE
}

# A machine on which much is installed hides what setup.sh forgot.
check_needs() {
  Rscript -e '
    fields <- c("Depends", "Imports", "LinkingTo", "Suggests")
    needed <- unlist(strsplit(na.omit(c(read.dcf("DESCRIPTION", fields))), ","))
    needed <- sub("[[:space:](].*", "", trimws(needed))
    lines <- grep(" R:", readLines("tools/setup.sh"), value = TRUE)
    brought <- c("R", rownames(installed.packages(priority = "base")),
                 sub(".* R:", "", lines))
    forgotten <- setdiff(needed, brought)
    if (length(forgotten)) {
      message("tools/setup.sh does not bring: ", toString(forgotten))
      quit(status = 1)
    }
    # Whoever installs by hand is told of all, by Debian names and by others.
    fields <- read.dcf("DESCRIPTION", c("Imports", "LinkingTo"))
    needed <- unique(trimws(unlist(strsplit(fields, ","))))
    needed <- setdiff(needed, rownames(installed.packages(priority = "base")))
    page <- paste(readLines("README.md"), collapse = " ")
    debian <- sub("^[a-z]+ +([^ ]+) .*", "\\1", lines)[
      match(needed, sub(".* R:", "", lines))
    ]
    names <- c(paste0("\"", needed, "\""), debian)
    told <- vapply(names, grepl, NA, page, fixed = TRUE)
    if (!all(told)) {
      message("README.md does not say to install ", toString(names[!told]))
      quit(status = 1)
    }
  '
}

# What Rcpp::compileAttributes() would write is what is committed.
check_bindings() {
  rm -rf "$build/bindings"
  mkdir -p "$build/bindings/R" "$build/bindings/src" "$build/bindings/inst" ||
    return 1
  cp DESCRIPTION NAMESPACE "$build/bindings" || return 1
  cp R/*.R "$build/bindings/R" && cp -R inst/include "$build/bindings/inst" ||
    return 1
  cp src/*.cpp src/fsknn_types.h "$build/bindings/src" || return 1
  Rscript -e 'Rcpp::compileAttributes(commandArgs(TRUE))' "$build/bindings" ||
    return 1
  diff R/RcppExports.R "$build/bindings/R/RcppExports.R" &&
    diff src/RcppExports.cpp "$build/bindings/src/RcppExports.cpp" || {
    echo "RcppExports is not up to date: run 'make document'."
    return 1
  }
}

build_cpp_tests() {
  make_cpp "$build/cpp/tests" "$build/cpp/tests-without-openmp"
}

# run_cpp_tests PROGRAM ARGUMENT...
run_cpp_tests() {
  "$@" --reporters=console --no-colors=true \
    > "$build/cpp-tests.log" 2>&1
  status=$?
  cat "$build/cpp-tests.log"
  return $status
}

# "[doctest] test cases: 12 | 11 passed | 1 failed | 0 skipped"
count_cpp_tests() {
  counts=$(sed -n 's/^\[doctest\] test cases: *\([0-9]*\) *| *\([0-9]*\) passed *| *\([0-9]*\) failed *| *\([0-9]*\) skipped.*/\2 \3 \4/p' \
    "$build/cpp-tests.log")
  [ -z "$counts" ] || add "C++ test cases" $counts
}

check_contraction() {
  make_cpp contraction
}

check_digests() {
  make_cpp digests
}

# Steps that run beside others write to this folder.
copy_sources() {
  rm -rf "$stage" "$check_dir" "$results" "$build/ended"
  mkdir -p "$check_dir" "$build/ended" "$stage" || return 1
  for part in $(ls -A); do
    case $part in _build | .git | demo-output | tests) continue ;; esac
    cp -R -p "$part" "$stage" || return 1
  done
  mkdir "$stage/tests" &&
    cp -R -p tests/testthat tests/testthat.R "$stage/tests" &&
    (cd "$stage" && ./cleanup)
}

# With the CUDA part where `make dev` has it, for the C++ tests and vignettes do not
# need it.
compile_package() {
  (unset FSKNN_CUDA_ARCH && sh tools/build.sh library)
}

# Vignettes need no GPU: what they are built with is compiled without.
build_package() {
  (cd "$check_dir" &&
    FSKNN_CUDA_ARCH=none R CMD build "$stage") && touch "$build/ended/well"
}

# For steps beside: what is so far, and waiting for it.
ended() {
  touch "$build/ended/$1"
}
await() {
  while [ ! -e "$build/ended/$1" ]; do
    kill -0 $$ 2> /dev/null || exit 1
    sleep 1
  done
}

# R CMD check passes with notes; a warning is a failure.
check_package() {
  FSKNN_TEST_RESULTS=$results
  # All of a test's output, not the last 13 lines.
  _R_CHECK_TESTS_NLINES_=0
  # The seconds of each part: of the processor, and by the clock.
  _R_CHECK_TIMINGS_=1
  # Snapshots are skipped otherwise.
  NOT_CRAN=true
  # Files of tests side by side: most of the time only this lane has work left.
  TESTTHAT_PARALLEL=TRUE
  TESTTHAT_CPUS=$jobs
  export FSKNN_TEST_RESULTS _R_CHECK_TESTS_NLINES_ _R_CHECK_TIMINGS_ \
    NOT_CRAN TESTTHAT_PARALLEL TESTTHAT_CPUS
  echo "Most of the time of make test; while it compiles, 00install.out in"
  echo "${check_dir#"$root"/}/fsknn.Rcheck grows."
  # R CMD build has just run the vignettes.
  (cd "$check_dir" && R CMD check --no-manual --no-vignettes \
    "$(find_tarball "$check_dir")")
  status=$?
  log=$check_dir/fsknn.Rcheck/00check.log
  if [ -f "$log" ] && grep '^Status:.*WARNING' "$log"; then
    status=1
  fi
  if grep -q 'ERROR' "$log" 2> /dev/null &&
    grep -q -i 'installation failed' "$log"
  then
    cat "$check_dir/fsknn.Rcheck/00install.out"
  fi
  return $status
}

count_package_tests() {
  if [ ! -s "$results" ]; then
    add "testthat tests" 0 1 0
    echo "testthat left no results."
    return
  fi
  # Of R CMD check all else that is an error or a warning.
  others=$(grep -v '^\* checking tests' \
    "$check_dir/fsknn.Rcheck/00check.log" |
    grep -c '^\* .*\.\.\. *\(\[.*\] *\)\{0,1\}\(ERROR\|WARNING\)$')
  add "testthat tests" "$(grep -c '^passed' "$results")" \
    "$(grep -c '^failed' "$results")" "$(grep -c '^skipped' "$results")" \
    "$others"
  grep -v '^passed' "$results"
}

# Bioconductor's check passes with notes, which CONTRIBUTING.md explains. It
# installs the package anew, without CUDA and OpenMP: with ccache of what R has
# compiled before, else in haste. That library stays for the steps below.
bioc_check() {
  rm -rf "$build/bioccheck"
  mkdir -p "$build/bioccheck" || return 1
  (
    export CCACHE_NODIRECT=1
    [ -n "$ccache" ] || hastily="CXX17FLAGS = -O0 -g0 $strict"
    use_makevars Makevars-bioccheck "SHLIB_OPENMP_CXXFLAGS =
${hastily-}" || exit 1
    FSKNN_CUDA_ARCH=none Rscript tools/bioccheck.R \
      "$(find_tarball "$check_dir")" "$build/bioccheck"
  )
}

# The package that R CMD check installed has CUDA in it.
check_cuda_build() {
  if ! sed -n '/^found nvcc/p' "$install_log" | grep -q .; then
    reason="there is no nvcc, so that no GPU code was compiled"
    return 77
  fi
  R_LIBS=$check_dir/fsknn.Rcheck Rscript -e '
    cuda <- fsknn:::cpp_backends()$cuda
    str(cuda)
    stopifnot(cuda$built)
  '
}

# A compiler that does not see that the warps of a warpgroup go together has
# Hopper's products wait for each other: slower, and it only says so.
check_products_overlap() {
  if ! sed -n '/^found nvcc/p' "$install_log" | grep -q .; then
    reason="there is no nvcc, so that no GPU code was compiled"
    return 77
  fi
  ! grep 'wgmma.*serialized' "$install_log"
}

# What BiocCheck installed, without CUDA and OpenMP, links and loads too, and
# says why it has no CUDA: nothing is missing.
check_absent_build() {
  R_LIBS=$build/bioccheck/library Rscript -e '
    cuda <- fsknn:::cpp_backends()$cuda
    str(cuda)
    stopifnot(!cuda$built, !cuda$usable, cuda$why_not$why == "not_built")
  '
}

check_own_threads() {
  if readelf -d "$build/bioccheck/library/fsknn/libs/fsknn.so" | grep -i 'omp'
  then
    return 1
  fi
  (cd tests/testthat && NOT_CRAN=true R_LIBS=$build/bioccheck/library Rscript -e '
    testthat::test_dir(
      ".", filter = "^search-threads$", package = "fsknn",
      load_package = "installed", reporter = "summary", stop_on_failure = TRUE
    )
  ')
}

# The examples of README.md, in an empty folder, without those that install packages.
check_readme() {
  rm -rf "$build/readme"
  mkdir -p "$build/readme" || return 1
  sed -n '/^```r$/,/^```$/p' README.md |
    sed -e '/^```/d' -e '/^install\.packages(/d' -e '/::install(/d' \
      > "$build/readme/examples.R"
  [ -s "$build/readme/examples.R" ] || return 1
  (cd "$build/readme" && R_LIBS=$build/bioccheck/library Rscript -e \
    'source("examples.R", echo = TRUE, max.deparse.length = Inf)')
}

# --- All of them -----------------------------------------------------------

# Of the code alone, while R compiles; then BiocCheck, which takes the tarball; and
# what takes the objects.
check_code() {
  step "Debian's packages bring all that DESCRIPTION names" check_needs
  step "clang-format and clang-tidy find nothing" sh tools/lint.sh quick
  step "Who includes whom" sh tools/check-arrows.sh
  step "A wrong arrow is seen" sh tools/test-arrows.sh
  step "configure and cleanup do as they say" sh tools/test-configure.sh
  step "Only what has changed is compiled again" sh tools/test-build.sh
  step "Failures are counted once" sh tools/test-steps.sh
  step "Pages are complete without a network" sh tools/test-site.sh
  step "RcppExports is up to date" check_bindings
  step "The pages' index names every help page" sh tools/site.sh check
  await compiled
  step "What the vignette 'extending' shows works" sh tools/try-extending.sh
  # One thread's work: while R CMD check still has some for the other.
  await built
  [ ! -e "$build/ended/well" ] || {
    step "BiocCheck: no error, no warning" bioc_check
    step "The build without CUDA links and loads" check_absent_build
    step "The build without OpenMP uses threads" check_own_threads
    step "The examples of README.md run" check_readme
  }
  step "The C++ tests compile" build_cpp_tests && {
    step "The C++ tests pass" run_cpp_tests "$build/cpp/tests"
    count_cpp_tests
    step "Those of threads pass by C++'s own" run_cpp_tests \
      "$build/cpp/tests-without-openmp" -tc="*thread*,*team*"
  }
  step "Contraction by the compiler changes no bit of the core" \
    check_contraction
  step "The answers' digests are the committed ones" check_digests
  step "The kernels of older GPUs compile" check_older_gpus
  step "Emulated 64-bit ARM has the same answers by each set" sh tools/test-arm.sh
}

mkdir -p "$build"
step "What is needed is there" sh tools/setup.sh test || finish
use_makevars Makevars || exit 1
step "The sources are copied" copy_sources || finish
beside code check_code
step "R compiles the package" compile_package
ended compiled
step "R CMD build" build_package
ended built
if [ -e "$build/ended/well" ]; then
  step "R CMD check: no error, no warning" check_package
  count_package_tests
  install_log=$check_dir/fsknn.Rcheck/00install.out
  if [ -d "$check_dir/fsknn.Rcheck/fsknn" ]; then
    step "The CUDA build links and loads" check_cuda_build
    step "Hopper's products wait for none of their own" check_products_overlap
  fi
fi
join code
finish
