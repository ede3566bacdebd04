#!/bin/sh
# tools/build.sh and configure, tried on a package of two files: what is compiled again
# after a change, and what is not.

. tools/common.sh
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
copy=$scratch/fsknn
mkdir -p "$copy/src/cuda" "$copy/src/core" "$copy/R" "$copy/man" "$scratch/bin" \
  "$scratch/library" || exit 1
cp -R configure cleanup tools "$copy" || exit 1
cd "$copy" || exit 1
unset FSKNN_CONFIGURE_ARGS FSKNN_CUDA_ARCH CUDA_HOME CUDA_PATH R_MAKEVARS_USER
CCACHE_DISABLE=1
export CCACHE_DISABLE
status=0

cat > DESCRIPTION <<'END'
Package: fsknn
Version: 0.0.1
Title: Two Files
Description: Two files.
License: MIT
Encoding: UTF-8
LinkingTo: Rcpp
END
echo 'useDynLib(fsknn); export(f)' > NAMESPACE
echo 'f <- function() 1' > R/f.R
printf '\\name{f}\n\\alias{f}\n\\title{F}\n\\description{F.}\n' > man/f.Rd
printf 'OBJECTS = a.o b.o\nCXX_STD = CXX17\nNVCC = @NVCC@\nall: $(SHLIB)\n' \
  > src/Makevars.in
echo '#pragma once' > src/cuda/backend.hpp
echo 'inline int one() { return 1; }' > src/core/one.hpp
printf '#include "core/one.hpp"\nint a() { return one(); }\n' > src/a.cpp
echo 'int b() { return 2; }' > src/b.cpp
# A machine without a GPU.
printf '#!/bin/sh\nexit 9\n' > "$scratch/bin/nvidia-smi"
chmod +x "$scratch/bin/nvidia-smi"
PATH=$scratch/bin:$PATH

# expect WORDS OBJECTS COMMAND...: of the objects in FOLDER these are made by it.
folder=_build/package/src
expect() {
  words=$1
  wanted=$2
  shift 2
  touch "$scratch/before"
  sleep 0.1
  "$@" > "$scratch/log" 2>&1 || {
    echo "$words: failed"
    cat "$scratch/log"
    status=1
  }
  made=$(find $folder -name '*.o' -newer "$scratch/before" | sed 's/.*\///' | sort |
    tr '\n' ' ')
  if [ "$made" != "$wanted" ]; then
    echo "$words: compiled '$made', not '$wanted'"
    cat "$scratch/log"
    status=1
  fi
}

expect_said() {
  if ! grep -q -e "$1" "$scratch/log"; then
    echo "'$1' was not said:"
    cat "$scratch/log"
    status=1
  fi
}

gives() {
  R_LIBS=_build/library Rscript -e "stopifnot(fsknn::f() == $1)"
}

expect "a build" "a.o b.o " sh tools/build.sh dev
expect_said "the CUDA part is left out"
expect_said "Compiling 2 files, .*; the log is _build/build.log"
expect "the same again" "" sh tools/build.sh dev
expect "help pages and byte code" "" sh tools/build.sh library
[ -f _build/library/fsknn/help/fsknn.rdb ] || {
  echo "The library has no help pages."
  status=1
}
echo 'f <- function() 2' > R/f.R
expect "a changed R file" "" sh tools/build.sh dev
expect "is installed" "" gives 2
mv R/f.R R/g.R
expect "a moved R file" "" sh tools/build.sh dev
expect "is installed too" "" gives 2
touch man/f.Rd
expect "a changed help page" "" sh tools/build.sh library
touch src/b.cpp
expect "a changed source" "b.o " sh tools/build.sh dev
touch src/core/one.hpp
expect "a changed header" "a.o " sh tools/build.sh dev
mkdir src/core/deep && mv src/core/one.hpp src/core/deep
printf '#include "core/deep/one.hpp"\nint a() { return one(); }\n' > src/a.cpp
expect "a moved header" "a.o " sh tools/build.sh dev
touch src/Makevars.in
expect "configure again, with the same result" "" sh tools/build.sh dev
# As a build that was killed may leave it.
touch _build/compiling _build/package/src/a.d
sleep 0.1
echo half > _build/package/src/a.o
mkdir -p _build/library/00LOCK-fsknn
expect "a build after one that was killed" "a.o " sh tools/build.sh dev
echo 'broken' >> src/b.cpp
if sh tools/build.sh dev > "$scratch/log" 2>&1; then
  echo "A build that fails is said to be one."
  status=1
fi
expect_said "b.cpp.* error: "

# R CMD INSTALL in the clone, whose make knows no headers.
echo 'int b() { return 2; }' > src/b.cpp
install_here() {
  R CMD INSTALL --no-docs --library="$scratch/library" --configure-args=--without-cuda .
}
folder=src
expect "an installation" "a.o b.o " install_here
expect "one more" "" install_here
touch src/core/deep/one.hpp
expect "one after a header has changed" "a.o b.o " install_here
exit $status
